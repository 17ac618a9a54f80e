//! Profiles the columns of tables, for value search and for judging joins: in the background, one table at a time, after
//! it was written or looked at. A read is bounded in rows, bytes and time, and nobody waits for it.
//!
//! A profile may be seen by everybody who may see the table's database; it is read without row filters or column masks.

mod table_profiler;

use std::sync::Arc;
use std::time::Duration;

use querent_catalog::{Principal, TableName, Unprofiled};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::Result;
use crate::identifiers::quote_identifier;
use crate::limits::Limits;
use crate::profile_queue::ProfileQueue;
use crate::session::Session;
use table_profiler::TableProfiler;

/// Rows read from a table's beginning; a table with no more is read whole.
const FIRST_ROWS: u64 = 20_000;
/// Rows sampled from all over a larger table.
const SAMPLED_ROWS: usize = 1_000;
/// How long one table may be read.
const READ_TIME: Duration = Duration::from_secs(5);
const READ_MEMORY_BYTES: usize = 128 << 20;
const READ_BYTES: u64 = 64 << 20;

/// Profiles the tables of the queue, one at a time, until `stop`. `engine` must be a handle that does not keep the engine
/// open.
pub(crate) async fn profile_queued_tables(engine: Engine, queue: Arc<ProfileQueue>, stop: CancellationToken) {
    let work = async {
        loop {
            let Some(table) = queue.pop() else {
                queue.pushed().await;
                continue;
            };
            if let Err(error) = profile(&engine, &table).await {
                tracing::debug!(%table, code = error.code(), %error, "values not collected");
            }
            queue.done();
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Reads the table and stores the profile of its columns, unless one of its present rows is stored.
async fn profile(engine: &Engine, name: &TableName) -> Result<()> {
    let reader = Principal::local_admin();
    let catalog = engine.catalog();
    let Some(table) = catalog.tables().resolve(&reader, std::slice::from_ref(name)).await?.pop().flatten() else {
        return Ok(());
    };
    let Some(unprofiled) = catalog.values().unprofiled(&[table.info.id]).await?.pop() else { return Ok(()) };
    let mut profiler = TableProfiler::new(&table.info);
    if !profiler.is_empty() {
        let limits = Limits {
            wall_clock: READ_TIME,
            memory_bytes: READ_MEMORY_BYTES,
            max_bytes: Some(READ_BYTES),
            ..Limits::default()
        };
        let session = engine.session(reader, limits).read_only();
        // Hashing and counting keep a thread for longer than a server's task may.
        let (worker, name) = (session.clone(), table.info.name.clone());
        let work = async move {
            read_rows(&worker, &name, &mut profiler).await?;
            Ok(profiler)
        };
        profiler = session.engine().runtime().threads.run(work).await?;
    }
    let Unprofiled { table_id, state, .. } = unprofiled;
    Ok(catalog.values().store_profile(profiler.into_profile(table_id, state)).await?)
}

/// Reads the first rows, and of a larger table also a sample of all of it.
async fn read_rows(session: &Session, table: &TableName, profiler: &mut TableProfiler) -> Result<()> {
    let columns: Vec<String> = profiler.columns().map(quote_identifier).collect();
    let sql = format!(
        "SELECT {} FROM {}.{} LIMIT {}",
        columns.join(", "),
        quote_identifier(&table.database),
        quote_identifier(&table.table),
        FIRST_ROWS + 1
    );
    let (batches, stats) = session.sql(&sql).await?.collect().await?;
    for batch in &batches {
        profiler.add(batch);
        tokio::task::yield_now().await;
    }
    if stats.rows > FIRST_ROWS || stats.truncated {
        profiler.is_complete = false;
        let (batches, _) = session.sample(table, SAMPLED_ROWS).await?.collect().await?;
        for batch in &batches {
            profiler.add(batch);
        }
    }
    Ok(())
}
