//! Which type holds every cell of a column, and cells as arrays of their columns' types.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Date32Builder, Float64Builder, Int64Builder, StringBuilder,
    Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::{Datelike, NaiveTime, Timelike};

use super::cells::{CellValue, iso_moment};
use crate::error::{EngineError, Result};
use crate::tables::external::csv::truth_value;

/// The days of the common era before 1970-01-01.
const DAYS_BEFORE_1970: i32 = 719_163;
/// The largest integer up to which every one is a double, as the numbers of a sheet are.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// Kinds of cells, one bit each.
mod kind {
    pub(super) const BOOLEAN: u8 = 1;
    pub(super) const INTEGER: u8 = 1 << 1;
    pub(super) const FLOAT: u8 = 1 << 2;
    pub(super) const DATE: u8 = 1 << 3;
    pub(super) const MOMENT: u8 = 1 << 4;
    pub(super) const TIME: u8 = 1 << 5;
    pub(super) const TEXT: u8 = 1 << 6;
}

/// What is known of a column after some of its cells.
#[derive(Debug, Clone, Default)]
pub(super) struct SheetColumnKinds {
    kinds: u8,
    markers: u64,
}

impl SheetColumnKinds {
    /// Takes a cell in. A text of `markers` means null where the column has another type than text.
    pub(super) fn update(&mut self, cell: &CellValue<'_>, markers: &[String]) {
        match cell {
            CellValue::Text(text) if markers.iter().any(|marker| marker == text.trim()) => self.markers += 1,
            CellValue::Text(text) if text.trim().is_empty() => {}
            other => self.kinds |= kind_of(other),
        }
    }

    /// Returns what is known of two parts of a column.
    pub(super) fn with(&self, other: &Self) -> Self {
        Self { kinds: self.kinds | other.kinds, markers: self.markers + other.markers }
    }

    /// Returns whether a cell could stand in the column without changing its type.
    pub(super) fn fits(&self, cell: &CellValue<'_>) -> bool {
        let mut with = self.clone();
        with.kinds |= kind_of(cell);
        with.data_type() == self.data_type()
    }

    /// Returns whether the column holds values that are no text.
    pub(super) fn is_typed(&self) -> bool {
        self.kinds != 0 && self.kinds & kind::TEXT == 0
    }

    /// Returns the type that holds every cell.
    pub(super) fn data_type(&self) -> DataType {
        let only = |allowed: u8| self.kinds != 0 && self.kinds & !allowed == 0;
        match () {
            () if only(kind::BOOLEAN) => DataType::Boolean,
            () if only(kind::INTEGER) => DataType::Int64,
            () if only(kind::INTEGER | kind::FLOAT) => DataType::Float64,
            () if only(kind::DATE) => DataType::Date32,
            () if only(kind::DATE | kind::MOMENT) => DataType::Timestamp(TimeUnit::Microsecond, None),
            () if only(kind::TIME) => DataType::Time64(TimeUnit::Microsecond),
            () => DataType::Utf8,
        }
    }

    /// Returns why the column is text, where cells of it are not.
    pub(super) fn note(&self) -> Option<String> {
        if self.data_type() != DataType::Utf8 || self.kinds & !kind::TEXT == 0 {
            return None;
        }
        let names = [
            (kind::INTEGER | kind::FLOAT, "numbers"),
            (kind::DATE | kind::MOMENT, "dates"),
            (kind::TIME, "times"),
            (kind::BOOLEAN, "truth values"),
            (kind::TEXT, "text"),
        ];
        let found: Vec<&str> = names.iter().filter(|(bits, _)| self.kinds & bits != 0).map(|(_, name)| *name).collect();
        Some(found.join(" and "))
    }
}

fn kind_of(cell: &CellValue<'_>) -> u8 {
    match cell {
        CellValue::Boolean(_) => kind::BOOLEAN,
        CellValue::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT_DOUBLES => kind::INTEGER,
        CellValue::Number(_) => kind::FLOAT,
        CellValue::Moment(moment) if moment.time() == NaiveTime::MIN => kind::DATE,
        CellValue::Moment(_) => kind::MOMENT,
        CellValue::Time(_) => kind::TIME,
        CellValue::Text(_) => kind::TEXT,
        CellValue::Error(_) | CellValue::Uncalculated => 0,
    }
}

/// Returns the microseconds since 1970 of a moment that is written as SQL or ISO 8601 writes it, without an offset.
fn micros_of_moment(text: &str) -> Option<i64> {
    if text.ends_with(['Z', 'z']) {
        return None;
    }
    match iso_moment(&text.replacen(' ', "T", 1))? {
        CellValue::Moment(moment) => Some(moment.and_utc().timestamp_micros()),
        _ => None,
    }
}

/// Returns the time of day that a text is; a leap second is none.
fn time_of_day(text: &str) -> Option<NaiveTime> {
    let formats = ["%H:%M:%S%.f", "%H:%M"];
    let time = formats.iter().find_map(|format| NaiveTime::parse_from_str(text, format).ok());
    time.filter(|time| time.nanosecond() < 1_000_000_000)
}

fn micros_of_day(time: NaiveTime) -> i64 {
    i64::from(time.num_seconds_from_midnight()) * 1_000_000 + i64::from(time.nanosecond() / 1_000)
}

