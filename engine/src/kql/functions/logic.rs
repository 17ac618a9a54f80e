//! `and`, `or`, `not`, over three truth values.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray};
use arrow::error::ArrowError;
use datafusion::error::Result;

use super::super::types::KqlType;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

pub(super) const FUNCTIONS: &[Entry] = &[entry("not", "b", Returns::Is(KqlType::Bool), not)];

pub(super) fn not(arguments: &Arguments) -> Result<ArrayRef> {
    let array = arguments.whole(0, KqlType::Bool)?;
    Ok(Arc::new(arrow::compute::not(array.as_boolean())?))
}

pub(super) fn and(arguments: &Arguments) -> Result<ArrayRef> {
    fold(arguments, arrow::compute::and_kleene)
}

pub(super) fn or(arguments: &Arguments) -> Result<ArrayRef> {
    fold(arguments, arrow::compute::or_kleene)
}

type Connective = fn(&BooleanArray, &BooleanArray) -> std::result::Result<BooleanArray, ArrowError>;

fn fold(arguments: &Arguments, connect: Connective) -> Result<ArrayRef> {
    let mut result = arguments.whole(0, KqlType::Bool)?.as_boolean().clone();
    for index in 1..arguments.len() {
        result = connect(&result, arguments.whole(index, KqlType::Bool)?.as_boolean())?;
    }
    Ok(Arc::new(result))
}
