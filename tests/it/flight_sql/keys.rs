//! GetPrimaryKeys, the three commands about foreign keys, and GetXdbcTypeInfo: schemas as the protocol fixes them, order,
//! and what the caller may see.

use std::collections::BTreeMap;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::datatypes::{DataType, Field, Int32Type, Schema, UInt8Type};
use arrow_flight::sql::metadata::XdbcTypeInfoDataBuilder;
use arrow_flight::sql::{
    CommandGetCrossReference, CommandGetExportedKeys, CommandGetImportedKeys, CommandGetPrimaryKeys, CommandGetSqlInfo,
    CommandGetXdbcTypeInfo,
};
use querent_tests::{TestServer, TestSettings};

use super::Raw;
use super::metadata::{listing, texts};

async fn seeded(settings: TestSettings) -> TestServer {
    let server = TestServer::start(settings).await;
    for sql in [
        "create schema sales",
        "create schema hr",
        "create table hr.people (id bigint primary key, badge varchar unique)",
        "create table sales.orders (line int, number bigint, seller bigint references hr.people, buyer varchar \
         constraint paid_by references hr.people (badge), primary key (number, line))",
        "create table sales.parcels (o_line int, o_number bigint, packer bigint references hr.people (id), \
         foreign key (o_number, o_line) references sales.orders)",
        "create table sales.notes (words text)",
    ] {
        server.execute(sql).await;
    }
    server
}

fn rows(batch: &RecordBatch, columns: &[&str]) -> Vec<String> {
    let cell = |row: usize, column: &&str| {
        let column = batch.column_by_name(column).unwrap();
        match column.is_null(row) {
            true => "-".to_owned(),
            false => arrow::util::display::array_value_to_string(column, row).unwrap(),
        }
    };
    let row = |row| columns.iter().map(|column| cell(row, column)).collect::<Vec<_>>().join(" ");
    (0..batch.num_rows()).map(row).collect()
}

fn primary_keys_of(db_schema: Option<&str>, table: &str) -> CommandGetPrimaryKeys {
    CommandGetPrimaryKeys { catalog: None, db_schema: db_schema.map(str::to_owned), table: table.to_owned() }
}

