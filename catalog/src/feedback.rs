//! What people say of runs (right, wrong, corrected), and the verified queries that this proposes. A proposal waits until
//! somebody who may write accepts or rejects it; nothing is taught by a click alone.
//!
//! Feedback is its sender's own: one for each run and subject. It is deleted with the run.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::knowledge::{CatalogKnowledge, NewVerifiedQuery, VerifiedQuery, insert_query};
use crate::model::{Page, PageRequest, PageToken, TableName};
use crate::policy::Rights;
use crate::principal::Principal;
use crate::store::ownership::{owner_filter, require_readable_run, require_run};
use crate::store::rows::{MAX_PAGE, parse_id_token, read_json, read_time, read_uuid, time_from_micros, to_json};
use crate::store::{SnapshotView, Store};

/// The most bytes of a comment, of a corrected text, of corrected SQL.
const MAX_TEXT_BYTES: usize = 32 * 1024;
/// Rows read at a time while a listing skips what may not be seen.
const BATCH: usize = 1_000;
const FEEDBACK: &str = "feedback";
const PROPOSAL: &str = "proposed query";
const PROPOSAL_COLUMNS: &str =
    "id, run_id, subject, state, database, question, sql, tables, created_at, decided_at, decided_by";

/// What somebody says of a run's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunVerdict {
    /// It is right.
    Right,
    /// It is wrong.
    Wrong,
    /// It is wrong, and this is what is right.
    Corrected,
}

impl RunVerdict {
    /// The verdict in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            RunVerdict::Right => "right",
            RunVerdict::Wrong => "wrong",
            RunVerdict::Corrected => "corrected",
        }
    }

    fn from_str(text: &str) -> Option<Self> {
        [RunVerdict::Right, RunVerdict::Wrong, RunVerdict::Corrected].into_iter().find(|one| one.as_str() == text)
    }
}

/// Feedback to store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFeedback {
    /// The run.
    pub run_id: Uuid,
    /// What is said.
    pub verdict: RunVerdict,
    /// In words.
    pub comment: Option<String>,
    /// The SQL that answers the question.
    pub corrected_sql: Option<String>,
    /// The answer as it should be.
    pub corrected_text: Option<String>,
    /// The verified query that this proposes, after its SQL ran.
    pub proposed: Option<NewVerifiedQuery>,
}

/// Feedback as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunFeedback {
    /// The run.
    pub run_id: Uuid,
    /// Who says it.
    pub subject: String,
    /// What is said.
    pub verdict: RunVerdict,
    /// In words.
    pub comment: Option<String>,
    /// The SQL that answers the question.
    pub corrected_sql: Option<String>,
    /// The answer as it should be.
    pub corrected_text: Option<String>,
    /// When it was given first.
    pub created_at: DateTime<Utc>,
    /// When it was given last.
    pub updated_at: DateTime<Utc>,
    /// What it proposes.
    pub proposal: Option<QueryProposal>,
}

/// Whether a proposal was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProposalState {
    /// Nobody has decided.
    Waiting,
    /// It is a verified query now.
    Accepted,
    /// It is not to become one.
    Rejected,
}

impl ProposalState {
    /// The state in the store and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            ProposalState::Waiting => "waiting",
            ProposalState::Accepted => "accepted",
            ProposalState::Rejected => "rejected",
        }
    }

    fn from_str(text: &str) -> Option<Self> {
        [ProposalState::Waiting, ProposalState::Accepted, ProposalState::Rejected]
            .into_iter()
            .find(|one| one.as_str() == text)
    }
}

/// A question with SQL that answers it, as somebody's feedback proposes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct QueryProposal {
    /// Its id.
    pub id: i64,
    /// The run that it comes from.
    pub run_id: Uuid,
    /// Who proposes it.
    pub subject: String,
    /// Whether it was decided.
    pub state: ProposalState,
    /// The database in which bare names in `sql` resolve.
    pub database: String,
    /// The question.
    pub question: String,
    /// A single query.
    pub sql: String,
    /// The tables it reads.
    pub tables: Vec<TableName>,
    /// When it was proposed.
    pub created_at: DateTime<Utc>,
    /// When it was decided.
    pub decided_at: Option<DateTime<Utc>>,
    /// Who decided.
    pub decided_by: Option<String>,
}

