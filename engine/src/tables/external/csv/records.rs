//! Splits CSV text into records and fields.
//!
//! A field that begins with a quote and is not well quoted (`"x"y`) is taken as it stands, quotes and all, rather than
//! repaired: what a record's fields hold is what the file holds.

use memchr::{memchr, memchr2, memchr3};

/// The most bytes of a delimiter.
pub(crate) const MAX_DELIMITER: usize = 4;

/// The characters that structure a CSV file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CsvSyntax {
    /// Between fields: the first byte of what stands there.
    pub delimiter: u8,
    /// Its other bytes, up to the first zero.
    pub delimiter_rest: [u8; MAX_DELIMITER - 1],
    /// Around fields. `None`: no field is quoted.
    pub quote: Option<u8>,
    /// Before a quote inside of a quoted field. `None`: quotes are doubled there.
    pub escape: Option<u8>,
    /// At the start of a line that is no record.
    pub comment: Option<u8>,
    /// Whether the rest of a record behind that character is a comment too, unless it is quoted.
    pub comment_anywhere: bool,
}

impl CsvSyntax {
    /// Returns what stands between fields.
    pub(crate) fn delimiter_text(&self) -> String {
        let mut bytes = vec![self.delimiter];
        bytes.extend_from_slice(self.behind_delimiter());
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Returns the bytes of the delimiter behind its first.
    fn behind_delimiter(&self) -> &[u8] {
        let length = self.delimiter_rest.iter().take_while(|byte| **byte != 0).count();
        self.delimiter_rest.get(..length).unwrap_or_default()
    }

    /// Returns whether a delimiter or a line break stands at this place; `None`: more of the text is needed.
    fn ends_field(&self, input: &[u8], at: usize, is_last: bool) -> Option<bool> {
        match input.get(at) {
            Some(b'\n' | b'\r') => Some(true),
            Some(byte) if *byte == self.delimiter => {
                let (found, expected) = (input.get(at + 1..).unwrap_or_default(), self.behind_delimiter());
                let is_cut = found.len() < expected.len() && !is_last && expected.starts_with(found);
                (!is_cut).then(|| found.starts_with(expected))
            }
            _ => Some(false),
        }
    }

    /// Returns whether a backslash stands before a quote.
    pub(crate) fn has_escaped_quote(&self, text: &[u8]) -> bool {
        self.quote.is_some_and(|quote| text.windows(2).any(|pair| pair == [b'\\', quote]))
    }

    /// Returns what begins a comment behind the fields of a record.
    fn inner_comment(&self) -> Option<u8> {
        self.comment.filter(|_| self.comment_anywhere)
    }
}

/// The fields of records, one after the other.
#[derive(Debug, Default)]
pub(crate) struct FieldBuffer {
    /// The fields' text without what separates them.
    pub text: Vec<u8>,
    /// The end of each field in the text.
    pub ends: Vec<usize>,
    /// The places of the fields in quotes, ascending; `None` where nobody asks.
    pub quoted: Option<Vec<usize>>,
}

impl FieldBuffer {
    pub(crate) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Returns the field at this index; empty where there is none.
    pub(crate) fn field(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        self.ends.get(index).and_then(|end| self.text.get(start..*end)).unwrap_or_default()
    }

    /// Removes the fields from this index on.
    pub(crate) fn truncate(&mut self, fields: usize) {
        self.ends.truncate(fields);
        self.text.truncate(self.ends.last().copied().unwrap_or(0));
        if let Some(quoted) = &mut self.quoted {
            quoted.truncate(quoted.partition_point(|place| *place < fields));
        }
    }
}

/// What stands next in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A record, whose fields were added to the buffer.
    Record(Extent),
    /// A line without a character.
    Blank(Extent),
    /// A comment.
    Comment(Extent),
    /// A quoted field that does not end.
    Unclosed,
    /// Less than a record; more of the text is needed.
    Partial,
    /// The end.
    End,
}

/// How far a record reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Extent {
    /// Bytes, with the end of the line.
    pub bytes: usize,
    /// Lines, more than one where a quoted field holds line breaks.
    pub lines: u64,
    /// Well quoted fields.
    pub quoted: u32,
    /// Fields that begin with a quote and are not well quoted.
    pub malformed: u32,
}

