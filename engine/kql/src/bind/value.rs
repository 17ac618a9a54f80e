//! Values that are known while binding: literals and expressions without columns.

use arrow::array::RecordBatch;
use arrow::datatypes::Schema;
use datafusion::common::DFSchema;
use datafusion::execution::context::ExecutionProps;
use datafusion::logical_expr::{Expr as PlanExpr, lit};
use datafusion::physical_expr::create_physical_expr;
use datafusion::physical_plan::ColumnarValue;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;

use super::{BindErrorCode, Binder, Result, Typed, fail, invalid};
use crate::ast::{Json, JsonKind, Literal, ScalarType};
use crate::functions;
use crate::span::Span;
use crate::types::{DECIMAL_PRECISION, DECIMAL_SCALE, KqlType};

/// So many bytes of a constant weigh as much as an expression: a variable is copied to each place that names it.
const CONSTANT_BYTES_OF_NODE: usize = 512;

/// Returns the null of a type; for strings, the empty string.
pub(crate) fn null_of(kql_type: KqlType) -> ScalarValue {
    match kql_type {
        KqlType::Bool => ScalarValue::Boolean(None),
        KqlType::Int => ScalarValue::Int32(None),
        KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => ScalarValue::Int64(None),
        KqlType::Real => ScalarValue::Float64(None),
        KqlType::Decimal => ScalarValue::Decimal256(None, DECIMAL_PRECISION, DECIMAL_SCALE),
        KqlType::String => ScalarValue::Utf8View(Some(String::new())),
        KqlType::Guid | KqlType::Dynamic => ScalarValue::Utf8(None),
    }
}

/// Returns a string literal of a plan.
pub(crate) fn text_literal(text: impl Into<String>) -> PlanExpr {
    lit(ScalarValue::Utf8View(Some(text.into())))
}

/// Returns the string of a known value, where it is one.
pub(crate) fn text_of(value: Option<&ScalarValue>) -> Option<&str> {
    value.and_then(ScalarValue::try_as_str).flatten()
}

/// Returns the value of an expression without columns; `None` when it has some.
pub(crate) fn constant_of(expr: &PlanExpr) -> Result<Option<ScalarValue>> {
    if let PlanExpr::Literal(value, _) = expr {
        return Ok(Some(value.clone()));
    }
    if expr.any_column_refs() || expr.contains_outer() {
        return Ok(None);
    }
    let physical = create_physical_expr(expr, &DFSchema::empty(), &ExecutionProps::new())?;
    let row = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        Vec::new(),
        &arrow::array::RecordBatchOptions::new().with_row_count(Some(1)),
    )
    .map_err(datafusion::error::DataFusionError::from)?;
    Ok(Some(match physical.evaluate(&row)? {
        ColumnarValue::Scalar(value) => value,
        ColumnarValue::Array(array) => ScalarValue::try_from_array(&array, 0)?,
    }))
}

