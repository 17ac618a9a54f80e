//! Numbers that one cell gives: what a share leaves (`the other 76 %`), one in so many, a ratio as an increase, and a measure
//! in another unit.

use super::announced::says_loss;
use super::foreign_numbers::without_added_part;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, says, tokens_in};
use super::{CellReference, ProofOrigin, number_of};

/// Cells that are looked at.
const MAX_CELLS: usize = 60;
/// Words by which a number is what is left.
const OF_REST: [&str; 51] = [
    "empty",
    "vacant",
    "free",
    "frei",
    "leer",
    "libres",
    "closed",
    "resolved",
    "offline",
    "unavailable",
    "idle",
    "unused",
    "refused",
    "rejected",
    "denied",
    "failed",
    "missed",
    "unsold",
    "unpaid",
    "übrigen",
    "restlichen",
    "nicht",
    "ohne",
    "autres",
    "restants",
    "sans",
    "demás",
    "sin",
    "restantes",
    "reprovaram",
    "suspendieron",
    "não",
    "sem",
    "overige",
    "niet",
    "zonder",
    "remaining",
    "remainder",
    "rest",
    "not",
    "outside",
    "other",
    "others",
    "stayed",
    "remained",
    "kept",
    "without",
    "except",
    "retained",
    "left",
    "no",
];
/// Units by their dimension, each with what one of it is in the least.
const UNITS: [(&str, char, f64); 78] = [
    ("w", 'p', 1.0),
    ("kw", 'p', 1e3),
    ("mw", 'p', 1e6),
    ("gw", 'p', 1e9),
    ("wp", 'p', 1.0),
    ("kwp", 'p', 1e3),
    ("mwp", 'p', 1e6),
    ("gwp", 'p', 1e9),
    ("wh", 'e', 1.0),
    ("kwh", 'e', 1e3),
    ("mwh", 'e', 1e6),
    ("gwh", 'e', 1e9),
    ("ha", 'a', 10_000.0),
    ("hectare", 'a', 10_000.0),
    ("hectares", 'a', 10_000.0),
    ("acre", 'a', 4_046.856),
    ("acres", 'a', 4_046.856),
    ("t", 'm', 1e6),
    ("ton", 'm', 1e6),
    ("tonne", 'm', 1e6),
    ("stunden", 't', 3_600.0),
    ("heures", 't', 3_600.0),
    ("horas", 't', 3_600.0),
    ("uur", 't', 3_600.0),
    ("minuten", 't', 60.0),
    ("minutos", 't', 60.0),
    ("litre", 'v', 1.0),
    ("litres", 'v', 1.0),
    ("liter", 'v', 1.0),
    ("liters", 'v', 1.0),
    ("litros", 'v', 1.0),
    ("ml", 'v', 0.001),
    ("m3", 'v', 1_000.0),
    ("m³", 'v', 1_000.0),
    ("kubikmeter", 'v', 1_000.0),
    ("ms", 't', 0.001),
    ("millisecond", 't', 0.001),
    ("milliseconds", 't', 0.001),
    ("s", 't', 1.0),
    ("sec", 't', 1.0),
    ("secs", 't', 1.0),
    ("second", 't', 1.0),
    ("seconds", 't', 1.0),
    ("min", 't', 60.0),
    ("mins", 't', 60.0),
    ("minute", 't', 60.0),
    ("minutes", 't', 60.0),
    ("h", 't', 3_600.0),
    ("hr", 't', 3_600.0),
    ("hrs", 't', 3_600.0),
    ("hour", 't', 3_600.0),
    ("hours", 't', 3_600.0),
    ("day", 't', 86_400.0),
    ("days", 't', 86_400.0),
    ("mm", 'l', 0.001),
    ("cm", 'l', 0.01),
    ("m", 'l', 1.0),
    ("meters", 'l', 1.0),
    ("metres", 'l', 1.0),
    ("km", 'l', 1_000.0),
    ("kilometers", 'l', 1_000.0),
    ("kilometres", 'l', 1_000.0),
    ("miles", 'l', 1_609.344),
    ("g", 'm', 1.0),
    ("grams", 'm', 1.0),
    ("kg", 'm', 1_000.0),
    ("tons", 'm', 1e6),
    ("tonnes", 'm', 1e6),
    ("bytes", 'b', 1.0),
    ("kb", 'b', 1e3),
    ("mb", 'b', 1e6),
    ("gb", 'b', 1e9),
    ("tb", 'b', 1e12),
    ("kib", 'b', 1_024.0),
    ("mib", 'b', 1_048_576.0),
    ("gib", 'b', 1_073_741_824.0),
    ("tib", 'b', 1_099_511_627_776.0),
    ("byte", 'b', 1.0),
];

