//! The distribution of values. While there are few, all of them are kept with their counts; beyond that, clusters of
//! neighbours, small at both ends and larger in the middle, as in a t-digest (<https://arxiv.org/abs/1902.04023>). A
//! cluster is one of its own values rather than their mean, so a percentile is always a value that occurred. Values of
//! all types are represented by integer keys of the same order.

use std::mem::size_of;

use serde_json::{Value, json};

use super::{base64_of, bytes_of, words};
use crate::types::KqlType;

/// The most distinct values that are kept.
const MAX_POINTS: usize = 2048;
/// Compression keeps about half as many clusters.
const COMPRESSION: f64 = 2000.0;
/// The most values that are buffered before they are sorted.
const MAX_WAITING: usize = 2048;

/// The type of the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(crate) enum DigestType {
    Long,
    Real,
    DateTime,
    TimeSpan,
}

impl DigestType {
    pub(crate) fn kql_type(self) -> KqlType {
        match self {
            DigestType::Long => KqlType::Long,
            DigestType::Real => KqlType::Real,
            DigestType::DateTime => KqlType::DateTime,
            DigestType::TimeSpan => KqlType::TimeSpan,
        }
    }

    fn named(name: &str) -> Option<Self> {
        [DigestType::Long, DigestType::Real, DigestType::DateTime, DigestType::TimeSpan]
            .into_iter()
            .find(|kind| kind.kql_type().name() == name)
    }
}

/// Returns the key of a real; `None` for NaN.
pub(crate) fn key_of_real(real: f64) -> Option<i64> {
    // Both zeros have one key.
    let bits = (real + 0.0).to_bits().cast_signed();
    (!real.is_nan()).then_some(flipped(bits))
}

/// Returns the real of a key.
pub(crate) fn real_of_key(key: i64) -> f64 {
    f64::from_bits(flipped(key).cast_unsigned())
}

/// Reverses the order of negative reals, whose bits order the other way round.
fn flipped(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// A key and how many values it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WeightedKey {
    key: i64,
    weight: u64,
}

/// A t-digest of the values of a group.
#[derive(Debug, Clone)]
pub(crate) struct TDigest {
    pub(crate) kind: DigestType,
    /// Sorted.
    points: Vec<WeightedKey>,
    /// Not sorted.
    waiting: Vec<WeightedKey>,
}

impl TDigest {
    pub(crate) fn new(kind: DigestType) -> Self {
        Self { kind, points: Vec::new(), waiting: Vec::new() }
    }

    pub(crate) fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let kind = DigestType::named(value.get("tdigest")?.as_str()?)?;
        let words = words(&bytes_of(&value, "values")?)?;
        let (pairs, rest) = words.as_chunks::<2>();
        let points: Vec<WeightedKey> =
            pairs.iter().map(|[key, weight]| WeightedKey { key: key.cast_signed(), weight: *weight }).collect();
        let is_ordered = points.is_sorted_by(|a, b| a.key < b.key);
        let is_valid = rest.is_empty() && points.len() <= MAX_POINTS && points.iter().all(|point| point.weight > 0);
        (is_ordered && is_valid).then(|| Self { kind, points, waiting: Vec::new() })
    }

    pub(crate) fn json(&mut self) -> String {
        self.settle();
        let words = self.points.iter().flat_map(|point| [point.key.cast_unsigned(), point.weight]);
        json!({"tdigest": self.kind.kql_type().name(), "values": base64_of(words.flat_map(u64::to_le_bytes))})
            .to_string()
    }

    pub(crate) fn add(&mut self, key: i64, weight: u64) {
        if weight > 0 {
            self.push(WeightedKey { key, weight });
        }
    }

    /// Merges another digest. Integers become reals if the other has reals. Returns false if the types have nothing in
    /// common.
    #[must_use]
    pub(crate) fn merge(&mut self, other: Self) -> bool {
        let mut other = other;
        match (self.kind, other.kind) {
            (ours, theirs) if ours == theirs => {}
            (DigestType::Real, DigestType::Long) => other.make_real(),
            (DigestType::Long, DigestType::Real) => self.make_real(),
            _ => return false,
        }
        other.points.into_iter().chain(other.waiting).for_each(|point| self.push(point));
        true
    }

    fn make_real(&mut self) {
        self.kind = DigestType::Real;
        for point in self.points.iter_mut().chain(&mut self.waiting) {
            point.key = key_of_real(point.key as f64).unwrap_or(0);
        }
    }

    fn push(&mut self, point: WeightedKey) {
        self.waiting.push(point);
        if self.waiting.len() >= MAX_WAITING {
            self.settle();
        }
    }

    /// Sorts the buffered values in, and joins equal ones.
    pub(crate) fn settle(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let mut all = std::mem::take(&mut self.points);
        all.append(&mut self.waiting);
        all.sort_unstable_by_key(|point| point.key);
        all.dedup_by(|next, kept| {
            let is_same = next.key == kept.key;
            if is_same {
                kept.weight = kept.weight.saturating_add(next.weight);
            }
            is_same
        });
        self.points = if all.len() > MAX_POINTS { clustered(&all) } else { all };
    }

    /// Returns how many values there are.
    pub(crate) fn count(&self) -> f64 {
        weight_of(&self.points)
    }

    /// Returns the first value at which the cumulative weight reaches the percentile. Requires [`Self::settle`].
    pub(crate) fn percentile(&self, percentile: f64) -> Option<i64> {
        // Hundredths of an integer are exact.
        let wanted = percentile * self.count();
        let mut reached = 0.0;
        let found = self.points.iter().find(|point| {
            reached += point.weight as f64;
            reached * 100.0 >= wanted
        });
        found.or(self.points.last()).map(|point| point.key)
    }

    /// Returns how many values are not greater. Requires [`Self::settle`].
    pub(crate) fn rank(&self, key: i64) -> f64 {
        let not_greater = self.points.partition_point(|point| point.key <= key);
        weight_of(self.points.get(..not_greater).unwrap_or_default())
    }

    /// Returns the bytes of memory.
    pub(crate) fn size(&self) -> usize {
        size_of::<Self>() + (self.points.capacity() + self.waiting.capacity()) * size_of::<WeightedKey>()
    }
}

