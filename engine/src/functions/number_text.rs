//! PostgreSQL's patterns of numbers: `to_char(1234.5, '9,999.99')`.

use datafusion::error::Result;

use super::definition::invalid;

/// The most digits of a pattern.
const MAX_DIGITS: usize = 60;
/// The most letters of a number in Roman numerals.
const MOST_ROMAN: usize = 15;

/// A number that a pattern shows.
#[derive(Debug, Clone, Copy)]
pub(super) enum ShownNumber {
    Double(f64),
    /// An integer or a decimal: the number without its point, and how many digits are behind that.
    Decimal(i128, i8),
}

impl ShownNumber {
    fn is_negative(self) -> bool {
        match self {
            Self::Double(value) => value < 0.0,
            Self::Decimal(unscaled, _) => unscaled < 0,
        }
    }

    /// Returns the digits before the point and so many behind it, without a sign; `None` of what is no finite number. A decimal is
    /// rounded half away from zero.
    fn digits(self, places: usize) -> Option<(String, String)> {
        let shown = match self {
            Self::Double(value) => value.is_finite().then(|| format!("{:.places$}", value.abs()))?,
            Self::Decimal(unscaled, scale) => return Some(decimal_digits(unscaled.unsigned_abs(), scale, places)),
        };
        let (whole, fraction) = shown.split_once('.').unwrap_or((&shown, ""));
        Some((whole.to_owned(), fraction.to_owned()))
    }
}

fn decimal_digits(unscaled: u128, scale: i8, places: usize) -> (String, String) {
    let behind = usize::try_from(scale).unwrap_or(0);
    let cut = behind.saturating_sub(places);
    let divisor = u32::try_from(cut).ok().and_then(|cut| 10_u128.checked_pow(cut));
    let rounded = divisor.map_or(0, |divisor| (unscaled + divisor / 2) / divisor);
    // What a negative scale leaves out, and the places that the number has none for.
    let zeros = places.saturating_sub(behind) + if scale < 0 { usize::from(scale.unsigned_abs()) } else { 0 };
    let mut digits = format!("{rounded}{}", "0".repeat(zeros));
    if digits.len() <= places {
        digits.insert_str(0, &"0".repeat(places + 1 - digits.len()));
    }
    let fraction = digits.split_off(digits.len() - places);
    (digits, fraction)
}

