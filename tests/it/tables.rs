//! Tables from outside: imports, external files, what a managed scan reads, samples and the system database.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Int64Type, TimeUnit};
use base64::Engine as _;
use chrono::{TimeZone, Utc};
use futures::TryStreamExt;
use querent_catalog::{IfExists, NoProgress, Principal, Role, RunRecord, RunStatus, TableName};
use querent_engine::{Engine, EngineError, ImportOutcome, ImportRequest, Limits, Session};
use querent_tests::nycflights_dir;
use serde_json::json;
use uuid::Uuid;

use crate::duckdb::duckdb;
use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn real_csv_files_get_the_right_types() {
    let (_folder, engine) = engine().await;
    let data = nycflights_dir();
    let expected = [("airlines", 16), ("airports", 1458), ("planes", 3322), ("weather", 26115), ("flights", 336_776)];
    for (table, count) in expected {
        let outcome = import(&engine, &data.join(format!("{table}.csv")), table, Some(IfExists::Error)).await.unwrap();
        assert_eq!((outcome.rows, outcome.files, outcome.created), (Some(count), 1, true), "{table}");
    }
    let session = admin(&engine);
    let flights = session.sql("SELECT * FROM flights LIMIT 0").await.unwrap().schema();
    let of = |column: &str| flights.field_with_name(column).unwrap().data_type().clone();
    let utc = DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    assert_eq!(
        [of("year"), of("dep_time"), of("tailnum"), of("time_hour")],
        [DataType::Int64, DataType::Int64, DataType::Utf8, utc]
    );
    let weather = session.sql("SELECT temp, time_hour FROM weather LIMIT 0").await.unwrap().schema();
    assert_eq!(weather.field(0).data_type(), &DataType::Float64);
    // The figures of R's nycflights13, where NA is a missing value.
    let missing = "SELECT count(*) - count(dep_time), count(*) - count(tailnum), sum(distance) FROM flights";
    assert_eq!(rows(&session, missing).await.unwrap(), [["8255", "2512", "350217607"]]);
    let busiest = "SELECT carrier, count(*) AS n FROM flights GROUP BY carrier ORDER BY n DESC LIMIT 1";
    assert_eq!(rows(&session, busiest).await.unwrap(), [["UA", "58665"]]);
}

#[tokio::test]
async fn a_ragged_row_is_named_and_nothing_is_imported() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("bad.csv");
    fs::write(&file, "a,b,c\n1,2,3\n\"x\ny\",5,6\n7,8\n").unwrap();
    let error = import(&engine, &file, "bad", Some(IfExists::Error)).await.unwrap_err();
    assert_eq!(error.code(), "bad_data");
    let message = error.to_string();
    assert!(message.contains("bad.csv, line 5, column `c`: 2 fields where 3 are expected; "), "{message}");
    assert!(rows(&admin(&engine), "SELECT name FROM system.tables").await.unwrap().is_empty());

    fs::write(&file, "a,b\n1,2\n3,4,5\n").unwrap();
    let message = import(&engine, &file, "bad", Some(IfExists::Error)).await.unwrap_err().to_string();
    assert!(message.contains("line 3, column `b`: 3 fields where 2 are expected; "), "{message}");

    // Where no number of fields is that of most records, names above them still make them a table.
    fs::write(&file, "id,name\n1,x\n2\n3,y,z\n").unwrap();
    let message = import(&engine, &file, "bad", Some(IfExists::Error)).await.unwrap_err().to_string();
    assert!(
        message.contains("bad.csv, line 3, column `name`: 1 fields where 2 are expected; null_padding "),
        "{message}"
    );
}

#[tokio::test]
async fn types_hold_for_the_last_row_too() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("late.csv");
    let mut text = String::from("code,amount\n");
    (0..20_000).for_each(|row| text.push_str(&format!("{row},{row}\n")));
    text.push_str("N7,0.5\n");
    fs::write(&file, text).unwrap();
    import(&engine, &file, "late", Some(IfExists::Error)).await.unwrap();
    let session = admin(&engine);
    let schema = session.sql("SELECT * FROM late").await.unwrap().schema();
    assert_eq!(schema.field(0).data_type(), &DataType::Utf8);
    assert_eq!(schema.field(1).data_type(), &DataType::Float64);
    assert_eq!(rows(&session, "SELECT count(*), max(code) FROM late").await.unwrap(), [["20001", "N7"]]);
}

