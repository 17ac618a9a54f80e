//! The lexer: characters to tokens. Lexing never fails: what is no token is reported and skipped, and the last token is
//! always [`TokenKind::End`]. It takes time linear in the length of the query.
//!
//! Only three kinds of tokens depend on context: `long(...)` and similar literals take everything up to the `)` on
//! their line; hyphenated keywords are one token, and so are `!has` and `in~`. Any other keyword is a word, and the
//! parser decides what it means.

mod brackets;
mod numbers;
mod strings;

pub(super) use brackets::depths;
pub(super) use numbers::{long_value, timespan_ticks};
pub(super) use strings::decode;

use crate::error::{SyntaxError, SyntaxErrorCode};
use crate::keywords;
use crate::span::Span;

/// The most errors that are kept of one query.
pub(super) const MAX_ERRORS: usize = 20;

/// A token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
}

/// The kind of a token. Its text is found by its span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword, `in~` and the hyphenated ones included.
    Word,
    /// `!in`, `!has_cs`, `!between`, ...
    NegatedWord,
    Long,
    Real,
    Timespan,
    /// Quotes and escapes included.
    String,
    /// `long(...)`, `datetime(...)`, ...: a type's name and anything up to the next `)` of the line.
    Typed,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Semicolon,
    Colon,
    Dot,
    DotDot,
    Pipe,
    Assign,
    Equal,
    EqualTilde,
    FatArrow,
    NotEqual,
    NotTilde,
    Less,
    LessEqual,
    LessGreater,
    Greater,
    GreaterEqual,
    Plus,
    Minus,
    Star,
    Slash,
    Percent,
    End,
}

pub(super) fn lex(text: &str) -> (Vec<Token>, Vec<SyntaxError>) {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new(), errors: Vec::new() };
    while lexer.token() {}
    lexer.push(TokenKind::End, text.len());
    (lexer.tokens, lexer.errors)
}

/// Returns the text behind the space and the comments that it begins with.
pub fn behind_comments(text: &str) -> &str {
    let mut lexer = Lexer { text, at: 0, tokens: Vec::new(), errors: Vec::new() };
    lexer.skip_blanks();
    text.get(lexer.at..).unwrap_or_default()
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    tokens: Vec<Token>,
    errors: Vec<SyntaxError>,
}

