//! `make-graph`.

use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, StringArray, StringViewArray, new_null_array};
use arrow::compute::{cast, interleave};
use arrow::datatypes::DataType;

use super::{GraphTable, QueryGraph, arrow_error};
use crate::ast::{EdgeDirection, ExprKind, GraphNodes, MakeGraph, Name};
use crate::bind::{BindErrorCode, Binder, Environment, HIDDEN, Result, fail, not_supported};
use crate::graph::network::{Id, Network, Way};
use crate::plan::all_rows::batch_of;
use crate::plan::key_numbers::KeyNumbers;
use crate::plan::{Column, Relation};
use crate::span::Span;
use crate::types::KqlType;

/// The most edges of a graph, and the most rows of a table of its nodes.
const MAX_ELEMENTS: usize = 2_000_000;

/// What a node has beside its properties, after [`HIDDEN`].
pub(super) const DEGREE_IN: &str = "node_degree_in";
pub(super) const DEGREE_OUT: &str = "node_degree_out";
pub(super) const LABELS: &str = "labels";
/// What names it, of its own type.
pub(super) const NODE_KEY: &str = "node_key";

/// Rows that name nodes, and which of their columns does.
struct NodeRows {
    rows: GraphTable,
    key: Column,
    nodes: Vec<Id>,
}

