//! What the data speaks of: the words of names, comments and values, and how a word of a question finds one of them. It
//! is generous: a word counts as explained by its stem, an abbreviation, a part of a longer name, another word for the
//! same thing, or with a typing error.

use std::collections::HashSet;

use strsim::osa_distance;

use super::lexicon::{is_english, is_function_word, is_generic, is_whole_word};
use super::synonyms::{groups_of, synonyms, things_of_kind};
use super::words::{SplitWord, stem, without_plural};

/// The shortest abbreviation, by its first letters or without vowels.
const MIN_ABBREVIATION: usize = 3;
/// The shortest part of a longer name.
const MIN_PART: usize = 4;
/// The shortest beginning of a compound before a word of the data: `wildfire` of `fire`.
const MIN_BEFORE_PART: usize = 3;
/// First letters that words of one family share, such as `arrival` and `arrived`; at least half of each.
const MIN_FAMILY: usize = 5;
/// The shortest word with a typing error, and from which length on it may have two.
const MISSPELT: (usize, usize) = (5, 9);
/// The most characters of a code that stands for a name, such as that of a state.
const MAX_CODE: usize = 3;
/// Beginnings that deny a word: `inactive`.
const DENIALS: [&str; 5] = ["un", "in", "im", "dis", "non"];
/// Two letters that end names of anything.
const OF_ANY_NAME: [&str; 5] = ["nm", "dt", "cd", "ts", "sk"];
/// Consecutive words whose initials are tried.
const MAX_INITIALS: usize = 4;

/// Words that stand for people.
const PEOPLE: &str = "\
    person people user customer client employee author owner player member student teacher manager artist singer driver \
    staff patient passenger candidate voter contestant director writer doctor fname lname firstname lastname first last \
    surname username email email_address father mother friend musician performer actor worker nurse captain pilot \
    volunteer resident guest subscriber taster judge agent rider lawyer athlete coach officer engineer developer tenant \
    borrower farmer crew jockey referee";

/// See the module.
#[derive(Debug, Clone, Default)]
pub(crate) struct Vocabulary {
    /// Lowercase words.
    words: HashSet<String>,
    stems: HashSet<String>,
    /// The groups of words for the same thing that some words of names and comments are of.
    groups: HashSet<usize>,
    /// The same of the words of values.
    value_groups: HashSet<usize>,
    /// Whole names and values, without what separates their words.
    joined: HashSet<String>,
    /// Codes with which a query has found something.
    codes: HashSet<String>,
}

impl Vocabulary {
    /// Adds the name of a table or a column.
    pub(crate) fn add_name(&mut self, name: &str) {
        let words = name_words(name);
        self.joined.insert(words.concat());
        for word in words {
            self.add_word(&word);
        }
    }

    /// Adds the words of a comment, or of what people taught.
    pub(crate) fn add_text(&mut self, text: &str) {
        words_of_text(text).for_each(|word| self.add_word(&word));
    }

    /// Adds the words of a value.
    pub(crate) fn add_value(&mut self, value: &str) {
        for word in words_of_text(value) {
            self.stems.insert(stem(&word));
            self.value_groups.extend(groups_of(&word));
            self.words.insert(word);
        }
    }

    /// Adds a text of a query that has found something: the model may have spelled a name as a code.
    pub(crate) fn add_literal(&mut self, literal: &str) {
        self.add_value(literal);
        let is_code = literal.chars().all(char::is_alphanumeric) && literal.chars().count() <= MAX_CODE;
        if is_code && !literal.is_empty() {
            self.codes.insert(literal.to_lowercase());
        }
    }

    /// Returns the words of at least so many letters that are no abbreviations without vowels.
    pub(super) fn words_of(&self, letters: usize) -> impl Iterator<Item = &str> {
        let words = self.words.iter().map(String::as_str);
        words.filter(move |word| word.chars().count() >= letters && !is_without_vowels(word))
    }

    /// Adds what another one has.
    pub(crate) fn add_all(&mut self, other: &Vocabulary) {
        self.words.extend(other.words.iter().cloned());
        self.stems.extend(other.stems.iter().cloned());
        self.groups.extend(other.groups.iter().copied());
        self.value_groups.extend(other.value_groups.iter().copied());
        self.joined.extend(other.joined.iter().cloned());
        self.codes.extend(other.codes.iter().cloned());
    }

    /// Returns the same without other words for what the values are called by: a value is a name of a thing, and no word for
    /// a figure.
    pub(super) fn without_synonyms_of_values(&self) -> Self {
        Self { value_groups: HashSet::new(), ..self.clone() }
    }

    fn add_word(&mut self, word: &str) {
        self.stems.insert(stem(word));
        self.groups.extend(groups_of(word));
        self.words.insert(word.to_owned());
    }

