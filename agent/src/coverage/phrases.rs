//! What a question asks for: the words after `how many`, `which`, `what is the`, `list` and the like, up to what ends
//! them. No grammar is read: a phrase that could be read in two ways is taken to be explained when any word of it is.

use super::lexicon::{
    is_action, is_empty_word, is_function_word, is_generic, is_past_action, is_superlative, is_third_person,
};
use super::vocabulary::Vocabulary;
use super::words::{SplitWord, action_stem, plain_form};

/// How a phrase was asked for, which says what of it must be explained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhraseForm {
    /// `what is the share price of`: its last word is what is asked for.
    Thing,
    /// `which flight attendants`: the words up to an action.
    Counted,
    /// `what did a ticket cost`: who or what does something.
    Subject,
    /// `patients have health insurance`: what somebody has.
    Object,
    /// `who designed`: an action, where the data names people.
    Actor,
    /// `how old`, and `how much did it cost`: a measure that some name must have, whatever goes with any data.
    Measure,
}

/// The words that a question asks for, by their places: neither generic, nor names, nor numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AskedPhrase {
    pub(super) words: Vec<usize>,
    pub(super) form: PhraseForm,
}

const DETERMINERS: &[&str] = &[
    "the", "a", "an", "all", "each", "every", "any", "its", "their", "his", "her", "our", "these", "those", "this",
    "that", "some", "of", "both", "other", "most", "more", "least", "fewest",
];
const AUXILIARIES: &[&str] =
    &["is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would", "should"];
const REQUESTS: &[&str] = &["list", "show", "give", "find", "tell", "display", "return", "count", "name", "get"];
/// Adjectives after `how` that are a property of their own, each with names for it.
const PROPERTIES: &[(&str, &str)] = &[
    ("old", "age birth birthday born dob birthdate founded built year created"),
    ("tall", "height"),
    ("heavy", "weight mass kg pound gram ton tonne lb"),
    ("expensive", "price cost fee fare charge amount rate value rent"),
    ("far", "distance mile km kilometer meter lat latitude longitude location"),
    ("deep", "depth"),
    ("wide", "width"),
    ("fast", "speed velocity pace time mph kmh"),
];
/// Actions behind `how much`, and behind `when` and `where`, that are a measure, each with names for it.
const MEASURES: &[(&str, &str)] = &[
    ("cost", "price cost fee fare charge amount payment rate expense total paid"),
    ("earn", "salary wage pay income earning earned revenue sale sell amount profit total turnover money"),
    ("pay", "pay payment paid amount price cost fee fare total salary charge due balance"),
    ("spend", "spend spent amount price cost total payment paid purchase expense budget money"),
    ("weigh", "weight mass kg pound gram ton lb"),
    ("owe", "due balance owed outstanding debt amount payable"),
    ("born", "birth birthday born dob birthdate birthplace age"),
];
/// Words that make the one before them a measure which is computed: `conversion rate`.
const COMPUTED: &[&str] = &["rate", "rates", "ratio", "ratios", "percentage", "percentages", "toll", "tolls"];
/// Words that say nothing without the participle before them: `the insured value`.
const AMOUNTS: &[&str] = &["value", "values", "amount", "amounts", "time", "times", "date", "dates"];
/// Words after which a phrase of generic words goes on: `the number of`, `name and salary`.
const CONTINUES: &[&str] = &["of", "and", "or", "for"];
/// How often it goes on.
const MAX_CONTINUED: usize = 3;

/// Returns what a question asks for, in each of its sentences.
pub(super) fn asked_phrases(words: &[SplitWord]) -> Vec<AskedPhrase> {
    let mut starts: Vec<usize> = (0..words.len()).filter(|at| words[*at].begins_sentence).collect();
    starts.push(words.len());
    let sentences = starts.windows(2).map(|bounds| (bounds[0], bounds[1]));
    let mut phrases = Vec::new();
    for (start, end) in sentences {
        let sentence = Sentence { words, end };
        phrases.extend(sentence.asked(start));
        phrases.extend(sentence.objects(start));
    }
    phrases.retain(|phrase| !phrase.words.is_empty());
    phrases
}

struct Sentence<'w> {
    words: &'w [SplitWord],
    end: usize,
}

