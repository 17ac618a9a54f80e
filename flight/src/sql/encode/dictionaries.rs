//! What one stream's messages share: which dictionaries its reader has, and arrow-ipc's encoder for the few types that
//! [`super::message`] does not encode (unions, nested dictionaries).

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::concat_batches;
use arrow_flight::FlightData;
use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};
use arrow_schema::{ArrowError, DataType, Schema};

use super::message::{EncodedMessage, can_encode, encode_batches, encode_dictionary};

/// Encodes the batches of one stream, in order.
pub(super) struct BatchEncoder {
    /// Dictionaries at the top level; `None` where arrow-ipc encodes everything.
    dictionaries: Option<Vec<SentDictionary>>,
    generator: IpcDataGenerator,
    tracker: DictionaryTracker,
    options: IpcWriteOptions,
    compression: CompressionContext,
}

struct SentDictionary {
    column: usize,
    id: i64,
    /// The values that the reader has.
    values: Option<ArrayRef>,
}

impl BatchEncoder {
    /// Returns the encoder of a stream and the stream's first message, its schema.
    pub(super) fn with_schema(schema: &Schema) -> (Self, EncodedMessage) {
        let (generator, options) = (IpcDataGenerator::default(), IpcWriteOptions::default());
        let mut tracker = DictionaryTracker::new(false);
        let message = generator.schema_to_bytes_with_dictionary_tracker(schema, &mut tracker, &options);
        let fields = schema.fields().iter().enumerate();
        let dictionaries = schema.fields().iter().all(|field| can_encode(field.data_type())).then(|| {
            let columns = fields.filter(|(_, field)| matches!(field.data_type(), DataType::Dictionary(_, _)));
            let ids = tracker.dict_id().iter();
            columns.zip(ids).map(|((column, _), id)| SentDictionary { column, id: *id, values: None }).collect()
        });
        let compression = CompressionContext::default();
        (Self { dictionaries, generator, tracker, options, compression }, FlightData::from(message).into())
    }

    /// Returns whether two batches can be in one message: a message has one dictionary a column.
    pub(super) fn can_join(&self, one: &RecordBatch, other: &RecordBatch) -> bool {
        self.dictionaries.iter().flatten().all(|sent| {
            let values = |batch: &RecordBatch| batch.column(sent.column).as_any_dictionary().values().to_data();
            values(one).ptr_eq(&values(other))
        })
    }

    /// Returns the messages of `batches`: the dictionaries that the reader does not have, then the rows.
    pub(super) fn messages(&mut self, batches: &[RecordBatch]) -> Result<Vec<EncodedMessage>, ArrowError> {
        let Some(first) = batches.first() else { return Ok(Vec::new()) };
        let mut messages = Vec::new();
        let Some(dictionaries) = &mut self.dictionaries else {
            let batch = concat_batches(first.schema_ref(), batches)?;
            let (dictionaries, rows) =
                self.generator.encode(&batch, &mut self.tracker, &self.options, &mut self.compression)?;
            return Ok(dictionaries.into_iter().chain([rows]).map(|data| FlightData::from(data).into()).collect());
        };
        for sent in dictionaries {
            let values = first.column(sent.column).as_any_dictionary().values();
            let is_known = sent
                .values
                .as_ref()
                .is_some_and(|known| known.to_data().ptr_eq(&values.to_data()) || known.as_ref() == values.as_ref());
            if !is_known {
                messages.push(encode_dictionary(sent.id, values)?);
                sent.values = Some(ArrayRef::clone(values));
            }
        }
        messages.push(encode_batches(batches)?);
        Ok(messages)
    }
}
