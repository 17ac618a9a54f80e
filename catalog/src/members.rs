//! The servers that share a catalog, for each other: where each is reached, and which of them give no sign of life.
//!
//! A server writes a row of its own every few seconds, in a transaction that waits for no other writer. Clocks are not
//! compared: a server is lost when its row has not changed for [`LOST_AFTER`] while this server looked at it. Time in which nobody
//! looked, because this server or its machine stood still, counts little: the others may have stood still with it.

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
/// What the time between two looks counts at most.
const MOST_BETWEEN_LOOKS: Duration = Duration::from_secs(10);
/// After how long the row of a lost server is deleted, when its runs have been ended.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);

/// What this server knows of the others.
#[derive(Debug, Default)]
pub(crate) struct MemberWatch {
    /// Where the others reach this one.
    address: Mutex<Option<String>>,
    signs: Mutex<SeenSigns>,
}

/// What was seen of the others' signs.
#[derive(Debug, Default)]
struct SeenSigns {
    looked_at: Option<Instant>,
    /// The last sign of each of the others.
    last: HashMap<String, LastSign>,
}

#[derive(Debug, Clone, Copy)]
struct LastSign {
    /// By its own clock; compared with nothing but itself.
    alive_at: i64,
    /// For how long this server has looked and seen no other.
    silent_for: Duration,
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
                *self.signs.lock() = SeenSigns::default();
                Err(error)
            }
        }
    }

    fn note(&self, found: Vec<(String, i64)>, now: Instant) {
        let mut signs = self.signs.lock();
        let between = signs.looked_at.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        let between = between.min(MOST_BETWEEN_LOOKS);
        let known = std::mem::take(&mut signs.last);
        let signs_now = found.into_iter().map(|(member, alive_at)| {
            let same = known.get(&member).filter(|last| last.alive_at == alive_at);
            let silent_for = same.map_or(Duration::ZERO, |last| last.silent_for + between);
            (member, LastSign { alive_at, silent_for })
        });
        *signs = SeenSigns { looked_at: Some(now), last: signs_now.collect() };
    }

    fn lost(&self) -> Vec<String> {
        let signs = self.signs.lock();
        let lost = signs.last.iter().filter(|(_, sign)| sign.silent_for >= LOST_AFTER);
        lost.map(|(member, _)| member.clone()).collect()
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
        self.watch.lost()
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
        let look = |seconds, one, two| {
            let found = vec![("one".to_owned(), one), ("two".to_owned(), two)];
            watch.note(found, begin + Duration::from_secs(seconds));
            watch.lost()
        };
        for (sign, seconds) in (0..30).step_by(5).enumerate() {
            assert_eq!(look(seconds, 7, sign as i64), Vec::<String>::new(), "after {seconds} s");
        }
        assert_eq!(look(30, 7, 5), ["one"]);
        for seconds in [35, 40, 45, 50] {
            assert_eq!(look(seconds, 7, 5), ["one"], "after {seconds} s");
        }
        assert_eq!(look(55, 7, 5).len(), 2);
        // It is there again, whatever its clock says.
        assert_eq!(look(60, 7, -5), ["one"]);
        watch.note(Vec::new(), begin + Duration::from_secs(62));
        assert_eq!(watch.lost(), Vec::<String>::new());
    }

    #[test]
    fn who_stood_still_has_not_seen_that_others_were_silent() {
        let (watch, begin) = (MemberWatch::default(), Instant::now());
        let look = |seconds, sign| {
            watch.note(vec![("one".to_owned(), sign)], begin + Duration::from_secs(seconds));
            watch.lost()
        };
        look(0, 1);
        look(5, 2);
        // Nothing was looked at for minutes, and the other's machine may have slept as well.
        assert!(watch.lost().is_empty());
        for seconds in [300, 305, 310] {
            assert_eq!(look(seconds, 2), Vec::<String>::new(), "after {seconds} s");
        }
        assert_eq!(look(315, 3), Vec::<String>::new());
    }
}
