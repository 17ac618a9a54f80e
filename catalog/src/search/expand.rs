//! Expansion along relationships: the tables that a join needs come together with those that were found. A table
//! that joins strong hits moves up to just behind them, the more so the surer the join and the stronger the hits;
//! one that no ranking found is added where it joins several of them, as a bridge table does, or where the
//! question's words touch its name.
//!
//! Bounded: neighbours of a few strong hits, found by look-ups along indexes; never past the hits they join.

use std::collections::{HashMap, HashSet};

use super::fuse::Fused;
use crate::relationships::infer::JoinTable;
use crate::relationships::{Edge, Relationship};
use crate::store::{View, relationships};
use crate::{FoundBy, Principal, Result, TableInfo};

/// Hits that may be strong.
const MAX_STRONG: usize = 6;
/// A strong hit has at least this part of the best one's score.
const STRONG_SHARE: f32 = 0.5;
/// What part of a strong hit's score a table gains by joining it.
const GAIN: f32 = 0.3;
/// Strong hits that one table gains from.
const MAX_GAINS: usize = 2;
/// Less sure relationships move nothing.
const MIN_CONFIDENCE: f32 = 0.4;
/// Tables added that no ranking found.
const MAX_ADDED: usize = 5;
/// How close to the weakest strong hit another table may come.
const BEHIND_STRONG: f32 = 0.999;

/// A hit and its columns.
pub(super) type Found = (Fused, TableInfo);

/// The hits in their new order, and the ids of tables to add among them with their scores.
pub(super) fn expand(
    view: &View<'_>,
    who: &Principal,
    databases: Option<&[i64]>,
    question_words: &[String],
    hits: Vec<Found>,
) -> Result<Vec<Found>> {
    let Some(best) = hits.first().map(|(hit, _)| hit.score) else { return Ok(hits) };
    let strong_count = hits.iter().take(MAX_STRONG).take_while(|(hit, _)| hit.score >= STRONG_SHARE * best).count();
    let tables: Vec<JoinTable> = hits.iter().map(|(_, info)| JoinTable::from(info)).collect();
    let (strong, weak) = tables.split_at(strong_count);
    let known: HashSet<i64> = tables.iter().map(|table| table.id).collect();
    let mut around = relationships::around(view, who, strong)?;
    around.retain(|id| !known.contains(id));
    let mut others = weak.to_vec();
    others.extend(relationships::join_tables(view, who, &around)?);

    let edges = relationships::between(view, who, strong, &others)?;
    let scores: HashMap<i64, f32> = hits.iter().map(|(hit, _)| (hit.object_id, hit.score)).collect();
    let gains = gains(&edges, strong, &scores);

    let mut hits = hits;
    let weakest = hits.get(strong_count.saturating_sub(1)).map_or(best, |(hit, _)| hit.score);
    for (hit, _) in hits.iter_mut().skip(strong_count) {
        if let Some(gain) = gains.get(&hit.object_id) {
            gain.apply(hit, weakest);
        }
    }
    let mut added: Vec<Fused> = others[weak.len()..]
        .iter()
        .filter_map(|table| {
            let gain = gains.get(&table.id)?;
            let is_touched = table.words().iter().any(|word| question_words.contains(word));
            if gain.tables < 2 && !is_touched {
                return None;
            }
            let mut hit = Fused { object_id: table.id, score: 0.0, found_by: Vec::new(), why: Vec::new() };
            gain.apply(&mut hit, weakest);
            Some(hit)
        })
        .collect();
    added.sort_by(|a, b| b.score.total_cmp(&a.score));
    added.truncate(MAX_ADDED);
    let ids: Vec<i64> = added.iter().map(|hit| hit.object_id).collect();
    let infos = crate::store::table_infos(view, who, &ids)?;
    let within = crate::store::relationships::databases_of(view, &ids)?;
    for ((hit, info), database) in added.into_iter().zip(infos).zip(within) {
        let is_asked = databases.is_none_or(|asked| database.is_some_and(|database| asked.contains(&database)));
        if let Some(info) = info.filter(|_| is_asked) {
            hits.push((hit, info));
        }
    }
    hits[strong_count..].sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score).then(a.object_id.cmp(&b.object_id)));
    Ok(hits)
}

/// What a table gains by the strong hits that it joins.
struct Gain {
    score: f32,
    tables: usize,
    why: Vec<String>,
}

impl Gain {
    fn apply(&self, hit: &mut Fused, weakest_strong: f32) {
        hit.score = (hit.score + self.score).min(weakest_strong * BEHIND_STRONG).max(hit.score);
        if hit.found_by.is_empty() {
            hit.found_by.push(FoundBy::Relationship);
        }
        hit.why.extend(self.why.iter().cloned());
    }
}

fn gains(edges: &[Edge], strong: &[JoinTable], scores: &HashMap<i64, f32>) -> HashMap<i64, Gain> {
    let is_strong = |id: i64| strong.iter().any(|table| table.id == id);
    let mut by_table: HashMap<i64, Vec<(f32, &Relationship)>> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.relationship.confidence >= MIN_CONFIDENCE) {
        let (hit, other) = if is_strong(edge.from) { (edge.from, edge.to) } else { (edge.to, edge.from) };
        let score = scores.get(&hit).copied().unwrap_or_default();
        by_table.entry(other).or_default().push((score * edge.relationship.confidence * GAIN, &edge.relationship));
    }
    let gains = by_table.into_iter().map(|(id, mut joined)| {
        joined.sort_by(|a, b| b.0.total_cmp(&a.0));
        let tables = joined.len();
        joined.truncate(MAX_GAINS);
        let score = joined.iter().map(|(score, _)| score).sum();
        let why = joined.iter().map(|(_, relationship)| format!("joins by {}", relationship.condition())).collect();
        (id, Gain { score, tables, why })
    });
    gains.collect()
}
