//! The matches of a pattern as an aggregate over the rows of a graph, which SQL's `graph_match` calls.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, NullArray, StructArray, UInt32Array, new_empty_array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::{concat, take};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use super::edges::EdgeList;
use super::network::{Id, Network};
use super::pattern::{Cycles, FoundMatch, GraphPattern, MAX_MATCHES, MAX_STEPS, matches};
use super::shape::PatternShape;
use super::{constant, plan_error};
use crate::interrupt::check_interrupt;

/// The name of the aggregate `(source T, target T, is_edge Boolean, fits Int64, edge Struct, node Struct, pattern Utf8,
/// cycles Utf8, conditioned_nodes Int64, conditioned_edges Int64)`, of which the last four are constants. A row is an edge,
/// or a node whose key is `source`; `edge` and `node` have the values that are wanted of it. A bit of `fits` says whether a
/// row may be the node or the edge of that place in the pattern; only those of the conditioned ones are looked at.
pub const MATCHES: &str = "graph_pattern_matches";
/// In a match, the keys of the pattern's nodes.
pub const NODES: &str = "nodes";
/// A list for each value of nodes, with one value for each node of the pattern.
pub const NODE_VALUES: &str = "node_values";
/// A list for each value of edges, with a list of the values along each edge of the pattern.
pub const EDGE_VALUES: &str = "edge_values";

/// How many arguments are of a row; the constants follow.
const ROW_ARGUMENTS: usize = 6;
const ARGUMENTS: usize = ROW_ARGUMENTS + 4;
/// The memory of the network for each row: its two ends, and the hop from each.
const NETWORK_BYTES_PER_ROW: usize = 64;

