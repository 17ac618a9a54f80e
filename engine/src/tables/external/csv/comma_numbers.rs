//! Whether a column of text is one of numbers with commas, for the point or between thousands: nobody can tell from `1,234`, and
//! so it stays text, which the report says.

use super::number_form::NO_BREAK_SPACES;

/// What is known of a column's commas after some of its values. It begins closed: most columns are of other values.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommaNumbers {
    /// Whether each value is a number whose comma may be its point.
    decimal: bool,
    /// Whether each value is a number whose commas may be between thousands.
    grouped: bool,
    /// Whether each value is a number whose comma may be its point, and whose points are between thousands.
    dotted: bool,
    /// Whether a comma was seen.
    has_comma: bool,
}

impl CommaNumbers {
    /// Starts with a value behind numbers, or with the first of all.
    pub(super) fn beginning_with(value: &str) -> Self {
        let mut begun = Self { decimal: true, grouped: true, dotted: true, has_comma: false };
        begun.update(value);
        begun
    }

    /// Adds a value.
    pub(super) fn update(&mut self, value: &str) {
        if !self.decimal && !self.grouped && !self.dotted {
            return;
        }
        let value = value.trim_matches(' ');
        let unsigned = value.strip_prefix(['-', '+']).unwrap_or(value);
        // Those between thousands are read wherever the point is known.
        let joined = (!unsigned.is_ascii()).then(|| unsigned.replace(NO_BREAK_SPACES, ""));
        let unsigned = joined.as_deref().unwrap_or(unsigned);
        self.decimal = self.decimal && is_decimal(unsigned);
        self.grouped = self.grouped && is_grouped(unsigned);
        self.dotted = self.dotted && is_dotted(unsigned);
        self.has_comma |= unsigned.contains(',');
    }

    /// Returns what a reader of the report is told.
    pub(super) fn note(self) -> Option<String> {
        const POINT: &str = "CAST(replace(column, ',', '.') AS DOUBLE)";
        const NOTHING: &str = "CAST(replace(column, ',', '') AS DOUBLE)";
        const BOTH: &str = "CAST(replace(replace(column, '.', ''), ',', '.') AS DOUBLE)";
        let note = match (self.decimal, self.grouped) {
            _ if !self.has_comma => return None,
            (true, true) => format!(
                "numbers with a comma, for the point (decimal_separator, or {POINT}) or between thousands (thousands, or \
                 {NOTHING})"
            ),
            (true, false) => {
                format!("numbers with a comma for the point; say so with decimal_separator, or write {POINT}")
            }
            (false, true) => {
                format!("numbers with commas between thousands; say so with thousands, or write {NOTHING}")
            }
            (false, false) if self.dotted => format!(
                "numbers with a comma for the point and points between thousands; say so with decimal_separator and \
                 thousands, or write {BOTH}"
            ),
            (false, false) => return None,
        };
        Some(note)
    }
}

fn are_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a text is `1234` or `1234,5`.
fn is_decimal(text: &str) -> bool {
    match text.split_once(',') {
        Some((whole, fraction)) => are_digits(whole) && are_digits(fraction),
        None => are_digits(text),
    }
}

/// Whether a text is `1234`, `1,234` or `1,234.5`.
fn is_grouped(text: &str) -> bool {
    has_groups_and_point(text, ',', '.')
}

/// Whether a text is `1234`, `1.234` or `1.234,5`.
fn is_dotted(text: &str) -> bool {
    has_groups_and_point(text, '.', ',')
}

fn has_groups_and_point(text: &str, between: char, point: char) -> bool {
    let (whole, fraction) = text.split_once(point).unwrap_or((text, "0"));
    let mut groups = whole.split(between);
    let first = groups.next().unwrap_or_default();
    let has_groups = whole.contains(between);
    are_digits(first)
        && (!has_groups || first.len() <= 3)
        && groups.all(|group| group.len() == 3 && are_digits(group))
        && are_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(values: &[&str]) -> String {
        let mut values = values.iter();
        let mut commas = CommaNumbers::beginning_with(values.next().unwrap());
        values.for_each(|value| commas.update(value));
        commas.note().unwrap_or_default()
    }

    #[test]
    fn commas_are_points_or_between_thousands() {
        assert!(note(&["1,5", "-22", " 3,25 "]).starts_with("numbers with a comma for the point"));
        assert!(note(&["1,000", "2,500.75", "12"]).starts_with("numbers with commas between thousands"));
        assert!(note(&["1.234,56", "12,00", "-3,50", "1.000"]).contains("a comma for the point and points between"));
        assert!(note(&["1\u{a0}234,56", "-12,5"]).starts_with("numbers with a comma for the point"));
        assert!(note(&["1,000", "-25,000"]).starts_with("numbers with a comma, for the point"));
        for values in [["12", "00501"], ["1,5", "x"], ["1,", "2,5"], [",5", "1,5"], ["1,2,3", "1,5"], ["1,00.5", "1,5"]]
        {
            assert_eq!(note(&values), "", "{values:?}");
        }
    }
}
