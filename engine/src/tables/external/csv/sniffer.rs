//! Finds the dialect of a CSV file in its beginning, by the rules of DuckDB's sniffer: the delimiter and quote that split it
//! into the most records of one width.
//!
//! It differs where DuckDB's choice hides something: a few ragged records are an error that names them, not one wide column,
//! and of two delimiters that both fit, a comma is not taken for the one within numbers (`1,5;2,5`).

use std::cmp::Reverse;
use std::collections::HashSet;
use std::io::{BufRead, Read};
use std::path::Path;

use super::dialect::CsvDialect;
use super::header::{columns_below, has_header, is_typed, rows_of};
use super::kinds::is_numeric;
use super::ragged::names_above;
use super::records::{CsvSyntax, FieldBuffer, Parsed, line_end, parse_record};
use crate::error::Result;
use crate::tables::external::location::document;
use crate::tables::external::{bad_line, unreadable};

/// The text that is looked at.
const SAMPLE_BYTES: u64 = 1 << 20;
/// The records that decide about the dialect, and about the header.
pub(super) const SAMPLE_RECORDS: usize = 2_048;
/// The delimiters that are tried; the first wins a tie.
const DELIMITERS: [u8; 4] = *b",|;\t";
/// The share of records of one width that makes a delimiter one, where the first record has the width.
const LEAST_CONSISTENT: f64 = 0.6;
/// The same where records of another width are to be set aside.
const LEAST_KEPT: f64 = 0.3;
/// The same where other lines come first.
const LEAST_BELOW_NOTES: f64 = 0.9;
/// Records of so many fields are a table, however many lines of text stand above: text has a comma here and there too.
const LEAST_BELOW_TEXT: usize = 3;
/// Of so many bytes one may be zero in text.
const MOST_NULS: usize = 10;
/// A delimiter for files of one column that hold every usual one: a character that no text has.
const NO_DELIMITER: u8 = 1;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct SniffedDialect {
    pub syntax: CsvSyntax,
    pub skip: u64,
    pub has_header: bool,
    /// The line of the first record, from 1.
    pub first_line: u64,
    pub width: usize,
    /// Whether the header has no name for the first column.
    pub row_names: bool,
}

/// Finds what the dialect's options leave open. Blocks.
pub(super) fn sniff(path: &Path, dialect: &CsvDialect, text: Box<dyn BufRead + Send>) -> Result<SniffedDialect> {
    let mut sample = Vec::new();
    text.take(SAMPLE_BYTES).read_to_end(&mut sample).map_err(|error| unreadable(path, &error))?;
    let sample = SampledText { is_whole: (sample.len() as u64) < SAMPLE_BYTES, text: sample };
    // Who says how lines are taken apart wants them as they are.
    let is_told = ["delimiter", "quote", "skip"].iter().any(|option| dialect.is_given(option));
    if let Some(detail) = document(&sample.text).filter(|_| !is_told) {
        return Err(bad_line(path, None, None, detail.to_owned()));
    }
    if sample.text.iter().filter(|byte| **byte == 0).count() * MOST_NULS > sample.text.len() {
        let detail = "holds NUL characters, as UTF-16 text and files that are no text do; the option encoding names an \
                      encoding: utf-16le, utf-16be";
        return Err(bad_line(path, None, None, detail.to_owned()));
    }
    let named = named_delimiter(&sample.text).filter(|_| !dialect.is_given("skip"));
    let told = named.filter(|delimiter| !dialect.is_given("delimiter") || *delimiter == dialect.syntax.delimiter);
    let below = told.map(|delimiter| dialect.below_its_name(delimiter));
    let dialect = below.as_ref().unwrap_or(dialect);
    let start = sample.after_lines(dialect.skip);
    let text = sample.text.get(start..).unwrap_or_default();
    let best = best_candidate(path, dialect, &sample, text);
    if best.records == 0 {
        if let Some(line) = best.unclosed {
            return Err(bad_line(path, Some(dialect.skip + line), None, "a quoted field that does not end".to_owned()));
        }
        let detail = match dialect.skip {
            0 => "no columns: the file holds no line, or blank lines and comments only",
            _ => "no columns: no line that holds anything after the skipped ones",
        };
        return Err(bad_line(path, None, None, detail.to_owned()));
    }
    let is_without_header = dialect.is_given("has_header") && !dialect.has_header;
    if !dialect.is_given("skip")
        && !is_without_header
        && let Some(lines_above) = header_above_row_names(&best, text, sample.is_whole, dialect)
    {
        let (skip, first_line) = (dialect.skip, dialect.skip + lines_above + 1);
        let (syntax, width) = (best.syntax, best.width);
        return Ok(SniffedDialect { syntax, skip, has_header: true, first_line, width, row_names: true });
    }
    let notes = if dialect.is_given("skip") { 0 } else { best.notes };
    let start = start + sample_after(text, notes, sample.is_whole);
    let text = sample.text.get(start..).unwrap_or_default();
    let has_header = match dialect.is_given("has_header") {
        true => dialect.has_header,
        false => has_header(&best.syntax, text, sample.is_whole, best.width, dialect),
    };
    let (skip, first_line) = (dialect.skip + notes, dialect.skip + best.first_line);
    let (syntax, width) = (best.syntax, best.width);
    Ok(SniffedDialect { syntax, skip, has_header, first_line, width, row_names: false })
}

