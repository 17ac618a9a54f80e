//! The page of HolmesGPT's API, whose text has lost its fences.

use querent_tests::script::{self, tool_call};
use querent_tests::{SseFrame, TestServer, TestSettings, collect_sse};
use serde_json::{Value, json};

use super::{ReferencePage, assert_shape, quoted_after, read_page, replaced, run_bash, run_javascript};

const CHAT: &str = "/api/chat";
const ANSWER: &str = "All is well.";
const CHART: &str = "render_chart";

#[cfg_attr(
    not(has_reference_pages),
    ignore = "the protocols' published pages are not there: QUERENT_REFERENCE names their folder"
)]
#[tokio::test]
async fn every_example_of_the_page() {
    let mut page = ReferencePage::from_plain_text(&read_page("holmesgpt-api.txt"));
    page.pass_over("yaml", "values of a Helm chart, which this server is not installed by");
    names_of_models(&mut page).await;
    questions_and_answers(&mut page).await;
    pictures(&mut page).await;
    frontend_tools_with_curl(&mut page).await;
    frontend_tools_with_javascript(&mut page).await;
    list_of_models(&mut page).await;
    metadata(&mut page).await;
    events_of_a_run(&mut page).await;
    pauses(&mut page).await;
    events_beside_a_run(&mut page).await;
    flows(&mut page).await;
    page.finish(&[("bash", 12), ("flow", 4), ("javascript", 6), ("json", 17), ("yaml", 1)]);
}

/// A model is chosen by its name in the list; other names are refused.
async fn names_of_models(page: &mut ReferencePage) {
    let (right, wrong) = (page.next("bash"), page.next("bash"));
    let server = started_as(quoted_after(&right, "\"model\""), says(ANSWER)).await;
    assert_eq!(answer_of(&filled(&right, &server)).await["analysis"], ANSWER);
    let refused = answer_of(&filled(&wrong, &server)).await;
    assert!(refused["detail"].as_str().expect("why").contains("configured models"), "{refused}");
}

async fn questions_and_answers(page: &mut ReferencePage) {
    let server = started(says(ANSWER)).await;
    for _ in 0..2 {
        let answer = answer_of(&filled(&page.next("bash"), &server)).await;
        assert_eq!((&answer["analysis"], roles(&answer)), (&json!(ANSWER), vec!["system", "user", "assistant"]));
    }

    let format = page.next_json();
    let properties = format["json_schema"]["schema"]["properties"].as_object().expect("properties");
    let wanted = properties.iter().map(|(name, property)| {
        let value = if property["type"] == "boolean" { json!(true) } else { json!("words") };
        (name.clone(), value)
    });
    let wanted = Value::Object(wanted.collect());
    let strict = started(says(&wanted.to_string())).await;
    let reply = strict.post(CHAT, &json!({ "ask": "q", "response_format": format }), None).await;
    assert_eq!((reply.status, text_as_json(&reply.json()["analysis"])), (200, wanted), "{}", reply.text);

    let (program, example) = (page.next("bash"), page.next_json());
    let analysis = example["analysis"].as_str().expect("an answer");
    let strict = started(says(analysis)).await;
    let answer = answer_of(&filled(&program, &strict)).await;
    assert_eq!(text_as_json(&answer["analysis"]), text_as_json(&example["analysis"]));
    assert_shape(&example, &answer, &[]);

    let (program, example) = (page.next("bash"), page.next_json());
    let answer = answer_of(&filled(&program, &server)).await;
    assert_eq!(answer["analysis"], ANSWER);
    assert_eq!(roles(&answer), roles(&example));
    assert_shape(&example, &answer, &[]);
}

/// The model of these calls is one of a list that has such names.
async fn pictures(page: &mut ReferencePage) {
    for _ in 0..3 {
        let program = page.next("bash");
        let server = started_as(quoted_after(&program, "\"model\""), says(ANSWER)).await;
        let answer = answer_of(&filled(&program, &server)).await;
        assert_eq!(answer["analysis"], ANSWER, "{answer}");
        let asked = server.model.requests().last().expect("a request").messages[1].clone();
        let addresses = program.matches("https://example.com/").count();
        assert_eq!(asked.content.matches("https://example.com/").count(), addresses, "the model is told of each");
        assert_eq!(asked.images.len(), usize::from(program.contains("base64,")));
    }
}

