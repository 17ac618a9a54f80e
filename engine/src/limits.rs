//! What one query may use. Every session has limits, so that none is unlimited by accident.

mod interrupt;
mod pool;

use std::time::Duration;

pub(crate) use interrupt::Interrupt;
pub(crate) use pool::{PlanningMemory, QueryPool};

/// A query's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// From parsing to the last batch; `wall_clock_exceeded` beyond.
    pub wall_clock: Duration,
    /// The query's share of the engine's pool, `memory_exceeded` beyond what can spill.
    pub memory_bytes: usize,
    /// The most rows delivered; the stream ends there and [`crate::QueryStats::truncated`] is set.
    pub max_rows: Option<u64>,
    /// The most Arrow bytes delivered, as `max_rows`.
    pub max_bytes: Option<u64>,
}

impl Limits {
    /// The wall clock of a query where nothing else is said.
    pub const DEFAULT_WALL_CLOCK: Duration = Duration::from_secs(300);
    /// The memory of a query where nothing else is said, in bytes.
    pub const DEFAULT_MEMORY_BYTES: usize = 4 << 30;
}

impl Default for Limits {
    /// The default wall clock and memory, no row or byte limit.
    fn default() -> Self {
        Self {
            wall_clock: Self::DEFAULT_WALL_CLOCK,
            memory_bytes: Self::DEFAULT_MEMORY_BYTES,
            max_rows: None,
            max_bytes: None,
        }
    }
}
