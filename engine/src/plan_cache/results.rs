//! Rows of queries that were answered before, for the next time that the same caller asks the same of the same data.
//!
//! Invariants: rows are found only under everything that their plan depended on, the values of its parameters and the version of the
//! catalog ([`ResultKey`]), and only queries over managed tables, whose functions always say the same, have a key. What is kept
//! counts in the engine's memory and gives way to queries ([`ResultCache::give_way`]).

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::scalar::ScalarValue;
use hashlink::LruCache;
use parking_lot::Mutex;
use querent_catalog::CatalogVersion;

use super::PlanKey;

/// No result takes more than this part of a cache.
const LARGEST_SHARE: usize = 8;
/// What a result takes beside its rows, its text and the values of its parameters; a guess, on the large side.
const ENTRY_BYTES: usize = 1_024;

/// What decides the rows of a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ResultKey {
    /// What decides its plan.
    pub plan: PlanKey,
    /// The values of its parameters.
    pub values: Vec<ScalarValue>,
    /// The version of the catalog that it reads.
    pub version: CatalogVersion,
}

impl Hash for ResultKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.plan.hash(state);
        self.values.hash(state);
    }
}

/// All rows of a query.
#[derive(Debug)]
pub(crate) struct KeptResult {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    bytes: usize,
}

/// What the engine's results take and how they were used, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultCacheState {
    /// Bytes of the results that are kept.
    pub bytes: usize,
    /// Queries that a kept result answered.
    pub hits: u64,
    /// Queries that were executed and whose result was kept.
    pub misses: u64,
}

/// Results, shared by all queries of an engine.
#[derive(Debug)]
pub(crate) struct ResultCache {
    kept: Mutex<KeptResults>,
    /// What the results take of the engine's memory.
    memory: MemoryReservation,
    limit: usize,
    hits: AtomicU64,
    misses: AtomicU64,
}

#[derive(Debug)]
struct KeptResults {
    /// Of one version of the catalog, the newest that was asked for.
    results: LruCache<ResultKey, Arc<KeptResult>>,
    version: Option<CatalogVersion>,
    bytes: usize,
}

