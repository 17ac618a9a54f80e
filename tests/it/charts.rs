//! Charts: how each protocol sends a result's chart, every chart compiled and drawn by Vega-Lite and Vega themselves,
//! and `querent ask --chart`.

use std::process::{Command, Output};

use querent_tests::script::tool_call;
use querent_tests::{NodeJs, Python, TestServer, TestSettings, collect_sse, querent_binary};
use serde_json::{Value, json};
use tempfile::TempDir;

/// A query whose rows are worth a chart.
struct Plotted {
    name: &'static str,
    sql: &'static str,
    /// The chart that the model asks for.
    offered: Value,
    mark: &'static str,
    /// Bars or points.
    marks: usize,
    /// Strings that the chart shows.
    shown: &'static [&'static str],
}

fn plotted() -> Vec<Plotted> {
    let plain = |name, sql, mark, marks, shown| Plotted { name, sql, offered: Value::Null, mark, marks, shown };
    vec![
        plain(
            "categories",
            "SELECT * FROM (VALUES ('UA', 58665), ('B6', 54635), ('EV', -10)) AS t(carrier, flights)",
            "bar",
            3,
            &["carrier", "flights", "UA", "EV"],
        ),
        plain(
            "long labels",
            "SELECT * FROM (VALUES ('United Air Lines Inc.', 1.5), ('JetBlue <Airways> & Co', 2.25)) AS t(name, share)",
            "bar",
            2,
            &["JetBlue <Airways> & Co", "share"],
        ),
        plain(
            "decimals and large integers are texts",
            "SELECT * FROM (VALUES ('a', 9007199254740993, CAST(1.25 AS DECIMAL(10, 2))), \
             ('b', 9007199254740995, CAST(2.5 AS DECIMAL(10, 2)))) AS t(k, big, price)",
            "bar",
            2,
            &["k", "big"],
        ),
        plain(
            "dates",
            "SELECT * FROM (VALUES (DATE '2013-01-01', 4), (DATE '2013-02-01', 9), (DATE '2013-03-01', 1)) AS t(day, n)",
            "line",
            3,
            &["day", "n"],
        ),
        plain(
            "timestamps and two measures",
            "SELECT * FROM (VALUES (TIMESTAMP '2013-01-01 05:00:00.123', 4, 5.5), (TIMESTAMP '2013-01-01 06:00:00', 9, 3.5)) \
             AS t(\"at\", dep_delay, arr_delay)",
            "line",
            4,
            &["at", "dep_delay", "arr_delay", "measure"],
        ),
        plain(
            "series over time",
            "SELECT * FROM (VALUES (DATE '2013-01-01', 'JFK', 4), (DATE '2013-01-01', 'LGA', 5), \
             (DATE '2013-02-01', 'JFK', 9), (DATE '2013-02-01', 'LGA', NULL)) AS t(day, origin, n)",
            "line",
            3,
            &["origin", "JFK", "LGA"],
        ),
        plain(
            "a calendar",
            "SELECT * FROM (VALUES (2012, 9, 4), (2012, 10, 5), (2013, 9, 9), (2013, 10, 8)) AS t(year, month, n)",
            "line",
            4,
            &["year", "month", "2012", "10"],
        ),
        plain(
            "two kinds",
            "SELECT * FROM (VALUES ('UA', 'JFK', 1), ('UA', 'LGA', 2), ('B6', 'JFK', 3), ('B6', 'LGA', 4), ('EV', 'LGA', 5)) \
             AS t(carrier, origin, n)",
            "bar",
            5,
            &["carrier", "origin", "JFK"],
        ),
        plain(
            "measures side by side",
            "SELECT * FROM (VALUES ('JFK', 12.1, 5.5), ('LGA', 10.3, 5.7)) AS t(origin, dep_delay, arr_delay)",
            "bar",
            4,
            &["origin", "arr_delay"],
        ),
        plain(
            "two numbers",
            "SELECT * FROM (VALUES (100, 3), (200, 5), (300, 4)) AS t(distance, delay)",
            "point",
            3,
            &["delay"],
        ),
        plain(
            "repeated carriers",
            "SELECT * FROM (VALUES ('UA', 3), ('UA', 5), ('B6', 4)) AS t(carrier, delay)",
            "point",
            3,
            &["UA"],
        ),
        plain("truths", "SELECT * FROM (VALUES (true, 3), (false, 5)) AS t(late, n)", "bar", 2, &["true", "false"]),
        plain(
            "numbers that are none",
            "SELECT * FROM (VALUES ('a', CAST('NaN' AS DOUBLE)), ('b', CAST('Infinity' AS DOUBLE)), ('c', CAST(2 AS DOUBLE)), ('d', CAST(NULL AS DOUBLE))) AS t(k, v)",
            "bar",
            1,
            &["k", "v"],
        ),
        plain(
            "names of field syntax",
            "SELECT * FROM (VALUES ('p', 1), ('q', 2)) AS t(\"a.b[0].c\", \"sum(x.y)\")",
            "bar",
            2,
            &["a.b[0].c", "sum(x.y)", "p"],
        ),
        plain(
            "names of quotes",
            "SELECT * FROM (VALUES ('p', 1), ('q', 2)) AS t(\"it's \"\"so\"\"\", \"back\\slash\\\")",
            "bar",
            2,
            &["it's \"so\"", "back⧵slash⧵", "p"],
        ),
        plain(
            "series of quotes",
            "SELECT * FROM (VALUES (DATE '2013-01-01', 1, 2), (DATE '2013-02-01', 3, 4)) AS t(\"d[ay'\", \"a.\"\"b\"\"\", \"x[1].y\")",
            "line",
            4,
            &["d[ay'", "x_1_.y", "a._b_"],
        ),
        plain(
            "escaped series",
            "SELECT * FROM (VALUES ('p', 'u', 1), ('p', 'v', 2), ('q', 'u', 3), ('q', 'v', 4)) AS t(\"a[0]\", \"[^.b\", \"n.\")",
            "bar",
            4,
            &["a[0]", "[^.b", "n."],
        ),
        plain(
            "hostile labels as series",
            "SELECT * FROM (VALUES ('</text><script>', 'a\\\"b', 1), ('</text><script>', '''', 2), ('y', 'a\\\"b', 3), ('y', '''', 4)) \
             AS t(\"<b>\", \"$x{y}\", \"value\")",
            "bar",
            4,
            &["</text><script>", "<b>", "$x{y}"],
        ),
        Plotted {
            offered: json!({"mark": "bar", "encoding": {"x": {"field": "day"}, "y": {"field": "n"}}, "title": "By \\ \"day\"\n"}),
            ..plain(
                "bars over time that the model wants",
                "SELECT * FROM (VALUES (DATE '2013-01-01', 4), (DATE '2013-02-01', 9)) AS t(day, n)",
                "bar",
                2,
                &["By ⧵ \"day\""],
            )
        },
        Plotted {
            offered: json!("{\"mark\": {\"type\": \"bar\"}, \"x\": \"origin\", \"y\": \"n\", \"color\": \"carrier\"}"),
            ..plain(
                "a stack that the model wants",
                "SELECT * FROM (VALUES ('UA', 'JFK', 1), ('UA', 'LGA', 2), ('B6', 'JFK', 3)) AS t(carrier, origin, n)",
                "bar",
                3,
                &["origin", "carrier"],
            )
        },
        Plotted {
            offered: json!({"mark": "pie", "x": "nowhere", "y": ["n", {"field": 7}], "color": {"field": "carrier", "scale": {"scheme": "x"}}}),
            ..plain(
                "what does not fit is dropped",
                "SELECT * FROM (VALUES ('UA', 1), ('B6', 3)) AS t(carrier, n)",
                "bar",
                2,
                &["UA", "n"],
            )
        },
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn vega_lite_compiles_every_chart_and_vega_draws_its_rows() {
    let cases = plotted();
    let server = TestServer::start(TestSettings::default().script(script(&cases))).await;
    let mut charts = Vec::new();
    for case in &cases {
        let AskedChart { spec, result } = ask(&server, case.name).await;
        assert_eq!(spec["mark"]["type"], case.mark, "{}: {spec}", case.name);
        assert_eq!(responses(&server, case.name).await["vegaSpec"], spec, "{}", case.name);
        let named =
            json!({"name": case.name, "spec": spec, "rows": result["rows"], "marks": case.marks, "shown": case.shown});
        charts.push(named);
    }
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("charts.json");
    std::fs::write(&file, json!(charts).to_string()).unwrap();
    let mut node = NodeJs::client("vega_lite.mjs");
    node.arg(&file);
    let done = tokio::task::spawn_blocking(move || node.output().expect("node starts")).await.unwrap();
    assert!(done.status.success(), "{}", said(&done));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_protocol_tells_of_the_chart() {
    let cases = plotted();
    let server = TestServer::start(TestSettings::default().script(script(&cases))).await;
    let name = "categories";
    let spec = ask(&server, name).await.spec;
    let item = responses(&server, name).await;
    assert_eq!((&item["type"], &item["vegaSpec"]), (&json!("mcp_call"), &spec));
    // The item is taken back as it was given.
    let input = json!([{"role": "user", "content": "before"}, item, {"role": "user", "content": name}]);
    assert_eq!(server.post("/v1/responses", &json!({"input": input}), None).await.status, 200);

    let ksadk = json!({"input": name, "stream": true, "metadata": {"agentengine": {}}});
    let frames = collect_sse(&server.post("/v1/responses", &ksadk, None).await.text);
    let told = frames.iter().find(|frame| frame.event == "response.ksadk.tool_result").unwrap();
    assert_eq!(told.data["vegaSpec"], spec);

    let message = json!({"role": "user", "parts": [{"text": name}]});
    let adk = json!({"appName": "querent", "userId": "ann", "sessionId": "s-1", "newMessage": message});
    let events = server.post("/run", &adk, None).await.json();
    let told = events.as_array().unwrap().iter().find_map(|event| event["customMetadata"].get("vegaSpec"));
    assert_eq!(told, Some(&spec), "{events}");

    let arguments = json!({"sql": cases[0].sql});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "run_sql", "arguments": arguments}});
    let request =
        server.http.post(server.url("/mcp")).header("accept", "application/json, text/event-stream").json(&call);
    let reply = server.send(request, None).await;
    let data = reply.text.lines().find_map(|line| line.strip_prefix("data:")).unwrap_or(&reply.text);
    let answer: Value = serde_json::from_str(data).unwrap();
    assert_eq!(answer["result"]["structuredContent"]["vegaSpec"], spec, "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_not_worth_a_chart_has_none() {
    let one = Plotted {
        name: "no chart",
        sql: "SELECT 42 AS n",
        offered: json!({"mark": "bar"}),
        mark: "",
        marks: 0,
        shown: &[],
    };
    let server = TestServer::start(TestSettings::default().script(script(&[one]))).await;
    let frames = collect_sse(&server.post("/v1/agent/ask", &json!({"question": "no chart"}), None).await.text);
    let result = &frames.iter().find(|frame| frame.event == "tool_result").unwrap().data;
    assert_eq!((result["result"]["row_count"].as_u64(), result.get("vegaSpec")), (Some(1), None));
}

#[tokio::test(flavor = "multi_thread")]
async fn ask_draws_the_last_chart_to_a_file() {
    let cases = plotted();
    let nothing =
        Plotted { name: "no chart", sql: "SELECT 42 AS n", offered: Value::Null, mark: "", marks: 0, shown: &[] };
    let mut script = script(&cases);
    script["runs"].as_array_mut().unwrap().push(run(&nothing));
    let server = TestServer::start(TestSettings::default().script(script.clone())).await;
    let folder = TempDir::new().unwrap();
    for (index, case) in cases.iter().enumerate() {
        let file = folder.path().join(format!("{index}.svg"));
        let url = server.url("");
        let done = querent(&["ask", "--server", &url, "--quiet", "--chart", file.to_str().unwrap(), case.name]).await;
        assert!(done.status.success(), "{}: {}", case.name, said(&done));
        assert_eq!(said(&done), "Drawn.\n");
        let drawn = read_svg(&file).await;
        assert_eq!(drawn["marks"], json!(case.marks), "{}: {drawn}", case.name);
        for text in case.shown {
            let is_shown =
                drawn["texts"].as_array().unwrap().iter().any(|shown| shown.as_str().unwrap().trim() == *text);
            assert!(is_shown, "{}: {text} in {drawn}", case.name);
        }
    }

    let file = folder.path().join("nothing.svg");
    let path = file.to_str().unwrap();
    let done = querent(&["ask", "--server", &server.url(""), "--chart", path, "no chart"]).await;
    assert_eq!(done.status.code(), Some(1), "{}", said(&done));
    assert!(
        said(&done).contains("answer: Drawn.") && said(&done).contains("error [nothing_to_plot]"),
        "{}",
        said(&done)
    );
    assert!(!file.exists());
    let done = querent(&["ask", "--server", &server.url(""), "--chart", "chart.png", "categories"]).await;
    assert_eq!(done.status.code(), Some(2), "{}", said(&done));
    assert!(said(&done).contains(".svg"), "{}", said(&done));

    // The same without a server.
    std::fs::write(folder.path().join("script.json"), script.to_string()).unwrap();
    let (data, here) = (folder.path().join("data"), folder.path().join("here.svg"));
    let mut command = Command::new(querent_binary());
    command.args(["ask", "--data"]).arg(&data).arg("--chart").arg(&here).arg("categories");
    command.env("QUERENT_EMBED_PROVIDER", "none").env("QUERENT_AGENT_SCRIPT", folder.path().join("script.json"));
    let done = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(done.status.success(), "{}", said(&done));
    assert!(said(&done).contains("chart: "), "{}", said(&done));
    assert_eq!(read_svg(&here).await["marks"], 3);
}

/// Returns what an ask stream sends for a query.
struct AskedChart {
    spec: Value,
    result: Value,
}

async fn ask(server: &TestServer, question: &str) -> AskedChart {
    let text = server.post("/v1/agent/ask", &json!({"question": question}), None).await.text;
    let frames = collect_sse(&text);
    let result = frames.iter().find(|frame| frame.event == "tool_result").unwrap_or_else(|| panic!("{text}"));
    assert!(result.data["vegaSpec"].is_object(), "{question}: {}", result.data);
    AskedChart { spec: result.data["vegaSpec"].clone(), result: result.data["result"].clone() }
}

/// Returns the item of the call.
async fn responses(server: &TestServer, question: &str) -> Value {
    let reply = server.post("/v1/responses", &json!({"input": question}), None).await.json();
    let items = reply["output"].as_array().unwrap_or_else(|| panic!("{reply}"));
    items.iter().find(|item| item["type"] == "mcp_call").unwrap().clone()
}

fn script(cases: &[Plotted]) -> Value {
    json!({ "runs": cases.iter().map(run).collect::<Vec<_>>() })
}

/// Returns a script of one query and an answer.
fn run(case: &Plotted) -> Value {
    let mut arguments = json!({"sql": case.sql});
    if !case.offered.is_null() {
        arguments["chart"] = case.offered.clone();
    }
    let call = tool_call("run_sql", arguments);
    json!({"when": case.name, "turns": [{"events": [call]}, {"events": [{"text": "Drawn."}]}]})
}

async fn querent(arguments: &[&str]) -> Output {
    let mut command = Command::new(querent_binary());
    command.args(arguments);
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Reads the image as XML: the number of bars and points, and its strings.
async fn read_svg(file: &std::path::Path) -> Value {
    const READ: &str = "\
import json, sys, xml.etree.ElementTree as tree
root = tree.parse(sys.argv[1]).getroot()
svg = '{http://www.w3.org/2000/svg}'
assert root.tag == svg + 'svg', root.tag
assert {e.tag[len(svg):] for e in root.iter()} <= {'svg', 'rect', 'line', 'text', 'circle', 'title', 'polyline', 'polygon'}
marks = [e for e in root.iter() if e.get('class') == 'mark' and e.tag in (svg + 'rect', svg + 'circle')]
print(json.dumps({'marks': len(marks), 'texts': [e.text for e in root.iter(svg + 'text')]}))";
    let path = file.to_str().unwrap().to_owned();
    let told = tokio::task::spawn_blocking(move || Python::run(READ, &[&path])).await.unwrap();
    serde_json::from_str(&told).unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}