impl Binder<'_> {
    /// Counts the bytes of a value that was read, and is copied to each place that names it. Errors: as [`Binder::spend`].
    pub(crate) fn spend_on(&mut self, value: &Typed, span: Span) -> Result<()> {
        match &value.expr {
            PlanExpr::Literal(constant, _) => self.spend(constant.size() / CONSTANT_BYTES_OF_NODE, span),
            _ => Ok(()),
        }
    }

    /// Binds a literal.
    pub(crate) fn literal(&mut self, literal: &Literal, span: Span) -> Result<Typed> {
        Ok(match literal {
            Literal::Bool(value) => Typed::new(lit(*value), KqlType::Bool),
            Literal::Long(value) => Typed::new(lit(*value), KqlType::Long),
            Literal::Real(value) => Typed::new(lit(*value), KqlType::Real),
            Literal::Timespan(ticks) => Typed::new(lit(*ticks), KqlType::TimeSpan),
            Literal::String(text) => {
                self.spend(text.len() / CONSTANT_BYTES_OF_NODE, span)?;
                Typed::text(text.clone())
            }
            Literal::Typed { scalar_type, text } => self.typed_literal(*scalar_type, text, span)?,
            Literal::Dynamic(json) => {
                let text = self.json_text(json)?;
                self.spend(text.len() / CONSTANT_BYTES_OF_NODE, span)?;
                let value = if text == "null" { None } else { Some(text) };
                Typed::new(lit(ScalarValue::Utf8(value)), KqlType::Dynamic)
            }
            Literal::Type(_) | Literal::RowType(_) => return invalid(span, "a type is no value"),
        })
    }

    /// `datetime(2020-01-01)`: the text is converted as the type's function converts, and must be a value of the type.
    fn typed_literal(&mut self, scalar_type: ScalarType, text: &str, span: Span) -> Result<Typed> {
        let kql_type = KqlType::from(scalar_type);
        if kql_type == KqlType::String {
            return Ok(Typed::text(text.to_owned()));
        }
        let unquoted = text.trim_matches(|quote| quote == '"' || quote == '\'');
        // As documented, `datetime()` is the time of the query.
        if kql_type == KqlType::DateTime && (text.is_empty() || unquoted.eq_ignore_ascii_case("now")) {
            return Ok(Typed::new(lit(self.now_ticks), kql_type));
        }
        if unquoted.eq_ignore_ascii_case("null") || (unquoted.is_empty() && kql_type != KqlType::Dynamic) {
            return Ok(Typed::new(lit(null_of(kql_type)), kql_type));
        }
        if let Some(bits) = hexadecimal(kql_type, unquoted) {
            return Ok(Typed::new(lit(bits), kql_type));
        }
        let converter = match kql_type {
            KqlType::Bool => "tobool",
            KqlType::Int => "toint",
            KqlType::Long => "tolong",
            KqlType::Real => "toreal",
            KqlType::Decimal => "todecimal",
            KqlType::DateTime => "todatetime",
            KqlType::TimeSpan => "totimespan",
            KqlType::Guid => "toguid",
            KqlType::Dynamic | KqlType::String => "todynamic",
        };
        let bound = match functions::bind(converter, &[KqlType::String], self.functions()) {
            Ok(bound) => bound,
            Err(_) => return fail(BindErrorCode::Invalid, span, format!("no literals of type {}", kql_type.name())),
        };
        // A literal that is a number alone counts days; as a text it is no timespan.
        let is_number = unquoted.trim_start_matches('-').bytes().all(|byte| byte.is_ascii_digit());
        let in_days = format!("{unquoted}d");
        let unquoted = if kql_type == KqlType::TimeSpan && is_number { &in_days } else { unquoted };
        let value = constant_of(&bound.function.call(vec![text_literal(unquoted)]))?;
        match value {
            Some(value) if !value.is_null() => Ok(Typed::new(lit(value), kql_type)),
            _ => invalid(span, format!("`{text}` is not a {}", kql_type.name())),
        }
    }

    /// Returns the JSON of a `dynamic(...)`.
    pub(crate) fn json_text(&mut self, json: &Json) -> Result<String> {
        match &json.kind {
            JsonKind::Null => Ok("null".to_owned()),
            JsonKind::Literal(literal) => self.json_literal(literal, json.span),
            JsonKind::Array(items) => {
                let items = items.iter().map(|item| self.json_text(item)).collect::<Result<Vec<_>>>()?;
                Ok(format!("[{}]", items.join(",")))
            }
            JsonKind::Object(properties) => {
                let mut written: Vec<String> = Vec::with_capacity(properties.len());
                for property in properties {
                    let value = self.json_text(&property.value)?;
                    written.push(format!("{}:{value}", quoted(&property.name)));
                }
                Ok(format!("{{{}}}", written.join(",")))
            }
        }
    }

    fn json_literal(&mut self, literal: &Literal, span: Span) -> Result<String> {
        if matches!(literal, Literal::Real(real) if !real.is_finite()) {
            return invalid(span, "this number does not fit a real");
        }
        let typed = self.literal(literal, span)?;
        // A timespan is there as its ticks.
        let typed = if typed.kql_type == KqlType::TimeSpan { Typed::new(typed.expr, KqlType::Long) } else { typed };
        let bound = match functions::bind("pack_array", &[typed.kql_type], self.functions()) {
            Ok(bound) => bound,
            Err(_) => return invalid(span, "this value cannot stand in dynamic(...)"),
        };
        let array = constant_of(&bound.function.call(vec![typed.expr]))?;
        let text = match array {
            Some(ScalarValue::Utf8(Some(text))) => text,
            _ => String::new(),
        };
        Ok(text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or("null").to_owned())
    }
}

/// Returns the number whose bits hexadecimal digits are, as in `int(0xFFFFFFFF)`.
fn hexadecimal(kql_type: KqlType, text: &str) -> Option<ScalarValue> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    // The parser of numbers would take a sign.
    let digits = Some(digits).filter(|digits| !digits.starts_with('+'))?;
    match kql_type {
        KqlType::Int => Some(ScalarValue::Int32(Some(u32::from_str_radix(digits, 16).ok()?.cast_signed()))),
        KqlType::Long => Some(ScalarValue::Int64(Some(u64::from_str_radix(digits, 16).ok()?.cast_signed()))),
        _ => None,
    }
}

/// Returns a string as a JSON string.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}
