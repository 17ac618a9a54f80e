//! Turns DataFusion's errors into the engine's: with codes kept, messages short and lowercase, and without backtraces and
//! wrappers.
//!
//! Providers and streams of this crate pass their own errors through DataFusion as `DataFusionError::External`;
//! they come out here with their code unchanged.

use std::collections::HashSet;

use arrow::error::ArrowError;
use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;
use parquet::errors::ParquetError;
use querent_catalog::CatalogError;
use querent_kql::{ExecutionError, KqlError, nearest_name};

use super::other_dialects::{call_of_keyword, called_of, instead_of, statement_instead, unknown_statement};
use super::told_by_text::{is_of_a_pattern, offset_overflow, own_words, ungrouped, unknown_parameter, with_remedy};
use super::told_by_worker::told_by_worker;
use super::unfit_calls::{from_wrong_use, instead_of_call, instead_of_cast, instead_of_type, unfit_keys};
use super::{EngineError, catalog_error_in, full_disk_in, is_file_ending, lost_file_in, store_error_in};

/// The most columns that a hint lists where none has a similar name.
const LISTED_COLUMNS: usize = 12;

impl From<DataFusionError> for EngineError {
    fn from(error: DataFusionError) -> Self {
        match error {
            DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => Self::from(*inner),
            DataFusionError::Collection(errors) => match errors.into_iter().next() {
                Some(first) => Self::from(first),
                None => Self::Internal("an empty collection of errors".into()),
            },
            DataFusionError::Shared(shared) => match std::sync::Arc::try_unwrap(shared) {
                Ok(inner) => Self::from(inner),
                Err(shared) => from_shared(&shared),
            },
            DataFusionError::External(inner) => from_boxed(inner),
            DataFusionError::SQL(error, _) => from_parser(*error),
            DataFusionError::SchemaError(error, _) => from_schema(*error),
            DataFusionError::Plan(message) => from_plan_message(&message),
            DataFusionError::NotImplemented(message) => from_not_implemented(&message),
            DataFusionError::ResourcesExhausted(message) => Self::MemoryExceeded { detail: memory_detail(&message) },
            DataFusionError::ArrowError(error, _) => Self::from(*error),
            DataFusionError::ParquetError(error) => match *error {
                ParquetError::External(inner) if inner.is::<Self>() => from_boxed(inner),
                other => from_cause(&other),
            },
            DataFusionError::ObjectStore(error) => from_cause(error.as_ref()),
            DataFusionError::IoError(error) => from_cause(&error),
            DataFusionError::Execution(message) => offset_overflow(&message)
                .unwrap_or_else(|| Self::InvalidValue { message: plain_words(&tidy(&message)) }),
            DataFusionError::ExecutionJoin(error) => match error.try_into_panic() {
                Ok(panic) => Self::from_panic(panic.as_ref()),
                Err(error) => Self::Internal(tidy(&error.to_string())),
            },
            DataFusionError::Configuration(message) | DataFusionError::Substrait(message) => {
                Self::Plan { message: tidy(&message) }
            }
            DataFusionError::Internal(message) | DataFusionError::Ffi(message) => from_internal(&message),
        }
    }
}

impl EngineError {
    /// Returns the error of a statement, with how a text is quoted where a column that is not there may be one, and a file
    /// where a table may be one.
    pub(crate) fn beside_quotes(self, statement: &str) -> Self {
        match self {
            Self::Catalog(CatalogError::DatabaseNotFound { database, nearest }) => {
                match unquoted_file(statement, &database) {
                    Some(file) => Self::Unsupported {
                        what: format!("the file `{file}` without quotes"),
                        hint: format!("write FROM '{file}'"),
                    },
                    None => Self::Catalog(CatalogError::DatabaseNotFound { database, nearest }),
                }
            }
            Self::ColumnNotFound { column, hint }
                if !hint.contains("did you mean") && statement.contains(&format!("\"{column}\"")) =>
            {
                let hint = format!("{hint}; double quotes are for names, a text is in single ones: '{column}'");
                Self::ColumnNotFound { column, hint }
            }
            other => other,
        }
    }

