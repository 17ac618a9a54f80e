//! Runs in the background that begin again: what is stored of their request, so that the next process can ask it once more
//! where its server was killed. A run that continues calls does not begin again, since a call is executed once.

use querent_catalog::RunRecord;
use serde_json::{Value, json};

use crate::event::{EventKind, RunStarted};
use crate::models::ChatMessage;
use crate::protocols::responses::parse_value;
use crate::request::{OnDisconnect, Protocol, RunRequest};
use crate::stored_log::decode_log;

/// The member of a stored request with the messages that it asks again.
const RESTART: &str = "restart";

/// Has a run in the background be one that may begin again. One that has begun again is none: a run that ends its server
/// would end every server after it.
pub(crate) fn note_restart(request: &mut RunRequest) {
    let is_background = request.protocol == Protocol::Responses && request.echo["background"] == json!(true);
    if is_background && request.resume.is_empty() && request.restarts.is_none() {
        let history = request.stored_messages(&request.history);
        request.echo[RESTART] = json!({ "history": history, "input": request.input });
    }
}

/// Returns the request of a run that was interrupted, if it may begin again.
pub(crate) fn restarted_request(interrupted: &RunRecord) -> Option<RunRequest> {
    let events = decode_log(&interrupted.events_json).ok()?;
    let EventKind::RunStarted(started) = events.into_iter().next()?.kind else { return None };
    let RunStarted { request: mut echo, input: input_items, .. } = *started;
    let mut kept = echo.as_object_mut()?.shift_remove(RESTART)?;
    let mut messages =
        |name: &str| -> Option<Vec<ChatMessage>> { serde_json::from_value(kept.get_mut(name).map(Value::take)?).ok() };
    let (history, input) = (messages("history")?, messages("input")?);
    let mut body = echo.clone();
    // Its messages are known; the other fields say the same as they did.
    body["input"] = json!("again");
    let (run, _) = parse_value(&body).ok()?.into_run(Protocol::Responses);
    let mut request = RunRequest {
        input,
        input_items,
        conversation: interrupted.conversation.clone(),
        previous_run_id: interrupted.previous_run_id,
        invocation_id: interrupted.invocation_id.clone(),
        on_disconnect: OnDisconnect::KeepRunning,
        echo,
        restarts: Some(interrupted.run_id),
        ..run
    };
    request.go_on_from(history);
    Some(request)
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use uuid::Uuid;

    use super::*;
    use crate::event::{RunEvent, Trigger};
    use crate::models::ChatRole;

    fn interrupted(request: &RunRequest) -> RunRecord {
        let run_id = Uuid::nil();
        let started = RunStarted {
            run_id,
            model: "m".to_owned(),
            question: "how many?".to_owned(),
            protocol: request.protocol.as_str().to_owned(),
            conversation: None,
            previous_run_id: None,
            invocation_id: None,
            trigger: Trigger::New,
            history_len: request.history.len(),
            request: request.echo.clone(),
            input: Value::Null,
        };
        let events = [RunEvent { seq: 0, at: Utc::now(), kind: EventKind::RunStarted(Box::new(started)) }];
        let record = RunRecord::new(run_id, "ann", "how many?", "m", Utc::now());
        RunRecord { events_json: json!(events).to_string(), ..record }
    }

    #[test]
    fn a_response_in_the_background_is_asked_again_as_it_was_once() {
        let mut request = RunRequest::new(Protocol::Responses, vec![ChatMessage::text(ChatRole::User, "how many?")]);
        request.history = vec![ChatMessage::text(ChatRole::User, "hello")];
        request.standing_instructions = vec!["Answer in French.".to_owned()];
        request.echo = json!({ "background": true, "instructions": "Be brief.", "temperature": 0.5, "metadata": {} });
        assert!(restarted_request(&interrupted(&request)).is_none(), "it was not noted");
        note_restart(&mut request);
        let mut again = restarted_request(&interrupted(&request)).unwrap();
        assert_eq!((&again.history, &again.input), (&request.history, &request.input));
        assert_eq!(again.all_instructions().collect::<Vec<_>>(), ["Be brief.", "Answer in French."]);
        assert_eq!(again.sampling.temperature, Some(0.5));
        assert!(again.retained && again.echo.get(RESTART).is_none());
        note_restart(&mut again);
        assert!(restarted_request(&interrupted(&again)).is_none(), "once");
    }

    #[test]
    fn what_is_not_in_the_background_is_not_asked_again() {
        let mut request = RunRequest::new(Protocol::Responses, vec![ChatMessage::text(ChatRole::User, "how many?")]);
        request.echo = json!({ "metadata": {} });
        note_restart(&mut request);
        assert!(restarted_request(&interrupted(&request)).is_none());
    }
}
