//! The command line's client of a server: SQL over Flight, the rest over HTTP.

use std::time::Duration;

use arrow::array::RecordBatch;
use arrow_flight::Ticket;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_schema::{Schema, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use hyper_util::rt::TokioIo;
use querent_catalog::PageToken;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use rustls::ClientConfig;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::OnceCell;
use tonic::transport::{Channel, Endpoint};

use super::error::{CliError, with_hint};
use super::target::ServerAddress;
use super::tls::{self, tls_fault};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Entries of a listing that are asked for at once.
pub(super) const PAGE: usize = 500;

/// A result: its schema and its batches.
pub(super) struct StreamedRows {
    /// The schema of every batch.
    pub(super) schema: SchemaRef,
    /// Stops the query when dropped.
    pub(super) batches: BoxStream<'static, Result<RecordBatch, CliError>>,
}

/// A client of one server. It has not connected yet.
pub(super) struct Client {
    address: ServerAddress,
    /// For an https URL.
    tls: Option<ClientConfig>,
    http: reqwest::Client,
    /// The one connection of statements that share a session.
    kept: OnceCell<Channel>,
}

impl Client {
    pub(super) fn new(address: ServerAddress) -> Result<Self, CliError> {
        let tls = (address.url.scheme() == "https").then(|| address.tls.config()).transpose()?;
        let builder = reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT);
        let builder = match &tls {
            Some(tls) => builder.use_preconfigured_tls(tls.clone()),
            None => builder,
        };
        let http = builder.build().map_err(|error| CliError::failed(format!("cannot make an HTTP client: {error}")))?;
        Ok(Self { address, tls, http, kept: OnceCell::new() })
    }

    /// Runs one statement by Flight SQL, in `database` where one is named.
    pub(super) async fn sql(&self, statement: &str, database: Option<&str>) -> Result<StreamedRows, CliError> {
        let flight = self.flight_over(self.connect().await?);
        self.execute(flight, statement, database).await
    }

    /// As [`Client::sql`], on one connection for all statements, which is a session: what one sets, the next ones find.
    pub(super) async fn sql_in_session(
        &self,
        statement: &str,
        database: Option<&str>,
    ) -> Result<StreamedRows, CliError> {
        self.execute(self.flight_in_session().await?, statement, database).await
    }

    /// As [`Client::sql_in_session`], of a query in KQL.
    pub(super) async fn kql_in_session(&self, query: &str, database: Option<&str>) -> Result<StreamedRows, CliError> {
        let mut flight = self.flight_in_session().await?;
        flight.set_header("x-querent-language", "kql");
        self.execute(flight, query, database).await
    }

    async fn flight_in_session(&self) -> Result<FlightSqlServiceClient<Channel>, CliError> {
        let channel = self.kept.get_or_try_init(|| self.connect()).await?;
        Ok(self.flight_over(channel.clone()))
    }

    async fn execute(
        &self,
        mut flight: FlightSqlServiceClient<Channel>,
        statement: &str,
        database: Option<&str>,
    ) -> Result<StreamedRows, CliError> {
        if let Some(database) = database {
            flight.set_header("x-database", database);
        }
        let info = flight.execute(statement.to_owned(), None).await.map_err(|error| self.flight_error(error))?;
        let told = Arc::new(
            Schema::try_from(info.clone()).map_err(FlightError::from).map_err(|error| self.flight_error(error))?,
        );
        let ticket = info.endpoint.into_iter().next().and_then(|endpoint| endpoint.ticket);
        let ticket = ticket.ok_or_else(|| CliError::failed("the server returned no place to fetch the rows from"))?;
        let stream = flight.do_get(ticket).await.map_err(|error| self.flight_error(error))?;
        let unreachable = self.unreachable_message();
        let batches = stream.map_err(move |error| flight_error(error, &unreachable)).boxed();
        Ok(StreamedRows { schema: told, batches })
    }

    /// Fetches the rows of a result of the agent's.
    pub(super) async fn fetch(&self, ticket: &str) -> Result<StreamedRows, CliError> {
        let mut flight = self.flight_over(self.connect().await?);
        let ticket = Ticket::new(ticket.to_owned());
        let mut stream = flight.do_get(ticket).await.map_err(|error| self.flight_error(error))?;
        // The schema comes with the first message.
        let first = stream.next().await.transpose().map_err(|error| self.flight_error(error))?;
        let told = stream.schema().cloned().ok_or_else(|| CliError::failed("the server sent no schema"))?;
        let unreachable = self.unreachable_message();
        let rest = stream.map_err(move |error| flight_error(error, &unreachable));
        let batches = futures::stream::iter(first.map(Ok)).chain(rest).boxed();
        Ok(StreamedRows { schema: told, batches })
    }

    /// Runs one KQL query by HTTP, in `database` where one is named. The whole answer is read, as an Arrow stream.
    pub(super) async fn kql(&self, query: String, database: Option<&str>) -> Result<StreamedRows, CliError> {
        let mut request = self
            .request(Method::POST, "/v1/query")?
            .header("content-type", "application/x-kql")
            .header("accept", "application/vnd.apache.arrow.stream");
        if let Some(database) = database {
            request = request.header("x-database", database);
        }
        let response = self.send(request.body(query)).await?;
        let body = response.bytes().await.map_err(|error| self.http_error(error))?;
        let broken = |error: arrow_schema::ArrowError| CliError::failed(format!("the result broke off: {error}"));
        let reader = arrow_ipc::reader::StreamReader::try_new(std::io::Cursor::new(body), None).map_err(broken)?;
        let schema = reader.schema();
        let batches = futures::stream::iter(reader.map(move |batch| batch.map_err(broken))).boxed();
        Ok(StreamedRows { schema, batches })
    }

    /// Makes a request with the token.
    pub(super) fn request(&self, method: Method, path: &str) -> Result<RequestBuilder, CliError> {
        let url = self.address.url.join(path).map_err(|error| CliError::failed(format!("{path}: {error}")))?;
        let request = self.http.request(method, url);
        Ok(match &self.address.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        })
    }

    /// Sends a request. A refusal of the server becomes an error with the server's message.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, CliError> {
        let response = request.send().await.map_err(|error| self.http_error(error))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.text().await.unwrap_or_default();
        Err(refusal(status, &body))
    }

    /// Sends a request and returns the JSON of the answer.
    pub(super) async fn answer<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, CliError> {
        self.send(request).await?.json().await.map_err(|error| self.http_error(error))
    }

    /// Returns the entries of a page, which is the answer's `key`, and the token of the next page.
    pub(super) async fn page(
        &self,
        request: RequestBuilder,
        key: &str,
    ) -> Result<(Vec<Value>, Option<PageToken>), CliError> {
        let mut body: Value = self.answer(request).await?;
        let next = body["next_page_token"].as_str().map(|token| PageToken(token.to_owned()));
        match body[key].take() {
            Value::Array(items) => Ok((items, next)),
            _ => Err(CliError::failed("the server's answer is not a listing; is it a querent server?")),
        }
    }

    /// Returns all entries of a listing, which are the answers' `key`, page by page.
    pub(super) async fn listing(&self, path: &str, key: &str) -> Result<Vec<Value>, CliError> {
        let mut entries = Vec::new();
        let mut after: Option<PageToken> = None;
        loop {
            let mut parameters = vec![("limit", PAGE.to_string())];
            parameters.extend(after.take().map(|token| ("page_token", token.0)));
            let (items, next) = self.page(self.request(Method::GET, path)?.query(&parameters), key).await?;
            entries.extend(items);
            match next {
                Some(next) => after = Some(next),
                None => return Ok(entries),
            }
        }
    }

    /// Returns the error for a failed HTTP exchange.
    pub(super) fn http_error(&self, error: reqwest::Error) -> CliError {
        if let Some(fault) = tls_fault(&error) {
            return CliError::Unavailable(self.tls_message(fault));
        }
        if error.is_connect() {
            return CliError::Unavailable(self.unreachable_message());
        }
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message = format!("{message}: {cause}");
            source = cause.source();
        }
        CliError::failed(message)
    }

    async fn connect(&self) -> Result<Channel, CliError> {
        let unreachable = |error: tonic::transport::Error| {
            let fault = tls_fault(&error).map(|fault| self.tls_message(fault));
            CliError::Unavailable(fault.unwrap_or_else(|| self.unreachable_message()))
        };
        let endpoint = Endpoint::from_shared(self.address.url.to_string()).map_err(unreachable)?;
        let endpoint = endpoint.connect_timeout(CONNECT_TIMEOUT);
        let channel = match &self.tls {
            Some(config) => {
                let (url, config) = (self.address.url.clone(), config.clone());
                let connector = tower::service_fn(move |_| {
                    let (url, config) = (url.clone(), config.clone());
                    async move { tls::connect(&url, config).await.map(TokioIo::new) }
                });
                endpoint.connect_with_connector(connector).await
            }
            None => endpoint.connect().await,
        };
        channel.map_err(unreachable)
    }

    fn flight_over(&self, channel: Channel) -> FlightSqlServiceClient<Channel> {
        // One row may be larger than tonic's default of 4 MiB.
        let inner = FlightServiceClient::new(channel).max_decoding_message_size(usize::MAX);
        let mut flight = FlightSqlServiceClient::new_from_inner(inner);
        if let Some(token) = &self.address.token {
            flight.set_token(token.clone());
        }
        flight
    }

    fn flight_error(&self, error: FlightError) -> CliError {
        flight_error(error, &self.unreachable_message())
    }

    fn tls_message(&self, fault: &rustls::Error) -> String {
        let url = self.address.url.as_str().trim_end_matches('/');
        let hint = match fault {
            rustls::Error::InvalidCertificate(_) => "; --ca names a file with the authority of its certificate",
            rustls::Error::InvalidMessage(_) => "; a server without TLS is named with http://",
            rustls::Error::AlertReceived(_) => "; --client-certificate names the certificate that it asks for",
            _ => "",
        };
        format!("no TLS with {url}: {fault}{hint}")
    }

    fn unreachable_message(&self) -> String {
        let url = self.address.url.as_str().trim_end_matches('/');
        format!("no server answers at {url}; start one with `querent serve`, or name another with --server")
    }
}

