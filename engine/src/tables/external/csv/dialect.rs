//! How a CSV file is written: what separates and quotes, the header, the encoding, what means null. Given by options, and
//! found in the file where they are silent.

use std::collections::BTreeMap;
use std::io::{BufRead, Read};
use std::path::Path;

use arrow::datatypes::DataType;
use chrono::format::{Item, StrftimeItems};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use querent_catalog::FileFormat;

use super::dates::TemporalFormat;
use super::inference::GivenFormats;
use super::number_form::NumberForm;
use super::records::{CsvSyntax, MAX_DELIMITER};
use super::sniffer::{SniffedDialect, sniff};
use crate::error::Result;
use crate::tables::external::location::{LocatedFile, compression, compression_name, compression_of};
use crate::tables::external::open;
use crate::tables::external::reader_options::{
    ALLOW_QUOTED_NULLS, COMMENT_ANYWHERE, GivenTypes, SKIP_BLANK, bad_option, boolean_option, known_options,
};
use crate::tables::external::text_source::{TextEncoding, open_text};

/// The usual markers for null, unless the option `null_value` says otherwise.
const NULL_MARKERS: [&str; 10] = ["NA", "N/A", "n/a", "#N/A", "NULL", "Null", "null", "\\N", "<NA>", "None"];

/// A CSV table's reader options, and what was found in its first file.
#[derive(Debug, Clone)]
pub(crate) struct CsvDialect {
    /// The structuring characters.
    pub syntax: CsvSyntax,
    /// Lines before the first record.
    pub skip: u64,
    /// Whether the first record names the columns.
    pub has_header: bool,
    /// The line of the first record, from 1; 0 before any file was seen.
    pub first_line: u64,
    /// Fields of a record; 0 before any file was seen.
    pub width: usize,
    /// Whether the header names all columns but the first.
    pub row_names: bool,
    /// Strings that mean null besides the empty one, separated by commas. `None`: the usual markers, in a file that
    /// has one of them in a column of numbers, dates or the like.
    pub null_value: Option<String>,
    /// Whether a field in quotes means null where it holds what does. Otherwise it is a value of a column of text or bytes.
    pub allow_quoted_nulls: bool,
    /// Whether a record with too few fields has nulls for the others.
    pub null_padding: bool,
    /// Whether a blank line of a file of one column is no record.
    pub skip_blank: bool,
    /// Whether a record that cannot be read is set aside.
    pub ignore_errors: bool,
    /// Types that somebody gave.
    pub types: GivenTypes,
    /// The format of all columns of dates, if it is given.
    pub date_format: Option<String>,
    /// The same of timestamps.
    pub timestamp_format: Option<String>,
    /// How numbers are written.
    pub numbers: NumberForm,
    /// The encoding, if it is given.
    pub encoding: Option<TextEncoding>,
    /// The compression of the whole file.
    pub compression: FileCompressionType,
    /// The options that a user gave, by their one name.
    pub(super) given: BTreeMap<String, String>,
}

impl CsvDialect {
    /// Reads the dialect from options and, where they are silent, from the first file. Blocks.
    pub(crate) fn detect(options: &BTreeMap<String, String>, first: &LocatedFile) -> Result<Self> {
        let mut dialect = Self::given(options, first)?;
        dialect.syntax.comment_anywhere = dialect.comments_anywhere(dialect.is_given("comment"));
        let text = dialect.open(&first.path, open(first)?)?;
        let sniffed = sniff(&first.path, &dialect, text)?;
        let SniffedDialect { syntax, skip, has_header, first_line, width, row_names } = sniffed;
        Ok(Self { syntax, skip, has_header, first_line, width, row_names, ..dialect })
    }

    /// As [`Self::detect`], but reads no file where the options say what matters.
    pub(crate) fn from_options(options: &BTreeMap<String, String>, first: &LocatedFile) -> Result<Self> {
        let mut dialect = Self::given(options, first)?;
        dialect.syntax.comment_anywhere = dialect.comments_anywhere(false);
        let is_complete = ["has_header", "delimiter", "quote"].iter().all(|option| dialect.is_given(option));
        if is_complete { Ok(dialect) } else { Self::detect(options, first) }
    }

