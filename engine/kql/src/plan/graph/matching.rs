//! `graph-match` and `graph-shortest-paths`. Conditions on one node or edge limit the search; the others filter its
//! matches.

use std::collections::HashMap;

use datafusion::logical_expr::Expr as PlanExpr;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::scalar::ScalarValue;

use super::needed::{self, MaskOf};
use super::{QueryGraph, graph_of};
use crate::ast::{Expr, GraphMatch, Operator, ParameterValue};
use crate::bind::{
    BindErrorCode, BindStop, Binder, Environment, ExpressionScope, GraphScope, NeededValue, Result, constant_of, fail,
    given_name, graph_name, invalid, not_supported, unique_name,
};
use crate::bind_error::BindError;
use crate::graph::network::Id;
use crate::graph::pattern::{
    Cycles, FoundMatch, GraphPattern, MAX_MATCHES, MAX_STEPS, PatternEdge, SearchLimit, matches,
};
use crate::graph::shape::{MAX_HOPS, PatternShape};
use crate::graph::shortest::shortest_paths;
use crate::plan::Relation;
use crate::span::Span;
use crate::types::KqlType;

impl<'a> Binder<'a> {
    pub(in crate::plan) fn graph_match(
        &mut self,
        input: &Relation,
        written: &'a GraphMatch,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let graph = graph_of(input, operator.span)?;
        let cycles = match parameter_word(operator, "cycles")? {
            None => Cycles::UniqueEdges,
            Some(word) => match Cycles::from_word(word) {
                Some(cycles) => cycles,
                None => return invalid(operator.span, "`cycles` is `all`, `none` or `unique_edges`"),
            },
        };
        let (mut pattern, scope) = self.graph_pattern(written, &graph, cycles, environment)?;
        let rest = self.graph_conditions(written, &graph, &scope, &mut pattern, environment)?;
        let found = matches(&graph.network, &pattern, MAX_MATCHES, MAX_STEPS);
        let found = found.or_else(|limit| limited(limit, operator.span))?;
        self.graph_rows(&found, written, &graph, &scope, rest, operator.span, environment)
    }

    pub(in crate::plan) fn graph_shortest_paths(
        &mut self,
        input: &Relation,
        written: &'a GraphMatch,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let graph = graph_of(input, operator.span)?;
        let returns_all = match parameter_word(operator, "output")? {
            None | Some("any") => false,
            Some("all") => true,
            Some(_) => return invalid(operator.span, "`output` is `any` or `all`"),
        };
        // A path has no node twice.
        let (mut pattern, scope) = self.graph_pattern(written, &graph, Cycles::None, environment)?;
        let rest = self.graph_conditions(written, &graph, &scope, &mut pattern, environment)?;
        let ([PatternEdge { left: 0, right: 1, range: Some((low, high)), .. }], [_, _]) =
            (pattern.edges.as_slice(), pattern.nodes.as_slice())
        else {
            return invalid(operator.span, "expected two nodes, and between them an edge of variable length");
        };
        // What holds of the two nodes leaves a path between them as short as it is.
        if !rest.iter().all(|condition| scope.is_of_nodes(condition)) {
            return not_supported(operator.span, "`graph-shortest-paths` with a condition on several parts at once");
        }
        let (low, high) = (*low, *high);
        let found = if low <= 1 {
            let masks = [pattern.nodes[0].as_deref(), pattern.nodes[1].as_deref()];
            shortest_paths(&graph.network, &pattern.edges[0], masks, high, returns_all, MAX_MATCHES)
        } else {
            matches(&graph.network, &pattern, MAX_MATCHES, MAX_STEPS).map(|found| shortest_of(found, returns_all))
        };
        let found = found.or_else(|limit| limited(limit, operator.span))?;
        self.graph_rows(&found, written, &graph, &scope, rest, operator.span, environment)
    }

    /// Returns the pattern without its conditions, and what its variables are.
    fn graph_pattern(
        &mut self,
        written: &'a GraphMatch,
        graph: &QueryGraph,
        cycles: Cycles,
        environment: &Environment<'a>,
    ) -> Result<(GraphPattern, GraphScope)> {
        let PatternShape { variables, nodes, edges } = PatternShape::read(
            &written.patterns,
            |hops| self.graph_hops(hops, environment),
            |span, message| BindError::new(BindErrorCode::Invalid, span, message).into(),
        )?;
        let scope = GraphScope {
            variables,
            node_columns: graph.nodes.columns.clone(),
            edge_columns: graph.edges.columns.clone(),
            needed: std::cell::RefCell::default(),
            in_condition: std::cell::Cell::default(),
        };
        Ok((GraphPattern { nodes: vec![None; nodes], edges, cycles }, scope))
    }

    fn graph_hops(&mut self, expr: &'a Expr, environment: &Environment<'a>) -> Result<usize> {
        let typed = self.scalar(expr, &ExpressionScope::constant(environment))?;
        let long = self.convert(typed, KqlType::Long, expr.span)?;
        match constant_of(&long.expr)? {
            Some(ScalarValue::Int64(Some(hops @ 0..=MAX_HOPS))) => Ok(usize::try_from(hops).unwrap_or_default()),
            _ => invalid(expr.span, format!("expected a constant number of edges, at most {MAX_HOPS}")),
        }
    }

