//! Tables, external tables and views: resolving, listing, reading what they hold, creating, changing and dropping
//! them. A thin handle over the store; changes that the schema index has to learn give way to searches.

use std::sync::Arc;

use arrow_schema::{Schema, SchemaRef};

use crate::error::{CatalogError, Result};
use crate::index::SchemaIndex;
use crate::model::{
    CatalogVersion, Created, DataFile, ExternalTable, IfExists, ManagedTable, NewDataFile, NewTable, Page, PageRequest,
    Registered, ResolvedTable, RowChanges, SnapshotId, SortedByKey, TableAlteration, TableContents, TableDraft,
    TableFilter, TableInfo, TableKind, TableName, TableSummary,
};
use crate::principal::Principal;
use crate::progress::Progress;
use crate::store::{self, Store};

/// Tables, external tables and views. Made by [`Catalog::tables`](crate::Catalog::tables).
///
/// Every result is of the newest snapshot, including what DuckDB committed. The caller has authorised changes; an
/// acknowledged change survives a power cut.
#[derive(Clone, Copy)]
pub struct CatalogTables<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a SchemaIndex,
}

/// Resolving, listing and reading.
impl CatalogTables<'_> {
    /// Resolves all names of a statement at one snapshot, in one batch. The result has one entry a name, in order:
    /// `None` where the object does not exist or the principal may not see it.
    pub async fn resolve(self, who: &Principal, names: &[TableName]) -> Result<Vec<Option<ResolvedTable>>> {
        Ok(self.resolve_at(who, names).await?.1)
    }

    /// As [`CatalogTables::resolve`], with the version of the catalog that the names were resolved at.
    pub async fn resolve_at(
        self,
        who: &Principal,
        names: &[TableName],
    ) -> Result<(CatalogVersion, Vec<Option<ResolvedTable>>)> {
        self.store.resolve(who, names).await
    }

    /// The version of the catalog as of now, what DuckDB committed included.
    pub async fn version(self) -> Result<CatalogVersion> {
        self.store.version().await
    }

    /// The `table_not_found` (or `database_not_found`) error for a name, with the nearest name the principal may see.
    pub async fn not_found(self, who: &Principal, name: &TableName) -> CatalogError {
        let (who, name) = (who.clone(), name.clone());
        let error = self.store.view(move |view| store::resolve::not_found(view, &who, &name)).await;
        error.unwrap_or_else(|error| error)
    }

    /// The tables, external tables and views the principal may see, ordered by database, then name (both lowercase).
    pub async fn list(self, who: &Principal, filter: &TableFilter, page: PageRequest) -> Result<Page<TableSummary>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.view(move |view| store::listing::tables(view, &who, &filter, &page)).await
    }

    /// As [`CatalogTables::list`], with columns.
    pub async fn list_with_columns(
        self,
        who: &Principal,
        filter: &TableFilter,
        page: PageRequest,
    ) -> Result<Page<TableInfo>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.view(move |view| store::listing::tables_with_columns(view, &who, &filter, &page)).await
    }

    /// The managed tables of which at least `at_least` files are smaller than `below_bytes`, those with the most such files first:
    /// what is worth merging.
    pub async fn with_small_files(self, at_least: u32, below_bytes: u64) -> Result<Vec<TableName>> {
        let below_bytes = i64::try_from(below_bytes).unwrap_or(i64::MAX);
        self.store
            .read(move |connection| {
                store::lake_files::tables_of_small_files(connection, i64::from(at_least), below_bytes)
            })
            .await
    }

    /// The contents of a managed table at its snapshot, with statistics of the given columns only (column ids).
    /// `unsupported_lake` when it uses a feature that is not supported yet: encrypted or name-mapped files, rows older
    /// than a column with a default value, inlined values of nested types, columns of types Arrow cannot take from
    /// Parquet.
    pub async fn contents(self, table: &ManagedTable, stats_columns: &[i64]) -> Result<TableContents> {
        self.store.contents(table, stats_columns).await
    }

    /// The files of a table without deleted and inlined rows: `unsupported_lake` also where rows are deleted or
    /// inlined.
    pub async fn data_files(self, table: &ManagedTable, stats_columns: &[i64]) -> Result<Vec<DataFile>> {
        let (table, stats_columns) = (table.clone(), stats_columns.to_vec());
        self.store.read(move |connection| store::files::whole_files(connection, &table, &stats_columns)).await
    }

    /// The schema for writing more files of a table: as [`TableDraft::write_schema`], at the table's snapshot.
    /// `unsupported_lake` where DuckDB gave the table a feature that a writer must honour and ours does not yet.
    pub async fn write_schema(self, table: &ManagedTable) -> Result<SchemaRef> {
        let table = table.clone();
        self.store.read(move |connection| store::files::write_schema(connection, &table)).await
    }
}

/// The order in which rows are written.
impl CatalogTables<'_> {
    /// Returns the order that a table has, the most significant key first; none where rows stay as they come.
    pub async fn sort_order(self, table: &ManagedTable) -> Result<Vec<SortedByKey>> {
        let (id, snapshot) = (table.id, table.snapshot);
        self.store.read(move |connection| store::sort_orders::load(connection, id, snapshot)).await
    }

    /// Returns the order in which rows that come are written: as [`CatalogTables::sort_order`], unless DuckDB's option
    /// `sort_on_insert` is off.
    pub async fn insert_order(self, table: &ManagedTable) -> Result<Vec<SortedByKey>> {
        let table = table.clone();
        self.store.read(move |connection| store::sort_orders::of_inserts(connection, &table)).await
    }
}

