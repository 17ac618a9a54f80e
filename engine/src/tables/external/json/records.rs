//! The records of a JSON file, as text with their lines: one a line, values one after the other over any lines, the elements
//! of an array, or the features of a GeoJSON collection. One record at a time is in memory, however large the file is.

use std::io::Read;
use std::path::{Path, PathBuf};

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use memchr::{memchr, memchr_iter, memchr2};

use crate::error::Result;
use crate::tables::external::read_ahead::ReadAhead;
use crate::tables::external::text_source::{TextEncoding, open_text};
use crate::tables::external::{bad_line, shortened};

/// The longest record.
const LONGEST_RECORD: usize = 256 << 20;
/// How much of a file is looked at to find out what it holds.
const PEEKED_BYTES: usize = 1 << 20;

/// How records stand in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JsonLayout {
    /// One a line.
    Lines,
    /// Values one after the other.
    Values,
    /// Elements of an array.
    Elements,
    /// Elements of the member `features` of an object.
    Features,
}

/// A record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonRecord {
    /// The line that it begins in, from 1.
    pub line: u64,
    pub text: String,
}

/// The records of one file.
pub(super) struct JsonRecords {
    path: PathBuf,
    file: ReadAhead,
    line: u64,
    layout: JsonLayout,
    finished: bool,
}

impl JsonRecords {
    /// Opens a file. Blocks, as reading does.
    pub(super) fn open(
        path: &Path,
        compression: FileCompressionType,
        encoding: Option<TextEncoding>,
        source: impl Read + Send + 'static,
    ) -> Result<Self> {
        let mut records = Self {
            path: path.to_path_buf(),
            file: ReadAhead::new(path, open_text(path, compression, encoding, source)?),
            line: 1,
            layout: JsonLayout::Lines,
            finished: false,
        };
        records.file.fill()?;
        records.skip_separators(false)?;
        while records.file.bytes().len() < PEEKED_BYTES && !records.file.at_end() {
            records.file.fill()?;
        }
        records.layout = layout_of(records.file.bytes(), records.file.at_end());
        match records.layout {
            JsonLayout::Elements => records.consume(1),
            JsonLayout::Features => records.enter_features()?,
            JsonLayout::Lines | JsonLayout::Values => {}
        }
        Ok(records)
    }

    /// Returns how the records stand in the file.
    pub(super) fn layout(&self) -> JsonLayout {
        self.layout
    }

    /// Returns the next record.
    pub(super) fn next_record(&mut self) -> Result<Option<JsonRecord>> {
        if self.finished {
            return Ok(None);
        }
        match self.layout {
            JsonLayout::Lines => self.next_line(),
            JsonLayout::Values => self.next_value(false),
            JsonLayout::Elements | JsonLayout::Features => self.next_value(true),
        }
    }

    fn next_line(&mut self) -> Result<Option<JsonRecord>> {
        loop {
            let length = match memchr(b'\n', self.file.bytes()) {
                Some(at) => at + 1,
                None if self.file.at_end() => self.file.bytes().len(),
                None if self.file.bytes().len() > LONGEST_RECORD => return Err(self.too_long()),
                None => {
                    self.file.fill()?;
                    continue;
                }
            };
            if length == 0 {
                return Ok(None);
            }
            let line = self.line;
            let text = self.text(length)?;
            self.consume(length);
            let text = text.trim();
            if !text.is_empty() {
                return Ok(Some(JsonRecord { line, text: text.to_owned() }));
            }
        }
    }

    fn next_value(&mut self, in_array: bool) -> Result<Option<JsonRecord>> {
        loop {
            self.skip_separators(in_array)?;
            let Some(first) = self.file.bytes().first().copied() else {
                if in_array {
                    return Err(bad_line(&self.path, Some(self.line), None, "the array does not end".to_owned()));
                }
                return Ok(None);
            };
            if !in_array || first != b']' {
                break;
            }
            self.consume(1);
            if self.layout == JsonLayout::Features {
                self.leave_collection()?;
            }
            self.skip_separators(false)?;
            match (self.layout, self.file.bytes().first().copied()) {
                (_, None) => {
                    self.finished = true;
                    return Ok(None);
                }
                // Collections one after the other.
                (JsonLayout::Features, Some(b'{')) => self.enter_features()?,
                _ => {
                    let detail = "text after the end of the array".to_owned();
                    return Err(bad_line(&self.path, Some(self.line), None, detail));
                }
            }
        }
        loop {
            match value_end(self.file.bytes(), self.file.at_end()) {
                Some(length) => {
                    let line = self.line;
                    let text = self.text(length)?;
                    self.consume(length);
                    return Ok(Some(JsonRecord { line, text }));
                }
                None if self.file.at_end() => {
                    let start = String::from_utf8_lossy(
                        self.file.bytes().get(..80.min(self.file.bytes().len())).unwrap_or_default(),
                    );
                    let detail = format!("not JSON: the value does not end: `{}`", shortened(&start));
                    return Err(bad_line(&self.path, Some(self.line), None, detail));
                }
                None if self.file.bytes().len() > LONGEST_RECORD => return Err(self.too_long()),
                None => self.file.fill()?,
            }
        }
    }

