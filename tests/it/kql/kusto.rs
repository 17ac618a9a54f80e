//! Kusto's REST routes as they are on the wire: frames, documents, errors, commands. What clients make of them is in
//! `clients.rs`.

use querent_tests::{HttpReply, TestServer, TestSettings, wait_until};
use serde_json::{Value, json};

async fn post(server: &TestServer, path: &str, body: &Value) -> HttpReply {
    let request = server.http.post(server.url(path)).header("x-ms-client-request-id", "me;1").body(body.to_string());
    server.send(request, Some("reader-tok")).await
}

/// Returns the frames of a version 2 answer.
async fn frames(server: &TestServer, kql: &str, options: Value) -> Vec<Value> {
    let body = json!({ "db": "default", "csl": kql, "properties": { "Options": options } });
    let reply = post(server, "/v2/rest/query", &body).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.json().as_array().unwrap().clone()
}

fn kinds(frames: &[Value]) -> Vec<&str> {
    frames.iter().map(|frame| frame["FrameType"].as_str().unwrap()).collect()
}

async fn reading_server() -> TestServer {
    TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await
}

#[tokio::test]
async fn version_2_is_framed_as_asked() {
    let server = reading_server().await;
    let query = "range x from 1 to 20000 step 1";
    let whole = frames(&server, query, json!({})).await;
    assert_eq!(kinds(&whole), ["DataSetHeader", "DataTable", "DataTable", "DataTable", "DataSetCompletion"]);
    assert_eq!(whole[0]["IsProgressive"], false);
    assert_eq!(whole[2]["TableKind"], "PrimaryResult");
    assert_eq!(whole[2]["Columns"], json!([{ "ColumnName": "x", "ColumnType": "long" }]));
    assert_eq!(whole[2]["Rows"].as_array().unwrap().len(), 20_000);
    assert_eq!(whole[3]["Rows"][0][1], "me;1");

    let progressive = frames(&server, query, json!({ "results_progressive_enabled": true })).await;
    let kinds_of_progress = kinds(&progressive);
    assert_eq!(kinds_of_progress[..3], ["DataSetHeader", "DataTable", "TableHeader"]);
    assert!(kinds_of_progress.contains(&"TableProgress"));
    assert_eq!(progressive[0]["IsProgressive"], true);
    let rows: usize = progressive
        .iter()
        .filter(|frame| frame["TableFragmentType"] == "DataAppend")
        .map(|frame| frame["Rows"].as_array().unwrap().len())
        .sum();
    let completion = progressive.iter().find(|frame| frame["FrameType"] == "TableCompletion").unwrap();
    assert_eq!((rows, &completion["RowCount"]), (20_000, &json!(20_000)));

    let fragmented = frames(&server, "print 1", json!({ "results_v2_fragment_primary_tables": true })).await;
    assert_eq!(
        kinds(&fragmented),
        [
            "DataSetHeader",
            "DataTable",
            "TableHeader",
            "TableFragment",
            "TableCompletion",
            "DataTable",
            "DataSetCompletion"
        ]
    );
    // Clients that would find no row in fragments get none.
    let options = json!({ "results_progressive_enabled": true, "results_v2_fragment_primary_tables": true });
    let body = json!({ "csl": "print 1", "properties": { "Options": options } }).to_string();
    let request = server.http.post(server.url("/v2/rest/query")).body(body);
    let request = request.header("x-ms-client-version", "Kusto.Python.Client:{5.0.0}|Runtime.cpython:{3.11}");
    let whole = server.send(request, Some("reader-tok")).await.json();
    assert_eq!((&whole[0]["IsProgressive"], &whole[0]["IsFragmented"]), (&json!(false), &json!(false)));
    assert_eq!((&whole[2]["FrameType"], &whole[2]["Rows"]), (&json!("DataTable"), &json!([[1]])));
    let body = json!({ "csl": "print 1", "properties": "{\"Options\":{\"results_v2_newlines_between_frames\":true}}" });
    let on_lines = post(&server, "/v2/rest/query", &body).await;
    assert_eq!(on_lines.text.lines().count(), 6, "{}", on_lines.text);
    assert_eq!(on_lines.json().as_array().unwrap().len(), 5);
}