/// Adds the fields of the next record of `input` to `fields`. `is_last`: nothing follows the input.
pub(crate) fn parse_record(syntax: &CsvSyntax, input: &[u8], is_last: bool, fields: &mut FieldBuffer) -> Parsed {
    if input.is_empty() {
        return if is_last { Parsed::End } else { Parsed::Partial };
    }
    match line_break(input, 0, is_last) {
        LineBreak::Here(bytes) => return Parsed::Blank(Extent { bytes, lines: 1, ..Extent::default() }),
        LineBreak::Unknown => return Parsed::Partial,
        LineBreak::No => {}
    }
    if let Some(comment) = syntax.comment
        && input.iter().find(|byte| **byte != b' ') == Some(&comment)
    {
        return match line_end(input, 0, is_last) {
            Some(bytes) => Parsed::Comment(Extent { bytes, lines: 1, ..Extent::default() }),
            None => Parsed::Partial,
        };
    }
    let fields_before = fields.ends.len();
    let parsed = fields_of_record(syntax, input, is_last, fields);
    if !matches!(parsed, Parsed::Record(_)) {
        fields.truncate(fields_before);
    }
    parsed
}

/// Returns the bytes of the line that contains `from`, with its end. `None`: more of the text is needed.
pub(crate) fn line_end(input: &[u8], from: usize, is_last: bool) -> Option<usize> {
    let rest = input.get(from..)?;
    match memchr2(b'\n', b'\r', rest) {
        Some(at) => match line_break(input, from + at, is_last) {
            LineBreak::Here(bytes) => Some(from + at + bytes),
            LineBreak::Unknown | LineBreak::No => None,
        },
        None => is_last.then_some(input.len()),
    }
}

fn fields_of_record(syntax: &CsvSyntax, input: &[u8], is_last: bool, fields: &mut FieldBuffer) -> Parsed {
    let mut extent = Extent { lines: 1, ..Extent::default() };
    let mut at = 0;
    loop {
        at = match quoted_field(syntax, input, at, is_last, &mut fields.text) {
            Quoted::Closed { next, lines } => {
                extent.quoted += 1;
                extent.lines += lines;
                if let Some(quoted) = &mut fields.quoted {
                    quoted.push(fields.ends.len());
                }
                next
            }
            Quoted::Partial => return Parsed::Partial,
            Quoted::Unclosed => return Parsed::Unclosed,
            Quoted::No { malformed } => {
                extent.malformed += u32::from(malformed);
                let rest = input.get(at..).unwrap_or_default();
                let Some(length) = unquoted_length(syntax, rest, is_last) else { return Parsed::Partial };
                let field = rest.get(..length).unwrap_or_default();
                let comment = syntax.inner_comment().and_then(|comment| memchr(comment, field));
                let length = comment.unwrap_or(length);
                fields.text.extend_from_slice(rest.get(..length).unwrap_or_default());
                at + length
            }
        };
        fields.ends.push(fields.text.len());
        match input.get(at) {
            Some(byte) if *byte == syntax.delimiter => at += 1 + syntax.behind_delimiter().len(),
            Some(byte) if syntax.inner_comment() == Some(*byte) => match line_end(input, at, is_last) {
                Some(end) => {
                    extent.bytes = end;
                    return Parsed::Record(extent);
                }
                None => return Parsed::Partial,
            },
            None => {
                extent.bytes = at;
                return Parsed::Record(extent);
            }
            Some(_) => match line_break(input, at, is_last) {
                LineBreak::Here(bytes) => {
                    extent.bytes = at + bytes;
                    return Parsed::Record(extent);
                }
                LineBreak::Unknown | LineBreak::No => return Parsed::Partial,
            },
        }
        if at == input.len() && !is_last {
            return Parsed::Partial;
        }
    }
}

/// Returns the bytes of an unquoted field. `None`: more of the text is needed.
fn unquoted_length(syntax: &CsvSyntax, input: &[u8], is_last: bool) -> Option<usize> {
    let mut from = 0;
    loop {
        let Some(found) = memchr3(syntax.delimiter, b'\n', b'\r', input.get(from..)?) else {
            return is_last.then_some(input.len());
        };
        if syntax.ends_field(input, from + found, is_last)? {
            return Some(from + found);
        }
        from += found + 1;
    }
}

enum Quoted {
    /// The field ends before `next`, where a delimiter, a line break or the end is.
    Closed {
        next: usize,
        lines: u64,
    },
    No {
        malformed: bool,
    },
    Partial,
    Unclosed,
}

