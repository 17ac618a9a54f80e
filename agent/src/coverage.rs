//! Which words of a question nothing in the data speaks of. A model that is asked for what is not there counts
//! something else, and its query runs: the question itself has to be held against names, comments and values. No model
//! is asked.
//!
//! Only what a question asks for (`how many passengers`) and the names in it (`Tokyo`) can be missing; other words are
//! counted. Of questions in six other languages only the thing behind `wie viele` and the like is judged, by
//! [`foreign_gaps`].

mod languages;
mod lexicon;
mod phrases;
mod synonyms;
mod vocabulary;
mod words;

use querent_catalog::{ColumnInfo, TableInfo};

pub(crate) use lexicon::declines;
pub(crate) use vocabulary::Vocabulary;
pub(crate) use words::unaccented;

use lexicon::{
    is_action, is_empty_word, is_english, is_function_word, is_generic, is_light_verb, is_of_taste, is_opaque,
    is_superlative,
};
use vocabulary::name_words;
use words::{SplitWord, stem};

/// Words that stand between the capitals of one name.
const NAME_LINKS: &[&str] = &["of", "de", "la", "del", "van", "von", "du", "the"];

/// Whether a column's name may mean anything: a short code that is no word, such as `abv` or `ibu`.
pub(crate) fn is_opaque_name(column: &str) -> bool {
    let lower = column.to_lowercase();
    let mut parts = lower.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    parts.all(is_opaque)
}

/// What of a question nothing explains.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct QuestionGaps {
    /// What is asked for.
    pub(crate) asked: Vec<AskedGap>,
    /// Names, none of whose words is one of the data's.
    pub(crate) names: Vec<String>,
    /// Of what a rate or a ratio is asked for: a query may compute it of something else.
    pub(crate) computed: Vec<AskedGap>,
    /// Other words.
    pub(crate) others: u32,
    /// The words by which a judgement is asked for, which no data has.
    pub(crate) judgement: Option<String>,
}

/// Something that is asked for and not there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AskedGap {
    /// As the question says it.
    pub(crate) phrase: String,
    /// The words of it that nothing explains, in lower case.
    pub(crate) words: Vec<String>,
    /// What it is of the question.
    pub(crate) kind: GapKind,
}

/// What of a question is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapKind {
    /// A figure or another thing: `what is the margin`, `how far is it`.
    Thing,
    /// What is counted or listed, and who does something.
    Counted,
    /// What is said of rows: `overlook the ocean`, and what somebody has.
    Said,
}

impl QuestionGaps {
    /// Whether what is asked for, or a name, is not there.
    pub(crate) fn is_any(&self) -> bool {
        !self.asked.is_empty() || !self.names.is_empty() || self.judgement.is_some()
    }
}

impl Vocabulary {
    /// Adds the names and comments of a table and its columns.
    pub(crate) fn add_table(&mut self, table: &TableInfo) {
        self.add_name(&table.name.database);
        self.add_table_itself(table);
    }

    /// Adds the same without the name of the database.
    fn add_table_itself(&mut self, table: &TableInfo) {
        self.add_name(&table.name.table);
        self.add_text(table.comment.as_deref().unwrap_or_default());
        for column in &table.columns {
            self.add_name(&column.name);
            self.add_text(column.comment.as_deref().unwrap_or_default());
        }
    }
}

