//! Literals with words that the parser does not know: `TIMESTAMP_NS '...'` is a cast, and of the units of an interval
//! it knows `DECADE`, `CENTURY` and `MILLENNIUM`, not what several of them are called. It would read a column with a
//! name.

use std::collections::HashMap;

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};

use super::is_word;

/// The types of DuckDB that have literals.
const TYPES: [&str; 8] =
    ["timestamp_s", "timestamp_ms", "timestamp_us", "timestamp_ns", "time_ns", "timetz", "bignum", "varint"];

const UNITS: [(&str, &str); 5] = [
    ("quarters", "quarter"),
    ("decades", "decade"),
    ("centuries", "century"),
    ("millennia", "millennium"),
    ("millenniums", "millennium"),
];

/// Returns the tokens with such literals as the parser reads them.
pub(super) fn typed_texts(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let unit_of = |at: usize| {
        let (_, unit) = UNITS.iter().find(|(several, _)| is_word(&tokens[at].token, several))?;
        Some((at, *unit))
    };
    let mut units: Vec<(usize, &str)> = (0..tokens.len()).filter_map(unit_of).collect();
    if !units.is_empty() {
        let opened = opening_brackets(&tokens);
        units.retain(|(at, _)| ends_interval(&tokens[..*at], &opened));
    }
    for (at, unit) in units {
        tokens[at].token = Token::make_word(unit, None);
    }
    let is_typed = |at: usize| {
        let [word, text, ..] = &tokens[at..] else { return false };
        let before = at.checked_sub(1).map(|before| &tokens[before].token);
        let is_named =
            before.is_some_and(|before| is_word(before, "as") || matches!(before, Token::Period | Token::DoubleColon));
        matches!(text.token, Token::SingleQuotedString(_))
            && !is_named
            && TYPES.iter().any(|name| is_word(&word.token, name))
    };
    let found: Vec<usize> = (0..tokens.len()).filter(|at| is_typed(*at)).collect();
    if found.is_empty() {
        return tokens;
    }
    let mut written: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len() + 4 * found.len());
    let mut found = found.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        let with = |token: Token| TokenWithSpan { token, span };
        match found.peek().and_then(|name| at.checked_sub(*name)) {
            Some(0) => written.extend([with(Token::make_keyword("CAST")), with(Token::LParen), token]),
            Some(_) => {
                found.next();
                let name = written.pop();
                written.extend([token, with(Token::make_keyword("AS"))]);
                written.extend(name);
                written.push(with(Token::RParen));
            }
            None => written.push(token),
        }
    }
    written
}

/// Returns the tokens with `IGNORE NULLS` behind the call of a window function, where the parser would give it to a call that is
/// the last argument: `lag(f(x) IGNORE NULLS) OVER ...`.
pub(super) fn nulls_behind_calls(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    const FUNCTIONS: [&str; 6] = ["lag", "lead", "first_value", "last_value", "nth_value", "any_value"];
    let is_such = |at: &usize| {
        let [close, treatment, nulls, end, ..] = &tokens[*at..] else { return false };
        close.token == Token::RParen
            && end.token == Token::RParen
            && is_word(&nulls.token, "nulls")
            && (is_word(&treatment.token, "ignore") || is_word(&treatment.token, "respect"))
            && !tokens.get(at + 4).is_some_and(|next| is_word(&next.token, "filter"))
    };
    let mut found: Vec<usize> = (0..tokens.len()).filter(is_such).collect();
    if !found.is_empty() {
        let opened = opening_brackets(&tokens);
        let name = |at: usize| tokens[..*opened.get(&(at + 3))?].last();
        found
            .retain(|at| name(*at).is_some_and(|name| FUNCTIONS.iter().any(|function| is_word(&name.token, function))));
    }
    for at in found {
        // The bracket moves before the two words.
        tokens[at + 1..at + 4].rotate_right(1);
    }
    tokens
}

/// Returns whether the last tokens are `INTERVAL` and a value. `opened` has where brackets open, by where they close.
fn ends_interval(before: &[TokenWithSpan], opened: &HashMap<usize, usize>) -> bool {
    let Some((last, rest)) = before.split_last() else { return false };
    let rest = match last.token {
        Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => rest,
        Token::RParen => match opened.get(&rest.len()) {
            Some(open) => &rest[..*open],
            None => return false,
        },
        _ => return false,
    };
    rest.last().is_some_and(|token| is_word(&token.token, "interval"))
}

/// Returns where brackets open, by where they close.
fn opening_brackets(tokens: &[TokenWithSpan]) -> HashMap<usize, usize> {
    let mut open = Vec::new();
    let mut opened = HashMap::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.token {
            Token::LParen => open.push(at),
            Token::RParen => {
                opened.extend(open.pop().map(|start| (at, start)));
            }
            _ => {}
        }
    }
    opened
}
