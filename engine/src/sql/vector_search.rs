//! The optimizer rule that has a vector index find the rows of `ORDER BY distance(column, vector) LIMIT k`: it puts in place of the
//! table one that has the rows which the search needs. The plan above stays, so distances, order and rows are those of the
//! statement, and only how many of the nearest rows are found is the index's.
//!
//! Nothing but projections and conditions that the scan is told of may lie between the order and the table, and the table
//! is one of which the caller sees all.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float32Type};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::common::{DFSchema, Result, ScalarValue};
use datafusion::datasource::{provider_as_source, source_as_provider};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Sort, TableScan};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};
use querent_catalog::VectorMetric;

use super::catalog_table::CatalogTable;
use crate::functions::PLAIN_DOUBLE;
use crate::tables::managed::NearestRequest;

/// See the module. It comes after the rules that move limits and filters to where they are looked for.
#[derive(Debug)]
pub(crate) struct UseVectorIndexes;

impl OptimizerRule for UseVectorIndexes {
    fn name(&self) -> &'static str {
        "use_vector_indexes"
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        with_indexed_searches(plan)
    }
}

/// Returns an optimised plan whose searches have a vector index find their rows, where one serves them.
pub(crate) fn with_indexed_searches(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    plan.transform_down_with_subqueries(|node| match &node {
        LogicalPlan::Sort(sort) => match indexed(sort)? {
            Some(sort) => Ok(Transformed::yes(LogicalPlan::Sort(sort))),
            None => Ok(Transformed::no(node)),
        },
        _ => Ok(Transformed::no(node)),
    })
}

/// Returns whether an expression is the distance of a column to what `is_vector` says yes to.
pub(super) fn is_distance(expr: &Expr, is_vector: impl Fn(&Expr) -> bool) -> bool {
    let Expr::ScalarFunction(call) = expr else { return false };
    match call.args.as_slice() {
        [left, right] if metric_of(call.name()).is_some() => {
            (column_of(left).is_some() && is_vector(right)) || (is_vector(left) && column_of(right).is_some())
        }
        _ => false,
    }
}

