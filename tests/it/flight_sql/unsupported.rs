//! Commands that are not served are refused by name, and nothing advertises them.

use arrow_flight::sql::{
    Any, CommandStatementIngest, CommandStatementSubstraitPlan, CommandStatementUpdate, ProstMessageExt,
};
use arrow_flight::{Action, FlightData, FlightDescriptor, Ticket};
use prost::Message;
use querent_tests::{TestServer, TestSettings};
use tonic::Code;

use super::{Raw, refused, statement};

fn commands() -> Vec<Any> {
    vec![
        CommandStatementSubstraitPlan::default().as_any(),
        Any {
            type_url: "type.googleapis.com/arrow.flight.protocol.sql.CommandOfTomorrow".to_owned(),
            ..Any::default()
        },
    ]
}

fn unsupported() -> (Code, String) {
    (Code::Unimplemented, "unsupported".to_owned())
}

#[tokio::test]
async fn commands_that_are_not_served_are_unimplemented_everywhere() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    for command in commands() {
        let name = command.type_url.rsplit('.').next().unwrap().to_owned();
        let bytes = command.encode_to_vec();
        let descriptor = FlightDescriptor::new_cmd(bytes.clone());

        let info = raw.client.get_flight_info(raw.request(descriptor.clone())).await;
        assert!(info.as_ref().is_err_and(|status| status.message().contains(&name)), "{name}: {info:?}");
        assert_eq!(refused(info), unsupported(), "GetFlightInfo {name}");
        assert_eq!(refused(raw.client.get_schema(raw.request(descriptor.clone())).await), unsupported(), "{name}");
        assert_eq!(refused(raw.client.do_get(raw.request(Ticket::new(bytes))).await), unsupported(), "{name}");

        let first = FlightData { flight_descriptor: Some(descriptor), ..FlightData::default() };
        let put = raw.client.do_put(raw.request(futures::stream::iter([first]))).await;
        assert_eq!(refused(put), unsupported(), "DoPut {name}");
    }
}

#[tokio::test]
async fn actions_that_are_not_served_are_unimplemented() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    for action in [
        "CreatePreparedSubstraitPlan",
        "BeginTransaction",
        "EndTransaction",
        "BeginSavepoint",
        "EndSavepoint",
        "MakeCoffee",
    ] {
        let done = raw.client.do_action(raw.request(Action::new(action, ""))).await;
        assert!(done.as_ref().is_err_and(|status| status.message().contains(action)), "{action}");
        assert_eq!(refused(done), unsupported(), "{action}");
    }
}

#[tokio::test]
async fn a_command_is_sent_by_its_own_method() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    for command in [CommandStatementUpdate::default().as_any(), CommandStatementIngest::default().as_any()] {
        let descriptor = FlightDescriptor::new_cmd(command.encode_to_vec());
        assert_eq!(refused(raw.client.get_flight_info(raw.request(descriptor)).await), unsupported());
    }
    let query = super::descriptor(&statement("select 1"));
    let first = FlightData { flight_descriptor: Some(query), ..FlightData::default() };
    let put = raw.client.do_put(raw.request(futures::stream::iter([first]))).await;
    assert_eq!(refused(put), unsupported());
    let exchange = raw.request(futures::stream::iter([FlightData::default()]));
    assert_eq!(refused(raw.client.do_exchange(exchange).await), unsupported());
}

#[tokio::test]
async fn a_statement_in_a_transaction_is_unimplemented() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let mut command = statement("select 1");
    command.transaction_id = Some("t1".into());
    assert_eq!(refused(raw.info(&command).await), unsupported());
}

#[tokio::test]
async fn what_is_not_flight_sql_at_all_is_the_callers_fault() {
    let server = TestServer::start(TestSettings::default()).await;
    let mut raw = Raw::connect(&server).await;
    let bad = (Code::InvalidArgument, "bad_request".to_owned());
    for bytes in [&b""[..], b"select 1", b"{\"query\":", &[0xff; 64]] {
        let descriptor = FlightDescriptor::new_cmd(bytes.to_vec());
        assert_eq!(refused(raw.client.get_flight_info(raw.request(descriptor)).await), bad, "{bytes:?}");
        assert_eq!(refused(raw.client.do_get(raw.request(Ticket::new(bytes.to_vec()))).await), bad, "{bytes:?}");
    }
}
