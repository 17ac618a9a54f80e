//! Functions of SQLite, MySQL, BigQuery and T-SQL as expressions of functions here. A table has those that are one
//! expression; those whose arguments are turned (formats, modifiers, units) are written out in code.

use sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments, Value};

use super::joins::expression;

/// Name, number of arguments, and the expression with `$1`, `$2`, ... in their places.
const FORMS: &[(&str, usize, &str)] = &[
    ("getdate", 0, "now()"),
    ("sysdatetime", 0, "now()"),
    ("sysdate", 0, "now()"),
    ("getutcdate", 0, "now()"),
    ("curdate", 0, "current_date"),
    ("curtime", 0, "current_time"),
    ("current_datetime", 0, "now()"),
    ("julianday", 1, "(date_part('epoch', CAST($1 AS TIMESTAMP)) / 86400.0 + 2440587.5)"),
    ("unixepoch", 1, "date_part('epoch', CAST($1 AS TIMESTAMP))"),
    ("unix_timestamp", 1, "date_part('epoch', CAST($1 AS TIMESTAMP))"),
    ("unix_timestamp", 0, "date_part('epoch', now())"),
    ("from_unixtime", 1, "to_timestamp_seconds($1)"),
    ("datediff", 2, "date_diff('day', CAST($2 AS DATE), CAST($1 AS DATE))"),
    ("date_sub", 2, "($1 - $2)"),
    ("date_add", 2, "($1 + $2)"),
    ("adddate", 2, "($1 + $2)"),
    ("subdate", 2, "($1 - $2)"),
    ("datetime_add", 2, "($1 + $2)"),
    ("datetime_sub", 2, "($1 - $2)"),
    ("timestamp_add", 2, "($1 + $2)"),
    ("timestamp_sub", 2, "($1 - $2)"),
    ("eomonth", 1, "last_day($1)"),
    ("to_days", 1, "date_diff('day', DATE '0001-01-01', CAST($1 AS DATE)) + 366"),
    ("locate", 2, "strpos($2, $1)"),
    ("instr", 2, "strpos($1, $2)"),
    ("isnull", 1, "($1 IS NULL)"),
    ("isnumeric", 1, "(TRY_CAST($1 AS DOUBLE) IS NOT NULL)"),
    ("rand", 0, "random()"),
    ("truncate", 2, "trunc($1, $2)"),
    ("newid", 0, "uuid()"),
    ("generate_uuid", 0, "uuid()"),
    ("safe_divide", 2, "(CAST($1 AS DOUBLE) / nullif($2, 0))"),
    ("ieee_divide", 2, "(CAST($1 AS DOUBLE) / $2)"),
    ("zeroifnull", 1, "coalesce($1, 0)"),
    ("nvl2", 3, "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END"),
    ("total", 1, "coalesce(sum($1), 0.0)"),
    ("replicate", 2, "repeat($1, $2)"),
    ("space", 1, "repeat(' ', $1)"),
    ("datalength", 1, "octet_length($1)"),
    ("str", 1, "CAST($1 AS VARCHAR)"),
    ("to_json_string", 1, "CAST($1 AS VARCHAR)"),
    ("parse_date", 2, "CAST(strptime($2, $1) AS DATE)"),
    ("parse_datetime", 2, "strptime($2, $1)"),
    ("parse_timestamp", 2, "strptime($2, $1)"),
    ("format_date", 2, "strftime(CAST($2 AS TIMESTAMP), $1)"),
    ("format_datetime", 2, "strftime(CAST($2 AS TIMESTAMP), $1)"),
    ("format_timestamp", 2, "strftime(CAST($2 AS TIMESTAMP), $1)"),
    ("approx_quantiles", 2, "quantile_cont($1, 0.5)"),
    ("json_extract_scalar", 2, "json_extract_string($1, $2)"),
    ("json_value", 2, "json_extract_string($1, $2)"),
    ("json_query", 2, "json_extract($1, $2)"),
    ("date", 1, "CAST($1 AS DATE)"),
    ("datetime", 1, "CAST($1 AS TIMESTAMP)"),
    ("time", 1, "CAST($1 AS TIME)"),
    ("timestamp", 1, "CAST($1 AS TIMESTAMP)"),
];

