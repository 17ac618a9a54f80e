//! `GET /v1/catalog/schema`: databases, their tables, their columns, a page at a time.
//!
//! A page holds at most `limit` entries; an entry is a table, or a database without tables. A page costs what its entries
//! cost, however large the catalog is.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::{Catalog, ColumnInfo, PageRequest, PageToken, Principal, TableFilter, TableInfo, TableName};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::request::{ApiCall, Params, decode_token, encode_token};
use crate::http::response::json_response;

const DEFAULT_LIMIT: usize = 1_000;
const MAX_LIMIT: usize = 10_000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SchemaParams {
    database: Option<String>,
    limit: Option<usize>,
    page_token: Option<String>,
}

/// The position of a listing, which its page token carries.
#[derive(Debug, Default, Serialize, Deserialize)]
struct SchemaCursor {
    /// The last database begun.
    begun: Option<PageToken>,
    /// Whether that was the last database.
    last: bool,
    /// The database in progress, and its last table listed.
    within: Option<(String, PageToken)>,
}

pub(super) async fn schema(
    ApiCall { state, principal }: ApiCall,
    Params(params): Params<SchemaParams>,
) -> Result<Response, ApiError> {
    let limit = params.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT);
    let mut cursor =
        params.page_token.map(|token| decode_token::<SchemaCursor>(&token)).transpose()?.unwrap_or_default();
    let mut listing =
        SchemaPage { catalog: state.engine.catalog(), who: &principal, left: limit, databases: Vec::new() };
    let more = match params.database {
        Some(database) => listing.one_database(&database, &mut cursor).await?,
        None => listing.all_databases(&mut cursor).await?,
    };
    let mut body = json!({ "databases": listing.databases });
    if more {
        body["next_page_token"] = json!(encode_token(&cursor)?);
    }
    Ok(json_response(StatusCode::OK, &body))
}

/// A page while it is filled.
struct SchemaPage<'a> {
    catalog: &'a Catalog,
    who: &'a Principal,
    left: usize,
    databases: Vec<Value>,
}

impl SchemaPage<'_> {
    /// Lists one database from `cursor` on, which it advances. Returns whether there is more.
    async fn one_database(&mut self, name: &str, cursor: &mut SchemaCursor) -> Result<bool, ApiError> {
        let Some(database) = self.catalog.databases().get(self.who, name).await? else {
            return Err(self.catalog.tables().not_found(self.who, &TableName::new(name, "")).await.into());
        };
        let after = cursor.within.take().map(|(_, after)| after);
        self.tables(database.name, after, cursor).await?;
        Ok(cursor.within.is_some())
    }

    /// Lists every database from `cursor` on, which it advances. Returns whether there is more.
    async fn all_databases(&mut self, cursor: &mut SchemaCursor) -> Result<bool, ApiError> {
        if let Some((database, after)) = cursor.within.take() {
            self.tables(database, Some(after), cursor).await?;
        }
        // One at a time: any of them may fill the page.
        while cursor.within.is_none() && !cursor.last && self.left > 0 {
            let page = PageRequest { limit: 1, after: cursor.begun.take() };
            let page = self.catalog.databases().list(self.who, None, page).await?;
            cursor.last = page.next.is_none();
            cursor.begun = page.next;
            for database in page.items {
                self.tables(database.name, None, cursor).await?;
            }
        }
        Ok(cursor.within.is_some() || !cursor.last)
    }

    /// Lists a database's tables until they or the page end; if the page ends first, `cursor` says where.
    async fn tables(
        &mut self,
        database: String,
        after: Option<PageToken>,
        cursor: &mut SchemaCursor,
    ) -> Result<(), ApiError> {
        let filter = TableFilter { database: Some(database.clone()), ..TableFilter::default() };
        let page = PageRequest { limit: self.left.max(1), after };
        let page = self.catalog.tables().list_with_columns(self.who, &filter, page).await?;
        self.left = self.left.saturating_sub(page.items.len().max(1));
        let tables: Vec<Value> = page.items.iter().map(table_json).collect();
        self.databases.push(json!({ "name": database, "tables": tables }));
        cursor.within = page.next.map(|next| (database, next));
        Ok(())
    }
}

/// Returns a table as the schema has it: `{name, kind, comment?, columns}`.
pub(super) fn table_json(table: &TableInfo) -> Value {
    let columns: Vec<Value> = table.columns.iter().map(column_json).collect();
    let mut json = json!({ "name": table.name.table, "kind": table.kind });
    if let Some(comment) = &table.comment {
        json["comment"] = json!(comment);
    }
    json["columns"] = json!(columns);
    json
}

fn column_json(column: &ColumnInfo) -> Value {
    let mut json = json!({
        "name": column.name,
        "data_type": column.data_type.to_string(),
        "nullable": column.nullable,
    });
    if let Some(comment) = &column.comment {
        json["comment"] = json!(comment);
    }
    json
}
