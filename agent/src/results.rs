//! Rows of tools' queries, kept for a while so that their caller can fetch them over Flight without running the query
//! again: what the tickets in events name.
//!
//! Invariants: what is kept, what is being collected and what is still being read takes at most the store's bytes
//! together, the oldest results making room for new ones; a result is given to its caller only, and until it expires; a
//! result that is not whole says so.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayData, RecordBatch, UInt64Array};
use arrow::buffer::Buffer;
use arrow::compute::take_record_batch;
use arrow::datatypes::SchemaRef;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use querent_catalog::Principal;
use querent_catalog::policy::ReadReach;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::event::ResultTicket;

/// What a ticket begins with; an id of 32 hexadecimal digits follows, and where servers share a catalog the id of the one that
/// has the rows, written alike. The whole is valid base64, so that a client which takes a ticket in JSON for base64, as JSON of
/// protobuf messages has bytes, names the same result.
const TICKET_PREFIX: &str = "querentresultset";
/// Digits of an id in a ticket.
const ID_DIGITS: usize = 32;
/// Bytes of a ticket that was decoded, at most.
const MAX_DECODED_BYTES: usize = 64;
/// One result takes at most such a part of the store.
const RESULT_SHARE: usize = 4;
/// Bytes that an array takes beside its buffers, and a result beside its batches.
const ARRAY_BYTES: usize = 256;
const RESULT_BYTES: usize = 2 << 10;
/// Rows are copied out of buffers that hold more than these bytes, and more than twice what the rows need.
const MAX_SLACK_BYTES: usize = 64 << 10;
/// The shortest pause between looks for what has expired.
const SWEEP_PAUSE: Duration = Duration::from_millis(10);
/// Tickets that are remembered, so that one that expired is not taken for a forged one.
const MAX_REMEMBERED: usize = 4_096;

/// Keeps results within a bound of bytes and of time.
pub struct ResultStore {
    max_bytes: usize,
    lifetime: Duration,
    /// The id of this server, where others share its catalog.
    server: Option<Uuid>,
    shelf: Mutex<Shelf>,
    /// Drops what has expired. Its task ends with the store.
    sweeper: OnceLock<JoinSet<()>>,
}

/// The results by id.
#[derive(Default)]
struct Shelf {
    results: HashMap<Uuid, Remembered>,
    /// The ids of all that are remembered, and of those whose rows are kept: oldest first.
    remembered: VecDeque<Uuid>,
    kept: VecDeque<Uuid>,
    /// Bytes of every charge that is alive.
    bytes: Arc<Mutex<usize>>,
}

struct Remembered {
    owner: Principal,
    /// What its owner could read.
    reach: ReadReach,
    expires: Instant,
    rows: KeptRows,
}

enum KeptRows {
    Here(Arc<StoredResult>),
    Expired,
    /// Newer results needed the room.
    Displaced,
}

/// The rows of one query.
pub struct StoredResult {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    is_truncated: bool,
    /// Counts as long as anybody reads the rows, also after the store has let go of them.
    _charge: ByteCharge,
}

impl StoredResult {
    /// Returns the schema of every batch.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Returns the batches in order.
    pub fn batches(&self) -> &[RecordBatch] {
        &self.batches
    }

    /// Whether the query has more rows than these: not all of them were read, or fitted.
    pub fn is_truncated(&self) -> bool {
        self.is_truncated
    }
}

/// Why a ticket is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TicketRefusal {
    /// No such ticket is known.
    #[error("no result of this server process has this ticket")]
    Unknown,
    /// It was made for somebody else.
    #[error("this ticket was made for another caller")]
    OtherCaller,
    /// It is too old.
    #[error("the rows of this ticket were kept for {} s, which are over", .lifetime.as_secs_f64())]
    Expired {
        /// How long rows are kept.
        lifetime: Duration,
    },
    /// Its rows made room for newer ones.
    #[error("the rows of this ticket were dropped to make room for newer results")]
    Displaced,
}

