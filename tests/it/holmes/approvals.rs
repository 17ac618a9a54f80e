//! A call that writes waits for a person: it is executed once, and only where the token, the caller and the server's own
//! record agree.

use querent_tests::{HttpReply, Python, TestServer};
use serde_json::{Value, json};

use super::{CHAT, answer, asked, frames, named, started_to_write, transcript};

const TOKENS: &str = "ann-tok:write:ann,bob-tok:write:bob";

#[tokio::test]
async fn an_approved_call_is_executed_once() {
    let server = started_to_write("").await;
    let paused = server.post(CHAT, &may_write("keep"), None).await;
    insta::assert_snapshot!("approval", transcript(&paused));
    let resume = resumed(&answer(&paused), true);
    let reply = server.post(CHAT, &resume, None).await;
    insta::assert_snapshot!("approval_approved", transcript(&reply));
    server.execute("SELECT * FROM kept").await;

    // Again: the stored outcome, and nothing is executed.
    server.execute("DROP TABLE kept").await;
    let again = server.post(CHAT, &resume, None).await;
    assert_eq!(again.text, reply.text);
    let mut repeated = resume.clone();
    repeated["ask"] = json!("keep");
    assert_eq!(server.post(CHAT, &repeated, None).await.text, reply.text);
    // Another question with the old decision: not executed either.
    let mut other = resume.clone();
    other["ask"] = json!("plain");
    let reply = server.post(CHAT, &other, None).await;
    assert_eq!(answer(&reply)["analysis"], "Hello there.");
    // The other decision on what was decided, none, and another question: it was executed all the same.
    let mut denied = resume.clone();
    denied["tool_decisions"][0]["approved"] = json!(false);
    let mut undecided = resume.clone();
    undecided["tool_decisions"][0]["tool_call_id"] = json!("call_of_nobody");
    let mut left = may_write("plain");
    left["conversation_history"] = resume["conversation_history"].clone();
    for body in [denied, undecided, left] {
        let reply = server.post(CHAT, &body, None).await;
        assert!(error(&reply).contains("approved and executed before"), "{}", reply.text);
    }
    assert!(!is_kept(&server).await);
}

/// The model is told what became of the call, which is not executed again.
#[tokio::test]
async fn a_decision_whose_run_failed_begins_another() {
    let server = started_to_write("").await;
    let paused = answer(&server.post(CHAT, &may_write("break down"), None).await);
    let resume = resumed(&paused, true);
    let failed = server.post(CHAT, &resume, None).await;
    assert!(failed.text.contains("out of order"), "{}", failed.text);
    assert!(is_kept(&server).await);
    server.execute("DROP TABLE kept").await;
    let asked = server.model.requests().len();
    server.post(CHAT, &resume, None).await;
    let requests = server.model.requests();
    assert_eq!(requests.len(), asked + 1, "a run of its own");
    let told = &requests.last().unwrap().messages;
    assert!(told.iter().any(|message| message.content.contains("approved and executed before")), "{told:?}");
    assert!(!is_kept(&server).await);
}

#[tokio::test]
async fn a_denied_call_and_one_that_nobody_decided() {
    let server = started_to_write("").await;
    let paused = answer(&server.post(CHAT, &may_write("keep"), None).await);
    let mut denied = resumed(&paused, false);
    denied["tool_decisions"][0]["feedback"] = json!("too large");
    let reply = server.post(CHAT, &denied, None).await;
    insta::assert_snapshot!("approval_denied", transcript(&reply));
    let told = server.model.requests().last().unwrap().messages.clone();
    assert!(told.iter().any(|message| message.content.contains("too large")), "{told:?}");

    let paused = answer(&server.post(CHAT, &may_write("keep"), None).await);
    let mut other_id = resumed(&paused, true);
    other_id["tool_decisions"][0]["tool_call_id"] = json!("call_of_nobody");
    let reply = server.post(CHAT, &other_id, None).await;
    assert_eq!(error(&reply), "Tool execution was denied by the user.");
    assert!(!is_kept(&server).await);
}

