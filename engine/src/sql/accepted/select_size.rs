//! How long it takes to plan a SELECT. DataFusion's planner compares each expression of its list, of HAVING, QUALIFY and ORDER BY with
//! each of its aggregates, window functions and groups, in a step that nothing ends: so their product is bounded before.

use datafusion::sql::sqlparser::ast::{Expr, GroupByExpr, Select};

use crate::error::{EngineError, Result};
use crate::sql::function_forms::{is_aggregate, is_aggregate_form};

/// The most items of one SELECT.
const MAX_ITEMS: usize = 100_000;
/// The most comparisons of one query: seconds of a core.
const MAX_COMPARISONS: usize = 100_000_000;

/// The sizes of the queries around an expression, kept while a statement is walked.
#[derive(Debug, Default)]
pub(super) struct SelectSizes {
    queries: Vec<QuerySize>,
}

#[derive(Debug, Default)]
struct QuerySize {
    /// Expressions of the SELECT in hand, or outside of any; constants do not count.
    exprs: usize,
    /// The aggregates, window functions and groups of the SELECT in hand.
    compared_with: usize,
    /// The most that one SELECT has of them.
    most_compared_with: usize,
    comparisons: usize,
}

impl SelectSizes {
    pub(super) fn begin_query(&mut self) {
        self.queries.push(QuerySize::default());
    }

    /// Errors: `sql_plan_error` where the query takes too long to plan.
    pub(super) fn end_query(&mut self) -> Result<()> {
        let Some(query) = self.queries.pop() else { return Ok(()) };
        // What is left is that of ORDER BY.
        let sorted = query.exprs.saturating_mul(query.most_compared_with);
        if query.comparisons.saturating_add(sorted) <= MAX_COMPARISONS {
            return Ok(());
        }
        let message = format!(
            "a query has {} aggregates, window functions and groups in one SELECT, and too many expressions to look for them in; \
             compute some of them in another query, and join both",
            query.most_compared_with
        );
        Err(EngineError::Plan { message })
    }

    /// Errors: `sql_plan_error` where the SELECT has too many items.
    pub(super) fn begin_select(&mut self, select: &Select) -> Result<()> {
        let items = select.projection.len();
        if items > MAX_ITEMS {
            let message = format!("a SELECT has at most {MAX_ITEMS} items, this one has {items}; make rows of them");
            return Err(EngineError::Plan { message });
        }
        if let Some(query) = self.queries.last_mut() {
            query.exprs = 0;
            query.compared_with = match &select.group_by {
                GroupByExpr::Expressions(exprs, _) => exprs.len(),
                GroupByExpr::All(_) => items,
            };
        }
        Ok(())
    }

    pub(super) fn end_select(&mut self) {
        if let Some(query) = self.queries.last_mut() {
            let comparisons = query.exprs.saturating_mul(query.compared_with);
            query.comparisons = query.comparisons.saturating_add(comparisons);
            query.most_compared_with = query.most_compared_with.max(query.compared_with);
            (query.exprs, query.compared_with) = (0, 0);
        }
    }

    pub(super) fn see(&mut self, expr: &Expr) {
        let Some(query) = self.queries.last_mut() else { return };
        if let Expr::Value(_) = expr {
            return;
        }
        query.exprs += 1;
        if let Expr::Function(call) = expr {
            let is_of_rows = || {
                let name = call.name.to_string().to_lowercase();
                is_aggregate(&name) || is_aggregate_form(&name)
            };
            query.compared_with += usize::from(call.over.is_some() || is_of_rows());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::sql::accepted::check_accepted;
    use crate::sql::parse::parse_statement;

    fn is_refused(text: &str) -> bool {
        let parsed = parse_statement(text).unwrap();
        match parsed.nesting.with_room(|| check_accepted(&parsed.statement)) {
            Ok(()) => false,
            Err(error) => {
                assert_eq!(error.code(), "sql_plan_error", "{error}");
                true
            }
        }
    }

    #[test]
    fn products_are_bounded_and_sums_are_not() {
        let items = |count: usize, item: &str| vec![item; count].join(", ");
        for (text, refused) in [
            (format!("SELECT {} FROM t", items(1_000, "sum(a + 1)")), false),
            (format!("SELECT {} FROM t", items(20_000, "sum(a + 1)")), true),
            (format!("SELECT {} FROM t", items(20_000, "sum(a) OVER ()")), true),
            (format!("SELECT {} FROM t GROUP BY {}", items(20_000, "a"), items(20_000, "a")), true),
            (format!("SELECT {} FROM t GROUP BY ALL", items(20_000, "a")), true),
            (format!("SELECT {} FROM t ORDER BY {}", items(2_000, "sum(a)"), items(80_000, "a")), true),
            (format!("SELECT * FROM (SELECT {} FROM t)", items(20_000, "sum(a)")), true),
            (format!("SELECT {} FROM t", items(50_000, "a")), false),
            (format!("SELECT {} FROM t", items(100_001, "a")), true),
            (format!("SELECT sum(a) FROM t WHERE a IN ({})", items(50_000, "1")), false),
        ] {
            assert_eq!(is_refused(&text), refused, "{}", &text[..60]);
        }
    }
}
