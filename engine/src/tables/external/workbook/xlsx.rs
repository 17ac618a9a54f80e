//! Workbooks of Excel since 2007 (ECMA-376): its sheets, its shared texts, which formats are dates, and a sheet's cells.

use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result as IoResult};

use chrono::NaiveDate;

use super::archive::Archive;
use super::cells::{CellValue, EachRow, SheetName, SheetRow, elapsed, iso_moment, number_text};
use super::xml::{PartXml, XmlEvent, XmlTag};

const WORKBOOK: &str = "xl/workbook.xml";
/// The columns that a sheet has at most.
const MOST_COLUMNS: u32 = 16_384;
const MOST_ROWS: u32 = 1_048_576;
const MILLIS_A_DAY: f64 = 86_400_000.0;

/// What the cells of all sheets refer to.
pub(super) struct XlsxBook {
    sheets: Vec<(SheetName, String)>,
    texts: Vec<String>,
    formats: Vec<NumberFormat>,
    counts_from_1904: bool,
}

/// What a cell's number stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumberFormat {
    Number,
    Date,
    Elapsed,
}

impl XlsxBook {
    /// Reads what is not in the sheets themselves; `None` where the archive is no such workbook.
    pub(super) fn open(archive: &mut Archive) -> IoResult<Option<Self>> {
        let Some(path) = main_part(archive)? else { return Ok(None) };
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let targets = relations(archive, &path)?;
        let mut book = Self { sheets: Vec::new(), texts: Vec::new(), formats: Vec::new(), counts_from_1904: false };
        let Some(part) = archive.part(&path)? else { return Ok(None) };
        let mut xml = PartXml::new(part);
        loop {
            match xml.next()? {
                XmlEvent::Start(tag) if tag.name() == b"workbookPr" => {
                    book.counts_from_1904 =
                        tag.attribute("date1904").is_some_and(|value| value == "1" || value == "true");
                }
                XmlEvent::Start(tag) if tag.name() == b"sheet" => {
                    let target = tag.attribute("id").and_then(|id| targets.get(&id));
                    if let (Some(name), Some((kind, target))) = (tag.attribute("name"), target)
                        && kind.ends_with("/worksheet")
                    {
                        let is_hidden = tag.attribute("state").is_some_and(|state| state != "visible");
                        book.sheets.push((SheetName { name, is_hidden }, full_path(&folder, target)));
                    }
                }
                XmlEvent::Eof => break,
                _ => {}
            }
        }
        let of_kind = |kind: &str| {
            let found = targets.values().find(|(own, _)| own.ends_with(kind));
            found.map(|(_, target)| full_path(&folder, target))
        };
        if let Some(path) = of_kind("/sharedStrings") {
            book.texts = shared_texts(archive, &path)?;
        }
        if let Some(path) = of_kind("/styles") {
            book.formats = number_formats(archive, &path)?;
        }
        Ok(Some(book))
    }

    pub(super) fn sheets(&self) -> impl Iterator<Item = &SheetName> {
        self.sheets.iter().map(|(name, _)| name)
    }

