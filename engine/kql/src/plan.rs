//! Turns operators into DataFusion plans, one after the other, in the order written. A file for each family.

mod all_rows;
mod by_names;
mod columns;
mod evaluate;
mod expand;
mod external_data;
mod find;
mod finish;
mod graph;
mod join;
mod key_numbers;
mod macro_expand;
mod materialize;
mod operator_parameters;
mod order;
mod parse;
mod partition;
mod real_keys;
mod reduce;
mod relation;
mod scan;
mod search;
mod sequences;
mod series;
mod sources;
mod summarize;
mod template;
mod union;
mod unique_side;
mod written;

use std::collections::HashSet;

use datafusion::logical_expr::{ScalarUDF, WindowUDF};

use crate::ast::{Name, Operator, OperatorKind, Property};
use crate::bind::{BindError, BindErrorCode, Binder, Environment, Result, invalid, not_supported};
use crate::span::Span;
pub(crate) use columns::matches_wildcard;
pub(crate) use evaluate::plugins;
pub(super) use materialize::MaterializedPart;
use operator_parameters::check_parameters;
pub(super) use real_keys::plain_key;
pub(super) use relation::{Column, Relation, field_column, field_of};
pub use scan::StoredComparisons;
pub(crate) use written::WrittenOperatorFunction;

/// Whether a function is one that operators call.
pub(super) fn is_operator_function(function: &ScalarUDF) -> bool {
    expand::is_elements_function(function)
        || parse::is_captures_function(function)
        || parse::is_key_values_function(function)
        || scan::is_scan_function(function)
}

/// What an operator counts as, in nodes: planning walks all operators below again for each of them.
const OPERATOR_NODES: usize = 40;

/// Whether a function converts what is stored.
pub(super) fn is_stored_conversion(function: &ScalarUDF) -> bool {
    scan::is_scan_function(function)
}

/// Whether a window function is one that operators call.
pub(super) fn is_operator_window_function(function: &WindowUDF) -> bool {
    sequences::is_sequences_function(function) || crate::bind::is_sessions_function(function)
}

/// Kusto's charts.
const CHARTS: &[&str] = &[
    "3Dchart",
    "anomalychart",
    "areachart",
    "barchart",
    "card",
    "columnchart",
    "graph",
    "ladderchart",
    "linechart",
    "list",
    "map",
    "piechart",
    "pivotchart",
    "plotly",
    "scatterchart",
    "stackedareachart",
    "table",
    "timechart",
    "timeline",
    "timepivot",
    "treemap",
];

/// How a result is to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendering {
    /// `timechart`, `barchart`, ...
    pub chart: String,
    /// In the order written, values as strings.
    pub properties: Vec<(String, String)>,
}

/// Returns a table of which no two columns have one name. Errors: `kql_invalid`.
fn with_names_once(made: Relation, span: Span) -> Result<Relation> {
    match repeated_name(&made.columns) {
        Some(name) => invalid(span, format!("two columns would be called `{name}`; give one of them another name")),
        None => Ok(made),
    }
}

fn repeated_name(columns: &[Column]) -> Option<&str> {
    let mut names = HashSet::with_capacity(columns.len());
    columns.iter().map(|column| column.name.as_str()).find(|name| !names.insert(*name))
}

impl<'a> Binder<'a> {
    /// Plans an operator that starts a query.
    pub(super) fn source_operator(
        &mut self,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let made = self.first_rows(operator, environment)?;
        with_names_once(made, operator.span)
    }

    fn first_rows(&mut self, operator: &'a Operator, environment: &Environment<'a>) -> Result<Relation> {
        self.spend(1, operator.span)?;
        check_parameters(operator)?;
        match &operator.kind {
            OperatorKind::Print(values) => self.print(values, environment),
            OperatorKind::Range { column, from, to, step } => self.range(column, from, to, step, environment),
            OperatorKind::Union(tables) => self.union_of(tables, &operator.parameters, environment),
            OperatorKind::Search(search) => self.search_tables(search, operator, environment),
            OperatorKind::Find(find) => self.find_rows(find, operator, environment),
            OperatorKind::MacroExpand { group, name, body } => {
                self.macro_expand(group, name, body, operator, environment)
            }
            OperatorKind::Evaluate { plugin, .. } => self.evaluate_alone(plugin, operator.span),
            _ => invalid(operator.span, "this operator needs a table before it"),
        }
    }

