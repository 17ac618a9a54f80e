//! The console at `/`: what the server sends of it, and every view in a browser.

use flate2::read::GzDecoder;
use querent_tests::script::{run_sql, tool_call};
use querent_tests::{NodeJs, TestServer, TestSettings, nycflights_dir, package_folder, run_client};
use serde_json::{Value, json};
use std::io::Read;
use tempfile::TempDir;

/// What the scripts and styles of the first view may be together, compressed.
const MOST_COMPRESSED: usize = 200_000;
const BROWSER: &str = "text/html,application/xhtml+xml,*/*;q=0.8";

#[tokio::test]
async fn the_page_names_files_that_are_served_compressed_and_small() {
    let server = TestServer::start(TestSettings::default().tokens("reader-tok:read")).await;
    let page = server.send(server.http.get(server.url("/")).header("accept", BROWSER), None).await;
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'") && !policy.contains("unsafe") && !policy.contains("http"),
        "{policy}"
    );
    assert_eq!((page.header("x-content-type-options"), page.header("cache-control")), ("nosniff", "no-store"));
    let nonce = policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).unwrap();
    assert!(page.text.contains(nonce) && !page.text.contains("{nonce}"), "{}", page.text);
    let again = server.send(server.http.get(server.url("/")).header("accept", BROWSER), None).await;
    assert_ne!(again.header("content-security-policy"), policy, "a nonce is used once");

    // The other client unpacks what it gets, and takes the header off.
    let client = reqwest::Client::builder().no_gzip().build().unwrap();
    let mut compressed = 0;
    let named: Vec<&str> = page.text.split("\"/console/").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(named.len() >= 3, "{}", page.text);
    for name in named {
        let request = client.get(server.url(&format!("/console/{name}")));
        let plain = request.try_clone().unwrap().send().await.unwrap();
        assert_eq!(plain.headers()["cache-control"], "public, max-age=31536000, immutable", "{name}");
        assert_eq!(plain.headers()["x-content-type-options"], "nosniff", "{name}");
        let reply = request.header("accept-encoding", "gzip").send().await.unwrap();
        assert_eq!((reply.status().as_u16(), &reply.headers()["content-encoding"]), (200, &"gzip".parse().unwrap()));
        let bytes = reply.bytes().await.unwrap();
        compressed += bytes.len();
        let mut unpacked = Vec::new();
        GzDecoder::new(&bytes[..]).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, plain.bytes().await.unwrap(), "{name}");
    }
    assert!(compressed < MOST_COMPRESSED, "the first view is {compressed} bytes");
    for missing in ["/console/index.html", "/console/other.js", "/console/..%2Findex.html"] {
        assert_eq!(server.get(missing, None).await.status, 404, "{missing}");
    }
}

#[test]
fn what_is_built_refers_only_to_what_is_built() {
    let folder = package_folder().join("../flight/console/dist");
    let names: Vec<String> =
        std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    let mut referred = vec!["index.html".to_owned()];
    for name in names.iter().filter(|name| !name.ends_with(".svg")) {
        let text = std::fs::read_to_string(folder.join(name)).unwrap();
        referred.extend(names.iter().filter(|other| text.contains(other.as_str())).cloned());
        // A dynamic import names its file as `"./NAME-HASH.js"`.
        for import in text.split("import(\"./").skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(names.iter().any(|known| known == import), "{name} imports {import}");
        }
    }
    let unused: Vec<&String> = names.iter().filter(|name| !referred.contains(name)).collect();
    assert!(unused.is_empty(), "nothing refers to {unused:?}: `make console` builds the folder anew");
}

