//! The messages of a KsADK session, made of its session events: what its web interface shows of an earlier session, each
//! answer with the thinking and the calls that led to it.

use serde_json::{Value, json};

/// What is shown of a message beside its text.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShownBeside {
    /// The thinking, as `Reasoning`.
    pub reasoning: bool,
    /// The calls with their results, as `ToolEvents`.
    pub tools: bool,
}

/// Returns the messages that a session's events make up, which are in order.
///
/// Thinking and calls belong to the answer that follows them in their invocation. Those that none follows, since the run
/// failed or waits, belong to the one before, or else to a message without text.
pub fn session_messages(events: &[Value], beside: ShownBeside) -> Vec<Value> {
    let mut session = SessionMessages { beside, ..SessionMessages::default() };
    for event in events {
        session.read(event);
    }
    session.close();
    for call in session.calls {
        if let Some(message) = session.messages.get_mut(call.message) {
            append(message, "ToolEvents", call.event);
        }
    }
    session.messages
}

#[derive(Default)]
struct SessionMessages {
    beside: ShownBeside,
    messages: Vec<Value>,
    calls: Vec<SessionCall>,
    /// The calls, and the thinking, that no message has yet.
    open_calls: Vec<Value>,
    open_reasoning: Vec<Value>,
    /// The event that came last, of those that are beside messages.
    last_beside: Option<Value>,
}

/// A call, and the message that it belongs to.
struct SessionCall {
    event: Value,
    message: usize,
}

impl SessionMessages {
    fn read(&mut self, event: &Value) {
        match event["EventType"].as_str().unwrap_or_default() {
            "user_message" => {
                self.close();
                self.messages.push(message(event, "user", text_of(event)));
            }
            "assistant_message" => {
                self.messages.push(message(event, "assistant", text_of(event)));
                self.settle(self.messages.len() - 1);
            }
            "reasoning" if self.beside.reasoning => {
                self.open_reasoning.push(json!({ "text": text_of(event), "SeqId": event["SeqId"] }));
                self.last_beside = Some(event.clone());
            }
            "tool_call" if self.beside.tools => {
                self.decide(&event["Metadata"]);
                self.open_calls.push(called(event));
                self.last_beside = Some(event.clone());
            }
            "approval_request" if self.beside.tools => {
                self.open_calls.push(waiting(event));
                self.last_beside = Some(event.clone());
            }
            "tool_result" if self.beside.tools => self.end_call(event),
            "run_status" if event["Content"]["status"] != "in_progress" => self.close(),
            _ => {}
        }
    }

    /// Gives what is open to a message.
    fn settle(&mut self, at: usize) {
        self.last_beside = None;
        self.calls.extend(self.open_calls.drain(..).map(|event| SessionCall { event, message: at }));
        for thought in self.open_reasoning.drain(..) {
            append(&mut self.messages[at], "Reasoning", thought);
        }
    }

    /// Gives what is open, and followed by no answer, to the answer before it, or to a message of its own.
    fn close(&mut self) {
        let Some(last) = self.last_beside.take() else { return };
        let is_answer =
            |message: &Value| message["Role"] == "assistant" && message["InvocationId"] == last["InvocationId"];
        if !self.messages.last().is_some_and(is_answer) {
            self.messages.push(message(&last, "assistant", &json!("")));
        }
        self.settle(self.messages.len() - 1);
    }

    /// Every call so far, the latest first.
    fn calls_back(&mut self) -> impl Iterator<Item = &mut Value> {
        let open = self.open_calls.iter_mut().rev();
        open.chain(self.calls.iter_mut().rev().map(|call| &mut call.event))
    }

    fn end_call(&mut self, event: &Value) {
        let metadata = &event["Metadata"];
        let has_failed = !metadata["tool_output"]["error"].is_null();
        if let Some(call) = self.calls_back().find(|call| call["ToolCallId"] == metadata["call_id"]) {
            call["Status"] = json!(if has_failed { "failed" } else { "completed" });
            call["Result"] = metadata["tool_output"].clone();
            call["ResultSeqId"] = event["SeqId"].clone();
        }
    }

    /// Notes what became of the request for approval that a call answers, if it does.
    fn decide(&mut self, metadata: &Value) {
        let request = &metadata["approval_request_id"];
        if request.is_null() {
            return;
        }
        if let Some(waiting) = self.calls_back().find(|call| call["ApprovalRequestId"] == *request) {
            waiting["Status"] = json!(if metadata["approved"] == false { "denied" } else { "approved" });
        }
    }
}

