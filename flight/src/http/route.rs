//! What a route is: a method of a path, what answers it, who may call it, and what the reference says of it.
//!
//! A [`Surface`] is the routes of one protocol. The router, the OpenAPI document and the list at `GET /` are all made of
//! the same surfaces, so a route cannot be in one of them and not in the others.

mod content_type;
mod query_parameters;
mod unread_body;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any, delete, get, patch, post};
use http::Method;
use querent_catalog::Role;

use crate::auth::require_role;
use crate::guard::caller;
use crate::http::{elsewhere, idempotency};
use crate::state::AppState;
use crate::telemetry::record_caller;

pub(super) use query_parameters::{RefusedParameter, TakenBodies};

/// One method of one path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) verb: Verb,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    /// What answers it.
    pub(super) handler: Endpoint,
    /// The least role of its callers; `None` lets everybody in.
    pub(super) role: Option<Role>,
    pub(super) query: &'static [Field],
    /// Whether the handler refuses parameters itself, since which there are depends on their values.
    pub(super) checks_its_query: bool,
    pub(super) headers: &'static [Field],
    pub(super) bodies: &'static [Media],
    pub(super) answers: &'static [Media],
    pub(super) status: &'static str,
}

/// A handler, given the method that it answers: `|verb| verb.answered_by(handler)`.
pub(super) type Endpoint = fn(Verb) -> MethodRouter<AppState>;

/// Routes of one protocol.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// The page that says more.
    pub(super) page: &'static str,
    pub(super) errors: ErrorSchema,
    pub(super) routes: &'static [Route],
    pub(super) callers: Callers,
    /// Adds what surrounds all of its routes, such as the shape of their errors.
    pub(super) layers: Layers,
}

/// Adds layers to a router.
pub(super) type Layers = fn(Router<AppState>, &AppState) -> Router<AppState>;

/// How a surface knows who calls the routes that ask for a role.
#[derive(Debug, Clone, Copy)]
pub(super) enum Callers {
    /// By the server's tokens.
    Tokens,
    /// By keys of its own: the layers that check them, which leave the `Principal` in the request's extensions.
    OwnKeys(Layers),
}

/// HTTP methods that routes have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    Post,
    Patch,
    Delete,
    /// Whatever the method: a catch-all, which the reference leaves out.
    Any,
}

/// A parameter, or a field of a JSON body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) kind: FieldKind,
    pub(super) required: bool,
    /// Whether it may be null.
    pub(super) nullable: bool,
    pub(super) about: &'static str,
}

/// What a value is.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldKind {
    Text,
    Integer,
    Number,
    Flag,
    /// A list of anything.
    List,
    /// A list of objects with these fields.
    ListOf(&'static [Field]),
    /// A list of strings.
    Texts,
    /// A list of some of these strings.
    SomeOf(&'static [&'static str]),
    /// An object with any fields.
    Object,
    /// An object with these fields.
    ObjectOf(&'static [Field]),
    Any,
    /// One of these strings.
    OneOf(&'static [&'static str]),
    TextOrNull,
    /// A string or a list.
    TextOrList,
    /// A string or an object.
    TextOrObject,
    File,
}

/// A body of a content type.
#[derive(Debug, Clone, Copy)]
pub(super) struct Media {
    pub(super) content_type: &'static str,
    pub(super) about: &'static str,
    /// Fields of a JSON object or a form.
    pub(super) fields: &'static [Field],
    /// JSON for JSON bodies, else the body itself.
    pub(super) example: Option<&'static str>,
}

/// How errors of a surface look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorSchema {
    Object,
    Flat,
    OpenAi,
    Anthropic,
    /// `{"detail": ...}`.
    Detail,
    Kusto,
    JsonRpc,
}

impl Verb {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
            Self::Any => "*",
        }
    }

    /// Returns the router entry of a handler for this method.
    pub(super) fn answered_by<H, T>(self, handler: H) -> MethodRouter<AppState>
    where
        H: Handler<T, AppState>,
        T: 'static,
    {
        match self {
            Self::Get => get(handler),
            Self::Post => post(handler),
            Self::Patch => patch(handler),
            Self::Delete => delete(handler),
            Self::Any => any(handler),
        }
    }
}

impl Surface {
    /// Returns the routes with their handlers, behind the roles that they ask for.
    pub(super) fn router(&self, state: &AppState) -> Router<AppState> {
        let mut router = Router::new();
        for role in [None, Some(Role::Read), Some(Role::Write), Some(Role::Admin)] {
            let mut routes = self.routes.iter().filter(|route| route.role == role).peekable();
            if routes.peek().is_none() {
                continue;
            }
            let group = routes.fold(Router::new(), |group, route| group.route(route.path, (route.handler)(route.verb)));
            // Inside of what asks who calls.
            let checked = |group: Router<AppState>| {
                let forwarded = group.route_layer(from_fn_with_state(state.clone(), elsewhere::forward));
                let once = forwarded.route_layer(from_fn_with_state(state.clone(), idempotency::once));
                let told = once.route_layer(from_fn_with_state((state.clone(), self.routes), unread_body::check));
                let typed = match self.errors {
                    // HolmesGPT's server reads a body whatever its type; pages call ask and Cube's routes by `fetch`, which
                    // says `text/plain` of a text by itself.
                    ErrorSchema::Detail | ErrorSchema::Flat => told,
                    _ => told.route_layer(from_fn_with_state(self.routes, content_type::check)),
                };
                typed.route_layer(from_fn_with_state(self.routes, query_parameters::check))
            };
            router = router.merge(match (role, self.callers) {
                (None, _) => group,
                (Some(role), Callers::Tokens) => {
                    checked(group).route_layer(from_fn_with_state((state.clone(), role), authorize))
                }
                (Some(_), Callers::OwnKeys(layers)) => layers(checked(group), state),
            });
        }
        (self.layers)(router, state)
    }
}

