//! Numbers that look random and are the same each time, and damaged copies of what is sent.

/// The longest input that is made: what is beyond it is another test's, of limits.
const MAX_BYTES: usize = 16 * 1_024;
/// Pieces that mean something to one parser or another.
const PIECES: [&[u8]; 40] = [
    b"(",
    b")",
    b"[",
    b"{",
    b"}",
    b"\"",
    b"'",
    b"\\",
    b"\0",
    b",",
    b":",
    b"--",
    b"/*",
    b"$1",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"1e400",
    b"-9223372036854775808",
    b"18446744073709551616",
    b"NaN",
    b"\xe2\x80\xae",
    b"\xf0\x9f\x98\x80",
    b"../../..",
    b"file:///etc/passwd",
    b"UNION ALL SELECT",
    b"WITH x AS (",
    b" OR 1=1",
    b"CASE WHEN",
    b"::",
    b"|",
    b"INTERVAL",
    b"TIMESTAMP '0000-00-00'",
    b"\x08\x96\x01",
    b"PAR1",
    b"\x1f\x8b\x08",
];

/// Numbers by splitmix64, from a seed.
#[derive(Debug, Clone)]
pub struct RandomNumbers(u64);

impl RandomNumbers {
    /// The numbers of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end.max(1) as u64) as usize
    }

    /// One of several texts.
    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }

    /// True so many times in a hundred.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// Makes damaged copies of inputs: bytes changed, cut out, repeated, nested, and parts of others put in.
#[derive(Debug)]
pub struct Mutator {
    numbers: RandomNumbers,
    corpus: Vec<Vec<u8>>,
}

impl Mutator {
    /// A mutator of these inputs, of which there must be one.
    pub fn new(seed: u64, corpus: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        let corpus: Vec<Vec<u8>> = corpus.into_iter().map(Into::into).collect();
        assert!(!corpus.is_empty(), "there is nothing to damage");
        Self { numbers: RandomNumbers::new(seed), corpus }
    }

    /// A damaged copy of one of the inputs.
    pub fn damaged(&mut self) -> Vec<u8> {
        let chosen = self.numbers.below(self.corpus.len());
        let mut bytes = self.corpus[chosen].clone();
        for _ in 0..=self.numbers.below(4) {
            self.damage(&mut bytes);
        }
        bytes.truncate(MAX_BYTES);
        bytes
    }

    /// The same as text.
    pub fn damaged_text(&mut self) -> String {
        String::from_utf8_lossy(&self.damaged()).into_owned()
    }

    fn damage(&mut self, bytes: &mut Vec<u8>) {
        let at = self.numbers.below(bytes.len() + 1);
        let end = (at + 1 + self.numbers.below(40)).min(bytes.len());
        match self.numbers.below(9) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end.max(at))),
            2 => {
                let piece = PIECES[self.numbers.below(PIECES.len())];
                bytes.splice(at..at, piece.iter().copied());
            }
            3 => {
                let piece = PIECES[self.numbers.below(PIECES.len())];
                bytes.splice(at..end.max(at), piece.iter().copied());
            }
            4 => {
                let repeated = bytes[at..end.max(at)].repeat(1 + self.numbers.below(60));
                bytes.splice(at..at, repeated);
            }
            5 => {
                let depth = 1 << self.numbers.below(11);
                let (open, close) = [(b'(', b')'), (b'[', b']'), (b'{', b'}')][self.numbers.below(3)];
                bytes.splice(end.max(at)..end.max(at), vec![close; depth]);
                bytes.splice(at..at, vec![open; depth]);
            }
            6 => {
                let other = &self.corpus[self.numbers.below(self.corpus.len())];
                let from = self.numbers.below(other.len() + 1);
                let part = &other[from..(from + 64).min(other.len())];
                bytes.splice(at..end.max(at), part.iter().copied());
            }
            7 => {
                // A number becomes another one.
                if let Some(digit) = bytes.iter_mut().skip(at).find(|byte| byte.is_ascii_digit()) {
                    *digit = b'0' + self.numbers.below(10) as u8;
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [0, 0x7f, 0x80, 0xff, *byte ^ 1, self.numbers.below(256) as u8][self.numbers.below(6)];
                }
            }
        }
    }
}
