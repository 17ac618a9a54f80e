//! Columns that are called `key` or `index` in CREATE TABLE: the parser reads MySQL's `KEY name (columns)` there.

use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;

/// The types that have a length or digits behind them.
const SIZED: [&str; 13] = [
    "binary",
    "bit",
    "char",
    "character",
    "dec",
    "decimal",
    "float",
    "numeric",
    "nvarchar",
    "time",
    "timestamp",
    "varbinary",
    "varchar",
];

/// Puts the name of such a column in quotes.
pub(super) fn key_columns(tokens: &mut [TokenWithSpan]) {
    let Some(open) = tokens.iter().position(|token| token.token == Token::LParen) else { return };
    let of_table = tokens.first().is_some_and(|first| is_word(&first.token, "create"))
        && tokens[..open].iter().any(|token| is_word(&token.token, "table"))
        && !tokens[..open].iter().any(|token| is_word(&token.token, "as"));
    if !of_table {
        return;
    }
    let mut depth = 0_usize;
    let mut begins = false;
    for at in open..tokens.len() {
        if begins
            && depth == 1
            && (is_word(&tokens[at].token, "key") || is_word(&tokens[at].token, "index"))
            && is_column(&tokens[at + 1..])
            && let Token::Word(word) = &mut tokens[at].token
        {
            word.quote_style = Some('"');
            word.keyword = Keyword::NoKeyword;
        }
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return;
        }
        begins = matches!(tokens[at].token, Token::LParen | Token::Comma);
    }
}

/// Whether these tokens are the type of a column, and not the name of an index and its columns.
fn is_column(behind: &[TokenWithSpan]) -> bool {
    let [data_type, next, ..] = behind else { return false };
    let is_sized = SIZED.iter().any(|name| is_word(&data_type.token, name));
    match (&data_type.token, &next.token) {
        (Token::Word(_), Token::LParen) => is_sized,
        (Token::Word(_), _) => !is_word(&next.token, "using"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    #[test]
    fn columns_may_be_called_key_and_index() {
        for (text, is_column) in [
            ("CREATE TABLE t (index INT, a INT)", true),
            ("CREATE TABLE t (a INT, index VARCHAR(3) NOT NULL)", true),
            ("CREATE TABLE t (a INT, INDEX i (a))", false),
            ("CREATE TABLE t (a INT, PRIMARY KEY (a))", false),
        ] {
            let parsed = parse_statement(text).map(|parsed| parsed.statement.to_string());
            assert_eq!(parsed.unwrap().contains("\"index\""), is_column, "{text}");
        }
    }
}
