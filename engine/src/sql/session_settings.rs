//! The settings that a session may have, by the names that people of PostgreSQL and DuckDB know. A value is honoured or
//! refused with what to write instead: a setting of which only one value holds here takes that value and no other.

use std::time::Duration;

use datafusion::sql::sqlparser::ast::{Expr, Ident, UnaryOperator, Value, ValueWithSpan};
use querent_catalog::CATALOG_NAME;
use querent_kql::nearest_name;

use crate::error::{EngineError, Result};

/// The setting where bare names resolve.
pub(crate) const SCHEMA: &str = "schema";
/// The setting of the longest time that a statement may take.
pub(crate) const STATEMENT_TIMEOUT: &str = "statement_timeout";

/// The setting of whether vector indexes are used.
pub(crate) const VECTOR_INDEX: &str = "vector_index";
/// A switch that is off.
pub(crate) const OFF: &str = "off";
const ON: &str = "on";

/// A setting and which values it takes.
#[derive(Debug)]
pub(crate) struct SessionSetting {
    pub(crate) name: &'static str,
    others: &'static [&'static str],
    takes: SettingValues,
    pub(crate) description: &'static str,
}

/// Which values a setting takes.
#[derive(Debug)]
enum SettingValues {
    /// A database, which the caller looks up.
    Database,
    /// A time; 0 is the server's own.
    Timeout,
    /// On, which it is, or off.
    Switch,
    /// Any text.
    Text(&'static str),
    /// What holds here anyway, in any of its spellings; the first is shown.
    Only(&'static [&'static str], &'static str),
}

const SETTINGS: &[SessionSetting] = &[
    SessionSetting {
        name: SCHEMA,
        others: &["search_path", "database", "current_schema"],
        takes: SettingValues::Database,
        description: "the database where names without one resolve",
    },
    SessionSetting {
        name: "catalog",
        others: &["current_catalog"],
        takes: SettingValues::Only(&[CATALOG_NAME], "there is one catalog; a database is named with USE"),
        description: "the catalog, which is one",
    },
    SessionSetting {
        name: "timezone",
        others: &["time zone", "time_zone"],
        takes: SettingValues::Only(
            &["UTC", "GMT", "Etc/UTC", "Etc/GMT", "Z", "Zulu", "Universal", "+00", "+00:00", "0"],
            "instants are shown in UTC: write column AT TIME ZONE 'Europe/Berlin' for the time there",
        ),
        description: "the zone of instants",
    },
    SessionSetting {
        name: STATEMENT_TIMEOUT,
        others: &["query_timeout", "max_execution_time"],
        takes: SettingValues::Timeout,
        description: "how long a statement may take, in milliseconds or as '5s', within the server's limit; 0 is that limit",
    },
    SessionSetting {
        name: VECTOR_INDEX,
        others: &["enable_vector_index"],
        takes: SettingValues::Switch,
        description: "whether searches for the nearest vectors use indexes; off, they find exactly the nearest",
    },
    SessionSetting {
        name: "application_name",
        others: &[],
        takes: SettingValues::Text(""),
        description: "what the client calls itself",
    },
    SessionSetting {
        name: "client_encoding",
        others: &["names"],
        takes: SettingValues::Only(&["UTF8", "UTF-8", "UNICODE", "utf8mb4"], "all text is UTF-8"),
        description: "the encoding of text",
    },
    SessionSetting {
        name: "standard_conforming_strings",
        others: &[],
        takes: SettingValues::Only(&["on", "true", "1"], r"a backslash is a character; write E'\n' for an escape"),
        description: "whether a backslash is a character",
    },
    SessionSetting {
        name: "datestyle",
        others: &["date_style"],
        takes: SettingValues::Only(
            &["ISO, YMD", "ISO", "ISO, MDY", "ISO, DMY"],
            "dates are shown as 2024-12-31: write strftime(column, '%d.%m.%Y') for another form",
        ),
        description: "the form of dates",
    },
    SessionSetting {
        name: "client_min_messages",
        others: &[],
        takes: SettingValues::Only(
            &["notice", "debug5", "debug4", "debug3", "debug2", "debug1", "log", "info", "warning", "error"],
            "there are no notices",
        ),
        description: "which notices are sent; there are none",
    },
    SessionSetting {
        name: "default_null_order",
        others: &["null_order"],
        takes: SettingValues::Only(
            &["nulls_last_on_asc_first_on_desc"],
            "write NULLS FIRST or NULLS LAST behind a column of ORDER BY",
        ),
        description: "where nulls come in an order",
    },
    SessionSetting {
        name: "default_order",
        others: &[],
        takes: SettingValues::Only(&["asc", "ascending"], "write DESC behind a column of ORDER BY"),
        description: "the order of ORDER BY",
    },
    SessionSetting {
        name: "integer_division",
        others: &[],
        takes: SettingValues::Only(&["true", "on", "1"], "write a / 2.0, or a::DOUBLE / b, for a fraction"),
        description: "whether 5 / 2 is 2",
    },
    SessionSetting {
        name: "autocommit",
        others: &[],
        takes: SettingValues::Only(&["on", "true", "1"], "each statement is a transaction of its own"),
        description: "whether each statement is a transaction",
    },
    SessionSetting {
        name: "transaction_read_only",
        others: &["default_transaction_read_only"],
        takes: SettingValues::Only(&["off", "false", "0"], "use a token of role read"),
        description: "whether statements may write",
    },
];

/// Settings that people know and that are the server's here.
const OF_THE_SERVER: &[(&[&str], &str)] = &[
    (&["memory_limit", "max_memory", "work_mem"], "query.memory"),
    (&["threads", "worker_threads", "max_parallel_workers"], "query.threads"),
    (&["temp_directory", "max_temp_directory_size"], "query.spill"),
];

impl SessionSetting {
    /// Returns the setting that a name means. Errors: `unsupported`, with the nearest names.
    pub(crate) fn named(name: &str) -> Result<&'static SessionSetting> {
        let name = name.to_lowercase();
        if let Some(found) = SETTINGS.iter().find(|one| one.name == name || one.others.contains(&name.as_str())) {
            return Ok(found);
        }
        if let Some((_, own)) = OF_THE_SERVER.iter().find(|(names, _)| names.contains(&name.as_str())) {
            return Err(EngineError::Unsupported {
                what: format!("the setting `{name}` of a session"),
                hint: format!("it is the server's: `{own}` in its settings"),
            });
        }
        let all = SETTINGS.iter().flat_map(|one| std::iter::once(one.name).chain(one.others.iter().copied()));
        let hint = match nearest_name(&name, all) {
            Some(near) => format!("did you mean `{near}`? SHOW ALL lists them"),
            None => {
                let names: Vec<&str> = SETTINGS.iter().map(|one| one.name).collect();
                format!("there are {}", names.join(", "))
            }
        };
        Err(EngineError::Unsupported { what: format!("the setting `{name}`"), hint })
    }