/// See the module; of the rows that are named, or of all.
pub(super) fn derived_origin(
    result: &ProofRows,
    rows: &[usize],
    token: &TextToken,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let TextTokenKind::Number(number) = &token.kind else { return None };
    let lower = place.sentence.to_lowercase();
    // `Down 6.5 % of the time`; what is down by so much is less than before.
    let is_idle = find_word(&lower, "down").is_some() && lower.contains("of the time");
    let is_rest = is_idle || says(&lower, &OF_REST) || lower.contains("n't ");
    let is_one_in = lower.contains("one in ") || lower.contains("1 in ");
    let unit = unit_behind(token, place.clause);
    let is_of_rows = |row: &usize| rows.is_empty() || rows.contains(row);
    for (row, column, cell) in result.cells().filter(|(row, _, _)| is_of_rows(row)).take(MAX_CELLS) {
        let Some(value) = number_of(cell) else { continue };
        let origin = |expression: String, value: f64| {
            Some(ProofOrigin::Expression { expression, value, cells: vec![result.cell(row, column)] })
        };
        let is_share = |found: f64| number.stands_for(found, ShareScale::Percent);
        // What the cell is in percent, where it can be a share.
        let percent = match result.share_scale(column) {
            ShareScale::Fraction => Some(("100.0e0 * ", 100.0)),
            ShareScale::Percent => Some(("1.0e0 * ", 1.0)),
            ShareScale::Unknown if (0.0..=1.0).contains(&value) => Some(("100.0e0 * ", 100.0)),
            ShareScale::Unknown if (1.0..=100.0).contains(&value) => Some(("1.0e0 * ", 1.0)),
            ShareScale::Unknown | ShareScale::Amount => None,
        };
        if let Some((factor_text, factor)) = percent {
            let share = factor * value;
            if is_rest && number.is_percent && is_share(100.0 - share) {
                return origin(format!("100.0e0 - {factor_text}{value:?}"), 100.0 - share);
            }
            if is_one_in
                && is_rest
                && share < 100.0
                && !number.is_percent
                && number.rounded().stands_for(100.0 / (100.0 - share), ShareScale::Unknown)
            {
                let expression = format!("100.0e0 / (100.0e0 - {factor_text}{value:?})");
                return origin(expression, 100.0 / (100.0 - share));
            }
            if is_one_in
                && share != 0.0
                && !number.is_percent
                && number.rounded().stands_for(100.0 / share, ShareScale::Unknown)
            {
                return origin(format!("100.0e0 / ({factor_text}{value:?})"), 100.0 / share);
            }
        }
        let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
        let is_ratio = ["ratio", "factor", "multiple", "index"].iter().any(|word| name.contains(word));
        if is_ratio && number.is_percent && is_share(100.0 * (value - 1.0)) {
            return origin(format!("100.0e0 * ({value:?} - 1)"), 100.0 * (value - 1.0));
        }
        // `1 h 30 min` of 5400 seconds, `5 hours and 10 minutes` of 310 minutes.
        if let Some((dimension, unit)) = unit
            && let Some((of_column, column_unit)) = unit_of_column(&name)
            && of_column == dimension
            && let Some((whole, least)) = units_in_row(token, place, dimension)
            && (value * column_unit - whole).abs() < 0.5 * least
        {
            let factor = column_unit / unit;
            return origin(format!("1.0e0 * {value:?} * {factor:?}"), value * factor);
        }
        if let Some((dimension, unit)) = unit
            && let Some((of_column, column_unit)) = unit_of_column(&name)
            && of_column == dimension
            && unit != column_unit
        {
            let factor = column_unit / unit;
            if number.stands_for(value * factor, ShareScale::Unknown) {
                return origin(format!("1.0e0 * {value:?} * {factor:?}"), value * factor);
            }
            // `Lost 1.56 metres` of -1560 mm.
            let is_loss = value < 0.0 && says_loss(&lower);
            if is_loss && number.stands_for(-value * factor, ShareScale::Unknown) {
                return origin(format!("1.0e0 * {:?} * {factor:?}", -value), -value * factor);
            }
            // `37 minutes and 27 seconds`.
            let part = (value - value.floor()) * factor;
            let says_whole = tokens_in(place.sentence).iter().any(|one| is_whole_of(one, value));
            if says_whole && factor > 1.0 && (part - number.value).abs() < 1.0 {
                return origin(format!("(1.0e0 * {value:?} - floor(1.0e0 * {value:?})) * {factor:?}"), part);
            }
        }
    }
    if is_rest { rest_of_sum(result, rows, number).or_else(|| rest_of_row(result, rows, number)) } else { None }
}

