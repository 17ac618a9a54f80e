//! Messages of a DoPut before arrow-ipc decodes them. It believes what a message says of its buffers: it panics where they
//! do not lie in the message, and allocates as many bytes as a compressed buffer claims to become.
//!
//! Invariant: a message that passes takes at most as many bytes, decompressed, as one may have that is not compressed.

use std::collections::HashMap;
use std::io::{self, Read};

use arrow_flight::FlightData;
use arrow_ipc::{Buffer, CompressionType, FieldNode, RecordBatch, root_as_message};

/// The bytes before a compressed buffer that say how long it becomes.
const LENGTH_PREFIX: usize = 8;
/// What they say of a buffer that is not compressed.
const NOT_COMPRESSED: i64 = -1;
/// The bytes that the dictionaries of one upload may hold together.
const MAX_DICTIONARY_BYTES: usize = 256 << 20;

/// Checks the messages of one upload, in order.
pub(super) struct MessageCheck {
    most_bytes: usize,
    /// The bytes of each dictionary that the decoder keeps.
    dictionaries: HashMap<i64, usize>,
}

impl MessageCheck {
    /// Returns the check of an upload whose messages may have `most_bytes`.
    pub(super) fn new(most_bytes: usize) -> Self {
        Self { most_bytes, dictionaries: HashMap::new() }
    }

    /// Checks the next message. Errors: what is wrong with it.
    pub(super) fn check(&mut self, data: &FlightData) -> Result<(), String> {
        // What is no message at all is the decoder's to refuse.
        let Ok(message) = root_as_message(&data.data_header) else { return Ok(()) };
        if let Some(batch) = message.header_as_record_batch() {
            self.check_batch(&batch, &data.data_body)?;
        }
        if let Some(dictionary) = message.header_as_dictionary_batch()
            && let Some(batch) = dictionary.data()
        {
            let bytes = self.check_batch(&batch, &data.data_body)?;
            let kept = self.dictionaries.entry(dictionary.id()).or_default();
            *kept = if dictionary.isDelta() { kept.saturating_add(bytes) } else { bytes };
            let all = self.dictionaries.values().fold(0_usize, |all, bytes| all.saturating_add(*bytes));
            if all > MAX_DICTIONARY_BYTES {
                let limit = MAX_DICTIONARY_BYTES >> 20;
                return Err(format!("their dictionaries take more than {limit} MiB"));
            }
        }
        Ok(())
    }

    /// Returns the bytes of a batch, decompressed.
    fn check_batch(&self, batch: &RecordBatch<'_>, body: &[u8]) -> Result<usize, String> {
        let nodes = batch.nodes();
        let negative = |node: &FieldNode| node.length() < 0 || node.null_count() < 0;
        if batch.length() < 0 || nodes.iter().flatten().any(negative) {
            return Err("a batch has a negative number of rows".to_owned());
        }
        let codec = batch.compression().map(|compression| compression.codec());
        let mut bytes = 0_usize;
        for buffer in batch.buffers().iter().flatten() {
            let values = buffer_values(buffer, body).ok_or("a buffer does not lie in its message")?;
            bytes = bytes.saturating_add(match codec {
                Some(codec) if !values.is_empty() => self.check_compressed(codec, values)?,
                _ => values.len(),
            });
            // Buffers may lie on one another, and each is decompressed.
            if bytes > self.most_bytes {
                return Err(self.too_large());
            }
        }
        Ok(bytes)
    }

    /// Returns the bytes that a compressed buffer becomes.
    fn check_compressed(&self, codec: CompressionType, values: &[u8]) -> Result<usize, String> {
        let (length, compressed) =
            values.split_first_chunk::<LENGTH_PREFIX>().ok_or("a compressed buffer does not say how long it is")?;
        let length = match i64::from_le_bytes(*length) {
            NOT_COMPRESSED => return Ok(compressed.len()),
            length => usize::try_from(length).map_err(|_| "a compressed buffer has a negative length".to_owned())?,
        };
        if length > self.most_bytes {
            return Err(self.too_large());
        }
        // arrow-ipc decompresses LZ4 to its end, wherever that is; with ZSTD it stops at the length.
        if length > 0 && codec == CompressionType::LZ4_FRAME {
            let most = length as u64 + 1;
            let decoder = lz4_flex::frame::FrameDecoder::new(compressed);
            let read = io::copy(&mut decoder.take(most), &mut io::sink());
            if read.map_err(|error| format!("a buffer is not LZ4: {error}"))? != length as u64 {
                return Err("a compressed buffer has another length than it says".to_owned());
            }
        }
        Ok(length)
    }

