//! What is sent is what arrow-ipc writes, in messages of the right size.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, AsArray, BooleanArray, DictionaryArray, FixedSizeBinaryArray, FixedSizeListArray, Int64Array, ListArray,
    MapBuilder, NullArray, StringArray, StringBuilder, StringViewArray, StructArray,
};
use arrow::compute::concat_batches;
use arrow::datatypes::{Float32Type, Int8Type, Int32Type};
use arrow_flight::FlightData;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{DataType, Field};
use futures::{StreamExt, TryStreamExt, stream};

use super::message::encode_batches;
use super::*;

#[test]
fn a_message_is_what_ipc_writes_for_every_slice() {
    let batch = every_kind(1_000);
    for (start, rows) in [(0, 1), (0, 1_000), (1, 7), (8, 64), (17, 64), (500, 500), (999, 1), (5, 0)] {
        let slice = batch.slice(start, rows);
        assert_eq!(ours(std::slice::from_ref(&slice)), by_ipc(&slice), "{start}+{rows}");
    }
}

#[test]
fn several_batches_are_what_ipc_writes_for_them_together() {
    let (one, other) = (every_kind(300), every_kind(1_000));
    for parts in [[0, 300], [0, 7], [3, 64], [299, 1]] {
        let batches = [one.slice(parts[0], parts[1]), other.slice(100, 50), one.slice(0, 0), other.slice(0, 1)];
        let whole = concat_batches(&one.schema(), &batches).unwrap();
        assert_eq!(ours(&batches), by_ipc(&whole), "{parts:?}");
    }
}

#[test]
fn the_size_is_known_before_the_message_is_made() {
    let batch = every_kind(1_000);
    let header = header_bytes(&batch.schema());
    for (start, rows) in [(0, 1), (0, 1_000), (1, 7), (17, 64), (500, 500), (999, 1)] {
        let estimate = batch_body_bytes(&batch, start, rows);
        let message = ours(&[batch.slice(start, rows)]);
        let length = message.data_body.len();
        assert!(length <= estimate && estimate <= length + 8 * 1_024, "{start}+{rows}: {length}, not {estimate}");
        assert!(message.data_header.len() <= header, "{start}+{rows}");
    }
}

#[test]
fn rows_are_cut_where_the_bytes_are() {
    let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|row| "x".repeat(row * 100))));
    let batch = RecordBatch::try_from_iter([("s", texts)]).unwrap();
    let mut start = 0;
    while start < batch.num_rows() {
        let rows = rows_that_fit(&batch, start, 8_192);
        assert!(rows == 1 || batch_body_bytes(&batch, start, rows) <= 8_192);
        let more = rows + 1;
        assert!(start + more > batch.num_rows() || batch_body_bytes(&batch, start, more) > 8_192);
        start += rows;
    }
}

#[test]
fn a_slice_of_a_large_batch_stays_whole() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000_000));
    let slice = RecordBatch::try_from_iter([("n", numbers)]).unwrap().slice(400_000, 1_000);
    assert_eq!(rows_that_fit(&slice, 0, 16_384), 1_000);
}

#[test]
fn batches_that_fit_are_not_cut() {
    // Two of the first are a message exactly; three of the second leave room for a part of another.
    for (rows_of_batch, together) in [(16_384, 2), (10_000, 3)] {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows_of_batch));
        let columns = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|name| (name, Arc::clone(&numbers)));
        let batch = RecordBatch::try_from_iter(columns).unwrap();
        let mut pending = PendingRows::new(&batch.schema());
        let mut messages: Vec<Vec<RecordBatch>> =
            (0..2 * together).flat_map(|_| pending.add(batch.clone(), |_, _| true)).collect();
        messages.push(pending.take());
        assert_eq!(messages, [vec![batch.clone(); together], vec![batch; together]], "{rows_of_batch}");
    }
}

#[test]
fn a_cut_is_where_bitmaps_have_whole_bytes() {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000_000));
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 1_000_000]));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("b", flags)]).unwrap();
    let mut pending = PendingRows::new(&batch.schema());
    let messages = pending.add(batch.clone(), |_, _| true);
    assert!(messages.len() > 2);
    for message in &messages {
        assert!(message.iter().all(|part| part.num_rows().is_multiple_of(CUT_ROWS)));
    }
    let rows: usize = messages.iter().flatten().chain(&pending.take()).map(RecordBatch::num_rows).sum();
    assert_eq!(rows, batch.num_rows());
}

