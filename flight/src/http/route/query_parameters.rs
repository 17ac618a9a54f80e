//! Query parameters: a name that is not one of a route's is refused, so that none is dropped in silence.
//!
//! It is inside of what asks who calls and of what writes errors as a surface's clients read them. Routes that let everybody
//! in, which are pages and probes, take whatever browsers and proxies add to their addresses.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use url::form_urlencoded;

use super::{Field, FieldKind, Media, Route};
use crate::error::{ApiError, ErrorCode};

/// The longest part of a name that a message repeats, in characters.
const MAX_REPEATED: usize = 100;

/// The name of a refused parameter, in the extensions of the refusal, for clients that are told it in a field of its own.
#[derive(Debug, Clone)]
pub(in crate::http) struct RefusedParameter(pub(in crate::http) String);

/// The bodies that a request's route takes, in the request's extensions, for handlers that refuse fields of no body.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct TakenBodies(&'static [Media]);

impl TakenBodies {
    /// Returns their fields.
    pub(in crate::http) fn fields(self) -> impl Iterator<Item = &'static Field> + Clone {
        self.0.iter().flat_map(|media| media.fields)
    }
}

/// Refuses a request whose address has a parameter that its route does not take, has one twice that is no list, has a flag that
/// is neither true nor false, a list of words with another one, or asks for pages of nothing. Other values are the handlers' to judge.
pub(super) async fn check(State(routes): State<&'static [Route]>, mut request: Request, next: Next) -> Response {
    let Some(route) = routes.iter().find(|route| route.is_of(&request)) else { return next.run(request).await };
    request.extensions_mut().insert(TakenBodies(route.bodies));
    let refused = match route.checks_its_query {
        true => given_twice(request.uri().query().unwrap_or_default()),
        false => refusal(route.query, request.uri().query().unwrap_or_default()),
    };
    let Some((name, message)) = refused else { return next.run(request).await };
    let mut response = ApiError::new(ErrorCode::BadParameter, message).into_response();
    response.extensions_mut().insert(RefusedParameter(name));
    response
}

/// Returns the first parameter that an address has twice, of a route that judges their names itself.
fn given_twice(query: &str) -> Option<(String, String)> {
    let mut seen: Vec<String> = Vec::new();
    for (sent, _) in form_urlencoded::parse(query.as_bytes()) {
        let name: String = sent.chars().take(MAX_REPEATED).collect();
        if seen.contains(&name) {
            return Some(said_twice(name));
        }
        seen.push(name);
    }
    None
}

fn said_twice(name: String) -> (String, String) {
    let message = format!("the query parameter `{name}` is given twice; give it once");
    (name, message)
}

/// Returns the first parameter that is not as the route takes it, and why.
fn refusal(known: &[Field], query: &str) -> Option<(String, String)> {
    let mut seen: Vec<String> = Vec::new();
    for (sent, value) in form_urlencoded::parse(query.as_bytes()) {
        let name: String = sent.chars().take(MAX_REPEATED).collect();
        let Some(field) = known.iter().find(|field| field.is_named(&name)) else {
            let message = match known.iter().map(|field| format!("`{}`", field.name)).collect::<Vec<_>>().join(", ") {
                none if none.is_empty() => format!("there is no query parameter `{name}`; this route takes none"),
                names => format!("there is no query parameter `{name}`; this route takes {names}"),
            };
            return Some((name, message));
        };
        if matches!(field.kind, FieldKind::Flag) && !matches!(value.as_ref(), "true" | "false") {
            let value: String = value.chars().take(MAX_REPEATED).collect();
            let message = format!("the query parameter `{name}` is true or false, not `{value}`");
            return Some((name, message));
        }
        if matches!(field.kind, FieldKind::Integer) && name == "limit" && value.parse() == Ok(0_u64) {
            // It would be a page that never ends.
            let message = format!("the query parameter `{name}` is a whole number of 1 or more, not `{value}`");
            return Some((name, message));
        }
        if let FieldKind::SomeOf(words) = field.kind
            && !words.contains(&value.as_ref())
        {
            let value: String = value.chars().take(MAX_REPEATED).collect();
            let message = format!("the query parameter `{name}` is one of {}, not `{value}`", words.join(", "));
            return Some((name, message));
        }
        let is_list =
            matches!(field.kind, FieldKind::List | FieldKind::Texts | FieldKind::SomeOf(_) | FieldKind::TextOrList);
        if !is_list && seen.contains(&name) {
            return Some(said_twice(name));
        }
        seen.push(name);
    }
    None
}

impl Field {
    /// Whether this is the parameter of a name. A list may be written `include[]`, and the pairs of an object
    /// `metadata[topic]`.
    fn is_named(&self, name: &str) -> bool {
        match (self.kind, name.strip_prefix(self.name)) {
            (_, Some("")) => true,
            (FieldKind::List | FieldKind::Texts | FieldKind::SomeOf(_), Some(rest)) => rest == "[]",
            (FieldKind::Object, Some(rest)) => rest.starts_with('[') && rest.ends_with(']'),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[Field] = &[
        Field::new("limit", FieldKind::Integer, ""),
        Field::new("include", FieldKind::List, ""),
        Field::new("metadata", FieldKind::Object, ""),
        Field::new("stream", FieldKind::Flag, ""),
        Field::new("stage", FieldKind::SomeOf(&["new", "old"]), ""),
    ];

    #[test]
    fn a_name_is_one_of_the_routes_or_refused() {
        let refused = |query: &str| refusal(KNOWN, query).map(|(name, _)| name);
        for query in [
            "",
            "limit=1",
            "include=a&include=b",
            "include[]=a&include%5B%5D=b",
            "metadata[a]=1&metadata[b]=2",
            "stage[]=new&stage=old",
        ] {
            assert_eq!(refused(query), None, "{query}");
        }
        for (query, name) in [
            ("zzz=1", "zzz"),
            ("limit=1&Limit=2", "Limit"),
            ("limit=1&limit=2", "limit"),
            ("limit[]=1", "limit[]"),
            ("include[0]=a", "include[0]"),
            ("metadata[a=1", "metadata[a"),
            ("metadata[a]=1&metadata[a]=2", "metadata[a]"),
            ("zzz", "zzz"),
            ("stream=maybe", "stream"),
            ("stream", "stream"),
            ("stage[]=zzz", "stage[]"),
            ("stage", "stage"),
            ("limit=0", "limit"),
            ("=1", ""),
        ] {
            assert_eq!(refused(query).as_deref(), Some(name), "{query}");
        }
        assert!(refusal(&[], "zzz=1").is_some_and(|(_, message)| message.ends_with("takes none")));
    }
}
