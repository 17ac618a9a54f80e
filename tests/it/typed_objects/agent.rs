//! The agent's knowledge of the schema: joins, similar verified queries, metrics and wide tables in its prompt, and the
//! three schema tools, each within its caller's rights.

use querent_tests::script::tool_call;
use querent_tests::{TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

use super::{start, values_known};

#[tokio::test(flavor = "multi_thread")]
async fn tools_over_the_schema_show_what_the_caller_may_see() {
    let script = json!({"runs": [{"turns": [
        {"events": [
            tool_call("search_schema", json!({"query": "orders of customers by UA"})),
            tool_call("explore_schema", json!({"name": "shop.orders"})),
            tool_call("explore_schema", json!({"name": "shop", "depth": 2})),
            tool_call("find_references_to", json!({"value": "UA"})),
            tool_call("find_references_to", json!({"column": "customer id"})),
            tool_call("explore_schema", json!({"name": "hr.pay"})),
        ]},
        {"events": [{"text": "Done."}]},
    ]}]});
    let server = seeded(TestSettings::default().script(script)).await;
    let scoped = results(&server, "scoped-tok").await;
    let [found, table, database, value, column, hidden] = scoped.as_slice() else { panic!("{scoped:?}") };

    assert_eq!(found["tables"][0]["table"], "orders", "{found}");
    assert!(found["tables"][0]["why"].to_string().contains("value 'UA' in orders.carrier"), "{found}");
    assert_eq!(found["truncated"], false);
    assert!(found["relationships"].to_string().contains("orders.customer_id = customers.id"), "{found}");

    assert_eq!(table["tables"][0]["sample_values"]["carrier"], json!(["UA", "AA"]), "{table}");
    let names: Vec<&str> = table["tables"].as_array().unwrap().iter().map(|t| t["table"].as_str().unwrap()).collect();
    assert_eq!(names, ["orders", "customers"], "{table}");
    assert_eq!(database["table_count"], 3, "{database}");

    assert_eq!(value["match_count"], 1, "{value}");
    assert_eq!(value["matches"][0]["column"], "carrier");
    assert!(value["searched"]["column_names"] == "all" && value["truncated"] == false, "{value}");
    assert_eq!(column["matches"][0]["column"], "customer_id", "in any spelling: {column}");
    assert_eq!(hidden["error"]["code"], "database_not_found", "{hidden}");
    assert!(!json!(scoped).to_string().contains("salary"), "{scoped:?}");

    let all = results(&server, "admin-tok").await;
    assert_eq!(all[3]["match_count"], 2, "{}", all[3]);
    assert!(all[5]["tables"].to_string().contains("salary"), "{}", all[5]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_argument_is_dropped_in_silence() {
    let script = json!({"runs": [{"turns": [
        {"events": [
            tool_call("explore_schema", json!({"table": "orders", "database": "shop"})),
            tool_call("explore_schema", json!({"database": "shop"})),
            tool_call("explore_schema", json!({"table": "orders", "name": "customers"})),
            tool_call("sample_rows", json!({"table": "shop.orders", "columns": ["carrier"], "n": 1, "database": null})),
            tool_call("sample_rows", json!({"table": "shop.orders", "database": "hr"})),
            tool_call("describe_table", json!({"table": "other.shop.orders"})),
            tool_call("describe_table", json!({"table": "querent.shop.orders", "database": "Shop"})),
        ]},
        {"events": [{"text": "Done."}]},
    ]}]});
    let server = seeded(TestSettings::default().script(script)).await;
    let found = results(&server, "admin-tok").await;
    let [apart, database, two, ignored, other, catalog, whole] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(apart["tables"][0]["table"], "orders", "{apart}");
    assert_eq!(database["table_count"], 3, "{database}");
    for (refused, said) in [(two, "`name` and `table`"), (other, "`hr`"), (catalog, "other.shop.orders")] {
        assert_eq!(refused["error"]["code"], "invalid_arguments", "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains(said), "{refused}");
    }
    assert_eq!(ignored["ignored_arguments"], json!(["columns"]), "{ignored}");
    assert!(whole["error"].is_null() && whole["ignored_arguments"].is_null(), "{whole}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_prompt_shows_joins_similar_queries_and_metrics() {
    let server = seeded(TestSettings::default()).await;
    let path = "/v1/catalog/verified-queries";
    for (question, sql) in [
        ("orders by carrier in May", "SELECT carrier, count(*) FROM orders GROUP BY carrier"),
        ("orders by carrier and salary", "SELECT o.carrier FROM orders o JOIN hr.pay p ON o.id = p.id"),
    ] {
        let body = json!({"question": question, "sql": sql, "database": "shop"});
        assert_eq!(server.post(path, &body, Some("writer-tok")).await.status, 201);
    }
    let metric = json!({
        "name": "order count", "table": {"database": "shop", "table": "orders"}, "expression": "count(*)",
    });
    assert_eq!(server.post("/v1/catalog/metrics", &metric, Some("writer-tok")).await.status, 201);

    let prompt = prompt(&server, "order count by carrier of customers", "scoped-tok").await;
    assert!(prompt.contains("orders.customer_id = customers.id"), "{prompt}");
    assert!(prompt.contains("orders by carrier in May\nSELECT carrier, count(*)"), "{prompt}");
    assert!(prompt.contains("order count = count(*) FROM orders"), "{prompt}");
    assert!(!prompt.contains("salary") && !prompt.contains("hr"), "{prompt}");
    assert!(
        self::prompt(&server, "orders by carrier, and the salary of each", "admin-tok").await.contains("JOIN hr.pay")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_table_of_a_thousand_columns_costs_what_one_of_twenty_does() {
    let server = start(TestSettings::default()).await;
    let columns = |count: usize| (0..count).map(|n| format!("m_{n}_xz DOUBLE")).collect::<Vec<_>>().join(", ");
    server.execute(&format!("CREATE TABLE shop.narrow ({})", columns(20))).await;
    let narrow = prompt(&server, "narrow table", "scoped-tok").await.len();
    server.execute("DROP TABLE shop.narrow").await;
    let wide = format!(
        "{}, late_arrivals BIGINT, {}",
        columns(600),
        columns(1_000).split(", ").skip(600).collect::<Vec<_>>().join(", ")
    );
    server.execute(&format!("CREATE TABLE shop.wide ({wide})")).await;
    let prompt = prompt(&server, "late arrivals in the wide table", "scoped-tok").await;
    assert!(prompt.contains("late_arrivals BIGINT"), "{prompt}");
    assert!(prompt.contains("... 981 more columns, see describe_table"), "{prompt}");
    assert!(prompt.len() < narrow + 200, "{} against {narrow}", prompt.len());
}

async fn seeded(settings: TestSettings) -> TestServer {
    let server = start(settings).await;
    server.execute("CREATE TABLE shop.customers AS SELECT 1 AS id, 'Ann' AS name").await;
    server
        .execute(
            "CREATE TABLE shop.orders AS SELECT * FROM (VALUES (1, 1, 'UA'), (2, 1, 'UA'), (3, 1, 'AA')) \
             AS t(id, customer_id, carrier)",
        )
        .await;
    server.execute("CREATE TABLE shop.weather AS SELECT 1.5 AS rain").await;
    server.execute("CREATE TABLE hr.pay AS SELECT 1 AS id, 'UA' AS employer, 5 AS salary").await;
    values_known(&server).await;
    server
}

async fn ask(server: &TestServer, question: &str, token: &str) -> String {
    let body = json!({"question": question, "database": "shop"});
    server.post("/v1/agent/ask", &body, Some(token)).await.text
}

/// Returns the results of the tools that the script calls.
async fn results(server: &TestServer, token: &str) -> Vec<Value> {
    let frames = collect_sse(&ask(server, "Look around", token).await);
    frames.into_iter().filter(|f| f.event == "tool_result").map(|mut f| f.data["result"].take()).collect()
}

/// Returns the first request that a question makes.
async fn prompt(server: &TestServer, question: &str, token: &str) -> String {
    ask(server, question, token).await;
    let requests = server.model.requests();
    let messages = &requests.last().unwrap().messages;
    messages.iter().map(|message| message.content.as_str()).collect::<Vec<_>>().join("\n\n")
}
