//! Binds a syntax tree to a DataFusion plan: names to columns, expressions to typed ones, operator by operator, in
//! order.
//!
//! Binding never waits. Where it needs what only the host knows (a table, the value of a `toscalar`) it stops with a
//! [`Need`]; the caller answers and binds again from the start, which asks the same questions in the same order. Every
//! column has a field name of its own in the plan, so no operator can confuse two; KQL's names are kept beside it.

mod access;
mod constant_arguments;
mod graph_scope;
mod instead;
mod names;
mod native_operators;
mod options;
mod pack;
mod parameters;
mod patterns;
mod read_values;
mod results;
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

pub(super) use crate::bind_error::{BindError, BindErrorCode};
pub(super) use graph_scope::{GraphScope, HIDDEN, NeededSource, NeededValue, PathValue, graph_name};
pub(super) use instead::{is_refused, unsupported_name};
pub(super) use names::{argument_name, call_name, unique_name};
pub(super) use parameters::GivenParameter;
pub(super) use scalar::joined_conditions;
pub(super) use scope::{Binding, Environment, ExpressionScope, Windows};
pub(super) use several::too_many_names;
pub(super) use statements::given_name;
pub(super) use value::{constant_of, null_of, text_literal, text_of};
pub(super) use window::{is_sessions_function, sessions_udwf};

use crate::ast;
use crate::functions::FunctionContext;
use crate::host::{ExternalLocation, GraphKey, TableKey, TableLookup};
use crate::materialized::Materialized;
use crate::plan::{MaterializedPart, Relation, Rendering};
use crate::span::Span;
use crate::types::KqlType;

/// The most expressions and operators that one query may expand to once functions and variables are substituted.
const MAX_NODES: usize = 200_000;
/// How deep expansions may nest.
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

    /// A string literal.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::new(text_literal(text), KqlType::String)
    }
}

/// What binding needs from the host.
#[derive(Debug)]
pub(crate) enum Need {
    /// A table.
    Table(TableKey),
    /// The names of the tables of a database, to match with a pattern.
    Tables(TableKey),
    /// The names of the databases, to match with a pattern.
    Databases,
    /// Files that an `externaldata` names.
    Location(ExternalLocation),
    /// The definition of a stored graph.
    Graph(GraphKey),
    /// The syntax tree of a plugin's template.
    Parsed(String),
    /// A part of the query that runs once, however often the query uses it.
    Materialized(Box<LogicalPlan>),
    /// The rows of a sub-query.
    Rows {
        /// The sub-query.
        plan: Box<LogicalPlan>,
        /// The most rows that are wanted.
        limit: usize,
    },
}

/// The answers so far, and what is known of the query from the start.
#[derive(Default)]
pub(crate) struct Answers {
    pub(crate) tables: HashMap<TableKey, TableLookup>,
    pub(crate) listings: HashMap<TableKey, Vec<String>>,
    pub(crate) databases: Option<Vec<String>>,
    pub(crate) locations: HashMap<ExternalLocation, Arc<dyn TableSource>>,
    /// `None`: there is none of that name.
    pub(crate) graphs: HashMap<GraphKey, Option<String>>,
    pub(crate) parsed: HashMap<String, ast::Query>,
    /// In the order in which binding asks for them.
    pub(crate) materialized: Vec<Arc<Materialized>>,
    /// In the order in which binding asks for them.
    pub(crate) rows: Vec<Vec<RecordBatch>>,
    /// The query's `now()`, in ticks of 100 ns since the beginning of year 1.
    pub(crate) now_ticks: i64,
    /// The database where bare names resolve.
    pub(crate) database: String,
    /// The caller, for `current_principal()`.
    pub(crate) principal: String,
    /// The values of `declare query_parameters`, by name.
    pub(crate) parameters: HashMap<String, GivenParameter>,
}

/// Why binding stopped.
#[derive(Debug)]
pub(crate) enum BindStop {
    /// The query means nothing.
    Error(BindError),
    /// A question must be answered first.
    Needs(Need),
    /// DataFusion refuses the plan.
    Plan(DataFusionError),
    /// The host says that the query is over.
    Interrupted,
}

impl From<BindError> for BindStop {
    fn from(error: BindError) -> Self {
        BindStop::Error(error)
    }
}

impl From<DataFusionError> for BindStop {
    fn from(error: DataFusionError) -> Self {
        BindStop::Plan(error)
    }
}

pub(super) type Result<T> = std::result::Result<T, BindStop>;

