//! The number of distinct values: exact hashes while there are few, HyperLogLog registers beyond that, read with Ertl's
//! estimator (<https://arxiv.org/abs/1702.01284>), which needs no correction tables.

use std::collections::BTreeSet;
use std::mem::size_of;

use serde_json::{Value, json};

use super::{base64_of, bytes_of, words};

/// The most hashes that are kept exactly.
const MAX_HASHES: usize = 2048;
/// The number of hash bits that choose a register, for Kusto's accuracies from 0 to 4.
const BITS: [u32; 5] = [12, 14, 16, 17, 18];
/// The default accuracy.
pub(crate) const DEFAULT_ACCURACY: usize = 1;

/// The distinct values of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HyperLogLog {
    bits: u32,
    kept: HllState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum HllState {
    Hashes(BTreeSet<u64>),
    /// For each register, one more than the longest run of leading zeros in its hashes after the register's number.
    Registers(Vec<u8>),
}

impl HyperLogLog {
    /// Returns an empty sketch; `None` if there is no such accuracy.
    pub(crate) fn new(accuracy: usize) -> Option<Self> {
        Some(Self { bits: *BITS.get(accuracy)?, kept: HllState::Hashes(BTreeSet::new()) })
    }

    pub(crate) fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let bits = u32::try_from(value.get("hll")?.as_u64()?).ok().filter(|bits| BITS.contains(bits))?;
        if let Some(registers) = bytes_of(&value, "registers") {
            let is_whole = registers.len() == 1 << bits && registers.iter().all(|run| u32::from(*run) <= 65 - bits);
            return is_whole.then_some(Self { bits, kept: HllState::Registers(registers) });
        }
        let hashes = words(&bytes_of(&value, "hashes")?)?;
        (hashes.len() <= MAX_HASHES).then(|| Self { bits, kept: HllState::Hashes(hashes.into_iter().collect()) })
    }

    pub(crate) fn to_json(&self) -> String {
        let value = match &self.kept {
            HllState::Hashes(hashes) => {
                json!({"hll": self.bits, "hashes": base64_of(hashes.iter().flat_map(|hash| hash.to_le_bytes()))})
            }
            HllState::Registers(registers) => {
                json!({"hll": self.bits, "registers": base64_of(registers.iter().copied())})
            }
        };
        value.to_string()
    }

    pub(crate) fn add(&mut self, hash: u64) {
        match &mut self.kept {
            HllState::Hashes(hashes) => {
                hashes.insert(hash);
                if hashes.len() > MAX_HASHES {
                    self.kept = HllState::Registers(registers_of(hashes, self.bits));
                }
            }
            HllState::Registers(registers) => raise(registers, hash, self.bits),
        }
    }

    /// Merges another sketch. The result is as coarse as the coarser of the two.
    pub(crate) fn merge(&mut self, other: Self) {
        self.coarsen(other.bits);
        let mut other = other;
        other.coarsen(self.bits);
        match other.kept {
            HllState::Hashes(hashes) => hashes.into_iter().for_each(|hash| self.add(hash)),
            HllState::Registers(theirs) => {
                if let HllState::Hashes(hashes) = &self.kept {
                    self.kept = HllState::Registers(registers_of(hashes, self.bits));
                }
                if let HllState::Registers(ours) = &mut self.kept {
                    ours.iter_mut().zip(theirs).for_each(|(ours, theirs)| *ours = (*ours).max(theirs));
                }
            }
        }
    }

    /// Reduces the number of registers.
    fn coarsen(&mut self, bits: u32) {
        if bits >= self.bits {
            return;
        }
        let fewer = self.bits - bits;
        if let HllState::Registers(fine) = &self.kept {
            let mut coarse = vec![0_u8; 1 << bits];
            for (group, register) in fine.chunks(1 << fewer).zip(&mut coarse) {
                let seen = group.iter().enumerate().filter(|(_, run)| **run > 0);
                // The bits that chose a register of the group are now the first of the run.
                let runs = seen.map(|(place, run)| match u32::try_from(place).unwrap_or(u32::MAX) {
                    0 => u32::from(*run) + fewer,
                    place => place.leading_zeros() - (u32::BITS - fewer) + 1,
                });
                *register = runs.max().and_then(|run| u8::try_from(run).ok()).unwrap_or(0);
            }
            self.kept = HllState::Registers(coarse);
        }
        self.bits = bits;
    }

    /// Returns how many values there are; exact while there are few.
    pub(crate) fn count(&self) -> i64 {
        match &self.kept {
            HllState::Hashes(hashes) => i64::try_from(hashes.len()).unwrap_or(i64::MAX),
            // A float to integer cast saturates.
            HllState::Registers(registers) => estimate(registers, self.bits).round() as i64,
        }
    }

    /// Returns the bytes of memory.
    pub(crate) fn size(&self) -> usize {
        /// The nodes of a tree are not always full.
        const BYTES_PER_HASH: usize = 2 * size_of::<u64>();
        let kept = match &self.kept {
            HllState::Hashes(hashes) => hashes.len() * BYTES_PER_HASH,
            HllState::Registers(registers) => registers.len(),
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
    // As many bits are left after the register's number.
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

    /// Returns a number that is distributed as hashes are.
    fn hash(number: u64) -> u64 {
        let mixed =
            (number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5555).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn hll_of(numbers: std::ops::Range<u64>, accuracy: usize) -> HyperLogLog {
        let mut distinct = HyperLogLog::new(accuracy).unwrap();
        numbers.for_each(|number| distinct.add(hash(number)));
        distinct
    }

    #[track_caller]
    fn near(found: i64, expected: i64) {
        assert!((found - expected).abs() * 100 <= 3 * expected, "{found}, expected {expected}");
    }

    #[test]
    fn few_values_are_counted_and_many_estimated() {
        assert_eq!(hll_of(0..0, 1).count(), 0);
        assert_eq!(hll_of(0..2000, 0).count(), 2000);
        for accuracy in 0..5 {
            for count in [5_000, 20_000, 300_000] {
                near(hll_of(0..count, accuracy).count(), count.cast_signed());
            }
        }
        assert_eq!(HyperLogLog::new(5), None);
    }

    #[test]
    fn a_merge_equals_the_sketch_of_all_values() {
        for (left, right) in
            [(0..900, 500..1500), (0..30_000, 500..700), (0..700, 0..30_000), (0..9_000, 5_000..20_000)]
        {
            for accuracies in [[1, 1], [4, 0], [0, 3]] {
                let [mut merged, other] = [(left.clone(), accuracies[0]), (right.clone(), accuracies[1])]
                    .map(|(range, it)| hll_of(range, it));
                merged.merge(other);
                let all = hll_of(left.start..left.end.max(right.end), accuracies[0].min(accuracies[1]));
                assert_eq!(merged, all, "{left:?} {right:?} {accuracies:?}");
            }
        }
    }

    #[test]
    fn a_sketch_round_trips_through_json() {
        for count in [0, 7, 50_000] {
            let distinct = hll_of(0..count, 1);
            assert_eq!(HyperLogLog::parse(&distinct.to_json()), Some(distinct));
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
            assert_eq!(HyperLogLog::parse(text), None, "{text}");
        }
    }
}
