//! Walks over graphs whose edges are rows. KQL's `graph-traverse` is one aggregate, `graph_traverse_nodes`, which SQL
//! can call, too: it collects edges, whatever operators made them, and walks breadth-first over them once all are
//! there.

pub(crate) mod components;
mod edges;
pub(crate) mod network;
pub(crate) mod pattern;
mod reach;
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

use edges::EdgeList;
pub use reach::Direction;

/// The aggregate's name in SQL.
pub const NAME: &str = "graph_traverse_nodes";
/// The field with a node in the rows that it returns.
pub const NODE: &str = "node";
/// The field with the number of edges between a node and the nearest start.
pub const DEPTH: &str = "depth";

/// Returns the aggregate of edges
/// `(source T, target T, from List<T>, max_hops Int64, direction Utf8) -> List<Struct<node T, depth Int64>>`: the nodes
/// within `max_hops` edges of any of `from`, those included at depth 0, each once and at its smallest depth, by depth.
/// The last three arguments are constants.
pub fn traverse() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Traverse { signature: Signature::user_defined(Volatility::Immutable) }))
}

/// Whether an aggregate is the one that [`traverse`] returns.
pub fn is_traverse(function: &AggregateUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<Traverse>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Traverse {
    signature: Signature,
}

impl AggregateUDFImpl for Traverse {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [source, target, _, _, _] = given else {
            return plan_error(format!("{NAME} takes five arguments"));
        };
        let Some(node) = comparison_coercion(source, target) else {
            return plan_error(format!("an edge's ends are of one type, not {source} and {target}"));
        };
        let list = DataType::new_list(node.clone(), true);
        Ok(vec![node.clone(), node, list, DataType::Int64, DataType::Utf8])
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let Some(node) = given.first() else { return plan_error(format!("{NAME} takes five arguments")) };
        Ok(DataType::List(Arc::new(reached_field(node))))
    }

    fn accumulator(&self, arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let [source, _, from, max_hops, direction] = arguments.exprs else {
            return plan_error(format!("{NAME} takes five arguments"));
        };
        let node_type = source.data_type(arguments.schema)?;
        let ScalarValue::Int64(Some(max_hops)) = constant(max_hops, arguments.schema)? else {
            return plan_error("the number of hops is not null".to_owned());
        };
        let direction = match constant(direction, arguments.schema)? {
            ScalarValue::Utf8(Some(text)) => Direction::from_name(&text),
            _ => None,
        };
        let Some(direction) = direction else {
            return plan_error("a direction is 'forward', 'backward' or 'both'".to_owned());
        };
        let from = match constant(from, arguments.schema)? {
            ScalarValue::List(list) if !list.is_null(0) => list.value(0),
            _ => arrow::array::new_empty_array(&node_type),
        };
        let max_hops = u32::try_from(max_hops.max(0)).unwrap_or(u32::MAX);
        Ok(Box::new(TraverseAccumulator { edges: EdgeList::new(&node_type)?, node_type, from, max_hops, direction }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let Some(node) = arguments.input_fields.first() else {
            return plan_error(format!("{NAME} takes five arguments"));
        };
        let list = |what: &str, item: &DataType| {
            let list = DataType::new_list(item.clone(), true);
            Arc::new(Field::new(format!("{}[{what}]", arguments.name), list, true))
        };
        Ok(vec![list("nodes", node.data_type()), list("ends", &DataType::UInt32)])
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

fn reached_field(node: &DataType) -> Field {
    Field::new_list_field(DataType::Struct(reached_fields(node)), false)
}

fn reached_fields(node: &DataType) -> Fields {
    vec![Field::new(NODE, node.clone(), true), Field::new(DEPTH, DataType::Int64, false)].into()
}

/// A walk while its edges are collected.
#[derive(Debug)]
struct TraverseAccumulator {
    edges: EdgeList,
    node_type: DataType,
    from: ArrayRef,
    max_hops: u32,
    direction: Direction,
}

impl Accumulator for TraverseAccumulator {
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
        let from = edges.ids(&self.from)?;
        let reached = reach::reach(&edges, &from, self.max_hops, self.direction);
        let depths: Int64Array = reached.iter().map(|(_, depth)| i64::from(*depth)).collect();
        let nodes = edges.nodes(reached.iter().map(|(node, _)| *node))?;
        let rows = StructArray::try_new(reached_fields(&self.node_type), vec![nodes, Arc::new(depths)], None)?;
        let lengths = OffsetBuffer::from_lengths([rows.len()]);
        let list = ListArray::try_new(Arc::new(reached_field(&self.node_type)), lengths, Arc::new(rows), None)?;
        Ok(ScalarValue::List(Arc::new(list)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.edges.bytes() + reach::bytes(&self.edges, self.direction)
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

    fn walk(from: &[&str], max_hops: u32, direction: Direction) -> TraverseAccumulator {
        let edges = EdgeList::new(&DataType::Utf8).unwrap();
        let from = Arc::new(StringArray::from(from.to_vec()));
        TraverseAccumulator { edges, node_type: DataType::Utf8, from, max_hops, direction }
    }

    fn add(walk: &mut TraverseAccumulator, edges: &[(&str, &str)]) {
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