    /// Returns all settings.
    pub(crate) fn all() -> &'static [SessionSetting] {
        SETTINGS
    }

    /// Returns whether its value is a database.
    pub(crate) fn is_database(&self) -> bool {
        matches!(self.takes, SettingValues::Database)
    }

    /// Returns the value that holds where nothing was set; `None` for the database.
    pub(crate) fn default_value(&self) -> Option<&'static str> {
        match self.takes {
            SettingValues::Database => None,
            SettingValues::Timeout => Some("0"),
            SettingValues::Switch => Some(ON),
            SettingValues::Text(text) => Some(text),
            SettingValues::Only(values, _) => values.first().copied(),
        }
    }

    /// Returns the value as it is kept. Errors: `unsupported`, `sql_plan_error`.
    pub(crate) fn checked(&self, value: &str) -> Result<String> {
        match self.takes {
            SettingValues::Database | SettingValues::Text(_) => Ok(value.to_owned()),
            SettingValues::Timeout => {
                timeout(value)?;
                Ok(value.to_owned())
            }
            SettingValues::Switch => match value.to_lowercase().as_str() {
                "on" | "true" | "1" => Ok(ON.to_owned()),
                "off" | "false" | "0" => Ok(OFF.to_owned()),
                _ => Err(EngineError::Unsupported {
                    what: format!("`{value}` as the setting `{}`", self.name),
                    hint: format!("it is {ON} or {OFF}"),
                }),
            },
            SettingValues::Only(values, hint) => match values.iter().find(|own| own.eq_ignore_ascii_case(value)) {
                Some(own) => Ok((*own).to_owned()),
                None => Err(EngineError::Unsupported {
                    what: format!("`{value}` as the setting `{}`", self.name),
                    hint: hint.to_owned(),
                }),
            },
        }
    }
}

