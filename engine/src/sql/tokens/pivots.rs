//! `t PIVOT (aggregates FOR a IN (...) b IN (...) GROUP BY c)`: the parser knows one column, and no groups. What is behind its
//! values goes among them, behind calls that say what it is.

use datafusion::sql::sqlparser::tokenizer::Token;

use super::brackets::{Item, call, joined, token};
use crate::sql::marks;

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
