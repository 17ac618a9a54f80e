//! Statements about the session: USE, SET, RESET, DEALLOCATE, and SHOW of a setting. PREPARE and EXECUTE need a session to
//! plan and compute with: `session::named_statements` has them.

use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::ResetStatement;
use datafusion::sql::sqlparser::ast::{self, ContextModifier, Expr, Ident, ObjectName, Use};
use querent_catalog::{CATALOG_NAME, DEFAULT_DATABASE, TableName};

use super::session_settings::{SessionSetting, value_text};
use super::session_variables::{SessionChange, outside_a_session};
use super::statement::{StatementPlanner, database_name};
use super::syntax::folded_name;
use super::write_statement::WriteStatement;
use crate::error::{EngineError, Result};
use crate::identifiers::same_name;

impl StatementPlanner<'_> {
    /// Plans `USE database`, `USE catalog.database`.
    pub(super) async fn use_database(&self, statement: Use) -> Result<LogicalPlan> {
        let name = match statement {
            Use::Object(name) | Use::Schema(name) | Use::Database(name) => database_name(&name)?,
            Use::Catalog(name) => match same_name(&name.to_string(), CATALOG_NAME) {
                true => CATALOG_NAME.to_owned(),
                false => return Err(refused(&format!("the catalog `{name}`"), "there is one, `querent`")),
            },
            Use::Default => {
                return self.change("USE", SessionChange::Reset { setting: Some(super::session_settings::SCHEMA) });
            }
            Use::Warehouse(_) | Use::Role(_) | Use::SecondaryRoles(_) => {
                return Err(refused("USE of a warehouse or a role", "write USE database; a token has its role"));
            }
        };
        let setting = SessionSetting::named(super::session_settings::SCHEMA)?;
        let value = self.existing_database(&name).await?;
        self.change("USE", SessionChange::Set { setting: setting.name, value })
    }

    /// Plans `SET name = value` in its forms.
    pub(super) async fn set(&self, statement: ast::Set) -> Result<LogicalPlan> {
        match statement {
            ast::Set::SingleAssignment { scope, hivevar: false, variable, values } => {
                check_scope(scope)?;
                self.assign(&setting_name(&variable)?, &values).await
            }
            ast::Set::SetTimeZone { local: false, value } => self.assign("timezone", &[value]).await,
            ast::Set::SetNames { charset_name, collation_name: None } => {
                self.assign("names", &[Expr::Identifier(charset_name)]).await
            }
            ast::Set::SetNamesDefault {} => self.reset("client_encoding"),
            ast::Set::MultipleAssignments { .. } | ast::Set::ParenthesizedAssignments { .. } => {
                Err(refused("SET of several settings at once", "write one SET for each"))
            }
            ast::Set::SetTransaction { .. } => {
                Err(refused("SET TRANSACTION", "each statement is a transaction of its own"))
            }
            ast::Set::SetRole { .. } | ast::Set::SetSessionAuthorization(_) => {
                Err(refused("SET ROLE", "connect with another token"))
            }
            ast::Set::SingleAssignment { .. }
            | ast::Set::SetTimeZone { .. }
            | ast::Set::SetNames { .. }
            | ast::Set::SetSessionParam(_) => Err(refused("this form of SET", "write SET name = value")),
        }
    }

    /// Plans `RESET name` and `RESET ALL`.
    pub(super) fn reset_statement(&self, ResetStatement::Variable(name): ResetStatement) -> Result<LogicalPlan> {
        self.reset(&setting_name(&name)?)
    }

    fn reset(&self, name: &str) -> Result<LogicalPlan> {
        let setting = if same_name(name, "all") { None } else { Some(SessionSetting::named(name)?.name) };
        self.change("RESET", SessionChange::Reset { setting })
    }

    /// Plans `DEALLOCATE name` and `DEALLOCATE ALL`.
    pub(super) fn deallocate(&self, name: &Ident) -> Result<LogicalPlan> {
        let all = name.quote_style.is_none() && same_name(&name.value, "all");
        self.change("DEALLOCATE", SessionChange::Deallocate { name: (!all).then(|| folded_name(name)) })
    }

    async fn assign(&self, name: &str, values: &[Expr]) -> Result<LogicalPlan> {
        let setting = SessionSetting::named(name)?;
        let Some(value) = value_text(values)? else { return self.reset(setting.name) };
        let value = match setting.is_database() {
            true => self.existing_database(value.strip_prefix("querent.").unwrap_or(&value)).await?,
            false => setting.checked(&value)?,
        };
        self.change("SET", SessionChange::Set { setting: setting.name, value })
    }

    fn change(&self, what: &str, change: SessionChange) -> Result<LogicalPlan> {
        match self.variables {
            Some(_) => Ok(WriteStatement::Session(change).into_plan()),
            None => Err(outside_a_session(what)),
        }
    }

    /// Returns a database's name as it is spelled. The catalog's name alone stands for its first database.
    async fn existing_database(&self, name: &str) -> Result<String> {
        if name.contains(", ") {
            let hint = "a search path has one database here; write the others before their tables: database.table";
            return Err(refused("a search path of several databases", hint));
        }
        let found = self.catalog.databases().get(self.who, name).await?;
        match found {
            Some(database) => Ok(database.name),
            None if same_name(name, CATALOG_NAME) => Ok(DEFAULT_DATABASE.to_owned()),
            None => Err(self.catalog.tables().not_found(self.who, &TableName::new(name, "")).await.into()),
        }
    }
}

fn check_scope(scope: Option<ContextModifier>) -> Result<()> {
    match scope {
        None | Some(ContextModifier::Session) => Ok(()),
        Some(ContextModifier::Local) => {
            Err(refused("SET LOCAL", "each statement is a transaction of its own; write SET for the session"))
        }
        Some(ContextModifier::Global) => {
            Err(refused("SET GLOBAL", "what holds for all is in the server's settings; write SET for the session"))
        }
    }
}

fn setting_name(name: &ObjectName) -> Result<String> {
    let parts: Option<Vec<String>> =
        name.0.iter().map(|part| part.as_ident().map(|ident| ident.value.clone())).collect();
    parts
        .map(|parts| parts.join("."))
        .ok_or_else(|| EngineError::Plan { message: format!("`{name}` is not the name of a setting") })
}

fn refused(what: &str, hint: &str) -> EngineError {
    EngineError::Unsupported { what: what.to_owned(), hint: hint.to_owned() }
}
