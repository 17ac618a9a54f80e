//! CSV tables: how their files are written, which types their columns have, and their rows as arrays.

mod comma_numbers;
mod convert;
mod dates;
mod declared;
mod dialect;
mod header;
mod inference;
mod kinds;
mod number_form;
mod parallel;
mod ragged;
mod records;
mod rows;
mod sniffer;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};

pub(super) use convert::truth_value;
pub(crate) use dialect::{CsvDialect, null_markers};
pub(super) use header::names_years;
pub(crate) use rows::{column_names, unique_names};

use super::reader_options::{COLUMN_FORMATS, KEPT_MARKERS, sql_type_name};
use super::rejects::Rejects;
use super::{LocatedFile, bad_line, check_column_count, compression_of, open, shortened};
use crate::error::{EngineError, Result};
use convert::{ColumnReading, convert};
use dates::TemporalFormat;
use inference::{ColumnInference, InferredType};
use parallel::{in_order, worker_count};
use records::CsvSyntax;
use rows::{CsvRows, TextChunk, first_record, with_remedy};

/// CSV files of one table: one dialect, one header.
#[derive(Debug, Clone)]
pub(crate) struct CsvFiles {
    pub dialect: CsvDialect,
    pub names: Vec<String>,
}

impl CsvFiles {
    /// Detects the dialect on the first file and refuses files with other columns; in another order they are found by their
    /// names. Blocks.
    pub(crate) fn open(files: &[LocatedFile], options: &BTreeMap<String, String>) -> Result<Self> {
        let Some(first) = files.first() else { return Err(EngineError::Internal("no files to open".into())) };
        let mut dialect = CsvDialect::detect(options, first)?;
        let names = column_names(&first.path, &dialect, open(first)?)?;
        dialect.types = std::mem::take(&mut dialect.types).named(&names)?;
        check_column_count(&first.path, None, names.len())?;
        dialect.types.check(names.iter().map(String::as_str))?;
        for file in files.iter().skip(1) {
            if !options.contains_key("compression") && compression_of(&file.path) != dialect.compression {
                return Err(bad_line(&file.path, None, None, super::MIXED_COMPRESSIONS.to_owned()));
            }
            let theirs = column_names(&file.path, &CsvDialect { width: 0, ..dialect.clone() }, open(file)?)?;
            let has_all = theirs.len() == names.len() && names.iter().all(|name| theirs.contains(name));
            if has_all {
                continue;
            }
            if let Some(own) = own_delimiter(options, file, &dialect, &names) {
                let detail = format!(
                    "`{own}` separates its columns, and `{}` those of {}; read_csv('...', union_by_name = true) reads each \
                     file as it is written",
                    dialect.syntax.delimiter_text().replace('\t', "\\t"),
                    first.path.display()
                );
                return Err(bad_line(&file.path, None, None, detail));
            }
            // Without a header each record is checked when it is read.
            if dialect.has_header {
                let detail = format!(
                    "its columns ({}) are not those of {} ({}); read_csv('...', union_by_name = true) reads files of \
                     different columns",
                    shortened(&theirs.join(", ")),
                    first.path.display(),
                    shortened(&names.join(", "))
                );
                return Err(bad_line(&file.path, None, None, detail));
            }
        }
        Ok(Self { dialect, names })
    }

    /// Takes the first record of the first file for data where it is one of the columns that a statement declares, whatever the
    /// records below it are. Blocks.
    pub(crate) fn read_first_as_declared(&mut self, declared: &[FieldRef], first: &LocatedFile) -> Result<()> {
        if !self.dialect.has_header || self.dialect.is_given("has_header") || declared.len() != self.names.len() {
            return Ok(());
        }
        let record = first_record(&first.path, &self.dialect, open(first)?)?;
        if declared::is_record_of(&record, declared, &self.dialect) {
            self.dialect.has_header = false;
            self.names = column_names(&first.path, &self.dialect, open(first)?)?;
        }
        Ok(())
    }

    fn inference(&self) -> CsvInference {
        CsvInference {
            names: self.names.clone(),
            markers: self.dialect.null_markers(),
            columns: vec![ColumnInference::new(self.dialect.given_formats()); self.names.len()],
            malformed: 0,
            has_escapes: false,
        }
    }

