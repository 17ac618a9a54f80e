//! Subqueries that belong to a row of the query around them, and that DataFusion refuses or answers wrongly: a value that is not
//! aggregated, `EXISTS` of an aggregate, which always has its one row, `IN` of one, and comparisons with `ANY` and `ALL`; and
//! subqueries in the rows of `VALUES`.

use std::sync::Arc;

use arrow::datatypes::Field;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result};
use datafusion::functions::core::expr_fn::named_struct;
use datafusion::functions_aggregate::expr_fn::{count, first_value};
use datafusion::logical_expr::expr::{Exists, InSubquery, Sort as SortExpr};
use datafusion::logical_expr::{
    BinaryExpr, EmptyRelation, Expr, ExprSchemable, FetchType, GroupingSet, Limit, LogicalPlan, LogicalPlanBuilder,
    Operator, Projection, SkipType, Subquery, Union, Values, lit,
};

use super::field_access::own_call;
use super::lifted_subqueries::{has_window_by_row, is_beyond_joins};
use super::set_comparisons::{aggregated, compared, membership};
use crate::error::EngineError;
use crate::functions::{SINGLE_VALUE, value_conversion};

/// What the one column of a gathered subquery is called: DataFusion puts the columns that it is joined by beside it, and one of
/// them may be the column that is selected.
const GATHERED: &str = "__gathered";

/// Returns whether an expression may be such a subquery.
pub(super) fn may_be_subquery(expr: &Expr) -> bool {
    matches!(expr, Expr::Exists(_) | Expr::InSubquery(_) | Expr::ScalarSubquery(_) | Expr::SetComparison(_))
}

/// Returns the expression with such subqueries written as what DataFusion can answer; `schema` is that of the rows around it.
/// Errors: `unsupported`.
pub(super) fn with_subquery_values(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if let Expr::InSubquery(InSubquery { subquery, .. }) | Expr::ScalarSubquery(subquery) = &expr {
        refuse_sets_of_row(subquery)?;
    }
    Ok(match expr {
        Expr::Exists(Exists { subquery, negated }) => {
            if is_one_row(&subquery.subquery) || has_grand_total(&subquery.subquery) {
                return Ok(Transformed::yes(lit(!negated)));
            }
            refuse_sets_of_row(&subquery)?;
            if let Some(plan) = condition_of_one_row(&subquery.subquery)? {
                let holds = Box::new(Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery }));
                return Ok(Transformed::yes(if negated { Expr::IsNotTrue(holds) } else { Expr::IsTrue(holds) }));
            }
            if !subquery.outer_ref_columns.is_empty() && skips(&subquery.subquery) {
                return Err(EngineError::Unsupported {
                    what: "OFFSET in an EXISTS that refers to the query around it".into(),
                    hint: "compare (SELECT count(*) FROM ...) with the number of rows".into(),
                }
                .into());
            }
            // Of a limit at the top there is a row where there is one without it.
            if is_counted(&subquery.subquery)? || has_limit_by_row(below_limit(&subquery.subquery))? {
                let rows = aggregated(&subquery, count(lit(1_i64)))?;
                let found = if negated { rows.eq(lit(0_i64)) } else { rows.gt(lit(0_i64)) };
                return Ok(Transformed::yes(found));
            }
            Transformed::no(Expr::Exists(Exists { subquery, negated }))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if !subquery.outer_ref_columns.is_empty() && is_one_row(&subquery.subquery) =>
        {
            let op = if negated { Operator::NotEq } else { Operator::Eq };
            let comparison = BinaryExpr::new(expr, op, Box::new(Expr::ScalarSubquery(subquery)));
            Transformed::yes(Expr::BinaryExpr(comparison))
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if !subquery.outer_ref_columns.is_empty() && has_one_row_by_condition(&subquery.subquery) =>
        {
            let of_row = |plan: Option<LogicalPlan>| {
                plan.map(|plan| Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() }))
            };
            let holds = of_row(condition_of_one_row(&subquery.subquery)?);
            let value = of_row(without_condition(&subquery.subquery)?);
            match (holds, value) {
                (Some(holds), Some(value)) => {
                    let found = Expr::IsTrue(Box::new(holds)).and((*expr).eq(value));
                    Transformed::yes(if negated { Expr::Not(Box::new(found)) } else { found })
                }
                _ => Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })),
            }
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated })
            if is_counted(&subquery.subquery)? || has_limit_by_row(&subquery.subquery)? =>
        {
            match membership(&expr, &subquery, schema)? {
                Some(found) if negated => Transformed::yes(Expr::Not(Box::new(found))),
                Some(found) => Transformed::yes(found),
                None => Transformed::no(Expr::InSubquery(InSubquery { expr, subquery, negated })),
            }
        }
        Expr::ScalarSubquery(subquery) if !subquery.outer_ref_columns.is_empty() => {
            if let Some(value) = value_of_row(&subquery, schema)? {
                return Ok(Transformed::yes(value));
            }
            match gathered(&subquery)? {
                Some(value) => Transformed::yes(value),
                None => as_nullable(subquery),
            }
        }
        Expr::ScalarSubquery(subquery) => as_nullable(subquery),
        Expr::SetComparison(comparison) => match compared(&comparison)? {
            Some(Expr::InSubquery(found)) => {
                return with_subquery_values(Expr::InSubquery(found), schema).map(as_changed);
            }
            Some(found) => Transformed::yes(found),
            None => Transformed::no(Expr::SetComparison(comparison)),
        },
        other => Transformed::no(other),
    })
}