    /// Returns the error of a function that there is not: what stands for it here, where another system has it, or the
    /// nearest name.
    pub(crate) fn function_not_found(function: &str, near: Option<&str>) -> Self {
        let hint = match (instead_of(function), near) {
            (Some(instead), _) => format!("; write {instead}"),
            (None, Some(near)) => format!("; did you mean `{near}`?"),
            (None, None) => called_of(function).unwrap_or_default(),
        };
        Self::FunctionNotFound { function: function.to_owned(), hint }
    }
}

impl From<ArrowError> for EngineError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(inner) => from_boxed(inner),
            ArrowError::OffsetOverflowError(bytes) => Self::ValueTooLarge { detail: format!("{bytes} bytes") },
            ArrowError::DivideByZero => Self::InvalidValue { message: "division by zero".into() },
            ArrowError::CastError(message)
            | ArrowError::ParseError(message)
            | ArrowError::ComputeError(message)
            | ArrowError::InvalidArgumentError(message)
            | ArrowError::ArithmeticOverflow(message)
            | ArrowError::CsvError(message)
            | ArrowError::JsonError(message) => offset_overflow(&message)
                .unwrap_or_else(|| Self::InvalidValue { message: plain_words(&tidy(&message)) }),
            other => from_cause(&other),
        }
    }
}

impl From<EngineError> for DataFusionError {
    fn from(error: EngineError) -> Self {
        DataFusionError::External(Box::new(error))
    }
}

fn from_boxed(error: Box<dyn std::error::Error + Send + Sync>) -> EngineError {
    let error = match error.downcast::<EngineError>() {
        Ok(ours) => return *ours,
        Err(other) => other,
    };
    let error = match error.downcast::<ExecutionError>() {
        Ok(of_function) => return EngineError::InvalidValue { message: of_function.message },
        Err(other) => other,
    };
    let error = match error.downcast::<KqlError>() {
        Ok(of_query) => return EngineError::from(*of_query),
        Err(other) => other,
    };
    let error = match error.downcast::<CatalogError>() {
        Ok(ours) => return EngineError::Catalog(*ours),
        Err(other) => other,
    };
    let error = match error.downcast::<DataFusionError>() {
        Ok(inner) => return EngineError::from(*inner),
        Err(other) => other,
    };
    match error.downcast::<ArrowError>() {
        Ok(inner) => EngineError::from(*inner),
        Err(other) => from_cause(other.as_ref()),
    }
}

/// Copies what matters of an error that several consumers hold and that cannot be moved out.
fn from_shared(error: &DataFusionError) -> EngineError {
    match error {
        DataFusionError::Shared(inner) => from_shared(inner),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_shared(inner),
        DataFusionError::ResourcesExhausted(message) => EngineError::MemoryExceeded { detail: memory_detail(message) },
        DataFusionError::ArrowError(inner, _) => match inner.as_ref() {
            ArrowError::ExternalError(inner) => copy_boxed(inner.as_ref()),
            ArrowError::DivideByZero => EngineError::InvalidValue { message: "division by zero".into() },
            ArrowError::CastError(message)
            | ArrowError::ParseError(message)
            | ArrowError::ComputeError(message)
            | ArrowError::InvalidArgumentError(message)
            | ArrowError::ArithmeticOverflow(message) => offset_overflow(message)
                .unwrap_or_else(|| EngineError::InvalidValue { message: plain_words(&tidy(message)) }),
            other => from_cause(other),
        },
        DataFusionError::External(inner) => copy_boxed(inner.as_ref()),
        DataFusionError::ParquetError(error) => match error.as_ref() {
            ParquetError::External(inner) if inner.is::<EngineError>() => copy_boxed(inner.as_ref()),
            other => from_cause(other),
        },
        DataFusionError::NotImplemented(message) => from_not_implemented(message),
        DataFusionError::Plan(message) => from_plan_message(message),
        DataFusionError::Execution(message) => offset_overflow(message)
            .unwrap_or_else(|| EngineError::InvalidValue { message: plain_words(&tidy(message)) }),
        other => from_cause(other),
    }
}

