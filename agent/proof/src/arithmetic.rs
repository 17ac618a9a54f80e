//! Numbers that are arithmetic over cells: totals, averages, differences, ratios and shares. A text has to say that it
//! means one: with enough cells any number is the difference of two.

use serde_json::Value;

use super::announced::{AnnouncedOperation, ChangeDirection, direction_in};
use super::claims::is_said_of_one;
use super::rows::TokenPlace;
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, last_words, says};
use super::units::{factor_to_unit, unit_beside};
use super::{CellReference, ProofOrigin, ProofRows, number_of};

/// Cells of which pairs are tried, and those of several results.
const MAX_PAIRED: usize = 24;
const MAX_ACROSS: usize = 8;

/// A whole number below this is the sum or the difference of two only where it is their very sum.
const SMALL: f64 = 20.0;
/// The longest sentence whose change has a direction, in bytes.
const LONGEST_CHANGE: usize = 1_000;

/// A number that is looked for, and the rows that its sentence names; it is of these.
pub(super) struct WantedNumber<'a> {
    number: &'a WrittenNumber,
    rows: &'a [usize],
    /// The rows that it does not name, where it speaks of the others.
    others: Option<Vec<usize>>,
    /// The row that has changed and the one that it is compared with, where the sentence says so.
    change: Option<(usize, usize)>,
    /// Whether it is of percentage points, which are a difference and no share.
    is_points: bool,
    /// The rows of which it says that it is the difference, `six ahead of B`; none where it says no such thing.
    compared: Vec<usize>,
    /// The column of which that difference is by the word behind the number, `17 points behind B`.
    column: Option<usize>,
    /// Whether it is said of one row, which has no total of others.
    is_of_one: bool,
    /// Whether the sentence speaks of several changes: `up by 91 and then down by 26`.
    is_of_several: bool,
    /// Whether it is of a unit, so that it is no share: `8.9 GB`.
    is_measured: bool,
}

impl<'a> WantedNumber<'a> {
    pub(super) fn new(
        number: &'a WrittenNumber,
        result: &ProofRows,
        rows: &'a [usize],
        token: &TextToken,
        place: TokenPlace<'_>,
    ) -> Self {
        let TokenPlace { clause, sentence, .. } = place;
        let is_between = is_said_as_difference(clause, token) && !result.labelled(&clause[token.end..]).is_empty();
        let named = if is_between { result.labelled(sentence) } else { Vec::new() };
        // `2.6 % less than in 2023` of two years.
        let compared = match is_between && named.is_empty() && result.names_every_row(sentence) {
            true => (0..result.rows.len()).collect(),
            false => named,
        };
        let column = result.column_behind(token, clause).filter(|_| compared.len() > 1);
        let (change, is_points) = (result.change_in(sentence), token.is_of_points(clause));
        let is_of_one = is_said_of_one(result, token, place);
        let is_of_several = sentence.len() > LONGEST_CHANGE || sentence.matches(" by ").count() > 1;
        let others = result.other_rows(place);
        let is_measured = !number.is_percent && unit_beside(token, clause).is_some();
        Self { number, rows, others, change, is_points, compared, column, is_of_one, is_of_several, is_measured }
    }

    fn is_named(&self, cell: &NumberCell) -> bool {
        self.rows.is_empty() || self.rows.contains(&cell.reference.row)
    }

    /// Whether one cell may be the share of another: of the same row, or of one that the sentence names as well.
    fn may_be_share(&self, left: &NumberCell, right: &NumberCell) -> bool {
        !self.is_points && (self.rows.len() != 1 || left.reference.row == right.reference.row)
    }

    /// Whether an expression of two cells is of the rows that the sentence names: of both where it names several.
    fn is_of(&self, left: &NumberCell, right: &NumberCell) -> bool {
        let (one, other) = (left.reference.row, right.reference.row);
        if self.compared.len() > 1 {
            return one != other && self.compared.contains(&one) && self.compared.contains(&other);
        }
        match self.rows.len() {
            0 => true,
            1 => self.is_named(left) || self.is_named(right),
            _ => self.is_named(left) && self.is_named(right),
        }
    }
}

/// A number with the cell that it is of.
struct NumberCell {
    value: f64,
    /// Whether it is of whole numbers: a count, and no amount.
    is_whole: bool,
    text: String,
    reference: CellReference,
}

