//! Results of the agent's queries: DoGet streams the rows that a run's tool was given, without running the query again.
//!
//! Invariant: it executes nothing, and takes no query's slot; the rows are only those that the run read with its caller's
//! rights.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use querent_agent::{ResultStore, StoredResult, TicketRefusal};
use querent_catalog::Principal;
use querent_engine::ResultTypes;
use tonic::Status;

use super::encode::{self, FlightStream};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// The key of the stream's schema that says `true` where the rows are not all that the query has.
pub(crate) const TRUNCATED_KEY: &str = "querent.truncated";

/// Returns the messages of the result that `ticket` names; `None` for a ticket of another kind.
/// Errors: `invalid_ticket`, `forbidden`, `ticket_expired`.
pub(super) fn result_stream(
    state: &AppState,
    caller: &Principal,
    ticket: &[u8],
) -> Option<Result<FlightStream, ApiError>> {
    if !ResultStore::is_ticket(ticket) {
        return None;
    }
    // A policy that came since holds for rows that were read before it.
    let reach = state.engine.catalog().policies().reach(caller);
    Some(state.agent.results().fetch(ticket, caller, &reach).map(messages).map_err(refusal))
}

fn messages(result: Arc<StoredResult>) -> FlightStream {
    let mut schema = ResultTypes::default().result_schema(result.schema());
    if result.is_truncated() {
        let mark: HashMap<_, _> = [(TRUNCATED_KEY.to_owned(), "true".to_owned())].into();
        let metadata = schema.metadata().clone().into_iter().chain(mark).collect();
        schema = Arc::new(schema.as_ref().clone().with_metadata(metadata));
    }
    let count = result.batches().len();
    // The stream holds the result, and with it what it takes in the store, until it has been read.
    let batches = futures::stream::iter(0..count)
        .map(move |index| result.batches().get(index).cloned().ok_or_else(|| Status::internal("a batch is missing")));
    encode::flight_stream(schema, batches)
}

fn refusal(refusal: TicketRefusal) -> ApiError {
    const AGAIN: &str = "ask again, or run the statement that the answer names";
    let (code, hint) = match refusal {
        TicketRefusal::Unknown => {
            (ErrorCode::InvalidTicket, "tickets do not outlive the server: ask again, or run the answer's statement")
        }
        TicketRefusal::OtherCaller => {
            (ErrorCode::Forbidden, "fetch the rows with the credentials with which the question was asked")
        }
        TicketRefusal::Expired { .. } | TicketRefusal::Displaced => (ErrorCode::TicketExpired, AGAIN),
    };
    ApiError::new(code, refusal.to_string()).with_hint(hint)
}
