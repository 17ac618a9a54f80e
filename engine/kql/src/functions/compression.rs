//! Compressed strings in base64. The result for what cannot be read is the empty string.

use std::io::{Read, Write};

use arrow::array::ArrayRef;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use datafusion::error::{DataFusionError, Result};
use flate2::read::{GzDecoder, ZlibDecoder};
use flate2::write::{DeflateEncoder, ZlibEncoder};
use flate2::{Compression, Crc};

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;

const STRING: Returns = Returns::Is(KqlType::String);
/// The most bytes of a decompressed string.
const MAX_BYTES: u64 = 32 << 20;
/// The first bytes of a gzip file: deflate, no name, no time, an unknown system.
const GZIP_HEADER: [u8; 10] = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];

/// The sizes of header and trailer of each format.
const GZIP_FRAME_BYTES: usize = GZIP_HEADER.len() + 8;
const ZLIB_FRAME_BYTES: usize = 6;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("gzip_decompress_from_base64_string", "w", STRING, |arguments| {
        decompressed(arguments, |bytes, text| GzDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(text))
    }),
    entry("zlib_decompress_from_base64_string", "w", STRING, |arguments| {
        decompressed(arguments, |bytes, text| ZlibDecoder::new(bytes).take(MAX_BYTES + 1).read_to_end(text))
    }),
    entry("gzip_compress_to_base64_string", "w", STRING, |arguments| compressed(arguments, gzip, GZIP_FRAME_BYTES)),
    entry("zlib_compress_to_base64_string", "w", STRING, |arguments| compressed(arguments, zlib, ZLIB_FRAME_BYTES)),
];

fn decompressed(
    arguments: &FunctionArguments,
    read: fn(&[u8], &mut Vec<u8>) -> std::io::Result<usize>,
) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        let mut bytes = Vec::new();
        let is_read = BASE64.decode(strings.get(row)).is_ok_and(|packed| read(&packed, &mut bytes).is_ok());
        if bytes.len() as u64 > MAX_BYTES {
            let message = format!("a compressed text becomes more than {} MiB", MAX_BYTES >> 20);
            return Err(DataFusionError::ResourcesExhausted(message));
        }
        if is_read {
            text.push_str(std::str::from_utf8(&bytes).unwrap_or_default());
        }
        Ok(())
    })
}

/// Compresses a column. `frame_bytes` is the size of what `pack` adds around the compressed bytes.
fn compressed(
    arguments: &FunctionArguments,
    pack: fn(&[u8], Compression) -> std::io::Result<Vec<u8>>,
    frame_bytes: usize,
) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        let bytes = strings.get(row).as_bytes();
        let mut packed = pack(bytes, Compression::fast())?;
        if packed.len() >= bytes.len() + frame_bytes {
            // As in Kusto, a string that compression does not shorten is stored.
            packed = pack(bytes, Compression::none())?;
        }
        BASE64.encode_string(packed, text);
        Ok(())
    })
}

fn deflated(bytes: &[u8], level: Compression) -> std::io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn zlib(bytes: &[u8], level: Compression) -> std::io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), level);
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn gzip(bytes: &[u8], level: Compression) -> std::io::Result<Vec<u8>> {
    let mut crc = Crc::new();
    crc.update(bytes);
    let mut packed = GZIP_HEADER.to_vec();
    packed.extend(deflated(bytes, level)?);
    packed.extend(crc.sum().to_le_bytes());
    packed.extend(crc.amount().to_le_bytes());
    Ok(packed)
}
