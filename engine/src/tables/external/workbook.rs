//! Workbooks of Excel and OpenDocument: a sheet as a table. Cells have types of their own, so that nothing is guessed from
//! text: a number that is stored as text stays text.
//!
//! A sheet is read twice and never held: once for its extent, header and types, once for its rows.

mod archive;
mod area;
mod cells;
mod columns;
mod ods;
mod xlsx;
mod xml;

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch, RecordBatchOptions};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use querent_catalog::FileFormat;

use super::csv::{names_years, null_markers, unique_names};
use super::reader_options::{GivenTypes, bad_option, boolean_option, known_options, sql_type_name};
use super::rejects::{Reject, Rejects};
use super::{LocatedFile, bad_line, check_column_count, shortened};
use crate::error::{EngineError, Result};
use area::{SheetArea, cell_name};
pub(crate) use cells::WorkbookSource;
use cells::{CellValue, SheetRow, Workbook, bad_cell};
use columns::{SheetColumnBuilder, SheetColumnKinds};

const BATCH_ROWS: usize = 8192;
/// The bytes of text after which a batch ends, whatever rows it has.
const BATCH_BYTES: usize = 8 << 20;
/// The rows above a table that may be its title.
const MOST_TITLE_ROWS: usize = 20;

/// How workbooks are read.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkbookFiles {
    sheet: Option<String>,
    area: Option<SheetArea>,
    skip: Option<u32>,
    has_header: Option<bool>,
    null_value: Option<String>,
    types: GivenTypes,
    /// Whether a row that has a cell of another type is set aside.
    pub ignore_errors: bool,
}

/// Returns the names of a workbook's sheets that hold something. Blocks.
pub(crate) fn sheets_with_cells(path: &Path, source: Box<dyn WorkbookSource>) -> Result<Vec<String>> {
    Workbook::open(path, source)?.sheets_with_cells()
}

impl WorkbookFiles {
    /// Reads the options. Errors: those that a reader of workbooks does not know.
    pub(crate) fn from_options(options: &BTreeMap<String, String>) -> Result<Self> {
        let mut files = Self::default();
        for (name, value) in &known_options(FileFormat::Xlsx, options)? {
            match name.as_str() {
                "sheet" => files.sheet = Some(value.clone()).filter(|sheet| !sheet.is_empty()),
                "range" => files.area = Some(SheetArea::from_text(value)?),
                "skip" => files.skip = Some(value.parse().map_err(|_| bad_option(name, value, "a number of rows"))?),
                "has_header" => files.has_header = Some(boolean_option(name, value)?),
                "null_value" => files.null_value = Some(value.clone()),
                "types" => files.types = GivenTypes::from_text(value)?,
                "ignore_errors" => files.ignore_errors = boolean_option(name, value)?,
                _ => {}
            }
        }
        if files.area.is_some() && files.skip.is_some() {
            return Err(EngineError::InvalidOption { message: "the option `range` says what `skip` would".to_owned() });
        }
        Ok(files)
    }

    /// Finds the table in the sheets of some files, which have to have one header. Blocks.
    pub(crate) fn infer(
        &self,
        files: &[LocatedFile],
        open: impl Fn(&LocatedFile) -> Result<Box<dyn WorkbookSource>>,
    ) -> Result<TypedWorkbook> {
        let markers = null_markers(self.null_value.as_deref());
        let mut typed: Option<TypedWorkbook> = None;
        for file in files {
            let mut book = Workbook::open(&file.path, open(file)?)?;
            let sheet = self.sheet_of(&mut book, &file.path)?;
            let scan = self.scan(&mut book, &file.path, &sheet, typed.as_ref(), &markers)?;
            typed = Some(match typed {
                None => self.first(&book, &file.path, sheet, scan)?,
                Some(known) => known.with_file(&file.path, &sheet, scan)?,
            });
        }
        let mut typed = typed.ok_or_else(|| EngineError::Internal("no files to open".into()))?;
        for column in &mut typed.columns {
            let (found, given) = (column.kinds.data_type(), self.types.of_column(&column.name));
            column.note = if given.is_some() { None } else { column.kinds.note() };
            column.data_type = given.cloned().unwrap_or(found);
        }
        Ok(typed)
    }

