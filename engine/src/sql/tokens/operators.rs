//! Operators that the parser does not know, or reads as names: `NOTNULL`, `GLOB`, `IN [list]`, `FILTER (condition)`, and
//! `* LIKE 'pattern'` and `alias: value` in a select list.

use datafusion::sql::sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use super::brackets::{Group, Item, call, joined, parenthesized, token, word};
use super::is_word;
use crate::sql::marks;

/// Returns whether any of these operators may be among the tokens.
pub(super) fn has_operators(tokens: &[TokenWithSpan]) -> bool {
    const WORDS: [&str; 4] = ["notnull", "isnull", "glob", "filter"];
    tokens.windows(2).any(|pair| match pair {
        [first, second] => match (&first.token, &second.token) {
            (Token::Word(_), Token::Colon) => true,
            (Token::DoubleTilde | Token::Tilde, Token::Tilde) => true,
            (Token::Word(_), Token::LBracket) => is_word(&first.token, "in"),
            (Token::Mul, Token::Word(_)) => {
                ["like", "ilike", "similar", "glob", "not"].iter().any(|text| is_word(&second.token, text))
            }
            (Token::Word(_), _) if WORDS.iter().any(|text| is_word(&first.token, text)) => true,
            (_, Token::Word(_)) => ["notnull", "isnull"].iter().any(|text| is_word(&second.token, text)),
            _ => false,
        },
        _ => false,
    })
}

/// Rewrites one level of brackets.
pub(super) fn operators(items: Vec<Item>) -> Vec<Item> {
    let is_comprehension = items.iter().any(|item| item.is("for"));
    let mut kept: Vec<Item> = Vec::with_capacity(items.len());
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next() {
        let span = item.span();
        let next_is_group = rest.peek().is_some_and(|next| next.parentheses().is_some());
        let after_value = kept.last().is_some_and(ends_value) && !is_before_name(&kept, rest.peek());
        let next_is_text =
            matches!(rest.peek(), Some(Item::Token(next)) if matches!(next.token, Token::SingleQuotedString(_)));
        if after_value && !next_is_group && item.is_any(&["notnull", "isnull"]) {
            kept.push(word("IS", span));
            if item.is("notnull") {
                kept.push(word("NOT", span));
            }
            kept.push(word("NULL", span));
        } else if (after_value || kept.last().is_some_and(|last| last.is_token(&Token::Mul)) && next_is_text)
            && item.is("glob")
        {
            let is_negated = kept.pop_if(|last| last.is("not")).is_some();
            kept.push(operator(if is_negated { marks::NOT_GLOB } else { marks::GLOB }, span));
        } else if item.is("not") && rest.peek().is_some_and(|next| next.is("glob")) {
            rest.next();
            kept.push(operator(marks::NOT_GLOB, span));
        } else if !is_comprehension && item.is("in") && rest.peek().is_some_and(is_list) {
            let is_negated = kept.pop_if(|last| last.is("not")).is_some();
            kept.push(operator(if is_negated { marks::NOT_IN_LIST } else { marks::IN_LIST }, span));
        } else if after_value
            && (item.is_token(&Token::DoubleTilde) && rest.peek().is_some_and(|next| next.is_token(&Token::Tilde)))
        {
            rest.next();
            kept.push(operator(marks::GLOB, span));
        } else if item.is("filter")
            && kept.last().is_some_and(|last| last.parentheses().is_some())
            && rest.peek().and_then(Item::parentheses).is_some_and(|group| !begins_with(group, "where"))
        {
            kept.push(item);
            if let Some(Item::Group(group)) = rest.next() {
                kept.push(parenthesized(joined([vec![word("WHERE", span)], group.items]), span));
            }
        } else {
            kept.push(item);
        }
    }
    select_lists(kept)
}

fn operator(mark: &str, span: Span) -> Item {
    token(Token::CustomBinaryOperator(mark.to_owned()), span)
}

fn begins_with(group: &Group, keyword: &str) -> bool {
    group.items.first().is_some_and(|first| first.is(keyword))
}

fn is_list(item: &Item) -> bool {
    matches!(item, Item::Group(group) if group.open.token == Token::LBracket)
}

/// Returns whether a value may end with an item: a name, a number, a text, brackets.
fn ends_value(item: &Item) -> bool {
    const KEYWORDS: [&str; 26] = [
        "select",
        "distinct",
        "where",
        "and",
        "or",
        "not",
        "on",
        "having",
        "qualify",
        "when",
        "then",
        "else",
        "case",
        "from",
        "as",
        "in",
        "like",
        "ilike",
        "between",
        "is",
        "by",
        "return",
        "returning",
        "join",
        "all",
        "any",
    ];
    match item {
        Item::Group(_) => true,
        Item::Token(own) => match &own.token {
            Token::Word(_) => !item.is_any(&KEYWORDS),
            Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::EscapedStringLiteral(_)
            | Token::Placeholder(_) => true,
            _ => false,
        },
    }
}

