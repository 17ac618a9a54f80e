//! Tickets and handles: what a client brings back to have a statement executed.
//!
//! Both carry the statement itself, signed with a key of the data folder, so nothing is stored for those that never come
//! back, and they are good after a restart. A statement that is too long to travel so often is kept here, within bounds,
//! and its ticket names it.
//!
//! Invariants: only this server makes what it accepts; a ticket or handle is valid for its caller only; a ticket expires;
//! one of a statement that changes something is valid once, in the process that made it.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use querent_catalog::Principal;
use ring::{digest, hmac};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use super::digests::{caller_digest, digest_of};
use super::statement_text::StatementText;
use crate::error::{ApiError, ErrorCode};

/// How long a ticket can be redeemed.
const LIFETIME: Duration = Duration::from_secs(10 * 60);
/// The longest statement, parameters included, that a ticket or handle carries in itself. A FlightInfo has the ticket and
/// goes through clients that take 16 MiB, some 4 MiB.
const MAX_CARRIED_BYTES: usize = 64 << 10;
/// The bytes of longer statements that are kept; the oldest go first.
const MAX_KEPT_BYTES: usize = 256 << 20;
/// What one that is kept takes beside its text and values: its id, twice, and its places in maps.
const KEPT_OVERHEAD_BYTES: usize = 512;
/// The name of the key's file in the data folder.
const KEY_FILE: &str = "flight.key";
const KEY_BYTES: usize = 32;
/// The most prepared statements that are remembered as closed.
const MAX_CLOSED: usize = 10_000;
/// What tells one process from the next.
const PROCESS_BYTES: usize = 6;

/// A statement as a ticket or handle has it: in itself, or kept by the server under an id.
#[derive(Clone, PartialEq, Message)]
struct Carried {
    #[prost(message, optional, tag = "1")]
    statement: Option<StatementText>,
    #[prost(bytes = "bytes", tag = "2")]
    kept_as: Bytes,
}

/// A statement as planned and authorised by GetFlightInfo, to be executed by DoGet.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatementTicket {
    #[prost(message, optional, tag = "1")]
    carried: Option<Carried>,
    /// Digest of the schema that GetFlightInfo announced; empty where it announced none.
    #[prost(bytes = "bytes", tag = "3")]
    schema_digest: Bytes,
    /// Whether it changes something.
    #[prost(bool, tag = "4")]
    pub(super) changes: bool,
    /// The types that its result's columns may have, by name.
    #[prost(string, tag = "20")]
    pub(super) result_types: String,
    #[prost(uint64, tag = "5")]
    expires_unix_ms: u64,
    #[prost(bytes = "bytes", tag = "6")]
    caller_digest: Bytes,
    /// What names it among the running queries.
    #[prost(bytes = "bytes", tag = "7")]
    pub(super) id: Bytes,
    /// The process that made it.
    #[prost(bytes = "bytes", tag = "8")]
    process: Bytes,
    /// Which of how many endpoints it is for.
    #[prost(uint32, tag = "9")]
    part: u32,
    #[prost(uint32, tag = "10")]
    pub(super) parts: u32,
    /// The server that made it, where several share the catalog.
    #[prost(string, tag = "11")]
    pub(super) server: String,
}

/// A prepared statement. It can be executed again until it is closed.
#[derive(Clone, PartialEq, Message)]
pub(super) struct PreparedHandle {
    #[prost(message, optional, tag = "1")]
    carried: Option<Carried>,
    #[prost(bytes = "bytes", tag = "2")]
    caller_digest: Bytes,
    /// What names it, whatever values its parameters have.
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) id: Bytes,
}

/// A message that travels sealed. Its kind is signed with it, so that a handle is no ticket.
pub(super) trait SealedMessage: Message + Default {
    /// The kind of message.
    const KIND: &'static [u8];
}

impl SealedMessage for StatementTicket {
    const KIND: &'static [u8] = b"ticket";
}

impl SealedMessage for PreparedHandle {
    const KIND: &'static [u8] = b"handle";
}

impl StatementTicket {
    /// Whether it is redeemed once, by the process that made it.
    pub(super) fn is_good_once(&self) -> bool {
        self.changes || self.parts > 1
    }

