//! `/v1/catalog/tables/{table}`: one table, its comments and what its columns hold; `/v1/catalog/databases/{database}`: a
//! database's comment.
//!
//! Comments are set as by the statement `COMMENT ON` of a session of the caller's, so that rights, policies and the audit log
//! are those of the statement. A profile is of the rows and values that the caller may see.

use std::time::Duration;

use axum::response::Response;
use http::StatusCode;
use querent_catalog::policy::Rights;
use querent_catalog::{DEFAULT_DATABASE, Principal, ResolvedTable, TableName, TableSource};
use querent_engine::{Limits, TableStatistics, quote_identifier};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::admission::Door;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::{ApiCall, JsonBody, Params, PathText};
use crate::http::response::json_response;
use crate::http::schema::table_json;
use crate::state::AppState;
use crate::table_profiles::PARTIAL_LIFETIME;

/// How long the rows of a table are read for its profile; what was not read by then is estimated or left out.
const PROFILE_TIME: Duration = Duration::from_secs(10);
const PROFILE_MEMORY_BYTES: usize = 256 << 20;
/// How long a profile holds of what no snapshot dates: files elsewhere, and views, which may read such.
const UNDATED_SECONDS: i64 = 60;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableParams {
    database: Option<String>,
}

/// `GET /v1/catalog/tables/{table}`: `{database, name, kind, comment?, row_count?, columns}`.
pub(super) async fn get(
    ApiCall { state, principal }: ApiCall,
    PathText(table): PathText,
    Params(params): Params<TableParams>,
) -> Result<Response, ApiError> {
    let table = resolve(&state, &principal, &params.name_of(table)).await?;
    Ok(json_response(StatusCode::OK, &document(&table)))
}

/// `PATCH /v1/catalog/tables/{table}`: `{comment?, columns?: {name: comment}}`, null takes a comment away. All of them are set
/// in one change. Answers as [`get`] does.
pub(super) async fn comment(
    ApiCall { state, principal }: ApiCall,
    PathText(table): PathText,
    Params(params): Params<TableParams>,
    JsonBody(body): JsonBody<Map<String, Value>>,
) -> Result<Response, ApiError> {
    let edits = TableComments::read(body)?;
    let name = params.name_of(table);
    let found = resolve(&state, &principal, &name).await?.info;
    let mut comments: Vec<(Option<String>, Option<String>)> =
        edits.table.into_iter().map(|text| (None, text)).collect();
    for (column, text) in edits.columns {
        let known = found.columns.iter().find(|known| known.name.eq_ignore_ascii_case(&column)).ok_or_else(|| {
            let message = format!("table `{}` has no column `{column}`", found.name);
            ApiError::new(ErrorCode::ColumnNotFound, message)
        })?;
        if comments.iter().any(|(other, _)| other.as_ref() == Some(&known.name)) {
            return Err(bad_body(format!("`columns` names the column `{}` twice", known.name)));
        }
        comments.push((Some(known.name.clone()), text));
    }
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let done = state.session(principal.clone(), Limits::default()).set_comments(&found.name, comments).await;
    permit.record(&done);
    done?;
    Ok(json_response(StatusCode::OK, &document(&resolve(&state, &principal, &name).await?)))
}

/// `PATCH /v1/catalog/databases/{database}`: `{comment}`, null takes it away.
pub(super) async fn comment_database(
    ApiCall { state, principal }: ApiCall,
    PathText(database): PathText,
    JsonBody(mut body): JsonBody<Map<String, Value>>,
) -> Result<Response, ApiError> {
    let text = match body.remove("comment") {
        Some(value) => comment_text("comment", value)?,
        None => return Err(bad_body("`comment` is missing: a text, or null to take the comment away")),
    };
    refuse_others(&body)?;
    let catalog = state.engine.catalog();
    let Some(found) = catalog.databases().get(&principal, &database).await? else {
        return Err(catalog.tables().not_found(&principal, &TableName::new(&database, "")).await.into());
    };
    let statement = format!("COMMENT ON DATABASE {} IS {}", quote_identifier(&found.name), literal(text.as_deref()));
    run(&state, &principal, &statement).await?;
    Ok(json_response(StatusCode::OK, &json!({ "name": found.name, "comment": text })))
}

/// `GET /v1/catalog/tables/{table}/profile`: [`TableStatistics`] with the table's name, kept until its rows or the policy
/// change.
pub(super) async fn profile(
    ApiCall { state, principal }: ApiCall,
    PathText(table): PathText,
    Params(params): Params<TableParams>,
) -> Result<Response, ApiError> {
    let table = resolve(&state, &principal, &params.name_of(table)).await?;
    let key = profile_key(&state, &principal, &table);
    if let Some(known) = state.table_profiles.get(&key) {
        return Ok(json_response(StatusCode::OK, &known));
    }
    // What policies leave may depend on the time.
    let is_bound = !Rights::new(&principal, &state.engine.catalog().policies().current()).is_unbound();
    let mut permit = state.admission.admit(&principal, Door::Http).await?;
    let limits = Limits { wall_clock: PROFILE_TIME, memory_bytes: PROFILE_MEMORY_BYTES, ..Limits::default() };
    let counted = state.session(principal, limits).read_only().table_statistics(&table.info).await;
    permit.record(&counted);
    let profile = profile_json(&table.info.name, &counted?);
    let lifetime = (is_bound || profile["is_complete"] != true).then_some(PARTIAL_LIFETIME);
    state.table_profiles.keep(key, profile.clone(), lifetime);
    Ok(json_response(StatusCode::OK, &profile))
}