/// Returns the sort of the rows that an index finds; `None` where none serves it.
fn indexed(sort: &Sort) -> Result<Option<Sort>> {
    let (Some(rows), Some(first)) = (sort.fetch, sort.expr.first()) else { return Ok(None) };
    let Some((scan, expr)) = traced(&sort.input, first.expr.clone())? else { return Ok(None) };
    let Some(distance) = Distance::of(&expr).filter(|distance| distance.ascending == first.asc) else {
        return Ok(None);
    };
    let provider = source_as_provider(&scan.source)?;
    let Some(table) = provider.downcast_ref::<CatalogTable>() else { return Ok(None) };
    let Distance { metric, column, vector, .. } = distance;
    let request = NearestRequest { metric, vector, rows, nulls_first: first.nulls_first };
    let Some(near) = table.near(&column, request) else { return Ok(None) };
    let source = provider_as_source(Arc::new(near));
    // There is one table below.
    let replaced = |node: LogicalPlan| match node {
        LogicalPlan::TableScan(scan) => {
            let scan = TableScan { source: Arc::clone(&source), ..scan };
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    };
    let input = sort.input.as_ref().clone().transform_up(replaced).data()?;
    Ok(Some(Sort { input: Arc::new(input), ..sort.clone() }))
}

/// Returns the table below a plan of one, and what an expression over the plan is over the table.
fn traced(plan: &LogicalPlan, expr: Expr) -> Result<Option<(&TableScan, Expr)>> {
    let (mut plan, mut expr, mut conditions) = (plan, expr, Vec::new());
    loop {
        match plan {
            LogicalPlan::Projection(projection) if conditions.is_empty() => {
                let Some(below) = substituted(expr, &projection.schema, &projection.expr)? else { return Ok(None) };
                (plan, expr) = (projection.input.as_ref(), below);
            }
            LogicalPlan::SubqueryAlias(alias) if conditions.is_empty() => {
                let columns: Vec<Expr> = alias.input.schema().columns().into_iter().map(Expr::Column).collect();
                let Some(below) = substituted(expr, &alias.schema, &columns)? else { return Ok(None) };
                (plan, expr) = (alias.input.as_ref(), below);
            }
            LogicalPlan::Filter(filter) => {
                conditions.extend(split_conjunction(&filter.predicate));
                plan = filter.input.as_ref();
            }
            LogicalPlan::TableScan(scan) => {
                // What the scan is not told it cannot count, and the rest of what it is told is checked above.
                let is_told = conditions.iter().all(|condition| scan.filters.contains(condition));
                return Ok((is_told && scan.fetch.is_none()).then_some((scan, expr)));
            }
            _ => return Ok(None),
        }
    }
}

/// Returns an expression over the columns of `schema` with what they are below in their place.
fn substituted(expr: Expr, schema: &DFSchema, below: &[Expr]) -> Result<Option<Expr>> {
    let mut is_known = true;
    let replaced = expr.transform_up(|part| {
        let Expr::Column(column) = &part else { return Ok(Transformed::no(part)) };
        match schema.maybe_index_of_column(column).and_then(|index| below.get(index)) {
            Some(inner) => Ok(Transformed::yes(inner.clone().unalias())),
            None => {
                is_known = false;
                Ok(Transformed::no(part))
            }
        }
    });
    Ok(Some(replaced.data()?).filter(|_| is_known))
}

/// The distance of a column to a constant vector.
struct Distance {
    metric: VectorMetric,
    /// Whether near rows have the smaller values.
    ascending: bool,
    column: String,
    vector: Vec<f32>,
}

impl Distance {
    /// Returns what an expression measures; `None` for anything but a distance to a constant.
    fn of(expr: &Expr) -> Option<Self> {
        let call = match expr {
            Expr::Alias(alias) => return Self::of(&alias.expr),
            Expr::ScalarFunction(call) => call,
            _ => return None,
        };
        if let (PLAIN_DOUBLE, [inner]) = (call.name(), call.args.as_slice()) {
            return Self::of(inner);
        }
        let (metric, ascending) = metric_of(call.name())?;
        let [left, right] = call.args.as_slice() else { return None };
        let (column, vector) = match (column_of(left), column_of(right)) {
            (Some(column), None) => (column, constant(right)?),
            (None, Some(column)) => (column, constant(left)?),
            (Some(_), Some(_)) | (None, None) => return None,
        };
        Some(Self { metric, ascending, column, vector })
    }
}

/// Returns the metric of a function, and whether near rows have the smaller values.
fn metric_of(function: &str) -> Option<(VectorMetric, bool)> {
    match function {
        "array_distance" => Some((VectorMetric::L2, true)),
        "cosine_distance" => Some((VectorMetric::Cosine, true)),
        "cosine_similarity" => Some((VectorMetric::Cosine, false)),
        "inner_product" => Some((VectorMetric::Dot, false)),
        "negative_inner_product" => Some((VectorMetric::Dot, true)),
        _ => None,
    }
}

/// Returns the name of a column of vectors in single precision, which may be written as another such type.
fn column_of(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Column(column) => Some(column.name.clone()),
        Expr::Cast(cast) if is_single(cast.field.data_type()) => match cast.expr.as_ref() {
            Expr::Column(column) => Some(column.name.clone()),
            _ => None,
        },
        _ => None,
    }
}

fn is_single(data_type: &DataType) -> bool {
    matches!(data_type, DataType::FixedSizeList(item, _) if *item.data_type() == DataType::Float32)
}

fn constant(expr: &Expr) -> Option<Vec<f32>> {
    let Expr::Literal(value, _) = expr else { return None };
    let lists: ArrayRef = match value {
        ScalarValue::FixedSizeList(list) => Arc::clone(list) as ArrayRef,
        ScalarValue::List(list) => Arc::clone(list) as ArrayRef,
        ScalarValue::LargeList(list) => Arc::clone(list) as ArrayRef,
        _ => return None,
    };
    if lists.len() != 1 || lists.is_null(0) {
        return None;
    }
    let numbers = match lists.data_type() {
        DataType::FixedSizeList(..) => lists.as_fixed_size_list().value(0),
        DataType::LargeList(_) => lists.as_list::<i64>().value(0),
        _ => lists.as_list::<i32>().value(0),
    };
    let numbers = cast(&numbers, &DataType::Float32).ok()?;
    let numbers = numbers.as_primitive::<Float32Type>();
    (numbers.null_count() == 0).then(|| numbers.values().to_vec())
}
