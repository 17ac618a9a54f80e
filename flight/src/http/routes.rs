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
use crate::http::route::Surface;
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