/// Units of time by which functions of T-SQL and BigQuery count.
const UNITS: [(&str, &str); 30] = [
    ("year", "year"),
    ("yyyy", "year"),
    ("yy", "year"),
    ("quarter", "quarter"),
    ("qq", "quarter"),
    ("month", "month"),
    ("mm", "month"),
    ("m", "month"),
    ("week", "week"),
    ("ww", "week"),
    ("wk", "week"),
    ("isoweek", "week"),
    ("day", "day"),
    ("dd", "day"),
    ("d", "day"),
    ("dayofyear", "doy"),
    ("dy", "doy"),
    ("weekday", "dow"),
    ("dw", "dow"),
    ("dayofweek", "dow"),
    ("hour", "hour"),
    ("hh", "hour"),
    ("minute", "minute"),
    ("mi", "minute"),
    ("n", "minute"),
    ("second", "second"),
    ("ss", "second"),
    ("s", "second"),
    ("millisecond", "millisecond"),
    ("microsecond", "microsecond"),
];

/// Specifiers of MySQL's formats that differ from those of strftime.
const MYSQL_FORMATS: [(&str, &str); 12] = [
    ("%i", "%M"),
    ("%M", "%B"),
    ("%s", "%S"),
    ("%W", "%A"),
    ("%c", "%-m"),
    ("%e", "%-d"),
    ("%k", "%-H"),
    ("%l", "%-I"),
    ("%T", "%H:%M:%S"),
    ("%r", "%I:%M:%S %p"),
    ("%h", "%I"),
    ("%D", "%-d"),
];

