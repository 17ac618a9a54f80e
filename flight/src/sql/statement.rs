//! Statements: planned and authorised in GetFlightInfo, executed once, in DoGet; or executed at once, in DoPut.
//!
//! Invariants: DoGet streams the schema that GetFlightInfo announced. The statement is planned again in between, and
//! refused if its tables have changed so that its schema would differ. A statement that changes something is carried out
//! once its ticket has come back, whether or not its client waits for the answer.

use std::cell::RefCell;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow_flight::sql::{ProstMessageExt, TicketStatementQuery};
use arrow_flight::{FlightEndpoint, IpcMessage, SchemaAsIpc, Ticket};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use prost::Message;
use prost_types::Timestamp;
use querent_engine::policy::AuthorizedPlan;
use querent_engine::{QuerySlot, QueryStream, ResultTypes, Session};
use tokio::sync::oneshot;
use tonic::Status;

use super::caller::FlightCaller;
use super::encode::{self, FlightStream};
use super::endpoints::{RunningRows, SharedQueries};
use super::running::{RunningTicket, RunningTickets};
use super::statement_text::StatementText;
use super::ticket::{StatementTicket, TicketOffice, new_id};
use super::unsupported::not_served;
use crate::admission::{Door, QueryPermit};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;
use crate::telemetry::detached;

/// The longest message of a schema that a thread keeps.
const MAX_KEPT_SCHEMA_BYTES: usize = 16 << 10;

/// A statement that may be executed.
pub(super) struct PlannedStatement {
    /// The schema of the stream.
    pub(super) schema: SchemaRef,
    /// Whether it changes something.
    pub(super) changes: bool,
    session: Session,
    /// What is executed.
    work: StatementWork,
    statement: Arc<StatementText>,
}

impl PlannedStatement {
    /// Whether its rows may come in any order, and from several endpoints.
    pub(super) fn is_splittable(&self) -> bool {
        match &self.work {
            StatementWork::Plan(plan) => !self.changes && !plan.is_ordered(),
            StatementWork::Kql => false,
        }
    }
}

/// KQL is planned where it is executed, since planning it may read rows.
enum StatementWork {
    Plan(Box<AuthorizedPlan>),
    Kql,
}

/// Plans statements and executes them.
pub(super) struct Statements {
    state: AppState,
    pub(super) tickets: TicketOffice,
    pub(super) running: RunningTickets,
    pub(super) shared: SharedQueries,
}

impl Statements {
    pub(super) fn new(state: AppState) -> Self {
        let tickets = TicketOffice::new(&state.ticket_key, state.engine.catalog().members().own());
        Self { state, tickets, running: RunningTickets::default(), shared: SharedQueries::default() }
    }

    /// Returns a statement as its caller sent it: its text in the language and the database of the call.
    pub(super) async fn statement(&self, caller: &FlightCaller, text: String) -> Result<StatementText, ApiError> {
        let session = caller.current_session(&self.state).await?;
        Ok(StatementText::in_session(text, &session, caller.language()?))
    }

    /// Plans and authorises a statement for its caller.
    pub(super) async fn plan(
        &self,
        caller: &FlightCaller,
        statement: Arc<StatementText>,
        types: ResultTypes,
    ) -> Result<PlannedStatement, ApiError> {
        let session = caller.session_of(&self.state, &statement).await?.with_result_types(types);
        if statement.is_kql {
            let schema = session.describe_kql(&statement.text).boxed().await?;
            return Ok(PlannedStatement { schema, changes: false, session, work: StatementWork::Kql, statement });
        }
        let planned = match statement.parameter_rows()? {
            Some(rows) => session.plan_sql_with_rows(&statement.text, rows).await,
            None => session.authorize_sql(&statement.text).await,
        };
        let plan = planned.inspect_err(|error| session.record_failure(&statement.text, error))?;
        let schema = session.schema_of(&plan);
        let changes = !plan.is_query();
        Ok(PlannedStatement { schema, changes, session, work: StatementWork::Plan(Box::new(plan)), statement })
    }

    /// As [`Statements::plan`], for a statement that is not executed yet. Planning KQL may run queries, whose rows decide the
    /// columns of the rest, so it counts among those that run.
    pub(super) async fn plan_to_describe(
        &self,
        caller: &FlightCaller,
        statement: Arc<StatementText>,
        types: ResultTypes,
    ) -> Result<PlannedStatement, ApiError> {
        // The values of a PIVOT that lists none are looked for as well.
        let may_run = statement.is_kql || statement.text.to_ascii_lowercase().contains("pivot");
        let mut permit = match may_run {
            true => Some(self.state.admission.admit(&caller.principal, Door::Flight).await?),
            false => None,
        };
        let planned = self.plan(caller, statement, types).await;
        if let Some(permit) = &mut permit {
            permit.record(&planned);
        }
        planned
    }

