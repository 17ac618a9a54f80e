//! Numbers of the groups of rows that a sentence speaks of, beside the words that compare them: the total, the mean and the share of
//! `the Technical team`, of `the first week` and of `1–15 June`; rates that are called by what they count, `a defect rate of 0.26 %`;
//! changes from one row to another, `up 25.1 % on May`; and points between shares.
//!
//! As in `specific`, a number is proven so only where it is written so precisely that as many candidates would hardly give it by
//! chance.

use chrono::{Datelike, Days, NaiveDate};

use super::announced::{AnnouncedOperation, ChangeDirection, direction_in, says_loss};
use super::candidates::{Candidates, ColumnTerms, Term};
use super::labels::says_quarter;
use super::period_changes::{OVER_PERIOD, OVER_YEAR, row_before, row_of_year_before};
use super::ranks::measured_columns;
use super::rates::is_of_counts;
use super::rows::{PRONOUNS, ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, says, tokens_in};
use super::units::{factor_to_unit, is_of_other_dimension};
use super::{ProofOrigin, number_of};

/// Rows, columns and groups that are looked at.
const MAX_ROWS: usize = 100;
const MAX_COLUMNS: usize = 10;
const MAX_GROUPS: usize = 12;
/// Rows that a sentence of a change names at most.
const MAX_CHANGED: usize = 4;
/// Words behind the name of what a rate counts.
const RATES: [&str; 8] = ["rate", "rates", "ratio", "share", "percentage", "margin", "occupancy", "conversion"];
/// Words by which a percentage is a part of all.
const WHOLES: [&str; 5] = ["of the", "of all", "of total", "of its", "of their"];
/// Words by which a number is of one column for each of another.
const FOR_EACH: [&str; 5] = ["per", "each", "average", "averaged", "mean"];

/// See the module.
pub(super) fn group_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole || number.is_counted || number.value == 0.0 {
        return None;
    }
    let groups = groups_in(result, place);
    called_rate(result, token, number, place, &groups)
        .or_else(|| changed(result, token, number, place))
        .or_else(|| points_between(result, token, number, place))
        .or_else(|| of_groups(result, token, number, place, &groups))
}

/// Returns the groups of rows that a clause and its sentence speak of.
fn groups_in(result: &ProofRows, place: TokenPlace<'_>) -> Vec<Vec<usize>> {
    let before = says(place.clause, &PRONOUNS).then_some(place.before);
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for text in [place.clause, place.sentence].into_iter().chain(before) {
        groups.push(result.labelled(text));
        let by_key = result.named_by_each_key(text);
        let rows_of_every = |row: &usize| by_key.iter().all(|rows| rows.contains(row));
        groups.push((0..result.rows.len()).filter(|row| !by_key.is_empty() && rows_of_every(row)).collect());
        groups.extend(by_key.iter().cloned());
        groups.extend(rows_of_values(result, text));
        groups.extend(rows_of_period(result, text));
    }
    groups.extend(rows_of_sign(result, place.sentence));
    groups.retain(|rows| rows.len() > 1 && rows.len() < result.rows.len());
    groups.sort_unstable();
    groups.dedup();
    groups.truncate(MAX_GROUPS);
    groups
}

/// Returns the rows of each value of a column of names that a text says, also in another form: `engineers` of `Engineering`.
fn rows_of_values(result: &ProofRows, text: &str) -> Vec<Vec<usize>> {
    const STEM: usize = 6;
    let lower = text.to_lowercase();
    let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
    let stem = |name: &str| name.char_indices().nth(STEM).map(|(at, _)| name[..at].to_lowercase());
    let is_said = |name: &str| {
        let is_begun = stem(name).is_some_and(|stem| words.iter().any(|word| word.starts_with(&stem)));
        find_word(text, name).is_some() || is_begun
    };
    let mut found = Vec::new();
    for column in result.label_columns() {
        let name = |row: usize| result.rows.get(row)?.get(*column)?.as_str();
        for row in (0..result.rows.len()).filter(|row| name(*row).is_some_and(is_said)) {
            found.push((0..result.rows.len()).filter(|other| name(*other) == name(row)).collect());
        }
    }
    found
}

