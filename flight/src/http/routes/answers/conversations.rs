//! What the routes of conversations and of feedback on answers answer with.

use super::{DATABASE, NEXT_PAGE, RUN_ID, VERIFIED_QUERY_FIELDS};
use crate::http::route::{Field, FieldKind, Media};

const SESSION_FIELDS: &[Field] = &[
    Field::text("session_id", "its id").required(),
    Field::text("title", "the first words that were asked").required(),
    Field::text("created_at", "when it began").required(),
    Field::text("last_active", "when it was used last").required(),
    Field::new("turn_count", FieldKind::Integer, "its runs").required(),
];
/// A conversation.
pub(in crate::http::routes) const SESSION: Media = Media::json(SESSION_FIELDS);
/// `GET /v1/agent/sessions`.
pub(in crate::http::routes) const SESSIONS: Media = Media::json(&[
    Field::new("sessions", FieldKind::ListOf(SESSION_FIELDS), "entries of the page").required(),
    Field::text("next_page_token", "the next page's `page_token`; null on the last page").or_null().required(),
]);
/// `GET /v1/agent/sessions/{id}/turns`.
pub(in crate::http::routes) const TURNS: Media = Media::json(&[Field::new(
    "turns",
    FieldKind::ListOf(&[
        Field::new("turn_index", FieldKind::Integer, "its place, from 0").required(),
        Field::new("role", FieldKind::OneOf(&["user", "assistant"]), "who says it").required(),
        Field::text("content", "what is said").required(),
        Field::text("run_id", "the run that it is of; null of what a client added").or_null().required(),
        Field::text("created_at", "when it was said").required(),
    ]),
    "oldest first",
)
.required()]);
/// A conversation that was deleted.
pub(in crate::http::routes) const DELETED_SESSION: Media = Media::json(&[
    Field::new("deleted", FieldKind::Flag, "true").required(),
    Field::text("session_id", "its id").required(),
]);
const PROPOSAL_FIELDS: &[Field] = &[
    Field::new("id", FieldKind::Integer, "by which it is decided").required(),
    RUN_ID,
    Field::text("subject", "who proposes it").required(),
    Field::new("state", FieldKind::OneOf(&["waiting", "accepted", "rejected"]), "whether it was decided").required(),
    Field::text("database", "where bare names of `sql` resolve").required(),
    Field::text("question", "the question").required(),
    Field::text("sql", "what answers it").required(),
    Field::new(
        "tables",
        FieldKind::ListOf(&[DATABASE, Field::text("table", "its name").required()]),
        "the tables that it reads",
    )
    .required(),
    Field::text("created_at", "when it was proposed").required(),
    Field::text("decided_at", "when it was decided").or_null().required(),
    Field::text("decided_by", "who decided").or_null().required(),
];
const PROPOSAL: Field =
    Field::new("proposal", FieldKind::ObjectOf(PROPOSAL_FIELDS), "the proposal as it is now").required();
/// `GET /v1/catalog/query-proposals`.
pub(in crate::http::routes) const PROPOSALS: Media = Media::json(&[
    Field::new("query_proposals", FieldKind::ListOf(PROPOSAL_FIELDS), "entries of the page").required(),
    NEXT_PAGE,
]);
/// A proposal that became a verified query.
pub(in crate::http::routes) const ACCEPTED_PROPOSAL: Media = Media::json(&[
    PROPOSAL,
    Field::new("verified_query", FieldKind::ObjectOf(VERIFIED_QUERY_FIELDS), "what it became").required(),
]);
/// A proposal that was set aside.
pub(in crate::http::routes) const REJECTED_PROPOSAL: Media = Media::json(&[PROPOSAL]);
const SUBJECT: Field = Field::text("subject", "who says it").required();
const VERDICT: Field =
    Field::new("verdict", FieldKind::OneOf(&["right", "wrong", "corrected"]), "what is said").required();
const IN_WORDS: Field = Field::text("comment", "in words").or_null().required();
const CORRECTED_SQL: Field = Field::text("corrected_sql", "the SQL that answers the question").or_null().required();
const CORRECTED_TEXT: Field = Field::text("corrected_text", "the answer as it should be").or_null().required();
const GIVEN_AT: Field = Field::text("created_at", "when it was said first").required();
const CHANGED_AT: Field = Field::text("updated_at", "when it was said last").required();
const PROPOSED: Field =
    Field::new("proposal", FieldKind::ObjectOf(PROPOSAL_FIELDS), "the verified query that it proposes")
        .or_null()
        .required();
/// `POST /v1/agent/runs/{run_id}/feedback`.
pub(in crate::http::routes) const GIVEN_FEEDBACK: Media = Media::json(&[
    RUN_ID,
    SUBJECT,
    VERDICT,
    IN_WORDS,
    CORRECTED_SQL,
    CORRECTED_TEXT,
    GIVEN_AT,
    CHANGED_AT,
    PROPOSED,
    Field::text("not_proposed", "why nothing is proposed, where nothing is"),
]);
/// `GET /v1/agent/runs/{run_id}/feedback`.
pub(in crate::http::routes) const FEEDBACK: Media = Media::json(&[Field::new(
    "feedback",
    FieldKind::ListOf(&[
        RUN_ID,
        SUBJECT,
        VERDICT,
        IN_WORDS,
        CORRECTED_SQL,
        CORRECTED_TEXT,
        GIVEN_AT,
        CHANGED_AT,
        PROPOSED,
    ]),
    "oldest first",
)
.required()]);
/// Whether there was feedback that was taken back.
pub(in crate::http::routes) const DROPPED_FEEDBACK: Media =
    Media::json(&[Field::new("dropped", FieldKind::Flag, "whether you had said something").required()]);
