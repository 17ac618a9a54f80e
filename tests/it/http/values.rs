//! How values are written as JSON.

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::query_json;

/// An expression and its value in JSON.
#[tokio::test]
async fn every_type_has_one_json_form() {
    let server = TestServer::start(TestSettings::default()).await;
    let cases = [
        ("CAST(7 AS SMALLINT)", json!(7)),
        ("9007199254740992", json!(9_007_199_254_740_992_i64)),
        ("9007199254740993", json!("9007199254740993")),
        ("-9007199254740993", json!("-9007199254740993")),
        ("CAST(18446744073709551615 AS BIGINT UNSIGNED)", json!("18446744073709551615")),
        ("1.5e0", json!(1.5)),
        ("CAST(0.1 AS REAL)", json!(0.1)),
        ("[CAST(0.1 AS REAL), CAST('inf' AS REAL)]", json!([0.1, "Infinity"])),
        ("CAST('NaN' AS DOUBLE)", json!("NaN")),
        ("CAST('-inf' AS DOUBLE)", json!("-Infinity")),
        ("CAST(1.10 AS DECIMAL(10, 2))", json!("1.10")),
        ("true", json!(true)),
        ("'a \"quoted\" ü'", json!("a \"quoted\" ü")),
        ("X'00ff10'", json!("AP8Q")),
        ("DATE '2024-02-03'", json!("2024-02-03")),
        ("TIMESTAMP '2024-02-03 04:05:06'", json!("2024-02-03T04:05:06Z")),
        ("TIMESTAMP '2024-02-03 04:05:06.123456'", json!("2024-02-03T04:05:06.123456Z")),
        (
            "arrow_cast('2024-02-03T04:05:06Z', 'Timestamp(Millisecond, Some(\"+02:00\"))')",
            json!("2024-02-03T06:05:06+02:00"),
        ),
        ("TIME '04:05:06'", json!("04:05:06")),
        ("[1, 2, NULL]", json!([1, 2, null])),
        ("[9007199254740993]", json!(["9007199254740993"])),
        ("named_struct('a', 1, 'b', NULL)", json!({ "a": 1, "b": null })),
        ("MAP {'k': 1.10}", json!({ "k": "1.10" })),
        ("MAP {1: 'a, 2: b', 2: NULL, 3: ''}", json!({ "1": "a, 2: b", "2": null, "3": "" })),
        ("MAP {DATE '2024-02-03': [9007199254740993]}", json!({ "2024-02-03": ["9007199254740993"] })),
        ("CAST(NULL AS BIGINT)", Value::Null),
        ("NULL", Value::Null),
    ];
    for (expression, expected) in cases {
        let reply = query_json(&server, &format!("SELECT {expression} AS v")).await;
        assert_eq!(reply["rows"][0][0], expected, "{expression}");
    }
}