/// Holds a question against what the data speaks of.
pub(crate) fn gaps_of(question: &str, vocabulary: &Vocabulary) -> QuestionGaps {
    let Some(split) = words::split(question) else { return QuestionGaps::default() };
    let words = &split.words;
    let explained = vocabulary.explained(words);
    let explained_as_figures = vocabulary.without_synonyms_of_values().explained(words);
    let mut gaps = QuestionGaps::default();
    let mut taken = vec![false; words.len()];
    for phrase in phrases::asked_phrases(words) {
        let (Some(first), Some(last)) = (phrase.words.first(), phrase.words.last()) else { continue };
        // The `Old Town` is no age.
        let is_figure = phrase.form == phrases::PhraseForm::Thing
            && words[..*first].iter().any(|word| word.lower == "what" || word.lower == "much");
        let explained_so = if is_figure { &explained_as_figures } else { &explained };
        let missing = phrases::missing(&phrase, words, explained_so, vocabulary);
        if missing.is_empty() {
            gaps.computed.extend(computed_gap(&phrase, words, &explained, vocabulary));
            continue;
        }
        taken[*first..=*last].fill(true);
        let text: Vec<&str> = words[*first..=*last].iter().map(|word| word.text.as_str()).collect();
        let words = missing.iter().map(|at| words[*at].lower.clone()).collect();
        let kind = match phrase.form {
            phrases::PhraseForm::Thing | phrases::PhraseForm::Measure => GapKind::Thing,
            // `What's our margin` asks for one thing, as `what is our margin` does.
            phrases::PhraseForm::Counted if split.words[..*first].iter().any(|word| word.lower == "what") => {
                GapKind::Thing
            }
            phrases::PhraseForm::Object => GapKind::Said,
            _ => GapKind::Counted,
        };
        gaps.asked.push(AskedGap { phrase: text.join(" "), words, kind });
    }
    let names = names_in(words);
    if gaps.asked.is_empty()
        && let Some(unspoken) = unspoken_words(words, &explained, &names)
    {
        let text: Vec<&str> =
            words[unspoken[0]..=unspoken[unspoken.len() - 1]].iter().map(|word| word.text.as_str()).collect();
        unspoken.iter().for_each(|at| taken[*at] = true);
        let words = unspoken.iter().map(|at| words[*at].lower.clone()).collect();
        gaps.asked.push(AskedGap { phrase: text.join(" "), words, kind: GapKind::Said });
    }
    for (first, last) in names {
        taken[first..=last].fill(true);
        let is_known = (first..=last).any(|at| explained[at] && !NAME_LINKS.contains(&words[at].lower.as_str()));
        if !is_known {
            let text: Vec<&str> = words[first..=last].iter().map(|word| word.text.as_str()).collect();
            gaps.names.push(text.join(" "));
        }
    }
    let others = words.iter().zip(explained).zip(taken).filter(|((_, explained), taken)| !explained && !taken).count();
    gaps.others = u32::try_from(others).unwrap_or(u32::MAX);
    gaps.judgement = judgement_in(words, vocabulary);
    gaps
}

/// Returns the rate or the ratio that a phrase asks for, where nothing explains of what, `the heart rate`, and no name is one.
fn computed_gap(
    phrase: &phrases::AskedPhrase,
    words: &[SplitWord],
    explained: &[bool],
    vocabulary: &Vocabulary,
) -> Option<AskedGap> {
    const RATES: &str = "rate ratio percentage percent pct share";
    let (first, last) = (*phrase.words.first()?, *phrase.words.last()?);
    let is_asked = phrase.form == phrases::PhraseForm::Thing && phrases::is_computed(phrase, words);
    if !is_asked || phrase.words.iter().any(|at| explained[*at]) || vocabulary.has_any(RATES) {
        return None;
    }
    let text: Vec<&str> = words[first..=last + 1].iter().map(|word| word.text.as_str()).collect();
    let words = phrase.words.iter().map(|at| words[*at].lower.clone()).collect();
    Some(AskedGap { phrase: text.join(" "), words, kind: GapKind::Thing })
}

/// Returns how many words of a question the data speaks of; `None` where the question is not English.
pub(crate) fn explained_words(question: &str, vocabulary: &Vocabulary) -> Option<usize> {
    let split = words::split(question)?;
    let is_content = |word: &&SplitWord| {
        let lower = word.lower.as_str();
        !(is_function_word(lower) || is_generic(lower) || is_action(lower)) && lower.chars().count() > 1
    };
    Some(split.words.iter().filter(is_content).filter(|word| vocabulary.names(&word.lower)).count())
}

/// Words of names from which on they show their language, and one of how many is English where the names are.
const NAMES_OF_LANGUAGE: usize = 8;
const ENGLISH_NAMES: (usize, usize) = (2, 5);
/// The shortest word of a name that shows a language.
const SHORTEST_OF_LANGUAGE: usize = 4;