impl<'a> Binder<'a> {
    pub(in crate::plan) fn make_graph(
        &mut self,
        input: Relation,
        make: &'a MakeGraph,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let partition = match &make.partitioned_by {
            Some((expr, _)) => match &expr.kind {
                ExprKind::Name(name) => Some(name),
                _ => return not_supported(expr.span, "a partition by an expression"),
            },
            None => None,
        };
        let edges = self.read_elements(input, span)?;
        let [source, target] = [&make.source, &make.target].map(|name| self.graph_column(&edges, name));
        let (source, target) = (source?, target?);
        let edges = self.with_labels(edges)?;
        let mut tables: Vec<(GraphTable, Column)> = Vec::new();
        if let GraphNodes::Tables(written) = &make.nodes {
            for one in written {
                let table = self.table(&one.table, environment)?;
                let rows = self.read_elements(table, one.table.span)?;
                let key = self.graph_column(&rows, &one.key)?;
                tables.push((rows, key));
            }
        }
        let id_type = common_type([&source, &target].into_iter().chain(tables.iter().map(|(_, key)| key)), span)?;
        let mut ids = KeyNumbers::default();
        let mut named: Vec<NodeRows> = Vec::new();
        for (rows, key) in tables {
            let nodes = self.numbered(&rows, &key, partition, id_type, &mut ids)?;
            named.push(NodeRows { rows, key, nodes });
        }
        let named_nodes = ids.count();
        let source_ids = self.numbered(&edges, &source, partition, id_type, &mut ids)?;
        let target_ids = self.numbered(&edges, &target, partition, id_type, &mut ids)?;
        let ends: Vec<[Id; 2]> =
            source_ids.into_iter().zip(target_ids).map(|(source, target)| [source, target]).collect();
        let is_directed = make.direction != EdgeDirection::Either;
        let network = Network::new(ids.count(), &ends, is_directed);
        let nodes =
            self.node_elements(&network, &ends, &edges, [&source, &target], &named, named_nodes, id_type, make)?;
        let (network, ends) = (Rc::new(network), Rc::new(ends));
        let graph = self.graph_relation(QueryGraph { network, ends, nodes, edges, is_directed })?;
        match &make.partitioned_by {
            // Nodes of different partitions are different nodes, so that no edge leads from one to another.
            Some((_, body)) => self.piped(graph, body, environment),
            None => Ok(graph),
        }
    }

    /// Gives edges labels where they have none: those of a graph that a query makes are empty.
    fn with_labels(&mut self, rows: GraphTable) -> Result<GraphTable> {
        let name = format!("{HIDDEN}{LABELS}");
        if rows.columns.iter().any(|column| column.name == name) {
            return Ok(rows);
        }
        let count = rows.batch.num_rows();
        let mut arrays: Vec<(Column, ArrayRef)> =
            rows.columns.into_iter().zip(rows.batch.columns().iter().cloned()).collect();
        let none = StringArray::from_iter_values((0..count).map(|_| "[]"));
        arrays.push((Column { name, field: self.field(LABELS), kql_type: KqlType::Dynamic }, Arc::new(none)));
        elements(arrays, count)
    }

    fn graph_column(&mut self, rows: &GraphTable, name: &Name) -> Result<Column> {
        match rows.columns.iter().find(|column| column.name == name.text) {
            Some(column) => Ok(column.clone()),
            None => Err(self.unknown_column(name, &rows.columns).into()),
        }
    }

    /// Reads all rows of a table.
    fn read_elements(&mut self, table: Relation, span: Span) -> Result<GraphTable> {
        if table.graph.is_some() {
            return fail(BindErrorCode::TypeMismatch, span, "expected a table, found a graph");
        }
        let (arrays, count) = self.all_rows(table, MAX_ELEMENTS, span, "edges of a graph, or rows for its nodes")?;
        elements(arrays, count)
    }

    /// Returns the node that each row names; nodes that are new get numbers.
    fn numbered(
        &mut self,
        rows: &GraphTable,
        key: &Column,
        partition: Option<&Name>,
        id_type: KqlType,
        ids: &mut KeyNumbers,
    ) -> Result<Vec<Id>> {
        let mut keys =
            vec![text_without_nulls(&cast(&column_of(rows, key)?, &id_type.arrow_type()).map_err(arrow_error)?)?];
        if let Some(name) = partition {
            let column = self.graph_column(rows, name)?;
            keys.push(column_of(rows, &column)?);
        }
        ids.numbers(&keys)
    }

    #[expect(clippy::too_many_arguments, reason = "all that nodes are made of")]
    fn node_elements(
        &mut self,
        network: &Network,
        ends: &[[Id; 2]],
        edges: &GraphTable,
        key_columns: [&Column; 2],
        named: &[NodeRows],
        named_nodes: usize,
        id_type: KqlType,
        make: &'a MakeGraph,
    ) -> Result<GraphTable> {
        // For each node a row that names it: of a table of nodes, or of the edges.
        let mut rows_of: Vec<Vec<Option<usize>>> = Vec::with_capacity(named.len());
        for table in named {
            let mut rows = vec![None; network.nodes()];
            for (row, node) in table.nodes.iter().enumerate() {
                rows[*node as usize].get_or_insert(row);
            }
            rows_of.push(rows);
        }
        let mut end_of: Vec<(usize, usize)> = vec![(0, 0); network.nodes()];
        for (edge, ends) in ends.iter().enumerate().rev() {
            end_of[ends[1] as usize] = (1, edge);
            end_of[ends[0] as usize] = (0, edge);
        }
        let ends_as = |to: KqlType| -> Result<Vec<ArrayRef>> {
            let arrays = key_columns
                .iter()
                .map(|column| Ok(cast(&column_of(edges, column)?, &to.arrow_type()).map_err(arrow_error)?));
            arrays.collect()
        };
        // The tables of nodes of a stored graph have labels.
        let has_labels = |column: &Column| column.name.strip_prefix(HIDDEN) == Some(LABELS);
        let is_stored = named.iter().any(|table| table.rows.columns.iter().any(has_labels));
        let mut arrays: Vec<(Column, ArrayRef)> = Vec::new();
        for (place, table) in named.iter().enumerate() {
            for column in &table.rows.columns {
                match arrays.iter().find(|(known, _)| known.name == column.name) {
                    Some((known, _)) if known.kql_type == column.kql_type => continue,
                    Some(_) => {
                        let message = format!("`{}` is of different types in the tables of nodes", column.name);
                        return fail(BindErrorCode::TypeMismatch, make.source.span, message);
                    }
                    None => {}
                }
                let mut sources = Vec::new();
                let mut tables = Vec::new();
                for (other, later) in named.iter().enumerate().skip(place) {
                    let same = later.rows.columns.iter().find(|same| same.name == column.name);
                    if let Some(same) = same.filter(|same| same.kql_type == column.kql_type) {
                        tables.push((sources.len(), other));
                        sources.push(column_of(&later.rows, same)?);
                    }
                }
                if has_labels(column) {
                    arrays.push((column.clone(), joined_labels(&sources, &tables, &rows_of, network.nodes())));
                    continue;
                }
                let none = sources.len();
                sources.push(nothing(column.kql_type));
                let first_end = sources.len();
                // A node of edges alone has its id under the key of every table, in a stored graph of the first one.
                let mut keys = named.iter().take(if is_stored { 1 } else { named.len() }).map(|table| &table.key.name);
                let is_key = keys.any(|key| *key == column.name);
                if is_key {
                    sources.extend(ends_as(column.kql_type)?);
                }
                let of_node = |node: usize| {
                    // A node that several tables have is the first one's row, and in a stored graph all of them.
                    let rows = rows_of.iter().enumerate().filter_map(|(table, rows)| Some((table, rows[node]?)));
                    let mut first = None;
                    for (table, row) in rows.take(if is_stored { usize::MAX } else { 1 }) {
                        let Some((source, _)) = tables.iter().find(|(_, of)| *of == table) else { continue };
                        if !is_nothing(&sources[*source], row) {
                            return (*source, row);
                        }
                        first = first.or(Some((*source, row)));
                    }
                    match first {
                        Some(place) => place,
                        None if is_key && node >= named_nodes => (first_end + end_of[node].0, end_of[node].1),
                        None => (none, 0),
                    }
                };
                arrays.push((column.clone(), gathered(&sources, network.nodes(), of_node)?));
            }
        }
        let mut id_sources = ends_as(id_type)?;
        for table in named {
            id_sources.push(cast(&column_of(&table.rows, &table.key)?, &id_type.arrow_type()).map_err(arrow_error)?);
        }
        let ids = gathered(&id_sources, network.nodes(), |node| {
            let row = rows_of.iter().enumerate().find_map(|(table, rows)| Some((table + 2, rows[node]?)));
            row.unwrap_or(end_of[node])
        })?;
        if let GraphNodes::NodeId(name) = &make.nodes {
            let column = Column { name: name.text.clone(), field: self.field(&name.text), kql_type: id_type };
            arrays.push((column, text_without_nulls(&ids)?));
        }
        let texts = cast(&ids, &DataType::Utf8View).map_err(arrow_error)?;
        let mut hidden: Vec<(&str, KqlType, ArrayRef)> = vec![
            ("node_id", KqlType::String, texts),
            (NODE_KEY, id_type, ids),
            (DEGREE_IN, KqlType::Long, degrees(network, Way::In)),
            (DEGREE_OUT, KqlType::Long, degrees(network, Way::Out)),
        ];
        if !is_stored {
            let none = StringArray::from_iter_values((0..network.nodes()).map(|_| "[]"));
            hidden.push((LABELS, KqlType::Dynamic, Arc::new(none)));
        }
        for (name, kql_type, array) in hidden {
            arrays.push((Column { name: format!("{HIDDEN}{name}"), field: self.field(name), kql_type }, array));
        }
        elements(arrays, network.nodes())
    }
}

