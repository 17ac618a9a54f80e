//! Where in the text something stands: a range of bytes, on every token and every node. Always on character
//! boundaries of the text it was made from.

/// A range of bytes of the query's text, at most 4 GiB long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// From `start` up to and without `end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: offset(start), end: offset(end) }
    }

    /// From the start of this one to the end of the other.
    pub fn to(self, other: Span) -> Self {
        Self { start: self.start, end: other.end.max(self.start) }
    }

    /// The text it covers; empty where it does not fit the text.
    pub fn of(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Whether nothing stands between this one and `next`.
    pub(super) fn touches(self, next: Span) -> bool {
        self.end == next.start
    }
}

/// Offsets past 4 GiB do not occur: callers bound the text.
fn offset(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(u32::MAX)
}