#[tokio::test]
async fn every_result_of_a_query_is_answered() {
    let server = reading_server().await;
    let fork =
        "range x from 1 to 4 step 1 | fork (where x > 3) (summarize n = count() by big = x > 1 | order by n asc)";
    let query = format!("let t = materialize(range y from 1 to 2 step 1); {fork}; t | render piechart; t | count");
    let answer = frames(&server, &query, json!({})).await;
    let tables: Vec<&Value> = answer.iter().filter(|frame| frame["TableKind"] == "PrimaryResult").collect();
    let rows: Vec<&Value> = tables.iter().map(|table| &table["Rows"]).collect();
    assert_eq!(rows, [&json!([[4]]), &json!([[false, 1], [true, 3]]), &json!([[1], [2]]), &json!([[2]])]);
    let ids: Vec<&Value> = answer.iter().filter_map(|frame| frame.get("TableId")).collect();
    assert_eq!(ids, [0, 1, 2, 3, 4, 5]);
    let shown = answer[1]["Rows"].as_array().unwrap();
    let charts = shown.iter().map(|row| (row[0].clone(), row[2].as_str().unwrap().contains("piechart")));
    assert_eq!(charts.collect::<Vec<_>>(), [(json!(1), false), (json!(2), false), (json!(3), true), (json!(4), false)]);

    let fragments = frames(&server, &query, json!({ "results_progressive_enabled": true })).await;
    let completed = fragments.iter().filter(|frame| frame["FrameType"] == "TableCompletion");
    let completed: Vec<_> = completed.map(|frame| (frame["TableId"].clone(), frame["RowCount"].clone())).collect();
    assert_eq!(completed, [1, 2, 3, 4].map(|id| (json!(id), json!(if id == 1 || id == 4 { 1 } else { 2 }))));

    let document = post(&server, "/v1/rest/query", &json!({ "csl": query })).await.json();
    let tables = document["Tables"].as_array().unwrap();
    let names: Vec<&Value> = tables.iter().map(|table| &table["TableName"]).collect();
    assert_eq!(names, (0..7).map(|at| json!(format!("Table_{at}"))).collect::<Vec<_>>().iter().collect::<Vec<_>>());
    let kinds: Vec<&Value> = tables[6]["Rows"].as_array().unwrap().iter().map(|row| &row[1]).collect();
    let result = "QueryResult";
    assert_eq!(kinds, [result, result, result, result, "QueryProperties", "QueryStatus"]);
    assert_eq!(tables[4]["Rows"].as_array().unwrap().len(), 4);

    // A failure in a later result is told in it, and what was answered before stands.
    let cut = json!({ "truncationmaxrecords": 2, "results_error_reporting_placement": "end_of_table" });
    let failed = frames(&server, "print 1; range x from 1 to 3 step 1; print 2", cut).await;
    let tables: Vec<&Value> = failed.iter().filter(|frame| frame["TableKind"] == "PrimaryResult").collect();
    assert_eq!(tables[0]["Rows"], json!([[1]]));
    assert_eq!(tables[1]["Rows"], json!([[1], [2]]));
    assert!(tables[1]["OneApiErrors"].is_array(), "{}", tables[1]);
    assert_eq!(tables.len(), 2);
    assert_eq!(failed.last().unwrap()["HasErrors"], true);

    // Routes that take one result say so.
    let request =
        server.http.post(server.url("/v1/query")).header("content-type", "application/x-kql").body("print 1; print 2");
    let refused = server.send(request, Some("reader-tok")).await;
    assert_eq!(
        (refused.status, refused.json()["error"]["code"].clone()),
        (400.try_into().unwrap(), json!("kql_not_supported"))
    );
}

