//! What is rewritten before a statement is parsed, because the parser knows other forms of it: digit separators, list
//! comprehensions, lambdas, `USING SAMPLE`, `INSERT ... BY NAME`, `SORTED BY`, `SUMMARIZE`, `STRUCT(...)` types, DuckDB's `PIVOT` and `UNPIVOT`, `ASOF JOIN`. Each becomes a form
//! that is parsed and that later steps know ([`super::relations`]).
//!
//! Brackets are matched first, so that every search stays on one level of them.

mod brackets;
mod comprehensions;
mod copies;
mod explain_options;
mod insert_by;
mod key_columns;
mod merge_actions;
mod merge_columns;
mod named_columns;
mod nested_joins;
mod operators;
mod other_forms;
mod pivots;
mod samples;
mod sorted_by;
mod trailing_commas;
mod trims;
mod typed_texts;
mod types;

use std::str::Chars;

use datafusion::sql::sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan};

use self::brackets::{Item, call, flat, joined, parenthesized, token, tree, word};
use self::comprehensions::comprehension;
use self::copies::copies;
use self::explain_options::explain_options;
use self::insert_by::insert_by;
use self::key_columns::key_columns;
use self::merge_actions::merge_actions;
use self::merge_columns::merge_columns;
use self::named_columns::named_columns;
use self::nested_joins::nested_joins;
use self::operators::{has_operators, operators};
use self::other_forms::other_forms;
use self::pivots::{pivot, pivot_columns, unpivot};
use self::samples::samples;
use self::sorted_by::sorted_by;
use self::trailing_commas::trailing_commas;
use self::trims::trimmed;
use self::types::{has_types, types};
use super::marks;
use crate::error::{EngineError, Result};

/// The functions whose arguments may be lambdas.
const HIGHER_ORDER: [&str; 18] = [
    "columns",
    "list_transform",
    "array_transform",
    "list_apply",
    "array_apply",
    "apply",
    "transform",
    "list_filter",
    "array_filter",
    "filter",
    "list_reduce",
    "array_reduce",
    "reduce",
    "list_any_match",
    "array_any_match",
    "any_match",
    "list_all_match",
    "array_all_match",
];

/// What a query may stand behind.
const BEFORE_QUERY: [&str; 3] = ["as", "explain", "analyze"];

/// Rewrites the tokens of a statement. Errors: `sql_plan_error`, `unsupported`.
pub(super) fn rewrite_tokens(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut tokens = numbers(text, tokens)?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    explain_options(&mut tokens)?;
    trailing_commas(&mut tokens);
    nested_joins(&mut tokens);
    key_columns(&mut tokens);
    insert_by(&mut tokens);
    merge_columns(&mut tokens);
    merge_actions(&mut tokens);
    sorted_by(&mut tokens)?;
    named_columns(&mut tokens);
    let tokens = other_forms(tokens)?;
    let begins_with_from = |pair: &[TokenWithSpan]| matches!(pair, [open, next] if open.token == Token::LParen && is_word(&next.token, "from"));
    let has_powers = tokens.windows(2).any(|pair| pair.iter().all(|token| token.token == Token::Mul));
    if !has_powers
        && !has_operators(&tokens)
        && !has_types(&tokens)
        && !tokens.iter().any(is_trigger)
        && !tokens.windows(2).any(begins_with_from)
        && !is_from_first(&tokens)
    {
        return Ok(tokens);
    }
    match tree(&tokens) {
        Some(items) => Ok(flat(level(copies(items)?, None)?)),
        // Brackets that do not match are the parser's to report.
        None => Ok(tokens),
    }
}