#[tokio::test]
async fn appending_matches_columns_by_name_and_names_what_does_not_fit() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("t.csv");
    fs::write(&file, "id,name\n1,a\n").unwrap();
    import(&engine, &file, "t", Some(IfExists::Error)).await.unwrap();
    fs::write(&file, "NAME,id\nb,2\n").unwrap();
    assert_eq!(import(&engine, &file, "t", None).await.unwrap().rows, Some(1));
    fs::write(&file, "id\n3\n").unwrap();
    import(&engine, &file, "t", None).await.unwrap();
    let all = [["1", "a"], ["2", "b"], ["3", "NULL"]];
    let session = admin(&engine);
    assert_eq!(rows(&session, "SELECT id, name FROM t ORDER BY id").await.unwrap(), all);

    fs::write(&file, "id,name\n4,d\nfive,e\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    assert!(message.ends_with("t.csv, line 3, column `id`: expected BIGINT, found `five`"), "{message}");
    fs::write(&file, "id,nom\n4,d\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    assert!(message.ends_with("column `nom` is not in the table, whose columns are id, name"), "{message}");
    fs::write(&file, "4,d\n5,e\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    assert!(message.contains("the file has no header: COPY table FROM 'file'"), "{message}");
    assert_eq!(rows(&session, "SELECT id, name FROM t ORDER BY id").await.unwrap(), all);
    let files = parquet_files(&folder.path().join("data/data"));
    assert_eq!(files.len(), 3, "an import that fails leaves no file: {files:?}");
}

#[tokio::test]
async fn what_is_appended_is_read_as_the_columns_of_the_table() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("t.csv");
    fs::write(&file, "code,day,n\nDE,2024-01-31,1.5\n").unwrap();
    import(&engine, &file, "t", Some(IfExists::Error)).await.unwrap();
    // Nothing but markers is text by itself; codes stay codes.
    fs::write(&file, "code,day,n\nNA,NA,NULL\nFR,NA,NULL\n").unwrap();
    import(&engine, &file, "t", None).await.unwrap();
    let all = [["DE", "2024-01-31", "1.5"], ["FR", "NULL", "NULL"], ["NA", "NULL", "NULL"]];
    assert_eq!(rows(&session, "SELECT code, day, n FROM t ORDER BY code").await.unwrap(), all);

    fs::write(&file, "code,day,n\nDE,01/02/2024,2\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    let remedy = "expected DATE (the column holds dates that may be `%d/%m/%Y` or `%m/%d/%Y`; say which with the option \
                  date_format), found `01/02/2024`";
    assert!(message.ends_with(remedy), "{message}");
    fs::write(&file, "code;day;n\nDE;2024-02-01;2,5\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    assert!(message.contains("expected DOUBLE") && message.contains("decimal_separator"), "{message}");
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await.unwrap(), [["3"]]);
}

#[tokio::test]
async fn an_existing_table_is_refused_kept_or_replaced() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("t.csv");
    fs::write(&file, "id\n1\n").unwrap();
    import(&engine, &file, "t", Some(IfExists::Error)).await.unwrap();
    fs::write(&file, "other\nx\ny\n").unwrap();
    assert_eq!(import(&engine, &file, "T", Some(IfExists::Error)).await.unwrap_err().code(), "already_exists");
    assert!(!import(&engine, &file, "t", Some(IfExists::Ignore)).await.unwrap().created);
    let session = admin(&engine);
    assert_eq!(rows(&session, "SELECT id FROM t").await.unwrap(), [["1"]]);
    let replaced = import(&engine, &file, "t", Some(IfExists::Replace)).await.unwrap();
    assert_eq!((replaced.rows, replaced.files, replaced.created), (Some(2), 1, true));
    assert_eq!(rows(&session, "SELECT other FROM t ORDER BY 1").await.unwrap(), [["x"], ["y"]]);

    let nowhere = ImportRequest { table: TableName::new("nowhere", "t"), ..request(&file, "t", None) };
    let error = engine.import(&Principal::local_admin(), nowhere, Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(error.code(), "database_not_found");
    let reader = Principal::new("r", Role::Read);
    let error = engine.import(&reader, request(&file, "t", None), Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(error.code(), "not_allowed");
    let writer = Principal::new("w", Role::Write);
    let error = engine.import(&writer, request(&file, "t", None), Arc::new(NoProgress)).await.unwrap_err();
    assert_eq!(error.code(), "location_not_allowed");
}

#[tokio::test]
async fn delimiters_byte_order_marks_compression_and_null_markers_are_found() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let semicolons = folder.path().join("semi.csv");
    fs::write(&semicolons, "\u{feff}id;when;ok\n1;2013-01-01 10:00:00;true\n2;NULL;false\n").unwrap();
    import(&engine, &semicolons, "semi", Some(IfExists::Error)).await.unwrap();
    let sql = "SELECT id, date_part('hour', \"when\"), ok FROM semi ORDER BY id";
    assert_eq!(rows(&session, sql).await.unwrap(), [["1", "10", "true"], ["2", "NULL", "false"]]);

    let zipped = folder.path().join("z.csv.gz");
    let bytes = base64::engine::general_purpose::STANDARD.decode(GZIPPED_CSV).unwrap();
    fs::write(&zipped, bytes).unwrap();
    import(&engine, &zipped, "z", Some(IfExists::Error)).await.unwrap();
    assert_eq!(rows(&session, "SELECT sum(a), max(b) FROM z").await.unwrap(), [["3", "y"]]);

    // Namibia is not a missing value in a file that has no missing numbers.
    let countries = folder.path().join("countries.csv");
    fs::write(&countries, "code,people\nNA,3\nDE,84\n").unwrap();
    import(&engine, &countries, "countries", Some(IfExists::Error)).await.unwrap();
    assert_eq!(rows(&session, "SELECT code FROM countries ORDER BY code").await.unwrap(), [["DE"], ["NA"]]);
}

#[tokio::test]
async fn ndjson_is_imported_and_its_bad_row_named() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("t.ndjson");
    fs::write(&file, "{\"a\":1,\"tags\":[\"x\"]}\n\n{\"a\":2.5,\"p\":{\"q\":null}}\n{\"a\":null,\"b\":\"z\"}\n")
        .unwrap();
    import(&engine, &file, "t", Some(IfExists::Error)).await.unwrap();
    let session = admin(&engine);
    assert_eq!(
        rows(&session, "SELECT sum(a), max(b), count(tags), count(*) FROM t").await.unwrap(),
        [["3.5", "z", "1", "3"]]
    );

    fs::write(&file, "{\"a\":1}\n{\"a\":\n").unwrap();
    let message = import(&engine, &file, "bad", Some(IfExists::Error)).await.unwrap_err().to_string();
    assert!(message.contains("t.ndjson, line 2: not JSON"), "{message}");
    fs::write(&file, "{\"a\":1}\n{\"a\":{\"b\":1}}\n").unwrap();
    let message = import(&engine, &file, "t", None).await.unwrap_err().to_string();
    assert!(message.contains("t.ndjson"), "{message}");
}

#[tokio::test]
async fn a_folder_of_hive_partitions_is_one_pruned_table() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let lake = folder.path().join("lake");
    for (year, value) in [(2012, 1), (2013, 2), (2014, 3)] {
        let target = lake.join(format!("year={year}/kind=a%20b"));
        fs::create_dir_all(&target).unwrap();
        write_parquet(&target.join("part-0.parquet"), &[value, value * 10]);
    }
    fs::write(lake.join("_SUCCESS"), "x").unwrap();
    fs::write(lake.join("year=2012/.part.parquet.crc"), "x").unwrap();
    std::os::unix::fs::symlink("/etc", lake.join("year=2099")).unwrap();
    let create = format!("CREATE EXTERNAL TABLE lake STORED AS PARQUET LOCATION '{}'", lake.display());
    rows(&session, &create).await.unwrap();
    let all = "SELECT v, year, kind FROM lake ORDER BY v";
    let expected = [["1", "2012", "a b"], ["2", "2013", "a b"], ["3", "2014", "a b"]];
    let found = rows(&session, all).await.unwrap();
    assert_eq!(found[..3], expected);
    assert_eq!(found.len(), 6);
    let plan = explained(&session, "SELECT sum(v) FROM lake WHERE year >= 2013 AND v < 3").await;
    assert!(!plan.contains("year=2012") && !plan.contains("year=2014"), "pruned by folder and by footer: {plan}");
    let folders_match = "SELECT count(*) FROM lake WHERE year = 2013 AND kind = 'a b'";
    assert_eq!(rows(&session, folders_match).await.unwrap(), [["2"]]);

    let glob = format!("CREATE EXTERNAL TABLE some STORED AS PARQUET LOCATION '{}/year=201[34]/*'", lake.display());
    rows(&session, &glob).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*), min(year) FROM some").await.unwrap(), [["4", "2013"]]);
    let nothing = format!("CREATE EXTERNAL TABLE no STORED AS CSV LOCATION '{}'", lake.display());
    assert_eq!(rows(&session, &nothing).await.unwrap_err().code(), "no_files");

    import(&engine, &lake, "copied", Some(IfExists::Error)).await.unwrap();
    assert_eq!(rows(&session, "SELECT v, year, kind FROM copied ORDER BY v").await.unwrap(), found);
}