    /// Returns the sheet that is read: the one that is named, or the first that holds something.
    fn sheet_of(&self, book: &mut Workbook, path: &Path) -> Result<String> {
        match &self.sheet {
            Some(sheet) => book.sheet_named(sheet),
            None => {
                let found = book.sheets_with_cells()?.into_iter().next();
                found.ok_or_else(|| bad_line(path, None, None, "no sheet holds a cell".to_owned()))
            }
        }
    }

    /// Reads a sheet once. After the first file the area is known.
    fn scan(
        &self,
        book: &mut Workbook,
        path: &Path,
        sheet: &str,
        known: Option<&TypedWorkbook>,
        markers: &[String],
    ) -> Result<SheetScan> {
        let area = match (known, self.area, self.skip) {
            (Some(known), _, _) => known.area,
            (None, Some(area), _) => area,
            (None, None, skip) => SheetArea { first_row: skip.unwrap_or(0), ..SheetArea::default() },
        };
        let looks_for_titles = known.is_none() && self.area.is_none() && self.skip.is_none();
        let mut scan = SheetScan { titles: looks_for_titles.then(Vec::new), ..SheetScan::default() };
        book.each_row(sheet, &mut |row, cells| {
            if let Some(known) = known.filter(|_| self.area.is_none()) {
                let is_lost = |column: u32| match row < area.first_row {
                    true => !known.has_header && row >= self.skip.unwrap_or(0),
                    false => !area.has_column(column),
                };
                let is_blank = |cell: &CellValue<'_>| matches!(cell, CellValue::Text(text) if text.trim().is_empty());
                if let Some((column, _)) = cells.iter().find(|(column, cell)| is_lost(*column) && !is_blank(cell)) {
                    let detail =
                        "the first file has no column or row there; the option range says which cells are read"
                            .to_owned();
                    return Err(bad_cell(path, sheet, &cell_name(row, *column), detail));
                }
            }
            if !area.has_row(row) {
                return Ok(area.last_row.is_none_or(|last| row <= last));
            }
            let inside: SheetRow<'_> = cells.iter().filter(|(column, _)| area.has_column(*column)).cloned().collect();
            if !inside.is_empty() {
                scan.take(row, &inside, markers);
                check_column_count(path, Some(u64::from(row) + 1), scan.columns.len())?;
            }
            Ok(true)
        })?;
        scan.end(markers);
        Ok(scan)
    }

    fn first(&self, book: &Workbook, path: &Path, sheet: String, scan: SheetScan) -> Result<TypedWorkbook> {
        let given = self.area.unwrap_or_default();
        let Some((first_row, first)) = scan.first.clone() else {
            return Err(bad_line(path, None, None, format!("sheet `{sheet}` holds no cell in what is read of it")));
        };
        let used = || scan.columns.keys().chain(first.keys());
        let first_column = if self.area.is_some() { given.first_column } else { *used().min().unwrap_or(&0) };
        let last_column = given.last_column.or(used().max().copied()).unwrap_or(0);
        let has_header = self.has_header.unwrap_or_else(|| scan.looks_like_header());
        let mut columns = scan.columns_between(first_column, last_column, has_header);
        check_column_count(path, None, columns.len())?;
        let names = header_names(&first, first_column, last_column, has_header);
        self.types.check(names.iter().map(String::as_str))?;
        for (column, name) in columns.iter_mut().zip(&names) {
            column.name.clone_from(name);
        }
        Ok(TypedWorkbook {
            files: self.clone(),
            others: book.sheets().into_iter().filter(|other| *other != sheet).collect(),
            area: SheetArea { first_row, last_row: given.last_row, first_column, last_column: Some(last_column) },
            sheet,
            has_header,
            header_row: has_header.then_some(first_row),
            skipped: scan.skipped,
            errors: scan.errors,
            uncalculated: scan.uncalculated,
            columns,
        })
    }
}

