//! What helps to correct a query that failed: the columns of the tables that it names, and the tables at hand.

use querent_catalog::{CatalogError, SearchRequest, TableInfo};
use querent_engine::{EngineError, Session};

use super::attempt::FailedAttempt;
use crate::repair::{TablesAtHand, nests_aggregates};
use crate::sql_text::{relations_named_in, shown_identifier, shown_table};
use crate::tokens::{estimate_tokens, take_tokens};
use crate::tools::result_rows::ToolRows;
use crate::tools::{ToolContext, ToolError, table_name};

/// Tables whose columns a hint lists.
const HINTED_TABLES: usize = 3;
/// Tables that a hint suggests for an unknown one.
const SUGGESTED_TABLES: usize = 5;
/// A hint takes at most one such part of a result's tokens.
const HINT_SHARE: usize = 2;
/// The code of a query that had failed before.
pub(crate) const REPEATED_QUERY: &str = "repeated_tool_failure";
/// Rows of a table that a repeated failure shows.
const SHOWN_ROWS: usize = 2;

/// Adds to the error what is needed to correct the query: the columns of the tables it names, tables that may be meant,
/// or which statements are allowed.
pub(super) async fn with_repair_hint(
    context: &ToolContext,
    session: &Session,
    failure: &FailedAttempt,
    sql: &str,
) -> ToolError {
    let error = &failure.error;
    let mut tool_error = ToolError { hint: error.hint(), ..ToolError::new(error.code(), error.to_string()) };
    let sql = failure.ran.as_ref().map_or(sql, |repaired| repaired.sql.as_str());
    let extra = match error {
        EngineError::Catalog(CatalogError::ColumnNotFound { .. })
        | EngineError::ColumnNotFound { .. }
        | EngineError::Plan { .. }
        | EngineError::InvalidValue { .. }
        | EngineError::Execution { .. } => columns_of_named_tables(context, session, sql).await,
        EngineError::Catalog(CatalogError::TableNotFound { .. } | CatalogError::DatabaseNotFound { .. }) => {
            match tables_at_hand(&context.at_hand, context.text_tokens / HINT_SHARE) {
                Some(tables) => Some(tables),
                None => similar_tables(session, sql).await,
            }
        }
        EngineError::Parse { .. } => Some(
            "write one SELECT statement; text in 'single quotes', names in \"double quotes\" only if they need it"
                .to_owned(),
        ),
        EngineError::Unsupported { .. } if nests_aggregates(sql) => Some(
            "an aggregate cannot be taken of another one: compute the inner one in a subquery with its GROUP BY, and the \
             outer one over that"
                .to_owned(),
        ),
        EngineError::NotAllowed { .. } | EngineError::MultipleStatements { .. } => {
            Some("only one SELECT statement at a time is allowed".to_owned())
        }
        _ => None,
    };
    let tried = failure.ran.as_ref().map(|repaired| format!("it was also tried as {}", repaired.sql));
    let hints: Vec<String> = tool_error.hint.take().into_iter().chain(extra).chain(tried).collect();
    if !hints.is_empty() {
        let hint = hints.join("; ");
        tool_error.hint = Some(take_tokens(&hint, context.text_tokens / HINT_SHARE).to_owned());
    }
    tool_error
}

/// Returns what a model reads that sends a query again which has failed: it is not run again. Instead a query of the
/// best-ranked table runs that does work, so that the model has something new to go by.
pub(super) async fn repeated_failure(context: &ToolContext, session: &Session, sql: &str) -> ToolError {
    let message = "this query failed before in the same way, and was not run again; write another one";
    let mut hints = Vec::new();
    if let Some(table) = context.at_hand.tables.first() {
        let columns: Vec<String> = table.columns.iter().map(|column| shown_identifier(&column.name)).collect();
        let example = format!("SELECT {} FROM {} LIMIT {SHOWN_ROWS}", columns.join(", "), shown_table(&table.name));
        if let Ok(stream) = session.sql(&example).await
            && let Ok(rows) = ToolRows::read(stream, SHOWN_ROWS).await
        {
            hints.push(format!("this one runs: {example}\n{}", rows.to_text(context.text_tokens / 4)));
        }
    }
    match tables_at_hand(&context.at_hand, context.text_tokens / HINT_SHARE) {
        Some(tables) => hints.push(tables),
        None => hints.extend(columns_of_named_tables(context, session, sql).await),
    }
    let error = ToolError::new(REPEATED_QUERY, message);
    if hints.is_empty() { error } else { error.with_hint(hints.join("\n")) }
}

/// Lists the tables at hand with their columns, best first, as many as fit.
fn tables_at_hand(at_hand: &TablesAtHand, tokens: usize) -> Option<String> {
    let mut left = tokens;
    let lines: Vec<String> = at_hand
        .tables
        .iter()
        .map(with_columns)
        .take_while(|line| {
            let cost = estimate_tokens(line) + 1;
            let fits = cost <= left;
            left = left.saturating_sub(cost);
            fits
        })
        .collect();
    (!lines.is_empty()).then(|| format!("the tables at hand are {}", lines.join("; ")))
}

/// Returns `database.table(column, ...)`.
fn with_columns(table: &TableInfo) -> String {
    let columns: Vec<String> = table.columns.iter().map(|column| shown_identifier(&column.name)).collect();
    format!("{}({})", shown_table(&table.name), columns.join(", "))
}

async fn columns_of_named_tables(context: &ToolContext, session: &Session, sql: &str) -> Option<String> {
    let names: Vec<_> = relations_named_in(sql)
        .iter()
        .take(HINTED_TABLES)
        .filter_map(|relation| table_name(session, None, relation).ok())
        .collect();
    let resolved = session.engine().catalog().tables().resolve(session.principal(), &names).await.ok()?;
    let tables: Vec<String> = resolved
        .into_iter()
        .flatten()
        .map(|table| {
            let columns: Vec<String> = table.info.columns.iter().map(|column| shown_identifier(&column.name)).collect();
            let bare = table.info.name.database == session.database();
            let name = if bare { table.info.name.table.clone() } else { table.info.name.to_string() };
            format!("`{name}` has the columns {}", columns.join(", "))
        })
        .collect();
    if tables.is_empty() {
        return tables_at_hand(&context.at_hand, context.text_tokens / HINT_SHARE);
    }
    Some(tables.join("; "))
}

async fn similar_tables(session: &Session, sql: &str) -> Option<String> {
    let request = SearchRequest { query: relations_named_in(sql).join(" "), database: None, limit: SUGGESTED_TABLES };
    let hits = session.engine().catalog().search().tables(session.principal(), &request).await.ok()?;
    let names: Vec<String> = hits.iter().map(|hit| format!("`{}`", hit.table.name)).collect();
    (!names.is_empty()).then(|| format!("tables that may be meant: {}", names.join(", ")))
}
