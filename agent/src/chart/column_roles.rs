//! The role of each column in a chart: measure, time, calendar, category.

use std::collections::HashMap;

use arrow::datatypes::DataType;
use serde_json::Value;

use super::fields::is_object_property;

/// The kind of a column's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnKind {
    Number,
    Time,
    Text,
    Boolean,
    Other,
}

impl ColumnKind {
    pub(crate) fn of_type(data_type: &DataType) -> Self {
        match data_type {
            DataType::Dictionary(_, values) => Self::of_type(values),
            DataType::RunEndEncoded(_, values) => Self::of_type(values.data_type()),
            DataType::Boolean => ColumnKind::Boolean,
            DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => ColumnKind::Text,
            DataType::Date32 | DataType::Date64 | DataType::Timestamp(_, _) => ColumnKind::Time,
            other if other.is_numeric() => ColumnKind::Number,
            _ => ColumnKind::Other,
        }
    }
}

/// The role of a column in a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnRole {
    /// A number that may be compared and added.
    Measure,
    /// An instant.
    Time,
    /// A number with a place in a calendar: a year, a month, an hour.
    Calendar,
    /// Anything else that has a name.
    Category,
    /// Not drawn.
    Ignored,
}

/// A column of the result.
#[derive(Debug)]
pub(super) struct ChartColumn<'a> {
    pub(super) name: &'a str,
    pub(super) role: ColumnRole,
    pub(super) kind: ColumnKind,
    /// For each row, the number of its value among the distinct ones.
    pub(super) values: Vec<usize>,
    /// For each row, whether its value can be drawn.
    pub(super) drawable: Vec<bool>,
    /// Number of distinct values, null being one.
    pub(super) distinct: usize,
    /// Characters of the longest value.
    pub(super) longest: usize,
    /// The largest number, without its sign.
    pub(super) largest: f64,
    /// Whether the name says that it identifies something.
    pub(super) is_id: bool,
}

impl ChartColumn<'_> {
    pub(super) fn is_ordered(&self) -> bool {
        matches!(self.role, ColumnRole::Time | ColumnRole::Calendar)
    }

    /// Whether each row has its own value.
    pub(super) fn is_unique(&self) -> bool {
        self.distinct == self.values.len()
    }
}

impl<'a> ChartColumn<'a> {
    pub(super) fn new(name: &'a str, kind: ColumnKind, cells: &[&Value]) -> Self {
        let mut numbers: HashMap<String, usize> = HashMap::new();
        let (mut longest, mut largest) = (0, 0.0_f64);
        let values = cells
            .iter()
            .map(|cell| {
                let text = if let Value::String(text) = cell { text.clone() } else { cell.to_string() };
                longest = longest.max(text.chars().count());
                largest = number(cell).map_or(largest, |number| largest.max(number.abs()));
                let next = numbers.len();
                // A null is not the text "null".
                *numbers.entry(if cell.is_null() { "\0".to_owned() } else { text }).or_insert(next)
            })
            .collect();
        let is_drawable = |cell: &&Value| match kind {
            ColumnKind::Number => number(cell).is_some(),
            _ => !cell.is_null(),
        };
        let drawable = cells.iter().map(is_drawable).collect();
        let words = words(name);
        let role = role(name, &words, kind, cells);
        let (distinct, is_id) = (numbers.len(), identifies(&words));
        Self { name, role, kind, values, drawable, distinct, longest, largest, is_id }
    }
}

