//! What Querent's own routes answer with, field by field, for the reference and the clients that are made of it.

pub(super) mod conversations;
pub(super) mod trust;

use crate::http::route::{Field, FieldKind, Media};

const DATABASE: Field = Field::text("database", "its database").required();
const NEXT_PAGE: Field = Field::text("next_page_token", "the next page's `page_token`; absent on the last page");
const KIND: Field =
    Field::new("kind", FieldKind::OneOf(&["managed", "external", "view"]), "what kind of table it is").required();
const COMMENT: Field = Field::text("comment", "what it is, where somebody said so");

/// `GET /health`.
pub(super) const HEALTH: Media = Media::json(&[
    Field::text("status", "`ok`").required(),
    Field::text("version", "the server's version").required(),
    Field::text("framework", "`querent`").required(),
    Field::text("agent", "`querent`").required(),
])
.with(r#"{"status": "ok", "version": "0.1.0", "framework": "querent", "agent": "querent"}"#);

/// `POST /v1/complete`.
pub(super) const COMPLETION: Media = Media::json(&[
    Field::new("start", FieldKind::Integer, "where what is replaced begins, in UTF-16 code units").required(),
    Field::new(
        "suggestions",
        FieldKind::ListOf(&[
            Field::text("text", "the text, in quotes where it must be").required(),
            Field::new("kind", FieldKind::OneOf(&["database", "table", "column", "function", "keyword"]), "what it is")
                .required(),
            Field::text("detail", "a column's type, or what a name is of"),
        ]),
        "the likeliest first",
    )
    .required(),
    Field::new("truncated", FieldKind::Flag, "whether there were more").required(),
])
.with(
    r#"{"start": 7, "suggestions": [{"text": "carrier", "kind": "column", "detail": "VARCHAR"}], "truncated": false}"#,
);

/// `POST /v1/query`, where its rows are asked for as one JSON document.
pub(super) const ROWS: Media = Media::json(&[
    Field::new(
        "columns",
        FieldKind::ListOf(&[
            Field::text("name", "its name").required(),
            Field::text("type", "its Arrow type").required(),
        ]),
        "the columns",
    )
    .required(),
    Field::new("rows", FieldKind::List, "a list of values for each row").required(),
    Field::new("row_count", FieldKind::Integer, "rows sent").required(),
    Field::new("truncated", FieldKind::Flag, "whether a limit cut the rows").required(),
]);

/// `POST /v1/import`.
pub(super) const IMPORTED: Media = Media::json(&[
    Field::text("database", "the table's database").required(),
    Field::text("table", "the table").required(),
    Field::new("rows", FieldKind::Integer, "rows that were imported").required(),
    Field::new("files", FieldKind::Integer, "files that were read").required(),
    Field::new("created", FieldKind::Flag, "whether the table is new").required(),
    Field::new(
        "reading",
        FieldKind::Object,
        "how text was read: header, delimiter, types and formats of columns, null",
    ),
    Field::new(
        "rejects",
        FieldKind::ObjectOf(&[
            Field::new("lines", FieldKind::Integer, "how many").required(),
            Field::text("table", "where they are, as DATABASE.TABLE").required(),
        ]),
        "lines that were set aside",
    ),
]);

const COLUMNS: Field = Field::new(
    "columns",
    FieldKind::ListOf(&[
        Field::text("name", "its name").required(),
        Field::text("data_type", "its Arrow type").required(),
        Field::new("nullable", FieldKind::Flag, "whether it may hold null").required(),
        COMMENT,
    ]),
    "in the table's order",
)
.required();

/// A table of the catalog.
pub(super) const TABLE: Media = Media::json(&[
    DATABASE,
    Field::text("name", "its name").required(),
    KIND,
    COMMENT,
    Field::new("row_count", FieldKind::Integer, "its rows, where they are known without reading"),
    COLUMNS,
]);

/// `PATCH /v1/catalog/databases/{database}`.
pub(super) const DATABASE_COMMENT: Media = Media::json(&[
    Field::text("name", "the database").required(),
    Field::text("comment", "its comment").or_null().required(),
]);

/// `GET /v1/catalog/schema`.
pub(super) const SCHEMA: Media = Media::json(&[
    Field::new(
        "databases",
        FieldKind::ListOf(&[
            Field::text("name", "its name").required(),
            Field::new(
                "tables",
                FieldKind::ListOf(&[Field::text("name", "its name").required(), KIND, COMMENT, COLUMNS]),
                "its tables on this page; a database may go on on the next",
            )
            .required(),
        ]),
        "by name",
    )
    .required(),
    NEXT_PAGE,
]);

/// The searches that may find a table, as they are called.
const SEARCHES: &[&str] = &["name", "bm25", "dense", "column", "value", "verified_query", "metric", "relationship"];

/// `GET /v1/catalog/search`.
pub(super) const FOUND: Media = Media::json(&[
    Field::new(
        "hits",
        FieldKind::ListOf(&[
            DATABASE,
            Field::text("table", "its name").required(),
            KIND,
            COMMENT.or_null().required(),
            Field::new("row_count", FieldKind::Integer, "its rows, where they are known without reading")
                .or_null()
                .required(),
            Field::new("score", FieldKind::Number, "the higher, the better it fits").required(),
            Field::new("found_by", FieldKind::SomeOf(SEARCHES), "the searches that found it").required(),
            Field::new("why", FieldKind::Texts, "details in words").required(),
        ]),
        "tables, the best first",
    )
    .required(),
    Field::new(
        "missing_meaning",
        FieldKind::ObjectOf(&[
            Field::text("reason", "what is wrong").required(),
            Field::text("hint", "what to do about it").required(),
            Field::new("is_chosen", FieldKind::Flag, "whether the settings leave meaning out").required(),
        ]),
        "why names and texts alone were searched, where that is so",
    ),
]);

/// `GET /v1/catalog/tables/{table}/profile`.
pub(super) const PROFILE: Media = Media::json(&[
    Field::text("database", "the table's database").required(),
    Field::text("table", "the table").required(),
    Field::new("rows", FieldKind::Integer, "rows that were counted").required(),
    Field::new("is_complete", FieldKind::Flag, "whether that is all rows, and every column is described").required(),
    Field::new("left_out_columns", FieldKind::Integer, "columns beyond the first 100").required(),
    Field::new(
        "columns",
        FieldKind::ListOf(&[
            Field::text("name", "its name").required(),
            Field::text("type", "its type in SQL").required(),
            Field::new("nulls", FieldKind::Integer, "rows without a value").required(),
            Field::new("distinct", FieldKind::Integer, "distinct values, estimated").or_null().required(),
            Field::text("min", "the least value").or_null().required(),
            Field::text("max", "the greatest value").or_null().required(),
            Field::new("mean", FieldKind::Number, "the mean of numbers").or_null().required(),
            Field::new(
                "top_values",
                FieldKind::ListOf(&[
                    Field::text("value", "the value").required(),
                    Field::new("rows", FieldKind::Integer, "rows that have it").required(),
                ]),
                "the most frequent values, if values repeat",
            )
            .or_null()
            .required(),
            Field::new(
                "histogram",
                FieldKind::ListOf(&[
                    Field::text("from", "the range's least value").required(),
                    Field::text("to", "its end").required(),
                    Field::new("rows", FieldKind::Integer, "rows with a value in it").required(),
                ]),
                "rows by ranges of numbers, dates and instants",
            )
            .or_null()
            .required(),
        ]),
        "in the table's order",
    )
    .required(),
]);

const TABLE_END: FieldKind = FieldKind::ObjectOf(&[DATABASE, Field::text("table", "its name").required()]);
const RELATIONSHIP_FIELDS: &[Field] = &[
    Field::new("id", FieldKind::Integer, "by which it is dropped").required(),
    Field::new("from", TABLE_END, "the table that refers").required(),
    Field::new("from_columns", FieldKind::Texts, "its columns").required(),
    Field::new("to", TABLE_END, "the table referred to").required(),
    Field::new("to_columns", FieldKind::Texts, "its columns, in the same order").required(),
    Field::new("origin", FieldKind::OneOf(&["foreign_key", "declared"]), "how it came to be").required(),
    Field::new("confidence", FieldKind::Number, "1, since it is declared").required(),
    Field::text("why", "the evidence for it").required(),
];

/// A relationship.
pub(super) const RELATIONSHIP: Media = Media::json(RELATIONSHIP_FIELDS);
/// `GET /v1/catalog/relationships`.
pub(super) const RELATIONSHIPS: Media = Media::json(&[
    Field::new("relationships", FieldKind::ListOf(RELATIONSHIP_FIELDS), "entries of the page").required(),
    NEXT_PAGE,
]);

const SUBJECT: Field = Field::text("subject", "who stored it").required();
const CREATED_AT: Field = Field::text("created_at", "when that was").required();
const VERIFIED_QUERY_FIELDS: &[Field] = &[
    Field::new("id", FieldKind::Integer, "by which it is dropped").required(),
    Field::text("database", "where bare names of `sql` resolve").required(),
    Field::text("question", "the question").required(),
    Field::text("sql", "what answers it").required(),
    Field::new(
        "tables",
        FieldKind::ListOf(&[DATABASE, Field::text("table", "its name").required()]),
        "the tables that it reads",
    )
    .required(),
    SUBJECT,
    CREATED_AT,
];

/// A verified query.
pub(super) const VERIFIED_QUERY: Media = Media::json(VERIFIED_QUERY_FIELDS);
/// `GET /v1/catalog/verified-queries`.
pub(super) const VERIFIED_QUERIES: Media = Media::json(&[
    Field::new("verified_queries", FieldKind::ListOf(VERIFIED_QUERY_FIELDS), "entries of the page").required(),
    NEXT_PAGE,
]);

const METRIC_FIELDS: &[Field] = &[
    Field::new("id", FieldKind::Integer, "by which it is dropped").required(),
    DATABASE,
    Field::text("name", "its name").required(),
    Field::text("description", "what the number means").or_null().required(),
    Field::new("table", TABLE_END, "the table that it is computed over").required(),
    Field::text("expression", "an aggregate in SQL").required(),
    Field::text("filter", "rows that count, in SQL").or_null().required(),
    SUBJECT,
    CREATED_AT,
];

/// A metric.
pub(super) const METRIC: Media = Media::json(METRIC_FIELDS);
/// `GET /v1/catalog/metrics`.
pub(super) const METRICS: Media = Media::json(&[
    Field::new("metrics", FieldKind::ListOf(METRIC_FIELDS), "entries of the page").required(),
    NEXT_PAGE,
]);

/// What was dropped.
pub(super) const DROPPED: Media = Media::json(&[Field::new("dropped", FieldKind::Flag, "true").required()]);

const RUN_ID: Field = Field::text("run_id", "the run").required();
const QUESTION: Field = Field::text("question", "what was asked").required();
const MODEL_ID: Field = Field::text("model_id", "the model that answered").required();
const PROTOCOL: Field = Field::text("protocol", "the protocol that it was asked over").required();
const STATUS: Field = Field::new(
    "status",
    FieldKind::OneOf(&["running", "success", "error", "budget_exceeded", "cancelled", "paused"]),
    "how far it is",
)
.required();
const STARTED_AT: Field = Field::text("started_at", "when it began").required();
const FINISHED_AT: Field = Field::text("finished_at", "when it ended").or_null().required();
const USAGE: Field = Field::new("usage", FieldKind::Object, "what it used, by name: tokens, calls of tools").required();

/// A run with its trace.
pub(super) const RUN: Media = Media::json(&[
    RUN_ID,
    QUESTION,
    MODEL_ID,
    PROTOCOL,
    STATUS,
    STARTED_AT,
    FINISHED_AT,
    USAGE,
    Field::new(
        "trace",
        FieldKind::ListOf(&[
            Field::text("event", "the event's name").required(),
            Field::new("data", FieldKind::Object, "what it says").required(),
        ]),
        "its events, as `ask` streamed them",
    )
    .required(),
]);
/// `GET /v1/agent/runs`.
pub(super) const RUNS: Media = Media::json(&[
    Field::new(
        "runs",
        FieldKind::ListOf(&[RUN_ID, QUESTION, MODEL_ID, PROTOCOL, STATUS, STARTED_AT, FINISHED_AT, USAGE]),
        "entries of the page",
    )
    .required(),
    Field::text("next_page_token", "the next page's `page_token`; null on the last page").or_null().required(),
]);

/// `GET /v1/agent/runs/{run_id}/approvals`.
pub(super) const APPROVALS: Media = Media::json(&[
    RUN_ID,
    Field::new(
        "approvals",
        FieldKind::ListOf(&[
            Field::text("approval_id", "by which it is decided on").required(),
            Field::text("tool", "the tool that is called").required(),
            Field::new("args", FieldKind::Any, "what it is called with").required(),
            Field::new("state", FieldKind::OneOf(&["waiting", "approved", "denied", "abandoned"]), "what was decided")
                .required(),
            Field::text("decided_at", "when that was"),
        ]),
        "the calls",
    )
    .required(),
])
.with(
    r#"{"run_id": "019d2c", "approvals": [
    {"approval_id": "mcpr_1", "tool": "save_verified_query", "args": {}, "state": "waiting"}]}"#,
);

