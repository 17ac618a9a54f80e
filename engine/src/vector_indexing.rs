//! Fills vector indexes from the files of their tables: when one is created, and in the background where files came that it
//! does not cover, where most of what it covers is gone, and where it is damaged.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::AsArray;
use arrow::datatypes::DataType;
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;
use querent_catalog::{
    DataFile, ManagedTable, Principal, ResolvedTable, TableSource, TableVectorIndex, VectorIndexWriter,
};
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::{EngineError, Result};
use crate::limits::Limits;
use crate::tables::managed::{ManagedTableProvider, is_worth_indexing};

/// Writes that follow one another within this time are taken in together.
const SETTLING_TIME: Duration = Duration::from_secs(1);
/// With fewer rows an index that is not built is left so.
const FEWEST_ROWS: u64 = 256;
/// Partitions are trained again when the rows have grown by this factor.
const RETRAIN_GROWTH: u64 = 4;

/// Adds the vectors of all files of a table that a writer does not cover. `check` is asked between batches whether to go
/// on. Errors: those of `check`, and of reading and writing.
pub(crate) async fn add_files(
    engine: &Engine,
    writer: &mut VectorIndexWriter,
    table: &ResolvedTable,
    column: usize,
    limits: &Limits,
    check: impl Fn() -> Result<()> + Send + Sync,
) -> Result<()> {
    let managed = managed_table(table)?;
    let state = engine.planning_state();
    let provider = ManagedTableProvider::new(engine.catalog(), &*state, table, managed);
    let files: Vec<DataFile> = provider.files().await?.into_iter().filter(|file| !writer.covers(file.id)).collect();
    let total = files.iter().map(|file| file.row_count).sum();
    let memory = engine.runtime().query_memory(limits);
    let mut done = 0;
    for file in files {
        let plan = provider.column_of_file(&*state, &file, column).await?;
        let mut batches = execute_stream(plan, engine.runtime().task(state.config().clone(), &memory))?;
        writer.begin_file(file.id);
        while let Some(batch) = batches.next().await {
            check()?;
            let batch = batch?;
            let Some(vectors) = batch.columns().first().and_then(|column| column.as_fixed_size_list_opt()) else {
                return Err(EngineError::Internal("the column of a vector index has no vectors".into()));
            };
            writer.add(file.id, vectors).await?;
            done += batch.num_rows() as u64;
            writer.report(done, total);
        }
    }
    check()?;
    Ok(writer.build().await?)
}

/// Returns the numbers of a vector of a column that can have an index.
pub(crate) fn vector_dimension(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeList(item, dimension) if *item.data_type() == DataType::Float32 => {
            usize::try_from(*dimension).ok().filter(|dimension| *dimension > 0)
        }
        _ => None,
    }
}

/// Keeps the vector indexes of an engine's catalog near their tables until `stop`. `engine` must be a handle that does not
/// keep the engine open.
pub(crate) async fn follow_tables(engine: Engine, stop: CancellationToken) {
    let work = async {
        loop {
            engine.catalog().vector_indexes().changed().await;
            tokio::time::sleep(SETTLING_TIME).await;
            for index in engine.catalog().vector_indexes().all() {
                let (worker, followed) = (engine.clone(), Arc::clone(&index));
                // Reading and training keep a thread for longer than a server's task may.
                let work = async move { follow_table(&worker, &followed).await };
                if let Err(error) = engine.runtime().threads.run(work).await {
                    let name = &index.spec().name;
                    tracing::warn!(index = %name, code = error.code(), %error, "a vector index lags behind its table");
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// What there is to do about an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Upkeep {
    Nothing,
    TakeIn,
    BuildAgain,
}

async fn follow_table(engine: &Engine, index: &Arc<TableVectorIndex>) -> Result<()> {
    let catalog = engine.catalog();
    let Some(name) = catalog.vector_indexes().table_of(index).await? else {
        return Ok(catalog.vector_indexes().forget_dropped().await?);
    };
    let reader = Principal::local_admin();
    let found = catalog.tables().resolve(&reader, std::slice::from_ref(&name)).await?.pop().flatten();
    let Some(table) = found.filter(|table| table.info.id == index.spec().table_id) else { return Ok(()) };
    let columns = table.info.columns.iter();
    // DuckDB may have dropped the column, or given it another type; the index then serves older snapshots only.
    let column = columns.enumerate().find(|(_, column)| column.id == index.spec().column_id);
    let Some((column, _)) =
        column.filter(|(_, column)| vector_dimension(&column.data_type) == Some(index.spec().dimension))
    else {
        return Ok(());
    };
    let files = catalog.tables().contents(managed_table(&table)?, &[]).await?.files;
    let upkeep = upkeep_of(index, &files).await;
    if upkeep == Upkeep::Nothing {
        return Ok(());
    }
    let mut writer = catalog.vector_indexes().extend(index, upkeep == Upkeep::BuildAgain).await?;
    add_files(engine, &mut writer, &table, column, &Limits::default(), || Ok(())).await?;
    engine.finish(async move { Ok(writer.commit().await?) }).await?;
    Ok(())
}

async fn upkeep_of(index: &TableVectorIndex, files: &[DataFile]) -> Upkeep {
    let opened = index.open().await;
    let all: u64 = files.iter().map(|file| file.row_count).sum();
    let Some(opened) = opened else {
        return if all >= FEWEST_ROWS { Upkeep::BuildAgain } else { Upkeep::Nothing };
    };
    let live: HashSet<i64> = files.iter().map(|file| file.id).collect();
    let covered: u64 = opened.files().map(|file| file.rows).sum();
    let gone: u64 = opened.files().filter(|file| !live.contains(&file.id)).map(|file| file.rows).sum();
    let others: u64 = files.iter().filter(|file| opened.file(file.id).is_none()).map(|file| file.row_count).sum();
    let after = covered.saturating_sub(gone) + others;
    if 2 * gone > covered && all >= FEWEST_ROWS {
        return Upkeep::BuildAgain;
    }
    match is_worth_indexing(others, covered) {
        true if after >= RETRAIN_GROWTH * opened.trained_rows() => Upkeep::BuildAgain,
        true => Upkeep::TakeIn,
        false => Upkeep::Nothing,
    }
}

fn managed_table(table: &ResolvedTable) -> Result<&ManagedTable> {
    match &table.source {
        TableSource::Managed(managed) => Ok(managed),
        TableSource::External(_) | TableSource::View { .. } => {
            Err(EngineError::Internal(format!("a vector index of `{}`, which is no managed table", table.info.name)))
        }
    }
}