#[tokio::test]
async fn small_batches_become_large_messages_and_large_ones_are_cut() {
    for rows_of_batch in [100, 8_192, 600_000] {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows_of_batch));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let count = 1_200_000 / rows_of_batch;
        let sent = messages(vec![batch.clone(); count as usize]).await;
        let sizes: Vec<usize> = sent.iter().skip(1).map(|message| message.data_body.len()).collect();
        assert!(sizes.iter().all(|size| *size <= MAX_MESSAGE_BYTES), "{sizes:?}");
        assert!(sizes.len() <= 6, "{rows_of_batch} rows: {sizes:?}");
        assert_eq!(rows_of(sent).await, concat_batches(&batch.schema(), &vec![batch.clone(); count as usize]).unwrap());
    }
}

#[tokio::test]
async fn rows_are_not_kept_until_more_come() {
    let batch = every_kind(10);
    let schema = batch.schema();
    let endless = stream::iter([Ok(batch)]).chain(stream::pending());
    let sent: Vec<FlightData> = flight_stream(schema, endless).take(2).try_collect().await.unwrap();
    assert_eq!(rows_of(sent).await.num_rows(), 10);
}

#[tokio::test]
async fn a_failure_comes_after_the_rows_before_it() {
    let batch = every_kind(10);
    let schema = batch.schema();
    let failing = stream::iter([Ok(batch), Err(Status::internal("broken"))]);
    let sent: Vec<Result<FlightData, Status>> = flight_stream(schema, failing).collect().await;
    assert_eq!(sent.len(), 3);
    assert!(sent[1].is_ok());
    assert_eq!(sent[2].as_ref().unwrap_err().message(), "broken");
}

#[tokio::test]
async fn views_are_sent_with_what_their_rows_use() {
    let texts = StringViewArray::from_iter((0..50_000).map(|row| (row % 7 > 0).then(|| "long".repeat(row % 20))));
    let texts: ArrayRef = Arc::new(texts);
    let batch = RecordBatch::try_from_iter([("v", texts)]).unwrap();
    let parts = [batch.slice(10, 3), batch.slice(20_000, 5_000), batch.clone(), batch.slice(7, 1)];
    let sent = messages(parts.to_vec()).await;
    assert!(sent[1].data_body.len() <= MAX_MESSAGE_BYTES);
    assert_eq!(rows_of(sent).await, concat_batches(&batch.schema(), &parts).unwrap());
    let few = messages(vec![batch.slice(49_000, 5)]).await;
    assert!(few[1].data_body.len() < 16 << 10, "{}", few[1].data_body.len());
}

#[tokio::test]
async fn what_a_part_of_a_views_column_refers_to_is_not_copied() {
    let word =
        |row: usize| if row.is_multiple_of(9) { "short".to_owned() } else { format!("a text with the number {row}") };
    let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values((0..20_000).map(word)));
    let batch = RecordBatch::try_from_iter([("v", texts)]).unwrap();
    let parts = [batch.slice(5_000, 5_000), batch.slice(10_000, 5_000), batch.slice(3, 2)];
    let data = batch.column(0).as_string_view().data_buffers();
    let is_shared = |piece: &[u8]| data.iter().any(|buffer| buffer.as_slice().as_ptr_range().contains(&piece.as_ptr()));
    let message = encode_batches(&parts).unwrap();
    let shared: usize = message.body.iter().filter(|piece| is_shared(piece)).map(|piece| piece.len()).sum();
    let used: usize = (5_000..15_000).map(word).map(|text| text.len()).filter(|length| *length > 12).sum();
    assert!(shared + (32 << 10) > used && shared <= used, "{shared} of {used}");
    let sent = messages(parts.to_vec()).await;
    assert_eq!(rows_of(sent).await, concat_batches(&batch.schema(), &parts).unwrap());
}

#[test]
fn values_far_apart_are_copied() {
    let texts: ArrayRef =
        Arc::new(StringViewArray::from_iter_values((0..20_000).map(|row| format!("a text with the number {row}"))));
    let rows = arrow::array::UInt64Array::from_iter_values((0..20_000).step_by(10));
    let few = arrow::compute::take(&texts, &rows, None).unwrap();
    let message = encode_batches(&[RecordBatch::try_from_iter([("v", few)]).unwrap()]).unwrap();
    assert!(message.body_bytes < 2_000 * (16 + 28) + 1_024, "{}", message.body_bytes);
}

