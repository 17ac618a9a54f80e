//! What a number may be that no word announces: sums of cells, their shares, means, rates and products, each counted as a
//! candidate.

use super::announced::{AnnouncedOperation, says_loss};
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{ShareScale, WrittenNumber, says};
use super::{CellReference, ProofOrigin};

/// How probable it may be at most that some candidate is met by chance. Of 18,647 random numbers with another digit, two
/// swapped or a zero more 0.25 % passed, and of as many right ones 81 %.
const MOST_CHANCE: f64 = 0.02;
/// Another candidate is of the magnitude of a number where it is at most so many times as much or as little.
const MAGNITUDE: f64 = 10.0;
/// What a year has of shorter periods: `1,620 a month, or 19,440 a year`.
pub(super) const YEARS: [&str; 11] =
    ["annualised", "annualized", "year", "yearly", "annual", "annually", "jahr", "jährlich", "par an", "año", "anno"];
const PERIODS_OF_YEAR: [f64; 3] = [12.0, 52.0, 365.0];
const MEANS: [&str; 15] = [
    "moyen",
    "average",
    "averaged",
    "averages",
    "averaging",
    "mean",
    "avg",
    "typical",
    "per",
    "each",
    "durchschnitt",
    "durchschnittlich",
    "moyenne",
    "promedio",
    "media",
];
/// Parts of the names of columns that are multiplied by what they are for each of: `yield_t_per_ha`.
const RATES: [&str; 12] = ["per", "price", "unit", "yield", "yld", "cost", "fee", "fare", "avg", "adr", "arpu", "wage"];

/// A cell of a column, or the sum of several, in the unit of the number.
pub(super) struct Term {
    pub(super) column: usize,
    pub(super) factor: f64,
    /// By their rows.
    pub(super) cells: Vec<(usize, f64)>,
    pub(super) value: f64,
}

impl Term {
    pub(super) fn new(column: usize, factor: f64, cells: Vec<(usize, f64)>) -> Self {
        let value = factor * cells.iter().map(|(_, value)| *value).sum::<f64>();
        Self { column, factor, cells, value }
    }

    pub(super) fn sql(&self) -> String {
        let added = self.cells.iter().map(|(_, value)| format!("({value:?})")).collect::<Vec<_>>().join(" + ");
        if self.factor == 1.0 { format!("({added})") } else { format!("({:?} * ({added}))", self.factor) }
    }

    pub(super) fn is_cell_of(&self, row: usize) -> bool {
        self.cells.first().is_some_and(|(of, _)| *of == row)
    }
}

/// What a column gives to calculate with.
pub(super) struct ColumnTerms {
    /// Its cells in the rows that the sentence names, else in all.
    pub(super) cells: Vec<Term>,
    /// Their sum, where they are several and not all.
    pub(super) sum: Option<Term>,
    /// The sum of all cells of the column.
    pub(super) total: Term,
}

impl ColumnTerms {
    pub(super) fn new(result: &ProofRows, column: usize, factor: f64, is_named: impl Fn(usize) -> bool) -> Self {
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
pub(super) struct Candidates<'a> {
    pub(super) result: &'a ProofRows,
    pub(super) number: &'a WrittenNumber,
    /// Whether the number may be of all rows together.
    pub(super) is_of_all: bool,
    pub(super) says_mean: bool,
    pub(super) says_year: bool,
    pub(super) says_loss: bool,
    /// What a year is divided by to be of the shorter period that is said: `64,000 a year, or 5,333 a month`.
    pub(super) parts_of_year: Option<f64>,
    /// Percentages that the question or the sentence says.
    pub(super) percents: &'a [f64],
    /// What a percentage may make of a value, by its rate.
    pub(super) factors: fn(f64) -> Vec<f64>,
    /// Whether nothing else than what they give may be meant.
    pub(super) are_percents_only: bool,
    /// Those of its magnitude, and how many there may be for it to be proven.
    pub(super) near: usize,
    pub(super) most: f64,
    pub(super) found: Option<ProofOrigin>,
}

impl<'a> Candidates<'a> {
    pub(super) fn new(
        result: &'a ProofRows,
        number: &'a WrittenNumber,
        place: TokenPlace<'_>,
        is_of_all: bool,
        percents: &'a [f64],
    ) -> Self {
        let most = most_candidates(number);
        let says_mean = says(place.sentence, &MEANS) || says(place.before, &MEANS);
        let (says_year, says_loss) = (says(place.clause, &YEARS), says_loss(place.sentence));
        let are_percents_only = announces_pair(place);
        Self {
            result,
            number,
            is_of_all,
            says_mean,
            says_year,
            says_loss,
            parts_of_year: None,
            percents,
            factors: factors_of_percents(place.sentence),
            are_percents_only,
            near: 0,
            most,
            found: None,
        }
    }