/// Whether the names and comments of tables are English, as far as there are enough to tell. Of names in another language
/// nobody can tell, by words, whether they are what a question in English asks for.
pub(crate) fn are_english(tables: &[TableInfo]) -> bool {
    let mut names = Vocabulary::default();
    tables.iter().for_each(|table| names.add_table_itself(table));
    let words: Vec<&str> = names.words_of(SHORTEST_OF_LANGUAGE).collect();
    let english = words.iter().filter(|word| is_english(word)).count();
    words.len() < NAMES_OF_LANGUAGE || english * ENGLISH_NAMES.1 >= words.len() * ENGLISH_NAMES.0
}

/// Returns what a question in German, French, Spanish, Portuguese, Italian or Dutch asks for, where nothing is called so, nor
/// by another word for it.
pub(crate) fn foreign_gaps(question: &str, vocabulary: &Vocabulary) -> Vec<AskedGap> {
    match words::split(question) {
        Some(_) => Vec::new(),
        None => languages::foreign_gaps(question, vocabulary),
    }
}

/// Whether names can tell that what a question asks for is not there: those of its own language, and else where the words
/// for it in other languages are known, and no name is one of them.
pub(crate) fn can_tell(gap: &AskedGap, question: &str, are_english: bool, vocabulary: &Vocabulary) -> bool {
    let is_english = words::split(question).is_some();
    let is_nowhere = |word: &String| languages::is_nowhere(word, vocabulary);
    match (is_english, are_english) {
        (true, true) | (false, false) => true,
        (true, false) => gap.words.iter().all(is_nowhere),
        (false, true) => gap.words.first().is_some_and(is_nowhere),
    }
}

/// Returns what a question says of the things that it counts or lists, where nothing explains it: `how many containers were
/// damaged`, `which patients smoke`. For a query that takes all rows of a table, and so leaves it out.
pub(crate) fn unfiltered_words(question: &str, vocabulary: &Vocabulary) -> Option<AskedGap> {
    let Some(split) = words::split(question) else { return languages::unfiltered_thing(question, vocabulary) };
    let words = &split.words;
    let counts_or_lists = match words.first().map(|word| word.lower.as_str()) {
        Some("how") => words.get(1).is_some_and(|word| word.lower == "many"),
        Some("which") => true,
        _ => false,
    };
    if !counts_or_lists {
        return None;
    }
    let explained = vocabulary.explained(words);
    let asked = phrases::asked_phrases(words);
    let last_asked = asked.first().and_then(|phrase| phrase.words.last().copied()).unwrap_or(1);
    let is_said = |at: &usize| {
        let word = &words[*at];
        let lower = word.lower.as_str();
        !(explained[*at] || word.is_name || is_empty_word(lower) || is_superlative(lower) || is_light_verb(lower))
    };
    let unsaid: Vec<usize> = (last_asked + 1..words.len()).filter(is_said).collect();
    let (first, last) = (*unsaid.first()?, *unsaid.last()?);
    let text: Vec<&str> = words[first..=last].iter().map(|word| word.text.as_str()).collect();
    let words = unsaid.iter().map(|at| words[*at].lower.clone()).collect();
    Some(AskedGap { phrase: text.join(" "), words, kind: GapKind::Said })
}

/// Returns the word of a question by which a query calls a figure, where the column that it is of is called otherwise:
/// `avg(monthly_price) AS age`. Only where the words of the column's name are known, and not those of any figure.
pub(crate) fn misnamed_figure(alias: &str, question: &str, table: &TableInfo, column: &ColumnInfo) -> Option<String> {
    const OF_ANY_FIGURE: [&str; 7] = ["net", "gross", "sum", "sales", "qty", "cnt", "amt"];
    let split = words::split(question)?;
    let parts = name_words(&column.name);
    let says_what = |part: &String| !is_generic(part) && !OF_ANY_FIGURE.contains(&part.as_str());
    if !parts.iter().all(|part| is_english(part)) || !parts.iter().any(says_what) {
        return None;
    }
    let mut named = Vocabulary::default();
    named.add_name(&table.name.table);
    named.add_name(&column.name);
    named.add_text(column.comment.as_deref().unwrap_or_default());
    let called: Vec<String> = name_words(alias)
        .into_iter()
        .filter(|word| word.chars().count() > 2 && !is_generic(word) && !is_function_word(word))
        .map(|word| stem(&word))
        .collect();
    let is_misnamed = |word: &&SplitWord| {
        called.contains(&stem(&word.lower)) && !is_generic(&word.lower) && !named.names(&word.lower)
    };
    split.words.iter().find(is_misnamed).map(|word| word.text.clone())
}

