//! Patterns whose underscores nobody escaped, on a server: many clients ask for a table `sales_2026` and mean that name, but an
//! underscore is any character, so that what matches may lie anywhere among the names that begin with `sales`. Which characters stand
//! in its place is asked along the index of names, in a step for each of them and not for each name.

use super::RowQuery;
use crate::connection::{DatabaseResult, StoreConnection, params};
use crate::error::Result;
use crate::store::names::{key_after, key_range_end};
use crate::store::rows::to_json;

/// As many names are read one by one.
const FEW: i64 = 512;
/// Ranges that a pattern may become.
const MOST_RANGES: usize = 16;

impl RowQuery {
    /// Queries over short ranges of names that together have what this one has. `None` where it is over a short range itself, and
    /// where there would be many of them.
    pub(super) fn narrowed(&self, connection: &StoreConnection) -> Result<Option<Vec<RowQuery>>> {
        let Some(pattern) = self.pattern.as_ref().filter(|_| !self.at_least.is_empty()) else { return Ok(None) };
        let (mut parts, is_whole) = pattern.beginning_parts();
        let mut beginnings = vec![parts.remove(0)];
        if parts.is_empty() || self.has_few(connection)? {
            return Ok(None);
        }
        for part in parts {
            let longer = next_characters(connection, &beginnings)?;
            if longer.len() > MOST_RANGES {
                return Ok(None);
            }
            beginnings = longer.into_iter().map(|beginning| format!("{beginning}{part}")).collect();
        }
        let query = |beginning: String| RowQuery {
            below: if is_whole { key_after(&beginning) } else { key_range_end(&beginning) },
            at_least: beginning,
            pattern: self.pattern.clone(),
            kinds: self.kinds.clone(),
        };
        Ok(Some(beginnings.into_iter().map(query).collect()))
    }

    fn has_few(&self, connection: &StoreConnection) -> Result<bool> {
        let mut statement = connection.prepare_cached(
            "SELECT count(*) FROM (SELECT 1 FROM querent_object WHERE key >= ?1 AND key < ?2 LIMIT ?3) AS names",
        )?;
        let names: i64 = statement.query_row(params![self.at_least, self.below, FEW], |row| row.get(0))?;
        Ok(names < FEW)
    }
}

/// The beginnings of names that are a character longer than one of these; of more than [`MOST_RANGES`] one more.
fn next_characters(connection: &StoreConnection, beginnings: &[String]) -> Result<Vec<String>> {
    let mut statement = connection.prepare_cached(
        "WITH RECURSIVE step(beginning, key) AS (
             SELECT b.value, (SELECT min(o.key) FROM querent_object o WHERE o.key > b.value AND o.key < b.value || ?2)
             FROM json_each(?1) b
             UNION ALL
             SELECT s.beginning,
                    (SELECT min(o.key) FROM querent_object o
                     WHERE o.key >= substr(s.key, 1, length(s.beginning) + 1) || ?2 AND o.key < s.beginning || ?2)
             FROM step s WHERE s.key IS NOT NULL
         )
         SELECT substr(key, 1, length(beginning) + 1) FROM step WHERE key IS NOT NULL LIMIT ?3",
    )?;
    let (most, last) = (MOST_RANGES as i64 + 1, char::MAX.to_string());
    let found = statement.query_map(params![to_json(beginnings)?, last, most], |row| row.get::<String>(0))?;
    Ok(found.collect::<DatabaseResult<_>>()?)
}
