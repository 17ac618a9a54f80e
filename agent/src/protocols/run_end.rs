//! How a run ended, as far as its events say: what the renderers of answers in one piece have in common.

use serde_json::{Value, json};

use crate::event::{EventKind, RunErrorCode, RunOutcome, RunStarted};
use crate::models::TokenUsage;

/// How a run ended; in the middle of one, what is known so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct RunEnd {
    /// Whether the answer was cut at a limit of tokens.
    pub(crate) cut: bool,
    /// Whether a filter of the model's server ended it.
    pub(crate) filtered: bool,
    /// Why the run failed, if it did.
    pub(crate) failure: Option<(RunErrorCode, String)>,
    /// The server's own code of that.
    pub(crate) detail_code: String,
    /// Its tokens.
    pub(crate) usage: TokenUsage,
    /// `None` while it runs.
    pub(crate) outcome: Option<RunOutcome>,
    /// What the answer rests on and how far it is to be trusted, as clients see it; `None` where nothing is known.
    pub(crate) assessment: Option<Value>,
}

impl RunEnd {
    /// Takes in what an event says of the end.
    pub(crate) fn note(&mut self, event: &EventKind) {
        match event {
            EventKind::AnswerFinal(answer) => {
                (self.cut, self.filtered) = (answer.cut, answer.filtered);
                self.assessment = answer.assessment.to_json();
            }
            EventKind::RunError { code, message, detail_code } => {
                self.failure = Some((*code, message.clone()));
                self.detail_code.clone_from(detail_code);
            }
            EventKind::RunFinished(finished) => {
                self.usage = finished.usage.tokens;
                self.outcome = Some(finished.outcome);
            }
            _ => {}
        }
    }

    /// Returns why the answer is not whole, if it is not.
    pub(crate) fn cut_reason(&self) -> Option<&'static str> {
        match (self.cut, self.filtered) {
            (true, _) => Some("max_output_tokens"),
            (false, true) => Some("content_filter"),
            (false, false) => None,
        }
    }

    /// Returns the code of the failure as clients see it: the server's own, which says more, but for a timeout.
    pub(crate) fn failure_code(&self) -> &str {
        match self.failure {
            Some((RunErrorCode::Timeout, _)) => RunErrorCode::Timeout.as_str(),
            Some(_) | None => &self.detail_code,
        }
    }

    /// Returns why the run failed, if it did: its code, and what to do.
    pub(crate) fn failure(&self) -> Option<(RunErrorCode, &str)> {
        self.failure.as_ref().map(|(code, message)| (*code, message.as_str()))
    }
}

/// Returns the model as the request named it, or else the one that runs.
pub(crate) fn model_named(started: &RunStarted) -> Value {
    match &started.request["model"] {
        Value::Null => json!(started.model),
        asked => asked.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_has_the_servers_own_code_but_for_a_timeout() {
        for (code, detail_code, expected) in [
            (RunErrorCode::ToolLoop, "too_many_tool_calls", "too_many_tool_calls"),
            (RunErrorCode::InitError, "model_unreachable", "model_unreachable"),
            (RunErrorCode::Timeout, "run_timeout", "timeout"),
        ] {
            let mut end = RunEnd::default();
            let (message, detail_code) = ("it failed".to_owned(), detail_code.to_owned());
            end.note(&EventKind::RunError { code, message, detail_code });
            assert_eq!(end.failure_code(), expected);
        }
    }
}