    /// Calls `each` for each row of a sheet that holds something, until it returns false.
    pub(super) fn each_row(&self, archive: &mut Archive, sheet: &str, each: &mut EachRow<'_>) -> IoResult<()> {
        let path = self.sheets.iter().find(|(name, _)| name.name == sheet).map(|(_, path)| path.as_str());
        let part = path.map(|path| archive.part(path)).transpose()?.flatten();
        let Some(part) = part else { return Err(broken("the sheet is missing in the archive")) };
        let mut xml = PartXml::new(part);
        let (mut row, mut cells, mut column): (u32, SheetRow<'_>, u32) = (0, Vec::new(), 0);
        // An element that has no row before it begins with the first one.
        let mut next_row = 0;
        loop {
            match xml.next()? {
                XmlEvent::Start(tag) if tag.name() == b"row" => {
                    let number = tag.attribute("r").and_then(|number| number.parse::<u32>().ok());
                    row = number.map_or(next_row, |number| number.saturating_sub(1));
                    if row < next_row || row >= MOST_ROWS {
                        return Err(broken("its rows are not in order"));
                    }
                    (next_row, column) = (row + 1, 0);
                    cells.clear();
                }
                XmlEvent::Start(tag) if tag.name() == b"c" => {
                    column = tag.attribute("r").and_then(|name| column_of(&name)).unwrap_or(column);
                    if column >= MOST_COLUMNS {
                        return Err(broken("a cell lies beyond the last column"));
                    }
                    let (kind, style) = (tag.attribute("t"), tag.attribute("s"));
                    if !tag.is_empty {
                        let content = cell_content(&mut xml)?;
                        let value = match content.is_uncalculated(kind.as_deref()) {
                            true => Some(CellValue::Uncalculated),
                            false => self.value(content.text, kind.as_deref(), style.as_deref()),
                        };
                        cells.extend(value.map(|value| (column, value)));
                    }
                    column += 1;
                }
                XmlEvent::End(name) if name == b"row" => {
                    cells.sort_by_key(|(column, _)| *column);
                    if !cells.is_empty() && !each(row, &cells)? {
                        return Ok(());
                    }
                }
                XmlEvent::End(name) if name == b"sheetData" => return Ok(()),
                XmlEvent::Eof => return Ok(()),
                _ => {}
            }
        }
    }

    fn value(&self, written: String, kind: Option<&str>, style: Option<&str>) -> Option<CellValue<'_>> {
        if written.is_empty() {
            return None;
        }
        Some(match kind.unwrap_or("n") {
            "s" => {
                let text = written.trim().parse::<usize>().ok().and_then(|index| self.texts.get(index))?;
                return (!text.is_empty()).then_some(CellValue::Text(text.into()));
            }
            "b" => CellValue::Boolean(matches!(written.trim(), "1" | "true")),
            "e" => CellValue::Error(written),
            "d" => iso_moment(&written).unwrap_or(CellValue::Text(written.into())),
            "str" | "inlineStr" => CellValue::Text(without_escapes(written).into()),
            _ => {
                let Ok(number) = written.trim().parse::<f64>() else { return Some(CellValue::Text(written.into())) };
                let index = style.and_then(|style| style.parse::<usize>().ok()).unwrap_or(0);
                match self.formats.get(index).copied().unwrap_or(NumberFormat::Number) {
                    NumberFormat::Number => CellValue::Number(number),
                    NumberFormat::Elapsed => elapsed(number * MILLIS_A_DAY),
                    NumberFormat::Date => moment(number, self.counts_from_1904),
                }
            }
        })
    }
}

/// What a cell holds.
#[derive(Default)]
struct CellContent {
    text: String,
    has_formula: bool,
}

impl CellContent {
    /// Returns whether it is a formula whose value was never stored, as programs write it that do not calculate.
    fn is_uncalculated(&self, kind: Option<&str>) -> bool {
        self.has_formula && self.text.is_empty() && kind != Some("str")
    }
}

/// Returns what a cell holds, up to the cell's end.
fn cell_content<R: std::io::BufRead>(xml: &mut PartXml<R>) -> IoResult<CellContent> {
    let (mut content, mut is_value, mut phonetic) = (CellContent::default(), false, false);
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) => match tag.name() {
                b"v" | b"t" => is_value = !tag.is_empty && !phonetic,
                b"f" => content.has_formula = true,
                b"rPh" => phonetic = !tag.is_empty,
                _ => {}
            },
            XmlEvent::Text(part) if is_value => content.text.push_str(&part),
            XmlEvent::End(name) => match name.as_slice() {
                b"v" | b"t" => is_value = false,
                b"rPh" => phonetic = false,
                b"c" | b"si" => return Ok(content),
                _ => {}
            },
            XmlEvent::Eof => return Err(broken("a cell does not end")),
            XmlEvent::Text(_) | XmlEvent::Other => {}
        }
    }
}

/// Returns the path of the workbook's main part.
fn main_part(archive: &mut Archive) -> IoResult<Option<String>> {
    let found = relations(archive, "")?.into_values().find(|(kind, _)| kind.ends_with("/officeDocument"));
    let path = found.map_or_else(|| WORKBOOK.to_owned(), |(_, target)| full_path("", &target));
    if path.ends_with(".bin") {
        return Err(broken("is a binary workbook (.xlsb); save it as .xlsx"));
    }
    Ok(archive.has(&path).then_some(path))
}

