//! A2A's routes.

use crate::http::a2a;
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface};

const BODY: Media = Media::json(&[
    Field::text("jsonrpc", "2.0").required(),
    Field::new("id", FieldKind::Any, "a text or a number, which the answer repeats").required(),
    Field::text("method", "`SendMessage`, `SendStreamingMessage`, `GetTask`, `CancelTask`, `SubscribeToTask`").required(),
    Field::new("params", FieldKind::Object, "of the method"),
])
.with(
    r#"{"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": "how many orders were there?"}]}}}"#,
);

pub(super) const A2A: Surface = Surface {
    name: "a2a",
    about: "A2A, for other agents: a message begins a task.",
    page: "docs/protocols-ag-ui-a2a.md",
    errors: ErrorSchema::JsonRpc,
    callers: Callers::Tokens,
    layers: a2a::add_layers,
    routes: &[
        Route::get("/.well-known/agent-card.json", "The agent's card", |verb| verb.answered_by(a2a::card)).anyone(),
        Route::get("/.well-known/agent.json", "The same, where older clients look", |verb| verb.answered_by(a2a::card))
            .anyone(),
        Route::post("/a2a", "One request of JSON-RPC, in the versions 1.0 and 0.3", |verb| verb.answered_by(a2a::call))
            .headers(&[Field::text("A2A-Version", "1.0, or 0.3 where it is absent")])
            .takes(&[BODY])
            .answers(&[JSON, EVENTS]),
    ],
};
