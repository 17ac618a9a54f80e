//! SQL from outside: every file of `tests/slt` on an engine of its own, through a session in this process.
//!
//! `UPDATE_SLT=1` completes the files with what the engine answers instead of comparing; `QUERENT_SLT=views` takes only files with
//! this in their names.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, Int64Array, RecordBatch};
use arrow::datatypes::{DataType, SchemaRef};
use arrow::util::display::{ArrayFormatter, FormatOptions};
use async_trait::async_trait;
use querent_catalog::Principal;
use querent_engine::{Engine, EngineError, Limits, Session};
use sqllogictest::{
    AsyncDB, DBOutput, DefaultColumnType, Runner, default_column_validator, default_normalizer, default_validator,
};
use tempfile::TempDir;

/// Opens an engine on an empty folder, which is deleted with the returned guard.
pub(crate) async fn engine() -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    (folder, engine)
}

/// Returns an administrator's session with the default limits.
pub(crate) fn admin(engine: &Engine) -> Session {
    engine.session(Principal::local_admin(), Limits::default())
}

/// Runs a statement to its end and returns all cells as strings, row by row.
pub(crate) async fn rows(session: &Session, sql: &str) -> Result<Vec<Vec<String>>, EngineError> {
    let stream = session.sql(sql).await?;
    let declared = stream.schema();
    let (batches, _) = stream.collect().await?;
    Ok(cells(&declared, &batches))
}

/// Returns the cells of batches as strings, row by row; null is `NULL`.
pub(crate) fn cells(declared: &SchemaRef, batches: &[RecordBatch]) -> Vec<Vec<String>> {
    let options = FormatOptions::default().with_null("NULL");
    let mut rows = Vec::new();
    for batch in batches {
        assert_eq!(&batch.schema(), declared, "every batch has the declared schema");
        let formatters: Vec<_> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        for row in 0..batch.num_rows() {
            let cell = |(column, formatter): (&std::sync::Arc<dyn Array>, &ArrayFormatter<'_>)| {
                let text = formatter.value(row).to_string();
                if text.is_empty() && !column.is_null(row) { "(empty)".to_owned() } else { text }
            };
            rows.push(batch.columns().iter().zip(&formatters).map(cell).collect());
        }
    }
    rows
}