fn flight_error(error: FlightError, unreachable: &str) -> CliError {
    match error {
        FlightError::Tonic(status) if status.code() == tonic::Code::Unavailable && status.metadata().is_empty() => {
            CliError::Unavailable(unreachable.to_owned())
        }
        // The connection was ended before the server answered: it may not speak plain text.
        FlightError::Tonic(status) if status.metadata().is_empty() && status.message().starts_with("h2 protocol") => {
            let hint = "a server that speaks TLS is named with https://";
            CliError::Unavailable(format!("the connection broke off: {}; {hint}", status.message()))
        }
        FlightError::Tonic(status) => (*status).into(),
        // On some paths arrow-flight's client turns statuses into Arrow errors, which only have a message.
        error => CliError::failed(error.to_string()),
    }
}

/// Returns the error in a body of either shape.
fn refusal(status: StatusCode, body: &str) -> CliError {
    let said: Value = serde_json::from_str(body).unwrap_or_default();
    server_refusal(said.get("error").unwrap_or(&Value::Null), || format!("the server answered {status}"))
}

/// Returns the error that a server reports, or `unsaid` as the message if it reports none.
pub(super) fn server_refusal(error: &Value, unsaid: impl FnOnce() -> String) -> CliError {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let code = text(error.get("code"));
    let message = match (text(error.get("message")).or_else(|| text(Some(error))), text(error.get("hint"))) {
        (Some(message), hint) => with_hint(&message, hint.as_deref()),
        (None, _) => unsaid(),
    };
    CliError::Failed { code, message }
}
