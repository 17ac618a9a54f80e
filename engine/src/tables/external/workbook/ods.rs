//! Spreadsheets of OpenDocument (ISO 26300): `content.xml`, of which every cell says its type.

use std::io::{BufRead, Error, ErrorKind, Result as IoResult};

use super::archive::Archive;
use super::cells::{CellValue, EachRow, SheetName, SheetRow, elapsed, iso_moment};
use super::xml::{PartXml, XmlEvent, XmlTag};

const CONTENT: &str = "content.xml";
const MOST_COLUMNS: u32 = 16_384;
const MOST_ROWS: u32 = 1_048_576;
/// The cells of a sheet once its repetitions are written out: "this row a million times" is one line.
const MOST_CELLS: u64 = 200_000_000;

/// Returns the names of the sheets; `None` where the archive is no spreadsheet of OpenDocument.
pub(super) fn sheet_names(archive: &mut Archive) -> IoResult<Option<Vec<SheetName>>> {
    let Some(part) = archive.part(CONTENT)? else { return Ok(None) };
    let mut xml = PartXml::new(part);
    let mut names = Vec::new();
    // A sheet is hidden by its style, which stands before it.
    let (mut style, mut hidden) = (String::new(), Vec::new());
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) if tag.name() == b"style" => style = tag.attribute("name").unwrap_or_default(),
            XmlEvent::Start(tag)
                if tag.name() == b"table-properties" && tag.attribute("display").as_deref() == Some("false") =>
            {
                hidden.push(style.clone());
            }
            XmlEvent::Start(tag) if tag.name() == b"table" => {
                let is_hidden = tag.attribute("style-name").is_some_and(|own| hidden.contains(&own));
                names.extend(tag.attribute("name").map(|name| SheetName { name, is_hidden }));
            }
            XmlEvent::Eof => return Ok(Some(names)),
            _ => {}
        }
    }
}

/// Calls `each` for each row of a sheet that holds something, until it returns false.
pub(super) fn each_row(archive: &mut Archive, sheet: &str, each: &mut EachRow<'_>) -> IoResult<()> {
    let Some(part) = archive.part(CONTENT)? else { return Err(broken("the workbook has no content")) };
    let mut xml = PartXml::new(part);
    let mut is_inside = false;
    let (mut row, mut repeat, mut seen): (u32, u32, u64) = (0, 1, 0);
    let (mut cells, mut column): (SheetRow<'static>, u32) = (Vec::new(), 0);
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) if tag.name() == b"table" => {
                is_inside = !tag.is_empty && tag.attribute("name").as_deref() == Some(sheet);
            }
            XmlEvent::End(name) if name == b"table" && is_inside => return Ok(()),
            XmlEvent::Start(tag) if is_inside && tag.name() == b"table-row" => {
                repeat = repeats(&tag, "number-rows-repeated");
                (cells, column) = (Vec::new(), 0);
                if tag.is_empty {
                    row = row.saturating_add(repeat);
                }
            }
            XmlEvent::Start(tag) if is_inside && matches!(tag.name(), b"table-cell" | b"covered-table-cell") => {
                let count = repeats(&tag, "number-columns-repeated");
                let cell = OdsCell::new(&tag);
                let text = if tag.is_empty { String::new() } else { cell_text(&mut xml)? };
                if let Some(value) = cell.value(text) {
                    for at in column..column.saturating_add(count).min(MOST_COLUMNS) {
                        cells.push((at, value.clone()));
                    }
                }
                column = column.saturating_add(count);
            }
            XmlEvent::End(name) if is_inside && name == b"table-row" => {
                if !cells.is_empty() {
                    for at in row..row.saturating_add(repeat).min(MOST_ROWS) {
                        seen += cells.len() as u64;
                        if seen > MOST_CELLS {
                            return Err(broken(&format!("more than {MOST_CELLS} cells; save it as CSV or Parquet")));
                        }
                        if !each(at, &cells)? {
                            return Ok(());
                        }
                    }
                }
                row = row.saturating_add(repeat);
            }
            XmlEvent::Eof => return Ok(()),
            _ => {}
        }
    }
}

/// What a cell says of itself.
struct OdsCell {
    kind: Option<String>,
    is_error: bool,
    has_formula: bool,
    value: Option<String>,
}

