//! Functions of SQLite, MySQL, BigQuery, T-SQL, Oracle and Snowflake as expressions of functions here. A table has
//! those that are one expression; those whose arguments are turned (formats, modifiers, units) are written out in code.

use sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
    HavingBound, HavingBoundKind, Ident, ObjectName, ObjectNamePart, Value,
};

use super::dialects::{all_of, is_unit_text};
use super::joins::expression;
use super::time_formats::{dotnet_format, dotnet_number, mysql_format, oracle_format};

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
    ("eomonth", 2, "last_day(CAST($1 AS DATE) + CAST(concat($2, ' months') AS INTERVAL))"),
    ("sec_to_time", 1, "CAST(TIMESTAMP '1970-01-01 00:00:00' + to_seconds($1) AS TIME)"),
    ("period_diff", 2, "(($1 / 100 * 12 + $1 % 100) - ($2 / 100 * 12 + $2 % 100))"),
    ("mid", 3, "substr($1, $2, $3)"),
    ("try_to_number", 1, "TRY_CAST($1 AS DECIMAL(38, 0))"),
    ("try_to_double", 1, "TRY_CAST($1 AS DOUBLE)"),
    ("try_to_date", 1, "TRY_CAST($1 AS DATE)"),
    ("try_to_timestamp", 1, "TRY_CAST($1 AS TIMESTAMP)"),
    ("try_to_boolean", 1, "TRY_CAST($1 AS BOOLEAN)"),
    ("array_size", 1, "len($1)"),
    ("size", 1, "len($1)"),
    ("collect_list", 1, "array_agg($1) FILTER (WHERE $1 IS NOT NULL)"),
    ("collect_set", 1, "array_agg(DISTINCT $1) FILTER (WHERE $1 IS NOT NULL)"),
    ("sort_array", 1, "list_sort($1)"),
    ("explode", 1, "unnest($1)"),
    ("rlike", 2, "($1 ~ $2)"),
    ("regexp_contains", 2, "($1 ~ $2)"),
    ("regexp_substr", 2, "nullif(regexp_extract($1, $2), '')"),
    ("regexp_substr", 3, "nullif(regexp_extract(substr($1, $3), $2), '')"),
    ("regexp_substr", 4, "list_element(regexp_extract_all(substr($1, $3), $2), $4)"),
    ("percentile", 2, "quantile_cont($1, $2)"),
    ("percentile_approx", 2, "quantile_disc($1, $2)"),
    ("to_days", 1, "date_diff('day', DATE '0001-01-01', CAST($1 AS DATE)) + 366"),
    ("locate", 2, "strpos($2, $1)"),
    ("instr", 2, "strpos($1, $2)"),
    ("isnull", 1, "($1 IS NULL)"),
    ("isnumeric", 1, "(TRY_CAST($1 AS DOUBLE) IS NOT NULL)"),
    ("rand", 0, "random()"),
    ("truncate", 2, "trunc($1, $2)"),
    ("newid", 0, "uuid()"),
    ("generate_uuid", 0, "uuid()"),
    ("timediff", 2, "(CAST($1 AS TIMESTAMP) - CAST($2 AS TIMESTAMP))"),
    ("time_to_sec", 1, "CAST(date_part('epoch', $1) AS BIGINT)"),
    (
        "add_months",
        2,
        "CASE WHEN CAST($1 AS DATE) = last_day(CAST($1 AS DATE)) \
         THEN last_day(CAST($1 AS DATE) + CAST(concat($2, ' months') AS INTERVAL)) \
         ELSE CAST(CAST($1 AS DATE) + CAST(concat($2, ' months') AS INTERVAL) AS DATE) END",
    ),
    (
        "months_between",
        2,
        "(CAST(date_diff('month', CAST($2 AS DATE), CAST($1 AS DATE)) AS DOUBLE) + CASE \
         WHEN CAST($1 AS DATE) = last_day(CAST($1 AS DATE)) AND CAST($2 AS DATE) = last_day(CAST($2 AS DATE)) \
         THEN CAST(0 AS DOUBLE) ELSE CAST(date_part('day', CAST($1 AS DATE)) - date_part('day', CAST($2 AS DATE)) \
         AS DOUBLE) / 31 END)",
    ),
    ("generate_array", 2, "generate_series($1, $2)"),
    ("generate_array", 3, "generate_series($1, $2, $3)"),
    ("generate_date_array", 2, "generate_series(CAST($1 AS DATE), CAST($2 AS DATE), INTERVAL '1 day')"),
    ("generate_date_array", 3, "generate_series(CAST($1 AS DATE), CAST($2 AS DATE), $3)"),
    ("div0", 2, "CASE WHEN $2 = 0 THEN 0 ELSE CAST($1 AS DOUBLE) / $2 END"),
    ("to_varchar", 1, "CAST($1 AS VARCHAR)"),
    ("safe_divide", 2, "(CAST($1 AS DOUBLE) / nullif($2, 0))"),
    ("ieee_divide", 2, "(CAST($1 AS DOUBLE) / $2)"),
    ("zeroifnull", 1, "coalesce($1, 0)"),
    ("nvl2", 3, "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END"),
    ("stdev", 1, "stddev($1)"),
    ("stdevp", 1, "stddev_pop($1)"),
    ("varp", 1, "var_pop($1)"),
    ("likely", 1, "$1"),
    ("unlikely", 1, "$1"),
    ("likelihood", 2, "$1"),
    ("total", 1, "coalesce(CAST(sum($1) AS DOUBLE), 0)"),
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
    ("json_extract_scalar", 2, "json_extract_string($1, $2)"),
    ("json_value", 2, "json_extract_string($1, $2)"),
    ("json_query", 2, "json_extract($1, $2)"),
    ("date", 1, "CAST($1 AS DATE)"),
    ("datetime", 1, "CAST($1 AS TIMESTAMP)"),
    ("time", 1, "CAST($1 AS TIME)"),
    ("timestamp", 1, "CAST($1 AS TIMESTAMP)"),
];