    fn too_large(&self) -> String {
        format!("a message takes more than {} MiB", self.most_bytes >> 20)
    }
}

/// Returns a buffer's bytes; `None` where it does not lie in the body.
fn buffer_values<'a>(buffer: &Buffer, body: &'a [u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(buffer.offset()).ok()?;
    let length = usize::try_from(buffer.length()).ok()?;
    body.get(start..start.checked_add(length)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int64Array};
    use arrow::datatypes::Int32Type;
    use arrow_ipc::writer::{CompressionContext, DictionaryTracker, IpcDataGenerator, IpcWriteOptions};

    use super::*;

    const MOST: usize = 1 << 20;

    /// Returns the dictionary and the rows of a column as messages.
    fn messages(column: ArrayRef, compression: Option<CompressionType>) -> Vec<FlightData> {
        let batch = arrow::array::RecordBatch::try_from_iter([("a", column)]).unwrap();
        let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
        let generator = IpcDataGenerator::default();
        let mut tracker = DictionaryTracker::new(false);
        generator.schema_to_bytes_with_dictionary_tracker(batch.schema_ref(), &mut tracker, &options);
        let (dictionaries, rows) =
            generator.encode(&batch, &mut tracker, &options, &mut CompressionContext::default()).unwrap();
        dictionaries.into_iter().chain([rows]).map(FlightData::from).collect()
    }

    fn zeros(rows: usize) -> ArrayRef {
        Arc::new(Int64Array::from(vec![0; rows]))
    }

    #[test]
    fn what_arrow_writes_passes() {
        let words: DictionaryArray<Int32Type> = ["a", "b", "a"].into_iter().collect();
        for column in [zeros(0), zeros(1_000), Arc::new(words)] {
            for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
                let mut check = MessageCheck::new(MOST);
                for message in messages(Arc::clone(&column), compression) {
                    assert_eq!(check.check(&message), Ok(()), "{compression:?}");
                }
            }
        }
    }

    #[test]
    fn a_buffer_lies_in_its_message() {
        let mut cut = messages(zeros(1_000), None).remove(0);
        cut.data_body = cut.data_body.slice(..100);
        assert!(MessageCheck::new(MOST).check(&cut).unwrap_err().contains("does not lie"));
    }

    #[test]
    fn a_message_is_no_larger_than_it_may_be() {
        for compression in [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)] {
            let message = messages(zeros(MOST), compression).remove(0);
            assert!(
                MessageCheck::new(MOST).check(&message).unwrap_err().contains("more than 1 MiB"),
                "{compression:?}"
            );
        }
    }

    #[test]
    fn a_compressed_buffer_says_how_long_it_becomes() {
        let message = messages(zeros(10_000), Some(CompressionType::LZ4_FRAME)).remove(0);
        let claims = 80_000_i64.to_le_bytes();
        let at = message.data_body.windows(LENGTH_PREFIX).position(|bytes| bytes == claims).unwrap();
        for (claim, error) in [(16_i64, "another length"), (1 << 45, "more than 1 MiB"), (-7, "negative")] {
            let mut body = message.data_body.to_vec();
            body[at..at + LENGTH_PREFIX].copy_from_slice(&claim.to_le_bytes());
            let lying = FlightData { data_body: body.into(), ..message.clone() };
            assert!(MessageCheck::new(MOST).check(&lying).unwrap_err().contains(error), "{claim}");
        }
    }

    #[test]
    fn dictionaries_are_counted_together() {
        let words: DictionaryArray<Int32Type> = ["x".repeat(MOST / 2).as_str()].into_iter().collect();
        let dictionary = messages(Arc::new(words), None).remove(0);
        let mut check = MessageCheck::new(MOST);
        for _ in 0..2_000 {
            assert_eq!(check.check(&dictionary), Ok(()), "one that is replaced is kept once");
        }
        check.dictionaries.insert(77, MAX_DICTIONARY_BYTES);
        assert!(check.check(&dictionary).unwrap_err().contains("256 MiB"));
    }
}
