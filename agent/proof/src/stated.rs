//! Numbers that follow from two others which stand beside them in their sentence and are proven: `2,509 of 1,188,590 calls
//! failed, or 0.21 %`, `12 rooms and 2,628 nights are 219 nights a room`. Their cells are those of the two.
//!
//! As elsewhere, a number is proven so only where it is written so precisely that as many results would hardly give it by
//! chance; where words say which of them is meant, the others are not counted.

use super::announced::{AnnouncedOperation, ChangeDirection};
use super::arithmetic::is_said_as_difference;
use super::bounds::{NumberBound, bound_before, widened};
use super::candidates::most_candidates;
use super::sentences::clauses;
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, says, tokens_in};
use super::{CellReference, ProofLink, ProofOrigin, ProofRows, number_of};

/// The longest sentence that is looked at, in bytes.
const LONGEST: usize = 1_000;
/// Words between a part and its whole.
const OF: [&str; 8] = ["of", "out of", "base of", "von", "sur", "de", "su", "van"];
/// Words by which a number is what another leaves, and what two make.
const LEAVES: [&str; 7] = ["minus", "net", "leaves", "leaving", "left", "gap", "so"];
const MAKES: [&str; 2] = ["plus", "makes"];
/// Words by which a number is one of two for each of the other.
const FOR_EACH: [&str; 14] = [
    "per",
    "average",
    "each",
    "a piece",
    "apiece",
    "pro",
    "je",
    "par",
    "por",
    "cada",
    "al",
    "durchschnittlich",
    "moyen",
    "moyenne",
];

/// Words by which a percentage compares two others.
const RELATIVE: [&str; 4] = ["relative", "relatively", "uplift", "lift"];

/// A number of a sentence that is proven.
struct StatedNumber {
    /// Where it stands in the sentence, in bytes.
    start: usize,
    end: usize,
    value: f64,
    is_percent: bool,
    sql: String,
    cells: Vec<CellReference>,
}

impl StatedNumber {
    fn new(token: &TextToken, number: &WrittenNumber, origin: &ProofOrigin) -> Option<Self> {
        let (value, sql, cells) = match origin {
            ProofOrigin::Cell { cell, value, .. } => {
                let value = number_of(value)?;
                // What is spent is written without its sign.
                let is_loss = value < 0.0 && number.value > 0.0;
                let sql = if is_loss { format!("(-({value:?}))") } else { format!("({value:?})") };
                (if is_loss { -value } else { value }, sql, vec![cell.clone()])
            }
            ProofOrigin::Expression { expression, value, cells } => (*value, format!("({expression})"), cells.clone()),
            ProofOrigin::RowCount { .. } | ProofOrigin::Question => {
                (number.value, format!("({:?})", number.value), Vec::new())
            }
            ProofOrigin::Query { .. } | ProofOrigin::Conversation | ProofOrigin::Unproven => return None,
        };
        // A share of 0.25 is 25 %.
        let is_fraction = number.is_percent && number.stands_for(value, ShareScale::Fraction);
        let (value, sql) = if is_fraction { (100.0 * value, format!("(100.0e0 * {sql})")) } else { (value, sql) };
        // What proves a bound has another value, and a year is no amount.
        let is_so = number.stands_for(value, scale_of_number(number)) && !is_year(token, value);
        let is_percent = number.is_percent;
        is_so.then_some(Self { start: token.start, end: token.end, value, is_percent, sql, cells })
    }
}

/// What two numbers give.
struct StatedResult {
    value: f64,
    sql: String,
    cells: Vec<CellReference>,
    /// Whether words say that it is meant.
    is_announced: bool,
}