/// Returns the lines above a header that names all columns but the first, as R writes one above the names of rows and pandas
/// reads it; `None` where there is none.
fn header_above_row_names(best: &Candidate, text: &[u8], is_whole: bool, dialect: &CsvDialect) -> Option<u64> {
    if best.notes == 0 || best.ragged > 0 || best.width < 3 {
        return None;
    }
    let mut fields = FieldBuffer::default();
    let (mut at, mut lines_above) = (0, 0);
    loop {
        match parse_record(&best.syntax, text.get(at..).unwrap_or_default(), is_whole, &mut fields) {
            Parsed::Record(extent) => {
                at += extent.bytes;
                break;
            }
            Parsed::Blank(extent) | Parsed::Comment(extent) => {
                at += extent.bytes;
                lines_above += extent.lines;
            }
            Parsed::Unclosed | Parsed::Partial | Parsed::End => return None,
        }
    }
    let names: Vec<String> = (0..fields.ends.len())
        .map(|index| String::from_utf8_lossy(fields.field(index)).trim().to_lowercase())
        .collect();
    let are_names = names.iter().all(|name| !name.is_empty() && !is_numeric(name));
    let distinct: HashSet<&String> = names.iter().collect();
    // Nothing but blank lines stands between it and the table.
    let between = text.get(at..sample_after(text, best.notes, is_whole)).unwrap_or_default();
    let is_directly_above = between.iter().all(u8::is_ascii_whitespace);
    if names.len() + 1 != best.width || !are_names || distinct.len() != names.len() || !is_directly_above {
        return None;
    }
    let below = text.get(at..).unwrap_or_default();
    let rows = rows_of(&best.syntax, below, is_whole, best.width);
    let row_names: HashSet<&String> = rows.iter().filter_map(|row| row.first()).collect();
    let has_names = row_names.len() == rows.len() && !row_names.iter().any(|name| name.is_empty());
    (has_names && !has_header(&best.syntax, below, is_whole, best.width, dialect)).then_some(lines_above)
}

/// Returns the delimiter that the first line names, as `sep=;`: spreadsheets write and read it so.
fn named_delimiter(text: &[u8]) -> Option<u8> {
    let line = text.get(..text.iter().position(|byte| matches!(byte, b'\n' | b'\r'))?)?;
    let line = line.strip_prefix(b"\"").and_then(|line| line.strip_suffix(b"\"")).unwrap_or(line);
    match line {
        [b's' | b'S', b'e' | b'E', b'p' | b'P', b'=', delimiter]
            if *delimiter == b'\t' || delimiter.is_ascii_punctuation() && *delimiter != b'"' =>
        {
            Some(*delimiter)
        }
        _ => None,
    }
}

