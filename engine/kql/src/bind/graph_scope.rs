//! What expressions of `graph-match` name: the nodes and edges of a pattern, their properties, and functions of them.
//! Each value that an expression needs of a match becomes a field of a row, which the operator fills.

use std::cell::{Cell, RefCell};

use datafusion::logical_expr::{Expr as PlanExpr, lit};

use super::{Binder, ExpressionScope, Result, Typed, invalid};
use crate::ast::{Expr, ExprKind, FunctionCall};
use crate::functions;
use crate::graph::GraphVariable;
use crate::plan::{Column, field_column};
use crate::span::Span;
use crate::types::KqlType;

/// Before the names of what a node has beside its properties.
pub(crate) const HIDDEN: char = '$';

/// How the values of a path's elements are one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathValue {
    /// Whether a condition holds for all.
    All,
    /// Whether it holds for one.
    Any,
    /// An array of them.
    Map,
}

/// Where a needed value comes from: an expression over the rows of all nodes or of all edges.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NeededSource {
    Node(usize, PlanExpr),
    Edge(usize, PlanExpr),
    Path {
        edge: usize,
        /// Of the nodes between the edges, and not of the edges.
        of_inner: bool,
        how: PathValue,
        expr: PlanExpr,
    },
}

/// A value that expressions need of each match, as a field.
#[derive(Debug, Clone)]
pub(crate) struct NeededValue {
    pub(crate) field: String,
    pub(crate) kql_type: KqlType,
    pub(crate) source: NeededSource,
}

/// The variables of a pattern.
pub(crate) struct GraphScope {
    pub(crate) variables: Vec<(String, GraphVariable)>,
    pub(crate) node_columns: Vec<Column>,
    pub(crate) edge_columns: Vec<Column>,
    pub(crate) needed: RefCell<Vec<NeededValue>>,
    /// Whether the condition is bound, in which a property of several edges is not one value.
    pub(crate) in_condition: Cell<bool>,
}

impl GraphScope {
    pub(super) fn find(&self, expr: &Expr) -> Option<GraphVariable> {
        let ExprKind::Name(name) = &expr.kind else { return None };
        self.variables.iter().find(|(known, _)| *known == name.text).map(|(_, variable)| *variable)
    }

    /// Whether an expression over the needed values is of nodes alone.
    pub(crate) fn is_of_nodes(&self, expr: &PlanExpr) -> bool {
        let needed = self.needed.borrow();
        let is_of_node = |field: &str| {
            needed.iter().any(|value| value.field == field && matches!(value.source, NeededSource::Node(..)))
        };
        expr.column_refs().iter().all(|column| is_of_node(&column.name))
    }
}

impl<'a> Binder<'a> {
    /// Binds a variable of a pattern alone: a bag of its properties, or an array of them.
    pub(super) fn graph_element(&mut self, variable: GraphVariable, span: Span, graph: &GraphScope) -> Result<Typed> {
        let columns = match variable {
            GraphVariable::Node(_) => &graph.node_columns,
            GraphVariable::Edge(_) | GraphVariable::Path(_) => &graph.edge_columns,
        };
        let shown: Vec<&Column> = columns.iter().filter(|column| !column.name.starts_with(HIDDEN)).collect();
        let names: Vec<String> = shown.iter().map(|column| column.name.clone()).collect();
        let bag = self.packed(&names, shown.iter().map(|column| column.typed()).collect(), span)?;
        let bag = self.apply(functions::WITHOUT_EMPTY, vec![bag], span)?;
        Ok(self.needed(variable, bag, graph))
    }

    /// Binds a property of a variable.
    pub(super) fn graph_property(
        &mut self,
        variable: GraphVariable,
        name: &str,
        span: Span,
        graph: &GraphScope,
    ) -> Result<Typed> {
        let columns = match variable {
            GraphVariable::Path(_) if graph.in_condition.get() => {
                return invalid(span, "a condition on several edges in a row is `all(...)` or `any(...)` of them");
            }
            GraphVariable::Node(_) => &graph.node_columns,
            GraphVariable::Edge(_) | GraphVariable::Path(_) => &graph.edge_columns,
        };
        let Some(column) = columns.iter().find(|column| column.name == name) else {
            let name = crate::ast::Name { text: name.to_owned(), bracketed: false, span };
            let shown: Vec<Column> =
                columns.iter().filter(|column| !column.name.starts_with(HIDDEN)).cloned().collect();
            return Err(self.unknown_column(&name, &shown).into());
        };
        let mut value = column.typed();
        if matches!(variable, GraphVariable::Path(_)) {
            value = self.as_element(value, span)?;
        }
        Ok(self.needed(variable, value, graph))
    }

