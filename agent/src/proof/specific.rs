//! Numbers that are arithmetic over cells without a word that announces it, `the two pizzas alone made 7,574`: a number is
//! proven by what gives it where it is written so precisely that so many candidates would hardly give it by chance. A
//! planted digit is as unlikely to pass as one of them is to be met.

use super::announced::AnnouncedOperation;
use super::arithmetic::is_of_other_year;
use super::claims::QUANTITIES;
use super::derived::{factor_to_unit, is_of_other_dimension};
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, WrittenNumber, says};
use super::{CellReference, ProofOrigin};

/// Rows of which pairs are tried, and columns.
const MAX_ROWS: usize = 24;
const MAX_COLUMNS: usize = 12;
/// How probable it may be at most that some candidate is met by chance. Of 18,647 random numbers with another digit, two
/// swapped or a zero more 0.25 % passed, and of as many right ones 81 %.
const MOST_CHANCE: f64 = 0.02;
/// Another candidate is of the magnitude of a number where it is at most so many times as much or as little.
const MAGNITUDE: f64 = 10.0;
/// What a year has of shorter periods: `1,620 a month, or 19,440 a year`.
const YEARS: [&str; 9] = ["year", "yearly", "annual", "annually", "jahr", "jährlich", "par an", "año", "anno"];
const PERIODS_OF_YEAR: [f64; 3] = [12.0, 52.0, 365.0];
const MEANS: [&str; 8] = ["average", "mean", "avg", "per", "each", "durchschnitt", "moyenne", "promedio"];

/// A number of the rows, as SQL, with the cells that it is of.
struct Term {
    value: f64,
    sql: String,
    cells: Vec<CellReference>,
}

impl Term {
    fn of_cells(result: &ProofRows, column: usize, factor: f64, cells: &[(usize, f64)]) -> Self {
        let added = cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + ");
        let value = factor * cells.iter().map(|(_, value)| *value).sum::<f64>();
        let sql = if factor == 1.0 { format!("({added})") } else { format!("({factor:?} * ({added}))") };
        Self { value, sql, cells: cells.iter().map(|(row, _)| result.cell(*row, column)).collect() }
    }
}

/// The candidates for a number.
struct Candidates<'a> {
    number: &'a WrittenNumber,
    /// Those of its magnitude.
    near: usize,
    found: Option<ProofOrigin>,
}

impl Candidates<'_> {
    fn consider(&mut self, value: f64, sql: impl FnOnce() -> String, terms: &[&Term]) {
        if !value.is_finite() {
            return;
        }
        let readings = std::iter::once(self.number.value).chain(self.number.other.map(|(written, _)| written));
        let mut ratios = readings.map(|written| (value / written).abs());
        self.near += usize::from(ratios.any(|ratio| (1.0 / MAGNITUDE..=MAGNITUDE).contains(&ratio)));
        let scale = if self.number.is_percent { ShareScale::Percent } else { ShareScale::Amount };
        if self.found.is_none() && self.number.stands_for(value, scale) {
            let cells = terms.iter().flat_map(|term| term.cells.iter().cloned()).collect();
            self.found = Some(ProofOrigin::Expression { expression: sql(), value, cells });
        }
    }

    /// Considers what two numbers of one column give together, and how they compare.
    fn consider_pair(&mut self, left: &Term, right: &Term) {
        let (l, r) = (&left.sql, &right.sql);
        if self.number.is_percent {
            self.consider_share(left, right);
            let growth = 100.0 * (left.value - right.value) / right.value;
            self.consider(growth.abs(), || format!("abs(100.0e0 * ({l} - {r}) / {r})"), &[left, right]);
            return;
        }
        if left.value >= right.value {
            self.consider(left.value + right.value, || format!("{l} + {r}"), &[left, right]);
            self.consider(left.value - right.value, || format!("{l} - {r}"), &[left, right]);
        }
    }

    fn consider_share(&mut self, part: &Term, whole: &Term) {
        let share = 100.0 * part.value / whole.value;
        self.consider(share, || format!("100.0e0 * {} / {}", part.sql, whole.sql), &[part, whole]);
    }

    /// Considers what a number of one column is for each of another.
    fn consider_rate(&mut self, amount: &Term, quantity: &Term) {
        let rate = amount.value / quantity.value;
        self.consider(rate, || format!("1.0e0 * {} / {}", amount.sql, quantity.sql), &[amount, quantity]);
    }

    fn proven(self) -> Option<ProofOrigin> {
        let width = |(written, tolerance): (f64, f64)| 2.0 * tolerance / written.abs();
        let other = self.number.other.map_or(0.0, width);
        let width = width((self.number.value, self.number.tolerance)).max(other);
        // Amounts of one magnitude lie about evenly by their logarithms.
        let chance = self.near as f64 * width / (2.0 * MAGNITUDE.ln());
        self.found.filter(|_| chance <= MOST_CHANCE)
    }
}

