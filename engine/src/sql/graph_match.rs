//! `graph_match(...)` in FROM: the matches of a pattern of nodes and edges, as a query over an aggregate of the graph's rows.
//!
//! Conditions on one node, edge or path become bits of the rows that are searched; what they say of several filters the
//! matches. Columns of variables (`a.name`) are columns of the matches whose names have a dot. Where no search is needed the
//! query is one of joins ([`PatternJoins`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr, Ident, Query, Select, SelectItem, SetExpr, TableFactor, Value, VisitMut, VisitorMut,
};
use querent_kql::graph::{EDGE_VALUES, GraphVariable, MATCHES, NODE_VALUES, NODES, PatternShape};

use super::exact_text::double_quotes;
use super::graph_joins::{JoinedTables, PatternJoins, is_repeatable};
use super::parse::{Nesting, ParsedStatement, parse_statement};
use super::table_functions::CallArguments;
use crate::error::{EngineError, Result};
use crate::identifiers::{quote_identifier, same_name};

/// The function's name.
pub(super) const NAME: &str = "graph_match";
/// The names of its arguments.
pub(super) const PARAMETERS: &[&str] =
    &["edges", "source", "target", "pattern", "columns", "where", "nodes", "node_key", "cycles"];
/// How it is called.
pub(super) const USAGE: &str = "write graph_match(edges, 'source column', 'target column', '(a)-[e]->(b)', 'a.name, \
                                e.weight, b' [, where => 'a.age > 30'] [, nodes => table, node_key => 'key column'] [, \
                                cycles => 'unique_edges', 'none' or 'all']); edges and nodes are a table or a (query)";

/// A node's key among its columns.
const KEY: &str = "\"$key\"";
/// What the parsed columns and conditions are written over.
const PARSED_OVER: &str = "matches";

