//! Users of applications that embed this server, and the grants by which their browsers prove who they are.
//!
//! A user is ephemeral unless it is declared permanent. An expired user is deleted with its conversations and grants at
//! its next use or by the next purge, whichever comes first. Only the digest of what a browser holds is stored.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};

use crate::connection::{DatabaseResult, OptionalRow, StoreConnection, params};
use crate::conversations::delete_of_subject;
use crate::error::Result;
use crate::leases::WorkLease;
use crate::store::Store;
use crate::store::rows::as_limit;

/// Users or grants that one transaction deletes.
const BATCH: usize = 100;

/// A user of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalUser {
    /// The subject that owns its conversations.
    pub subject: String,
    /// The prefix of the spaces of its conversations.
    pub space: String,
    /// When it expires, together with its conversations; `None` for a permanent user.
    pub expires_at: Option<DateTime<Utc>>,
}

/// The kind of a grant, the secret by which a user proves who it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantKind {
    /// Exchanged for a token.
    Session,
    /// Sent with each request.
    Token,
}

impl GrantKind {
    fn as_str(self) -> &'static str {
        match self {
            GrantKind::Session => "session",
            GrantKind::Token => "token",
        }
    }
}

/// Users of applications and their grants. Made by [`Catalog::external_users`](crate::Catalog::external_users).
#[derive(Clone, Copy)]
pub struct CatalogExternalUsers<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogExternalUsers<'_> {
    /// Creates or updates the user. Of two expiry times the earlier one counts; a user that is declared permanent stays
    /// permanent. An expired user is deleted first, with its conversations.
    ///
    /// Returns the resulting user; `None` where it would be permanent and there are `max_kept` permanent users already.
    pub async fn admit(self, user: &ExternalUser, now: DateTime<Utc>, max_kept: u64) -> Result<Option<ExternalUser>> {
        let user = user.clone();
        self.store.write_rows(move |connection| admit(connection, &user, now, max_kept)).await
    }

    /// Stores a grant: `secret` proves `user_json` until `expires_at`.
    pub async fn insert_grant(
        self,
        kind: GrantKind,
        secret: &str,
        subject: &str,
        user_json: &str,
        expires_at: DateTime<Utc>,
    ) -> Result<()> {
        let (digest, subject, user_json) = (digest(secret), subject.to_owned(), user_json.to_owned());
        self.store
            .write_rows(move |connection| {
                connection
                    .prepare_cached("INSERT INTO querent_embed_grant VALUES (?, ?, ?, ?, ?)")?
                    .execute(params![digest, kind.as_str(), subject, expires_at.timestamp_micros(), user_json])?;
                Ok(())
            })
            .await
    }

    /// The JSON that was stored with `secret`, if the grant is valid at `now`. Looked up by digest, so that the time it
    /// takes reveals nothing about the secret.
    pub async fn find_grant(self, kind: GrantKind, secret: &str, now: DateTime<Utc>) -> Result<Option<String>> {
        let digest = digest(secret);
        self.store
            .read(move |connection| {
                Ok(connection
                    .prepare_cached(
                        "SELECT user_json FROM querent_embed_grant WHERE digest = ? AND kind = ? AND expires_at > ?",
                    )?
                    .query_row(params![digest, kind.as_str(), now.timestamp_micros()], |row| row.get(0))
                    .optional()?)
            })
            .await
    }

    /// Deletes expired users with their conversations, and expired grants. Returns the number of users. `lease` is that
    /// for [`LeasedWork::Retention`](crate::LeasedWork::Retention). Errors: `conflict` where another server has it by
    /// now.
    pub async fn purge(self, now: DateTime<Utc>, lease: &WorkLease) -> Result<u64> {
        let now = now.timestamp_micros();
        let mut purged = 0;
        loop {
            let (users, grants) = lease.write(self.store, move |connection| purge(connection, now)).await?;
            purged += users as u64;
            if users < BATCH && grants < BATCH {
                return Ok(purged);
            }
        }
    }
}

fn admit(
    connection: &StoreConnection,
    user: &ExternalUser,
    now: DateTime<Utc>,
    max_kept: u64,
) -> Result<Option<ExternalUser>> {
    let mut known = find(connection, &user.subject)?;
    if let Some(Some(expires_at)) = known
        && expires_at <= now.timestamp_micros()
    {
        forget(connection, &user.subject, &user.space)?;
        known = None;
    }
    let asked = user.expires_at.map(|time| time.timestamp_micros());
    let expires_at = match (known, asked) {
        (Some(None), _) | (_, None) => None,
        (Some(Some(known)), Some(asked)) => Some(known.min(asked)),
        (None, Some(asked)) => Some(asked),
    };
    if expires_at.is_none() && known != Some(None) {
        let kept: i64 = connection
            .prepare_cached("SELECT count(*) FROM querent_external_user WHERE expires_at IS NULL AND space = ?")?
            .query_row([&user.space], |row| row.get(0))?;
        if kept.unsigned_abs() >= max_kept {
            return Ok(None);
        }
    }
    if known != Some(expires_at) {
        connection
            .prepare_cached(
                "INSERT INTO querent_external_user VALUES (?1, ?2, ?3, ?4)
                 ON CONFLICT (subject) DO UPDATE SET expires_at = ?4",
            )?
            .execute(params![user.subject, user.space, now.timestamp_micros(), expires_at])?;
    }
    Ok(Some(ExternalUser { expires_at: expires_at.and_then(DateTime::from_timestamp_micros), ..user.clone() }))
}

/// The expiry of a user: `None` for an unknown user, `Some(None)` for a permanent one.
fn find(connection: &StoreConnection, subject: &str) -> Result<Option<Option<i64>>> {
    Ok(connection
        .prepare_cached("SELECT expires_at FROM querent_external_user WHERE subject = ?")?
        .query_row([subject], |row| row.get(0))
        .optional()?)
}

fn forget(connection: &StoreConnection, subject: &str, space: &str) -> Result<()> {
    delete_of_subject(connection, subject, space)?;
    connection.prepare_cached("DELETE FROM querent_embed_grant WHERE subject = ?")?.execute([subject])?;
    connection.prepare_cached("DELETE FROM querent_external_user WHERE subject = ?")?.execute([subject])?;
    Ok(())
}

fn purge(connection: &StoreConnection, now: i64) -> Result<(usize, usize)> {
    let users: Vec<(String, String)> = connection
        .prepare_cached("SELECT subject, space FROM querent_external_user WHERE expires_at <= ? LIMIT ?")?
        .query_map(params![now, as_limit(BATCH)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<DatabaseResult<_>>()?;
    for (subject, space) in &users {
        forget(connection, subject, space)?;
    }
    let grants = connection
        .prepare_cached(
            "DELETE FROM querent_embed_grant WHERE digest IN
                 (SELECT digest FROM querent_embed_grant WHERE expires_at <= ? LIMIT ?)",
        )?
        .execute(params![now, as_limit(BATCH)])?;
    Ok((users.len(), grants))
}

fn digest(secret: &str) -> String {
    Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}
