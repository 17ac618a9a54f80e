//! The words of a statement that need not be whole: names, signs, and what is text, in SQL and in KQL.

use super::CompletionLanguage;

/// What a word is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    /// A name or a word of the language.
    Name,
    /// A name in quotes, which is no word of the language.
    QuotedName,
    /// A text or a number.
    Value,
    /// One character of the others.
    Sign,
}

/// A word of a statement; of names and texts without their quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct StatementWord {
    pub(super) kind: WordKind,
    pub(super) text: String,
}

impl StatementWord {
    pub(super) fn is_sign(&self, sign: &str) -> bool {
        self.kind == WordKind::Sign && self.text == sign
    }

    /// Whether it is this word of the language, in any case.
    pub(super) fn is(&self, word: &str) -> bool {
        self.kind == WordKind::Name && self.text.eq_ignore_ascii_case(word)
    }

    pub(super) fn is_name(&self) -> bool {
        matches!(self.kind, WordKind::Name | WordKind::QuotedName)
    }
}

/// What the beginning of a statement ends in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OpenWord {
    /// A text or a comment.
    Text,
    /// A name, whose quote stands at a byte.
    Name { start: usize, quote: &'static str },
}

/// The words of a statement, and what it ends in the middle of.
#[derive(Debug, Default)]
pub(super) struct StatementWords {
    pub(super) words: Vec<StatementWord>,
    pub(super) open: Option<OpenWord>,
}

/// Reads the words of a statement, or of its beginning.
pub(super) fn words_of(text: &str, language: CompletionLanguage) -> StatementWords {
    let mut found = StatementWords::default();
    let mut at = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let (piece, length) = match language {
            CompletionLanguage::Kql => kql_piece(rest, text.get(..at).and_then(|before| before.chars().next_back())),
            CompletionLanguage::Sql | CompletionLanguage::Either => sql_piece(rest),
        };
        match piece {
            StatementPiece::Passed => {}
            StatementPiece::Word(kind, text) => found.words.push(StatementWord { kind, text }),
            StatementPiece::OpenText => found.open = Some(OpenWord::Text),
            StatementPiece::OpenName(quote) => found.open = Some(OpenWord::Name { start: at, quote }),
        }
        if found.open.is_some() {
            break;
        }
        at += length.max(1);
    }
    found
}

