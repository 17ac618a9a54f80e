//! KQL's scalar functions and operators as DataFusion functions. A function is bound by its name and the types of its
//! arguments to a DataFusion function that takes exactly the physical arrays of these types. Kusto's conversions and
//! null rules are part of it, so a plan needs no casts around it.
//!
//! Each family is a table of entries: name, parameters, type of the result, and the kernel that computes a batch.

mod arguments;
mod arithmetic;
mod arrays;
mod bags;
mod comparison;
mod compression;
mod conditional;
mod conversion;
mod datetime;
mod datetime_parts;
mod distributions;
mod dynamic;
mod encoding;
mod formatting;
mod geography;
mod geohash;
mod h3;
mod in_list;
mod ipv4;
mod ipv6;
mod kusto_loco;
mod logic;
mod mathematics;
mod multi_column;
mod operators;
mod punycode;
mod regular_expressions;
mod rounding;
mod series;
mod signature;
mod sketches;
mod string;
mod string_operators;
mod string_parsing;
mod time_zones;
mod udf;
mod unit_conversion;
mod user_agents;
mod written;
mod xml;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use crate::nearest::nearest_within;
use crate::types::KqlType;
use multi_column::MultiColumnFunction;
use signature::FunctionEntry;
use udf::{Kernel, KqlFunction};

pub(crate) use bags::WITHOUT_EMPTY;
pub(crate) use dynamic::{NUMBER_ONLY, TEXT_ONLY, TRUTH_ONLY, path_steps};
pub(crate) use encoding::hash_string;
pub(crate) use multi_column::{BoundMultiColumn, part_of};
pub(crate) use operators::ScalarOperator;
pub(crate) use regular_expressions::compile_pattern;
pub(crate) use written::WrittenFunction;

/// The names of all functions that Kusto has.
const KNOWN: &str = include_str!("functions/known.txt");
/// The least similarity of a name that is suggested.
const LEAST_SIMILARITY: f64 = 0.8;

const FAMILIES: &[&[FunctionEntry]] = &[
    arithmetic::FUNCTIONS,
    arrays::FUNCTIONS,
    bags::FUNCTIONS,
    compression::FUNCTIONS,
    conditional::FUNCTIONS,
    conversion::FUNCTIONS,
    datetime::FUNCTIONS,
    datetime_parts::FUNCTIONS,
    distributions::FUNCTIONS,
    dynamic::FUNCTIONS,
    encoding::FUNCTIONS,
    formatting::FUNCTIONS,
    geography::FUNCTIONS,
    geography::h3_cover::FUNCTIONS,
    geography::places::FUNCTIONS,
    geography::s2::FUNCTIONS,
    geohash::FUNCTIONS,
    h3::FUNCTIONS,
    ipv4::FUNCTIONS,
    ipv6::FUNCTIONS,
    kusto_loco::FUNCTIONS,
    logic::FUNCTIONS,
    mathematics::FUNCTIONS,
    punycode::FUNCTIONS,
    regular_expressions::FUNCTIONS,
    rounding::FUNCTIONS,
    series::FUNCTIONS,
    sketches::FUNCTIONS,
    string::FUNCTIONS,
    string_operators::FUNCTIONS,
    string_parsing::FUNCTIONS,
    time_zones::FUNCTIONS,
    unit_conversion::FUNCTIONS,
    user_agents::FUNCTIONS,
    xml::FUNCTIONS,
];

/// What the functions of a query share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FunctionContext {
    /// The time of the query in ticks; `now()` is the same everywhere in it.
    pub(crate) now_ticks: i64,
}

/// A function bound to arguments of certain types.
#[derive(Debug, Clone)]
pub(crate) struct BoundFunction {
    /// The type of the result.
    pub(crate) returns: KqlType,
    /// Takes the physical arrays of these types only.
    pub(crate) function: Arc<ScalarUDF>,
}

/// Why a function cannot be bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FunctionError {
    /// Neither Kusto nor this crate has such a function.
    Unknown {
        /// The most similar name that exists.
        nearest: Option<String>,
    },
    /// Kusto has the function; this crate does not.
    KnownToKusto,
    /// The function does not take such arguments.
    WrongArguments {
        /// What the function takes.
        message: String,
    },
}

/// Binds the function `name` to arguments of these types.
pub(crate) fn bind(
    name: &str,
    arguments: &[KqlType],
    context: FunctionContext,
) -> Result<BoundFunction, FunctionError> {
    let Some(entry) = find(name) else { return Err(missing(name)) };
    let returns = entry.check(arguments).map_err(|message| FunctionError::WrongArguments { message })?;
    Ok(bound(entry.name, arguments, returns, Kernel::Function(entry.kernel), entry.volatile, context.now_ticks))
}

/// Binds the multi-column function `name` to arguments of these types; `None` if no such function exists.
pub(crate) fn bind_multi_column(
    name: &str,
    arguments: &[KqlType],
    context: FunctionContext,
) -> Option<Result<BoundMultiColumn, FunctionError>> {
    find_multi_column(name).map(|entry| BoundMultiColumn::new(entry, arguments, context))
}

/// Whether a function returns several columns.
pub(crate) fn is_multi_column(name: &str) -> bool {
    find_multi_column(name).is_some()
}

/// Binds an operator to operands of these types.
pub(crate) fn operator(operator: ScalarOperator, arguments: &[KqlType]) -> Result<BoundFunction, FunctionError> {
    let returns = operators::check(operator, arguments).map_err(|message| FunctionError::WrongArguments { message })?;
    Ok(bound(operator.name(), arguments, returns, Kernel::ScalarOperator(operator), false, 0))
}

/// Whether this module bound a function.
pub(crate) fn is_bound_function(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<KqlFunction>()
        || multi_column::is_multi_column_function(function)
}

fn bound(
    name: &str,
    arguments: &[KqlType],
    returns: KqlType,
    kernel: Kernel,
    volatile: bool,
    now_ticks: i64,
) -> BoundFunction {
    let function = KqlFunction::new(name, arguments, returns, kernel, volatile, now_ticks);
    BoundFunction { returns, function: Arc::new(ScalarUDF::new_from_impl(function)) }
}

/// Returns the names of the functions of one row.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    entries().map(|entry| entry.name)
}

/// Returns how a function is called, by the types of its arguments: `substring(string, long, [long])`.
pub(crate) fn call_form(name: &str) -> Option<String> {
    let parameters = match find(name) {
        Some(entry) => entry.parameters,
        None => find_multi_column(name)?.parameters,
    };
    Some(signature::call_form(name, parameters))
}

fn find(name: &str) -> Option<&'static FunctionEntry> {
    entries().find(|entry| entry.name == name)
}

fn entries() -> impl Iterator<Item = &'static FunctionEntry> {
    FAMILIES.iter().chain(series::FAMILIES).copied().flatten()
}

fn find_multi_column(name: &str) -> Option<&'static MultiColumnFunction> {
    series::MULTI_COLUMN_FUNCTIONS.iter().copied().flatten().find(|entry| entry.name == name)
}

fn missing(name: &str) -> FunctionError {
    if KNOWN.lines().any(|known| known == name) {
        return FunctionError::KnownToKusto;
    }
    let nearest = nearest_within(LEAST_SIMILARITY, name, entries().map(|entry| entry.name));
    FunctionError::Unknown { nearest: nearest.map(str::to_owned) }
}
