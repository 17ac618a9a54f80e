//! What a plan may do. `authorize` is the only door to execution.

mod authorize;
mod functions;
mod locations;

use datafusion::logical_expr::LogicalPlan;

use crate::sql::change::Change;

pub use authorize::authorize;
pub(crate) use locations::allowed_location;

/// What a session may do, whatever its principal's role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Queries only.
    ReadOnly,
    /// What the role allows.
    ReadWrite,
}

/// A plan that passed [`authorize`]; nothing else executes.
#[derive(Debug, Clone)]
pub struct AuthorizedPlan {
    plan: LogicalPlan,
}

impl AuthorizedPlan {
    /// The plan.
    pub fn plan(&self) -> &LogicalPlan {
        &self.plan
    }

    /// Whether it only reads.
    pub fn is_query(&self) -> bool {
        Change::of(&self.plan).is_none()
    }

    pub(crate) fn into_plan(self) -> LogicalPlan {
        self.plan
    }
}
