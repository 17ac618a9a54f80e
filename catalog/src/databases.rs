//! Databases: finding, listing, creating and dropping them. A thin handle over `store/databases.rs`.

use crate::error::{CatalogError, Result};
use crate::model::{Created, DatabaseInfo, IfExists, Page, PageRequest};
use crate::principal::Principal;
use crate::store::{self, Store};

/// Databases. Made by [`Catalog::databases`](crate::Catalog::databases).
///
/// Every result is of the newest snapshot, including what DuckDB committed. The caller has authorised changes; an
/// acknowledged change survives a power cut.
#[derive(Clone, Copy)]
pub struct CatalogDatabases<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogDatabases<'_> {
    /// The database of a name, if it exists and may be seen.
    pub async fn get(self, who: &Principal, name: &str) -> Result<Option<DatabaseInfo>> {
        self.store.database(who, name).await
    }

    /// The databases the principal may see, ordered by lowercase name; `like` is a SQL `LIKE` pattern (`\` escapes).
    pub async fn list(self, who: &Principal, like: Option<&str>, page: PageRequest) -> Result<Page<DatabaseInfo>> {
        let (who, like) = (who.clone(), like.map(str::to_string));
        self.store.view(move |view| store::databases::list(view, &who, like.as_deref(), &page)).await
    }

    /// The `database_not_found` error for a name, with the nearest name the principal may see.
    pub async fn not_found(self, who: &Principal, name: &str) -> CatalogError {
        let (who, name) = (who.clone(), name.to_string());
        let error = self.store.view(move |view| store::resolve::database_not_found(view, &who, &name)).await;
        error.unwrap_or_else(|error| error)
    }

    /// Creates a database. [`IfExists::Replace`] drops the existing one with everything in it.
    pub async fn create(self, name: &str, if_exists: IfExists) -> Result<Created<DatabaseInfo>> {
        let name = name.to_string();
        self.store.write(move |change| store::databases::create_checked(change, &name, if_exists)).await
    }

    /// Drops a database; with `cascade`, with everything in it. Returns whether there was one.
    pub async fn drop(self, name: &str, if_missing_ok: bool, cascade: bool) -> Result<bool> {
        let name = name.to_string();
        self.store.write(move |change| store::databases::drop_named(change, &name, if_missing_ok, cascade)).await
    }

    /// Sets a database's comment; `None` removes it.
    pub async fn set_comment(self, name: &str, comment: Option<&str>) -> Result<()> {
        let (name, comment) = (name.to_string(), comment.map(str::to_string));
        self.store.write(move |change| store::databases::set_comment(change, &name, comment.as_deref())).await
    }
}
