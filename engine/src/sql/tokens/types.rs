//! Types and intervals with parentheses: DuckDB's `STRUCT(a INT)` is `STRUCT<a INT>`, and `INTERVAL (3) MONTHS`, which the parser
//! takes for a precision, is `INTERVAL 3 MONTHS`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::brackets::{Item, parenthesized, token};
use super::is_word;

/// What may begin the type of a field. A name and one of these are no arguments of a call.
const TYPES: [&str; 65] = [
    "bigint",
    "binary",
    "blob",
    "bool",
    "boolean",
    "bpchar",
    "bytea",
    "char",
    "character",
    "clob",
    "date",
    "datetime",
    "dec",
    "decimal",
    "double",
    "float",
    "float32",
    "float4",
    "float64",
    "float8",
    "guid",
    "hugeint",
    "int",
    "int1",
    "int16",
    "int2",
    "int32",
    "int4",
    "int64",
    "int8",
    "integer",
    "interval",
    "json",
    "jsonb",
    "logical",
    "long",
    "map",
    "mediumint",
    "numeric",
    "nvarchar",
    "real",
    "short",
    "smallint",
    "string",
    "struct",
    "text",
    "time",
    "timestamp",
    "timestamp_ms",
    "timestamp_ns",
    "timestamp_s",
    "timestamptz",
    "tinyint",
    "tinytext",
    "ubigint",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "uinteger",
    "usmallint",
    "utinyint",
    "uuid",
    "varbinary",
    "varchar",
];

/// Returns whether one of these may be among the tokens.
pub(super) fn has_types(tokens: &[TokenWithSpan]) -> bool {
    tokens.windows(2).any(|pair| match pair {
        [first, second] => {
            second.token == Token::LParen && ["struct", "interval"].iter().any(|text| is_word(&first.token, text))
        }
        _ => false,
    })
}

/// Rewrites one level of brackets.
pub(super) fn types(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next() {
        let span = item.span();
        let Some(group) = rest.peek().and_then(Item::parentheses) else {
            kept.push(item);
            continue;
        };
        if item.is("struct") && names_fields(&group.items) {
            let fields = group.items.clone();
            rest.next();
            kept.push(item);
            kept.push(token(Token::Lt, span));
            kept.extend(fields);
            kept.push(token(Token::Gt, span));
        } else if item.is("interval") && is_number(&group.items) {
            let number = group.items.clone();
            rest.next();
            let has_unit = rest.peek().and_then(Item::word).is_some_and(is_unit);
            kept.push(item);
            match has_unit {
                true => kept.extend(number),
                // A precision: `x::INTERVAL(3)`.
                false => kept.push(parenthesized(number, span)),
            }
        } else {
            kept.push(item);
        }
    }
    kept
}

fn is_unit(word: &str) -> bool {
    const UNITS: [&str; 13] = [
        "millennium",
        "century",
        "decade",
        "year",
        "quarter",
        "month",
        "week",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "microsecond",
    ];
    let word = word.to_lowercase();
    UNITS.contains(&word.strip_suffix('s').unwrap_or(&word))
}

fn names_fields(items: &[Item]) -> bool {
    match items {
        [Item::Token(TokenWithSpan { token: Token::Word(_), .. }), second, ..] => second.is_any(&TYPES),
        _ => false,
    }
}

fn is_number(items: &[Item]) -> bool {
    matches!(items, [Item::Token(TokenWithSpan { token: Token::Number(..), .. })])
}
