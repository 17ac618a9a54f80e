//! Statement queries: planned and authorised in GetFlightInfo, executed once, in DoGet.
//!
//! Invariant: DoGet streams the schema that GetFlightInfo announced. The statement is planned again in between, and
//! refused if its tables have changed so that its schema would differ.

use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt, TicketStatementQuery};
use arrow_flight::{FlightData, FlightEndpoint, IpcMessage, SchemaAsIpc, Ticket};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::{Schema, SchemaRef};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::Message;
use prost_types::Timestamp;
use querent_engine::policy::AuthorizedPlan;
use querent_engine::{QueryStream, Session};
use tonic::Status;

use super::caller::FlightCaller;
use super::encode;
use super::ticket::{StatementTicket, TicketOffice};
use super::unsupported::not_served;
use super::wire::wire_schema;
use crate::admission::{Door, QueryPermit};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// A statement that may be executed.
pub(super) struct PlannedStatement {
    /// The schema of the stream.
    pub(super) schema: SchemaRef,
    session: Session,
    plan: AuthorizedPlan,
    statement: String,
}

/// Plans statements and executes them.
pub(super) struct Statements {
    state: AppState,
    tickets: TicketOffice,
}

impl Statements {
    pub(super) fn new(state: AppState) -> Self {
        Self { state, tickets: TicketOffice::new() }
    }

    /// Plans and authorises a statement for its caller.
    pub(super) async fn plan(
        &self,
        caller: &FlightCaller,
        query: &CommandStatementQuery,
    ) -> Result<PlannedStatement, ApiError> {
        if query.transaction_id.as_ref().is_some_and(|id| !id.is_empty()) {
            return Err(not_served("a statement in a transaction", "every statement commits by itself"));
        }
        let session = self.session(caller, caller.database()?).await?;
        plan(session, query.query.clone()).await
    }

    /// Returns the endpoint at which a planned statement's rows can be fetched.
    pub(super) fn endpoint(
        &self,
        caller: &FlightCaller,
        planned: &PlannedStatement,
    ) -> Result<FlightEndpoint, ApiError> {
        let ticket = StatementTicket::new(
            &caller.principal,
            &planned.statement,
            planned.session.database(),
            &schema_bytes(&planned.schema)?,
            !planned.plan.is_query(),
        );
        let redeemed_by = TicketStatementQuery { statement_handle: self.tickets.seal(&ticket) };
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(redeemed_by.as_any().encode_to_vec()));
        // An expiry would promise that the ticket can be redeemed again until then, which a change must not be.
        if ticket.changes {
            return Ok(endpoint);
        }
        let millis = i64::try_from(ticket.expires_unix_ms()).unwrap_or(i64::MAX);
        let nanos = i32::try_from(millis % 1_000 * 1_000_000).unwrap_or(0);
        Ok(endpoint.with_expiration_time(Timestamp { seconds: millis / 1_000, nanos }))
    }

    /// Executes the statement of a ticket.
    pub(super) async fn execute(
        &self,
        caller: &FlightCaller,
        sealed: &Bytes,
    ) -> Result<BoxStream<'static, Result<FlightData, Status>>, ApiError> {
        let ticket = self.tickets.open(sealed, &caller.principal)?;
        let mut permit = self.state.admission.admit(Door::Flight)?;
        match self.start(caller, ticket).await {
            Ok((schema, rows)) => {
                let rows = rows.holding(permit.take_slot());
                Ok(encode::flight_stream(schema, count_rows(rows, permit)))
            }
            Err(error) => {
                permit.failed();
                Err(error)
            }
        }
    }

    async fn start(
        &self,
        caller: &FlightCaller,
        ticket: StatementTicket,
    ) -> Result<(SchemaRef, QueryStream), ApiError> {
        let session = self.session(caller, Some(&ticket.database)).await?;
        let planned = plan(session, ticket.statement.clone()).await?;
        if !ticket.has_schema(&schema_bytes(&planned.schema)?) {
            return Err(ApiError::new(
                ErrorCode::Conflict,
                "the statement's result changed its columns since GetFlightInfo",
            )
            .with_hint("run the statement again"));
        }
        if ticket.changes {
            self.tickets.redeem_once(&ticket)?;
        }
        let rows = planned.session.execute(planned.plan).await?;
        Ok((planned.schema, rows))
    }

    async fn session(&self, caller: &FlightCaller, database: Option<&str>) -> Result<Session, ApiError> {
        let session = self.state.session(caller.principal.clone(), self.state.settings.limits());
        Ok(session.in_database(database).await?)
    }
}

async fn plan(session: Session, statement: String) -> Result<PlannedStatement, ApiError> {
    let plan = session.authorize(session.plan_sql(&statement).await?)?;
    let schema = wire_schema(&session.schema_of(&plan));
    Ok(PlannedStatement { schema, session, plan, statement })
}

/// Passes the query's batches on and tells the metrics how the query ended.
fn count_rows(
    mut rows: QueryStream,
    mut permit: QueryPermit,
) -> impl futures::Stream<Item = Result<arrow::array::RecordBatch, Status>> + Send + 'static {
    async_stream::stream! {
        while let Some(batch) = rows.next().await {
            match batch {
                Ok(batch) => yield Ok(batch),
                Err(error) => {
                    let error = ApiError::from(error);
                    permit.failed();
                    yield Err(error.into());
                    return;
                }
            }
        }
        permit.succeeded(rows.stats().rows);
    }
}

fn schema_bytes(schema: &Schema) -> Result<Bytes, ApiError> {
    let IpcMessage(message) =
        SchemaAsIpc::new(schema, &IpcWriteOptions::default()).try_into().map_err(ApiError::internal)?;
    Ok(message)
}
