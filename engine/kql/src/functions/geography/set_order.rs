//! The order in which a hash set of texts of GNU's C++ library gives them back. Kusto keeps cells in such sets, and its
//! recorded answers are in this order: texts whose bucket is empty come first, others before those of their bucket.

use std::collections::HashSet;

/// How many buckets there are once the set has grown.
const BUCKETS: &[usize] = &[29, 59, 127, 257, 541, 1_109, 2_357, 5_087, 10_273, 20_753, 42_043, 85_229, 172_933];

/// The buckets of a set that first has none, of one that is made for six or seven texts, and of one made for eight.
pub(in crate::functions) const BUCKETS_OF_EMPTY: usize = 13;
pub(in crate::functions) const BUCKETS_FOR_SIX: usize = 7;
pub(in crate::functions) const BUCKETS_FOR_EIGHT: usize = 11;

/// The link before the first text.
const START: usize = 0;

/// Links of texts: each has the number of the one after it. That of a text is one more than its place.
struct TextLinks {
    hashes: Vec<u64>,
    next: Vec<Option<usize>>,
    /// For each bucket the link before its first text.
    before: Vec<Option<usize>>,
}

impl TextLinks {
    fn bucket(&self, link: usize) -> usize {
        (self.hashes[link] % self.before.len() as u64) as usize
    }

    fn insert(&mut self, link: usize) {
        let bucket = self.bucket(link);
        if let Some(before) = self.before[bucket] {
            self.next[link] = self.next[before];
            self.next[before] = Some(link);
            return;
        }
        let second = self.next[START];
        self.next[link] = second;
        self.next[START] = Some(link);
        self.before[bucket] = Some(START);
        if let Some(second) = second {
            let moved = self.bucket(second);
            self.before[moved] = Some(link);
        }
    }

    /// Returns the links in their order.
    fn ordered(&self) -> Vec<usize> {
        std::iter::successors(self.next[START], |link| self.next[*link]).collect()
    }

    fn grow(&mut self, buckets: usize) {
        let links = self.ordered();
        self.before = vec![None; buckets];
        self.next[START] = None;
        for link in links {
            self.insert(link);
        }
    }
}

/// Returns texts, each once, in the order of a set of so many buckets that they are inserted into as they come.
pub(in crate::functions) fn in_set_order(texts: impl IntoIterator<Item = String>, buckets: usize) -> Vec<String> {
    let mut known = HashSet::new();
    let texts: Vec<String> = texts.into_iter().filter(|text| known.insert(text.clone())).collect();
    let mut links = TextLinks { hashes: vec![0], next: vec![None], before: vec![None; buckets] };
    for (place, text) in texts.iter().enumerate() {
        let least = 2 * links.before.len();
        if place == links.before.len() {
            links.grow(BUCKETS.iter().copied().find(|buckets| *buckets >= least).unwrap_or(least + 1));
        }
        links.hashes.push(hash(text.as_bytes()));
        links.next.push(None);
        links.insert(place + 1);
    }
    let mut texts: Vec<Option<String>> = texts.into_iter().map(Some).collect();
    links.ordered().into_iter().filter_map(|link| texts.get_mut(link - 1)?.take()).collect()
}

/// Returns the hash of GNU's C++ library, which is A. Appleby's MurmurHash64A with a seed of its own.
fn hash(bytes: &[u8]) -> u64 {
    const SEED: u64 = 0xc70f_6907;
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |part: u64| part ^ (part >> 47);
    let number = |part: &[u8]| part.iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(FACTOR);
    for chunk in bytes.chunks(8) {
        let part = number(chunk);
        let part = if chunk.len() == 8 { mix(part.wrapping_mul(FACTOR)).wrapping_mul(FACTOR) } else { part };
        hash = (hash ^ part).wrapping_mul(FACTOR);
    }
    mix(mix(hash).wrapping_mul(FACTOR))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a program of GNU's C++ library (GCC 12) printed.
    #[test]
    fn texts_come_as_in_the_set() {
        const FIRST_OF: &[(usize, &[&str])] = &[
            (5, &["4fffffff", "3fffffff", "2fffffff", "1fffffff", "0fffffff"]),
            (13, &["bfffffff", "cfffffff", "afffffff", "7fffffff", "9fffffff"]),
            (14, &["dfffffff", "0fffffff", "1fffffff", "2fffffff", "5fffffff"]),
            (30, &["1dfffffff", "bfffffff", "ffffffff", "cfffffff", "afffffff"]),
            (1_000, &["3e6fffffff", "3e5fffffff", "3e4fffffff", "3e3fffffff", "3e1fffffff"]),
            (50_000, &["c34efffffff", "c349fffffff", "c348fffffff", "c346fffffff", "c345fffffff"]),
        ];
        let texts = |count: usize| (0..count).map(|number| format!("{number:x}fffffff")).collect::<Vec<_>>();
        for (count, first) in FIRST_OF {
            let ordered = in_set_order(texts(*count), BUCKETS_OF_EMPTY);
            assert_eq!(ordered.len(), *count);
            assert_eq!(ordered[..first.len()], **first, "{count}");
        }
    }
}
