//! What a plan may do. `authorize` is the only door to execution.

use datafusion::logical_expr::LogicalPlan;

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
    #[allow(dead_code, clippy::allow_attributes)]
    plan: LogicalPlan,
}
