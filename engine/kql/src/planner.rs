//! From a query's text to a plan. What binding asks for on the way the host answers; binding then starts again with the
//! answer and gets further.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::Utc;
use datafusion::common::Column as PlanColumn;
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr as PlanExpr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, cast, lit};
use futures::StreamExt;

use crate::asked_limits::{AskedLimits, limits_of};
use crate::bind::{self, Answers, BindStop, BoundResult, GivenParameter, Need};
use crate::bind_error::BindErrorCode;
use crate::forms::with_form;
use crate::host::KqlHost;
use crate::literal_rows::is_over_literals;
use crate::materialized::Materialized;
use crate::plan::{Rendering, field_column};
use crate::query_error::{KqlError, KqlErrorCode};
use crate::types::KqlType;
use crate::values::{self, TICKS_PER_MICROSECOND, UNIX_EPOCH_TICKS};

/// A computed decimal as readers of Arrow have it: many know none of more bits.
const ARROW_DECIMAL: DataType = DataType::Decimal128(38, 18);
/// How often binding may ask.
const MAX_QUESTIONS: usize = 1_000;
/// A value that is read for planning stands in the rows, in the plan, in what its optimiser makes of it, and in what
/// runs.
const COPIES: usize = 4;
/// A value that is read becomes an expression of the plan, of its optimised copy, and of what runs.
const BYTES_PER_LITERAL: usize = 3 * size_of::<PlanExpr>();

/// What a query's `declare query_parameters` are given, by name: literals of KQL, or texts for conversion to read. A
/// name behind `set `, such as `set query_now`, is that of an option of the query, which a `set` of its own overrides.
pub type KqlParameters = BTreeMap<String, String>;

/// A column of a KQL result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KqlColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kql_type: KqlType,
}

impl KqlColumn {
    /// A row's value as Kusto prints it; null is the empty text.
    pub fn text(&self, array: &dyn Array, row: usize) -> String {
        values::format_value(self.kql_type, array, row)
    }

    /// Writes a row's value as a cell of Kusto's JSON answers, behind what was written before.
    pub fn write_json(&self, array: &dyn Array, row: usize, out: &mut Vec<u8>) {
        values::write_json_cell(self.kql_type, array, row, out);
    }
}

/// A planned query, not analysed; the types of its rows are KQL's physical types.
#[derive(Debug)]
pub struct PlannedKql {
    /// The plan.
    pub plan: LogicalPlan,
    /// Its columns, in order.
    pub columns: Vec<KqlColumn>,
    /// What `render` said.
    pub rendering: Option<Rendering>,
}

/// Plans a query of one result for a host. `parameters` are the values of its `declare query_parameters`. A query with
/// more results is refused; [`plan_all`] plans them all.
pub async fn plan<H: KqlHost>(host: &H, text: &str, parameters: &KqlParameters) -> Result<PlannedKql, H::Error> {
    let mut results = plan_all(host, text, parameters).await?;
    match (results.pop(), results.len()) {
        (Some(only), 0) => Ok(only),
        (_, others) => {
            let error = KqlError {
                code: KqlErrorCode::Bind(BindErrorCode::NotSupported),
                message: format!("the query has {} results, and one is asked for here", others + 1),
                hint: Some(
                    "end the query after one table, or send it to Kusto's REST routes, which answer all".to_owned(),
                ),
            };
            Err(error.into())
        }
    }
}

/// Plans all results of a query, at least one: of each statement that is an expression, and of each branch of a `fork`
/// or a `facet`.
pub async fn plan_all<H: KqlHost>(
    host: &H,
    text: &str,
    parameters: &KqlParameters,
) -> Result<Vec<PlannedKql>, H::Error> {
    match query_to_explain(text) {
        Some(text) => {
            let planned = plan_query(host, &text, parameters).await?;
            Ok(planned.into_iter().map(PlannedKql::explained).collect::<Result<_, _>>()?)
        }
        None => plan_query(host, text, parameters).await,
    }
}