impl NumberCell {
    fn new(result: &ProofRows, row: usize, column: usize, value: &Value) -> Option<Self> {
        let is_whole = value.as_number().is_some_and(|number| !number.is_f64());
        Some(Self { value: number_of(value)?, is_whole, text: text_of(value), reference: result.cell(row, column) })
    }

    /// Whether it may be added to what another cell holds: one of its column, of its kind, or about as large.
    fn is_of_magnitude_of(&self, other: &Self) -> bool {
        const MOST: f64 = 20.0;
        let (one, other_value) = (self.value.abs(), other.value.abs());
        self.is_of_kind(other) || (one <= MOST * other_value && other_value <= MOST * one)
    }

    /// Whether it may be a part of what another cell counts or measures: hours are no part of tickets.
    fn is_of_kind(&self, other: &Self) -> bool {
        self.is_whole == other.is_whole || self.reference.column == other.reference.column
    }
}

/// Returns the expression over cells of a result that a number is, its value, and the cells.
pub(super) fn expression_of(
    wanted: &WantedNumber<'_>,
    result: &ProofRows,
    clause: &str,
    sentence: &str,
) -> Option<(String, f64, Vec<CellReference>)> {
    let mut announced = AnnouncedOperation::in_text(&format!("{clause} {sentence}"));
    // `A fell, while B grew by a third`.
    announced.direction = direction_in(clause).or(announced.direction);
    let number = wanted.number;
    // A sign says a change where nothing is below zero: `| Glass | -7,720 | -8.0 % |`.
    let is_negative = |(_, _, value): (usize, usize, &Value)| number_of(value).is_some_and(|value| value < 0.0);
    announced.difference |= !wanted.compared.is_empty() || (number.value < 0.0 && !result.cells().any(is_negative));
    // `Makes up 38.5 % of the 2,758.50`.
    let is_of_share = says_whole_of_share(clause);
    // The last year without the first is no measure, unless a time is asked for.
    let labels = result.label_columns();
    let is_of_time =
        announced.total || ["span", "range", "cover", "between"].iter().any(|word| sentence.contains(word));
    let is_label = |column: &usize| result.rows.len() > 1 && labels.contains(column) && !is_of_time;
    let is_of_column = |column: &usize| wanted.column.is_none_or(|of| of == *column);
    for column in (0..result.columns.len()).filter(|column| !is_label(column) && is_of_column(column)) {
        let cells: Vec<NumberCell> = result
            .rows
            .iter()
            .enumerate()
            .filter_map(|(row, values)| {
                let value = values.get(column)?;
                NumberCell::new(result, row, column, value)
            })
            .collect();
        if cells.is_empty() {
            continue;
        }
        let scale = result.share_scale(column);
        let whole = |sql: String, value: f64| {
            let references = || -> Vec<CellReference> { cells.iter().map(|cell| cell.reference.clone()).collect() };
            if number.stands_for(value, scale) {
                return Some((sql, value, references()));
            }
            let is_loss = announced.loss && value < 0.0 && number.stands_for(-value, scale);
            is_loss.then(|| (format!("-({sql})"), -value, references()))
        };
        let sum: f64 = cells.iter().map(|cell| cell.value).sum();
        let added = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
        // A number of four digits is no sum by chance, where the clause names no row.
        let written = number.other.map_or(number.value, |(other, _)| other.max(number.value));
        let is_exact = written >= 1_000.0 && number.tolerance <= 0.5 && !number.is_percent;
        let is_of_all = wanted.rows.is_empty() || is_of_share;
        if cells.len() > 1 {
            if ((announced.total && !wanted.is_of_one)
                || (is_exact && is_of_all && result.rows.len() == result.row_count))
                && !is_of_other_year(result, column, &announced, sentence)
                && let Some(found) = whole(added.clone(), sum)
            {
                return Some(found);
            }
            if announced.average
                && let Some((sql, value)) = mean_of(&cells)
                && let Some(found) = whole(sql, value)
            {
                return Some(found);
            }
            if announced.average
                && let Some(found) = mean_of_rows(&cells, wanted.others.as_deref().unwrap_or(wanted.rows))
                && number.stands_for(found.1, scale)
            {
                return Some(found);
            }
        }
        if announced.median
            && let Some((sql, value)) = median_of(&cells)
            && let Some(found) = whole(sql, value)
        {
            return Some(found);
        }
        // `35 % more than B` is no share of all.
        if announced.share && !announced.growth && sum != 0.0 && wanted.compared.len() < 2 {
            for cell in cells.iter().filter(|cell| wanted.is_named(cell)) {
                let value = 100.0 * cell.value / sum;
                if number.stands_for(value, ShareScale::Percent) {
                    let sql = format!("100.0e0 * {} / CAST({added} AS DOUBLE)", cell.text);
                    return Some((sql, value, cells.iter().map(|cell| cell.reference.clone()).collect()));
                }
            }
        }
        if let Some(found) = paired(wanted, &cells, &announced, scale) {
            return Some(found);
        }
    }
    // Of the columns of one row.
    result.rows.iter().enumerate().take(MAX_PAIRED).find_map(|(row, values)| {
        let cells: Vec<NumberCell> = values
            .iter()
            .enumerate()
            .filter_map(|(column, value)| NumberCell::new(result, row, column, value))
            .collect();
        of_row(number, &cells, &announced).or_else(|| paired(wanted, &cells, &announced, ShareScale::Unknown))
    })
}

