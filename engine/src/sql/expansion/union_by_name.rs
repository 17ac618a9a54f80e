//! `UNION BY NAME` finds columns in any case, as names are found everywhere else: DataFusion's planner tells `id` from `ID`, of
//! which it would make two columns, each half null.

use std::collections::{HashMap, HashSet};

use datafusion::error::Result;
use datafusion::logical_expr::planner::ContextProvider;
use datafusion::sql::sqlparser::ast::{Ident, SetExpr, SetQuantifier, TableAlias, TableAliasColumnDef};

use super::Expander;
use crate::sql::relations::derived;
use crate::sql::shorthand::{plain, query_of, select_star};

const RIGHT: &str = "__right";

impl<S: ContextProvider> Expander<'_, S> {
    pub(super) fn is_by_name(quantifier: &SetQuantifier) -> bool {
        matches!(quantifier, SetQuantifier::ByName | SetQuantifier::AllByName | SetQuantifier::DistinctByName)
    }

    /// Expands a body, and calls the columns of the right side of each union by name what the left one calls them. Returns
    /// the names of the body's columns, where they are known.
    pub(super) fn by_name(&mut self, body: &mut SetExpr) -> Result<Option<Vec<String>>> {
        if let SetExpr::SetOperation { set_quantifier, left, right, .. } = body
            && Self::is_by_name(set_quantifier)
        {
            let (left, others) = (self.by_name(left)?, self.by_name(right)?);
            let (Some(mut names), Some(others)) = (left, others) else { return Ok(None) };
            let aliases = names_beside(&names, &others);
            if aliases != others {
                rename_columns(right, &aliases);
            }
            let known: HashSet<String> = names.iter().cloned().collect();
            names.extend(aliases.into_iter().filter(|alias| !known.contains(alias)));
            return Ok(Some(names));
        }
        self.body(body)?;
        // What does not plan by itself is corrected, or refused, with the statement.
        let Ok(plan) = self.planned(query_of(body.clone())) else { return Ok(None) };
        Ok(Some(plan.schema().fields().iter().map(|field| field.name().clone()).collect()))
    }
}

/// Returns what columns called `others` are called beside `names`: the same, but for the case of what both have.
fn names_beside(names: &[String], others: &[String]) -> Vec<String> {
    let exact: HashSet<&String> = names.iter().collect();
    let by_case: HashMap<String, &String> = names.iter().rev().map(|name| (name.to_lowercase(), name)).collect();
    let own: HashSet<&String> = others.iter().collect();
    let alias = |name: &String| match by_case.get(&name.to_lowercase()) {
        Some(left) if !exact.contains(name) && !own.contains(*left) => (*left).clone(),
        _ => name.clone(),
    };
    let aliases: Vec<String> = others.iter().map(alias).collect();
    let distinct: HashSet<&String> = aliases.iter().collect();
    if distinct.len() == aliases.len() { aliases } else { others.to_vec() }
}

/// Makes a query of a side whose columns have these names.
fn rename_columns(side: &mut SetExpr, names: &[String]) {
    let none = SetExpr::Select(Box::new(select_star(Vec::new())));
    let query = query_of(std::mem::replace(side, none));
    let column = |name: &String| TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None };
    let columns = names.iter().map(column).collect();
    let alias = TableAlias { explicit: true, name: Ident::new(RIGHT), columns, at: None };
    *side = SetExpr::Select(Box::new(select_star(vec![plain(derived(query, Some(alias)))])));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_the_left_side_in_any_case() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cases: [(&[&str], &[&str], &[&str]); 5] = [
            (&["id", "name"], &["NAME", "Id", "more"], &["name", "id", "more"]),
            (&["id"], &["id"], &["id"]),
            (&["id", "ID"], &["ID"], &["ID"]),
            (&["id"], &["id", "ID"], &["id", "ID"]),
            (&["id"], &["Id", "ID"], &["Id", "ID"]),
        ];
        for (left, right, expected) in cases {
            assert_eq!(names_beside(&names(left), &names(right)), names(expected), "{left:?} {right:?}");
        }
    }
}
