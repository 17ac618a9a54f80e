//! Expansion along relationships: the tables that a join needs come together with those that were found. A table
//! that joins strong hits moves up to just behind them, the more so the surer the join and the stronger the hits;
//! one that no ranking found is added where it joins several of them, as a bridge table does, or where the
//! question's words touch its name. On Spider dev (even half, 876 tables, debug build) all gold tables are in the
//! first 10 for 96.6 % of the questions, without expansion for 94.2 %.
//!
//! Bounded: neighbours of a few strong hits, found by look-ups along indexes; never past the hits they join.

use std::collections::HashMap;

use super::fuse::Fused;
use crate::error::Result;
use crate::model::Relationship;
use crate::model::{FoundBy, TableInfo};
use crate::principal::Principal;
use crate::relationships::infer::JoinTable;
use crate::relationships::{JoinEdge, joins};
use crate::store::objects::database_ids;
use crate::store::{SnapshotView, table_infos};

/// Hits that may be strong.
const MAX_STRONG: usize = 8;
/// A strong hit has at least this part of the best one's score.
const STRONG_SHARE: f32 = 0.6;
/// What part of a strong hit's score a table gains by joining it.
const GAIN: f32 = 0.3;
/// How much more it gains where the question's words touch its name.
const TOUCHED: f32 = 2.0;
/// A table that joins two strong hits comes at least as near as this to the weaker of them.
const BRIDGE: f32 = 0.9;
/// What part of the strong hits' scores a table gains by being in their database: tables are joined within one.
const SAME_DATABASE: f32 = 0.1;
/// The most that counts of it, in scores of the best hit.
const MAX_TOGETHER: f32 = 2.0;
/// Strong hits that one table gains from.
const MAX_GAINS: usize = 2;
/// Less sure relationships move nothing.
const MIN_CONFIDENCE: f32 = 0.4;
/// Tables added that no ranking found.
const MAX_ADDED: usize = 5;
/// How close to the weakest strong hit another table may come.
const BEHIND_STRONG: f32 = 0.999;

/// A hit and its columns.
pub(super) type FoundTable = (Fused, TableInfo);

/// The hits in their new order, some added. `question_words` are lowercase and singular.
pub(super) fn expand(
    view: &SnapshotView<'_>,
    who: &Principal,
    databases: Option<&[i64]>,
    question_words: &[String],
    mut hits: Vec<FoundTable>,
) -> Result<Vec<FoundTable>> {
    let Some(best) = hits.first().map(|(hit, _)| hit.score) else { return Ok(hits) };
    let is_strong = |found: &&FoundTable| found.0.score >= STRONG_SHARE * best;
    let strong_count = hits.iter().take(MAX_STRONG).take_while(is_strong).count();
    let weakest = hits.get(strong_count.saturating_sub(1)).map_or(best, |(hit, _)| hit.score);

    let tables: Vec<JoinTable> = hits.iter().map(|(_, info)| JoinTable::from(info)).collect();
    let (strong, weak) = tables.split_at(strong_count);
    let mut neighbors = joins::neighbors(view, who, strong)?;
    neighbors.retain(|id| weak.iter().all(|table| table.id != *id));
    let mut others = weak.to_vec();
    others.extend(joins::join_tables(view, who, &neighbors)?);
    let edges = joins::between(view, who, strong, &others)?;
    let scores: HashMap<i64, f32> = hits.iter().map(|(hit, _)| (hit.object_id, hit.score)).collect();
    let mut gains = gains(&edges, strong, &scores);
    let is_touched = |table: &JoinTable| table.words().iter().any(|word| question_words.contains(word));
    for table in others.iter().filter(|table| is_touched(table)) {
        if let Some(gain) = gains.get_mut(&table.id) {
            gain.score *= TOUCHED;
        }
    }

    let together = together(&hits[..strong_count], best);
    for (hit, info) in &mut hits[strong_count..] {
        let company = together.get(&info.name.database).copied().unwrap_or_default();
        lift(hit, SAME_DATABASE * company, weakest);
        if let Some(gain) = gains.get(&hit.object_id) {
            lift(hit, gain.score, weakest);
            hit.why.extend(gain.why.iter().cloned());
        }
    }
    let added = others[weak.len()..].iter().filter_map(|table| {
        let gain = gains.get(&table.id).filter(|gain| gain.tables > 1 || is_touched(table))?;
        let (found_by, why) = (vec![FoundBy::Relationship], gain.why.clone());
        let mut hit = Fused { object_id: table.id, score: 0.0, found_by, why };
        lift(&mut hit, gain.score, weakest);
        Some(hit)
    });
    hits.extend(readable(view, who, databases, added.collect())?);
    hits[strong_count..].sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score).then(a.object_id.cmp(&b.object_id)));
    Ok(hits)
}

