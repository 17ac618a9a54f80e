//! A view over what its reader may not see is not there: neither its text nor its columns nor the errors of its plan tell
//! what is hidden, through any door.

use querent_catalog::{
    NewMetric, NewRelationship, PageRequest, Principal, Role, SearchRequest, TableFilter, TableName,
};
use querent_engine::{Engine, Limits, Session};
use querent_flight::config::{RoleName, TokenSettings};
use querent_tests::script::{run_sql, says};
use querent_tests::{TestServer, TestSettings};
use serde_json::json;

use crate::sql::{engine, rows};

/// Parts of what must not be told.
const HIDDEN: [&str; 4] = ["hdb_zebra", "tbl_okapi", "col_gnu", "vw_below"];

const SETUP: [&str; 7] = [
    "CREATE DATABASE pub",
    "CREATE DATABASE hdb_zebra",
    "CREATE TABLE pub.plain AS SELECT 1 AS a",
    "CREATE TABLE hdb_zebra.tbl_okapi AS SELECT 7 AS col_gnu",
    "CREATE VIEW pub.open AS SELECT a + 1 AS b FROM pub.plain",
    "CREATE VIEW pub.direct AS SELECT * FROM hdb_zebra.tbl_okapi",
    "CREATE VIEW pub.above AS SELECT col_gnu AS c FROM pub.direct",
];

