//! Numbers that are arithmetic over cells without a word that announces it, `the two pizzas alone made 7,574`: a number is
//! proven by what gives it where it is written so precisely that so many candidates would hardly give it by chance. A
//! planted digit is as unlikely to pass as one of them is to be met.

use super::announced::AnnouncedOperation;
use super::arithmetic::is_of_other_year;
use super::claims::QUANTITIES;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, TextToken, WrittenNumber, says};
use super::units::{factor_to_unit, is_of_other_dimension};
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
const PARTS_OF_YEAR: [(f64, &[&str]); 3] = [
    (12.0, &["month", "monthly", "monat", "monatlich", "mois", "mes", "mese", "maand"]),
    (52.0, &["week", "weekly", "woche", "semaine", "semana"]),
    (365.0, &["day", "daily", "tag", "jour", "día"]),
];
const MEANS: [&str; 9] = ["average", "mean", "avg", "typical", "per", "each", "durchschnitt", "moyenne", "promedio"];

/// A cell of a column, or the sum of several, in the unit of the number.
struct Term {
    column: usize,
    factor: f64,
    /// By their rows.
    cells: Vec<(usize, f64)>,
    value: f64,
}

impl Term {
    fn new(column: usize, factor: f64, cells: Vec<(usize, f64)>) -> Self {
        let value = factor * cells.iter().map(|(_, value)| *value).sum::<f64>();
        Self { column, factor, cells, value }
    }

    fn sql(&self) -> String {
        let added = self.cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + ");
        if self.factor == 1.0 { format!("({added})") } else { format!("({:?} * ({added}))", self.factor) }
    }

    fn is_cell_of(&self, row: usize) -> bool {
        self.cells.first().is_some_and(|(of, _)| *of == row)
    }
}

/// What a column gives to calculate with.
struct ColumnTerms {
    /// Its cells in the rows that the sentence names, else in all.
    cells: Vec<Term>,
    /// Their sum, where they are several and not all.
    sum: Option<Term>,
    /// The sum of all cells of the column.
    total: Term,
}

impl ColumnTerms {
    fn new(result: &ProofRows, column: usize, factor: f64, is_named: impl Fn(usize) -> bool) -> Self {
        let all = result.numbers(column);
        let named: Vec<(usize, f64)> = all.iter().copied().filter(|(row, _)| is_named(*row)).collect();
        let cells = named.iter().map(|cell| Term::new(column, factor, vec![*cell])).collect();
        let is_part = named.len() > 1 && named.len() < all.len();
        let sum = is_part.then(|| Term::new(column, factor, named));
        Self { cells, sum, total: Term::new(column, factor, all) }
    }
}

/// Returns each term with each other one.
fn pairs<'t>(terms: impl Iterator<Item = &'t Term> + Clone) -> impl Iterator<Item = (&'t Term, &'t Term)> {
    let all = terms.clone();
    terms.enumerate().flat_map(move |(index, left)| {
        let others = all.clone().enumerate().filter(move |(other, _)| *other != index);
        others.map(move |(_, right)| (left, right))
    })
}

/// Returns what a percentage makes of a value in a sentence: less of it where it says less, more where it says more.
fn factors_of_percents(sentence: &str) -> fn(f64) -> Vec<f64> {
    const LESS: [&str; 15] = [
        "less",
        "off",
        "discount",
        "cheaper",
        "lower",
        "fewer",
        "cut",
        "reduced",
        "reduction",
        "decrease",
        "weniger",
        "moins",
        "menos",
        "meno",
        "minder",
    ];
    const MORE: [&str; 13] = [
        "more",
        "raise",
        "raised",
        "higher",
        "increase",
        "increased",
        "extra",
        "markup",
        "mehr",
        "plus",
        "más",
        "mais",
        "meer",
    ];
    match (says(sentence, &LESS), says(sentence, &MORE)) {
        (true, false) => |rate| vec![rate, 1.0 - rate],
        (false, true) => |rate| vec![rate, 1.0 + rate],
        _ => |rate| vec![rate, 1.0 + rate, 1.0 - rate],
    }
}