    /// Binds the condition of a pattern. What one part of the pattern decides goes into the pattern; the rest is
    /// returned.
    fn graph_conditions(
        &mut self,
        written: &'a GraphMatch,
        graph: &QueryGraph,
        scope: &GraphScope,
        pattern: &mut GraphPattern,
        environment: &Environment<'a>,
    ) -> Result<Vec<PlanExpr>> {
        let Some(predicate) = &written.predicate else { return Ok(Vec::new()) };
        let inside = ExpressionScope { graph: Some(scope), ..ExpressionScope::constant(environment) };
        scope.in_condition.set(true);
        let condition = self.condition(predicate, &inside);
        scope.in_condition.set(false);
        let condition = condition?;
        let needed = scope.needed.borrow();
        let mut rest = Vec::new();
        for conjunct in split_conjunction_owned(condition) {
            let Some((of, mask)) = needed::mask(&conjunct, &needed, graph)? else {
                rest.push(conjunct);
                continue;
            };
            let before = match of {
                MaskOf::Node(node) => &mut pattern.nodes[node],
                MaskOf::Edge(edge) | MaskOf::PathEdges(edge) => &mut pattern.edges[edge].edges,
                MaskOf::PathInner(edge) => &mut pattern.edges[edge].inner,
            };
            match before {
                Some(before) => before.iter_mut().zip(mask).for_each(|(before, holds)| *before &= holds),
                None => *before = Some(mask),
            }
        }
        Ok(rest)
    }

    /// Returns the table of what is projected of each match.
    #[expect(clippy::too_many_arguments, reason = "all that the rows are made of")]
    fn graph_rows(
        &mut self,
        found: &[FoundMatch],
        written: &'a GraphMatch,
        graph: &QueryGraph,
        scope: &GraphScope,
        rest: Vec<PlanExpr>,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        if written.project.is_empty() {
            return invalid(span, "expected `project` and what it returns of a match");
        }
        let inside = ExpressionScope { graph: Some(scope), ..ExpressionScope::constant(environment) };
        let mut outputs = Vec::with_capacity(written.project.len());
        let mut unnamed = 0_usize;
        for one in &written.project {
            let typed = self.scalar(&one.expr, &inside)?;
            let natural = || graph_name(&one.expr, scope);
            let name = match given_name(&one.names).map(str::to_owned).or_else(natural) {
                Some(name) => name,
                None => {
                    unnamed += 1;
                    format!("Column{unnamed}")
                }
            };
            let is_taken = |name: &str| outputs.iter().any(|(known, _): &(String, _)| known == name);
            if given_name(&one.names).is_some_and(is_taken) {
                return invalid(one.span, format!("the column `{name}` is there twice"));
            }
            let name = unique_name(&name, is_taken);
            outputs.push((name, typed));
        }
        let used: Vec<_> = outputs.iter().map(|(_, typed)| &typed.expr).chain(&rest).collect();
        let fields: Vec<_> = used.into_iter().flat_map(PlanExpr::column_refs).collect();
        let needed = scope.needed.borrow();
        let needed: Vec<&NeededValue> =
            needed.iter().filter(|value| fields.iter().any(|field| field.name == value.field)).collect();
        let mut rows = self.made_rows(needed::rows(found, &needed, graph)?, Vec::new())?;
        if let Some(condition) = rest.into_iter().reduce(PlanExpr::and) {
            rows = self.filtered(rows, condition)?;
        }
        self.projected(rows, outputs)
    }
}

/// Returns the shortest of the matches between each two nodes: all of them, or the first.
fn shortest_of(found: Vec<FoundMatch>, returns_all: bool) -> Vec<FoundMatch> {
    let length = |found: &FoundMatch| found.paths[0].edges.len();
    let mut shortest: HashMap<Vec<Id>, (usize, usize)> = HashMap::new();
    for (index, one) in found.iter().enumerate() {
        let known = shortest.entry(one.nodes.clone()).or_insert((length(one), index));
        if length(one) < known.0 {
            *known = (length(one), index);
        }
    }
    let is_kept = |index: usize, one: &FoundMatch| {
        shortest.get(&one.nodes).is_some_and(
            |(least, first)| {
                if returns_all { length(one) == *least } else { index == *first }
            },
        )
    };
    let kept: Vec<bool> = found.iter().enumerate().map(|(index, one)| is_kept(index, one)).collect();
    found.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(one, _)| one).collect()
}

fn limited<T>(limit: SearchLimit, span: Span) -> Result<T> {
    match limit {
        SearchLimit::Matches | SearchLimit::Steps => fail(BindErrorCode::TooLarge, span, limit.to_string()),
        SearchLimit::Unconnected => invalid(span, limit.to_string()),
        SearchLimit::Interrupted => Err(BindStop::Interrupted),
    }
}

/// Returns the value of a parameter that is a word.
pub(super) fn parameter_word<'o>(operator: &'o Operator, name: &str) -> Result<Option<&'o str>> {
    match operator.parameter(name).map(|parameter| &parameter.value) {
        None => Ok(None),
        Some(ParameterValue::Name(word)) => Ok(Some(&word.text)),
        Some(_) => invalid(operator.span, format!("`{name}` is a word")),
    }
}