    /// Returns when it expires, in milliseconds since 1970.
    pub(super) fn expires_unix_ms(&self) -> u64 {
        self.expires_unix_ms
    }

    /// Whether GetFlightInfo announced this schema, or none.
    pub(super) fn has_schema(&self, schema_bytes: &[u8]) -> bool {
        self.schema_digest.is_empty() || self.schema_digest == digest_of(schema_bytes)
    }

    /// Returns the ticket of one of a query's endpoints.
    pub(super) fn for_endpoint(self, part: u32, parts: u32) -> Self {
        Self { part, parts, ..self }
    }

    /// Returns the ticket with its time begun again.
    pub(super) fn renewed(self) -> Self {
        Self { expires_unix_ms: unix_ms(SystemTime::now() + LIFETIME), ..self }
    }
}

/// Makes tickets and handles, and checks them.
pub(super) struct TicketOffice {
    key: hmac::Key,
    server: String,
    process: Bytes,
    spent: Mutex<SpentIds>,
    kept: Mutex<KeptStatements>,
}

/// Tickets that may not be redeemed (again), until they expire, and prepared statements that were closed.
#[derive(Default)]
struct SpentIds {
    tickets: HashSet<Bytes>,
    by_expiry: VecDeque<(u64, Bytes)>,
    closed: HashSet<Bytes>,
    closed_in_order: VecDeque<Bytes>,
}

/// Statements that are too long for their tickets, the oldest first, and the last values of prepared statements whose
/// clients go on with the handle that they had before.
#[derive(Default)]
struct KeptStatements {
    by_id: HashMap<Bytes, KeptStatement>,
    /// Ids by the order in which their statements were kept: values are bound often, and there may be many handles.
    in_order: BTreeMap<u64, Bytes>,
    kept: u64,
    bytes: usize,
}

struct KeptStatement {
    statement: Arc<StatementText>,
    order: u64,
}

impl KeptStatement {
    fn bytes(&self) -> usize {
        self.statement.bytes() + KEPT_OVERHEAD_BYTES
    }
}

impl KeptStatements {
    fn insert(&mut self, id: Bytes, statement: Arc<StatementText>) {
        self.remove(&id);
        self.kept += 1;
        let kept = KeptStatement { statement, order: self.kept };
        self.bytes += kept.bytes();
        self.by_id.insert(id.clone(), kept);
        self.in_order.insert(self.kept, id);
        while self.bytes > MAX_KEPT_BYTES && self.in_order.len() > 1 {
            if let Some((_, oldest)) = self.in_order.pop_first()
                && let Some(dropped) = self.by_id.remove(&oldest)
            {
                self.bytes -= dropped.bytes();
            }
        }
    }

    fn get(&self, id: &Bytes) -> Option<Arc<StatementText>> {
        self.by_id.get(id).map(|kept| Arc::clone(&kept.statement))
    }

    fn remove(&mut self, id: &Bytes) {
        if let Some(dropped) = self.by_id.remove(id) {
            self.bytes -= dropped.bytes();
            self.in_order.remove(&dropped.order);
        }
    }
}

/// Returns the key that signs tickets, made in the data folder the first time.
pub(crate) async fn signing_key(data: &Path) -> std::io::Result<Vec<u8>> {
    let path = data.join(KEY_FILE);
    match tokio::fs::read(&path).await {
        Ok(key) if key.len() == KEY_BYTES => return Ok(key),
        Ok(_) => tokio::fs::remove_file(&path).await?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    // Two version 4 UUIDs hold 244 random bits from the system's generator.
    let key = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
    let mut file = tokio::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).await?;
    file.write_all(&key).await?;
    file.sync_all().await?;
    Ok(key)
}

impl TicketOffice {
    /// Makes an office that signs with `key`, of a server that others may know by this id.
    pub(super) fn new(key: &[u8], server: Option<&str>) -> Self {
        Self {
            key: hmac::Key::new(hmac::HMAC_SHA256, key),
            server: server.unwrap_or_default().to_owned(),
            process: new_id().slice(..PROCESS_BYTES),
            spent: Mutex::default(),
            kept: Mutex::default(),
        }
    }

