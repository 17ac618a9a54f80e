//! How far an answer is to be trusted: what speaks for and against it is gathered from its queries and their results, and
//! made a word. Where somebody has fitted coefficients to measured answers (`querent-benches fit-confidence`), it is made
//! a probability too: a figure that was not measured is never shown.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The words, by the least probability that each stands for.
const LIKELY: f64 = 0.8;
const UNSURE: f64 = 0.5;

/// What an answer is trusted to be, in a word; later ones are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConfidenceLevel {
    /// Probably not right.
    Doubtful,
    /// It may be right or not.
    Unsure,
    /// Probably right.
    Likely,
    /// A person found the query right.
    Verified,
}

impl ConfidenceLevel {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            ConfidenceLevel::Doubtful => "doubtful",
            ConfidenceLevel::Unsure => "unsure",
            ConfidenceLevel::Likely => "likely",
            ConfidenceLevel::Verified => "verified",
        }
    }
}

/// How far an answer is trusted, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// In a word.
    pub level: ConfidenceLevel,
    /// The probability that it is right, where coefficients were fitted to measured answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// What speaks for and against it.
    pub reasons: Vec<String>,
}

/// What is known about an answer. Each is a number that a fit weighs, by its name.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct AnswerEvidence {
    /// Whether a verified query answered.
    pub(crate) is_verified: bool,
    /// Queries that failed in the run.
    pub(crate) failed_queries: u32,
    /// Of the query that answers; `None` where none ran.
    pub(crate) result: Option<ResultEvidence>,
    /// How clearly the best table stands out: the share by which its score is above the first one that is left out.
    pub(crate) retrieval_margin: Option<f64>,
    /// Numbers and dates of the answer that no row proves.
    pub(crate) unproven: u32,
    /// Whether it rests on what was said earlier in the conversation, or on what an application's own tool returned.
    pub(crate) is_of_conversation: bool,
    /// What the question asks for and nothing in the data speaks of.
    pub(crate) missing: Vec<String>,
    /// Names of the question that no value has.
    pub(crate) unknown_names: Vec<String>,
    /// Whether it took too long to look for what the question asks for, so that nothing is said to be missing.
    pub(crate) is_search_cut: bool,
    /// Other words of the question that nothing explains.
    pub(crate) unexplained: u32,
    /// Other tables of the same name over which the query returns something else.
    pub(crate) other_readings: u32,
}

/// What is known about the result on which an answer rests.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ResultEvidence {
    repaired_names: u32,
    repaired_others: u32,
    checks: Vec<String>,
    /// Whether some checks took too long.
    are_checks_cut: bool,
    /// Whether texts of a query that found nothing took too long to be looked for.
    are_repairs_cut: bool,
    rows: u64,
    found_nothing: bool,
    is_truncated: bool,
    /// Votes of the chosen query, and of how many.
    vote: Option<(u64, u64)>,
    /// The candidates of the vote.
    candidates: Vec<Value>,
    /// The rows.
    row_values: Vec<Value>,
}

impl ResultEvidence {
    /// Reads what a result says of its query.
    pub(crate) fn of_result(result: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let changes = list(&result["repaired"]["changes"]);
        let names_a_guess = |change: &&Value| {
            ["table", "column", "join", "grouping"].contains(&change["kind"].as_str().unwrap_or_default())
        };
        let repaired_names = changes.iter().filter(names_a_guess).count();
        let rows = list(&result["rows"]);
        let is_nothing = |value: &Value| value.is_null() || value.as_f64() == Some(0.0);
        let found_nothing = match rows.as_slice() {
            [] => true,
            [only] => only.as_object().is_some_and(|row| row.values().all(is_nothing)),
            _ => false,
        };
        let checks = list(&result["checks"]);
        Self {
            repaired_names: count(repaired_names),
            repaired_others: count(changes.len() - repaired_names),
            checks: checks.iter().filter_map(|check| check["kind"].as_str().map(str::to_owned)).collect(),
            are_checks_cut: result["checks_cut"] == true,
            are_repairs_cut: result["repairs_cut"] == true,
            rows: result["row_count"].as_u64().unwrap_or_default(),
            found_nothing,
            is_truncated: result["truncated"] == true,
            vote: result["vote"]["votes"].as_u64().zip(result["vote"]["of"].as_u64()),
            candidates: list(&result["vote"]["candidates"]),
            row_values: rows,
        }
    }

    /// Reads what a result of an earlier run says of its query. What its vote left open was said then.
    pub(crate) fn of_earlier(result: &Value) -> Self {
        Self { candidates: Vec::new(), ..Self::of_result(result) }
    }

    /// Whether the query has found no row, or nothing but zeros and nulls.
    pub(crate) fn found_nothing(&self) -> bool {
        self.found_nothing
    }

