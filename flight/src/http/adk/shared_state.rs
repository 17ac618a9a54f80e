//! State that sessions share: keys that begin with `user:`, in all sessions that a user has of an application, and with
//! `app:`, in all of the application; of one caller in both cases. It is kept as the state of conversations in spaces
//! of their own, which no listing reaches and no run is in.

use chrono::{TimeDelta, Utc};
use querent_catalog::{
    CatalogError, ConversationAccess, ConversationChange, ConversationKey, ConversationRecord, Principal,
};
use serde_json::{Map, Value, json};

use super::scope::{merged, put_into_state};
use crate::http::openai::error::OpenAiError;
use crate::state::AppState;

/// What is read so long after its last use counts as used again: unused conversations are deleted some day.
const USED_EACH: TimeDelta = TimeDelta::days(1);

/// The sessions that share a key.
#[derive(Clone, Copy)]
enum SharedKeys {
    OfApp,
    OfUser,
}

impl SharedKeys {
    const ALL: [Self; 2] = [Self::OfApp, Self::OfUser];

    /// Returns how the keys begin.
    fn prefix(self) -> &'static str {
        match self {
            Self::OfApp => "app:",
            Self::OfUser => "user:",
        }
    }

    /// Returns where the state of `session`'s owner is.
    fn key(self, session: &ConversationRecord) -> ConversationKey {
        let ConversationRecord { subject, app, user_id, .. } = session;
        let (space, id) = match self {
            Self::OfApp => ("adk-state/app", json!([subject, app])),
            Self::OfUser => ("adk-state/user", json!([subject, app, user_id])),
        };
        ConversationKey { space: space.to_owned(), id: id.to_string() }
    }

    async fn find(
        self,
        state: &AppState,
        principal: &Principal,
        session: &ConversationRecord,
    ) -> Result<Option<ConversationRecord>, OpenAiError> {
        match state.agent.catalog().conversations().get(principal, &self.key(session)).await {
            Ok(record) => Ok(Some(record)),
            Err(CatalogError::ConversationNotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the record of `session`'s owner, made by them if there is none; `None` where somebody else would make
    /// it.
    async fn open(
        self,
        state: &AppState,
        principal: &Principal,
        session: &ConversationRecord,
    ) -> Result<Option<ConversationRecord>, OpenAiError> {
        let found = self.find(state, principal, session).await?;
        if found.is_some() || session.subject != principal.subject() {
            return Ok(found);
        }
        let record = ConversationRecord {
            app: session.app.clone(),
            user_id: session.user_id.clone(),
            ..ConversationRecord::new(self.key(session), principal.subject(), Utc::now())
        };
        Ok(match state.agent.catalog().conversations().open(principal, &record).await? {
            ConversationAccess::Created(record) | ConversationAccess::Existing(record) => Some(record),
            ConversationAccess::Foreign => None,
        })
    }
}

/// Returns what a session shares with others.
pub(super) async fn shared_state(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
) -> Result<Map<String, Value>, OpenAiError> {
    let mut all = Map::new();
    for shared in SharedKeys::ALL {
        let Some(record) = shared.find(state, principal, session).await? else { continue };
        if record.updated_at < Utc::now() - USED_EACH {
            let used = ConversationChange::default();
            state.agent.catalog().conversations().update(principal, &record.key, &used).await?;
        }
        all.extend(serde_json::from_str::<Map<String, Value>>(&record.state_json).unwrap_or_default());
    }
    Ok(all)
}

/// Whether sessions share a key of their state.
pub(super) fn is_shared(key: &str) -> bool {
    SharedKeys::ALL.iter().any(|shared| key.starts_with(shared.prefix()))
}

/// Checks that what sessions share has room for its keys of `delta`. Errors: `state_too_large`.
pub(super) async fn check_shared(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
    delta: &Map<String, Value>,
) -> Result<(), OpenAiError> {
    for shared in SharedKeys::ALL {
        let of_these = delta.iter().filter(|(key, _)| key.starts_with(shared.prefix()));
        let part: Map<String, Value> = of_these.map(|(key, value)| (key.clone(), value.clone())).collect();
        if !part.is_empty() {
            let known = shared.find(state, principal, session).await?;
            merged(known.as_ref().map_or("{}", |known| known.state_json.as_str()), part)?;
        }
    }
    Ok(())
}

/// Keeps the keys of `delta` that sessions share. Returns the others.
pub(super) async fn keep_shared(
    state: &AppState,
    principal: &Principal,
    session: &ConversationRecord,
    delta: Map<String, Value>,
) -> Result<Map<String, Value>, OpenAiError> {
    let mut rest = delta;
    for shared in SharedKeys::ALL {
        let (part, mut others): (Map<_, _>, Map<_, _>) =
            rest.into_iter().partition(|(key, _)| key.starts_with(shared.prefix()));
        if !part.is_empty() {
            match shared.open(state, principal, session).await? {
                Some(record) => {
                    put_into_state(state, principal, &record.key, part).await?;
                }
                // An administrator changes a session of somebody who shares nothing yet.
                None => others.extend(part),
            }
        }
        rest = others;
    }
    Ok(rest)
}