/// See the module; of the rows that the sentence names, else of all.
pub(super) fn specific_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
) -> Option<ProofOrigin> {
    let is_whole = result.rows.len() == result.row_count && (1..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole || number.is_counted || number.value == 0.0 {
        return None;
    }
    let named = result.named_rows(place);
    // The total of all is none of the one row that is named, nor is its difference from another.
    let is_of_all = named.is_empty() || result.names_every_row(place.sentence);
    let is_named = |row: usize| named.is_empty() || named.contains(&row);
    let columns = columns_of(result, token, place);
    let mut candidates = Candidates { number, near: 0, found: None };
    let (says_mean, says_year) = (says(place.sentence, &MEANS), says(place.clause, &YEARS));
    let mut totals: Vec<Term> = Vec::new();
    for (column, factor) in &columns {
        let numbers = result.numbers(*column);
        let of_named: Vec<(usize, f64)> = numbers.iter().copied().filter(|(row, _)| is_named(*row)).collect();
        let term = |cells: &[(usize, f64)]| Term::of_cells(result, *column, *factor, cells);
        let cells: Vec<Term> = numbers.iter().map(|cell| term(&[*cell])).collect();
        let total = term(&numbers);
        if is_of_all && !number.is_percent && numbers.len() > 1 {
            candidates.consider(total.value, || total.sql.clone(), &[&total]);
            if says_mean {
                let count = numbers.len() as f64;
                candidates.consider(total.value / count, || format!("1.0e0 * {} / {count:?}", total.sql), &[&total]);
            }
        }
        let several = (of_named.len() > 1 && of_named.len() < numbers.len()).then(|| term(&of_named));
        for part in
            cells.iter().zip(&numbers).filter(|(_, (row, _))| is_named(*row)).map(|(term, _)| term).chain(&several)
        {
            if number.is_percent && numbers.len() > 1 {
                candidates.consider_share(part, &total);
            }
            if says_year && !number.is_percent {
                for periods in PERIODS_OF_YEAR {
                    candidates.consider(periods * part.value, || format!("{periods:?} * {}", part.sql), &[part]);
                }
            }
        }
        if let Some(several) = several.as_ref().filter(|_| !number.is_percent) {
            candidates.consider(several.value, || several.sql.clone(), &[several]);
        }
        for (left, (left_row, _)) in cells.iter().zip(&numbers) {
            for (right, (right_row, _)) in cells.iter().zip(&numbers).filter(|(_, (row, _))| row != left_row) {
                if is_named(*left_row) && is_named(*right_row) {
                    candidates.consider_pair(left, right);
                }
            }
        }
        totals.push(total);
    }
    let of_row = |row: usize| -> Vec<Term> {
        let cell = |(column, factor): &(usize, f64)| {
            let number = result.numbers(*column).into_iter().find(|(of, _)| *of == row)?;
            Some(Term::of_cells(result, *column, *factor, &[number]))
        };
        columns.iter().filter_map(cell).collect()
    };
    let rows = (0..result.rows.len()).filter(|row| is_named(*row)).map(of_row);
    for terms in rows.chain((is_of_all && result.rows.len() > 1).then_some(totals)) {
        for (index, left) in terms.iter().enumerate() {
            for right in terms.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, term)| term) {
                match number.is_percent {
                    true => candidates.consider_share(left, right),
                    false => candidates.consider_rate(left, right),
                }
            }
        }
    }
    candidates.proven()
}

/// Returns the columns that a number may be made of, each with what it is multiplied by to be in the unit behind the
/// number: where it has one, those of its dimension and those that only count.
fn columns_of(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Vec<(usize, f64)> {
    let columns = match result.rows.len() {
        1 => (0..result.columns.len()).collect(),
        _ => measured_columns(result, ""),
    };
    let factor = |column: usize| {
        let name = result.columns.get(column)?;
        Some((column, factor_to_unit(name, token, place.clause).unwrap_or(1.0)))
    };
    let announced = AnnouncedOperation::in_text(place.sentence);
    let may_be = |column: &usize| {
        let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
        let counts = name.split('_').any(|part| QUANTITIES.contains(&part));
        let is_of_kind = counts || !is_of_other_dimension(result, *column, token, place.clause);
        is_of_kind && !is_of_other_year(result, *column, &announced, place.sentence)
    };
    columns.into_iter().filter(may_be).take(MAX_COLUMNS).filter_map(factor).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::{ProofOrigin, Prover};

    fn doubted(columns: &[&str], rows: Value, text: &str) -> Vec<String> {
        let (mut prover, _guard) = Prover::new("What do the figures look like?");
        let named: Vec<Value> = columns.iter().map(|name| json!({ "name": name })).collect();
        let of_row = |row: &Value| {
            let cells = columns.iter().zip(row.as_array().into_iter().flatten());
            Value::Object(cells.map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
        };
        let rows: Vec<Value> = rows.as_array().into_iter().flatten().map(of_row).collect();
        prover.add_result(0, None, &json!({ "columns": named, "row_count": rows.len(), "rows": rows }));
        let links = prover.links(text, &[]).into_iter();
        links.filter(|link| link.origin == ProofOrigin::Unproven).map(|link| link.text).collect()
    }

    fn of_dishes(text: &str) -> Vec<String> {
        let rows = json!([["Margherita", 412, 3914.0], ["Diavola", 305, 3660.0], ["Tiramisu", 288, 1872.0]]);
        doubted(&["dish", "sold", "revenue_eur"], rows, text)
    }

    #[test]
    fn what_is_written_precisely_needs_no_word_that_announces_it() {
        for text in ["Both pizzas made €7,574.", "Everything made €9.446K.", "A Diavola makes €12.00."] {
            assert_eq!(of_dishes(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn what_many_candidates_give_and_other_digits_are_doubted() {
        for (text, wrong) in [
            ("Both pizzas made €7,547.", "7,547"),
            ("They took 17.", "17"),
            ("The Diavola made €9,446.", "9,446"),
            ("The Diavola made €5,532.", "5,532"),
        ] {
            assert_eq!(of_dishes(text), [wrong], "{text}");
        }
    }
}