struct SampledText {
    text: Vec<u8>,
    is_whole: bool,
}

impl SampledText {
    fn after_lines(&self, lines: u64) -> usize {
        sample_after(&self.text, lines, self.is_whole)
    }
}

/// Returns where the text goes on after so many lines.
fn sample_after(text: &[u8], lines: u64, is_whole: bool) -> usize {
    (0..lines).fold(0, |at, _| if at == text.len() { at } else { line_end(text, at, is_whole).unwrap_or(text.len()) })
}

/// A syntax, and how well it explains the sample.
#[derive(Debug, Clone)]
struct Candidate {
    syntax: CsvSyntax,
    width: usize,
    records: usize,
    /// The line of the first record of the width.
    first_line: u64,
    /// Lines before it that are none of the table, where other records are among them.
    notes: u64,
    /// Records after it that have another.
    ragged: usize,
    /// The share of the records that have the width.
    consistent: f64,
    /// The share that they need.
    least: f64,
    quoted: u64,
    malformed: u64,
    /// The line of a quoted field that does not end.
    unclosed: Option<u64>,
    /// The columns of text each of whose values another delimiter would divide; counted where candidates tie.
    undivided: usize,
    /// The columns that are not text, or of numbers with commas; counted where candidates tie.
    typed: usize,
}

impl Candidate {
    /// Whether the syntax explains every line.
    fn is_perfect(&self) -> bool {
        self.ragged == 0 && self.notes == 0 && self.is_well_quoted() && self.width > 1
    }

    fn is_well_quoted(&self) -> bool {
        self.malformed == 0 && self.unclosed.is_none()
    }

    /// Whether it splits records into fields, and is right about most of them.
    fn is_acceptable(&self) -> bool {
        let consistent = (self.consistent * self.records as f64).round() as usize;
        let is_clear = match self.notes {
            0 => self.consistent >= self.least,
            _ => {
                let below = consistent as f64 / (consistent + self.ragged).max(1) as f64;
                below >= LEAST_BELOW_NOTES && consistent >= 2
            }
        };
        self.width > 1 && is_clear
    }

    /// Looks at what the columns hold.
    fn look_at_columns(&mut self, text: &[u8], is_whole: bool, dialect: &CsvDialect) {
        let rows = rows_of(&self.syntax, text, is_whole, self.width);
        let below = rows.get(usize::from(rows.len() > 1)..).unwrap_or_default();
        let own = self.syntax.delimiter;
        let is_divisible = |value: &String| value.bytes().any(|byte| byte != own && DELIMITERS.contains(&byte));
        for (index, column) in columns_below(&rows, self.width, dialect).iter().enumerate() {
            let mut values = below.iter().filter_map(|row| row.get(index)).filter(|value| !value.is_empty());
            if is_typed(column) || column.inferred().note.is_some() {
                self.typed += 1;
            } else if column.has_values() && values.all(is_divisible) {
                self.undivided += 1;
            }
        }
    }

    /// Whether its only column is one of numbers with commas.
    fn has_comma_numbers(&self, text: &[u8], is_whole: bool, dialect: &CsvDialect) -> bool {
        let rows = rows_of(&self.syntax, text, is_whole, self.width);
        let columns = columns_below(&rows, self.width, dialect);
        columns.iter().all(|column| is_typed(column) || column.inferred().note.is_some())
    }

    fn consistency(&self) -> u64 {
        (self.consistent * 1000.0) as u64
    }

    /// What makes one candidate better than another: earlier parts first.
    fn rank(&self, prefers_tabs: bool) -> (bool, bool, bool, bool, bool, u64, Reverse<usize>, usize, usize) {
        let is_preferred = prefers_tabs && self.syntax.delimiter == b'\t';
        (
            self.is_acceptable(),
            self.is_acceptable() && is_preferred,
            self.is_well_quoted(),
            self.ragged == 0 && self.notes == 0,
            self.syntax.quote.is_some(),
            self.consistency(),
            Reverse(self.undivided),
            self.typed,
            self.width,
        )
    }
}

