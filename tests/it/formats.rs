//! Arrow IPC files and Lance datasets as external tables and as imports.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Decimal128Array, DictionaryArray, Int32Array, Int64Array, ListArray, RecordBatch,
    RecordBatchIterator, StringArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Int32Type, Schema};
use arrow::ipc::CompressionType;
use arrow::ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use lance::Dataset;
use querent_catalog::{IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, ImportRequest, QueryStream, ResultTypes};

use crate::sql::{admin, engine, rows};

#[tokio::test(flavor = "multi_thread")]
async fn arrow_files_of_both_formats_are_one_table_by_column_name() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let place = folder.path().join("events");
    for (day, first) in [("2024-01-01", 1), ("2024-01-02", 11)] {
        let day = place.join(format!("day={day}"));
        fs::create_dir_all(&day).unwrap();
        file_format(&day.join("a.arrow"), &batch(first, "id", "word"));
        // Other order, a column fewer, another type: told apart by name.
        let ids: ArrayRef = Arc::new(Int32Array::from(vec![first as i32 + 5]));
        stream_format(&day.join("b.feather"), &RecordBatch::try_from_iter([("id", ids)]).unwrap());
        stream_format(&day.join("c.ipc"), &flipped(&batch(first + 6, "id", "word")));
    }
    // Types that differ have a common one; with declared ones each file is read as them.
    rows(&session, &format!("CREATE EXTERNAL TABLE events STORED AS ARROW LOCATION '{}'", place.display()))
        .await
        .unwrap();
    let found = "SELECT count(*), sum(id), min(arrow_typeof(id)) FROM events";
    assert_eq!(rows(&session, found).await.unwrap(), [["22", "242", "Int64"]]);
    rows(&session, "DROP TABLE events").await.unwrap();
    let declared = format!(
        "CREATE EXTERNAL TABLE events (id BIGINT, word VARCHAR, day DATE) STORED AS ARROW PARTITIONED BY (day) \
         LOCATION '{}'",
        place.display()
    );
    rows(&session, &declared).await.unwrap();
    let all = "SELECT count(*), count(word), sum(id), min(word), max(word), count(DISTINCT day) FROM events";
    assert_eq!(rows(&session, all).await.unwrap(), [["22", "20", "242", "w1", "w9", "2"]]);
    let pruned = "SELECT day, id FROM events WHERE day = DATE '2024-01-02' AND id > 16 ORDER BY id DESC LIMIT 1";
    assert_eq!(rows(&session, pruned).await.unwrap(), [["2024-01-02", "21"]]);
    assert_eq!(rows(&session, "SELECT count(*) FROM (SELECT * FROM events LIMIT 3)").await.unwrap(), [["3"]]);
    assert_eq!(
        session.sample(&TableName::new("default", "events"), 5).await.unwrap().collect().await.unwrap().1.rows,
        5
    );
    assert_eq!(
        rows(&session, "INSERT INTO events VALUES (1, 'x', '2024-01-01')").await.unwrap_err().code(),
        "not_allowed"
    );

    fs::write(place.join("day=2024-01-01/d.arrow"), b"ARROW1 and then nothing").unwrap();
    let error = rows(&session, all).await.unwrap_err();
    assert_eq!(error.code(), "bad_data", "{error}");
    assert!(error.to_string().contains("d.arrow"), "{error}");
}

