//! `run_kql`: one KQL query and its rows.

use async_trait::async_trait;
use querent_engine::kql::ast::{Expr, ExprKind, Literal, OperatorKind, Render, StatementKind};
use serde_json::{Map, Value, json};

use super::arguments::ToolArguments;
use super::result_rows::ToolRows;
use super::run_sql::{query_argument, without_fence};
use super::{CHART, Tool, ToolContext, ToolError, ToolOutput, max_rows_argument};
use crate::config::MAX_TOOL_ROWS;
use crate::models::ToolSpec;

pub(super) const NAME: &str = "run_kql";

pub(super) struct RunKql;

#[async_trait]
impl Tool for RunKql {
    fn name(&self) -> &'static str {
        NAME
    }

    fn counts(&self) -> &'static [(&'static str, usize)] {
        &[("max_rows", MAX_TOOL_ROWS)]
    }

    fn aliases(&self) -> &'static [&'static str] {
        &["query", CHART]
    }

    fn spec(&self, default_rows: usize) -> ToolSpec {
        ToolSpec {
            name: NAME.to_owned(),
            description: "Run one KQL (Kusto) query and see its rows.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "kql": {"type": "string", "description": "One KQL query, such as: T | where a > 1 | summarize count() by b"},
                    "max_rows": max_rows_argument(default_rows),
                    "database": {"type": "string", "description": "Where bare table names are found, unless in the current database."},
                },
                "required": ["kql"],
            }),
        }
    }

    async fn call(&self, context: &ToolContext, arguments: &Map<String, Value>) -> Result<ToolOutput, ToolError> {
        let offered = arguments.get(CHART);
        let mut arguments = ToolArguments::new(arguments);
        let kql = arguments.required("kql", &["query"]);
        let max_rows = arguments.count("max_rows", context.default_rows, 1..=MAX_TOOL_ROWS);
        let database = arguments.optional("database");
        arguments.finish(NAME)?;
        query_output(context, without_fence(&kql, "kql"), max_rows, database, offered).await
    }
}

/// Returns the KQL text of a `run_kql` call, where it has one.
pub(crate) fn kql_argument(arguments: &Map<String, Value>) -> Option<String> {
    query_argument(arguments, "kql")
}

/// Runs a query and returns its rows.
pub(super) async fn query_output(
    context: &ToolContext,
    kql: &str,
    max_rows: usize,
    database: Option<String>,
    offered: Option<&Value>,
) -> Result<ToolOutput, ToolError> {
    let session = context.session.clone().in_database(database.as_deref()).await?;
    let rows = ToolRows::read_and_count(session.kql(kql).await?, max_rows, context).await?;
    let rendered = rendered_chart(kql);
    let output = rows.output(rows.to_text(context.text_tokens), offered.or(rendered.as_ref()));
    Ok(ToolOutput { truncation: rows.truncation(context.text_tokens), ..output })
}

/// Returns the chart that the query's `render` asks for, in the form of a chart that a model asks for.
fn rendered_chart(kql: &str) -> Option<Value> {
    if !kql.contains("render") {
        return None;
    }
    let query = querent_engine::kql::parse(kql).query;
    let last = query.statements.iter().rev().find_map(|statement| match &statement.kind {
        StatementKind::Expression(Expr { kind: ExprKind::Pipeline(pipeline), .. }) => pipeline.operators.last(),
        _ => None,
    })?;
    let OperatorKind::Render(render) = &last.kind else { return None };
    let mut chart = json!({ "mark": render.chart.text });
    for (property, part) in [("title", "title"), ("xcolumn", "x"), ("ycolumns", "y"), ("series", "color")] {
        match texts_of(render, property).as_slice() {
            [] => {}
            [only] => chart[part] = json!(only),
            several => chart[part] = json!(several),
        }
    }
    Some(chart)
}

/// Returns the names and strings of a property.
fn texts_of(render: &Render, property: &str) -> Vec<String> {
    let given = render.properties.iter().find(|given| given.name.text == property);
    given.map_or(&[][..], |given| given.values.as_slice()).iter().filter_map(text_of).collect()
}

fn text_of(value: &Expr) -> Option<String> {
    match &value.kind {
        ExprKind::Name(name) => Some(name.text.clone()),
        ExprKind::Literal(Literal::String(text)) => Some(text.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn render_asks_for_a_chart() {
        for (kql, expected) in [
            ("T | summarize n = count() by a", None),
            ("T | where a == 'render' | take 5", None),
            ("T | render timechart", Some(json!({ "mark": "timechart" }))),
            (
                "let t = T; t | render barchart with (title = 'a | b', xcolumn = a, ycolumns = n, m, series = c)",
                Some(json!({ "mark": "barchart", "title": "a | b", "x": "a", "y": ["n", "m"], "color": "c" })),
            ),
        ] {
            assert_eq!(rendered_chart(kql), expected, "{kql}");
        }
    }
}
