//! Callers of Cube's API: an application with its key, which names the user it calls for, or such a user with a token
//! that the application obtained. A user may only read, sees no more than its application does, and owns its threads.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, TimeDelta, Utc};
use http::request::Parts;
use http::{HeaderMap, header};
use querent_agent::protocols::cube::{ExternalId, SessionSettings};
use querent_catalog::{DatabaseScope, ExternalUser, GrantKind, Identity, Principal, Role, UserAttributes};
use serde::{Deserialize, Serialize};

use super::surface::CubeSurface;
use crate::error::{ApiError, ErrorCode};
use crate::http::request::QueryBytes;
use crate::state::AppState;
use crate::telemetry::record_caller;

/// The longest name of an account or an agent.
const MAX_NAME_BYTES: usize = 256;
/// The prefix of the spaces that hold threads of applications' users.
const SPACES: &str = "cube/";

/// Who sent a request.
pub(in crate::http) enum CubeCaller {
    /// An application.
    Application(Application),
    /// One of its users.
    User(Principal),
}

/// An application, by its key.
pub(in crate::http) struct Application {
    principal: Principal,
    /// Whether it may call for users of this server.
    is_trusted: bool,
    /// Keeps its users apart from those of other applications; `None` if all keys belong to one application.
    name: Option<String>,
}

/// A user, and when it expires.
pub(super) struct User {
    pub(super) principal: Principal,
    pub(super) expires_at: Option<DateTime<Utc>>,
    /// Whose rights it has: its application's, and those of the user of this server that it is.
    pub(super) sources: Vec<Principal>,
}

/// A user as a grant has it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct GrantedUser {
    pub(super) principal: Principal,
    /// Whose rights it has, as far as they could be looked up when it was granted: the grant ends with them.
    pub(super) sources: Vec<Principal>,
}

/// A user as a grant stores it.
#[derive(Debug, Serialize, Deserialize)]
struct StoredUser {
    subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    databases: Option<Vec<String>>,
    #[serde(default)]
    identity: Identity,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attributes: Option<UserAttributes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sources: Vec<StoredSource>,
}

/// Whose rights a stored user has.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSource {
    subject: String,
    role: String,
    databases: Option<Vec<String>>,
    identity: Identity,
}

impl CubeSurface {
    /// Returns the caller that `Authorization` names. Errors: `unauthenticated`, `identity_provider_unavailable`.
    pub(super) async fn caller(&self, state: &AppState, headers: &HeaderMap) -> Result<CubeCaller, ApiError> {
        let unknown = || ApiError::new(ErrorCode::Unauthenticated, "Invalid or missing API key");
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).ok_or_else(unknown)?;
        let (scheme, secret) = value.split_once(' ').ok_or_else(unknown)?;
        let secret = secret.trim();
        if secret.is_empty() {
            return Err(unknown());
        }
        if scheme.eq_ignore_ascii_case("api-key") {
            let application = self.application(state, secret).await.map_err(|error| match error.code() {
                ErrorCode::Unauthenticated => unknown(),
                _ => error,
            });
            return application.map(CubeCaller::Application);
        }
        if scheme.eq_ignore_ascii_case("bearer") {
            let catalog = state.agent.catalog();
            let granted = catalog.external_users().find_grant(GrantKind::Token, secret, catalog.now().await?).await?;
            let user = granted_user(&granted.ok_or_else(unknown)?)?;
            return if self.still_grants(state, &user) { Ok(CubeCaller::User(user.principal)) } else { Err(unknown()) };
        }
        Err(unknown())
    }

    /// Whether those whose rights a user was granted have them now: a key or a token that ended takes its users with it.
    pub(super) fn still_grants(&self, state: &AppState, user: &GrantedUser) -> bool {
        user.sources.iter().all(|source| self.knows(state, source))
    }

    async fn application(&self, state: &AppState, key: &str) -> Result<Application, ApiError> {
        if !self.keys.is_open() {
            return Ok(Application { principal: self.keys.principal_for(key).await?, is_trusted: true, name: None });
        }
        if state.auth.is_open() {
            return Ok(Application { principal: Principal::local_admin(), is_trusted: true, name: None });
        }
        let principal = state.auth.principal_for(key).await?;
        let is_trusted = principal.role() == Role::Admin;
        let name = Some(principal.subject().to_owned());
        Ok(Application { principal, is_trusted, name })
    }
}

