//! Which of the names at hand a written name means: the same word in other letters, in the singular or the plural,
//! with a typing error, with a word left out, or abbreviated. Of two names that are as near, none is meant.

use strsim::damerau_levenshtein;

/// How a name was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Likeness {
    /// The same letters in another case.
    Case,
    /// The same words, but for separators and plurals.
    Words,
    /// Some letters differ.
    Spelling,
    /// One has words that the other lacks.
    Part,
    /// The candidate has short forms of the words: `cust_nm` of `customer_name`.
    Abbreviation,
}

/// The shortest name whose typing errors are corrected.
const SHORTEST_MISSPELT: usize = 4;
/// Letters for each of which one may differ.
const LETTERS_PER_ERROR: usize = 4;
/// The shortest word of a longer name in which a letter may differ.
const SHORTEST_WORD: usize = 3;
/// The word that says that a column has numbers for what the other words say.
const KEY: &str = "id";

/// Returns the one candidate that `written` means, if there is exactly one of the best likeness.
pub(super) fn nearest<'a>(written: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, Likeness)> {
    let mut best: Option<(&'a str, (Likeness, usize))> = None;
    let mut is_tie = false;
    for candidate in candidates {
        let Some(likeness) = likeness(written, candidate) else { continue };
        match &best {
            Some((known, _)) if known.eq_ignore_ascii_case(candidate) => {}
            Some((_, found)) if *found < likeness => {}
            Some((_, found)) if *found == likeness => is_tie = true,
            _ => {
                best = Some((candidate, likeness));
                is_tie = false;
            }
        }
    }
    best.filter(|_| !is_tie).map(|(candidate, (likeness, _))| (candidate, likeness))
}

/// Returns how alike two names are, and the number of differences; lower is nearer.
fn likeness(written: &str, candidate: &str) -> Option<(Likeness, usize)> {
    if written.to_lowercase() == candidate.to_lowercase() {
        return Some((Likeness::Case, 0));
    }
    let (left, right) = (words(written), words(candidate));
    let (joined_left, joined_right) = (left.concat(), right.concat());
    if joined_left.is_empty() || joined_right.is_empty() {
        return None;
    }
    if joined_left == joined_right {
        return Some((Likeness::Words, 0));
    }
    let length = joined_left.chars().count();
    if length >= SHORTEST_MISSPELT {
        let allowed = (length / LETTERS_PER_ERROR).clamp(1, 3);
        // Names that differ in a number are different things.
        let digits = |text: &str| -> String { text.chars().filter(char::is_ascii_digit).collect() };
        let errors = damerau_levenshtein(&joined_left, &joined_right);
        if errors <= allowed && digits(&joined_left) == digits(&joined_right) && are_near_by_word(&left, &right) {
            return Some((Likeness::Spelling, errors));
        }
    }
    let has = |words: &[String], word: &String| words.contains(word);
    // Who writes of votes does not mean their numbers.
    if right.iter().filter(|word| !has(&left, word)).eq([KEY]) {
        return None;
    }
    if let Some(shortened) = shortened_words(&left, &right) {
        return Some((Likeness::Abbreviation, shortened));
    }
    let (all_left, all_right) = (left.iter().all(|word| has(&right, word)), right.iter().all(|word| has(&left, word)));
    (all_left || all_right).then_some((Likeness::Part, left.len().abs_diff(right.len())))
}

/// Returns how many words of a name another one has in short; `None` where it has other words.
fn shortened_words(written: &[String], candidate: &[String]) -> Option<usize> {
    let is_alone = candidate.len() == 1;
    let is_short = |(word, code): &(&String, &String)| word == code || is_code_of(code, word, is_alone);
    let are_all = written.len() == candidate.len() && written.iter().zip(candidate).all(|pair| is_short(&pair));
    are_all.then(|| written.iter().zip(candidate).filter(|(word, code)| word != code).count())
}

