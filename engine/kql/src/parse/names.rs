//! Parses names, and decides where a keyword may be one.

use super::{Parser, Result};
use crate::ast::{Name, NamePattern};
use crate::error::SyntaxErrorCode;
use crate::keywords::{self, NameUse};
use crate::lexer::{TokenKind, decode};
use crate::span::Span;

impl Parser<'_> {
    /// A name that refers to a column, table, function or variable.
    pub(super) fn name(&mut self, what: &str) -> Result<Name> {
        self.name_within(what, NameUse::Anywhere)
    }

    /// A name that is declared.
    pub(super) fn declared_name(&mut self, what: &str) -> Result<Name> {
        self.name_within(what, NameUse::Declared)
    }

    /// Any word, keywords included, or a name in brackets: values of options, columns of plugins.
    pub(super) fn any_word(&mut self, what: &str) -> Result<Name> {
        self.name_within(what, NameUse::Bracketed)
    }

    fn name_within(&mut self, what: &str, widest: NameUse) -> Result<Name> {
        if self.at_bracketed_name(0) {
            return Ok(self.bracketed_name());
        }
        let word = self.word();
        let name_use = keywords::name_use(word);
        if word.is_empty() {
            return Err(self.expected(what));
        }
        let allowed = match name_use {
            NameUse::Anywhere => true,
            NameUse::Declared => widest != NameUse::Anywhere,
            NameUse::Bracketed => widest == NameUse::Bracketed,
        };
        if !allowed {
            let hint = self.bracket_hint();
            return Err(self.expected_with_hint(what, hint));
        }
        Ok(self.plain_name())
    }

    /// Returns the hint how to write the next word, a keyword, as a name.
    pub(super) fn bracket_hint(&self) -> Option<String> {
        let word = self.word();
        keywords::could_be_meant_as_name(word).then(|| format!("where `{word}` is meant as a name, write ['{word}']"))
    }

    /// The next token, a word, as a name.
    pub(super) fn plain_name(&mut self) -> Name {
        let span = self.advance().span;
        Name { text: span.slice(self.text).to_owned(), bracketed: false, span }
    }

    /// Whether `['...']` is `ahead` of the next token.
    pub(super) fn at_bracketed_name(&self, ahead: usize) -> bool {
        self.peek(ahead).kind == TokenKind::OpenBracket
            && self.peek(ahead + 1).kind == TokenKind::String
            && self.peek(ahead + 2).kind == TokenKind::CloseBracket
    }

    pub(super) fn bracketed_name(&mut self) -> Name {
        let start = self.advance().span;
        let text = decode(self.advance().span.slice(self.text));
        self.advance();
        Name { text, bracketed: true, span: self.since(start) }
    }

    /// Parses the names before the `=` of a named expression, if it is one. A keyword there is reported and taken.
    pub(super) fn assigned_name(&mut self) -> Option<Name> {
        if self.at_bracketed_name(0) && self.peek(3).kind == TokenKind::Assign {
            let name = self.bracketed_name();
            self.advance();
            return Some(name);
        }
        if self.word().is_empty() || self.peek(1).kind != TokenKind::Assign {
            return None;
        }
        let word = self.word().to_owned();
        if keywords::name_use(&word) == NameUse::Bracketed {
            let span = self.token().span;
            let hint = format!("write ['{word}']");
            let message = format!("the keyword `{word}` needs brackets to be a name");
            self.report(SyntaxErrorCode::ReservedName, message, span, Some(hint));
        }
        let name = self.plain_name();
        self.advance();
        Some(name)
    }

    /// Parses `(a, b) =`, if it is next.
    pub(super) fn assigned_names(&mut self) -> Option<Vec<Name>> {
        if !self.at_kind(TokenKind::OpenParen) {
            return None;
        }
        let mut ahead = 1;
        loop {
            ahead += match self.peek(ahead).kind {
                TokenKind::Word => 1,
                _ if self.at_bracketed_name(ahead) => 3,
                _ => return None,
            };
            match self.peek(ahead).kind {
                TokenKind::Comma => ahead += 1,
                TokenKind::CloseParen if self.peek(ahead + 1).kind == TokenKind::Assign => break,
                _ => return None,
            }
        }
        let mut names = Vec::new();
        while !self.at_kind(TokenKind::Assign) {
            self.advance();
            if self.at_bracketed_name(0) {
                names.push(self.bracketed_name());
            } else if !self.word().is_empty() {
                names.push(self.plain_name());
            }
        }
        self.advance();
        Some(names)
    }

    /// `a`, `['a b']`, `a*`, `*_b`, `*`.
    pub(super) fn name_pattern(&mut self, what: &str) -> Result<NamePattern> {
        if let Some((text, span)) = self.wildcard() {
            return Ok(NamePattern { text, wildcard: true, span });
        }
        let name = self.name(what)?;
        Ok(NamePattern { text: name.text, wildcard: false, span: name.span })
    }

    /// A name with a `*` in it: words and stars with no blanks between them.
    pub(super) fn wildcard(&mut self) -> Option<(String, Span)> {
        let mut length = 0;
        let mut stars = 0;
        loop {
            let token = self.peek(length);
            let continues = length == 0 || self.peek(length - 1).span.touches(token.span);
            match token.kind {
                _ if !continues => break,
                TokenKind::Star => stars += 1,
                TokenKind::Word | TokenKind::Long if length == 0 || self.peek(length - 1).kind == TokenKind::Star => {}
                _ => break,
            }
            length += 1;
        }
        if stars == 0 {
            return None;
        }
        let start = self.token().span;
        for _ in 0..length {
            self.advance();
        }
        let span = self.since(start);
        Some((span.slice(self.text).to_owned(), span))
    }

    /// Whether the next two words are `first-second`, written without blanks.
    pub(super) fn eat_hyphenated(&mut self, first: &str, second: &str) -> bool {
        let [a, hyphen, b] = [self.peek(0), self.peek(1), self.peek(2)];
        let found = self.at_word(first)
            && hyphen.kind == TokenKind::Minus
            && self.word_at(2) == second
            && a.span.touches(hyphen.span)
            && hyphen.span.touches(b.span);
        if found {
            for _ in 0..3 {
                self.advance();
            }
        }
        found
    }
}
