//! A verified query as a template: a question that differs from the verified one only in values is answered by its SQL
//! with those values filled in. No model is asked, so nothing is guessed: the words around the values must be the same,
//! in the same order, and each value must stand for exactly one literal of the SQL.

mod literal_place;

use serde::{Deserialize, Serialize};
use sqlparser::dialect::GenericDialect;
use sqlparser::tokenizer::{Token, Tokenizer};

use self::literal_place::{LiteralPlace, place_of};

/// Longer questions are not compared.
const MAX_WORDS: usize = 60;
/// Words of one value.
const MAX_VALUE_WORDS: usize = 5;
/// A longer query is no template.
const MAX_SQL_BYTES: usize = 32 * 1024;
/// Words that may be missing or added: how something is asked, not what.
const FILLERS: [&str; 25] = [
    "a", "an", "the", "please", "me", "us", "show", "tell", "give", "list", "find", "what", "is", "are", "was", "were",
    "do", "does", "did", "can", "could", "you", "i", "there", "s",
];
/// Words that are no part of a value: where one stands, the question says more than the verified one.
const NOT_IN_VALUES: [&str; 50] = [
    "and",
    "or",
    "not",
    "no",
    "without",
    "in",
    "of",
    "with",
    "by",
    "per",
    "for",
    "from",
    "than",
    "before",
    "after",
    "between",
    "since",
    "until",
    "during",
    "on",
    "at",
    "to",
    "over",
    "under",
    "above",
    "below",
    "more",
    "less",
    "only",
    "except",
    "each",
    "every",
    "most",
    "least",
    "that",
    "which",
    "but",
    "excluding",
    "including",
    "beside",
    "outside",
    "within",
    "beyond",
    "all",
    "any",
    "both",
    "either",
    "neither",
    "none",
    "exactly",
];
const NUMBER_WORDS: [&str; 11] =
    ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// A value of the verified query, and what stands in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilledValue {
    /// As the verified query has it.
    pub from: String,
    /// As the question has it.
    pub to: String,
}

/// A verified query with the values of another question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilledTemplate {
    pub(crate) sql: String,
    /// Those that differ, in the order of the question.
    pub(crate) values: Vec<FilledValue>,
}

/// Fills the SQL of a verified question with the values of another; `None` where the two differ in more than values.
pub(crate) fn fill(verified: &str, sql: &str, question: &str) -> Option<FilledTemplate> {
    if sql.len() > MAX_SQL_BYTES {
        return None;
    }
    let (verified_words, words) = (words_of(verified), words_of(question));
    if verified_words.len() > MAX_WORDS || words.len() > MAX_WORDS {
        return None;
    }
    let tokens = Tokenizer::new(&GenericDialect {}, sql).with_unescape(false).tokenize().ok()?;
    let slots = slots(&tokens, &verified_words);
    let pattern = pattern(&verified_words, &slots);
    let mut matches = Vec::new();
    Matcher { pattern: &pattern, words: &words, found: &mut matches }.find(0, 0, &mut Vec::new());
    matches.dedup();
    // Two ways to read it are none.
    let [captured] = matches.as_slice() else { return None };
    let mut filled = tokens.clone();
    let mut values = Vec::new();
    for (slot, (start, end)) in slots.iter().zip(captured) {
        let text = words.get(*start..*end)?;
        let value = slot.value_of(text, question)?;
        if value == slot.value {
            continue;
        }
        for index in &slot.tokens {
            let token = filled.get_mut(*index)?;
            *token = match token {
                Token::Number(_, long) => Token::Number(value.clone(), *long),
                Token::SingleQuotedString(text) => {
                    let (prefix, suffix) = pattern_signs(text);
                    Token::SingleQuotedString(format!("{prefix}{value}{suffix}").replace('\'', "''"))
                }
                _ => return None,
            };
        }
        values.push(FilledValue { from: slot.value.clone(), to: value });
    }
    let sql: String = filled.iter().map(ToString::to_string).collect();
    Some(FilledTemplate { sql, values })
}

