//! Streams that go on where they broke off: every event of such a stream has an `id:` with its run and its place, and a
//! client that sends the last one back gets what follows.

use std::io::Write;

use http::{HeaderMap, HeaderName};
use querent_agent::protocols::Renderer;
use querent_agent::{RunEvent, RunEvents};
use querent_catalog::{Principal, RunStatus};
use uuid::Uuid;

use super::request::header_text;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// The header with the id of the last event that a client has, as browsers send it.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A place in a run's stream, written `<run>:<event>.<frame>`: the frame is counted among those of its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) run_id: Uuid,
    seq: u64,
    frame: usize,
}

impl EventId {
    /// Returns the place that a request names. One that is no place of ours names nothing. Errors: `bad_header`.
    pub(super) fn of_request(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        Ok(header_text(headers, &[LAST_EVENT_ID.as_str()])?.and_then(|id| Self::parse(&id)))
    }

    fn parse(id: &str) -> Option<Self> {
        let (run_id, place) = id.split_once(':')?;
        let (seq, frame) = place.split_once('.')?;
        Some(Self { run_id: Uuid::try_parse(run_id).ok()?, seq: seq.parse().ok()?, frame: frame.parse().ok()? })
    }
}

/// Returns what adds a run's frames with their ids to a chunk, from the one behind `after` on; the end of a run that ended with
/// its server in any case.
///
/// An id comes last in its frame: a client keeps it as soon as it reads the line, and must have the whole data by then.
pub(super) fn push_after<R: Renderer + 'static>(
    run_id: Uuid,
    mut after: Option<EventId>,
) -> impl FnMut(&mut R, &RunEvent, &mut Vec<u8>) + Send + 'static {
    let id_of_run = format!("id: {run_id}:");
    move |renderer, event, chunk| {
        let seq = event.seq;
        if event.ended_with_server() {
            after = None;
        }
        let is_due = |frame: usize| after.is_none_or(|after| (seq, frame) > (after.seq, after.frame));
        // Writing to a vector does not fail.
        let end_frame = |frame: usize, chunk: &mut Vec<u8>| {
            chunk.extend_from_slice(id_of_run.as_bytes());
            let _ = write!(chunk, "{seq}.{frame}\n\n");
        };
        let begun = chunk.len();
        if renderer.push_piece(event, chunk) {
            if is_due(0) {
                end_frame(0, chunk);
            } else {
                chunk.truncate(begun);
            }
            return;
        }
        for (index, frame) in renderer.frame(event).iter().enumerate().filter(|(index, _)| is_due(*index)) {
            frame.push_lines(chunk);
            end_frame(index, chunk);
        }
    }
}

/// Returns all events of a run in progress, or of a stored one; `None` if it is not the caller's, or was cancelled because
/// nobody came back for it.
pub(super) async fn events_again(
    state: &AppState,
    principal: &Principal,
    run_id: Uuid,
) -> Result<Option<RunEvents>, ApiError> {
    match state.agent.follow(principal, run_id, 0).await {
        Ok(Some(run)) => return Ok(Some(run.events)),
        Ok(None) => {}
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    let stored = match state.agent.get_run(principal, run_id).await {
        Ok(stored) => stored,
        Err(error) if ErrorCode::from(&error) == ErrorCode::RunNotFound => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    if !stored.retained || stored.status == RunStatus::Cancelled || stored.subject != principal.subject() {
        return Ok(None);
    }
    Ok(Some(state.agent.events(principal, run_id, 0).await?))
}
