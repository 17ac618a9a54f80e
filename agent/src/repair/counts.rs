//! Columns that nobody has and that are called as a table that refers to one of the query's: `votes` of contestants, and
//! `number_of_concerts` of a stadium. What is meant are the rows that refer to each.

use sqlparser::ast::Expr;

use super::TablesAtHand;
use super::joins::{condition, expression, same, sure};
use super::near::{Likeness, nearest, singular};
use super::scopes::{ScopeSource, Scopes};
use crate::sql_text::quoted_table;

/// Words of a name that say that something is counted.
const COUNTING: [&str; 8] = ["number", "num", "no", "nr", "count", "cnt", "total", "of"];

/// Returns the rows that refer to those of a table of the innermost scope, counted, where the name of a column says so,
/// and why.
pub(super) fn counted(
    scopes: &Scopes<'_>,
    at_hand: &TablesAtHand,
    qualifier: Option<&str>,
    column: &str,
) -> Option<(Expr, String)> {
    let lower = column.to_lowercase();
    let words: Vec<&str> = lower.split('_').filter(|word| !COUNTING.contains(word)).collect();
    // `city` of a country may be the name of one; `cities` and `num_city` are several.
    let is_plural = words.last().is_some_and(|word| singular(word) != *word);
    if !is_plural && words.len() == lower.split('_').count() {
        return None;
    }
    let name = words.join("_");
    let scope = scopes.stack.last()?;
    let is_asked = |source: &&ScopeSource| qualifier.is_none_or(|name| source.name.eq_ignore_ascii_case(name));
    let mut found = None;
    for source in scope.sources.iter().filter(is_asked) {
        let Some(table) = &source.table else { continue };
        for one in at_hand.relationships.iter().filter(sure).filter(|one| same(&one.to, table)) {
            let referring = &one.from.table;
            let is_called = nearest(&name, [referring.as_str()]).is_some_and(|(_, near)| near <= Likeness::Words);
            if is_called && scope.source(referring).is_none() && found.replace((source, one)).is_some() {
                return None;
            }
        }
    }
    let (source, one) = found?;
    let joined = condition(one, Some(&one.from), &one.from.table, &source.name);
    let counted = format!("(SELECT count(*) FROM {} WHERE {joined})", quoted_table(&one.from));
    let why = format!("there is no column `{column}`; `{}` refers to `{}`, and its rows are counted", one.from, one.to);
    Some((expression(&counted)?, why))
}
