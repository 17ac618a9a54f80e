//! The tool calls of a run: how many it may still make, and when it repeats itself.

use serde_json::Value;

/// Identical failing calls in a row that end a run.
const MAX_IDENTICAL_FAILURES: u32 = 3;
/// Failures in a row after which a model may answer without a result, to say that it cannot.
const FAILURES_BEFORE_ANSWER: u32 = 2;

/// The tool calls of one run.
#[derive(Debug)]
pub(crate) struct ToolBudget {
    max_calls: u32,
    calls: u32,
    succeeded: Vec<(String, Value)>,
    last_failure: Option<(String, Value)>,
    identical_failures: u32,
    failures_in_a_row: u32,
    repeated_success: bool,
    has_corrected: bool,
}

/// Why no further call is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exhausted {
    /// There was one call too many.
    TooManyCalls,
    /// The same call failed again and again.
    RepeatedFailure,
}

/// What a model may do in its next turn, as far as its provider can enforce it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AllowedReply {
    /// Call a tool: nothing is known yet.
    CallOnly,
    /// Call a tool, or answer.
    CallOrAnswer,
    /// Answer: there is nothing left to call.
    AnswerOnly,
}

impl ToolBudget {
    pub(crate) fn new(max_calls: u32) -> Self {
        Self {
            max_calls,
            calls: 0,
            succeeded: Vec::new(),
            last_failure: None,
            identical_failures: 0,
            failures_in_a_row: 0,
            repeated_success: false,
            has_corrected: false,
        }
    }

    /// Returns the calls counted so far.
    pub(crate) fn calls(&self) -> u32 {
        self.calls
    }

    /// Returns the most calls that may be made.
    pub(crate) fn max_calls(&self) -> u32 {
        self.max_calls
    }

    /// Whether a call may still be made.
    pub(crate) fn allows_calls(&self) -> bool {
        self.calls < self.max_calls
    }

    /// Counts a call. Returns its index, and whether it may still be made.
    pub(crate) fn begin_call(&mut self) -> (u32, Result<(), Exhausted>) {
        let index = self.calls;
        self.calls += 1;
        (index, if self.calls > self.max_calls { Err(Exhausted::TooManyCalls) } else { Ok(()) })
    }

    /// Whether a call may be sent back to be corrected: once in a run, and while another one may be made.
    pub(crate) fn may_correct(&self) -> bool {
        !self.has_corrected && self.allows_calls()
    }

    /// Records that a call is sent back to be corrected.
    pub(crate) fn note_correction(&mut self) {
        self.has_corrected = true;
    }

    /// Records how a call went. Errors: the same call has failed too often in a row.
    pub(crate) fn record(&mut self, tool: &str, arguments: &Value, failed: bool) -> Result<(), Exhausted> {
        let call = (tool.to_owned(), arguments.clone());
        if !failed {
            self.last_failure = None;
            self.identical_failures = 0;
            self.failures_in_a_row = 0;
            self.repeated_success = self.succeeded.contains(&call);
            self.succeeded.push(call);
            return Ok(());
        }
        self.repeated_success = false;
        self.failures_in_a_row += 1;
        self.identical_failures =
            if self.last_failure.as_ref() == Some(&call) { self.identical_failures + 1 } else { 1 };
        self.last_failure = Some(call);
        if self.identical_failures >= MAX_IDENTICAL_FAILURES { Err(Exhausted::RepeatedFailure) } else { Ok(()) }
    }

    /// Whether the latest call gave a result that an identical one had given before.
    pub(crate) fn repeated_success(&self) -> bool {
        self.repeated_success
    }

    /// Whether a call of `tool` gave a result.
    pub(crate) fn has_succeeded(&self, tool: &str) -> bool {
        self.succeeded.iter().any(|(succeeded, _)| succeeded == tool)
    }

    /// Whether the latest call failed as the one before it had.
    pub(crate) fn repeated_failure(&self) -> bool {
        self.identical_failures > 1
    }

    /// Returns what the model may do next. A small model that may answer at once invents the answer, so it may answer
    /// only once it has a result or cannot get one. A model that repeats a successful call has what it needs.
    pub(crate) fn offer(&self) -> AllowedReply {
        if self.calls >= self.max_calls || self.repeated_success {
            AllowedReply::AnswerOnly
        } else if self.succeeded.is_empty() && self.failures_in_a_row < FAILURES_BEFORE_ANSWER {
            AllowedReply::CallOnly
        } else {
            AllowedReply::CallOrAnswer
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_call_beyond_the_last_is_counted_and_refused() {
        let mut budget = ToolBudget::new(2);
        assert_eq!(budget.begin_call(), (0, Ok(())));
        assert_eq!(budget.begin_call(), (1, Ok(())));
        assert_eq!(budget.offer(), AllowedReply::AnswerOnly);
        assert_eq!(budget.begin_call(), (2, Err(Exhausted::TooManyCalls)));
        assert_eq!(budget.calls(), 3);
    }

    #[test]
    fn only_identical_failures_in_a_row_end_a_run() {
        let mut budget = ToolBudget::new(12);
        let (one, two) = (json!({"sql": "1"}), json!({"sql": "2"}));
        assert_eq!(budget.record("run_sql", &one, true), Ok(()));
        assert_eq!(budget.record("run_sql", &one, true), Ok(()));
        assert_eq!(budget.record("run_sql", &two, true), Ok(()));
        assert_eq!(budget.record("run_sql", &one, true), Ok(()));
        assert_eq!(budget.record("run_sql", &one, true), Ok(()));
        assert_eq!(budget.record("run_sql", &one, true), Err(Exhausted::RepeatedFailure));
    }

    #[test]
    fn an_answer_is_offered_once_there_is_a_result_or_no_hope_of_one() {
        let mut budget = ToolBudget::new(12);
        let call = |number: u32| json!({ "sql": number });
        assert_eq!(budget.offer(), AllowedReply::CallOnly);
        for number in 0..FAILURES_BEFORE_ANSWER {
            assert_eq!(budget.offer(), AllowedReply::CallOnly);
            budget.record("run_sql", &call(number), true).unwrap();
        }
        assert_eq!(budget.offer(), AllowedReply::CallOrAnswer);
        budget.record("run_sql", &call(9), false).unwrap();
        assert_eq!(budget.offer(), AllowedReply::CallOrAnswer);
        budget.record("run_sql", &call(9), false).unwrap();
        assert_eq!(budget.offer(), AllowedReply::AnswerOnly);
    }
}