fn weight_of(points: &[WeightedKey]) -> f64 {
    points.iter().map(|point| point.weight as f64).sum()
}

/// The k1 scale of the paper, on which all clusters have about the same width.
fn scale(part: f64) -> f64 {
    COMPRESSION / std::f64::consts::TAU * (2.0 * part - 1.0).clamp(-1.0, 1.0).asin()
}

/// Merges neighbours into clusters, except the least and the greatest.
fn clustered(points: &[WeightedKey]) -> Vec<WeightedKey> {
    let [least, middle @ .., greatest] = points else { return points.to_vec() };
    let all = weight_of(points);
    let mut clusters = vec![*least];
    let mut before = least.weight as f64;
    let mut rest = middle;
    while !rest.is_empty() {
        let limit = scale(before / all) + 1.0;
        let mut reached = before;
        let fits = rest.iter().position(|point| {
            reached += point.weight as f64;
            scale(reached / all) > limit
        });
        // One value is a cluster whatever its weight.
        let Some((cluster, others)) = rest.split_at_checked(fits.unwrap_or(rest.len()).max(1)) else { break };
        let weight = cluster.iter().fold(0_u64, |sum, point| sum.saturating_add(point.weight));
        let half = weight_of(cluster) / 2.0;
        let mut passed = 0.0;
        let median = cluster.iter().find(|point| {
            passed += point.weight as f64;
            passed >= half
        });
        clusters.extend(median.map(|median| WeightedKey { key: median.key, weight }));
        before += weight_of(cluster);
        rest = others;
    }
    clusters.push(*greatest);
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(values: impl IntoIterator<Item = i64>) -> TDigest {
        let mut digest = TDigest::new(DigestType::Long);
        values.into_iter().for_each(|value| digest.add(value, 1));
        digest.settle();
        digest
    }

    #[test]
    fn few_values_are_exact() {
        let digest = digest_of((1..=1000).rev());
        assert_eq!(digest.percentile(50.0), Some(500));
        assert_eq!(digest.percentile(0.0), Some(1));
        assert_eq!(digest.percentile(100.0), Some(1000));
        assert!((digest.rank(685) - 685.0).abs() < f64::EPSILON);
        assert_eq!(digest_of([]).percentile(50.0), None);
        let mut weighted = TDigest::new(DigestType::Long);
        for (value, weight) in [(1, 1), (2, 2), (3, 0)] {
            weighted.add(value, weight);
        }
        weighted.settle();
        assert_eq!(weighted.percentile(50.0), Some(2));
        assert_eq!(weighted.percentile(100.0), Some(2));
    }

    #[test]
    fn many_values_are_near_and_bounded() {
        // Each number below a prime once, in pseudorandom order.
        const COUNT: i64 = 300_007;
        let mut digest = digest_of((0..COUNT).map(|number| number * 7919 % COUNT));
        assert!(digest.points.len() <= MAX_POINTS);
        assert!((digest.count() - COUNT as f64).abs() < f64::EPSILON);
        for percentile in [0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.9, 100.0] {
            let found = digest.percentile(percentile).unwrap() as f64;
            let expected = percentile / 100.0 * COUNT as f64;
            assert!((found - expected).abs() <= 0.002 * COUNT as f64, "{percentile}: {found}, expected {expected}");
        }
        let stored = TDigest::parse(&digest.json()).unwrap();
        assert_eq!(stored.points, digest.points);
        assert!(digest.merge(stored));
        digest.settle();
        assert!(digest.points.len() <= MAX_POINTS);
        assert!((digest.rank(150_000) - 300_000.0).abs() < 1_500.0);
    }

    #[test]
    fn keys_order_as_reals_do() {
        let reals = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 2.5, f64::INFINITY];
        let keys: Vec<i64> = reals.iter().filter_map(|real| key_of_real(*real)).collect();
        assert!(keys.is_sorted() && keys.len() == reals.len());
        assert_eq!(keys.iter().map(|key| real_of_key(*key)).collect::<Vec<_>>(), reals);
        assert_eq!(key_of_real(-0.0), key_of_real(0.0));
        assert_eq!(key_of_real(f64::NAN), None);
    }

    #[test]
    fn unrelated_types_do_not_merge() {
        let mut digest = digest_of([1, 2, 3]);
        let mut reals = TDigest::new(DigestType::Real);
        reals.add(key_of_real(1.5).unwrap(), 1);
        assert!(digest.merge(reals));
        digest.settle();
        assert_eq!(digest.percentile(50.0).map(real_of_key), Some(1.5));
        assert!(!digest.merge(TDigest::new(DigestType::DateTime)));
    }

    #[test]
    fn an_invalid_digest_is_none() {
        for text in [
            "",
            "null",
            r#"{"tdigest":"text","values":""}"#,
            r#"{"tdigest":"long","values":"AAAA"}"#,
            r#"{"tdigest":"long","values":"AAAAAAAAAAAAAAAAAAAAAA=="}"#,
        ] {
            assert!(TDigest::parse(text).is_none(), "{text}");
        }
    }
}
