//! DoAction: prepared statements, cancellation, renewal and sessions.
//!
//! Invariant: ListActions lists exactly the actions that are served; [`ACTIONS`] is the one list of them.

use arrow_flight::sql::{
    ActionCancelQueryRequest, ActionCancelQueryResult, ActionClosePreparedStatementRequest,
    ActionCreatePreparedStatementRequest, Any, Command, ProstMessageExt, TicketStatementQuery,
};
use arrow_flight::{
    Action, ActionType, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightEndpoint, FlightInfo,
    RenewFlightEndpointRequest,
};
use bytes::Bytes;
use http::HeaderValue;
use prost::Message;

use super::caller::FlightCaller;
use super::decode_command;
use super::messages::{
    CloseSessionRequest, CloseSessionResult, CloseSessionStatus, GetSessionOptionsRequest, GetSessionOptionsResult,
    OptionError, OptionErrorKind, SetSessionOptionsRequest, SetSessionOptionsResult,
};
use super::sessions::{FlightSessions, SessionOptions, expired_cookie};
use super::statement::Statements;
use super::unsupported::{not_served, unsupported_action};
use crate::error::{ApiError, ErrorCode};
use crate::state::AppState;

/// The actions that are served, with what they do.
const ACTIONS: &[(&str, &str)] = &[
    ("CreatePreparedStatement", "Prepares a statement: ActionCreatePreparedStatementRequest to ...Result"),
    ("ClosePreparedStatement", "Closes a prepared statement: ActionClosePreparedStatementRequest"),
    ("CancelFlightInfo", "Cancels a query: CancelFlightInfoRequest to CancelFlightInfoResult"),
    ("CancelQuery", "As CancelFlightInfo, for old clients: ActionCancelQueryRequest to ActionCancelQueryResult"),
    ("RenewFlightEndpoint", "Begins the time of a query's ticket again: RenewFlightEndpointRequest to FlightEndpoint"),
    (
        "SetSessionOptions",
        "Sets catalog, schema, query_language, wire_types and endpoints: SetSessionOptionsRequest to ...Result",
    ),
    ("GetSessionOptions", "Returns all options: GetSessionOptionsRequest to ...Result"),
    ("CloseSession", "Drops the session's options and temporary tables: CloseSessionRequest to ...Result"),
];

/// The answer to an action.
#[derive(Default)]
pub(super) struct ActionAnswer {
    /// The one result; `None` for an action without any.
    pub(super) body: Option<Bytes>,
    /// The session's cookie, where it was made or ended.
    pub(super) cookie: Option<HeaderValue>,
}

impl ActionAnswer {
    fn message(message: &impl Message) -> Self {
        Self { body: Some(message.encode_to_vec().into()), cookie: None }
    }

    fn with_cookie(self, cookie: &str) -> Result<Self, ApiError> {
        Ok(Self { cookie: Some(HeaderValue::from_str(cookie).map_err(ApiError::internal)?), ..self })
    }
}

