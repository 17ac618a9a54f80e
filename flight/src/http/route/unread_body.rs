//! Bodies of requests to routes that take none. One that says something is refused, so that it is not dropped in silence;
//! clients that send an empty object, or null, say nothing.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body::Body as _;
use serde_json::Value;

use super::{RefusedParameter, Route, Verb};
use crate::error::{ApiError, ErrorCode};
use crate::http::arriving::read_body;
use crate::state::AppState;

/// The most bytes that are read to see whether they say anything.
const MAX_BYTES: u64 = 64 << 10;
/// The longest name that a message repeats, in characters.
const MAX_REPEATED: usize = 100;

/// Refuses a request whose route takes no body and whose body says something. What a GET brings is no part of it.
pub(super) async fn check(
    State((state, routes)): State<(AppState, &'static [Route])>,
    request: Request,
    next: Next,
) -> Response {
    let takes_none = |route: &Route| route.bodies.is_empty() && !matches!(route.verb, Verb::Get | Verb::Any);
    if request.body().is_end_stream() || !routes.iter().any(|route| takes_none(route) && route.is_of(&request)) {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    let body = match read_body(body, MAX_BYTES, &state.settings.http).await {
        Ok(body) => body,
        Err(error) => return error.into_response(),
    };
    let Some(name) = said(&body) else { return next.run(Request::from_parts(parts, Body::from(body))).await };
    let message = format!("`{name}` has no effect: this route takes no body; leave it out");
    let mut response = ApiError::new(ErrorCode::InvalidRequest, message).into_response();
    response.extensions_mut().insert(RefusedParameter(name));
    response
}

/// Returns the first field of a body that has a value, or `body` for one that has no fields; `None` where it says nothing.
fn said(body: &[u8]) -> Option<String> {
    if body.trim_ascii().is_empty() {
        return None;
    }
    match serde_json::from_slice(body) {
        Ok(Value::Null) => None,
        Ok(Value::Object(fields)) => {
            let field = fields.into_iter().find(|(_, value)| !value.is_null());
            field.map(|(name, _)| name.chars().take(MAX_REPEATED).collect())
        }
        _ => Some("body".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_body_says_nothing() {
        for body in ["", " \n", "{}", "null", r#"{"reason": null}"#] {
            assert_eq!(said(body.as_bytes()), None, "{body}");
        }
        for (body, name) in [(r#"{"a": null, "zzz": 1}"#, "zzz"), ("[]", "body"), ("zzz=1", "body"), ("{", "body")] {
            assert_eq!(said(body.as_bytes()).as_deref(), Some(name), "{body}");
        }
    }
}