async fn plan_query<H: KqlHost>(host: &H, text: &str, parameters: &KqlParameters) -> Result<Vec<PlannedKql>, H::Error> {
    let query = crate::parse(text).into_result().map_err(|errors| {
        let place = errors.first().map(|error| error.span).unwrap_or_default();
        with_form(KqlError::from_syntax(text, &errors), text, place)
    })?;
    let asked = limits_of(&query);
    if asked != AskedLimits::default() {
        host.keep_limits(&asked)?;
    }
    let now = Utc::now();
    let now_ticks = UNIX_EPOCH_TICKS + now.timestamp_micros() * TICKS_PER_MICROSECOND;
    let parameters = parameters.iter().map(|(name, value)| (name.clone(), GivenParameter::read(value))).collect();
    let mut answers = Answers {
        now_ticks,
        database: host.database().to_owned(),
        principal: host.principal().to_owned(),
        parameters,
        ..Answers::default()
    };
    for _ in 0..MAX_QUESTIONS {
        host.check_interrupt()?;
        // Nothing of binding lives across the wait for an answer.
        let need = match bind::bind(&query, &answers, &|| host.check_interrupt().is_err()) {
            Ok(results) => {
                // Several results are executed one after the other: a later one may use what an earlier one made.
                if results.len() == 1 {
                    answers.materialized.iter().for_each(|part| part.all_uses_are_known());
                }
                return Ok(results.into_iter().map(planned).collect());
            }
            Err(BindStop::Error(error)) => {
                let place = error.span;
                return Err(with_form(KqlError::from_bind(text, error), text, place).into());
            }
            Err(BindStop::Plan(error)) => return Err(error.into()),
            Err(BindStop::Interrupted) => {
                host.check_interrupt()?;
                continue;
            }
            Err(BindStop::Needs(need)) => need,
        };
        answer(host, need, &mut answers).await?;
    }
    Err(DataFusionError::Plan(format!("the query needs more than {MAX_QUESTIONS} answers to be planned")).into())
}

async fn answer<H: KqlHost>(host: &H, need: Need, answers: &mut Answers) -> Result<(), H::Error> {
    match need {
        Need::Table(key) => {
            let found = host.table(&key).await?;
            answers.tables.insert(key, found);
        }
        Need::Tables(key) => {
            let names = host.table_names(key.database.as_deref()).await?;
            answers.listings.insert(key, names);
        }
        Need::Databases => answers.databases = Some(host.database_names().await?),
        Need::Location(key) => {
            let files = host.external_data(&key).await?;
            answers.locations.insert(key, files);
        }
        Need::Graph(key) => {
            let definition = host.stored_graph(&key).await?;
            answers.graphs.insert(key, definition);
        }
        Need::Parsed(text) => {
            let parsed = crate::parse(&text).into_result();
            let query = parsed.map_err(|errors| DataFusionError::Internal(format!("{text}: {errors:?}")))?;
            answers.parsed.insert(text, query);
        }
        Need::Materialized(plan) => {
            let is_written = is_over_literals(&plan);
            let part = Materialized::new(host.physical_plan(*plan).await?, is_written);
            answers.materialized.push(Arc::new(part));
        }
        Need::Rows { plan, limit } => answers.rows.push(rows(host, *plan, limit).await?),
    }
    Ok(())
}

async fn rows<H: KqlHost>(host: &H, plan: LogicalPlan, limit: usize) -> Result<Vec<RecordBatch>, H::Error> {
    let plan = LogicalPlanBuilder::from(plan).limit(0, Some(limit))?.build()?;
    let mut stream = host.rows(plan).await?;
    let mut batches = Vec::new();
    while let Some(batch) = stream.next().await {
        let batch = batch?;
        let bytes = batch.get_array_memory_size().saturating_mul(COPIES);
        host.reserve(bytes.saturating_add(batch.num_rows() * BYTES_PER_LITERAL))?;
        batches.push(batch);
    }
    Ok(batches)
}

