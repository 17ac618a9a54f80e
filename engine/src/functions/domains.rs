//! Checks of the numbers that a function is defined for: the root of a negative number is an error, as in DuckDB and
//! PostgreSQL, where DataFusion's functions return NaN or an infinity. SQL puts them around arguments
//! (`engine/src/sql/domain_checks.rs`), and the optimizer takes those away that would be of rows that a condition leaves
//! out (`engine/src/governor/guarded_domains.rs`); KQL, whose functions have no errors, does not.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{Definition, invalid};

/// The numbers that have a square root.
pub(crate) const ROOT_DOMAIN: &str = "root_domain";
/// The numbers that have a logarithm.
pub(crate) const LOGARITHM_DOMAIN: &str = "logarithm_domain";
/// The numbers that are the base of one.
pub(crate) const LOGARITHM_BASE: &str = "logarithm_base";
/// The numbers from -1 to 1.
pub(crate) const UNIT_DOMAIN: &str = "unit_domain";
/// The numbers that are angles.
pub(crate) const ANGLE_DOMAIN: &str = "angle_domain";
/// The angles that have a cotangent.
pub(crate) const COTANGENT_DOMAIN: &str = "cotangent_domain";
/// The numbers that the gamma function has a value for.
pub(crate) const GAMMA_DOMAIN: &str = "gamma_domain";

/// All of them: each is a function of one argument that returns it.
pub(crate) const DOMAINS: [&str; 7] =
    [ROOT_DOMAIN, LOGARITHM_DOMAIN, LOGARITHM_BASE, UNIT_DOMAIN, ANGLE_DOMAIN, COTANGENT_DOMAIN, GAMMA_DOMAIN];

/// Returns the functions of this file: each returns its argument, or an error.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let domain = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |types| match types {
            [DataType::Float32] => Ok(types.to_vec()),
            _ => Ok(vec![DataType::Float64]),
        },
        returns: |types| match types {
            [DataType::Float32] => Ok(DataType::Float32),
            _ => Ok(DataType::Float64),
        },
        compute,
    };
    let definitions = [
        domain(ROOT_DOMAIN, |arrays, _| checked(arrays, root)),
        domain(LOGARITHM_DOMAIN, |arrays, _| checked(arrays, logarithm)),
        domain(LOGARITHM_BASE, |arrays, _| checked(arrays, base)),
        domain(UNIT_DOMAIN, |arrays, _| checked(arrays, unit)),
        domain(ANGLE_DOMAIN, |arrays, _| checked(arrays, angle)),
        domain(COTANGENT_DOMAIN, |arrays, _| checked(arrays, cotangent)),
        domain(GAMMA_DOMAIN, |arrays, _| checked(arrays, gamma)),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// Returns the numbers. Errors: `invalid_value` with what is wrong with one of them.
fn checked(arrays: &[ArrayRef], fault: fn(f64) -> Option<&'static str>) -> Result<ArrayRef> {
    let numbers = &arrays[0];
    let found = match numbers.data_type() {
        DataType::Float32 => {
            let mut values = numbers.as_primitive::<Float32Type>().iter().flatten();
            values.find_map(|number| fault(f64::from(number)))
        }
        _ => numbers.as_primitive::<Float64Type>().iter().flatten().find_map(fault),
    };
    match found {
        Some(message) => Err(invalid(message.to_owned())),
        None => Ok(Arc::clone(numbers)),
    }
}

// NaN is no fault: what is computed of it is NaN.

fn root(number: f64) -> Option<&'static str> {
    (number < 0.0).then_some("a negative number has no square root; write CASE WHEN x >= 0 THEN sqrt(x) END")
}

fn logarithm(number: f64) -> Option<&'static str> {
    if number < 0.0 {
        Some("a negative number has no logarithm; write CASE WHEN x > 0 THEN ln(x) END")
    } else if number == 0.0 {
        Some("zero has no logarithm; write ln(nullif(x, 0))")
    } else {
        None
    }
}

fn base(number: f64) -> Option<&'static str> {
    if number == 1.0 { Some("there is no logarithm of base 1") } else { logarithm(number) }
}

fn unit(number: f64) -> Option<&'static str> {
    const NEAREST: &str = "asin, acos and atanh are of numbers from -1 to 1; where a number is only rounded, write \
         acos(least(greatest(x, -1), 1))";
    (number.abs() > 1.0).then_some(NEAREST)
}

fn angle(number: f64) -> Option<&'static str> {
    number.is_infinite().then_some("an infinite number is no angle; write CASE WHEN isfinite(x) THEN sin(x) END")
}

fn cotangent(number: f64) -> Option<&'static str> {
    if number == 0.0 { Some("zero has no cotangent; write cot(nullif(x, 0))") } else { angle(number) }
}

fn gamma(number: f64) -> Option<&'static str> {
    (number == 0.0).then_some("gamma and lgamma of zero are infinite; write gamma(nullif(x, 0))")
}
