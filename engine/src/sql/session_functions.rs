//! What a statement asks of its session: `current_schema()`, `current_user`, `current_setting('name')`. They are values once the
//! session is known.

use std::ops::ControlFlow;

use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, Ident, ObjectNamePart, SelectItem, TableFactor, Value,
    ValueWithSpan, VisitorMut,
};
use querent_catalog::{CATALOG_NAME, Principal};

use super::session_settings::SessionSetting;
use super::session_variables::SessionVariables;
use super::shorthand::{call, text};
use super::syntax::{try_visit_statement, visit_statement};
use crate::error::{EngineError, Result};

/// The session of a statement.
pub(super) struct SessionValues<'a> {
    pub(super) who: &'a Principal,
    pub(super) database: &'a str,
    pub(super) variables: Option<&'a SessionVariables>,
}

/// Puts values in the places of calls. Errors: `sql_plan_error`, `unsupported` for a setting that there is not.
pub(super) fn write_out_session(statement: &mut Statement, session: &SessionValues<'_>) -> Result<()> {
    if visit_statement(statement, &mut TableFinder).is_break() {
        let _: ControlFlow<()> = visit_statement(statement, &mut UserColumns);
    }
    try_visit_statement(statement, &mut Writer(session))
}

/// Finds whether a statement reads a table.
struct TableFinder;

impl VisitorMut for TableFinder {
    type Break = ();

    fn pre_visit_table_factor(&mut self, _factor: &mut TableFactor) -> ControlFlow<()> {
        ControlFlow::Break(())
    }
}

/// Takes `user` without brackets for a column, as DuckDB does where there are tables; the parser takes it for who calls.
struct UserColumns;

impl VisitorMut for UserColumns {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Function(function) = &*expr
            && matches!(function.args, FunctionArguments::None)
            && let [ObjectNamePart::Identifier(name)] = function.name.0.as_slice()
            && name.value.eq_ignore_ascii_case("user")
        {
            *expr = Expr::Identifier(name.clone());
        }
        ControlFlow::Continue(())
    }
}

struct Writer<'s, 'a>(&'s SessionValues<'a>);

impl VisitorMut for Writer<'_, '_> {
    type Break = EngineError;

    /// A column is called as it is written.
    fn pre_visit_select(&mut self, select: &mut datafusion::sql::sqlparser::ast::Select) -> ControlFlow<EngineError> {
        for item in &mut select.projection {
            let SelectItem::UnnamedExpr(expr) = item else { continue };
            let name = expr.to_string();
            match self.0.value(expr) {
                Ok(Some(value)) => {
                    *item = SelectItem::ExprWithAlias { expr: value, alias: Ident::with_quote('"', name) };
                }
                Ok(None) => {}
                Err(error) => return ControlFlow::Break(error),
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<EngineError> {
        match self.0.value(expr) {
            Ok(Some(value)) => *expr = value,
            Ok(None) => {}
            Err(error) => return ControlFlow::Break(error),
        }
        ControlFlow::Continue(())
    }
}

impl SessionValues<'_> {
    fn value(&self, expr: &Expr) -> Result<Option<Expr>> {
        let (name, arguments) = match expr {
            Expr::Identifier(ident) if ident.quote_style.is_none() => (ident.value.to_lowercase(), None),
            Expr::Function(function) => match &function.args {
                FunctionArguments::List(list) => (function.name.to_string().to_lowercase(), Some(list.args.as_slice())),
                FunctionArguments::None => (function.name.to_string().to_lowercase(), Some([].as_slice())),
                FunctionArguments::Subquery(_) => return Ok(None),
            },
            _ => return Ok(None),
        };
        let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
        Ok(match (name, arguments) {
            ("current_user" | "session_user" | "current_role", None | Some([])) | ("user", Some([])) => {
                Some(text(self.who.subject()))
            }
            ("current_schema", None | Some([])) => Some(text(self.database)),
            ("current_catalog", None | Some([])) | ("current_database", Some([])) => Some(text(CATALOG_NAME)),
            ("current_schemas", Some([_])) => Some(call("make_array", vec![text(self.database)])),
            ("current_setting", Some([name, more @ ..])) if more.len() < 2 => {
                let FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(ValueWithSpan {
                    value: Value::SingleQuotedString(name),
                    ..
                }))) = name
                else {
                    return Err(EngineError::Plan {
                        message: "current_setting takes the name of a setting as a text".to_owned(),
                    });
                };
                let missing_ok = more.first().is_some_and(|arg| arg.to_string().eq_ignore_ascii_case("true"));
                match SessionSetting::named(name) {
                    Ok(setting) => Some(text(&self.setting(setting))),
                    Err(_) if missing_ok => Some(Expr::Value(Value::Null.into())),
                    Err(error) => return Err(error),
                }
            }
            _ => None,
        })
    }

    fn setting(&self, setting: &'static SessionSetting) -> String {
        if setting.is_database() {
            return self.database.to_owned();
        }
        let set = self.variables.and_then(|variables| variables.value(setting));
        set.unwrap_or_else(|| setting.default_value().unwrap_or_default().to_owned())
    }
}