/// Returns the rows of the times that a text says: a half and a quarter of a year, a week of the month, days from one to another.
fn rows_of_period(result: &ProofRows, text: &str) -> Vec<Vec<usize>> {
    const WEEKS: [&str; 4] = ["first week", "second week", "third week", "fourth week"];
    const HALVES: [&str; 2] = ["first half", "second half"];
    let Some((_, times)) = result.times() else { return Vec::new() };
    let Some(first) = times.iter().flatten().min().copied() else { return Vec::new() };
    let rows_where = |is_of: &dyn Fn(NaiveDate) -> bool| -> Vec<usize> {
        (0..times.len()).filter(|row| times[*row].is_some_and(is_of)).collect()
    };
    let is_one_month = times.iter().flatten().all(|day| (day.year(), day.month()) == (first.year(), first.month()));
    let mut found = Vec::new();
    // `In the first week, and in the second`.
    let goes_on = find_word(text, "the second").is_some();
    let is_second_of = |number: u32, words: &[&str]| number == 1 && goes_on && find_word(text, words[0]).is_some();
    for (number, words) in (0_u32..).zip(WEEKS) {
        if find_word(text, words).is_none() && !is_second_of(number, &WEEKS) {
            continue;
        }
        let number = u64::from(number);
        let from = first.checked_add_days(Days::new(7 * number)).unwrap_or(first);
        let to = from.checked_add_days(Days::new(6)).unwrap_or(from);
        found.push(rows_where(&|day| (from..=to).contains(&day)));
    }
    for (number, words) in (0_u32..).zip(HALVES) {
        if find_word(text, words).is_none() && !is_second_of(number, &HALVES) {
            continue;
        }
        found.push(rows_where(&|day| match is_one_month {
            true => u32::from(day.day() > 15) == number,
            false => day.month0() / 6 == number,
        }));
    }
    for quarter in (1..=4).filter(|quarter| says_quarter(text, *quarter)) {
        let years = rows_where(&|day| find_word(text, &day.year().to_string()).is_some());
        let of_quarter = rows_where(&|day| day.month0() / 3 + 1 == quarter);
        let of_year: Vec<usize> = of_quarter.iter().copied().filter(|row| years.contains(row)).collect();
        found.push(if of_year.is_empty() { of_quarter } else { of_year });
    }
    let days: Vec<(TextToken, u32, u32)> = tokens_in(text)
        .into_iter()
        .filter_map(|token| match &token.kind {
            TextTokenKind::YearDay { month, day } => Some((token.clone(), *month, *day)),
            TextTokenKind::Date(days) if days.len() == 1 => {
                days.first().map(|day| (token.clone(), day.month(), day.day()))
            }
            _ => None,
        })
        .collect();
    for pair in days.windows(2) {
        let [(one, first_month, first_day), (other, last_month, last_day)] = pair else { continue };
        let between = text.get(one.end..other.start).unwrap_or_default().trim();
        let (from, to) = ((*first_month, *first_day), (*last_month, *last_day));
        if ["-", "–", "to", "and", "until", "through"].contains(&between) && from < to {
            found.push(rows_where(&|day| (from..=to).contains(&(day.month(), day.day()))));
        }
    }
    found
}

