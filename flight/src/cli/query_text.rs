//! Whether a text is one query, by its words: what is run on behalf of a file changes nothing, on whatever server.

use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::{Token, Tokenizer};

/// Words with which a query begins.
const BEGINS: [&str; 11] =
    ["SELECT", "WITH", "FROM", "VALUES", "TABLE", "SHOW", "DESCRIBE", "DESC", "SUMMARIZE", "PIVOT", "UNPIVOT"];
/// Words outside of parentheses by which what began as a query changes something: `WITH t AS (...) DELETE`, `SELECT ...
/// INTO t`.
const CHANGES: [&str; 5] = ["INSERT", "UPDATE", "DELETE", "MERGE", "INTO"];

/// Whether a text is one query that changes nothing.
pub(super) fn is_query(sql: &str) -> bool {
    let words = outer_words(sql);
    let (Some(first), rest) = (words.first(), words.get(1..).unwrap_or_default()) else { return false };
    // `FOR UPDATE` only locks.
    let changes = |(index, word): (usize, &String)| {
        let before = words.get(index).map(String::as_str).unwrap_or_default();
        CHANGES.contains(&word.as_str()) && before != "FOR"
    };
    let is_alone = words.iter().skip_while(|word| *word != ";").all(|word| word == ";");
    BEGINS.contains(&first.as_str()) && is_alone && !rest.iter().enumerate().any(changes)
}

/// Returns the words of a text in capitals, and its semicolons, outside of quotes, comments and, but for those that
/// open it, parentheses; none of a text that cannot be read.
fn outer_words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    for token in Tokenizer::new(&GenericDialect, sql).tokenize().unwrap_or_default() {
        match token {
            Token::LParen if !words.is_empty() => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            Token::SemiColon => words.push(";".to_owned()),
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => words.push(word.value.to_uppercase()),
            _ => {}
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_queries_are_queries() {
        for query in [
            "SELECT 1",
            "-- how many\nselect count(*) from t;",
            "/* DELETE */ WITH a AS (SELECT 1) SELECT * FROM a",
            "(SELECT 1) UNION (SELECT 2)",
            "SELECT 'x; DELETE FROM t' AS \"insert\" FROM t",
            "SELECT 'it''s' AS delete_at FROM t WHERE x IN (SELECT 1)",
            "FROM t SELECT x",
            "SELECT * FROM t FOR UPDATE",
            "VALUES (1)",
        ] {
            assert!(is_query(query), "{query}");
        }
        for other in [
            "DELETE FROM t",
            "  drop table t",
            "SELECT 1; DELETE FROM t",
            "WITH a AS (SELECT 1) DELETE FROM t",
            "SELECT * INTO u FROM t",
            "EXPLAIN ANALYZE INSERT INTO t VALUES (1)",
            "/* SELECT */ UPDATE t SET x = 1",
            "WITH a AS (SELECT 1 /* /* */ ' */) DELETE FROM t --'",
            "WITH a AS (SELECT $$'$$) DELETE FROM t WHERE x <> $$'$$",
            "WITH a AS (SELECT 1 /*/ ' */) DELETE FROM t --'",
            "",
        ] {
            assert!(!is_query(other), "{other}");
        }
    }
}
