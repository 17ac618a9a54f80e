//! KQL's scalar functions and operators as DataFusion functions. A function is bound by name and argument types to one
//! that takes exactly these types' physical arrays; all of Kusto's conversions and null rules are inside, so a plan
//! needs no casts around it.
//!
//! Each family is a table of what there is: name, parameters, what it returns, and the code that makes a batch.

mod arguments;
mod arithmetic;
mod arrays;
mod bags;
mod calendar;
mod clock;
mod comparison;
mod compressed;
mod conditional;
mod conversion;
mod distributions;
mod dynamics;
mod encoding;
mod formats;
mod geography;
mod geohash;
mod h3cells;
mod loco;
mod logic;
mod mathematics;
mod membership;
mod networks;
mod networks6;
mod operators;
mod paths;
mod patterns;
mod punycode;
mod rounding;
mod series;
mod several;
mod signature;
mod sketches;
mod terms;
mod texts;
mod udf;
mod units;
mod xml;
mod zones;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::types::KqlType;
use several::Several;
use signature::Entry;
use udf::{Kernel, KqlFunction};

pub(crate) use bags::WITHOUT_EMPTY;
pub(crate) use encoding::hash_of_text;
pub(crate) use operators::Operator;
pub(crate) use several::BoundSeveral;

/// The names of all functions that Kusto has.
const KNOWN: &str = include_str!("functions/known.txt");
/// How similar a name must be to be suggested.
const LEAST_SIMILARITY: f64 = 0.8;

const FAMILIES: &[&[Entry]] = &[
    arithmetic::FUNCTIONS,
    arrays::FUNCTIONS,
    bags::FUNCTIONS,
    calendar::FUNCTIONS,
    clock::FUNCTIONS,
    conditional::FUNCTIONS,
    compressed::FUNCTIONS,
    conversion::FUNCTIONS,
    distributions::FUNCTIONS,
    dynamics::FUNCTIONS,
    encoding::FUNCTIONS,
    formats::FUNCTIONS,
    geography::FUNCTIONS,
    geohash::FUNCTIONS,
    h3cells::FUNCTIONS,
    loco::FUNCTIONS,
    logic::FUNCTIONS,
    mathematics::FUNCTIONS,
    networks::FUNCTIONS,
    networks6::FUNCTIONS,
    paths::FUNCTIONS,
    patterns::FUNCTIONS,
    punycode::FUNCTIONS,
    rounding::FUNCTIONS,
    series::FUNCTIONS,
    sketches::FUNCTIONS,
    terms::FUNCTIONS,
    texts::FUNCTIONS,
    units::FUNCTIONS,
    xml::FUNCTIONS,
    zones::FUNCTIONS,
];

/// What a query's functions share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct FunctionContext {
    /// The query's one instant, in ticks.
    pub(crate) now_ticks: i64,
}

/// A function for arguments of certain types.
#[derive(Debug, Clone)]
pub(crate) struct BoundFunction {
    /// The type of what it returns.
    pub(crate) returns: KqlType,
    /// Takes these types' physical arrays, and only these.
    pub(crate) function: Arc<ScalarUDF>,
}

/// Why there is no such function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FunctionError {
    /// Nobody knows it.
    Unknown {
        /// The most similar name that there is.
        nearest: Option<String>,
    },
    /// Kusto has it, and it is not supported here.
    KnownToKusto,
    /// It does not take such arguments.
    WrongArguments {
        /// What it takes.
        message: String,
    },
}

/// The function of that name for arguments of these types.
pub(crate) fn bind(
    name: &str,
    arguments: &[KqlType],
    context: FunctionContext,
) -> Result<BoundFunction, FunctionError> {
    let Some(entry) = find(name) else { return Err(missing(name)) };
    let returns = entry.check(arguments).map_err(|message| FunctionError::WrongArguments { message })?;
    Ok(bound(entry.name, arguments, returns, Kernel::Function(entry.kernel), entry.volatile, context.now_ticks))
}

/// The function of that name that gives several values; `None` where that is not what it gives.
pub(crate) fn bind_several(
    name: &str,
    arguments: &[KqlType],
    context: FunctionContext,
) -> Option<Result<BoundSeveral, FunctionError>> {
    several_named(name).map(|entry| BoundSeveral::new(entry, arguments, context))
}

/// Whether a function gives several values.
pub(crate) fn is_several(name: &str) -> bool {
    several_named(name).is_some()
}

/// The operator for arguments of these types.
pub(crate) fn operator(operator: Operator, arguments: &[KqlType]) -> Result<BoundFunction, FunctionError> {
    let returns = operators::check(operator, arguments).map_err(|message| FunctionError::WrongArguments { message })?;
    Ok(bound(operator.name(), arguments, returns, Kernel::Operator(operator), false, 0))
}

/// Whether a function was bound here.
pub(crate) fn is_ours(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<KqlFunction>() || several::is_ours(function)
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

fn find(name: &str) -> Option<&'static Entry> {
    entries().find(|entry| entry.name == name)
}

fn entries() -> impl Iterator<Item = &'static Entry> {
    FAMILIES.iter().chain(series::FAMILIES).copied().flatten()
}

fn several_named(name: &str) -> Option<&'static Several> {
    series::SEVERAL.iter().copied().flatten().find(|entry| entry.name == name)
}

fn missing(name: &str) -> FunctionError {
    if KNOWN.lines().any(|known| known == name) {
        return FunctionError::KnownToKusto;
    }
    let similarity = |entry: &&'static Entry| strsim::jaro_winkler(entry.name, &name.to_lowercase());
    let nearest = entries().max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    let nearest = nearest.filter(|entry| similarity(entry) >= LEAST_SIMILARITY);
    FunctionError::Unknown { nearest: nearest.map(|entry| entry.name.to_owned()) }
}