impl CubeCaller {
    /// Returns the user on whose behalf it calls. Errors: `invalid_request`, `too_many_external_users`.
    pub(super) async fn user(self, state: &AppState, settings: Option<SessionSettings>) -> Result<Principal, ApiError> {
        let principal = match (self, settings) {
            (CubeCaller::User(principal), None) => principal,
            (CubeCaller::User(_), Some(_)) => {
                return Err(invalid("`sessionSettings` need an API key; a token says who its user is"));
            }
            (CubeCaller::Application(_), None) => {
                return Err(invalid("`sessionSettings` is missing; say who asks with its `externalId`"));
            }
            (CubeCaller::Application(application), Some(settings)) => {
                application.user(state, settings).await?.principal
            }
        };
        record_caller(principal.subject());
        Ok(principal)
    }
}

impl Application {
    /// Returns the user that it calls for. Errors: as [`CubeCaller::user`].
    pub(super) async fn user(&self, state: &AppState, settings: SessionSettings) -> Result<User, ApiError> {
        match settings {
            SessionSettings::External(external) => self.external(state, external).await,
            SessionSettings::Internal(id) => self.internal(state, &id),
        }
    }

    fn internal(&self, state: &AppState, id: &str) -> Result<User, ApiError> {
        let itself = (self.name.as_deref() == Some(id)).then_some(&self.principal);
        let others = self.is_trusted.then(|| state.auth.principal_named(id)).flatten();
        let known = itself.cloned().or(others).ok_or_else(|| invalid(format!("there is no internal user `{id}`")))?;
        let principal = known.narrowed(id, Role::Read);
        Ok(User { principal, expires_at: None, sources: vec![self.principal.clone(), known] })
    }

    async fn external(&self, state: &AppState, external: ExternalId) -> Result<User, ApiError> {
        let known = &state.settings.cube.user_attributes;
        let unknown = external.attributes.values.keys().find(|name| !known.contains(name));
        if let Some(name) = unknown.filter(|_| !known.is_empty()) {
            return Err(invalid(format!("unknown user attribute `{name}`; there are {}", known.join(", "))));
        }
        // Ids have no spaces, so the two forms cannot collide.
        let subject = match &self.name {
            None => format!("cube:{}", external.id),
            Some(name) => format!("cube:{} via {name}", external.id),
        };
        // By the clock that all servers have: one whose own is ahead would delete the user's threads early.
        let now = state.agent.catalog().now().await?;
        let lives = external.ttl_seconds.map(|seconds| TimeDelta::seconds(i64::try_from(seconds).unwrap_or(i64::MAX)));
        let user = ExternalUser {
            subject: subject.clone(),
            space: SPACES.to_owned(),
            expires_at: lives.and_then(|lives| now.checked_add_signed(lives)),
        };
        let most = state.settings.cube.max_external_users;
        let admitted = state.agent.catalog().external_users().admit(&user, now, most).await?;
        let admitted = admitted.ok_or_else(|| {
            let message = format!("there are {most} external users that are not ephemeral, and no more may be");
            ApiError::new(ErrorCode::TooManyExternalUsers, message)
        })?;
        let principal = self.for_user(subject, external.attributes);
        Ok(User { principal, expires_at: admitted.expires_at, sources: vec![self.principal.clone()] })
    }

    /// Returns the principal of a user, who may read what the application may, with the user's attributes. Policies go by
    /// what a trusted application says of its users; from another one it would be a way to rights that it has not.
    fn for_user(&self, subject: String, attributes: UserAttributes) -> Principal {
        let mut user = self.principal.narrowed(subject, Role::Read);
        if self.is_trusted {
            let mut identity = user.identity().clone();
            let texts = attributes.security_context.iter();
            let texts = texts.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
            identity.groups.extend(attributes.groups.iter().cloned());
            identity.attributes.extend(texts);
            identity.attributes.extend(attributes.values.clone());
            identity.attributes.extend(attributes.email.clone().map(|email| ("email".to_owned(), email)));
            user = user.with_identity(identity);
        }
        user.with_attributes(attributes)
    }
}

