//! Profiles the columns of tables, for value search and for judging joins: in the background, one table at a time, after
//! it was written or looked at. A read is bounded in rows, bytes and time, and nobody waits for it.
//!
//! Of servers that share a catalog one reads at a time, under a lease, so that a table which several of them have
//! queued is read once. It is read without row policies and masks; the catalog tells nothing of it to whom they hide rows
//! or the column.

mod table_profiler;

use std::sync::Arc;
use std::time::Duration;

use querent_catalog::{LeaseTurn, LeasedWork, Principal, ResolvedTable, TableName, Unprofiled, WorkLease};
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
/// How often a server that waits for its turn asks for it.
const TRIES_APART: Duration = Duration::from_millis(500);
/// A server leaves the others this time to take their turn.
const BETWEEN_TURNS: Duration = Duration::from_millis(200);

/// Profiles the tables of the queue, one at a time, until `stop`. `engine` must be a handle that does not keep the engine
/// open.
pub(crate) async fn profile_queued_tables(engine: Engine, queue: Arc<ProfileQueue>, stop: CancellationToken) {
    let work = async {
        loop {
            let Some(table) = queue.pop() else {
                queue.pushed().await;
                continue;
            };
            let outcome = profile(&engine, &table).await;
            let is_refused = matches!(outcome, Ok(ProfilingTurn::Refused));
            match outcome {
                Ok(ProfilingTurn::Taken) => {}
                // Another server reads; perhaps this very table.
                Ok(ProfilingTurn::Refused) => queue.push_changed(table),
                Err(error) => tracing::debug!(%table, code = error.code(), %error, "values not collected"),
            }
            queue.done();
            if is_refused {
                tokio::time::sleep(TRIES_APART).await;
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Whether a table had its turn.
enum ProfilingTurn {
    /// It is profiled, or need not be.
    Taken,
    /// Another server reads a table.
    Refused,
}

/// Reads the table and stores the profile of its columns, unless one of its present rows is stored.
async fn profile(engine: &Engine, name: &TableName) -> Result<ProfilingTurn> {
    let catalog = engine.catalog();
    let found = catalog.tables().resolve(&Principal::local_admin(), std::slice::from_ref(name)).await?.pop();
    let Some(table) = found.flatten() else { return Ok(ProfilingTurn::Taken) };
    let Some(unprofiled) = catalog.values().unprofiled(&[table.info.id]).await?.pop() else {
        return Ok(ProfilingTurn::Taken);
    };
    let lease = match catalog.leases().take(LeasedWork::ColumnValues, Duration::ZERO).await? {
        LeaseTurn::Had(lease) => lease,
        LeaseTurn::Later(_) => return Ok(ProfilingTurn::Refused),
    };
    let is_shared = lease.is_shared();
    let profiled = lease.run(profile_in_turn(engine, &table, unprofiled, &lease)).await;
    lease.finish().await?;
    if is_shared {
        tokio::time::sleep(BETWEEN_TURNS).await;
    }
    profiled.transpose()?;
    Ok(ProfilingTurn::Taken)
}

async fn profile_in_turn(
    engine: &Engine,
    table: &ResolvedTable,
    mut unprofiled: Unprofiled,
    lease: &WorkLease,
) -> Result<()> {
    let values = engine.catalog().values();
    if lease.is_shared() {
        // The server before may have read it.
        let Some(still) = values.unprofiled(&[table.info.id]).await?.pop() else { return Ok(()) };
        unprofiled = still;
    }
    let mut profiler = TableProfiler::new(&table.info);
    if !profiler.is_empty() {
        let limits = Limits {
            wall_clock: READ_TIME,
            memory_bytes: READ_MEMORY_BYTES,
            max_bytes: Some(READ_BYTES),
            ..Limits::default()
        };
        let session = engine.session(Principal::local_admin(), limits).read_only();
        // Hashing and counting keep a thread for longer than a server's task may. The name is that of the state: another table
        // may have the one before.
        let (worker, name) = (session.clone(), unprofiled.name.clone());
        let work = async move {
            read_rows(&worker, &name, &mut profiler).await?;
            Ok(profiler)
        };
        profiler = session.engine().runtime().threads.run(work).await?;
    }
    let Unprofiled { table_id, state, .. } = unprofiled;
    Ok(values.store_profile(profiler.into_profile(table_id, state), lease).await?)
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