impl Sentence<'_> {
    fn word(&self, at: usize) -> &str {
        if at < self.end { self.words[at].lower.as_str() } else { "" }
    }

    fn asked(&self, start: usize) -> Vec<AskedPhrase> {
        let begins =
            |at: &usize| ["how", "which", "what", "whose", "who", "when", "where", "why"].contains(&self.word(*at));
        let question = (start..self.end).find(begins);
        let request = (start..self.end.min(start + 3)).find(|at| REQUESTS.contains(&self.word(*at)));
        match (question, request) {
            // `Show me how many`, `Find out which`; `List the airlines which fly` asks for the airlines.
            (Some(question), Some(request)) if question > request + 2 => self.of_request(request + 1),
            (Some(question), _) => self.of_question(question),
            (None, Some(request)) => self.of_request(request + 1),
            (None, None) => Vec::new(),
        }
    }

    /// Returns what somebody has, by the words behind `have`.
    fn objects(&self, start: usize) -> Vec<AskedPhrase> {
        let is_had = |at: &usize| {
            let next = self.word(at + 1);
            ["have", "has", "had"].contains(&self.word(*at))
                && !is_past_action(next)
                && !["been", "to", "not", "no"].contains(&next)
        };
        (start + 2..self.end).filter(is_had).map(|at| self.phrase(at + 1, PhraseForm::Object)).collect()
    }

    fn of_request(&self, mut at: usize) -> Vec<AskedPhrase> {
        while ["me", "us", "out", "up", "down"].contains(&self.word(at)) {
            at += 1;
        }
        vec![self.phrase(at, PhraseForm::Thing)]
    }

    fn of_question(&self, at: usize) -> Vec<AskedPhrase> {
        let next = at + 1;
        let is_auxiliary = |at: usize| AUXILIARIES.contains(&self.word(at));
        match (self.word(at), self.word(next)) {
            ("how", "much") if ["is", "are", "was", "were"].contains(&self.word(next + 1)) => {
                // `How much were they paid`.
                let mut asked = vec![self.phrase(next + 2, PhraseForm::Thing)];
                asked.extend(self.measure(next + 2));
                asked
            }
            ("how", much @ ("many" | "much")) if is_auxiliary(next + 1) => {
                let mut asked = vec![self.phrase(next + 2, PhraseForm::Subject)];
                asked.extend(self.measure(next + 2).filter(|_| much == "much"));
                asked
            }
            ("how", "many" | "much") => vec![self.phrase(next + 1, PhraseForm::Counted)],
            ("how", property) if names_of(PROPERTIES, property).is_some() => {
                let asked = AskedPhrase { words: vec![next], form: PhraseForm::Measure };
                match is_auxiliary(next + 1) {
                    true => vec![asked, self.phrase(next + 2, PhraseForm::Subject)],
                    false => vec![asked],
                }
            }
            ("what", "is" | "are" | "was" | "were") => vec![self.phrase(next + 1, PhraseForm::Thing)],
            ("what" | "when" | "where", auxiliary) if is_auxiliary(next) => {
                let mut asked = vec![self.phrase(next + 1, PhraseForm::Subject)];
                let is_done = self.word(at) == "what" && ["do", "does", "did"].contains(&auxiliary);
                let is_birth = |measure: &AskedPhrase| measure.words.iter().any(|at| self.word(*at) == "born");
                asked.extend(self.measure(next + 1).filter(|measure| is_done || is_birth(measure)));
                asked
            }
            ("who", "is" | "are" | "was" | "were") => {
                // `Who is hosting`, `who was born`.
                let first = self.word(next + 1);
                match first.ends_with("ing") || is_past_action(first) {
                    true => Vec::new(),
                    false => vec![self.phrase(next + 1, PhraseForm::Thing)],
                }
            }
            ("who", action) if is_action(action) || self.is_verb(next) => {
                vec![AskedPhrase { words: vec![next], form: PhraseForm::Actor }]
            }
            ("what", action) if is_third_person(action) && self.has_no_thing_behind(next) => Vec::new(),
            ("which" | "what" | "whose", word) if !is_function_word(word) || DETERMINERS.contains(&word) => {
                vec![self.phrase(next, PhraseForm::Counted)]
            }
            ("which", "is" | "are" | "was" | "were") => vec![self.phrase(next + 1, PhraseForm::Thing)],
            _ => Vec::new(),
        }
    }

    /// Whether the word behind `who` is an action, whatever it is: `who maintains`.
    fn is_verb(&self, at: usize) -> bool {
        let word = self.word(at);
        let has_ending = word.len() > 3 && word.ends_with('s') && !word.ends_with("ss");
        has_ending && !is_function_word(word) && !is_empty_word(word)
    }

    /// Whether what follows a word shows that it is an action and no thing: `what grows on`, `what sells best`, and not
    /// `what orders are`.
    fn has_no_thing_behind(&self, at: usize) -> bool {
        let next = self.word(at + 1);
        let is_auxiliary = AUXILIARIES.contains(&next) || is_past_action(next);
        let is_degree = ["best", "bad", "badly", "worst", "well", "most"].contains(&next);
        !is_auxiliary && (next.is_empty() || is_degree || is_function_word(next) || is_superlative(next))
    }

    /// Returns the action that is a measure, from a place on: `what did a ticket cost`.
    fn measure(&self, from: usize) -> Option<AskedPhrase> {
        let at = (from..self.end).find(|at| names_of_measure(self.word(*at)).is_some())?;
        Some(AskedPhrase { words: vec![at], form: PhraseForm::Measure })
    }

    /// Reads a phrase from a place on. One of generic words only goes on after `of` and the like.
    fn phrase(&self, mut at: usize, form: PhraseForm) -> AskedPhrase {
        let mut phrase = AskedPhrase { words: Vec::new(), form };
        for _ in 0..=MAX_CONTINUED {
            while DETERMINERS.contains(&self.word(at)) {
                at += 1;
            }
            let mut start = at;
            while at < self.end && (self.goes_on(start, at) || (phrase.words.is_empty() && self.is_modifier(start, at)))
            {
                let word = &self.words[at];
                // `Guided tours` are tours.
                if at == start && is_past_action(&word.lower) {
                    phrase.words.extend(Some(at).filter(|at| AMOUNTS.contains(&self.word(at + 1))));
                    at += 1;
                    start = at;
                    continue;
                }
                let is_number = word.lower.starts_with(|c: char| c.is_ascii_digit());
                // `The priciest car` is a car, and `actually` nothing.
                let is_thing = !is_generic(&word.lower) && !is_superlative(&word.lower) && !is_empty_word(&word.lower);
                if is_thing && !word.is_name && !is_number {
                    phrase.words.push(at);
                }
                at += 1;
            }
            let is_continued =
                CONTINUES.contains(&self.word(at)) || (at < self.end && at > start && self.has_comma(at));
            if !phrase.words.is_empty() || !is_continued {
                break;
            }
            if CONTINUES.contains(&self.word(at)) {
                at += 1;
            }
        }
        phrase
    }

    /// Whether the word at a place is a form of an action that says which of the things behind it: `the average waiting time`,
    /// `guided tours`.
    fn is_modifier(&self, start: usize, at: usize) -> bool {
        let word = self.word(at);
        let is_form = (at == start && is_past_action(word)) || (word.len() > 5 && word.ends_with("ing"));
        if !is_form || (at > start && self.has_comma(at)) || at + 1 >= self.end || self.has_comma(at + 1) {
            return false;
        }
        let next = &self.words[at + 1];
        let is_thing = !is_function_word(&next.lower) && !next.is_name && !next.lower.ends_with("ing");
        is_thing && !is_past_action(&next.lower) && !next.lower.starts_with(|c: char| c.is_ascii_digit())
    }

    fn has_comma(&self, at: usize) -> bool {
        self.words[at].begins_clause
    }

    /// Whether the word at a place belongs to the phrase that begins at `start`.
    fn goes_on(&self, start: usize, at: usize) -> bool {
        let word = self.word(at);
        let is_end = is_function_word(word)
            || (at > start && self.has_comma(at))
            || (at == start && is_past_action(word))
            || (at > start && !is_generic(word) && is_action(word));
        !is_end
    }
}