/// Whether a code is the beginning of a word, or what its consonants leave of it: `cust` and `qty`. Of two letters, as `nm`,
/// only beside other words.
fn is_code_of(code: &str, word: &str, is_alone: bool) -> bool {
    let shortest = if is_alone { SHORTEST_WORD } else { SHORTEST_WORD - 1 };
    let length = code.chars().count();
    if length < shortest || length >= word.chars().count() || code.chars().next() != word.chars().next() {
        return false;
    }
    let is_without_vowels = !code.chars().skip(1).any(|letter| "aeiou".contains(letter));
    let mut letters = word.chars();
    let is_within = code.chars().all(|letter| letters.any(|next| next == letter));
    (length >= SHORTEST_WORD && word.starts_with(code)) || (is_without_vowels && is_within)
}

/// Whether each word of two names of several words is nearly the other's: `contestant_name` is not `contestant_number`.
fn are_near_by_word(left: &[String], right: &[String]) -> bool {
    if left.len() != right.len() || left.len() == 1 {
        return true;
    }
    left.iter().zip(right).all(|(left, right)| {
        let letters = left.chars().count();
        let allowed = if letters < SHORTEST_WORD { 0 } else { (letters / LETTERS_PER_ERROR).max(1) };
        damerau_levenshtein(left, right) <= allowed
    })
}

/// Returns the words of a name in lower case and in the singular: what separators and capitals after small letters part.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut parted = String::with_capacity(name.len());
    let mut is_after_small = false;
    for letter in name.chars() {
        if is_after_small && letter.is_uppercase() {
            parted.push(' ');
        }
        is_after_small = letter.is_lowercase();
        parted.extend(letter.to_lowercase());
    }
    parted.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(singular).collect()
}

/// Returns the word without the ending of its plural.
pub(super) fn singular(word: &str) -> String {
    let ending = |ending: &str| word.strip_suffix(ending).filter(|stem| stem.chars().count() >= 2);
    if let Some(stem) = ending("ies") {
        return format!("{stem}y");
    }
    for plural in ["sses", "shes", "ches", "xes"] {
        if let Some(stem) = ending(plural) {
            return format!("{stem}{}", &plural[..plural.len() - 2]);
        }
    }
    match ending("s") {
        Some(stem) if !stem.ends_with('s') && !stem.ends_with('u') => stem.to_owned(),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_its_nearest() {
        for (written, candidates, expected) in [
            ("car_data", &["cars_data", "car_names", "car_makers"][..], Some("cars_data")),
            ("Singers", &["singer", "concert"], Some("singer")),
            ("carier", &["carrier", "origin"], Some("carrier")),
            ("stadium_id", &["Stadium_ID", "Name"], Some("Stadium_ID")),
            ("stadiumid", &["Stadium_ID", "Name"], Some("Stadium_ID")),
            ("categories", &["category", "product"], Some("category")),
            ("player", &["poker_player", "people"], Some("poker_player")),
            ("country", &["CountryCode", "Language", "IsOfficial"], Some("CountryCode")),
            ("is_official", &["CountryCode", "IsOfficial"], Some("IsOfficial")),
            ("code", &["CountryCode", "DistrictCode"], None),
            ("contestant_name", &["contestant_number", "state"], None),
            ("student_nmae", &["student_name", "student_id"], Some("student_name")),
            ("votes", &["vote_id", "phone_number"], None),
            // As near as one another.
            ("name", &["first_name", "last_name"], None),
            ("t1", &["t2"], None),
            ("year_2019", &["year_2020"], None),
            ("id", &["ix"], None),
            ("salary", &["origin", "destination"], None),
            // Short forms.
            ("customer_name", &["cust_id", "cust_nm", "cty"], Some("cust_nm")),
            ("orders", &["ord", "ord_ln", "itm"], Some("ord")),
            ("order_lines", &["ord", "ord_ln", "itm"], Some("ord_ln")),
            ("quantity", &["qty", "unt_prc"], Some("qty")),
            ("vessel", &["vsl", "cntr", "port_call"], Some("vsl")),
            ("state", &["st", "plan_cd"], None),
            ("quantity", &["qty", "qnt"], None),
        ] {
            let found = nearest(written, candidates.iter().copied()).map(|(name, _)| name);
            assert_eq!(found, expected, "{written}");
        }
    }

    #[test]
    fn plurals_lose_their_ending() {
        for (plural, expected) in
            [("cities", "city"), ("classes", "class"), ("boxes", "box"), ("bus", "bus"), ("class", "class")]
        {
            assert_eq!(singular(plural), expected);
        }
    }
}
