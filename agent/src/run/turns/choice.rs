//! A reply to a question with choices: `2`, or `the second one`, is answered by the query of that reading, without the
//! model. Any other reply, and a reading whose query fails now, goes to the model as usual.

use serde_json::json;

use super::readings::{BY, WHICH};
use super::verified::rows_text;
use super::{End, Turns};
use crate::models::ChatRole;
use crate::run::{FailureCause, elapsed_ms};
use crate::tools;

/// Words around a choice.
const FILLERS: &[&str] =
    &["the", "option", "choice", "reading", "number", "no", "please", "i", "mean", "meant", "take", "it", "is"];
/// Words for a choice, by its number from 0.
const ORDINALS: &[&[&str]] = &[
    &["1", "1st", "first", "one"],
    &["2", "2nd", "second", "two"],
    &["3", "3rd", "third", "three"],
    &["4", "4th", "fourth", "four"],
    &["5", "5th", "fifth", "five"],
];

impl Turns<'_> {
    /// Answers a reply that chooses among the readings that the last answer has named.
    pub(super) async fn answer_from_choice(&mut self) -> Result<Option<End>, FailureCause> {
        let request = &self.task.request;
        let last = request.history.iter().rev().find(|message| message.role == ChatRole::Assistant);
        let Some(sql) = last.and_then(|last| chosen_query(&request.question(), &last.content)) else { return Ok(None) };
        if !self.leaves_open_how() {
            return Ok(None);
        }
        let arguments = json!({ "sql": sql });
        let started = std::time::Instant::now();
        let Ok(output) = tools::call(&self.context, tools::RUN_SQL, &arguments).await else { return Ok(None) };
        // What was repaired is not the reading that was chosen.
        if output.ran.is_some() {
            return Ok(None);
        }
        let text = rows_text(&output.json);
        self.say_rows(arguments, output, text, elapsed_ms(started)).await.map(Some)
    }
}

/// Returns the query of the reading that a reply chooses, where the text before it asked for a choice.
fn chosen_query(reply: &str, asked: &str) -> Option<String> {
    let number = chosen_number(reply)?;
    let (_, lines) = asked.split_once(WHICH)?;
    let prefix = format!("{}. ", number + 1);
    let line = lines.lines().find_map(|line| line.trim().strip_prefix(&prefix))?;
    let begins_query = |text: &str| {
        let first = text.trim_start_matches('(').split_whitespace().next().unwrap_or_default();
        first.eq_ignore_ascii_case("select") || first.eq_ignore_ascii_case("with")
    };
    let mut queries = line.match_indices(BY).map(|(at, by)| &line[at + by.len()..]);
    // One that was cut to its line cannot run.
    queries.find(|text| begins_query(text)).filter(|text| !text.ends_with('…')).map(str::to_owned)
}

/// Returns the number of the choice that a reply is, from 0; `None` where it says anything else.
fn chosen_number(reply: &str) -> Option<usize> {
    let lower = reply.to_lowercase();
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty() && !FILLERS.contains(word))
        .collect();
    let number = |word: &str| ORDINALS.iter().position(|ordinals| ordinals.contains(&word));
    match words.as_slice() {
        [one] | [one, "one" | "query"] => number(one),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_chooses_a_reading() {
        let asked = "There are 2.\n\nTwo ways. Which one?\n1. {\"n\":2}, by SELECT count(*) AS n FROM a\n\
                     2. {\"n\":\"x, by y\"} and 3 more rows, by WITH t AS (SELECT 1) SELECT n FROM t";
        for (reply, expected) in [
            ("1", Some("SELECT count(*) AS n FROM a")),
            ("the first one", Some("SELECT count(*) AS n FROM a")),
            ("2.", Some("WITH t AS (SELECT 1) SELECT n FROM t")),
            ("I mean option 2, please", Some("WITH t AS (SELECT 1) SELECT n FROM t")),
            ("the second", Some("WITH t AS (SELECT 1) SELECT n FROM t")),
            ("3", None),
            ("and in 2013?", None),
            ("two of them", None),
            ("", None),
        ] {
            assert_eq!(chosen_query(reply, asked).as_deref(), expected, "{reply}");
        }
        assert_eq!(chosen_query("1", "1. SELECT 1"), None, "nothing was asked");
        assert_eq!(chosen_query("1", "Which one?\n1. {}, by SELECT a…"), None, "a query that was cut");
    }
}
