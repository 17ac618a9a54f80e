//! Tickets of other servers that share the catalog: a ticket names the server that made it, and DoGet fetches its rows there,
//! for its caller, whoever is asked. There it is cancelled and renewed, too.
//!
//! The name is read before the ticket's signature is checked, which only the server that it names can do: what is forged
//! leads to a server that refuses it.

use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{ActionCancelQueryRequest, Any, Command, TicketStatementQuery};
use arrow_flight::{Action, CancelFlightInfoRequest, FlightInfo, RenewFlightEndpointRequest, Ticket};
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http::{HeaderMap, Method, Uri};
use prost::Message;
use querent_agent::ResultStore;
use ring::digest;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use super::caller::FlightCaller;
use super::encode::{self, FlightStream};
use super::ticket::StatementTicket;
use super::{Streamed, decode_command};
use crate::auth::CLIENT_CERTIFICATE;
use crate::cluster::InUse;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";
const DO_ACTION: &str = "/arrow.flight.protocol.FlightService/DoAction";

/// Returns the rows of a ticket that another server made; `None` for those of this one, and those that name none.
/// Errors: `run_elsewhere`, where that server is not reached; and what it says.
pub(super) async fn rows_of_other_server(
    state: &AppState,
    caller: &FlightCaller,
    ticket: &Bytes,
) -> Result<Option<FlightStream>, Status> {
    let Some(server) = other_server_of(state, ticket) else { return Ok(None) };
    let OtherServer { mut client, headers, in_use } = connected(state, caller, &server, DO_GET).await?;
    let mut request = Request::new(Ticket::new(ticket.clone()));
    *request.metadata_mut() = headers;
    let answer = client.do_get(request).await.map_err(|status| named(&server, status))?;
    Ok(Some(encode::passed_on(held(server, answer.into_inner(), in_use))))
}

/// Has another server carry out what is to be done about its ticket: cancelling or renewing it. `None` for any other action.
/// Errors: as [`rows_of_other_server`].
pub(super) async fn action_of_other_server(
    state: &AppState,
    caller: &FlightCaller,
    action: &Action,
) -> Result<Option<Streamed<arrow_flight::Result>>, Status> {
    let Some(server) = ticket_in(action).and_then(|ticket| other_server_of(state, &ticket)) else { return Ok(None) };
    let OtherServer { mut client, headers, in_use } = connected(state, caller, &server, DO_ACTION).await?;
    let mut request = Request::new(action.clone());
    *request.metadata_mut() = headers;
    let answer = client.do_action(request).await.map_err(|status| named(&server, status))?;
    Ok(Some(held(server, answer.into_inner(), in_use).boxed()))
}

/// A client of another server, and the headers of a call that goes on there.
struct OtherServer {
    client: FlightServiceClient<Channel>,
    headers: MetadataMap,
    in_use: InUse,
}

/// Returns an answer that holds its connection until it has been read, and names the server where that is lost meanwhile.
fn held<T>(
    server: String,
    answer: Streaming<T>,
    in_use: InUse,
) -> impl Stream<Item = Result<T, Status>> + Send + 'static
where
    T: Send + 'static,
{
    answer.map(move |item| {
        let _in_use = &in_use;
        item.map_err(|status| named(&server, status))
    })
}

async fn connected(
    state: &AppState,
    caller: &FlightCaller,
    server: &str,
    path: &'static str,
) -> Result<OtherServer, ApiError> {
    let (method, uri) = (Method::POST, Uri::from_static(path));
    if state.forwarding.forwarded(&method, &uri, caller.headers())?.is_some() {
        return Err(unreached(server, "another server sent the request here"));
    }
    let address = state.engine.catalog().members().address_of(server).await?;
    let address =
        address.ok_or_else(|| unreached(server, "it has not said where it is reached: set cluster.address there"))?;
    let (channel, in_use) = state.forwarding.channel(&address).map_err(|reason| unreached(server, &reason))?;
    let certificate = caller.headers().get(CLIENT_CERTIFICATE);
    if let Some(reason) = state.forwarding.unknown_there(caller.headers(), certificate) {
        return Err(unreached(server, reason));
    }
    let headers = state.forwarding.headers(&method, &uri, caller.headers(), certificate);
    // One row may be of any size.
    let client = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    Ok(OtherServer { client, headers: MetadataMap::from_headers(without_grpc(headers)), in_use })
}

/// Returns the ticket that an action is about.
fn ticket_in(action: &Action) -> Option<Bytes> {
    let of_info = |info: FlightInfo| Some(info.endpoint.into_iter().next()?.ticket?.ticket);
    match action.r#type.as_str() {
        "CancelFlightInfo" => of_info(CancelFlightInfoRequest::decode(action.body.as_ref()).ok()?.info?),
        "CancelQuery" => {
            let request = Any::decode(action.body.as_ref()).ok()?.unpack::<ActionCancelQueryRequest>().ok()??;
            of_info(FlightInfo::decode(request.info).ok()?)
        }
        "RenewFlightEndpoint" => {
            Some(RenewFlightEndpointRequest::decode(action.body.as_ref()).ok()?.endpoint?.ticket?.ticket)
        }
        _ => None,
    }
}

/// Returns the server that made a ticket, where that is another one.
fn other_server_of(state: &AppState, ticket: &Bytes) -> Option<String> {
    let members = state.engine.catalog().members();
    let own = members.own()?;
    server_of(ticket).filter(|server| server != own)
}

/// Returns the server that a ticket names.
fn server_of(ticket: &Bytes) -> Option<String> {
    if let Some(server) = ResultStore::server_of(ticket) {
        return Some(server.to_string());
    }
    let Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) =
        decode_command(ticket, "ticket").ok()?
    else {
        return None;
    };
    let (_, sealed) = statement_handle.split_at_checked(digest::SHA256_OUTPUT_LEN)?;
    Some(StatementTicket::decode(sealed).ok()?.server).filter(|server| !server.is_empty())
}

/// Leaves out what the connection to the other server says of itself.
fn without_grpc(headers: HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(name, _)| !name.as_str().starts_with("grpc-")) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

/// Passes on what the other server says; that it says nothing has a code of its own.
fn named(server: &str, status: Status) -> Status {
    match std::error::Error::source(&status) {
        Some(cause) => unreached(server, &cause.to_string()).into(),
        None => status,
    }
}

fn unreached(server: &str, reason: &str) -> ApiError {
    let message = format!("the rows of this ticket are on server `{server}` of this catalog, which is not reached");
    ApiError::new(ErrorCode::RunElsewhere, format!("{message}: {reason}"))
        .with_hint("try again, or run the statement here")
}