#[tokio::test(flavor = "multi_thread")]
async fn slt_files_hold() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(slt_folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "slt"));
    if let Ok(named) = std::env::var("QUERENT_SLT") {
        files.retain(|file| file.file_name().unwrap().to_string_lossy().contains(&named));
    }
    files.sort();
    assert!(!files.is_empty());
    let update = std::env::var_os("UPDATE_SLT").is_some();
    let mut failures = Vec::new();
    for file in files {
        let (folder, engine) = engine().await;
        let session = admin(&engine).with_variables(Arc::default());
        let mut runner = Runner::new(|| async { Ok(SessionUnderTest(session.clone())) });
        runner.set_var("DATA".into(), folder.path().join("files").display().to_string());
        std::fs::create_dir_all(folder.path().join("files")).unwrap();
        if update {
            runner
                .update_test_file(&file, " ", default_validator, default_normalizer, default_column_validator)
                .await
                .unwrap();
        } else if let Err(error) = runner.run_file_async(&file).await {
            failures.push(error.display(false).to_string());
        }
        engine.close().await.unwrap();
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Statements that grow by a part at a time, planned in a time that does not double with each: in these, it did.
#[tokio::test(flavor = "multi_thread")]
async fn long_statements_are_planned_in_time() {
    const PARTS: usize = 18;
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let chain = |part: fn(usize) -> String| {
        let parts: Vec<String> = (1..=PARTS).map(|at| format!("a{at} AS ({})", part(at - 1))).collect();
        format!("WITH a0 AS (SELECT 1 AS x), {} SELECT x FROM a{PARTS}", parts.join(", "))
    };
    let nested =
        (1..=PARTS).fold("SELECT 1 AS x".to_owned(), |inner, at| format!("SELECT *, 0 AS y FROM ({inner}) q{at}"));
    let branches = (0..500).map(|at| format!("WHEN value = {at} THEN {at}")).collect::<Vec<_>>().join(" ");
    let ors = (0..800).map(|at| format!("value = {at}")).collect::<Vec<_>>().join(" OR ");
    for (sql, expected) in [
        (chain(|before| format!("SELECT *, x AS z{before} FROM a{before}")), "1"),
        (chain(|before| format!("SELECT * EXCLUDE (x), x + 1 AS x FROM a{before}")), "19"),
        // From the second on, `y` is a column, which comes before the alias.
        (chain(|before| format!("SELECT x + 1 AS y, y + 1 AS x FROM a{before}")), "19"),
        (chain(|before| format!("SELECT x + 1 AS y, x FROM a{before} WHERE y > 0")), "1"),
        (chain(|before| format!("SELECT x FROM a{before} AS t(x)")), "1"),
        (format!("SELECT x FROM ({nested}) q"), "1"),
        (format!("SELECT sum(CASE {branches} ELSE 0 END) FROM generate_series(0, 599) AS t(value)"), "124750"),
        (format!("SELECT count(*) FROM generate_series(0, 899) AS t(value) WHERE {ors}"), "800"),
    ] {
        let found = tokio::time::timeout(Duration::from_secs(120), rows(&session, &sql)).await;
        let start = sql.get(..200).unwrap_or(&sql);
        assert_eq!(found.unwrap_or_else(|_| panic!("no end: {start}")).unwrap(), [[expected]], "{start}");
    }
    // DataFusion checks a subquery twice for each level that it is deep.
    let nested = |levels: usize| (0..levels).fold("SELECT 1".to_owned(), |inner, _| format!("SELECT ({inner}) + 1"));
    assert_eq!(rows(&session, &nested(6)).await.unwrap(), [["7"]]);
    let refused = tokio::time::timeout(Duration::from_secs(120), rows(&session, &nested(60))).await.unwrap();
    let error = refused.unwrap_err();
    assert!(error.to_string().contains("nests too deeply"), "{error}");
    // DataFusion writes out a constant whenever it asks for the type of what is around it.
    for (sql, expected) in [
        ("SELECT array_element(range(1, 5000000), 2)", "2"),
        ("SELECT length(repeat('ab', 5000000))", "10000000"),
        ("SELECT cardinality(array_distinct(range(0, 100000)))", "100000"),
        ("SELECT list_transform(range(0, 1000000), v -> v + 1)[1000000]", "1000000"),
        // One that is small is still computed once.
        ("SELECT array_element(range(1, 10), 2) + value FROM generate_series(1, 1) AS t(value)", "3"),
    ] {
        let found = tokio::time::timeout(Duration::from_secs(120), rows(&session, sql)).await;
        assert_eq!(found.unwrap_or_else(|_| panic!("no end: {sql}")).unwrap(), [[expected]], "{sql}");
    }
    // Calls by other names than a function's own, and lambdas within lambdas, have what is within them planned twice.
    let within = |levels: usize, before: &str, inner: &str, after: &str| {
        format!("{}{inner}{}", before.repeat(levels), after.repeat(levels))
    };
    let reversed = within(40, "list_reverse(", "x", ")");
    for (sql, expected) in [
        (format!("SELECT {} AS r", within(20, "list_transform(", "[1]", ", v -> v + 1)")), "[21]"),
        (format!("SELECT {} AS r", within(40, "list_reverse(", "[1, 2]", ")")), "[1, 2]"),
        (format!("SELECT {reversed} AS r FROM (SELECT [1, 2] AS x) GROUP BY {reversed}"), "[1, 2]"),
        (format!("SELECT {} AS r", within(3, "list_transform([1], v -> ", "v", ")")), "[[[1]]]"),
    ] {
        let found = tokio::time::timeout(Duration::from_secs(120), rows(&session, &sql)).await;
        assert_eq!(found.unwrap_or_else(|_| panic!("no end: {sql}")).unwrap(), [[expected]], "{sql}");
    }
    // Each item of a SELECT has the query below walked anew.
    let wide = |items: usize, from: &str| {
        let items: Vec<String> = (1..items).map(|at| format!("c AS c{at}")).collect();
        format!("SELECT c, {} FROM ({from})", items.join(", "))
    };
    for sql in [
        wide(6_000, &wide(6_000, "SELECT 1 AS c")),
        format!("WITH w AS ({}) {}", wide(6_000, "SELECT 1 AS c"), wide(6_000, "SELECT c FROM w")),
    ] {
        let refused = tokio::time::timeout(Duration::from_secs(120), rows(&session, &sql)).await;
        let error = refused.unwrap_or_else(|_| panic!("no end of wide queries")).unwrap_err();
        assert!(error.to_string().contains("takes too long to plan"), "{error}");
    }
    let found = rows(&session, &wide(300, &wide(300, "SELECT 1 AS c"))).await.unwrap();
    assert_eq!(found[0].len(), 300);
    for nested in [within(25, "list_transform([1], v -> ", "v", ")"), within(25, "map(['k'], [", "1", "])")] {
        let refused = tokio::time::timeout(Duration::from_secs(120), rows(&session, &format!("SELECT {nested}"))).await;
        let error = refused.unwrap_or_else(|_| panic!("no end: {nested}")).unwrap_err();
        assert!(error.to_string().contains("nests too deeply"), "{nested}: {error}");
    }
    // Of a structure that has the one before twice, by each of some queries: types are hashed at each SELECT.
    let doubled = |levels: usize, made: &str| {
        let parts: Vec<String> =
            (1..=levels).map(|at| format!("a{at} AS (SELECT {made} AS x FROM a{})", at - 1)).collect();
        format!("WITH a0 AS (SELECT 1 AS x), {} SELECT x['a']['b'] FROM a{levels}", parts.join(", "))
    };
    assert_eq!(rows(&session, &doubled(2, "{'a': x, 'b': x}")).await.unwrap(), [["1"]]);
    let derived = |levels: usize| {
        (0..levels)
            .fold("SELECT 1 AS x".to_owned(), |inner, _| format!("SELECT {{'a': x, 'b': x}} AS x FROM ({inner})"))
    };
    for sql in [
        doubled(18, "{'a': x, 'b': x}"),
        doubled(40, "{'a': x, 'b': x}"),
        doubled(40, "struct_pack(a := x, b := x)"),
        doubled(40, "named_struct('a', x, 'b', x)"),
        doubled(40, "row(x, x)"),
        doubled(40, "(x, x)"),
        doubled(40, "[{'a': x, 'b': x}]"),
        format!("SELECT x IS NULL FROM ({})", derived(40)),
        format!(
            "SELECT {} FROM ({})",
            (0..1_000).map(|at| format!("x AS a{at}")).collect::<Vec<_>>().join(", "),
            derived(14)
        ),
    ] {
        let refused = tokio::time::timeout(Duration::from_secs(120), rows(&session, &sql)).await;
        let start = sql.get(..200).unwrap_or(&sql);
        let error = refused.unwrap_or_else(|_| panic!("no end: {start}")).unwrap_err();
        assert!(error.to_string().contains("has too many parts"), "{start}: {error}");
    }
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_say_what_is_wrong_and_what_is_near() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    for statement in [
        "CREATE TABLE flights (carrier VARCHAR NOT NULL, distance BIGINT)",
        "CREATE SCHEMA sales",
        "CREATE TABLE sales.orders (id INT)",
    ] {
        rows(&session, statement).await.unwrap();
    }
    for (sql, code, message) in [
        ("SELECT carier FROM flights", "column_not_found", "unknown column `carier`; did you mean `carrier`?"),
        ("SELECT f.dist FROM flights f", "column_not_found", "unknown column `f.dist`; did you mean `distance`?"),
        ("SELECT zz FROM flights", "column_not_found", "unknown column `zz`; the columns are carrier, distance"),
        (
            "SELECT * FROM flihgts",
            "table_not_found",
            "unknown table `flihgts` in database `default`; did you mean `flights`?",
        ),
        ("SELECT * FROM salse.orders", "database_not_found", "unknown database `salse`; did you mean `sales`?"),
        (
            "SELECT * FROM other.default.flights",
            "sql_plan_error",
            "unknown catalog `other`; the catalog is `querent`, and a table is `table`, `database.table` or \
             `querent.database.table`",
        ),
        ("SELECT flor(1.5)", "function_not_found", "unknown function `flor`; did you mean `floor`?"),
        (
            "SELECT * FROM generate_serie(1)",
            "function_not_found",
            "unknown function `generate_serie`; did you mean `generate_series`?",
        ),
        (
            "SELECT carrier FROM flights a JOIN flights b ON a.distance = b.distance",
            "sql_plan_error",
            "column `carrier` is in more than one table; qualify it as `table.column`",
        ),
        ("SELEC 1", "sql_parse_error", "expected an SQL statement, found SELEC at line 1, column 1"),
        ("SELECT", "sql_parse_error", "expected an expression, found the end of the statement"),
        ("SELECT 1; SELECT 2", "multiple_statements", "one statement at a time; found 2"),
        ("", "empty_query", "the query is empty"),
        (
            "VACUUM FULL flights",
            "unsupported",
            "VACUUM FULL is not supported; OPTIMIZE t merges small files; \
             `querent expire-snapshots` removes old states",
        ),
        ("INSERT INTO flights (distance) VALUES (1)", "invalid_value", "column `carrier` may not be null"),
        (
            "CREATE TABLE FLIGHTS (a INT)",
            "already_exists",
            "`FLIGHTS` already exists as `flights` (names are unique without regard to case)",
        ),
        (
            "SELECT * FROM generate_series(1, 10000000000)",
            "sql_plan_error",
            "generate_series makes at most 1000000000 rows; use a larger step or a nearer end",
        ),
        ("SELECT 1 / 0", "invalid_value", "division by zero"),
    ] {
        let error = match rows(&session, sql).await {
            Ok(rows) => panic!("`{sql}` ran: {rows:?}"),
            Err(error) => error,
        };
        assert_eq!((error.code(), error.to_string().as_str()), (code, message), "`{sql}`");
    }
}

/// Executed for each row of values, a file would have the rows of the last one: it had those of all.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_and_execute_take_one_row_of_values() {
    let (folder, engine) = engine().await;
    let tables = engine.temporary_tables(64 << 20);
    let session = admin(&engine).with_variables(Arc::default()).with_temporary_tables(tables);
    rows(&session, "PREPARE p AS SELECT $1 + 1").await.unwrap();
    rows(&session, "CREATE TEMPORARY TABLE held AS SELECT 1 AS a").await.unwrap();
    let file = folder.path().join("made.csv");
    let copy = format!("COPY (SELECT ? AS a) TO '{}'", file.display());
    let overwrite = ("INSERT OVERWRITE held SELECT ?", "INSERT OVERWRITE");
    for (sql, label) in [(copy.as_str(), "COPY TO"), ("EXECUTE p(?)", "EXECUTE"), overwrite] {
        let values: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
        let values = RecordBatch::try_from_iter([("1", values)]).unwrap();
        let refusal = session.plan_sql_with_rows(sql, values).await.err().unwrap();
        assert_eq!(refusal.code(), "sql_plan_error", "{sql}: {refusal}");
        assert!(refusal.to_string().contains(&format!("{label} is executed once")), "{sql}: {refusal}");
    }
    assert!(!file.exists(), "nothing is written");
}

