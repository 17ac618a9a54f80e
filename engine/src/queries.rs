//! Queries that run now, as others may see and end them.

use chrono::{DateTime, Utc};
use querent_catalog::Principal;
use serde::Serialize;

use crate::engine::Engine;
use crate::limits::running_queries;

/// A query that runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningQueryInfo {
    /// The number by which it is ended.
    pub id: u64,
    /// Whose it is.
    pub subject: String,
    /// Where its bare names resolve.
    pub default_database: String,
    /// Its text, or the beginning of it.
    pub statement: String,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// About what it holds.
    pub memory_bytes: u64,
    /// What its client calls the request: see [`crate::Session::for_request`].
    #[serde(skip)]
    pub request_id: Option<String>,
}

impl Engine {
    /// Returns the queries that `who` may see: an administrator all of them, others their own.
    pub fn queries(&self, who: &Principal) -> Vec<RunningQueryInfo> {
        let running = running_queries(self.catalog().data_dir(), who);
        let info = running.iter().map(|query| RunningQueryInfo {
            id: query.id(),
            subject: query.label().subject.clone(),
            default_database: query.label().database.clone(),
            statement: query.label().text.clone(),
            started_at: query.started_at(),
            memory_bytes: query.held_bytes() as u64,
            request_id: query.label().request_id.as_deref().map(str::to_owned),
        });
        info.collect()
    }

    /// Ends a query that `who` may see, whose error says the reason. Returns whether there was one.
    pub fn cancel_query(&self, who: &Principal, id: u64, reason: Option<&str>) -> bool {
        let running = running_queries(self.catalog().data_dir(), who);
        let query = running.iter().find(|query| query.id() == id);
        query.map(|query| query.cancel(reason)).is_some()
    }

    /// Ends the queries that `who` may see of the requests that their clients call `request_id`; their errors say the
    /// reason. Returns whether there was one.
    pub fn cancel_request(&self, who: &Principal, request_id: &str, reason: Option<&str>) -> bool {
        let mut running = running_queries(self.catalog().data_dir(), who);
        running.retain(|query| query.label().request_id.as_deref() == Some(request_id));
        running.iter().for_each(|query| query.cancel(reason));
        !running.is_empty()
    }
}
