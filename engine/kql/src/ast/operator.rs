//! Pipelines and their operators. The larger families have files of their own.

use super::{
    ColumnDeclaration, Expr, Find, GraphMatch, GraphOutput, GraphTraverse, Literal, MakeGraph, MakeSeries, Name,
    NamePattern, NamedExpr, Parse, Property, Render, ScalarType, Scan, Search, Statement,
};
use crate::span::Span;

/// `source | operator | operator`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pipeline {
    /// Absent where the first operator starts the query (`print 1`), and in the parentheses of `mv-apply`, `fork` and
    /// their like, whose rows come from outside.
    pub source: Option<Expr>,
    /// In order.
    pub operators: Vec<Operator>,
}

/// An operator of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// What it does.
    pub kind: OperatorKind,
    /// `kind=inner`, `hint.strategy=shuffle`, in front of the operands.
    pub parameters: Vec<OperatorParameter>,
    /// Where, without the `|`.
    pub span: Span,
}

impl Operator {
    /// The parameter of that name.
    pub fn parameter(&self, name: &str) -> Option<&OperatorParameter> {
        self.parameters.iter().find(|parameter| parameter.name.text == name)
    }
}

/// `name=value` in front of an operator's operands.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorParameter {
    /// With its dots: `hint.strategy`.
    pub name: Name,
    /// The value.
    pub value: ParameterValue,
    /// Where.
    pub span: Span,
}

/// The value of an option or a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum ParameterValue {
    /// A name or a keyword.
    Name(Name),
    /// A literal.
    Literal(Literal),
}

/// What operators do.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum OperatorKind {
    /// `as name`.
    As(Name),
    /// `assert-schema (a:long)`.
    AssertSchema(Vec<ColumnDeclaration>),
    /// `consume`.
    Consume,
    /// `count`, `count as name`.
    Count(Option<Name>),
    /// `distinct a, b`, `distinct *`.
    Distinct(Vec<NamedExpr>),
    /// `evaluate plugin(...)`, `evaluate plugin(...) : (a:long)`.
    Evaluate {
        /// The plugin.
        plugin: Expr,
        /// What it returns, where that is said.
        schema: Option<PluginSchema>,
    },
    /// `extend a = b`.
    Extend(Vec<NamedExpr>),
    /// `facet by a with (...)`.
    Facet {
        /// The columns.
        by: Vec<Expr>,
        /// What else to compute.
        with: Option<Pipeline>,
    },
    /// `find ...`.
    Find(Box<Find>),
    /// `fork (...) (...)`.
    Fork(Vec<ForkBranch>),
    /// `getschema`.
    GetSchema,
    /// `graph-mark-components`.
    GraphMarkComponents,
    /// `graph-match ...`.
    GraphMatch(Box<GraphMatch>),
    /// `graph-shortest-paths ...`.
    GraphShortestPaths(Box<GraphMatch>),
    /// `graph-to-table nodes, edges`.
    GraphToTable(Vec<GraphOutput>),
    /// `graph-traverse ...`, an operator of Querent's own.
    GraphTraverse(Box<GraphTraverse>),
    /// `graph-where-edges a > 1`.
    GraphWhereEdges(Expr),
    /// `graph-where-nodes a > 1`.
    GraphWhereNodes(Expr),
    /// `invoke f(...)`.
    Invoke(Expr),
    /// `join kind=inner (T) on a`.
    Join {
        /// The right side.
        table: Expr,
        /// Absent for a cross join.
        condition: Option<JoinCondition>,
    },
    /// `lookup T on a`.
    Lookup {
        /// The right side.
        table: Expr,
        /// What is equal.
        on: Vec<Expr>,
    },
    /// `macro-expand group as name (...)`.
    MacroExpand {
        /// What to expand over.
        group: Expr,
        /// What a member is called in the body.
        name: Name,
        /// What is done for each.
        body: Vec<Statement>,
    },
    /// `make-graph a --> b`.
    MakeGraph(Box<MakeGraph>),
    /// `make-series ...`.
    MakeSeries(Box<MakeSeries>),
    /// `mv-apply a on (...)`.
    MvApply(Box<MvApply>),
    /// `mv-expand a to typeof(long)`.
    MvExpand(MvExpand),
    /// `parse a with ...`, `parse-where a with ...`.
    Parse(Box<Parse>),
    /// `parse-kv a as (b:long) with (...)`.
    ParseKv {
        /// The text.
        expr: Expr,
        /// What to find.
        columns: Vec<ColumnDeclaration>,
        /// How it is written.
        properties: Vec<Property>,
    },
    /// `partition by a (...)`.
    Partition(Box<Partition>),
    /// `print a = 1`.
    Print(Vec<NamedExpr>),
    /// `project a, b = c`.
    Project(Vec<NamedExpr>),
    /// `project-away a*`.
    ProjectAway(Vec<NamePattern>),
    /// `project-by-names`.
    ProjectByNames(Vec<Expr>),
    /// `project-keep a*`.
    ProjectKeep(Vec<NamePattern>),
    /// `project-rename a = b`.
    ProjectRename(Vec<NamedExpr>),
    /// `project-reorder a*, b asc`.
    ProjectReorder(Vec<ReorderColumn>),
    /// `range a from 1 to 5 step 1`.
    Range {
        /// The column.
        column: Name,
        /// The first value.
        from: Expr,
        /// The bound, included.
        to: Expr,
        /// The step.
        step: Expr,
    },
    /// `reduce by a with threshold=0.1`.
    Reduce {
        /// The text.
        by: NamedExpr,
        /// Its settings.
        with: Vec<NamedExpr>,
    },
    /// `render timechart with (...)`.
    Render(Render),
    /// `sample 10`.
    Sample(NamedExpr),
    /// `sample-distinct 10 of a`.
    SampleDistinct {
        /// How many.
        count: NamedExpr,
        /// Of what.
        of: NamedExpr,
    },
    /// `scan ...`.
    Scan(Box<Scan>),
    /// `search ...`.
    Search(Box<Search>),
    /// `serialize a = row_number()`.
    Serialize(Vec<NamedExpr>),
    /// `sort by a desc`, `order by a`.
    Sort(Vec<SortKey>),
    /// `summarize count() by a`.
    Summarize {
        /// The aggregates.
        aggregates: Vec<NamedExpr>,
        /// The keys.
        by: Vec<NamedExpr>,
        /// The old `bin=1h` after the keys.
        bin: Option<Literal>,
    },
    /// `take 10`, `limit 10`.
    Take(NamedExpr),
    /// `top 10 by a`.
    Top {
        /// How many.
        count: NamedExpr,
        /// Of what.
        by: SortKey,
    },
    /// `top-hitters 10 of a by b`.
    TopHitters {
        /// How many.
        count: NamedExpr,
        /// Of what.
        of: NamedExpr,
        /// What to add up.
        by: Option<SortKey>,
    },
    /// `top-nested 3 of a by count(), top-nested ...`.
    TopNested(Vec<TopLevel>),
    /// `union A, (B), C*`.
    Union(Vec<Expr>),
    /// `where a`, `filter a`.
    Where(NamedExpr),
    /// Could not be parsed; an error says why.
    Invalid,
}

