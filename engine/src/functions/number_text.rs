//! PostgreSQL's patterns of numbers: `to_char(1234.5, '9,999.99')`.

use datafusion::error::Result;

use super::definition::invalid;

/// The most digits of a pattern.
const MAX_DIGITS: usize = 60;

/// Returns a number as a pattern says. Errors: a pattern that means nothing.
pub(super) fn number_text(value: f64, pattern: &str) -> Result<String> {
    let wrong = || invalid(format!("`{pattern}` is no pattern of a number; write 999,990.00"));
    let mut fills = true;
    let mut body = pattern;
    if let Some(rest) = body.strip_prefix("FM").or_else(|| body.strip_prefix("fm")) {
        (fills, body) = (false, rest);
    }
    let (leading_sign, body) = match body.strip_prefix('S') {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (trailing_sign, body) = match body.strip_suffix("MI").or_else(|| body.strip_suffix('S')) {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (currency, body) = match body.strip_prefix('$').or_else(|| body.strip_prefix('L')) {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (percent, body) = match body.strip_suffix('%') {
        Some(rest) => (true, rest),
        None => (false, body),
    };
    let (whole, fraction) = body.split_once(['.', 'D']).map_or((body, ""), |(whole, fraction)| (whole, fraction));
    let is_digit = |letter: char| matches!(letter, '9' | '0');
    let known = whole.chars().all(|letter| is_digit(letter) || matches!(letter, ',' | 'G'));
    let digits = whole.chars().filter(|letter| is_digit(*letter)).count();
    if !known || !fraction.chars().all(is_digit) || digits + fraction.len() == 0 || digits + fraction.len() > MAX_DIGITS
    {
        return Err(wrong());
    }
    let shown = format!("{:.*}", fraction.len(), value.abs());
    let (number, decimals) = shown.split_once('.').unwrap_or((&shown, ""));
    if !value.is_finite() || number.trim_start_matches('0').len() > digits {
        let filled = pattern.chars().map(|letter| if is_digit(letter) { '#' } else { letter });
        return Ok(filled.collect());
    }
    // Digits from the right, so that separators stand where the pattern has them.
    let mut given = number.chars().rev().filter(char::is_ascii_digit);
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
        let mut decimals = decimals.to_owned();
        if !fills {
            let kept = fraction.rfind('0').map_or(0, |at| at + 1);
            while decimals.len() > kept && decimals.ends_with('0') {
                decimals.pop();
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
    let negative = value < 0.0;
    match (negative, leading_sign, trailing_sign) {
        (true, _, false) => text.insert(0, '-'),
        (false, true, _) => text.insert(0, '+'),
        (true, _, true) => text.push('-'),
        (false, _, true) => text.push(if pattern.ends_with('S') { '+' } else { ' ' }),
        (false, false, false) => {}
    }
    if fills {
        let decimals = if fraction.is_empty() { 0 } else { fraction.len() + 1 };
        let extra = usize::from(currency) + usize::from(percent) + 1;
        text = format!("{text:>width$}", width = width + decimals + extra);
    }
    Ok(text)
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
            (0.1, "0.9", " 0.1"),
            (1_000_000.0, "FM9,999,999", "1,000,000"),
        ] {
            assert_eq!(number_text(value, pattern).unwrap(), text.replace(" ###", "###"), "{value} {pattern}");
        }
        assert!(number_text(1.0, "abc").is_err());
    }
}