    /// Returns the ticket by which a planned statement's rows, of this schema, can be fetched.
    pub(super) fn ticket(&self, caller: &FlightCaller, planned: &PlannedStatement, schema: &Bytes) -> StatementTicket {
        let mut ticket = self.tickets.ticket(&caller.principal, &planned.statement, Some(schema), planned.changes);
        ticket.result_types = planned.session.result_types().to_string();
        ticket
    }

    /// Returns the endpoint of a ticket.
    pub(super) fn sealed_endpoint(&self, ticket: &StatementTicket) -> FlightEndpoint {
        let redeemed_by = TicketStatementQuery { statement_handle: self.tickets.seal(ticket) };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(redeemed_by.as_any().encode_to_vec()));
        // An expiry would promise that the ticket can be redeemed again until then, which a change must not be, nor the rows
        // that other endpoints share.
        if ticket.is_good_once() {
            return endpoint;
        }
        let millis = i64::try_from(ticket.expires_unix_ms()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
        endpoint.with_expiration_time(Timestamp { seconds: millis / 1_000, nanos })
    }

    /// Executes the statement of a ticket.
    pub(super) async fn redeem(
        self: &Arc<Self>,
        caller: FlightCaller,
        sealed: &Bytes,
    ) -> Result<FlightStream, ApiError> {
        let ticket = self.tickets.open(sealed, &caller.principal)?;
        // Entered before it is checked: whoever cancels it in between finds it.
        let running = self.running.enter(ticket.id.clone());
        self.tickets.check_unspent(&ticket)?;
        if ticket.changes {
            return self.carry_out(caller, ticket, running).await;
        }
        if ticket.parts > 1 {
            return self.redeem_part(&caller, &ticket, running).await;
        }
        let statement = self.tickets.statement(&ticket)?;
        if statement.is_kql {
            return self.execute(&caller, running, self.plan_of(&caller, &ticket)).await;
        }
        self.deliver(&caller, running, |slot| self.query_of(&caller, &ticket, &statement, slot)).await
    }

    /// Executes the change of a ticket in a task of its own, which goes on when its client is gone: a driver that opens
    /// DoGet in the background and closes its cursor meant the statement to be executed.
    async fn carry_out(
        self: &Arc<Self>,
        caller: FlightCaller,
        ticket: StatementTicket,
        running: RunningTicket,
    ) -> Result<FlightStream, ApiError> {
        let statements = Arc::clone(self);
        let executed = detached(async move {
            let planned = async {
                let planned = statements.plan_of(&caller, &ticket).await?;
                // From here on it cannot be cancelled.
                statements.tickets.spend(&ticket)?;
                Ok(planned)
            };
            statements.execute(&caller, running, planned).await
        });
        let (sender, answer) = oneshot::channel();
        self.state.shutdown.spawn(async move {
            // The receiver is gone where the client is.
            let _ = sender.send(executed.await);
        });
        answer.await.map_err(|_| ApiError::internal("a statement was cut by the shutdown"))?
    }

    /// Plans and begins the query of a ticket in one go. Errors: `conflict` where its schema is another one now.
    async fn query_of(
        &self,
        caller: &FlightCaller,
        ticket: &StatementTicket,
        statement: &StatementText,
        slot: Option<QuerySlot>,
    ) -> Result<(SchemaRef, QueryStream), ApiError> {
        let session = caller.session_of(&self.state, statement).await?.with_result_types(ticket.result_types.parse()?);
        let rows = session.query_with_rows(&statement.text, statement.parameter_rows()?).await?.holding(slot);
        let schema = rows.schema();
        check_announced(ticket, &schema)?;
        Ok((schema, rows))
    }

    /// Plans the statement of a ticket again. Errors: `conflict` where its schema is another one now.
    async fn plan_of(&self, caller: &FlightCaller, ticket: &StatementTicket) -> Result<PlannedStatement, ApiError> {
        let statement = self.tickets.statement(ticket)?;
        let planned = self.plan(caller, statement, ticket.result_types.parse()?).await?;
        check_announced(ticket, &planned.schema)?;
        Ok(planned)
    }