/// Returns a number as a pattern says; with `#` for its digits, where it has more than the pattern. Errors: a pattern that means
/// nothing.
pub(super) fn number_text(value: ShownNumber, pattern: &str) -> Result<String> {
    let wrong = || invalid(format!("`{pattern}` is no pattern of a number; write 999,990.00"));
    let mut fills = true;
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("FM").or_else(|| body.strip_prefix("fm")) {
        (fills, body) = (false, rest);
    }
    // As in PostgreSQL it is a letter like others, before the blanks and the sign of the number.
    let (dollar, body) = taken(body, body.strip_prefix('$'));
    let behind_dollar = |text: String| if dollar { format!("${text}") } else { text };
    if let "RN" | "rn" = body {
        let roman = roman_text(value);
        let roman = if body == "rn" { roman.to_lowercase() } else { roman };
        return Ok(behind_dollar(if fills { format!("{roman:>MOST_ROMAN$}") } else { roman }));
    }
    let (ordinal, body) = match (body.strip_suffix("TH"), body.strip_suffix("th")) {
        (Some(rest), _) => (Some(true), rest),
        (_, Some(rest)) => (Some(false), rest),
        (None, None) => (None, body),
    };
    let (in_brackets, body) = taken(body, body.strip_suffix("PR"));
    let (first_sign, body) = taken(body, body.strip_prefix("SG"));
    let (leading_sign, body) = taken(body, body.strip_prefix('S'));
    let (trailing_sign, body) = taken(body, body.strip_suffix("MI").or_else(|| body.strip_suffix('S')));
    let (currency, body) = taken(body, body.strip_prefix('$').or_else(|| body.strip_prefix('L')));
    let (percent, body) = taken(body, body.strip_suffix('%'));
    let (whole, fraction) = body.split_once(['.', 'D']).map_or((body, ""), |(whole, fraction)| (whole, fraction));
    let is_digit = |letter: char| matches!(letter, '9' | '0');
    let known = whole.chars().all(|letter| is_digit(letter) || matches!(letter, ',' | 'G'));
    let digits = whole.chars().filter(|letter| is_digit(*letter)).count();
    if !known || !fraction.chars().all(is_digit) || digits + fraction.len() == 0 || digits + fraction.len() > MAX_DIGITS
    {
        return Err(wrong());
    }
    let signs = [in_brackets, first_sign, leading_sign, trailing_sign];
    if signs.iter().filter(|is_there| **is_there).count() > 1 || (ordinal.is_some() && !fraction.is_empty()) {
        return Err(wrong());
    }
    let rounded = value.digits(fraction.len());
    // A decimal that is rounded to zero has no sign; a double keeps its own, as in PostgreSQL.
    let is_decimal_zero = matches!(value, ShownNumber::Decimal(_, _))
        && rounded
            .as_ref()
            .is_some_and(|(before, behind)| before.chars().chain(behind.chars()).all(|digit| digit == '0'));
    let is_negative = value.is_negative() && !is_decimal_zero;
    let shown = rounded.filter(|(number, _)| number.trim_start_matches('0').len() <= digits);
    let fits = shown.is_some();
    let (number, mut decimals) = shown.unwrap_or_else(|| ("#".repeat(digits), "#".repeat(fraction.len())));
    // Digits from the right, so that separators stand where the pattern has them.
    let mut given = number.chars().rev();
    let significant = number.trim_start_matches('0').len();
    let zeros_from = whole.chars().filter(|letter| is_digit(*letter)).position(|letter| letter == '0');
    let forced = zeros_from.map_or(0, |at| digits - at);
    let mut reversed = String::new();
    let mut count = 0;
    for letter in whole.chars().rev() {
        if is_digit(letter) {
            let digit = given.next().unwrap_or('0');
            count += 1;
            let is_shown = count <= significant.max(forced) || (count == 1 && significant == 0 && fraction.is_empty());
            reversed.push(if is_shown { digit } else { ' ' });
        } else {
            reversed.push(if count < significant.max(forced) { ',' } else { ' ' });
        }
    }
    let whole: String = reversed.chars().rev().collect();
    let width = whole.chars().count();
    let mut text = whole.trim_start().to_owned();
    if !fraction.is_empty() {
        if !fills {
            let kept = fraction.rfind('0').map_or(0, |at| at + 1);
            while decimals.len() > kept && decimals.ends_with('0') {
                decimals.pop();
            }
            if decimals.is_empty() && text.is_empty() && digits > 0 {
                text.push('0');
            }
        }
        text.push('.');
        text.push_str(&decimals);
    }
    if currency {
        text.insert(0, '$');
    }
    if percent {
        text.push('%');
    }
    match (is_negative, leading_sign, trailing_sign) {
        _ if first_sign || in_brackets => {}
        (true, _, false) => text.insert(0, '-'),
        (false, true, _) => text.insert(0, '+'),
        (true, _, true) => text.push('-'),
        (false, _, true) if pattern.ends_with('S') => text.push('+'),
        (false, _, true) if fills => text.push(' '),
        (false, _, _) => {}
    }
    let decimals = if fraction.is_empty() { 0 } else { fraction.len() + 1 };
    let shown_width = width + decimals + usize::from(currency) + usize::from(percent);
    if in_brackets {
        text = match (is_negative, fills) {
            (true, _) => format!("<{text}>"),
            (false, true) => format!(" {text} "),
            (false, false) => text,
        };
    }
    if first_sign {
        let number = if fills { format!("{text:>shown_width$}") } else { text };
        text = format!("{}{number}", if is_negative { '-' } else { '+' });
    } else if fills {
        let extra = if in_brackets { 2 } else { 1 };
        text = format!("{text:>width$}", width = shown_width + extra);
    }
    if let Some(is_upper) = ordinal.filter(|_| fits && !is_negative) {
        let suffix = ordinal_suffix(&number);
        text.push_str(&if is_upper { suffix.to_uppercase() } else { suffix.to_owned() });
    }
    Ok(behind_dollar(text))
}

