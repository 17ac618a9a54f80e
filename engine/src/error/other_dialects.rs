//! Functions and statements of other systems, with what stands for them here.

use super::EngineError;

/// Returns the call for a function that other systems have without parentheses, where it is taken for a column.
pub(super) fn call_of_keyword(column: &str) -> Option<&'static str> {
    match column.to_lowercase().as_str() {
        "localtime" => Some("localtime()"),
        "localtimestamp" => Some("localtimestamp()"),
        "user" => Some("current_user"),
        "sysdate" | "systimestamp" => Some("now()"),
        _ => None,
    }
}

/// Returns what to write in place of a call behind a column, `id.sum()`, which the planner takes for a function of a schema.
pub(super) fn called_of(function: &str) -> Option<String> {
    const SCHEMAS: [&str; 5] = ["information_schema", "main", "pg_catalog", "public", "system"];
    let (value, called) = function.rsplit_once('.')?;
    let is_schema = SCHEMAS.iter().any(|schema| value.eq_ignore_ascii_case(schema));
    (!is_schema).then(|| format!("; a function of a column is written {called}({value})"))
}

/// Returns what to write in place of a function that there is not.
pub(super) fn instead_of(function: &str) -> Option<&'static str> {
    const KNOWN: &[(&[&str], &str)] = &[
        (&["getdate", "sysdate", "sysdatetime", "sysutcdatetime"], "now()"),
        (&["curdate"], "current_date"),
        (&["if"], "if(condition, value, otherwise), or CASE WHEN condition THEN value END"),
        (&["curtime"], "current_time"),
        (&["time_format"], "strftime(time, '%H:%M')"),
        (&["date_from_parts", "datefromparts", "to_date_parts"], "make_date(year, month, day)"),
        (&["from_iso8601_date", "from_iso8601_timestamp"], "CAST(text AS DATE) or CAST(text AS TIMESTAMP)"),
        (
            &["dateadd", "date_add_days", "adddate", "timestampadd", "addmonths", "add_months"],
            "time + INTERVAL '1 day'",
        ),
        (&["subdate", "date_subtract"], "time - INTERVAL '1 day'"),
        (&["date_add"], "(time AT TIME ZONE 'Europe/Berlin' + INTERVAL '1 day') AT TIME ZONE 'Europe/Berlin'"),
        (&["erf"], "tanh(1.1283792 * x + 0.1009 * x * x * x), which is right to three digits"),
        (&["erfc"], "1 - tanh(1.1283792 * x + 0.1009 * x * x * x), which is right to three digits"),
        (&["unicode_assigned"], "true: texts are UTF-8"),
        (&["timestampdiff", "months_between"], "date_diff('month', start, end)"),
        (&["datename", "day_name", "monthstr"], "dayname(date) or monthname(date)"),
        (&["str_to_date", "parse_datetime", "parse_timestamp", "parse_date"], "strptime(text, '%Y-%m-%d')"),
        (&["format_date", "format_timestamp", "formatdatetime", "format_datetime"], "strftime(time, '%Y-%m-%d')"),
        (&["unix_timestamp"], "epoch(time)"),
        (&["eomonth"], "last_day(date)"),
        (&["todouble", "tofloat", "toint", "convert", "cast_as", "val"], "CAST(value AS DOUBLE)"),
        (&["try_to_number", "isnumeric", "is_numeric", "safe_cast"], "TRY_CAST(value AS DOUBLE)"),
        (&["to_varchar", "tostring", "str", "to_text"], "CAST(value AS VARCHAR)"),
        (&["rand", "randn"], "random()"),
        (&["newid", "gen_random_uuid", "generate_uuid", "uuid_generate_v4"], "uuid()"),
        (&["explode", "posexplode", "flatten_array", "arrayjoin"], "unnest(list)"),
        (&["collect_list", "grouparray"], "array_agg(value)"),
        (&["collect_set", "groupuniqarray"], "array_agg(DISTINCT value)"),
        (&["uniq", "uniqexact", "approx_count_distinct_ds"], "count(DISTINCT value)"),
        (&["size", "array_size", "sizeof"], "len(list)"),
        (&["percentile", "percentile_approx", "approx_percentile"], "quantile_cont(value, 0.5)"),
        (&["regexp_extract_first"], "regexp_extract(text, pattern)"),
        (&["rlike", "regexp"], "text ~ 'pattern'"),
        (&["parse_json", "try_parse_json", "from_json"], "json_extract(text, '$.key')"),
        (&["json_query"], "json_extract(text, '$.key')"),
        (&["get_json_object", "json_extract_scalar", "jsonextractstring"], "json_extract_string(text, '$.key')"),
        (&["object_keys", "map_entries_keys"], "json_keys(text)"),
        (&["zeroifnull", "isnull_zero", "nz"], "coalesce(value, 0)"),
        (&["nullifzero"], "nullif(value, 0)"),
        (&["decode_case"], "CASE value WHEN 1 THEN 'a' END"),
        (&["sha1", "sha", "hash", "md5_number"], "md5(text) or sha256(text)"),
        (&["uuid_generate_v7"], "uuidv7()"),
        (&["sha224"], "sha256(value)"),
        (&["crc32", "crc32c"], "md5(value)"),
        (&["left_grapheme"], "left(text, count)"),
        (&["right_grapheme"], "right(text, count)"),
        (&["substring_grapheme"], "substring(text, start, count)"),
        (&["nfc_normalize", "normalize"], "strip_accents(text), or import texts that are in one form"),
        (&["to_ascii"], "strip_accents(text)"),
        (&["unistr"], "U&'d\\0061ta'"),
        (&["parse_ident"], "string_split(name, '.')"),
        (&["alias"], "the name as a text"),
        (&["list_histogram"], "histogram(value) over unnest(list)"),
        (&["array_split", "arraysplit", "list_split"], "[list[:n], list[n + 1:]]"),
        (&["json_group_structure"], "json_structure(json_group_array(value))"),
        (&["equi_width_bins"], "range(lower, upper, width)"),
        (&["array_cross_product"], "the three products: [a[2] * b[3] - a[3] * b[2], ...]"),
        (&["array_shuffle", "array_sample"], "(SELECT array_agg(x ORDER BY random()) FROM unnest(list) t(x))"),
        (&["array_fill"], "array_repeat(value, count)"),
        (
            &["get_byte", "get_bit", "set_bit", "set_byte", "bit_position", "bitstring", "bitstring_agg"],
            "numbers with & | << >>",
        ),
        (&["min_scale", "scale"], "length(split_part(CAST(number AS VARCHAR), '.', 2))"),
        (&["trim_scale"], "CAST(number AS DOUBLE)"),
        (&["nextafter"], "x + 1e-15 * abs(x)"),
        (&["setseed"], "TABLESAMPLE ... REPEATABLE (seed), or an order by md5(key)"),
        (&["random_normal"], "sqrt(-2 * ln(random())) * cos(2 * pi() * random())"),
        (&["normalized_interval"], "justify_interval(interval)"),
        (&["timeofday"], "CAST(now() AS VARCHAR)"),
        (&["timezone_hour", "timezone_minute"], "0: instants are shown in UTC"),
        (&["pg_size_pretty"], "format_bytes(bytes)"),
        (&["parse_formatted_bytes"], "the number of bytes"),
        (
            &[
                "pg_backend_pid",
                "current_query_id",
                "current_connection_id",
                "current_transaction_id",
                "txid_current",
                "pg_current_xact_id",
            ],
            "system.queries",
        ),
        (&["current_query"], "system.queries"),
        (&["set_config"], "SET name = value"),
        (&["getvariable"], "a parameter: $1"),
        (&["union_value"], "a struct with a field for each kind"),
        (&["struct_contains", "struct_has"], "list_contains(list, value)"),
        (&["struct_position", "struct_indexof"], "list_position(list, value)"),
        (&["unpivot_list"], "[a, b, c]"),
        (&["remap_struct", "replace_type", "cast_to_type_of"], "a struct of the fields: {'a': s.a::BIGINT}"),
        (&["stats", "is_histogram_other_bin", "can_cast_implicitly"], "SUMMARIZE table, or typeof(value)"),
        (&["in_search_path"], "current_schema()"),
        (&["write_log", "sleep_ms", "pg_sleep"], "a SELECT of values; a statement neither waits nor writes a log"),
        (&["try"], "TRY_CAST(value AS type), or CASE WHEN divisor <> 0 THEN ... END"),
        (&["rank", "dense_rank", "percent_rank", "cume_dist", "row_number", "ntile"], "rank() OVER (ORDER BY value)"),
        (&["arg_max_nulls_last", "arg_min_nulls_last"], "first_value(value ORDER BY key DESC NULLS LAST)"),
        (&["reservoir_quantile"], "approx_quantile(value, 0.5)"),
        (&["histogram_exact", "histogram_values"], "count(*) with GROUP BY value"),
        (&["timetz_byte_comparable", "create_sort_key"], "ORDER BY the value itself"),
        (&["get_type", "vector_type", "variant_typeof"], "typeof(value)"),
        (&["make_type"], "CAST(value AS DECIMAL(10, 2))"),
        (&["uuid_extract_timestamp"], "uuid() and a column DEFAULT now() beside it"),
        (&["error"], "a condition in WHERE, or SELECT of the rows that are wrong"),
        (&["pg_client_encoding"], "'UTF8', which all texts are"),
        (&["pg_sleep_for", "pg_sleep_until"], "a SELECT of values; a statement does not wait"),
        (&["regexp_substr"], "regexp_extract(text, pattern)"),
        (&["make_timestamptz"], "make_timestamp(year, month, day, hour, minute, second) AT TIME ZONE 'Europe/Berlin'"),
        (&["jsonb_set_lax", "json_set_lax"], "jsonb_set(json, path, value)"),
        (
            &["parquet_schema", "parquet_metadata", "parquet_file_metadata", "parquet_kv_metadata"],
            "DESCRIBE SELECT * FROM 'file.parquet'",
        ),
        (&["read_text", "read_blob"], "read_csv or read_json of the file"),
        (&["crosstab", "connectby"], "PIVOT, or WITH RECURSIVE"),
        (&["approx_top_k"], "mode(value), or count(*) with GROUP BY, ORDER BY and LIMIT"),
        (&["fill"], "coalesce(value, last_value(value) IGNORE NULLS OVER (ORDER BY time))"),
        (&["repeat_row"], "FROM range(3) beside the values"),
        (&["repeat"], "unnest(array_repeat(value, count))"),
        (&["duckdb_columns", "duckdb_views", "duckdb_constraints"], "information_schema.columns"),
        (&["duckdb_tables", "duckdb_databases", "duckdb_schemas", "pragma_show_tables"], "information_schema.tables"),
        (&["pragma_table_info"], "information_schema.columns, or DESCRIBE table"),
        (&["duckdb_functions", "duckdb_types", "duckdb_keywords"], "SHOW FUNCTIONS"),
        (&["duckdb_settings", "pg_settings"], "SHOW ALL"),
        (&["test_all_types"], "SELECT of the types' literals"),
        (&["json_serialize_sql", "json_deserialize_sql"], "EXPLAIN query"),
        (&["json_populate_record", "jsonb_populate_record"], "json_to_record(json) AS t(a INTEGER) in FROM"),
        (&["json_populate_recordset", "jsonb_populate_recordset"], "json_to_recordset(json) AS t(a INTEGER) in FROM"),
        (&["jsonb_object"], "json_object('key', value)"),
        (
            &[
                "jsonb_path_query",
                "jsonb_path_query_array",
                "jsonb_path_query_first",
                "jsonb_path_exists",
                "jsonb_path_match",
            ],
            "json_extract(json, '$.a[*]'), and list_filter",
        ),
        (
            &["to_tsvector", "to_tsquery", "plainto_tsquery", "websearch_to_tsquery", "ts_rank", "ts_headline"],
            "hybrid_search(table, ...), or text ILIKE '%word%'",
        ),
        (
            &[
                "int4range",
                "int8range",
                "numrange",
                "daterange",
                "tsrange",
                "tstzrange",
                "isempty",
                "range_merge",
                "multirange",
                "int4multirange",
            ],
            "two columns, and lower <= x AND x < upper",
        ),
        (
            &["inet", "cidr", "host", "netmask", "masklen", "abbrev", "broadcast"],
            "texts, and split_part(address, '.', 1)",
        ),
        (
            &["point", "box", "circle", "line", "lseg", "path", "polygon", "area", "center", "diameter"],
            "numbers x and y, and sqrt((a.x - b.x) ^ 2 + (a.y - b.y) ^ 2)",
        ),
        (
            &["xmlelement", "xmlforest", "xmlagg", "xpath", "xmlparse", "xmltable", "xml_is_well_formed"],
            "JSON: json_object and json_extract",
        ),
        (
            &["has_table_privilege", "has_schema_privilege", "has_column_privilege", "has_database_privilege"],
            "system.policies, or information_schema.tables, which has what you may read",
        ),
        (
            &["pg_get_viewdef", "pg_get_functiondef", "pg_get_indexdef", "pg_get_constraintdef"],
            "SHOW CREATE TABLE name",
        ),
        (
            &["obj_description", "col_description", "shobj_description", "format_type", "to_regclass", "to_regtype"],
            "information_schema.columns",
        ),
        (&["nextval", "currval", "lastval", "setval"], "row_number() OVER (ORDER BY key), or uuid()"),
        (
            &["enum_first", "enum_last", "enum_range", "enum_code", "enum_range_boundary"],
            "a text, or a table of the values",
        ),
        (&["length_grapheme"], "length(text)"),
        (&["list_select", "list_where"], "list_transform(indexes, i -> list[i])"),
        (&["stuff"], "overlay(text PLACING new FROM 1 FOR 2)"),
        (&["space"], "repeat(' ', count)"),
        (&["mid"], "substring(text, start, count)"),
        (&["query", "query_table"], "the query or the table itself in FROM"),
        (&["replicate"], "repeat(text, count)"),
        (&["charindex_from", "locate", "instrb"], "strpos(text, part)"),
        (&["lengthb", "datalength", "octet_len"], "octet_length(text)"),
        (&["truncate"], "trunc(number, digits)"),
        (&["nvl3", "choose"], "CASE WHEN condition THEN value END"),
        (&["database", "current_database", "schema_name"], "SHOW DATABASES"),
        (
            &[
                "read_csv",
                "read_csv_auto",
                "read_json",
                "read_json_auto",
                "read_ndjson",
                "read_parquet",
                "parquet_scan",
                "glob",
            ],
            "FROM 'file.csv' or FROM read_csv('file.csv'), CREATE EXTERNAL TABLE, or `querent import`",
        ),
    ];
    let name = function.to_lowercase();
    KNOWN.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, instead)| *instead)
}