#[tokio::test]
async fn primary_keys_are_in_the_order_of_the_key() {
    let server = seeded(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let keys = listing(&mut raw, primary_keys_of(Some("sales"), "orders")).await;
    let expected = Schema::new(vec![
        Field::new("catalog_name", DataType::Utf8, true),
        Field::new("db_schema_name", DataType::Utf8, true),
        Field::new("table_name", DataType::Utf8, false),
        Field::new("column_name", DataType::Utf8, false),
        Field::new("key_name", DataType::Utf8, true),
        Field::new("key_sequence", DataType::Int32, false),
    ]);
    assert_eq!(*keys.schema(), expected);
    let all = ["catalog_name", "db_schema_name", "table_name", "column_name", "key_name", "key_sequence"];
    assert_eq!(
        rows(&keys, &all),
        ["querent sales orders number orders_pkey 1", "querent sales orders line orders_pkey 2"]
    );

    let catalog =
        |name: &str| CommandGetPrimaryKeys { catalog: Some(name.to_owned()), ..primary_keys_of(Some("hr"), "people") };
    for (command, found) in [
        (primary_keys_of(None, "orders"), 2),
        (primary_keys_of(Some("SALES"), "ORDERS"), 2),
        (catalog("querent"), 1),
        (catalog("QUERENT"), 1),
        (catalog("elsewhere"), 0),
        (catalog(""), 0),
        (primary_keys_of(Some(""), "orders"), 0),
        (primary_keys_of(Some("hr"), "orders"), 0),
        (primary_keys_of(None, "notes"), 0),
        (primary_keys_of(None, "nothing"), 0),
        (primary_keys_of(None, "order%"), 0),
        (primary_keys_of(None, ""), 0),
    ] {
        assert_eq!(listing(&mut raw, command.clone()).await.num_rows(), found, "{command:?}");
    }
}

/// The foreign keys as `fk.column > pk.column sequence fk_name pk_name`. Checks the schema and the rules.
fn foreign_keys(batch: &RecordBatch) -> Vec<String> {
    let text = |name: &str, nullable| Field::new(name, DataType::Utf8, nullable);
    let expected = Schema::new(vec![
        text("pk_catalog_name", true),
        text("pk_db_schema_name", true),
        text("pk_table_name", false),
        text("pk_column_name", false),
        text("fk_catalog_name", true),
        text("fk_db_schema_name", true),
        text("fk_table_name", false),
        text("fk_column_name", false),
        Field::new("key_sequence", DataType::Int32, false),
        text("fk_key_name", true),
        text("pk_key_name", true),
        Field::new("update_rule", DataType::UInt8, false),
        Field::new("delete_rule", DataType::UInt8, false),
    ]);
    assert_eq!(*batch.schema(), expected);
    for rule in ["update_rule", "delete_rule"] {
        let rules = batch.column_by_name(rule).unwrap().as_primitive::<UInt8Type>();
        assert!(rules.values().iter().all(|rule| *rule == 3), "NO ACTION");
    }
    rows(
        batch,
        &[
            "fk_table_name",
            "fk_column_name",
            "pk_table_name",
            "pk_column_name",
            "key_sequence",
            "fk_key_name",
            "pk_key_name",
        ],
    )
}

#[tokio::test]
async fn foreign_keys_are_found_from_both_sides() {
    let server = seeded(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let seller = "orders seller people id 1 orders_seller_fkey people_pkey";
    let paid_by = "orders buyer people badge 1 paid_by people_badge_key";
    let packer = "parcels packer people id 1 parcels_packer_fkey people_pkey";
    let order = [
        "parcels o_number orders number 1 parcels_o_number_o_line_fkey orders_pkey",
        "parcels o_line orders line 2 parcels_o_number_o_line_fkey orders_pkey",
    ];

    let exported = CommandGetExportedKeys { table: "people".into(), ..Default::default() };
    // By the table that has the key, and its name.
    assert_eq!(foreign_keys(&listing(&mut raw, exported).await), [seller, paid_by, packer]);
    let exported = CommandGetExportedKeys { table: "orders".into(), db_schema: Some("sales".into()), catalog: None };
    assert_eq!(foreign_keys(&listing(&mut raw, exported).await), order);

    let imported = |table: &str| CommandGetImportedKeys { table: table.into(), ..Default::default() };
    // By the table that is referred to, and its key.
    assert_eq!(foreign_keys(&listing(&mut raw, imported("orders")).await), [paid_by, seller]);
    assert_eq!(foreign_keys(&listing(&mut raw, imported("parcels")).await), [packer, order[0], order[1]]);
    assert_eq!(foreign_keys(&listing(&mut raw, imported("people")).await), [""; 0]);
    assert_eq!(foreign_keys(&listing(&mut raw, imported("nothing")).await), [""; 0]);

    let cross = |pk_table: &str, fk_table: &str| CommandGetCrossReference {
        pk_table: pk_table.into(),
        fk_table: fk_table.into(),
        ..Default::default()
    };
    assert_eq!(foreign_keys(&listing(&mut raw, cross("people", "parcels")).await), [packer]);
    assert_eq!(foreign_keys(&listing(&mut raw, cross("orders", "parcels")).await), order);
    assert_eq!(foreign_keys(&listing(&mut raw, cross("parcels", "orders")).await), [""; 0]);
    let elsewhere = CommandGetCrossReference { fk_catalog: Some("elsewhere".into()), ..cross("people", "parcels") };
    assert_eq!(foreign_keys(&listing(&mut raw, elsewhere).await), [""; 0]);
}

#[tokio::test]
async fn declared_relationships_are_foreign_keys_too() {
    let server = seeded(TestSettings::default()).await;
    let body = serde_json::json!({
        "from": {"database": "sales", "table": "notes"}, "from_columns": ["words"],
        "to": {"database": "hr", "table": "people"}, "to_columns": ["badge"],
    });
    assert_eq!(server.post("/v1/catalog/relationships", &body, None).await.status, 201);
    let mut raw = Raw::connect(&server).await;
    let imported = CommandGetImportedKeys { table: "notes".into(), ..Default::default() };
    assert_eq!(
        foreign_keys(&listing(&mut raw, imported).await),
        ["notes words people badge 1 notes_words_fkey people_badge_key"]
    );
}

#[tokio::test]
async fn keys_of_databases_that_may_not_be_seen_are_not_there() {
    let settings = TestSettings::default().tokens("a:admin,s:read").change(|settings| {
        for token in settings.auth.tokens.iter_mut().filter(|token| token.token == "s") {
            token.databases = Some(vec!["sales".to_owned()]);
        }
    });
    let server = seeded(settings).await;
    let mut raw = Raw::connect(&server).await.token("s");
    assert_eq!(listing(&mut raw, primary_keys_of(None, "people")).await.num_rows(), 0);
    assert_eq!(listing(&mut raw, primary_keys_of(None, "orders")).await.num_rows(), 2);
    let imported = CommandGetImportedKeys { table: "orders".into(), ..Default::default() };
    assert_eq!(listing(&mut raw, imported).await.num_rows(), 0, "one of the two tables is hidden");
    let exported = CommandGetExportedKeys { table: "people".into(), ..Default::default() };
    assert_eq!(listing(&mut raw, exported).await.num_rows(), 0);
}

#[tokio::test]
async fn types_are_listed_by_their_numbers() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let all = listing(&mut raw, CommandGetXdbcTypeInfo { data_type: None }).await;
    assert_eq!(all.schema(), XdbcTypeInfoDataBuilder::new().schema());
    let numbers: Vec<i32> = all.column_by_name("data_type").unwrap().as_primitive::<Int32Type>().values().to_vec();
    let names = texts(&all, "type_name");
    let order: Vec<(i32, &String)> = numbers.iter().copied().zip(&names).collect();
    assert!(order.is_sorted(), "{order:?}");
    for number in [-7, -6, -5, -4, -3, -2, -1, 1, 2, 3, 4, 5, 7, 8, 10, 12, 91, 92, 93] {
        assert!(numbers.contains(&number), "XDBC type {number}");
    }

    let timestamps = listing(&mut raw, CommandGetXdbcTypeInfo { data_type: Some(93) }).await;
    assert_eq!(texts(&timestamps, "type_name"), ["TIMESTAMP", "TIMESTAMP WITH TIME ZONE"]);
    assert_eq!(rows(&timestamps, &["sql_data_type", "datetime_subcode", "maximum_scale"]), ["9 3 9", "9 5 9"]);
    assert_eq!(listing(&mut raw, CommandGetXdbcTypeInfo { data_type: Some(12_345) }).await.num_rows(), 0);

    // What is listed is a type that SQL takes.
    for name in &names {
        server.execute(&format!("select cast(null as {name})")).await;
    }
}

/// The protocol's types by number, as SQL spells them.
const CONVERTIBLE: [&str; 20] = [
    "BIGINT",
    "BINARY",
    "BOOLEAN",
    "CHAR",
    "DATE",
    "DECIMAL(38, 10)",
    "DOUBLE",
    "INTEGER",
    "INTERVAL",
    "INTERVAL",
    "BLOB",
    "TEXT",
    "NUMERIC(38, 10)",
    "REAL",
    "SMALLINT",
    "TIME",
    "TIMESTAMP",
    "TINYINT",
    "VARBINARY",
    "VARCHAR",
];

#[tokio::test]
async fn conversions_are_those_that_cast_does() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let info = listing(&mut raw, CommandGetSqlInfo { info: vec![517] }).await;
    let value = info.column(1).as_union().value(0);
    let entries = value.as_map().value(0);
    let (sources, targets) = (entries.column(0).as_primitive::<Int32Type>(), entries.column(1).as_list::<i32>());
    let listed: BTreeMap<i32, Vec<i32>> = (0..entries.len())
        .map(|row| (sources.value(row), targets.value(row).as_primitive::<Int32Type>().values().to_vec()))
        .collect();
    assert_eq!(listed.len(), CONVERTIBLE.len());
    for (source, from) in (0..).zip(CONVERTIBLE) {
        for (target, to) in (0..).zip(CONVERTIBLE) {
            let sql = format!("select cast(column1 as {to}) from (values (cast(null as {from})), (null)) as t");
            let casts = raw.rows(&sql).await.is_ok();
            assert_eq!(listed[&source].contains(&target), casts, "{sql}");
        }
    }
}
