//! `COPY` as PostgreSQL and DuckDB write it: options behind the file in parentheses, and `COPY t FROM 'file'`, which is an
//! INSERT of what the file holds.

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::brackets::{Item, call, joined, parenthesized, token, word};
use crate::error::{EngineError, Result};
use crate::sql::marks;
use crate::sql::write_statement::COPY_OPTIONS;

/// Rewrites a statement that begins with COPY; others stay. Errors: `sql_plan_error`, `unsupported`.
pub(super) fn copies(items: Vec<Item>) -> Result<Vec<Item>> {
    let Some(first) = items.first().filter(|first| first.is("copy")) else { return Ok(items) };
    let span = first.span();
    let Some(at) = items.iter().position(|item| item.is_any(&["to", "from"])) else { return Ok(items) };
    let (source, target) = (&items[1..at], items.get(at + 1));
    let text = match target {
        Some(Item::Token(TokenWithSpan { token: Token::SingleQuotedString(text), .. })) => text.clone(),
        _ => {
            return Err(EngineError::Unsupported {
                what: "COPY with standard input or output".into(),
                hint: "name a file: COPY t TO 'file.csv'; rows are asked for in a format with --output, and files are \
                       sent with `querent import`"
                    .into(),
            });
        }
    };
    let rest = items.get(at + 2..).unwrap_or_default();
    let end = rest.iter().position(|item| item.is_token(&Token::SemiColon)).unwrap_or(rest.len());
    let (rest, after) = rest.split_at(end);
    let rest = if rest.first().is_some_and(|item| item.is("with")) { &rest[1..] } else { rest };
    let options = match rest {
        [] => Vec::new(),
        [one] if let Some(group) = one.parentheses() => options(&group.items)?,
        words => match older_options(words) {
            Some(found) => found,
            None if items[at].is("from") => return Err(wrong_options()),
            None => return Ok(items),
        },
    };
    if items[at].is("to") {
        let mut written = match source {
            // `COPY t (a, b) TO 'file'` is of a query of these columns.
            [name @ .., columns] if !name.is_empty() && columns.parentheses().is_some() => {
                let columns = columns.parentheses().map(|group| group.items.clone()).unwrap_or_default();
                let from = joined([vec![word("FROM", span)], name.to_vec()]);
                let query = parenthesized(joined([vec![word("SELECT", span)], columns, from]), span);
                joined([vec![first.clone(), query], items[at..at + 2].to_vec()])
            }
            _ => items[..at + 2].to_vec(),
        };
        if !options.is_empty() {
            let mut inside = Vec::new();
            for (name, value) in options {
                if !inside.is_empty() {
                    inside.push(token(Token::Comma, span));
                }
                inside.push(token(Token::SingleQuotedString(name), span));
                inside.push(token(Token::SingleQuotedString(value), span));
            }
            written.extend([word("OPTIONS", span), parenthesized(inside, span)]);
        }
        return Ok(joined([written, after.to_vec()]));
    }
    let format = options.iter().find(|(name, _)| name == "format").map(|(_, value)| value.to_lowercase());
    let name = text.to_lowercase();
    let plain = [".gz", ".zst", ".bz2", ".xz"].iter().find_map(|ending| name.strip_suffix(*ending)).unwrap_or(&name);
    let ending = plain.rsplit('.').next().unwrap_or_default();
    let reader = match format.as_deref().unwrap_or(ending) {
        "parquet" | "parq" | "pq" => "read_parquet",
        "json" | "ndjson" | "jsonl" | "geojson" => "read_json",
        "arrow" | "arrows" | "ipc" | "feather" => "read_arrow",
        "xlsx" | "xlsm" | "xlsb" | "xls" | "ods" | "excel" => "read_xlsx",
        _ => "read_csv",
    };
    let mut arguments = vec![vec![token(Token::SingleQuotedString(text), span)]];
    for (name, value) in options.into_iter().filter(|(name, _)| name != "format") {
        arguments.push(vec![
            word(&name, span),
            token(Token::Assignment, span),
            token(Token::SingleQuotedString(value), span),
        ]);
    }
    if matches!(reader, "read_csv" | "read_json") {
        let is_copied = token(Token::SingleQuotedString("true".into()), span);
        arguments.push(vec![word(marks::COPIED, span), token(Token::Assignment, span), is_copied]);
    }
    let insert = vec![word("INSERT", span), word("INTO", span)];
    let all = || vec![token(Token::Mul, span)];
    // Members of an object have names and no order.
    let (target, columns) = match (reader, source) {
        ("read_json", [name @ .., columns])
            if !name.is_empty()
                && let Some(columns) = columns.parentheses() =>
        {
            (found_by_name(name, span), columns.items.clone())
        }
        ("read_json", name) => (found_by_name(name, span), all()),
        _ => (source.to_vec(), all()),
    };
    let select = joined([vec![word("SELECT", span)], columns, vec![word("FROM", span)]]);
    Ok(joined([insert, target, select, call(reader, arguments, span), after.to_vec()]))
}