/// The candidates for a number.
struct Candidates<'a> {
    result: &'a ProofRows,
    number: &'a WrittenNumber,
    /// Whether the number may be of all rows together.
    is_of_all: bool,
    says_mean: bool,
    says_year: bool,
    /// What a year is divided by to be of the shorter period that is said: `64,000 a year, or 5,333 a month`.
    parts_of_year: Option<f64>,
    /// Percentages that the question or the sentence says.
    percents: &'a [f64],
    /// What a percentage may make of a value, by its rate.
    factors: fn(f64) -> Vec<f64>,
    /// Whether nothing else than what they give may be meant.
    are_percents_only: bool,
    /// Those of its magnitude, and how many there may be for it to be proven.
    near: usize,
    most: f64,
    found: Option<ProofOrigin>,
}

impl<'a> Candidates<'a> {
    fn new(
        result: &'a ProofRows,
        number: &'a WrittenNumber,
        place: TokenPlace<'_>,
        is_of_all: bool,
        percents: &'a [f64],
    ) -> Self {
        let most = most_candidates(number);
        let (says_mean, says_year) = (says(place.sentence, &MEANS), says(place.clause, &YEARS));
        let are_percents_only = announces_pair(place);
        Self {
            result,
            number,
            is_of_all,
            says_mean,
            says_year,
            parts_of_year: None,
            percents,
            factors: factors_of_percents(place.sentence),
            are_percents_only,
            near: 0,
            most,
            found: None,
        }
    }

    fn are_too_many(&self) -> bool {
        self.near as f64 > self.most
    }

    fn consider(&mut self, value: f64, sql: impl FnOnce() -> String, terms: &[&Term]) {
        if !value.is_finite() || self.are_too_many() {
            return;
        }
        let readings = std::iter::once(self.number.value).chain(self.number.other.map(|(written, _)| written));
        let mut ratios = readings.map(|written| (value / written).abs());
        self.near += usize::from(ratios.any(|ratio| (1.0 / MAGNITUDE..=MAGNITUDE).contains(&ratio)));
        let scale = if self.number.is_percent { ShareScale::Percent } else { ShareScale::Amount };
        if self.found.is_none() && self.number.stands_for(value, scale) {
            let result = self.result;
            let of_term = |term: &&Term| -> Vec<CellReference> {
                term.cells.iter().map(|(row, _)| result.cell(*row, term.column)).collect()
            };
            let cells = terms.iter().flat_map(of_term).collect();
            self.found = Some(ProofOrigin::Expression { expression: sql(), value, cells });
        }
    }

    /// Considers what the cells of one column give.
    fn consider_column(&mut self, column: &ColumnTerms) {
        self.consider_percents(column);
        if self.are_percents_only {
            return;
        }
        if !self.number.is_percent {
            self.consider_sums(column);
        } else if column.total.cells.len() > 1 {
            for part in column.cells.iter().chain(&column.sum) {
                self.consider_share(part, &column.total);
            }
        }
        for (left, right) in pairs(column.cells.iter()) {
            self.consider_pair(left, right);
        }
    }

    /// Considers what a percentage that is said makes of the cells of a column: of it, more, and less.
    fn consider_percents(&mut self, column: &ColumnTerms) {
        if self.number.is_percent {
            return;
        }
        let total = self.is_of_all.then_some(&column.total);
        let percents = self.percents;
        for rate in percents.iter().map(|percent| percent / 100.0) {
            for part in column.cells.iter().chain(&column.sum).chain(total) {
                for factor in (self.factors)(rate) {
                    self.consider(factor * part.value, || format!("1.0e0 * {factor:?} * {}", part.sql()), &[part]);
                }
            }
        }
    }

