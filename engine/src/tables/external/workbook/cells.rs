//! The sheets of a workbook, and their cells row by row as values of their own types.

use std::borrow::Cow;
use std::io::{Error, Read, Seek};
use std::path::{Path, PathBuf};

use chrono::{NaiveDate, NaiveDateTime, NaiveTime};
use querent_kql::nearest_name;

use super::archive::Archive;
use super::ods;
use super::xlsx::XlsxBook;
use crate::error::{EngineError, Result};
use crate::limits::QueryUsage;
use crate::tables::external::{bad_line, shortened, unreadable};

const MILLIS_A_DAY: f64 = 86_400_000.0;

/// What a workbook is read from.
pub(crate) trait WorkbookSource: Read + Seek + Send {}
impl<R: Read + Seek + Send> WorkbookSource for R {}

/// A cell's value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum CellValue<'c> {
    Boolean(bool),
    Number(f64),
    Moment(NaiveDateTime),
    Time(NaiveTime),
    Text(Cow<'c, str>),
    /// An error, such as `#N/A`.
    Error(String),
    /// A formula whose value is not in the workbook.
    Uncalculated,
}

impl CellValue<'_> {
    /// Returns the value as text, as SQL writes it.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            CellValue::Boolean(value) => value.to_string().into(),
            CellValue::Number(number) => number_text(*number).into(),
            CellValue::Moment(moment) if moment.time() == NaiveTime::MIN => moment.date().to_string().into(),
            CellValue::Moment(moment) => moment.format("%Y-%m-%d %H:%M:%S%.f").to_string().into(),
            CellValue::Time(time) => time.format("%H:%M:%S%.f").to_string().into(),
            CellValue::Text(text) => Cow::Borrowed(text),
            CellValue::Error(error) => Cow::Borrowed(error),
            CellValue::Uncalculated => Cow::Borrowed(""),
        }
    }
}

/// Returns a number as text that gives it back.
pub(super) fn number_text(number: f64) -> String {
    let magnitude = number.abs();
    match number {
        0.0 => "0".to_owned(),
        _ if (1e-5..1e17).contains(&magnitude) => number.to_string(),
        _ => format!("{number:e}"),
    }
}

/// Returns a time of day, or the text of a longer duration.
pub(super) fn elapsed(millis: f64) -> CellValue<'static> {
    let millis = millis.round();
    if (0.0..MILLIS_A_DAY).contains(&millis) {
        let millis = millis as u32;
        let time = NaiveTime::from_num_seconds_from_midnight_opt(millis / 1_000, millis % 1_000 * 1_000_000);
        return time.map_or_else(|| CellValue::Text(millis.to_string().into()), CellValue::Time);
    }
    let sign = if millis < 0.0 { "-" } else { "" };
    let whole = (millis.abs() / 1_000.0).floor() as u64;
    let part = millis.abs() as u64 % 1_000;
    let fraction = if part == 0 { String::new() } else { format!(".{part:03}") };
    CellValue::Text(format!("{sign}{:02}:{:02}:{:02}{fraction}", whole / 3_600, whole / 60 % 60, whole % 60).into())
}

/// Returns a day or a moment as ISO 8601 writes it.
pub(super) fn iso_moment(text: &str) -> Option<CellValue<'static>> {
    let plain = text.trim_end_matches('Z');
    if let Ok(date) = NaiveDate::parse_from_str(plain, "%Y-%m-%d") {
        return Some(CellValue::Moment(date.and_time(NaiveTime::MIN)));
    }
    let moment = NaiveDateTime::parse_from_str(plain, "%Y-%m-%dT%H:%M:%S%.f");
    moment.or_else(|_| NaiveDateTime::parse_from_str(plain, "%Y-%m-%dT%H:%M")).ok().map(CellValue::Moment)
}

/// The cells of a row that hold something, with their columns from 0, ascending.
pub(super) type SheetRow<'c> = Vec<(u32, CellValue<'c>)>;

/// What a row is given to, with its number from 0; it returns whether more are wanted.
pub(super) type EachRow<'e> = dyn FnMut(u32, &SheetRow<'_>) -> std::io::Result<bool> + 'e;

/// A sheet.
#[derive(Debug, Clone)]
pub(super) struct SheetName {
    pub name: String,
    pub is_hidden: bool,
}