    /// Plans an operator over rows.
    pub(super) fn operator(
        &mut self,
        input: Relation,
        operator: &'a Operator,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let made = self.rows_of(input, operator, environment)?;
        with_names_once(made, operator.span)
    }

    fn rows_of(&mut self, input: Relation, operator: &'a Operator, environment: &Environment<'a>) -> Result<Relation> {
        self.spend(OPERATOR_NODES, operator.span)?;
        check_parameters(operator)?;
        let span = operator.span;
        let takes_graph = matches!(
            operator.kind,
            OperatorKind::As(_)
                | OperatorKind::GraphMarkComponents
                | OperatorKind::GraphMatch(_)
                | OperatorKind::GraphShortestPaths(_)
                | OperatorKind::GraphToTable(_)
                | OperatorKind::GraphWhereEdges(_)
                | OperatorKind::GraphWhereNodes(_)
        );
        if input.graph.is_some() && !takes_graph {
            return invalid(span, "this operator needs a table before it, not a graph");
        }
        if input.groups.is_some() && partition::ignores_groups(&operator.kind) {
            return not_supported(span, "this operator on the rows of each element apart");
        }
        match &operator.kind {
            OperatorKind::As(name) => Ok(Relation { name: Some(name.text.clone()), ..input }),
            OperatorKind::AssertSchema(columns) => self.assert_schema(input, columns, span),
            OperatorKind::Consume => self.consume(input),
            OperatorKind::Count(name) => self.count(input, name.as_ref()),
            OperatorKind::Distinct(columns) => self.distinct(input, columns, environment),
            OperatorKind::Evaluate { plugin, schema } => {
                self.evaluate(input, plugin, schema.as_ref(), span, environment)
            }
            OperatorKind::Extend(columns) => self.extend(input, columns, environment),
            OperatorKind::GetSchema if operator.parameter("kind").is_some() => self.schema_text(&input),
            OperatorKind::GetSchema => self.get_schema(input),
            OperatorKind::GraphMarkComponents => self.graph_mark_components(&input, operator),
            OperatorKind::GraphMatch(written) => self.graph_match(&input, written, operator, environment),
            OperatorKind::GraphShortestPaths(written) => {
                self.graph_shortest_paths(&input, written, operator, environment)
            }
            OperatorKind::GraphToTable(outputs) => match outputs.as_slice() {
                [output] => self.graph_to_table(&input, output, span),
                _ => invalid(span, "nodes and edges at once are two results, which only the query itself can have"),
            },
            OperatorKind::GraphTraverse(traverse) => self.graph_traverse(input, traverse, span, environment),
            OperatorKind::GraphWhereEdges(predicate) => self.graph_where_edges(&input, predicate, span, environment),
            OperatorKind::GraphWhereNodes(predicate) => self.graph_where_nodes(&input, predicate, span, environment),
            OperatorKind::Invoke(function) => self.invoked(input, function, environment),
            OperatorKind::Join { table, condition } => {
                self.join(input, table, condition.as_ref(), operator, environment)
            }
            OperatorKind::Lookup { table, on } => self.lookup(input, table, on, operator, environment),
            OperatorKind::MakeGraph(make) => self.make_graph(input, make, span, environment),
            OperatorKind::MakeSeries(series) => self.make_series(input, series, operator, environment),
            OperatorKind::MvApply(apply) => self.mv_apply(input, apply, operator, environment),
            OperatorKind::MvExpand(expand) => self.mv_expand(input, expand, operator, environment),
            OperatorKind::Parse(parse) => self.parse(input, parse, operator, environment),
            OperatorKind::ParseKv { expr, columns, properties } => {
                self.parse_kv(input, expr, columns, properties, span, environment)
            }
            OperatorKind::Partition(partition) => self.partition(input, partition, span, environment),
            OperatorKind::Project(columns) => self.project(input, columns, environment),
            OperatorKind::ProjectAway(patterns) => self.project_away(input, patterns),
            OperatorKind::ProjectByNames(names) => self.project_by_names(input, names, environment),
            OperatorKind::ProjectKeep(patterns) => self.project_keep(input, patterns),
            OperatorKind::ProjectRename(columns) => self.project_rename(input, columns),
            OperatorKind::ProjectReorder(columns) => self.project_reorder(input, columns),
            OperatorKind::Render(render) => {
                self.check_chart(&render.chart)?;
                let mut properties = Vec::with_capacity(render.properties.len());
                for property in &render.properties {
                    properties.push((property.name.text.clone(), self.property_text(property)?));
                }
                self.rendering = Some(Rendering { chart: render.chart.text.clone(), properties });
                Ok(input)
            }
            OperatorKind::Sample(count) => self.sample(input, count, environment),
            OperatorKind::SampleDistinct { count, of } => self.sample_distinct(input, count, of, environment),
            OperatorKind::Scan(scan) => self.scan_sequences(input, scan, operator, environment),
            OperatorKind::Search(search) => self.search_rows(input, search, operator, environment),
            OperatorKind::Serialize(columns) => self.serialize(input, columns, environment),
            OperatorKind::Sort(keys) => self.sort(input, keys, environment),
            OperatorKind::Summarize { aggregates, by, bin: _ } => {
                self.summarize(input, aggregates, by, span, environment)
            }
            OperatorKind::Take(count) => self.take(input, count, environment),
            OperatorKind::Top { count, by } => self.top(input, count, by, environment),
            OperatorKind::TopHitters { count, of, by } => {
                self.top_hitters(input, count, of, by.as_ref(), span, environment)
            }
            OperatorKind::TopNested(levels) => self.top_nested(input, levels, span, environment),
            OperatorKind::Union(tables) => self.union_with(input, tables, &operator.parameters, environment),
            OperatorKind::Where(predicate) => self.where_rows(input, predicate, environment),
            OperatorKind::Find(_)
            | OperatorKind::MacroExpand { .. }
            | OperatorKind::Print(_)
            | OperatorKind::Range { .. } => invalid(span, "this operator starts a query and takes no rows"),
            OperatorKind::Invalid => invalid(span, "this could not be read"),
            OperatorKind::Facet { .. } | OperatorKind::Fork(_) => {
                invalid(span, "this operator makes several results, which only the query itself can have")
            }
            OperatorKind::Reduce { by, with } => self.reduce(input, by, with, operator, environment),
        }
    }

    /// Checks that a chart is one of Kusto's.
    fn check_chart(&self, chart: &Name) -> Result<()> {
        if CHARTS.contains(&chart.text.as_str()) {
            return Ok(());
        }
        let message = format!("there is no chart `{}`", chart.text);
        let hint = format!("charts are {}", CHARTS.join(", "));
        Err(BindError::new(BindErrorCode::Invalid, chart.span, message).with_hint(hint).into())
    }

    fn property_text(&mut self, property: &'a Property) -> Result<String> {
        use crate::ast::{ExprKind, Literal};
        let mut texts = Vec::with_capacity(property.values.len());
        for value in &property.values {
            texts.push(match &value.kind {
                ExprKind::Literal(Literal::String(text)) => text.clone(),
                ExprKind::Name(name) => name.text.clone(),
                ExprKind::Literal(Literal::Bool(value)) => value.to_string(),
                ExprKind::Literal(Literal::Long(value)) => value.to_string(),
                ExprKind::Literal(Literal::Real(value)) => value.to_string(),
                _ => return invalid(value.span, "expected a literal or a name"),
            });
        }
        Ok(texts.join(","))
    }
}