/// Whether a statement's query is `FROM t WHERE ...`, by itself or behind one of these words or `WITH c AS (...)`.
fn is_from_first(tokens: &[TokenWithSpan]) -> bool {
    let has_with = tokens.first().is_some_and(|first| is_word(&first.token, "with"));
    let is_begin = |before: &TokenWithSpan| {
        (has_with && before.token == Token::RParen) || BEFORE_QUERY.iter().any(|word| is_word(&before.token, word))
    };
    tokens.iter().enumerate().any(|(at, token)| {
        is_word(&token.token, "from") && at.checked_sub(1).and_then(|before| tokens.get(before)).is_none_or(is_begin)
    })
}

fn is_word(token: &Token, text: &str) -> bool {
    matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.eq_ignore_ascii_case(text))
}

fn is_trigger(token: &TokenWithSpan) -> bool {
    const WORDS: [&str; 14] = [
        "copy",
        "describe",
        "trim",
        "for",
        "sample",
        "table",
        "tablesample",
        "summarize",
        "pivot",
        "unpivot",
        "asof",
        "positional",
        "global",
        "materialized",
    ];
    match &token.token {
        Token::Arrow => true,
        Token::Word(word) => {
            word.quote_style.is_none() && WORDS.iter().any(|text| word.value.eq_ignore_ascii_case(text))
        }
        _ => false,
    }
}

/// Takes the separators out of numbers, and gives `0x1f` its value. A letter right after a number is refused: it would be
/// read as a name for the column.
fn numbers(text: &str, tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut characters = OrderedCharacters { rest: text.chars(), line: 1, column: 1 };
    let mut after_number: Option<String> = None;
    let tokens = &mut joined_numbers(tokens)?;
    for token in tokens.iter_mut() {
        if let (Some(number), Token::Word(word)) = (after_number.take(), &token.token)
            && word.quote_style.is_none()
        {
            return Err(EngineError::Plan {
                message: format!("`{number}{}` is neither a number nor a name; write a space between them", word.value),
            });
        }
        match &mut token.token {
            Token::Number(number, _) => {
                number.retain(|character| character != '_');
                after_number = Some(number.clone());
            }
            // `X'1f'` is bytes and `0x1f` a number; their tokens are the same.
            Token::HexStringLiteral(digits) if characters.at(token.span.start) == Some('0') => {
                let digits: String = digits.chars().filter(|character| *character != '_').collect();
                let value = u64::from_str_radix(&digits, 16).map_err(|_| EngineError::Plan {
                    message: format!("`0x{digits}` is larger than an integer of 64 bits"),
                })?;
                token.token = Token::Number(value.to_string(), false);
            }
            _ => {}
        }
    }
    Ok(std::mem::take(tokens))
}

/// Leaves out the tokens at some places, which are in order.
fn leave_out(tokens: &mut Vec<TokenWithSpan>, places: Vec<usize>) {
    let mut places = places.into_iter().peekable();
    let mut at = 0;
    tokens.retain(|_| {
        let is_left_out = places.next_if_eq(&at).is_some();
        at += 1;
        !is_left_out
    });
}

/// The characters of a text, by places that are asked for in order.
struct OrderedCharacters<'t> {
    rest: Chars<'t>,
    line: u64,
    column: u64,
}

impl OrderedCharacters<'_> {
    /// Returns the character at a place that is not before the last one.
    fn at(&mut self, place: Location) -> Option<char> {
        loop {
            let mut next = self.rest.clone();
            let character = next.next()?;
            if (self.line, self.column) >= (place.line, place.column) {
                return Some(character);
            }
            self.rest = next;
            (self.line, self.column) = match character {
                '\n' => (self.line + 1, 1),
                _ => (self.line, self.column + 1),
            };
        }
    }
}