const TOKEN_FIELDS: &[Field] = &[
    Field::new("id", FieldKind::Integer, "by which it is revoked").required(),
    Field::text("name", "what people call it").required(),
    Field::text("subject", "whom it stands for").required(),
    Field::new("role", FieldKind::OneOf(&["read", "write", "admin"]), "what it may do").required(),
    Field::new("databases", FieldKind::Texts, "the only databases that it sees; null for all").or_null().required(),
    Field::new("roles", FieldKind::Texts, "roles that policies name").required(),
    Field::new("groups", FieldKind::Texts, "groups that policies name").required(),
    Field::new("attributes", FieldKind::Object, "texts by name, which policies compare with").required(),
    Field::new("state", FieldKind::OneOf(&["active", "expired", "revoked"]), "whether it is accepted").required(),
    Field::text("created_by", "who created it").required(),
    Field::text("created_at", "when").required(),
    Field::text("expires_at", "when it ends").or_null().required(),
    Field::text("revoked_at", "when it was revoked").or_null().required(),
];

/// `GET /v1/tokens`.
pub(super) const TOKENS: Media =
    Media::json(&[Field::new("tokens", FieldKind::ListOf(TOKEN_FIELDS), "entries of the page").required(), NEXT_PAGE]);
/// What is said of every token, and the token itself.
const CREATED_TOKEN_FIELDS: [Field; TOKEN_FIELDS.len() + 1] = {
    let mut fields = [Field::text("token", "the token itself").required(); TOKEN_FIELDS.len() + 1];
    let mut at = 0;
    while at < TOKEN_FIELDS.len() {
        fields[at] = TOKEN_FIELDS[at];
        at += 1;
    }
    fields
};

