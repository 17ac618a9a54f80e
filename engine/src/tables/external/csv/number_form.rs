//! How the numbers of a CSV file are written: what stands for the point, and what between thousands.

use std::borrow::Cow;

/// What programs write between thousands in French, Swedish and other languages.
pub(super) const NO_BREAK_SPACES: [char; 2] = ['\u{a0}', '\u{202f}'];

/// The form of numbers that somebody gave, or that of SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NumberForm {
    /// Before the fraction.
    pub point: u8,
    /// Between the thousands of the whole part, if anything was given; spaces that do not break are found there without it.
    pub thousands: Option<char>,
}

impl Default for NumberForm {
    fn default() -> Self {
        Self { point: b'.', thousands: None }
    }
}

impl NumberForm {
    /// Returns whether numbers are written as in SQL.
    pub(super) fn is_plain(self) -> bool {
        self == Self::default()
    }

    /// Returns a number's text as SQL writes it; `None` where it is no number of this form, such as `1.5` where commas are the
    /// points. A text without a digit (`NaN`) is as it is.
    pub(super) fn plain(self, text: &str) -> Option<Cow<'_, str>> {
        let separator = match self.thousands {
            None if !text.is_ascii() => text.chars().find(|char| NO_BREAK_SPACES.contains(char)),
            given => given,
        };
        let is_as_written = self.is_plain() && separator.is_none();
        if is_as_written || !text.bytes().any(|byte| byte.is_ascii_digit()) {
            return Some(Cow::Borrowed(text));
        }
        let (mantissa, exponent) = match text.find(['e', 'E']) {
            Some(at) => text.split_at_checked(at)?,
            None => (text, ""),
        };
        let (sign, unsigned) = match mantissa.strip_prefix('-') {
            Some(unsigned) => ("-", unsigned),
            None => ("", mantissa),
        };
        let (whole, fraction) = match unsigned.split_once(char::from(self.point)) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let whole = match separator {
            Some(separator) => without_separators(whole, separator)?,
            None => Cow::Borrowed(whole),
        };
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if !are_digits(&whole) || !fraction.is_none_or(are_digits) {
            return None;
        }
        Some(Cow::Owned(match fraction {
            Some(fraction) => format!("{sign}{whole}.{fraction}{exponent}"),
            None => format!("{sign}{whole}{exponent}"),
        }))
    }
}

/// Returns the digits of a whole part: the last group has three, those before it three or, as in India, two.
fn without_separators(whole: &str, separator: char) -> Option<Cow<'_, str>> {
    if !whole.contains(separator) {
        return Some(Cow::Borrowed(whole));
    }
    let groups: Vec<&str> = whole.split(separator).collect();
    let (first, others) = groups.split_first()?;
    let (last, middle) = others.split_last()?;
    let is_grouped = (1..=3).contains(&first.len())
        && !first.starts_with('0')
        && last.len() == 3
        && middle.iter().all(|group| matches!(group.len(), 2 | 3));
    is_grouped.then(|| Cow::Owned(groups.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_in_their_form_only() {
        let european = NumberForm { point: b',', thousands: Some('.') };
        let cases = [
            ("1.234.567,89", Some("1234567.89")),
            ("-1,5", Some("-1.5")),
            (",5", Some(".5")),
            ("12", Some("12")),
            ("1,5e-3", Some("1.5e-3")),
            ("NaN", Some("NaN")),
            ("1.5", None),
            ("1.2345", None),
            ("1,2,3", None),
            ("1,234.5", None),
            ("0.500", None),
            ("2024-01-01", None),
        ];
        for (text, expected) in cases {
            assert_eq!(european.plain(text).as_deref(), expected, "{text}");
        }
        let swiss = NumberForm { point: b'.', thousands: Some('\'') };
        assert_eq!(swiss.plain("12'345.60").as_deref(), Some("12345.60"));
        let indian = NumberForm { point: b'.', thousands: Some(',') };
        assert_eq!(indian.plain("1,23,45,678").as_deref(), Some("12345678"));
        assert_eq!(NumberForm { point: b',', thousands: None }.plain("1.234").as_deref(), None);
        assert_eq!(NumberForm::default().plain("x").as_deref(), Some("x"));
        let plain = |text: &str| NumberForm::default().plain(text).map(Cow::into_owned);
        assert_eq!(plain("-1\u{202f}234\u{202f}567.5").as_deref(), Some("-1234567.5"));
        for other in ["1\u{a0}23", "12\u{a0}mai\u{a0}2024", "1\u{a0}234,5", "1\u{a0}234\u{202f}567"] {
            assert_eq!(plain(other), None, "{other}");
        }
        let french = NumberForm { point: b',', thousands: None };
        assert_eq!(french.plain("1\u{a0}234,56").as_deref(), Some("1234.56"));
    }
}