/// Returns how many edges each node has in a direction.
pub(super) fn degrees(network: &Network, way: Way) -> ArrayRef {
    let counts = (0..network.nodes() as Id).map(|node| network.degree(node, way) as i64);
    Arc::new(Int64Array::from_iter_values(counts))
}

/// Returns elements of columns with their values.
pub(super) fn elements(arrays: Vec<(Column, ArrayRef)>, count: usize) -> Result<GraphTable> {
    let (batch, columns) = batch_of(arrays, count)?;
    Ok(GraphTable { batch, columns })
}

pub(super) fn column_of(rows: &GraphTable, column: &Column) -> Result<ArrayRef> {
    let index = rows.batch.schema().index_of(&column.field).map_err(arrow_error)?;
    Ok(Arc::clone(rows.batch.column(index)))
}

/// Returns for each of `count` the value of a row of one of the sources.
fn gathered(sources: &[ArrayRef], count: usize, place: impl Fn(usize) -> (usize, usize)) -> Result<ArrayRef> {
    let sources: Vec<&dyn Array> = sources.iter().map(AsRef::as_ref).collect();
    let places: Vec<(usize, usize)> = (0..count).map(place).collect();
    if places.is_empty() {
        return Ok(sources[0].slice(0, 0));
    }
    Ok(interleave(&sources, &places).map_err(arrow_error)?)
}

