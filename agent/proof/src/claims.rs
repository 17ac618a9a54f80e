//! Numbers that are arithmetic by how they stand in a sentence, without a word that announces it: `nine out of ten`, `two
//! people work in IT`, `web and app brought 930`, `the top two make 93 %`, `52 to 41`, a product of a price and a
//! quantity, days between two dates, a quarter of months. Of rows that the sentence names.

use chrono::{Datelike, NaiveDate};
use serde_json::Value;

use super::alike::count_of_alike;
use super::announced::AnnouncedOperation;
use super::candidates::most_candidates;
use super::contradictions::is_day_or_year;
use super::counted_rows::counted_rows_origin;
use super::extremes::{GREATEST, LEAST};
use super::ranks::measured_columns;
use super::rates::{is_called, is_of_counts, rate_origin};
use super::rows::{ProofRows, TokenPlace};
use super::spans::days_between;
use super::tokens::{
    ShareScale, TextToken, TextTokenKind, WrittenNumber, day_of, find_word, last_words, says, tokens_in,
};
use super::units::unit_at;
use super::{ProofOrigin, number_of};

/// Rows that are looked at.
const MAX_ROWS: usize = 100;
/// Words between the two numbers of `nine out of ten`.
const OUT_OF: [&str; 5] = ["out of", "in", "in every", "out of every", "of every"];
/// Words between the two numbers of a score: `52 to 41`.
const VERSUS: [&str; 5] = ["to", "-", "–", ":", "against"];
/// Words in the names of columns of prices, and of those that are multiplied by them.
const PRICES: [&str; 8] = ["price", "cost", "fee", "rate", "fare", "wage", "amount", "value"];
pub(super) const QUANTITIES: [&str; 10] =
    ["sold", "quantity", "qty", "units", "count", "n", "number", "hours", "items", "orders"];

/// Returns what proves a number by how it stands in its sentence.
pub(super) fn claimed_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let is_whole = result.rows.len() == result.row_count && result.rows.len() <= MAX_ROWS && !result.rows.is_empty();
    if !is_whole {
        return None;
    }
    group_count(result, token, number, place)
        .or_else(|| count_of_alike(result, token, number, place))
        .or_else(|| counted_rows_origin(result, token, number, place))
        .or_else(|| days_between(result, token, number, place))
        .or_else(|| product(result, number, place))
        .or_else(|| rate_origin(result, token, number, place))
        .or_else(|| sum_of_row(result, token, number, place))
        .or_else(|| sum_of_top(result, number, place))
        .or_else(|| sum_of_quarter(result, number, place))
        .or_else(|| sum_of_named(result, token, number, place))
        .or_else(|| sum_of_called(result, token, number, place))
        .or_else(|| ratio_of_sums(result, number, place))
}

/// Finds `twelve units have expired`: the total of the column that the clause calls by its name right behind the number,
/// where it names no row.
fn sum_of_called(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    if !is_exact(number) || result.rows.len() < 2 || !result.labelled(place.clause).is_empty() {
        return None;
    }
    let behind = &place.clause[token.end..];
    let called = result.column_behind(token, place.clause);
    measured_columns(result, "").into_iter().find_map(|column| {
        let name = result.columns.get(column)?.replace('_', " ");
        if called != Some(column) {
            find_word(behind, &name)?;
        }
        let cells = result.numbers(column);
        let sum: f64 = cells.iter().map(|(_, value)| *value).sum();
        (cells.len() > 1 && number.stands_for(sum, ShareScale::Amount)).then(|| sum_origin(result, &cells, column))
    })
}