/// Adds the content of the quoted field at `start` to `text`. Spaces around the quotes are no part of the field.
fn quoted_field(syntax: &CsvSyntax, input: &[u8], start: usize, is_last: bool, text: &mut Vec<u8>) -> Quoted {
    let Some(quote) = syntax.quote else { return Quoted::No { malformed: false } };
    let rest = input.get(start..).unwrap_or_default();
    let spaces = if syntax.delimiter == b' ' { 0 } else { rest.iter().take_while(|byte| **byte == b' ').count() };
    match rest.get(spaces) {
        Some(byte) if *byte == quote => {}
        Some(_) => return Quoted::No { malformed: false },
        None if is_last => return Quoted::No { malformed: false },
        None => return Quoted::Partial,
    }
    let escape = syntax.escape.unwrap_or(quote);
    let (length_before, mut at) = (text.len(), start + spaces + 1);
    loop {
        let Some(found) = input.get(at..).and_then(|rest| memchr2(quote, escape, rest)) else {
            text.truncate(length_before);
            return if is_last { Quoted::Unclosed } else { Quoted::Partial };
        };
        text.extend_from_slice(input.get(at..at + found).unwrap_or_default());
        at += found;
        let (byte, following) = (input.get(at).copied().unwrap_or(quote), input.get(at + 1).copied());
        if byte == escape {
            match following {
                Some(escaped) if escaped == quote || (escaped == escape && escape != quote) => {
                    text.push(escaped);
                    at += 2;
                    continue;
                }
                None if !is_last => {
                    text.truncate(length_before);
                    return Quoted::Partial;
                }
                _ if escape != quote => {
                    text.push(escape);
                    at += 1;
                    continue;
                }
                _ => {}
            }
        }
        // The closing quote.
        let content = input.get(start..at).unwrap_or_default();
        let mut next = at + 1;
        while syntax.delimiter != b' ' && input.get(next) == Some(&b' ') {
            next += 1;
        }
        match input.get(next) {
            Some(byte) if syntax.inner_comment() == Some(*byte) => {}
            None if is_last => {}
            None => {
                text.truncate(length_before);
                return Quoted::Partial;
            }
            Some(_) => match syntax.ends_field(input, next, is_last) {
                Some(true) => {}
                Some(false) => {
                    text.truncate(length_before);
                    return Quoted::No { malformed: true };
                }
                None => {
                    text.truncate(length_before);
                    return Quoted::Partial;
                }
            },
        }
        return Quoted::Closed { next, lines: line_breaks(content) };
    }
}

enum LineBreak {
    /// Of so many bytes.
    Here(usize),
    No,
    /// A carriage return that a line feed may follow.
    Unknown,
}

fn line_break(input: &[u8], at: usize, is_last: bool) -> LineBreak {
    match (input.get(at), input.get(at + 1)) {
        (Some(b'\n'), _) => LineBreak::Here(1),
        (Some(b'\r'), Some(b'\n')) => LineBreak::Here(2),
        (Some(b'\r'), None) if !is_last => LineBreak::Unknown,
        (Some(b'\r'), _) => LineBreak::Here(1),
        _ => LineBreak::No,
    }
}