/// Returns the query that a call stands for; `None` where it is not called as [`USAGE`] says. Errors: `sql_plan_error`,
/// `sql_parse_error`.
pub(super) fn query(call: &CallArguments<'_>) -> Result<Option<String>> {
    let (Some(edges), Some(source), Some(target), Some(pattern), Some(columns)) =
        (call.table("edges"), call.column("source"), call.column("target"), call.text("pattern"), call.text("columns"))
    else {
        return Ok(None);
    };
    let nodes = match (call.get("nodes"), call.get("node_key")) {
        (None, None) => None,
        (Some(_), Some(_)) => match (call.table("nodes"), call.column("node_key")) {
            (Some(table), Some(key)) => Some((table, key)),
            _ => return Ok(None),
        },
        _ => return Ok(None),
    };
    let cycles = match call.get("cycles") {
        None => "unique_edges",
        Some(_) => match call.text("cycles") {
            Some(cycles) => cycles,
            None => return Ok(None),
        },
    };
    let condition = match call.get("where") {
        None => None,
        Some(_) => match call.text("where") {
            Some(condition) => Some(condition),
            None => return Ok(None),
        },
    };
    let shape = PatternShape::parse(pattern).map_err(|message| refused(format!("the pattern: {message}")))?;
    let (mut items, condition) = parsed_over_matches(columns, condition)?;
    let key = nodes.as_ref().map(|(_, key)| key.as_str());
    let joins = [call.get("edges"), call.get("nodes")].into_iter().flatten().all(is_repeatable);
    let joins = if joins { PatternJoins::of(&shape, cycles) } else { None };
    let tables = JoinedTables {
        edges: &edges,
        source: &source,
        target: &target,
        nodes: nodes.as_ref().map(|(table, key)| (table.as_str(), key.as_str())),
    };
    let joins = joins.as_ref().map(|joins| (joins, &tables));
    let mut matched = Matched { shape: &shape, key, joins, fields: NeededColumns::default() };
    let mut conditions = PlaceConditions::default();
    let mut rest = Vec::new();
    for conjunct in condition.map(conjuncts).unwrap_or_default() {
        match matched.variable_of(&conjunct)? {
            Some(variable) if joins.is_none() => conditions.add(variable, matched.over_elements(conjunct)?),
            _ => rest.push(matched.over_matches(conjunct)?),
        }
    }
    for item in &mut items {
        match item {
            SelectItem::UnnamedExpr(expr) => {
                let name = natural_name(expr);
                let written = matched.over_matches(std::mem::replace(expr, null()))?;
                *item = match name {
                    Some(alias) => SelectItem::ExprWithAlias { expr: written, alias },
                    None => SelectItem::UnnamedExpr(written),
                };
            }
            SelectItem::ExprWithAlias { expr, .. } => *expr = matched.over_matches(std::mem::replace(expr, null()))?,
            _ => return Err(refused("columns are expressions over the pattern's variables".to_owned())),
        }
    }
    let fields = &matched.fields;
    let found = match joins {
        Some((joins, tables)) => {
            let columns: Vec<String> = fields.edges.iter().map(ToString::to_string).collect();
            joins.tables_and_filters(tables, &fields.described, &columns)
        }
        None => {
            let elements = elements(&tables, fields, &conditions);
            let [pattern, cycles] = [pattern, cycles].map(|text| format!("'{}'", text.replace('\'', "''")));
            let (of_nodes, of_edges) = (mask(&conditions.nodes), mask(&conditions.edges));
            format!(
                "(SELECT unnest({MATCHES}(source, target, is_edge, fits, edge, node, {pattern}, {cycles}, {of_nodes}, \
                 {of_edges})) AS made FROM ({elements}) AS elements) AS found"
            )
        }
    };
    let columns: Vec<String> = items.iter().map(ToString::to_string).collect();
    let rest: Vec<String> = rest.iter().map(|condition| format!("({condition})")).collect();
    let filter = if rest.is_empty() { String::new() } else { format!(" WHERE {}", rest.join(" AND ")) };
    // Without a column of a variable the matches have one of their own, so that they can be counted.
    let shown: Vec<String> = match fields.matches.is_empty() {
        true => vec!["1 AS \"$match\"".to_owned()],
        false => fields.matches.iter().map(|(name, value)| format!("{value} AS {name}")).collect(),
    };
    Ok(Some(format!(
        "SELECT {} FROM (SELECT {} FROM {found}) AS {PARSED_OVER}{filter}",
        columns.join(", "),
        shown.join(", "),
    )))
}

/// Returns the query of the rows that are searched: edges, and nodes where something is asked of them.
fn elements(tables: &JoinedTables<'_>, fields: &NeededColumns, conditions: &PlaceConditions) -> String {
    let JoinedTables { edges, source, target, nodes } = tables;
    let mut elements = format!(
        "SELECT edges.{source} AS source, edges.{target} AS target, true AS is_edge, {} AS fits, {} AS edge, NULL AS node \
         FROM {edges} AS edges",
        bits(&conditions.edges),
        values(&fields.edges, "edges"),
    );
    let ends =
        format!("SELECT {source} AS {KEY} FROM {edges} AS edges UNION SELECT {target} AS {KEY} FROM {edges} AS edges");
    let node_rows = match nodes {
        Some((table, key)) => Some(format!(
            "(SELECT coalesce(ends.{KEY}, nodes.{key}) AS {KEY}, nodes.* FROM ({ends}) AS ends FULL JOIN {table} AS nodes \
             ON ends.{KEY} = nodes.{key})"
        )),
        None if conditions.nodes.is_empty() => None,
        None => Some(format!("({ends})")),
    };
    if let Some(node_rows) = node_rows {
        elements = format!(
            "{elements} UNION ALL SELECT nodes.{KEY}, nodes.{KEY}, false, {}, NULL, {} FROM {node_rows} AS nodes",
            bits(&conditions.nodes),
            values(&fields.nodes, "nodes"),
        );
    }
    elements
}

fn refused(message: String) -> EngineError {
    EngineError::Plan { message: format!("{NAME}: {message}") }
}

fn null() -> Expr {
    Expr::Value(Value::Null.into())
}

