//! The range of bytes of a token or a node in its query, always on character boundaries.

/// A range of bytes of the query's text, at most 4 GiB long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// Returns the span from `start` up to and without `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: offset(start), end: offset(end) }
    }

    /// Returns the span from the start of this one to the end of the other.
    pub fn to(self, other: Span) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }

    /// Returns the part of `text` that it covers; empty where it does not fit.
    pub fn slice(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether `next` follows directly.
    pub(super) fn touches(self, next: Span) -> bool {
        self.end == next.start
    }
}

/// Offsets past 4 GiB do not occur: callers bound the length of a query.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
