//! Changes that are executed for several rows of values. One plan for all rows means the statement once for each row only
//! where no execution sees what those before it did; other statements are executed one after the other.

use std::collections::HashSet;

use datafusion::common::Column;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan};

use super::catalog_table::CatalogTable;
use super::plan_nodes::any_node;
use super::resolved_names::NUMBERED_TABLE;
use super::write_statement::{RowStatement, WriteStatement};
use crate::error::{EngineError, Result};
use crate::identifiers::{FILE_COLUMN, POSITION_COLUMN, same_name};

/// How many columns of numbers are before the values of an UPDATE.
const NUMBERS: usize = 2;

/// Returns whether a statement reads what it changes, so that its executions for several rows of values depend on each other.
/// It may say so of one whose executions do not.
pub(crate) fn reads_what_it_changes(plan: &LogicalPlan) -> DataFusionResult<bool> {
    match WriteStatement::from_plan(plan) {
        Some(WriteStatement::Returning { statement, .. }) => change_reads_its_table(statement),
        Some(statement) => change_reads_its_table(statement),
        None => Ok(false),
    }
}

/// Refuses several rows of values for a statement that is executed once: the plan that EXPLAIN shows is one, and a table that
/// is made, or rows that take the place of all others, would be those of the last row of values alone.
pub(super) fn refuse_repeated(plan: &LogicalPlan, rows: usize) -> Result<()> {
    let label = match plan {
        LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) => Some("EXPLAIN"),
        _ => WriteStatement::from_plan(plan).filter(|change| is_executed_once(change)).map(WriteStatement::label),
    };
    match label {
        Some(label) if rows > 1 => Err(takes_one_row(label)),
        _ => Ok(()),
    }
}

/// The error of a statement that is executed once and was given several rows of values.
pub(crate) fn takes_one_row(label: &str) -> EngineError {
    EngineError::Plan { message: format!("{label} is executed once, and takes one row of values: bind one") }
}

fn is_executed_once(change: &WriteStatement) -> bool {
    match change {
        WriteStatement::Returning { statement, .. } => is_executed_once(statement),
        WriteStatement::Insert { overwrite, .. } | WriteStatement::InsertTemporary { overwrite, .. } => *overwrite,
        WriteStatement::CreateTable { .. } | WriteStatement::CreateTemporary { .. } => true,
        _ => false,
    }
}

fn change_reads_its_table(change: &WriteStatement) -> DataFusionResult<bool> {
    match change {
        WriteStatement::Insert { input, .. } | WriteStatement::InsertTemporary { input, .. } => {
            scans_target(change, input)
        }
        WriteStatement::ChangeRows { statement, input, .. }
        | WriteStatement::ChangeTemporary { statement, input, .. } => match statement {
            // The rows of values of a MERGE are one source, as the rows of its USING are.
            RowStatement::Delete | RowStatement::Merge => scans_target(change, input),
            RowStatement::Update => Ok(scans_target(change, input)? || chooses_by_what_it_sets(input)?),
        },
        _ => Ok(false),
    }
}

/// Whether a query reads the table of a change, aside from the rows that change.
fn scans_target(change: &WriteStatement, input: &LogicalPlan) -> DataFusionResult<bool> {
    any_node(input, |node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(false) };
        Ok(scan.table_name.table() != NUMBERED_TABLE && is_target(change, scan))
    })
}

fn is_target(change: &WriteStatement, scan: &TableScan) -> bool {
    match change {
        WriteStatement::Insert { target, .. } | WriteStatement::ChangeRows { target, .. } => {
            let found = CatalogTable::resolved_behind(&scan.source);
            found.is_some_and(|found| found.info.name == target.info.name)
        }
        WriteStatement::InsertTemporary { name, .. } | WriteStatement::ChangeTemporary { name, .. } => {
            CatalogTable::temporary_behind(&scan.source).is_some_and(|found| same_name(&found, name))
        }
        _ => false,
    }
}

/// Whether the rows of an UPDATE are chosen by columns that it sets, as far as its query tells.
fn chooses_by_what_it_sets(input: &LogicalPlan) -> DataFusionResult<bool> {
    let LogicalPlan::Projection(projection) = input else { return Ok(true) };
    let mut table_columns = Vec::new();
    let mut read = HashSet::new();
    projection.input.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && scan.table_name.table() == NUMBERED_TABLE
        {
            let schema = scan.source.schema();
            let names = schema.fields().iter().map(|field| field.name().clone());
            table_columns = names.filter(|name| name != FILE_COLUMN && name != POSITION_COLUMN).collect();
        }
        node.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Column(column) | Expr::OuterReferenceColumn(_, column) = part {
                    read.insert(column.name.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    let table = projection.expr.first().and_then(column_of).and_then(|number| number.relation.as_ref());
    let mut values = projection.expr.iter().skip(NUMBERS).zip(&table_columns);
    Ok(values.any(|(value, name)| {
        let is_kept = column_of(value).is_some_and(|own| own.name == *name && own.relation.as_ref() == table);
        !is_kept && read.contains(name)
    }))
}

/// Returns the column that a value is, under whatever name.
fn column_of(value: &Expr) -> Option<&Column> {
    match value {
        Expr::Column(column) => Some(column),
        Expr::Alias(alias) => column_of(&alias.expr),
        _ => None,
    }
}
