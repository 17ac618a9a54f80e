//! Texts beside times, intervals and booleans whose types are written out: in `VALUES (DATE '2024-01-01'), ('2024-01-02')` and
//! `[DATE '2024-01-01', '2024-01-02']` the second is a date too, as in PostgreSQL and DuckDB. The planner finds no type in common.

use datafusion::sql::sqlparser::ast::{CastKind, DataType, Expr, TypedString, Value, ValueWithSpan, Values};

/// Gives the texts of each column of VALUES the type that other rows say.
pub(super) fn write_out_columns(values: &mut Values) {
    let width = values.rows.first().map_or(0, |row| row.content.len());
    for column in 0..width {
        write_out_texts(values.rows.iter_mut().filter_map(|row| row.content.get_mut(column)).collect());
    }
}

/// Gives the texts of a list the type that other elements say.
pub(super) fn write_out_elements(expr: &mut Expr) {
    if let Expr::Array(array) = expr {
        write_out_texts(array.elem.iter_mut().collect());
    }
}

fn write_out_texts(values: Vec<&mut Expr>) {
    let mut said: Option<DataType> = None;
    for found in values.iter().filter_map(|value| said_type(value)) {
        match &said {
            Some(before) if *before != found => return,
            _ => said = Some(found),
        }
    }
    let Some(data_type) = said else { return };
    for value in values {
        if matches!(value, Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(_), .. })) {
            *value = Expr::Cast {
                kind: CastKind::Cast,
                expr: Box::new(value.clone()),
                data_type: data_type.clone(),
                array: false,
                format: None,
            };
        }
    }
}

/// Returns the type of a time, an interval or a boolean that its text says.
fn said_type(expr: &Expr) -> Option<DataType> {
    match expr {
        Expr::Nested(inner) => said_type(inner),
        Expr::Cast { kind: CastKind::Cast | CastKind::DoubleColon, data_type, .. }
        | Expr::TypedString(TypedString { data_type, .. }) => {
            let is_such = matches!(
                data_type,
                DataType::Date
                    | DataType::Time(_, _)
                    | DataType::Timestamp(_, _)
                    | DataType::Datetime(_)
                    | DataType::Interval { .. }
                    | DataType::Boolean
                    | DataType::Bool
            );
            is_such.then(|| data_type.clone())
        }
        Expr::Interval(_) => Some(DataType::Interval { fields: None, precision: None }),
        Expr::Value(ValueWithSpan { value: Value::Boolean(_), .. }) => Some(DataType::Boolean),
        _ => None,
    }
}
