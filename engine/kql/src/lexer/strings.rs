//! Lexes string literals: `"..."` and `'...'` with escapes, `@"..."` verbatim, ``` and ~~~ over several lines, each with an
//! `h` in front where it is to be kept out of logs. What [`scan`] accepts, [`decode`] decodes.

use std::ops::Range;

/// How a string starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opening {
    /// The length of what precedes the content, in bytes.
    length: usize,
    style: StringStyle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StringStyle {
    Escaped(char),
    Verbatim(char),
    Block(&'static str),
}

impl Opening {
    pub(super) fn closing(self) -> String {
        match self.style {
            StringStyle::Escaped(quote) | StringStyle::Verbatim(quote) => quote.to_string(),
            StringStyle::Block(fence) => fence.to_owned(),
        }
    }
}

/// The extent of a string literal.
pub(super) struct Scanned {
    /// Quotes included.
    pub(super) length: usize,
    pub(super) closed: bool,
    pub(super) bad_escapes: Vec<Range<usize>>,
}

/// Returns the opening of a string, if `text` starts with one.
pub(super) fn opening(text: &str) -> Option<Opening> {
    let prefix = usize::from(text.starts_with(['h', 'H']));
    let quoted = &text[prefix..];
    for fence in ["```", "~~~"] {
        if quoted.starts_with(fence) {
            return Some(Opening { length: prefix + fence.len(), style: StringStyle::Block(fence) });
        }
    }
    let mut chars = quoted.chars();
    match (chars.next()?, chars.next()) {
        (quote @ ('"' | '\''), _) => Some(Opening { length: prefix + 1, style: StringStyle::Escaped(quote) }),
        ('@', Some(quote @ ('"' | '\''))) => Some(Opening { length: prefix + 2, style: StringStyle::Verbatim(quote) }),
        _ => None,
    }
}

pub(super) fn scan(text: &str, opening: Opening) -> Scanned {
    let content = &text[opening.length..];
    let mut scanned = match opening.style {
        StringStyle::Escaped(quote) => scan_escaped(content, quote),
        StringStyle::Verbatim(quote) => scan_verbatim(content, quote),
        StringStyle::Block(fence) => match content.find(fence) {
            Some(length) => Scanned { length: length + fence.len(), closed: true, bad_escapes: Vec::new() },
            None => Scanned { length: content.len(), closed: false, bad_escapes: Vec::new() },
        },
    };
    scanned.length += opening.length;
    for escape in &mut scanned.bad_escapes {
        *escape = escape.start + opening.length..escape.end + opening.length;
    }
    scanned
}

/// Returns the value of a string literal.
pub(crate) fn decode(literal: &str) -> String {
    let Some(opening) = opening(literal) else { return literal.to_owned() };
    let content = &literal[opening.length..];
    let closing = opening.closing();
    match opening.style {
        StringStyle::Escaped(quote) => unescape(content.strip_suffix(quote).unwrap_or(content)),
        StringStyle::Verbatim(quote) => {
            let content = content.strip_suffix(quote).unwrap_or(content);
            content.replace(&format!("{quote}{quote}"), &closing)
        }
        StringStyle::Block(fence) => content.strip_suffix(fence).unwrap_or(content).to_owned(),
    }
}

fn scan_escaped(content: &str, quote: char) -> Scanned {
    let mut bad_escapes = Vec::new();
    let mut at = 0;
    while let Some(char) = content[at..].chars().next() {
        match char {
            '\n' | '\r' => return Scanned { length: at, closed: false, bad_escapes },
            '\\' => {
                let (_, length) = escape(&content[at..]);
                if let Some(length) = length {
                    at += length;
                } else {
                    let next = content[at + 1..].chars().next().filter(|next| !matches!(next, '\n' | '\r'));
                    let end = at + 1 + next.map_or(0, char::len_utf8);
                    bad_escapes.push(at..end);
                    at = end;
                }
            }
            char if char == quote => return Scanned { length: at + 1, closed: true, bad_escapes },
            char => at += char.len_utf8(),
        }
    }
    Scanned { length: content.len(), closed: false, bad_escapes }
}

fn scan_verbatim(content: &str, quote: char) -> Scanned {
    let mut at = 0;
    while let Some(found) = content[at..].find([quote, '\n', '\r']) {
        at += found;
        if !content[at..].starts_with(quote) {
            return Scanned { length: at, closed: false, bad_escapes: Vec::new() };
        }
        at += 1;
        if !content[at..].starts_with(quote) {
            return Scanned { length: at, closed: true, bad_escapes: Vec::new() };
        }
        at += 1;
    }
    Scanned { length: content.len(), closed: false, bad_escapes: Vec::new() }
}

/// Returns the UTF-16 units or the character of an escape sequence, and its length; no length for an invalid one.
fn escape(text: &str) -> (u32, Option<usize>) {
    let Some(kind) = text[1..].chars().next() else { return (0, None) };
    let plain = match kind {
        '\'' | '"' | '\\' => Some(u32::from(kind)),
        'a' => Some(0x07),
        'b' => Some(0x08),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        _ => None,
    };
    if let Some(plain) = plain {
        return (plain, Some(2));
    }
    match kind {
        'x' => hexadecimal(text, 2),
        'u' => hexadecimal(text, 4),
        'U' => hexadecimal(text, 8),
        '0'..='7' => octal(text),
        _ => (0, None),
    }
}

fn hexadecimal(text: &str, digits: usize) -> (u32, Option<usize>) {
    let code = text.get(2..2 + digits).filter(|code| code.bytes().all(|byte| byte.is_ascii_hexdigit()));
    match code.and_then(|code| u32::from_str_radix(code, 16).ok()) {
        Some(code) => (code, Some(2 + digits)),
        None => (0, None),
    }
}

/// Up to three digits, the first of three at most 3.
fn octal(text: &str) -> (u32, Option<usize>) {
    let most = if text[1..].starts_with(['0', '1', '2', '3']) { 3 } else { 2 };
    let digits = text[1..].bytes().take(most).take_while(|byte| (b'0'..=b'7').contains(byte)).count();
    (u32::from_str_radix(&text[1..1 + digits], 8).unwrap_or_default(), Some(1 + digits))
}

fn unescape(content: &str) -> String {
    let mut decoded = String::with_capacity(content.len());
    let mut high_surrogate = None;
    let mut rest = content;
    while let Some(char) = rest.chars().next() {
        let (code, length) = match char {
            '\\' => escape(rest),
            char => (u32::from(char), Some(char.len_utf8())),
        };
        // An invalid escape is already reported; its characters are kept.
        let (code, length) = length.map_or((u32::from('\\'), 1), |length| (code, length));
        rest = &rest[length..];
        if (0xd800..0xdc00).contains(&code) {
            high_surrogate = Some(code);
            continue;
        }
        let code = match high_surrogate.take() {
            Some(high) if (0xdc00..0xe000).contains(&code) => 0x10000 + ((high - 0xd800) << 10) + (code - 0xdc00),
            Some(_) => {
                decoded.push(char::REPLACEMENT_CHARACTER);
                code
            }
            None => code,
        };
        decoded.push(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    if high_surrogate.is_some() {
        decoded.push(char::REPLACEMENT_CHARACTER);
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Scanned {
        scan(text, opening(text).unwrap())
    }

    #[test]
    fn decodes_every_style() {
        assert_eq!(decode(r#""a\tb\u00e9\x41\101\"""#), "a\tbéAA\"");
        assert_eq!(decode(r#"@"a\b""c""#), r#"a\b"c"#);
        assert_eq!(decode("@'a''b'"), "a'b");
        assert_eq!(decode("h'secret'"), "secret");
        assert_eq!(decode("```a\n\"b\\```"), "a\n\"b\\");
        assert_eq!(decode("~~~a~~~"), "a");
        assert_eq!(decode(r#""\ud83d\ude00\ud83d""#), "\u{1f600}\u{fffd}");
    }

    #[test]
    fn says_which_escapes_are_bad() {
        let scanned = scanned(r#""a\qb\u12" rest"#);
        assert!(scanned.closed);
        assert_eq!(scanned.length, 10);
        assert_eq!(scanned.bad_escapes, [2..4, 5..7]);
    }

    #[test]
    fn ends_at_the_line_unless_it_is_a_block() {
        for text in ["'a\nb'", "@'a\nb'", "'a\\\nb'"] {
            assert!(!scanned(text).closed, "{text}");
        }
        assert!(scanned("```a\nb```").closed);
    }
}
