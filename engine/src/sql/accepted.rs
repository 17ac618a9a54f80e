//! What of the parser's syntax is planned. The parser accepts much that DataFusion's planner does not read, and a clause that
//! nobody reads changes an answer in silence: here each is refused by name.
//!
//! Every struct is taken apart without `..` and every enum matched without `_`, so that what a new version of the parser
//! adds does not compile until somebody has decided about it.

mod expression;
mod query;
mod select_size;
mod statement;

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{self, Expr, Query, Select, TableFactor, Visit, Visitor};

use super::sql_types::is_uuid_type;
use crate::error::{EngineError, Result};

pub(super) use query::has_limit;
use select_size::SelectSizes;

/// Refuses what is parsed and not planned. Errors: `unsupported`, and `sql_plan_error` for what takes too long to plan.
pub(super) fn check_accepted(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => match statement.visit(&mut SyntaxCheck::default()) {
            ControlFlow::Break(error) => Err(error),
            ControlFlow::Continue(()) => Ok(()),
        },
        Statement::Explain(explain) => {
            check_explained(&explain.statement)?;
            check_accepted(&explain.statement)
        }
        Statement::CreateExternalTable(table) => {
            match table.columns.iter().find(|column| is_uuid_type(&column.data_type)) {
                Some(column) => Err(EngineError::Unsupported {
                    what: format!("type UUID of column `{}` of an external table", column.name.value),
                    hint: "write VARCHAR; the UUIDs of Parquet and Arrow files are text without it, and CAST(column AS UUID) \
                           checks others"
                        .to_owned(),
                }),
                None => Ok(()),
            }
        }
        Statement::CopyTo(_) | Statement::Reset(_) => Ok(()),
    }
}

/// Refuses EXPLAIN of statements that have no plan of DataFusion's. Errors: `unsupported`.
fn check_explained(statement: &Statement) -> Result<()> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let (label, hint) = match statement.as_ref() {
        ast::Statement::OptimizeTable { .. } => {
            ("OPTIMIZE", "run it without EXPLAIN; it answers with a number of rows")
        }
        ast::Statement::Analyze(_) => ("ANALYZE", "run it without EXPLAIN"),
        ast::Statement::Truncate(_) => ("TRUNCATE", "run it without EXPLAIN"),
        ast::Statement::AlterTable(_) => ("ALTER TABLE", "run it without EXPLAIN; it touches no file"),
        ast::Statement::Merge(_) => ("MERGE", "explain the join of its tables, EXPLAIN SELECT ..."),
        _ => return Ok(()),
    };
    Err(EngineError::Unsupported { what: format!("EXPLAIN of {label}"), hint: hint.to_owned() })
}

#[derive(Default)]
struct SyntaxCheck {
    sizes: SelectSizes,
}

impl Visitor for SyntaxCheck {
    type Break = EngineError;

    fn pre_visit_statement(&mut self, statement: &ast::Statement) -> ControlFlow<EngineError> {
        flow(statement::check(statement))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<EngineError> {
        self.sizes.begin_query();
        flow(query::check_query(query))
    }

    fn post_visit_query(&mut self, _query: &Query) -> ControlFlow<EngineError> {
        flow(self.sizes.end_query())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<EngineError> {
        flow(self.sizes.begin_select(select).and_then(|()| query::check_select(select)))
    }

    fn post_visit_select(&mut self, _select: &Select) -> ControlFlow<EngineError> {
        self.sizes.end_select();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<EngineError> {
        flow(query::check_factor(factor))
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<EngineError> {
        self.sizes.see(expr);
        flow(expression::check(expr))
    }
}

fn flow(result: Result<()>) -> ControlFlow<EngineError> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Refuses `what` where it is there.
fn refuse_if(is_there: bool, what: &str, hint: &str) -> Result<()> {
    if is_there {
        return Err(EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() });
    }
    Ok(())
}

fn refuse(what: &str, hint: &str) -> Result<()> {
    refuse_if(true, what, hint)
}

const LEAVE_OUT: &str = "leave it out";
