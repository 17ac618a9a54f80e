//! The adversarial statements, by what each is made to exhaust.

use std::io::Write as _;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use flate2::Compression;
use flate2::write::GzEncoder;

/// One statement.
pub(super) struct Attack {
    pub(super) name: &'static str,
    pub(super) text: String,
    /// Its media type.
    pub(super) language: &'static str,
}

fn sql(name: &'static str, text: impl Into<String>) -> Attack {
    Attack { name, text: text.into(), language: "application/sql" }
}

fn kql(name: &'static str, text: impl Into<String>) -> Attack {
    Attack { name, text: text.into(), language: "application/x-kql" }
}

/// `f(f(...f(seed)))`.
fn nested(times: usize, seed: &str, wrap: impl Fn(&str) -> String) -> String {
    (0..times).fold(seed.to_owned(), |inner, _| wrap(&inner))
}

/// One step of a recursive doubling: `SELECT step AS x FROM (...)`.
fn doubled(times: usize, seed: &str, step: &str) -> String {
    nested(times, seed, |inner| format!("SELECT {step} AS x FROM ({inner}) AS inner_rows"))
}

/// Returns all of them.
pub(super) fn attacks() -> Vec<Attack> {
    [aborts(), memory(), time(), planning(), of_kql()].into_iter().flatten().collect()
}

