//! OpenAI's routes.

use super::answers;
use crate::http::openai::{
    self, chat, compact, completions, conversations, embeddings, files, models, responses, text_completions, websocket,
};
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface};

const LISTED: &[Field] = &[
    Field::text("after", "the last item of the page before"),
    Field::new("limit", FieldKind::Integer, "items of a page"),
    Field::new("order", FieldKind::OneOf(&["asc", "desc"]), "desc, newest first, unless asked otherwise"),
];
const INCLUDE: Field =
    Field::new("include", FieldKind::List, "what OpenAI's routes may include; what there is, is always included");
const LISTED_ITEMS: &[Field] = &[LISTED[0], LISTED[1], LISTED[2], INCLUDE];
const LISTED_FILES: &[Field] = &[LISTED[0], LISTED[1], LISTED[2], Field::text("purpose", "of this purpose")];
const LISTED_COMPLETIONS: &[Field] = &[
    LISTED[0],
    LISTED[1],
    Field::new("order", FieldKind::OneOf(&["asc", "desc"]), "asc, oldest first, unless asked otherwise"),
    Field::text("model", "of this model"),
    Field::new("metadata", FieldKind::Object, "`metadata[name]=value`: with this pair"),
];
/// What Anthropic's clients send, whose listing goes by the ids before and behind a page.
const LISTED_MODELS: &[Field] = &[
    Field::new("limit", FieldKind::Integer, "with `anthropic-version`: models of a page"),
    Field::text("after_id", "with `anthropic-version`: the last model of the page before"),
    Field::text("before_id", "with `anthropic-version`: the first model of the page behind"),
    Field::new(
        "lifecycle",
        FieldKind::SomeOf(&["active", "deprecated", "retired"]),
        "with `anthropic-version`: models of these stages",
    ),
    BETA,
];
/// What the beta clients of Anthropic's libraries send with each request.
const BETA: Field = Field::new("beta", FieldKind::Flag, "of Anthropic's clients; it has no effect");
const MODEL: Field = Field::text("model", "`querent`, or a configured model's name");
const STREAM: Field = Field::new("stream", FieldKind::Flag, "whether to answer with server-sent events");
const STREAM_OPTIONS: Field = Field::new("stream_options", FieldKind::Object, "`{include_usage}`");
const TOOLS: Field = Field::new("tools", FieldKind::List, "functions that the client executes");
const TOOL_CHOICE: Field = Field::new("tool_choice", FieldKind::TextOrObject, "whether a tool must be called");
const PARALLEL_TOOL_CALLS: Field = Field::new("parallel_tool_calls", FieldKind::Flag, "false: one call in a turn");
const METADATA: Field = Field::new("metadata", FieldKind::Object, "up to 16 pairs of texts");
const STORE: Field = Field::new("store", FieldKind::Flag, "whether it can be retrieved; true unless said otherwise");
const INPUT: Field = Field::new(
    "input",
    FieldKind::TextOrList,
    "a text, or items; it may be missing where what is continued has items that ask or decide something",
);
const INSTRUCTIONS: Field = Field::text("instructions", "what the model is told besides");
const PREVIOUS_RESPONSE: Field = Field::text("previous_response_id", "the response that this one continues");
const CONVERSATION: Field =
    Field::new("conversation", FieldKind::TextOrObject, "the conversation; not with `previous_response_id`");
const SESSION: Field = Field::text("session_id", "keeps the conversation under this id");
const TEXT_FORM: Field = Field::new("text", FieldKind::Object, "`{format}`: the answer's form, a JSON schema");
const REASONING: Field = Field::new("reasoning", FieldKind::Object, "`{summary}` shows the thinking");
const MAX_TOKENS: Field = Field::new("max_tokens", FieldKind::Integer, "tokens of one turn");
const TEMPERATURE: Field = Field::new("temperature", FieldKind::Number, "to the model, 0 to 2");
const TOP_P: Field = Field::new("top_p", FieldKind::Number, "to the model, 0 to 1");
const SEED: Field = Field::new("seed", FieldKind::Number, "to the model, where its provider takes one; a whole number");
const STOP: Field = Field::new("stop", FieldKind::TextOrList, "up to four texts that end the answer");
const PRESENCE_PENALTY: Field = Field::new("presence_penalty", FieldKind::Number, "to models that take one, -2 to 2");
const FREQUENCY_PENALTY: Field = Field::new("frequency_penalty", FieldKind::Number, "to models that take one, -2 to 2");
const MODEL_OPTIONS: Field = Field::new("model_options", FieldKind::Object, "of KsADK's clients: `{thinking}`");
const ATTACHMENTS: Field =
    Field::new("attachments", FieldKind::List, "of KsADK's clients: files of the newest message");
const CURRENT_ATTACHMENTS: Field = Field::new("current_attachments", FieldKind::List, "the same");
const HAS_CURRENT_FILES: Field =
    Field::new("has_current_files", FieldKind::Flag, "false: `attachments` are of earlier messages");

