//! The beginning of a plan's execution: with batches of as many rows as its rows are wide, and in the memory of its query.

use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;

use super::Session;
use crate::error::Result;
use crate::limits::batch_rows;
use crate::telemetry;

impl Session {
    pub(super) fn execute_physical(
        &self,
        physical: Arc<dyn ExecutionPlan>,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<SendableRecordBatchStream> {
        let config = self.task_config(&physical);
        self.execute_configured(physical, config, memory)
    }

    /// Returns the configuration that a plan is executed with.
    pub(super) fn task_config(&self, physical: &Arc<dyn ExecutionPlan>) -> SessionConfig {
        let mut config = self.engine.runtime().config().clone();
        let usual = config.batch_size();
        let rows = batch_rows(physical, usual);
        if rows != usual {
            config.options_mut().execution.batch_size = rows;
        }
        config
    }

    pub(super) fn execute_configured(
        &self,
        physical: Arc<dyn ExecutionPlan>,
        config: SessionConfig,
        memory: &Arc<dyn MemoryPool>,
    ) -> Result<SendableRecordBatchStream> {
        let task = self.engine.runtime().task(config, memory);
        telemetry::traced_execution(physical, |physical| Ok(execute_stream(physical, task)?))
    }
}