    /// Considers the sums of a column's cells, their mean, and a year of what they are of a shorter period.
    fn consider_sums(&mut self, column: &ColumnTerms) {
        let ColumnTerms { cells, sum, total } = column;
        if self.is_of_all && total.cells.len() > 1 {
            self.consider(total.value, || total.sql(), &[total]);
            if self.says_mean {
                let count = total.cells.len() as f64;
                self.consider(total.value / count, || format!("1.0e0 * {} / {count:?}", total.sql()), &[total]);
            }
        }
        if self.says_year {
            for part in cells.iter().chain(sum) {
                for periods in PERIODS_OF_YEAR {
                    self.consider(periods * part.value, || format!("{periods:?} * {}", part.sql()), &[part]);
                }
            }
        }
        if let Some(parts) = self.parts_of_year {
            for part in cells.iter().chain(sum) {
                self.consider(part.value / parts, || format!("1.0e0 * {} / {parts:?}", part.sql()), &[part]);
            }
        }
        if let Some(sum) = sum {
            self.consider(sum.value, || sum.sql(), &[sum]);
            if self.says_mean {
                let count = sum.cells.len() as f64;
                self.consider(sum.value / count, || format!("1.0e0 * {} / {count:?}", sum.sql()), &[sum]);
            }
        }
    }

    /// Considers what two cells of one column give together, and how they compare.
    fn consider_pair(&mut self, left: &Term, right: &Term) {
        if self.number.is_percent {
            self.consider_share(left, right);
            let growth = 100.0 * (left.value - right.value) / right.value;
            let sql = || format!("abs(100.0e0 * ({} - {right}) / {right})", left.sql(), right = right.sql());
            self.consider(growth.abs(), sql, &[left, right]);
        } else if left.value >= right.value {
            self.consider(left.value + right.value, || format!("{} + {}", left.sql(), right.sql()), &[left, right]);
            self.consider(left.value - right.value, || format!("{} - {}", left.sql(), right.sql()), &[left, right]);
        }
    }

    fn consider_share(&mut self, part: &Term, whole: &Term) {
        let share = 100.0 * part.value / whole.value;
        self.consider(share, || format!("100.0e0 * {} / {}", part.sql(), whole.sql()), &[part, whole]);
    }

    /// Considers what each of several columns is for each other one: of one row, or in total.
    fn consider_rates(&mut self, terms: &[&Term]) {
        for (amount, quantity) in pairs(terms.iter().copied()) {
            if self.number.is_percent {
                self.consider_share(amount, quantity);
                continue;
            }
            let rate = amount.value / quantity.value;
            self.consider(rate, || format!("1.0e0 * {} / {}", amount.sql(), quantity.sql()), &[amount, quantity]);
        }
    }

    fn proven(self) -> Option<ProofOrigin> {
        if self.are_too_many() { None } else { self.found }
    }
}

/// Returns of how many candidates of its magnitude hardly any gives a number by chance: the more, the more precisely it is
/// written.
pub(super) fn most_candidates(number: &WrittenNumber) -> f64 {
    let width = |(written, tolerance): (f64, f64)| 2.0 * tolerance / written.abs();
    let width = width((number.value, number.tolerance)).max(number.other.map_or(0.0, width));
    // Amounts of one magnitude lie about evenly by their logarithms.
    MOST_CHANCE * 2.0 * MAGNITUDE.ln() / width
}

/// Returns how many times a year the period has that stands behind a number, where the sentence speaks of a year.
fn parts_of_year(token: &TextToken, place: TokenPlace<'_>) -> Option<f64> {
    /// Words between a number and its period.
    const NEAR: usize = 3;
    let behind = place.clause[token.end..].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let near = behind.take(NEAR).collect::<Vec<_>>().join(" ");
    let period = PARTS_OF_YEAR.iter().find(|(_, words)| says(&near, words));
    period.map(|(parts, _)| *parts).filter(|_| says(place.sentence, &YEARS))
}