/// What ended the process.
fn aborts() -> Vec<Attack> {
    let types = nested(20_000, "Int64", |inner| format!("List({inner})"));
    let dictionaries = nested(20_000, "Utf8", |inner| format!("Dictionary(Int32, {inner})"));
    vec![
        sql(
            "three nested unnests",
            "SELECT count(*) FROM (SELECT unnest(range(1, 3000)) c FROM (SELECT unnest(range(1, 3000)) b \
             FROM (SELECT unnest(range(1, 3000)) a)))",
        ),
        sql(
            "two nested unnests",
            "SELECT count(*) FROM (SELECT unnest(range(1,100000)) b FROM (SELECT unnest(range(1,100000)) a))",
        ),
        sql(
            "unnests beside a long list",
            "SELECT unnest(r) x, r FROM (SELECT range(1, 200000) r) ORDER BY x DESC LIMIT 1",
        ),
        sql(
            "unnests of unnests",
            "SELECT count(*) FROM (SELECT unnest(unnest(array_repeat(range(1, 3000), 3000))) x, repeat('y', 100000) y)",
        ),
        sql("text to decimal", "SELECT arrow_cast(repeat('9', 100000000), 'Decimal128(38, 0)')"),
        sql("text to decimal, by cast", "SELECT CAST(repeat('9', 100000000) AS DECIMAL(38, 0))"),
        sql("text to decimal, by try_cast", "SELECT TRY_CAST(repeat('9', 100000000) AS DECIMAL(38, 0))"),
        sql(
            "text to decimal, of a column",
            "SELECT CAST(x AS DECIMAL(38, 0)) FROM (SELECT repeat('9', 90000000) x UNION ALL SELECT '1')",
        ),
        sql(
            "text to decimal, in a list",
            "SELECT arrow_cast(make_array(repeat('9', 100000000)), 'List(Decimal256(76, 2))')",
        ),
        sql("text to decimal, compared", "SELECT repeat('9', 100000000) > 1.5"),
        sql("a long pattern", "SELECT 'a' ~ repeat('a', 100000000)"),
        sql("a long pattern of a function", "SELECT regexp_like('a', repeat('a', 100000000))"),
        sql("a long pattern of LIKE", "SELECT 'a' LIKE repeat('%a', 50000000) || '%b'"),
        sql("a long pattern of GLOB", "SELECT 'a' GLOB repeat('a', 100000000)"),
        sql(
            "patterns of each row",
            "SELECT count(*) FROM generate_series(1, 8192) AS t(value) WHERE 'aaaa' ~ ('(a{1,100}){1,100}' || value)",
        ),
        sql(
            "patterns of each row, replaced",
            "SELECT count(regexp_replace('aaaa', '(a{1,100}){1,100}' || value, 'x')) \
             FROM generate_series(1, 8192) AS t(value)",
        ),
        sql("centroids", "SELECT approx_percentile_cont(value, 0.5, 2000000000) FROM generate_series(1, 10)"),
        sql("a number of many digits", format!("SELECT {}", "9".repeat(2_000_000))),
        sql("a fraction of many digits", format!("SELECT 0.{}", "9".repeat(2_000_000))),
        sql("nested types", format!("SELECT arrow_cast(1, '{types}')")),
        sql("nested dictionaries", format!("SELECT arrow_cast('1', '{dictionaries}')")),
        sql("nested SQL types", format!("SELECT CAST(NULL AS INT{})", "[]".repeat(20_000))),
        sql("nested JSON", format!("SELECT json_get('{}', 'a')", "[".repeat(1_000_000))),
        sql("lists of a lambda", "SELECT list_transform(range(1, 100000), x -> range(1, 1000000))"),
        sql(
            "lists of nested lambdas",
            "SELECT list_transform(range(1, 5000), x -> list_transform(range(1, 5000), y -> \
             list_transform(range(1, 5000), z -> x + y + z)))",
        ),
        sql(
            "lists in some cases of a lambda",
            "SELECT list_transform(range(1, 100000), x -> CASE WHEN x % 2 = 0 THEN range(1, 1000000) ELSE [x] END)",
        ),
        sql(
            "a column in a lambda",
            "SELECT list_filter(range(1, 100000), x -> r[x] > 5) FROM (SELECT range(1, 1000000 + value) r \
             FROM generate_series(1, 10) AS t(value))",
        ),
        sql(
            "lists that reduce to a constant",
            "SELECT max(len(list_reduce([value, 1, 2], (x, y) -> range(1, 1000000)))) \
             FROM generate_series(1, 8192) AS t(value)",
        ),
        sql(
            "a join that reads a side again",
            "SELECT count(*) FROM generate_series(1, 30000) a, generate_series(1, 30000) b, generate_series(1, 30) c \
             WHERE a.value + b.value + c.value = 5",
        ),
        sql(
            "large texts in a join",
            "SELECT count(*), max(length(x || b.value)) FROM (SELECT arrow_cast(repeat('x', 100000000), 'LargeUtf8') x) \
             CROSS JOIN generate_series(1, 100000) b",
        ),
        sql(
            "large texts in an aggregate",
            "SELECT length(string_agg(x, ',')) FROM (SELECT repeat('x', 1000000) x FROM generate_series(1, 100000))",
        ),
        sql(
            "large lists in an aggregate",
            "SELECT array_length(array_agg(x)) FROM (SELECT range(1, 100000) x FROM generate_series(1, 100000))",
        ),
        sql(
            "large lists in a sort",
            "SELECT range(1, 300000) r, value FROM generate_series(1, 8192) ORDER BY value DESC LIMIT 5000",
        ),
    ]
}

/// The JSON of an array that has an item so often.
fn many(item: &str, times: usize) -> String {
    format!("'[' || rtrim(repeat('{item},', {times}), ',') || ']'")
}