/// Returns whether something was taken from a pattern, and what is left of it.
fn taken<'a>(body: &'a str, rest: Option<&'a str>) -> (bool, &'a str) {
    (rest.is_some(), rest.unwrap_or(body))
}

/// Returns what stands behind the digits of an ordinal number in English.
fn ordinal_suffix(digits: &str) -> &'static str {
    let is_teen = digits.len() > 1 && digits.as_bytes()[digits.len() - 2] == b'1';
    match digits.as_bytes().last() {
        Some(b'1') if !is_teen => "st",
        Some(b'2') if !is_teen => "nd",
        Some(b'3') if !is_teen => "rd",
        _ => "th",
    }
}

/// Returns a number from 1 to 3999 in Roman numerals; `#` for others.
fn roman_text(value: ShownNumber) -> String {
    const NUMERALS: [(u32, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    let whole = value.digits(0).filter(|_| !value.is_negative()).and_then(|(whole, _)| whole.parse::<u32>().ok());
    let Some(mut rest) = whole.filter(|whole| (1..4000).contains(whole)) else { return "#".repeat(MOST_ROMAN) };
    let mut text = String::new();
    for (number, numeral) in NUMERALS {
        while rest >= number {
            rest -= number;
            text.push_str(numeral);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_as_postgresql_shows_them() {
        for (value, pattern, text) in [
            (1234.5, "9,999.99", " 1,234.50"),
            (485.0, "999", " 485"),
            (-485.0, "999", "-485"),
            (485.0, "09999", " 00485"),
            (148.5, "999.999", " 148.500"),
            (148.5, "FM999.999", "148.5"),
            (148.5, "FM999.990", "148.500"),
            (12345.0, "999", " ###"),
            (-12345.5, "FM9,9.9", "-#,#.#"),
            (0.1, "0.9", " 0.1"),
            (1_000_000.0, "FM9,999,999", "1,000,000"),
            (485.0, "999MI", "485 "),
            (485.0, "FM999MI", "485"),
            (-485.0, "FM999MI", "485-"),
            (485.0, "SG999", "+485"),
            (-485.0, "SG999", "-485"),
            (-5.0, "SG999", "-  5"),
            (-485.0, "999PR", "<485>"),
            (485.0, "999PR", " 485 "),
            (485.0, "FM999PR", "485"),
            (482.0, "999th", " 482nd"),
            (411.0, "FM999TH", "411TH"),
            (485.0, "RN", "        CDLXXXV"),
            (485.0, "FMRN", "CDLXXXV"),
            (5.2, "FMRN", "V"),
            (4000.0, "RN", "###############"),
        ] {
            assert_eq!(number_text(ShownNumber::Double(value), pattern).unwrap(), text, "{value} {pattern}");
        }
        for pattern in ["abc", "S999PR", "SG999MI", "9.9th"] {
            assert!(number_text(ShownNumber::Double(1.0), pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn decimals_have_all_their_digits() {
        for (unscaled, scale, pattern, text) in [
            (1_005, 3, "FM0.00", "1.01"),
            (-125, 3, "FM0.00", "-0.13"),
            (1_234_567_890_123_456_789, 2, "FM99999999999999999.00", "12345678901234567.89"),
            (7, 0, "FM0.00", "7.00"),
            (12, -3, "FM99,999", "12,000"),
            (995, 2, "9", " #"),
            (4, 1, "FM9", "0"),
            (i128::MAX, 38, "FM9.9", "1.7"),
            (-1, 2, "9", " 0"),
            (-1, 2, "99.9", "   .0"),
            (-1, 2, "9PR", " 0 "),
            (-4, 1, "FM9MI", "0"),
            (-1, 2, "SG9", "+0"),
            (0, 0, "FM99.99", "0."),
            (99_999, 0, "FM999th", "###"),
            (123, 0, "$999", "$ 123"),
            (-123, 0, "$999", "$-123"),
            (5, 0, "FM$9", "$5"),
            (-5, 0, "$99PR", "$ <5>"),
        ] {
            let shown = number_text(ShownNumber::Decimal(unscaled, scale), pattern).unwrap();
            assert_eq!(shown, text, "{unscaled} {scale} {pattern}");
        }
    }
}
