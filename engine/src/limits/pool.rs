//! One query's memory: a limit of its own, shared fairly among its spilling operators, within the engine's.
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

use super::kept_memory::KeptMemory;

/// The number of consumers that an error names.
const NAMED_CONSUMERS: NonZeroUsize = NonZeroUsize::MIN;

/// The memory of an engine. What is kept for later gives way to what queries need now.
#[derive(Debug)]
pub(crate) struct EnginePool {
    memory: Arc<dyn MemoryPool>,
    kept: Arc<KeptMemory>,
}

impl EnginePool {
    /// `memory` with `kept`, which counts in it.
    pub(crate) fn new(memory: Arc<dyn MemoryPool>, kept: Arc<KeptMemory>) -> Self {
        Self { memory, kept }
    }
}

impl fmt::Display for EnginePool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engine({})", self.memory)
    }
}

impl MemoryPool for EnginePool {
    fn name(&self) -> &str {
        "engine"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.memory.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.memory.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        self.memory.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        self.memory.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut grown = self.memory.try_grow(reservation, additional);
        // Others may take what was given back.
        while grown.is_err() && self.kept.give_way(additional) > 0 {
            grown = self.memory.try_grow(reservation, additional);
        }
        grown
    }

    /// What queries have reserved.
    fn reserved(&self) -> usize {
        self.memory.reserved().saturating_sub(self.kept.reserved_bytes())
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.memory.memory_limit()
    }
}

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

/// The memory that a query's planning keeps of rows that it read: reserved in the query's own pool until this is dropped.
#[derive(Debug)]
pub(crate) struct PlanningMemory {
    pool: Arc<dyn MemoryPool>,
    kept: MemoryReservation,
}

impl PlanningMemory {
    /// Nothing is kept yet in `pool`, the memory of the query.
    pub(crate) fn in_pool(pool: Arc<dyn MemoryPool>) -> Self {
        let kept = MemoryConsumer::new("rows read for planning").register(&pool);
        Self { pool, kept }
    }

    /// Returns the memory of the whole query.
    pub(crate) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.pool
    }

    /// Reserves more bytes. Errors: `memory_exceeded`.
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

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use arrow::datatypes::DataType;
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::execution::object_store::ObjectStoreUrl;
    use object_store::ObjectMeta;

    use super::*;
    use crate::column_cache::{ColumnCache, DecodedColumn, DecodedColumnKey, FileVersion};
    use crate::plan_cache::ResultCache;

    #[test]
    fn what_is_kept_gives_way() {
        let memory: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100_000));
        let columns = ColumnCache::new(80_000, &memory);
        let kept = KeptMemory::new(Arc::clone(&columns), ResultCache::new(0, &memory));
        let pool: Arc<dyn MemoryPool> = Arc::new(EnginePool::new(memory, kept));
        let meta = ObjectMeta {
            location: "t.parquet".into(),
            last_modified: chrono::DateTime::UNIX_EPOCH,
            size: 1,
            e_tag: None,
            version: None,
        };
        let file = Arc::new(FileVersion::new(&ObjectStoreUrl::local_filesystem(), &meta));
        for row_group in 0..10 {
            columns.count_use(row_group);
            let room = columns.admit(columns.count_use(row_group), 8_000).unwrap();
            let file = Arc::clone(&file);
            let key = DecodedColumnKey { file, row_group, column: 0, data_type: DataType::Int64, batch_rows: 1_000 };
            room.keep(key, DecodedColumn::new(vec![Arc::new(Int64Array::from(vec![1; 1_000])) as ArrayRef]));
        }
        assert_eq!((columns.reserved_bytes(), pool.reserved()), (80_000, 0));
        let query = MemoryConsumer::new("query").register(&pool);
        query.try_grow(50_000).unwrap();
        assert_eq!(pool.reserved(), 50_000);
        assert!(columns.reserved_bytes() <= 50_000, "{}", columns.reserved_bytes());
        query.try_grow(50_000).unwrap();
        assert_eq!(columns.reserved_bytes(), 0);
        assert!(query.try_grow(1).is_err());
    }
}
