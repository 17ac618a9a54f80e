//! Many tables at once in PostgreSQL: their rows go in statements of many rows each, and are those of single statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use querent_catalog::{
    ExternalTable, FileFormat, IfExists, NewTable, NoProgress, Principal, Registered, SearchRequest, TableName,
};
use querent_tests::PostgresProcess;

use super::{create, names, open, snapshot};

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
