//! Arrow Flight SQL: the gRPC door.
//!
//! The service is written on `FlightService` itself rather than on arrow-flight's `FlightSqlService`, whose blanket
//! implementation cannot answer GetSchema, PollFlightInfo or path descriptors and always advertises transactions.
//!
//! Invariants: every method authenticates first; GetFlightInfo and GetSchema plan and authorise but never execute;
//! a command that is not served is answered UNIMPLEMENTED, by name, and never advertised.

mod caller;
mod db_schemas;
mod encode;
mod handshake;
mod listing;
mod metadata;
mod sql_info;
mod statement;
mod tables;
mod ticket;
mod unsupported;
mod wire;

use arrow_flight::flight_descriptor::DescriptorType;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::{Any, Command, TicketStatementQuery};
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, HandshakeRequest,
    PollInfo, PutResult, SchemaAsIpc, SchemaResult, Ticket,
};
use arrow_ipc::writer::IpcWriteOptions;
use arrow_schema::Schema;
use futures::StreamExt;
use futures::stream::BoxStream;
use prost::Message;
use tonic::service::Routes;
use tonic::{Request, Response, Status, Streaming};

use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

use caller::FlightCaller;
use metadata::MetadataCommand;
use statement::Statements;
use unsupported::{not_served, unsupported, unsupported_action};

/// The largest message that a client may send.
const MAX_REQUEST_BYTES: usize = 64 << 20;

/// Adds the Flight service to the HTTP routes.
pub fn add_service(routes: Routes, state: &AppState) -> Routes {
    let service = FlightSql { state: state.clone(), statements: Statements::new(state.clone()) };
    routes.add_service(FlightServiceServer::new(service).max_decoding_message_size(MAX_REQUEST_BYTES))
}

/// The Flight SQL service of a server.
struct FlightSql {
    state: AppState,
    statements: Statements,
}

impl FlightSql {
    fn caller<T>(&self, request: &Request<T>) -> Result<FlightCaller, ApiError> {
        FlightCaller::authenticated(&self.state.auth, request)
    }
}

type Streamed<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl FlightService for FlightSql {
    type HandshakeStream = handshake::HandshakeStream;
    type ListFlightsStream = Streamed<FlightInfo>;
    type DoGetStream = Streamed<FlightData>;
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
        let caller = self.caller(&request)?;
        let descriptor = request.into_inner();
        let command = command_of(&descriptor)?;
        let info = match command {
            Command::CommandStatementQuery(query) => {
                let statement = self.statements.plan(&caller, &query).await?;
                let endpoint = self.statements.endpoint(&caller, &statement)?;
                flight_info(&statement.schema, endpoint)?
            }
            command => match MetadataCommand::from_command(&command) {
                Some(listing) => {
                    let ticket = Ticket::new(command.into_any().encode_to_vec());
                    flight_info(&listing.schema(), FlightEndpoint::new().with_ticket(ticket))?
                }
                None => return Err(unsupported("GetFlightInfo", &command).into()),
            },
        };
        Ok(Response::new(info.with_descriptor(descriptor)))
    }

    async fn get_schema(&self, request: Request<FlightDescriptor>) -> Result<Response<SchemaResult>, Status> {
        let caller = self.caller(&request)?;
        let command = command_of(request.get_ref())?;
        let schema = match command {
            Command::CommandStatementQuery(query) => self.statements.plan(&caller, &query).await?.schema,
            command => match MetadataCommand::from_command(&command) {
                Some(listing) => listing.schema(),
                None => return Err(unsupported("GetSchema", &command).into()),
            },
        };
        let options = IpcWriteOptions::default();
        let result = SchemaAsIpc::new(&schema, &options).try_into().map_err(ApiError::internal)?;
        Ok(Response::new(result))
    }

    async fn do_get(&self, request: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let caller = self.caller(&request)?;
        let command = decode_command(&request.get_ref().ticket, "ticket")?;
        let stream = match command {
            Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
                self.statements.execute(&caller, &statement_handle).await?
            }
            command => match MetadataCommand::from_command(&command) {
                Some(listing) => {
                    let schema = listing.schema();
                    let batches = listing.batches(&self.state.engine, &caller.principal)?;
                    encode::flight_stream(schema, batches)
                }
                None => return Err(unsupported("DoGet", &command).into()),
            },
        };
        Ok(Response::new(stream))
    }

    async fn do_put(&self, request: Request<Streaming<FlightData>>) -> Result<Response<Self::DoPutStream>, Status> {
        self.caller(&request)?;
        let first = request.into_inner().message().await?;
        let descriptor = first.and_then(|message| message.flight_descriptor).unwrap_or_default();
        Err(unsupported("DoPut", &command_of(&descriptor)?).into())
    }

    async fn do_action(&self, request: Request<Action>) -> Result<Response<Self::DoActionStream>, Status> {
        self.caller(&request)?;
        Err(unsupported_action(&request.get_ref().r#type).into())
    }

    async fn list_actions(&self, request: Request<Empty>) -> Result<Response<Self::ListActionsStream>, Status> {
        self.caller(&request)?;
        Ok(Response::new(futures::stream::empty().boxed()))
    }

    async fn list_flights(&self, request: Request<Criteria>) -> Result<Response<Self::ListFlightsStream>, Status> {
        self.caller(&request)?;
        Err(not_served("ListFlights", "list tables with the Flight SQL command GetTables").into())
    }

    async fn poll_flight_info(&self, request: Request<FlightDescriptor>) -> Result<Response<PollInfo>, Status> {
        self.caller(&request)?;
        Err(not_served("PollFlightInfo", "call GetFlightInfo: it plans and returns at once").into())
    }

    async fn do_exchange(
        &self,
        request: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        self.caller(&request)?;
        Err(not_served("DoExchange", "send statements with GetFlightInfo and DoGet").into())
    }
}

/// Returns a `FlightInfo` with one endpoint, on this connection: Grafana refuses more than one, and other clients read
/// only the first.
fn flight_info(schema: &Schema, endpoint: FlightEndpoint) -> Result<FlightInfo, ApiError> {
    let info = FlightInfo::new().try_with_schema(schema).map_err(ApiError::internal)?;
    Ok(info.with_endpoint(endpoint).with_total_records(-1).with_total_bytes(-1))
}

fn command_of(descriptor: &FlightDescriptor) -> Result<Command, ApiError> {
    if descriptor.r#type() == DescriptorType::Path {
        return Err(not_served("a descriptor by path", "send a Flight SQL command, such as CommandStatementQuery"));
    }
    decode_command(&descriptor.cmd, "descriptor")
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