/// A word of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
struct QuestionWord {
    /// In lower case, in the singular.
    folded: String,
    start: usize,
    end: usize,
    /// Whether it is written in capitals: `US` is no `us`, and in `grade A` the letter is no article.
    is_code: bool,
    is_filler: bool,
}

impl QuestionWord {
    fn new(text: &str, start: usize, end: usize) -> Self {
        let word = &text[start..end];
        let is_grade = word == "A" && !text[..start].trim().is_empty();
        let is_code = is_grade || (word.len() > 1 && word.chars().all(|c| c.is_ascii_uppercase()));
        let is_filler = !is_code && FILLERS.contains(&word.to_lowercase().as_str());
        Self { folded: folded(word), start, end, is_code, is_filler }
    }

    /// Whether it is a sign, as `<` and `%` are.
    fn is_sign(&self) -> bool {
        !self.folded.chars().any(char::is_alphanumeric)
    }
}

fn words_of(text: &str) -> Vec<QuestionWord> {
    let mut words = Vec::new();
    let mut start = None;
    let is_inner = |c: char| matches!(c, '.' | '-' | ',' | ':' | '_' | '/' | '&');
    // Signs say what is asked as words do: `> 100` is not `< 100`, and `$100` not `€100`.
    let is_sign = |c: char| "<>=≤≥≠+%&$€£¥₹".contains(c);
    let ends: Vec<(usize, char)> = text.char_indices().chain([(text.len(), ' ')]).collect();
    for (position, (at, letter)) in ends.iter().enumerate() {
        let next = ends.get(position + 1).map_or(' ', |(_, next)| *next);
        // A dot or a dash belongs to a word that goes on: 2013-01-05, 1,200, B-52. So does the sign of a number.
        let is_minus = start.is_none() && matches!(*letter, '-' | '−') && next.is_ascii_digit();
        let is_part =
            letter.is_alphanumeric() || is_minus || (start.is_some() && is_inner(*letter) && next.is_alphanumeric());
        match (start, is_part) {
            (None, true) => start = Some(*at),
            (Some(first), false) => {
                words.push(QuestionWord::new(text, first, *at));
                start = None;
            }
            _ => {}
        }
        if start.is_none() && (is_sign(*letter) || (*letter == '!' && next == '=')) {
            words.push(QuestionWord::new(text, *at, at + letter.len_utf8()));
        }
    }
    words
}

fn folded(word: &str) -> String {
    let lower = word.to_lowercase();
    if let Some(number) = NUMBER_WORDS.iter().position(|known| *known == lower) {
        return number.to_string();
    }
    let letters = lower.chars().count();
    match lower.strip_suffix('s') {
        Some(singular) if letters > 3 && !singular.ends_with('s') => singular.to_owned(),
        _ => lower,
    }
}

/// A value of the verified query that its question names once.
#[derive(Debug, Clone)]
struct Slot {
    /// Of the SQL: more than one where a text stands in it several times.
    tokens: Vec<usize>,
    is_number: bool,
    /// Whether one of them says which rows.
    is_chosen: bool,
    value: String,
    /// Words of the verified question.
    start: usize,
    end: usize,
}

impl Slot {
    /// Returns the value that these words of a question are; `None` where they cannot be one in this place.
    fn value_of(&self, words: &[QuestionWord], question: &str) -> Option<String> {
        let text = question.get(words.first()?.start..words.last()?.end)?;
        if self.is_number {
            let [word] = words else { return None };
            let is_year = |number: &str| number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
            return number_of(&word.folded).filter(|number| {
                number.contains('.') == self.value.contains('.') && is_year(number) == is_year(&self.value)
            });
        }
        let of_digits = |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
        let has_digits_only =
            self.value.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | ':' | '/' | '.' | ' '));
        // A date or a year is replaced by one of the same form.
        if has_digits_only && of_digits(&self.value) != of_digits(text) {
            return None;
        }
        let said_more =
            words.iter().any(|word| word.is_sign() || (!word.is_code && NOT_IN_VALUES.contains(&word.folded.as_str())));
        (!said_more).then(|| text.to_owned())
    }
}

