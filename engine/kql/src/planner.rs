//! From a KQL text to an analysed plan for one session. What binding asks for on the way is answered here: tables are
//! resolved for the session's principal, and queries whose rows decide how the rest is planned are authorised and run as
//! any query is, within the session's limits.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow::array::{Array, RecordBatch};
use arrow::datatypes::{DataType, TimeUnit};
use chrono::Utc;
use datafusion::datasource::provider_as_source;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr as PlanExpr, LogicalPlan, LogicalPlanBuilder, TableSource, cast, lit};
use datafusion::sql::TableReference;
use datafusion::sql::planner::ContextProvider;
use futures::StreamExt;
use querent_catalog::{PageRequest, Role, TableFilter, TableName};

use super::bind::{self, Answers, BoundQuery, Given, LocationKey, Need, Stop, Stored, TableKey};
use super::error::render_at;
use super::plan::{Relation, Rendering, field_column};
use super::types::KqlType;
use super::values::{self, TICKS_PER_MICROSECOND, UNIX_EPOCH_TICKS};
use crate::limits::{Interrupt, PlanningMemory};
use crate::policy::{Mode, allowed_location};
use crate::sql::catalog_table::CatalogTable;
use crate::sql::{Names, Scope};
use crate::tables::external::{Bounds, ad_hoc_table};
use crate::tables::materialized::Materialized;
use crate::{EngineError, Result, Session};

/// How often binding may ask.
const MAX_QUESTIONS: usize = 1_000;
/// The most tables that a wildcard stands for.
const MAX_LISTED_TABLES: usize = 1_000;

/// A value that is read becomes an expression of the plan, of its optimised copy, and of what runs.
const BYTES_PER_LITERAL: usize = 3 * size_of::<PlanExpr>();

/// What a query's `declare query_parameters` are given, by name: literals of KQL, or texts for conversion to read.
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
        values::format(self.kql_type, array, row)
    }

    /// Writes a row's value as a cell of Kusto's JSON answers, behind what was written before.
    pub fn write_json(&self, array: &dyn Array, row: usize, out: &mut Vec<u8>) {
        values::write_json_cell(self.kql_type, array, row, out);
    }
}

/// A planned query: its rows are of KQL's physical types, or of Arrow's.
pub(crate) struct PlannedKql {
    pub(crate) plan: LogicalPlan,
    pub(crate) columns: Vec<KqlColumn>,
    pub(crate) rendering: Option<Rendering>,
}

/// Plans queries of one session.
pub(crate) struct KqlPlanner<'s> {
    session: &'s Session,
    state: &'s SessionState,
    interrupt: &'s Interrupt,
    memory: PlanningMemory,
}

impl<'s> KqlPlanner<'s> {
    pub(crate) fn new(session: &'s Session, state: &'s SessionState, interrupt: &'s Interrupt) -> Self {
        let pool = session.engine().runtime().query_memory(session.limits());
        Self { session, state, interrupt, memory: PlanningMemory::of(pool) }
    }

    /// What the plan keeps of the rows that were read for it, to be held until it has run.
    pub(crate) fn into_memory(self) -> PlanningMemory {
        self.memory
    }

    /// The plan with KQL's physical types, not analysed.
    pub(crate) async fn plan(&self, text: &str, parameters: &KqlParameters) -> Result<PlannedKql> {
        match asked_to_explain(text) {
            Some(text) => self.plan_query(&text, parameters).await?.explained(),
            None => self.plan_query(text, parameters).await,
        }
    }

