//! DuckDB as the oracle: its `ducklake` extension attaches the folder while our catalog is open, reads what we
//! wrote and writes beside us; what it writes that we do not read yet is refused. DuckDB runs in another process,
//! because two SQLite libraries in one do not exclude each other.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, Decimal128Array, FixedSizeListArray, Float32Array, Float64Array, ListArray, MapBuilder, RecordBatch,
    StringArray, StringBuilder, StructArray, TimestampMicrosecondArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields, Schema, TimeUnit};
use querent_catalog::{Catalog, CatalogError, ColumnStats, IfExists, TableKind, TableName, TableSource};
use querent_engine::{Engine, Limits};
use querent_tests::Python;
use serde_json::{Value, json};

use crate::lake::{
    admin, column_stats, create_numbers, managed, new, open, resolve, resolve_in, sqlite, write_batch, write_numbers,
};

/// DuckDB writes rows into files, never into the catalog.
const TO_FILES: &str = "DATA_INLINING_ROW_LIMIT 0";

#[tokio::test]
async fn duckdb_reads_what_we_wrote_while_we_are_open() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "Numbers of \"all\" kinds", &[1, 2, 3]).await;
    let name = TableName::new("default", "Numbers of \"all\" kinds");
    catalog.tables().set_comment(&name, None, Some("it's a comment")).await.unwrap();
    catalog.tables().set_comment(&name, Some("b"), Some("the text")).await.unwrap();
    let sql = "SELECT sum(a) AS total FROM \"Numbers of \"\"all\"\" kinds\"";
    let total = Schema::new(vec![Field::new("total", DataType::Int64, true)]);
    let view = TableName::new("default", "total");
    catalog.tables().create_view(&view, sql, "default", &total, IfExists::Error).await.unwrap();
    catalog.tables().set_comment(&view, None, Some("a view")).await.unwrap();

    let results = duckdb(
        folder.path(),
        "",
        &[
            r#"SELECT a, b FROM lake."default"."numbers of ""ALL"" kinds" WHERE a >= 2 ORDER BY a"#,
            "SELECT table_name, comment FROM duckdb_tables() WHERE database_name = 'lake'",
            "SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns() WHERE database_name = 'lake' AND table_name LIKE 'Numbers%'",
            r#"SELECT total::BIGINT FROM lake."default".total"#,
            "SELECT view_name, comment FROM duckdb_views() WHERE database_name = 'lake' AND NOT internal",
            "SELECT count(*) FROM lake.snapshots()",
        ],
    );
    assert_eq!(results[0], json!([[2, "n2"], [3, "n3"]]));
    assert_eq!(results[1], json!([["Numbers of \"all\" kinds", "it's a comment"]]));
    assert_eq!(results[2], json!([["a", "BIGINT", false, null], ["b", "VARCHAR", true, "the text"]]));
    assert_eq!(results[3], json!([[6]]));
    assert_eq!(results[4], json!([["total", "a view"]]));
    assert_eq!(results[5][0][0], json!(catalog.snapshot().await.unwrap() + 1));
}