#[tokio::test]
async fn external_text_files_are_read_as_their_table_says() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let csv = folder.path().join("csv");
    fs::create_dir(&csv).unwrap();
    fs::write(csv.join("1.csv"), "id,at,note\n1,2013-01-01T10:00:00Z,\"two\nlines\"\nNA,NA,NA\n").unwrap();
    let create = format!("CREATE EXTERNAL TABLE c STORED AS CSV LOCATION '{}'", csv.display());
    rows(&session, &create).await.unwrap();
    let expected = [["1", "2013-01-01T10:00:00Z", "two\nlines"], ["NULL", "NULL", "NULL"]];
    assert_eq!(rows(&session, "SELECT * FROM c ORDER BY id NULLS LAST").await.unwrap(), expected);
    // A file that arrives later is part of the table, and is not looked for before it is asked for.
    fs::write(csv.join("2.csv"), "id,at,note\n5,2013-01-02T10:00:00Z,x\n").unwrap();
    assert_eq!(rows(&session, "SELECT sum(id), count(*) FROM c").await.unwrap(), [["6", "3"]]);
    assert_eq!(rows(&session, "SELECT id FROM c WHERE note = 'x'").await.unwrap(), [["5"]]);

    // Columns in another order are found by their names.
    fs::write(csv.join("3.csv"), "note,id,at\nz,6,2013-01-02T10:00:00Z\n").unwrap();
    assert_eq!(rows(&session, "SELECT id FROM c WHERE note = 'z'").await.unwrap(), [["6"]]);
    fs::write(csv.join("4.csv"), "note,id,when\nx,5,2013-01-02T10:00:00Z\n").unwrap();
    let again = format!("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION '{}'", csv.display());
    let error = rows(&session, &again).await.unwrap_err();
    assert_eq!(error.code(), "bad_data");
    assert!(error.to_string().contains("4.csv: its columns (note, id, when) are not those of"), "{error}");
    // The same columns with another delimiter are told as that, with what reads them.
    fs::write(csv.join("4.csv"), "id;at;note\n7;2013-01-02T10:00:00Z;x\n").unwrap();
    let error = rows(&session, &again).await.unwrap_err();
    assert_eq!(error.code(), "bad_data");
    assert!(error.to_string().contains("4.csv: `;` separates its columns, and `,` those of"), "{error}");
    let all = format!("SELECT sum(id) FROM read_csv('{}/*.csv', union_by_name = true)", csv.display());
    assert_eq!(rows(&session, &all).await.unwrap(), [["19"]]);

    let json = folder.path().join("t.jsonl");
    fs::write(&json, "{\"a\":1,\"b\":\"x\"}\n{\"a\":2}\n").unwrap();
    let create = format!("CREATE EXTERNAL TABLE j STORED AS JSON LOCATION '{}'", json.display());
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, "SELECT a, b FROM j ORDER BY a").await.unwrap(), [["1", "x"], ["2", "NULL"]]);
    fs::remove_file(&json).unwrap();
    assert_eq!(rows(&session, "SELECT * FROM j").await.unwrap_err().code(), "no_files");
}

