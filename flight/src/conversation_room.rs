//! How much the conversations of each caller take. To count it reads all of them, so that it is done now and then; what was
//! added since is remembered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use querent_catalog::{Catalog, CatalogError};

/// How long a count is good: callers delete conversations, and other servers write to a shared catalog.
const COUNTED_FOR: Duration = Duration::from_secs(600);
/// How long it is good for a caller that has no room any more.
const REFUSED_FOR: Duration = Duration::from_secs(2);
/// Callers whose counts are remembered.
const MAX_CALLERS: usize = 10_000;

/// What is known of each caller's conversations. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct ConversationRoom(Arc<Mutex<HashMap<String, CountedBytes>>>);

#[derive(Debug)]
struct CountedBytes {
    bytes: u64,
    counted_at: Instant,
}

impl ConversationRoom {
    /// Takes room for so many more bytes of a subject's conversations, of which it may have `most`. Returns whether there is
    /// any.
    pub(crate) async fn take(
        &self,
        catalog: &Catalog,
        subject: &str,
        added: u64,
        most: u64,
    ) -> Result<bool, CatalogError> {
        if let Some(is_taken) = self.take_known(subject, added, most) {
            return Ok(is_taken);
        }
        let stored = catalog.conversations().stored_bytes(subject).await?;
        let with_added = stored.saturating_add(added);
        let fits = with_added <= most;
        let mut counted = self.0.lock();
        if counted.len() >= MAX_CALLERS {
            counted.clear();
        }
        let bytes = if fits { with_added } else { stored };
        counted.insert(subject.to_owned(), CountedBytes { bytes, counted_at: Instant::now() });
        Ok(fits)
    }

    /// Takes room by what is known; `None` where it has to be counted.
    fn take_known(&self, subject: &str, added: u64, most: u64) -> Option<bool> {
        let mut counted = self.0.lock();
        let known = counted.get_mut(subject)?;
        let (age, bytes) = (known.counted_at.elapsed(), known.bytes.saturating_add(added));
        if bytes > most {
            return (age < REFUSED_FOR).then_some(false);
        }
        known.bytes = bytes;
        (age < COUNTED_FOR).then_some(true)
    }
}
