//! What the routes of the policy, of the audit log and of the data folder's upkeep answer with.

use crate::http::route::{Field, FieldKind, Media};

const POLICY_VERSION: Field =
    Field::new("version", FieldKind::Integer, "the version of the policy that holds").required();
/// `GET /v1/policy`.
pub(in crate::http::routes) const POLICY: Media = Media::json(&[
    POLICY_VERSION,
    Field::new(
        "policy",
        FieldKind::ObjectOf(&[
            Field::new("governs_all", FieldKind::Flag, "whether databases that are not named are governed too")
                .required(),
            Field::new("governed", FieldKind::Texts, "the databases that are governed").required(),
            Field::new("grants", FieldKind::List, "what is granted to whom").required(),
            Field::new("row_policies", FieldKind::List, "which rows of a table are there for whom").required(),
            Field::new("masks", FieldKind::List, "what is read in the place of a column's values").required(),
        ]),
        "what holds",
    )
    .required(),
    Field::new(
        "versions",
        FieldKind::ListOf(&[
            Field::new("version", FieldKind::Integer, "its number").required(),
            Field::text("statement", "what changed it").required(),
            Field::text("changed_by", "who changed it").required(),
            Field::text("changed_at", "when").required(),
        ]),
        "the last versions",
    )
    .required(),
]);
/// `POST /v1/policy`.
pub(in crate::http::routes) const REPLACED_POLICY: Media = Media::json(&[
    Field::new("dry_run", FieldKind::Flag, "whether it was only checked").required(),
    POLICY_VERSION,
    Field::new("added", FieldKind::Texts, "what holds beside what held before").required(),
    Field::new("removed", FieldKind::Texts, "what holds no more").required(),
]);
const EXPRESSION_FIELDS: &[Field] =
    &[Field::text("name", "its name").required(), Field::text("expression", "its condition or expression").required()];
/// `POST /v1/policy/explain`.
pub(in crate::http::routes) const EXPLAINED_POLICY: Media = Media::json(&[
    POLICY_VERSION,
    Field::text("database", "the table's database").required(),
    Field::text("table", "the table").required(),
    Field::new("governed", FieldKind::Flag, "whether grants decide in the database; otherwise roles alone do")
        .required(),
    Field::new("visible", FieldKind::Flag, "whether the table is there for the caller").required(),
    Field::new("insert", FieldKind::Flag, "whether it may add rows, as far as grants say").required(),
    Field::new("modify", FieldKind::Flag, "whether it may create, replace and drop, as far as grants say").required(),
    Field::new(
        "columns",
        FieldKind::ListOf(&[
            Field::text("name", "its name").required(),
            Field::new("visible", FieldKind::Flag, "whether it is there").required(),
            Field::new("mask", FieldKind::ObjectOf(EXPRESSION_FIELDS), "what is read in its place")
                .or_null()
                .required(),
        ]),
        "each column of the table",
    )
    .required(),
    Field::new("rows", FieldKind::OneOf(&["all", "none", "some"]), "some: those that fulfil one of the conditions")
        .required(),
    Field::new("row_policies", FieldKind::ListOf(EXPRESSION_FIELDS), "the row policies that hold for the caller")
        .required(),
    Field::new("grants", FieldKind::Texts, "the grants to the caller that are about the table").required(),
]);
/// `POST /v1/policy/test`.
pub(in crate::http::routes) const TESTED_POLICY: Media = Media::json(&[
    Field::new("passed", FieldKind::Flag, "whether all cases passed").required(),
    Field::new(
        "cases",
        FieldKind::ListOf(&[
            Field::text("name", "its name, or its SQL").required(),
            Field::new("passed", FieldKind::Flag, "whether it passed").required(),
            Field::new("found", FieldKind::Object, "what came instead: `{rows}` or `{error}`"),
        ]),
        "each case, in their order",
    )
    .required(),
]);
/// `GET /v1/audit`.
pub(in crate::http::routes) const AUDIT: Media = Media::json(&[Field::new(
    "records",
    FieldKind::ListOf(&[
        Field::new("seq", FieldKind::Integer, "its number").required(),
        Field::text("at", "when the statement began").required(),
        Field::text("subject", "who sent it").required(),
        Field::text("role", "the role").required(),
        Field::text("door", "the door that it came through, such as `http`").required(),
        Field::text("statement", "the beginning of its text, without secrets").required(),
        Field::new("tables", FieldKind::Texts, "the tables that it reads").required(),
        Field::new("columns", FieldKind::Texts, "the columns that it reads of them").required(),
        Field::text("written", "the table or database that it writes").or_null().required(),
        Field::new("policies", FieldKind::Texts, "the row policies and masks that held").required(),
        Field::new("outcome", FieldKind::OneOf(&["done", "refused", "failed"]), "what came of it").required(),
        Field::text("error", "the code of its error").or_null().required(),
        Field::new("rows", FieldKind::Integer, "rows that were delivered").required(),
        Field::new("bytes", FieldKind::Integer, "their bytes").required(),
        Field::new("elapsed_ms", FieldKind::Integer, "how long it took").required(),
        Field::text("hash", "over the record and the hash before it").required(),
    ]),
    "oldest first",
)
.required()]);
/// `GET /v1/audit/verify`.
pub(in crate::http::routes) const VERIFIED_AUDIT: Media = Media::json(&[
    Field::new("records", FieldKind::Integer, "records that were read").required(),
    Field::new("head", FieldKind::List, "the number and the hash of the last one").or_null().required(),
    Field::text("fault", "what is wrong, if anything").or_null().required(),
]);
/// `POST /v1/check`.
pub(in crate::http::routes) const CHECKED_FOLDER: Media = Media::json(&[
    Field::new("faults", FieldKind::Texts, "what is wrong, at most a thousand things").required(),
    Field::new("files", FieldKind::Integer, "files that were looked at").required(),
    Field::new("bytes", FieldKind::Integer, "their bytes").required(),
    Field::new("files_read", FieldKind::Integer, "files that were read, where their contents were asked for"),
    Field::new("pending_objects", FieldKind::Integer, "objects that the schema index does not hold yet").required(),
    Field::new(
        "orphans",
        FieldKind::ListOf(&[
            Field::text("path", "where it is").required(),
            Field::new("bytes", FieldKind::Integer, "its bytes").required(),
            Field::new("age_seconds", FieldKind::Integer, "for how long it has not changed").required(),
        ]),
        "files that no table has",
    )
    .required(),
    Field::new("removed", FieldKind::Integer, "of those, how many were removed").required(),
]);
/// `POST /v1/snapshots/expire`.
pub(in crate::http::routes) const EXPIRED_SNAPSHOTS: Media = Media::json(&[
    Field::new("snapshots", FieldKind::Integer, "states that were forgotten").required(),
    Field::new("tables", FieldKind::Integer, "dropped tables among them").required(),
    Field::new("files", FieldKind::Integer, "files that only they had").required(),
    Field::new("bytes", FieldKind::Integer, "their bytes").required(),
]);
/// `POST /v1/backup`.
pub(in crate::http::routes) const BACKUP: Media = Media::json(&[
    Field::text("made_at", "when its moment was").required(),
    Field::text("querent", "the version that made it").required(),
    Field::new("files", FieldKind::Integer, "the files of tables").required(),
    Field::new("bytes", FieldKind::Integer, "their bytes").required(),
    Field::text("data_path", "where the files of tables lie, where they are not in the backup"),
]);
