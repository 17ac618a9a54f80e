//! Many tables at once in PostgreSQL: their rows go in statements of many rows each, and are those of single statements.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{
    Catalog, CatalogOptions, ExternalTable, FileFormat, IfExists, NewTable, NoProgress, PageRequest, Principal,
    Registered, Role, SearchRequest, TableFilter, TableName,
};
use querent_engine::{Engine, EngineOptions, Limits};
use querent_tests::PostgresProcess;

use super::{create, names, open, snapshot};
use crate::sql::rows;

/// More than go in a statement, and than are looked up at once; not a multiple of either.
const MANY: usize = 1_301;
/// Columns of each.
const COLUMNS: usize = 20;

/// Table `number`: a hundred are in each database.
fn table(number: usize) -> NewTable {
    let columns = (0..COLUMNS).map(|column| Field::new(format!("c{column}"), DataType::Int64, column > 0));
    NewTable {
        name: TableName::new(format!("yard_{}", number / 100), format!("shipment_{}", number % 100)),
        schema: Arc::new(Schema::new(columns.collect::<Vec<_>>())),
        comment: number.is_multiple_of(2).then(|| format!("it's \"number\" {number}\\\n")),
        column_comments: BTreeMap::from([("C1".to_string(), format!("how heavy {}", number % 7))]),
        external: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_tables_are_registered_in_one_snapshot() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (one, two) = (open(folders[0].path(), &url).await, open(folders[1].path(), &url).await);
    let lake = |sql: &str| postgres.psql("lake", sql).unwrap().trim().to_owned();
    let before = snapshot(&one).await;
    let progress = Arc::new(NoProgress);
    let registered = one.tables().register((0..MANY).map(table), IfExists::Error, progress).await.unwrap();
    assert_eq!(registered, Registered { created: MANY as u64, existing: 0, databases: 14 });
    assert_eq!(snapshot(&two).await, before + 1);

    // As DuckDB reads them.
    assert_eq!(lake("SELECT count(*), count(DISTINCT table_uuid) FROM ducklake_table"), format!("{MANY}|{MANY}"));
    assert_eq!(lake("SELECT count(*) FROM ducklake_column"), (MANY * COLUMNS).to_string());
    let order = "SELECT count(*) FROM ducklake_column WHERE column_id = column_order \
                 AND column_name = 'c' || (column_id - 1) AND nulls_allowed = (column_id > 1) AND end_snapshot IS NULL";
    assert_eq!(lake(order), (MANY * COLUMNS).to_string());
    assert_eq!(lake("SELECT count(*) FROM ducklake_schema_versions"), MANY.to_string());
    assert_eq!(lake("SELECT count(*) FROM ducklake_tag WHERE key = 'comment'"), MANY.div_ceil(2).to_string());
    assert_eq!(lake("SELECT count(*) FROM ducklake_column_tag WHERE column_id = 2"), MANY.to_string());

    let who = Principal::local_admin();
    let wanted = [table(MANY - 1).name, table(17).name];
    let found = two.tables().resolve(&who, &wanted).await.unwrap();
    let info = &found[0].as_ref().unwrap().info;
    assert_eq!(info.comment, table(MANY - 1).comment);
    assert_eq!(info.columns.len(), COLUMNS);
    assert_eq!(info.columns[1].comment.as_deref(), Some("how heavy 5"));
    assert!(!info.columns[0].nullable && info.columns[1].nullable);
    assert_eq!(found[1].as_ref().unwrap().info.comment, None);
    for catalog in [&one, &two] {
        querent_tests::wait_until("both servers find a table by its comment", async || {
            let request = SearchRequest { query: "number 1298".into(), database: None, limit: 3 };
            let hits = catalog.search().tables(&who, &request).await.unwrap();
            hits.first().is_some_and(|hit| hit.table.name == table(1_298).name)
        })
        .await;
    }
    one.close().await.unwrap();
    two.close().await.unwrap();
}

/// All names of a filter, in pages of fifty.
async fn pages(catalog: &Catalog, who: &Principal, filter: &TableFilter) -> Vec<TableName> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = catalog.tables().list(who, filter, PageRequest { limit: 50, after }).await.unwrap();
        names.extend(page.items.into_iter().map(|table| table.name));
        match page.next {
            Some(next) => after = Some(next),
            None => return names,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_tables_is_the_same_on_both_databases_and_reads_what_it_shows() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let local = Catalog::open(CatalogOptions::new(folders[1].path())).await.unwrap();
    let shared = open(folders[0].path(), &url).await;
    for catalog in [&local, &shared] {
        let tables = (0..MANY).map(table);
        catalog.tables().register(tables, IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    }
    let filter = |database: Option<&str>, name_like: Option<&str>| TableFilter {
        database: database.map(str::to_owned),
        name_like: name_like.map(str::to_owned),
        ..TableFilter::default()
    };
    let filters = [
        filter(None, None),
        filter(Some("yard_7"), None),
        filter(None, Some("shipment_77")),
        filter(None, Some("shipment_7%")),
        // Underscores that are any character, among more names than are read one by one.
        filter(None, Some("s_ipment_7_")),
        filter(Some("yard_7"), Some("shipment__")),
        filter(None, Some("shipment_7_%")),
        filter(None, Some("shipment_x_y")),
        filter(Some("yard_12"), Some("%ment_7_")),
        filter(Some("nowhere"), None),
    ];
    let callers = [Principal::local_admin(), Principal::new("ada", Role::Read).with_databases(["yard_3", "yard_9"])];
    for who in &callers {
        for filter in &filters {
            // A database that is not there may be an error on both.
            let expected = pages_or_code(&local, who, filter).await;
            assert_eq!(pages_or_code(&shared, who, filter).await, expected, "{} {filter:?}", who.subject());
        }
    }

    // How many rows it reads, with what any server reads when it opens.
    postgres.psql("lake", "ANALYZE").unwrap();
    shared.close().await.unwrap();
    let read = "SELECT coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables \
                WHERE relname = 'querent_object'";
    let mut rows_read = Vec::new();
    for listed_by in [None, Some((&callers[0], MANY)), Some((&callers[1], 200))] {
        postgres.psql("lake", "SELECT pg_stat_reset()").unwrap();
        let catalog = open(folders[0].path(), &url).await;
        if let Some((who, tables)) = listed_by {
            assert_eq!(pages(&catalog, who, &filters[0]).await.len(), tables);
        }
        catalog.close().await.unwrap();
        let is_alone = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'lake'";
        // What a connection read is counted when it has ended.
        querent_tests::wait_until("its connections have ended", async || {
            postgres.psql("postgres", is_alone).unwrap().trim() == "0"
        })
        .await;
        rows_read.push(postgres.psql("lake", read).unwrap().trim().parse::<usize>().unwrap());
    }
    assert!(rows_read[1] <= rows_read[0] + 4 * MANY, "{rows_read:?}");
    // Those of the other databases are not walked through.
    assert!(rows_read[2] <= rows_read[0] + 4 * 200, "{rows_read:?}");
    local.close().await.unwrap();
}

/// What a list shows of a table is what the table shows of itself, and is read for all tables of a page at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tables_takes_a_few_statements() {
    let postgres = PostgresProcess::start_with(&["shared_preload_libraries=pg_stat_statements"]);
    postgres.psql("postgres", "CREATE EXTENSION pg_stat_statements").unwrap();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let options = EngineOptions { catalog_url: Some(url), ..EngineOptions::new(folder.path()) };
    let engine = Engine::open_with(options).await.unwrap();
    let catalog = engine.catalog();
    let tables = (0..250).map(|number| TableName::new("yard", format!("shipment_{number}")));
    let empty = tables.map(|name| NewTable { name, ..table(1) });
    catalog.tables().register(empty, IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    let outside = ExternalTable {
        location: "/nowhere/*.parquet".into(),
        format: FileFormat::Parquet,
        options: BTreeMap::new(),
        partition_columns: Vec::new(),
    };
    let outside = NewTable { name: TableName::new("yard", "outside"), external: Some(outside), ..table(2) };
    catalog.tables().register(vec![outside], IfExists::Error, Arc::new(NoProgress)).await.unwrap();
    let session = engine.session(Principal::local_admin(), Limits::default());
    for statement in [
        "CREATE TABLE yard.filled AS SELECT value AS a, 'x' AS b FROM generate_series(1, 10) AS s(value)",
        "CREATE TABLE yard.fewer AS SELECT value AS a FROM generate_series(1, 10) AS s(value)",
        "DELETE FROM yard.fewer WHERE a < 4",
        "CREATE TABLE yard.altered AS SELECT 1 AS a",
        "ALTER TABLE yard.altered ADD COLUMN b VARCHAR",
        "COMMENT ON COLUMN yard.filled.b IS 'a letter'",
        "CREATE VIEW yard.seen AS SELECT a FROM yard.filled",
    ] {
        rows(&session, statement).await.unwrap();
    }

    let (who, in_yard) =
        (Principal::local_admin(), TableFilter { database: Some("yard".into()), ..TableFilter::default() });
    let all = || PageRequest { limit: 1_000, after: None };
    let calls =
        "SELECT sum(calls) FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'lake'";
    let calls = || postgres.psql("postgres", calls).unwrap().trim().parse::<u64>().unwrap();
    // The index and samples of values are made meanwhile.
    let quiet = async || {
        let is_quiet = async || {
            let before = calls();
            // Servers look for what others did once a second.
            tokio::time::sleep(Duration::from_secs(1)).await;
            calls() - before < 50
        };
        querent_tests::wait_until("nothing goes on in the background", is_quiet).await;
    };
    quiet().await;
    let before = calls();
    let listed = catalog.tables().list(&who, &in_yard, all()).await.unwrap().items;
    let with_columns = catalog.tables().list_with_columns(&who, &in_yard, all()).await.unwrap().items;
    let made = calls() - before;
    assert!(made < 200, "{made} statements");
    assert_eq!((listed.len(), with_columns.len()), (255, 255));
    for (summary, info) in listed.iter().zip(&with_columns) {
        let found = catalog.tables().resolve(&who, std::slice::from_ref(&summary.name)).await.unwrap();
        assert_eq!(Some(info), found[0].as_ref().map(|table| &table.info));
        assert_eq!((summary.row_count, &summary.comment), (info.row_count, &info.comment));
    }
    let counts = ["altered", "filled"].map(|name| listed.iter().find(|table| table.name.table == name));
    assert_eq!(counts.map(|table| table.unwrap().row_count), [Some(1), Some(10)]);
    // A limit is the size of the page.
    let before = calls();
    assert_eq!(rows(&session, "SELECT name FROM system.tables LIMIT 3").await.unwrap().len(), 3);
    assert_eq!(rows(&session, "SELECT column_name FROM information_schema.columns LIMIT 3").await.unwrap().len(), 3);
    assert!(calls() - before < 200);

    // Nor do those of a write grow with the columns: others wait while it commits.
    let columns =
        |add: i64| (0..80).map(|column| format!("{} AS c{column}", column + add)).collect::<Vec<_>>().join(", ");
    rows(&session, &format!("CREATE TABLE yard.wide AS SELECT {}", columns(0))).await.unwrap();
    quiet().await;
    let before = calls();
    rows(&session, &format!("INSERT INTO yard.wide SELECT {}", columns(7))).await.unwrap();
    let made = calls() - before;
    assert!(made < 200, "{made} statements");
    let found =
        rows(&session, "SELECT min(c70), max(c70), count(*), count(*) FILTER (WHERE c79 > 80) FROM yard.wide").await;
    assert_eq!(found.unwrap(), [["70", "77", "2", "1"]]);
    let bounds = "SELECT min_value || '-' || max_value FROM ducklake_table_column_stats s JOIN ducklake_column c \
                  ON c.table_id = s.table_id AND c.column_id = s.column_id WHERE column_name = 'c70'";
    assert_eq!(postgres.psql("lake", bounds).unwrap().trim(), "70-77");
    drop(session);
    engine.close().await.unwrap();
}

/// The names of a filter, or why there are none.
async fn pages_or_code(catalog: &Catalog, who: &Principal, filter: &TableFilter) -> Result<Vec<TableName>, String> {
    match catalog.tables().list(who, filter, PageRequest::first(1)).await {
        Ok(_) => Ok(pages(catalog, who, filter).await),
        Err(error) => Err(error.code().to_owned()),
    }
}

#[tokio::test]
async fn names_that_are_there_are_seen_among_many() {
    let postgres = PostgresProcess::start();
    let url = postgres.new_database("lake");
    let folder = tempfile::tempdir().unwrap();
    let catalog = open(folder.path(), &url).await;
    let named = |name: &str, comment: &str| NewTable {
        name: TableName::new("default", name),
        comment: Some(comment.to_owned()),
        ..table(1)
    };
    let register = async |tables: Vec<NewTable>, if_exists| {
        catalog.tables().register(tables, if_exists, Arc::new(NoProgress)).await
    };
    create(&catalog, "Orders").await.unwrap();

    // With one that is there, and with one of the same call, whose row still waits to be sent.
    for second in ["orders", "A"] {
        let tables = vec![named("a", "first"), named(second, "second")];
        assert_eq!(register(tables, IfExists::Error).await.unwrap_err().code(), "already_exists");
        assert_eq!(names(&catalog).await, ["Orders"], "all of a call or nothing");
    }
    let tables = vec![named("a", "first"), named("A", "second"), named("ORDERS", "third")];
    let registered = register(tables, IfExists::Ignore).await.unwrap();
    assert_eq!((registered.created, registered.existing), (1, 2));
    let tables = vec![named("b", "first"), named("B", "second"), named("a", "third")];
    assert_eq!(register(tables, IfExists::Replace).await.unwrap().created, 3);
    assert_eq!(names(&catalog).await, ["a", "B", "Orders"]);
    let wanted = ["a", "b"].map(|name| TableName::new("default", name));
    let found = catalog.tables().resolve(&Principal::local_admin(), &wanted).await.unwrap();
    let comments: Vec<_> = found.iter().map(|table| table.as_ref().unwrap().info.comment.clone().unwrap()).collect();
    assert_eq!(comments, ["third", "second"]);

    // A name of a column that an external table has twice, but for case.
    let columns = ["Id", "ID", "other"].map(|name| Field::new(name, DataType::Int64, true));
    let external = NewTable {
        schema: Arc::new(Schema::new(columns.to_vec())),
        column_comments: BTreeMap::new(),
        external: Some(ExternalTable {
            location: "/nowhere/*.parquet".into(),
            format: FileFormat::Parquet,
            options: BTreeMap::new(),
            partition_columns: Vec::new(),
        }),
        ..named("outside", "files")
    };
    register(vec![external], IfExists::Error).await.unwrap();
    let found = catalog.search().columns(&Principal::local_admin(), None, "id", 10).await.unwrap();
    assert!(!found.hits.is_empty() && found.hits.iter().all(|hit| hit.table.table == "outside"), "{found:?}");
    catalog.close().await.unwrap();
}