    /// Makes a ticket of `caller` for a statement whose rows have `schema_bytes`, where that is known.
    pub(super) fn ticket(
        &self,
        caller: &Principal,
        statement: &Arc<StatementText>,
        schema_bytes: Option<&[u8]>,
        changes: bool,
    ) -> StatementTicket {
        StatementTicket {
            carried: Some(self.carry(statement)),
            schema_digest: schema_bytes.map(digest_of).unwrap_or_default(),
            changes,
            result_types: String::new(),
            expires_unix_ms: unix_ms(SystemTime::now() + LIFETIME),
            caller_digest: caller_digest(caller),
            id: new_id(),
            process: self.process.clone(),
            part: 0,
            parts: 1,
            server: self.server.clone(),
        }
    }

    /// Makes the handle of a prepared statement.
    pub(super) fn handle(&self, caller: &Principal, statement: &Arc<StatementText>) -> PreparedHandle {
        PreparedHandle { carried: Some(self.carry(statement)), caller_digest: caller_digest(caller), id: new_id() }
    }

    /// Returns the handle of the same prepared statement with values of its parameters. A client that goes on with the
    /// handle that it had executes it with these values too, as long as they are kept.
    pub(super) fn bound(&self, handle: &PreparedHandle, statement: StatementText) -> PreparedHandle {
        let statement = Arc::new(statement);
        self.kept.lock().insert(handle.id.clone(), Arc::clone(&statement));
        PreparedHandle { carried: Some(self.carry(&statement)), ..handle.clone() }
    }

    fn carry(&self, statement: &Arc<StatementText>) -> Carried {
        if statement.bytes() <= MAX_CARRIED_BYTES {
            return Carried { statement: Some(statement.as_ref().clone()), kept_as: Bytes::new() };
        }
        // The same statement is kept once, however often it is asked for.
        let id = digest_of(&statement.encode_to_vec());
        self.kept.lock().insert(id.clone(), Arc::clone(statement));
        Carried { statement: None, kept_as: id }
    }

    fn carried(&self, carried: Option<&Carried>) -> Result<Arc<StatementText>, ApiError> {
        let carried = carried.ok_or_else(forged)?;
        if let Some(statement) = &carried.statement {
            return Ok(Arc::new(statement.clone()));
        }
        self.kept.lock().get(&carried.kept_as).ok_or_else(|| {
            ApiError::new(ErrorCode::InvalidTicket, "this statement is no longer kept")
                .with_hint("long statements and values are kept for a while only: send the statement again")
        })
    }

    /// Returns the statement of a ticket. Errors: `invalid_ticket`.
    pub(super) fn statement(&self, ticket: &StatementTicket) -> Result<Arc<StatementText>, ApiError> {
        self.carried(ticket.carried.as_ref())
    }

    /// Returns the statement of a handle, with the values that were bound to it last. Errors: `invalid_ticket`.
    pub(super) fn prepared(&self, handle: &PreparedHandle) -> Result<Arc<StatementText>, ApiError> {
        let statement = self.carried(handle.carried.as_ref())?;
        if statement.has_parameters() {
            return Ok(statement);
        }
        let bound = self.kept.lock().get(&handle.id);
        Ok(bound.unwrap_or(statement))
    }

    /// Returns the message's bytes: its signature, then itself.
    pub(super) fn seal<M: SealedMessage>(&self, message: &M) -> Bytes {
        let body = message.encode_to_vec();
        let signature = hmac::sign(&self.key, &[M::KIND, &body].concat());
        [signature.as_ref(), &body].concat().into()
    }

    fn unseal<M: SealedMessage>(&self, sealed: &Bytes) -> Result<M, ApiError> {
        let (signature, body) = sealed.split_at_checked(digest::SHA256_OUTPUT_LEN).ok_or_else(forged)?;
        hmac::verify(&self.key, &[M::KIND, body].concat(), signature).map_err(|_| forged())?;
        M::decode(body).map_err(|_| forged())
    }

