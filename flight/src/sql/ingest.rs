//! CommandStatementIngest: rows sent by DoPut become those of a table, all or none.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arrow_flight::PutResult;
use arrow_flight::sql::{CommandStatementIngest, DoPutUpdateResult, TableExistsOption, TableNotExistOption};
use futures::stream::BoxStream;
use futures::{FutureExt, Stream, StreamExt, stream};
use prost::Message;
use querent_catalog::TableName;
use querent_engine::{IngestMode, QuerySlot, Session};
use tokio::time::MissedTickBehavior;
use tonic::Status;

use super::caller::FlightCaller;
use super::listing::is_our_catalog;
use super::put::PutRows;
use super::unsupported::{not_served, refuse_transaction};
use crate::admission::{Door, QueryPermit};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// The option that asks for answers before the last one. Without it there is one answer: ADBC takes the first for the last.
const PROGRESS: &str = "querent.progress";
/// How often progress is told.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);

/// What an ingest is to do, checked.
struct Ingest {
    session: Session,
    table: TableName,
    temporary: bool,
    mode: IngestMode,
    tells_progress: bool,
}

/// Ingests rows. The stream has the number of rows written, after the rows so far each second if that was asked for.
pub(super) async fn ingest(
    state: &AppState,
    caller: &FlightCaller,
    command: CommandStatementIngest,
    mut rows: PutRows,
) -> Result<BoxStream<'static, Result<PutResult, Status>>, ApiError> {
    let Ingest { session, table, temporary, mode, tells_progress } = checked(state, caller, command).await?;
    let Some(schema) = rows.schema().await? else {
        return Err(ApiError::new(ErrorCode::BadRequest, "no rows came, and no schema")
            .with_hint("send the schema even of an empty table"));
    };
    let mut permit = state.admission.admit(&caller.principal, Door::Flight).await?;
    let arrived = Arc::new(AtomicU64::new(0));
    let batches = while_they_come(rows.batches(Arc::clone(&arrived)), permit.take_slot());
    let written = async move {
        let written = session.ingest(&table, temporary, mode, schema, batches).await.map_err(ApiError::from);
        written.map_err(|error| match (mode, error.code()) {
            // A client that may create the table is told that there is another one, by ADBC's code for it.
            (IngestMode::CreateOrAppend, ErrorCode::ColumnNotFound) => {
                let message = format!("`{}` exists with other columns: {}", table.table, error.message());
                ApiError::new(ErrorCode::AlreadyExists, message).with_hint("name the columns as the table does")
            }
            _ => error,
        })
    };
    if !tells_progress {
        let written = written.await;
        permit.record(&written);
        return Ok(stream::iter([Ok(update_result(Some(written?)))]).boxed());
    }
    Ok(with_progress(Box::pin(written), arrived, permit).boxed())
}

/// Passes batches on. A slot is held from one that is there to one that is not: an upload that waits for its sender, or for
/// its turn to make a table, has none.
fn while_they_come<S>(batches: S, slot: Option<QuerySlot>) -> impl Stream<Item = S::Item> + Send
where
    S: Stream<Item: Send> + Send,
{
    let slots = slot.as_ref().map(|slot| slot.slots().clone());
    drop(slot);
    async_stream::stream! {
        let mut batches = pin!(batches);
        let mut slot = None;
        loop {
            let next = match batches.next().now_or_never() {
                Some(next) => next,
                None => {
                    slot = None;
                    batches.next().await
                }
            };
            let Some(batch) = next else { break };
            if slot.is_none() && let Some(slots) = &slots {
                slot = Some(slots.resume().await);
            }
            yield batch;
        }
        drop(slot);
    }
}

fn with_progress(
    mut written: Pin<Box<dyn Future<Output = Result<u64, ApiError>> + Send>>,
    arrived: Arc<AtomicU64>,
    mut permit: QueryPermit,
) -> impl Stream<Item = Result<PutResult, Status>> + Send {
    async_stream::stream! {
        let mut clock = tokio::time::interval(PROGRESS_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                written = &mut written => {
                    permit.record(&written);
                    yield written.map(|rows| update_result(Some(rows))).map_err(Status::from);
                    return;
                }
                _ = clock.tick() => yield Ok(update_result(Some(arrived.load(Ordering::Relaxed)))),
            }
        }
    }
}