/// A column's values on their way into an array.
pub(super) struct SheetColumnBuilder {
    values: ColumnValues,
    markers: Vec<String>,
    /// The rows of the batch whose cells are not of the type, with the cells' text.
    unfit: Vec<(usize, String)>,
    rows: usize,
    text_bytes: usize,
}

enum ColumnValues {
    Boolean(BooleanBuilder),
    Integer(Int64Builder),
    Float(Float64Builder),
    Date(Date32Builder),
    Moment(TimestampMicrosecondBuilder),
    Time(Time64MicrosecondBuilder),
    Text(StringBuilder),
    /// Text that is cast to a type that somebody named.
    Cast(StringBuilder, DataType),
}

/// A column's values, and the rows whose cells are not of its type.
pub(super) struct BuiltColumn {
    pub array: ArrayRef,
    pub unfit: Vec<(usize, String)>,
}

impl SheetColumnBuilder {
    /// Returns the builder of a column of a type. `markers`: the texts that mean null.
    pub(super) fn new(data_type: &DataType, markers: &[String]) -> Self {
        let values = match data_type {
            DataType::Boolean => ColumnValues::Boolean(BooleanBuilder::new()),
            DataType::Int64 => ColumnValues::Integer(Int64Builder::new()),
            DataType::Float64 => ColumnValues::Float(Float64Builder::new()),
            DataType::Date32 => ColumnValues::Date(Date32Builder::new()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                ColumnValues::Moment(TimestampMicrosecondBuilder::new())
            }
            DataType::Time64(TimeUnit::Microsecond) => ColumnValues::Time(Time64MicrosecondBuilder::new()),
            DataType::Utf8 => ColumnValues::Text(StringBuilder::new()),
            other => ColumnValues::Cast(StringBuilder::new(), other.clone()),
        };
        Self { values, markers: markers.to_vec(), unfit: Vec::new(), rows: 0, text_bytes: 0 }
    }

    /// Returns the bytes of text so far.
    pub(super) fn text_bytes(&self) -> usize {
        self.text_bytes
    }

    /// Adds a row's cell. An error of the sheet, a formula without its value and an empty cell are null.
    pub(super) fn append(&mut self, cell: Option<&CellValue<'_>>) {
        let is_null = |text: &str| self.markers.iter().any(|marker| marker == text.trim());
        let is_text = matches!(self.values, ColumnValues::Text(_));
        let cell = cell.filter(|cell| match cell {
            CellValue::Error(_) | CellValue::Uncalculated => false,
            CellValue::Text(text) => !is_null(text) && (is_text || !text.trim().is_empty()),
            _ => true,
        });
        let fits = match &mut self.values {
            ColumnValues::Boolean(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Boolean(value) => Some(*value),
                    CellValue::Number(number) if *number == 0.0 || *number == 1.0 => Some(*number == 1.0),
                    CellValue::Text(text) => truth_value(text.trim()),
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Integer(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Number(number) if number.fract() == 0.0 && number.abs() <= EXACT_DOUBLES => {
                        Some(*number as i64)
                    }
                    CellValue::Text(text) => text.trim().parse().ok(),
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Float(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Number(number) => Some(*number),
                    CellValue::Text(text) => text.trim().parse().ok(),
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Date(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Moment(moment) if moment.time() == NaiveTime::MIN => {
                        Some(moment.date().num_days_from_ce() - DAYS_BEFORE_1970)
                    }
                    CellValue::Text(text) => {
                        let date = text.trim().parse::<chrono::NaiveDate>().ok()?;
                        Some(date.num_days_from_ce() - DAYS_BEFORE_1970)
                    }
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Moment(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Moment(moment) => Some(moment.and_utc().timestamp_micros()),
                    CellValue::Text(text) => micros_of_moment(text.trim()),
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Time(builder) => {
                let value = cell.and_then(|cell| match cell {
                    CellValue::Time(time) => Some(micros_of_day(*time)),
                    CellValue::Text(text) => time_of_day(text.trim()).map(micros_of_day),
                    _ => None,
                });
                builder.append_option(value);
                value.is_some()
            }
            ColumnValues::Text(builder) | ColumnValues::Cast(builder, _) => {
                let text = cell.map(CellValue::text);
                self.text_bytes += text.as_ref().map_or(0, |text| text.len());
                builder.append_option(text);
                true
            }
        };
        if let Some(cell) = cell
            && !fits
        {
            self.unfit.push((self.rows, cell.text().into_owned()));
        }
        self.rows += 1;
    }

    /// Returns the array of the rows so far.
    pub(super) fn finish(self) -> Result<BuiltColumn> {
        let mut unfit = self.unfit;
        let array: ArrayRef = match self.values {
            ColumnValues::Boolean(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Integer(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Float(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Date(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Moment(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Time(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Text(mut builder) => Arc::new(builder.finish()),
            ColumnValues::Cast(mut builder, wanted) => {
                let text = builder.finish();
                let options = CastOptions { safe: true, ..Default::default() };
                let array = cast_with_options(&text, &wanted, &options).map_err(|_| EngineError::Unsupported {
                    what: format!("a column of type {wanted} from a workbook"),
                    hint: "import it from Parquet or JSON".into(),
                })?;
                let lost = (0..text.len()).filter(|row| text.is_valid(*row) && array.is_null(*row));
                unfit.extend(lost.map(|row| (row, text.value(row).to_owned())));
                array
            }
        };
        Ok(BuiltColumn { array, unfit })
    }
}
