//! A chart before it is written: which columns go where, whether it can be read, and the rules that propose it.
//!
//! The rules, first that fits; a dimension is a column of times, of a calendar or of categories that is not the same
//! in every row, and of those that differ in each row (a code and its name) only the last counts:
//!
//! | dimensions | chart of the measures |
//! |---|---|
//! | one of time | a line a measure of like size; points where an instant repeats |
//! | one of time, one category | a line a category; bars of the categories, a colour a time |
//! | two of a calendar | a line over the second, a colour a value of the first |
//! | one category | bars of the measures of like size; points where a category repeats |
//! | two categories | grouped bars, a colour a value of that which has fewer |
//! | none | points of the first two measures |

use std::collections::HashSet;

use super::column_roles::{ChartColumn, ColumnKind, ColumnRole};
use super::spec::MarkType;

/// Rows of a chart.
const MIN_ROWS: usize = 2;
const MAX_ROWS: usize = 2_000;
/// Categories on an axis.
const MAX_CATEGORIES: usize = 50;
/// Bars over time, and bars in all.
const MAX_BARS: usize = 200;
/// Colours that can be distinguished.
const MAX_COLORS: usize = 10;
/// Measures in one chart.
const MAX_MEASURES: usize = 8;
/// Measures whose largest values differ by more than this do not share an axis.
const LIKE_SIZE: f64 = 20.0;
/// Bars are horizontal when there are more, or when a label is longer.
const MAX_STANDING: usize = 12;
const MAX_LABEL_CHARS: usize = 12;

/// Which columns go where, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ChartPlan {
    pub(super) mark: MarkType,
    /// The column that the values are drawn over.
    pub(super) base: usize,
    /// At least one; several are distinguished by colour.
    pub(super) measures: Vec<usize>,
    /// Distinguishes series.
    pub(super) color: Option<usize>,
    /// Whether the bars of one place stand side by side.
    pub(super) is_grouped: bool,
    /// Whether `base` is on y.
    pub(super) is_horizontal: bool,
}

impl ChartPlan {
    pub(super) fn new(mark: MarkType, base: usize, measures: impl Into<Vec<usize>>) -> Self {
        Self { mark, base, measures: measures.into(), color: None, is_grouped: false, is_horizontal: false }
    }

    pub(super) fn colored(self, color: usize) -> Self {
        Self { color: Some(color), is_grouped: self.mark == MarkType::Bar, ..self }
    }

