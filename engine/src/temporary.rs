//! Tables of one session: in memory, seen by nobody else, gone with the session. Their bytes count against the engine's
//! memory and against a limit of the session's own.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Array, ArrayData, BooleanArray, Int64Array, RecordBatch};
use arrow::compute::filter_record_batch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::catalog::TableProvider;
use datafusion::datasource::MemTable;
use datafusion::execution::memory_pool::{
    GreedyMemoryPool, MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use parking_lot::RwLock;
use querent_catalog::{CatalogError, IfExists, TableName};
use tokio::sync::OwnedMutexGuard;

use crate::error::{EngineError, Result};
use crate::identifiers::{FILE_COLUMN, POSITION_COLUMN};
use crate::plan_cache::PlanStore;
use crate::turns::TableTurns;

/// What an array takes beside its buffers, and a table beside its columns and rows; guesses, on the large side.
const ARRAY_BYTES: usize = 256;
const TABLE_BYTES: usize = 2 << 10;
/// What they are called in the engine's memory.
const CONSUMER: &str = "temporary tables";

/// What the tables of several sessions may hold together: half of the engine's memory, so that queries have the other half
/// whatever is kept. Cheap to clone.
#[derive(Debug, Clone)]
pub struct TemporaryShare(Arc<dyn MemoryPool>);

impl TemporaryShare {
    /// Half of `pool`, which the tables count in besides.
    pub(crate) fn of_pool(pool: &Arc<dyn MemoryPool>) -> Self {
        let half = match pool.memory_limit() {
            MemoryLimit::Finite(bytes) => bytes / 2,
            MemoryLimit::Infinite | MemoryLimit::Unknown => usize::MAX,
        };
        Self(Arc::new(GreedyMemoryPool::new(half)))
    }
}

/// The tables of one session. Names are matched without regard to case.
#[derive(Debug)]
pub struct TemporaryTables {
    tables: RwLock<BTreeMap<String, TemporaryTable>>,
    memory: MemoryReservation,
    /// The same bytes in what several sessions may hold together.
    together: Option<MemoryReservation>,
    limit: usize,
    /// How often they were changed.
    version: AtomicU64,
    /// Plans of statements over them, which hold their rows: they go with the next change.
    plans: Arc<dyn PlanStore>,
    turns: TableTurns,
}

/// One table and what it occupies.
#[derive(Debug)]
struct TemporaryTable {
    name: String,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    bytes: usize,
    provider: Arc<MemTable>,
}

impl TemporaryTables {
    /// Returns room for tables of `limit` bytes at most, within `pool`.
    /// Plans over them are kept in `plans`.
    pub(crate) fn new(pool: &Arc<dyn MemoryPool>, limit: usize, plans: Arc<dyn PlanStore>) -> Self {
        let memory = MemoryConsumer::new(CONSUMER).register(pool);
        let (tables, version, turns) = (RwLock::default(), AtomicU64::new(0), TableTurns::default());
        Self { tables, memory, together: None, limit, version, plans, turns }
    }

    /// The same, of a session that has others beside it.
    pub(crate) fn within(self, share: &TemporaryShare) -> Self {
        Self { together: Some(MemoryConsumer::new(CONSUMER).register(&share.0)), ..self }
    }

    /// Returns the plans of statements over these tables, and the version of the tables that they have to be of; `None` while
    /// there are no tables.
    pub(crate) fn plans(&self) -> Option<(&Arc<dyn PlanStore>, u64)> {
        let tables = self.tables.read();
        (!tables.is_empty()).then(|| (&self.plans, self.version.load(Ordering::Acquire)))
    }

    /// Returns the names and schemas of the tables, by name.
    pub fn list(&self) -> Vec<(String, SchemaRef)> {
        self.tables.read().values().map(|table| (table.name.clone(), Arc::clone(&table.schema))).collect()
    }

    /// Returns the bytes that the tables occupy.
    pub fn reserved_bytes(&self) -> usize {
        self.memory.size()
    }

    /// Returns whether there is a table of that name.
    pub fn contains(&self, name: &str) -> bool {
        self.tables.read().contains_key(&name.to_lowercase())
    }

    /// Waits until nobody else makes a table of that name in turn, and returns the turn.
    pub(crate) async fn turn_of_table(&self, name: &str) -> OwnedMutexGuard<()> {
        self.turns.turn(&TableName::new("", name)).await
    }

    /// Returns what scans a table.
    pub(crate) fn provider(&self, name: &str) -> Option<Arc<dyn TableProvider>> {
        let tables = self.tables.read();
        let table = tables.get(&name.to_lowercase())?;
        Some(Arc::clone(&table.provider) as Arc<dyn TableProvider>)
    }

    /// Returns how often the tables were changed.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Returns what scans a table with two more columns, which number its rows. Errors: `table_not_found`.
    pub(crate) fn numbered(&self, name: &str) -> Result<Arc<dyn TableProvider>> {
        let tables = self.tables.read();
        let table = tables.get(&name.to_lowercase()).ok_or_else(|| no_such_table(name))?;
        let numbers = [FILE_COLUMN, POSITION_COLUMN].map(|name| Arc::new(Field::new(name, DataType::Int64, false)));
        let fields: Vec<FieldRef> = table.schema.fields().iter().cloned().chain(numbers).collect();
        let schema = Arc::new(Schema::new(fields));
        let mut before = 0;
        let mut batches = Vec::with_capacity(table.batches.len());
        for batch in &table.batches {
            let rows = batch.num_rows() as i64;
            let mut columns = batch.columns().to_vec();
            columns.push(Arc::new(Int64Array::from(vec![0; batch.num_rows()])));
            columns.push(Arc::new((before..before + rows).collect::<Int64Array>()));
            batches.push(RecordBatch::try_new(Arc::clone(&schema), columns)?);
            before += rows;
        }
        Ok(Arc::new(MemTable::try_new(schema, vec![batches])?))
    }

    /// Takes rows from a table by their positions, and adds others. Errors: `conflict` where the tables are of another
    /// version, `memory_exceeded`.
    pub(crate) fn change(
        &self,
        name: &str,
        version: u64,
        deleted: &BTreeSet<u64>,
        added: Vec<RecordBatch>,
    ) -> Result<()> {
        let mut tables = self.tables.write();
        let table = tables.get_mut(&name.to_lowercase()).ok_or_else(|| no_such_table(name))?;
        if self.version() != version {
            return Err(CatalogError::Conflict { object: name.to_owned() }.into());
        }
        let mut before = 0;
        let mut kept = Vec::with_capacity(table.batches.len());
        for batch in &table.batches {
            let after = before + batch.num_rows() as u64;
            if deleted.range(before..after).next().is_none() {
                kept.push(batch.clone());
            } else {
                let stays: BooleanArray = (before..after).map(|row| Some(!deleted.contains(&row))).collect();
                kept.push(filter_record_batch(batch, &stays)?);
            }
            before = after;
        }
        let rows = kept.into_iter().chain(added).filter(|batch| batch.num_rows() > 0).collect();
        let changed = TemporaryTable::new(table.name.clone(), Arc::clone(&table.schema), rows)?;
        match changed.bytes.checked_sub(table.bytes) {
            Some(more) => self.reserve(more)?,
            None => self.give_back(table.bytes - changed.bytes),
        }
        *table = changed;
        self.changed();
        Ok(())
    }

    /// Makes a table of rows. Returns how many there are. Errors: `already_exists`, `memory_exceeded`, `invalid_name` for
    /// columns that case alone tells apart, as in tables that last.
    pub(crate) fn create(
        &self,
        name: &str,
        schema: &SchemaRef,
        batches: Vec<RecordBatch>,
        if_exists: IfExists,
    ) -> Result<u64> {
        let mut tables = self.tables.write();
        let key = name.to_lowercase();
        if let Some(existing) = tables.get(&key) {
            match if_exists {
                IfExists::Ignore => return Ok(0),
                IfExists::Replace => {}
                IfExists::Error => {
                    let existing = (existing.name != name).then(|| existing.name.clone());
                    return Err(CatalogError::AlreadyExists { name: name.to_owned(), existing }.into());
                }
            }
        }
        check_column_names(schema)?;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let table = TemporaryTable::new(name.to_owned(), Arc::clone(schema), batches)?;
        self.reserve(table.bytes)?;
        if let Some(replaced) = tables.insert(key, table) {
            self.give_back(replaced.bytes);
        }
        self.changed();
        Ok(rows)
    }

    /// Adds rows of the table's schema, or replaces those there are. Returns how many there are in `batches`.
    /// Errors: `memory_exceeded`.
    pub(crate) fn insert(&self, name: &str, batches: Vec<RecordBatch>, overwrite: bool) -> Result<u64> {
        let mut tables = self.tables.write();
        let table = tables.get_mut(&name.to_lowercase()).ok_or_else(|| no_such_table(name))?;
        let rows = batches.iter().map(|batch| batch.num_rows() as u64).sum();
        let all = match overwrite {
            true => batches,
            false => table.batches.iter().cloned().chain(batches).collect(),
        };
        let changed = TemporaryTable::new(table.name.clone(), Arc::clone(&table.schema), all)?;
        match changed.bytes.checked_sub(table.bytes) {
            Some(more) => self.reserve(more)?,
            None => self.give_back(table.bytes - changed.bytes),
        }
        *table = changed;
        self.changed();
        Ok(rows)
    }

    /// Drops a table; returns whether there was one.
    pub fn drop_table(&self, name: &str) -> bool {
        let mut tables = self.tables.write();
        match tables.remove(&name.to_lowercase()) {
            Some(table) => {
                self.give_back(table.bytes);
                self.changed();
                true
            }
            None => false,
        }
    }

    /// Forgets the plans over the tables as they were; called while they are locked for the change.
    fn changed(&self) {
        self.version.fetch_add(1, Ordering::Release);
        self.plans.clear();
    }

    fn reserve(&self, bytes: usize) -> Result<()> {
        if self.memory.size().saturating_add(bytes) > self.limit {
            let limit = self.limit >> 20;
            return Err(EngineError::MemoryExceeded {
                detail: format!("the temporary tables of a session may hold {limit} MiB; create a table instead"),
            });
        }
        if let Some(together) = &self.together
            && together.try_grow(bytes).is_err()
        {
            return Err(EngineError::MemoryExceeded {
                detail:
                    "the temporary tables of all sessions hold half of the memory for queries; drop some, or create \
                         a table instead"
                        .to_owned(),
            });
        }
        self.memory.try_grow(bytes).inspect_err(|_| self.shrink_together(bytes))?;
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.memory.shrink(bytes);
        self.shrink_together(bytes);
    }

    fn shrink_together(&self, bytes: usize) {
        if let Some(together) = &self.together {
            together.shrink(bytes);
        }
    }
}

impl TemporaryTable {
    fn new(name: String, schema: SchemaRef, batches: Vec<RecordBatch>) -> Result<Self> {
        let bytes = kept_bytes(&schema, &batches);
        let provider = Arc::new(MemTable::try_new(Arc::clone(&schema), vec![batches.clone()])?);
        Ok(Self { name, schema, batches, bytes, provider })
    }
}

/// Returns the bytes that a table's columns and batches keep in memory: those without rows, too. The arrays of a batch that was
/// received are slices of one message.
fn kept_bytes(schema: &Schema, batches: &[RecordBatch]) -> usize {
    let mut counted = HashSet::new();
    let mut bytes = TABLE_BYTES + schema.fields().iter().map(|field| field.size()).sum::<usize>();
    let mut pending: Vec<ArrayData> =
        batches.iter().flat_map(RecordBatch::columns).map(|column| column.to_data()).collect();
    while let Some(data) = pending.pop() {
        bytes += ARRAY_BYTES;
        let validity = data.nulls().map(|nulls| nulls.buffer());
        for buffer in data.buffers().iter().chain(validity) {
            if counted.insert(buffer.data_ptr()) {
                bytes += buffer.capacity();
            }
        }
        pending.extend(data.child_data().iter().cloned());
    }
    bytes
}

fn check_column_names(schema: &Schema) -> Result<()> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name().to_lowercase())) {
        Some(twice) => {
            let reason = "another column of the table has this name (case aside)".to_owned();
            Err(CatalogError::InvalidName { name: twice.name().clone(), reason }.into())
        }
        None => Ok(()),
    }
}

