//! The rows from one that a text names to another: of `June to August brought 45 mm` those of three months.

use chrono::NaiveDate;

use super::claims::day_or_month_of;
use super::period_changes::is_name_of_period;
use super::rows::ProofRows;
use super::tokens::last_words;

/// Words between the first and the last.
const TO: [&str; 7] = ["to", "through", "until", "till", "–", "-", "bis"];

impl ProofRows {
    /// Returns the day or the month that a row is of: the first that it has.
    pub(super) fn day_of_row(&self, row: usize) -> Option<NaiveDate> {
        self.rows.get(row)?.iter().find_map(day_or_month_of)
    }

    /// Returns the rows from one that a text names to another.
    pub(super) fn rows_between(&self, text: &str) -> Option<Vec<usize>> {
        let named = self.labels_in_order(text);
        let [(first, first_end), (last, _)] = *named.as_slice() else { return None };
        let (start, _) = self.label_place(first, text)?;
        let (last_start, _) = self.label_place(last, text)?;
        let between = text.get(first_end..last_start)?.trim().to_lowercase();
        let is_between = between == "and" && last_words(&text[..start], 1) == "between";
        if !TO.contains(&between.as_str()) && !is_between {
            return None;
        }
        let are_ordered = self.rows.iter().all(|row| row.first().is_some_and(is_name_of_period));
        if are_ordered && first < last {
            return Some((first..=last).collect());
        }
        let (from, to) = (self.day_of_row(first)?, self.day_of_row(last)?);
        let is_within = |row: &usize| self.day_of_row(*row).is_some_and(|day| (from..=to).contains(&day));
        Some((0..self.rows.len()).filter(is_within).collect()).filter(|rows: &Vec<usize>| rows.len() > 1)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn what_months_make_from_one_to_another_is_proven() {
        let months = json!([
            ["2025-04", 54],
            ["2025-05", 41],
            ["2025-06", 22],
            ["2025-07", 9],
            ["2025-08", 14],
            ["2025-09", 37],
        ]);
        let is_doubted = |text: &str| !doubted(&["month", "rainfall_mm"], months.clone(), text).is_empty();
        assert!(!is_doubted("June to August brought 45 mm of rain."));
        assert!(!is_doubted("Between June and August 45 mm of rain fell."));
        assert!(is_doubted("June to August brought 47 mm of rain."));
    }
}
