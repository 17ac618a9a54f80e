//! Reads a CSV file's records as chunks of text, each with its line, so that every later complaint can name one.
//!
//! A record that cannot be read is an error, or is set aside where the options say so: never dropped without a word.

use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::dialect::CsvDialect;
use super::records::{CsvSyntax, FieldBuffer, Parsed, line_end, parse_record};
use crate::error::{EngineError, Result};
use crate::tables::external::read_ahead::ReadAhead;
use crate::tables::external::rejects::{Reject, Rejects};
use crate::tables::external::{bad_line, shortened};

/// The rows of a chunk.
pub(crate) const CHUNK_ROWS: usize = 8192;
/// The bytes after which a chunk ends, whatever rows it has.
const CHUNK_BYTES: usize = 8 << 20;
/// The longest record.
const LONGEST_RECORD: usize = 256 << 20;

/// Some records of a file, all of one width.
#[derive(Debug)]
pub(crate) struct TextChunk {
    text: String,
    ends: Vec<usize>,
    lines: Vec<u64>,
    width: usize,
    /// Where each column's field is in a record; `None`: in the order of the columns.
    places: Option<Arc<[usize]>>,
    /// The fields in quotes, ascending, where those are told from others.
    quoted: Vec<usize>,
}

impl TextChunk {
    fn empty(width: usize, places: Option<Arc<[usize]>>) -> Self {
        Self { text: String::new(), ends: Vec::new(), lines: Vec::new(), width, places, quoted: Vec::new() }
    }

    /// Returns the number of records.
    pub(crate) fn rows(&self) -> usize {
        self.lines.len()
    }

    /// Returns the line that a record begins in, from 1.
    pub(crate) fn line(&self, row: usize) -> u64 {
        self.lines.get(row).copied().unwrap_or_default()
    }

    /// Returns a field's text.
    pub(crate) fn value(&self, row: usize, column: usize) -> &str {
        let Some(index) = self.field(row, column) else { return "" };
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
    }

    /// Returns whether a field is in quotes and told from others.
    pub(crate) fn is_quoted(&self, row: usize, column: usize) -> bool {
        !self.quoted.is_empty()
            && self.field(row, column).is_some_and(|field| self.quoted.binary_search(&field).is_ok())
    }

    /// Returns the place of a field among all.
    fn field(&self, row: usize, column: usize) -> Option<usize> {
        let place = self.places.as_ref().map_or(Some(column), |places| places.get(column).copied())?;
        Some(row * self.width + place)
    }

    /// Returns the chunk without some of its rows.
    pub(crate) fn without(&self, rows: &[usize]) -> Self {
        let mut kept = Self::empty(self.width, None);
        for row in (0..self.rows()).filter(|row| rows.binary_search(row).is_err()) {
            for column in 0..self.width {
                if self.is_quoted(row, column) {
                    kept.quoted.push(kept.ends.len());
                }
                kept.text.push_str(self.value(row, column));
                kept.ends.push(kept.text.len());
            }
            kept.lines.push(self.line(row));
        }
        kept
    }
}

/// The records of one CSV file.
pub(crate) struct CsvRows {
    path: PathBuf,
    reader: RecordReader,
    names: Vec<String>,
    /// Where the columns are, if the header has them in another order.
    places: Option<Arc<[usize]>>,
    null_padding: bool,
    keeps_blank: bool,
    /// Whether fields in quotes are told from others.
    tells_quoted: bool,
    rejects: Option<Rejects>,
}

impl CsvRows {
    /// Opens a file whose columns are `names`. Records that cannot be read go to `rejects`, if there are any. Blocks, as
    /// reading does.
    pub(crate) fn open(
        path: &Path,
        dialect: &CsvDialect,
        names: &[String],
        rejects: Option<Rejects>,
        source: impl Read + Send + 'static,
    ) -> Result<Self> {
        let mut reader = RecordReader::open(path, dialect, source)?;
        let mut header = FieldBuffer::default();
        if dialect.has_header {
            reader.next_record(&mut header, false)?;
        }
        Ok(Self {
            places: places_of(names, &header),
            path: path.to_path_buf(),
            reader,
            names: names.to_vec(),
            null_padding: dialect.null_padding,
            keeps_blank: names.len() == 1 && !dialect.skip_blank,
            tells_quoted: !dialect.allow_quoted_nulls,
            rejects,
        })
    }

    /// Says that what is read ends within the file: the last record may be cut in two, and is none.
    pub(crate) fn ends_cut(&mut self) {
        self.reader.is_cut = true;
    }