    async fn plan_query(&self, text: &str, parameters: &KqlParameters) -> Result<PlannedKql> {
        let parsed = super::parse(text);
        let query = parsed.into_result().map_err(|errors| syntax_error(text, &errors))?;
        let now = Utc::now();
        let now_ticks = UNIX_EPOCH_TICKS + now.timestamp_micros() * TICKS_PER_MICROSECOND;
        let parameters = parameters.iter().map(|(name, value)| (name.clone(), Given::read(value))).collect();
        let mut answers = Answers {
            now_ticks,
            database: self.session.database().to_owned(),
            principal: self.session.principal().subject().to_owned(),
            parameters,
            ..Answers::default()
        };
        for _ in 0..MAX_QUESTIONS {
            self.interrupt.check()?;
            // Nothing of binding lives across the wait for an answer.
            let need = match bind::bind(&query, &answers) {
                Ok(BoundQuery { relation, rendering }) => {
                    answers.materialized.iter().for_each(|part| part.all_uses_are_known());
                    return Ok(planned(relation, rendering));
                }
                Err(Stop::Error(error)) => {
                    return Err(EngineError::Kql {
                        code: error.code.into(),
                        message: render_at(text, error.span, &error.message, None),
                        hint: error.hint,
                    });
                }
                Err(Stop::Plan(error)) => return Err(error.into()),
                Err(Stop::Needs(need)) => need,
            };
            self.answer(need, &mut answers).await?;
        }
        Err(EngineError::Plan { message: format!("the query needs more than {MAX_QUESTIONS} answers to be planned") })
    }

    async fn answer(&self, need: Need, answers: &mut Answers) -> Result<()> {
        match need {
            Need::Table(key) => {
                let stored = self.stored(&key).await?;
                answers.tables.insert(key, stored);
            }
            Need::Tables(key) => {
                let names = self.names(&key).await?;
                answers.listings.insert(key, names);
            }
            Need::Location(key) => {
                let files = self.files(&key).await?;
                answers.locations.insert(key, files);
            }
            Need::Parsed(text) => {
                let parsed = super::parse(&text).into_result();
                let query = parsed.map_err(|errors| EngineError::Internal(format!("{text}: {errors:?}")))?;
                answers.parsed.insert(text, query);
            }
            Need::Materialized(plan) => {
                let plan = self.session.authorize(self.analysed(*plan)?)?;
                let part = Materialized::new(self.session, &plan, self.interrupt).await?;
                answers.materialized.push(Arc::new(part));
            }
            Need::Rows { plan, limit } => answers.rows.push(self.rows(*plan, limit).await?),
        }
        Ok(())
    }

