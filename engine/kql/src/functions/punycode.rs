//! Punycode (RFC 3492), which writes any string in the letters of a domain name.

use arrow::array::ArrayRef;
use datafusion::error::Result;
use idna::punycode;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("punycode_from_string", "w", STRING, |arguments| converted(arguments, encode)),
    entry("punycode_to_string", "w", STRING, |arguments| converted(arguments, decode)),
    entry("punycode_domain_from_string", "w", STRING, |arguments| converted(arguments, decoded_domain)),
    entry("punycode_domain_to_string", "w", STRING, |arguments| converted(arguments, encoded_domain)),
];

/// The separators of labels (RFC 3490).
const FULL_STOPS: [char; 4] = ['.', '\u{3002}', '\u{FF0E}', '\u{FF61}'];
/// The most characters of a label. Its conversion takes quadratic time; that of a longer one is empty.
const MAX_CHARS: usize = 2_048;

fn converted(arguments: &FunctionArguments, convert: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        let whole = strings.get(row);
        if whole.len() <= MAX_CHARS * 4 {
            text.push_str(&convert(whole).unwrap_or_default());
        }
        Ok(())
    })
}

/// Decodes the labels of a domain that begin with `xn--`.
fn decoded_domain(domain: &str) -> Option<String> {
    let labels = domain.split('.').map(|label| match label.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("xn--") => decode(label.get(4..)?),
        _ => Some(label.to_owned()),
    });
    Some(labels.collect::<Option<Vec<_>>>()?.join("."))
}

/// Encodes the labels of a domain that are not ASCII.
fn encoded_domain(domain: &str) -> Option<String> {
    let labels = domain.split(FULL_STOPS).map(|label| match label.is_ascii() {
        true => Some(label.to_owned()),
        false => Some(format!("xn--{}", encode(label)?)),
    });
    Some(labels.collect::<Option<Vec<_>>>()?.join("."))
}

fn encode(label: &str) -> Option<String> {
    is_short(label).then(|| punycode::encode_str(label))?
}

fn decode(label: &str) -> Option<String> {
    punycode::decode_to_string(label).filter(|decoded| is_short(decoded))
}

fn is_short(label: &str) -> bool {
    label.chars().nth(MAX_CHARS).is_none()
}