    /// Infers types by `read`, which calls [`Self::infer`] for each file. Where fields have backslashes before the quotes inside
    /// of them, but below what the dialect was found in, the files are read again so. Blocks.
    pub(crate) fn infer_all(
        &mut self,
        mut read: impl FnMut(&Self, &mut CsvInference) -> Result<()>,
    ) -> Result<CsvInference> {
        let mut inference = self.inference();
        let outcome = read(self, &mut inference);
        if inference.has_escapes && self.dialect.syntax.escape.is_none() && !self.dialect.is_given("escape") {
            let escaped = CsvSyntax { escape: Some(b'\\'), ..self.dialect.syntax };
            let unescaped = std::mem::replace(&mut self.dialect.syntax, escaped);
            let mut again = self.inference();
            let is_read = read(self, &mut again).is_ok();
            if is_read && (again.malformed == 0 || outcome.is_ok() && again.malformed < inference.malformed) {
                return Ok(again);
            }
            self.dialect.syntax = unescaped;
        }
        outcome.map(|()| inference)
    }

    /// Infers types from a file's text. Where only its beginning is read, the last record may be cut in two. Blocks.
    pub(crate) fn infer(
        &self,
        path: &Path,
        inference: &mut CsvInference,
        source: impl Read + Send + 'static,
        is_whole: bool,
    ) -> Result<()> {
        // Whoever reads the rows sets aside what cannot be read.
        let rejects = self.dialect.ignore_errors.then(Rejects::default);
        let mut rows = CsvRows::open(path, &self.dialect, &self.names, rejects, source)?;
        if !is_whole {
            rows.ends_cut();
        }
        let read = inference.read(&mut rows, is_whole);
        inference.malformed += rows.malformed();
        inference.has_escapes |= rows.has_escapes();
        read
    }

    /// Returns the columns as inferred and given. `declared`: the types are those of a statement, which the null markers
    /// that were seen hold for.
    pub(crate) fn typed(&self, inference: &CsvInference, is_declared: bool) -> Result<TypedCsv> {
        let mut columns = Vec::with_capacity(self.names.len());
        for (name, column) in inference.names.iter().zip(&inference.columns) {
            let held = inference.held(column);
            let codes = held.iter().filter(|marker| column.keeps(marker)).cloned().collect();
            columns.push(CsvColumn { held, codes, ..self.column(name, column)? });
        }
        let markers = match (&self.dialect.null_value, is_declared) {
            (Some(_), _) => inference.markers.clone(),
            (None, true) => inference.markers_where(|_| true),
            (None, false) => {
                let is_typed: Vec<bool> = columns.iter().map(|column| !is_as_written(&column.data_type)).collect();
                inference.markers_where(|index| is_typed.get(index).copied().unwrap_or_default())
            }
        };
        let mut typed = TypedCsv { dialect: self.dialect.clone(), columns, markers };
        typed.keep_codes();
        Ok(typed)
    }

    fn column(&self, name: &str, inference: &ColumnInference) -> Result<CsvColumn> {
        let InferredType { data_type, format, note } = inference.inferred();
        let given = self.dialect.types.of_column(name);
        let column = |data_type: DataType, format: Option<TemporalFormat>, note| CsvColumn {
            name: name.to_owned(),
            data_type,
            format: format.unwrap_or(TemporalFormat::Iso),
            held: Vec::new(),
            codes: Vec::new(),
            keeps_markers: false,
            note,
        };
        let Some(given) = given else {
            return Ok(column(data_type, format, note));
        };
        let is_temporal = matches!(given, DataType::Date32 | DataType::Timestamp(_, _));
        if let Some(format) = self.dialect.given_format(given) {
            return Ok(column(given.clone(), Some(TemporalFormat::from_text(format)), None));
        }
        match note {
            Some(note) if is_temporal => Err(EngineError::Plan { message: format!("column `{name}` holds {note}") }),
            note => Ok(column(given.clone(), format.filter(|_| is_temporal), note.filter(|_| given.is_numeric()))),
        }
    }
}

/// Returns the delimiter of a file that has the columns of the first one, of this dialect, but writes them with another delimiter.
/// Blocks.
fn own_delimiter(
    options: &BTreeMap<String, String>,
    file: &LocatedFile,
    dialect: &CsvDialect,
    names: &[String],
) -> Option<String> {
    let own = CsvDialect::detect(options, file).ok()?;
    let delimiter = own.syntax.delimiter_text();
    if delimiter == dialect.syntax.delimiter_text() || own.has_header != dialect.has_header {
        return None;
    }
    let theirs = column_names(&file.path, &own, open(file).ok()?).ok()?;
    let is_same = theirs.len() == names.len() && names.iter().all(|name| theirs.contains(name));
    is_same.then(|| delimiter.replace('\t', "\\t"))
}

