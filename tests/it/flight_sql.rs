//! Arrow Flight SQL, by arrow-flight's own client and by raw messages.

mod abuse;
mod doubles;
mod elapsed_parameters;
mod endpoints;
mod extension_types;
mod flights;
mod keys;
mod metadata;
mod prepared;
mod result_types;
mod rows_of_values;
mod sequences;
mod sessions;
mod statements;
mod tickets;
mod unsupported;
mod writes;

use arrow::array::{AsArray, RecordBatch};
use arrow::datatypes::{Int64Type, Schema, SchemaRef};
use arrow_flight::decode::{DecodedPayload, FlightDataDecoder};
use arrow_flight::encode::{DictionaryHandling, FlightDataEncoderBuilder};
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, Any, CommandStatementQuery, DoPutUpdateResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightInfo, IpcMessage, PutResult, Ticket};
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use querent_tests::TestServer;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// A query that takes hours.
pub const ENDLESS: &str =
    "select sum(a.value * b.value) from generate_series(1, 1000000) a, generate_series(1, 1000000) b";

/// A client that sends raw messages, without arrow-flight's conveniences.
#[derive(Clone)]
pub struct Raw {
    pub client: FlightServiceClient<Channel>,
    headers: Vec<(&'static str, String)>,
}

impl Raw {
    pub async fn connect(server: &TestServer) -> Self {
        Self::at(&server.url("")).await
    }

    /// Connects to a server by its URL.
    pub async fn at(url: &str) -> Self {
        let client = FlightServiceClient::new(channel_to(url).await).max_decoding_message_size(usize::MAX);
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

/// A prepared statement as CreatePreparedStatement describes it.
pub struct Prepared {
    pub handle: Bytes,
    pub dataset: Option<Schema>,
    pub parameters: Schema,
    pub is_update: Option<bool>,
}

/// `ActionCreatePreparedStatementResult`, with the field that arrow-flight lacks.
#[derive(Clone, PartialEq, Message)]
struct PreparedAnswer {
    #[prost(bytes = "bytes", tag = "1")]
    handle: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    dataset: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    parameters: Bytes,
    #[prost(bool, optional, tag = "4")]
    is_update: Option<bool>,
}

impl Raw {
    /// Returns the bodies of an action's results.
    pub async fn act(&mut self, action: &str, body: Vec<u8>) -> Result<Vec<Bytes>, Status> {
        let request = self.request(Action::new(action, body));
        let results: Vec<_> = self.client.do_action(request).await?.into_inner().try_collect().await?;
        Ok(results.into_iter().map(|result| result.body).collect())
    }

    pub async fn prepare(&mut self, sql: &str) -> Result<Prepared, Status> {
        let request = ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
        let results = self.act("CreatePreparedStatement", request.as_any().encode_to_vec()).await?;
        let any = Any::decode(results[0].clone()).expect("an Any");
        assert!(any.type_url.ends_with(".ActionCreatePreparedStatementResult"), "{}", any.type_url);
        let answer = PreparedAnswer::decode(any.value).expect("a result");
        let schema = |bytes: Bytes| (!bytes.is_empty()).then(|| Schema::try_from(IpcMessage(bytes)).expect("a schema"));
        Ok(Prepared {
            handle: answer.handle,
            dataset: schema(answer.dataset),
            parameters: schema(answer.parameters).unwrap_or_else(Schema::empty),
            is_update: answer.is_update,
        })
    }

    /// Sends batches with a command, and returns the answers.
    pub async fn put(
        &mut self,
        command: &impl ProstMessageExt,
        batches: &[RecordBatch],
    ) -> Result<Vec<PutResult>, Status> {
        let messages = match batches {
            [] => vec![FlightData { flight_descriptor: Some(descriptor(command)), ..FlightData::default() }],
            batches => put_messages(command, batches).await,
        };
        let request = self.request(futures::stream::iter(messages));
        collect_put(self.client.do_put(request).await).await
    }

    /// Sends an update or an ingest, and returns how many rows it wrote.
    pub async fn updated(&mut self, command: &impl ProstMessageExt, batches: &[RecordBatch]) -> Result<i64, Status> {
        let answers = self.put(command, batches).await?;
        assert_eq!(answers.len(), 1, "ADBC reads the first answer only");
        Ok(DoPutUpdateResult::decode(answers[0].app_metadata.clone()).expect("a result").record_count)
    }

    /// Returns the one number that a query gives.
    pub async fn number(&mut self, sql: &str) -> i64 {
        let (_, batches) = self.rows(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let [batch] = batches.as_slice() else { panic!("{sql}: {batches:?}") };
        batch.column(0).as_primitive::<Int64Type>().value(0)
    }
}

/// Returns what DoPut sends: the descriptor with the schema, then the batches.
pub async fn put_messages(command: &impl ProstMessageExt, batches: &[RecordBatch]) -> Vec<FlightData> {
    let batches: Vec<_> = batches.iter().cloned().map(Ok).collect();
    let batches = futures::stream::iter(batches);
    let encoder = FlightDataEncoderBuilder::new()
        .with_flight_descriptor(Some(descriptor(command)))
        .with_dictionary_handling(DictionaryHandling::Resend);
    encoder.build(batches).try_collect().await.expect("messages")
}

pub async fn collect_put(
    answer: Result<tonic::Response<tonic::Streaming<PutResult>>, Status>,
) -> Result<Vec<PutResult>, Status> {
    answer?.into_inner().try_collect().await
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
    channel_to(&server.url("")).await
}

async fn channel_to(url: &str) -> Channel {
    Endpoint::from_shared(url.to_owned()).unwrap().connect().await.expect("the server listens")
}