#[tokio::test]
async fn duckdb_reads_nested_types_and_vectors() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let item = |data_type| Arc::new(Field::new("item", data_type, true));
    let point = Fields::from(vec![Field::new("x", DataType::Float64, true), Field::new("n", DataType::Utf8, true)]);
    let entries =
        Fields::from(vec![Field::new("key", DataType::Utf8, false), Field::new("value", DataType::Utf8, true)]);
    let schema = Schema::new(vec![
        Field::new("v", DataType::FixedSizeList(item(DataType::Float32), 2), true),
        Field::new("l", DataType::List(item(DataType::Struct(point))), true),
        Field::new("m", DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false), true),
        Field::new("d", DataType::Decimal128(10, 2), true),
        Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), true),
    ]);
    let draft = catalog.tables().draft(&TableName::new("default", "nested"), &schema, None).await.unwrap();
    let batch = RecordBatch::try_new(Arc::clone(&draft.write_schema), nested_columns(&draft.write_schema)).unwrap();
    // Bounds of the leaves: v's element, x, n, key, value, d, t.
    let stats = BTreeMap::from([
        (2, column_stats(2, Some("0.5"), Some("1.5"))),
        (5, ColumnStats { contains_nan: Some(false), ..column_stats(1, Some("2.5"), Some("2.5")) }),
        (6, column_stats(1, Some("p"), Some("p"))),
        (8, column_stats(1, Some("k"), Some("k"))),
        (9, column_stats(1, Some("w"), Some("w"))),
        (10, column_stats(1, Some("-1.25"), Some("-1.25"))),
        (11, column_stats(1, Some("2020-01-01 00:00:00+00"), Some("2020-01-01 00:00:00+00"))),
    ]);
    let file = write_batch(&draft.location, &batch, stats);
    new(catalog.tables().create(draft, vec![file], IfExists::Error).await.unwrap());

    let results = duckdb(
        folder.path(),
        "",
        &[
            r#"SELECT v, l, m['k'], d::VARCHAR, epoch_ms(t) FROM lake."default".nested WHERE d < 0"#,
            r#"SELECT typeof(v), typeof(l), typeof(m), typeof(d), typeof(t) FROM lake."default".nested"#,
        ],
    );
    assert_eq!(results[0], json!([[[0.5, 1.5], [{"x": 2.5, "n": "p"}], "w", "-1.25", 1_577_836_800_000_i64]]));
    let types = json!([[
        "FLOAT[]",
        "STRUCT(x DOUBLE, n VARCHAR)[]",
        "MAP(VARCHAR, VARCHAR)",
        "DECIMAL(10,2)",
        "TIMESTAMP WITH TIME ZONE"
    ]]);
    assert_eq!(results[1], types);
}

#[tokio::test]
async fn we_read_what_duckdb_wrote_without_opening_again() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    assert!(catalog.databases().get(&admin(), "main").await.unwrap().is_some());
    duckdb(
        folder.path(),
        TO_FILES,
        &[
            "CREATE SCHEMA lake.Shop",
            "CREATE TABLE lake.Shop.Orders (id BIGINT NOT NULL, tags VARCHAR[], info STRUCT(a INTEGER, b JSON), seen TIMESTAMPTZ, u UUID)",
            "INSERT INTO lake.Shop.Orders VALUES (7, ['a'], {a: 1, b: '{}'}, '2020-01-01 00:00:00+00', uuid()), (9, NULL, NULL, NULL, NULL)",
            "COMMENT ON TABLE lake.Shop.Orders IS 'orders of the shop'",
            "COMMENT ON COLUMN lake.Shop.Orders.tags IS 'labels'",
            "CREATE VIEW lake.Shop.big (n) AS SELECT id FROM lake.Shop.Orders WHERE id > 8",
            "CREATE TABLE lake.plain AS SELECT 1 AS one",
        ],
    );
    let orders = resolve_in(&catalog, "SHOP", "orders").await;
    assert_eq!(orders.info.name, TableName::new("Shop", "Orders"));
    assert_eq!(orders.info.comment.as_deref(), Some("orders of the shop"));
    assert_eq!(orders.info.row_count, Some(2));
    let types: Vec<String> = orders.info.columns.iter().map(|column| column.data_type.to_string()).collect();
    assert_eq!(types, ["Int64", "List(Utf8)", "Struct(\"a\": Int32, \"b\": Utf8)", "Timestamp(µs, \"UTC\")", "Utf8"]);
    assert!(!orders.info.columns[0].nullable);
    assert_eq!(orders.info.columns[1].comment.as_deref(), Some("labels"));
    let files = catalog.tables().data_files(&managed(&orders), &[1]).await.unwrap();
    assert!(files[0].path.exists());
    assert_eq!(files[0].column_stats[&1].max_value.as_deref(), Some("9"));

    let view = resolve_in(&catalog, "shop", "big").await;
    let TableSource::View { sql, default_database } = view.source else { panic!("not a view") };
    assert_eq!(default_database, "Shop");
    assert_eq!(sql, "SELECT * FROM (SELECT id FROM querent.Shop.Orders WHERE (id > 8)) AS aliased(\"n\")");
    assert_eq!(resolve_in(&catalog, "main", "plain").await.info.kind, TableKind::Managed);

    duckdb(
        folder.path(),
        TO_FILES,
        &["ALTER TABLE lake.Shop.Orders RENAME TO Receipts", "DROP TABLE lake.plain", "DROP VIEW lake.Shop.big"],
    );
    assert_eq!(resolve_in(&catalog, "shop", "RECEIPTS").await.info.uuid, orders.info.uuid);
    let gone = ["orders", "big"].map(|table| TableName::new("shop", table));
    assert_eq!(catalog.tables().resolve(&admin(), &gone).await.unwrap(), [None, None]);
    assert!(catalog.tables().resolve(&admin(), &[TableName::new("main", "plain")]).await.unwrap()[0].is_none());
    duckdb(folder.path(), TO_FILES, &["DROP SCHEMA lake.Shop CASCADE"]);
    assert!(catalog.databases().get(&admin(), "shop").await.unwrap().is_none());
}

