//! Who may fetch what: authentication, roles, handshakes, and tickets that are their caller's own.

use arrow_flight::{BasicAuth, HandshakeRequest, Ticket};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use futures::TryStreamExt;
use prost::Message;
use querent_flight::config::{RoleName, TokenSettings};
use querent_tests::{TestServer, TestSettings};
use tonic::metadata::MetadataValue;
use tonic::{Code, Request};

use super::{Raw, refused, sql_client, ticket_of};

const TOKENS: &str = "reader-tok:read:anna,writer-tok:write:bob,admin-tok:admin:carol";

fn code(grpc: Code, ours: &str) -> (Code, String) {
    (grpc, ours.to_owned())
}

#[tokio::test]
async fn every_method_wants_a_token_where_there_are_tokens() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let unauthenticated = code(Code::Unauthenticated, "unauthenticated");
    for raw in [Raw::connect(&server).await, Raw::connect(&server).await.token("wrong")] {
        let mut client = raw.client.clone();
        let descriptor = super::descriptor(&super::statement("select 1"));
        assert_eq!(refused(client.get_flight_info(raw.request(descriptor.clone())).await), unauthenticated);
        assert_eq!(refused(client.get_schema(raw.request(descriptor.clone())).await), unauthenticated);
        assert_eq!(refused(client.poll_flight_info(raw.request(descriptor)).await), unauthenticated);
        assert_eq!(refused(client.do_get(raw.request(Ticket::new("x"))).await), unauthenticated);
        assert_eq!(refused(client.list_actions(raw.request(arrow_flight::Empty {})).await), unauthenticated);
        assert_eq!(refused(client.list_flights(raw.request(arrow_flight::Criteria::default())).await), unauthenticated);
        assert_eq!(refused(client.do_action(raw.request(arrow_flight::Action::new("x", ""))).await), unauthenticated);
        let nothing = futures::stream::empty::<arrow_flight::FlightData>;
        assert_eq!(refused(client.do_put(raw.request(nothing())).await), unauthenticated);
        assert_eq!(refused(client.do_exchange(raw.request(nothing())).await), unauthenticated);
    }
}

#[tokio::test]
async fn roles_decide_when_the_statement_is_planned() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let mut reader = Raw::connect(&server).await.token("reader-tok");
    let mut writer = Raw::connect(&server).await.token("writer-tok");
    reader.rows("select 1").await.unwrap();
    assert_eq!(refused(reader.plan("create table t (a int)").await), code(Code::PermissionDenied, "not_allowed"));
    writer.rows("create table t (a int)").await.unwrap();
    assert_eq!(refused(reader.plan("insert into t values (1)").await), code(Code::PermissionDenied, "not_allowed"));
    writer.rows("insert into t values (1)").await.unwrap();
    assert_eq!(reader.rows("select * from t").await.unwrap().1.iter().map(|batch| batch.num_rows()).sum::<usize>(), 1);
}

#[tokio::test]
async fn basic_credentials_become_a_bearer_token() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let mut client = sql_client(&server).await;
    let payload = client.handshake("anybody", "reader-tok").await.unwrap();
    assert_eq!(payload, "reader-tok");
    assert_eq!(client.token().map(String::as_str), Some("reader-tok"), "from the header");
    client.execute("select 1".to_owned(), None).await.unwrap();

    let mut stranger = sql_client(&server).await;
    assert!(stranger.handshake("anybody", "wrong").await.unwrap_err().to_string().contains("token"));
}

#[tokio::test]
async fn old_clients_shake_hands_by_payload() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let raw = Raw::connect(&server).await;
    let given = BasicAuth { username: "anybody".to_owned(), password: "writer-tok".to_owned() };
    let request = HandshakeRequest { protocol_version: 0, payload: given.encode_to_vec().into() };
    let answers = raw.client.clone().handshake(Request::new(futures::stream::iter([request]))).await.unwrap();
    let answers: Vec<_> = answers.into_inner().try_collect().await.unwrap();
    assert_eq!(answers[0].payload, "writer-tok");
    // Where they put what they were given.
    let descriptor = super::descriptor(&super::statement("create table t (a int)"));
    for (token, is_known) in [("writer-tok", true), ("wrong", false)] {
        let mut request = Request::new(descriptor.clone());
        request.metadata_mut().insert_bin("auth-token-bin", MetadataValue::from_bytes(token.as_bytes()));
        assert_eq!(raw.client.clone().get_flight_info(request).await.is_ok(), is_known, "{token}");
    }
}