/// What a plugin returns, as said by the caller.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginSchema {
    /// `(*, a:long)`: these columns and those of the input.
    pub keeps_input: bool,
    /// The columns.
    pub columns: Vec<ColumnDeclaration>,
}

/// What a join compares.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinCondition {
    /// `on a, $left.b == $right.c`.
    On(Vec<Expr>),
    /// `where predicate`.
    Where(Expr),
}

/// `a desc nulls last`.
#[derive(Debug, Clone, PartialEq)]
pub struct SortKey {
    /// What to order by.
    pub expr: NamedExpr,
    /// Where it is said.
    pub direction: Option<SortDirection>,
    /// Where it is said.
    pub nulls: Option<NullsOrder>,
    /// Where.
    pub span: Span,
}

/// `asc` and `desc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortDirection {
    /// `asc`.
    Ascending,
    /// `desc`.
    Descending,
}

/// `nulls first` and `nulls last`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NullsOrder {
    /// `nulls first`.
    First,
    /// `nulls last`.
    Last,
}

/// A column of `project-reorder`.
#[derive(Debug, Clone, PartialEq)]
pub struct ReorderColumn {
    /// Which.
    pub pattern: NamePattern,
    /// How several of one pattern are ordered.
    pub direction: Option<ReorderDirection>,
}

/// How columns of one pattern are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReorderDirection {
    /// `asc`: by name.
    Ascending,
    /// `desc`: by name.
    Descending,
    /// `granny-asc`: by name, numbers in it by value.
    GrannyAscending,
    /// `granny-desc`.
    GrannyDescending,
}

/// A level of `top-nested`.
#[derive(Debug, Clone, PartialEq)]
pub struct TopLevel {
    /// How many; all, where it is not said.
    pub count: Option<NamedExpr>,
    /// Of what.
    pub of: NamedExpr,
    /// `with others = "rest"`.
    pub others: Option<Expr>,
    /// By which aggregate.
    pub by: SortKey,
    /// Where.
    pub span: Span,
}

/// A branch of `fork`.
#[derive(Debug, Clone, PartialEq)]
pub struct ForkBranch {
    /// `name = (...)`.
    pub name: Option<Name>,
    /// What it does.
    pub pipeline: Pipeline,
}

/// `mv-expand`.
#[derive(Debug, Clone, PartialEq)]
pub struct MvExpand {
    /// What to expand, side by side.
    pub columns: Vec<Expansion>,
    /// The most rows of one.
    pub limit: Option<Expr>,
}

/// `mv-apply`.
#[derive(Debug, Clone, PartialEq)]
pub struct MvApply {
    /// What to expand, side by side.
    pub columns: Vec<Expansion>,
    /// The most rows of one.
    pub limit: Option<Expr>,
    /// What is done with the rows of each.
    pub body: Pipeline,
}

/// `a = b to typeof(long)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Expansion {
    /// What to expand.
    pub expr: NamedExpr,
    /// Into which type.
    pub to: Option<ScalarType>,
}

/// `partition`.
#[derive(Debug, Clone, PartialEq)]
pub struct Partition {
    /// The column.
    pub by: Expr,
    /// What is done with each partition.
    pub body: PartitionBody,
}

/// What is done with each partition.
#[derive(Debug, Clone, PartialEq)]
pub enum PartitionBody {
    /// `(take 1)`: its rows come from outside.
    Piped(Pipeline),
    /// `{ T | take 1 }`: a query of its own.
    Query(Expr),
}
