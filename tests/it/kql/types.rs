//! Every column type that a stored table can have, as KQL has it: its type, its values, its nulls.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryArray, BinaryViewArray, BooleanArray, Date32Array, Date64Array, Decimal128Array, DictionaryArray,
    DurationMillisecondArray, DurationNanosecondArray, FixedSizeBinaryArray, Float32Array, Float64Array, Int8Array,
    Int16Array, Int32Array, Int64Array, LargeBinaryArray, LargeStringArray, ListArray, MapBuilder, RecordBatch,
    StringArray, StringBuilder, StringViewArray, StructArray, Time32MillisecondArray, Time32SecondArray,
    Time64MicrosecondArray, Time64NanosecondArray, TimestampMicrosecondArray, TimestampMillisecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use arrow::ipc::writer::FileWriter;

use super::{answered, cells};
use crate::sql::{admin, engine, rows};

/// Columns whose second row is null, each with its KQL type and its first value.
fn columns() -> Vec<(&'static str, ArrayRef, &'static str, &'static str)> {
    let seconds = 1_706_933_106;
    let utc: Arc<str> = Arc::from("UTC");
    let struct_fields = vec![Field::new("x", DataType::Int64, true), Field::new("y", DataType::Utf8, true)];
    let structs = StructArray::try_new(
        struct_fields.into(),
        vec![Arc::new(Int64Array::from(vec![1, 2])), Arc::new(StringArray::from(vec![Some("a \"q\""), None]))],
        Some(vec![true, false].into()),
    );
    let mut map = MapBuilder::new(None, StringBuilder::new(), arrow::array::Int64Builder::new());
    map.keys().append_value("k");
    map.values().append_value(5);
    map.append(true).unwrap();
    map.append(false).unwrap();
    let lists: ListArray =
        ListArray::from_iter_primitive::<Int64Type, _, _>(vec![Some(vec![Some(1), None, Some(3)]), None]);
    let decimal = |value: i128, precision, scale| -> ArrayRef {
        Arc::new(Decimal128Array::from(vec![Some(value), None]).with_precision_and_scale(precision, scale).unwrap())
    };
    let uuid = uuid::Uuid::parse_str("74be27de-1e4e-49d9-b579-fe0b331d3642").unwrap();
    let sixteen = vec![Some(uuid.as_bytes().to_vec()), None];
    let four = vec![Some(vec![0_u8, 255, 16, 1]), None];
    vec![
        ("b", Arc::new(BooleanArray::from(vec![Some(true), None])), "bool", "True"),
        ("i8", Arc::new(Int8Array::from(vec![Some(-128), None])), "int", "-128"),
        ("i16", Arc::new(Int16Array::from(vec![Some(-32768), None])), "int", "-32768"),
        ("i32", Arc::new(Int32Array::from(vec![Some(i32::MIN), None])), "int", "-2147483648"),
        ("i64", Arc::new(Int64Array::from(vec![Some(i64::MIN), None])), "long", "-9223372036854775808"),
        ("u8", Arc::new(UInt8Array::from(vec![Some(255), None])), "int", "255"),
        ("u16", Arc::new(UInt16Array::from(vec![Some(65535), None])), "int", "65535"),
        ("u32", Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])), "long", "4294967295"),
        ("u64", Arc::new(UInt64Array::from(vec![Some(u64::MAX), None])), "decimal", "18446744073709551615"),
        ("f32", Arc::new(Float32Array::from(vec![Some(1.5), None])), "real", "1.5"),
        ("f64", Arc::new(Float64Array::from(vec![Some(-0.25), None])), "real", "-0.25"),
        ("dec", decimal(-12345, 10, 2), "decimal", "-123.45"),
        ("dec_wide", decimal(12_345, 38, 0), "decimal", "12345"),
        ("dec_fine", decimal(1_500_000_000_000, 20, 12), "decimal", "1.5"),
        ("s", Arc::new(StringArray::from(vec![Some("a"), None])), "string", "a"),
        ("s_large", Arc::new(LargeStringArray::from(vec![Some("b"), None])), "string", "b"),
        ("s_view", Arc::new(StringViewArray::from(vec![Some("c"), None])), "string", "c"),
        ("s_dict", Arc::new(DictionaryArray::<Int32Type>::from_iter(vec![Some("d"), None])), "string", "d"),
        ("date32", Arc::new(Date32Array::from(vec![Some(-1), None])), "datetime", "1969-12-31T00:00:00.0000000Z"),
        (
            "date64",
            Arc::new(Date64Array::from(vec![Some(86_400_000), None])),
            "datetime",
            "1970-01-02T00:00:00.0000000Z",
        ),
        (
            "ts_s",
            Arc::new(TimestampSecondArray::from(vec![Some(seconds), None])),
            "datetime",
            "2024-02-03T04:05:06.0000000Z",
        ),
        (
            "ts_ms",
            Arc::new(TimestampMillisecondArray::from(vec![Some(-1), None])),
            "datetime",
            "1969-12-31T23:59:59.9990000Z",
        ),
        (
            "ts_us",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(1), None])),
            "datetime",
            "1970-01-01T00:00:00.0000010Z",
        ),
        (
            "ts_ns",
            Arc::new(TimestampNanosecondArray::from(vec![Some(-1), None])),
            "datetime",
            "1969-12-31T23:59:59.9999999Z",
        ),
        (
            "ts_utc",
            Arc::new(TimestampMicrosecondArray::from(vec![Some(0), None]).with_timezone(Arc::clone(&utc))),
            "datetime",
            "1970-01-01T00:00:00.0000000Z",
        ),
        (
            "ts_zone",
            Arc::new(TimestampMillisecondArray::from(vec![Some(0), None]).with_timezone("+02:00")),
            "datetime",
            "1970-01-01T00:00:00.0000000Z",
        ),
        (
            "dur_ms",
            Arc::new(DurationMillisecondArray::from(vec![Some(90_061_001), None])),
            "timespan",
            "1.01:01:01.0010000",
        ),
        ("dur_ns", Arc::new(DurationNanosecondArray::from(vec![Some(-100), None])), "timespan", "-00:00:00.0000001"),
        ("t32_s", Arc::new(Time32SecondArray::from(vec![Some(3_661), None])), "timespan", "01:01:01"),
        ("t32_ms", Arc::new(Time32MillisecondArray::from(vec![Some(1), None])), "timespan", "00:00:00.0010000"),
        ("t64_us", Arc::new(Time64MicrosecondArray::from(vec![Some(1), None])), "timespan", "00:00:00.0000010"),
        ("t64_ns", Arc::new(Time64NanosecondArray::from(vec![Some(100), None])), "timespan", "00:00:00.0000001"),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&[0_u8, 255, 16][..]), None])), "string", "AP8Q"),
        ("bin_large", Arc::new(LargeBinaryArray::from(vec![Some(&[0_u8, 255, 16][..]), None])), "string", "AP8Q"),
        ("bin_view", Arc::new(BinaryViewArray::from(vec![Some(&[0_u8, 255, 16][..]), None])), "string", "AP8Q"),
        (
            "bin_four",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(four.into_iter(), 4).unwrap()),
            "string",
            "AP8QAQ",
        ),
        (
            "uuid",
            Arc::new(FixedSizeBinaryArray::try_from_sparse_iter_with_size(sixteen.into_iter(), 16).unwrap()),
            "guid",
            "74be27de-1e4e-49d9-b579-fe0b331d3642",
        ),
        ("list", Arc::new(lists), "dynamic", "[1,null,3]"),
        ("struct", Arc::new(structs.unwrap()), "dynamic", r#"{"x":1,"y":"a \"q\""}"#),
        ("map", Arc::new(map.finish()), "dynamic", r#"{"k":5}"#),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stored_type_has_its_kql_type() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for (name, array, kql_type, text) in columns() {
        let table = format!("t_{name}");
        let batch = RecordBatch::try_from_iter([(name, array)]).unwrap();
        let path = folder.path().join(format!("{table}.arrow"));
        let mut writer = FileWriter::try_new(std::fs::File::create(&path).unwrap(), &batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let external = format!("CREATE EXTERNAL TABLE {table} STORED AS ARROW LOCATION '{}'", path.display());
        rows(&session, &external).await.unwrap_or_else(|error| panic!("{external}: {error}"));
        let null = if kql_type == "string" { "" } else { "null" };
        let expected = (vec![format!("{name}:{kql_type}")], vec![vec![text.to_owned()], vec![null.to_owned()]]);
        match answered(&session, &table).await {
            Ok(answer) => assert_eq!(answer, expected, "{name}"),
            Err(error) => panic!("{name}: {}: {error}", error.code()),
        }
        // As everything else sees it: through Arrow's types, and inside filters.
        session.kql(&table).await.unwrap().collect().await.unwrap();
        let count = match kql_type {
            "string" => format!("{table} | where isempty({name}) | count"),
            _ => format!("{table} | where isnull({name}) | count"),
        };
        assert_eq!(cells(&session, &count).await, [["1"]], "{name}");
        if kql_type != "dynamic" {
            let equal = format!("let known = toscalar({table} | take 1); {table} | where {name} == known | count");
            assert_eq!(cells(&session, &equal).await, [["1"]], "{name}");
        }
        let managed = format!("CREATE TABLE m_{name} AS SELECT * FROM {table}");
        // Not every type can be stored; what can comes back the same.
        if rows(&session, &managed).await.is_ok() {
            let kept = cells(&session, &format!("m_{name}")).await;
            assert_eq!(kept.len(), 2, "{name}");
            // Bytes of a fixed number are stored as any bytes.
            let null = if name == "uuid" { "" } else { null };
            assert_eq!(kept[1][0], null, "{name}");
        }
    }
}

/// Paths work on whatever is nested, and times that KQL does not have are null.
#[tokio::test(flavor = "multi_thread")]
async fn nested_values_are_dynamic() {
    let (_folder, engine) = engine().await;
    let session = admin(&engine);
    rows(
        &session,
        "CREATE TABLE nested AS SELECT [1, 2, 3] AS l, named_struct('a', named_struct('b', 'x')) AS s, \
         [named_struct('k', 1), named_struct('k', 2)] AS ls",
    )
    .await
    .unwrap();
    for (kql, expected) in [
        ("nested | project l[0], l[-1], array_length(l)", vec![vec!["1", "3", "3"]]),
        ("nested | project tostring(s.a.b), isnull(s.nothing)", vec![vec!["x", "True"]]),
        ("nested | mv-expand l to typeof(long) | summarize sum(l)", vec![vec!["6"]]),
        ("nested | mv-expand ls | project toint(ls.k)", vec![vec!["1"], vec!["2"]]),
        (
            "nested | getschema | project ColumnName, ColumnType",
            vec![vec!["l", "dynamic"], vec!["s", "dynamic"], vec!["ls", "dynamic"]],
        ),
    ] {
        assert_eq!(cells(&session, kql).await, expected, "{kql}");
    }
    rows(
        &session,
        "CREATE TABLE timed AS SELECT [TIMESTAMP '2024-01-02 03:04:05'] AS l, \
         {'d': DATE '2024-01-02', 'f': 'NaN'::DOUBLE, 'b': '\\xAA\\xBB'::BLOB} AS s",
    )
    .await
    .unwrap();
    let kql =
        "timed | project tostring(s.d), tostring(s.f), tostring(s.b), tostring(l), todatetime(l[0]) - todatetime(s.d)";
    let moment = r#"["2024-01-02T03:04:05.0000000Z"]"#;
    assert_eq!(cells(&session, kql).await, [["2024-01-02T00:00:00.0000000Z", "NaN", "qrs=", moment, "03:04:05"]]);
    rows(&session, "CREATE TABLE far AS SELECT to_timestamp_seconds(253402300800) AS t").await.unwrap();
    assert_eq!(cells(&session, "far").await, [["null"]]);
}
