//! Who may do what: tokens.

use crate::http::route::{Callers, ErrorSchema, Field, FieldKind, JSON, Media, Route, Surface, no_layers};
use crate::http::tokens;

pub(super) const TRUST: Surface = Surface {
    name: "trust",
    about: "Who may do what.",
    page: "docs/security.md",
    errors: ErrorSchema::Object,
    callers: Callers::Tokens,
    layers: no_layers,
    routes: &[
        Route::get("/v1/tokens", "Tokens of the catalog, oldest first, without the tokens themselves", |verb| {
            verb.answered_by(tokens::list)
        })
        .admins()
        .query(&[
            Field::new("limit", FieldKind::Integer, "entries of a page"),
            Field::text("page_token", "`next_page_token` of the page before"),
        ]),
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
        .answers(&[JSON])
        .status("201"),
        Route::delete("/v1/tokens/{id}", "Revokes a token, at once", |verb| verb.answered_by(tokens::revoke)).admins(),
    ],
};
