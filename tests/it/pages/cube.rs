//! The page of Cube's chat API.

use std::time::Duration;

use querent_tests::{TestServer, TestSettings};
use serde_json::{Value, json};

use super::{ReferencePage, assert_shape, quoted_after, read_page, replaced, run_bash, run_javascript, run_python};

const KEY: &str = "key-of-the-page";
const ANSWER: &str = "Chairs sell best: 42 of them.";

/// What a fragment of the page needs around it: lines of a stream, one after the other.
const READ_LINES: &str = "
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
const readLines = (body) => createInterface({ input: Readable.fromWeb(body) });
";

#[cfg_attr(
    not(has_reference_pages),
    ignore = "the protocols' published pages are not there: QUERENT_REFERENCE names their folder"
)]
#[tokio::test]
async fn every_example_of_the_page() {
    let mut page = ReferencePage::from_markdown(&read_page("cube-chat-api.txt"));
    let chat = path_in(&page.next("text"));
    let first = asks_and_reads(&mut page, &chat).await;
    attributes_of_a_user(&mut page, &chat).await;
    assert_eq!(path_in(&page.next("text")), chat);
    let examples: Vec<Value> = (0..11).map(|_| page.next_json()).collect();
    messages_of_a_run(&examples, &chat).await;
    the_final_answer_and_the_tools(&mut page, &first, &chat).await;
    tools_inputs_and_results(&mut page, &chat).await;
    aborts(&mut page, &chat).await;
    whole_clients(&mut page, &chat).await;
    page.finish(&[("bash", 2), ("javascript", 6), ("json", 19), ("python", 2), ("text", 3)]);
}

/// The first program. Returns it.
async fn asks_and_reads(page: &mut ReferencePage, chat: &str) -> String {
    let program = page.next("javascript");
    let server = started(says(&[ANSWER])).await;
    let said = run_javascript(&filled(&program, &server.url(chat))).await;
    for expected in ["\"__cutoff__\"", "\"chatId\"", "total sales", ANSWER, "\"__state__\""] {
        assert!(said.contains(expected), "no {expected} in {said}");
    }
    program
}

/// The structure of a user's attribute is taken in a request.
async fn attributes_of_a_user(page: &mut ReferencePage, chat: &str) {
    let server = started(says(&[ANSWER])).await;
    let program = format!(
        "const attribute = {};
         const response = await fetch({:?}, {{
           method: 'POST',
           headers: {{ Authorization: 'Api-Key {KEY}' }},
           body: JSON.stringify({{ input: 'q', sessionSettings: {{ externalId: 'ann', userAttributes: [attribute] }} }}),
         }});
         console.log(response.status, await response.text());",
        page.next("javascript"),
        server.url(chat),
    );
    let said = run_javascript(&program).await;
    assert!(said.starts_with("200 ") && said.contains(ANSWER), "{said}");
}