#[tokio::test]
async fn managed_files_are_pruned_by_what_the_catalog_knows() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t (id BIGINT, at TIMESTAMP, name VARCHAR, price DECIMAL(10,2), x DOUBLE)")
        .await
        .unwrap();
    for (id, day, price, x) in
        [(1, "2020-01-01", "1.50", "1.0"), (2, "2020-06-01", "-20.25", "'NaN'"), (3, "2021-01-01", "300", "3.0")]
    {
        let insert =
            format!("INSERT INTO t SELECT {id}, TIMESTAMP '{day} 12:30:00.25', 'n{id}', {price}, CAST({x} AS DOUBLE)");
        rows(&session, &insert).await.unwrap();
    }
    let one_file = ["id = 2", "at < TIMESTAMP '2020-01-02 00:00:00'", "name > 'n2'", "price < 0", "id IN (3, 99)"];
    for filter in one_file {
        let sql = format!("SELECT count(*) FROM t WHERE {filter}");
        assert_eq!(rows(&session, &sql).await.unwrap(), [["1"]], "{filter}");
        let plan = explained(&session, &format!("SELECT * FROM t WHERE {filter}")).await;
        assert_eq!(plan.matches(".parquet").count(), 1, "{filter}: {plan}");
    }
    let plan = explained(&session, "SELECT * FROM t WHERE id > 10").await;
    assert!(plan.contains("EmptyExec"), "{plan}");
    // NaN is above every number, so its file has no upper bound.
    let plan = explained(&session, "SELECT id FROM t WHERE x > 2.5").await;
    assert_eq!(plan.matches(".parquet").count(), 2, "{plan}");
    let plan = explained(&session, "SELECT count(*), max(id) FROM t").await;
    assert!(!plan.contains("DataSourceExec: file_groups"), "answered from statistics: {plan}");
    assert_eq!(
        rows(&session, "SELECT count(*), min(at), max(price) FROM t").await.unwrap(),
        [["3", "2020-01-01T12:30:00.250", "300.00"]]
    );
}

