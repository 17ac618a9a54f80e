//! The dialect of a CSV file: header, delimiter, quote, escape, null markers, compression.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use arrow_csv::reader::Format;
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;

use super::location::{LocatedFile, compression_of};
use super::{TREE_OPTION, open};
use crate::error::{EngineError, Result, store_error_in};

/// The usual markers for null, unless the option `null_value` says otherwise.
const NULL_MARKERS: [&str; 6] = ["NA", "N/A", "NULL", "null", "\\N", "<NA>"];

/// The delimiters that are detected; the first wins a tie.
const DELIMITERS: [u8; 4] = *b",;\t|";

/// Reader options of a CSV table, all known.
#[derive(Debug, Clone)]
pub(crate) struct CsvDialect {
    /// Whether the first record names the columns.
    pub has_header: bool,
    /// Between fields.
    pub delimiter: u8,
    /// Around fields.
    pub quote: u8,
    /// Before a quote inside a quoted field, when it is not doubled.
    pub escape: Option<u8>,
    /// Strings that mean null besides the empty one, separated by commas. `None`: the usual markers, in a file that
    /// has one of them in a column of numbers, dates or the like.
    pub null_value: Option<String>,
    /// The compression of the whole file.
    pub compression: FileCompressionType,
}

impl CsvDialect {
    /// Reads the dialect from options by lowercase name and, where they are silent, from the first file. Blocks.
    pub(crate) fn detect(options: &BTreeMap<String, String>, first: &LocatedFile) -> Result<Self> {
        let mut dialect = Self {
            has_header: true,
            delimiter: b',',
            quote: b'"',
            escape: None,
            null_value: options.get("null_value").cloned(),
            compression: compression_of(&first.path),
        };
        for (name, value) in options {
            match name.as_str() {
                "has_header" => dialect.has_header = boolean(name, value)?,
                "delimiter" => dialect.delimiter = one_byte(name, value)?,
                "quote" => dialect.quote = one_byte(name, value)?,
                "escape" => dialect.escape = if value.is_empty() { None } else { Some(one_byte(name, value)?) },
                "compression" => dialect.compression = compression(value)?,
                "null_value" | TREE_OPTION => {}
                other => return Err(unknown_option(other)),
            }
        }
        if !options.contains_key("delimiter") {
            dialect.delimiter = dialect.find_delimiter(first)?;
        }
        Ok(dialect)
    }

    /// Returns the options that make the same dialect without reading a file again.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let mut options = BTreeMap::from([
            ("has_header".to_string(), self.has_header.to_string()),
            ("delimiter".to_string(), char::from(self.delimiter).to_string()),
            ("quote".to_string(), char::from(self.quote).to_string()),
        ]);
        if let Some(escape) = self.escape {
            options.insert("escape".to_string(), char::from(escape).to_string());
        }
        if let Some(null_value) = &self.null_value {
            options.insert("null_value".to_string(), null_value.clone());
        }
        if self.compression != FileCompressionType::UNCOMPRESSED {
            options.insert("compression".to_string(), compression_name(&self.compression).to_string());
        }
        options
    }

    /// Returns the strings that mean null besides the empty one.
    pub(crate) fn null_markers(&self) -> Vec<&str> {
        match &self.null_value {
            Some(value) if value.is_empty() => Vec::new(),
            Some(value) => value.split(',').collect(),
            None => NULL_MARKERS.to_vec(),
        }
    }

    /// Returns the dialect for Arrow's reader.
    pub(crate) fn format(&self) -> Format {
        let format =
            Format::default().with_header(self.has_header).with_delimiter(self.delimiter).with_quote(self.quote);
        match self.escape {
            Some(escape) => format.with_escape(escape),
            None => format,
        }
    }

    /// Returns the file's text, decompressed and without a byte order mark.
    pub(crate) fn open(&self, path: &Path, source: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
        let decoded = self.compression.convert_read(source).map_err(|error| EngineError::BadData {
            location: path.display().to_string(),
            detail: error.to_string(),
        })?;
        let mut text = BufReader::with_capacity(1 << 20, decoded);
        let start = text.fill_buf().map_err(|error| unreadable(path, &error))?;
        if start.starts_with(b"\xEF\xBB\xBF") {
            text.consume(3);
        }
        Ok(Box::new(text))
    }

    /// Returns the candidate that the first line holds most of, outside of quotes.
    fn find_delimiter(&self, file: &LocatedFile) -> Result<u8> {
        let path = file.path.as_path();
        if path.to_string_lossy().to_lowercase().contains(".tsv") {
            return Ok(b'\t');
        }
        let mut line = Vec::new();
        let text = self.open(path, open(file)?)?;
        text.take(1 << 16).read_until(b'\n', &mut line).map_err(|error| unreadable(path, &error))?;
        let mut quoted = false;
        let mut counts = [0usize; DELIMITERS.len()];
        for byte in line {
            if byte == self.quote {
                quoted = !quoted;
            } else if !quoted && let Some(at) = DELIMITERS.iter().position(|candidate| *candidate == byte) {
                counts[at] += 1;
            }
        }
        let mut best = (0, DELIMITERS[0]);
        for (count, delimiter) in counts.into_iter().zip(DELIMITERS) {
            if count > best.0 {
                best = (count, delimiter);
            }
        }
        Ok(best.1)
    }
}

/// Returns the store's error for a file in a store, and otherwise `bad_data`.
pub(crate) fn unreadable(path: &Path, error: &std::io::Error) -> EngineError {
    if let Some(said) = store_error_in(error) {
        return said;
    }
    EngineError::BadData { location: path.display().to_string(), detail: error.to_string() }
}

/// Returns the compression that an option names.
pub(crate) fn compression(value: &str) -> Result<FileCompressionType> {
    Ok(match value.to_lowercase().as_str() {
        "" | "none" | "uncompressed" => FileCompressionType::UNCOMPRESSED,
        "gz" | "gzip" => FileCompressionType::GZIP,
        "zst" | "zstd" => FileCompressionType::ZSTD,
        "bz2" | "bzip2" => FileCompressionType::BZIP2,
        "xz" => FileCompressionType::XZ,
        _ => return Err(bad_option("compression", value, "gzip, zstd, bzip2, xz or none")),
    })
}

/// Returns the name that [`compression`] reads.
pub(crate) fn compression_name(compression: &FileCompressionType) -> &'static str {
    match *compression {
        FileCompressionType::GZIP => "gzip",
        FileCompressionType::ZSTD => "zstd",
        FileCompressionType::BZIP2 => "bzip2",
        FileCompressionType::XZ => "xz",
        _ => "none",
    }
}

/// Returns the error for an option that no reader knows.
pub(crate) fn unknown_option(name: &str) -> EngineError {
    EngineError::Plan {
        message: format!(
            "unknown option `{name}`; CSV knows has_header, delimiter, quote, escape, null_value and compression, \
             NDJSON knows compression, the others none"
        ),
    }
}

fn boolean(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" | "1" | "yes" => Ok(true),
        "false" | "0" | "no" => Ok(false),
        _ => Err(bad_option(name, value, "true or false")),
    }
}

fn one_byte(name: &str, value: &str) -> Result<u8> {
    match value.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err(bad_option(name, value, "one ASCII character")),
    }
}

fn bad_option(name: &str, value: &str, expected: &str) -> EngineError {
    EngineError::Plan { message: format!("option `{name}` is `{value}` but takes {expected}") }
}