/// Returns the names that a list has for a word.
fn names_of(list: &'static [(&'static str, &'static str)], word: &str) -> Option<&'static str> {
    list.iter().find(|(known, _)| *known == word).map(|(_, names)| *names)
}

/// Returns the names for a measure that an action is, in any form of it: `cost`, `paid`, `earned`.
fn names_of_measure(word: &str) -> Option<&'static str> {
    let names = |form: &str| names_of(MEASURES, form);
    names(word).or_else(|| names(&plain_form(word))).or_else(|| names(&action_stem(word)?))
}

/// Returns the places of a phrase whose words nothing explains, where that means that what is asked for is not there.
pub(super) fn missing(
    phrase: &AskedPhrase,
    words: &[SplitWord],
    explained: &[bool],
    vocabulary: &Vocabulary,
) -> Vec<usize> {
    let things = without_verb(phrase, words, explained);
    let unexplained: Vec<usize> = things.iter().copied().filter(|at| !explained[*at]).collect();
    let Some(last) = things.last() else { return Vec::new() };
    if is_before_computed(*last, words) {
        return Vec::new();
    }
    let is_none = unexplained.len() == things.len();
    let is_plural = |at: usize| words[at].lower.ends_with('s');
    // `The gift shop's takings`: of something that is not there.
    let is_of_unknown = |at: &usize| {
        at != last && words[*at].is_owner && things.iter().all(|thing| thing > at || unexplained.contains(thing))
    };
    let is_missing = match phrase.form {
        PhraseForm::Thing => is_none || unexplained.contains(last) || things.iter().any(is_of_unknown),
        PhraseForm::Counted => {
            let before = things.len().checked_sub(2).map(|index| things[index]);
            let is_compound = before.is_some_and(|before| !is_plural(before) && before + 1 == *last);
            // `Which record label released`.
            let is_one = is_behind_which(phrase, words)
                && words.get(last + 1).is_some_and(|next| {
                    let next = next.lower.as_str();
                    AUXILIARIES.contains(&next) || (is_action(next) && !is_generic(next))
                });
            is_none || (unexplained.contains(last) && is_compound && (is_plural(*last) || is_one))
        }
        PhraseForm::Subject | PhraseForm::Object => is_none,
        PhraseForm::Actor => is_none && !vocabulary.names_people(),
        PhraseForm::Measure => {
            let word = words[*last].lower.as_str();
            let names = names_of(PROPERTIES, word).or_else(|| names_of_measure(word)).unwrap_or_default();
            // Not by synonyms: a price is no earning.
            let is_there = vocabulary.has_any(names) || vocabulary.has_any(word) || vocabulary.has_any_in_short(names);
            return if is_there { Vec::new() } else { things.to_vec() };
        }
    };
    if is_missing { unexplained } else { Vec::new() }
}

