//! WITH queries whose rows are others each time that they are read: of `random()`, `uuid()` or a sample. PostgreSQL and DuckDB
//! make their rows once. Here a WITH query is written out wherever it is read, so that one of these is read once or refused.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, ObjectName, ObjectNamePart, Query, TableFactor, Visit, Visitor};

use super::expansion::names_any;
use super::marks;
use super::syntax::any_expr;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

/// The functions that have another value in each call.
const FUNCTIONS: [&str; 7] = ["random", "rand", "uuid", "gen_random_uuid", "uuidv4", "uuidv7", "setseed"];

/// Errors: `unsupported` for a WITH query of such rows that is read more than once.
pub(super) fn check_volatile(query: &Query) -> Result<()> {
    let Some(with) = &query.with else { return Ok(()) };
    let mut volatile: Vec<&str> = Vec::new();
    for cte in &with.cte_tables {
        let reads_volatile = volatile.iter().any(|name| times_read(&*cte.query, name) > 0);
        if reads_volatile || is_volatile(&cte.query) {
            volatile.push(&cte.alias.name.value);
        }
    }
    for name in volatile {
        let own = with.cte_tables.iter().find(|cte| cte.alias.name.value == name);
        let inside = own.map_or(0, |cte| times_read(&*cte.query, name));
        if times_read(query, name) > inside + 1 {
            return Err(EngineError::Unsupported {
                what: format!("reading `{name}`, whose rows are others each time, more than once"),
                hint: format!("keep it: CREATE TABLE {name} AS ..., or number its rows by columns of the table"),
            });
        }
    }
    Ok(())
}

/// Returns how often a part of a statement names a relation.
fn times_read(part: &impl Visit, name: &str) -> usize {
    struct RelationCounter<'a>(&'a str, usize);
    impl Visitor for RelationCounter<'_> {
        type Break = ();
        fn pre_visit_relation(&mut self, relation: &ObjectName) -> ControlFlow<()> {
            let is_it = matches!(
                relation.0.as_slice(),
                [ObjectNamePart::Identifier(ident)] if same_name(&ident.value, self.0)
            );
            self.1 += usize::from(is_it);
            ControlFlow::Continue(())
        }
    }
    let mut counter = RelationCounter(name, 0);
    let _: ControlFlow<()> = part.visit(&mut counter);
    counter.1
}

fn is_volatile(query: &Query) -> bool {
    struct VolatileFinder;
    impl Visitor for VolatileFinder {
        type Break = ();
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            match expr {
                Expr::Function(function) if is_one_of(&function.name, &FUNCTIONS) => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        }
        fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
            let is_sample = match factor {
                // The seed is the fourth argument.
                TableFactor::Table { name, args: Some(args), .. } if is_one_of(name, &[marks::SAMPLE]) => {
                    args.args.len() < 4
                }
                TableFactor::Table { sample: Some(_), .. } | TableFactor::Derived { sample: Some(_), .. } => {
                    let text = factor.to_string().to_uppercase();
                    !text.contains("REPEATABLE") && !text.contains("SEED")
                }
                _ => false,
            };
            if is_sample { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }
    }
    query.visit(&mut VolatileFinder).is_break()
}

/// Returns whether an expression has another value in each call.
pub(super) fn calls_volatile(expr: &Expr) -> bool {
    any_expr(expr, |part| matches!(part, Expr::Function(function) if is_one_of(&function.name, &FUNCTIONS)))
}

fn is_one_of(name: &ObjectName, names: &[&str]) -> bool {
    let [ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return false };
    names.iter().any(|known| ident.value.eq_ignore_ascii_case(known))
}

/// Refuses an alias of what is another value each time that it is computed, where another expression names it.
pub(super) fn refuse_volatile(expr: &Expr, known: &[(String, Expr)]) -> Result<()> {
    let is_named = |name: &str| names_any(expr, |own| same_name(own, name));
    match known.iter().find(|(name, meaning)| calls_volatile(meaning) && is_named(name)) {
        None => Ok(()),
        Some((name, _)) => Err(EngineError::Unsupported {
            what: format!("the alias `{name}`, which is another value each time, in another expression"),
            hint: "compute it in a subquery, and name it around that".into(),
        }),
    }
}