#[tokio::test]
async fn a_new_question_leaves_the_call() {
    let server = started_to_write("").await;
    let paused = answer(&server.post(CHAT, &may_write("keep"), None).await);
    let mut body = may_write("plain");
    body["conversation_history"] = paused["conversation_history"].clone();
    let reply = server.post(CHAT, &body, None).await;
    insta::assert_snapshot!("approval_abandoned", transcript(&reply));
    assert!(error(&reply).contains("cancelled because the user submitted a new request"));
    // Too late.
    let reply = server.post(CHAT, &resumed(&paused, true), None).await;
    assert!(error(&reply).contains("denied"), "{}", reply.text);
    assert!(!is_kept(&server).await);
}

#[tokio::test]
async fn what_was_not_asked_is_not_executed() {
    let server = started_to_write(TOKENS).await;
    let paused = answer(&server.post(CHAT, &may_write("keep"), Some("ann-tok")).await);
    let good = resumed(&paused, true);
    let call = "/conversation_history/2/tool_calls/1";
    let changes: [(&str, Option<Value>); 5] = [
        ("approval_token", None),
        ("approval_token", Some(json!("eyJhbGciOiJub25lIn0.e30."))),
        ("approval_token", Some(json!(forged(good.pointer(&format!("{call}/approval_token")).unwrap())))),
        (
            "function",
            Some(json!({ "name": "create_table_as", "arguments": "{\"table\":\"kept\",\"sql\":\"SELECT 2\"}" })),
        ),
        ("function", Some(json!({ "name": "insert_rows", "arguments": "{\"table\":\"kept\",\"rows\":[]}" }))),
    ];
    for (field, value) in changes {
        let mut body = good.clone();
        let call = body.pointer_mut(call).unwrap().as_object_mut().unwrap();
        match &value {
            Some(value) => call.insert(field.to_owned(), value.clone()),
            None => call.remove(field),
        };
        let reply = server.post(CHAT, &body, Some("ann-tok")).await;
        assert!(error(&reply).contains("denied"), "{field} {value:?}: {}", reply.text);
        assert!(!is_kept(&server).await, "{field} {value:?}");
    }
    // Another caller with the very same bytes.
    let reply = server.post(CHAT, &good, Some("bob-tok")).await;
    assert!(error(&reply).contains("denied"), "{}", reply.text);
    assert!(!is_kept(&server).await);
    // The call still waits for who was asked.
    let reply = server.post(CHAT, &good, Some("ann-tok")).await;
    assert_eq!(named(&reply, "tool_calling_result")[0]["result"]["status"], "success", "{}", reply.text);
    assert!(is_kept(&server).await);
}

#[tokio::test]
async fn a_token_that_is_too_old_does_not_count() {
    let server = started_to_write("").await;
    let paused = answer(&server.post(CHAT, &may_write("keep"), None).await);
    let good = resumed(&paused, true);
    let place = "/conversation_history/2/tool_calls/1/approval_token";
    let token = good.pointer(place).unwrap().as_str().unwrap().to_owned();
    let key = server.data().join("holmes-approvals.key");
    // Signed with the server's own key; unchanged it is the very token, so the signature is right.
    for (seconds, status) in [(-31 * 86_400, "error"), (0, "success")] {
        let signed = Python::run(SIGN, &[key.to_str().unwrap(), &token, &seconds.to_string()]);
        let mut body = good.clone();
        *body.pointer_mut(place).unwrap() = json!(signed.trim());
        let reply = server.post(CHAT, &body, None).await;
        let result = named(&reply, "tool_calling_result")[0]["result"].clone();
        assert_eq!(result["status"], status, "{result}");
        assert_eq!(is_kept(&server).await, status == "success");
    }
}

