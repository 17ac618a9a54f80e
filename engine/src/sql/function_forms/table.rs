//! The table of functions that are expressions: one line each.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::Form;

/// A list of the value of a key, without values where the map has no such key.
const MAP_EXTRACT: &str = "CASE WHEN array_has(map_keys($1), $2) THEN map_extract($1, $2) \
         WHEN $1 IS NOT NULL THEN array_slice(map_extract($1, $2), 2, 2) END";

/// With a backslash in it a text is an `E'...'`, as PostgreSQL writes it whatever its setting is.
const QUOTE_LITERAL: &str = "CASE WHEN strpos(CAST($1 AS VARCHAR), '\\') > 0 THEN 'E' ELSE '' END || '''' || \
         replace(replace(CAST($1 AS VARCHAR), '''', ''''''), '\\', '\\\\') || ''''";
const QUOTE_NULLABLE: &str = "coalesce(CASE WHEN strpos(CAST($1 AS VARCHAR), '\\') > 0 THEN 'E' ELSE '' END || '''' || \
         replace(replace(CAST($1 AS VARCHAR), '''', ''''''), '\\', '\\\\') || '''', 'NULL')";

/// The milliseconds since 1970, then what is random, with the version and the variant that RFC 9562 says.
const UUID_OF_TIME: &str = "to_uuid(concat(\
         substr(lpad(to_hex(CAST(date_part('epoch', now()) * 1000 AS BIGINT)), 12, '0'), 1, 8), '-', \
         substr(lpad(to_hex(CAST(date_part('epoch', now()) * 1000 AS BIGINT)), 12, '0'), 9, 4), \
         '-7', substr(uuid(), 16, 3), '-', substr(uuid(), 20)))";
/// A half is rounded to the even number beside it.
const ROUND_EVEN: &str = "CAST(CASE WHEN abs($1 * power(10, $2)) % 1 = 0.5e0 THEN 2 * round($1 * power(10, $2) / 2) \
         ELSE round($1 * power(10, $2)) END / power(10, $2) AS DOUBLE)";
/// A small integer, as in DuckDB; of what is no number 0.
const SIGN: &str = "CAST(CASE signum($1) WHEN 1 THEN 1 WHEN -1 THEN -1 WHEN 0 THEN 0 WHEN CAST('NaN' AS DOUBLE) THEN 0 END \
         AS TINYINT)";