/// What took all memory.
fn memory() -> Vec<Attack> {
    let window = |aggregate: &str, over: &str| {
        format!("SELECT max(length(s)) FROM (SELECT {aggregate} OVER ({over}) s FROM generate_series(1, 20000))")
    };
    vec![
        sql("growing texts as a window", window("string_agg(repeat('x', 1000), ',')", "ORDER BY value")),
        sql("growing JSON as a window", window("json_group_array(repeat('x', 1000))", "ORDER BY value")),
        sql("a text for each row of a window", window("string_agg(repeat('x', 1000), ',')", "")),
        sql(
            "a long text for each row",
            window("first_value(CASE WHEN value = 1 THEN repeat('x', 10000000) END)", "ORDER BY value"),
        ),
        sql("a long default", window("lag('a', 10000, repeat('x', 10000000))", "ORDER BY value")),
        sql(
            "lists of a window below a filter",
            "SELECT count(*) FROM (SELECT array_agg(value) OVER (ORDER BY value) s FROM generate_series(1, 100000)) \
             WHERE array_length(s) > 5",
        ),
        sql(
            "nested concat",
            format!("SELECT length(x) FROM ({})", doubled(25, "SELECT repeat('a', 1000) AS x", "concat(x, x)")),
        ),
        sql(
            "nested concat of a column",
            format!(
                "SELECT sum(length(x)) FROM ({})",
                doubled(16, "SELECT repeat('a', 1000) || value AS x FROM generate_series(1, 10000)", "concat(x, x)")
            ),
        ),
        sql("nested ||", format!("SELECT length(x) FROM ({})", doubled(25, "SELECT repeat('a', 1000) AS x", "x || x"))),
        sql("regexp_replace", "SELECT length(regexp_replace(repeat('a', 1000000), 'a', repeat('b', 3000), 'g'))"),
        sql(
            "regexp_replace of a column",
            "SELECT sum(length(regexp_replace(repeat('a', 1000) || value, 'a', repeat('b', 3000), 'g'))) \
             FROM generate_series(1, 8192)",
        ),
        sql("replace", "SELECT length(replace(repeat('a', 1000000), 'a', repeat('b', 3000)))"),
        sql(
            "concat_ws",
            "SELECT length(concat_ws(repeat('s', 20000000), 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21))",
        ),
        sql("doubling array_concat", doubled(26, "SELECT range(1, 100) AS x", "array_concat(x, x)") + " LIMIT 1"),
        sql(
            "array_distinct",
            "SELECT sum(array_length(array_distinct(range(1, 100000)))) FROM generate_series(1, 8192)",
        ),
        sql(
            "split_part",
            "SELECT sum(length(split_part(repeat('abc,', 100000) || value, ';', 1))) FROM generate_series(1, 8192)",
        ),
        sql("encode", "SELECT sum(length(encode(repeat('a', 100000) || value, 'hex'))) FROM generate_series(1, 8192)"),
        sql("array_to_string", "SELECT length(array_to_string(range(1, 100000), repeat('s', 100000)))"),
        sql(
            "string_to_array",
            "SELECT sum(array_length(string_to_array(repeat('a,', 1000000) || value, ','))) FROM generate_series(1, 8192)",
        ),
        sql("lists times rows", "SELECT range(1, 300000) r, value FROM generate_series(1, 8192)"),
        sql(
            "lists times rows, counted",
            "SELECT sum(array_length(range(value, value + 300000))) FROM generate_series(1, 8192)",
        ),
        sql(
            "endless recursion",
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
        ),
        sql(
            "endless recursion of distinct rows",
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION SELECT x + 1 FROM r) SELECT count(*) FROM r",
        ),
        sql(
            "doubling recursion",
            "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT r.x + 1 FROM r CROSS JOIN (VALUES (1), (2)) v(y)) \
             SELECT count(*) FROM r",
        ),
        sql(
            "doubling recursion of text",
            "WITH RECURSIVE r AS (SELECT 'abc' AS x UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r",
        ),
        sql(
            "to_char",
            "SELECT sum(length(to_char(to_timestamp(value), \
             repeat('%Y-%m-%d ', 100000)))) FROM generate_series(1, 100000)",
        ),
        sql("format", "SELECT length(format('{:>2000000000}', 'a'))"),
        sql("fields of a format", "SELECT length(printf(repeat('%1$10000d', 5000000), 1))"),
        sql("printf", "SELECT length(printf('%2000000000d', 1))"),
        sql("list_zip", "SELECT len(list_zip(range(1, 20000000), range(1, 20000000), range(1, 20000000)))"),
        sql("rpad", "SELECT length(rpad('x', 2147483647, 'y'))"),
        sql("list_select", "SELECT len(list_select([range(1, 1000000)], array_repeat(1, 1000)))"),
        sql("JSON of many values", format!("SELECT json_array_length({})", many("1", 25_000_000))),
        sql("JSON of many objects", format!("SELECT json_extract({}, '$[0]')", many("{\"a\":1}", 6_000_000))),
        sql("JSON of wide structures", {
            let fields: Vec<String> = (0..1_000).map(|field| format!("\"a{field}\":\"BIGINT\"")).collect();
            format!("SELECT len(json_transform({}, '[{{{}}}]'))", many("{}", 1_000_000), fields.join(","))
        }),
        sql("JSON in JSON", format!("SELECT json_contains({}, {})", many("1", 300_000), many("2", 300_000))),
        sql("JSON of a list", "SELECT length(to_json(array_repeat(true, 50000000)))"),
        sql("rows of JSON", format!("SELECT count(*) FROM json_each({})", many("1", 8_000_000))),
        sql(
            "rows of JSON below a long key",
            format!(
                "SELECT count(*) FROM json_tree('{{\"' || repeat('k', 100000) || '\":' || {} || '}}')",
                many("1", 100_000)
            ),
        ),
        sql("a text as a list", format!("SELECT len(CAST({} AS INTEGER[]))", many("1", 30_000_000))),
        sql("a null of a fixed length", "SELECT arrow_cast(NULL, 'FixedSizeList(2147483647, Float64)')"),
        sql("list_resize", "SELECT sum(len(list_resize([value], 1000000, 5))) FROM generate_series(1, 8192)"),
        sql("many of the largest", "SELECT len(max(value, 1000000000)) FROM generate_series(1, 10000000)"),
        sql("wide rows in an aggregate", {
            let row = "struct(value, repeat('x', 1000), range(1, 100))";
            format!("SELECT array_length(array_agg({row})) FROM generate_series(1, 1000000)")
        }),
        sql("sketches of many groups", {
            let sketches = "approx_distinct(value), approx_percentile_cont(value, 0.5, 10000), histogram(value)";
            format!(
                "SELECT count(*) FROM (SELECT value % 500000 g, {sketches} FROM generate_series(1, 3000000) GROUP BY 1)"
            )
        }),
        sql(
            "recursion of lists",
            "WITH RECURSIVE r AS (SELECT [1] AS x UNION ALL SELECT array_append(x, len(x)) FROM r) SELECT max(len(x)) FROM r",
        ),
        sql("translate", "SELECT length(translate(repeat('a', 50000000), 'a', 'bb'))"),
        sql("lists of lists", "SELECT array_repeat(array_repeat(array_repeat(range(1, 1000), 1000), 1000), 1000)"),
        sql(
            "list_transform",
            "SELECT length(array_to_string(array_transform(range(1, 100000), x -> repeat('a', 100000)), ''))",
        ),
        sql("distinct values", "SELECT count(DISTINCT repeat('x', 1000) || value) FROM generate_series(1, 10000000)"),
        sql(
            "a hash join",
            "SELECT count(*) FROM generate_series(1, 30000000) a JOIN generate_series(1, 30000000) b USING (value)",
        ),
        sql(
            "windows",
            "SELECT sum(s) FROM (SELECT sum(value) OVER (ORDER BY value ROWS BETWEEN 1000000 PRECEDING AND \
             1000000 FOLLOWING) s FROM generate_series(1, 30000000))",
        ),
        sql(
            "percentiles",
            "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY value) FROM generate_series(1, 200000000)",
        ),
    ]
}

