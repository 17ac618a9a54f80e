//! Bare names in clauses of MERGE for rows of one side: where the table has no row they are the source's, and where the source has
//! none they are the table's, as in PostgreSQL and DuckDB. What dbt writes, `WHEN NOT MATCHED THEN INSERT (a, b) VALUES (a, b)`,
//! names columns of the source.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{Expr, Ident, MergeClause, MergeClauseKind, Query, VisitMut, VisitorMut};

use crate::identifiers::same_name;
use crate::sql::column_defaults::is_default;
use crate::sql::row_statements::ChangedTable;

/// Qualifies the bare names of the table's columns in a clause whose rows are of one side; others are not ambiguous.
pub(super) fn qualify_bare_names(clause: &mut MergeClause, table: &ChangedTable, source: &Ident) {
    let relation = match clause.clause_kind {
        MergeClauseKind::Matched => return,
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => source,
        MergeClauseKind::NotMatchedBySource => &table.alias,
    };
    let mut names = BareNames { columns: &table.columns, relation, parameters: Vec::new(), depth: 0 };
    let _: ControlFlow<()> = VisitMut::visit(clause, &mut names);
}

struct BareNames<'a> {
    columns: &'a [String],
    relation: &'a Ident,
    /// Of the lambdas around an expression.
    parameters: Vec<Vec<String>>,
    /// How many subqueries deep the visit is; their names may be of their own tables.
    depth: usize,
}

impl BareNames<'_> {
    fn is_column(&self, name: &Ident) -> bool {
        let is_same = |other: &String| same_name(other, &name.value);
        self.columns.iter().any(is_same) && !self.parameters.iter().flatten().any(is_same)
    }
}

impl VisitorMut for BareNames<'_> {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth > 0 || is_default(expr) {
            return ControlFlow::Continue(());
        }
        match expr {
            Expr::Lambda(lambda) => {
                self.parameters.push(lambda.params.iter().map(|param| param.name.value.clone()).collect());
            }
            Expr::Identifier(name) if self.is_column(name) => {
                let parts = vec![self.relation.clone(), name.clone()];
                *expr = Expr::CompoundIdentifier(parts);
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if self.depth == 0 && matches!(expr, Expr::Lambda(_)) {
            self.parameters.pop();
        }
        ControlFlow::Continue(())
    }
}
