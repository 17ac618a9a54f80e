//! Texts as URLs, base64 and hashes, and new guids.

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
use uuid::Uuid;

use super::super::types::KqlType;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry, volatile};

const TEXT: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const GUID: Returns = Returns::Is(KqlType::Guid);

/// What a part of a URL keeps.
const COMPONENT: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'!').remove(b'*').remove(b'(').remove(b')');

/// Standard base64, with its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("url_encode", "s", TEXT, url_encode),
    entry("url_encode_component", "s", TEXT, url_encode_component),
    entry("url_decode", "s", TEXT, url_decode),
    entry("base64_encode_tostring", "s", TEXT, base64_encode),
    entry("base64_encodestring", "s", TEXT, base64_encode),
    entry("base64_decode_tostring", "s", TEXT, base64_decode),
    entry("base64_decodestring", "s", TEXT, base64_decode),
    entry("base64_decode_toarray", "s", DYNAMIC, base64_to_array),
    entry("base64_encode_fromarray", "j", TEXT, base64_from_array),
    entry("base64_decode_toguid", "s", GUID, base64_to_guid),
    entry("base64_encode_fromguid", "x", TEXT, base64_from_guid),
    entry("hash_md5", "x", TEXT, digest::<Md5>),
    entry("hash_sha1", "x", TEXT, digest::<Sha1>),
    entry("hash_sha256", "x", TEXT, digest::<Sha256>),
    volatile("new_guid", "", GUID, new_guid),
];

fn url_encode(arguments: &Arguments) -> Result<ArrayRef> {
    encoded(arguments, "+")
}

fn url_encode_component(arguments: &Arguments) -> Result<ArrayRef> {
    encoded(arguments, "%20")
}

/// As .NET writes it: in small hexadecimal digits.
fn encoded(arguments: &Arguments, space: &str) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        for part in utf8_percent_encode(texts.get(row), COMPONENT) {
            match part {
                "%20" => text.push_str(space),
                part if part.starts_with('%') => text.push_str(&part.to_ascii_lowercase()),
                part => text.push_str(part),
            }
        }
        Ok(())
    })
}

fn url_decode(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        text.push_str(&percent_decode_str(&texts.get(row).replace('+', " ")).decode_utf8_lossy());
        Ok(())
    })
}

fn base64_encode(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        BASE64.encode_string(texts.get(row), text);
        Ok(())
    })
}

/// Empty where it is no base64, or no text is in it.
fn base64_decode(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        let decoded = BASE64.decode(texts.get(row)).ok().and_then(|bytes| String::from_utf8(bytes).ok());
        text.push_str(&decoded.unwrap_or_default());
        Ok(())
    })
}

fn base64_to_array(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_dynamics(|row| Ok(BASE64.decode(texts.get(row)).map_or(Value::Null, Value::from)))
}

fn base64_from_array(arguments: &Arguments) -> Result<ArrayRef> {
    let arrays = arguments.dynamics(0)?;
    arguments.make_texts(|row, text| {
        let byte = |value: &Value| u8::try_from(value.as_i64()?).ok();
        let bytes: Option<Vec<u8>> = arrays.elements(row).and_then(|elements| elements.iter().map(byte).collect());
        text.push_str(&bytes.map(|bytes| BASE64.encode(bytes)).unwrap_or_default());
        Ok(())
    })
}

/// In the order of bytes that .NET has.
fn base64_to_guid(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_some_texts(|row, text| {
        let bytes: Option<[u8; 16]> = BASE64.decode(texts.get(row)).ok().and_then(|bytes| bytes.try_into().ok());
        let Some(bytes) = bytes else { return Ok(false) };
        text.push_str(&Uuid::from_bytes_le(bytes).hyphenated().to_string());
        Ok(true)
    })
}

fn base64_from_guid(arguments: &Arguments) -> Result<ArrayRef> {
    let guids = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        if let Ok(guid) = Uuid::try_parse(guids.get(row)) {
            BASE64.encode_string(guid.to_bytes_le(), text);
        }
        Ok(())
    })
}

/// Of the value's text, a time's too.
fn digest<D: Digest>(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        push_hexadecimal(&D::digest(texts.get(row)), text);
        Ok(())
    })
}

fn push_hexadecimal(bytes: &[u8], text: &mut String) {
    bytes.iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
}

fn new_guid(arguments: &Arguments) -> Result<ArrayRef> {
    arguments.make_some_texts(|_, text| {
        text.push_str(&Uuid::new_v4().hyphenated().to_string());
        Ok(true)
    })
}