fn scoped(engine: &Engine) -> Session {
    engine.session(Principal::new("zoe", Role::Read).with_databases(["pub"]), Limits::default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_over_what_is_hidden_is_not_there() {
    let (_folder, engine) = engine().await;
    let admin = engine.session(Principal::new("root", Role::Admin), Limits::default());
    for statement in SETUP {
        rows(&admin, statement).await.unwrap();
    }
    assert_eq!(rows(&admin, "SELECT c FROM pub.above").await.unwrap(), [["7"]]);
    let session = scoped(&engine);
    let listed = "SELECT table_name FROM information_schema.views ORDER BY 1";
    assert_eq!(rows(&session, listed).await.unwrap(), [["open"]]);
    assert_eq!(rows(&session, "SELECT b FROM pub.open").await.unwrap(), [["2"]]);
    assert_eq!(rows(&admin, listed).await.unwrap(), [["above"], ["direct"], ["open"]]);
    let sql = [
        "SELECT * FROM pub.direct",
        "SELECT * FROM pub.above",
        "SELECT nothing FROM pub.above",
        "SELECT c + 'x' FROM pub.above",
        "SHOW CREATE TABLE pub.direct",
        "DESCRIBE pub.direct",
        "SHOW COLUMNS FROM pub.above",
        "EXPLAIN SELECT * FROM pub.above",
        "SELECT * FROM information_schema.views",
        "SELECT * FROM information_schema.columns",
        "SELECT * FROM information_schema.tables",
        "SELECT * FROM system.tables",
        "SELECT * FROM system.columns",
        "SHOW ALL TABLES",
    ];
    for statement in sql {
        tells_nothing(statement, &outcome(rows(&session, statement).await));
    }
    let missing = rows(&session, "SELECT * FROM pub.nothing_at_all").await.unwrap_err();
    let hidden = rows(&session, "SELECT * FROM pub.direct").await.unwrap_err();
    assert_eq!((missing.code(), hidden.code()), ("table_not_found", "table_not_found"));
    // Nor is its name what somebody may have meant.
    for (misspelt, hidden) in [("pub.direc", "direct"), ("pub.abov", "above")] {
        let error = rows(&session, &format!("SELECT * FROM {misspelt}")).await.unwrap_err();
        let told = format!("{error} {}", error.hint().unwrap_or_default());
        assert!(!told.contains(hidden), "{told}");
        let known = rows(&admin, &format!("SELECT * FROM {misspelt}")).await.unwrap_err().to_string();
        assert!(known.contains(hidden), "{known}");
    }
    let near = rows(&session, "SELECT * FROM pub.opem").await.unwrap_err().to_string();
    assert!(near.contains("did you mean `open`"), "{near}");
    let kql = [
        "database('pub').direct | take 1",
        "database('pub').above | getschema",
        "union database('pub').*",
        "database('pub').direct | where col_nothing == 1",
        "search in (database('pub').direct) 'x'",
        "find in (database('pub').above) where true",
    ];
    for query in kql {
        let outcome = match session.kql(query).await {
            Ok(stream) => match stream.collect().await {
                Ok((batches, _)) => format!("{batches:?}"),
                Err(error) => error.to_string(),
            },
            Err(error) => format!("{} {error} {:?}", error.code(), error.hint()),
        };
        tells_nothing(query, &outcome);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_there_takes_no_place_in_a_search() {
    let (_folder, engine_with) = engine().await;
    let (_other_folder, engine_without) = engine().await;
    for (engine, statements) in [
        (&engine_with, SETUP.as_slice()),
        // Without what is hidden.
        (&engine_without, [SETUP[0], SETUP[2], SETUP[4]].as_slice()),
    ] {
        let admin = engine.session(Principal::new("root", Role::Admin), Limits::default());
        for statement in statements {
            rows(&admin, statement).await.unwrap();
        }
    }
    let caller = Principal::new("zoe", Role::Read).with_databases(["pub"]);
    for query in ["pub", "view direct", "above", "plain", "open"] {
        let request = SearchRequest { query: query.to_owned(), database: None, limit: 10 };
        let mut told = Vec::new();
        for engine in [&engine_with, &engine_without] {
            let hits = engine.catalog().search().tables(&caller, &request).await.unwrap();
            told.push(hits.iter().map(|hit| format!("{} {}", hit.table.name, hit.score)).collect::<Vec<_>>());
        }
        assert_eq!(told[0], told[1], "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_there_takes_no_place_on_a_page() {
    let (_folder, engine) = engine().await;
    let admin = engine.session(Principal::new("root", Role::Admin), Limits::default());
    for statement in SETUP {
        rows(&admin, statement).await.unwrap();
    }
    let caller = Principal::new("zoe", Role::Read).with_databases(["pub"]);
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let request = PageRequest { limit: 1, after };
        let page = engine.catalog().tables().list(&caller, &TableFilter::default(), request).await.unwrap();
        assert_eq!(page.items.len(), 1, "after {names:?}: {:?}", page.next);
        names.extend(page.items.into_iter().map(|table| table.name.table));
        let Some(token) = page.next else { break };
        assert!(["above", "direct"].iter().all(|hidden| !token.0.contains(hidden)), "{token:?}");
        after = Some(token);
    }
    assert_eq!(names, ["open", "plain"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relationship_of_a_view_that_is_not_there_is_not_there_either() {
    let (_folder, engine) = engine().await;
    let (root, zoe) = (Principal::new("root", Role::Admin), Principal::new("zoe", Role::Write).with_databases(["pub"]));
    let admin = engine.session(root.clone(), Limits::default());
    for statement in SETUP {
        rows(&admin, statement).await.unwrap();
    }
    let relationships = engine.catalog().relationships();
    let declare = async |view: &str, column: &str| {
        let new = NewRelationship {
            from: TableName::new("pub", view),
            from_columns: vec![column.to_owned()],
            to: TableName::new("pub", "plain"),
            to_columns: vec!["a".to_owned()],
        };
        relationships.declare(&root, &new).await.unwrap().id.unwrap()
    };
    let (hidden, seen) = (declare("direct", "col_gnu").await, declare("open", "b").await);
    let ids = async |who: &Principal, table: Option<&TableName>| -> Vec<i64> {
        let page = relationships.list(who, table, PageRequest::first(10)).await.unwrap();
        page.items.iter().filter_map(|relationship| relationship.id).collect()
    };
    let plain = TableName::new("pub", "plain");
    for table in [None, Some(&plain)] {
        assert_eq!(ids(&root, table).await, [hidden, seen]);
        assert_eq!(ids(&zoe, table).await, [seen]);
    }
    let told = |error: querent_catalog::CatalogError| error.to_string().replace(char::is_numeric, "");
    let refused = told(relationships.drop(&zoe, hidden).await.unwrap_err());
    assert_eq!(refused, told(relationships.drop(&zoe, hidden + 100).await.unwrap_err()));
    relationships.drop(&zoe, seen).await.unwrap();
    assert_eq!(ids(&root, None).await, [hidden]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taught_of_hidden_tables_and_views_is_not_there() {
    let (_folder, engine) = engine().await;
    let root = Principal::new("root", Role::Admin);
    let admin = engine.session(root.clone(), Limits::default());
    rows(&admin, "CREATE DATABASE pub").await.unwrap();
    let admin = admin.with_database("pub").await.unwrap();
    for statement in [
        "CREATE TABLE plain AS SELECT 1 AS a",
        "CREATE TABLE tbl_okapi AS SELECT 1 AS col_gnu",
        "CREATE VIEW over_okapi AS SELECT col_gnu FROM tbl_okapi",
        "CREATE VIEW changing AS SELECT a AS col_gnu FROM plain",
        "GRANT SELECT ON plain TO ROLE reader",
        "GRANT SELECT ON over_okapi TO ROLE reader",
        "GRANT SELECT ON changing TO ROLE reader",
    ] {
        rows(&admin, statement).await.unwrap();
    }
    let metric = |name: &str, table: &str, expression: &str, filter: Option<&str>| NewMetric {
        name: name.to_owned(),
        description: None,
        table: TableName::new("pub", table),
        expression: expression.to_owned(),
        filter: filter.map(str::to_owned),
    };
    for new in [
        metric("seen total", "plain", "sum(a)", None),
        metric("filtered total", "plain", "sum(a)", Some("a IN (SELECT col_gnu FROM tbl_okapi)")),
        metric("compared total", "plain", "sum(a) - (SELECT max(col_gnu) FROM pub.tbl_okapi)", None),
        metric("viewed total", "over_okapi", "sum(col_gnu)", None),
    ] {
        admin.define_metric(new).await.unwrap();
    }
    admin.verify_query("what is plain", "SELECT a FROM plain").await.unwrap();
    admin.verify_query("what is changing", "SELECT col_gnu FROM changing").await.unwrap();
    rows(&admin, "CREATE OR REPLACE VIEW changing AS SELECT col_gnu FROM tbl_okapi").await.unwrap();

    let reader = crate::policies::principal("zoe", Role::Read, &["reader"], None).with_databases(["pub"]);
    let knowledge = engine.catalog().knowledge();
    for (who, metrics, queries) in [(&root, 4, 2), (&reader, 1, 1)] {
        let page = || PageRequest::first(10);
        let listed = knowledge.list_metrics(who, None, page()).await.unwrap().items;
        let similar = knowledge.similar_metrics(who, None, "total", 10).await.unwrap();
        assert_eq!((listed.len(), similar.len()), (metrics, metrics), "{}: {listed:?}", who.subject());
        assert_eq!(listed[0].name, "seen total");
        let listed = knowledge.list_verified_queries(who, Some("pub"), page()).await.unwrap().items;
        let similar = knowledge.similar_queries(who, None, "what is plain and changing", 10).await.unwrap();
        assert_eq!((listed.len(), similar.len()), (queries, queries), "{}: {listed:?}", who.subject());
        assert_eq!(listed[0].sql, "SELECT a FROM plain");
    }
    let first = knowledge.list_metrics(&reader, None, PageRequest::first(1)).await.unwrap();
    assert_eq!(first.items.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_there_stands_before_no_table_of_its_name() {
    let (_folder, engine) = engine().await;
    let admin = engine.session(Principal::new("root", Role::Admin), Limits::default());
    for statement in SETUP.into_iter().chain([
        "CREATE DATABASE other",
        "CREATE TABLE other.direct AS SELECT 1 AS a",
        "CREATE DATABASE third",
    ]) {
        rows(&admin, statement).await.unwrap();
    }
    let caller = Principal::new("zoe", Role::Read).with_databases(["pub", "other", "third"]);
    let session = engine.session(caller, Limits::default());
    let error = rows(&session, "SELECT * FROM third.direct").await.unwrap_err().to_string();
    assert!(error.contains("other.direct"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_view_that_is_not_there_for_a_writer_is_neither_dropped_nor_replaced() {
    let (_folder, engine) = engine().await;
    let admin = engine.session(Principal::new("root", Role::Admin), Limits::default());
    for statement in SETUP {
        rows(&admin, statement).await.unwrap();
    }
    let writer = engine.session(Principal::new("walt", Role::Write).with_databases(["pub"]), Limits::default());
    for (statement, code) in [
        ("DROP VIEW pub.direct", "table_not_found"),
        ("COMMENT ON TABLE pub.direct IS 'x'", "table_not_found"),
        ("COMMENT ON COLUMN pub.above.c IS 'x'", "table_not_found"),
        ("CREATE OR REPLACE VIEW pub.above AS SELECT 1 AS c", "already_exists"),
        ("CREATE OR REPLACE TABLE pub.above AS SELECT 1 AS c", "already_exists"),
        ("DROP DATABASE pub", "database_not_empty"),
        ("DROP DATABASE pub CASCADE", "not_allowed"),
        ("DROP DATABASE IF EXISTS pub CASCADE", "not_allowed"),
    ] {
        let error = rows(&writer, statement).await.unwrap_err();
        assert_eq!(error.code(), code, "{statement}: {error}");
    }
    rows(&writer, "DROP VIEW IF EXISTS pub.direct").await.unwrap();
    assert_eq!(rows(&admin, "SELECT c FROM pub.above").await.unwrap(), [["7"]]);
    // What it knows it changes.
    rows(&writer, "CREATE OR REPLACE VIEW pub.open AS SELECT a + 2 AS b FROM pub.plain").await.unwrap();
    rows(&writer, "DROP VIEW pub.open").await.unwrap();
    for view in ["above", "direct"] {
        rows(&admin, &format!("DROP VIEW pub.{view}")).await.unwrap();
    }
    rows(&writer, "DROP DATABASE pub CASCADE").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn no_door_tells_what_a_view_is_made_of() {
    let script = json!({ "runs": [{ "turns": [
        { "events": [run_sql("SELECT * FROM pub.direct"), run_sql("SELECT * FROM information_schema.views")] },
        says("done"),
    ] }] });
    let server = TestServer::start(TestSettings::default().script(script).change(|settings| {
        settings.auth.tokens =
            vec![token("root-tok", RoleName::Admin, None), token("zoe-tok", RoleName::Read, Some("pub"))];
    }))
    .await;
    for statement in SETUP {
        server.execute(statement).await;
    }
    let zoe = Some("zoe-tok");
    for sql in ["SELECT * FROM pub.above", "SELECT * FROM information_schema.views"] {
        let reply = server.post("/v1/query", &json!({ "sql": sql }), zoe).await;
        tells_nothing(sql, &reply.text);
    }
    for (path, csl) in [
        ("/v1/rest/query", "direct | take 1"),
        ("/v2/rest/query", "union *"),
        ("/v1/rest/mgmt", ".show tables"),
        ("/v1/rest/mgmt", ".show table direct cslschema"),
        ("/v1/rest/mgmt", ".show database schema"),
    ] {
        let reply = server.post(path, &json!({ "db": "pub", "csl": csl }), zoe).await;
        tells_nothing(&format!("{path} {csl}"), &reply.text);
    }
    for (name, arguments) in [
        ("describe_table", json!({ "table": "pub.direct" })),
        ("describe_table", json!({ "table": "pub.above" })),
        ("list_tables", json!({ "database": "pub" })),
        ("sample_rows", json!({ "table": "pub.direct" })),
        ("search_schema", json!({ "query": "gnu of the okapi" })),
        ("run_sql", json!({ "sql": "SELECT * FROM pub.direct" })),
        ("run_kql", json!({ "query": "database('pub').direct" })),
    ] {
        let called = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": name, "arguments": arguments } });
        let request = server.http.post(server.url("/mcp")).json(&called);
        let request = request.header("accept", "application/json, text/event-stream");
        let reply = server.send(request, zoe).await;
        assert_eq!(reply.status, 200, "{name}: {}", reply.text);
        tells_nothing(&format!("{name} {arguments}"), &reply.text);
    }
    for path in ["/v1/catalog/tables?database=pub", "/v1/catalog/search?q=gnu", "/v1/catalog/tables/pub/direct"] {
        tells_nothing(path, &server.get(path, zoe).await.text);
    }
    let asked = json!({ "question": "what is in the view direct?" });
    let reply = server.post("/v1/agent/ask", &asked, zoe).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    tells_nothing("ask", &reply.text);
}

fn token(token: &str, role: RoleName, database: Option<&str>) -> TokenSettings {
    TokenSettings {
        token: token.to_owned(),
        role,
        subject: None,
        databases: database.map(|name| vec![name.to_owned()]),
    }
}

fn outcome(answer: Result<Vec<Vec<String>>, querent_engine::EngineError>) -> String {
    match answer {
        Ok(rows) => format!("{rows:?}"),
        Err(error) => format!("{} {error} {:?}", error.code(), error.hint()),
    }
}

/// Fails where an answer has a name that its reader cannot know; what was asked may come back.
fn tells_nothing(asked: &str, answer: &str) {
    for hidden in HIDDEN {
        let told = answer.matches(hidden).count();
        assert!(told == 0 || asked.contains(hidden), "{asked} tells {hidden}: {answer}");
    }
}
