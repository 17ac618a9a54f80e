//! The syntax tree, in KQL's own terms. Every node has its span in the query; nothing here knows tables, types or
//! values beyond what is written.
//!
//! A scalar and a table are the same kind of expression, as in KQL itself: `let x = T | take 1` and `let x = 1` differ
//! in their [`ExprKind`] only. Chains of `and` and `or` are one flat node, so that a tree is only as deep as the
//! parser's limit, however long the query.

mod expression;
mod graph;
mod literal;
mod operator;
mod search;
mod series;
mod statement;

pub use expression::{
    BinaryOperator, DataTable, Expr, ExprKind, ExternalData, FunctionCall, ListOperator, LogicalOperator, NamedExpr,
    Names, Property, SubqueryFunction, TextMatch, TextMatchKind, UnaryOperator,
};
pub use graph::{
    EdgeDirection, GraphElements, GraphMatch, GraphNodes, GraphOutput, GraphPart, GraphTraverse, HopRange, MakeGraph,
    NodeTable, TraverseDirection,
};
pub use literal::{Json, JsonKind, JsonProperty, Literal, ScalarType};
pub use operator::{
    Expansion, ForkBranch, JoinCondition, MvApply, MvExpand, NullsOrder, Operator, OperatorKind, OperatorParameter,
    ParameterValue, Partition, PartitionBody, Pipeline, PluginSchema, ReorderColumn, ReorderDirection, SortDirection,
    SortKey, TopLevel,
};
pub use search::{Find, FindColumn, FindProjection, Parse, ParsePart, Search};
pub use series::{MakeSeries, Render, Scan, ScanOutput, ScanStep, SeriesAggregate, SeriesRange};
pub use statement::{
    ColumnDeclaration, Function, Parameter, ParameterKind, Pattern, PatternDefinition, PatternRule, Query, Statement,
    StatementKind,
};

use crate::span::Span;

/// A name: of a column, a table, a function, a variable.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    /// Without brackets and quotes.
    pub text: String,
    /// Written `['...']`.
    pub bracketed: bool,
    /// Where.
    pub span: Span,
}

/// A name that may have `*` in it: `Sales*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamePattern {
    /// As written, without brackets and quotes.
    pub text: String,
    /// Whether a `*` in it stands for any characters.
    pub wildcard: bool,
    /// Where.
    pub span: Span,
}
