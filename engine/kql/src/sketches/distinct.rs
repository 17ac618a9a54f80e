//! How many distinct values there are: their hashes while they are few, and HyperLogLog's registers from there on, read
//! with Ertl's estimator (<https://arxiv.org/abs/1702.01284>), which needs no tables of corrections.

use std::collections::BTreeSet;
use std::mem::size_of;

use serde_json::{Value, json};

use super::{base64_of, bytes_of, words};

/// How many hashes are kept before there are registers.
const MAX_HASHES: usize = 2048;
/// The bits of a hash that choose its register, by Kusto's accuracies from 0 to 4.
const BITS: [u32; 5] = [12, 14, 16, 17, 18];
/// The accuracy where none is named.
pub(in super::super) const DEFAULT_ACCURACY: usize = 1;

/// The distinct values of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct Distinct {
    bits: u32,
    kept: Kept,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    Hashes(BTreeSet<u64>),
    /// The longest run of zeros, and one, that the hashes of each register begin with behind its number.
    Registers(Vec<u8>),
}

impl Distinct {
    /// None yet; `None` where there is no such accuracy.
    pub(in super::super) fn new(accuracy: usize) -> Option<Self> {
        Some(Self { bits: *BITS.get(accuracy)?, kept: Kept::Hashes(BTreeSet::new()) })
    }

    pub(in super::super) fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let bits = u32::try_from(value.get("hll")?.as_u64()?).ok().filter(|bits| BITS.contains(bits))?;
        if let Some(registers) = bytes_of(&value, "registers") {
            let is_whole = registers.len() == 1 << bits && registers.iter().all(|run| u32::from(*run) <= 65 - bits);
            return is_whole.then_some(Self { bits, kept: Kept::Registers(registers) });
        }
        let hashes = words(&bytes_of(&value, "hashes")?)?;
        (hashes.len() <= MAX_HASHES).then(|| Self { bits, kept: Kept::Hashes(hashes.into_iter().collect()) })
    }

    pub(in super::super) fn to_json(&self) -> String {
        let value = match &self.kept {
            Kept::Hashes(hashes) => {
                json!({"hll": self.bits, "hashes": base64_of(hashes.iter().flat_map(|hash| hash.to_le_bytes()))})
            }
            Kept::Registers(registers) => {
                json!({"hll": self.bits, "registers": base64_of(registers.iter().copied())})
            }
        };
        value.to_string()
    }

    pub(in super::super) fn add(&mut self, hash: u64) {
        match &mut self.kept {
            Kept::Hashes(hashes) => {
                hashes.insert(hash);
                if hashes.len() > MAX_HASHES {
                    self.kept = Kept::Registers(registers_of(hashes, self.bits));
                }
            }
            Kept::Registers(registers) => raise(registers, hash, self.bits),
        }
    }

    /// Both together, as coarse as the coarser of them.
    pub(in super::super) fn merge(&mut self, other: Self) {
        self.coarsen(other.bits);
        let mut other = other;
        other.coarsen(self.bits);
        match other.kept {
            Kept::Hashes(hashes) => hashes.into_iter().for_each(|hash| self.add(hash)),
            Kept::Registers(theirs) => {
                if let Kept::Hashes(hashes) = &self.kept {
                    self.kept = Kept::Registers(registers_of(hashes, self.bits));
                }
                if let Kept::Registers(ours) = &mut self.kept {
                    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = (*ours).max(theirs));
                }
            }
        }
    }

    /// The same with fewer registers.
    fn coarsen(&mut self, bits: u32) {
        if bits >= self.bits {
            return;
        }
        let fewer = self.bits - bits;
        if let Kept::Registers(fine) = &self.kept {
            let mut coarse = vec![0_u8; 1 << bits];
            for (group, register) in fine.chunks(1 << fewer).zip(&mut coarse) {
                let seen = group.iter().enumerate().filter(|(_, run)| **run > 0);
                // The bits that chose among the group now begin the run.
                let runs = seen.map(|(place, run)| match u32::try_from(place).unwrap_or(u32::MAX) {
                    0 => u32::from(*run) + fewer,
                    place => place.leading_zeros() - (u32::BITS - fewer) + 1,
                });
                *register = runs.max().and_then(|run| u8::try_from(run).ok()).unwrap_or(0);
            }
            self.kept = Kept::Registers(coarse);
        }
        self.bits = bits;
    }

    /// How many values there are; exact while they are few.
    pub(in super::super) fn count(&self) -> i64 {
        match &self.kept {
            Kept::Hashes(hashes) => i64::try_from(hashes.len()).unwrap_or(i64::MAX),
            // A conversion of a float saturates.
            Kept::Registers(registers) => estimate(registers, self.bits).round() as i64,
        }
    }

    /// The bytes that it takes.
    pub(in super::super) fn size(&self) -> usize {
        /// A tree's nodes are not always full.
        const BYTES_PER_HASH: usize = 2 * size_of::<u64>();
        let kept = match &self.kept {
            Kept::Hashes(hashes) => hashes.len() * BYTES_PER_HASH,
            Kept::Registers(registers) => registers.len(),
        };
        size_of::<Self>() + kept
    }
}

