//! What programs send that cannot run here: the JDBC driver (DBeaver, Tableau), Grafana's data source, Power BI's connector.
//! Each sequence is replayed, with the schemas that the program relies on.

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema};
use arrow_flight::sql::{
    ActionClosePreparedStatementRequest, CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo,
    CommandGetTableTypes, CommandGetTables, CommandGetXdbcTypeInfo, CommandPreparedStatementQuery,
    CommandPreparedStatementUpdate, ProstMessageExt, SqlInfo,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use prost::Message;
use querent_tests::{TestServer, TestSettings};

use super::metadata::{listing, texts};
use super::{Raw, decode, schema_of, sql_client, ticket_of};

const TOKENS: &str = "writer-tok:write:wanda";

fn text(name: &str, nullable: bool) -> Field {
    Field::new(name, DataType::Utf8, nullable)
}

#[tokio::test]
async fn a_jdbc_driver_connects_lists_prepares_and_updates() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    // The handshake has the password; what follows has its bearer token.
    let mut shaking = sql_client(&server).await;
    shaking.handshake("anybody", "writer-tok").await.unwrap();
    let token = shaking.token().cloned().expect("a token in the answer's header");
    let mut jdbc = Raw::connect(&server).await.token(&token);

    // SqlInfo is asked once for everything, and its columns are read by position.
    let info = listing(&mut jdbc, CommandGetSqlInfo::default()).await;
    assert_eq!(info.schema().field(0), &Field::new("info_name", DataType::UInt32, false));
    assert!(info.num_rows() >= 91, "{}", info.num_rows());

    // An update is prepared, recognised by `is_update`, and executed by DoPut.
    for (sql, rows) in [
        ("CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, note VARCHAR(40))", 0),
        ("INSERT INTO orders VALUES (1, 'first'), (2, NULL)", 2),
    ] {
        let prepared = jdbc.prepare(sql).await.unwrap();
        assert_eq!((prepared.is_update, prepared.dataset.is_none()), (Some(true), true), "{sql}");
        let update = CommandPreparedStatementUpdate { prepared_statement_handle: prepared.handle.clone() };
        assert_eq!(jdbc.updated(&update, &[]).await.unwrap(), rows, "{sql}");
        let close = ActionClosePreparedStatementRequest { prepared_statement_handle: prepared.handle };
        jdbc.act("ClosePreparedStatement", close.as_any().encode_to_vec()).await.unwrap();
    }

    // A query is recognised by its columns, which the stream then has.
    let prepared = jdbc.prepare("SELECT id, note FROM orders ORDER BY id").await.unwrap();
    let announced = prepared.dataset.expect("columns");
    assert_eq!(prepared.is_update, Some(false));
    let query = CommandPreparedStatementQuery { prepared_statement_handle: prepared.handle };
    let info = jdbc.info(&query).await.unwrap();
    let (schema, batches) = decode(jdbc.fetch(ticket_of(&info)).await.unwrap()).await;
    assert_eq!((&schema_of(&info), &announced), (schema.as_ref(), schema.as_ref()));
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);

    // DatabaseMetaData finds columns by these names.
    let catalogs = listing(&mut jdbc, CommandGetCatalogs {}).await;
    assert_eq!(*catalogs.schema(), Schema::new(vec![text("catalog_name", false)]));
    let schemas = listing(&mut jdbc, CommandGetDbSchemas::default()).await;
    assert_eq!(*schemas.schema(), Schema::new(vec![text("catalog_name", true), text("db_schema_name", false)]));
    let types = listing(&mut jdbc, CommandGetTableTypes {}).await;
    assert_eq!(*types.schema(), Schema::new(vec![text("table_type", false)]));
    let tables = CommandGetTables {
        catalog: Some("querent".to_owned()),
        db_schema_filter_pattern: Some("default".to_owned()),
        table_name_filter_pattern: Some("ord%".to_owned()),
        include_schema: true,
        ..CommandGetTables::default()
    };
    let tables = listing(&mut jdbc, tables).await;
    let expected = Schema::new(vec![
        text("catalog_name", true),
        text("db_schema_name", true),
        text("table_name", false),
        text("table_type", false),
        Field::new("table_schema", DataType::Binary, false),
    ]);
    assert_eq!(*tables.schema(), expected);
    assert_eq!(texts(&tables, "table_name"), ["orders"]);
    let message = bytes::Bytes::copy_from_slice(tables.column(4).as_binary::<i32>().value(0));
    let columns = Schema::try_from(arrow_flight::IpcMessage(message)).unwrap();
    assert_eq!(columns.field(0).metadata()["ARROW:FLIGHT:SQL:TYPE_NAME"], "BIGINT");
    assert!(!columns.field(0).is_nullable());
}

