//! Runs a query, and where it fails or finds nothing, the query as it was repaired. What is repaired is said.

use std::collections::HashSet;

use parking_lot::Mutex;
use querent_catalog::{CatalogError, TableInfo, TableName};
use querent_engine::{EngineError, Session};
use serde_json::{Value, json};

use crate::repair::{
    ComparedTexts, RepairedQuery, is_misdated, is_misread, misnumbers_days, names_database, repair, repair_database,
    tables_read,
};
use crate::tokens::take_tokens;
use crate::tools::ToolContext;
use crate::tools::result_rows::ToolRows;

/// Tables of the same name in which a query is tried that has found nothing.
const MAX_OTHER_TABLES: usize = 4;

/// Queries of a run that failed and that nothing repairs, by database and without regard to spaces.
#[derive(Debug, Default)]
pub(crate) struct FailedQueries {
    seen: Mutex<HashSet<(String, String)>>,
}

impl FailedQueries {
    pub(super) fn has_failed(&self, database: &str, sql: &str) -> bool {
        self.seen.lock().contains(&key(database, sql))
    }

    pub(super) fn insert(&self, database: &str, sql: &str) {
        self.seen.lock().insert(key(database, sql));
    }
}

fn key(database: &str, sql: &str) -> (String, String) {
    let sql = sql.trim().trim_end_matches(';');
    (database.to_owned(), sql.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// A query that ran.
pub(super) struct Attempt {
    pub(super) rows: ToolRows,
    /// What ran in place of what was sent.
    pub(super) repaired: Option<RepairedQuery>,
    /// Whether it found nothing and its texts could not all be looked for in time: another spelling might have found rows.
    pub(super) is_cut: bool,
}

/// A query that did not run.
pub(super) struct FailedAttempt {
    pub(super) error: EngineError,
    /// The repaired query, where that is what failed.
    pub(super) ran: Option<RepairedQuery>,
}

/// Runs a query; a repaired one where it fails for a reason that may be in its text, or finds nothing.
pub(super) async fn run_with_repairs(
    context: &ToolContext,
    session: &Session,
    sql: &str,
    max_rows: usize,
) -> Result<Attempt, FailedAttempt> {
    let run = async |sql: &str| ToolRows::read_and_count(session.sql(sql).await?, max_rows, context).await;
    let at_hand = &context.at_hand;
    // What is asked of a year, or of another day of the week, may find nothing, and as it is written finds others.
    let finds_others = misnumbers_days(sql) || is_misdated(session, at_hand, sql).await;
    if (finds_others || is_misread(sql))
        && let Some(repaired) = repair(session, at_hand, sql).await
        && let Ok(rows) = run(&repaired.sql).await
        && (finds_others || !rows.found_nothing())
    {
        return Ok(Attempt { rows, repaired: Some(repaired), is_cut: false });
    }
    let sent = run(sql).await;
    let (first, mended) = match sent {
        Ok(rows) => (Ok(rows), None),
        Err(error) if is_of_the_text(&error) => match repair(session, at_hand, sql).await {
            Some(repaired) => (run(&repaired.sql).await, Some((repaired, error))),
            None => (Err(error), None),
        },
        Err(error) => return Err(FailedAttempt { error, ran: None }),
    };
    let (repaired, sent_error) = match mended {
        Some((repaired, error)) => (Some(repaired), Some(error)),
        None => (None, None),
    };
    match first {
        Ok(rows) if !rows.found_nothing() => Ok(Attempt { rows, repaired, is_cut: false }),
        Ok(rows) => {
            let mut is_cut = false;
            let found = found_otherwise(session, context, sql, repaired.as_ref(), max_rows, &mut is_cut).await;
            let attempt = found.unwrap_or(Attempt { rows, repaired, is_cut });
            Ok(Attempt { is_cut, ..attempt })
        }
        Err(error) => match spelled(session, context, sql, repaired.as_ref(), max_rows).await {
            Some(found) => Ok(found),
            // Where the repaired query fails in running, its error is nearer to what is wrong.
            None => Err(match (sent_error, repaired) {
                (Some(_), Some(repaired)) if is_of_the_text(&error) => FailedAttempt { error, ran: Some(repaired) },
                (Some(sent), _) if !is_of_the_text(&error) => FailedAttempt { error: sent, ran: None },
                _ => FailedAttempt { error, ran: None },
            }),
        },
    }
}

/// Returns the rows that a query which has found nothing finds otherwise: with its texts spelled as their columns do, looked
/// for in other columns, or in the only other table of the same name. `is_cut` says where texts could not all be looked for.
async fn found_otherwise(
    session: &Session,
    context: &ToolContext,
    sql: &str,
    repaired: Option<&RepairedQuery>,
    max_rows: usize,
    is_cut: &mut bool,
) -> Option<Attempt> {
    let finds = |attempt: &Attempt| !attempt.rows.found_nothing();
    let written = repaired.map_or(sql, |repaired| repaired.sql.as_str());
    let texts = ComparedTexts::read(session, &context.at_hand, written).await?;
    *is_cut = texts.is_cut();
    if let Some(spelled) = texts.spelled(session)
        && let Some(found) = run_changed(session, context, repaired, spelled, max_rows).await.filter(finds)
    {
        return Some(found);
    }
    let moved = texts.moved(session, &context.at_hand).await;
    *is_cut = texts.is_cut();
    if let Some(moved) = moved
        && let Some(found) = run_changed(session, context, repaired, moved, max_rows).await.filter(finds)
    {
        return Some(found);
    }
    let read = tables_read(session, &context.at_hand, written).await;
    if let Some(found) = in_one_database(session, context, repaired, written, &read, max_rows).await {
        return Some(found);
    }
    let ([own], Some(question)) = (read.as_slice(), &context.open_question) else { return None };
    if names_database(question, &own.name) {
        return None;
    }
    let is_other =
        |name: &TableName| name.database != own.name.database && name.table.eq_ignore_ascii_case(&own.name.table);
    let others = context.at_hand.tables.iter().map(|table| &table.name).filter(|name| is_other(name));
    let mut only = None;
    for other in others.take(MAX_OTHER_TABLES) {
        let Some(changed) = repair_database(written, session.database(), &own.name, other) else { continue };
        if let Some(found) = run_changed(session, context, repaired, changed, max_rows).await.filter(finds) {
            // Which of several is meant is not known.
            if only.is_some() {
                return None;
            }
            only = Some(found);
        }
    }
    only
}

/// Returns the rows that a query over tables of several databases finds over those of the only one of them that has shown
/// tables of the same names with rows for it.
async fn in_one_database(
    session: &Session,
    context: &ToolContext,
    repaired: Option<&RepairedQuery>,
    written: &str,
    read: &[TableInfo],
    max_rows: usize,
) -> Option<Attempt> {
    let question = context.open_question.as_ref()?;
    let mut tried: HashSet<&str> = HashSet::new();
    let mut only = None;
    for own in read {
        if tried.len() >= MAX_OTHER_TABLES || !tried.insert(&own.name.database) {
            continue;
        }
        let mut changed = RepairedQuery { sql: written.to_owned(), repairs: Vec::new() };
        let others = read.iter().map(|table| &table.name).filter(|name| name.database != own.name.database);
        for other in others {
            let is_same =
                |name: &&TableName| name.database == own.name.database && name.table.eq_ignore_ascii_case(&other.table);
            let same = context.at_hand.tables.iter().map(|table| &table.name).find(is_same);
            let same = same.filter(|_| !names_database(question, other));
            let step = same.and_then(|same| repair_database(&changed.sql, session.database(), other, same));
            let Some(step) = step else {
                changed.repairs.clear();
                break;
            };
            changed.sql = step.sql;
            changed.repairs.extend(step.repairs);
        }
        if changed.repairs.is_empty() {
            continue;
        }
        let found = run_changed(session, context, repaired, changed, max_rows).await;
        if let Some(found) = found.filter(|attempt| !attempt.rows.found_nothing()) {
            // Which of several is meant is not known.
            if only.is_some() {
                return None;
            }
            only = Some(found);
        }
    }
    only
}

/// Runs a query that failed with its texts spelled as their columns do, or compared with what has them.
async fn spelled(
    session: &Session,
    context: &ToolContext,
    sql: &str,
    repaired: Option<&RepairedQuery>,
    max_rows: usize,
) -> Option<Attempt> {
    let written = repaired.map_or(sql, |repaired| repaired.sql.as_str());
    let texts = ComparedTexts::read(session, &context.at_hand, written).await?;
    if let Some(spelled) = texts.spelled(session)
        && let Some(found) = run_changed(session, context, repaired, spelled, max_rows).await
    {
        return Some(found);
    }
    let moved = texts.moved(session, &context.at_hand).await?;
    run_changed(session, context, repaired, moved, max_rows).await
}

/// Runs a query that was changed after what was repaired before.
async fn run_changed(
    session: &Session,
    context: &ToolContext,
    repaired: Option<&RepairedQuery>,
    mut changed: RepairedQuery,
    max_rows: usize,
) -> Option<Attempt> {
    let stream = session.sql(&changed.sql).await.ok()?;
    let rows = ToolRows::read_and_count(stream, max_rows, context).await.ok()?;
    let mut repairs = repaired.map(|repaired| repaired.repairs.clone()).unwrap_or_default();
    repairs.append(&mut changed.repairs);
    Some(Attempt { rows, repaired: Some(RepairedQuery { sql: changed.sql, repairs }), is_cut: false })
}

/// Whether a query failed by what its text says, and not by a limit, a right or a fault.
pub(super) fn is_of_the_text(error: &EngineError) -> bool {
    match error {
        EngineError::Catalog(error) => matches!(
            error,
            CatalogError::TableNotFound { .. }
                | CatalogError::DatabaseNotFound { .. }
                | CatalogError::ColumnNotFound { .. }
        ),
        EngineError::Parse { .. }
        | EngineError::MultipleStatements { .. }
        | EngineError::ColumnNotFound { .. }
        | EngineError::FunctionNotFound { .. }
        | EngineError::Plan { .. }
        | EngineError::Unsupported { .. }
        | EngineError::InvalidValue { .. }
        | EngineError::Execution { .. }
        | EngineError::Internal(_) => true,
        EngineError::Kql { .. }
        | EngineError::EmptyQuery
        | EngineError::Cancelled { .. }
        | EngineError::NotAllowed { .. }
        | EngineError::WallClockExceeded { .. }
        | EngineError::ReaderIdle { .. }
        | EngineError::ScanTooLarge { .. }
        | EngineError::ValueTooLarge { .. }
        | EngineError::MemoryExceeded { .. }
        | EngineError::ServerMemory { .. }
        | EngineError::ServerThreads { .. }
        | EngineError::BadData { .. }
        | EngineError::NoFiles { .. }
        | EngineError::InvalidOption { .. }
        | EngineError::LocationNotAllowed { .. }
        | EngineError::Store(_)
        | EngineError::WorkerLost { .. } => false,
    }
}

impl RepairedQuery {
    /// Returns `{sent, ran, changes: [{kind, from, to, why}]}`.
    pub(super) fn to_json(&self, sent: &str) -> Value {
        json!({ "sent": sent, "ran": self.sql, "changes": self.repairs })
    }

    /// Returns what ran and why, for the model, in at most `tokens` tokens.
    pub(super) fn to_text(&self, tokens: usize) -> String {
        let changes: Vec<String> = self.repairs.iter().map(|repair| repair.to_line()).collect();
        let text = format!("The query was corrected and ran as: {}\nCorrected: {}", self.sql, changes.join("; "));
        take_tokens(&text, tokens).to_owned()
    }
}