fn header_names(first: &FirstRow, first_column: u32, last_column: u32, has_header: bool) -> Vec<String> {
    let written = |column: u32| first.get(&column).filter(|_| has_header).map(|cell| cell.text().trim().to_owned());
    unique_names(&(first_column..=last_column).map(written).collect::<Vec<_>>())
}

/// The first row of a table, by column.
type FirstRow = BTreeMap<u32, CellValue<'static>>;

/// What one reading of a sheet finds.
#[derive(Debug, Default)]
struct SheetScan {
    /// Rows of one cell that may be a title; `None` where none is looked for any more.
    titles: Option<Vec<(u32, FirstRow)>>,
    first: Option<(u32, FirstRow)>,
    /// Whether it is of names and years, as is a header of a column a year; and whether a row below it is, too.
    names_years: bool,
    years_below: bool,
    /// The columns below the first row.
    columns: BTreeMap<u32, SheetColumnKinds>,
    /// Columns whose first text stands below it again.
    repeated: HashSet<u32>,
    skipped: u64,
    errors: u64,
    uncalculated: u64,
}

impl SheetScan {
    fn take(&mut self, row: u32, cells: &SheetRow<'_>, markers: &[String]) {
        if let Some(titles) = &mut self.titles {
            if cells.len() == 1 && titles.len() < MOST_TITLE_ROWS {
                titles.push((row, owned(cells)));
                return;
            }
            let names = cells.iter().all(|(_, cell)| matches!(cell, CellValue::Text(_)));
            let titles = self.titles.take().unwrap_or_default();
            match names && cells.len() > 1 {
                true => self.skipped = titles.len() as u64,
                false => titles.into_iter().for_each(|(row, cells)| self.add_owned(row, cells, markers)),
            }
        }
        self.add(row, cells, markers);
    }

    fn end(&mut self, markers: &[String]) {
        for (row, cells) in self.titles.take().unwrap_or_default() {
            self.add_owned(row, cells, markers);
        }
    }

    fn add_owned(&mut self, row: u32, cells: FirstRow, markers: &[String]) {
        self.add(row, &cells.into_iter().collect(), markers);
    }

