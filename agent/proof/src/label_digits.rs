//! Digits that are a part of a name: the 25 and 34 of the age group `25-34`, the 10 of `the 10 mg dose` of the arm `XR-204 10 mg`, the
//! 35 of `younger than 35` where an age group begins, and the 15 of `15 minutes late` of the column `dly15`.

use serde_json::Value;

use super::claims::is_exact;
use super::rows::{ProofRows, TokenPlace};
use super::tokens::{TextToken, TextTokenKind, day_of, find_word, last_words};
use super::units::unit_beside;
use super::{ProofOrigin, number_of};

/// Rows whose names are looked at.
const MAX_ROWS: usize = 100;
/// Words before the end of a range of names.
const BEFORE_END: [&str; 9] = ["than", "under", "over", "above", "below", "aged", "age", "least", "most"];

/// See the module.
pub(super) fn label_digits_origin(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    if result.rows.len() > MAX_ROWS {
        return None;
    }
    of_whole_name(result, token, place).or_else(|| {
        let TextTokenKind::Number(number) = &token.kind else { return None };
        let digits = format!("{}", number.value);
        let is_whole = is_exact(number) && number.value.fract() == 0.0 && number.value >= 0.0;
        let of_name =
            || of_part_of_name(result, token, &digits, place).or_else(|| of_end(result, token, &digits, place));
        is_whole.then(|| of_name().or_else(|| of_column(result, token, &digits, place))).flatten()
    })
}

/// Returns the names that have digits, and are no numbers, days or times.
fn names_with_digits(result: &ProofRows) -> impl Iterator<Item = (usize, usize, &Value, &str)> {
    result.cells().filter_map(|(row, column, value)| {
        let name = value.as_str().filter(|name| name.contains(|c: char| c.is_ascii_digit()))?;
        let is_name = number_of(value).is_none() && day_of(value).is_none() && !name.contains(':');
        is_name.then_some((row, column, value, name))
    })
}

/// Finds digits within a name that stands in the sentence as a whole.
fn of_whole_name(result: &ProofRows, token: &TextToken, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let (start, end) = (place.offset + token.start, place.offset + token.end);
    let is_apart = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
    let covers = |name: &str| {
        place.sentence.match_indices(name).any(|(at, found)| {
            let (before, behind) = (&place.sentence[..at], &place.sentence[at + found.len()..]);
            let is_so = at <= start && end <= at + found.len();
            is_so && is_apart(before.chars().next_back()) && is_apart(behind.chars().next())
        })
    };
    names_with_digits(result)
        .find(|(_, _, _, name)| covers(name) || (name.contains('-') && covers(&name.replace('-', "–"))))
        .map(|(row, column, value, _)| result.cell_origin(row, column, value))
}

/// Finds the 10 of `10 mg` of a name that goes on, and the 30 of `30 days late` of a row whose state is `late_30`.
fn of_part_of_name(result: &ProofRows, token: &TextToken, digits: &str, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let behind = place.clause.get(token.end..)?.strip_prefix([' ', '-'])?;
    let word: String = behind.chars().take_while(|c| c.is_alphabetic()).collect();
    let phrase = format!("{digits} {word}");
    let rows = result.named_rows(place);
    let is_of_row = |row: usize, name: &str| {
        let has_word = name.contains('_') && name.starts_with(char::is_alphabetic);
        rows == [row] && has_word && groups_of_digits(name).any(|group| group == digits)
    };
    let mut names = names_with_digits(result).filter(|_| !word.is_empty());
    names
        .find(|(row, _, _, name)| find_word(name, &phrase).is_some() || is_of_row(*row, name))
        .map(|(row, column, value, _)| result.cell_origin(row, column, value))
}

/// Finds the 35 of `younger than 35`, where names such as `25-34` and `35-44` say from where to where.
fn of_end(result: &ProofRows, token: &TextToken, digits: &str, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let before = last_words(&place.clause[..token.start], 1);
    if !BEFORE_END.contains(&before.as_str()) {
        return None;
    }
    let is_range = |name: &str| name.starts_with(|c: char| c.is_ascii_digit() || "<>≤≥".contains(c));
    let mut names = names_with_digits(result).filter(|(_, _, _, name)| is_range(name));
    names
        .find(|(_, _, _, name)| groups_of_digits(name).any(|group| group == digits))
        .map(|(row, column, value, _)| result.cell_origin(row, column, value))
}