/// Returns `VALUES` with subqueries as a union of queries of one row: DataFusion evaluates the rows of `VALUES` before
/// it has executed anything. Rows without subqueries stay together.
pub(super) fn with_subqueries_in_rows(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let LogicalPlan::Values(Values { schema, values }) = plan else { return Ok(Transformed::no(plan)) };
    if !values.iter().any(|row| has_subquery(row)) {
        return Ok(Transformed::no(LogicalPlan::Values(Values { schema, values })));
    }
    let nothing = Arc::new(DFSchema::empty());
    let mut inputs: Vec<Arc<LogicalPlan>> = Vec::new();
    let mut plain: Vec<Vec<Expr>> = Vec::new();
    for row in values {
        if !has_subquery(&row) {
            plain.push(row);
            continue;
        }
        if !plain.is_empty() {
            let values = std::mem::take(&mut plain);
            inputs.push(Arc::new(LogicalPlan::Values(Values { schema: Arc::clone(&schema), values })));
        }
        let named = |(expr, field): (Expr, &Arc<Field>)| -> Result<Expr> {
            Ok(expr.cast_to(field.data_type(), nothing.as_ref())?.alias(field.name()))
        };
        let columns = row.into_iter().zip(schema.fields()).map(named).collect::<Result<Vec<_>>>()?;
        let one_row = EmptyRelation { produce_one_row: true, schema: Arc::clone(&nothing) };
        let one_row = Arc::new(LogicalPlan::EmptyRelation(one_row));
        inputs.push(Arc::new(LogicalPlan::Projection(Projection::try_new(columns, one_row)?)));
    }
    if !plain.is_empty() {
        inputs.push(Arc::new(LogicalPlan::Values(Values { schema, values: plain })));
    }
    Ok(Transformed::yes(match inputs.len() {
        1 => Arc::unwrap_or_clone(inputs.remove(0)),
        _ => LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?),
    }))
}

/// Returns whether a row has a subquery.
pub(super) fn has_subquery(row: &[Expr]) -> bool {
    let is_subquery = |expr: &Expr| Ok(may_be_subquery(expr));
    row.iter().any(|expr| expr.exists(is_subquery).unwrap_or(true))
}

