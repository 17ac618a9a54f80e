//! Columns of Parquet row groups as they are after decoding, kept in memory for the scans that read them again.
//!
//! Invariants: what is kept counts in the engine's memory pool and stays within [`ColumnCache::limit_bytes`]; it gives way to
//! queries ([`ColumnCache::give_way`]); a column is found only under the very version of the file that it was read from.
//!
//! A column is kept from its second use on, and drives out only what was used less often. So one pass over a table that
//! does not fit leaves alone what is there, and repeated passes keep a part of it instead of none.

use std::collections::HashSet;
use std::hash::{BuildHasher, Hash, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayData, ArrayRef};
use arrow::datatypes::DataType;
use chrono::{DateTime, Utc};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use datafusion::execution::object_store::ObjectStoreUrl;
use hashlink::LruCache;
use object_store::ObjectMeta;
use object_store::path::Path as StorePath;
use parking_lot::Mutex;

/// Counters of uses; columns share one where their hashes meet, which admits one of them a little early.
const USE_COUNTERS: usize = 1 << 16;
/// After as many uses all counters are halved, so that what was used often once gives way.
const USES_UNTIL_HALVED: usize = 8 * USE_COUNTERS;
/// No column of one row group takes more than this part of the cache.
const LARGEST_SHARE: usize = 8;

/// Decoded columns, shared by all queries of an engine.
#[derive(Debug)]
pub(crate) struct ColumnCache {
    kept: Mutex<KeptColumns>,
    memory: MemoryReservation,
    limit: usize,
    hasher: RandomState,
    hits: AtomicU64,
    misses: AtomicU64,
}

/// A file as it was at one time: a file that changes is another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct FileVersion {
    store: ObjectStoreUrl,
    location: StorePath,
    size: u64,
    modified: DateTime<Utc>,
    e_tag: Option<String>,
    version: Option<String>,
}

/// Names a column of one row group.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct DecodedColumnKey {
    /// The file.
    pub file: Arc<FileVersion>,
    /// The row group's number in the file.
    pub row_group: usize,
    /// The column's number among the root columns of the file.
    pub column: usize,
    /// What it was decoded to.
    pub data_type: DataType,
    /// The rows of each array but the last.
    pub batch_rows: usize,
}

/// All rows of a column of one row group, in arrays of [`DecodedColumnKey::batch_rows`].
#[derive(Debug)]
pub(crate) struct DecodedColumn {
    batches: Vec<ArrayRef>,
    bytes: usize,
}

/// How often a column was asked for before; made by [`ColumnCache::count_use`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnUse {
    counter: usize,
    /// Uses before this one.
    pub before: u8,
}

/// Memory for a column that is being decoded; given back unless the column is [kept](ColumnRoom::keep).
#[derive(Debug)]
pub(crate) struct ColumnRoom {
    cache: Arc<ColumnCache>,
    counter: usize,
    bytes: usize,
}

/// What a cache holds and how it was used, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ColumnCacheState {
    /// Bytes of the columns that are kept.
    pub bytes: usize,
    /// Columns of row groups that a scan found here.
    pub hits: u64,
    /// Columns of row groups that a scan decoded for the cache.
    pub misses: u64,
}

#[derive(Debug)]
struct KeptColumns {
    columns: LruCache<DecodedColumnKey, KeptColumn>,
    /// With the room of columns that are being decoded.
    bytes: usize,
    uses: Box<[u8]>,
    uses_until_halved: usize,
}

#[derive(Debug)]
struct KeptColumn {
    column: Arc<DecodedColumn>,
    counter: usize,
}

impl FileVersion {
    pub(crate) fn new(store: &ObjectStoreUrl, meta: &ObjectMeta) -> Self {
        Self {
            store: store.clone(),
            location: meta.location.clone(),
            size: meta.size,
            modified: meta.last_modified,
            e_tag: meta.e_tag.clone(),
            version: meta.version.clone(),
        }
    }
}

impl DecodedColumn {
    pub(crate) fn new(batches: Vec<ArrayRef>) -> Self {
        let bytes = buffer_bytes(&batches);
        Self { batches, bytes }
    }

    /// Returns the rows of one batch; `None` beyond the last.
    pub(crate) fn batch(&self, number: usize) -> Option<&ArrayRef> {
        self.batches.get(number)
    }
}

