//! Subqueries that belong to a row of the query around them and that DataFusion cannot take apart: those whose condition is no
//! equality, which aggregate, order or limit by the outer row, and `LATERAL` ones of that kind.
//!
//! The outer rows are numbered, joined with the subquery's tables, and the subquery's operators work within each outer row: an
//! aggregate groups by it, a window and a limit are of its partition. So that no outer row is lost on the way, each has at least
//! one row at every step; one whose mark is null stands for nothing: aggregates leave it out, and it is taken away at the end.
//! The outer rows are read once, so that it does not matter whether they would be the same a second time.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType, Result, TableReference};
use datafusion::functions_aggregate::count::count_udaf;
use datafusion::functions_aggregate::expr_fn::first_value;
use datafusion::functions_nested::expr_fn::array_length;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprFunctionExt, ExprSchemable, FetchType, Join, Limit, LogicalPlan,
    LogicalPlanBuilder, Operator, SkipType, Subquery, Unnest, Window, lit, when,
};

use super::lateral_joins::{Pulled, item_names, list_name, pull, takes_lists_apart, written_outside};
use crate::error::EngineError;
use crate::type_parts::any_part;

/// The number of an outer row.
const ROW: &str = "__outer_row";
/// True in a row of the subquery; null in one that only keeps its outer row.
const MARK: &str = "__in_subquery";
/// What the subquery's columns are qualified by on the way.
const LIFTED: &str = "__lifted";

/// A subquery over the numbered outer rows: the number, the outer columns and the mark, and the subquery's columns as
/// expressions over all of them.
struct Lifted {
    plan: LogicalPlan,
    columns: Vec<LiftedColumn>,
    /// Whether each outer row has one row.
    is_single: bool,
}

struct LiftedColumn {
    table: Option<TableReference>,
    name: String,
    expr: Expr,
}

/// Returns a join of which the right side is a subquery by the rows of the left one; `None` where it has another form.
pub(super) fn lifted_join(join: &Join) -> Result<Option<LogicalPlan>> {
    let equalities = join.on.iter().map(|(left, right)| left.clone().eq(right.clone()));
    let filters = join.filter.iter().filter(|filter| **filter != lit(true)).cloned();
    let condition = conjunction(equalities.chain(filters));
    let is_outer = join.join_type == JoinType::Left;
    let is_conditional = !join.on.is_empty() || (is_outer && condition.is_some());
    if is_conditional && is_found_by_join(&join.right)? {
        return Ok(None);
    }
    let outer = OuterRows::number(Arc::clone(&join.left))?;
    let Some(mut lifted) = outer.lift(&join.right)? else { return Ok(None) };
    // Of an outer join the rows that do not meet its condition stand for nothing: their outer row stays.
    if let Some(condition) = condition.as_ref().filter(|_| is_outer) {
        let Some(condition) = outer.written_of_both(condition, &lifted)? else { return Ok(None) };
        lifted = outer.with_mark(lifted, condition)?;
    }
    let mut plan = LogicalPlanBuilder::from(lifted.plan);
    plan = match is_outer {
        false => plan.filter(mark().is_not_null())?,
        true if lifted.is_single => plan,
        true => {
            // Of the rows that stand for nothing one is left, where there is no other.
            let alive =
                Expr::from(WindowFunction::new(count_udaf(), vec![mark()])).partition_by(vec![row()]).build()?;
            let place = row_number().partition_by(vec![row()]).order_by(vec![mark().sort(true, false)]).build()?;
            let (is_empty, is_first) = (output(&alive).eq(lit(0_i64)), output(&place).eq(lit(1_u64)));
            plan.window(vec![alive])?.window(vec![place])?.filter(mark().is_not_null().or(is_empty.and(is_first)))?
        }
    };
    let left = join.left.schema().columns().into_iter().map(Expr::Column);
    let right = lifted.columns.into_iter().map(|column| column.expr.alias_qualified(column.table, column.name));
    plan = plan.project(left.chain(right).collect::<Vec<_>>())?;
    if let Some(condition) = condition.filter(|_| !is_outer) {
        plan = plan.filter(condition)?;
    }
    plan.build().map(Some)
}

