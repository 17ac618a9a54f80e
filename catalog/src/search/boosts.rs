//! Boosts for tables besides the rankings: a column holds a literal of the question, a verified query with a similar
//! question reads the table, or a metric that the question names is computed over it.

use super::fuse::Boost;
use crate::error::Result;
use crate::knowledge::Corpora;
use crate::model::{FoundBy, TableName};
use crate::policy::Rights;
use crate::principal::Principal;
use crate::store::{SnapshotView, VisibleObjects, table_ids};
use crate::values;

/// The most columns of a literal; one that more columns hold says nothing.
const MAX_COLUMNS: usize = 20;
/// The weight of a literal in first ranks, shared by the tables that hold it.
const VALUE_RANKS: f32 = 1.0;
/// The share of that weight for a code's shape.
const LIKE_SHARE: f32 = 0.5;
/// The weight of a verified query with the same words, in first ranks.
const QUERY_RANKS: f32 = 2.0;
/// The least similarity of a verified query that counts.
const MIN_SIMILARITY: f32 = 0.5;
/// The most verified queries, and the most metrics, that count.
const MAX_TAUGHT: usize = 3;

/// A boost from taught knowledge for tables by name.
pub(super) struct KnowledgeBoost {
    tables: Vec<TableName>,
    first_ranks: f32,
    found_by: FoundBy,
    why: String,
}

/// The boosts from verified queries and metrics that are similar to a question.
pub(super) fn from_knowledge(
    corpora: &Corpora,
    words: &[String],
    rights: Rights<'_>,
    database: Option<&str>,
) -> Vec<KnowledgeBoost> {
    let queries = corpora.queries.similar(words, rights, database, MAX_TAUGHT).into_iter();
    let metrics = corpora.metrics.similar(words, rights, database, MAX_TAUGHT).into_iter();
    let queries = queries.filter(|similar| similar.similarity >= MIN_SIMILARITY).map(|similar| KnowledgeBoost {
        first_ranks: QUERY_RANKS * similar.similarity,
        found_by: FoundBy::VerifiedQuery,
        why: format!("verified query \"{}\"", similar.object.question),
        tables: similar.object.tables,
    });
    let metrics = metrics.map(|similar| KnowledgeBoost {
        first_ranks: similar.similarity,
        found_by: FoundBy::Metric,
        why: format!("metric \"{}\"", similar.object.name),
        tables: vec![similar.object.table],
    });
    queries.chain(metrics).collect()
}

/// The boosts of a question, for tables by id.
pub(super) fn find(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    literals: &[String],
    taught: Vec<KnowledgeBoost>,
) -> Result<Vec<Boost>> {
    let mut boosts: Vec<Boost> = Vec::new();
    for literal in literals {
        let (hits, _) = values::rows::find(view, who, visible, std::slice::from_ref(literal), MAX_COLUMNS)?;
        let share = VALUE_RANKS / (hits.len().max(1) as f32).sqrt();
        for hit in hits {
            let is_counted = boosts.iter().any(|boost| boost.object_id == hit.table_id && boost.why.contains(literal));
            let column = format!("{}.{}", hit.table.table, hit.column);
            let (weight, why) = match hit.is_like {
                true => (LIKE_SHARE, format!("values like '{literal}' in {column}, such as '{}'", hit.value)),
                false => (1.0, format!("value '{}' in {column}", hit.value)),
            };
            let first_ranks = if is_counted { 0.0 } else { weight * share };
            boosts.push(Boost { object_id: hit.table_id, first_ranks, found_by: FoundBy::Value, why });
        }
    }
    for taught in taught {
        for id in table_ids(view, &taught.tables)? {
            boosts.push(Boost {
                object_id: id,
                first_ranks: taught.first_ranks,
                found_by: taught.found_by,
                why: taught.why.clone(),
            });
        }
    }
    Ok(boosts)
}
