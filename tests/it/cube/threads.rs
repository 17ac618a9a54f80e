//! Threads: what comes before and after the cutoff mark, messages that are sent twice, and how runs end.

use querent_tests::{read_until, wait_for};
use serde_json::{Value, json};

use super::{ABORT, STREAM, asking, lines_of, say, started, transcript, transcript_of};

const FIRST: &str = "1717500000000-message";
const SECOND: &str = "1717500000001-message";

#[tokio::test]
async fn a_thread_is_continued() {
    let server = started().await;
    let first = say(&server, json!({ "input": "plain", "chatId": "c", "messageId": FIRST })).await;
    let second = say(&server, json!({ "input": "tools", "chatId": "c", "messageId": SECOND })).await;
    insta::assert_snapshot!("continued", transcript(&second));
    let (first, second) = (first.lines(), second.lines());
    // A message keeps its id and its place.
    let said = |lines: &[Value]| lines.iter().rfind(|line| line["content"] == "Hello there.").unwrap().clone();
    assert_eq!(said(&first)["id"], said(&second)["id"]);
    assert_eq!(said(&first)["sort"], said(&second)["sort"]);
    let last = first.last().unwrap()["sort"].as_f64().unwrap();
    let mark = second.iter().find(|line| line["id"] == "__cutoff__").unwrap();
    assert_eq!(mark["sort"].as_f64().unwrap(), last + 1.0);
    let told = server.model.requests().pop().unwrap();
    assert!(told.messages.iter().any(|message| message.content == "Hello there."), "{told:?}");

    let read = say(&server, json!({ "chatId": "c" })).await;
    insta::assert_snapshot!("state", transcript(&read));
    assert_eq!(mark_of(&read.text)["state"], json!({ "isStreaming": false, "chatId": "c" }));
}

#[tokio::test]
async fn a_thread_without_an_id_gets_one() {
    let server = started().await;
    let reply = say(&server, json!({ "input": "plain" })).await;
    let mark = mark_of(&reply.text);
    assert_eq!(mark["state"]["isStreaming"], true);
    let chat_id = mark["state"]["chatId"].as_str().unwrap();
    let again = say(&server, json!({ "chatId": chat_id })).await;
    assert!(again.text.contains("Hello there."), "{}", again.text);
    let empty = say(&server, json!({})).await;
    let ids: Vec<Value> = empty.lines().iter().map(|line| line["id"].clone()).collect();
    assert_eq!(ids, ["__cutoff__", "__state__"], "{}", empty.text);
}

#[tokio::test]
async fn a_message_that_is_sent_again_runs_once() {
    let server = started().await;
    let chat = json!({ "input": "slow", "chatId": "c", "messageId": FIRST });
    let mut first = asking(&server, STREAM, chat.clone()).send().await.unwrap();
    let begun = read_until(&mut first, "\"One\"").await;
    // The client goes away and comes back.
    drop(first);
    let joined = say(&server, chat.clone()).await;
    let lines = joined.lines();
    let at = lines.iter().position(|line| line["id"] == "__cutoff__").unwrap();
    assert_eq!(lines[at]["state"]["isStreaming"], true);
    let (before, after) = lines.split_at(at);
    assert_eq!(before.iter().map(|line| line["content"].clone()).collect::<Vec<_>>(), ["slow", "One"]);
    assert_eq!((&before[1]["isDelta"], &before[1]["isInProcess"]), (&json!(false), &json!(true)));
    let pieces: Vec<&Value> =
        after.iter().filter(|line| line["isDelta"] == true).map(|line| &line["content"]).collect();
    assert_eq!(pieces, [" two", " three."], "{}", joined.text);
    assert_eq!(lines_of(&begun).last().unwrap()["id"], before[1]["id"]);
    insta::assert_snapshot!("joined", transcript(&joined));

    let again = say(&server, chat).await;
    assert_eq!(mark_of(&again.text)["state"]["isStreaming"], false);
    assert_eq!(server.model.requests().len(), 1, "one run");
    // In another thread it is another message.
    say(&server, json!({ "input": "plain", "chatId": "d", "messageId": FIRST })).await;
    assert_eq!(server.model.requests().len(), 2);
}

#[tokio::test]
async fn the_same_message_many_times_at_once_runs_once() {
    let server = started().await;
    let chat = json!({ "input": "slow", "chatId": "c", "messageId": FIRST });
    let replies = futures::future::join_all((0..5).map(|_| say(&server, chat.clone()))).await;
    for reply in replies {
        assert!(reply.lines().iter().any(|line| line["graphPath"][0] == "final"), "{}", reply.text);
    }
    assert_eq!(server.model.requests().len(), 1);
}

