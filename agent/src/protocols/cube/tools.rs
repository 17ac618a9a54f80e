//! The server's tools under the names that Cube's clients know: `cubeSqlApi` runs SQL, `cubeMeta` reads the schema.
//! Other tools keep their names.

use querent_catalog::DEFAULT_DATABASE;
use querent_engine::qualify_tables;
use serde_json::{Map, Value, json};

use crate::event::{ToolCallStarted, ToolResult};
use crate::protocols::add_ticket;
use crate::sql_text::one_line;
use crate::tools::sql_argument;

const SQL_API: &str = "cubeSqlApi";
const META: &str = "cubeMeta";
/// Rows of one result.
const MAX_ROWS: usize = 100;
/// Bytes of one result's rows or cubes: a line must stay small.
const MAX_RESULT_BYTES: usize = 48 * 1024;
const TITLE_CHARS: usize = 80;
const DESCRIPTION_CHARS: usize = 500;
const MESSAGE_CHARS: usize = 1_500;
/// Last words of names of numbers that identify something and measure nothing.
const NAMING: [&str; 9] = ["id", "key", "code", "number", "year", "month", "day", "zip", "index"];

/// A call as it is shown.
#[derive(Debug)]
pub(super) struct ShownCall {
    pub(super) call_id: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) input: Value,
    kind: ToolFamily,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolFamily {
    Sql,
    Meta,
    Other,
}

/// Converts a call that a user's `question` led to.
pub(super) fn shown(call: &ToolCallStarted, id: String, question: &str) -> ShownCall {
    let empty = Map::new();
    let parsed = call.args.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    let args = parsed.as_ref().unwrap_or(&call.args).as_object().unwrap_or(&empty);
    let text = |names: &[&str]| names.iter().find_map(|name| args.get(*name)?.as_str()).unwrap_or_default().to_owned();
    let (kind, name, input) = match call.tool.as_str() {
        "run_sql" => (ToolFamily::Sql, SQL_API, sql_input(args, question)),
        "search_schema" => {
            (ToolFamily::Meta, META, json!({ "searchQuery": text(&["query", "question", "keywords", "q"]) }))
        }
        "explore_schema" => (ToolFamily::Meta, META, json!({ "searchQuery": text(&["name", "table", "database"]) })),
        "describe_table" => (ToolFamily::Meta, META, json!({ "searchQuery": text(&["table", "table_name"]) })),
        "list_databases" => (ToolFamily::Meta, META, json!({ "searchQuery": "databases" })),
        other => (ToolFamily::Other, other, json!(args)),
    };
    ShownCall { call_id: call.call_id.clone(), id, name: name.to_owned(), input, kind }
}

/// Returns a failure in Cube's form: `Error: BadRequestError: ...`.
pub(super) fn error(code: &str, message: &str) -> Value {
    let words = code.strip_suffix("_error").unwrap_or(code).split('_');
    let class: String = words.map(capitalized).collect();
    json!({ "error": format!("Error: {class}Error: {}", one_line(message, MESSAGE_CHARS)) })
}

impl ShownCall {
    pub(super) fn result(&self, result: &ToolResult) -> Value {
        if let Some(failure) = result.result.get("error").filter(|failure| failure.is_object()) {
            let text = |name: &str| failure[name].as_str().unwrap_or_default();
            return error(text("code"), text("message"));
        }
        match self.kind {
            ToolFamily::Sql => sql_result(self, result),
            ToolFamily::Meta => meta_result(&self.input["searchQuery"], &result.result),
            ToolFamily::Other => result.result.clone(),
        }
    }
}