/// Returns the relations of a part by their ids: what they lead to, and its path.
fn relations(archive: &mut Archive, of_part: &str) -> IoResult<HashMap<String, (String, String)>> {
    let (folder, name) = of_part.rsplit_once('/').unwrap_or(("", of_part));
    let slash = if folder.is_empty() { "" } else { "/" };
    let Some(part) = archive.part(&format!("{folder}{slash}_rels/{name}.rels"))? else { return Ok(HashMap::new()) };
    let mut xml = PartXml::new(part);
    let mut found = HashMap::new();
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) if tag.name() == b"Relationship" => {
                if let (Some(id), Some(kind), Some(target)) =
                    (tag.attribute("Id"), tag.attribute("Type"), tag.attribute("Target"))
                {
                    found.insert(id, (kind, target));
                }
            }
            XmlEvent::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn full_path(folder: &str, target: &str) -> String {
    match target.strip_prefix('/') {
        Some(absolute) => absolute.to_owned(),
        None if folder.is_empty() => target.to_owned(),
        None => format!("{folder}/{}", target.trim_start_matches("./")),
    }
}

fn shared_texts(archive: &mut Archive, path: &str) -> IoResult<Vec<String>> {
    let Some(part) = archive.part(path)? else { return Ok(Vec::new()) };
    let mut xml = PartXml::new(part);
    let mut texts = Vec::new();
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) if tag.name() == b"si" => {
                let text = if tag.is_empty { String::new() } else { cell_content(&mut xml)?.text };
                texts.push(without_escapes(text));
            }
            XmlEvent::Eof => return Ok(texts),
            _ => {}
        }
    }
}

/// Returns the format of each style of cells.
fn number_formats(archive: &mut Archive, path: &str) -> IoResult<Vec<NumberFormat>> {
    let Some(part) = archive.part(path)? else { return Ok(Vec::new()) };
    let mut xml = PartXml::new(part);
    let (mut codes, mut formats, mut is_of_cells) = (HashMap::new(), Vec::new(), false);
    let id = |tag: &XmlTag<'_>| tag.attribute("numFmtId").and_then(|id| id.parse::<u32>().ok());
    loop {
        match xml.next()? {
            XmlEvent::Start(tag) => match tag.name() {
                b"numFmt" => {
                    if let (Some(id), Some(code)) = (id(&tag), tag.attribute("formatCode")) {
                        codes.insert(id, of_code(&code));
                    }
                }
                b"cellXfs" => is_of_cells = true,
                b"xf" if is_of_cells => {
                    let id = id(&tag).unwrap_or(0);
                    formats.push(codes.get(&id).copied().unwrap_or_else(|| built_in(id)));
                }
                _ => {}
            },
            XmlEvent::End(name) if name == b"cellXfs" => is_of_cells = false,
            XmlEvent::Eof => return Ok(formats),
            _ => {}
        }
    }
}

/// Returns what the formats without a code of their own stand for.
fn built_in(id: u32) -> NumberFormat {
    match id {
        46 => NumberFormat::Elapsed,
        14..=22 | 27..=36 | 45 | 47 | 50..=58 => NumberFormat::Date,
        _ => NumberFormat::Number,
    }
}

/// Returns what a format's code stands for: `yyyy-mm-dd` is a date, `[h]:mm` a duration, `0.00` a number.
fn of_code(code: &str) -> NumberFormat {
    let mut chars = code.chars();
    let mut is_date = false;
    while let Some(char) = chars.next() {
        match char {
            ';' => break,
            '"' => {
                chars.by_ref().find(|char| *char == '"');
            }
            '\\' | '_' | '*' => {
                chars.next();
            }
            '[' => {
                let inside: String = chars.by_ref().take_while(|char| *char != ']').collect();
                let inside = inside.to_lowercase();
                if !inside.is_empty() && ["h", "m", "s"].iter().any(|unit| inside.replace(unit, "").is_empty()) {
                    return NumberFormat::Elapsed;
                }
            }
            'G' if chars.as_str().starts_with("eneral") => {
                chars.nth(5);
            }
            'd' | 'D' | 'm' | 'M' | 'y' | 'Y' | 'h' | 'H' | 's' | 'S' => is_date = true,
            _ => {}
        }
    }
    if is_date { NumberFormat::Date } else { NumberFormat::Number }
}

