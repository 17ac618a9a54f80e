//! Errors that arrive as their text alone, and are told by its words.

use super::EngineError;
use super::mapping::{plain_words, tidy};

/// Returns the error of a parameter of which no value has the name, and of a variable, which there are none of.
pub(super) fn unknown_parameter(message: &str) -> Option<EngineError> {
    if let Some(name) = message.strip_prefix("Unknown placeholder: ") {
        let name = name.lines().next().unwrap_or(name);
        let message = format!(
            "parameter `{name}` has no value: values of `$name` are found by their names, those of `?` and `$1` by \
             their order"
        );
        return Some(EngineError::Plan { message });
    }
    let (_, rest) = message.split_once("variable [\"")?;
    let (name, _) = rest.split_once("\"] has no type information")?;
    let message = format!("there are no variables such as `{name}`; a parameter is written `?`, `$1` or `$name`");
    Some(EngineError::Plan { message })
}

/// Returns the error of a column or an expression that DataFusion finds outside of the groups. Its own message speaks of a wildcard,
/// whether there is one or not.
pub(super) fn ungrouped(message: &str) -> Option<EngineError> {
    let of_select = message.split_once("While expanding wildcard, column \"").map(|(_, rest)| rest);
    let rest = of_select.or_else(|| message.strip_prefix("HAVING clause references: "))?;
    let (value, _) = rest.split_once(" must appear in the GROUP BY clause")?;
    let value = value.strip_suffix('"').unwrap_or(value);
    let message = match value {
        "Boolean(true)" | "Boolean(false)" | "Boolean(NULL)" => {
            "HAVING is of groups, and the query has none: write WHERE, or GROUP BY before it".to_owned()
        }
        value => {
            let value = plain_words(value);
            format!(
                "`{value}` is neither in GROUP BY nor in an aggregate function; add it to GROUP BY, or write any_value({value})"
            )
        }
    };
    Some(EngineError::Plan { message })
}

/// Whether a message says that a regular expression is none, or would be too large.
pub(super) fn is_of_a_pattern(message: &str) -> bool {
    message.contains("regex parse error") || message.contains("ompiled regex exceeds size limit")
}

/// Returns the error where a message says that 32-bit offsets do not reach: arrow, its kernels and the readers of files each
/// have words of their own for it.
pub(super) fn offset_overflow(message: &str) -> Option<EngineError> {
    let lowered = message.to_ascii_lowercase();
    let words = ["offset overflow", "offsetoverflow", "overflow decoding byte array", "capacity overflow"];
    let is_overflow = words.iter().any(|words| lowered.contains(words));
    is_overflow.then(|| EngineError::ValueTooLarge { detail: tidy(message) })
}

/// Returns what is said in the place of a message that says too little.
pub(super) fn own_words(message: &str) -> Option<&'static str> {
    // What a message has in it, and what is said in its place.
    const INSTEAD: [(&str, &str); 13] = [
        (
            "does not support logical expression AggregateFunction",
            "an aggregate is of rows, and not of another aggregate such as max(count(*)): compute the inner one in a subquery, and \
             the outer one of its rows",
        ),
        (
            "does not support logical expression WindowFunction",
            "a window function is of the rows that WHERE keeps: write QUALIFY row_number() OVER (...) = 1 behind WHERE, or compute \
             it in a subquery and compare there",
        ),
        (
            "ate part 'TIMEZONE",
            "a timestamp keeps no zone, it is one in UTC; how far a zone is from it are seconds: \
             date_diff('second', time AT TIME ZONE 'UTC', time AT TIME ZONE 'Europe/Berlin')",
        ),
        (
            "rrays_zip expects array arguments, got Boolean",
            "list_zip takes lists, the shorter ones with nulls behind them, and behind the lists true as it is written, to cut all to \
             the shortest; by a value write CASE WHEN value THEN list_zip(a, b, true) ELSE list_zip(a, b) END",
        ),
        (
            "nnest should be rewritten to LogicalPlan::Unnest",
            "unnest makes rows, in a select list or in FROM; put it there below: SELECT x FROM (SELECT unnest(list) AS x FROM t) \
             WHERE x > 1",
        ),
        (
            "ubstring without for/from is not valid",
            "substring takes where to begin: substring(text, 2), substring(text, 2, 3)",
        ),
        (
            "params but UDF support only",
            "the lambda names more values than its function gives it: list_transform(list, (x, i) -> x * i), \
             list_reduce(list, (a, x, i) -> a + x * i)",
        ),
        // DataFusion's words for arguments that it takes as they are written only.
        (
            "ranularity of `date_trunc` must be",
            "the part is written out, as in date_trunc('month', time); one of each row is chosen by CASE part WHEN 'month' THEN \
             date_trunc('month', time) ... END",
        ),
        (
            "date_part requires non-empty constant string",
            "the part is written out, as in date_part('year', time); one of each row is chosen by CASE part WHEN 'year' THEN \
             date_part('year', time) ... END",
        ),
        (
            "ncoding must be a scalar",
            "the encoding is written out, as in encode(bytes, 'hex') and decode(text, 'base64')",
        ),
        (
            "igest using dynamically decided method",
            "the method is written out, as in digest(text, 'sha256'); there are md5, sha224, sha256, sha384 and sha512",
        ),
        (
            "requires its second argument to be a non-empty constant string",
            "the type is written out, as in arrow_cast(value, 'Int8')",
        ),
        (
            "ncountered non UTF-8 data",
            "bytes that are no UTF-8 text are not cast to text; write encode(bytes, 'hex') or TRY_CAST(bytes AS VARCHAR)",
        ),
    ];
    if message.contains("annot access field at argument") && message.contains("type Utf8") {
        return Some("a text has no fields; of JSON write value -> 'name', or json_extract(value, '$.name[0]')");
    }
    INSTEAD.iter().find(|(said, _)| message.contains(said)).map(|(_, words)| *words)
}

