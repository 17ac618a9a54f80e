//! Bytes from hexadecimal digits: `from_hex`, and whatever else is written so. Their inverse is DataFusion's
//! `encode(bytes, 'hex')`. Digits only: a parser of numbers would take `+f` for a byte.

use std::fmt::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BinaryBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};

use crate::error::EngineError;

/// The function's name.
pub(crate) const FROM_HEX: &str = "from_hex";

/// Returns `from_hex(text)`.
pub(super) fn from_hex() -> Arc<ScalarUDF> {
    let signature = Signature::one_of(vec![TypeSignature::String(1)], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(FromHex { signature }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct FromHex {
    signature: Signature,
}

impl ScalarUDFImpl for FromHex {
    fn name(&self) -> &str {
        FROM_HEX
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_scalar = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if is_scalar { 1 } else { args.number_rows };
        let [text] = args.args.as_slice() else {
            return Err(EngineError::Plan { message: format!("{FROM_HEX} takes one text") }.into());
        };
        let bytes = decoded(&text.to_array(rows)?)?;
        match is_scalar {
            true => Ok(ColumnarValue::Scalar(datafusion::common::ScalarValue::try_from_array(&bytes, 0)?)),
            false => Ok(ColumnarValue::Array(bytes)),
        }
    }
}

fn decoded(texts: &ArrayRef) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8View)?;
    let mut builder = BinaryBuilder::new();
    for text in texts.as_string_view() {
        match text {
            Some(text) => builder.append_value(bytes_of(text)?),
            None => builder.append_null(),
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn bytes_of(text: &str) -> Result<Vec<u8>> {
    bytes_of_hex(text.as_bytes()).ok_or_else(|| {
        let message = format!("{FROM_HEX} takes pairs of hexadecimal digits, not `{text}`");
        EngineError::InvalidValue { message }.into()
    })
}

/// Returns the bytes of pairs of hexadecimal digits; `None` where they are none.
pub(crate) fn bytes_of_hex(digits: &[u8]) -> Option<Vec<u8>> {
    digits.chunks(2).map(byte_of_hex).collect()
}

/// Returns the byte of two hexadecimal digits; `None` where they are none.
pub(crate) fn byte_of_hex(digits: &[u8]) -> Option<u8> {
    let [high, low] = digits else { return None };
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// Returns bytes as a text that DuckDB and [`written_bytes`](super::written_bytes) read: text of ASCII as it stands, otherwise
/// `\xAA` for each byte, so that no digit behind one belongs to it.
pub(crate) fn text_of_bytes(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'\\') {
        return bytes.iter().copied().map(char::from).collect();
    }
    let mut text = String::with_capacity(bytes.len() * 4);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "\\x{byte:02X}");
    }
    text
}

fn digit(character: u8) -> Option<u8> {
    match character {
        b'0'..=b'9' => Some(character - b'0'),
        b'a'..=b'f' => Some(character - b'a' + 10),
        b'A'..=b'F' => Some(character - b'A' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::written_bytes;

    #[test]
    fn pairs_of_digits_are_bytes() {
        assert_eq!(bytes_of("00fFa1").unwrap(), [0x00, 0xff, 0xa1]);
        assert_eq!(bytes_of("").unwrap(), [0_u8; 0]);
        for bad in ["0", "0g", "é", "0x00", "+f", "00+"] {
            assert!(bytes_of(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_are_texts_that_are_read_as_them() {
        let cases: [(&[u8], &str); 6] = [
            (b"", ""),
            (b"it's, \"a\"", "it's, \"a\""),
            (b"\xAAbb", "\\xAA\\x62\\x62"),
            (b"a\\b", "\\x61\\x5C\\x62"),
            (b"\0", "\\x00"),
            ("ü".as_bytes(), "\\xC3\\xBC"),
        ];
        for (bytes, text) in cases {
            assert_eq!(text_of_bytes(bytes), text);
            assert_eq!(written_bytes(text).unwrap(), bytes, "{text}");
        }
    }
}
