//! External tables in object stores and on web servers: read as local ones are, opened by the settings alone, with
//! credentials that are found nowhere afterwards.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use arrow::array::{RecordBatch, RecordBatchIterator};
use lance::Dataset;
use lance::dataset::{WriteMode, WriteParams};
use parquet::arrow::ArrowWriter;
use querent_catalog::{IfExists, NoProgress, Principal, Role, TableName};
use querent_engine::{Engine, EngineOptions, ImportRequest, Limits, UrlRoot};
use querent_flight::config::{Config, SettingSources};
use querent_tests::{ACCESS_KEY, ObjectServer, SECRET_KEY, ServerProcess, querent_binary, wait_until};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::formats::{file_format, numbers};
use crate::sql::{admin, rows};

const ROOTS: (&str, &str) = ("QUERENT_QUERY_EXTERNAL_URLS", "s3://lake/,s3://other/,gs://lake/,az://lake/");

#[tokio::test(flavor = "multi_thread")]
async fn tables_in_a_bucket_are_read_as_local_ones_are() {
    let store = ObjectServer::start().await;
    for (year, first) in [(2022, 1), (2023, 11), (2024, 21)] {
        for part in 0..3 {
            store.put(&format!("lake/trips/year={year}/{part}.parquet"), parquet(&numbers(first + part)));
        }
    }
    store.put("lake/trips/_SUCCESS", "x");
    store.put("lake/cities.csv", "id,city\n1,Rome\n2,NA\n");
    store.put("lake/log/day=2024-05-01/a.ndjson", "{\"id\":1,\"note\":\"x\"}\n");
    store.put("lake/log/day=2024-05-02/a.ndjson", "{\"id\":2}\n");
    store.put("lake/words/a.arrow", arrow_file(&numbers(1)));
    store.put("lake/more/x-1.csv", "n\n1\n");
    store.put("lake/more/x-2.csv", "n\n2\n");
    store.put("lake/more/y.csv", "other\n3\n");
    let server = started(&store, &[]);
    for (table, format, location) in [
        ("trips", "PARQUET", "s3://lake/trips/"),
        ("cities", "CSV", "s3://lake/cities.csv"),
        ("log", "JSON", "s3://lake/log"),
        ("words", "ARROW", "s3://lake/words/"),
        ("more", "CSV", "s3://lake/more/x-*.csv"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{location}'");
        assert_eq!(ask(&server, &sql).await["error"], Value::Null, "{sql}");
    }
    for (sql, expected) in [
        ("SELECT count(*), sum(id), min(year), max(year) FROM trips", json!([[45, 630, 2022, 2024]])),
        ("SELECT word FROM trips WHERE year = 2023 AND id = 14 LIMIT 1", json!([["w14"]])),
        ("SELECT id, city FROM cities ORDER BY id", json!([[1, "Rome"], [2, "NA"]])),
        (
            "SELECT id, note, CAST(day AS VARCHAR) FROM log ORDER BY id",
            json!([[1, "x", "2024-05-01"], [2, null, "2024-05-02"]]),
        ),
        ("SELECT count(*), max(word) FROM words", json!([[5, "w5"]])),
        ("SELECT sum(n) FROM more", json!([[3]])),
    ] {
        assert_eq!(ask(&server, sql).await["rows"], expected, "{sql}");
    }

    // Of what the folders rule out not a byte is read, not even a footer.
    quiet(&store).await;
    for (year, first) in [(2022, 4), (2023, 14), (2024, 24)] {
        // Nothing is known of these yet.
        store.put(&format!("lake/trips/year={year}/3.parquet"), parquet(&numbers(first)));
    }
    assert_eq!(ask(&server, "SELECT sum(id + 0) FROM trips WHERE year = 2024").await["rows"], json!([[490]]));
    let asked = store.take_requests();
    let read: Vec<_> = asked.iter().filter(|asked| !asked.is_listing).collect();
    assert!(read.iter().all(|asked| asked.path.contains("year=2024")), "{read:?}");
    assert!(read.iter().any(|asked| asked.path.ends_with("year=2024/3.parquet")), "{read:?}");
    // Three footers are known from before; thirteen objects take four pages of the listing.
    assert!(read.len() <= 3 + 2 && asked.len() - read.len() == 4, "{asked:?}");
    assert_eq!(ask(&server, "SELECT count(*) FROM trips WHERE year = 1999").await["rows"], json!([[0]]));
    assert!(store.take_requests().iter().all(|asked| asked.is_listing));

    // New objects are found by the next statement, vanished ones missed by it.
    store.put("lake/trips/year=2025/0.parquet", parquet(&numbers(31)));
    assert_eq!(ask(&server, "SELECT count(*), max(year) FROM trips").await["rows"], json!([[65, 2025]]));
    store.remove("lake/trips/");
    assert_eq!(ask(&server, "SELECT count(*) FROM trips").await["error"]["code"], "no_files");

    let plan = ask(&server, "EXPLAIN SELECT * FROM more").await.to_string();
    assert!(plan.contains("TableExec") && !plan.contains(SECRET_KEY) && !plan.contains(ACCESS_KEY), "{plan}");
    let location = ask(&server, "SELECT * FROM system.tables WHERE name = 'more'").await.to_string();
    assert!(!location.contains(SECRET_KEY) && !location.contains(ACCESS_KEY), "{location}");
    server.signal("TERM");
    assert_nowhere(server.data.path(), &[SECRET_KEY, ACCESS_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn objects_of_one_name_in_two_buckets_are_two() {
    let store = ObjectServer::start().await;
    // Of one size and one time: whatever is kept by path alone would be taken for the other's.
    store.put("lake/t.parquet", parquet(&numbers(1)));
    store.put("other/t.parquet", parquet(&numbers(5)));
    let server = started(&store, &[]);
    for bucket in ["lake", "other"] {
        ask(&server, &format!("CREATE EXTERNAL TABLE {bucket} STORED AS PARQUET LOCATION 's3://{bucket}/t.parquet'"))
            .await;
    }
    let both = "SELECT (SELECT sum(id) FROM lake), (SELECT sum(id) FROM other), (SELECT max(word) FROM other)";
    assert_eq!(ask(&server, both).await["rows"], json!([[15, 35, "w9"]]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_replaced_while_it_is_read_is_not_mixed_with_the_other() {
    let store = ObjectServer::start().await;
    let lines = |digit: &str| format!("n\n{}", format!("{digit}\n").repeat(1_000_000));
    store.put("lake/t.csv", lines("1"));
    store.put("lake/t.parquet", parquet(&numbers(1)));
    store.put("lake/short.csv", lines("1"));
    let server = started(&store, &[]);
    let tables = [("a", "CSV", "t.csv"), ("b", "PARQUET", "t.parquet"), ("c", "CSV", "short.csv")];
    for (table, format, object) in tables {
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION 's3://lake/{object}'");
        assert_eq!(ask(&server, &sql).await["error"], Value::Null, "{sql}");
    }
    quiet(&store).await;
    // Of the text a first part is read; of the other file the footer is known.
    store.replace_after(1, "lake/t.csv", lines("2"));
    store.replace_after(0, "lake/t.parquet", parquet(&numbers(2)));
    store.replace_after(1, "lake/short.csv", "n\n7\n");
    for (sql, object, after) in [
        ("SELECT sum(n) FROM a", "t.csv", 2_000_000),
        ("SELECT sum(id + 0) FROM b", "t.parquet", 20),
        ("SELECT sum(n) FROM c", "short.csv", 7),
    ] {
        let error = &ask(&server, sql).await["error"];
        let said = error["message"].as_str().unwrap_or_default();
        assert_eq!(error["code"], "bad_data", "{sql}: {error}");
        let is_named = said.contains(&format!("s3://lake/{object}"));
        assert!(is_named && said.contains("changed while it was read"), "{said}");
        assert_eq!(ask(&server, sql).await["rows"], json!([[after]]), "{sql}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn google_and_azure_are_read_by_their_own_variables() {
    let store = ObjectServer::start().await;
    for name in ["a", "b"] {
        store.put(&format!("lake/t/kind={name}/x.csv"), "n\n1\n");
    }
    let account = json!({
        "gcs_base_url": store.url, "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": "",
    });
    let account = account.to_string();
    let server = started(
        &store,
        &[
            ("GOOGLE_SERVICE_ACCOUNT_KEY", account.as_str()),
            ("GOOGLE_ALLOW_HTTP", "true"),
            ("AZURE_STORAGE_USE_EMULATOR", "true"),
            ("AZURITE_BLOB_STORAGE_URL", store.url.as_str()),
        ],
    );
    for scheme in ["gs", "az"] {
        let created =
            ask(&server, &format!("CREATE EXTERNAL TABLE {scheme} STORED AS CSV LOCATION '{scheme}://lake/t/'")).await;
        assert_eq!(created["error"], Value::Null, "{created}");
        let sql = format!("SELECT count(*), min(kind), max(kind) FROM {scheme}");
        assert_eq!(ask(&server, &sql).await["rows"], json!([[2, "a", "b"]]), "{scheme}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_error_of_a_refusing_store_has_no_secrets() {
    let store = ObjectServer::start().await;
    store.put("lake/a.csv", "n\n1\n");
    let create = |bucket: &str| format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 's3://{bucket}/a.csv'");
    let cases = [
        (("AWS_ACCESS_KEY_ID", "AKIAWRONG"), "lake", "store_access_denied", "credentials"),
        (("AWS_REGION", "eu-test-1"), "other", "no_such_bucket", "region"),
        (("AWS_ENDPOINT", "http://127.0.0.1:9"), "lake", "store_unavailable", "endpoint"),
        (("AWS_ALLOW_HTTP", "false"), "lake", "store_error", ""),
    ];
    for (setting, bucket, code, hint) in cases {
        let server = started(&store, &[setting]);
        let begun = Instant::now();
        let refused = ask(&server, &create(bucket)).await;
        assert_eq!(refused["error"]["code"], code, "{refused}");
        assert!(refused["error"]["hint"].as_str().unwrap_or_default().contains(hint), "{refused}");
        let text = refused.to_string();
        assert!(["AKIA", SECRET_KEY].iter().all(|secret| !text.contains(secret)), "{text}");
        assert!(begun.elapsed() < Duration::from_secs(10), "{code} took {:?}", begun.elapsed());
    }

    let data = TempDir::new().unwrap();
    let done = querent(data.path(), &["sql", &create("lake")]).output().unwrap();
    let told = String::from_utf8(done.stderr).unwrap();
    assert!(!done.status.success() && told.contains("AWS_ACCESS_KEY_ID"), "{told}");
    let hits = store.take_requests().iter().filter(|asked| asked.path.contains("meta-data")).count();
    assert_eq!(hits, 0, "the metadata service is not asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_never_answers_ends_the_statement_in_time() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", silent.local_addr().unwrap());
    let store = ObjectServer::start().await;
    let server = started(&store, &[("AWS_ENDPOINT", endpoint.as_str())]);
    let begun = Instant::now();
    let refused = ask(&server, "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 's3://lake/a/'").await;
    assert_eq!(refused["error"]["code"], "store_unavailable", "{refused}");
    assert!(begun.elapsed() < Duration::from_secs(35), "took {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_web_server_are_tables_and_imports() {
    let store = ObjectServer::start().await;
    store.put("web/a b.csv", "id,city\n1,Rome\n2,Oslo\n");
    store.put("web/t.parquet", parquet(&numbers(1)));
    store.put("web/t.arrow", arrow_file(&numbers(1)));
    store.put("web/day=2024-05-06/t.ndjson", "{\"id\":7}\n");
    let many: String = (1..=20_000).map(|n| format!("{n},some text of row {n}\n")).collect();
    store.put("web/many.csv", format!("n,words\n{many}"));
    let (_folder, engine) = engine(&[&format!("{}/", store.url)]).await;
    let session = admin(&engine);
    for (table, format, path) in [
        ("cities", "CSV", "web/a%20b.csv"),
        ("numbers", "PARQUET", "web/t.parquet"),
        ("moved", "PARQUET", "redirect/here/web/t.parquet"),
        ("words", "ARROW", "web/t.arrow"),
        ("log", "JSON", "web/day=2024-05-06/t.ndjson"),
        ("many", "CSV", "web/many.csv"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS {format} LOCATION '{}/{path}'", store.url);
        rows(&session, &sql).await.unwrap();
    }
    for (sql, expected) in [
        ("SELECT city FROM cities WHERE id = 2", "Oslo"),
        ("SELECT sum(id) FROM numbers", "15"),
        ("SELECT max(word) FROM moved", "w5"),
        ("SELECT sum(id) FROM words", "15"),
        ("SELECT id FROM log", "7"),
        ("SELECT sum(n) FROM many WHERE words LIKE '%row%'", "200010000"),
    ] {
        assert_eq!(rows(&session, sql).await.unwrap(), [[expected]], "{sql}");
    }
    for (path, table, expected) in
        [("web/a%20b.csv", "own_cities", 2), ("web/t.parquet", "own_numbers", 5), ("web/many.csv", "own_many", 20_000)]
    {
        let request = ImportRequest {
            source: format!("{}/{path}", store.url),
            format: None,
            options: Default::default(),
            table: TableName::new("default", table),
            external: false,
            if_exists: Some(IfExists::Error),
        };
        let done = engine.import(&Principal::local_admin(), request, std::sync::Arc::new(NoProgress)).await.unwrap();
        assert_eq!(done.rows, Some(expected), "{path}");
    }
    assert_eq!(
        rows(&session, "SELECT sum(n), max(words) FROM own_many").await.unwrap(),
        [["200010000", "some text of row 9999"]]
    );
    let create = |path: &str| format!("CREATE EXTERNAL TABLE bad STORED AS CSV LOCATION '{}/{path}'", store.url);
    for (path, code) in
        [("web/none.csv", "no_files"), ("web/", "unsupported"), ("redirect/away/web/t.csv", "location_not_allowed")]
    {
        let error = rows(&session, &create(path)).await.unwrap_err();
        assert_eq!(error.code(), code, "{path}: {error}");
    }
    let lance = format!("CREATE EXTERNAL TABLE bad STORED AS LANCE LOCATION '{}/web/t.lance'", store.url);
    assert_eq!(rows(&session, &lance).await.unwrap_err().code(), "unsupported");
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_the_settings_name_is_asked_for() {
    let store = ObjectServer::start().await;
    store.put("web/a.csv", "n\n1\n");
    let local = store.url.replace("127.0.0.1", "localhost");
    let inside = format!("{}/web/", store.url);
    let create = |location: &str| format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{location}'");
    let (at_all, any, some) = (engine(&[]).await, engine(&["http://", "s3://"]).await, engine(&[&inside]).await);
    let refused: [(&Engine, Role, String); 13] = [
        (&at_all.1, Role::Admin, format!("{inside}a.csv")),
        (&at_all.1, Role::Admin, "s3://lake/a.csv".into()),
        // Any host, and so none of this network.
        (&any.1, Role::Admin, format!("{inside}a.csv")),
        (&any.1, Role::Admin, format!("{local}/web/a.csv")),
        (&any.1, Role::Admin, "http://169.254.169.254/latest/meta-data/a.csv".into()),
        (&any.1, Role::Admin, "http://2130706433/a.csv".into()),
        (&any.1, Role::Admin, "http://[::1]/a.csv".into()),
        (&any.1, Role::Admin, "https://example.org/a.csv".into()),
        (&any.1, Role::Write, "s3://lake/a.csv".into()),
        (&some.1, Role::Admin, format!("{}/a.csv", store.url)),
        (&some.1, Role::Admin, format!("{inside}../a.csv")),
        (&some.1, Role::Write, format!("{local}/web/a.csv")),
        (
            &some.1,
            Role::Admin,
            format!("http://user:hush@{}/web/a.csv?sig=hush", store.url.trim_start_matches("http://")),
        ),
    ];
    for (engine, role, location) in refused {
        let session = engine.session(Principal::new("somebody", role), Limits::default());
        let error = rows(&session, &create(&location)).await.unwrap_err();
        assert_eq!(error.code(), "location_not_allowed", "{location}: {error}");
        assert!(!error.to_string().contains("hush"), "{error}");
    }
    assert_eq!(store.take_requests(), [], "nothing was asked of anybody");
    let writer = some.1.session(Principal::new("writer", Role::Write), Limits::default());
    rows(&writer, &create(&format!("{inside}a.csv"))).await.unwrap();
    assert_eq!(rows(&writer, "SELECT n FROM t").await.unwrap(), [["1"]]);

    // A table from before the settings changed is not read any more.
    let folder = some.0;
    some.1.close().await.unwrap();
    drop((writer, some.1));
    let mut options = EngineOptions::new(folder.path().join("data"));
    options.external_urls = vec![format!("{}/elsewhere/", store.url).parse().unwrap()];
    let engine = Engine::open_with(options).await.unwrap();
    store.take_requests();
    assert_eq!(rows(&admin(&engine), "SELECT n FROM t").await.unwrap_err().code(), "location_not_allowed");
    assert_eq!(store.take_requests(), []);
}

#[test]
fn the_setting_takes_urls_and_nothing_else() {
    let load = |value: &str| Config::load(&SettingSources::default().with_flag("query.external_urls", value));
    let roots = load("s3://lake/raw/, https://data.example.org/,gs://").unwrap().settings.query.external_urls;
    let spelled: Vec<String> = roots.iter().map(UrlRoot::to_string).collect();
    assert_eq!(spelled, ["s3://lake/raw", "https://data.example.org/", "gs://"]);
    for wrong in ["/srv/lake", "s3://lake/*", "https://user:hush@example.org/", "ftp://example.org/"] {
        let error = load(wrong).err().unwrap().to_string();
        assert!(error.contains("external_urls") && !error.contains("hush"), "{wrong}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tree_in_a_bucket_is_registered_and_refreshed() {
    let store = ObjectServer::start().await;
    store.put("lake/raw/trips/a.csv", "id\n1\n");
    store.put("lake/raw/sales/orders/a.ndjson", "{\"id\":1}\n");
    store.put("lake/raw/sales/orders/notes.txt", "x");
    store.put("lake/raw/events/year=2023/a.parquet", parquet(&numbers(1)));
    store.put("lake/raw/events/year=2024/a.parquet", parquet(&numbers(6)));
    store.put("lake/raw/mixed/a.csv", "id\n7\n");
    store.put("lake/raw/mixed/below/b.csv", "other\nz\n");
    store.put("lake/raw/two/a.csv", "id\n7\n");
    store.put("lake/raw/two/a.ndjson", "{\"id\":1}\n");
    store.put("lake/else/a.csv", "id\n7\n");
    let data = TempDir::new().unwrap();
    let import = || run(&store, data.path(), &["import", "--recursive", "--json", "s3://lake/raw/"]);
    let first = import();
    for said in ["trips", "orders", "events", "mixed", "below", "notes.txt", "several formats (csv, ndjson)"] {
        assert!(first.contains(said), "no {said} in {first}");
    }
    let sql = |text: &str| run(&store, data.path(), &["sql", "--json", text]);
    for (text, expected) in [
        ("SELECT count(*) AS n FROM events WHERE year = 2024", "{\"n\":5}\n"),
        ("SELECT id FROM sales.orders", "{\"id\":1}\n"),
        ("SELECT id FROM mixed", "{\"id\":7}\n"),
        ("SELECT other FROM mixed.below", "{\"other\":\"z\"}\n"),
        ("SELECT count(*) AS n FROM system.tables", "{\"n\":5}\n"),
    ] {
        assert_eq!(sql(text), expected, "{text}");
    }
    store.remove("lake/raw/trips/");
    store.put("lake/raw/new/a.csv", "id\n1\n");
    let second = import();
    assert!(second.contains("dropped") && second.contains("registered"), "{second}");
    assert_eq!(sql("SELECT name FROM system.tables WHERE name IN ('trips', 'new')"), "{\"name\":\"new\"}\n");
    assert_nowhere(data.path(), &[SECRET_KEY, ACCESS_KEY]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_registers_a_tree_that_it_can_read() {
    let store = ObjectServer::start().await;
    store.put("lake/raw/trips/a.csv", "id\n1\n");
    store.put("lake/raw/sales/orders/a.ndjson", "{\"id\":1}\n");
    store.put("lake/raw/two/a.csv", "id\n7\n");
    store.put("lake/raw/two/a.ndjson", "{\"id\":1}\n");
    let server = started(&store, &[]);
    let import = |more: &[&str]| {
        let mut command = Command::new(querent_binary());
        command.args(["import", "--recursive", "--server", &server.url]).args(more);
        let output = tokio::task::block_in_place(|| command.output().unwrap());
        let told = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.success(), told.concat())
    };
    let (_, dry) = import(&["--dry-run", "s3://lake/raw/"]);
    assert!(dry.contains("trips: would be registered") && dry.ends_with("nothing was changed\n"), "{dry}");
    assert_eq!(ask(&server, "SELECT count(*) FROM system.tables").await["rows"], json!([[0]]));

    let (is_done, told) = import(&["--json", "s3://lake/raw/"]);
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(is_done && lines.len() == 4, "{told}");
    let orders = lines.iter().find(|line| line["table"] == "orders").unwrap();
    assert_eq!((&orders["database"], &orders["step"]), (&json!("sales"), &json!("registered")));
    let summary = json!({ "registered": 2, "refreshed": 0, "unchanged": 0, "dropped": 0, "skipped": 1 });
    assert_eq!(lines[3], summary);
    assert_eq!(ask(&server, "SELECT count(*) FROM sales.orders").await["rows"], json!([[1]]));

    store.remove("lake/raw/trips/");
    let (_, told) = import(&["s3://lake/raw/"]);
    assert!(told.contains("trips: dropped") && told.contains("1 unchanged, 1 dropped, 1 skipped"), "{told}");
    for (source, code) in [("s3://nowhere/raw/", "location_not_allowed"), ("s3://lake/none/", "no_files")] {
        let (is_done, told) = import(&[source]);
        assert!(!is_done && told.contains(code), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lance_dataset_in_a_bucket_is_a_table() {
    let store = ObjectServer::start().await;
    let folder = tempfile::tempdir().unwrap();
    let words = folder.path().join("words.lance");
    for first in [1, 6, 11] {
        append(&words, &numbers(first)).await;
    }
    put_folder(&store, "lake/sets/words.lance", &words);
    store.put("lake/sets/log/a.csv", "id\n1\n");
    // What a pattern, an ending or a listing says must not be taken for the dataset.
    store.put("lake/plain/a.csv", "id\n1\n");
    let server = started(&store, &[]);
    for (table, location) in [("words", "s3://lake/sets/words.lance"), ("same", "s3://lake/sets/words.lance/")] {
        let sql = format!("CREATE EXTERNAL TABLE {table} STORED AS LANCE LOCATION '{location}'");
        assert_eq!(ask(&server, &sql).await["error"], Value::Null, "{sql}");
    }
    for (sql, expected) in [
        ("SELECT count(*), sum(id), max(word) FROM words", json!([[15, 120, "w9"]])),
        ("SELECT word FROM words WHERE id > 3 AND word <> 'w5' ORDER BY id LIMIT 2", json!([["w4"], ["w6"]])),
        ("SELECT a.word FROM words a JOIN same b ON a.id = b.id + 14", json!([["w15"]])),
    ] {
        assert_eq!(ask(&server, sql).await["rows"], expected, "{sql}");
    }
    // The newest version is read.
    append(&words, &numbers(16)).await;
    put_folder(&store, "lake/sets/words.lance", &words);
    assert_eq!(ask(&server, "SELECT count(*), max(id) FROM words").await["rows"], json!([[20, 20]]));

    for (location, code) in [
        ("s3://lake/plain/", "no_files"),
        ("s3://lake/nothing.lance", "no_files"),
        ("s3://nowhere/words.lance", "location_not_allowed"),
        ("https://example.org/words.lance", "location_not_allowed"),
    ] {
        let sql = format!("CREATE EXTERNAL TABLE bad STORED AS LANCE LOCATION '{location}'");
        assert_eq!(ask(&server, &sql).await["error"]["code"], code, "{sql}");
    }
    store.put("lake/broken.lance/_versions/1.manifest", "no manifest");
    let broken = "CREATE EXTERNAL TABLE bad STORED AS LANCE LOCATION 's3://lake/broken.lance'";
    assert_eq!(ask(&server, broken).await["error"]["code"], "bad_data");
    store.remove("lake/sets/words.lance/data/");
    let gone = ask(&server, "SELECT sum(id) FROM words").await["error"]["message"].to_string();
    assert!(gone.contains("Not found: s3://lake/sets/words.lance/data/"), "{gone}");
    store.remove("lake/sets/words.lance/");
    assert_eq!(ask(&server, "SELECT sum(id) FROM words").await["error"]["code"], "bad_data");
    server.signal("TERM");
    assert_nowhere(server.data.path(), &[SECRET_KEY, ACCESS_KEY]);

    // Nobody says what it is: the importer, and the tree that it lies in, find out.
    put_folder(&store, "lake/sets/words.lance", &words);
    let data = TempDir::new().unwrap();
    run(&store, data.path(), &["import", "s3://lake/sets/words.lance", "--table", "copied"]);
    let tree = run(&store, data.path(), &["import", "--recursive", "--json", "s3://lake/sets/"]);
    assert!(tree.contains("\"registered\":2") && tree.contains("\"skipped\":0"), "{tree}");
    let sql = |text: &str| run(&store, data.path(), &["sql", "--json", text]);
    assert_eq!(sql("SELECT sum(id) AS n FROM copied"), "{\"n\":210}\n");
    assert_eq!(sql("SELECT sum(id) AS n FROM words"), "{\"n\":210}\n");
    assert_eq!(sql("SELECT count(*) AS n FROM log"), "{\"n\":1}\n");
}

/// Starts a server that may read the tests' buckets from the store.
fn started(store: &ObjectServer, settings: &[(&str, &str)]) -> ServerProcess {
    let mut all = store.s3_settings();
    all.push(ROOTS);
    all.extend(settings);
    tokio::task::block_in_place(|| ServerProcess::start(&all))
}

/// Waits until nobody reads from the store any more: the columns' values are collected in the background.
async fn quiet(store: &ObjectServer) {
    let is_silent = async || {
        store.take_requests();
        // Silence is a time without requests, longer than the pause before values are collected.
        tokio::time::sleep(Duration::from_millis(2500)).await;
        store.take_requests().is_empty()
    };
    wait_until("nobody reads from the store any more", is_silent).await;
}

pub(crate) async fn ask(server: &ServerProcess, sql: &str) -> Value {
    let request = reqwest::Client::new().post(format!("{}/v1/query", server.url)).header("accept", "application/json");
    let reply = request.header("content-type", "application/sql").body(sql.to_owned()).send().await.unwrap();
    reply.json().await.unwrap()
}

/// Runs `querent` on a data folder of its own.
fn querent(data: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(querent_binary());
    command.args(arguments).arg("--data").arg(data);
    command.env("QUERENT_EMBED_PROVIDER", "none").env(ROOTS.0, ROOTS.1);
    command
}

fn run(store: &ObjectServer, data: &Path, arguments: &[&str]) -> String {
    let output = tokio::task::block_in_place(|| querent(data, arguments).envs(store.s3_settings()).output().unwrap());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{arguments:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

async fn engine(roots: &[&str]) -> (TempDir, Engine) {
    let folder = tempfile::tempdir().unwrap();
    let mut options = EngineOptions::new(folder.path().join("data"));
    options.external_urls = roots.iter().map(|root| root.parse().unwrap()).collect();
    (folder, Engine::open_with(options).await.unwrap())
}

/// Asserts that no file of a folder contains any of the strings.
pub(crate) fn assert_nowhere(folder: &Path, texts: &[&str]) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_nowhere(&path, texts);
            continue;
        }
        // Files come and go while a server ends.
        let bytes = std::fs::read(&path).unwrap_or_default();
        for text in texts {
            let found = bytes.windows(text.len()).any(|window| window == text.as_bytes());
            assert!(!found, "{} holds {text}", path.display());
        }
    }
}

fn parquet(batch: &RecordBatch) -> Vec<u8> {
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.into_inner().unwrap()
}

async fn append(dataset: &Path, batch: &RecordBatch) {
    let rows = RecordBatchIterator::new([Ok(batch.clone())], batch.schema());
    let params = WriteParams { mode: WriteMode::Append, ..WriteParams::default() };
    Dataset::write(rows, dataset.to_str().unwrap(), Some(params)).await.unwrap();
}

/// Puts all files of a folder below a key.
fn put_folder(store: &ObjectServer, key: &str, folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let below = format!("{key}/{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => put_folder(store, &below, &path),
            false => store.put(&below, std::fs::read(&path).unwrap()),
        }
    }
}

fn arrow_file(batch: &RecordBatch) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    file_format(&path, batch);
    std::fs::read(path).unwrap()
}
