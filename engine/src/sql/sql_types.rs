//! The types of SQL as Arrow types, where DataFusion's planner does not know a type, ignores its parameters, or has times in
//! nanoseconds: here a time without a precision has microseconds, as in the standard, so that it reaches over the years 1 to
//! 9999. `TIMESTAMP(0)`, `(1..3)`, `(4..6)` and `(7..9)` are seconds, milliseconds, microseconds and nanoseconds.
//!
//! Invariant: a literal keeps all digits of its fraction.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};
use datafusion::error::Result;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::sql::sqlparser::ast::{
    self, ArrayElemTypeDef, BinaryLength, ColumnOption, CreateTable, ExactNumberInfo, ObjectNamePart, StructField,
    TableConstraint, TimezoneInfo, TypedString, Value, ValueWithSpan,
};
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::error::EngineError;
use crate::functions::map_type;

/// The time zone of every timestamp with one: values are instants.
const UTC: &str = "UTC";
/// The digits of a fraction that a time without a precision has.
const DEFAULT_DIGITS: u64 = 6;
/// The most digits of a fraction.
const MAX_DIGITS: u64 = 9;
/// The most digits of a decimal.
const MAX_DECIMAL_DIGITS: u64 = 76;

/// The most items of an array type, as in DuckDB.
const MAX_ARRAY_ITEMS: u64 = 100_000;

/// The digits of a HUGEINT, which is a decimal here.
const MAX_HUGE_DIGITS: u8 = 38;

/// DuckDB's other name of UUID.
const GUID: &str = "guid";

/// What stands for a type of bits.
const BITS: &str = "write a BIGINT with & | << >>, or a text of 0 and 1";

/// Tells DataFusion's planner what SQL's types are.
#[derive(Debug)]
pub(crate) struct SqlTypes;

impl TypePlanner for SqlTypes {
    fn plan_type_field(&self, sql_type: &ast::DataType) -> Result<Option<FieldRef>> {
        let known = arrow_type(sql_type)?;
        Ok(known.map(|data_type| Arc::new(Field::new("", data_type, true))))
    }
}