    /// Returns the ticket, if this office made it for `caller` and it has not expired.
    /// Errors: `invalid_ticket`, `forbidden`, `ticket_expired`.
    pub(super) fn open(&self, sealed: &Bytes, caller: &Principal) -> Result<StatementTicket, ApiError> {
        let ticket = self.open_of_any_age(sealed, caller)?;
        if unix_ms(SystemTime::now()) >= ticket.expires_unix_ms {
            let minutes = LIFETIME.as_secs() / 60;
            return Err(ApiError::new(
                ErrorCode::TicketExpired,
                format!("this ticket is older than {minutes} minutes"),
            )
            .with_hint("call GetFlightInfo again"));
        }
        if ticket.is_good_once() && ticket.process != self.process {
            return Err(forged().with_hint("this ticket does not outlive its server: call GetFlightInfo again"));
        }
        Ok(ticket)
    }

    /// As [`TicketOffice::open`], also where it has expired: what it began may still run. Errors: `invalid_ticket`, `forbidden`.
    pub(super) fn open_of_any_age(&self, sealed: &Bytes, caller: &Principal) -> Result<StatementTicket, ApiError> {
        let ticket: StatementTicket = self.unseal(sealed)?;
        let hint = "call GetFlightInfo with the credentials that DoGet uses";
        check_caller(&ticket.caller_digest, caller, "ticket", hint)?;
        Ok(ticket)
    }

    /// Returns the handle of a prepared statement, if this office made it for `caller` and it is not closed.
    /// Errors: `invalid_ticket`, `forbidden`.
    pub(super) fn open_handle(&self, sealed: &Bytes, caller: &Principal) -> Result<PreparedHandle, ApiError> {
        let handle: PreparedHandle = self.unseal(sealed).map_err(|_| {
            ApiError::new(ErrorCode::InvalidTicket, "this prepared statement was not made by this server")
                .with_hint("prepare it again")
        })?;
        let hint = "prepare it with the credentials that execute it";
        check_caller(&handle.caller_digest, caller, "prepared statement", hint)?;
        if self.spent.lock().closed.contains(&handle.id) {
            return Err(ApiError::new(ErrorCode::InvalidTicket, "this prepared statement was closed")
                .with_hint("prepare it again"));
        }
        Ok(handle)
    }

    /// Closes a prepared statement.
    pub(super) fn close(&self, handle: &PreparedHandle) {
        self.kept.lock().remove(&handle.id);
        let mut spent = self.spent.lock();
        if spent.closed.insert(handle.id.clone()) {
            spent.closed_in_order.push_back(handle.id.clone());
        }
        if spent.closed_in_order.len() > MAX_CLOSED
            && let Some(oldest) = spent.closed_in_order.pop_front()
        {
            spent.closed.remove(&oldest);
        }
    }

    /// Marks a ticket as one that may not be redeemed (again). Errors: `ticket_used`, the second time.
    pub(super) fn spend(&self, ticket: &StatementTicket) -> Result<(), ApiError> {
        self.spend_id(ticket.id.clone(), ticket.expires_unix_ms).map_err(|()| spent_change())
    }

    /// Marks one of a query's endpoints as fetched. Errors: `ticket_used`, the second time.
    pub(super) fn spend_part(&self, ticket: &StatementTicket) -> Result<(), ApiError> {
        let id = [ticket.id.as_ref(), &ticket.part.to_le_bytes()].concat().into();
        self.spend_id(id, ticket.expires_unix_ms).map_err(|()| {
            ApiError::new(ErrorCode::TicketUsed, "the rows of this endpoint were fetched already")
                .with_hint("one of several endpoints is fetched once: call GetFlightInfo to run the statement again")
        })
    }

    fn spend_id(&self, id: Bytes, expires_unix_ms: u64) -> Result<(), ()> {
        let now = unix_ms(SystemTime::now());
        let mut spent = self.spent.lock();
        while spent.by_expiry.front().is_some_and(|(expires, _)| *expires <= now) {
            if let Some((_, id)) = spent.by_expiry.pop_front() {
                spent.tickets.remove(&id);
            }
        }
        if !spent.tickets.insert(id.clone()) {
            return Err(());
        }
        spent.by_expiry.push_back((expires_unix_ms, id));
        Ok(())
    }