/// Adds no layers.
pub(super) fn no_layers(router: Router<AppState>, _state: &AppState) -> Router<AppState> {
    router
}

/// Lets a request pass whose caller is known and has the role; its handler finds the `Principal` in the extensions.
async fn authorize(State((state, needed)): State<(AppState, Role)>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let principal = match caller(&state, &parts).await {
        Ok(principal) => principal,
        Err(error) => return error.into_response(),
    };
    if let Err(error) = require_role(&principal, needed) {
        return error.into_response();
    }
    record_caller(principal.subject());
    parts.extensions.insert(principal);
    next.run(Request::from_parts(parts, body)).await
}

impl ErrorSchema {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Object => "Error",
            Self::Flat => "AgentError",
            Self::OpenAi => "OpenAiError",
            Self::Anthropic => "AnthropicError",
            Self::Detail => "HolmesError",
            Self::Kusto => "KustoError",
            Self::JsonRpc => "JsonRpcError",
        }
    }
}

impl Route {
    pub(super) const fn get(path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self::new(Verb::Get, path, summary, handler)
    }

    pub(super) const fn post(path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self::new(Verb::Post, path, summary, handler)
    }

    pub(super) const fn patch(path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self::new(Verb::Patch, path, summary, handler)
    }

    pub(super) const fn delete(path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self::new(Verb::Delete, path, summary, handler)
    }

    pub(super) const fn any(path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self::new(Verb::Any, path, summary, handler)
    }

    const fn new(verb: Verb, path: &'static str, summary: &'static str, handler: Endpoint) -> Self {
        Self {
            verb,
            path,
            summary,
            handler,
            role: Some(Role::Read),
            query: &[],
            checks_its_query: false,
            headers: &[],
            bodies: &[],
            answers: &[JSON],
            status: "200",
        }
    }

    /// Whether this is the route of a request for which the router has found one.
    fn is_of(&self, request: &Request) -> bool {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str);
        // The answer to HEAD is that to GET without its body.
        let method = if request.method() == Method::HEAD { Method::GET.as_str() } else { request.method().as_str() };
        path == Some(self.path) && self.verb.as_str() == method
    }

    /// Lets callers in without a token.
    pub(super) const fn anyone(mut self) -> Self {
        self.role = None;
        self
    }

    pub(super) const fn writers(mut self) -> Self {
        self.role = Some(Role::Write);
        self
    }

    pub(super) const fn admins(mut self) -> Self {
        self.role = Some(Role::Admin);
        self
    }

    pub(super) const fn query(mut self, query: &'static [Field]) -> Self {
        self.query = query;
        self
    }

    /// Leaves it to the handler to refuse parameters.
    pub(super) const fn checks_its_query(mut self) -> Self {
        self.checks_its_query = true;
        self
    }

    pub(super) const fn headers(mut self, headers: &'static [Field]) -> Self {
        self.headers = headers;
        self
    }

    pub(super) const fn takes(mut self, bodies: &'static [Media]) -> Self {
        self.bodies = bodies;
        self
    }

    pub(super) const fn answers(mut self, answers: &'static [Media]) -> Self {
        self.answers = answers;
        self
    }

    pub(super) const fn status(mut self, status: &'static str) -> Self {
        self.status = status;
        self
    }
}

impl Field {
    pub(super) const fn new(name: &'static str, kind: FieldKind, about: &'static str) -> Self {
        Self { name, kind, required: false, nullable: false, about }
    }

    pub(super) const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, FieldKind::Text, about)
    }

    pub(super) const fn or_null(mut self) -> Self {
        self.nullable = true;
        self
    }

    pub(super) const fn required(mut self) -> Self {
        self.required = true;
        self
    }
}

impl Media {
    pub(super) const fn new(content_type: &'static str, about: &'static str) -> Self {
        Self { content_type, about, fields: &[], example: None }
    }

    /// A JSON object.
    pub(super) const fn json(fields: &'static [Field]) -> Self {
        Self { fields, ..JSON }
    }

    pub(super) const fn with(mut self, example: &'static str) -> Self {
        self.example = Some(example);
        self
    }
}

/// A JSON document.
pub(super) const JSON: Media = Media::new("application/json", "a JSON object");
/// Server-sent events.
pub(super) const EVENTS: Media = Media::new("text/event-stream", "server-sent events");
