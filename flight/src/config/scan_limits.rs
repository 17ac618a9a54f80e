//! `query.max_scan_rows` and `query.max_scan_bytes`: how much a statement may read from tables, by the role of its caller.

use querent_engine::{ScanLimit, ScanLimits};

use super::{ByteSize, QuerySettings};

impl QuerySettings {
    /// Returns the limits. Those that are wrong are none; [`Self::scan_fault`] tells of them before.
    pub(crate) fn scan_limits(&self) -> ScanLimits {
        let of = |role: &str| ScanLimit {
            max_rows: limit_of(&self.max_scan_rows, role, rows),
            max_bytes: limit_of(&self.max_scan_bytes, role, bytes),
        };
        ScanLimits { read: of("read"), write: of("write") }
    }

    /// Returns the setting that is wrong, and what to write.
    pub(super) fn scan_fault(&self) -> Option<(&'static str, String)> {
        let rows = fault(&self.max_scan_rows, rows).map(|fault| ("query.max_scan_rows", fault));
        rows.or_else(|| fault(&self.max_scan_bytes, bytes).map(|fault| ("query.max_scan_bytes", fault)))
    }
}

fn rows(text: &str) -> Option<u64> {
    text.parse().ok()
}

fn bytes(text: &str) -> Option<u64> {
    text.parse::<ByteSize>().ok().map(|size| size.0)
}

fn limit_of(entries: &[String], role: &str, parse: fn(&str) -> Option<u64>) -> Option<u64> {
    let mut of_role = entries.iter().filter_map(|entry| entry.split_once('=')).filter(|(name, _)| name.trim() == role);
    of_role.next().and_then(|(_, limit)| parse(limit.trim()))
}

fn fault(entries: &[String], parse: fn(&str) -> Option<u64>) -> Option<String> {
    let mut roles = Vec::new();
    for entry in entries {
        let parts = entry.split_once('=').map(|(role, limit)| (role.trim(), limit.trim()));
        let Some((role, _)) = parts.filter(|(role, limit)| ["read", "write"].contains(role) && parse(limit).is_some())
        else {
            return Some(format!("`{entry}` is not read=LIMIT or write=LIMIT; administrators have none"));
        };
        if roles.contains(&role) {
            return Some(format!("role {role} is there twice"));
        }
        roles.push(role);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(rows: &[&str], bytes: &[&str]) -> QuerySettings {
        let owned = |entries: &[&str]| entries.iter().map(|entry| (*entry).to_owned()).collect();
        QuerySettings { max_scan_rows: owned(rows), max_scan_bytes: owned(bytes), ..QuerySettings::default() }
    }

    #[test]
    fn each_role_has_its_own_limits() {
        let limits = settings(&["read=1000", "write = 5000"], &["read=10GiB"]).scan_limits();
        assert_eq!(limits.read, ScanLimit { max_rows: Some(1_000), max_bytes: Some(10 << 30) });
        assert_eq!(limits.write, ScanLimit { max_rows: Some(5_000), max_bytes: None });
        assert_eq!(QuerySettings::default().scan_limits(), ScanLimits::default());
    }

    #[test]
    fn what_is_wrong_is_said_with_its_setting() {
        assert_eq!(settings(&["read=1"], &["write=1GiB"]).scan_fault(), None);
        for rows in [&["1000"][..], &["read=many"], &["admin=1"], &["read=1", "read=2"]] {
            assert_eq!(settings(rows, &[]).scan_fault().unwrap().0, "query.max_scan_rows", "{rows:?}");
        }
        assert_eq!(settings(&[], &["read=1 parsec"]).scan_fault().unwrap().0, "query.max_scan_bytes");
    }
}
