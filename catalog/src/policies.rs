//! The policy of a catalog: reading it, changing it, and what a caller may do under it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::Utc;

use crate::error::{CatalogError, Result};
use crate::model::{ResolvedTable, TableName};
use crate::policy::{PolicyDocument, PolicyEdit, PolicySet, ReadReach, Rights};
use crate::principal::Principal;
use crate::store::{PolicyVersion, SnapshotView, Store, objects, policies, resolve};

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

    /// The policy that holds now. Of a shared catalog it is read, and of what DuckDB renamed it has the new names;
    /// [`CatalogPolicies::current`] is no older from then on.
    pub async fn in_force(self) -> Result<Arc<PolicySet>> {
        if self.store.is_shared() {
            return self.store.view(|view| Ok(Arc::clone(&view.policies))).await;
        }
        self.store.version().await?;
        Ok(self.current())
    }

    /// Returns what a caller can read now, to be kept with what it is given.
    pub fn reach(self, who: &Principal) -> ReadReach {
        Rights::new(who, &self.store.policies()).reach()
    }

    /// Applies a change, which holds for every statement that begins afterwards. `statement` is kept with it. The caller has
    /// been authorised, and has checked what is named. Errors: `invalid_object`, `already_exists`, `object_not_found`; `conflict`
    /// where what a policy hides has another name by now.
    pub async fn change(self, who: &Principal, statement: &str, edit: PolicyEdit) -> Result<Arc<PolicySet>> {
        let (statement, subject) = (statement.to_owned(), who.subject().to_owned());
        self.store
            .write_policies(move |view| {
                let mut document = view.policies.document.clone();
                document.apply(edit)?;
                require_there(view, &document)?;
                policies::add(view.connection, document, &statement, &subject, Utc::now())
            })
            .await
    }

    /// Puts a document in place of the one that holds, in one change. Errors: `conflict`, as [`CatalogPolicies::change`].
    pub async fn replace(self, who: &Principal, statement: &str, document: PolicyDocument) -> Result<Arc<PolicySet>> {
        let (statement, subject) = (statement.to_owned(), who.subject().to_owned());
        self.store
            .write_policies(move |view| {
                require_there(view, &document)?;
                policies::add(view.connection, document, &statement, &subject, Utc::now())
            })
            .await
    }

    /// The newest versions, newest first.
    pub async fn versions(self, limit: usize) -> Result<Vec<PolicyVersion>> {
        self.store.read(move |connection| policies::versions(connection, limit)).await
    }
}

/// Errors: `conflict`, where a table that a new policy is about, or a column that a new mask is about, is not there. It was when
/// the statement was checked: another one has renamed it since, and under its new name nothing would be hidden.
fn require_there(view: &SnapshotView<'_>, document: &PolicyDocument) -> Result<()> {
    // What the policy that holds is about has followed whatever was renamed.
    let held = &view.policies.document;
    let restricted: HashSet<&TableName> = held.row_policies.iter().map(|policy| &policy.table).collect();
    let masked: HashSet<(&TableName, &str)> =
        held.masks.iter().map(|mask| (&mask.table, mask.column.as_str())).collect();
    let tables_of_policies = document.row_policies.iter().map(|policy| &policy.table);
    for name in tables_of_policies.filter(|table| !restricted.contains(table)) {
        if objects::object(view.connection, &name.database, &name.table)?.is_none() {
            return Err(CatalogError::Conflict { object: name.to_string() });
        }
    }
    let columns_of_masks = document.masks.iter().map(|mask| (&mask.table, mask.column.as_str()));
    let new_masks: Vec<(&TableName, &str)> = columns_of_masks.filter(|place| !masked.contains(place)).collect();
    let distinct: HashSet<&TableName> = new_masks.iter().map(|(name, _)| *name).collect();
    let names: Vec<TableName> = distinct.into_iter().cloned().collect();
    let found = resolve::resolve(view, &Principal::local_admin(), &names)?;
    let tables: HashMap<&TableName, Option<ResolvedTable>> = names.iter().zip(found).collect();
    for (name, column) in new_masks {
        let has_column = |table: &ResolvedTable| {
            let mut columns = table.info.columns.iter().map(|known| known.name.to_lowercase());
            columns.any(|known| known == column.to_lowercase())
        };
        let table = tables.get(name).and_then(Option::as_ref);
        if !table.is_some_and(has_column) {
            return Err(CatalogError::Conflict { object: name.to_string() });
        }
    }
    Ok(())
}
