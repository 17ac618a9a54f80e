//! `hll`, `tdigest` and their merges: aggregates whose value is a sketch, as dynamic text. The values of an `hll` come
//! as JSON arrays of one, as those of collections do, so that a value is the same one whatever type it has.

use std::mem::size_of;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Expr as PlanExpr, Signature, Volatility};
use datafusion::scalar::ScalarValue;

use super::super::bind::{self, BindErrorCode, Binder, Typed, constant_of, fail, invalid};
use super::super::functions::hash_of_text;
use super::super::sketches::{DEFAULT_ACCURACY, Digest, Distinct, Kind, key_of_real};
use super::super::span::Span;
use super::super::types::KqlType;
use super::Place;
use crate::ExecutionError;

impl Binder<'_> {
    /// The sketch of an aggregate's arguments.
    pub(super) fn sketched(
        &mut self,
        name: &str,
        value: Typed,
        parameter: Option<Typed>,
        filter: Option<PlanExpr>,
        place: &Place<'_>,
    ) -> bind::Result<Typed> {
        let span = place.span;
        let is_merge = matches!(name, "hll_merge" | "tdigest_merge" | "merge_tdigest");
        if is_merge && value.kql_type != KqlType::Dynamic {
            return fail(BindErrorCode::TypeMismatch, span, format!("`{name}` takes sketches, which are dynamic"));
        }
        let (sketched, values) = match name {
            "hll_merge" => (Sketched::DistinctOfSketches, vec![value.expr]),
            "hll" => {
                let accuracy = match parameter {
                    Some(accuracy) => self.accuracy(accuracy, span)?,
                    None => DEFAULT_ACCURACY,
                };
                // As an array of one: how each type is written as JSON is one place's business.
                (Sketched::Distinct(accuracy), vec![self.apply("pack_array", vec![value], span)?.expr])
            }
            "tdigest" => {
                let (kind, to) = match value.kql_type {
                    KqlType::Bool | KqlType::Int | KqlType::Long => (Kind::Long, KqlType::Long),
                    KqlType::Real | KqlType::Decimal | KqlType::Dynamic => (Kind::Real, KqlType::Real),
                    KqlType::DateTime => (Kind::DateTime, KqlType::DateTime),
                    KqlType::TimeSpan => (Kind::TimeSpan, KqlType::TimeSpan),
                    other @ (KqlType::String | KqlType::Guid) => {
                        let message = format!("`tdigest` does not take a {}", other.name());
                        return fail(BindErrorCode::TypeMismatch, span, message);
                    }
                };
                let mut values = vec![self.convert(value, to, span)?.expr];
                if let Some(weight) = parameter {
                    values.push(self.convert(weight, KqlType::Long, span)?.expr);
                }
                (Sketched::Digest(kind), values)
            }
            _ => (Sketched::DigestOfSketches, vec![value.expr]),
        };
        Ok(Typed::new(self.collected(sketch(sketched), values, filter, place), KqlType::Dynamic))
    }

    fn accuracy(&mut self, accuracy: Typed, span: Span) -> bind::Result<usize> {
        let accuracy = self.convert(accuracy, KqlType::Long, span)?;
        let accuracy = match constant_of(&accuracy.expr)? {
            Some(ScalarValue::Int64(Some(accuracy))) => usize::try_from(accuracy).ok(),
            _ => None,
        };
        match accuracy.filter(|accuracy| Distinct::new(*accuracy).is_some()) {
            Some(accuracy) => Ok(accuracy),
            None => invalid(span, "the accuracy is a constant from 0 to 4"),
        }
    }
}

/// What is sketched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sketched {
    /// How many distinct values there are, to an accuracy.
    Distinct(usize),
    /// The same of sketches of that.
    DistinctOfSketches,
    /// How values of a type are distributed, with weights or without.
    Digest(Kind),
    /// The same of sketches of that.
    DigestOfSketches,
}

/// The function.
pub(super) fn sketch(sketched: Sketched) -> Arc<AggregateUDF> {
    let signature = Signature::variadic_any(Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Sketch { sketched, signature }))
}

