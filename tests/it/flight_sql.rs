//! Arrow Flight SQL, by arrow-flight's own client and by raw messages.

mod metadata;
mod statements;
mod tickets;
mod unsupported;

use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{CommandStatementQuery, ProstMessageExt};
use arrow_flight::{FlightData, FlightDescriptor, FlightInfo, Ticket};
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use querent_tests::TestServer;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// A client that sends raw messages, without arrow-flight's conveniences.
#[derive(Clone)]
pub struct Raw {
    pub client: FlightServiceClient<Channel>,
    headers: Vec<(&'static str, String)>,
}

impl Raw {
    pub async fn connect(server: &TestServer) -> Self {
        let client = FlightServiceClient::new(channel(server).await).max_decoding_message_size(usize::MAX);
        Self { client, headers: Vec::new() }
    }

    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    pub fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        for (name, value) in &self.headers {
            request.metadata_mut().insert(*name, value.parse().unwrap());
        }
        request
    }

    pub async fn info(&mut self, command: &impl ProstMessageExt) -> Result<FlightInfo, Status> {
        let request = self.request(descriptor(command));
        Ok(self.client.get_flight_info(request).await?.into_inner())
    }

    pub async fn plan(&mut self, sql: &str) -> Result<FlightInfo, Status> {
        self.info(&statement(sql)).await
    }

    /// Returns every message of a ticket's stream.
    pub async fn fetch(&mut self, ticket: Ticket) -> Result<Vec<FlightData>, Status> {
        let request = self.request(ticket);
        self.client.do_get(request).await?.into_inner().try_collect().await
    }

    /// Returns a statement's rows, fetched as old clients do.
    pub async fn rows(&mut self, sql: &str) -> Result<(SchemaRef, Vec<RecordBatch>), Status> {
        let info = self.plan(sql).await?;
        let messages = self.fetch(ticket_of(&info)).await?;
        Ok(decode(messages).await)
    }
}

pub fn statement(sql: &str) -> CommandStatementQuery {
    CommandStatementQuery { query: sql.to_owned(), transaction_id: None }
}

pub fn descriptor(command: &impl ProstMessageExt) -> FlightDescriptor {
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

/// Returns the ticket of the one endpoint.
pub fn ticket_of(info: &FlightInfo) -> Ticket {
    assert_eq!(info.endpoint.len(), 1, "one endpoint: Grafana refuses more");
    assert!(info.endpoint[0].location.is_empty(), "on this connection");
    info.endpoint[0].ticket.clone().expect("a ticket")
}

pub fn schema_of(info: &FlightInfo) -> Schema {
    info.clone().try_decode_schema().expect("a schema")
}

/// Returns the schema with which the stream begins, and its batches.
pub async fn decode(messages: Vec<FlightData>) -> (SchemaRef, Vec<RecordBatch>) {
    let stream = futures::stream::iter(messages.into_iter().map(Ok::<_, FlightError>)).boxed();
    let decoded: Vec<_> = FlightDataDecoder::new(stream).try_collect().await.expect("Arrow messages");
    let (mut schema, mut batches) = (None, Vec::new());
    for message in decoded {
        match message.payload {
            DecodedPayload::Schema(found) => schema = Some(found),
            DecodedPayload::RecordBatch(batch) => batches.push(batch),
            DecodedPayload::None => {}
        }
    }
    (schema.expect("the schema comes first"), batches)
}

pub async fn sql_client(server: &TestServer) -> FlightSqlServiceClient<Channel> {
    FlightSqlServiceClient::new(channel(server).await)
}

/// Returns the gRPC code and our own code of a refusal.
#[track_caller]
pub fn refused<T>(result: Result<T, Status>) -> (Code, String) {
    let status = result.err().expect("a refusal");
    let code = status.metadata().get("x-querent-code").map(|code| code.to_str().unwrap().to_owned());
    (status.code(), code.unwrap_or_default())
}

async fn channel(server: &TestServer) -> Channel {
    Endpoint::from_shared(server.url("")).unwrap().connect().await.expect("the server listens")
}