/// `0b101` and `0o17` are numbers: the tokenizer has a `0` and a name.
fn joined_numbers(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>> {
    let mut kept: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    for token in tokens {
        let digits = match &token.token {
            Token::Word(word) if word.quote_style.is_none() => {
                let (base, digits) = word.value.split_at_checked(1).unwrap_or(("", ""));
                let base = match base {
                    "b" | "B" => 2,
                    "o" | "O" => 8,
                    _ => 0,
                };
                let is_digit = |digit: char| digit == '_' || digit.is_digit(base);
                (base > 0 && !digits.is_empty() && digits.chars().all(is_digit))
                    .then(|| (base, digits.replace('_', "")))
            }
            _ => None,
        };
        let after_zero =
            kept.last().is_some_and(|last| matches!(&last.token, Token::Number(zero, false) if zero == "0"));
        match (digits, kept.last_mut()) {
            (Some((base, digits)), Some(last)) if after_zero => {
                let value = u64::from_str_radix(&digits, base)
                    .map_err(|_| wrong(&format!("`{digits}` is larger than an integer of 64 bits")))?;
                last.token = Token::Number(value.to_string(), false);
            }
            _ => kept.push(token),
        }
    }
    Ok(kept)
}

/// Rewrites one level of brackets, the inner ones first. `function` is the name before the brackets.
fn level(items: Vec<Item>, function: Option<&str>) -> Result<Vec<Item>> {
    let mut inner: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        match item {
            Item::Group(mut group) => {
                let name = inner.last().and_then(Item::word).map(str::to_lowercase);
                group.items = level(group.items, name.as_deref())?;
                match comprehension(&group) {
                    Some(call) => inner.extend(call),
                    None => inner.push(Item::Group(group)),
                }
            }
            token => inner.push(token),
        }
    }
    inner = pivot_columns(inner, function);
    inner = distances(powers(from_first(materialized(types(trimmed(inner, function))), function)));
    arrows(&mut inner, function.is_some_and(|function| HIGHER_ORDER.contains(&function)));
    let items = statement_forms(operators(inner), function == Some("from"))?;
    let items = joins(items)?;
    samples(items)
}

/// Whether a common table expression is materialized changes no answer.
fn materialized(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    let mut rest = items.into_iter().enumerate().peekable();
    while let Some((index, item)) = rest.next() {
        let before_query = rest.peek().is_some_and(|(_, next)| next.parentheses().is_some());
        if item.is("materialized") && before_query && index > 0 {
            kept.pop_if(|last| last.is("not"));
            continue;
        }
        kept.push(item);
    }
    kept
}

/// `a ** b` is `a ^ b`.
fn powers(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let is_second = item.is_token(&Token::Mul) && kept.last().is_some_and(|last| last.is_token(&Token::Mul));
        match (is_second, kept.last_mut()) {
            (true, Some(last)) => *last = token(Token::Caret, item.span()),
            _ => kept.push(item),
        }
    }
    kept
}

/// `a <-> b` comes as `a < -> b`.
fn distances(items: Vec<Item>) -> Vec<Item> {
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    for item in items {
        let is_second = item.is_token(&Token::Arrow) && kept.last().is_some_and(|last| last.is_token(&Token::Lt));
        match (is_second, kept.last_mut()) {
            (true, Some(last)) => *last = token(Token::CustomBinaryOperator(marks::DISTANCE.to_owned()), item.span()),
            _ => kept.push(item),
        }
    }
    kept
}

/// A query that begins with FROM: `(FROM t SELECT a WHERE b)` is `(SELECT a FROM t WHERE b)`, `FROM t WHERE b` is
/// `SELECT * FROM t WHERE b`.
fn from_first(mut items: Vec<Item>, function: Option<&str>) -> Vec<Item> {
    const AFTER: [&str; 12] = [
        "where",
        "group",
        "having",
        "window",
        "qualify",
        "order",
        "limit",
        "offset",
        "union",
        "except",
        "intersect",
        "using",
    ];
    const CALLS: [&str; 5] = ["trim", "substring", "extract", "overlay", "position"];
    let is_call = function.is_some_and(|function| CALLS.contains(&function));
    if is_call {
        return items;
    }
    // A statement may have something before its query.
    let begins = |at: usize| match at.checked_sub(1).and_then(|before| items.get(before)) {
        None => true,
        Some(before) => function.is_none() && (before.is_any(&BEFORE_QUERY) || is_behind_with(&items[..at])),
    };
    let Some(start) = items.iter().position(|item| item.is("from")).filter(|at| begins(*at)) else { return items };
    let before: Vec<Item> = items.drain(..start).collect();
    joined([before, with_select_first(items, &AFTER)])
}

