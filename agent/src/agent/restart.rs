//! Runs of an earlier process: ended as failed, and those in the background begun again where the settings say so.

use querent_catalog::Principal;
use uuid::Uuid;

use super::Agent;
use crate::error::{AgentError, Result};
use crate::run::{InterruptedRuns, end_interrupted_runs, restarted_request};

impl Agent {
    /// Ends the runs that an earlier process of this data folder left in progress, as failed with the code
    /// `server_restarted`. Returns how many there were, and which of them may begin again. To be called before the first run.
    pub async fn end_interrupted_runs(&self) -> Result<InterruptedRuns> {
        let mut interrupted = end_interrupted_runs(self.catalog()).await?;
        if !self.config().restart_background {
            interrupted.may_begin_again.clear();
        }
        Ok(interrupted)
    }

    /// Begins a run again that [`Agent::end_interrupted_runs`] has ended, under its id and with the rights of `who`, whose run
    /// it is. Where it does not begin it stays failed.
    ///
    /// Errors: as [`Agent::start`]; `run_withheld`, where `who` may not read any more what the run had read.
    pub async fn begin_again(&self, who: &Principal, run_id: Uuid) -> Result<()> {
        let interrupted = self.catalog().runs().get(who, run_id).await?;
        let request = restarted_request(&interrupted);
        let request = request.ok_or_else(|| AgentError::Internal(format!("run {run_id} cannot begin again")))?;
        // It goes on without a client.
        drop(self.start(who, request).await?);
        Ok(())
    }
}