/// A number in digits or words that stands beside another: `nine` and `ten` of `nine out of ten`.
fn neighbours(text: &str, token: &TextToken, between: &[&str]) -> Option<(f64, f64)> {
    let whole = |one: &TextToken| match &one.kind {
        TextTokenKind::Number(number) if !number.is_percent && number.value.fract() == 0.0 => Some(number.value),
        _ => None,
    };
    let tokens = tokens_in(text);
    tokens.windows(2).find_map(|pair| {
        let [one, other] = pair else { return None };
        let is_pair = one.start == token.start || other.start == token.start;
        let link = text.get(one.end..other.start)?.trim().to_lowercase();
        (is_pair && between.contains(&link.as_str())).then_some((whole(one)?, whole(other)?))
    })
}

/// Returns what proves `nine out of ten`: a share that rounds to it, or what is left of one.
pub(super) fn out_of_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let (part, whole) = neighbours(place.clause, token, &OUT_OF)?;
    // One in so many is told by the share itself.
    if part < 2.0 || part >= whole {
        return None;
    }
    let (wanted, tolerance) = (100.0 * part / whole, 50.0 / whole);
    let fits = |share: f64| (share - wanted).abs() < tolerance;
    let rows = result.named_rows(place);
    let is_rest = says(place.sentence, &["not", "never", "no", "without"]);
    let is_of = |row: usize| rows.is_empty() || rows.contains(&row);
    for (row, column, cell) in result.cells().filter(|(row, _, _)| is_of(*row)).take(MAX_ROWS) {
        let Some(value) = number_of(cell) else { continue };
        let factor = match result.share_scale(column) {
            ShareScale::Fraction => 100.0,
            ShareScale::Percent => 1.0,
            ShareScale::Unknown if (0.0..=1.0).contains(&value) => 100.0,
            ShareScale::Unknown | ShareScale::Amount => continue,
        };
        let share = factor * value;
        let (expression, found) = match is_rest {
            true if fits(100.0 - share) => (format!("100.0e0 - {factor:?}e0 * {value:?}"), 100.0 - share),
            _ if fits(share) => (format!("{factor:?}e0 * {value:?}"), share),
            _ => continue,
        };
        return Some(ProofOrigin::Expression { expression, value: found, cells: vec![result.cell(row, column)] });
    }
    // One column of a row is the whole of another.
    let columns = measured_columns(result, "");
    (0..result.rows.len().min(MAX_ROWS)).filter(|row| rows.contains(row) || result.rows.len() == 1).find_map(|row| {
        let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
        columns.iter().find_map(|column| {
            columns.iter().filter(|other| *other != column).find_map(|other| {
                let (of, all) = (value(*column)?, value(*other)?);
                let share = 100.0 * of / all;
                (all > 0.0 && fits(share)).then(|| ProofOrigin::Expression {
                    expression: format!("100.0e0 * {of:?} / {all:?}"),
                    value: share,
                    cells: vec![result.cell(row, *column), result.cell(row, *other)],
                })
            })
        })
    })
}

/// Returns what proves the second number of a score, `52 to 41`: a cell of the column that the first is of.
pub(super) fn score_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let (first, second) = neighbours(place.sentence, &shifted(token, place.offset), &VERSUS)?;
    let is_range = says(place.sentence, &["from", "between"]);
    let TextTokenKind::Number(number) = &token.kind else { return None };
    if is_range || number.value != second {
        return None;
    }
    measured_columns(result, "").into_iter().find_map(|column| {
        let cells = result.numbers(column);
        let (of_first, _) = *cells.iter().find(|(_, value)| *value == first)?;
        let (row, _) = *cells.iter().find(|(row, value)| *value == second && *row != of_first)?;
        Some(result.cell_origin(row, column, result.rows.get(row)?.get(column)?))
    })
}