/// Returns what DoPut answers to a change: its number of rows, -1 where there is none to tell.
pub(super) fn update_result(rows: Option<u64>) -> PutResult {
    let record_count = rows.map_or(-1, |rows| i64::try_from(rows).unwrap_or(i64::MAX));
    PutResult { app_metadata: DoPutUpdateResult { record_count }.encode_to_vec().into() }
}

async fn checked(state: &AppState, caller: &FlightCaller, command: CommandStatementIngest) -> Result<Ingest, ApiError> {
    let CommandStatementIngest { table_definition_options, table, schema, catalog, temporary, transaction_id, options } =
        command;
    refuse_transaction(transaction_id.as_ref())?;
    let bad = |message: String, hint: &str| ApiError::new(ErrorCode::BadRequest, message).with_hint(hint);
    if table.is_empty() {
        return Err(bad("the ingest names no table".to_owned(), "set `table`"));
    }
    let (catalog, schema) = (catalog.filter(|name| !name.is_empty()), schema.filter(|name| !name.is_empty()));
    if temporary && (catalog.is_some() || schema.is_some()) {
        return Err(bad(
            "a temporary table is in no catalog and no schema".to_owned(),
            "leave both out: it is found by its name alone, in this session",
        ));
    }
    if let Some(catalog) = catalog
        && !is_our_catalog(&catalog)
    {
        let error = ApiError::new(ErrorCode::DatabaseNotFound, format!("unknown catalog `{catalog}`"));
        return Err(error.with_hint("the catalog is `querent`, its databases are schemas"));
    }
    let mut tells_progress = false;
    for (name, value) in &options {
        match (name.as_str(), value.as_str()) {
            (PROGRESS, "true") => tells_progress = true,
            (PROGRESS, "false") => {}
            (PROGRESS, _) => {
                let message = format!("the ingest option `{PROGRESS}` must be true or false, not `{value}`");
                return Err(ApiError::new(ErrorCode::BadRequest, message));
            }
            _ => return Err(not_served(&format!("the ingest option `{name}`"), "leave it out")),
        }
    }
    let database = match schema {
        Some(schema) => Some(schema),
        None => caller.database()?,
    };
    let session = caller.engine_session(state, None).await?.in_ingest_database(database.as_deref()).await?;
    let definition = table_definition_options.unwrap_or_default();
    let mode = ingest_mode(definition.if_not_exist(), definition.if_exists())?;
    let table = TableName::new(session.database(), &table);
    Ok(Ingest { session, table, temporary, mode, tells_progress })
}

fn ingest_mode(missing: TableNotExistOption, existing: TableExistsOption) -> Result<IngestMode, ApiError> {
    use {TableExistsOption as Existing, TableNotExistOption as Missing};
    match (missing, existing) {
        (Missing::Create, Existing::Fail) => Ok(IngestMode::Create),
        (Missing::Create, Existing::Append) => Ok(IngestMode::CreateOrAppend),
        (Missing::Create, Existing::Replace) => Ok(IngestMode::Replace),
        (Missing::Fail, Existing::Append) => Ok(IngestMode::Append),
        (Missing::Fail, Existing::Replace) => Ok(IngestMode::Overwrite),
        (Missing::Fail, Existing::Fail) => {
            let error = ApiError::new(ErrorCode::BadRequest, "the ingest may neither create a table nor use one");
            Err(error.with_hint("let it create, append or replace"))
        }
        (Missing::Unspecified, _) | (_, Existing::Unspecified) => {
            let error = ApiError::new(ErrorCode::BadRequest, "the ingest does not say what to do about the table");
            Err(error.with_hint("set if_not_exist and if_exists"))
        }
    }
}