/// Whether a clause announces a difference or a ratio, which are looked for by the rules of those words.
fn announces_pair(place: TokenPlace<'_>) -> bool {
    let announced = AnnouncedOperation::in_text(place.clause);
    announced.difference || announced.growth || announced.ratio
}

/// See the module; of the rows that the sentence names, else of all.
pub(super) fn specific_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
    percents: &[f64],
) -> Option<ProofOrigin> {
    let is_whole = result.rows.len() == result.row_count && (1..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole || number.is_counted || number.value == 0.0 {
        return None;
    }
    // What words announce is looked for by the rules of those words.
    if announces_pair(place) && percents.is_empty() {
        return None;
    }
    let named = result.other_rows(place).unwrap_or_else(|| result.named_rows(place));
    // The total of all is none of the one row that is named, nor is its difference from another.
    let is_of_all = named.is_empty() || result.names_every_row(place.sentence);
    let mut candidates = Candidates::new(result, number, place, is_of_all, percents);
    candidates.parts_of_year = parts_of_year(token, place);
    // Of so few digits that one candidate may well give them by chance.
    if candidates.most < 1.0 {
        return None;
    }
    let is_named = |row: usize| named.is_empty() || named.contains(&row);
    let columns = columns_of(result, token, place).into_iter();
    let columns: Vec<ColumnTerms> =
        columns.map(|(column, factor)| ColumnTerms::new(result, column, factor, is_named)).collect();
    for column in &columns {
        candidates.consider_column(column);
    }
    if candidates.are_percents_only {
        return candidates.proven();
    }
    for row in 0..result.rows.len() {
        let cells = columns.iter().filter_map(|column| column.cells.iter().find(|term| term.is_cell_of(row)));
        let of_row: Vec<&Term> = cells.collect();
        candidates.consider_rates(&of_row);
    }
    if is_of_all && result.rows.len() > 1 {
        let totals: Vec<&Term> = columns.iter().map(|column| &column.total).collect();
        candidates.consider_rates(&totals);
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
    use serde_json::json;

    use crate::testing::doubted;
    use crate::{ProofOrigin, Prover};

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
    fn what_a_percentage_of_the_question_makes_of_a_cell_is_proven() {
        let (mut prover, _guard) = Prover::new("What would the budget be with 15 % less?");
        let columns = json!([{ "name": "budget" }]);
        prover.add_result(0, None, &json!({ "columns": columns, "row_count": 1, "rows": [{ "budget": 1860.0 }] }));
        let is_doubted = |text: &str| prover.links(text, &[]).iter().any(|link| link.origin == ProofOrigin::Unproven);
        assert!(!is_doubted("With 15 % less, the budget would be 1,581."));
        assert!(is_doubted("With 15 % less, the budget would be 1,518."));
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

    #[test]
    fn means_are_of_the_days_of_the_week_that_are_named_and_of_the_others() {
        let of_days = |text: &str| {
            let rows = json!([
                ["2026-03-06", 156],
                ["2026-03-07", 212],
                ["2026-03-09", 112],
                ["2026-03-13", 161],
                ["2026-03-14", 205],
            ]);
            doubted(&["day", "loaves"], rows, text)
        };
        let right = "On a typical Saturday you sell 208.5 loaves, compared with 143 on the other three days.";
        assert_eq!(of_days(right), Vec::<String>::new());
        assert_eq!(of_days(&right.replace("208.5", "218.5")), ["218.5"]);
    }

    #[test]
    fn rows_that_have_a_number_each_are_counted() {
        let of_bins = |text: &str| {
            let rows = json!([["hinge", 480], ["latch", 1300], ["castor", 310], ["felt", 1300], ["rivet", 1300]]);
            doubted(&["item", "on_hand"], rows, text)
        };
        assert_eq!(of_bins("Three bins hold 1,300 each."), Vec::<String>::new());
        assert_eq!(of_bins("Four bins hold 1,300 each."), ["Four"]);
    }
}
