//! Cube's routes.

use crate::http::cube::{self, chat, embed};
use crate::http::route::{Callers, ErrorSchema, Field, FieldKind, Media, Route, Surface};

const SETTINGS: Field = Field::new(
    "sessionSettings",
    FieldKind::Object,
    "who asks: `{externalId}` or `{internalId}`; not with a user's token",
);
const CHAT_ID: Field = Field::text("chatId", "the thread");

const CHAT: &[Media] = &[Media::json(&[
    Field::text("input", "the message; without one the thread's state is read"),
    CHAT_ID,
    Field::text("messageId", "the client's id of the message, as 1717500000000-message"),
    SETTINGS,
    Field::text("activeBranchName", "a branch of the data; there is only `main`"),
    Field::new("isDefaultBranch", FieldKind::Flag, "whether that branch is the default one, whatever its name"),
    Field::new("isDevMode", FieldKind::Flag, "whether thinking is shown"),
])
.with(r#"{"input": "how many orders were there yesterday?", "sessionSettings": {"externalId": "ann@example.com"}}"#)];

const USER: &[Media] = &[Media::json(&[
    Field::text("externalId", "the application's user"),
    Field::text("internalId", "or a user of this server"),
    Field::text("email", "the user's address"),
    Field::new("userAttributes", FieldKind::List, "`{name, value}` pairs"),
    Field::new("groups", FieldKind::List, "names of groups"),
    Field::new("securityContext", FieldKind::Object, "whatever else"),
    Field::new("isEphemeral", FieldKind::Flag, "whether the user goes after a while; true unless said otherwise"),
    Field::new("ephemeralTtlSeconds", FieldKind::Integer, "after how long; a week unless said otherwise"),
])
.with(r#"{"externalId": "ann@example.com"}"#)];

const LINES: Media = Media::new("application/json", "a JSON object a line");

pub(super) const CUBE: Surface = Surface {
    name: "cube",
    about: "The chat API of Cube's clients. `Authorization: Api-Key KEY`, or `Bearer TOKEN` for an application's user.",
    page: "docs/protocols-cube.md",
    errors: ErrorSchema::Flat,
    callers: Callers::OwnKeys(cube::add_keys),
    layers: cube::add_layers,
    routes: &[
        Route::post(
            "/api/v1/public/{account}/agents/{agent}/chat/stream-chat-state",
            "Sends a message to a thread, or reads it",
            |verb| verb.answered_by(chat::stream),
        )
        .takes(CHAT)
        .answers(&[LINES]),
        Route::post("/api/v1/public/{account}/agents/{agent}/chat/abort", "Ends what a thread is doing", |verb| {
            verb.answered_by(chat::abort)
        })
        .takes(&[Media::json(&[CHAT_ID.required(), SETTINGS])])
        .answers(&[])
        .status("204"),
        Route::post("/api/v1/embed/generate-session", "A session of a user, `{sessionId}`", |verb| {
            verb.answered_by(embed::generate_session)
        })
        .takes(USER),
        Route::post("/api/v1/embed/session/token", "The token of a session, `{token}`", |verb| {
            verb.answered_by(embed::token)
        })
        .takes(&[Media::json(&[Field::text("sessionId", "the session").required()])]),
    ],
};