/// Returns a finite number, also one that is written as text.
fn number(cell: &Value) -> Option<f64> {
    let number = match cell {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

fn role(name: &str, words: &[String], kind: ColumnKind, cells: &[&Value]) -> ColumnRole {
    if is_object_property(name) || cells.iter().all(|cell| cell.is_null()) {
        return ColumnRole::Ignored;
    }
    match kind {
        ColumnKind::Other => ColumnRole::Ignored,
        ColumnKind::Time => ColumnRole::Time,
        ColumnKind::Boolean => ColumnRole::Category,
        ColumnKind::Text if cells.iter().all(|cell| cell.as_str().is_none_or(is_iso_date)) => ColumnRole::Time,
        ColumnKind::Text => ColumnRole::Category,
        ColumnKind::Number if counts(words) => ColumnRole::Measure,
        ColumnKind::Number if identifies(words) => ColumnRole::Category,
        ColumnKind::Number if is_calendar(words, cells) => ColumnRole::Calendar,
        ColumnKind::Number if cells.iter().any(|cell| number(cell).is_some()) => ColumnRole::Measure,
        ColumnKind::Number => ColumnRole::Ignored,
    }
}

/// Whether the text is `2013-01` or `2013-01-31`, which every reader of dates takes for UTC.
fn is_iso_date(text: &str) -> bool {
    let digits = |part: &str, count: usize| part.len() == count && part.bytes().all(|byte| byte.is_ascii_digit());
    let in_range =
        |part: &str, most: u8| digits(part, 2) && part.parse().is_ok_and(|number| (1..=most).contains(&number));
    let parts: Vec<&str> = text.split('-').collect();
    match parts.as_slice() {
        [year, month] => digits(year, 4) && in_range(month, 12),
        [year, month, day] => digits(year, 4) && in_range(month, 12) && in_range(day, 31),
        _ => false,
    }
}

/// Returns the words of a name in lowercase: `dep_delay`, `depDelay`, `avg(dep.delay)`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lowercase = false;
    for c in name.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && after_lowercase) {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        after_lowercase = c.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether the name begins like that of a count or a sum.
fn counts(words: &[String]) -> bool {
    const FIRST: [&str; 14] = [
        "approx", "average", "avg", "count", "dcount", "mean", "median", "n", "num", "number", "stddev", "sum",
        "total", "var",
    ];
    words.first().is_some_and(|word| FIRST.contains(&word.as_str()))
}

fn identifies(words: &[String]) -> bool {
    const LAST: [&str; 9] = ["code", "guid", "id", "key", "phone", "postcode", "uuid", "zip", "zipcode"];
    !counts(words) && words.last().is_some_and(|word| LAST.contains(&word.as_str()))
}

fn is_calendar(words: &[String], cells: &[&Value]) -> bool {
    let (least, most) = match words.last().map(String::as_str) {
        Some("year" | "yr") => (1_000.0, 2_999.0),
        Some("decade") => (0.0, 2_999.0),
        Some("quarter") => (1.0, 4.0),
        Some("month") => (1.0, 12.0),
        Some("week") => (0.0, 53.0),
        Some("day") => (0.0, 366.0),
        Some("weekday" | "dow" | "dayofweek") => (0.0, 7.0),
        Some("hour") => (0.0, 24.0),
        Some("minute") => (0.0, 59.0),
        _ => return false,
    };
    let fits = |number: f64| number.fract() == 0.0 && (least..=most).contains(&number);
    cells.iter().filter(|cell| !cell.is_null()).all(|cell| number(cell).is_some_and(fits))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn roles_follow_type_name_and_values() {
        for (name, kind, cells, expected) in [
            ("n", ColumnKind::Number, json!([1, 2]), ColumnRole::Measure),
            ("revenue", ColumnKind::Number, json!(["1.50", null]), ColumnRole::Measure),
            ("customer_id", ColumnKind::Number, json!([1, 2]), ColumnRole::Category),
            ("customerId", ColumnKind::Number, json!([1, 2]), ColumnRole::Category),
            ("ID", ColumnKind::Number, json!([1, 2]), ColumnRole::Category),
            ("count(DISTINCT t.customer_id)", ColumnKind::Number, json!([1, 2]), ColumnRole::Measure),
            ("dcount_customer_id", ColumnKind::Number, json!([1, 2]), ColumnRole::Measure),
            ("paid", ColumnKind::Number, json!([1, 2]), ColumnRole::Measure),
            ("year", ColumnKind::Number, json!([2013, 2014]), ColumnRole::Calendar),
            ("order_year", ColumnKind::Number, json!([2013, null]), ColumnRole::Calendar),
            ("years", ColumnKind::Number, json!([2013]), ColumnRole::Measure),
            ("year", ColumnKind::Number, json!([3.5]), ColumnRole::Measure),
            ("month", ColumnKind::Number, json!([1, 13]), ColumnRole::Measure),
            ("month", ColumnKind::Text, json!(["2013-01", "2013-02"]), ColumnRole::Time),
            ("month", ColumnKind::Text, json!(["2013-01", "2013-13"]), ColumnRole::Category),
            ("day", ColumnKind::Time, json!(["2013-01-01"]), ColumnRole::Time),
            ("late", ColumnKind::Boolean, json!([true]), ColumnRole::Category),
            ("note", ColumnKind::Text, json!([null]), ColumnRole::Ignored),
            ("tags", ColumnKind::Other, json!([["a"]]), ColumnRole::Ignored),
            ("__proto__", ColumnKind::Number, json!([1]), ColumnRole::Ignored),
            ("x", ColumnKind::Number, json!(["NaN", "Infinity"]), ColumnRole::Ignored),
        ] {
            let cells: Vec<&Value> = cells.as_array().unwrap().iter().collect();
            assert_eq!(ChartColumn::new(name, kind, &cells).role, expected, "{name} {cells:?}");
        }
    }

    #[test]
    fn types_are_kinds() {
        use DataType::{Decimal128, Dictionary, Int32, List, Utf8};
        let list = List(std::sync::Arc::new(arrow::datatypes::Field::new("item", Int32, true)));
        for (data_type, kind) in [
            (Decimal128(10, 2), ColumnKind::Number),
            (Dictionary(Box::new(Int32), Box::new(Utf8)), ColumnKind::Text),
            (DataType::Float16, ColumnKind::Number),
            (DataType::Date32, ColumnKind::Time),
            (list, ColumnKind::Other),
        ] {
            assert_eq!(ColumnKind::of_type(&data_type), kind, "{data_type}");
        }
    }
}
