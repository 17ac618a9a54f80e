//! `INSERT INTO t BY NAME query`, which the parser does not know: the mark in the place of the columns stands for those of the
//! query. `BY POSITION` is what holds without it.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;
use crate::sql::marks;

/// Rewrites the tokens of an INSERT that says how its columns are found.
pub(super) fn insert_by(tokens: &mut Vec<TokenWithSpan>) {
    let begins = |pair: &[TokenWithSpan]| matches!(pair, [insert, into] if is_word(&insert.token, "insert") && is_word(&into.token, "into"));
    let Some(insert) = tokens.windows(2).position(begins) else { return };
    let is_name = |at: usize| matches!(tokens.get(at).map(|token| &token.token), Some(Token::Word(_)));
    let mut at = insert + 2;
    while is_name(at) && tokens.get(at + 1).is_some_and(|token| token.token == Token::Period) {
        at += 2;
    }
    let (Some(by), Some(how)) = (tokens.get(at + 1), tokens.get(at + 2)) else { return };
    if !is_name(at) || !is_word(&by.token, "by") {
        return;
    }
    let columns = if is_word(&how.token, "name") {
        vec![Token::LParen, Token::make_word(marks::BY_NAME, None), Token::RParen]
    } else if is_word(&how.token, "position") {
        Vec::new()
    } else {
        return;
    };
    let span = by.span;
    tokens.splice(at + 1..at + 3, columns.into_iter().map(|token| TokenWithSpan { token, span }));
}