/// Aggregates of the forms, whose rows a FILTER chooses.
const AGGREGATES: [&str; 5] = ["array_agg", "count", "quantile_cont", "quantile_disc", "string_agg"];

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

/// Returns what stands here for a call of a function of another system, and why.
pub(super) fn function_here(function: &Function) -> Option<(Expr, String)> {
    let name = function.name.to_string().to_lowercase();
    if let Some(found) = aggregate_here(&name, function) {
        return Some(found);
    }
    let arguments = arguments(function)?;
    if let ("ratio_to_report", [only], Some(_)) = (name.as_str(), arguments.as_slice(), &function.over) {
        let mut total = function.clone();
        total.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("sum"))]);
        let share = expression(&format!("(CAST({only} AS DOUBLE) / {total})"))?;
        return Some((share, "RATIO_TO_REPORT is a share of the sum".to_owned()));
    }
    let is_distinct = matches!(&function.args, FunctionArguments::List(list)
        if list.duplicate_treatment == Some(DuplicateTreatment::Distinct));
    let is_ordered = matches!(&function.args, FunctionArguments::List(list) if !list.clauses.is_empty());
    // The forms have no place for the rest of a call, and without it the rows would be others.
    let has_rest = function.over.is_some() || function.null_treatment.is_some() || !function.within_group.is_empty();
    if has_rest || ((is_distinct || is_ordered) && !["group_concat", "count"].contains(&name.as_str())) {
        return None;
    }
    // `a + b` stays together where a form divides by it.
    let as_operand = |argument: &Expr| match argument {
        Expr::BinaryOp { .. } => format!("({argument})"),
        other => other.to_string(),
    };
    let texts: Vec<String> = arguments.iter().map(as_operand).collect();
    let text = turned(&name, function, &arguments, &texts)
        .or_else(|| {
            let (_, _, form) = FORMS.iter().find(|(known, count, _)| *known == name && *count == texts.len())?;
            Some(filled(form, &texts))
        })
        .or_else(|| foreign_constants(&name, &texts))?;
    let why = format!("`{}` is a function of another system", function.name);
    let mut replaced = expression(&text)?;
    if let Some(filter) = &function.filter {
        let Expr::Function(call) = &mut replaced else { return None };
        if !AGGREGATES.contains(&call.name.to_string().as_str()) {
            return None;
        }
        let own = call.filter.take().map(|own| *own);
        let both = own.into_iter().chain([Expr::Nested(filter.clone())]).collect();
        call.filter = all_of(both).map(Box::new);
    }
    (replaced.to_string() != function.to_string()).then_some((replaced, why))
}

