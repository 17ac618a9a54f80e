//! What a server does by itself from time to time: it deletes what is past its retention, files that no table has, and old
//! snapshots, and merges small files.
//! Of servers that share a catalog one does it for all, under a lease; the audit log is each server's own.

use std::time::{Duration, Instant};

use chrono::Utc;
use querent_catalog::{
    CatalogError, ExpiredSnapshots, LeaseTurn, LeasedWork, ORPHAN_GRACE, Purged, SHORTEST_HISTORY, WorkLease,
    time_before,
};

use crate::state::AppState;

/// How often runs and records past their retention are deleted.
const PURGE_EVERY: Duration = Duration::from_secs(60 * 60);
/// How soon it is tried again where the catalog cannot be asked, or another server is at it.
const RETRY_AFTER: Duration = Duration::from_secs(60);

/// Deletes audit records past their retention, at the start and then every hour.
pub(super) async fn forget_old_records(state: AppState) {
    let audit = &state.settings.audit;
    while !state.shutdown.is_unready() {
        if let Some(before) = time_before(Utc::now(), audit.retention.0)
            && let Err(error) = state.engine.catalog().audit().forget(before, audit.max_records).await
        {
            tracing::warn!(code = error.code(), %error, "old audit records could not be deleted");
        }
        let _ = tokio::time::timeout(PURGE_EVERY, state.shutdown.draining()).await;
    }
}

/// Deletes runs and users past their retention, at the start and then every hour.
pub(super) async fn forget_old_runs(state: AppState) {
    while !state.shutdown.is_unready() {
        let wait = match forget_in_turn(&state).await {
            Ok(wait) => wait,
            Err(error) => {
                tracing::warn!(code = error.code(), %error, "old runs and users could not be deleted");
                RETRY_AFTER
            }
        };
        let _ = tokio::time::timeout(wait, state.shutdown.draining()).await;
    }
}

/// Returns after which time it is to be done, or tried, again.
async fn forget_in_turn(state: &AppState) -> Result<Duration, CatalogError> {
    let lease = match state.engine.catalog().leases().take(LeasedWork::Retention, PURGE_EVERY).await? {
        LeaseTurn::Had(lease) => lease,
        LeaseTurn::Later(wait) => return Ok(wait.clamp(RETRY_AFTER, PURGE_EVERY)),
    };
    let forgotten = lease.run(forget(state, &lease)).await;
    Ok(lease.conclude(forgotten).await?.map_or(RETRY_AFTER, |()| PURGE_EVERY))
}

async fn forget(state: &AppState, lease: &WorkLease) -> Result<(), CatalogError> {
    let catalog = state.engine.catalog();
    let now = catalog.now().await?;
    let users = catalog.external_users().purge(now, lease).await?;
    if users > 0 {
        tracing::info!(users, "users whose time was over were deleted");
    }
    let retention = state.settings.agent.retention.0;
    if let Some(before) = time_before(now, retention).filter(|_| !retention.is_zero()) {
        let purged = catalog.purge_before(before, lease).await?;
        if purged != Purged::default() {
            tracing::info!(?purged, "old runs were deleted");
        }
    }
    Ok(())
}

/// Forgets the snapshots past their retention, at the start and then every hour.
pub(super) async fn forget_old_snapshots(state: AppState) {
    let retention = state.settings.catalog.snapshot_retention.0;
    while !retention.is_zero() && !state.shutdown.is_unready() {
        match state.engine.expire_snapshots_of_age(retention.max(SHORTEST_HISTORY), PURGE_EVERY).await {
            Ok(Some(expired)) if expired != ExpiredSnapshots::default() => {
                let ExpiredSnapshots { snapshots, tables, files, bytes, paths: _ } = expired;
                tracing::info!(snapshots, tables, files, bytes, "old snapshots were forgotten");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(code = error.code(), %error, "old snapshots stay"),
        }
        let _ = tokio::time::timeout(PURGE_EVERY, state.shutdown.draining()).await;
    }
}

/// Merges the small files of tables, at the start and then so often as the settings say.
pub(super) async fn merge_small_files(state: AppState) {
    let every = state.settings.catalog.merge_small_files.0;
    while !every.is_zero() && !state.shutdown.is_unready() {
        let merged = tokio::select! {
            merged = state.engine.merge_small_files(every) => merged,
            () = state.shutdown.draining() => return,
        };
        match merged {
            Ok(Some(tables @ 1..)) => tracing::info!(tables, "small files of tables were merged"),
            Ok(_) => {}
            Err(error) => tracing::warn!(code = error.code(), %error, "small files of tables stay"),
        }
        let _ = tokio::time::timeout(every, state.shutdown.draining()).await;
    }
}

/// Removes the files that writes of a process that was killed have left: those that are old enough now, and a day later
/// those that were too young, because the process before this one was killed a moment ago. What changed while this
/// process runs stays: a statement that takes days may be about to commit it.
pub(super) async fn remove_orphans(state: AppState) {
    let began = Instant::now();
    remove_older_orphans(&state, ORPHAN_GRACE).await;
    if tokio::time::timeout(ORPHAN_GRACE, state.shutdown.draining()).await.is_err() {
        remove_older_orphans(&state, began.elapsed().max(ORPHAN_GRACE)).await;
    }
}

async fn remove_older_orphans(state: &AppState, grace: Duration) {
    match state.engine.remove_orphans_in_turn(grace).await {
        Ok(removed) if removed.is_empty() => {}
        Ok(removed) => {
            let bytes: u64 = removed.iter().map(|file| file.bytes).sum();
            tracing::info!(files = removed.len(), bytes, "files of writes that never committed were removed");
        }
        Err(error) => tracing::warn!(code = error.code(), %error, "files of writes that never committed stay"),
    }
}
