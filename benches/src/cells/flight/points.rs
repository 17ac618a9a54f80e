//! Prepared point queries on one connection: values bound, planned, fetched, one after the other, as ADBC and JDBC do it;
//! against a bare server that answers each call with what it was given before. What the engine itself takes to plan and
//! to execute them is measured in this process and told apart.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::{Int64Array, RecordBatch};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any, CommandPreparedStatementQuery,
    CommandStatementUpdate, DoPutPreparedStatementResult, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, FlightEndpoint, FlightInfo, PutResult, Ticket};
use futures::stream;
use futures::{StreamExt, TryStreamExt};
use prost::Message;
use querent_catalog::Principal;
use querent_engine::Limits;
use querent_flight::RunningServer;
use tonic::transport::{Channel, Endpoint};

use super::BareServer;
use crate::Failure;

/// The rows of the table.
const ROWS: i64 = 1_000;
const TABLE_SQL: &str = "CREATE TEMPORARY TABLE points AS \
     SELECT value AS id, 'the point with the number ' || value AS name FROM generate_series(1, 1000)";
const POINT_SQL: &str = "SELECT id, name FROM points WHERE id = ?";
/// The name of the bare server's answer.
const POINT: &str = "point";
/// The bytes that the table may have in the engine's own measurement.
const TABLE_BYTES: usize = 64 << 20;

/// What all queries took.
pub(super) struct PointReadings {
    /// Of this server and its client.
    pub(super) ours: PointReading,
    /// Of planning and execution alone.
    pub(super) engine: PointReading,
    /// Of the bare server and its client.
    pub(super) bare: PointReading,
}

/// The time of so many point queries.
pub(super) struct PointReading {
    pub(super) seconds: f64,
    /// How often a thread of this process gave its core away, a query.
    pub(super) switches: f64,
}

/// Measures `queries` queries from now on.
struct PointMeter {
    queries: i64,
    begun: Instant,
    switches: u64,
}

impl PointMeter {
    async fn start(queries: i64) -> Result<Self, Failure> {
        Ok(Self { queries, switches: thread_switches().await?, begun: Instant::now() })
    }

    async fn stop(self) -> Result<PointReading, Failure> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let switches = thread_switches().await?.saturating_sub(self.switches);
        Ok(PointReading { seconds, switches: switches as f64 / self.queries as f64 })
    }
}

/// Returns how often the threads of this process have given their cores away to wait.
async fn thread_switches() -> Result<u64, Failure> {
    let mut switches = 0;
    let mut threads = tokio::fs::read_dir("/proc/self/task").await?;
    while let Some(thread) = threads.next_entry().await? {
        // A thread that has ended meanwhile had nothing to do with the queries.
        let status = tokio::fs::read_to_string(thread.path().join("status")).await.unwrap_or_default();
        let count = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        switches += count.map(str::trim).unwrap_or("0").parse::<u64>()?;
    }
    Ok(switches)
}

impl BareServer {
    /// Gives the bare server its answers to a point query.
    pub(super) async fn with_point(mut self) -> Result<Self, Failure> {
        let row = RecordBatch::try_from_iter_with_nullable([
            ("id", Arc::new(Int64Array::from(vec![7])) as arrow::array::ArrayRef, true),
            ("name", Arc::new(arrow::array::StringArray::from(vec!["the point with the number 7"])), true),
        ])?;
        let schema = row.schema();
        let encoder = FlightDataEncoderBuilder::new().with_schema(Arc::clone(&schema));
        self.messages.insert(POINT, encoder.build(stream::iter([Ok(row)])).try_collect().await?);
        let endpoint = FlightEndpoint::new().with_ticket(Ticket::new(POINT));
        let info = FlightInfo::new().try_with_schema(&schema)?;
        self.info = Some(info.with_endpoint(endpoint).with_total_records(-1).with_total_bytes(-1));
        let bound = DoPutPreparedStatementResult { prepared_statement_handle: Some(POINT.into()) };
        self.put = Some(PutResult { app_metadata: bound.encode_to_vec().into() });
        Ok(self)
    }
}

/// Measures `queries` point queries against each server.
pub(super) async fn measure(
    server: &RunningServer,
    bare: std::net::SocketAddr,
    queries: i64,
) -> Result<PointReadings, Failure> {
    let mut ours = PointClient::connect(server.addr).await?;
    ours.update(TABLE_SQL).await?;
    let handle = ours.prepare(POINT_SQL).await?;
    let mut bare = PointClient::connect(bare).await?;
    // Once each, so that neither pays for what only the first query does.
    ours.queries(&handle, 10.min(queries)).await?;
    bare.queries(POINT.as_bytes(), 10.min(queries)).await?;
    let ours = ours.queries(&handle, queries).await?;
    let bare = bare.queries(POINT.as_bytes(), queries).await?;
    Ok(PointReadings { ours, engine: measure_engine(server, queries).await?, bare })
}

