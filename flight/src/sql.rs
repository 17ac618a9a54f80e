//! Arrow Flight SQL: the gRPC door.
//!
//! The service is written on `FlightService` itself rather than on arrow-flight's `FlightSqlService`, whose blanket
//! implementation cannot answer GetSchema, PollFlightInfo or path descriptors and always advertises transactions.
//!
//! Invariants: every method takes its caller from the guard (`crate::guard`), Handshake aside; GetFlightInfo and GetSchema plan and authorise but never execute;
//! a command that is not served is answered UNIMPLEMENTED, by name, and never advertised.

mod actions;
mod caller;
mod db_schemas;
mod digests;
mod elsewhere;
mod encode;
mod endpoints;
mod flights;
mod handshake;
mod ingest;
mod keys;
mod listing;
mod messages;
mod metadata;
mod prepared;
mod put;
mod results;
mod running;
mod sessions;
mod sql_info;
mod sql_types;
mod statement;
mod statement_text;
mod tables;
mod ticket;
mod unsupported;

use std::sync::Arc;
use std::time::Duration;

use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::{
    Any, Command, CommandPreparedStatementQuery, CommandPreparedStatementUpdate, CommandStatementQuery,
    CommandStatementUpdate, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    PollInfo, PutResult, SchemaResult, Ticket,
};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use http::header;
use prost::Message;
use tonic::metadata::MetadataValue;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

use caller::FlightCaller;
use encode::{FlightFrames, FlightStream};
use ingest::update_result;
use metadata::MetadataCommand;
use put::PutRows;
pub(crate) use results::TRUNCATED_KEY;
use results::result_stream;
use sessions::FlightSessions;
use statement::{PlannedStatement, Statements, schema_bytes};
pub(crate) use ticket::signing_key;
use unsupported::{not_served, refuse_transaction, unsupported};

/// The longest command that FlightInfo repeats. With the ticket it has to go through clients that take 16 MiB.
const MAX_REPEATED_DESCRIPTOR: usize = 64 << 10;
/// How often sessions that nobody uses are looked for.
const SESSIONS_UPKEEP: Duration = Duration::from_secs(60);

/// Adds the Flight service to the HTTP routes.
pub fn add_service(routes: Routes, state: &AppState) -> Routes {
    let sessions = Arc::new(FlightSessions::new(state.engine.clone()));
    state.shutdown.spawn(forget_idle_sessions(state.clone(), Arc::clone(&sessions)));
    // The guard has bounded each method's messages by then.
    let largest = state.settings.flight.max_message_bytes.to_usize().max(state.settings.statement_message_bytes());
    let service = FlightSql { state: state.clone(), statements: Arc::new(Statements::new(state.clone())), sessions };
    routes.add_service(FlightFrames(FlightServiceServer::new(service).max_decoding_message_size(largest)))
}

/// The Flight SQL service of a server.
struct FlightSql {
    state: AppState,
    statements: Arc<Statements>,
    sessions: Arc<FlightSessions>,
}

async fn forget_idle_sessions(state: AppState, sessions: Arc<FlightSessions>) {
    while tokio::time::timeout(SESSIONS_UPKEEP, state.shutdown.draining()).await.is_err() {
        sessions.forget_idle();
    }
}

/// What a descriptor asks for.
enum Described {
    Statement(Box<PlannedStatement>),
    Metadata(MetadataCommand, Box<Command>),
}

impl FlightSql {
    fn caller<T>(&self, request: Request<T>) -> Result<(FlightCaller, T), ApiError> {
        FlightCaller::admitted(&self.sessions, request)
    }