impl Lexer<'_> {
    /// Lexes one token; `None` at the end.
    fn token(&mut self) -> bool {
        self.skip_blanks();
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return false };
        if let Some(opening) = strings::opening(rest) {
            self.string(opening);
        } else if first.is_ascii_digit() {
            self.number();
        } else if is_word_start(first) {
            self.word();
        } else if let Some((kind, length)) = punctuation(rest) {
            self.push(kind, self.at + length);
        } else {
            self.unexpected();
        }
        true
    }

    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, kind: TokenKind, end: usize) {
        self.tokens.push(Token { kind, span: Span::new(self.at, end) });
        self.at = end;
    }

    fn error(&mut self, code: SyntaxErrorCode, message: String, span: Span, hint: Option<String>) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(SyntaxError { code, message, span, hint });
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            let trimmed = rest.trim_start_matches(is_blank);
            self.at += rest.len() - trimmed.len();
            if !self.rest().starts_with("//") {
                return;
            }
            let comment = self.rest().find(['\n', '\r', '\u{2028}', '\u{2029}']);
            self.at = comment.map_or(self.text.len(), |length| self.at + length);
        }
    }

    fn string(&mut self, opening: strings::Opening) {
        let scanned = strings::scan(self.rest(), opening);
        let end = self.at + scanned.length;
        for escape in scanned.bad_escapes {
            let span = Span::new(self.at + escape.start, self.at + escape.end);
            let message = format!("unknown escape sequence `{}`", span.slice(self.text));
            let hint = "write `\\\\` for a backslash, or a verbatim string `@\"...\"`".to_owned();
            self.error(SyntaxErrorCode::BadEscape, message, span, Some(hint));
        }
        if !scanned.closed {
            let span = Span::new(self.at, end);
            let message = format!("the string does not end; expected `{}`", opening.closing());
            self.error(SyntaxErrorCode::Unterminated, message, span, None);
        }
        self.push(TokenKind::String, end);
    }

    fn number(&mut self) {
        let (kind, length) = numbers::scan(self.rest());
        self.push(kind, self.at + length);
    }

    fn word(&mut self) {
        let rest = self.rest();
        let length = word_length(rest);
        let word = rest.get(..length).unwrap_or_default();
        if let Some(keyword) = hyphenated(rest, length) {
            self.push(TokenKind::Word, self.at + keyword);
        } else if word == "in" && rest[length..].starts_with('~') {
            self.push(TokenKind::Word, self.at + length + 1);
        } else if opens_typed_literal(word) && rest[length..].starts_with('(') {
            self.typed_literal(length);
        } else {
            self.push(TokenKind::Word, self.at + length);
        }
    }

    fn typed_literal(&mut self, name_length: usize) {
        let content = self.at + name_length + 1;
        let rest = self.text.get(content..).unwrap_or_default();
        let length = rest.find([')', '\n', '\r']).unwrap_or(rest.len());
        if rest[length..].starts_with(')') {
            self.push(TokenKind::Typed, content + length + 1);
            return;
        }
        let span = Span::new(self.at, content);
        let message = format!("the literal `{}` does not end; expected `)`", span.slice(self.text));
        self.error(SyntaxErrorCode::Unterminated, message, span, None);
        self.push(TokenKind::Typed, content + length);
    }

    /// Skips adjacent characters that are no tokens, and reports them as one error.
    fn unexpected(&mut self) {
        let start = self.at;
        let length = self.rest().find(|char| is_token_start(char) || is_blank(char));
        self.at = length.map_or(self.text.len(), |length| start + length).max(start + 1);
        while !self.text.is_char_boundary(self.at) {
            self.at += 1;
        }
        let span = Span::new(start, self.at);
        let found = span.slice(self.text);
        let hint = match found {
            "&&" | "&" => Some("use `and`"),
            "!" => Some("use `not(...)`, or `!=`, `!in`, `!has`, ..."),
            "\\" => Some("a backslash belongs into a string"),
            "“" | "”" | "‘" | "’" => Some("use straight quotes"),
            _ => None,
        };
        let shown: String = found.chars().take(20).collect();
        let message = format!("unexpected character `{shown}`");
        self.error(SyntaxErrorCode::UnexpectedCharacter, message, span, hint.map(str::to_owned));
    }
}

fn is_blank(char: char) -> bool {
    char.is_whitespace() || matches!(char, '\u{180e}' | '\u{200b}' | '\u{feff}')
}

fn is_word_start(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_' || char == '$'
}

fn is_word_part(char: char) -> bool {
    char.is_ascii_alphanumeric() || char == '_'
}

fn is_token_start(char: char) -> bool {
    is_word_start(char) || char.is_ascii_digit() || "'\"`~@()[]{},;:.|=<>+-*/%!".contains(char)
}

/// Returns the length of the word that `text` starts with. The caller has checked the first character.
fn word_length(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    text[first..].find(|char| !is_word_part(char)).map_or(text.len(), |length| first + length)
}

/// Returns the length of the hyphenated keyword that `text` starts with, whose first word is `word_length` long.
fn hyphenated(text: &str, word_length: usize) -> Option<usize> {
    if !text[word_length..].starts_with('-') {
        return None;
    }
    let is_whole = |keyword: &&str| !text[keyword.len()..].starts_with(is_word_part);
    keywords::hyphenated().filter(|keyword| text.starts_with(*keyword)).find(is_whole).map(str::len)
}

fn opens_typed_literal(word: &str) -> bool {
    matches!(
        word,
        "bool"
            | "date"
            | "datetime"
            | "decimal"
            | "double"
            | "guid"
            | "int"
            | "int32"
            | "int64"
            | "long"
            | "real"
            | "time"
            | "timespan"
    )
}

const NEGATED: &[&str] = &[
    "between",
    "contains",
    "contains_cs",
    "endswith",
    "endswith_cs",
    "has",
    "has_cs",
    "hasprefix",
    "hasprefix_cs",
    "hassuffix",
    "hassuffix_cs",
    "in",
    "startswith",
    "startswith_cs",
];

