//! What Cube's routes share: the keys of its API, and the locks of its threads.

use std::hash::{DefaultHasher, Hash, Hasher};

use querent_catalog::{ConversationKey, Principal};
use tokio::sync::{Mutex, MutexGuard};

use crate::auth::Authenticator;
use crate::state::AppState;

/// How many locks all threads share.
const LOCKS: usize = 64;

/// What the routes share.
pub(in crate::http) struct CubeSurface {
    /// The keys of this API; open if there are none.
    pub(super) keys: Authenticator,
    /// Held while a thread is read and its run starts, so that one message starts one run.
    threads: Vec<Mutex<()>>,
}

impl CubeSurface {
    pub(super) fn new(state: &AppState) -> Self {
        let keys = Authenticator::new(&state.settings.cube.tokens());
        Self { keys, threads: std::iter::repeat_with(Mutex::default).take(LOCKS).collect() }
    }

    /// Locks a thread.
    pub(super) async fn lock(&self, key: &ConversationKey) -> Option<MutexGuard<'_, ()>> {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        let at = hasher.finish() as usize % LOCKS;
        match self.threads.get(at) {
            Some(thread) => Some(thread.lock().await),
            None => None,
        }
    }

    /// Whether a key of this API, or a token or a certificate of the server, has these very rights now.
    pub(super) fn knows(&self, state: &AppState, principal: &Principal) -> bool {
        let is_anybody = self.is_open(state) && *principal == Principal::local_admin();
        let known = [self.keys.principals_of(principal.subject()), state.auth.principals_of(principal.subject())];
        is_anybody || known.iter().flatten().any(|known| known == principal)
    }

    /// Whether neither this API nor the server asks for a key.
    pub(super) fn is_open(&self, state: &AppState) -> bool {
        self.keys.is_open() && state.auth.is_open()
    }
}
