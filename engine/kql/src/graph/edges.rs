//! The edges of a walk: each node once, by a number, and each edge as two numbers.

use std::collections::HashMap;

use arrow::array::{Array, ArrayRef, UInt32Array};
use arrow::datatypes::DataType;
use arrow::row::{RowConverter, SortField};
use datafusion::error::{DataFusionError, Result};

/// The number of a node, in the order of first appearance.
pub(super) type NodeId = u32;

/// The memory of a node beside its bytes.
const BYTES_PER_NODE: usize = size_of::<Box<[u8]>>() + 2 * size_of::<NodeId>();

/// Edges between values of one type; null is a node like any other.
#[derive(Debug)]
pub(super) struct EdgeList {
    converter: RowConverter,
    /// By their bytes as [`RowConverter`] encodes them.
    nodes: HashMap<Box<[u8]>, NodeId>,
    node_bytes: usize,
    /// Sources and targets.
    ends: Vec<[NodeId; 2]>,
}

impl EdgeList {
    pub(super) fn new(node_type: &DataType) -> Result<Self> {
        let converter = RowConverter::new(vec![SortField::new(node_type.clone())])?;
        Ok(Self { converter, nodes: HashMap::new(), node_bytes: 0, ends: Vec::new() })
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
        let rows = self.converter.convert_columns(std::slice::from_ref(values))?;
        let mut ids = Vec::with_capacity(values.len());
        for row in &rows {
            let bytes: &[u8] = row.as_ref();
            let id = match self.nodes.get(bytes) {
                Some(id) => *id,
                None => {
                    let id = NodeId::try_from(self.nodes.len())
                        .map_err(|_| DataFusionError::ResourcesExhausted("a walk over more than 2^32 nodes".into()))?;
                    self.nodes.insert(bytes.into(), id);
                    self.node_bytes += bytes.len() + BYTES_PER_NODE;
                    id
                }
            };
            ids.push(id);
        }
        Ok(ids)
    }

    /// Returns the values of these nodes.
    pub(super) fn nodes(&self, ids: impl Iterator<Item = NodeId>) -> Result<ArrayRef> {
        let mut by_id: Vec<&[u8]> = vec![&[]; self.nodes.len()];
        for (bytes, id) in &self.nodes {
            by_id[*id as usize] = bytes;
        }
        let parser = self.converter.parser();
        let rows = ids.map(|id| parser.parse(by_id[id as usize]));
        let mut columns = self.converter.convert_rows(rows)?;
        columns.pop().ok_or_else(|| DataFusionError::Internal("no column of nodes".into()))
    }

    pub(super) fn node_count(&self) -> NodeId {
        self.nodes.len() as NodeId
    }

    pub(super) fn ends(&self) -> &[[NodeId; 2]] {
        &self.ends
    }

    /// Returns the memory that the edges take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.node_bytes + self.ends.capacity() * size_of::<[NodeId; 2]>()
    }
}
