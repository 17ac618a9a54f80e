//! DuckDB's `PIVOT t ON ...` and `UNPIVOT t ON ...`, as calls that [`crate::sql::relations`] plans.
//!
//! `t PIVOT (aggregates FOR a IN (...) b IN (...) GROUP BY c)`: the parser knows one column, and no groups. What is behind its
//! values goes among them, behind calls that say what it is.

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::brackets::{Item, call, joined, parenthesized, token, word};
use super::{from_call, source_query, wrong};
use crate::error::Result;
use crate::sql::marks;

/// `PIVOT t ON a IN (...), b USING aggregates GROUP BY c`.
pub(super) fn pivot(items: &[Item], span: Span) -> Result<Vec<Item>> {
    let clauses = Clauses::split(items, &["on", "using", "group", "order", "limit"]);
    let Some(on) = clauses.get("on") else { return grouped(&clauses, span) };
    let count = || joined([vec![word("count", span)], vec![parenthesized(vec![token(Token::Mul, span)], span)]]);
    let aggregates = clauses.get("using").map_or_else(count, with_marked_names);
    let mut grouped = joined([vec![word("SELECT", span)], aggregates]);
    if let Some(by) = clauses.get("group") {
        grouped.push(word("GROUP", span));
        grouped.extend(by.iter().cloned());
    }
    let mut arguments =
        vec![vec![parenthesized(source_query(clauses.source, span), span)], vec![parenthesized(grouped, span)]];
    for column in on.split(|item| item.is_token(&Token::Comma)) {
        let (column, values) = with_values(column);
        arguments.push(call(marks::PIVOT_ON, vec![column.to_vec()], span));
        if let Some(values) = values {
            let is_query = values.first().is_some_and(|first| first.is_any(&["select", "with", "values"]));
            let values = match (listed_rows(values, span), is_query) {
                (Some(listed), _) => joined([vec![word("SELECT", span)], listed]),
                (None, true) => values.to_vec(),
                (None, false) => joined([vec![word("SELECT", span)], with_marked_names(values)]),
            };
            arguments.push(vec![parenthesized(values, span)]);
        }
    }
    Ok(joined([from_call(marks::PIVOT, arguments, span), clauses.tail()]))
}

/// `PIVOT t USING aggregates GROUP BY c` makes no columns of values: it is a query with groups.
fn grouped(clauses: &Clauses<'_>, span: Span) -> Result<Vec<Item>> {
    let by = clauses.get("group").map(|by| by.get(1..).unwrap_or_default());
    let columns: Vec<&[Item]> = [by, clauses.get("using")].into_iter().flatten().collect();
    if columns.is_empty() {
        return Err(wrong("write PIVOT table ON column [IN (values)] USING aggregate(column) [GROUP BY columns]"));
    }
    let source = vec![word("FROM", span), parenthesized(source_query(clauses.source, span), span)];
    let groups = by.map_or_else(Vec::new, |by| joined([vec![word("GROUP", span), word("BY", span)], by.to_vec()]));
    let selected = columns.join(&token(Token::Comma, span));
    Ok(joined([vec![word("SELECT", span)], selected, source, groups, clauses.tail()]))
}

/// Splits `column IN (values)`. Behind operators `IN` is one of them, and the pivot is on true and false: DuckDB takes values
/// behind a column, a call and brackets only.
fn with_values(on: &[Item]) -> (&[Item], Option<&[Item]>) {
    let is_operand = |item: &Item| match item {
        Item::Group(_) => true,
        Item::Token(TokenWithSpan { token: Token::Word(_) | Token::Period, .. }) => {
            !item.is_any(&["not", "and", "or", "is", "like"])
        }
        Item::Token(_) => false,
    };
    match on {
        [column @ .., keyword, values] if keyword.is("in") && column.iter().all(is_operand) => {
            match values.parentheses() {
                Some(values) => (column, Some(values.items.as_slice())),
                None => (on, None),
            }
        }
        _ => (on, None),
    }
}

