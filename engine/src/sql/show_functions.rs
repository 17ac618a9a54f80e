//! `SHOW FUNCTIONS`: every function that a statement may call, DataFusion's, ours and those that are written out.

use std::collections::BTreeMap;

use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::sql::sqlparser::ast::ShowStatementFilter;

use super::{function_forms, json_records, json_tables, table_functions};
use crate::error::{EngineError, Result};

/// Returns the names of all functions, each with its kind and with what it is short for.
fn all(state: &SessionState) -> BTreeMap<String, (&'static str, Option<String>)> {
    let mut all = BTreeMap::new();
    let families = [
        ("scalar", state.scalar_functions().keys().cloned().collect::<Vec<_>>()),
        ("lambda", state.higher_order_functions().keys().cloned().collect()),
        ("window", state.window_functions().keys().cloned().collect()),
        ("aggregate", state.aggregate_functions().keys().cloned().collect()),
        ("table", state.table_functions().keys().cloned().collect()),
    ];
    for (kind, names) in families {
        for name in names {
            all.entry(name).or_insert((kind, None));
        }
    }
    for (name, meaning) in json_tables::all() {
        all.entry(name.to_owned()).or_insert(("table", Some(meaning)));
    }
    for (name, meaning) in json_records::all() {
        all.entry(name.to_owned()).or_insert(("table", Some(meaning.to_owned())));
    }
    for name in table_functions::names() {
        all.entry(name.to_owned()).or_insert(("table", None));
    }
    for form in function_forms::all() {
        let kind = if form.aggregate { "aggregate" } else { "scalar" };
        all.entry(form.name.to_owned()).or_insert((kind, Some(form.meaning.to_owned())));
    }
    all
}

/// Returns the names of all functions, in order.
pub(crate) fn names(state: &SessionState) -> Vec<String> {
    all(state).into_keys().collect()
}

/// Plans `SHOW FUNCTIONS [LIKE pattern]`.
pub(super) fn plan(state: &SessionState, filter: Option<ShowStatementFilter>) -> Result<LogicalPlan> {
    let rows = all(state)
        .into_iter()
        .map(|(name, (kind, meaning))| vec![lit(name), lit(kind), lit(ScalarValue::Utf8(meaning))])
        .collect();
    let names = ["function_name", "function_type", "short_for"];
    let values = LogicalPlanBuilder::values(rows)?;
    let columns = values.schema().columns().into_iter().zip(names);
    let renamed: Vec<Expr> = columns.map(|(column, name)| Expr::Column(column).alias(name)).collect();
    let plan = values.project(renamed)?;
    let plan = match filter {
        None => plan,
        Some(ShowStatementFilter::Like(pattern) | ShowStatementFilter::ILike(pattern)) => {
            plan.filter(col("function_name").ilike(lit(pattern)))?
        }
        Some(ShowStatementFilter::Where(_) | ShowStatementFilter::NoKeyword(_)) => {
            return Err(EngineError::Unsupported {
                what: "this filter of SHOW FUNCTIONS".into(),
                hint: "write SHOW FUNCTIONS LIKE 'pattern'".into(),
            });
        }
    };
    Ok(plan.build()?)
}
