//! Names and types as SQL text: what the model reads in the prompt and in results, and what it writes back.

use std::ops::ControlFlow;

use arrow::datatypes::DataType;
use querent_catalog::TableName;
use querent_engine::is_reserved_word;
use sqlparser::ast::{Expr, Query, Value, Visit, Visitor, visit_expressions};

/// Returns the texts between quotes of a query; a doubled quote is one of the text.
pub(crate) fn quoted_texts(query: &str, quotes: &[char]) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = query;
    while let Some(start) = rest.find(quotes) {
        let quote = rest[start..].chars().next().unwrap_or('\'');
        rest = &rest[start + 1..];
        let mut text = String::new();
        while let Some(end) = rest.find(quote) {
            text.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            let Some(doubled) = rest.strip_prefix(quote) else {
                texts.push(std::mem::take(&mut text));
                break;
            };
            text.push(quote);
            rest = doubled;
        }
    }
    texts
}

/// Visits the expressions of a part of a query, and those within them, outside of its subqueries.
pub(crate) fn visit_own_exprs(part: &impl Visit, visit: impl FnMut(&Expr)) {
    struct PartExprs<F> {
        queries: usize,
        visit: F,
    }
    impl<F: FnMut(&Expr)> Visitor for PartExprs<F> {
        type Break = ();
        fn pre_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries += 1;
            ControlFlow::Continue(())
        }
        fn post_visit_query(&mut self, _: &Query) -> ControlFlow<()> {
            self.queries -= 1;
            ControlFlow::Continue(())
        }
        fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
            if self.queries == 0 {
                (self.visit)(expr);
            }
            ControlFlow::Continue(())
        }
    }
    let _: ControlFlow<()> = part.visit(&mut PartExprs { queries: 0, visit });
}

/// Returns the names within a part of a query, outside of its subqueries, that may be columns.
pub(crate) fn own_columns(part: &impl Visit) -> Vec<Expr> {
    let mut columns = Vec::new();
    visit_own_exprs(part, |expr| {
        if matches!(expr, Expr::Identifier(_) | Expr::CompoundIdentifier(_)) {
            columns.push(expr.clone());
        }
    });
    columns
}

/// Whether something is true of an expression of a part of a query, also within its subqueries.
pub(crate) fn has_expr(part: &impl Visit, is_it: impl Fn(&Expr) -> bool) -> bool {
    let found: ControlFlow<()> = visit_expressions(part, |expr| match is_it(expr) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Returns the text that a constant in single quotes is.
pub(crate) fn text_of(expr: &Expr) -> Option<&str> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::SingleQuotedString(text) => Some(text),
        _ => None,
    }
}

/// Returns the digits of a constant number.
pub(crate) fn number_text(expr: &Expr) -> Option<&str> {
    let Expr::Value(value) = expr else { return None };
    match &value.value {
        Value::Number(text, _) => Some(text),
        _ => None,
    }
}

