//! A recursive descent parser over the tokens. Each function parses what it is named after, or reports what it expected
//! and returns [`Reported`]; only pipelines and statements catch that, skip to the next `|` or `;` of their own, and
//! continue.
//!
//! Every recursion passes [`Parser::nested`], which bounds it. No token is looked at more often than a fixed number of
//! times: decisions are made on the next few tokens, and nothing is parsed twice.

mod columns;
mod expand;
mod expressions;
mod graph;
mod literals;
mod names;
mod parameters;
mod pipeline;
mod relations;
mod render;
mod rows;
mod scan;
mod search;
mod series;
mod statements;
mod tables;

#[cfg(test)]
mod tests;

use crate::ast;
use crate::error::{SyntaxError, SyntaxErrorCode};
use crate::keywords;
use crate::lexer::{self, MAX_ERRORS, Token, TokenKind};
use crate::span::Span;

/// How deep parentheses, calls and subqueries may nest.
const MAX_NESTING: usize = 200;
/// How high the tree of an expression may be, subqueries included. Chains (`a + b + c`, `a.b.c`) make it as high as
/// they are long, and trees are walked and dropped recursively: without a bound a query could overflow the stack.
const MAX_HEIGHT: usize = 500;
/// The stack that one level may need; a larger stack is allocated when the thread's has less left.
const LEVEL_STACK_BYTES: usize = 128 << 10;
const LARGER_STACK_BYTES: usize = 4 << 20;

/// An error that is already in the parser's list.
struct Reported;

type Result<T> = std::result::Result<T, Reported>;

/// A parsed query.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedQuery {
    /// The tree; complete where there are no errors.
    pub query: ast::Query,
    /// In the order of the query. Only the first 20.
    pub errors: Vec<SyntaxError>,
}

impl ParsedQuery {
    /// Returns the complete tree, or the errors.
    pub fn into_result(self) -> std::result::Result<ast::Query, Vec<SyntaxError>> {
        if self.errors.is_empty() { Ok(self.query) } else { Err(self.errors) }
    }
}

/// Parses a query.
pub(super) fn parse(text: &str) -> ParsedQuery {
    let (tokens, errors) = lexer::lex(text);
    let depths = lexer::depths(&tokens);
    let mut parser =
        Parser { text, tokens, depths, at: 0, errors, failed_at: None, aborted: false, nesting: 0, height: 0 };
    let query = parser.query();
    parser.errors.sort_by_key(|error| error.span);
    parser.errors.truncate(MAX_ERRORS);
    ParsedQuery { query, errors: parser.errors }
}

