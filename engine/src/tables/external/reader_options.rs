//! The options of readers: one name each, whatever somebody writes, and the nearest one for a name that is none.

use std::collections::BTreeMap;

use arrow::datatypes::{DataType, TimeUnit};
use datafusion::sql::sqlparser::ast::{DataType as SqlType, ExactNumberInfo, TimezoneInfo};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::parser::Parser;
use querent_catalog::FileFormat;
use querent_kql::nearest_name;

use super::TREE_OPTION;
use super::location::format_name;
use crate::error::{EngineError, Result};

/// Whether what means null does so in quotes, too.
pub(crate) const ALLOW_QUOTED_NULLS: &str = "allow_quoted_nulls";

/// Options of CSV tables, and what else they are called (by DuckDB, PostgreSQL, pandas).
const CSV_OPTIONS: &[(&str, &[&str])] = &[
    ("has_header", &["header"]),
    ("delimiter", &["delim", "sep", "separator"]),
    ("quote", &["quotechar"]),
    ("escape", &["escapechar"]),
    ("comment", &[]),
    ("skip", &["skiprows", "skip_rows"]),
    ("encoding", &["charset"]),
    ("null_value", &["null", "nullstr", "null_values", "na_values"]),
    (ALLOW_QUOTED_NULLS, &[]),
    ("null_padding", &[]),
    ("types", &["column_types", "dtypes", "dtype"]),
    ("date_format", &["dateformat"]),
    ("timestamp_format", &["timestampformat"]),
    ("decimal_separator", &["decimal"]),
    ("thousands", &["thousands_separator"]),
    ("ignore_errors", &[]),
    ("rejects", &["rejects_table"]),
    ("compression", &[]),
];
/// Options of JSON tables.
const JSON_OPTIONS: &[(&str, &[&str])] = &[
    ("types", &["column_types", "dtypes", "dtype"]),
    ("encoding", &["charset"]),
    ("ignore_errors", &[]),
    ("rejects", &["rejects_table"]),
    ("compression", &[]),
];

/// Options of workbooks.
const WORKBOOK_OPTIONS: &[(&str, &[&str])] = &[
    ("sheet", &["sheet_name"]),
    ("range", &[]),
    ("skip", &["skiprows", "skip_rows"]),
    ("has_header", &["header"]),
    ("null_value", &["null", "nullstr", "null_values", "na_values"]),
    ("types", &["column_types", "dtypes", "dtype"]),
    ("ignore_errors", &[]),
    ("rejects", &["rejects_table"]),
];

/// Written by inference: what a table's reader has to know of single columns, as JSON.
pub(crate) const COLUMN_FORMATS: &str = "column_formats";
/// Written by inference: the columns of text that keep the markers that mean null elsewhere, as JSON.
pub(crate) const KEPT_MARKERS: &str = "kept_markers";

/// Written by inference: the keys of columns that could not keep them as names, as JSON.
pub(crate) const COLUMN_KEYS: &str = "column_keys";

/// Written by inference: the places and names of columns of text files that the values of folders hide, as JSON.
pub(crate) const HIDDEN_COLUMNS: &str = "hidden_columns";

/// Written by queries without a table: whether a blank line of a file of one column is no record.
pub(crate) const SKIP_BLANK: &str = "skip_blank";

/// Written by inference: whether comments may stand behind the fields of a record, or only on lines of their own.
pub(crate) const COMMENT_ANYWHERE: &str = "comment_anywhere";

/// Written by CREATE EXTERNAL TABLE: that it says which columns there are. Readers ignore it.
pub(crate) const DECLARED_COLUMNS: &str = "declared_columns";

/// What is no option of a reader that somebody writes.
const INTERNAL_OPTIONS: [&str; 8] = [
    TREE_OPTION,
    COLUMN_FORMATS,
    KEPT_MARKERS,
    COLUMN_KEYS,
    HIDDEN_COLUMNS,
    SKIP_BLANK,
    COMMENT_ANYWHERE,
    DECLARED_COLUMNS,
];

/// Returns whether an option of a table is one that somebody may write, and none that inference left.
pub(crate) fn is_written_option(name: &str) -> bool {
    !INTERNAL_OPTIONS.contains(&name)
}

