//! `Engine::open`: opens the parts of an engine and starts its background work.

use std::path::Path;
use std::sync::Arc;

use querent_catalog::policy::read_policies_with;
use querent_catalog::{Catalog, CatalogOptions, read_views_with};

use crate::engine::Engine;
use crate::error::Result;
use crate::options::EngineOptions;
use crate::profiler;
use crate::runtime::Runtime;
use crate::sql::{UseVectorIndexes, tables_named_in, with_renamed_columns};
use crate::stores::{LakeUrl, index_shelf};
use crate::vector_indexing;

impl Engine {
    /// Opens or creates a data folder with default options and no embedder.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with(EngineOptions::new(path.as_ref())).await
    }

    /// Opens or creates a data folder.
    pub async fn open_with(options: EngineOptions) -> Result<Self> {
        read_views_with(|sql, database| tables_named_in(sql, database).ok());
        read_policies_with(with_renamed_columns);
        let catalog = Catalog::open(CatalogOptions {
            data_dir: options.data_dir.clone(),
            url: options.catalog_url.clone(),
            data_path: options.data_path.as_ref().map(LakeUrl::to_string),
            embedder: options.embedder.clone(),
            reranker: options.reranker.clone(),
            progress: Arc::clone(&options.progress),
            index_shelf: Some(Arc::new(index_shelf)),
        })
        .await?;
        let rules = [Arc::new(UseVectorIndexes) as _];
        let runtime = Runtime::open(&options, rules, catalog.data_dir(), catalog.location().await?).await?;
        let engine = Self::assemble(catalog, runtime, options);
        engine.spawn_background(profiler::profile_queued_tables);
        engine.spawn_background(|worker, _queue, stop| vector_indexing::follow_tables(worker, stop));
        Ok(engine)
    }
}
