//! Values of columns and parameters, and what they are in Rust.

use super::error::{DatabaseError, DatabaseResult};

/// A value of a column, or of a parameter, as the database has it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StoreValue<'v> {
    /// NULL.
    Null,
    /// An integer; true is 1.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text, whose encoding is yet to be looked at.
    Text(&'v [u8]),
    /// Bytes.
    Blob(&'v [u8]),
}

/// Why a value cannot be read.
type Mismatch = Box<dyn std::error::Error + Send + Sync>;

impl StoreValue<'_> {
    /// The error for a value of another type.
    pub(crate) fn instead_of(self, wanted: &str) -> Mismatch {
        let found = match self {
            StoreValue::Null => "null",
            StoreValue::Integer(_) => "an integer",
            StoreValue::Real(_) => "a number",
            StoreValue::Text(_) => "a text",
            StoreValue::Blob(_) => "bytes",
        };
        format!("{found} instead of {wanted}").into()
    }
}

/// What can be read from a column.
pub(crate) trait FromStoreValue: Sized {
    /// Reads a value.
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch>;
}

impl FromStoreValue for i64 {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        match value {
            StoreValue::Integer(number) => Ok(number),
            other => Err(other.instead_of("an integer")),
        }
    }
}

impl FromStoreValue for i32 {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        Ok(i32::try_from(i64::from_value(value)?)?)
    }
}

impl FromStoreValue for u32 {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        Ok(u32::try_from(i64::from_value(value)?)?)
    }
}

impl FromStoreValue for bool {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        Ok(i64::from_value(value)? != 0)
    }
}

impl FromStoreValue for String {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        match value {
            StoreValue::Text(text) => Ok(std::str::from_utf8(text)?.to_owned()),
            other => Err(other.instead_of("text")),
        }
    }
}

impl FromStoreValue for Vec<u8> {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        match value {
            StoreValue::Blob(bytes) => Ok(bytes.to_vec()),
            other => Err(other.instead_of("bytes")),
        }
    }
}

impl<const N: usize> FromStoreValue for [u8; N] {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        match value {
            StoreValue::Blob(bytes) => Ok(bytes.try_into()?),
            other => Err(other.instead_of("bytes")),
        }
    }
}

impl<T: FromStoreValue> FromStoreValue for Option<T> {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        match value {
            StoreValue::Null => Ok(None),
            value => T::from_value(value).map(Some),
        }
    }
}

/// A value of whatever type, kept after its row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum OwnedValue {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A number.
    Real(f64),
    /// A text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl FromStoreValue for OwnedValue {
    fn from_value(value: StoreValue<'_>) -> Result<Self, Mismatch> {
        Ok(match value {
            StoreValue::Null => OwnedValue::Null,
            StoreValue::Integer(number) => OwnedValue::Integer(number),
            StoreValue::Real(number) => OwnedValue::Real(number),
            StoreValue::Text(text) => OwnedValue::Text(std::str::from_utf8(text)?.to_owned()),
            StoreValue::Blob(bytes) => OwnedValue::Blob(bytes.to_vec()),
        })
    }
}

/// What can be given to a statement.
pub(crate) trait StoreParameter {
    /// The value that the database gets.
    fn value(&self) -> StoreValue<'_>;
}

macro_rules! integer_parameters {
    ($($type:ty),*) => {
        $(impl StoreParameter for $type {
            fn value(&self) -> StoreValue<'_> {
                StoreValue::Integer(i64::from(*self))
            }
        })*
    };
}

integer_parameters!(i64, i32, u32, bool);

impl StoreParameter for str {
    fn value(&self) -> StoreValue<'_> {
        StoreValue::Text(self.as_bytes())
    }
}

impl StoreParameter for String {
    fn value(&self) -> StoreValue<'_> {
        self.as_str().value()
    }
}

impl StoreParameter for [u8] {
    fn value(&self) -> StoreValue<'_> {
        StoreValue::Blob(self)
    }
}

impl StoreParameter for Vec<u8> {
    fn value(&self) -> StoreValue<'_> {
        StoreValue::Blob(self)
    }
}

impl<const N: usize> StoreParameter for [u8; N] {
    fn value(&self) -> StoreValue<'_> {
        StoreValue::Blob(self)
    }
}

impl StoreParameter for OwnedValue {
    fn value(&self) -> StoreValue<'_> {
        match self {
            OwnedValue::Null => StoreValue::Null,
            OwnedValue::Integer(number) => StoreValue::Integer(*number),
            OwnedValue::Real(number) => StoreValue::Real(*number),
            OwnedValue::Text(text) => StoreValue::Text(text.as_bytes()),
            OwnedValue::Blob(bytes) => StoreValue::Blob(bytes),
        }
    }
}

impl<T: StoreParameter> StoreParameter for Option<T> {
    fn value(&self) -> StoreValue<'_> {
        self.as_ref().map_or(StoreValue::Null, StoreParameter::value)
    }
}

impl<T: StoreParameter + ?Sized> StoreParameter for &T {
    fn value(&self) -> StoreValue<'_> {
        (**self).value()
    }
}

/// The parameters of a statement, in their order.
pub(crate) trait StoreParameters {
    /// Calls `f` with them.
    fn with<R>(&self, f: impl FnOnce(&[&dyn StoreParameter]) -> R) -> R;
}

impl StoreParameters for &[&dyn StoreParameter] {
    fn with<R>(&self, f: impl FnOnce(&[&dyn StoreParameter]) -> R) -> R {
        f(self)
    }
}

impl StoreParameters for [&dyn StoreParameter; 0] {
    fn with<R>(&self, f: impl FnOnce(&[&dyn StoreParameter]) -> R) -> R {
        f(&[])
    }
}

/// Each length on its own, so that no parameters at all need no type.
macro_rules! lists_of_one_type {
    ($($length:literal),*) => {
        $(impl<T: StoreParameter> StoreParameters for [T; $length] {
            fn with<R>(&self, f: impl FnOnce(&[&dyn StoreParameter]) -> R) -> R {
                f(&self.each_ref().map(|parameter| parameter as &dyn StoreParameter))
            }
        })*
    };
}

lists_of_one_type!(1, 2, 3, 4);

/// Parameters of several types.
macro_rules! params {
    ($($parameter:expr),* $(,)?) => {
        &[$(&$parameter as &dyn $crate::connection::StoreParameter),*] as &[&dyn $crate::connection::StoreParameter]
    };
}
pub(crate) use params;

/// Tells that there is no row from other errors.
pub(crate) trait OptionalRow<T> {
    /// `None` where there is no row.
    fn optional(self) -> DatabaseResult<Option<T>>;
}

impl<T> OptionalRow<T> for DatabaseResult<T> {
    fn optional(self) -> DatabaseResult<Option<T>> {
        match self {
            Ok(row) => Ok(Some(row)),
            Err(DatabaseError::NoRow) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
