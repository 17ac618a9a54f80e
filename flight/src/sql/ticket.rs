//! Statement tickets: what a client brings to DoGet after GetFlightInfo.
//!
//! A ticket carries the statement itself, signed with a key that lives as long as the process, so nothing is stored for
//! tickets that are never redeemed.
//!
//! Invariants: only this process makes tickets that it accepts; a ticket is valid for its caller only, until it expires;
//! a ticket of a statement that changes something is valid once.

use std::collections::{HashSet, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use prost::Message;
use querent_catalog::{DatabaseScope, Principal};
use ring::{digest, hmac};
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode};

/// How long a ticket can be redeemed.
const LIFETIME: Duration = Duration::from_secs(10 * 60);

/// A statement as planned and authorised by GetFlightInfo, to be executed by DoGet.
#[derive(Clone, PartialEq, Message)]
pub(super) struct StatementTicket {
    /// The statement's text.
    #[prost(string, tag = "1")]
    pub(super) statement: String,
    /// Where its bare names resolve.
    #[prost(string, tag = "2")]
    pub(super) database: String,
    /// Digest of the schema that GetFlightInfo announced.
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) schema_digest: Bytes,
    /// Whether it changes something.
    #[prost(bool, tag = "4")]
    pub(super) changes: bool,
    #[prost(uint64, tag = "5")]
    expires_unix_ms: u64,
    #[prost(bytes = "bytes", tag = "6")]
    caller_digest: Bytes,
    #[prost(bytes = "bytes", tag = "7")]
    id: Bytes,
}

impl StatementTicket {
    /// Makes a ticket of `caller` for `statement`.
    pub(super) fn new(caller: &Principal, statement: &str, database: &str, schema_bytes: &[u8], changes: bool) -> Self {
        Self {
            statement: statement.to_owned(),
            database: database.to_owned(),
            schema_digest: digest_of(schema_bytes),
            changes,
            expires_unix_ms: unix_ms(SystemTime::now() + LIFETIME),
            caller_digest: caller_digest(caller),
            id: Bytes::copy_from_slice(Uuid::new_v4().as_bytes()),
        }
    }

    /// Returns when it expires, in milliseconds since 1970.
    pub(super) fn expires_unix_ms(&self) -> u64 {
        self.expires_unix_ms
    }

    /// Whether GetFlightInfo announced this schema.
    pub(super) fn has_schema(&self, schema_bytes: &[u8]) -> bool {
        self.schema_digest == digest_of(schema_bytes)
    }
}

/// Signs tickets and checks them.
pub(super) struct TicketOffice {
    key: hmac::Key,
    redeemed: Mutex<Redeemed>,
}

/// Tickets of changes that were executed, until they expire.
#[derive(Default)]
struct Redeemed {
    ids: HashSet<Bytes>,
    by_expiry: VecDeque<(u64, Bytes)>,
}