/// Returns the store's error among the causes of `error`, where there is one; otherwise the text of `error`.
fn from_cause(error: &(dyn std::error::Error + 'static)) -> EngineError {
    let known = store_error_in(error).or_else(|| catalog_error_in(error)).or_else(|| full_disk_in(error));
    known.or_else(|| lost_file_in(error)).unwrap_or_else(|| {
        let message = tidy(&error.to_string());
        if let Some(told) = told_by_worker(&message) {
            return told;
        }
        if is_of_a_pattern(&message) {
            return EngineError::InvalidValue { message: plain_words(&message) };
        }
        offset_overflow(&message).or_else(|| unfit_keys(&message)).unwrap_or(EngineError::Execution { message })
    })
}

fn copy_boxed(error: &(dyn std::error::Error + Send + Sync + 'static)) -> EngineError {
    if let Some(inner) = error.downcast_ref::<DataFusionError>() {
        return from_shared(inner);
    }
    if let Some(of_function) = error.downcast_ref::<ExecutionError>() {
        return EngineError::InvalidValue { message: of_function.message.clone() };
    }
    if let Some(of_query) = error.downcast_ref::<KqlError>() {
        return EngineError::from(of_query.clone());
    }
    match error.downcast_ref::<EngineError>() {
        Some(EngineError::BadData { location, detail }) => {
            EngineError::BadData { location: location.clone(), detail: detail.clone() }
        }
        Some(EngineError::WorkerLost { worker, detail }) => {
            EngineError::WorkerLost { worker: worker.clone(), detail: detail.clone() }
        }
        Some(EngineError::InvalidValue { message }) => EngineError::InvalidValue { message: message.clone() },
        Some(EngineError::MemoryExceeded { detail }) => EngineError::MemoryExceeded { detail: detail.clone() },
        Some(EngineError::ServerMemory { detail }) => EngineError::ServerMemory { detail: detail.clone() },
        Some(EngineError::ServerThreads { detail }) => EngineError::ServerThreads { detail: detail.clone() },
        Some(EngineError::Cancelled { reason }) => EngineError::Cancelled { reason: reason.clone() },
        Some(EngineError::NotAllowed { what, why }) => EngineError::NotAllowed { what: what.clone(), why: why.clone() },
        Some(EngineError::Unsupported { what, hint }) => {
            EngineError::Unsupported { what: what.clone(), hint: hint.clone() }
        }
        Some(EngineError::WallClockExceeded { limit }) => EngineError::WallClockExceeded { limit: *limit },
        Some(EngineError::ValueTooLarge { detail }) => EngineError::ValueTooLarge { detail: detail.clone() },
        Some(EngineError::NoFiles { location, format }) => {
            EngineError::NoFiles { location: location.clone(), format: format.clone() }
        }
        Some(EngineError::InvalidOption { message }) => EngineError::InvalidOption { message: message.clone() },
        Some(EngineError::LocationNotAllowed { location, reason }) => {
            EngineError::LocationNotAllowed { location: location.clone(), reason: reason.clone() }
        }
        _ => from_cause(error),
    }
}

fn from_parser(error: ParserError) -> EngineError {
    match error {
        ParserError::RecursionLimitExceeded => EngineError::too_deep(),
        ParserError::ParserError(message) | ParserError::TokenizerError(message) => {
            unknown_statement(&message).unwrap_or_else(|| EngineError::Parse { message: parse_message(&message) })
        }
    }
}

/// `Expected: an expression, found: EOF at Line: 1, Column: 8` reads as
/// `expected an expression, found EOF at line 1, column 8`.
fn parse_message(message: &str) -> String {
    let message = message
        .replace("Expected: ", "expected ")
        .replace("found: ", "found ")
        .replace(" at Line: ", " at line ")
        .replace(", Column: ", ", column ")
        .replace("found EOF", "found the end of the statement");
    tidy(&message)
}

fn from_schema(error: SchemaError) -> EngineError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            EngineError::ColumnNotFound { column: shown(&field), hint: nearest_column(&field, &valid_fields) }
        }
        SchemaError::AmbiguousReference { field } => EngineError::Plan {
            message: format!("column `{}` is in more than one table; qualify it as `table.column`", shown(&field)),
        },
        SchemaError::DuplicateQualifiedField { qualifier, name } => EngineError::Plan {
            message: format!("`{}.{name}` appears twice; give one of the two an alias", qualifier.table()),
        },
        SchemaError::DuplicateUnqualifiedField { name } => {
            EngineError::Plan { message: format!("column `{name}` appears twice; give one of the two an alias") }
        }
    }
}