    async fn describe(
        &self,
        method: &str,
        caller: &FlightCaller,
        descriptor: &FlightDescriptor,
    ) -> Result<Described, ApiError> {
        let statement = if descriptor.r#type() == DescriptorType::Path {
            flights::statement_of_path(&descriptor.path, caller.database()?.as_deref())?.into()
        } else {
            match decode_command(&descriptor.cmd, "descriptor")? {
                Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                    refuse_transaction(transaction_id.as_ref())?;
                    self.statements.statement(caller, query).await?.into()
                }
                Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery { prepared_statement_handle }) => {
                    self.statements.prepared(caller, &prepared_statement_handle)?
                }
                command => {
                    return match MetadataCommand::from_command(&command) {
                        Some(listing) => Ok(Described::Metadata(listing, Box::new(command))),
                        None => Err(unsupported(method, &command)),
                    };
                }
            }
        };
        Ok(Described::Statement(Box::new(
            self.statements.plan_to_describe(caller, statement, caller.result_types()?).await?,
        )))
    }

    async fn info(&self, method: &str, request: Request<FlightDescriptor>) -> Result<FlightInfo, ApiError> {
        let (caller, descriptor) = self.caller(request)?;
        let info = match self.describe(method, &caller, &descriptor).await? {
            Described::Statement(planned) => {
                let schema = schema_bytes(&planned.schema)?;
                let endpoints = self.statements.endpoints(&caller, &planned, &schema, caller.endpoints()?);
                // It then asks for the rows at once, rather than in the background, where they are never asked for if the
                // cursor is closed before.
                let is_left_out = planned.changes && caller.fetches_in_background();
                flight_info(if is_left_out { Bytes::new() } else { schema }, endpoints)
            }
            Described::Metadata(listing, command) => {
                let ticket = Ticket::new(command.into_any().encode_to_vec());
                flight_info(schema_bytes(&listing.schema())?, vec![FlightEndpoint::new().with_ticket(ticket)])
            }
        };
        // Without a descriptor's type, C++ clients (pyarrow, flightsql-dbapi) read no FlightInfo.
        let repeated = match descriptor.cmd.len() <= MAX_REPEATED_DESCRIPTOR {
            true => descriptor,
            false => FlightDescriptor { cmd: Bytes::new(), ..descriptor },
        };
        Ok(info.with_descriptor(repeated))
    }
}

impl FlightSql {
    /// Does what a descriptor says with the rows that follow it.
    async fn put(
        &self,
        caller: &FlightCaller,
        descriptor: FlightDescriptor,
        rows: PutRows,
    ) -> Result<Streamed<PutResult>, ApiError> {
        if descriptor.r#type() == DescriptorType::Path {
            let hint = "send CommandStatementIngest, which says what to do about a table that exists";
            return Err(not_served("DoPut to a path", hint));
        }
        let answer = match decode_command(&descriptor.cmd, "descriptor")? {
            Command::CommandStatementUpdate(CommandStatementUpdate { query, transaction_id }) => {
                refuse_transaction(transaction_id.as_ref())?;
                let statement = self.statements.statement(caller, query).await?;
                update_result(self.statements.update(caller, Arc::new(statement)).await?)
            }
            Command::CommandPreparedStatementUpdate(CommandPreparedStatementUpdate { prepared_statement_handle }) => {
                update_result(self.statements.update_prepared(caller, &prepared_statement_handle, rows).await?)
            }
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery { prepared_statement_handle }) => {
                let bound = self.statements.bind(caller, &prepared_statement_handle, rows).await?;
                PutResult { app_metadata: bound.encode_to_vec().into() }
            }
            Command::CommandStatementIngest(command) => {
                return ingest::ingest(&self.state, caller, command, rows).await;
            }
            command => return Err(unsupported("DoPut", &command)),
        };
        Ok(stream::iter([Ok(answer)]).boxed())
    }
}

