//! The words of a question, and the stem by which words are compared.

use super::lexicon::{is_foreign, is_function_word, is_generic};

/// One word of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SplitWord {
    /// As it was written, without `'s`.
    pub(super) text: String,
    /// In lower case.
    pub(super) lower: String,
    /// Whether it begins with a capital where a sentence would not.
    pub(super) is_name: bool,
    /// Whether it owns what follows: `the shop's`.
    pub(super) is_owner: bool,
    /// Whether punctuation, or a text in quotes, stands before it.
    pub(super) begins_clause: bool,
    /// Whether a sentence begins with it.
    pub(super) begins_sentence: bool,
}

/// A question in words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SplitQuestion {
    pub(super) words: Vec<SplitWord>,
    /// Texts in quotes.
    pub(super) quoted: Vec<String>,
}

/// The share of words with capitals from which on they say nothing: a title.
const TITLE_SHARE: f64 = 0.6;
/// At least one word of so many is one of English without a meaning of its own.
const LEAST_ENGLISH: usize = 5;
/// Words before a colon that only introduce the question.
const INTRODUCTION_WORDS: usize = 4;

/// Splits a question. `None` where it is not English, as far as its small words show.
pub(super) fn split(question: &str) -> Option<SplitQuestion> {
    let question = without_introduction(question);
    let mut split = SplitQuestion::default();
    let (mut clause, mut sentence) = (true, true);
    let mut rest = question;
    while let Some(first) = rest.chars().next() {
        if let Some(text) = quoted(question, rest) {
            split.quoted.push(text.to_owned());
            rest = &rest[text.len() + 2..];
            clause = true;
            continue;
        }
        if !first.is_alphanumeric() {
            // The initial of `R. Whitfield` ends nothing.
            let is_initial = first == '.'
                && split.words.last().is_some_and(|word| word.text.len() == 1 && word.text != "I")
                && question[..question.len() - rest.len()].ends_with(char::is_uppercase);
            clause |= !is_initial && !first.is_whitespace() && !['-', '\'', '\u{2019}', '/', '_', '&'].contains(&first);
            sentence |= !is_initial && ['.', '?', '!', ';', '\n'].contains(&first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '\'' && c != '\u{2019}').unwrap_or(rest.len());
        let whole = &rest[..end];
        let written = whole.trim_end_matches(['\'', '\u{2019}']);
        rest = &rest[end..];
        let text = ["'s", "\u{2019}s"].iter().find_map(|ending| written.strip_suffix(ending)).unwrap_or(written);
        split.words.push(SplitWord {
            text: text.to_owned(),
            lower: text.to_lowercase().replace(['\'', '\u{2019}'], ""),
            is_name: !sentence && first.is_uppercase(),
            is_owner: text.len() < whole.len(),
            begins_clause: clause,
            begins_sentence: sentence,
        });
        (clause, sentence) = (false, false);
    }
    let words = &mut split.words;
    let capitals = words.iter().filter(|word| word.is_name).count();
    if capitals as f64 > TITLE_SHARE * words.len() as f64 && words.len() > 2 {
        words.iter_mut().for_each(|word| word.is_name = false);
    }
    let english = words.iter().filter(|word| is_function_word(&word.lower) || is_generic(&word.lower)).count();
    let is_accented =
        |word: &&SplitWord| !word.is_name && word.lower.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    let foreign = words.iter().filter(|word| is_foreign(&word.lower) || is_accented(word)).count();
    (english > 0 && english * LEAST_ENGLISH >= words.len() && foreign < english).then_some(split)
}

/// Returns the text between the quotes with which `rest` begins.
fn quoted<'q>(question: &'q str, rest: &'q str) -> Option<&'q str> {
    let quote = rest.chars().next().filter(|first| ['"', '\'', '`'].contains(first))?;
    let before = question[..question.len() - rest.len()].chars().next_back();
    if before.is_some_and(char::is_alphanumeric) {
        return None;
    }
    let inner = &rest[1..];
    let closes = |(at, _): &(usize, &str)| {
        let after = inner[at + 1..].chars().next();
        !after.is_some_and(char::is_alphanumeric)
    };
    let (end, _) = inner.match_indices(quote).find(closes)?;
    (end > 0).then(|| &inner[..end])
}

/// Returns the question without what introduces it: `In KQL: how many`.
fn without_introduction(question: &str) -> &str {
    match question.split_once(": ") {
        Some((before, after)) if before.split_whitespace().count() <= INTRODUCTION_WORDS => after,
        _ => question,
    }
}

/// Forms that no rule leads back to their word.
const IRREGULAR: &[(&str, &str)] = &[
    ("people", "person"),
    ("children", "child"),
    ("men", "man"),
    ("women", "woman"),
    ("feet", "foot"),
    ("mice", "mouse"),
    ("wives", "wife"),
    ("lives", "live"),
    ("flew", "fly"),
    ("flown", "fly"),
    ("wrote", "write"),
    ("written", "write"),
    ("sold", "sell"),
    ("bought", "buy"),
    ("paid", "pay"),
    ("spent", "spend"),
    ("built", "build"),
    ("won", "win"),
    ("lost", "lose"),
    ("taught", "teach"),
    ("left", "leave"),
    ("made", "make"),
    ("series", "series"),
    ("news", "news"),
    ("status", "status"),
    ("bus", "bus"),
    ("gas", "gas"),
    ("taxis", "taxi"),
    ("movies", "movie"),
    ("cookies", "cookie"),
    ("calories", "calorie"),
    ("zombies", "zombie"),
    ("brownies", "brownie"),
    ("ties", "tie"),
    ("pies", "pie"),
    ("geese", "goose"),
    ("teeth", "tooth"),
    ("knives", "knife"),
    ("shelves", "shelf"),
    ("halves", "half"),
    ("leaves", "leave"),
    ("thieves", "thief"),
    ("calves", "calf"),
    ("wolves", "wolf"),
    ("analyses", "analysis"),
    ("indices", "index"),
    ("criteria", "criterion"),
    ("oxen", "ox"),
    ("drove", "drive"),
    ("driven", "drive"),
    ("ate", "eat"),
    ("saw", "see"),
    ("seen", "see"),
    ("grew", "grow"),
    ("grown", "grow"),
    ("caught", "catch"),
    ("rode", "ride"),
    ("wore", "wear"),
    ("sang", "sing"),
    ("led", "lead"),
    ("met", "meet"),
    ("held", "hold"),
    ("aged", "age"),
    ("goes", "go"),
];

/// The shortest word that loses an ending.
const MIN_STEM_CHARS: usize = 3;

/// Returns the stem of a word: singular, without the endings of actions and of those who act.
pub(super) fn stem(word: &str) -> String {
    let lower = word.to_lowercase();
    if let Some((_, known)) = IRREGULAR.iter().find(|(form, _)| *form == lower) {
        return without_last_e((*known).to_owned());
    }
    let mut stem = without_plural(&lower);
    for ending in ["ing", "ed"] {
        if let Some(shorter) = stem.strip_suffix(ending).filter(|rest| rest.chars().count() > MIN_STEM_CHARS) {
            stem = undoubled(shorter).to_owned();
            break;
        }
    }
    for ending in ["er", "or"] {
        if let Some(shorter) = stem.strip_suffix(ending).filter(|rest| rest.chars().count() > MIN_STEM_CHARS) {
            stem = undoubled(shorter).to_owned();
            break;
        }
    }
    without_double_l(without_last_e(stem))
}

/// Returns a word in the singular, and an irregular form as the word that it is of.
pub(super) fn plain_form(word: &str) -> String {
    let known = IRREGULAR.iter().find(|(form, _)| *form == word).map_or(word, |(_, plain)| *plain);
    without_plural(known)
}

/// Returns an action without its ending, as `purchas`; `None` of what has none.
pub(super) fn action_stem(word: &str) -> Option<String> {
    let plain = plain_form(word);
    let shorter = ["ing", "ed"].iter().find_map(|ending| plain.strip_suffix(ending))?;
    let stem = || without_double_l(without_last_e(undoubled(shorter).to_owned()));
    (shorter.chars().count() >= MIN_STEM_CHARS).then(stem)
}

/// The longest word that keeps a double l: `sell` and `spill`, and not the `cancell` of `cancelled`.
const MAX_DOUBLE_L: usize = 5;

/// Returns a stem as `cancel` and `instal`, which `cancelled` and `install` have in common with their other forms.
pub(super) fn without_double_l(stem: String) -> String {
    match stem.strip_suffix('l').filter(|shorter| shorter.ends_with('l') && stem.len() > MAX_DOUBLE_L) {
        Some(shorter) => shorter.to_owned(),
        None => stem,
    }
}

/// Returns a stem as `movi`, which `movie` and `movies` have in common.
pub(super) fn without_last_e(stem: String) -> String {
    match stem.strip_suffix('e').filter(|rest| rest.chars().count() >= MIN_STEM_CHARS) {
        Some(shorter) => shorter.to_owned(),
        None => stem,
    }
}

/// Returns a word in the singular.
pub(super) fn without_plural(word: &str) -> String {
    let ending = |ending: &str| word.strip_suffix(ending).filter(|stem| stem.chars().count() >= MIN_STEM_CHARS - 1);
    if let Some(stem) = ending("ies").filter(|stem| stem.chars().count() >= MIN_STEM_CHARS - 1) {
        return format!("{stem}y");
    }
    for plural in ["sses", "shes", "ches", "xes", "zes"] {
        if let Some(stem) = ending(plural) {
            return format!("{stem}{}", &plural[..plural.len() - 2]);
        }
    }
    match ending("s") {
        Some(stem) if !stem.ends_with(['s', 'u', 'i']) => stem.to_owned(),
        _ => word.to_owned(),
    }
}

/// Returns a stem without the doubled letter that its ending asked for.
fn undoubled(stem: &str) -> &str {
    let mut last = stem.chars().rev();
    match (last.next(), last.next()) {
        (Some(one), Some(two)) if one == two && !"aeiouls".contains(one) => &stem[..stem.len() - one.len_utf8()],
        _ => stem,
    }
}

/// Returns a lowercase letter without its accent, and a mark as it stands on keyboards.
pub(crate) fn unaccented(letter: char) -> char {
    match letter {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'ē' | 'ę' | 'ě' => 'e',
        'ì'..='ï' | 'ī' | 'ı' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'š' | 'ś' | 'ş' => 's',
        'ž' | 'ź' | 'ż' => 'z',
        'ł' => 'l',
        'ř' => 'r',
        'ť' => 't',
        'ď' | 'đ' => 'd',
        'ğ' => 'g',
        '’' | '‘' => '\'',
        '–' | '—' => '-',
        other => other,
    }
}
