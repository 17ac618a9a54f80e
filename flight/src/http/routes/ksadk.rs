//! KsADK's and ADK's routes.

use crate::http::ksadk::actions;
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface};
use crate::http::{adk, ksadk, openai};

/// Every action that has no route of its own.
const ANY_ACTION: &str = "/agentengine/api/v1/{*action}";

const AGENT_ID: Field = Field::text("AgentId", "`querent`, or what its client calls it");
const USER_ID: Field = Field::text("UserId", "the application's user; `user` unless said otherwise");
const SESSION_ID: Field = Field::text("SessionId", "the session");
const ID: Field = Field::text("Id", "the session, as KsADK's own client calls it");
const INVOCATION_ID: Field = Field::text("InvocationId", "the run");
const AFTER: Field = Field::new("AfterSeqId", FieldKind::Integer, "only later events");

const RUN_AGENT: Media = Media::json(&[
    AGENT_ID.required(),
    Field::new("Messages", FieldKind::List, "the conversation so far"),
    Field::new("ResponsesInput", FieldKind::TextOrList, "the same as items of the Responses API"),
    USER_ID,
    SESSION_ID,
    INVOCATION_ID,
    Field::text("PreviousResponseId", "the response that this one continues"),
    Field::new("ApiFormat", FieldKind::OneOf(&["responses", "chat_completions"]), "what the answer is"),
    Field::new("Stream", FieldKind::Flag, "whether to answer with server-sent events"),
    Field::new("Background", FieldKind::Flag, "whether to answer at once"),
    Field::text("Model", "a configured model's name"),
    Field::new("ModelOptions", FieldKind::Object, "`{\"thinking\": true}` shows thinking"),
    Field::new("Metadata", FieldKind::Object, "kept with the run"),
    Field::new("Tools", FieldKind::List, "functions that the client executes"),
    Field::new("attachments", FieldKind::List, "files beside the message"),
])
.with(r#"{"AgentId": "querent", "Messages": [{"role": "user", "content": "how many orders were there yesterday?"}]}"#);

const OF_SESSION: &[Media] = &[Media::json(&[
    SESSION_ID,
    AGENT_ID,
    USER_ID,
    Field::new("ExpiresHours", FieldKind::Integer, "it has no effect: sessions are kept as `agent.retention` says"),
])];
const OF_SESSIONS: &[Media] = &[Media::json(&[
    AGENT_ID,
    USER_ID,
    Field::new("Page", FieldKind::Integer, "the page, from 1 on"),
    Field::new("PageSize", FieldKind::Integer, "sessions of a page; 20 unless said otherwise"),
])];
const OF_ONE: &[Media] = &[Media::json(&[SESSION_ID, ID, AGENT_ID, USER_ID])];
const BEFORE: Field = Field::new("BeforeSeqId", FieldKind::Integer, "only earlier events");
const LIMIT: Field = Field::new("Limit", FieldKind::Integer, "events at most");
const EVENT_TYPES: Field = Field::new("EventTypes", FieldKind::List, "only events of these types");
const CHECKPOINTS: Field = Field::new("CheckpointIds", FieldKind::List, "501, unless it is empty");
const OF_EVENTS: &[Media] = &[Media::json(&[
    SESSION_ID,
    ID,
    AGENT_ID,
    USER_ID,
    AFTER,
    BEFORE,
    LIMIT,
    EVENT_TYPES,
    CHECKPOINTS,
    Field::new("Offset", FieldKind::Integer, "how many events to skip"),
])];
const OF_MESSAGES: &[Media] = &[Media::json(&[
    SESSION_ID,
    ID,
    AGENT_ID,
    USER_ID,
    AFTER,
    BEFORE,
    LIMIT,
    EVENT_TYPES,
    CHECKPOINTS,
    Field::new("IncludeReasoning", FieldKind::Flag, "the thinking that led to an answer"),
    Field::new("IncludeToolEvents", FieldKind::Flag, "the calls that led to an answer, with their results"),
    Field::new("IncludeAttachments", FieldKind::Flag, "it has no effect: messages are text"),
    Field::text("CursorSource", "it has no effect: there is one"),
])];

const RESPONSE_ID: Field = Field::text("ResponseId", "the response");
const OF_RESPONSE: &[Media] = &[Media::json(&[SESSION_ID.required(), RESPONSE_ID.required(), AGENT_ID, USER_ID])];
const OF_FEEDBACK: &[Media] = &[Media::json(&[
    SESSION_ID.required(),
    RESPONSE_ID.required(),
    Field::new("Rating", FieldKind::OneOf(&["up", "down"]), "right or wrong").required(),
    Field::text("Comment", "in words"),
    AGENT_ID,
    USER_ID,
    Field::text("EventId", "repeated"),
    Field::text("TraceId", "repeated"),
    Field::text("RootSpanId", "repeated"),
])];

pub(super) const KSADK: Surface = Surface {
    name: "ksadk",
    about: "KsADK's actions, for its applications. Answers are `{Code, Message, RequestId, Action, Data}`.",
    page: "docs/protocols-ksadk-adk.md",
    errors: ErrorSchema::OpenAi,
    callers: Callers::Tokens,
    layers: ksadk::add_layers,
    routes: &[
        Route::post("/agentengine/api/v1/RunAgent", "Runs the agent", |verb| verb.answered_by(actions::run_agent))
            .takes(&[RUN_AGENT])
            .answers(&[JSON, EVENTS]),
        Route::post("/agentengine/api/v1/CancelRun", "Cancels a run", |verb| verb.answered_by(actions::cancel_run))
            .takes(&[Media::json(&[INVOCATION_ID, SESSION_ID, AGENT_ID, USER_ID])]),
        Route::get(
            "/agentengine/api/v1/SubscribeRunEvents",
            "A run's session events, those that were and those that come, then `[DONE]`",
            |verb| verb.answered_by(actions::subscribe),
        )
        .query(&[SESSION_ID, INVOCATION_ID, AFTER, AGENT_ID, USER_ID])
        .answers(&[EVENTS]),
        Route::post("/agentengine/api/v1/CreateSession", "Creates a session", |verb| {
            verb.answered_by(ksadk::sessions::create)
        })
        .takes(OF_SESSION),
        Route::post("/agentengine/api/v1/ListSessions", "Lists sessions", |verb| {
            verb.answered_by(ksadk::sessions::list)
        })
        .takes(OF_SESSIONS),
        Route::post("/agentengine/api/v1/GetSession", "One session", |verb| verb.answered_by(ksadk::sessions::get))
            .takes(OF_ONE),
        Route::post("/agentengine/api/v1/DeleteSession", "Deletes a session with its runs", |verb| {
            verb.answered_by(ksadk::sessions::remove)
        })
        .takes(OF_ONE),
        Route::post("/agentengine/api/v1/ListSessionEvents", "Events of a session's newest runs", |verb| {
            verb.answered_by(ksadk::sessions::events)
        })
        .takes(OF_EVENTS),
        Route::post("/agentengine/api/v1/ListSessionMessages", "Messages of a session's newest runs", |verb| {
            verb.answered_by(ksadk::sessions::messages)
        })
        .takes(OF_MESSAGES),
        Route::post("/agentengine/api/v1/GetAgentUiBootstrap", "What the web interface asks first", |verb| {
            verb.answered_by(ksadk::sessions::bootstrap)
        })
        .takes(&[Media::json(&[AGENT_ID, SESSION_ID, USER_ID])]),
        Route::post("/agentengine/api/v1/ListAgentModels", "Models to choose from", |verb| {
            verb.answered_by(ksadk::sessions::models)
        })
        .takes(&[Media::json(&[AGENT_ID, Field::text("Name", "it has no effect: there is one agent")])]),
        Route::post("/agentengine/api/v1/UploadFile", "Uploads a file that messages name by its id", |verb| {
            verb.answered_by(ksadk::sessions::upload)
        })
        .takes(&[Media {
            content_type: "multipart/form-data",
            about: "a form",
            fields: &[Field::new("file", FieldKind::File, "the file").required()],
            example: None,
        }]),
        Route::post("/agentengine/api/v1/UpsertResponseFeedback", "Says that a response is right or wrong", |verb| {
            verb.answered_by(ksadk::feedback::upsert)
        })
        .takes(OF_FEEDBACK),
        Route::post("/agentengine/api/v1/GetResponseFeedback", "What you said of a response", |verb| {
            verb.answered_by(ksadk::feedback::get)
        })
        .takes(OF_RESPONSE),
        Route::post("/agentengine/api/v1/DeleteResponseFeedback", "Takes back what you said of a response", |verb| {
            verb.answered_by(ksadk::feedback::remove)
        })
        .takes(OF_RESPONSE),
        Route::any(ANY_ACTION, "Every other action", |verb| verb.answered_by(actions::other_action)),
        Route::get("/agentengine/api/v1/AttachmentContent", "An uploaded file's bytes", |verb| {
            verb.answered_by(actions::attachment)
        })
        .query(&[Field::text("FileUri", "the file's id").required()]),
    ],
};

const ADK_RUN: &[Media] = &[Media::json(&[
    Field::text("appName", "`querent`, or what its client calls it").required(),
    Field::text("userId", "the application's user").required(),
    Field::text("sessionId", "the session; made when it is not there"),
    Field::new("newMessage", FieldKind::Object, "`{role, parts}`").required(),
    Field::new("streaming", FieldKind::Flag, "whether pieces of text are sent too"),
    Field::new("stateDelta", FieldKind::Object, "merged into the session's state"),
    Field::text("invocationId", "the run"),
    Field::text("model", "a configured model's name"),
    Field::new("modelOptions", FieldKind::Object, "`{\"thinking\": true}` shows thinking"),
    Field::new("tools", FieldKind::List, "functions that the client executes"),
])
.with(
    r#"{"appName": "querent", "userId": "user", "sessionId": "s1",
    "newMessage": {"role": "user", "parts": [{"text": "how many orders were there yesterday?"}]}}"#,
)];
const SESSION: &[Media] = &[Media::json(&[Field::new("state", FieldKind::Object, "the session's first state")])];