/// Proves the numbers of a sentence that follow from two others beside them; `first` is the character of the text with which
/// the sentence begins.
pub(super) fn prove_by_stated(result: Option<&ProofRows>, sentence: &str, first: usize, links: &mut [ProofLink]) {
    let is_doubted = |link: &ProofLink| link.origin == ProofOrigin::Unproven;
    if sentence.len() > LONGEST || !links.iter().any(is_doubted) {
        return;
    }
    let mut stated: Vec<StatedNumber> = Vec::new();
    let mut doubted: Vec<(usize, TextToken, WrittenNumber)> = Vec::new();
    for (token, number) in numbers_of(sentence) {
        let at = first + sentence[..token.start].chars().count();
        let Some(index) = links.iter().position(|link| link.start == at) else { continue };
        if is_doubted(&links[index]) {
            doubted.push((index, token, number));
        } else {
            stated.extend(StatedNumber::new(&token, &number, &links[index].origin));
        }
    }
    let announced = AnnouncedOperation::in_text(sentence);
    for (index, token, number) in doubted {
        // `From 219 to 224, 2.5 % more`.
        let mut announced = announced;
        announced.growth |= number.is_percent && is_said_as_difference(sentence, &token);
        let of_two = stated_origin(&number, &token, sentence, &stated, &announced);
        let of_all = || share_of_all(result?, &number, &token, sentence, &stated);
        let Some(origin) = of_two.or_else(of_all) else { continue };
        stated.extend(StatedNumber::new(&token, &number, &origin));
        stated.sort_by_key(|one| one.start);
        links[index].origin = origin;
    }
}

/// Returns the numbers of a sentence, as they stand in it.
fn numbers_of(sentence: &str) -> Vec<(TextToken, WrittenNumber)> {
    let of_clause = |(clause, offset): (&str, usize)| {
        let number = move |token: TextToken| {
            let TextTokenKind::Number(number) = token.kind else { return None };
            let (start, end) = (token.start + offset, token.end + offset);
            Some((TextToken { start, end, ..token }, number))
        };
        tokens_in(clause).into_iter().filter_map(number).collect::<Vec<_>>()
    };
    clauses(sentence).into_iter().flat_map(of_clause).collect()
}

/// Whether a number is one of a year.
fn is_year(token: &TextToken, value: f64) -> bool {
    token.text.len() == 4 && value.fract() == 0.0 && (1900.0..2100.0).contains(&value)
}

/// Returns what proves a number by two that are stated.
fn stated_origin(
    number: &WrittenNumber,
    token: &TextToken,
    sentence: &str,
    stated: &[StatedNumber],
    announced: &AnnouncedOperation,
) -> Option<ProofOrigin> {
    if number.is_counted || number.value == 0.0 {
        return None;
    }
    // Points are between percentages, what else there is between amounts.
    let is_of_points = token.is_of_points(sentence) && stated.iter().any(|one| one.is_percent);
    // `5.4 % against 4.8 %, a relative uplift of 12.5 %`.
    let is_relative = number.is_percent && !is_of_points && says(sentence, &RELATIVE);
    let are_percent = is_of_points || (is_relative && stated.iter().all(|one| one.is_percent));
    let operands: Vec<&StatedNumber> = stated.iter().filter(|one| one.is_percent == are_percent).collect();
    let pairs = pairs_beside(&operands, token.start).into_iter();
    let is_total = announced.total || sentence.contains(": ");
    let sums = match number.is_percent || is_of_points {
        true => Vec::new(),
        false => sums_of_list(&operands, token.start, is_total),
    };
    let results: Vec<StatedResult> = pairs
        .flat_map(|(left, right)| match number.is_percent && !is_of_points {
            true => percentages_of(left, right, sentence, announced),
            false => amounts_of(left, right, sentence, announced),
        })
        .chain(sums)
        .filter(|result| result.value.is_finite() && !result.cells.is_empty())
        .collect();
    let most = most_candidates(number);
    let fits = |result: &&StatedResult| number.rounded().stands_for(result.value, scale_of_number(number));
    let are_few = |count: usize| count > 0 && count as f64 <= most;
    let said: Vec<&StatedResult> = results.iter().filter(|result| result.is_announced).collect();
    // The only one that words announce is what is meant, however few digits it has.
    let of_said = if said.len() == 1 || are_few(said.len()) { said.into_iter().find(fits) } else { None };
    let found = of_said.or_else(|| if are_few(results.len()) { results.iter().find(fits) } else { None })?;
    let StatedResult { value, sql, cells, .. } = found;
    Some(ProofOrigin::Expression { expression: sql.clone(), value: *value, cells: cells.clone() })
}

