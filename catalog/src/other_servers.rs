//! What a server learns of the others that share its catalog: tables for the schema index, tokens, policies, and what they
//! teach. It looks once a second; names, rows and rights are read from the catalog at each statement and need none of this. And it
//! gives them its signs of life.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{info, warn};

use crate::connection::StoreConnection;
use crate::error::{CatalogError, Result};
use crate::knowledge::KnowledgeCache;
use crate::members::{MemberWatch, SIGNS_APART};
use crate::store::Store;
use crate::tokens::TokenRegistry;

/// How often a server looks.
const LOOKS_APART: Duration = Duration::from_secs(1);

/// A server that follows the others until it is closed.
pub(crate) struct OtherServers {
    tasks: TaskTracker,
    stop: CancellationToken,
    /// Whether the catalog could be read when this server looked last.
    is_reachable: Arc<AtomicBool>,
}

/// By which a server sees that tokens, or what was taught, changed. What is taught again keeps its id and gets the time of
/// whichever server did it, whose clock may be behind: so all times count, not the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SharedState {
    tokens: (i64, i64, i64),
    queries: (i64, i64),
    metrics: (i64, i64),
}

impl OtherServers {
    /// Follows the others where the catalog is shared.
    pub(crate) fn follow(
        store: &Arc<Store>,
        tokens: &Arc<TokenRegistry>,
        knowledge: &Arc<KnowledgeCache>,
        members: &Arc<MemberWatch>,
    ) -> Self {
        let is_reachable = Arc::new(AtomicBool::new(true));
        let followed = Self { tasks: TaskTracker::new(), stop: CancellationToken::new(), is_reachable };
        if store.is_shared() {
            // Tasks of their own: what one of them waits for must not keep this server from being seen, and what waits for the
            // server's own writes not a token that another one revoked from being refused.
            let signs = give_signs(Arc::downgrade(store), Arc::clone(members), followed.stop.clone());
            followed.tasks.spawn(signs);
            followed.tasks.spawn(follow_log(Arc::downgrade(store), followed.stop.clone()));
            let (tokens, knowledge) = (Arc::clone(tokens), Arc::clone(knowledge));
            // Weak, so that dropping the catalog releases the data folder.
            let (stop, is_reachable) = (followed.stop.clone(), Arc::clone(&followed.is_reachable));
            followed.tasks.spawn(look_again(Arc::downgrade(store), tokens, knowledge, stop, is_reachable));
        }
        followed.tasks.close();
        followed
    }

    /// Returns whether the catalog could be read when this server looked last; a catalog of its own always can.
    pub(crate) fn is_reachable(&self) -> bool {
        self.is_reachable.load(Ordering::Relaxed)
    }

    /// Stops following.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
    }
}

impl Drop for OtherServers {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn give_signs(store: Weak<Store>, members: Arc<MemberWatch>, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(SIGNS_APART) => {}
        }
        let Some(store) = store.upgrade() else { return };
        if let Err(error) = members.sign(&store).await {
            warn!(%error, "the other servers do not see that this one is alive");
        }
    }
}

/// Takes the policy and the tables of the others, these for the schema index. Both wait for this server's writes, the policy where
/// DuckDB has committed.
async fn follow_log(store: Weak<Store>, stop: CancellationToken) {
    let mut has_failed = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOKS_APART) => {}
        }
        let Some(store) = store.upgrade() else { return };
        let followed = match store.view(|_| Ok(())).await {
            Ok(()) => store.follow().await,
            Err(error) => Err(error),
        };
        if let Err(error) = &followed
            && !has_failed
        {
            warn!(%error, "policies and tables of other servers are not known yet");
        }
        has_failed = followed.is_err();
    }
}

