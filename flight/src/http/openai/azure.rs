//! What Azure's clients of OpenAI's interface do otherwise: addresses below `/openai`, the model's name in the path, a
//! parameter `api-version`, a header `api-key`. Their addresses are made OpenAI's before a route is looked for, so that
//! each route stands once. Reference: <https://learn.microsoft.com/azure/ai-foundry/openai/reference>.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::{HeaderName, Uri};

use crate::http::messages::use_as_token;
use crate::mcp::percent_decoded;

const API_KEY: HeaderName = HeaderName::from_static("api-key");
/// All versions have the same answers.
const API_VERSION: &str = "api-version";
/// What the paths of OpenAI's routes begin with.
const ROOMS: [&str; 7] = [
    "/v1/responses",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/conversations",
    "/v1/embeddings",
    "/v1/models",
    "/v1/files",
];

/// The deployment that a path names, which is the model's name here, in the request's extensions.
#[derive(Debug, Clone)]
pub(in crate::http) struct Deployment(pub(in crate::http) String);

/// Makes an address of Azure's clients that of OpenAI's route, and takes the version away from OpenAI's own.
pub(crate) fn take_azure_address<B>(request: &mut http::Request<B>) {
    let Some((uri, deployment)) = openai_address(request.uri()) else { return };
    *request.uri_mut() = uri;
    if let Some(name) = deployment {
        request.extensions_mut().insert(Deployment(name));
    }
}

/// Takes the key of Azure's clients as a token.
pub(in crate::http) async fn take_key(mut request: Request, next: Next) -> Response {
    use_as_token(request.headers_mut(), &API_KEY);
    next.run(request).await
}

/// Returns the address of OpenAI's route and the deployment that the path names; `None` where the address stays.
fn openai_address(uri: &Uri) -> Option<(Uri, Option<String>)> {
    let azure = uri.path().strip_prefix("/openai/");
    let query = uri.query().unwrap_or_default();
    let version = query.split('&').position(|pair| pair.split('=').next() == Some(API_VERSION));
    if azure.is_none() && version.is_none() {
        return None;
    }
    let (path, deployment) = match azure {
        None => (uri.path().to_owned(), None),
        Some(rest) => match rest.strip_prefix("deployments/").and_then(|rest| rest.split_once('/')) {
            Some(("", _)) => return None,
            Some((name, rest)) => (format!("/v1/{rest}"), Some(percent_decoded(name)?)),
            None => (format!("/v1/{}", rest.strip_prefix("v1/").unwrap_or(rest)), None),
        },
    };
    let is_in = |room: &str| path.strip_prefix(room).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if !ROOMS.iter().any(|room| is_in(room)) {
        return None;
    }
    // A second one is refused as other parameters are.
    let kept = query.split('&').enumerate().filter(|(at, _)| Some(*at) != version).map(|(_, pair)| pair);
    let target = match kept.collect::<Vec<_>>().join("&") {
        none if none.is_empty() => path,
        query => format!("{path}?{query}"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(target.parse().ok()?);
    Some((Uri::from_parts(parts).ok()?, deployment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_azure_are_those_of_openai() {
        for (sent, taken, deployment) in [
            (
                "/openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
                "/v1/chat/completions",
                Some("gpt-4o"),
            ),
            ("/openai/deployments/qwen3%3A8b/embeddings?api-version=1", "/v1/embeddings", Some("qwen3:8b")),
            (
                "/openai/responses/resp_1/input_items?api-version=1&limit=2",
                "/v1/responses/resp_1/input_items?limit=2",
                None,
            ),
            ("/openai/v1/responses?api-version=preview", "/v1/responses", None),
            ("/openai/v1/models", "/v1/models", None),
            ("/v1/models?limit=1&api-version=preview&zzz=1", "/v1/models?limit=1&zzz=1", None),
            ("/v1/files?api-version=1&api-version=2", "/v1/files?api-version=2", None),
            ("http://localhost:8080/openai/files?api-version=1", "http://localhost:8080/v1/files", None),
        ] {
            let (uri, name) = openai_address(&sent.parse().unwrap()).unwrap();
            assert_eq!((uri.to_string().as_str(), name.as_deref()), (taken, deployment), "{sent}");
        }
        for sent in [
            "/",
            "/v1/models",
            "/v1/responses?stream=true",
            "/v1/messages?api-version=1",
            "/v1/modelsx?api-version=1",
            "/openai/query",
            "/openai/deployments//chat/completions",
            "/openai/v1/query?api-version=1",
            "/openai/deployments/gpt-4o",
        ] {
            assert_eq!(openai_address(&sent.parse().unwrap()), None, "{sent}");
        }
    }
}