/// Returns the share that a number before a percentage has in the total of the column whose cells it is of: `search made 250,370.50,
/// or 55 % of total revenue`.
fn share_of_all(
    result: &ProofRows,
    number: &WrittenNumber,
    token: &TextToken,
    sentence: &str,
    stated: &[StatedNumber],
) -> Option<ProofOrigin> {
    const MAX_ROWS: usize = 100;
    /// How many points a share may be from its bound.
    const NEAR_BOUND: f64 = 5.0;
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    let before = stated.iter().rev().find(|one| one.end <= token.start && !one.is_percent)?;
    let column =
        result.columns.iter().position(|name| before.cells.first().is_some_and(|cell| cell.column == *name))?;
    let is_of_column = before
        .cells
        .iter()
        .all(|cell| result.columns.get(column) == Some(&cell.column) && cell.call_index == result.call_index);
    let all = result.numbers(column);
    // What is spent is a part of all that is.
    let is_loss = before.cells.iter().all(|cell| value_at(result, cell) < 0.0);
    let of_kind = || all.iter().filter(|(_, value)| (*value < 0.0) == is_loss);
    let total: f64 = of_kind().map(|(_, value)| *value).sum::<f64>().abs();
    let share = 100.0 * before.value.abs() / total;
    let behind = sentence.get(token.end..).unwrap_or_default().trim_start_matches(['%', ' ', '*']);
    let is_said = behind.starts_with("of ") || most_candidates(number) >= 2.0;
    let is_so = number.is_percent && is_whole && is_of_column && is_said && total > 0.0;
    let near = share - number.value;
    let fits = match bound_before(sentence, token.start) {
        Some(NumberBound::Above | NumberBound::AtLeast) => (0.0..NEAR_BOUND).contains(&near),
        Some(NumberBound::Below | NumberBound::AtMost) => (-NEAR_BOUND..=0.0).contains(&near),
        _ => widened(number.rounded(), sentence, token.start).stands_for(share, ShareScale::Percent),
    };
    (is_so && share < 100.0 && fits).then(|| ProofOrigin::Expression {
        expression: format!("100.0e0 * {} / {total:?}", before.sql),
        value: share,
        cells: of_kind().map(|(row, _)| result.cell(*row, column)).collect(),
    })
}

fn value_at(result: &ProofRows, cell: &CellReference) -> f64 {
    let column = result.columns.iter().position(|name| *name == cell.column);
    column.and_then(|column| number_of(result.rows.get(cell.row)?.get(column)?)).unwrap_or_default()
}

fn scale_of_number(number: &WrittenNumber) -> ShareScale {
    if number.is_percent { ShareScale::Percent } else { ShareScale::Amount }
}

/// Returns the numbers next to a place, two by two: the last before it, the first behind it, and one of each side.
fn pairs_beside<'s>(stated: &[&'s StatedNumber], at: usize) -> Vec<(&'s StatedNumber, &'s StatedNumber)> {
    let (before, behind): (Vec<&StatedNumber>, Vec<&StatedNumber>) =
        stated.iter().copied().partition(|one| one.start < at);
    let mut pairs = Vec::new();
    if let [.., left, right] = before.as_slice() {
        pairs.push((*left, *right));
    }
    // `From 444 to 462, an increase of 18 (4.1 %)`.
    if let [.., first, second, third] = before.as_slice() {
        pairs.extend([(*first, *second), (*first, *third)]);
    }
    if let [left, right, ..] = behind.as_slice() {
        pairs.push((*left, *right));
    }
    if let (Some(left), Some(right)) = (before.last(), behind.first()) {
        pairs.push((*left, *right));
    }
    pairs
}

/// Returns the sum of all numbers before a place, and of all behind it, where they are more than two: `4.7 million: 778,180 of
/// singles, 3,287,190 of doubles and 630,720 of suites`.
fn sums_of_list(stated: &[&StatedNumber], at: usize, is_announced: bool) -> Vec<StatedResult> {
    let (before, behind): (Vec<&StatedNumber>, Vec<&StatedNumber>) =
        stated.iter().copied().partition(|one| one.start < at);
    let sum = |list: Vec<&StatedNumber>| StatedResult {
        value: list.iter().map(|one| one.value).sum(),
        sql: list.iter().map(|one| one.sql.as_str()).collect::<Vec<_>>().join(" + "),
        cells: list.iter().flat_map(|one| one.cells.iter().cloned()).collect(),
        is_announced,
    };
    [before, behind].into_iter().filter(|list| list.len() > 2).map(sum).collect()
}