#[tokio::test]
async fn a_write_that_fails_leaves_no_file() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t (id BIGINT)").await.unwrap();
    let sql = "INSERT INTO t SELECT 1 / (value - 99999) FROM generate_series(1, 100000)";
    assert!(rows(&session, sql).await.is_err());
    assert!(parquet_files(&folder.path().join("data/data")).is_empty());
    assert_eq!(rows(&session, "SELECT count(*) FROM t").await.unwrap(), [["0"]]);
}

#[tokio::test]
async fn duckdb_reads_what_we_write_and_we_read_what_it_renamed() {
    let (folder, engine) = engine().await;
    let data = folder.path().join("data");
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t (i INT, b BOOLEAN, d DATE, at TIMESTAMP, f DOUBLE, p DECIMAL(20,3), s VARCHAR)")
        .await
        .unwrap();
    rows(
        &session,
        "INSERT INTO t VALUES (1, true, DATE '2020-02-03', TIMESTAMP '2020-01-02 03:04:05.123456', 1.5, 12.5, 'hé'), \
         (NULL, false, DATE '1969-12-31', TIMESTAMP '1969-12-31 23:59:59', -0.5, -0.125, 'b')",
    )
    .await
    .unwrap();
    rows(
        &session,
        "INSERT INTO t SELECT CAST(value AS INT), true, NULL AS d, NULL AS at, value AS f, value AS p, 'z' FROM generate_series(5, 200000)",
    )
    .await
    .unwrap();
    let results = duckdb(
        &data,
        "DATA_INLINING_ROW_LIMIT 0",
        &[
            "SELECT i, b, d::VARCHAR, \"at\"::VARCHAR, f, p::VARCHAR, s FROM lake.\"default\".t WHERE \"at\" IS NOT NULL ORDER BY b DESC",
            "SELECT count(*), max(i) FROM lake.\"default\".t WHERE i > 199990",
            "ALTER TABLE lake.\"default\".t RENAME COLUMN s TO label",
            "ALTER TABLE lake.\"default\".t ADD COLUMN extra INTEGER",
            "INSERT INTO lake.\"default\".t SELECT -7, NULL, NULL, NULL, 'nan'::DOUBLE, NULL, 'duck', 42",
        ],
    );
    let first = json!([
        [1, true, "2020-02-03", "2020-01-02 03:04:05.123456", 1.5, "12.500", "hé"],
        [null, false, "1969-12-31", "1969-12-31 23:59:59", -0.5, "-0.125", "b"],
    ]);
    assert_eq!(results[0], first);
    assert_eq!(results[1], json!([[10, 200_000]]));
    let sql = "SELECT i, label, extra FROM t WHERE label IN ('hé', 'duck') ORDER BY i";
    assert_eq!(rows(&session, sql).await.unwrap(), [["-7", "duck", "42"], ["1", "hé", "NULL"]]);
    assert_eq!(rows(&session, "SELECT count(*) FROM t WHERE extra IS NULL").await.unwrap(), [["199998"]]);
    let plan = explained(&session, "SELECT * FROM t WHERE i = 7").await;
    assert_eq!(plan.matches(".parquet").count(), 1, "pruned by bounds that DuckDB wrote: {plan}");
}