/// A browser that is challenged for a name and a password asks the person for them, and the page waits.
#[tokio::test]
async fn a_script_is_asked_for_a_token_only() {
    let server = TestServer::start(TestSettings::default().tokens("writer-tok:write")).await;
    for (mode, challenges) in [(Some("cors"), 1), (Some("same-origin"), 1), (Some("navigate"), 2), (None, 2)] {
        let mut request = server.http.get(server.url("/v1/catalog/schema"));
        if let Some(mode) = mode {
            request = request.header("sec-fetch-mode", mode);
        }
        let reply = request.send().await.unwrap();
        assert_eq!(reply.status(), 401);
        let told: Vec<_> = reply.headers().get_all("www-authenticate").iter().collect();
        assert_eq!(told.len(), challenges, "{mode:?}: {told:?}");
        assert!(told[0].to_str().unwrap().starts_with("Bearer"));
    }
}

/// Runs a script in a browser against a server with the tables that the script knows.
async fn walk(server: &TestServer, script: &str, more: &[&str]) {
    seed(server).await;
    let pictures = TempDir::new().unwrap();
    let mut node = NodeJs::client(script);
    node.arg(server.url("/")).arg(pictures.path()).args(more);
    let [printed, _] = run_client(node).await;
    assert!(printed.ends_with("ok\n"), "{printed}");
}

#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn every_view_works_in_a_browser() {
    let server = TestServer::start(settings()).await;
    walk(&server, "console.mjs", &[""]).await;
}

#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn a_browser_logs_in_with_a_token() {
    let server = TestServer::start(settings().tokens("writer-tok:write")).await;
    walk(&server, "console.mjs", &["writer-tok"]).await;
}

/// The first administrator's token, one for a reader, and its end.
#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn tokens_are_made_and_revoked_in_a_browser() {
    let server = TestServer::start(settings()).await;
    walk(&server, "console_access.mjs", &[]).await;
}

/// The tour of docs/tour.md on the flights, with its pictures: `QUERENT_PICTURES` names a folder that keeps them.
#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn the_tour_works_in_a_browser() {
    let query = "SELECT a.name, round(avg(f.dep_delay), 1) AS delay\nFROM flights f \
                 JOIN airlines a ON a.carrier = f.carrier\nGROUP BY a.name ORDER BY delay DESC LIMIT 5";
    let answer = "**Frontier Airlines Inc.** leaves latest, 20.2 minutes on average. \
                  ExpressJet Airlines Inc. follows with 20.0.";
    let thinking = json!({ "thinking": "Delays are in flights, names in airlines." });
    let script = json!({
        "capabilities": { "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 },
        "runs": [{ "when": "leave late", "turns": [
            { "events": [thinking, run_sql(query)] },
            { "events": [{ "text": answer }] },
        ] }],
    });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    for table in ["airlines", "flights", "weather"] {
        let file = nycflights_dir().join(format!("{table}.csv"));
        server.execute(&format!("CREATE TABLE {table} AS SELECT * FROM read_csv('{}')", file.display())).await;
    }
    let unkept = TempDir::new().unwrap();
    let pictures = std::env::var("QUERENT_PICTURES").unwrap_or_else(|_| unkept.path().to_string_lossy().into_owned());
    let mut node = NodeJs::client("tour.mjs");
    node.args([server.url("/"), pictures]);
    let [printed, _] = run_client(node).await;
    assert!(printed.ends_with("ok\n"), "{printed}");
}

/// From when a word leaves the server to when it is painted. `QUERENT_TOKEN_BAR` is the most milliseconds for 99 of 100
/// words; the bar of 50 is for a released build on a quiet machine.
#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn words_are_on_the_screen_soon_after_they_were_sent() {
    // Each differs, and none has a digit: a sentence with a number is held back until it is whole.
    let word = |at: u8| format!("word{}{} ", char::from(b'a' + at % 26), char::from(b'a' + at / 26));
    let words: Vec<Value> = (0..=249).flat_map(|at| [json!({ "text": word(at) }), json!({ "delay_ms": 10 })]).collect();
    let script = json!({
        "capabilities": { "tool_style": "native", "thinking": false, "small": false, "context_tokens": 8192 },
        "runs": [{ "when": "word by word", "turns": [{ "events": words }] }],
    });
    let server = TestServer::start(TestSettings::default().script(script)).await;
    let most = std::env::var("QUERENT_TOKEN_BAR").unwrap_or_else(|_| "1000".to_owned());
    let mut node = NodeJs::client("console_tokens.mjs");
    node.args([server.url("/"), most]);
    let [printed, _] = run_client(node).await;
    println!("{printed}");
    assert!(printed.ends_with("ok\n"), "{printed}");
}