fn punctuation(text: &str) -> Option<(TokenKind, usize)> {
    if let Some(after) = text.strip_prefix('!') {
        return negation(after);
    }
    const TWO: &[(&str, TokenKind)] = &[
        ("..", TokenKind::DotDot),
        ("==", TokenKind::Equal),
        ("=~", TokenKind::EqualTilde),
        ("=>", TokenKind::FatArrow),
        ("<=", TokenKind::LessEqual),
        ("<>", TokenKind::LessGreater),
        (">=", TokenKind::GreaterEqual),
    ];
    if let Some((_, kind)) = TWO.iter().find(|(mark, _)| text.starts_with(mark)) {
        return Some((*kind, 2));
    }
    let kind = match text.chars().next()? {
        '(' => TokenKind::OpenParen,
        ')' => TokenKind::CloseParen,
        '[' => TokenKind::OpenBracket,
        ']' => TokenKind::CloseBracket,
        '{' => TokenKind::OpenBrace,
        '}' => TokenKind::CloseBrace,
        ',' => TokenKind::Comma,
        ';' => TokenKind::Semicolon,
        ':' => TokenKind::Colon,
        '.' => TokenKind::Dot,
        '|' => TokenKind::Pipe,
        '=' => TokenKind::Assign,
        '<' => TokenKind::Less,
        '>' => TokenKind::Greater,
        '+' => TokenKind::Plus,
        '-' => TokenKind::Minus,
        '*' => TokenKind::Star,
        '/' => TokenKind::Slash,
        '%' => TokenKind::Percent,
        _ => return None,
    };
    Some((kind, 1))
}

/// Returns the token of a `!` and the text after it.
fn negation(after: &str) -> Option<(TokenKind, usize)> {
    match after.chars().next()? {
        '=' => Some((TokenKind::NotEqual, 2)),
        '~' => Some((TokenKind::NotTilde, 2)),
        first if is_word_start(first) => {
            let length = word_length(after);
            let word = &after[..length];
            let folded = word == "in" && after[length..].starts_with('~');
            NEGATED.contains(&word).then_some((TokenKind::NegatedWord, 1 + length + usize::from(folded)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        let (tokens, errors) = lex(text);
        assert_eq!(errors, []);
        tokens[..tokens.len() - 1].iter().map(|token| token.span.slice(text)).collect()
    }

    fn kinds(text: &str) -> Vec<TokenKind> {
        let (tokens, _) = lex(text);
        tokens[..tokens.len() - 1].iter().map(|token| token.kind).collect()
    }

    #[test]
    fn hyphens_join_keywords_only() {
        assert_eq!(texts("project-away a-b"), ["project-away", "a", "-", "b"]);
        assert_eq!(texts("mv-expander"), ["mv", "-", "expander"]);
    }

    #[test]
    fn negations_are_one_token() {
        assert_eq!(texts("a !in~ (b) in~ !has_cs !~ !="), ["a", "!in~", "(", "b", ")", "in~", "!has_cs", "!~", "!="]);
    }

    #[test]
    fn typed_literals_take_what_is_written() {
        assert_eq!(texts("datetime(2020-01-01 10:00) + time(1.02:03:04)").len(), 3);
        assert_eq!(texts("long (1)"), ["long", "(", "1", ")"]);
        assert_eq!(texts("a:long)"), ["a", ":", "long", ")"]);
    }

    #[test]
    fn comments_and_odd_blanks_are_skipped() {
        assert_eq!(texts("\u{feff}T // a | b\r\n|\u{a0}take 1//"), ["T", "|", "take", "1"]);
    }

    #[test]
    fn runs_of_strange_characters_are_one_error() {
        let (tokens, errors) = lex("a && b ? é");
        assert_eq!(tokens.len(), 3);
        assert_eq!(errors.len(), 3);
        assert_eq!(errors[0].hint.as_deref(), Some("use `and`"));
    }

    #[test]
    fn what_does_not_end_is_said_once() {
        let (tokens, errors) = lex("datetime(datetime(datetime(\n)");
        assert_eq!((tokens.len(), errors.len()), (3, 1));
        assert_eq!(kinds("'abc\n| take 1")[1..], [TokenKind::Pipe, TokenKind::Word, TokenKind::Long]);
    }

    #[test]
    fn digits_may_start_a_word() {
        use TokenKind::{DotDot, Long, Real, Timespan, Word};
        assert_eq!(
            kinds("1 1.5 1e3 1d 1.5h 100ms 1tick 3Dchart 1abc 0x1F"),
            [Long, Real, Real, Timespan, Timespan, Timespan, Timespan, Word, Word, Long]
        );
        assert_eq!(kinds("1..5"), [Long, DotDot, Long]);
    }
}