fn sql_input(args: &Map<String, Value>, question: &str) -> Value {
    let given = |name: &str| args.get(name).and_then(Value::as_str).map(str::to_owned);
    let database = given("database").map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
    let mut sql = sql_argument(args).unwrap_or_default();
    if let Some(database) = database.as_deref().filter(|name| !name.eq_ignore_ascii_case(DEFAULT_DATABASE)) {
        // Clients run the query without a database.
        sql = qualify_tables(&sql, database);
    }
    let question = question.trim();
    let title = given("title").unwrap_or_else(|| one_line(question, TITLE_CHARS));
    let description = given("description")
        .unwrap_or_else(|| format!("A query that helps to answer: {}", one_line(question, DESCRIPTION_CHARS)));
    let mut input = json!({
        "sqlQuery": sql,
        "query": sql,
        "queryTitle": title,
        "description": description,
        "userRequest": one_line(question, DESCRIPTION_CHARS),
    });
    if let Some(database) = database {
        input["database"] = json!(database);
    }
    let offered = ["vegaSpec", "vega_spec"].iter().find_map(|name| args.get(*name));
    match offered {
        Some(Value::String(spec)) => input["vegaSpec"] = json!(spec),
        Some(spec @ Value::Object(_)) => input["vegaSpec"] = json!(spec.to_string()),
        _ => {}
    }
    input
}

fn sql_result(call: &ShownCall, result: &ToolResult) -> Value {
    let empty = Vec::new();
    let list = |name: &str| result.result[name].as_array().unwrap_or(&empty);
    let columns: Vec<(&str, ColumnType)> = list("columns")
        .iter()
        .map(|column| {
            (column["name"].as_str().unwrap_or_default(), column_type(column["type"].as_str().unwrap_or_default()))
        })
        .collect();
    let mut bytes = 0;
    let mut data: Vec<Value> = Vec::new();
    for row in list("rows").iter().take(MAX_ROWS) {
        let values: Vec<Value> = columns.iter().map(|(name, _)| as_text(&row[*name])).collect();
        let values = json!(values);
        bytes += values.to_string().len();
        if bytes > MAX_RESULT_BYTES && !data.is_empty() {
            break;
        }
        data.push(values);
    }
    let schema: Vec<Value> = columns
        .iter()
        .map(|(name, of)| json!({ "name": name, "column_type": of.word, "columnType": of.kind }))
        .collect();
    let (mut measures, mut dimensions) = (Map::new(), Map::new());
    for (name, of) in &columns {
        let side = if of.kind == "number" { &mut measures } else { &mut dimensions };
        side.insert((*name).to_owned(), json!({ "title": title_of(name), "type": of.kind }));
    }
    let total = result.result["total_rows"].as_u64().or(result.result["row_count"].as_u64());
    let mut shown = json!({});
    for name in ["sqlQuery", "queryTitle", "description", "userRequest", "database"] {
        if let Some(value) = call.input.get(name) {
            shown[name] = value.clone();
        }
    }
    shown["schema"] = json!(schema);
    shown["data"] = json!(data);
    shown["totalRows"] = json!(total.unwrap_or(data.len() as u64));
    if result.result["total_rows_is_lower_bound"] == true {
        shown["totalRowsIsLowerBound"] = json!(true);
    }
    shown["uuid"] = json!(call.id);
    shown["annotation"] = json!({ "measures": measures, "dimensions": dimensions });
    if let Some(chart) = &result.chart {
        shown["vegaSpec"] = json!(chart.to_string());
    }
    add_ticket(&mut shown, result.ticket.as_ref());
    shown
}

/// Converts tables to cubes.
fn meta_result(search_query: &Value, result: &Value) -> Value {
    let tables: Vec<&Value> = match (&result["tables"], &result["databases"]) {
        (Value::Array(tables), _) => tables.iter().collect(),
        (_, Value::Array(databases)) => databases.iter().collect(),
        _ => vec![result],
    };
    let mut bytes = 0;
    let mut cubes: Vec<Value> = Vec::new();
    for table in &tables {
        let cube = cube(table);
        bytes += cube.to_string().len();
        if bytes > MAX_RESULT_BYTES && !cubes.is_empty() {
            break;
        }
        cubes.push(cube);
    }
    let truncated = cubes.len() < tables.len() || result["truncated"] == true;
    let mut shown = json!({ "cubes": cubes, "searchQuery": search_query });
    if truncated {
        shown["truncated"] = json!(true);
    }
    shown
}

