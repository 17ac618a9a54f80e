//! Messages of Arrow files before arrow-ipc decodes them. It takes as much memory as a message says that its body has, or
//! that a compressed buffer becomes, before it reads a byte of it: where the machine has less, the process ends.
//!
//! Invariant: what passes lies in its file, and the process has room for what it becomes.

use std::io::{self, ErrorKind, Read};

use arrow::error::ArrowError;
use arrow::ipc::{Buffer, CompressionType, Message, MessageHeader, RecordBatch, root_as_message};

use crate::error::EngineError;
use crate::limits::QueryUsage;

/// What stands before the length of a message.
const CONTINUATION: [u8; 4] = [0xff; 4];
/// The bytes before a compressed buffer that say how long it becomes.
const LENGTH_PREFIX: usize = 8;
/// How many bytes one byte of LZ4 becomes at most, and the largest block that a frame may have.
const LZ4_RATIO: u64 = 255;
const LZ4_LARGEST_BLOCK: u64 = 4 << 20;
const LZ4_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// How many bytes one byte of ZSTD becomes at most: blocks of 128 KiB, the shortest of which has four bytes.
const ZSTD_RATIO: u64 = ZSTD_BLOCK / 4;
const ZSTD_BLOCK: u64 = 128 << 10;

/// A file of the stream format, whose messages are checked before they are handed on.
pub(super) struct CheckedStream<R> {
    inner: R,
    /// The bytes of the file that were not read.
    left: u64,
    /// What was read ahead of a message: its metadata, and its body where that is compressed.
    ahead: Vec<u8>,
    /// How much of it was handed on.
    handed_on: usize,
    /// The bytes of its body that were not read.
    body: u64,
}

impl<R: Read> CheckedStream<R> {
    /// Reads a file of so many bytes.
    pub(super) fn new(inner: R, file_bytes: u64) -> Self {
        Self { inner, left: file_bytes, ahead: Vec::new(), handed_on: 0, body: 0 }
    }

    /// Reads the next message as far as it is to be checked; nothing at the file's end.
    fn read_message(&mut self) -> io::Result<()> {
        self.ahead.clear();
        self.handed_on = 0;
        let mut length: Option<[u8; 4]> = self.read_ahead(4)?.try_into().ok();
        if length == Some(CONTINUATION) {
            length = self.read_ahead(4)?.try_into().ok();
        }
        // What is no length, and the mark of the end, are the reader's.
        let metadata = length.and_then(|length| usize::try_from(i32::from_le_bytes(length)).ok());
        let Some(metadata) = metadata.filter(|bytes| *bytes > 0) else { return Ok(()) };
        if metadata as u64 > self.left {
            return Err(damaged("a message is longer than what is left of it"));
        }
        let start = self.ahead.len();
        let Ok(message) = root_as_message(self.read_ahead(metadata as u64)?) else { return Ok(()) };
        let is_compressed = batch_of(message).is_some_and(|batch| batch.compression().is_some());
        let body = u64::try_from(message.bodyLength()).map_err(|_| damaged("a message has a negative length"))?;
        if body > self.left {
            return Err(damaged("a message is longer than what is left of it"));
        }
        admit(body).map_err(io::Error::other)?;
        if !is_compressed {
            self.body = body;
            return Ok(());
        }
        self.read_ahead(body)?;
        let message = self.ahead.get(start..).unwrap_or_default();
        let parsed = message.split_at_checked(metadata);
        let parsed = parsed.and_then(|(header, body)| Some((root_as_message(header).ok()?, body)));
        parsed.map_or(Ok(()), |(message, body)| check_message(message, body, true).map_err(io::Error::other))
    }

    /// Reads so many bytes, or what there is, and returns them.
    fn read_ahead(&mut self, bytes: u64) -> io::Result<&[u8]> {
        let start = self.ahead.len();
        let read = self.inner.by_ref().take(bytes.min(self.left)).read_to_end(&mut self.ahead)?;
        self.left = self.left.saturating_sub(read as u64);
        Ok(self.ahead.get(start..).unwrap_or_default())
    }
}

impl<R: Read> Read for CheckedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.handed_on == self.ahead.len() && self.body == 0 {
            self.read_message()?;
        }
        let mut ahead = self.ahead.get(self.handed_on..).unwrap_or_default();
        if !ahead.is_empty() {
            let read = ahead.read(buffer)?;
            self.handed_on += read;
            return Ok(read);
        }
        let read = self.inner.by_ref().take(self.body).read(buffer)?;
        self.body = self.body.saturating_sub(read as u64);
        self.left = self.left.saturating_sub(read as u64);
        Ok(read)
    }
}