    /// Returns the next records.
    pub(crate) fn next_chunk(&mut self) -> Result<Option<TextChunk>> {
        loop {
            let mut fields = FieldBuffer { quoted: self.tells_quoted.then(Vec::new), ..FieldBuffer::default() };
            let mut lines = Vec::new();
            let mut is_end = false;
            while lines.len() < CHUNK_ROWS && fields.text.len() < CHUNK_BYTES {
                let before = fields.ends.len();
                match self.reader.next_record(&mut fields, self.keeps_blank)? {
                    NextRecord::Record(line) => {
                        if self.fit_width(&mut fields, before, line)? {
                            lines.push(line);
                        }
                    }
                    NextRecord::Broken(line, detail) => {
                        let text = String::from_utf8_lossy(self.reader.skip_line()).into_owned();
                        self.reject(line, None, &text, detail)?;
                    }
                    NextRecord::End => {
                        is_end = true;
                        break;
                    }
                }
            }
            let chunk = self.decoded(fields, lines)?;
            if chunk.rows() > 0 || is_end {
                return Ok(Some(chunk).filter(|chunk| chunk.rows() > 0));
            }
        }
    }

    /// Makes the record after `before` as wide as the columns, where it is so but for empty fields.
    fn fit_width(&mut self, fields: &mut FieldBuffer, before: usize, line: u64) -> Result<bool> {
        let width = self.names.len();
        let found = fields.ends.len() - before;
        if found == width {
            return Ok(true);
        }
        let extra_are_empty = (before + width..fields.ends.len()).all(|index| fields.field(index).is_empty());
        if found > width && extra_are_empty {
            fields.truncate(before + width);
            return Ok(true);
        }
        if found < width && self.null_padding {
            fields.ends.resize(before + width, fields.text.len());
            return Ok(true);
        }
        let record: Vec<String> = (before..fields.ends.len())
            .map(|index| String::from_utf8_lossy(fields.field(index)).into_owned())
            .collect();
        // A line of spaces holds nothing.
        let is_blank = record.iter().all(|field| field.trim().is_empty()) && found == 1;
        fields.truncate(before);
        if is_blank {
            return Ok(false);
        }
        let column = self.names.get(found.min(width - 1)).cloned();
        let delimiter = self.reader.syntax.delimiter_text();
        let most = if self.null_padding { "at most " } else { "" };
        let detail = format!("{found} fields where {most}{width} are expected");
        self.reject(line, column.as_deref(), &record.join(&delimiter), detail)?;
        Ok(false)
    }

    /// Returns the records as text. Errors: bytes that are not UTF-8.
    fn decoded(&mut self, fields: FieldBuffer, lines: Vec<u64>) -> Result<TextChunk> {
        let width = self.names.len();
        let FieldBuffer { text, ends, quoted } = fields;
        match String::from_utf8(text) {
            Ok(text) if text.is_ascii() || ends.iter().all(|end| text.is_char_boundary(*end)) => {
                let quoted = quoted.unwrap_or_default();
                Ok(TextChunk { text, ends, lines, width, places: self.places.clone(), quoted })
            }
            Ok(text) => self.decoded_by_record(FieldBuffer { text: text.into_bytes(), ends, quoted }, &lines),
            Err(error) => self.decoded_by_record(FieldBuffer { text: error.into_bytes(), ends, quoted }, &lines),
        }
    }

    fn decoded_by_record(&mut self, fields: FieldBuffer, lines: &[u64]) -> Result<TextChunk> {
        let width = self.names.len();
        let quoted = fields.quoted.as_deref().unwrap_or_default();
        let mut kept = TextChunk::empty(width, self.places.clone());
        for (row, line) in lines.iter().enumerate() {
            let bytes: Vec<&[u8]> = (0..width).map(|column| fields.field(row * width + column)).collect();
            match bytes.iter().position(|field| std::str::from_utf8(field).is_err()) {
                None => {
                    for (column, field) in bytes.into_iter().enumerate() {
                        if quoted.binary_search(&(row * width + column)).is_ok() {
                            kept.quoted.push(kept.ends.len());
                        }
                        kept.text.push_str(std::str::from_utf8(field).unwrap_or_default());
                        kept.ends.push(kept.text.len());
                    }
                    kept.lines.push(*line);
                }
                Some(bad) => {
                    let text = bytes.get(bad).map(|field| String::from_utf8_lossy(field).into_owned());
                    let column = self.names.get(bad).cloned();
                    let detail = "not UTF-8 text".to_owned();
                    self.reject(*line, column.as_deref(), &text.unwrap_or_default(), detail)?;
                }
            }
        }
        Ok(kept)
    }

