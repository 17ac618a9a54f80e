//! The data of a chart: a result's rows with the transforms applied, and one field a channel.

use std::collections::HashMap;

use chrono::{DateTime, NaiveDate};
use querent_agent::chart::{Channel, Expression, ReadAs, Spec, Transform, field_name};
use serde_json::Value;

/// A value of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ChartValue {
    /// Finite. An instant is in milliseconds since 1970.
    Number(f64),
    Text(String),
    Null,
}

impl ChartValue {
    pub(super) fn number(&self) -> Option<f64> {
        if let ChartValue::Number(number) = self { Some(*number) } else { None }
    }

    /// Returns its label as a discrete value.
    pub(super) fn label(&self) -> String {
        match self {
            ChartValue::Number(number) => number.to_string(),
            ChartValue::Text(text) => text.clone(),
            ChartValue::Null => "null".to_owned(),
        }
    }
}

/// The data of one mark, or of a point of a line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Datum {
    pub(super) x: ChartValue,
    pub(super) y: ChartValue,
    pub(super) color: Option<ChartValue>,
}

/// Returns the data that the specification asks for.
pub(super) fn data(spec: &Spec, rows: &[Value]) -> Vec<Datum> {
    let mut table: Vec<HashMap<String, ChartValue>> = rows.iter().map(cells).collect();
    for transform in &spec.transform {
        match transform {
            Transform::Calculate { calculate, r#as } => {
                for row in &mut table {
                    let cell = read(row, calculate);
                    row.insert(r#as.clone(), cell);
                }
            }
            Transform::Fold { fold, r#as: [key, value] } => {
                let unfolded = std::mem::take(&mut table);
                for row in unfolded {
                    for name in fold.iter().map(|field| field_name(field)) {
                        let mut folded = row.clone();
                        folded.insert(value.clone(), row.get(&name).cloned().unwrap_or(ChartValue::Null));
                        folded.insert(key.clone(), ChartValue::Text(name));
                        table.push(folded);
                    }
                }
            }
        }
    }
    let value_of = |row: &HashMap<String, ChartValue>, channel: &Channel| {
        row.get(&field_name(&channel.field)).cloned().unwrap_or(ChartValue::Null)
    };
    let encoding = &spec.encoding;
    table
        .iter()
        .map(|row| Datum {
            x: value_of(row, &encoding.x),
            y: value_of(row, &encoding.y),
            color: encoding.color.as_ref().map(|color| value_of(row, color)),
        })
        .collect()
}

fn cells(row: &Value) -> HashMap<String, ChartValue> {
    let fields = row.as_object().into_iter().flatten();
    fields
        .map(|(name, value)| {
            let cell = match value {
                Value::Null => ChartValue::Null,
                Value::Number(number) => number.as_f64().map_or(ChartValue::Null, ChartValue::Number),
                Value::String(text) => ChartValue::Text(text.clone()),
                other => ChartValue::Text(other.to_string()),
            };
            (name.clone(), cell)
        })
        .collect()
}

fn read(row: &HashMap<String, ChartValue>, expression: &Expression) -> ChartValue {
    let cell = row.get(&expression.column).cloned().unwrap_or(ChartValue::Null);
    match (expression.read_as, &cell) {
        (ReadAs::Number, ChartValue::Text(text)) => text
            .trim()
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .map_or(ChartValue::Null, ChartValue::Number),
        (ReadAs::Date, ChartValue::Text(text)) => instant(text).map_or(ChartValue::Null, ChartValue::Number),
        _ => cell,
    }
}

/// Parses an instant, in milliseconds since 1970.
fn instant(text: &str) -> Option<f64> {
    if let Ok(at) = DateTime::parse_from_rfc3339(text) {
        return Some(at.timestamp_millis() as f64);
    }
    let day = text.parse::<NaiveDate>().or_else(|_| format!("{text}-01").parse::<NaiveDate>()).ok()?;
    Some(day.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis() as f64)
}