/// Parts of .NET's formats, longest first.
const DOTNET_FORMATS: [(&str, &str); 16] = [
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("dddd", "%A"),
    ("ddd", "%a"),
    ("dd", "%d"),
    ("d", "%-d"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("tt", "%p"),
    ("H", "%-H"),
];

/// Returns what stands here for a call of a function of another system, and why.
pub(super) fn function_here(function: &Function) -> Option<(Expr, String)> {
    let name = function.name.to_string().to_lowercase();
    let arguments = arguments(function)?;
    if function.over.is_some() {
        return None;
    }
    let texts: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let text = turned(&name, function, &arguments, &texts)
        .or_else(|| {
            let (_, _, form) = FORMS.iter().find(|(known, count, _)| *known == name && *count == texts.len())?;
            Some(filled(form, &texts))
        })
        .or_else(|| foreign_constants(&name, &texts))?;
    let why = format!("`{}` is a function of another system", function.name);
    let replaced = expression(&text)?;
    (replaced.to_string() != function.to_string()).then_some((replaced, why))
}

/// Functions that are a constant without arguments.
fn foreign_constants(name: &str, texts: &[String]) -> Option<String> {
    (name == "current_timestamp" && !texts.is_empty()).then(|| "now()".to_owned())
}

fn filled(form: &str, texts: &[String]) -> String {
    let mut text = form.to_owned();
    for (index, argument) in texts.iter().enumerate() {
        text = text.replace(&format!("${}", index + 1), argument);
    }
    text
}

/// Returns the positional arguments of a call; `None` of one that has others.
fn arguments(function: &Function) -> Option<Vec<Expr>> {
    match &function.args {
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::Subquery(_) => None,
        FunctionArguments::List(list) => list
            .args
            .iter()
            .map(|argument| match argument {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
                _ => None,
            })
            .collect(),
    }
}

/// Returns the calls whose arguments are turned.
fn turned(name: &str, function: &Function, arguments: &[Expr], texts: &[String]) -> Option<String> {
    let as_time = |text: &str| format!("CAST({text} AS TIMESTAMP)");
    match (name, arguments) {
        ("strftime", [format, time, modifiers @ ..]) if literal(format).is_some_and(|text| text.contains('%')) => {
            Some(format!("strftime({}, {})", modified(time, modifiers)?, texts[0]))
        }
        ("date", [time, modifiers @ ..]) if !modifiers.is_empty() || is_now(time) => {
            Some(format!("CAST({} AS DATE)", modified(time, modifiers)?))
        }
        ("datetime", [time, modifiers @ ..]) if !modifiers.is_empty() || is_now(time) => modified(time, modifiers),
        ("julianday", [time]) if is_now(time) => Some("(date_part('epoch', now()) / 86400.0 + 2440587.5)".to_owned()),
        ("date_add" | "adddate" | "datetime_add" | "timestamp_add", [time, _]) if literal(time).is_some() => {
            Some(format!("({} + {})", as_time(&texts[0]), texts[1]))
        }
        ("date_sub" | "subdate" | "datetime_sub" | "timestamp_sub", [time, _]) if literal(time).is_some() => {
            Some(format!("({} - {})", as_time(&texts[0]), texts[1]))
        }
        ("date_format", [_, format]) => {
            Some(format!("strftime({}, {})", as_time(&texts[0]), mysql_format(&literal(format)?)))
        }
        ("str_to_date", [_, format]) => Some(format!("strptime({}, {})", texts[0], mysql_format(&literal(format)?))),
        ("format", [_, format]) => {
            let written = literal(format)?;
            let is_date = ["yy", "MM", "dd", "HH"].iter().any(|part| written.contains(part));
            is_date.then(|| format!("strftime({}, {})", as_time(&texts[0]), dotnet_format(&written)))
        }
        // T-SQL: the unit comes first, as a word.
        ("datediff" | "timestampdiff", [unit, _, _]) => {
            Some(format!("date_diff('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[2])))
        }
        ("dateadd" | "timestampadd", [unit, ..]) if arguments.len() == 3 => {
            let unit = unit_of(unit)?;
            Some(format!("({} + CAST(concat({}, ' {unit}s') AS INTERVAL))", as_time(&texts[2]), texts[1]))
        }
        ("datepart", [unit @ Expr::Identifier(_), _]) => {
            Some(format!("CAST(date_part('{}', {}) AS BIGINT)", unit_of(unit)?, as_time(&texts[1])))
        }
        ("datename", [unit, _]) => match unit_of(unit)? {
            "month" => Some(format!("monthname({})", as_time(&texts[1]))),
            "dow" => Some(format!("dayname({})", as_time(&texts[1]))),
            other => Some(format!("CAST(date_part('{other}', {}) AS VARCHAR)", as_time(&texts[1]))),
        },
        ("datefromparts", [_, _, _]) => Some(format!("make_date({}, {}, {})", texts[0], texts[1], texts[2])),
        // BigQuery: the unit comes last, as a word.
        ("date_diff" | "datetime_diff" | "timestamp_diff", [_, _, unit @ Expr::Identifier(_)]) => {
            Some(format!("date_diff('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[0])))
        }
        ("date_trunc" | "datetime_trunc" | "timestamp_trunc", [_, unit @ Expr::Identifier(_)]) => {
            Some(format!("date_trunc('{}', {})", unit_of(unit)?, texts[0]))
        }
        // SQLite: of several values.
        ("max", [_, _, ..]) => Some(format!("greatest({})", texts.join(", "))),
        ("min", [_, _, ..]) => Some(format!("least({})", texts.join(", "))),
        ("charindex" | "locate", [_, _, start]) => {
            Some(format!("(strpos(substr({}, {start}), {}) + {start} - 1)", texts[1], texts[0]))
        }
        ("group_concat", [value, ..]) => {
            let separator =
                separator_of(function).or_else(|| texts.get(1).cloned()).unwrap_or_else(|| "','".to_owned());
            let distinct = function.args.to_string().to_uppercase().starts_with("(DISTINCT ");
            let distinct = if distinct { "DISTINCT " } else { "" };
            Some(format!("string_agg({distinct}CAST({value} AS VARCHAR), {separator})"))
        }
        ("count", [_, _, ..]) if function.args.to_string().to_uppercase().starts_with("(DISTINCT ") => {
            Some(format!("count(DISTINCT row({}))", texts.join(", ")))
        }
        ("stuff", [_, _, _, _]) => {
            Some(format!("overlay({} PLACING {} FROM {} FOR {})", texts[0], texts[3], texts[1], texts[2]))
        }
        ("field", [value, choices @ ..]) if !choices.is_empty() => {
            let arms: Vec<String> =
                choices.iter().enumerate().map(|(index, choice)| format!("WHEN {choice} THEN {}", index + 1)).collect();
            Some(format!("CASE {value} {} ELSE 0 END", arms.join(" ")))
        }
        ("printf", [format, value]) if literal(format).is_some_and(|text| text == "%.2f") => {
            Some(format!("round({value}, 2)"))
        }
        _ => None,
    }
}

fn separator_of(function: &Function) -> Option<String> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::Separator(separator) => Some(separator.to_string()),
        _ => None,
    })
}

fn literal(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::DoubleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        // A text in double quotes, which is a name as long as nobody has looked.
        Expr::Identifier(name) if name.quote_style == Some('"') => Some(name.value.clone()),
        _ => None,
    }
}

fn is_now(expr: &Expr) -> bool {
    literal(expr).is_some_and(|text| text.eq_ignore_ascii_case("now"))
}

/// Returns a time of SQLite with its modifiers as an expression.
fn modified(time: &Expr, modifiers: &[Expr]) -> Option<String> {
    let mut text = if is_now(time) { "now()".to_owned() } else { format!("CAST({time} AS TIMESTAMP)") };
    for modifier in modifiers {
        let modifier = literal(modifier)?.trim().to_lowercase();
        match modifier.as_str() {
            "localtime" | "utc" | "auto" => {}
            "start of year" => text = format!("date_trunc('year', {text})"),
            "start of month" => text = format!("date_trunc('month', {text})"),
            "start of day" => text = format!("date_trunc('day', {text})"),
            "unixepoch" => text = format!("to_timestamp_seconds({time})"),
            other => {
                let (count, unit) = other.split_once(' ')?;
                let count: i64 = count.trim_start_matches('+').parse().ok()?;
                let unit = unit.trim().trim_end_matches('s');
                if !["year", "month", "day", "hour", "minute", "second"].contains(&unit) {
                    return None;
                }
                let sign = if count < 0 { '-' } else { '+' };
                text = format!("({text} {sign} INTERVAL '{} {unit}s')", count.unsigned_abs());
            }
        }
    }
    Some(text)
}

fn unit_of(expr: &Expr) -> Option<&'static str> {
    let written = match expr {
        Expr::Identifier(name) => name.value.clone(),
        other => literal(other)?,
    };
    UNITS.iter().find(|(name, _)| written.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn mysql_format(written: &str) -> String {
    let mut format = String::new();
    let mut rest = written;
    while let Some(first) = rest.chars().next() {
        match MYSQL_FORMATS.iter().find(|(specifier, _)| rest.starts_with(specifier)) {
            Some((specifier, here)) => {
                format.push_str(here);
                rest = &rest[specifier.len()..];
            }
            None => {
                // A percent sign belongs to the letter behind it.
                let length =
                    if first == '%' { rest.chars().take(2).map(char::len_utf8).sum() } else { first.len_utf8() };
                format.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    quoted(&format)
}

fn dotnet_format(written: &str) -> String {
    let mut format = String::new();
    let mut rest = written;
    while let Some(first) = rest.chars().next() {
        match DOTNET_FORMATS.iter().find(|(part, _)| rest.starts_with(part)) {
            Some((part, here)) => {
                format.push_str(here);
                rest = &rest[part.len()..];
            }
            None => {
                format.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    quoted(&format)
}
