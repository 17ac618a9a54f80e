//! Errors of reading a Parquet file that say which file it is. DataFusion's reader hands on what its decoder says, and
//! not of which file.
//!
//! What is wrong with a file that the caller named is theirs to mend; the file of a managed table is the server's fault,
//! and is named without its folder. What stores and the engine themselves say stays as it is.
//!
//! Every row of a scan passes here: its doubles get one NaN.

use std::any::Any;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::error::ArrowError;
use datafusion::common::{DataFusionError, Result as DfResult};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt};
use object_store::path::Path as StorePath;
use parquet::errors::ParquetError;

use crate::error::{EngineError, find_cause, is_lost_file};
use crate::functions::rows_with_one_nan;
use crate::stores::location_of;

/// What the decoder says of a list that holds less than it should.
const TORN_LIST: &str = "Failed to reconstruct list from level data";
/// What is said of that, since one writer is known for it.
const LIST_REMEDY: &str =
    "; DuckDB writes a null of an array (INTEGER[3]) so: write the column as a list, column::INTEGER[]";

/// A Parquet file as errors name it.
#[derive(Debug)]
pub(crate) struct NamedParquet {
    location: String,
    name: String,
    /// Whether a managed table has it.
    is_managed: bool,
    /// Whether the scan only decodes columns, so that a panic is one of the decoder.
    only_decodes: bool,
}

impl NamedParquet {
    /// Returns the file at a location of a store, which a managed table has or the caller has named.
    pub(crate) fn new(store: &ObjectStoreUrl, location: &StorePath, is_managed: bool) -> Self {
        let name = match is_managed {
            true => location.filename().unwrap_or_default().to_owned(),
            false if *store == ObjectStoreUrl::local_filesystem() => format!("/{location}"),
            false => location_of(location),
        };
        Self { location: location.to_string(), name, is_managed, only_decodes: false }
    }

    /// Returns an error of reading the file as one that names it.
    pub(crate) fn error(&self, error: DataFusionError) -> DataFusionError {
        let is_of_file = find_cause::<ParquetError>(&error).is_some()
            || find_cause::<object_store::Error>(&error).is_some()
            || matches!(find_cause::<ArrowError>(&error), Some(ArrowError::ParquetError(_)));
        if !is_of_file || find_cause::<EngineError>(&error).is_some() {
            return error;
        }
        let is_lost = is_lost_file(&error);
        match EngineError::from(error) {
            EngineError::Execution { message } => match (self.is_managed, is_lost) {
                (true, true) => EngineError::Execution { message },
                (false, true) => self.bad_data("it is not there any more; run the statement again".to_owned()),
                (_, false) => self.unreadable(&message),
            }
            .into(),
            other => other.into(),
        }
    }

    /// Returns the error of a decoder that panicked, as some do at what damaged files hold.
    fn panicked(&self, panic: Box<dyn Any + Send>) -> DataFusionError {
        if !self.only_decodes {
            resume_unwind(panic);
        }
        match EngineError::from_panic(panic.as_ref()) {
            EngineError::Internal(_) => self.unreadable("its data cannot be decoded").into(),
            known => known.into(),
        }
    }

    /// Returns the error of what reads footers and indexes, which panics at lengths beyond the file's.
    fn panicked_at_footer(&self, panic: &(dyn Any + Send)) -> DataFusionError {
        match EngineError::from_panic(panic) {
            EngineError::Internal(_) => self.unreadable("its footer cannot be read").into(),
            known => known.into(),
        }
    }

    fn unreadable(&self, cause: &str) -> EngineError {
        if !self.is_managed {
            let remedy = if cause.contains(TORN_LIST) { LIST_REMEDY } else { "" };
            return self.bad_data(format!("not Parquet as expected: {cause}{remedy}"));
        }
        // Where it lies is nothing for those who read the table.
        let cause = cause.replace(&format!("/{}", self.location), &self.name).replace(&self.location, &self.name);
        EngineError::Execution {
            message: format!(
                "the file {} of a managed table is damaged, or another stands in its place: {cause}; `querent check` \
                 says so, and a backup has it",
                self.name
            ),
        }
    }

