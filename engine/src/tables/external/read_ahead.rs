//! The bytes of a file that were read and not consumed yet, of which a record is cut.
//!
//! The buffer grows only while a record does not end in it: whoever reads bounds the record.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::unreadable;
use crate::error::Result;

/// The bytes that are read at a time, at first.
const READ_BYTES: usize = 256 << 10;

/// A file that is read piece by piece. Blocks.
pub(super) struct ReadAhead {
    path: PathBuf,
    source: Box<dyn BufRead + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
}

impl ReadAhead {
    /// Returns a file of which nothing was read yet; `path` names it in errors.
    pub(super) fn new(path: &Path, source: Box<dyn BufRead + Send>) -> Self {
        Self { path: path.to_path_buf(), source, buffer: Vec::new(), start: 0, end: 0, at_end: false }
    }

    /// Returns what was read and not consumed.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns whether there is nothing more to read.
    pub(super) fn at_end(&self) -> bool {
        self.at_end
    }

    /// Reads more behind what was not consumed.
    pub(super) fn fill(&mut self) -> Result<()> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let wanted = (self.end * 2).max(READ_BYTES);
        if self.buffer.len() < wanted {
            self.buffer.resize(wanted, 0);
        }
        while self.end < wanted && !self.at_end {
            let free = self.buffer.get_mut(self.end..wanted).unwrap_or_default();
            let read = self.source.read(free).map_err(|error| unreadable(&self.path, &error))?;
            self.end += read;
            self.at_end = read == 0;
        }
        Ok(())
    }

    /// Consumes the next `count` bytes, which were read, and returns them.
    pub(super) fn consume(&mut self, count: usize) -> &[u8] {
        let start = self.start;
        self.start += count;
        self.buffer.get(start..self.start).unwrap_or_default()
    }
}