/// Returns the name as SQL, quoted where needed.
pub(crate) fn quote_identifier(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase() || c == '_')
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if plain && !is_reserved_word(name) { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

/// Returns the table's whole name as SQL.
pub(crate) fn quoted_table(name: &TableName) -> String {
    format!("{}.{}", quote_identifier(&name.database), quote_identifier(&name.table))
}

/// Returns the name as it is shown to a model: quoted where a query must quote it. Capitals need no quotes, since names are
/// found whatever their case, and a quote ends the string of a model that writes its query into JSON and forgets to escape it.
pub(crate) fn shown_identifier(name: &str) -> String {
    let lowercase = name.to_ascii_lowercase();
    if quote_identifier(&lowercase) == lowercase { name.to_owned() } else { quote_identifier(name) }
}

/// Returns the table's whole name as it is shown to a model.
pub(crate) fn shown_table(name: &TableName) -> String {
    format!("{}.{}", shown_identifier(&name.database), shown_identifier(&name.table))
}

/// Returns the text without line breaks, cut and marked beyond `max_chars` characters.
pub(crate) fn one_line(text: &str, max_chars: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(max_chars) {
        None => flat,
        Some((end, _)) => format!("{}…", &flat[..end]),
    }
}

/// Splits a dotted name into its parts, without quotes.
pub(crate) fn split_name(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut quote = None;
    for c in name.trim().chars() {
        match (quote, c) {
            (None, '"' | '`') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '.') => parts.push(String::new()),
            (_, c) => {
                if let Some(part) = parts.last_mut() {
                    part.push(c);
                }
            }
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Guesses the relations that a query reads: the names after `FROM`, `JOIN` and a comma that follows one. For hints
/// only: nothing is allowed or refused by it.
pub(crate) fn relations_named_in(sql: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut expecting = false;
    for word in sql.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ';')) {
        if word.is_empty() {
            continue;
        }
        let lowercase = word.to_ascii_lowercase();
        if lowercase == "from" || lowercase == "join" {
            expecting = true;
            continue;
        }
        if expecting {
            for name in word.split(',').filter(|name| !name.is_empty()) {
                if lowercase != "select" && !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
        }
        expecting = expecting && word.ends_with(',');
    }
    names
}

/// Returns the SQL name of the type.
pub fn sql_type(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::UInt8 => "TINYINT UNSIGNED".to_owned(),
        DataType::UInt16 => "SMALLINT UNSIGNED".to_owned(),
        DataType::UInt32 => "INTEGER UNSIGNED".to_owned(),
        DataType::UInt64 => "BIGINT UNSIGNED".to_owned(),
        DataType::Float16 | DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR".to_owned(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            "BYTEA".to_owned()
        }
        DataType::Date32 | DataType::Date64 => "DATE".to_owned(),
        DataType::Time32(_) | DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMPTZ".to_owned(),
        DataType::Duration(_) | DataType::Interval(_) => "INTERVAL".to_owned(),
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => format!("DECIMAL({precision},{scale})"),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _) => format!("{}[]", sql_type(field.data_type())),
        DataType::Struct(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|field| format!("{} {}", quote_identifier(field.name()), sql_type(field.data_type())))
                .collect();
            format!("STRUCT({})", fields.join(", "))
        }
        DataType::Dictionary(_, value) => sql_type(value),
        DataType::RunEndEncoded(_, values) => sql_type(values.data_type()),
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return "MAP".to_owned() };
            let names: Vec<String> = fields.iter().map(|field| sql_type(field.data_type())).collect();
            format!("MAP({})", names.join(", "))
        }
        DataType::Null => "NULL".to_owned(),
        DataType::Union(_, _) => "UNION".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::datatypes::{Field, Fields, UnionFields, UnionMode};

    use super::*;

    #[test]
    fn names_are_quoted_when_they_must_be() {
        for (name, written) in [
            ("dep_delay", "dep_delay"),
            ("order", "\"order\""),
            ("OrderId", "\"OrderId\""),
            ("2013", "\"2013\""),
            ("a \"b\"", "\"a \"\"b\"\"\""),
        ] {
            assert_eq!(quote_identifier(name), written);
        }
    }

    #[test]
    fn capitals_are_shown_without_quotes() {
        for (name, shown) in [
            ("CountryCode", "CountryCode"),
            ("Owners", "Owners"),
            ("Order", "\"Order\""),
            ("Zip code", "\"Zip code\""),
            ("2013", "\"2013\""),
        ] {
            assert_eq!(shown_identifier(name), shown);
        }
    }

    #[test]
    fn types_have_names_of_sql() {
        let texts = DataType::List(Arc::new(Field::new_list_field(DataType::Utf8, true)));
        let fields = vec![Field::new("key", DataType::Utf8, false), Field::new("value", texts, true)];
        let entries = Field::new("entries", DataType::Struct(Fields::from(fields)), false);
        for (data_type, name) in [
            (DataType::Map(Arc::new(entries), false), "MAP(VARCHAR, VARCHAR[])"),
            (DataType::Null, "NULL"),
            (DataType::Union(UnionFields::empty(), UnionMode::Sparse), "UNION"),
        ] {
            assert_eq!(sql_type(&data_type), name);
        }
    }

    #[test]
    fn dotted_names_are_split_outside_quotes() {
        assert_eq!(split_name("querent.sales.orders"), ["querent", "sales", "orders"]);
        assert_eq!(split_name("sales.\"my.table\""), ["sales", "my.table"]);
        assert_eq!(split_name(" flights "), ["flights"]);
    }

    #[test]
    fn relations_are_found_in_a_query() {
        let sql = "SELECT a.x FROM flights a JOIN airlines b ON a.c = b.c WHERE y IN (SELECT y FROM t1, t2);";
        assert_eq!(relations_named_in(sql), ["flights", "airlines", "t1", "t2"]);
        assert_eq!(relations_named_in("SELECT extract(year from t) FROM (SELECT 1)"), ["t"]);
    }
}
