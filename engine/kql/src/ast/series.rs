//! Operators over time and order, and how results are shown: `make-series`, `scan`, `render`.

use super::{Expr, Name, NamedExpr, Parameter, Property, SortKey};
use crate::span::Span;

/// `make-series a = avg(b) default = 0 on t from x to y step z by c`.
#[derive(Debug, Clone, PartialEq)]
pub struct MakeSeries {
    /// The aggregates.
    pub aggregates: Vec<SeriesAggregate>,
    /// The axis.
    pub on: NamedExpr,
    /// Its bins.
    pub range: SeriesRange,
    /// The keys.
    pub by: Vec<NamedExpr>,
}

/// An aggregate of `make-series`.
#[derive(Debug, Clone, PartialEq)]
pub struct SeriesAggregate {
    /// The aggregate.
    pub expr: NamedExpr,
    /// What empty bins have.
    pub default: Option<Expr>,
}

/// The bins of a series.
#[derive(Debug, Clone, PartialEq)]
pub enum SeriesRange {
    /// `from a to b step c`; `b` is not included.
    FromToStep {
        /// The start; the first value's, where it is not said.
        from: Option<Expr>,
        /// The end; the last value's, where it is not said.
        to: Option<Expr>,
        /// The step.
        step: Expr,
    },
    /// The old `in range(a, b, c)`, whose end is included.
    InRange(Vec<NamedExpr>),
}

/// `scan declare (a:long = 0) with (step s: true => a = b;)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Scan {
    /// `order by`.
    pub order_by: Vec<SortKey>,
    /// `partition by`.
    pub partition_by: Vec<Expr>,
    /// `declare`: columns that steps assign.
    pub declarations: Vec<Parameter>,
    /// In order.
    pub steps: Vec<ScanStep>,
}

/// A step of `scan`.
#[derive(Debug, Clone, PartialEq)]
pub struct ScanStep {
    /// Its name.
    pub name: Name,
    /// `optional`.
    pub optional: bool,
    /// `output=last`.
    pub output: Option<ScanOutput>,
    /// Which rows match.
    pub condition: Expr,
    /// What they set; each has one name.
    pub assignments: Vec<NamedExpr>,
    /// Where.
    pub span: Span,
}

/// Which matches of a step are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ScanOutput {
    /// `all`.
    All,
    /// `last`.
    Last,
    /// `none`.
    None,
}

/// `render timechart with (title = "x")`.
#[derive(Debug, Clone, PartialEq)]
pub struct Render {
    /// The chart.
    pub chart: Name,
    /// How it looks.
    pub properties: Vec<Property>,
}