fn cube(table: &Value) -> Value {
    // A database has a name and nothing else.
    if let Some(name) = table.as_str() {
        return json!({ "name": name, "type": "database", "title": title_of(name), "members": [], "measures": [] });
    }
    let text = |name: &str| table[name].as_str().unwrap_or_default();
    let (database, table_name) = (text("database"), text("table"));
    let name = match database {
        "" | DEFAULT_DATABASE => table_name.to_owned(),
        _ => format!("{database}.{table_name}"),
    };
    let mut measures = Vec::new();
    let mut bytes = 0;
    let mut members: Vec<Value> = Vec::new();
    for column in table["columns"].as_array().into_iter().flatten() {
        let column_name = column["name"].as_str().unwrap_or_default();
        let member_name = format!("{name}.{column_name}");
        let kind = column_type(column["type"].as_str().unwrap_or_default()).kind;
        let description = column["comment"].as_str().unwrap_or_default();
        let mut member =
            json!({ "name": member_name, "title": title_of(column_name), "description": description, "type": kind });
        if kind == "number" && measures_something(column_name) {
            member["aggType"] = json!("sum");
            measures.push(member_name);
        }
        bytes += member.to_string().len();
        if bytes > MAX_RESULT_BYTES {
            break;
        }
        members.push(member);
    }
    let mut cube = json!({ "name": name, "type": "cube", "title": title_of(table_name) });
    if let Some(comment) = table["comment"].as_str() {
        cube["description"] = json!(comment);
    }
    cube["members"] = json!(members);
    cube["measures"] = json!(measures);
    cube
}

/// Whether the sum of a number of this name is meaningful.
fn measures_something(column: &str) -> bool {
    let last = column.rsplit(['_', ' ', '.', '-']).next().unwrap_or_default().to_lowercase();
    !NAMING.contains(&last.as_str())
}

/// A type under Cube's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ColumnType {
    word: &'static str,
    kind: &'static str,
}

/// Converts the name of an Arrow type.
fn column_type(arrow: &str) -> ColumnType {
    let (base, of) = arrow.split_once('(').unwrap_or((arrow, ""));
    let (word, kind) = match base {
        "Boolean" => ("Boolean", "boolean"),
        "Int8" | "Int16" | "Int32" | "UInt8" | "UInt16" => ("Int32", "number"),
        "Int64" | "UInt32" | "UInt64" => ("Int64", "number"),
        "Float16" | "Float32" | "Float64" => ("Double", "number"),
        "Decimal32" | "Decimal64" | "Decimal128" | "Decimal256" => ("Decimal", "number"),
        "Date32" | "Date64" => ("Date", "time"),
        "Timestamp" => ("Timestamp", "time"),
        "Dictionary" => {
            let values = of.split_once(", ").map_or("", |(_, values)| values.trim_end_matches(')'));
            return column_type(values);
        }
        _ => ("String", "string"),
    };
    ColumnType { word, kind }
}

/// Returns a value as a string; null stays null.
fn as_text(value: &Value) -> Value {
    match value {
        Value::Null | Value::String(_) => value.clone(),
        other => Value::String(other.to_string()),
    }
}

/// Returns the title of a name: `deal_amount` is `Deal Amount`.
fn title_of(name: &str) -> String {
    let words = name.split(['_', ' ', '-']).filter(|word| !word.is_empty());
    words.map(capitalized).collect::<Vec<_>>().join(" ")
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_cubes_form() {
        assert_eq!(error("bad_request", "Bad branch")["error"], "Error: BadRequestError: Bad branch");
        assert_eq!(error("sql_parse_error", "a\nb")["error"], "Error: SqlParseError: a b");
    }

    #[test]
    fn types_are_cubes() {
        for (arrow, word, kind) in [
            ("Utf8View", "String", "string"),
            ("Float64", "Double", "number"),
            ("Decimal128(10, 2)", "Decimal", "number"),
            ("Timestamp(µs, \"UTC\")", "Timestamp", "time"),
            ("Dictionary(Int32, Decimal128(10, 2))", "Decimal", "number"),
            ("Dictionary(Int32, Utf8)", "String", "string"),
            ("List(Int64)", "String", "string"),
            ("", "String", "string"),
        ] {
            assert_eq!(column_type(arrow), ColumnType { word, kind }, "{arrow}");
        }
    }

    #[test]
    fn titles_are_words() {
        assert_eq!(title_of("deal_amount"), "Deal Amount");
        assert_eq!(title_of("__"), "");
    }
}
