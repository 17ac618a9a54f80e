//! The types of values that aggregates take, as Kusto's binder has them. A value of another type is refused before any
//! row is read, and the refusal says how to convert it.

use crate::bind::{BindError, BindErrorCode, BindStop, Binder, Result, Typed};
use crate::span::Span;
use crate::types::KqlType;

impl Binder<'_> {
    /// Returns a value that can be added up, an int as a long.
    pub(crate) fn summable(&mut self, value: Typed, span: Span) -> Result<Typed> {
        match value.kql_type {
            KqlType::Long | KqlType::Real | KqlType::Decimal | KqlType::TimeSpan | KqlType::DateTime => Ok(value),
            KqlType::Int => self.convert(value, KqlType::Long, span),
            other @ (KqlType::Bool | KqlType::Dynamic | KqlType::String | KqlType::Guid) => {
                let message = format!("a {} cannot be added up", other.name());
                let hint = match other {
                    KqlType::Bool => Some("count the true ones with countif()"),
                    KqlType::Dynamic | KqlType::String => Some("convert it with tolong() or todouble() first"),
                    _ => None,
                };
                Err(mismatch(span, message, hint))
            }
        }
    }
}

/// Errors: values of this type have no order, of which `name` could take the least or the greatest.
pub(super) fn orderable(name: &str, kql_type: KqlType, span: Span) -> Result<()> {
    match kql_type {
        KqlType::Dynamic | KqlType::Guid => {
            let message = format!("`{name}` takes a number, a time, a bool or a string, not a {}", kql_type.name());
            Err(mismatch(span, message, Some("convert it first, as tostring() does")))
        }
        _ => Ok(()),
    }
}

fn mismatch(span: Span, message: String, hint: Option<&str>) -> BindStop {
    let error = BindError::new(BindErrorCode::TypeMismatch, span, message);
    match hint {
        Some(hint) => error.with_hint(hint).into(),
        None => error.into(),
    }
}
