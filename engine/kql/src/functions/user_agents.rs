//! `parse_user_agent`: the browser, the operating system and the device that a user agent names. What says so is the
//! first pattern of uap-core (`user_agents.txt`) that matches.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use arrow::array::ArrayRef;
use datafusion::error::Result;
use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;

const PATTERNS: &str = include_str!("user_agents.txt");
/// What no pattern matches.
const OTHER: &str = "Other";
/// The most texts of a batch whose answer is kept for the next row with the same text.
const MAX_KNOWN: usize = 1_024;

pub(super) const FUNCTIONS: &[FunctionEntry] =
    &[entry("parse_user_agent", "wx", Returns::Is(KqlType::Dynamic), parse_user_agent)];

static RULES: LazyLock<Vec<AgentRule>> = LazyLock::new(|| PATTERNS.lines().filter_map(AgentRule::read).collect());

/// What can be asked of a user agent.
struct AgentTarget {
    asked: &'static str,
    /// The first letter of its patterns' lines.
    letter: char,
    name: &'static str,
    parts: &'static [&'static str],
}

const TARGETS: [AgentTarget; 3] = [
    AgentTarget {
        asked: "browser",
        letter: 'b',
        name: "Browser",
        parts: &["Family", "MajorVersion", "MinorVersion", "Patch"],
    },
    AgentTarget {
        asked: "os",
        letter: 'o',
        name: "OperatingSystem",
        parts: &["Family", "MajorVersion", "MinorVersion", "Patch", "PatchMinor"],
    },
    AgentTarget { asked: "device", letter: 'd', name: "Device", parts: &["Family", "Brand", "Model"] },
];

/// One pattern: a line of the file.
struct AgentRule {
    letter: char,
    ignores_case: bool,
    /// Is in all that match, in lower case where the case does not count.
    literal: &'static str,
    pattern: &'static str,
    /// What the parts are, with `$1` for the first group; a part that is empty here is a group.
    parts: Vec<&'static str>,
    compiled: OnceLock<Option<Regex>>,
}

impl AgentRule {
    fn read(line: &'static str) -> Option<Self> {
        if line.starts_with('#') {
            return None;
        }
        let mut fields = line.split('\t');
        let (kind, literal, pattern) = (fields.next()?, fields.next()?, fields.next()?);
        Some(Self {
            letter: kind.chars().next()?,
            ignores_case: kind.ends_with('i'),
            literal,
            pattern,
            parts: fields.collect(),
            compiled: OnceLock::new(),
        })
    }

    fn regex(&self) -> Option<&Regex> {
        let compile = || RegexBuilder::new(self.pattern).case_insensitive(self.ignores_case).build().ok();
        self.compiled.get_or_init(compile).as_ref()
    }

    fn captures<'t>(&self, text: &'t str, lower: &str) -> Option<Captures<'t>> {
        let searched = if self.ignores_case { lower } else { text };
        if searched.contains(self.literal) { self.regex()?.captures(text) } else { None }
    }

    /// Returns the part of a number: as the rule has it, or else the group that stands for it.
    fn part(&self, captures: &Captures, number: usize) -> String {
        let group = |index: usize| captures.get(index).map_or("", |found| found.as_str());
        match self.parts.get(number).copied().unwrap_or_default() {
            // A device's brand is no group; its model is the first, as its family is.
            "" if self.letter == 'd' && number == 1 => String::new(),
            "" if self.letter == 'd' => group(1).to_owned(),
            "" => group(number + 1).to_owned(),
            written => {
                let mut text = String::new();
                let mut pieces = written.split('$');
                text.push_str(pieces.next().unwrap_or_default());
                for piece in pieces {
                    let mut rest = piece.chars();
                    match rest.next().and_then(|char| char.to_digit(10)) {
                        Some(index) => {
                            text.push_str(group(index as usize));
                            text.push_str(rest.as_str());
                        }
                        None => {
                            text.push('$');
                            text.push_str(piece);
                        }
                    }
                }
                text.trim().to_owned()
            }
        }
    }
}

/// Returns what a user agent says of a target.
fn described(target: &AgentTarget, text: &str, lower: &str, turns: &mut LoopTurns) -> Result<Value> {
    let mut parts: Map<String, Value> = target.parts.iter().map(|part| ((*part).to_owned(), "".into())).collect();
    parts.insert("Family".to_owned(), OTHER.into());
    for rule in RULES.iter().filter(|rule| rule.letter == target.letter) {
        turns.count()?;
        if let Some(captures) = rule.captures(text, lower) {
            for (number, name) in target.parts.iter().enumerate() {
                parts.insert((*name).to_owned(), rule.part(&captures, number).into());
            }
            break;
        }
    }
    Ok(Value::Object(parts))
}

/// The second argument names what is looked for: a text, or an array of them.
fn parse_user_agent(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (agents, wanted) = (arguments.strings(0)?, arguments.dynamics(1)?);
    let mut turns = LoopTurns::default();
    let mut known: HashMap<(String, String), Value> = HashMap::new();
    arguments.make_dynamics(|row| {
        let (text, asked) = (agents.get(row), wanted.get(row));
        let key = (text.to_owned(), asked.to_string());
        if let Some(answer) = known.get(&key) {
            return Ok(answer.clone());
        }
        let is_asked = |target: &&AgentTarget| match asked.as_ref() {
            Value::Array(all) => all.iter().any(|one| one == target.asked),
            one => one == target.asked,
        };
        let lower = text.to_ascii_lowercase();
        let mut answer = Map::new();
        for target in TARGETS.iter().filter(is_asked) {
            answer.insert(target.name.to_owned(), described(target, text, &lower, &mut turns)?);
        }
        if answer.is_empty() {
            return Err(arguments.error("looks for \"browser\", \"os\", \"device\", or an array of them"));
        }
        if known.len() < MAX_KNOWN {
            known.insert(key, Value::Object(answer.clone()));
        }
        Ok(Value::Object(answer))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_is_one() {
        assert!(RULES.len() > 1_000);
        let broken: Vec<&str> = RULES.iter().filter(|rule| rule.regex().is_none()).map(|rule| rule.pattern).collect();
        assert!(broken.is_empty(), "{broken:?}");
        for target in &TARGETS {
            assert!(RULES.iter().any(|rule| rule.letter == target.letter), "{}", target.asked);
        }
    }
}
