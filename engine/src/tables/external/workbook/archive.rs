//! Parts of a workbook's archive, unpacked within bounds: a small archive may unfold to any number of bytes.

use std::collections::HashMap;
use std::io::{BufReader, Error, ErrorKind, Read, Result as IoResult, Seek, SeekFrom, Take};
use std::path::Path;

use flate2::read::DeflateDecoder;

use super::cells::WorkbookSource;
use crate::error::{EngineError, Result};
use crate::tables::external::{bad_line, unreadable};

/// The bytes of one part, unpacked.
const MOST_BYTES: u64 = 1 << 30;
/// The parts of an archive.
const MOST_PARTS: usize = 10_000;
/// The bytes of its directory.
const LONGEST_DIRECTORY: u64 = 16 << 20;
/// The record at an archive's end, and the longest comment behind it.
const END_BYTES: u64 = 22;
const LONGEST_COMMENT: u64 = 1 << 16;
const BLOCK_BYTES: usize = 64 << 10;

/// An open archive.
pub(super) struct Archive {
    source: Box<dyn WorkbookSource>,
    parts: HashMap<String, ArchivePart>,
}

#[derive(Debug, Clone, Copy)]
struct ArchivePart {
    header: u64,
    packed_bytes: u64,
    is_deflated: bool,
}

impl Archive {
    /// Reads the directory of an archive. Errors: it is none, or is protected by a password.
    pub(super) fn open(path: &Path, mut source: Box<dyn WorkbookSource>) -> Result<Self> {
        let mut start = [0; 4];
        let io = |error: Error| unreadable(path, &error);
        let read = source.read(&mut start).map_err(io)?;
        match start.get(..read).unwrap_or_default() {
            [b'P', b'K', _, _] => {}
            [0xD0, 0xCF, 0x11, 0xE0] => {
                let what = "an Excel workbook of the format before 2007, or one that a password protects";
                return Err(EngineError::Unsupported {
                    what: format!("{}: {what}", path.display()),
                    hint: "save it as .xlsx without a password".into(),
                });
            }
            other => {
                let rather = match other {
                    [b'<', ..] | [0xEF, 0xBB, 0xBF, b'<'] => {
                        ", but HTML or XML, as web pages save tables; open it in a spreadsheet and save it as .xlsx"
                    }
                    _ if other.iter().all(|byte| *byte >= b' ' || byte.is_ascii_whitespace()) => {
                        ", but text; name the format csv, or read it with read_csv"
                    }
                    _ => "",
                };
                return Err(bad_line(path, None, None, format!("is no workbook of Excel or OpenDocument{rather}")));
            }
        }
        let parts = directory(&mut source).map_err(io)?;
        Ok(Self { source, parts })
    }

    /// Returns whether the archive has a part.
    pub(super) fn has(&self, name: &str) -> bool {
        self.parts.contains_key(&key(name))
    }

    /// Returns a part's bytes; `None` where there is none.
    pub(super) fn part(&mut self, name: &str) -> IoResult<Option<BufReader<PartReader<'_>>>> {
        let Some(part) = self.parts.get(&key(name)).copied() else { return Ok(None) };
        // The lengths of the name and of what else stands between a part's header and its bytes.
        let mut header = [0; 30];
        self.source.seek(SeekFrom::Start(part.header))?;
        self.source.read_exact(&mut header)?;
        if header.get(..4) != Some(b"PK\x03\x04") {
            return Err(broken("a part is not where the directory says"));
        }
        let between = u64::from(two(&header, 26)) + u64::from(two(&header, 28));
        self.source.seek(SeekFrom::Start(part.header + header.len() as u64 + between))?;
        let packed = BufReader::with_capacity(BLOCK_BYTES, &mut self.source).take(part.packed_bytes);
        let bytes = match part.is_deflated {
            true => Unpacked::Deflated(DeflateDecoder::new(packed)),
            false => Unpacked::Stored(packed),
        };
        Ok(Some(BufReader::with_capacity(BLOCK_BYTES, PartReader { bytes, left: MOST_BYTES })))
    }
}

/// The bytes of a part, unpacked.
pub(super) struct PartReader<'a> {
    bytes: Unpacked<Take<BufReader<&'a mut Box<dyn WorkbookSource>>>>,
    left: u64,
}

enum Unpacked<R> {
    Stored(R),
    Deflated(DeflateDecoder<R>),
}

