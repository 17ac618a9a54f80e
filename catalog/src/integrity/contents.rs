//! What is in the files of managed tables: each says in its footer how many bytes come before its indexes and its footer, and a
//! CRC-32 over them, so that a bit that the disk has changed is noticed. Parquet has such numbers for each page; the library that
//! writes our files writes none.
//!
//! The number is a text of its own among the footer's, found by how it begins: nothing of the footer has to be decoded. Files of
//! DuckDB, and of versions before, have none.

use std::fmt;
use std::fs::File;
use std::io::{ErrorKind, Read, Result as IoResult, Seek, SeekFrom, Write};
use std::path::Path;

use crc32fast::Hasher;

/// What the text of a checksum begins with.
const BEGINNING: &str = "querent-crc32:";
/// What comes behind it: the bytes and the checksum in hexadecimal digits, with a colon between.
const NUMBER_BYTES: usize = 16 + 1 + 8;
/// What is read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// A checksum over the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageChecksum {
    bytes: u64,
    crc32: u32,
}

impl PageChecksum {
    /// The name of the text in a footer.
    pub const KEY: &'static str = "querent.checksum";

    /// Returns the one that a footer has.
    fn in_footer(footer: &[u8]) -> Option<Self> {
        // The last: what a column is called may look like one.
        let at = footer.windows(BEGINNING.len()).rposition(|part| part == BEGINNING.as_bytes())? + BEGINNING.len();
        let numbers = std::str::from_utf8(footer.get(at..at + NUMBER_BYTES)?).ok()?;
        let (bytes, crc32) = numbers.split_once(':')?;
        Some(Self { bytes: u64::from_str_radix(bytes, 16).ok()?, crc32: u32::from_str_radix(crc32, 16).ok()? })
    }
}

impl fmt::Display for PageChecksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BEGINNING}{:016x}:{:08x}", self.bytes, self.crc32)
    }
}

/// A writer that knows the checksum over what was written.
#[derive(Debug)]
pub struct ChecksumWriter<W> {
    inner: W,
    hasher: Hasher,
    bytes: u64,
}

impl<W> ChecksumWriter<W> {
    /// Returns a writer by which nothing was written.
    pub fn new(inner: W) -> Self {
        Self { inner, hasher: Hasher::new(), bytes: 0 }
    }

    /// Returns what it writes to.
    pub fn inner(&self) -> &W {
        &self.inner
    }

    /// Returns the checksum over all that was written.
    pub fn checksum(&self) -> PageChecksum {
        PageChecksum { bytes: self.bytes, crc32: self.hasher.clone().finalize() }
    }
}

impl<W: Write> Write for ChecksumWriter<W> {
    fn write(&mut self, buffer: &[u8]) -> IoResult<usize> {
        let written = self.inner.write(buffer)?;
        self.hasher.update(buffer.get(..written).unwrap_or(buffer));
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> IoResult<()> {
        self.inner.flush()
    }
}

/// Whether a file's pages are as they were written; `None` where it does not say how they were, or is not there any more.
/// Errors: what is wrong with it. Blocks.
pub(crate) fn check_pages(path: &Path) -> Result<Option<()>, String> {
    let shown = path.display();
    match read_pages(path) {
        Ok(None) => Ok(None),
        Ok(Some((said, found))) if said == found => Ok(Some(())),
        Ok(Some(_)) => {
            Err(format!("{shown} is damaged: its pages are not as they were written, by the checksum in its footer"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("{shown} cannot be read: {error}")),
    }
}

/// Returns the checksum that a Parquet file says and the one that its bytes have; `None` where it says none.
#[expect(clippy::disallowed_methods, reason = "on a blocking thread")]
fn read_pages(path: &Path) -> IoResult<Option<(PageChecksum, PageChecksum)>> {
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    if size < 12 {
        return Ok(None);
    }
    let mut length = [0; 4];
    file.seek(SeekFrom::End(-8))?;
    file.read_exact(&mut length)?;
    let footer_bytes = u64::from(u32::from_le_bytes(length));
    let Some(begins) = size.checked_sub(footer_bytes + 8) else { return Ok(None) };
    file.seek(SeekFrom::Start(begins))?;
    let mut footer = Vec::new();
    (&mut file).take(footer_bytes).read_to_end(&mut footer)?;
    let Some(said) = PageChecksum::in_footer(&footer) else { return Ok(None) };
    drop(footer);
    file.seek(SeekFrom::Start(0))?;
    let mut pages = (&mut file).take(said.bytes);
    let mut read = ChecksumWriter::new(std::io::sink());
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match pages.read(&mut piece) {
            Ok(0) => return Ok(Some((said, read.checksum()))),
            Ok(bytes) => read.write_all(piece.get(..bytes).unwrap_or_default())?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checksum_is_found_in_a_footer() {
        let mut written = ChecksumWriter::new(Vec::new());
        written.write_all(b"123456789").unwrap();
        let checksum = written.checksum();
        assert_eq!(checksum, PageChecksum { bytes: 9, crc32: 0xcbf4_3926 });
        let footer = format!("a column called querent-crc32:no, {}, {checksum}...", PageChecksum::KEY);
        assert_eq!(PageChecksum::in_footer(footer.as_bytes()), Some(checksum));
        for none in ["", "querent-crc32:", "querent-crc32:000000000000000g:00000000", "querent-crc32:00"] {
            assert_eq!(PageChecksum::in_footer(none.as_bytes()), None, "{none}");
        }
    }
}
