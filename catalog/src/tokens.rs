//! Tokens that callers send, and whom each stands for.
//!
//! A token is random and shown once, to whoever creates it; what is kept is its SHA-256. Those that are valid are held in
//! memory, so that no request waits for the store to know who sends it. Those that other servers of a shared catalog create or
//! revoke are read again when they changed (`other_servers.rs`).
//!
//! Invariant: a revoked or expired token stays listed, so that a folder that once had a token never opens to everybody
//! because the last one ended.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, StoreRow, params};
use crate::error::{CatalogError, Result};
use crate::model::{Page, PageRequest, PageToken};
use crate::policy::PolicySet;
use crate::principal::{DatabaseScope, Identity, Principal, Role};
use crate::store::Store;
use crate::store::rows::{MAX_PAGE, parse_id_token, read_json};

/// What a token begins with, so that scanners of secrets find one that was left somewhere.
const PREFIX: &str = "qrt_";
/// The most tokens of a folder. Beyond it those that ended first make room.
const MAX_TOKENS: i64 = 10_000;
/// Of how many tokens it is known that this process has revoked them: no reading of all, and no making of one, lasts as long as so
/// many revocations.
const MAX_ENDED: usize = 10_000;
/// The most bytes of a name, a subject, a role, a group, an attribute's name.
const MAX_NAME: usize = 256;
/// The most bytes of an attribute's value.
const MAX_VALUE: usize = 4_096;
/// The most databases, roles, groups and attributes of one token, each.
const MAX_ENTRIES: usize = 256;

type TokenDigest = [u8; 32];

/// A token to create.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// What people call it, such as `grafana`.
    pub name: String,
    /// Whom it stands for; the name where it is absent. Tokens of one subject share runs and conversations.
    #[serde(default)]
    pub subject: Option<String>,
    /// `read`, `write` or `admin`.
    pub role: String,
    /// The only databases that it sees; all where it is absent.
    #[serde(default)]
    pub databases: Option<Vec<String>>,
    /// Roles that policies name.
    #[serde(default)]
    pub roles: BTreeSet<String>,
    /// Groups that policies name.
    #[serde(default)]
    pub groups: BTreeSet<String>,
    /// Values that policies compare with.
    #[serde(default)]
    pub attributes: BTreeMap<String, String>,
    /// When it ends; never where it is absent.
    #[serde(default)]
    pub expires_at: Option<DateTime<Utc>>,
}

/// Whether a token is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenState {
    /// It is accepted.
    Active,
    /// Its time is over.
    Expired,
    /// Somebody revoked it.
    Revoked,
}

/// A token as it is listed: everything but itself.
#[derive(Debug, Clone, Serialize)]
pub struct TokenInfo {
    /// By which it is revoked.
    pub id: i64,
    /// What people call it.
    pub name: String,
    /// Whom it stands for.
    pub subject: String,
    /// `read`, `write` or `admin`.
    pub role: String,
    /// The only databases that it sees; `None` for all.
    pub databases: Option<Vec<String>>,
    /// Roles, groups and attributes.
    #[serde(flatten)]
    pub identity: Identity,
    /// Whether it is accepted.
    pub state: TokenState,
    /// Who created it.
    pub created_by: String,
    /// When.
    pub created_at: DateTime<Utc>,
    /// When it ends.
    pub expires_at: Option<DateTime<Utc>>,
    /// When it was revoked.
    pub revoked_at: Option<DateTime<Utc>>,
}

/// The valid tokens of an open catalog, in memory.
pub(crate) struct TokenRegistry {
    known: RwLock<KnownTokens>,
    /// Held from a reading of all to its taking, so that no older one is taken last.
    reloads: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct KnownTokens {
    valid: HashMap<TokenDigest, ValidToken>,
    /// Whether there is or was any token.
    any: bool,
    /// The newest of all that were read.
    newest: i64,
    /// Those that this process has revoked; an id is never given again.
    ended: EndedTokens,
}

/// The tokens that were revoked last, by their ids.
#[derive(Default)]
struct EndedTokens {
    ids: HashSet<i64>,
    /// The first of them in front.
    order: VecDeque<i64>,
}

impl EndedTokens {
    fn contains(&self, id: i64) -> bool {
        self.ids.contains(&id)
    }