impl Read for PartReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> IoResult<usize> {
        let read = match &mut self.bytes {
            Unpacked::Stored(bytes) => bytes.read(buffer)?,
            Unpacked::Deflated(bytes) => bytes.read(buffer)?,
        };
        let too_large =
            || broken(&format!("a part holds more than {} MiB; save the sheet as CSV or Parquet", MOST_BYTES >> 20));
        self.left = self.left.checked_sub(read as u64).ok_or_else(too_large)?;
        Ok(read)
    }
}

/// Names are compared without regard to case and to how folders are separated, as spreadsheets do.
fn key(name: &str) -> String {
    name.replace('\\', "/").trim_start_matches('/').to_lowercase()
}

fn broken(detail: &str) -> Error {
    Error::new(ErrorKind::InvalidData, detail.to_owned())
}

fn directory(source: &mut Box<dyn WorkbookSource>) -> IoResult<HashMap<String, ArchivePart>> {
    let size = source.seek(SeekFrom::End(0))?;
    let tail_starts = size.saturating_sub(END_BYTES + LONGEST_COMMENT);
    source.seek(SeekFrom::Start(tail_starts))?;
    let mut tail = Vec::new();
    source.by_ref().take(END_BYTES + LONGEST_COMMENT).read_to_end(&mut tail)?;
    let end = tail.windows(END_BYTES as usize).rposition(|window| window.starts_with(b"PK\x05\x06"));
    let end = end.and_then(|at| tail.get(at..)).ok_or_else(|| broken("the archive's end is missing"))?;
    let (count, length, starts) = (usize::from(two(end, 10)), u64::from(four(end, 12)), u64::from(four(end, 16)));
    if count > MOST_PARTS || length > LONGEST_DIRECTORY || starts.saturating_add(length) > size {
        return Err(broken("the archive's directory is larger than that of a workbook"));
    }
    source.seek(SeekFrom::Start(starts))?;
    let mut bytes = Vec::new();
    source.by_ref().take(length).read_to_end(&mut bytes)?;
    let mut parts = HashMap::with_capacity(count);
    let mut rest = bytes.as_slice();
    while rest.starts_with(b"PK\x01\x02") && parts.len() < MOST_PARTS {
        let (name_bytes, extra_bytes) = (usize::from(two(rest, 28)), usize::from(two(rest, 30)));
        let comment_bytes = usize::from(two(rest, 32));
        let name = rest.get(46..46 + name_bytes).ok_or_else(|| broken("the archive's directory is cut off"))?;
        let extra = rest.get(46 + name_bytes..46 + name_bytes + extra_bytes).unwrap_or_default();
        let (packed_bytes, header) = places(rest, extra);
        let name = String::from_utf8_lossy(name).into_owned();
        if two(rest, 8) & 1 == 1 {
            return Err(broken("the workbook is protected by a password; save it without one"));
        }
        let is_deflated = match two(rest, 10) {
            0 => false,
            8 => true,
            _ => return Err(broken("the workbook is packed as spreadsheets do not; save it again")),
        };
        parts.insert(key(&name), ArchivePart { header, packed_bytes, is_deflated });
        rest = rest.get(46 + name_bytes + extra_bytes + comment_bytes..).unwrap_or_default();
    }
    Ok(parts)
}

/// Returns the length of a part and where it begins, which large archives write behind the name.
fn places(entry: &[u8], extra: &[u8]) -> (u64, u64) {
    let (unpacked, mut packed, mut header) = (four(entry, 24), u64::from(four(entry, 20)), u64::from(four(entry, 42)));
    let mut rest = extra;
    while rest.len() >= 4 {
        let length = usize::from(two(rest, 2));
        let content = rest.get(4..4 + length).unwrap_or_default();
        if two(rest, 0) == 1 {
            let mut numbers =
                content.chunks_exact(8).map(|bytes| u64::from(four(bytes, 0)) | (u64::from(four(bytes, 4)) << 32));
            if unpacked == u32::MAX {
                numbers.next();
            }
            if packed == u64::from(u32::MAX) {
                packed = numbers.next().unwrap_or(packed);
            }
            if header == u64::from(u32::MAX) {
                header = numbers.next().unwrap_or(header);
            }
        }
        rest = rest.get(4 + length..).unwrap_or_default();
    }
    (packed, header)
}

fn two(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}
