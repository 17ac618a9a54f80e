//! Requests of the server to the client of a session, which the revisions before 2026-07-28 have: they go into the events of
//! the call that asks, and what the client answers comes as a message of its own.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The requests that the client of a session has not answered, by their ids.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenRequests {
    waiting: Arc<Mutex<HashMap<String, oneshot::Sender<Value>>>>,
}

impl OpenRequests {
    /// Takes in what the client answers. Returns whether somebody waits for it.
    pub(crate) fn answer(&self, id: &str, answer: Value) -> bool {
        let waiting = self.waiting.lock().remove(id);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }
}

/// The way to the client within one of its calls.
#[derive(Debug, Clone)]
pub(crate) struct ClientChannel {
    /// Those of the session.
    pub(crate) open: OpenRequests,
    /// Takes server-sent events of the call.
    pub(crate) events: UnboundedSender<Bytes>,
}

impl ClientChannel {
    /// Asks the client. Returns its answer, a message with a result or an error; `None` where it is gone.
    pub(super) async fn ask(&self, method: &str, params: Value) -> Option<Value> {
        let id = Uuid::new_v4().to_string();
        let (answer, answered) = oneshot::channel();
        self.open.waiting.lock().insert(id.clone(), answer);
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        // However this ends, nobody waits for it then.
        let _asked = AskedRequest { open: &self.open, id };
        self.events.send(Bytes::from(format!("data: {request}\n\n"))).ok()?;
        answered.await.ok()
    }
}

/// A request that is forgotten when it is dropped.
struct AskedRequest<'a> {
    open: &'a OpenRequests,
    id: String,
}

impl Drop for AskedRequest<'_> {
    fn drop(&mut self) {
        self.open.waiting.lock().remove(&self.id);
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    #[tokio::test]
    async fn an_answer_is_that_of_its_request() {
        let (events, mut sent) = unbounded_channel();
        let client = ClientChannel { open: OpenRequests::default(), events };
        let answers = async {
            let event = sent.recv().await.unwrap();
            let event = std::str::from_utf8(&event).unwrap().to_owned();
            let request: Value = serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
            assert_eq!(request["method"], "ping");
            assert!(!client.open.answer("another", json!({})));
            assert!(client.open.answer(request["id"].as_str().unwrap(), json!({ "result": 1 })));
        };
        let (answer, ()) = tokio::join!(client.ask("ping", json!({})), answers);
        assert_eq!(answer, Some(json!({ "result": 1 })));
        assert!(client.open.waiting.lock().is_empty());
        drop(sent);
        assert_eq!(client.ask("ping", json!({})).await, None);
        assert!(client.open.waiting.lock().is_empty());
    }
}