/// Parses columns and a condition as parts of a query, within the bounds of any statement.
fn parsed_over_matches(columns: &str, condition: Option<&str>) -> Result<(Vec<SelectItem>, Option<Expr>)> {
    let filter = condition.map_or_else(String::new, |condition| format!(" WHERE {condition}"));
    let parsed = parse_statement(&format!("SELECT {columns} FROM {PARSED_OVER}{filter}"))?;
    let ParsedStatement { statement, nesting, has_parameters, .. } = parsed;
    if has_parameters {
        return Err(refused("its texts have no parameters; put those into the conditions around it".to_owned()));
    }
    if nesting == Nesting::Deep {
        return Err(EngineError::too_deep());
    }
    let refused = || refused("columns are a list of expressions, and a condition is one".to_owned());
    let Statement::Statement(statement) = statement else { return Err(refused()) };
    let ast::Statement::Query(query) = *statement else { return Err(refused()) };
    let mut bare = query.as_ref().clone();
    let Query { body, .. } = &mut bare;
    let SetExpr::Select(select) = body.as_mut() else { return Err(refused()) };
    let Select { projection, selection, from, .. } = select.as_mut();
    let mut items = std::mem::take(projection);
    let mut selection = selection.take();
    // Whatever else the texts brought along, other clauses or tables, is no part of them.
    let is_alone = match from.as_slice() {
        [table] => table.joins.is_empty() && matches!(&table.relation, TableFactor::Table { alias: None, .. }),
        _ => false,
    };
    let plain = parse_statement(&format!("SELECT 1 FROM {PARSED_OVER}"))?;
    *projection = vec![SelectItem::UnnamedExpr(Expr::Value(Value::Number("1".to_owned(), false).into()))];
    let rest = Statement::Statement(Box::new(ast::Statement::Query(Box::new(bare))));
    if !is_alone || rest.to_string() != plain.statement.to_string() || selection.is_some() != condition.is_some() {
        return Err(refused());
    }
    // From here on they are written, not read.
    double_quotes(&mut items);
    double_quotes(&mut selection);
    Ok((items, selection))
}

fn conjuncts(condition: Expr) -> Vec<Expr> {
    match condition {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => {
            conjuncts(*left).into_iter().chain(conjuncts(*right)).collect()
        }
        Expr::Nested(inner) if matches!(&*inner, Expr::BinaryOp { op: BinaryOperator::And, .. }) => conjuncts(*inner),
        other => vec![other],
    }
}

/// The last part of a name, which is what a column is called without an alias.
fn natural_name(expr: &Expr) -> Option<Ident> {
    match expr {
        Expr::CompoundIdentifier(parts) => parts.last().cloned(),
        _ => None,
    }
}

/// The conditions on each node and each edge of a pattern, by its place.
#[derive(Default)]
struct PlaceConditions {
    nodes: BTreeMap<usize, Vec<String>>,
    edges: BTreeMap<usize, Vec<String>>,
}

impl PlaceConditions {
    fn add(&mut self, variable: GraphVariable, condition: Expr) {
        let of = match variable {
            GraphVariable::Node(place) => self.nodes.entry(place),
            GraphVariable::Edge(place) | GraphVariable::Path(place) => self.edges.entry(place),
        };
        of.or_default().push(format!("({condition})"));
    }
}

/// Returns a number with a bit for each place whose conditions hold.
fn bits(conditions: &BTreeMap<usize, Vec<String>>) -> String {
    let bit = |(place, conditions): (&usize, &Vec<String>)| {
        format!("CASE WHEN {} THEN {} ELSE 0 END", conditions.join(" AND "), 1_i64 << place)
    };
    let bits: Vec<String> = conditions.iter().map(bit).collect();
    if bits.is_empty() { "0".to_owned() } else { bits.join(" + ") }
}

/// Returns a number with a bit for each place that has conditions.
fn mask(conditions: &BTreeMap<usize, Vec<String>>) -> i64 {
    conditions.keys().fold(0, |mask, place| mask | 1_i64 << place)
}

