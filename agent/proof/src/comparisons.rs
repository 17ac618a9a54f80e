//! Names that are said to have more than others, less, or as much, and have not; and texts that are another row's: `Raj
//! works in HR`, where Tia does.

use serde_json::Value;

use super::bounds::{widened, wrongly_listed};
use super::claims::has_word;
use super::names::NamePlace;
use super::number_of;
use super::ranks::measured_columns;
use super::rows::ProofRows;
use super::sentences::clauses;
use super::tokens::{
    ShareScale, TextToken, TextTokenKind, WrittenNumber, find_word, is_name, last_words, says, tokens_in,
};
use super::units::is_unit_called;

/// Rows that are compared.
const MAX_ROWS: usize = 200;
const MORE: [&str; 8] = ["more", "higher", "greater", "larger", "bigger", "longer", "taller", "heavier"];
const LESS: [&str; 6] = ["less", "fewer", "lower", "smaller", "shorter", "cheaper"];
/// Words by which a sentence says something else than that a row has what is said.
const OTHERWISE: [&str; 12] =
    ["not", "never", "neither", "nor", "no", "unlike", "except", "instead", "if", "from", "than", "without"];

/// Returns the rows of which a sentence says something else than they have, in every column that it can be about.
pub(super) fn wrong_rows(result: &ProofRows, sentence: &str) -> Vec<usize> {
    let is_whole = result.rows.len() == result.row_count && (2..=MAX_ROWS).contains(&result.rows.len());
    if !is_whole {
        return Vec::new();
    }
    let mut wrong = wrongly_compared(result, sentence);
    wrong.extend(wrongly_without(result, sentence));
    wrong.extend(wrongly_true(result, sentence));
    wrong.extend(wrongly_listed(result, sentence));
    wrong
}

/// Returns the rows that a sentence compares otherwise than they are.
fn wrongly_compared(result: &ProofRows, sentence: &str) -> Vec<usize> {
    let denies = says(sentence, &["not", "never", "neither", "no"]);
    if denies || sentence.contains("n't") {
        return Vec::new();
    }
    let named = result.labels_in_order(sentence);
    let columns = measured_columns(result, sentence);
    let value = |row: usize, column: usize| number_of(result.rows.get(row)?.get(column)?);
    let is_tie = says(sentence, &["tied", "tie for", "are equal"]);
    if is_tie && named.len() > 1 {
        let is_so = |column: &usize| {
            let values: Vec<Option<f64>> = named.iter().map(|(row, _)| value(*row, *column)).collect();
            values.iter().all(|value| value.is_some() && *value == values[0])
        };
        let is_wrong = !columns.is_empty() && !columns.iter().any(is_so);
        return if is_wrong { named.into_iter().map(|(row, _)| row).collect() } else { Vec::new() };
    }
    let wrong = wrong_order(&named, &columns, value, sentence)
        .or_else(|| wrong_difference(&named, &columns, value, sentence))
        .or_else(|| wrong_equal(result, &named, sentence));
    wrong.into_iter().collect()
}

/// Returns the first of two rows where the sentence says by how much it has more than the second, or less, and it is the
/// other way round: `A waits 9 minutes less than B`.
fn wrong_difference(
    named: &[(usize, usize)],
    columns: &[usize],
    value: impl Fn(usize, usize) -> Option<f64>,
    sentence: &str,
) -> Option<usize> {
    /// Words between a number and the word that compares.
    const UNIT_WORDS: usize = 2;
    let [(first, first_end), (second, second_end)] = *named else { return None };
    let said = |token: &TextToken| -> Option<(WrittenNumber, bool)> {
        let TextTokenKind::Number(number) = token.kind else { return None };
        let behind = sentence.get(token.end..second_end).filter(|_| token.start >= first_end)?;
        let lower = behind.to_lowercase();
        let words: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
        let at = words.iter().take(UNIT_WORDS + 1).position(|word| is_comparing(word))?;
        let word = *words.get(at)?;
        let units = words.get(..at).unwrap_or_default();
        // Who is 3 seconds ahead has the smaller number of seconds, and who is two places higher that of places.
        let is_of_race = ["ahead", "behind"].contains(&word) && units.iter().any(|unit| is_unit_called(unit));
        let is_of_places = units.iter().any(|unit| ["place", "places", "position", "positions"].contains(unit));
        match word {
            _ if is_of_race || is_of_places => None,
            "ahead" | "behind" => Some((widened(number, sentence, token.start), word == "ahead")),
            _ if !words.contains(&"than") => None,
            _ => Some((widened(number, sentence, token.start), MORE.contains(&word))),
        }
    };
    let (number, is_more) = tokens_in(sentence).iter().find_map(said)?;
    let mut is_reversed = false;
    for column in columns {
        let (Some(left), Some(right)) = (value(first, *column), value(second, *column)) else { continue };
        let difference = (left - right).abs();
        let is_so = match number.is_percent {
            true => right != 0.0 && number.stands_for(100.0 * difference / right.abs(), ShareScale::Percent),
            false => number.stands_for(difference, ShareScale::Unknown),
        };
        if is_so && difference > 0.0 {
            if (left > right) == is_more {
                return None;
            }
            is_reversed = true;
        }
    }
    is_reversed.then_some(first)
}