/// Returns the list for ListActions.
pub(super) fn action_types() -> impl Iterator<Item = ActionType> {
    ACTIONS
        .iter()
        .map(|(name, description)| ActionType { r#type: (*name).to_owned(), description: (*description).to_owned() })
}

/// Carries out an action. Errors: `unsupported` for one that is not served, `bad_request` for a malformed body.
pub(super) async fn act(
    state: &AppState,
    statements: &Statements,
    sessions: &FlightSessions,
    caller: &FlightCaller,
    action: Action,
) -> Result<ActionAnswer, ApiError> {
    let name = action.r#type.as_str();
    let body = action.body;
    match name {
        "CreatePreparedStatement" => {
            let request: ActionCreatePreparedStatementRequest = packed(name, &body)?;
            let prepared = statements.prepare(state, caller, request).await?;
            Ok(ActionAnswer::message(&prepared.as_any()))
        }
        "ClosePreparedStatement" => {
            let request: ActionClosePreparedStatementRequest = packed(name, &body)?;
            statements.close_prepared(caller, &request.prepared_statement_handle)?;
            Ok(ActionAnswer::default())
        }
        "CancelFlightInfo" => {
            let CancelFlightInfoRequest { info } = plain(name, &body)?;
            let status = cancel(statements, caller, info.as_ref())? as i32;
            Ok(ActionAnswer::message(&CancelFlightInfoResult { status }))
        }
        "CancelQuery" => {
            let ActionCancelQueryRequest { info } = packed(name, &body)?;
            let info: FlightInfo = plain(name, &info)?;
            // The two enums have the same values.
            let result = cancel(statements, caller, Some(&info))? as i32;
            Ok(ActionAnswer::message(&ActionCancelQueryResult { result }.as_any()))
        }
        "RenewFlightEndpoint" => {
            let RenewFlightEndpointRequest { endpoint } = plain(name, &body)?;
            Ok(ActionAnswer::message(&renew(statements, caller, endpoint)?))
        }
        "SetSessionOptions" => set_options(state, sessions, caller, plain(name, &body)?).await,
        "GetSessionOptions" => {
            let GetSessionOptionsRequest {} = plain(name, &body)?;
            // Where bare names of this call resolve: a header goes before the session's own.
            let database = caller.current_session(state).await?.database().to_owned();
            let options = caller.session().map(|session| session.options()).unwrap_or_default();
            let options = SessionOptions { schema: None, ..options };
            Ok(ActionAnswer::message(&GetSessionOptionsResult { session_options: options.values(&database) }))
        }
        "CloseSession" => {
            let CloseSessionRequest {} = plain(name, &body)?;
            let status = match caller.session() {
                Some(session) => {
                    sessions.close(session, caller.connection());
                    CloseSessionStatus::Closed
                }
                None => CloseSessionStatus::NotCloseable,
            };
            ActionAnswer::message(&CloseSessionResult { status: status as i32 }).with_cookie(&expired_cookie())
        }
        other => Err(unsupported_action(other)),
    }
}

/// Sets options, those that can be; the answer names the others. A client without a session gets one, by a cookie.
/// Errors: `database_not_found`, where all that the options name is not there.
async fn set_options(
    state: &AppState,
    sessions: &FlightSessions,
    caller: &FlightCaller,
    request: SetSessionOptionsRequest,
) -> Result<ActionAnswer, ApiError> {
    let session = match caller.session() {
        Some(session) => std::sync::Arc::clone(session),
        None => sessions.open(&caller.principal),
    };
    let mut options = session.options();
    let mut errors = std::collections::HashMap::new();
    let mut missing = Vec::new();
    let count = request.session_options.len();
    for (name, value) in request.session_options {
        let mut changed = options.clone();
        let named = value.text().map(str::to_owned);
        let set = match (changed.set(&name, value), name.as_str(), named) {
            (Ok(()), "schema", Some(schema)) if !schema.is_empty() => {
                match caller.engine_session(state, Some(&schema)).await {
                    // As the database is spelled, whatever the client wrote.
                    Ok(session) => {
                        changed.schema = Some(session.database().to_owned());
                        Ok(())
                    }
                    Err(error) => {
                        missing.push(error);
                        Err(OptionErrorKind::InvalidValue)
                    }
                }
            }
            (Err(OptionErrorKind::InvalidValue), "catalog", Some(catalog)) => {
                let error = ApiError::new(ErrorCode::DatabaseNotFound, format!("unknown catalog `{catalog}`"));
                missing.push(error.with_hint("the catalog is `querent`, its databases are schemas"));
                Err(OptionErrorKind::InvalidValue)
            }
            (set, ..) => set,
        };
        match set {
            Ok(()) => options = changed,
            Err(kind) => {
                errors.insert(name, OptionError { value: kind as i32 });
            }
        }
    }
    if missing.len() == count
        && let Some(error) = missing.pop()
    {
        return Err(error);
    }
    session.set_options(options);
    ActionAnswer::message(&SetSessionOptionsResult { errors }).with_cookie(&session.cookie())
}

/// Cancels the query of a FlightInfo: the running one, or the one that its ticket would begin.
fn cancel(statements: &Statements, caller: &FlightCaller, info: Option<&FlightInfo>) -> Result<CancelStatus, ApiError> {
    let ticket = info.and_then(|info| info.endpoint.first()?.ticket.as_ref());
    let ticket = ticket.ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "the FlightInfo has no ticket"))?;
    let Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) =
        decode_command(&ticket.ticket, "ticket")?
    else {
        return Ok(CancelStatus::NotCancellable);
    };
    // A query may run longer than its ticket is good. Of a change that is so old it is not known whether it was executed.
    let opened = statements.tickets.open_of_any_age(&statement_handle, &caller.principal)?;
    let ticket = match opened.changes {
        true => statements.tickets.open(&statement_handle, &caller.principal)?,
        false => opened,
    };
    // A change whose ticket is spent has begun, or was cancelled; what has begun is carried out.
    let was_unspent = statements.tickets.spend(&ticket).is_ok();
    if ticket.changes && !was_unspent {
        return Ok(CancelStatus::NotCancellable);
    }
    statements.running.cancel(&ticket.id);
    Ok(CancelStatus::Cancelled)
}

fn renew(
    statements: &Statements,
    caller: &FlightCaller,
    endpoint: Option<FlightEndpoint>,
) -> Result<FlightEndpoint, ApiError> {
    let ticket = endpoint.and_then(|endpoint| endpoint.ticket);
    let ticket = ticket.ok_or_else(|| ApiError::new(ErrorCode::BadRequest, "the endpoint has no ticket"))?;
    match decode_command(&ticket.ticket, "ticket")? {
        Command::TicketStatementQuery(TicketStatementQuery { statement_handle }) => {
            let opened = statements.tickets.open(&statement_handle, &caller.principal)?;
            statements.tickets.check_unspent(&opened)?;
            if opened.is_good_once() {
                let what = "renewing the ticket of a change, or of one endpoint of several,";
                return Err(not_served(what, "call GetFlightInfo again"));
            }
            Ok(statements.sealed_endpoint(&opened.renewed()))
        }
        // Tickets of listings do not expire.
        _ => Ok(FlightEndpoint::new().with_ticket(ticket)),
    }
}

/// Decodes a body that is a message of Flight SQL in an `Any`.
fn packed<M: ProstMessageExt>(action: &str, body: &Bytes) -> Result<M, ApiError> {
    let malformed = || malformed::<M>(action);
    let any = Any::decode(body.as_ref()).map_err(|_| malformed())?;
    any.unpack().map_err(|_| malformed())?.ok_or_else(malformed)
}

/// Decodes a body that is a message of Flight.
fn plain<M: Message + Default>(action: &str, body: &Bytes) -> Result<M, ApiError> {
    M::decode(body.as_ref()).map_err(|_| malformed::<M>(action))
}

fn malformed<M>(action: &str) -> ApiError {
    let message = std::any::type_name::<M>().rsplit("::").next().unwrap_or_default();
    ApiError::new(ErrorCode::BadRequest, format!("the body of {action} is no {message}"))
}