/// Bytes of a store that are in use until this is dropped.
struct ByteCharge {
    bytes: usize,
    total: Arc<Mutex<usize>>,
}

impl ByteCharge {
    /// Adds `more` bytes, unless the total would exceed `max`.
    fn grow(&mut self, more: usize, max: usize) -> bool {
        let mut total = self.total.lock();
        let fits = total.checked_add(more).is_some_and(|sum| sum <= max);
        if fits {
            *total += more;
            self.bytes += more;
        }
        fits
    }
}

impl Drop for ByteCharge {
    fn drop(&mut self) {
        *self.total.lock() -= self.bytes;
    }
}

impl ResultStore {
    /// Creates a store of at most `max_bytes` that keeps a result for `lifetime`. With 0 bytes it keeps nothing.
    pub fn new(max_bytes: usize, lifetime: Duration) -> Self {
        Self { max_bytes, lifetime, server: None, shelf: Mutex::default(), sweeper: OnceLock::new() }
    }

    /// Returns the store of a server whose tickets name it, so that others know where the rows are.
    pub fn of_server(self, server: Option<Uuid>) -> Self {
        Self { server, ..self }
    }

    /// Returns the id of the server that a ticket names; `None` for those that name none, and those of another kind.
    pub fn server_of(ticket: &[u8]) -> Option<Uuid> {
        ids_of(&ticket_text(ticket)?)?.1
    }

    /// Returns the bytes in use: of results that are kept, collected or read.
    pub fn bytes(&self) -> usize {
        let bytes = Arc::clone(&self.shelf.lock().bytes);
        let bytes = bytes.lock();
        *bytes
    }

    /// Whether these bytes are a ticket of a result, and not one of another kind.
    pub fn is_ticket(ticket: &[u8]) -> bool {
        ticket_text(ticket).is_some()
    }

    /// Returns the rows of a ticket of `caller`'s, who can read so far by now.
    pub fn fetch(
        &self,
        ticket: &[u8],
        caller: &Principal,
        reach: &ReadReach,
    ) -> Result<Arc<StoredResult>, TicketRefusal> {
        let id = ticket_text(ticket).and_then(|text| Some(ids_of(&text)?.0));
        self.drop_expired();
        let shelf = self.shelf.lock();
        let found = id.and_then(|id| shelf.results.get(&id)).ok_or(TicketRefusal::Unknown)?;
        if !may_read(caller, &found.owner) || !reach.covers(&found.reach) {
            return Err(TicketRefusal::OtherCaller);
        }
        match &found.rows {
            KeptRows::Here(result) => Ok(Arc::clone(result)),
            KeptRows::Expired => Err(TicketRefusal::Expired { lifetime: self.lifetime }),
            KeptRows::Displaced => Err(TicketRefusal::Displaced),
        }
    }

    /// Begins a result; `None` where nothing is kept.
    pub(crate) fn recorder(self: &Arc<Self>, schema: SchemaRef) -> Option<ResultRecorder> {
        let charge = ByteCharge { bytes: 0, total: Arc::clone(&self.shelf.lock().bytes) };
        let schema_bytes: usize = schema.fields().iter().map(|field| field.size()).sum();
        let mut recorder = ResultRecorder {
            store: Arc::clone(self),
            schema,
            batches: Vec::new(),
            buffers: HashSet::new(),
            charge,
            is_full: false,
        };
        recorder.charge(RESULT_BYTES + schema_bytes).then_some(recorder)
    }

    /// Adds `more` bytes to `charge`, for which the oldest results make room.
    fn charge(&self, charge: &mut ByteCharge, more: usize) -> bool {
        if charge.bytes.saturating_add(more) > self.max_bytes / RESULT_SHARE {
            return false;
        }
        while !charge.grow(more, self.max_bytes) {
            // Dropped outside of the lock. Rows that somebody reads go on counting, and the next oldest go too.
            let Some(displaced) = self.shelf.lock().let_go(KeptRows::Displaced) else { return false };
            drop(displaced);
        }
        true
    }