    /// Returns for each word of a question whether it needs no other explanation.
    pub(super) fn explained(&self, words: &[SplitWord]) -> Vec<bool> {
        let mut explained: Vec<bool> = words.iter().map(|word| self.explains(word)).collect();
        for start in 0..words.len() {
            for count in 2..=MAX_INITIALS.min(words.len() - start) {
                let run = &words[start..start + count];
                let joined: String = run.iter().map(|word| word.lower.as_str()).collect();
                let initials: String = run.iter().filter_map(|word| word.lower.chars().next()).collect();
                let are_names = run.iter().all(|word| word.is_name);
                let is_known = self.has_joined(&joined)
                    || (count >= MIN_ABBREVIATION && self.words.contains(&initials))
                    || (are_names && self.codes.contains(&initials));
                if is_known {
                    explained[start..start + count].fill(true);
                }
            }
        }
        explained
    }

    fn has_joined(&self, joined: &str) -> bool {
        let joined_stem = stem(joined);
        self.joined.iter().any(|known| known == joined || stem(known) == joined_stem)
            || self.stems.contains(&joined_stem)
    }

    /// Whether a word is one of the data's, or needs none.
    fn explains(&self, word: &SplitWord) -> bool {
        let lower = word.lower.as_str();
        let is_free = lower.chars().count() < 2 || lower.chars().any(|c| c.is_ascii_digit());
        if is_free || is_function_word(lower) || is_generic(lower) {
            return true;
        }
        let code = |code: &String| is_short_for(code, lower);
        self.names(lower) || (word.is_name && self.codes.iter().any(code))
    }

    /// Whether the data has people: a question who did something can be answered.
    pub(super) fn names_people(&self) -> bool {
        self.has_any(PEOPLE) || PEOPLE.split_whitespace().any(|person| self.names(person))
    }

    /// Whether the data has one of some words, in any form of it.
    pub(crate) fn has_any(&self, words: &str) -> bool {
        words.split_whitespace().any(|word| self.words.contains(word) || self.stems.contains(&stem(word)))
    }

    /// Whether a name of the data, that is no word itself, is one of some words in short.
    pub(super) fn has_any_in_short(&self, words: &str) -> bool {
        let is_one_in_short = |known: &String| {
            words.split_whitespace().any(|word| is_word_in_short(known, word) || is_in_short(known, word))
        };
        self.words.iter().any(|known| !is_english(known) && is_one_in_short(known))
    }

    /// Whether the data has one of some words, just as they are.
    pub(crate) fn has_word(&self, words: &str) -> bool {
        words.split_whitespace().any(|word| self.words.contains(word))
    }

    /// Whether something of the data is called by a lowercase word.
    pub(crate) fn names(&self, lower: &str) -> bool {
        let stem = stem(lower);
        if self.words.contains(lower) || self.stems.contains(&stem) {
            return true;
        }
        let is_in = |group: &usize| self.groups.contains(group) || self.value_groups.contains(group);
        if groups_of(lower).iter().any(is_in) || things_of_kind(&stem).iter().any(|thing| self.stems.contains(thing)) {
            return true;
        }
        // `Snowy` days have snow.
        if lower.chars().count() > MIN_PART && lower.strip_suffix('y').is_some_and(|noun| self.words.contains(noun)) {
            return true;
        }
        let length = lower.chars().count();
        let singular = without_plural(lower);
        // `Mgr` is a manager, and so the boss; `emp` is an employee, and so one of the staff. Three letters are in many a
        // long word.
        let others = synonyms(lower);
        let is_likely = |known: &str, other: &str| {
            (known.len() + 2..=2 * known.len() + 2).contains(&other.len())
                && known.chars().next_back() == other.chars().next_back()
        };
        let is_short_for_other = |known: &String| {
            let is_beginning = |other: &&str| other.len() >= known.len() + 2 && other.starts_with(known.as_str());
            let is_code = |other: &&str| is_likely(known, other) && is_short_for(known, other);
            known.len() >= MIN_ABBREVIATION
                && ((is_without_vowels(known) && others.iter().any(is_code))
                    || (!is_english(known) && others.iter().any(is_beginning)))
        };
        if !others.is_empty() && self.words.iter().any(is_short_for_other) {
            return true;
        }
        let is_any_in_short =
            |known: &String| is_in_short(known, &singular) || others.iter().any(|other| is_in_short(known, other));
        if self.words.iter().any(is_any_in_short) {
            return true;
        }
        self.words.iter().any(|known| {
            let known_length = known.chars().count();
            // `Snow` is no short form of `snowboard`.
            let is_beginning_of = lower.starts_with(known.as_str())
                && !is_whole_word(known)
                && (known_length <= MIN_ABBREVIATION || !is_english(known));
            let is_abbreviation = known_length >= MIN_ABBREVIATION
                && ((length >= known_length + 2
                    && (is_beginning_of || (is_without_vowels(known) && is_short_for(known, lower))))
                    || is_code_of(known, &singular));
            let is_end = known.ends_with(lower) || (singular.len() >= MIN_PART && known.ends_with(&singular));
            let is_beginning = stem.chars().count() >= MIN_PART && known.starts_with(&stem);
            let is_part = length >= MIN_PART && known_length > singular.chars().count() && (is_beginning || is_end);
            let before = singular.strip_suffix(without_plural(known).as_str()).unwrap_or_default();
            let is_before = before.chars().count() >= MIN_BEFORE_PART || DENIALS.contains(&before);
            let is_compound = known_length >= MIN_PART && is_before;
            let shared = known.chars().zip(lower.chars()).take_while(|(one, other)| one == other).count();
            let is_family = shared >= MIN_FAMILY && 2 * shared >= length.max(known_length);
            let allowed = if length >= MISSPELT.1 { 2 } else { 1 };
            let is_misspelt = length >= MISSPELT.0
                && known_length >= MISSPELT.0
                && length.abs_diff(known_length) <= allowed
                && osa_distance(lower, known) <= allowed;
            is_abbreviation || is_part || is_compound || is_family || is_misspelt
        })
    }
}

