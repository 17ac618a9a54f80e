//! The edges of a walk: each node once, by a number, and each edge as two numbers.

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, UInt32Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Int64Type};
use arrow::row::{RowConverter, SortField};
use datafusion::common::HashMap;
use datafusion::error::{DataFusionError, Result};

/// The number of a node, in the order of first appearance.
pub(super) type NodeId = u32;

/// The memory of an encoded node beside its bytes.
const BYTES_PER_ROW: usize = size_of::<Box<[u8]>>() + 2 * size_of::<NodeId>();
/// The memory of an integer in the map, with the map's own free places.
const BYTES_PER_INTEGER: usize = 2 * size_of::<(i64, NodeId)>();
/// So many numbers may lie between integers, for each one that was looked up, until they are kept in a map.
const SPARSENESS: usize = 4;
const LEAST_DENSE: usize = 1 << 12;

/// Edges between values of one type; null is a node like any other.
#[derive(Debug)]
pub(super) struct EdgeList {
    nodes: NodeNumbers,
    /// Sources and targets.
    ends: Vec<[NodeId; 2]>,
}

#[derive(Debug)]
enum NodeNumbers {
    Integers(IntegerNumbers),
    Rows(RowNumbers),
}

impl EdgeList {
    pub(super) fn new(node_type: &DataType) -> Result<Self> {
        let nodes = match node_type.is_signed_integer()
            || matches!(node_type, DataType::UInt8 | DataType::UInt16 | DataType::UInt32)
        {
            true => NodeNumbers::Integers(IntegerNumbers::new(node_type)),
            false => NodeNumbers::Rows(RowNumbers::new(node_type)?),
        };
        Ok(Self { nodes, ends: Vec::new() })
    }

    /// Adds an edge for each row.
    pub(super) fn add(&mut self, sources: &ArrayRef, targets: &ArrayRef) -> Result<()> {
        let sources = self.ids(sources)?;
        let targets = self.ids(targets)?;
        self.ends.extend(sources.into_iter().zip(targets).map(|(source, target)| [source, target]));
        Ok(())
    }

    /// Adds the edges of another, as [`EdgeList::into_parts`] wrote them.
    pub(super) fn merge(&mut self, nodes: &ArrayRef, ends: &UInt32Array) -> Result<()> {
        let ids = self.ids(nodes)?;
        let id = |place: NodeId| {
            let missing = || DataFusionError::Internal("an edge of a walk without its node".into());
            ids.get(place as usize).copied().ok_or_else(missing)
        };
        self.ends.reserve(ends.len() / 2);
        for edge in ends.values().chunks_exact(2) {
            self.ends.push([id(edge[0])?, id(edge[1])?]);
        }
        Ok(())
    }

    /// Returns the nodes in order, and the ends of all edges, two by two.
    pub(super) fn into_parts(self) -> Result<(ArrayRef, UInt32Array)> {
        let nodes = self.nodes(0..self.node_count())?;
        Ok((nodes, self.ends.into_iter().flatten().collect::<Vec<_>>().into()))
    }

    /// Returns the numbers of these nodes, and numbers those that are new.
    pub(super) fn ids(&mut self, values: &ArrayRef) -> Result<Vec<NodeId>> {
        match &mut self.nodes {
            NodeNumbers::Integers(integers) => integers.ids(values),
            NodeNumbers::Rows(rows) => rows.ids(values),
        }
    }

    /// Returns the values of these nodes.
    pub(super) fn nodes(&self, ids: impl Iterator<Item = NodeId>) -> Result<ArrayRef> {
        match &self.nodes {
            NodeNumbers::Integers(integers) => integers.nodes(ids),
            NodeNumbers::Rows(rows) => rows.nodes(ids),
        }
    }

    pub(super) fn node_count(&self) -> NodeId {
        let count = match &self.nodes {
            NodeNumbers::Integers(integers) => integers.values.len(),
            NodeNumbers::Rows(rows) => rows.starts.len(),
        };
        count as NodeId
    }