    fn keep(self: &Arc<Self>, owner: Principal, reach: ReadReach, result: StoredResult) -> Uuid {
        self.drop_expired();
        let id = Uuid::new_v4();
        let rows = KeptRows::Here(Arc::new(result));
        let remembered = Remembered { owner, reach, expires: Instant::now() + self.lifetime, rows };
        let forgotten = self.shelf.lock().insert(id, remembered);
        drop(forgotten);
        self.sweeper.get_or_init(|| {
            let mut tasks = JoinSet::new();
            tasks.spawn(sweep(Arc::downgrade(self), self.lifetime));
            tasks
        });
        id
    }

    /// Drops the rows of tickets that have expired.
    fn drop_expired(&self) {
        let now = Instant::now();
        loop {
            let mut shelf = self.shelf.lock();
            let is_due = shelf.oldest_expiry().is_some_and(|expires| expires <= now);
            let expired = if is_due { shelf.let_go(KeptRows::Expired) } else { None };
            drop(shelf);
            if expired.is_none() {
                return;
            }
        }
    }

    /// Returns how long the oldest result is still kept.
    fn oldest_expires_in(&self) -> Option<Duration> {
        Some(self.shelf.lock().oldest_expiry()?.saturating_duration_since(Instant::now()))
    }
}

impl Shelf {
    fn oldest_expiry(&self) -> Option<Instant> {
        Some(self.results.get(self.kept.front()?)?.expires)
    }

    /// Lets go of the oldest rows, whose ticket is remembered. Returns the rows, if there are any.
    fn let_go(&mut self, why: KeptRows) -> Option<KeptRows> {
        let id = self.kept.pop_front()?;
        let remembered = self.results.get_mut(&id)?;
        Some(std::mem::replace(&mut remembered.rows, why))
    }

    /// Returns what is forgotten for it.
    fn insert(&mut self, id: Uuid, remembered: Remembered) -> Option<Remembered> {
        self.results.insert(id, remembered);
        self.remembered.push_back(id);
        self.kept.push_back(id);
        if self.remembered.len() <= MAX_REMEMBERED {
            return None;
        }
        let oldest = self.remembered.pop_front()?;
        if self.kept.front() == Some(&oldest) {
            self.kept.pop_front();
        }
        self.results.remove(&oldest)
    }
}

/// Drops expired results as long as the store exists.
async fn sweep(store: Weak<ResultStore>, lifetime: Duration) {
    loop {
        let Some(wait) = store.upgrade().map(|store| store.oldest_expires_in().unwrap_or(lifetime)) else { return };
        tokio::time::sleep(wait.max(SWEEP_PAUSE)).await;
        if let Some(store) = store.upgrade() {
            store.drop_expired();
        }
    }
}

/// Whether rows that `owner` was given may be given to `caller`: the same person, who may not do less by now.
fn may_read(caller: &Principal, owner: &Principal) -> bool {
    caller.subject() == owner.subject()
        && caller.role() >= owner.role()
        && caller.scope() == owner.scope()
        && caller.attributes() == owner.attributes()
}

/// Writes the ticket of a result, which this server has.
fn ticket_of(result: Uuid, server: Option<Uuid>) -> String {
    let server = server.map(|server| server.simple().to_string()).unwrap_or_default();
    format!("{TICKET_PREFIX}{}{server}", result.simple())
}

/// Reads the ids of a ticket's text: the result's, and that of the server where it names one.
fn ids_of(text: &str) -> Option<(Uuid, Option<Uuid>)> {
    let digits = text.get(TICKET_PREFIX.len()..)?;
    let (result, server) = digits.split_at_checked(ID_DIGITS)?;
    let server = if server.is_empty() { None } else { Some(Uuid::try_parse(server).ok()?) };
    Some((Uuid::try_parse(result).ok()?, server))
}

