//! What the names of a clause of MERGE mean where a row has one side only: those of the source where the table has no such row, and
//! the table's where the source has none. The other side is null there, so that to name it is a mistake.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, MergeAction, MergeClause, MergeClauseKind, MergeInsertExpr, MergeInsertKind, MergeUpdateExpr,
};

use super::WholeRow;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;
use crate::sql::column_defaults::is_default;
use crate::sql::syntax::{any_own_expr, change_own_exprs};

/// Writes the names of a clause with the one side that its rows have. Errors: `sql_plan_error` where it names the other.
pub(super) fn settle_side(clause: &mut MergeClause, table: &Ident, source: &Ident) -> Result<()> {
    let (own, other, when) = match clause.clause_kind {
        MergeClauseKind::NotMatched | MergeClauseKind::NotMatchedByTarget => (source, table, "WHEN NOT MATCHED"),
        MergeClauseKind::NotMatchedBySource => (table, source, "WHEN NOT MATCHED BY SOURCE"),
        MergeClauseKind::Matched => return Ok(()),
    };
    if same_name(&own.value, &other.value) {
        return Ok(());
    }
    if let Some(predicate) = &mut clause.predicate {
        settle(predicate, own, other, when)?;
    }
    if WholeRow::of(&clause.action).is_some() {
        return Ok(());
    }
    values_of(&mut clause.action).into_iter().try_for_each(|value| settle(value, own, other, when))
}

/// Returns the values that an action writes.
fn values_of(action: &mut MergeAction) -> Vec<&mut Expr> {
    match action {
        MergeAction::Insert(MergeInsertExpr { kind: MergeInsertKind::Values(values), .. }) => {
            values.rows.iter_mut().flat_map(|row| row.content.iter_mut()).collect()
        }
        MergeAction::Update(MergeUpdateExpr { assignments, .. }) => {
            assignments.iter_mut().map(|assignment| &mut assignment.value).collect()
        }
        MergeAction::Insert(_) | MergeAction::Delete { .. } => Vec::new(),
    }
}

fn settle(expr: &mut Expr, own: &Ident, other: &Ident, when: &str) -> Result<()> {
    let mut named = None;
    any_own_expr(expr, |part| match part {
        Expr::CompoundIdentifier(parts) if parts.first().is_some_and(|first| same_name(&first.value, &other.value)) => {
            named = Some(part.to_string());
            true
        }
        _ => false,
    });
    if let Some(named) = named {
        let message = format!(
            "{when} has no row of `{}`, so that `{named}` is none; name columns of `{}`",
            other.value, own.value
        );
        return Err(EngineError::Plan { message });
    }
    // The parts of a value, and the parameters of a lambda, are names too.
    if any_own_expr(expr, |part| matches!(part, Expr::CompoundFieldAccess { .. } | Expr::Lambda(_))) {
        return Ok(());
    }
    change_own_exprs(expr, |part| {
        if let Expr::Identifier(name) = &*part
            && !is_default(part)
            && !same_name(&name.value, &own.value)
        {
            *part = Expr::CompoundIdentifier(vec![own.clone(), name.clone()]);
        }
    });
    Ok(())
}
