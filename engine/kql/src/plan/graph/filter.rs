//! `graph-where-nodes` and `graph-where-edges`: a graph of a part of another's nodes and edges.

use std::rc::Rc;

use arrow::array::{ArrayRef, BooleanArray};
use arrow::compute::filter;

use super::make::{DEGREE_IN, DEGREE_OUT, column_of, degrees, elements};
use super::needed::holds;
use super::{GraphTable, QueryGraph, arrow_error, graph_of};
use crate::ast::Expr;
use crate::bind::{Binder, Environment, ExpressionScope, HIDDEN, Result};
use crate::graph::network::{Id, Network, Way};
use crate::plan::{Column, Relation};
use crate::span::Span;

impl<'a> Binder<'a> {
    /// Keeps the nodes for which the predicate holds, and the edges between them.
    pub(in crate::plan) fn graph_where_nodes(
        &mut self,
        input: &Relation,
        predicate: &'a Expr,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let graph = graph_of(input, span)?;
        let kept = self.kept(&graph.nodes, predicate, environment)?;
        // The nodes that are left are numbered anew.
        let mut numbers: Vec<Option<Id>> = vec![None; kept.len()];
        let left = numbers.iter_mut().zip(&kept).filter(|(_, kept)| **kept);
        left.zip(0..).for_each(|((number, _), count)| *number = Some(count));
        let renumbered = |[source, target]: &[Id; 2]| Some([numbers[*source as usize]?, numbers[*target as usize]?]);
        let edges: Vec<bool> = graph.ends.iter().map(|ends| renumbered(ends).is_some()).collect();
        let ends: Vec<[Id; 2]> = graph.ends.iter().filter_map(renumbered).collect();
        let nodes = graph.nodes.filtered(&kept)?;
        self.part_of(&graph, nodes, graph.edges.filtered(&edges)?, ends)
    }

    /// Keeps the edges for which the predicate holds, and all nodes.
    pub(in crate::plan) fn graph_where_edges(
        &mut self,
        input: &Relation,
        predicate: &'a Expr,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let graph = graph_of(input, span)?;
        let kept = self.kept(&graph.edges, predicate, environment)?;
        let ends = graph.ends.iter().zip(&kept).filter(|(_, kept)| **kept).map(|(ends, _)| *ends).collect();
        self.part_of(&graph, graph.nodes.clone(), graph.edges.filtered(&kept)?, ends)
    }

    fn kept(&mut self, table: &GraphTable, predicate: &'a Expr, environment: &Environment<'a>) -> Result<Vec<bool>> {
        let condition = self.condition(predicate, &ExpressionScope::over_columns(environment, &table.columns))?;
        holds(&table.values(&condition)?)
    }

    fn part_of(
        &mut self,
        graph: &QueryGraph,
        nodes: GraphTable,
        edges: GraphTable,
        ends: Vec<[Id; 2]>,
    ) -> Result<Relation> {
        let network = Network::new(nodes.batch.num_rows(), &ends, graph.is_directed);
        let mut columns: Vec<(Column, ArrayRef)> = Vec::with_capacity(nodes.columns.len());
        for column in &nodes.columns {
            let array = match column.name.strip_prefix(HIDDEN) {
                Some(DEGREE_IN) => degrees(&network, Way::In),
                Some(DEGREE_OUT) => degrees(&network, Way::Out),
                _ => column_of(&nodes, column)?,
            };
            columns.push((column.clone(), array));
        }
        let nodes = elements(columns, network.nodes())?;
        let (network, ends) = (Rc::new(network), Rc::new(ends));
        self.graph_relation(QueryGraph { network, ends, nodes, edges, is_directed: graph.is_directed })
    }
}

impl GraphTable {
    fn filtered(&self, kept: &[bool]) -> Result<Self> {
        let mask = BooleanArray::from(kept.to_vec());
        let mut columns: Vec<(Column, ArrayRef)> = Vec::with_capacity(self.columns.len());
        for (column, array) in self.columns.iter().zip(self.batch.columns()) {
            columns.push((column.clone(), filter(array, &mask).map_err(arrow_error)?));
        }
        elements(columns, mask.true_count())
    }
}
