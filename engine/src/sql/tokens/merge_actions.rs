//! `THEN DO NOTHING` of MERGE, which the parser does not know: an UPDATE, or an INSERT where the row is a new one, of a column
//! that no table has.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;
use crate::sql::marks;

/// Rewrites the clauses of a MERGE that leave their rows as they are.
pub(super) fn merge_actions(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.windows(2).any(|pair| is_word(&pair[0].token, "merge") && is_word(&pair[1].token, "into")) {
        return;
    }
    while let Some(then) = tokens.windows(3).position(does_nothing) {
        let column = || Token::make_word(marks::NOTHING, None);
        let action = match is_of_new_rows(&tokens[..then]) {
            true => vec![
                Token::make_keyword("INSERT"),
                Token::LParen,
                column(),
                Token::RParen,
                Token::make_keyword("VALUES"),
                Token::LParen,
                Token::make_keyword("NULL"),
                Token::RParen,
            ],
            false => vec![
                Token::make_keyword("UPDATE"),
                Token::make_keyword("SET"),
                column(),
                Token::Eq,
                Token::make_keyword("NULL"),
            ],
        };
        let span = tokens[then].span;
        tokens.splice(then + 1..then + 3, action.into_iter().map(|token| TokenWithSpan { token, span }));
    }
}

/// Whether tokens are `THEN DO NOTHING`.
fn does_nothing(tokens: &[TokenWithSpan]) -> bool {
    let words = ["then", "do", "nothing"];
    tokens.iter().zip(words).all(|(token, text)| is_word(&token.token, text))
}

/// Whether the last clause that begins in these tokens is of rows that the table has not.
fn is_of_new_rows(tokens: &[TokenWithSpan]) -> bool {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, text));
    let Some(matched) = tokens.iter().rposition(|token| is_word(&token.token, "matched")) else { return false };
    let is_negated = matched.checked_sub(1).is_some_and(|before| is(before, "not"));
    is_negated && !(is(matched + 1, "by") && is(matched + 2, "source"))
}