/// An open workbook.
pub(super) struct Workbook {
    path: PathBuf,
    archive: Archive,
    content: WorkbookContent,
    sheets: Vec<SheetName>,
}

enum WorkbookContent {
    Xlsx(Box<XlsxBook>),
    Ods,
}

impl Workbook {
    /// Opens a workbook. Blocks.
    pub(super) fn open(path: &Path, source: Box<dyn WorkbookSource>) -> Result<Self> {
        let mut archive = Archive::open(path, source)?;
        let io = |error: Error| unreadable(path, &error);
        if let Some(book) = XlsxBook::open(&mut archive).map_err(io)? {
            let sheets = book.sheets().cloned().collect();
            return Ok(Self { path: path.to_owned(), archive, content: WorkbookContent::Xlsx(Box::new(book)), sheets });
        }
        match ods::sheet_names(&mut archive).map_err(io)? {
            Some(sheets) => Ok(Self { path: path.to_owned(), archive, content: WorkbookContent::Ods, sheets }),
            None => {
                let detail =
                    "is an archive and no workbook of Excel or OpenDocument; unpack it, and read the files in it";
                Err(bad_line(path, None, None, detail.into()))
            }
        }
    }

    /// Returns the names of the sheets that a person sees, in their order.
    pub(super) fn sheets(&self) -> Vec<String> {
        self.sheets.iter().filter(|sheet| !sheet.is_hidden).map(|sheet| sheet.name.clone()).collect()
    }

    /// Returns the sheets that hold something.
    pub(super) fn sheets_with_cells(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for sheet in self.sheets() {
            let mut has_cells = false;
            self.each_row(&sheet, &mut |_, _| {
                has_cells = true;
                Ok(false)
            })?;
            found.extend(has_cells.then_some(sheet));
        }
        Ok(found)
    }

    /// Returns the name of a sheet as the workbook spells it. Errors: it is not there.
    pub(super) fn sheet_named(&self, wanted: &str) -> Result<String> {
        let names: Vec<&str> = self.sheets.iter().map(|sheet| sheet.name.as_str()).collect();
        let exact = names.iter().find(|name| **name == wanted);
        let found = exact.or_else(|| names.iter().find(|name| name.to_lowercase() == wanted.to_lowercase()));
        found.map(|name| (*name).to_owned()).ok_or_else(|| {
            let all = shortened(&names.join(", "));
            let detail = match nearest_name(wanted, names.iter().copied()) {
                Some(near) => format!("no sheet `{wanted}`; did you mean `{near}`? The sheets are {all}"),
                None => format!("no sheet `{wanted}`; the sheets are {all}"),
            };
            bad_line(&self.path, None, None, detail)
        })
    }

    /// Calls `each` for each row of a sheet that holds something, until it returns false. Blocks.
    pub(super) fn each_row(
        &mut self,
        sheet: &str,
        each: &mut dyn FnMut(u32, &SheetRow<'_>) -> Result<bool>,
    ) -> Result<()> {
        let mut stopped: Option<EngineError> = None;
        let mut forward = |row: u32, cells: &SheetRow<'_>| {
            // Texts that rows share are read once: the source is not asked again for a million rows of them.
            let is_wanted = QueryUsage::check_current().map_err(EngineError::from);
            is_wanted.and_then(|()| each(row, cells)).map_err(|error| {
                let said = Error::other(error.to_string());
                stopped = Some(error);
                said
            })
        };
        let read = match &self.content {
            WorkbookContent::Xlsx(book) => book.each_row(&mut self.archive, sheet, &mut forward),
            WorkbookContent::Ods => ods::each_row(&mut self.archive, sheet, &mut forward),
        };
        match (stopped, read) {
            (Some(error), _) => Err(error),
            (None, Ok(())) => Ok(()),
            (None, Err(error)) => Err(match unreadable(&self.path, &error) {
                EngineError::BadData { location, detail } => {
                    EngineError::BadData { location, detail: format!("sheet `{sheet}`: {detail}") }
                }
                other => other,
            }),
        }
    }
}

/// Returns the error about a cell.
pub(super) fn bad_cell(path: &Path, sheet: &str, cell: &str, detail: String) -> EngineError {
    EngineError::BadData { location: format!("{}, sheet `{sheet}`, cell {cell}", path.display()), detail }
}
