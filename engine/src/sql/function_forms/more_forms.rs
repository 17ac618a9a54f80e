//! Calls of PostgreSQL and DuckDB whose meaning hangs on how they are written: arguments by name, any number of arguments,
//! patterns of numbers, paths of JSON with `*`.

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DataType, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value,
    ValueWithSpan,
};

use super::time_patterns::parsed_time;
use super::{MAX_REPEATED_NODES, call, filled, parse};
use crate::error::{EngineError, Result};
use crate::sql::syntax::{count_nodes, text_of};
use crate::sql::volatile_queries::calls_volatile;

/// The pattern of any text, so that it is one of a null too, which is unknown.
pub(in crate::sql) const ANY_TEXT: &str = "(?:.*)";
/// The most lists within each other that `unnest` takes apart.
const MAX_DEPTH: u64 = 16;

/// Returns what a call stands for; `None` where it is no such call. Errors: `unsupported`.
pub(super) fn written(name: &str, function: &Function, arguments: Option<&[Expr]>) -> Result<Option<Expr>> {
    Ok(match (name, arguments) {
        ("make_interval", _) => make_interval(function)?,
        // The planner finds no common type of a time and a text; of the branches of CASE it does.
        ("coalesce" | "ifnull" | "nvl", Some(values @ [_, .., _]))
            if values.iter().any(is_time_text) && count_nodes(values) <= MAX_REPEATED_NODES =>
        {
            let last = values.len();
            let branches = (1..last).map(|place| format!("WHEN ${place} IS NOT NULL THEN ${place} "));
            let meaning = format!("CASE {}ELSE ${last} END", branches.collect::<String>());
            Some(filled(parse(&meaning)?, values))
        }
        (
            "list_zip" | "array_zip" | "arrays_zip",
            Some([lists @ .., Expr::Value(ValueWithSpan { value: Value::Boolean(cuts), .. })]),
        ) if !lists.is_empty() && count_nodes(lists) <= MAX_REPEATED_NODES && !lists.iter().any(calls_volatile) => {
            Some(zipped(lists, *cuts)?)
        }
        // Of an interval they count whole ones; of a date they number the one that it is in.
        ("century" | "millennium" | "decade", Some([time])) if is_interval(time) => {
            let years = match name {
                "century" => 100,
                "millennium" => 1000,
                _ => 10,
            };
            let meaning = format!("CAST(date_part('year', $1) AS BIGINT) / {years}");
            Some(Expr::Nested(Box::new(filled(parse(&meaning)?, std::slice::from_ref(time)))))
        }
        // PostgreSQL's, rounded to so many digits of a second.
        ("current_timestamp" | "localtimestamp" | "current_time" | "localtime", Some([digits])) => {
            let digits = digits_of(name, digits)?;
            let step = 10_u32.pow(6 - u32::from(digits));
            let kind = if name.ends_with("timestamp") { "TIMESTAMP" } else { "TIME" };
            let meaning = format!(
                "CAST(date_bin(INTERVAL '{step} microseconds', CAST(now() AS TIMESTAMP) + \
                 INTERVAL '{} microseconds') AS {kind}({digits}))",
                step / 2
            );
            Some(parse(&meaning)?)
        }
        ("unnest", None) => nested_unnest(function)?,
        ("num_nulls" | "num_nonnulls", Some(values @ [_, ..])) => {
            let is_null = if name == "num_nulls" { (1, 0) } else { (0, 1) };
            let counts = (1..=values.len())
                .map(|place| format!("CASE WHEN ${place} IS NULL THEN {} ELSE {} END", is_null.0, is_null.1))
                .collect::<Vec<_>>();
            Some(Expr::Nested(Box::new(filled(parse(&counts.join(" + "))?, values))))
        }
        ("array_fill", Some([value, Expr::Array(Array { elem, .. })])) => match elem.as_slice() {
            [length] => Some(call("array_repeat", vec![value.clone(), length.clone()])),
            _ => {
                return Err(EngineError::Unsupported {
                    what: "array_fill of several dimensions".into(),
                    hint: "write array_repeat(array_repeat(value, 3), 2)".into(),
                });
            }
        },
        ("json_extract" | "json_extract_string", Some([json, path])) if has_wildcard(path) => {
            Some(call(&format!("{name}_all"), vec![json.clone(), path.clone()]))
        }
        // PostgreSQL makes an object of two arrays of texts; DuckDB, of a key and a value.
        ("json_object" | "jsonb_object", Some([keys, ..])) if is_braced(keys) => {
            return Err(EngineError::Unsupported {
                what: format!("{name} of arrays"),
                hint: "write json_object('key', value, ...)".into(),
            });
        }
        ("regexp_matches" | "regexp_like", Some([value, pattern, options @ ..])) => {
            regexp_like(value, pattern, options)
        }
        ("row_to_json" | "to_json" | "to_jsonb", Some([value])) => {
            named_row(value).map(|row| call("to_json", vec![row]))
        }
        ("to_date" | "to_timestamp", Some([value, pattern])) => parsed_time(name, value, pattern)?,
        ("to_number", Some([value, format])) => {
            let (whole, fraction) = places_of_format(format)?;
            // Up to the point, or so many digits behind it.
            let end = if fraction == 0 { "- 1".to_owned() } else { format!("+ {fraction}") };
            let digits = "regexp_replace($1, '[^0-9.]', '', 'g')";
            let meaning = format!(
                "CASE WHEN $1 IS NOT NULL THEN CAST(concat(CASE WHEN regexp_like($1, '[-<]') THEN '-' ELSE '' END, \
                 CASE WHEN regexp_like({digits}, '^0*[0-9]{{0,{whole}}}([.]|$)') \
                 THEN left({digits}, strpos(concat({digits}, '.'), '.') {end}) \
                 ELSE concat($1, ' has more digits than the format') END) AS DOUBLE) END"
            );
            Some(filled(parse(&meaning)?, std::slice::from_ref(value)))
        }
        // PostgreSQL's ends with `=` where it has to; DataFusion's only by another name.
        ("encode", Some([value, format])) if text_of(format).is_some_and(|own| own.eq_ignore_ascii_case("base64")) => {
            Some(call("encode", vec![value.clone(), super::text("base64pad")]))
        }
        ("convert_from" | "convert_to", Some([value, encoding])) => {
            let encoding = encoding.to_string().to_lowercase().replace(['-', '_', '\''], "");
            if !matches!(encoding.as_str(), "utf8" | "unicode") {
                return Err(EngineError::Unsupported {
                    what: format!("{name} of another encoding than UTF-8"),
                    hint: "texts are UTF-8: write CAST(value AS BYTEA), or import the file with its encoding".into(),
                });
            }
            let meaning = if name == "convert_from" { "CAST($1 AS VARCHAR)" } else { "CAST($1 AS BYTEA)" };
            Some(filled(parse(meaning)?, std::slice::from_ref(value)))
        }
        _ => None,
    })
}