impl QueryProposal {
    fn is_visible(&self, rights: Rights<'_>) -> bool {
        rights.may_see_whole(&self.database, &self.tables)
    }
}

/// Feedback and proposals. Made by [`Catalog::feedback`](crate::Catalog::feedback).
#[derive(Clone, Copy)]
pub struct CatalogFeedback<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogFeedback<'_> {
    /// Stores the caller's feedback on a run, in place of earlier one. A proposal that waits is replaced, or withdrawn
    /// where none is made now. Errors: `run_not_found`, `invalid_object`.
    pub async fn store(self, who: &Principal, new: NewFeedback) -> Result<RunFeedback> {
        let who = who.clone();
        self.store.write_rows(move |connection| store(connection, &who, &new)).await
    }

    /// Returns the feedback on a run, oldest first. Errors: `run_not_found`, `run_withheld`.
    pub async fn on_run(self, who: &Principal, run_id: Uuid) -> Result<Vec<RunFeedback>> {
        let (who, reach) = (who.clone(), Rights::new(who, &self.store.policies()).reach());
        self.store
            .read(move |connection| {
                require_run(connection, owner_filter(&who), run_id)?;
                require_readable_run(connection, &reach, run_id)?;
                on_run(connection, run_id, None)
            })
            .await
    }

    /// Deletes the caller's feedback on a run, and what it proposes unless that was accepted. Returns whether there was
    /// any. Errors: `run_not_found`.
    pub async fn remove(self, who: &Principal, run_id: Uuid) -> Result<bool> {
        let who = who.clone();
        self.store
            .write_rows(move |connection| {
                require_run(connection, owner_filter(&who), run_id)?;
                withdraw(connection, &who, run_id)?;
                let removed = connection
                    .prepare_cached("DELETE FROM querent_run_feedback WHERE run_id = ? AND subject = ?")?
                    .execute(params![run_id.to_string(), who.subject()])?;
                Ok(removed > 0)
            })
            .await
    }

    /// Lists the proposals over tables that the caller may see, oldest first.
    pub async fn proposals(
        self,
        who: &Principal,
        state: Option<ProposalState>,
        page: PageRequest,
    ) -> Result<Page<QueryProposal>> {
        let (who, policies) = (who.clone(), self.store.policies());
        self.store.read(move |connection| proposals(connection, Rights::new(&who, &policies), state, &page)).await
    }

    /// Returns a proposal over tables that the caller may see. Errors: `object_not_found`.
    pub async fn proposal(self, who: &Principal, id: i64) -> Result<QueryProposal> {
        let (who, policies) = (who.clone(), self.store.policies());
        self.store.read(move |connection| visible_proposal(connection, Rights::new(&who, &policies), id)).await
    }

    /// Records that a proposal is not to be taught. Errors: `object_not_found`, `invalid_object` where it was decided before.
    pub async fn reject(self, who: &Principal, id: i64) -> Result<QueryProposal> {
        let (who, policies) = (who.clone(), self.store.policies());
        let state = ProposalState::Rejected;
        self.store.write_rows(move |connection| decide(connection, Rights::new(&who, &policies), id, state)).await
    }
}

