//! Clauses of MERGE that take a whole row of the source: `UPDATE`, `UPDATE SET *`, `UPDATE BY NAME`, `INSERT`, `INSERT *`,
//! `INSERT BY NAME`, as DuckDB has them. Marks stand for the columns ([`marks::MERGE_BY_NAME`], [`marks::MERGE_BY_POSITION`]).

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, Expr, Ident, MergeAction, MergeClause, ObjectName, ObjectNamePart, Query, SetExpr, TableFactor, With,
};

use super::named_columns;
use crate::error::{EngineError, Result};
use crate::sql::marks;
use crate::sql::parse::Nesting;
use crate::sql::row_statements::ChangedTable;
use crate::sql::shorthand::{plain, query_of, select_star};
use crate::sql::statement::StatementPlanner;

/// How the columns of source and table belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WholeRow {
    ByName,
    /// The default, as in an INSERT.
    ByPosition,
}

impl WholeRow {
    /// Returns how an action takes the row of its source, if it takes it as a whole.
    pub(super) fn of(action: &MergeAction) -> Option<Self> {
        named_columns(action).into_iter().find_map(|name| match name.to_string().as_str() {
            marks::MERGE_BY_NAME => Some(Self::ByName),
            marks::MERGE_BY_POSITION => Some(Self::ByPosition),
            _ => None,
        })
    }
}

/// The columns of a source.
pub(super) struct SourceColumns {
    relation: Ident,
    names: Vec<String>,
}

impl SourceColumns {
    /// Returns a value for each column of the table; `None`: the source has none for it. Errors: `column_not_found`, and another
    /// number of columns where they belong together by their places.
    pub(super) fn row(&self, how: WholeRow, table: &ChangedTable) -> Result<Vec<Option<Expr>>> {
        if how == WholeRow::ByPosition && self.names.len() != table.columns.len() {
            let (given, expected) = (self.names.len(), table.columns.len());
            let message = format!(
                "the source of the MERGE has {given} columns, and the table {expected}; write BY NAME behind UPDATE or INSERT, \
                 or name the columns"
            );
            return Err(EngineError::Plan { message });
        }
        let mut row: Vec<Option<Expr>> = table.columns.iter().map(|_| None).collect();
        for (place, name) in self.names.iter().enumerate() {
            let column = Ident::with_quote('"', name);
            let index = match how {
                WholeRow::ByPosition => place,
                WholeRow::ByName => table.position(&ObjectName(vec![ObjectNamePart::Identifier(column.clone())]))?,
            };
            if let Some(slot) = row.get_mut(index) {
                *slot = Some(Expr::CompoundIdentifier(vec![self.relation.clone(), column]));
            }
        }
        Ok(row)
    }
}

impl StatementPlanner<'_> {
    /// Returns the columns of the source of a MERGE, if a clause takes its rows as a whole.
    pub(super) async fn source_columns(
        &self,
        clauses: &[MergeClause],
        source: &TableFactor,
        relation: &Ident,
        with: Option<&With>,
        nesting: Nesting,
    ) -> Result<Option<SourceColumns>> {
        if !clauses.iter().any(|clause| WholeRow::of(&clause.action).is_some()) {
            return Ok(None);
        }
        let select = SetExpr::Select(Box::new(select_star(vec![plain(source.clone())])));
        let query = Query { with: with.cloned(), ..query_of(select) };
        let query = Statement::Statement(Box::new(ast::Statement::Query(Box::new(query))));
        let plan = Box::pin(self.plan_datafusion(query, nesting)).await?;
        let names = plan.schema().fields().iter().map(|field| field.name().clone()).collect();
        Ok(Some(SourceColumns { relation: relation.clone(), names }))
    }
}

/// Puts defaults in the places of values that the source does not have.
pub(super) fn with_defaults(table: &ChangedTable, row: Vec<Option<Expr>>) -> Result<Vec<Option<Expr>>> {
    let values = row.into_iter().enumerate();
    values.map(|(index, value)| value.map_or_else(|| table.default_of(index), Ok).map(Some)).collect()
}
