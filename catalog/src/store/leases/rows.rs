//! The rows of leases in the catalog's database.

use super::{LeaseRow, LeaseTable};
use crate::connection::{OptionalRow, StoreConnection, params};
use crate::error::Result;

/// Gives back whatever a server still has.
pub(crate) fn give_back_all(connection: &StoreConnection, member: &str) -> Result<()> {
    connection.prepare_cached("UPDATE querent_lease SET holder = NULL WHERE holder = ?")?.execute([member])?;
    Ok(())
}

impl LeaseTable for StoreConnection {
    fn now(&self) -> Result<i64> {
        Ok(self.now_micros()?)
    }

    fn lease(&self, name: &str) -> Result<Option<LeaseRow>> {
        Ok(self
            .prepare_cached("SELECT holder, fence, expires_at, done_at FROM querent_lease WHERE name = ?")?
            .query_row([name], |row| {
                Ok(LeaseRow { holder: row.get(0)?, fence: row.get(1)?, expires_at: row.get(2)?, done_at: row.get(3)? })
            })
            .optional()?)
    }

    fn keep_lease(&self, name: &str, row: &LeaseRow) -> Result<()> {
        self.prepare_cached(
            "INSERT INTO querent_lease (name, holder, fence, expires_at, done_at) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (name) DO UPDATE SET holder = ?2, fence = ?3, expires_at = ?4, done_at = ?5",
        )?
        .execute(params![name, row.holder, row.fence, row.expires_at, row.done_at])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::ddl::LEASES_DDL;
    use crate::store::leases::{LeaseAnswer, LeaseRequest, TIMING, give_back, renew, require_held, take};

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn rows_say_who_has_a_lease_and_when_it_is_due_again() {
        let connection = StoreConnection::open_file(std::path::Path::new(":memory:")).unwrap();
        connection.execute_batch("CREATE TABLE querent_member (member VARCHAR PRIMARY KEY)").unwrap();
        connection.define(LEASES_DDL).unwrap();
        let request = |member, every| LeaseRequest { name: "work", member, every };
        let granted = |answer| match answer {
            LeaseAnswer::Granted(fence) => fence,
            LeaseAnswer::Refused { again_in } => panic!("refused for {again_in:?}"),
        };
        let hour = 3_600 * SECOND;
        let first = granted(take(&connection, request("one", hour), TIMING).unwrap());
        assert_eq!(first.number, 1);
        let refused = take(&connection, request("two", hour), TIMING).unwrap();
        assert!(matches!(refused, LeaseAnswer::Refused { again_in } if again_in <= TIMING.term), "{refused:?}");
        assert!(renew(&connection, &first, TIMING).unwrap());
        require_held(&connection, &first).unwrap();

        // Its process was killed, and is there again.
        let second = granted(take(&connection, request("one", hour), TIMING).unwrap());
        assert_eq!(second.number, 2);
        assert_eq!(require_held(&connection, &first).unwrap_err().code(), "conflict");
        assert!(!renew(&connection, &first, TIMING).unwrap());

        // What an earlier holder gives back stays the later one's.
        give_back(&connection, &first, true).unwrap();
        require_held(&connection, &second).unwrap();
        give_back(&connection, &second, true).unwrap();
        let refused = take(&connection, request("two", hour), TIMING).unwrap();
        assert!(matches!(refused, LeaseAnswer::Refused { again_in } if again_in > 3_500 * SECOND), "{refused:?}");
        let third = granted(take(&connection, request("two", Duration::ZERO), TIMING).unwrap());
        assert_eq!(third.number, 3);

        // Time is over.
        connection.execute_batch("UPDATE querent_lease SET expires_at = 0").unwrap();
        let fourth = granted(take(&connection, request("one", Duration::ZERO), TIMING).unwrap());
        assert_eq!(fourth.number, 4);
        give_back_all(&connection, "one").unwrap();
        assert_eq!(granted(take(&connection, request("two", Duration::ZERO), TIMING).unwrap()).number, 5);
    }
}