    fn insert(&mut self, id: i64) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > MAX_ENDED
            && let Some(first) = self.order.pop_front()
        {
            self.ids.remove(&first);
        }
    }

    fn remove(&mut self, id: i64) {
        if self.ids.remove(&id) {
            self.order.retain(|known| *known != id);
        }
    }
}

impl KnownTokens {
    /// Takes what was read in the place of what is known. It is as it was when the reading began: what this process has revoked
    /// since stays so, and what it has created since is there.
    fn take(&mut self, read: Self) {
        let Self { valid, any, newest: _, ended } = std::mem::replace(self, read);
        let newest = self.newest;
        self.valid.extend(valid.into_iter().filter(|(_, token)| token.id > newest));
        self.valid.retain(|_, token| !ended.contains(token.id));
        self.any |= any;
        self.ended = ended;
    }
}

#[derive(Clone)]
struct ValidToken {
    id: i64,
    principal: Principal,
    expires_at: Option<DateTime<Utc>>,
}

/// Tokens of callers. Made by [`Catalog::tokens`](crate::Catalog::tokens).
#[derive(Clone, Copy)]
pub struct CatalogTokens<'a> {
    pub(crate) store: &'a Store,
    pub(crate) registry: &'a Arc<TokenRegistry>,
}

impl CatalogTokens<'_> {
    /// Creates a token, and returns what is listed of it and itself, which nobody can read again. A caller that sees some
    /// databases only makes tokens for those, and for nobody whom it has not named first: a token is its subject's, whose runs
    /// and policies it shares. Errors: `invalid_object`.
    pub async fn create(self, who: &Principal, new: NewToken, now: DateTime<Utc>) -> Result<(TokenInfo, String)> {
        let role = checked(who, &new, now)?;
        let secret = format!("{PREFIX}{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
        let digest = digest_of(&secret);
        let (maker, policies) = (who.clone(), self.store.policies());
        let store = move |connection: &StoreConnection| {
            require_own_subject(connection, &maker, &policies, new.subject.as_ref().unwrap_or(&new.name))?;
            insert(connection, digest, &new, maker.subject(), now)
        };
        let info = self.store.write_rows(store).await?;
        let valid = ValidToken { id: info.id, principal: principal_of(&info, role), expires_at: info.expires_at };
        let mut known = self.registry.known.write();
        if !known.ended.contains(valid.id) {
            known.valid.insert(digest, valid);
        }
        known.any = true;
        Ok((info, secret))
    }

    /// Ends a token at once. Errors: `object_not_found`, also for a token of databases that the caller may not see.
    pub async fn revoke(self, who: &Principal, id: i64, now: DateTime<Utc>) -> Result<()> {
        let who = who.clone();
        let registry = Arc::clone(self.registry);
        // With the row, not after it: the caller may leave while it is committed.
        let write = move |connection: &StoreConnection| {
            revoke(connection, &who, id, now)?;
            let mut known = registry.known.write();
            known.valid.retain(|_, token| token.id != id);
            known.ended.insert(id);
            Ok(())
        };
        let revoked = self.store.write_rows(write).await;
        if revoked.is_err() {
            self.registry.known.write().ended.remove(id);
            self.registry.reload(self.store).await?;
        }
        revoked
    }

    /// Tokens in the order in which they were created, those that ended included.
    pub async fn list(self, who: &Principal, page: PageRequest, now: DateTime<Utc>) -> Result<Page<TokenInfo>> {
        let who = who.clone();
        self.store.read(move |connection| list(connection, &who, &page, now)).await
    }

    /// Returns whom a token stands for. It is found by its digest, so that the time it takes tells nothing of it.
    pub fn principal_for(self, token: &str, now: DateTime<Utc>) -> Option<Principal> {
        if !token.starts_with(PREFIX) {
            return None;
        }
        let known = self.registry.known.read();
        let token = known.valid.get(&digest_of(token))?;
        token.expires_at.is_none_or(|end| now < end).then(|| token.principal.clone())
    }

    /// Returns the principal of that subject, if a valid token has it.
    pub fn principal_named(self, subject: &str, now: DateTime<Utc>) -> Option<Principal> {
        let known = self.registry.known.read();
        let mut valid = known.valid.values().filter(|token| token.expires_at.is_none_or(|end| now < end));
        valid.find(|token| token.principal.subject() == subject).map(|token| token.principal.clone())
    }

    /// Returns the principals of that subject, one of each valid token that has it.
    pub fn principals_of(self, subject: &str, now: DateTime<Utc>) -> Vec<Principal> {
        let known = self.registry.known.read();
        let valid = known.valid.values().filter(|token| token.expires_at.is_none_or(|end| now < end));
        valid.filter(|token| token.principal.subject() == subject).map(|token| token.principal.clone()).collect()
    }

    /// Whether the folder has or had a token, so that callers need one.
    pub fn any(self) -> bool {
        self.registry.known.read().any
    }
}

