//! A chart before it is written: which columns go where, whether that can be read, and the rules that propose it.
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

use super::columns::{Column, ColumnKind, Role};
use super::spec::MarkType;

/// Rows of a chart.
const MIN_ROWS: usize = 2;
const MAX_ROWS: usize = 2_000;
/// Categories on an axis.
const MAX_CATEGORIES: usize = 50;
/// Bars over time, and bars in all.
const MAX_BARS: usize = 200;
/// Colours: more are not told apart.
const MAX_COLORS: usize = 10;
/// Measures in one chart.
const MAX_MEASURES: usize = 8;
/// Measures whose largest values differ by more than this do not share an axis.
const LIKE_SIZE: f64 = 20.0;
/// Bars lie down when there are more, or when a label is longer.
const MAX_STANDING: usize = 12;
const MAX_LABEL_CHARS: usize = 12;

/// Which columns go where, by their index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) mark: MarkType,
    /// What the values stand over.
    pub(super) base: usize,
    /// At least one; several are told apart by colour.
    pub(super) measures: Vec<usize>,
    /// Tells series apart.
    pub(super) color: Option<usize>,
    /// Whether the bars of one place stand side by side.
    pub(super) is_grouped: bool,
    /// Whether `base` is on y.
    pub(super) is_horizontal: bool,
}

impl Plan {
    pub(super) fn new(mark: MarkType, base: usize, measures: impl Into<Vec<usize>>) -> Self {
        Self { mark, base, measures: measures.into(), color: None, is_grouped: false, is_horizontal: false }
    }

    pub(super) fn colored(self, color: usize) -> Self {
        Self { color: Some(color), is_grouped: self.mark == MarkType::Bar, ..self }
    }

    /// Whether the chart can be drawn and read.
    pub(super) fn fits(&self, columns: &[Column<'_>], rows: usize) -> bool {
        let Some(base) = columns.get(self.base).filter(|base| base.role != Role::Ignored) else { return false };
        let used: Vec<usize> = [self.base].into_iter().chain(self.measures.iter().copied()).chain(self.color).collect();
        let each_once = used.iter().collect::<HashSet<_>>().len() == used.len();
        let are_numbers = self.measures.iter().all(|measure| {
            columns
                .get(*measure)
                .is_some_and(|column| column.kind == ColumnKind::Number && column.role != Role::Ignored)
        });
        let color = match self.color {
            None => None,
            Some(color) => match columns.get(color) {
                Some(column) if column.role != Role::Ignored && column.distinct <= MAX_COLORS => Some(column),
                _ => return false,
            },
        };
        let several = self.measures.len() > 1;
        if !(MIN_ROWS..=MAX_ROWS).contains(&rows)
            || !each_once
            || !are_numbers
            || !(1..=MAX_MEASURES).contains(&self.measures.len())
            || (several && color.is_some())
        {
            return false;
        }
        let is_one_a_place = match color {
            None => base.is_unique(),
            Some(color) => base.values.iter().zip(&color.values).collect::<HashSet<_>>().len() == base.values.len(),
        };
        match self.mark {
            MarkType::Point => {
                !several && (base.role == Role::Measure || base.is_ordered() || base.distinct <= MAX_CATEGORIES)
            }
            MarkType::Line | MarkType::Area => is_one_a_place && base.role != Role::Category,
            MarkType::Bar => {
                let places = if base.role == Role::Time { MAX_BARS } else { MAX_CATEGORIES };
                is_one_a_place && base.distinct <= places && rows * self.measures.len() <= MAX_BARS
            }
        }
    }

    /// With bars that lie down where standing ones have no room for their labels.
    pub(super) fn laid_out(self, columns: &[Column<'_>]) -> Self {
        let lies = self.mark == MarkType::Bar
            && columns.get(self.base).is_some_and(|base| {
                base.role == Role::Category && (base.distinct > MAX_STANDING || base.longest > MAX_LABEL_CHARS)
            });
        Self { is_horizontal: self.is_horizontal || lies, ..self }
    }
}

/// What the rules propose, the best first; not all of it fits.
pub(super) fn proposals(columns: &[Column<'_>]) -> Vec<Plan> {
    use MarkType::{Bar, Line, Point};
    let measures: Vec<usize> = with(columns, |column| column.role == Role::Measure);
    let Some(first) = measures.first().copied() else { return Vec::new() };
    let alike = of_like_size(columns, &measures);
    let ordered = with(columns, |column| column.is_ordered() && column.distinct > 1);
    let categories = named_once(columns, with(columns, |column| column.role == Role::Category && column.distinct > 1));
    match (ordered.as_slice(), categories.as_slice()) {
        ([time], []) => {
            vec![Plan::new(Line, *time, alike), Plan::new(Line, *time, [first]), Plan::new(Point, *time, [first])]
        }
        ([time], [category]) => {
            vec![Plan::new(Line, *time, [first]).colored(*category), Plan::new(Bar, *category, [first]).colored(*time)]
        }
        ([outer, inner], []) => vec![
            Plan::new(Line, *inner, [first]).colored(*outer),
            Plan::new(Line, *outer, [first]).colored(*inner),
            Plan::new(Line, *outer, [first]),
        ],
        ([], [category]) => {
            let mut plans = vec![Plan::new(Bar, *category, alike), Plan::new(Bar, *category, [first])];
            if let Some(second) = measures.get(1) {
                plans.push(Plan::new(Point, first, [*second]).colored(*category));
                plans.push(Plan::new(Point, first, [*second]));
            } else {
                plans.push(Plan { is_horizontal: true, ..Plan::new(Point, *category, [first]) });
            }
            plans
        }
        ([], [one, other]) => {
            let distinct = |index: &usize| columns.get(*index).map_or(0, |column| column.distinct);
            let (base, color) = if distinct(one) >= distinct(other) { (one, other) } else { (other, one) };
            vec![Plan::new(Bar, *base, [first]).colored(*color)]
        }
        ([], []) => measures.get(1).map(|second| Plan::new(Point, first, [*second])).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn with(columns: &[Column<'_>], is_wanted: impl Fn(&Column<'_>) -> bool) -> Vec<usize> {
    columns.iter().enumerate().filter(|(_, column)| is_wanted(column)).map(|(index, _)| index).collect()
}

/// Without the second name of what has one already in each row.
fn named_once(columns: &[Column<'_>], categories: Vec<usize>) -> Vec<usize> {
    let names_each_row = |index: &usize| columns.get(*index).is_some_and(Column::is_unique);
    let is_name = |index: &usize| columns.get(*index).is_some_and(|column| !column.is_id);
    let naming: Vec<usize> = categories.iter().copied().filter(|index| names_each_row(index)).collect();
    let kept = naming.iter().rev().find(|index| is_name(index)).or(naming.last());
    match kept {
        Some(kept) if naming.len() == categories.len() => vec![*kept],
        Some(kept) => categories.into_iter().filter(|index| index == kept || !naming.contains(index)).collect(),
        None => categories,
    }
}

/// The first measure, and those that can stand beside it on one axis.
fn of_like_size(columns: &[Column<'_>], measures: &[usize]) -> Vec<usize> {
    let largest = |index: &usize| columns.get(*index).map_or(0.0, |column| column.largest);
    let reference = measures.first().map_or(0.0, largest);
    let is_alike = |index: &&usize| {
        let size = largest(index);
        size <= reference * LIKE_SIZE && reference <= size * LIKE_SIZE
    };
    measures.iter().filter(is_alike).take(MAX_MEASURES).copied().collect()
}
