//! Asking back: where an answer of `ask` asks which of several readings is meant, a client that can ask its user gets that
//! question as an elicitation. The revision 2026-07-28 does so without a session: the client calls again with the choice, and what
//! belongs together is a conversation, whose name is the request's state. Those before it ask within the call.

use querent_agent::ASSESSMENT;
use querent_agent::toolbox::ToolReply;
use querent_catalog::{Catalog, CatalogError, ConversationKey, Principal};
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitationSchema, InputRequest, InputRequests,
    InputRequiredResult,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client_requests::ClientChannel;
use crate::error::{ApiError, ErrorCode};

/// The name of the one input that is asked for, and of its field.
const READING: &str = "reading";
/// What the names of these conversations begin with.
const PREFIX: &str = "mcp_";
/// The request to a session's client.
const ELICIT: &str = "elicitation/create";

/// Whether the client of a request says that it can ask its user.
pub(super) fn is_possible(context: &RequestContext<RoleServer>) -> bool {
    context.meta.client_capabilities().is_some_and(|client| client.elicitation.is_some())
}

/// A question of a client that can ask its user.
pub(super) struct ElicitingCall {
    /// The conversation of the question and the choice.
    pub(super) conversation: String,
    /// What the user chose; `None` for the question itself.
    pub(super) choice: Option<String>,
}

impl ElicitingCall {
    /// Returns the call, unless its user has declined to choose.
    ///
    /// Errors: `invalid_request` for what is no answer to the question, and for a choice without the state of its question:
    /// the question would be answered as if nobody had chosen.
    pub(super) async fn from_request(
        request: &CallToolRequestParams,
        catalog: &Catalog,
        who: &Principal,
    ) -> Result<Option<Self>, ApiError> {
        let said = request.input_responses.as_ref().and_then(|responses| responses.get(READING));
        let choice = match said.map(|said| (said["action"].as_str(), said["content"][READING].as_str())) {
            Some((Some("accept"), Some(choice))) => choice.to_owned(),
            None | Some((Some("accept"), None)) => {
                return Ok(Some(Self { conversation: new_conversation(), choice: None }));
            }
            Some((Some("decline" | "cancel"), _)) => return Ok(None),
            Some(_) => {
                let message = format!("`inputResponses.{READING}` has no `action` of accept, decline and cancel");
                return Err(ApiError::new(ErrorCode::InvalidRequest, message));
            }
        };
        let unknown = || {
            ApiError::new(ErrorCode::InvalidRequest, "`requestState` is not that of the question which was asked back")
                .with_hint("send the state back as it came, or ask anew without `inputResponses`")
        };
        let state = request.request_state.clone().filter(|state| state.starts_with(PREFIX)).ok_or_else(unknown)?;
        match catalog.conversations().get(who, &ConversationKey::shared(&state)).await {
            Ok(_) => Ok(Some(Self { conversation: state, choice: Some(choice) })),
            Err(CatalogError::ConversationNotFound { .. }) => Err(unknown()),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the question which reading is meant, if the reply asks it.
    pub(super) fn question(&self, reply: &ToolReply) -> Option<InputRequiredResult> {
        let (message, schema) = form_of(reply)?;
        let requested_schema = ElicitationSchema::from_json_schema(schema.as_object().cloned()?).ok()?;
        let asked = ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema };
        let requests =
            InputRequests::from([(READING.to_owned(), InputRequest::Elicitation(ElicitRequest::new(asked)))]);
        Some(InputRequiredResult::new(Some(requests), Some(self.conversation.clone())))
    }
}

/// Returns the name of the conversation of a question and a choice.
pub(super) fn new_conversation() -> String {
    format!("{PREFIX}{}", Uuid::now_v7().simple())
}

/// Has the client of a session ask its user which reading is meant, if the reply asks it. Returns the choice; `None` where
/// nobody chooses.
pub(super) async fn choice_of(client: &ClientChannel, reply: &ToolReply) -> Option<String> {
    let (message, schema) = form_of(reply)?;
    let answer = client.ask(ELICIT, json!({ "message": message, "requestedSchema": schema })).await?;
    let result = &answer["result"];
    result["content"][READING].as_str().filter(|_| result["action"] == "accept").map(str::to_owned)
}

/// Returns the question which reading is meant and the schema of what answers it, if the reply asks it.
fn form_of(reply: &ToolReply) -> Option<(String, Value)> {
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
    let message = match &reply.json["answer"] {
        Value::String(text) => text.clone(),
        _ => reply.text.clone(),
    };
    Some((message, schema))
}
