//! The names of types in SQL, as people read them in answers and messages.

use arrow::datatypes::{DataType, IntervalUnit, TimeUnit};

/// Returns the name of a type in PostgreSQL.
pub(crate) fn postgresql_name(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Int8 | DataType::UInt8 => "smallint",
        DataType::UInt16 => "integer",
        DataType::UInt32 => "bigint",
        DataType::UInt64 => "numeric",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Struct(_) => "record",
        found if found.is_decimal() => "numeric",
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            return format!("{}[]", postgresql_name(item.data_type()).trim_end_matches("[]"));
        }
        DataType::Dictionary(_, values) => return postgresql_name(values),
        other => match sql_name(other).as_str() {
            "BLOB" => "bytea",
            name => return name.to_lowercase(),
        },
    };
    fixed.to_owned()
}

/// Returns the name of a type.
pub(crate) fn sql_name(data_type: &DataType) -> String {
    let fixed = match data_type {
        DataType::Null => "NULL",
        DataType::Boolean => "BOOLEAN",
        DataType::Int8 => "TINYINT",
        DataType::Int16 => "SMALLINT",
        DataType::Int32 => "INTEGER",
        DataType::Int64 => "BIGINT",
        DataType::UInt8 => "UTINYINT",
        DataType::UInt16 => "USMALLINT",
        DataType::UInt32 => "UINTEGER",
        DataType::UInt64 => "UBIGINT",
        DataType::Float16 | DataType::Float32 => "FLOAT",
        DataType::Float64 => "DOUBLE",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "VARCHAR",
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => "BLOB",
        DataType::Date32 | DataType::Date64 => "DATE",
        DataType::Time32(_) | DataType::Time64(_) => "TIME",
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        DataType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        DataType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        DataType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        DataType::Duration(_)
        | DataType::Interval(IntervalUnit::YearMonth | IntervalUnit::DayTime | IntervalUnit::MonthDayNano) => {
            "INTERVAL"
        }
        DataType::Decimal32(precision, scale)
        | DataType::Decimal64(precision, scale)
        | DataType::Decimal128(precision, scale)
        | DataType::Decimal256(precision, scale) => return format!("DECIMAL({precision},{scale})"),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field) => return format!("{}[]", sql_name(field.data_type())),
        DataType::FixedSizeList(field, dimension) => return format!("{}[{dimension}]", sql_name(field.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{} {}", field.name(), sql_name(field.data_type())));
            return format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "));
        }
        DataType::Map(entries, _) => {
            let DataType::Struct(fields) = entries.data_type() else { return "MAP".into() };
            let names: Vec<String> = fields.iter().map(|field| sql_name(field.data_type())).collect();
            return format!("MAP({})", names.join(", "));
        }
        DataType::Dictionary(_, values) => return sql_name(values),
        DataType::RunEndEncoded(_, values) => return sql_name(values.data_type()),
        DataType::Union(_, _) => "UNION",
    };
    fixed.to_owned()
}

/// Whether values of a type are compared and shown as texts.
pub(crate) fn has_order(kind: &DataType) -> bool {
    let is_binary =
        matches!(kind, DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_));
    !(kind.is_nested() || is_binary || matches!(kind, DataType::Interval(_) | DataType::Null))
}
