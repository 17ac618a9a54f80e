//! `hybrid_search(...)` in FROM: the rows of a table that fit a question by its words and by its meaning.

use datafusion::sql::sqlparser::ast::{Expr, Value};

use super::exact_text::exact_text;
use super::table_functions::CallArguments;
use crate::error::{EngineError, Result};

/// The function's name.
pub(super) const NAME: &str = "hybrid_search";
/// The names of its arguments.
pub(super) const PARAMETERS: &[&str] = &["table", "text_column", "vector_column", "question", "k", "vector"];
/// How it is called.
pub(super) const USAGE: &str = "write hybrid_search(table, 'text column', 'vector column', 'question' [, k [, vector]]); \
                                the table may be a (query), the question a text or a parameter";

/// The rows that are returned where the call says nothing.
const DEFAULT_K: &str = "10";
const MAX_K: u64 = 10_000;
/// What is added to ranks before they are fused, so that the first ones do not decide alone; the constant of reciprocal
/// rank fusion's authors.
const RANK_OFFSET: u32 = 60;

/// Returns the query that a call stands for; `None` where it is not called as [`USAGE`] says.
pub(super) fn query(call: &CallArguments<'_>) -> Result<Option<String>> {
    let (Some(table), Some(text), Some(vector)) =
        (call.table("table"), call.column("text_column"), call.column("vector_column"))
    else {
        return Ok(None);
    };
    let Some(question) = call.get("question").filter(|question| is_text_or_parameter(question)) else {
        return Ok(None);
    };
    let k = match call.get("k") {
        None => DEFAULT_K.to_owned(),
        Some(k) => match value_of(k) {
            Some(Value::Number(number, _)) if number.parse().is_ok_and(|k| (1..=MAX_K).contains(&k)) => number.clone(),
            Some(Value::Placeholder(parameter)) => parameter.clone(),
            _ => {
                let message = format!("the k of {NAME} is a number of rows from 1 to {MAX_K}, not {k}");
                return Err(EngineError::Plan { message });
            }
        },
    };
    let question = format!("CAST({} AS VARCHAR)", exact_text(question));
    let meant = call.written("vector").unwrap_or_else(|| format!("embed({question})"));
    let fused = |rank: &str| format!("coalesce(1e0 / ({RANK_OFFSET} + \"${rank}\"), 0e0)");
    Ok(Some(format!(
        "SELECT * FROM (SELECT * EXCLUDE (\"$text_rank\", \"$vector_rank\"), {} + {} AS score FROM (SELECT *, \
         CASE WHEN text_score > 0 THEN rank() OVER (ORDER BY text_score DESC NULLS LAST) END AS \"$text_rank\", \
         CASE WHEN distance IS NOT NULL THEN rank() OVER (ORDER BY distance ASC NULLS LAST) END AS \"$vector_rank\" \
         FROM (SELECT searched.*, bm25_score(searched.{text}, {question}, counted.\"$statistics\") AS text_score, \
         CAST(cosine_distance(searched.{vector}, {meant}) AS DOUBLE) AS distance FROM {table} AS searched CROSS JOIN \
         (SELECT bm25_statistics({text}, {question}) AS \"$statistics\" FROM {table} AS searched) AS counted) AS measured) \
         AS ranked) AS fused WHERE score > 0 ORDER BY score DESC, distance ASC NULLS LAST, text_score DESC LIMIT {k}",
        fused("text_rank"),
        fused("vector_rank"),
    )))
}

fn value_of(expr: &Expr) -> Option<&Value> {
    match expr {
        Expr::Value(value) => Some(&value.value),
        _ => None,
    }
}

fn is_text_or_parameter(expr: &Expr) -> bool {
    matches!(value_of(expr), Some(Value::SingleQuotedString(_) | Value::Placeholder(_)))
}
