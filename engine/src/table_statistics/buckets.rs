//! Ranges of a histogram: equally wide, on whole numbers and days where the values are such.

use chrono::DateTime;

use super::HistogramBucket;

const MAX_BUCKETS: usize = 20;
const DAY_SECONDS: f64 = 86_400.0;

/// What the numbers of a column are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BucketScale {
    /// Integers.
    Whole,
    /// Any numbers.
    Number,
    /// Midnights, in seconds since 1970.
    Day,
    /// Seconds since 1970.
    Instant,
}

/// Ranges that cover what lies between two numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Buckets {
    scale: BucketScale,
    least: f64,
    most: f64,
    width: f64,
    count: usize,
}

impl Buckets {
    pub(super) fn new(scale: BucketScale, least: f64, most: f64) -> Self {
        let span = most - least;
        let unit = match scale {
            BucketScale::Whole => Some(1.0),
            BucketScale::Day => Some(DAY_SECONDS),
            BucketScale::Number | BucketScale::Instant => None,
        };
        let (width, count) = match unit {
            Some(unit) => {
                let units = (span / unit).round() + 1.0;
                let width = (units / MAX_BUCKETS as f64).ceil().max(1.0);
                (width * unit, (units / width).ceil())
            }
            None if span > 0.0 => (span / MAX_BUCKETS as f64, MAX_BUCKETS as f64),
            None => (1.0, 1.0),
        };
        Self { scale, least, most, width, count: (count as usize).clamp(1, MAX_BUCKETS) }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the number of the range, in SQL, of what the expression `number` is.
    pub(super) fn expression(&self, number: &str) -> String {
        let (least, width, last) = (literal(self.least), literal(self.width), self.count - 1);
        format!("greatest(0, least({last}, CAST(floor(({number} - {least}) / {width}) AS BIGINT)))")
    }

    /// Returns the ranges with their rows.
    pub(super) fn with_rows(&self, rows: Vec<u64>) -> Vec<HistogramBucket> {
        let ranges = rows.into_iter().enumerate().map(|(at, rows)| {
            let from = self.least + self.width * at as f64;
            let to = if at + 1 == self.count { self.most } else { from + self.width };
            HistogramBucket { from: self.text(from), to: self.text(to), rows }
        });
        ranges.collect()
    }

    fn text(&self, number: f64) -> String {
        let format = match self.scale {
            BucketScale::Whole => return format!("{number:.0}"),
            BucketScale::Number => return number.to_string(),
            BucketScale::Day => "%Y-%m-%d",
            BucketScale::Instant => "%Y-%m-%d %H:%M:%S",
        };
        match DateTime::from_timestamp(number.floor() as i64, 0) {
            Some(instant) => instant.format(format).to_string(),
            None => number.to_string(),
        }
    }
}

/// Returns the number as a literal that SQL takes for a DOUBLE.
fn literal(number: f64) -> String {
    format!("({number:e})")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(buckets: Buckets) -> Vec<(String, String)> {
        let shown = buckets.with_rows(vec![0; buckets.len()]);
        shown.into_iter().map(|bucket| (bucket.from, bucket.to)).collect()
    }

    #[test]
    fn few_whole_numbers_have_a_range_each() {
        let three = ranges(Buckets::new(BucketScale::Whole, 3.0, 5.0));
        assert_eq!(three, [("3", "4"), ("4", "5"), ("5", "5")].map(|(from, to)| (from.to_owned(), to.to_owned())));
        assert_eq!(Buckets::new(BucketScale::Whole, 0.0, 49.0).len(), 17, "three numbers a range");
        assert_eq!(ranges(Buckets::new(BucketScale::Whole, 7.0, 7.0)), [("7".to_owned(), "7".to_owned())]);
    }

    #[test]
    fn days_begin_at_midnight() {
        let days = ranges(Buckets::new(BucketScale::Day, 0.0, 364.0 * DAY_SECONDS));
        assert_eq!(days[0], ("1970-01-01".to_owned(), "1970-01-20".to_owned()));
        assert_eq!(days.last().unwrap().1, "1970-12-31");
    }

    #[test]
    fn one_number_is_one_range() {
        assert_eq!(ranges(Buckets::new(BucketScale::Number, 1.5, 1.5)), [("1.5".to_owned(), "1.5".to_owned())]);
        assert_eq!(Buckets::new(BucketScale::Number, -1.0, 1.0).len(), MAX_BUCKETS);
        assert_eq!(
            Buckets::new(BucketScale::Number, -1.0, 1.0).expression("x"),
            "greatest(0, least(19, CAST(floor((x - (-1e0)) / (1e-1)) AS BIGINT)))"
        );
    }
}