/// Whether a text matches a pattern. Of `.*` DataFusion 54 says of a null that it does not, and `c` is no option to it: the default.
fn regexp_like(value: &Expr, pattern: &Expr, options: &[Expr]) -> Option<Expr> {
    let is_default = |options: &[Expr]| matches!(options, [one] if text_of(one) == Some("c"));
    if !is_default(options) && !is_any_text(pattern) {
        return None;
    }
    let pattern = if is_any_text(pattern) { super::text(ANY_TEXT) } else { pattern.clone() };
    let rest: &[Expr] = if is_default(options) { &[] } else { options };
    Some(call("regexp_like", [value.clone(), pattern].into_iter().chain(rest.iter().cloned()).collect()))
}

/// Returns whether a pattern is the one that DataFusion takes for `IS NOT NULL`.
pub(in crate::sql) fn is_any_text(pattern: &Expr) -> bool {
    text_of(pattern) == Some(".*")
}

/// Whether an expression is a text that may be a date or a time.
fn is_time_text(expr: &Expr) -> bool {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = expr else { return false };
    let is_part = |character: char| character.is_ascii_digit() || "-:.+ TZ".contains(character);
    text.starts_with(|first: char| first.is_ascii_digit()) && text.contains(['-', ':']) && text.chars().all(is_part)
}

