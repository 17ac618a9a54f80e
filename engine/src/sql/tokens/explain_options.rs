//! `EXPLAIN (ANALYZE, VERBOSE)` and `EXPLAIN (FORMAT JSON)`, as PostgreSQL writes options: the parser knows them as words without
//! brackets. JSON is the logical plan in the shape of PostgreSQL's.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;
use crate::error::{EngineError, Result};

/// What the options begin with, where the brackets are not those of a query.
const OPTIONS: [&str; 9] = ["analyze", "verbose", "format", "costs", "settings", "buffers", "wal", "timing", "summary"];
/// What a plan is shown without anyway.
const NEVER_SHOWN: [&str; 4] = ["costs", "settings", "buffers", "wal"];
/// The format of JSON, as the parser calls it.
const JSON: &str = "pgjson";

/// Rewrites the options of an EXPLAIN. Errors: `unsupported`.
pub(super) fn explain_options(tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| is_word(&token.token, word));
    if !is(0, "explain") {
        return Ok(());
    }
    // As MySQL and Trino write it.
    if is(1, "format") && is(2, "json") {
        tokens[2].token = Token::make_keyword(JSON);
        return Ok(());
    }
    let is_bracket = tokens.get(1).is_some_and(|token| token.token == Token::LParen);
    let close = tokens.iter().position(|token| token.token == Token::RParen);
    let (true, true, Some(close)) = (is_bracket, OPTIONS.iter().any(|option| is(2, option)), close) else {
        return Ok(());
    };
    let (mut is_analyzed, mut is_verbose, mut is_json) = (false, false, false);
    for option in tokens[2..close].split(|token| token.token == Token::Comma) {
        let words: Vec<String> = option.iter().map(|word| word.token.to_string().to_lowercase()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words.as_slice() {
            ["analyze"] | ["analyze", "true" | "on" | "1"] => is_analyzed = true,
            ["verbose"] | ["verbose", "true" | "on" | "1"] => is_verbose = true,
            ["format", "json" | "'json'"] => is_json = true,
            ["format", "text" | "'text'"] | ["analyze" | "verbose", "false" | "off" | "0"] => {}
            [option, "false" | "off" | "0"] if NEVER_SHOWN.contains(option) => {}
            other => return Err(unsupported(&format!("the option `{}` of EXPLAIN", other.join(" ")))),
        }
    }
    if is_json && (is_analyzed || is_verbose) {
        return Err(unsupported("FORMAT JSON of EXPLAIN ANALYZE and EXPLAIN VERBOSE"));
    }
    let span = tokens[1].span;
    let words = [(is_analyzed, "ANALYZE"), (is_verbose, "VERBOSE"), (is_json, "FORMAT"), (is_json, JSON)];
    let words = words.into_iter().filter(|(is_there, _)| *is_there);
    let words = words.map(|(_, word)| TokenWithSpan { token: Token::make_keyword(word), span });
    tokens.splice(1..=close, words.collect::<Vec<_>>());
    Ok(())
}

fn unsupported(what: &str) -> EngineError {
    EngineError::Unsupported {
        what: what.to_owned(),
        hint: "write EXPLAIN query, EXPLAIN ANALYZE query or EXPLAIN (FORMAT JSON) query".into(),
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    #[test]
    fn options_are_words() {
        for (text, rewritten) in [
            ("EXPLAIN (ANALYZE) SELECT 1", "EXPLAIN ANALYZE SELECT 1"),
            ("EXPLAIN (analyze on, VERBOSE, costs off) SELECT 1", "EXPLAIN ANALYZE VERBOSE SELECT 1"),
            ("EXPLAIN (FORMAT TEXT) SELECT 1", "EXPLAIN SELECT 1"),
            ("EXPLAIN (FORMAT JSON) SELECT 1", "EXPLAIN FORMAT pgjson SELECT 1"),
            ("EXPLAIN FORMAT json SELECT 1", "EXPLAIN FORMAT pgjson SELECT 1"),
        ] {
            let same = |text: &str| parse_statement(text).map(|parsed| parsed.statement);
            assert_eq!(same(text).unwrap(), same(rewritten).unwrap(), "{text}");
        }
        for text in ["EXPLAIN (FORMAT YAML) SELECT 1", "EXPLAIN (ANALYZE, FORMAT JSON) SELECT 1"] {
            assert_eq!(parse_statement(text).unwrap_err().code(), "unsupported", "{text}");
        }
    }
}