/// Creating, changing and dropping.
impl CatalogTables<'_> {
    /// Checks the name, the types and that the database exists, and assigns ids and folder. Reserves nothing.
    pub async fn draft(self, name: &TableName, schema: &Schema, comment: Option<String>) -> Result<TableDraft> {
        let (name, schema) = (name.clone(), schema.clone());
        self.store.view(move |view| store::tables::draft(view, &name, &schema, comment)).await
    }

    /// Creates the table with its first files in one snapshot.
    pub async fn create(
        self,
        draft: TableDraft,
        files: Vec<NewDataFile>,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let create = self.store.write(move |change| store::tables::create(change, &draft, &files, if_exists));
        self.index.change(create).await
    }

    /// Appends files to a table as resolved. `conflict` when it was dropped or altered since.
    pub async fn append(self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        let table = table.clone();
        self.store.write(move |change| store::tables::append(change, &table, &files)).await
    }

    /// Replaces all rows (INSERT OVERWRITE, import --replace) in one snapshot. `conflict` also when rows were added
    /// or removed since the table was resolved.
    pub async fn replace_files(self, table: &ManagedTable, files: Vec<NewDataFile>) -> Result<SnapshotId> {
        let table = table.clone();
        self.store.write(move |change| store::tables::replace(change, &table, &files)).await
    }

    /// Deletes rows of a table as resolved, and adds files with others, in one snapshot. `conflict` when it was dropped or
    /// altered since, or when another writer took rows of one of these files.
    pub async fn change_rows(self, table: &ManagedTable, changes: RowChanges) -> Result<SnapshotId> {
        let table = table.clone();
        self.store.write(move |change| store::row_changes::apply(change, &table, &changes)).await
    }

    /// Alters a managed table in one snapshot, by one alteration after the other. Its policies and keys follow what is renamed.
    pub async fn alter(self, name: &TableName, alterations: Vec<TableAlteration>) -> Result<()> {
        let name = name.clone();
        let alter = self.store.write(move |change| store::alter::apply(change, &name, &alterations));
        self.index.change(alter).await
    }

    /// Creates a view. `schema` is that of its query's result, recorded for describe and search.
    pub async fn create_view(
        self,
        name: &TableName,
        sql: &str,
        default_database: &str,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let (name, schema) = (name.clone(), schema.clone());
        let (sql, default_database) = (sql.to_string(), default_database.to_string());
        let create = self
            .store
            .write(move |change| store::views::create_view(change, &name, &sql, &default_database, &schema, if_exists));
        self.index.change(create).await
    }

    /// Creates an external table over files that Querent does not own.
    pub async fn create_external(
        self,
        name: &TableName,
        table: ExternalTable,
        schema: &Schema,
        if_exists: IfExists,
    ) -> Result<Created<TableInfo>> {
        let (name, schema) = (name.clone(), schema.clone());
        let create =
            self.store.write(move |change| store::views::create_external(change, &name, &table, &schema, if_exists));
        self.index.change(create).await
    }

    /// Registers many tables in one snapshot: all of them, or none. Acknowledges before it indexes: names resolve and
    /// list at once, full text and meaning follow in the background. Progress is reported as `registering tables`,
    /// with a total of 0 where the iterator does not know its length.
    pub async fn register<I>(self, tables: I, if_exists: IfExists, progress: Arc<dyn Progress>) -> Result<Registered>
    where
        I: IntoIterator<Item = NewTable> + Send + 'static,
    {
        self.store.write(move |change| store::bulk::register(change, tables, if_exists, progress.as_ref())).await
    }

    /// Keeps how many distinct values columns (their ids) of a managed table have among `row_count` rows, for estimates. The table
    /// itself does not change.
    pub async fn keep_distinct_values(
        self,
        table: &ManagedTable,
        row_count: u64,
        counts: Vec<(i64, u64)>,
    ) -> Result<()> {
        let table = table.clone();
        let keep = move |connection: &_| store::distinct_values::store(connection, &table, row_count, &counts);
        self.store.write_rows(keep).await?;
        self.store.forget_known();
        Ok(())
    }

    /// Drops a table, external table or view of the given kinds. Returns whether anything was dropped. Files stay until
    /// expiry.
    pub async fn drop(self, name: &TableName, kinds: &[TableKind], if_missing_ok: bool) -> Result<bool> {
        let (name, kinds) = (name.clone(), kinds.to_vec());
        let drop = self.store.write(move |change| store::tables::drop_named(change, &name, &kinds, if_missing_ok));
        self.index.change(drop).await
    }

    /// As [`CatalogTables::drop`], of several objects in one change.
    pub async fn drop_all(self, names: Vec<TableName>, kinds: &[TableKind], if_missing_ok: bool) -> Result<()> {
        let kinds = kinds.to_vec();
        let drop = self.store.write(move |change| {
            for name in &names {
                store::tables::drop_named(change, name, &kinds, if_missing_ok)?;
            }
            Ok(())
        });
        self.index.change(drop).await
    }

    /// Sets a comment; `None` removes it. `column = None` means the table itself.
    pub async fn set_comment(self, name: &TableName, column: Option<&str>, comment: Option<&str>) -> Result<()> {
        self.set_comments(name, vec![(column.map(str::to_string), comment.map(str::to_string))]).await
    }

    /// Sets comments of a table and of its columns in one change: of each the column, where it is one's, and the comment, as
    /// [`CatalogTables::set_comment`] does.
    pub async fn set_comments(self, name: &TableName, comments: Vec<(Option<String>, Option<String>)>) -> Result<()> {
        let name = name.clone();
        self.store.write(move |change| store::comments::set(change, &name, &comments)).await
    }
}