impl ColumnCache {
    /// A cache of at most `limit` bytes, which count in `pool`. With 0 it keeps nothing.
    pub(crate) fn new(limit: usize, pool: &Arc<dyn MemoryPool>) -> Arc<Self> {
        let kept = KeptColumns {
            columns: LruCache::new_unbounded(),
            bytes: 0,
            uses: vec![0; USE_COUNTERS].into_boxed_slice(),
            uses_until_halved: USES_UNTIL_HALVED,
        };
        Arc::new(Self {
            kept: Mutex::new(kept),
            memory: MemoryConsumer::new("decoded columns").register(pool),
            limit,
            hasher: RandomState::new(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
        })
    }

    /// Returns the most that it keeps, in bytes; 0 keeps nothing.
    pub(crate) fn limit_bytes(&self) -> usize {
        self.limit
    }

    /// Returns the bytes that it has reserved.
    pub(crate) fn reserved_bytes(&self) -> usize {
        self.memory.size()
    }

    /// Returns what it holds and how it was used.
    pub(crate) fn state(&self) -> ColumnCacheState {
        ColumnCacheState {
            bytes: self.reserved_bytes(),
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
        }
    }

    /// Counts a use of something that always hashes alike: a column in a range of a file.
    pub(crate) fn count_use(&self, used: impl Hash) -> ColumnUse {
        let counter = usize::try_from(self.hasher.hash_one(used)).unwrap_or_default() % USE_COUNTERS;
        let mut kept = self.kept.lock();
        let before = kept.uses[counter];
        kept.uses[counter] = before.saturating_add(1);
        kept.uses_until_halved -= 1;
        if kept.uses_until_halved == 0 {
            kept.uses_until_halved = USES_UNTIL_HALVED;
            kept.uses.iter_mut().for_each(|uses| *uses /= 2);
        }
        ColumnUse { counter, before }
    }

    /// Returns a column that is kept.
    pub(crate) fn get(&self, key: &DecodedColumnKey) -> Option<Arc<DecodedColumn>> {
        let found = self.kept.lock().columns.get(key).map(|kept| Arc::clone(&kept.column));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    /// Returns whether a column is kept, which is no use of it.
    pub(crate) fn holds(&self, key: &DecodedColumnKey) -> bool {
        self.kept.lock().columns.contains_key(key)
    }

    /// Makes room for a column of about `bytes`, at the cost of columns that were used less often; `None`: it is not to be kept.
    pub(crate) fn admit(self: &Arc<Self>, column: ColumnUse, bytes: usize) -> Option<ColumnRoom> {
        if column.before == 0 || bytes > self.limit / LARGEST_SHARE {
            return None;
        }
        let mut kept = self.kept.lock();
        while kept.bytes + bytes > self.limit || self.memory.try_grow(bytes).is_err() {
            let least = kept.columns.iter().next().map(|(_, least)| least.counter)?;
            if kept.uses[least] > column.before {
                return None;
            }
            self.memory.shrink(kept.remove_least_recent());
        }
        kept.bytes += bytes;
        Some(ColumnRoom { cache: Arc::clone(self), counter: column.counter, bytes })
    }

    /// Gives back at least `wanted` bytes, or all that there are; returns how many. Queries that read the columns at this
    /// time hold them until they have done with them.
    pub(crate) fn give_way(&self, wanted: usize) -> usize {
        let mut kept = self.kept.lock();
        let mut freed = 0;
        while freed < wanted && !kept.columns.is_empty() {
            freed += kept.remove_least_recent();
        }
        self.memory.shrink(freed);
        freed
    }
}

impl KeptColumns {
    /// Removes the column whose use is longest ago; returns its bytes, 0 where there is none.
    fn remove_least_recent(&mut self) -> usize {
        let bytes = self.columns.remove_lru().map_or(0, |(_, removed)| removed.column.bytes);
        self.bytes -= bytes;
        bytes
    }
}

impl ColumnRoom {
    /// Keeps the column, unless it takes more than was thought and there is no room for that.
    pub(crate) fn keep(mut self, key: DecodedColumnKey, column: DecodedColumn) {
        let cache = Arc::clone(&self.cache);
        let mut kept = cache.kept.lock();
        if column.bytes > self.bytes {
            let more = column.bytes - self.bytes;
            if kept.bytes + more > cache.limit || cache.memory.try_grow(more).is_err() {
                return;
            }
        } else {
            cache.memory.shrink(self.bytes - column.bytes);
        }
        kept.bytes = kept.bytes - self.bytes + column.bytes;
        // From here on the bytes are the column's.
        self.bytes = 0;
        let column = KeptColumn { column: Arc::new(column), counter: self.counter };
        if let Some(earlier) = kept.columns.insert(key, column) {
            kept.bytes -= earlier.column.bytes;
            cache.memory.shrink(earlier.column.bytes);
        }
    }
}

impl Drop for ColumnRoom {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.cache.kept.lock().bytes -= self.bytes;
            self.cache.memory.shrink(self.bytes);
        }
    }
}

