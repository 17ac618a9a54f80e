//! The agent's settings. Their defaults stand here once: the server's settings, help strings and the tools'
//! descriptions take them from [`AgentConfig::DEFAULT`].

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::confidence::{AnswerThreshold, ConfidenceFit};
use crate::prompt_form::PromptForm;

/// Rows of a tool result at most, whatever a call or a setting asks for.
pub const MAX_TOOL_ROWS: usize = 1_000;

/// Limits and switches of the agent, fixed at start.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentConfig {
    /// Wall clock of one run.
    pub run_timeout: Duration,
    /// What that grows to, at most, where the first tokens show that a model of this machine is slow; no longer than
    /// `run_timeout`: it does not grow.
    pub slow_run_timeout: Duration,
    /// Tool calls of one run; the next one ends it with `tool_loop`.
    pub max_tool_calls: u32,
    /// Rows of a tool result when the model does not say; at most [`MAX_TOOL_ROWS`].
    pub default_tool_rows: usize,
    /// Tokens of the first turn's prompt; fewer for a small model.
    pub prompt_tokens: usize,
    /// Tokens of the text of a tool result; fewer for a small model.
    pub tool_result_tokens: usize,
    /// Runs in progress at once.
    pub max_concurrent_runs: usize,
    /// Runs of one caller, by its subject, at once, on all servers that share the catalog; none: seven eighths of this server's, 0:
    /// all of them.
    pub max_concurrent_runs_per_caller: Option<usize>,
    /// Runs that may wait for their turn.
    pub max_queued_runs: usize,
    /// How long one waits.
    pub run_queue_timeout: Duration,
    /// How long the counter-checks of a query may take.
    pub check_times: CheckTimes,
    /// How long a run waits for values of the tables that its prompt shows.
    pub examples_timeout: Duration,
    /// Bytes of the rows of queries that are kept for their callers to fetch by ticket; 0 keeps none.
    pub result_bytes: usize,
    /// How long rows are kept.
    pub result_lifetime: Duration,
    /// Whether there are tools that write; each of their calls waits for a person's approval.
    pub write_tools: bool,
    /// Whether a model name that is not configured is refused; otherwise it means the default model.
    pub strict_models: bool,
    /// Whether a response in the background begins again, once, where its process was killed.
    pub restart_background: bool,
    /// Whether a question that differs from a verified one in values only is answered by its query, without a model.
    pub reuse_verified: bool,
    /// Whether queries are compared with others that the model writes.
    pub voting: Voting,
    /// Below what confidence an answer is held back.
    pub answer_threshold: AnswerThreshold,
    /// Coefficients that make the confidence a probability, for the model that they were fitted to.
    pub confidence: Option<ConfidenceFit>,
    /// The parts of the first prompt; for evaluations.
    pub prompt_form: PromptForm,
}

/// How long the counter-checks of a query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckTimes {
    /// The query of one of them.
    pub one: Duration,
    /// All of them.
    pub all: Duration,
}

impl CheckTimes {
    /// What they may take where nothing else is said.
    pub const DEFAULT: Self = Self { one: Duration::from_secs(1), all: Duration::from_secs(3) };
}

/// Whether the queries of a run are compared with others that the model writes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Voting {
    /// Never.
    #[default]
    Off,
    /// Where a query failed, was repaired in its names, found nothing, or a check found something.
    Auto,
    /// The first query always, with so many candidates.
    Candidates(u32),
}

/// The candidates of a vote.
const CANDIDATES: std::ops::RangeInclusive<u32> = 2..=9;

impl FromStr for Voting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().to_lowercase().as_str() {
            "off" => Ok(Voting::Off),
            "auto" => Ok(Voting::Auto),
            number => match number.parse() {
                Ok(count) if CANDIDATES.contains(&count) => Ok(Voting::Candidates(count)),
                _ => Err(format!(
                    "`{text}` is no way to vote; write off, auto, or {} to {} candidates",
                    CANDIDATES.start(),
                    CANDIDATES.end()
                )),
            },
        }
    }
}

impl fmt::Display for Voting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Voting::Off => f.write_str("off"),
            Voting::Auto => f.write_str("auto"),
            Voting::Candidates(count) => write!(f, "{count}"),
        }
    }
}

/// A setting that is a word or a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum NumberOrWord {
    Number(f64),
    Word(String),
}

fn from_number_or_word<'de, D: Deserializer<'de>, T: FromStr<Err = String>>(deserializer: D) -> Result<T, D::Error> {
    let text = match NumberOrWord::deserialize(deserializer)? {
        NumberOrWord::Number(number) => number.to_string(),
        NumberOrWord::Word(word) => word,
    };
    text.parse().map_err(serde::de::Error::custom)
}

impl Serialize for Voting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Voting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number_or_word(deserializer)
    }
}

impl Serialize for AnswerThreshold {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AnswerThreshold {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        from_number_or_word(deserializer)
    }
}

impl AgentConfig {
    /// The defaults of every setting.
    pub const DEFAULT: Self = Self {
        run_timeout: Duration::from_secs(60),
        slow_run_timeout: Duration::from_secs(300),
        max_tool_calls: 12,
        default_tool_rows: 200,
        prompt_tokens: 4_000,
        tool_result_tokens: 2_000,
        max_concurrent_runs: 16,
        max_concurrent_runs_per_caller: None,
        max_queued_runs: 16,
        run_queue_timeout: Duration::from_secs(1),
        check_times: CheckTimes::DEFAULT,
        examples_timeout: Duration::from_millis(250),
        result_bytes: 256 << 20,
        result_lifetime: Duration::from_secs(30 * 60),
        write_tools: false,
        strict_models: false,
        restart_background: false,
        reuse_verified: true,
        voting: Voting::Off,
        answer_threshold: AnswerThreshold::Off,
        confidence: None,
        prompt_form: PromptForm::DEFAULT,
    };
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
