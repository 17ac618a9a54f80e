//! Commas behind the last of a list, which DuckDB takes: `(1, 2,)`, `[1,]`, `GROUP BY a, ORDER BY a,`. One value and a comma in
//! parentheses would be a row of one value, and stays for the parser to refuse.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::leave_out;

/// Leaves them out.
pub(super) fn trailing_commas(tokens: &mut Vec<TokenWithSpan>) {
    let mut left_out: Vec<usize> = Vec::new();
    // Of each bracket around, whether there was a comma in it.
    let mut outer: Vec<bool> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen | Token::LBracket | Token::LBrace => outer.push(false),
            Token::RParen | Token::RBracket | Token::RBrace => {
                outer.pop();
            }
            Token::Comma => {
                let is_last = match tokens.get(at + 1).map(|next| &next.token) {
                    None | Some(Token::SemiColon) => outer.is_empty(),
                    Some(Token::RParen) => outer.last() == Some(&true),
                    Some(Token::RBracket | Token::RBrace) => !outer.is_empty(),
                    Some(Token::Word(word)) => ends_list(word),
                    Some(_) => false,
                };
                if is_last {
                    left_out.push(at);
                }
                if let Some(has_comma) = outer.last_mut() {
                    *has_comma = true;
                }
            }
            _ => {}
        }
    }
    leave_out(tokens, left_out);
}

/// Whether a word begins the clause behind a list.
fn ends_list(word: &Word) -> bool {
    word.quote_style.is_none()
        && matches!(word.keyword, Keyword::HAVING | Keyword::QUALIFY | Keyword::ORDER | Keyword::LIMIT)
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    fn parsed(text: &str) -> String {
        parse_statement(text).map_or_else(|error| error.to_string(), |parsed| parsed.statement.to_string())
    }

    #[test]
    fn commas_behind_the_last_are_left_out() {
        for (text, same) in [
            ("SELECT [1, 2,], f(a, b,) FROM t GROUP BY a, b,", "SELECT [1, 2], f(a, b) FROM t GROUP BY a, b"),
            ("SELECT a FROM t ORDER BY a,;", "SELECT a FROM t ORDER BY a"),
            ("SELECT * FROM (VALUES (1, 2), (3, 4),) AS v", "SELECT * FROM (VALUES (1, 2), (3, 4)) AS v"),
        ] {
            assert_eq!(parsed(text), same, "{text}");
        }
        for text in ["SELECT (1,)", "SELECT f(,)", "SELECT (1,, 2)", "SELECT a FROM t GROUP BY a,,"] {
            assert!(parse_statement(text).is_err(), "{text}");
        }
    }
}
