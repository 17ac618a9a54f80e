//! `[x + 1 FOR x IN list IF x > 1]` as calls with lambdas.

use datafusion::sql::sqlparser::tokenizer::{Span, Token};

use super::brackets::{Group, Item, call, joined, parenthesized, token, word};

/// Returns the calls that a list comprehension stands for; `None` where the brackets hold none.
pub(super) fn comprehension(group: &Group) -> Option<Vec<Item>> {
    if group.open.token != Token::LBracket {
        return None;
    }
    let find = |word: &str, from: usize| (from..group.items.len()).find(|index| group.items[*index].is(word));
    let at_for = find("for", 0)?;
    let at_in = find("in", at_for)?;
    let at_if = find("if", at_in).unwrap_or(group.items.len());
    let (body, names) = (&group.items[..at_for], &group.items[at_for + 1..at_in]);
    let (list, condition) = (&group.items[at_in + 1..at_if], group.items.get(at_if + 1..).unwrap_or_default());
    if body.is_empty() || names.is_empty() || list.is_empty() {
        return None;
    }
    let span = group.open.span;
    let lambda = |body: &[Item]| {
        let names = if names.len() == 1 { names.to_vec() } else { vec![parenthesized(names.to_vec(), span)] };
        joined([names, vec![token(Token::Arrow, span)], body.to_vec()])
    };
    Some(match condition {
        [] => call("list_transform", vec![list.to_vec(), lambda(body)], span),
        _ if names.len() > 1 => numbered_before(list, &lambda, body, condition, span),
        _ => {
            let chosen = call("list_filter", vec![list.to_vec(), lambda(condition)], span);
            call("list_transform", vec![chosen, lambda(body)], span)
        }
    })
}

/// A place is one in the whole list: what is left out counts, though nothing is computed for it.
fn numbered_before(
    list: &[Item],
    lambda: &impl Fn(&[Item]) -> Vec<Item>,
    body: &[Item],
    condition: &[Item],
    span: Span,
) -> Vec<Item> {
    let words = |text: &str| text.split(' ').map(|part| word(part, span)).collect::<Vec<_>>();
    let text = |text: &str| vec![token(Token::SingleQuotedString(text.to_owned()), span)];
    let condition = vec![parenthesized(condition.to_vec(), span)];
    let body = vec![parenthesized(body.to_vec(), span)];
    let computed = joined([words("CASE WHEN"), condition.clone(), words("THEN"), body, words("END")]);
    let both = call("named_struct", vec![text("is_in"), condition, text("value"), computed], span);
    let part = |name: &str| {
        let [pair, arrow, point] = [word("pair", span), token(Token::Arrow, span), token(Token::Period, span)];
        vec![pair.clone(), arrow, pair, point, word(name, span)]
    };
    let all = call("list_transform", vec![list.to_vec(), lambda(&both)], span);
    let chosen = call("list_filter", vec![all, part("is_in")], span);
    call("list_transform", vec![chosen, part("value")], span)
}
