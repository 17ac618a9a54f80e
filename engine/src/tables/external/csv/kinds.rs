//! What a CSV value can be, besides text. A value is of a kind only where the kind gives the value back: leading zeros, a
//! plus sign or more digits than the type has make it text.

use super::dates::{DateNumbers, clock, offset};
use super::number_form::NumberForm;

/// Kinds of values, one bit each.
pub(super) mod kind {
    /// `true` and `false`.
    pub(in crate::tables::external::csv) const BOOLEAN: u16 = 1;
    /// `t` and `f`.
    pub(in crate::tables::external::csv) const LETTER: u16 = 1 << 1;
    /// `yes` and `no`.
    pub(in crate::tables::external::csv) const YES_NO: u16 = 1 << 2;
    pub(in crate::tables::external::csv) const TIME: u16 = 1 << 3;
    pub(in crate::tables::external::csv) const DATE: u16 = 1 << 4;
    pub(in crate::tables::external::csv) const TIMESTAMP: u16 = 1 << 5;
    pub(in crate::tables::external::csv) const ZONED: u16 = 1 << 6;
    pub(in crate::tables::external::csv) const INTEGER: u16 = 1 << 7;
    pub(in crate::tables::external::csv) const FLOAT: u16 = 1 << 8;
    pub(in crate::tables::external::csv) const ALL: u16 = (1 << 9) - 1;
}

/// The largest integer up to which every one is a double.
const EXACT_DOUBLES: u64 = 1 << 53;

/// What one value can be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ValueKinds {
    /// Bits of [`kind`].
    pub kinds: u16,
    /// Whether it is `NaN` or infinity, which make a column numeric only beside numbers.
    pub float_word: bool,
    /// Whether it is the affirmative of two words.
    pub affirmative: bool,
    /// The numbers of its date.
    pub date: Option<DateNumbers>,
    /// Whether its clock has AM or PM.
    pub twelve_hours: bool,
    /// Whether it has a clock with seconds.
    pub seconds: bool,
    /// Digits of a second's fraction.
    pub fraction: u8,
}

impl ValueKinds {
    fn of_kinds(kinds: u16) -> Self {
        Self { kinds, ..Self::default() }
    }
}

/// Returns what a value can be; spaces around it do not matter.
pub(super) fn kinds_of(value: &str, numbers: NumberForm) -> ValueKinds {
    let value = value.trim_matches(' ');
    let Some(first) = value.as_bytes().first() else { return ValueKinds::default() };
    let numeric = |value: &str| numbers.plain(value).map_or(0, |plain| number(&plain));
    match first {
        b'0'..=b'9' => match numeric(value) {
            0 => temporal(value),
            kinds => ValueKinds::of_kinds(kinds),
        },
        b'-' | b'.' | b',' => match numeric(value) {
            0 => word(value),
            kinds => ValueKinds::of_kinds(kinds),
        },
        _ if value.len() <= 9 => word(value),
        _ => ValueKinds::default(),
    }
}

/// Returns whether a text looks like a number, whatever zeros it begins with: what a column is rarely named.
pub(super) fn is_numeric(value: &str) -> bool {
    let value = value.trim();
    !value.is_empty() && value.parse::<f64>().is_ok() && value.bytes().any(|byte| byte.is_ascii_digit())
}

fn word(value: &str) -> ValueKinds {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    let kinds = if is("true") || is("false") {
        kind::BOOLEAN
    } else if is("t") || is("f") {
        kind::LETTER
    } else if is("yes") || is("no") {
        kind::YES_NO
    } else {
        let magnitude = value.strip_prefix('-').unwrap_or(value);
        let is_float = ["nan", "inf", "infinity"].iter().any(|word| magnitude.eq_ignore_ascii_case(word));
        let kinds = if is_float { kind::FLOAT } else { 0 };
        return ValueKinds { kinds, float_word: is_float, ..ValueKinds::default() };
    };
    ValueKinds { kinds, affirmative: is("true") || is("t") || is("yes"), ..ValueKinds::default() }
}

fn number(value: &str) -> u16 {
    let digits = value.strip_prefix('-').unwrap_or(value);
    let whole = digits.bytes().take_while(u8::is_ascii_digit).count();
    // A zero before other digits is part of a code, a postal one or a number of a telephone.
    if whole > 1 && digits.starts_with('0') {
        return 0;
    }
    if whole == digits.len() {
        return match value.parse::<i64>() {
            // More digits than a bigint has are a name for something, which a double would change.
            Err(_) => 0,
            Ok(integer) if integer.unsigned_abs() > EXACT_DOUBLES => kind::INTEGER,
            Ok(0) if whole < value.len() => kind::FLOAT,
            Ok(_) => kind::INTEGER | kind::FLOAT,
        };
    }
    let plain = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'-' | b'+'));
    let has_digit = digits.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
    match value.parse::<f64>() {
        Ok(float) if plain && has_digit && float.is_finite() => kind::FLOAT,
        _ => 0,
    }
}

fn temporal(value: &str) -> ValueKinds {
    if let Some((_, form, "")) = clock(value) {
        let kinds = if form.twelve_hours { 0 } else { kind::TIME };
        return ValueKinds { kinds, fraction: form.fraction, seconds: form.seconds, ..ValueKinds::default() };
    }
    let Some((numbers, rest)) = DateNumbers::read(value) else { return ValueKinds::default() };
    let date = Some(numbers);
    if rest.is_empty() {
        return ValueKinds { kinds: kind::DATE, date, ..ValueKinds::default() };
    }
    let zoned = || {
        let (_, form, rest) = clock(rest.strip_prefix(['T', 't', ' '])?)?;
        let is_zoned = offset(rest)?.is_some();
        if is_zoned && (!form.seconds || rest.starts_with([' ', '\t']) && rest.contains(['+', '-'])) {
            return None;
        }
        let kinds = if is_zoned { kind::ZONED } else { kind::TIMESTAMP };
        let (twelve_hours, seconds, fraction) = (form.twelve_hours, form.seconds, form.fraction);
        Some(ValueKinds { kinds, date, twelve_hours, seconds, fraction, ..ValueKinds::default() })
    };
    zoned().unwrap_or_default()
}
