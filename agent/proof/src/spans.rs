//! The rows from one that a text names to another: of `June to August brought 45 mm` those of three months; and the days between
//! their first and their last.

use chrono::{Datelike, NaiveDate};

use super::claims::day_or_month_of;
use super::foreign_numbers::without_added_part;
use super::period_changes::is_name_of_period;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, WrittenNumber, last_words};
use super::{CellReference, ProofOrigin};

/// Rows of which days are looked at.
const MAX_ROWS: usize = 100;

/// Words between the first and the last.
const TO: [&str; 7] = ["to", "through", "until", "till", "–", "-", "bis"];

/// Units of time behind a number, by their days.
const DAY_UNITS: [(&str, f64); 4] = [("day", 1.0), ("week", 7.0), ("month", 30.436_875), ("year", 365.2425)];

/// Finds `202 days between the first and the last`.
pub(super) fn days_between(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let behind = without_added_part(&place.clause[token.end..]).trim_start().to_lowercase();
    // `Six days were warmer than 21 °C` counts them.
    if ["days were", "days had", "days are", "days went"].iter().any(|words| behind.starts_with(words)) {
        return None;
    }
    let (_, length) = DAY_UNITS.iter().find(|(unit, _)| behind.starts_with(unit))?;
    let named = result.named_rows(place);
    // `Two years after B's`: of one row of a sentence that names others.
    let named = if named.len() == 1 { result.labelled(place.sentence) } else { named };
    let days: Vec<(CellReference, NaiveDate)> = result
        .cells()
        .filter(|(row, _, _)| named.is_empty() || named.contains(row))
        .filter_map(|(row, column, value)| Some((result.cell(row, column), day_or_month_of(value)?)))
        .take(MAX_ROWS)
        .collect();
    let first = days.iter().min_by_key(|(_, day)| *day)?;
    let last = days.iter().max_by_key(|(_, day)| *day)?;
    let (from, to) = (first.1.num_days_from_ce(), last.1.num_days_from_ce());
    let found = f64::from(to - from) / length;
    // Both ends may be counted.
    let is_so = |value: f64| number.stands_for(value, ShareScale::Unknown) || (value - number.value).abs() < 0.5;
    let is_counted = *length == 1.0 && is_so(found + 1.0);
    (from != to && (is_so(found) || is_counted)).then(|| ProofOrigin::Expression {
        expression: format!("({to}.0e0 - {from}.0e0) / {length:?}"),
        value: found,
        cells: vec![first.0.clone(), last.0.clone()],
    })
}

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
