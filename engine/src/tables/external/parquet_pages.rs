//! Pages of Parquet files before they are decompressed: decoders of Snappy and LZ4 take as much memory as a page's header
//! says that it becomes, and a page of zeros is a millionth of what it becomes.
//!
//! Invariant: what passes becomes no more than the process has room for. What is not a page is the reader's to refuse.

use super::parquet_depth::{CompactReader, I32, MAX_SKIPPED_DEPTH};
use crate::error::Result;
use crate::limits::QueryUsage;

/// The fields of a page's header that have its bytes.
const UNCOMPRESSED: i64 = 2;
const COMPRESSED: i64 = 3;

/// The bytes of a page.
struct PageBytes {
    header: usize,
    uncompressed: usize,
    compressed: usize,
}

/// Asks for memory for the largest of some pages, one behind the other, if a query works here.
/// Errors: `memory_exceeded`.
pub(crate) fn admit_pages(pages: &[u8]) -> Result<()> {
    QueryUsage::current().map_or(Ok(()), |usage| usage.admit(largest_page(pages)))
}

/// Returns how many bytes the largest page becomes.
fn largest_page(pages: &[u8]) -> usize {
    let (mut largest, mut rest) = (0, pages);
    while let Some(page) = page_bytes(rest) {
        largest = largest.max(page.uncompressed);
        rest = rest.get(page.header.saturating_add(page.compressed)..).unwrap_or_default();
    }
    largest
}

/// Returns the bytes of the first page; `None` where there is none.
fn page_bytes(pages: &[u8]) -> Option<PageBytes> {
    let mut reader = CompactReader { rest: pages };
    let (mut uncompressed, mut compressed, mut last) = (None, None, 0);
    while let Some((id, kind)) = reader.field(last)? {
        match (id, kind) {
            (UNCOMPRESSED, I32) => uncompressed = Some(usize::try_from(reader.zigzag()?).ok()?),
            (COMPRESSED, I32) => compressed = Some(usize::try_from(reader.zigzag()?).ok()?),
            _ => reader.skip(kind, MAX_SKIPPED_DEPTH)?,
        }
        last = id;
    }
    let header = pages.len() - reader.rest.len();
    Some(PageBytes { header, uncompressed: uncompressed?, compressed: compressed? })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{ArrayRef, BinaryArray, RecordBatch};
    use bytes::Bytes;
    use parquet::arrow::ArrowWriter;
    use parquet::basic::Compression;
    use parquet::file::metadata::ParquetMetaDataReader;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// The pages of a column of values of so many bytes each, and how long they are together without compression.
    fn column(lengths: &[usize], codec: Compression, has_dictionary: bool) -> (Vec<u8>, usize) {
        let values: ArrayRef = Arc::new(BinaryArray::from_iter_values(lengths.iter().map(|length| vec![7; *length])));
        let batch = RecordBatch::try_from_iter([("a", values)]).unwrap();
        let properties = WriterProperties::builder()
            .set_compression(codec)
            .set_dictionary_enabled(has_dictionary)
            .set_data_page_size_limit(1_000)
            .set_write_batch_size(1)
            .build();
        let mut written = Vec::new();
        let mut file = ArrowWriter::try_new(&mut written, batch.schema(), Some(properties)).unwrap();
        file.write(&batch).unwrap();
        file.close().unwrap();
        let footer = ParquetMetaDataReader::new().parse_and_finish(&Bytes::from(written.clone())).unwrap();
        let column = footer.row_group(0).column(0);
        let (start, length) = column.byte_range();
        let (start, length) = (usize::try_from(start).unwrap(), usize::try_from(length).unwrap());
        (written[start..start + length].to_vec(), usize::try_from(column.uncompressed_size()).unwrap())
    }

    #[test]
    fn the_largest_page_is_found() {
        for codec in [Compression::UNCOMPRESSED, Compression::SNAPPY, Compression::LZ4_RAW] {
            for has_dictionary in [false, true] {
                let (pages, all) = column(&[10, 2_000, 50_000, 30, 4_000], codec, has_dictionary);
                let largest = largest_page(&pages);
                assert!((50_000..=all).contains(&largest), "{codec:?}: {largest} of {all}");
                // A page that is cut says as much.
                assert_eq!(largest_page(&pages[..pages.len() - 10]), largest, "{codec:?}");
            }
        }
    }

    #[test]
    fn what_is_no_page_becomes_nothing() {
        for damaged in [&b""[..], b"PAR1", &[0x15], &[0; 100], &[0xff; 100], b"\x15\x00\x15\x01\x15\x02\x00"] {
            assert_eq!(largest_page(damaged), 0, "{damaged:?}");
        }
        // Type, bytes uncompressed and compressed, and the end of the header; the page itself is not there.
        assert_eq!(largest_page(b"\x15\x00\x15\xfe\xff\xff\xff\x0f\x15\x02\x00"), (1 << 31) - 1);
    }
}
