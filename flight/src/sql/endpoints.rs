//! A query whose rows are fetched at several endpoints at once, for clients that ask for it: it runs once, and each batch
//! goes to whichever endpoint asks next, so that messages are made and sent side by side.
//!
//! Invariants: a row reaches one endpoint; an endpoint is fetched once; one that is left before its end fails the others,
//! so that no client takes a part of the rows for all of them. Rows that have an order have one endpoint.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Wake, Waker};
use std::time::SystemTime;

use arrow::array::RecordBatch;
use arrow_flight::FlightEndpoint;
use arrow_schema::SchemaRef;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use parking_lot::Mutex;
use querent_engine::QueryStream;
use tokio_util::sync::CancellationToken;
use tonic::{Code, Status};

use super::caller::FlightCaller;
use super::encode::{self, FlightStream};
use super::running::RunningTicket;
use super::statement::{PlannedStatement, Statements, cancelled, schema_bytes};
use super::ticket::{StatementTicket, unix_ms};
use crate::admission::QueryPermit;
use crate::error::{ApiError, ErrorCode};

/// The most endpoints of one query.
pub(super) const MAX_ENDPOINTS: u32 = 16;
/// The most queries with several endpoints whose tickets are good.
const MAX_SHARED_QUERIES: usize = 10_000;

/// The queries with several endpoints that have begun, by the ids of their tickets, until these expire.
#[derive(Default)]
pub(super) struct SharedQueries {
    by_id: Mutex<HashMap<Bytes, KnownQuery>>,
}

struct KnownQuery {
    expires_unix_ms: u64,
    query: Arc<SharedQuery>,
}

/// One query and its endpoints.
#[derive(Default)]
struct SharedQuery {
    schema: OnceLock<SchemaRef>,
    /// Held by the endpoint that begins the query.
    beginning: tokio::sync::Mutex<()>,
    /// Locked while it is polled, and never while an endpoint waits: one whose client does not read is not polled, and would keep
    /// the rows from the others.
    rows: Mutex<SharedQueryState>,
    waiting: Arc<WaitingEndpoints>,
    /// Cancelled when an endpoint is left before its end.
    left: CancellationToken,
}

/// The endpoints that wait for rows. All are woken: any of them may be one that nobody polls.
#[derive(Default)]
struct WaitingEndpoints {
    wakers: Mutex<Vec<Waker>>,
}

