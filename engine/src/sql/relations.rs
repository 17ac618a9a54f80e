//! Relations that DataFusion's planner does not know: samples, summaries, PIVOT and UNPIVOT, joins ASOF and by position, a LIMIT in percent. Each needs the
//! columns of the relation that it is about, so it is planned when that one is, in the same place of the statement: the tables,
//! common table expressions and outer columns that are visible there are visible to it.
//!
//! They become ordinary operators, or a query over ordinary operators, so policy sees nothing new.

mod asof;
mod column_aliases;
mod describe;
mod limit_percent;
mod pivot;
mod positional;
mod sample;
mod summarize;
mod unpivot;
mod values;

use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use datafusion::common::DFSchema;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, Ident, Join, JoinConstraint, JoinOperator, ObjectName, ObjectNamePart, Query,
    Select, SelectItem, SetExpr, TableAlias, TableFactor, TableFunctionArgs, TableWithJoins, Value, ValueWithSpan,
    VisitMut,
};
use datafusion::sql::sqlparser::parser::Parser;

use super::dialect::SqlDialect;
use super::marks;
use super::parameters::ParameterReplacer;
use super::shorthand::plain;
use crate::error::EngineError;
use crate::limits::{check_types, check_wide_select};
use crate::optimizer::projected_keys::with_projected_keys;
pub(crate) use pivot::MAX_PIVOT_COLUMNS;
pub(super) use pivot::arguments_of;

/// Returns the planners, for each statement.
pub(super) fn relation_planners() -> &'static [Arc<dyn RelationPlanner>] {
    static PLANNERS: LazyLock<Vec<Arc<dyn RelationPlanner>>> = LazyLock::new(|| vec![Arc::new(OwnRelations)]);
    &PLANNERS
}

#[derive(Debug)]
struct OwnRelations;

type Context<'a> = dyn RelationPlannerContext + 'a;

impl RelationPlanner for OwnRelations {
    fn plan_relation(
        &self,
        mut relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let Some(alias) = column_aliases::taken_from(&mut relation) {
            let plan = context.plan(relation)?;
            return Ok(RelationPlanning::Planned(Box::new(column_aliases::named(plan, alias, context)?)));
        }
        let (plan, alias) = match relation {
            TableFactor::Table { ref name, args: Some(ref args), ref alias, .. } if is_mark(name) => {
                (marked(name, args, context)?, alias.clone())
            }
            TableFactor::Pivot { table, aggregate_functions, value_column, value_source, alias, .. } => {
                (pivot::plan_factor(*table, &aggregate_functions, value_column, value_source, context)?, alias)
            }
            TableFactor::Unpivot { table, value, name, columns, null_inclusion, alias } => {
                (unpivot::plan_factor(*table, &value, &name, columns, null_inclusion, context)?, alias)
            }
            mut factor => match sample::taken_from(&mut factor)? {
                Some(sample) => (sample.plan(context.plan(factor)?)?, None),
                None if may_have_keys(&factor) && !IS_FOR_DATAFUSION.replace(false) => {
                    IS_FOR_DATAFUSION.set(true);
                    let planned = context.plan(factor);
                    // One that was refused before it came here leaves no mark for another statement.
                    IS_FOR_DATAFUSION.set(false);
                    let planned = planned?;
                    // The planner hashes the types of these columns wherever a SELECT is over them.
                    check_types(&planned)?;
                    check_wide_select(&planned, MOST_ITEMS.get())?;
                    // What is above groups by the keys of these rows.
                    (with_projected_keys(planned)?.data, None)
                }
                None => return Ok(RelationPlanning::Original(Box::new(factor))),
            },
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

thread_local! {
    /// Whether the next relation that this thread plans comes from here, and is DataFusion's to plan.
    static IS_FOR_DATAFUSION: Cell<bool> = const { Cell::new(false) };
    /// How many items the widest SELECT has of the statement that this thread plans.
    static MOST_ITEMS: Cell<usize> = const { Cell::new(0) };
}

/// Does `plan`, which plans a statement whose widest SELECT has so many items.
pub(super) fn over_items<T>(items: usize, plan: impl FnOnce() -> Result<T>) -> Result<T> {
    // A view is planned while the statement around it is.
    let around = MOST_ITEMS.replace(items);
    let planned = plan();
    MOST_ITEMS.set(around);
    planned
}

/// Whether a relation is a query, or the name of one.
fn may_have_keys(relation: &TableFactor) -> bool {
    matches!(relation, TableFactor::Derived { .. } | TableFactor::Table { args: None, .. })
}

fn is_mark(name: &ObjectName) -> bool {
    const MARKS: [&str; 10] = [
        marks::SUMMARIZE,
        marks::DESCRIBE,
        marks::PIVOT,
        marks::UNPIVOT,
        marks::SAMPLE,
        marks::ASOF,
        marks::POSITIONAL,
        marks::LIMIT_PERCENT,
        marks::LIMIT_ROWS,
        marks::VALUES,
    ];
    matches!(name.0.as_slice(), [ObjectNamePart::Identifier(ident)] if MARKS.contains(&ident.value.as_str()))
}

fn marked(name: &ObjectName, args: &TableFunctionArgs, context: &mut Context<'_>) -> Result<LogicalPlan> {
    let args: Option<Vec<Expr>> = args
        .args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
            _ => None,
        })
        .collect();
    let args = args.unwrap_or_default();
    match name.to_string().as_str() {
        marks::SUMMARIZE => summarize::plan(&args, context),
        marks::DESCRIBE => describe::plan(&args, context),
        marks::PIVOT => pivot::plan(&args, context),
        marks::UNPIVOT => unpivot::plan(&args, context),
        marks::SAMPLE => sample::plan(&args, context),
        marks::POSITIONAL => positional::plan(&args, context),
        marks::LIMIT_PERCENT => limit_percent::plan(&args, context),
        marks::LIMIT_ROWS => limit_percent::plan_rows(&args, context),
        marks::VALUES => values::plan(&args, context),
        _ => asof::plan(&args, context),
    }
}

/// Returns the error of a relation whose arguments are not what the rewriting makes of them.
fn malformed(usage: &str) -> datafusion::error::DataFusionError {
    EngineError::Plan { message: usage.to_owned() }.into()
}

pub(super) fn subquery(expr: &Expr) -> Option<&Query> {
    match expr {
        Expr::Subquery(query) => Some(query),
        Expr::Nested(inner) => subquery(inner),
        _ => None,
    }
}

fn select_of(query: &Query) -> Option<&Select> {
    match query.body.as_ref() {
        SetExpr::Select(select) => Some(select),
        SetExpr::Query(query) => select_of(query),
        _ => None,
    }
}

fn number_of(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        _ => None,
    }
}

