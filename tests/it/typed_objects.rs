//! Relationships, verified queries, metrics and values from outside: who may say and see what, what search makes of
//! them, and what the agent's tools and prompt show.

mod agent;
mod knowledge;
mod relationships;
mod values;

use std::time::Duration;

use querent_tests::{HttpReply, TestServer, TestSettings};
use serde_json::Value;

const TOKENS: &str = "admin-tok:admin:boss,writer-tok:write:ann,reader-tok:read:bob,scoped-tok:read:guest";

/// A server with a token of every role, and one that sees database `shop` only.
async fn server() -> TestServer {
    start(TestSettings::default()).await
}

async fn start(settings: TestSettings) -> TestServer {
    let change = |settings: &mut querent_flight::config::Settings| {
        for token in &mut settings.auth.tokens {
            if token.token == "scoped-tok" {
                token.databases = Some(vec!["shop".to_owned()]);
            }
        }
    };
    let server = TestServer::start(settings.tokens(TOKENS).change(change)).await;
    for database in ["shop", "hr"] {
        server.execute(&format!("CREATE SCHEMA {database}")).await;
    }
    server
}

/// Until what columns hold is known.
async fn values_known(server: &TestServer) {
    server.engine().wait_for_profiles(Duration::from_secs(20)).await;
}

async fn search(server: &TestServer, question: &str, token: &str) -> Vec<Value> {
    let query = [("q", question), ("limit", "20")];
    let reply = server.send(server.http.get(server.url("/v1/catalog/search")).query(&query), Some(token)).await;
    reply.json()["hits"].as_array().unwrap_or_else(|| panic!("{}", reply.text)).clone()
}

fn position(hits: &[Value], table: &str) -> Option<usize> {
    hits.iter().position(|hit| hit["table"] == table)
}

fn hit<'a>(hits: &'a [Value], table: &str) -> &'a Value {
    hits.iter().find(|hit| hit["table"] == table).unwrap_or_else(|| panic!("no {table} among {hits:?}"))
}

async fn delete(server: &TestServer, path: &str, token: &str) -> HttpReply {
    server.send(server.http.delete(server.url(path)), Some(token)).await
}