async fn frontend_tools_with_curl(page: &mut ReferencePage) {
    let (first, resume) = (page.next("bash"), page.next("bash"));
    let turns = json!([
        { "events": [
            tool_call(CHART, json!({ "chart_type": "line" })),
            tool_call("navigate_to_page", json!({ "page": "/dashboards" })),
        ] },
        { "events": [{ "text": ANSWER }] },
    ]);
    // The question of the page's second call is another one.
    let runs = json!([
        { "when": quoted_after(&resume, "\"ask\""), "turns": says(ANSWER) },
        { "turns": turns },
    ]);
    let server = TestServer::start(TestSettings::default().script(json!({ "runs": runs }))).await;
    let frames = collect_sse(&run_bash(&filled(&first, &server), &[]).await);
    let noop = named(&frames, "tool_calling_result");
    assert_eq!(noop[0]["result"]["data"], quoted_after(&first, "\"noop_response\""));
    let paused = last(&frames, "approval_required");
    let id = paused["pending_frontend_tool_calls"][0]["tool_call_id"].as_str().expect("an id");
    let resume = replaced(&filled(&resume, &server), quoted_after(&resume, "\"tool_call_id\""), id);
    let resume = replaced(&resume, "[...]", &in_shell(&paused["conversation_history"]));
    let frames = collect_sse(&run_bash(&resume, &[]).await);
    let result = &named(&frames, "tool_calling_result")[0];
    assert_eq!((&result["name"], &result["result"]["status"]), (&json!(CHART), &json!("success")));
    assert_eq!(text_as_json(&result["result"]["data"])["rendered"], true);
    assert_eq!(last(&frames, "ai_answer_end")["analysis"], ANSWER);
}

/// The code that the page's client leaves to the reader.
const BROWSER: &str = "
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const originalQuestion = 'Show it to me.';
const renderChartInUI = async (given) => { console.log('rendered', JSON.stringify(given)); return { rendered: true }; };
const navigateToPage = (given) => console.log('navigated', given.tool_name);
const renderMarkdown = (text) => console.log('said', text);
const saveConversationHistory = (history) => console.log('saved', history.length, history.at(-1).content);
";

