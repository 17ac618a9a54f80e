//! A stream that breaks off: its client comes back by the last event's id or by the same body, and one run answers. A
//! client that stays away ends it.

use std::time::{Duration, Instant};

use futures::StreamExt;
use querent_catalog::{PageRequest, Principal};
use querent_tests::{HttpReply, TestServer, TestSettings, collect_sse, read_until, wait_until};
use serde_json::{Value, json};

use super::{CHAT, answer, asked, started, transcript_of};

#[tokio::test]
async fn a_client_comes_back_by_the_last_events_id() {
    let server = started().await;
    let seen = broken_off(&server, &asked("slowly"), None).await;
    let last = ids(&seen).pop().unwrap();
    // A client that is away while its run goes on: less long than the server waits for it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let rest = again(&server, &asked("slowly"), Some(&last)).await;
    assert_eq!(answer(&rest)["analysis"], "At last.");
    let whole = [ids(&seen), ids(&rest.text)].concat();
    let mut each = whole.clone();
    each.dedup();
    assert_eq!(whole, each, "no event twice");
    assert_eq!(server.model.requests().len(), 2, "one run of two turns");
    let whole_at_once = server.post(CHAT, &asked("tools"), None).await;
    assert_eq!(server.model.requests().len(), 4);
    // An ended run is delivered again by its event's id, to the request that it belongs to.
    let named = ids(&whole_at_once.text);
    let rest = again(&server, &asked("tools"), Some(&named[0])).await;
    assert_eq!(ids(&rest.text), named[1..]);
    assert_eq!(server.model.requests().len(), 4);
    let other = again(&server, &asked("plain"), Some(&named[0])).await;
    assert_eq!(answer(&other)["analysis"], "Hello there.");
    assert_eq!(server.model.requests().len(), 5);
}

#[tokio::test]
async fn a_client_comes_back_with_the_same_body() {
    let server = started().await;
    let seen = broken_off(&server, &asked("slowly"), None).await;
    // A client that is away while its run goes on: less long than the server waits for it.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let whole = server.post(CHAT, &asked("slowly"), None).await;
    assert_eq!(ids(&whole.text)[..ids(&seen).len()], ids(&seen));
    assert_eq!(answer(&whole)["analysis"], "At last.");
    assert_eq!(server.model.requests().len(), 2);
    // It was delivered: the same question is a new one.
    server.post(CHAT, &asked("plain"), None).await;
    server.post(CHAT, &asked("plain"), None).await;
    assert_eq!(server.model.requests().len(), 4);
}

#[tokio::test]
async fn a_run_that_ended_while_its_client_was_away_is_delivered() {
    let server = started().await;
    let seen = broken_off(&server, &asked("slowly"), None).await;
    wait_until("the run succeeds without its client", async || statuses(&server).await == ["success"]).await;
    let whole = server.post(CHAT, &asked("slowly"), None).await;
    assert_eq!(ids(&whole.text)[0], ids(&seen)[0]);
    assert_eq!(server.model.requests().len(), 2);
}

#[tokio::test]
async fn two_equal_requests_at_once_are_one_run() {
    let server = started().await;
    let body = asked("slowly");
    let (one, two) = tokio::join!(again(&server, &body, None), again(&server, &body, None));
    assert_eq!(one.text.replace(": ping\n", ""), two.text.replace(": ping\n", ""));
    assert_eq!(server.model.requests().len(), 2);
}

#[tokio::test]
async fn another_callers_run_is_not_joined() {
    let settings = TestSettings::default().script(super::script()).tokens("ann-tok:read:ann,bob-tok:read:bob");
    let server = TestServer::start(settings).await;
    let seen = broken_off(&server, &asked("slowly"), Some("ann-tok")).await;
    let last = ids(&seen).pop().unwrap();
    let request = server.http.post(server.url(CHAT)).json(&asked("slowly")).header("last-event-id", &last);
    let reply = server.send(request, Some("bob-tok")).await;
    assert_ne!(ids(&reply.text)[0], ids(&seen)[0]);
}

#[tokio::test]
async fn a_run_whose_client_stays_away_is_cancelled() {
    let server = started().await;
    let mut calls = server.model.calls();
    broken_off(&server, &asked("hang"), None).await;
    let gone = Instant::now();
    tokio::time::timeout(Duration::from_secs(10), calls.wait_for(|calls| calls.dropped == 1)).await.unwrap().unwrap();
    assert!(gone.elapsed() > Duration::from_secs(4), "{:?}", gone.elapsed());
    wait_until("the run is stored as cancelled", async || statuses(&server).await == ["cancelled"]).await;
    // Too late: a new run.
    broken_off(&server, &asked("hang"), None).await;
    assert_eq!(server.model.requests().len(), 2);
}

/// The protocol cancels only by closing the connection. After a cancellation by this server's own route, the client
/// gets an error.
#[tokio::test]
async fn a_run_that_is_cancelled_elsewhere_ends_with_an_error() {
    let server = started().await;
    let mut response = server.http.post(server.url(CHAT)).json(&asked("wait")).send().await.unwrap();
    let begun = read_until(&mut response, "event: tool_calling_result").await;
    server.model.calls().wait_for(|calls| calls.started == 2).await.unwrap();
    let run = server.get("/v1/agent/runs", None).await.json()["runs"][0]["run_id"].clone();
    let cancel = format!("/v1/agent/runs/{}/cancel", run.as_str().unwrap());
    assert_eq!(server.post(&cancel, &json!({}), None).await.json()["status"], "cancelled");
    let whole = [begun, response.text().await.unwrap()].concat();
    insta::assert_snapshot!("cancelled", transcript_of(&collect_sse(&whole)));
}

/// Reads up to the first event, or for a moment, and goes away.
async fn broken_off(server: &TestServer, body: &Value, token: Option<&str>) -> String {
    let mut request = server.http.post(server.url(CHAT)).json(body);
    if let Some(token) = token {
        request = request.bearer_auth(token);
    }
    let mut pieces = request.send().await.unwrap().bytes_stream();
    let mut text = String::new();
    let read = async {
        while let Some(piece) = pieces.next().await {
            text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
            if text.contains("tool_calling_result") && text.ends_with("\n\n") {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(1), read).await;
    text
}

async fn again(server: &TestServer, body: &Value, last: Option<&str>) -> HttpReply {
    let request = server.http.post(server.url(CHAT)).json(body);
    let request = match last {
        Some(last) => request.header("Last-Event-ID", last),
        None => request,
    };
    server.send(request, None).await
}

fn ids(text: &str) -> Vec<String> {
    text.lines().filter_map(|line| line.strip_prefix("id: ")).map(str::to_owned).collect()
}

/// Returns the statuses of all runs.
async fn statuses(server: &TestServer) -> Vec<&'static str> {
    let runs = server.engine().catalog().runs().list(&Principal::local_admin(), PageRequest::first(10)).await.unwrap();
    runs.items.iter().map(|run| run.status.as_str()).collect()
}