fn shown(column: &Column) -> String {
    match &column.relation {
        Some(relation) => format!("{}.{}", relation.table(), column.name),
        None => column.name.clone(),
    }
}

fn nearest_column(field: &Column, valid: &[Column]) -> String {
    if let (None, Some(call)) = (&field.relation, call_of_keyword(&field.name)) {
        return format!("; write {call}");
    }
    let in_relation: Vec<&Column> = match &field.relation {
        Some(relation) => valid
            .iter()
            .filter(|column| {
                column.relation.as_ref().is_some_and(|found| found.table().eq_ignore_ascii_case(relation.table()))
            })
            .collect(),
        None => valid.iter().collect(),
    };
    let candidates = if in_relation.is_empty() { valid.iter().collect() } else { in_relation };
    let mut known = HashSet::new();
    // Names of ours stand for no column that a statement may name.
    let candidates: Vec<&Column> = candidates
        .into_iter()
        .filter(|column| !column.name.starts_with("__querent") && known.insert(&column.name))
        .collect();
    let names = candidates.iter().map(|column| column.name.as_str());
    if let Some(near) = nearest_name(&field.name, names) {
        return format!("; did you mean `{near}`?");
    }
    if candidates.is_empty() {
        return String::new();
    }
    if field.name.starts_with('#') {
        return "; columns have names here, and ORDER BY 1 is by the first that is selected".into();
    }
    listed_columns(&candidates.iter().map(|column| column.name.as_str()).collect::<Vec<_>>())
}

/// Says which columns there are, for a name that is like none of theirs.
pub(crate) fn listed_columns(names: &[&str]) -> String {
    let more = if names.len() > LISTED_COLUMNS { ", ..." } else { "" };
    format!("; the columns are {}{more}", names.get(..LISTED_COLUMNS).unwrap_or(names).join(", "))
}

/// Returns the file of this stem that a statement names as if it were a table of a database.
fn unquoted_file<'s>(statement: &'s str, stem: &str) -> Option<&'s str> {
    statement.match_indices(stem).find_map(|(at, _)| {
        let rest = statement.get(at + stem.len()..)?.strip_prefix('.')?;
        let ending = rest.split(|char: char| !char.is_alphanumeric()).next()?;
        statement.get(at..at + stem.len() + 1 + ending.len()).filter(|_| is_file_ending(ending))
    })
}

