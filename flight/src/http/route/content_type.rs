//! Content types of bodies: what says that it is something else is not read as JSON. A body that does not say what it is, is
//! read as what its route takes.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderMap, header};
use http_body::Body as _;

use super::{JSON, Route};
use crate::error::{ApiError, ErrorCode};

/// Refuses a body of another type whose route takes JSON only.
pub(super) async fn check(State(routes): State<&'static [Route]>, request: Request, next: Next) -> Response {
    let takes_json = |route: &Route| {
        !route.bodies.is_empty() && route.bodies.iter().all(|media| media.content_type == JSON.content_type)
    };
    let is_checked =
        !request.body().is_end_stream() && routes.iter().any(|route| takes_json(route) && route.is_of(&request));
    if !is_checked || may_be_json(request.headers()) {
        return next.run(request).await;
    }
    let refused = ApiError::new(ErrorCode::UnsupportedMediaType, "the body must be application/json")
        .with_hint("send the header `Content-Type: application/json`");
    refused.into_response()
}

/// Whether a body may be JSON by its header: `application/json`, `text/json`, a type that ends with `+json`, or none. That of
/// forms is what `curl -d` says of any body, and no form of a page makes JSON in its encoding.
fn may_be_json(headers: &HeaderMap) -> bool {
    let Some(sent) = headers.get(header::CONTENT_TYPE) else { return true };
    let media_type =
        sent.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = matches!(media_type.as_str(), "application/json" | "text/json") || media_type.ends_with("+json");
    is_json || media_type == "application/x-www-form-urlencoded"
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn types_of_json_are_told_from_others() {
        let is_taken = |sent: &'static str| {
            may_be_json(&HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static(sent))]))
        };
        const CURL: &str = "application/x-www-form-urlencoded";
        assert!(may_be_json(&HeaderMap::new()));
        for sent in ["application/json", "Application/JSON; charset=utf-8", "application/a2a+json", "text/json", CURL] {
            assert!(is_taken(sent), "{sent}");
        }
        for sent in ["text/plain", "application/xml", "multipart/form-data; boundary=x", "", "json"] {
            assert!(!is_taken(sent), "{sent}");
        }
    }
}