    fn given(options: &BTreeMap<String, String>, first: &LocatedFile) -> Result<Self> {
        let given = known_options(FileFormat::Csv, options)?;
        let mut dialect = Self {
            syntax: CsvSyntax {
                delimiter: b',',
                delimiter_rest: [0; MAX_DELIMITER - 1],
                quote: Some(b'"'),
                escape: None,
                comment: None,
                comment_anywhere: false,
            },
            skip: 0,
            has_header: true,
            first_line: 0,
            width: 0,
            row_names: false,
            null_value: given.get("null_value").cloned(),
            allow_quoted_nulls: true,
            null_padding: false,
            skip_blank: false,
            ignore_errors: false,
            types: GivenTypes::default(),
            date_format: given.get("date_format").cloned(),
            timestamp_format: given.get("timestamp_format").cloned(),
            numbers: NumberForm::default(),
            encoding: None,
            compression: compression_of(&first.path),
            given: given.clone(),
        };
        for (name, value) in &given {
            match name.as_str() {
                "has_header" => dialect.has_header = boolean_option(name, value)?,
                "delimiter" => {
                    (dialect.syntax.delimiter, dialect.syntax.delimiter_rest) = delimiter_bytes(name, value)?;
                }
                "quote" => dialect.syntax.quote = no_or_one_byte(name, value)?,
                "escape" => dialect.syntax.escape = no_or_one_byte(name, value)?,
                "comment" => dialect.syntax.comment = no_or_one_byte(name, value)?,
                "skip" => {
                    dialect.skip = value.trim().parse().map_err(|_| bad_option(name, value, "a number of lines"))?;
                }
                "date_format" | "timestamp_format" => check_format(name, value)?,
                SKIP_BLANK => dialect.skip_blank = boolean_option(name, value)?,
                "decimal_separator" => match value.as_str() {
                    "," | "." => dialect.numbers.point = one_byte(name, value)?,
                    _ => return Err(bad_option(name, value, "a point or a comma")),
                },
                "thousands" => dialect.numbers.thousands = no_or_one_character(name, value)?,
                ALLOW_QUOTED_NULLS => dialect.allow_quoted_nulls = boolean_option(name, value)?,
                "null_padding" => dialect.null_padding = boolean_option(name, value)?,
                "ignore_errors" => dialect.ignore_errors = boolean_option(name, value)?,
                "types" => dialect.types = GivenTypes::from_text(value)?,
                "compression" => dialect.compression = compression(value)?,
                "encoding" => {
                    let known = "utf-8, latin-1, utf-16, windows-1252 or another name of the Encoding Standard";
                    let encoding = TextEncoding::from_name(value).ok_or_else(|| bad_option(name, value, known))?;
                    dialect.encoding = Some(encoding);
                }
                // Those that are kept as they are.
                _ => {}
            }
        }
        if let Some(thousands) = dialect.numbers.thousands
            && (thousands == char::from(dialect.numbers.point) || thousands.is_alphanumeric() || thousands == '-')
        {
            let expected = "a character that is no letter, digit, hyphen or decimal_separator";
            return Err(bad_option("thousands", &thousands.to_string(), expected));
        }
        Ok(dialect)
    }

    /// Returns whether comments may stand behind the fields of a record: as was found before, or as `otherwise` says.
    fn comments_anywhere(&self, otherwise: bool) -> bool {
        self.given.get(COMMENT_ANYWHERE).map_or(otherwise, |written| written == "true")
    }

    /// Returns the format that is given for columns of a type.
    pub(super) fn given_format(&self, data_type: &DataType) -> Option<&str> {
        match data_type {
            DataType::Date32 => self.date_format.as_deref(),
            DataType::Timestamp(_, _) => self.timestamp_format.as_deref(),
            _ => None,
        }
    }

    /// Returns the formats of dates and numbers that are given.
    pub(super) fn given_formats(&self) -> GivenFormats {
        let format = |text: &Option<String>| text.as_deref().map(TemporalFormat::from_text);
        GivenFormats {
            date: format(&self.date_format),
            timestamp: format(&self.timestamp_format),
            numbers: self.numbers,
        }
    }

    /// Returns the dialect of the lines below a first one that names the delimiter.
    pub(super) fn below_its_name(&self, delimiter: u8) -> Self {
        let mut below = self.clone();
        below.given.insert("delimiter".to_owned(), char::from(delimiter).to_string());
        below.syntax.delimiter = delimiter;
        below.syntax.delimiter_rest = [0; MAX_DELIMITER - 1];
        below.skip += 1;
        below
    }

    /// Returns whether somebody gave this option.
    pub(super) fn is_given(&self, option: &str) -> bool {
        self.given.contains_key(option)
    }

