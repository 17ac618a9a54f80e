//! How the queries of a session are shown to those who may see and end them.

use std::sync::Arc;

use super::Session;
use crate::limits::QueryLabel;

/// The most characters of a statement that `system.queries` shows.
const MAX_SHOWN_CHARS: usize = 1_000;

impl Session {
    /// Returns the session for a request that its client calls `request_id`, by which [`crate::Engine::cancel_request`] finds
    /// its queries.
    pub fn for_request(self, request_id: &str) -> Self {
        Self { request_id: Some(Arc::from(request_id)), ..self }
    }

    /// Returns how a query of this session is shown to those who may see it.
    pub(super) fn label(&self, text: &str) -> QueryLabel {
        QueryLabel {
            subject: self.principal.subject().to_owned(),
            caller: Some(self.principal.clone()),
            database: self.database.as_ref().to_owned(),
            text: text.chars().take(MAX_SHOWN_CHARS).collect(),
            request_id: self.request_id.clone(),
        }
    }
}
