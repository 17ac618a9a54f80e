//! Turns: work that makes or replaces a table takes them, where it would otherwise be refused because of its like.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use querent_catalog::TableName;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};

/// From this number of names on, those that nobody waits for are forgotten.
const MANY_NAMES: usize = 1_000;

/// Who may make which table next.
#[derive(Debug, Default)]
pub(crate) struct TableTurns(Mutex<HashMap<TableName, Weak<Turn<()>>>>);

impl TableTurns {
    /// Waits for the turn of a table, which lasts until the guard is dropped.
    pub(crate) async fn turn(&self, table: &TableName) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = self.0.lock();
            if turns.len() >= MANY_NAMES {
                turns.retain(|_, turn| turn.strong_count() > 0);
            }
            let folded = TableName::new(table.database.to_lowercase(), table.table.to_lowercase());
            let known = turns.entry(folded).or_default();
            known.upgrade().unwrap_or_else(|| {
                let turn = Arc::new(Turn::new(()));
                *known = Arc::downgrade(&turn);
                turn
            })
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use futures::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_table_is_made_by_one_at_a_time() {
        let turns = TableTurns::default();
        let (t, same, other) = (TableName::new("a", "t"), TableName::new("A", "T"), TableName::new("a", "u"));
        let first = turns.turn(&t).await;
        assert!(turns.turn(&same).now_or_never().is_none(), "whatever the case of its name");
        assert!(turns.turn(&other).now_or_never().is_some());
        drop(first);
        assert!(turns.turn(&same).now_or_never().is_some());
    }
}