/// Returns what one column of a row leaves of another: the 5,136 that stayed, of 5,350 customers of whom 214 left.
fn rest_of_row(result: &ProofRows, rows: &[usize], number: &WrittenNumber) -> Option<ProofOrigin> {
    let row = match (rows, result.rows.len()) {
        ([row], _) => *row,
        ([], 1) => 0,
        _ => return None,
    };
    if number.tolerance > 0.5 {
        return None;
    }
    let is_label = |column: &usize| result.rows.len() > 1 && result.label_columns().contains(column);
    let columns = (0..result.columns.len()).filter(|column| !is_label(column));
    let cells: Vec<(usize, f64)> =
        columns.filter_map(|column| Some((column, number_of(result.rows.get(row)?.get(column)?)?))).collect();
    cells.iter().find_map(|(whole_column, whole)| {
        let mut parts = cells.iter().filter(|(column, part)| column != whole_column && *part > 0.0 && part < whole);
        let rest = |part: f64| if number.is_percent { 100.0 * (whole - part) / whole } else { whole - part };
        let scale = if number.is_percent { ShareScale::Percent } else { ShareScale::Amount };
        let (column, part) = parts.find(|(_, part)| number.stands_for(rest(*part), scale))?;
        Some(ProofOrigin::Expression {
            expression: match number.is_percent {
                true => format!("100.0e0 * ({whole:?} - {part:?}) / {whole:?}"),
                false => format!("{whole:?} - {part:?}"),
            },
            value: rest(*part),
            cells: vec![result.cell(row, *whole_column), result.cell(row, *column)],
        })
    })
}

/// Returns what is left of a column's sum without a row that is named.
fn rest_of_sum(result: &ProofRows, rows: &[usize], number: &WrittenNumber) -> Option<ProofOrigin> {
    if result.rows.len() < 2 || result.rows.len() < result.row_count || result.rows.len() > MAX_CELLS {
        return None;
    }
    (0..result.columns.len()).filter(|column| !result.label_columns().contains(column)).find_map(|column| {
        let cells = result.numbers(column);
        let sum: f64 = cells.iter().map(|(_, value)| value).sum();
        let added = cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + ");
        let references = || -> Vec<CellReference> { cells.iter().map(|(row, _)| result.cell(*row, column)).collect() };
        cells.iter().filter(|(row, _)| rows.contains(row)).find_map(|(_, value)| {
            let (rest, share) = (sum - value, 100.0 * (sum - value) / sum);
            if !number.is_percent && number.stands_for(rest, ShareScale::Unknown) {
                let expression = format!("{added} - ({value:?})");
                return Some(ProofOrigin::Expression { expression, value: rest, cells: references() });
            }
            (number.is_percent && sum != 0.0 && number.stands_for(share, ShareScale::Percent)).then(|| {
                let expression = format!("100.0e0 * ({added} - ({value:?})) / ({added})");
                ProofOrigin::Expression { expression, value: share, cells: references() }
            })
        })
    })
}

/// Whether a token is the whole part of a value.
fn is_whole_of(token: &TextToken, value: f64) -> bool {
    matches!(&token.kind, TextTokenKind::Number(number) if number.value == value.floor())
}

