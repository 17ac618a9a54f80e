//! How the names of rows stand in a text: as they are, in the other number, as a quarter, by both ends of a way, and as a letter.

use serde_json::Value;

use super::claims::has_word;
use super::dates::YEARS;
use super::tokens::{find_word, says};

/// Labels shorter than this are found by chance.
pub(super) const SHORTEST_LABEL: usize = 2;

/// Returns where a name stands in a text: a letter, as of grades and variants, in its own case and where it is no word.
pub(super) fn find_label(text: &str, name: &str) -> Option<usize> {
    let mut letters = name.chars();
    match (letters.next(), letters.next()) {
        (Some(letter), None) if letter.is_ascii_uppercase() => find_letter(text, letter),
        _ => find_word(text, name),
    }
}

/// Returns where a letter stands in a text by itself: `grade A`, `from A to D`, and no `A loan costs`.
fn find_letter(text: &str, letter: char) -> Option<usize> {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || "'’_-&°".contains(c));
    text.match_indices(letter).map(|(at, _)| at).find(|at| {
        let (before, behind) = (&text[..*at], &text[*at + letter.len_utf8()..]);
        let begins = before.trim_end().chars().next_back().is_none_or(|c| ".!?:\n".contains(c));
        let goes_on = behind.strip_prefix(' ').is_some_and(|rest| rest.starts_with(char::is_lowercase));
        let is_word = goes_on && (letter == 'I' || (letter == 'A' && begins));
        !is_word && !is_part(before.chars().next_back()) && !is_part(behind.chars().next())
    })
}

/// Whether a label stands in a text.
pub(super) fn stands_as_label(text: &str, value: &Value) -> bool {
    match value {
        Value::String(label) => {
            let is_letter = label.starts_with(|c: char| c.is_ascii_uppercase());
            (is_letter || label.chars().count() >= SHORTEST_LABEL)
                && (find_label(text, label).is_some() || says_both_ends(text, label))
        }
        // A small number is a label by chance.
        Value::Number(label) => {
            label.as_f64().is_some_and(|label| label >= 100.0) && find_word(text, &label.to_string()).is_some()
        }
        _ => false,
    }
}

/// Returns the quarter that a name of one of a year has: of `2024-Q3`, and of `Q3 2024`.
pub(super) fn quarter_of(value: &Value) -> Option<u32> {
    let name = value.as_str()?;
    let (before, behind) = name.rsplit_once(['Q', 'q'])?;
    let is_apart = !before.ends_with(char::is_alphanumeric) && !before.is_empty();
    let number = match (is_apart, before.is_empty().then(|| year_of(value)).flatten()) {
        (true, _) => behind,
        (false, Some(year)) => behind.strip_suffix(&year)?.trim_end_matches([' ', '-', '/', '_']),
        (false, None) => return None,
    };
    number.parse().ok().filter(|quarter| (1..=4).contains(quarter))
}

/// Returns the year that the name of a period begins or ends with: of `Q3 2024`, of `2024-03`, and of `2024`.
pub(super) fn year_of(value: &Value) -> Option<String> {
    const LONGEST: usize = "September 2024".len();
    let name = value.as_str().filter(|name| name.len() <= LONGEST)?;
    let is_year = |part: &&str| part.len() == 4 && part.parse().is_ok_and(|year: u32| YEARS.contains(&year));
    let parts = || name.split(|c: char| !c.is_alphanumeric());
    let mut ends = parts().next().into_iter().chain(parts().next_back());
    ends.find(is_year).map(str::to_owned)
}

/// Whether a text speaks of a quarter: `Q3`, `the third quarter`.
pub(super) fn says_quarter(text: &str, quarter: u32) -> bool {
    const WORDS: [&str; 4] = ["first quarter", "second quarter", "third quarter", "fourth quarter"];
    let words = usize::try_from(quarter).ok().and_then(|quarter| WORDS.get(quarter.checked_sub(1)?));
    find_word(text, &format!("Q{quarter}")).is_some() || words.is_some_and(|words| find_word(text, words).is_some())
}