/// Returns the error for a table that a session does not have.
pub(crate) fn no_such_table(name: &str) -> EngineError {
    CatalogError::TableNotFound { database: String::new(), table: name.to_owned(), nearest: None }.into()
}

/// Returns the error for a temporary table where there is no session that it could belong to.
pub(crate) fn no_session() -> EngineError {
    EngineError::Unsupported {
        what: "a temporary table outside of a session".into(),
        hint: "connect over Flight SQL, where a connection is a session, or create a table".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan_cache::PlanCache;

    fn tables(pool: &Arc<dyn MemoryPool>, limit: usize) -> TemporaryTables {
        TemporaryTables::new(pool, limit, PlanCache::new(0))
    }

    #[test]
    fn tables_without_rows_take_memory_for_their_columns() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        let tables = tables(&pool, 4 << 20);
        let fields: Vec<Field> =
            (0..10_000).map(|n| Field::new(format!("column_{n}"), DataType::Int64, true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let make = |n: usize| tables.create(&format!("t{n}"), &schema, Vec::new(), IfExists::Error);
        let made = (0..100).take_while(|n| make(*n).is_ok()).count();
        assert!((1..10).contains(&made), "{made}");
        assert_eq!(pool.reserved(), tables.reserved_bytes());
        (0..made).for_each(|n| assert!(tables.drop_table(&format!("t{n}"))));
        assert_eq!(pool.reserved(), 0);
    }

    #[test]
    fn the_tables_of_all_sessions_leave_half_of_the_memory() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 20));
        let share = TemporaryShare::of_pool(&pool);
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let numbers = Int64Array::from(vec![7; 16 << 10]);
        let rows = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(numbers)]).unwrap();
        let sessions: Vec<TemporaryTables> = (0..16).map(|_| tables(&pool, 1 << 20).within(&share)).collect();
        let make = |session: &TemporaryTables| session.create("t", &schema, vec![rows.clone()], IfExists::Error);
        let made = sessions.iter().take_while(|session| make(session).is_ok()).count();
        assert_eq!(made, 3, "128 KiB each, and a little more");
        assert!(pool.reserved() <= 1 << 19, "{}", pool.reserved());
        assert!(sessions[0].drop_table("t"));
        assert!(make(&sessions[9]).is_ok());
        drop(sessions);
        assert_eq!((pool.reserved(), share.0.reserved()), (0, 0));
    }

    #[test]
    fn rows_that_come_one_by_one_take_memory_for_their_arrays() {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1 << 30));
        let tables = tables(&pool, 1 << 20);
        let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, true)]));
        let row = || RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![1]))]).unwrap();
        tables.create("t", &schema, vec![row()], IfExists::Error).unwrap();
        let before = tables.reserved_bytes();
        for _ in 0..100 {
            tables.insert("t", vec![row()], false).unwrap();
        }
        assert!(tables.reserved_bytes() >= before + 100 * ARRAY_BYTES, "{}", tables.reserved_bytes());
    }
}