/// Whether these are `WITH` and its queries.
fn is_behind_with(before: &[Item]) -> bool {
    before.first().is_some_and(|first| first.is("with"))
        && before.last().is_some_and(|last| last.parentheses().is_some())
        && !before.iter().any(begins_statement)
}

fn begins_statement(item: &Item) -> bool {
    item.is_any(&["select", "insert", "delete", "update", "merge", "create", "copy"])
}

/// Puts the select list of a query that begins with FROM first. `after` begin what is behind it.
fn with_select_first(items: Vec<Item>, after: &[&str]) -> Vec<Item> {
    let Some(first) = items.first() else { return items };
    let span = first.span();
    let Some(at) = items.iter().position(|item| item.is("select")) else {
        return joined([vec![word("SELECT", span), token(Token::Mul, span)], items]);
    };
    let ends = |item: &Item| item.is_any(after) || item.is_token(&Token::SemiColon);
    let end = items.iter().skip(at).position(ends).map_or(items.len(), |index| at + index);
    joined([items[at..end].to_vec(), items[..at].to_vec(), items[end..].to_vec()])
}

/// `->` is a lambda's arrow right behind the names that begin an argument, and otherwise takes a part of JSON.
fn arrows(items: &mut [Item], takes_lambdas: bool) {
    let comma = |item: Option<&Item>| item.is_none_or(|item| item.is_token(&Token::Comma));
    for index in 0..items.len() {
        if !items.get(index).is_some_and(|item| item.is_token(&Token::Arrow)) {
            continue;
        }
        let begins = index > 0 && comma(index.checked_sub(2).and_then(|before| items.get(before)));
        if let Some(Item::Token(token)) = items.get_mut(index)
            && !(takes_lambdas && begins)
        {
            token.token = Token::CustomBinaryOperator(marks::JSON_ARROW.to_owned());
        }
    }
}

/// `TABLE`, `SUMMARIZE`, `PIVOT` and `UNPIVOT` where a query can begin, and `DESCRIBE` in FROM.
fn statement_forms(items: Vec<Item>, is_nested: bool) -> Result<Vec<Item>> {
    if let [first, name, ..] = items.as_slice()
        && first.is("table")
        && name.parentheses().is_none()
    {
        let span = first.span();
        let select = vec![word("SELECT", span), token(Token::Mul, span), word("FROM", span)];
        return Ok(joined([select, items[1..].to_vec()]));
    }
    const BEFORE: [&str; 8] = ["as", "explain", "analyze", "verbose", "describe", "all", "union", "materialized"];
    // Looked for once, as [`is_behind_with`] looks at each place.
    let statement = items.iter().position(begins_statement).unwrap_or(items.len());
    let begins = |index: usize| match index.checked_sub(1).map(|before| &items[before]) {
        None => true,
        Some(before) if before.is_any(&BEFORE) => true,
        Some(before) => index <= statement && before.parentheses().is_some() && items[0].is("with"),
    };
    let found =
        (0..items.len()).find(|index| items[*index].is_any(&["summarize", "pivot", "unpivot"]) && begins(*index));
    let found = found.or_else(|| (is_nested && items.len() > 1 && items[0].is("describe")).then_some(0));
    let Some(at) = found else { return Ok(items) };
    let (before, rest) = (items[..at].to_vec(), &items[at + 1..]);
    let end = rest.iter().position(|item| item.is_token(&Token::SemiColon)).unwrap_or(rest.len());
    let (rest, after) = (&rest[..end], rest[end..].to_vec());
    let span = items[at].span();
    if rest.is_empty() || (at > 0 && rest.first().is_some_and(|item| item.is_token(&Token::Comma))) {
        return Ok(items);
    }
    let query = if items[at].is_any(&["summarize", "describe"]) {
        let mark = if items[at].is("describe") { marks::DESCRIBE } else { marks::SUMMARIZE };
        from_call(mark, vec![vec![parenthesized(source_query(rest, span), span)]], span)
    } else if items[at].is("pivot") {
        pivot(rest, span)?
    } else {
        unpivot(rest, span)?
    };
    Ok(joined([before, query, after]))
}