#[tokio::test]
async fn a_dictionary_is_sent_once_and_again_when_it_changes() {
    let keys = |values: &[&str]| -> RecordBatch {
        let column: ArrayRef = Arc::new(values.iter().copied().collect::<DictionaryArray<Int8Type>>());
        RecordBatch::try_from_iter([("d", column)]).unwrap()
    };
    let (one, same, other) = (keys(&["a", "b", "a"]), keys(&["a", "b", "b"]), keys(&["c", "a"]));
    let sent = messages(vec![one.clone(), one.slice(1, 2), same.clone(), other.clone()]).await;
    let kinds: Vec<_> =
        sent.iter().map(|message| arrow_ipc::root_as_message(&message.data_header).unwrap().header_type()).collect();
    let (schema, dictionary, rows) = (
        arrow_ipc::MessageHeader::Schema,
        arrow_ipc::MessageHeader::DictionaryBatch,
        arrow_ipc::MessageHeader::RecordBatch,
    );
    assert_eq!(kinds, [schema, dictionary, rows, rows, dictionary, rows]);
    let read: Vec<String> = texts(sent).await;
    assert_eq!(read, ["a", "b", "a", "b", "a", "a", "b", "b", "c", "a"]);
}

/// The strings of the first column, whatever its type.
async fn texts(sent: Vec<FlightData>) -> Vec<String> {
    let batches = decoded(sent).await;
    let columns = batches.iter().map(|batch| arrow::compute::cast(batch.column(0), &DataType::Utf8).unwrap());
    let columns: Vec<ArrayRef> = columns.collect();
    columns.iter().flat_map(|column| column.as_string::<i32>().iter().flatten().map(str::to_owned)).collect()
}

async fn messages(batches: Vec<RecordBatch>) -> Vec<FlightData> {
    let schema = batches[0].schema();
    flight_stream(schema, stream::iter(batches.into_iter().map(Ok))).try_collect().await.unwrap()
}

async fn decoded(sent: Vec<FlightData>) -> Vec<RecordBatch> {
    let read = FlightRecordBatchStream::new_from_flight_data(stream::iter(sent.into_iter().map(Ok)));
    read.try_collect().await.unwrap()
}

async fn rows_of(sent: Vec<FlightData>) -> RecordBatch {
    let batches = decoded(sent).await;
    concat_batches(&batches[0].schema(), &batches).unwrap()
}

fn ours(batches: &[RecordBatch]) -> FlightData {
    FlightData::from(encode_batches(batches).unwrap())
}

fn by_ipc(batch: &RecordBatch) -> FlightData {
    let (generator, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
    let mut tracker = DictionaryTracker::new(false);
    FlightData::from(generator.encode(batch, &mut tracker, &options, &mut CompressionContext::default()).unwrap().1)
}

fn every_kind(rows: usize) -> RecordBatch {
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 3 > 0).then_some(row as i64))));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter((0..rows).map(|row| Some(row % 2 == 0))));
    let texts: ArrayRef =
        Arc::new(StringArray::from_iter((0..rows).map(|row| (row % 5 > 0).then(|| "é".repeat(row % 40)))));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(
        (0..rows).map(|row| (row % 4 > 0).then(|| vec![Some(row as i32); row % 9])),
    ));
    let vectors: ArrayRef = Arc::new(FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..rows).map(|row| Some(vec![Some(row as f32); 6])),
        6,
    ));
    let mut maps = MapBuilder::new(None, StringBuilder::new(), StringBuilder::new());
    for row in 0..rows {
        for key in 0..row % 3 {
            maps.keys().append_value(format!("k{key}"));
            maps.values().append_value("v".repeat(row % 11));
        }
        maps.append(true).unwrap();
    }
    let maps: ArrayRef = Arc::new(maps.finish());
    let structs: ArrayRef = Arc::new(StructArray::from(vec![
        (Arc::new(Field::new("n", DataType::Int64, true)), Arc::clone(&numbers)),
        (Arc::new(Field::new("s", DataType::Utf8, true)), Arc::clone(&texts)),
    ]));
    let hashes: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter((0..rows).map(|row| [row as u8; 5])).unwrap());
    let nothing: ArrayRef = Arc::new(NullArray::new(rows));
    let columns = [
        ("numbers", numbers, true),
        ("flags", flags, true),
        ("texts", texts, true),
        ("lists", lists, true),
        ("vectors", vectors, true),
        ("maps", maps, true),
        ("structs", structs, true),
        ("hashes", hashes, true),
        ("nothing", nothing, true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}