/// Returns the Arrow type of a type of SQL; `None` where DataFusion's own reading stands. Errors: a precision that there is not.
fn arrow_type(sql_type: &ast::DataType) -> Result<Option<DataType>> {
    use ast::DataType as Sql;

    Ok(Some(match sql_type {
        Sql::Timestamp(digits, zone) => timestamp(sql_type, *digits, has_zone(zone))?,
        Sql::Datetime(digits) | Sql::TimestampNtz(digits) => timestamp(sql_type, *digits, false)?,
        Sql::Time(digits, zone) if !has_zone(zone) => match unit(sql_type, *digits)? {
            unit @ (TimeUnit::Second | TimeUnit::Millisecond) => DataType::Time32(unit),
            unit @ (TimeUnit::Microsecond | TimeUnit::Nanosecond) => DataType::Time64(unit),
        },
        Sql::Binary(_)
        | Sql::Varbinary(None | Some(BinaryLength::IntegerLength { .. } | BinaryLength::Max))
        | Sql::Blob(_)
        | Sql::TinyBlob
        | Sql::MediumBlob
        | Sql::LongBlob
        | Sql::Bytes(_) => DataType::Binary,
        Sql::Character(_)
        | Sql::CharacterVarying(_)
        | Sql::CharVarying(_)
        | Sql::Nvarchar(_)
        | Sql::CharacterLargeObject(_)
        | Sql::CharLargeObject(_)
        | Sql::Clob(_)
        | Sql::TinyText
        | Sql::MediumText
        | Sql::LongText
        | Sql::JSON
        | Sql::JSONB
        // What is cast to it, or written to a column of it, is checked.
        | Sql::Uuid => DataType::Utf8View,
        Sql::Float(ExactNumberInfo::Precision(digits)) => match digits {
            1..=24 => DataType::Float32,
            25..=53 => DataType::Float64,
            _ => return Err(no_such_precision(sql_type, "1 to 53 binary digits")),
        },
        // MySQL's, of which the planner drops what it rounds to.
        Sql::Float(ExactNumberInfo::PrecisionAndScale(..))
        | Sql::Double(ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)) => {
            return Err(no_such_type(sql_type, "write DOUBLE, or DECIMAL(p, s), which rounds"));
        }
        Sql::Dec(info) => decimal(sql_type, info)?,
        Sql::Numeric(info @ (ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..)))
        | Sql::Decimal(info @ (ExactNumberInfo::Precision(_) | ExactNumberInfo::PrecisionAndScale(..))) => {
            decimal(sql_type, info)?
        }
        Sql::Int16 => DataType::Int16,
        Sql::Int32 | Sql::MediumInt(_) => DataType::Int32,
        Sql::Int64 => DataType::Int64,
        Sql::UTinyInt | Sql::UInt8 => DataType::UInt8,
        Sql::USmallInt | Sql::UInt16 => DataType::UInt16,
        Sql::UInt32 | Sql::MediumIntUnsigned(_) => DataType::UInt32,
        Sql::UBigInt | Sql::UInt64 => DataType::UInt64,
        Sql::Float32 => DataType::Float32,
        Sql::Float64 => DataType::Float64,
        Sql::Date32 => DataType::Date32,
        Sql::HugeInt => DataType::Decimal128(MAX_HUGE_DIGITS, 0),
        Sql::UHugeInt => return Err(no_such_type(sql_type, "write HUGEINT or DECIMAL(38, 0)")),
        Sql::Bit(_) | Sql::BitVarying(_) | Sql::VarBit(_) => {
            return Err(no_such_type(sql_type, BITS));
        }
        Sql::Time(_, _) => return Err(no_such_type(sql_type, "write TIME, or TIMESTAMP WITH TIME ZONE")),
        Sql::Enum(_, _) => return Err(no_such_type(sql_type, "write VARCHAR")),
        Sql::Map(key, value) => map_type(inner_type(key)?, inner_type(value)?),
        Sql::Array(ArrayElemTypeDef::SquareBracket(_, Some(_))) if items_of_arrays(sql_type) > MAX_ARRAY_ITEMS => {
            return Err(no_such_precision(sql_type, &format!("at most {MAX_ARRAY_ITEMS} items")));
        }
        Sql::Custom(name, parameters) if parameters.is_empty() => return named_type(sql_type, &name.0),
        _ => return Ok(None),
    }))
}

/// Returns how many items a value has, whatever is in it: a null of an array type takes as much as any other.
fn items_of_arrays(sql_type: &ast::DataType) -> u64 {
    match sql_type {
        ast::DataType::Array(ArrayElemTypeDef::SquareBracket(item, Some(length))) => {
            length.saturating_mul(items_of_arrays(item))
        }
        _ => 1,
    }
}

/// Returns the type of a map's keys or values, which DataFusion's planner is not asked for. Texts are those of literals.
fn inner_type(sql_type: &ast::DataType) -> Result<DataType> {
    use ast::DataType as Sql;

    match arrow_type(sql_type)? {
        Some(DataType::Utf8View) => return Ok(DataType::Utf8),
        Some(known) => return Ok(known),
        None => {}
    }
    Ok(match sql_type {
        Sql::Boolean | Sql::Bool => DataType::Boolean,
        Sql::TinyInt(_) => DataType::Int8,
        Sql::SmallInt(_) | Sql::Int2(_) => DataType::Int16,
        Sql::Int(_) | Sql::Integer(_) | Sql::Int4(_) => DataType::Int32,
        Sql::BigInt(_) | Sql::Int8(_) => DataType::Int64,
        Sql::TinyIntUnsigned(_) => DataType::UInt8,
        Sql::SmallIntUnsigned(_) | Sql::Int2Unsigned(_) => DataType::UInt16,
        Sql::IntUnsigned(_) | Sql::IntegerUnsigned(_) | Sql::Int4Unsigned(_) => DataType::UInt32,
        Sql::BigIntUnsigned(_) | Sql::Int8Unsigned(_) => DataType::UInt64,
        Sql::Float(ExactNumberInfo::None) | Sql::Real | Sql::Float4 => DataType::Float32,
        Sql::Double(ExactNumberInfo::None) | Sql::DoublePrecision | Sql::Float8 => DataType::Float64,
        Sql::Numeric(info) | Sql::Decimal(info) => decimal(sql_type, info)?,
        Sql::Varchar(_) | Sql::Char(_) | Sql::Text | Sql::String(_) => DataType::Utf8,
        Sql::Bytea => DataType::Binary,
        Sql::Date => DataType::Date32,
        Sql::Interval { fields: None, precision: None } => DataType::Interval(IntervalUnit::MonthDayNano),
        Sql::Array(ArrayElemTypeDef::AngleBracket(item) | ArrayElemTypeDef::SquareBracket(item, None)) => {
            DataType::new_list(inner_type(item)?, true)
        }
        Sql::Struct(fields, _) => {
            let field = |(at, field): (usize, &StructField)| -> Result<Field> {
                let name = field.field_name.as_ref().map_or_else(|| format!("c{at}"), |name| name.value.clone());
                Ok(Field::new(name, inner_type(&field.field_type)?, true))
            };
            DataType::Struct(fields.iter().enumerate().map(field).collect::<Result<Fields>>()?)
        }
        _ => return Err(no_such_type(sql_type, "a map has keys and values of other types")),
    })
}