fn registers_of(hashes: &BTreeSet<u64>, bits: u32) -> Vec<u8> {
    let mut registers = vec![0; 1 << bits];
    hashes.iter().for_each(|hash| raise(&mut registers, *hash, bits));
    registers
}

fn raise(registers: &mut [u8], hash: u64, bits: u32) {
    // At most so many bits are left behind the register's number.
    let run = ((hash << bits).leading_zeros().min(64 - bits) + 1) as u8;
    let number = usize::try_from(hash >> (64 - bits)).unwrap_or(usize::MAX);
    if let Some(register) = registers.get_mut(number) {
        *register = (*register).max(run);
    }
}

/// Algorithm 6 of the paper.
fn estimate(registers: &[u8], bits: u32) -> f64 {
    let longest = 64 - bits as usize;
    let mut counts = vec![0.0_f64; longest + 2];
    for run in registers {
        if let Some(count) = counts.get_mut(usize::from(*run)) {
            *count += 1.0;
        }
    }
    let registers = registers.len() as f64;
    let at = |run: usize| counts.get(run).copied().unwrap_or(0.0);
    let mut sum = registers * tau(1.0 - at(longest + 1) / registers);
    for run in (1..=longest).rev() {
        sum = 0.5 * (sum + at(run));
    }
    sum += registers * sigma(at(0) / registers);
    registers * registers / (2.0 * std::f64::consts::LN_2 * sum)
}

fn sigma(part: f64) -> f64 {
    if part >= 1.0 {
        return f64::INFINITY;
    }
    let (mut power, mut weight, mut sum) = (part, 1.0, part);
    loop {
        power *= power;
        let before = sum;
        sum += power * weight;
        weight += weight;
        if sum <= before {
            return sum;
        }
    }
}

fn tau(part: f64) -> f64 {
    if part <= 0.0 || part >= 1.0 {
        return 0.0;
    }
    let (mut root, mut weight, mut sum) = (part, 1.0, 1.0 - part);
    loop {
        root = root.sqrt();
        let before = sum;
        weight *= 0.5;
        sum -= (1.0 - root).powi(2) * weight;
        if sum >= before {
            return sum / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that are spread as hashes are.
    fn hash(number: u64) -> u64 {
        let mixed =
            (number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn of(numbers: std::ops::Range<u64>, accuracy: usize) -> Distinct {
        let mut distinct = Distinct::new(accuracy).unwrap();
        numbers.for_each(|number| distinct.add(hash(number)));
        distinct
    }

    #[track_caller]
    fn near(found: i64, expected: i64) {
        assert!((found - expected).abs() * 100 <= 3 * expected, "{found}, expected {expected}");
    }

    #[test]
    fn few_are_counted_and_many_estimated() {
        assert_eq!(of(0..0, 1).count(), 0);
        assert_eq!(of(0..2000, 0).count(), 2000);
        for accuracy in 0..5 {
            for count in [5_000, 20_000, 300_000] {
                near(of(0..count, accuracy).count(), count.cast_signed());
            }
        }
        assert_eq!(Distinct::new(5), None);
    }

    #[test]
    fn merged_is_as_added_together() {
        for (left, right) in
            [(0..900, 500..1500), (0..30_000, 500..700), (0..700, 0..30_000), (0..9_000, 5_000..20_000)]
        {
            for accuracies in [[1, 1], [4, 0], [0, 3]] {
                let [mut merged, other] =
                    [(left.clone(), accuracies[0]), (right.clone(), accuracies[1])].map(|(range, it)| of(range, it));
                merged.merge(other);
                let all = of(left.start..left.end.max(right.end), accuracies[0].min(accuracies[1]));
                assert_eq!(merged, all, "{left:?} {right:?} {accuracies:?}");
            }
        }
    }

    #[test]
    fn a_stored_one_is_the_same() {
        for count in [0, 7, 50_000] {
            let distinct = of(0..count, 1);
            assert_eq!(Distinct::parse(&distinct.to_json()), Some(distinct));
        }
        for text in [
            "",
            "1",
            "{}",
            r#"{"hll":14}"#,
            r#"{"hll":60,"hashes":""}"#,
            r#"{"hll":14,"hashes":"AAA="}"#,
            r#"{"hll":14,"registers":"AAAA"}"#,
        ] {
            assert_eq!(Distinct::parse(text), None, "{text}");
        }
    }
}