fn profile_json(name: &TableName, statistics: &TableStatistics) -> Value {
    let mut profile = json!({ "database": name.database, "table": name.table });
    if let (Some(profile), Value::Object(statistics)) = (profile.as_object_mut(), json!(statistics)) {
        profile.extend(statistics);
    }
    profile
}

/// Returns what a profile depends on: the rows, as far as they are dated, and all that decides what the caller sees of them.
fn profile_key(state: &AppState, principal: &Principal, table: &ResolvedTable) -> String {
    let rows = match &table.source {
        TableSource::Managed(managed) => format!("snapshot {:?}", managed.snapshot),
        TableSource::External(_) | TableSource::View { .. } => {
            format!("minute {}", chrono::Utc::now().timestamp() / UNDATED_SECONDS)
        }
    };
    let policy = state.engine.catalog().policies().current().version;
    format!("{} {rows}, policy {policy}, {principal:?}", table.info.id)
}

impl TableParams {
    fn name_of(self, table: String) -> TableName {
        TableName { database: self.database.unwrap_or_else(|| DEFAULT_DATABASE.to_owned()), table }
    }
}

async fn resolve(state: &AppState, principal: &Principal, name: &TableName) -> Result<ResolvedTable, ApiError> {
    let tables = state.engine.catalog().tables();
    match tables.resolve(principal, std::slice::from_ref(name)).await?.pop().flatten() {
        Some(found) => Ok(found),
        None => Err(tables.not_found(principal, name).await.into()),
    }
}

fn document(table: &ResolvedTable) -> Value {
    let mut document = table_json(&table.info);
    document["database"] = json!(table.info.name.database);
    if let Some(rows) = table.info.row_count {
        document["row_count"] = json!(rows);
    }
    document
}

/// Runs a statement that changes the catalog, as the caller.
async fn run(state: &AppState, principal: &Principal, statement: &str) -> Result<(), ApiError> {
    let mut permit = state.admission.admit(principal, Door::Http).await?;
    let session = state.session(principal.clone(), Limits::default());
    let done = async { session.sql(statement).await?.collect().await }.await;
    permit.record(&done);
    done?;
    Ok(())
}

/// Comments to set; a text that is `None` is taken away.
#[derive(Debug, Default, PartialEq, Eq)]
struct TableComments {
    table: Option<Option<String>>,
    columns: Vec<(String, Option<String>)>,
}

impl TableComments {
    /// Reads a body. Errors: `bad_request_body`.
    fn read(mut body: Map<String, Value>) -> Result<Self, ApiError> {
        let mut comments = Self::default();
        if let Some(value) = body.remove("comment") {
            comments.table = Some(comment_text("comment", value)?);
        }
        match body.remove("columns") {
            None => {}
            Some(Value::Object(columns)) => {
                for (name, value) in columns {
                    let text = comment_text(&format!("columns.{name}"), value)?;
                    comments.columns.push((name, text));
                }
            }
            Some(_) => return Err(bad_body("`columns` must be an object: a comment, or null, by a column's name")),
        }
        refuse_others(&body)?;
        if comments == Self::default() {
            return Err(bad_body("there is nothing to change: send `comment`, `columns` or both"));
        }
        Ok(comments)
    }
}

fn comment_text(field: &str, value: Value) -> Result<Option<String>, ApiError> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        _ => Err(bad_body(format!("`{field}` must be a text, or null to take the comment away"))),
    }
}

fn refuse_others(body: &Map<String, Value>) -> Result<(), ApiError> {
    match body.keys().next() {
        None => Ok(()),
        Some(other) => Err(bad_body(format!("`{other}` is no field that can be changed here"))),
    }
}

fn bad_body(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::BadRequestBody, message)
}

fn literal(text: Option<&str>) -> String {
    text.map_or_else(|| "NULL".to_owned(), |text| format!("'{}'", text.replace('\'', "''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<TableComments, ApiError> {
        TableComments::read(body.as_object().cloned().unwrap_or_default())
    }

    #[test]
    fn null_and_absent_differ() {
        let both = read(json!({ "comment": null, "columns": { "a": "it's", "b": null } })).unwrap();
        assert_eq!(both.table, Some(None));
        assert_eq!(both.columns, [("a".to_owned(), Some("it's".to_owned())), ("b".to_owned(), None)]);
        assert_eq!(read(json!({ "columns": { "a": "x" } })).unwrap().table, None);
        for bad in [
            json!({}),
            json!({ "columns": {} }),
            json!({ "comment": 7 }),
            json!({ "columns": ["a"] }),
            json!({ "coment": "x" }),
        ] {
            assert_eq!(read(bad.clone()).unwrap_err().code(), ErrorCode::BadRequestBody, "{bad}");
        }
    }

    #[test]
    fn quotes_are_doubled() {
        assert_eq!(
            (quote_identifier("a\"b"), literal(Some("it's")), literal(None)),
            ("\"a\"\"b\"".to_owned(), "'it''s'".to_owned(), "NULL".to_owned())
        );
    }
}
