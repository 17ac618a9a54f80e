//! `SORTED BY (...)` of CREATE TABLE and of ALTER TABLE, which the parser does not know: it becomes a property of the table, whose
//! value is the text between the parentheses.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::is_word;
use crate::error::{EngineError, Result};
use crate::sql::marks;

/// Rewrites the tokens of a statement that says how a table is sorted. Errors: `sql_plan_error` where it names no column.
pub(super) fn sorted_by(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    let (is_alter, is_create) = (is(0, "alter") && is(1, "table"), is(0, "create"));
    if !is_alter && !is_create {
        return Ok(());
    }
    // What is behind AS is a query.
    let end = tokens.iter().position(|token| is_word(&token.token, "as")).unwrap_or(tokens.len());
    // Hive's buckets have an order of their own.
    if tokens[..end].iter().any(|token| is_word(&token.token, "clustered")) {
        return Ok(());
    }
    let Some(sorted) = (2..end).find(|at| is(*at, "sorted") && is(at + 1, "by")) else { return Ok(()) };
    let span = tokens[sorted].span;
    if is_alter && is(sorted - 1, "reset") {
        if sorted + 2 == tokens.len() || tokens[sorted + 2].token == Token::SemiColon {
            tokens.splice(sorted - 1..sorted + 2, property(Keyword::SET, String::new(), span));
        }
        return Ok(());
    }
    let open = sorted + 2;
    if tokens.get(open).is_none_or(|token| token.token != Token::LParen) || (is_alter && !is(sorted - 1, "set")) {
        return Ok(());
    }
    let Some(close) = closing(tokens, open) else { return Ok(()) };
    if close == open + 1 {
        let message = "SORTED BY needs a column; ALTER TABLE ... RESET SORTED BY takes the order away".to_owned();
        return Err(EngineError::Plan { message });
    }
    let text: Vec<String> = tokens[open + 1..close].iter().map(|token| token.token.to_string()).collect();
    let text = text.join(" ");
    if is_alter {
        tokens.splice(sorted - 1..=close, property(Keyword::SET, text, span));
    } else {
        tokens.splice(sorted..=close, property(Keyword::WITH, text, span));
    }
    Ok(())
}

/// `SET TBLPROPERTIES (mark = 'text')` of ALTER TABLE, `WITH (mark = 'text')` of CREATE TABLE.
fn property(keyword: Keyword, text: String, span: Span) -> Vec<TokenWithSpan> {
    let mut tokens = match keyword {
        Keyword::SET => vec![Token::make_keyword("SET"), Token::make_keyword("TBLPROPERTIES")],
        _ => vec![Token::make_keyword("WITH")],
    };
    tokens.extend([
        Token::LParen,
        Token::make_word(marks::SORTED_BY, None),
        Token::Eq,
        Token::SingleQuotedString(text),
        Token::RParen,
    ]);
    tokens.into_iter().map(|token| TokenWithSpan { token, span }).collect()
}

fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