/// Returns a table whose columns an INSERT finds by the names of its query.
fn found_by_name(table: &[Item], span: Span) -> Vec<Item> {
    joined([table.to_vec(), vec![parenthesized(vec![word(marks::BY_NAME, span)], span)]])
}

/// Returns the error of an option whose value is a list or a star, as those are that there are not.
fn no_option(name: &str) -> EngineError {
    let hint = match name {
        "partition_by" => "write a COPY for each part: COPY (SELECT ... WHERE region = 'north') TO 'north.parquet'",
        _ => COPY_OPTIONS,
    };
    EngineError::Unsupported { what: format!("the option `{name}` of COPY"), hint: hint.into() }
}

fn wrong_options() -> EngineError {
    EngineError::Plan { message: "the options of COPY are written (FORMAT csv, DELIMITER ';', HEADER)".into() }
}

/// Reads `DELIMITER ';' CSV HEADER`, as PostgreSQL had options before they stood in parentheses; `None` for anything else.
fn older_options(items: &[Item]) -> Option<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = items;
    while let Some((name, after)) = rest.split_first() {
        let name = name.word()?.to_lowercase();
        rest = after;
        match name.as_str() {
            "csv" => found.push(("format".to_owned(), name)),
            "header" => found.push((name, "true".to_owned())),
            "delimiter" | "null" | "quote" | "escape" => {
                if rest.first().is_some_and(|item| item.is("as")) {
                    rest = &rest[1..];
                }
                let (value, after) = rest.split_first()?;
                let Item::Token(TokenWithSpan {
                    token: Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text),
                    ..
                }) = value
                else {
                    return None;
                };
                found.push((name, text.clone()));
                rest = after;
            }
            _ => return None,
        }
    }
    Some(found)
}

/// Reads `FORMAT csv, HEADER, DELIMITER ';'`.
fn options(items: &[Item]) -> Result<Vec<(String, String)>> {
    let wrong = wrong_options;
    let mut found = Vec::new();
    for entry in items.split(|item| item.is_token(&Token::Comma)) {
        let Some((name, value)) = entry.split_first() else { return Err(wrong()) };
        let name = match name {
            Item::Token(TokenWithSpan { token: Token::Word(word), .. }) => word.value.to_lowercase(),
            Item::Token(TokenWithSpan { token: Token::SingleQuotedString(text), .. }) => text.to_lowercase(),
            _ => return Err(wrong()),
        };
        let value = match value {
            [equals, rest @ ..] if equals.is_token(&Token::Eq) => rest,
            other => other,
        };
        let value = match value {
            [] => "true".to_owned(),
            [Item::Token(TokenWithSpan { token, .. })] => match token {
                Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) | Token::Number(text, _) => {
                    text.clone()
                }
                Token::Word(word) => word.value.clone(),
                _ => return Err(no_option(&name)),
            },
            _ => return Err(no_option(&name)),
        };
        found.push((name, value));
    }
    Ok(found)
}