/// Returns the rows with a loss in a column that has gains as well, where a sentence speaks of what was spent, and those with a gain
/// where it speaks of what came in.
fn rows_of_sign(result: &ProofRows, sentence: &str) -> Vec<Vec<usize>> {
    const GAINS: [&str; 9] =
        ["received", "income", "earned", "credited", "deposits", "came in", "gains", "inflow", "inflows"];
    let signed = measured_columns(result, "").into_iter().map(|column| result.numbers(column));
    let signed = signed
        .filter(|cells| cells.iter().any(|(_, value)| *value < 0.0) && cells.iter().any(|(_, value)| *value > 0.0));
    let (is_loss, is_gain) = (says_loss(sentence), says(sentence, &GAINS));
    let of_sign = |cells: &[(usize, f64)], is_less: bool| -> Vec<usize> {
        cells.iter().filter(|(_, value)| (*value < 0.0) == is_less).map(|(row, _)| *row).collect()
    };
    signed
        .flat_map(|cells| {
            [(is_loss, true), (is_gain, false)]
                .into_iter()
                .filter(|(is_said, _)| *is_said)
                .map(|(_, is_less)| of_sign(&cells, is_less))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Returns the columns of numbers that a number may be made of, each with what makes its unit that of the number.
fn columns_of(result: &ProofRows, token: &TextToken, clause: &str) -> Vec<(usize, f64)> {
    let columns = measured_columns(result, "").into_iter();
    let columns = columns.filter(|column| !is_of_other_dimension(result, *column, token, clause)).take(MAX_COLUMNS);
    let factor = |column: usize| result.columns.get(column).and_then(|name| factor_to_unit(name, token, clause));
    columns.map(|column| (column, factor(column).unwrap_or(1.0))).collect()
}

/// Finds what a group of rows makes together, its mean, its share of all and that of one of its rows in it, and what one column of
/// it is for each of another.
fn of_groups(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
    groups: &[Vec<usize>],
) -> Option<ProofOrigin> {
    // `As of April 2024, 76.5 % are on the Free plan` is of the row of both.
    let by_key = result.named_by_each_key(place.sentence);
    let of_every_key = |row: &usize| by_key.len() > 1 && by_key.iter().all(|rows| rows.contains(row));
    let mut named: Vec<usize> = (0..result.rows.len()).filter(of_every_key).collect();
    if named.len() != 1 {
        named = result.named_rows(place);
    }
    let mut candidates = Candidates::new(result, number, place, false, &[]);
    // `19.7 degrees warmer than in January` is no sum with the 4.2 below zero.
    let is_of_pair = candidates.are_percents_only && !number.is_percent;
    candidates.are_percents_only = false;
    // Other rules have tried theirs.
    candidates.most /= 2.0;
    if candidates.most < 1.0 {
        return None;
    }
    let is_named = |row: usize| named.contains(&row);
    let columns: Vec<ColumnTerms> = columns_of(result, token, place.clause)
        .into_iter()
        .map(|(column, factor)| ColumnTerms::new(result, column, factor, is_named))
        .collect();
    // `More than half of the rain (61 %) fell on July 4`.
    if number.is_percent && says(place.sentence, &WHOLES) {
        for column in &columns {
            if let [part] = column.cells.as_slice() {
                candidates.consider_share(part, &column.total);
            }
        }
        if let Some(found) = candidates.proven() {
            return Some(found);
        }
    }
    let may_be_share = !number.is_percent || says(place.sentence, &WHOLES);
    for group in groups.iter().filter(|group| may_be_share && !(is_of_pair && group.len() == 2)) {
        for column in &columns {
            if let Some(term) = term_of(column, group) {
                candidates.consider_group(&term, column);
            }
        }
    }
    if let Some(found) = candidates.proven() {
        return Some(found);
    }
    if !says(place.sentence, if number.is_percent { &RATES } else { &FOR_EACH }) {
        return None;
    }
    for group in groups {
        let terms: Vec<Term> = columns.iter().filter_map(|column| term_of(column, group)).collect();
        candidates.consider_rates(&terms.iter().collect::<Vec<&Term>>());
    }
    candidates.proven()
}

/// Returns the sum of a group's cells in a column.
fn term_of(column: &ColumnTerms, group: &[usize]) -> Option<Term> {
    let cells = column.total.cells.iter().copied().filter(|(row, _)| group.contains(row));
    let cells: Vec<(usize, f64)> = cells.collect();
    (cells.len() > 1).then(|| Term::new(column.total.column, column.total.factor, cells))
}

/// Finds a percentage that is called by what it counts, `a 5xx error rate of 0.65 %`, of the columns `err_5xx` and `req_cnt`: of the
/// rows that are named, of a group of them, or of all.
fn called_rate(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
    groups: &[Vec<usize>],
) -> Option<ProofOrigin> {
    if !number.is_percent || token.is_of_points(place.clause) {
        return None;
    }
    let called = words_of_rate(place.sentence);
    let measured = measured_columns(result, "");
    let is_part = |column: &usize| {
        let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
        is_of_counts(result, *column) && name.split('_').any(|part| called.iter().any(|word| are_alike(part, word)))
    };
    let named = result.named_rows(place);
    let mut rows: Vec<Vec<usize>> = named.iter().map(|row| vec![*row]).collect();
    if named.is_empty() {
        rows.push((0..result.rows.len()).collect());
    }
    // The rates of two campaigns are not that of both.
    let are_alone = result.label_columns().first().is_some_and(|column| result.tells_apart(*column));
    if named.is_empty() || !are_alone {
        rows.extend(groups.iter().cloned());
    }
    let sum = |column: usize, rows: &[usize]| -> Term {
        let cells = result.numbers(column).into_iter().filter(|(row, _)| rows.contains(row));
        Term::new(column, 1.0, cells.collect())
    };
    measured.iter().filter(|column| is_part(column)).find_map(|part| {
        let wholes = measured.iter().filter(|whole| *whole != part && is_of_counts(result, **whole));
        wholes.into_iter().find_map(|whole| {
            rows.iter().find_map(|rows| {
                let (of_part, of_whole) = (sum(*part, rows), sum(*whole, rows));
                let share = 100.0 * of_part.value / of_whole.value;
                let is_so = of_part.value < of_whole.value && number.stands_for(share, ShareScale::Percent);
                let cells = [&of_part, &of_whole].into_iter().flat_map(|term| {
                    term.cells.iter().map(|(row, _)| result.cell(*row, term.column)).collect::<Vec<_>>()
                });
                is_so.then(|| ProofOrigin::Expression {
                    expression: format!("100.0e0 * {} / {}", of_part.sql(), of_whole.sql()),
                    value: share,
                    cells: cells.collect(),
                })
            })
        })
    })
}

/// Returns the lowercase words right before `rate` and the like.
fn words_of_rate(sentence: &str) -> Vec<String> {
    const NEAR: usize = 2;
    let words: Vec<String> =
        sentence.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let places = words.iter().enumerate().filter(|(_, word)| RATES.contains(&word.as_str()));
    places.flat_map(|(at, _)| words[at.saturating_sub(NEAR)..at].iter().cloned()).collect()
}

/// Whether a part of a column's name and a word begin alike: `err` and `error`, `defects` and `defect`.
fn are_alike(part: &str, word: &str) -> bool {
    const STEM: usize = 4;
    let are_long = part.len() >= STEM && word.len() >= STEM;
    let is_short = (3..STEM).contains(&part.len()) && word.starts_with(part);
    is_short || (are_long && part.get(..STEM) == word.get(..STEM))
}

/// Finds by how much percent a row that the sentence names is more or less than another, than the one before it and than that of
/// the year before.
fn changed(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let announced = AnnouncedOperation::in_text(place.clause);
    let behind = place.clause.get(token.end..).unwrap_or_default();
    let moves = says(place.clause, &["up", "down"]) || says(behind, &OVER_YEAR) || says(behind, &OVER_PERIOD);
    if !number.is_percent || token.is_of_points(place.clause) || !(announced.growth || announced.difference || moves) {
        return None;
    }
    let named = result.labelled(place.sentence);
    if named.is_empty() || named.len() > MAX_CHANGED {
        return None;
    }
    let direction = match (says(place.clause, &["up"]), says(place.clause, &["down"])) {
        (true, false) => Some(ChangeDirection::Up),
        (false, true) => Some(ChangeDirection::Down),
        _ => direction_in(place.clause),
    };
    // `Up 10.6 % year over year and 6.2 % quarter over quarter` is of the row that is named first.
    let first = result.labels_in_order(place.sentence).first().map(|(row, _)| *row);
    let base = match (first, says(behind, &OVER_YEAR), says(behind, &OVER_PERIOD)) {
        (Some(row), true, false) => row_of_year_before(result, row),
        (Some(row), false, true) => row_before(result, row),
        _ => None,
    };
    let pairs: Vec<(usize, usize)> = match (first.zip(base), named.as_slice()) {
        (Some(pair), _) => vec![pair],
        (None, [row]) => row_before(result, *row).map(|base| (*row, base)).into_iter().collect(),
        (None, rows) => {
            let others =
                |row: usize| rows.iter().copied().filter(move |base| *base != row).map(move |base| (row, base));
            rows.iter().copied().flat_map(others).collect()
        }
    };
    let mut candidates = Candidates::new(result, number, place, false, &[]);
    for column in measured_columns(result, place.sentence) {
        let term =
            |row: usize| Some(Term::new(column, 1.0, vec![(row, number_of(result.rows.get(row)?.get(column)?)?)]));
        for (now, base) in pairs.iter().filter_map(|(now, base)| term(*now).zip(term(*base))) {
            let change = 100.0 * (now.value - base.value) / base.value;
            let is_so = match direction {
                Some(ChangeDirection::Up) => change > 0.0,
                Some(ChangeDirection::Down) => change < 0.0,
                None => true,
            };
            if is_so {
                let sql = || format!("abs(100.0e0 * ({} - {base}) / {base})", now.sql(), base = base.sql());
                candidates.consider(change.abs(), sql, &[&now, &base]);
            }
        }
    }
    candidates.proven()
}

/// Returns what proves, or refutes, a percentage that the words right behind it call one over a period, `6.2 % quarter over quarter`,
/// of the row that the sentence names first; `None` where they do not, or where the rows have no such period.
pub(super) fn over_period_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let behind = place.clause.get(token.end..)?.trim_start_matches(['%', ' ', '*']).to_lowercase();
    let begins = |words: &[&str]| words.iter().any(|words| behind.starts_with(words));
    if !number.is_percent || result.rows.len() < 2 || result.rows.len() > MAX_ROWS {
        return None;
    }
    let (row, _) = *result.labels_in_order(place.sentence).first()?;
    let base = match (begins(&OVER_YEAR), begins(&OVER_PERIOD)) {
        (true, _) => row_of_year_before(result, row)?,
        (_, true) => row_before(result, row)?,
        _ => return None,
    };
    let found = measured_columns(result, "").into_iter().find_map(|column| {
        let value = |row: usize| number_of(result.rows.get(row)?.get(column)?);
        let (now, then) = (value(row)?, value(base)?);
        let change = 100.0 * (now - then) / then;
        let fits = number.stands_for(change, ShareScale::Percent) || number.stands_for(-change, ShareScale::Percent);
        fits.then(|| ProofOrigin::Expression {
            expression: format!("100.0e0 * ({now:?} - ({then:?})) / ({then:?})"),
            value: change,
            cells: vec![result.cell(row, column), result.cell(base, column)],
        })
    });
    Some(found.unwrap_or(ProofOrigin::Unproven))
}

/// Finds the percentage points between two rows that are named: between their shares of all, and between fractions.
fn points_between(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    if number.is_percent || !token.is_of_points(place.clause) {
        return None;
    }
    let mut named = result.labelled(place.sentence);
    if named.len() == 1 {
        named.extend(result.labelled(place.before));
        named.sort_unstable();
        named.dedup();
    }
    let [one, other] = *named.as_slice() else { return None };
    measured_columns(result, "").into_iter().find_map(|column| {
        let cells = result.numbers(column);
        let value = |row: usize| cells.iter().find(|(of, _)| *of == row).map(|(_, value)| *value);
        let (one_value, other_value) = (value(one)?, value(other)?);
        let are_fractions = cells.iter().all(|(_, value)| value.abs() <= 1.0);
        let whole: f64 = if are_fractions { 1.0 } else { cells.iter().map(|(_, value)| *value).sum() };
        let points = 100.0 * (one_value - other_value).abs() / whole;
        let is_so = (are_fractions || is_of_counts(result, column)) && whole > 0.0;
        (is_so && number.stands_for(points, ShareScale::Amount)).then(|| ProofOrigin::Expression {
            expression: format!("100.0e0 * abs({one_value:?} - ({other_value:?})) / {whole:?}"),
            value: points,
            cells: match are_fractions {
                true => vec![result.cell(one, column), result.cell(other, column)],
                false => cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
            },
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn groups_have_totals_means_and_shares() {
        let agents = json!([
            ["Priya", "Billing", 312, 18.5],
            ["Lukas", "Billing", 287, 27.2],
            ["Chloe", "Technical", 404, 41.0],
            ["Diego", "Technical", 376, 35.8],
            ["Hannah", "Onboarding", 198, 12.4],
        ]);
        let columns = ["agent", "team", "tickets", "first_response_min"];
        let of_agents = |text: &str| doubted(&columns, agents.clone(), text);
        let right = "The Technical team handled 780 tickets, more than the others (49.5% of all).";
        assert_eq!(of_agents(right), Vec::<String>::new());
        assert_eq!(of_agents(&right.replace("49.5", "45.9")), ["45.9"]);
    }

    #[test]
    fn rates_are_called_by_what_they_count() {
        let lines = json!([["L1", 12480, 37], ["L1", 12110, 52], ["L2", 15620, 29], ["L2", 15390, 33]]);
        let of_lines = |text: &str| doubted(&["line", "units", "defects"], lines.clone(), text);
        let right = "Line L2 has a defect rate of 0.20%, compared to 0.36% for L1.";
        assert_eq!(of_lines(right), Vec::<String>::new());
        assert_eq!(of_lines(&right.replace("0.36", "0.63")), ["0.63"]);
    }

    #[test]
    fn changes_are_of_the_rows_that_are_named() {
        let months = json!([["2024-04", 207310, 7485], ["2024-05", 219080, 7490], ["2024-06", 224615, 9370]]);
        let of_months = |text: &str| doubted(&["month", "mrr_usd", "churned_mrr_usd"], months.clone(), text);
        let right = "Churned MRR was highest in June at $9,370, up 25.1% on May.";
        assert_eq!(of_months(right), Vec::<String>::new());
        assert_eq!(of_months(&right.replace("25.1", "21.5")), ["21.5"]);
    }

    #[test]
    fn days_from_one_to_another_are_a_group() {
        let days = json!([["2024-06-01", 1978], ["2024-06-02", 1975], ["2024-06-03", 3105], ["2024-06-04", 3568]]);
        let of_days = |text: &str| doubted(&["day", "sessions"], days.clone(), text);
        let right = "- **1–2 June:** 3,953 sessions\n- **3–4 June:** 6,673 sessions";
        assert_eq!(of_days(right), Vec::<String>::new());
        assert_eq!(of_days(&right.replace("6,673", "6,763")), ["6,763"]);
    }
}
