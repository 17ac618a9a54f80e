//! Frequent combinations of values, found depth first: each combination with the rows that have it, extended by the values of
//! later columns.

/// The most combinations that are kept, and the most rows that are looked at to find them.
const MAX_FOUND: usize = 20_000;
const MAX_STEPS: usize = 200_000_000;

/// Rows whose values are numbers by column: equal values have equal numbers, from 0.
pub(super) struct CodedRows {
    pub(super) columns: Vec<Vec<u32>>,
    /// How much each row counts, for each group of rows that is compared (one, or two).
    pub(super) weights: Vec<[f64; 2]>,
}

/// A combination of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    /// The columns that it fixes.
    pub(super) columns: Vec<usize>,
    /// The rows that have it, in order.
    pub(super) rows: Vec<u32>,
    /// Their weights.
    pub(super) weights: [f64; 2],
}

/// More combinations, or more work, than is bearable.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

impl CodedRows {
    pub(super) fn weight(&self, rows: &[u32]) -> [f64; 2] {
        rows.iter().fold([0.0; 2], |[left, right], row| {
            let [more_left, more_right] = self.weights[*row as usize];
            [left + more_left, right + more_right]
        })
    }

    /// Returns the combinations of at most `most_columns` values that are `frequent` and closed: every value that all of their
    /// rows have in common is a part of them, unless they are as large as they may be.
    pub(super) fn closed_segments(
        &self,
        most_columns: usize,
        frequent: impl Fn([f64; 2]) -> bool,
    ) -> Result<Vec<Segment>, TooMany> {
        let mut search = SegmentSearch { rows: self, most_columns, frequent, found: Vec::new(), steps: 0 };
        let all: Vec<u32> = (0..self.weights.len() as u32).collect();
        search.extend(&Segment { columns: Vec::new(), weights: self.weight(&all), rows: all })?;
        Ok(search.found)
    }
}

struct SegmentSearch<'r, F> {
    rows: &'r CodedRows,
    most_columns: usize,
    frequent: F,
    found: Vec<Segment>,
    steps: usize,
}

impl<F: Fn([f64; 2]) -> bool> SegmentSearch<'_, F> {
    fn extend(&mut self, segment: &Segment) -> Result<(), TooMany> {
        if segment.columns.len() == self.most_columns {
            return Ok(());
        }
        let first = segment.columns.last().map_or(0, |last| last + 1);
        for column in first..self.rows.columns.len() {
            self.steps += segment.rows.len();
            if self.steps > MAX_STEPS {
                return Err(TooMany);
            }
            let codes = &self.rows.columns[column];
            let mut by_code: std::collections::BTreeMap<u32, Vec<u32>> = std::collections::BTreeMap::new();
            for row in &segment.rows {
                by_code.entry(codes[*row as usize]).or_default().push(*row);
            }
            for rows in by_code.into_values() {
                let weights = self.rows.weight(&rows);
                if !(self.frequent)(weights) {
                    continue;
                }
                let columns = segment.columns.iter().copied().chain([column]).collect();
                let longer = Segment { columns, rows, weights };
                if self.is_closed(&longer) {
                    if self.found.len() == MAX_FOUND {
                        return Err(TooMany);
                    }
                    self.found.push(longer.clone());
                }
                self.extend(&longer)?;
            }
        }
        Ok(())
    }

    fn is_closed(&mut self, segment: &Segment) -> bool {
        if segment.columns.len() == self.most_columns {
            return true;
        }
        let others = (0..self.rows.columns.len()).filter(|column| !segment.columns.contains(column));
        !others.into_iter().any(|column| {
            let codes = &self.rows.columns[column];
            let mut values = segment.rows.iter().map(|row| codes[*row as usize]);
            values.next().is_some_and(|first| values.all(|value| value == first))
        })
    }
}