impl TokenRegistry {
    /// Reads the tokens again, which another server may have created or revoked.
    pub(crate) async fn reload(&self, store: &Store) -> Result<()> {
        let _reload = self.reloads.lock().await;
        let read = store.read(load).await?;
        self.known.write().take(read);
        Ok(())
    }

    /// Reads the tokens that are not revoked.
    pub(crate) async fn load(store: &Store) -> Result<Self> {
        let known = store.read(load).await?;
        Ok(Self { known: RwLock::new(known), reloads: tokio::sync::Mutex::new(()) })
    }
}

fn load(connection: &StoreConnection) -> Result<KnownTokens> {
    let mut known = KnownTokens {
        any: connection.query_row("SELECT EXISTS (SELECT 1 FROM querent_token)", [], |row| row.get(0))?,
        newest: connection.query_row("SELECT coalesce(max(token_id), 0) FROM querent_token", [], |row| row.get(0))?,
        ..KnownTokens::default()
    };
    let mut statement =
        connection.prepare(&format!("SELECT {COLUMNS}, digest FROM querent_token WHERE revoked_at IS NULL"))?;
    let rows = statement.query_map([], |row| Ok((read(row, DateTime::UNIX_EPOCH)?, row.get::<TokenDigest>(10)?)))?;
    for row in rows {
        let (info, digest) = row?;
        let Ok(role) = info.role.parse::<Role>() else {
            tracing::warn!(
                token = info.id,
                role = info.role,
                "a token has a role that is not known; it is not accepted"
            );
            continue;
        };
        let principal = principal_of(&info, role);
        known.valid.insert(digest, ValidToken { id: info.id, principal, expires_at: info.expires_at });
    }
    Ok(known)
}

/// Fails where a token cannot be made, or would have more rights than its maker.
fn checked(who: &Principal, new: &NewToken, now: DateTime<Utc>) -> Result<Role> {
    let role: Role = new.role.parse().map_err(|reason: String| invalid(&reason))?;
    let names = std::iter::once(&new.name).chain(&new.subject).chain(&new.roles).chain(&new.groups);
    for name in names.chain(new.attributes.keys()).chain(new.databases.iter().flatten()) {
        if name.trim().is_empty() || name.len() > MAX_NAME || name.chars().any(char::is_control) {
            return Err(invalid(&format!(
                "names, subjects, roles, groups and databases have 1 to {MAX_NAME} bytes and no control characters"
            )));
        }
    }
    if new.attributes.values().any(|value| value.len() > MAX_VALUE) {
        return Err(invalid(&format!("a value of an attribute has at most {MAX_VALUE} bytes")));
    }
    let counts = [new.roles.len(), new.groups.len(), new.attributes.len(), new.databases.as_ref().map_or(0, Vec::len)];
    if counts.iter().any(|count| *count > MAX_ENTRIES) {
        return Err(invalid(&format!("it has at most {MAX_ENTRIES} databases, roles, groups and attributes each")));
    }
    if new.expires_at.is_some_and(|end| end <= now) {
        return Err(invalid("it would have expired already; give a time to come"));
    }
    if role > who.role() {
        return Err(invalid(&format!("role {} is more than your own, {}", role.as_str(), who.role().as_str())));
    }
    if !within(who, new.databases.as_deref()) {
        return Err(invalid("you see some databases only; name those of them that it may see"));
    }
    Ok(role)
}

