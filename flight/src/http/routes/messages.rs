//! Anthropic's routes.

use crate::http::messages;
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface};

const MODEL: Field = Field::text("model", "a configured model's name; any other is the default").required();
const MESSAGES: Field = Field::new("messages", FieldKind::List, "the conversation so far").required();
const SYSTEM: Field = Field::new("system", FieldKind::TextOrList, "what the model is told besides");
const TOOLS: Field = Field::new("tools", FieldKind::List, "functions that the client executes");
const TOOL_CHOICE: Field = Field::new("tool_choice", FieldKind::Object, "auto, any, none, or a tool");
const THINKING: Field = Field::new("thinking", FieldKind::Object, "`{type: enabled}` shows the thinking");
const OUTPUT_CONFIG: Field =
    Field::new("output_config", FieldKind::Object, "`{format}`: the answer's form, a JSON schema");
const OUTPUT_FORMAT: Field =
    Field::new("output_format", FieldKind::Object, "the same, as clients sent it while it was a beta");

const BODY: Media = Media::json(&[
    MODEL,
    MESSAGES,
    Field::new("max_tokens", FieldKind::Integer, "tokens of one turn").required(),
    SYSTEM,
    Field::new("stream", FieldKind::Flag, "whether to answer with server-sent events"),
    TOOLS,
    TOOL_CHOICE,
    THINKING,
    Field::new("temperature", FieldKind::Number, "to the model, 0 to 1"),
    Field::new("top_p", FieldKind::Number, "to the model, 0 to 1"),
    Field::new("stop_sequences", FieldKind::List, "texts that end the answer"),
    OUTPUT_CONFIG,
    OUTPUT_FORMAT,
])
.with(
    r#"{"model": "querent", "max_tokens": 1000, "messages": [{"role": "user", "content": "how many orders were there?"}]}"#,
);

/// What the beta clients of its libraries send with each request.
const BETA: &[Field] = &[Field::new("beta", FieldKind::Flag, "it has no effect")];
const HEADERS: &[Field] = &[
    Field::text("anthropic-version", "a date, as in 2023-06-01"),
    Field::text(
        "anthropic-beta",
        "betas, each NAME-DATE; they have no effect, since each field is honoured or refused by its name",
    ),
];

pub(super) const ANTHROPIC: Surface = Surface {
    name: "anthropic",
    about: "Anthropic's Messages, for its libraries: the agent as a model.",
    page: "docs/messages.md",
    errors: ErrorSchema::Anthropic,
    callers: Callers::Tokens,
    layers: messages::add_layers,
    routes: &[
        Route::post("/v1/messages", "The next message of a conversation", |verb| verb.answered_by(messages::create))
            .query(BETA)
            .headers(HEADERS)
            .takes(&[BODY])
            .answers(&[JSON, EVENTS]),
        Route::post("/v1/messages/count_tokens", "How many tokens a request has, estimated", |verb| {
            verb.answered_by(messages::count_tokens)
        })
        .query(BETA)
        .headers(HEADERS)
        .takes(&[Media::json(&[
            MODEL,
            MESSAGES,
            SYSTEM,
            TOOLS,
            TOOL_CHOICE,
            THINKING,
            OUTPUT_CONFIG,
            OUTPUT_FORMAT,
        ])]),
    ],
};