/// Reads a time: milliseconds, or a number with its unit. `None` is no limit of its own.
pub(crate) fn timeout(value: &str) -> Result<Option<Duration>> {
    let text = value.trim();
    let digits = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_lowercase().as_str() {
        "" | "ms" | "millisecond" | "milliseconds" => Some(1),
        "s" | "sec" | "second" | "seconds" => Some(1_000),
        "min" | "minute" | "minutes" => Some(60_000),
        "h" | "hour" | "hours" => Some(3_600_000),
        _ => None,
    };
    let millis = number.parse::<u64>().ok().zip(factor).and_then(|(number, factor)| number.checked_mul(factor));
    match millis {
        Some(0) => Ok(None),
        Some(millis) => Ok(Some(Duration::from_millis(millis))),
        None => Err(EngineError::Plan {
            message: format!("`{value}` is no time; write milliseconds, or a number with ms, s, min or h: '30s'"),
        }),
    }
}

/// Returns the text of a value as it stands behind `=`; `None` for `DEFAULT`. Errors: `sql_plan_error`.
pub(super) fn value_text(values: &[Expr]) -> Result<Option<String>> {
    // `"$user"` is PostgreSQL's schema of the role's name, and there is none of that kind.
    let is_own = |expr: &&Expr| !matches!(expr, Expr::Identifier(Ident { value, .. }) if value == "$user");
    let values: Vec<&Expr> = values.iter().filter(is_own).collect();
    let texts = values.iter().map(|value| literal_text(value)).collect::<Result<Vec<_>>>()?;
    match texts.as_slice() {
        [one] if matches!(values.first(), Some(Expr::Identifier(_))) && one.eq_ignore_ascii_case("default") => Ok(None),
        texts => Ok(Some(texts.join(", "))),
    }
}

fn literal_text(value: &Expr) -> Result<String> {
    Ok(match value {
        Expr::Identifier(ident) => ident.value.clone(),
        Expr::CompoundIdentifier(parts) => parts.iter().map(|part| part.value.clone()).collect::<Vec<_>>().join("."),
        Expr::Value(ValueWithSpan { value, .. }) => match value {
            Value::SingleQuotedString(text)
            | Value::DoubleQuotedString(text)
            | Value::EscapedStringLiteral(text)
            | Value::Number(text, _) => text.clone(),
            Value::Boolean(value) => value.to_string(),
            Value::Null => return Err(no_literal(value)),
            other => return Err(no_literal(other)),
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => format!("-{}", literal_text(expr)?),
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } => literal_text(expr)?,
        other => return Err(no_literal(other)),
    })
}

fn no_literal(value: &impl std::fmt::Display) -> EngineError {
    EngineError::Plan { message: format!("a setting takes a name, a text or a number, not `{value}`") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let millis = |text: &str| timeout(text).map(|time| time.map(|time| time.as_millis()));
        assert_eq!(millis("0").ok(), Some(None));
        for (text, expected) in [("1500", 1_500), ("5s", 5_000), ("2 min", 120_000), ("1h", 3_600_000)] {
            assert_eq!(millis(text).ok(), Some(Some(expected)), "{text}");
        }
        for text in ["", "-1", "fast", "99999999999999999999h"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_names_have_near_ones() {
        let message = |name: &str| match SessionSetting::named(name) {
            Ok(found) => found.name.to_owned(),
            Err(error) => error.to_string(),
        };
        assert_eq!(message("SEARCH_PATH"), "schema");
        assert!(message("statement_timout").contains("`statement_timeout`"));
        assert!(message("memory_limit").contains("query.memory"));
        assert!(message("zzz").contains("there are schema"));
    }
}
