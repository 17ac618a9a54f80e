//! Columns that a reader computes in the head of two that rows have: the days from `shipped_on` to `delivered_on`, the part that
//! `occupied_beds` is of `beds`, what `on_hand` is worth at its `unit_cost`, and what `resolved` leaves of `opened`. What an answer
//! says of one is proven as it is of a column that is there.

use chrono::{DateTime, NaiveDateTime};
use serde_json::Value;

use super::bounds::{NumberBound, bound_before, count_origin};
use super::candidates::{is_rate, most_candidates};
use super::claims::is_exact;
use super::groups::group_origin;
use super::label_digits::label_digits_origin;
use super::ranks::measured_columns;
use super::rates::is_of_counts;
use super::row_counts::row_count_origin;
use super::rows::{ProofRows, RowMemo, TokenPlace};
use super::tokens::{ShareScale, TextToken, TextTokenKind, WrittenNumber, day_of, find_word, says, tokens_in};
use super::units::{unit_at, unit_beside};
use super::{CellReference, ProofOrigin, Prover, number_of};

/// Rows and columns that are looked at.
const MAX_ROWS: usize = 100;
const MAX_COLUMNS: usize = 10;
/// Units of a length of time by their minutes.
const LENGTHS: [(&str, f64, &[&str]); 4] = [
    ("minutes", 1.0, &["minute", "minutes", "min", "mins", "minuten"]),
    ("hours", 60.0, &["hour", "hours", "stunden", "heures", "horas"]),
    ("days", 1_440.0, &["day", "days", "tage", "tagen", "jours", "días"]),
    ("weeks", 10_080.0, &["week", "weeks", "wochen", "semaines", "semanas"]),
];
/// Words by which a number is what one column leaves of another.
const LEFT: [&str; 12] =
    ["left", "open", "remaining", "net", "short", "missing", "need", "needs", "gap", "difference", "more", "fewer"];

/// Words by which a number is what an amount is worth.
const WORTH: [&str; 6] = ["worth", "revenue", "value", "valued", "turnover", "proceeds"];

/// A column of what two others give.
struct DerivedColumn {
    name: String,
    scale: ShareScale,
    sources: [usize; 2],
    /// The value of each row, and the expression that gives it.
    cells: Vec<Option<(f64, String)>>,
    /// Whether the text speaks of such a column, so that what it has is no chance.
    is_said: bool,
    /// Whether it is how long it is from one time to another.
    is_length: bool,
}

impl Prover {
    /// Returns what proves a number that no rule of its own finds: digits of a name, what a group of rows makes, and a column that
    /// two others give.
    pub(super) fn beside_columns_origin(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        // `Between 2 and 30 September` is two clauses.
        let start = place.offset + token.start;
        let mut tokens = tokens_in(place.sentence).into_iter().filter(|one| one.start == start);
        let day = tokens.find(|one| matches!(one.kind, TextTokenKind::Date(_) | TextTokenKind::YearDay { .. }));
        let is_day = |one: &TextToken| !matches!(one.kind, TextTokenKind::Number(_)) && one.start == token.start;
        let is_cut = !tokens_in(place.clause).iter().any(is_day);
        if let (TextTokenKind::Number(_), Some(day), true) = (&token.kind, day, is_cut) {
            return self.results.iter().rev().find_map(|result| {
                let mut cells = result.cells().filter(|(_, _, value)| day.equals(value, ShareScale::Unknown));
                cells.next().map(|(row, column, value)| result.cell_origin(row, column, value))
            });
        }
        let of_result = |result: &ProofRows| {
            label_digits_origin(result, token, place)
                .or_else(|| row_count_origin(result, token, place))
                .or_else(|| group_origin(result, token, place))
        };
        self.results.iter().rev().find_map(of_result).or_else(|| self.derived_column_origin(token, place))
    }

