//! A file's bytes as UTF-8 text: decompressed, decoded from its encoding, without a byte order mark.
//!
//! No character is ever replaced: bytes that are not of the encoding are an error. UTF-8 itself is checked by the readers,
//! which know the line.

use std::io::{BufRead, BufReader, Error, ErrorKind, Read, Result as IoResult};
use std::path::Path;

use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use encoding_rs::{Decoder, DecoderResult, Encoding};

use super::{compression_name, unreadable};
use crate::error::{EngineError, Result};

/// The bytes that are read and decoded at a time.
const BLOCK_BYTES: usize = 256 << 10;

/// How characters are written as bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum TextEncoding {
    /// Read as it is.
    Utf8,
    /// ISO 8859-1: each byte is the character of its number.
    Latin1,
    /// Any other of the Encoding Standard.
    Other(&'static Encoding),
}

impl TextEncoding {
    /// Returns the encoding of this name, such as `latin-1`, `utf-16`, `windows-1252` or `shift_jis`.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let plain = name.trim().to_lowercase().replace('_', "-");
        match plain.as_str() {
            "utf-8" | "utf8" => Some(TextEncoding::Utf8),
            "latin-1" | "latin1" | "iso-8859-1" | "iso8859-1" | "l1" => Some(TextEncoding::Latin1),
            "utf-16" | "utf16" | "utf-16le" | "utf-16-le" => Some(TextEncoding::Other(encoding_rs::UTF_16LE)),
            "utf-16be" | "utf-16-be" => Some(TextEncoding::Other(encoding_rs::UTF_16BE)),
            "cp1252" => Some(TextEncoding::Other(encoding_rs::WINDOWS_1252)),
            other => {
                let found = Encoding::for_label(other.as_bytes())
                    .or_else(|| Encoding::for_label(name.trim().as_bytes()))
                    .filter(|found| *found != encoding_rs::REPLACEMENT)?;
                Some(if found == encoding_rs::UTF_8 { TextEncoding::Utf8 } else { TextEncoding::Other(found) })
            }
        }
    }

    /// Returns the name that [`Self::from_name`] reads.
    pub(crate) fn name(self) -> String {
        match self {
            TextEncoding::Utf8 => "utf-8".to_owned(),
            TextEncoding::Latin1 => "latin-1".to_owned(),
            TextEncoding::Other(encoding) => encoding.name().to_lowercase(),
        }
    }

    /// Returns the encoding that a file's first bytes declare.
    fn from_byte_order_mark(start: &[u8]) -> Option<(Self, usize)> {
        let (encoding, length) = Encoding::for_bom(start)?;
        Some((if encoding == encoding_rs::UTF_8 { Self::Utf8 } else { Self::Other(encoding) }, length))
    }
}

/// Opens a file's text. The encoding is the one that is given, the one that a byte order mark declares, or UTF-8. Blocks,
/// as reading does.
pub(crate) fn open_text(
    path: &Path,
    compression: FileCompressionType,
    encoding: Option<TextEncoding>,
    source: impl Read + Send + 'static,
) -> Result<Box<dyn BufRead + Send>> {
    let decompressed = compression
        .convert_read(source)
        .map_err(|error| EngineError::BadData { location: path.display().to_string(), detail: error.to_string() })?;
    let mut bytes = BufReader::with_capacity(BLOCK_BYTES, decompressed);
    let start = bytes.fill_buf().map_err(|error| match unreadable(path, &error) {
        EngineError::BadData { location, detail } if compression.is_compressed() => {
            let name = compression_name(&compression);
            let remedy = "a file that is none has another ending, or the option compression = 'none'";
            EngineError::BadData { location, detail: format!("no {name} data ({detail}); {remedy}") }
        }
        other => other,
    })?;
    if let Some(remedy) = packed_text(start) {
        return Err(EngineError::BadData { location: path.display().to_string(), detail: remedy.to_owned() });
    }
    let declared = TextEncoding::from_byte_order_mark(start);
    let is_utf_16 =
        |encoding: TextEncoding| matches!(encoding, TextEncoding::Other(other) if other.name().starts_with("UTF-16"));
    let chosen = match (encoding, declared) {
        // A mark says which half of a UTF-16 character comes first.
        (Some(given), Some((marked, length))) if given == marked || (is_utf_16(given) && is_utf_16(marked)) => {
            bytes.consume(length);
            marked
        }
        (Some(given), _) => given,
        (None, Some((marked, length))) => {
            bytes.consume(length);
            marked
        }
        (None, None) => TextEncoding::Utf8,
    };
    Ok(match chosen {
        TextEncoding::Utf8 => Box::new(bytes),
        other => Box::new(BufReader::with_capacity(BLOCK_BYTES, DecodedText::new(other, bytes))),
    })
}