    fn add(&mut self, row: u32, cells: &SheetRow<'_>, markers: &[String]) {
        let count = |of: fn(&CellValue<'_>) -> bool| cells.iter().filter(|(_, cell)| of(cell)).count() as u64;
        self.errors += count(|cell| matches!(cell, CellValue::Error(_)));
        self.uncalculated += count(|cell| matches!(cell, CellValue::Uncalculated));
        let texts = || -> Vec<String> { cells.iter().map(|(_, cell)| cell.text().into_owned()).collect() };
        let Some((_, first)) = &self.first else {
            self.names_years = names_years(&texts());
            self.first = Some((row, owned(cells)));
            return;
        };
        self.years_below = self.years_below || (self.names_years && names_years(&texts()));
        for (column, cell) in cells {
            self.columns.entry(*column).or_default().update(cell, markers);
            if first.get(column) == Some(cell) {
                self.repeated.insert(*column);
            }
        }
    }

    /// Returns whether the first row names the columns, by the rules for CSV: a row that could be data is data, unless all
    /// columns are text.
    fn looks_like_header(&self) -> bool {
        let Some((_, first)) = &self.first else { return false };
        if !first.values().any(|cell| matches!(cell, CellValue::Text(_))) {
            return false;
        }
        if self.names_years && !self.years_below {
            return true;
        }
        if self.columns.values().any(SheetColumnKinds::is_typed) {
            return first.iter().any(|(column, cell)| {
                // A text above a mixture of others names it, though all of them are read as text.
                let is_text = matches!(cell, CellValue::Text(_));
                self.columns.get(column).is_some_and(|kinds| kinds.is_typed() && (is_text || !kinds.fits(cell)))
            });
        }
        let texts = first.values().filter(|cell| matches!(cell, CellValue::Text(_))).count();
        texts == first.len() && self.repeated.len() * 2 < first.len().max(1)
    }

    fn columns_between(&self, first_column: u32, last_column: u32, has_header: bool) -> Vec<SheetColumn> {
        let mut columns = Vec::new();
        for column in first_column..=last_column {
            let mut kinds = self.columns.get(&column).cloned().unwrap_or_default();
            if let Some(cell) = self.first.as_ref().and_then(|(_, first)| first.get(&column))
                && !has_header
            {
                kinds.update(cell, &[]);
            }
            columns.push(SheetColumn { name: String::new(), data_type: DataType::Utf8, kinds, note: None });
        }
        columns
    }
}

fn owned(cells: &SheetRow<'_>) -> FirstRow {
    let own = |cell: &CellValue<'_>| match cell {
        CellValue::Text(text) => CellValue::Text(text.clone().into_owned().into()),
        CellValue::Boolean(value) => CellValue::Boolean(*value),
        CellValue::Number(number) => CellValue::Number(*number),
        CellValue::Moment(moment) => CellValue::Moment(*moment),
        CellValue::Time(time) => CellValue::Time(*time),
        CellValue::Error(error) => CellValue::Error(error.clone()),
        CellValue::Uncalculated => CellValue::Uncalculated,
    };
    cells.iter().map(|(column, cell)| (*column, own(cell))).collect()
}

/// A column of a sheet.
#[derive(Debug, Clone)]
struct SheetColumn {
    name: String,
    data_type: DataType,
    kinds: SheetColumnKinds,
    /// Why it is text.
    note: Option<String>,
}

/// Workbooks of which the table is known.
#[derive(Debug, Clone)]
pub(crate) struct TypedWorkbook {
    pub files: WorkbookFiles,
    sheet: String,
    others: Vec<String>,
    area: SheetArea,
    has_header: bool,
    header_row: Option<u32>,
    skipped: u64,
    errors: u64,
    uncalculated: u64,
    columns: Vec<SheetColumn>,
}

impl TypedWorkbook {
    /// Adds what another file of the table holds.
    fn with_file(mut self, path: &Path, sheet: &str, scan: SheetScan) -> Result<Self> {
        let Some((_, first)) = &scan.first else { return Ok(self) };
        let last_column = self.area.last_column.unwrap_or(self.area.first_column);
        let theirs = header_names(first, self.area.first_column, last_column, self.has_header);
        let ours: Vec<&String> = self.columns.iter().map(|column| &column.name).collect();
        if self.has_header && theirs.iter().zip(&ours).any(|(their, our)| their != *our) {
            let detail = format!(
                "the columns of sheet `{sheet}` ({}) are not those of the first file ({})",
                shortened(&theirs.join(", ")),
                shortened(&ours.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "))
            );
            return Err(bad_line(path, None, None, detail));
        }
        let more = scan.columns_between(self.area.first_column, last_column, self.has_header);
        for (column, more) in self.columns.iter_mut().zip(more) {
            column.kinds = column.kinds.with(&more.kinds);
        }
        self.errors += scan.errors;
        self.uncalculated += scan.uncalculated;
        Ok(self)
    }

    /// Returns the reader of a table whose options inference wrote, and whose files have these columns.
    pub(crate) fn from_options(options: &BTreeMap<String, String>, schema: &Schema) -> Result<Self> {
        let files = WorkbookFiles::from_options(options)?;
        let column = |field: &Arc<Field>| SheetColumn {
            name: field.name().clone(),
            data_type: plain(field.data_type()),
            kinds: SheetColumnKinds::default(),
            note: None,
        };
        Ok(Self {
            sheet: files.sheet.clone().unwrap_or_default(),
            others: Vec::new(),
            area: files.area.unwrap_or_default(),
            has_header: files.has_header.unwrap_or(true),
            header_row: None,
            skipped: 0,
            errors: 0,
            uncalculated: 0,
            columns: schema.fields().iter().map(column).collect(),
            files,
        })
    }

    /// Returns the options that make the same reader without reading a file again.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let files = &self.files;
        let written = [
            ("sheet", files.sheet.clone()),
            ("range", Some(self.area.text())),
            ("has_header", Some(self.has_header.to_string())),
            ("null_value", files.null_value.clone()),
            ("ignore_errors", files.ignore_errors.then(|| "true".to_owned())),
        ];
        written.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }

