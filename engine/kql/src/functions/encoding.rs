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
const LONG: Returns = Returns::Is(KqlType::Long);

/// The characters that a part of a URL keeps.
const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'!').remove(b'*').remove(b'(').remove(b')');

/// Standard base64 with padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("hash", "x?i", LONG, hash),
    entry("hash_xxhash64", "x?i", LONG, hash),
    entry("hash_combine", "ii*", LONG, hash_combine),
    entry("hash_many", "xx*", LONG, hash_many),
    entry("url_encode", "w", STRING, url_encode),
    entry("url_encode_component", "w", STRING, url_encode_component),
    entry("url_decode", "w", STRING, url_decode),
    entry("base64_encode_tostring", "w", STRING, base64_encode),
    entry("base64_encodestring", "w", STRING, base64_encode),
    entry("base64_decode_tostring", "w", STRING, base64_decode),
    entry("base64_decodestring", "w", STRING, base64_decode),
    entry("base64_decode_toarray", "w", DYNAMIC, base64_to_array),
    entry("base64_encode_fromarray", "j", STRING, base64_from_array),
    entry("base64_decode_toguid", "w", GUID, base64_to_guid),
    entry("base64_encode_fromguid", "g", STRING, base64_from_guid),
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
    arguments.make_dynamics(|row| {
        let Ok(bytes) = BASE64.decode(strings.get(row)) else { return Ok(Value::Null) };
        arguments.bounded_elements(bytes.len())?;
        Ok(bytes.into())
    })
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

/// Returns the XXH64 of a value, or its remainder by the second argument.
fn hash(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let buckets = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let hashes = hashes(arguments, 0)?;
    arguments.make_longs(|row| {
        let hash = hashes(row)?;
        match &buckets {
            Some(buckets) => {
                let buckets = u64::try_from(buckets.get(row)?).ok().filter(|buckets| *buckets > 0)?;
                i64::try_from(hash % buckets).ok()
            }
            None => Some(hash.cast_signed()),
        }
    })
}

/// A function from a row to the hash of an argument there: of the bytes of a number, of the text of any other value.
fn hashes(arguments: &FunctionArguments, index: usize) -> Result<Box<dyn Fn(usize) -> Option<u64>>> {
    Ok(match arguments.kql_type(index) {
        KqlType::Long | KqlType::DateTime | KqlType::TimeSpan => {
            let longs = arguments.longs(index)?;
            Box::new(move |row| Some(xxh64(&longs.get(row)?.to_le_bytes())))
        }
        KqlType::Int => {
            let longs = arguments.longs(index)?;
            Box::new(move |row| Some(xxh64(&(longs.get(row)? as i32).to_le_bytes())))
        }
        KqlType::Bool => {
            let bools = arguments.longs(index)?;
            Box::new(move |row| Some(xxh64(&[u8::from(bools.get(row)? != 0)])))
        }
        KqlType::Real => {
            let reals = arguments.reals(index)?;
            Box::new(move |row| Some(xxh64(&reals.get(row)?.to_le_bytes())))
        }
        KqlType::String | KqlType::Guid | KqlType::Decimal | KqlType::Dynamic => {
            let strings = arguments.strings(index)?;
            Box::new(move |row| Some(xxh64(strings.get(row).as_bytes())))
        }
    })
}

/// Returns one hash of several. Null where one of them is.
fn hash_combine(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let parts = (0..arguments.len()).map(|index| arguments.longs(index)).collect::<Result<Vec<_>>>()?;
    arguments.make_longs(|row| {
        let hashes = parts.iter().map(|part| Some(part.get(row)?.cast_unsigned()));
        Some(combined(&hashes.collect::<Option<Vec<u64>>>()?).cast_signed())
    })
}

/// Returns one hash of the hashes of several values.
fn hash_many(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let parts = (0..arguments.len()).map(|index| hashes(arguments, index)).collect::<Result<Vec<_>>>()?;
    arguments.make_longs(|row| {
        let hashes = parts.iter().map(|hash_of| hash_of(row));
        Some(combined(&hashes.collect::<Option<Vec<u64>>>()?).cast_signed())
    })
}

/// Returns the hash of hashes, in their order.
fn combined(hashes: &[u64]) -> u64 {
    let bytes: Vec<u8> = hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
    xxh64(&bytes)
}

/// Returns the hash of a string, as `hash` does.
pub(crate) fn hash_string(text: &str) -> u64 {
    xxh64(text.as_bytes())
}

/// Returns the XXH64 hash of bytes, with seed 0.
fn xxh64(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}
