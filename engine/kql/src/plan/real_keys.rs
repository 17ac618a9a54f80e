//! Reals by which rows are grouped, joined and put into partitions and sets: there is one zero and one NaN, where their bits
//! would tell two apart.

use datafusion::functions::math::{abs, isnan};
use datafusion::logical_expr::{lit, when};

use crate::bind::{Result, Typed};
use crate::types::KqlType;

/// Returns a key by which rows are compared: of a real the one form that its equals have, any other as it is.
pub(crate) fn plain_key(key: Typed) -> Result<Typed> {
    if key.kql_type != KqlType::Real {
        return Ok(key);
    }
    let is_zero = abs().call(vec![key.expr.clone()]).eq(lit(0.0_f64));
    let is_nan = isnan().call(vec![key.expr.clone()]);
    let plain = when(is_zero, lit(0.0_f64)).when(is_nan, lit(f64::NAN)).otherwise(key.expr)?;
    Ok(Typed::new(plain, KqlType::Real))
}
