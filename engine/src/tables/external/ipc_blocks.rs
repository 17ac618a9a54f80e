//! The record batches of an Arrow file of the file format, read block by block into memory that is used again.
//!
//! arrow-ipc's own reader takes new memory for each block and fills it with zeros before it reads, which costs as much as
//! the reading, and takes as much as the file says.
//!
//! Invariant: a block lies within the file, or reading it is an error, and the process has room for what it becomes;
//! memory is used again only when no batch refers to it.

use std::io::{Read, Seek, SeekFrom};
use std::sync::{Arc, Weak};

use arrow::array::RecordBatch;
use arrow::buffer::Buffer;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::convert::fb_to_schema;
use arrow::ipc::reader::{FileDecoder, read_footer_length};
use arrow::ipc::{Block, Endianness, Message, root_as_footer, root_as_message};
use bytes::Bytes;
use parking_lot::Mutex;

use super::ipc_messages::{admit, check_message};

/// What stands at a file's end: the footer's length and the format's magic.
const TRAILER_BYTES: usize = 10;
/// What Arrow 0.17 wrote into the metadata of blocks that it compressed, before the format had a field for that.
const EARLY_COMPRESSION: &str = "ARROW:experimental_compression";
/// Blocks whose memory waits to be used again, and the largest of them.
const IDLE_BLOCKS: usize = 4;
const LARGEST_IDLE_BYTES: usize = 16 << 20;

/// The batches of one file.
pub(super) struct IpcBlocks<R> {
    reader: R,
    file_bytes: u64,
    schema: SchemaRef,
    decoder: FileDecoder,
    /// Whether the decoder passes over no column.
    reads_all: bool,
    blocks: std::vec::IntoIter<Block>,
    idle: Arc<IdleMemory>,
}

/// The memory of blocks that nothing refers to any more.
type IdleMemory = Mutex<Vec<Vec<u8>>>;

/// The memory of a block; when the last buffer that lies in it is gone it becomes idle, while its file is being read.
struct BlockMemory {
    bytes: Vec<u8>,
    idle: Weak<IdleMemory>,
}

impl AsRef<[u8]> for BlockMemory {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BlockMemory {
    fn drop(&mut self) {
        let Some(idle) = self.idle.upgrade() else { return };
        let mut idle = idle.lock();
        if idle.len() < IDLE_BLOCKS && self.bytes.capacity() <= LARGEST_IDLE_BYTES {
            idle.push(std::mem::take(&mut self.bytes));
        }
    }
}

impl<R: Read + Seek> IpcBlocks<R> {
    /// Reads the footer and the dictionaries. Batches have the columns of `projection`, in ascending order, or all.
    pub(super) fn try_new(mut reader: R, projection: Option<Vec<usize>>) -> Result<Self, ArrowError> {
        let file_bytes = reader.seek(SeekFrom::End(0))?;
        let mut trailer = [0; TRAILER_BYTES];
        let trailer_at = file_bytes.checked_sub(TRAILER_BYTES as u64).ok_or_else(|| malformed("it has no footer"))?;
        reader.seek(SeekFrom::Start(trailer_at))?;
        reader.read_exact(&mut trailer)?;
        let footer_bytes = read_footer_length(trailer)?;
        let footer_at = trailer_at
            .checked_sub(footer_bytes as u64)
            .ok_or_else(|| malformed("its footer is longer than the file"))?;
        reader.seek(SeekFrom::Start(footer_at))?;
        let mut footer = vec![0; footer_bytes];
        reader.read_exact(&mut footer)?;
        let footer = root_as_footer(&footer).map_err(|error| ArrowError::ParseError(format!("footer: {error}")))?;
        let stored_schema = footer.schema().ok_or_else(|| malformed("its footer has no schema"))?;
        if stored_schema.endianness() != Endianness::Little || cfg!(target_endian = "big") {
            return Err(malformed("its byte order is not this machine's"));
        }
        let schema = Arc::new(fb_to_schema(stored_schema));
        let mut decoder = FileDecoder::new(Arc::clone(&schema), footer.version());
        let reads_all = projection.as_ref().is_none_or(|projection| projection.len() == schema.fields().len());
        if let Some(projection) = projection {
            decoder = decoder.with_projection(projection);
        }
        let blocks: Vec<Block> = footer.recordBatches().iter().flatten().copied().collect();
        let (blocks, idle) = (blocks.into_iter(), Arc::default());
        let mut blocks = Self { reader, file_bytes, schema, decoder, reads_all, blocks, idle };
        for block in footer.dictionaries().iter().flatten() {
            let buffer = blocks.read_block(block)?;
            blocks.decoder.read_dictionary(block, &buffer)?;
        }
        Ok(blocks)
    }

