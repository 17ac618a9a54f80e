//! The metadata commands: schemas as the protocol fixes them, patterns, pages, types of SqlInfo.

use arrow::array::{AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow::datatypes::{Schema, UInt32Type};
use arrow_flight::IpcMessage;
use arrow_flight::sql::metadata::{GetCatalogsBuilder, GetDbSchemasBuilder, SqlInfoDataBuilder};
use arrow_flight::sql::{
    CommandGetCatalogs, CommandGetDbSchemas, CommandGetSqlInfo, CommandGetTableTypes, CommandGetTables, ProstMessageExt,
};
use querent_tests::{TestServer, TestSettings};

use super::{Raw, decode, descriptor, schema_of, ticket_of};

async fn seeded() -> TestServer {
    let server = TestServer::start(TestSettings::default()).await;
    for sql in [
        "create schema sales",
        "create table flights (carrier text not null, delay double)",
        "create table fl_x (a int)",
        "create table flax (a int)",
        "create view late as select * from flights where delay > 60",
        "create table sales.orders (id bigint)",
        "comment on column flights.delay is 'minutes'",
    ] {
        server.execute(sql).await;
    }
    server
}

/// Returns a listing's rows as one batch. Checks its schema against that of GetFlightInfo and GetSchema.
pub async fn listing(raw: &mut Raw, command: impl ProstMessageExt) -> RecordBatch {
    let info = raw.info(&command).await.unwrap();
    let described = raw.client.get_schema(raw.request(descriptor(&command))).await.unwrap().into_inner();
    let (sent, batches) = decode(raw.fetch(ticket_of(&info)).await.unwrap()).await;
    assert_eq!(schema_of(&info), *sent);
    assert_eq!(Schema::try_from(described).unwrap(), *sent);
    concat_batches(&sent, &batches).unwrap()
}

pub fn texts(batch: &RecordBatch, column: &str) -> Vec<String> {
    batch
        .column_by_name(column)
        .unwrap()
        .as_string::<i32>()
        .iter()
        .map(|text| text.unwrap_or_default().to_owned())
        .collect()
}

/// Returns `database.table TYPE` for each row, in the order sent.
pub async fn tables_of(raw: &mut Raw, command: CommandGetTables) -> Vec<String> {
    let batch = listing(raw, command).await;
    let catalogs = texts(&batch, "catalog_name");
    assert!(catalogs.iter().all(|name| name == "querent" || name.is_empty()), "temporary tables are in none");
    let (databases, names) = (texts(&batch, "db_schema_name"), texts(&batch, "table_name"));
    let types = texts(&batch, "table_type");
    (0..batch.num_rows()).map(|row| format!("{}.{} {}", databases[row], names[row], types[row])).collect()
}

#[tokio::test]
async fn catalogs_databases_and_table_types() {
    let server = seeded().await;
    let mut raw = Raw::connect(&server).await;
    let catalogs = listing(&mut raw, CommandGetCatalogs {}).await;
    assert_eq!(catalogs.schema(), GetCatalogsBuilder::new().schema());
    assert_eq!(texts(&catalogs, "catalog_name"), ["querent"]);

    let databases = listing(&mut raw, CommandGetDbSchemas::default()).await;
    assert_eq!(databases.schema(), GetDbSchemasBuilder::new(None::<String>, None::<String>).schema());
    let names = texts(&databases, "db_schema_name");
    assert!(names.contains(&"default".to_owned()) && names.contains(&"sales".to_owned()), "{names:?}");
    assert!(names.is_sorted(), "{names:?}");

    let sales = CommandGetDbSchemas { catalog: Some("Querent".into()), db_schema_filter_pattern: Some("sa%".into()) };
    assert_eq!(texts(&listing(&mut raw, sales).await, "db_schema_name"), ["sales"]);
    let elsewhere = CommandGetDbSchemas { catalog: Some("elsewhere".into()), db_schema_filter_pattern: None };
    assert_eq!(listing(&mut raw, elsewhere).await.num_rows(), 0);

    let types = texts(&listing(&mut raw, CommandGetTableTypes {}).await, "table_type");
    for kind in ["BASE TABLE", "EXTERNAL TABLE", "LOCAL TEMPORARY", "VIEW"] {
        assert!(types.contains(&kind.to_owned()), "{types:?}");
    }
}

#[tokio::test]
async fn tables_are_filtered_by_patterns_and_types() {
    let server = seeded().await;
    let mut raw = Raw::connect(&server).await;
    let all = || CommandGetTables { db_schema_filter_pattern: Some("default".into()), ..Default::default() };
    let named = |pattern: &str| CommandGetTables { table_name_filter_pattern: Some(pattern.into()), ..all() };
    let base =
        ["default.fl_x BASE TABLE", "default.flax BASE TABLE", "default.flights BASE TABLE", "default.late VIEW"];

    assert_eq!(tables_of(&mut raw, all()).await, base);
    assert_eq!(tables_of(&mut raw, named("fl%")).await, base[..3]);
    assert_eq!(tables_of(&mut raw, named("fl_x")).await, base[..2], "_ is any character");
    assert_eq!(tables_of(&mut raw, named("fl\\_x")).await, base[..1], "unless escaped");
    assert_eq!(
        tables_of(&mut raw, named("fl\\ights")).await,
        base[2..3],
        "an escaped letter is the letter, as in LIKE"
    );
    assert_eq!(tables_of(&mut raw, named("FLIGHTS")).await, base[2..3], "case does not matter");
    assert_eq!(tables_of(&mut raw, named("nothing%")).await, [""; 0]);
    assert_eq!(tables_of(&mut raw, named("it's \"quoted\"")).await, [""; 0]);

    let typed = |types: &[&str]| CommandGetTables {
        table_types: types.iter().map(|kind| (*kind).to_owned()).collect(),
        ..all()
    };
    assert_eq!(tables_of(&mut raw, typed(&["VIEW"])).await, base[3..]);
    assert_eq!(tables_of(&mut raw, typed(&["BASE TABLE", "table"])).await, base[..3], "as Grafana asks");
    assert_eq!(tables_of(&mut raw, typed(&["TABLE"])).await, base[..3], "the protocol's own word for tables");
    assert_eq!(tables_of(&mut raw, typed(&["TABLE", "VIEW", "SYSTEM TABLE"])).await, base, "as JDBC's programs ask");
    assert_eq!(tables_of(&mut raw, typed(&["SYNONYM"])).await, [""; 0]);

    let anywhere = CommandGetTables { table_name_filter_pattern: Some("orders".into()), ..Default::default() };
    assert_eq!(tables_of(&mut raw, anywhere).await, ["sales.orders BASE TABLE"]);
    let elsewhere = CommandGetTables { catalog: Some("elsewhere".into()), ..Default::default() };
    assert_eq!(tables_of(&mut raw, elsewhere).await, [""; 0]);
}

#[tokio::test]
async fn tables_come_with_their_schemas_on_request() {
    let server = seeded().await;
    let mut raw = Raw::connect(&server).await;
    let command = CommandGetTables {
        table_name_filter_pattern: Some("flights".into()),
        include_schema: true,
        ..Default::default()
    };
    let batch = listing(&mut raw, command).await;
    assert_eq!(batch.num_rows(), 1);
    let message = batch.column_by_name("table_schema").unwrap().as_binary::<i32>().value(0).to_vec();
    let schema = Schema::try_from(IpcMessage(message.into())).unwrap();
    assert_eq!(schema.fields().iter().map(|field| field.name().as_str()).collect::<Vec<_>>(), ["carrier", "delay"]);
    assert_eq!(schema.field(1).metadata()["ARROW:FLIGHT:SQL:REMARKS"], "minutes");
    let metadata = |column: usize, key: &str| {
        schema.field(column).metadata().get(&format!("ARROW:FLIGHT:SQL:{key}")).map(String::as_str)
    };
    for (key, carrier, delay) in [
        ("CATALOG_NAME", Some("querent"), Some("querent")),
        ("DB_SCHEMA_NAME", Some("default"), Some("default")),
        ("SCHEMA_NAME", Some("default"), Some("default")),
        ("TABLE_NAME", Some("flights"), Some("flights")),
        ("TYPE_NAME", Some("VARCHAR"), Some("DOUBLE")),
        ("PRECISION", Some("2147483647"), Some("53")),
        ("SCALE", None, None),
        ("IS_AUTO_INCREMENT", Some("0"), Some("0")),
        ("IS_CASE_SENSITIVE", Some("1"), Some("0")),
        ("IS_READ_ONLY", Some("0"), Some("0")),
        ("IS_SEARCHABLE", Some("1"), Some("1")),
    ] {
        assert_eq!((metadata(0, key), metadata(1, key)), (carrier, delay), "{key}");
    }

    let (streamed, _) = raw.rows("select * from flights").await.unwrap();
    for (listed, sent) in schema.fields().iter().zip(streamed.fields()) {
        assert_eq!(listed.data_type(), sent.data_type(), "a table is listed with the types its rows have");
        assert_eq!(listed.is_nullable(), sent.is_nullable(), "{}", listed.name());
    }
}

#[tokio::test]
async fn listings_go_on_past_a_page() {
    let server = TestServer::start(TestSettings::default()).await;
    for number in 0..260 {
        server.execute(&format!("create view v{number:03} as select {number} as n")).await;
    }
    let mut raw = Raw::connect(&server).await;
    for include_schema in [false, true] {
        let command =
            CommandGetTables { table_name_filter_pattern: Some("v%".into()), include_schema, ..Default::default() };
        let listed = tables_of(&mut raw, command).await;
        assert_eq!(listed.len(), 260);
        assert!(listed.is_sorted());
    }
}

/// The union's children: string, bool, bigint, int32 bitmask, string list, map.
const STRING: i8 = 0;
const BOOL: i8 = 1;
const BIGINT: i8 = 2;
const BITMASK: i8 = 3;
const STRINGS: i8 = 4;
const MAP: i8 = 5;

/// The types that FlightSql.proto gives to each id.
fn documented_type(id: u32) -> Option<i8> {
    Some(match id {
        0 | 1 | 2 | 6 | 7 | 504 | 513 | 514 | 529 | 530 | 531 => STRING,
        3
        | 4
        | 5
        | 9
        | 10
        | 11
        | 500..=502
        | 506
        | 515
        | 516
        | 518..=521
        | 523
        | 524
        | 527
        | 532
        | 536
        | 537
        | 539
        | 556
        | 563
        | 565
        | 566
        | 572..=576 => BOOL,
        541..=555 | 557..=561 => BIGINT,
        8 | 100 | 101 | 503 | 505 | 507 | 522 | 525 | 526 | 528 | 533..=535 | 538 | 540 | 562 | 564 | 567..=571 => {
            BITMASK
        }
        508..=512 => STRINGS,
        517 => MAP,
        _ => return None,
    })
}

#[tokio::test]
async fn sql_info_has_the_documented_types_and_claims_nothing_unserved() {
    let server = TestServer::start(TestSettings::default().tokens("r:read,w:write")).await;
    let mut raw = Raw::connect(&server).await.token("w");
    let all = listing(&mut raw, CommandGetSqlInfo::default()).await;
    assert_eq!(*all.schema(), *SqlInfoDataBuilder::schema());
    let ids = all.column(0).as_primitive::<UInt32Type>().values().to_vec();
    let values = all.column(1).as_union();
    for (row, id) in ids.iter().enumerate() {
        assert_eq!(Some(values.type_id(row)), documented_type(*id), "SqlInfo {id}");
    }
    // All that FlightSql.proto has: older JDBC drivers fail on one that is absent.
    assert_eq!(ids, (0..=11).chain(100..=101).chain(500..=576).collect::<Vec<u32>>());
    let value = |batch: &RecordBatch| {
        let value = batch.column(1).as_union().value(0);
        arrow::util::display::array_value_to_string(&value, 0).unwrap()
    };
    // 522: GROUP BY takes columns that are not selected, alone and beside those that are. 533: databases stand in GRANT.
    // 538: subqueries stand in comparisons, EXISTS, IN and with ANY and ALL.
    for (id, expected) in [
        (0, "Querent"),
        (3, "false"),
        (5, "false"),
        (8, "0"),
        (9, "true"),
        (10, "true"),
        (504, "\""),
        (522, "3"),
        (533, "4"),
        (538, "15"),
    ] {
        let one = listing(&mut raw, CommandGetSqlInfo { info: vec![id] }).await;
        assert_eq!((one.num_rows(), value(&one).as_str()), (1, expected), "SqlInfo {id}");
    }
    let unknown = listing(&mut raw, CommandGetSqlInfo { info: vec![999_999] }).await;
    assert_eq!(unknown.num_rows(), 0);

    let mut reader = Raw::connect(&server).await.token("r");
    let read_only = listing(&mut reader, CommandGetSqlInfo { info: vec![3] }).await;
    assert_eq!(value(&read_only), "true", "for a role that may not write");
}
