//! The queries whose rows are being fetched, by the ids of their tickets, so that CancelFlightInfo finds them.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The running queries of a server. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct RunningTickets {
    /// With how many redeem the ticket at once.
    by_id: Arc<Mutex<HashMap<Bytes, (CancellationToken, usize)>>>,
}

/// A query's entry, removed when it is dropped.
pub(super) struct RunningTicket {
    tickets: RunningTickets,
    id: Bytes,
    token: CancellationToken,
}

impl RunningTickets {
    /// Enters a query. A ticket that is redeemed twice at once shares its cancellation.
    pub(super) fn enter(&self, id: Bytes) -> RunningTicket {
        let mut by_id = self.by_id.lock();
        let (token, count) = by_id.entry(id.clone()).or_default();
        *count += 1;
        RunningTicket { tickets: self.clone(), id, token: token.clone() }
    }

    /// Cancels a query; returns whether it was running.
    pub(super) fn cancel(&self, id: &Bytes) -> bool {
        match self.by_id.lock().get(id) {
            Some((token, _)) => {
                token.cancel();
                true
            }
            None => false,
        }
    }
}

impl RunningTicket {
    /// Completes once the query is cancelled.
    pub(super) async fn cancelled(&self) {
        self.token.cancelled().await;
    }
}

impl Drop for RunningTicket {
    fn drop(&mut self) {
        let mut by_id = self.tickets.by_id.lock();
        if let Some((_, count)) = by_id.get_mut(&self.id) {
            *count -= 1;
            if *count == 0 {
                by_id.remove(&self.id);
            }
        }
    }
}