    /// Sets a record aside, or returns an error that names it.
    pub(crate) fn reject(&self, line: u64, column: Option<&str>, value: &str, error: String) -> Result<()> {
        let Some(rejects) = &self.rejects else {
            return Err(with_remedy(&self.path, line, column, value, &error));
        };
        rejects.add(Reject {
            file: self.path.display().to_string(),
            line,
            column: column.map(str::to_owned),
            value: value.to_owned(),
            error,
        })
    }

    /// Returns how many fields began with a quote and were not well quoted so far.
    pub(crate) fn malformed(&self) -> u64 {
        self.reader.malformed
    }

    /// Whether a record with such a field has a backslash before a quote.
    pub(crate) fn has_escapes(&self) -> bool {
        self.reader.has_escapes
    }

    /// Whether records that cannot be read are set aside.
    pub(crate) fn sets_aside(&self) -> bool {
        self.rejects.is_some()
    }
}

/// Returns where columns are in the records below a header; `None` unless it has just these, in another order.
fn places_of(names: &[String], header: &FieldBuffer) -> Option<Arc<[usize]>> {
    let mut written: Vec<Option<String>> = (0..header.ends.len())
        .map(|index| Some(String::from_utf8_lossy(header.field(index)).trim().to_owned()))
        .collect();
    // A header may name all columns but the first.
    if written.len() + 1 == names.len() && names.first().is_some_and(|name| name == "column_1") {
        written.insert(0, None);
    }
    let written = unique_names(&written);
    if written.len() != names.len() || written == names {
        return None;
    }
    names.iter().map(|name| written.iter().position(|own| own == name)).collect()
}

/// Returns the error about a record, with the options that help.
pub(super) fn with_remedy(path: &Path, line: u64, column: Option<&str>, value: &str, error: &str) -> EngineError {
    let remedy = if error.starts_with("not UTF-8") {
        "; name the encoding with the option encoding (latin-1, windows-1252, ...)".to_owned()
    } else if error.contains("that does not end") {
        "; the option quote says what quotes fields, or with an empty value that nothing does; ignore_errors sets the line \
         aside"
            .to_owned()
    } else if error.contains("fields where") {
        let padding = match is_short(error) {
            _ if error.contains("at most") => "",
            true => "null_padding reads missing fields as null, ",
            false => "null_padding makes columns of them, ",
        };
        let other = match value.trim_start().chars().next() {
            Some('#') => ", comment leaves out those that begin with #",
            _ if value.contains('\'') => ", quote says what quotes them",
            _ => "",
        };
        format!("; {padding}ignore_errors sets such lines aside, delimiter says what separates fields{other}")
    } else if error.starts_with("expected") {
        format!(", found `{}`", shortened(value))
    } else {
        String::new()
    };
    bad_line(path, Some(line), column, format!("{error}{remedy}"))
}

/// Whether a message is about too few fields.
fn is_short(error: &str) -> bool {
    let numbers: Vec<usize> = error.split(' ').filter_map(|word| word.parse().ok()).collect();
    matches!(numbers.as_slice(), [found, expected] if found < expected)
}

/// What stands next in a file.
enum NextRecord {
    /// A record of this line, whose fields were added.
    Record(u64),
    /// What cannot be read: its line, and why.
    Broken(u64, String),
    End,
}

/// Reads a file record by record.
struct RecordReader {
    file: ReadAhead,
    syntax: CsvSyntax,
    line: u64,
    /// Fields that begin with a quote and are not well quoted.
    malformed: u64,
    /// Whether a record with such a field has a backslash before a quote.
    has_escapes: bool,
    /// Whether what is read ends within the file.
    is_cut: bool,
}

impl RecordReader {
    fn open(path: &Path, dialect: &CsvDialect, source: impl Read + Send + 'static) -> Result<Self> {
        let file = ReadAhead::new(path, dialect.open(path, source)?);
        let mut reader =
            Self { file, syntax: dialect.syntax, line: 1, malformed: 0, has_escapes: false, is_cut: false };
        reader.file.fill()?;
        for _ in 0..dialect.skip {
            while line_end(reader.file.bytes(), 0, reader.file.at_end()).is_none() && !reader.file.at_end() {
                reader.file.fill()?;
            }
            reader.skip_line();
        }
        Ok(reader)
    }