/// Checks a message with its body; `reads_all` says that no column of it is passed over. Errors: it is damaged, or
/// [`EngineError::ServerMemory`].
pub(super) fn check_message(message: Message<'_>, body: &[u8], reads_all: bool) -> Result<(), ArrowError> {
    // A buffer that does not lie in its message is the decoder's to refuse.
    let Some(batch) = batch_of(message) else { return Ok(()) };
    let Some(compression) = batch.compression() else { return Ok(()) };
    let reads_all = reads_all || message.header_type() == MessageHeader::DictionaryBatch;
    let mut bytes = 0_u64;
    for values in batch.buffers().iter().flatten().filter_map(|buffer| buffer_values(buffer, body)) {
        let becomes = decompressed_bytes(compression.codec(), values)?;
        // Of a batch whose columns are read in part it is not known which buffers they are.
        bytes = if reads_all { bytes.saturating_add(becomes) } else { bytes.max(becomes) };
    }
    admit(bytes).map_err(|error| ArrowError::ExternalError(Box::new(error)))
}

/// Returns the batch of a message, which may be of the words of a dictionary.
fn batch_of(message: Message<'_>) -> Option<RecordBatch<'_>> {
    message.header_as_record_batch().or_else(|| message.header_as_dictionary_batch()?.data())
}

/// Asks for memory, where a query works here. Errors: `memory_exceeded`.
pub(super) fn admit(bytes: u64) -> Result<(), EngineError> {
    QueryUsage::admit_current(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Returns a buffer's bytes; `None` where it does not lie in the body.
fn buffer_values<'a>(buffer: &Buffer, body: &'a [u8]) -> Option<&'a [u8]> {
    let start = usize::try_from(buffer.offset()).ok()?;
    let length = usize::try_from(buffer.length()).ok()?;
    body.get(start..start.checked_add(length)?)
}

/// Returns how much memory a compressed buffer takes, nothing where it is not. Errors: it says more than it can become.
fn decompressed_bytes(codec: CompressionType, values: &[u8]) -> Result<u64, ArrowError> {
    let Some((length, compressed)) = values.split_first_chunk::<LENGTH_PREFIX>() else { return Ok(0) };
    // The negative one that is allowed says that a buffer is not compressed.
    let length = u64::try_from(i64::from_le_bytes(*length)).unwrap_or(0);
    let most = match codec {
        CompressionType::LZ4_FRAME => lz4_bytes(compressed),
        CompressionType::ZSTD => (compressed.len() as u64).saturating_mul(ZSTD_RATIO).saturating_add(ZSTD_BLOCK),
        _ => return Ok(0),
    };
    if length > most {
        return Err(ArrowError::from(damaged("a compressed buffer says that it is longer than it can be")));
    }
    // LZ4 is decompressed to its end, wherever that is; ZSTD stops at the length.
    let is_longer = codec == CompressionType::LZ4_FRAME && length > 0 && most - length > LZ4_LARGEST_BLOCK;
    Ok(if is_longer { most } else { length })
}

/// Returns how many bytes a frame of LZ4 becomes at most, by the sizes of its blocks.
fn lz4_bytes(frame: &[u8]) -> u64 {
    let [b0, b1, b2, b3, flags, blocks, rest @ ..] = frame else { return 0 };
    if [*b0, *b1, *b2, *b3] != LZ4_MAGIC {
        return (frame.len() as u64).saturating_mul(LZ4_RATIO);
    }
    let (has_checksums, has_size, has_dictionary) = (flags & 0x10 != 0, flags & 0x08 != 0, flags & 0x01 != 0);
    let header = usize::from(has_size) * 8 + usize::from(has_dictionary) * 4 + 1;
    let largest = 1_u64 << (8 + 2 * ((blocks >> 4) & 7));
    let mut rest = rest.get(header..).unwrap_or_default();
    let mut bytes = 0_u64;
    while let Some((size, behind)) = rest.split_first_chunk::<4>() {
        let size = u32::from_le_bytes(*size);
        let (is_plain, size) = (size >> 31 != 0, size & !(1 << 31));
        if size == 0 {
            break;
        }
        let becomes = if is_plain { u64::from(size) } else { u64::from(size) * LZ4_RATIO };
        bytes = bytes.saturating_add(becomes.min(largest));
        let length = usize::try_from(size).unwrap_or(usize::MAX).saturating_add(usize::from(has_checksums) * 4);
        rest = behind.get(length..).unwrap_or_default();
    }
    bytes
}

fn damaged(fault: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the file is damaged: {fault}"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, DictionaryArray, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::Int32Type;
    use arrow::ipc::reader::StreamReader;
    use arrow::ipc::writer::{IpcWriteOptions, StreamWriter};

    use super::*;

    const ROWS: i64 = 10_000;
    const CODECS: [Option<CompressionType>; 3] = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];

    fn batch(first: i64) -> RecordBatch {
        let words: DictionaryArray<Int32Type> = (0..ROWS).map(|row| ["a", "bb"][(row % 2) as usize]).collect();
        let columns: [(&str, ArrayRef); 3] = [
            ("n", Arc::new(Int64Array::from_iter_values((0..ROWS).map(|row| first + row / 100)))),
            ("s", Arc::new(StringArray::from_iter_values((0..ROWS).map(|row| format!("{first} {row}"))))),
            ("w", Arc::new(words)),
        ];
        RecordBatch::try_from_iter(columns).unwrap()
    }

    fn stream(batches: &[RecordBatch], codec: Option<CompressionType>) -> Vec<u8> {
        let options = IpcWriteOptions::default().try_with_compression(codec).unwrap();
        let mut writer = StreamWriter::try_new_with_options(Vec::new(), &batches[0].schema(), options).unwrap();
        batches.iter().for_each(|batch| writer.write(batch).unwrap());
        writer.into_inner().unwrap()
    }

    fn read(bytes: &[u8]) -> Result<Vec<RecordBatch>, ArrowError> {
        StreamReader::try_new(CheckedStream::new(Cursor::new(bytes), bytes.len() as u64), None)?.collect()
    }

    /// Returns the bytes with another number in the first place of `number` that `behind` fits.
    fn with_number(bytes: &[u8], number: i64, claim: i64, behind: &[u8]) -> Vec<u8> {
        let wanted = [&number.to_le_bytes()[..], behind].concat();
        let at = bytes.windows(wanted.len()).position(|part| part == wanted).unwrap();
        let mut lying = bytes.to_vec();
        lying[at..at + 8].copy_from_slice(&claim.to_le_bytes());
        lying
    }

    #[test]
    fn what_arrow_writes_is_read() {
        let batches = [batch(0), batch(0).slice(0, 0), batch(7)];
        for codec in CODECS {
            let bytes = stream(&batches, codec);
            assert_eq!(read(&bytes).unwrap(), batches, "{codec:?}");
            // Without the mark of the end, and with something behind it.
            assert_eq!(read(&bytes[..bytes.len() - 8]).unwrap(), batches, "{codec:?}");
            assert_eq!(read(&[bytes.as_slice(), b"what is behind"].concat()).unwrap(), batches, "{codec:?}");
            for length in (0..bytes.len() - 8).step_by(97) {
                assert!(read(&bytes[..length]).is_ok_and(|read| read.len() < 3) || read(&bytes[..length]).is_err());
            }
        }
    }

    #[test]
    fn a_message_is_no_longer_than_its_file() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 1_000]));
        let bytes = stream(&[RecordBatch::try_from_iter([("n", numbers)]).unwrap()], None);
        let schema = 8 + usize::try_from(i32::from_le_bytes(bytes[4..8].try_into().unwrap())).unwrap();
        let length = i32::from_le_bytes(bytes[schema + 4..schema + 8].try_into().unwrap());
        let header = &bytes[schema + 8..][..usize::try_from(length).unwrap()];
        let body = root_as_message(header).unwrap().bodyLength();
        for claim in [body + 64, 1 << 40, i64::MAX] {
            let error = read(&with_number(&bytes, body, claim, &[])).unwrap_err().to_string();
            assert!(error.contains("longer than what is left"), "{claim}: {error}");
        }
        let mut lying = bytes.clone();
        lying[4..8].copy_from_slice(&i32::MAX.to_le_bytes());
        assert!(read(&lying).unwrap_err().to_string().contains("longer than what is left"));
    }

    #[test]
    fn a_compressed_buffer_says_no_more_than_it_can_become() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![7; 10_000]));
        let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
        let zstd_magic = [0x28, 0xb5, 0x2f, 0xfd];
        for (codec, magic) in [(CompressionType::LZ4_FRAME, LZ4_MAGIC), (CompressionType::ZSTD, zstd_magic)] {
            let bytes = stream(std::slice::from_ref(&batch), Some(codec));
            for claim in [1 << 40, i64::MAX] {
                let error = read(&with_number(&bytes, 80_000, claim, &magic)).unwrap_err().to_string();
                assert!(error.contains("longer than it can be"), "{codec:?}: {error}");
            }
            assert!(read(&with_number(&bytes, 80_000, 16, &magic)).is_err());
        }
    }

    #[test]
    fn a_frame_is_as_long_as_its_blocks_may_be() {
        let frame = |blocks: &[&[u8]]| [&LZ4_MAGIC[..], &[0x60, 0x40, 0], &blocks.concat(), &[0; 4]].concat();
        assert_eq!(lz4_bytes(&frame(&[])), 0);
        assert_eq!(lz4_bytes(&frame(&[&[2, 0, 0, 0, 1, 2]])), 510);
        assert_eq!(lz4_bytes(&frame(&[&[3, 0, 0, 0x80, 1, 2, 3], &[2, 0, 0, 0, 1, 2]])), 513);
        let large = [&1_000_u32.to_le_bytes()[..], &[0; 1_000]].concat();
        assert_eq!(lz4_bytes(&frame(&[&large, &large, &large])), 3 * (64 << 10));
        assert_eq!(lz4_bytes(&[1; 10]), 2_550);
    }
}