    /// Begins the query of a ticket whose rows several endpoints share.
    pub(super) async fn begin_shared(
        &self,
        caller: &FlightCaller,
        ticket: &StatementTicket,
    ) -> Result<RunningRows, ApiError> {
        let mut permit = self.state.admission.admit(&caller.principal, Door::Flight).await?;
        let slot = permit.take_slot();
        let begun = async { self.start(self.plan_of(caller, ticket).await?, slot).await };
        match Box::pin(begun).await {
            Ok((schema, rows)) => Ok(RunningRows { schema, rows, permit }),
            Err(error) => {
                permit.failed();
                Err(error)
            }
        }
    }

    /// Executes what `planned` gives, and streams its rows until `running` is cancelled.
    async fn execute(
        &self,
        caller: &FlightCaller,
        running: RunningTicket,
        planned: impl Future<Output = Result<PlannedStatement, ApiError>>,
    ) -> Result<FlightStream, ApiError> {
        self.deliver(caller, running, |slot| async { self.start(planned.await?, slot).await }).await
    }

    /// Streams the rows of what `begin` begins in a slot, until `running` is cancelled.
    async fn deliver<F>(
        &self,
        caller: &FlightCaller,
        running: RunningTicket,
        begin: impl FnOnce(Option<QuerySlot>) -> F,
    ) -> Result<FlightStream, ApiError>
    where
        F: Future<Output = Result<(SchemaRef, QueryStream), ApiError>>,
    {
        let mut permit = tokio::select! {
            permit = self.state.admission.admit(&caller.principal, Door::Flight) => permit?,
            () = running.cancelled() => return Err(cancelled()),
        };
        // What plans and begins a statement is large: it would be copied into each future around it.
        let begun = Box::pin(begin(permit.take_slot()));
        let started = tokio::select! {
            started = begun => started,
            () = running.cancelled() => Err(cancelled()),
        };
        match started {
            Ok((schema, rows)) => {
                let is_kept = rows.stats().from_result_cache;
                Ok(encode::flight_stream(schema, delivered(rows, permit, running)).kept(is_kept))
            }
            Err(error) => {
                permit.failed();
                Err(error)
            }
        }
    }

    /// Executes a query that has no ticket.
    pub(super) async fn fetch(
        &self,
        caller: &FlightCaller,
        statement: Arc<StatementText>,
    ) -> Result<FlightStream, ApiError> {
        let types = caller.result_types()?;
        let planned = async {
            let planned = self.plan(caller, statement, types).await?;
            match planned.changes {
                true => Err(not_served(
                    "a statement that changes something, sent as a ticket,",
                    "call GetFlightInfo, whose ticket executes it once, or send it by DoPut",
                )),
                false => Ok(planned),
            }
        };
        self.execute(caller, self.running.enter(new_id()), planned).await
    }

    /// Executes a statement for each row of values: all or none, or, where it reads what it changes or is planned for each of very
    /// many, one part of them after the other. Returns as [`Statements::update`]; a failure after the first part says how many
    /// were executed.
    pub(super) async fn update_with_rows(
        &self,
        caller: &FlightCaller,
        statement: &StatementText,
        values: &RecordBatch,
    ) -> Result<Option<u64>, ApiError> {
        let rows = values.num_rows();
        let at_once = if rows > 1 { self.rows_at_once(caller, statement).await? } else { 1 };
        if rows <= at_once {
            return self.update(caller, Arc::new(statement.with_parameters(values)?)).await;
        }
        let (mut written, mut executed) = (0, 0);
        while executed < rows {
            let part = values.slice(executed, at_once.min(rows - executed));
            let changed = self.update(caller, Arc::new(statement.with_parameters(&part)?)).await;
            let changed = changed.map_err(|error| match executed {
                0 => error,
                _ => {
                    error.with_what_stays(&format!("the rows of values before it, {executed}, were executed and stay"))
                }
            })?;
            written += changed.unwrap_or(0);
            executed += part.num_rows();
        }
        Ok(Some(written))
    }

    async fn rows_at_once(&self, caller: &FlightCaller, statement: &StatementText) -> Result<usize, ApiError> {
        let session = caller.session_of(&self.state, statement).await?;
        // What cannot be described without its values is refused with several rows of them, if it is one.
        let described = session.describe_sql(&statement.text).await;
        Ok(described.map_or(usize::MAX, |described| described.rows_at_once.max(1)))
    }

