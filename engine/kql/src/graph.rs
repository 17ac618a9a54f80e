//! Graphs whose edges are rows. Each [`GraphAlgorithm`] is an aggregate, which KQL's `graph-traverse` and SQL's table
//! functions call: it collects edges, whatever operators made them, and works on them once all are there. So does the
//! aggregate behind SQL's `graph_match`, whose search is that of KQL's `graph-match`.

pub(crate) mod components;
mod edges;
mod matches;
mod model;
pub(crate) mod network;
pub(crate) mod pattern;
mod reach;
pub(crate) mod shape;
pub(crate) mod shortest;

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, FieldRef, Fields, UInt32Type};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};
use datafusion::physical_plan::PhysicalExpr;
use datafusion::scalar::ScalarValue;

use components::{strong_components, weak_components};
use edges::{EdgeList, NodeId};
pub use matches::{EDGE_VALUES, MATCHES, NODE_VALUES, NODES};
pub use model::{GraphModelDefinition, restored, storable};
use network::Network;
pub use reach::Direction;
pub use shape::{GraphVariable, PatternShape};

/// The field with a node in the rows that the aggregates return.
pub const NODE: &str = "node";
/// The field with the number of edges between a node and the nearest start.
pub const DEPTH: &str = "depth";
/// The field with a node's place on a path, from 0.
pub const STEP: &str = "step";
/// The field with the number of a node's component, from 0.
pub const COMPONENT: &str = "component";

/// What is computed of the edges that an aggregate collects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GraphAlgorithm {
    /// `(source T, target T, from List<T>, max_hops Int64, direction Utf8)`: the nodes within `max_hops` edges of any of `from`,
    /// those included at depth 0, each once and at its smallest depth, by depth.
    Traverse,
    /// `(source T, target T, from T, to T, max_hops Int64, direction Utf8)`: the nodes of a path with the fewest edges, in order;
    /// none where there is no path.
    ShortestPath,
    /// `(source T, target T, kind Utf8)`: every node and its component; of kind `weak` regardless of directions, of kind
    /// `strong` where each is reached from each other.
    Components,
}

impl GraphAlgorithm {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Traverse, Self::ShortestPath, Self::Components];

    /// Returns the aggregate's name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Self::Traverse => "graph_traverse_nodes",
            Self::ShortestPath => "graph_shortest_path_nodes",
            Self::Components => "graph_component_nodes",
        }
    }

    /// Returns the field beside the node in the rows that it returns.
    pub fn number_field(self) -> &'static str {
        match self {
            Self::Traverse => DEPTH,
            Self::ShortestPath => STEP,
            Self::Components => COMPONENT,
        }
    }

    /// Returns the aggregate over edges, which returns `List<Struct<node T, number Int64>>`. All arguments but the edges' two
    /// ends are constants.
    pub fn aggregate(self) -> Arc<AggregateUDF> {
        let signature = Signature::user_defined(Volatility::Immutable);
        Arc::new(AggregateUDF::new_from_impl(GraphAggregate { algorithm: self, signature }))
    }

    fn argument_count(self) -> usize {
        match self {
            Self::Traverse => 5,
            Self::ShortestPath => 6,
            Self::Components => 3,
        }
    }
}

/// Returns all aggregates of graphs.
pub fn graph_aggregates() -> Vec<Arc<AggregateUDF>> {
    let algorithms = GraphAlgorithm::ALL.into_iter().map(GraphAlgorithm::aggregate);
    algorithms.chain([matches::aggregate()]).collect()
}

