//! Encodes record batches as Flight messages: split by the bytes that they take on the wire, off the connection's task,
//! and at most a few messages ahead of the client.
//!
//! Invariants: a message is at most [`MAX_MESSAGE_BYTES`] unless one row alone is larger; dropping the stream
//! drops the batches' stream and with it the query; a failure is always the stream's last item, never a clean end.

use std::pin::pin;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow_flight::{FlightData, SchemaAsIpc};
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Field, SchemaRef};
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tonic::Status;

use super::wire::to_wire;
use crate::error::ApiError;

/// tonic and Go refuse messages over 4 MiB by default, ADBC over 16 MiB; half the smallest leaves room for framing.
pub(super) const MAX_MESSAGE_BYTES: usize = 2 << 20;

/// Messages made ahead of the client: enough to overlap encoding with sending, few enough to bound memory.
const MESSAGES_AHEAD: usize = 3;

/// Returns the messages of one result: its schema, then its batches in order. `schema` is a wire schema.
pub(super) fn flight_stream<S>(schema: SchemaRef, batches: S) -> BoxStream<'static, Result<FlightData, Status>>
where
    S: Stream<Item = Result<RecordBatch, Status>> + Send + 'static,
{
    let (sender, mut messages) = mpsc::channel(MESSAGES_AHEAD);
    let mut encoding = JoinSet::new();
    encoding.spawn(async move {
        if let Err(failure) = encode(schema, batches, &sender).await {
            // A client that is gone needs no error.
            let _ = sender.send(Err(failure)).await;
        }
    });
    async_stream::stream! {
        while let Some(message) = messages.recv().await {
            yield message;
        }
        // The channel also closes when the task panics, which must not look like a complete result.
        if let Some(Err(error)) = encoding.join_next().await {
            yield Err(ApiError::internal(error).into());
        }
    }
    .boxed()
}

async fn encode<S>(
    schema: SchemaRef,
    batches: S,
    sender: &mpsc::Sender<Result<FlightData, Status>>,
) -> Result<(), Status>
where
    S: Stream<Item = Result<RecordBatch, Status>>,
{
    let mut encoder = Encoder::default();
    if sender.send(Ok(encoder.schema(&schema))).await.is_err() {
        return Ok(());
    }
    let header_bytes = header_bytes(&schema);
    let mut batches = pin!(batches);
    while let Some(batch) = batches.next().await {
        let batch = to_wire(batch?, &schema).map_err(ApiError::internal)?;
        let mut start = 0;
        while start < batch.num_rows() {
            let rows = rows_that_fit(&batch, start, MAX_MESSAGE_BYTES.saturating_sub(header_bytes));
            let messages = encoder.batch(&batch.slice(start, rows)).map_err(ApiError::internal)?;
            for message in messages {
                // A closed channel means that the client is gone: stop, which drops the query.
                if sender.send(Ok(message)).await.is_err() {
                    return Ok(());
                }
            }
            start += rows;
        }
    }
    Ok(())
}

/// Arrow IPC's state of one stream.
struct Encoder {
    generator: IpcDataGenerator,
    dictionaries: DictionaryTracker,
    options: IpcWriteOptions,
    compression: CompressionContext,
}

impl Default for Encoder {
    fn default() -> Self {
        Self {
            generator: IpcDataGenerator::default(),
            dictionaries: DictionaryTracker::new(false),
            options: IpcWriteOptions::default(),
            compression: CompressionContext::default(),
        }
    }
}

