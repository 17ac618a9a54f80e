//! `hll`, `tdigest` and their merges: aggregates whose value is a sketch, as dynamic text. The values of an `hll` come
//! as JSON arrays of one element, as those of `make_list` do, so that equal values of different types are the same.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr as PlanExpr, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use super::AggregateContext;
use crate::ExecutionError;
use crate::bind::{self, BindErrorCode, Binder, Typed, constant_of, fail, invalid};
use crate::functions::hash_string;
use crate::sketches::{DEFAULT_ACCURACY, DigestType, HyperLogLog, TDigest, key_of_real};
use crate::span::Span;
use crate::types::KqlType;

impl Binder<'_> {
    /// Binds an aggregate that returns a sketch.
    pub(super) fn sketch_aggregate(
        &mut self,
        name: &str,
        value: Typed,
        parameter: Option<Typed>,
        filter: Option<PlanExpr>,
        context: &AggregateContext<'_>,
    ) -> bind::Result<Typed> {
        let span = context.span;
        let is_merge = matches!(name, "hll_merge" | "tdigest_merge" | "merge_tdigest");
        if is_merge && value.kql_type != KqlType::Dynamic {
            return fail(BindErrorCode::TypeMismatch, span, format!("`{name}` takes sketches, which are dynamic"));
        }
        let (kind, values) = match name {
            "hll_merge" => (SketchKind::HyperLogLogMerge, vec![value.expr]),
            "hll" => {
                let accuracy = match parameter {
                    Some(accuracy) => self.accuracy(accuracy, span)?,
                    None => DEFAULT_ACCURACY,
                };
                // As an array of one element: only `pack_array` writes values of all types as JSON.
                (SketchKind::HyperLogLog(accuracy), vec![self.apply("pack_array", vec![value], span)?.expr])
            }
            "tdigest" => {
                let value = self.summable(value, span)?;
                let (kind, to) = match value.kql_type {
                    KqlType::DateTime => (DigestType::DateTime, KqlType::DateTime),
                    KqlType::TimeSpan => (DigestType::TimeSpan, KqlType::TimeSpan),
                    KqlType::Real | KqlType::Decimal => (DigestType::Real, KqlType::Real),
                    _ => (DigestType::Long, KqlType::Long),
                };
                let mut values = vec![self.convert(value, to, span)?.expr];
                if let Some(weight) = parameter {
                    values.push(self.convert(weight, KqlType::Long, span)?.expr);
                }
                (SketchKind::TDigest(kind), values)
            }
            _ => (SketchKind::TDigestMerge, vec![value.expr]),
        };
        Ok(Typed::new(self.call_aggregate(sketch_udaf(kind), values, filter, context), KqlType::Dynamic))
    }

    fn accuracy(&mut self, accuracy: Typed, span: Span) -> bind::Result<usize> {
        let accuracy = self.convert(accuracy, KqlType::Long, span)?;
        let accuracy = match constant_of(&accuracy.expr)? {
            Some(ScalarValue::Int64(Some(accuracy))) => usize::try_from(accuracy).ok(),
            _ => None,
        };
        match accuracy.filter(|accuracy| HyperLogLog::new(*accuracy).is_some()) {
            Some(accuracy) => Ok(accuracy),
            None => invalid(span, "the accuracy is a constant from 0 to 4"),
        }
    }
}

/// What a sketch is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) enum SketchKind {
    /// Values, to count distinct ones with this accuracy.
    HyperLogLog(usize),
    /// Sketches of distinct values.
    HyperLogLogMerge,
    /// Values of this type, with or without weights.
    TDigest(DigestType),
    /// Sketches of distributions.
    TDigestMerge,
}