/// Returns the memory of arrays; a buffer that several of them share, as a dictionary's texts are, counts once.
fn buffer_bytes(arrays: &[ArrayRef]) -> usize {
    fn count(data: &ArrayData, seen: &mut HashSet<usize>) -> usize {
        let nulls = data.nulls().map(|nulls| nulls.buffer());
        let own: usize = data
            .buffers()
            .iter()
            .chain(nulls)
            .filter(|buffer| seen.insert(buffer.data_ptr().as_ptr() as usize))
            .map(|buffer| buffer.capacity())
            .sum();
        own + data.child_data().iter().map(|child| count(child, seen)).sum::<usize>()
    }
    let mut seen = HashSet::new();
    arrays.iter().map(|array| count(&array.to_data(), &mut seen)).sum()
}

#[cfg(test)]
mod tests {
    use arrow::array::{Int64Array, StringViewArray};
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    fn column(rows: usize) -> DecodedColumn {
        DecodedColumn::new(vec![Arc::new(Int64Array::from(vec![1_i64; rows])) as ArrayRef])
    }

    fn key(row_group: usize) -> DecodedColumnKey {
        let meta = ObjectMeta {
            location: StorePath::from("t.parquet"),
            last_modified: DateTime::UNIX_EPOCH,
            size: 1,
            e_tag: None,
            version: None,
        };
        let file = Arc::new(FileVersion::new(&ObjectStoreUrl::local_filesystem(), &meta));
        DecodedColumnKey { file, row_group, column: 0, data_type: DataType::Int64, batch_rows: 1_000 }
    }

    /// Uses a column as a scan does; returns whether it was found.
    fn scan(cache: &Arc<ColumnCache>, row_group: usize) -> bool {
        let used = cache.count_use(row_group);
        if cache.get(&key(row_group)).is_some() {
            return true;
        }
        if let Some(room) = cache.admit(used, 8_000) {
            room.keep(key(row_group), column(1_000));
        }
        false
    }

    fn pool(bytes: usize) -> Arc<dyn MemoryPool> {
        Arc::new(GreedyMemoryPool::new(bytes))
    }

    #[test]
    fn a_column_is_kept_from_its_second_use() {
        let pool = pool(1 << 20);
        let cache = ColumnCache::new(1 << 20, &pool);
        assert_eq!([scan(&cache, 0), scan(&cache, 0), scan(&cache, 0)], [false, false, true]);
        assert_eq!((cache.reserved_bytes(), pool.reserved()), (8_000, 8_000));
        assert_eq!(cache.state(), ColumnCacheState { bytes: 8_000, hits: 1, misses: 2 });
        assert_eq!(cache.give_way(1), 8_000);
        assert_eq!((cache.reserved_bytes(), pool.reserved()), (0, 0));
    }

    #[test]
    fn passes_over_more_than_fits_keep_a_part() {
        let cache = ColumnCache::new(80_000, &pool(1 << 20));
        for row_group in 0..20 {
            scan(&cache, row_group);
            scan(&cache, row_group);
        }
        let found = |cache| (0..20).filter(|row_group| scan(cache, *row_group)).count();
        // What the last groups of a pass drove out is missing at its beginning, but not all of it.
        let (first, second) = (found(&cache), found(&cache));
        assert!(first + second >= 10, "{first} {second}");
        assert!(cache.reserved_bytes() <= 80_000);
    }

    #[test]
    fn what_is_used_seldom_does_not_drive_out_what_is_used_often() {
        let cache = ColumnCache::new(72_000, &pool(1 << 20));
        for _ in 0..6 {
            for row_group in 0..9 {
                scan(&cache, row_group);
            }
        }
        for row_group in 100..140 {
            scan(&cache, row_group);
            scan(&cache, row_group);
        }
        assert_eq!((0..9).filter(|row_group| scan(&cache, *row_group)).count(), 9);
    }

    #[test]
    fn nothing_is_kept_beyond_the_pool() {
        let pool = pool(16_000);
        let cache = ColumnCache::new(1 << 20, &pool);
        for row_group in [0, 0, 1, 1, 2, 2] {
            scan(&cache, row_group);
        }
        assert!(pool.reserved() <= 16_000 && pool.reserved() == cache.reserved_bytes());
        // Room that is not used is given back.
        cache.give_way(usize::MAX);
        drop(cache.admit(ColumnUse { counter: 0, before: 9 }, 8_000).unwrap());
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn shared_buffers_count_once() {
        let texts = StringViewArray::from(vec!["a text that is longer than twelve bytes"; 100]);
        let halves: Vec<ArrayRef> = vec![Arc::new(texts.slice(0, 50)), Arc::new(texts.slice(50, 50))];
        let whole: Vec<ArrayRef> = vec![Arc::new(texts)];
        // The views of a half are a buffer of its own address.
        assert!(buffer_bytes(&halves) <= 2 * buffer_bytes(&whole));
        let twice = vec![Arc::clone(&whole[0]), Arc::clone(&whole[0])];
        assert_eq!(buffer_bytes(&twice), buffer_bytes(&whole));
    }
}