/// Parses the sequences of a graph's pattern, and nothing else. Errors: at least one.
#[cfg(feature = "plan")]
pub(super) fn parse_graph_pattern(text: &str) -> std::result::Result<Vec<Vec<ast::GraphPart>>, Vec<SyntaxError>> {
    let (tokens, errors) = lexer::lex(text);
    let depths = lexer::depths(&tokens);
    let mut parser =
        Parser { text, tokens, depths, at: 0, errors, failed_at: None, aborted: false, nesting: 0, height: 0 };
    let mut pattern = parser.graph_patterns();
    if pattern.is_ok() && !parser.at_kind(TokenKind::End) {
        pattern = Err(parser.expected("the end of the pattern"));
    }
    match pattern {
        Ok(pattern) if parser.errors.is_empty() => Ok(pattern),
        _ => Err(parser.errors),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// The last one is `End`, and `at` never passes it.
    tokens: Vec<Token>,
    depths: Vec<u32>,
    at: usize,
    errors: Vec<SyntaxError>,
    /// The token of the last error: one error for each token is enough.
    failed_at: Option<usize>,
    /// Set by an error after which parsing cannot continue.
    aborted: bool,
    nesting: usize,
    /// The height of the tree that was parsed last at this level of nesting.
    height: usize,
}

impl<'a> Parser<'a> {
    fn token(&self) -> Token {
        self.peek(0)
    }

    /// Returns the token `ahead` of the next one; past the last one, the end.
    fn peek(&self, ahead: usize) -> Token {
        let last = self.tokens.len().saturating_sub(1);
        let end = Token { kind: TokenKind::End, span: Span::new(self.text.len(), self.text.len()) };
        self.tokens.get((self.at + ahead).min(last)).copied().unwrap_or(end)
    }

    fn advance(&mut self) -> Token {
        let token = self.token();
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        token
    }

    /// Returns the end of the token before the next one.
    fn last_end(&self) -> Span {
        match self.at.checked_sub(1).and_then(|last| self.tokens.get(last)) {
            Some(token) => token.span,
            None => Span::default(),
        }
    }

    /// Returns the span from `start` to the last token taken.
    fn since(&self, start: Span) -> Span {
        start.to(self.last_end())
    }

    fn at_kind(&self, kind: TokenKind) -> bool {
        self.token().kind == kind
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at_kind(kind);
        if found {
            self.advance();
        }
        found
    }

    fn expect(&mut self, kind: TokenKind, what: &str) -> Result<Span> {
        if self.at_kind(kind) { Ok(self.advance().span) } else { Err(self.expected(what)) }
    }

    /// Returns the next token's text where it is a word, otherwise the empty string.
    fn word(&self) -> &'a str {
        self.word_at(0)
    }

    fn word_at(&self, ahead: usize) -> &'a str {
        let token = self.peek(ahead);
        if token.kind == TokenKind::Word { token.span.slice(self.text) } else { "" }
    }

    fn at_word(&self, word: &str) -> bool {
        self.word() == word
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.at_word(word);
        if found {
            self.advance();
        }
        found
    }

    fn expect_word(&mut self, word: &str) -> Result<Span> {
        if self.at_word(word) { Ok(self.advance().span) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    /// Parses a comma-separated list of `one`.
    fn separated<T>(&mut self, mut one: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut all = vec![one(self)?];
        while self.eat(TokenKind::Comma) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// Runs `work` one level deeper. Errors: more than [`MAX_NESTING`] levels.
    fn nested<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let below = std::mem::take(&mut self.height);
        self.nesting += 1;
        let done = if self.nesting > MAX_NESTING {
            Err(self.too_deep(MAX_NESTING))
        } else {
            stacker::maybe_grow(LEVEL_STACK_BYTES, LARGER_STACK_BYTES, || work(self))
        };
        self.nesting -= 1;
        self.height = below.max(self.height + 1);
        done
    }

    /// Records the height of a node over what was parsed last and over a tree that is `left` high.
    fn grow(&mut self, left: usize) -> Result<()> {
        self.height = self.height.max(left) + 1;
        if self.height > MAX_HEIGHT { Err(self.too_deep(MAX_HEIGHT)) } else { Ok(()) }
    }

    fn too_deep(&mut self, levels: usize) -> Reported {
        let span = self.token().span;
        let message = format!("the query nests deeper than {levels} levels");
        let hint = "name parts of it with `let`".to_owned();
        let reported = self.report(SyntaxErrorCode::TooDeep, message, span, Some(hint));
        self.aborted = true;
        self.at = self.tokens.len().saturating_sub(1);
        reported
    }

    /// Reports that something else was expected here.
    fn expected(&mut self, what: &str) -> Reported {
        self.expected_with_hint(what, None)
    }

    fn expected_with_hint(&mut self, what: &str, hint: Option<String>) -> Reported {
        if self.is_silent() {
            self.failed_at = Some(self.at);
            return Reported;
        }
        let token = self.token();
        let message = format!("expected {what}, found {}", self.found());
        self.report(SyntaxErrorCode::Unexpected, message, token.span, hint)
    }

    fn report(&mut self, code: SyntaxErrorCode, message: String, span: Span, hint: Option<String>) -> Reported {
        if !self.is_silent() {
            self.errors.push(SyntaxError { code, message, span, hint });
        }
        self.failed_at = Some(self.at);
        Reported
    }

    /// Whether an error here would repeat one or is past the most that are kept.
    fn is_silent(&self) -> bool {
        self.aborted || self.failed_at == Some(self.at) || self.errors.len() >= 2 * MAX_ERRORS
    }

    /// Describes the next token for a message.
    fn found(&self) -> String {
        const SHOWN_CHARS: usize = 30;
        let token = self.token();
        if token.kind == TokenKind::End {
            return "the end of the query".to_owned();
        }
        let text = token.span.slice(self.text);
        let line = text.lines().next().unwrap_or_default();
        let shown: String = line.chars().take(SHOWN_CHARS).collect();
        let more = if shown.len() < text.len() { "..." } else { "" };
        match token.kind {
            TokenKind::Word if keywords::name_use(text) != keywords::NameUse::Anywhere => format!("keyword `{shown}`"),
            _ => format!("`{shown}{more}`"),
        }
    }

    /// Skips to the next `|`, `;` or closing bracket that is nested in as many brackets as the token `start`.
    fn recover(&mut self, start: usize) {
        let depth = self.depth_at(start);
        loop {
            let inside = self.depth_at(self.at) > depth;
            match self.token().kind {
                TokenKind::End => return,
                TokenKind::Pipe | TokenKind::Semicolon if !inside => return,
                TokenKind::CloseParen | TokenKind::CloseBracket | TokenKind::CloseBrace
                    if self.depth_at(self.at) < depth =>
                {
                    return;
                }
                _ => self.advance(),
            };
        }
    }

    /// Skips to the next `;` in the brackets that the token `start` is nested in, or to their end.
    fn recover_statement(&mut self, start: usize) {
        loop {
            self.recover(start);
            if !self.eat(TokenKind::Pipe) {
                return;
            }
        }
    }

    fn depth_at(&self, index: usize) -> u32 {
        self.depths.get(index).copied().unwrap_or_default()
    }
}
