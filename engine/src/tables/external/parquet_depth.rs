//! How deep the columns of a Parquet file are nested, found in its footer before anything decodes that: Parquet's reader (58) makes and
//! drops the tree of columns by recursion, and Arrow's walks it so, on whatever stack there is.
//!
//! A footer is a struct of Thrift's compact protocol, of which the columns are a list near the beginning. A footer that is not
//! understood here is the reader's to refuse.

/// The deepest nesting that is read, that of JSON's lists, each of which is two levels. Twice as deep is too deep for the stack of a
/// thread that answers requests, unoptimised.
const MAX_DEPTH: usize = 260;
/// How deep structs that are skipped may nest, as in Parquet's reader.
pub(super) const MAX_SKIPPED_DEPTH: usize = 64;

/// Types of Thrift's compact protocol.
pub(super) const I32: u8 = 5;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// The field of a footer that has the columns, and the one of a column that has the number of those within it.
const SCHEMA: i64 = 2;
const NUM_CHILDREN: i64 = 5;

/// Whether the columns of a footer are nested deeper than they are read.
pub(super) fn is_too_deep(footer: &[u8]) -> bool {
    schema_depth(footer).is_some_and(|depth| depth > MAX_DEPTH)
}

/// Returns how deep columns are nested, the whole of them counted in; at least that where it is more than [`MAX_DEPTH`].
fn schema_depth(footer: &[u8]) -> Option<usize> {
    let mut footer = CompactReader { rest: footer };
    let mut last = 0;
    loop {
        let (id, kind) = footer.field(last)??;
        if (id, kind) == (SCHEMA, LIST) {
            break;
        }
        footer.skip(kind, MAX_SKIPPED_DEPTH)?;
        last = id;
    }
    let (count, kind) = footer.list()?;
    if kind != STRUCT {
        return None;
    }
    // Of each group that is open, how many of its columns are still to come.
    let mut open: Vec<i64> = Vec::new();
    let mut deepest = 0;
    for _ in 0..count {
        let children = footer.number_of_children()?;
        if let Some(left) = open.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            open.push(children);
        }
        deepest = deepest.max(open.len());
        if deepest > MAX_DEPTH {
            break;
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    Some(deepest)
}

/// Reads Thrift's compact protocol. `None`: it is not that.
pub(super) struct CompactReader<'b> {
    pub(super) rest: &'b [u8],
}

impl CompactReader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn advance(&mut self, bytes: usize) -> Option<()> {
        self.rest = self.rest.get(bytes..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }

    /// Returns a number of a field.
    pub(super) fn zigzag(&mut self) -> Option<i64> {
        let value = self.varint()?;
        let half = i64::try_from(value >> 1).ok()?;
        Some(if value & 1 == 0 { half } else { -half - 1 })
    }

    /// Returns the next field of a struct and its type; `Some(None)` at the end of the struct.
    pub(super) fn field(&mut self, last: i64) -> Option<Option<(i64, u8)>> {
        let header = self.byte()?;
        if header == 0 {
            return Some(None);
        }
        let id = match header >> 4 {
            0 => self.zigzag()?,
            ahead => last.checked_add(i64::from(ahead))?,
        };
        Some(Some((id, header & 0x0f)))
    }

    /// Returns how many items a list has, and their type.
    fn list(&mut self) -> Option<(usize, u8)> {
        let header = self.byte()?;
        let count = match header >> 4 {
            15 => self.length()?,
            few => usize::from(few),
        };
        Some((count, header & 0x0f))
    }

    fn number_of_children(&mut self) -> Option<i64> {
        let (mut children, mut last) = (0, 0);
        while let Some((id, kind)) = self.field(last)? {
            if (id, kind) == (NUM_CHILDREN, I32) {
                children = self.zigzag()?;
            } else {
                self.skip(kind, MAX_SKIPPED_DEPTH)?;
            }
            last = id;
        }
        Some(children)
    }

    /// Skips the value of a field.
    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // The type of a truth value says which it is.
            1 | 2 => Some(()),
            3 => self.advance(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.advance(8),
            8 => {
                let length = self.length()?;
                self.advance(length)
            }
            // A list, and a set.
            9 | 10 => {
                let (count, item) = self.list()?;
                (0..count).try_for_each(|_| self.skip_item(item, depth))
            }
            11 => {
                let count = self.length()?;
                let kinds = if count == 0 { 0 } else { self.byte()? };
                (0..count).try_for_each(|_| {
                    self.skip_item(kinds >> 4, depth)?;
                    self.skip_item(kinds & 0x0f, depth)
                })
            }
            12 => {
                let mut last = 0;
                while let Some((id, kind)) = self.field(last)? {
                    self.skip(kind, depth)?;
                    last = id;
                }
                Some(())
            }
            _ => None,
        }
    }

    /// Skips an item of a list or a map, where truth values are bytes.
    fn skip_item(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            1 | 2 => self.advance(1),
            other => self.skip(other, depth),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::RecordBatch;
    use arrow::datatypes::{DataType, Field, Fields, Schema};
    use parquet::arrow::ArrowWriter;

    use super::*;

    /// Groups within each other, and a column in the innermost.
    fn nested(groups: u8) -> Vec<u8> {
        let mut footer = vec![0x15, 2, 0x19, 0xfc, groups + 1];
        for _ in 0..groups {
            footer.extend([0x48, 0, 0x15, 2, 0]);
        }
        footer.extend([0x48, 0, 0]);
        footer
    }

    #[test]
    fn the_depth_of_columns_is_found() {
        let inner = DataType::Struct(Fields::from(vec![Field::new("c", DataType::Int64, true)]));
        let outer = DataType::Struct(Fields::from(vec![
            Field::new("b", inner, true),
            Field::new("d", DataType::Timestamp(arrow::datatypes::TimeUnit::Microsecond, Some("UTC".into())), true),
        ]));
        let fields = vec![Field::new("a", DataType::Utf8, false), Field::new("s", outer, true)];
        let schema = Arc::new(Schema::new(fields));
        let mut file = Vec::new();
        let mut writer = ArrowWriter::try_new(&mut file, Arc::clone(&schema), None).unwrap();
        writer.write(&RecordBatch::new_empty(schema)).unwrap();
        writer.close().unwrap();
        let end = file.len() - 8;
        let length = u32::from_le_bytes(file[end..end + 4].try_into().unwrap()) as usize;
        assert_eq!(schema_depth(&file[end - length..end]), Some(3));
    }

    #[test]
    fn nesting_beyond_the_bound_is_too_deep() {
        assert_eq!(schema_depth(&nested(100)), Some(100));
        assert!(!is_too_deep(&nested(100)));
        let mut deep = nested(100);
        // As many as two bytes say.
        deep.splice(4..5, [0xf5, 3]);
        deep.splice(6..6, std::iter::repeat_n([0x48, 0, 0x15, 2, 0], 400).flatten());
        assert!(is_too_deep(&deep));
        for damaged in [&[][..], &[0], &[0x15], &[0xff; 40], b"no footer"] {
            assert!(!is_too_deep(damaged), "{damaged:?}");
        }
    }
}