/// Whether a clause says of what a percentage is: `38.5 % of the`, `1 % des`.
fn says_whole_of_share(clause: &str) -> bool {
    const OF: &str = " of des der von vom de du del dei do da dos das van degli delle ";
    const PERCENT: [&str; 8] =
        ["%", "percent", "prozent", "procent", "por ciento", "por cento", "pour cent", "per cento"];
    let lower = clause.to_lowercase();
    PERCENT.iter().any(|mark| {
        lower.match_indices(mark).any(|(at, found)| {
            let next = lower[at + found.len()..].split_whitespace().next();
            next.is_some_and(|next| OF.contains(&format!(" {next} ")))
        })
    })
}

/// Whether a column is called by another year than the one that a sentence speaks of: what is said of 2025 is no total of
/// `pairs_2015`. A sentence that compares speaks of both.
pub(super) fn is_of_other_year(
    result: &ProofRows,
    column: usize,
    announced: &AnnouncedOperation,
    sentence: &str,
) -> bool {
    let year_of = |name: &String| -> Option<String> {
        let mut parts = name.split(|c: char| !c.is_ascii_digit());
        parts.find(|part| part.len() == 4 && part.starts_with(['1', '2'])).map(str::to_owned)
    };
    let is_said = |year: &String| find_word(sentence, year).is_some();
    let is_compared = announced.difference || announced.growth;
    let own = result.columns.get(column).and_then(year_of).filter(|year| !is_compared && !is_said(year));
    own.is_some() && result.columns.iter().filter_map(year_of).any(|year| is_said(&year))
}

/// Returns what proves, or refutes, a number that the words right before it call the mean or the median of all rows, `the median
/// is 5`; that some row has it is no proof. `None` where they do not, or where the query computes such.
pub(super) fn typical_origin(
    result: &ProofRows,
    number: &WrittenNumber,
    token: &TextToken,
    clause: &str,
) -> Option<ProofOrigin> {
    let before = &clause[..token.start];
    const LINKS: [&str; 4] = ["is", "was", "of", "at"];
    const MEDIANS: [&str; 1] = ["median"];
    const MEANS: [&str; 3] = ["average", "mean", "avg"];
    let before = before.trim_end_matches(|c: char| "$€£¥(: ".contains(c));
    let words = last_words(before, LINKS.len());
    // `The highest average delay is 15.8` is of one row.
    let is_of_one = words.split(' ').any(|word| word == "most" || word.ends_with("est"));
    let is_linked = LINKS.contains(&last_words(before, 1).as_str()) && !is_of_one;
    let says = |names: &[&str]| says(&words, names);
    let is_computed = |names: &[&str]| {
        let said = format!("{} {}", result.query_text, result.columns.join(" ")).to_lowercase();
        names.iter().any(|name| said.contains(name))
    };
    // A column of 50th percentiles has them of each row.
    let is_median = says(&MEDIANS) && !is_computed(&["median", "p50"]);
    let is_mean = !is_median && says(&MEANS) && !is_computed(&MEANS);
    if !is_linked || result.rows.len() < 2 || result.rows.len() < result.row_count || !(is_median || is_mean) {
        return None;
    }
    let labels = result.label_columns();
    let proven = (0..result.columns.len()).filter(|column| !labels.contains(column)).find_map(|column| {
        let values = result.rows.iter().enumerate();
        let cells: Vec<NumberCell> =
            values.filter_map(|(row, values)| NumberCell::new(result, row, column, values.get(column)?)).collect();
        let (expression, value) = if is_median { median_of(&cells)? } else { mean_of(&cells)? };
        // `8.3 minutes` of a column of seconds.
        let factor = result.columns.get(column).and_then(|name| factor_to_unit(name, token, clause));
        let (expression, value) = match factor.filter(|factor| *factor != 1.0) {
            Some(factor) => (format!("{factor:?} * ({expression})"), factor * value),
            None => (expression, value),
        };
        number.stands_for(value, result.share_scale(column)).then(|| ProofOrigin::Expression {
            expression,
            value,
            cells: cells.into_iter().map(|cell| cell.reference).collect(),
        })
    });
    Some(proven.unwrap_or(ProofOrigin::Unproven))
}

