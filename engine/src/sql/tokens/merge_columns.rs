//! `MERGE INTO t USING s USING (a, b)`, which the parser does not know: the rows match whose columns of those names are equal. A
//! call stands for the condition until the names of both sides are known.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;
use crate::sql::marks;

/// Rewrites the tokens of a MERGE that names the columns by which rows match.
pub(super) fn merge_columns(tokens: &mut Vec<TokenWithSpan>) {
    if !tokens.windows(2).any(|pair| is_word(&pair[0].token, "merge") && is_word(&pair[1].token, "into")) {
        return;
    }
    let Some(at) = (0..tokens.len()).find(|at| names_columns(&tokens[*at..])) else { return };
    let span = tokens[at].span;
    let condition = [Token::make_keyword("ON"), Token::make_word(marks::MERGE_COLUMNS, None)];
    tokens.splice(at..=at, condition.map(|token| TokenWithSpan { token, span }));
}

/// Whether tokens begin with `USING (a, b) WHEN`.
fn names_columns(tokens: &[TokenWithSpan]) -> bool {
    let [using, open, rest @ ..] = tokens else { return false };
    if !is_word(&using.token, "using") || open.token != Token::LParen {
        return false;
    }
    let names = rest.iter().take_while(|token| matches!(token.token, Token::Word(_) | Token::Comma)).count();
    let [close, when, ..] = &rest[names..] else { return false };
    names > 0 && close.token == Token::RParen && is_word(&when.token, "when")
}