    /// Returns the schema of the file, all of its columns.
    pub(super) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn read_block(&mut self, block: &Block) -> Result<Buffer, ArrowError> {
        let part = |bytes: i64| u64::try_from(bytes).map_err(|_| malformed("a block has a negative length"));
        let (start, body, header) =
            (part(block.offset())?, part(block.bodyLength())?, part(block.metaDataLength().into())?);
        let length = body
            .checked_add(header)
            .filter(|length| header >= 8 && start.checked_add(*length).is_some_and(|end| end <= self.file_bytes));
        let length = length.and_then(|length| usize::try_from(length).ok());
        let length = length.ok_or_else(|| malformed("a block lies outside of the file"))?;
        admit(length as u64).map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        let mut bytes = self.idle.lock().pop().unwrap_or_default();
        bytes.resize(length, 0);
        self.reader.seek(SeekFrom::Start(start))?;
        self.reader.read_exact(&mut bytes)?;
        let header_bytes = usize::try_from(header).unwrap_or(usize::MAX);
        // What is no message is refused by the decoder.
        if let Some((part, body)) = bytes.split_at_checked(header_bytes)
            && let Ok(message) = root_as_message(message_header(part))
        {
            check_compression(message)?;
            check_message(message, body, self.reads_all)?;
        }
        let memory = BlockMemory { bytes, idle: Arc::downgrade(&self.idle) };
        Ok(Buffer::from(Bytes::from_owner(memory)))
    }
}

impl<R: Read + Seek> Iterator for IpcBlocks<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let block = self.blocks.next()?;
        let read = self.read_block(&block).and_then(|buffer| self.decoder.read_record_batch(&block, &buffer));
        read.transpose()
    }
}

/// Returns the message of a block's first part. Before it stands its length, in most files after four bytes of ones.
fn message_header(part: &[u8]) -> &[u8] {
    match part {
        [0xff, 0xff, 0xff, 0xff, _, _, _, _, header @ ..] | [_, _, _, _, header @ ..] => header,
        _ => &[],
    }
}

/// Refuses a block whose values would be read as they are compressed: the decoder knows the format's own field only.
fn check_compression(message: Message<'_>) -> Result<(), ArrowError> {
    if message.custom_metadata().iter().flatten().any(|entry| entry.key() == Some(EARLY_COMPRESSION)) {
        let fault = "it is compressed as Arrow 0.17 did it, before that was standard; write it anew, for example with \
                     pyarrow.feather.write_feather(pyarrow.feather.read_table(FILE), NEW_FILE)";
        return Err(ArrowError::ParseError(fault.to_owned()));
    }
    Ok(())
}

fn malformed(fault: &str) -> ArrowError {
    ArrowError::ParseError(format!("the file is damaged: {fault}"))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use arrow::array::{ArrayRef, Int64Array, StringArray};
    use arrow::ipc::writer::FileWriter;

    use super::*;

    #[test]
    fn memory_is_used_again_once_nothing_refers_to_it() {
        let mut blocks = IpcBlocks::try_new(Cursor::new(file(5)), None).unwrap();
        let first = blocks.next().unwrap().unwrap();
        let second = blocks.next().unwrap().unwrap();
        assert_ne!(first.column(0).to_data().buffers()[0].as_ptr(), second.column(0).to_data().buffers()[0].as_ptr());
        assert_eq!(first, batch(0));
        let at = first.column(0).to_data().buffers()[0].as_ptr();
        drop(first);
        let third = blocks.next().unwrap().unwrap();
        assert_eq!(third.column(0).to_data().buffers()[0].as_ptr(), at);
        assert_eq!((&second, &third), (&batch(1), &batch(2)));
        assert_eq!(blocks.map(Result::unwrap).collect::<Vec<_>>(), [batch(3), batch(4)]);
    }

    #[test]
    fn a_file_that_is_cut_or_lies_is_an_error() {
        let whole = file(2);
        for length in 0..whole.len() {
            assert!(IpcBlocks::try_new(Cursor::new(&whole[..length]), None).is_err(), "{length}");
        }
        // The footer stays, what it points to is gone.
        let mut blocks = IpcBlocks::try_new(Cursor::new(&whole[whole.len() / 2..]), None).unwrap();
        assert!(blocks.any(|batch| batch.is_err()));
    }

    fn batch(number: i64) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(number..number + 100));
        let texts: ArrayRef = Arc::new(StringArray::from_iter_values((0..100).map(|row| format!("{number} {row}"))));
        RecordBatch::try_from_iter([("n", numbers), ("s", texts)]).unwrap()
    }

    fn file(batches: i64) -> Vec<u8> {
        let mut writer = FileWriter::try_new(Vec::new(), &batch(0).schema()).unwrap();
        (0..batches).for_each(|number| writer.write(&batch(number)).unwrap());
        writer.into_inner().unwrap()
    }
}