    /// Returns the columns; any may be null.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &SheetColumn| Field::new(&column.name, column.data_type.clone(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns the reader with other types, which are matched by position.
    pub(crate) fn with_types(mut self, schema: &Schema) -> Self {
        for (column, field) in self.columns.iter_mut().zip(schema.fields()) {
            column.data_type = plain(field.data_type());
        }
        self
    }

    /// Returns what was decided about how the sheets are read.
    pub(crate) fn reading(&self) -> super::SourceReading {
        let column = |column: &SheetColumn| super::ReadColumn {
            name: column.name.clone(),
            sql_type: sql_type_name(&column.data_type),
            format: None,
            note: column.note.clone(),
        };
        super::SourceReading {
            format: "workbook".to_owned(),
            sheet: Some(self.sheet.clone()).filter(|sheet| !sheet.is_empty()),
            other_sheets: if self.files.sheet.is_none() { self.others.clone() } else { Vec::new() },
            header: Some(self.has_header),
            header_line: self.header_row.map(|row| u64::from(row) + 1),
            skip: self.skipped,
            error_cells: self.errors,
            uncalculated_cells: self.uncalculated,
            columns: self.columns.iter().map(column).collect(),
            ..super::SourceReading::default()
        }
    }

    /// Reads a file's rows as these columns of it. Ends early when `each` says so by returning false. Rows that have a cell
    /// of another type go to `rejects`, if there are any. Blocks.
    pub(crate) fn read(
        &self,
        path: &Path,
        wanted: &[usize],
        rejects: Option<&Rejects>,
        source: Box<dyn WorkbookSource>,
        mut each: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        let mut book = Workbook::open(path, source)?;
        let sheet = self.files.sheet_of(&mut book, path)?;
        // Every column decides whether a row is set aside, whichever are wanted.
        let built: Vec<usize> = if rejects.is_some() { (0..self.columns.len()).collect() } else { wanted.to_vec() };
        let schema = Arc::new(self.schema().project(&built)?);
        let mut batch = SheetBatch::new(self, built, schema);
        let mut is_header = self.has_header;
        let mut goes_on = true;
        let mut flush = |batch: &mut SheetBatch<'_>| -> Result<bool> {
            let Some(rows) = batch.finish(path, &sheet, rejects)? else { return Ok(true) };
            let positions: Vec<usize> = match rejects {
                Some(_) => wanted.to_vec(),
                None => (0..wanted.len()).collect(),
            };
            each(rows.project(&positions)?)
        };
        let area = self.area;
        book.each_row(&sheet, &mut |row, cells| {
            if !area.has_row(row) {
                return Ok(area.last_row.is_none_or(|last| row <= last));
            }
            if !cells.iter().any(|(column, _)| area.has_column(*column)) {
                return Ok(true);
            }
            if std::mem::take(&mut is_header) {
                return Ok(true);
            }
            batch.append(row, cells);
            if batch.is_full() {
                goes_on = flush(&mut batch)?;
            }
            Ok(goes_on)
        })?;
        if goes_on {
            flush(&mut batch)?;
        }
        Ok(())
    }
}

