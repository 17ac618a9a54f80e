//! Profiles of tables that were asked for lately, so that looking at a table twice reads its rows once. The key of one
//! names all that it depends on: the rows, the policy, and who asks.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

/// Profiles that are kept at most; the oldest goes first.
const MAX_PROFILES: usize = 128;

/// Profiles by their keys. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct KeptTableProfiles(Arc<Mutex<VecDeque<(String, Value)>>>);

impl KeptTableProfiles {
    /// Returns the profile of that key.
    pub(crate) fn get(&self, key: &str) -> Option<Value> {
        self.0.lock().iter().find(|(known, _)| known == key).map(|(_, profile)| profile.clone())
    }

    /// Keeps a profile, in place of one of the same key.
    pub(crate) fn keep(&self, key: String, profile: Value) {
        let mut profiles = self.0.lock();
        profiles.retain(|(known, _)| *known != key);
        if profiles.len() >= MAX_PROFILES {
            profiles.pop_front();
        }
        profiles.push_back((key, profile));
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
            kept.keep(number.to_string(), json!(number));
        }
        kept.keep("1".to_owned(), json!("again"));
        assert_eq!((kept.get("0"), kept.get("1"), kept.get("2")), (None, Some(json!("again")), Some(json!(2))));
    }
}