/// Returns a message of the planner with what to write instead, where it has none.
pub(super) fn with_remedy(message: String) -> String {
    let of_filter = message
        .strip_prefix("cannot create filter with non-boolean predicate '")
        .and_then(|rest| rest.rsplit_once("' returning "));
    if let Some((value, data_type)) = of_filter {
        return format!("a condition is true or false, and `{value}` is {data_type}; compare it: {value} <> 0");
    }
    if message.starts_with("column count doesn't match insert query") {
        return "the query has another number of columns than there are to fill; name those: INSERT INTO t (a, b) \
                SELECT ..., or find them by their names: INSERT INTO t BY NAME SELECT ..."
            .into();
    }
    if message.starts_with("correlated scalar subquery can only be used in ") {
        return "a subquery of the row around it stands in SELECT, WHERE and groups, not in the ON of an outer join: compute it \
                beside its row, FROM (SELECT *, (SELECT ...) AS found FROM a) a LEFT JOIN b ON b.x = a.found"
            .into();
    }
    if message.to_lowercase().starts_with("aggregate functions are not allowed in the where clause") {
        return "aggregate functions are not allowed in the WHERE clause: write HAVING; and where a subquery's WHERE is to compare \
                with an aggregate of the query around it, compute that first: FROM (SELECT g, max(x) AS most FROM t GROUP BY g)"
            .into();
    }
    if message.starts_with("inconsistent data length across values list") {
        let hint = "rows are of one width, and an INSERT names the columns that have values: INSERT INTO t (a, b) VALUES (1, 2)";
        return format!("{message}; {hint}");
    }
    let compared = ["comparison operation ", "logical boolean operation "];
    let compared = compared
        .iter()
        .find_map(|what| message.split_once("cannot infer common argument type for")?.1.split_once(what));
    if let Some((_, types)) = compared {
        let hint = match types {
            types if types.contains(" AND ") || types.contains(" OR ") => {
                "a condition is true or false: write value <> 0"
            }
            types if types.contains("BOOLEAN") => {
                "a condition is no number: write value <> 0 for one, or CAST(condition AS INTEGER)"
            }
            types if types.contains("TIMESTAMP") => {
                "write epoch(time) beside seconds, year(time) beside a year, or a text such as '2024-01-31 10:00:00'"
            }
            types if types.starts_with("TIME ") || types.ends_with(" TIME") => {
                "write epoch(time) beside seconds, hour(time) beside an hour, or a text such as '10:00:00'"
            }
            _ => "cast one of the two",
        };
        return format!("{message}; {hint}");
    }
    if message.starts_with("cannot get result type for decimal operation ") {
        return format!("{message}; cast one of the two to DOUBLE, or to a DECIMAL of fewer digits");
    }
    if message.starts_with("cannot coerce arithmetic expression ") {
        let hint = match message.contains("VARCHAR") {
            true => "cast the text, such as CAST(value AS DOUBLE), or join texts with ||",
            false => "cast one of the two",
        };
        return format!("{message}; {hint}");
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_write() {
        let of_filter = "cannot create filter with non-boolean predicate 't.id' returning INTEGER";
        let said = "a condition is true or false, and `t.id` is INTEGER; compare it: t.id <> 0";
        assert_eq!(with_remedy(of_filter.into()), said);
        let of_sum = "cannot coerce arithmetic expression VARCHAR + BIGINT to valid types";
        assert!(with_remedy(of_sum.into()).ends_with("CAST(value AS DOUBLE), or join texts with ||"));
        let of_number = "cannot infer common argument type for comparison operation BOOLEAN = BIGINT";
        assert!(with_remedy(of_number.into()).ends_with("or CAST(condition AS INTEGER)"));
        let of_time = "cannot infer common argument type for comparison operation TIMESTAMP > BIGINT";
        assert!(with_remedy(of_time.into()).contains("; write epoch(time) beside seconds, year(time)"));
        let of_values = "cannot infer common argument type for logical boolean operation BIGINT AND BIGINT";
        assert!(with_remedy(of_values.into()).ends_with("write value <> 0"));
        assert_eq!(with_remedy("something else".into()), "something else");
        let of_encoding = "Encoding must be a scalar; array specified encoding is not yet supported";
        assert!(own_words(of_encoding).is_some_and(|words| words.starts_with("the encoding is written out")));
        assert_eq!(own_words("something else"), None);
    }
}