/// Whether the caller sees all databases that a token sees.
fn within(who: &Principal, databases: Option<&[String]>) -> bool {
    match (who.scope(), databases) {
        (DatabaseScope::All, _) => true,
        (DatabaseScope::Only(_), None) => false,
        (DatabaseScope::Only(_), Some(names)) => names.iter().all(|name| who.may_see(name)),
    }
}

/// Fails where an administrator of some databases would make a token for somebody else.
fn require_own_subject(
    connection: &StoreConnection,
    who: &Principal,
    policies: &PolicySet,
    subject: &str,
) -> Result<()> {
    if *who.scope() == DatabaseScope::All || subject == who.subject() {
        return Ok(());
    }
    let is_known: bool = connection
        .prepare_cached(
            "SELECT EXISTS (SELECT 1 FROM querent_token WHERE subject = ?1 AND created_by <> ?2)
                 OR (NOT EXISTS (SELECT 1 FROM querent_token WHERE subject = ?1)
                     AND (EXISTS (SELECT 1 FROM querent_run WHERE subject = ?1)
                         OR EXISTS (SELECT 1 FROM querent_conversation WHERE subject = ?1)))",
        )?
        .query_row(params![subject, who.subject()], |row| row.get(0))?;
    if is_known || policies.document.names_subject(subject) {
        return Err(invalid(&format!("`{subject}` is somebody else; give the token another subject, or your own")));
    }
    Ok(())
}

fn insert(
    connection: &StoreConnection,
    digest: TokenDigest,
    new: &NewToken,
    created_by: &str,
    now: DateTime<Utc>,
) -> Result<TokenInfo> {
    make_room(connection, now)?;
    let subject = new.subject.as_ref().unwrap_or(&new.name);
    let databases = new.databases.as_ref().map(json_text).transpose()?;
    let NewToken { roles, groups, attributes, .. } = new.clone();
    let identity = json_text(&Identity { roles, groups, attributes })?;
    let end = new.expires_at.map(|time| time.timestamp_micros());
    let id: i64 = connection
        .prepare_cached(
            "INSERT INTO querent_token (digest, name, subject, role, databases_json, identity_json, created_by,
                 created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING token_id",
        )?
        .query_row(
            params![digest, new.name, subject, new.role, databases, identity, created_by, now.timestamp_micros(), end],
            |row| row.get(0),
        )?;
    let mut statement =
        connection.prepare_cached(&format!("SELECT {COLUMNS} FROM querent_token WHERE token_id = ?"))?;
    Ok(statement.query_row([id], |row| read(row, now))?)
}

/// Forgets the token that ended first where there are as many as there may be.
fn make_room(connection: &StoreConnection, now: DateTime<Utc>) -> Result<()> {
    let count: i64 = connection.query_row("SELECT count(*) FROM querent_token", [], |row| row.get(0))?;
    if count < MAX_TOKENS {
        return Ok(());
    }
    let forgotten = connection.execute(
        "DELETE FROM querent_token WHERE token_id = (SELECT token_id FROM querent_token
             WHERE revoked_at IS NOT NULL OR expires_at <= ?
             ORDER BY CASE WHEN revoked_at IS NULL OR expires_at < revoked_at THEN expires_at ELSE revoked_at END LIMIT 1)",
        [now.timestamp_micros()],
    )?;
    match forgotten {
        0 => Err(invalid(&format!("there are {MAX_TOKENS} already; revoke some"))),
        _ => Ok(()),
    }
}

fn revoke(connection: &StoreConnection, who: &Principal, id: i64, now: DateTime<Utc>) -> Result<()> {
    let token = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM querent_token WHERE token_id = ?"))?
        .query_row([id], |row| read(row, now))
        .optional()?
        .filter(|token| within(who, token.databases.as_deref()));
    if token.is_none() {
        return Err(CatalogError::ObjectNotFound { what: "token", id: id.to_string() });
    }
    connection
        .prepare_cached("UPDATE querent_token SET revoked_at = ? WHERE token_id = ? AND revoked_at IS NULL")?
        .execute([now.timestamp_micros(), id])?;
    Ok(())
}

