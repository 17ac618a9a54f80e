//! What clients changed in a conversation themselves, beside its runs: the items that they added and deleted over
//! `/v1/conversations`. Every listing of a conversation shows them, whichever protocol it is of.

use std::collections::HashSet;

use chrono::{DateTime, Utc};
use querent_catalog::{Catalog, CatalogError, ConversationKey, ItemRole, ItemScope, Principal};
use serde_json::Value;

/// The most items of one conversation that are read, the newest.
const MAX_READ: usize = 10_000;

/// The changes of one conversation.
#[derive(Debug, Default)]
pub(in crate::http) struct ItemChanges {
    /// The items that were added and are still there, with their times, in order.
    pub(in crate::http) added: Vec<(DateTime<Utc>, Value)>,
    /// The ids of the items that were deleted.
    pub(in crate::http) deleted: HashSet<String>,
}

impl ItemChanges {
    /// Reads the changes of a conversation. Errors: `conversation_not_found`.
    pub(in crate::http) async fn of_conversation(
        catalog: &Catalog,
        who: &Principal,
        key: &ConversationKey,
    ) -> Result<Self, CatalogError> {
        let scope = ItemScope::Conversation(key.clone());
        let newest_first = catalog.items().list(who, &scope, None, MAX_READ, false).await?;
        let mut changed = Self::default();
        for record in newest_first.items.into_iter().rev() {
            let Ok(item) = serde_json::from_str::<Value>(&record.item_json) else { continue };
            match record.role {
                ItemRole::Removed => changed.deleted.extend(item["id"].as_str().map(str::to_owned)),
                ItemRole::Input | ItemRole::Output | ItemRole::Added => changed.added.push((record.created_at, item)),
            }
        }
        Ok(changed)
    }

    /// Whether an item of a run is still there.
    pub(in crate::http) fn has(&self, item: &Value) -> bool {
        item["id"].as_str().is_none_or(|id| !self.deleted.contains(id))
    }
}
