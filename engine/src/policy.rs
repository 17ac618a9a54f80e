//! What a plan may do. Nothing executes without `authorize`.

mod authorize;
mod functions;
mod grants;
mod locations;

use std::sync::Arc;

use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use querent_catalog::{Principal, Role};

use crate::error::{EngineError, Result};
use crate::plan_cache::ResultKey;
use crate::sql::write_statement::WriteStatement;

pub use authorize::authorize;
pub(crate) use authorize::check_open;
pub(crate) use grants::{check_grants, require_privilege};
pub(crate) use locations::allowed_location;
pub use locations::in_home_folder;

/// What a session may do, whatever its principal's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Only queries.
    ReadOnly,
    /// What the role allows.
    ReadWrite,
}

/// A plan that passed [`authorize`]; nothing else executes.
#[derive(Debug, Clone)]
pub struct AuthorizedPlan {
    plan: LogicalPlan,
    optimized: Option<OptimizedPlan>,
    /// The statement that was planned, where it was a text.
    text: Option<Arc<str>>,
    /// By what its rows are kept, where they are.
    result: Option<Arc<ResultKey>>,
}

/// What the optimizer makes of an authorised plan under a row limit.
#[derive(Debug, Clone)]
pub(crate) struct OptimizedPlan {
    /// The plan, with its parameters open.
    pub(crate) open: Arc<LogicalPlan>,
    /// Their values, which are put in when it is executed: a plan that only describes a query is not.
    pub(crate) values: Vec<ScalarValue>,
    /// The row limit that is in it.
    pub(crate) pushed_rows: Option<u64>,
}

impl AuthorizedPlan {
    /// Returns the plan.
    pub fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// Returns whether the plan only reads.
    pub fn is_query(&self) -> bool {
        WriteStatement::from_plan(&self.plan).is_none()
    }

    /// Returns whether the answer is rows: of a query, or of those that a statement with RETURNING wrote.
    pub fn has_rows(&self) -> bool {
        matches!(WriteStatement::from_plan(&self.plan), None | Some(WriteStatement::Returning { .. }))
    }

    /// Returns whether the plan says in which order its rows come.
    pub fn is_ordered(&self) -> bool {
        let mut plan = &self.plan;
        loop {
            plan = match plan {
                LogicalPlan::Projection(projection) => &projection.input,
                LogicalPlan::SubqueryAlias(alias) => &alias.input,
                LogicalPlan::Limit(limit) => &limit.input,
                LogicalPlan::Filter(filter) => &filter.input,
                // What explains a plan has an order too.
                other => {
                    return matches!(other, LogicalPlan::Sort(_) | LogicalPlan::Explain(_) | LogicalPlan::Analyze(_));
                }
            };
        }
    }

    /// Returns the plan as that of a statement, which is what its execution is called in the audit log.
    pub(crate) fn of_text(self, text: &str) -> Self {
        Self { text: Some(text.into()), ..self }
    }

    /// Returns the statement that was planned.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the plan with what the optimizer makes of it.
    pub(crate) fn with_optimized(self, optimized: OptimizedPlan) -> Self {
        Self { optimized: Some(optimized), ..self }
    }

    /// Returns the plan with what its rows are kept by.
    pub(crate) fn with_result(self, result: Option<Arc<ResultKey>>) -> Self {
        Self { result, ..self }
    }

    /// Returns what its rows are kept by; `None` where they are not.
    pub(crate) fn result(&self) -> Option<Arc<ResultKey>> {
        self.result.clone()
    }

    pub(crate) fn into_plan(self) -> LogicalPlan {
        self.plan
    }

    /// Returns the plan, and what the optimizer makes of it with the row limit `pushed_rows`, where that is known.
    pub(crate) fn into_parts(self, pushed_rows: Option<u64>) -> (LogicalPlan, Option<OptimizedPlan>) {
        (self.plan, self.optimized.filter(|optimized| optimized.pushed_rows == pushed_rows))
    }
}

/// Returns an error unless tables of the session may be changed in `mode`. Errors: `not_allowed`.
fn require_session_write(what: &str, mode: Mode) -> Result<()> {
    match mode {
        Mode::ReadWrite => Ok(()),
        Mode::ReadOnly => Err(EngineError::NotAllowed { what: what.to_owned(), why: " in read-only mode".to_owned() }),
    }
}

/// Returns an error unless `who` may do in `mode` what is outside of any database; `what` names it. Errors: `not_allowed`.
pub(crate) fn require_server_admin(what: &str, who: &Principal, mode: Mode) -> Result<()> {
    let why = match (mode, who.role()) {
        (Mode::ReadOnly, _) => " in read-only mode",
        (Mode::ReadWrite, Role::Read | Role::Write) => " for this role (it needs role admin)",
        (Mode::ReadWrite, Role::Admin) if who.is_server_admin() => return Ok(()),
        (Mode::ReadWrite, Role::Admin) => " for an administrator of some databases",
    };
    Err(EngineError::NotAllowed { what: what.to_owned(), why: why.to_owned() })
}

/// Returns an error unless `who` may write in `mode`; `what` names the statement in it. Errors: `not_allowed`.
pub(crate) fn require_write(what: &str, who: &Principal, mode: Mode) -> Result<()> {
    let why = match (mode, who.role()) {
        (Mode::ReadOnly, _) => " in read-only mode",
        (Mode::ReadWrite, Role::Read) => " for role read (it needs role write)",
        (Mode::ReadWrite, Role::Write | Role::Admin) => return Ok(()),
    };
    Err(EngineError::NotAllowed { what: what.to_owned(), why: why.to_owned() })
}
