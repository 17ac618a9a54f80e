//! Vector indexes of managed tables: what they find, and what of a table they must not change.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, FixedSizeListArray, Float32Array};
use arrow::datatypes::{DataType, Field};
use querent_catalog::restore;
use querent_engine::{Engine, ScalarValue, Session, SessionVariables};
use querent_tests::wait_until;

use crate::plan_cache::answer;
use crate::policies::{caller, run};
use crate::sql::{admin, engine, rows};

const DIMENSION: usize = 16;
const NEAREST: usize = 10;

/// Returns the rows `from..to` of vectors around twenty centres, as a query.
fn vectors(from: usize, to: usize) -> String {
    let numbers: Vec<String> = (1..=DIMENSION)
        .map(|at| format!("sin(value % 20 * {at} * 1.7) * 2 + sin(value * {at} * 12.9898) * 0.5"))
        .collect();
    let last = to - 1;
    format!(
        "SELECT value AS id, value % 10 AS kind, [{}] AS v FROM generate_series({from}, {last}) AS s(value)",
        numbers.join(", ")
    )
}

/// Returns a vector beside a row's, as a literal.
fn near(id: usize) -> String {
    let number = |at: usize| {
        let (id, at) = (id as f64, at as f64);
        (id % 20.0 * at * 1.7).sin() * 2.0 + (id * at * 12.9898).sin() * 0.45
    };
    let numbers: Vec<String> = (1..=DIMENSION).map(|at| format!("{:.5}", number(at))).collect();
    format!("[{}]", numbers.join(", "))
}

async fn filled(rows_count: usize) -> (tempfile::TempDir, Engine) {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    run(&root, &[&format!("CREATE TABLE t (id BIGINT, kind BIGINT, v FLOAT[{DIMENSION}])")]).await;
    run(&root, &[&format!("INSERT INTO t {}", vectors(0, rows_count))]).await;
    (folder, engine)
}

/// Returns a session that uses no index.
async fn exact(engine: &Engine) -> Session {
    let session = admin(engine).with_variables(Arc::new(SessionVariables::default()));
    run(&session, &["SET vector_index = off"]).await;
    session
}

async fn plan(session: &Session, sql: &str) -> String {
    let shown = rows(session, &format!("EXPLAIN {sql}")).await.unwrap();
    shown.into_iter().flatten().collect::<Vec<_>>().join("\n")
}

/// Returns which share of an exact search's rows the indexed one has; both have as many.
async fn recall(indexed: &Session, exact: &Session, sql: &str) -> f64 {
    let (found, all) = (rows(indexed, sql).await.unwrap(), rows(exact, sql).await.unwrap());
    assert_eq!(found.len(), all.len(), "{sql}");
    let expected: HashSet<&String> = all.iter().map(|row| &row[0]).collect();
    found.iter().filter(|row| expected.contains(&row[0])).count() as f64 / all.len() as f64
}

fn datasets(folder: &Path) -> usize {
    std::fs::read_dir(folder.join("data/vectors")).map(|entries| entries.count()).unwrap_or_default()
}