/// Each example of the page runs, and answers what the page says.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_what_the_dialect_does() {
    let (folder, engine) = engine().await;
    let session = admin(&engine).with_variables(Arc::default());
    let sales = std::fs::read_to_string(slt_folder().join("duckdb_queries.slt")).unwrap();
    let create = sales.lines().find(|line| line.starts_with("CREATE TABLE sales")).unwrap();
    rows(&session, create).await.unwrap();
    let file = folder.path().join("sales.csv").display().to_string();
    rows(&session, &format!("COPY sales TO '{file}'")).await.unwrap();
    let page = std::fs::read_to_string(querent_tests::package_folder().join("../docs/sql.md")).unwrap();
    let section = page.split("## Against DuckDB and PostgreSQL").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut examples = 0;
    for line in section.lines().filter(|line| line.starts_with("| ")).skip(1) {
        let line = line.replace("\\|", "\u{0}");
        let cells: Vec<String> = line.split('|').map(|cell| cell.trim().replace('\u{0}', "|")).collect();
        let [_, _, here, example, answer, _] = cells.as_slice() else { panic!("{line}") };
        examples += 1;
        let example = example.trim_matches('`').replace("'sales.csv'", &format!("'{file}'"));
        match rows(&session, &example).await {
            Ok(rows) => {
                assert!(!here.starts_with("not here"), "{example}");
                let first = rows.first().unwrap_or_else(|| panic!("{example}: no row")).join(" ");
                assert_eq!(first, answer.trim_matches('`'), "{example}");
            }
            Err(error) => {
                assert_eq!(answer, "an error", "{example}: {error}");
                let refused = ["unsupported", "function_not_found", "invalid_value"].contains(&error.code());
                assert!(refused, "{example}: {} {error}", error.code());
            }
        }
    }
    assert!(examples > 40, "{examples}");
}