/// What a text begins with.
enum StatementPiece {
    /// Space, or a comment.
    Passed,
    Word(WordKind, String),
    /// A text or a comment that does not end.
    OpenText,
    /// A name in quotes that does not end.
    OpenName(&'static str),
}

fn sql_piece(rest: &str) -> (StatementPiece, usize) {
    if let Some(comment) = rest.strip_prefix("--") {
        return passed(comment, "\n", 2);
    }
    if let Some(comment) = rest.strip_prefix("/*") {
        return passed(comment, "*/", 2);
    }
    if let Some(text) = rest.strip_prefix("$$") {
        return value(text.find("$$"), 2, 2);
    }
    if let Some(text) = rest.strip_prefix('\'') {
        return value(closing(text, '\'', false), 1, 1);
    }
    if let Some(name) = rest.strip_prefix('"') {
        let Some(end) = closing(name, '"', false) else { return (StatementPiece::OpenName("\""), rest.len()) };
        let name = name.get(..end).unwrap_or_default().replace("\"\"", "\"");
        return (StatementPiece::Word(WordKind::QuotedName, name), end + 2);
    }
    plain_piece(rest)
}

fn kql_piece(rest: &str, before: Option<char>) -> (StatementPiece, usize) {
    if let Some(comment) = rest.strip_prefix("//") {
        return passed(comment, "\n", 2);
    }
    if let Some(text) = rest.strip_prefix("```") {
        return value(text.find("```"), 3, 3);
    }
    // Right after a value a bracket takes an element of it.
    let is_element = before.is_some_and(|char| char.is_alphanumeric() || "_)]'\"".contains(char));
    for (opening, quote) in [("['", '\''), ("[\"", '"')] {
        let Some(name) = rest.strip_prefix(opening).filter(|_| !is_element) else { continue };
        let Some(end) = closing(name, quote, true) else { return (StatementPiece::OpenName(opening), rest.len()) };
        let is_closed = name.get(end..).is_some_and(|after| after.get(1..).is_some_and(|after| after.starts_with(']')));
        let name = name.get(..end).unwrap_or_default().replace("\\'", "'").replace("\\\"", "\"").replace("\\\\", "\\");
        return (StatementPiece::Word(WordKind::QuotedName, name), end + if is_closed { 4 } else { 3 });
    }
    for quote in ['\'', '"'] {
        if let Some(text) = rest.strip_prefix('@').and_then(|text| text.strip_prefix(quote)) {
            return value(closing(text, quote, false), 2, 1);
        }
        if let Some(text) = rest.strip_prefix(quote) {
            return value(closing(text, quote, true), 1, 1);
        }
    }
    plain_piece(rest)
}

/// A comment up to what ends it.
fn passed(comment: &str, end: &str, opened: usize) -> (StatementPiece, usize) {
    match comment.find(end) {
        Some(place) => (StatementPiece::Passed, opened + place + end.len()),
        None => (StatementPiece::OpenText, opened + comment.len()),
    }
}

/// A text that ends there.
fn value(end: Option<usize>, opened: usize, closed: usize) -> (StatementPiece, usize) {
    match end {
        Some(end) => (StatementPiece::Word(WordKind::Value, String::new()), opened + end + closed),
        None => (StatementPiece::OpenText, opened),
    }
}

fn plain_piece(rest: &str) -> (StatementPiece, usize) {
    let Some(first) = rest.chars().next() else { return (StatementPiece::Passed, 0) };
    if first.is_whitespace() {
        return (StatementPiece::Passed, first.len_utf8());
    }
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    if !is_part(first) {
        return (StatementPiece::Word(WordKind::Sign, first.to_string()), first.len_utf8());
    }
    let length = rest.find(|char: char| !is_part(char)).unwrap_or(rest.len());
    let word = rest.get(..length).unwrap_or_default();
    let is_number = word.chars().all(|char| char.is_ascii_digit());
    let kind = if is_number { WordKind::Value } else { WordKind::Name };
    (StatementPiece::Word(kind, word.to_owned()), length)
}

/// Returns where the quote stands that ends a text. One that is doubled is a part of the text, or, where backslashes
/// are, one that stands after a backslash; such a text does not go beyond its line.
fn closing(text: &str, quote: char, has_backslashes: bool) -> Option<usize> {
    let mut chars = text.char_indices().peekable();
    while let Some((at, char)) = chars.next() {
        if char == '\\' && has_backslashes {
            chars.next();
        } else if char == '\n' && has_backslashes {
            return Some(at);
        } else if char == quote {
            let is_doubled = !has_backslashes && chars.peek().is_some_and(|(_, next)| *next == quote);
            if !is_doubled {
                return Some(at);
            }
            chars.next();
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, language: CompletionLanguage) -> (String, Option<OpenWord>) {
        let StatementWords { words, open } = words_of(text, language);
        let words = words.iter().map(|word| match word.kind {
            WordKind::Value => "·".to_owned(),
            WordKind::QuotedName => format!("<{}>", word.text),
            WordKind::Name | WordKind::Sign => word.text.clone(),
        });
        (words.collect::<Vec<_>>().join(" "), open)
    }

    #[test]
    fn texts_and_comments_are_no_names() {
        let name = |start, quote| Some(OpenWord::Name { start, quote });
        for (text, words, open) in [
            ("SELECT 'it''s' x -- y\nFROM \"a \"\"b\"", "SELECT · x FROM <a \"b>", None),
            ("a /* b */ $$ c $$ 12", "a · ·", None),
            ("SELECT 'a", "SELECT", Some(OpenWord::Text)),
            ("SELECT 1 -- a", "SELECT ·", Some(OpenWord::Text)),
            ("SELECT /* a", "SELECT", Some(OpenWord::Text)),
            ("t.\"Ai", "t .", name(2, "\"")),
        ] {
            assert_eq!(read(text, CompletionLanguage::Sql), (words.to_owned(), open), "{text}");
        }
        for (text, words, open) in [
            ("T // a\n| where ['my x'] == \"a\\\"b\"", "T | where <my x> = = ·", None),
            ("T | where d['k'] == @'\\' and x", "T | where d [ · ] = = · and x", None),
            ("print 'a", "print", Some(OpenWord::Text)),
            ("print x // a", "print x", Some(OpenWord::Text)),
            ("T | where ['my", "T | where", name(10, "['")),
        ] {
            assert_eq!(read(text, CompletionLanguage::Kql), (words.to_owned(), open), "{text}");
        }
    }
}