/// Whether an expression is an interval as it is written.
fn is_interval(expr: &Expr) -> bool {
    match expr {
        Expr::Interval(_) => true,
        Expr::Nested(inner) => is_interval(inner),
        Expr::Cast { data_type: DataType::Interval { .. }, .. } => true,
        Expr::TypedString(typed) => matches!(typed.data_type, DataType::Interval { .. }),
        Expr::BinaryOp {
            left, op: BinaryOperator::Plus | BinaryOperator::Minus | BinaryOperator::Multiply, ..
        } => is_interval(left),
        _ => false,
    }
}

/// Returns how many digits of a second are kept. Errors: what is no number from 0 to 6.
fn digits_of(name: &str, digits: &Expr) -> Result<u8> {
    let written: Option<u8> = match digits {
        Expr::Value(ValueWithSpan { value: Value::Number(digits, _), .. }) => digits.parse().ok(),
        _ => None,
    };
    written.filter(|digits| *digits <= 6).ok_or_else(|| EngineError::Plan {
        message: format!("{name} takes the number of digits of a second, from 0 to 6"),
    })
}

/// `make_interval(days => 10)`, and by place: years, months, weeks, days, hours, minutes, seconds.
fn make_interval(function: &Function) -> Result<Option<Expr>> {
    const PARTS: [(&str, &str); 7] = [
        ("years", "years"),
        ("months", "months"),
        ("weeks", "weeks"),
        ("days", "days"),
        ("hours", "hours"),
        ("mins", "minutes"),
        ("secs", "seconds"),
    ];
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let (mut texts, mut values) = (Vec::new(), Vec::new());
    for (place, argument) in list.args.iter().enumerate() {
        let (part, value) = match argument {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (PARTS.get(place), value),
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                (PARTS.iter().find(|(part, _)| name.value.eq_ignore_ascii_case(part)), value)
            }
            _ => (None, &Expr::Value(ValueWithSpan::from(Value::Null))),
        };
        let Some((_, unit)) = part else {
            let message = "make_interval takes years, months, weeks, days, hours, mins and secs".to_owned();
            return Err(EngineError::Plan { message });
        };
        values.push(value.clone());
        texts.push(format!("CAST(CAST(${} AS VARCHAR) || ' {unit}' AS INTERVAL)", values.len()));
    }
    if texts.is_empty() {
        texts.push("INTERVAL '0 seconds'".to_owned());
    }
    Ok(Some(Expr::Nested(Box::new(filled(parse(&texts.join(" + "))?, &values)))))
}

/// `list_zip(a, b, true)` is as long as the shortest list, of which a null is one without values.
fn zipped(lists: &[Expr], cuts: bool) -> Result<Expr> {
    let of_each = |written: &dyn Fn(usize) -> String| (1..=lists.len()).map(written).collect::<Vec<_>>().join(", ");
    let mut meaning = format!("arrays_zip({})", of_each(&|place| format!("${place}")));
    if cuts && lists.len() > 1 {
        let lengths = of_each(&|place| format!("coalesce(len(${place}), 0)"));
        meaning = format!("({meaning})[1:least({lengths})]");
    }
    Ok(Expr::Nested(Box::new(filled(parse(&meaning)?, lists))))
}

/// `unnest(list, recursive := true)` of lists that are written out, and `unnest(list, max_depth := 2)`.
fn nested_unnest(function: &Function) -> Result<Option<Expr>> {
    let FunctionArguments::List(list) = &function.args else { return Ok(None) };
    let [
        FunctionArg::Unnamed(FunctionArgExpr::Expr(value)),
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(how), .. },
    ] = list.args.as_slice()
    else {
        return Ok(None);
    };
    let refused = |hint: &str| {
        let (what, hint) = ("unnest of this depth".to_owned(), hint.to_owned());
        Err(EngineError::Unsupported { what, hint })
    };
    let depth = match (name.value.to_lowercase().as_str(), how) {
        ("max_depth", Expr::Value(ValueWithSpan { value: Value::Number(depth, _), .. })) => depth.parse().unwrap_or(0),
        ("recursive", Expr::Value(ValueWithSpan { value: Value::Boolean(false), .. })) => 1,
        ("recursive", Expr::Value(ValueWithSpan { value: Value::Boolean(true), .. })) => match literal_depth(value) {
            Some(depth) => depth,
            None => return refused("say how deep: unnest(list, max_depth := 2); fields of structs are value.*"),
        },
        _ => return refused("write unnest(list, max_depth := 2)"),
    };
    if !(1..=MAX_DEPTH).contains(&depth) {
        return refused("write a depth from 1 to 16");
    }
    Ok(Some((0..depth).fold(value.clone(), |inner, _| call("unnest", vec![inner]))))
}