/// Returns what proves an end of a range of all rows, `points range from 4 to 7.5`: the least value of a column, or the
/// greatest. One of other rows' values is no end.
pub(super) fn range_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    const RANGES: [&str; 7] = ["range", "ranges", "ranged", "ranging", "vary", "varies", "varied"];
    const OF_SOME: [&str; 8] = ["top", "bottom", "first", "last", "other", "others", "most", "except"];
    let says = |words: &[&str]| says(place.clause, words);
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole
        || !place.clause.contains(" to ")
        || !says(&RANGES)
        || says(&OF_SOME)
        || !result.labelled(place.clause).is_empty()
    {
        return None;
    }
    let tokens = tokens_in(place.clause);
    let pair = tokens.windows(2).find(|pair| {
        let between = place.clause.get(pair[0].end..pair[1].start).unwrap_or_default().to_lowercase();
        // `From 3 % to 7 %`.
        let is_range = between.trim_matches(|c: char| c.is_whitespace() || "%$€£".contains(c)) == "to";
        is_range && last_words(&place.clause[..pair[0].start], 1) == "from"
    })?;
    let is_least = pair[0].start == token.start;
    if !is_least && pair[1].start != token.start {
        return None;
    }
    let (TextTokenKind::Number(_), TextTokenKind::Number(_)) = (&pair[0].kind, &pair[1].kind) else { return None };
    let found = (0..result.columns.len()).find_map(|column| {
        let cells = result.numbers(column);
        let end = match is_least {
            true => cells.iter().min_by(|one, other| one.1.total_cmp(&other.1)),
            false => cells.iter().max_by(|one, other| one.1.total_cmp(&other.1)),
        };
        let (row, _) = *end?;
        let value = result.rows.get(row)?.get(column)?;
        token.equals(value, result.share_scale(column)).then(|| result.cell_origin(row, column, value))
    });
    Some(found.unwrap_or(ProofOrigin::Unproven))
}

/// Returns a token of a clause as it stands in the sentence.
fn shifted(token: &TextToken, offset: usize) -> TextToken {
    TextToken { start: token.start + offset, end: token.end + offset, ..token.clone() }
}

pub(super) fn is_exact(number: &WrittenNumber) -> bool {
    number.tolerance <= 0.5 && !number.is_percent && !number.is_scaled
}

fn sum_origin(result: &ProofRows, cells: &[(usize, f64)], column: usize) -> ProofOrigin {
    let added: Vec<String> = cells.iter().map(|(_, value)| format!("({value:?})")).collect();
    ProofOrigin::Expression {
        expression: added.join(" + "),
        value: cells.iter().map(|(_, value)| *value).sum(),
        cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
    }
}

/// Finds `two people work in IT`, and `two of the books came out in 2018`: as many rows have a text that the clause says, or a
/// day or a year that is said before the next statement.
fn group_count(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    if !is_exact(number) || result.rows.len() < 2 {
        return None;
    }
    let start = place.offset + token.end;
    let behind = place.sentence.get(start..).and_then(|rest| rest.split("; ").next()).unwrap_or_default();
    let said: Vec<TextToken> = tokens_in(behind).into_iter().filter(is_day_or_year).collect();
    (0..result.columns.len()).find_map(|column| {
        let value = |row: &usize| result.rows.get(*row)?.get(column);
        let text = |row: &usize| value(row)?.as_str();
        let is_said = |name: &str| {
            // `IT`, and no `it`; a longer name may begin a line with a capital.
            has_word(place.clause, name) || (name.len() > 2 && find_word(place.clause, name).is_some())
        };
        let named = (0..result.rows.len()).find(|row| text(row).is_some_and(is_said));
        let is_in_group = |row: &usize| match named {
            Some(named) => text(row) == text(&named),
            None => said.iter().any(|day| value(row).is_some_and(|value| day.equals(value, ShareScale::Unknown))),
        };
        let rows: Vec<usize> = (0..result.rows.len()).filter(is_in_group).collect();
        // `Emma's only one`.
        let is_only = named.is_some() && number.is_counted && number.value == 1.0;
        ((rows.len() > 1 || is_only) && rows.len() as f64 == number.value)
            .then(|| result.origin_of_count(&rows, column))
    })
}

