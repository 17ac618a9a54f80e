//! Numbers that are written as texts: the names of months, and amounts with a currency or commas.

use chrono::{Datelike, NaiveDate};

/// Returns the number of the month that a text is the name of: 3 of `March` and `mar`.
pub(super) fn month_number(text: &str) -> Option<u32> {
    let first = NaiveDate::parse_from_str(&format!("1 {} 2000", text.trim()), "%d %B %Y").ok()?;
    text.trim().chars().all(char::is_alphabetic).then(|| first.month())
}

/// Returns the digits of an amount with a currency or with commas between its thousands: `1000` of `$1,000`.
pub(super) fn amount_in(text: &str) -> Option<String> {
    const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];
    let trimmed = text.trim();
    let bare = trimmed.trim_start_matches(CURRENCIES).trim_end_matches(CURRENCIES).trim();
    let (whole, decimals) = bare.split_once('.').map_or((bare, None), |(whole, decimals)| (whole, Some(decimals)));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let are_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let rest: Vec<&str> = groups.collect();
    let is_number = are_digits(first)
        && (rest.is_empty() || first.len() <= 3)
        && rest.iter().all(|group| group.len() == 3 && are_digits(group))
        && decimals.is_none_or(are_digits);
    let number = bare.replace(',', "");
    (is_number && number != trimmed).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_and_amounts_are_numbers() {
        assert_eq!((month_number("March"), month_number("sep"), month_number("3")), (Some(3), Some(9), None));
        for (text, expected) in [
            ("$100", Some("100")),
            ("€ 1,250.50", Some("1250.50")),
            ("1,000", Some("1000")),
            ("100", None),
            ("1,00", None),
            ("$", None),
            ("about $5", None),
        ] {
            assert_eq!(amount_in(text).as_deref(), expected, "{text}");
        }
    }
}