/// What is known of the columns of CSV files after some of their rows.
#[derive(Debug)]
pub(crate) struct CsvInference {
    names: Vec<String>,
    markers: Vec<String>,
    columns: Vec<ColumnInference>,
    /// The fields that begin with a quote and are not well quoted.
    malformed: u64,
    /// Whether a record with such a field has a backslash before a quote.
    has_escapes: bool,
}

impl CsvInference {
    fn read(&mut self, rows: &mut CsvRows, is_whole: bool) -> Result<()> {
        let mut next = || match rows.next_chunk() {
            Err(_) if !is_whole => Ok(None),
            read => read,
        };
        // Most files are one chunk, which is not worth threads.
        let Some(first) = next()? else { return Ok(()) };
        self.update(&first);
        match next()? {
            None => Ok(()),
            Some(second) => {
                self.update(&second);
                self.update_all(next)
            }
        }
    }

    fn update(&mut self, chunk: &TextChunk) {
        for (index, column) in self.columns.iter_mut().enumerate() {
            for row in 0..chunk.rows() {
                column.update(chunk.value(row, index), &self.markers);
            }
        }
    }

    /// Takes in all chunks that `next` returns: each of several threads looks at columns of its own.
    fn update_all(&mut self, mut next: impl FnMut() -> Result<Option<TextChunk>>) -> Result<()> {
        const QUEUE: usize = 4;
        let share = self.columns.len().div_ceil(worker_count()).max(1);
        let markers = &self.markers;
        thread::scope(|scope| {
            let mut queues = Vec::new();
            let mut threads = Vec::new();
            for (part, columns) in self.columns.chunks_mut(share).enumerate() {
                let (queue, chunks) = sync_channel::<Arc<TextChunk>>(QUEUE);
                queues.push(queue);
                threads.push(scope.spawn(move || {
                    for chunk in chunks {
                        for (index, column) in columns.iter_mut().enumerate() {
                            for row in 0..chunk.rows() {
                                column.update(chunk.value(row, part * share + index), markers);
                            }
                        }
                    }
                }));
            }
            let read = loop {
                match next() {
                    Ok(Some(chunk)) => {
                        let chunk = Arc::new(chunk);
                        if queues.iter().any(|queue| queue.send(Arc::clone(&chunk)).is_err()) {
                            break Ok(());
                        }
                    }
                    Ok(None) => break Ok(()),
                    Err(error) => break Err(error),
                }
            };
            drop(queues);
            for thread in threads {
                thread.join().map_err(|panic| EngineError::from_panic(panic.as_ref()))?;
            }
            read
        })
    }

    /// Returns the markers that a column of those `wanted` holds. A country code `NA` in a file of only strings stays
    /// what it is.
    fn markers_where(&self, wanted: impl Fn(usize) -> bool) -> Vec<String> {
        let columns = self.columns.iter().enumerate().filter(|(index, _)| wanted(*index));
        let held: BTreeSet<usize> = columns.flat_map(|(_, column)| column.markers().iter().copied()).collect();
        held.into_iter().filter_map(|index| self.markers.get(index).cloned()).collect()
    }

    /// Returns the markers that a column holds.
    fn held(&self, column: &ColumnInference) -> Vec<String> {
        column.markers().iter().filter_map(|index| self.markers.get(*index).cloned()).collect()
    }
}

/// What stands for the format of SQL among those of columns.
const ISO: &str = "";

/// A column, and how its values are read.
#[derive(Debug, Clone, PartialEq)]
struct CsvColumn {
    name: String,
    data_type: DataType,
    format: TemporalFormat,
    /// The null markers that inference found in it, and those of them that are codes where it is text.
    held: Vec<String>,
    codes: Vec<String>,
    /// Whether what means null elsewhere is a value here.
    keeps_markers: bool,
    /// Why its values are text where nobody says otherwise.
    note: Option<String>,
}

impl CsvColumn {
    /// Returns what is wrong with a value that is not of the column's type, which somebody has told.
    fn expected(&self) -> String {
        let name = sql_type_name(&self.data_type);
        match &self.note {
            Some(note) => format!("expected {name} (the column holds {note})"),
            None if self.data_type == DataType::Binary => {
                format!(
                    "expected {name} (\\xAA for each byte; of \\xAABB as VARCHAR from_hex(substr(text, 3)) makes bytes)"
                )
            }
            None => format!("expected {name}"),
        }
    }
}

/// CSV files whose columns are known.
#[derive(Debug, Clone)]
pub(crate) struct TypedCsv {
    pub dialect: CsvDialect,
    columns: Vec<CsvColumn>,
    markers: Vec<String>,
}