/// Returns whether DataFusion's join finds the rows of a subquery, and is quicker: that of the rows themselves, and of groups by
/// equalities.
fn is_found_by_join(plan: &LogicalPlan) -> Result<bool> {
    let has_order = plan.exists(|node| {
        let has_place = matches!(node, LogicalPlan::Window(_) | LogicalPlan::Limit(_));
        Ok(has_place && !node.all_out_ref_exprs().is_empty())
    })?;
    let has_groups = plan.exists(|node| Ok(matches!(node, LogicalPlan::Aggregate(_))))?;
    Ok(!(has_order || has_groups && is_beyond_joins(plan)?))
}

/// Returns a query with the values of such subqueries, of its select list or its condition, as columns below it.
pub(super) fn with_lifted_values(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let input = match &node {
        LogicalPlan::Projection(projection) => Arc::clone(&projection.input),
        LogicalPlan::Filter(filter) => Arc::clone(&filter.input),
        _ => return Ok(Transformed::no(node)),
    };
    let mut found: Vec<Subquery> = Vec::new();
    node.apply_expressions(|expr| {
        expr.apply(|part| {
            if let Expr::ScalarSubquery(subquery) = part
                && !found.contains(subquery)
                && is_beyond_joins(&subquery.subquery)?
                && is_of(subquery, input.schema())
            {
                found.push(subquery.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    let mut values: Vec<(Subquery, Expr)> = Vec::new();
    let mut below = Arc::clone(&input);
    for subquery in found {
        let outer = OuterRows::number(Arc::clone(&below))?;
        let lifted = outer.lift(&subquery.subquery)?.filter(|lifted| lifted.is_single);
        let Some(Lifted { plan, columns, .. }) = lifted else {
            refuse_aggregated_aggregates(&subquery.subquery)?;
            refuse_window_by_row(&subquery.subquery)?;
            continue;
        };
        let Some(value) = columns.into_iter().next() else { continue };
        // Aggregates inside of the next one are numbered as well.
        let name = format!("{LIFTED}_scalar{}", values.len());
        let columns = below.schema().columns().into_iter().map(Expr::Column);
        let columns = columns.chain([value.expr.alias(&name)]).collect::<Vec<_>>();
        below = Arc::new(LogicalPlanBuilder::from(plan).project(columns)?.build()?);
        values.push((subquery, Expr::Column(Column::new_unqualified(name))));
    }
    if values.is_empty() {
        return Ok(Transformed::no(node));
    }
    let written = |expr: Expr| {
        let written = expr.transform_down(|part| {
            let known = match &part {
                Expr::ScalarSubquery(subquery) => values.iter().find(|(known, _)| known == subquery),
                _ => None,
            };
            Ok(match known {
                Some((_, value)) => Transformed::new(value.clone(), true, TreeNodeRecursion::Jump),
                None => Transformed::no(part),
            })
        });
        written.map(|written| written.data)
    };
    let plan = match &node {
        LogicalPlan::Filter(filter) => {
            let outer = input.schema().columns().into_iter().map(Expr::Column).collect::<Vec<_>>();
            LogicalPlanBuilder::from(below).filter(written(filter.predicate.clone())?)?.project(outer)?.build()?
        }
        LogicalPlan::Projection(projection) => {
            let named = projection.expr.iter().zip(projection.schema.iter()).map(|(expr, (table, field))| {
                let written = written(expr.clone().unalias())?;
                Ok(written.alias_qualified(table.cloned(), field.name()))
            });
            LogicalPlanBuilder::from(below).project(named.collect::<Result<Vec<_>>>()?)?.build()?
        }
        _ => return Ok(Transformed::no(node)),
    };
    Ok(Transformed::yes(plan))
}

/// Returns whether DataFusion would not take a subquery for a value apart.
pub(super) fn is_beyond_joins(plan: &LogicalPlan) -> Result<bool> {
    let mut is_beyond = works_on_aggregate(plan)?;
    plan.apply(|node| {
        is_beyond |= match node {
            LogicalPlan::Filter(filter) => {
                split_conjunction(&filter.predicate).iter().any(|part| part.contains_outer() && !is_equality(part))
            }
            LogicalPlan::Limit(_) | LogicalPlan::Window(_) | LogicalPlan::Sort(_) => {
                !node.all_out_ref_exprs().is_empty()
            }
            other => other.contains_outer_reference(),
        };
        Ok(if is_beyond { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_beyond)
}

/// Returns whether a plan has more to do with the one row of an aggregate by the outer row than to compute of it. DataFusion has no
/// such row where the aggregate has no rows: a count of that row would be 0.
fn works_on_aggregate(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        let keeps_row = match node {
            LogicalPlan::Projection(_)
            | LogicalPlan::SubqueryAlias(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Sort(_) => true,
            LogicalPlan::Limit(limit) => {
                matches!(limit.get_skip_type()?, SkipType::Literal(0))
                    && matches!(limit.get_fetch_type()?, FetchType::Literal(Some(1..)))
            }
            _ => false,
        };
        let inputs = if keeps_row { Vec::new() } else { node.inputs() };
        Ok(inputs.into_iter().any(|input| input.exists(|below| Ok(is_aggregate_by_row(below))).unwrap_or(true)))
    })
}

fn is_aggregate_by_row(node: &LogicalPlan) -> bool {
    matches!(node, LogicalPlan::Aggregate(aggregate) if aggregate.group_expr.is_empty())
        && !node.all_out_ref_exprs().is_empty()
}

/// Returns whether a window is over rows that belong to the outer row. DataFusion's join would have it over those of all outer rows.
/// Those of this file are right over all: rows that are numbered here have one number each, and the others are within a number.
pub(super) fn has_window_by_row(plan: &LogicalPlan) -> Result<bool> {
    let mut is_found = false;
    plan.apply(|node| {
        if let LogicalPlan::Projection(projection) = node
            && matches!(projection.expr.first(), Some(Expr::Alias(number)) if number.name == ROW)
            && let LogicalPlan::Window(numbering) = projection.input.as_ref()
        {
            is_found |= has_window_by_row(&numbering.input)?;
            return Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Jump });
        }
        is_found |= matches!(node, LogicalPlan::Window(window) if !window.window_expr.iter().all(is_within_row))
            && !node.all_out_ref_exprs().is_empty();
        Ok(if is_found { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(is_found)
}

fn is_within_row(value: &Expr) -> bool {
    matches!(value.clone().unalias(), Expr::WindowFunction(found) if found.params.partition_by.contains(&row()))
}

/// Errors: `unsupported` where such a window is left to DataFusion.
pub(super) fn refuse_window_by_row(plan: &LogicalPlan) -> Result<()> {
    if !has_window_by_row(plan)? {
        return Ok(());
    }
    Err(EngineError::Unsupported {
        what: "a window function in a subquery by the row around it, in this form,".into(),
        hint: "let the window have the key, and join: JOIN (SELECT *, row_number() OVER (PARTITION BY key ORDER BY x) AS n FROM ...) w \
               ON w.key = t.key"
            .into(),
    }
    .into())
}

/// Errors: `unsupported` where DataFusion's answer would be wrong.
fn refuse_aggregated_aggregates(plan: &LogicalPlan) -> Result<()> {
    if !works_on_aggregate(plan)? {
        return Ok(());
    }
    Err(EngineError::Unsupported {
        what: "a subquery that filters, counts or joins what an aggregate by the row around it gives, in this form,".into(),
        hint: "group by the key instead, and join: LEFT JOIN (SELECT key, count(*) AS n FROM ... GROUP BY key) g ON g.key = t.key"
            .into(),
    }
    .into())
}

/// Whether a condition is a column of the subquery that equals what has none of them.
fn is_equality(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = condition else { return false };
    let is_column = |expr: &Expr| match expr {
        Expr::Column(_) => true,
        Expr::Cast(cast) => matches!(cast.expr.as_ref(), Expr::Column(_)),
        _ => false,
    };
    (is_column(left) && !right.any_column_refs()) || (is_column(right) && !left.any_column_refs())
}

/// Whether a subquery's outer columns are all of this query, and none of one further out.
fn is_of(subquery: &Subquery, schema: &DFSchema) -> bool {
    let is_known = |expr: &Expr| matches!(expr, Expr::OuterReferenceColumn(_, column) if schema.has_column(column));
    !subquery.outer_ref_columns.is_empty() && subquery.subquery.all_out_ref_exprs().iter().all(is_known)
}

/// The numbered rows of the query around.
struct OuterRows {
    plan: Arc<LogicalPlan>,
    /// The number and the columns.
    columns: Vec<Expr>,
}

impl OuterRows {
    fn number(plan: Arc<LogicalPlan>) -> Result<Self> {
        let number = row_number();
        let own = plan.schema().columns().into_iter().map(Expr::Column);
        let own = [output(&number).alias(ROW)].into_iter().chain(own).collect::<Vec<_>>();
        let plan = LogicalPlanBuilder::from(plan).window(vec![number])?.project(own)?.build()?;
        let columns = plan.schema().columns().into_iter().map(Expr::Column).collect();
        Ok(Self { plan: Arc::new(plan), columns })
    }

    /// Returns a subquery over these rows; `None` where it has operators or expressions that are not worked on here.
    fn lift(&self, plan: &LogicalPlan) -> Result<Option<Lifted>> {
        if let Some(pulled) = pull(plan, &self.plan)?.filter(|pulled| !pulled.has_left) {
            return self.joined(pulled).map(Some);
        }
        match plan {
            LogicalPlan::Subquery(subquery) => self.lift(&subquery.subquery),
            LogicalPlan::SubqueryAlias(alias) => Ok(self.lift(&alias.input)?.map(|mut lifted| {
                lifted.columns.iter_mut().for_each(|column| column.table = Some(alias.alias.clone()));
                lifted
            })),
            LogicalPlan::Projection(projection) => {
                let Some(lifted) = self.lift(&projection.input)? else { return Ok(None) };
                let mut columns = Vec::with_capacity(projection.expr.len());
                for expr in &projection.expr {
                    let (table, name) = expr.qualified_name();
                    let Some(written) = self.written(expr, &lifted)? else { return Ok(None) };
                    columns.push(LiftedColumn { table, name, expr: marked(written.unalias())? });
                }
                Ok(Some(Lifted { columns, ..lifted }))
            }
            LogicalPlan::Filter(filter) => {
                let Some(lifted) = self.lift(&filter.input)? else { return Ok(None) };
                let Some(condition) = self.written(&filter.predicate, &lifted)? else { return Ok(None) };
                self.with_mark(lifted, condition).map(Some)
            }
            // The order of rows that are not limited says nothing.
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => self.lift(&sort.input),
            LogicalPlan::Limit(limit) => self.limited(limit),
            LogicalPlan::Aggregate(aggregate) => self.aggregated(aggregate),
            LogicalPlan::Window(window) => self.windowed(window),
            LogicalPlan::Unnest(unnest) if takes_lists_apart(unnest) => self.unnested(unnest),
            LogicalPlan::Distinct(Distinct::All(input)) => {
                let Some(lifted) = self.lift(input)? else { return Ok(None) };
                let lifted = self.flat(lifted)?;
                let plan = LogicalPlanBuilder::from(lifted.plan).distinct()?.build()?;
                Ok(Some(Lifted { plan, ..lifted }))
            }
            _ => Ok(None),
        }
    }

    /// Joins a subquery that is columns and conditions over tables of its own.
    fn joined(&self, pulled: Pulled) -> Result<Lifted> {
        let own = pulled.base.schema().columns().into_iter().map(Expr::Column);
        let own = own.chain([lit(true).alias(MARK)]).collect::<Vec<_>>();
        let base = LogicalPlanBuilder::from(pulled.base).project(own)?.build()?;
        let conditions = pulled.filters.into_iter().chain([lit(true)]);
        let plan = LogicalPlanBuilder::from(Arc::clone(&self.plan));
        let plan = plan.join_on(base, JoinType::Left, conditions)?.build()?;
        let columns = pulled.columns.into_iter();
        let columns = columns.map(|(table, name, expr)| Ok(LiftedColumn { table, name, expr: marked(expr)? }));
        Ok(Lifted { plan, columns: columns.collect::<Result<_>>()?, is_single: false })
    }

    /// The subquery's columns as columns of the plan.
    fn flat(&self, lifted: Lifted) -> Result<Lifted> {
        let mut exprs = self.columns.clone();
        exprs.push(mark());
        let mut columns = Vec::with_capacity(lifted.columns.len());
        for (index, LiftedColumn { table, name, expr }) in lifted.columns.into_iter().enumerate() {
            let flat = Column::new(Some(LIFTED), format!("c{index}"));
            exprs.push(expr.alias_qualified(flat.relation.clone(), &flat.name));
            columns.push(LiftedColumn { table, name, expr: Expr::Column(flat) });
        }
        let plan = LogicalPlanBuilder::from(lifted.plan).project(exprs)?.build()?;
        Ok(Lifted { plan, columns, is_single: lifted.is_single })
    }

    /// The rows of which a condition holds, which is over the plan as it is; the others stand for nothing from here on.
    fn with_mark(&self, lifted: Lifted, condition: Expr) -> Result<Lifted> {
        let holds = when(mark().is_not_null().and(condition), lit(true)).end()?;
        let mut exprs = self.columns.clone();
        exprs.push(holds.alias(MARK));
        let mut columns = Vec::with_capacity(lifted.columns.len());
        for (index, LiftedColumn { table, name, expr }) in lifted.columns.into_iter().enumerate() {
            let flat = Column::new(Some(LIFTED), format!("c{index}"));
            exprs.push(expr.alias_qualified(flat.relation.clone(), &flat.name));
            columns.push(LiftedColumn { table, name, expr: marked(Expr::Column(flat))? });
        }
        let plan = LogicalPlanBuilder::from(lifted.plan).project(exprs)?.build()?;
        Ok(Lifted { plan, columns, is_single: lifted.is_single })
    }

    fn limited(&self, limit: &Limit) -> Result<Option<Lifted>> {
        let SkipType::Literal(skip) = limit.get_skip_type()? else { return Ok(None) };
        let FetchType::Literal(fetch) = limit.get_fetch_type()? else { return Ok(None) };
        // Columns that are sorted by and not selected are taken away above the sort.
        let (above, below) = match limit.input.as_ref() {
            LogicalPlan::Projection(projection) if matches!(projection.input.as_ref(), LogicalPlan::Sort(_)) => {
                (Some(projection), &projection.input)
            }
            _ => (None, &limit.input),
        };
        let (below, order) = match below.as_ref() {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => (&sort.input, sort.expr.as_slice()),
            _ => (below, [].as_slice()),
        };
        let Some(lifted) = self.lift(below)? else { return Ok(None) };
        let lifted = self.flat(lifted)?;
        // What stands for nothing comes last.
        let mut keys = vec![mark().sort(true, false)];
        for SortExpr { expr, asc, nulls_first } in order {
            let Some(expr) = self.written(expr, &lifted)? else { return Ok(None) };
            keys.push(SortExpr { expr, asc: *asc, nulls_first: *nulls_first });
        }
        let place = row_number().partition_by(vec![row()]).order_by(keys).build()?;
        let skipped = lit(skip as u64);
        let mut is_within = output(&place).gt(skipped);
        if let Some(fetch) = fetch {
            is_within = is_within.and(output(&place).lt_eq(lit(skip.saturating_add(fetch) as u64)));
        }
        let is_first = output(&place).eq(lit(1_u64));
        let mut plan = LogicalPlanBuilder::from(lifted.plan).window(vec![place])?;
        let is_kept = match (skip, fetch) {
            (0, _) | (_, Some(0)) => is_within.clone().or(is_first),
            // The first row is kept only where none is left behind those that are skipped.
            _ => {
                let rows = Expr::from(WindowFunction::new(count_udaf(), vec![mark()]));
                let rows = rows.partition_by(vec![row()]).build()?;
                let skips_all = output(&rows).lt_eq(lit(i64::try_from(skip).unwrap_or(i64::MAX)));
                plan = plan.window(vec![rows])?;
                is_within.clone().or(is_first.and(skips_all))
            }
        };
        let plan = plan.filter(is_kept)?.build()?;
        let is_single = lifted.is_single || fetch.is_some_and(|fetch| fetch <= 1);
        let limited = self.with_mark(Lifted { plan, ..lifted }, is_within)?;
        let limited = Lifted { is_single, ..limited };
        let Some(above) = above else { return Ok(Some(limited)) };
        let mut columns = Vec::with_capacity(above.expr.len());
        for expr in &above.expr {
            let (table, name) = expr.qualified_name();
            let Some(written) = self.written(expr, &limited)? else { return Ok(None) };
            columns.push(LiftedColumn { table, name, expr: marked(written.unalias())? });
        }
        Ok(Some(Lifted { columns, ..limited }))
    }

    fn aggregated(&self, aggregate: &Aggregate) -> Result<Option<Lifted>> {
        let Some(lifted) = self.lift(&aggregate.input)? else { return Ok(None) };
        let lifted = self.flat(lifted)?;
        let is_single = aggregate.group_expr.is_empty();
        // Maps are no keys of groups; the number of a row says which they are.
        let (carried, mut groups): (Vec<Expr>, Vec<Expr>) = self
            .columns
            .iter()
            .cloned()
            .partition(|column| column.get_type(self.plan.schema()).is_ok_and(|found| has_map(&found)));
        if !is_single {
            groups.push(mark());
        }
        let outer = groups.len();
        let mut exprs = self.columns.iter().cloned().chain([mark()]).collect::<Vec<_>>();
        exprs.extend(lifted.columns.iter().map(|column| column.expr.clone()));
        for group in &aggregate.group_expr {
            if matches!(group, Expr::GroupingSet(_)) {
                return Ok(None);
            }
            let Some(written) = self.written(group, &lifted)? else { return Ok(None) };
            let name = format!("{LIFTED}_group{}", groups.len());
            exprs.push(written.alias(&name));
            groups.push(Expr::Column(Column::new_unqualified(name)));
        }
        let mut values = Vec::with_capacity(aggregate.aggr_expr.len());
        for value in &aggregate.aggr_expr {
            let Some(written) = self.written(value, &lifted)? else { return Ok(None) };
            let Expr::AggregateFunction(AggregateFunction { func, mut params }) = written.unalias() else {
                return Ok(None);
            };
            let filter = match params.filter.take() {
                Some(filter) => mark().is_not_null().and(*filter),
                None => mark().is_not_null(),
            };
            params.filter = Some(Box::new(filter));
            let value = Expr::AggregateFunction(AggregateFunction { func, params });
            values.push(value.alias(format!("{LIFTED}_value{}", values.len())));
        }
        for (index, column) in carried.iter().enumerate() {
            values.push(first_value(column.clone(), Vec::new()).alias(format!("{LIFTED}_outer{index}")));
        }
        let input = LogicalPlanBuilder::from(lifted.plan).project(exprs)?.build()?;
        let plan = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, values)?);
        let found = plan.schema().columns().into_iter().skip(outer).map(Expr::Column);
        let found = found.take(aggregate.schema.fields().len()).collect::<Vec<_>>();
        let mut plan = LogicalPlanBuilder::from(plan);
        if is_single || !carried.is_empty() {
            let place = |column: &Expr| carried.iter().position(|known| known == column);
            let own = self.columns.iter().map(|column| match (place(column), column) {
                (Some(index), Expr::Column(column)) => {
                    let carried = Expr::Column(Column::new_unqualified(format!("{LIFTED}_outer{index}")));
                    carried.alias_qualified(column.relation.clone(), &column.name)
                }
                _ => column.clone(),
            });
            // An aggregate of no rows is a row.
            let kept = if is_single { lit(true).alias(MARK) } else { mark() };
            plan = plan.project(own.chain([kept]).chain(found.iter().cloned()).collect::<Vec<_>>())?;
        }
        let columns = aggregate.schema.iter().zip(found).map(|((table, field), expr)| {
            Ok(LiftedColumn { table: table.cloned(), name: field.name().clone(), expr: marked(expr)? })
        });
        Ok(Some(Lifted { plan: plan.build()?, columns: columns.collect::<Result<_>>()?, is_single }))
    }

    fn windowed(&self, window: &Window) -> Result<Option<Lifted>> {
        let Some(lifted) = self.lift(&window.input)? else { return Ok(None) };
        let mut lifted = self.flat(lifted)?;
        let mut values = Vec::with_capacity(window.window_expr.len());
        for value in &window.window_expr {
            let Some(written) = self.written(value, &lifted)? else { return Ok(None) };
            let Expr::WindowFunction(found) = written.unalias() else { return Ok(None) };
            let WindowFunction { fun, mut params } = *found;
            params.partition_by.extend([row(), mark()]);
            values.push(Expr::from(WindowFunction { fun, params }));
        }
        let own = window.input.schema().fields().len();
        for ((table, field), value) in window.schema.iter().skip(own).zip(&values) {
            let (table, name, expr) = (table.cloned(), field.name().clone(), marked(output(value))?);
            lifted.columns.push(LiftedColumn { table, name, expr });
        }
        let plan = LogicalPlanBuilder::window_plan(lifted.plan, values)?;
        Ok(Some(Lifted { plan, ..lifted }))
    }

    /// Takes lists apart. A row whose lists have no elements stands for nothing from here on, and becomes one row of nulls.
    fn unnested(&self, unnest: &Unnest) -> Result<Option<Lifted>> {
        let Some(lifted) = self.lift(&unnest.input)? else { return Ok(None) };
        let lifted = self.flat(lifted)?;
        let mut columns: Vec<Expr> = lifted.columns.iter().map(|column| column.expr.clone()).collect();
        let mut lists = Vec::with_capacity(unnest.list_type_columns.len());
        let mut has_elements = lit(false);
        for (index, _) in &unnest.list_type_columns {
            let Some(list) = columns.get_mut(*index) else { return Ok(None) };
            let is_filled = array_length(list.clone()).gt(lit(0_u64));
            *list = when(is_filled.clone(), list.clone()).end()?.alias(list_name(*index));
            lists.push(Column::new_unqualified(list_name(*index)));
            has_elements = has_elements.or(is_filled);
        }
        let is_row = when(mark().is_not_null().and(has_elements), lit(true)).end()?.alias(MARK);
        let exprs = self.columns.iter().cloned().chain([is_row]).chain(columns);
        let plan = LogicalPlanBuilder::from(lifted.plan)
            .project(exprs.collect::<Vec<_>>())?
            .unnest_columns_with_options(lists, item_names(unnest).with_preserve_nulls(true))?
            .build()?;
        let found = plan.schema().columns().into_iter().skip(self.columns.len() + 1);
        let columns = unnest.schema.columns().into_iter().zip(found).map(|(column, found)| {
            let expr = marked(Expr::Column(found))?;
            Ok(LiftedColumn { table: column.relation, name: column.name, expr })
        });
        let columns = columns.collect::<Result<_>>()?;
        Ok(Some(Lifted { plan, columns, is_single: false }))
    }

    /// Returns an expression of the subquery over the lifted columns; `None` where it has a subquery of its own, or a column of
    /// a query further out.
    fn written(&self, expr: &Expr, lifted: &Lifted) -> Result<Option<Expr>> {
        let columns = lifted.columns.iter();
        let known = columns.map(|column| ((column.table.as_ref(), column.name.as_str()), &column.expr)).collect();
        written_outside(expr, &known, self.plan.schema())
    }

    /// As [`Self::written`], of a condition over the outer rows and the subquery.
    fn written_of_both(&self, condition: &Expr, lifted: &Lifted) -> Result<Option<Expr>> {
        let outer = self.columns.iter().filter_map(|expr| match expr {
            Expr::Column(column) => Some(((column.relation.as_ref(), column.name.as_str()), expr)),
            _ => None,
        });
        let columns = lifted.columns.iter();
        let inner = columns.map(|column| ((column.table.as_ref(), column.name.as_str()), &column.expr));
        written_outside(condition, &outer.chain(inner).collect(), self.plan.schema())
    }
}

/// Whether values of a type are maps, or have some inside.
fn has_map(found: &DataType) -> bool {
    matches!(found, DataType::Map(_, _)) || any_part(found, &has_map)
}

fn row() -> Expr {
    Expr::Column(Column::new_unqualified(ROW))
}

fn mark() -> Expr {
    Expr::Column(Column::new_unqualified(MARK))
}

/// The column of an expression that is computed below.
fn output(expr: &Expr) -> Expr {
    Expr::Column(Column::new_unqualified(expr.schema_name().to_string()))
}

/// A value of the subquery: null in a row that stands for nothing.
fn marked(expr: Expr) -> Result<Expr> {
    when(mark().is_not_null(), expr).end()
}
