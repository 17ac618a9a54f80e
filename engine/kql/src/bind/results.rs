//! The results of a query: of each statement that is an expression, and of each branch of a `fork`, a `facet` or a
//! `preview` or a `funnel_sequence` at its end.

use std::rc::Rc;

use super::statements::check_names;
use super::{Binder, Binding, BoundResult, Environment, Result, invalid, unique_name};
use crate::ast::{Expr, ExprKind, GraphOutput, Operator, OperatorKind, Pipeline, Query};
use crate::plan::{Column, Relation};
use crate::types::KqlType;

/// A plugin with three tables, of which operators after it take the first.
const FUNNELS: &str = "funnel_sequence";

impl<'a> Binder<'a> {
    /// Returns the results of a query's statements, at least one.
    pub(crate) fn query(&mut self, query: &'a Query) -> Result<Vec<BoundResult>> {
        check_names(&query.statements)?;
        self.read_options(&query.statements)?;
        let mut environment = Environment::default();
        let mut results = Vec::new();
        for (index, statement) in query.statements.iter().enumerate() {
            let Some(expr) = self.statement(statement, &mut environment)? else { continue };
            let is_last = index + 1 == query.statements.len();
            match named_tables(expr).filter(|_| !is_last) {
                Some((pipeline, outputs)) => self.name_tables(pipeline, outputs, &mut environment)?,
                None => self.add_results(expr, &environment, &mut results)?,
            }
        }
        if results.is_empty() {
            return invalid(query.span, "the query has no result; end it with a table");
        }
        Ok(results)
    }

    /// Binds the names that `graph-to-table nodes as N, edges as E` gives its tables, for the statements after it.
    fn name_tables(
        &mut self,
        pipeline: &'a Pipeline,
        outputs: &'a [GraphOutput],
        environment: &mut Environment<'a>,
    ) -> Result<()> {
        let at = pipeline.operators.len() - 1;
        let graph = self.pipeline_up_to(pipeline, at, environment)?;
        for output in outputs {
            let table = self.graph_to_table(&graph, output, pipeline.operators[at].span)?;
            if let Some(name) = &output.name {
                *environment = environment.with(&name.text, Binding::Bound(Rc::new(table)));
            }
        }
        Ok(())
    }

    fn add_results(
        &mut self,
        expr: &'a Expr,
        environment: &Environment<'a>,
        results: &mut Vec<BoundResult>,
    ) -> Result<()> {
        if let ExprKind::Pipeline(pipeline) = &expr.kind
            && let Some(at) = branching(pipeline)
        {
            return self.add_branches(pipeline, at, environment, results);
        }
        let relation = if self.is_tabular(expr, environment) {
            self.table(expr, environment)?
        } else {
            self.printed(expr, environment)?
        };
        results.push(BoundResult { relation, rendering: self.rendering.take() });
        Ok(())
    }

    /// Adds a result for each branch of the operator at `at`. What follows it is done to all of them.
    fn add_branches(
        &mut self,
        pipeline: &'a Pipeline,
        at: usize,
        environment: &Environment<'a>,
        results: &mut Vec<BoundResult>,
    ) -> Result<()> {
        let input = self.pipeline_up_to(pipeline, at, environment)?;
        let Some((branching, after)) = pipeline.operators.split_at(at).1.split_first() else {
            return invalid(Default::default(), "an empty pipeline");
        };
        self.spend(1, branching.span)?;
        let mut branches = Vec::new();
        match &branching.kind {
            OperatorKind::Fork(forks) => {
                for fork in forks {
                    branches.push(self.piped(input.clone(), &fork.pipeline, environment)?);
                }
            }
            OperatorKind::GraphToTable(outputs) => {
                for output in outputs {
                    branches.push(self.graph_to_table(&input, output, branching.span)?);
                }
            }
            OperatorKind::Facet { by, with } => {
                if let Some(pipeline) = with {
                    branches.push(self.piped(input.clone(), pipeline, environment)?);
                }
                for column in by {
                    branches.push(self.counted(&input, column)?);
                }
            }
            OperatorKind::Evaluate { plugin: Expr { kind: ExprKind::Call(call), .. }, schema: None }
                if call.function.text == FUNNELS =>
            {
                branches.extend(self.funnel_sequence(&input, call, environment)?);
            }
            OperatorKind::Evaluate { plugin: Expr { kind: ExprKind::Call(call), .. }, schema: None } => {
                let [rows] = call.arguments.as_slice() else {
                    return invalid(call.function.span, "`preview` takes a number of rows");
                };
                branches.push(self.take(input.clone(), rows, environment)?);
                branches.push(self.count(input, None)?);
            }
            _ => return invalid(branching.span, "this operator has no branches"),
        }
        for branch in branches {
            let mut relation = branch;
            for operator in after {
                relation = self.operator(relation, operator, environment)?;
            }
            results.push(BoundResult { relation, rendering: self.rendering.take() });
        }
        Ok(())
    }

    pub(crate) fn piped(
        &mut self,
        input: Relation,
        pipeline: &'a Pipeline,
        environment: &Environment<'a>,
    ) -> Result<Relation> {
        let mut relation = input;
        for operator in &pipeline.operators {
            relation = self.operator(relation, operator, environment)?;
        }
        Ok(relation)
    }

    /// Returns how often a column has each of its values.
    fn counted(&mut self, input: &Relation, by: &'a Expr) -> Result<Relation> {
        let ExprKind::Name(name) = &by.kind else {
            return invalid(by.span, "expected a column");
        };
        let Some(column) = input.column(&name.text).cloned() else {
            return Err(self.unknown_column(name, &input.columns).into());
        };
        let field = self.field("count");
        let count = datafusion::functions_aggregate::count::count_all().alias(field.clone());
        let count_name = unique_name(&format!("count_{}", column.name), |name| name == column.name);
        let output = Column { name: count_name, field, kql_type: KqlType::Long }.output();
        self.grouped(input.clone(), vec![column.output()], vec![count], vec![output])
    }
}

/// Returns the tables that a statement names, and the pipeline that makes them.
fn named_tables(expr: &Expr) -> Option<(&Pipeline, &[GraphOutput])> {
    let ExprKind::Pipeline(pipeline) = &expr.kind else { return None };
    match &pipeline.operators.last()?.kind {
        OperatorKind::GraphToTable(outputs) if outputs.iter().all(|output| output.name.is_some()) => {
            Some((pipeline, outputs))
        }
        _ => None,
    }
}

/// Returns the place of the operator that makes several results.
fn branching(pipeline: &Pipeline) -> Option<usize> {
    let last = pipeline.operators.len().checked_sub(1)?;
    pipeline.operators.iter().enumerate().position(|(at, operator)| match &operator.kind {
        OperatorKind::Evaluate { plugin: Expr { kind: ExprKind::Call(call), .. }, schema: None }
            if call.function.text == FUNNELS =>
        {
            at == last
        }
        _ => is_branching(operator),
    })
}

fn is_branching(operator: &Operator) -> bool {
    match &operator.kind {
        OperatorKind::Fork(_) | OperatorKind::Facet { .. } => true,
        OperatorKind::GraphToTable(outputs) => outputs.len() > 1,
        OperatorKind::Evaluate { plugin: Expr { kind: ExprKind::Call(call), .. }, schema: None } => {
            call.function.text == "preview"
        }
        _ => false,
    }
}
