//! Tickets of other servers that share the catalog: a ticket names the server that made it, and DoGet fetches its rows there,
//! for its caller, whoever is asked.
//!
//! The name is read before the ticket's signature is checked, which only the server that it names can do: what is forged
//! leads to a server that refuses it.

use arrow_flight::Ticket;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{Command, TicketStatementQuery};
use bytes::Bytes;
use http::{HeaderMap, Method, Uri};
use prost::Message;
use querent_agent::ResultStore;
use ring::digest;
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use super::caller::FlightCaller;
use super::decode_command;
use super::encode::{self, FlightStream};
use super::ticket::StatementTicket;
use crate::auth::CLIENT_CERTIFICATE;
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

const DO_GET: &str = "/arrow.flight.protocol.FlightService/DoGet";

/// Returns the rows of a ticket that another server made; `None` for those of this one, and those that name none.
/// Errors: `run_elsewhere`, where that server is not reached; and what it says.
pub(super) async fn rows_of_other_server(
    state: &AppState,
    caller: &FlightCaller,
    ticket: &Bytes,
) -> Result<Option<FlightStream>, Status> {
    let members = state.engine.catalog().members();
    let Some(own) = members.own() else { return Ok(None) };
    let Some(server) = server_of(ticket).filter(|server| server != own) else { return Ok(None) };
    let (method, uri) = (Method::POST, Uri::from_static(DO_GET));
    if state.forwarding.forwarded(&method, &uri, caller.headers())?.is_some() {
        return Err(unreached(&server, "another server sent the request here").into());
    }
    let address = members.address_of(&server).await.map_err(ApiError::from)?;
    let address =
        address.ok_or_else(|| unreached(&server, "it has not said where it is reached: set cluster.address there"))?;
    let channel = state.forwarding.channel(&address).map_err(|reason| unreached(&server, &reason))?;
    let certificate = caller.headers().get(CLIENT_CERTIFICATE);
    let headers = state.forwarding.headers(&method, &uri, caller.headers(), certificate);
    let mut request = Request::new(Ticket::new(ticket.clone()));
    *request.metadata_mut() = MetadataMap::from_headers(without_grpc(headers));
    // One row may be of any size.
    let mut client = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
    let answer = client.do_get(request).await.map_err(|status| named(&server, status))?;
    Ok(Some(encode::passed_on(answer.into_inner())))
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
    let message = format!("the rows of this ticket are on server `{server}` of this catalog, which was not reached");
    ApiError::new(ErrorCode::RunElsewhere, format!("{message}: {reason}"))
        .with_hint("try again, or run the statement here")
}
