//! Querent's own routes, Kusto's and MCP's.

use super::answers::{self, conversations};
use crate::http::route::{Callers, EVENTS, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface, no_layers};
use crate::http::{
    approvals, ask, complete, console, feedback, health, import, import_folders, knowledge, kusto, mcp, openapi, query,
    relationships, runs, schema, search, sessions, tables,
};

const LIMIT: Field = Field::new("limit", FieldKind::Integer, "entries of a page");
const PAGE_TOKEN: Field = Field::text("page_token", "`next_page_token` of the page before");
const PAGE: &[Field] = &[LIMIT, PAGE_TOKEN];
const DATABASE: Field = Field::text("database", "only what is in this database");
const LISTED: &[Field] = &[DATABASE, LIMIT, PAGE_TOKEN];
const X_DATABASE: Field = Field::text("X-Database", "where bare names resolve; `*` is no database in particular");
const TEXT: Media = Media::new("text/plain", "text");

pub(super) const SERVER: Surface = Surface {
    name: "server",
    about: "The server itself: whether it is well, and what it offers.",
    page: "docs/http.md",
    errors: ErrorSchema::Object,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::get("/", "Name, version and routes; for a browser the console", |verb| verb.answered_by(health::index))
            .anyone(),
        Route::get("/console/{file}", "A file of the console", |verb| verb.answered_by(console::file))
            .anyone()
            .answers(&[Media::new("text/javascript", "a script, a style or an image, kept for ever by browsers")]),
        Route::get("/health", "The process answers", |verb| verb.answered_by(health::health))
            .anyone()
            .answers(&[answers::HEALTH]),
        Route::get("/ready", "The server takes requests; 503 once it is stopping", |verb| {
            verb.answered_by(health::ready)
        })
        .anyone()
        .answers(&[JSON.with(r#"{"status": "ready"}"#)]),
        Route::get("/metrics", "Prometheus text", |verb| verb.answered_by(health::metrics)).answers(&[TEXT]),
        Route::get("/openapi.json", "This document", |verb| verb.answered_by(openapi::json)).anyone(),
        Route::get("/docs", "This document as a page to read", |verb| verb.answered_by(openapi::page))
            .anyone()
            .answers(&[Media::new("text/html", "the reference page")]),
    ],
};

/// The names of the forms of rows.
const FORMATS: &[&str] = &["ndjson", "json", "csv", "tsv", "arrow", "parquet"];

pub(super) const QUERY: Surface = Surface {
    name: "query",
    about: "Queries in SQL and KQL, and files that become tables.",
    page: "docs/http.md",
    errors: ErrorSchema::Object,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::post("/v1/complete", "What may stand at a place of a statement", |verb| {
            verb.answered_by(complete::complete)
        })
        .takes(&[Media::json(&[
            Field::text("text", "the statement so far").required(),
            Field::new("position", FieldKind::Integer, "in UTF-16 code units; the end of the text unless given"),
            Field::new("language", FieldKind::OneOf(&["sql", "kql", "either"]), "`sql` unless given"),
            Field::text("database", "where bare names resolve"),
            Field::new("limit", FieldKind::Integer, "suggestions at most; 50 unless given, never more than 200"),
        ])
        .with(r#"{"text": "SELECT car FROM flights", "position": 10}"#)])
        .answers(&[answers::COMPLETION]),
        Route::post("/v1/query", "One SQL statement or one KQL query; what changes something needs the role write", |verb| verb.answered_by(query::query))
            .headers(&[
                X_DATABASE,
                Field::text("Accept", "the media type of the rows; NDJSON unless asked otherwise"),
                Field::new("X-Querent-Max-Wall-Clock-Ms", FieldKind::Integer, "less time than the server's limit"),
                Field::new("X-Querent-Max-Memory-Bytes", FieldKind::Integer, "less memory than the server's limit"),
                Field::text(
                    "X-Querent-Wire-Types",
                    "Arrow: `views`, `dictionaries` or both, which columns may have then; plain types unless asked otherwise",
                ),
            ])
            .query(&[Field::new("format", FieldKind::OneOf(FORMATS), "the form of the rows, instead of `Accept`")])
            .takes(&[
                Media::new("application/sql", "SQL").with("SELECT 1 AS one"),
                Media::new("application/x-kql", "KQL").with("print one = 1"),
                Media::json(&[
                    Field::text("sql", "the statement").required(),
                    Field::new("params", FieldKind::List, "values of `$1`, `$2`, ..."),
                    Field::text("database", "where bare names resolve"),
                    Field::new("max_rows", FieldKind::Integer, "rows after which the answer is cut"),
                    Field::new("format", FieldKind::OneOf(FORMATS), "the form of the rows, instead of `Accept`"),
                ])
                .with(r#"{"sql": "SELECT $1 + 1 AS next", "params": [41]}"#),
            ])
            .answers(&[
                Media::new(
                    "application/x-ndjson",
                    "one object a row; a late failure is a last line `{\"error\": {...}}`",
                )
                .with("{\"one\":1}\n"),
                answers::ROWS,
                Media::new("text/csv", "a header, then a line a row; null is nothing, an empty text `\"\"`")
                    .with("one\n1\n"),
                Media::new("text/tab-separated-values", "the same with tabs; null is `\\N`").with("one\n1\n"),
                Media::new("application/vnd.apache.arrow.stream", "an Arrow IPC stream"),
                Media::new("application/vnd.apache.parquet", "a Parquet file"),
            ]),
        Route::post("/v1/import", "A file that becomes rows of a table, all of it or nothing", |verb| verb.answered_by(import::import))
            .writers()
            .checks_its_query()
            .query(&[
                Field::text("table", "the table").required(),
                Field::new(
                    "format",
                    FieldKind::OneOf(&["csv", "ndjson", "parquet", "arrow", "xlsx"]),
                    "what the file is, unless the ending of `filename`, or of the names in a form, says it",
                ),
                Field::text("database", "the table's database"),
                Field::new(
                    "if_exists",
                    FieldKind::OneOf(&["error", "append", "replace"]),
                    "what happens to a table that is there",
                ),
                Field::text("filename", "what errors call the file in the body; its ending says format and compression"),
                Field::text("types", "CSV, JSON, workbooks: types of columns: zip=VARCHAR,born=DATE; *=VARCHAR is for \
                    all others"),
                Field::text("sheet", "workbooks: the sheet, otherwise the first that holds something"),
                Field::text("range", "workbooks: its cells: A1:F10, B3:, B:F"),
                Field::text("has_header", "CSV, workbooks: whether the first record names the columns; this and \
                    the following are found in the file where they are not said"),
                Field::text("delimiter", "CSV: between values"),
                Field::text("quote", "CSV: around values; empty: nothing"),
                Field::text("escape", "CSV: before a quote within a value; empty: quotes are doubled"),
                Field::text("encoding", "CSV, JSON: latin-1, utf-16, windows-1252 and so on"),
                Field::text("skip", "CSV, workbooks: lines, or rows, to skip at the beginning"),
                Field::text("comment", "CSV: what a comment begins with; empty: nothing"),
                Field::text("null_value", "CSV, workbooks: the texts that stand for null, separated by commas; empty: \
                    only the empty field"),
                Field::text("null_padding", "CSV: whether missing fields at the end of a line are null"),
                Field::text("allow_quoted_nulls", "CSV: false: fields in quotes are no nulls in columns of text and bytes"),
                Field::text("date_format", "CSV: the format of dates, as in strftime"),
                Field::text("timestamp_format", "CSV: the format of timestamps"),
                Field::text("decimal_separator", "CSV: what stands before the fractions of numbers: `.` or `,`"),
                Field::text("thousands", "CSV: what stands between the thousands of numbers"),
                Field::text("ignore_errors", "CSV, JSON, workbooks: whether lines that cannot be read are set aside \
                    in a table"),
                Field::text("rejects", "the name of that table, instead of TABLE_rejects"),
                Field::text("compression", "how the file is compressed"),
            ])
            .takes(&[
                Media::new("application/octet-stream", "the file; `Content-Encoding: gzip` and `zstd` are decompressed"),
                Media::new("multipart/form-data", "files, all into the one table or none"),
            ])
            .answers(&[answers::IMPORTED]),
        Route::post("/v1/import/tree", "Registers or refreshes the external tables of a tree of folders", |verb| verb.answered_by(import_folders::import_folders))
            .writers()
            .takes(&[Media::json(&[
                Field::text("source", "a URL of an object store, or a folder on the server's disk").required(),
                Field::text("database", "the database of all tables, instead of one a folder"),
                Field::new("dry_run", FieldKind::Flag, "whether to only report"),
            ])
            .with(r#"{"source": "s3://lake/raw/", "dry_run": true}"#)])
            .answers(&[Media::new(
                "application/x-ndjson",
                "an object a folder as it is decided, then the numbers; a late failure is a last line `{\"error\": {...}}`",
            )
            .with("{\"folder\":\"s3://lake/raw/trips\",\"database\":\"default\",\"table\":\"trips\",\"step\":\"registered\",\"reason\":null}\n")]),
    ],
};

const TABLE_DATABASE: &[Field] = &[Field::text("database", "the table's database; `default` unless given")];

const RELATIONSHIP: Media = Media::json(&[
    Field::new("from", FieldKind::Object, "`{database, table}`").required(),
    Field::new("from_columns", FieldKind::List, "its columns").required(),
    Field::new("to", FieldKind::Object, "`{database, table}`").required(),
    Field::new("to_columns", FieldKind::List, "its columns, in the same order").required(),
])
.with(
    r#"{"from": {"database": "default", "table": "orders"}, "from_columns": ["customer_id"],
    "to": {"database": "default", "table": "customers"}, "to_columns": ["id"]}"#,
);

pub(super) const CATALOG: Surface = Surface {
    name: "catalog",
    about: "What there is to query, and what is known about it.",
    page: "docs/catalog.md",
    errors: ErrorSchema::Object,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::get("/v1/catalog/schema", "Databases, tables and columns, a page at a time", |verb| {
            verb.answered_by(schema::schema)
        })
        .query(LISTED)
        .answers(&[answers::SCHEMA]),
        Route::get("/v1/catalog/search", "Tables by name, text, meaning, values and joins", |verb| {
            verb.answered_by(search::search)
        })
        .query(&[
            Field::text("q", "what to look for").required(),
            DATABASE,
            Field::new("limit", FieldKind::Integer, "tables at most"),
        ])
        .answers(&[answers::FOUND]),
        Route::get("/v1/catalog/tables/{table}", "One table with its columns and comments", |verb| {
            verb.answered_by(tables::get)
        })
        .query(TABLE_DATABASE)
        .answers(&[answers::TABLE]),
        Route::patch("/v1/catalog/tables/{table}", "Sets comments of a table and of its columns", |verb| {
            verb.answered_by(tables::comment)
        })
        .writers()
        .query(TABLE_DATABASE)
        .takes(&[Media::json(&[
            Field::new("comment", FieldKind::TextOrNull, "the table's comment; null takes it away"),
            Field::new("columns", FieldKind::Object, "comments by the names of columns; null takes one away"),
        ])
        .with(r#"{"comment": "Flights of 2013", "columns": {"dep_delay": "minutes late at departure"}}"#)])
        .answers(&[answers::TABLE]),
        Route::get(
            "/v1/catalog/tables/{table}/profile",
            "What a table's columns hold, as the caller may see it: nulls, distinct and frequent values, extremes, histograms",
            |verb| verb.answered_by(tables::profile),
        )
        .query(TABLE_DATABASE)
        .answers(&[answers::PROFILE]),
        Route::patch("/v1/catalog/databases/{database}", "Sets a database's comment", |verb| {
            verb.answered_by(tables::comment_database)
        })
        .writers()
        .takes(&[Media::json(&[
            Field::new("comment", FieldKind::TextOrNull, "the comment; null takes it away").required(),
        ])
        .with(r#"{"comment": "What the shop sold"}"#)])
        .answers(&[answers::DATABASE_COMMENT]),
        Route::get(
            "/v1/catalog/relationships",
            "Declared relationships, of one table where both parameters name it",
            |verb| verb.answered_by(relationships::list),
        )
        .query(&[
            Field::text("database", "the table's database; only with `table`"),
            Field::text("table", "the table; only with `database`"),
            LIMIT,
            PAGE_TOKEN,
        ])
        .answers(&[answers::RELATIONSHIPS]),
        Route::post("/v1/catalog/relationships", "Declares a relationship", |verb| {
            verb.answered_by(relationships::declare)
        })
        .writers()
        .takes(&[RELATIONSHIP])
        .answers(&[answers::RELATIONSHIP])
        .status("201"),
        Route::delete("/v1/catalog/relationships/{id}", "Drops a relationship", |verb| {
            verb.answered_by(relationships::remove)
        })
        .writers()
        .answers(&[answers::DROPPED]),
        Route::get("/v1/catalog/verified-queries", "Questions with SQL that answers them", |verb| {
            verb.answered_by(knowledge::list_queries)
        })
        .query(LISTED)
        .answers(&[answers::VERIFIED_QUERIES]),
        Route::post(
            "/v1/catalog/verified-queries",
            "Stores a question with its SQL, after the SQL ran for the caller",
            |verb| verb.answered_by(knowledge::verify_query),
        )
        .writers()
        .takes(&[Media::json(&[
            Field::text("question", "the question").required(),
            Field::text("sql", "what answers it").required(),
            Field::text("database", "where bare names resolve"),
        ])
        .with(r#"{"question": "how many orders are there?", "sql": "SELECT count(*) FROM orders"}"#)])
        .answers(&[answers::VERIFIED_QUERY])
        .status("201"),
        Route::delete("/v1/catalog/verified-queries/{id}", "Drops a verified query", |verb| {
            verb.answered_by(knowledge::drop_query)
        })
        .writers()
        .answers(&[answers::DROPPED]),
        Route::get("/v1/catalog/query-proposals", "Verified queries that feedback proposes", |verb| {
            verb.answered_by(feedback::proposals)
        })
        .writers()
        .query(&[
            Field::new("state", FieldKind::OneOf(&["waiting", "accepted", "rejected"]), "only such"),
            LIMIT,
            PAGE_TOKEN,
        ])
        .answers(&[conversations::PROPOSALS]),
        Route::post(
            "/v1/catalog/query-proposals/{id}/accept",
            "Makes a proposal a verified query, after it ran for the caller",
            |verb| verb.answered_by(feedback::accept),
        )
        .writers()
        .answers(&[conversations::ACCEPTED_PROPOSAL]),
        Route::post("/v1/catalog/query-proposals/{id}/reject", "Sets a proposal aside", |verb| {
            verb.answered_by(feedback::reject)
        })
        .writers()
        .answers(&[conversations::REJECTED_PROPOSAL]),
        Route::get("/v1/catalog/metrics", "Names for numbers", |verb| verb.answered_by(knowledge::list_metrics))
            .query(LISTED)
            .answers(&[answers::METRICS]),
        Route::post("/v1/catalog/metrics", "Defines a metric, after it ran for the caller", |verb| {
            verb.answered_by(knowledge::define_metric)
        })
        .writers()
        .takes(&[Media::json(&[
            Field::text("name", "the metric's name").required(),
            Field::new("table", FieldKind::Object, "`{database, table}`").required(),
            Field::text("expression", "an aggregate in SQL").required(),
            Field::text("filter", "rows that count, in SQL"),
            Field::text("description", "what the number means"),
        ])
        .with(
            r#"{"name": "revenue", "table": {"database": "default", "table": "orders"}, "expression": "sum(amount)"}"#,
        )])
        .answers(&[answers::METRIC])
        .status("201"),
        Route::delete("/v1/catalog/metrics/{id}", "Drops a metric", |verb| verb.answered_by(knowledge::drop_metric))
            .writers()
            .answers(&[answers::DROPPED]),
    ],
};

pub(super) const AGENT: Surface = Surface {
    name: "agent",
    about: "Questions in plain language, and the runs and sessions that they make.",
    page: "docs/agent.md",
    errors: ErrorSchema::Flat,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::post(
            "/v1/agent/ask",
            "A question; the answer as server-sent events, `run_finished` always last",
            |verb| verb.answered_by(ask::ask),
        )
        .takes(&[Media::json(&[
            Field::text("question", "the question").required(),
            Field::text("database", "where bare names resolve"),
            Field::new("include_thinking", FieldKind::Flag, "whether the model's thinking is sent too"),
            Field::text("session_id", "the conversation that the question belongs to"),
            Field::new("approvals", FieldKind::Flag, "whether the run may pause for a person's approval of a call that writes"),
        ])
        .with(r#"{"question": "which service errored most in the last hour?", "database": "default"}"#)])
        .answers(&[EVENTS.with("event: answer_delta\ndata: {\"text\":\"The service\"}\n\n")])
        .headers(&[Field::text("Last-Event-ID", "goes on with a stream that broke off after this event")]),
        Route::get("/v1/agent/runs", "Your runs, newest first; all runs for administrators", |verb| {
            verb.answered_by(runs::list)
        })
        .query(PAGE)
        .answers(&[answers::RUNS]),
        Route::get("/v1/agent/runs/{run_id}", "One run with its whole trace", |verb| verb.answered_by(runs::get))
            .answers(&[answers::RUN]),
        Route::get("/v1/agent/runs/{run_id}/events", "A run's events as `ask` streams them, also of one in progress", |verb| {
            verb.answered_by(ask::events)
        })
        .answers(&[EVENTS])
        .headers(&[Field::text("Last-Event-ID", "begins behind this event")]),
        Route::post(
            "/v1/agent/runs/{run_id}/cancel",
            "Stops a run; its stream still ends with `run_finished`",
            |verb| verb.answered_by(runs::cancel),
        )
        .answers(&[answers::RUN]),
        Route::get("/v1/agent/runs/{run_id}/approvals", "The calls of a run that a person is asked about", |verb| {
            verb.answered_by(approvals::list)
        })
        .answers(&[answers::APPROVALS]),
        Route::post(
            "/v1/agent/runs/{run_id}/approvals",
            "Approves or denies the calls that a paused run waits for; the run that goes on, as server-sent events",
            |verb| verb.answered_by(approvals::decide),
        )
        .takes(&[Media::json(&[
            Field::new("approve", FieldKind::Flag, "the decision on all calls"),
            Field::text("reason", "why, which the model reads"),
            Field::new(
                "decisions",
                FieldKind::ListOf(&[
                    Field::text("approval_id", "the call").required(),
                    Field::new("approve", FieldKind::Flag, "the decision").required(),
                    Field::text("reason", "why, which the model reads"),
                ]),
                "instead, one for each call",
            ),
        ])
        .with(r#"{"approve": true}"#)])
        .answers(&[EVENTS]),
        Route::post(
            "/v1/agent/runs/{run_id}/feedback",
            "Says that a run's answer is right, wrong, or what it should be; what is right is proposed as a verified query",
            |verb| verb.answered_by(feedback::give),
        )
        .takes(&[Media::json(&[
            Field::new("verdict", FieldKind::OneOf(&["right", "wrong", "corrected"]), "what is said").required(),
            Field::text("comment", "in words"),
            Field::text("sql", "corrected: the SQL that answers the question"),
            Field::text("text", "corrected: the answer as it should be"),
            Field::text("question", "the question, where that of the run continues a conversation"),
            Field::text("database", "where bare names of `sql` resolve"),
        ])
        .with(r#"{"verdict": "right"}"#)])
        .answers(&[conversations::GIVEN_FEEDBACK]),
        Route::get("/v1/agent/runs/{run_id}/feedback", "What was said of a run's answer", |verb| {
            verb.answered_by(feedback::list)
        })
        .answers(&[conversations::FEEDBACK]),
        Route::delete("/v1/agent/runs/{run_id}/feedback", "Takes back what you said of a run's answer", |verb| {
            verb.answered_by(feedback::remove)
        })
        .answers(&[conversations::DROPPED_FEEDBACK]),
        Route::get("/v1/agent/sessions", "Your conversations, newest activity first", |verb| {
            verb.answered_by(sessions::list)
        })
        .query(PAGE)
        .answers(&[conversations::SESSIONS]),
        Route::get("/v1/agent/sessions/{id}", "One conversation", |verb| verb.answered_by(sessions::get))
            .answers(&[conversations::SESSION]),
        Route::delete("/v1/agent/sessions/{id}", "Deletes a conversation with its runs", |verb| {
            verb.answered_by(sessions::remove)
        })
        .answers(&[conversations::DELETED_SESSION]),
        Route::get("/v1/agent/sessions/{id}/turns", "What was asked and answered, oldest first", |verb| {
            verb.answered_by(sessions::turns)
        })
        .answers(&[conversations::TURNS]),
    ],
};

const KUSTO_QUERY: &[Media] = &[Media::json(&[
    Field::text("db", "the database"),
    Field::text("csl", "the query or command").required(),
    Field::new("properties", FieldKind::TextOrObject, "`{Options, Parameters}`, or that as a text"),
])
.with(r#"{"db": "default", "csl": "print one = 1"}"#)];

pub(super) const KUSTO: Surface = Surface {
    name: "kusto",
    about: "Kusto's own REST interface, for its clients.",
    page: "docs/kql.md",
    errors: ErrorSchema::Kusto,
    callers: Callers::Tokens,
    layers: kusto::add_layers,
    routes: &[
        Route::post("/v1/rest/query", "A KQL query; the answer as version 1 has it", |verb| {
            verb.answered_by(kusto::query_v1)
        })
        .takes(KUSTO_QUERY),
        Route::post("/v2/rest/query", "A KQL query; the answer as frames of version 2", |verb| {
            verb.answered_by(kusto::query_v2)
        })
        .takes(KUSTO_QUERY)
        .answers(&[Media::new("application/json", "a list of frames")]),
        Route::post("/v1/rest/mgmt", "A `.show` command, or one for graph models", |verb| {
            verb.answered_by(kusto::management)
        })
        .takes(KUSTO_QUERY),
        Route::get("/v1/rest/auth/metadata", "How clients authenticate: there is no Azure AD here", |verb| {
            verb.answered_by(kusto::auth_metadata)
        })
        .anyone(),
    ],
};

const MCP_SESSION: Field = Field::text("Mcp-Session-Id", "the session, as `initialize` was answered");

pub(super) const MCP: Surface = Surface {
    name: "mcp",
    about: "The agent's tools for clients of the Model Context Protocol (streamable HTTP).",
    page: "docs/mcp.md",
    errors: ErrorSchema::JsonRpc,
    callers: Callers::Tokens,
    layers: mcp::add_layers,
    routes: &[
        Route::post("/mcp", "One JSON-RPC message; 202 without a body where it is no request", |verb| {
            verb.answered_by(mcp::post)
        })
        .headers(&[MCP_SESSION, X_DATABASE])
        .takes(&[Media::json(&[
            Field::new("jsonrpc", FieldKind::OneOf(&["2.0"]), "JSON-RPC's version").required(),
            Field::new("id", FieldKind::Any, "a text or a number, which the answer repeats; a notification has none"),
            Field::text("method", "what to do"),
            Field::new("params", FieldKind::Object, "its parameters"),
        ])
        .with(r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#)])
        .answers(&[JSON, EVENTS]),
        Route::delete("/mcp", "Ends a session", |verb| verb.answered_by(mcp::delete))
            .headers(&[MCP_SESSION])
            .answers(&[])
            .status("204"),
    ],
};
