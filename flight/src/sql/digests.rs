//! Digests by which tickets, handles and sessions know their callers, schemas and long statements.

use std::cell::RefCell;

use bytes::Bytes;
use querent_catalog::{DatabaseScope, Principal};
use ring::digest;

/// What is kept of a digest: nobody finds another text of the same in 128 bits.
const DIGEST_BYTES: usize = 16;

thread_local! {
    /// The caller whom this thread digested last: a call asks several times, and those of a connection are mostly one caller's.
    static LAST_CALLER: RefCell<Option<(Principal, Bytes)>> = const { RefCell::new(None) };
}

/// Digests everything that decides what a caller may do, so that a ticket does not survive a change of it.
pub(super) fn caller_digest(caller: &Principal) -> Bytes {
    let known = LAST_CALLER.with_borrow(|last| {
        let known = last.as_ref().filter(|(known, _)| known == caller);
        known.map(|(_, digest)| digest.clone())
    });
    known.unwrap_or_else(|| {
        let digest = new_caller_digest(caller);
        LAST_CALLER.set(Some((caller.clone(), digest.clone())));
        digest
    })
}

fn new_caller_digest(caller: &Principal) -> Bytes {
    let scope = match caller.scope() {
        DatabaseScope::All => String::from("*"),
        DatabaseScope::Only(databases) => databases.iter().map(|name| format!("{}:{name}", name.len())).collect(),
    };
    // Policies choose by these, and compare with them.
    let known = serde_json::to_string(&(caller.identity(), caller.attributes())).unwrap_or_default();
    digest_of(format!("{}\0{}\0{scope}\0{known}", caller.role().as_str(), caller.subject()).as_bytes())
}

/// Returns the first bytes of a digest.
pub(super) fn digest_of(bytes: &[u8]) -> Bytes {
    let digest = digest::digest(&digest::SHA256, bytes);
    let (kept, _) = digest.as_ref().split_at(DIGEST_BYTES);
    Bytes::copy_from_slice(kept)
}