/// Marks `ASOF JOIN`s and `POSITIONAL JOIN`s, by the parser's flag for GLOBAL.
fn joins(items: Vec<Item>) -> Result<Vec<Item>> {
    let mut items = positional_joins(items)?;
    let has_match_condition = items.iter().any(|item| item.is("match_condition"));
    for index in 0..items.len() {
        let joins =
            |next: Option<&Item>| next.is_some_and(|next| next.is_any(&["join", "left", "inner", "right", "full"]));
        if !joins(items.get(index + 1)) {
            continue;
        }
        if items[index].is("global") {
            return Err(EngineError::Unsupported { what: "GLOBAL JOIN".into(), hint: "leave GLOBAL out".into() });
        }
        if items[index].is("asof") && !has_match_condition {
            let span = items[index].span();
            items[index] = word("GLOBAL", span);
        }
    }
    Ok(items)
}

/// `a POSITIONAL JOIN b` becomes a cross join with the flag.
fn positional_joins(items: Vec<Item>) -> Result<Vec<Item>> {
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next() {
        let before_join = rest.peek().is_some_and(|next| next.is("join"));
        if item.is("global") && rest.peek().is_some_and(|next| next.is("cross")) {
            return Err(EngineError::Unsupported { what: "GLOBAL JOIN".into(), hint: "leave GLOBAL out".into() });
        }
        match item.is("positional") && before_join {
            true => kept.extend([word("GLOBAL", item.span()), word("CROSS", item.span())]),
            false => kept.push(item),
        }
    }
    Ok(kept)
}

/// `SELECT * FROM name(arguments)`.
fn from_call(name: &str, arguments: Vec<Vec<Item>>, span: Span) -> Vec<Item> {
    let select = vec![word("SELECT", span), token(Token::Mul, span), word("FROM", span)];
    joined([select, call(name, arguments, span)])
}

/// The query of what stands where a table or a query can. As an argument of a call the parser knows those that begin with
/// SELECT or WITH only: others go behind FROM.
fn source_query(items: &[Item], span: Span) -> Vec<Item> {
    fn is_query(items: &[Item]) -> bool {
        items.first().is_some_and(|first| first.is_any(&["select", "with", "from", "table"]))
    }
    let select_from =
        |relation| joined([vec![word("SELECT", span), token(Token::Mul, span), word("FROM", span)], relation]);
    match items {
        _ if is_query(items) => items.to_vec(),
        [one] if let Some(group) = one.parentheses().filter(|group| is_query(&group.items)) => group.items.clone(),
        [first, ..] if first.is("values") => select_from(vec![parenthesized(items.to_vec(), span)]),
        _ => select_from(items.to_vec()),
    }
}