impl CatalogKnowledge<'_> {
    /// Stores the query of a proposal as a verified one and records that it was accepted: both, or neither, since it may have been
    /// decided, replaced or taken back while its SQL ran. Only `querent_engine::Session` may call it: it runs the SQL first.
    /// Errors: `object_not_found`, `invalid_object`, `conflict`.
    pub async fn accept_proposal(
        self,
        who: &Principal,
        proposal: &QueryProposal,
        new: NewVerifiedQuery,
    ) -> Result<(QueryProposal, VerifiedQuery)> {
        let (who, read) = (who.clone(), proposal.clone());
        let accept = move |view: &SnapshotView<'_>| {
            let accepted = decide(view.connection, view.rights(&who), read.id, ProposalState::Accepted)?;
            if (&accepted.question, &accepted.sql) != (&read.question, &read.sql) {
                return Err(CatalogError::Conflict { object: PROPOSAL.to_owned() });
            }
            Ok((accepted, insert_query(view, &who, &new)?))
        };
        let accepted = self.store.write_ours(accept).await;
        self.cache.forget();
        accepted
    }
}

fn store(connection: &StoreConnection, who: &Principal, new: &NewFeedback) -> Result<RunFeedback> {
    require_run(connection, owner_filter(who), new.run_id)?;
    for (field, text) in
        [("comment", &new.comment), ("corrected_sql", &new.corrected_sql), ("corrected_text", &new.corrected_text)]
    {
        if text.as_ref().is_some_and(|text| text.len() > MAX_TEXT_BYTES) {
            let reason = format!("{field} is longer than {MAX_TEXT_BYTES} bytes");
            return Err(CatalogError::InvalidObject { what: FEEDBACK, reason });
        }
    }
    let (run_id, now) = (new.run_id.to_string(), Utc::now().timestamp_micros());
    connection
        .prepare_cached(
            "INSERT INTO querent_run_feedback VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?7) ON CONFLICT (run_id, subject)
             DO UPDATE SET verdict = ?3, comment = ?4, corrected_sql = ?5, corrected_text = ?6, updated_at = ?7",
        )?
        .execute(params![
            run_id,
            who.subject(),
            new.verdict.as_str(),
            new.comment,
            new.corrected_sql,
            new.corrected_text,
            now
        ])?;
    withdraw(connection, who, new.run_id)?;
    if let Some(proposed) = &new.proposed {
        // What was decided stands, unless something else is proposed now.
        connection
            .prepare_cached(
                "INSERT INTO querent_query_proposal
                 (run_id, subject, state, database, question, sql, tables, created_at)
                 VALUES (?1, ?2, 'waiting', ?3, ?4, ?5, ?6, ?7) ON CONFLICT (run_id, subject) DO UPDATE SET
                 state = 'waiting', database = ?3, question = ?4, sql = ?5, tables = ?6, created_at = ?7,
                 decided_at = NULL, decided_by = NULL
                 WHERE querent_query_proposal.sql <> ?5 OR querent_query_proposal.question <> ?4",
            )?
            .execute(params![
                run_id,
                who.subject(),
                proposed.database,
                proposed.question,
                proposed.sql,
                to_json(&proposed.tables)?,
                now
            ])?;
    }
    let mut stored = on_run(connection, new.run_id, Some(who.subject()))?;
    stored.pop().ok_or_else(|| CatalogError::Internal("feedback was not there after it was stored".to_owned()))
}

/// Deletes what the caller proposes by a run, unless it was decided.
fn withdraw(connection: &StoreConnection, who: &Principal, run_id: Uuid) -> Result<()> {
    connection
        .prepare_cached("DELETE FROM querent_query_proposal WHERE run_id = ? AND subject = ? AND state = 'waiting'")?
        .execute(params![run_id.to_string(), who.subject()])?;
    Ok(())
}

fn on_run(connection: &StoreConnection, run_id: Uuid, subject: Option<&str>) -> Result<Vec<RunFeedback>> {
    let mut statement = connection.prepare_cached(
        "SELECT run_id, subject, verdict, comment, corrected_sql, corrected_text, created_at, updated_at
         FROM querent_run_feedback WHERE run_id = ?1 AND (?2 IS NULL OR subject = ?2) ORDER BY created_at, subject",
    )?;
    let rows = statement.query_map(params![run_id.to_string(), subject], read_feedback)?;
    let mut found: Vec<RunFeedback> = rows.collect::<DatabaseResult<_>>()?;
    for feedback in &mut found {
        feedback.proposal = connection
            .prepare_cached(&format!(
                "SELECT {PROPOSAL_COLUMNS} FROM querent_query_proposal WHERE run_id = ? AND subject = ?"
            ))?
            .query_row(params![run_id.to_string(), feedback.subject], read_proposal)
            .optional()?;
    }
    Ok(found)
}

