//! Calls, casts and keys of values that they do not take, with what to write instead.

use super::EngineError;

/// Returns what to write in the place of a call whose arguments a function does not take. `types` are SQL's.
pub(super) fn instead_of_call(function: &str, types: &str) -> String {
    const PARTS_OF_TEXT: [&str; 12] = [
        "substr",
        "strpos",
        "btrim",
        "ltrim",
        "rtrim",
        "bit_length",
        "bit_count",
        "repeat",
        "overlay",
        "replace",
        "reverse",
        "lpad",
    ];
    const OF_TEXT: [&str; 25] = [
        "ascii",
        "bit_length",
        "btrim",
        "contains",
        "encode",
        "ends_with",
        "initcap",
        "levenshtein",
        "lower",
        "ltrim",
        "md5",
        "regexp_like",
        "repeat",
        "replace",
        "rtrim",
        "sha224",
        "sha256",
        "sha384",
        "sha512",
        "split_part",
        "starts_with",
        "string_to_array",
        "strpos",
        "substr",
        "upper",
    ];
    let interval = types.contains("INTERVAL");
    match function {
        "avg" if types.starts_with("DATE") || types.starts_with("TIMESTAMP") => {
            "write epoch_ms(CAST(avg(epoch_ms(time)) AS BIGINT)), or quantile_disc(time, 0.5)".into()
        }
        "median" | "percentile_cont" => {
            "write quantile_disc(value, 0.5), which is one of the values, or cast what it is given to a number".into()
        }
        "sum" if types == "BOOLEAN" => "write count_if(condition)".into(),
        "avg" if types == "BOOLEAN" => "write avg(CAST(condition AS INTEGER))".into(),
        "avg" | "sum" if types.starts_with("INTERVAL") => {
            format!("write to_seconds({function}(date_part('epoch', interval)))")
        }
        "date_trunc" | "isfinite" if interval => "write date_part('hour', interval), and to_hours(n) for an interval".into(),
        "to_char" | "strftime" if interval => "write CAST(interval AS VARCHAR)".into(),
        "date_diff" | "datediff" | "date_sub" | "datesub" if types.split(", ").any(|name| name == "TIME") => {
            "of times of day write date_part('epoch', b - a), or give both a day: DATE '2000-01-01' + time".into()
        }
        "generate_series" | "range" => {
            "write whole numbers, dates or timestamps: list_transform(range(0, 3), i -> 1.1 + i * 1.3)".into()
        }
        "regexp_replace" => "write regexp_replace(text, pattern, replacement, 'g'); it begins at the first character".into(),
        "regexp_instr" => "write strpos(text, regexp_extract(text, pattern))".into(),
        "regexp_extract" => "write regexp_extract(text, pattern, group); without regard to case the pattern begins with (?i)".into(),
        "contains" if types.starts_with("Map") => "write map_contains(map, key)".into(),
        "contains" if types.starts_with("List") => "write list_contains(list, value)".into(),
        "to_hex" => "write hex(value), or to_hex of a whole number".into(),
        name if types.contains("BLOB") && PARTS_OF_TEXT.contains(&name) => {
            "bytes are no text: write encode(bytes, 'hex') for their digits, of which two are a byte, and from_hex(text) back"
                .into()
        }
        "array_append" | "array_concat" if types.contains("VARCHAR") => {
            "write a list, or cast the text: '[3, 4]'::INTEGER[]".into()
        }
        "repeat" if types.contains("List") => "write flatten(array_repeat(list, count))".into(),
        name if OF_TEXT.contains(&name) && !types.starts_with("VARCHAR") => "write it of CAST(value AS VARCHAR)".into(),
        _ => "cast what it is given, such as CAST(value AS DOUBLE)".into(),
    }
}

/// Returns what to write in the place of a cast that there is not, such as `CAST from DATE to BOOLEAN`.
pub(super) fn instead_of_cast(cast: &str) -> Option<&'static str> {
    let (from, to) = cast.strip_prefix("CAST from ")?.split_once(" to ")?;
    let is_time = |name: &str| ["DATE", "TIMESTAMP", "TIME", "INTERVAL"].iter().any(|kind| name.starts_with(kind));
    let is_nested = |name: &str| name.starts_with("STRUCT") || name.starts_with("Map") || name.starts_with("MAP");
    if from == "VARCHAR" && is_nested(to) {
        Some("write json_transform(text, '{\"a\": \"INTEGER\"}') for its fields")
    } else if from.starts_with("STRUCT") && to.starts_with("STRUCT") {
        Some("write the structure with the fields' names: {'a': value.x, 'b': value.y}")
    } else if is_time(from) && !is_time(to) {
        Some("write date_part('epoch', value), or compare it: value > DATE '2000-01-01'")
    } else if is_time(to) && !is_time(from) {
        Some("write to_timestamp(seconds), make_date(year, month, day) or to_days(n)")
    } else {
        None
    }
}