/// Returns the signs of a pattern before and after a text: `%late%`.
fn pattern_signs(text: &str) -> (&str, &str) {
    let prefix = text.get(..text.len() - text.trim_start_matches('%').len()).unwrap_or_default();
    let suffix = text.get(text.trim_end_matches('%').len()..).unwrap_or_default();
    (prefix, suffix)
}

/// Returns the number without separators of thousands.
fn number_of(word: &str) -> Option<String> {
    let digits = word.replace(',', "");
    digits.parse::<f64>().ok().filter(|number| number.is_finite())?;
    digits.chars().all(|c| c.is_ascii_digit() || c == '.').then_some(digits)
}

/// Returns the literals of a query that its question names, each exactly once, in the order of the question.
fn slots(tokens: &[Token], words: &[QuestionWord]) -> Vec<Slot> {
    let mut slots: Vec<Slot> = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        let (value, is_number) = match token {
            Token::Number(number, _) => (number.clone(), true),
            Token::SingleQuotedString(text) => (text.trim_matches('%').replace("''", "'"), false),
            _ => continue,
        };
        let place = place_of(tokens, index);
        // A number with a sign is not the one that a question says without.
        if place == LiteralPlace::Signed {
            continue;
        }
        if is_number && place != LiteralPlace::Chosen {
            continue;
        }
        if let Some(known) = slots.iter_mut().find(|slot| slot.value == value) {
            known.tokens.push(index);
            known.is_chosen |= place == LiteralPlace::Chosen;
            continue;
        }
        let written: Vec<String> = words_of(&value).into_iter().map(|word| word.folded).collect();
        if written.is_empty() {
            continue;
        }
        let number = is_number.then(|| number_of(&value)).flatten();
        let mut places = (0..words.len()).filter(|start| {
            let here = words.get(*start..*start + written.len());
            here.is_some_and(|here| match &number {
                Some(number) => here.len() == 1 && number_of(&here[0].folded).as_ref() == Some(number),
                None => here.iter().map(|word| &word.folded).eq(written.iter()),
            })
        });
        if let (Some(start), None) = (places.next(), places.next()) {
            let end = start + written.len();
            let is_chosen = place == LiteralPlace::Chosen;
            slots.push(Slot { tokens: vec![index], is_number, is_chosen, value, start, end });
        }
    }
    // A number that the query has twice may be two things, and a text that nothing is compared with is a label.
    slots.retain(|slot| slot.is_chosen && (!slot.is_number || slot.tokens.len() == 1));
    slots.sort_by_key(|slot| (slot.start, slot.end));
    let mut free = 0;
    slots.retain(|slot| {
        let is_free = slot.start >= free;
        if is_free {
            free = slot.end;
        }
        is_free
    });
    let others: Vec<(usize, &Token)> = tokens
        .iter()
        .enumerate()
        .filter(|(index, token)| {
            let is_literal = matches!(token, Token::Number(..) | Token::SingleQuotedString(_));
            is_literal && !slots.iter().any(|slot| slot.tokens.contains(index))
        })
        .collect();
    slots.retain(|slot| !others.iter().any(|(index, other)| is_derived(slot, other, place_of(tokens, *index))));
    slots
}

/// Whether another literal of the query follows from the value of a slot, so that filling in the slot alone would ask
/// for something else: the end of `>= '2024-03-01' AND < '2024-04-01'`, or `'2024-Q1'` of 2024.
fn is_derived(slot: &Slot, other: &Token, place: LiteralPlace) -> bool {
    let text = match other {
        Token::Number(number, _) => number,
        Token::SingleQuotedString(text) => text,
        _ => return false,
    };
    let is_next = || {
        let numbers = number_of(&slot.value).zip(number_of(text));
        let difference = numbers.and_then(|(one, other)| Some(one.parse::<f64>().ok()? - other.parse::<f64>().ok()?));
        slot.is_number && place == LiteralPlace::Chosen && difference.is_some_and(|difference| difference.abs() == 1.0)
    };
    let has_value = || {
        let is_word = |word: QuestionWord| word.folded == folded(&slot.value);
        matches!(other, Token::SingleQuotedString(_)) && words_of(&text.replace('-', " ")).into_iter().any(is_word)
    };
    (is_time(&slot.value) && is_time(text)) || is_next() || has_value()
}