/// What took all threads.
fn time() -> Vec<Attack> {
    let keys = |by: &str| (0..15).map(|bit| format!("value {by} {}", 2 + bit)).collect::<Vec<_>>().join(", ");
    vec![
        sql(
            "a cube of 15",
            format!("SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 100000) GROUP BY CUBE({}))", keys("%")),
        ),
        sql(
            "grouping sets",
            format!(
                "SELECT count(*) FROM (SELECT 1 FROM generate_series(1, 1000000) GROUP BY CUBE({}))",
                (0..11).map(|bit| format!("value % {}", 2 + bit)).collect::<Vec<_>>().join(", ")
            ),
        ),
        sql("comparing lists", "SELECT array_has_all(range(1, 30000000), range(1, 30000000))"),
        sql("comparing lists in any order", "SELECT array_has_any(range(1, 20000000), range(20000001, 40000000))"),
        sql(
            "comparing lists of each row",
            "SELECT count(array_has_any(array_repeat(1, 100000 + value), array_repeat(2, 100000 + value))) \
             FROM generate_series(1, 8192) AS t(value)",
        ),
        sql("trimming", "SELECT trim(repeat('a', 3000000), repeat('b', 3000000) || 'a')"),
        sql(
            "trimming each row",
            "SELECT count(rtrim(repeat('a', 100000), repeat('b', 100000) || 'a' || value)) \
             FROM generate_series(1, 8192) AS t(value)",
        ),
        sql(
            "searching each row",
            "SELECT sum(strpos(repeat('a', 1000000) || value, repeat('a', 500000) || 'b' || value)) \
             FROM generate_series(1, 200) AS t(value)",
        ),
        sql("array_except", "SELECT array_length(array_except(range(1, 20000000), range(1, 20000000)))"),
        sql("array_position", "SELECT array_position(range(1, 30000000), -1)"),
        sql("array_sort", "SELECT array_length(array_sort(range(1, 30000000)))"),
        sql("levenshtein", "SELECT levenshtein(repeat('a', 100000), repeat('b', 100000))"),
        sql(
            "regular expressions",
            "SELECT sum(CASE WHEN repeat('a', 100000) || value ~ '(a|a)*(a|a)*b$' THEN 1 ELSE 0 END) \
             FROM generate_series(1, 10000)",
        ),
        sql("large regular expressions", "SELECT 'a' ~ '((a{1,100}){1,100}){1,100}'"),
        sql(
            "a cross join",
            "SELECT count(*) FROM generate_series(1, 1000000) a, generate_series(1, 1000000) b \
             WHERE a.value * b.value % 7 = 8",
        ),
        sql("powers", "SELECT sum(factorial(20) + power(value, 3)) FROM generate_series(1, 500000000)"),
    ]
}

