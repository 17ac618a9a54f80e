//! `[flight]`: what clients of Arrow Flight may send.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{ByteSize, DurationSetting, Settings};

/// What a message holds beside the text of its statement: names, options, a signature.
const ENVELOPE_BYTES: usize = 1 << 20;

/// Uploads by Arrow Flight.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FlightSettings {
    /// The largest message of an upload, which holds one batch.
    pub max_message_bytes: ByteSize,
    /// How long an upload may be without a byte.
    pub upload_idle_timeout: DurationSetting,
}

impl Default for FlightSettings {
    fn default() -> Self {
        Self { max_message_bytes: ByteSize(64 << 20), upload_idle_timeout: DurationSetting(Duration::from_secs(300)) }
    }
}

impl Settings {
    /// Returns the most bytes of a Flight message that is not an upload's: a statement, or the ticket of one.
    pub fn statement_message_bytes(&self) -> usize {
        self.http.max_query_bytes.to_usize().saturating_add(ENVELOPE_BYTES)
    }
}
