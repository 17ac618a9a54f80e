//! What benchmarks and tests measure searches by: single stages of a search, and the vector index against an exact
//! scan. Nothing that answers a user calls it.

use crate::error::Result;
use crate::index::{SchemaIndex, SearchFilter};
use crate::model::{SearchHit, SearchRequest, SearchStages, TableInfo};
use crate::principal::Principal;
use crate::search::CatalogSearch;
use crate::store::ObjectKind;

/// Measurements of searches. Made by [`Catalog::measurements`](crate::Catalog::measurements).
#[derive(Clone, Copy)]
pub struct CatalogMeasurements<'a> {
    pub(crate) search: CatalogSearch<'a>,
    pub(crate) index: &'a SchemaIndex,
}

impl CatalogMeasurements<'_> {
    /// As [`CatalogSearch::tables_with_columns`], by the given stages only.
    pub async fn search_by_stages(
        self,
        who: &Principal,
        request: &SearchRequest,
        stages: SearchStages,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        self.search.by_stages(who, request, stages).await
    }

    /// A question's vector, of unit length; `None` without a working embedder.
    pub async fn embed_question(self, question: &str) -> Option<Vec<f32>> {
        self.index.embed_question(question).await
    }

    /// The ids of the tables nearest to a unit vector, nearest first: by the vector index, or by an exact scan. Empty
    /// without an embedder.
    pub async fn nearest_tables(self, vector: &[f32], limit: usize, exact: bool) -> Vec<i64> {
        let filter = SearchFilter { exact, ..Default::default() };
        let nearest = self.index.part(ObjectKind::Table).nearest(vector, limit, &filter).await;
        nearest.into_iter().map(|scored| scored.object_id).collect()
    }
}
