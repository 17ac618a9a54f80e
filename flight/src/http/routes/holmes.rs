//! HolmesGPT's routes.

use crate::http::holmes::{self, chat, server};
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface};

const CHAT: &[Media] = &[Media::json(&[
    Field::text("ask", "the question; may be missing where a paused conversation goes on"),
    Field::new(
        "conversation_history",
        FieldKind::List,
        "the conversation as the last answer gave it; first the system's message",
    ),
    Field::text("model", "a configured model's name"),
    Field::new("stream", FieldKind::Flag, "whether to answer with server-sent events"),
    Field::new("response_format", FieldKind::Object, "a JSON schema for `analysis`"),
    Field::new("images", FieldKind::List, "data URIs, or `{url, detail, format}`"),
    Field::new("enable_tool_approval", FieldKind::Flag, "whether a person can be asked about a call"),
    Field::new("tool_decisions", FieldKind::List, "`{tool_call_id, approved, feedback}`"),
    Field::new("frontend_tools", FieldKind::List, "`{name, description, parameters, mode, noop_response}`"),
    Field::new("frontend_tool_results", FieldKind::List, "`{tool_call_id, tool_name, result}`"),
    Field::text("additional_system_prompt", "added to the system's message"),
    Field::new("behavior_controls", FieldKind::Object, "sections of the prompt, on or off"),
])
.with(r#"{"ask": "how many orders were there yesterday?", "stream": true}"#)];

pub(super) const HOLMES: Surface = Surface {
    name: "holmes",
    about: "HolmesGPT's API, for its clients. The key is `X-API-Key` or a bearer token.",
    page: "docs/protocols-holmes.md",
    errors: ErrorSchema::Detail,
    callers: Callers::OwnKeys(holmes::add_keys),
    layers: holmes::add_layers,
    routes: &[
        Route::post("/api/chat", "Answers a question, with its conversation", |verb| verb.answered_by(chat::chat))
            .takes(CHAT)
            .answers(&[JSON, EVENTS])
            .headers(&[Field::text("Last-Event-ID", "goes on with a stream that broke off after this event")]),
        Route::get("/api/model", "The models' names", |verb| verb.answered_by(server::model)),
        Route::get("/api/info", "The server, its models, and with `full` its tools and limits", |verb| {
            verb.answered_by(server::info)
        })
        .query(&[Field::new("detail", FieldKind::OneOf(&["full"]), "how much")]),
        Route::get("/healthz", "The process answers", |verb| verb.answered_by(server::health)).anyone(),
        Route::get("/readyz", "The server takes requests; 503 once it is stopping", |verb| {
            verb.answered_by(server::ready)
        })
        .anyone(),
        Route::post("/api/checks/execute", "501: there are no checks here", |verb| {
            verb.answered_by(server::not_available)
        })
        .takes(&[JSON])
        .status("501"),
        Route::post("/api/oauth/callback", "501: there are no OAuth toolsets here", |verb| {
            verb.answered_by(server::not_available)
        })
        .takes(&[JSON])
        .status("501"),
    ],
};