fn best_candidate(path: &Path, dialect: &CsvDialect, sample: &SampledText, text: &[u8]) -> Candidate {
    let prefers_tabs = CsvDialect::prefers_tabs(path);
    // What is the point of numbers separates columns only where the numbers are quoted.
    let point = dialect.numbers.point;
    let is_tried = |delimiter: &u8| *delimiter != point || text.contains(&b'"');
    let best = |comment: Option<u8>, comment_anywhere: bool| {
        let delimiters: Vec<u8> = match dialect.is_given("delimiter") {
            true => vec![dialect.syntax.delimiter],
            false => DELIMITERS.into_iter().filter(is_tried).collect(),
        };
        let mut best: Option<Candidate> = None;
        for delimiter in delimiters {
            let syntax = CsvSyntax { delimiter, comment, comment_anywhere, ..dialect.syntax };
            let mut candidate = best_quoted(dialect, syntax, text, sample.is_whole);
            if candidate.is_perfect() {
                candidate.look_at_columns(text, sample.is_whole, dialect);
            }
            if best.as_ref().is_none_or(|best| candidate.rank(prefers_tabs) > best.rank(prefers_tabs)) {
                best = Some(candidate);
            }
        }
        let mut best = best.unwrap_or_else(|| measure(dialect, dialect.syntax, text, sample.is_whole));
        let is_open = !dialect.is_given("delimiter");
        if is_open && !best.is_acceptable() && CsvDialect::is_named_table(path) {
            let syntax = CsvSyntax { comment, comment_anywhere, ..dialect.syntax };
            best = ragged_below_names(dialect, syntax, text, sample.is_whole).unwrap_or(best);
        }
        if is_open && (!best.is_acceptable() || best.notes > 0 && best.syntax.delimiter == b',') {
            let single = single_column(dialect, best.syntax, text, sample.is_whole);
            // A line above numbers with commas is their name, and no note above columns of numbers.
            if !best.is_acceptable() || single.has_comma_numbers(text, sample.is_whole, dialect) {
                best = single;
            }
        }
        best
    };
    let plain = best(dialect.syntax.comment, dialect.syntax.comment_anywhere);
    // Where fields may be missing, a line of a comment fits any table.
    let is_padded = dialect.null_padding && text.starts_with(b"#");
    let is_explained =
        plain.is_perfect() && (!is_padded || has_width(&plain.syntax, text, sample.is_whole, plain.width));
    if dialect.is_given("comment") || is_explained || !has_comment_lines(text) {
        return plain;
    }
    let commented = best(Some(b'#'), false);
    let is_divided = plain.width > 1 || commented.width > 1 || dialect.is_given("delimiter");
    if !is_divided && prefers_tabs && text.starts_with(b"#") {
        let tabs = below_comments(dialect, text, sample.is_whole);
        if tabs.is_acceptable() {
            return tabs;
        }
    }
    if !commented.is_perfect() {
        // Comments behind records are told from values by the widths of all of them.
        let cut = best(Some(b'#'), true);
        if cut.is_perfect() {
            return cut;
        }
    }
    let is_better = match plain.width == 1 && commented.width <= 1 {
        // Nothing is explained by it, and a line that is left out is lost.
        true => is_commented_list(text),
        false => commented.is_perfect() || !plain.is_acceptable(),
    };
    let explains = is_better && commented.ragged <= plain.ragged;
    // The last line of a block that begins with `#` may be the header, as in files of genomes.
    let keeps_header = plain.is_acceptable() && plain.ragged == 0 && {
        let start = sample_after(text, plain.notes, sample.is_whole);
        let rest = text.get(start..).unwrap_or_default();
        let is_header = has_header(&plain.syntax, rest, sample.is_whole, plain.width, dialect);
        let is_named = has_header(&commented.syntax, text, sample.is_whole, commented.width, dialect);
        rest.first() == Some(&b'#')
            && has_width(&plain.syntax, rest, sample.is_whole, plain.width)
            && is_header
            && !(is_named && has_typed_column(&commented, text, sample.is_whole, dialect))
    };
    if explains && !keeps_header { commented } else { plain }
}