/// A request of an application, with its body.
pub(in crate::http) struct ApplicationCall {
    pub(super) state: AppState,
    pub(super) surface: Arc<CubeSurface>,
    pub(super) application: Application,
    pub(super) body: Bytes,
}

impl FromRequest<AppState> for ApplicationCall {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (parts, body) = request.into_parts();
        let CubeCaller::Application(application) = caller_of(&parts, state).await? else {
            return Err(invalid("this route needs `Authorization: Api-Key <key>`"));
        };
        let surface = shared(&parts)?;
        let QueryBytes(body) = QueryBytes::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self { state: state.clone(), surface, application, body })
    }
}

/// A request about a thread: who sends it, where the agent's threads are, and its body.
pub(in crate::http) struct ThreadCall {
    pub(super) state: AppState,
    pub(super) surface: Arc<CubeSurface>,
    pub(super) caller: CubeCaller,
    pub(super) space: String,
    pub(super) body: Bytes,
}

impl FromRequest<AppState> for ThreadCall {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &AppState) -> Result<Self, ApiError> {
        let (mut parts, body) = request.into_parts();
        let caller = caller_of(&parts, state).await?;
        let path = Path::<(String, String)>::from_request_parts(&mut parts, state).await;
        let Path((account, agent)) = path.map_err(|error| ApiError::new(ErrorCode::BadParameter, error.body_text()))?;
        let space = space_of_agent(state, &account, &agent)?;
        let surface = shared(&parts)?;
        let QueryBytes(body) = QueryBytes::from_request(Request::from_parts(parts, body), state).await?;
        Ok(Self { state: state.clone(), surface, caller, space, body })
    }
}

fn shared(parts: &Parts) -> Result<Arc<CubeSurface>, ApiError> {
    let surface = parts.extensions.get::<Arc<CubeSurface>>();
    surface.cloned().ok_or_else(|| ApiError::internal("a route of Cube's lacks what its routes share"))
}

/// Lets a request pass whose caller is known, before its body is read. For whom an application asks is in the body, and
/// policies may be about that user: so what is kept for the application is kept for the policy that holds.
pub(super) async fn authorize(State(state): State<AppState>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let caller = match caller_of(&parts, &state).await {
        Ok(CubeCaller::User(principal)) => principal,
        Ok(CubeCaller::Application(application)) => {
            let version = state.engine.catalog().policies().current().version;
            let name = format!("{} under policy {version}", application.principal.subject());
            application.principal.narrowed(name, Role::Read)
        }
        Err(error) => return error.into_response(),
    };
    parts.extensions.insert(caller);
    next.run(Request::from_parts(parts, body)).await
}

async fn caller_of(parts: &Parts, state: &AppState) -> Result<CubeCaller, ApiError> {
    shared(parts)?.caller(state, &parts.headers).await
}

/// Returns the space of an agent's threads. Errors: `not_found`.
fn space_of_agent(state: &AppState, account: &str, agent: &str) -> Result<String, ApiError> {
    let settings = &state.settings.cube;
    for (what, name, known) in [("account", account, &settings.accounts), ("agent", agent, &settings.agents)] {
        let is_name =
            !name.is_empty() && name.len() <= MAX_NAME_BYTES && !name.contains(|c: char| c == '/' || c.is_control());
        if !is_name || !(known.is_empty() || known.iter().any(|known| known == name)) {
            return Err(ApiError::new(ErrorCode::NotFound, format!("there is no {what} `{name}`")));
        }
    }
    Ok(format!("{SPACES}{account}/{agent}"))
}

/// Encodes a user for a grant.
pub(super) fn user_json(user: &GrantedUser) -> Result<String, ApiError> {
    let source = |source: &Principal| StoredSource {
        subject: source.subject().to_owned(),
        role: source.role().as_str().to_owned(),
        databases: databases_of(source),
        identity: source.identity().clone(),
    };
    let stored = StoredUser {
        subject: user.principal.subject().to_owned(),
        databases: databases_of(&user.principal),
        identity: user.principal.identity().clone(),
        attributes: user.principal.attributes().cloned(),
        sources: user.sources.iter().map(source).collect(),
    };
    serde_json::to_string(&stored).map_err(ApiError::internal)
}

