//! Graphs: `make-graph` reads edges and nodes while the query is bound, and the operators over a graph make tables of
//! it, whose rows the plan holds. `graph-traverse` walks over rows.

mod filter;
mod make;
mod matching;
mod needed;
mod results;
mod stored;
mod traverse;

use std::rc::Rc;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use datafusion::common::DFSchema;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlanBuilder};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::physical_expr::create_physical_expr;

use super::all_rows::arrow_error;
use super::{Column, Relation};
use crate::bind::{Binder, HIDDEN, Result, invalid};
use crate::graph::network::{Id, Network};
use crate::span::Span;

/// The nodes or the edges of a graph with their properties.
#[derive(Debug, Clone)]
struct GraphTable {
    batch: RecordBatch,
    /// Their fields are the batch's.
    columns: Vec<Column>,
}

impl GraphTable {
    fn shown(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.name.starts_with(HIDDEN))
    }

    /// Returns the values of an expression, one for each.
    fn values(&self, expr: &PlanExpr) -> Result<ArrayRef> {
        let schema = Arc::new(DFSchema::try_from(self.batch.schema().as_ref().clone())?);
        let simplifier = ExprSimplifier::new(SimplifyContext::builder().with_schema(Arc::clone(&schema)).build());
        let expr = simplifier.simplify(simplifier.coerce(expr.clone(), &schema)?)?;
        let physical = create_physical_expr(&expr, &schema, &ExecutionProps::new())?;
        Ok(physical.evaluate(&self.batch)?.into_array(self.batch.num_rows())?)
    }
}

/// A graph that a query makes.
#[derive(Debug)]
pub(crate) struct QueryGraph {
    network: Rc<Network>,
    /// The source and the target of each edge.
    ends: Rc<Vec<[Id; 2]>>,
    nodes: GraphTable,
    edges: GraphTable,
    is_directed: bool,
}

impl Binder<'_> {
    /// Returns a graph as what an operator takes.
    fn graph_relation(&mut self, graph: QueryGraph) -> Result<Relation> {
        let plan = LogicalPlanBuilder::empty(false).build()?;
        Ok(Relation { graph: Some(Rc::new(graph)), ..Relation::new(plan, Vec::new()) })
    }
}

/// Returns the graph that an operator takes.
fn graph_of(input: &Relation, span: Span) -> Result<Rc<QueryGraph>> {
    match &input.graph {
        Some(graph) => Ok(Rc::clone(graph)),
        None => invalid(span, "this operator needs a graph before it, which `make-graph` makes"),
    }
}