/// Moves the end of a token's validity and signs it again.
const SIGN: &str = r#"
import base64, hashlib, hmac, json, sys
path, token, seconds = sys.argv[1:]
head, claims, _ = token.split(".")
claims = json.loads(base64.urlsafe_b64decode(claims + "=" * (-len(claims) % 4)))
claims["exp"] += int(seconds)
encode = lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()
signed = head + "." + encode(json.dumps(claims).encode())
print(signed + "." + encode(hmac.new(open(path, "rb").read(), signed.encode(), hashlib.sha256).digest()))
"#;

#[tokio::test]
async fn a_token_outlives_the_server() {
    let server = started_to_write("").await;
    let paused = answer(&server.post(CHAT, &may_write("keep"), None).await);
    let data = server.stop().await;
    let settings = querent_tests::TestSettings::default().script(super::script());
    let settings = settings.change(|settings| settings.agent.write_tools = true);
    let server = TestServer::start_in(data, settings).await;
    server.post(CHAT, &resumed(&paused, true), None).await;
    assert!(is_kept(&server).await);
}

#[tokio::test]
async fn without_approvals_the_prompt_says_so() {
    let server = started_to_write("").await;
    let reply = server.post(CHAT, &asked("keep"), None).await;
    assert!(frames(&reply).iter().all(|frame| frame.event != "approval_required"));
    insta::assert_snapshot!("approval_off", transcript(&reply));
    assert!(!is_kept(&server).await);
}

#[tokio::test]
async fn a_whole_answer_tells_what_waits() {
    let server = started_to_write("").await;
    let mut body = may_write("keep");
    body["stream"] = json!(false);
    let paused = server.post(CHAT, &body, None).await.json();
    assert_eq!(paused["analysis"], "");
    assert_eq!(paused["pending_approvals"][0]["tool_name"], "create_table_as");
    let mut resume = resumed(&paused, true);
    resume["stream"] = json!(false);
    let done = server.post(CHAT, &resume, None).await.json();
    assert_eq!((&done["analysis"], &done["pending_approvals"]), (&json!("It is done with."), &Value::Null));
    assert!(is_kept(&server).await);
}

#[tokio::test]
async fn a_decision_where_nothing_waits_is_refused() {
    let server = started_to_write("").await;
    let body = json!({
        "stream": true,
        "conversation_history": [{ "role": "system", "content": "" }, { "role": "user", "content": "plain" }],
        "tool_decisions": [{ "tool_call_id": "c", "approved": true }],
    });
    let reply = server.post(CHAT, &body, None).await;
    assert_eq!(reply.status, 400);
    assert!(reply.json()["detail"].as_str().unwrap().contains("waits for approval"), "{}", reply.text);
}

fn may_write(question: &str) -> Value {
    json!({ "ask": question, "stream": true, "enable_tool_approval": true })
}

/// Returns the request as the page has it, without `ask`.
fn resumed(paused: &Value, approved: bool) -> Value {
    let id = &paused["pending_approvals"][0]["tool_call_id"];
    json!({
        "stream": true,
        "enable_tool_approval": true,
        "conversation_history": paused["conversation_history"],
        "tool_decisions": [{ "tool_call_id": id, "approved": approved }],
    })
}

/// Returns the token with the end of its validity moved.
fn forged(token: &Value) -> String {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let parts: Vec<&str> = token.as_str().unwrap().split('.').collect();
    let mut claims: Value = serde_json::from_slice(&engine.decode(parts[1]).unwrap()).unwrap();
    claims["exp"] = json!(claims["exp"].as_i64().unwrap() + 1);
    [parts[0], &engine.encode(claims.to_string()), parts[2]].join(".")
}

/// Returns the error of the first result.
fn error(reply: &HttpReply) -> String {
    let result = named(reply, "tool_calling_result")[0]["result"].clone();
    assert_eq!(result["status"], "error", "{result}");
    result["error"].as_str().unwrap().to_owned()
}

async fn is_kept(server: &TestServer) -> bool {
    let who = querent_catalog::Principal::local_admin();
    let session = server.engine().session(who, querent_engine::Limits::default());
    session.sql("SELECT * FROM kept").await.is_ok()
}
