//! Voting by execution: the model answers the question again in other ways, the queries run under the run's limits, and
//! those that return the same rows are of one opinion. The largest group wins. What was compared is in the result.
//!
//! A vote ends as soon as more than half of its candidates agree, and before the run's time is at risk: a candidate is
//! asked for only where the time that the last reply took fits several times into what is left.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures::StreamExt;
use serde_json::{Map, Value, json};

use super::Turns;
use super::calls::{CallOutcome, own_name};
use crate::config::Voting;
use crate::error::AgentError;
use crate::event::ToolCallStarted;
use crate::models::actions::TurnRequest;
use crate::models::{ChatMessage, ChatRole, ModelEvent, TokenUsage, ToolChoice};
use crate::repair::query_in_database;
use crate::run::elapsed_ms;
use crate::tools::{self, ToolError, ToolOutput};

/// Candidates of a vote that is held because something is in doubt.
const DOUBTFUL_CANDIDATES: usize = 3;
/// How many replies as slow as the last one must fit into the time that is left.
const REPLIES_LEFT: u32 = 3;
/// The field of a result that says how the vote went.
const VOTE: &str = "vote";
/// Kinds of repairs after which another reading was possible.
const REPAIRS_IN_DOUBT: [&str; 4] = ["table", "column", "join", "grouping"];
/// How a query is asked for in another form.
const FENCED: &str =
    "Write the one SQL query that answers this. Reply with the query in a ```sql fence and nothing else.";

/// The rows of a query, whatever their order and that of the columns.
pub(super) type ComparedRows = BTreeSet<Vec<String>>;

/// A query that was tried, and what came of it.
struct VoteCandidate {
    sql: String,
    outcome: Result<ToolOutput, ToolError>,
    rows: Option<ComparedRows>,
}

impl VoteCandidate {
    fn new(sql: String, outcome: Result<ToolOutput, ToolError>) -> Self {
        let rows = outcome.as_ref().ok().map(|output| row_set(&output.json));
        Self { sql, outcome, rows }
    }

    fn finds_something(&self) -> bool {
        let is_nothing = |value: &String| value.is_empty() || value == "0";
        self.rows.as_ref().is_some_and(|rows| !rows.iter().all(|row| row.iter().all(is_nothing)))
    }
}

