//! Numbers that are arithmetic over cells without a word that announces it, `the two pizzas alone made 7,574`: a number is
//! proven by what gives it where it is written so precisely that so many candidates would hardly give it by chance. A
//! planted digit is as unlikely to pass as one of them is to be met.

use super::ProofOrigin;
use super::announced::AnnouncedOperation;
use super::arithmetic::is_of_other_year;
use super::candidates::{Candidates, ColumnTerms, Term, YEARS};
use super::claims::QUANTITIES;
use super::ranks::measured_columns;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, WrittenNumber, find_word, says};
use super::units::{factor_to_unit, is_of_other_dimension};

/// Rows of which pairs are tried, and columns.
const MAX_ROWS: usize = 24;
/// Rows that are added up.
const MAX_TOTALLED: usize = 100;
const MAX_COLUMNS: usize = 12;
const PARTS_OF_YEAR: [(f64, &[&str]); 3] = [
    (12.0, &["month", "monthly", "monat", "monatlich", "mois", "mes", "mese", "maand"]),
    (52.0, &["week", "weekly", "woche", "semaine", "semana"]),
    (365.0, &["day", "daily", "tag", "jour", "día"]),
];
/// Words by which a number is of one column for each of another.
const RATES: [&str; 9] = ["per", "each", "every", "average", "averaged", "mean", "ratio", "times", "typical"];

/// Returns how many times a year the period has that stands behind a number, where the sentence speaks of a year.
fn parts_of_year(token: &TextToken, place: TokenPlace<'_>) -> Option<f64> {
    /// Words between a number and its period.
    const NEAR: usize = 3;
    let behind = place.clause[token.end..].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let near = behind.take(NEAR).collect::<Vec<_>>().join(" ");
    let period = PARTS_OF_YEAR.iter().find(|(_, words)| says(&near, words));
    period.map(|(parts, _)| *parts).filter(|_| says(place.sentence, &YEARS))
}

/// See the module; of the rows that the sentence names, else of all.
pub(super) fn specific_origin(
    result: &ProofRows,
    token: &TextToken,
    number: &WrittenNumber,
    place: TokenPlace<'_>,
    percents: &[f64],
) -> Option<ProofOrigin> {
    let is_whole = result.rows.len() == result.row_count && (1..=MAX_TOTALLED).contains(&result.rows.len());
    if !is_whole || number.is_counted || number.value == 0.0 {
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
        candidates.consider_percents(column);
    }
    let of_percents = candidates.proven();
    if of_percents.is_some() || (candidates.are_percents_only && number.is_percent) {
        return of_percents;
    }
    for column in &columns {
        candidates.consider_whole(column);
    }
    if let Some(found) = candidates.proven() {
        return Some(found);
    }
    let groups = named_groups(result, token, place);
    let of_group = |column: &ColumnTerms, group: &Vec<usize>| {
        let cells: Vec<(usize, f64)> =
            column.total.cells.iter().copied().filter(|(row, _)| group.contains(row)).collect();
        (cells.len() > 1).then(|| Term::new(column.total.column, column.total.factor, cells))
    };
    for group in &groups {
        for column in &columns {
            if let Some(term) = of_group(column, group) {
                candidates.consider_group(&term, column);
            }
        }
    }
    if let Some(found) = candidates.proven() {
        return Some(found);
    }
    let totals: Vec<&Term> = match is_of_all && result.rows.len() > 1 {
        true => columns.iter().map(|column| &column.total).collect(),
        false => columns.iter().filter_map(|column| column.sum.as_ref()).collect(),
    };
    // `26 are still open` is no ratio of hours and tickets.
    let is_rate = number.is_percent || number.tolerance != 0.5 || says(place.sentence, &RATES);
    candidates.consider_rates(if is_rate { &totals } else { &[] });
    for group in groups.iter().filter(|_| is_rate) {
        let terms: Vec<Term> = columns.iter().filter_map(|column| of_group(column, group)).collect();
        candidates.consider_rates(&terms.iter().collect::<Vec<&Term>>());
    }
    // Of two values words announce is looked for by the rules of those words.
    let of_totals = candidates.proven();
    if of_totals.is_some() || candidates.are_percents_only || result.rows.len() > MAX_ROWS {
        return of_totals;
    }
    let rows = || {
        (0..result.rows.len()).map(|row| {
            let cells = columns.iter().filter_map(move |column| column.cells.iter().find(|term| term.is_cell_of(row)));
            cells.collect::<Vec<&Term>>()
        })
    };
    rows().for_each(|of_row| candidates.consider_rates(&of_row));
    if let Some(found) = candidates.proven() {
        return Some(found);
    }
    rows().for_each(|of_row| candidates.consider_differences(&of_row));
    if let Some(found) = candidates.proven() {
        return Some(found);
    }
    if !number.is_percent {
        // Hectares with tonnes per hectare are tonnes.
        let all = measured_columns(result, "").into_iter().take(MAX_COLUMNS);
        let all: Vec<ColumnTerms> = all.map(|column| ColumnTerms::new(result, column, 1.0, is_named)).collect();
        for row in 0..result.rows.len() {
            let cells = all.iter().filter_map(|column| column.cells.iter().find(|term| term.is_cell_of(row)));
            candidates.consider_products(&cells.collect::<Vec<&Term>>());
        }
        if is_of_all {
            candidates.consider_value_of_all(&all);
        }
        if let Some(found) = candidates.proven() {
            return Some(found);
        }
    }
    for column in &columns {
        candidates.consider_cells(column);
    }
    candidates.proven()
}

/// Returns the groups of rows that a number may be of together: those that stand right behind it, `11,015 kWh in July`, and
/// those that the clause or the sentence names by one of the columns which name rows.
fn named_groups(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Vec<Vec<usize>> {
    const LINKS: [&str; 7] = ["in", "on", "for", "at", "im", "en", "during"];
    let behind = place.clause.get(token.end..).unwrap_or_default();
    let behind = behind.split([',', ';', '(']).next().unwrap_or_default();
    let linked = LINKS.iter().filter_map(|word| find_word(behind, word).map(|at| at + word.len())).min();
    let mut groups: Vec<Vec<usize>> = linked.into_iter().map(|at| result.labelled(&behind[at..])).collect();
    for text in [place.clause, place.sentence] {
        groups.extend(result.named_by_each_key(text));
    }
    groups.retain(|rows| rows.len() > 1 && rows.len() < result.rows.len());
    groups.sort_unstable();
    groups.dedup();
    groups
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