/// Returns what to write in the place of a type that there is not.
pub(super) fn instead_of_type(what: &str) -> Option<&'static str> {
    if what.eq_ignore_ascii_case("count distinct with multiple arguments") {
        return Some("count rows of them: count(DISTINCT (a, b))");
    }
    if what.eq_ignore_ascii_case("multiple recursive references to the same CTE") {
        return Some(READ_ONCE);
    }
    let name = what.strip_prefix("SQL type ")?.to_lowercase();
    if name.contains("serial") {
        return Some(
            "write BIGINT, and number rows with row_number() OVER () + (SELECT max(id) FROM t), or VARCHAR DEFAULT uuid()",
        );
    }
    const KNOWN: [(&[&str], &str); 10] = [
        (&["money", "smallmoney"], "write DECIMAL(19, 4)"),
        (&["number", "decfloat"], "write BIGINT, DECIMAL(38, 0) or DECIMAL(p, s)"),
        (&["varchar2", "nvarchar2", "ntext", "name", "citext", "\"char\""], "write VARCHAR"),
        (&["xml", "tsvector", "hstore", "variant", "object", "geometry", "geography"], "write VARCHAR, or JSON"),
        (&["inet", "cidr", "macaddr", "macaddr8"], "write VARCHAR"),
        (
            &["point", "line", "lseg", "box", "path", "polygon", "circle"],
            "write STRUCT(x DOUBLE, y DOUBLE), or VARCHAR",
        ),
        (&["year", "oid", "rowversion"], "write BIGINT"),
        (&["datetime2", "smalldatetime"], "write TIMESTAMP"),
        (&["datetimeoffset"], "write TIMESTAMPTZ"),
        (&["uniqueidentifier"], "write UUID"),
    ];
    let bare = name.split('(').next().unwrap_or_default().trim();
    let known = KNOWN.iter().find(|(names, _)| names.contains(&bare)).map(|(_, instead)| *instead);
    Some(known.unwrap_or(match bare {
        "enum" | "set" => "write VARCHAR",
        "union" => "write a STRUCT with a field for each kind",
        _ => "write one of the types of docs/types.md; an enumeration is a VARCHAR, and a domain the type below it",
    }))
}

/// Returns the error of rows that are grouped, sorted, joined or compared by values without an order, which are maps, alone and
/// in structures and lists.
pub(super) fn unfit_keys(message: &str) -> Option<EngineError> {
    const WITHOUT_ORDER: [&str; 6] = [
        "Row format support not yet implemented for",
        "Min/Max accumulator not implemented for type Map(",
        "Cannot run range queries on datatype: Map(",
        "Uncomparable values: Map(",
        "Uncomparable values: List(",
        "Uncomparable values: Struct(",
    ];
    WITHOUT_ORDER.iter().any(|said| message.contains(said)).then(|| EngineError::Unsupported {
        what: "a map as a key of groups, of an order or of distinct rows".into(),
        hint: "write its entries, which is a list of structs: map_entries(value)".into(),
    })
}

/// What to write where a recursive query reads itself more than once.
const READ_ONCE: &str =
    "read it once in its recursive part: keep what a row needs of others in columns of its own, or compare behind it";

/// Returns the error of what DataFusion refuses as a bug of its own, and is the statement's.
pub(super) fn from_wrong_use(message: &str) -> Option<EngineError> {
    if message.contains("unnest on struct can only be applied at the root") {
        return Some(EngineError::Unsupported {
            what: "unnest of a structure within an expression or in a subquery".into(),
            hint: "select its fields: value.*, or value.a".into(),
        });
    }
    if message.contains("should be casted to string type during the type coercion") {
        return Some(EngineError::Unsupported {
            what: "concat of bytes that are no text".into(),
            hint: "write a || b, which joins bytes".into(),
        });
    }
    if message.contains("Unexpected empty work table") {
        return Some(EngineError::Unsupported {
            what: "a recursive query that reads itself in a subquery".into(),
            hint: READ_ONCE.into(),
        });
    }
    if message.contains("array_slice got invalid stride") {
        return Some(EngineError::InvalidValue {
            message: "the step of a slice is not 0, and not longer than a list".into(),
        });
    }
    if message.contains("failed to match any signature") {
        let function = message.split('\'').nth(1).unwrap_or_default();
        let instead = instead_of_call(function, "");
        return Some(EngineError::Plan { message: format!("`{function}` takes other values; {instead}") });
    }
    unfit_keys(message)
}