async fn indexed_rows(session: &Session) -> String {
    let listed = rows(session, "SELECT indexed_rows FROM system.vector_indexes").await.unwrap();
    listed.into_iter().flatten().next().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_finds_what_an_exact_search_does() {
    let (_folder, engine) = filled(3_000).await;
    let (root, exact) = (admin(&engine), exact(&engine).await);
    let searches = [
        ("cosine", "cosine_distance(v, {})"),
        ("cosine", "cosine_similarity(v, {}) DESC"),
        ("l2", "l2_distance({}, v)"),
        ("dot", "inner_product(v, {}) DESC"),
        ("dot", "negative_inner_product(v, {})"),
    ];
    for metric in ["cosine", "l2", "dot"] {
        run(&root, &[&format!("CREATE INDEX by_{metric} ON t USING vector (v) WITH (metric = '{metric}')")]).await;
    }
    for (metric, order) in searches {
        let mut share = 0.0;
        for id in (150..3_000).step_by(300) {
            let order = order.replace("{}", &near(id));
            let sql = format!("SELECT id, kind FROM t ORDER BY {order} LIMIT {NEAREST}");
            // One row has no direction, and so no similarity; it comes first in falling order, which no index serves.
            if id == 150 && !order.starts_with("cosine_similarity") {
                let shown = plan(&root, &sql).await;
                assert!(shown.contains(&format!("index=by_{metric}")), "{shown}");
                assert!(!plan(&exact, &sql).await.contains("index="));
            }
            share += recall(&root, &exact, &sql).await / 10.0;
        }
        assert!(share >= 0.95, "{order}: {share}");
    }
    // Distances are those of the table's rows, and columns may have names.
    let near = near(40);
    let sql =
        format!("SELECT s.id, s.d FROM (SELECT id, l2_distance(v, {near}) AS d FROM t) AS s ORDER BY s.d LIMIT 3");
    assert!(plan(&root, &sql).await.contains("index=by_l2"));
    assert_eq!(rows(&root, &sql).await.unwrap(), rows(&exact, &sql).await.unwrap());
    let sql = format!("SELECT id FROM t AS x ORDER BY cosine_distance(x.v, {near}), id LIMIT 3 OFFSET 2");
    assert!(plan(&root, &sql).await.contains("index=by_cosine"));
    assert_eq!(rows(&root, &sql).await.unwrap(), rows(&exact, &sql).await.unwrap());
    let whole = format!("SELECT * FROM t ORDER BY l2_distance(v, {near}) LIMIT 5");
    assert_eq!(rows(&root, &whole).await.unwrap(), rows(&exact, &whole).await.unwrap());
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_that_an_index_does_not_serve_are_exact() {
    let (_folder, engine) = filled(1_000).await;
    let (root, exact) = (admin(&engine), exact(&engine).await);
    run(&root, &["CREATE INDEX by_meaning ON t USING hnsw (v vector_cosine_ops)"]).await;
    let near = near(7);
    let unserved = [
        format!("SELECT id FROM t ORDER BY l2_distance(v, {near}) LIMIT 5"),
        format!("SELECT id FROM t ORDER BY cosine_distance(v, {near}) DESC LIMIT 5"),
        format!("SELECT id FROM t ORDER BY cosine_distance(v, {near})"),
        format!("SELECT id FROM t ORDER BY cosine_distance(v, {near}) LIMIT 1001"),
        format!("SELECT id FROM t ORDER BY cosine_distance(v, {near}) + kind LIMIT 5"),
        format!("SELECT a.id FROM t AS a JOIN t AS b USING (id) ORDER BY cosine_distance(a.v, {near}) LIMIT 5"),
        // Fewer rows pass than are asked for.
        format!("SELECT id FROM t WHERE id < 3 ORDER BY cosine_distance(v, {near}) LIMIT 5"),
    ];
    for sql in unserved {
        assert!(!plan(&root, &sql).await.contains("index="), "{sql}");
        assert_eq!(rows(&root, &sql).await.unwrap(), rows(&exact, &sql).await.unwrap(), "{sql}");
    }
    let filtered = format!("SELECT id, kind FROM t WHERE kind = 7 ORDER BY cosine_distance(v, {near}) LIMIT 5");
    assert!(plan(&root, &filtered).await.contains("index=by_meaning"));
    assert!(recall(&root, &exact, &filtered).await >= 0.8);
    assert!(rows(&root, &filtered).await.unwrap().iter().all(|row| row[1] == "7"));
    let wrong = rows(&root, "SELECT id FROM t ORDER BY cosine_distance(v, [1.0, 2.0]) LIMIT 1").await.unwrap_err();
    assert_eq!(wrong.code(), "invalid_value");
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_came_after_are_found_at_once_and_taken_in_later() {
    let (folder, engine) = filled(1_000).await;
    let (root, exact) = (admin(&engine), exact(&engine).await);
    run(&root, &["CREATE INDEX by_length ON t USING vector (v) WITH (metric = 'l2')"]).await;
    assert_eq!(indexed_rows(&root).await, "1000");
    let one: Vec<&str> = vec!["9"; DIMENSION];
    let one = format!("[{}]", one.join(", "));
    run(&root, &[&format!("INSERT INTO t VALUES (77777, 1, {one}), (77778, 1, NULL)")]).await;
    let nearest = format!("SELECT id FROM t ORDER BY l2_distance(v, {one}) LIMIT 1");
    assert!(plan(&root, &nearest).await.contains("index=by_length"));
    assert_eq!(rows(&root, &nearest).await.unwrap(), [["77777"]]);

    run(&root, &[&format!("INSERT INTO t {}", vectors(1_000, 3_000))]).await;
    let sql = format!("SELECT id FROM t ORDER BY l2_distance(v, {}) LIMIT {NEAREST}", near(2_345));
    assert!(recall(&root, &exact, &sql).await >= 0.9);
    wait_until("the index takes in what was inserted", async || indexed_rows(&root).await == "3002").await;
    assert!(recall(&root, &exact, &sql).await >= 0.9);
    assert_eq!(rows(&root, &nearest).await.unwrap(), [["77777"]]);
    // A row without a vector comes first where the order says so.
    let nulls = format!("SELECT id FROM t ORDER BY l2_distance(v, {one}) NULLS FIRST LIMIT 2");
    assert_eq!(rows(&root, &nulls).await.unwrap(), [["77778"], ["77777"]]);

    // What writes the rows into another file has the index follow them.
    run(&root, &["OPTIMIZE t"]).await;
    assert_eq!(rows(&root, &nearest).await.unwrap(), [["77777"]]);
    wait_until("the index follows", async || plan(&root, &sql).await.contains("index=by_length")).await;
    assert!(recall(&root, &exact, &sql).await >= 0.9);

    // What replaces all rows leaves the index nothing to find.
    run(&root, &[&format!("INSERT OVERWRITE t {}", vectors(5_000, 5_400))]).await;
    let sql = format!("SELECT id FROM t ORDER BY l2_distance(v, {}) LIMIT 5", near(5_100));
    assert_eq!(rows(&root, &sql).await.unwrap(), rows(&exact, &sql).await.unwrap());
    wait_until("the index is built again", async || indexed_rows(&root).await == "400").await;
    wait_until("the new index is used", async || plan(&root, &sql).await.contains("index=by_length")).await;
    assert_eq!(rows(&root, &sql).await.unwrap(), rows(&exact, &sql).await.unwrap());
    wait_until("the old one is removed", async || datasets(folder.path()) == 1).await;
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_holds_whatever_index_there_is() {
    let (_folder, engine) = filled(1_000).await;
    let (root, exact) = (admin(&engine), exact(&engine).await);
    run(&root, &["CREATE INDEX by_meaning ON t USING vector (v)"]).await;
    let order = format!("ORDER BY cosine_distance(v, {}) LIMIT {NEAREST}", near(3));
    let expected = rows(&exact, &format!("SELECT id FROM t WHERE kind <> 3 {order}")).await.unwrap();
    run(&root, &["CREATE ROW POLICY no_threes ON t USING (kind <> 3) TO ROLE reader"]).await;
    let anna = caller(&engine, "anna", &["reader"], None);
    assert_eq!(rows(&anna, &format!("SELECT id FROM t {order}")).await.unwrap(), expected);
    assert_eq!((indexed_rows(&root).await, indexed_rows(&anna).await), ("1000".to_owned(), "NULL".to_owned()));
    assert_eq!(rows(&anna, "CREATE INDEX mine ON t USING vector (v)").await.unwrap_err().code(), "not_allowed");
    assert_eq!(rows(&anna, "DROP INDEX by_meaning").await.unwrap_err().code(), "not_allowed");

    // How far an index is says whether the table has rows.
    run(&root, &["CREATE TABLE few (id BIGINT, v FLOAT[4])", "CREATE INDEX of_few ON few USING vector (v)"]).await;
    run(&root, &["CREATE ROW POLICY none ON few USING (id < 0) TO PUBLIC"]).await;
    let states = "SELECT name, state FROM system.vector_indexes ORDER BY name";
    assert_eq!(rows(&root, states).await.unwrap(), [["by_meaning", "ready"], ["of_few", "empty"]]);
    assert_eq!(rows(&anna, states).await.unwrap(), [["by_meaning", "ready"], ["of_few", "ready"]]);

    run(&root, &["CREATE MASK hidden ON t(kind) USING (0) TO ROLE blind"]).await;
    let ben = caller(&engine, "ben", &["reader", "blind"], None);
    let seen = rows(&ben, &format!("SELECT DISTINCT kind FROM (SELECT kind FROM t {order}) AS s")).await.unwrap();
    assert_eq!(seen, [["0"]]);
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn indexes_are_listed_kept_and_dropped() {
    let (folder, engine) = filled(500).await;
    let root = admin(&engine);
    run(&root, &["CREATE INDEX Near ON t USING vector (v) WITH (metric = 'ip', probes = 20)"]).await;
    run(&root, &["CREATE INDEX IF NOT EXISTS near ON t USING vector (v) WITH (metric = 'dot')"]).await;
    let code = async |sql: &str| rows(&root, sql).await.unwrap_err().code();
    assert_eq!(code("CREATE INDEX near ON t USING vector (v)").await, "already_exists");
    assert_eq!(code("CREATE INDEX other ON t USING vector (v) WITH (metric = 'dot')").await, "invalid_object");
    assert_eq!(code("CREATE INDEX other ON t USING vector (id)").await, "unsupported");
    assert_eq!(code("CREATE INDEX other ON t USING vector (nothing)").await, "column_not_found");
    assert_eq!(code("CREATE INDEX other ON nothing USING vector (v)").await, "table_not_found");
    assert_eq!(code("CREATE INDEX other ON t USING vector (v) WITH (metric = 'hamming')").await, "unsupported");
    assert_eq!(code("CREATE INDEX other ON t USING vector (v) WITH (lists = 3)").await, "unsupported");
    assert_eq!(code("CREATE INDEX other ON t USING vector (v, id)").await, "unsupported");
    assert_eq!(code("DROP INDEX nothing").await, "object_not_found");
    run(&root, &["DROP INDEX IF EXISTS nothing"]).await;
    let expected = [["default", "t", "Near", "v", "dot", "16", "ready", "500", "1"]];
    let listed = "SELECT * EXCLUDE (created_at) FROM system.vector_indexes";
    assert_eq!(rows(&root, listed).await.unwrap(), expected);
    assert_eq!(rows(&root, "SHOW INDEXES FROM t").await.unwrap().len(), 1);
    assert_eq!(rows(&root, "SHOW INDEXES FROM other").await.unwrap().len(), 0);
    engine.close().await.unwrap();

    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    let root = admin(&engine);
    let sql = format!("SELECT id FROM t ORDER BY inner_product(v, {}) DESC LIMIT 5", near(3));
    assert!(plan(&root, &sql).await.contains("index=Near"));
    run(&root, &["DROP INDEX NEAR"]).await;
    assert!(!plan(&root, &sql).await.contains("index="));
    assert_eq!((rows(&root, "SHOW INDEXES").await.unwrap().len(), datasets(folder.path())), (0, 0));
    run(&root, &["CREATE INDEX near ON t USING vector (v)", "DROP TABLE t"]).await;
    assert_eq!((rows(&root, "SHOW INDEXES").await.unwrap().len(), datasets(folder.path())), (0, 0));
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_statement_uses_an_index_that_came_after_it() {
    let (_folder, engine) = filled(500).await;
    let root = admin(&engine);
    let query = format!("SELECT id FROM t ORDER BY inner_product(v, {}) DESC LIMIT 5", near(3));
    // Returns whether the statement was planned anew.
    let is_planned = async || {
        let before = engine.plan_cache().misses;
        assert_eq!(rows(&root, &query).await.unwrap().len(), 5);
        engine.plan_cache().misses > before
    };
    assert!(is_planned().await && !is_planned().await);
    for change in ["CREATE INDEX near ON t USING vector (v) WITH (metric = 'ip')", "DROP INDEX near"] {
        run(&root, &[change]).await;
        assert!(is_planned().await, "after {change}");
        // What is worked out about the table in the background may have it planned once more.
        wait_until("the statement is known", async || !is_planned().await).await;
    }
    engine.close().await.unwrap();
}

/// As [`near`], as the value of a parameter: of single precision, or as numbers come in JSON.
fn near_value(id: usize, is_single: bool) -> ScalarValue {
    let text = near(id);
    let numbers = text.trim_matches(['[', ']']).split(", ").map(|number| number.parse::<f64>().unwrap());
    if !is_single {
        let items: Vec<ScalarValue> = numbers.map(ScalarValue::from).collect();
        return ScalarValue::List(ScalarValue::new_list_nullable(&items, &DataType::Float64));
    }
    let item = Arc::new(Field::new_list_field(DataType::Float32, true));
    let numbers: ArrayRef = Arc::new(numbers.map(|number| number as f32).collect::<Float32Array>());
    ScalarValue::FixedSizeList(Arc::new(FixedSizeListArray::new(item, DIMENSION as i32, numbers, None)))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_known_search_has_its_index_find_the_rows_of_each_vector() {
    let (_folder, engine) = engine().await;
    let (root, exact) = (admin(&engine), exact(&engine).await);
    // Vectors in no clusters, and an index that reads so little that it misses rows: whoever misses the same has asked it.
    let numbers =
        (1..=DIMENSION).map(|at| format!("sin(value * value * {at}.37 * 0.618)")).collect::<Vec<_>>().join(", ");
    run(
        &root,
        &[
            &format!("CREATE TABLE t (id BIGINT, kind BIGINT, v FLOAT[{DIMENSION}])"),
            &format!("INSERT INTO t SELECT value, value % 10, [{numbers}] FROM generate_series(1, 3000) AS s(value)"),
            "CREATE INDEX hasty ON t USING vector (v) WITH (metric = 'l2', probes = 1)",
        ],
    )
    .await;
    let mut missed = 0;
    for query in [
        "SELECT id, kind FROM t ORDER BY l2_distance(v, {}) LIMIT 10",
        "SELECT id, round(l2_distance({}, v), 4) AS d FROM t ORDER BY l2_distance({}, v), id LIMIT 10",
        "SELECT l2_distance(v, {}) < 2, id FROM t WHERE kind < 7 ORDER BY l2_distance(v, {}) LIMIT 10",
        "SELECT s.id FROM (SELECT id, l2_distance(v, {}) AS d FROM t) AS s WHERE s.d < 100 ORDER BY s.d LIMIT 10",
    ] {
        for is_single in [true, false] {
            for id in (100..3_000).step_by(580) {
                let known = query.replace("{}", "$1");
                let literal = query.replace("{}", &near(id));
                let found = answer(&root, &known, vec![near_value(id, is_single)]).await.unwrap();
                assert_eq!(found, answer(&root, &literal, Vec::new()).await.unwrap(), "{literal}");
                missed += usize::from(found != answer(&exact, &literal, Vec::new()).await.unwrap());
            }
        }
    }
    assert!(missed > 0);
    assert!(engine.plan_cache().hits >= 32, "{:?}", engine.plan_cache());
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_index_is_not_searched_and_is_built_again() {
    let (folder, engine) = filled(600).await;
    run(&admin(&engine), &["CREATE INDEX near ON t USING vector (v)"]).await;
    let backup = folder.path().join("backup");
    engine.catalog().back_up(&backup).await.unwrap();
    engine.close().await.unwrap();
    let [dataset]: [std::path::PathBuf; 1] = std::fs::read_dir(folder.path().join("data/vectors"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect::<Vec<_>>()
        .try_into()
        .unwrap();
    std::fs::remove_dir_all(&dataset).unwrap();

    // A catalog alone repairs nothing, and says what is wrong.
    let options = querent_catalog::CatalogOptions::new(folder.path().join("data"));
    let catalog = querent_catalog::Catalog::open(options).await.unwrap();
    let faults = catalog.check(None).await.unwrap().faults;
    assert!(faults.len() == 1 && faults[0].contains("vector index `near`"), "{faults:?}");
    catalog.close().await.unwrap();
    drop(catalog);

    let engine = Engine::open(folder.path().join("data")).await.unwrap();
    let (root, exact) = (admin(&engine), exact(&engine).await);
    let sql = format!("SELECT id FROM t ORDER BY cosine_distance(v, {}) LIMIT 5", near(3));
    assert_eq!(rows(&root, &sql).await.unwrap().len(), 5);
    wait_until("the index is built again", async || plan(&root, &sql).await.contains("index=near")).await;
    assert!(recall(&root, &exact, &sql).await >= 0.8);
    assert_eq!(engine.catalog().check(None).await.unwrap().faults, Vec::<String>::new());
    engine.close().await.unwrap();

    // A backup has no datasets, and what is restored builds them.
    let restored = folder.path().join("restored");
    restore(&backup, &restored).await.unwrap();
    let engine = Engine::open(&restored).await.unwrap();
    let root = admin(&engine);
    assert_eq!(engine.catalog().check(None).await.unwrap().faults, Vec::<String>::new());
    wait_until("the index is built again", async || plan(&root, &sql).await.contains("index=near")).await;
    engine.close().await.unwrap();
}