fn read_feedback(row: &StoreRow<'_>) -> DatabaseResult<RunFeedback> {
    Ok(RunFeedback {
        run_id: read_uuid(row, 0)?.unwrap_or_default(),
        subject: row.get(1)?,
        verdict: RunVerdict::from_str(&row.get::<String>(2)?).unwrap_or(RunVerdict::Wrong),
        comment: row.get(3)?,
        corrected_sql: row.get(4)?,
        corrected_text: row.get(5)?,
        created_at: read_time(row, 6)?,
        updated_at: read_time(row, 7)?,
        proposal: None,
    })
}

fn read_proposal(row: &StoreRow<'_>) -> DatabaseResult<QueryProposal> {
    Ok(QueryProposal {
        id: row.get(0)?,
        run_id: read_uuid(row, 1)?.unwrap_or_default(),
        subject: row.get(2)?,
        state: ProposalState::from_str(&row.get::<String>(3)?).unwrap_or(ProposalState::Rejected),
        database: row.get(4)?,
        question: row.get(5)?,
        sql: row.get(6)?,
        tables: read_json(row, 7)?,
        created_at: read_time(row, 8)?,
        decided_at: row.get::<Option<i64>>(9)?.and_then(time_from_micros),
        decided_by: row.get(10)?,
    })
}

fn proposals(
    connection: &StoreConnection,
    rights: Rights<'_>,
    state: Option<ProposalState>,
    page: &PageRequest,
) -> Result<Page<QueryProposal>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let mut position = parse_id_token(page, PROPOSAL)?;
    let mut items: Vec<QueryProposal> = Vec::new();
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {PROPOSAL_COLUMNS} FROM querent_query_proposal WHERE id > ?1 AND (?2 IS NULL OR state = ?2)
         ORDER BY id LIMIT ?3"
    ))?;
    loop {
        let rows = statement
            .query_map(params![position, state.map(ProposalState::as_str), BATCH as i64], read_proposal)?
            .collect::<DatabaseResult<Vec<_>>>()?;
        let is_last = rows.len() < BATCH;
        for proposal in rows {
            position = proposal.id;
            if !proposal.is_visible(rights) {
                continue;
            }
            if items.len() == limit {
                let next = items.last().map(|last| PageToken(last.id.to_string()));
                return Ok(Page { items, next });
            }
            items.push(proposal);
        }
        if is_last {
            return Ok(Page { items, next: None });
        }
    }
}

fn visible_proposal(connection: &StoreConnection, rights: Rights<'_>, id: i64) -> Result<QueryProposal> {
    let found = connection
        .prepare_cached(&format!("SELECT {PROPOSAL_COLUMNS} FROM querent_query_proposal WHERE id = ?"))?
        .query_row([id], read_proposal)
        .optional()?;
    let unknown = || CatalogError::ObjectNotFound { what: PROPOSAL, id: id.to_string() };
    found.filter(|proposal| proposal.is_visible(rights)).ok_or_else(unknown)
}

fn decide(connection: &StoreConnection, rights: Rights<'_>, id: i64, state: ProposalState) -> Result<QueryProposal> {
    let before = visible_proposal(connection, rights, id)?;
    if before.state != ProposalState::Waiting {
        let reason = format!("proposal {id} was {} before", before.state.as_str());
        return Err(CatalogError::InvalidObject { what: PROPOSAL, reason });
    }
    connection
        .prepare_cached("UPDATE querent_query_proposal SET state = ?2, decided_at = ?3, decided_by = ?4 WHERE id = ?1")?
        .execute(params![id, state.as_str(), Utc::now().timestamp_micros(), rights.principal().subject()])?;
    visible_proposal(connection, rights, id)
}
