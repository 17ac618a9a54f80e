//! Who has what of the log: the decisions of the servers that share it, over any store of its rows. The catalog and a
//! server's own file stand behind [`SharedLog`] and [`LocalLog`]; a simulation has others (`store/simulation.rs`) and
//! runs the same lines.
//!
//! Invariant: a row leaves the log when every member has it, and a server that lacks one that is gone begins anew. A
//! server lacks one where it was forgotten, where it is new, and where its file is older than what it last told the
//! others, as after a power cut. Its epoch, which grows each time it begins anew, says whether it is: positions do not,
//! since one that was forgotten may have copied past a gap. Time is the shared store's: what the servers' clocks say
//! does not matter.

use std::time::Duration;

use crate::error::Result;
use crate::store::pending::{ObjectKind, PendingObject};

/// After how long a server that says nothing is not waited for.
pub(in crate::store) const FORGOTTEN_AFTER: Duration = Duration::from_secs(7 * 24 * 3_600);

/// A server that takes part in the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct LogMember {
    /// Its id.
    pub(in crate::store) id: String,
    /// The sequence number up to which it has the rows.
    pub(in crate::store) position: i64,
    /// How often it has begun anew.
    pub(in crate::store) epoch: i64,
    /// When it said so, in microseconds of the shared store's clock.
    pub(in crate::store) seen_at: i64,
}

/// What is not kept any more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct ForgottenRows {
    /// Servers that are not waited for.
    pub(in crate::store) members: Vec<String>,
    /// The rows up to this one are with every other server.
    pub(in crate::store) up_to: Option<i64>,
}

/// The log, inside a transaction.
pub(in crate::store) trait SharedLog {
    /// The store's clock, in microseconds since 1970.
    fn log_time(&self) -> Result<i64>;
    /// The newest number that was ever given to a row of a kind.
    fn newest(&self, kind: ObjectKind) -> Result<i64>;
    /// At most `limit` rows after `after`, oldest first.
    fn rows_after(&self, kind: ObjectKind, after: i64, limit: usize) -> Result<Vec<PendingObject>>;
    /// All members.
    fn members(&self) -> Result<Vec<LogMember>>;
    /// Adds or replaces a member.
    fn keep_member(&self, member: &LogMember) -> Result<()>;
    /// Deletes what is not kept any more.
    fn forget(&self, forgotten: &ForgottenRows) -> Result<()>;
}

/// A server's copy. Each call is a transaction of its own.
pub(in crate::store) trait LocalLog {
    /// Up to which row it has those of a kind; `None` where it never took part.
    fn position(&self, kind: ObjectKind) -> Result<Option<i64>>;
    /// How often it has begun anew.
    fn epoch(&self) -> Result<i64>;
    /// Keeps rows, of which `last` is the newest.
    fn keep_rows(&self, kind: ObjectKind, rows: &[PendingObject], last: i64) -> Result<()>;
    /// Forgets all rows and the index made of them, whose writers then fail, and goes on from where the log is, in the
    /// next epoch.
    fn begin_anew(&self, objects: i64, columns: i64) -> Result<()>;
}

/// Takes part in the log: from where this server was, or from now on with an index that is built anew.
pub(in crate::store) fn join(shared: &impl SharedLog, local: &impl LocalLog, id: &str) -> Result<()> {
    let epoch = local.epoch()?;
    let told = shared.members()?.into_iter().find(|member| member.id == id && member.epoch == epoch);
    let known = local.position(ObjectKind::Table)?;
    let newest = shared.newest(ObjectKind::Table)?;
    let position = match (known, told) {
        // Rows up to what was told may be gone; and of a log that was restored, rows may have numbers that this server
        // knows.
        (Some(known), Some(told)) if (told.position..=newest).contains(&known) => known,
        _ => begin_anew(shared, local)?,
    };
    shared.keep_member(&member_now(shared, local, id, position)?)
}

/// Tells the other servers how far this one is, and deletes what all of them have. Returns whether they had forgotten
/// this one, which then begins anew.
pub(in crate::store) fn report(shared: &impl SharedLog, local: &impl LocalLog, id: &str) -> Result<bool> {
    let mut members = shared.members()?;
    let is_member = members.iter().any(|member| member.id == id);
    let position = match is_member {
        true => local.position(ObjectKind::Table)?.unwrap_or(0),
        false => begin_anew(shared, local)?,
    };
    let own = member_now(shared, local, id, position)?;
    shared.keep_member(&own)?;
    members.retain(|member| member.id != id);
    let now = own.seen_at;
    members.push(own);
    shared.forget(&forgotten(&members, now))?;
    Ok(!is_member)
}

/// What is not kept any more at a time.
pub(in crate::store) fn forgotten(members: &[LogMember], now: i64) -> ForgottenRows {
    let since = now - i64::try_from(FORGOTTEN_AFTER.as_micros()).unwrap_or(i64::MAX);
    let (kept, gone): (Vec<&LogMember>, Vec<&LogMember>) = members.iter().partition(|member| member.seen_at >= since);
    ForgottenRows {
        members: gone.into_iter().map(|member| member.id.clone()).collect(),
        up_to: kept.into_iter().map(|member| member.position).min(),
    }
}

fn member_now(shared: &impl SharedLog, local: &impl LocalLog, id: &str, position: i64) -> Result<LogMember> {
    Ok(LogMember { id: id.to_owned(), position, epoch: local.epoch()?, seen_at: shared.log_time()? })
}

fn begin_anew(shared: &impl SharedLog, local: &impl LocalLog) -> Result<i64> {
    let objects = shared.newest(ObjectKind::Table)?;
    local.begin_anew(objects, shared.newest(ObjectKind::Column)?)?;
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_until_every_server_has_them_that_was_seen_within_a_week() {
        let day = 24 * 3_600 * 1_000_000;
        let member = |id: &str, position, days| LogMember {
            id: id.to_owned(),
            position,
            epoch: 0,
            seen_at: 100 * day - days * day,
        };
        let members = [member("one", 12, 0), member("two", 7, 6), member("three", 3, 8)];
        let expected = ForgottenRows { members: vec!["three".to_owned()], up_to: Some(7) };
        assert_eq!(forgotten(&members, 100 * day), expected);
        assert_eq!(forgotten(&members[2..], 100 * day).up_to, None);
    }
}
