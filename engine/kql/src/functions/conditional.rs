//! `iff`, `case`, `coalesce`, `isnull`, `isempty` and their like. A condition that is null does not hold. A string is
//! never null.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::kernels::zip::zip;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("iff", "bxx", Returns::By(choice_type), choose),
    entry("iif", "bxx", Returns::By(choice_type), choose),
    entry("case", "bxx*", Returns::By(choice_type), choose),
    entry("coalesce", "xx*", Returns::By(coalesced_type), coalesce),
    entry("isnull", "x", Returns::Is(KqlType::Bool), is_null),
    entry("isnotnull", "x", Returns::Is(KqlType::Bool), is_not_null),
    entry("notnull", "x", Returns::Is(KqlType::Bool), is_not_null),
    entry("isempty", "x", Returns::Is(KqlType::Bool), is_empty),
    entry("isnotempty", "x", Returns::Is(KqlType::Bool), is_not_empty),
    entry("notempty", "x", Returns::Is(KqlType::Bool), is_not_empty),
];

/// Conditions alternate with values; the last value has no condition.
fn choice_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    if types.len().is_multiple_of(2) {
        return Err("each condition needs a value, and one more value when none holds".to_owned());
    }
    let conditions = types.iter().step_by(2).take(types.len() / 2);
    if let Some(other) = conditions.into_iter().find(|condition| !is_condition(**condition)) {
        return Err(format!("a condition must be bool, not {}", other.name()));
    }
    let values: Vec<KqlType> = types.iter().skip(1).step_by(2).chain(types.last()).copied().collect();
    // Dynamic values become what the others are, where those are of one type.
    let scalars: Vec<KqlType> = values.iter().copied().filter(|kql_type| *kql_type != KqlType::Dynamic).collect();
    match single_type(&scalars) {
        Some(single) => Ok(single),
        None if scalars.len() < values.len() => Ok(KqlType::Dynamic),
        None => Err(unlike_values(&values)),
    }
}

/// Among dynamic values the others are dynamic, too.
fn coalesced_type(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    if types.contains(&KqlType::Dynamic) {
        return Ok(KqlType::Dynamic);
    }
    single_type(types).ok_or_else(|| unlike_values(types))
}

/// Returns the one type that all these are. Kusto takes int and long for one (a long), and no other two numbers: a long
/// beside a real is an error of the query (SEM0525).
fn single_type(types: &[KqlType]) -> Option<KqlType> {
    let (first, rest) = types.split_first()?;
    rest.iter().try_fold(*first, |single, next| match (single, *next) {
        (KqlType::Int, KqlType::Long) | (KqlType::Long, KqlType::Int) => Some(KqlType::Long),
        (left, right) => (left == right).then_some(left),
    })
}

fn unlike_values(values: &[KqlType]) -> String {
    let names: Vec<&str> = values.iter().map(|kql_type| kql_type.name()).collect();
    let advice = if values.iter().all(|kql_type| kql_type.is_numeric()) { "; toreal() makes one real" } else { "" };
    format!("the values must be of one type, not {}{advice}", names.join(" and "))
}

fn is_condition(kql_type: KqlType) -> bool {
    matches!(kql_type, KqlType::Bool | KqlType::Dynamic)
}

fn choose(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let last = arguments.len() - 1;
    let mut result = arguments.datum(last, arguments.returns)?;
    for condition in (0..last).step_by(2).rev() {
        let condition_holds = arguments.whole(condition, KqlType::Bool)?;
        let holds = nulls_as_false(condition_holds.as_boolean());
        let value = arguments.datum(condition + 1, arguments.returns)?;
        result = Box::new(zip(&holds, value.as_ref(), result.as_ref())?);
    }
    let (chosen, _) = result.get();
    Ok(chosen.slice(0, chosen.len()))
}

fn nulls_as_false(condition: &BooleanArray) -> BooleanArray {
    match condition.nulls() {
        Some(valid) => BooleanArray::new(condition.values() & valid.inner(), None),
        None => condition.clone(),
    }
}

/// Returns the first value that is not null, or not empty if it is a string.
fn coalesce(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let last = arguments.len() - 1;
    let mut result = arguments.whole(last, arguments.returns)?;
    for index in (0..last).rev() {
        let value = arguments.whole(index, arguments.returns)?;
        let is_some: BooleanArray = match arguments.returns {
            KqlType::String => {
                value.as_string::<i32>().iter().map(|text| Some(text.is_some_and(|text| !text.is_empty()))).collect()
            }
            _ => arrow::compute::is_not_null(&value)?,
        };
        result = zip(&is_some, &value, &result)?;
    }
    Ok(result)
}

fn is_null(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let array = arguments.array(0)?;
    let is_text = arguments.kql_type(0) == KqlType::String;
    let nulls = if is_text { BooleanArray::from(vec![false; array.len()]) } else { arrow::compute::is_null(array)? };
    one_a_row(arguments, Arc::new(nulls))
}

fn is_not_null(arguments: &FunctionArguments) -> Result<ArrayRef> {
    Ok(Arc::new(arrow::compute::not(is_null(arguments)?.as_boolean())?))
}

fn is_empty(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let array = arguments.array(0)?;
    let empty: BooleanArray = match arguments.kql_type(0) {
        KqlType::String => array.as_string::<i32>().iter().map(|text| Some(text.is_none_or(str::is_empty))).collect(),
        KqlType::Dynamic => array
            .as_string::<i32>()
            .iter()
            .map(|json| Some(json.is_none_or(|json| values::json_to_string(json).is_empty())))
            .collect(),
        _ => arrow::compute::is_null(array)?,
    };
    one_a_row(arguments, Arc::new(empty))
}

fn is_not_empty(arguments: &FunctionArguments) -> Result<ArrayRef> {
    Ok(Arc::new(arrow::compute::not(is_empty(arguments)?.as_boolean())?))
}

fn one_a_row(arguments: &FunctionArguments, array: ArrayRef) -> Result<ArrayRef> {
    if array.len() == arguments.rows {
        return Ok(array);
    }
    let first = arrow::array::UInt32Array::from(vec![0; arguments.rows]);
    Ok(arrow::compute::take(&array, &first, None)?)
}