impl Turns<'_> {
    /// Whether a vote is held on the result of a call.
    pub(super) fn votes_on(&self, call: &ToolCallStarted, outcome: &CallOutcome) -> bool {
        let is_in_doubt = match self.task.config.voting {
            Voting::Off => return false,
            Voting::Auto => is_in_doubt(outcome),
            Voting::Candidates(_) => !matches!(&outcome.0, Err(error) if !error.may_retry),
        };
        is_in_doubt && !self.has_voted && call.tool == tools::RUN_SQL && self.task.request.client_tools.is_empty()
    }

    /// Compares the query of a call with others that the model writes. Returns what the largest group returns.
    pub(super) async fn vote(&self, call: &ToolCallStarted, (outcome, took_ms): CallOutcome) -> CallOutcome {
        let wanted = match self.task.config.voting {
            Voting::Candidates(count) => count as usize,
            Voting::Off | Voting::Auto => DOUBTFUL_CANDIDATES,
        };
        let begun = Instant::now();
        let sent = call.args["sql"].as_str().or(call.args["query"].as_str()).unwrap_or_default().to_owned();
        let mut candidates = vec![VoteCandidate::new(sent, outcome)];
        let mut ended_by = "all candidates";
        while candidates.len() < wanted {
            if leading_votes(&candidates) * 2 > wanted {
                ended_by = "agreement";
                break;
            }
            if self.turn_took.saturating_mul(REPLIES_LEFT) > self.time_left() {
                ended_by = "time";
                break;
            }
            let number = u32::try_from(candidates.len()).unwrap_or(u32::MAX);
            match self.candidate_query(number).await {
                Ok(Some(mut arguments)) => {
                    let mut sql = tools::sql_argument(&arguments).unwrap_or_default();
                    // Names that are qualified resolve wherever the query is run again.
                    let database = arguments.get("database").and_then(Value::as_str);
                    let qualified =
                        database.and_then(|name| query_in_database(&sql, name, &self.context.at_hand.tables));
                    if let Some(qualified) = qualified {
                        arguments.remove("database");
                        arguments.remove("query");
                        arguments.insert("sql".to_owned(), json!(qualified));
                        sql = qualified;
                    }
                    // A query that is there already has the same rows.
                    let known = candidates.iter().find(|known| same_text(&known.sql, &sql));
                    let outcome = match known {
                        Some(known) => known.outcome.clone(),
                        None => {
                            arguments.remove("max_rows");
                            tools::call(&self.context, tools::RUN_SQL, &Value::Object(arguments)).await
                        }
                    };
                    candidates.push(VoteCandidate::new(sql, outcome));
                }
                Ok(None) => {
                    let none = ToolError::refusal("no_query", "the model wrote no query");
                    candidates.push(VoteCandidate::new(String::new(), Err(none)));
                }
                Err(error) => {
                    tracing::warn!(code = error.code(), %error, "a candidate of a vote failed; the vote ends");
                    ended_by = "a failure of the model";
                    break;
                }
            }
        }
        (elected(candidates, ended_by), took_ms + elapsed_ms(begun))
    }

    /// Asks the model for another query: the question in another form, or its own prompt once more with another draw.
    async fn candidate_query(&self, number: u32) -> Result<Option<Map<String, Value>>, AgentError> {
        let system = self.conversation.all().first().cloned();
        let mut question = self.asked_question().unwrap_or_else(|| ChatMessage::text(ChatRole::User, ""));
        let is_fenced = !number.is_multiple_of(2);
        // The likeliest reply to the other form comes first.
        let variation = if is_fenced { number - 1 } else { number };
        if is_fenced {
            question.content = format!("{}\n\n{FENCED}", question.content);
        }
        // The system message is the same in both: a server that caches prompts has read it.
        let messages = system.into_iter().chain([question]).collect();
        let request = self.turn_request(messages);
        let request = match is_fenced {
            true => {
                TurnRequest { tools: Vec::new(), tool_choice: ToolChoice::None, may_answer: true, variation, ..request }
            }
            false => TurnRequest { may_answer: false, variation, ..request },
        };
        self.written_query(request).await
    }

    /// Returns the question, as it was put to the model.
    pub(super) fn asked_question(&self) -> Option<ChatMessage> {
        let is_question = |message: &&ChatMessage| message.role == ChatRole::User && message.tool_name.is_none();
        self.conversation.all().iter().rev().find(is_question).cloned()
    }

    /// Returns the query of a reply outside the conversation: the arguments of the call that it makes, or what is in its fence.
    pub(super) async fn written_query(&self, request: TurnRequest) -> Result<Option<Map<String, Value>>, AgentError> {
        let (mut text, mut called) = (String::new(), None);
        let mut usage = TokenUsage::default();
        let mut pieces = self.model.turn(request).await?;
        while let Some(piece) = pieces.next().await {
            match piece? {
                ModelEvent::Text(piece) => text.push_str(&piece),
                ModelEvent::ToolCall(call) => {
                    let name = own_name(&call.name, &self.task.request.client_tools);
                    if name == tools::RUN_SQL && called.is_none() {
                        called = tools::arguments_object(&call.arguments).ok();
                    }
                }
                ModelEvent::Done { usage: used, .. } => usage = used,
                ModelEvent::Thinking(_) => {}
            }
        }
        self.count(usage);
        Ok(called.or_else(|| {
            let sql = fenced(&text)?;
            Some(Map::from_iter([("sql".to_owned(), json!(sql))]))
        }))
    }

    pub(super) fn time_left(&self) -> Duration {
        self.task.allowed_time().saturating_sub(self.task.started.elapsed())
    }
}