/// Returns the candidate of tabs below comments, for a file that is called one of tabs: acceptable where each record has one. Its
/// records may be of several widths, of which readers tell.
fn below_comments(dialect: &CsvDialect, text: &[u8], is_whole: bool) -> Candidate {
    let padding = CsvDialect { null_padding: true, ..dialect.clone() };
    let syntax = CsvSyntax { delimiter: b'\t', comment: Some(b'#'), comment_anywhere: false, ..dialect.syntax };
    let found = best_quoted(&padding, syntax, text, is_whole);
    Candidate { least: 1.0, ..found }
}

/// Returns whether the first record has at least so many fields.
fn has_width(syntax: &CsvSyntax, text: &[u8], is_whole: bool, width: usize) -> bool {
    let mut fields = FieldBuffer::default();
    let parsed = parse_record(syntax, text, is_whole, &mut fields);
    matches!(parsed, Parsed::Record(_)) && fields.ends.len() >= width
}

fn has_comment_lines(text: &[u8]) -> bool {
    let begins = |line: &[u8]| line.iter().find(|byte| **byte != b' ') == Some(&b'#');
    text.split(|byte| matches!(byte, b'\n' | b'\r')).any(begins)
}

/// Whether the lines of a file of one column that begin with `#` are comments: the file begins with one, and behind each `#`
/// is a space or a sign. Colours (`#ff0000`), tags (`#news`) and numbers (`#12`) are values.
fn is_commented_list(text: &[u8]) -> bool {
    let is_comment = |line: &[u8]| {
        let behind = line.strip_prefix(b"#")?;
        Some(behind.first().is_none_or(|byte| byte.is_ascii() && !byte.is_ascii_alphanumeric()))
    };
    let lines = text.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii);
    let mut lines = lines.filter(|line| !line.is_empty()).map(is_comment);
    lines.next().flatten() == Some(true) && lines.all(|is_comment| is_comment != Some(false))
}

/// Returns the candidate of a delimiter with the quote and the escape that fit best.
fn best_quoted(dialect: &CsvDialect, syntax: CsvSyntax, text: &[u8], is_whole: bool) -> Candidate {
    if dialect.is_given("quote") && dialect.is_given("escape") {
        return measure(dialect, syntax, text, is_whole);
    }
    let double = measure(dialect, syntax, text, is_whole);
    let uses_double = double.quoted > 0 || double.malformed > 0 || double.unclosed.is_some();
    let mut others = Vec::new();
    if !double.is_well_quoted() && !dialect.is_given("escape") {
        others.push(CsvSyntax { escape: Some(b'\\'), ..syntax });
    }
    if !dialect.is_given("quote") {
        if !uses_double || !double.is_perfect() {
            others.push(CsvSyntax { quote: Some(b'\''), ..syntax });
            if !dialect.is_given("escape") {
                others.push(CsvSyntax { quote: Some(b'\''), escape: Some(b'\\'), ..syntax });
            }
        }
        if double.unclosed.is_some() || double.malformed > double.quoted {
            others.push(CsvSyntax { quote: None, ..syntax });
        }
    }
    let mut best = double;
    for other in others {
        let candidate = measure(dialect, other, text, is_whole);
        let is_single = other.quote == Some(b'\'');
        // Apostrophes are quotes only where they quote.
        let quotes = !is_single || (candidate.quoted > 0 && candidate.is_well_quoted() && best.quoted == 0);
        // Where they quote in every record, but for a header, what they hold is no reason for more columns.
        let quotes_each = candidate.quoted as usize + 1 >= candidate.records;
        let is_as_consistent = candidate.consistency() >= best.consistency();
        let not_worse = candidate.rank(false) > best.rank(false)
            || (is_single && is_as_consistent && (quotes_each || candidate.width >= best.width));
        if quotes && not_worse {
            best = candidate;
        }
    }
    best
}

