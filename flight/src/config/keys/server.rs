//! Where the server listens, where its data is, how it stops, and who may call it.

use super::{SettingKey, SettingKind, key};

/// The settings of the server as a whole.
pub(super) const KEYS: &[SettingKey] = &[
    key("listen", &["QUERENT_LISTEN"], SettingKind::Text, "address and port for HTTP and Flight SQL"),
    key(
        "listen_unix",
        &["QUERENT_LISTEN_UNIX"],
        SettingKind::Text,
        "path of a socket to listen on too, which only this user may open",
    ),
    key("data", &["QUERENT_DATA"], SettingKind::Text, "the data folder"),
    key(
        "data_path",
        &["QUERENT_DATA_PATH"],
        SettingKind::Text,
        "URL below which a new folder's tables have their files, such as s3://bucket/lake/; unset: in the data folder",
    ),
    key(
        "shutdown_delay",
        &["QUERENT_SHUTDOWN_DELAY"],
        SettingKind::Text,
        "how long /ready says 503 before connections are refused",
    ),
    key(
        "shutdown_timeout",
        &["QUERENT_SHUTDOWN_TIMEOUT"],
        SettingKind::Text,
        "how long open requests may take to end at shutdown",
    ),
    SettingKey {
        path: "auth.tokens",
        environment: &["QUERENT_AUTH_TOKENS", "KYMA_AUTH_TOKENS"],
        kind: SettingKind::Tokens,
        secret: true,
        about: "token:role[:subject],...; none: every caller is an administrator",
    },
    key(
        "auth.allow_anonymous_remote",
        &["QUERENT_AUTH_ALLOW_ANONYMOUS_REMOTE"],
        SettingKind::Bool,
        "listen beyond loopback without tokens",
    ),
    key(
        "auth.oidc.issuer",
        &["QUERENT_AUTH_OIDC_ISSUER"],
        SettingKind::Text,
        "the identity provider whose signed tokens are taken; unset: none",
    ),
    key(
        "auth.oidc.audience",
        &["QUERENT_AUTH_OIDC_AUDIENCE"],
        SettingKind::List,
        "what a signed token's aud must name",
    ),
    key(
        "auth.oidc.jwks_url",
        &["QUERENT_AUTH_OIDC_JWKS_URL"],
        SettingKind::Text,
        "where the provider's keys are; unset: as its openid-configuration says",
    ),
    key(
        "auth.oidc.subject_claim",
        &["QUERENT_AUTH_OIDC_SUBJECT_CLAIM"],
        SettingKind::Text,
        "the claim that is the subject",
    ),
    key("auth.oidc.roles_claim", &["QUERENT_AUTH_OIDC_ROLES_CLAIM"], SettingKind::Text, "the claim that lists roles"),
    key(
        "auth.oidc.groups_claim",
        &["QUERENT_AUTH_OIDC_GROUPS_CLAIM"],
        SettingKind::Text,
        "the claim that lists groups",
    ),
    key(
        "auth.oidc.databases_claim",
        &["QUERENT_AUTH_OIDC_DATABASES_CLAIM"],
        SettingKind::Text,
        "the claim that lists the only databases; unset: all",
    ),
    key(
        "auth.oidc.attribute_claims",
        &["QUERENT_AUTH_OIDC_ATTRIBUTE_CLAIMS"],
        SettingKind::List,
        "claim or name=claim,...: the claims that are attributes",
    ),
    key(
        "auth.oidc.role_map",
        &["QUERENT_AUTH_OIDC_ROLE_MAP"],
        SettingKind::List,
        "value=read|write|admin,...: what a role of the provider may do",
    ),
    key(
        "auth.oidc.default_role",
        &["QUERENT_AUTH_OIDC_DEFAULT_ROLE"],
        SettingKind::Text,
        "read, write, admin, or none to refuse: without a mapped role",
    ),
];
