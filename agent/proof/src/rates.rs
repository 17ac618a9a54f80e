//! Numbers that two cells of a row give by what the words beside say of them: a mean, `an order is worth 305 on average`, a rate,
//! `7.5 tonnes per hectare` and `8 t/ha`, the part of a whole, `60 of the 1,200` at 5 %, one in so many; and a total in another
//! unit than its column is called by.

use super::bounds::{NumberBound, bound_before};
use super::candidates::most_candidates;
use super::claims::{QUANTITIES, is_exact};
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, last_words, says, tokens_in};
use super::units::{factor_to_unit, is_same_unit};
use super::{ProofOrigin, number_of};

/// Returns what proves a number by two cells of the row that its clause is about, or by a total.
pub(super) fn rate_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    mean_of_row(result, token, number, place)
        .or_else(|| mean_times_count(result, token, number, place))
        .or_else(|| amount_per_unit(result, token, number, place))
        .or_else(|| part_of_cell(result, token, number, place))
        .or_else(|| one_in_so_many(result, token, number, place))
        .or_else(|| total_in_unit(result, token, number, place))
        .or_else(|| weighted_mean(result, number, place))
}

/// Returns by what the values of a column are multiplied to be in the unit behind a number.
fn unit_factor(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> Option<f64> {
    factor_to_unit(result.columns.get(column)?, token, clause)
}

/// Whether a column holds whole numbers alone.
pub(super) fn is_of_counts(result: &ProofRows, column: usize) -> bool {
    result
        .rows
        .iter()
        .filter_map(|row| row.get(column))
        .all(|value| value.is_i64() || value.is_u64() || value.is_null())
}

/// Finds `6.5 tonnes per hectare`, `8 t/ha` and `the price per kWh is 28 cents`.
fn amount_per_unit(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    /// Letters of a word that a column may be called by.
    const SHORTEST: usize = 3;
    let word_of = |text: &str| text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    let behind = place.clause[token.end..].trim_start();
    let unit = word_of(behind);
    let slashed = behind.get(unit.len()..).and_then(|rest| rest.strip_prefix('/'));
    let per = find_word(place.sentence, "per").and_then(|at| place.sentence.get(at + "per ".len()..));
    let of = word_of(slashed.or(per)?);
    let is_divisor = |column: &usize| {
        let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
        let mut parts = name.split(|c: char| !c.is_alphanumeric());
        parts.any(|part| {
            let is_short = part.len() >= SHORTEST && of.starts_with(part);
            is_same_unit(part, &of) || is_short || (of.len() >= SHORTEST && part.starts_with(&of))
        })
    };
    let cents = if ["cent", "cents", "pence", "ct"].contains(&unit.as_str()) { 100.0 } else { 1.0 };
    // `Went up from 28 cents to 30 cents in January`: the first is of any other row.
    let rows: Vec<usize> = match last_words(&place.clause[..token.start], 1) == "from" {
        true => (0..result.rows.len()).collect(),
        false => vec![row_of(result, place)?],
    };
    let columns = number_columns(result);
    rows.into_iter().filter(|_| !number.is_percent).find_map(|row| {
        let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
        columns.iter().filter(|column| is_divisor(column)).find_map(|divisor| {
            columns.iter().filter(|column| *column != divisor).find_map(|amount| {
                let factor = cents * unit_factor(result, *amount, token, place.clause).unwrap_or(1.0);
                let (all, units) = (value(*amount)?, value(*divisor)?);
                let rate = all * factor / units;
                (units > 0.0 && number.stands_for(rate, ShareScale::Unknown)).then(|| ProofOrigin::Expression {
                    expression: format!("1.0e0 * {all:?} * {factor:?} / {units:?}"),
                    value: rate,
                    cells: vec![result.cell(row, *amount), result.cell(row, *divisor)],
                })
            })
        })
    })
}

/// Finds the 60 of `60 of DHL's 1,200 shipments were late`, where the row has the 1,200 and 5 %.
fn part_of_cell(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    /// How far a percentage of one decimal rounds, as a share.
    const ROUNDING: f64 = 0.0005;
    /// Words between the two numbers.
    const NEAR: usize = 4;
    let row = row_of(result, place)?;
    let tokens = tokens_in(place.clause);
    let next = tokens.iter().find(|one| one.start > token.end)?;
    let TextTokenKind::Number(whole) = &next.kind else { return None };
    let between = place.clause.get(token.end..next.start)?.trim_start();
    if !between.starts_with("of ") || between.split_whitespace().count() > NEAR || !is_exact(number) {
        return None;
    }
    let columns = number_columns(result);
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    columns.iter().find_map(|share_column| {
        let factor = match result.share_scale(*share_column) {
            ShareScale::Percent => 0.01,
            ShareScale::Fraction => 1.0,
            ShareScale::Amount | ShareScale::Unknown => return None,
        };
        columns.iter().filter(|column| *column != share_column).find_map(|count_column| {
            let (share, count) = (value(*share_column)?, value(*count_column)?);
            let part = count * share * factor;
            let is_so = whole.stands_for(count, ShareScale::Amount)
                && (part - number.value).abs() <= (ROUNDING * count.abs()).max(0.5);
            is_so.then(|| ProofOrigin::Expression {
                expression: format!("1.0e0 * {count:?} * {share:?} * {factor:?}"),
                value: part,
                cells: vec![result.cell(row, *count_column), result.cell(row, *share_column)],
            })
        })
    })
}

/// Finds the six of `one ticket in six`, and of `fewer than one ticket in six`, where a row has the tickets and some of them.
fn one_in_so_many(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let before = place.clause[..token.start].to_ascii_lowercase();
    let words = last_words(&before, 3);
    let is_one_in = words.ends_with(" in") && (words.starts_with("one ") || words.contains(" one "));
    let one = before.rfind("one ").filter(|_| is_one_in && is_exact(number) && number.value >= 2.0)?;
    let bound = bound_before(place.clause, one);
    let row = row_of(result, place)?;
    let columns: Vec<usize> =
        number_columns(result).into_iter().filter(|column| is_of_counts(result, *column)).collect();
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    columns.iter().find_map(|whole_column| {
        columns.iter().filter(|column| *column != whole_column).find_map(|part_column| {
            let (whole, part) = (value(*whole_column)?, value(*part_column)?);
            let many = whole / part;
            let is_so = match bound {
                Some(NumberBound::Below | NumberBound::AtMost) => many > number.value && many < 2.0 * number.value,
                Some(NumberBound::Above | NumberBound::AtLeast) => many < number.value && 2.0 * many > number.value,
                Some(NumberBound::Nearly | NumberBound::About) | None => (many - number.value).abs() <= 0.5,
            };
            (part > 0.0 && part < whole && is_so).then(|| ProofOrigin::Expression {
                expression: format!("1.0e0 * {whole:?} / {part:?}"),
                value: many,
                cells: vec![result.cell(row, *whole_column), result.cell(row, *part_column)],
            })
        })
    })
}

/// Finds `over the four months 97.68 MWh were used` of a column of kilowatt-hours.
fn total_in_unit(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    const TOTALS: [&str; 8] = ["total", "together", "altogether", "overall", "all", "over the", "combined", "sum"];
    let is_total = says(place.sentence, &TOTALS);
    if !is_total || result.rows.len() < 2 || !result.labelled(place.clause).is_empty() {
        return None;
    }
    measured_columns(result, "").into_iter().find_map(|column| {
        let factor = unit_factor(result, column, token, place.clause)?;
        let cells = result.numbers(column);
        let added: Vec<String> = cells.iter().map(|(_, value)| format!("({value:?})")).collect();
        let total = factor * cells.iter().map(|(_, value)| *value).sum::<f64>();
        number.stands_for(total, ShareScale::Amount).then(|| ProofOrigin::Expression {
            expression: format!("{factor:?} * ({})", added.join(" + ")),
            value: total,
            cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect(),
        })
    })
}

/// Finds a mean of all rows in which each counts as often as another column says: `weighted by nights the rate is 117.82`, `an
/// overall default rate of 2.6 %`.
fn weighted_mean(result: &ProofRows, number: &WrittenNumber, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    const WEIGHTED: [&str; 5] = ["weighted", "gewichtet", "gewichtete", "pondérée", "ponderada"];
    const OF_ALL: [&str; 4] = ["overall", "combined", "blended", "altogether"];
    const MEANS: [&str; 8] = ["avg", "average", "mean", "rate", "share", "pct", "percent", "per"];
    let is_weighted = says(place.sentence, &WEIGHTED);
    if result.rows.len() < 2 || !(is_weighted || says(place.sentence, &OF_ALL)) {
        return None;
    }
    let is_share = |column: usize| matches!(result.share_scale(column), ShareScale::Fraction | ShareScale::Percent);
    let is_mean = |column: usize| is_weighted || is_share(column) || is_called(result, column, &MEANS);
    let columns = measured_columns(result, "");
    if most_candidates(number) < (columns.len() * columns.len()) as f64 {
        return None;
    }
    columns.iter().filter(|column| is_mean(**column)).find_map(|mean| {
        columns.iter().filter(|column| *column != mean && !is_share(**column)).find_map(|weight| {
            let value = |row: usize, column: usize| number_of(result.rows.get(row)?.get(column)?);
            let pair = |row: usize| Some((value(row, *mean)?, value(row, *weight)?));
            let pairs: Vec<(f64, f64)> = (0..result.rows.len()).map(pair).collect::<Option<_>>()?;
            let weights: f64 = pairs.iter().map(|(_, weight)| weight).sum();
            let found = pairs.iter().map(|(of_row, weight)| of_row * weight).sum::<f64>() / weights;
            let is_so = weights > 0.0 && number.stands_for(found, result.share_scale(*mean));
            is_so.then(|| ProofOrigin::Expression {
                expression: weighted_mean_sql(&pairs),
                value: found,
                cells: (0..pairs.len()).flat_map(|row| [result.cell(row, *mean), result.cell(row, *weight)]).collect(),
            })
        })
    })
}

/// Returns the SQL of a weighted mean, of values each with its weight.
fn weighted_mean_sql(pairs: &[(f64, f64)]) -> String {
    let products: Vec<String> = pairs.iter().map(|(value, weight)| format!("({value:?}) * ({weight:?})")).collect();
    let weights: Vec<String> = pairs.iter().map(|(_, weight)| format!("({weight:?})")).collect();
    format!("1.0e0 * ({}) / ({})", products.join(" + "), weights.join(" + "))
}

/// Returns the row that a clause names, or the only one.
fn row_of(result: &ProofRows, place: TokenPlace<'_>) -> Option<usize> {
    match (result.named_rows(place).as_slice(), result.rows.len()) {
        ([row], _) => Some(*row),
        ([], 1) => Some(0),
        _ => None,
    }
}

/// Returns the columns of numbers: of one row, which no name tells apart, all of them.
fn number_columns(result: &ProofRows) -> Vec<usize> {
    if result.rows.len() == 1 { (0..result.columns.len()).collect() } else { measured_columns(result, "") }
}

/// Whether a column is called by one of some words.
pub(super) fn is_called(result: &ProofRows, column: usize, words: &[&str]) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    name.split(|c: char| !c.is_alphanumeric()).any(|part| words.contains(&part))
}