pub(super) const ADK: Surface = Surface {
    name: "adk",
    about: "The routes of ADK's API server, for its applications and its web interface.",
    page: "docs/protocols-ksadk-adk.md",
    errors: ErrorSchema::OpenAi,
    callers: Callers::Tokens,
    layers: openai::add_layers,
    routes: &[
        Route::post("/run_sse", "Runs the agent; ADK events as server-sent events", |verb| {
            verb.answered_by(adk::run_sse)
        })
        .takes(ADK_RUN)
        .answers(&[EVENTS]),
        Route::post("/run", "Runs the agent; a list of ADK events", |verb| verb.answered_by(adk::run)).takes(ADK_RUN),
        Route::get("/list-apps", "The agent's name", |verb| verb.answered_by(adk::list_apps)).query(&[
            Field::new("detailed", FieldKind::Flag, "whether to say more than the name"),
            Field::text("relative_path", "of ADK's web interface; it has no effect"),
        ]),
        Route::get("/version", "The server's version", |verb| verb.answered_by(adk::version)),
        Route::get("/apps/{app}/users/{user}/sessions", "Sessions of a user", |verb| {
            verb.answered_by(adk::sessions::list)
        }),
        Route::post("/apps/{app}/users/{user}/sessions", "Creates a session", |verb| {
            verb.answered_by(adk::sessions::create)
        })
        .takes(SESSION),
        Route::get("/apps/{app}/users/{user}/sessions/{session}", "One session with its state and events", |verb| {
            verb.answered_by(adk::sessions::get)
        }),
        Route::post("/apps/{app}/users/{user}/sessions/{session}", "Creates a session of this id", |verb| {
            verb.answered_by(adk::sessions::create_named)
        })
        .takes(SESSION),
        Route::patch("/apps/{app}/users/{user}/sessions/{session}", "Merges into a session's state", |verb| {
            verb.answered_by(adk::sessions::patch)
        })
        .takes(&[Media::json(&[Field::new("stateDelta", FieldKind::Object, "what is merged")])]),
        Route::delete("/apps/{app}/users/{user}/sessions/{session}", "Deletes a session with its runs", |verb| {
            verb.answered_by(adk::sessions::remove)
        }),
        Route::get("/apps/{app}/eval_sets", "An empty list, for the web interface", |verb| {
            verb.answered_by(adk::empty_list)
        }),
        Route::get("/apps/{app}/eval_results", "An empty list, for the web interface", |verb| {
            verb.answered_by(adk::empty_list)
        }),
        Route::get("/debug/trace/session/{session}", "An empty list, for the web interface", |verb| {
            verb.answered_by(adk::empty_list)
        }),
        Route::get("/dev/apps/{app}/eval_sets", "The same, as ADK 2 asks", |verb| verb.answered_by(adk::empty_list)),
        Route::get("/dev/apps/{app}/eval_results", "The same, as ADK 2 asks", |verb| verb.answered_by(adk::empty_list)),
        Route::get("/dev/apps/{app}/debug/trace/session/{session}", "The same, as ADK 2 asks", |verb| {
            verb.answered_by(adk::empty_list)
        }),
        Route::get(
            "/apps/{app}/users/{user}/sessions/{session}/artifacts",
            "An empty list: sessions have no artifacts",
            |verb| verb.answered_by(adk::empty_list),
        ),
    ],
};