fn message(event: &Value, role: &str, text: &Value) -> Value {
    json!({
        "MessageId": event["EventId"],
        "InvocationId": event["InvocationId"],
        "Role": role,
        "Content": text,
        "Timestamp": event["Timestamp"],
        "StartSeqId": event["SeqId"],
        "SeqId": event["SeqId"],
    })
}

fn text_of(event: &Value) -> &Value {
    &event["Content"]["parts"][0]["text"]
}

fn called(event: &Value) -> Value {
    let metadata = &event["Metadata"];
    json!({
        "SeqId": event["SeqId"],
        "Type": "tool_call",
        "Name": metadata["tool_name"],
        "Args": metadata["tool_args"],
        "Status": "running",
        "ToolCallId": metadata["call_id"],
    })
}

fn waiting(event: &Value) -> Value {
    let content = &event["Content"];
    json!({
        "SeqId": event["SeqId"],
        "Type": "approval",
        "Name": content["name"],
        "Args": content["arguments"],
        "Status": "paused",
        "ApprovalRequestId": content["approval_request_id"],
    })
}

/// Adds a value to a list of a message, which has the list from its first value on.
fn append(message: &mut Value, list: &str, value: Value) {
    match &mut message[list] {
        Value::Array(values) => values.push(value),
        absent => *absent = json!([value]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, invocation: &str, kind: &str, content: Value, metadata: Value) -> Value {
        json!({
            "EventId": format!("evt_{seq}"), "SeqId": seq, "InvocationId": invocation, "EventType": kind,
            "Content": content, "Metadata": metadata, "Timestamp": 0,
        })
    }

    fn said(seq: u64, invocation: &str, kind: &str, text: &str) -> Value {
        event(seq, invocation, kind, json!({ "parts": [{ "text": text }] }), json!({}))
    }

    fn status(seq: u64, invocation: &str, status: &str) -> Value {
        event(seq, invocation, "run_status", json!({ "status": status }), json!({}))
    }

    #[test]
    fn an_answer_has_what_led_to_it() {
        let call = json!({ "tool_name": "run_sql", "call_id": "c1", "tool_args": { "sql": "SELECT 1" } });
        let result = json!({ "tool_name": "run_sql", "call_id": "c1", "tool_output": { "rows": [1] } });
        let request = json!({ "approval_request_id": "r1", "name": "insert_rows", "arguments": "{}" });
        let denied = json!({
            "tool_name": "insert_rows", "call_id": "c2", "tool_args": {}, "approval_request_id": "r1", "approved": false,
        });
        let refused = json!({ "tool_name": "insert_rows", "call_id": "c2", "tool_output": { "error": {} } });
        let events = [
            said(1, "i1", "user_message", "how many?"),
            status(2, "i1", "in_progress"),
            said(3, "i1", "reasoning", "hm"),
            event(4, "i1", "tool_call", json!({}), call),
            event(5, "i1", "tool_result", json!({}), result),
            said(6, "i1", "assistant_message", "One."),
            status(7, "i1", "completed"),
            said(8, "i2", "user_message", "insert it"),
            event(9, "i2", "approval_request", request, json!({})),
            status(10, "i2", "interrupted"),
            event(11, "i3", "tool_call", json!({}), denied),
            event(12, "i3", "tool_result", json!({}), refused),
            said(13, "i3", "assistant_message", "Not done."),
            status(14, "i3", "completed"),
        ];
        let shown = session_messages(&events, ShownBeside { reasoning: true, tools: true });
        let texts: Vec<&Value> = shown.iter().map(|message| &message["Content"]).collect();
        assert_eq!(texts, ["how many?", "One.", "insert it", "", "Not done."]);
        assert_eq!(shown[1]["Reasoning"], json!([{ "text": "hm", "SeqId": 3 }]));
        let query = &shown[1]["ToolEvents"][0];
        assert_eq!((&query["Status"], &query["Result"]), (&json!("completed"), &json!({ "rows": [1] })));
        let asked = &shown[3]["ToolEvents"][0];
        assert_eq!((&asked["Status"], &asked["ApprovalRequestId"]), (&json!("denied"), &json!("r1")), "{shown:#?}");
        assert_eq!(shown[4]["ToolEvents"][0]["Status"], "failed");
        assert!(shown[0].get("ToolEvents").is_none());

        let plain = session_messages(&events, ShownBeside::default());
        let texts: Vec<&Value> = plain.iter().map(|message| &message["Content"]).collect();
        assert_eq!(texts, ["how many?", "One.", "insert it", "Not done."]);
        assert!(!json!(plain).to_string().contains("ToolEvents"));
    }
}