/// What is honoured; fields that are checked and have no effect are in the page alone.
const RESPONSE_BODY: Media = Media::json(&[
    INPUT,
    MODEL,
    STREAM,
    INSTRUCTIONS,
    PREVIOUS_RESPONSE,
    CONVERSATION,
    SESSION,
    STORE,
    Field::new("background", FieldKind::Flag, "whether to answer before it is done"),
    TOOLS,
    TOOL_CHOICE,
    PARALLEL_TOOL_CALLS,
    Field::new("max_tool_calls", FieldKind::Integer, "calls of the server's tools; 0: none"),
    TEXT_FORM,
    Field::new("max_output_tokens", FieldKind::Integer, "tokens of one turn"),
    TEMPERATURE,
    TOP_P,
    PRESENCE_PENALTY,
    FREQUENCY_PENALTY,
    REASONING,
    Field::new("context_management", FieldKind::List, "`{type: compaction, compact_threshold}`"),
    METADATA,
    MODEL_OPTIONS,
    ATTACHMENTS,
    CURRENT_ATTACHMENTS,
    HAS_CURRENT_FILES,
])
.with(r#"{"model": "querent", "input": "how many orders were there yesterday?"}"#);

/// Fields that say how to answer are refused there.
const COUNTED_BODY: Media = Media::json(&[
    INPUT,
    MODEL,
    INSTRUCTIONS,
    PREVIOUS_RESPONSE,
    CONVERSATION,
    SESSION,
    TOOLS,
    TOOL_CHOICE,
    PARALLEL_TOOL_CALLS,
    TEXT_FORM,
    REASONING,
])
.with(r#"{"model": "querent", "input": "how many orders were there yesterday?"}"#);

const CHAT_BODY: Media = Media::json(&[
    Field::new("messages", FieldKind::List, "the conversation so far").required(),
    MODEL,
    STREAM,
    STREAM_OPTIONS,
    SESSION,
    Field::new("store", FieldKind::Flag, "whether it can be retrieved; false unless said otherwise"),
    TOOLS,
    TOOL_CHOICE,
    PARALLEL_TOOL_CALLS,
    Field::new("response_format", FieldKind::Object, "the answer's form, a JSON schema"),
    Field::new("max_completion_tokens", FieldKind::Integer, "tokens of one turn"),
    Field::new("max_tokens", FieldKind::Integer, "the same"),
    TEMPERATURE,
    TOP_P,
    SEED,
    STOP,
    PRESENCE_PENALTY,
    FREQUENCY_PENALTY,
    Field::text("reasoning_effort", "other than `none`: shows the thinking"),
    METADATA,
    MODEL_OPTIONS,
    ATTACHMENTS,
    CURRENT_ATTACHMENTS,
    HAS_CURRENT_FILES,
])
.with(r#"{"model": "querent", "messages": [{"role": "user", "content": "how many orders were there yesterday?"}]}"#);

pub(super) const OPENAI: Surface = Surface {
    name: "openai",
    about: "OpenAI's interface, for its libraries: the agent as a model.",
    page: "docs/openai.md",
    errors: ErrorSchema::OpenAi,
    callers: Callers::Tokens,
    layers: openai::add_layers,
    routes: &[
        Route::post("/v1/responses", "Creates a response", |verb| verb.answered_by(responses::create))
            .takes(&[RESPONSE_BODY])
            .answers(&[JSON, EVENTS]),
        Route::get("/v1/responses", "A WebSocket: `response.create` is a request, its events are answers", |verb| {
            verb.answered_by(websocket::connect)
        })
        .status("101")
        .answers(&[]),
        Route::post("/v1/responses/input_tokens", "How many tokens a request has, estimated", |verb| {
            verb.answered_by(responses::input_tokens)
        })
        .takes(&[COUNTED_BODY]),
        Route::post("/v1/responses/compact", "Sums up a conversation as an item", |verb| {
            verb.answered_by(compact::create)
        })
        .takes(&[Media::json(&[
            MODEL,
            Field::new("input", FieldKind::TextOrList, "a text, or items"),
            INSTRUCTIONS,
            Field::text("previous_response_id", "the response whose conversation is summed up"),
        ])
        .with(r#"{"model": "querent", "input": "how many orders were there yesterday?"}"#)]),
        Route::get("/v1/responses/{id}", "A response, or its events again", |verb| {
            verb.answered_by(responses::retrieve)
        })
        .query(&[
            STREAM,
            Field::new("starting_after", FieldKind::Integer, "with `stream`: the last event that was seen"),
            INCLUDE,
            Field::new("include_obfuscation", FieldKind::Flag, "it has no effect: nothing is obfuscated"),
        ])
        .answers(&[JSON, EVENTS]),
        Route::delete("/v1/responses/{id}", "Deletes a response; one in progress is cancelled first", |verb| {
            verb.answered_by(responses::remove)
        }),
        Route::post("/v1/responses/{id}", "`{id}:pause` and `{id}:resume` of KsADK: 501", |verb| {
            verb.answered_by(responses::pause_or_resume)
        })
        .takes(&[JSON]),
        Route::post("/v1/responses/{id}/cancel", "Cancels a response in progress", |verb| {
            verb.answered_by(responses::cancel)
        }),
        Route::get("/v1/responses/{id}/input_items", "What the response was asked", |verb| {
            verb.answered_by(responses::list_input)
        })
        .query(LISTED_ITEMS),
        Route::post("/v1/conversations", "Creates a conversation", |verb| verb.answered_by(conversations::create))
            .takes(&[Media::json(&[METADATA, Field::new("items", FieldKind::List, "its first items")])
                .with(r#"{"metadata": {"topic": "orders"}}"#)]),
        Route::get("/v1/conversations/{id}", "A conversation", |verb| verb.answered_by(conversations::get)),
        Route::post("/v1/conversations/{id}", "Replaces a conversation's metadata", |verb| {
            verb.answered_by(conversations::update)
        })
        .takes(&[Media::json(&[METADATA.required()])]),
        Route::delete("/v1/conversations/{id}", "Deletes a conversation; its responses stay", |verb| {
            verb.answered_by(conversations::remove)
        }),
        Route::get("/v1/conversations/{id}/items", "Items of a conversation", |verb| {
            verb.answered_by(conversations::list_items)
        })
        .query(LISTED_ITEMS),
        Route::post("/v1/conversations/{id}/items", "Adds items, up to 20 at once", |verb| {
            verb.answered_by(conversations::add_items)
        })
        .query(&[INCLUDE])
        .takes(&[Media::json(&[Field::new("items", FieldKind::List, "the items").required()])]),
        Route::get("/v1/conversations/{id}/items/{item}", "One item", |verb| verb.answered_by(conversations::get_item))
            .query(&[INCLUDE]),
        Route::delete("/v1/conversations/{id}/items/{item}", "Deletes an item", |verb| {
            verb.answered_by(conversations::remove_item)
        }),
        Route::post("/v1/chat/completions", "The next message of a chat", |verb| verb.answered_by(chat::create))
            .takes(&[CHAT_BODY])
            .answers(&[JSON, EVENTS]),
        Route::get("/v1/chat/completions", "Stored completions", |verb| verb.answered_by(completions::list))
            .query(LISTED_COMPLETIONS),
        Route::get("/v1/chat/completions/{id}", "A stored completion", |verb| verb.answered_by(completions::retrieve)),
        Route::post("/v1/chat/completions/{id}", "Replaces its metadata", |verb| verb.answered_by(completions::update))
            .takes(&[Media::json(&[METADATA.required()])]),
        Route::delete("/v1/chat/completions/{id}", "Deletes it", |verb| verb.answered_by(completions::remove)),
        Route::get("/v1/chat/completions/{id}/messages", "What it was asked", |verb| {
            verb.answered_by(completions::messages)
        })
        .query(LISTED),
        Route::post("/v1/completions", "The answer to a prompt, as older libraries ask for it", |verb| {
            verb.answered_by(text_completions::create)
        })
        .takes(&[Media::json(&[
            Field::new("prompt", FieldKind::TextOrList, "the question").required(),
            MODEL,
            STREAM,
            STREAM_OPTIONS,
            MAX_TOKENS,
            TEMPERATURE,
            TOP_P,
            SEED,
            STOP,
            PRESENCE_PENALTY,
            FREQUENCY_PENALTY,
        ])
        .with(r#"{"model": "querent", "prompt": "how many orders were there yesterday?"}"#)])
        .answers(&[JSON, EVENTS]),
        Route::post("/v1/embeddings", "Vectors of texts, from the embedder of the settings", |verb| {
            verb.answered_by(embeddings::create)
        })
        .takes(&[Media::json(&[
            Field::new("input", FieldKind::TextOrList, "a text, or texts").required(),
            Field::text("model", "any name; there is one embedder"),
            Field::new("encoding_format", FieldKind::OneOf(&["float", "base64"]), "float unless asked otherwise"),
            Field::new("dimensions", FieldKind::Integer, "the dimension that the model has"),
        ])
        .with(r#"{"input": "late departures", "model": "all-MiniLM-L6-v2"}"#)]),
        Route::get("/v1/models", "The agent, then every configured model", |verb| verb.answered_by(models::list))
            .query(LISTED_MODELS)
            .answers(&[answers::MODELS]),
        Route::get("/v1/models/{id}", "One model", |verb| verb.answered_by(models::get)).query(&[BETA]),
        Route::get("/v1/files", "Your files", |verb| verb.answered_by(files::list)).query(LISTED_FILES),
        Route::post("/v1/files", "Uploads a file that messages name by its id", |verb| verb.answered_by(files::upload))
            .takes(&[Media {
                content_type: "multipart/form-data",
                about: "a form",
                fields: &[
                    Field::new("file", FieldKind::File, "the file").required(),
                    Field::text("purpose", "`user_data`, `assistants` and so on; it has no effect").required(),
                ],
                example: None,
            }]),
        Route::get("/v1/files/{id}", "What is known of a file", |verb| verb.answered_by(files::get)),
        Route::delete("/v1/files/{id}", "Deletes a file", |verb| verb.answered_by(files::remove)),
        Route::get("/v1/files/{id}/content", "A file's content", |verb| verb.answered_by(files::content))
            .answers(&[Media::new("application/octet-stream", "the bytes, in the type that they came with")]),
    ],
};
