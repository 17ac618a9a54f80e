//! Actions of MERGE that the parser does not know: `THEN DO NOTHING`, and UPDATE and INSERT of a whole row of the source (`UPDATE`,
//! `UPDATE SET *`, `INSERT`, `INSERT *`, each also `BY NAME` or `BY POSITION`). They become an UPDATE, or an INSERT, of a column
//! that no table has.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;
use crate::sql::marks;

/// Rewrites the clauses of a MERGE that leave their rows as they are.
pub(super) fn merge_actions(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.windows(2).any(|pair| is_word(&pair[0].token, "merge") && is_word(&pair[1].token, "into")) {
        return;
    }
    let mut written = Vec::with_capacity(tokens.len());
    let (mut at, mut is_of_new_rows) = (0, false);
    while let Some(token) = tokens.get(at) {
        if is_word(&token.token, "matched") {
            is_of_new_rows = begins_new_rows(tokens, at);
        }
        written.push(token.clone());
        let found = match does_nothing(&tokens[at..]) {
            true => Some((3, is_of_new_rows, marks::NOTHING)),
            false => whole_row(&tokens[at..]),
        };
        match found {
            Some((length, is_insert, mark)) => {
                let span = token.span;
                written.extend(action(is_insert, mark).into_iter().map(|token| TokenWithSpan { token, span }));
                at += length;
            }
            None => at += 1,
        }
    }
    *tokens = written;
}

/// Returns an action on the column `mark`.
fn action(is_insert: bool, mark: &str) -> Vec<Token> {
    let column = Token::make_word(mark, None);
    match is_insert {
        true => vec![
            Token::make_keyword("INSERT"),
            Token::LParen,
            column,
            Token::RParen,
            Token::make_keyword("VALUES"),
            Token::LParen,
            Token::make_keyword("NULL"),
            Token::RParen,
        ],
        false => vec![
            Token::make_keyword("UPDATE"),
            Token::make_keyword("SET"),
            column,
            Token::Eq,
            Token::make_keyword("NULL"),
        ],
    }
}

/// Returns, where tokens begin with `THEN` and an action on a whole row, how many they are, whether it is an INSERT, and its mark.
fn whole_row(tokens: &[TokenWithSpan]) -> Option<(usize, bool, &'static str)> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, text));
    let is_star = |at: usize| tokens.get(at).is_some_and(|token| token.token == Token::Mul);
    if !is(0, "then") || !(is(1, "update") || is(1, "insert")) {
        return None;
    }
    let is_insert = is(1, "insert");
    let mut length = 2;
    if is_insert && is_star(length) {
        length += 1;
    } else if !is_insert && is(length, "set") && is_star(length + 1) {
        length += 2;
    }
    let mut mark = marks::MERGE_BY_POSITION;
    if is(length, "by") && (is(length + 1, "name") || is(length + 1, "position")) {
        if is(length + 1, "name") {
            mark = marks::MERGE_BY_NAME;
        }
        length += 2;
    }
    let is_end = match tokens.get(length) {
        None => true,
        Some(next) => next.token == Token::SemiColon || is(length, "when") || is(length, "returning"),
    };
    is_end.then_some((length, is_insert, mark))
}

/// Whether tokens are `THEN DO NOTHING`.
fn does_nothing(tokens: &[TokenWithSpan]) -> bool {
    let words = ["then", "do", "nothing"];
    tokens.len() >= words.len() && tokens.iter().zip(words).all(|(token, text)| is_word(&token.token, text))
}

/// Whether the clause with this MATCHED is of rows that the table has not.
fn begins_new_rows(tokens: &[TokenWithSpan], matched: usize) -> bool {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, text));
    let is_negated = matched.checked_sub(1).is_some_and(|before| is(before, "not"));
    is_negated && !(is(matched + 1, "by") && is(matched + 2, "source"))
}
