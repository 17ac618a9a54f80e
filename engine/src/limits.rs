//! What one query may use. Every session has limits, so that none is unlimited by accident.

mod charged;
mod clock;
mod gathered_side;
mod growth;
mod input_watch;
mod interrupt;
mod kept_memory;
mod plan_size;
mod pool;
mod resident;
mod restartable;
mod row_pace;
mod scan_budget;
mod task_scope;
mod unnest_pace;
mod usage;
mod wide_rows;
mod window_memory;

use std::time::Duration;

pub(crate) use charged::{charged_again, is_charged};
pub(crate) use clock::QueryClock;
pub(crate) use growth::{
    CallGrowth, argument_bytes, compared_pairs, largest_value, nested_items, row_bytes, scalar_bytes, tree_bytes,
};
pub(crate) use interrupt::{AbandonOnDrop, Interrupt};
pub(crate) use kept_memory::KeptMemory;
pub(crate) use plan_size::{check_nested_calls, check_plan_size, check_type, check_types, check_wide_select};
pub(crate) use pool::{EnginePool, PlanningMemory, QueryPool};
pub(crate) use resident::{Announced, ResidentLimit, resident_bytes, running_queries};
pub(crate) use row_pace::{
    BATCH_BYTES, array_bytes, batch_bytes, batch_rows, has_fixed_width, pace_mark, pace_projections, paced_again,
};
pub(crate) use scan_budget::ScanBudget;
pub use scan_budget::{ScanLimit, ScanLimits};
pub(crate) use task_scope::in_query;
pub(crate) use unnest_pace::pace_unnests;
pub(crate) use usage::{InterruptWatch, QueryLabel, QueryUsage, TouchedTables, follow_spawned_tasks, measured};
pub(crate) use wide_rows::{checked_width, is_checked_width};
pub(crate) use window_memory::{
    KeptFrameRows, WindowMemory, charge_windows, keeps_rows, window_mark, window_watched_again,
};

/// A query's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// The time that the query works, from parsing to the last batch; `wall_clock_exceeded` beyond. It does not run while the
    /// query waits for its reader.
    pub wall_clock: Duration,
    /// How long the query waits for a reader that takes nothing; `reader_idle` beyond.
    pub reader_idle: Duration,
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
    /// How long a query waits for its reader where nothing else is said.
    pub const DEFAULT_READER_IDLE: Duration = Duration::from_secs(1_800);
    /// The memory of a query where nothing else is said, in bytes.
    pub const DEFAULT_MEMORY_BYTES: usize = 4 << 30;
}

impl Default for Limits {
    /// The default wall clock, patience and memory, no row or byte limit.
    fn default() -> Self {
        Self {
            wall_clock: Self::DEFAULT_WALL_CLOCK,
            reader_idle: Self::DEFAULT_READER_IDLE,
            memory_bytes: Self::DEFAULT_MEMORY_BYTES,
            max_rows: None,
            max_bytes: None,
        }
    }
}
