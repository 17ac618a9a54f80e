//! From a syntax tree to a DataFusion plan: names to columns, expressions to typed ones, operator by operator, in order.
//!
//! Binding never waits. Where it needs what only the outside knows (a table, the value of a `toscalar`) it stops with a
//! [`Need`]; the caller answers and binds again from the start, which takes the same way up to there. Every column has a
//! field name of its own in the plan, so no operator can confuse two; KQL's names are kept beside it.

mod error;
mod names;
mod pack;
mod parameters;
mod patterns;
mod scalar;
mod scope;
mod several;
mod special;
mod statements;
mod user_functions;
mod value;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, TableSource};

pub use error::{BindError, BindErrorCode};
pub(super) use names::{argument_name, unique_name};
pub(super) use parameters::GivenParameter;
pub(super) use scope::{Binding, Environment, Scope, Windows};
pub(super) use statements::given_name;
pub(super) use value::{constant_of, null_of, text_literal, text_of};

use crate::ast;
use crate::functions::FunctionContext;
use crate::host::{ExternalLocation, TableKey, TableLookup};
use crate::materialized::Materialized;
use crate::plan::{MaterializedPart, Relation, Rendering};
use crate::span::Span;
use crate::types::KqlType;

/// How many expressions and operators one query may expand to, functions and variables substituted.
const MAX_NODES: usize = 200_000;
/// How deep expansions nest.
const MAX_DEPTH: usize = 400;
const LEVEL_STACK_BYTES: usize = 256 << 10;
const LARGER_STACK_BYTES: usize = 4 << 20;

/// A typed expression.
#[derive(Debug, Clone)]
pub(super) struct Typed {
    pub(super) expr: PlanExpr,
    pub(super) kql_type: KqlType,
}

impl Typed {
    pub(super) fn new(expr: PlanExpr, kql_type: KqlType) -> Self {
        Self { expr, kql_type }
    }

    /// A string.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(text_literal(text), KqlType::String)
    }
}

/// What binding needs from outside.
#[derive(Debug)]
pub(crate) enum Need {
    /// A table of the catalog.
    Table(TableKey),
    /// The names of the tables that match a pattern.
    Tables(TableKey),
    /// Files, which the caller may or may not read.
    Location(ExternalLocation),
    /// The tree of a text of ours.
    Parsed(String),
    /// A part of the query, to be worked out once.
    Materialized(Box<LogicalPlan>),
    /// The rows of a query, at most so many.
    Rows {
        /// What to run.
        plan: Box<LogicalPlan>,
        /// How many rows are wanted.
        limit: usize,
    },
}

/// What was answered so far.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) tables: HashMap<TableKey, TableLookup>,
    pub(crate) listings: HashMap<TableKey, Vec<String>>,
    pub(crate) locations: HashMap<ExternalLocation, Arc<dyn TableSource>>,
    pub(crate) parsed: HashMap<String, ast::Query>,
    /// In the order in which binding asks.
    pub(crate) materialized: Vec<Arc<Materialized>>,
    /// Likewise.
    pub(crate) rows: Vec<Vec<RecordBatch>>,
    /// The query's `now()`, in ticks.
    pub(crate) now_ticks: i64,
    /// The database where bare names resolve.
    pub(crate) database: String,
    /// Who asks.
    pub(crate) principal: String,
    /// What `declare query_parameters` are given, by name.
    pub(crate) parameters: HashMap<String, GivenParameter>,
}

/// Why binding stopped.
#[derive(Debug)]
pub(crate) enum Stop {
    /// For good.
    Error(BindError),
    /// Until it is answered.
    Needs(Need),
    /// DataFusion refuses what was planned.
    Plan(DataFusionError),
}

impl From<BindError> for Stop {
    fn from(error: BindError) -> Self {
        Stop::Error(error)
    }
}

impl From<DataFusionError> for Stop {
    fn from(error: DataFusionError) -> Self {
        Stop::Plan(error)
    }
}

pub(super) type Result<T> = std::result::Result<T, Stop>;

/// A query's result: a relation, and how it wants to be shown.
#[derive(Debug)]
pub(crate) struct BoundQuery {
    pub(crate) relation: Relation,
    pub(crate) rendering: Option<Rendering>,
}

/// Binds a query that has no syntax errors.
pub(crate) fn bind<'a>(query: &'a ast::Query, answers: &'a Answers) -> Result<BoundQuery> {
    let mut binder = Binder {
        answers,
        rows_taken: 0,
        materialized: Vec::new(),
        fields: 0,
        nodes: 0,
        depth: 0,
        options: HashMap::new(),
        rendering: None,
    };
    let relation = binder.query(query)?;
    let relation = binder.finished(relation)?;
    Ok(BoundQuery { relation, rendering: binder.rendering })
}

/// The state of binding one query.
pub(super) struct Binder<'a> {
    pub(super) answers: &'a Answers,
    rows_taken: usize,
    /// What was materialized so far.
    pub(super) materialized: Vec<MaterializedPart<'a>>,
    fields: usize,
    nodes: usize,
    depth: usize,
    /// What `set` gave.
    options: HashMap<&'a str, Option<&'a ast::ParameterValue>>,
    pub(super) rendering: Option<Rendering>,
}

impl<'a> Binder<'a> {
    /// A field name that no other column of the plan has.
    pub(super) fn field(&mut self, name: &str) -> String {
        self.fields += 1;
        format!("{name}#{}", self.fields)
    }

    /// The rows of a query that must run before binding can go on.
    pub(super) fn rows(&mut self, plan: LogicalPlan, limit: usize) -> Result<&'a [RecordBatch]> {
        match self.answers.rows.get(self.rows_taken) {
            Some(rows) => {
                self.rows_taken += 1;
                Ok(rows)
            }
            None => Err(Stop::Needs(Need::Rows { plan: Box::new(plan), limit })),
        }
    }

    /// What the query's functions share.
    pub(super) fn functions(&self) -> FunctionContext {
        FunctionContext { now_ticks: self.answers.now_ticks }
    }

    /// Counts what is made, and refuses to make too much.
    pub(super) fn spend(&mut self, nodes: usize, span: Span) -> Result<()> {
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            let message = format!("the query expands to more than {MAX_NODES} operators and expressions");
            return Err(BindError::new(BindErrorCode::TooLarge, span, message).into());
        }
        Ok(())
    }

    /// What was made so far.
    pub(super) fn spent(&self) -> usize {
        self.nodes
    }

    /// Runs `work` one level deeper, with stack enough.
    pub(super) fn nested<T>(&mut self, span: Span, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= MAX_DEPTH {
            let message = format!("the query expands to more than {MAX_DEPTH} levels");
            return Err(BindError::new(BindErrorCode::TooLarge, span, message).into());
        }
        self.depth += 1;
        let done = stacker::maybe_grow(LEVEL_STACK_BYTES, LARGER_STACK_BYTES, || work(self));
        self.depth -= 1;
        done
    }
}

/// An error of that kind.
pub(super) fn fail<T>(code: BindErrorCode, span: Span, message: impl Into<String>) -> Result<T> {
    Err(BindError::new(code, span, message).into())
}

/// What Kusto has and this engine does not.
pub(super) fn not_supported<T>(span: Span, what: impl std::fmt::Display) -> Result<T> {
    fail(BindErrorCode::NotSupported, span, format!("{what} is known to Kusto, but not supported here"))
}

/// What cannot be meant.
pub(super) fn invalid<T>(span: Span, message: impl Into<String>) -> Result<T> {
    fail(BindErrorCode::Invalid, span, message)
}