    pub(super) fn ends(&self) -> &[[NodeId; 2]] {
        &self.ends
    }

    /// Returns the memory that the edges take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let nodes = match &self.nodes {
            NodeNumbers::Integers(integers) => integers.bytes(),
            NodeNumbers::Rows(rows) => rows.bytes.capacity() + rows.starts.len() * BYTES_PER_ROW,
        };
        nodes + self.ends.capacity() * size_of::<[NodeId; 2]>()
    }
}

fn next_id(count: usize) -> Result<NodeId> {
    // The largest one says that there is none.
    match NodeId::try_from(count) {
        Ok(id) if id < NodeId::MAX => Ok(id),
        _ => Err(DataFusionError::ResourcesExhausted("a walk over more than 2^32 nodes".into())),
    }
}

/// Numbers of integers. Those from 0 on are found by their place in a table, as long as it is no larger than
/// [`SPARSENESS`] for each value that was looked up; the others in a map.
#[derive(Debug)]
struct IntegerNumbers {
    node_type: DataType,
    /// By number; `None` is null.
    values: Vec<Option<i64>>,
    dense: Vec<NodeId>,
    sparse: HashMap<i64, NodeId>,
    null: Option<NodeId>,
    looked_up: usize,
    /// The largest table that was thought of.
    considered: usize,
}

/// An integer without a number.
const UNKNOWN: NodeId = NodeId::MAX;

impl IntegerNumbers {
    fn new(node_type: &DataType) -> Self {
        Self {
            node_type: node_type.clone(),
            values: Vec::new(),
            dense: Vec::new(),
            sparse: HashMap::new(),
            null: None,
            looked_up: 0,
            considered: 0,
        }
    }

    fn ids(&mut self, values: &ArrayRef) -> Result<Vec<NodeId>> {
        let values = cast(values, &DataType::Int64)?;
        let values = values.as_primitive::<Int64Type>();
        self.looked_up += values.len();
        self.widen();
        match values.null_count() {
            0 => values.values().iter().map(|value| self.id(*value)).collect(),
            _ => {
                let id = |value| match value {
                    Some(value) => self.id(value),
                    None => self.null_id(),
                };
                values.iter().map(id).collect()
            }
        }
    }

    fn id(&mut self, value: i64) -> Result<NodeId> {
        if let Some(id) = usize::try_from(value).ok().and_then(|place| self.dense.get_mut(place)) {
            if *id == UNKNOWN {
                *id = next_id(self.values.len())?;
                self.values.push(Some(value));
            }
            return Ok(*id);
        }
        if let Some(id) = self.sparse.get(&value) {
            return Ok(*id);
        }
        let id = next_id(self.values.len())?;
        self.sparse.insert(value, id);
        self.values.push(Some(value));
        Ok(id)
    }

    fn null_id(&mut self) -> Result<NodeId> {
        if let Some(id) = self.null {
            return Ok(id);
        }
        let id = next_id(self.values.len())?;
        self.null = Some(id);
        self.values.push(None);
        Ok(id)
    }

    /// Makes the table as large as it may be, where that brings enough of the map into it.
    fn widen(&mut self) {
        let most = (self.looked_up * SPARSENESS).max(LEAST_DENSE).next_power_of_two();
        if most <= self.considered {
            return;
        }
        self.considered = most;
        let fits = |value: i64| usize::try_from(value).is_ok_and(|place| place < most);
        let fitting = self.sparse.keys().filter(|value| fits(**value)).count();
        if most > LEAST_DENSE && fitting * 4 * SPARSENESS < most {
            return;
        }
        self.dense.resize(most, UNKNOWN);
        let dense = &mut self.dense;
        self.sparse.retain(|value, id| match usize::try_from(*value).ok().and_then(|place| dense.get_mut(place)) {
            Some(place) => {
                *place = *id;
                false
            }
            None => true,
        });
    }