impl TypedCsv {
    /// Returns the reader of a table whose options inference wrote, and whose files have these columns.
    pub(crate) fn from_options(
        options: &BTreeMap<String, String>,
        schema: &Schema,
        first: &LocatedFile,
    ) -> Result<Self> {
        let dialect = CsvDialect::from_options(options, first)?;
        let read = |name: &str| options.get(name).map(String::as_str).unwrap_or_default();
        let formats: BTreeMap<String, String> = serde_json::from_str(read(COLUMN_FORMATS)).unwrap_or_default();
        let kept: Vec<String> = serde_json::from_str(read(KEPT_MARKERS)).unwrap_or_default();
        let column = |field: &Arc<Field>| {
            let found = formats.get(field.name()).map(String::as_str);
            CsvColumn {
                name: field.name().clone(),
                data_type: plain_text(field.data_type()),
                format: match found.or_else(|| dialect.given_format(field.data_type())) {
                    None | Some(ISO) => TemporalFormat::Iso,
                    Some(format) => TemporalFormat::from_text(format),
                },
                held: Vec::new(),
                codes: Vec::new(),
                keeps_markers: kept.contains(field.name()),
                note: None,
            }
        };
        let columns = schema.fields().iter().map(column).collect();
        let markers = if dialect.null_value.is_some() { dialect.null_markers() } else { Vec::new() };
        Ok(Self { dialect, columns, markers })
    }