/// Returns the values of `VALUES ('a'), ('b')` as a list, each once and without nulls, of which a query makes no columns; `None`
/// where it has more than numbers and texts, or is something else.
fn listed_rows(values: &[Item], span: Span) -> Option<Vec<Item>> {
    let (keyword, rows) = values.split_first()?;
    if !keyword.is("values") {
        return None;
    }
    let mut listed: Vec<&[Item]> = Vec::new();
    for row in rows.split(|item| item.is_token(&Token::Comma)) {
        let [row] = row else { return None };
        let value = row.parentheses()?.items.as_slice();
        let [one @ Item::Token(TokenWithSpan { token, .. })] = value else { return None };
        if one.is("null") {
            continue;
        }
        if !matches!(token, Token::SingleQuotedString(_) | Token::Number(..)) {
            return None;
        }
        if !listed.iter().any(|other| matches!(other, [other] if other.is_token(token))) {
            listed.push(value);
        }
    }
    (!listed.is_empty()).then(|| listed.join(&token(Token::Comma, span)))
}

/// Returns a select list whose names are marked as those that the statement gives.
fn with_marked_names(items: &[Item]) -> Vec<Item> {
    let is_comma = |item: &Item| item.is_token(&Token::Comma);
    let is_literal = |item: &Item| {
        matches!(item, Item::Token(TokenWithSpan { token: Token::SingleQuotedString(_) | Token::Number(..), .. }))
    };
    let mut marked = items.to_vec();
    let mut start = 0;
    for (at, item) in items.iter().enumerate() {
        if is_comma(item) {
            start = at + 1;
        }
        let [.., before] = items.get(start..at).unwrap_or_default() else { continue };
        let is_value = matches!(before, Item::Group(_)) || (at == start + 1 && is_literal(before));
        let is_last = items.get(at + 1).is_none_or(is_comma);
        // What is in quotes behind an operand is a name; other words there may be keywords.
        let is_quoted = matches!(
            item,
            Item::Token(TokenWithSpan { token: Token::Word(name), .. }) if name.quote_style.is_some()
        );
        let ends_operand = is_value || is_literal(before) || before.word().is_some();
        let is_keyword = item.is_any(&["end", "isnull", "notnull"]);
        let is_name = is_last && (before.is("as") || (is_value && !is_keyword) || (is_quoted && ends_operand));
        let name = match item {
            Item::Token(TokenWithSpan { token: Token::Word(name), .. }) => &name.value,
            Item::Token(TokenWithSpan { token: Token::SingleQuotedString(name), .. }) if before.is("as") => name,
            _ => continue,
        };
        if let (true, Some(Item::Token(marked))) = (is_name, marked.get_mut(at)) {
            marked.token = Token::make_word(&format!("{}{name}", marks::PIVOT_NAME), Some('"'));
        }
    }
    marked
}

/// `UNPIVOT t ON columns INTO NAME n VALUE v`, and `ON (a, b), (c, d) INTO NAME n VALUE v, w`.
pub(super) fn unpivot(items: &[Item], span: Span) -> Result<Vec<Item>> {
    const USAGE: &str = "write UNPIVOT table ON columns INTO NAME column VALUE column";
    let include_nulls = items.get(..2).is_some_and(|first| first[0].is("include") && first[1].is("nulls"));
    let items = if include_nulls { &items[2..] } else { items };
    let clauses = Clauses::split(items, &["on", "into", "order", "limit"]);
    let Some(on) = clauses.get("on") else { return Err(wrong(USAGE)) };
    let (name, values) = match clauses.get("into") {
        None => (vec!["name".to_owned()], vec!["value".to_owned()]),
        Some(into) => {
            let is_values = |at: &usize| into[*at].is_any(&["value", "values"]);
            let Some(at) = (2..into.len()).find(is_values) else { return Err(wrong(USAGE)) };
            let [keyword, name @ ..] = &into[..at] else { return Err(wrong(USAGE)) };
            let (Some(name), Some(values)) = (names(name), names(&into[at + 1..])) else { return Err(wrong(USAGE)) };
            if !keyword.is("name") {
                return Err(wrong(USAGE));
            }
            (name, values)
        }
    };
    let [name] = name.as_slice() else { return Err(wrong("UNPIVOT has one column of names: INTO NAME n VALUE v")) };
    let text = |text: &str| vec![token(Token::SingleQuotedString(text.to_owned()), span)];
    let columns = joined([vec![word("SELECT", span)], on.to_vec()]);
    let mut arguments = vec![
        vec![parenthesized(source_query(clauses.source, span), span)],
        text(name),
        text(if include_nulls { "include" } else { "exclude" }),
        vec![parenthesized(columns, span)],
    ];
    arguments.extend(values.iter().map(|value| text(value)));
    Ok(joined([from_call(marks::UNPIVOT, arguments, span), clauses.tail()]))
}

