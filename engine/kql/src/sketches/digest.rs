//! How values are distributed: all of them with how often each is there while they are few, and from there on clusters
//! of neighbours, small at both ends and larger in the middle, as a t-digest has them
//! (<https://arxiv.org/abs/1902.04023>). A cluster is one of its own values rather than their mean, so a percentile is
//! always a value that was there. Values of all types are whole numbers here, which order as the values do.

use std::mem::size_of;

use serde_json::{Value, json};

use super::super::types::KqlType;
use super::{base64_of, bytes_of, words};

/// How many different values are kept as they are.
const MAX_POINTS: usize = 2048;
/// About half as many clusters come of them.
const COMPRESSION: f64 = 2000.0;
/// How many values wait to be put in order.
const MAX_WAITING: usize = 2048;

/// Of which type the values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(in super::super) enum Kind {
    Long,
    Real,
    DateTime,
    TimeSpan,
}

impl Kind {
    pub(in super::super) fn kql_type(self) -> KqlType {
        match self {
            Kind::Long => KqlType::Long,
            Kind::Real => KqlType::Real,
            Kind::DateTime => KqlType::DateTime,
            Kind::TimeSpan => KqlType::TimeSpan,
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Kind::Long, Kind::Real, Kind::DateTime, Kind::TimeSpan].into_iter().find(|kind| kind.kql_type().name() == name)
    }
}

/// The whole number that stands for a real; `None` for what is no number.
pub(in super::super) fn key_of_real(real: f64) -> Option<i64> {
    // Both zeros are one.
    let bits = (real + 0.0).to_bits().cast_signed();
    (!real.is_nan()).then_some(flipped(bits))
}

/// The real that a whole number stands for.
pub(in super::super) fn real_of_key(key: i64) -> f64 {
    f64::from_bits(flipped(key).cast_unsigned())
}

/// Negative reals order the other way round than their bits do.
fn flipped(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

/// A value that stands for so many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Point {
    key: i64,
    weight: u64,
}

/// The values of a group.
#[derive(Debug, Clone)]
pub(in super::super) struct Digest {
    pub(in super::super) kind: Kind,
    /// In order.
    points: Vec<Point>,
    /// In none.
    waiting: Vec<Point>,
}

impl Digest {
    pub(in super::super) fn new(kind: Kind) -> Self {
        Self { kind, points: Vec::new(), waiting: Vec::new() }
    }

    pub(in super::super) fn parse(json: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(json).ok()?;
        let kind = Kind::named(value.get("tdigest")?.as_str()?)?;
        let words = words(&bytes_of(&value, "values")?)?;
        let (pairs, rest) = words.as_chunks::<2>();
        let points: Vec<Point> =
            pairs.iter().map(|[key, weight]| Point { key: key.cast_signed(), weight: *weight }).collect();
        let is_ordered = points.is_sorted_by(|a, b| a.key < b.key);
        let is_valid = rest.is_empty() && points.len() <= MAX_POINTS && points.iter().all(|point| point.weight > 0);
        (is_ordered && is_valid).then(|| Self { kind, points, waiting: Vec::new() })
    }

    pub(in super::super) fn json(&mut self) -> String {
        self.settle();
        let words = self.points.iter().flat_map(|point| [point.key.cast_unsigned(), point.weight]);
        json!({"tdigest": self.kind.kql_type().name(), "values": base64_of(words.flat_map(u64::to_le_bytes))})
            .to_string()
    }

    pub(in super::super) fn add(&mut self, key: i64, weight: u64) {
        if weight > 0 {
            self.push(Point { key, weight });
        }
    }

    /// Both together; whole numbers become reals where the others are. False where their types have nothing in common.
    #[must_use]
    pub(in super::super) fn merge(&mut self, other: Self) -> bool {
        let mut other = other;
        match (self.kind, other.kind) {
            (ours, theirs) if ours == theirs => {}
            (Kind::Real, Kind::Long) => other.make_real(),
            (Kind::Long, Kind::Real) => self.make_real(),
            _ => return false,
        }
        other.points.into_iter().chain(other.waiting).for_each(|point| self.push(point));
        true
    }

    fn make_real(&mut self) {
        self.kind = Kind::Real;
        for point in self.points.iter_mut().chain(&mut self.waiting) {
            point.key = key_of_real(point.key as f64).unwrap_or(0);
        }
    }

    fn push(&mut self, point: Point) {
        self.waiting.push(point);
        if self.waiting.len() >= MAX_WAITING {
            self.settle();
        }
    }