/// Returns a name of one word in the other number: `Lamps` of `Lamp`, `Aye` of `Ayes`.
fn other_number(name: &str) -> Vec<String> {
    let is_letter = |c: char| c.is_alphabetic() || c == ' ';
    let is_word = name.chars().count() > 2 && name.chars().all(is_letter) && !name.ends_with("ss");
    match (is_word, name.strip_suffix('s')) {
        (false, _) => Vec::new(),
        (true, Some(one)) => vec![one.to_owned()],
        (true, None) => ["s", "es", "n", "en"].iter().map(|ending| format!("{name}{ending}")).collect(),
    }
}

/// The names of days and months as they are written in short, with those in full.
const IN_FULL: [(&str, &[&str]); 22] = [
    ("mon", &["Monday", "Mondays"]),
    ("tue", &["Tuesday", "Tuesdays"]),
    ("tues", &["Tuesday", "Tuesdays"]),
    ("wed", &["Wednesday", "Wednesdays"]),
    ("thu", &["Thursday", "Thursdays"]),
    ("thur", &["Thursday", "Thursdays"]),
    ("thurs", &["Thursday", "Thursdays"]),
    ("fri", &["Friday", "Fridays"]),
    ("sat", &["Saturday", "Saturdays"]),
    ("sun", &["Sunday", "Sundays"]),
    ("jan", &["January"]),
    ("feb", &["February"]),
    ("mar", &["March"]),
    ("apr", &["April"]),
    ("jun", &["June"]),
    ("jul", &["July"]),
    ("aug", &["August"]),
    ("sep", &["September"]),
    ("sept", &["September"]),
    ("oct", &["October"]),
    ("nov", &["November"]),
    ("dec", &["December"]),
];

/// Returns a name in its other number, and as it is said in full.
pub(super) fn other_forms(name: &str) -> impl Iterator<Item = String> {
    other_number(name).into_iter().chain(other_length(name))
}

/// Returns a name that is short for a day or a month in full, `Friday` of `Fri`, and one of several words as they are spoken,
/// `treatment a` of `treatment_a`.
pub(super) fn other_length(name: &str) -> Vec<String> {
    let short = name.trim_end_matches('.').to_lowercase();
    let found = IN_FULL.iter().find(|(known, _)| *known == short);
    let in_full = found.into_iter().flat_map(|(_, full)| full.iter().map(|name| (*name).to_owned()));
    let in_words = name.contains('_').then(|| name.replace('_', " "));
    // `Checkout` of `/api/v1/checkout`.
    let of_path = name.strip_prefix('/').and_then(|path| path.rsplit('/').next());
    let of_path = of_path.filter(|last| last.len() > SHORTEST_LABEL).map(str::to_owned);
    in_full.chain(in_words).chain(of_path).collect()
}

/// Whether a text says the two ends of a label: `between Dover and Calais` of `Dover-Calais`.
fn says_both_ends(text: &str, label: &str) -> bool {
    let Some((from, to)) = label.split_once(['-', '–', '/']) else { return false };
    let is_end =
        |end: &str| end.chars().count() > SHORTEST_LABEL && end.starts_with(char::is_uppercase) && has_word(text, end);
    let is_way = says(text, &["between", "from"]);
    is_way && is_end(from.trim()) && is_end(to.trim())
}

/// Whether a word stands in a text in the very same case.
pub(super) fn has_exact_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_alphanumeric() && c != '_').any(|one| one == word)
}

/// Whether a text ends with a name, as words of their own.
pub(super) fn ends_with_word(text: &str, name: &str) -> bool {
    let tail = text.len().checked_sub(name.len()).and_then(|at| Some((text.get(..at)?, text.get(at..)?)));
    tail.is_some_and(|(before, last)| last.eq_ignore_ascii_case(name) && !before.ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::find_label;

    #[test]
    fn letters_are_names_where_they_are_no_words() {
        for text in ["loans of grade A are safe", "from A to D", "| A | 12 |", "A: 12", "12 for A, 15 for B"] {
            assert!(find_label(text, "A").is_some(), "{text}");
        }
        for text in ["A loan costs 12.", "It is fine. A few are late", "a loan", "AB", "plan A-1"] {
            assert_eq!(find_label(text, "A"), None, "{text}");
        }
        assert_eq!(find_label("so I think", "I"), None);
    }
}
