//! Conversations with the agent, their items, tool calls that wait for a person or a program, and uploaded files.
//!
//! Each belongs to one subject and is visible only to it and to administrators; for others it does not exist. What
//! belongs to a run or a conversation is deleted with it. Tests are in `tests/it/conversation_store.rs`.

mod files;
mod items;
mod pending_calls;
mod rows;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::error::Result;
use crate::model::{ConversationKey, Page, PageRequest};
use crate::principal::Principal;
use crate::store::Store;

pub(crate) use files::purge as purge_files;
pub use files::{CatalogFiles, FileRecord};
pub use items::{CatalogItems, ItemRecord, ItemRole, ItemScope};
pub use pending_calls::{
    CatalogPendingCalls, DecidedRun, Decision, PendingCall, PendingDecision, PendingKind, PendingState,
};
pub(crate) use rows::{delete_of_subject, purge as purge_conversations};

/// What a file, a conversation or an item counts for beside its content and its names, in bytes: many empty ones take room too.
pub const RECORD_BYTES: u64 = 1_024;

/// A stored conversation. Fields that end with `_json` hold JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationRecord {
    /// Its key.
    pub key: ConversationKey,
    /// [`Principal::subject`] of its owner.
    pub subject: String,
    /// The owner's own user; may be empty.
    pub user_id: String,
    /// The application it belongs to; may be empty.
    pub app: String,
    /// A title for people; may be empty.
    pub title: String,
    /// Metadata that the owner attached: `{...}`.
    pub metadata_json: String,
    /// State of the owner's application: `{...}`.
    pub state_json: String,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When a run of it last began, an item was last added, or it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Number of its stored runs. Counted on read, ignored on write.
    pub run_count: u64,
}

impl ConversationRecord {
    /// A new conversation of `subject`, without user, application and title, and with empty metadata and state.
    pub fn new(key: ConversationKey, subject: impl Into<String>, created_at: DateTime<Utc>) -> Self {
        Self {
            key,
            subject: subject.into(),
            user_id: String::new(),
            app: String::new(),
            title: String::new(),
            metadata_json: "{}".into(),
            state_json: "{}".into(),
            created_at,
            updated_at: created_at,
            run_count: 0,
        }
    }
}

/// The outcome of opening a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationAccess {
    /// It did not exist and was created.
    Created(ConversationRecord),
    /// It existed and belongs to the caller.
    Existing(ConversationRecord),
    /// It existed and belongs to another subject.
    Foreign,
}

/// Which conversations to list. All conditions must hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only this space.
    pub space: String,
    /// Only this user of the owner's.
    pub user_id: Option<String>,
    /// Only this application.
    pub app: Option<String>,
}

/// A change of a conversation; `None` leaves a part unchanged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// The title.
    pub title: Option<String>,
    /// The whole metadata.
    pub metadata_json: Option<String>,
    /// The whole state.
    pub state_json: Option<String>,
}

/// What came of putting values into the state of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum StateMerge {
    /// The conversation, with all that was put there.
    Merged(Box<ConversationRecord>),
    /// The state would be longer than it may be; nothing was changed.
    TooLarge {
        /// Its bytes.
        bytes: usize,
    },
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// In the list's order.
    pub items: Vec<T>,
    /// Whether there are items after the last one.
    pub has_more: bool,
}

impl<T> Listed<T> {
    /// The first `limit` of `items`, of which there is one more where the list continues.
    fn cut(mut items: Vec<T>, limit: usize) -> Self {
        let has_more = items.len() > limit;
        items.truncate(limit);
        Self { items, has_more }
    }
}

/// Conversations. Made by [`Catalog::conversations`](crate::Catalog::conversations).
#[derive(Clone, Copy)]
pub struct CatalogConversations<'a> {
    pub(crate) store: &'a Store,
}

impl CatalogConversations<'_> {
    /// Opens the conversation with the record's key; where there is none, creates it from the record with the caller as
    /// its owner. Administrators cannot open the conversation of another subject either.
    pub async fn open(self, who: &Principal, new: &ConversationRecord) -> Result<ConversationAccess> {
        let (who, new) = (who.clone(), new.clone());
        self.store.write_rows(move |connection| rows::open(connection, &who, &new)).await
    }

    /// Returns a conversation. Errors: `conversation_not_found`, also for callers other than its owner and
    /// administrators.
    pub async fn get(self, who: &Principal, key: &ConversationKey) -> Result<ConversationRecord> {
        let (who, key) = (who.clone(), key.clone());
        self.store.read(move |connection| rows::get(connection, &who, &key)).await
    }

    /// Lists conversations by their last activity, newest first. One that is used between two pages moves to the front
    /// and may be on neither.
    pub async fn list(
        self,
        who: &Principal,
        filter: &ConversationFilter,
        page: PageRequest,
    ) -> Result<Page<ConversationRecord>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.read(move |connection| rows::list(connection, &who, &filter, &page)).await
    }

    /// Changes parts of a conversation and returns the result. Errors: `conversation_not_found`.
    pub async fn update(
        self,
        who: &Principal,
        key: &ConversationKey,
        change: &ConversationChange,
    ) -> Result<ConversationRecord> {
        let (who, key, change) = (who.clone(), key.clone(), change.clone());
        self.store.write_rows(move |connection| rows::update(connection, &who, &key, &change)).await
    }

    /// Puts values into the state of a conversation, which is longer than `most` bytes in no case. Values of other names stay, also
    /// those that others put there since the conversation was read, on whichever server. Errors: `conversation_not_found`.
    pub async fn merge_state(
        self,
        who: &Principal,
        key: &ConversationKey,
        values: Map<String, Value>,
        most: usize,
    ) -> Result<StateMerge> {
        let (who, key) = (who.clone(), key.clone());
        self.store.write_rows(move |connection| rows::merge_state(connection, &who, &key, values, most)).await
    }

    /// Returns how many bytes the conversations of a subject take, with the items that were added to them and without their
    /// runs, each conversation and item 1 KiB beside its content.
    pub async fn stored_bytes(self, subject: &str) -> Result<u64> {
        let subject = subject.to_owned();
        self.store.read(move |connection| rows::stored_bytes(connection, &subject)).await
    }

    /// Deletes a conversation with its runs, their items and pending calls. Returns whether there was one.
    pub async fn delete(self, who: &Principal, key: &ConversationKey) -> Result<bool> {
        let (who, key) = (who.clone(), key.clone());
        self.store.write_rows(move |connection| rows::delete(connection, &who, &key)).await
    }

    /// Deletes a conversation that nobody has used or opened since it was created. Returns whether there was such a one.
    pub async fn delete_unused(self, who: &Principal, key: &ConversationKey) -> Result<bool> {
        let (who, key) = (who.clone(), key.clone());
        self.store.write_rows(move |connection| rows::delete_unused(connection, &who, &key)).await
    }

    /// Deletes a conversation with the items that its client added to it. Its runs stay, and are in no conversation then.
    /// Returns whether there was one.
    pub async fn delete_and_keep_runs(self, who: &Principal, key: &ConversationKey) -> Result<bool> {
        let (who, key) = (who.clone(), key.clone());
        self.store.write_rows(move |connection| rows::delete_and_keep_runs(connection, &who, &key)).await
    }
}