#[tokio::test]
async fn samples_are_uniform_and_distinct() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE t AS SELECT value AS v FROM generate_series(1, 300000)").await.unwrap();
    rows(&session, "INSERT INTO t SELECT value FROM generate_series(300001, 400000)").await.unwrap();
    rows(&session, "CREATE VIEW w AS SELECT v FROM t").await.unwrap();
    let file = folder.path().join("p.parquet");
    write_parquet(&file, &(1..=400_000).collect::<Vec<i64>>());
    rows(&session, &format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}'", file.display())).await.unwrap();
    for table in ["t", "w", "p"] {
        let values = sampled(&session, table, 1_000).await;
        assert_eq!(values.len(), 1_000, "{table}");
        let distinct: std::collections::BTreeSet<_> = values.iter().collect();
        assert_eq!(distinct.len(), 1_000, "{table}");
        // Each fifth of the table should give 200 rows; ten standard deviations are 126.
        for fifth in 0..5 {
            let inside = values.iter().filter(|value| (**value - 1) / 80_000 == fifth).count();
            assert!((74..=326).contains(&inside), "{table}: {inside} in fifth {fifth}");
        }
    }
    let (one, other) = (sampled(&session, "t", 5).await, sampled(&session, "t", 5).await);
    assert_ne!(one, other);
    rows(&session, "CREATE TABLE small AS SELECT value AS v FROM generate_series(1, 3)").await.unwrap();
    assert_eq!(sampled(&session, "small", 5).await, [1, 2, 3]);
    let missing = session.sample(&TableName::new("default", "smal"), 5).await.map(|_| ()).unwrap_err();
    assert_eq!(missing.code(), "table_not_found");
    let databases = session.sample(&TableName::new("system", "databases"), 5).await.unwrap();
    assert_eq!(databases.collect().await.unwrap().1.rows, 1);
}

#[tokio::test]
async fn the_catalog_is_queried_in_sql_and_shows_only_what_may_be_seen() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE DATABASE sales").await.unwrap();
    rows(&session, "CREATE TABLE sales.orders (id BIGINT NOT NULL, price DECIMAL(10,2))").await.unwrap();
    rows(&session, "COMMENT ON TABLE sales.orders IS 'what was bought'").await.unwrap();
    rows(&session, "CREATE TABLE logs (at TIMESTAMP)").await.unwrap();
    rows(&session, "CREATE VIEW sales.dear AS SELECT id FROM sales.orders WHERE price > 100").await.unwrap();
    let tables = "SELECT database, name, kind, comment FROM system.tables ORDER BY database, name";
    let all = [
        ["default", "logs", "managed", "NULL"],
        ["sales", "dear", "view", "NULL"],
        ["sales", "orders", "managed", "what was bought"],
    ];
    assert_eq!(rows(&session, tables).await.unwrap(), all);
    let standard = "SELECT table_catalog, table_name, table_type FROM information_schema.tables \
                    WHERE table_schema = 'sales' AND table_name LIKE 'ord%'";
    assert_eq!(rows(&session, standard).await.unwrap(), [["querent", "orders", "BASE TABLE"]]);
    let columns = "SELECT column_name, ordinal_position, is_nullable, data_type, numeric_scale \
                   FROM information_schema.columns WHERE table_name IN ('orders', 'nothing') ORDER BY ordinal_position";
    let expected = [["id", "1", "NO", "BIGINT", "0"], ["price", "2", "YES", "DECIMAL(10,2)", "2"]];
    assert_eq!(rows(&session, columns).await.unwrap(), expected);
    let views = "SELECT table_name, definition LIKE '%price > 100%' FROM information_schema.views";
    assert_eq!(rows(&session, views).await.unwrap(), [["dear", "true"]]);
    let schemata = "SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'sales'";
    assert_eq!(rows(&session, schemata).await.unwrap(), [["sales"]]);
    assert_eq!(
        rows(&session, "SELECT count(*) FROM system.columns WHERE \"table\" = 'Orders'").await.unwrap(),
        [["0"]]
    );

    let scoped = engine.session(Principal::new("s", Role::Read).with_databases(["default"]), Limits::default());
    assert_eq!(rows(&scoped, tables).await.unwrap(), all[..1]);
    assert!(rows(&scoped, standard).await.unwrap().is_empty());
    assert_eq!(rows(&scoped, "SELECT name FROM system.databases").await.unwrap(), [["default"]]);
}