/// Returns whether what stands behind these items, and before `next`, is a name and no operator: `INTO notnull`,
/// `UPDATE notnull`, `SET notnull = 1`.
fn is_before_name(items: &[Item], next: Option<&Item>) -> bool {
    match items {
        [only] if only.is_any(&["update", "describe", "summarize", "truncate", "analyze", "copy"]) => true,
        [.., before, last] if before.is("if") && last.is("exists") || before.is("rename") && last.is("to") => true,
        [.., last] if last.is("set") => next.is_some_and(|next| next.is_token(&Token::Eq)),
        [.., last] => last.is_any(&["into", "table", "column"]),
        [] => false,
    }
}

/// Rewrites the items of select lists: `* LIKE 'a%'` is `COLUMNS('^a.*$')`, and `alias: value` is `value AS alias`.
fn select_lists(items: Vec<Item>) -> Vec<Item> {
    const ENDS: [&str; 16] = [
        "from",
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
        "into",
        "using",
        "fetch",
        "select",
    ];
    if !items.iter().any(|item| item.is("select")) {
        return items;
    }
    let mut kept = Vec::with_capacity(items.len());
    let mut rest = items.into_iter().peekable();
    while let Some(item) = rest.next() {
        let is_select = item.is("select");
        kept.push(item);
        if !is_select {
            continue;
        }
        while rest.peek().is_some_and(|next| next.is_any(&["distinct", "all"])) {
            kept.extend(rest.next());
        }
        loop {
            let mut one = Vec::new();
            while let Some(next) = rest.next_if(|next| !next.is_token(&Token::Comma) && !next.is_any(&ENDS)) {
                one.push(next);
            }
            kept.extend(list_item(one));
            match rest.next_if(|next| next.is_token(&Token::Comma)) {
                Some(comma) => kept.push(comma),
                None => break,
            }
        }
    }
    kept
}

fn list_item(items: Vec<Item>) -> Vec<Item> {
    match items.as_slice() {
        [name @ Item::Token(own), colon, value @ ..]
            if colon.is_token(&Token::Colon) && !value.is_empty() && matches!(own.token, Token::Word(_)) =>
        {
            joined([value.to_vec(), vec![word("AS", name.span()), name.clone()]])
        }
        [star, how, Item::Token(pattern)] if star.is_token(&Token::Mul) && how.is_any(&["like", "ilike"]) => {
            match &pattern.token {
                Token::SingleQuotedString(pattern) => {
                    let flags = if how.is("ilike") { "(?i)" } else { "" };
                    columns(&format!("{flags}^{}$", like_regex(pattern)), star.span())
                }
                _ => items,
            }
        }
        [star, how, to, Item::Token(pattern)] if star.is_token(&Token::Mul) && how.is("similar") && to.is("to") => {
            match &pattern.token {
                Token::SingleQuotedString(pattern) => columns(&format!("^(?:{pattern})$"), star.span()),
                _ => items,
            }
        }
        [star, not, how, pattern] if star.is_token(&Token::Mul) && not.is("not") && how.is_any(&["like", "ilike"]) => {
            named_by(star.span(), &[not.clone(), how.clone(), pattern.clone()])
        }
        [star, how @ Item::Token(own), pattern]
            if star.is_token(&Token::Mul)
                && matches!(&own.token, Token::CustomBinaryOperator(mark)
                    if mark == marks::GLOB || mark == marks::NOT_GLOB) =>
        {
            named_by(star.span(), &[how.clone(), pattern.clone()])
        }
        _ => items,
    }
}

/// `COLUMNS(name -> name condition)`.
fn named_by(span: Span, condition: &[Item]) -> Vec<Item> {
    let name = || word("name", span);
    let lambda = joined([vec![name(), token(Token::Arrow, span), name()], condition.to_vec()]);
    call("COLUMNS", vec![lambda], span)
}

fn columns(regex: &str, span: Span) -> Vec<Item> {
    call("COLUMNS", vec![vec![token(Token::SingleQuotedString(regex.to_owned()), span)]], span)
}

fn like_regex(pattern: &str) -> String {
    let part = |char: char| match char {
        '%' => ".*".to_owned(),
        '_' => ".".to_owned(),
        other => regex::escape(&other.to_string()),
    };
    pattern.chars().map(part).collect()
}
