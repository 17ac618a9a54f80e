//! The policy of a catalog: reading it, changing it, and what a caller may do under it.

use std::sync::Arc;

use chrono::Utc;

use crate::error::Result;
use crate::policy::{PolicyDocument, PolicyEdit, PolicySet, ReadReach, Rights};
use crate::principal::Principal;
use crate::store::{PolicyVersion, Store, policies};

/// Grants, row policies and masks. Made by [`Catalog::policies`](crate::Catalog::policies).
#[derive(Clone, Copy)]
pub struct CatalogPolicies<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogPolicies<'_> {
    /// The policy that holds, as far as this server knows: what another one changed of a shared catalog it knows when it reads
    /// the catalog next, a second later at the latest.
    pub fn current(self) -> Arc<PolicySet> {
        self.store.policies()
    }

    /// The policy that holds now. Of a shared catalog it is read, and [`CatalogPolicies::current`] is no older from then on.
    pub async fn in_force(self) -> Result<Arc<PolicySet>> {
        match self.store.is_shared() {
            true => self.store.view(|view| Ok(Arc::clone(&view.policies))).await,
            false => Ok(self.current()),
        }
    }

    /// Returns what a caller can read now, to be kept with what it is given.
    pub fn reach(self, who: &Principal) -> ReadReach {
        Rights::new(who, &self.store.policies()).reach()
    }

    /// Applies a change, which holds for every statement that begins afterwards. `statement` is kept with it. The caller has
    /// been authorised. Errors: `invalid_object`, `already_exists`, `object_not_found`.
    pub async fn change(self, who: &Principal, statement: &str, edit: PolicyEdit) -> Result<Arc<PolicySet>> {
        let (statement, subject) = (statement.to_owned(), who.subject().to_owned());
        self.store
            .write_policies(move |connection| {
                let mut document = policies::newest(connection)?.document;
                document.apply(edit)?;
                policies::add(connection, document, &statement, &subject, Utc::now())
            })
            .await
    }

    /// Puts a document in place of the one that holds, in one change.
    pub async fn replace(self, who: &Principal, statement: &str, document: PolicyDocument) -> Result<Arc<PolicySet>> {
        let (statement, subject) = (statement.to_owned(), who.subject().to_owned());
        self.store
            .write_policies(move |connection| policies::add(connection, document, &statement, &subject, Utc::now()))
            .await
    }

    /// The newest versions, newest first.
    pub async fn versions(self, limit: usize) -> Result<Vec<PolicyVersion>> {
        self.store.read(move |connection| policies::versions(connection, limit)).await
    }
}