    /// See the module; of the latest rows.
    fn derived_column_origin(&self, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let result = self.results.last()?;
        if !(2..=MAX_ROWS).contains(&result.rows.len()) || result.rows.len() < result.row_count {
            return None;
        }
        let columns = derived_columns(result, token, number, place);
        let named = result.named_rows(place).len();
        let cells = if named == 0 { result.rows.len() } else { named };
        let is_precise = |column: &DerivedColumn| {
            let alike = columns.iter().filter(|other| other.scale == column.scale && !other.is_said).count();
            (alike * cells) as f64 <= most_candidates(number)
        };
        let accepted: Vec<bool> = columns.iter().map(is_precise).collect();
        let is_counted = is_exact(number) && number.value <= result.rows.len() as f64;
        let is_of_unit = unit_beside(token, place.clause).is_some();
        // `The stock is worth 17,568.30, of which the Coffee Maker makes up 4,954.25`: the total is of no row.
        let of_clause = TokenPlace { sentence: place.clause, offset: 0, ..place };
        let is_of_all = result.labelled(place.clause).is_empty() && named > 0;
        columns.into_iter().zip(accepted).find_map(|(column, is_precise)| {
            if !(column.is_said || (is_precise && !is_counted)) {
                return None;
            }
            let prover = Self { results: vec![column.rows_of(result)], stop: self.stop.clone(), ..Self::default() };
            [Some(place), is_of_all.then_some(of_clause)].into_iter().flatten().find_map(|of_place| {
                let origin = prover.own_origin_as_written(token, of_place);
                let is_cell = matches!(origin, ProofOrigin::Cell { .. });
                // `Four took more than five days` counts rows, and is no length of one.
                let is_count = is_cell && is_counted && !is_of_unit && column.is_length;
                let origin = match (is_count, prover.results.first()) {
                    (true, Some(rows)) => {
                        count_origin(rows, number, of_place.sentence).or_else(|| rows.count_of_values(number))?
                    }
                    _ => origin,
                };
                // A share of shares is none, nor is one of all what the row has that the sentence names.
                let is_so = match &origin {
                    ProofOrigin::Cell { .. } => of_place.sentence.len() == place.sentence.len(),
                    ProofOrigin::Expression { expression, .. } => {
                        column.scale != ShareScale::Percent || expression.starts_with("CASE")
                    }
                    _ => false,
                };
                if is_so { column.in_sources(result, origin) } else { None }
            })
        })
    }
}

impl DerivedColumn {
    /// Returns rows of the names of those of a result, with this column alone.
    fn rows_of(&self, result: &ProofRows) -> ProofRows {
        let names = result.label_columns();
        let name_of = |column: &usize| result.columns.get(*column).cloned().unwrap_or_default();
        let mut columns: Vec<String> = names.iter().map(name_of).collect();
        columns.push(self.name.clone());
        let row = |(values, cell): (&Vec<Value>, &Option<(f64, String)>)| -> Vec<Value> {
            let names = names.iter().map(|column| values.get(*column).cloned().unwrap_or_default());
            names.chain([cell.as_ref().map_or(Value::Null, |(value, _)| number_as_value(*value))]).collect()
        };
        let mut scales: Vec<ShareScale> = names.iter().map(|column| result.share_scale(*column)).collect();
        scales.push(self.scale);
        ProofRows {
            run_id: result.run_id,
            call_index: result.call_index,
            columns,
            rows: result.rows.iter().zip(&self.cells).map(row).collect(),
            labels: (0..names.len()).collect(),
            scales,
            row_count: result.row_count,
            query: Vec::new(),
            query_text: String::new(),
            memo: RowMemo::default(),
        }
    }

    /// Returns what is proven by this column as what the two that it is made of prove; `None` of what it has no part in.
    fn in_sources(&self, result: &ProofRows, origin: ProofOrigin) -> Option<ProofOrigin> {
        let sources = |row: usize| self.sources.map(|column| result.cell(row, column));
        match origin {
            ProofOrigin::Cell { cell, .. } if cell.column == self.name => {
                let (value, expression) = self.cells.get(cell.row)?.clone()?;
                Some(ProofOrigin::Expression { expression, value, cells: sources(cell.row).to_vec() })
            }
            ProofOrigin::Expression { expression, value, cells } => {
                let is_own = |cell: &CellReference| cell.column == self.name;
                if !cells.iter().any(is_own) {
                    return None;
                }
                let cells = cells.into_iter().flat_map(|cell| match is_own(&cell) {
                    true => sources(cell.row).to_vec(),
                    false => vec![cell],
                });
                Some(ProofOrigin::Expression { expression, value, cells: cells.collect() })
            }
            _ => None,
        }
    }
}