    /// Executes a statement whose rows nobody fetches. Returns the number of rows that it wrote; `None` for a query, which
    /// writes none.
    pub(super) async fn update(
        &self,
        caller: &FlightCaller,
        statement: Arc<StatementText>,
    ) -> Result<Option<u64>, ApiError> {
        let mut permit = self.state.admission.admit(&caller.principal, Door::Flight).await?;
        let done = async {
            if statement.is_kql {
                // Not described first: that would run a pivot's queries twice, and commands are carried out.
                let session = caller.session_of(&self.state, &statement).await?;
                carried_out(session, Arc::clone(&statement)).await?;
                return Ok(None);
            }
            let planned = self.plan(caller, statement, ResultTypes::default()).await?;
            match planned.work {
                StatementWork::Plan(plan) => {
                    let rows = planned.session.execute_update(*plan).await?;
                    Ok(planned.changes.then_some(rows))
                }
                // Carried out above.
                StatementWork::Kql => Ok(None),
            }
        };
        let done = done.await;
        permit.record(&done);
        done
    }

    /// Begins a query; executes a change.
    async fn start(
        &self,
        planned: PlannedStatement,
        slot: Option<QuerySlot>,
    ) -> Result<(SchemaRef, QueryStream), ApiError> {
        let PlannedStatement { schema, changes, session, work, statement } = planned;
        let rows = match work {
            StatementWork::Plan(plan) => session.execute(*plan).await?,
            StatementWork::Kql => {
                // It is planned once more, and rows may decide its columns.
                let rows = session.kql(&statement.text).await?;
                if rows.schema() != schema {
                    return Err(changed_columns());
                }
                rows
            }
        };
        // What a change answers with is there already, and takes no place until it is read.
        let slot = slot.filter(|_| !changes);
        Ok((schema, rows.holding(slot)))
    }
}

/// Runs KQL whose rows nobody fetches. Boxed as what it is, so that the compiler does not look into it for each caller.
fn carried_out(session: Session, statement: Arc<StatementText>) -> BoxFuture<'static, Result<(), ApiError>> {
    Box::pin(async move {
        let mut rows = session.kql(&statement.text).await?;
        while let Some(batch) = rows.next().await {
            batch?;
        }
        Ok(())
    })
}

/// Passes the query's batches on until it is cancelled, and tells the metrics how it ended.
fn delivered(
    mut rows: QueryStream,
    mut permit: QueryPermit,
    running: RunningTicket,
) -> impl futures::Stream<Item = Result<RecordBatch, Status>> + Send + 'static {
    async_stream::stream! {
        loop {
            let next = tokio::select! {
                next = rows.next() => next,
                () = running.cancelled() => {
                    yield Err(cancelled().into());
                    return;
                }
            };
            match next {
                Some(Ok(batch)) => yield Ok(batch),
                Some(Err(error)) => {
                    let error = ApiError::from(error);
                    permit.failed();
                    yield Err(error.into());
                    return;
                }
                None => break,
            }
        }
        permit.succeeded(rows.stats().rows);
    }
}

/// Errors: `conflict` where a statement's rows have another schema now than GetFlightInfo announced.
fn check_announced(ticket: &StatementTicket, schema: &Schema) -> Result<(), ApiError> {
    if ticket.has_schema(&schema_bytes(schema)?) {
        return Ok(());
    }
    Err(changed_columns())
}

fn changed_columns() -> ApiError {
    let message = "the statement's result changed its columns since GetFlightInfo";
    ApiError::new(ErrorCode::Conflict, message).with_hint("run the statement again")
}

/// Returns the error of a query that its client cancelled.
pub(super) fn cancelled() -> ApiError {
    ApiError::new(ErrorCode::Cancelled, "the query was cancelled by CancelFlightInfo")
}

thread_local! {
    /// The schema that this thread encoded last, which a statement that comes again has again: for its FlightInfo, and to check its
    /// ticket.
    static LAST_SCHEMA: RefCell<Option<(Schema, Bytes)>> = const { RefCell::new(None) };
}

/// Returns a schema as an encapsulated IPC message.
pub(super) fn schema_bytes(schema: &Schema) -> Result<Bytes, ApiError> {
    let known = LAST_SCHEMA.with_borrow(|last| {
        let known = last.as_ref().filter(|(known, _)| known == schema);
        known.map(|(_, message)| message.clone())
    });
    if let Some(message) = known {
        return Ok(message);
    }
    let IpcMessage(message) =
        SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into().map_err(ApiError::internal)?;
    if message.len() <= MAX_KEPT_SCHEMA_BYTES {
        LAST_SCHEMA.set(Some((schema.clone(), message.clone())));
    }
    Ok(message)
}