impl OdsCell {
    fn new(tag: &XmlTag<'_>) -> Self {
        let names = ["value", "boolean-value", "date-value", "time-value", "string-value"];
        let kinds = attributes_of_type(tag);
        Self {
            is_error: kinds.1.as_deref() == Some("error"),
            has_formula: tag.attribute("formula").is_some(),
            kind: kinds.0,
            value: names.iter().find_map(|name| tag.attribute(name)),
        }
    }

    fn value(self, text: String) -> Option<CellValue<'static>> {
        let value = self.value.unwrap_or_else(|| text.clone());
        if value.is_empty() && text.is_empty() {
            return (self.has_formula && self.kind.is_none()).then_some(CellValue::Uncalculated);
        }
        if self.is_error {
            return Some(CellValue::Error(text));
        }
        let found = match self.kind.as_deref() {
            Some("float" | "percentage" | "currency") => value.parse().ok().map(CellValue::Number),
            Some("boolean") => Some(CellValue::Boolean(value == "true")),
            Some("date") => iso_moment(&value),
            Some("time") => duration(&value),
            _ => None,
        };
        let is_text = !value.is_empty();
        found.or_else(|| is_text.then_some(CellValue::Text(value.into())))
    }
}

/// Returns the type of a cell in the standard's namespace, and in that of LibreOffice.
fn attributes_of_type(tag: &XmlTag<'_>) -> (Option<String>, Option<String>) {
    (tag.prefixed("office:value-type").or_else(|| tag.attribute("value-type")), tag.prefixed("calcext:value-type"))
}

fn repeats(tag: &XmlTag<'_>, name: &str) -> u32 {
    tag.attribute(name).and_then(|count| count.parse().ok()).unwrap_or(1).max(1)
}

/// Returns the text of a cell's paragraphs, up to the cell's end.
fn cell_text<R: BufRead>(xml: &mut PartXml<R>) -> IoResult<String> {
    let (mut text, mut paragraphs, mut depth, mut notes) = (String::new(), 0_u32, 0_u32, 0_u32);
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) => match tag.name() {
                b"annotation" => notes += u32::from(!tag.is_empty),
                _ if notes > 0 => {}
                b"p" => {
                    if paragraphs > 0 {
                        text.push('\n');
                    }
                    paragraphs += 1;
                    depth += u32::from(!tag.is_empty);
                }
                b"s" => {
                    let spaces = tag.attribute("c").and_then(|count| count.parse::<usize>().ok()).unwrap_or(1);
                    text.extend(std::iter::repeat_n(' ', spaces.min(1_000)));
                }
                b"tab" => text.push('\t'),
                b"line-break" => text.push('\n'),
                _ => {}
            },
            XmlEvent::Text(part) if depth > 0 && notes == 0 => text.push_str(&part),
            XmlEvent::End(name) => match name.as_slice() {
                b"annotation" => notes = notes.saturating_sub(1),
                b"p" if notes == 0 => depth = depth.saturating_sub(1),
                b"table-cell" | b"covered-table-cell" => return Ok(text),
                _ => {}
            },
            XmlEvent::Eof => return Err(broken("a cell does not end")),
            XmlEvent::Text(_) | XmlEvent::Other => {}
        }
    }
}

/// Reads `PT10H30M00S`.
fn duration(text: &str) -> Option<CellValue<'static>> {
    let (sign, rest) = text.strip_prefix('-').map_or((1.0, text), |rest| (-1.0, rest));
    let mut rest = rest.strip_prefix("PT")?;
    let mut seconds = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|char: char| !char.is_ascii_digit() && char != '.' && char != ',')?;
        let number: f64 = rest.get(..end)?.replace(',', ".").parse().ok()?;
        let unit = match rest.as_bytes().get(end)? {
            b'H' => 3_600.0,
            b'M' => 60.0,
            b'S' => 1.0,
            _ => return None,
        };
        seconds += number * unit;
        rest = rest.get(end + 1..)?;
    }
    Some(elapsed(sign * seconds * 1_000.0))
}

fn broken(detail: &str) -> Error {
    Error::new(ErrorKind::InvalidData, detail.to_owned())
}