/// Whether a column is called by a word.
fn has_column(result: &ProofRows, word: &str) -> bool {
    result.columns.iter().any(|name| name.to_lowercase().split('_').any(|part| part == word))
}

fn number_as_value(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e15 { Value::from(value as i64) } else { Value::from(value) }
}

/// Returns the columns that two columns of a result give, of which a sentence may speak.
fn derived_columns(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Vec<DerivedColumn> {
    let mut found: Vec<DerivedColumn> = lengths_of_time(result, place);
    let bounds_percent = tokens_in(place.sentence).iter().any(|token| {
        token.is_percent() && bound_before(place.sentence, token.start).is_some_and(NumberBound::is_strict)
    });
    let measured = measured_columns(result, "");
    let measured = measured.get(..measured.len().min(MAX_COLUMNS)).unwrap_or_default();
    if number.is_percent || bounds_percent {
        let shares = of_pairs(measured, |part, whole| share_of(result, part, whole));
        let is_only = shares.len() == 1;
        found.extend(shares.into_iter().map(|share| DerivedColumn { is_said: is_only && bounds_percent, ..share }));
    }
    // A percentage is one of what amounts are worth only where the sentence speaks of that; a bound says too little to prove one.
    let is_bound = bound_before(place.sentence, place.offset + token.start).is_some();
    let products = of_pairs(measured, |rate, amount| product_of(result, rate, amount, place)).into_iter();
    found.extend(products.filter(|product| !is_bound && (product.is_said || !number.is_percent)));
    if !number.is_percent {
        found.extend(of_pairs(measured, |whole, part| rest_of(result, whole, part, place)));
        let is_per_hundred = place.clause.contains("/100") || place.clause.contains("per 100");
        if let Some(unit) = unit_beside(token, place.clause).filter(|_| is_per_hundred) {
            let is_of_unit = |column: usize| unit_at(result, column).is_some_and(|of| of == unit);
            let pair =
                |amount: usize, base: usize| is_of_unit(amount).then(|| per_hundred(result, amount, base)).flatten();
            found.extend(of_pairs(measured, pair));
        }
    }
    found
}

fn of_pairs(columns: &[usize], make: impl Fn(usize, usize) -> Option<DerivedColumn>) -> Vec<DerivedColumn> {
    let pairs = columns.iter().flat_map(|one| columns.iter().map(move |other| (*one, *other)));
    pairs.filter(|(one, other)| one != other).filter_map(|(one, other)| make(one, other)).collect()
}

/// Returns the values of two columns in each row, where both are numbers.
fn values_of(result: &ProofRows, one: usize, other: usize) -> Vec<Option<(f64, f64)>> {
    let value = |row: &Vec<Value>, column: usize| number_of(row.get(column)?);
    result.rows.iter().map(|row| value(row, one).zip(value(row, other))).collect()
}

fn name_of(result: &ProofRows, column: usize) -> String {
    result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default()
}

/// Returns the share that one column of counts is of another in each row, in percent.
fn share_of(result: &ProofRows, part: usize, whole: usize) -> Option<DerivedColumn> {
    let values = values_of(result, part, whole);
    let is_part = values.iter().flatten().all(|(part, whole)| *part >= 0.0 && part <= whole && *whole > 0.0);
    let are_counts = is_of_counts(result, part) && is_of_counts(result, whole);
    let is_less = values.iter().flatten().any(|(part, whole)| part < whole);
    let cell = |(part, whole): (f64, f64)| (100.0 * part / whole, format!("100.0e0 * {part:?} / {whole:?}"));
    (is_part && are_counts && is_less).then(|| DerivedColumn {
        name: format!("{}_of_{}_pct", name_of(result, part), name_of(result, whole)),
        scale: ShareScale::Percent,
        sources: [part, whole],
        cells: values.into_iter().map(|pair| pair.map(cell)).collect(),
        is_said: false,
        is_length: false,
    })
}

/// Returns what a column of amounts is worth at one that says how much each is.
fn product_of(result: &ProofRows, rate: usize, amount: usize, place: TokenPlace<'_>) -> Option<DerivedColumn> {
    let is_share = matches!(result.share_scale(amount), ShareScale::Fraction | ShareScale::Percent);
    if !is_rate(result, rate) || is_rate(result, amount) || is_share {
        return None;
    }
    let cell = |(rate, amount): (f64, f64)| (rate * amount, format!("1.0e0 * {amount:?} * {rate:?}"));
    Some(DerivedColumn {
        name: format!("{}_times_{}", name_of(result, amount), name_of(result, rate)),
        scale: ShareScale::Amount,
        sources: [amount, rate],
        cells: values_of(result, rate, amount).into_iter().map(|pair| pair.map(cell)).collect(),
        is_said: WORTH.iter().any(|word| find_word(place.sentence, word).is_some() && !has_column(result, word)),
        is_length: false,
    })
}

/// Returns what one column of counts leaves of another, where the sentence speaks of that: the unresolved of `assigned` and
/// `resolved`.
fn rest_of(result: &ProofRows, whole: usize, part: usize, place: TokenPlace<'_>) -> Option<DerivedColumn> {
    /// Letters of a word that names what is not.
    const STEM: usize = 4;
    let values = values_of(result, whole, part);
    let are_counts = is_of_counts(result, part) && is_of_counts(result, whole);
    let is_part = values.iter().flatten().all(|(whole, part)| part <= whole && *part >= 0.0);
    let name = name_of(result, part);
    let lower = place.sentence.to_lowercase();
    let is_denied =
        |stem: &str| ["un", "not ", "not yet "].iter().any(|denied| lower.contains(&format!("{denied}{stem}")));
    let is_rest = name.split('_').filter_map(|part| part.get(..STEM)).any(is_denied);
    if !are_counts || !is_part || !(is_rest || says(place.sentence, &LEFT)) {
        return None;
    }
    let cell = |(whole, part): (f64, f64)| (whole - part, format!("{whole:?} - {part:?}"));
    Some(DerivedColumn {
        name: format!("{}_without_{name}", name_of(result, whole)),
        scale: ShareScale::Amount,
        sources: [whole, part],
        cells: values.into_iter().map(|pair| pair.map(cell)).collect(),
        is_said: is_rest,
        is_length: false,
    })
}

/// Returns how much one column is for each hundred of another: litres for each 100 km.
fn per_hundred(result: &ProofRows, amount: usize, base: usize) -> Option<DerivedColumn> {
    let values = values_of(result, amount, base);
    let is_base = values.iter().flatten().all(|(amount, base)| *base > 0.0 && *amount >= 0.0);
    let cell = |(amount, base): (f64, f64)| (100.0 * amount / base, format!("100.0e0 * {amount:?} / {base:?}"));
    is_base.then(|| DerivedColumn {
        name: format!("{}_for_100_{}", name_of(result, amount), name_of(result, base)),
        scale: ShareScale::Amount,
        sources: [amount, base],
        cells: values.into_iter().map(|pair| pair.map(cell)).collect(),
        is_said: false,
        is_length: false,
    })
}

/// Returns how long it is from each column of times to each later one, in the unit that the sentence says.
fn lengths_of_time(result: &ProofRows, place: TokenPlace<'_>) -> Vec<DerivedColumn> {
    let unit = |text: &str| LENGTHS.iter().find(|(_, _, words)| says(text, words));
    let Some((unit, minutes, _)) = unit(place.clause).or_else(|| unit(place.sentence)) else { return Vec::new() };
    let times = |column: usize| -> Option<Vec<Option<f64>>> {
        let of_row = |row: &Vec<Value>| match row.get(column) {
            Some(value) if !value.is_null() => minutes_of(value).map(Some),
            _ => Some(None),
        };
        let times: Vec<Option<f64>> = result.rows.iter().map(of_row).collect::<Option<_>>()?;
        (times.iter().flatten().count() > 1).then_some(times)
    };
    let columns: Vec<(usize, Vec<Option<f64>>)> =
        (0..result.columns.len()).filter_map(|column| Some((column, times(column)?))).collect();
    let mut found = Vec::new();
    for (from_column, from) in &columns {
        for (to_column, to) in columns.iter().filter(|(column, _)| column != from_column) {
            let lengths: Vec<Option<f64>> =
                from.iter().zip(to).map(|(from, to)| Some(to.as_ref()? - from.as_ref()?)).collect();
            let is_later = lengths.iter().flatten().all(|length| *length >= 0.0);
            if !is_later || !lengths.iter().flatten().any(|length| *length > 0.0) {
                continue;
            }
            let cell = |length: f64| (length / minutes, format!("{length:?} / {minutes:?}"));
            found.push(DerivedColumn {
                name: format!("{}_to_{}_{unit}", name_of(result, *from_column), name_of(result, *to_column)),
                scale: ShareScale::Amount,
                sources: [*from_column, *to_column],
                cells: lengths.into_iter().map(|length| length.map(cell)).collect(),
                is_said: true,
                is_length: true,
            });
        }
    }
    found
}

/// Returns the minutes of a day or a time, from some day on.
fn minutes_of(value: &Value) -> Option<f64> {
    let text = value.as_str()?;
    let seconds = DateTime::parse_from_rfc3339(text).map(|time| time.timestamp()).ok();
    let plain = || {
        let forms = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%d %H:%M:%S%.f"];
        let mut times = forms.iter().filter_map(|form| NaiveDateTime::parse_from_str(text, form).ok());
        times.next().map(|time| time.and_utc().timestamp())
    };
    let of_day = || Some(day_of(value)?.and_hms_opt(0, 0, 0)?.and_utc().timestamp());
    Some(seconds.or_else(plain).or_else(of_day)? as f64 / 60.0)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn days_between_two_columns_are_proven() {
        let shipments = json!([
            ["SH-1", "2024-03-04", "2024-03-07"],
            ["SH-2", "2024-03-04", "2024-03-10"],
            ["SH-3", "2024-03-05", null],
            ["SH-4", "2024-03-07", "2024-03-09"],
            ["SH-5", "2024-03-08", "2024-03-15"],
        ]);
        let of_shipments = |text: &str| doubted(&["shipment", "shipped_on", "delivered_on"], shipments.clone(), text);
        for text in ["SH-2 took 6 days.", "On average they took 4.5 days.", "Two took more than five days."] {
            assert_eq!(of_shipments(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(of_shipments("SH-2 took 8 days."), ["8"]);
        assert_eq!(of_shipments("On average they took 5.4 days."), ["5.4"]);
        assert!(!of_shipments("Three took more than five days.").is_empty());
    }

    #[test]
    fn what_a_stock_is_worth_is_proven() {
        let stock = json!([["Kettle", 214, 18.4], ["Toaster", 62, 22.95], ["Blender", 18, 49.9]]);
        let of_stock = |text: &str| doubted(&["product", "on_hand", "unit_cost"], stock.clone(), text);
        let right = "The stock is worth $6,258.70, of which the Kettle makes up $3,937.60 (63%).";
        assert_eq!(of_stock(right), Vec::<String>::new());
        assert_eq!(of_stock(&right.replace("63%", "36%")), ["36"]);
        assert_eq!(of_stock(&right.replace("6,258", "6,285")), ["6,285.70"]);
    }

    #[test]
    fn shares_of_two_columns_are_counted() {
        let wards = json!([["Cardiology", 42, 39], ["Oncology", 36, 31], ["Maternity", 28, 17], ["Surgery", 50, 44]]);
        let of_wards = |text: &str| doubted(&["ward", "beds", "occupied"], wards.clone(), text);
        assert_eq!(of_wards("Three of the four wards are more than 85% full."), Vec::<String>::new());
        assert!(!of_wards("Two of the four wards are more than 85% full.").is_empty());
    }
}
