//! How large a statement is once its WITH queries are written out. Each that uses the one before twice doubles the plan, which
//! the planner walks as a tree again and again while it makes it: so it is counted in the syntax tree.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{ObjectName, Query, Visit, Visitor, visit_relations};

use crate::error::{EngineError, Result};

/// The most tables that a statement reads, those of its WITH queries counted wherever they are used.
const MAX_TABLES: u64 = 10_000;
/// Inner WITH queries name outer ones and the other way round; a few rounds settle the weights of both.
const ROUNDS: usize = 3;

/// Returns an error where WITH queries multiply. Errors: `sql_plan_error`.
pub(super) fn check_with_weight(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Statement(statement) => {
            let mut weights = WithWeights::default();
            for _ in 0..ROUNDS {
                let _: ControlFlow<Infallible> = statement.visit(&mut weights);
            }
            if weights.tables_in(statement.as_ref()) > MAX_TABLES {
                let message = format!(
                    "the statement reads more than {MAX_TABLES} tables once its WITH queries are written out; use each of \
                     them fewer times, or keep a result in a table"
                );
                return Err(EngineError::Plan { message });
            }
            Ok(())
        }
        Statement::Explain(explain) => check_with_weight(&explain.statement),
        Statement::CopyTo(_) | Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

/// How many tables each WITH query reads, by its name in lower case; of two of one name the larger.
#[derive(Default)]
struct WithWeights(HashMap<String, u64>);

impl WithWeights {
    fn tables_in(&self, part: &impl Visit) -> u64 {
        let mut tables: u64 = 0;
        let _: ControlFlow<Infallible> = visit_relations(part, |name| {
            tables = tables.saturating_add(self.tables_of(name));
            ControlFlow::Continue(())
        });
        tables
    }

    fn tables_of(&self, name: &ObjectName) -> u64 {
        let bare = match name.0.as_slice() {
            [part] => part.as_ident(),
            _ => None,
        };
        bare.and_then(|name| self.0.get(&name.value.to_lowercase())).copied().unwrap_or(1)
    }
}

impl Visitor for WithWeights {
    type Break = Infallible;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Infallible> {
        for table in query.with.iter().flat_map(|with| &with.cte_tables) {
            let name = table.alias.name.value.to_lowercase();
            // What names itself is a recursion, and does not multiply here.
            let before = self.0.remove(&name);
            let tables = self.tables_in(table.query.as_ref()).max(1);
            self.0.insert(name, before.map_or(tables, |before| before.max(tables)));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::parse::parse_statement;

    fn code(levels: usize, step: &str) -> &'static str {
        let withs: Vec<String> = (1..levels)
            .map(|level| format!("c{level} AS ({})", step.replace('@', &format!("c{}", level - 1))))
            .collect();
        let text = format!("WITH c0 AS (SELECT 1 AS x), {} SELECT * FROM c{}", withs.join(", "), levels - 1);
        match parse_statement(&text) {
            Ok(_) => "parsed",
            Err(error) => error.code(),
        }
    }

    #[test]
    fn queries_that_double_are_refused() {
        assert_eq!(code(24, "SELECT a.x FROM @ a JOIN @ b ON a.x = b.x"), "sql_plan_error");
        assert_eq!(code(24, "SELECT x FROM @ UNION ALL SELECT x FROM @"), "sql_plan_error");
        assert_eq!(code(24, "SELECT x + (SELECT max(x) FROM @) AS x FROM @"), "sql_plan_error");
        assert_eq!(code(60, "SELECT x + 1 AS x FROM @"), "parsed");
        assert_eq!(code(8, "SELECT a.x FROM @ a JOIN @ b ON a.x = b.x"), "parsed");
        assert!(parse_statement("WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) TABLE r").is_ok());
    }
}