fn is_comparing(word: &str) -> bool {
    MORE.contains(&word) || LESS.contains(&word) || word == "ahead" || word == "behind"
}

/// Returns the second of two rows where the sentence says that the first has as many of something, and no number of the
/// one is one of the other: `A lost 12 games, as many as B has won`.
fn wrong_equal(result: &ProofRows, named: &[(usize, usize)], sentence: &str) -> Option<usize> {
    /// Words before `as many as` by which it is no equality.
    const FACTORS: [&str; 12] = [
        "twice", "half", "times", "third", "quarter", "not", "nearly", "almost", "about", "roughly", "least", "thrice",
    ];
    let [(first, first_end), (second, second_end)] = *named else { return None };
    let at = ["as many as", "as much as"].iter().find_map(|words| find_word(sentence, words))?;
    let before = last_words(&sentence[..at], 1);
    let is_factor = FACTORS.contains(&before.as_str()) || before.ends_with(|c: char| c.is_ascii_digit() || c == '%');
    if is_factor || at < first_end || at >= second_end {
        return None;
    }
    let numbers = |row: usize| -> Vec<f64> {
        let cells = measured_columns(result, "").into_iter();
        cells.filter_map(|column| number_of(result.rows.get(row)?.get(column)?)).collect()
    };
    let of_second = numbers(second);
    let said: Vec<f64> = tokens_in(&sentence[..at])
        .iter()
        .filter_map(|token| match &token.kind {
            TextTokenKind::Number(number) if token.start >= first_end => Some(number.value),
            _ => None,
        })
        .collect();
    let of_first = if said.is_empty() { numbers(first) } else { said };
    (!of_second.is_empty() && !of_first.iter().any(|one| of_second.contains(one))).then_some(second)
}

/// Returns the rows of which a clause says that they have none of something, and of which every number is one.
fn wrongly_without(result: &ProofRows, sentence: &str) -> Vec<usize> {
    const NONE: [&str; 8] = ["nobody", "no one", "none", "without a", "without any", "has no", "had no", "have no"];
    const OF_OTHERS: [&str; 9] = ["other", "others", "else", "than", "but", "except", "besides", "as", "unlike"];
    // The same, where no number stands beside: `has not been sold at all`.
    const NEVER: [&str; 22] = [
        "never been",
        "was never",
        "were never",
        "is never",
        "are never",
        "nie",
        "gar nicht",
        "überhaupt nicht",
        "jamais",
        "aucun",
        "aucune",
        "nunca",
        "ningún",
        "ninguna",
        "ninguno",
        "nessun",
        "nessuna",
        "nooit",
        "geen enkele",
        "nenhum",
        "nenhuma",
        "mai stato",
    ];
    // What the query asks by need not be a column: `WHERE cancelled = 0`.
    let query = result.query_text.to_lowercase();
    let columns = measured_columns(result, "");
    if columns.is_empty() || ["= 0", "null", "not ", "left ", "false"].iter().any(|words| query.contains(words)) {
        return Vec::new();
    }
    let has_none = |row: usize| {
        result.rows.get(row).into_iter().flatten().enumerate().any(|(column, value)| match number_of(value) {
            // Whom all have visited nobody has missed.
            Some(number) => number == 0.0 || (number == 100.0 && result.share_scale(column) != ShareScale::Amount),
            None => matches!(value, Value::Null | Value::Bool(false)),
        })
    };
    let denied = clauses(sentence).into_iter().filter_map(|(clause, _)| {
        let is_denied = says(clause, &["not", "never"]) || clause.contains("n't");
        let is_never = says(clause, &NEVER) || (is_denied && says(clause, &["at all"]));
        let has_number = || tokens_in(clause).iter().any(|token| matches!(token.kind, TextTokenKind::Number(_)));
        let is_none = says(clause, &NONE) || (is_never && !has_number());
        if !is_none || says(clause, &OF_OTHERS) {
            return None;
        }
        let [row] = *result.labelled(clause).as_slice() else { return None };
        (!has_none(row)).then_some(row)
    });
    denied.collect()
}