/// Returns the candidate of a file of one column, by a delimiter that it does not hold.
fn single_column(dialect: &CsvDialect, syntax: CsvSyntax, text: &[u8], is_whole: bool) -> Candidate {
    let delimiter = DELIMITERS.into_iter().find(|delimiter| !text.contains(delimiter)).unwrap_or(NO_DELIMITER);
    let mut found = best_quoted(dialect, CsvSyntax { delimiter, ..syntax }, text, is_whole);
    let has_apostrophes = !dialect.is_given("quote") && found.syntax.quote == Some(b'\'');
    if has_apostrophes && (found.quoted as usize) < found.records.div_ceil(2) {
        // A few of them among lines of text quote nothing.
        let plain = CsvSyntax { quote: dialect.syntax.quote, escape: dialect.syntax.escape, delimiter, ..syntax };
        found = measure(dialect, plain, text, is_whole);
    }
    Candidate { width: 1, notes: 0, ..found }
}

/// Returns the candidate of a table that is known by its names only; whoever reads it tells which records differ from them.
fn ragged_below_names(dialect: &CsvDialect, syntax: CsvSyntax, text: &[u8], is_whole: bool) -> Option<Candidate> {
    DELIMITERS.into_iter().find_map(|delimiter| {
        let mut divided = syntax;
        divided.delimiter = delimiter;
        let names = names_above(&divided, text, is_whole)?;
        let found = measure(dialect, divided, text, is_whole);
        let width = if dialect.null_padding { found.width } else { names };
        Some(Candidate { width, first_line: 1, notes: 0, least: 0.0, ..found })
    })
}

/// Measures how well a syntax explains a text.
fn measure(dialect: &CsvDialect, syntax: CsvSyntax, text: &[u8], is_whole: bool) -> Candidate {
    // Of each record: its line, its fields, and those up to the last that is not empty.
    let mut shapes: Vec<(u64, usize, usize)> = Vec::new();
    let mut fields = FieldBuffer::default();
    let (mut at, mut line) = (0, 1);
    let (mut quoted, mut malformed, mut unclosed) = (0, 0, None);
    while shapes.len() < SAMPLE_RECORDS {
        fields.clear();
        match parse_record(&syntax, text.get(at..).unwrap_or_default(), is_whole, &mut fields) {
            Parsed::Record(extent) => {
                let count = fields.ends.len();
                let filled = (0..count).rev().find(|index| !fields.field(*index).is_empty()).map_or(0, |last| last + 1);
                let is_blank = count == 1 && fields.field(0).iter().all(u8::is_ascii_whitespace);
                if !is_blank {
                    shapes.push((line, count, filled));
                }
                at += extent.bytes;
                line += extent.lines;
                quoted += u64::from(extent.quoted);
                malformed += u64::from(extent.malformed);
            }
            Parsed::Blank(extent) | Parsed::Comment(extent) => {
                at += extent.bytes;
                line += extent.lines;
            }
            Parsed::Unclosed => {
                unclosed = Some(line);
                break;
            }
            Parsed::Partial | Parsed::End => break,
        }
    }
    let first = shapes.first().map_or(0, |(_, count, _)| *count);
    let candidate = |width: usize| {
        let fits = |(_, count, filled): &&(u64, usize, usize)| *count >= width && *filled <= width;
        let start = shapes.iter().position(|shape| fits(&shape));
        let first_line = start.and_then(|start| shapes.get(start)).map_or(1, |(line, _, _)| *line);
        let (above, below) = shapes.split_at(start.unwrap_or(shapes.len()));
        let fitting = below.iter().filter(fits).count();
        // Lines above a table have fewer fields than its records.
        let is_noted = above.iter().all(|(_, count, _)| *count < width);
        Candidate {
            syntax,
            width,
            records: shapes.len(),
            first_line,
            notes: if start == Some(0) { 0 } else { first_line - 1 },
            ragged: below.len() - fitting + if is_noted { 0 } else { above.len() },
            consistent: fitting as f64 / shapes.len().max(1) as f64,
            least: if dialect.ignore_errors { LEAST_KEPT } else { LEAST_CONSISTENT },
            quoted,
            malformed,
            unclosed,
            undivided: 0,
            typed: 0,
        }
    };
    let mut best = candidate(first);
    // A small table may stand below more lines of text than it has rows.
    let by_last = width_below_text(&shapes).map(candidate);
    // So may one below as many lines of fewer fields; rows that lack fields begin with no names.
    let is_named = |table: &Candidate| begins_with_names(&syntax, text, table.notes, is_whole);
    let by_half = widest_half(&shapes).map(candidate).filter(is_named);
    for other in [Some(candidate(most_frequent(&shapes))), by_last, by_half].into_iter().flatten() {
        if other.rank(false) > best.rank(false) {
            best = other;
        }
    }
    if dialect.null_padding { padded(best, &shapes) } else { best }
}

