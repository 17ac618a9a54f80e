//! The values that expressions need of matches, as fields of a row for each match.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int64Array, RecordBatch, RecordBatchOptions, StringArray, UInt32Array,
};
use arrow::compute::{cast, take};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::Expr as PlanExpr;

use super::{GraphTable, QueryGraph, arrow_error};
use crate::bind::{NeededSource, NeededValue, PathValue, Result};
use crate::graph::network::Id;
use crate::graph::pattern::FoundMatch;
use crate::plan::field_of;

/// The field of rows that need no values.
const NO_VALUES: &str = "match";

/// What a condition of a pattern is about, where it is about one part of it.
pub(super) enum MaskOf {
    Node(usize),
    Edge(usize),
    /// The edges of a path.
    PathEdges(usize),
    /// The nodes between them.
    PathInner(usize),
}

/// Returns a condition that one part of the pattern decides, as the elements for which it holds.
pub(super) fn mask(
    condition: &PlanExpr,
    needed: &[NeededValue],
    graph: &QueryGraph,
) -> Result<Option<(MaskOf, Vec<bool>)>> {
    let fields = condition.column_refs();
    let mut sources = needed.iter().filter(|value| fields.iter().any(|field| field.name == value.field));
    let Some(first) = sources.next() else { return Ok(None) };
    let (of, elements) = match &first.source {
        NeededSource::Node(node, _) => (MaskOf::Node(*node), &graph.nodes),
        NeededSource::Edge(edge, _) => (MaskOf::Edge(*edge), &graph.edges),
        NeededSource::Path { edge, of_inner, how: PathValue::All, expr } if field_of(condition).is_some() => {
            return Ok(Some(match of_inner {
                true => (MaskOf::PathInner(*edge), holds(&graph.nodes.values(expr)?)?),
                false => (MaskOf::PathEdges(*edge), holds(&graph.edges.values(expr)?)?),
            }));
        }
        NeededSource::Path { .. } => return Ok(None),
    };
    let is_same = |value: &NeededValue| match (&of, &value.source) {
        (MaskOf::Node(node), NeededSource::Node(other, _)) => node == other,
        (MaskOf::Edge(edge), NeededSource::Edge(other, _)) => edge == other,
        _ => false,
    };
    if !sources.all(is_same) || has_subquery(condition) {
        return Ok(None);
    }
    let over_elements = condition.clone().transform(|expr| {
        let source = field_of(&expr).and_then(|field| needed.iter().find(|value| value.field == field));
        Ok(match source.map(|value| &value.source) {
            Some(NeededSource::Node(_, source) | NeededSource::Edge(_, source)) => Transformed::yes(source.clone()),
            _ => Transformed::no(expr),
        })
    })?;
    let values = elements.values(&over_elements.data)?;
    Ok(Some((of, holds(&values)?)))
}

fn has_subquery(expr: &PlanExpr) -> bool {
    let is_subquery =
        |expr: &PlanExpr| matches!(expr, PlanExpr::InSubquery(_) | PlanExpr::ScalarSubquery(_) | PlanExpr::Exists(_));
    expr.exists(|expr| Ok(is_subquery(expr))).unwrap_or(true)
}

/// Returns for which elements a condition holds; null is no.
pub(super) fn holds(values: &ArrayRef) -> Result<Vec<bool>> {
    let values = cast(values, &DataType::Boolean).map_err(arrow_error)?;
    Ok(values.as_boolean().iter().map(|value| value == Some(true)).collect())
}

/// Returns the rows of matches with the needed values.
pub(super) fn rows(matches: &[FoundMatch], needed: &[&NeededValue], graph: &QueryGraph) -> Result<RecordBatch> {
    let mut fields = Vec::with_capacity(needed.len());
    let mut arrays: Vec<ArrayRef> = Vec::with_capacity(needed.len());
    for value in needed {
        let array = values(matches, &value.source, graph)?;
        let array = cast(&array, &value.kql_type.arrow_type()).map_err(arrow_error)?;
        fields.push(Field::new(value.field.clone(), array.data_type().clone(), true));
        arrays.push(array);
    }
    if arrays.is_empty() {
        fields.push(Field::new(NO_VALUES, DataType::Int64, true));
        arrays.push(Arc::new(Int64Array::from(vec![0; matches.len()])));
    }
    let options = RecordBatchOptions::new().with_row_count(Some(matches.len()));
    let rows = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options);
    Ok(rows.map_err(arrow_error)?)
}

fn values(matches: &[FoundMatch], source: &NeededSource, graph: &QueryGraph) -> Result<ArrayRef> {
    let taken = |elements: &GraphTable, expr: &PlanExpr, ids: UInt32Array| -> Result<ArrayRef> {
        Ok(take(&elements.values(expr)?, &ids, None).map_err(arrow_error)?)
    };
    match source {
        NeededSource::Node(node, expr) => {
            taken(&graph.nodes, expr, matches.iter().map(|found| Some(found.nodes[*node])).collect())
        }
        NeededSource::Edge(edge, expr) => {
            let ids = matches.iter().map(|found| found.paths[*edge].edges.first().copied());
            taken(&graph.edges, expr, ids.collect())
        }
        NeededSource::Path { edge, of_inner, how, expr } => {
            let elements = if *of_inner { &graph.nodes } else { &graph.edges };
            let values = elements.values(expr)?;
            let ids_of = |found: &'_ FoundMatch| -> Vec<Id> {
                let path = &found.paths[*edge];
                if *of_inner { path.inner.clone() } else { path.edges.clone() }
            };
            if *how == PathValue::Map {
                return arrays_of(matches, &values, ids_of);
            }
            let holds = holds(&values)?;
            let is_true = |found: &FoundMatch| {
                let ids = ids_of(found);
                let mut holding = ids.iter().map(|id| holds[*id as usize]);
                if *how == PathValue::All { holding.all(|holds| holds) } else { holding.any(|holds| holds) }
            };
            Ok(Arc::new(matches.iter().map(|found| Some(is_true(found))).collect::<BooleanArray>()))
        }
    }
}

/// Returns an array of the elements' values for each match, as JSON.
fn arrays_of(matches: &[FoundMatch], values: &ArrayRef, ids_of: impl Fn(&FoundMatch) -> Vec<Id>) -> Result<ArrayRef> {
    let texts = cast(values, &DataType::Utf8).map_err(arrow_error)?;
    let texts = texts.as_string::<i32>();
    let array = |found: &FoundMatch| {
        let mut json = String::from("[");
        for (index, id) in ids_of(found).into_iter().enumerate() {
            if index > 0 {
                json.push(',');
            }
            let id = id as usize;
            json.push_str(if texts.is_null(id) { "null" } else { texts.value(id) });
        }
        json.push(']');
        json
    };
    Ok(Arc::new(matches.iter().map(|found| Some(array(found))).collect::<StringArray>()))
}
