//! The types of a result: the same at every door, plain unless the client takes others.

use arrow::datatypes::{DataType, SchemaRef};
use arrow::ipc::reader::StreamReader;
use querent_tests::{TestServer, TestSettings};

use super::Raw;

const SQL: &str = "SELECT arrow_cast('a text that is longer than a view', 'Utf8View') AS v, \
    arrow_cast('word', 'Dictionary(Int32, Utf8)') AS d, arrow_cast(make_array(1), 'LargeList(Int64)') AS l, \
    make_array(arrow_cast('a text that is longer than a view', 'Utf8View')) AS n, 1 AS i";
const TYPES: &str = "x-querent-wire-types";

#[tokio::test]
async fn both_doors_send_the_same_types() {
    let server = TestServer::start(TestSettings::default()).await;
    for types in ["", "views", "dictionaries", "views,dictionaries"] {
        let mut raw = Raw::connect(&server).await.header(TYPES, types);
        let (by_flight, batches) = raw.rows(SQL).await.unwrap();
        assert_eq!(batches.len(), 1, "{types}");
        assert_eq!(by_http(&server, types).await.fields(), by_flight.fields(), "{types}");
        let data_type = |index: usize| by_flight.field(index).data_type().clone();
        let dictionary = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        assert_eq!(data_type(0), if types.contains("views") { DataType::Utf8View } else { DataType::Utf8 });
        assert_eq!(data_type(1), if types.contains("dict") { dictionary } else { DataType::Utf8 });
        assert!(matches!(data_type(2), DataType::List(_)), "{types}");
    }
}

#[tokio::test]
async fn a_ticket_keeps_the_types_that_were_announced() {
    let server = TestServer::start(TestSettings::default()).await;
    let info = Raw::connect(&server).await.header(TYPES, "views").plan(SQL).await.unwrap();
    let messages = Raw::connect(&server).await.fetch(super::ticket_of(&info)).await.unwrap();
    let (schema, _) = super::decode(messages).await;
    assert_eq!(schema.field(0).data_type(), &DataType::Utf8View);
}

#[tokio::test]
async fn unknown_types_are_refused() {
    let server = TestServer::start(TestSettings::default()).await;
    let refused = Raw::connect(&server).await.header(TYPES, "views,large").plan(SQL).await.unwrap_err();
    assert_eq!(refused.metadata().get("x-querent-code").unwrap(), "bad_header");
    assert!(refused.message().contains("`large`"), "{}", refused.message());
}

async fn by_http(server: &TestServer, types: &str) -> SchemaRef {
    let request = server.http.post(server.url("/v1/query")).body(SQL).header(TYPES, types);
    let request = request.header("accept", "application/vnd.apache.arrow.stream");
    let body = request.send().await.unwrap().bytes().await.unwrap();
    StreamReader::try_new(body.as_ref(), None).unwrap().schema()
}