/// What a node without a property has: an empty string, or null.
fn nothing(kql_type: KqlType) -> ArrayRef {
    match kql_type {
        KqlType::String => Arc::new(StringViewArray::from(vec![""])),
        other => new_null_array(&other.arrow_type(), 1),
    }
}

/// Whether a row has no value: null, or an empty string.
fn is_nothing(values: &ArrayRef, row: usize) -> bool {
    let texts = values.as_any().downcast_ref::<StringViewArray>();
    values.is_null(row) || texts.is_some_and(|texts| texts.value(row).is_empty())
}

/// Returns the labels of nodes, those of all tables that have the node: the last table's first.
fn joined_labels(
    sources: &[ArrayRef],
    tables: &[(usize, usize)],
    rows_of: &[Vec<Option<usize>>],
    nodes: usize,
) -> ArrayRef {
    let of_node = |node: usize| {
        let rows = tables.iter().rev().filter_map(|(source, table)| Some((*source, rows_of[*table][node]?)));
        let texts: Vec<&str> = rows
            .filter_map(|(source, row)| {
                let labels = sources[source].as_any().downcast_ref::<StringArray>()?;
                labels.is_valid(row).then(|| labels.value(row))
            })
            .collect();
        if let [only] = texts.as_slice() {
            return (*only).to_owned();
        }
        let mut all: Vec<serde_json::Value> = Vec::new();
        for label in
            texts.iter().flat_map(|text| serde_json::from_str::<Vec<serde_json::Value>>(text).unwrap_or_default())
        {
            if !all.contains(&label) {
                all.push(label);
            }
        }
        serde_json::Value::Array(all).to_string()
    };
    Arc::new(StringArray::from_iter_values((0..nodes).map(of_node)))
}

/// Returns texts with empty ones for nulls, since KQL has no null strings; other values stay.
fn text_without_nulls(array: &ArrayRef) -> Result<ArrayRef> {
    let Some(texts) = array.as_any().downcast_ref::<StringViewArray>().filter(|texts| texts.null_count() > 0) else {
        return Ok(Arc::clone(array));
    };
    Ok(Arc::new(texts.iter().map(|text| Some(text.unwrap_or_default())).collect::<StringViewArray>()))
}

/// Returns the type of ids that these columns have.
fn common_type<'c>(columns: impl Iterator<Item = &'c Column>, span: Span) -> Result<KqlType> {
    let mut common: Option<KqlType> = None;
    for column in columns {
        common = Some(match (common, column.kql_type) {
            (None, kql_type) => kql_type,
            (Some(known), kql_type) if known == kql_type => known,
            (Some(known), kql_type) if known.is_numeric() && kql_type.is_numeric() => {
                let is_real = [known, kql_type].iter().any(|one| matches!(one, KqlType::Real | KqlType::Decimal));
                if is_real { KqlType::Real } else { KqlType::Long }
            }
            (Some(known), kql_type) => {
                let (known, kql_type) = (known.name(), kql_type.name());
                let message = format!("ids of nodes are of one type, here {known} and {kql_type}");
                return fail(BindErrorCode::TypeMismatch, span, message);
            }
        });
    }
    Ok(common.unwrap_or(KqlType::Dynamic))
}