#[tokio::test]
async fn runs_are_rows_newest_first_for_their_owner() {
    let (_folder, engine) = engine().await;
    for minute in 0..130 {
        let subject = if minute % 2 == 0 { "ann" } else { "bob" };
        engine.catalog().runs().insert(&run(subject, minute)).await.unwrap();
    }
    let published = "SELECT run_id, question, model_id, status, started_at, finished_at, usage_json, trace_json \
                     FROM agent_runs ORDER BY started_at DESC LIMIT 10";
    let session = admin(&engine);
    let found = rows(&session, published).await.unwrap();
    assert_eq!(found.len(), 10);
    assert_eq!(found[0][1..], ["how many? 129", "m", "success", "2026-01-01T02:09:00Z", "NULL", "{}", "[\"bob\"]"]);
    assert!(found[9][1].ends_with("120"));
    let plan = explained(&session, published).await;
    assert!(!plan.contains("SortExec"), "runs come sorted: {plan}");
    let ann = engine.session(Principal::new("ann", Role::Read), Limits::default());
    let mine = "SELECT count(*), count(DISTINCT trace_json), max(trace_json) FROM system.agent_runs";
    assert_eq!(rows(&ann, mine).await.unwrap(), [["65", "1", "[\"ann\"]"]]);
}

const GZIPPED_CSV: &str = "H4sIAAAAAAACA0vUSeIy1KngMtKp5AIAwpZ+nQwAAAA=";

fn request(source: &Path, table: &str, if_exists: Option<IfExists>) -> ImportRequest {
    ImportRequest {
        source: source.display().to_string(),
        format: None,
        options: BTreeMap::new(),
        table: TableName::new("default", table),
        external: false,
        if_exists,
    }
}

async fn import(
    engine: &Engine,
    source: &Path,
    table: &str,
    if_exists: Option<IfExists>,
) -> Result<ImportOutcome, EngineError> {
    engine.import(&Principal::local_admin(), request(source, table, if_exists), Arc::new(NoProgress)).await
}

async fn explained(session: &Session, sql: &str) -> String {
    rows(session, &format!("EXPLAIN {sql}")).await.unwrap().concat().join("\n")
}

async fn sampled(session: &Session, table: &str, n: usize) -> Vec<i64> {
    let stream = session.sample(&TableName::new("default", table), n).await.unwrap();
    let batches: Vec<RecordBatch> = stream.try_collect().await.unwrap();
    let mut values: Vec<i64> =
        batches.iter().flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec()).collect();
    values.sort_unstable();
    values
}

fn run(subject: &str, minute: u32) -> RunRecord {
    let started_at = Utc.with_ymd_and_hms(2026, 1, 1, minute / 60, minute % 60, 0).unwrap();
    RunRecord {
        status: RunStatus::Success,
        trace_json: format!("[\"{subject}\"]"),
        ..RunRecord::new(Uuid::now_v7(), subject, format!("how many? {minute}"), "m", started_at)
    }
}

