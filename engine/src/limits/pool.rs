//! One query's memory: its own limit, shared fairly among its spilling operators, inside the engine's.
//!
//! A reservation counts twice, once against the query and once against the engine, so that neither one query
//! nor all of them together can take more than they were given.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    FairSpillPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, TrackConsumersPool,
};

/// How many consumers an error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::MIN;

/// The pool of one query.
#[derive(Debug)]
pub(crate) struct QueryPool {
    query: TrackConsumersPool<FairSpillPool>,
    engine: Arc<dyn MemoryPool>,
}

impl QueryPool {
    /// A pool of `limit` bytes that also draws on `engine`.
    pub(crate) fn new(limit: usize, engine: Arc<dyn MemoryPool>) -> Self {
        Self { query: TrackConsumersPool::new(FairSpillPool::new(limit), NAMED_CONSUMERS), engine }
    }
}

/// What a query's planning keeps of rows that it read, out of the query's own memory until this is dropped.
#[derive(Debug)]
pub(crate) struct PlanningMemory {
    pool: Arc<dyn MemoryPool>,
    kept: MemoryReservation,
}

impl PlanningMemory {
    /// Of the query that `pool` is the memory of.
    pub(crate) fn of(pool: Arc<dyn MemoryPool>) -> Self {
        let kept = MemoryConsumer::new("rows read for planning").register(&pool);
        Self { pool, kept }
    }

    /// All of the query's memory.
    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// Reserves what is kept besides. Errors: `memory_exceeded`.
    pub(crate) fn keep(&self, bytes: usize) -> Result<()> {
        self.kept.try_grow(bytes)
    }
}

impl fmt::Display for QueryPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "query({})", self.query)
    }
}

impl MemoryPool for QueryPool {
    fn name(&self) -> &str {
        "query"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.query.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.query.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.query.grow(reservation, additional);
        self.engine.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.query.shrink(reservation, shrink);
        self.engine.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        self.query.try_grow(reservation, additional)?;
        if let Err(error) = self.engine.try_grow(reservation, additional) {
            self.query.shrink(reservation, additional);
            return Err(error);
        }
        Ok(())
    }

    fn reserved(&self) -> usize {
        self.query.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.query.memory_limit()
    }
}