    /// Errors: `ticket_used`, if the ticket was spent.
    pub(super) fn check_unspent(&self, ticket: &StatementTicket) -> Result<(), ApiError> {
        match self.spent.lock().tickets.contains(&ticket.id) {
            true if ticket.changes => Err(spent_change()),
            true => Err(ApiError::new(ErrorCode::TicketUsed, "this statement was cancelled")
                .with_hint("call GetFlightInfo to run it again")),
            false => Ok(()),
        }
    }
}

fn forged() -> ApiError {
    ApiError::new(ErrorCode::InvalidTicket, "this ticket was not made by this server")
        .with_hint("call GetFlightInfo again")
}

fn spent_change() -> ApiError {
    ApiError::new(ErrorCode::TicketUsed, "this statement was executed or cancelled already")
        .with_hint("a ticket that changes something is good once: call GetFlightInfo to run it again")
}

fn check_caller(digest: &Bytes, caller: &Principal, what: &str, hint: &str) -> Result<(), ApiError> {
    if *digest == caller_digest(caller) {
        return Ok(());
    }
    Err(ApiError::new(ErrorCode::Forbidden, format!("this {what} was made for another caller")).with_hint(hint))
}

/// Returns the id of a ticket, a handle or a running query.
pub(super) fn new_id() -> Bytes {
    Bytes::copy_from_slice(Uuid::new_v4().as_bytes())
}