impl TicketOffice {
    /// Makes an office with a random key.
    pub(super) fn new() -> Self {
        // Two version 4 UUIDs hold 244 random bits from the system's generator.
        let secret = [Uuid::new_v4().into_bytes(), Uuid::new_v4().into_bytes()].concat();
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, &secret), redeemed: Mutex::default() }
    }

    /// Returns the ticket's bytes: its signature, then itself.
    pub(super) fn seal(&self, ticket: &StatementTicket) -> Bytes {
        let body = ticket.encode_to_vec();
        let signature = hmac::sign(&self.key, &body);
        [signature.as_ref(), &body].concat().into()
    }

    /// Returns the ticket, if this office made it for `caller` and it has not expired.
    /// Errors: `invalid_ticket`, `forbidden`, `ticket_expired`.
    pub(super) fn open(&self, sealed: &Bytes, caller: &Principal) -> Result<StatementTicket, ApiError> {
        let forged = || {
            ApiError::new(ErrorCode::InvalidTicket, "this ticket was not made by this server process")
                .with_hint("tickets do not outlive the server: call GetFlightInfo again")
        };
        let (signature, body) = sealed.split_at_checked(digest::SHA256_OUTPUT_LEN).ok_or_else(forged)?;
        hmac::verify(&self.key, body, signature).map_err(|_| forged())?;
        let ticket = StatementTicket::decode(body).map_err(|_| forged())?;
        if ticket.caller_digest != caller_digest(caller) {
            return Err(ApiError::new(ErrorCode::Forbidden, "this ticket was made for another caller")
                .with_hint("call GetFlightInfo with the credentials that DoGet uses"));
        }
        if unix_ms(SystemTime::now()) >= ticket.expires_unix_ms {
            let minutes = LIFETIME.as_secs() / 60;
            return Err(ApiError::new(
                ErrorCode::TicketExpired,
                format!("this ticket is older than {minutes} minutes"),
            )
            .with_hint("call GetFlightInfo again"));
        }
        Ok(ticket)
    }

    /// Marks the ticket of a change as executed. Errors: `ticket_used`, the second time.
    pub(super) fn redeem_once(&self, ticket: &StatementTicket) -> Result<(), ApiError> {
        let now = unix_ms(SystemTime::now());
        let mut redeemed = self.redeemed.lock();
        while redeemed.by_expiry.front().is_some_and(|(expires, _)| *expires <= now) {
            if let Some((_, id)) = redeemed.by_expiry.pop_front() {
                redeemed.ids.remove(&id);
            }
        }
        if !redeemed.ids.insert(ticket.id.clone()) {
            return Err(ApiError::new(ErrorCode::TicketUsed, "this statement was executed already")
                .with_hint("a ticket that changes something is good once: call GetFlightInfo to run it again"));
        }
        redeemed.by_expiry.push_back((ticket.expires_unix_ms, ticket.id.clone()));
        Ok(())
    }
}

/// Digests everything that decides what a caller may do, so that a ticket does not survive a change of it.
fn caller_digest(caller: &Principal) -> Bytes {
    let scope = match caller.scope() {
        DatabaseScope::All => String::from("*"),
        DatabaseScope::Only(databases) => databases.iter().map(|name| format!("{}:{name}", name.len())).collect(),
    };
    digest_of(format!("{}\0{}\0{scope}", caller.role().as_str(), caller.subject()).as_bytes())
}

fn digest_of(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref())
}

fn unix_ms(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).map_or(0, |elapsed| u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use querent_catalog::Role;

    use super::*;

    fn ticket_of(caller: &Principal) -> StatementTicket {
        StatementTicket::new(caller, "select 1", "default", b"schema", true)
    }

    #[test]
    fn good_for_its_caller_only() {
        let office = TicketOffice::new();
        let (anna, bob) = (Principal::new("anna", Role::Read), Principal::new("bob", Role::Read));
        let sealed = office.seal(&ticket_of(&anna));
        assert_eq!(office.open(&sealed, &anna).unwrap().statement, "select 1");
        assert_eq!(office.open(&sealed, &bob).unwrap_err().code(), ErrorCode::Forbidden);
        let narrowed = anna.clone().with_databases(["sales"]);
        assert_eq!(office.open(&sealed, &narrowed).unwrap_err().code(), ErrorCode::Forbidden);
    }

    #[test]
    fn forged_and_foreign_tickets_are_refused() {
        let office = TicketOffice::new();
        let anna = Principal::new("anna", Role::Read);
        let mut sealed = office.seal(&ticket_of(&anna)).to_vec();
        if let Some(last) = sealed.last_mut() {
            *last ^= 1;
        }
        for bad in [Bytes::from(sealed), Bytes::new(), TicketOffice::new().seal(&ticket_of(&anna))] {
            assert_eq!(office.open(&bad, &anna).unwrap_err().code(), ErrorCode::InvalidTicket);
        }
    }

    #[test]
    fn expired_tickets_are_refused() {
        let office = TicketOffice::new();
        let anna = Principal::new("anna", Role::Read);
        let expired = StatementTicket { expires_unix_ms: 1, ..ticket_of(&anna) };
        assert_eq!(office.open(&office.seal(&expired), &anna).unwrap_err().code(), ErrorCode::TicketExpired);
    }

    #[test]
    fn a_change_runs_once() {
        let office = TicketOffice::new();
        let (first, second) = (ticket_of(&Principal::local_admin()), ticket_of(&Principal::local_admin()));
        office.redeem_once(&first).unwrap();
        assert_eq!(office.redeem_once(&first).unwrap_err().code(), ErrorCode::TicketUsed);
        office.redeem_once(&second).unwrap();
    }
}
