//! How many objects the bytes of a PDF can become, before any is made of them: two bytes are enough for one, which takes
//! more than a hundred when it is read.

/// What a byte is to the parser, as far as objects begin and end there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ByteClass {
    Gap,
    Opening,
    Number,
    Letter,
}

impl ByteClass {
    fn of(byte: u8) -> Self {
        match byte {
            b'\0' | b'\t' | b'\n' | b'\x0c' | b'\r' | b' ' | b')' | b'>' | b']' | b'}' | b'%' => Self::Gap,
            b'(' | b'<' | b'[' | b'{' | b'/' => Self::Opening,
            b'0'..=b'9' | b'+' | b'-' | b'.' => Self::Number,
            _ => Self::Letter,
        }
    }
}

/// Returns how many objects and operators the bytes can be at most. Objects may touch: `1-1.2` are three numbers, and
/// `nullnull` are two nulls.
pub(super) fn most_objects(bytes: &[u8]) -> usize {
    starts(bytes).count()
}

/// Returns the bytes before the gap behind which there can be more than `most` objects.
pub(super) fn within_objects(bytes: &[u8], most: usize) -> &[u8] {
    let Some(over) = starts(bytes).nth(most) else { return bytes };
    let kept = bytes.get(..over).unwrap_or(bytes);
    let end = kept.iter().rposition(|byte| ByteClass::of(*byte) == ByteClass::Gap).unwrap_or_default();
    kept.get(..end).unwrap_or_default()
}

/// Returns the places at which an object can begin.
fn starts(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    let before = std::iter::once(ByteClass::Gap).chain(bytes.iter().map(|byte| ByteClass::of(*byte)));
    bytes.iter().zip(before).enumerate().filter_map(|(place, (byte, before))| {
        let begins = match ByteClass::of(*byte) {
            ByteClass::Gap => false,
            ByteClass::Opening => true,
            ByteClass::Number => before != ByteClass::Number || matches!(byte, b'+' | b'-' | b'.'),
            // Of `true`, `false` and `null`, which may follow each other.
            ByteClass::Letter => before != ByteClass::Letter || matches!(byte, b't' | b'f' | b'n'),
        };
        begins.then_some(place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_that_touch_are_counted() {
        for (bytes, least) in [
            ("1 2 3", 3),
            ("1-1.2+3", 4),
            ("nullnulltrue", 3),
            ("////", 4),
            ("q1q1", 4),
            ("(a)(b)[]<>", 4),
            ("<</A 1>>", 2),
        ] {
            let most = most_objects(bytes.as_bytes());
            assert!((least..=2 * least + 2).contains(&most), "{bytes}: {most}");
        }
        assert_eq!(most_objects(b""), 0);
    }

    #[test]
    fn what_is_too_much_ends_at_a_gap() {
        assert_eq!(within_objects(b"1 22 333 4", 3), b"1 22 333");
        assert_eq!(within_objects(b"1 22 333 4", 4), b"1 22 333 4");
        assert_eq!(within_objects(b"1-1-1", 2), b"");
    }
}