fn no_such_type(sql_type: &ast::DataType, hint: &str) -> datafusion::error::DataFusionError {
    EngineError::Unsupported { what: format!("the type {sql_type}"), hint: hint.to_owned() }.into()
}

/// Returns the type of a name that the parser does not know: those of DuckDB. Errors: one that there is not here.
fn named_type(sql_type: &ast::DataType, name: &[ObjectNamePart]) -> Result<Option<DataType>> {
    let [ObjectNamePart::Identifier(name)] = name else { return Ok(None) };
    let unit = match name.value.to_lowercase().as_str() {
        "timestamp_s" => TimeUnit::Second,
        "timestamp_ms" => TimeUnit::Millisecond,
        "timestamp_us" => TimeUnit::Microsecond,
        "timestamp_ns" => TimeUnit::Nanosecond,
        "int1" => return Ok(Some(DataType::Int8)),
        "short" => return Ok(Some(DataType::Int16)),
        "long" => return Ok(Some(DataType::Int64)),
        "logical" => return Ok(Some(DataType::Boolean)),
        "bpchar" | GUID => return Ok(Some(DataType::Utf8View)),
        "uinteger" => return Ok(Some(DataType::UInt32)),
        "time_ns" => return Err(no_such_type(sql_type, "write TIME(9)")),
        "timetz" => return Err(no_such_type(sql_type, "write TIME, or TIMESTAMP WITH TIME ZONE")),
        "bignum" | "varint" => return Err(no_such_type(sql_type, "write DECIMAL(76, 0)")),
        "bitstring" => return Err(no_such_type(sql_type, BITS)),
        _ => return Ok(None),
    };
    Ok(Some(DataType::Timestamp(unit, None)))
}

fn timestamp(sql_type: &ast::DataType, digits: Option<u64>, with_zone: bool) -> Result<DataType> {
    Ok(DataType::Timestamp(unit(sql_type, digits)?, with_zone.then(|| UTC.into())))
}

fn unit(sql_type: &ast::DataType, digits: Option<u64>) -> Result<TimeUnit> {
    match digits.unwrap_or(DEFAULT_DIGITS) {
        0 => Ok(TimeUnit::Second),
        1..=3 => Ok(TimeUnit::Millisecond),
        4..=6 => Ok(TimeUnit::Microsecond),
        7..=MAX_DIGITS => Ok(TimeUnit::Nanosecond),
        _ => Err(no_such_precision(sql_type, "0 to 9 digits of a second's fraction")),
    }
}