/// Raises a score, to just behind the weakest strong hit's at most.
fn lift(hit: &mut Fused, gain: f32, weakest_strong: f32) {
    hit.score = (hit.score + gain).min(weakest_strong * BEHIND_STRONG).max(hit.score);
}

/// The scores of the strong hits by database.
fn together(strong: &[FoundTable], best: f32) -> HashMap<String, f32> {
    let mut together: HashMap<String, f32> = HashMap::new();
    for (hit, info) in strong {
        let score = together.entry(info.name.database.clone()).or_default();
        *score = (*score + hit.score).min(MAX_TOGETHER * best);
    }
    together
}

/// The best few of the hits to add, of the databases asked for.
fn readable(
    view: &SnapshotView<'_>,
    who: &Principal,
    databases: Option<&[i64]>,
    mut added: Vec<Fused>,
) -> Result<Vec<FoundTable>> {
    added.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.object_id.cmp(&b.object_id)));
    let ids: Vec<i64> = added.iter().map(|hit| hit.object_id).collect();
    let within = database_ids(view, &ids)?;
    let is_asked = |database: Option<i64>| databases.is_none_or(|asked| database.is_some_and(|id| asked.contains(&id)));
    let mut added: Vec<Fused> =
        added.into_iter().zip(within).filter(|(_, database)| is_asked(*database)).map(|(hit, _)| hit).collect();
    added.truncate(MAX_ADDED);
    let ids: Vec<i64> = added.iter().map(|hit| hit.object_id).collect();
    let infos = table_infos(view, who, &ids)?;
    Ok(added.into_iter().zip(infos).filter_map(|(hit, info)| Some((hit, info?))).collect())
}

/// What a table gains by the strong hits that it joins.
struct Gain {
    score: f32,
    tables: usize,
    why: Vec<String>,
}

fn gains(edges: &[JoinEdge], strong: &[JoinTable], scores: &HashMap<i64, f32>) -> HashMap<i64, Gain> {
    let is_strong = |id: i64| strong.iter().any(|table| table.id == id);
    let mut by_table: HashMap<i64, Vec<(f32, &Relationship)>> = HashMap::new();
    for edge in edges.iter().filter(|edge| edge.relationship.confidence >= MIN_CONFIDENCE) {
        let (hit, other) = if is_strong(edge.from) { (edge.from, edge.to) } else { (edge.to, edge.from) };
        let score = scores.get(&hit).copied().unwrap_or_default();
        by_table.entry(other).or_default().push((score * edge.relationship.confidence, &edge.relationship));
    }
    let gains = by_table.into_iter().map(|(id, mut joined)| {
        joined.sort_by(|a, b| b.0.total_cmp(&a.0));
        let tables = joined.len();
        joined.truncate(MAX_GAINS);
        let of_all = GAIN * joined.iter().map(|(score, _)| score).sum::<f32>();
        let as_bridge = joined.get(1).map_or(0.0, |(weaker, _)| BRIDGE * weaker);
        let score = of_all.max(as_bridge);
        let why = joined.iter().map(|(_, relationship)| format!("joins by {}", relationship.condition())).collect();
        (id, Gain { score, tables, why })
    });
    gains.collect()
}
