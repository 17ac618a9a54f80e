//! Tables as flights: ListFlights, descriptors by path, and tickets in JSON, as kyma's and InfluxDB's clients write them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow_flight::{FlightDescriptor, FlightInfo};
use arrow_schema::{Field, Schema};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use querent_catalog::{CATALOG_NAME, PageRequest, TableFilter, TableInfo};
use querent_engine::{ResultTypes, quote_identifier};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tonic::Status;

use super::caller::FlightCaller;
use super::flight_info;
use super::listing::is_our_catalog;
use super::statement::{Statements, schema_bytes};
use super::statement_text::StatementText;
use crate::error::{ApiError, ErrorCode};
use crate::query_limits::{QueryLanguage, scalar};
use crate::state::AppState;

/// The tables of one page of the catalog.
const PAGE: usize = 250;

/// Returns the tables and views that the caller may see, or those whose name matches a `LIKE` pattern.
pub(super) fn list(
    state: &AppState,
    statements: &Arc<Statements>,
    caller: FlightCaller,
    pattern: Option<String>,
) -> BoxStream<'static, Result<FlightInfo, Status>> {
    let catalog = Arc::clone(state.engine.catalog());
    let statements = Arc::clone(statements);
    async_stream::try_stream! {
        let filter = TableFilter { name_like: pattern, ..TableFilter::default() };
        let mut request = PageRequest::first(PAGE);
        loop {
            let page = catalog.tables().list_with_columns(&caller.principal, &filter, request).await;
            let page = page.map_err(ApiError::from)?;
            for table in &page.items {
                yield table_flight(&statements, &caller, table)?;
            }
            let Some(next) = page.next else { break };
            request = PageRequest { limit: PAGE, after: Some(next) };
        }
    }
    .map(|flight: Result<FlightInfo, ApiError>| flight.map_err(Status::from))
    .boxed()
}

/// Returns the pattern of a ListFlights, whose expression is the text of a `LIKE`. Errors: `bad_request`.
pub(super) fn pattern_of(expression: &Bytes) -> Result<Option<String>, ApiError> {
    if expression.is_empty() {
        return Ok(None);
    }
    String::from_utf8(expression.to_vec()).map(Some).map_err(|_| {
        ApiError::new(ErrorCode::BadRequest, "the criteria are not text")
            .with_hint("they are a LIKE pattern of table names, or empty")
    })
}

fn table_flight(statements: &Statements, caller: &FlightCaller, table: &TableInfo) -> Result<FlightInfo, ApiError> {
    let (database, name) = (table.name.database.as_str(), table.name.table.as_str());
    let columns = table.columns.iter();
    let fields: Vec<_> =
        columns.map(|column| Field::new(&column.name, column.data_type.clone(), column.nullable)).collect();
    let schema = ResultTypes::default().result_schema(&Schema::new(fields));
    let statement = Arc::new(select_all(database, name));
    // A view's columns may have changed since they were recorded, so the ticket promises no schema.
    let ticket = statements.tickets.ticket(&caller.principal, &statement, None, false);
    let path = vec![CATALOG_NAME.to_owned(), database.to_owned(), name.to_owned()];
    let info = flight_info(schema_bytes(&schema)?, vec![statements.sealed_endpoint(&ticket)]);
    Ok(info.with_descriptor(FlightDescriptor::new_path(path)))
}

/// Returns the statement that a path describes: all rows of `[table]`, `[database, table]` or
/// `[querent, database, table]`. Errors: `bad_request`.
pub(super) fn statement_of_path(path: &[String], database: Option<&str>) -> Result<StatementText, ApiError> {
    match path {
        [table] => {
            let text = format!("SELECT * FROM {}", quote_identifier(table));
            Ok(StatementText::new(text, database.unwrap_or_default(), QueryLanguage::Sql))
        }
        [database, table] => Ok(select_all(database, table)),
        [catalog, database, table] if is_our_catalog(catalog) => Ok(select_all(database, table)),
        _ => Err(ApiError::new(ErrorCode::BadRequest, format!("the path {path:?} describes no table"))
            .with_hint("a path is [table], [database, table] or [querent, database, table]")),
    }
}

fn select_all(database: &str, table: &str) -> StatementText {
    let text = format!("SELECT * FROM {}.{}", quote_identifier(database), quote_identifier(table));
    // Nothing in it is a bare name, and the schemas of system tables are no databases to be in.
    StatementText::new(text, "", QueryLanguage::Sql)
}

/// A ticket as kyma's clients write it, or with the other names as InfluxDB's do. They may send fields that are not known
/// here, which kyma's contract ignores.
#[derive(Debug, Deserialize)]
struct JsonTicket {
    database: Option<String>,
    #[serde(alias = "sql_query")]
    query: String,
    #[serde(default, alias = "query_type")]
    language: Option<String>,
    #[serde(default)]
    kind: Option<String>,
    /// The values of `$name`, by their names.
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

/// Whether a ticket is one in JSON: [`json_ticket`].
pub(super) fn is_json_ticket(ticket: &Bytes) -> bool {
    ticket.first() == Some(&b'{')
}

/// Returns the query of a ticket in JSON, `{"database","query","language","params"}`.
/// What it leaves open is as the caller's headers and session have it. Errors: `bad_request`.
pub(super) fn json_ticket(
    ticket: &Bytes,
    database: Option<&str>,
    language: QueryLanguage,
) -> Result<StatementText, ApiError> {
    let bad = |message: String| {
        ApiError::new(ErrorCode::BadRequest, message)
            .with_hint("a ticket in JSON is {\"database\": ..., \"query\": ..., \"language\": \"sql\" or \"kql\"}")
    };
    let ticket: JsonTicket =
        serde_json::from_slice(ticket).map_err(|error| bad(format!("the ticket is not a query: {error}")))?;
    if let Some(kind) = ticket.kind.filter(|kind| kind != "query") {
        return Err(bad(format!("tickets of kind `{kind}` are not served")));
    }
    let language = match ticket.language {
        None => language,
        Some(name) => QueryLanguage::from_name(&name).ok_or_else(|| bad(format!("unknown language `{name}`")))?,
    };
    let database = ticket.database.as_deref().or(database).unwrap_or_default();
    let statement = StatementText::new(ticket.query, database, language);
    let params = params_by_name(ticket.params.as_deref())
        .map_err(|error| bad(format!("`params` are no values by their names: {error}")))?;
    if params.is_empty() {
        return Ok(statement);
    }
    if statement.is_kql {
        return Err(bad("a query in KQL takes no `params`".to_owned()));
    }
    let mut values: Vec<(String, ArrayRef, bool)> = Vec::with_capacity(params.len());
    for (name, value) in params {
        let value = scalar(&value).map_err(|problem| bad(format!("parameter `{name}` {problem}")))?;
        values.push((name, value.to_array().map_err(ApiError::internal)?, true));
    }
    statement.with_parameters(&RecordBatch::try_from_iter_with_nullable(values).map_err(ApiError::internal)?)
}

/// Returns the values of parameters in the order in which their names are given first.
fn params_by_name(params: Option<&RawValue>) -> Result<Vec<(String, Box<RawValue>)>, serde_json::Error> {
    let Some(params) = params else { return Ok(Vec::new()) };
    let names: Map<String, Value> = serde_json::from_str(params.get())?;
    let mut values: HashMap<String, Box<RawValue>> = serde_json::from_str(params.get())?;
    Ok(names.into_iter().filter_map(|(name, _)| values.remove_entry(&name)).collect())
}
