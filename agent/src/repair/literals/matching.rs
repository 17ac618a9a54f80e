//! Which value of a column a text means.

use chrono::NaiveDate;
use strsim::damerau_levenshtein;

use crate::coverage::unaccented;
use crate::repair::near::singular;

/// Letters for each of which one may differ.
const LETTERS_PER_ERROR: usize = 5;
/// The most values that one text stands for.
const MAX_MEANT: usize = 5;
/// Values named where none is meant.
const NAMED: usize = 3;

/// The values that a text means, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ValueMatch {
    pub(super) values: Vec<String>,
    pub(super) why: String,
}

/// Returns the values that a text means. `None` where it is one of them, or none is near enough.
pub(super) fn value_meant(literal: &str, values: &[String]) -> Option<ValueMatch> {
    if values.iter().any(|value| value == literal) {
        return None;
    }
    let found = |values: Vec<&String>, why: &str| {
        let is_one = !values.is_empty() && values.len() <= MAX_MEANT;
        is_one.then(|| ValueMatch { values: values.into_iter().cloned().collect(), why: why.to_owned() })
    };
    let alone = |values: Vec<&String>, why: &str| found(values, why).filter(|found| found.values.len() == 1);
    let written = fold(literal);
    if written.is_empty() {
        return None;
    }
    let same = values.iter().filter(|value| fold(value) == written).collect();
    if let Some(same) = found(same, "the values differ in case, accents or spaces") {
        return Some(same);
    }
    let words = words(&written);
    let same_words = values.iter().filter(|value| self::words(&fold(value)) == words).collect();
    if let Some(same) = found(same_words, "the value is in the singular or the plural, or has other separators") {
        return Some(same);
    }
    if let Some(date) = date_in(literal) {
        let same = values.iter().filter(|value| date_in(value).as_deref() == Some(&date)).collect();
        if let Some(same) = found(same, "the date is in another form here") {
            return Some(same);
        }
    }
    if let Some(meant) = truth(&written, values) {
        return alone(vec![meant], "the column writes it so");
    }
    if let Some(meant) =
        alone(values.iter().filter(|value| is_short_for(literal, value)).collect(), "it is short for it")
    {
        return Some(meant);
    }
    let initial: Vec<&String> =
        values.iter().filter(|value| value.chars().count() == 1 && written.starts_with(&fold(value))).collect();
    if values.iter().all(|value| value.chars().count() == 1)
        && let Some(meant) = alone(initial, "the column has initials")
    {
        return Some(meant);
    }
    let begins = values.iter().filter(|value| begins_with(&self::words(&fold(value)), &words)).collect();
    if let Some(meant) = alone(begins, "the only value that begins so") {
        return Some(meant);
    }
    let within = values.iter().filter(|value| contains(&self::words(&fold(value)), &words)).collect();
    if let Some(meant) = alone(within, "the only value that contains it") {
        return Some(meant);
    }
    let around = values
        .iter()
        .filter(|value| value.chars().count() >= 3 && contains(&words, &self::words(&fold(value))))
        .collect();
    if let Some(meant) = alone(around, "the only value that it contains") {
        return Some(meant);
    }
    let allowed = written.chars().count() / LETTERS_PER_ERROR;
    // Codes that differ in a digit are different things.
    let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
    let errors = |value: &&String| {
        let folded = fold(value);
        (digits(&folded) == digits(&written)).then(|| damerau_levenshtein(&folded, &written))
    };
    let fewest = values.iter().filter_map(|value| errors(&value)).min().filter(|errors| *errors <= allowed)?;
    alone(
        values.iter().filter(|value| errors(value) == Some(fewest)).collect(),
        "the only value of nearly that spelling",
    )
}

/// Returns the values that are nearest to a text, for people.
pub(super) fn nearest_values(literal: &str, values: &[String]) -> Vec<String> {
    if let Some(meant) = value_meant(literal, values) {
        return meant.values;
    }
    let written = fold(literal);
    let mut ranked: Vec<(f64, &String)> =
        values.iter().map(|value| (strsim::jaro_winkler(&written, &fold(value)), value)).collect();
    ranked.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(right.1)));
    ranked.into_iter().take(NAMED).map(|(_, value)| value.clone()).collect()
}