pub(super) fn aggregate() -> Arc<AggregateUDF> {
    let signature = Signature::user_defined(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(MatchAggregate { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct MatchAggregate {
    signature: Signature,
}

impl MatchAggregate {
    fn misused<T>(&self) -> Result<T> {
        plan_error(format!("{MATCHES} is called by graph_match(...), with {ARGUMENTS} arguments"))
    }
}

impl AggregateUDFImpl for MatchAggregate {
    fn name(&self) -> &str {
        MATCHES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [source, target, _, _, edge, node, ..] = given else { return self.misused() };
        if given.len() != ARGUMENTS {
            return self.misused();
        }
        let Some(key) = comparison_coercion(source, target) else {
            return plan_error(format!("an edge's ends are of one type, not {source} and {target}"));
        };
        for values in [edge, node] {
            if !matches!(values, DataType::Struct(_) | DataType::Null) {
                return self.misused();
            }
        }
        let row = [key.clone(), key, DataType::Boolean, DataType::Int64, edge.clone(), node.clone()];
        let constants = [DataType::Utf8, DataType::Utf8, DataType::Int64, DataType::Int64];
        Ok(row.into_iter().chain(constants).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let [key, _, _, _, edge, node, ..] = given else { return self.misused() };
        Ok(DataType::new_list(DataType::Struct(match_fields(key, edge, node)), true))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [row @ .., pattern, cycles, nodes, edges] = arguments.exprs else { return self.misused() };
        let types: Vec<DataType> = row.iter().map(|expr| expr.data_type(arguments.schema)).collect::<Result<_>>()?;
        let fields = row_fields(&types);
        let [pattern, cycles, nodes, edges] =
            [pattern, cycles, nodes, edges].map(|expr| constant(expr, arguments.schema));
        let (
            ScalarValue::Utf8(Some(pattern)),
            ScalarValue::Utf8(Some(cycles)),
            ScalarValue::Int64(Some(nodes)),
            ScalarValue::Int64(Some(edges)),
        ) = (pattern?, cycles?, nodes?, edges?)
        else {
            return self.misused();
        };
        let Some(cycles) = Cycles::from_word(&cycles) else {
            return plan_error("cycles are 'all', 'none' or 'unique_edges'".to_owned());
        };
        let shape = PatternShape::parse(&pattern).map_err(DataFusionError::Plan)?;
        Ok(Box::new(GraphRows { fields, rows: Vec::new(), bytes: 0, shape, cycles, nodes, edges }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let types: Vec<DataType> =
            arguments.input_fields.iter().take(ROW_ARGUMENTS).map(|field| field.data_type().clone()).collect();
        let rows = DataType::new_list(DataType::Struct(row_fields(&types)), true);
        Ok(vec![Arc::new(Field::new(format!("{}[rows]", arguments.name), rows, true))])
    }
}

/// Returns the fields of a row that is kept.
fn row_fields(types: &[DataType]) -> Fields {
    let names = ["source", "target", "is_edge", "fits", "edge", "node"];
    names.into_iter().zip(types).map(|(name, data_type)| Field::new(name, data_type.clone(), true)).collect()
}

fn match_fields(key: &DataType, edge: &DataType, node: &DataType) -> Fields {
    let lists = |values: &DataType, list: fn(&DataType) -> DataType| match values {
        DataType::Struct(fields) => {
            let field = |field: &FieldRef| Field::new(field.name(), list(field.data_type()), true);
            DataType::Struct(fields.iter().map(field).collect())
        }
        other => other.clone(),
    };
    let list = |value: &DataType| DataType::new_list(value.clone(), true);
    Fields::from(vec![
        Field::new(NODES, list(key), true),
        Field::new(NODE_VALUES, lists(node, list), true),
        Field::new(
            EDGE_VALUES,
            lists(edge, |value| DataType::new_list(DataType::new_list(value.clone(), true), true)),
            true,
        ),
    ])
}

/// The rows of a graph while they are collected, and the pattern that is matched once all are there.
#[derive(Debug)]
struct GraphRows {
    fields: Fields,
    rows: Vec<StructArray>,
    bytes: usize,
    shape: PatternShape,
    cycles: Cycles,
    nodes: i64,
    edges: i64,
}

impl GraphRows {
    fn push(&mut self, rows: StructArray) {
        self.bytes += rows.get_array_memory_size() + rows.len() * NETWORK_BYTES_PER_ROW;
        self.rows.push(rows);
    }

    fn take_rows(&mut self) -> Result<StructArray> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let parts: Vec<&dyn Array> = rows.iter().map(|rows| rows as &dyn Array).collect();
        Ok(match parts.is_empty() {
            true => new_empty_array(&DataType::Struct(self.fields.clone())),
            false => concat(&parts)?,
        }
        .as_struct()
        .clone())
    }

    /// Returns the pattern with what may stand in its conditioned places.
    fn pattern(&self, nodes: &[Option<u32>], edges: &[u32], fits: &dyn Array) -> GraphPattern {
        let fits = fits.as_primitive::<Int64Type>();
        let may_be = |row: u32, place: usize| fits.is_valid(row as usize) && fits.value(row as usize) >> place & 1 == 1;
        let is_conditioned = |conditioned: i64, place: usize| conditioned >> place & 1 == 1;
        let node = |place: usize| {
            is_conditioned(self.nodes, place)
                .then(|| nodes.iter().map(|row| row.is_some_and(|row| may_be(row, place))).collect())
        };
        let mut pattern_edges = self.shape.edges.clone();
        for (place, edge) in pattern_edges.iter_mut().enumerate() {
            edge.edges =
                is_conditioned(self.edges, place).then(|| edges.iter().map(|row| may_be(*row, place)).collect());
        }
        GraphPattern { nodes: (0..self.shape.nodes).map(node).collect(), edges: pattern_edges, cycles: self.cycles }
    }

    fn matched(&self, rows: &StructArray) -> Result<StructArray> {
        let [sources, targets, is_edge, fits, edge, node] = rows.columns() else {
            return Err(DataFusionError::Internal("a row of a graph has six columns".into()));
        };
        let is_edge = is_edge.as_boolean();
        // A null is no node, as it equals nothing in SQL.
        let is_kept = |row: &usize| sources.is_valid(*row) && targets.is_valid(*row);
        let (edge_rows, node_rows): (Vec<usize>, Vec<usize>) =
            (0..rows.len()).filter(is_kept).partition(|row| is_edge.is_valid(*row) && is_edge.value(*row));
        let [edge_rows, node_rows] = [edge_rows, node_rows].map(|rows| rows.iter().map(|row| *row as u32).collect());
        let (edge_rows, node_rows): (Vec<u32>, Vec<u32>) = (edge_rows, node_rows);
        let of = |array: &ArrayRef, rows: &[u32]| take(array, &UInt32Array::from(rows.to_vec()), None);

        let mut list = EdgeList::new(sources.data_type())?;
        list.add(&of(sources, &edge_rows)?, &of(targets, &edge_rows)?)?;
        let named = list.ids(&of(sources, &node_rows)?)?;
        let mut row_of_node: Vec<Option<u32>> = vec![None; list.node_count() as usize];
        for (row, id) in node_rows.iter().zip(named) {
            row_of_node[id as usize].get_or_insert(*row);
        }
        let pattern = self.pattern(&row_of_node, &edge_rows, fits);
        let network = Network::new(list.node_count() as usize, list.ends(), true);
        let found = matches(&network, &pattern, MAX_MATCHES, MAX_STEPS);
        check_interrupt()?;
        let found = found.map_err(|limit| {
            DataFusionError::ResourcesExhausted(format!("graph_match: {limit}; give it conditions, or shorter paths"))
        })?;

        let of_match = OffsetBuffer::from_lengths(found.iter().map(|one| one.nodes.len()));
        let ids = || found.iter().flat_map(|one| one.nodes.iter().copied());
        let keys = list_of(list.nodes(ids())?, of_match.clone())?;
        let rows_of_ids: UInt32Array = ids().map(|id| row_of_node[id as usize]).collect();
        let node_values =
            each_field(node, found.len(), |values| list_of(take(values, &rows_of_ids, None)?, of_match.clone()))?;
        let edge_values = edge_values(edge, &found, &edge_rows)?;
        let fields = match_fields(sources.data_type(), edge.data_type(), node.data_type());
        Ok(StructArray::try_new_with_length(fields, vec![keys, node_values, edge_values], None, found.len())?)
    }
}

/// Returns the values along each edge of each match.
fn edge_values(edges: &ArrayRef, found: &[FoundMatch], rows: &[u32]) -> Result<ArrayRef> {
    let of_path =
        OffsetBuffer::from_lengths(found.iter().flat_map(|one| one.paths.iter().map(|path| path.edges.len())));
    let of_match = OffsetBuffer::from_lengths(found.iter().map(|one| one.paths.len()));
    let ids = found.iter().flat_map(|one| one.paths.iter().flat_map(|path| path.edges.iter()));
    let rows: UInt32Array = ids.map(|id: &Id| Some(rows[*id as usize])).collect();
    each_field(edges, found.len(), |values| {
        list_of(list_of(take(values, &rows, None)?, of_path.clone())?, of_match.clone())
    })
}

/// Returns the struct of what is made of each field; nulls where there are no fields.
fn each_field(values: &ArrayRef, count: usize, made: impl Fn(&ArrayRef) -> Result<ArrayRef>) -> Result<ArrayRef> {
    let Some(values) = values.as_struct_opt() else { return Ok(Arc::new(NullArray::new(count))) };
    let mut fields = Vec::with_capacity(values.num_columns());
    let mut arrays = Vec::with_capacity(values.num_columns());
    for (field, array) in values.fields().iter().zip(values.columns()) {
        let array = made(array)?;
        fields.push(Field::new(field.name(), array.data_type().clone(), true));
        arrays.push(array);
    }
    Ok(Arc::new(StructArray::try_new_with_length(fields.into(), arrays, None, count)?))
}

fn list_of(values: ArrayRef, offsets: OffsetBuffer<i32>) -> Result<ArrayRef> {
    let field = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Ok(Arc::new(ListArray::try_new(field, offsets, values, None)?))
}

impl Accumulator for GraphRows {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(row) = values.get(..ROW_ARGUMENTS) else { return Ok(()) };
        let rows = StructArray::try_new(self.fields.clone(), row.to_vec(), None)?;
        self.push(rows);
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let Some(lists) = states.first().and_then(|state| state.as_list_opt::<i32>()) else { return Ok(()) };
        for rows in lists.iter().flatten() {
            self.push(rows.as_struct().clone());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let rows = Arc::new(self.take_rows()?);
        Ok(vec![SingleRowListArrayBuilder::new(rows).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let rows = self.take_rows()?;
        let found = Arc::new(self.matched(&rows)?);
        Ok(SingleRowListArrayBuilder::new(found).build_list_scalar())
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.bytes
    }
}