/// Returns what to do about a file whose first bytes are those of compressed data, or of text that is not read.
fn packed_text(start: &[u8]) -> Option<&'static str> {
    let is_bzip2 = start.starts_with(b"BZh") && start.get(4..10) == Some(b"\x31\x41\x59\x26\x53\x59".as_slice());
    match start {
        [0x1F, 0x8B, ..] => {
            Some("is compressed with gzip; say so by the option compression = 'gzip' or the ending .gz")
        }
        [0x28, 0xB5, 0x2F, 0xFD, ..] => {
            Some("is compressed with zstd; say so by the option compression = 'zstd' or the ending .zst")
        }
        [0xFD, b'7', b'z', b'X', b'Z', 0, ..] => {
            Some("is compressed with xz; say so by the option compression = 'xz' or the ending .xz")
        }
        _ if is_bzip2 => {
            Some("is compressed with bzip2; say so by the option compression = 'bzip2' or the ending .bz2")
        }
        [b'P', b'K', 3, 4, rest @ ..] if is_workbook(rest) => {
            Some("is a workbook of Excel or OpenDocument; read it by the format xlsx, or name it so: .xlsx, .ods")
        }
        [b'P', b'K', 3, 4, ..] => Some("is a zip archive; unpack it first"),
        [0xD0, 0xCF, 0x11, 0xE0, ..] => Some("is a document of Office before 2007; save it as .xlsx, or as CSV"),
        [b'P', b'A', b'R', b'1', 0..=8 | 14..=31, ..] => {
            Some("is Parquet; read it by the format parquet, or name it .parquet")
        }
        [b'A', b'R', b'R', b'O', b'W', b'1', 0, ..] => Some("is Arrow; read it by the format arrow, or name it .arrow"),
        // Before the mark of UTF-16, with which that of UTF-32 begins.
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => {
            Some("is UTF-32 text, which is not read; convert it: iconv -f UTF-32 -t UTF-8 FILE > NEW_FILE")
        }
        _ => None,
    }
}

/// Returns whether the first bytes of an archive are those of a workbook: its parts have names of their own.
fn is_workbook(start: &[u8]) -> bool {
    const NAMES: [&[u8]; 3] =
        [b"[Content_Types].xml", b"application/vnd.oasis.opendocument.spreadsheet", b"xl/workbook"];
    NAMES.iter().any(|name| start.windows(name.len()).take(4096).any(|bytes| bytes == *name))
}

/// Text of another encoding as UTF-8.
struct DecodedText<R> {
    encoding: TextEncoding,
    source: R,
    decoder: Option<Decoder>,
    decoded: Vec<u8>,
    read: usize,
    finished: bool,
}

impl<R: BufRead> DecodedText<R> {
    fn new(encoding: TextEncoding, source: R) -> Self {
        let decoder = match encoding {
            TextEncoding::Other(other) => Some(other.new_decoder_without_bom_handling()),
            TextEncoding::Utf8 | TextEncoding::Latin1 => None,
        };
        Self { encoding, source, decoder, decoded: Vec::new(), read: 0, finished: false }
    }