async fn look_again(
    store: Weak<Store>,
    tokens: Arc<TokenRegistry>,
    knowledge: Arc<KnowledgeCache>,
    stop: CancellationToken,
    is_reachable: Arc<AtomicBool>,
) {
    let mut known: Option<SharedState> = None;
    let mut was_lost = false;
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOKS_APART) => {}
        }
        let Some(store) = store.upgrade() else { return };
        match look(&store, &tokens, &knowledge, known).await {
            Ok(found) => {
                if std::mem::take(&mut was_lost) {
                    info!("the catalog's server is there again");
                }
                is_reachable.store(true, Ordering::Relaxed);
                known = Some(found);
            }
            Err(error) => {
                if matches!(error, CatalogError::Unavailable { .. }) {
                    is_reachable.store(false, Ordering::Relaxed);
                }
                if !std::mem::replace(&mut was_lost, true) {
                    let error = match error {
                        CatalogError::Unavailable { source } => source.to_string(),
                        error => error.to_string(),
                    };
                    warn!(error, "what other servers change is not seen until the catalog can be read again");
                }
            }
        }
    }
}

async fn look(
    store: &Store,
    tokens: &TokenRegistry,
    knowledge: &KnowledgeCache,
    known: Option<SharedState>,
) -> Result<SharedState> {
    let found = store.read(shared_state).await?;
    if known.is_none_or(|known| known.tokens != found.tokens) {
        tokens.reload(store).await?;
    }
    if known.is_none_or(|known| (known.queries, known.metrics) != (found.queries, found.metrics)) {
        knowledge.forget();
    }
    Ok(found)
}

fn shared_state(connection: &StoreConnection) -> Result<SharedState> {
    let mut statement = connection.prepare_cached(
        "SELECT t.tokens, t.newest, t.revoked, q.queries, q.changes, m.metrics, m.changes
         FROM (SELECT count(*) AS tokens, coalesce(max(token_id), 0) AS newest, count(revoked_at) AS revoked
               FROM querent_token) t,
              (SELECT count(*) AS queries, CAST(coalesce(sum((created_at + id) % 1000000007), 0) AS BIGINT) AS changes
               FROM querent_verified_query) q,
              (SELECT count(*) AS metrics, CAST(coalesce(sum((created_at + id) % 1000000007), 0) AS BIGINT) AS changes
               FROM querent_metric) m",
    )?;
    Ok(statement.query_row([], |row| {
        Ok(SharedState {
            tokens: (row.get(0)?, row.get(1)?, row.get(2)?),
            queries: (row.get(3)?, row.get(4)?),
            metrics: (row.get(5)?, row.get(6)?),
        })
    })?)
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_a_server_with_a_slow_clock_teaches_is_seen() {
        let folder = std::env::temp_dir().join(format!("querent-{}", uuid::Uuid::new_v4()));
        let store = Store::open(&folder, None, None).await.unwrap();
        let changed = async |sql: &'static str| {
            store.write_rows(move |rows| Ok(rows.execute_batch(sql)?)).await.unwrap();
            store.read(shared_state).await.unwrap()
        };
        let mut known = changed("SELECT 1").await;
        for sql in [
            "INSERT INTO querent_verified_query
                 (database_key, question_key, database, question, sql, tables, subject, created_at)
             VALUES ('d', 'a', 'd', 'a', 'SELECT 1', '[]', 'ann', 1000), ('d', 'b', 'd', 'b', 'SELECT 2', '[]', 'ann', 2000)",
            // Again, by a clock that is behind, and one in the place of another.
            "UPDATE querent_verified_query SET sql = 'SELECT 3', created_at = 500 WHERE question_key = 'a'",
            "DELETE FROM querent_verified_query WHERE question_key = 'a';
             INSERT INTO querent_verified_query
                 (database_key, question_key, database, question, sql, tables, subject, created_at)
             VALUES ('d', 'c', 'd', 'c', 'SELECT 1', '[]', 'ann', 500)",
        ] {
            let found = changed(sql).await;
            assert_ne!(found, known, "{sql}");
            known = found;
        }
        assert_eq!(changed("SELECT 1").await, known);
        store.close().await.unwrap();
        tokio::fs::remove_dir_all(folder).await.unwrap();
    }
}