#[tokio::test]
async fn grafana_checks_its_health_lists_tables_and_queries() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let mut grafana = Raw::connect(&server).await.token("writer-tok");
    grafana
        .rows("create table metrics as select timestamp '2024-01-01 00:00:00' as time, 'cpu' as name, 0.5e0 as value")
        .await
        .unwrap();
    // It refuses more than one endpoint, which `rows` checks.
    assert_eq!(grafana.number("select cast(1 as bigint)").await, 1);
    listing(&mut grafana, CommandGetSqlInfo { info: vec![] }).await;
    let tables = CommandGetTables {
        table_types: vec!["BASE TABLE".to_owned(), "table".to_owned()],
        ..CommandGetTables::default()
    };
    assert_eq!(texts(&listing(&mut grafana, tables).await, "table_name"), ["metrics"]);
    let one = CommandGetTables {
        table_name_filter_pattern: Some("metrics".to_owned()),
        include_schema: true,
        ..CommandGetTables::default()
    };
    assert_eq!(listing(&mut grafana, one).await.num_rows(), 1);
    let (schema, _) =
        grafana.rows("select time, name, value from metrics where time >= '2023-12-31T00:00:00Z'").await.unwrap();
    for field in schema.fields() {
        let understood = matches!(field.data_type(), DataType::Timestamp(_, _) | DataType::Utf8 | DataType::Float64);
        assert!(understood, "{field:?}");
    }
}

#[tokio::test]
async fn power_bi_asks_for_types_and_keys_before_it_reads_a_table() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let basic = format!("Basic {}", BASE64_STANDARD.encode("anybody:writer-tok"));
    let mut connector = Raw::connect(&server).await.header("authorization", &basic);
    connector.rows("create table parent (id bigint primary key, name varchar unique)").await.unwrap();
    connector.rows("create table child (id bigint primary key, parent bigint references parent (id))").await.unwrap();

    let types = listing(&mut connector, CommandGetXdbcTypeInfo { data_type: None }).await;
    let names = texts(&types, "type_name");
    for name in ["BIGINT", "VARCHAR", "BOOLEAN", "DATE", "TIMESTAMP", "DOUBLE", "DECIMAL"] {
        assert!(names.iter().any(|found| found.starts_with(name)), "{name}: {names:?}");
    }
    // The ODBC driver decides by this whether it may convert.
    let convert = vec![SqlInfo::SqlSupportsConvert as u32];
    assert_eq!(listing(&mut connector, CommandGetSqlInfo { info: convert }).await.num_rows(), 1);

    // The sample connector of Microsoft reads keys from the standard's views.
    let (_, keys) = connector
        .rows(
            "select c.constraint_type, k.table_name, k.column_name
             from information_schema.table_constraints c
             join information_schema.key_column_usage k
               on c.constraint_name = k.constraint_name and c.table_schema = k.table_schema and c.table_name = k.table_name
             where c.table_schema = 'default' order by 1, 2, 3",
        )
        .await
        .unwrap();
    let found: Vec<String> = keys
        .iter()
        .flat_map(|batch| {
            let column = |index: usize| batch.column(index).as_string::<i32>();
            (0..batch.num_rows())
                .map(|row| format!("{} {}.{}", column(0).value(row), column(1).value(row), column(2).value(row)))
                .collect::<Vec<_>>()
        })
        .collect();
    let expected = ["FOREIGN KEY child.parent", "PRIMARY KEY child.id", "PRIMARY KEY parent.id", "UNIQUE parent.name"];
    assert_eq!(found, expected);
    // It reads a table in pages of its own, by text that it makes.
    let folded = r#"select "_"."id", "_"."name" from "querent"."default"."parent" "_" where "_"."id" > 0 limit 1000"#;
    assert_eq!(connector.rows(folded).await.unwrap().0.fields().len(), 2);
}
