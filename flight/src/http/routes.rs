//! The table of all HTTP routes: the router, `GET /openapi.json` and the list at `GET /` are made of it.
//!
//! To add a route, write its handler in the file of its surface and its line in the surface's table here.

mod a2a;
mod ag_ui;
mod answers;
mod cube;
mod holmes;
mod ksadk;
mod messages;
mod native;
mod openai;
mod trust;

use std::sync::LazyLock;

use axum::{Extension, Router};

use crate::http::openapi::Reference;
use crate::http::route::{ErrorSchema, Surface, Verb};
use crate::state::AppState;

/// All surfaces, in the order of the reference.
const SURFACES: [Surface; 15] = [
    native::SERVER,
    native::QUERY,
    native::CATALOG,
    native::AGENT,
    trust::TRUST,
    openai::OPENAI,
    messages::ANTHROPIC,
    ag_ui::AG_UI,
    a2a::A2A,
    ksadk::KSADK,
    ksadk::ADK,
    cube::CUBE,
    holmes::HOLMES,
    native::MCP,
    native::KUSTO,
];

/// The reference of all routes, made when it is first asked for.
static REFERENCE: LazyLock<Reference> = LazyLock::new(|| Reference::new(&SURFACES));

/// Returns the routes with their handlers, which find the reference in their requests' extensions.
pub(super) fn router(state: &AppState) -> Router<AppState> {
    let surfaces = SURFACES.iter().map(|surface| surface.router(state));
    surfaces.fold(Router::new(), Router::merge).route_layer(Extension(&REFERENCE))
}

/// Returns the methods that a route's path takes, as `Allow` lists them.
pub(super) fn methods_of(path: &str) -> String {
    let routes = SURFACES.iter().flat_map(|surface| surface.routes).filter(|route| route.path == path);
    let mut methods = Vec::new();
    for route in routes {
        methods.push(route.verb.as_str());
        // The answer to GET without its body.
        if route.verb == Verb::Get {
            methods.push("HEAD");
        }
    }
    methods.join(", ")
}

/// Returns how errors of a route's path look.
pub(super) fn errors_of(path: &str) -> ErrorSchema {
    errors_where(|route| route == path).unwrap_or(ErrorSchema::Object)
}

/// Returns how the error of a path without a route looks: as those beside it; below `/v1` and
/// `/openai` what is not ours is OpenAI's, below `/api` HolmesGPT's.
pub(super) fn errors_near(path: &str) -> ErrorSchema {
    let Some(room) = room_of(path) else { return ErrorSchema::Object };
    let elsewhere = match room.split('/').next() {
        Some("v1" | "openai") => ErrorSchema::OpenAi,
        Some("api") => ErrorSchema::Detail,
        _ => ErrorSchema::Object,
    };
    errors_where(|route| room_of(route) == Some(room)).unwrap_or(elsewhere)
}

/// Returns what the paths of a surface begin with: their first part, with the second where the first says no more than the
/// version. `None` for those that surfaces share.
fn room_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?;
    let end_behind = |from: usize| rest[from..].find('/').map_or(rest.len(), |at| from + at);
    let first = end_behind(0);
    match &rest[..first] {
        "" | ".well-known" => None,
        "v1" | "v2" | "api" => (first < rest.len()).then(|| &rest[..end_behind(first + 1)]),
        alone => Some(alone),
    }
}

fn errors_where(fits: impl Fn(&str) -> bool) -> Option<ErrorSchema> {
    let surface = SURFACES.iter().find(|surface| surface.routes.iter().any(|route| fits(route.path)));
    surface.map(|surface| surface.errors)
}
