//! URL encoding, base64, hashes, and new guids.

use arrow::array::ArrayRef;
use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use datafusion::error::Result;
use md5::Md5;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;
use sha1::Sha1;
use sha2::{Digest, Sha256};
use twox_hash::XxHash64;
use uuid::Uuid;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry, volatile};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const GUID: Returns = Returns::Is(KqlType::Guid);

/// The characters that a part of a URL keeps.
const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'!').remove(b'*').remove(b'(').remove(b')');

/// Standard base64 with padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("hash", "x?i", Returns::By(hashed), hash),
    entry("hash_xxhash64", "x?i", Returns::By(hashed), hash),
    entry("url_encode", "s", STRING, url_encode),
    entry("url_encode_component", "s", STRING, url_encode_component),
    entry("url_decode", "s", STRING, url_decode),
    entry("base64_encode_tostring", "s", STRING, base64_encode),
    entry("base64_encodestring", "s", STRING, base64_encode),
    entry("base64_decode_tostring", "s", STRING, base64_decode),
    entry("base64_decodestring", "s", STRING, base64_decode),
    entry("base64_decode_toarray", "s", DYNAMIC, base64_to_array),
    entry("base64_encode_fromarray", "j", STRING, base64_from_array),
    entry("base64_decode_toguid", "s", GUID, base64_to_guid),
    entry("base64_encode_fromguid", "x", STRING, base64_from_guid),
    entry("hash_md5", "x", STRING, digest::<Md5>),
    entry("hash_sha1", "x", STRING, digest::<Sha1>),
    entry("hash_sha256", "x", STRING, digest::<Sha256>),
    volatile("new_guid", "", GUID, new_guid),
];

fn url_encode(arguments: &FunctionArguments) -> Result<ArrayRef> {
    encoded(arguments, "+")
}

fn url_encode_component(arguments: &FunctionArguments) -> Result<ArrayRef> {
    encoded(arguments, "%20")
}

/// Encodes as .NET does, in lower case hexadecimal digits.
fn encoded(arguments: &FunctionArguments, space: &str) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        for part in utf8_percent_encode(strings.get(row), COMPONENT) {
            match part {
                "%20" => text.push_str(space),
                part if part.starts_with('%') => text.push_str(&part.to_ascii_lowercase()),
                part => text.push_str(part),
            }
        }
        Ok(())
    })
}

fn url_decode(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        text.push_str(&percent_decode_str(&strings.get(row).replace('+', " ")).decode_utf8_lossy());
        Ok(())
    })
}

fn base64_encode(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        BASE64.encode_string(strings.get(row), text);
        Ok(())
    })
}

/// Returns the empty string for what is not base64 of UTF-8.
fn base64_decode(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        let decoded = BASE64.decode(strings.get(row)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.push_str(&decoded.unwrap_or_default());
        Ok(())
    })
}

fn base64_to_array(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_dynamics(|row| Ok(BASE64.decode(strings.get(row)).map_or(Value::Null, Value::from)))
}

fn base64_from_array(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let arrays = arguments.dynamics(0)?;
    arguments.make_strings(|row, text| {
        let byte = |value: &Value| u8::try_from(value.as_i64()?).ok();
        let bytes: Option<Vec<u8>> = arrays.elements(row).and_then(|elements| elements.iter().map(byte).collect());
        text.push_str(&bytes.map(|bytes| BASE64.encode(bytes)).unwrap_or_default());
        Ok(())
    })
}

/// Reads the bytes in the order of .NET.
fn base64_to_guid(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_optional_strings(|row, text| {
        let bytes: Option<[u8; 16]> = BASE64.decode(strings.get(row)).ok().and_then(|bytes| bytes.try_into().ok());
        let Some(bytes) = bytes else { return Ok(false) };
        text.push_str(&Uuid::from_bytes_le(bytes).hyphenated().to_string());
        Ok(true)
    })
}

fn base64_from_guid(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let guids = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        if let Ok(guid) = Uuid::try_parse(guids.get(row)) {
            BASE64.encode_string(guid.to_bytes_le(), text);
        }
        Ok(())
    })
}

/// Hashes the string form of a value, that of a datetime too. The empty string stays empty.
fn digest<D: Digest>(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        if !strings.get(row).is_empty() {
            push_hexadecimal(&D::digest(strings.get(row)), text);
        }
        Ok(())
    })
}

fn push_hexadecimal(bytes: &[u8], text: &mut String) {
    bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
}

fn new_guid(arguments: &FunctionArguments) -> Result<ArrayRef> {
    arguments.make_optional_strings(|_, text| {
        text.push_str(&Uuid::new_v4().hyphenated().to_string());
        Ok(true)
    })
}

/// Accepts only the types whose hashed bytes are known from Kusto.
fn hashed(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    match types.first() {
        Some(KqlType::String | KqlType::Long | KqlType::DateTime | KqlType::TimeSpan) => Ok(KqlType::Long),
        Some(other) => Err(format!("hash() does not take a {} here; convert it with tostring(...)", other.name())),
        None => Err("hash() takes a value".to_owned()),
    }
}

/// Returns the XXH64 of a string or a number, or its remainder by the second argument.
fn hash(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let buckets = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let is_text = arguments.kql_type(0) == KqlType::String;
    let (strings, numbers) = (arguments.strings(0)?, arguments.longs(0)?);
    arguments.make_longs(|row| {
        let hash = match is_text {
            true => xxh64(strings.get(row).as_bytes()),
            false => xxh64(&numbers.get(row)?.to_le_bytes()),
        };
        match &buckets {
            Some(buckets) => {
                let buckets = u64::try_from(buckets.get(row)?).ok().filter(|buckets| *buckets > 0)?;
                i64::try_from(hash % buckets).ok()
            }
            None => Some(hash.cast_signed()),
        }
    })
}

/// Returns the hash of a string, as `hash` does.
pub(crate) fn hash_string(text: &str) -> u64 {
    xxh64(text.as_bytes())
}

/// Returns the XXH64 hash of bytes, with seed 0.
fn xxh64(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}