/// Returns the mean of numbers, as SQL and as it is.
fn mean_of(cells: &[NumberCell]) -> Option<(String, f64)> {
    let added = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
    let sum: f64 = cells.iter().map(|cell| cell.value).sum();
    let count = cells.len();
    (count > 0).then(|| (format!("CAST({added} AS DOUBLE) / {count}"), sum / count as f64))
}

/// Returns the mean of the numbers of some rows, `on the other ten days`, and their cells; `None` of one row and of all.
fn mean_of_rows(cells: &[NumberCell], rows: &[usize]) -> Option<(String, f64, Vec<CellReference>)> {
    let named: Vec<&NumberCell> = cells.iter().filter(|cell| rows.contains(&cell.reference.row)).collect();
    if named.len() < 2 || named.len() == cells.len() {
        return None;
    }
    let added = named.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
    let sum: f64 = named.iter().map(|cell| cell.value).sum();
    let references = named.iter().map(|cell| cell.reference.clone()).collect();
    Some((format!("CAST({added} AS DOUBLE) / {}", named.len()), sum / named.len() as f64, references))
}

/// Returns the median of numbers, as SQL and as it is.
fn median_of(cells: &[NumberCell]) -> Option<(String, f64)> {
    let mut sorted: Vec<&NumberCell> = cells.iter().collect();
    sorted.sort_by(|one, other| one.value.total_cmp(&other.value));
    let upper = sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 {
        return Some((upper.text.clone(), upper.value));
    }
    let lower = sorted.get((sorted.len() / 2).checked_sub(1)?)?;
    let sql = format!("CAST({} + {} AS DOUBLE) / 2", lower.text, upper.text);
    Some((sql, (lower.value + upper.value) / 2.0))
}

/// Returns the total of the columns of one row that a number is, or the share of one in it: `81 % completed` of 812
/// completed and 188 failed.
fn of_row(
    number: &WrittenNumber,
    cells: &[NumberCell],
    announced: &AnnouncedOperation,
) -> Option<(String, f64, Vec<CellReference>)> {
    let sum: f64 = cells.iter().map(|cell| cell.value).sum();
    if cells.len() < 2 || sum == 0.0 || cells.iter().any(|cell| cell.value < 0.0) {
        return None;
    }
    let references = || -> Vec<CellReference> { cells.iter().map(|cell| cell.reference.clone()).collect() };
    let added = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
    if announced.total && cells.len() > 2 && !number.is_percent && number.stands_for(sum, ShareScale::Unknown) {
        return Some((added, sum, references()));
    }
    // A part in words, `three fifths`, rounds so far that columns which are no parts of one whole make it by chance.
    if !announced.share || announced.growth || !number.is_percent || number.tolerance > 0.5 {
        return None;
    }
    let are_of_kind = cells.windows(2).all(|pair| pair[0].is_of_kind(&pair[1]));
    cells.iter().filter(|_| are_of_kind).find_map(|cell| {
        let share = 100.0 * cell.value / sum;
        number
            .stands_for(share, ShareScale::Percent)
            .then(|| (format!("100.0e0 * {} / CAST({added} AS DOUBLE)", cell.text), share, references()))
    })
}

/// Returns the expression over cells of several results that a number is: of the one row that each has, or of the rows
/// that the sentence names.
pub(super) fn expression_across<'r>(
    number: &WrittenNumber,
    results: impl Iterator<Item = &'r ProofRows>,
    clause: &str,
    sentence: &str,
) -> Option<(String, f64, Vec<CellReference>)> {
    let mut cells = Vec::new();
    let mut of_several = 0;
    for result in results {
        let rows = if result.rows.len() == 1 { vec![0] } else { result.labelled(sentence) };
        let before = cells.len();
        for row in rows {
            let Some(values) = result.rows.get(row) else { continue };
            cells.extend(
                values.iter().enumerate().filter_map(|(column, value)| NumberCell::new(result, row, column, value)),
            );
        }
        of_several += usize::from(cells.len() > before);
    }
    if of_several < 2 || cells.len() > MAX_ACROSS {
        return None;
    }
    let announced = AnnouncedOperation::in_text(&format!("{clause} {sentence}"));
    let wanted = WantedNumber {
        number,
        rows: &[],
        others: None,
        change: None,
        is_points: false,
        compared: Vec::new(),
        column: None,
        is_of_one: false,
        is_of_several: true,
        is_measured: false,
    };
    paired(&wanted, &cells, &announced, ShareScale::Unknown)
}

