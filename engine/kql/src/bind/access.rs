//! `restrict access to (...)`: which tables, and which names of the statements before it, the statements after it may
//! name. What those names stand for is bound as it was defined, and reaches what it names.

use std::rc::Rc;

use super::{BindErrorCode, Binder, Binding, Environment, Result, fail, invalid};
use crate::ast::{Expr, ExprKind};
use crate::plan::matches_wildcard;
use crate::span::Span;

/// What a `restrict access` leaves, in lower case.
pub(crate) struct TableAccess(Vec<AccessPattern>);

struct AccessPattern {
    /// The database, which may be a wildcard; `None` where only a name was given.
    database: Option<String>,
    /// The table or the statement's name, which may be a wildcard.
    name: String,
}

impl TableAccess {
    /// Whether a name of a statement is left.
    pub(super) fn keeps_name(&self, name: &str) -> bool {
        let name = name.to_lowercase();
        self.0.iter().any(|pattern| pattern.database.is_none() && matches_wildcard(&pattern.name, &name))
    }

    /// Whether a table is left; `current` is the database of names without one.
    fn keeps_table(&self, database: &str, current: &str, table: &str) -> bool {
        let (database, table) = (database.to_lowercase(), table.to_lowercase());
        let is_current = database == current.to_lowercase();
        self.0.iter().any(|pattern| match &pattern.database {
            Some(wanted) => matches_wildcard(wanted, &database) && matches_wildcard(&pattern.name, &table),
            // `*` alone is all names of statements, and no table.
            None => is_current && pattern.name != "*" && matches_wildcard(&pattern.name, &table),
        })
    }
}

impl<'a> Binder<'a> {
    /// Returns the environment after a `restrict access`.
    pub(super) fn restricted(&mut self, allowed: &'a [Expr], environment: &Environment<'a>) -> Result<Environment<'a>> {
        let mut patterns = Vec::with_capacity(allowed.len());
        for expr in allowed {
            let (base, name) = match &expr.kind {
                ExprKind::Name(name) => (None, name.text.as_str()),
                ExprKind::Star => (None, "*"),
                ExprKind::Wildcard { base, pattern } => (base.as_deref(), pattern.as_str()),
                ExprKind::Member { base, name } => (Some(base.as_ref()), name.text.as_str()),
                _ => return invalid(expr.span, "expected a table, a name of a statement or a wildcard"),
            };
            let database = base.map(|base| self.database_of(base, environment)).transpose()?;
            let database = database.map(|database| database.to_lowercase());
            patterns.push(AccessPattern { database, name: name.to_lowercase() });
        }
        Ok(environment.restricted_to(Rc::new(TableAccess(patterns))))
    }

    /// Whether the environment may name a stored table.
    pub(crate) fn may_name(&self, database: Option<&str>, table: &str, environment: &Environment<'a>) -> bool {
        let current = self.answers.database.as_str();
        let database = database.unwrap_or(current);
        environment.restrictions().iter().all(|access| access.keeps_table(database, current, table))
    }

    /// Refuses what `restrict access` cannot name.
    pub(super) fn check_unrestricted(&self, span: Span, environment: &Environment<'a>) -> Result<()> {
        match environment.restrictions() {
            [] => Ok(()),
            _ => fail(BindErrorCode::UnknownTable, span, "`restrict access` leaves tables and names only"),
        }
    }

    /// Refuses a stored table that the environment may not name, as if it were not there.
    pub(super) fn check_access(
        &self,
        database: Option<&str>,
        table: &str,
        span: Span,
        environment: &Environment<'a>,
    ) -> Result<()> {
        if self.may_name(database, table, environment) {
            return Ok(());
        }
        fail(BindErrorCode::UnknownTable, span, format!("`restrict access` leaves no table `{table}`"))
    }
}

/// Whether a binding is a value, which no `restrict access` takes away.
pub(super) fn is_value(binding: &Binding<'_>) -> bool {
    match binding {
        Binding::Scalar(..) | Binding::Database(_) => true,
        Binding::Table(..) | Binding::Bound(_) | Binding::Function(..) | Binding::Pattern(..) => false,
    }
}