/// Returns the options by their one name. Errors: a name that the format's reader does not know, two names of one option.
pub(crate) fn known_options(
    format: FileFormat,
    options: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>> {
    let known = options_of(format);
    let mut canonical = BTreeMap::new();
    for (written, value) in options {
        let name = written.to_lowercase().replace('-', "_");
        let is_internal = INTERNAL_OPTIONS.contains(&name.as_str());
        let found = known.iter().find(|(own, others)| *own == name || others.contains(&name.as_str()));
        let own = match found {
            Some((own, _)) => (*own).to_owned(),
            None if is_internal => name,
            None => return Err(unknown_option(format, written)),
        };
        if canonical.insert(own.clone(), value.clone()).is_some() {
            return Err(EngineError::InvalidOption { message: format!("the option `{own}` is given twice") });
        }
    }
    Ok(canonical)
}

/// Refuses options that the readers of a format do not know, with the nearest one.
pub fn check_reader_options(format: FileFormat, options: &BTreeMap<String, String>) -> Result<()> {
    known_options(format, options).map(|_| ())
}

fn options_of(format: FileFormat) -> &'static [(&'static str, &'static [&'static str])] {
    match format {
        FileFormat::Csv => CSV_OPTIONS,
        FileFormat::Ndjson => JSON_OPTIONS,
        FileFormat::Xlsx => WORKBOOK_OPTIONS,
        FileFormat::Parquet | FileFormat::Arrow | FileFormat::Lance => &[],
    }
}

fn unknown_option(format: FileFormat, name: &str) -> EngineError {
    if let Some(instead) = instead_of_option(&name.to_lowercase()) {
        return EngineError::InvalidOption { message: format!("unknown option `{name}`; {instead}") };
    }
    let known = options_of(format);
    let spelled = format_name(format);
    let names = known.iter().flat_map(|(own, others)| std::iter::once(*own).chain(others.iter().copied()));
    let near = match nearest_name(name, names) {
        Some(near) => format!("; did you mean `{near}`? The"),
        None => "; the".to_owned(),
    };
    let list: Vec<&str> = known.iter().map(|(own, _)| *own).collect();
    let list = if list.is_empty() { "has none".to_owned() } else { format!("has {}", list.join(", ")) };
    EngineError::InvalidOption { message: format!("unknown option `{name}`{near} reader of {spelled} {list}") }
}

/// Returns what to write in the place of an option of DuckDB's readers that there is not.
fn instead_of_option(name: &str) -> Option<&'static str> {
    match name {
        "auto_type_candidates" => Some("leave it out, or say what columns are: types = {'a': 'INTEGER'}"),
        "records" => Some("leave it out: what the records are is found in the file"),
        "normalize_names" => Some("give the columns other names with AS"),
        "force_not_null" => Some("write coalesce(column, '')"),
        "store_rejects" | "rejects_table" | "rejects_scan" | "rejects_limit" => {
            Some("ignore_errors sets lines aside in the table that rejects names")
        }
        "parallel"
        | "buffer_size"
        | "max_line_size"
        | "maximum_line_size"
        | "files_to_sniff"
        | "strict_mode"
        | "new_line"
        | "maximum_object_size" => Some("leave it out"),
        "maximum_depth" | "maximum_sample_files" | "map_inference_threshold" | "field_appearance_threshold" => {
            Some("leave it out; types says what a column is, such as types = {'a': 'JSON'}")
        }
        _ => None,
    }
}

/// Returns the error for a value that an option does not take.
pub(crate) fn bad_option(name: &str, value: &str, expected: &str) -> EngineError {
    EngineError::InvalidOption { message: format!("option `{name}` is `{value}` but takes {expected}") }
}

/// Reads `true` or `false`.
pub(crate) fn boolean_option(name: &str, value: &str) -> Result<bool> {
    match value.to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Ok(true),
        "false" | "0" | "no" | "off" => Ok(false),
        _ => Err(bad_option(name, value, "true or false")),
    }
}

/// The types of columns that somebody named; that of `*` is for all others.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct GivenTypes {
    /// Name, type, and whether that is JSON, which is text.
    columns: Vec<(String, DataType, bool)>,
    /// Those of the first columns, whose names are in the file.
    by_place: Vec<(DataType, bool)>,
}