/// Returns what a sentence calls the column of a flag: `active` of `is_active`.
pub(super) fn spoken_name(column: &str) -> String {
    let name = column.to_lowercase();
    name.strip_prefix("is_").or_else(|| name.strip_prefix("has_")).unwrap_or(&name).replace('_', " ")
}

/// Returns the rows that a clause calls by a column of truth values, and of which it is not true.
fn wrongly_true(result: &ProofRows, sentence: &str) -> Vec<usize> {
    const DENIED: [&str; 10] = ["not", "no", "never", "non", "false", "except", "but", "unlike", "without", "other"];
    let is_of_truth = |column: &usize| {
        let mut values =
            result.rows.iter().filter_map(|row| row.get(*column)).filter(|value| !value.is_null()).peekable();
        values.peek().is_some() && values.all(Value::is_boolean)
    };
    let mut wrong = Vec::new();
    for column in (0..result.columns.len()).filter(is_of_truth) {
        let name = result.columns.get(column).map(|name| spoken_name(name)).unwrap_or_default();
        for (clause, _) in clauses(sentence) {
            let Some(at) = find_word(clause, &name) else { continue };
            let before = last_words(&clause[..at], 1);
            if before == "not" || before.ends_with("n't") {
                let is_true =
                    |row: &usize| result.rows.get(*row).and_then(|row| row.get(column)) == Some(&Value::Bool(true));
                if let [row] = *result.labelled(clause).as_slice() {
                    wrong.extend(Some(row).filter(is_true));
                }
                continue;
            }
            let is_denied = says(clause, &DENIED) || clause.contains("n't");
            if is_denied || clause.contains('|') {
                continue;
            }
            let is_false =
                |row: &usize| result.rows.get(*row).and_then(|row| row.get(column)) == Some(&Value::Bool(false));
            wrong.extend(result.labelled(clause).into_iter().filter(is_false));
        }
    }
    wrong
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
    let says = |words: &[&str]| says(between, words);
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
    // A number of theirs tells rows apart as well: `ticket 90257 was handled by Tom`.
    let is_number = |column: &usize| result.rows.iter().all(|row| row.get(*column).is_some_and(Value::is_number));
    let key = columns.iter().copied().find(|column| result.tells_apart(*column));
    let key = key.or_else(|| result.label_columns().iter().copied().find(is_number));
    let Some(key) = key.filter(|key| is_whole && columns.iter().any(|column| column != key)) else {
        return Vec::new();
    };
    let mut wrong = Vec::new();
    let named_in = |part: &str| -> Vec<usize> {
        let name = |row: usize| match result.rows.get(row)?.get(key)? {
            Value::String(name) => Some(name.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        (0..result.rows.len()).filter(|row| name(*row).is_some_and(|name| has_word(part, &name))).collect()
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
        if says(clause, &OTHERWISE) || clause.contains("n't") {
            continue;
        }
        for column in columns.iter().copied().filter(|column| *column != key) {
            let Some(own) = text(row, column) else { continue };
            let is_other = |name: &&str| *name != own && name.len() > 1 && is_said_as_text(clause, name);
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

/// Whether a clause says a text of a column: a name, or a word behind one by which it is said of something, `paid by card`.
fn is_said_as_text(clause: &str, name: &str) -> bool {
    const BEFORE: [&str; 7] = ["by", "via", "as", "is", "was", "are", "were"];
    const SHORTEST: usize = 4;
    let is_said_of = || {
        let at = find_word(clause, name).filter(|_| name.chars().count() >= SHORTEST);
        at.is_some_and(|at| BEFORE.contains(&last_words(&clause[..at], 1).as_str()))
    };
    has_word(clause, name) && (name.starts_with(char::is_uppercase) || is_said_of())
}