fn from_plan_message(message: &str) -> EngineError {
    // DataFusion's message for an unknown function: "Invalid function 'foo'.\nDid you mean 'floor'?".
    if let Some(rest) = message.strip_prefix("Invalid function '")
        && let Some((function, rest)) = rest.split_once('\'')
    {
        let near = rest.split('\'').nth(1).filter(|near| nearest_name(function, [*near]).is_some());
        return EngineError::function_not_found(function, near);
    }
    if message.contains("Aggregate ORDER BY is not implemented for window functions") {
        return EngineError::Unsupported {
            what: "an aggregate with an order of its own (arg_max, ORDER BY within it) as a window".into(),
            hint: "write first_value(x) OVER (PARTITION BY g ORDER BY y DESC NULLS LAST), or the order in OVER".into(),
        };
    }
    if message.contains("OVER and WITHIN GROUP clause cannot be used together") {
        return EngineError::Unsupported {
            what: "a quantile, or WITHIN GROUP, as a window".into(),
            hint: "group it in a subquery and join that: JOIN (SELECT g, quantile_cont(x, 0.5) AS q FROM t GROUP BY g) USING (g)"
                .into(),
        };
    }
    if message.contains("EXCLUDE with multi-part identifiers") {
        let what = "EXCLUDE of a column by its table".into();
        return EngineError::Unsupported { what, hint: "write t.* EXCLUDE (column), and u.* beside it".into() };
    }
    if message.contains("econd argument must be a timestamp or NULL, got Literal") {
        let message =
            "a series of timestamps ends with one: generate_series(start, TIMESTAMP '...', INTERVAL '1 hour')";
        return EngineError::Plan { message: message.into() };
    }
    let known = ungrouped(message).or_else(|| unknown_parameter(message)).or_else(|| from_unfit_call(message));
    known.unwrap_or_else(|| EngineError::Plan { message: with_remedy(plain_words(&tidy(message))) })
}

fn from_not_implemented(message: &str) -> EngineError {
    if let Some(words) = own_words(message) {
        return EngineError::Plan { message: words.to_owned() };
    }
    let first_line = message.lines().next().unwrap_or(message);
    if first_line.contains("OuterReferenceColumn") {
        return EngineError::Unsupported {
            what: "a subquery that depends on the outer query in this way".into(),
            hint: "join its tables with the outer ones, or compute the value in the select list".into(),
        };
    }
    let notation = ["Unsupported ast node", "sqltorel", "Ident {", "Span(", "Some(", "logical expression"];
    if notation.iter().any(|words| first_line.contains(words)) {
        // What follows is the planner's own notation.
        return EngineError::Unsupported {
            what: "an expression of this statement".into(),
            hint: "write it with the operators and functions of the SQL reference".into(),
        };
    }
    if let Some(statement) = first_line.strip_prefix("Unsupported SQL statement: ") {
        const MODIFIERS: [&str; 4] = ["or", "replace", "temp", "temporary"];
        let is_modifier = |word: &&str| MODIFIERS.iter().any(|modifier| word.eq_ignore_ascii_case(modifier));
        // A text may hold a password.
        let words = statement.split_whitespace().take_while(|word| !word.contains('\''));
        let words: Vec<&str> = words.filter(|word| !is_modifier(word)).take(2).collect();
        let what = words.join(" ").to_uppercase();
        let hint = statement_instead(&what).into();
        return EngineError::Unsupported { what, hint };
    }
    // "Unsupported CAST from Int64 to ... not supported" says it once.
    let lowered = plain_words(&tidy(first_line));
    let lowered = lowered.strip_prefix("unsupported ").unwrap_or(&lowered);
    let ended = lowered.trim_end_matches('.').trim_end_matches(" yet");
    let endings =
        ["is not supported", "are not supported", "is not yet supported", "not yet supported", "not supported"];
    let what = endings.iter().find_map(|ending| ended.strip_suffix(ending)).unwrap_or(lowered).trim();
    let hint = match what {
        "unnest() does not support null" => Some("give it a type: unnest(CAST(NULL AS INTEGER[]))"),
        what => instead_of_cast(what).or_else(|| instead_of_type(what)),
    };
    EngineError::Unsupported { what: what.to_owned(), hint: hint.unwrap_or("write the statement without it").into() }
}

/// Returns the line that names the consumer that failed and how much it needed; DataFusion lists all consumers.
fn memory_detail(message: &str) -> String {
    let line = message.lines().find(|line| line.contains("Failed to allocate")).or_else(|| message.lines().next());
    let line = line.unwrap_or(message).trim().trim_start_matches("Error: ").trim_start_matches("error: ");
    tidy(line.split(" - ").next().unwrap_or(line))
        .replace(". Please try increasing the config: `datafusion.runtime.max_temp_directory_size`.", " (query.spill)")
}

