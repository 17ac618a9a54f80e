//! What a caller sees of a table, as a plan: rows by the conditions of its row policies, values by its masks, the columns that
//! are granted. The conditions are SQL over the table's columns; what they ask of the caller is written into them as values
//! before they are planned.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::compute::can_cast_types;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::common::Column;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    self, FunctionArg, FunctionArgExpr, FunctionArguments, Value, visit_expressions_mut,
};
use querent_catalog::{Principal, Restriction, RowRestriction, TableInfo};

use super::catalog_table::CatalogTable;
use super::column_folding::plan_folded;
use super::date_coercions::with_coerced_types;
use super::parse::{ParsedStatement, parse_statement};
use super::resolved_names::{PlanningScope, ResolvedNames};
use crate::error::{EngineError, Result};
use crate::identifiers::quote_identifier;
use crate::tables::restricted::RestrictedTable;

/// The functions that conditions and masks ask of the caller by.
const CALLER_FUNCTIONS: [&str; 4] = ["current_subject", "attribute", "has_role", "has_group"];

/// Returns what `who` sees of a table, of which `whole` reads all. Errors: `not_allowed` where its policies cannot be applied,
/// without saying what they are.
pub(super) fn restricted_table(
    state: &SessionState,
    who: &Principal,
    seen: &TableInfo,
    restriction: &Restriction,
    whole: Arc<dyn TableProvider>,
) -> Result<Arc<dyn TableProvider>> {
    let schema = whole.schema();
    let not_applied = |error: EngineError| {
        tracing::warn!(table = %seen.name, %error, "a policy cannot be applied");
        EngineError::NotAllowed {
            what: format!("reading `{}`", seen.name),
            why: ": one of its policies cannot be applied; an administrator finds it in the server's log".to_owned(),
        }
    };
    let part = restricted_plan(state, who, seen, restriction, whole).map_err(not_applied)?;
    if let Some((column, mask)) = unfit_mask(&schema, &part, restriction) {
        tracing::warn!(table = %seen.name, column, mask, "a mask does not fit the type of its column");
        return Err(EngineError::NotAllowed {
            what: format!("reading `{}`", seen.name),
            why: format!(
                ": its mask `{mask}` does not fit the type that column `{column}` has now; an administrator has to change \
                 the mask"
            ),
        });
    }
    let part = in_types_of(&schema, part).map_err(not_applied)?;
    let masked: BTreeSet<&str> = restriction.masks.iter().map(|(column, ..)| column.as_str()).collect();
    let names = seen.columns.iter().map(|column| column.name.clone());
    let plain = names.filter(|name| !masked.contains(name.to_lowercase().as_str())).collect();
    Ok(Arc::new(RestrictedTable::new(part, plain)))
}

/// Returns the first mask that is a value which its column's type cannot have, with the column: the table was changed since.
pub(crate) fn unfit_mask(
    schema: &SchemaRef,
    part: &LogicalPlan,
    restriction: &Restriction,
) -> Option<(String, String)> {
    let LogicalPlan::Projection(projection) = part else { return None };
    projection.expr.iter().zip(projection.schema.fields()).find_map(|(expr, field)| {
        let (column, mask, _) = restriction.masks.iter().find(|(masked, ..)| *masked == field.name().to_lowercase())?;
        let wanted = schema.field_with_name(field.name()).ok()?.data_type();
        let is_unfit = match expr.clone().unalias_nested().data {
            Expr::Literal(value, _) => value.cast_to(wanted).is_err(),
            _ => !can_cast_types(field.data_type(), wanted),
        };
        is_unfit.then(|| (column.clone(), mask.clone()))
    })
}

