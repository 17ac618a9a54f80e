//! Tokens as a tree of brackets, so that a search stays on one level of them.

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

/// The deepest brackets that are rewritten. The parser refuses what nests as deeply.
const MAX_DEPTH: usize = 100;

/// A token, or brackets with what is between them.
#[derive(Debug, Clone)]
pub(super) enum Item {
    Token(TokenWithSpan),
    Group(Box<Group>),
}

#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) open: TokenWithSpan,
    pub(super) items: Vec<Item>,
    pub(super) close: TokenWithSpan,
}

impl Item {
    pub(super) fn word(&self) -> Option<&str> {
        match self {
            Item::Token(TokenWithSpan { token: Token::Word(word), .. }) if word.quote_style.is_none() => {
                Some(&word.value)
            }
            _ => None,
        }
    }

    pub(super) fn is(&self, keyword: &str) -> bool {
        self.word().is_some_and(|word| word.eq_ignore_ascii_case(keyword))
    }

    pub(super) fn is_any(&self, keywords: &[&str]) -> bool {
        keywords.iter().any(|keyword| self.is(keyword))
    }

    pub(super) fn is_token(&self, token: &Token) -> bool {
        matches!(self, Item::Token(own) if own.token == *token)
    }

    pub(super) fn parentheses(&self) -> Option<&Group> {
        match self {
            Item::Group(group) if group.open.token == Token::LParen => Some(group),
            _ => None,
        }
    }

    pub(super) fn span(&self) -> Span {
        match self {
            Item::Token(token) => token.span,
            Item::Group(group) => group.open.span,
        }
    }
}

/// Matches brackets, without recursion. `None` where they do not match, or nest too deeply.
pub(super) fn tree(tokens: &[TokenWithSpan]) -> Option<Vec<Item>> {
    let mut outer: Vec<(TokenWithSpan, Vec<Item>)> = Vec::new();
    let mut items = Vec::new();
    for token in tokens {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => {
                if outer.len() == MAX_DEPTH {
                    return None;
                }
                outer.push((token.clone(), std::mem::take(&mut items)));
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                let (open, before) = outer.pop()?;
                let inside = std::mem::replace(&mut items, before);
                items.push(Item::Group(Box::new(Group { open, items: inside, close: token.clone() })));
            }
            _ => items.push(Item::Token(token.clone())),
        }
    }
    outer.is_empty().then_some(items)
}

pub(super) fn flat(items: Vec<Item>) -> Vec<TokenWithSpan> {
    let mut tokens = Vec::new();
    flatten(items, &mut tokens);
    tokens
}

fn flatten(items: Vec<Item>, tokens: &mut Vec<TokenWithSpan>) {
    for item in items {
        match item {
            Item::Token(token) => tokens.push(token),
            Item::Group(group) => {
                tokens.push(group.open);
                flatten(group.items, tokens);
                tokens.push(group.close);
            }
        }
    }
}

pub(super) fn call(name: &str, arguments: Vec<Vec<Item>>, span: Span) -> Vec<Item> {
    let mut inside = Vec::new();
    for argument in arguments {
        if !inside.is_empty() {
            inside.push(token(Token::Comma, span));
        }
        inside.extend(argument);
    }
    vec![word(name, span), parenthesized(inside, span)]
}

pub(super) fn parenthesized(items: Vec<Item>, span: Span) -> Item {
    let open = TokenWithSpan::new(Token::LParen, span);
    Item::Group(Box::new(Group { open, items, close: TokenWithSpan::new(Token::RParen, span) }))
}

pub(super) fn word(text: &str, span: Span) -> Item {
    token(Token::make_keyword(text), span)
}

pub(super) fn token(token: Token, span: Span) -> Item {
    Item::Token(TokenWithSpan::new(token, span))
}

pub(super) fn joined<const N: usize>(parts: [Vec<Item>; N]) -> Vec<Item> {
    parts.into_iter().flatten().collect()
}