/// Returns the text in lower case, without accents, and with single spaces.
pub(super) fn fold(text: &str) -> String {
    let lower = text.trim().to_lowercase();
    let plain: String = lower.chars().map(unaccented).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(super) fn words(folded: &str) -> Vec<String> {
    folded.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(singular).collect()
}

/// Whether a text in capitals is short for a name: its initials, or what countries are called in short.
fn is_short_for(literal: &str, value: &str) -> bool {
    const SHORT: [(&str, &str); 6] = [
        ("USA", "united states"),
        ("USA", "united states of america"),
        ("US", "united states of america"),
        ("UK", "united kingdom"),
        ("UAE", "united arab emirates"),
        ("GB", "united kingdom"),
    ];
    let letters: String = literal.chars().filter(|c| *c != '.').collect();
    let is_short = (2..=5).contains(&letters.len()) && letters.chars().all(|c| c.is_ascii_uppercase());
    let value = fold(value);
    let parts: Vec<&str> = value.split_whitespace().collect();
    let initials: String = parts.iter().filter_map(|part| part.chars().next()).collect();
    is_short
        && (SHORT.contains(&(letters.as_str(), value.as_str()))
            || (parts.len() > 1 && initials == letters.to_lowercase()))
}

fn begins_with(value: &[String], part: &[String]) -> bool {
    !part.is_empty() && value.len() > part.len() && value[..part.len()] == *part
}

fn contains(value: &[String], part: &[String]) -> bool {
    !part.is_empty() && value.len() > part.len() && value.windows(part.len()).any(|window| window == part)
}

/// Returns the value that says the same as a yes or a no, where the column has only such.
fn truth<'v>(written: &str, values: &'v [String]) -> Option<&'v String> {
    const YES: [&str; 6] = ["yes", "true", "y", "t", "1", "on"];
    const NO: [&str; 6] = ["no", "false", "n", "f", "0", "off"];
    let side = [YES, NO].into_iter().find(|side| side.contains(&written))?;
    let is_truth = |value: &String| YES.contains(&fold(value).as_str()) || NO.contains(&fold(value).as_str());
    if !values.iter().all(is_truth) {
        return None;
    }
    values.iter().find(|value| side.contains(&fold(value).as_str()))
}

/// Returns the day that a text is, as `2014-03-01`.
pub(super) fn date_in(text: &str) -> Option<String> {
    const FORMS: [&str; 14] = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y.%m.%d",
        "%Y%m%d",
        "%m/%d/%Y",
        // Where the first number is no month.
        "%d/%m/%Y",
        "%d.%m.%Y",
        "%d-%m-%Y",
        "%B %d, %Y",
        "%b %d, %Y",
        "%B %d %Y",
        "%d %B %Y",
        "%d %b %Y",
        "%d-%b-%Y",
    ];
    let text = text.trim();
    let year = |date: &NaiveDate| (1000..=9999).contains(&chrono::Datelike::year(date));
    let found = FORMS.iter().find_map(|form| NaiveDate::parse_from_str(text, form).ok().filter(year));
    found.map(|date| date.format("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_means_a_value() {
        for (literal, values, expected) in [
            ("united", &["Delta Air Lines Inc.", "United Air Lines Inc."][..], &["United Air Lines Inc."][..]),
            ("france", &["France", "Spain"], &["France"]),
            ("FRANCE", &["France", "france ", "Spain"], &["France", "france "]),
            ("Malmo", &["Malmö", "Lund"], &["Malmö"]),
            ("Dogs", &["dog", "cat"], &["dog"]),
            ("in_progress", &["In Progress", "Done"], &["In Progress"]),
            ("March 1, 2014", &["2014-03-01", "2014-03-02"], &["2014-03-01"]),
            ("03/01/2014", &["2014-03-01"], &["2014-03-01"]),
            ("yes", &["T", "F"], &["T"]),
            ("false", &["Y", "N"], &["N"]),
            ("male", &["M", "F"], &["M"]),
            ("USA", &["United States", "United Kingdom"], &["United States"]),
            ("U.S.", &["United States", "United Kingdom"], &["United States"]),
            ("UK", &["United States", "United Kingdom"], &["United Kingdom"]),
            ("NYC", &["New York City", "Boston"], &["New York City"]),
            ("31/01/2014", &["2014-01-31", "2014-02-01"], &["2014-01-31"]),
            ("New York City", &["New York", "Boston"], &["New York"]),
            ("Air Lines", &["United Air Lines Inc.", "Jet Blue"], &["United Air Lines Inc."]),
            ("Volksvagen", &["Volkswagen", "Volvo"], &["Volkswagen"]),
            // Nothing is meant where it is there, where two are as near, and where nothing is near.
            ("France", &["France"], &[]),
            ("New", &["New York", "New Jersey"], &[]),
            ("Peru", &["France", "Spain"], &[]),
            ("A320", &["A321", "B737"], &[]),
        ] {
            let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
            let found = value_meant(literal, &values).map(|found| found.values).unwrap_or_default();
            assert_eq!(found, expected, "{literal}");
        }
    }
}