/// Returns the milliseconds since 1970.
pub(super) fn unix_ms(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch};
    use querent_catalog::Role;

    use super::*;
    use crate::query_limits::QueryLanguage;

    fn office() -> TicketOffice {
        TicketOffice::new(b"a key of thirty-two bytes or not", None)
    }

    fn statement(text: &str) -> Arc<StatementText> {
        Arc::new(StatementText::new(text.to_owned(), "default", QueryLanguage::Sql))
    }

    fn ticket_of(office: &TicketOffice, caller: &Principal) -> StatementTicket {
        office.ticket(caller, &statement("select 1"), Some(b"schema"), true)
    }

    #[test]
    fn good_for_its_caller_only() {
        let office = office();
        let (anna, bob) = (Principal::new("anna", Role::Read), Principal::new("bob", Role::Read));
        let sealed = office.seal(&ticket_of(&office, &anna));
        let ticket = office.open(&sealed, &anna).unwrap();
        assert_eq!(office.statement(&ticket).unwrap().text, "select 1");
        assert_eq!(office.open(&sealed, &bob).unwrap_err().code(), ErrorCode::Forbidden);
        let narrowed = anna.clone().with_databases(["sales"]);
        assert_eq!(office.open(&sealed, &narrowed).unwrap_err().code(), ErrorCode::Forbidden);
        let handle = office.seal(&office.handle(&anna, &statement("select 1")));
        let refused = office.open_handle(&handle, &bob).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Forbidden);
        assert!(refused.message().contains("prepared statement"), "{}", refused.message());
    }

    #[test]
    fn forged_and_foreign_tickets_are_refused() {
        let office = office();
        let anna = Principal::new("anna", Role::Read);
        let mut sealed = office.seal(&ticket_of(&office, &anna)).to_vec();
        if let Some(last) = sealed.last_mut() {
            *last ^= 1;
        }
        let elsewhere = TicketOffice::new(b"another key", Some("two"));
        for bad in [Bytes::from(sealed), Bytes::new(), elsewhere.seal(&ticket_of(&elsewhere, &anna))] {
            assert_eq!(office.open(&bad, &anna).unwrap_err().code(), ErrorCode::InvalidTicket);
            assert_eq!(office.open_handle(&bad, &anna).unwrap_err().code(), ErrorCode::InvalidTicket);
        }
    }

    #[test]
    fn a_handle_is_no_ticket() {
        let office = office();
        let anna = Principal::new("anna", Role::Read);
        let handle = office.seal(&office.handle(&anna, &statement("select 1")));
        assert_eq!(office.open(&handle, &anna).unwrap_err().code(), ErrorCode::InvalidTicket);
        let ticket = office.seal(&ticket_of(&office, &anna));
        assert_eq!(office.open_handle(&ticket, &anna).unwrap_err().code(), ErrorCode::InvalidTicket);
    }

    #[test]
    fn expired_tickets_are_refused() {
        let office = office();
        let anna = Principal::new("anna", Role::Read);
        let expired = StatementTicket { expires_unix_ms: 1, ..ticket_of(&office, &anna) };
        assert_eq!(office.open(&office.seal(&expired), &anna).unwrap_err().code(), ErrorCode::TicketExpired);
    }

    #[test]
    fn a_change_runs_once_and_in_the_process_that_planned_it() {
        let (before, after) = (office(), office());
        let caller = Principal::local_admin();
        let (first, second) = (ticket_of(&before, &caller), ticket_of(&before, &caller));
        before.spend(&first).unwrap();
        assert_eq!(before.spend(&first).unwrap_err().code(), ErrorCode::TicketUsed);
        let refused = before.check_unspent(&first).unwrap_err();
        assert!(refused.message().contains("executed or cancelled"), "{}", refused.message());
        before.spend(&second).unwrap();
        let sealed = before.seal(&first);
        assert_eq!(after.open(&sealed, &caller).unwrap_err().code(), ErrorCode::InvalidTicket);
        let query = before.ticket(&caller, &statement("select 1"), None, false);
        assert!(after.open(&before.seal(&query), &caller).is_ok(), "a query's ticket outlives the process");
    }

    #[test]
    fn long_statements_are_kept_within_bounds() {
        let office = office();
        let caller = Principal::local_admin();
        let long = statement(&"x".repeat(MAX_KEPT_BYTES / 4));
        let handle = office.handle(&caller, &long);
        assert!(office.seal(&handle).len() < 1_000);
        let handle = office.open_handle(&office.seal(&handle), &caller).unwrap();
        assert_eq!(office.prepared(&handle).unwrap().text.len(), long.text.len());
        for filler in ["a", "b", "c", "d"] {
            office.ticket(&caller, &statement(&filler.repeat(MAX_KEPT_BYTES / 4)), None, false);
        }
        assert_eq!(office.prepared(&handle).unwrap_err().code(), ErrorCode::InvalidTicket);
        assert!(office.kept.lock().bytes <= MAX_KEPT_BYTES);
    }

    /// h2 writes a message of 256 bytes or more apart from the end of its call; 80 of them are the command around it.
    #[test]
    fn the_calls_of_a_point_query_are_small() {
        let office = office();
        let caller = Principal::local_admin();
        let value: ArrayRef = Arc::new(Int64Array::from(vec![7]));
        let row = RecordBatch::try_from_iter([("0", value)]).unwrap();
        let prepared = statement("SELECT id, name FROM points WHERE id = ?");
        let bound = prepared.with_parameters(&row).unwrap();
        let handle = office.bound(&office.handle(&caller, &prepared), bound.clone());
        let ticket = office.ticket(&caller, &Arc::new(bound), Some(b"schema"), false);
        let sizes = [office.seal(&handle).len(), office.seal(&ticket).len()];
        assert!(sizes.iter().all(|size| *size < 176), "{sizes:?}");
    }

    #[test]
    fn short_statements_that_are_kept_count_for_what_they_take() {
        let office = office();
        let caller = Principal::local_admin();
        let handle = office.handle(&caller, &statement("select ?"));
        for _ in 0..3 {
            office.bound(&handle, statement("select ?").as_ref().clone());
        }
        assert_eq!(office.kept.lock().bytes, KEPT_OVERHEAD_BYTES + "select ?".len());
        office.close(&handle);
        assert_eq!(office.kept.lock().bytes, 0);
    }

    #[test]
    fn a_closed_statement_is_not_executed() {
        let office = office();
        let caller = Principal::local_admin();
        let sealed = office.seal(&office.handle(&caller, &statement("select 1")));
        office.close(&office.open_handle(&sealed, &caller).unwrap());
        assert_eq!(office.open_handle(&sealed, &caller).unwrap_err().code(), ErrorCode::InvalidTicket);
    }
}