/// Each example of the page of types runs, and its value has the type of Arrow that the page says.
#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_which_types_there_are() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    let page = std::fs::read_to_string(querent_tests::package_folder().join("../docs/types.md")).unwrap();
    let table = page.split("| SQL | Arrow |").nth(1).unwrap().split("\n\n").next().unwrap();
    let mut examples = 0;
    for line in table.lines().skip(2) {
        let cells: Vec<&str> = line.split(" | ").map(|cell| cell.trim_matches(&['|', ' '][..])).collect();
        let [_, arrow, _, example, value] = cells.as_slice() else { panic!("{line}") };
        examples += 1;
        let example = example.trim_matches('`');
        let stream = session.sql(example).await.unwrap_or_else(|error| panic!("{example}: {error}"));
        let declared = stream.schema();
        let (batches, _) = stream.collect().await.unwrap();
        let found = cells_of_first_row(&declared, &batches);
        assert_eq!(found, value.trim_matches('`'), "{example}");
        let shown = format!("{:?}", declared.field(0).data_type());
        let kind = shown.split('(').next().unwrap();
        let kind = kind.trim_end_matches(|char: char| char.is_ascii_digit());
        assert!(arrow.contains(kind) || example.contains("length("), "{example}: {shown} is not {arrow}");
    }
    assert!(examples > 15, "{examples}");
}