fn decimal(sql_type: &ast::DataType, info: &ExactNumberInfo) -> Result<DataType> {
    const DEFAULT: (u8, i8) = (38, 10);
    const MAX_128: u8 = 38;
    let (precision, scale) = match info {
        ExactNumberInfo::None => return Ok(DataType::Decimal128(DEFAULT.0, DEFAULT.1)),
        ExactNumberInfo::Precision(precision) => (*precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (*precision, *scale),
    };
    let range = || no_such_precision(sql_type, "1 to 76 digits, and a scale of no more than those");
    if !(1..=MAX_DECIMAL_DIGITS).contains(&precision) || scale.unsigned_abs() > precision {
        return Err(range());
    }
    let precision = u8::try_from(precision).map_err(|_| range())?;
    let scale = i8::try_from(scale).map_err(|_| range())?;
    Ok(match precision {
        ..=MAX_128 => DataType::Decimal128(precision, scale),
        _ => DataType::Decimal256(precision, scale),
    })
}

fn no_such_precision(sql_type: &ast::DataType, range: &str) -> datafusion::error::DataFusionError {
    EngineError::Plan { message: format!("there is no type {sql_type}; it has {range}") }.into()
}

fn has_zone(zone: &TimezoneInfo) -> bool {
    matches!(zone, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz)
}

/// Refuses options and types that a managed table cannot hold, rather than ignore them. Errors: `unsupported`.
pub(super) fn check_columns(table: &CreateTable) -> crate::error::Result<()> {
    check_column_options(table)?;
    check_column_types(table)
}

fn check_column_options(table: &CreateTable) -> crate::error::Result<()> {
    for column in &table.columns {
        for option in &column.options {
            if !matches!(option.option, ColumnOption::Null | ColumnOption::NotNull) {
                return Err(EngineError::Unsupported {
                    what: format!("`{}` on column `{}`", option.option, column.name.value),
                    hint: instead_of_option(&option.option).into(),
                });
            }
        }
    }
    if let Some(constraint) = table.constraints.first() {
        return Err(refused_constraint(constraint));
    }
    Ok(())
}

/// What stands for a condition that nothing would keep.
const INSTEAD_OF_CHECK: &str = "leave it out, and look for rows that break it: SELECT * FROM t WHERE NOT (condition); or put the \
    condition into the query that inserts";

/// Returns the error of a constraint of a table that is none of its keys.
pub(super) fn refused_constraint(constraint: &TableConstraint) -> EngineError {
    let hint = match constraint {
        TableConstraint::Check(_) => INSTEAD_OF_CHECK,
        TableConstraint::Index(_) | TableConstraint::FulltextOrSpatial(_) => {
            "leave it out: tables have no indexes, and are pruned by their statistics"
        }
        _ => "tables have PRIMARY KEY, UNIQUE and FOREIGN KEY, which are recorded and not enforced",
    };
    EngineError::Unsupported { what: format!("`{constraint}`"), hint: hint.into() }
}

/// Returns what to write in the place of an option of a column.
fn instead_of_option(option: &ColumnOption) -> &'static str {
    const NUMBERED: &str = "leave it out, and number rows where they are inserted with row_number() OVER () + (SELECT \
        coalesce(max(id), 0) FROM t); or write UUID DEFAULT uuid()";
    match option {
        ColumnOption::Check(_) => INSTEAD_OF_CHECK,
        ColumnOption::Identity(_) | ColumnOption::Generated { generation_expr: None, .. } => NUMBERED,
        ColumnOption::Generated { .. } => {
            "leave the column out, and compute it in a view: CREATE VIEW v AS SELECT *, expression AS name FROM t"
        }
        ColumnOption::DialectSpecific(tokens) if tokens.iter().any(numbers_rows) => NUMBERED,
        ColumnOption::Collation(_) => "leave it out; write COLLATE where texts are compared or sorted",
        ColumnOption::Comment(_) => "leave it out, and write COMMENT ON COLUMN table.column IS 'text' afterwards",
        ColumnOption::OnUpdate(_) => "leave it out, and set the column in each UPDATE",
        _ => "columns take a type, NULL or NOT NULL, DEFAULT, and keys; comments are set with COMMENT ON COLUMN",
    }
}