/// Functions of one row.
const SCALAR: &[(&str, usize, &str)] = &[
    // Parts of dates and times.
    ("year", 1, "CAST(date_part('year', $1) AS BIGINT)"),
    ("quarter", 1, "CAST(date_part('quarter', $1) AS BIGINT)"),
    ("month", 1, "CAST(date_part('month', $1) AS BIGINT)"),
    ("week", 1, "CAST(date_part('week', $1) AS BIGINT)"),
    ("weekofyear", 1, "CAST(date_part('week', $1) AS BIGINT)"),
    ("day", 1, "CAST(date_part('day', $1) AS BIGINT)"),
    ("dayofmonth", 1, "CAST(date_part('day', $1) AS BIGINT)"),
    ("dayofyear", 1, "CAST(date_part('doy', $1) AS BIGINT)"),
    ("dayofweek", 1, "CAST(date_part('dow', $1) AS BIGINT)"),
    ("weekday", 1, "CAST(date_part('dow', $1) AS BIGINT)"),
    ("isodow", 1, "CAST((date_part('dow', $1) + 6) % 7 + 1 AS BIGINT)"),
    ("hour", 1, "CAST(date_part('hour', $1) AS BIGINT)"),
    ("minute", 1, "CAST(date_part('minute', $1) AS BIGINT)"),
    ("second", 1, "CAST(floor(date_part('second', $1)) AS BIGINT)"),
    ("millisecond", 1, "CAST(date_part('millisecond', $1) AS BIGINT)"),
    ("microsecond", 1, "CAST(date_part('microsecond', $1) AS BIGINT)"),
    ("decade", 1, "CAST(floor(date_part('year', $1) / 10.0e0) AS BIGINT)"),
    (
        "century",
        1,
        "CAST(CASE WHEN date_part('year', $1) > 0 THEN ceil(date_part('year', $1) / 100.0e0) \
         ELSE floor((date_part('year', $1) - 1) / 100.0e0) END AS BIGINT)",
    ),
    (
        "millennium",
        1,
        "CAST(CASE WHEN date_part('year', $1) > 0 THEN ceil(date_part('year', $1) / 1000.0e0) \
         ELSE floor((date_part('year', $1) - 1) / 1000.0e0) END AS BIGINT)",
    ),
    ("isoyear", 1, "CAST(strftime($1, '%G') AS BIGINT)"),
    ("yearweek", 1, "CAST(strftime($1, '%G%V') AS BIGINT)"),
    ("nanosecond", 1, "CAST(date_part('nanosecond', $1) AS BIGINT)"),
    ("era", 1, "CAST(CASE WHEN date_part('year', $1) > 0 THEN 1 ELSE 0 + 0 * date_part('year', $1) END AS BIGINT)"),
    ("julian", 1, "date_part('epoch', $1) / 86400.0e0 + 2440588.0e0"),
    (
        "days_in_month",
        1,
        "CAST(date_part('day', date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day') AS BIGINT)",
    ),
    ("epoch", 1, "date_part('epoch', $1)"),
    ("dayname", 1, "strftime($1, '%A')"),
    ("monthname", 1, "strftime($1, '%B')"),
    ("last_day", 1, "CAST(date_trunc('month', $1) + INTERVAL '1 month' - INTERVAL '1 day' AS DATE)"),
    ("date", 1, "CAST($1 AS DATE)"),
    ("date_add", 2, "$1 + $2"),
    ("age", 1, "age(CAST(current_date() AS TIMESTAMP), $1)"),
    ("datepart", 2, "date_part($1, $2)"),
    ("datetrunc", 2, "date_trunc($1, $2)"),
    ("date_trunc", 3, "date_trunc($1, $2 AT TIME ZONE $3) AT TIME ZONE $3"),
    ("greatest_common_divisor", 2, "gcd($1, $2)"),
    ("least_common_multiple", 2, "lcm($1, $2)"),
    ("get_current_timestamp", 0, "now()"),
    ("transaction_timestamp", 0, "now()"),
    ("statement_timestamp", 0, "now()"),
    ("get_current_time", 0, "CAST(now() AS TIME)"),
    ("localtime", 0, "CAST(now() AS TIME)"),
    ("current_localtime", 0, "CAST(now() AS TIME)"),
    ("localtimestamp", 0, "CAST(now() AS TIMESTAMP)"),
    ("current_localtimestamp", 0, "CAST(now() AS TIMESTAMP)"),
    ("today", 0, "current_date()"),
    // Times one: of a parameter it is told that it is a number.
    ("to_years", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' years' AS INTERVAL)"),
    ("to_decades", 1, "CAST(CAST($1 * 10 AS VARCHAR) || ' years' AS INTERVAL)"),
    ("to_centuries", 1, "CAST(CAST($1 * 100 AS VARCHAR) || ' years' AS INTERVAL)"),
    ("to_millennia", 1, "CAST(CAST($1 * 1000 AS VARCHAR) || ' years' AS INTERVAL)"),
    ("make_timestamp_ms", 1, "epoch_ms($1)"),
    ("make_timestamp_ns", 1, "arrow_cast($1, 'Timestamp(Nanosecond, None)')"),
    ("to_quarters", 1, "CAST(CAST($1 * 3 AS VARCHAR) || ' months' AS INTERVAL)"),
    ("to_months", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' months' AS INTERVAL)"),
    ("to_weeks", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' weeks' AS INTERVAL)"),
    ("to_days", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' days' AS INTERVAL)"),
    ("to_hours", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' hours' AS INTERVAL)"),
    ("to_minutes", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' minutes' AS INTERVAL)"),
    ("to_seconds", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' seconds' AS INTERVAL)"),
    ("to_milliseconds", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' milliseconds' AS INTERVAL)"),
    ("to_microseconds", 1, "CAST(CAST($1 * 1 AS VARCHAR) || ' microseconds' AS INTERVAL)"),
    ("clock_timestamp", 0, "now()"),
    ("make_timestamptz", 6, "CAST(make_timestamp($1, $2, $3, $4, $5, $6) AS TIMESTAMP WITH TIME ZONE)"),
    // Texts.
    ("char_length", 1, "len($1)"),
    ("character_length", 1, "len($1)"),
    ("casefold", 1, "lower($1)"),
    ("regexp_substr", 2, "CASE WHEN regexp_like($1, $2) THEN regexp_extract($1, $2) END"),
    ("string_to_table", 3, "unnest(string_to_array($1, $2, $3))"),
    (
        "parse_filename",
        2,
        "CASE WHEN $2 THEN regexp_replace(parse_filename($1), '[.][^.]*$', '') ELSE parse_filename($1) END",
    ),
    ("lcase", 1, "lower($1)"),
    ("ucase", 1, "upper($1)"),
    ("strlen", 1, "octet_length($1)"),
    ("prefix", 2, "starts_with($1, $2)"),
    ("suffix", 2, "ends_with($1, $2)"),
    ("ord", 1, "CASE WHEN $1 = '' THEN -1 ELSE ascii($1) END"),
    ("unicode", 1, "CASE WHEN $1 = '' THEN -1 ELSE ascii($1) END"),
    ("encode", 1, "CAST($1 AS BYTEA)"),
    ("decode", 1, "CAST($1 AS VARCHAR)"),
    ("gen_random_uuid", 0, "uuid()"),
    ("uuidv4", 0, "uuid()"),
    ("uuidv7", 0, UUID_OF_TIME),
    ("uuid_extract_version", 1, "strpos('0123456789abcdef', substr(to_uuid($1), 15, 1)) - 1"),
    ("round_even", 2, ROUND_EVEN),
    ("roundbankers", 2, ROUND_EVEN),
    ("charindex", 2, "strpos($2, $1)"),
    ("regexp_matches", 2, "regexp_like($1, $2)"),
    ("regexp_matches", 3, "regexp_like($1, $2, $3)"),
    ("editdist3", 2, "levenshtein($1, $2)"),
    ("array_slice", 2, "array_slice($1, $2, -1)"),
    ("quote_literal", 1, QUOTE_LITERAL),
    ("quote_nullable", 1, QUOTE_NULLABLE),
    ("to_base64", 1, "encode(CAST($1 AS BYTEA), 'base64pad')"),
    ("base64", 1, "encode(CAST($1 AS BYTEA), 'base64pad')"),
    ("from_base64", 1, "decode($1, 'base64')"),
    ("unhex", 1, "from_hex($1)"),
    // Numbers.
    ("mod", 2, "$1 % $2"),
    ("div", 2, "CAST(trunc($1 / $2) AS BIGINT)"),
    ("fdiv", 2, "floor(CAST($1 AS DOUBLE) / $2)"),
    ("fmod", 2, "$1 - $2 * floor(CAST($1 AS DOUBLE) / $2)"),
    ("add", 2, "$1 + $2"),
    ("subtract", 1, "-$1"),
    ("subtract", 2, "$1 - $2"),
    ("multiply", 2, "$1 * $2"),
    ("divide", 2, "$1 / $2"),
    ("atan2", 2, "atan2(CAST($1 AS DOUBLE), CAST($2 AS DOUBLE))"),
    ("constant_or_null", 2, "CASE WHEN $2 IS NOT NULL THEN $1 END"),
    ("sign", 1, SIGN),
    ("ceiling", 1, "ceil($1)"),
    ("xor", 2, "$1 xor $2"),
    ("log1p", 1, "ln(1.0e0 + $1)"),
    ("e", 0, "exp(1.0e0)"),
    ("even", 1, "CAST(CASE WHEN $1 >= 0 THEN 2 * ceil($1 / 2.0e0) ELSE 2 * floor($1 / 2.0e0) END AS DOUBLE)"),
    (
        "width_bucket",
        4,
        "CASE WHEN $4 IS NULL THEN NULL WHEN $4 < 1 THEN $4 / CAST($4 * 0 AS BIGINT) \
         WHEN $2 < $3 THEN CASE WHEN $1 < $2 THEN 0 WHEN $1 >= $3 THEN $4 + 1 \
         ELSE CAST(floor(($1 - $2) / CAST($3 - $2 AS DOUBLE) * $4) AS BIGINT) + 1 END \
         WHEN $2 > $3 THEN CASE WHEN $1 > $2 THEN 0 WHEN $1 <= $3 THEN $4 + 1 \
         ELSE CAST(floor(($2 - $1) / CAST($2 - $3 AS DOUBLE) * $4) AS BIGINT) + 1 END \
         ELSE $4 / CAST($2 - $3 AS BIGINT) END",
    ),
    (
        "width_bucket",
        2,
        "CASE WHEN $1 IS NOT NULL AND $2 IS NOT NULL THEN \
         CAST(coalesce(array_length(array_filter($2, __bound -> __bound <= $1)), 0) AS BIGINT) END",
    ),
    // Of degrees, to where a double is exact.
    ("sind", 1, "round(sin(radians($1)), 15)"),
    ("cosd", 1, "round(cos(radians($1)), 15)"),
    (
        "tand",
        1,
        "CASE WHEN round(cos(radians($1)), 15) = 0 THEN round(sin(radians($1)), 15) * CAST('Infinity' AS DOUBLE) \
         ELSE round(tan(radians($1)), 14) END",
    ),
    (
        "cotd",
        1,
        "CASE WHEN round(sin(radians($1)), 15) = 0 THEN round(cos(radians($1)), 15) * CAST('Infinity' AS DOUBLE) \
         ELSE round(cot(radians($1)), 14) END",
    ),
    ("asind", 1, "round(degrees(asin($1)), 13)"),
    ("acosd", 1, "round(degrees(acos($1)), 13)"),
    ("atand", 1, "round(degrees(atan($1)), 13)"),
    ("atan2d", 2, "round(degrees(atan2(CAST($1 AS DOUBLE), CAST($2 AS DOUBLE))), 13)"),
    ("to_bin", 1, "bin($1)"),
    ("to_oct", 1, "to_base($1, 8)"),
    // Choices.
    ("if", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("iif", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("iff", 3, "CASE WHEN $1 THEN $2 ELSE $3 END"),
    ("ifnull", 2, "coalesce($1, $2)"),
    ("isnull", 2, "coalesce($1, $2)"),
    ("nvl", 2, "coalesce($1, $2)"),
    ("nvl2", 3, "CASE WHEN $1 IS NOT NULL THEN $2 ELSE $3 END"),
    ("array_push_front", 2, "array_prepend($2, $1)"),
    ("list_push_front", 2, "array_prepend($2, $1)"),
    ("row", 1, "struct($1)"),
    ("row", 2, "struct($1, $2)"),
    ("row", 3, "struct($1, $2, $3)"),
    ("row", 4, "struct($1, $2, $3, $4)"),
    ("struct_extract", 2, "get_field($1, $2)"),
    ("regexp_split_to_table", 2, "unnest(regexp_split_to_array($1, $2))"),
    ("string_to_table", 2, "unnest(string_to_array($1, $2))"),
    ("generate_subscripts", 2, "unnest(generate_series(1, array_length($1, $2)))"),
    ("array_upper", 2, "array_length($1, $2)"),
    ("array_lower", 2, "CASE WHEN array_length($1, $2) > 0 THEN 1 END"),
    ("from_binary", 1, "unbin($1)"),
    // Lists.
    ("list_apply", 2, "array_transform($1, $2)"),
    ("array_apply", 2, "array_transform($1, $2)"),
    ("apply", 2, "array_transform($1, $2)"),
    ("transform", 2, "array_transform($1, $2)"),
    ("filter", 2, "array_filter($1, $2)"),
    ("list_any_match", 2, "array_any_match($1, $2)"),
    ("list_min", 1, "array_min($1)"),
    ("list_first", 1, "array_element($1, 1)"),
    ("list_last", 1, "array_element($1, -1)"),
    ("list_cat", 2, "array_concat($1, $2)"),
    ("list_contains_any", 2, "array_has_any($1, $2)"),
    ("array_reverse_sort", 1, "list_sort($1, 'DESC')"),
    ("array_reverse_sort", 2, "list_sort($1, 'DESC', $2)"),
    ("list_reverse_sort", 1, "list_sort($1, 'DESC')"),
    ("list_reverse_sort", 2, "list_sort($1, 'DESC', $2)"),
    ("list_string_agg", 1, "CASE WHEN list_count($1) > 0 THEN array_to_string($1, ',') END"),
    ("list_approx_count_distinct", 1, "list_unique($1)"),
    ("list_sem", 1, "list_stddev_pop($1) / sqrt(CAST(list_count($1) AS DOUBLE))"),
    ("map_extract", 2, MAP_EXTRACT),
    ("element_at", 2, MAP_EXTRACT),
    ("list_zip", 2, "arrays_zip($1, $2)"),
    ("list_zip", 3, "arrays_zip($1, $2, $3)"),
    ("list_distinct", 1, "array_distinct(array_compact($1))"),
    ("array_distinct", 1, "array_distinct(array_compact($1))"),
    ("list_intersect", 2, "array_intersect(array_compact($1), array_compact($2))"),
    ("array_intersect", 2, "array_intersect(array_compact($1), array_compact($2))"),
    ("list_inner_product", 2, "inner_product($1, $2)"),
    ("list_dot_product", 2, "inner_product($1, $2)"),
    ("list_cosine_similarity", 2, "cosine_similarity($1, $2)"),
    ("list_cosine_distance", 2, "cosine_distance($1, $2)"),
    ("array_inner_product", 2, "inner_product($1, $2)"),
    ("array_dot_product", 2, "inner_product($1, $2)"),
    ("array_cosine_similarity", 2, "cosine_similarity($1, $2)"),
    ("array_cosine_distance", 2, "cosine_distance($1, $2)"),
    ("array_to_string_comma_default", 1, "array_to_string($1, ',')"),
    ("map_contains", 2, "array_has(map_keys($1), $2)"),
    ("map_contains_value", 2, "array_has(map_values($1), $2)"),
    ("map_contains_entry", 3, "coalesce(array_element(map_extract($1, $2), 1) = $3, false)"),
    ("map_extract_value", 2, "array_element(map_extract($1, $2), 1)"),
    ("array_dims", 1, "'[' || array_to_string(array_transform(array_dims($1), __d -> concat('1:', __d)), '][') || ']'"),
    // All that are equal, as in PostgreSQL.
    ("array_remove", 2, "array_remove_all($1, $2)"),
    ("array_replace", 3, "array_replace_all($1, $2, $3)"),
    ("array_zip", 2, "arrays_zip($1, $2)"),
    ("array_zip", 3, "arrays_zip($1, $2, $3)"),
    // JSON.
    ("jsonb_pretty", 1, "json_pretty($1)"),
    ("json_array_elements", 1, "unnest(json_extract_all($1, '$[*]'))"),
    ("jsonb_array_elements", 1, "unnest(json_extract_all($1, '$[*]'))"),
    ("json_array_elements_text", 1, "unnest(json_extract_string_all($1, '$[*]'))"),
    ("jsonb_array_elements_text", 1, "unnest(json_extract_string_all($1, '$[*]'))"),
    ("json_quote", 1, "to_json($1)"),
];

/// A list of JSON of the rows' values; of no rows null, as other aggregates are.
const JSON_LIST: &str = "nullif(concat('[', coalesce(string_agg(coalesce(to_json($1), 'null'), ','), ''), ']'), '[]')";
/// An object of JSON of the rows' keys and values. A key that is null has no JSON, and is refused by `json_object`.
const JSON_OBJECT: &str = "nullif(concat('{', coalesce(string_agg(concat(coalesce(to_json(CAST($1 AS VARCHAR)), \
         json_object(CAST($1 AS VARCHAR), 0)), ':', coalesce(to_json($2), 'null')), ','), ''), '}'), '{}')";

/// Functions of many rows.
const AGGREGATE: &[(&str, usize, &str)] = &[
    ("any_value", 1, "first_value($1) FILTER (WHERE $1 IS NOT NULL)"),
    ("arbitrary", 1, "first_value($1) FILTER (WHERE $1 IS NOT NULL)"),
    ("first", 1, "first_value($1)"),
    ("last", 1, "last_value($1)"),
    ("arg_max", 2, "first_value($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("argmax", 2, "first_value($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("max_by", 2, "first_value($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("arg_min", 2, "first_value($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("argmin", 2, "first_value($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("min_by", 2, "first_value($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    (
        "arg_max",
        3,
        "array_slice(array_agg($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)",
    ),
    (
        "arg_min",
        3,
        "array_slice(array_agg($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)",
    ),
    (
        "max_by",
        3,
        "array_slice(array_agg($1 ORDER BY $2 DESC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)",
    ),
    ("min_by", 3, "array_slice(array_agg($1 ORDER BY $2 ASC) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL), 1, $3)"),
    ("arg_max_null", 2, "first_value($1 ORDER BY $2 DESC) FILTER (WHERE $2 IS NOT NULL)"),
    ("arg_min_null", 2, "first_value($1 ORDER BY $2 ASC) FILTER (WHERE $2 IS NOT NULL)"),
    ("sum_no_overflow", 1, "sum($1)"),
    ("mad", 1, "list_mad(array_agg($1))"),
    ("entropy", 1, "coalesce(list_entropy(array_agg($1)), 0.0e0)"),
    ("reservoir_quantile", 2, "quantile_disc($1, $2)"),
    ("grouping_id", 1, "grouping($1)"),
    ("grouping_id", 2, "grouping($1, $2)"),
    ("grouping_id", 3, "grouping($1, $2, $3)"),
    ("grouping_id", 4, "grouping($1, $2, $3, $4)"),
    ("grouping_id", 5, "grouping($1, $2, $3, $4, $5)"),
    ("sem", 1, "stddev_pop($1) / sqrt(CAST(count($1) AS DOUBLE))"),
    (
        "weighted_avg",
        2,
        "sum(CAST($1 AS DOUBLE) * $2) / sum(CAST(CASE WHEN $1 IS NOT NULL THEN $2 ELSE 0 END AS DOUBLE))",
    ),
    ("wavg", 2, "sum(CAST($1 AS DOUBLE) * $2) / sum(CAST(CASE WHEN $1 IS NOT NULL THEN $2 ELSE 0 END AS DOUBLE))"),
    ("json_group_array", 1, JSON_LIST),
    ("json_agg", 1, JSON_LIST),
    ("json_group_object", 2, JSON_OBJECT),
    ("jsonb_agg", 1, JSON_LIST),
    ("jsonb_object_agg", 2, JSON_OBJECT),
    ("json_object_agg", 2, JSON_OBJECT),
    ("count_if", 1, "count(*) FILTER (WHERE $1)"),
    ("countif", 1, "count(*) FILTER (WHERE $1)"),
    ("sum_if", 2, "sum($1) FILTER (WHERE $2)"),
    ("sumif", 2, "sum($1) FILTER (WHERE $2)"),
    ("avg_if", 2, "avg($1) FILTER (WHERE $2)"),
    ("list", 1, "array_agg($1)"),
    ("string_agg", 1, "string_agg($1, ',')"),
    ("listagg", 1, "string_agg($1, ',')"),
    ("listagg", 2, "string_agg($1, $2)"),
    // Of no rows in a frame, or by an outer row, they are 0 as counts are; the functions themselves are null there.
    ("approx_count_distinct", 1, "coalesce(approx_distinct($1), CAST(0 AS BIGINT UNSIGNED))"),
    ("approx_distinct", 1, "coalesce(approx_distinct($1), CAST(0 AS BIGINT UNSIGNED))"),
    ("regr_count", 2, "count(*) FILTER (WHERE $1 IS NOT NULL AND $2 IS NOT NULL)"),
    ("approx_quantile", 2, "approx_percentile_cont($2) WITHIN GROUP (ORDER BY $1)"),
    ("quantile_cont", 2, "percentile_cont($2) WITHIN GROUP (ORDER BY $1)"),
    ("every", 1, "bool_and($1)"),
    ("logical_and", 1, "bool_and($1)"),
    ("logical_or", 1, "bool_or($1)"),
    ("std", 1, "stddev($1)"),
    ("variance", 1, "var_samp($1)"),
    ("fsum", 1, "sum(CAST($1 AS DOUBLE))"),
    ("sumkahan", 1, "sum(CAST($1 AS DOUBLE))"),
    ("kahan_sum", 1, "sum(CAST($1 AS DOUBLE))"),
    ("favg", 1, "avg(CAST($1 AS DOUBLE))"),
    ("geometric_mean", 1, "exp(avg(ln(CAST($1 AS DOUBLE))))"),
    ("geomean", 1, "exp(avg(ln(CAST($1 AS DOUBLE))))"),
];

/// Names that are aggregates although their meaning is written out in code.
const SPECIAL_AGGREGATES: [&str; 1] = ["group_concat"];

static FORMS: LazyLock<Vec<Form>> = LazyLock::new(|| {
    let form = |aggregate: bool| {
        move |(name, arguments, meaning): &(&'static str, usize, &'static str)| Form {
            name,
            arguments: *arguments,
            meaning,
            aggregate,
        }
    };
    SCALAR.iter().map(form(false)).chain(AGGREGATE.iter().map(form(true))).collect()
});

static AGGREGATE_NAMES: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let named = FORMS.iter().filter(|form| form.aggregate).map(|form| form.name);
    named.chain(SPECIAL_AGGREGATES).collect()
});

/// The functions that aggregates are written out with.
static AGGREGATES: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let functions = crate::functions::aggregate_functions();
    functions
        .iter()
        .flat_map(|function| std::iter::once(function.name().to_owned()).chain(function.aliases().iter().cloned()))
        .collect()
});

pub(super) fn forms() -> impl Iterator<Item = &'static Form> {
    FORMS.iter()
}

/// Returns whether a name in lower case is a form over many rows.
pub(in crate::sql) fn is_aggregate_form(name: &str) -> bool {
    AGGREGATE_NAMES.contains(name)
}

pub(in crate::sql) fn is_aggregate(name: &str) -> bool {
    AGGREGATES.contains(name)
}