/// What took planning.
fn planning() -> Vec<Attack> {
    let doubled_with: Vec<String> = (1..24)
        .map(|level| format!("c{level} AS (SELECT a.x FROM c{0} a JOIN c{0} b ON a.x = b.x)", level - 1))
        .collect();
    let unioned_with: Vec<String> = (1..24)
        .map(|level| format!("c{level} AS (SELECT x FROM c{0} UNION ALL SELECT x FROM c{0})", level - 1))
        .collect();
    let scalar = nested(20, "SELECT 1 AS x", |inner| format!("SELECT ({inner}) + ({inner}) AS x"));
    let in_list: Vec<String> = (0..200_000).map(|value| value.to_string()).collect();
    let columns: Vec<String> = (0..9_000).map(|column| format!("{column} AS c{column}")).collect();
    vec![
        sql("a long unknown function", format!("SELECT {}(1)", "f".repeat(300_000))),
        sql(
            "doubling WITH by joins",
            format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c23", doubled_with.join(", ")),
        ),
        sql(
            "doubling WITH by unions",
            format!("WITH c0 AS (SELECT 1 AS x), {} SELECT count(*) FROM c23", unioned_with.join(", ")),
        ),
        sql(
            "doubling scalar subqueries",
            if scalar.len() < 15 << 20 {
                scalar
            } else {
                nested(15, "SELECT 1 AS x", |inner| format!("SELECT ({inner}) + ({inner}) AS x"))
            },
        ),
        sql(
            "nested dayname",
            format!("SELECT {}", nested(60, "DATE '2024-01-01'", |inner| format!("dayname(CAST({inner} AS DATE))"))),
        ),
        sql(
            "nested CASE",
            format!(
                "SELECT {}",
                nested(60, "1", |inner| format!(
                    "CASE WHEN {inner} > 1 THEN {inner_short} ELSE 2 END",
                    inner_short = 1
                ))
            ),
        ),
        sql("nested coalesce", format!("SELECT {}", nested(60, "1", |inner| format!("coalesce({inner}, 1)")))),
        sql(
            "a long IN list",
            format!("SELECT count(*) FROM generate_series(1, 1000) WHERE value IN ({})", in_list.join(", ")),
        ),
        sql("many columns", format!("SELECT * FROM (SELECT * FROM (SELECT {}))", columns.join(", "))),
        sql("many unions", format!("SELECT 1{}", " UNION ALL SELECT 1".repeat(590))),
        sql("many natural joins", {
            let tables: Vec<String> = (0..200).map(|table| format!("(SELECT 1 x, 2 y) t{table}")).collect();
            format!("SELECT count(*) FROM {}", tables.join(" NATURAL JOIN "))
        }),
        sql(
            "a long chain over a query",
            format!("SELECT length({}) FROM (SELECT 'xy' AS x)", vec!["x"; 990].join("||")),
        ),
        sql("a chain of sums", format!("SELECT {} FROM generate_series(1, 3) AS t(x)", vec!["x"; 990].join("+"))),
        sql("a chain of changing signs", format!("SELECT x{} FROM generate_series(1, 3) AS t(x)", "+x-x".repeat(240))),
        sql("a chain of arrows", format!("SELECT x{} FROM (SELECT '{{}}' AS x)", "->'a'".repeat(900))),
        sql("JSON of many paths", {
            let paths = vec!["'$[0]'"; 2_000].join(",");
            format!("SELECT json_extract('[{}]', [{paths}])", vec!["1"; 300_000].join(","))
        }),
        sql("the fields of a wide structure", {
            let fields: Vec<String> = (0..5_000).map(|field| format!("a{field} := {field}")).collect();
            format!("SELECT unnest(struct_pack({}))", fields.join(", "))
        }),
        sql("many casts", format!("SELECT 1{}", "::INT::BIGINT".repeat(20_000))),
        sql("many WITH queries", {
            let queries: Vec<String> = (0..5_000).map(|query| format!("c{query} AS (SELECT {query} AS x)")).collect();
            format!("WITH {} SELECT count(*) FROM c0", queries.join(", "))
        }),
        sql(
            "many ORs",
            format!("SELECT count(*) FROM generate_series(1, 10) WHERE value = 0{}", " OR value = 1".repeat(450)),
        ),
    ]
}

