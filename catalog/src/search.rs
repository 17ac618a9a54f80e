//! Finds tables for a question: by name, by full text, by meaning and by the values of columns, concurrently, then
//! fused and expanded along relationships.
//!
//! Invariant: visibility is applied before any top-k is taken, so a caller who sees one database of a thousand gets
//! complete results from it; and every hit is read from the catalog at one snapshot before it is returned, so a dropped
//! table never appears and names are current however far behind the index is.

mod boosts;
mod column_boosts;
mod column_lookup;
pub(crate) mod cutoff;
mod expand;
mod fuse;
mod literals;
mod name_candidates;
mod rerank;

use futures::FutureExt;

use crate::error::Result;
use crate::index::{SchemaIndex, SchemaIndexStatus, SearchFilter};
use crate::knowledge::KnowledgeCache;
use crate::model::{MissingMeaning, SearchHit, SearchRequest, SearchStages, TableInfo, TableSummary};
use crate::policy::Rights;
use crate::principal::Principal;
use crate::relationships::infer::words_of;
use crate::store::resolve::visible_objects;
use crate::store::search_text::query_text;
use crate::store::{ObjectKind, Store, VisibleObjects, known_of, table_infos};
use fuse::Rankings;

pub use column_lookup::{ColumnHit, ColumnSearch};

/// Most hits of one search.
const MAX_LIMIT: usize = 200;
/// Bytes of a question that are read.
const MAX_QUESTION_BYTES: usize = 2 * 1024;
/// The least depth of each ranking: what one ranks low another may rank high.
const MIN_DEPTH: usize = 100;
/// Extra hits that replace tables dropped during the search.
const SPARE_HITS: usize = 8;

/// Searches for tables and columns. Made by [`Catalog::search`](crate::Catalog::search).
#[derive(Clone, Copy)]
pub struct CatalogSearch<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a SchemaIndex,
    pub(crate) knowledge: &'a KnowledgeCache,
}

impl CatalogSearch<'_> {
    /// The vector of a text by the configured model, of unit length. Errors: `embedder_error`.
    pub async fn embed(self, text: &str) -> Result<Vec<f32>> {
        self.index.embed_text(text).await
    }

    /// How near each text is in meaning to each of the others, as cosines; `None` where there is no working embedder.
    pub async fn nearness(self, texts: &[String], others: &[String]) -> Option<Vec<Vec<f32>>> {
        let all: Vec<String> = texts.iter().chain(others).cloned().collect();
        let vectors = self.index.embed_texts(all).await?;
        let (own, rest) = vectors.split_at_checked(texts.len())?;
        let cosine = |one: &[f32], other: &[f32]| one.iter().zip(other).map(|(left, right)| left * right).sum::<f32>();
        let to_all = |one: &Vec<f32>| rest.iter().map(|other| cosine(one, other)).collect();
        Some(own.iter().map(to_all).collect())
    }

    /// The tables that fit a question or keywords best, best first: by name, by full text (BM25) and by meaning,
    /// fused. Only what `who` may see. Errors: `database_not_found`.
    pub async fn tables(self, who: &Principal, request: &SearchRequest) -> Result<Vec<SearchHit>> {
        let hits = self.tables_with_columns(who, request).await?;
        Ok(hits.into_iter().map(|(hit, _)| hit).collect())
    }

    /// The same, each hit with its columns: one batch at one snapshot, for the prompt.
    pub async fn tables_with_columns(
        self,
        who: &Principal,
        request: &SearchRequest,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        self.by_stages(who, request, SearchStages::default()).await
    }

    /// The same, by some stages of a search only.
    pub(crate) async fn by_stages(
        self,
        who: &Principal,
        request: &SearchRequest,
        stages: SearchStages,
    ) -> Result<Vec<(SearchHit, TableInfo)>> {
        search_tables(self.store, self.index, self.knowledge, who, request, stages).boxed().await
    }

    /// What searches lack while they answer by name and by text only; `None` while they use meaning too.
    pub fn missing_meaning(self) -> Option<MissingMeaning> {
        self.index.missing_meaning()
    }

    /// Returns how far the index is that searches use.
    pub fn index_status(self) -> [SchemaIndexStatus; 2] {
        self.index.status()
    }

    /// Waits until every committed object can be found by meaning; without an embedder, by full text. For tests and
    /// `import`. Errors: `embedder_error` while the embedder fails, once every object can be found by full text.
    pub async fn index_idle(self) -> Result<()> {
        self.index.idle().boxed().await
    }

    /// Waits until every committed object can be found by full text.
    pub async fn text_idle(self) {
        self.index.text_idle().boxed().await
    }
}