/// Whether a literal is a year, or begins with one as a date does.
fn is_time(literal: &str) -> bool {
    let year = literal.get(..4).unwrap_or_default();
    let is_year = year.chars().all(|c| c.is_ascii_digit()) && (year.starts_with("19") || year.starts_with("20"));
    is_year && literal.get(4..).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '/', '.']))
}

/// A part of a verified question.
#[derive(Debug, Clone, PartialEq, Eq)]
enum QuestionPart<'a> {
    Fixed(&'a str),
    Value,
}

fn pattern<'a>(words: &'a [QuestionWord], slots: &[Slot]) -> Vec<QuestionPart<'a>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        if let Some(slot) = slots.iter().find(|slot| slot.start == at) {
            parts.push(QuestionPart::Value);
            at = slot.end;
            continue;
        }
        if !word.is_filler {
            parts.push(QuestionPart::Fixed(&word.folded));
        }
        at += 1;
    }
    parts
}

/// Ranges of words, one for each value.
type Captured = Vec<(usize, usize)>;

/// Finds how the words of a question fit a pattern; no more than two ways are looked for.
struct Matcher<'a> {
    pattern: &'a [QuestionPart<'a>],
    words: &'a [QuestionWord],
    found: &'a mut Vec<Captured>,
}

impl Matcher<'_> {
    fn find(&mut self, part: usize, word: usize, captured: &mut Captured) {
        if self.found.len() > 1 {
            return;
        }
        let here = self.words.get(word);
        match (self.pattern.get(part), here) {
            (None, None) if !self.found.contains(captured) => self.found.push(captured.clone()),
            (Some(QuestionPart::Fixed(wanted)), Some(here)) if here.folded == **wanted => {
                self.find(part + 1, word + 1, captured);
            }
            (Some(QuestionPart::Value), Some(here)) if !here.is_filler => {
                for end in word + 1..=(word + MAX_VALUE_WORDS).min(self.words.len()) {
                    if self.words.get(end - 1).is_some_and(|word| word.is_filler) {
                        continue;
                    }
                    captured.push((word, end));
                    self.find(part + 1, end, captured);
                    captured.pop();
                }
            }
            (_, Some(here)) if here.is_filler => self.find(part, word + 1, captured),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(verified: &str, sql: &str, question: &str) -> Option<String> {
        fill(verified, sql, question).map(|filled| filled.sql)
    }

    #[test]
    fn values_are_filled_in() {
        let sql = "SELECT count(*) FROM votes WHERE state = 'CA'";
        let votes = "How many votes of CA?";
        assert_eq!(filled(votes, sql, "how many votes of CA").as_deref(), Some(sql));
        assert_eq!(
            filled(votes, sql, "Please tell me how many votes of NY").as_deref(),
            Some("SELECT count(*) FROM votes WHERE state = 'NY'")
        );
        assert_eq!(
            filled(votes, sql, "How many votes of New York?").as_deref(),
            Some("SELECT count(*) FROM votes WHERE state = 'New York'")
        );
        assert_eq!(
            filled(votes, sql, "How many votes of O'Brien?").as_deref(),
            Some("SELECT count(*) FROM votes WHERE state = 'O''Brien'")
        );
        let top = "SELECT carrier FROM flights WHERE day >= '2013-01-05' AND note LIKE '%late%' ORDER BY 1 LIMIT 3";
        let filled =
            fill("the top 3 late carriers since 2013-01-05", top, "top five cancelled carriers since 2014-02-01")
                .unwrap();
        assert_eq!(
            filled.sql,
            "SELECT carrier FROM flights WHERE day >= '2014-02-01' AND note LIKE '%cancelled%' ORDER BY 1 LIMIT 5"
        );
        assert_eq!(filled.values.len(), 3);
        assert_eq!(filled.values[0], FilledValue { from: "3".to_owned(), to: "5".to_owned() });
    }

    #[test]
    fn questions_that_differ_in_more_are_not_answered() {
        let sql = "SELECT count(*) FROM votes WHERE state = 'CA' AND year = 2018";
        let votes = "How many votes of CA in 2018?";
        for question in [
            "How many votes of CA or NY in 2018?",
            "How many votes not of CA in 2018?",
            "How many voters of CA per contestant in 2018?",
            "Which votes of CA in 2018?",
            "How many votes of CA in March?",
            "How many votes of CA in 2018 and 2019?",
            "How many votes of CA?",
            "In 2018 how many votes of CA",
            "",
        ] {
            assert_eq!(filled(votes, sql, question), None, "{question}");
        }
        let twice = "SELECT count(*) FROM t WHERE a = 1 AND b = 1";
        assert_eq!(filled("rows with a 1", twice, "rows with a 2"), None, "which of the two is meant?");
        assert_eq!(filled("rows with 5 or 5", "SELECT 5", "rows with 5 or 6"), None);
        let date = "SELECT count(*) FROM t WHERE day = '2018-01-02'";
        assert_eq!(filled("rows on 2018-01-02", date, "rows on Monday"), None);
    }

    #[test]
    fn signs_and_currencies_say_what_is_asked() {
        for (verified, sql, question) in [
            ("Rows colder than -5 degrees?", "SELECT 1 FROM t WHERE temp < -5", "Rows colder than 5 degrees?"),
            ("Rows colder than -5 degrees?", "SELECT 1 FROM t WHERE temp < -5", "Rows colder than 10 degrees?"),
            ("Rows colder than -5 degrees?", "SELECT 1 FROM t WHERE temp < -5", "Rows colder than -10 degrees?"),
            ("Rows with amount > 100?", "SELECT 1 FROM t WHERE amount > 100", "Rows with amount < 100?"),
            ("Rows with amount > 100?", "SELECT 1 FROM t WHERE amount > 100", "Rows with amount >= 200?"),
            ("Rows above $100?", "SELECT 1 FROM t WHERE amount > 100", "Rows above €100?"),
            ("Rows above 100?", "SELECT 1 FROM t WHERE amount > 100", "Rows above 100 %?"),
            ("Rows of the year 2018?", "SELECT 1 FROM t WHERE year >= 2018", "Rows of the year 18?"),
            ("Rows from CA?", "SELECT 1 FROM t WHERE state = 'CA'", "Rows from CA & NY?"),
        ] {
            assert_eq!(filled(verified, sql, question), None, "{question}");
        }
        for (verified, sql, question, expected) in [
            ("Rows colder than -5?", "SELECT 1 FROM t WHERE temp < -5", "rows colder than -5", "temp < -5"),
            ("Rows above $100?", "SELECT 1 FROM t WHERE amount > 100", "Rows above $200?", "amount > 200"),
            ("Rows from US?", "SELECT 1 FROM t WHERE state = 'US'", "Rows from US?", "state = 'US'"),
            ("Rows from US?", "SELECT 1 FROM t WHERE state = 'US'", "Rows from ME?", "state = 'ME'"),
            ("Rows of AT&T?", "SELECT 1 FROM t WHERE firm = 'AT&T'", "Rows of R&D?", "firm = 'R&D'"),
        ] {
            let sql = filled(verified, sql, question).unwrap_or_else(|| panic!("{question}"));
            assert!(sql.ends_with(expected), "{sql}");
        }
    }

    #[test]
    fn what_the_query_derives_from_a_value_is_not_left_behind() {
        for (verified, sql, question) in [
            ("Orders of 2023?", "SELECT 1 FROM t WHERE year >= 2023 AND year < 2024", "Orders of 2022?"),
            (
                "Orders on 2024-03-01?",
                "SELECT 1 FROM t WHERE d >= '2024-03-01' AND d < '2024-03-02'",
                "Orders on 2024-01-01?",
            ),
            ("Orders of 2023?", "SELECT 1 FROM t WHERE y = 2023 AND d <= '2023-12-31'", "Orders of 2022?"),
            ("Rows of hour 5?", "SELECT 1 FROM t WHERE h >= 5 AND h < 6", "Rows of hour 7?"),
            ("Rows of team 5?", "SELECT 1 FROM t WHERE team = 5 AND code = 'T-5'", "Rows of team 7?"),
            // Labels, and places.
            ("Late orders?", "SELECT CASE WHEN d > 0 THEN 'late' END FROM t", "Lost orders?"),
            ("Orders with 1 item?", "SELECT sum(CASE WHEN n < 2 THEN 1 END) FROM t", "Orders with 3 items?"),
            ("The 2 states?", "SELECT state, round(avg(x), 2) FROM t GROUP BY 1", "The 4 states?"),
            ("The 1 column?", "SELECT state FROM t ORDER BY 1", "The 2 column?"),
        ] {
            assert_eq!(filled(verified, sql, question), None, "{question}");
            assert_eq!(filled(verified, sql, verified).as_deref(), Some(sql));
        }
        for (verified, sql, question, expected) in [
            (
                "Top 2 states?",
                "SELECT state, round(avg(x), 2) FROM t GROUP BY 1 ORDER BY 2 LIMIT 2",
                "Top 4 states?",
                "SELECT state, round(avg(x), 2) FROM t GROUP BY 1 ORDER BY 2 LIMIT 4",
            ),
            (
                "Between 10 and 20?",
                "SELECT 1 FROM t WHERE x BETWEEN 10 AND 20",
                "Between 5 and 6?",
                "SELECT 1 FROM t WHERE x BETWEEN 5 AND 6",
            ),
            (
                "Orders from 2022 to 2023?",
                "SELECT 1 FROM t WHERE y IN (2022, 2023)",
                "Orders from 2020 to 2021?",
                "SELECT 1 FROM t WHERE y IN (2020, 2021)",
            ),
            (
                "Orders by month?",
                "SELECT date_trunc('month', d) FROM t",
                "Orders by year?",
                "SELECT date_trunc('year', d) FROM t",
            ),
            (
                "Orders with 1 item?",
                "SELECT sum(CASE WHEN n = 1 THEN 1 ELSE 0 END) FROM t",
                "Orders with 3 items?",
                "SELECT sum(CASE WHEN n = 3 THEN 1 ELSE 0 END) FROM t",
            ),
            (
                "Who has grade B?",
                "SELECT 1 FROM t WHERE grade = 'B'",
                "Who has grade A?",
                "SELECT 1 FROM t WHERE grade = 'A'",
            ),
            (
                "What does CA pay?",
                "SELECT 1 FROM t WHERE s = 'CA'",
                "What did NY pay?",
                "SELECT 1 FROM t WHERE s = 'NY'",
            ),
        ] {
            assert_eq!(filled(verified, sql, question).as_deref(), Some(expected), "{question}");
        }
    }

    #[test]
    fn a_text_that_the_query_has_twice_is_filled_in_twice() {
        let pattern = "SELECT count(*) FROM votes WHERE state = 'CA' OR note LIKE '%CA%'";
        assert_eq!(
            filled("votes of CA", pattern, "votes of NY").as_deref(),
            Some("SELECT count(*) FROM votes WHERE state = 'NY' OR note LIKE '%NY%'")
        );
        let sql = "SELECT 'CA' AS state, count(*) FROM votes WHERE state = 'CA'";
        assert_eq!(
            filled("votes of CA", sql, "votes of NY").as_deref(),
            Some("SELECT 'NY' AS state, count(*) FROM votes WHERE state = 'NY'")
        );
    }
}