    /// Binds a function of a pattern's variables; `None` for other functions.
    pub(super) fn graph_function(
        &mut self,
        call: &'a FunctionCall,
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
        graph: &GraphScope,
    ) -> Result<Option<Typed>> {
        let name = call.function.text.as_str();
        match (name, call.arguments.as_slice()) {
            ("node_id" | "node_degree_in" | "node_degree_out" | "labels", [node]) => {
                let Some(variable) = graph.find(&node.expr) else { return Ok(None) };
                let of_edges = format!("{HIDDEN}labels");
                if name == "labels" && !matches!(variable, GraphVariable::Node(_)) {
                    // The edges of a graph that a query makes have none.
                    if graph.edge_columns.iter().any(|column| column.name == of_edges) {
                        return self.graph_property(variable, &of_edges, span, graph).map(Some);
                    }
                    return Ok(Some(Typed::new(lit("[]"), KqlType::Dynamic)));
                }
                let GraphVariable::Node(_) = variable else {
                    return invalid(span, format!("`{name}` takes a node of the pattern"));
                };
                self.graph_property(variable, &format!("{HIDDEN}{name}"), span, graph).map(Some)
            }
            ("all" | "any" | "map", [of, value]) => {
                let (of, of_inner) = match &of.expr.kind {
                    ExprKind::Call(inner) if inner.function.text == "inner_nodes" => match inner.arguments.as_slice() {
                        [path] => (&path.expr, true),
                        _ => return invalid(span, "`inner_nodes` takes an edge of variable length"),
                    },
                    _ => (&of.expr, false),
                };
                let Some(GraphVariable::Path(edge)) = graph.find(of) else {
                    return invalid(span, format!("`{name}` takes an edge of variable length"));
                };
                let columns = if of_inner { &graph.node_columns } else { &graph.edge_columns };
                let inside = ExpressionScope::over_columns(scope.environment, columns);
                let (how, value) = match name {
                    "map" => {
                        let value_of = self.scalar(&value.expr, &inside)?;
                        (PathValue::Map, self.as_element(value_of, span)?)
                    }
                    _ => {
                        let condition = self.condition(&value.expr, &inside)?;
                        let how = if name == "all" { PathValue::All } else { PathValue::Any };
                        (how, Typed::new(condition, KqlType::Bool))
                    }
                };
                let kql_type = if how == PathValue::Map { KqlType::Dynamic } else { KqlType::Bool };
                let source = NeededSource::Path { edge, of_inner, how, expr: value.expr };
                Ok(Some(self.needed_field(source, kql_type, graph)))
            }
            ("inner_nodes", _) => invalid(span, "`inner_nodes` stands in `all`, `any` and `map`"),
            _ => Ok(None),
        }
    }

    fn needed(&mut self, variable: GraphVariable, value: Typed, graph: &GraphScope) -> Typed {
        let (source, kql_type) = match variable {
            GraphVariable::Node(node) => (NeededSource::Node(node, value.expr), value.kql_type),
            GraphVariable::Edge(edge) => (NeededSource::Edge(edge, value.expr), value.kql_type),
            GraphVariable::Path(edge) => {
                let how = PathValue::Map;
                (NeededSource::Path { edge, of_inner: false, how, expr: value.expr }, KqlType::Dynamic)
            }
        };
        self.needed_field(source, kql_type, graph)
    }

    fn needed_field(&mut self, source: NeededSource, kql_type: KqlType, graph: &GraphScope) -> Typed {
        let known = graph.needed.borrow().iter().find(|known| known.source == source).map(|known| known.field.clone());
        let field = known.unwrap_or_else(|| {
            let field = self.field("match");
            graph.needed.borrow_mut().push(NeededValue { field: field.clone(), kql_type, source });
            field
        });
        Typed::new(field_column(&field), kql_type)
    }
}

/// Returns the name that an expression of `graph-match` gives its column; `None` where it gives none.
pub(crate) fn graph_name(expr: &Expr, graph: &GraphScope) -> Option<String> {
    match &expr.kind {
        ExprKind::Name(name) => {
            let is_bare = matches!(graph.find(expr), Some(GraphVariable::Node(_)))
                && graph.node_columns.iter().all(|column| column.name.starts_with(HIDDEN));
            (!is_bare).then(|| name.text.clone())
        }
        ExprKind::Member { base, name } if graph.find(base).is_some() => {
            graph_name(base, graph).map(|base| format!("{base}_{}", name.text))
        }
        ExprKind::Member { base, name } => graph_name(base, graph).map(|base| format!("{base}_{}", name.text)),
        ExprKind::Element { base, index } => {
            let crate::ast::ExprKind::Literal(literal) = &index.kind else { return None };
            let base = graph_name(base, graph)?;
            match literal {
                crate::ast::Literal::String(text) => Some(format!("{base}_{text}")),
                crate::ast::Literal::Long(index) => Some(format!("{base}_{index}")),
                _ => None,
            }
        }
        ExprKind::Call(call) => graph_call_name(call, graph),
        _ => None,
    }
}

fn graph_call_name(call: &FunctionCall, graph: &GraphScope) -> Option<String> {
    let name = call.function.text.as_str();
    match (name, call.arguments.as_slice()) {
        ("node_id", []) => Some(name.to_owned()),
        ("node_id" | "node_degree_in" | "node_degree_out" | "labels" | "inner_nodes", [of]) => match &of.expr.kind {
            ExprKind::Name(of) => Some(format!("{name}_{}", of.text)),
            _ => None,
        },
        ("all" | "any" | "map", [of, value]) => {
            let of = graph_name(&of.expr, graph)?;
            Some(format!("{of}_{}", graph_name(&value.expr, graph).unwrap_or_else(|| "Column".to_owned())))
        }
        _ => None,
    }
}
