//! What was found for a text, kept while the same text is asked about: each number of a sentence asks again whose it is.

use std::collections::HashMap;
use std::sync::Mutex;

/// Texts that are kept.
const MOST_TEXTS: usize = 64;

/// What was found for the latest texts.
#[derive(Debug)]
pub(super) struct TextMemo<T>(Mutex<HashMap<String, T>>);

impl<T> Default for TextMemo<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A copy is of other rows in time.
impl<T> Clone for TextMemo<T> {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl<T: Clone> TextMemo<T> {
    /// Returns what is known of a text, or finds it.
    pub(super) fn get(&self, text: &str, find: impl FnOnce() -> T) -> T {
        if let Ok(known) = self.0.lock()
            && let Some(found) = known.get(text)
        {
            return found.clone();
        }
        let found = find();
        if let Ok(mut known) = self.0.lock() {
            if known.len() >= MOST_TEXTS {
                known.clear();
            }
            known.insert(text.to_owned(), found.clone());
        }
        found
    }
}