impl WaitingEndpoints {
    fn add(&self, waker: &Waker) {
        let mut wakers = self.wakers.lock();
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    fn wake_all(&self) {
        let wakers = std::mem::take(&mut *self.wakers.lock());
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Wake for WaitingEndpoints {
    fn wake(self: Arc<Self>) {
        self.wake_all();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.wake_all();
    }
}

#[derive(Default)]
enum SharedQueryState {
    #[default]
    NotBegun,
    Running(Box<RunningRows>),
    Ended,
    Failed(ApiError),
}

/// The rows that no endpoint has taken yet.
pub(super) struct RunningRows {
    pub(super) schema: SchemaRef,
    pub(super) rows: QueryStream,
    pub(super) permit: QueryPermit,
}

impl SharedQueries {
    /// Returns the query of a ticket. Errors: `too_many_requests`.
    fn query_of(&self, ticket: &StatementTicket) -> Result<Arc<SharedQuery>, ApiError> {
        let now = unix_ms(SystemTime::now());
        let mut by_id = self.by_id.lock();
        if let Some(known) = by_id.get(&ticket.id) {
            return Ok(Arc::clone(&known.query));
        }
        by_id.retain(|_, known| known.expires_unix_ms > now);
        if by_id.len() >= MAX_SHARED_QUERIES {
            let message = format!("{MAX_SHARED_QUERIES} queries with several endpoints are known, which is the limit");
            return Err(ApiError::new(ErrorCode::TooManyRequests, message).with_hint("ask for one endpoint"));
        }
        let query = Arc::new(SharedQuery::default());
        let known = KnownQuery { expires_unix_ms: ticket.expires_unix_ms(), query: Arc::clone(&query) };
        by_id.insert(ticket.id.clone(), known);
        Ok(query)
    }
}

impl SharedQuery {
    /// Begins the query unless another endpoint has. Returns the schema of its rows.
    async fn begin(&self, begun: impl Future<Output = Result<RunningRows, ApiError>>) -> Result<SchemaRef, ApiError> {
        let beginning = self.beginning.lock().await;
        let has_begun = !matches!(*self.rows.lock(), SharedQueryState::NotBegun);
        if !has_begun {
            let running = begun.await?;
            // Nobody else has begun it meanwhile.
            let _ = self.schema.set(Arc::clone(&running.schema));
            *self.rows.lock() = SharedQueryState::Running(Box::new(running));
        }
        drop(beginning);
        self.schema.get().cloned().ok_or_else(|| ApiError::internal("a query has begun without a schema"))
    }

    /// Returns the next batch that no endpoint has taken.
    async fn next(&self) -> Option<Result<RecordBatch, ApiError>> {
        tokio::select! {
            next = poll_fn(|context| self.poll_next(context)) => next,
            () = self.left.cancelled() => self.fail(left_early()),
        }
    }

    fn poll_next(&self, context: &mut Context<'_>) -> Poll<Option<Result<RecordBatch, ApiError>>> {
        let mut state = self.rows.lock();
        let running = match &mut *state {
            SharedQueryState::Running(running) => running,
            SharedQueryState::Failed(error) => return Poll::Ready(Some(Err(error.clone()))),
            SharedQueryState::NotBegun | SharedQueryState::Ended => return Poll::Ready(None),
        };
        self.waiting.add(context.waker());
        let all = Waker::from(Arc::clone(&self.waiting));
        let Poll::Ready(next) = running.rows.poll_next_unpin(&mut Context::from_waker(&all)) else {
            return Poll::Pending;
        };
        let next = next.map(|batch| batch.map_err(ApiError::from));
        match &next {
            Some(Ok(_)) => {}
            Some(Err(error)) => state.end(SharedQueryState::Failed(error.clone())),
            None => state.end(SharedQueryState::Ended),
        }
        drop(state);
        // The rows now wake this endpoint alone, and it may not ask again.
        self.waiting.wake_all();
        Poll::Ready(next)
    }

    /// Ends the query with an error, unless it has ended.
    fn fail(&self, error: ApiError) -> Option<Result<RecordBatch, ApiError>> {
        let mut state = self.rows.lock();
        if matches!(*state, SharedQueryState::Running(_)) {
            state.end(SharedQueryState::Failed(error));
        }
        match &*state {
            SharedQueryState::Failed(error) => Some(Err(error.clone())),
            SharedQueryState::NotBegun | SharedQueryState::Running(_) | SharedQueryState::Ended => None,
        }
    }
}

impl SharedQueryState {
    fn end(&mut self, ended: Self) {
        let has_failed = matches!(ended, SharedQueryState::Failed(_));
        if let SharedQueryState::Running(mut running) = std::mem::replace(self, ended) {
            match has_failed {
                true => running.permit.failed(),
                false => running.permit.succeeded(running.rows.stats().rows),
            }
        }
    }
}

/// One endpoint's share of a query; left early, it fails the query.
struct Share {
    query: Arc<SharedQuery>,
    is_whole: bool,
}

impl Drop for Share {
    fn drop(&mut self) {
        if !self.is_whole {
            // Ended here: there may be no other endpoint that asks for its rows.
            self.query.fail(left_early());
            self.query.left.cancel();
        }
    }
}

impl Statements {
    /// Returns the endpoints at which a planned statement's rows can be fetched: `wanted` of them, or one where its rows have
    /// an order or it changes something.
    pub(super) fn endpoints(
        &self,
        caller: &FlightCaller,
        planned: &PlannedStatement,
        schema: &Bytes,
        wanted: u32,
    ) -> Vec<FlightEndpoint> {
        let parts = if planned.is_splittable() { wanted.clamp(1, MAX_ENDPOINTS) } else { 1 };
        let ticket = self.ticket(caller, planned, schema);
        (0..parts).map(|part| self.sealed_endpoint(&ticket.clone().for_endpoint(part, parts))).collect()
    }

    /// Streams one endpoint's share of the rows, which begins the query if no other endpoint has.
    pub(super) async fn redeem_part(
        &self,
        caller: &FlightCaller,
        ticket: &StatementTicket,
        running: RunningTicket,
    ) -> Result<FlightStream, ApiError> {
        let query = self.shared.query_of(ticket)?;
        let schema = tokio::select! {
            schema = query.begin(self.begin_shared(caller, ticket)) => schema?,
            () = running.cancelled() => return Err(cancelled()),
        };
        if !ticket.has_schema(&schema_bytes(&schema)?) {
            return Err(ApiError::internal("the endpoints of a query differ in their schema"));
        }
        self.tickets.spend_part(ticket)?;
        // Made now, since a client may leave before its first batch is asked for.
        let share = Share { query, is_whole: false };
        Ok(encode::flight_stream(schema, shared_rows(share, running)))
    }
}

fn shared_rows(
    share: Share,
    running: RunningTicket,
) -> impl Stream<Item = Result<RecordBatch, Status>> + Send + 'static {
    async_stream::stream! {
        let mut share = share;
        loop {
            let next = tokio::select! {
                next = share.query.next() => next,
                // The other endpoints end with the same.
                () = running.cancelled() => share.query.fail(cancelled()).or_else(|| Some(Err(cancelled()))),
            };
            match next {
                Some(Ok(batch)) => yield Ok(batch),
                Some(Err(error)) => {
                    yield Err(error.into());
                    return;
                }
                None => break,
            }
        }
        share.is_whole = true;
    }
}

/// Nobody cancelled this call: pyarrow takes CANCELLED for an interrupt of its own process, and drops the message.
fn left_early() -> ApiError {
    ApiError::new(ErrorCode::Cancelled, "another endpoint of this query was left before its end")
        .with_hint("fetch all endpoints to their ends: run the statement again")
        .with_grpc_code(Code::Aborted)
}