/// The query of a `.show queryplan <| query`, where it stands in the text.
fn query_to_explain(text: &str) -> Option<String> {
    let (command, query) = text.split_once("<|")?;
    let words: Vec<String> = command.split_whitespace().map(str::to_ascii_lowercase).collect();
    let is_asked = words == [".show", "queryplan"];
    is_asked.then(|| {
        let blank = |char: char| if char == '\n' { '\n' } else { ' ' };
        format!("{}  {query}", command.chars().map(blank).collect::<String>())
    })
}

impl PlannedKql {
    /// The plan in place of the rows: `plan_type` and `plan`, as SQL's EXPLAIN has them.
    fn explained(self) -> Result<Self, DataFusionError> {
        let plan = LogicalPlanBuilder::from(self.plan).explain(false, false)?.build()?;
        let columns = plan.schema().fields().iter();
        let columns =
            columns.map(|field| KqlColumn { name: field.name().clone(), kql_type: KqlType::String }).collect();
        Ok(Self { plan, columns, rendering: None })
    }

    /// The plan whose values are of types that readers of Arrow know: times of microseconds, which hold all of KQL's
    /// years, and decimals as they are stored, or else of 38 digits of which 18 are behind the point.
    pub fn in_arrow_types(self) -> Result<LogicalPlan, DataFusionError> {
        let is_own = |kql_type: KqlType| matches!(kql_type, KqlType::DateTime | KqlType::TimeSpan | KqlType::Decimal);
        if !self.columns.iter().any(|column| is_own(column.kql_type)) {
            return Ok(self.plan);
        }
        let exprs = self.columns.iter().map(|column| {
            let value = field_column(&column.name);
            let value = match column.kql_type {
                KqlType::Decimal => cast(value, stored_decimal(&self.plan, &column.name).unwrap_or(ARROW_DECIMAL)),
                other => arrow_value(value, other),
            };
            value.alias(column.name.clone())
        });
        let exprs: Vec<PlanExpr> = exprs.collect();
        LogicalPlanBuilder::from(self.plan).project(exprs)?.build()
    }
}

fn arrow_value(value: PlanExpr, kql_type: KqlType) -> PlanExpr {
    match kql_type {
        KqlType::DateTime => {
            let microseconds = (value - lit(UNIX_EPOCH_TICKS)) / lit(TICKS_PER_MICROSECOND);
            cast(microseconds, DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))))
        }
        KqlType::TimeSpan => cast(value / lit(TICKS_PER_MICROSECOND), DataType::Duration(TimeUnit::Microsecond)),
        _ => value,
    }
}

/// Returns the type of the stored decimals that a column of a plan is, where nothing computes with them.
fn stored_decimal(plan: &LogicalPlan, name: &str) -> Option<DataType> {
    let (mut plan, mut column) = (plan, PlanColumn::new_unqualified(name));
    loop {
        match plan {
            LogicalPlan::Filter(filter) => plan = &filter.input,
            LogicalPlan::Sort(sort) => plan = &sort.input,
            LogicalPlan::Limit(limit) => plan = &limit.input,
            LogicalPlan::Projection(projection) => {
                let mut expr = projection.expr.get(projection.schema.maybe_index_of_column(&column)?)?;
                while let PlanExpr::Alias(alias) = expr {
                    expr = &alias.expr;
                }
                match expr {
                    PlanExpr::Column(inner) => column = inner.clone(),
                    PlanExpr::Cast(conversion) => {
                        return match conversion.expr.get_type(projection.input.schema()).ok()? {
                            stored if stored.is_decimal() => Some(stored),
                            DataType::UInt64 => Some(DataType::Decimal128(20, 0)),
                            _ => None,
                        };
                    }
                    _ => return None,
                }
                plan = &projection.input;
            }
            _ => return None,
        }
    }
}

fn planned(BoundResult { relation, rendering }: BoundResult) -> PlannedKql {
    let columns = relation.columns.iter();
    let columns = columns.map(|column| KqlColumn { name: column.name.clone(), kql_type: column.kql_type }).collect();
    PlannedKql { plan: relation.plan, columns, rendering }
}