    /// Returns the rows of the result.
    pub(crate) fn row_values(&self) -> &[Value] {
        &self.row_values
    }

    /// Returns the queries of a vote that return different rows, each with how many return its rows; most votes first.
    pub(crate) fn groups(&self) -> Vec<(&Value, u64)> {
        let mut groups: Vec<(&Value, u64)> = Vec::new();
        for candidate in self.candidates.iter().filter(|candidate| candidate["group"].is_u64()) {
            match groups.iter_mut().find(|(known, _)| known["group"] == candidate["group"]) {
                Some((_, votes)) => *votes += 1,
                None => groups.push((candidate, 1)),
            }
        }
        groups.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
        groups
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

impl AnswerEvidence {
    /// Returns what a fit weighs, by name; each about between 0 and 1.
    pub(crate) fn features(&self) -> BTreeMap<String, f64> {
        let share = |number: u32, most: u32| f64::from(number.min(most)) / f64::from(most);
        let flag = |is_so: bool| if is_so { 1.0 } else { 0.0 };
        let result = self.result.clone().unwrap_or_default();
        let (votes, of) = result.vote.unwrap_or((1, 1));
        let features = [
            ("agreement", if of > 1 { (votes as f64 - 1.0) / (of as f64 - 1.0) } else { 0.0 }),
            ("voted", flag(of > 1)),
            ("no_query", flag(self.result.is_none() && !self.is_of_conversation)),
            ("failed_queries", share(self.failed_queries, 3)),
            ("repaired_names", share(result.repaired_names, 3)),
            ("repaired_others", share(result.repaired_others, 3)),
            ("checks", share(count(result.checks.len()), 2)),
            ("found_nothing", flag(self.result.is_some() && result.found_nothing)),
            ("one_row", flag(result.rows == 1)),
            ("truncated", flag(result.is_truncated)),
            ("retrieval_margin", self.retrieval_margin.unwrap_or_default().clamp(0.0, 1.0)),
            ("unproven", share(self.unproven, 3)),
            ("missing", flag(!self.missing.is_empty())),
            ("unknown_names", flag(!self.unknown_names.is_empty())),
            ("unexplained", share(self.unexplained, 3)),
            ("other_readings", share(self.other_readings, 1)),
        ];
        features.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// Says how far the answer is trusted: by the fit where there is one, else by what speaks against it.
    pub(crate) fn confidence(&self, fit: Option<&ConfidenceFit>) -> Confidence {
        let (strong, mild, mut reasons) = self.doubts();
        if self.is_verified {
            reasons.insert(0, "a verified query answers it".to_owned());
            return Confidence { level: ConfidenceLevel::Verified, probability: None, reasons };
        }
        // What is asked for is not there: a figure that was fitted to other answers does not apply.
        if let Some(fit) = fit.filter(|_| self.missing.is_empty()) {
            let probability = fit.probability(&self.features());
            let level = match probability {
                p if p >= LIKELY => ConfidenceLevel::Likely,
                p if p >= UNSURE => ConfidenceLevel::Unsure,
                _ => ConfidenceLevel::Doubtful,
            };
            return Confidence { level, probability: Some((probability * 100.0).round() / 100.0), reasons };
        }
        let level = match (strong, mild) {
            (0, 0) => ConfidenceLevel::Likely,
            (0, 1 | 2) => ConfidenceLevel::Unsure,
            _ => ConfidenceLevel::Doubtful,
        };
        Confidence { level, probability: None, reasons }
    }

    /// Counts what speaks strongly and mildly against the answer, and says what speaks for and against it.
    fn doubts(&self) -> (u32, u32, Vec<String>) {
        let (mut strong, mut mild, mut reasons) = (0_u32, 0_u32, Vec::new());
        let mut doubt = |is_so: bool, is_strong: bool, reason: String| {
            if is_so {
                reasons.push(reason);
                *(if is_strong { &mut strong } else { &mut mild }) += 1;
            }
        };
        doubt(self.result.is_none() && !self.is_of_conversation, true, "no query answers it".to_owned());
        doubt(
            self.failed_queries > 0,
            false,
            plural(self.failed_queries, "query failed before", "queries failed before"),
        );
        doubt(self.unproven > 0, true, plural(self.unproven, "part of it is not proven", "parts of it are not proven"));
        let named = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let missing = format!("nothing in the data is called {}", named(&self.missing));
        doubt(!self.missing.is_empty(), true, missing);
        let unknown = format!("no value is called {}", named(&self.unknown_names));
        doubt(!self.unknown_names.is_empty(), false, unknown);
        let another = "the query returns something else over another table of the same name".to_owned();
        doubt(self.other_readings > 0, false, another);
        let result = self.result.clone().unwrap_or_default();
        let has_result = self.result.is_some();
        doubt(has_result && result.found_nothing, true, "the query found nothing".to_owned());
        let guessed = "the query named tables or columns that are not there, and was repaired";
        doubt(result.repaired_names > 0, false, guessed.to_owned());
        let mut found: Vec<&str> = result.checks.iter().map(|kind| found_by_check(kind)).collect();
        found.dedup();
        doubt(!found.is_empty(), false, format!("checks found something: {}", found.join("; ")));
        doubt(result.is_truncated, false, "not all rows were read".to_owned());
        if let Some((votes, of)) = result.vote {
            let agreed = format!("{votes} of {of} queries return the same");
            match votes * 2 > of {
                true => reasons.push(agreed),
                false => {
                    reasons.push(agreed);
                    strong += 1;
                }
            }
            // A vote that agrees takes the place of what was in doubt before it.
            if votes * 2 > of && votes > 1 {
                mild = mild.saturating_sub(1);
            }
        }
        // Nobody knows what would have been found: that is no answer of which nothing speaks against it.
        mild += u32::from(result.are_checks_cut || result.are_repairs_cut || self.is_search_cut);
        if result.are_checks_cut {
            reasons.push("some checks took too long and were left out".to_owned());
        }
        if result.are_repairs_cut {
            reasons.push("not every text of the query could be looked for in its column in time".to_owned());
        }
        if self.is_search_cut {
            reasons.push("whether the data has what is asked for could not be found out in time".to_owned());
        }
        if reasons.is_empty() && self.result.is_none() && self.is_of_conversation {
            reasons.push("it says what was said or returned earlier in the conversation".to_owned());
        }
        if reasons.is_empty() {
            reasons.push("nothing was repaired and no check found anything".to_owned());
        }
        (strong, mild, reasons)
    }
}

/// Returns what a check of a kind has found, in words.
fn found_by_check(kind: &str) -> &str {
    match kind {
        "fan_out" => "rows may count more than once",
        "nulls" => "rows without a value are left out, or counted",
        "literal" => "a text is not among the values of its column, or only one spelling of it is meant",
        "period" => "a day or a month may be cut, or months of several years be one",
        "limit" => "a limit leaves rows out, or there is a tie",
        "division" => "a division drops the fraction",
        "average" => "values are weighed otherwise than they may be meant",
        "text" => "numbers or days that are kept as texts are compared as texts",
        "join" => "tables are joined otherwise than they refer to each other",
        "condition" => "a condition may hold for other rows than it reads",
        other => other,
    }
}

fn plural(number: u32, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

/// Coefficients of a logistic function of `AnswerEvidence::features`, fitted to measured answers of one model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConfidenceFit {
    /// The model whose answers were measured.
    pub model: String,
    /// How many answers.
    pub questions: usize,
    /// How far the figures are off in the mean, on answers that were held out.
    pub calibration_error: f64,
    /// Of an answer without any feature.
    pub intercept: f64,
    /// By the name of the feature; one that is missing weighs nothing.
    pub weights: BTreeMap<String, f64>,
}

impl ConfidenceFit {
    /// Returns the probability that an answer with these features is right.
    pub fn probability(&self, features: &BTreeMap<String, f64>) -> f64 {
        let weighed = features.iter().map(|(name, value)| self.weights.get(name).unwrap_or(&0.0) * value);
        1.0 / (1.0 + (-(self.intercept + weighed.sum::<f64>())).exp())
    }
}

/// Below what an answer is held back.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum AnswerThreshold {
    /// None is.
    #[default]
    Off,
    /// Below this word.
    Level(ConfidenceLevel),
    /// Below this probability; needs a fit.
    Probability(f64),
}

impl AnswerThreshold {
    /// Whether answers may be held back.
    pub fn is_set(self) -> bool {
        self != AnswerThreshold::Off
    }

    /// Whether an answer is held back.
    pub(crate) fn holds_back(self, confidence: &Confidence) -> bool {
        match self {
            AnswerThreshold::Off => false,
            AnswerThreshold::Level(least) => confidence.level < least,
            AnswerThreshold::Probability(least) => match confidence.probability {
                Some(probability) => probability < least,
                None => confidence.level < ConfidenceLevel::Verified,
            },
        }
    }
}

impl FromStr for AnswerThreshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim().to_lowercase();
        match text.as_str() {
            "off" | "" => Ok(AnswerThreshold::Off),
            "unsure" => Ok(AnswerThreshold::Level(ConfidenceLevel::Unsure)),
            "likely" => Ok(AnswerThreshold::Level(ConfidenceLevel::Likely)),
            "verified" => Ok(AnswerThreshold::Level(ConfidenceLevel::Verified)),
            number => match number.parse::<f64>() {
                Ok(least) if (0.0..=1.0).contains(&least) => Ok(AnswerThreshold::Probability(least)),
                _ => Err(format!(
                    "`{text}` is no threshold; write off, unsure, likely, verified or a number from 0 to 1"
                )),
            },
        }
    }
}

