//! Tables in the formats of Kusto's two versions, and the result of a command.

use querent_engine::kql::KqlType;
use serde::Serialize;
use serde_json::{Value, json};

/// The type of most columns of commands.
pub(super) const TEXT: KqlType = KqlType::String;

/// The result of a command.
#[derive(Debug)]
pub(super) struct CommandTable {
    pub(super) columns: Vec<(&'static str, KqlType)>,
    pub(super) rows: Vec<Vec<Value>>,
}

impl CommandTable {
    /// Returns the answer in version 1.
    pub(super) fn document(&self) -> String {
        format!("{{\"Tables\":[{}]}}", v1_table("Table_0", &self.columns, &self.rows))
    }

    /// Returns the rows as a `datatable` of KQL, to which operators can be appended.
    pub(super) fn as_kql(&self) -> String {
        let columns = self.columns.iter().map(|(name, kql_type)| format!("{name}:{}", kql_type.name()));
        let columns: Vec<String> = columns.collect();
        let literal = |value: &Value, kql_type: KqlType| match value {
            Value::Null => format!("{}(null)", kql_type.name()),
            value if kql_type == KqlType::Dynamic => format!("dynamic({value})"),
            Value::String(text) if kql_type != TEXT => format!("{}({text})", kql_type.name()),
            value => value.to_string(),
        };
        let rows = self.rows.iter().map(|row| {
            let cells = row.iter().zip(&self.columns).map(|(value, (_, kql_type))| literal(value, *kql_type));
            cells.collect::<Vec<_>>().join(",")
        });
        format!("datatable({})[{}]", columns.join(","), rows.collect::<Vec<_>>().join(","))
    }
}

/// `{"TableName":...,"Columns":[...],"Rows":[`
pub(super) fn v1_opening<'c>(name: &str, columns: impl Iterator<Item = (&'c str, KqlType)>) -> String {
    let columns = columns.map(|(name, kql_type)| {
        let short = kql_type.dotnet_name();
        let short = short.rsplit('.').next().unwrap_or(short);
        format!("{{\"ColumnName\":{},\"DataType\":\"{short}\",\"ColumnType\":\"{}\"}}", json!(name), kql_type.name())
    });
    let columns: Vec<String> = columns.collect();
    format!("{{\"TableName\":\"{name}\",\"Columns\":[{}],\"Rows\":[", columns.join(","))
}

/// Returns a whole table of version 1, each row an array.
pub(super) fn v1_table(name: &str, columns: &[(&str, KqlType)], rows: &[impl Serialize]) -> String {
    format!("{}{}]}}", v1_opening(name, columns.iter().copied()), joined(rows))
}

/// `{"FrameType":...,"TableId":...,"TableKind":...,"TableName":...,"Columns":[...]`
pub(super) fn v2_opening<'c>(
    frame: &str,
    id: u32,
    kind: &str,
    name: &str,
    columns: impl Iterator<Item = (&'c str, KqlType)>,
) -> String {
    let columns = columns
        .map(|(name, kql_type)| format!("{{\"ColumnName\":{},\"ColumnType\":\"{}\"}}", json!(name), kql_type.name()));
    let columns: Vec<String> = columns.collect();
    format!(
        "{{\"FrameType\":\"{frame}\",\"TableId\":{id},\"TableKind\":\"{kind}\",\"TableName\":\"{name}\",\"Columns\":[{}]",
        columns.join(",")
    )
}

pub(super) fn v2_table(id: u32, kind: &str, name: &str, columns: &[(&str, KqlType)], rows: &[Value]) -> String {
    let opening = v2_opening("DataTable", id, kind, name, columns.iter().copied());
    format!("{opening},\"Rows\":[{}]}}", joined(rows))
}

fn joined(rows: &[impl Serialize]) -> String {
    let rows: Vec<String> = rows.iter().map(|row| json!(row).to_string()).collect();
    rows.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_a_datatable_again() {
        let table = CommandTable {
            columns: vec![("a", TEXT), ("b", KqlType::Bool), ("c", KqlType::DateTime), ("d", KqlType::Dynamic)],
            rows: vec![vec![json!("it's \"x\""), json!(true), Value::Null, json!({})]],
        };
        let rows = r#"["it's \"x\"",true,datetime(null),dynamic({})]"#;
        assert_eq!(table.as_kql(), format!("datatable(a:string,b:bool,c:datetime,d:dynamic){rows}"));
    }
}
