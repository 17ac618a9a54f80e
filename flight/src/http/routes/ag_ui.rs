//! AG-UI's routes.

use crate::http::ag_ui;
use crate::http::openai;
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, Media, Route, Surface};

const BODY: Media = Media::json(&[
    Field::text("threadId", "the client's name of the conversation").required(),
    Field::text("runId", "the client's name of the run").required(),
    Field::new("messages", FieldKind::List, "the conversation so far").required(),
    Field::new("tools", FieldKind::List, "functions that the client executes"),
    Field::new("context", FieldKind::List, "what the application says of itself"),
    Field::new("state", FieldKind::Object, "the application's state, which the model reads"),
    Field::new("resume", FieldKind::List, "decisions on calls that waited for a person"),
    Field::new("forwardedProps", FieldKind::Object, "`{thinking: true}` shows the thinking"),
])
.with(
    r#"{"threadId": "t1", "runId": "r1", "messages": [{"id": "m1", "role": "user", "content": "how many orders were there?"}]}"#,
);

pub(super) const AG_UI: Surface = Surface {
    name: "ag-ui",
    about: "AG-UI, for interfaces of agents: a run's events as its client library reads them.",
    page: "docs/protocols-ag-ui-a2a.md",
    errors: ErrorSchema::OpenAi,
    callers: Callers::Tokens,
    layers: openai::add_layers,
    routes: &[Route::post("/ag-ui", "Runs the agent on a conversation", |verb| verb.answered_by(ag_ui::run))
        .takes(&[BODY])
        .answers(&[EVENTS])],
};