impl fmt::Display for AnswerThreshold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AnswerThreshold::Off => f.write_str("off"),
            AnswerThreshold::Level(level) => f.write_str(level.as_str()),
            AnswerThreshold::Probability(least) => write!(f, "{least}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evidence(result: Value) -> AnswerEvidence {
        AnswerEvidence { result: Some(ResultEvidence::of_result(&result)), ..AnswerEvidence::default() }
    }

    #[test]
    fn what_speaks_against_an_answer_lowers_the_word() {
        let rows = json!({"rows": [{"n": 3}], "row_count": 1, "truncated": false});
        let level = |evidence: &AnswerEvidence| evidence.confidence(None).level;
        let plain = evidence(rows.clone());
        assert_eq!(level(&plain), ConfidenceLevel::Likely);
        assert_eq!(plain.confidence(None).probability, None, "a figure that nobody measured is not shown");
        assert_eq!(level(&AnswerEvidence::default()), ConfidenceLevel::Doubtful);
        assert_eq!(level(&AnswerEvidence { unproven: 1, ..plain.clone() }), ConfidenceLevel::Doubtful);
        assert_eq!(
            level(&AnswerEvidence { missing: vec!["bags".to_owned()], ..plain.clone() }),
            ConfidenceLevel::Doubtful
        );
        let unknown = AnswerEvidence { unknown_names: vec!["Tokyo".to_owned()], ..plain.clone() };
        assert_eq!(level(&unknown), ConfidenceLevel::Unsure);
        assert_eq!(level(&AnswerEvidence { is_verified: true, ..plain.clone() }), ConfidenceLevel::Verified);
        let with = |field: &str, value: Value| {
            let mut rows = rows.clone();
            rows[field] = value;
            evidence(rows)
        };
        let repaired = json!({"changes": [{"kind": "table"}]});
        assert_eq!(level(&with("repaired", repaired)), ConfidenceLevel::Unsure);
        assert_eq!(level(&with("repaired", json!({"changes": [{"kind": "dialect"}]}))), ConfidenceLevel::Likely);
        assert_eq!(level(&with("vote", json!({"votes": 1, "of": 3}))), ConfidenceLevel::Doubtful);
        assert_eq!(level(&with("vote", json!({"votes": 2, "of": 2}))), ConfidenceLevel::Likely);
        assert_eq!(level(&with("rows", json!([{"n": 0}]))), ConfidenceLevel::Doubtful);
    }

    #[test]
    fn what_was_not_looked_at_in_time_is_said_and_makes_an_answer_unsure() {
        let rows = json!({"rows": [{"n": 3}], "row_count": 1, "checks_cut": true, "repairs_cut": true});
        let cut = AnswerEvidence { is_search_cut: true, ..evidence(rows) }.confidence(None);
        assert_eq!(cut.level, ConfidenceLevel::Unsure);
        let said = [
            "some checks took too long and were left out",
            "not every text of the query could be looked for in its column in time",
            "whether the data has what is asked for could not be found out in time",
        ];
        assert_eq!(cut.reasons, said);
    }

    #[test]
    fn a_fit_gives_a_figure_and_a_threshold_holds_answers_back() {
        let weights = BTreeMap::from([("found_nothing".to_owned(), -3.0), ("agreement".to_owned(), 2.0)]);
        let fit =
            ConfidenceFit { model: "m".to_owned(), questions: 200, calibration_error: 0.05, intercept: 1.0, weights };
        let found = evidence(json!({"rows": [{"n": 3}], "row_count": 1})).confidence(Some(&fit));
        assert_eq!((found.level, found.probability), (ConfidenceLevel::Unsure, Some(0.73)));
        let nothing = evidence(json!({"rows": [], "row_count": 0})).confidence(Some(&fit));
        assert_eq!((nothing.level, nothing.probability), (ConfidenceLevel::Doubtful, Some(0.12)));
        let threshold = |text: &str| text.parse::<AnswerThreshold>().unwrap();
        assert!(threshold("0.5").holds_back(&nothing) && !threshold("0.5").holds_back(&found));
        assert!(threshold("likely").holds_back(&found) && !threshold("off").holds_back(&nothing));
        assert!("often".parse::<AnswerThreshold>().is_err() && "1.5".parse::<AnswerThreshold>().is_err());
    }
}