/// The first paint and its scripts, and a million rows. `QUERENT_CONSOLE_TIMES` is how many times as long as the bars things
/// may take: they are for a released build on a quiet machine.
#[tokio::test]
#[cfg_attr(not(has_browser), ignore = "needs Chromium, and `playwright-core` beside the client libraries for Node")]
async fn the_console_is_there_soon_and_scrolls_a_million_rows() {
    let server = TestServer::start(TestSettings::default()).await;
    let times = std::env::var("QUERENT_CONSOLE_TIMES").unwrap_or_else(|_| "100".to_owned());
    let mut node = NodeJs::client("console_speed.mjs");
    node.args([server.url("/"), times]);
    let [printed, _] = run_client(node).await;
    println!("{printed}");
    assert!(printed.ends_with("ok\n"), "{printed}");
}

/// With tools that write, so that the person is asked.
fn settings() -> TestSettings {
    TestSettings::default().script(script()).change(|settings| settings.agent.write_tools = true)
}

async fn seed(server: &TestServer) {
    server
        .execute(
            "CREATE TABLE airlines AS SELECT * FROM (VALUES ('UA', 'United'), ('B6', 'JetBlue')) AS t(carrier, name)",
        )
        .await;
    server
        .execute(
            "CREATE TABLE flights AS SELECT CASE WHEN value % 3 = 0 THEN 'B6' ELSE 'UA' END AS carrier, value % 50 AS dep_delay \
             FROM generate_series(1, 3000) AS s(value)",
        )
        .await;
}

/// The Markdown that models write.
const MARKDOWN: &str = "It is *only* dep_delay and arr_delay.\n\n1. First\n2. Second\n   - inside\n   - inside too\n\n---\n\n\
                        > A note.\n\n| Carrier | Flights |\n|---|---:|\n| UA | 7 |\n\n\
                        - So:\n\n  ```sql\n  SELECT carrier\n    FROM flights\n  ```\n\n| Sign |\n|---|\n| a \\| b |\n";

/// A model that looks at the catalog, counts, and names a number that no row proves; and one that writes.
fn script() -> Value {
    let count = "SELECT carrier, count(*) AS flights FROM flights GROUP BY carrier ORDER BY flights DESC";
    json!({ "capabilities": { "tool_style": "native", "thinking": true, "small": false, "context_tokens": 8192 }, "runs": [
        { "when": "most flights", "turns": [
            { "events": [
                { "thinking": "Count the flights by carrier." },
                { "text": "I count." },
                tool_call("search_schema", json!({ "query": "carrier" })),
                run_sql(count),
            ] },
            { "events": [{ "text": "**UA** had 2000 flights, and 31337 were late." }] },
        ] },
        { "when": "few airlines", "turns": [
            { "events": [{ "text": "There may be 20." }, run_sql("SELECT count(*) AS n FROM airlines")] },
            { "events": [{ "text": "2 airlines." }] },
        ] },
        { "when": "markdown", "turns": [{ "events": [{ "text": MARKDOWN }] }] },
        { "when": "in a pie", "turns": [
            { "events": [tool_call("run_kql", json!({ "kql": "flights | summarize n = count() by carrier | render piechart" }))] },
            { "events": [{ "text": "As the pie shows." }] },
        ] },
        { "when": "word ready", "turns": [{ "events": [{ "text": "Ready." }] }] },
        { "when": "keep", "turns": [
            { "events": [tool_call("create_table_as", json!({ "table": "kept", "sql": "SELECT 1 AS one" }))] },
            { "events": [{ "text": "Kept it." }] },
        ] },
        { "when": "wait", "turns": [{ "events": [{ "text": "Wait" }, "hang"] }] },
    ] })
}
