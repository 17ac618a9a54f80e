//! The files of managed tables that writes of this process have begun and whose commit has not ended: no row names them yet, and
//! they are nothing that was left. Files of other processes are told apart by their age alone.
//!
//! Invariant: a file is announced before it is there, and forgotten when its commit has ended or it is removed. So of files that
//! are listed first, then compared with [`uncommitted_files`], then with the rows of a transaction that begins after that, those
//! that neither has are nobody's.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

static UNCOMMITTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Announces a file of a managed table that is about to be written: until it is forgotten, no check takes it for one that was left.
pub fn announce_uncommitted(file: &Path) {
    UNCOMMITTED.lock().insert(file.to_owned());
}

/// Forgets a file that was announced: its commit has ended, or it is removed.
pub fn forget_uncommitted(file: &Path) {
    UNCOMMITTED.lock().remove(file);
}

/// Returns the files that are announced now.
pub(super) fn uncommitted_files() -> BTreeSet<PathBuf> {
    UNCOMMITTED.lock().clone()
}
