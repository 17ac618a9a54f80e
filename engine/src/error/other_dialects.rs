//! Functions of other systems, with what stands for them here.

/// Returns what to write in place of a function that there is not.
pub(super) fn instead_of(function: &str) -> Option<&'static str> {
    const KNOWN: &[(&[&str], &str)] = &[
        (&["getdate", "sysdate", "sysdatetime", "sysutcdatetime", "localtime"], "now()"),
        (&["curdate"], "current_date"),
        (&["curtime"], "current_time"),
        (
            &["dateadd", "date_add_days", "adddate", "timestampadd", "addmonths", "add_months"],
            "time + INTERVAL '1 day'",
        ),
        (&["subdate"], "time - INTERVAL '1 day'"),
        (&["timestampdiff", "months_between"], "date_diff('month', start, end)"),
        (&["datename", "day_name", "monthstr"], "dayname(date) or monthname(date)"),
        (&["str_to_date", "parse_datetime", "parse_timestamp", "parse_date"], "strptime(text, '%Y-%m-%d')"),
        (&["format_date", "format_timestamp", "formatdatetime", "format_datetime"], "strftime(time, '%Y-%m-%d')"),
        (&["unix_timestamp"], "epoch(time)"),
        (&["eomonth"], "last_day(date)"),
        (&["to_number", "todouble", "tofloat", "toint", "convert", "cast_as", "val"], "CAST(value AS DOUBLE)"),
        (&["try_to_number", "isnumeric", "is_numeric", "safe_cast"], "TRY_CAST(value AS DOUBLE)"),
        (&["to_varchar", "tostring", "str", "to_text"], "CAST(value AS VARCHAR)"),
        (&["rand", "randn"], "random()"),
        (&["newid", "gen_random_uuid", "generate_uuid", "uuid_generate_v4"], "uuid()"),
        (&["explode", "posexplode", "flatten_array"], "unnest(list)"),
        (&["collect_list", "grouparray"], "array_agg(value)"),
        (&["collect_set", "groupuniqarray"], "array_agg(DISTINCT value)"),
        (&["uniq", "uniqexact", "approx_count_distinct_ds"], "count(DISTINCT value)"),
        (&["size", "array_size", "sizeof"], "len(list)"),
        (&["percentile", "percentile_approx", "approx_percentile"], "quantile_cont(value, 0.5)"),
        (&["regexp_substr", "regexp_extract_first"], "regexp_extract(text, pattern)"),
        (&["rlike", "regexp"], "text ~ 'pattern'"),
        (&["parse_json", "try_parse_json", "from_json"], "json_extract(text, '$.key')"),
        (
            &["json_query", "get_json_object", "json_extract_scalar", "jsonextractstring"],
            "json_extract_string(text, '$.key')",
        ),
        (&["object_keys", "map_entries_keys"], "json_keys(text)"),
        (&["zeroifnull", "isnull_zero", "nz"], "coalesce(value, 0)"),
        (&["nullifzero"], "nullif(value, 0)"),
        (&["decode_case"], "CASE value WHEN 1 THEN 'a' END"),
        (&["stuff"], "overlay(text PLACING new FROM 1 FOR 2)"),
        (&["space"], "repeat(' ', count)"),
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
            "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '...', or `querent import`",
        ),
    ];
    let name = function.to_lowercase();
    KNOWN.iter().find(|(names, _)| names.contains(&name.as_str())).map(|(_, instead)| *instead)
}