pub(super) fn is(function: &dyn AggregateUDFImpl) -> bool {
    (function as &dyn std::any::Any).is::<Sketch>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Sketch {
    sketched: Sketched,
    signature: Signature,
}

impl Sketched {
    fn name(self) -> &'static str {
        match self {
            Sketched::Distinct(_) => "hll",
            Sketched::DistinctOfSketches => "hll_merge",
            Sketched::Digest(_) => "tdigest",
            Sketched::DigestOfSketches => "tdigest_merge",
        }
    }
}

impl AggregateUDFImpl for Sketch {
    fn name(&self) -> &str {
        match self.sketched {
            Sketched::Distinct(_) => "kql_hll",
            Sketched::DistinctOfSketches => "kql_hll_merge",
            Sketched::Digest(_) => "kql_tdigest",
            Sketched::DigestOfSketches => "kql_tdigest_merge",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _arguments: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let state = match self.sketched {
            Sketched::Distinct(accuracy) => State::Distinct(Distinct::new(accuracy)),
            Sketched::DistinctOfSketches => State::Distinct(None),
            Sketched::Digest(kind) => State::Digest(Some(Digest::new(kind))),
            Sketched::DigestOfSketches => State::Digest(None),
        };
        Ok(Box::new(Gathering { sketched: self.sketched, state }))
    }

    fn state_fields(&self, arguments: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format!("{}[sketch]", arguments.name), DataType::Utf8, true))])
    }
}

/// What one group has so far; of merged sketches nothing before the first.
#[derive(Debug)]
enum State {
    Distinct(Option<Distinct>),
    Digest(Option<Digest>),
}

#[derive(Debug)]
struct Gathering {
    sketched: Sketched,
    state: State,
}

impl Gathering {
    fn error(&self, message: &str) -> DataFusionError {
        ExecutionError::new(format!("{}: {message}", self.sketched.name())).into()
    }

    fn merge(&mut self, sketches: &ArrayRef) -> Result<()> {
        let Some(texts) = sketches.as_string_opt::<i32>() else { return Ok(()) };
        for text in texts.iter().flatten() {
            let failed = match &mut self.state {
                State::Distinct(distinct) => match Distinct::parse(text) {
                    None => Some("expected what hll() returns"),
                    Some(next) => {
                        match distinct {
                            Some(distinct) => distinct.merge(next),
                            None => *distinct = Some(next),
                        }
                        None
                    }
                },
                State::Digest(digest) => match (Digest::parse(text), &mut *digest) {
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
        match &mut self.state {
            State::Distinct(distinct) => distinct.as_ref().map(Distinct::to_json),
            State::Digest(digest) => digest.as_mut().map(Digest::json),
        }
    }
}

impl Accumulator for Gathering {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let Some(column) = values.first() else { return Ok(()) };
        match (self.sketched, &mut self.state) {
            (Sketched::Distinct(_), State::Distinct(Some(distinct))) => {
                let Some(texts) = column.as_string_opt::<i32>() else { return Ok(()) };
                texts
                    .iter()
                    .flatten()
                    .filter(|json| *json != "[null]")
                    .for_each(|json| distinct.add(hash_of_text(json)));
                Ok(())
            }
            (Sketched::Digest(_), State::Digest(Some(digest))) => {
                let weights = values.get(1).and_then(|weights| weights.as_primitive_opt::<Int64Type>());
                // What counts less than once does not count.
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
        if let State::Distinct(distinct @ None) = &mut self.state {
            *distinct = Distinct::new(DEFAULT_ACCURACY);
        }
        Ok(ScalarValue::Utf8(self.json()))
    }

    fn size(&self) -> usize {
        let kept = match &self.state {
            State::Distinct(distinct) => distinct.as_ref().map_or(0, Distinct::size),
            State::Digest(digest) => digest.as_ref().map_or(0, Digest::size),
        };
        size_of::<Self>() + kept
    }
}
