//! Texts that are written out in the select list of an INSERT, for a column of bytes: `INSERT INTO t SELECT '\xAA'`. They are read
//! as in VALUES, where they go straight into the column; a text that is computed is its UTF-8.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::{Column, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::{Distinct, Expr, Limit, LogicalPlan, Projection, Sort, SubqueryAlias, Union};

use super::value_casts::with_bytes;
use crate::functions::is_bytes;

/// Returns a plan that inserts rows with such texts as bytes. Errors: `invalid_value`.
pub(super) fn with_inserted_bytes(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Dml(mut dml) = plan else { return Ok(plan) };
    if let LogicalPlan::Projection(projection) = dml.input.as_ref() {
        let mut rows = Arc::clone(&projection.input);
        let mut has_bytes = false;
        for column in projection.expr.iter().filter_map(column_as_bytes) {
            let Some(at) = rows.schema().maybe_index_of_column(column) else { continue };
            if let Some(read) = read_as_bytes(&rows, at)? {
                rows = read;
                has_bytes = true;
            }
        }
        if has_bytes {
            let (exprs, schema) = (projection.expr.clone(), Arc::clone(&projection.schema));
            let projection = Projection::try_new_with_schema(exprs, rows, schema)?;
            dml.input = Arc::new(LogicalPlan::Projection(projection));
        }
    }
    Ok(LogicalPlan::Dml(dml))
}

/// Returns the column of a query that becomes one of bytes.
fn column_as_bytes(expr: &Expr) -> Option<&Column> {
    match expr {
        Expr::Alias(alias) => column_as_bytes(&alias.expr),
        Expr::Cast(cast) if is_bytes(cast.field.data_type()) => cast.expr.try_as_col(),
        _ => None,
    }
}

/// Returns a query whose column at a place has the bytes of the texts that are written out for it; `None` where there are none.
fn read_as_bytes(plan: &LogicalPlan, at: usize) -> Result<Option<Arc<LogicalPlan>>> {
    let (input, below) = match plan {
        LogicalPlan::Projection(Projection { expr: exprs, input, .. }) => {
            let Some(expr) = exprs.get(at) else { return Ok(None) };
            let written = expr.clone().unalias_nested().data;
            if let Some(bytes) = with_bytes(&written, &DataType::Binary)? {
                let (relation, field) = plan.schema().qualified_field(at);
                let mut exprs = exprs.clone();
                exprs[at] = bytes.alias_qualified(relation.cloned(), field.name());
                return Ok(Some(Arc::new(LogicalPlan::Projection(Projection::try_new(exprs, Arc::clone(input))?))));
            }
            let Expr::Column(column) = &written else { return Ok(None) };
            let mut others = exprs.iter().enumerate().filter(|(other, _)| *other != at);
            if others.any(|(_, other)| other.column_refs().contains(column)) {
                return Ok(None);
            }
            let Some(below) = input.schema().maybe_index_of_column(column) else { return Ok(None) };
            (input, below)
        }
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Limit(Limit { input, .. })
        | LogicalPlan::Sort(Sort { input, .. })
        | LogicalPlan::Distinct(Distinct::All(input)) => (input, at),
        LogicalPlan::Union(Union { inputs, .. }) => {
            let read = inputs.iter().map(|input| read_as_bytes(input, at)).collect::<Result<Vec<_>>>()?;
            if read.iter().all(Option::is_none) {
                return Ok(None);
            }
            let inputs = read.into_iter().zip(inputs).map(|(read, input)| match read {
                Some(read) => Ok(read),
                None => with_cast_to_bytes(input, at),
            });
            let inputs = inputs.collect::<Result<Vec<_>>>()?;
            return Ok(Some(Arc::new(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?))));
        }
        _ => return Ok(None),
    };
    let Some(read) = read_as_bytes(input, below)? else { return Ok(None) };
    let expressions = plan.expressions();
    Ok(Some(Arc::new(plan.with_new_exprs(expressions, vec![Arc::unwrap_or_clone(read)])?)))
}

/// Returns the query with the values of a column as bytes, as a cast makes them.
fn with_cast_to_bytes(input: &Arc<LogicalPlan>, at: usize) -> Result<Arc<LogicalPlan>> {
    let columns = input.schema().columns().into_iter().enumerate().map(|(place, column)| match place == at {
        true => {
            let (relation, name) = (column.relation.clone(), column.name.clone());
            Expr::Cast(Cast::new(Box::new(Expr::Column(column)), DataType::Binary)).alias_qualified(relation, name)
        }
        false => Expr::Column(column),
    });
    Ok(Arc::new(LogicalPlan::Projection(Projection::try_new(columns.collect(), Arc::clone(input))?)))
}