fn write_parquet(path: &Path, values: &[i64]) {
    let column: Arc<dyn Array> = Arc::new(arrow::array::Int64Array::from(values.to_vec()));
    let batch = RecordBatch::try_from_iter([("v", column)]).unwrap();
    let file = fs::File::create(path).unwrap();
    let mut writer = parquet::arrow::ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths
        .into_iter()
        .flat_map(|path| if path.is_dir() { parquet_files(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "parquet"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn where_files_lie_is_told_to_administrators_only() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("people.csv");
    fs::write(&file, "id,name\n1,ann\n").unwrap();
    rows(&session, "CREATE TABLE kept AS SELECT value AS id FROM generate_series(1, 100)").await.unwrap();
    rows(&session, &format!("CREATE EXTERNAL TABLE people STORED AS CSV LOCATION '{}'", file.display())).await.unwrap();
    let place = folder.path().file_name().unwrap().to_str().unwrap();
    for role in [Role::Read, Role::Write] {
        let other = engine.session(Principal::new("rita", role), Limits::default());
        for sql in
            ["EXPLAIN SELECT * FROM kept", "EXPLAIN VERBOSE SELECT * FROM kept", "EXPLAIN ANALYZE SELECT * FROM kept"]
        {
            let shown = format!("{:?}", rows(&other, sql).await.unwrap());
            assert!(!shown.contains(place) && shown.contains(".parquet"), "{sql}: {shown}");
            assert!(format!("{:?}", rows(&session, sql).await.unwrap()).contains(place), "{sql}");
        }
        let made = rows(&other, "SHOW CREATE TABLE people").await.unwrap();
        assert!(made[0][1].ends_with("LOCATION 'people.csv'"), "{made:?}");
    }
    assert!(rows(&session, "SHOW CREATE TABLE people").await.unwrap()[0][1].contains(place));
    // How the files are read is part of the statement: made again, the table is the same.
    for (columns, options) in
        [("", "OPTIONS ('types' 'id=VARCHAR', 'compression' 'none')"), ("(id TEXT, who TEXT)", "")]
    {
        let told =
            format!("CREATE EXTERNAL TABLE told {columns} STORED AS CSV LOCATION '{}' {options}", file.display());
        rows(&session, &told).await.unwrap();
        let before = rows(&session, "DESCRIBE told").await.unwrap();
        let made = rows(&session, "SHOW CREATE TABLE told").await.unwrap();
        rows(&session, "DROP TABLE told").await.unwrap();
        rows(&session, &made[0][1]).await.unwrap();
        assert_eq!(rows(&session, "SELECT typeof(id) FROM told").await.unwrap(), [["VARCHAR"]], "{made:?}");
        assert_eq!(rows(&session, "DESCRIBE told").await.unwrap(), before, "{made:?}");
        rows(&session, "DROP TABLE told").await.unwrap();
    }
    // So are the columns that it was declared with, and those that its folders have.
    let day = folder.path().join("days").join("day=2026-01-02");
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join("a.csv"), "id\n1\n").unwrap();
    let told = format!(
        "CREATE EXTERNAL TABLE days (id TEXT, day TEXT) STORED AS CSV PARTITIONED BY (day) LOCATION '{}'",
        folder.path().join("days").display()
    );
    rows(&session, &told).await.unwrap();
    let made = rows(&session, "SHOW CREATE TABLE days").await.unwrap();
    rows(&session, "DROP TABLE days").await.unwrap();
    rows(&session, &made[0][1]).await.unwrap();
    let types = rows(&session, "SELECT typeof(id), typeof(day) FROM days").await.unwrap();
    assert_eq!(types, [["VARCHAR", "VARCHAR"]], "{made:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parquet_file_that_is_replaced_by_a_damaged_one_is_bad_data() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("p.parquet");
    let copied = format!("COPY (SELECT value AS x FROM generate_series(1, 100)) TO '{}'", file.display());
    rows(&session, &copied).await.unwrap();
    let made = format!("CREATE EXTERNAL TABLE p STORED AS PARQUET LOCATION '{}'", file.display());
    rows(&session, &made).await.unwrap();
    assert_eq!(rows(&session, "SELECT sum(x) FROM p").await.unwrap(), [["5050"]]);
    // Its footer would be longer than the file.
    fs::write(&file, [b"PAR1".as_slice(), &[b'x'; 500], b"PAR1"].concat()).unwrap();
    let error = rows(&session, "SELECT sum(x) FROM p").await.unwrap_err();
    assert_eq!(error.code(), "bad_data", "{error}");
}
