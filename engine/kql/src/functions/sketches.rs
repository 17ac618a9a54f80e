//! Functions of the sketches that `hll` and `tdigest` return. What is not such a sketch gives null.

use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, Int64Array};
use datafusion::error::Result;
use serde_json::Value;

use super::arguments::{FunctionArguments, TypedColumn};
use super::conversion;
use super::signature::{FunctionEntry, Returns, entry};
use crate::sketches::{DigestType, HyperLogLog, TDigest, key_of_real, real_of_key};
use crate::types::KqlType;
use crate::values;

const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BOOL: Returns = Returns::Is(KqlType::Bool);
const REAL: Returns = Returns::Is(KqlType::Real);
const LONG: Returns = Returns::Is(KqlType::Long);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("dcount_hll", "j", LONG, dcount_hll),
    entry("hll_merge", "jj*", DYNAMIC, hll_merge),
    entry("hll_isvalid", "x", BOOL, |arguments| is_valid(arguments, |text| HyperLogLog::parse(text).is_some())),
    entry("tdigest_isvalid", "x", BOOL, |arguments| is_valid(arguments, |text| TDigest::parse(text).is_some())),
    entry("tdigest_merge", "jj*", DYNAMIC, tdigest_merge),
    entry("merge_tdigest", "jj*", DYNAMIC, tdigest_merge),
    entry("percentile_tdigest", "jn", DYNAMIC, percentile_tdigest),
    entry("percentiles_array_tdigest", "jn*", DYNAMIC, percentiles_array_tdigest),
    entry("rank_tdigest", "jx", REAL, |arguments| ranked(arguments, |_, rank| rank)),
    entry("percentrank_tdigest", "jx", REAL, |arguments| {
        ranked(arguments, |digest, rank| rank / digest.count() * 100.0)
    }),
    entry("estimate_data_size", "x*", LONG, estimate_data_size),
];

fn settled(text: &str) -> Option<TDigest> {
    let mut digest = TDigest::parse(text)?;
    digest.settle();
    Some(digest)
}

fn dcount_hll(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let sketches = arguments.json(0)?;
    arguments.make_longs(|row| sketches.optional(row).and_then(HyperLogLog::parse).map(|distinct| distinct.count()))
}

fn is_valid(arguments: &FunctionArguments, is_sketch: fn(&str) -> bool) -> Result<ArrayRef> {
    let sketches = arguments.json(0)?;
    arguments.make_total(|row| sketches.optional(row).is_some_and(is_sketch))
}

fn all_json(arguments: &FunctionArguments) -> Result<Vec<TypedColumn<arrow::array::StringArray>>> {
    (0..arguments.len()).map(|index| arguments.json(index)).collect()
}

fn hll_merge(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let sketches = all_json(arguments)?;
    arguments.make_optional_strings(|row, text| {
        let each = sketches.iter().map(|sketch| sketch.optional(row).and_then(HyperLogLog::parse));
        let merged = each.reduce(|merged, next| {
            let mut merged = merged?;
            merged.merge(next?);
            Some(merged)
        });
        let merged = merged.flatten();
        text.push_str(&merged.as_ref().map(HyperLogLog::to_json).unwrap_or_default());
        Ok(merged.is_some())
    })
}

fn tdigest_merge(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let sketches = all_json(arguments)?;
    arguments.make_optional_strings(|row, text| {
        let each = sketches.iter().map(|sketch| sketch.optional(row).and_then(TDigest::parse));
        let merged = each.reduce(|merged, next| {
            let mut merged = merged?;
            merged.merge(next?).then_some(merged)
        });
        let mut merged = merged.flatten();
        text.push_str(&merged.as_mut().map(TDigest::json).unwrap_or_default());
        Ok(merged.is_some())
    })
}

/// Returns the value that a key stands for, as an element of a dynamic value.
fn value_of(kind: DigestType, key: i64) -> Value {
    match kind {
        DigestType::Long => key.into(),
        DigestType::DateTime => values::format_datetime(key).into(),
        DigestType::TimeSpan => values::format_timespan(key).into(),
        DigestType::Real => match real_of_key(key) {
            real if real.is_finite() => real.into(),
            real => values::format_real(real).into(),
        },
    }
}

fn percentile_tdigest(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (sketches, percentiles) = (arguments.json(0)?, arguments.reals(1)?);
    let literal = sketches.constant.then(|| sketches.optional(0).and_then(settled));
    arguments.make_dynamics(|row| {
        let own = if literal.is_some() { None } else { sketches.optional(row).and_then(settled) };
        let digest = literal.as_ref().unwrap_or(&own);
        let found = digest.as_ref().zip(percentiles.get(row)).and_then(|(digest, percentile)| {
            let key = digest.percentile(checked(percentile)?)?;
            Some(value_of(digest.kind, key))
        });
        Ok(found.unwrap_or(Value::Null))
    })
}