#[tokio::test]
async fn both_write_the_same_table_in_turn() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1, 2]).await;
    duckdb(folder.path(), TO_FILES, &[r#"INSERT INTO lake."default".numbers VALUES (30, 'duck'), (-4, 'duck')"#]);
    let table = resolve(&catalog, "numbers").await;
    assert_eq!(table.info.row_count, Some(4));
    assert_eq!(catalog.tables().data_files(&managed(&table), &[]).await.unwrap().len(), 2);
    let file = write_numbers(&catalog, &managed(&table), &[100]).await;
    catalog.tables().append(&managed(&table), vec![file]).await.unwrap();
    create_numbers(&catalog, "after", &[5]).await;

    let results = duckdb(
        folder.path(),
        TO_FILES,
        &[
            r#"INSERT INTO lake."default".numbers SELECT 1000, 'last'"#,
            r#"SELECT count(*), min(a), max(a), sum(a)::BIGINT, count(DISTINCT rowid) FROM lake."default".numbers"#,
            r#"SELECT a FROM lake."default".numbers WHERE a > 50 ORDER BY a"#,
            r#"CREATE TABLE lake."default".ducks AS SELECT 1 AS x"#,
            r#"SELECT a FROM lake."default".after"#,
        ],
    );
    assert_eq!(results[1], json!([[6, -4, 1000, 1129, 6]]));
    assert_eq!(results[2], json!([[100], [1000]]));
    assert_eq!(results[4], json!([[5]]));

    let table = resolve(&catalog, "numbers").await;
    let file = write_numbers(&catalog, &managed(&table), &[8]).await;
    catalog.tables().replace_files(&managed(&table), vec![file]).await.unwrap();
    let results = duckdb(folder.path(), "", &[r#"SELECT a FROM lake."default".numbers"#]);
    assert_eq!(results[0], json!([[8]]));
    assert_eq!(resolve(&catalog, "DUCKS").await.info.row_count, Some(1));
}

#[tokio::test]
async fn a_write_that_duckdb_overtook_is_a_conflict_only_if_it_matters() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1]).await;
    let table = managed(&resolve(&catalog, "numbers").await);
    let file = write_numbers(&catalog, &table, &[2]).await;
    duckdb(folder.path(), TO_FILES, &[r#"INSERT INTO lake."default".numbers VALUES (9, 'x')"#]);
    catalog.tables().append(&table, vec![file]).await.unwrap();
    let file = write_numbers(&catalog, &table, &[3]).await;
    duckdb(folder.path(), TO_FILES, &[r#"ALTER TABLE lake."default".numbers ADD COLUMN c INTEGER"#]);
    assert_eq!(catalog.tables().append(&table, vec![file]).await.unwrap_err().code(), "conflict");
    let widened = resolve(&catalog, "numbers").await;
    assert_eq!(widened.info.columns.len(), 3);
    assert_eq!(catalog.tables().data_files(&managed(&widened), &[3]).await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_is_not_read_yet_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    let outside = folder.path().join("outside.parquet");
    let add = format!("CALL ducklake_add_data_files('lake', 'mapped', '{}')", outside.display());
    let copy = format!("COPY (SELECT 7 AS a) TO '{}'", outside.display());
    duckdb(folder.path(), "", &["CREATE TABLE lake.inlined (a INTEGER)", "INSERT INTO lake.inlined VALUES (1)"]);
    duckdb(
        folder.path(),
        TO_FILES,
        &[
            "CREATE TABLE lake.deleted AS SELECT range AS a FROM range(1000)",
            "DELETE FROM lake.deleted WHERE a % 2 = 0",
            "CREATE TABLE lake.defaulted AS SELECT 1 AS a",
            "ALTER TABLE lake.defaulted ADD COLUMN b INTEGER DEFAULT 5",
            "CREATE TABLE lake.spans (i INTERVAL)",
            "CREATE TABLE lake.mapped (a INTEGER)",
            &copy,
            &add,
        ],
    );
    duckdb(
        folder.path(),
        "",
        &["CREATE TABLE lake.few AS SELECT range AS a FROM range(1000)", "DELETE FROM lake.few WHERE a = 3"],
    );
    let cases = [
        ("inlined", "inlined rows"),
        ("deleted", "delete files"),
        ("few", "inlined deletes"),
        ("defaulted", "column `b`"),
        ("spans", "type interval"),
        ("mapped", "mapped by name"),
    ];
    for (table, reason) in cases {
        let resolved = resolve_in(&catalog, "main", table).await;
        let error: CatalogError = catalog.tables().data_files(&managed(&resolved), &[]).await.unwrap_err();
        assert_eq!(error.code(), "unsupported_lake", "{table}");
        assert!(error.to_string().contains(reason) && error.to_string().contains(table), "{error}");
    }
    for table in ["inlined", "deleted", "few"] {
        assert_eq!(resolve_in(&catalog, "main", table).await.info.row_count, None, "{table}");
    }

    let inlined = managed(&resolve_in(&catalog, "main", "inlined").await);
    duckdb(folder.path(), "", &["CALL ducklake_flush_inlined_data('lake')"]);
    let flushed = managed(&resolve_in(&catalog, "main", "inlined").await);
    assert_eq!(catalog.tables().data_files(&flushed, &[]).await.unwrap().len(), 1);
    let replaced = managed(&resolve_in(&catalog, "main", "deleted").await);
    catalog.tables().replace_files(&replaced, Vec::new()).await.unwrap();
    let emptied = managed(&resolve_in(&catalog, "main", "deleted").await);
    assert!(
        catalog.tables().data_files(&emptied, &[]).await.unwrap().is_empty(),
        "no rows are left that a delete could be of"
    );
    assert!(flushed.snapshot > inlined.snapshot);
}

#[tokio::test]
async fn rows_that_duckdb_inlined_can_be_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "numbers", &[1]).await;
    duckdb(folder.path(), "", &[r#"INSERT INTO lake."default".numbers VALUES (2, 'inlined')"#]);
    let table = managed(&resolve(&catalog, "numbers").await);
    assert_eq!(catalog.tables().data_files(&table, &[]).await.unwrap_err().code(), "unsupported_lake");
    let file = write_numbers(&catalog, &table, &[3]).await;
    catalog.tables().replace_files(&table, vec![file]).await.unwrap();
    let table = managed(&resolve(&catalog, "numbers").await);
    assert_eq!(catalog.tables().data_files(&table, &[]).await.unwrap().len(), 1);
    let results = duckdb(folder.path(), "", &[r#"SELECT a FROM lake."default".numbers"#]);
    assert_eq!(results[0], json!([[3]]));
}

#[tokio::test]
async fn names_that_only_duckdb_tells_apart_resolve_as_spelled() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    duckdb(folder.path(), TO_FILES, &["CREATE TABLE lake.\"É\" (a INTEGER)", "CREATE TABLE lake.\"é\" (a INTEGER)"]);
    let upper = resolve_in(&catalog, "main", "É").await.info;
    let lower = resolve_in(&catalog, "main", "é").await.info;
    assert_eq!((upper.name.table.as_str(), lower.name.table.as_str()), ("É", "é"));
    assert_ne!(upper.id, lower.id);
}

#[tokio::test]
async fn snapshots_that_duckdb_expired_hide_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path()).await;
    create_numbers(&catalog, "kept", &[1]).await;
    create_numbers(&catalog, "dropped", &[1]).await;
    duckdb(
        folder.path(),
        TO_FILES,
        &[
            r#"DROP TABLE lake."default".dropped"#,
            "CREATE TABLE lake.fresh AS SELECT 1 AS a",
            "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
        ],
    );
    resolve_in(&catalog, "main", "fresh").await;
    resolve(&catalog, "kept").await;
    assert!(catalog.tables().resolve(&admin(), &[TableName::new("default", "dropped")]).await.unwrap()[0].is_none());
}

#[tokio::test]
async fn a_lake_that_duckdb_made_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir_all(&data).unwrap();
    let options = format!("{TO_FILES}, DATA_PATH '{}/'", data.display());
    duckdb(folder.path(), &options, &["CREATE TABLE lake.first AS SELECT 42 AS a"]);
    let catalog = open(folder.path()).await;
    let first = resolve_in(&catalog, "main", "first").await;
    assert!(catalog.tables().data_files(&managed(&first), &[]).await.unwrap()[0].path.exists());
    create_numbers(&catalog, "second", &[1]).await;
    let results = duckdb(folder.path(), TO_FILES, &[r#"SELECT count(*) FROM lake."default".second, lake.first"#]);
    assert_eq!(results[0], json!([[1]]));
}

#[tokio::test]
async fn files_of_a_lake_that_duckdb_made_through_a_link_are_no_orphans() {
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real"), folder.path().join("link"));
    std::fs::create_dir_all(real.join("data")).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let options = format!("{TO_FILES}, DATA_PATH '{}/'", link.join("data").display());
    duckdb(&real, &options, &["CREATE TABLE lake.first AS SELECT 42 AS a"]);
    let files = || std::fs::read_dir(real.join("data/main/first")).unwrap().count();
    assert_eq!(files(), 1);
    let catalog = open(&real).await;
    let found = catalog.check(Some(std::time::Duration::ZERO)).await.unwrap();
    assert_eq!((found.orphans.len(), found.removed), (0, 0), "{found:?}");
    assert_eq!(files(), 1);
}

#[tokio::test]
async fn we_write_the_rows_that_duckdb_writes() {
    let ours = tempfile::tempdir().unwrap();
    let catalog = open(ours.path()).await;
    make_changes(&catalog).await;
    catalog.close().await.unwrap();

    let theirs = tempfile::tempdir().unwrap();
    let options = format!("{TO_FILES}, DATA_PATH '{}/'", theirs.path().join("data").display());
    duckdb(
        theirs.path(),
        &options,
        &[
            r#"CREATE SCHEMA lake."default""#,
            r#"CREATE TABLE lake."default".numbers (a BIGINT NOT NULL, b VARCHAR)"#,
            r#"INSERT INTO lake."default".numbers VALUES (-1, 'n-1'), (20, 'n20'), (3, 'n3')"#,
            r#"INSERT INTO lake."default".numbers VALUES (100, 'n100')"#,
            r#"COMMENT ON TABLE lake."default".numbers IS 'one'"#,
            r#"COMMENT ON TABLE lake."default".numbers IS 'two'"#,
            r#"COMMENT ON COLUMN lake."default".numbers.b IS 'text'"#,
            r#"CREATE VIEW lake."default"."a view" AS SELECT 1 AS one"#,
            r#"CREATE TABLE lake."default"."x "" y" (l FLOAT[], s STRUCT(k INTEGER, m MAP(VARCHAR, DECIMAL(9,3))))"#,
            r#"DROP VIEW lake."default"."a view""#,
            r#"DROP TABLE lake."default".numbers"#,
            "CREATE SCHEMA lake.\"two words\"",
            "DROP SCHEMA lake.\"two words\"",
        ],
    );
    let schema =
        "SELECT sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'ducklake\\_%' ESCAPE '\\' ORDER BY name";
    assert_eq!(rows(ours.path(), schema), rows(theirs.path(), schema));
    let same = [
        "SELECT key, CASE WHEN key IN ('created_by', 'data_path') THEN '' ELSE value END, scope, scope_id FROM ducklake_metadata ORDER BY key",
        "SELECT snapshot_id, schema_version, next_catalog_id, next_file_id FROM ducklake_snapshot ORDER BY 1",
        "SELECT * FROM ducklake_snapshot_changes ORDER BY 1",
        "SELECT schema_id, begin_snapshot, end_snapshot, schema_name, CASE WHEN path = schema_uuid || '/' THEN 'uuid' ELSE path END, path_is_relative FROM ducklake_schema ORDER BY 1",
        "SELECT table_id, begin_snapshot, end_snapshot, schema_id, table_name, CASE WHEN path = table_uuid || '/' THEN 'uuid' ELSE path END, path_is_relative FROM ducklake_table ORDER BY 1",
        "SELECT view_id, begin_snapshot, end_snapshot, schema_id, view_name, column_aliases FROM ducklake_view ORDER BY 1",
        "SELECT * FROM ducklake_tag ORDER BY 1, 2",
        "SELECT * FROM ducklake_column_tag ORDER BY 1, 2",
        "SELECT * FROM ducklake_column ORDER BY table_id, column_id",
        "SELECT * FROM ducklake_schema_versions ORDER BY 1",
        "SELECT table_id, record_count, next_row_id FROM ducklake_table_stats ORDER BY 1",
        "SELECT * FROM ducklake_table_column_stats ORDER BY 1, 2",
        "SELECT data_file_id, table_id, begin_snapshot, end_snapshot, file_order, substr(path, 1, 9), path_is_relative, file_format, record_count, row_id_start, partition_id, encryption_key, mapping_id, partial_max FROM ducklake_data_file ORDER BY 1",
        "SELECT data_file_id, table_id, column_id, value_count, null_count, min_value, max_value, contains_nan, extra_stats FROM ducklake_file_column_stats ORDER BY 1, 3",
    ];
    for query in same {
        assert_eq!(rows(ours.path(), query), rows(theirs.path(), query), "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_writes_the_statistics_that_duckdb_writes() {
    let folder = tempfile::tempdir().unwrap();
    let engine = Engine::open(folder.path()).await.unwrap();
    let session = engine.session(admin(), Limits::default());
    for statement in [
        "CREATE TABLE mixed (i INTEGER NOT NULL, big BIGINT UNSIGNED, price DECIMAL(12,2), ratio DOUBLE, small REAL,
         ok BOOLEAN, name VARCHAR, day DATE, seen TIMESTAMP, tz TIMESTAMP WITH TIME ZONE, clock TIME, raw BYTEA)",
        "INSERT INTO mixed VALUES
         (-7, 18446744073709551615, -1.50, 'NaN', 0.1, true, 'é', '1969-12-31', '2020-01-01T00:00:00.5', '2020-01-01T01:00:00+01:00', '01:02:03.25', X'00ff'),
         (12, 0, 99.00, 1e300, -2.5, false, '', '2024-02-29', '1960-05-05T10:00:00', '2021-06-01T00:00:00Z', '23:59:59', X''),
         (3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
        "CREATE TABLE nested AS SELECT [1, 2, 3] AS l, named_struct('a', 5, 'b', 'x') AS s",
    ] {
        session.sql(statement).await.unwrap().collect().await.unwrap();
    }
    let results = duckdb(
        folder.path(),
        TO_FILES,
        &[
            r#"CREATE TABLE lake.mixed AS SELECT * FROM lake."default".mixed"#,
            r#"CREATE TABLE lake.nested AS SELECT * FROM lake."default".nested"#,
            r#"SELECT count(*) FROM lake."default".mixed WHERE isnan(ratio) AND name = 'é' AND price < 0 AND clock = '01:02:03.25'"#,
            r#"SELECT i FROM lake."default".mixed WHERE tz = '2020-01-01 00:00:00+00' OR raw = ''::BLOB ORDER BY i"#,
            r#"INSERT INTO lake."default".mixed (i, price, name) VALUES (1000, 1000000.25, 'zz')"#,
            r#"SELECT count(*), max(i), max(price)::VARCHAR, max(name) FROM lake."default".mixed WHERE i > -100"#,
            r#"SELECT l, s FROM lake."default".nested"#,
        ],
    );
    assert_eq!(results[2], json!([[1]]));
    assert_eq!(results[3], json!([[-7], [12]]));
    assert_eq!(results[5], json!([[4, 1000, "1000000.25", "é"]]));
    assert_eq!(results[6], json!([[[1, 2, 3], {"a": 5, "b": "x"}]]));
    let statistics = |database: &str| {
        let query = format!(
            "SELECT t.table_name, c.column_id, c.column_name, c.column_type, s.value_count, s.null_count, s.min_value, s.max_value, s.contains_nan
             FROM ducklake_table t JOIN ducklake_schema d USING (schema_id) JOIN ducklake_data_file f USING (table_id)
             JOIN ducklake_column c USING (table_id) LEFT JOIN ducklake_file_column_stats s USING (data_file_id, column_id)
             WHERE d.schema_name = '{database}' AND f.row_id_start = 0 ORDER BY 1, 2"
        );
        rows(folder.path(), &query)
    };
    assert_eq!(statistics("default"), statistics("main"));
    engine.close().await.unwrap();
}

/// The changes that DuckDB makes in [`we_write_the_rows_that_duckdb_writes`].
async fn make_changes(catalog: &Catalog) {
    create_numbers(catalog, "numbers", &[]).await;
    for values in [vec![-1, 20, 3], vec![100]] {
        let table = managed(&resolve(catalog, "numbers").await);
        let file = write_numbers(catalog, &table, &values).await;
        catalog.tables().append(&table, vec![file]).await.unwrap();
    }
    let numbers = TableName::new("default", "numbers");
    catalog.tables().set_comment(&numbers, None, Some("one")).await.unwrap();
    catalog.tables().set_comment(&numbers, None, Some("two")).await.unwrap();
    catalog.tables().set_comment(&numbers, Some("b"), Some("text")).await.unwrap();
    let view = TableName::new("default", "a view");
    let one = Schema::new(vec![Field::new("one", DataType::Int64, false)]);
    catalog.tables().create_view(&view, "SELECT 1 AS one", "default", &one, IfExists::Error).await.unwrap();
    let entries = Fields::from(vec![
        Field::new("key", DataType::Utf8, false),
        Field::new("value", DataType::Decimal128(9, 3), true),
    ]);
    let map = DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false);
    let nested = Schema::new(vec![
        Field::new("l", DataType::List(Arc::new(Field::new("item", DataType::Float32, true))), true),
        Field::new(
            "s",
            DataType::Struct(Fields::from(vec![Field::new("k", DataType::Int32, true), Field::new("m", map, true)])),
            true,
        ),
    ]);
    let draft = catalog.tables().draft(&TableName::new("default", "x \" y"), &nested, None).await.unwrap();
    catalog.tables().create(draft, Vec::new(), IfExists::Error).await.unwrap();
    catalog.tables().drop(&view, &[TableKind::View], false).await.unwrap();
    catalog.tables().drop(&numbers, &[TableKind::Managed], false).await.unwrap();
    catalog.databases().create("two words", IfExists::Error).await.unwrap();
    catalog.databases().drop("two words", false, false).await.unwrap();
}

fn nested_columns(schema: &Schema) -> Vec<ArrayRef> {
    let element = |index: usize| match schema.field(index).data_type() {
        DataType::List(item) | DataType::FixedSizeList(item, _) => Arc::clone(item),
        other => panic!("{other} is no list"),
    };
    let vector = FixedSizeListArray::new(element(0), 2, Arc::new(Float32Array::from(vec![0.5, 1.5])), None);
    let point_item = element(1);
    let DataType::Struct(point) = point_item.data_type() else { panic!("no struct") };
    let points = StructArray::new(
        point.clone(),
        vec![Arc::new(Float64Array::from(vec![2.5])), Arc::new(StringArray::from(vec!["p"]))],
        None,
    );
    let points = ListArray::new(Arc::clone(&point_item), OffsetBuffer::from_lengths([1]), Arc::new(points), None);
    let mut map = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    map.keys().append_value("k");
    map.values().append_value("w");
    map.append(true).unwrap();
    let map = arrow::compute::cast(&map.finish(), schema.field(2).data_type()).unwrap();
    let decimal = Decimal128Array::from(vec![-125]).with_precision_and_scale(10, 2).unwrap();
    let time = TimestampMicrosecondArray::from(vec![1_577_836_800_000_000]).with_timezone("UTC");
    vec![Arc::new(vector), Arc::new(points), map, Arc::new(decimal), Arc::new(time)]
}

/// Runs statements in DuckDB with the folder attached as `lake`, and returns each one's rows. As DuckDB's users have
/// to, it tries again while another writer holds the file.
pub(crate) fn duckdb(folder: &Path, options: &str, statements: &[&str]) -> Vec<Value> {
    const SCRIPT: &str = r#"
import glob, json, os, sys, time
import duckdb, duckdb_extension_ducklake, duckdb_extension_sqlite_scanner

request = json.load(sys.stdin)
connection = duckdb.connect(config={"allow_unsigned_extensions": "true"})
# It is drawn over the answer where a query takes two seconds.
connection.execute("SET enable_progress_bar = false")

def load(package):
    folder = os.path.dirname(package.__file__)
    [extension] = glob.glob(os.path.join(folder, "extensions", "v*", "*.duckdb_extension"))
    connection.execute(f"LOAD '{extension}'")

load(duckdb_extension_sqlite_scanner)
load(duckdb_extension_ducklake)
options = f" ({request['options']})" if request["options"] else ""

def run(statement):
    if statement == "LOAD httpfs":
        import duckdb_extension_httpfs
        return load(duckdb_extension_httpfs)
    for attempt in range(50):
        try:
            result = connection.execute(statement)
            return result.fetchall() if statement.startswith("SELECT") else None
        except duckdb.Error as error:
            if "locked" not in str(error) or attempt == 49:
                raise
            time.sleep(0.1)

# A lake in an object store asks for it when it is attached.
if "LOAD httpfs" in request["statements"]:
    run("LOAD httpfs")
run(f"ATTACH 'ducklake:sqlite:{request['file']}' AS lake{options}")
print(json.dumps([run(statement) for statement in request["statements"]], default=str))
"#;
    let request = json!({
        "file": folder.join("catalog.sqlite"),
        "options": options,
        "statements": statements,
    });
    let mut child = Python::command(["-c", SCRIPT])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(request.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "DuckDB failed: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns the rows of a query over the catalog's file, as strings.
fn rows(folder: &Path, query: &str) -> Vec<Vec<String>> {
    let connection = sqlite(folder);
    let mut statement = connection.prepare(query).unwrap();
    let width = statement.column_count();
    let rows = statement.query_map([], |row| {
        (0..width).map(|index| Ok(format!("{:?}", row.get::<_, rusqlite::types::Value>(index)?))).collect()
    });
    rows.unwrap().map(|row| row.unwrap()).collect()
}