/// The tables that fit the question best, best first, each with its columns.
async fn search_tables(
    store: &Store,
    index: &SchemaIndex,
    knowledge: &KnowledgeCache,
    who: &Principal,
    request: &SearchRequest,
    stages: SearchStages,
) -> Result<Vec<(SearchHit, TableInfo)>> {
    let question = bounded(request.query.trim());
    if question.is_empty() {
        return Ok(Vec::new());
    }
    index.opened().await;
    let _searching = index.searching();
    let limit = request.limit.clamp(1, MAX_LIMIT);

    let candidates = name_candidates::candidates(question, |word| index.is_stop_word(word));
    let literals = literals::literals(question, |word| index.is_stop_word(word));
    let words = index.tokens(question);
    let name_words = words_of(question);
    let policies = store.policies();
    let rights = Rights::new(who, &policies);
    // Whether something may be hidden from the caller.
    let is_bound = !rights.sees_all();
    let depth = (limit * 4).max(MIN_DEPTH);
    // Views over what is hidden are in databases that are not.
    let ranked = if is_bound { 2 * depth } else { depth };
    let corpora = knowledge.corpus(store, index).await?;
    let taught = boosts::from_knowledge(&corpora, &words, rights, request.database.as_deref());
    let visible = visible(store, who, request.database.as_deref()).await?;
    if visible.is_nothing() {
        return Ok(Vec::new());
    }

    let by_name = {
        let (principal, database, visible) = (who.clone(), request.database.clone(), visible.clone());
        store.view(move |view| {
            let named = match stages.names {
                true => name_candidates::find(view, &principal, database.as_deref(), &candidates)?,
                false => name_candidates::NamedTables::default(),
            };
            let boosts = match stages.columns {
                true => boosts::find(view, &principal, &visible, &literals, taught)?,
                false => Vec::new(),
            };
            Ok((named, boosts))
        })
    };
    let filter = SearchFilter { is_bound, ..SearchFilter::visible(visible.by_text()) };
    let tables_index = index.part(ObjectKind::Table);
    let text = query_text(question);
    let by_text = async {
        match stages.bm25 {
            true => tables_index.bm25(&text, ranked, &filter).await,
            false => Vec::new(),
        }
    };
    // The question is embedded once, for tables and for columns.
    let by_meaning = async {
        let vector = if stages.dense { index.embed_question(question).await } else { None };
        let tables = async {
            match &vector {
                Some(vector) => tables_index.nearest(vector, ranked, &filter).await,
                None => Vec::new(),
            }
        };
        let columns = async {
            match stages.columns {
                true => {
                    column_boosts::ranked_texts(index.part(ObjectKind::Column), &text, vector.as_deref(), is_bound)
                        .await
                }
                false => column_boosts::RankedTexts::default(),
            }
        };
        futures::join!(tables, columns)
    };
    let (by_name, bm25, (dense, column_texts)) = futures::join!(by_name, by_text, by_meaning);
    let (named, boosts) = by_name?;
    let dense = match index.reranker() {
        Some(reranker) if stages.dense => rerank::rerank(store, reranker, who, question, &bm25, dense).await?,
        _ => dense,
    };
    let principal = who.clone();
    let found = store
        .view(move |view| {
            let mut rankings = Rankings { exact: named.exact, named: named.partial, bm25, dense, boosts };
            rankings.boosts.extend(column_boosts::find(view, &principal, &visible, &column_texts, is_bound)?);
            if is_bound {
                let known = known_of(view, &principal, rankings.tables())?;
                rankings.keep(&known, depth);
            }
            let fused = fuse::fuse(&rankings, limit + SPARE_HITS);
            // Expansion may raise any hit; without it the spare ones are read only where others are gone.
            let mut at_once = if stages.expansion { fused.len() } else { limit };
            let mut fused = fused.into_iter();
            let mut found: Vec<expand::FoundTable> = Vec::new();
            while at_once > 0 && fused.len() > 0 {
                let hits: Vec<fuse::Fused> = fused.by_ref().take(at_once).collect();
                let ids: Vec<i64> = hits.iter().map(|hit| hit.object_id).collect();
                let infos = table_infos(view, &principal, &ids)?;
                found.extend(hits.into_iter().zip(infos).filter_map(|(hit, info)| Some((hit, info?))));
                at_once = limit.saturating_sub(found.len());
            }
            match stages.expansion {
                true => expand::expand(view, &principal, &visible, &name_words, found),
                false => Ok(found),
            }
        })
        .await?;
    let hits = found.into_iter().map(|(hit, info)| {
        let table = TableSummary {
            id: info.id,
            name: info.name.clone(),
            kind: info.kind,
            comment: info.comment.clone(),
            row_count: info.row_count,
        };
        (SearchHit { table, score: hit.score, found_by: hit.found_by, why: hit.why }, info)
    });
    Ok(hits.take(limit).collect())
}

async fn visible(store: &Store, who: &Principal, only: Option<&str>) -> Result<VisibleObjects> {
    if only.is_none() && Rights::new(who, &store.policies()).sees_all() {
        return Ok(VisibleObjects::default());
    }
    let (principal, only) = (who.clone(), only.map(str::to_string));
    store.view(move |view| visible_objects(view, &principal, only.as_deref())).await
}

fn bounded(question: &str) -> &str {
    let end = question.floor_char_boundary(MAX_QUESTION_BYTES);
    &question[..end]
}
