//! The requests and responses of actions. Every response is one envelope, `{Code, Message, RequestId, Action, Data}`,
//! errors included.

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use querent_agent::protocols::ksadk::Action;
use querent_catalog::Principal;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::openai::error::{OpenAiError, OpenAiErrorParts, render_errors};
use crate::http::request::{ApiCall, QueryBytes, RequestId};
use crate::http::response::json_response;
use crate::http::route::{FieldKind, TakenBodies};
use crate::state::AppState;

/// What the path of every action begins with.
pub(super) const BASE: &str = "/agentengine/api/v1/";

/// A request for an action: its caller and its parameters.
pub(in crate::http) struct ActionCall {
    pub(super) state: AppState,
    pub(super) principal: Principal,
    pub(super) request_id: RequestId,
    pub(super) action: Action,
}

impl FromRequest<AppState> for ActionCall {
    type Rejection = OpenAiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, OpenAiError> {
        let (mut parts, body) = request.into_parts();
        let ApiCall { state, principal } = ApiCall::from_request_parts(&mut parts, state).await?;
        let request_id = parts.extensions.get::<RequestId>().cloned();
        let request_id = request_id.ok_or_else(|| ApiError::internal("a request came without its id"))?;
        let taken = parts.extensions.get::<TakenBodies>().copied();
        let QueryBytes(body) = QueryBytes::from_request(Request::from_parts(parts, body), &state).await?;
        let action = Action::parse(&body)?;
        if let Some(taken) = taken {
            action.check_names(taken.fields().map(|field| field.name))?;
            check_kinds(&action, taken)?;
        }
        Ok(Self { state, principal, request_id, action })
    }
}

/// Refuses a text or a flag that is none, also where the field has no effect; the handlers judge the others. Errors: 422.
fn check_kinds(action: &Action, taken: TakenBodies) -> Result<(), OpenAiError> {
    for field in taken.fields() {
        match field.kind {
            FieldKind::Text => {
                action.text(field.name)?;
            }
            FieldKind::Flag => {
                action.flag(field.name)?;
            }
            FieldKind::Integer => {
                action.number(field.name, 0, u64::MAX)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Returns an action's data in its envelope.
pub(super) fn envelope(id: &RequestId, action: &str, data: &Value) -> Response {
    let body = json!({
        "Code": 0,
        "Message": "Success",
        "RequestId": envelope_id(id),
        "Action": action,
        "Data": data,
    });
    json_response(StatusCode::OK, &body)
}

/// Writes errors into the envelope: KsADK's client reads its `Message`, and OpenAI's clients the fields beside it.
pub(super) async fn render_errors_in_envelope(request: Request, next: Next) -> Response {
    let id = request.extensions().get::<RequestId>().cloned();
    let action = request.uri().path().trim_start_matches(BASE).to_owned();
    in_envelope(render_errors(request, next).await, id.as_ref(), &action)
}

/// Whether a path is an action's, whether or not there is one.
pub(in crate::http) fn is_action(path: &str) -> bool {
    path.starts_with(BASE)
}

/// Writes an error that no handler made, such as that of a method that an action does not take.
pub(in crate::http) fn error_response(error: ApiError, request: &Request) -> Response {
    let action = request.uri().path().trim_start_matches(BASE);
    in_envelope(OpenAiError::from(error).into_response(), request.extensions().get::<RequestId>(), action)
}

/// Writes an error into the envelope; returns any other response as it is.
fn in_envelope(mut response: Response, id: Option<&RequestId>, action: &str) -> Response {
    let said = response.extensions_mut().remove::<OpenAiErrorParts>();
    let (Some(id), Some(said)) = (id, said) else { return response };
    let (mut parts, _) = response.into_parts();
    let mut body = json!({
        "Code": parts.status.as_u16(),
        "Message": said.message,
        "RequestId": envelope_id(id),
        "Action": action,
        "Data": null,
        "Error": { "Code": said.code, "Message": said.message },
    });
    if let (Value::Object(body), Value::Object(own)) = (&mut body, said.body) {
        body.extend(own);
    }
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(body.to_string()))
}

fn envelope_id(id: &RequestId) -> String {
    format!("req-{}", id.0)
}
