//! Comma- and tab-separated values. CSV is RFC 4180 with line feeds: a value is quoted where a reader would take it for
//! something else, null is nothing and an empty text is `""`. TSV has no quotes: tabs, line ends and backslashes are
//! written `\t`, `\n`, `\r`, `\\`, and null is `\N`, as PostgreSQL's COPY has it.

use std::borrow::Cow;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use arrow_schema::SchemaRef;
use querent_engine::is_read_otherwise;

use super::json::{RowWriter, unique_names};

/// Writes rows after a header.
pub(crate) struct SeparatedWriter {
    rows: RowWriter,
    names: Vec<String>,
    separator: Separator,
    has_header: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Separator {
    Comma,
    Tab,
}

impl SeparatedWriter {
    pub(super) fn commas(schema: SchemaRef) -> Self {
        Self::new(schema, Separator::Comma)
    }

    pub(super) fn tabs(schema: SchemaRef) -> Self {
        Self::new(schema, Separator::Tab)
    }

    fn new(schema: SchemaRef, separator: Separator) -> Self {
        let names = unique_names(&schema);
        Self { rows: RowWriter::new(schema), names, separator, has_header: false }
    }

    /// Returns the header, unless it was written. A statement that answers with nothing has none.
    pub(super) fn header(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if !std::mem::replace(&mut self.has_header, true) && !self.names.is_empty() {
            let separator = self.separator;
            for (index, name) in self.names.iter().enumerate() {
                separator.before(index, &mut out);
                separator.text(name, self.names.len() == 1, &mut out);
            }
            out.push(b'\n');
        }
        out
    }

    pub(super) fn write(&mut self, batch: &RecordBatch, out: &mut Vec<u8>) -> Result<(), ArrowError> {
        out.extend_from_slice(&self.header());
        let (separator, is_only) = (self.separator, self.names.len() == 1);
        self.rows.cells(batch, |column, json| {
            separator.before(column, out);
            match json {
                Some(json) => separator.text(&plain(json), is_only, out),
                None if separator == Separator::Tab => out.extend_from_slice(b"\\N"),
                None => {}
            }
            if column + 1 == batch.num_columns() {
                out.push(b'\n');
            }
        })
    }
}

impl Separator {
    fn before(self, column: usize, out: &mut Vec<u8>) {
        if column > 0 {
            out.push(match self {
                Separator::Comma => b',',
                Separator::Tab => b'\t',
            });
        }
    }

    /// Adds a value, or a name; `is_only` in a file of one column.
    fn text(self, text: &str, is_only: bool, out: &mut Vec<u8>) {
        match self {
            Separator::Comma if is_quoted(text, is_only) => {
                out.push(b'"');
                out.extend_from_slice(text.replace('"', "\"\"").as_bytes());
                out.push(b'"');
            }
            Separator::Tab if text.contains(['\t', '\n', '\r', '\\']) => {
                for byte in text.bytes() {
                    match byte {
                        b'\t' => out.extend_from_slice(b"\\t"),
                        b'\n' => out.extend_from_slice(b"\\n"),
                        b'\r' => out.extend_from_slice(b"\\r"),
                        b'\\' => out.extend_from_slice(b"\\\\"),
                        byte => out.push(byte),
                    }
                }
            }
            Separator::Comma | Separator::Tab => out.extend_from_slice(text.as_bytes()),
        }
    }
}

/// Returns whether a value is in quotes: an empty text, which is no null, what ends a field, and what readers may take for
/// something else.
fn is_quoted(text: &str, is_only: bool) -> bool {
    text.is_empty() || text.contains([',', '"', '\n', '\r']) || is_read_otherwise(text, is_only)
}

/// A JSON value as text: a string without its quotes, anything else as it is.
fn plain(json: &[u8]) -> Cow<'_, str> {
    match json {
        [b'"', inner @ .., b'"'] if !inner.contains(&b'\\') => String::from_utf8_lossy(inner),
        [b'"', ..] => match serde_json::from_slice::<String>(json) {
            Ok(text) => Cow::Owned(text),
            Err(_) => String::from_utf8_lossy(json),
        },
        _ => String::from_utf8_lossy(json),
    }
}