impl GivenTypes {
    /// Reads `name=TYPE, "other name"=TYPE, *=TYPE`, a JSON object of the same, or a JSON array of the first columns' types.
    pub(crate) fn from_text(text: &str) -> Result<Self> {
        if text.trim_start().starts_with('[') {
            let types: Vec<String> = serde_json::from_str(text)
                .map_err(|_| bad_option("types", text, "a list of SQL types, such as [\"DATE\", \"VARCHAR\"]"))?;
            let typed = types.iter().map(|sql_type| Ok((type_of_text(sql_type.trim())?, is_json_type(sql_type))));
            return Ok(Self { columns: Vec::new(), by_place: typed.collect::<Result<_>>()? });
        }
        let bad = || bad_option("types", text, "columns and SQL types, such as zip=VARCHAR,born=DATE or *=VARCHAR");
        let pairs: Vec<(String, String)> = if text.trim_start().starts_with('{') {
            let named: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).map_err(|_| bad())?;
            let pair = |(name, value): (String, serde_json::Value)| Some((name, value.as_str()?.to_owned()));
            named.into_iter().map(pair).collect::<Option<_>>().ok_or_else(bad)?
        } else {
            split_outside_quotes(text, ',')
                .into_iter()
                .filter(|part| !part.trim().is_empty())
                .map(|part| {
                    let parts = split_outside_quotes(part, '=');
                    let [name, sql_type] = parts.as_slice() else { return Err(bad()) };
                    let name = name.trim();
                    let unquoted = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                    Ok((unquoted.map_or(name.to_owned(), |name| name.replace("\"\"", "\"")), sql_type.to_string()))
                })
                .collect::<Result<_>>()?
        };
        let columns = pairs.into_iter().map(|(name, sql_type)| {
            let sql_type = sql_type.trim();
            Ok((name, type_of_text(sql_type)?, is_json_type(sql_type)))
        });
        Ok(Self { columns: columns.collect::<Result<_>>()?, by_place: Vec::new() })
    }

    /// Returns the types with the names of their columns. Errors: more types than columns.
    pub(crate) fn named(mut self, names: &[String]) -> Result<Self> {
        if self.by_place.len() > names.len() {
            return Err(EngineError::InvalidOption {
                message: format!(
                    "the option `types` lists {} types and there are {} columns",
                    self.by_place.len(),
                    names.len()
                ),
            });
        }
        let placed = names.iter().zip(std::mem::take(&mut self.by_place));
        self.columns.extend(placed.map(|(name, (data_type, is_json))| (name.clone(), data_type, is_json)));
        Ok(self)
    }

    /// Returns the type of a column, if one is given.
    pub(crate) fn of_column(&self, name: &str) -> Option<&DataType> {
        self.given(name).map(|(_, data_type, _)| data_type)
    }

    /// Whether a column's given type is JSON.
    pub(crate) fn is_json(&self, name: &str) -> bool {
        self.given(name).is_some_and(|(_, _, is_json)| *is_json)
    }

    fn given(&self, name: &str) -> Option<&(String, DataType, bool)> {
        let named = |wanted: &str| self.columns.iter().find(|(own, _, _)| own.eq_ignore_ascii_case(wanted));
        named(name).or_else(|| named("*"))
    }

    /// Refuses types of columns that are not there.
    pub(crate) fn check<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Result<()> {
        if !self.by_place.is_empty() {
            let message = "the option `types` takes a list for CSV only; name the columns: types = {'a': 'INTEGER'}";
            return Err(EngineError::InvalidOption { message: message.to_owned() });
        }
        for (name, _, _) in &self.columns {
            if name != "*" && !names.clone().any(|own| own.eq_ignore_ascii_case(name)) {
                let near = match nearest_name(name, names.clone()) {
                    Some(near) => format!("; did you mean `{near}`?"),
                    None => format!("; the columns are {}", super::shortened(&names.collect::<Vec<_>>().join(", "))),
                };
                return Err(EngineError::InvalidOption {
                    message: format!("the option `types` names a column `{name}` that is not there{near}"),
                });
            }
        }
        Ok(())
    }
}

fn is_json_type(sql_type: &str) -> bool {
    ["json", "jsonb"].iter().any(|json| sql_type.trim().eq_ignore_ascii_case(json))
}