    pub(super) fn are_too_many(&self) -> bool {
        self.near as f64 > self.most
    }

    pub(super) fn consider(&mut self, value: f64, sql: impl FnOnce() -> String, terms: &[&Term]) {
        if !value.is_finite() || self.are_too_many() {
            return;
        }
        let readings = std::iter::once(self.number.value).chain(self.number.other.map(|(written, _)| written));
        // What is spent is written without its sign.
        let (value, is_loss) = if self.says_loss && value < 0.0 { (-value, true) } else { (value, false) };
        let mut ratios = readings.map(|written| (value / written).abs());
        self.near += usize::from(ratios.any(|ratio| (1.0 / MAGNITUDE..=MAGNITUDE).contains(&ratio)));
        let scale = if self.number.is_percent { ShareScale::Percent } else { ShareScale::Amount };
        if self.found.is_none() && self.number.stands_for(value, scale) {
            let result = self.result;
            let of_term = |term: &&Term| -> Vec<CellReference> {
                term.cells.iter().map(|(row, _)| result.cell(*row, term.column)).collect()
            };
            let cells = terms.iter().flat_map(of_term).collect();
            let expression = if is_loss { format!("-({})", sql()) } else { sql() };
            self.found = Some(ProofOrigin::Expression { expression, value, cells });
        }
    }

    /// Considers the sums of a column's cells, or the shares of the rows that are named in it.
    pub(super) fn consider_whole(&mut self, column: &ColumnTerms) {
        if !self.number.is_percent {
            self.consider_sums(column);
        } else if column.total.cells.len() > 1 {
            let parts = column.sum.iter().chain(column.cells.iter().filter(|_| column.cells.len() == 1));
            for part in parts {
                self.consider_share(part, &column.total);
            }
        }
    }

    /// Considers the sum of a group of rows in a column, the share of the only row that is named in it, and its own in all.
    pub(super) fn consider_group(&mut self, group: &Term, column: &ColumnTerms) {
        if self.number.is_percent {
            self.consider_share(group, &column.total);
            if let [part] = column.cells.as_slice() {
                self.consider_share(part, group);
            }
            return;
        }
        if !(self.are_percents_only && group.cells.len() == 2) {
            self.consider(group.value, || group.sql(), &[group]);
        }
        self.consider_mean(group);
    }

    /// Considers the mean of the cells of a sum, where one is said.
    fn consider_mean(&mut self, sum: &Term) {
        if self.says_mean {
            let count = sum.cells.len() as f64;
            self.consider(sum.value / count, || format!("1.0e0 * {} / {count:?}", sum.sql()), &[sum]);
        }
    }

    /// Considers what columns of one row are more or less than each other, and what they make together.
    pub(super) fn consider_differences(&mut self, terms: &[&Term]) {
        if self.number.is_percent {
            return;
        }
        for (left, right) in pairs(terms.iter().copied()) {
            if left.value >= right.value && right.value > 0.0 {
                self.consider(left.value - right.value, || format!("{} - {}", left.sql(), right.sql()), &[left, right]);
            }
        }
        let is_sum = terms.len() > 2 && terms.iter().all(|term| self.is_of_unit(term, terms[0]));
        if is_sum {
            let sql = || terms.iter().map(|term| term.sql()).collect::<Vec<_>>().join(" + ");
            self.consider(terms.iter().map(|term| term.value).sum(), sql, terms);
        }
    }

    /// Whether the names of two columns end alike: `physics_points` and `maths_points`.
    pub(super) fn is_of_unit(&self, one: &Term, other: &Term) -> bool {
        let last = |term: &Term| {
            self.result.columns.get(term.column).and_then(|name| name.rsplit_once('_')).map(|(_, unit)| unit)
        };
        last(one).is_some() && last(one) == last(other)
    }

    /// Considers what the cells of one column give by themselves and two by two.
    pub(super) fn consider_cells(&mut self, column: &ColumnTerms) {
        if self.number.is_percent && column.total.cells.len() > 1 && column.cells.len() > 1 {
            for part in &column.cells {
                self.consider_share(part, &column.total);
            }
        }
        for (left, right) in pairs(column.cells.iter()) {
            self.consider_pair(left, right);
        }
    }