/// The fewest words of a question that the data does not speak of, from which on they are what is asked for, and the most
/// words of a question that says nothing beside what it asks.
const UNSPOKEN_WORDS: usize = 2;
const BARE_QUESTION: usize = 14;

/// Returns the places of the words that the data does not speak of, where they are at least as many as those that it does:
/// `which patients are allergic to penicillin`. Names, actions and words that go with any data do not count.
fn unspoken_words(words: &[SplitWord], explained: &[bool], names: &[(usize, usize)]) -> Option<Vec<usize>> {
    if words.len() > BARE_QUESTION || words.iter().filter(|word| word.begins_sentence).count() > 1 {
        return None;
    }
    let is_content = |at: &usize| {
        let word = words[*at].lower.as_str();
        let is_letter_or_number = word.chars().count() < 2 || word.chars().any(|c| c.is_ascii_digit());
        !(is_letter_or_number || is_function_word(word) || is_generic(word) || is_empty_word(word))
    };
    let is_said = |at: &usize| {
        let word = words[*at].lower.as_str();
        let is_name = names.iter().any(|(first, last)| (*first..=*last).contains(at));
        !(is_name || is_superlative(word) || is_action(word) || is_of_taste(word))
    };
    let (spoken, others): (Vec<usize>, Vec<usize>) = (0..words.len()).filter(is_content).partition(|at| explained[*at]);
    let unspoken: Vec<usize> = others.into_iter().filter(is_said).collect();
    (unspoken.len() >= UNSPOKEN_WORDS.max(spoken.len())).then_some(unspoken)
}

/// Returns the words by which a question asks for a judgement: advice, an opinion, or what is a matter of taste, where
/// the data has no ratings.
fn judgement_in(words: &[SplitWord], vocabulary: &Vocabulary) -> Option<String> {
    const ASKS: [&str; 8] = [
        "should i",
        "should we",
        "you recommend",
        "you think",
        "you like",
        "you prefer",
        "your opinion",
        "your advice",
    ];
    const RATINGS: &str = "rating rate stars review popularity likes sentiment opinion recommendation";
    // What others think, which somebody may have asked them.
    const OPINIONS: [&str; 7] =
        ["think of", "think about", "feel about", "happy with", "satisfied with", "happy are", "satisfied are"];
    const ASKED_FOR: &str = "comment feedback satisfaction csat nps score survey complaint stars text";
    let pair = |pair: &[SplitWord]| format!("{} {}", pair[0].lower, pair[1].lower);
    let said = |pairs: &[&str]| words.windows(2).map(pair).find(|pair| pairs.contains(&pair.as_str()));
    if let Some(asked) = said(&ASKS) {
        return Some(asked);
    }
    let opinion = said(&OPINIONS).filter(|_| !vocabulary.has_any(RATINGS) && !vocabulary.has_any(ASKED_FOR));
    if opinion.is_some() {
        return opinion;
    }
    let is_judged = |word: &&SplitWord| is_of_taste(&word.lower) && !word.is_name && !vocabulary.names(&word.lower);
    let word = words.iter().find(is_judged).filter(|_| !vocabulary.has_any(RATINGS))?;
    Some(word.text.clone())
}

/// Returns the runs of words that are one name: capitals in a sentence, with what links them.
fn names_in(words: &[SplitWord]) -> Vec<(usize, usize)> {
    let is_name = |at: usize| {
        let word: &SplitWord = &words[at];
        word.is_name && !is_function_word(&word.lower) && !is_generic(&word.lower) && word.lower.chars().count() > 1
    };
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for at in (0..words.len()).filter(|at| is_name(*at)) {
        let begins = |from: usize| words[from..=at].iter().skip(1).any(|word| word.begins_clause);
        match runs.last_mut() {
            Some((_, last)) if at == *last + 1 && !begins(*last) => *last = at,
            Some((_, last))
                if at == *last + 2 && NAME_LINKS.contains(&words[at - 1].lower.as_str()) && !begins(*last) =>
            {
                *last = at;
            }
            _ => runs.push((at, at)),
        }
    }
    runs
}

#[cfg(test)]
mod field_tests;
#[cfg(test)]
mod meaning_tests;
#[cfg(test)]
mod tests;
