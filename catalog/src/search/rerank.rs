//! The second stage of a search: reranks what full text and a fast model's vectors found by a better model.

use super::fuse::{Rankings, fuse};
use crate::error::Result;
use crate::index::{Reranker, Scored};
use crate::principal::Principal;
use crate::store::search_text::table_text;
use crate::store::{Store, table_infos};

/// The most tables that are reranked.
const CANDIDATES: usize = 100;

/// The candidates ordered by the reranker's model, best first; `dense` unchanged while the model fails.
pub(super) async fn rerank(
    store: &Store,
    reranker: &Reranker,
    who: &Principal,
    question: &str,
    bm25: &[Scored],
    dense: Vec<Scored>,
) -> Result<Vec<Scored>> {
    let rankings = Rankings { bm25: bm25.to_vec(), dense: dense.clone(), ..Rankings::default() };
    let ids: Vec<i64> = fuse(&rankings, CANDIDATES).into_iter().map(|hit| hit.object_id).collect();
    let principal = who.clone();
    let texts = store
        .view(move |view| {
            let infos = table_infos(view, &principal, &ids)?;
            Ok(ids.into_iter().zip(infos).filter_map(|(id, info)| Some((id, table_text(&info?)))).collect())
        })
        .await?;
    Ok(reranker.rank(question, texts).await.unwrap_or(dense))
}