    /// Puts all values in order, equal ones together.
    pub(in super::super) fn settle(&mut self) {
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

    /// How many values there are.
    pub(in super::super) fn count(&self) -> f64 {
        weight_of(&self.points)
    }

    /// The first value with which as many are reached as the percentile is of all. Values must be settled.
    pub(in super::super) fn percentile(&self, percentile: f64) -> Option<i64> {
        // Hundredths of a whole number are exact.
        let wanted = percentile * self.count();
        let mut reached = 0.0;
        let found = self.points.iter().find(|point| {
            reached += point.weight as f64;
            reached * 100.0 >= wanted
        });
        found.or(self.points.last()).map(|point| point.key)
    }

    /// How many values are no greater. Values must be settled.
    pub(in super::super) fn rank(&self, key: i64) -> f64 {
        let not_greater = self.points.partition_point(|point| point.key <= key);
        weight_of(self.points.get(..not_greater).unwrap_or_default())
    }

    /// The bytes that it takes.
    pub(in super::super) fn size(&self) -> usize {
        size_of::<Self>() + (self.points.capacity() + self.waiting.capacity()) * size_of::<Point>()
    }
}

fn weight_of(points: &[Point]) -> f64 {
    points.iter().map(|point| point.weight as f64).sum()
}

/// The k1 scale of the paper, on which all clusters are about as wide.
fn scale(part: f64) -> f64 {
    COMPRESSION / std::f64::consts::TAU * (2.0 * part - 1.0).clamp(-1.0, 1.0).asin()
}

/// Neighbours as one value, the least and the greatest aside.
fn clustered(points: &[Point]) -> Vec<Point> {
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
        // One value is a cluster however much it weighs.
        let Some((cluster, others)) = rest.split_at_checked(fits.unwrap_or(rest.len()).max(1)) else { break };
        let weight = cluster.iter().fold(0_u64, |sum, point| sum.saturating_add(point.weight));
        let half = weight_of(cluster) / 2.0;
        let mut passed = 0.0;
        let median = cluster.iter().find(|point| {
            passed += point.weight as f64;
            passed >= half
        });
        clusters.extend(median.map(|median| Point { key: median.key, weight }));
        before += weight_of(cluster);
        rest = others;
    }
    clusters.push(*greatest);
    clusters
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl IntoIterator<Item = i64>) -> Digest {
        let mut digest = Digest::new(Kind::Long);
        values.into_iter().for_each(|value| digest.add(value, 1));
        digest.settle();
        digest
    }

    #[test]
    fn few_are_kept_as_they_are() {
        let digest = of((1..=1000).rev());
        assert_eq!(digest.percentile(50.0), Some(500));
        assert_eq!(digest.percentile(0.0), Some(1));
        assert_eq!(digest.percentile(100.0), Some(1000));
        assert!((digest.rank(685) - 685.0).abs() < f64::EPSILON);
        assert_eq!(of([]).percentile(50.0), None);
        let mut weighted = Digest::new(Kind::Long);
        for (value, weight) in [(1, 1), (2, 2), (3, 0)] {
            weighted.add(value, weight);
        }
        weighted.settle();
        assert_eq!(weighted.percentile(50.0), Some(2));
        assert_eq!(weighted.percentile(100.0), Some(2));
    }

    #[test]
    fn many_are_near_and_bounded() {
        // Each number below a prime once, in an order that is none.
        const COUNT: i64 = 300_007;
        let mut digest = of((0..COUNT).map(|number| number * 7919 % COUNT));
        assert!(digest.points.len() <= MAX_POINTS);
        assert!((digest.count() - COUNT as f64).abs() < f64::EPSILON);
        for percentile in [0.0, 0.1, 1.0, 25.0, 50.0, 90.0, 99.9, 100.0] {
            let found = digest.percentile(percentile).unwrap() as f64;
            let expected = percentile / 100.0 * COUNT as f64;
            assert!((found - expected).abs() <= 0.002 * COUNT as f64, "{percentile}: {found}, expected {expected}");
        }
        let stored = Digest::parse(&digest.json()).unwrap();
        assert_eq!(stored.points, digest.points);
        assert!(digest.merge(stored));
        digest.settle();
        assert!(digest.points.len() <= MAX_POINTS);
        assert!((digest.rank(150_000) - 300_000.0).abs() < 1_500.0);
    }

    #[test]
    fn reals_order_as_their_keys_do() {
        let reals = [f64::NEG_INFINITY, -2.5, -1e-300, 0.0, 1e-300, 2.5, f64::INFINITY];
        let keys: Vec<i64> = reals.iter().filter_map(|real| key_of_real(*real)).collect();
        assert!(keys.is_sorted() && keys.len() == reals.len());
        assert_eq!(keys.iter().map(|key| real_of_key(*key)).collect::<Vec<_>>(), reals);
        assert_eq!(key_of_real(-0.0), key_of_real(0.0));
        assert_eq!(key_of_real(f64::NAN), None);
    }

    #[test]
    fn types_that_have_nothing_in_common_do_not_merge() {
        let mut digest = of([1, 2, 3]);
        let mut reals = Digest::new(Kind::Real);
        reals.add(key_of_real(1.5).unwrap(), 1);
        assert!(digest.merge(reals));
        digest.settle();
        assert_eq!(digest.percentile(50.0).map(real_of_key), Some(1.5));
        assert!(!digest.merge(Digest::new(Kind::DateTime)));
    }

    #[test]
    fn what_is_no_digest_is_not_read() {
        for text in [
            "",
            "null",
            r#"{"tdigest":"text","values":""}"#,
            r#"{"tdigest":"long","values":"AAAA"}"#,
            r#"{"tdigest":"long","values":"AAAAAAAAAAAAAAAAAAAAAA=="}"#,
        ] {
            assert!(Digest::parse(text).is_none(), "{text}");
        }
    }
}