    async fn stored(&self, key: &TableKey) -> Result<Stored> {
        let catalog = self.session.engine().catalog();
        let database = key.database.as_deref().unwrap_or(self.session.database());
        let name = TableName::new(database, &key.table);
        let names = Names::resolve_all(catalog, self.state, self.session.principal(), vec![name.clone()]).await?;
        let scope = Scope { names: &names, state: self.state, database };
        match scope.get_table_source(TableReference::partial(database, key.table.as_str())) {
            Ok(source) => Ok(Stored::Table(source)),
            Err(error) if Names::missing_in(&error).is_some_and(|missing| *missing == name) => {
                let missing = catalog.tables().not_found(self.session.principal(), &name).await;
                Ok(Stored::Missing(missing.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The names of the tables there are; which of them fit a pattern is the binder's business.
    async fn names(&self, key: &TableKey) -> Result<Vec<String>> {
        let database = key.database.clone().unwrap_or_else(|| self.session.database().to_owned());
        let filter = TableFilter { database: Some(database), ..TableFilter::default() };
        let page = PageRequest { limit: MAX_LISTED_TABLES + 1, after: None };
        let listed = self.session.engine().catalog().tables().list(self.session.principal(), &filter, page).await?;
        if listed.items.len() > MAX_LISTED_TABLES {
            return Err(EngineError::Plan {
                message: format!("a wildcard looks at no more than {MAX_LISTED_TABLES} tables; name them"),
            });
        }
        Ok(listed.items.into_iter().map(|table| table.name.table).collect())
    }

    /// The files of an `externaldata`. What reads any file is for administrators, and not for those who act for them in
    /// read-only mode; which files there may be is said by the rules for external tables.
    async fn files(&self, key: &LocationKey) -> Result<Arc<dyn TableSource>> {
        let why = match (self.session.mode(), self.session.principal().role()) {
            (Mode::ReadOnly, _) => " in read-only mode",
            (Mode::ReadWrite, Role::Read | Role::Write) => " for this role (it needs role admin)",
            (Mode::ReadWrite, Role::Admin) => "",
        };
        if !why.is_empty() {
            return Err(EngineError::NotAllowed { what: "externaldata".to_owned(), why: why.to_owned() });
        }
        let location = allowed_location(&key.location, self.session.principal(), self.session.engine()).await?;
        let bounds = Bounds { pool: Arc::clone(self.memory.pool()), interrupt: self.interrupt.clone() };
        let (table, bytes) = ad_hoc_table(self.state, &location, key.layout, key.skips_first, bounds).await?;
        self.memory.keep(bytes)?;
        Ok(provider_as_source(Arc::new(CatalogTable::at_allowed_location(table))))
    }

    async fn rows(&self, plan: LogicalPlan, limit: usize) -> Result<Vec<RecordBatch>> {
        let plan = LogicalPlanBuilder::from(plan).limit(0, Some(limit))?.build()?;
        let plan = self.session.authorize(self.analysed(plan)?)?;
        let mut stream = self.session.run_in(plan.plan(), self.memory.pool(), self.interrupt).await?;
        let mut batches = Vec::new();
        while let Some(batch) = stream.next().await {
            let batch = batch?;
            self.memory.keep(batch.get_array_memory_size() + batch.num_rows() * BYTES_PER_LITERAL)?;
            batches.push(batch);
        }
        Ok(batches)
    }

    /// The plan with its types coerced: what policy judges and what runs.
    pub(crate) fn analysed(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        Ok(self.state.analyzer().execute_and_check(plan, self.state.config_options(), |_, _| {})?)
    }
}

/// The query of a `.show queryplan <| query`, where it stands in the text.
fn asked_to_explain(text: &str) -> Option<String> {
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
    fn explained(self) -> Result<Self> {
        let plan = LogicalPlanBuilder::from(self.plan).explain(false, false)?.build()?;
        let columns = plan.schema().fields().iter();
        let columns =
            columns.map(|field| KqlColumn { name: field.name().clone(), kql_type: KqlType::String }).collect();
        Ok(Self { plan, columns, rendering: None })
    }

    /// The plan whose times are Arrow's: microseconds, which hold all of KQL's years.
    pub(crate) fn in_arrow_types(self) -> Result<LogicalPlan> {
        if !self.columns.iter().any(|column| matches!(column.kql_type, KqlType::DateTime | KqlType::TimeSpan)) {
            return Ok(self.plan);
        }
        let exprs = self.columns.iter().map(|column| {
            let value = field_column(&column.name);
            arrow_value(value, column.kql_type).alias(column.name.clone())
        });
        let exprs: Vec<PlanExpr> = exprs.collect();
        Ok(LogicalPlanBuilder::from(self.plan).project(exprs)?.build()?)
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

fn planned(relation: Relation, rendering: Option<Rendering>) -> PlannedKql {
    let columns = relation.columns.iter();
    let columns = columns.map(|column| KqlColumn { name: column.name.clone(), kql_type: column.kql_type }).collect();
    PlannedKql { plan: relation.plan, columns, rendering }
}

fn syntax_error(text: &str, errors: &[super::SyntaxError]) -> EngineError {
    let first = errors.first();
    // The first one's hint is beside the message.
    let first_rendered = first.map(|error| render_at(text, error.span, &error.message, None));
    let others = errors.iter().skip(1).map(|error| error.render(text));
    let rendered: Vec<String> = first_rendered.into_iter().chain(others).collect();
    EngineError::Kql {
        code: first.map_or(super::SyntaxErrorCode::Unexpected, |error| error.code).into(),
        message: rendered.join("\n"),
        hint: first.and_then(|error| error.hint.clone()),
    }
}
