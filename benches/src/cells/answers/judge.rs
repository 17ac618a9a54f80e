//! Whether two queries return the same rows: as sets, whatever the order of rows and columns, on every filling.

use std::collections::BTreeSet;

use futures::StreamExt;
use querent_agent::CheckTimes;
use querent_agent::toolbox::{self, ReplyBounds};
use querent_catalog::Principal;
use querent_engine::{Engine, Limits, QueryStream, Session};
use serde_json::{Map, Value, json};

use crate::cells::recall::SpiderQuestion;

/// Rows of one query that are compared.
const MAX_ROWS: usize = 1_000;

/// The rows of a query as texts, the values of each in order.
pub(super) type RowSet = BTreeSet<Vec<String>>;

/// Runs the gold query of a question on every filling; `None` where it does not run or never finds anything.
pub(super) async fn gold_rows(engines: &[Engine], question: &SpiderQuestion) -> Option<Vec<RowSet>> {
    let mut found = Vec::new();
    for engine in engines {
        // The gold queries are SQLite's, and are turned as a model's would be.
        let session = session_of(engine).in_database(Some(&question.db_id)).await.ok()?;
        let bounds = ReplyBounds { default_rows: MAX_ROWS, text_tokens: 1_000, check_times: CheckTimes::DEFAULT };
        let mut arguments = Map::new();
        arguments.insert("sql".to_owned(), json!(question.query));
        arguments.insert("max_rows".to_owned(), json!(MAX_ROWS));
        let reply = toolbox::call(session, bounds, None, "run_sql", arguments).await;
        let rows = reply.json["rows"].as_array().filter(|_| !reply.is_error)?;
        found.push(rows.iter().filter_map(Value::as_object).map(|row| row_of(row.values())).collect());
    }
    let nothing = |rows: &RowSet| rows.iter().all(|row| row.iter().all(|value| value.is_empty() || value == "0"));
    (!found.iter().all(nothing)).then_some(found)
}

/// Returns `right`, `differs`, or the code of the error of a query that does not run.
pub(super) async fn verdict(engines: &[Engine], database: Option<&str>, sql: &str, gold: &[RowSet]) -> String {
    for (engine, gold) in engines.iter().zip(gold) {
        match rows_of(&session_of(engine), database, sql).await {
            Ok(rows) if rows == *gold => {}
            Ok(_) => return "differs".to_owned(),
            Err(code) => return code,
        }
    }
    "right".to_owned()
}

/// The query on which an answer rests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerQuery {
    Sql(String),
    Kql(String),
}

/// As [`verdict`], of a query of either language on one lake.
pub(super) async fn verdict_of(engine: &Engine, query: &AnswerQuery, gold: &RowSet) -> String {
    let session = session_of(engine);
    let stream = match query {
        AnswerQuery::Sql(sql) => session.sql(sql).await,
        AnswerQuery::Kql(kql) => session.kql(kql).await,
    };
    let rows = match stream {
        Ok(stream) => rows_of_stream(stream).await,
        Err(error) => Err(error.code().to_owned()),
    };
    match rows {
        Ok(rows) if rows == *gold => "right".to_owned(),
        Ok(_) => "differs".to_owned(),
        Err(code) => code,
    }
}

/// Runs a query. Errors: the code.
pub(super) async fn rows_of(session: &Session, database: Option<&str>, sql: &str) -> Result<RowSet, String> {
    let code = |error: querent_engine::EngineError| error.code().to_owned();
    let session = session.clone().in_database(database).await.map_err(code)?;
    rows_of_stream(session.sql(sql).await.map_err(code)?).await
}

/// Reads the rows of a query. Errors: the code.
pub(super) async fn rows_of_stream(mut stream: QueryStream) -> Result<RowSet, String> {
    let code = |error: querent_engine::EngineError| error.code().to_owned();
    let mut rows = RowSet::new();
    while let Some(batch) = stream.next().await {
        let batch = batch.map_err(code)?;
        for row in 0..batch.num_rows() {
            let values = batch.columns().iter().map(|column| {
                let text = arrow::util::display::array_value_to_string(column, row).unwrap_or_default();
                json!(text)
            });
            let values: Vec<Value> = values.collect();
            rows.insert(row_of(values.iter()));
        }
        if rows.len() >= MAX_ROWS {
            break;
        }
    }
    Ok(rows)
}

fn session_of(engine: &Engine) -> Session {
    engine.session(Principal::local_admin(), Limits::default())
}

/// Returns a row's values as texts in order, numbers in one form.
fn row_of<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<String> {
    let mut texts: Vec<String> = values
        .map(|value| {
            let text = match value {
                Value::Null => String::new(),
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            };
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() => format!("{}", (number * 1e4).round() / 1e4),
                _ => text.replace('T', " ").trim_end_matches('Z').to_owned(),
            }
        })
        .collect();
    texts.sort_unstable();
    texts
}
