//! Whether a text is one query, by its words: what is run on behalf of a file changes nothing, on whatever server.

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
    let is_alone = words.iter().position(|word| word == ";").is_none_or(|at| words[at..].iter().all(|one| one == ";"));
    BEGINS.contains(&first.as_str()) && is_alone && !rest.iter().enumerate().any(changes)
}

/// Returns the words of a text in capitals, and its semicolons, outside of quotes, comments and, but for those that
/// open it, parentheses.
fn outer_words(sql: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut depth = 0_usize;
    let mut rest = sql;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' | '"' | '`' => quoted_length(rest, first),
            '-' if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + "*/".len()),
            _ if first.is_alphabetic() || first == '_' => {
                rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
            }
            _ => first.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        match first {
            '(' if !words.is_empty() => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ';' => words.push(part.to_owned()),
            _ if depth == 0 && (first.is_alphabetic() || first == '_') => words.push(part.to_uppercase()),
            _ => {}
        }
        rest = behind;
    }
    words
}

/// Returns the bytes from a quote to the one that closes it.
fn quoted_length(text: &str, quote: char) -> usize {
    let inside = text.get(quote.len_utf8()..).unwrap_or_default();
    inside.find(quote).map_or(text.len(), |end| end + 2 * quote.len_utf8())
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
            "",
        ] {
            assert!(!is_query(other), "{other}");
        }
    }
}