    fn bad_data(&self, detail: String) -> EngineError {
        EngineError::BadData { location: self.name.clone(), detail }
    }
}

/// Reads files as another morselizer does, with errors that name them.
#[derive(Debug)]
pub(super) struct NamedMorselizer {
    /// What reads the files.
    pub(super) morselizer: Box<dyn Morselizer>,
    /// Where they are.
    pub(super) store: ObjectStoreUrl,
    /// Whether a managed table has them.
    pub(super) is_managed: bool,
    /// Whether the scan only decodes columns.
    pub(super) only_decodes: bool,
}

impl Morselizer for NamedMorselizer {
    fn plan_file(&self, file: PartitionedFile) -> DfResult<Box<dyn MorselPlanner>> {
        let named = NamedParquet::new(&self.store, &file.object_meta.location, self.is_managed);
        let named = Arc::new(NamedParquet { only_decodes: self.only_decodes, ..named });
        match self.morselizer.plan_file(file) {
            Ok(planner) => Ok(Box::new(NamedPlanner { planner, file: named })),
            Err(error) => Err(named.error(error)),
        }
    }
}

#[derive(Debug)]
struct NamedPlanner {
    planner: Box<dyn MorselPlanner>,
    file: Arc<NamedParquet>,
}

impl NamedPlanner {
    fn boxed(planner: Box<dyn MorselPlanner>, file: &Arc<NamedParquet>) -> Box<dyn MorselPlanner> {
        Box::new(Self { planner, file: Arc::clone(file) })
    }
}

impl MorselPlanner for NamedPlanner {
    fn plan(self: Box<Self>) -> DfResult<Option<MorselPlan>> {
        let Self { planner, file } = *self;
        match planner.plan() {
            Ok(plan) => Ok(plan.map(|plan| named_plan(plan, &file))),
            Err(error) => Err(file.error(error)),
        }
    }
}

/// Returns a plan whose parts name the file in their errors.
fn named_plan(mut plan: MorselPlan, file: &Arc<NamedParquet>) -> MorselPlan {
    let morsels = plan.take_morsels().into_iter();
    let morsels = morsels.map(|morsel| Box::new(NamedMorsel { morsel, file: Arc::clone(file) }) as Box<dyn Morsel>);
    let planners = plan.take_ready_planners().into_iter().map(|planner| NamedPlanner::boxed(planner, file));
    let named = MorselPlan::new().with_morsels(morsels.collect()).with_planners(planners.collect());
    let Some(pending) = plan.take_pending_planner() else { return named };
    let file = Arc::clone(file);
    named.with_pending_planner(async move {
        match AssertUnwindSafe(pending).catch_unwind().await {
            Ok(Ok(planner)) => Ok(NamedPlanner::boxed(planner, &file)),
            Ok(Err(error)) => Err(file.error(error)),
            Err(panic) => Err(file.panicked_at_footer(panic.as_ref())),
        }
    })
}

#[derive(Debug)]
struct NamedMorsel {
    morsel: Box<dyn Morsel>,
    file: Arc<NamedParquet>,
}

impl Morsel for NamedMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, DfResult<RecordBatch>> {
        let Self { morsel, file } = *self;
        let rows = AssertUnwindSafe(morsel.into_stream()).catch_unwind();
        rows.map(move |batch| match batch {
            Ok(batch) => {
                let batch = batch.and_then(|rows| Ok(rows_with_one_nan(rows)?));
                batch.map_err(|error| file.error(error))
            }
            Err(panic) => Err(file.panicked(panic)),
        })
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writes_torn_lists_is_told() {
        let file = NamedParquet::new(&ObjectStoreUrl::local_filesystem(), &StorePath::from("a.parquet"), false);
        let error = file.unreadable(&format!("arrow: {TORN_LIST}")).to_string();
        assert!(error.contains("/a.parquet") && error.ends_with("column::INTEGER[]"), "{error}");
        assert!(!file.unreadable("another").to_string().contains("DuckDB"));
    }
}