fn checked(percentile: f64) -> Option<f64> {
    (0.0..=100.0).contains(&percentile).then_some(percentile)
}

/// The percentiles are numbers or arrays of them.
fn percentiles_array_tdigest(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let sketches = arguments.json(0)?;
    let percentiles = arguments.all_dynamics(1)?;
    arguments.make_dynamics(|row| {
        let Some(digest) = sketches.optional(row).and_then(settled) else { return Ok(Value::Null) };
        let mut found = Vec::new();
        let mut push = |percentile: &Value| {
            let key = conversion::json_real(percentile).and_then(checked).and_then(|it| digest.percentile(it));
            found.push(key.map_or(Value::Null, |key| value_of(digest.kind, key)));
        };
        for percentile in &percentiles {
            match percentile.get(row).as_ref() {
                Value::Array(elements) => elements.iter().for_each(&mut push),
                one => push(one),
            }
        }
        Ok(Value::Array(found))
    })
}

/// A value read as each of the types that a t-digest can be of.
struct RankArgument {
    kql_type: KqlType,
    longs: TypedColumn<Int64Array>,
    reals: TypedColumn<Float64Array>,
    datetimes: TypedColumn<Int64Array>,
    timespans: TypedColumn<Int64Array>,
}

impl RankArgument {
    fn read(arguments: &FunctionArguments, index: usize) -> Result<Self> {
        Ok(Self {
            kql_type: arguments.kql_type(index),
            longs: arguments.longs(index)?,
            reals: arguments.reals(index)?,
            datetimes: arguments.datetimes(index)?,
            timespans: arguments.timespans(index)?,
        })
    }

    /// Returns the greatest key of that type that is not greater than the value.
    fn key(&self, kind: DigestType, row: usize) -> Option<i64> {
        let is_time = matches!(self.kql_type, KqlType::DateTime | KqlType::TimeSpan);
        match kind {
            DigestType::Long | DigestType::Real if is_time => None,
            DigestType::Long if matches!(self.kql_type, KqlType::Real | KqlType::Decimal) => {
                // A float to integer cast saturates.
                self.reals.get(row).filter(|real| !real.is_nan()).map(|real| real.floor() as i64)
            }
            DigestType::Long => self.longs.get(row),
            DigestType::Real => self.reals.get(row).and_then(key_of_real),
            DigestType::DateTime if self.kql_type == KqlType::TimeSpan || self.kql_type.is_numeric() => None,
            DigestType::DateTime => self.datetimes.get(row),
            DigestType::TimeSpan if self.kql_type == KqlType::DateTime || self.kql_type.is_numeric() => None,
            DigestType::TimeSpan => self.timespans.get(row),
        }
    }
}

fn ranked(arguments: &FunctionArguments, read: fn(&TDigest, f64) -> f64) -> Result<ArrayRef> {
    let sketches = arguments.json(0)?;
    let probe = RankArgument::read(arguments, 1)?;
    arguments.make_reals(|row| {
        let digest = sketches.optional(row).and_then(settled)?;
        Some(read(&digest, digest.rank(probe.key(digest.kind, row)?)))
    })
}

/// Adds up the size of the type of each value, and the lengths of strings.
fn estimate_data_size(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let mut sizes = vec![0_i64; arguments.rows];
    for index in 0..arguments.len() {
        let fixed = match arguments.kql_type(index) {
            KqlType::Bool => Some(1),
            KqlType::Int => Some(4),
            KqlType::Long | KqlType::Real | KqlType::DateTime | KqlType::TimeSpan => Some(8),
            KqlType::Guid | KqlType::Decimal => Some(16),
            KqlType::String | KqlType::Dynamic => None,
        };
        let strings = match arguments.kql_type(index) {
            KqlType::String => Some(arguments.strings(index)?),
            KqlType::Dynamic => Some(arguments.json(index)?),
            _ => None,
        };
        for (row, size) in sizes.iter_mut().enumerate() {
            let text = strings.as_ref().and_then(|strings| strings.optional(row)).map_or(0, str::len);
            *size = size.saturating_add(fixed.unwrap_or_else(|| i64::try_from(text).unwrap_or(i64::MAX)));
        }
    }
    Ok(Arc::new(Int64Array::from(sizes)))
}
