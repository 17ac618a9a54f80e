//! What the agent keeps of its talks: conversations, the items said in them, tool calls that wait for a person or a
//! program, files, and how long all of it is kept.
//!
//! Each belongs to one subject, seen by it and by administrators; to others it is not there. What belongs to a run or
//! a conversation goes with it. Tests are in `tests/it/conversation_store.rs`.

mod files;
mod items;
mod pending_calls;
mod rows;

use chrono::{DateTime, Utc};

use crate::error::Result;
use crate::model::{ConversationKey, Page, PageRequest};
use crate::principal::Principal;
use crate::store::Store;

pub(crate) use files::purge as purge_files;
pub use files::{CatalogFiles, FileRecord};
pub use items::{CatalogItems, ItemRecord, ItemRole, ItemScope};
pub use pending_calls::{CatalogPendingCalls, Decision, PendingCall, PendingKind, PendingState};
pub(crate) use rows::{delete_of_subject, purge as purge_conversations};

/// A conversation as stored. Fields that end with `_json` are JSON texts.
#[derive(Debug, Clone, PartialEq)]
pub struct ConversationRecord {
    /// Its name.
    pub key: ConversationKey,
    /// [`Principal::subject`] of its owner.
    pub subject: String,
    /// Which of the owner's own users talks; may be empty.
    pub user_id: String,
    /// The application it belongs to; may be empty.
    pub app: String,
    /// For people; may be empty.
    pub title: String,
    /// What the owner attached: `{...}`.
    pub metadata_json: String,
    /// What the owner's application remembers: `{...}`.
    pub state_json: String,
    /// When it was opened.
    pub created_at: DateTime<Utc>,
    /// When a run of it last began, an item was last added, or it was last changed.
    pub updated_at: DateTime<Utc>,
    /// Its runs that are stored. Counted, not set.
    pub run_count: u64,
}

impl ConversationRecord {
    /// A conversation of `subject` that begins: no user, application or title, metadata and state empty.
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

/// What became of opening a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum ConversationAccess {
    /// There was none of that name; now there is.
    Created(ConversationRecord),
    /// It is the caller's own, and was there.
    Existing(ConversationRecord),
    /// The name is taken by another subject's.
    Foreign,
}

/// Which conversations to list. All conditions hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationFilter {
    /// Only this space.
    pub space: String,
    /// Only this user of the owner's.
    pub user_id: Option<String>,
    /// Only this application.
    pub app: Option<String>,
}

/// What to change of a conversation; `None` leaves a part as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConversationChange {
    /// The title.
    pub title: Option<String>,
    /// The whole metadata.
    pub metadata_json: Option<String>,
    /// The whole state.
    pub state_json: Option<String>,
}

/// A part of a list that goes on after its last item, or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// In the list's order.
    pub items: Vec<T>,
    /// Whether there are items after the last one.
    pub has_more: bool,
}

impl<T> Listed<T> {
    /// Of up to one item more than `limit`.
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
    /// The conversation of the record's name: made from the record, the caller its owner, where there is none. An
    /// administrator does not open somebody else's either.
    pub async fn open(self, who: &Principal, new: &ConversationRecord) -> Result<ConversationAccess> {
        let (who, new) = (who.clone(), new.clone());
        self.store.write_rows(move |connection| rows::open(connection, &who, &new)).await
    }

    /// Owner and administrators only; others get `conversation_not_found`.
    pub async fn get(self, who: &Principal, key: &ConversationKey) -> Result<ConversationRecord> {
        let (who, key) = (who.clone(), key.clone());
        self.store.read(move |connection| rows::get(connection, &who, &key)).await
    }

    /// Newest activity first. A conversation used between two pages moves to the front and may be on neither.
    pub async fn list(
        self,
        who: &Principal,
        filter: &ConversationFilter,
        page: PageRequest,
    ) -> Result<Page<ConversationRecord>> {
        let (who, filter) = (who.clone(), filter.clone());
        self.store.read(move |connection| rows::list(connection, &who, &filter, &page)).await
    }

    /// Changes parts of a conversation and returns it as it is then. Errors: `conversation_not_found`.
    pub async fn update(
        self,
        who: &Principal,
        key: &ConversationKey,
        change: &ConversationChange,
    ) -> Result<ConversationRecord> {
        let (who, key, change) = (who.clone(), key.clone(), change.clone());
        self.store.write_rows(move |connection| rows::update(connection, &who, &key, &change)).await
    }

    /// Deletes a conversation with its runs, their items and pending calls. Returns whether there was one.
    pub async fn delete(self, who: &Principal, key: &ConversationKey) -> Result<bool> {
        let (who, key) = (who.clone(), key.clone());
        self.store.write_rows(move |connection| rows::delete(connection, &who, &key)).await
    }
}