/// Returns a subquery as a value that may be null. DataFusion takes it for one that never is where its column has no nulls, though
/// it may have no row.
fn as_nullable(subquery: Subquery) -> Transformed<Expr> {
    let field = subquery.subquery.schema().field(0);
    if field.is_nullable() || is_one_row(&subquery.subquery) {
        return Transformed::no(Expr::ScalarSubquery(subquery));
    }
    // What a function returns may be null; this one leaves a value of that type as it is.
    let as_it_is = value_conversion(field.data_type(), false);
    Transformed::yes(as_it_is.call(vec![Expr::ScalarSubquery(subquery)]))
}

fn as_changed(expr: Transformed<Expr>) -> Transformed<Expr> {
    Transformed::yes(expr.data)
}

/// Returns whether the rows of a subquery are counted for each outer row, since no join finds them: those of groups by a condition
/// that is no equality, of windows over rows by the outer row, and of lists of it.
fn is_counted(plan: &LogicalPlan) -> Result<bool> {
    let has_groups = plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_))))?;
    Ok(takes_outer_lists(plan)? || has_window_by_row(plan)? || (has_groups && is_beyond_joins(plan)?))
}

/// Returns whether a plan has a limit of rows that belong to the outer row, which DataFusion leaves out or refuses.
fn has_limit_by_row(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Limit(_)) && !node.all_out_ref_exprs().is_empty()))
}

/// Returns the plan below a limit at its top.
fn below_limit(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => below_limit(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => below_limit(&alias.input),
        LogicalPlan::Limit(limit) => limit.input.as_ref(),
        other => other,
    }
}

/// Returns whether a subquery takes lists of the outer row apart, which no join can.
fn takes_outer_lists(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| Ok(matches!(node, LogicalPlan::Unnest(unnest) if !unnest.input.all_out_ref_exprs().is_empty())))
}

/// Returns whether a plan has one row whatever its input has: that of aggregates without groups.
fn is_one_row(plan: &LogicalPlan) -> bool {
    matches!(below_rows(plan), LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
}

/// Returns whether a plan has a row whatever its input has, since its groups are sets of which one is empty.
fn has_grand_total(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Aggregate(aggregate) = below_rows(plan) else { return false };
    match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(GroupingSet::Rollup(_) | GroupingSet::Cube(_))] => true,
        [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.iter().any(Vec::is_empty),
        _ => false,
    }
}

/// Errors: `unsupported` where a subquery of the outer row has several sets of groups.
fn refuse_sets_of_row(subquery: &Subquery) -> Result<()> {
    if subquery.outer_ref_columns.is_empty() { Ok(()) } else { refuse_sets_by_row(&subquery.subquery) }
}

/// Errors: `unsupported` where rows that belong to the outer row are grouped by several sets. DataFusion 54 adds to each set by what the
/// rows belong to it: the total of no rows is lost, and a column that a set leaves out has a value.
pub(super) fn refuse_sets_by_row(plan: &LogicalPlan) -> Result<()> {
    let has_sets = plan.exists(|node| {
        let LogicalPlan::Aggregate(aggregate) = node else { return Ok(false) };
        let has_several = match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(GroupingSet::GroupingSets(sets))] => sets.len() > 1,
            [Expr::GroupingSet(_)] => true,
            _ => false,
        };
        Ok(has_several && !node.all_out_ref_exprs().is_empty())
    })?;
    if !has_sets {
        return Ok(());
    }
    Err(EngineError::Unsupported {
        what: "ROLLUP, CUBE or GROUPING SETS in a subquery by the row around it".into(),
        hint: "let the sets have the key, and join: \
               JOIN (SELECT key, x, count(*) AS n FROM ... GROUP BY GROUPING SETS ((key, x), (key))) g ON g.key = t.key"
            .into(),
    }
    .into())
}

/// Returns the query of whether the one row of a plan is there, where that is for HAVING to say.
fn condition_of_one_row(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    match below_rows(plan) {
        LogicalPlan::Filter(filter) if is_one_row(&filter.input) => {
            let condition = filter.predicate.clone().alias(GATHERED);
            LogicalPlanBuilder::from(Arc::clone(&filter.input)).project(vec![condition])?.build().map(Some)
        }
        _ => Ok(None),
    }
}