/// Returns the aggregate of that kind.
pub(super) fn sketch_udaf(kind: SketchKind) -> Arc<AggregateUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(SketchFunction { kind, signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SketchFunction {
    pub(super) kind: SketchKind,
    signature: Signature,
}

impl SketchKind {
    fn name(self) -> &'static str {
        match self {
            SketchKind::HyperLogLog(_) => "hll",
            SketchKind::HyperLogLogMerge => "hll_merge",
            SketchKind::TDigest(_) => "tdigest",
            SketchKind::TDigestMerge => "tdigest_merge",
        }
    }
}

impl AggregateUDFImpl for SketchFunction {
    fn name(&self) -> &str {
        match self.kind {
            SketchKind::HyperLogLog(_) => "kql_hll",
            SketchKind::HyperLogLogMerge => "kql_hll_merge",
            SketchKind::TDigest(_) => "kql_tdigest",
            SketchKind::TDigestMerge => "kql_tdigest_merge",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let state = match self.kind {
            SketchKind::HyperLogLog(accuracy) => SketchState::HyperLogLog(HyperLogLog::new(accuracy)),
            SketchKind::HyperLogLogMerge => SketchState::HyperLogLog(None),
            SketchKind::TDigest(kind) => SketchState::TDigest(Some(TDigest::new(kind))),
            SketchKind::TDigestMerge => SketchState::TDigest(None),
        };
        Ok(Box::new(SketchAccumulator { kind: self.kind, state, has_rows: false }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[sketch]", arguments.name), DataType::Utf8, true))])
    }
}

/// The sketch of a group; `None` before the first of merged sketches.
#[derive(Debug)]
enum SketchState {
    HyperLogLog(Option<HyperLogLog>),
    TDigest(Option<TDigest>),
}

#[derive(Debug)]
struct SketchAccumulator {
    kind: SketchKind,
    state: SketchState,
    /// Whether there was a row at all: the sketch of none is null.
    has_rows: bool,
}

impl SketchAccumulator {
    fn error(&self, message: &str) -> DataFusionError {
        ExecutionError::new(format!("{}: {message}", self.kind.name())).into()
    }

    fn merge(&mut self, sketches: &ArrayRef) -> Result<()> {
        let Some(strings) = sketches.as_string_opt::<i32>() else { return Ok(()) };
        for text in strings.iter().flatten() {
            self.has_rows = true;
            let failed = match &mut self.state {
                SketchState::HyperLogLog(distinct) => match HyperLogLog::parse(text) {
                    None => Some("expected what hll() returns"),
                    Some(next) => {
                        match distinct {
                            Some(distinct) => distinct.merge(next),
                            None => *distinct = Some(next),
                        }
                        None
                    }
                },
                SketchState::TDigest(digest) => match (TDigest::parse(text), &mut *digest) {
                    (None, _) => Some("expected what tdigest() returns"),
                    (Some(next), Some(digest)) => (!digest.merge(next)).then_some("values of different types"),
                    (Some(next), None) => {
                        *digest = Some(next);
                        None
                    }
                },
            };
            if let Some(message) = failed {
                return Err(self.error(message));
            }
        }
        Ok(())
    }

    fn json(&mut self) -> Option<String> {
        if !self.has_rows {
            return None;
        }
        match &mut self.state {
            SketchState::HyperLogLog(distinct) => distinct.as_ref().map(HyperLogLog::to_json),
            SketchState::TDigest(digest) => digest.as_mut().map(TDigest::json),
        }
    }
}

impl Accumulator for SketchAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(column) = values.first() else { return Ok(()) };
        match (self.kind, &mut self.state) {
            (SketchKind::HyperLogLog(_), SketchState::HyperLogLog(Some(distinct))) => {
                self.has_rows |= !column.is_empty();
                let Some(strings) = column.as_string_opt::<i32>() else { return Ok(()) };
                strings
                    .iter()
                    .flatten()
                    .filter(|json| *json != "[null]")
                    .for_each(|json| distinct.add(hash_string(json)));
                Ok(())
            }
            (SketchKind::TDigest(_), SketchState::TDigest(Some(digest))) => {
                self.has_rows |= !column.is_empty();
                let weights = values.get(1).and_then(|weights| weights.as_primitive_opt::<Int64Type>());
                // A weight below 1 does not count.
                let weight = |row: usize| match weights {
                    Some(weights) if weights.is_null(row) => 0,
                    Some(weights) => u64::try_from(weights.value(row)).unwrap_or(0),
                    None => 1,
                };
                let longs = column.as_primitive_opt::<Int64Type>();
                let reals = column.as_primitive_opt::<Float64Type>();
                for row in (0..column.len()).filter(|row| column.is_valid(*row)) {
                    let key = match (longs, reals) {
                        (Some(longs), _) => Some(longs.value(row)),
                        (_, Some(reals)) => key_of_real(reals.value(row)),
                        _ => None,
                    };
                    if let Some(key) = key {
                        digest.add(key, weight(row));
                    }
                }
                Ok(())
            }
            _ => self.merge(column),
        }
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        states.first().map_or(Ok(()), |sketches| self.merge(sketches))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![ScalarValue::Utf8(self.json())])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Utf8(self.json()))
    }

    fn size(&self) -> usize {
        let kept = match &self.state {
            SketchState::HyperLogLog(distinct) => distinct.as_ref().map_or(0, HyperLogLog::size),
            SketchState::TDigest(digest) => digest.as_ref().map_or(0, TDigest::size),
        };
        size_of::<Self>() + kept
    }
}