/// Whether a number is said of the one row right before it: `Leeds had 730 in total`.
pub(super) fn is_said_of_one(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> bool {
    const HAS: [&str; 12] =
        ["had", "has", "sold", "made", "took", "earned", "recorded", "received", "hatte", "hat", "tuvo", "insgesamt"];
    let before = place.clause[..token.start].trim_end_matches(|c: char| " $€£".contains(c));
    let before = before.strip_suffix("a total of").unwrap_or(before).trim_end();
    let word = before.rsplit(char::is_whitespace).next().unwrap_or_default().to_lowercase();
    if !HAS.contains(&word.as_str()) {
        return false;
    }
    let [row] = *result.labelled(place.sentence).as_slice() else { return false };
    let end = result.label_place(row, before).map(|(_, end)| end);
    end.is_some_and(|end| before[end..].split_whitespace().count() <= 2)
}

/// Whether a name stands in a text in the same case.
pub(super) fn has_word(text: &str, name: &str) -> bool {
    let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    !name.is_empty()
        && text.match_indices(name).any(|(at, found)| {
            !is_letter(text[..at].chars().next_back()) && !is_letter(text[at + found.len()..].chars().next())
        })
}

/// Finds a price times a quantity of the row that the clause names, and an amount times a share of it.
fn product(result: &ProofRows, number: &WrittenNumber, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let [row] = *result.named_rows(place).as_slice() else { return None };
    let number = (!number.is_percent).then_some(number)?;
    let called = |column: usize, words: &[&str]| is_called(result, column, words);
    // A rate of 0.95 is a share.
    let is_price = |column: &usize| {
        let is_money = || unit_at(result, *column).is_some_and(|unit| unit.is_money() && !unit.is_coin());
        result.share_scale(*column) != ShareScale::Fraction && (called(*column, &PRICES) || is_money())
    };
    let factor = |column: usize| match result.share_scale(column) {
        ShareScale::Fraction => Some(1.0),
        ShareScale::Percent => Some(0.01),
        // An occupancy of 0.8.
        ShareScale::Unknown if result.numbers(column).iter().all(|(_, value)| (0.0..1.0).contains(value)) => Some(1.0),
        ShareScale::Amount | ShareScale::Unknown => {
            (called(column, &QUANTITIES) || is_of_counts(result, column)).then_some(1.0)
        }
    };
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    let columns = measured_columns(result, "");
    let prices: Vec<usize> = columns.iter().copied().filter(is_price).collect();
    let many: Vec<(usize, f64)> = columns.iter().filter_map(|column| Some((*column, factor(*column)?))).collect();
    // Of so many products one may well be a number of few digits.
    let are_few = (prices.len() * many.len()) as f64 <= most_candidates(number);
    prices.into_iter().find_map(|price| {
        many.iter().filter(|(column, _)| *column != price).find_map(|(column, scale)| {
            let (one, times) = (value(price)?, value(*column)?);
            let made = one * times * scale;
            let is_told = are_few || (called(price, &PRICES) && called(*column, &QUANTITIES));
            (is_told && number.stands_for(made, ShareScale::Unknown)).then(|| ProofOrigin::Expression {
                expression: format!("1.0e0 * {one:?} * {times:?} * {scale:?}"),
                value: made,
                cells: vec![result.cell(row, price), result.cell(row, *column)],
            })
        })
    })
}

/// Finds the 15 of `two of fifteen games`, where a row has two wins and thirteen losses.
fn sum_of_row(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let before = last_words(&place.clause[..token.start], 2);
    let [row] = *result.named_rows(place).as_slice() else { return None };
    // `Only three of their twenty matches`.
    let before = ["their", "its", "his", "her", "the", "all"]
        .iter()
        .find_map(|owner| before.strip_suffix(owner)?.strip_suffix(' '))
        .unwrap_or(&before);
    if !is_exact(number) || !(before == "of" || before.ends_with(" of")) {
        return None;
    }
    let columns = measured_columns(result, "");
    let cells: Vec<(usize, f64)> =
        columns.iter().filter_map(|column| Some((*column, number_of(result.rows.get(row)?.get(*column)?)?))).collect();
    let sum: f64 = cells.iter().map(|(_, value)| *value).sum();
    let are_parts = cells.iter().all(|(_, value)| *value >= 0.0);
    // Wins, draws and losses are the matches, whatever else a row has.
    let parts = |run: &&[(usize, f64)]| run.iter().map(|(_, value)| *value).sum::<f64>() == number.value;
    let run = cells.windows(3).find(parts).map(<[(usize, f64)]>::to_vec);
    let cells = if sum == number.value { cells } else { run.unwrap_or_default() };
    let sum = number.value;
    let is_sum = cells.len() > 1 && are_parts;
    is_sum.then(|| ProofOrigin::Expression {
        expression: cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + "),
        value: sum,
        cells: cells.iter().map(|(column, _)| result.cell(row, *column)).collect(),
    })
}

/// Returns how many of the first are meant, of `the top two channels`, and whether these are the greatest.
fn top_count(text: &str) -> Option<(usize, bool)> {
    const BEFORE_GREATEST: [&str; 6] = ["top", "largest", "biggest", "leading", "first", "highest"];
    const BEFORE_LEAST: [&str; 3] = ["bottom", "smallest", "lowest"];
    tokens_in(text).iter().find_map(|token| {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let before = last_words(&text[..token.start], 1);
        let behind = text[token.end..].split_whitespace().next().unwrap_or_default().to_lowercase();
        let (before, behind) = (before.as_str(), behind.as_str());
        let is_greatest =
            BEFORE_GREATEST.contains(&before) || ["top", "most"].contains(&behind) || GREATEST.contains(&behind);
        let is_least = BEFORE_LEAST.contains(&before) || behind == "bottom" || LEAST.contains(&behind);
        let is_count = is_exact(number) && number.value >= 2.0;
        (is_count && (is_greatest || is_least)).then_some((number.value as usize, is_greatest))
    })
}

/// Finds `the top two account for 93 %`, `the bottom two for 7 %`, and for so many.
fn sum_of_top(result: &ProofRows, number: &WrittenNumber, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let (count, is_greatest) = top_count(place.clause).or_else(|| top_count(place.sentence))?;
    if count >= result.rows.len() {
        return None;
    }
    measured_columns(result, place.sentence).into_iter().find_map(|column| {
        let mut cells = result.numbers(column);
        let all: f64 = cells.iter().map(|(_, value)| *value).sum();
        cells.sort_by(|left, right| right.1.total_cmp(&left.1));
        if !is_greatest {
            cells.reverse();
        }
        cells.truncate(count);
        part_origin(result, number, &cells, column, all)
    })
}

/// Returns what proves that a number is the sum of some cells of a column, or their share of all.
fn part_origin(
    result: &ProofRows,
    number: &WrittenNumber,
    cells: &[(usize, f64)],
    column: usize,
    all: f64,
) -> Option<ProofOrigin> {
    let sum: f64 = cells.iter().map(|(_, value)| *value).sum();
    if !number.is_percent {
        return number.stands_for(sum, ShareScale::Amount).then(|| sum_origin(result, cells, column));
    }
    let share = 100.0 * sum / all;
    (all > 0.0 && number.stands_for(share, ShareScale::Percent)).then(|| {
        let added: Vec<String> = cells.iter().map(|(_, value)| format!("({value:?})")).collect();
        ProofOrigin::Expression {
            expression: format!("100.0e0 * ({}) / ({all:?})", added.join(" + ")),
            value: share,
            cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
        }
    })
}

/// Returns the quarter that a sentence speaks of: `the first quarter of 2024`, `Q3`.
fn quarter_in(sentence: &str) -> Option<u32> {
    const WORDS: [&str; 4] = ["first quarter", "second quarter", "third quarter", "fourth quarter"];
    let place = |words: &[&str]| words.iter().position(|word| find_word(sentence, word).is_some());
    let index = place(&WORDS).or_else(|| place(&["q1", "q2", "q3", "q4"]))?;
    u32::try_from(index + 1).ok()
}

/// Returns the first day of the month that a cell is, as `2024-03` or a day.
pub(super) fn month_of(value: &Value) -> Option<NaiveDate> {
    let text = value.as_str()?;
    // `Mar 2024`, and in full.
    if text.starts_with(|c: char| c.is_ascii_alphabetic()) {
        let is_short = text.len() <= "September 2024".len();
        return is_short.then(|| NaiveDate::parse_from_str(&format!("1 {text}"), "%d %B %Y").ok()).flatten();
    }
    let day = if text.len() == "2024-03".len() { format!("{text}-01") } else { text.get(..10)?.to_owned() };
    NaiveDate::parse_from_str(&day, "%Y-%m-%d").ok()
}

/// Returns the day that a cell is, or the first one of its month.
pub(super) fn day_or_month_of(value: &Value) -> Option<NaiveDate> {
    day_of(value).or_else(|| month_of(value))
}

/// Finds what the months of a quarter make together.
fn sum_of_quarter(result: &ProofRows, number: &WrittenNumber, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let quarter = quarter_in(place.clause).or_else(|| quarter_in(place.sentence))?;
    // 1,864 is no year.
    let is_year = |token: &TextToken| token.text.len() == 4 && token.text.chars().all(|c| c.is_ascii_digit());
    let year = tokens_in(place.sentence).iter().filter(|token| is_year(token)).find_map(|token| match &token.kind {
        TextTokenKind::Number(number) if (1700.0..2200.0).contains(&number.value) => Some(number.value as i32),
        _ => None,
    });
    let is_in = |row: &usize| {
        let day = result.rows.get(*row).and_then(|row| row.iter().find_map(month_of));
        day.is_some_and(|day| day.month0() / 3 + 1 == quarter && year.is_none_or(|year| year == day.year()))
    };
    measured_columns(result, place.sentence).into_iter().find_map(|column| {
        let mut cells = result.numbers(column);
        let all: f64 = cells.iter().map(|(_, value)| *value).sum();
        cells.retain(|(row, _)| is_in(row));
        if cells.is_empty() { None } else { part_origin(result, number, &cells, column, all) }
    })
}

/// Finds `web and app brought 930`, and `we sold 39: 10 lamps, 4 desks and 25 chairs`: what the rows that a sentence
/// names make together, or all of them where the number is of all.
fn sum_of_named(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    const LEAST: f64 = 10.0;
    let before = last_words(&place.clause[..token.start], 1);
    let is_part = is_part_of_number(token, place.clause);
    // `Of the year's 792 mm`.
    let is_owned = ["'s", "’s"].iter().any(|ending| before.ends_with(ending));
    let is_of_all =
        is_part || is_owned || ["the", "all", "these", "of", "von", "sur", "su", "de"].contains(&before.as_str());
    let named = result.labelled(place.sentence);
    let names_all = result.names_every_row(place.sentence);
    let is_each = says(place.sentence, &["each", "both", "respectively"]);
    let is_large = number.is_percent || (is_exact(number) && (number.value >= LEAST || is_part));
    // `July was 19.7 degrees warmer than January` is no sum.
    let compares = find_word(place.sentence, "than").is_some();
    if is_each
        || compares
        || is_said_of_one(result, token, place)
        || !is_large
        || !(named.len() > 1 || names_all || is_of_all)
    {
        return None;
    }
    let mut columns = measured_columns(result, place.sentence);
    columns.extend(measured_columns(result, "").into_iter().filter(|_| is_part));
    columns.into_iter().find_map(|column| {
        let cells = result.numbers(column);
        let all: f64 = cells.iter().map(|(_, value)| *value).sum();
        let of_named: Vec<(usize, f64)> = cells.iter().copied().filter(|(row, _)| named.contains(row)).collect();
        let several = if of_named.len() > 1 { part_origin(result, number, &of_named, column, all) } else { None };
        several.or_else(|| {
            let is_sum = (names_all || is_of_all) && !number.is_percent && cells.len() > 1;
            (is_sum && number.stands_for(all, ShareScale::Amount)).then(|| sum_origin(result, &cells, column))
        })
    })
}

/// Whether a number is the first of `9 of 500`.
fn is_part_of_number(token: &TextToken, clause: &str) -> bool {
    let Some(rest) = clause[token.end..].trim_start().strip_prefix("of ") else { return false };
    let rest = rest.strip_prefix("the ").or_else(|| rest.strip_prefix("all ")).unwrap_or(rest);
    rest.starts_with(|c: char| c.is_ascii_digit())
}

/// Finds the share that one column's total is of another's: `overall, 358 of 400 (89.5 %)`.
fn ratio_of_sums(result: &ProofRows, number: &WrittenNumber, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    if !number.is_percent || result.rows.len() < 2 {
        return None;
    }
    let numbers = tokens_in(place.sentence);
    let is_of_all = AnnouncedOperation::in_text(place.sentence).total
        || numbers.iter().any(|token| is_part_of_number(token, place.sentence));
    // `Of the 358 who enrolled 254 passed (70.9 %)`: both totals are said.
    let says = |total: f64| {
        numbers.iter().any(|token| match &token.kind {
            TextTokenKind::Number(said) => is_exact(said) && said.stands_for(total, ShareScale::Amount),
            _ => false,
        })
    };
    let columns = measured_columns(result, "");
    columns.iter().find_map(|column| {
        columns.iter().filter(|other| *other != column).find_map(|other| {
            let (part, whole) = (result.numbers(*column), result.numbers(*other));
            let sum = |cells: &[(usize, f64)]| cells.iter().map(|(_, value)| *value).sum::<f64>();
            let share = 100.0 * sum(&part) / sum(&whole);
            let is_told = is_of_all || (says(sum(&part)) && says(sum(&whole)));
            let is_so = is_told && sum(&whole) > 0.0 && number.stands_for(share, ShareScale::Percent);
            is_so.then(|| ProofOrigin::Expression {
                expression: format!("100.0e0 * {:?} / {:?}", sum(&part), sum(&whole)),
                value: share,
                cells: part
                    .iter()
                    .map(|(row, _)| result.cell(*row, *column))
                    .chain(whole.iter().map(|(row, _)| result.cell(*row, *other)))
                    .collect(),
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn the_last_rows_make_a_sum_as_the_first_do() {
        let buyers = json!([
            ["Pakistan", 198_400.0, 2.5],
            ["Egypt", 61_200.0, 2.6],
            ["Russia", 21_500.0, 2.7],
            ["Sudan", 17_900.0, 2.4],
            ["Poland", 4_600.0, 3.4],
        ]);
        let of_tea = |text: &str| doubted(&["country", "tonnes", "price"], buyers.clone(), text);
        assert_eq!(of_tea("The bottom three buyers took 44,000 tonnes."), Vec::<String>::new());
        assert_eq!(of_tea("The bottom three buyers took 40,400 tonnes."), ["40,400"]);
    }

    #[test]
    fn letters_are_names_of_rows() {
        let grades = json!([["A", 18_600_000.0, 0.008], ["B", 11_180_000.0, 0.021], ["C", 4_565_000.0, 0.053]]);
        let of_loans = |text: &str| doubted(&["grade", "outstanding_eur", "default_rate"], grades.clone(), text);
        let right = "The expected loss is €148,800 for A, €234,780 for B and €241,945 for C, in total €625,525.";
        assert_eq!(of_loans(right), Vec::<String>::new());
        assert_eq!(of_loans(&right.replace("234,780", "234,870")), ["234,870", "625,525"]);
    }
}