/// Returns a few of `segments` that say much of all rows together, the one with most rows first: each covers rows that those
/// before it do not. A larger `size_weight` (0 to 1) prefers many rows, a smaller one many fixed columns.
pub(super) fn covering(mut segments: Vec<Segment>, rows: &CodedRows, size_weight: f64) -> Vec<Segment> {
    /// A segment that brings less of all rows than this is not worth its line.
    const LEAST_SHARE: f64 = 0.02;
    const MOST: usize = 20;
    let total: f64 = rows.weights.iter().map(|[left, right]| left + right).sum();
    let columns = rows.columns.len().max(1) as f64;
    let mut is_covered = vec![false; rows.weights.len()];
    let mut chosen: Vec<Segment> = Vec::new();
    while chosen.len() < MOST {
        let scored = segments.iter().enumerate().map(|(index, segment)| {
            let new: Vec<u32> = segment.rows.iter().copied().filter(|row| !is_covered[*row as usize]).collect();
            let [left, right] = rows.weight(&new);
            let share = (left + right) / total;
            let detail = segment.columns.len() as f64 / columns;
            (index, share, share.powf(size_weight) * detail.powf(1.0 - size_weight))
        });
        let worth = scored.filter(|(_, share, _)| *share >= LEAST_SHARE);
        let Some((best, ..)) = worth.reduce(|best, next| if next.2 > best.2 { next } else { best }) else { break };
        let segment = segments.swap_remove(best);
        for row in &segment.rows {
            is_covered[*row as usize] = true;
        }
        chosen.push(segment);
    }
    chosen.sort_by(|a, b| b.weights[0].total_cmp(&a.weights[0]));
    chosen
}

/// Returns those of `segments` that differ most between two groups, the largest difference first, none of which is a part of
/// another. `shares` are a segment's shares of the groups, in percent.
pub(super) fn most_different(segments: Vec<Segment>, shares: impl Fn(&Segment) -> [f64; 2]) -> Vec<Segment> {
    let difference = |segment: &Segment| {
        let [left, right] = shares(segment);
        (left - right).abs()
    };
    let mut ranked = segments;
    ranked.sort_by(|a, b| difference(b).total_cmp(&difference(a)).then(b.columns.len().cmp(&a.columns.len())));
    let mut kept: Vec<Segment> = Vec::new();
    for segment in ranked {
        let is_part = |of: &Segment, part: &Segment| {
            of.columns.iter().all(|column| part.columns.contains(column))
                && part.rows.iter().all(|row| of.rows.binary_search(row).is_ok())
        };
        if !kept.iter().any(|known| is_part(known, &segment) || is_part(&segment, known)) {
            kept.push(segment);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Six rows of two columns: (0, 0) three times, (0, 1) once, (1, 1) twice.
    fn rows() -> CodedRows {
        let columns = vec![vec![0, 0, 0, 0, 1, 1], vec![0, 0, 0, 1, 1, 1]];
        CodedRows { columns, weights: vec![[1.0, 0.0]; 6] }
    }

    #[test]
    fn only_closed_and_frequent_combinations_are_found() {
        let found = rows().closed_segments(5, |[weight, _]| weight >= 2.0).unwrap();
        let told: Vec<(Vec<usize>, f64)> = found.iter().map(|one| (one.columns.clone(), one.weights[0])).collect();
        // That the first is 1 says that the second is 1; that the second is 0 says that the first is 0.
        assert_eq!(told, [(vec![0], 4.0), (vec![0, 1], 3.0), (vec![0, 1], 2.0), (vec![1], 3.0)]);
    }

    #[test]
    fn every_row_is_covered_by_few() {
        let rows = rows();
        let found = rows.closed_segments(5, |[weight, _]| weight >= 2.0).unwrap();
        let chosen = covering(found, &rows, 0.5);
        let covered: std::collections::BTreeSet<u32> = chosen.iter().flat_map(|one| one.rows.clone()).collect();
        assert_eq!(covered.len(), 6);
        assert!(chosen.len() <= 3, "{chosen:?}");
    }

    #[test]
    fn what_differs_most_comes_first_and_alone() {
        let mut rows = rows();
        rows.weights = vec![[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]];
        let found = rows.closed_segments(5, |[left, right]| left + right > 0.0).unwrap();
        let different = most_different(found, |segment| segment.weights.map(|weight| weight / 3.0 * 100.0));
        assert_eq!(different[0].weights, [3.0, 0.0]);
        assert_eq!(different[1].weights, [0.0, 3.0]);
    }
}