    /// Considers what one column of a row makes with another that says how much each is: hectares with tonnes per hectare.
    pub(super) fn consider_products(&mut self, terms: &[&Term]) {
        for rate in terms.iter().copied().filter(|term| is_rate(self.result, term.column)) {
            for amount in terms.iter().filter(|term| term.column != rate.column) {
                let sql = || format!("1.0e0 * {} * {}", amount.sql(), rate.sql());
                self.consider(amount.value * rate.value, sql, &[amount, rate]);
            }
        }
    }

    /// Considers what all rows make of one column by another that says how much each is: the value of a stock.
    pub(super) fn consider_value_of_all(&mut self, columns: &[ColumnTerms]) {
        let (rates, amounts): (Vec<&ColumnTerms>, Vec<&ColumnTerms>) =
            columns.iter().partition(|column| is_rate(self.result, column.total.column));
        for rate in rates {
            for amount in &amounts {
                let of_row = |(row, value): &(usize, f64)| {
                    let found = amount.total.cells.iter().find(|(of, _)| of == row);
                    found.map(|(_, quantity)| (*value, *quantity))
                };
                let products: Vec<(f64, f64)> = rate.total.cells.iter().filter_map(of_row).collect();
                let value = products.iter().map(|(rate, quantity)| rate * quantity).sum();
                let sql = || {
                    let terms = products.iter().map(|(rate, quantity)| format!("({rate:?}) * ({quantity:?})"));
                    terms.collect::<Vec<_>>().join(" + ")
                };
                self.consider(value, sql, &[&rate.total, &amount.total]);
            }
        }
    }

    /// Considers what a percentage that is said makes of the cells of a column: of it, more, and less.
    pub(super) fn consider_percents(&mut self, column: &ColumnTerms) {
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
    pub(super) fn consider_sums(&mut self, column: &ColumnTerms) {
        let ColumnTerms { cells, sum, total } = column;
        if self.is_of_all && total.cells.len() > 1 {
            self.consider(total.value, || total.sql(), &[total]);
            self.consider_mean(total);
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
        // `19.7 degrees warmer than in January` is no sum with the 4.2 below zero.
        if let Some(sum) = sum.as_ref().filter(|_| !self.are_percents_only) {
            self.consider(sum.value, || sum.sql(), &[sum]);
            self.consider_mean(sum);
        }
    }

    /// Considers what two cells of one column give together, and how they compare.
    pub(super) fn consider_pair(&mut self, left: &Term, right: &Term) {
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

    pub(super) fn consider_share(&mut self, part: &Term, whole: &Term) {
        let share = 100.0 * part.value / whole.value;
        self.consider(share, || format!("100.0e0 * {} / {}", part.sql(), whole.sql()), &[part, whole]);
    }

    /// Considers what each of several columns is for each other one: of one row, or in total.
    pub(super) fn consider_rates(&mut self, terms: &[&Term]) {
        for (amount, quantity) in pairs(terms.iter().copied()) {
            if self.number.is_percent {
                self.consider_share(amount, quantity);
                continue;
            }
            let rate = amount.value / quantity.value;
            self.consider(rate, || format!("1.0e0 * {} / {}", amount.sql(), quantity.sql()), &[amount, quantity]);
        }
    }

    /// Returns what was found among the candidates of one kind; those of the next are counted anew.
    pub(super) fn proven(&mut self) -> Option<ProofOrigin> {
        let found = if self.are_too_many() { None } else { self.found.take() };
        (self.near, self.found) = (0, None);
        found
    }
}

/// Whether a column says how much each of another is, by its name.
pub(super) fn is_rate(result: &ProofRows, column: usize) -> bool {
    let name = result.columns.get(column).map(|name| name.to_lowercase()).unwrap_or_default();
    name.split('_').any(|part| RATES.contains(&part))
}

/// Returns of how many candidates of its magnitude hardly any gives a number by chance: the more, the more precisely it is
/// written.
pub(super) fn most_candidates(number: &WrittenNumber) -> f64 {
    let width = |(written, tolerance): (f64, f64)| 2.0 * tolerance / written.abs();
    let width = width((number.value, number.tolerance)).max(number.other.map_or(0.0, width));
    // Amounts of one magnitude lie about evenly by their logarithms.
    MOST_CHANCE * 2.0 * MAGNITUDE.ln() / width
}

/// Whether a clause announces a difference or a ratio, which are looked for by the rules of those words.
fn announces_pair(place: TokenPlace<'_>) -> bool {
    let announced = AnnouncedOperation::in_text(place.clause);
    announced.difference || announced.growth || announced.ratio
}
