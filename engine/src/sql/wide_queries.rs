//! Wide queries over wide queries. For each item of a SELECT, DataFusion's planner walks all expressions of the queries that it is over,
//! and cannot be interrupted there: eight thousand items over as many take its thread for many seconds.

use std::collections::HashMap;
use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{Expr, ObjectNamePart, Query, Select, TableFactor, Visit, Visitor, VisitorMut};

use super::syntax::try_visit_statement;
use crate::error::{EngineError, Result};

/// The most items of a SELECT times the items and expressions of the queries in its FROM clause.
const MAX_WALKED: usize = 32_000_000;

/// Refuses a statement with a SELECT that takes too long to plan. Errors: `sql_plan_error`.
pub(super) fn check_wide_queries(statement: &mut Statement) -> Result<()> {
    try_visit_statement(statement, &mut WideQueries::default())
}

#[derive(Default)]
struct WideQueries {
    /// How many items and expressions the queries of WITH clauses have, by their names in lower case.
    named: HashMap<String, usize>,
}

impl WideQueries {
    fn size_of(&self, part: &impl Visit) -> usize {
        let mut size = ItemCount { named: &self.named, size: 0 };
        let _: ControlFlow<()> = Visit::visit(part, &mut size);
        size.size
    }
}

impl VisitorMut for WideQueries {
    type Break = EngineError;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<EngineError> {
        for cte in query.with.iter().flat_map(|with| &with.cte_tables) {
            let size = self.size_of(&cte.query);
            self.named.insert(cte.alias.name.value.to_lowercase(), size);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<EngineError> {
        let items = select.projection.len();
        if items < 2 || items.saturating_mul(self.size_of(&select.from)) <= MAX_WALKED {
            return ControlFlow::Continue(());
        }
        let message = format!(
            "a SELECT of {items} items is over queries of so many expressions that it takes too long to plan; select fewer at a \
             time, or keep the result of the query below in a table"
        );
        ControlFlow::Break(EngineError::Plan { message })
    }
}

struct ItemCount<'a> {
    named: &'a HashMap<String, usize>,
    size: usize,
}

impl Visitor for ItemCount<'_> {
    type Break = ();

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<()> {
        self.size = self.size.saturating_add(select.projection.len());
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, _expr: &Expr) -> ControlFlow<()> {
        self.size = self.size.saturating_add(1);
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = table
            && let [ObjectNamePart::Identifier(ident)] = name.0.as_slice()
            && let Some(size) = self.named.get(&ident.value.to_lowercase())
        {
            self.size = self.size.saturating_add(*size);
        }
        ControlFlow::Continue(())
    }
}