/// The messages of the page's conversation, in its order.
async fn messages_of_a_run(examples: &[Value], chat: &str) {
    let question = examples[1]["content"].as_str().expect("a question");
    let result: Value = serde_json::from_str(examples[8]["toolCall"]["result"].as_str().expect("a result")).unwrap();
    // A query whose columns are called as the example's.
    let columns = |side: &str, value: &str| -> Vec<String> {
        let names = result["annotation"][side].as_object().expect("columns").keys();
        names.map(|name| format!("{value} AS \"{name}\"")).collect()
    };
    let columns = [columns("measures", "1"), columns("dimensions", "DATE '2024-01-01'")].concat().join(", ");
    let turns = json!([
        {
            "events": [
                { "thinking": "I look." }, { "text": "Let me see." },
                { "tool_call": { "name": "describe_table", "arguments": { "table": "sales" } } },
            ],
        },
        { "events": [{ "tool_call": { "name": "run_sql", "arguments": { "sql": format!("SELECT {columns}") } } }] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    server.execute("CREATE TABLE sales AS SELECT 1 AS sale_id, 2.5 AS amount").await;
    let asked = json!({ "input": question, "messageId": examples[1]["id"], "isDevMode": true });
    let lines = ask(&server, chat, asked).await;
    let mut at = 0;
    for (index, example) in examples.iter().enumerate() {
        let found = lines[at..].iter().position(|line| is_such(example, line));
        at += found.unwrap_or_else(|| panic!("no such message behind line {at}: {example:#}\n{lines:#?}"));
        let deliberate: &[(&str, &str)] = match index {
            8 => &[("toolCall.result.data[]", "rows are lists, as the page's own section on this tool has them")],
            _ => &[],
        };
        assert_shape(example, &lines[at], deliberate);
        at += 1;
    }
    assert_eq!(lines[at - 1]["id"], "__state__");
    assert_eq!(lines.iter().find(|line| line["role"] == "user").expect("the question")["id"], examples[1]["id"]);
}

/// Whether a line is of the example's kind.
fn is_such(example: &Value, line: &Value) -> bool {
    let same = |name: &str| example.get(name).is_none_or(|value| line.get(name) == Some(value));
    let is_marked = |message: &Value| message["id"].as_str().is_some_and(|id| id.starts_with("__"));
    let is_alike =
        |name: &str| example[name].as_str().is_none_or(str::is_empty) == line[name].as_str().is_none_or(str::is_empty);
    let fields = ["role", "graphPath", "isDelta", "isInProcess", "isStructuredResponse"];
    fields.into_iter().all(same)
        && is_marked(example) == is_marked(line)
        && (!is_marked(example) || example["id"] == line["id"])
        && ["content", "thinking"].into_iter().all(is_alike)
        && example["toolCall"]["name"] == line["toolCall"]["name"]
        && example["toolCall"].get("result").is_some() == line["toolCall"].get("result").is_some()
}

/// The fragments that look for the final answer and read tools' results, behind the first program's request.
async fn the_final_answer_and_the_tools(page: &mut ReferencePage, first: &str, chat: &str) {
    let request: Vec<&str> = first.lines().take_while(|line| !line.contains(".getReader(")).collect();
    let (answer, result) = (page.next("javascript"), page.next("javascript"));
    let turns = json!([
        { "events": [
            { "tool_call": { "name": "run_sql", "arguments": { "sql": "SELECT 42 AS chairs" } } },
            { "tool_call": { "name": "run_sql", "arguments": { "sql": "SELECT * FROM nowhere" } } },
        ] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    let program = format!(
        "{READ_LINES}\n{}\n{answer}\n
        for (const message of messages.filter((line) => line.toolCall?.result)) {{
          {result}
          console.log(message.toolCall.name, Object.keys(toolResult).join(), JSON.stringify(toolResult.data));
        }}",
        request.join("\n"),
    );
    let said = run_javascript(&filled(&program, &server.url(chat))).await;
    assert!(said.contains(&format!("answer: {ANSWER}")), "{said}");
    assert!(said.contains("annotation") && said.contains("[[\"42\"]]"), "{said}");
    assert!(said.contains("error: Error: TableNotFoundError"), "{said}");
}

/// The inputs and results of the two tools, the chart's style, and a tool's failure.
async fn tools_inputs_and_results(page: &mut ReferencePage, chat: &str) {
    let sql = "SELECT stage, sum(amount) AS amount FROM deals GROUP BY stage ORDER BY stage";
    let turns = json!([
        { "events": [
            { "tool_call": { "name": "describe_table", "arguments": { "table": "deals" } } },
            { "tool_call": { "name": "run_sql", "arguments": { "sql": sql, "vegaSpec": "{\"mark\": \"bar\"}" } } },
        ] },
        { "events": [{ "text": ANSWER }] },
    ]);
    let server = started(turns).await;
    server
        .execute(
            "CREATE TABLE deals AS SELECT column1 AS deal_id, column2 AS amount, column3 AS stage \
                    FROM (VALUES (1, 2.5, 'Won'), (2, 3.5, 'Lost'), (3, 1.0, 'Demo'))",
        )
        .await;
    let lines = ask(&server, chat, json!({ "input": "Which deals are there?" })).await;

    let meta = with_result(&lines, "cubeMeta");
    assert_shape(&page.next_json(), meta, &[]);
    assert_shape(&page.next_json(), &inner(meta, "input"), &[]);
    assert_shape(&page.next_json(), &inner(meta, "result"), &[]);

    let query = with_result(&lines, "cubeSqlApi");
    assert_shape(&page.next_json(), query, &[]);
    let no_memory = [("memoryId", "a query is told whole: there is no memory of earlier ones that it could refer to")];
    assert_shape(&page.next_json(), &inner(query, "input"), &no_memory);
    let result = inner(query, "result");
    assert_shape(&page.next_json(), &result, &[]);
    assert_eq!(result["totalRows"], 3);
    draws(&page.next("json"), &result).await;

    let elsewhere = json!({ "input": "Which deals are there?", "activeBranchName": "elsewhere" });
    let lines = ask(&server, chat, elsewhere).await;
    let (example, failed) = (page.next_json(), with_result(&lines, "cubeMeta"));
    assert_shape(&example, failed, &[]);
    assert_eq!(inner(failed, "result"), inner(&example, "result"));
}

/// The page's style of charts, which has a comment, is put around a chart of ours.
async fn draws(style: &str, result: &Value) {
    let program = format!(
        "import {{ compile }} from 'vega-lite';
         import {{ View, parse }} from 'vega';
         const style = {style};
         const result = {result};
         const columns = result.schema.map(({{ name }}) => name);
         const values = result.data.map((row) => Object.fromEntries(row.map((value, i) => [columns[i], value])));
         const spec = {{ ...JSON.parse(result.vegaSpec), ...style, data: {{ values }} }};
         const svg = await new View(parse(compile(spec).spec), {{ renderer: 'none' }}).toSVG();
         console.log('bars', svg.match(/aria-roledescription=\"bar\"/g).length, svg.includes(style.config.axis.labelColor));",
    );
    let said = run_javascript(&program).await;
    assert!(said.contains("bars 3 true"), "{said}");
}

/// Each way to abort ends a run that goes on.
async fn aborts(page: &mut ReferencePage, chat: &str) {
    let abort = replaced(chat, "/stream-chat-state", "/abort");
    assert_eq!(path_in(&page.next("text")), abort);
    for language in ["python", "bash", "javascript"] {
        let program = page.next(language);
        let server = started(json!([{ "events": [{ "text": "One moment" }, "hang"] }])).await;
        let url = server.url(chat);
        let asked = json!({
            "input": "Wait.",
            "sessionSettings": { "externalId": quoted_after(&program, "externalId") },
        });
        let request = server.http.post(&url).header("authorization", format!("Api-Key {KEY}")).json(&asked);
        let mut stream = request.send().await.unwrap();
        let mut begun = String::new();
        while !begun.contains("One moment") {
            let chunk = tokio::time::timeout(Duration::from_secs(20), stream.chunk()).await.expect("in time").unwrap();
            begun.push_str(std::str::from_utf8(&chunk.expect("more")).unwrap());
        }
        let chat_id = quoted_after(&begun, "\"chatId\"");
        let program = replaced(&program, "CHAT_ID_TO_ABORT", chat_id);
        match language {
            "bash" => {
                let program = replaced(&program, "YOUR_API_KEY", KEY);
                // 204 has no body, so there is nothing to print.
                let said = run_bash(&program, &[("CHAT_API_URL", &url)]).await;
                assert!(!said.contains("error\""), "{said}");
            }
            "python" => succeeded(&run_python(&filled(&program, &url)).await),
            _ => succeeded(&run_javascript(&filled(&program, &url)).await),
        }
        let rest = tokio::time::timeout(Duration::from_secs(20), stream.text()).await.expect("in time").unwrap();
        let last: Value = serde_json::from_str(rest.lines().last().expect("lines")).unwrap();
        assert_eq!(last["id"], "__state__", "{language}: {rest}");
    }
}

fn succeeded(said: &str) {
    assert!(said.contains("aborted successfully"), "{said}");
}

/// The three clients at the end of the page.
async fn whole_clients(page: &mut ReferencePage, chat: &str) {
    let server = started(says(&["Chairs sell best: ", "42 of them."])).await;
    let url = server.url(chat);
    let python = run_python(&filled(&page.next("python"), &url)).await;
    for expected in ["'__cutoff__'", "'chatId'", "'Chairs sell best: '", ANSWER, "'__state__'"] {
        assert!(python.contains(expected), "no {expected} in {python}");
    }
    let curl = run_bash(&filled(&page.next("bash"), &url), &[]).await;
    for expected in ["\"__cutoff__\"", "\"chatId\"", ANSWER, "\"__state__\""] {
        assert!(curl.contains(expected), "no {expected} in {curl}");
    }
    let program = format!(
        "const updateChatUI = (message) => console.log('shown:', message.content);\n{}",
        page.next("javascript"),
    );
    let node = run_javascript(&filled(&program, &url)).await;
    let shown: Vec<&str> = node.lines().filter_map(|line| line.strip_prefix("shown: ")).collect();
    assert_eq!(shown, ["Chairs sell best: ", "42 of them.", ANSWER, ANSWER], "{node}");
    assert!(node.contains("'__cutoff__'") && node.contains("chatId:"), "{node}");
}

async fn started(turns: Value) -> TestServer {
    let capabilities = json!({ "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 });
    let script = json!({ "capabilities": capabilities, "runs": [{ "turns": turns }] });
    let settings = TestSettings::default().script(script);
    TestServer::start(settings.change(|settings| settings.cube.api_keys = vec![KEY.to_owned()])).await
}

/// Returns a script of one turn that says these pieces.
fn says(pieces: &[&str]) -> Value {
    let events: Vec<Value> = pieces.iter().map(|text| json!({ "text": text })).collect();
    json!([{ "events": events }])
}

/// Returns the path of an address with its parts in braces filled in.
fn path_in(template: &str) -> String {
    let (_, path) = template.trim().split_once(".dev").expect("a host");
    path.replace("{accountName}", "acme").replace("{agentId}", "1")
}

/// Returns the program with its placeholders filled in. One program has the key in a string that is not a template.
fn filled(program: &str, url: &str) -> String {
    let literal = format!("'Api-Key {KEY}'");
    program.replace("YOUR_CHAT_API_URL", url).replace("YOUR_API_KEY", KEY).replace("'Api-Key ${API_KEY}'", &literal)
}

async fn ask(server: &TestServer, chat: &str, mut body: Value) -> Vec<Value> {
    body["sessionSettings"] = json!({ "externalId": "ann@example.com" });
    let request = server.http.post(server.url(chat)).header("authorization", format!("Api-Key {KEY}")).json(&body);
    let reply = server.send(request, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    reply.lines()
}

fn with_result<'a>(lines: &'a [Value], tool: &str) -> &'a Value {
    let found = lines.iter().find(|line| line["toolCall"]["name"] == tool && line["isInProcess"] == false);
    found.unwrap_or_else(|| panic!("no result of {tool}: {lines:#?}"))
}

/// Returns a tool call's input or result.
fn inner(line: &Value, name: &str) -> Value {
    serde_json::from_str(line["toolCall"][name].as_str().expect("a text")).unwrap()
}