/// Whether an aggregate is one of [`graph_aggregates`].
pub fn is_graph_aggregate(function: &AggregateUDF) -> bool {
    let function = function.inner().as_ref() as &dyn std::any::Any;
    function.is::<GraphAggregate>() || function.is::<matches::MatchAggregate>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct GraphAggregate {
    algorithm: GraphAlgorithm,
    signature: Signature,
}

impl GraphAggregate {
    fn miscounted<T>(&self) -> Result<T> {
        plan_error(format!("{} takes {} arguments", self.name(), self.algorithm.argument_count()))
    }
}

impl AggregateUDFImpl for GraphAggregate {
    fn name(&self) -> &str {
        self.algorithm.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [source, target, ..] = given else { return self.miscounted() };
        if given.len() != self.algorithm.argument_count() {
            return self.miscounted();
        }
        let Some(node) = comparison_coercion(source, target) else {
            return plan_error(format!("an edge's ends are of one type, not {source} and {target}"));
        };
        let rest = match self.algorithm {
            GraphAlgorithm::Traverse => {
                vec![DataType::new_list(node.clone(), true), DataType::Int64, DataType::Utf8]
            }
            GraphAlgorithm::ShortestPath => vec![node.clone(), node.clone(), DataType::Int64, DataType::Utf8],
            GraphAlgorithm::Components => vec![DataType::Utf8],
        };
        Ok([node.clone(), node].into_iter().chain(rest).collect())
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let Some(node) = given.first() else { return self.miscounted() };
        Ok(DataType::List(Arc::new(row_field(self.algorithm, node))))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [source, _, rest @ ..] = arguments.exprs else { return self.miscounted() };
        let node_type = source.data_type(arguments.schema)?;
        let constants = rest.iter().map(|expr| constant(expr, arguments.schema));
        let constants: Vec<ScalarValue> = constants.collect::<Result<_>>()?;
        let work = match (self.algorithm, constants.as_slice()) {
            (GraphAlgorithm::Traverse, [from, hops, direction]) => {
                let from = match from {
                    ScalarValue::List(list) if !list.is_null(0) => list.value(0),
                    _ => arrow::array::new_empty_array(&node_type),
                };
                GraphWork::Traverse { from, max_hops: max_hops(hops)?, direction: direction_of(direction)? }
            }
            (GraphAlgorithm::ShortestPath, [from, to, hops, direction]) => GraphWork::ShortestPath {
                ends: [from.to_array()?, to.to_array()?],
                max_hops: max_hops(hops)?,
                direction: direction_of(direction)?,
            },
            (GraphAlgorithm::Components, [ScalarValue::Utf8(Some(kind))]) => match kind.as_str() {
                "weak" => GraphWork::Components { is_strong: false },
                "strong" => GraphWork::Components { is_strong: true },
                _ => return plan_error("a kind of components is 'weak' or 'strong'".to_owned()),
            },
            _ => return self.miscounted(),
        };
        Ok(Box::new(EdgeAccumulator { edges: EdgeList::new(&node_type)?, node_type, work }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let Some(node) = arguments.input_fields.first() else { return self.miscounted() };
        let list = |what: &str, item: &DataType| {
            let list = DataType::new_list(item.clone(), true);
            Arc::new(Field::new(format!("{}[{what}]", arguments.name), list, true))
        };
        Ok(vec![list("nodes", node.data_type()), list("ends", &DataType::UInt32)])
    }
}

fn max_hops(value: &ScalarValue) -> Result<u32> {
    match value {
        ScalarValue::Int64(Some(hops)) => Ok(u32::try_from((*hops).max(0)).unwrap_or(u32::MAX)),
        _ => plan_error("the number of hops is not null".to_owned()),
    }
}

fn direction_of(value: &ScalarValue) -> Result<Direction> {
    let direction = match value {
        ScalarValue::Utf8(Some(text)) => Direction::from_name(text),
        _ => None,
    };
    match direction {
        Some(direction) => Ok(direction),
        None => plan_error("a direction is 'forward', 'backward' or 'both'".to_owned()),
    }
}

/// Returns the value of an expression without columns.
fn constant(expr: &Arc<dyn PhysicalExpr>, schema: &arrow::datatypes::Schema) -> Result<ScalarValue> {
    let columns = datafusion::physical_expr::utils::collect_columns(expr);
    if !columns.is_empty() {
        return plan_error("where a walk begins, its hops and its direction are constants".to_owned());
    }
    let row = arrow::array::RecordBatch::new_empty(Arc::new(schema.clone()));
    match expr.evaluate(&row)? {
        datafusion::physical_plan::ColumnarValue::Scalar(value) => Ok(value),
        datafusion::physical_plan::ColumnarValue::Array(_) => {
            plan_error("where a walk begins, its hops and its direction are constants".to_owned())
        }
    }
}

fn plan_error<T>(message: String) -> Result<T> {
    Err(DataFusionError::Plan(message))
}

fn row_field(algorithm: GraphAlgorithm, node: &DataType) -> Field {
    Field::new_list_field(DataType::Struct(row_fields(algorithm, node)), false)
}

fn row_fields(algorithm: GraphAlgorithm, node: &DataType) -> Fields {
    let number = Field::new(algorithm.number_field(), DataType::Int64, false);
    vec![Field::new(NODE, node.clone(), true), number].into()
}

/// What is done with the edges once all are there.
#[derive(Debug)]
enum GraphWork {
    Traverse { from: ArrayRef, max_hops: u32, direction: Direction },
    ShortestPath { ends: [ArrayRef; 2], max_hops: u32, direction: Direction },
    Components { is_strong: bool },
}

impl GraphWork {
    fn algorithm(&self) -> GraphAlgorithm {
        match self {
            Self::Traverse { .. } => GraphAlgorithm::Traverse,
            Self::ShortestPath { .. } => GraphAlgorithm::ShortestPath,
            Self::Components { .. } => GraphAlgorithm::Components,
        }
    }

    /// Returns nodes and their numbers.
    fn rows(&self, edges: &mut EdgeList) -> Result<Vec<(NodeId, u32)>> {
        match self {
            Self::Traverse { from, max_hops, direction } => {
                let from = edges.ids(from)?;
                Ok(reach::reach(edges, &from, *max_hops, *direction))
            }
            Self::ShortestPath { ends: [from, to], max_hops, direction } => {
                let (from, to) = (edges.ids(from)?, edges.ids(to)?);
                let ([from], [to]) = (from.as_slice(), to.as_slice()) else { return Ok(Vec::new()) };
                let path = reach::shortest_path(edges, [*from, *to], *max_hops, *direction);
                Ok(path.into_iter().zip(0..).collect())
            }
            Self::Components { is_strong } => {
                let network = Network::new(edges.node_count() as usize, edges.ends(), true);
                let components = if *is_strong { strong_components(&network) } else { weak_components(&network) };
                Ok((0..).zip(components).collect())
            }
        }
    }

    /// Returns the memory that it takes, in bytes.
    fn bytes(&self, edges: &EdgeList) -> usize {
        match self {
            Self::Traverse { direction, .. } | Self::ShortestPath { direction, .. } => reach::bytes(edges, *direction),
            Self::Components { .. } => reach::bytes(edges, Direction::Both),
        }
    }
}

/// A graph while its edges are collected.
#[derive(Debug)]
struct EdgeAccumulator {
    edges: EdgeList,
    node_type: DataType,
    work: GraphWork,
}

impl Accumulator for EdgeAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        match values {
            [sources, targets, ..] => self.edges.add(sources, targets),
            _ => Ok(()),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [nodes, ends] = states else { return Ok(()) };
        let (Some(nodes), Some(ends)) = (nodes.as_list_opt::<i32>(), ends.as_list_opt::<i32>()) else {
            return Err(DataFusionError::Internal("the state of a walk is two lists".into()));
        };
        for (nodes, ends) in nodes.iter().zip(ends.iter()) {
            if let Some((nodes, ends)) = nodes.zip(ends) {
                self.edges.merge(&nodes, ends.as_primitive::<UInt32Type>())?;
            }
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let (nodes, ends) = std::mem::replace(&mut self.edges, EdgeList::new(&self.node_type)?).into_parts()?;
        let list = |array: ArrayRef| SingleRowListArrayBuilder::new(array).build_list_scalar();
        Ok(vec![list(nodes), list(Arc::new(ends))])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut edges = std::mem::replace(&mut self.edges, EdgeList::new(&self.node_type)?);
        let rows = self.work.rows(&mut edges)?;
        let numbers: Int64Array = rows.iter().map(|(_, number)| i64::from(*number)).collect();
        let nodes = edges.nodes(rows.iter().map(|(node, _)| *node))?;
        let algorithm = self.work.algorithm();
        let fields = row_fields(algorithm, &self.node_type);
        let rows = StructArray::try_new(fields, vec![nodes, Arc::new(numbers)], None)?;
        let lengths = OffsetBuffer::from_lengths([rows.len()]);
        let field = Arc::new(row_field(algorithm, &self.node_type));
        Ok(ScalarValue::List(Arc::new(ListArray::try_new(field, lengths, Arc::new(rows), None)?)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.edges.bytes() + self.work.bytes(&self.edges)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use arrow::array::StringArray;
    use arrow::datatypes::Int64Type;

    use super::*;

    /// Returns the rows of the function's result.
    fn rows_of(value: &ScalarValue) -> Vec<(String, i64)> {
        let ScalarValue::List(list) = value else { panic!("a list") };
        let rows = list.value(0);
        let rows = rows.as_struct();
        let nodes = rows.column(0).as_string::<i32>();
        let depths = rows.column(1).as_primitive::<Int64Type>();
        (0..rows.len()).map(|row| (nodes.value(row).to_owned(), depths.value(row))).collect()
    }

    fn walk(from: &[&str], max_hops: u32, direction: Direction) -> EdgeAccumulator {
        let from = Arc::new(StringArray::from(from.to_vec()));
        over(GraphWork::Traverse { from, max_hops, direction })
    }

    fn over(work: GraphWork) -> EdgeAccumulator {
        EdgeAccumulator { edges: EdgeList::new(&DataType::Utf8).unwrap(), node_type: DataType::Utf8, work }
    }

    fn add(walk: &mut EdgeAccumulator, edges: &[(&str, &str)]) {
        let (sources, targets): (Vec<&str>, Vec<&str>) = edges.iter().copied().unzip();
        let arrays: [ArrayRef; 2] = [Arc::new(StringArray::from(sources)), Arc::new(StringArray::from(targets))];
        walk.update_batch(&arrays).unwrap();
    }

    const CALLS: [(&str, &str); 5] =
        [("api", "billing"), ("billing", "ledger"), ("ledger", "audit"), ("api", "ledger"), ("audit", "api")];

    fn reached(from: &[&str], max_hops: u32, direction: Direction) -> Vec<(String, i64)> {
        let mut walk = walk(from, max_hops, direction);
        add(&mut walk, &CALLS);
        rows_of(&walk.evaluate().unwrap())
    }

    fn rows(expected: &[(&str, i64)]) -> Vec<(String, i64)> {
        expected.iter().map(|(node, depth)| ((*node).to_owned(), *depth)).collect()
    }

    #[test]
    fn each_node_is_reached_once_at_its_smallest_depth() {
        assert_eq!(
            reached(&["api"], 9, Direction::Forward),
            rows(&[("api", 0), ("billing", 1), ("ledger", 1), ("audit", 2)])
        );
        assert_eq!(
            reached(&["audit"], 9, Direction::Backward),
            rows(&[("audit", 0), ("ledger", 1), ("billing", 2), ("api", 2)])
        );
        assert_eq!(
            reached(&["ledger"], 1, Direction::Both),
            rows(&[("ledger", 0), ("billing", 1), ("audit", 1), ("api", 1)])
        );
        assert_eq!(
            reached(&["billing", "audit", "billing"], 0, Direction::Forward),
            rows(&[("billing", 0), ("audit", 0)])
        );
        assert_eq!(reached(&["nobody"], 3, Direction::Both), rows(&[("nobody", 0)]));
        assert_eq!(reached(&[], 3, Direction::Both), []);
    }

    fn path(from: &str, to: &str, max_hops: u32, direction: Direction) -> Vec<(String, i64)> {
        let node = |name: &str| -> ArrayRef { Arc::new(StringArray::from(vec![name])) };
        let mut walk = over(GraphWork::ShortestPath { ends: [node(from), node(to)], max_hops, direction });
        add(&mut walk, &CALLS);
        rows_of(&walk.evaluate().unwrap())
    }

    #[test]
    fn a_shortest_path_has_the_fewest_edges() {
        assert_eq!(path("api", "audit", 9, Direction::Forward), rows(&[("api", 0), ("ledger", 1), ("audit", 2)]));
        assert_eq!(path("audit", "ledger", 9, Direction::Backward), rows(&[("audit", 0), ("ledger", 1)]));
        assert_eq!(path("api", "api", 9, Direction::Forward), rows(&[("api", 0)]));
        assert_eq!(path("api", "audit", 1, Direction::Forward), []);
        assert_eq!(path("api", "nobody", 9, Direction::Both), []);
    }

    #[test]
    fn components_are_numbered_from_their_first_nodes() {
        let mut weak = over(GraphWork::Components { is_strong: false });
        add(&mut weak, &[("a", "b"), ("c", "d"), ("b", "a")]);
        assert_eq!(rows_of(&weak.evaluate().unwrap()), rows(&[("a", 0), ("c", 1), ("b", 0), ("d", 1)]));
        let mut strong = over(GraphWork::Components { is_strong: true });
        add(&mut strong, &[("a", "b"), ("c", "d"), ("b", "a")]);
        assert_eq!(rows_of(&strong.evaluate().unwrap()), rows(&[("a", 0), ("c", 1), ("b", 0), ("d", 2)]));
    }

    #[test]
    fn partial_walks_merge() {
        let mut whole = walk(&["api"], 9, Direction::Forward);
        for part in CALLS.chunks(2) {
            let mut partial = walk(&["api"], 9, Direction::Forward);
            add(&mut partial, part);
            let state: Vec<ArrayRef> =
                partial.state().unwrap().into_iter().map(|value| value.to_array().unwrap()).collect();
            whole.merge_batch(&state).unwrap();
        }
        assert_eq!(rows_of(&whole.evaluate().unwrap()), reached(&["api"], 9, Direction::Forward));
    }

    #[test]
    fn a_clique_is_walked_at_once() {
        let names: Vec<String> = (0..20).map(|node| format!("n{node}")).collect();
        let edges: Vec<(&str, &str)> = names
            .iter()
            .flat_map(|from| names.iter().filter(move |to| *to != from).map(move |to| (from.as_str(), to.as_str())))
            .collect();
        let mut walk = walk(&["n0"], 20, Direction::Both);
        add(&mut walk, &edges);
        let started = Instant::now();
        let reached = rows_of(&walk.evaluate().unwrap());
        assert!(started.elapsed() < Duration::from_millis(50), "{:?}", started.elapsed());
        assert_eq!(reached.len(), 20);
        assert!(reached[1..].iter().all(|(_, depth)| *depth == 1));
    }
}