/// Returns the error for what DataFusion takes for a bug of its own. Types that do not fit are the statement's.
fn from_internal(message: &str) -> EngineError {
    if message.contains("failed to convert size to usize") {
        return EngineError::InvalidValue { message: "a list is given a length from 0 on".into() };
    }
    from_unfit_call(message).or_else(|| from_wrong_use(message)).unwrap_or_else(|| EngineError::Internal(tidy(message)))
}

/// Returns the message with the names of SQL's types in place of Arrow's, and without words of the planner.
pub(super) fn plain_words(message: &str) -> String {
    if let Some(words) = own_words(message) {
        return words.to_owned();
    }
    const TYPES: [(&str, &str); 31] = [
        ("Utf8View", "VARCHAR"),
        ("LargeUtf8", "VARCHAR"),
        ("Utf8", "VARCHAR"),
        ("Boolean", "BOOLEAN"),
        ("Int8", "TINYINT"),
        ("Int16", "SMALLINT"),
        ("Int32", "INTEGER"),
        ("Int64", "BIGINT"),
        ("UInt8", "UTINYINT"),
        ("UInt16", "USMALLINT"),
        ("UInt32", "UINTEGER"),
        ("UInt64", "UBIGINT"),
        ("Float32", "FLOAT"),
        ("Float64", "DOUBLE"),
        ("Date32", "DATE"),
        ("Date64", "DATE"),
        ("Binary", "BLOB"),
        ("LargeBinary", "BLOB"),
        ("BinaryView", "BLOB"),
        ("Timestamp(s)", "TIMESTAMP"),
        ("Timestamp(ms)", "TIMESTAMP"),
        ("Timestamp(µs)", "TIMESTAMP"),
        ("Timestamp(ns)", "TIMESTAMP"),
        ("Timestamp(s, \"UTC\")", "TIMESTAMP WITH TIME ZONE"),
        ("Timestamp(ms, \"UTC\")", "TIMESTAMP WITH TIME ZONE"),
        ("Timestamp(µs, \"UTC\")", "TIMESTAMP WITH TIME ZONE"),
        ("Timestamp(ns, \"UTC\")", "TIMESTAMP WITH TIME ZONE"),
        ("Time64(µs)", "TIME"),
        ("Time64(ns)", "TIME"),
        ("Interval(MonthDayNano)", "INTERVAL"),
        ("Decimal128", "DECIMAL"),
    ];
    let is_letter = |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let mut text = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(first) = rest.chars().next() {
        let known = TYPES.iter().find(|(name, _)| {
            rest.strip_prefix(name).is_some_and(|after| !is_letter(after.chars().next()) || name.ends_with(')'))
        });
        match known.filter(|_| !is_letter(text.chars().next_back())) {
            Some((name, in_sql)) => {
                text.push_str(in_sql);
                rest = &rest[name.len()..];
            }
            None => {
                text.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    text.replace("Decimal128(", "DECIMAL(")
        .replace("Struct(", "STRUCT(")
        .replace(" value of ", " a value of ")
        .replace(" to a value of ", " to ")
}

/// Returns the error of a call whose arguments have types that the function does not take.
fn from_unfit_call(message: &str) -> Option<EngineError> {
    let Some((before, rest)) = message.split_once("No function matches the given name and argument types '") else {
        let types = message.strip_prefix("Failed to coerce types ")?.strip_suffix(" in BETWEEN expression")?;
        return Some(EngineError::Plan { message: format!("BETWEEN cannot compare {}", plain_words(types)) });
    };
    // What a function of ours says of its arguments is more.
    if let Some((_, own)) = before.split_once("External error: ") {
        let own = own.split("\n").next().unwrap_or(own).trim().trim_end_matches(['"', '.', ' ']);
        return Some(EngineError::Plan { message: tidy(own) });
    }
    let (function, types) = rest.split("'.").next()?.trim_end_matches('\'').split_once('(')?;
    let types = plain_words(types.strip_suffix(')').unwrap_or(types));
    let message = match types.is_empty() {
        true => format!("`{function}` needs arguments"),
        false => format!("`{function}` does not take {types}; {}", instead_of_call(function, &types)),
    };
    Some(EngineError::Plan { message })
}

/// Returns the message on one line, without backtrace and `Error during planning:` prefixes, its first letter in lower case.
pub(crate) fn tidy(message: &str) -> String {
    const PREFIXES: [&str; 12] = [
        "Error during planning: ",
        "Execution error: ",
        "External error: ",
        "Arrow error: ",
        "Parquet error: ",
        "Object Store error: ",
        "This feature is not implemented: ",
        "Schema error: ",
        "Cast error: ",
        "Parser error: ",
        "Invalid argument error: ",
        "Compute error: ",
    ];
    let text = message.split("\n\nbacktrace:").next().unwrap_or(message);
    let mut text = text.split("This issue was likely caused by").next().unwrap_or(text).trim();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        text = rest.trim_start();
    }
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    lower_first(&line)
}

/// Lowers the first letter unless the first word is an acronym or a type (`SQL`, `Int64`, `CAST`).
fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    let (Some(first), Some(second)) = (letters.next(), letters.next()) else { return text.to_owned() };
    let first_word = text.split_whitespace().next().unwrap_or_default();
    let a_name = !second.is_lowercase() || first_word.chars().any(|letter| letter.is_ascii_digit());
    if first.is_uppercase() && !a_name {
        return first.to_lowercase().chain(text.chars().skip(1)).collect();
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_lose_their_prefixes_and_their_capital() {
        assert_eq!(tidy("Error during planning: Column count doesn't match"), "column count doesn't match");
        assert_eq!(tidy("Int64 is not a string"), "Int64 is not a string");
        assert_eq!(tidy("two\n  lines\n\nbacktrace: 1: x"), "two lines");
    }

    #[test]
    fn refusals_that_tasks_share_keep_their_code() {
        let refusal = ExecutionError { message: "hll_merge: expected what hll() returns".to_owned() };
        let shared = std::sync::Arc::new(DataFusionError::External(Box::new(refusal)));
        let error = EngineError::from(DataFusionError::Shared(std::sync::Arc::clone(&shared)));
        assert_eq!(error.code(), "invalid_value");
    }

    #[test]
    fn parser_messages_read_as_sentences() {
        assert_eq!(
            parse_message("Expected: an expression, found: EOF at Line: 1, Column: 8"),
            "expected an expression, found the end of the statement at line 1, column 8"
        );
    }

    #[test]
    fn unknown_functions_name_the_nearest_one() {
        let error = from_plan_message("Invalid function 'flor'.\nDid you mean 'floor'?");
        assert_eq!(error.code(), "function_not_found");
        assert_eq!(error.to_string(), "unknown function `flor`; did you mean `floor`?");
    }

    #[test]
    fn a_missing_column_lists_what_there_is_when_nothing_is_near() {
        let names = [("t", "carrier"), ("t", "distance"), ("whole", "carrier"), ("whole", "distance")];
        let valid = names.map(|(table, name)| Column::new(Some(table), name));
        let hint = nearest_column(&Column::new_unqualified("zzz"), &valid);
        assert_eq!(hint, "; the columns are carrier, distance");
        assert_eq!(nearest_column(&Column::new_unqualified("carier"), &valid), "; did you mean `carrier`?");
    }

    #[test]
    fn unsupported_features_are_named_once() {
        let error = from_not_implemented("Temporary tables not supported");
        assert_eq!(error.to_string(), "temporary tables is not supported; write the statement without it");
        let error = from_not_implemented("Unsupported CAST from Struct(\"x\": Int64) to Utf8");
        let expected = "CAST from STRUCT(\"x\": BIGINT) to VARCHAR is not supported; write the statement without it";
        assert_eq!(error.to_string(), expected);
    }
}