    /// Adds the fields of the next record. `keeps_blank`: a blank line is a record of one empty field.
    fn next_record(&mut self, fields: &mut FieldBuffer, keeps_blank: bool) -> Result<NextRecord> {
        loop {
            let input = self.file.bytes();
            let input_bytes = input.len();
            let line = self.line;
            match parse_record(&self.syntax, input, self.file.at_end() && !self.is_cut, fields) {
                Parsed::Record(extent) => {
                    if extent.malformed > 0 {
                        let record = input.get(..extent.bytes).unwrap_or_default();
                        self.malformed += u64::from(extent.malformed);
                        self.has_escapes |= self.syntax.has_escaped_quote(record);
                    }
                    self.file.consume(extent.bytes);
                    self.line += extent.lines;
                    return Ok(NextRecord::Record(line));
                }
                Parsed::Blank(extent) => {
                    self.file.consume(extent.bytes);
                    self.line += extent.lines;
                    if keeps_blank {
                        fields.ends.push(fields.text.len());
                        return Ok(NextRecord::Record(line));
                    }
                }
                Parsed::Comment(extent) => {
                    self.file.consume(extent.bytes);
                    self.line += extent.lines;
                }
                Parsed::End => return Ok(NextRecord::End),
                Parsed::Unclosed => return Ok(NextRecord::Broken(line, "a quoted field that does not end".to_owned())),
                Parsed::Partial if self.is_cut && self.file.at_end() => return Ok(NextRecord::End),
                Parsed::Partial if input_bytes > LONGEST_RECORD => {
                    let detail =
                        format!("a record or a quoted field that does not end within {} MiB", LONGEST_RECORD >> 20);
                    return Ok(NextRecord::Broken(line, detail));
                }
                Parsed::Partial => match self.file.fill() {
                    // Compressed data that is cut.
                    Err(_) if self.is_cut => return Ok(NextRecord::End),
                    filled => filled?,
                },
            }
        }
    }

    /// Leaves out the line that stands next, as far as it was read, and returns it.
    fn skip_line(&mut self) -> &[u8] {
        let ahead = self.file.bytes();
        let length = line_end(ahead, 0, self.file.at_end()).unwrap_or(ahead.len());
        self.line += 1;
        self.file.consume(length).trim_ascii_end()
    }
}

/// Returns the first record of a file: its names, or what is where they would be. Blocks.
pub(crate) fn first_record(
    path: &Path,
    dialect: &CsvDialect,
    source: impl Read + Send + 'static,
) -> Result<Vec<String>> {
    let mut reader = RecordReader::open(path, dialect, source)?;
    let mut fields = FieldBuffer::default();
    match reader.next_record(&mut fields, false)? {
        NextRecord::Record(line) => (0..fields.ends.len())
            .map(|index| {
                let name = std::str::from_utf8(fields.field(index));
                let bad = |_| with_remedy(path, line, None, "", "not UTF-8 text");
                name.map(str::to_owned).map_err(bad)
            })
            .collect(),
        NextRecord::Broken(line, detail) => Err(with_remedy(path, line, None, "", &detail)),
        NextRecord::End => Ok(Vec::new()),
    }
}

/// The names of a file's columns: of its header, made unique, or `column_1` and so on, as is the first where R wrote the names
/// of rows below no name.
pub(crate) fn column_names(
    path: &Path,
    dialect: &CsvDialect,
    source: impl Read + Send + 'static,
) -> Result<Vec<String>> {
    let record = first_record(path, dialect, source)?;
    let width = if dialect.width > 0 { dialect.width } else { record.len() + usize::from(dialect.row_names) };
    let unnamed = usize::from(dialect.row_names && record.len() + 1 == width);
    let written = |index: usize| {
        let name = index.checked_sub(unnamed).and_then(|index| record.get(index));
        name.filter(|_| dialect.has_header).map(|name| name.trim().to_owned())
    };
    let names = unique_names(&(0..width).map(written).collect::<Vec<_>>());
    if names.is_empty() {
        return Err(bad_line(path, None, None, "no columns in the first line".to_string()));
    }
    Ok(names)
}

/// Returns the names of columns: a name that is there already gets `_1`, one that is missing is `column_1` and so on.
pub(crate) fn unique_names(written: &[Option<String>]) -> Vec<String> {
    let mut taken: HashSet<String> = HashSet::with_capacity(written.len());
    let mut names: Vec<String> = Vec::with_capacity(written.len());
    for (index, written) in written.iter().enumerate() {
        let written = written.clone().filter(|name| !name.is_empty());
        let wanted = written.unwrap_or_else(|| format!("column_{}", index + 1));
        let mut name = wanted.clone();
        let mut copy = 1;
        while !taken.insert(name.to_lowercase()) {
            name = format!("{wanted}_{copy}");
            copy += 1;
        }
        names.push(name);
    }
    names
}