/// Returns what numbers in a row with units of one dimension make together, in the least unit of it, where a number is one of
/// several, and the smallest of their units: 11812 and a second of `3 h 16 min 52 s`.
fn units_in_row(token: &TextToken, place: TokenPlace<'_>, dimension: char) -> Option<(f64, f64)> {
    let start = place.offset + token.start;
    let mut rows: Vec<Vec<(TextToken, f64, f64)>> = Vec::new();
    for one in tokens_in(place.sentence) {
        let TextTokenKind::Number(number) = one.kind else { continue };
        let Some((_, unit)) = unit_behind(&one, place.sentence).filter(|(of, _)| *of == dimension) else { continue };
        let last = rows.last().and_then(|row| row.last());
        let goes_on = last.is_some_and(|(before, _, larger)| {
            unit < *larger && place.sentence[before.end..one.start].split_whitespace().count() <= 2
        });
        match rows.last_mut().filter(|_| goes_on) {
            Some(row) => row.push((one, number.value, unit)),
            None => rows.push(vec![(one, number.value, unit)]),
        }
    }
    let row = rows.into_iter().find(|row| row.len() > 1 && row.iter().any(|(one, _, _)| one.start == start))?;
    let least = row.last().map(|(_, _, unit)| *unit)?;
    Some((row.iter().map(|(_, value, unit)| value * unit).sum(), least))
}

/// Whether a number has a unit behind it, and a column that is called by another unit of the same: 42.6 hours are no cell of
/// `mean_minutes`.
pub(super) fn is_in_other_unit(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    match (unit_behind(token, clause), unit_of_column(&name)) {
        (Some((dimension, unit)), Some((of_column, column_unit))) => dimension == of_column && unit != column_unit,
        _ => false,
    }
}

/// Whether a number and a column are of units that measure different things: 8 tonnes are no cell of `hectares`.
pub(super) fn is_of_other_dimension(result: &ProofRows, column: usize, token: &TextToken, clause: &str) -> bool {
    let of_column = result.columns.get(column).and_then(|name| unit_of_column(&name.to_lowercase()));
    let dimensions = unit_behind(token, clause).zip(of_column);
    dimensions.is_some_and(|((dimension, _), (of_column, _))| dimension != of_column)
}

/// Returns by what a column's values are multiplied to be in the unit behind a number, where both have one of the same kind.
pub(super) fn factor_to_unit(column: &str, token: &TextToken, clause: &str) -> Option<f64> {
    let (of_column, column_unit) = unit_of_column(&column.to_lowercase())?;
    let (dimension, unit) = unit_behind(token, clause)?;
    (dimension == of_column).then_some(column_unit / unit)
}

/// Returns the dimension and the size of the unit by which a lowercase column is called.
fn unit_of_column(name: &str) -> Option<(char, f64)> {
    // `Min_price` is of a minimum.
    let name = name.strip_prefix("min_").unwrap_or(name);
    name.rsplit(|c: char| !c.is_alphanumeric()).filter(|part| *part != name || part.len() > 1).find_map(unit_called)
}

/// Returns the dimension and the size of the unit behind a number.
fn unit_behind(token: &TextToken, clause: &str) -> Option<(char, f64)> {
    const CUBIC: [&str; 5] = ["cubic met", "metros cúbicos", "mètres cubes", "metri cubi", "kubieke meter"];
    let behind = without_added_part(&clause[token.end..]).trim_start();
    if CUBIC.iter().any(|words| behind.starts_with(words)) {
        return unit_called("m3");
    }
    let word = behind.split(|c: char| !c.is_alphanumeric()).next()?;
    unit_called(&word.to_lowercase())
}

/// Whether a lowercase word is a unit.
pub(super) fn is_unit_called(word: &str) -> bool {
    unit_called(word).is_some()
}

/// Whether two lowercase words are the same unit: `ha` and `hectares`.
pub(super) fn is_same_unit(one: &str, other: &str) -> bool {
    unit_called(one).is_some_and(|unit| unit_called(other) == Some(unit))
}

fn unit_called(word: &str) -> Option<(char, f64)> {
    UNITS.iter().find(|(name, _, _)| *name == word).map(|(_, dimension, size)| (*dimension, *size))
}