/// Finds the 15 of `15 minutes late` of a column `dly15`.
fn of_column(result: &ProofRows, token: &TextToken, digits: &str, place: TokenPlace<'_>) -> Option<ProofOrigin> {
    let has_digits = |name: &String| {
        // `P50_ms` is a percentile.
        let mut parts = name.split('_').filter(|part| part.strip_prefix('p') != Some(digits));
        name.starts_with(char::is_alphabetic) && parts.any(|part| groups_of_digits(part).any(|group| group == digits))
    };
    let is_of_unit = unit_beside(token, place.clause).is_some();
    (is_of_unit && result.columns.iter().any(has_digits))
        .then_some(ProofOrigin::Query { call_index: result.call_index })
}

fn groups_of_digits(name: &str) -> impl Iterator<Item = &str> {
    name.split(|c: char| !c.is_ascii_digit()).filter(|group| !group.is_empty())
}

impl ProofRows {
    /// Returns the rows of whose names a number with its unit stands in a text that no other name has: those of `10 mg` of
    /// `XR-204 10 mg`.
    pub(super) fn called_by_measure(&self, text: &str) -> Vec<usize> {
        if !(2..=MAX_ROWS).contains(&self.rows.len()) || !text.contains(|c: char| c.is_ascii_digit()) {
            return Vec::new();
        }
        let is_digits = |word: &str| word.chars().all(|c| c.is_ascii_digit());
        let is_unit = |word: &str| word.len() > 1 && word.chars().all(char::is_alphabetic);
        let phrase = |name: &str| {
            let words: Vec<&str> = name.split_whitespace().collect();
            let mut pairs = words.windows(2).filter(|_| words.len() > 2);
            pairs.find(|pair| is_digits(pair[0]) && is_unit(pair[1])).map(|pair| pair.join(" "))
        };
        let phrases: Vec<Option<String>> = self
            .rows
            .iter()
            .map(|row| self.label_columns().iter().find_map(|column| phrase(row.get(*column)?.as_str()?)))
            .collect();
        let is_said = |row: &usize| {
            phrases[*row].as_ref().is_some_and(|own| {
                let is_only = phrases.iter().flatten().filter(|other| *other == own).count() == 1;
                is_only && find_word(text, own).is_some()
            })
        };
        (0..self.rows.len()).filter(is_said).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::doubted;

    #[test]
    fn digits_of_names_are_no_claims() {
        let groups = json!([["18-24", 214, 7.8], ["25-34", 388, 8.1], ["35-44", 301, 7.4], ["55+", 121, 8.4]]);
        let of_groups = |text: &str| doubted(&["age_group", "respondents", "score"], groups.clone(), text);
        for text in ["The largest group was 25-34 with 388.", "Those aged 55+ gave 8.4.", "Most are younger than 35."] {
            assert_eq!(of_groups(text), Vec::<String>::new(), "{text}");
        }
        assert_eq!(of_groups("The largest group was 25-34 with 338."), ["338"]);
        assert_eq!(of_groups("Those aged 56+ gave 8.4."), ["56"]);
    }

    #[test]
    fn a_number_with_its_unit_names_a_row() {
        let arms = json!([["Placebo", 148, -0.12], ["XR-204 5 mg", 151, -0.68], ["XR-204 10 mg", 149, -1.04]]);
        let of_arms = |text: &str| doubted(&["arm", "patients", "mean_change"], arms.clone(), text);
        assert_eq!(of_arms("On 10 mg the mean change was -1.04, and 149 took part."), Vec::<String>::new());
        assert_eq!(of_arms("On 10 mg the mean change was -0.68."), ["-0.68"]);
        assert_eq!(of_arms("On 20 mg nobody took part."), ["20"]);
    }
}
