//! Users of applications that embed this server: who they are, until when, and what their browsers prove it with.
//!
//! A user is ephemeral unless it is said to stay; when its time is over it goes with its conversations and grants, at
//! its next use or when old things are purged, whichever comes first. What a browser holds is stored as a digest only.

use chrono::{DateTime, Utc};
use rusqlite::{Connection, OptionalExtension, params};
use sha2::{Digest, Sha256};

use crate::conversations::delete_of_subject;
use crate::error::Result;
use crate::store::Store;
use crate::store::rows::as_limit;

/// Users or grants that one transaction deletes.
const BATCH: usize = 100;

/// A user of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalUser {
    /// The owner's name of its conversations.
    pub subject: String,
    /// Its conversations are in the spaces that begin so.
    pub space: String,
    /// When it goes, with its conversations; `None`: it stays.
    pub expires_at: Option<DateTime<Utc>>,
}

/// What somebody holds to prove who they are.
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
    /// Makes the user, or lets it live on: an earlier end counts, an end counts no more once the user is said to stay,
    /// and one that stays is not made ephemeral. One whose time is over is forgotten first, with its conversations.
    ///
    /// Returns the user as it is then; `None` where it would stay and `max_kept` others do.
    pub async fn admit(self, user: &ExternalUser, now: DateTime<Utc>, max_kept: u64) -> Result<Option<ExternalUser>> {
        let user = user.clone();
        self.store.write_rows(move |connection| admit(connection, &user, now, max_kept)).await
    }

    /// Stores what `secret` proves until `expires_at`.
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

    /// What `secret` proves at `now`: the JSON text that it was stored with. Looked up by its digest, so that how long
    /// it takes tells nothing of a secret.
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

    /// Deletes the users whose time is over, with their conversations, and the grants that prove nothing any more.
    /// Returns how many users.
    pub async fn purge(self, now: DateTime<Utc>) -> Result<u64> {
        let now = now.timestamp_micros();
        let mut purged = 0;
        loop {
            let (users, grants) = self.store.write_rows(move |connection| purge(connection, now)).await?;
            purged += users as u64;
            if users < BATCH && grants < BATCH {
                return Ok(purged);
            }
        }
    }
}

fn admit(
    connection: &Connection,
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

/// When the user ends, if it is there and ends.
fn find(connection: &Connection, subject: &str) -> Result<Option<Option<i64>>> {
    Ok(connection
        .prepare_cached("SELECT expires_at FROM querent_external_user WHERE subject = ?")?
        .query_row([subject], |row| row.get(0))
        .optional()?)
}

fn forget(connection: &Connection, subject: &str, space: &str) -> Result<()> {
    delete_of_subject(connection, subject, space)?;
    connection.prepare_cached("DELETE FROM querent_embed_grant WHERE subject = ?")?.execute([subject])?;
    connection.prepare_cached("DELETE FROM querent_external_user WHERE subject = ?")?.execute([subject])?;
    Ok(())
}

fn purge(connection: &Connection, now: i64) -> Result<(usize, usize)> {
    let users: Vec<(String, String)> = connection
        .prepare_cached("SELECT subject, space FROM querent_external_user WHERE expires_at <= ? LIMIT ?")?
        .query_map(params![now, as_limit(BATCH)], |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<rusqlite::Result<_>>()?;
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
