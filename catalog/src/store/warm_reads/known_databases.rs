//! Databases that callers found. They are read from the catalog as long as its server answers; what is kept is for statements
//! that begin in a database while the server is away.

use std::collections::HashMap;

use super::{MAX_CALLERS, MAX_NAMES, WarmReads};
use crate::error::{CatalogError, Result};
use crate::model::{CatalogVersion, DatabaseInfo};
use crate::principal::Principal;
use crate::store::{SnapshotView, Store, databases};

/// Databases by the name that was asked for, with whoever found them.
#[derive(Default)]
pub(super) struct KnownDatabases(HashMap<String, Vec<(Principal, DatabaseInfo)>>);

impl Store {
    /// The database of a name, if `who` may see it; as it was where the catalog's server cannot be reached.
    pub(crate) async fn database(&self, who: &Principal, name: &str) -> Result<Option<DatabaseInfo>> {
        // A server that was lost is asked for its version, which is waited for less than what is read.
        if let Some(warm) = self.warm.as_ref().filter(|warm| warm.patience().is_some())
            && let Ok(version) = self.shared_version(warm).await
            && let Some(known) = warm.database(version, who, name)
        {
            return Ok(Some(known));
        }
        let (caller, wanted) = (who.clone(), name.to_owned());
        let read = self
            .view(move |view: &SnapshotView<'_>| Ok((view.version(), databases::find(view, &caller, &wanted)?)))
            .await;
        match (read, &self.warm) {
            (Ok((version, Some(found))), Some(warm)) => {
                warm.keep_database(version, who, name, &found);
                Ok(Some(found))
            }
            (Ok((_, found)), _) => Ok(found),
            (Err(error @ CatalogError::Unavailable { .. }), Some(warm)) => {
                let known = warm.lose(&error).and_then(|version| warm.database(version, who, name));
                known.map(Some).ok_or(error)
            }
            (Err(error), _) => Err(error),
        }
    }
}

impl WarmReads {
    fn database(&self, version: CatalogVersion, who: &Principal, name: &str) -> Option<DatabaseInfo> {
        let warm = self.0.lock();
        let callers = warm.databases.0.get(name).filter(|_| warm.version == Some(version))?;
        callers.iter().find(|(caller, _)| caller == who).map(|(_, known)| known.clone())
    }

    fn keep_database(&self, version: CatalogVersion, who: &Principal, name: &str, found: &DatabaseInfo) {
        let mut warm = self.0.lock();
        if *warm.version.get_or_insert(version) != version {
            return;
        }
        let known = &mut warm.databases.0;
        if known.len() >= MAX_NAMES && !known.contains_key(name) {
            known.clear();
        }
        let callers = known.entry(name.to_owned()).or_default();
        callers.retain(|(caller, _)| caller != who);
        if callers.len() >= MAX_CALLERS {
            callers.clear();
        }
        callers.push((who.clone(), found.clone()));
    }
}