/// The client that the page builds in five steps.
async fn frontend_tools_with_javascript(page: &mut ReferencePage) {
    let [tools, import, stream, handle, execute, noop] = std::array::from_fn(|_| page.next("javascript"));
    let turns = json!([
        { "events": [{ "text": "I plot." }, tool_call(CHART, json!({ "chart_type": "line", "metric": "cpu" }))] },
        { "events": [{ "text": "I go." }, tool_call("navigate_to_page", json!({ "page": "/alerts" }))] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    let program = |handle: &str| {
        let parts = [BROWSER, &import, &tools, &stream, handle, &execute, "streamChat({ ask: originalQuestion });"];
        filled(&parts.join("\n"), &server)
    };
    let said = run_javascript(&program(&handle)).await;
    let results = ["Tool result: render_chart", "Tool result: navigate_to_page"];
    let told = ["said I plot.", "started: render_chart", "rendered {\"chart_type\":\"line\",\"metric\":\"cpu\"}"];
    for expected in told.into_iter().chain(results).chain(["started: navigate_to_page"]) {
        assert!(said.contains(expected), "no {expected} in {said}");
    }
    assert!(said.contains("'{\"rendered\":true}'"), "what the chart's tool returned: {said}");
    let saved = said.lines().filter(|line| line.starts_with("saved ")).collect::<Vec<_>>();
    assert_eq!(saved, [format!("saved 7 {ANSWER}")], "{said}");

    // The last step stands in for the one of the same name.
    let (before, rest) = handle.split_once("case \"start_tool_calling\":").expect("a case");
    let (_, after) = rest.split_once("break;").expect("its end");
    let said = run_javascript(&program(&[before, &noop, after].concat())).await;
    assert!(said.contains("navigated navigate_to_page") && said.contains(&format!("saved 7 {ANSWER}")), "{said}");
}

async fn list_of_models(page: &mut ReferencePage) {
    let (program, example) = (page.next("bash"), page.next_json());
    let name = example["model_name"][0].as_str().expect("a name");
    let server = started_as(name, says(ANSWER)).await;
    let models = answer_of(&filled(&program, &server)).await;
    assert_shape(&example, &models, &[]);
    assert_eq!(models["model_name"], json!([name]));
}

async fn metadata(page: &mut ReferencePage) {
    let many = "SELECT value * 1000000007 AS a_rather_long_name FROM generate_series(100000, 100180) AS s(value)";
    let turns = json!([
        { "events": [tool_call("run_sql", json!({ "sql": many }))] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    let frames = stream(&server, json!({ "ask": "many" })).await;
    for _ in 0..2 {
        assert_shape(&page.next_json(), last(&frames, "ai_answer_end"), &[]);
    }
}

async fn events_of_a_run(page: &mut ReferencePage) {
    let [start, result, message, end] = std::array::from_fn(|_| page.next_json());
    let name = start["tool_name"].as_str().expect("a name");
    // A tool of the client's can be called as the example's is, with the example's parameters.
    let turns = json!([
        { "events": [{ "thinking": "Why?" }, { "text": "I look." }, tool_call(name, result["result"]["params"].clone())] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    let tools = json!([{ "name": name, "description": "Looks.", "mode": "noop" }]);
    let frames = stream(&server, json!({ "ask": "why?", "frontend_tools": tools })).await;
    let (begun, returned) = (named(&frames, "start_tool_calling")[0], named(&frames, "tool_calling_result")[0]);
    assert_shape(&start, begun, &[]);
    assert_shape(&result, returned, &[]);
    assert_eq!((&begun["tool_name"], &begun["id"]), (&json!(name), &returned["tool_call_id"]));
    for field in ["role", "name"] {
        assert_eq!(returned[field], result[field], "{field}");
    }
    assert_eq!(returned["result"]["params"], result["result"]["params"]);
    assert_shape(&message, named(&frames, "ai_message")[0], &[]);
    assert_shape(&end, last(&frames, "ai_answer_end"), &[]);
}

/// A pause, and both ways to go on after one, whose bodies are sent with the pause's conversation and ids.
async fn pauses(page: &mut ReferencePage) {
    let [paused, approve, resume] = std::array::from_fn(|_| page.next_json());
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let frontend = &paused["pending_frontend_tool_calls"][0];
    let create = json!({ "table": "kept", "sql": "SELECT 1 AS n" });
    let create = tool_call("create_table_as", create);
    let name = text(&frontend["tool_name"]);
    let chart = tool_call(&name, frontend["arguments"].clone());
    let run = |when: &str, calls: Vec<&Value>| json!({ "when": when, "turns": [{ "events": calls }, { "events": [{ "text": ANSWER }] }] });
    let runs = json!([run("both", vec![&create, &chart]), run("keep", vec![&create]), run("chart", vec![&chart])]);
    let settings = TestSettings::default().script(json!({ "runs": runs }));
    let server = TestServer::start(settings.change(|settings| settings.agent.write_tools = true)).await;
    let tools = json!([{ "name": name, "description": "Shows a chart." }]);
    let ask = |question: &str| json!({ "ask": question, "enable_tool_approval": true, "frontend_tools": tools });

    let frames = stream(&server, ask("both")).await;
    let of_the_tool = [
        ("pending_approvals[].params.namespace", "the parameters of the example's own tool"),
        ("pending_approvals[].params.pod", "the same"),
    ];
    assert_shape(&paused, last(&frames, "approval_required"), &of_the_tool);

    for (question, mut body, result) in [("keep", approve, "kept"), ("chart", resume, "data_points")] {
        let frames = stream(&server, ask(question)).await;
        let paused = last(&frames, "approval_required");
        body["conversation_history"] = paused["conversation_history"].clone();
        let waiting = [&paused["pending_approvals"][0], &paused["pending_frontend_tool_calls"][0]];
        let id = waiting.iter().find_map(|call| call["tool_call_id"].as_str()).expect("a call that waits");
        for list in ["tool_decisions", "frontend_tool_results"] {
            if let Some(entry) = body.get_mut(list) {
                entry[0]["tool_call_id"] = json!(id);
            }
        }
        let reply = server.post(CHAT, &body, None).await;
        assert_eq!(reply.status, 200, "{}", reply.text);
        let answer = reply.json();
        assert_eq!(answer["analysis"], ANSWER, "{answer}");
        let returned = &answer["tool_calls"][0]["result"];
        assert_eq!(returned["status"], "success", "{answer}");
        assert!(text(&returned["data"]).contains(result), "{answer}");
    }
    let kept = server.post("/v1/query", &json!({ "sql": "SELECT n FROM kept" }), None).await;
    assert_eq!(kept.status, 200, "what was approved is done: {}", kept.text);
}

/// Token counts, compaction and failures.
async fn events_beside_a_run(page: &mut ReferencePage) {
    let server = started(json!([{ "events": [{ "error": "out of order" }] }])).await;
    let plain = started(says(ANSWER)).await;
    let count = stream(&plain, json!({ "ask": "q" })).await;
    assert_shape(&page.next_json(), named(&count, "token_count")[0], &[]);

    let compacted = stream(&plain, long_conversation()).await;
    for name in ["conversation_history_compaction_start", "conversation_history_compacted"] {
        assert_shape(&page.next_json(), named(&compacted, name)[0], &[]);
    }

    let failed = stream(&server, json!({ "ask": "q" })).await;
    let (example, error) = (page.next_json(), last(&failed, "error"));
    assert_shape(&example, error, &[]);
    assert_eq!(error["success"], example["success"]);
}

/// The orders of events that the page lists.
async fn flows(page: &mut ReferencePage) {
    let create = tool_call("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS n" }));
    let query = tool_call("run_sql", json!({ "sql": "SELECT 1 AS one" }));
    let chart = tool_call(CHART, json!({}));
    let page_tool = tool_call("navigate_to_page", json!({}));
    let words = json!({ "text": "I look." });
    let run = |when: &str, events: Vec<&Value>| json!({ "when": when, "turns": [{ "events": events }, { "events": [{ "text": ANSWER }] }] });
    let runs = json!([
        run("approve", vec![&words, &query, &create]),
        run("pause", vec![&words, &query, &chart]),
        run("noop", vec![&words, &page_tool]),
        run("zebras", vec![&query]),
        { "turns": says("It was long."), "repeat_last": true },
    ]);
    let settings = TestSettings::default().script(json!({ "runs": runs }));
    let server = TestServer::start(settings.change(|settings| settings.agent.write_tools = true)).await;
    let tools = json!([
        { "name": CHART, "description": "Plots." },
        { "name": "navigate_to_page", "description": "Goes there.", "mode": "noop" },
    ]);

    let approve = json!({ "ask": "approve", "enable_tool_approval": true });
    let first = stream(&server, approve).await;
    let paused = last(&first, "approval_required");
    let history = &paused["conversation_history"];
    let decided = json!([{ "tool_call_id": paused["pending_approvals"][0]["tool_call_id"], "approved": true }]);
    let rest = stream(&server, json!({ "conversation_history": history, "tool_decisions": decided })).await;
    // The page's flow ends where the run continues like any other.
    assert_eq!([&steps(&first), &steps(&rest)[..1]].concat(), steps_in(&page.next("flow")));

    let first = stream(&server, json!({ "ask": "pause", "frontend_tools": tools })).await;
    let paused = last(&first, "approval_required");
    let history = &paused["conversation_history"];
    let id = &paused["pending_frontend_tool_calls"][0]["tool_call_id"];
    let results = json!([{ "tool_call_id": id, "tool_name": CHART, "result": "{}" }]);
    let rest = json!({ "conversation_history": history, "frontend_tool_results": results, "frontend_tools": tools });
    let rest = stream(&server, rest).await;
    let flow = page.next("flow");
    assert_eq!([steps(&first), steps(&rest)].concat(), steps_in(&flow));

    let noop = stream(&server, json!({ "ask": "noop", "frontend_tools": tools })).await;
    assert_eq!(steps(&noop), steps_in(&page.next("flow")));

    let mut long = long_conversation();
    long["ask"] = json!("zebras");
    assert_eq!(steps(&stream(&server, long).await), steps_in(&page.next("flow")));
}

/// The events of a flow, without two deliberate differences: `token_count` comes more often than the page tells, as from
/// HolmesGPT's own server, and neither sends an answer's words in an `ai_message` before `ai_answer_end`: clients that
/// show both would show them twice.
fn steps_in(flow: &str) -> Vec<String> {
    let names = flow.lines().filter_map(|line| {
        let (number, rest) = line.split_once(". ")?;
        number.parse::<u32>().ok()?;
        rest.split_whitespace().next().map(str::to_owned)
    });
    let mut names: Vec<String> = names.filter(|name| name != "token_count").collect();
    if let [.., message, end] = names.as_slice()
        && (message.as_str(), end.as_str()) == ("ai_message", "ai_answer_end")
    {
        names.remove(names.len() - 2);
    }
    names
}

fn steps(frames: &[SseFrame]) -> Vec<String> {
    frames.iter().map(|frame| frame.event.clone()).filter(|name| name != "token_count").collect()
}

/// Fills the model's context.
fn long_conversation() -> Value {
    let mut history = vec![json!({ "role": "system", "content": "x" })];
    for _ in 0..12 {
        history.push(json!({ "role": "user", "content": "how many were there? ".repeat(40) }));
        history.push(json!({ "role": "assistant", "content": "three of them, ".repeat(60) }));
    }
    json!({ "ask": "how many?", "conversation_history": history })
}

async fn started(turns: Value) -> TestServer {
    started_as("scripted", turns).await
}

/// Starts a server with a model of this name.
async fn started_as(model: &str, turns: Value) -> TestServer {
    let script = json!({ "model": model, "runs": [{ "turns": turns, "repeat_last": true }] });
    TestServer::start(TestSettings::default().script(script)).await
}

/// Returns the one turn of a run that answers at once.
fn says(text: &str) -> Value {
    json!([script::says(text)])
}

/// Returns the program with the server's address in it.
fn filled(program: &str, server: &TestServer) -> String {
    let host = server.addr.to_string();
    program.replace("<HOLMES-URL>", &host).replace("localhost:8080", &host)
}

/// Returns the JSON that a curl call printed.
async fn answer_of(program: &str) -> Value {
    let said = run_bash(program, &[]).await;
    serde_json::from_str(&said).unwrap_or_else(|error| panic!("{error} in {said}"))
}

/// Returns JSON for the single quotes of a shell.
fn in_shell(value: &Value) -> String {
    value.to_string().replace('\'', "\\u0027")
}

async fn stream(server: &TestServer, mut body: Value) -> Vec<SseFrame> {
    body["stream"] = json!(true);
    let reply = server.post(CHAT, &body, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    collect_sse(&reply.text)
}

fn named<'a>(frames: &'a [SseFrame], name: &str) -> Vec<&'a Value> {
    let found: Vec<&Value> = frames.iter().filter(|frame| frame.event == name).map(|frame| &frame.data).collect();
    assert!(!found.is_empty(), "no {name} in {frames:#?}");
    found
}

fn last<'a>(frames: &'a [SseFrame], name: &str) -> &'a Value {
    let last = frames.last().expect("frames");
    assert_eq!(last.event, name, "{last:#?}");
    &last.data
}

fn roles(answer: &Value) -> Vec<&str> {
    let history = answer["conversation_history"].as_array().expect("a conversation");
    history.iter().map(|message| message["role"].as_str().expect("a role")).collect()
}

fn text_as_json(text: &Value) -> Value {
    serde_json::from_str(text.as_str().expect("a text")).unwrap()
}