/// Returns a ticket's text, which came as it is or decoded from base64.
fn ticket_text(ticket: &[u8]) -> Option<Cow<'_, str>> {
    if ticket.starts_with(TICKET_PREFIX.as_bytes()) {
        return std::str::from_utf8(ticket).ok().map(Cow::Borrowed);
    }
    // Tickets of statements are longer, and are not worth being encoded.
    let encoded = (ticket.len() <= MAX_DECODED_BYTES).then(|| BASE64_STANDARD.encode(ticket))?;
    encoded.starts_with(TICKET_PREFIX).then_some(Cow::Owned(encoded))
}

/// Collects the batches of one query as they are read.
pub(crate) struct ResultRecorder {
    store: Arc<ResultStore>,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    /// The allocations that are charged; they live as long as `batches`.
    buffers: HashSet<usize>,
    charge: ByteCharge,
    is_full: bool,
}

impl ResultRecorder {
    /// Keeps a batch, or as many of its rows as there is room for; after that nothing.
    pub(crate) fn push(&mut self, batch: &RecordBatch) {
        if self.is_full || self.keep(batch) {
            return;
        }
        self.is_full = true;
        let mut rows = batch.num_rows() / 2;
        while rows > 0 && !copied(&batch.slice(0, rows)).is_some_and(|copy| self.keep_as_it_is(copy)) {
            rows /= 2;
        }
    }

    /// Stores the rows for `owner`, who can read so far; `is_whole` where the query has no others.
    pub(crate) fn finish(self, owner: &Principal, reach: ReadReach, is_whole: bool) -> ResultTicket {
        let Self { store, schema, batches, charge, is_full, .. } = self;
        let is_truncated = is_full || !is_whole;
        let result = StoredResult { schema, batches, is_truncated, _charge: charge };
        let (id, server) = (store.keep(owner.clone(), reach, result), store.server);
        ResultTicket { text: ticket_of(id, server), truncated: is_truncated }
    }

    fn keep(&mut self, batch: &RecordBatch) -> bool {
        // A few rows of a large buffer would keep all of it.
        let held = allocations(batch).values().sum::<usize>();
        let copy = (held > MAX_SLACK_BYTES && held / 2 > row_bytes(batch)).then(|| copied(batch)).flatten();
        self.keep_as_it_is(copy.unwrap_or_else(|| batch.clone()))
    }

    fn keep_as_it_is(&mut self, batch: RecordBatch) -> bool {
        let held = allocations(&batch);
        let new = held.iter().filter(|(address, _)| !self.buffers.contains(*address));
        let bytes = new.map(|(_, bytes)| bytes).sum::<usize>() + array_count(&batch) * ARRAY_BYTES;
        if !self.charge(bytes) {
            return false;
        }
        self.buffers.extend(held.into_keys());
        self.batches.push(batch);
        true
    }

    fn charge(&mut self, bytes: usize) -> bool {
        self.store.charge(&mut self.charge, bytes)
    }
}

/// Returns the memory that a batch's arrays keep alive: the bytes of each allocation, by its address.
fn allocations(batch: &RecordBatch) -> HashMap<usize, usize> {
    fn add(data: &ArrayData, to: &mut HashMap<usize, usize>) {
        let mut note = |buffer: &Buffer| {
            let kept = to.entry(buffer.data_ptr().as_ptr() as usize).or_default();
            *kept = buffer.capacity().max(*kept);
        };
        data.buffers().iter().for_each(&mut note);
        if let Some(nulls) = data.nulls() {
            note(nulls.buffer());
        }
        for child in data.child_data() {
            add(child, to);
        }
    }
    let mut found = HashMap::new();
    for column in batch.columns() {
        add(&column.to_data(), &mut found);
    }
    found
}

fn array_count(batch: &RecordBatch) -> usize {
    fn count(data: &ArrayData) -> usize {
        1 + data.child_data().iter().map(count).sum::<usize>()
    }
    batch.columns().iter().map(|column| count(&column.to_data())).sum()
}

/// Returns the bytes that the rows themselves take.
fn row_bytes(batch: &RecordBatch) -> usize {
    let bytes = |data: ArrayData| data.get_slice_memory_size().unwrap_or_else(|_| data.get_buffer_memory_size());
    batch.columns().iter().map(|column| bytes(column.to_data())).sum()
}

