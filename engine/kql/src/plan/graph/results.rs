//! `graph-to-table` and `graph-mark-components`.

use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, UInt32Array};
use arrow::compute::take;

use super::make::{NODE_KEY, column_of, elements};
use super::matching::parameter_word;
use super::{GraphTable, QueryGraph, arrow_error, graph_of};
use crate::ast::{GraphElements, GraphOutput, Operator, OperatorParameter, ParameterValue};
use crate::bind::{Binder, HIDDEN, Result, invalid};
use crate::graph::components::{strong_components, weak_components};
use crate::plan::{Column, Relation};
use crate::span::Span;
use crate::types::KqlType;

/// The property that marks a component, where the query names none.
const COMPONENT: &str = "ComponentId";

impl<'a> Binder<'a> {
    pub(crate) fn graph_to_table(&mut self, input: &Relation, output: &'a GraphOutput, span: Span) -> Result<Relation> {
        let graph = graph_of(input, span)?;
        let (rows, ids): (&GraphTable, &[(&str, Option<usize>)]) = match output.elements {
            GraphElements::Nodes => (&graph.nodes, &[("with_node_id", None)]),
            GraphElements::Edges => (&graph.edges, &[("with_source_id", Some(0)), ("with_target_id", Some(1))]),
        };
        let mut shown: Vec<(Column, ArrayRef)> = Vec::new();
        for (parameter, end) in ids {
            let Some(name) = parameter_name(&output.parameters, parameter)? else { continue };
            let mut hashes = self.node_hashes(&graph, span)?;
            if let Some(end) = end {
                let nodes = UInt32Array::from_iter_values(graph.ends.iter().map(|ends| ends[*end]));
                hashes = take(&hashes, &nodes, None).map_err(arrow_error)?;
            }
            shown.push((Column { name: name.to_owned(), field: self.field(name), kql_type: KqlType::Long }, hashes));
        }
        for column in rows.shown() {
            shown.push((column.clone(), column_of(rows, column)?));
        }
        if shown.is_empty() {
            return invalid(
                span,
                "the nodes of this graph have no properties; `make-graph ... with_node_id=` gives one",
            );
        }
        self.made_table(shown, rows.batch.num_rows())
    }

    /// Returns for each node the hash of what names it, by which Kusto tells nodes apart.
    fn node_hashes(&mut self, graph: &QueryGraph, span: Span) -> Result<ArrayRef> {
        let hidden = format!("{HIDDEN}{NODE_KEY}");
        let Some(key) = graph.nodes.columns.iter().find(|column| column.name == hidden) else {
            return invalid(span, "the nodes of this graph have no ids");
        };
        let hash = self.apply("hash", vec![key.typed()], span)?;
        graph.nodes.values(&hash.expr)
    }

    pub(in crate::plan) fn graph_mark_components(
        &mut self,
        input: &Relation,
        operator: &'a Operator,
    ) -> Result<Relation> {
        let graph = graph_of(input, operator.span)?;
        let components = match parameter_word(operator, "kind")? {
            None | Some("weak") => weak_components(&graph.network),
            Some("strong") => strong_components(&graph.network),
            Some(_) => return invalid(operator.span, "`kind` is `weak` or `strong`"),
        };
        let name = parameter_name(&operator.parameters, "with_component_id")?.unwrap_or(COMPONENT);
        let mut columns = Vec::with_capacity(graph.nodes.columns.len() + 1);
        for column in graph.nodes.columns.iter().filter(|column| column.name != name) {
            columns.push((column.clone(), column_of(&graph.nodes, column)?));
        }
        let marks: ArrayRef = Arc::new(Int64Array::from_iter_values(components.into_iter().map(i64::from)));
        columns.push((Column { name: name.to_owned(), field: self.field(name), kql_type: KqlType::Long }, marks));
        let nodes = elements(columns, graph.network.nodes())?;
        let (network, ends) = (Rc::clone(&graph.network), Rc::clone(&graph.ends));
        self.graph_relation(QueryGraph {
            network,
            ends,
            nodes,
            edges: graph.edges.clone(),
            is_directed: graph.is_directed,
        })
    }
}

fn parameter_name<'o>(parameters: &'o [OperatorParameter], name: &str) -> Result<Option<&'o str>> {
    match parameters.iter().find(|parameter| parameter.name.text == name) {
        None => Ok(None),
        Some(OperatorParameter { value: ParameterValue::Name(column), .. }) => Ok(Some(&column.text)),
        Some(parameter) => invalid(parameter.span, format!("`{name}` names a column")),
    }
}