/// Returns the columns of elements that matches need, as one value.
fn values(columns: &[Ident], table: &str) -> String {
    let parts = columns.iter().enumerate().map(|(place, column)| format!("'c{place}', {table}.{column}"));
    let parts: Vec<String> = parts.collect();
    if parts.is_empty() { "NULL".to_owned() } else { format!("named_struct({})", parts.join(", ")) }
}

/// The columns that expressions over matches need.
#[derive(Default)]
struct NeededColumns {
    nodes: Vec<Ident>,
    edges: Vec<Ident>,
    /// The places of nodes of which columns are needed.
    described: BTreeSet<usize>,
    /// The columns of the matches, each with what it is.
    matches: BTreeMap<String, String>,
}

/// A pattern, and what is needed of its matches.
struct Matched<'a> {
    shape: &'a PatternShape,
    /// The quoted column with a node's key, where there is a table of nodes.
    key: Option<&'a str>,
    /// Where no search is needed.
    joins: Option<(&'a PatternJoins<'a>, &'a JoinedTables<'a>)>,
    fields: NeededColumns,
}

impl Matched<'_> {
    fn variable(&self, name: &Ident) -> Option<GraphVariable> {
        let known = self.shape.variables.iter().find(|(known, _)| same_name(known, &name.value));
        known.map(|(_, variable)| *variable)
    }

    /// Returns the only variable that a condition names, where one row decides it.
    fn variable_of(&self, condition: &Expr) -> Result<Option<GraphVariable>> {
        let mut found: Vec<GraphVariable> = Vec::new();
        let mut is_of_row = true;
        let mut names = |name: &mut Expr| {
            match name {
                Expr::Identifier(name) => found.extend(self.variable(name)),
                Expr::CompoundIdentifier(parts) => found.extend(parts.first().and_then(|name| self.variable(name))),
                Expr::Subquery(_) | Expr::InSubquery { .. } | Expr::Exists { .. } => is_of_row = false,
                _ => {}
            }
            Ok(())
        };
        let _ = EachExpr(&mut names).visited(condition.clone())?;
        found.dedup();
        Ok(match found.as_slice() {
            [only] if is_of_row => Some(*only),
            _ => None,
        })
    }

    /// Writes a condition on one variable over the rows of its nodes or edges.
    fn over_elements(&self, condition: Expr) -> Result<Expr> {
        EachExpr(&mut |expr: &mut Expr| {
            match expr {
                Expr::Identifier(name) => match self.variable(name) {
                    Some(GraphVariable::Node(_)) => *expr = column("nodes", Ident::new("$key"), &[]),
                    Some(GraphVariable::Edge(_) | GraphVariable::Path(_)) => return Err(whole_edge(name)),
                    None => {}
                },
                Expr::CompoundIdentifier(parts) => {
                    let [name, field, rest @ ..] = parts.as_slice() else { return Ok(()) };
                    *expr = match self.variable(name) {
                        Some(GraphVariable::Node(_)) if self.is_key(name, field)? => {
                            column("nodes", Ident::new("$key"), rest)
                        }
                        Some(GraphVariable::Node(_)) => column("nodes", field.clone(), rest),
                        Some(GraphVariable::Edge(_) | GraphVariable::Path(_)) => column("edges", field.clone(), rest),
                        None => return Ok(()),
                    };
                }
                _ => {}
            }
            Ok(())
        })
        .visited(condition)
    }

    /// Writes an expression over the columns of the matches.
    fn over_matches(&mut self, expr: Expr) -> Result<Expr> {
        EachExpr(&mut |expr: &mut Expr| {
            match expr {
                Expr::Identifier(name) => match self.variable(name) {
                    Some(GraphVariable::Node(place)) => *expr = self.key_of(place, name, &[]),
                    Some(GraphVariable::Edge(_) | GraphVariable::Path(_)) => return Err(whole_edge(name)),
                    None => {}
                },
                Expr::CompoundIdentifier(parts) => {
                    let [name, field, rest @ ..] = parts.as_slice() else { return Ok(()) };
                    *expr = match self.variable(name) {
                        Some(GraphVariable::Node(place)) if self.is_key(name, field)? => self.key_of(place, name, rest),
                        Some(GraphVariable::Node(place)) => {
                            let value = self.node_value(place, field);
                            self.column(name, field, rest, value)
                        }
                        Some(GraphVariable::Edge(place)) => {
                            let value = self.edge_value(place, field);
                            self.column(name, field, rest, value)
                        }
                        Some(GraphVariable::Path(place)) => {
                            let value = place_of(&mut self.fields.edges, field);
                            let value = format!("made['{EDGE_VALUES}']['c{value}'][{}]", place + 1);
                            self.column(name, field, rest, value)
                        }
                        None => return Ok(()),
                    };
                }
                _ => {}
            }
            Ok(())
        })
        .visited(expr)
    }

    /// Whether a column of a node is its key. Errors: a column where there is no table of nodes.
    fn is_key(&self, name: &Ident, field: &Ident) -> Result<bool> {
        match self.key {
            Some(key) => Ok(same_name(key.trim_matches('"'), &field.value)),
            None => Err(refused(format!(
                "`{name}.{field}` is a column of a node: give nodes => table, node_key => 'key column', or write `{name}` \
                 for its key"
            ))),
        }
    }

    fn key_of(&mut self, place: usize, name: &Ident, rest: &[Ident]) -> Expr {
        let value = match self.joins {
            Some((joins, tables)) => joins.key(place, tables),
            None => format!("made['{NODES}'][{}]", place + 1),
        };
        let column_name = name.value.to_lowercase();
        self.fields.matches.insert(quote_identifier(&column_name), value);
        named(column_name, rest)
    }

    fn node_value(&mut self, place: usize, field: &Ident) -> String {
        if let Some((joins, _)) = self.joins {
            self.fields.described.insert(place);
            return format!("{}.{field}", joins.node_alias(place));
        }
        let value = place_of(&mut self.fields.nodes, field);
        format!("made['{NODE_VALUES}']['c{value}'][{}]", place + 1)
    }

    fn edge_value(&mut self, place: usize, field: &Ident) -> String {
        let value = place_of(&mut self.fields.edges, field);
        match self.joins {
            Some((joins, _)) => format!("{}.{field}", joins.edge_alias(place)),
            None => format!("made['{EDGE_VALUES}']['c{value}'][{}][1]", place + 1),
        }
    }

    fn column(&mut self, name: &Ident, field: &Ident, rest: &[Ident], value: String) -> Expr {
        let column_name = format!("{}.{}", name.value.to_lowercase(), field.value);
        self.fields.matches.insert(quote_identifier(&column_name), value);
        named(column_name, rest)
    }
}

