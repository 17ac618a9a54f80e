//! Parquet and Arrow files: names that tables cannot have, UUIDs, and folders that are columns.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{
    ArrayRef, FixedSizeBinaryArray, Float64Array, Int8Array, Int32Array, Int64Array, ListArray, NullArray, RecordBatch,
    StringArray,
};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Schema};
use arrow::ipc::writer::FileWriter;
use base64::Engine as _;
use parquet::arrow::ArrowWriter;
use parquet::data_type::{ByteArray, FixedLenByteArray, FixedLenByteArrayType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use querent_tests::Python;

use super::{import, write};
use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

const ID: &str = "8a6e0804-2bd0-4672-b79d-d97027f9071a";

/// Returns columns of which two have one name, one has none, and one is the other in another case.
fn awkward_columns() -> RecordBatch {
    let number = |value: i64| Arc::new(Int64Array::from(vec![value])) as ArrayRef;
    let columns = ["a", "a", "A", ""].iter().zip(1..);
    let fields = columns.clone().map(|(name, _)| Field::new(*name, DataType::Int64, true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(Arc::new(schema), columns.map(|(_, value)| number(value)).collect()).unwrap()
}

fn extension(name: &str) -> HashMap<String, String> {
    HashMap::from([("ARROW:extension:name".to_owned(), name.to_owned())])
}

/// Returns a UUID and a boolean of eight bits.
fn extension_columns() -> RecordBatch {
    let schema = Schema::new(vec![
        Field::new("id", DataType::FixedSizeBinary(16), true).with_metadata(extension("arrow.uuid")),
        Field::new("ok", DataType::Int8, true).with_metadata(extension("arrow.bool8")),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(ids()), Arc::new(Int8Array::from(vec![1]))];
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

/// Returns a list of UUIDs.
fn inner_uuids() -> RecordBatch {
    let item = Field::new("item", DataType::FixedSizeBinary(16), true).with_metadata(extension("arrow.uuid"));
    let list = ListArray::new(Arc::new(item), OffsetBuffer::from_lengths([1]), Arc::new(ids()), None);
    RecordBatch::try_from_iter([("ids", Arc::new(list) as ArrayRef)]).unwrap()
}

fn ids() -> FixedSizeBinaryArray {
    let id = uuid::Uuid::parse_str(ID).unwrap().into_bytes();
    FixedSizeBinaryArray::try_from_iter([id].into_iter()).unwrap()
}

fn parquet(path: &Path, batch: &RecordBatch) -> PathBuf {
    let mut writer = ArrowWriter::try_new(File::create(path).unwrap(), batch.schema(), None).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path.to_owned()
}

fn arrow_file(path: &Path, batch: &RecordBatch) -> PathBuf {
    let mut writer = FileWriter::try_new(File::create(path).unwrap(), &batch.schema()).unwrap();
    writer.write(batch).unwrap();
    writer.finish().unwrap();
    path.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_column_of_a_file_is_one_of_the_table() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let batch = awkward_columns();
    for file in [parquet(&folder.path().join("x.parquet"), &batch), arrow_file(&folder.path().join("x.arrow"), &batch)]
    {
        let columns = "SELECT a, a_1, \"A_2\", column_4";
        let expected = [["1", "2", "3", "4"]];
        import(&engine, &file, &[]).await.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        assert_eq!(rows(&session, &format!("{columns} FROM t")).await.unwrap(), expected);
        let path = file.display();
        assert_eq!(rows(&session, &format!("{columns} FROM '{path}'")).await.unwrap(), expected, "{path}");
        assert_eq!(rows(&session, &format!("SELECT count(*) FROM '{path}' WHERE a_1 = 2")).await.unwrap(), [["1"]]);
        assert_eq!(rows(&session, &format!("SELECT count(*) FROM '{path}'")).await.unwrap(), [["1"]]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uuids_are_text_and_booleans_of_eight_bits_are_booleans() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let batch = extension_columns();
    for file in [parquet(&folder.path().join("x.parquet"), &batch), arrow_file(&folder.path().join("x.arrow"), &batch)]
    {
        import(&engine, &file, &[]).await.unwrap();
        let path = file.display();
        for from in ["t".to_owned(), format!("'{path}'")] {
            let sql = format!("SELECT id FROM {from} WHERE id LIKE '8a6e%' AND id = '{ID}'");
            assert_eq!(rows(&session, &sql).await.unwrap(), [[ID]], "{path}: {from}");
        }
    }
    assert_eq!(rows(&session, "SELECT ok FROM t").await.unwrap(), [["true"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn uuids_inside_of_lists_are_text() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let batch = inner_uuids();
    for file in [parquet(&folder.path().join("x.parquet"), &batch), arrow_file(&folder.path().join("x.arrow"), &batch)]
    {
        import(&engine, &file, &[]).await.unwrap();
        let path = file.display();
        for from in ["t".to_owned(), format!("'{path}'")] {
            let sql = format!("SELECT ids[1] FROM {from} WHERE ids[1] = '{ID}'");
            assert_eq!(rows(&session, &sql).await.unwrap(), [[ID]], "{path}: {from}");
        }
    }
}

/// Arrow's reader has the months of an interval, or its days and milliseconds.
#[tokio::test(flavor = "multi_thread")]
async fn intervals_have_months_days_and_milliseconds() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let path = folder.path().join("x.parquet");
    let message = "message file { REQUIRED INT64 i; REQUIRED FIXED_LEN_BYTE_ARRAY(12) iv (INTERVAL); }";
    let schema = Arc::new(parse_message_type(message).unwrap());
    let file = File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(WriterProperties::default())).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&[1, 2], None, None).unwrap();
    column.close().unwrap();
    let interval = |parts: [u32; 3]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.to_le_bytes()).collect();
        FixedLenByteArray::from(ByteArray::from(bytes))
    };
    let mut column = group.next_column().unwrap().unwrap();
    let intervals = [interval([14, 3, 7_200_000]), interval([12, 0, 0])];
    column.typed::<FixedLenByteArrayType>().write_batch(&intervals, None, None).unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();

    let path = path.display();
    let found = rows(&session, &format!("SELECT i, CAST(iv AS VARCHAR) FROM '{path}' ORDER BY i")).await.unwrap();
    assert_eq!(found, [["1", "1 year 2 months 3 days 02:00:00"], ["2", "1 year"]]);
    let later = format!("SELECT CAST(DATE '2020-01-31' + iv AS DATE) FROM '{path}' WHERE i = 2");
    assert_eq!(rows(&session, &later).await.unwrap(), [["2021-01-31"]]);
    assert_eq!(rows(&session, &format!("SELECT sum(i) FROM '{path}'")).await.unwrap(), [["3"]]);
}

/// Few functions of bytes take those of a fixed number.
#[tokio::test(flavor = "multi_thread")]
async fn bytes_of_a_fixed_number_are_bytes() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let bytes = FixedSizeBinaryArray::try_from_sparse_iter_with_size([Some(b"xy"), None].into_iter(), 2).unwrap();
    let batch = RecordBatch::try_from_iter([("f", Arc::new(bytes) as ArrayRef)]).unwrap();
    for file in [parquet(&folder.path().join("x.parquet"), &batch), arrow_file(&folder.path().join("x.arrow"), &batch)]
    {
        let path = file.display();
        let sql = format!("SELECT length(f), hex(f), CAST(f AS VARCHAR) FROM '{path}' WHERE f = X'7879' AND f = 'xy'");
        assert_eq!(rows(&session, &sql).await.unwrap(), [["2", "7879", "xy"]], "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_are_columns_whatever_files_hold() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for (key, value) in [("k=1", "a"), ("k=2", "b")] {
        std::fs::create_dir_all(folder.path().join("csv").join(key)).unwrap();
        std::fs::create_dir_all(folder.path().join("parquet").join(key)).unwrap();
        write(&folder.path().join("csv").join(key), "x.csv", format!("k,v\n9,{value}\n"));
        let columns: [(&str, ArrayRef); 2] =
            [("k", Arc::new(Int64Array::from(vec![9]))), ("v", Arc::new(StringArray::from(vec![value])))];
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        parquet(&folder.path().join("parquet").join(key).join("x.parquet"), &batch);
    }
    for (name, format) in [("csv", "CSV"), ("parquet", "PARQUET")] {
        let source = folder.path().join(name);
        import(&engine, &source, &[]).await.unwrap();
        let create = format!("CREATE OR REPLACE EXTERNAL TABLE e STORED AS {format} LOCATION '{}'", source.display());
        rows(&session, &create).await.unwrap();
        for table in ["t", "e"] {
            let found = rows(&session, &format!("SELECT k, v FROM {table} ORDER BY k")).await.unwrap();
            assert_eq!(found, [["1", "a"], ["2", "b"]], "{name}: {table}");
        }
    }
    for (key, expected) in [("zip=00501", "00501"), ("zip=501", "501"), ("month=01", "1")] {
        let name = key.split('=').next().unwrap();
        let source = folder.path().join(format!("hive {key}"));
        std::fs::create_dir_all(source.join(key)).unwrap();
        write(&source.join(key), "x.csv", "v\n1\n");
        import(&engine, &source, &[]).await.unwrap();
        let found = rows(&session, &format!("SELECT {name}::VARCHAR FROM t")).await.unwrap();
        assert_eq!(found, [[expected]], "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_column_that_files_write_in_two_cases_is_one_by_name() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let column = |name: &str, value: i64| {
        RecordBatch::try_from_iter([(name, Arc::new(Int64Array::from(vec![value])) as ArrayRef)]).unwrap()
    };
    for (name, value) in [("id", 1), ("ID", 2)] {
        parquet(&folder.path().join(format!("{value}.parquet")), &column(name, value));
        arrow_file(&folder.path().join(format!("{value}.arrow")), &column(name, value));
    }
    for (ending, reader) in [("parquet", "read_parquet"), ("arrow", "read_arrow")] {
        let files = folder.path().join(format!("*.{ending}")).display().to_string();
        let error = rows(&session, &format!("SELECT * FROM '{files}'")).await.unwrap_err();
        assert_eq!(error.code(), "bad_data", "{error}");
        assert!(error.to_string().contains("its column `ID` is `id` in "), "{error}");
        let both = format!("SELECT id FROM {reader}('{files}', union_by_name = true) ORDER BY id");
        assert_eq!(rows(&session, &both).await.unwrap(), [["1"], ["2"]], "{ending}");
        // Declared columns are found in either case, as the columns of files that come later are.
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE e (id BIGINT) STORED AS {} LOCATION '{files}'",
            ending.to_uppercase()
        );
        rows(&session, &create).await.unwrap();
        assert_eq!(rows(&session, "SELECT id FROM e ORDER BY id").await.unwrap(), [["1"], ["2"]], "{ending}");
        assert_eq!(rows(&session, "SELECT count(id), max(id) FROM e").await.unwrap(), [["2", "2"]], "{ending}");
        assert_eq!(rows(&session, "SELECT id + 1 FROM e WHERE id = 2").await.unwrap(), [["3"]], "{ending}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_of_a_glob_are_matched_by_name() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    write(folder.path(), "1.csv", "a,b\n1,x\n");
    write(folder.path(), "2.csv", "b,a\ny,2\n");
    let all = folder.path().join("*.csv");
    let read = format!("SELECT a, b FROM '{}' ORDER BY a", all.display());
    assert_eq!(rows(&session, &read).await.unwrap(), [["1", "x"], ["2", "y"]]);
    write(folder.path(), "3.csv", "a,c\n3,z\n");
    let error = rows(&session, &read).await.unwrap_err().to_string();
    assert!(error.contains("union_by_name = true"), "{error}");
    let read = format!("SELECT a, b, c FROM read_csv('{}', union_by_name = true) ORDER BY a", all.display());
    let expected = [["1", "x", "NULL"], ["2", "y", "NULL"], ["3", "NULL", "z"]];
    assert_eq!(rows(&session, &read).await.unwrap(), expected);

    let column = |array: ArrayRef| RecordBatch::try_from_iter([("n", array)]).unwrap();
    parquet(&folder.path().join("1.parquet"), &column(Arc::new(Int32Array::from(vec![1]))));
    parquet(&folder.path().join("2.parquet"), &column(Arc::new(Int64Array::from(vec![1 << 40]))));
    let all = folder.path().join("*.parquet");
    let read = format!("SELECT sum(n) FROM read_parquet('{}', union_by_name = true)", all.display());
    assert_eq!(rows(&session, &read).await.unwrap(), [["1099511627777"]]);
}

/// As caches of downloads have them: what such a link leads to is not left out of a table in silence.
#[tokio::test(flavor = "multi_thread")]
async fn a_link_to_a_file_elsewhere_is_refused_in_a_folder_and_read_by_its_name() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let parts = folder.path().join("parts");
    std::fs::create_dir_all(&parts).unwrap();
    parquet(&parts.join("1.parquet"), &texts(2));
    let blob = parquet(&folder.path().join("blob.parquet"), &texts(3));
    std::os::unix::fs::symlink(&blob, parts.join("2.parquet")).unwrap();
    for location in [parts.display().to_string(), parts.join("*.parquet").display().to_string()] {
        let read = format!("SELECT count(*) FROM read_parquet('{location}')");
        let error = rows(&session, &read).await.unwrap_err();
        assert_eq!(error.code(), "location_not_allowed", "{location}: {error}");
        assert!(error.to_string().contains("2.parquet is not allowed: it is a link"), "{error}");
    }
    let read = format!("SELECT count(*) FROM '{}'", parts.join("2.parquet").display());
    assert_eq!(rows(&session, &read).await.unwrap(), [["3"]]);
}

/// The schema of an Arrow stream of Polars with integers of 128 bits, in base64.
const WIDE_ARROW: &str = "\
    /////3gAAAAEAAAA8v///xQAAAAEAAEAAAAKAAsACAAKAAQA+P///wwAAAAIAAgAAAAEAAEAAAAEAAAA7P///zgAAAAgAAAAGAAAAAEC\
    AAAQABIABAAQABEACAAAAAwAAAAAAPT///+AAAAAAQAAAAgACQAEAAgAAQAAAG4AAAA=";

/// A Parquet file of Polars with such an integer.
const WIDE_PARQUET: &str = "\
    UEFSMRUAFSwVLCwVAhUAFQYVBgAAAgAAAAIBAQAAAAAAAAAAAAAAAAAAABUOGSUABhkYAW4VABYCFk4WTiYIABkcFggVThYAAAAVAhksSARyb290\
    FQIAFQ4VIBUCGAFuABYCGRwZHCZWHBUOGSUABhkYAW4VABYCFk4WTiYIABaAARUUABZOFgImCBZOFAAAGRwYDEFSUk9XOnNjaGVtYRioAS8vLy8v\
    M1lBQUFBRUFBQUE4di8vL3hRQUFBQUVBQUVBQUFBS0FBc0FDQUFLQUFRQStQLy8vd3dBQUFBSUFBZ0FBQUFFQUFFQUFBQUVBQUFBN1AvLy96Z0FB\
    QUFnQUFBQUdBQUFBQUVDQUFBUUFCSUFCQUFRQUJFQUNBQUFBQXdBQUFBQUFQVC8vLytBQUFBQUFRQUFBQWdBQ1FBRUFBZ0FBUUFBQUc0QQAYTlBv\
    bGFycyAocHl0aG9uKSB2ZXJzaW9uIDIuMS4wIChidWlsZCA3ZjkwMmJkM2ZmZDI3ZmY4MmQxNDI3OGEwOWEyOTVmZjJmN2FlZDkyKRkcHAAAAFgB\
    AABQQVIx";

#[tokio::test(flavor = "multi_thread")]
async fn integers_that_arrow_lacks_are_refused_with_what_to_do() {
    let (folder, engine) = engine().await;
    for (name, text) in [("wide.arrow", WIDE_ARROW), ("wide.parquet", WIDE_PARQUET)] {
        let file = folder.path().join(name);
        std::fs::write(&file, base64::engine::general_purpose::STANDARD.decode(text).unwrap()).unwrap();
        let error = import(&engine, &file, &[]).await.unwrap_err();
        assert_eq!(error.code(), "bad_data", "{name}: {error}");
        assert!(
            error.to_string().ends_with("in Polars cast them to Decimal or to whole numbers of 64 bits"),
            "{name}: {error}"
        );
    }
}

/// A reader that believes the length of the footer asks for four gigabytes.
#[tokio::test(flavor = "multi_thread")]
async fn a_footer_longer_than_its_file_is_refused() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let column = RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]).unwrap();
    let whole = std::fs::read(parquet(&folder.path().join("whole.parquet"), &column)).unwrap();
    let mut longer = whole.clone();
    let place = longer.len() - 8;
    longer[place..place + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    for (name, bytes) in [("tiny.parquet", b"PAR1\xff\xff\xff\xffPAR1".to_vec()), ("longer.parquet", longer)] {
        let file = write(folder.path(), name, bytes);
        let error = import(&engine, &file, &[]).await.unwrap_err();
        assert!(error.code() == "bad_data" && error.to_string().contains(name), "{error}");
        let read = format!("SELECT * FROM '{}'", file.display());
        assert_eq!(rows(&session, &read).await.unwrap_err().code(), "bad_data");
    }
}

/// Bytes of a file, changed: what it cannot be read as is the file's fault, and nothing ends or panics.
#[tokio::test(flavor = "multi_thread")]
async fn damaged_files_are_bad_data() {
    let (folder, engine) = engine().await;
    let numbers: ArrayRef = Arc::new(Int64Array::from((0..2_000).map(|number| number % 7).collect::<Vec<_>>()));
    let numbers = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let files = [
        (parquet(&folder.path().join("d.parquet"), &numbers), 5),
        (arrow_file(&folder.path().join("d.arrow"), &extension_columns()), 23),
    ];
    for (file, step) in files {
        let whole = std::fs::read(&file).unwrap();
        let places = (8..whole.len() - 8).step_by(step).take(40);
        for (at, byte) in places.flat_map(|at| [(at, 0x00), (at, 0xff)]) {
            let mut damaged = whole.clone();
            damaged[at] = byte;
            std::fs::write(&file, damaged).unwrap();
            if let Err(error) = import(&engine, &file, &[]).await {
                let code = error.code();
                assert!(!["internal", "query_execution_error"].contains(&code), "{at} {byte}: {code} {error}");
            }
        }
    }
}

/// Returns a copy of a file whose first pages are noise, with its footer as it was.
fn with_damaged_pages(file: &Path) -> Vec<u8> {
    let mut bytes = std::fs::read(file).unwrap();
    let footer = bytes.len() - 8;
    let length = u32::from_le_bytes(bytes[footer..footer + 4].try_into().unwrap()) as usize;
    bytes[4..(footer - length) / 2].fill(0xff);
    bytes
}

fn texts(count: usize) -> RecordBatch {
    let values = (0..count).map(|number| format!("value {number}")).collect::<Vec<_>>();
    RecordBatch::try_from_iter([("v", Arc::new(StringArray::from(values)) as ArrayRef)]).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_named_by_what_reads_it() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let good = parquet(&folder.path().join("1.parquet"), &texts(2_000));
    let pages = write(folder.path(), "2.parquet", with_damaged_pages(&good));
    let create = "CREATE EXTERNAL TABLE e STORED AS PARQUET LOCATION";
    rows(&session, &format!("{create} '{}'", folder.path().join("*.parquet").display())).await.unwrap();
    // The second time columns come by way of the cache.
    for _ in 0..2 {
        for from in ["e".to_owned(), format!("'{}'", pages.display())] {
            let error = rows(&session, &format!("SELECT max(length(v)) FROM {from}")).await.unwrap_err();
            assert!(error.code() == "bad_data" && error.to_string().contains("2.parquet"), "{from}: {error}");
        }
    }

    let half = std::fs::read(&good).unwrap();
    write(folder.path(), "2.parquet", &half[..half.len() / 2]);
    let all = format!("SELECT count(*) FROM '{}'", folder.path().join("*.parquet").display());
    for sql in [all.as_str(), "SELECT max(length(v)) FROM e"] {
        let error = rows(&session, sql).await.unwrap_err();
        assert!(error.code() == "bad_data" && error.to_string().contains("2.parquet"), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_of_a_managed_table_is_the_servers_fault() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE m AS SELECT 'value ' || value AS v FROM generate_series(1, 2000) AS s(value)")
        .await
        .unwrap();
    let file = parquet_files(&folder.path().join("data")).remove(0);
    let whole = std::fs::read(&file).unwrap();
    for damaged in [with_damaged_pages(&file), whole[..whole.len() / 2].to_vec()] {
        std::fs::write(&file, damaged).unwrap();
        let error = rows(&session, "SELECT max(length(v)) FROM m").await.unwrap_err();
        let message = error.to_string();
        assert_eq!(error.code(), "query_execution_error", "{message}");
        let name = file.file_name().unwrap().to_str().unwrap();
        assert!(message.contains(name) && message.contains("querent check"), "{message}");
        assert!(!message.contains(folder.path().to_str().unwrap()), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_of_several_files_have_a_type_that_holds_all_values() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let column = |array: ArrayRef| RecordBatch::try_from_iter([("n", array)]).unwrap();
    let short = column(Arc::new(Int32Array::from(vec![1])));
    let long = column(Arc::new(Int64Array::from(vec![1_i64 << 40])));
    let text = column(Arc::new(StringArray::from(vec!["x"])));
    for ending in ["parquet", "arrow"] {
        let write = |name: &str, batch: &RecordBatch| match ending {
            "parquet" => parquet(&folder.path().join(format!("{name}.parquet")), batch),
            _ => arrow_file(&folder.path().join(format!("{name}.arrow")), batch),
        };
        write("1", &short);
        write("2", &long);
        let all = folder.path().join(format!("*.{ending}"));
        let read = format!("SELECT n FROM '{}' WHERE n > 0 ORDER BY n", all.display());
        assert_eq!(rows(&session, &read).await.unwrap(), [["1"], ["1099511627776"]], "{ending}");
        import(&engine, &all, &[]).await.unwrap();
        assert_eq!(rows(&session, "SELECT sum(n) FROM t").await.unwrap(), [["1099511627777"]], "{ending}");

        write("3", &text);
        let error = rows(&session, &read).await.unwrap_err();
        let message = error.to_string();
        assert_eq!(error.code(), "bad_data", "{message}");
        for part in [format!("3.{ending}: its column `n` is VARCHAR"), format!("2.{ending} is BIGINT")] {
            assert!(message.contains(&part), "{message}");
        }
        // As the message says: declared columns are what each file is cast to, and what cannot be is an error.
        let create = |data_type: &str| {
            format!(
                "CREATE OR REPLACE EXTERNAL TABLE e (n {data_type}) STORED AS {} LOCATION '{}'",
                ending.to_uppercase(),
                all.display()
            )
        };
        rows(&session, &create("VARCHAR")).await.unwrap();
        let found = rows(&session, "SELECT n FROM e ORDER BY n").await.unwrap();
        assert_eq!(found, [["1"], ["1099511627776"], ["x"]], "{ending}");
        rows(&session, &create("BIGINT")).await.unwrap();
        let error = rows(&session, "SELECT n FROM e").await.unwrap_err();
        assert!(["bad_data", "invalid_value"].contains(&error.code()), "{ending}: {} {error}", error.code());
    }
}

/// A batch without bytes may say that it has any number of rows.
#[tokio::test(flavor = "multi_thread")]
async fn rows_that_say_nothing_are_read_a_part_at_a_time() {
    const ROWS: i64 = 7_777_777;
    let (folder, engine) = engine().await;
    let nulls: ArrayRef = Arc::new(NullArray::new(usize::try_from(ROWS).unwrap()));
    let file = arrow_file(&folder.path().join("many.arrow"), &RecordBatch::try_from_iter([("n", nulls)]).unwrap());
    let mut bytes = std::fs::read(&file).unwrap();
    let said: Vec<usize> = (0..bytes.len() - 8).filter(|at| bytes[*at..*at + 8] == ROWS.to_le_bytes()).collect();
    assert!(!said.is_empty());
    said.iter().for_each(|at| bytes[*at..*at + 8].copy_from_slice(&(1_i64 << 40).to_le_bytes()));
    std::fs::write(&file, bytes).unwrap();
    let read = format!("SELECT count(*) FROM (SELECT n FROM '{}' LIMIT 3)", file.display());
    assert_eq!(rows(&admin(&engine), &read).await.unwrap(), [["3"]]);
}

/// Arrow's cast of a number cuts its fraction off.
#[tokio::test(flavor = "multi_thread")]
async fn numbers_of_files_are_rounded_as_cast_rounds_them() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let doubles: ArrayRef = Arc::new(Float64Array::from(vec![4.7, 5.5, -0.4]));
    let batch = RecordBatch::try_from_iter([("n", doubles)]).unwrap();
    let file = parquet(&folder.path().join("doubles.parquet"), &batch);
    let create = format!("CREATE EXTERNAL TABLE whole (n BIGINT) STORED AS PARQUET LOCATION '{}'", file.display());
    rows(&session, &create).await.unwrap();
    // Read as DataFusion does, then through the cache of columns.
    for _ in 0..3 {
        let found = rows(&session, "SELECT n FROM whole ORDER BY n").await.unwrap();
        assert_eq!(found, [["0"], ["5"], ["6"]]);
        let found =
            rows(&session, "SELECT max(n), count(*) FILTER (WHERE n = 5) FROM whole WHERE n > 0").await.unwrap();
        assert_eq!(found, [["6", "1"]]);
    }
}

/// Arrow 0.17 said in a block's metadata that it is compressed; pyarrow writes such metadata still.
#[tokio::test(flavor = "multi_thread")]
async fn blocks_that_are_compressed_as_arrow_017_did_it_are_refused() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("early.feather");
    let program = "import sys, pyarrow as pa\n\
                   batch = pa.record_batch({'a': [1, 2]})\n\
                   with pa.ipc.new_file(sys.argv[1], batch.schema) as writer:\n\
                   \x20   writer.write_batch(batch, custom_metadata={'ARROW:experimental_compression': 'LZ4'})\n";
    Python::run(program, &[file.to_str().unwrap()]);
    let error = import(&engine, &file, &[]).await.unwrap_err();
    assert!(error.code() == "bad_data" && error.to_string().contains("write_feather"), "{error}");
    let read = format!("SELECT * FROM '{}'", file.display());
    assert_eq!(rows(&admin(&engine), &read).await.unwrap_err().code(), "bad_data");
}