/// KQL's.
fn of_kql() -> Vec<Attack> {
    let views: String =
        (1..30).map(|level| format!("let c{level} = view() {{ union c{0}, c{0} }};", level - 1)).collect();
    vec![
        kql("KQL doubling views", format!("let c0 = view() {{ print x = 1 }};{views} c29 | count")),
        kql(
            "KQL periods of a long series",
            "print s = range(1, 1000000) | extend p = series_periods_detect(s, 0.0, 500000.0, 100)",
        ),
        kql(
            "KQL sets of long arrays",
            "print s = range(1, 1000000) | extend p = set_intersect(s, s), q = set_union(s, s), d = set_difference(s, s)",
        ),
        kql("KQL a long constant, named often", {
            format!("let b = '{}'; print {}", "x".repeat(1 << 20), vec!["strlen(b)"; 1_500].join(", "))
        }),
        kql("KQL repeat", "print array_length(repeat(range(1, 100), 800000))"),
        kql("KQL array_shift_left", "print array_length(array_shift_left(range(1, 1000000), 1000000, range(1, 1000)))"),
        kql(
            "KQL array_iff",
            "print c = repeat(true, 100000) | extend x = array_length(array_iff(c, c, bag_pack('a', c)))",
        ),
        kql(
            "KQL treepath",
            "print array_length(treepath(bag_pack(strrep('k', 1000000), bag_zip(split(strrep('a,', 1000), ','), range(1, 1000)))))",
        ),
        kql(
            "KQL toscalar of long lists",
            "let a = toscalar(range i from 1 to 1000000 step 1 | summarize make_list(strrep('x', 1000))); \
             range j from 1 to 10 step 1 | extend b = a",
        ),
        kql("KQL toscalar in many places", {
            "let a = toscalar(print strrep(strrep('a', 1000), 1000)); print ".to_owned() + &vec!["a"; 5_000].join(", ")
        }),
        kql(
            "KQL mv-expand twice",
            "print a = range(1, 3000) | mv-expand a | extend b = range(1, 3000) | mv-expand b \
             | extend c = range(1, 3000) | mv-expand c | count",
        ),
        kql("KQL many ors", format!("print true{}", " or true".repeat(20_000))),
        kql("KQL many ands", format!("print x = true{}", " and true".repeat(20_000))),
        kql("KQL many pluses", format!("print x = 1{}", " + 1".repeat(20_000))),
        kql("KQL nots", format!("print {}true{}", "not(".repeat(5_000), ")".repeat(5_000))),
        kql("KQL pipes", format!("print x = 1{}", " | extend x = x + 1".repeat(5_000))),
        kql("KQL doubling let", {
            let lets: Vec<String> =
                (1..24).map(|level| format!("let c{level} = c{0} | union c{0};", level - 1)).collect();
            format!("let c0 = print x = 1; {} c23 | count", lets.join(" "))
        }),
        kql("KQL doubling let of scalars", {
            let lets: Vec<String> = (1..40).map(|level| format!("let c{level} = c{0} + c{0};", level - 1)).collect();
            format!("let c0 = 1; {} print c39", lets.join(" "))
        }),
        kql("KQL strcat", {
            let steps = " | extend x = strcat(x, x)".repeat(25);
            format!("print x = strrep('a', 1000){steps} | project strlen(x)")
        }),
        kql(
            "KQL strrep",
            "range i from 1 to 10000 step 1 | extend x = strrep(tostring(i), 1000) | extend y = strcat(x, x, x, x) \
             | summarize sum(strlen(y))",
        ),
        kql("KQL replace_regex", "print strlen(replace_regex(strrep('a', 1000), 'a', strrep('b', 1000)))"),
        kql(
            "KQL make_list",
            "range i from 1 to 10000000 step 1 | extend x = strrep('a', 1000) | summarize make_list(x)",
        ),
        kql(
            "KQL scan",
            "range i from 1 to 2000000 step 1 | sort by i asc | scan declare (s: long = 0) with \
             (step a: true => s = s.s + i;) | count",
        ),
        kql("KQL range", "range i from 1 to 100000000000 step 1 | summarize sum(i)"),
        kql("KQL gunzip", format!("print strlen(gzip_decompress_from_base64_string('{}'))", zipped(1 << 30))),
        kql(
            "KQL gunzip of rows",
            format!(
                "range i from 1 to 100000 step 1 | extend z = iff(i > 0, '{}', '') \
                 | summarize sum(strlen(gzip_decompress_from_base64_string(z)))",
                zipped(30 << 20)
            ),
        ),
        kql(
            "KQL paths of a graph",
            "range i from 1 to 300 step 1 | extend j = range(1, 300) | mv-expand j to typeof(long) | make-graph i --> j \
             | graph-match cycles=all (a)-[e*1..30]->(b) project a.i | count",
        ),
        kql(
            "KQL groups of sketches",
            "range i from 1 to 3000000 step 1 | summarize hll(i, 4), tdigest(i), dcount(i, 4) by i % 500000 | count",
        ),
        kql("KQL series_fft", "print s = range(1, 2000000) | extend a = series_fft(s) | project 1"),
        kql("KQL many facets", {
            let columns: Vec<String> = (0..300).map(|column| format!("c{column}")).collect();
            let extended = columns.join(" = i, ");
            format!("range i from 1 to 1000 step 1 | extend {extended} = i | facet by {}", columns.join(", "))
        }),
        kql("KQL parse_json", format!("print parse_json('{}')", "[".repeat(500_000))),
        kql(
            "KQL bag_set_key of a deep path",
            format!("print bag_set_key(dynamic({{}}), '${}', 1)", ".a".repeat(500_000)),
        ),
        kql("KQL indexof of an empty text", "print indexof('abc', '', 0, -1, 9223372036854775807)"),
        kql(
            "KQL contains of a long text",
            "print t = strrep(strrep('a', 1000), 1000), w = strcat(strrep(strrep('a', 500), 1000), 'b') \
             | project t contains w, t has_cs w, countof(t, substring(w, 0, 400000))",
        ),
        kql("KQL zip of many arrays", format!("print zip(range(1, 1000000){})", ", dynamic([])".repeat(500))),
        kql(
            "KQL extract_all of many groups",
            format!("print extract_all('a{}', strrep(strrep('a', 1000), 1000))", "()".repeat(500)),
        ),
        kql(
            "KQL has_any of many terms",
            "print t = strrep(strrep('a ', 1000), 1000) | project t has_any (range(1, 1000000))",
        ),
        kql(
            "KQL translate of long lists",
            "print strlen(translate(strrep(strrep('a', 1000), 1000), 'b', strrep(strrep('c', 1000), 1000)))",
        ),
        kql(
            "KQL polygons that cross everywhere",
            format!(
                "range i from 1 to 100 step 1 | extend s = geo_intersection_2polygons(dynamic({}), dynamic({})) | count",
                comb(400, false),
                comb(400, true)
            ),
        ),
        kql("KQL lines that cross everywhere", {
            let line = |along: usize| {
                let points: Vec<String> = (0..3_000)
                    .map(|point| {
                        let ends = [f64::from(point) * 1e-3, f64::from(point % 2) * 3.0];
                        format!("[{},{}]", ends[along], ends[1 - along])
                    })
                    .collect();
                format!(r#"dynamic({{"type":"LineString","coordinates":[{}]}})"#, points.join(","))
            };
            format!("print s = geo_intersection_2lines({}, {})", line(0), line(1))
        }),
        kql("KQL dense lines", {
            let line = "[".to_owned() + &["[0,60],[170,60]"; 50].join(",") + "]";
            let lines = vec![line; 1_000].join(",");
            let shape = format!(r#"dynamic({{"type":"MultiLineString","coordinates":[{lines}]}})"#);
            format!("print s = strlen(tostring(geo_line_densify({shape}, 0.1)))")
        }),
    ]
}

/// A polygon in the form of a comb, whose teeth stand up or lie.
fn comb(teeth: u32, is_lying: bool) -> String {
    let most = f64::from(teeth);
    let mut corners = vec![[0.0, -2.0], [most, -2.0], [most, -1.0]];
    for tooth in (0..teeth).rev().map(f64::from) {
        let (left, right) = (tooth + 0.2, tooth + 0.7);
        corners.extend([[right, -1.0], [right, most + 1.0], [left, most + 1.0], [left, -1.0]]);
    }
    corners.extend([[0.0, -1.0], [0.0, -2.0]]);
    let corner = |[x, y]: [f64; 2]| {
        let [x, y] = if is_lying { [y, x] } else { [x, y] }.map(|part| part * 1e-3);
        format!("[{x:.4},{y:.4}]")
    };
    let corners: Vec<String> = corners.into_iter().map(corner).collect();
    format!(r#"{{"type":"Polygon","coordinates":[[{}]]}}"#, corners.join(","))
}

/// So many zeros, compressed, as base64.
fn zipped(bytes: usize) -> String {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    let block = vec![b'0'; 1 << 20];
    for _ in 0..bytes >> 20 {
        encoder.write_all(&block).unwrap();
    }
    BASE64_STANDARD.encode(encoder.finish().unwrap())
}