fn list(
    connection: &StoreConnection,
    who: &Principal,
    page: &PageRequest,
    now: DateTime<Utc>,
) -> Result<Page<TokenInfo>> {
    let limit = page.limit.clamp(1, MAX_PAGE);
    let after = parse_id_token(page, "token")?;
    let mut statement = connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM querent_token WHERE token_id > ? ORDER BY token_id"))?;
    let mut items: Vec<TokenInfo> = Vec::new();
    for row in statement.query_map([after], |row| read(row, now))? {
        let token = row?;
        if !within(who, token.databases.as_deref()) {
            continue;
        }
        if items.len() == limit {
            let next = items.last().map(|last| PageToken(last.id.to_string()));
            return Ok(Page { items, next });
        }
        items.push(token);
    }
    Ok(Page { items, next: None })
}

const COLUMNS: &str = "token_id, name, subject, role, databases_json, identity_json, created_by, created_at, expires_at, \
                       revoked_at";

fn read(row: &StoreRow<'_>, now: DateTime<Utc>) -> DatabaseResult<TokenInfo> {
    let time = |micros: Option<i64>| micros.and_then(DateTime::from_timestamp_micros);
    let databases = match row.is_null(4)? {
        true => None,
        false => Some(read_json(row, 4)?),
    };
    let (expires_at, revoked_at) = (time(row.get(8)?), time(row.get(9)?));
    let state = match (revoked_at, expires_at) {
        (Some(_), _) => TokenState::Revoked,
        (None, Some(end)) if end <= now => TokenState::Expired,
        (None, _) => TokenState::Active,
    };
    Ok(TokenInfo {
        id: row.get(0)?,
        name: row.get(1)?,
        subject: row.get(2)?,
        role: row.get(3)?,
        databases,
        identity: read_json(row, 5)?,
        state,
        created_by: row.get(6)?,
        created_at: time(row.get(7)?).unwrap_or_default(),
        expires_at,
        revoked_at,
    })
}

fn principal_of(info: &TokenInfo, role: Role) -> Principal {
    let principal = Principal::new(info.subject.as_str(), role).with_identity(info.identity.clone());
    match &info.databases {
        Some(databases) => principal.with_databases(databases),
        None => principal,
    }
}

fn json_text<T: Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|error| CatalogError::Internal(format!("a token's rights as JSON: {error}")))
}

fn digest_of(token: &str) -> TokenDigest {
    Sha256::digest(token.as_bytes()).into()
}

fn invalid(reason: &str) -> CatalogError {
    CatalogError::InvalidObject { what: "token", reason: reason.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(ids: &[i64]) -> KnownTokens {
        let token = |id: i64| {
            let digest = digest_of(&id.to_string());
            (digest, ValidToken { id, principal: Principal::new("ann", Role::Read), expires_at: None })
        };
        let newest = ids.iter().copied().max().unwrap_or(0);
        KnownTokens {
            valid: ids.iter().copied().map(token).collect(),
            any: true,
            newest,
            ended: EndedTokens::default(),
        }
    }

    #[test]
    fn of_the_revoked_the_last_are_known() {
        let mut ended = EndedTokens::default();
        let most = MAX_ENDED as i64;
        (1..=most + 5).chain([most]).for_each(|id| ended.insert(id));
        ended.remove(most);
        assert!(!ended.contains(5) && ended.contains(6) && !ended.contains(most) && ended.contains(most + 5));
        assert_eq!((ended.ids.len(), ended.order.len()), (MAX_ENDED - 1, MAX_ENDED - 1));
    }

    #[test]
    fn what_is_read_late_takes_nothing_back() {
        let mut known = tokens(&[1, 2, 3]);
        // Read before the second was revoked and the third created, here; another server revoked the first.
        known.valid.remove(&digest_of("2"));
        known.ended.insert(2);
        let mut read = tokens(&[1, 2]);
        read.valid.remove(&digest_of("1"));
        known.take(read);
        assert_eq!(known.valid.values().map(|token| token.id).collect::<Vec<_>>(), [3]);
        // By then it is older than what was read.
        known.take(tokens(&[4]));
        assert_eq!(known.valid.values().map(|token| token.id).collect::<Vec<_>>(), [4]);
        known.take(tokens(&[2, 4]));
        assert_eq!(known.valid.values().map(|token| token.id).collect::<Vec<_>>(), [4]);
    }
}