fn paired(
    wanted: &WantedNumber<'_>,
    cells: &[NumberCell],
    announced: &AnnouncedOperation,
    scale: ShareScale,
) -> Option<(String, f64, Vec<CellReference>)> {
    let cells = &cells[..cells.len().min(MAX_PAIRED)];
    let number = wanted.number;
    // `Two regions had a rate above 20 %`: two is no share.
    let may_be_share = number.is_percent || (number.tolerance < 0.5 && !wanted.is_measured);
    let ratio = number.rounded();
    // A percentage is a difference or a sum only of percentages.
    let is_points_of_fraction = wanted.is_points && !number.is_percent && scale == ShareScale::Fraction;
    let is_of_kind = !number.is_percent || matches!(scale, ShareScale::Fraction | ShareScale::Percent);
    for (index, left) in cells.iter().enumerate() {
        for (other, right) in cells.iter().enumerate() {
            if index == other || !wanted.is_of(left, right) {
                continue;
            }
            let found = |sql: String, value: f64, scale: ShareScale| {
                let cells = vec![left.reference.clone(), right.reference.clone()];
                number.stands_for(value, scale).then_some((sql, value, cells))
            };
            // Nobody rounds 6.5 to 7, nor takes a mark from a number of tickets.
            let may_be_added = left.is_of_magnitude_of(right);
            let is_small = number.tolerance >= 0.5 && number.value.abs() < SMALL;
            let added = |sql: String, value: f64| {
                let is_so = may_be_added && (!is_small || (value.fract().abs() < 1e-6));
                is_so.then(|| found(sql, value, scale)).flatten()
            };
            let (l, r) = (&left.text, &right.text);
            let has_ratio = right.value != 0.0;
            // What has the share is named, where only one is.
            let is_compared = wanted.compared.len() > 1;
            let has_share = announced.share && has_ratio && (is_compared || wanted.is_named(left)) && may_be_share;
            let is_change = wanted.change.is_none_or(|rows| rows == (left.reference.row, right.reference.row));
            let grows = left.value >= right.value;
            let is_directed = match announced.direction {
                Some(ChangeDirection::Up) => grows,
                Some(ChangeDirection::Down) => !grows,
                None => true,
            };
            // `Rose by 20 from April to May`: of a fall it is the other way round.
            let rows = (left.reference.row, right.reference.row);
            let is_so_directed = match (wanted.change, announced.direction) {
                _ if wanted.is_of_several => true,
                _ if rows.0 == rows.1 || number.value < 0.0 || !announced.growth => true,
                (Some((new, old)), Some(ChangeDirection::Up)) => rows == (new, old),
                (Some((new, old)), Some(ChangeDirection::Down)) => rows == (old, new),
                _ => true,
            };
            let tried = [
                (announced.difference && is_of_kind && is_so_directed)
                    .then(|| added(format!("{l} - {r}"), left.value - right.value)),
                // `8.15 points` between shares that are kept as fractions.
                (announced.difference && is_points_of_fraction).then(|| {
                    let value = 100.0 * (left.value - right.value);
                    found(format!("100.0e0 * ({l} - {r})"), value, ShareScale::Unknown)
                }),
                (announced.total && is_of_kind).then(|| added(format!("{l} + {r}"), left.value + right.value)),
                (announced.ratio && has_ratio && !number.is_percent).then(|| {
                    let value = left.value / right.value;
                    let cells = vec![left.reference.clone(), right.reference.clone()];
                    let sql = format!("{l} / CAST({r} AS DOUBLE)");
                    ratio.stands_for(value, ShareScale::Unknown).then_some((sql, value, cells))
                }),
                (has_share && !announced.growth && wanted.may_be_share(left, right) && left.is_of_kind(right)).then(
                    || {
                        let value = 100.0 * left.value / right.value;
                        found(format!("100.0e0 * {l} / CAST({r} AS DOUBLE)"), value, ShareScale::Percent)
                    },
                ),
                (has_share && announced.difference && is_change && is_directed && !wanted.is_points).then(|| {
                    let value = 100.0 * (left.value - right.value) / right.value;
                    let sql = format!("100.0e0 * ({l} - {r}) / CAST({r} AS DOUBLE)");
                    // `Fell by 25 %` says no sign.
                    found(sql.clone(), value, ShareScale::Percent).or_else(|| {
                        let sign = if value < 0.0 { -1.0 } else { 1.0 };
                        found(format!("abs({sql})"), value * sign, ShareScale::Percent)
                    })
                }),
            ];
            if let Some(found) = tried.into_iter().flatten().flatten().next() {
                return Some(found);
            }
        }
    }
    None
}