/// Returns the aggregate here for one of T-SQL, Oracle or Snowflake, whose order stands in `WITHIN GROUP`.
fn aggregate_here(name: &str, function: &Function) -> Option<(Expr, String)> {
    let mut here = function.clone();
    if let FunctionArguments::List(list) = &mut here.args
        && let Some(at) = list
            .clauses
            .iter()
            .position(|clause| matches!(clause, FunctionArgumentClause::Limit(_) | FunctionArgumentClause::Having(_)))
    {
        let clause = list.clauses.remove(at);
        let only = list.args.first().map(ToString::to_string);
        let (text, why) = match (name, clause) {
            ("array_agg", FunctionArgumentClause::Limit(limit)) => {
                (format!("array_slice({here}, 1, {limit})"), "a list is cut by array_slice here")
            }
            ("any_value", FunctionArgumentClause::Having(HavingBound(kind, key))) => {
                let by = if kind == HavingBoundKind::Max { "arg_max_null" } else { "arg_min_null" };
                (
                    format!("{by}({}, {key})", only?),
                    "the value of the extreme row is taken by arg_max_null and arg_min_null here",
                )
            }
            _ => return None,
        };
        return Some((expression(&text)?, why.to_owned()));
    }
    let why = match name {
        "count_big" => {
            here.name = ObjectName(vec![ObjectNamePart::Identifier(Ident::new("count"))]);
            "COUNT_BIG is count here"
        }
        "string_agg" | "listagg" if !function.within_group.is_empty() => {
            let FunctionArguments::List(list) = &mut here.args else { return None };
            list.clauses.push(FunctionArgumentClause::OrderBy(std::mem::take(&mut here.within_group)));
            "the order of what is joined stands among the arguments here"
        }
        _ => return None,
    };
    Some((Expr::Function(here), why.to_owned()))
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
        ("strftime", [format, time]) if literal(format).is_some_and(|text| text.eq_ignore_ascii_case("%j")) => {
            let time = modified(time, &[])?;
            // The day of the year, and the Julian day.
            Some(match literal(format)?.as_str() {
                "%J" => format!("CAST((date_part('epoch', {time}) / 86400.0 + 2440587.5) AS VARCHAR)"),
                other => format!("strftime({time}, '{other}')"),
            })
        }
        ("strftime", [format, time, modifiers @ ..]) if literal(format).is_some_and(|text| text.contains('%')) => {
            Some(format!("strftime({}, {})", modified(time, modifiers)?, texts[0]))
        }
        ("date", [time, modifiers @ ..]) if !modifiers.is_empty() || is_now(time) => {
            Some(format!("CAST({} AS DATE)", modified(time, modifiers)?))
        }
        ("datetime", [time, modifiers @ ..]) if !modifiers.is_empty() || is_now(time) => modified(time, modifiers),
        ("julianday", [time]) if is_now(time) => Some("(date_part('epoch', now()) / 86400.0 + 2440587.5)".to_owned()),
        // Spark, Hive and MySQL: a number of days.
        ("date_add" | "adddate", [_, days]) if !matches!(days, Expr::Interval(_)) => {
            Some(format!("(CAST({} AS DATE) + {})", texts[0], texts[1]))
        }
        ("date_sub" | "subdate", [_, days]) if !matches!(days, Expr::Interval(_)) => {
            Some(format!("(CAST({} AS DATE) - {})", texts[0], texts[1]))
        }
        ("date_add" | "adddate" | "datetime_add" | "timestamp_add", [time, _]) if literal(time).is_some() => {
            Some(format!("({} + {})", as_time(&texts[0]), texts[1]))
        }
        ("date_sub" | "subdate" | "datetime_sub" | "timestamp_sub", [time, _]) if literal(time).is_some() => {
            Some(format!("({} - {})", as_time(&texts[0]), texts[1]))
        }
        ("date_format", [_, format]) => {
            let written = literal(format)?;
            // MySQL's, or Spark's.
            let here = if written.contains('%') { mysql_format(&written)? } else { dotnet_format(&written)? };
            Some(format!("strftime({}, {here})", as_time(&texts[0])))
        }
        ("unix_timestamp", [_, format]) => {
            let here = dotnet_format(&literal(format)?)?;
            Some(format!("CAST(date_part('epoch', strptime({}, {here})) AS BIGINT)", texts[0]))
        }
        ("str_to_date", [_, format]) => Some(format!("strptime({}, {})", texts[0], mysql_format(&literal(format)?)?)),
        // MySQL: decimals, with commas.
        ("format", [_, Expr::Value(places)]) if matches!(&places.value, Value::Number(..)) => {
            Some(format!("format('{{:,.{}f}}', CAST({} AS DOUBLE))", texts[1], texts[0]))
        }
        ("format", [_, format]) => {
            let written = literal(format)?;
            let is_date = ["yy", "MM", "dd", "HH"].iter().any(|part| written.contains(part));
            match is_date {
                true => Some(format!("strftime({}, {})", as_time(&texts[0]), dotnet_format(&written)?)),
                false => Some(format!("format('{}', CAST({} AS DOUBLE))", dotnet_number(&written)?, texts[0])),
            }
        }
        // MySQL and BigQuery count the units that are over, T-SQL and others the bounds that are passed.
        ("timestampdiff", [unit, _, _]) if ["month", "quarter", "year"].contains(&unit_of(unit)?) => {
            let (from, to) = (as_time(&texts[1]), as_time(&texts[2]));
            let months = match unit_of(unit)? {
                "month" => "",
                "quarter" => " / 3",
                _ => " / 12",
            };
            // The day and the time decide whether a month is over, at the end of a month as well.
            let within = |time: &str| format!("strftime({time}, '%d %H:%M:%S')");
            Some(format!(
                "((date_diff('month', {from}, {to}) - CASE WHEN {from} <= {to} AND {} < {} THEN 1 WHEN {from} > {to} \
                 AND {} > {} THEN -1 ELSE 0 END){months})",
                within(&to),
                within(&from),
                within(&to),
                within(&from)
            ))
        }
        ("timestampdiff", [unit, _, _]) => {
            Some(format!("date_sub('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[2])))
        }
        ("timestamp_diff", [_, _, unit @ Expr::Identifier(_)]) => {
            Some(format!("date_sub('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[0])))
        }
        // T-SQL: the unit comes first, as a word.
        ("datediff", [unit, _, _]) => {
            Some(format!("date_diff('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[2])))
        }
        ("dateadd" | "timestampadd", [unit, ..]) if arguments.len() == 3 => {
            let unit = unit_of(unit)?;
            Some(format!("({} + CAST(concat({}, ' {unit}s') AS INTERVAL))", as_time(&texts[2]), texts[1]))
        }
        ("datepart", [unit @ Expr::Identifier(_), _]) if unit_of(unit)? == "dow" => {
            Some(format!("(CAST(date_part('dow', {}) AS BIGINT) + 1)", as_time(&texts[1])))
        }
        ("datepart", [unit @ Expr::Identifier(_), _]) => {
            Some(format!("CAST(date_part('{}', {}) AS BIGINT)", unit_of(unit)?, as_time(&texts[1])))
        }
        // Redshift: the unit is a word.
        ("date_part", [unit @ Expr::Identifier(_), _]) => {
            Some(format!("CAST(date_part('{}', {}) AS BIGINT)", unit_of(unit)?, as_time(&texts[1])))
        }
        ("try_convert", [target, _]) => Some(format!("TRY_CAST({} AS {target})", texts[1])),
        ("str", [_, length, places @ ..]) => {
            let places = places.first().map_or_else(|| "0".to_owned(), ToString::to_string);
            let number = |text: String| text.parse::<u8>().ok();
            let (length, places) = (number(length.to_string())?, number(places)?);
            Some(format!("format('{{:{length}.{places}f}}', CAST({} AS DOUBLE))", texts[0]))
        }
        ("choose", [index, choices @ ..]) if !choices.is_empty() => {
            let arms: Vec<String> =
                choices.iter().enumerate().map(|(at, choice)| format!("WHEN {} THEN {choice}", at + 1)).collect();
            Some(format!("CASE {index} {} END", arms.join(" ")))
        }
        ("trunc", [time]) if time.to_string().eq_ignore_ascii_case("now()") => Some("current_date".to_owned()),
        ("datename", [unit, _]) => match unit_of(unit)? {
            "month" => Some(format!("monthname({})", as_time(&texts[1]))),
            "dow" => Some(format!("dayname({})", as_time(&texts[1]))),
            other => Some(format!("CAST(date_part('{other}', {}) AS VARCHAR)", as_time(&texts[1]))),
        },
        ("datefromparts", [_, _, _]) => Some(format!("make_date({}, {}, {})", texts[0], texts[1], texts[2])),
        // BigQuery: the unit comes last, as a word.
        ("date_diff" | "datetime_diff", [first, _, unit @ Expr::Identifier(_)]) if !is_unit_text(first) => {
            Some(format!("date_diff('{}', {}, {})", unit_of(unit)?, as_time(&texts[1]), as_time(&texts[0])))
        }
        ("date_trunc" | "datetime_trunc" | "timestamp_trunc", [first, unit @ Expr::Identifier(_)])
            if !is_unit_text(first) =>
        {
            Some(format!("date_trunc('{}', {})", unit_of(unit)?, texts[0]))
        }
        ("convert", [target, value, style]) => time_as_text(&target.to_string(), value, style),
        // Oracle and Snowflake.
        ("to_date", [_, format]) => {
            Some(format!("CAST(strptime({}, {}) AS DATE)", texts[0], oracle_format(&literal(format)?)?))
        }
        ("to_timestamp", [_, format]) => Some(format!("strptime({}, {})", texts[0], oracle_format(&literal(format)?)?)),
        ("to_varchar", [_, format]) => {
            Some(format!("strftime({}, {})", as_time(&texts[0]), oracle_format(&literal(format)?)?))
        }
        ("trunc", [_, unit]) => {
            Some(format!("date_trunc('{}', {})", oracle_unit(&literal(unit)?)?, as_time(&texts[0])))
        }
        ("decode", [value, choices @ ..]) if choices.len() > 1 => {
            let arms: Vec<String> = choices
                .chunks_exact(2)
                .map(|arm| format!("WHEN {value} IS NOT DISTINCT FROM {} THEN {}", arm[0], arm[1]))
                .collect();
            let otherwise = if choices.len() % 2 == 1 { format!(" ELSE {}", texts.last()?) } else { String::new() };
            Some(format!("CASE {}{otherwise} END", arms.join(" ")))
        }
        // SQLite's are of several values; here the highest few of a column are `max(x, 3)`.
        ("max" | "min", [_, Expr::Value(count)])
            if count.value.to_string().parse::<u32>().is_ok_and(|count| count > 1) =>
        {
            None
        }
        // BigQuery: the bounds of so many parts, from the least to the greatest.
        ("approx_quantiles", [_, Expr::Value(parts)]) => {
            let parts = parts.value.to_string().parse::<u32>().ok().filter(|parts| (1..=100).contains(parts))?;
            let bounds: Vec<String> = (0..=parts).map(|at| (f64::from(at) / f64::from(parts)).to_string()).collect();
            Some(format!("quantile_disc({}, ARRAY[{}])", texts[0], bounds.join(", ")))
        }
        ("max", [_, _, ..]) => Some(format!("greatest({})", texts.join(", "))),
        ("min", [_, _, ..]) => Some(format!("least({})", texts.join(", "))),
        ("charindex" | "locate", [_, _, start]) => {
            let found = format!("strpos(substr({}, {start}), {})", texts[1], texts[0]);
            Some(format!("CASE WHEN {found} = 0 THEN 0 ELSE {found} + {start} - 1 END"))
        }
        ("group_concat", [value, ..]) => {
            let given = separator_of(function);
            // MySQL joins several to one text; of two, SQLite's second is the separator.
            let is_joined = arguments.len() > 2 || (arguments.len() == 2 && given.is_some());
            let separator =
                given.or_else(|| texts.get(1).filter(|_| !is_joined).cloned()).unwrap_or_else(|| "','".to_owned());
            let distinct = function.args.to_string().to_uppercase().starts_with("(DISTINCT ");
            let distinct = if distinct { "DISTINCT " } else { "" };
            let part = |text: &String| format!("CAST({text} AS VARCHAR)");
            let parts: Vec<String> = texts.iter().take(if is_joined { texts.len() } else { 1 }).map(part).collect();
            let joined = if is_joined { format!("({})", parts.join(" || ")) } else { parts.concat() };
            Some(format!("string_agg({distinct}{joined}, {separator}{})", order_of(function, value, &joined)))
        }
        ("count", [_, _, ..]) if function.args.to_string().to_uppercase().starts_with("(DISTINCT ") => {
            // MySQL leaves out what has a null.
            let are_there: Vec<String> = texts.iter().map(|text| format!("{text} IS NOT NULL")).collect();
            Some(format!("count(DISTINCT row({})) FILTER (WHERE {})", texts.join(", "), are_there.join(" AND ")))
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

/// Returns the order of what a call joins, ` ORDER BY ...`; the joined value itself as the text that it is joined as,
/// which distinct values are ordered by alone.
fn order_of(function: &Function, value: &Expr, joined: &str) -> String {
    let FunctionArguments::List(list) = &function.args else { return String::new() };
    let is_distinct = list.duplicate_treatment == Some(DuplicateTreatment::Distinct);
    let order = list.clauses.iter().find_map(|clause| match clause {
        FunctionArgumentClause::OrderBy(order) => Some(order),
        _ => None,
    });
    let parts: Vec<String> = order
        .into_iter()
        .flatten()
        .map(|part| match (is_distinct, part.expr == *value) {
            (true, true) => format!("{joined}{}", if part.options.asc == Some(false) { " DESC" } else { "" }),
            _ => part.to_string(),
        })
        .collect();
    if parts.is_empty() { String::new() } else { format!(" ORDER BY {}", parts.join(", ")) }
}

/// T-SQL's `CONVERT(VARCHAR(10), time, 103)`: a time as text, in the form of a style.
pub(super) fn time_as_text(target: &str, time: &Expr, style: &Expr) -> Option<String> {
    const STYLES: [(&str, &str); 16] = [
        ("1", "%m/%d/%y"),
        ("3", "%d/%m/%y"),
        ("20", "%Y-%m-%d %H:%M:%S"),
        ("23", "%Y-%m-%d"),
        ("101", "%m/%d/%Y"),
        ("102", "%Y.%m.%d"),
        ("103", "%d/%m/%Y"),
        ("104", "%d.%m.%Y"),
        ("105", "%d-%m-%Y"),
        ("106", "%d %b %Y"),
        ("107", "%b %d, %Y"),
        ("108", "%H:%M:%S"),
        ("111", "%Y/%m/%d"),
        ("112", "%Y%m%d"),
        ("120", "%Y-%m-%d %H:%M:%S"),
        ("126", "%Y-%m-%dT%H:%M:%S"),
    ];
    let written = style.to_string();
    let (_, format) = STYLES.iter().find(|(known, _)| *known == written)?;
    let target = target.to_lowercase();
    let (name, length) = target.split_once('(').map_or((target.as_str(), None), |(name, length)| {
        (name, length.trim_end_matches(')').trim().parse::<u32>().ok())
    });
    if !["varchar", "nvarchar", "char", "nchar"].contains(&name.trim()) {
        return None;
    }
    let text = format!("strftime(CAST({time} AS TIMESTAMP), '{format}')");
    Some(length.map_or(text.clone(), |length| format!("left({text}, {length})")))
}

/// Returns the unit to which Oracle's `TRUNC` cuts a time.
fn oracle_unit(written: &str) -> Option<&'static str> {
    Some(match written.to_ascii_uppercase().as_str() {
        "YYYY" | "YEAR" | "YY" | "Y" => "year",
        "Q" => "quarter",
        "MM" | "MONTH" | "MON" => "month",
        "IW" => "week",
        "DD" | "DDD" | "J" => "day",
        "HH" | "HH24" => "hour",
        "MI" => "minute",
        _ => return None,
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

pub(super) fn unit_of(expr: &Expr) -> Option<&'static str> {
    let written = match expr {
        Expr::Identifier(name) => name.value.clone(),
        other => literal(other)?,
    };
    UNITS.iter().find(|(name, _)| written.eq_ignore_ascii_case(name)).map(|(_, unit)| *unit)
}