/// Returns the number of line breaks; `\r\n` is one.
pub(crate) fn line_breaks(text: &[u8]) -> u64 {
    let mut count = 0;
    let mut rest = text;
    while let Some(at) = memchr2(b'\n', b'\r', rest) {
        let is_pair = rest.get(at) == Some(&b'\r') && rest.get(at + 1) == Some(&b'\n');
        rest = rest.get(at + 1 + usize::from(is_pair)..).unwrap_or_default();
        count += 1;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAS: CsvSyntax = CsvSyntax {
        delimiter: b',',
        delimiter_rest: [0; 3],
        quote: Some(b'"'),
        escape: None,
        comment: None,
        comment_anywhere: false,
    };

    fn records(syntax: &CsvSyntax, text: &str) -> Vec<Vec<String>> {
        let mut input = text.as_bytes();
        let mut found = Vec::new();
        let mut fields = FieldBuffer::default();
        loop {
            fields.clear();
            match parse_record(syntax, input, true, &mut fields) {
                Parsed::Record(extent) => {
                    let texts = (0..fields.ends.len()).map(|index| String::from_utf8_lossy(fields.field(index)).into());
                    found.push(texts.collect());
                    input = &input[extent.bytes..];
                }
                Parsed::Blank(extent) | Parsed::Comment(extent) => input = &input[extent.bytes..],
                Parsed::End => return found,
                other => panic!("{other:?} in {text:?}"),
            }
        }
    }

    #[test]
    fn fields_hold_what_the_file_holds() {
        let cases: [(&str, &[&[&str]]); 9] = [
            ("a,b\r\n1,2\n", &[&["a", "b"], &["1", "2"]]),
            ("a\rb\r", &[&["a"], &["b"]]),
            ("\"x\ny\",1", &[&["x\ny", "1"]]),
            ("\"say \"\"hi\"\"\",2\n", &[&["say \"hi\"", "2"]]),
            ("1, \"a,b\" ,3\n", &[&["1", "a,b", "3"]]),
            ("5\" pipe,\"x\"y\n", &[&["5\" pipe", "\"x\"y"]]),
            ("a,\n,b\n", &[&["a", ""], &["", "b"]]),
            ("\n\na\n", &[&["a"]]),
            (" x ,\"\"\n", &[&[" x ", ""]]),
        ];
        for (text, expected) in cases {
            assert_eq!(records(&COMMAS, text), expected, "{text:?}");
        }
        let escaped = CsvSyntax { escape: Some(b'\\'), ..COMMAS };
        assert_eq!(records(&escaped, "\"a \\\"b\\\" \\\\ \\n\",1\n"), [["a \"b\" \\ \\n", "1"]]);
        let commented = CsvSyntax { comment: Some(b'#'), ..COMMAS };
        assert_eq!(records(&commented, "# x\n1,#2\n  # y\n"), [["1", "#2"]]);
        let cut = CsvSyntax { comment_anywhere: true, ..commented };
        assert_eq!(records(&cut, "1,2#3,4\n\"#\",\"x\" # y\n5,6"), [["1", "2"], ["#", "x"], ["5", "6"]]);
        let bars = CsvSyntax { delimiter: b'|', delimiter_rest: [b'|', 0, 0], ..COMMAS };
        assert_eq!(bars.delimiter_text(), "||");
        assert_eq!(
            records(&bars, "a|b||c\n\"x||y\"||\"z\"\n1||\n||2"),
            [["a|b", "c"], ["x||y", "z"], ["1", ""], ["", "2"]]
        );
        let unquoted = CsvSyntax { quote: None, ..COMMAS };
        assert_eq!(records(&unquoted, "\"a,b\"\n"), [["\"a", "b\""]]);
    }

    #[test]
    fn fields_in_quotes_are_told_from_others() {
        let mut fields = FieldBuffer { quoted: Some(Vec::new()), ..FieldBuffer::default() };
        assert!(matches!(parse_record(&COMMAS, b"\"\",,\"x\"\n", true, &mut fields), Parsed::Record(_)));
        assert!(matches!(parse_record(&COMMAS, b",\"\"", true, &mut fields), Parsed::Record(_)));
        assert_eq!((fields.ends.len(), fields.quoted.as_deref()), (5, Some([0, 2, 4].as_slice())));
        assert_eq!(parse_record(&COMMAS, b"\"a\",\"b", true, &mut fields), Parsed::Unclosed);
        assert_eq!((fields.ends.len(), fields.quoted.as_deref()), (5, Some([0, 2, 4].as_slice())));
        fields.truncate(4);
        assert_eq!(fields.quoted.as_deref(), Some([0, 2].as_slice()));
    }

    #[test]
    fn a_part_of_a_record_is_no_record() {
        let text = b"ab,\"c\"\"d\r\ne\" ,f\r\n";
        let mut fields = FieldBuffer::default();
        for length in 0..text.len() {
            assert_eq!(parse_record(&COMMAS, &text[..length], false, &mut fields), Parsed::Partial, "{length}");
            assert!(fields.ends.is_empty() && fields.text.is_empty());
        }
        let bars = CsvSyntax { delimiter: b'|', delimiter_rest: [b'|', 0, 0], ..COMMAS };
        let divided = b"a||\"b\"||c\n";
        for length in 0..divided.len() {
            assert_eq!(parse_record(&bars, &divided[..length], false, &mut fields), Parsed::Partial, "{length}");
        }
        let Parsed::Record(extent) = parse_record(&COMMAS, text, false, &mut fields) else { panic!() };
        assert_eq!((extent.bytes, extent.lines, extent.quoted), (text.len(), 2, 1));
        assert_eq!(fields.field(1), b"c\"d\r\ne");
        assert_eq!(parse_record(&COMMAS, b"a,\"b\n", true, &mut fields), Parsed::Unclosed);
    }
}