/// Whether something about the result of a query says that it may not be what was asked.
fn is_in_doubt((outcome, _): &CallOutcome) -> bool {
    let output = match outcome {
        Ok(output) => output,
        Err(error) => return error.may_retry,
    };
    let changes = output.json["repaired"]["changes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_guess = |change: &Value| change["kind"].as_str().is_some_and(|kind| REPAIRS_IN_DOUBT.contains(&kind));
    let rows = output.json["rows"].as_array().map(Vec::as_slice).unwrap_or_default();
    rows.is_empty() || changes.iter().any(is_guess) || output.json["checks"].is_array()
}

/// Returns how many candidates the largest group has.
fn leading_votes(candidates: &[VoteCandidate]) -> usize {
    candidates.iter().map(|candidate| votes_of(candidate, candidates)).max().unwrap_or_default()
}

fn votes_of(candidate: &VoteCandidate, candidates: &[VoteCandidate]) -> usize {
    match &candidate.rows {
        Some(_) => candidates.iter().filter(|other| other.rows == candidate.rows).count(),
        None => 0,
    }
}

/// Returns the outcome of the largest group; of equal ones, that which finds something, then the earliest.
fn elected(mut candidates: Vec<VoteCandidate>, ended_by: &str) -> Result<ToolOutput, ToolError> {
    let rank = |candidate: &VoteCandidate| (votes_of(candidate, &candidates), candidate.finds_something());
    let mut chosen = 0;
    for index in 1..candidates.len() {
        if let (Some(best), Some(one)) = (candidates.get(chosen), candidates.get(index))
            && rank(one) > rank(best)
        {
            chosen = index;
        }
    }
    let votes = leading_votes(&candidates);
    let shown: Vec<Value> = candidates.iter().map(|candidate| shown(candidate, &candidates)).collect();
    let vote = json!({
        "candidates": shown, "chosen": chosen, "votes": votes, "of": candidates.len(), "ended_by": ended_by,
    });
    let VoteCandidate { sql, outcome, .. } = candidates.swap_remove(chosen);
    let mut output = outcome?;
    output.json[VOTE] = vote;
    if chosen > 0 {
        let ran = output.ran.take().unwrap_or(sql);
        output.text = format!("Of several queries this one was chosen, as most agree: {ran}\n{}", output.text);
        output.ran = Some(ran);
    }
    Ok(output)
}

/// Returns a candidate for people: its query, and its rows or its error.
fn shown(candidate: &VoteCandidate, all: &[VoteCandidate]) -> Value {
    let group = all.iter().position(|other| other.rows.is_some() && other.rows == candidate.rows);
    match &candidate.outcome {
        Ok(output) => json!({
            "sql": output.ran.as_ref().unwrap_or(&candidate.sql),
            "row_count": output.json["row_count"],
            "first_row": output.json["rows"][0],
            "group": group,
        }),
        Err(error) => json!({ "sql": candidate.sql, "error": error.code }),
    }
}

pub(super) fn row_set(result: &Value) -> ComparedRows {
    let rows = result["rows"].as_array().into_iter().flatten().filter_map(Value::as_object);
    rows.map(|row| {
        let mut values: Vec<String> = row.values().map(value_text).collect();
        values.sort_unstable();
        values
    })
    .collect()
}

/// Returns a value as it is compared: numbers in one form.
fn value_text(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.trim().to_owned(),
        other => other.to_string(),
    };
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => format!("{}", (number * 1e6).round() / 1e6),
        _ => text,
    }
}

fn same_text(left: &str, right: &str) -> bool {
    let plain = |sql: &str| sql.trim().trim_end_matches(';').split_whitespace().collect::<Vec<_>>().join(" ");
    plain(left) == plain(right)
}

/// Returns what stands in the first fence of a text, or the text where it is a query.
fn fenced(text: &str) -> Option<String> {
    let inner = match text.find("```") {
        Some(open) => {
            let inner = text.get(open + 3..)?;
            let inner = inner.strip_prefix("sql").unwrap_or(inner);
            inner.find("```").map_or(inner, |close| &inner[..close])
        }
        None => text,
    };
    let sql = inner.trim().trim_end_matches(';').trim();
    let first = sql.split_whitespace().next()?.to_lowercase();
    ["select", "with"].contains(&first.as_str()).then(|| sql.to_owned())
}