fn cells_of_first_row(declared: &SchemaRef, batches: &[RecordBatch]) -> String {
    cells(declared, batches).into_iter().flatten().next().expect("a row")
}

fn slt_folder() -> PathBuf {
    querent_tests::package_folder().join("slt")
}

struct SessionUnderTest(Session);

/// Returns an error as a test file writes it: its code, then its message.
#[derive(Debug, thiserror::Error)]
#[error("{code}: {message}")]
struct Refused {
    code: &'static str,
    message: String,
}

#[async_trait]
impl AsyncDB for SessionUnderTest {
    type Error = Refused;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Refused> {
        let refused = |error: EngineError| Refused { code: error.code(), message: error.to_string() };
        let stream = self.0.sql(sql).await.map_err(refused)?;
        let declared = stream.schema();
        let (batches, _) = stream.collect().await.map_err(refused)?;
        if declared.fields().is_empty() {
            return Ok(DBOutput::StatementComplete(0));
        }
        let types = declared.fields().iter().map(|field| column_type(field.data_type())).collect();
        Ok(DBOutput::Rows { types, rows: cells(&declared, &batches) })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        "querent"
    }
}

fn column_type(data_type: &DataType) -> DefaultColumnType {
    match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DefaultColumnType::Text,
        other if other.is_integer() => DefaultColumnType::Integer,
        other if other.is_floating() => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Any,
    }
}
