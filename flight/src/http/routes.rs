//! The table of all HTTP routes: the router, `GET /openapi.json` and the list at `GET /` are made of it.
//!
//! To add a route, write its handler in the file of its surface and its line in the surface's table here.

mod a2a;
mod ag_ui;
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

/// Returns how the error of a path without a route looks: below `/v1` as those beside it, where what is not ours is
/// OpenAI's.
pub(super) fn errors_near(path: &str) -> ErrorSchema {
    let below_v1 = |path: &str| path.strip_prefix("/v1/")?.split('/').next().map(str::to_owned);
    let Some(first) = below_v1(path) else { return ErrorSchema::Object };
    errors_where(|route| below_v1(route).as_deref() == Some(first.as_str())).unwrap_or(ErrorSchema::OpenAi)
}

fn errors_where(fits: impl Fn(&str) -> bool) -> Option<ErrorSchema> {
    let surface = SURFACES.iter().find(|surface| surface.routes.iter().any(|route| fits(route.path)));
    surface.map(|surface| surface.errors)
}
