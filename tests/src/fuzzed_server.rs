//! What the targets of `fuzz/` need: one server for all inputs, behind calls that wait.

use arrow_flight::flight_service_client::FlightServiceClient;
use querent_catalog::{Principal, Role};
use querent_engine::{Limits, Session};
use tokio::runtime::Runtime;
use tonic::transport::{Channel, Endpoint};

use crate::damaged::{
    IMPORT_FORMATS, RouteExample, check_flight, check_import, check_kql, check_request, check_sql, route_examples,
};
use crate::server::{TestServer, TestSettings};

/// A server, and clients of it. Each call panics where what must hold of any input does not.
pub struct FuzzedServer {
    runtime: Runtime,
    clients: FuzzedClients,
}

struct FuzzedClients {
    server: TestServer,
    reader: Session,
    examples: Vec<RouteExample>,
    flight: FlightServiceClient<Channel>,
}

impl FuzzedClients {
    async fn start() -> Self {
        let server = TestServer::start(TestSettings::default()).await;
        server.execute("CREATE TABLE t AS SELECT 1 AS a, 'x' AS b, TIMESTAMP '2024-01-01 00:00:00' AS c").await;
        let examples = route_examples(&server.get("/openapi.json", None).await.json());
        let channel = Endpoint::from_shared(server.url("")).expect("an address").connect().await.expect("it listens");
        let reader = server.engine().session(Principal::new("rita", Role::Read), Limits::default()).read_only();
        Self { server, reader, examples, flight: FlightServiceClient::new(channel) }
    }
}

#[expect(clippy::disallowed_methods, reason = "a fuzzer calls and waits, on a runtime of its own")]
impl FuzzedServer {
    /// Starts it. Without tokens, and so with an administrator behind each request: a fuzzer runs where nothing is
    /// worth keeping.
    pub fn start() -> Self {
        let runtime = Runtime::new().expect("threads");
        let clients = runtime.block_on(FuzzedClients::start());
        Self { runtime, clients }
    }

    /// Plans and authorises SQL.
    pub fn sql(&self, text: &str) {
        self.runtime.block_on(check_sql(&self.clients.reader, text));
    }

    /// Plans KQL.
    pub fn kql(&self, text: &str) {
        self.runtime.block_on(check_kql(&self.clients.reader, text));
    }

    /// Sends a body to a documented route, which the first byte says.
    pub fn request(&self, input: &[u8]) {
        let Some((route, body)) = input.split_first() else { return };
        let example = &self.clients.examples[usize::from(*route) % self.clients.examples.len()];
        self.runtime.block_on(check_request(&self.clients.server, example, body.to_vec(), None));
    }

    /// Imports a file, whose format the first byte says.
    pub fn import(&self, input: &[u8]) {
        let Some((format, file)) = input.split_first() else { return };
        let format = IMPORT_FORMATS[usize::from(*format) % IMPORT_FORMATS.len()];
        self.runtime.block_on(check_import(&self.clients.server, format, file.to_vec(), None));
    }

    /// Calls Flight with a command, a ticket or the body of an action; the first byte says which.
    pub fn flight(&self, input: &[u8]) {
        self.runtime.block_on(check_flight(&mut self.clients.flight.clone(), input));
    }
}