    /// Decodes the next block.
    fn fill(&mut self) -> IoResult<()> {
        let block = self.source.fill_buf()?;
        let is_last = block.is_empty();
        self.decoded.clear();
        self.read = 0;
        let Some(decoder) = &mut self.decoder else {
            for byte in block {
                let mut utf8 = [0; 4];
                self.decoded.extend_from_slice(char::from(*byte).encode_utf8(&mut utf8).as_bytes());
            }
            let consumed = block.len();
            self.source.consume(consumed);
            self.finished = is_last;
            return Ok(());
        };
        let needed = decoder.max_utf8_buffer_length_without_replacement(block.len()).unwrap_or(block.len() * 3 + 16);
        self.decoded.resize(needed, 0);
        let (result, consumed, written) = decoder.decode_to_utf8_without_replacement(block, &mut self.decoded, is_last);
        self.decoded.truncate(written);
        self.source.consume(consumed);
        match result {
            DecoderResult::Malformed(_, _) => {
                let detail =
                    format!("not {} text; name another encoding with the option encoding", self.encoding.name());
                Err(Error::new(ErrorKind::InvalidData, detail))
            }
            DecoderResult::InputEmpty | DecoderResult::OutputFull => {
                self.finished = is_last;
                Ok(())
            }
        }
    }
}

impl<R: BufRead> Read for DecodedText<R> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        while self.read == self.decoded.len() && !self.finished {
            self.fill()?;
        }
        let mut ahead = self.decoded.get(self.read..).unwrap_or_default();
        let count = ahead.read(buffer)?;
        self.read += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], encoding: Option<&str>) -> std::result::Result<String, String> {
        let encoding = encoding.map(|name| TextEncoding::from_name(name).unwrap());
        let source = std::io::Cursor::new(bytes.to_vec());
        let mut text = open_text(Path::new("t"), FileCompressionType::UNCOMPRESSED, encoding, source).unwrap();
        let mut read = String::new();
        text.read_to_string(&mut read).map_err(|error| error.to_string())?;
        Ok(read)
    }

    #[test]
    fn text_is_decoded_and_loses_its_mark() {
        let utf_16: Vec<u8> =
            [0xFEFF_u16].into_iter().chain("café".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        assert_eq!(read(&utf_16, None).unwrap(), "café");
        assert_eq!(read(&utf_16, Some("utf-16")).unwrap(), "café");
        let big: Vec<u8> = [0xFEFF_u16].into_iter().chain("x,é".encode_utf16()).flat_map(u16::to_be_bytes).collect();
        assert_eq!(read(&big, Some("UTF-16")).unwrap(), "x,é");
        assert_eq!(read(b"\xEF\xBB\xBFa", None).unwrap(), "a");
        assert_eq!(read(b"caf\xE9 \x80", Some("latin-1")).unwrap(), "café \u{80}");
        assert_eq!(read(b"caf\xE9 \x80", Some("cp1252")).unwrap(), "café €");
        assert_eq!(read(b"\x83\x65", Some("shift_jis")).unwrap(), "テ");
        assert!(read(b"\x81", Some("shift_jis")).unwrap_err().contains("shift_jis"));
        assert_eq!(TextEncoding::from_name("klingon"), None);
    }

    #[test]
    fn compressed_data_is_no_text() {
        let source = std::io::Cursor::new(b"\x1F\x8B\x08\0".to_vec());
        let refused = open_text(Path::new("t.csv"), FileCompressionType::UNCOMPRESSED, None, source).err();
        assert!(refused.is_some_and(|error| error.to_string().contains("compressed with gzip")));
        assert_eq!(read(b"PK,BZh\n", None).unwrap(), "PK,BZh\n");
        let source = std::io::Cursor::new(b"a,b\n1,2\n".to_vec());
        let refused = open_text(Path::new("t.csv.gz"), FileCompressionType::GZIP, None, source).err();
        let said = refused.map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("no gzip data (") && said.contains("compression = 'none'"), "{said}");
    }
}
