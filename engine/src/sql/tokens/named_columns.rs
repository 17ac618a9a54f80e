//! `CREATE TABLE t (a, b) AS query`, which the parser does not know: the columns are named by an alias around the query.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;

/// Rewrites the tokens of a CREATE TABLE that names the columns of its query without their types.
pub(super) fn named_columns(tokens: &mut Vec<TokenWithSpan>) {
    let Some(TableNamingColumns { open, close }) = TableNamingColumns::of(tokens) else { return };
    let query = close + 2;
    let end = match tokens.last() {
        Some(last) if last.token == Token::SemiColon => tokens.len() - 1,
        _ => tokens.len(),
    };
    let span = tokens[open].span;
    let of_query = |token: Token| TokenWithSpan { token, span };
    let mut alias = vec![of_query(Token::RParen), of_query(Token::make_keyword("AS")), tokens[open - 1].clone()];
    alias.extend_from_slice(&tokens[open..=close]);
    tokens.splice(end..end, alias);
    let select = [Token::make_keyword("SELECT"), Token::Mul, Token::make_keyword("FROM"), Token::LParen];
    tokens.splice(query..query, select.map(of_query));
    tokens.drain(open..=close);
}

/// Where the brackets around the names are.
struct TableNamingColumns {
    open: usize,
    close: usize,
}

impl TableNamingColumns {
    fn of(tokens: &[TokenWithSpan]) -> Option<Self> {
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
        let open = tokens.iter().position(|token| token.token == Token::LParen)?;
        let begins = is(0, "create") && tokens[..open].iter().any(|token| is_word(&token.token, "table"));
        if !begins || tokens[..open].iter().any(|token| is_word(&token.token, "as")) {
            return None;
        }
        let mut close = open + 1;
        while matches!(tokens.get(close)?.token, Token::Word(_)) {
            close += 1;
            match tokens.get(close)?.token {
                Token::Comma => close += 1,
                Token::RParen => {
                    let has_query = is(close + 1, "as") && close + 2 < tokens.len() && !is(close + 2, "execute");
                    return has_query.then_some(Self { open, close });
                }
                _ => return None,
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    #[test]
    fn names_without_types_are_an_alias() {
        for (text, rewritten) in [
            (
                "CREATE TABLE t (a, \"B\") AS SELECT 1, 2;",
                "CREATE TABLE t AS SELECT * FROM (SELECT 1, 2) AS t (a, \"B\")",
            ),
            ("CREATE TABLE d.t (a) AS FROM u", "CREATE TABLE d.t AS SELECT * FROM (SELECT * FROM u) AS t (a)"),
            ("CREATE TABLE t (a INT) AS SELECT 1", "CREATE TABLE t (a INT) AS SELECT 1"),
        ] {
            let parsed = parse_statement(text);
            let parsed = parsed.map_or_else(|error| error.to_string(), |parsed| parsed.statement.to_string());
            assert_eq!(parsed, rewritten, "{text}");
        }
    }
}