/// Returns the relations of `SELECT * FROM relations` as one, with their names.
fn relations_of(query: &Query) -> Option<TableFactor> {
    let mut from = select_of(query)?.from.clone().into_iter();
    let mut first = from.next()?;
    for other in from {
        let relation = TableFactor::NestedJoin { table_with_joins: Box::new(other), alias: None };
        let join_operator = JoinOperator::CrossJoin(JoinConstraint::None);
        first.joins.push(Join { relation, global: false, join_operator });
    }
    if first.joins.is_empty() {
        return Some(first.relation);
    }
    Some(TableFactor::NestedJoin { table_with_joins: Box::new(first), alias: None })
}

pub(super) fn derived(query: Query, alias: Option<TableAlias>) -> TableFactor {
    TableFactor::Derived { lateral: false, subquery: Box::new(query), alias, sample: None }
}

/// Plans the query in `text` with `relation` in the place of its table.
fn plan_over(text: &str, relation: TableFactor, context: &mut Context<'_>) -> Result<LogicalPlan> {
    plan_over_values(text, &[], relation, context)
}

/// Plans the query in `text` with `relation` in the place of its table, and `values` in those of `$1`, `$2` and so on.
fn plan_over_values(
    text: &str,
    values: &[Expr],
    relation: TableFactor,
    context: &mut Context<'_>,
) -> Result<LogicalPlan> {
    let parsed = Parser::new(&SqlDialect).try_with_sql(text).and_then(|mut parser| parser.parse_query());
    let mut query =
        *parsed.map_err(|error| EngineError::Internal(format!("a query of ours does not parse: {error}: {text}")))?;
    let value = |at: usize| values.get(at.checked_sub(1)?).cloned();
    let _: ControlFlow<()> = VisitMut::visit(&mut query, &mut ParameterReplacer(value));
    replace_table(&mut query, relation);
    context.plan(derived(query, None))
}

/// Puts `relation` in the place of the innermost table of a query.
fn replace_table(query: &mut Query, relation: TableFactor) {
    let SetExpr::Select(select) = query.body.as_mut() else { return };
    match select.from.as_mut_slice() {
        [TableWithJoins { relation: TableFactor::Derived { subquery, .. }, .. }] => replace_table(subquery, relation),
        _ => select.from = vec![plain(relation)],
    }
}

/// Returns the names of a plan's columns.
fn column_names(schema: &DFSchema) -> Vec<String> {
    schema.fields().iter().map(|field| field.name().clone()).collect()
}

fn quoted_text(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns an item's expression and its alias.
fn item_parts(item: &SelectItem) -> Option<(&Expr, Option<&Ident>)> {
    match item {
        SelectItem::UnnamedExpr(expr) => Some((expr, None)),
        SelectItem::ExprWithAlias { expr, alias } => Some((expr, Some(alias))),
        _ => None,
    }
}
