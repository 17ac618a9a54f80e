//! Asking back: where an answer of `ask` asks which of several readings is meant, a client that can ask its user gets that
//! question as an elicitation, and calls again with the choice. The revision 2026-07-28 does so without a session; what
//! belongs together is a conversation, whose name is the request's state.

use querent_agent::ASSESSMENT;
use querent_agent::toolbox::ToolReply;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use uuid::Uuid;

/// The name of the one input that is asked for, and of its field.
const READING: &str = "reading";
/// What the names of these conversations begin with.
const PREFIX: &str = "mcp_";

/// A question of a client that can ask its user.
pub(super) struct ElicitingCall {
    /// The conversation of the question and the choice.
    pub(super) conversation: String,
    /// What the user chose; `None` for the question itself.
    pub(super) choice: Option<String>,
}

impl ElicitingCall {
    /// Returns the call, if its client can ask and its user has not declined to choose.
    pub(super) fn new(request: &CallToolRequestParams, context: &RequestContext<RoleServer>) -> Option<Self> {
        context.meta.client_capabilities()?.elicitation?;
        let said = request.input_responses.as_ref().and_then(|responses| responses.get(READING));
        let Some(said) = said else {
            return Some(Self { conversation: format!("{PREFIX}{}", Uuid::now_v7().simple()), choice: None });
        };
        let conversation = request.request_state.clone().filter(|state| state.starts_with(PREFIX))?;
        let choice = said["content"][READING].as_str().filter(|_| said["action"] == "accept")?;
        Some(Self { conversation, choice: Some(choice.to_owned()) })
    }

    /// Returns the question which reading is meant, if the reply asks it.
    pub(super) fn question(&self, reply: &ToolReply) -> Option<InputRequiredResult> {
        let assessment = &reply.json[ASSESSMENT];
        if assessment["asks_back"] != true {
            return None;
        }
        let count = assessment["readings"].as_array().map_or(0, Vec::len);
        let numbers: Vec<String> = (1..=count).map(|number| number.to_string()).collect();
        let schema = json!({
            "type": "object",
            "properties": { READING: { "type": "string", "title": "Which one?", "enum": numbers } },
            "required": [READING],
        });
        let requested_schema = ElicitationSchema::from_json_schema(schema.as_object().cloned()?).ok()?;
        let message = match &reply.json["answer"] {
            Value::String(text) => text.clone(),
            _ => reply.text.clone(),
        };
        let asked = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        let requests =
            InputRequests::from([(READING.to_owned(), InputRequest::Elicitation(ElicitRequest::new(asked)))]);
        Some(InputRequiredResult::new(Some(requests), Some(self.conversation.clone())))
    }
}