#[tokio::test]
async fn another_message_waits_for_the_end() {
    let server = started().await;
    let mut first =
        asking(&server, STREAM, json!({ "input": "wait", "chatId": "c", "messageId": FIRST })).send().await.unwrap();
    let begun = read_until(&mut first, "let me").await;
    for busy in
        [json!({ "input": "plain", "chatId": "c" }), json!({ "input": "plain", "chatId": "c", "messageId": SECOND })]
    {
        let reply = say(&server, busy).await;
        assert_eq!((reply.status, reply.json()), (400, json!({ "error": "Streaming for thread is in progress" })));
    }
    // The thread read meanwhile: what was said, the mark, then what comes.
    let mut reader = asking(&server, STREAM, json!({ "chatId": "c" })).send().await.unwrap();
    let read = read_until(&mut reader, "__cutoff__").await;
    assert_eq!(lines_of(&read)[1]["content"], "Well, let me", "{read}");
    assert_eq!(mark_of(&read)["state"]["isStreaming"], true);

    let aborted = server.send(asking(&server, ABORT, json!({ "chatId": "c" })), None).await;
    assert_eq!((aborted.status, aborted.text.as_str()), (204, ""));
    let rest = first.text().await.unwrap();
    let ended = lines_of(&rest);
    assert_eq!(ended.iter().map(|line| line["id"].clone()).next_back(), Some(json!("__state__")), "{rest}");
    let message = lines_of(&begun).pop().unwrap();
    let whole = ended.iter().find(|line| line["id"] == message["id"]).unwrap();
    assert_eq!((&whole["content"], &whole["isInProcess"]), (&json!("Well, let me"), &json!(false)), "{rest}");
    assert!(!rest.contains("\"error\""), "{rest}");
    insta::assert_snapshot!("aborted", transcript_of(&[begun, rest].concat()));
    insta::assert_snapshot!("aborted_for_a_reader", transcript_of(&[read, reader.text().await.unwrap()].concat()));

    let next = say(&server, json!({ "input": "plain", "chatId": "c", "messageId": SECOND })).await;
    insta::assert_snapshot!("after_abort", transcript(&next));
    // One that does nothing, and one that is not there.
    assert_eq!(server.send(asking(&server, ABORT, json!({ "chatId": "c" })), None).await.status, 204);
    assert_eq!(server.send(asking(&server, ABORT, json!({ "chatId": "nowhere" })), None).await.status, 404);
}

#[tokio::test]
async fn a_run_goes_on_without_its_client() {
    let server = started().await;
    let chat = json!({ "input": "slow", "chatId": "c", "messageId": FIRST });
    let mut first = asking(&server, STREAM, chat).send().await.unwrap();
    read_until(&mut first, "\"One\"").await;
    drop(first);
    let ended = async || {
        let read = say(&server, json!({ "chatId": "c" })).await;
        (mark_of(&read.text)["state"]["isStreaming"] == false).then_some(read)
    };
    let read = wait_for("the run ends", ended).await;
    assert!(read.text.contains("One two three."), "{}", read.text);
}

#[tokio::test]
async fn threads_are_their_users() {
    let server = started().await;
    say(&server, json!({ "input": "plain", "chatId": "c", "messageId": FIRST })).await;
    let ben = json!({ "externalId": "ben" });
    for theirs in [
        json!({ "chatId": "c", "sessionSettings": ben }),
        json!({ "chatId": "c", "input": "plain", "sessionSettings": ben }),
        json!({ "chatId": "c", "input": "plain", "messageId": FIRST, "sessionSettings": ben }),
        json!({ "chatId": "nowhere" }),
    ] {
        let reply = say(&server, theirs.clone()).await;
        assert_eq!(reply.status, 404, "{theirs}: {}", reply.text);
        assert!(reply.json()["error"].is_string());
    }
    let abort = asking(&server, ABORT, json!({ "chatId": "c", "sessionSettings": ben }));
    assert_eq!(server.send(abort, None).await.status, 403);
    // Another agent has threads of its own.
    let elsewhere = asking(&server, &STREAM.replace("/1/", "/2/"), json!({ "chatId": "c" }));
    assert_eq!(server.send(elsewhere, None).await.status, 404);
    assert_eq!(server.model.requests().len(), 1);
}

fn mark_of(text: &str) -> Value {
    lines_of(text).into_iter().find(|line| line["id"] == "__cutoff__").expect("a mark")
}
