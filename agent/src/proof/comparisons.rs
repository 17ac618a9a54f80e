//! Names that are said to have more than others, less, or as much, and have not; and texts that are another row's: `Raj
//! works in HR`, where Tia does.

use super::claims::has_word;
use super::names::NamePlace;
use super::number_of;
use super::ranks::measured_columns;
use super::rows::ProofRows;
use super::tokens::{TextTokenKind, clauses, find_word, is_name, tokens_in};

/// Rows that are compared.
const MAX_ROWS: usize = 200;
const MORE: [&str; 8] = ["more", "higher", "greater", "larger", "bigger", "longer", "taller", "heavier"];
const LESS: [&str; 6] = ["less", "fewer", "lower", "smaller", "shorter", "cheaper"];
/// Words by which a sentence says something else than that a row has what is said.
const OTHERWISE: [&str; 12] =
    ["not", "never", "neither", "nor", "no", "unlike", "except", "instead", "if", "from", "than", "without"];

/// Returns the rows that a sentence compares otherwise than they are, in every column that it can be about.
pub(super) fn wrong_rows(result: &ProofRows, sentence: &str) -> Vec<usize> {
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    let denies = ["not", "never", "neither", "no"].iter().any(|word| find_word(sentence, word).is_some());
    if !is_whole || denies || sentence.contains("n't") {
        return Vec::new();
    }
    let named = result.labels_in_order(sentence);
    let columns = measured_columns(result, sentence);
    let value = |row: usize, column: usize| number_of(result.rows.get(row)?.get(column)?);
    let is_tie = ["tied", "tie for", "are equal"].iter().any(|word| find_word(sentence, word).is_some());
    if is_tie && named.len() > 1 {
        let is_so = |column: &usize| {
            let values: Vec<Option<f64>> = named.iter().map(|(row, _)| value(*row, *column)).collect();
            values.iter().all(|value| value.is_some() && *value == values[0])
        };
        let is_wrong = !columns.is_empty() && !columns.iter().any(is_so);
        return if is_wrong { named.into_iter().map(|(row, _)| row).collect() } else { Vec::new() };
    }
    wrong_order(&named, &columns, value, sentence).into_iter().collect()
}

/// Returns the first of two rows where the sentence says that it has more, or less, than the second, and it has not.
fn wrong_order(
    named: &[(usize, usize)],
    columns: &[usize],
    value: impl Fn(usize, usize) -> Option<f64>,
    sentence: &str,
) -> Option<usize> {
    let [(first, first_end), (second, second_end)] = *named else { return None };
    let has_numbers = tokens_in(sentence).iter().any(|token| {
        matches!(token.kind, TextTokenKind::Number(_) | TextTokenKind::Factor(_) | TextTokenKind::Rank(_))
    });
    let between = sentence.get(first_end..second_end)?;
    let says = |words: &[&str]| words.iter().any(|word| find_word(between, word).is_some());
    let is_more = match (says(&MORE), says(&LESS)) {
        (true, false) => true,
        (false, true) => false,
        _ => return None,
    };
    if has_numbers || find_word(between, "than").is_none() || columns.is_empty() {
        return None;
    }
    let mut is_compared = false;
    for column in columns {
        let (Some(left), Some(right)) = (value(first, *column), value(second, *column)) else { continue };
        is_compared = true;
        if (is_more && left > right) || (!is_more && left < right) {
            return None;
        }
    }
    is_compared.then_some(first)
}

/// Returns the texts that a clause says of the only row that it names, and that are of others.
pub(super) fn wrong_texts(result: &ProofRows, sentence: &str) -> Vec<NamePlace> {
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    let text = |row: usize, column: usize| result.rows.get(row)?.get(column)?.as_str().filter(|text| is_name(text));
    let columns: Vec<usize> = (0..result.columns.len())
        .filter(|column| (0..result.rows.len()).all(|row| text(row, *column).is_some()))
        .collect();
    let tells_apart = |column: &usize| {
        let mut values: Vec<Option<&str>> = (0..result.rows.len()).map(|row| text(row, *column)).collect();
        values.sort_unstable();
        values.dedup();
        values.len() == result.rows.len()
    };
    let Some(key) = columns.iter().copied().find(tells_apart).filter(|_| is_whole && columns.len() > 1) else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    let named_in = |part: &str| -> Vec<usize> {
        (0..result.rows.len()).filter(|row| text(*row, key).is_some_and(|name| has_word(part, name))).collect()
    };
    let of_sentence = named_in(sentence);
    for (clause, offset) in clauses(sentence) {
        let of_clause = named_in(clause);
        // `The second, Kopecky, rides for UAE`: what is said of the only row of the sentence.
        let (row, part) = match (of_clause.as_slice(), of_sentence.as_slice()) {
            ([row], _) => (*row, clause),
            ([], [row]) => (*row, sentence),
            _ => continue,
        };
        if OTHERWISE.iter().any(|word| find_word(clause, word).is_some()) || clause.contains("n't") {
            continue;
        }
        for column in columns.iter().copied().filter(|column| *column != key) {
            let Some(own) = text(row, column) else { continue };
            let is_other = |name: &&str| {
                *name != own && name.starts_with(char::is_uppercase) && name.len() > 1 && has_word(clause, name)
            };
            let mut others = (0..result.rows.len()).filter_map(|row| text(row, column)).filter(is_other);
            let is_said = has_word(part, own);
            if let Some(name) = others.next().filter(|_| !is_said)
                && let Some(at) = clause.find(name)
            {
                wrong.push((offset + at, offset + at + name.len()));
            }
        }
    }
    wrong
}
