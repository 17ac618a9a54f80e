//! The servers that share a catalog, for each other: where each is reached, and which of them give no sign of life.
//!
//! A server writes a row of its own every few seconds, in a transaction that waits for no other writer. Clocks are not
//! compared: a server is lost when its row has not changed for [`LOST_AFTER`] while this server could read it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use chrono::Utc;
use parking_lot::Mutex;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, params};
use crate::error::Result;
use crate::store::Store;

/// How often a server gives a sign of life.
pub(crate) const SIGNS_APART: Duration = Duration::from_secs(5);
/// After how long without one a server is lost.
const LOST_AFTER: Duration = Duration::from_secs(30);
/// After how long the row of a lost server is deleted, when its runs have been ended.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What this server knows of the others.
#[derive(Debug, Default)]
pub(crate) struct MemberWatch {
    /// Where the others reach this one.
    address: Mutex<Option<String>>,
    /// The last sign of each of the others.
    signs: Mutex<HashMap<String, LastSign>>,
}

#[derive(Debug, Clone, Copy)]
struct LastSign {
    /// By its own clock; compared with nothing but itself.
    alive_at: i64,
    /// When this server saw that it had changed.
    since: Instant,
}

impl MemberWatch {
    /// Gives a sign of life, and looks for those of the others. Does nothing where the catalog is not shared.
    pub(crate) async fn sign(&self, store: &Store) -> Result<()> {
        let Some(member) = store.member().map(str::to_owned) else { return Ok(()) };
        let address = self.address.lock().clone();
        let signs = store
            .write_own(move |connection| {
                write_sign(connection, &member, address.as_deref())?;
                others(connection, &member)
            })
            .await;
        match signs {
            Ok(signs) => {
                self.note(signs, Instant::now());
                Ok(())
            }
            Err(error) => {
                // What could not be seen has not been silent.
                self.signs.lock().clear();
                Err(error)
            }
        }
    }

    fn note(&self, found: Vec<(String, i64)>, now: Instant) {
        let mut signs = self.signs.lock();
        let known = std::mem::take(&mut *signs);
        *signs = found
            .into_iter()
            .map(|(member, alive_at)| {
                let last = known.get(&member).filter(|last| last.alive_at == alive_at).copied();
                (member, last.unwrap_or(LastSign { alive_at, since: now }))
            })
            .collect();
    }

    fn lost(&self, now: Instant) -> Vec<String> {
        let signs = self.signs.lock();
        let is_lost = |sign: &LastSign| now.saturating_duration_since(sign.since) >= LOST_AFTER;
        signs.iter().filter(|(_, sign)| is_lost(sign)).map(|(member, _)| member.clone()).collect()
    }
}

/// The servers that share the catalog. Made by [`Catalog::members`](crate::Catalog::members).
#[derive(Clone, Copy)]
pub struct CatalogMembers<'a> {
    pub(crate) store: &'a Store,
    pub(crate) watch: &'a MemberWatch,
}

impl CatalogMembers<'_> {
    /// Returns the id of this server among them; `None` where the catalog is in the data folder, which no other has.
    pub fn own(&self) -> Option<&str> {
        self.store.member()
    }

    /// Tells the others at which URL they reach this server; `None`: they do not.
    pub async fn announce(self, address: Option<String>) -> Result<()> {
        *self.watch.address.lock() = address;
        self.watch.sign(self.store).await
    }

    /// Returns the URL at which another server is reached; `None` where it has said none, or is none of them.
    pub async fn address_of(self, member: &str) -> Result<Option<String>> {
        if self.store.member().is_none() {
            return Ok(None);
        }
        let member = member.to_owned();
        self.store.read(move |connection| address(connection, &member)).await
    }

    /// Returns the others that have given no sign of life for half a minute, as this server saw it.
    pub fn lost(&self) -> Vec<String> {
        self.watch.lost(Instant::now())
    }
}

fn write_sign(connection: &StoreConnection, member: &str, address: Option<&str>) -> Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO querent_member_address (member, address, alive_at) VALUES (?1, ?2, ?3)
             ON CONFLICT (member) DO UPDATE SET address = ?2, alive_at = ?3",
        )?
        .execute(params![member, address, Utc::now().timestamp_micros()])?;
    Ok(())
}

fn others(connection: &StoreConnection, member: &str) -> Result<Vec<(String, i64)>> {
    let mut statement =
        connection.prepare_cached("SELECT member, alive_at FROM querent_member_address WHERE member <> ?")?;
    let rows = statement.query_map([member], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(rows.collect::<DatabaseResult<_>>()?)
}

fn address(connection: &StoreConnection, member: &str) -> Result<Option<String>> {
    let found: Option<Option<String>> = connection
        .prepare_cached("SELECT address FROM querent_member_address WHERE member = ?")?
        .query_row([member], |row| row.get(0))
        .optional()?;
    Ok(found.flatten())
}

/// Deletes the rows of servers that were lost long ago and have no run in progress.
pub(crate) async fn forget_lost(store: &Store) -> Result<()> {
    if store.member().is_none() {
        return Ok(());
    }
    let since = Utc::now().timestamp_micros() - i64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX);
    store
        .write_own(move |connection| {
            connection.execute(
                "DELETE FROM querent_member_address WHERE alive_at < ? AND NOT EXISTS (SELECT 1 FROM querent_run r
                 WHERE r.member = querent_member_address.member AND r.status = 'running')",
                [since],
            )?;
            Ok(())
        })
        .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_lost_when_its_row_stays_as_it_is() {
        let (watch, begin) = (MemberWatch::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        let signs = |two| vec![("one".to_owned(), 7), ("two".to_owned(), two)];
        watch.note(signs(1), begin);
        watch.note(signs(2), after(20));
        assert_eq!(watch.lost(after(29)), Vec::<String>::new());
        assert_eq!(watch.lost(after(30)), ["one"]);
        watch.note(signs(2), after(51));
        assert_eq!(watch.lost(after(51)).len(), 2);
        // It is there again, whatever its clock says.
        watch.note(signs(-5), after(60));
        assert_eq!(watch.lost(after(61)), ["one"]);
        watch.note(Vec::new(), after(62));
        assert_eq!(watch.lost(after(200)), Vec::<String>::new());
    }
}