/// Returns the words of a text in lower case.
fn words_of_text(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Returns the lowercase words of a name: `DepDelay`, `dep_delay2`.
pub(super) fn name_words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut last: Option<char> = None;
    for letter in name.chars() {
        let begins = last.is_some_and(|last| {
            (letter.is_uppercase() && last.is_lowercase()) || (letter.is_numeric() != last.is_numeric())
        });
        if (!letter.is_alphanumeric() || begins) && !word.is_empty() {
            words.push(std::mem::take(&mut word).to_lowercase());
        }
        if letter.is_alphanumeric() {
            word.push(letter);
        }
        last = Some(letter);
    }
    if !word.is_empty() {
        words.push(word.to_lowercase());
    }
    words
}

/// Whether a word has no vowel but for its first letter: `dpt`, and `anml`.
fn is_without_vowels(word: &str) -> bool {
    !word.chars().skip(1).any(|letter| ['a', 'e', 'i', 'o', 'u'].contains(&letter))
}

/// Whether a name is a word without its vowels, from the first letter to the last: `itm` and `ownr`.
fn is_code_of(code: &str, word: &str) -> bool {
    word.len() > code.len()
        && is_without_vowels(code)
        && code.chars().next_back() == word.chars().next_back()
        && is_short_for(code, word)
        && !is_english(code)
}

/// Whether a code is a word in short, by its beginning or without its vowels: `dur` and `lvl`.
pub(super) fn is_word_in_short(code: &str, word: &str) -> bool {
    let is_beginning = word.len() >= code.len() + 2 && word.starts_with(code);
    code.len() >= MIN_ABBREVIATION && (is_beginning || is_code_of(code, word))
}

/// Whether a name is a longer word in short that keeps some of its vowels, `natl`, `resv` and `mnu`, its plural, `prts`, or
/// all that is left of a short word without vowels, `lv` and `yr`.
fn is_in_short(code: &str, word: &str) -> bool {
    let is_long_enough = code.len() >= MIN_ABBREVIATION;
    if let Some(singular) = code.strip_suffix('s').filter(|_| is_long_enough)
        && is_in_short(singular, word)
    {
        return true;
    }
    if word.len() <= code.len() || !is_short_for(code, word) || is_english(code) {
        return false;
    }
    let has_beginning =
        code.len() > MIN_ABBREVIATION && word.len() >= code.len() + 2 && code.chars().nth(1) == word.chars().nth(1);
    let is_two_consonants = code.len() == 2 && word.len() > MIN_ABBREVIATION && !OF_ANY_NAME.contains(&code);
    has_beginning || ((is_long_enough || is_two_consonants) && consonants(code).eq(consonants(word)))
}

/// Returns the letters of a word but for the vowels behind its first.
fn consonants(word: &str) -> impl Iterator<Item = char> {
    let is_kept = |(at, letter): &(usize, char)| *at == 0 || !['a', 'e', 'i', 'o', 'u'].contains(letter);
    word.chars().enumerate().filter(is_kept).map(|(_, letter)| letter)
}

/// Whether a code has the first letter of a word and others of it, in order.
fn is_short_for(code: &str, word: &str) -> bool {
    let mut letters = word.chars();
    code.chars().next() == word.chars().next() && code.chars().all(|letter| letters.any(|next| next == letter))
}