/// Whether a plan has the one row of an aggregate, or none where HAVING does not hold of it.
fn has_one_row_by_condition(plan: &LogicalPlan) -> bool {
    matches!(below_rows(plan), LogicalPlan::Filter(filter) if is_one_row(&filter.input))
}

/// Returns the plan below what keeps each of its rows.
fn below_rows(plan: &LogicalPlan) -> &LogicalPlan {
    match plan {
        LogicalPlan::Projection(projection) => below_rows(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => below_rows(&alias.input),
        LogicalPlan::Sort(sort) if sort.fetch.is_none() => below_rows(&sort.input),
        other => other,
    }
}

/// Returns the query of the one row of a plan without its HAVING.
fn without_condition(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let input = match plan {
        LogicalPlan::Projection(projection) => &projection.input,
        LogicalPlan::SubqueryAlias(alias) => &alias.input,
        LogicalPlan::Sort(sort) => return without_condition(&sort.input),
        LogicalPlan::Filter(filter) => return Ok(Some(filter.input.as_ref().clone())),
        _ => return Ok(None),
    };
    let Some(input) = without_condition(input)? else { return Ok(None) };
    plan.with_new_exprs(plan.expressions(), vec![input]).map(Some)
}

fn skips(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Limit(limit) => !matches!(limit.get_skip_type(), Ok(SkipType::Literal(0))),
        LogicalPlan::Projection(projection) => skips(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => skips(&alias.input),
        _ => false,
    }
}

/// Returns `(SELECT a + 1)` as what it is, where `a` is a column of the row around it.
fn value_of_row(subquery: &Subquery, schema: &DFSchema) -> Result<Option<Expr>> {
    let Some(row) = only_row(&subquery.subquery)? else { return Ok(None) };
    let [value] = row.as_slice() else { return Ok(None) };
    let mut is_of_row = true;
    let written = value.clone().transform_down(|part| match part {
        Expr::OuterReferenceColumn(field, column) => {
            is_of_row &= schema.has_column(&column);
            Ok(if is_of_row {
                Transformed::yes(Expr::Column(column))
            } else {
                Transformed::no(Expr::OuterReferenceColumn(field, column))
            })
        }
        other => {
            is_of_row &= !may_be_subquery(&other)
                && !matches!(other, Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::Unnest(_));
            Ok(Transformed::no(other))
        }
    })?;
    Ok(is_of_row.then_some(written.data))
}

/// Returns the values of a query without FROM, also through derived tables.
pub(super) fn only_row(plan: &LogicalPlan) -> Result<Option<Vec<Expr>>> {
    let (exprs, input) = match plan {
        LogicalPlan::Projection(Projection { expr, input, .. }) => (expr, input),
        LogicalPlan::SubqueryAlias(alias) => return only_row(&alias.input),
        _ => return Ok(None),
    };
    let below = match input.as_ref() {
        LogicalPlan::EmptyRelation(rows) if rows.produce_one_row => Vec::new(),
        other => match only_row(other)? {
            Some(below) => below,
            None => return Ok(None),
        },
    };
    let mut row = Vec::with_capacity(exprs.len());
    for expr in exprs {
        let written = expr.clone().unalias_nested().data.transform_down(|part| {
            let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            Ok(match input.schema().maybe_index_of_column(column).and_then(|index| below.get(index)) {
                Some(value) => Transformed::new(value.clone(), true, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        })?;
        row.push(written.data);
    }
    Ok(Some(row))
}

/// A subquery for a value, taken apart: `SELECT value FROM input ORDER BY order LIMIT 1`.
struct ValueQuery<'a> {
    value: Expr,
    input: &'a Arc<LogicalPlan>,
    order: Vec<SortExpr>,
    is_first: bool,
}

/// Returns a subquery whose rows are gathered into one value, which is refused where there are several; `None` where it has one
/// row already, or another form.
fn gathered(subquery: &Subquery) -> Result<Option<Expr>> {
    let Some(query) = taken_apart(&subquery.subquery)? else { return Ok(None) };
    let first = first_value(query.value, query.order);
    let aggregated =
        |exprs: Vec<Expr>| LogicalPlanBuilder::from(Arc::clone(query.input)).aggregate(Vec::<Expr>::new(), exprs);
    let with = |plan: LogicalPlan| Expr::ScalarSubquery(Subquery { subquery: Arc::new(plan), ..subquery.clone() });
    let column = |expr: &Expr| Expr::Column(Column::from_name(expr.schema_name().to_string()));
    if query.is_first {
        let value = column(&first).alias(GATHERED);
        return Ok(Some(with(aggregated(vec![first])?.project(vec![value])?.build()?)));
    }
    let rows = count(lit(1_i64));
    let parts = vec![lit("value"), column(&first), lit("rows"), column(&rows)];
    let both = named_struct(parts).alias(GATHERED);
    let plan = aggregated(vec![first, rows])?.project(vec![both])?.build()?;
    Ok(Some(own_call(SINGLE_VALUE, vec![with(plan)])?))
}

fn taken_apart(plan: &Arc<LogicalPlan>) -> Result<Option<ValueQuery<'_>>> {
    let (plan, is_first) = match plan.as_ref() {
        LogicalPlan::Limit(limit) if is_first_row(limit) => (&limit.input, true),
        LogicalPlan::Limit(_) => return Ok(None),
        _ => (plan, false),
    };
    // The columns that a query is sorted by and does not select are taken away above the sort.
    let (plan, chosen) = match plan.as_ref() {
        LogicalPlan::Projection(Projection { expr, input, .. }) if matches!(input.as_ref(), LogicalPlan::Sort(_)) => {
            (input, Some(expr))
        }
        _ => (plan, None),
    };
    let (plan, order) = match plan.as_ref() {
        LogicalPlan::Sort(sort) => (&sort.input, sort.expr.clone()),
        _ => (plan, Vec::new()),
    };
    let LogicalPlan::Projection(Projection { expr: exprs, input, schema, .. }) = plan.as_ref() else { return Ok(None) };
    let aggregates = exprs.iter().any(|expr| {
        expr.exists(|part| Ok(matches!(part, Expr::AggregateFunction(_) | Expr::WindowFunction(_)))).unwrap_or(true)
    });
    if aggregates || !is_plain(input) || (chosen.is_some() && !is_first) {
        return Ok(None);
    }
    let computed = |expr: Expr| {
        let replaced = expr.transform_down(|part| {
            let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
            Ok(match schema.maybe_index_of_column(column).and_then(|index| exprs.get(index)) {
                Some(expr) => Transformed::new(expr.clone().unalias_nested().data, true, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        });
        replaced.map(|replaced| replaced.data)
    };
    let value = match chosen {
        Some(chosen) => match chosen.as_slice() {
            [value] => computed(value.clone().unalias_nested().data)?,
            _ => return Ok(None),
        },
        None => match exprs.as_slice() {
            [value] => value.clone().unalias_nested().data,
            _ => return Ok(None),
        },
    };
    let order = order.into_iter().map(|sort| Ok(SortExpr { expr: computed(sort.expr)?, ..sort }));
    // Without LIMIT the order says nothing: there may be one row only.
    let order = if is_first { order.collect::<Result<_>>()? } else { Vec::new() };
    Ok(Some(ValueQuery { value, input, order, is_first }))
}

fn is_plain(input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Filter(_) | LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Join(_) => {
            true
        }
        LogicalPlan::Projection(projection) => is_plain(&projection.input),
        _ => false,
    }
}

fn is_first_row(limit: &Limit) -> bool {
    matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(1))))
        && matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)))
}
