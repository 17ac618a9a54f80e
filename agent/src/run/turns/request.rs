//! The request of one turn: which tools the model may call now, and whether it must.

use super::calls::model_name;
use super::{Turns, max_output_tokens};
use crate::budget::AllowedReply;
use crate::models::actions::TurnRequest;
use crate::models::{ChatMessage, ToolChoice, ToolSpec};
use crate::request::RunRequest;
use crate::tools;

/// Calls of the server's tools that may precede a call that the client forced.
const CALLS_BEFORE_FORCED: u32 = 4;

/// Whether a request allows calls of the server's `tool`. None that writes comes before a call that the client forced:
/// it would wait for a person, which ends the run.
pub(super) fn is_allowed(request: &RunRequest, tool: &str) -> bool {
    request.may_use(tool) && !(tools::writes(tool) && request.forces_client_call())
}

impl Turns<'_> {
    /// Returns how many calls of a reply are made: of one that makes more than its request allows, the others are left
    /// out.
    pub(super) fn calls_of_turn(&self) -> usize {
        let request = &self.task.request;
        let left = match request.max_tool_calls {
            Some(_) if self.budget.allows_calls() => self.budget.max_calls() - self.budget.calls(),
            Some(_) | None => u32::MAX,
        };
        if request.one_call_a_turn { 1 } else { left as usize }
    }

    pub(super) fn turn_request(&self, messages: Vec<ChatMessage>) -> TurnRequest {
        let offer = self.budget.offer();
        let request = &self.task.request;
        let silent = self.repairing || request.tool_choice == ToolChoice::None;
        let (tools, tool_choice) = match silent {
            true => (Vec::new(), ToolChoice::None),
            false => self.tools_and_choice(offer),
        };
        TurnRequest {
            messages,
            tools,
            known_tools: self.specs.clone(),
            client_tools: request.client_tools.iter().map(|tool| tool.name.clone()).collect(),
            may_answer: offer != AllowedReply::CallOnly
                || !request.history.is_empty()
                || !request.client_tools.is_empty(),
            think: self.capabilities.thinking.then_some(request.include_thinking),
            max_output_tokens: Some(self.asked_reply_tokens()),
            answer_schema: self
                .structured
                .as_ref()
                .filter(|_| self.repairing)
                .map(|structured| structured.schema().clone()),
            tool_choice,
            sampling: request.sampling.clone(),
            // One that repeats a failing call is asked for another reply than the likeliest.
            variation: self.variation,
        }
    }

    /// Returns the tools of this turn, and whether one must be called.
    ///
    /// A call of the server's tools is forced first, and once. A call of the client's ends the run, so that it is forced
    /// until it is made: before it the model may look at the data, or it would invent what it passes to the client.
    fn tools_and_choice(&self, offer: AllowedReply) -> (Vec<ToolSpec>, ToolChoice) {
        let request = &self.task.request;
        let clients = &request.client_tools;
        let is_first = self.iteration == 1 && request.resume.is_empty();
        let named = |name: &str| self.specs.iter().filter(|spec| spec.name == name).cloned().collect::<Vec<_>>();
        match &request.tool_choice {
            ToolChoice::Named(name) if clients.iter().any(|tool| tool.name == *name) => {
                if self.has_looked(offer) {
                    return (named(name), ToolChoice::Named(name.clone()));
                }
                let others = |spec: &&ToolSpec| clients.iter().all(|tool| tool.name != spec.name || spec.name == *name);
                (self.specs.iter().filter(others).cloned().collect(), ToolChoice::Required)
            }
            ToolChoice::Required if !clients.is_empty() => {
                let tools = if self.has_looked(offer) { clients.clone() } else { self.specs.clone() };
                (tools, ToolChoice::Required)
            }
            ToolChoice::Named(name) if is_first => {
                let name = model_name(name, clients);
                (named(&name), ToolChoice::Named(name))
            }
            ToolChoice::Required if is_first => (self.offered_tools(offer), ToolChoice::Required),
            ToolChoice::Auto | ToolChoice::None | ToolChoice::Required | ToolChoice::Named(_) => {
                (self.offered_tools(offer), ToolChoice::Auto)
            }
        }
    }

    /// Whether the model has looked at the data as long as it may before a call that the client forced.
    fn has_looked(&self, offer: AllowedReply) -> bool {
        let has_rows = self.capabilities.small && self.budget.has_succeeded(tools::RUN_SQL);
        has_rows || offer == AllowedReply::AnswerOnly || self.iteration > CALLS_BEFORE_FORCED
    }

    /// Returns the tokens requested for a reply.
    pub(super) fn asked_reply_tokens(&self) -> u32 {
        let limit = max_output_tokens(self.capabilities.small);
        self.task.request.max_output_tokens.map_or(limit, |asked| asked.min(limit))
    }

    /// Returns the tokens that a reply can take: fewer where the model's own limit is lower.
    pub(super) fn max_reply_tokens(&self) -> u32 {
        let asked = self.asked_reply_tokens();
        self.task.model.max_output_tokens.map_or(asked, |limit| limit.min(asked))
    }

    /// Returns the tools that the model may call of its own accord. A small model that has rows may query again, but not
    /// explore tables.
    fn offered_tools(&self, offer: AllowedReply) -> Vec<ToolSpec> {
        match offer {
            AllowedReply::AnswerOnly => Vec::new(),
            AllowedReply::CallOrAnswer if self.capabilities.small && self.budget.has_succeeded(tools::RUN_SQL) => {
                let name = model_name(tools::RUN_SQL, &self.task.request.client_tools);
                self.specs.iter().filter(|spec| spec.name == name).cloned().collect()
            }
            AllowedReply::CallOnly | AllowedReply::CallOrAnswer => self.specs.clone(),
        }
    }
}