fn whole_edge(name: &Ident) -> EngineError {
    refused(format!("`{name}` is an edge: write `{name}.column`; of several edges in a row that is a list"))
}

/// Returns the place of a column among those that are needed.
fn place_of(columns: &mut Vec<Ident>, column: &Ident) -> usize {
    columns.iter().position(|known| known == column).unwrap_or_else(|| {
        columns.push(column.clone());
        columns.len() - 1
    })
}

fn column(table: &str, name: Ident, rest: &[Ident]) -> Expr {
    let name = if name.value == "$key" { Ident::with_quote('"', name.value) } else { name };
    Expr::CompoundIdentifier([Ident::new(table), name].into_iter().chain(rest.iter().cloned()).collect())
}

fn named(name: String, rest: &[Ident]) -> Expr {
    let name = Ident::with_quote('"', name);
    match rest {
        [] => Expr::Identifier(name),
        rest => Expr::CompoundIdentifier(std::iter::once(name).chain(rest.iter().cloned()).collect()),
    }
}

/// Calls a function for each expression within another, the outer ones last.
struct EachExpr<'f>(&'f mut dyn FnMut(&mut Expr) -> Result<()>);

impl EachExpr<'_> {
    fn visited(mut self, mut expr: Expr) -> Result<Expr> {
        match VisitMut::visit(&mut expr, &mut self) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(expr),
        }
    }
}

impl VisitorMut for EachExpr<'_> {
    type Break = EngineError;

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        match (self.0)(expr) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