#[tokio::test]
async fn a_failure_after_the_first_rows_is_reported_where_requested() {
    let server = reading_server().await;
    let cut = |more: Value| {
        let mut options = json!({ "truncationmaxrecords": 3 });
        options.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        options
    };
    let query = "range x from 1 to 9 step 1";
    let in_data = frames(&server, query, cut(json!({}))).await;
    let rows = in_data[2]["Rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4, "{rows:?}");
    assert_eq!(rows[3]["OneApiErrors"][0]["error"]["@context"]["querentCode"], "result_truncated");
    let completion = in_data.last().unwrap();
    assert_eq!(completion["HasErrors"], true);
    assert_eq!(completion["OneApiErrors"][0]["error"]["code"], "LimitsExceeded");

    let at_end = frames(&server, query, cut(json!({ "results_error_reporting_placement": "end_of_table" }))).await;
    assert_eq!(at_end[2]["Rows"].as_array().unwrap().len(), 3);
    assert_eq!(at_end[2]["OneApiErrors"][0]["error"]["code"], "LimitsExceeded");
    let deferred = frames(&server, query, cut(json!({ "deferpartialqueryfailures": true }))).await;
    assert_eq!(deferred[2].get("OneApiErrors"), None);
    assert_eq!(deferred.last().unwrap()["HasErrors"], true);
    let progressive = cut(json!({ "results_progressive_enabled": true }));
    let progressive = frames(&server, query, progressive).await;
    assert_eq!(progressive.last().unwrap()["HasErrors"], true, "{progressive:?}");

    let body = json!({ "csl": query, "properties": { "Options": { "truncationmaxrecords": 3 } } });
    let old = post(&server, "/v1/rest/query", &body).await.json();
    assert_eq!(old["Tables"][0]["Rows"].as_array().unwrap().len(), 4);
    assert!(old["Exceptions"][0].as_str().unwrap().contains("more than 3 rows"), "{old}");

    // Eight bytes a row.
    let row_count = |frames: &[Value]| frames[2]["Rows"].as_array().unwrap().len();
    let at_end = |mut options: Value| {
        options["results_error_reporting_placement"] = json!("end_of_table");
        options
    };
    let by_bytes = frames(&server, query, at_end(json!({ "truncationmaxsize": 40 }))).await;
    assert_eq!((row_count(&by_bytes), &by_bytes[4]["HasErrors"]), (5, &json!(true)));
    let told = &by_bytes[4]["OneApiErrors"][0]["error"];
    assert!(told["@message"].as_str().unwrap().contains("more than 40 bytes"), "{told}");
    for (options, answered) in [
        (json!({ "truncationmaxsize": 72 }), 9),
        (json!({ "truncationmaxsize": 40, "notruncation": true }), 9),
        (json!({ "truncationmaxsize": 40, "query_take_max_records": 2 }), 2),
    ] {
        let whole = frames(&server, query, at_end(options.clone())).await;
        assert_eq!((row_count(&whole), &whole[4]["HasErrors"]), (answered, &json!(false)), "{options}");
    }
    // The query's own `notruncation` comes before that of the request.
    let taken_back = format!("set notruncation; {query}");
    let whole = frames(&server, &taken_back, at_end(json!({ "truncationmaxsize": 40 }))).await;
    assert_eq!((row_count(&whole), &whole[4]["HasErrors"]), (9, &json!(false)));
    let kept = format!("set notruncation = false; {query}");
    let cut_off = frames(&server, &kept, at_end(json!({ "truncationmaxsize": 40, "notruncation": true }))).await;
    assert_eq!((row_count(&cut_off), &cut_off[4]["HasErrors"]), (5, &json!(true)));
}

#[tokio::test]
async fn version_1_has_dotnet_names_and_every_tick() {
    let server = reading_server().await;
    let query = "print b = true, i = int(1), d = decimal(1.5), t = datetime(0001-01-01 00:00:00.0000001), s = 1tick, j = dynamic({'a':1}) | render table";
    let reply = post(&server, "/v1/rest/query", &json!({ "db": "", "csl": query })).await;
    assert_eq!(reply.header("x-ms-client-request-id"), "me;1");
    let document = reply.json();
    let table = &document["Tables"][0];
    let types: Vec<&str> =
        table["Columns"].as_array().unwrap().iter().map(|column| column["DataType"].as_str().unwrap()).collect();
    assert_eq!(types, ["SByte", "Int32", "SqlDecimal", "DateTime", "TimeSpan", "Object"]);
    assert_eq!(
        table["Rows"],
        json!([[true, 1, "1.5", "0001-01-01T00:00:00.0000001Z", "00:00:00.0000001", { "a": 1 }]])
    );
    let names: Vec<&Value> = document["Tables"][3]["Rows"].as_array().unwrap().iter().map(|row| &row[1]).collect();
    assert_eq!(names, ["QueryResult", "QueryProperties", "QueryStatus"]);
    assert!(document["Tables"][1]["Rows"][0][0].as_str().unwrap().contains("\"Visualization\":\"table\""));
}

/// Each request has an error: the status, Kusto's code, our code, and a part of the message.
#[tokio::test]
async fn errors_have_kustos_shape() {
    let server = reading_server().await;
    for (path, body, status, kustos, ours, told) in [
        (
            "/v2/rest/query",
            json!({ "csl": "print a ==" }),
            400,
            "General_BadRequest",
            "kql_unexpected",
            "Syntax error: ",
        ),
        ("/v1/rest/query", json!({ "csl": "T" }), 400, "General_BadRequest", "kql_unknown_table", "Semantic error: "),
        (
            "/v1/rest/query",
            json!({ "csl": "print 1", "db": "no" }),
            400,
            "General_BadRequest",
            "database_not_found",
            "no",
        ),
        ("/v1/rest/query", json!({ "csl": " " }), 400, "General_BadRequest", "empty_query", "csl"),
        ("/v1/rest/query", json!([]), 400, "General_BadRequest", "bad_request_body", "the body is not"),
        (
            "/v1/rest/mgmt",
            json!({ "csl": ".drop table t" }),
            400,
            "General_BadRequest",
            "kql_not_supported",
            ".drop table t",
        ),
        (
            "/v2/rest/query",
            json!({ "csl": "print 1", "properties": { "Options": { "servertimeout": "soon" } } }),
            400,
            "General_BadRequest",
            "bad_parameter",
            "servertimeout",
        ),
        (
            "/v2/rest/query",
            json!({ "csl": "select 1", "properties": { "Options": { "query_language": "sql" } } }),
            400,
            "General_BadRequest",
            "unsupported",
            "/v1/query",
        ),
    ] {
        let reply = post(&server, path, &body).await;
        let error = &reply.json()["error"];
        assert_eq!((reply.status, error["code"].as_str()), (status, Some(kustos)), "{body}: {}", reply.text);
        assert_eq!(reply.header("x-querent-error-code"), ours, "{body}");
        assert_eq!(error["@context"]["querentCode"], ours, "{body}");
        assert_eq!(error["@context"]["clientRequestId"], "me;1", "{body}");
        assert!(error["@message"].as_str().unwrap().contains(told), "{body}: {error}");
    }
    let request = server.http.post(server.url("/v2/rest/query")).body(json!({ "csl": "print 1" }).to_string());
    let stranger = server.send(request, None).await;
    assert_eq!((stranger.status, &stranger.json()["error"]["code"]), (401, &json!("Unauthorized")));
    let metadata = server.send(server.http.get(server.url("/v1/rest/auth/metadata")), None).await;
    assert_eq!((metadata.status, metadata.json()), (200, json!({ "AzureAD": null, "dSTS": null })));
}

#[tokio::test]
async fn commands_list_the_catalog() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    for sql in [
        "CREATE DATABASE shop",
        "CREATE TABLE shop.orders (id BIGINT, \"odd name\" VARCHAR, at TIMESTAMP, tags VARCHAR[], small TINYINT)",
        "COMMENT ON TABLE shop.orders IS 'what was sold'",
    ] {
        let request = server.http.post(server.url("/v1/query")).header("content-type", "application/sql").body(sql);
        let reply = server.send(request, Some("admin-tok")).await;
        assert_eq!(reply.status, 200, "{sql}: {}", reply.text);
    }
    let shown = async |command: &str| {
        let reply = post(&server, "/v1/rest/mgmt", &json!({ "db": "shop", "csl": command })).await;
        assert_eq!(reply.status, 200, "{command}: {}", reply.text);
        reply.json()["Tables"][0].clone()
    };
    let databases = shown(".show databases | project DatabaseName, IsCurrent | sort by DatabaseName asc").await;
    assert_eq!(databases["Rows"], json!([["default", false], ["shop", true]]));
    assert_eq!(shown(".show tables").await["Rows"], json!([["orders", "shop", "", "what was sold"]]));
    assert_eq!(shown(".show tables (other)").await["Rows"], json!([]));
    let schema = shown(".show table orders cslschema").await["Rows"][0][1].clone();
    assert_eq!(schema, r#"id:long,["odd name"]:string,at:datetime,tags:dynamic,small:int"#);
    let cluster = shown(".show schema as json").await["Rows"][0][0].as_str().unwrap().to_owned();
    let cluster: Value = serde_json::from_str(&cluster).unwrap();
    assert_eq!(cluster["Databases"]["default"]["Tables"], json!({}), "{cluster}");
    let columns = &cluster["Databases"]["shop"]["Tables"]["orders"]["OrderedColumns"];
    assert_eq!(columns[4], json!({ "Name": "small", "Type": "System.Int32", "CslType": "int", "DocString": "" }));
    let listed = shown(".show database schema | where ColumnName != '' | project ColumnName, ColumnType").await;
    assert_eq!(listed["Rows"][3], json!(["tags", "System.Object"]));
    let orders = r#"id:long, ["odd name"]:string, at:datetime, tags:dynamic, small:int"#;
    let entities =
        shown(".show databases entities with (resolveFunctionSchema=true) | where DatabaseName == 'shop'").await;
    let entity = json!(["shop", "Table", "orders", "what was sold", "", "", "", orders, {}]);
    assert_eq!(entities["Rows"], json!([entity]));
    let details = shown(".show table orders details | project TableName, TotalExtents").await;
    assert_eq!(details["Rows"], json!([["orders", null]]));
    let unknown = json!({ "db": "shop", "csl": ".show table other details" });
    let unknown = post(&server, "/v1/rest/mgmt", &unknown).await;
    assert_eq!((unknown.status, unknown.header("x-querent-error-code")), (400, "table_not_found"), "{}", unknown.text);
    assert_eq!(shown(".show database identity | project DatabaseName").await["Rows"], json!([["shop"]]));
    let script = shown(".show database shop schema as csl script").await["Rows"][0][0].clone();
    assert!(script.as_str().unwrap().starts_with(".create-merge table orders (id:long, "), "{script}");
    let listed = shown(".show databases (shop) schema as json with (Tables=True)").await;
    assert_eq!(listed["Columns"][0]["ColumnName"], "DatabaseSchema");
    for command in [
        ".show external tables",
        ".show materialized-views",
        ".show functions",
        ".show table orders ingestion mappings",
    ] {
        assert_eq!(shown(command).await["Rows"], json!([]), "{command}");
    }
    let plugins = shown(".show plugins | where PluginName in ('pivot', 'python') | sort by PluginName asc").await;
    assert_eq!(plugins["Rows"], json!([["pivot", true], ["python", false]]));
    let policy = json!(["RetentionPolicy", "[shop].[orders]", "null", "", "Table"]);
    for command in [
        ".show table orders policy retention",
        ".show table shop.orders policy retention",
        ".show table * policy retention",
    ] {
        assert_eq!(shown(command).await["Rows"], json!([policy]), "{command}");
    }
    let policies = shown(".show database shop policy caching | project PolicyName, EntityName").await;
    assert_eq!(policies["Rows"], json!([["CachingPolicy", "[shop]"]]));
    let absent = post(&server, "/v1/rest/mgmt", &json!({ "db": "shop", "csl": ".show table x policy update" })).await;
    assert_eq!((absent.status, absent.header("x-querent-error-code")), (400, "table_not_found"), "{}", absent.text);
    assert_eq!(shown(".show cluster | project NodeId, IsAdmin").await["Rows"], json!([["Querent", true]]));
    assert_eq!(shown(".show running queries | where State != 'InProgress'").await["Rows"], json!([]));
    let refused = post(&server, "/v1/rest/mgmt", &json!({ "db": "shop", "csl": ".show operations" })).await;
    assert_eq!((refused.status, refused.header("x-querent-error-code")), (400, "kql_not_supported"));
    let plan = shown(".show queryplan <| orders | where id == 7 | count").await;
    assert!(plan["Rows"][0][1].as_str().unwrap().contains("Aggregate"), "{plan}");
    let model = r#"{"Definition": {"Steps": [{"Kind": "AddEdges", "Query": "orders | extend to = id + 1",
        "SourceColumn": "id", "TargetColumn": "to"}]}}"#;
    let save = json!({ "db": "shop", "csl": format!(".create-or-alter graph_model Chain ```{model}```") });
    assert_eq!(post(&server, "/v1/rest/mgmt", &save).await.json()["error"]["code"], "Forbidden");
    let request = server.http.post(server.url("/v1/rest/mgmt")).json(&save);
    let made = server.send(request, Some("admin-tok")).await;
    assert_eq!(made.json()["Tables"][0]["Rows"][0][0], "Chain", "{}", made.text);
    let models =
        shown(".show graph_models details | project Name, kind = tostring(Model.Definition.Steps[0].Kind)").await;
    assert_eq!(models["Rows"], json!([["Chain", "AddEdges"]]));
    let nowhere = post(&server, "/v1/rest/mgmt", &json!({ "db": "nowhere", "csl": ".show tables" })).await;
    assert_eq!((nowhere.status, nowhere.header("x-querent-error-code")), (400, "database_not_found"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_query_is_cancelled_by_its_clients_id() {
    let tokens = "ann-tok:read:ann,ben-tok:read:ben,boss-tok:admin:boss";
    let server = TestServer::start(TestSettings::default().tokens(tokens)).await;
    let begin = |id: &str| {
        let body = json!({ "db": "default", "csl": super::ENDLESS[0] }).to_string();
        let request = server.http.post(server.url("/v2/rest/query")).header("x-ms-client-request-id", id).body(body);
        let request = request.bearer_auth("ann-tok");
        tokio::spawn(async move { request.send().await.unwrap().text().await.unwrap() })
    };
    let rows = async |token: &str, command: &str| {
        let body = json!({ "db": "default", "csl": command }).to_string();
        let reply = server.send(server.http.post(server.url("/v1/rest/mgmt")).body(body), Some(token)).await;
        assert_eq!(reply.status, 200, "{command}: {}", reply.text);
        reply.json()["Tables"][0]["Rows"].clone()
    };
    for (id, who) in [("own;7", "ann-tok"), ("any;8", "boss-tok")] {
        let running = begin(id);
        let listed = format!(".show running queries | where ClientActivityId == '{id}' and Text startswith 'range'");
        wait_until("the query is listed", async || rows("ann-tok", &listed).await[0][0] == id).await;
        let cancel = format!(".cancel query \"{id}\"");
        assert_eq!(rows("ben-tok", &cancel).await, json!([[false, id, ""]]), "it is another's");
        let cancelled = rows(who, &format!("{cancel} with (reason = 'it takes long')")).await;
        assert_eq!(cancelled, json!([[true, id, "it takes long"]]));
        let ended = running.await.unwrap();
        assert!(ended.contains("the query was cancelled: it takes long"), "{ended}");
    }
    let none = ".cancel query 'nobody;1' | project RunningQueryCanceled";
    assert_eq!(rows("boss-tok", none).await, json!([[false]]));
}

#[tokio::test]
async fn json_columns_are_dynamic() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read,admin-tok:admin")).await;
    for sql in ["CREATE TABLE events (id INT, payload JSON)", "INSERT INTO events VALUES (1, '{\"a\": [1, 2]}')"] {
        let request = server.http.post(server.url("/v1/query")).header("content-type", "application/sql").body(sql);
        let reply = server.send(request, Some("admin-tok")).await;
        assert_eq!(reply.status, 200, "{sql}: {}", reply.text);
    }
    let answer = frames(&server, "events | project payload, second = payload.a[1]", json!({})).await;
    let result = answer.iter().find(|frame| frame["TableKind"] == "PrimaryResult").unwrap();
    let types = json!([
        { "ColumnName": "payload", "ColumnType": "dynamic" },
        { "ColumnName": "second", "ColumnType": "dynamic" },
    ]);
    assert_eq!((&result["Columns"], &result["Rows"]), (&types, &json!([[{ "a": [1, 2] }, 2]])));
    let shown =
        post(&server, "/v1/rest/mgmt", &json!({ "db": "default", "csl": ".show table events cslschema" })).await;
    assert_eq!(shown.json()["Tables"][0]["Rows"][0][1], "id:int,payload:dynamic", "{}", shown.text);
}

#[tokio::test]
async fn options_of_the_request_and_of_the_query_are_kept() {
    let server = reading_server().await;
    let now = json!({ "query_now": "2020-05-06" });
    for (query, options, rows) in [
        ("print now() == datetime(2020-05-06)", now.clone(), json!([[true]])),
        ("set query_now = datetime(2021-01-01); print getyear(now())", now, json!([[2021]])),
        ("union (print a = 1), nosuch", json!({ "best_effort": true }), json!([[1]])),
        ("print a = 1 | getschema | project ColumnName", json!({ "QUERY_take_max_records": 5 }), json!([["a"]])),
        ("print a = 1", json!({ "query_results_apply_getschema": true }), json!([["a", 0, "System.Int64", "long"]])),
    ] {
        let answer = frames(&server, query, options).await;
        let result = answer.iter().find(|frame| frame["TableKind"] == "PrimaryResult").unwrap();
        assert_eq!(result["Rows"], rows, "{query}");
    }
    let placed = json!({ "results_error_reporting_placement": "end_of_table" });
    let failed = frames(&server, "set truncationmaxrecords = 2; range x from 1 to 3 step 1", placed).await;
    let result = failed.iter().find(|frame| frame["TableKind"] == "PrimaryResult").unwrap();
    assert_eq!((&result["Rows"], result["OneApiErrors"].is_array()), (&json!([[1], [2]]), true));
    let refused = post(&server, "/v2/rest/query", &json!({ "csl": "set query_now = 5; print now()" })).await;
    assert_eq!((refused.status, refused.text.contains("`query_now` is a datetime")), (400, true), "{}", refused.text);
}