/// What stands in the place of a function of one's own.
pub(crate) const OWN_FUNCTION: &str = "write its expression where it is called; what it would select is a view (CREATE VIEW), or \
                                       WITH name AS (SELECT ...) within one statement";

/// What is said of a statement that nothing is known of.
const STATEMENTS_PAGE: &str = "see docs/sql.md for the statements there are";

/// Returns what to do in the place of a statement that there is not.
pub(super) fn statement_instead(statement: &str) -> &'static str {
    match statement {
        "CREATE MACRO" | "CREATE FUNCTION" => {
            return OWN_FUNCTION;
        }
        "SHOW VIEWS" => return "write SELECT * FROM information_schema.views",
        "CREATE TRIGGER" => return "there are no triggers: write the statement that one would run behind the other",
        "CREATE EXTENSION" | "DROP EXTENSION" => return "leave it out: there are no extensions to load",
        "DROP MACRO" | "DROP FUNCTION" => return "there are no functions of one's own to drop",
        "CREATE TYPE" | "DROP TYPE" => {
            return "write the type where it is used, STRUCT(a INT) or a list; an enumeration is a VARCHAR";
        }
        "CREATE ROLE" | "CREATE USER" | "DROP ROLE" | "DROP USER" => {
            return "leave it out: who calls, with which role and groups, is said by a token; GRANT names GROUP, ROLE and SUBJECT";
        }
        "CREATE SEQUENCE" | "DROP SEQUENCE" => {
            return "number rows with row_number() OVER () + (SELECT max(id) FROM t), or give the column DEFAULT uuid()";
        }
        _ => {}
    }
    let first = statement.split(' ').next().unwrap_or_default();
    match first {
        "ALTER" if !statement.starts_with("ALTER TABLE") => {
            "leave it out: there are tables, views and schemas, without owners, and GRANT says who may read and change them"
        }
        "ALTER" => {
            "write the table anew, CREATE OR REPLACE TABLE t AS SELECT ... FROM t, or alter it in DuckDB, which attaches the \
             same lake"
        }
        "MERGE" => "write the table anew, CREATE OR REPLACE TABLE t AS SELECT ... with a FULL JOIN of the changes",
        "BEGIN" | "START" | "COMMIT" | "END" | "ROLLBACK" | "ABORT" | "SAVEPOINT" | "RELEASE" => {
            "leave it out: each statement is a transaction of its own"
        }
        "PRAGMA" => "DESCRIBE t, SHOW TABLES, SHOW ALL and SET name = value say the same",
        "CALL" | "DO" => "there are no procedures: write a SELECT",
        "LOCK" | "LISTEN" | "NOTIFY" | "UNLISTEN" | "DECLARE" | "FETCH" | "CLOSE" | "DISCARD" => {
            "leave it out: a statement reads one snapshot, and its rows come as they are read"
        }
        "INSTALL" | "LOAD" => "leave it out: there are no extensions to load",
        "ATTACH" | "DETACH" => "write CREATE EXTERNAL TABLE, or import the file, and USE database",
        "VACUUM" | "CHECKPOINT" => "OPTIMIZE t merges small files; `querent expire-snapshots` removes old states",
        "REINDEX" | "CLUSTER" => "leave it out: tables are pruned by their statistics; OPTIMIZE t merges small files",
        _ => STATEMENTS_PAGE,
    }
}

/// Returns the error of a statement that the parser does not know and another system has.
pub(super) fn unknown_statement(message: &str) -> Option<EngineError> {
    let (_, found) = message.split_once("Expected: an SQL statement, found: ")?;
    let what = found.split(' ').next()?.to_uppercase();
    let hint = statement_instead(&what);
    (hint != STATEMENTS_PAGE).then(|| EngineError::Unsupported { what, hint: hint.to_owned() })
}
