//! What policies hide lies in no buffer of the rows that are left: not under nulls, not behind views, not in dictionaries. A
//! client of Arrow reads the buffers, whatever the rows show.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{
    Array, ArrayData, ArrayRef, DictionaryArray, Int64Array, ListArray, RecordBatch, StringArray, StringViewArray,
};
use arrow::datatypes::{Int32Type, Int64Type};
use arrow::ipc::writer::FileWriter;
use querent_engine::{ResultTypes, Session};

use super::{admin, caller, run};
use crate::sql::{engine, rows};

const ROWS: i64 = 40;
const COLUMNS: [&str; 5] = ["plain", "view", "code", "pay", "list"];

fn word(row: i64) -> String {
    if row == 7 { "a text that everybody may read".to_owned() } else { format!("a text of row {row}, which is hidden") }
}

fn pay(row: i64) -> i64 {
    0x0123_4567_0000_0000 + row
}

fn write_rows(path: &Path) {
    let words: Vec<String> = (0..ROWS).map(word).collect();
    let words = || words.iter().map(String::as_str);
    let columns: [(&str, ArrayRef); 6] = [
        ("id", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("plain", Arc::new(StringArray::from_iter_values(words()))),
        ("view", Arc::new(StringViewArray::from_iter_values(words()))),
        ("code", Arc::new(words().collect::<DictionaryArray<Int32Type>>())),
        ("pay", Arc::new(Int64Array::from_iter_values((0..ROWS).map(pay)))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>((0..ROWS).map(|row| Some([Some(pay(row))])))),
        ),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(columns.map(|(name, column)| (name, column, true))).unwrap();
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
}

fn holds(data: &ArrayData, row: i64) -> bool {
    let (word, pay) = (word(row), pay(row).to_le_bytes());
    let has = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).any(|window| window == part);
    data.buffers().iter().any(|buffer| has(buffer, word.as_bytes()) || has(buffer, &pay))
        || data.child_data().iter().any(|child| holds(child, row))
}

#[tokio::test(flavor = "multi_thread")]
async fn no_buffer_has_what_a_policy_hides() {
    let (folder, engine) = engine().await;
    let root = admin(&engine);
    let path = folder.path().join("rows.arrow");
    write_rows(&path);
    for table in ["few", "most", "masked"] {
        let create = format!("CREATE EXTERNAL TABLE {table} STORED AS ARROW LOCATION '{}'", path.display());
        run(&root, &[&create]).await;
    }
    run(
        &root,
        &[
            "CREATE ROW POLICY few ON few USING (id = 7) TO PUBLIC",
            "CREATE ROW POLICY most ON most USING (id <> 8) TO PUBLIC",
        ],
    )
    .await;
    for column in COLUMNS {
        let mask =
            format!("CREATE MASK m_{column} ON masked({column}) USING (CASE WHEN id = 7 THEN {column} END) TO PUBLIC");
        run(&root, &[&mask]).await;
    }
    let anna = caller(&engine, "anna", &[], None);
    for (views, dictionaries) in [(false, false), (true, false), (false, true), (true, true)] {
        let session = anna.clone().with_result_types(ResultTypes { views, dictionaries });
        for (table, shown) in [("few", 1), ("most", 39), ("masked", 40)] {
            for column in COLUMNS {
                let sql = format!("SELECT {column} FROM {table}");
                let (batches, _) = session.sql(&sql).await.unwrap().collect().await.unwrap();
                assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), shown, "{sql}");
                for row in (0..ROWS).filter(|row| if table == "most" { *row == 8 } else { *row != 7 }) {
                    let found = batches.iter().any(|batch| holds(&batch.column(0).to_data(), row));
                    assert!(!found, "{sql} ({views}, {dictionaries}) holds row {row}");
                }
                let found = batches.iter().any(|batch| holds(&batch.column(0).to_data(), 7));
                assert!(found, "{sql}: what is shown is looked for as well");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_condition_that_fails_does_not_say_on_which_value() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE levels AS SELECT * FROM (VALUES (1, '2'), (2, 'SECRET-7')) t(id, level)",
            "CREATE ROW POLICY low ON levels USING (CAST(level AS INT) <= 3) TO PUBLIC",
        ],
    )
    .await;
    let reader = caller(&engine, "ann", &[], None);
    for sql in ["SELECT count(*) FROM levels", "SELECT id FROM levels WHERE id = 2"] {
        let error = rows(&reader, sql).await.unwrap_err();
        assert_eq!(error.code(), "invalid_value", "{error}");
        assert!(!error.to_string().contains("SECRET"), "{error}");
    }
    engine.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_whose_values_are_hidden_are_not_counted() {
    let (_folder, engine) = engine().await;
    let root = admin(&engine);
    run(
        &root,
        &[
            "CREATE TABLE people AS SELECT 'Ann' AS name, '123' AS ssn, 'a@x.org' AS mail",
            "CREATE TABLE orders AS SELECT 'US' AS region",
            "GRANT SELECT (name, mail) ON people TO PUBLIC",
            "GRANT SELECT ON orders TO PUBLIC",
            "CREATE MASK mail ON people(mail) USING ('***') TO PUBLIC",
            "CREATE ROW POLICY europe ON orders USING (region = 'EU') TO PUBLIC",
        ],
    )
    .await;
    engine.wait_for_profiles(Duration::from_secs(20)).await;
    let values = engine.catalog().values();
    let count = async |session: &Session| values.count_columns(session.principal(), None, 100).await.unwrap();
    assert_eq!(count(&root).await, 4);
    assert_eq!(count(&caller(&engine, "ann", &[], None)).await, 1, "the names of people alone");
    engine.close().await.unwrap();
}
