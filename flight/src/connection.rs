//! What belongs to one connection and ends with it.

use std::any::Any;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;

use crate::metrics::GaugeGuard;

/// The most callers that one connection keeps something for: a gateway may carry several.
const MAX_OWNERS: usize = 64;

/// The place of a connection among those that may be open at once. It is in the extensions of each of the connection's
/// requests, for who takes the connection over and keeps it longer.
#[derive(Clone)]
pub(crate) struct ConnectionPlace {
    // The address's place is free before the other one, which the next connection waits for.
    _kept: Arc<(Option<AddressPlace>, OwnedSemaphorePermit, GaugeGuard)>,
}

impl ConnectionPlace {
    /// `of_address` is the place among those of its client's address; none over the socket in the file system.
    pub(crate) fn new(permit: OwnedSemaphorePermit, of_address: Option<AddressPlace>, open: GaugeGuard) -> Self {
        Self { _kept: Arc::new((of_address, permit, open)) }
    }
}

/// How many connections each address has open, of which it may not have all: others would wait until it closes some.
pub(crate) struct AddressPlaces {
    most: usize,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// The place of a connection among those of its client's address.
pub(crate) struct AddressPlace {
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
    address: IpAddr,
}

impl AddressPlaces {
    /// Each address may have `most`, which is not 0.
    pub(crate) fn new(most: usize) -> Self {
        Self { most, open: Arc::default() }
    }

    /// Returns a place for a connection of `peer`; `None` where its address has as many as it may have.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<AddressPlace> {
        let address = counted_address(peer);
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        if *count >= self.most {
            return None;
        }
        *count += 1;
        Some(AddressPlace { open: Arc::clone(&self.open), address })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        if let Entry::Occupied(mut count) = self.open.lock().entry(self.address) {
            match *count.get() {
                0 | 1 => {
                    count.remove();
                }
                more => *count.get_mut() = more - 1,
            }
        }
    }
}

/// The address that a client is counted by: of IPv6 the first 64 bits, since each client has the rest for itself.
fn counted_address(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}

/// What the doors keep for the callers of one connection. It is in the extensions of each of the connection's requests, and
/// dropped when the connection has ended.
#[derive(Clone, Default)]
pub(crate) struct ConnectionScope {
    kept: Arc<Mutex<KeptByOwner>>,
}

type KeptByOwner = HashMap<Vec<u8>, Arc<dyn Any + Send + Sync>>;

impl ConnectionScope {
    /// Returns what is kept for `owner`, made by `make` the first time; `None` beyond the bound of owners.
    pub(crate) fn get_or_insert<T: Any + Send + Sync>(
        &self,
        owner: &[u8],
        make: impl FnOnce() -> Arc<T>,
    ) -> Option<Arc<T>> {
        let mut kept = self.kept.lock();
        if let Some(found) = kept.get(owner) {
            return Arc::clone(found).downcast().ok();
        }
        if kept.len() >= MAX_OWNERS {
            return None;
        }
        let made = make();
        kept.insert(owner.to_vec(), Arc::clone(&made) as Arc<dyn Any + Send + Sync>);
        Some(made)
    }

    /// Forgets what is kept for `owner`, if that is `kept`.
    pub(crate) fn forget<T: Any + Send + Sync>(&self, owner: &[u8], kept: &Arc<T>) {
        let mut all = self.kept.lock();
        let found = all.get(owner).map(|found| Arc::clone(found).downcast::<T>());
        if found.is_some_and(|found| found.is_ok_and(|found| Arc::ptr_eq(&found, kept))) {
            all.remove(owner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_its_places_and_gives_them_back() {
        let places = AddressPlaces::new(2);
        let take = |address: &str| places.take(address.parse().unwrap());
        let first = take("10.0.0.1");
        let mapped = take("::ffff:10.0.0.1");
        assert!(first.is_some() && mapped.is_some() && take("10.0.0.1").is_none());
        let others = [take("10.0.0.2"), take("2001:db8::1"), take("2001:db8::2:1")];
        assert!(others.iter().all(Option::is_some) && take("2001:db8::3").is_none());
        assert!(take("2001:db8:0:1::3").is_some());
        drop(first);
        assert!(take("10.0.0.1").is_some());
        drop((mapped, others));
        assert!(places.open.lock().is_empty());
    }
}