    /// Returns the options that make the same reader without reading a file again.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let mut dialect = self.dialect.clone();
        dialect.null_value = Some(self.markers.join(","));
        let mut options = dialect.options();
        let text = |value: serde_json::Result<String>| value.unwrap_or_default();
        let format = |column: &CsvColumn| match &column.format {
            // The format that was given is that of other columns.
            TemporalFormat::Iso => self.dialect.given_format(&column.data_type).map(|_| ISO.to_owned()),
            format => Some(format.text(column.data_type == DataType::Date32)),
        };
        let columns = self.columns.iter();
        let formats: BTreeMap<&str, String> =
            columns.filter_map(|column| Some((column.name.as_str(), format(column)?))).collect();
        let kept: Vec<&str> =
            self.columns.iter().filter(|column| column.keeps_markers).map(|column| column.name.as_str()).collect();
        if !formats.is_empty() {
            options.insert(COLUMN_FORMATS.to_owned(), text(serde_json::to_string(&formats)));
        }
        if !kept.is_empty() {
            options.insert(KEPT_MARKERS.to_owned(), text(serde_json::to_string(&kept)));
        }
        options
    }

    /// Returns the columns; any may be null.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &CsvColumn| Field::new(&column.name, column.data_type.clone(), true);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }

    /// Returns the names of the columns whose given type is JSON.
    pub(crate) fn json_columns(&self) -> Vec<String> {
        let names = self.columns.iter().map(|column| &column.name);
        names.filter(|name| self.dialect.types.is_json(name)).cloned().collect()
    }

    /// Returns the reader with other types, which are matched by position. What stands for null in a column that is no text
    /// by them does so.
    pub(crate) fn with_types(mut self, schema: &Schema) -> Self {
        for (column, field) in self.columns.iter_mut().zip(schema.fields()) {
            column.data_type = plain_text(field.data_type());
            if self.dialect.null_value.is_none() && !is_as_written(&column.data_type) {
                for marker in &column.held {
                    if !self.markers.contains(marker) {
                        self.markers.push(marker.clone());
                    }
                }
            }
        }
        self.keep_codes();
        self
    }

    /// Finds the columns of text whose codes include what means null elsewhere, unless it was said what means null.
    fn keep_codes(&mut self) {
        if self.dialect.null_value.is_some() {
            return;
        }
        for column in &mut self.columns {
            column.keeps_markers =
                is_as_written(&column.data_type) && column.codes.iter().any(|code| self.markers.contains(code));
        }
    }

    /// Returns what was decided about how the files are read.
    pub(crate) fn reading(&self) -> super::SourceReading {
        let dialect = &self.dialect;
        let text = |byte: u8| char::from(byte).to_string();
        let column = |column: &CsvColumn| super::ReadColumn {
            name: column.name.clone(),
            sql_type: sql_type_name(&column.data_type),
            format: (column.format != TemporalFormat::Iso)
                .then(|| column.format.text(column.data_type == DataType::Date32)),
            note: column.note.clone().filter(|_| column.data_type == DataType::Utf8),
        };
        super::SourceReading {
            format: "csv".to_owned(),
            header: Some(dialect.has_header),
            header_line: (dialect.has_header && dialect.first_line > 0).then_some(dialect.first_line),
            delimiter: (self.columns.len() > 1).then(|| dialect.syntax.delimiter_text()),
            quote: dialect.syntax.quote.map(text),
            escape: dialect.syntax.escape.map(text),
            comment: dialect.syntax.comment.map(text),
            skip: dialect.skip,
            encoding: dialect.encoding.map(super::text_source::TextEncoding::name),
            decimal_separator: dialect.is_given("decimal_separator").then(|| text(dialect.numbers.point)),
            thousands: dialect.numbers.thousands.map(String::from),
            null: self.markers.clone(),
            columns: self.columns.iter().map(column).collect(),
            ..super::SourceReading::default()
        }
    }

    /// Reads a file's rows as these columns of it. Ends early when `each` says so by returning false. Rows that cannot
    /// be read go to `rejects`, if there are any. Blocks.
    pub(crate) fn read(
        &self,
        path: &Path,
        wanted: &[usize],
        rejects: Option<Rejects>,
        source: impl Read + Send + 'static,
        mut each: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let schema = Arc::new(self.schema().project(wanted)?);
        let mut rows = CsvRows::open(path, &self.dialect, &names, rejects, source)?;
        while let Some(chunk) = rows.next_chunk()? {
            // Every column decides whether a row is set aside, whichever are wanted.
            let chunk = if rows.sets_aside() { self.fitting(&rows, chunk)? } else { chunk };
            let mut arrays = Vec::with_capacity(wanted.len());
            for index in wanted {
                let Some(column) = self.columns.get(*index) else { continue };
                let converted = convert(&chunk, *index, &self.column_reading(column))?;
                if let Some(row) = converted.unfit.first() {
                    let error = column.expected();
                    rows.reject(chunk.line(*row), Some(&column.name), chunk.value(*row, *index), error)?;
                }
                arrays.push(converted.array);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
            if !each(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads a file's rows as all of its columns, as [`Self::read`] does, with several chunks converted at a time. Blocks.
    pub(crate) fn read_all(
        &self,
        path: &Path,
        rejects: Option<Rejects>,
        source: impl Read + Send + 'static,
        each: impl FnMut(RecordBatch) -> Result<bool>,
    ) -> Result<()> {
        let all: Vec<usize> = (0..self.columns.len()).collect();
        let workers = worker_count();
        // What is set aside is named in the order of the file.
        if rejects.is_some() || workers < 2 {
            return self.read(path, &all, rejects, source, each);
        }
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        let schema = self.schema();
        let mut rows = CsvRows::open(path, &self.dialect, &names, None, source)?;
        let convert_chunk = |chunk: TextChunk| {
            let mut arrays = Vec::with_capacity(self.columns.len());
            for (index, column) in self.columns.iter().enumerate() {
                let converted = convert(&chunk, index, &self.column_reading(column))?;
                if let Some(row) = converted.unfit.first() {
                    let error = column.expected();
                    let value = chunk.value(*row, index);
                    return Err(with_remedy(path, chunk.line(*row), Some(&column.name), value, &error));
                }
                arrays.push(converted.array);
            }
            let options = RecordBatchOptions::new().with_row_count(Some(chunk.rows()));
            Ok(RecordBatch::try_new_with_options(Arc::clone(&schema), arrays, &options)?)
        };
        in_order(workers, || rows.next_chunk(), convert_chunk, each)
    }

    /// Returns the chunk without the rows that have a value of another type, which are set aside.
    fn fitting(&self, rows: &CsvRows, chunk: TextChunk) -> Result<TextChunk> {
        let mut unfit = BTreeMap::new();
        for (index, column) in self.columns.iter().enumerate() {
            for row in convert(&chunk, index, &self.column_reading(column))?.unfit {
                unfit.entry(row).or_insert(index);
            }
        }
        for (row, index) in &unfit {
            let column = self.columns.get(*index);
            let error = column.map(CsvColumn::expected);
            let name = column.map(|column| column.name.as_str());
            rows.reject(chunk.line(*row), name, chunk.value(*row, *index), error.unwrap_or_default())?;
        }
        match unfit.is_empty() {
            true => Ok(chunk),
            false => Ok(chunk.without(&unfit.into_keys().collect::<Vec<_>>())),
        }
    }

    fn column_reading<'c>(&'c self, column: &'c CsvColumn) -> ColumnReading<'c> {
        ColumnReading {
            data_type: &column.data_type,
            format: &column.format,
            numbers: self.dialect.numbers,
            markers: if column.keeps_markers { &[] } else { &self.markers },
        }
    }
}

/// Returns whether what means null elsewhere may be a value of the type.
fn is_as_written(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::Binary)
}

/// Returns the type that text is read as; the scan makes other kinds of text of it.
fn plain_text(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        other => other.clone(),
    }
}