/// Whether a phrase stands before `rate` and the like.
pub(super) fn is_computed(phrase: &AskedPhrase, words: &[SplitWord]) -> bool {
    phrase.words.last().is_some_and(|last| is_before_computed(*last, words))
}

fn is_before_computed(last: usize, words: &[SplitWord]) -> bool {
    words.get(last + 1).is_some_and(|next| COMPUTED.contains(&next.lower.as_str()))
}

/// Whether a phrase follows `which` or `what`.
fn is_behind_which(phrase: &AskedPhrase, words: &[SplitWord]) -> bool {
    let before = phrase.words.first().and_then(|first| words.get(first.checked_sub(1)?));
    before.is_some_and(|word| ["which", "what", "whose"].contains(&word.lower.as_str()))
}

/// Returns the words of a phrase without the verb behind its last thing: `which browser dominates the market`.
fn without_verb<'p>(phrase: &'p AskedPhrase, words: &[SplitWord], explained: &[bool]) -> &'p [usize] {
    const JOINS: [&str; 7] = ["and", "or", "who", "that", "which", "of", "with"];
    let all = phrase.words.as_slice();
    let [.., before, last] = all else { return all };
    let next = words.get(last + 1).map(|word| word.lower.as_str()).unwrap_or_default();
    let ends = is_function_word(next) && !AUXILIARIES.contains(&next) && !JOINS.contains(&next);
    let is_verb = phrase.form == PhraseForm::Counted
        && !explained[*last]
        && words[*last].lower.ends_with('s')
        && !words[*before].lower.ends_with('s')
        && ends;
    if is_verb { &all[..all.len() - 1] } else { all }
}