    /// Goes behind the object whose features were read.
    fn leave_collection(&mut self) -> Result<()> {
        loop {
            self.skip_separators(true)?;
            let first = self.file.bytes().first().copied();
            match (first, value_end(self.file.bytes(), self.file.at_end())) {
                (Some(b'}'), _) => {
                    self.consume(1);
                    return Ok(());
                }
                (Some(b':'), _) => self.consume(1),
                (Some(_), Some(length)) => self.consume(length),
                (Some(_), None) if self.file.bytes().len() > LONGEST_RECORD => return Err(self.too_long()),
                (Some(_), None) if !self.file.at_end() => self.file.fill()?,
                _ => {
                    let detail = "the collection does not end".to_owned();
                    return Err(bad_line(&self.path, Some(self.line), None, detail));
                }
            }
        }
    }

    /// Goes to the first feature of a collection.
    fn enter_features(&mut self) -> Result<()> {
        loop {
            match features_start(self.file.bytes()) {
                Some(start) => {
                    self.consume(start);
                    return Ok(());
                }
                None if self.file.at_end() || self.file.bytes().len() > LONGEST_RECORD => {
                    return Err(bad_line(&self.path, Some(self.line), None, "no array `features`".to_owned()));
                }
                None => self.file.fill()?,
            }
        }
    }

    fn skip_separators(&mut self, commas: bool) -> Result<()> {
        loop {
            let is_separator = |byte: &u8| byte.is_ascii_whitespace() || (commas && *byte == b',');
            let count = self.file.bytes().iter().take_while(|byte| is_separator(byte)).count();
            self.consume(count);
            if !self.file.bytes().is_empty() || self.file.at_end() {
                return Ok(());
            }
            self.file.fill()?;
        }
    }

    fn text(&self, length: usize) -> Result<String> {
        let bytes = self.file.bytes().get(..length).unwrap_or_default();
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text.to_owned()),
            Err(error) => {
                let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
                let line = self.line + memchr_iter(b'\n', before).count() as u64;
                let detail = "not UTF-8 text; name the encoding with the option encoding (latin-1, utf-16, ...)";
                Err(bad_line(&self.path, Some(line), None, detail.to_owned()))
            }
        }
    }

    fn consume(&mut self, bytes: usize) {
        self.line += memchr_iter(b'\n', self.file.consume(bytes)).count() as u64;
    }

    fn too_long(&self) -> crate::error::EngineError {
        let detail = format!("a record of more than {} MiB", LONGEST_RECORD >> 20);
        bad_line(&self.path, Some(self.line), None, detail)
    }
}

/// Finds out how records stand in a file that begins so.
fn layout_of(start: &[u8], is_whole: bool) -> JsonLayout {
    match start.first() {
        Some(b'[') => {
            // Lines that are arrays, each by itself, are records too.
            let rest = value_end(start, is_whole).and_then(|end| start.get(end..)).unwrap_or_default();
            match rest.iter().find(|byte| !byte.is_ascii_whitespace()) {
                Some(b'[') => JsonLayout::Values,
                _ => JsonLayout::Elements,
            }
        }
        Some(b'{') => {
            let holds = |text: &[u8]| memchr::memmem::find(start, text).is_some();
            if holds(b"\"features\"")
                && holds(b"\"Feature")
                && features_start(start).is_some_and(|at| is_feature(start, at))
            {
                return JsonLayout::Features;
            }
            match value_end(start, is_whole) {
                Some(end) => {
                    let rest = start.get(end..).unwrap_or_default();
                    let rest = rest.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\r'));
                    let is_line = memchr(b'\n', start.get(..end).unwrap_or_default()).is_none();
                    if is_line && matches!(rest, Some(b'\n') | None) { JsonLayout::Lines } else { JsonLayout::Values }
                }
                None => JsonLayout::Values,
            }
        }
        _ => JsonLayout::Lines,
    }
}

/// Whether a feature, or nothing, stands at the start of an array of features.
fn is_feature(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    let first = rest.iter().position(|byte| !byte.is_ascii_whitespace());
    match first.and_then(|first| rest.get(first..)) {
        Some([b']', ..]) => true,
        Some(feature @ [b'{', ..]) => {
            let end = value_end(feature, false).unwrap_or(feature.len());
            memchr::memmem::find(feature.get(..end).unwrap_or_default(), b"\"Feature\"").is_some()
        }
        _ => false,
    }
}

