//! `GET /v1/caller`: whom the server takes the caller for, so that a client offers only what they may do.

use axum::response::Response;
use http::StatusCode;
use querent_catalog::DatabaseScope;
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::http::request::ApiCall;
use crate::http::response::json_response;

/// `{subject, role, databases, roles, groups}`; `databases` is null where the caller may see all of them.
pub(super) async fn show(ApiCall { principal, .. }: ApiCall) -> Result<Response, ApiError> {
    let databases = match principal.scope() {
        DatabaseScope::All => Value::Null,
        DatabaseScope::Only(names) => names.iter().map(String::as_str).collect(),
    };
    let caller = json!({
        "subject": principal.subject(),
        "role": principal.role().as_str(),
        "databases": databases,
        "roles": principal.identity().roles,
        "groups": principal.identity().groups,
    });
    Ok(json_response(StatusCode::OK, &caller))
}
