//! Punycode (RFC 3492), which writes any text in the letters of a domain name.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::super::types::KqlType;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

const TEXT: Returns = Returns::Is(KqlType::String);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("punycode_from_string", "s", TEXT, |arguments| converted(arguments, encode)),
    entry("punycode_to_string", "s", TEXT, |arguments| converted(arguments, decode)),
    entry("punycode_domain_from_string", "s", TEXT, |arguments| converted(arguments, domain_of)),
    entry("punycode_domain_to_string", "s", TEXT, |arguments| converted(arguments, encoded_domain)),
];

const BASE: u32 = 36;
const LEAST_THRESHOLD: u32 = 1;
const MOST_THRESHOLD: u32 = 26;
const SKEW: u32 = 38;
const DAMP: u32 = 700;
const FIRST_BIAS: u32 = 72;
const FIRST_CODE: u32 = 128;
/// What may stand between labels (RFC 3490).
const FULL_STOPS: [char; 4] = ['.', '\u{3002}', '\u{FF0E}', '\u{FF61}'];
/// Longer texts are no labels: their conversion is quadratic.
const MAX_CHARS: usize = 2_048;

fn converted(arguments: &Arguments, convert: impl Fn(&str) -> Option<String>) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        let whole = texts.get(row);
        if whole.len() <= MAX_CHARS * 4 {
            text.push_str(&convert(whole).unwrap_or_default());
        }
        Ok(())
    })
}

/// Each label of a domain that says that it is encoded, decoded.
fn domain_of(domain: &str) -> Option<String> {
    let labels = domain.split('.').map(|label| match label.get(..4) {
        Some(prefix) if prefix.eq_ignore_ascii_case("xn--") => decode(label.get(4..)?),
        _ => Some(label.to_owned()),
    });
    Some(labels.collect::<Option<Vec<_>>>()?.join("."))
}

/// Each label of a domain that has other letters than a domain's, encoded.
fn encoded_domain(domain: &str) -> Option<String> {
    let labels = domain.split(FULL_STOPS).map(|label| match label.is_ascii() {
        true => Some(label.to_owned()),
        false => Some(format!("xn--{}", encode(label)?)),
    });
    Some(labels.collect::<Option<Vec<_>>>()?.join("."))
}

fn threshold(position: u32, bias: u32) -> u32 {
    position.saturating_sub(bias).clamp(LEAST_THRESHOLD, MOST_THRESHOLD)
}

fn adapted(delta: u32, points: u32, is_first: bool) -> u32 {
    let mut delta = if is_first { delta / DAMP } else { delta / 2 };
    delta += delta / points;
    let mut position = 0;
    while delta > (BASE - LEAST_THRESHOLD) * MOST_THRESHOLD / 2 {
        delta /= BASE - LEAST_THRESHOLD;
        position += BASE;
    }
    position + (BASE - LEAST_THRESHOLD + 1) * delta / (delta + SKEW)
}

fn encode(text: &str) -> Option<String> {
    let codes: Vec<u32> = text.chars().map(u32::from).collect();
    if codes.len() > MAX_CHARS {
        return None;
    }
    let mut encoded: String = text.chars().filter(char::is_ascii).collect();
    let basic = u32::try_from(encoded.len()).ok()?;
    let total = u32::try_from(codes.len()).ok()?;
    if basic > 0 {
        encoded.push('-');
    }
    let (mut code, mut delta, mut bias, mut handled) = (FIRST_CODE, 0_u32, FIRST_BIAS, basic);
    while handled < total {
        let next = codes.iter().copied().filter(|other| *other >= code).min()?;
        delta = delta.checked_add((next - code).checked_mul(handled + 1)?)?;
        code = next;
        for other in &codes {
            if *other < code {
                delta = delta.checked_add(1)?;
            }
            if *other == code {
                write_number(&mut encoded, delta, bias)?;
                bias = adapted(delta, handled + 1, handled == basic);
                delta = 0;
                handled += 1;
            }
        }
        delta = delta.checked_add(1)?;
        code = code.checked_add(1)?;
    }
    Some(encoded)
}

fn write_number(encoded: &mut String, number: u32, bias: u32) -> Option<()> {
    let (mut rest, mut position) = (number, BASE);
    loop {
        let threshold = threshold(position, bias);
        if rest < threshold {
            break;
        }
        encoded.push(digit_char(threshold + (rest - threshold) % (BASE - threshold))?);
        rest = (rest - threshold) / (BASE - threshold);
        position += BASE;
    }
    encoded.push(digit_char(rest)?);
    Some(())
}

fn digit_char(digit: u32) -> Option<char> {
    char::from_u32(if digit < 26 { u32::from(b'a') + digit } else { u32::from(b'0') + digit - 26 })
}

fn decode(text: &str) -> Option<String> {
    let (basic, rest) = text.rsplit_once('-').unwrap_or(("", text));
    let mut codes: Vec<u32> = basic.chars().map(u32::from).collect();
    let (mut code, mut at, mut bias) = (FIRST_CODE, 0_u32, FIRST_BIAS);
    let mut digits = rest.chars().map(|char| char.to_ascii_lowercase().to_digit(BASE));
    while let Some(first) = digits.next() {
        let (before, mut weight, mut position) = (at, 1_u32, BASE);
        let mut digit = first;
        loop {
            // As a digit, `a` is 0 and `0` is 26.
            let value = (digit? + 26) % BASE;
            at = at.checked_add(value.checked_mul(weight)?)?;
            let threshold = threshold(position, bias);
            if value < threshold {
                break;
            }
            weight = weight.checked_mul(BASE - threshold)?;
            position += BASE;
            digit = digits.next()?;
        }
        let points = u32::try_from(codes.len()).ok()? + 1;
        bias = adapted(at - before, points, before == 0);
        code = code.checked_add(at / points)?;
        at %= points;
        codes.insert(usize::try_from(at).ok()?, code);
        at += 1;
        if codes.len() > MAX_CHARS {
            return None;
        }
    }
    codes.into_iter().map(char::from_u32).collect()
}
