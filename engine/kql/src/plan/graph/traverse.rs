//! `graph-traverse`: a walk over the rows of its input as edges, so that edges which were filtered out are not
//! followed.

use datafusion::common::Column as PlanColumn;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder, lit};
use datafusion::scalar::ScalarValue;

use crate::ast::{Expr, GraphTraverse, Name, TraverseDirection};
use crate::bind::{
    BindErrorCode, Binder, Environment, ExpressionScope, Result, Typed, constant_of, fail, invalid, unique_name,
};
use crate::graph::{DEPTH, Direction, GraphAlgorithm, NODE};
use crate::plan::{Column, Relation, field_column};
use crate::span::Span;
use crate::types::KqlType;
use crate::values;

/// The column that an edge's type is read from.
const EDGE_TYPE: &str = "type";

impl<'a> Binder<'a> {
    /// Returns one row for each node: the target's column, and `depth`.
    pub(in crate::plan) fn graph_traverse(
        &mut self,
        input: Relation,
        operator: &'a GraphTraverse,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let source = self.edge_end(&input, &operator.from)?;
        let target = self.edge_end(&input, &operator.to)?;
        let node_type = match (source.kql_type, target.kql_type) {
            (source, target) if source == target => source,
            (source, target) if source.is_numeric() && target.is_numeric() => KqlType::Long,
            (source, target) => {
                let (source, target) = (source.name(), target.name());
                let message = format!("an edge's ends are of one type, here a {source} and a {target}");
                return fail(BindErrorCode::TypeMismatch, operator.to.span, message);
            }
        };
        let scope = ExpressionScope::constant(environment);
        let mut from = Vec::with_capacity(operator.sources.len());
        for source in &operator.sources {
            from.extend(self.walk_constants(source, node_type, &scope)?);
        }
        let from = ScalarValue::List(ScalarValue::new_list_nullable(&from, &node_type.arrow_type()));
        let max_hops = self.walk_constants(&operator.max_hops, KqlType::Long, &scope)?;
        let [ScalarValue::Int64(Some(max_hops @ 0..))] = max_hops.as_slice() else {
            return invalid(operator.max_hops.span, "expected a number of hops");
        };
        let direction = match operator.direction {
            None | Some(TraverseDirection::Forward) => Direction::Forward,
            Some(TraverseDirection::Backward) => Direction::Backward,
            Some(TraverseDirection::Both) => Direction::Both,
        };
        let edges = self.edges_of_types(input, &operator.edge_types, span, &scope)?;
        let ends = [source, target].map(|column| self.convert(column.typed(), node_type, span));
        let [source, target] = ends;
        let arguments = vec![source?.expr, target?.expr, lit(from), lit(*max_hops), lit(direction.name())];
        let list = self.field("reached");
        let walked = GraphAlgorithm::Traverse.aggregate().call(arguments).alias(list.clone());
        let plan = LogicalPlanBuilder::from(edges.plan.clone())
            .aggregate(Vec::<PlanExpr>::new(), vec![walked])?
            // The list becomes rows, and a row's two fields become columns.
            .unnest_column(PlanColumn::new_unqualified(&list))?
            .unnest_column(PlanColumn::new_unqualified(&list))?
            .build()?;
        let part = |name: &str| field_column(&format!("{list}.{name}"));
        let depth = unique_name(DEPTH, |name| name == operator.to.text);
        let outputs = vec![
            (operator.to.text.clone(), Typed::new(part(NODE), node_type)),
            (depth, Typed::new(part(DEPTH), KqlType::Long)),
        ];
        let walked = Relation { is_serialized: true, ..Relation::new(plan, Vec::new()) };
        self.projected(walked, outputs)
    }

    fn edge_end(&mut self, input: &Relation, name: &Name) -> Result<Column> {
        match input.column(&name.text) {
            Some(column) => Ok(column.clone()),
            None => Err(self.unknown_column(name, &input.columns).into()),
        }
    }

    /// Returns the edges of any of these types, or all edges where no type is given.
    fn edges_of_types(
        &mut self,
        input: Relation,
        types: &'a [Expr],
        span: Span,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Relation> {
        if types.is_empty() {
            return Ok(input);
        }
        let column = self.edge_end(&input, &Name { text: EDGE_TYPE.to_owned(), bracketed: false, span })?;
        let mut values = Vec::with_capacity(types.len());
        for value in types {
            values.extend(self.walk_constants(value, column.kql_type, scope)?.into_iter().map(lit));
        }
        self.filtered(input, column.expr().in_list(values, false))
    }

    /// Returns the values of a constant: the elements of a dynamic array, or one value.
    fn walk_constants(
        &mut self,
        expr: &'a Expr,
        kql_type: KqlType,
        scope: &ExpressionScope<'_, 'a>,
    ) -> Result<Vec<ScalarValue>> {
        let typed = self.scalar(expr, scope)?;
        let elements = match typed.kql_type {
            KqlType::Dynamic if kql_type != KqlType::Dynamic => {
                let json = match constant_of(&typed.expr)? {
                    Some(ScalarValue::Utf8(Some(json))) => json,
                    _ => return invalid(expr.span, "this must be a constant"),
                };
                let count = values::parse_json(&json).as_array().map_or(0, Vec::len);
                let mut elements = Vec::with_capacity(count);
                for index in 0..count {
                    elements.push(self.element_of(typed.clone(), index, expr.span)?);
                }
                elements
            }
            _ => vec![typed],
        };
        let mut constants = Vec::with_capacity(elements.len());
        for element in elements {
            let converted = self.convert(element, kql_type, expr.span)?;
            match constant_of(&converted.expr)? {
                Some(value) => constants.push(value),
                None => return invalid(expr.span, "this must be a constant"),
            }
        }
        Ok(constants)
    }
}
