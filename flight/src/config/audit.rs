//! `[audit]`: the log of who asked what.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::DurationSetting;

/// Whether an audit log is kept, and how much of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditSettings {
    /// Whether a server keeps one.
    pub enabled: bool,
    /// How long records are kept.
    pub retention: DurationSetting,
    /// How many are kept at most.
    pub max_records: u64,
}

impl Default for AuditSettings {
    fn default() -> Self {
        let retention = DurationSetting(Duration::from_secs(90 * 24 * 60 * 60));
        Self { enabled: false, retention, max_records: 1_000_000 }
    }
}
