//! Deleting a conversation with its runs. One in progress is cancelled first: nobody could find it any more to end it.

use querent_catalog::{ConversationKey, Principal, RunStatus};

use super::Agent;
use crate::error::Result;

impl Agent {
    /// Deletes a conversation with its runs; one in progress is cancelled first. Returns whether there was one.
    /// Errors: `run_elsewhere`, where another server that shares the catalog has a run of it in progress.
    pub async fn delete_conversation(&self, who: &Principal, key: &ConversationKey) -> Result<bool> {
        let last = self.catalog().runs().last_of_conversation(who, key).await?;
        if let Some(run) = last.filter(|run| run.status == RunStatus::Running) {
            self.cancel_run(who, run.run_id).await?;
        }
        Ok(self.catalog().conversations().delete(who, key).await?)
    }
}