type Streamed<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for FlightSql {
    type HandshakeStream = handshake::HandshakeStream;
    type ListFlightsStream = Streamed<FlightInfo>;
    type DoGetStream = FlightStream;
    type DoPutStream = Streamed<PutResult>;
    type DoActionStream = Streamed<arrow_flight::Result>;
    type ListActionsStream = Streamed<ActionType>;
    type DoExchangeStream = Streamed<FlightData>;

    async fn handshake(
        &self,
        request: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        handshake::handshake(&self.state.auth, request).await
    }

    async fn get_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<FlightInfo>, Status> {
        Ok(Response::new(self.info("GetFlightInfo", request).await?))
    }

    /// Answers with the whole FlightInfo: planning is all that it waits for, and rows are made while they are fetched.
    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        let info = self.info("PollFlightInfo", request).await?;
        Ok(Response::new(PollInfo {
            info: Some(info),
            flight_descriptor: None,
            progress: Some(1.0),
            expiration_time: None,
        }))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let (caller, descriptor) = self.caller(request)?;
        let schema = match decode_prepared(&descriptor) {
            // A prepared statement may have open parameters, so it is described as it was when it was prepared.
            Some(handle) => self.statements.described_schema(&self.state, &caller, &handle).await?,
            None => match self.describe("GetSchema", &caller, &descriptor).await? {
                Described::Statement(planned) => planned.schema,
                Described::Metadata(listing, _) => listing.schema(),
            },
        };
        Ok(Response::new(SchemaResult { schema: schema_bytes(&schema)? }))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let (caller, Ticket { ticket }) = self.caller(request)?;
        if let Some(rows) = elsewhere::rows_of_other_server(&self.state, &caller, &ticket).await? {
            return Ok(rows.into_response());
        }
        if let Some(rows) = result_stream(&self.state, &caller.principal, &ticket) {
            return Ok(rows?.into_response());
        }
        if flights::is_json_ticket(&ticket) {
            let statement = flights::json_ticket(&ticket, caller.database()?.as_deref(), caller.language()?)?;
            return Ok(self.statements.fetch(&caller, Arc::new(statement)).await?.into_response());
        }
        let stream = match decode_command(&ticket, "ticket")? {
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
                self.statements.redeem(caller, &statement_handle).await?
            }
            Command::CommandStatementQuery(CommandStatementQuery { query, transaction_id }) => {
                refuse_transaction(transaction_id.as_ref())?;
                let statement = self.statements.statement(&caller, query).await?;
                self.statements.fetch(&caller, Arc::new(statement)).await?
            }
            Command::CommandPreparedStatementQuery(CommandPreparedStatementQuery { prepared_statement_handle }) => {
                let statement = self.statements.prepared(&caller, &prepared_statement_handle)?;
                self.statements.fetch(&caller, statement).await?
            }
            command => match MetadataCommand::from_command(&command) {
                Some(listing) => {
                    let schema = listing.schema();
                    let temporary = caller.session().map(|session| session.tables().list()).unwrap_or_default();
                    let batches = listing.batches(&self.state.engine, &caller.principal, temporary)?;
                    encode::flight_stream(schema, batches)
                }
                None => return Err(unsupported("DoGet", &command).into()),
            },
        };
        Ok(stream.into_response())
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        let (caller, messages) = self.caller(request)?;
        let most_bytes = self.state.settings.flight.max_message_bytes.to_usize();
        let (descriptor, rows) = put::read_put(messages, most_bytes).await?;
        let broken_off = rows.broken_off();
        let told = move |status: Status| broken_off.get().cloned().unwrap_or(status);
        match self.put(&caller, descriptor, rows).await {
            Ok(answers) => Ok(Response::new(answers.map(move |answer| answer.map_err(&told)).boxed())),
            Err(error) => Err(told(error.into())),
        }
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        let (caller, action) = self.caller(request)?;
        if let Some(results) = elsewhere::action_of_other_server(&self.state, &caller, &action).await? {
            return Ok(Response::new(results));
        }
        let answer = actions::act(&self.state, &self.statements, &self.sessions, &caller, action).await?;
        let results = answer.body.map(|body| Ok(arrow_flight::Result { body }));
        let mut response = Response::new(stream::iter(results).boxed());
        if let Some(cookie) = answer.cookie {
            let cookie = MetadataValue::try_from(cookie.as_bytes()).map_err(ApiError::internal)?;
            response.metadata_mut().insert(header::SET_COOKIE.as_str(), cookie);
        }
        Ok(response)
    }

    async fn list_actions(&self, request: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        self.caller(request)?;
        let actions: Vec<_> = actions::action_types().map(Ok).collect();
        Ok(Response::new(stream::iter(actions).boxed()))
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        let (caller, criteria) = self.caller(request)?;
        let pattern = flights::pattern_of(&criteria.expression)?;
        Ok(Response::new(flights::list(&self.state, &self.statements, caller, pattern)))
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.caller(request)?;
        Err(not_served("DoExchange", "send statements with GetFlightInfo and DoGet").into())
    }
}

/// Returns a `FlightInfo`, whose endpoints are on this connection. It has one unless its client asked for more: Grafana
/// refuses more than one, and other clients read only the first.
fn flight_info(schema: Bytes, endpoints: Vec<FlightEndpoint>) -> FlightInfo {
    FlightInfo { schema, endpoint: endpoints, total_records: -1, total_bytes: -1, ..FlightInfo::default() }
}

/// Returns the handle of a descriptor that names a prepared query.
fn decode_prepared(descriptor: &FlightDescriptor) -> Option<Bytes> {
    match decode_command(&descriptor.cmd, "descriptor").ok()? {
        Command::CommandPreparedStatementQuery(prepared) if descriptor.r#type() != DescriptorType::Path => {
            Some(prepared.prepared_statement_handle)
        }
        _ => None,
    }
}

fn decode_command(bytes: &[u8], what: &str) -> Result<Command, ApiError> {
    let malformed = || {
        ApiError::new(ErrorCode::BadRequest, format!("the {what} is not a Flight SQL message"))
            .with_hint("it must be a protobuf Any that holds a command of arrow.flight.protocol.sql")
    };
    let any = Any::decode(bytes).map_err(|_| malformed())?;
    if any.type_url.is_empty() {
        return Err(malformed());
    }
    Command::try_from(any).map_err(|_| malformed())
}
