//! How large a constant may be that the optimizer puts in the place of a call. DataFusion writes a constant out as text whenever it asks
//! for the name or the type of an expression around it: a list of millions of numbers takes longer than the query. Such a call stays as
//! it is, and is made when the query runs.

use std::cell::Cell;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{ColumnarValue, LogicalPlan, ScalarFunctionArgs};
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

use crate::error::EngineError;
use crate::limits::{array_bytes, scalar_bytes};
use crate::optimizer::wrapped_rules::RuleOverride;

/// How much larger a constant may be than those of which it is made.
const MAX_FOLDED_BYTES: usize = 256 << 10;

thread_local! {
    /// Whether this thread computes constants of a plan.
    static IS_FOLDING: Cell<bool> = const { Cell::new(false) };
}

/// While this lives, its thread computes constants of a plan.
#[derive(Debug)]
pub(crate) struct Folding {
    before: bool,
}

impl Folding {
    pub(crate) fn start() -> Self {
        Self { before: IS_FOLDING.replace(true) }
    }
}

impl Drop for Folding {
    fn drop(&mut self) {
        IS_FOLDING.set(self.before);
    }
}

/// Leaves calls of too large constants in the plan, where the rule inside computes constants.
#[derive(Debug)]
pub(super) struct KeepLargeCalls;

impl RuleOverride for KeepLargeCalls {
    fn rewrite(
        &self,
        inner: &dyn OptimizerRule,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let _folding = Folding::start();
        inner.rewrite(plan, config)
    }
}

/// Makes a call. Errors, which leave the call in the plan: while constants are folded, it makes too large a one.
pub(super) fn fitting_plans(
    name: &str,
    args: ScalarFunctionArgs,
    make: impl FnOnce(ScalarFunctionArgs) -> Result<ColumnarValue>,
) -> Result<ColumnarValue> {
    if !IS_FOLDING.get() {
        return make(args);
    }
    let given: usize = args.args.iter().map(value_bytes).sum();
    let made = make(args)?;
    check_folded(name, value_bytes(&made).saturating_sub(given))?;
    Ok(made)
}

/// As [`fitting_plans`], before so many bytes are made.
pub(super) fn check_folded(name: &str, bytes: usize) -> Result<()> {
    if !IS_FOLDING.get() || bytes <= MAX_FOLDED_BYTES {
        return Ok(());
    }
    let message = format!("{name} makes a constant of {bytes} bytes, which is too large for a plan");
    Err(EngineError::InvalidValue { message }.into())
}

fn value_bytes(value: &ColumnarValue) -> usize {
    match value {
        ColumnarValue::Scalar(value) => scalar_bytes(value),
        ColumnarValue::Array(array) => array_bytes(array.as_ref()),
    }
}