/// Measures what the server asks of the engine: planning for GetFlightInfo, then planning and execution for DoGet.
async fn measure_engine(server: &RunningServer, queries: i64) -> Result<PointReading, Failure> {
    let engine = &server.state().engine;
    let session = engine.session(Principal::local_admin(), Limits::default());
    let session = session.with_temporary_tables(engine.temporary_tables(TABLE_BYTES));
    session.sql(TABLE_SQL).await?.collect().await?;
    let meter = PointMeter::start(queries).await?;
    for query in 0..queries {
        session.plan_sql_with_rows(POINT_SQL, value_of(query)?).await?;
        let plan = session.plan_sql_with_rows(POINT_SQL, value_of(query)?).await?;
        let rows: usize = session.execute(plan).await?.collect().await?.0.iter().map(RecordBatch::num_rows).sum();
        if rows != 1 {
            return Err(format!("{rows} rows for one point").into());
        }
    }
    meter.stop().await
}

fn value_of(query: i64) -> Result<RecordBatch, Failure> {
    let values: arrow::array::ArrayRef = Arc::new(Int64Array::from(vec![query % ROWS + 1]));
    Ok(RecordBatch::try_from_iter([("0", values)])?)
}

/// A client that does what drivers do, without their own time.
struct PointClient(FlightServiceClient<Channel>);

impl PointClient {
    async fn connect(addr: std::net::SocketAddr) -> Result<Self, Failure> {
        let channel = Endpoint::from_shared(format!("http://{addr}"))?.connect().await?;
        Ok(Self(FlightServiceClient::new(channel)))
    }

    async fn update(&mut self, sql: &str) -> Result<(), Failure> {
        let command = CommandStatementUpdate { query: sql.to_owned(), transaction_id: None };
        let descriptor = FlightDescriptor::new_cmd(command.as_any().encode_to_vec());
        let message = FlightData { flight_descriptor: Some(descriptor), ..FlightData::default() };
        self.0.do_put(stream::iter([message])).await?.into_inner().try_collect::<Vec<_>>().await?;
        Ok(())
    }

    async fn prepare(&mut self, sql: &str) -> Result<Vec<u8>, Failure> {
        let request = ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
        let action = Action::new("CreatePreparedStatement", request.as_any().encode_to_vec());
        let answer = self.0.do_action(action).await?.into_inner().message().await?.ok_or("no answer")?;
        let result: ActionCreatePreparedStatementResult =
            Any::decode(answer.body)?.unpack()?.ok_or("another answer than the one to a statement")?;
        Ok(result.prepared_statement_handle.to_vec())
    }

    /// Measures so many queries: DoPut of a value, GetFlightInfo, DoGet.
    async fn queries(&mut self, handle: &[u8], queries: i64) -> Result<PointReading, Failure> {
        let meter = PointMeter::start(queries).await?;
        for query in 0..queries {
            let descriptor = prepared(handle.to_vec());
            let values = stream::iter([Ok(value_of(query)?)]);
            let encoder = FlightDataEncoderBuilder::new().with_flight_descriptor(Some(descriptor));
            let messages: Vec<FlightData> = encoder.build(values).try_collect().await?;
            let bound = self.0.do_put(stream::iter(messages)).await?.into_inner().message().await?;
            let bound = DoPutPreparedStatementResult::decode(bound.ok_or("nothing was bound")?.app_metadata)?;
            let handle = bound.prepared_statement_handle.ok_or("no handle")?;
            let info = self.0.get_flight_info(prepared(handle.to_vec())).await?.into_inner();
            let ticket = info.endpoint.into_iter().next().and_then(|endpoint| endpoint.ticket).ok_or("no ticket")?;
            let messages = self.0.do_get(ticket).await?.into_inner();
            let rows = messages.filter(|message| {
                std::future::ready(message.as_ref().is_ok_and(|message| !message.data_body.is_empty()))
            });
            if rows.count().await != 1 {
                return Err("a point query has one row".into());
            }
        }
        meter.stop().await
    }
}

fn prepared(handle: Vec<u8>) -> FlightDescriptor {
    let command = CommandPreparedStatementQuery { prepared_statement_handle: handle.into() };
    FlightDescriptor::new_cmd(command.as_any().encode_to_vec())
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn points_are_measured() {
        let folder = tempfile::tempdir().unwrap();
        let server = crate::cells::flight::serve(folder.path()).await.unwrap();
        let bare = BareServer::default().with_point().await.unwrap().serve().await.unwrap();
        let readings = measure(&server, bare, 300).await.unwrap();
        let PointReadings { ours, engine, bare } = &readings;
        for (name, reading) in [("ours", ours), ("of it the engine", engine), ("bare", bare)] {
            println!("{name}: {} s, {} switches a query", reading.seconds, reading.switches);
            assert!(reading.seconds > 0.0 && reading.switches > 0.0);
        }
        server.shutdown().await.unwrap();
    }
}