fn text_of(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}

/// Whether a number is a difference by what stands beside it: `406 more`, `3 seconds behind`, `+3`.
pub(super) fn is_said_as_difference(clause: &str, token: &TextToken) -> bool {
    const COMPARED: [&str; 7] = ["more", "fewer", "less", "higher", "lower", "additional", "extra"];
    const COMPARED_BY_UNIT: [&str; 8] =
        ["behind", "ahead", "later", "earlier", "longer", "shorter", "faster", "slower"];
    /// The same words of other languages, which stand behind a unit as well.
    const COMPARED_ELSEWHERE: [&str; 9] = ["mehr", "weniger", "más", "menos", "moins", "meer", "minder", "più", "meno"];
    /// Of them those that mean more only together: `plus que`, `mais do que`, `de plus`.
    const COMPARED_TOGETHER: [(&str, &str); 6] =
        [("plus", "que"), ("plus", "qu"), ("mais", "que"), ("mais", "do"), ("de", "plus"), ("a", "mais")];
    let mut behind = clause[token.end..].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut word = || behind.next().unwrap_or_default().to_lowercase();
    let (next, later, last) = (word(), word(), word());
    let is_elsewhere = [(&next, &later), (&later, &last)].into_iter().any(|(one, other)| {
        COMPARED_ELSEWHERE.contains(&one.as_str()) || COMPARED_TOGETHER.contains(&(one.as_str(), other.as_str()))
    });
    is_elsewhere
        || COMPARED.contains(&next.as_str())
        || COMPARED_BY_UNIT.contains(&next.as_str())
        || COMPARED_BY_UNIT.contains(&later.as_str())
        || (clause[..token.start].ends_with('+') && matches!(token.kind, TextTokenKind::Number(_)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn what_the_sentence_before_announces_holds_for_a_part_of_those() {
        let repos = json!([["quill", 412, 389], ["anvil", 230, 241], ["harbor", 178, 120], ["driftnet", 51, 17]]);
        let is_doubted = |text: &str| !doubted(&["repo", "opened", "closed"], repos.clone(), text).is_empty();
        let before = "In all, 871 issues were opened and 767 closed, a net increase of 104.";
        assert!(!is_doubted(&format!("{before} harbor contributed 58 of those, and driftnet another 34.")));
        assert!(is_doubted(&format!("{before} harbor contributed 56 of those, and driftnet another 34.")));
        assert!(is_doubted(&format!("{before} harbor contributed 58 of those, and driftnet another 37.")));
    }

    #[test]
    fn a_percentage_more_than_another_row_is_no_share_of_all() {
        let carriers = json!([["Aurora", 48_200], ["Borealis", 31_500], ["Cirrus", 27_400], ["Dorado", 29_600]]);
        let of_carriers = |text: &str| doubted(&["carrier", "flights"], carriers.clone(), text);
        let right = "Aurora operates 53.0 % more flights than Borealis.";
        assert_eq!(of_carriers(right), Vec::<String>::new());
        // Its share of all 136,700.
        assert_eq!(of_carriers(&right.replace("53.0", "35.3")), ["35.3"]);
    }

    #[test]
    fn a_sign_says_that_a_number_is_a_change() {
        let columns = ["museum", "visitors_2024", "visitors_2025"];
        let museums = json!([["Maritime", 184_200, 197_100], ["Glass", 96_500, 88_780], ["Salt", 33_600, 30_240]]);
        let is_doubted = |text: &str| !doubted(&columns, museums.clone(), text).is_empty();
        assert!(!is_doubted("| Museum | Visits | Share |\n|---|---:|---:|\n| Glass | -7,720 | -8.0% |\n"));
        assert!(is_doubted("| Museum | Visits | Share |\n|---|---:|---:|\n| Glass | -7,270 | -8.0% |\n"));
    }
}
