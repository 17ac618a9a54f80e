//! JSON responses, for every surface.

use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};
use querent_catalog::PageToken;
use serde_json::{Value, json};

/// Makes a response of a status and a JSON value.
pub(super) fn json_response(status: StatusCode, value: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// Makes the response for a page of a listing: `{<name>: [...], next_page_token?}`.
pub(super) fn page_response(name: &str, items: Value, next: Option<PageToken>) -> Response {
    let mut body = json!({ name: items });
    if let Some(next) = next {
        body["next_page_token"] = json!(next.0);
    }
    json_response(StatusCode::OK, &body)
}