/// Returns the day and time that a number of days stands for, or the time alone where there is no day.
fn moment(days: f64, counts_from_1904: bool) -> CellValue<'static> {
    let day = days.floor();
    if (0.0..1.0).contains(&days) {
        return elapsed(days * MILLIS_A_DAY);
    }
    // Excel counts a 29 February 1900, which no calendar has.
    let (epoch, is_a_day) = match (counts_from_1904, day) {
        (true, _) => (NaiveDate::from_ymd_opt(1904, 1, 1), true),
        (false, day) if day < 60.0 => (NaiveDate::from_ymd_opt(1899, 12, 31), true),
        (false, day) => (NaiveDate::from_ymd_opt(1899, 12, 30), day != 60.0),
    };
    let millis = (days * MILLIS_A_DAY).round();
    let moment = epoch
        .and_then(|epoch| epoch.and_hms_opt(0, 0, 0))
        .and_then(|epoch| epoch.checked_add_signed(chrono::TimeDelta::try_milliseconds(millis as i64)?));
    match moment {
        Some(moment) if days >= 0.0 && is_a_day && days < 2_958_466.0 => CellValue::Moment(moment),
        _ => CellValue::Text(number_text(days).into()),
    }
}

/// Returns the column of a cell's name such as `C5`.
fn column_of(name: &str) -> Option<u32> {
    let letters = name.bytes().take_while(u8::is_ascii_alphabetic);
    let number =
        letters.take(4).fold(0_u32, |sum, letter| sum * 26 + u32::from(letter.to_ascii_uppercase() - b'A') + 1);
    number.checked_sub(1)
}

/// Returns a text with its `_x000D_` as the characters that they stand for.
fn without_escapes(text: String) -> String {
    if !text.contains("_x") {
        return text;
    }
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some(at) = rest.find("_x") {
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let code = rest.get(2..6).filter(|_| rest.get(6..7) == Some("_"));
        let code = code.filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32) {
            Some(char) => {
                plain.push(char);
                rest = rest.get(7..).unwrap_or_default();
            }
            None => {
                plain.push_str("_x");
                rest = rest.get(2..).unwrap_or_default();
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn broken(detail: &str) -> Error {
    Error::new(ErrorKind::InvalidData, detail.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_say_what_a_number_is() {
        for code in ["yyyy-mm-dd", "d. mmm yy", "h:mm AM/PM", "[$-409]d-mmm-yy;@", "mm:ss"] {
            assert_eq!(of_code(code), NumberFormat::Date, "{code}");
        }
        for code in ["0.00", "General", "#,##0 \"days\"", "[Red]0.0", "0.00E+00", "\\d0", "@", "_-* #,##0.00_-"] {
            assert_eq!(of_code(code), NumberFormat::Number, "{code}");
        }
        assert_eq!(of_code("[h]:mm:ss"), NumberFormat::Elapsed);
    }

    #[test]
    fn days_are_those_of_a_calendar() {
        let text = |days, from_1904| moment(days, from_1904).text().into_owned();
        assert_eq!(text(1.0, false), "1900-01-01");
        assert_eq!(text(59.0, false), "1900-02-28");
        assert_eq!(text(60.0, false), "60");
        assert_eq!(text(61.0, false), "1900-03-01");
        assert_eq!(text(45_943.541, false), "2025-10-13 12:59:02.400");
        assert_eq!(text(1.0, true), "1904-01-02");
        assert_eq!(text(0.5, false), "12:00:00");
        assert_eq!(text(-1.0, false), "-1");
        assert_eq!(without_escapes("a_x000D_b_xyz_".to_owned()), "a\rb_xyz_");
    }
}