fn numbers_rows(token: &Token) -> bool {
    let text = token.to_string();
    ["AUTO_INCREMENT", "AUTOINCREMENT"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Returns whether a type is UUID.
pub(super) fn is_uuid_type(data_type: &ast::DataType) -> bool {
    match data_type {
        ast::DataType::Uuid => true,
        ast::DataType::Custom(name, _) => {
            matches!(name.0.as_slice(), [ObjectNamePart::Identifier(name)] if name.value.eq_ignore_ascii_case(GUID))
        }
        _ => false,
    }
}

/// Returns whether a type is a list of UUIDs, of any length.
pub(super) fn is_uuid_list_type(data_type: &ast::DataType) -> bool {
    match data_type {
        ast::DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, None)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => is_uuid_type(item),
        _ => false,
    }
}

/// Refuses UUIDs inside of other types, where nothing would check them. Errors: `unsupported`.
pub(super) fn refuse_inner_uuids(data_type: &ast::DataType) -> crate::error::Result<()> {
    fn holds_uuid(data_type: &ast::DataType) -> bool {
        is_uuid_type(data_type) || parts(data_type).into_iter().any(holds_uuid)
    }
    match parts(data_type).into_iter().any(holds_uuid) {
        true => Err(EngineError::Unsupported {
            what: format!("UUID inside of the type {data_type}"),
            hint: "write VARCHAR there; to_uuid and to_uuid_list read values and lists as UUIDs".into(),
        }),
        false => Ok(()),
    }
}

/// Returns the types of which a type is made.
fn parts(data_type: &ast::DataType) -> Vec<&ast::DataType> {
    match data_type {
        ast::DataType::Array(
            ArrayElemTypeDef::AngleBracket(item)
            | ArrayElemTypeDef::SquareBracket(item, _)
            | ArrayElemTypeDef::Parenthesis(item),
        ) => vec![item.as_ref()],
        ast::DataType::Struct(fields, _) => fields.iter().map(|field| &field.field_type).collect(),
        ast::DataType::Map(key, value) => vec![key.as_ref(), value.as_ref()],
        _ => Vec::new(),
    }
}

/// Refuses a column of a managed table whose digits the lake cannot hold: its times, and its timestamps with a time zone,
/// have microseconds. Refuses UUIDs where nothing would check them. Errors: `unsupported`.
fn check_column_types(table: &CreateTable) -> crate::error::Result<()> {
    for column in &table.columns {
        refuse_inner_uuids(&column.data_type)?;
        if table.temporary && is_uuid_type(&column.data_type) {
            return Err(EngineError::Unsupported {
                what: format!("type UUID of column `{}` of a temporary table", column.name.value),
                hint: "write VARCHAR, and CAST(value AS UUID) where rows are inserted".into(),
            });
        }
        let (digits, held) = match &column.data_type {
            ast::DataType::Timestamp(digits, zone) if has_zone(zone) => (*digits, "TIMESTAMP(6) WITH TIME ZONE"),
            ast::DataType::Time(digits, _) => (*digits, "TIME(6)"),
            _ => continue,
        };
        if digits.is_some_and(|digits| digits > DEFAULT_DIGITS) {
            return Err(EngineError::Unsupported {
                what: format!("type {} of column `{}`", column.data_type, column.name.value),
                hint: format!("a managed table holds microseconds: write {held}"),
            });
        }
    }
    Ok(())
}

/// Gives a literal of a time with more digits than microseconds the precision that keeps them, and one without seconds its
/// seconds.
pub(super) fn keep_digits(expr: &mut ast::Expr) {
    match expr {
        ast::Expr::TypedString(TypedString { data_type, value: ValueWithSpan { value, .. }, .. }) => {
            widen(data_type, value);
            add_seconds(data_type, value);
        }
        ast::Expr::Cast { expr, data_type, .. } => {
            if let ast::Expr::Value(ValueWithSpan { value: value @ Value::SingleQuotedString(_), .. }) = expr.as_mut() {
                widen(data_type, value);
                add_seconds(data_type, value);
            }
        }
        _ => {}
    }
}

/// `2024-01-31 08:15` is a time of PostgreSQL and DuckDB.
fn add_seconds(data_type: &ast::DataType, value: &mut Value) {
    let Value::SingleQuotedString(text) = value else { return };
    let is_time = matches!(data_type, ast::DataType::Timestamp(..) | ast::DataType::Datetime(_));
    let shape: String = text.chars().map(|letter| if letter.is_ascii_digit() { '0' } else { letter }).collect();
    if is_time && matches!(shape.as_str(), "0000-00-00 00:00" | "0000-00-00T00:00") {
        text.push_str(":00");
    }
}

fn widen(data_type: &mut ast::DataType, value: &Value) {
    let digits = match data_type {
        ast::DataType::Timestamp(digits @ None, _)
        | ast::DataType::Time(digits @ None, _)
        | ast::DataType::Datetime(digits @ None) => digits,
        _ => return,
    };
    if matches!(value, Value::SingleQuotedString(text) if has_nanoseconds(text)) {
        *digits = Some(MAX_DIGITS);
    }
}

/// Returns whether a time has more digits of a second's fraction than microseconds have.
pub(super) fn has_nanoseconds(text: &str) -> bool {
    let fraction = text.rsplit_once('.').map_or("", |(_, fraction)| fraction);
    fraction.bytes().take_while(u8::is_ascii_digit).count() as u64 > DEFAULT_DIGITS
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;

    use super::*;

    #[test]
    fn times_have_the_unit_of_their_precision() {
        for (sql, unit) in [
            ("TIMESTAMP", TimeUnit::Microsecond),
            ("TIMESTAMP(0)", TimeUnit::Second),
            ("TIMESTAMP(1)", TimeUnit::Millisecond),
            ("TIMESTAMP(3)", TimeUnit::Millisecond),
            ("TIMESTAMP(4) WITHOUT TIME ZONE", TimeUnit::Microsecond),
            ("DATETIME(6)", TimeUnit::Microsecond),
            ("TIMESTAMP(7)", TimeUnit::Nanosecond),
            ("TIMESTAMP(9)", TimeUnit::Nanosecond),
            ("timestamp_s", TimeUnit::Second),
        ] {
            assert_eq!(planned(sql), Ok(Some(DataType::Timestamp(unit, None))), "{sql}");
        }
        let instants = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
        assert_eq!(planned("TIMESTAMP WITH TIME ZONE"), Ok(Some(instants.clone())));
        assert_eq!(planned("TIMESTAMPTZ"), Ok(Some(instants)));
        assert_eq!(planned("TIME(0)"), Ok(Some(DataType::Time32(TimeUnit::Second))));
        assert_eq!(planned("TIME"), Ok(Some(DataType::Time64(TimeUnit::Microsecond))));
        assert_eq!(planned("TIME(9)"), Ok(Some(DataType::Time64(TimeUnit::Nanosecond))));
    }

    #[test]
    fn a_precision_that_there_is_not_is_refused() {
        for sql in
            ["TIMESTAMP(10)", "TIME(12)", "DECIMAL(77)", "NUMERIC(300, 2)", "DEC(3, 4)", "FLOAT(54)", "DECIMAL(0)"]
        {
            let error = planned(sql).unwrap_err();
            assert!(error.contains("there is no type"), "{sql}: {error}");
        }
        assert_eq!(planned("NUMERIC(10,2)"), Ok(Some(DataType::Decimal128(10, 2))));
        assert_eq!(planned("FLOAT(53)"), Ok(Some(DataType::Float64)));
    }

    #[test]
    fn literals_keep_their_digits() {
        for (sql, expected) in [
            ("TIMESTAMP '2023-05-15 13:45:30.123456'", "TIMESTAMP '2023-05-15 13:45:30.123456'"),
            ("TIMESTAMP '2023-05-15 13:45:30.1234567'", "TIMESTAMP(9) '2023-05-15 13:45:30.1234567'"),
            ("CAST('13:45:30.123456789' AS TIME)", "CAST('13:45:30.123456789' AS TIME(9))"),
            ("CAST('13:45:30.123456789' AS TIME(3))", "CAST('13:45:30.123456789' AS TIME(3))"),
            ("CAST(a AS TIMESTAMP)", "CAST(a AS TIMESTAMP)"),
        ] {
            let mut expr = parser(sql).parse_expr().unwrap();
            keep_digits(&mut expr);
            assert_eq!(expr.to_string(), expected);
        }
    }

    fn planned(sql: &str) -> std::result::Result<Option<DataType>, String> {
        arrow_type(&parser(sql).parse_data_type().unwrap()).map_err(|error| error.to_string())
    }

    fn parser(sql: &str) -> Parser<'static> {
        Parser::new(&GenericDialect {}).try_with_sql(sql).unwrap()
    }
}