#[tokio::test]
async fn a_server_without_tokens_accepts_any_handshake() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut client = sql_client(&server).await;
    client.handshake("anybody", "anything").await.unwrap();
    client.execute("create table made_by_anybody (a int)".to_owned(), None).await.unwrap();
    let basic = format!("Basic {}", BASE64_STANDARD.encode("a:b"));
    Raw::connect(&server).await.header("authorization", &basic).rows("select 1").await.unwrap();
}

#[tokio::test]
async fn a_ticket_is_its_callers_own() {
    let server = TestServer::start(TestSettings::default().tokens(TOKENS)).await;
    let mut reader = Raw::connect(&server).await.token("reader-tok");
    let mut admin = Raw::connect(&server).await.token("admin-tok");
    let ticket = ticket_of(&admin.plan("select 1").await.unwrap());
    assert_eq!(refused(reader.fetch(ticket.clone()).await), code(Code::PermissionDenied, "forbidden"));
    admin.fetch(ticket).await.unwrap();
}

#[tokio::test]
async fn a_ticket_cannot_be_made_or_changed() {
    let server = TestServer::start(TestSettings::default()).await;
    let another = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let good = ticket_of(&raw.plan("select 1").await.unwrap()).ticket;
    let foreign = ticket_of(&Raw::connect(&another).await.plan("select 1").await.unwrap()).ticket;
    let changed = {
        let mut bytes = good.to_vec();
        let at = bytes.windows(8).position(|window| window == b"select 1").expect("the statement is in it");
        bytes[at + 7] = b'2';
        bytes
    };
    for bad in [changed, foreign.to_vec()] {
        assert_eq!(refused(raw.fetch(Ticket::new(bad)).await), code(Code::InvalidArgument, "invalid_ticket"));
    }
}

#[tokio::test]
async fn a_change_runs_in_do_get_and_once() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a int)").await.unwrap();
    let info = raw.plan("insert into t values (1)").await.unwrap();
    let count = async |raw: &mut Raw| {
        let (_, batches) = raw.rows("select count(*) from t").await.unwrap();
        arrow::util::pretty::pretty_format_columns("n", &[std::sync::Arc::clone(batches[0].column(0))])
            .unwrap()
            .to_string()
    };
    assert!(count(&mut raw).await.contains("| 0 |"), "planning changes nothing");
    raw.fetch(ticket_of(&info)).await.unwrap();
    assert!(count(&mut raw).await.contains("| 1 |"));
    assert_eq!(refused(raw.fetch(ticket_of(&info)).await), code(Code::FailedPrecondition, "ticket_used"));
    assert!(count(&mut raw).await.contains("| 1 |"), "not executed twice");
}

#[tokio::test]
async fn a_query_can_be_fetched_again_until_it_expires() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let info = raw.plan("select 1").await.unwrap();
    assert!(info.endpoint[0].expiration_time.is_some());
    raw.fetch(ticket_of(&info)).await.unwrap();
    raw.fetch(ticket_of(&info)).await.unwrap();
}

#[tokio::test]
async fn a_ticket_whose_table_changed_its_columns_is_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    raw.rows("create table t (a int)").await.unwrap();
    let info = raw.plan("select * from t").await.unwrap();
    raw.rows("drop table t").await.unwrap();
    raw.rows("create table t (a int, b text)").await.unwrap();
    assert_eq!(refused(raw.fetch(ticket_of(&info)).await), code(Code::Aborted, "conflict"));
}

#[tokio::test]
async fn a_scoped_token_sees_its_databases_only() {
    let scoped = TestSettings::default().change(|settings| {
        let token = |token: &str, databases: Option<Vec<String>>| TokenSettings {
            token: token.to_owned(),
            role: RoleName::Admin,
            subject: None,
            databases,
        };
        settings.auth.tokens = vec![token("all", None), token("sales-only", Some(vec!["sales".to_owned()]))];
    });
    let server = TestServer::start(scoped).await;
    let mut all = Raw::connect(&server).await.token("all");
    for sql in
        ["create schema sales", "create schema hr", "create table sales.t (a int)", "create table hr.pay (a int)"]
    {
        all.rows(sql).await.unwrap();
    }
    let mut sales = Raw::connect(&server).await.token("sales-only").header("x-database", "sales");
    sales.rows("select * from t").await.unwrap();
    assert_eq!(refused(sales.plan("select * from hr.pay").await).0, Code::NotFound);
    let mut hr = Raw::connect(&server).await.token("sales-only").header("x-database", "hr");
    assert_eq!(refused(hr.plan("select 1").await), code(Code::NotFound, "database_not_found"));

    let listed = super::metadata::tables_of(&mut sales, Default::default()).await;
    assert!(listed.iter().all(|row| row.starts_with("sales.")), "{listed:?}");
    assert!(listed.contains(&"sales.t BASE TABLE".to_owned()), "{listed:?}");
}