    fn nodes(&self, ids: impl Iterator<Item = NodeId>) -> Result<ArrayRef> {
        let values: Int64Array = ids.map(|id| self.values[id as usize]).collect();
        Ok(cast(&values, &self.node_type)?)
    }

    fn bytes(&self) -> usize {
        self.values.capacity() * size_of::<Option<i64>>()
            + self.dense.capacity() * size_of::<NodeId>()
            + self.sparse.capacity() * BYTES_PER_INTEGER
    }
}

/// Numbers of values of any type, by their bytes as [`RowConverter`] encodes them.
#[derive(Debug)]
struct RowNumbers {
    converter: RowConverter,
    /// All nodes' bytes, one after the other, and where each begins.
    bytes: Vec<u8>,
    starts: Vec<usize>,
    numbers: HashMap<Box<[u8]>, NodeId>,
}

impl RowNumbers {
    fn new(node_type: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(node_type.clone())])?;
        Ok(Self { converter, bytes: Vec::new(), starts: Vec::new(), numbers: HashMap::new() })
    }

    fn ids(&mut self, values: &ArrayRef) -> Result<Vec<NodeId>> {
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let mut ids = Vec::with_capacity(values.len());
        for row in &rows {
            let bytes: &[u8] = row.as_ref();
            let id = match self.numbers.get(bytes) {
                Some(id) => *id,
                None => {
                    let id = next_id(self.starts.len())?;
                    self.starts.push(self.bytes.len());
                    self.bytes.extend_from_slice(bytes);
                    self.numbers.insert(bytes.into(), id);
                    id
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    fn nodes(&self, ids: impl Iterator<Item = NodeId>) -> Result<ArrayRef> {
        let parser = self.converter.parser();
        let rows = ids.map(|id| {
            let end = self.starts.get(id as usize + 1).copied().unwrap_or(self.bytes.len());
            parser.parse(&self.bytes[self.starts[id as usize]..end])
        });
        let mut columns = self.converter.convert_rows(rows)?;
        columns.pop().ok_or_else(|| DataFusionError::Internal("no column of nodes".into()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Int32Array, StringArray};

    use super::*;

    #[test]
    fn integers_are_numbered_as_they_come() {
        let mut list = EdgeList::new(&DataType::Int32).unwrap();
        let values: ArrayRef =
            Arc::new(Int32Array::from(vec![Some(7), Some(-1), None, Some(2_000_000_000), Some(7), None, Some(0)]));
        assert_eq!(list.ids(&values).unwrap(), [0, 1, 2, 3, 0, 2, 4]);
        // What was in the map is found after the table has grown over it.
        let many: ArrayRef = Arc::new(Int32Array::from_iter_values(5_000..25_000));
        let first = list.ids(&many).unwrap();
        assert_eq!(list.ids(&many).unwrap(), first);
        assert_eq!(list.ids(&values).unwrap(), [0, 1, 2, 3, 0, 2, 4]);
        assert_eq!(list.node_count(), 20_005);
        assert_eq!(list.nodes([0, 1, 2, 3, 0, 2, 4].into_iter()).unwrap().as_ref(), values.as_ref());
        assert_eq!(list.nodes(first.into_iter()).unwrap().as_ref(), many.as_ref());
    }

    #[test]
    fn texts_are_numbered_as_they_come() {
        let mut list = EdgeList::new(&DataType::Utf8).unwrap();
        let values: ArrayRef = Arc::new(StringArray::from(vec![Some("b"), Some(""), None, Some("b"), Some("a")]));
        assert_eq!(list.ids(&values).unwrap(), [0, 1, 2, 0, 3]);
        assert_eq!(list.nodes([0, 1, 2, 0, 3].into_iter()).unwrap().as_ref(), values.as_ref());
    }
}