/// Finds an amount of a row for each of its number of things: `an order in Germany is worth 305 on average`, of its revenue and
/// its orders.
fn mean_of_row(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    const EACH: [&str; 18] = [
        "average",
        "mean",
        "avg",
        "each",
        "per",
        "apiece",
        "durchschnittlich",
        "durchschnitt",
        "pro",
        "moyenne",
        "chaque",
        "par",
        "media",
        "cada",
        "média",
        "gemiddeld",
        "elke",
        "ogni",
    ];
    let row = row_of(result, place)?;
    if number.is_percent || !says(place.sentence, &EACH) {
        return None;
    }
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    let columns = number_columns(result);
    let is_counted = |column: usize| {
        is_called(result, column, &QUANTITIES) || says_one_of(place.sentence, result.columns.get(column))
    };
    columns.iter().find_map(|quantity| {
        columns.iter().filter(|column| *column != quantity).find_map(|amount| {
            // `A parcel weighs 24.5 kg on average`: kilograms of whatever is counted.
            let factor = unit_factor(result, *amount, token, place.clause);
            if !is_counted(*quantity) && (factor.is_none() || !is_of_counts(result, *quantity)) {
                return None;
            }
            let (all, count, factor) = (value(*amount)?, value(*quantity)?, factor.unwrap_or(1.0));
            let mean = all * factor / count;
            (count > 1.0 && number.stands_for(mean, ShareScale::Unknown)).then(|| ProofOrigin::Expression {
                expression: format!("1.0e0 * {all:?} * {factor:?} / {count:?}"),
                value: mean,
                cells: vec![result.cell(row, *amount), result.cell(row, *quantity)],
            })
        })
    })
}

