//! Finds the run of a repeated request: `@microsoft/fetch-event-source` sends a POST again when its stream breaks off.
//! While a run is in progress, and for a short while after its client left before the end, the same body from the same
//! caller leads to the same run.
//!
//! The table is bounded: an entry lives as long as it has readers, and a while longer if none of them got the end.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use uuid::Uuid;

/// The most requests that are remembered; one beyond them starts a new run when it is repeated.
const MAX_ENTRIES: usize = 4_096;

/// The requests that started a run.
#[derive(Debug)]
pub(super) struct Attachments {
    linger: Duration,
    entries: Mutex<HashMap<[u8; 32], Arc<Attachment>>>,
}

/// One request and its run.
#[derive(Debug, Default)]
pub(super) struct Attachment {
    /// Locked while the run starts, so that of two equal requests at once only one starts it.
    pub(super) run: tokio::sync::Mutex<Option<Uuid>>,
    readers: Mutex<ReaderCount>,
}

#[derive(Debug, Default)]
struct ReaderCount {
    count: usize,
    /// When the last of them left before the end.
    left: Option<Instant>,
}

/// A client that reads a run. Call [`AttachedReader::delivered`] when it got the end.
#[derive(Debug)]
pub(super) struct AttachedReader {
    all: Arc<Attachments>,
    digest: [u8; 32],
    attachment: Arc<Attachment>,
}

impl Attachments {
    pub(super) fn new(linger: Duration) -> Self {
        Self { linger, entries: Mutex::new(HashMap::new()) }
    }

    /// Registers a reader of the run of the request with this digest.
    pub(super) fn reader(self: &Arc<Self>, digest: [u8; 32]) -> AttachedReader {
        let mut entries = self.entries.lock();
        entries.retain(|_, entry| !entry.is_over(self.linger));
        let attachment = match entries.get(&digest) {
            Some(entry) => Arc::clone(entry),
            None => {
                let entry = Arc::new(Attachment::default());
                if entries.len() < MAX_ENTRIES {
                    entries.insert(digest, Arc::clone(&entry));
                }
                entry
            }
        };
        attachment.readers.lock().count += 1;
        AttachedReader { all: Arc::clone(self), digest, attachment }
    }
}

impl Attachment {
    fn is_over(&self, linger: Duration) -> bool {
        let readers = self.readers.lock();
        readers.count == 0 && readers.left.is_none_or(|left| left.elapsed() > linger)
    }
}

impl AttachedReader {
    pub(super) fn attachment(&self) -> Arc<Attachment> {
        Arc::clone(&self.attachment)
    }

    /// Forgets the request, since its client got everything: an equal request starts a new run.
    pub(super) fn delivered(self) {
        let mut entries = self.all.entries.lock();
        if entries.get(&self.digest).is_some_and(|entry| Arc::ptr_eq(entry, &self.attachment)) {
            entries.remove(&self.digest);
        }
    }
}

impl Drop for AttachedReader {
    fn drop(&mut self) {
        let mut readers = self.attachment.readers.lock();
        readers.count -= 1;
        if readers.count == 0 {
            readers.left = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_request_finds_the_entry_until_somebody_got_the_end() {
        let all = Arc::new(Attachments::new(Duration::from_secs(60)));
        let first = all.reader([1; 32]);
        let same = Arc::ptr_eq(&all.reader([1; 32]).attachment(), &first.attachment());
        assert!(same && !Arc::ptr_eq(&all.reader([2; 32]).attachment(), &first.attachment()));
        let attachment = first.attachment();
        drop(first);
        let again = all.reader([1; 32]);
        assert!(Arc::ptr_eq(&again.attachment(), &attachment), "it was not delivered");
        again.delivered();
        assert!(!Arc::ptr_eq(&all.reader([1; 32]).attachment(), &attachment));
    }

    #[test]
    fn entries_that_nobody_came_back_for_go() {
        let all = Arc::new(Attachments::new(Duration::ZERO));
        for number in 0..10 {
            drop(all.reader([number; 32]));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(all.entries.lock().len() <= 1);
    }
}