/// Decodes the user of a grant.
pub(super) fn granted_user(json: &str) -> Result<GrantedUser, ApiError> {
    let stored: StoredUser = serde_json::from_str(json).map_err(ApiError::internal)?;
    let principal = principal_of(stored.subject, Role::Read, stored.databases, stored.identity);
    let principal = match stored.attributes {
        Some(attributes) => principal.with_attributes(attributes),
        None => principal,
    };
    let sources = stored.sources.into_iter().map(source_of).collect::<Result<_, _>>()?;
    Ok(GrantedUser { principal, sources })
}

fn source_of(stored: StoredSource) -> Result<Principal, ApiError> {
    let role: Role = stored.role.parse().map_err(ApiError::internal)?;
    Ok(principal_of(stored.subject, role, stored.databases, stored.identity))
}

fn databases_of(principal: &Principal) -> Option<Vec<String>> {
    match principal.scope() {
        DatabaseScope::All => None,
        DatabaseScope::Only(names) => Some(names.iter().cloned().collect()),
    }
}

fn principal_of(subject: String, role: Role, databases: Option<Vec<String>>, identity: Identity) -> Principal {
    let principal = Principal::new(subject, role).with_identity(identity);
    match databases {
        Some(databases) => principal.with_databases(databases),
        None => principal,
    }
}

fn invalid(message: impl Into<String>) -> ApiError {
    ApiError::new(ErrorCode::InvalidRequest, message)
}

#[cfg(test)]
mod tests {
    use querent_agent::protocols::cube::CubeRequest;
    use serde_json::{Value, json};

    use super::*;

    /// Makes the principal that `stream-chat-state` starts a run with.
    fn user_of(settings: &Value) -> Principal {
        let body = json!({ "input": "how many?", "chatId": "c", "sessionSettings": settings });
        let request = CubeRequest::parse(body.to_string().as_bytes()).unwrap();
        let Some(SessionSettings::External(external)) = request.session else { panic!("{request:?}") };
        let principal = Principal::new("app", Role::Admin).with_databases(["sales"]);
        let application = Application { principal, is_trusted: true, name: None };
        application.for_user(format!("cube:{}", external.id), external.attributes)
    }

    #[test]
    fn what_a_request_says_of_its_user_is_on_the_principal() {
        let context = json!({ "tenant": 7, "regions": ["north", { "deep": null }] });
        let principal = user_of(&json!({
            "externalId": "ann",
            "email": "ann@example.com",
            "userAttributes": [{ "name": "city", "value": "Oslo" }, { "name": "level", "value": "3" }],
            "groups": ["sales", "east"],
            "securityContext": context,
        }));
        assert_eq!((principal.subject(), principal.role()), ("cube:ann", Role::Read));
        let known = principal.attributes().unwrap();
        let values: Vec<(&str, &str)> =
            known.values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(values, [("city", "Oslo"), ("level", "3")]);
        assert_eq!(
            (known.email.as_deref(), known.groups.as_slice()),
            (Some("ann@example.com"), ["sales".to_owned(), "east".to_owned()].as_slice())
        );
        assert_eq!(json!(known.security_context), context, "word for word");
        // A browser's token stands for the same user.
        let sources = vec![Principal::new("app", Role::Admin).with_databases(["sales"])];
        let granted = GrantedUser { principal: principal.clone(), sources };
        assert_eq!(granted_user(&user_json(&granted).unwrap()).unwrap(), granted);

        // A later request of the same user brings its own attributes.
        let later = user_of(&json!({ "externalId": "ann", "userAttributes": [{ "name": "city", "value": "Rome" }] }));
        assert_eq!(later.subject(), principal.subject());
        let known = later.attributes().unwrap();
        assert_eq!((known.values["city"].as_str(), known.values.len()), ("Rome", 1));
        assert!(known.security_context.is_empty() && known.groups.is_empty());
    }
}