impl ResultCache {
    /// A cache of at most `limit` bytes, which count in `pool`. With 0 it keeps nothing.
    pub(crate) fn new(limit: usize, pool: &Arc<dyn MemoryPool>) -> Arc<Self> {
        let kept = KeptResults { results: LruCache::new_unbounded(), version: None, bytes: 0 };
        Arc::new(Self {
            kept: Mutex::new(kept),
            memory: MemoryConsumer::new("kept results").register(pool),
            limit,
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// Whether anything is kept.
    pub(crate) fn is_on(&self) -> bool {
        self.limit > 0
    }

    /// Returns the most bytes of a result that is kept.
    pub(crate) fn largest_bytes(&self) -> usize {
        self.limit / LARGEST_SHARE
    }

    /// Returns the bytes that it has reserved.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.memory.size()
    }

    /// Returns what it holds and how it was used.
    pub(crate) fn state(&self) -> ResultCacheState {
        ResultCacheState {
            bytes: self.reserved_bytes(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Returns the rows that are kept for a query.
    pub(crate) fn find(&self, key: &ResultKey) -> Option<Arc<KeptResult>> {
        let found = self.kept.lock().results.get(key).map(Arc::clone)?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        Some(found)
    }

    /// Keeps all rows of a query, unless they are too many or of an older version than others.
    pub(crate) fn keep(&self, key: ResultKey, schema: SchemaRef, batches: Vec<RecordBatch>) {
        let values = key.values.iter().map(ScalarValue::size).sum::<usize>();
        let rows = batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>();
        let bytes = key.plan.text.len() + values + rows + ENTRY_BYTES;
        if bytes > self.largest_bytes() {
            return;
        }
        let mut kept = self.kept.lock();
        let newest = kept.version;
        match newest {
            Some(version) if version == key.version => {}
            Some(version) if is_older(key.version, version) => return,
            // Nobody will ask for what was before.
            Some(_) | None => {
                self.memory.shrink(kept.clear());
                kept.version = Some(key.version);
            }
        }
        if let Some(replaced) = kept.results.remove(&key) {
            kept.bytes -= replaced.bytes;
            self.memory.shrink(replaced.bytes);
        }
        while kept.bytes + bytes > self.limit || self.memory.try_grow(bytes).is_err() {
            match kept.remove_least_recent() {
                0 => return,
                freed => self.memory.shrink(freed),
            }
        }
        kept.bytes += bytes;
        kept.results.insert(key, Arc::new(KeptResult { schema, batches, bytes }));
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    /// Gives back at least `wanted` bytes, or all that there are; returns how many.
    pub(crate) fn give_way(&self, wanted: usize) -> usize {
        let mut kept = self.kept.lock();
        let mut freed = 0;
        while freed < wanted && !kept.results.is_empty() {
            freed += kept.remove_least_recent();
        }
        self.memory.shrink(freed);
        freed
    }
}

impl KeptResults {
    /// Removes the result whose use is longest ago; returns its bytes, 0 where there is none.
    fn remove_least_recent(&mut self) -> usize {
        let bytes = self.results.remove_lru().map_or(0, |(_, removed)| removed.bytes);
        self.bytes -= bytes;
        bytes
    }

    /// Removes all; returns their bytes.
    fn clear(&mut self) -> usize {
        self.results.clear();
        std::mem::take(&mut self.bytes)
    }
}

/// Both numbers only ever grow.
fn is_older(one: CatalogVersion, other: CatalogVersion) -> bool {
    one.snapshot < other.snapshot || one.policies < other.policies
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array};
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use querent_catalog::{Principal, Role};

    use super::*;

    fn key(text: &str, snapshot: i64, value: i64) -> ResultKey {
        let plan = PlanKey {
            text: text.to_owned(),
            database: Arc::from("default"),
            caller: Principal::new("anna", Role::Read),
            settings: Vec::new(),
            parameters: None,
            parameter_names: Vec::new(),
            takes_dictionaries: false,
            pushed_rows: None,
        };
        ResultKey {
            plan,
            values: vec![ScalarValue::Int64(Some(value))],
            version: CatalogVersion { snapshot, policies: 0 },
        }
    }

    /// Keeps 8,000 bytes of rows.
    fn keep(cache: &ResultCache, key: ResultKey) {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![1_i64; 1_000]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        cache.keep(key, batch.schema(), vec![batch]);
    }

    fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(bytes))
    }

    #[test]
    fn a_result_is_found_by_all_that_decides_it() {
        let cache = ResultCache::new(1 << 20, &pool(1 << 20));
        keep(&cache, key("a", 1, 7));
        assert_eq!(cache.find(&key("a", 1, 7)).unwrap().batches[0].num_rows(), 1_000);
        let anna = key("a", 1, 7);
        for other in [
            key("b", 1, 7),
            key("a", 2, 7),
            key("a", 1, 8),
            ResultKey {
                plan: PlanKey { caller: Principal::new("bob", Role::Read), ..anna.plan.clone() },
                ..anna.clone()
            },
            ResultKey { plan: PlanKey { pushed_rows: Some(10), ..anna.plan.clone() }, ..anna.clone() },
            ResultKey { version: CatalogVersion { snapshot: 1, policies: 1 }, ..anna.clone() },
        ] {
            assert!(cache.find(&other).is_none(), "{other:?}");
        }
        assert_eq!((cache.state().hits, cache.state().misses), (1, 1));
    }

    #[test]
    fn a_newer_version_takes_the_place_of_what_was_before() {
        let pool = pool(1 << 20);
        let cache = ResultCache::new(1 << 20, &pool);
        keep(&cache, key("a", 1, 7));
        let once = pool.reserved();
        keep(&cache, key("b", 2, 7));
        assert!(cache.find(&key("a", 1, 7)).is_none() && cache.find(&key("b", 2, 7)).is_some());
        keep(&cache, key("a", 1, 7));
        assert!(cache.find(&key("a", 1, 7)).is_none(), "older than others");
        keep(&cache, key("b", 2, 7));
        assert_eq!((cache.reserved_bytes(), pool.reserved()), (once, once));
    }

    #[test]
    fn it_stays_within_its_limit_and_the_pool_and_gives_way() {
        let pool = pool(40_000);
        let cache = ResultCache::new(100_000, &pool);
        for text in ["a", "b", "c", "d", "e", "f"] {
            keep(&cache, key(text, 1, 7));
        }
        assert!(pool.reserved() <= 40_000 && pool.reserved() == cache.reserved_bytes());
        assert!(cache.find(&key("a", 1, 7)).is_none() && cache.find(&key("f", 1, 7)).is_some());
        assert!(cache.give_way(1) >= 8_000);
        cache.give_way(usize::MAX);
        assert_eq!((pool.reserved(), cache.reserved_bytes()), (0, 0));
        let small = ResultCache::new(8 * LARGEST_SHARE, &pool);
        keep(&small, key("a", 1, 7));
        assert!(small.find(&key("a", 1, 7)).is_none(), "more than its share");
        assert!(!ResultCache::new(0, &pool).is_on());
    }
}
