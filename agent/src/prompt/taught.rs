//! What people taught the server, for the prompt: metrics that a question is about, and verified queries with similar
//! questions. Only what the caller may see, within a share of the prompt's tokens.

use querent_catalog::{Metric, VerifiedQuery};

use crate::sql_text::{one_line, shown_identifier, shown_table};
use crate::tokens::estimate_tokens;

const MAX_SQL_CHARS: usize = 1_200;
const MAX_QUESTION_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 160;

/// Verified queries and metrics, most similar first.
#[derive(Debug, Default)]
pub(crate) struct TaughtKnowledge {
    /// With similar questions.
    pub(crate) queries: Vec<VerifiedQuery>,
    /// Named by the question.
    pub(crate) metrics: Vec<Metric>,
}

/// Renders this part of the prompt in at most `budget` tokens; empty when nothing fits.
pub(super) fn render(taught: &TaughtKnowledge, database: &str, budget: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut left = budget;
    let mut push = |heading: &str, line: String, is_first: &mut bool| {
        let heading_tokens = if *is_first { estimate_tokens(heading) + 1 } else { 0 };
        let cost = heading_tokens + estimate_tokens(&line) + 1;
        if cost > left {
            return;
        }
        left -= cost;
        if std::mem::take(is_first) {
            lines.push(heading.to_owned());
        }
        lines.push(line);
    };
    let mut is_first = true;
    for metric in &taught.metrics {
        push("Metrics:", metric_line(metric, database), &mut is_first);
    }
    let mut is_first = true;
    for query in &taught.queries {
        let question = one_line(&query.question, MAX_QUESTION_CHARS);
        if query.sql.chars().count() <= MAX_SQL_CHARS {
            let sql = one_line(&query.sql, MAX_SQL_CHARS);
            push("Similar questions and their verified SQL:", format!("{question}\n{sql}"), &mut is_first);
        }
    }
    lines.join("\n")
}

fn metric_line(metric: &Metric, database: &str) -> String {
    let table = match metric.table.database.eq_ignore_ascii_case(database) {
        true => shown_identifier(&metric.table.table),
        false => shown_table(&metric.table),
    };
    let mut line = format!("{} = {} FROM {table}", metric.name, one_line(&metric.expression, MAX_SQL_CHARS));
    if let Some(filter) = &metric.filter {
        line.push_str(&format!(" WHERE {}", one_line(filter, MAX_SQL_CHARS)));
    }
    if let Some(description) = &metric.description {
        line.push_str(&format!(" -- {}", one_line(description, MAX_DESCRIPTION_CHARS)));
    }
    line
}
