//! Frequent combinations of values, found depth first: each combination with the rows that have it, extended by the
//! values of later columns. Where a combination may have any number of columns, what all of its rows have in common
//! joins it at once, so that columns of one value cost nothing: Uno, Kiyomi and Arimura, LCM ver. 2 (FIMI 2004).

use std::collections::BTreeMap;

use crate::interrupt::is_interrupted;

/// The most combinations that are kept, and the most rows that are looked at to find them.
const MAX_FOUND: usize = 20_000;
const MAX_STEPS: usize = 200_000_000;
/// After how many of them it is looked whether the query is over.
const STEPS_UNTIL_LOOK: usize = 1 << 18;

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

/// More combinations, or more work, than is bearable; or the query is over.
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
        if most_columns < self.columns.len() {
            search.extend(&Segment { columns: Vec::new(), weights: self.weight(&all), rows: all })?;
        } else if !all.is_empty() {
            search.add_closed(all, None, 0)?;
        }
        Ok(search.found)
    }

    /// Returns the columns in which all of `rows` have one value.
    fn common_columns(&self, rows: &[u32]) -> Vec<usize> {
        let Some((first, others)) = rows.split_first() else { return Vec::new() };
        let is_common = |codes: &Vec<u32>| others.iter().all(|row| codes[*row as usize] == codes[*first as usize]);
        (0..self.columns.len()).filter(|column| is_common(&self.columns[*column])).collect()
    }

    /// Returns the rows by their value in a column.
    fn rows_by_value(&self, rows: &[u32], column: usize) -> BTreeMap<u32, Vec<u32>> {
        let codes = &self.columns[column];
        let mut by_value: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for row in rows {
            by_value.entry(codes[*row as usize]).or_default().push(*row);
        }
        by_value
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
    /// Counts rows that are looked at.
    fn look_at(&mut self, rows: usize) -> Result<(), TooMany> {
        let before = self.steps;
        self.steps += rows;
        let is_over = || before / STEPS_UNTIL_LOOK != self.steps / STEPS_UNTIL_LOOK && is_interrupted();
        if self.steps > MAX_STEPS || is_over() { Err(TooMany) } else { Ok(()) }
    }

    /// Adds the combination of all values that `rows` have in common, which were found by a value of the column before
    /// `next`, and those that extend it by values of columns from `next` on. Only the combination `of` that has the
    /// same columns before that one leads to it, so that each is added once.
    fn add_closed(&mut self, rows: Vec<u32>, of: Option<&[usize]>, next: usize) -> Result<(), TooMany> {
        self.look_at(rows.len() * self.rows.columns.len())?;
        let weights = self.rows.weight(&rows);
        if !(self.frequent)(weights) {
            return Ok(());
        }
        let columns = self.rows.common_columns(&rows);
        if let Some(of) = of
            && columns.iter().any(|column| column + 1 < next && !of.contains(column))
        {
            return Ok(());
        }
        if !columns.is_empty() {
            if self.found.len() == MAX_FOUND {
                return Err(TooMany);
            }
            self.found.push(Segment { columns: columns.clone(), rows: rows.clone(), weights });
        }
        for column in (next..self.rows.columns.len()).filter(|column| !columns.contains(column)) {
            for rows in self.rows.rows_by_value(&rows, column).into_values() {
                self.add_closed(rows, Some(&columns), column + 1)?;
            }
        }
        Ok(())
    }

    fn extend(&mut self, segment: &Segment) -> Result<(), TooMany> {
        if segment.columns.len() == self.most_columns {
            return Ok(());
        }
        let first = segment.columns.last().map_or(0, |last| last + 1);
        for column in first..self.rows.columns.len() {
            self.look_at(segment.rows.len())?;
            for rows in self.rows.rows_by_value(&segment.rows, column).into_values() {
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

/// Returns, unless the query is over, a few of `segments` that say much of all rows together, the one with most rows first: each covers rows that those
/// before it do not. A larger `size_weight` (0 to 1) prefers many rows, a smaller one many fixed columns.
pub(super) fn covering(mut segments: Vec<Segment>, rows: &CodedRows, size_weight: f64) -> Vec<Segment> {
    /// A segment that brings less of all rows than this is not worth its line.
    const LEAST_SHARE: f64 = 0.02;
    const MOST: usize = 20;
    let total: f64 = rows.weights.iter().map(|[left, right]| left + right).sum();
    let columns = rows.columns.len().max(1) as f64;
    let mut is_covered = vec![false; rows.weights.len()];
    let mut chosen: Vec<Segment> = Vec::new();
    while chosen.len() < MOST && !is_interrupted() {
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

/// Returns, unless the query is over, those of `segments` that differ most between two groups, the largest difference first, none of which is a part of
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
        if is_interrupted() {
            break;
        }
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
    fn columns_of_one_value_are_a_part_of_all_combinations() {
        let mut rows = rows();
        let constant: Vec<Vec<u32>> = vec![vec![7; 6]; 40];
        rows.columns.splice(1..1, constant);
        let found = rows.closed_segments(42, |[weight, _]| weight >= 2.0).unwrap();
        let told: Vec<(usize, f64)> = found.iter().map(|one| (one.columns.len(), one.weights[0])).collect();
        assert_eq!(told, [(40, 6.0), (41, 4.0), (42, 3.0), (42, 2.0), (41, 3.0)]);
        assert_eq!(rows.closed_segments(5, |[weight, _]| weight >= 2.0), Err(TooMany));
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