/// Whether a sentence says one of the things that a column counts: `each building` of `buildings`.
fn says_one_of(sentence: &str, column: Option<&String>) -> bool {
    const SHORTEST: usize = 4;
    let name = column.map(|name| name.to_lowercase()).unwrap_or_default();
    let lower = sentence.to_lowercase();
    let mut words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() >= SHORTEST);
    words.any(|word| name.strip_prefix(word).is_some_and(|ending| ending.chars().count() <= 2))
}

/// Finds the total of which a row has the mean and the number: `all 17 incidents together lasted 724 minutes`.
fn mean_times_count(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    const TOTALS: [&str; 5] = ["total", "together", "altogether", "overall", "all"];
    let row = row_of(result, place)?;
    if number.is_percent || !says(place.sentence, &TOTALS) {
        return None;
    }
    let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
    let columns = number_columns(result);
    columns.iter().filter(|column| is_called(result, **column, &["mean", "avg", "average"])).find_map(|mean| {
        let factor = unit_factor(result, *mean, token, place.clause).unwrap_or(1.0);
        columns.iter().filter(|column| *column != mean).find_map(|quantity| {
            let (each, count) = (value(*mean)?, value(*quantity)?);
            let all = each * count * factor;
            let is_so = count > 1.0 && count.fract() == 0.0 && number.stands_for(all, ShareScale::Unknown);
            is_so.then(|| ProofOrigin::Expression {
                expression: format!("1.0e0 * {each:?} * {count:?} * {factor:?}"),
                value: all,
                cells: vec![result.cell(row, *mean), result.cell(row, *quantity)],
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_rooms(text: &str) -> Vec<String> {
        let types =
            json!([["Single", 9490, 82.0, 0.021], ["Double", 27740, 118.5, 0.053], ["Suite", 2628, 240.0, 0.008]]);
        doubted(&["room_type", "nights_sold", "adr_eur", "rebate_rate"], types, text)
    }

    #[test]
    fn means_of_all_rows_are_weighted() {
        assert_eq!(of_rooms("Weighted by nights sold, the average rate was €117.82."), Vec::<String>::new());
        assert_eq!(of_rooms("Weighted by nights sold, the average rate was €118.72."), ["118.72"]);
    }

    #[test]
    fn amounts_are_multiplied_by_what_is_sold_and_summed() {
        let text =
            "Revenue was €4.70 million: €778,180 from singles, €3,287,190 from doubles and €630,720 from suites.";
        assert_eq!(of_rooms(text), Vec::<String>::new());
        assert_eq!(of_rooms("Suites brought €603,720."), ["603,720"]);
    }
}
