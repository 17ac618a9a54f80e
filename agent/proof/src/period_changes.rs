//! Changes of a row since the period before it, of which the text says no value: `in April revenue slipped by 3.3 %`, `up 10.6 %
//! year over year`.

use chrono::{Datelike, NaiveDate};
use serde_json::Value;

use super::announced::{AnnouncedOperation, ChangeDirection, direction_in};
use super::labels::{other_length, quarter_of, year_of};
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, WrittenNumber, says};
use super::{ProofOrigin, number_of};

pub(super) const OVER_YEAR: [&str; 7] =
    ["year over year", "year on year", "yoy", "the year before", "a year earlier", "a year ago", "same quarter"];
pub(super) const OVER_PERIOD: [&str; 9] = [
    "quarter over quarter",
    "quarter on quarter",
    "qoq",
    "month over month",
    "month on month",
    "mom",
    "on the previous",
    "from the previous",
    "week over week",
];
/// Names of months and days of the week, of which each begins with three letters of its own.
const ORDERED: [&str; 19] = [
    "mon", "tue", "wed", "thu", "fri", "sat", "sun", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep",
    "oct", "nov", "dec",
];

/// Returns what proves the percentage by which the only row that a clause names has changed since the one before it, or since a
/// year before.
pub(super) fn period_change_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let announced = AnnouncedOperation::in_text(place.clause);
    let is_over_year = says(place.clause, &OVER_YEAR);
    let is_change = announced.growth || announced.direction.is_some() || is_over_year || number.value < 0.0;
    if !number.is_percent || !is_change || result.rows.len() < 2 || token.is_of_points(place.clause) {
        return None;
    }
    let row = changed_row(result, token, place, is_over_year)?;
    let base = if is_over_year { row_of_year_before(result, row)? } else { row_before(result, row)? };
    let direction = direction_in(place.clause).or(announced.direction);
    measured_columns(result, place.sentence).into_iter().find_map(|column| {
        let value = |row: usize| number_of(result.rows.get(row)?.get(column)?);
        let (now, then) = (value(row)?, value(base)?);
        let change = 100.0 * (now - then) / then;
        let is_so = match direction {
            Some(ChangeDirection::Up) => change > 0.0,
            Some(ChangeDirection::Down) => change < 0.0,
            None => true,
        };
        let fits =
            number.stands_for(change, ShareScale::Percent) || number.stands_for(change.abs(), ShareScale::Percent);
        (is_so && fits && then != 0.0).then(|| ProofOrigin::Expression {
            expression: format!("100.0e0 * ({now:?} - ({then:?})) / ({then:?})"),
            value: change,
            cells: vec![result.cell(row, column), result.cell(base, column)],
        })
    })
}

/// Returns the row that has changed: the one right behind the number, `by 3.3 % in April`, else the only one that the clause
/// names; where it says since when, the first that the sentence names.
fn changed_row(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>, is_over_year: bool) -> Option<usize> {
    const IN: [&str; 5] = ["in", "im", "en", "au", "em"];
    const NEAR: usize = 24;
    let behind = place.clause.get(token.end..)?.trim_start_matches(['%', ' ', '*']);
    let near = behind.char_indices().nth(NEAR).map_or(behind, |(at, _)| &behind[..at]);
    let (link, rest) = near.split_once(' ').unwrap_or_default();
    if IN.contains(&link)
        && let [row] = *result.labelled(rest).as_slice()
    {
        return Some(row);
    }
    let says_since = is_over_year || says(place.clause, &OVER_PERIOD);
    match (result.named_rows(place).as_slice(), says_since) {
        ([row], _) => Some(*row),
        (_, true) => result.labels_in_order(place.sentence).first().map(|(row, _)| *row),
        _ => None,
    }
}

/// Returns the row of the period before that of a row: the latest of those before it, else the one above it where the names
/// of all rows are months, days of the week or quarters.
pub(super) fn row_before(result: &ProofRows, row: usize) -> Option<usize> {
    if result.times().is_some() {
        let own = result.time_of(row)?;
        let earlier = (0..result.rows.len()).filter_map(|other| Some((result.time_of(other)?, other)));
        let mut earlier: Vec<(NaiveDate, usize)> = earlier.filter(|(day, _)| *day < own).collect();
        earlier.sort_unstable();
        let latest = earlier.last().copied()?;
        let is_only = earlier.iter().filter(|(day, _)| *day == latest.0).count() == 1;
        return is_only.then_some(latest.1);
    }
    let is_period = |row: &Vec<Value>| row.first().is_some_and(is_name_of_period);
    result.rows.iter().all(is_period).then(|| row.checked_sub(1)).flatten()
}

/// Whether a name is one of a month, a day of the week or a quarter.
pub(super) fn is_name_of_period(value: &Value) -> bool {
    let begin = value.as_str().and_then(|name| name.get(..3)).map(str::to_lowercase).unwrap_or_default();
    let is_ordered = ORDERED.contains(&begin.as_str()) && value.as_str().is_some_and(is_one_word);
    is_ordered || quarter_of(value).is_some() || is_quarter(value)
}

fn is_one_word(name: &str) -> bool {
    !name.contains(' ') && (name.len() > 3 || !other_length(name).is_empty() || name == "May")
}

fn is_quarter(value: &Value) -> bool {
    value.as_str().is_some_and(|name| ["Q1", "Q2", "Q3", "Q4"].contains(&name))
}

/// Returns the row of the same month or quarter of the year before.
pub(super) fn row_of_year_before(result: &ProofRows, row: usize) -> Option<usize> {
    if result.times().is_some() {
        let own = result.time_of(row)?;
        let wanted = NaiveDate::from_ymd_opt(own.year() - 1, own.month(), own.day())?;
        let mut found = (0..result.rows.len()).filter(|other| result.time_of(*other) == Some(wanted));
        return found.next().filter(|_| found.next().is_none());
    }
    let name = |row: usize| result.rows.get(row)?.first();
    let year = |row: usize| name(row).and_then(year_of)?.parse::<i32>().ok();
    let (own, quarter) = (year(row)?, name(row).and_then(quarter_of)?);
    let is_wanted = |other: &usize| year(*other) == Some(own - 1) && name(*other).and_then(quarter_of) == Some(quarter);
    let mut found = (0..result.rows.len()).filter(is_wanted);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn what_changed_since_the_period_before_is_proven() {
        let quarters = json!([["Q1 2023", 312.4], ["Q2 2023", 327.9], ["Q1 2024", 341.6], ["Q2 2024", 362.8]]);
        let of_quarters = |text: &str| doubted(&["quarter", "revenue"], quarters.clone(), text);
        let right = "Revenue in Q2 2024 was 362.8, up 10.6 % year over year.";
        assert_eq!(of_quarters(right), Vec::<String>::new());
        assert_eq!(of_quarters(&right.replace("10.6", "16.0")), ["16.0"]);
        let months = json!([["January", 1184], ["February", 1027], ["March", 1312], ["April", 1265]]);
        let of_months = |text: &str| doubted(&["month", "orders"], months.clone(), text);
        let right = "Orders then slipped by 3.6 % in April.";
        assert_eq!(of_months(right), Vec::<String>::new());
        assert_eq!(of_months(&right.replace("3.6", "6.3")), ["6.3"]);
    }
}
