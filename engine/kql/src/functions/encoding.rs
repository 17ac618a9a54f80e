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
    entry("hash", "x?i", Returns::By(hashed), hash),
    entry("hash_xxhash64", "x?i", Returns::By(hashed), hash),
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

/// Only of what the bytes are known of that Kusto hashes.
fn hashed(types: &[KqlType]) -> std::result::Result<KqlType, String> {
    match types.first() {
        Some(KqlType::String | KqlType::Long | KqlType::DateTime | KqlType::TimeSpan) => Ok(KqlType::Long),
        Some(other) => Err(format!("hash() does not take a {} here; convert it with tostring(...)", other.name())),
        None => Err("hash() takes a value".to_owned()),
    }
}

/// XXH64 of a text's bytes or a number's, or where it lies among so many buckets.
fn hash(arguments: &Arguments) -> Result<ArrayRef> {
    let buckets = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    let is_text = arguments.kql_type(0) == KqlType::String;
    let (texts, numbers) = (arguments.texts(0)?, arguments.longs(0)?);
    arguments.make_longs(|row| {
        let hash = match is_text {
            true => xxh64(texts.get(row).as_bytes()),
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

/// The hash of a text, as `hash` has it.
pub(crate) fn hash_of_text(text: &str) -> u64 {
    xxh64(text.as_bytes())
}

/// XXH64 with seed 0, as <https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md> has it.
fn xxh64(bytes: &[u8]) -> u64 {
    const PRIMES: [u64; 5] = [
        11_400_714_785_074_694_791,
        14_029_467_366_897_019_727,
        1_609_587_929_392_839_161,
        9_650_029_242_287_828_579,
        2_870_177_450_012_600_261,
    ];
    const LANES: usize = 4;
    let [p1, p2, p3, p4, p5] = PRIMES;
    let round = |sum: u64, input: u64| sum.wrapping_add(input.wrapping_mul(p2)).rotate_left(31).wrapping_mul(p1);
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let stripes = bytes.chunks_exact(8 * LANES);
    let rest = stripes.remainder();
    let mut hash = if bytes.len() < 8 * LANES {
        p5
    } else {
        let mut sums = [p1.wrapping_add(p2), p2, 0, 0_u64.wrapping_sub(p1)];
        for stripe in stripes {
            for (sum, lane) in sums.iter_mut().zip(stripe.chunks_exact(8)) {
                *sum = round(*sum, word(lane));
            }
        }
        let turned = sums.iter().zip([1, 7, 12, 18]).map(|(sum, bits)| sum.rotate_left(bits));
        let merged = turned.fold(0_u64, u64::wrapping_add);
        sums.iter().fold(merged, |hash, sum| (hash ^ round(0, *sum)).wrapping_mul(p1).wrapping_add(p4))
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let words = rest.chunks_exact(8);
    let mut tail = words.remainder();
    for eight in words {
        hash = (hash ^ round(0, word(eight))).rotate_left(27).wrapping_mul(p1).wrapping_add(p4);
    }
    if let Some((four, last)) = tail.split_at_checked(4) {
        hash = (hash ^ word(four).wrapping_mul(p1)).rotate_left(23).wrapping_mul(p2).wrapping_add(p3);
        tail = last;
    }
    for byte in tail {
        hash = (hash ^ u64::from(*byte).wrapping_mul(p5)).rotate_left(11).wrapping_mul(p1);
    }
    hash = (hash ^ hash >> 33).wrapping_mul(p2);
    hash = (hash ^ hash >> 29).wrapping_mul(p3);
    hash ^ hash >> 32
}