/// Returns names between commas; `None` where there is something else.
fn names(items: &[Item]) -> Option<Vec<String>> {
    let name = |items: &[Item]| match items {
        [Item::Token(TokenWithSpan { token: Token::Word(word), .. })] => Some(word.value.clone()),
        _ => None,
    };
    items.split(|item| item.is_token(&Token::Comma)).map(name).collect()
}

/// Rewrites what is between the brackets of a PIVOT.
pub(super) fn pivot_columns(items: Vec<Item>, function: Option<&str>) -> Vec<Item> {
    match function {
        Some("pivot") => with_all_columns(&items).unwrap_or(items),
        _ => items,
    }
}

/// Returns the items with one list of values; `None` where there is one already.
fn with_all_columns(items: &[Item]) -> Option<Vec<Item>> {
    let at_for = items.iter().position(|item| item.is("for"))?;
    let at_in = at_for + items[at_for..].iter().position(|item| item.is("in"))?;
    let Item::Group(mut values) = items.get(at_in + 1)?.clone() else { return None };
    let mut rest = items.get(at_in + 2..)?;
    let span = values.open.span;
    if rest.is_empty() {
        return None;
    }
    while let Some(first) = rest.first() {
        values.items.push(token(Token::Comma, span));
        if first.is("group") && rest.get(1)?.is("by") {
            values.items.extend(call(marks::PIVOT_GROUP, vec![rest[2..].to_vec()], span));
            break;
        }
        let at_in = rest.iter().position(|item| item.is("in"))?;
        values.items.extend(call(marks::PIVOT_ON, vec![rest[..at_in].to_vec()], span));
        values.items.push(token(Token::Comma, span));
        values.items.extend(rest.get(at_in + 1)?.parentheses()?.items.iter().cloned());
        rest = &rest[at_in + 2..];
    }
    Some(joined([items[..=at_in].to_vec(), vec![Item::Group(values)]]))
}

/// A statement's clauses, each by the keyword that begins it.
struct Clauses<'a> {
    source: &'a [Item],
    clauses: Vec<(&'a str, &'a [Item])>,
    items: &'a [Item],
    tail_at: usize,
}

impl<'a> Clauses<'a> {
    fn split(items: &'a [Item], keywords: &[&'a str]) -> Self {
        let mut starts: Vec<(usize, &'a str)> = Vec::new();
        for (index, item) in items.iter().enumerate() {
            if let Some(keyword) = keywords.iter().find(|keyword| item.is(keyword)) {
                starts.push((index, keyword));
            }
        }
        let source = &items[..starts.first().map_or(items.len(), |(at, _)| *at)];
        let ends = starts.iter().skip(1).map(|(at, _)| *at).chain([items.len()]);
        let clauses = starts.iter().zip(ends).map(|((at, keyword), end)| (*keyword, &items[at + 1..end])).collect();
        let is_tail = |(_, keyword): &&(usize, &str)| matches!(*keyword, "order" | "limit");
        let tail_at = starts.iter().find(is_tail).map_or(items.len(), |(at, _)| *at);
        Self { source, clauses, items, tail_at }
    }

    fn get(&self, keyword: &str) -> Option<&'a [Item]> {
        self.clauses.iter().find(|(own, _)| *own == keyword).map(|(_, items)| *items)
    }

    /// Returns ORDER BY and LIMIT, which are the outer query's.
    fn tail(&self) -> Vec<Item> {
        self.items[self.tail_at..].to_vec()
    }
}
