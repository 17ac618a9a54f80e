//! Who may do what, who did what, and whether the folder is whole: tokens, the policy, queries that run, the audit log, backups.

use super::answers::{self, trust};
use crate::http::route::{Callers, ErrorSchema, Field, FieldKind, Media, Route, Surface, no_layers};
use crate::http::{caller, maintenance, policy, queries, settings, tokens};

pub(super) const TRUST: Surface = Surface {
    name: "trust",
    about: "Who may do what, who did what, and whether the folder is whole.",
    page: "docs/security.md",
    errors: ErrorSchema::Object,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::get("/v1/caller", "Whom the server takes you for: your role, and the databases that you see", |verb| {
            verb.answered_by(caller::show)
        })
        .answers(&[answers::CALLER]),
        Route::get("/v1/tokens", "Tokens of the catalog, oldest first, without the tokens themselves", |verb| {
            verb.answered_by(tokens::list)
        })
        .admins()
        .query(&[
            Field::new("limit", FieldKind::Integer, "entries of a page"),
            Field::text("page_token", "`next_page_token` of the page before"),
        ])
        .answers(&[answers::TOKENS]),
        Route::post("/v1/tokens", "Creates a token; the answer is the only place where it is shown", |verb| {
            verb.answered_by(tokens::create)
        })
        .admins()
        .takes(&[Media::json(&[
            Field::text("name", "what people call it").required(),
            Field::text("subject", "whom it stands for; the name where it is absent"),
            Field::new("role", FieldKind::OneOf(&["read", "write", "admin"]), "what it may do").required(),
            Field::new("databases", FieldKind::List, "the only databases that it sees"),
            Field::new("roles", FieldKind::List, "roles that policies name"),
            Field::new("groups", FieldKind::List, "groups that policies name"),
            Field::new("attributes", FieldKind::Object, "texts by name, which policies compare with"),
            Field::text("expires_at", "when it ends, as in 2027-01-31T00:00:00Z"),
        ])
        .with(r#"{"name": "grafana", "role": "read", "databases": ["sales"]}"#)])
        .answers(&[answers::CREATED_TOKEN])
        .status("201"),
        Route::delete("/v1/tokens/{id}", "Revokes a token, at once", |verb| verb.answered_by(tokens::revoke))
            .admins()
            .answers(&[answers::REVOKED_TOKEN]),
        Route::get("/v1/policy", "Grants, row policies and masks, and the last versions", |verb| {
            verb.answered_by(policy::show)
        })
        .admins()
        .answers(&[trust::POLICY]),
        Route::post("/v1/policy", "Puts the policy that statements make in place of the one that holds", |verb| {
            verb.answered_by(policy::replace)
        })
        .admins()
        .query(&[Field::new("dry_run", FieldKind::Flag, "only checks, and says what would change")])
        .takes(&[
            Media::new("text/plain", "statements, each ended by `;`").with("GRANT SELECT ON DATABASE sales TO PUBLIC;")
        ])
        .answers(&[trust::REPLACED_POLICY]),
        Route::post("/v1/policy/explain", "What a caller may do with a table, and why", |verb| {
            verb.answered_by(policy::explain)
        })
        .admins()
        .takes(&[Media::json(&[
            Field::new("table", FieldKind::Object, "`{database, table}`").required(),
            Field::new("as", FieldKind::Object, "`{subject, role, databases, roles, groups, attributes}`").required(),
        ])
        .with(
            r#"{"table": {"database": "sales", "table": "orders"}, "as": {"subject": "anna", "roles": ["analyst"]}}"#,
        )])
        .answers(&[trust::EXPLAINED_POLICY]),
        Route::post("/v1/policy/test", "Runs statements as callers and compares their answers", |verb| {
            verb.answered_by(policy::test)
        })
        .admins()
        .takes(&[Media::json(&[
            Field::new("cases", FieldKind::List, "`{as, sql, rows | row_count | error}`").required()
        ])
        .with(r#"{"cases": [{"as": {"roles": ["analyst"]}, "sql": "SELECT 1", "row_count": 1}]}"#)])
        .answers(&[trust::TESTED_POLICY]),
        Route::get("/v1/queries", "Queries that run now: yours, or all for administrators", |verb| {
            verb.answered_by(queries::list)
        })
        .answers(&[answers::QUERIES]),
        Route::post("/v1/queries/{id}/cancel", "Ends a query, which then fails with `cancelled`", |verb| {
            verb.answered_by(queries::cancel)
        })
        .answers(&[answers::CANCELLED]),
        Route::delete("/v1/queries/{id}", "The same", |verb| verb.answered_by(queries::cancel))
            .answers(&[answers::CANCELLED]),
        Route::get("/v1/settings", "The settings in force and where each came from; secrets are `***`", |verb| {
            verb.answered_by(settings::list)
        })
        .admins()
        .answers(&[answers::SETTINGS]),
        Route::get("/v1/audit", "Records of the audit log, oldest first", |verb| verb.answered_by(maintenance::audit))
            .admins()
            .query(&[
                Field::new("after", FieldKind::Integer, "only records after the one of this number"),
                Field::new("limit", FieldKind::Integer, "records at most"),
            ])
            .answers(&[trust::AUDIT]),
        Route::get("/v1/audit/verify", "Whether each record of the audit log stands on the one before it", |verb| {
            verb.answered_by(maintenance::verify_audit)
        })
        .admins()
        .answers(&[trust::VERIFIED_AUDIT]),
        Route::post("/v1/check", "Whether the data folder is whole", |verb| verb.answered_by(maintenance::check))
            .admins()
            .query(&[
                Field::new("remove_orphans", FieldKind::Flag, "removes files that no table has"),
                Field::new("grace_seconds", FieldKind::Integer, "how long such a file must not have changed"),
                Field::new("contents", FieldKind::Flag, "reads the files of tables to see whether they are as written"),
            ])
            .answers(&[trust::CHECKED_FOLDER]),
        Route::post(
            "/v1/snapshots/expire",
            "Forgets old states of tables, and removes the files that only they have",
            |verb| verb.answered_by(maintenance::expire_snapshots),
        )
        .admins()
        .takes(&[Media::json(&[Field::new(
            "older_than_seconds",
            FieldKind::Integer,
            "how long ago a newer state must have taken its place; at least 3600",
        )
        .required()])
        .with(r#"{"older_than_seconds": 604800}"#)])
        .answers(&[trust::EXPIRED_SNAPSHOTS]),
        Route::post("/v1/backup", "Copies the data folder to another one of the server's machine", |verb| {
            verb.answered_by(maintenance::backup)
        })
        .admins()
        .takes(&[Media::json(&[Field::text("folder", "an absolute path; empty or not there").required()])
            .with(r#"{"folder": "/backups/monday"}"#)])
        .answers(&[trust::BACKUP])
        .status("201"),
    ],
};
