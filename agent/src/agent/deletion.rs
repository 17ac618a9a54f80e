//! Deleting runs, and conversations with theirs. One in progress is cancelled first: nobody could find it any more to end it.

use querent_catalog::{ConversationKey, Principal, RunRecord, RunStatus};

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

    /// Deletes a run; one in progress is cancelled first. Of one that is a turn of a conversation, what was said stays there, and
    /// it is not retrieved or continued by itself any more.
    /// Errors: `run_elsewhere`, where another server that shares the catalog has it in progress.
    pub async fn delete_run(&self, who: &Principal, run: &RunRecord) -> Result<()> {
        self.cancel_run(who, run.run_id).await?;
        match run.conversation {
            Some(_) => self.catalog().runs().stop_retaining(who, run.run_id).await?,
            None => self.catalog().runs().delete(who, run.run_id).await?,
        };
        Ok(())
    }
}