impl Encoder {
    fn schema(&self, schema: &SchemaRef) -> FlightData {
        SchemaAsIpc::new(schema, &self.options).into()
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<impl Iterator<Item = FlightData> + use<>, ArrowError> {
        let (dictionaries, batch) =
            self.generator.encode(batch, &mut self.dictionaries, &self.options, &mut self.compression)?;
        Ok(dictionaries.into_iter().chain([batch]).map(FlightData::from))
    }
}

/// Returns how many rows from `start` take at most `limit` body bytes; at least one.
fn rows_that_fit(batch: &RecordBatch, start: usize, limit: usize) -> usize {
    let remaining = batch.num_rows() - start;
    let fits = |rows: usize| batch_body_bytes(batch, start, rows) <= limit;
    if fits(remaining) {
        return remaining;
    }
    // More rows never take fewer bytes, so a binary search finds the boundary.
    let (mut fitting, mut too_many) = (1, remaining);
    while too_many - fitting > 1 {
        let middle = fitting + (too_many - fitting) / 2;
        match fits(middle) {
            true => fitting = middle,
            false => too_many = middle,
        }
    }
    fitting
}

fn batch_body_bytes(batch: &RecordBatch, start: usize, rows: usize) -> usize {
    batch.columns().iter().map(|column| body_bytes(column.as_ref(), start, rows)).sum()
}

/// Returns the bytes that `rows` rows of `array` from `start` take in a message body, as arrow-ipc writes slices: validity
/// (if there are nulls), offsets, and only the values that the slice refers to, each buffer padded to 64 bytes.
fn body_bytes(array: &dyn Array, start: usize, rows: usize) -> usize {
    let validity = if array.null_count() > 0 { padded(rows.div_ceil(8)) } else { 0 };
    validity
        + match array.data_type() {
            DataType::Null => 0,
            DataType::Boolean => padded(rows.div_ceil(8)),
            DataType::FixedSizeBinary(width) => padded(rows * usize::try_from(*width).unwrap_or(0)),
            DataType::Utf8 => {
                let offsets = array.as_string::<i32>().value_offsets();
                padded((rows + 1) * 4) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::Binary => {
                let offsets = array.as_binary::<i32>().value_offsets();
                padded((rows + 1) * 4) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::LargeUtf8 => {
                let offsets = array.as_string::<i64>().value_offsets();
                padded((rows + 1) * 8) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::LargeBinary => {
                let offsets = array.as_binary::<i64>().value_offsets();
                padded((rows + 1) * 8) + padded((offsets[start + rows] - offsets[start]) as usize)
            }
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.value_offsets();
                let (from, to) = (offsets[start] as usize, offsets[start + rows] as usize);
                padded((rows + 1) * 4) + body_bytes(list.values().as_ref(), from, to - from)
            }
            DataType::Map(_, _) => {
                let map = array.as_map();
                let offsets = map.value_offsets();
                let (from, to) = (offsets[start] as usize, offsets[start + rows] as usize);
                padded((rows + 1) * 4) + body_bytes(map.entries(), from, to - from)
            }
            DataType::FixedSizeList(_, size) => {
                let size = usize::try_from(*size).unwrap_or(0);
                body_bytes(array.as_fixed_size_list().values().as_ref(), start * size, rows * size)
            }
            DataType::Struct(_) => {
                array.as_struct().columns().iter().map(|column| body_bytes(column.as_ref(), start, rows)).sum()
            }
            other => match other.primitive_width() {
                Some(width) => padded(rows * width),
                // Unions and other types that arrow-ipc writes whole whatever the slice.
                None => array.get_array_memory_size(),
            },
        }
}

fn padded(bytes: usize) -> usize {
    bytes.next_multiple_of(64)
}

/// Returns an upper bound of a batch message's flatbuffer: 16 bytes a node and a buffer, at most three buffers a field.
fn header_bytes(schema: &SchemaRef) -> usize {
    fn fields(field: &Field) -> usize {
        1 + match field.data_type() {
            DataType::List(item) | DataType::FixedSizeList(item, _) | DataType::Map(item, _) => fields(item),
            DataType::Struct(children) => children.iter().map(|child| fields(child)).sum(),
            DataType::Union(children, _) => children.iter().map(|(_, child)| fields(child)).sum(),
            _ => 0,
        }
    }
    256 + 64 * schema.fields().iter().map(|field| fields(field)).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, FixedSizeListArray, Int64Array, ListArray, MapBuilder, StringArray, StringBuilder,
        StructArray,
    };
    use arrow::datatypes::{Float32Type, Int32Type};

    use super::*;

    #[test]
    fn estimate_is_what_ipc_writes_for_every_slice() {
        let batch = every_kind(1_000);
        let header = header_bytes(&batch.schema());
        for (start, rows) in [(0, 1), (0, 1_000), (1, 7), (17, 64), (500, 500), (999, 1)] {
            let estimate = batch_body_bytes(&batch, start, rows);
            let message = Encoder::default().batch(&batch.slice(start, rows)).unwrap().last().unwrap();
            assert!(message.data_body.len() <= estimate, "{start}+{rows}: {} > {estimate}", message.data_body.len());
            assert!(estimate <= message.data_body.len() + 8 * 1_024, "{start}+{rows}: {estimate} is far off");
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

    fn every_kind(rows: usize) -> RecordBatch {
        let numbers: ArrayRef =
            Arc::new(Int64Array::from_iter((0..rows).map(|row| (row % 3 > 0).then_some(row as i64))));
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
        RecordBatch::try_from_iter([
            ("numbers", numbers),
            ("flags", flags),
            ("texts", texts),
            ("lists", lists),
            ("vectors", vectors),
            ("maps", maps),
            ("structs", structs),
        ])
        .unwrap()
    }
}
