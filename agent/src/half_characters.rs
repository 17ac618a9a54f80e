//! Characters that were cut in half. A text in JSON may say one half of a pair of surrogates alone, as `\ud83d`: JavaScript counts
//! texts in such halves, so programs in it cut them there, and send the other half with the next piece, or never. No text here
//! can hold one, and a document with one is no JSON to the parser.
//!
//! [`replaced`] takes them for lost characters, as browsers show them. [`marked`] is for texts that arrive in pieces: it leaves
//! a mark for each half, and [`PieceJoiner`] makes characters of marks that belong together.

use std::ops::RangeInclusive;

/// U+FFFD, what is shown for a lost character.
const LOST: char = char::REPLACEMENT_CHARACTER;
const HIGH: RangeInclusive<u16> = 0xd800..=0xdbff;
const LOW: RangeInclusive<u16> = 0xdc00..=0xdfff;
/// The mark of a half is the character of private use that is as far above it. The same document does not use those otherwise.
const TO_MARK: u16 = 0x800;
/// `\u` and four digits.
const ESCAPE_BYTES: usize = 6;

/// Returns a JSON document with its half characters replaced by U+FFFD; `None` where it has none.
pub(crate) fn replaced(json: &[u8]) -> Option<Vec<u8>> {
    with_halves(json, |_| 0xfffd)
}

/// Returns a JSON document with its half characters marked, for [`PieceJoiner`]; `None` where it has none.
pub(crate) fn marked(json: &[u8]) -> Option<Vec<u8>> {
    with_halves(json, |half| half + TO_MARK)
}

fn with_halves(json: &[u8], shown: impl Fn(u16) -> u16) -> Option<Vec<u8>> {
    let mut written: Option<Vec<u8>> = None;
    let mut at = 0;
    while let Some(found) = json.get(at..).and_then(|rest| rest.iter().position(|byte| *byte == b'\\')) {
        at += found;
        let follows = |low: u16| LOW.contains(&low);
        at += match escaped_unit(json, at) {
            Some(high) if HIGH.contains(&high) && escaped_unit(json, at + ESCAPE_BYTES).is_some_and(follows) => {
                2 * ESCAPE_BYTES
            }
            Some(half) if HIGH.contains(&half) || LOW.contains(&half) => {
                let bytes = written.get_or_insert_with(|| json.to_vec());
                // As long as what it replaces: positions in messages stay.
                if let Some(escape) = bytes.get_mut(at..at + ESCAPE_BYTES) {
                    escape.copy_from_slice(format!("\\u{:04x}", shown(half)).as_bytes());
                }
                ESCAPE_BYTES
            }
            Some(_) => ESCAPE_BYTES,
            // Another escape: a backslash and one byte.
            None => 2,
        };
    }
    written
}

/// Returns what `\uXXXX` at this place of a document stands for.
fn escaped_unit(json: &[u8], at: usize) -> Option<u16> {
    let escape = json.get(at..at + ESCAPE_BYTES)?;
    let digits = escape.strip_prefix(b"\\u").filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Joins the pieces of one text whose characters may be cut.
#[derive(Debug, Default)]
pub(crate) struct PieceJoiner {
    /// The first half of a character, at the end of the pieces so far.
    high: Option<u16>,
}

impl PieceJoiner {
    /// Returns what the next piece adds to the text, which may be nothing yet; `is_marked` says whether it is of a document that
    /// [`marked`] wrote.
    pub(crate) fn push(&mut self, piece: String, is_marked: bool) -> String {
        if !is_marked && self.high.is_none() {
            return piece;
        }
        let mut text = String::with_capacity(piece.len() + LOST.len_utf8());
        for character in piece.chars() {
            let half = if is_marked { half_of(character) } else { None };
            match (self.high.take(), half) {
                (Some(high), Some(low)) if LOW.contains(&low) => {
                    text.extend(char::decode_utf16([high, low]).map(|joined| joined.unwrap_or(LOST)));
                    continue;
                }
                (Some(_), _) => text.push(LOST),
                (None, _) => {}
            }
            match half {
                Some(high) if HIGH.contains(&high) => self.high = Some(high),
                Some(_) => text.push(LOST),
                None => text.push(character),
            }
        }
        text
    }

    /// Returns what remains of the text once no piece follows.
    pub(crate) fn finish(&mut self) -> Option<String> {
        self.high.take().map(|_| LOST.to_string())
    }
}

/// Returns the half that the character is the mark of.
fn half_of(character: char) -> Option<u16> {
    let half = u16::try_from(u32::from(character)).ok()?.checked_sub(TO_MARK)?;
    (HIGH.contains(&half) || LOW.contains(&half)).then_some(half)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: Option<Vec<u8>>) -> String {
        serde_json::from_slice(&document.unwrap()).unwrap()
    }

    #[test]
    fn halves_are_replaced_and_all_else_stays() {
        for whole in [r#""\ud83d\ude00 \\ud83d \n \"\u00e9""#, r#""a\\\\ud83d""#, "{}", r#""\"#, r#""\ud8"#] {
            assert_eq!(replaced(whole.as_bytes()), None, "{whole}");
        }
        for (cut, shown) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""a\ud83db""#, "a\u{fffd}b"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\uD83D\ud83d\ude00\n""#, "\u{fffd}😀\n"),
            (r#""\\\ud83d\u0041""#, "\\\u{fffd}A"),
        ] {
            assert_eq!(read(replaced(cut.as_bytes())), shown, "{cut}");
        }
    }

    #[test]
    fn pieces_are_joined_wherever_they_were_cut() {
        let mut joiner = PieceJoiner::default();
        let mut said = String::new();
        for piece in [r#""so \ud83d""#, r#""\ude00, \ud83d""#, r#""\ude01""#, r#""\ude02\ud83d""#] {
            said.push_str(&joiner.push(read(marked(piece.as_bytes())), true));
        }
        said.push_str(&joiner.push("plain".to_owned(), false));
        said.push_str(&joiner.push("\u{e03d}".to_owned(), false));
        assert_eq!(joiner.finish(), None);
        assert_eq!(said, "so 😀, 😁\u{fffd}\u{fffd}plain\u{e03d}");
        assert_eq!(joiner.push(read(marked(br#""\ud83d""#)), true), "");
        assert_eq!(joiner.finish().as_deref(), Some("\u{fffd}"));
    }
}