    /// Returns the options that make the same dialect without reading a file again.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let mut options = self.given.clone();
        // Who reads the table later cannot set rows aside again.
        options.remove("rejects");
        let text = |byte: Option<u8>| byte.map(|byte| char::from(byte).to_string()).unwrap_or_default();
        options.insert("has_header".to_owned(), self.has_header.to_string());
        options.insert("delimiter".to_owned(), self.syntax.delimiter_text());
        options.insert("quote".to_owned(), text(self.syntax.quote));
        options.insert("escape".to_owned(), text(self.syntax.escape));
        options.insert("comment".to_owned(), text(self.syntax.comment));
        if self.syntax.comment.is_some() {
            options.insert(COMMENT_ANYWHERE.to_owned(), self.syntax.comment_anywhere.to_string());
        }
        options.insert("skip".to_owned(), self.skip.to_string());
        if let Some(null_value) = &self.null_value {
            options.insert("null_value".to_owned(), null_value.clone());
        }
        if let Some(encoding) = self.encoding {
            options.insert("encoding".to_owned(), encoding.name());
        }
        if self.compression != FileCompressionType::UNCOMPRESSED {
            options.insert("compression".to_owned(), compression_name(&self.compression).to_owned());
        }
        options
    }

    /// Returns the strings that may mean null besides the empty one.
    pub(crate) fn null_markers(&self) -> Vec<String> {
        null_markers(self.null_value.as_deref())
    }

    /// Returns whether a file's name says that it is a table, and not any text.
    pub(super) fn is_named_table(path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        [".csv", ".tsv", ".tab"].iter().any(|ending| name.contains(ending))
    }

    /// Returns whether a file's name says that tabs separate its columns.
    pub(super) fn prefers_tabs(path: &Path) -> bool {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        name.contains(".tsv") || name.contains(".tab")
    }

    /// Returns the file's text.
    pub(crate) fn open(&self, path: &Path, source: impl Read + Send + 'static) -> Result<Box<dyn BufRead + Send>> {
        open_text(path, self.compression, self.encoding, source)
    }
}

/// Returns the texts that mean null: those that were given, separated by commas, or the usual ones.
pub(crate) fn null_markers(given: Option<&str>) -> Vec<String> {
    match given {
        Some(value) => value.split(',').filter(|marker| !marker.is_empty()).map(str::to_owned).collect(),
        None => NULL_MARKERS.map(str::to_owned).to_vec(),
    }
}

/// Reads a delimiter: its first byte, and the others.
fn delimiter_bytes(name: &str, value: &str) -> Result<(u8, [u8; MAX_DELIMITER - 1])> {
    let mut rest = [0; MAX_DELIMITER - 1];
    if let Some(byte) = escaped_byte(value) {
        return Ok((byte, rest));
    }
    match value.as_bytes() {
        // Nobody writes the characters of an escape between fields.
        [b'\\', b'x' | b'u' | b'0'..=b'9', ..] => {
            Err(bad_option(name, value, "escapes from \\x01 to \\x7f, but for line ends, and \\t for a tab"))
        }
        [first, others @ ..] if others.len() < MAX_DELIMITER && !value.contains(['\n', '\r', '\0', '"']) => {
            for (place, byte) in rest.iter_mut().zip(others) {
                *place = *byte;
            }
            Ok((*first, rest))
        }
        _ => Err(bad_option(name, value, "one to four bytes, such as ; or ||, or an escape: \\t, \\x01")),
    }
}

/// Reads a character that is written as an escape: `\t`, or `\x01` in hexadecimal digits.
fn escaped_byte(value: &str) -> Option<u8> {
    if value == "\\t" || value == "tab" {
        return Some(b'\t');
    }
    let digits = value.strip_prefix("\\x").filter(|digits| digits.len() == 2)?;
    let byte = u8::from_str_radix(digits, 16).ok()?;
    (byte.is_ascii() && !matches!(byte, b'\0' | b'\n' | b'\r' | b'"')).then_some(byte)
}

fn one_byte(name: &str, value: &str) -> Result<u8> {
    if let Some(byte) = escaped_byte(value) {
        return Ok(byte);
    }
    match value.as_bytes() {
        [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r') => Ok(*byte),
        _ => Err(bad_option(name, value, "one ASCII character, or \\t for a tab")),
    }
}

/// Refuses what is no format of `strftime`: no value could be of it, so it would say nothing.
fn check_format(name: &str, value: &str) -> Result<()> {
    let is_known = value.contains('%') && StrftimeItems::new(value).all(|item| item != Item::Error);
    let example = if name == "date_format" { "%d.%m.%Y" } else { "%d.%m.%Y %H:%M" };
    if is_known { Ok(()) } else { Err(bad_option(name, value, &format!("a format of strftime, such as {example}"))) }
}

/// Reads a character, or the empty text for none.
fn no_or_one_byte(name: &str, value: &str) -> Result<Option<u8>> {
    if value.is_empty() { Ok(None) } else { one_byte(name, value).map(Some) }
}

/// As [`no_or_one_byte`], for what stands within fields only.
fn no_or_one_character(name: &str, value: &str) -> Result<Option<char>> {
    let mut characters = value.chars();
    match (characters.next(), characters.next()) {
        (first, None) if !matches!(first, Some('\n' | '\r')) => Ok(first),
        _ => Err(bad_option(name, value, "one character")),
    }
}
