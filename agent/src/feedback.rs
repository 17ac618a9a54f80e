//! What people say of a run's answer, and the verified query that this proposes: the question with the SQL that answered
//! it, or with the SQL that a person gives in its place. The SQL runs for the sender before it is proposed; a person who
//! may write accepts or rejects it.

use querent_catalog::{NewFeedback, NewVerifiedQuery, RunFeedback, RunRecord, RunStatus, RunVerdict};
use querent_engine::Session;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::error::{AgentError, Result};
use crate::protocols::ask::decode_trace;
use crate::tools::RUN_SQL;

/// What somebody says of a run's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedbackRequest {
    /// What is said.
    pub verdict: RunVerdict,
    /// In words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// The SQL that answers the question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<String>,
    /// The answer as it should be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The question, where that of the run does not say everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// Where bare names of `sql` resolve; as in the run, unless said otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
}

/// Feedback as it was stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FeedbackOutcome {
    /// What is stored, with what it proposes.
    #[serde(flatten)]
    pub feedback: RunFeedback,
    /// Why nothing is proposed, where nothing is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_proposed: Option<&'static str>,
}

const NO_VERDICT_OF_RIGHT: &str = "only what is right is proposed as a verified query";
const NO_SQL: &str = "the answer rests on no SQL query; send one with `sql` and the verdict `corrected`";
const NO_SQL_SENT: &str = "the correction has no SQL; send it with `sql`";
const FAILED: &str =
    "no SQL query of the run succeeded; send the one that answers the question with `sql` and the verdict `corrected`";
const FOLLOW_UP: &str = "the question continues a conversation; send one that stands alone with `question`";
const REUSED: &str = "the answer came from a verified query already";

/// Stores what the session's principal says of a run, in place of what they said before, and proposes a verified query
/// where the verdict is right, or corrected with SQL. Errors: `run_not_found`, `invalid_request`, and those of the SQL.
pub async fn give_feedback(session: &Session, run_id: Uuid, request: FeedbackRequest) -> Result<FeedbackOutcome> {
    let catalog = session.engine().catalog();
    let run = catalog.runs().get(session.principal(), run_id).await?;
    if run.status == RunStatus::Running {
        return Err(invalid("the run is in progress; wait for its end"));
    }
    let has_correction = request.sql.is_some() || request.text.is_some();
    if request.verdict == RunVerdict::Corrected && !has_correction {
        return Err(invalid("a correction needs `sql` or `text`"));
    }
    if request.verdict != RunVerdict::Corrected && has_correction {
        return Err(invalid("`sql` and `text` belong to the verdict `corrected`"));
    }
    let (proposed, not_proposed) = match query_to_propose(&run, &request) {
        Ok(query) => (Some(proposal_of(session, query).await?), None),
        Err(why) => (None, Some(why)),
    };
    let new = NewFeedback {
        run_id,
        verdict: request.verdict,
        comment: request.comment.filter(|text| !text.trim().is_empty()),
        corrected_sql: request.sql,
        corrected_text: request.text,
        proposed,
    };
    let feedback = catalog.feedback().store(session.principal(), new).await?;
    Ok(FeedbackOutcome { feedback, not_proposed })
}

/// A question with the SQL that answers it.
struct AnsweredQuestion {
    question: String,
    sql: String,
    /// Where bare names resolve; `None` where they resolve for everybody who names none.
    database: Option<String>,
}

/// Returns what a run's feedback proposes. Errors: why it proposes nothing.
fn query_to_propose(run: &RunRecord, request: &FeedbackRequest) -> std::result::Result<AnsweredQuestion, &'static str> {
    let frames = frames_of(run);
    let answer =
        frames.iter().rev().find(|frame| frame["event"] == "answer_final").map_or(&Value::Null, |one| &one["data"]);
    let database = request.database.clone().or_else(|| answer["sql_database"].as_str().map(str::to_owned));
    let sql = match request.verdict {
        RunVerdict::Wrong => return Err(NO_VERDICT_OF_RIGHT),
        RunVerdict::Corrected => request.sql.clone().ok_or(NO_SQL_SENT)?,
        RunVerdict::Right if answer["verified_query"].is_object() => return Err(REUSED),
        RunVerdict::Right if has_only_failed(&frames) => return Err(FAILED),
        RunVerdict::Right => answer["sql_used"].as_str().ok_or(NO_SQL)?.to_owned(),
    };
    let question = match &request.question {
        Some(question) => question.clone(),
        None if run.previous_run_id.is_some() => return Err(FOLLOW_UP),
        None => run.question.clone(),
    };
    Ok(AnsweredQuestion { question, sql, database })
}

async fn proposal_of(session: &Session, query: AnsweredQuestion) -> Result<NewVerifiedQuery> {
    let session = session.clone().in_database(query.database.as_deref()).await?;
    Ok(session.query_to_propose(&query.question, &query.sql).await?)
}

/// Returns the frames of a stored run.
fn frames_of(run: &RunRecord) -> Vec<Value> {
    let trace: Value = serde_json::from_str(&decode_trace(run.trace_json.clone())).unwrap_or_default();
    match trace {
        Value::Array(frames) => frames,
        _ => Vec::new(),
    }
}

/// Whether a run has sent SQL, and none of it has run.
fn has_only_failed(frames: &[Value]) -> bool {
    let mut results = frames
        .iter()
        .filter(|frame| frame["event"] == "tool_result" && frame["data"]["tool"] == RUN_SQL)
        .map(|frame| &frame["data"]["result"])
        .peekable();
    results.peek().is_some() && results.all(|result| result["error"].is_object() || result["error"].is_string())
}

fn invalid(message: &str) -> AgentError {
    AgentError::InvalidRequest { message: message.to_owned() }
}
