//! What one query may use. Part of every session; there is no unlimited session by accident.

mod interrupt;
mod pool;

use std::time::Duration;

pub(crate) use interrupt::Interrupt;
pub(crate) use pool::{PlanningMemory, QueryPool};

/// A query's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From parsing to the last batch, `wall_clock_exceeded` beyond.
    pub wall_clock: Duration,
    /// The query's share of the engine's pool, `memory_exceeded` beyond what can spill.
    pub memory_bytes: usize,
    /// Rows delivered; the stream ends there and [`crate::QueryStats::truncated`] is set.
    pub max_rows: Option<u64>,
    /// Arrow bytes delivered; as `max_rows`.
    pub max_bytes: Option<u64>,
}

impl Default for Limits {
    /// 300 s, 4 GiB, no row or byte limit.
    fn default() -> Self {
        Self { wall_clock: Duration::from_secs(300), memory_bytes: 4 << 30, max_rows: None, max_bytes: None }
    }
}