/// Returns the parts of a text between separators that are in no quotes and in no parentheses.
fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut quoted, mut depth) = (Vec::new(), 0, false, 0_u32);
    for (at, char) in text.char_indices() {
        match char {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth = depth.saturating_sub(1),
            _ if char == separator && !quoted && depth == 0 => {
                parts.extend(text.get(start..at));
                start = at + char.len_utf8();
            }
            _ => {}
        }
    }
    parts.extend(text.get(start..));
    parts
}

/// Returns the type that a name of SQL stands for.
pub(crate) fn type_of_text(text: &str) -> Result<DataType> {
    let unknown = || {
        let names = [
            "BOOLEAN",
            "TINYINT",
            "SMALLINT",
            "INTEGER",
            "BIGINT",
            "REAL",
            "DOUBLE",
            "DECIMAL(p, s)",
            "VARCHAR",
            "JSON",
            "BLOB",
            "DATE",
            "TIME",
            "TIMESTAMP",
            "TIMESTAMPTZ",
        ];
        bad_option("types", text, &names.join(", "))
    };
    let upper = text.to_uppercase();
    match upper.as_str() {
        "TIMESTAMPTZ" => return Ok(DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))),
        "TIMESTAMP_NS" => return Ok(DataType::Timestamp(TimeUnit::Nanosecond, None)),
        "STRING" | "TEXT" | "VARCHAR" | "JSON" | "JSONB" => return Ok(DataType::Utf8),
        _ => {}
    }
    let dialect = GenericDialect {};
    let mut parser = Parser::new(&dialect).try_with_sql(text).map_err(|_| unknown())?;
    let parsed = parser.parse_data_type().map_err(|_| unknown())?;
    let zone = |info: &TimezoneInfo| match info {
        TimezoneInfo::WithTimeZone | TimezoneInfo::Tz => Some("UTC".into()),
        TimezoneInfo::None | TimezoneInfo::WithoutTimeZone => None,
    };
    let unit = |digits: Option<u64>| if digits.unwrap_or(6) > 6 { TimeUnit::Nanosecond } else { TimeUnit::Microsecond };
    let decimal = |info: &ExactNumberInfo| match *info {
        ExactNumberInfo::None => Some(DataType::Decimal128(38, 10)),
        ExactNumberInfo::Precision(digits) => Some(DataType::Decimal128(u8::try_from(digits).ok()?, 0)),
        ExactNumberInfo::PrecisionAndScale(digits, scale) => {
            Some(DataType::Decimal128(u8::try_from(digits).ok()?, i8::try_from(scale).ok()?))
        }
    };
    let known = match &parsed {
        SqlType::Bool | SqlType::Boolean => Some(DataType::Boolean),
        SqlType::TinyInt(_) => Some(DataType::Int8),
        SqlType::SmallInt(_) | SqlType::Int2(_) => Some(DataType::Int16),
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) => Some(DataType::Int32),
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 => Some(DataType::Int64),
        SqlType::TinyIntUnsigned(_) => Some(DataType::UInt8),
        SqlType::SmallIntUnsigned(_) => Some(DataType::UInt16),
        SqlType::IntUnsigned(_) | SqlType::IntegerUnsigned(_) => Some(DataType::UInt32),
        SqlType::BigIntUnsigned(_) => Some(DataType::UInt64),
        SqlType::Real | SqlType::Float4 => Some(DataType::Float32),
        SqlType::Float(_) | SqlType::Double(_) | SqlType::DoublePrecision | SqlType::Float8 | SqlType::Float64 => {
            Some(DataType::Float64)
        }
        SqlType::Decimal(info) | SqlType::Numeric(info) | SqlType::Dec(info) => decimal(info),
        SqlType::Varchar(_)
        | SqlType::Char(_)
        | SqlType::CharacterVarying(_)
        | SqlType::Text
        | SqlType::String(_)
        | SqlType::Nvarchar(_) => Some(DataType::Utf8),
        SqlType::Blob(_) | SqlType::Bytea | SqlType::Binary(_) | SqlType::Varbinary(_) => Some(DataType::Binary),
        SqlType::Date => Some(DataType::Date32),
        SqlType::Time(digits, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            Some(DataType::Time64(unit(*digits)))
        }
        SqlType::Timestamp(digits, info) => Some(DataType::Timestamp(unit(*digits), zone(info))),
        SqlType::Datetime(digits) => Some(DataType::Timestamp(unit(*digits), None)),
        _ => None,
    };
    known.ok_or_else(unknown)
}

