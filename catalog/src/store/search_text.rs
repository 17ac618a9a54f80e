//! Composes the text of an object that is searched and embedded: one pure, versioned function, used for the full-text
//! row, for the vector and for the pending row that is committed with the object. Nothing else composes such texts.
//!
//! The text of a table, version 1 (`sales.custOrders`):
//!
//! ```text
//! table cust Orders in database sales
//! orders placed by customers
//! columns: order id bigint, placed At timestamp (when it was placed)
//! names: custOrders placedAt
//! ```
//!
//! Identifiers are split into words ([`split_words`]); those that full-text search would not find in their
//! unsplit form are repeated whole in the last line. Any change of the output for an existing input must raise
//! [`TEXT_VERSION`], which makes an existing index rebuild itself.

use arrow_schema::DataType;

use crate::model::{ColumnInfo, TableInfo};

/// The version of what this file composes, recorded on every index row.
pub(crate) const TEXT_VERSION: u32 = 1;

/// The longest text. A model reads about the first kilobyte of it; full-text search reads all of it.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024;

/// Longest part that a table's comment takes of its text.
const MAX_TABLE_COMMENT_BYTES: usize = 2 * 1024;
/// Longest part that one column's comment takes.
const MAX_COLUMN_COMMENT_BYTES: usize = 256;
/// Longest part that the name and type of a column's own text take.
const MAX_COLUMN_BYTES: usize = 1024;
/// Bytes reserved for the `names:` line.
const MAX_NAMES_BYTES: usize = 1024;

/// The text of a table, external table or view. Pure; at most `MAX_TEXT_BYTES` (8 KiB) long.
pub fn table_text(table: &TableInfo) -> String {
    let mut text = String::with_capacity(512);
    let mut compound_names: Vec<&str> = Vec::new();

    text.push_str("table ");
    push_identifier(&mut text, &table.name.table, &mut compound_names);
    text.push_str(" in database ");
    push_identifier(&mut text, &table.name.database, &mut compound_names);
    if let Some(comment) = non_blank(table.comment.as_deref()) {
        text.push('\n');
        push_comment(&mut text, comment, MAX_TABLE_COMMENT_BYTES);
    }

    let mut separator = "\ncolumns: ";
    for column in &table.columns {
        let mut part = String::from(separator);
        let names_before = compound_names.len();
        push_identifier(&mut part, &column.name, &mut compound_names);
        part.push(' ');
        part.push_str(&type_words(&column.data_type));
        if let Some(comment) = non_blank(column.comment.as_deref()) {
            part.push_str(" (");
            push_comment(&mut part, comment, MAX_COLUMN_COMMENT_BYTES);
            part.push(')');
        }
        if text.len() + part.len() > MAX_TEXT_BYTES - MAX_NAMES_BYTES {
            compound_names.truncate(names_before);
            break;
        }
        text.push_str(&part);
        separator = ", ";
    }

    let mut separator = "\nnames: ";
    let mut names_bytes = 0;
    for name in compound_names {
        names_bytes += separator.len() + name.len();
        if names_bytes > MAX_NAMES_BYTES {
            break;
        }
        text.push_str(separator);
        text.push_str(name);
        separator = " ";
    }
    truncate_at_char(&mut text, MAX_TEXT_BYTES);
    text
}

/// The text of a column: its name, type and comment without its table, so that equal columns of many tables share one
/// text. Pure; a change of its output needs a migration that rewrites the stored texts.
pub(crate) fn column_text(column: &ColumnInfo) -> String {
    let mut compound_names: Vec<&str> = Vec::new();
    let mut text = String::with_capacity(64);
    push_identifier(&mut text, &column.name, &mut compound_names);
    text.push(' ');
    text.push_str(&type_words(&column.data_type));
    truncate_at_char(&mut text, MAX_COLUMN_BYTES);
    if let Some(comment) = non_blank(column.comment.as_deref()) {
        text.push('\n');
        push_comment(&mut text, comment, MAX_TABLE_COMMENT_BYTES);
    }
    for name in compound_names {
        text.push_str("\nname: ");
        text.push_str(name);
    }
    text
}

/// The full-text query for a question: the question itself and the words of its compound identifiers.
pub(crate) fn query_text(question: &str) -> String {
    let mut text = question.to_string();
    for run in compound_runs(question) {
        for word in split_words(run) {
            text.push(' ');
            text.push_str(word);
        }
    }
    text
}

/// Splits an identifier into words at punctuation, at `camelCase` humps and between letters and digits.
/// Abbreviations stay whole: `HTTPServerIDs` is `HTTP Server IDs`.
pub(crate) fn split_words(identifier: &str) -> Vec<&str> {
    identifier.split(|c: char| !c.is_alphanumeric()).flat_map(split_run).collect()
}

/// Splits one run of letters and digits.
fn split_run(run: &str) -> Vec<&str> {
    let chars: Vec<(usize, char)> = run.char_indices().collect();
    let mut words = Vec::new();
    let mut start = 0;
    for index in 1..chars.len() {
        let (offset, current) = chars[index];
        let previous = chars[index - 1].1;
        let next = chars.get(index + 1).map(|(_, c)| *c);
        let is_hump = previous.is_lowercase() && current.is_uppercase();
        let is_number_edge = previous.is_numeric() != current.is_numeric();
        // The last capital of a run belongs to the word after it (`HTTPServer`), but for a plural (`IDs`).
        let is_plural = next == Some('s') && !chars.get(index + 2).is_some_and(|(_, c)| c.is_lowercase());
        let ends_capitals =
            previous.is_uppercase() && current.is_uppercase() && next.is_some_and(char::is_lowercase) && !is_plural;
        let is_boundary = is_hump || is_number_edge || ends_capitals;
        if is_boundary {
            words.push(&run[start..offset]);
            start = offset;
        }
    }
    if start < run.len() {
        words.push(&run[start..]);
    }
    words
}