/// Returns the position behind the `[` of the member `features` of the object that a text begins with.
fn features_start(text: &[u8]) -> Option<usize> {
    let skip_space = |at: usize| {
        let rest = text.get(at..)?;
        rest.iter().position(|byte| !byte.is_ascii_whitespace()).map(|space| at + space)
    };
    let mut at = 1;
    loop {
        at = skip_space(at)?;
        if text.get(at) == Some(&b',') {
            at = skip_space(at + 1)?;
        }
        if text.get(at) != Some(&b'"') {
            return None;
        }
        let key_end = at + value_end(text.get(at..)?, false)?;
        let is_features = text.get(at..key_end) == Some(b"\"features\"".as_slice());
        at = skip_space(key_end)?;
        if text.get(at) != Some(&b':') {
            return None;
        }
        at = skip_space(at + 1)?;
        if is_features {
            return (text.get(at) == Some(&b'[')).then_some(at + 1);
        }
        at += value_end(text.get(at..)?, false)?;
    }
}

/// Returns the bytes of the value that a text begins with. `None`: more of the text is needed.
fn value_end(text: &[u8], is_whole: bool) -> Option<usize> {
    match text.first()? {
        b'"' => string_end(text, 0),
        b'{' | b'[' => {
            let (mut at, mut depth) = (0, 0_usize);
            loop {
                match text.get(at)? {
                    b'"' => {
                        at = string_end(text, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => {
                        depth -= 1;
                        if depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                }
                at += 1;
            }
        }
        _ => {
            let is_end = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b',' | b']' | b'}');
            // What begins with such a character is no value; it is taken as one, to be refused.
            let end = text.iter().skip(1).position(is_end).map(|end| end + 1);
            end.or(is_whole.then_some(text.len()))
        }
    }
}

/// Returns the position behind the string that begins at `start`.
fn string_end(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(text: &str) -> (JsonLayout, Vec<(u64, String)>) {
        let source = std::io::Cursor::new(text.as_bytes().to_vec());
        let mut records = JsonRecords::open(Path::new("t"), FileCompressionType::UNCOMPRESSED, None, source).unwrap();
        let mut found = Vec::new();
        while let Some(record) = records.next_record().unwrap() {
            found.push((record.line, record.text));
        }
        (records.layout(), found)
    }

    #[test]
    fn records_are_found_in_every_layout() {
        let one = |line: u64, text: &str| (line, text.to_owned());
        let cases = [
            ("{\"a\":1}\n\n{\"a\":2}", JsonLayout::Lines, vec![one(1, "{\"a\":1}"), one(3, "{\"a\":2}")]),
            (" [\n {\"a\": \"],{\"},\n {}\n]\n", JsonLayout::Elements, vec![one(2, "{\"a\": \"],{\"}"), one(3, "{}")]),
            ("[]", JsonLayout::Elements, vec![]),
            ("{\n\"a\": 1\n}", JsonLayout::Values, vec![one(1, "{\n\"a\": 1\n}")]),
            ("{\"a\":1} {\"a\":2}", JsonLayout::Values, vec![one(1, "{\"a\":1}"), one(1, "{\"a\":2}")]),
            ("[1]\n[2]\n", JsonLayout::Values, vec![one(1, "[1]"), one(2, "[2]")]),
            ("[1, \"x\", null]", JsonLayout::Elements, vec![one(1, "1"), one(1, "\"x\""), one(1, "null")]),
            (
                "{\"type\":\"FeatureCollection\",\"crs\":{\"features\":[1]},\n\"features\":[{\"type\":\"Feature\"}],\"z\":1}",
                JsonLayout::Features,
                vec![one(2, "{\"type\":\"Feature\"}")],
            ),
            ("{\"features\":[\"a\"]}", JsonLayout::Lines, vec![one(1, "{\"features\":[\"a\"]}")]),
        ];
        for (text, layout, expected) in cases {
            assert_eq!(records(text), (layout, expected), "{text}");
        }
    }

    #[test]
    fn what_does_not_end_is_refused() {
        for text in ["[{\"a\":1}", "{\n\"a\": \"x", "[1] x"] {
            let source = std::io::Cursor::new(text.as_bytes().to_vec());
            let opened = JsonRecords::open(Path::new("t"), FileCompressionType::UNCOMPRESSED, None, source);
            let mut records = opened.unwrap();
            let failed = std::iter::from_fn(|| records.next_record().transpose()).any(|record| record.is_err());
            assert!(failed, "{text}");
        }
    }
}