/// Returns a type as SQL spells it.
pub(crate) fn sql_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "BOOLEAN".to_owned(),
        DataType::Int8 => "TINYINT".to_owned(),
        DataType::Int16 => "SMALLINT".to_owned(),
        DataType::Int32 => "INTEGER".to_owned(),
        DataType::Int64 => "BIGINT".to_owned(),
        DataType::Float32 => "REAL".to_owned(),
        DataType::Float64 => "DOUBLE".to_owned(),
        DataType::Decimal128(digits, scale) => format!("DECIMAL({digits}, {scale})"),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "VARCHAR".to_owned(),
        DataType::Binary | DataType::BinaryView | DataType::LargeBinary => "BLOB".to_owned(),
        DataType::Date32 => "DATE".to_owned(),
        DataType::Time64(TimeUnit::Nanosecond) => "TIME(9)".to_owned(),
        DataType::Time64(_) => "TIME".to_owned(),
        DataType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP(9)".to_owned(),
        DataType::Timestamp(_, None) => "TIMESTAMP".to_owned(),
        DataType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE".to_owned(),
        DataType::List(item) => format!("{}[]", sql_type_name(item.data_type())),
        DataType::Struct(fields) => {
            let fields = fields.iter().map(|field| format!("{} {}", field.name(), sql_type_name(field.data_type())));
            format!("STRUCT({})", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_one_name_and_a_nearest_one() {
        let given = |name: &str| BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        assert!(known_options(FileFormat::Csv, &given("Header")).unwrap().contains_key("has_header"));
        assert!(known_options(FileFormat::Csv, &given("ignore-errors")).unwrap().contains_key("ignore_errors"));
        let error = known_options(FileFormat::Csv, &given("delimeter")).unwrap_err().to_string();
        assert!(error.starts_with("unknown option `delimeter`; did you mean `delimiter`?"), "{error}");
        assert!(known_options(FileFormat::Csv, &given("decimal")).unwrap().contains_key("decimal_separator"));
        let error = known_options(FileFormat::Csv, &given("normalize_names")).unwrap_err().to_string();
        assert!(error.contains("give the columns other names with AS"), "{error}");
        let error = known_options(FileFormat::Parquet, &given("skip")).unwrap_err().to_string();
        assert!(error.contains("parquet has none"), "{error}");
        let twice = BTreeMap::from([("sep".to_owned(), ",".to_owned()), ("delim".to_owned(), ";".to_owned())]);
        assert!(known_options(FileFormat::Csv, &twice).unwrap_err().to_string().contains("given twice"));
    }

    #[test]
    fn types_are_named_as_in_sql() {
        let types = GivenTypes::from_text("zip=VARCHAR, \"a,b\"=decimal(10, 2), at=timestamp with time zone").unwrap();
        assert_eq!(types.of_column("ZIP"), Some(&DataType::Utf8));
        assert_eq!(types.of_column("a,b"), Some(&DataType::Decimal128(10, 2)));
        assert_eq!(types.of_column("at"), Some(&DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))));
        assert_eq!(types.of_column("other"), None);
        assert_eq!(GivenTypes::from_text("b=blob").unwrap().of_column("b"), Some(&DataType::Binary));
        assert_eq!(GivenTypes::from_text("*=text").unwrap().of_column("other"), Some(&DataType::Utf8));
        let listed = GivenTypes::from_text("[\"DATE\", \"json\"]").unwrap();
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let named = listed.clone().named(&names).unwrap();
        assert_eq!((named.of_column("a"), named.of_column("c")), (Some(&DataType::Date32), None));
        assert!(named.is_json("b") && listed.check(["a"].into_iter()).is_err() && listed.named(&names[..1]).is_err());
        assert_eq!(GivenTypes::from_text("{\"n\": \"INT\"}").unwrap().of_column("n"), Some(&DataType::Int32));
        for wrong in ["zip", "zip=", "zip=GEOMETRY", "{\"n\": 1}"] {
            assert_eq!(GivenTypes::from_text(wrong).unwrap_err().code(), "invalid_option", "{wrong}");
        }
        let error = types.check(["zap", "a,b", "at"].into_iter()).unwrap_err().to_string();
        assert!(error.contains("did you mean `zap`"), "{error}");
    }
}