/// Parquet would keep other digits of them.
#[tokio::test(flavor = "multi_thread")]
async fn folders_of_no_value_are_null() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for format in ["parquet", "csv"] {
        let place = folder.path().join(format);
        for (part, count) in [("a", 10), ("b", 20), ("__HIVE_DEFAULT_PARTITION__", 5)] {
            let part = place.join(format!("part={part}"));
            fs::create_dir_all(&part).unwrap();
            let file = part.join(format!("f.{format}"));
            let ids = format!("SELECT value AS id FROM generate_series(1, {count}) AS s(value)");
            rows(&session, &format!("COPY ({ids}) TO '{}'", file.display())).await.unwrap();
        }
        let create = format!(
            "CREATE EXTERNAL TABLE {format}s STORED AS {format} PARTITIONED BY (part) LOCATION '{}/'",
            place.display()
        );
        rows(&session, &create).await.unwrap();
        for (query, found) in [
            ("count(*) FROM t WHERE part IS NULL", "5"),
            ("count(*) FROM t WHERE part IS NOT NULL", "30"),
            ("count(*) FROM t WHERE part IS DISTINCT FROM 'a'", "25"),
            ("count(*) FROM t WHERE part <> 'a'", "20"),
            ("count(part) FROM t", "30"),
            ("count(*) FROM t", "35"),
            ("max(part) FROM t", "b"),
        ] {
            let query = format!("SELECT {}", query.replace("FROM t", &format!("FROM {format}s")));
            assert_eq!(rows(&session, &query).await.unwrap(), [[found]], "{query}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decimals_of_more_digits_than_their_type_are_not_written() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let place = folder.path().join("sums.arrow");
    let sums = Decimal128Array::from(vec![Some(12_345), Some(10_i128.pow(30)), None]);
    let sums: ArrayRef = Arc::new(sums.with_precision_and_scale(5, 2).unwrap());
    let item = Arc::new(Field::new("item", sums.data_type().clone(), true));
    let lists: ArrayRef =
        Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([3, 0, 0]), Arc::clone(&sums), None));
    file_format(&place, &RecordBatch::try_from_iter_with_nullable([("v", sums, true), ("l", lists, true)]).unwrap());
    let sums = format!("CREATE EXTERNAL TABLE sums STORED AS ARROW LOCATION '{}'", place.display());
    rows(&session, &sums).await.unwrap();
    for column in ["v", "l"] {
        let error = rows(&session, &format!("CREATE TABLE made AS SELECT {column} FROM sums")).await.unwrap_err();
        assert_eq!(error.code(), "invalid_value", "{error}");
        assert!(error.to_string().contains("more digits than"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_and_dictionary_arrow_files_are_imported() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("t.feather");
    let words: DictionaryArray<Int32Type> = ["x", "y", "x"].into_iter().collect();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("word", Arc::new(words) as ArrayRef)]).unwrap();
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::LZ4_FRAME)).unwrap();
    let mut writer = FileWriter::try_new_with_options(File::create(&file).unwrap(), &batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    // A view's column may be encoded too.
    rows(&session, "CREATE VIEW encoded AS SELECT arrow_cast('x', 'Dictionary(Int32, Utf8)') AS word").await.unwrap();
    assert_eq!(rows(&session, "SELECT word FROM encoded").await.unwrap(), [["x"]]);
    for (table, external) in [("copied", false), ("referenced", true)] {
        import(&engine, &file, table, external).await;
        let sql = format!("SELECT word, sum(id) FROM {table} GROUP BY word ORDER BY word");
        assert_eq!(rows(&session, &sql).await.unwrap(), [["x", "4"], ["y", "2"]], "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn dictionaries_of_arrow_files_stay_for_a_reader_that_takes_them() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let place = folder.path().join("words");
    fs::create_dir_all(&place).unwrap();
    let encoded = |words: [&str; 3]| -> RecordBatch {
        let words: DictionaryArray<Int32Type> = words.into_iter().collect();
        RecordBatch::try_from_iter([("word", Arc::new(words) as ArrayRef)]).unwrap()
    };
    file_format(&place.join("a.arrow"), &encoded(["x", "y", "x"]));
    file_format(&place.join("b.arrow"), &encoded(["z", "z", "y"]));
    let create = format!("CREATE EXTERNAL TABLE words STORED AS ARROW LOCATION '{}'", place.display());
    rows(&session, &create).await.unwrap();

    let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let taking = admin(&engine).with_result_types(ResultTypes { dictionaries: true, views: false });
    let word_type = |stream: &QueryStream| stream.schema().field(0).data_type().clone();
    for (session, expected) in [(&session, &DataType::Utf8), (&taking, &dictionary)] {
        let stream = session.sql("SELECT word FROM words").await.unwrap();
        assert_eq!(&word_type(&stream), expected);
        let (batches, _) = stream.collect().await.unwrap();
        assert!(batches.iter().all(|batch| batch.column(0).data_type() == expected));
        let counted = "SELECT word, count(*) FROM words WHERE word <> 'z' GROUP BY word ORDER BY word";
        assert_eq!(rows(session, counted).await.unwrap(), [["x", "2"], ["y", "2"]]);
        assert_eq!(rows(session, "SELECT upper(word) FROM words WHERE word LIKE 'x%' LIMIT 1").await.unwrap(), [["X"]]);
    }
    // A file that has the strings themselves makes the column plain.
    let plain: ArrayRef = Arc::new(StringArray::from(vec!["x", "q", "q"]));
    file_format(&place.join("c.arrow"), &RecordBatch::try_from_iter([("word", plain)]).unwrap());
    assert_eq!(word_type(&taking.sql("SELECT word FROM words").await.unwrap()), DataType::Utf8);
    assert_eq!(rows(&taking, "SELECT count(*) FROM words WHERE word = 'x'").await.unwrap(), [["3"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lance_datasets_are_tables() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let place = folder.path().join("my words.lance");
    write_lance(&place, vec![batch(1, "id", "word"), batch(6, "id", "word")]).await;
    let create = format!("CREATE EXTERNAL TABLE words STORED AS LANCE LOCATION '{}'", place.display());
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*) FROM words").await.unwrap(), [["10"]]);
    let filtered = "SELECT word, id + 1 FROM words WHERE id > 3 AND word <> 'w5' ORDER BY id LIMIT 2";
    assert_eq!(rows(&session, filtered).await.unwrap(), [["w4", "5"], ["w6", "7"]]);
    let plan = rows(&session, &format!("EXPLAIN {filtered}")).await.unwrap().concat().join("\n");
    assert!(plan.contains("Lance") && plan.contains("id > "), "Lance filters: {plan}");
    assert_eq!(rows(&session, "SELECT a.word FROM words a JOIN words b ON a.id = b.id + 9").await.unwrap(), [["w10"]],);
    // The newest version is read.
    let more = RecordBatchIterator::new([Ok(batch(11, "id", "word"))], batch(1, "id", "word").schema());
    let mut dataset = Dataset::open(place.to_str().unwrap()).await.unwrap();
    dataset.append(more, None).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*), max(id) FROM words").await.unwrap(), [["15", "15"]]);
    import(&engine, &place, "copied", false).await;
    assert_eq!(rows(&session, "SELECT count(word), sum(id) FROM copied").await.unwrap(), [["15", "120"]]);

    let nothing = folder.path().join("nothing.lance");
    fs::create_dir_all(nothing.join("_versions")).unwrap();
    let create = format!("CREATE EXTERNAL TABLE bad STORED AS LANCE LOCATION '{}'", nothing.display());
    assert_eq!(rows(&session, &create).await.unwrap_err().code(), "bad_data");
    let create = format!("CREATE EXTERNAL TABLE bad STORED AS LANCE LOCATION '{}'", folder.path().join("no").display());
    assert_eq!(rows(&session, &create).await.unwrap_err().code(), "no_files");
    fs::remove_dir_all(&place).unwrap();
    assert_eq!(rows(&session, "SELECT * FROM words").await.unwrap_err().code(), "bad_data");
}

async fn import(engine: &Engine, source: &Path, table: &str, external: bool) {
    let request = ImportRequest {
        source: source.display().to_string(),
        format: None,
        options: Default::default(),
        table: TableName::new("default", table),
        external,
        if_exists: Some(IfExists::Error),
    };
    engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await.unwrap();
}

/// Five rows, `first` and up.
fn batch(first: i64, id: &str, word: &str) -> RecordBatch {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(first..first + 5));
    let words: ArrayRef = Arc::new(StringArray::from_iter_values((first..first + 5).map(|id| format!("w{id}"))));
    RecordBatch::try_from_iter([(id, ids), (word, words)]).unwrap()
}

fn flipped(batch: &RecordBatch) -> RecordBatch {
    batch.project(&[1, 0]).unwrap()
}

pub(crate) fn file_format(path: &Path, batch: &RecordBatch) {
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch.slice(0, 2)).unwrap();
    writer.write(&batch.slice(2, batch.num_rows() - 2)).unwrap();
    writer.finish().unwrap();
}

fn stream_format(path: &Path, batch: &RecordBatch) {
    let mut writer = StreamWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
}

pub(crate) async fn write_lance(folder: &Path, batches: Vec<RecordBatch>) {
    let schema: Arc<Schema> = batches[0].schema();
    let batches = RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    Dataset::write(batches, folder.to_str().unwrap(), None).await.unwrap();
}

pub(crate) fn numbers(first: i64) -> RecordBatch {
    batch(first, "id", "word")
}