/// A token that was created.
pub(super) const CREATED_TOKEN: Media = Media::json(&CREATED_TOKEN_FIELDS);
/// A token that was revoked.
pub(super) const REVOKED_TOKEN: Media =
    Media::json(&[Field::new("revoked", FieldKind::Integer, "the token's id").required()]);

/// `GET /v1/queries`.
pub(super) const QUERIES: Media = Media::json(&[Field::new(
    "queries",
    FieldKind::ListOf(&[
        Field::new("id", FieldKind::Integer, "by which it is ended").required(),
        Field::text("subject", "whose it is").required(),
        Field::text("default_database", "where its bare names resolve").required(),
        Field::text("statement", "its text, or the beginning of it").required(),
        Field::text("started_at", "when it began").required(),
        Field::new("memory_bytes", FieldKind::Integer, "about what it holds").required(),
    ]),
    "queries that run",
)
.required()]);
/// The end of a query.
pub(super) const CANCELLED: Media =
    Media::json(&[Field::new("cancelled", FieldKind::Integer, "the query's id").required()]);

/// `GET /v1/caller`.
pub(super) const CALLER: Media = Media::json(&[
    Field::text("subject", "whom the token stands for; `local` on a server without tokens").required(),
    Field::new("role", FieldKind::OneOf(&["read", "write", "admin"]), "what the caller may do").required(),
    Field::new("databases", FieldKind::Texts, "the only databases that it sees; null for all").or_null().required(),
    Field::new("roles", FieldKind::Texts, "roles that policies name").required(),
    Field::new("groups", FieldKind::Texts, "groups that policies name").required(),
])
.with(r#"{"subject": "anna", "role": "write", "databases": null, "roles": ["analyst"], "groups": ["emea"]}"#);

/// `GET /v1/settings`.
pub(super) const SETTINGS: Media = Media::json(&[Field::new(
    "settings",
    FieldKind::ListOf(&[
        Field::text("name", "its name").required(),
        Field::text("value", "its value; `***` for a secret, empty where it is unset").required(),
        Field::text("origin", "`default`, `command line`, `environment NAME` or a file").required(),
        Field::text("about", "what it is").required(),
        Field::new("is_secret", FieldKind::Flag, "whether its value is hidden").required(),
    ]),
    "in the order of the documentation",
)
.required()])
.with(
    r#"{"settings": [
    {"name": "log.format", "value": "json", "origin": "command line", "about": "text or json", "is_secret": false}]}"#,
);

/// `GET /v1/models`; with `anthropic-version` as Anthropic's clients read it, which have no `owned_by` and no `current`.
pub(super) const MODELS: Media = Media::json(&[
    Field::text("object", "`list`"),
    Field::new(
        "data",
        FieldKind::ListOf(&[
            Field::text("id", "its name").required(),
            Field::text("object", "`model`"),
            Field::new("created", FieldKind::Integer, "when the server started, in seconds since 1970"),
            Field::new("owned_by", FieldKind::OneOf(&["querent", "operator"]), "operator: a configured model"),
            Field::text("source", "the same"),
        ]),
        "the models",
    )
    .required(),
    Field::text("current", "the model that answers unless another is named"),
]);