/// A result of a query: a relation, and how it is to be rendered.
#[derive(Debug)]
pub(crate) struct BoundResult {
    pub(crate) relation: Relation,
    pub(crate) rendering: Option<Rendering>,
}

/// Binds a query that has no syntax errors, and returns its results, at least one. Ends with [`BindStop::Interrupted`]
/// once `is_over` says so: views that use views twice are few words and many operators.
pub(crate) fn bind<'a>(
    query: &'a ast::Query,
    answers: &'a Answers,
    is_over: &'a dyn Fn() -> bool,
) -> Result<Vec<BoundResult>> {
    let mut binder = Binder {
        is_over,
        answers,
        rows_taken: 0,
        materialized: Vec::new(),
        first_values: Vec::new(),
        fields: 0,
        nodes: 0,
        depth: 0,
        options: HashMap::new(),
        query_options: options::QueryOptions::default(),
        now_ticks: answers.now_ticks,
        rendering: None,
    };
    let results = binder.query(query)?;
    let finished = |BoundResult { relation, rendering }| {
        let relation = binder.as_asked(relation)?;
        Ok(BoundResult { relation: binder.finished(relation)?, rendering })
    };
    results.into_iter().map(finished).collect()
}

/// The state of binding one query.
pub(super) struct Binder<'a> {
    pub(super) answers: &'a Answers,
    is_over: &'a dyn Fn() -> bool,
    rows_taken: usize,
    /// The materialized tables so far.
    pub(super) materialized: Vec<MaterializedPart<'a>>,
    /// The values of `toscalar` so far.
    first_values: Vec<read_values::FirstValue<'a>>,
    fields: usize,
    nodes: usize,
    depth: usize,
    /// The options of `set`.
    options: HashMap<&'a str, (Option<&'a ast::ParameterValue>, Span)>,
    /// What of them has a meaning here.
    query_options: options::QueryOptions,
    /// The query's `now()`, as [`Answers::now_ticks`] unless an option says so.
    now_ticks: i64,
    pub(super) rendering: Option<Rendering>,
}

impl<'a> Binder<'a> {
    /// Returns a field name that no other column of the plan has.
    pub(super) fn field(&mut self, name: &str) -> String {
        self.fields += 1;
        format!("{name}#{}", self.fields)
    }

    /// Returns the rows of a sub-query, at most `limit`, without which binding cannot continue.
    pub(super) fn rows(&mut self, plan: LogicalPlan, limit: usize) -> Result<&'a [RecordBatch]> {
        match self.answers.rows.get(self.rows_taken) {
            Some(rows) => {
                self.rows_taken += 1;
                Ok(rows)
            }
            None => Err(BindStop::Needs(Need::Rows { plan: Box::new(plan), limit })),
        }
    }

    /// Returns what the query's functions share.
    pub(super) fn functions(&self) -> FunctionContext {
        FunctionContext { now_ticks: self.now_ticks }
    }

    /// Counts nodes that are made. Errors: more than [`MAX_NODES`] in all, or the query is over.
    pub(super) fn spend(&mut self, nodes: usize, span: Span) -> Result<()> {
        if (self.is_over)() {
            return Err(BindStop::Interrupted);
        }
        self.nodes = self.nodes.saturating_add(nodes);
        if self.nodes > MAX_NODES {
            let message = format!("the query expands to more than {MAX_NODES} operators and expressions");
            return Err(BindError::new(BindErrorCode::TooLarge, span, message).into());
        }
        Ok(())
    }

    /// Returns the number of nodes made so far.
    pub(super) fn spent(&self) -> usize {
        self.nodes
    }

    /// Runs `work` one level deeper, on a larger stack where this one is short. Errors: more than [`MAX_DEPTH`] levels.
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

/// Returns an error of a kind.
pub(super) fn fail<T>(code: BindErrorCode, span: Span, message: impl Into<String>) -> Result<T> {
    Err(BindError::new(code, span, message).into())
}

/// Returns the error for what Kusto has and this crate has not.
pub(super) fn not_supported<T>(span: Span, what: impl std::fmt::Display) -> Result<T> {
    fail(BindErrorCode::NotSupported, span, format!("{what} is known to Kusto, but not supported here"))
}

/// Returns the error for what has no meaning.
pub(super) fn invalid<T>(span: Span, message: impl Into<String>) -> Result<T> {
    fail(BindErrorCode::Invalid, span, message)
}