/// Rows on their way into a batch.
struct SheetBatch<'t> {
    table: &'t TypedWorkbook,
    built: Vec<usize>,
    schema: SchemaRef,
    builders: Vec<SheetColumnBuilder>,
    /// The rows of the sheet, from 0.
    rows: Vec<u32>,
}

impl<'t> SheetBatch<'t> {
    fn new(table: &'t TypedWorkbook, built: Vec<usize>, schema: SchemaRef) -> Self {
        let mut batch = Self { table, built, schema, builders: Vec::new(), rows: Vec::new() };
        batch.builders = batch.new_builders();
        batch
    }

    fn new_builders(&self) -> Vec<SheetColumnBuilder> {
        let given = self.table.files.null_value.as_deref();
        let markers = null_markers(given);
        let columns = self.built.iter().filter_map(|index| self.table.columns.get(*index));
        let builder = |column: &SheetColumn| {
            // Text keeps what means null elsewhere, unless it was said to mean null.
            let keeps = column.data_type == DataType::Utf8 && given.is_none();
            SheetColumnBuilder::new(&column.data_type, if keeps { &[] } else { &markers })
        };
        columns.map(builder).collect()
    }

    fn append(&mut self, row: u32, cells: &SheetRow<'_>) {
        let mut ahead = cells.iter().peekable();
        for (index, builder) in self.built.iter().zip(&mut self.builders) {
            let column = self.table.area.first_column + u32::try_from(*index).unwrap_or(u32::MAX);
            while ahead.next_if(|(before, _)| *before < column).is_some() {}
            let cell = ahead.peek().filter(|(at, _)| *at == column).map(|(_, cell)| cell);
            builder.append(cell);
        }
        self.rows.push(row);
    }

    fn is_full(&self) -> bool {
        let text: usize = self.builders.iter().map(SheetColumnBuilder::text_bytes).sum();
        self.rows.len() >= BATCH_ROWS || text >= BATCH_BYTES
    }

    /// Returns the rows so far, without those that are set aside.
    fn finish(&mut self, path: &Path, sheet: &str, rejects: Option<&Rejects>) -> Result<Option<RecordBatch>> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(None);
        }
        let fresh = self.new_builders();
        let mut arrays = Vec::with_capacity(self.built.len());
        let mut unfit: BTreeMap<usize, (usize, String)> = BTreeMap::new();
        for (index, builder) in self.built.iter().zip(std::mem::replace(&mut self.builders, fresh)) {
            let built = builder.finish()?;
            for (row, text) in built.unfit {
                unfit.entry(row).or_insert((*index, text));
            }
            arrays.push(built.array);
        }
        for (row, (index, text)) in &unfit {
            let (Some(row), Some(column)) = (rows.get(*row), self.table.columns.get(*index)) else { continue };
            let at = cell_name(*row, self.table.area.first_column + u32::try_from(*index).unwrap_or(u32::MAX));
            let expected = format!("expected {}", sql_type_name(&column.data_type));
            let Some(rejects) = rejects else {
                let detail = format!(
                    "{expected} in column `{}`, found `{}`; the option types gives it another type, ignore_errors sets \
                     such rows aside",
                    column.name,
                    shortened(text)
                );
                return Err(bad_cell(path, sheet, &at, detail));
            };
            rejects.add(Reject {
                file: path.display().to_string(),
                line: u64::from(*row) + 1,
                column: Some(column.name.clone()),
                value: text.clone(),
                error: format!("{expected} in cell {at} of sheet `{sheet}`"),
            })?;
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let batch = RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)?;
        if unfit.is_empty() {
            return Ok(Some(batch));
        }
        let kept: BooleanArray = (0..rows.len()).map(|row| Some(!unfit.contains_key(&row))).collect();
        Ok(Some(filter_record_batch(&batch, &kept)?))
    }
}

/// Returns the type that cells are read as; the scan makes other kinds of text of it.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        other => other.clone(),
    }
}