/// Returns a candidate as wide as its widest record: what the others lack is null. `shapes` are the records' lines, fields, and
/// fields up to the last that is not empty.
fn padded(candidate: Candidate, shapes: &[(u64, usize, usize)]) -> Candidate {
    let notes = if candidate.is_acceptable() { candidate.notes } else { 0 };
    let below: Vec<_> = shapes.iter().filter(|(line, _, _)| *line > notes).collect();
    let Some((first_line, names, _)) = below.first().copied() else { return candidate };
    let widest = below.iter().map(|(_, _, filled)| *filled).max().unwrap_or_default();
    // Lines without a delimiter say nothing for it.
    let divided = below.iter().filter(|(_, count, _)| *count > 1).count();
    Candidate {
        width: widest.max(*names),
        first_line: *first_line,
        notes,
        ragged: 0,
        consistent: divided as f64 / shapes.len().max(1) as f64,
        ..candidate
    }
}

/// Returns the number of fields of the last record, where it is at least three and nothing but lines of one field stands above
/// the records that have as many.
fn width_below_text(shapes: &[(u64, usize, usize)]) -> Option<usize> {
    let (_, width, _) = *shapes.last()?;
    let mut below = shapes.iter().skip_while(|(_, count, _)| *count == 1);
    (width >= LEAST_BELOW_TEXT && below.all(|(_, count, _)| *count == width)).then_some(width)
}

/// Returns the number of fields of the second half of the records, where they have more than the others and agree.
fn widest_half(shapes: &[(u64, usize, usize)]) -> Option<usize> {
    let (above, below) = shapes.split_at(shapes.len() / 2);
    let (_, width, _) = *below.first()?;
    let is_table = width >= LEAST_BELOW_TEXT && below.iter().all(|(_, count, _)| *count == width);
    (is_table && above.iter().all(|(_, count, _)| *count < width)).then_some(width)
}

/// Returns whether the record below so many lines has a text in each field, and no digit.
fn begins_with_names(syntax: &CsvSyntax, text: &[u8], lines_above: u64, is_whole: bool) -> bool {
    let start = sample_after(text, lines_above, is_whole);
    let mut fields = FieldBuffer::default();
    let parsed = parse_record(syntax, text.get(start..).unwrap_or_default(), is_whole, &mut fields);
    let is_name = |field: &[u8]| !field.trim_ascii().is_empty() && !field.iter().any(u8::is_ascii_digit);
    matches!(parsed, Parsed::Record(_)) && (0..fields.ends.len()).all(|index| is_name(fields.field(index)))
}

/// Returns the number of fields that the most records have; of equally many, that of the first record or the larger.
fn most_frequent(shapes: &[(u64, usize, usize)]) -> usize {
    let first = shapes.first().map_or(0, |(_, count, _)| *count);
    let mut counts = std::collections::BTreeMap::new();
    for (_, count, _) in shapes {
        *counts.entry(*count).or_insert(0_usize) += 1;
    }
    let most = counts.into_iter().max_by_key(|(fields, records)| (*records, *fields == first, *fields));
    most.map_or(0, |(fields, _)| fields)
}

fn has_typed_column(candidate: &Candidate, text: &[u8], is_whole: bool, dialect: &CsvDialect) -> bool {
    let rows = rows_of(&candidate.syntax, text, is_whole, candidate.width);
    columns_below(&rows, candidate.width, dialect).iter().any(is_typed)
}
