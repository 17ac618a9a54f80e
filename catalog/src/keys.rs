//! Keys of tables: primary keys, unique constraints and foreign keys. None is enforced: they tell clients what a table's
//! author says of its rows.

use crate::error::Result;
use crate::model::{KeyConstraint, KeyFilter, Page, PageRequest};
use crate::principal::Principal;
use crate::store::{self, Store};

/// Keys of tables. Made by [`Catalog::keys`](crate::Catalog::keys).
#[derive(Clone, Copy)]
pub struct CatalogKeys<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogKeys<'_> {
    /// The keys of the tables that the caller may see: primary keys and unique constraints, oldest first, then foreign keys,
    /// oldest first. Foreign keys are those of definitions and the declared relationships, where both tables exist and may
    /// be seen.
    pub async fn list(self, who: &Principal, filter: &KeyFilter, page: PageRequest) -> Result<Page<KeyConstraint>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.view(move |view| store::keys::list(view, &who, &filter, &page)).await
    }
}
