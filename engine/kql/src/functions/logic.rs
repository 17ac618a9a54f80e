//! `not`, over true, false and null. `and` and `or` are DataFusion's own.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[entry("not", "b", Returns::Is(KqlType::Bool), not)];

fn not(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let array = arguments.whole(0, KqlType::Bool)?;
    Ok(Arc::new(arrow::compute::not(array.as_boolean())?))
}