/// The runs of letters and digits that are more than one word: what a full-text tokenizer sees as one token.
fn compound_runs(identifier: &str) -> impl Iterator<Item = &str> {
    identifier.split(|c: char| !c.is_alphanumeric()).filter(|run| split_run(run).len() > 1)
}

fn push_identifier<'a>(text: &mut String, identifier: &'a str, compound_names: &mut Vec<&'a str>) {
    let words = split_words(identifier);
    if words.is_empty() {
        text.push_str(identifier);
    } else {
        text.push_str(&words.join(" "));
    }
    for run in compound_runs(identifier) {
        if !compound_names.contains(&run) {
            compound_names.push(run);
        }
    }
}

/// The type in the words that questions use.
fn type_words(data_type: &DataType) -> String {
    let words = match data_type {
        DataType::Boolean => "boolean",
        DataType::Int8 | DataType::Int16 | DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => "unsigned integer",
        DataType::Float16 | DataType::Float32 | DataType::Float64 => "double",
        DataType::Decimal32(..) | DataType::Decimal64(..) | DataType::Decimal128(..) | DataType::Decimal256(..) => {
            "decimal"
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "binary",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(..) => "timestamp",
        DataType::Duration(_) | DataType::Interval(_) => "interval",
        DataType::Dictionary(_, value) => return type_words(value),
        DataType::RunEndEncoded(_, value) => return type_words(value.data_type()),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => return format!("list of {}", type_words(item.data_type())),
        DataType::Struct(fields) => {
            let names: Vec<String> = fields.iter().map(|field| split_words(field.name()).join(" ")).collect();
            return format!("struct of {}", names.join(", "));
        }
        DataType::Map(..) => "map",
        DataType::Union(..) => "union",
        DataType::Null => "null",
    };
    words.to_string()
}

fn non_blank(comment: Option<&str>) -> Option<&str> {
    comment.map(str::trim).filter(|comment| !comment.is_empty())
}

fn push_comment(text: &mut String, comment: &str, max_bytes: usize) {
    let mut flat = comment.split_whitespace().collect::<Vec<_>>().join(" ");
    truncate_at_char(&mut flat, max_bytes);
    text.push_str(&flat);
}

fn truncate_at_char(text: &mut String, max_bytes: usize) {
    if text.len() > max_bytes {
        let end = (0..=max_bytes).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
}

#[cfg(test)]
mod tests {
    use arrow_schema::{DataType, TimeUnit};
    use uuid::Uuid;

    use super::*;
    use crate::model::{ColumnInfo, TableKind, TableName};

    #[test]
    fn identifiers_split_into_words() {
        let cases = [
            ("order_id", vec!["order", "id"]),
            ("custOrderId", vec!["cust", "Order", "Id"]),
            ("HTTPServerIDs", vec!["HTTP", "Server", "IDs"]),
            ("address2", vec!["address", "2"]),
            ("otel-logs 2024", vec!["otel", "logs", "2024"]),
            ("URLs", vec!["URLs"]),
            ("straßeÜberNacht", vec!["straße", "Über", "Nacht"]),
            ("注文", vec!["注文"]),
            ("__", vec![]),
            ("", vec![]),
        ];
        for (identifier, words) in cases {
            assert_eq!(split_words(identifier), words, "{identifier}");
        }
    }

    #[test]
    fn text_of_a_table() {
        let mut orders = table("sales", "custOrders", &[("order_id", DataType::Int64)]);
        orders.comment = Some("orders placed\nby customers ".into());
        orders.columns.push(ColumnInfo {
            id: 2,
            name: "placedAt".into(),
            data_type: DataType::Timestamp(TimeUnit::Microsecond, None),
            is_json: false,
            is_uuid: false,
            nullable: true,
            comment: Some("when it was placed".into()),
            default: None,
            initial_default: None,
        });
        assert_eq!(
            table_text(&orders),
            "table cust Orders in database sales\norders placed by customers\n\
             columns: order id bigint, placed At timestamp (when it was placed)\nnames: custOrders placedAt"
        );
    }

    #[test]
    fn text_is_bounded() {
        let names: Vec<String> = (0..5_000).map(|index| format!("measureÜber{index}")).collect();
        let columns: Vec<(&str, DataType)> = names.iter().map(|name| (name.as_str(), DataType::Float64)).collect();
        let mut wide = table("lab", "readings", &columns);
        wide.comment = Some("é".repeat(50_000));
        let text = table_text(&wide);
        assert!(text.len() <= MAX_TEXT_BYTES, "{}", text.len());
        assert!(text.contains("measure Über 0 double"), "the first columns are kept");
    }

    #[test]
    fn question_gains_the_words_of_its_identifiers() {
        assert_eq!(query_text("what is custOrderId?"), "what is custOrderId? cust Order Id");
        assert_eq!(query_text("late flights"), "late flights");
    }

    fn table(database: &str, name: &str, columns: &[(&str, DataType)]) -> TableInfo {
        let columns = columns.iter().enumerate().map(|(index, (name, data_type))| ColumnInfo {
            id: index as i64 + 1,
            name: (*name).to_string(),
            data_type: data_type.clone(),
            is_json: false,
            is_uuid: false,
            nullable: true,
            comment: None,
            default: None,
            initial_default: None,
        });
        TableInfo {
            id: 1,
            uuid: Uuid::nil(),
            name: TableName::new(database, name),
            kind: TableKind::Managed,
            comment: None,
            columns: columns.collect(),
            row_count: None,
        }
    }
}
