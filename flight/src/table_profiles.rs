//! Profiles of tables that were asked for lately, so that looking at a table twice reads its rows once. The key of one
//! names all that it depends on: the rows, the policy, and who asks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde_json::Value;

/// Profiles that are kept at most; the oldest goes first.
const MAX_PROFILES: usize = 128;

/// How long a profile of a part of a table is kept: another time the whole may be read.
pub(crate) const PARTIAL_LIFETIME: Duration = Duration::from_secs(60);

/// Profiles by their keys. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptTableProfiles(Arc<Mutex<VecDeque<KeptProfile>>>);

#[derive(Debug)]
struct KeptProfile {
    key: String,
    profile: Value,
    /// When it is forgotten.
    end: Option<Instant>,
}

impl KeptTableProfiles {
    /// Returns the profile of that key.
    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        let mut profiles = self.0.lock();
        let now = Instant::now();
        profiles.retain(|kept| kept.end.is_none_or(|end| now < end));
        profiles.iter().find(|kept| kept.key == key).map(|kept| kept.profile.clone())
    }

    /// Keeps a profile, in place of one of the same key; for that long, or until others take its place.
    pub(crate) fn keep(&self, key: String, profile: Value, lifetime: Option<Duration>) {
        let mut profiles = self.0.lock();
        profiles.retain(|kept| kept.key != key);
        if profiles.len() >= MAX_PROFILES {
            profiles.pop_front();
        }
        let end = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        profiles.push_back(KeptProfile { key, profile, end });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_oldest_goes_first() {
        let kept = KeptTableProfiles::default();
        for number in 0..=MAX_PROFILES {
            kept.keep(number.to_string(), json!(number), None);
        }
        kept.keep("1".to_owned(), json!("again"), None);
        assert_eq!((kept.get("0"), kept.get("1"), kept.get("2")), (None, Some(json!("again")), Some(json!(2))));
    }

    #[test]
    fn what_is_kept_for_a_time_is_forgotten_then() {
        let kept = KeptTableProfiles::default();
        kept.keep("over".to_owned(), json!(1), Some(Duration::ZERO));
        kept.keep("lasting".to_owned(), json!(2), Some(PARTIAL_LIFETIME));
        assert_eq!((kept.get("over"), kept.get("lasting")), (None, Some(json!(2))));
    }
}
