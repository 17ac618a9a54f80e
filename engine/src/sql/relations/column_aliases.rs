//! Columns that an alias names: `FROM t AS u(a, b)`. DataFusion's planner looks a relation's columns up by names that it
//! folds to lower case and splits at dots, and so misses `"Aa"` and `"a.b"`. Here they are the relation's columns by their places.

use datafusion::error::Result;
use datafusion::logical_expr::planner::PlannedRelation;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{TableAlias, TableFactor};

use super::Context;
use crate::error::EngineError;
use crate::sql::predicate_subqueries::QUERIED;

/// Takes a relation's alias off, if it names columns.
pub(super) fn taken_from(relation: &mut TableFactor) -> Option<TableAlias> {
    let alias = match relation {
        TableFactor::Table { alias, .. }
        | TableFactor::Derived { alias, .. }
        | TableFactor::Function { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::NestedJoin { alias, .. }
        | TableFactor::Pivot { alias, .. }
        | TableFactor::Unpivot { alias, .. } => alias,
        _ => return None,
    };
    alias.take_if(|alias| !alias.columns.is_empty())
}

/// Gives the columns of a relation the names of its alias.
pub(super) fn named(plan: LogicalPlan, mut alias: TableAlias, context: &Context<'_>) -> Result<PlannedRelation> {
    let names = std::mem::take(&mut alias.columns);
    let columns = plan.schema().columns();
    if names.len() != columns.len() {
        let (relation, found, named) = (&alias.name.value, columns.len(), names.len());
        let message = if relation == QUERIED {
            format!("a value is compared with a query of one column, and this one has {found}")
        } else {
            format!("`{relation}` is given {named} names of columns, and has {found}")
        };
        return Err(EngineError::Plan { message }.into());
    }
    let named = columns.into_iter().zip(names);
    let named: Vec<Expr> =
        named.map(|(column, name)| Expr::Column(column).alias(context.normalize_ident(name.name))).collect();
    let plan = LogicalPlanBuilder::from(plan).project(named)?.build()?;
    Ok(PlannedRelation::new(plan, Some(alias)))
}