/// Returns how deep lists of plain values and structs are; `None` where it cannot be told.
fn literal_depth(value: &Expr) -> Option<u64> {
    let items = match value {
        Expr::Array(Array { elem, .. }) => elem.as_slice(),
        Expr::Value(_) | Expr::UnaryOp { .. } => return Some(0),
        // A struct is taken apart into its fields, and lists in them stay.
        Expr::Dictionary(fields) => {
            let is_flat = !fields.iter().any(|field| matches!(field.value.as_ref(), Expr::Dictionary(_)));
            return is_flat.then_some(1);
        }
        _ => return None,
    };
    let is_null = |item: &Expr| matches!(item, Expr::Value(ValueWithSpan { value: Value::Null, .. }));
    let mut depths = items.iter().filter(|item| !is_null(item)).map(literal_depth);
    let first = depths.next()??;
    depths.all(|depth| depth == Some(first)).then_some(first + 1)
}

/// Returns whether a path of JSON names all parts of an array or object.
pub(in crate::sql) fn has_wildcard(path: &Expr) -> bool {
    text_of(path).is_some_and(|path| path.starts_with('$') && (path.contains("[*]") || path.contains(".*")))
}

fn is_braced(expr: &Expr) -> bool {
    text_of(expr).is_some_and(|text| text.starts_with('{') && text.ends_with('}'))
}

/// Returns `ROW(1, 2)` with the names that PostgreSQL gives its fields in JSON: f1, f2, ...
pub(super) fn named_row(expr: &Expr) -> Option<Expr> {
    let values = row_values(expr)?;
    let fields = values.into_iter().zip(1..).flat_map(|(value, place)| [super::text(&format!("f{place}")), value]);
    Some(call("named_struct", fields.collect()))
}

/// Returns the values of `ROW(1, 2)`.
fn row_values(expr: &Expr) -> Option<Vec<Expr>> {
    match expr {
        Expr::Nested(inner) => row_values(inner),
        Expr::Tuple(values) | Expr::Struct { values, .. } => Some(values.clone()),
        Expr::Function(function) if function.name.to_string().eq_ignore_ascii_case("struct") => match &function.args {
            FunctionArguments::List(list) => super::positional(list),
            _ => None,
        },
        _ => None,
    }
}

/// Returns how many digits a format has places for before the point and behind it. Errors: a format of which a part is more than
/// where digits, the point and the sign are.
fn places_of_format(format: &Expr) -> Result<(usize, usize)> {
    let places = text_of(format).and_then(|format| {
        let format = format.to_uppercase();
        let format = format.strip_prefix("FM").unwrap_or(&format);
        let format = format.replace("MI", "").replace("PL", "").replace("SG", "").replace("PR", "");
        let is_known = |part: char| matches!(part, '0' | '9' | '.' | 'D' | ',' | 'G' | 'S' | 'L' | '$' | ' ' | '-');
        let digits = |part: &str| part.chars().filter(|part| matches!(part, '0' | '9')).count();
        let (whole, fraction) = format.split_once(['.', 'D']).unwrap_or((format.as_str(), ""));
        format.chars().all(is_known).then(|| (digits(whole), digits(fraction)))
    });
    places.ok_or_else(|| EngineError::Unsupported {
        what: "to_number of this format".into(),
        hint: "write the format with 9, 0, D, G, S and MI, or CAST(text AS DOUBLE)".into(),
    })
}