/// Returns the share that one of two is of the other, and by how much it is more or less.
fn percentages_of(
    left: &StatedNumber,
    right: &StatedNumber,
    sentence: &str,
    announced: &AnnouncedOperation,
) -> Vec<StatedResult> {
    let between = sentence.get(left.end..right.start).unwrap_or_default();
    let is_share = says(between, &OF) || between.trim() == "/";
    let share = |part: &StatedNumber, whole: &StatedNumber| {
        let sql = format!("100.0e0 * {} / {}", part.sql, whole.sql);
        result_of(100.0 * part.value / whole.value, sql, part, whole, is_share)
    };
    let change = |now: &StatedNumber, base: &StatedNumber| {
        let value = 100.0 * (now.value - base.value) / base.value;
        let sql = format!("abs(100.0e0 * ({now} - {base}) / {base})", now = now.sql, base = base.sql);
        result_of(value.abs(), sql, now, base, announced.growth && !is_share)
    };
    let (less, more) = if left.value <= right.value { (left, right) } else { (right, left) };
    let changes = match announced.direction {
        Some(ChangeDirection::Up) => vec![change(more, less)],
        Some(ChangeDirection::Down) => vec![change(less, more)],
        None => vec![change(more, less), change(less, more)],
    };
    std::iter::once(share(less, more)).chain(changes).collect()
}

/// Returns the sum of two numbers, their difference and their ratio.
fn amounts_of(
    left: &StatedNumber,
    right: &StatedNumber,
    sentence: &str,
    announced: &AnnouncedOperation,
) -> Vec<StatedResult> {
    let between = sentence.get(left.end..right.start).unwrap_or_default();
    let is_less = says(between, &["minus", "less"]);
    let (more, less) = if left.value >= right.value { (left, right) } else { (right, left) };
    let is_difference = is_less || announced.difference || says(sentence, &LEAVES);
    let is_sum = !is_less && (announced.total || says(sentence, &MAKES));
    let is_rate = announced.ratio || says(sentence, &FOR_EACH);
    let (sum, difference) = (more.value + less.value, more.value - less.value);
    vec![
        result_of(sum, format!("{} + {}", more.sql, less.sql), more, less, is_sum),
        result_of(difference, format!("{} - {}", more.sql, less.sql), more, less, is_difference),
        result_of(more.value / less.value, format!("1.0e0 * {} / {}", more.sql, less.sql), more, less, is_rate),
    ]
}

fn result_of(value: f64, sql: String, left: &StatedNumber, right: &StatedNumber, is_announced: bool) -> StatedResult {
    let mut cells = left.cells.clone();
    cells.extend(right.cells.iter().filter(|cell| !left.cells.contains(cell)).cloned());
    StatedResult { value, sql, cells, is_announced }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    fn of_shops(text: &str) -> Vec<String> {
        doubted(
            &["shop", "orders", "returned", "staff"],
            json!([["Leeds", 4210, 137, 12], ["York", 2874, 205, 7], ["Hull", 1993, 61, 9]]),
            text,
        )
    }

    #[test]
    fn what_two_numbers_of_the_sentence_give_is_proven() {
        for text in [
            "Leeds and York had 7,084 orders and took 342 back, a return rate of 4.83 %.",
            "Leeds and York had 7,084 orders with 342 returned, which leaves 6,742 that were kept.",
            "Leeds and York had 7,084 orders and took 342 back, i.e. 4.83 %.",
        ] {
            assert_eq!(of_shops(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn points_are_between_percentages() {
        let text =
            "York had 7.1 % of its 2,874 orders back, 3.9 percentage points more than Leeds with 3.3 % of 4,210.";
        assert_eq!(of_shops(text), Vec::<String>::new());
        assert_eq!(of_shops(&text.replace("3.9", "4.9")), ["4.9"]);
    }

    #[test]
    fn what_they_do_not_give_is_of_shops() {
        for (text, wrong) in [
            ("Leeds and York had 7,084 orders and took 342 back, a return rate of 4.38 %.", "4.38"),
            ("Leeds and York had 7,084 orders with 342 returned, which leaves 6,724 that were kept.", "6,724"),
        ] {
            assert_eq!(of_shops(text), [wrong], "{text}");
        }
    }
}