/// As [`restricted_table`], as a plan that is not yet converted to the table's types; the error says what is wrong.
pub(crate) fn restricted_plan(
    state: &SessionState,
    who: &Principal,
    seen: &TableInfo,
    restriction: &Restriction,
    whole: Arc<dyn TableProvider>,
) -> Result<LogicalPlan> {
    let name = &restriction.whole.name;
    let columns = seen.columns.iter().map(|column| {
        let quoted = quote_identifier(&column.name);
        match restriction.masks.iter().find(|(masked, ..)| *masked == column.name.to_lowercase()) {
            Some((_, _, expression)) => format!("({expression}) AS {quoted}"),
            None => quoted,
        }
    });
    let columns = columns.collect::<Vec<_>>().join(", ");
    let condition = match &restriction.rows {
        RowRestriction::All => String::new(),
        RowRestriction::None => " WHERE false".to_owned(),
        RowRestriction::Any(conditions) => {
            let conditions = conditions.iter().map(|(_, condition)| format!("({condition})"));
            format!(" WHERE {}", conditions.collect::<Vec<_>>().join(" OR "))
        }
    };
    let (database, table) = (quote_identifier(&name.database), quote_identifier(&name.table));
    let ParsedStatement { mut statement, nesting, .. } =
        parse_statement(&format!("SELECT {columns} FROM {database}.{table}{condition}"))?;
    nesting.with_room(|| fill_in_caller(&mut statement, who))?;
    let source = provider_as_source(Arc::new(CatalogTable::new(None, whole)));
    let names = ResolvedNames::with_single(name, source);
    let scope = PlanningScope { names: &names, state, database: &name.database, sees_temporary: false };
    let plan = nesting.with_room(|| plan_folded(&scope, statement, &[]));
    let plan = plan.map_err(|error| match ResolvedNames::missing_in(&error) {
        Some(other) => EngineError::Unsupported {
            what: format!("a policy of `{name}` that reads `{other}`"),
            hint: "write a condition over the table's own columns and what is known of the caller".into(),
        },
        None => error.into(),
    })?;
    Ok(with_coerced_types(state, plan)?)
}

/// Converts columns to the types that they have in the table, and drops the name of the table from theirs.
pub(crate) fn in_types_of(schema: &SchemaRef, plan: LogicalPlan) -> Result<LogicalPlan> {
    let columns = plan.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        let wanted = schema.field_with_name(field.name()).map_or(field.data_type(), |wanted| wanted.data_type());
        let column = if wanted == field.data_type() { column } else { cast(column, wanted.clone()) };
        column.alias(field.name())
    });
    let columns: Vec<Expr> = columns.collect();
    Ok(LogicalPlanBuilder::from(plan).project(columns)?.build()?)
}

/// Puts the caller's values in the places of the functions that ask for them.
fn fill_in_caller(statement: &mut Statement, who: &Principal) -> Result<()> {
    let Statement::Statement(statement) = statement else { return Ok(()) };
    let filled = visit_expressions_mut(statement.as_mut(), |expr| match caller_value(expr, who) {
        Ok(Some(value)) => {
            *expr = value;
            ControlFlow::Continue(())
        }
        Ok(None) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    });
    match filled {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

fn caller_value(expr: &ast::Expr, who: &Principal) -> Result<Option<ast::Expr>> {
    let ast::Expr::Function(function) = expr else { return Ok(None) };
    let name = function.name.to_string().to_lowercase();
    if !CALLER_FUNCTIONS.contains(&name.as_str()) {
        return Ok(None);
    }
    let argument = match &function.args {
        FunctionArguments::List(list) => match list.args.as_slice() {
            [] => None,
            [FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Value(value)))] => match &value.value {
                Value::SingleQuotedString(text) => Some(text.as_str()),
                _ => return Err(wrong(&name)),
            },
            _ => return Err(wrong(&name)),
        },
        FunctionArguments::None | FunctionArguments::Subquery(_) => return Err(wrong(&name)),
    };
    let identity = who.identity();
    let value = match (name.as_str(), argument) {
        ("current_subject", None) => text(Some(who.subject())),
        ("attribute", Some(name)) => text(identity.attributes.get(name).map(String::as_str)),
        ("has_role", Some(name)) => truth(identity.roles.contains(name)),
        ("has_group", Some(name)) => truth(identity.groups.contains(name)),
        _ => return Err(wrong(&name)),
    };
    Ok(Some(value))
}

fn text(value: Option<&str>) -> ast::Expr {
    let value = match value {
        Some(text) => Value::SingleQuotedString(text.to_owned()),
        None => Value::Null,
    };
    ast::Expr::Cast {
        kind: ast::CastKind::Cast,
        expr: Box::new(ast::Expr::Value(value.into())),
        data_type: ast::DataType::Varchar(None),
        array: false,
        format: None,
    }
}

fn truth(value: bool) -> ast::Expr {
    ast::Expr::Value(Value::Boolean(value).into())
}

fn wrong(function: &str) -> EngineError {
    let message = match function {
        "current_subject" => "current_subject() takes nothing".to_owned(),
        other => format!("{other}('name') takes a name, as a text"),
    };
    EngineError::Plan { message }
}
