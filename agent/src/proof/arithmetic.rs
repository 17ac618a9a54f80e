//! Numbers that are arithmetic over cells: totals, averages, differences, ratios and shares. A text has to say that it
//! means one: with enough cells any number is the difference of two.

use super::bounds::PERIODS;
use super::tokens::{ShareScale, WrittenNumber, find_word};
use super::{CellReference, ProofRows, number_of};

/// Cells of which pairs are tried, and those of several results.
const MAX_PAIRED: usize = 24;
const MAX_ACROSS: usize = 8;

/// What words announce.
struct AnnouncedOperation {
    total: bool,
    average: bool,
    median: bool,
    difference: bool,
    ratio: bool,
    share: bool,
    /// A change, of which a percentage is no share.
    growth: bool,
    /// It is one upwards, or downwards, by all words.
    direction: Option<ChangeDirection>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChangeDirection {
    Up,
    Down,
}

/// Words of a change from one number to another, which is a difference of the two.
const CHANGES: [&str; 20] = [
    "grew",
    "fell",
    "shrank",
    "shrunk",
    "rose",
    "increase",
    "decrease",
    "growth",
    "drop",
    "declin",
    "up by",
    "down by",
    " up on ",
    " up from ",
    " down on ",
    " down from ",
    "mehr als",
    "weniger als",
    "más que",
    "menos que",
];
const UP: [&str; 14] = [
    "grew",
    "rose",
    "increase",
    "growth",
    " gain",
    "up by",
    " up on ",
    " up from ",
    "higher",
    "more",
    "larger",
    "greater",
    "mehr als",
    "más que",
];
const DOWN: [&str; 15] = [
    "fell",
    "shrank",
    "shrunk",
    "decrease",
    "drop",
    "declin",
    "down by",
    " down on ",
    " down from ",
    "lower",
    "fewer",
    "less",
    "smaller",
    "weniger als",
    "menos que",
];
/// Ends of a comparison: `older than`, `warmer than`.
const COMPARES: &str = "er than ";

impl AnnouncedOperation {
    fn in_text(text: &str) -> Self {
        let text = without_bounds(&text.to_lowercase());
        let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
        let is_over_time = has(&["over "]) && PERIODS.iter().any(|period| find_word(&text, period).is_some());
        Self {
            // `Of 1,000 payments 310 were in cash`.
            total: is_over_time
                || text.trim_start().starts_with("of ")
                || has(&[
                    "total",
                    "sum",
                    "together",
                    "add up",
                    "adds up",
                    "added up",
                    "combined",
                    "altogether",
                    "in all",
                    "overall",
                    "over the",
                    "across",
                    "insgesamt",
                    "gesamt",
                    "zusammen",
                    "en tout",
                    "in tutto",
                    "en conjunto",
                    "em conjunto",
                    "totaal",
                ]),
            median: has(&["median", "mediane", "mediana", "médiane"]),
            average: has(&[
                "average",
                "mean",
                "on avg",
                "durchschnitt",
                "im schnitt",
                "moyenne",
                "promedio",
                "la media ",
                "in media ",
                "média",
                "gemiddeld",
            ]),
            difference: is_by_number(&text)
                || is_up_or_down(&text)
                || has_plus(&text)
                || has(&CHANGES)
                // A margin in percent is a share, and no difference.
                || (has(&["margin"]) && !has(&["%", "percent"]))
                || has(&[
                    "more",
                    "less",
                    "fewer",
                    "difference",
                    "gap",
                    "ahead",
                    "behind",
                    "higher",
                    "lower",
                    "between",
                    "range",
                    "change",
                    " gain",
                    "above",
                    "below",
                    "that leaves",
                    "leaving",
                    "remain",
                    "the rest",
                    "were not ",
                    "was not ",
                    "are not ",
                    "is not ",
                    "spread",
                    "outsold",
                    "outnumber",
                    "beat",
                    "exceed",
                    "surpass",
                    "trail",
                    "span",
                    "apart",
                    "differ",
                    "short of",
                    "lead of",
                    "lead over",
                    "plus que",
                    "moins que",
                    "leads by",
                    COMPARES,
                ]),
            direction: match (has(&UP), has(&DOWN)) {
                (true, false) => Some(ChangeDirection::Up),
                (false, true) => Some(ChangeDirection::Down),
                _ => None,
            },
            growth: has_plus(&text) || has(&CHANGES),
            ratio: has_times_mark(&text)
                || has(&[
                    " to one",
                    " to 1",
                    "times",
                    "ratio",
                    "twice",
                    "per ",
                    "factor",
                    "one in ",
                    "1 in ",
                    "density",
                    "for every ",
                    "for each ",
                ]),
            share: has(&[
                "%",
                "percent",
                "prozent",
                "pour cent",
                "share",
                "proportion",
                "fraction",
                "out of every ",
                "out of 100",
                "quarter of",
                "quarters of",
                "third of",
                "thirds of",
                "fifth of",
                "fifths of",
                "tenth of",
                "tenths of",
                "by a third",
                "by a quarter",
                "by a fifth",
                "by a tenth",
                "by one third",
                "by one quarter",
            ]),
        }
    }
}

/// Whether a sentence says more of a number than that it was found: then nobody knows which number is meant.
pub(super) fn announces_more(sentence: &str) -> bool {
    const OF_REST: [&str; 9] =
        ["not", "remaining", "rest", "without", "outside", "other", "others", "except", "excluding"];
    let announced = AnnouncedOperation::in_text(sentence);
    let is_rest = OF_REST.iter().any(|word| find_word(sentence, word).is_some());
    let is_of_several = announced.total || announced.average || announced.median;
    announced.difference || announced.ratio || announced.growth || announced.share || is_of_several || is_rest
}

/// Returns a lowercase text without the words that bound a number, `more than 5`, which announce no difference; those of
/// `3 more than 5` do.
fn without_bounds(text: &str) -> String {
    const BOUNDS: [&str; 6] =
        ["more than ", "less than ", "fewer than ", "higher than ", "lower than ", "greater than "];
    let mut plain = text.to_owned();
    for phrase in BOUNDS {
        let mut from = 0;
        while let Some(at) = plain.get(from..).and_then(|rest| rest.find(phrase)).map(|at| from + at) {
            let behind = plain[at + phrase.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
            let is_bound = behind.starts_with(|c: char| c.is_ascii_digit());
            let before = plain[..at].split_whitespace().next_back().unwrap_or_default();
            let is_difference = before.contains(|c: char| c.is_ascii_digit()) || before.ends_with('%');
            if is_bound && !is_difference {
                plain.replace_range(at..at + phrase.len(), "");
                from = at;
            } else {
                from = at + phrase.len();
            }
        }
    }
    plain
}

/// Whether a text says by how much: `won by 532 votes`.
fn is_by_number(text: &str) -> bool {
    text.match_indices(" by ").any(|(at, by)| {
        let behind = text[at + by.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
        behind.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a text says a change by its sign: `+1,260 orders`.
fn has_plus(text: &str) -> bool {
    text.match_indices('+').any(|(at, mark)| {
        let is_begin = text[..at].chars().next_back().is_none_or(|c| c.is_whitespace() || c == '(');
        let behind = text[at + mark.len()..].trim_start_matches(|c: char| "$€£¥ ".contains(c));
        is_begin && behind.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// Whether a text says by how much something is up or down: `up 180 from the year before`.
fn is_up_or_down(text: &str) -> bool {
    [" up ", " down "].iter().any(|word| {
        text.match_indices(word).any(|(at, found)| {
            let behind = text[at + found.len()..].trim_start_matches(|c: char| "$€£¥(".contains(c));
            behind.starts_with(|c: char| c.is_ascii_digit())
        })
    })
}

/// Whether a text says so many times as much: `4x`.
fn has_times_mark(text: &str) -> bool {
    text.match_indices(['x', '×']).any(|(at, mark)| {
        let is_behind_digit = text[..at].ends_with(|c: char| c.is_ascii_digit());
        let is_end = text[at + mark.len()..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        is_behind_digit && is_end
    })
}

/// A number that is looked for, and the rows that its sentence names; it is of these.
pub(super) struct WantedNumber<'a> {
    pub(super) number: &'a WrittenNumber,
    pub(super) rows: &'a [usize],
    /// The row that has changed and the one that it is compared with, where the sentence says so.
    pub(super) change: Option<(usize, usize)>,
    /// Whether it is of percentage points, which are a difference and no share.
    pub(super) is_points: bool,
}

impl WantedNumber<'_> {
    fn is_named(&self, cell: &NumberCell) -> bool {
        self.rows.is_empty() || self.rows.contains(&cell.reference.row)
    }

    /// Whether one cell may be the share of another: of the same row, or of one that the sentence names as well.
    fn may_be_share(&self, left: &NumberCell, right: &NumberCell) -> bool {
        !self.is_points && (self.rows.len() != 1 || left.reference.row == right.reference.row)
    }

    /// Whether an expression of two cells is of the rows that the sentence names: of both where it names several.
    fn is_of(&self, left: &NumberCell, right: &NumberCell) -> bool {
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
    text: String,
    reference: CellReference,
}

/// Returns the expression over cells of a result that a number is, its value, and the cells.
pub(super) fn expression_of(
    wanted: &WantedNumber<'_>,
    result: &ProofRows,
    clause: &str,
    sentence: &str,
) -> Option<(String, f64, Vec<CellReference>)> {
    let announced = AnnouncedOperation::in_text(&format!("{clause} {sentence}"));
    let number = wanted.number;
    // The last year without the first is no measure, unless a time is asked for.
    let labels = result.label_columns();
    let is_of_time =
        announced.total || ["span", "range", "cover", "between"].iter().any(|word| sentence.contains(word));
    let is_label = |column: &usize| result.rows.len() > 1 && labels.contains(column) && !is_of_time;
    for column in (0..result.columns.len()).filter(|column| !is_label(column)) {
        let cells: Vec<NumberCell> = result
            .rows
            .iter()
            .enumerate()
            .filter_map(|(row, values)| {
                let value = values.get(column)?;
                Some(NumberCell { value: number_of(value)?, text: text_of(value), reference: result.cell(row, column) })
            })
            .collect();
        if cells.is_empty() {
            continue;
        }
        let scale = result.share_scale(column);
        let whole = |sql: String, value: f64| {
            number
                .stands_for(value, scale)
                .then(|| (sql, value, cells.iter().map(|cell| cell.reference.clone()).collect()))
        };
        let sum: f64 = cells.iter().map(|cell| cell.value).sum();
        let added = cells.iter().map(|cell| cell.text.as_str()).collect::<Vec<_>>().join(" + ");
        // A number of four digits is no sum by chance, where the clause names no row.
        let is_exact = number.value >= 1_000.0 && number.tolerance <= 0.5 && !number.is_percent;
        if cells.len() > 1 {
            if (announced.total || (is_exact && wanted.rows.is_empty() && result.rows.len() == result.row_count))
                && let Some(found) = whole(added.clone(), sum)
            {
                return Some(found);
            }
            let count = cells.len();
            if announced.average
                && let Some(found) = whole(format!("CAST({added} AS DOUBLE) / {count}"), sum / count as f64)
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
        if announced.share && !announced.growth && sum != 0.0 {
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
            .filter_map(|(column, value)| {
                Some(NumberCell { value: number_of(value)?, text: text_of(value), reference: result.cell(row, column) })
            })
            .collect();
        of_row(number, &cells, &announced).or_else(|| paired(wanted, &cells, &announced, ShareScale::Unknown))
    })
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
    cells.iter().find_map(|cell| {
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
            cells.extend(values.iter().enumerate().filter_map(|(column, value)| {
                Some(NumberCell { value: number_of(value)?, text: text_of(value), reference: result.cell(row, column) })
            }));
        }
        of_several += usize::from(cells.len() > before);
    }
    if of_several < 2 || cells.len() > MAX_ACROSS {
        return None;
    }
    let announced = AnnouncedOperation::in_text(&format!("{clause} {sentence}"));
    paired(&WantedNumber { number, rows: &[], change: None, is_points: false }, &cells, &announced, ShareScale::Unknown)
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
    let may_be_share = number.is_percent || number.tolerance < 0.5;
    let ratio = number.rounded();
    // A percentage is a difference or a sum only of percentages.
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
            let (l, r) = (&left.text, &right.text);
            let has_ratio = right.value != 0.0;
            // What has the share is named, where only one is.
            let has_share = announced.share && has_ratio && wanted.is_named(left) && may_be_share;
            let is_change = wanted.change.is_none_or(|rows| rows == (left.reference.row, right.reference.row));
            let grows = left.value >= right.value;
            let is_directed = match announced.direction {
                Some(ChangeDirection::Up) => grows,
                Some(ChangeDirection::Down) => !grows,
                None => true,
            };
            let tried = [
                (announced.difference && is_of_kind)
                    .then(|| found(format!("{l} - {r}"), left.value - right.value, scale)),
                (announced.total && is_of_kind).then(|| found(format!("{l} + {r}"), left.value + right.value, scale)),
                (announced.ratio && has_ratio && !number.is_percent).then(|| {
                    let value = left.value / right.value;
                    let cells = vec![left.reference.clone(), right.reference.clone()];
                    let sql = format!("{l} / CAST({r} AS DOUBLE)");
                    ratio.stands_for(value, ShareScale::Unknown).then_some((sql, value, cells))
                }),
                (has_share && !announced.growth && wanted.may_be_share(left, right)).then(|| {
                    let value = 100.0 * left.value / right.value;
                    found(format!("100.0e0 * {l} / CAST({r} AS DOUBLE)"), value, ShareScale::Percent)
                }),
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

fn text_of(value: &serde_json::Value) -> String {
    let text = match value {
        serde_json::Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    if text.starts_with('-') { format!("({text})") } else { text }
}