/// Returns the same rows in memory of their own; `None` for a type whose rows cannot be taken out.
fn copied(batch: &RecordBatch) -> Option<RecordBatch> {
    let rows = UInt64Array::from_iter_values(0..batch.num_rows() as u64);
    take_record_batch(batch, &rows).ok()
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use querent_catalog::Role;

    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn numbers(rows: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    fn anna() -> Principal {
        Principal::new("anna", Role::Read)
    }

    fn kept(store: &Arc<ResultStore>, batches: &[RecordBatch]) -> ResultTicket {
        let mut recorder = store.recorder(batches[0].schema()).unwrap();
        for batch in batches {
            recorder.push(batch);
        }
        recorder.finish(&anna(), ReadReach::default(), true)
    }

    fn rows_of(result: &StoredResult) -> usize {
        result.batches().iter().map(RecordBatch::num_rows).sum()
    }

    #[tokio::test]
    async fn the_same_buffers_come_back_to_their_caller_only() {
        let store = Arc::new(ResultStore::new(1 << 20, MINUTE));
        let batch = numbers(1_000);
        let ticket = kept(&store, std::slice::from_ref(&batch));
        assert!(!ticket.truncated);
        let result = store.fetch(ticket.text.as_bytes(), &anna(), &ReadReach::default()).unwrap();
        assert_eq!(result.batches(), std::slice::from_ref(&batch));
        let address = |batch: &RecordBatch| batch.column(0).to_data().buffers()[0].as_ptr();
        assert_eq!(address(&result.batches()[0]), address(&batch));

        let decoded = BASE64_STANDARD.decode(&ticket.text).unwrap();
        assert!(store.fetch(&decoded, &anna(), &ReadReach::default()).is_ok());
        assert!(ResultStore::is_ticket(&decoded) && !ResultStore::is_ticket(b"\x0a\x50type.googleapis.com"));

        let promoted = Principal::new("anna", Role::Admin);
        assert!(store.fetch(ticket.text.as_bytes(), &promoted, &ReadReach::default()).is_ok());
        for other in [Principal::new("bob", Role::Admin), anna().with_databases(["sales"])] {
            assert_eq!(
                store.fetch(ticket.text.as_bytes(), &other, &ReadReach::default()).err(),
                Some(TicketRefusal::OtherCaller)
            );
        }
        let forged = ticket.text.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(store.fetch(forged.as_bytes(), &anna(), &ReadReach::default()).err(), Some(TicketRefusal::Unknown));
        assert_eq!(
            store.fetch(TICKET_PREFIX.as_bytes(), &anna(), &ReadReach::default()).err(),
            Some(TicketRefusal::Unknown)
        );
    }

    #[test]
    fn tickets_name_their_server_where_there_are_several() {
        let (result, server) = (Uuid::new_v4(), Uuid::now_v7());
        assert_eq!(ids_of(&ticket_of(result, None)), Some((result, None)));
        let ticket = ticket_of(result, Some(server));
        assert_eq!(ids_of(&ticket), Some((result, Some(server))));
        assert_eq!(ResultStore::server_of(ticket.as_bytes()), Some(server));
        assert_eq!(ResultStore::server_of(&BASE64_STANDARD.decode(&ticket).unwrap()), Some(server));
        assert_eq!(ids_of(&ticket[..ticket.len() - 1]), None);
        assert_eq!(ids_of(TICKET_PREFIX), None);
    }

    #[tokio::test]
    async fn the_oldest_make_room_and_what_is_read_goes_on_counting() {
        let store = Arc::new(ResultStore::new(1 << 20, MINUTE));
        let tickets: Vec<ResultTicket> = (0..100).map(|_| kept(&store, &[numbers(10_000)])).collect();
        assert!(store.bytes() <= 1 << 20 && store.bytes() > 900_000, "{}", store.bytes());
        let fetch = |ticket: &ResultTicket| store.fetch(ticket.text.as_bytes(), &anna(), &ReadReach::default());
        assert_eq!(fetch(&tickets[0]).err(), Some(TicketRefusal::Displaced));
        let read: Vec<_> = tickets.iter().filter_map(|ticket| fetch(ticket).ok()).collect();
        assert_eq!(rows_of(&read[0]), 10_000);
        // All that is kept is being read, so there is no room however many are displaced.
        let other = kept(&store, &[numbers(20_000)]);
        assert!(other.truncated && store.bytes() <= 1 << 20, "{}", store.bytes());
        drop(read);
        assert!(store.bytes() < 500_000, "{}", store.bytes());
    }

    #[tokio::test]
    async fn a_result_above_its_share_is_cut_and_says_so() {
        let store = Arc::new(ResultStore::new(1 << 20, MINUTE));
        let ticket = kept(&store, &[numbers(20_000), numbers(20_000), numbers(20_000)]);
        assert!(ticket.truncated);
        let result = store.fetch(ticket.text.as_bytes(), &anna(), &ReadReach::default()).unwrap();
        assert!((20_000..32_768).contains(&rows_of(&result)), "{}", rows_of(&result));
        assert!(store.bytes() <= 1 << 18);
    }

    #[tokio::test]
    async fn a_few_rows_do_not_keep_the_buffers_of_many() {
        let store = Arc::new(ResultStore::new(1 << 20, MINUTE));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100_000).map(|row| format!("row {row}"))));
        let batch = RecordBatch::try_from_iter([("s", texts)]).unwrap();
        let ticket = kept(&store, &[batch.slice(50_000, 3)]);
        assert!(!ticket.truncated && store.bytes() < 8_192, "{}", store.bytes());
        let result = store.fetch(ticket.text.as_bytes(), &anna(), &ReadReach::default()).unwrap();
        assert_eq!(result.batches(), [batch.slice(50_000, 3)]);
    }

    #[tokio::test]
    async fn slices_of_one_buffer_count_once() {
        let store = Arc::new(ResultStore::new(1 << 20, MINUTE));
        let batch = numbers(8_000);
        let slices: Vec<RecordBatch> = (0..8).map(|part| batch.slice(part * 1_000, 1_000)).collect();
        assert!(!kept(&store, &slices).truncated);
        assert!(store.bytes() < 2 * 64_000 + 8 * ARRAY_BYTES + RESULT_BYTES, "{}", store.bytes());
    }

    #[tokio::test]
    async fn what_has_expired_is_dropped_unasked_and_remembered() {
        let store = Arc::new(ResultStore::new(1 << 20, Duration::from_millis(20)));
        let ticket = kept(&store, &[numbers(1_000)]);
        // The expiry itself is under test.
        while store.bytes() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let refusal = store.fetch(ticket.text.as_bytes(), &anna(), &ReadReach::default()).err();
        assert_eq!(refusal, Some(TicketRefusal::Expired { lifetime: Duration::from_millis(20) }));
        let other =
            store.fetch(ticket.text.as_bytes(), &Principal::new("bob", Role::Read), &ReadReach::default()).err();
        assert_eq!(other, Some(TicketRefusal::OtherCaller));
    }

    #[tokio::test]
    async fn tickets_are_not_remembered_without_end() {
        let store = Arc::new(ResultStore::new(64 << 20, MINUTE));
        let first = kept(&store, &[numbers(1)]);
        for _ in 0..MAX_REMEMBERED {
            kept(&store, &[numbers(1)]);
        }
        assert_eq!(
            store.fetch(first.text.as_bytes(), &anna(), &ReadReach::default()).err(),
            Some(TicketRefusal::Unknown)
        );
        let shelf = store.shelf.lock();
        assert_eq!((shelf.results.len(), shelf.kept.len()), (MAX_REMEMBERED, MAX_REMEMBERED));
    }

    #[test]
    fn a_store_of_no_bytes_keeps_nothing() {
        let store = Arc::new(ResultStore::new(0, MINUTE));
        assert!(store.recorder(numbers(1).schema()).is_none());
    }
}