fn wrong(message: &str) -> EngineError {
    EngineError::Plan { message: message.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use crate::sql::parse::parse_statement;

    fn parsed(text: &str) -> String {
        parse_statement(text).map_or_else(|error| error.to_string(), |parsed| parsed.statement.to_string())
    }

    #[test]
    fn forms_become_what_is_parsed() {
        for (text, rewritten) in [
            ("SELECT 1_000, 0xff", "SELECT 1000, 255"),
            ("SELECT 'ä\n', X'01', 0x1f,\r\n X'02', 0xff", "SELECT 'ä\n', X'01', 31, X'02', 255"),
            ("SELECT TIMESTAMP_S 'a', TIMESTAMP_S 'b'", "SELECT CAST('a' AS TIMESTAMP_S), CAST('b' AS TIMESTAMP_S)"),
            ("SELECT [x FOR x IN l]", "SELECT list_transform(l, x -> x)"),
            ("SELECT [x + 1 FOR x IN l IF x > 1]", "SELECT list_transform(list_filter(l, x -> x > 1), x -> x + 1)"),
            ("SELECT 2 ** 3, count(*) FROM t", "SELECT 2 ^ 3, count(*) FROM t"),
            ("SELECT a<->b FROM t WHERE a < -1", "SELECT a <-> b FROM t WHERE a < -1"),
            ("SUMMARIZE t", "SELECT * FROM summarize((SELECT * FROM t))"),
            ("SUMMARIZE (VALUES (1))", "SELECT * FROM summarize((SELECT * FROM (VALUES (1))))"),
            ("TABLE t", "SELECT * FROM t"),
            ("SELECT * FROM (FROM t SELECT a WHERE b)", "SELECT * FROM (SELECT a FROM t WHERE b)"),
            ("FROM t SELECT a;", "SELECT a FROM t"),
            ("WITH t AS (SELECT 1 AS a) FROM t SELECT a, *;", "WITH t AS (SELECT 1 AS a) SELECT a, * FROM t"),
            ("SELECT * FROM t USING SAMPLE 5%", "SELECT * FROM sample((SELECT * FROM t), 5, 'percent')"),
            ("SELECT * FROM t TABLESAMPLE BERNOULLI (5)", "SELECT * FROM t TABLESAMPLE (5 PERCENT)"),
            ("WITH t AS NOT MATERIALIZED (SELECT 1) SELECT * FROM t", "WITH t AS (SELECT 1) SELECT * FROM t"),
        ] {
            assert_eq!(parsed(text), rewritten, "{text}");
        }
    }

    /// Of each text the rewriting took the square of its length, minutes of a core that nothing ended; samples and frames were
    /// nested besides, as deep as the stack was.
    #[test]
    fn long_statements_are_rewritten_in_time() {
        for (begin, part) in [
            ("SELECT ", "TIMESTAMP_S 'a', "),
            ("SELECT ", "X'00', "),
            ("SELECT ", "LIMIT 1 %, "),
            ("SELECT ", "BETWEEN ASYMMETRIC, "),
            ("SELECT ", ") quarters, "),
            ("SELECT ", ") IGNORE NULLS), "),
            ("SELECT ", "ROW EXCLUDE NO OTHERS, "),
            ("SELECT ", "(a JOIN b JOIN c ON x ON y), "),
            ("MERGE INTO t, ", "THEN DO NOTHING, "),
            ("MERGE INTO t, ", "THEN UPDATE WHEN, "),
            ("SELECT * FROM a ", "USING SAMPLE 1% WHERE, "),
        ] {
            let text = format!("{begin}{}1", part.repeat(20_000));
            let began = Instant::now();
            let _ = parse_statement(&text);
            assert!(began.elapsed() < Duration::from_secs(60), "{part}: {:?}", began.elapsed());
        }
    }

    #[test]
    fn what_only_looks_like_one_stays() {
        for text in [
            "SELECT sample, pivot, summarize FROM t",
            "SELECT * FROM t AS pivot",
            "SELECT a FROM t FOR UPDATE",
            "SELECT j ->> 'a' FROM t",
            "SELECT trim(FROM t)",
        ] {
            assert!(!parsed(text).contains("(SELECT"), "{text}: {}", parsed(text));
        }
    }

    #[test]
    fn brackets_that_do_not_match_are_the_parsers() {
        for text in ["SELECT (1", "SELECT [x FOR x IN (l]", "SELECT 1)"] {
            assert!(parse_statement(text).is_err(), "{text}");
        }
    }
}