    /// Whether the chart can be drawn and read.
    pub(super) fn fits(&self, columns: &[ChartColumn<'_>], rows: usize) -> bool {
        let Some(base) = columns.get(self.base).filter(|base| base.role != ColumnRole::Ignored) else { return false };
        let used: Vec<usize> = [self.base].into_iter().chain(self.measures.iter().copied()).chain(self.color).collect();
        let each_once = used.iter().collect::<HashSet<_>>().len() == used.len();
        let are_numbers = self.measures.iter().all(|measure| {
            columns
                .get(*measure)
                .is_some_and(|column| column.kind == ColumnKind::Number && column.role != ColumnRole::Ignored)
        });
        let color = match self.color {
            None => None,
            Some(color) => match columns.get(color) {
                Some(column) if column.role != ColumnRole::Ignored && column.distinct <= MAX_COLORS => Some(column),
                _ => return false,
            },
        };
        let several = self.measures.len() > 1;
        if !(MIN_ROWS..=MAX_ROWS).contains(&rows)
            || !each_once
            || !are_numbers
            || !(1..=MAX_MEASURES).contains(&self.measures.len())
            || (several && color.is_some())
            || !self.has_marks(columns)
        {
            return false;
        }
        let is_one_a_place = match color {
            None => base.is_unique(),
            Some(color) => base.values.iter().zip(&color.values).collect::<HashSet<_>>().len() == base.values.len(),
        };
        match self.mark {
            MarkType::Point => {
                !several && (base.role == ColumnRole::Measure || base.is_ordered() || base.distinct <= MAX_CATEGORIES)
            }
            MarkType::Line | MarkType::Area => is_one_a_place && base.role != ColumnRole::Category,
            MarkType::Bar => {
                let places = if base.role == ColumnRole::Time { MAX_BARS } else { MAX_CATEGORIES };
                is_one_a_place && base.distinct <= places && rows * self.measures.len() <= MAX_BARS
            }
        }
    }

    /// Whether any row has both a place and a value.
    fn has_marks(&self, columns: &[ChartColumn<'_>]) -> bool {
        let Some(base) = columns.get(self.base) else { return false };
        let measures = self.measures.iter().filter_map(|measure| columns.get(*measure));
        let both = |measure: &ChartColumn<'_>| {
            base.drawable.iter().zip(&measure.drawable).any(|(place, value)| *place && *value)
        };
        measures.into_iter().any(both)
    }

    /// Makes bars horizontal where vertical ones have no room for their labels.
    pub(super) fn laid_out(self, columns: &[ChartColumn<'_>]) -> Self {
        let lies = self.mark == MarkType::Bar
            && columns.get(self.base).is_some_and(|base| {
                base.role == ColumnRole::Category && (base.distinct > MAX_STANDING || base.longest > MAX_LABEL_CHARS)
            });
        Self { is_horizontal: self.is_horizontal || lies, ..self }
    }
}

/// Returns the charts that the rules propose, best first; not all of them fit.
pub(super) fn proposals(columns: &[ChartColumn<'_>]) -> Vec<ChartPlan> {
    use MarkType::{Bar, Line, Point};
    let measures: Vec<usize> = with(columns, |column| column.role == ColumnRole::Measure);
    let Some(first) = measures.first().copied() else { return Vec::new() };
    let alike = of_like_size(columns, &measures);
    let ordered = with(columns, |column| column.is_ordered() && column.distinct > 1);
    let categories =
        named_once(columns, with(columns, |column| column.role == ColumnRole::Category && column.distinct > 1));
    match (ordered.as_slice(), categories.as_slice()) {
        ([time], []) => {
            vec![
                ChartPlan::new(Line, *time, alike),
                ChartPlan::new(Line, *time, [first]),
                ChartPlan::new(Point, *time, [first]),
            ]
        }
        ([time], [category]) => {
            vec![
                ChartPlan::new(Line, *time, [first]).colored(*category),
                ChartPlan::new(Bar, *category, [first]).colored(*time),
            ]
        }
        ([outer, inner], []) => vec![
            ChartPlan::new(Line, *inner, [first]).colored(*outer),
            ChartPlan::new(Line, *outer, [first]).colored(*inner),
            ChartPlan::new(Line, *outer, [first]),
        ],
        ([], [category]) => {
            let mut plans = vec![ChartPlan::new(Bar, *category, alike), ChartPlan::new(Bar, *category, [first])];
            if let Some(second) = measures.get(1) {
                plans.push(ChartPlan::new(Point, first, [*second]).colored(*category));
                plans.push(ChartPlan::new(Point, first, [*second]));
            } else {
                plans.push(ChartPlan { is_horizontal: true, ..ChartPlan::new(Point, *category, [first]) });
            }
            plans
        }
        ([], [one, other]) => {
            let distinct = |index: &usize| columns.get(*index).map_or(0, |column| column.distinct);
            let (base, color) = if distinct(one) >= distinct(other) { (one, other) } else { (other, one) };
            vec![ChartPlan::new(Bar, *base, [first]).colored(*color)]
        }
        ([], []) => measures.get(1).map(|second| ChartPlan::new(Point, first, [*second])).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn with(columns: &[ChartColumn<'_>], is_wanted: impl Fn(&ChartColumn<'_>) -> bool) -> Vec<usize> {
    columns.iter().enumerate().filter(|(_, column)| is_wanted(column)).map(|(index, _)| index).collect()
}

/// Returns the categories without those that only name each row a second time.
fn named_once(columns: &[ChartColumn<'_>], categories: Vec<usize>) -> Vec<usize> {
    let names_each_row = |index: &usize| columns.get(*index).is_some_and(ChartColumn::is_unique);
    let is_name = |index: &usize| columns.get(*index).is_some_and(|column| !column.is_id);
    let naming: Vec<usize> = categories.iter().copied().filter(|index| names_each_row(index)).collect();
    let kept = naming.iter().rev().find(|index| is_name(index)).or(naming.last());
    match kept {
        Some(kept) if naming.len() == categories.len() => vec![*kept],
        Some(kept) => categories.into_iter().filter(|index| index == kept || !naming.contains(index)).collect(),
        None => categories,
    }
}

/// Returns the first measure and those that can share an axis with it.
fn of_like_size(columns: &[ChartColumn<'_>], measures: &[usize]) -> Vec<usize> {
    let largest = |index: &usize| columns.get(*index).map_or(0.0, |column| column.largest);
    let reference = measures.first().map_or(0.0, largest);
    let is_alike = |index: &&usize| {
        let size = largest(index);
        size <= reference * LIKE_SIZE && reference <= size * LIKE_SIZE
    };
    measures.iter().filter(is_alike).take(MAX_MEASURES).copied().collect()
}
