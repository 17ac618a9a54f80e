//! Boosts for tables by their columns: a table of a thousand columns is found by the one that a question means. A
//! column text is ranked once however many columns share it; a name that many tables share boosts none of them.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::fuse::{Boost, rank_weight};
use crate::error::Result;
use crate::index::{IndexPart, SearchFilter, TextRanking};
use crate::model::FoundBy;
use crate::policy::Rights;
use crate::principal::Principal;
use crate::store::column_names::ColumnMatch;
use crate::store::objects::object_name;
use crate::store::pending::named_column_text;
use crate::store::search_text::column_text;
use crate::store::{self, SnapshotView, VisibleObjects, name_key, table_infos};

/// Column texts from each ranking.
const DEPTH: usize = 40;
/// Those that are looked at for a caller who does not know all columns.
const DEPTH_OF_BOUND: usize = 4 * DEPTH;
/// Column names that are looked up.
const MAX_NAMES: usize = 24;
/// The most tables of one column name; more have only the name in common.
const MAX_TABLES: usize = 12;
/// The boost of a table by its best column, in first ranks.
const FIRST_RANKS: f32 = 0.25;
/// The most columns that boost one table.
const MAX_COLUMNS: usize = 2;

/// Column texts that fit a question, best first.
#[derive(Default)]
pub(super) struct RankedTexts {
    by_words: Vec<i64>,
    by_meaning: Vec<i64>,
    /// What ranks those that the caller knows anew, where it may not know all.
    of_known: Option<TextRanking>,
}

/// Ranks the column texts that fit the question best, by words and by meaning; more where `is_bound`, since the caller then knows
/// only some of them.
pub(super) async fn ranked_texts(
    columns: &IndexPart,
    text: &str,
    vector: Option<&[f32]>,
    is_bound: bool,
) -> RankedTexts {
    let all = SearchFilter::default();
    let depth = if is_bound { DEPTH_OF_BOUND } else { DEPTH };
    let by_meaning = async {
        match vector {
            Some(vector) => columns.nearest(vector, depth, &all).await,
            None => Vec::new(),
        }
    };
    let (bm25, dense) = futures::join!(columns.bm25(text, depth, &all), by_meaning);
    let [by_words, by_meaning] =
        [bm25, dense].map(|ranking| ranking.into_iter().map(|scored| scored.object_id).collect());
    RankedTexts { by_words, by_meaning, of_known: is_bound.then(|| columns.ranking_by(text)) }
}

/// Returns the names of the columns with those texts, the best first. `is_known` says whether a column with a name and a text is
/// there for the caller: others take no place. Each text is judged once, whichever rankings have it.
fn ranked_names(
    view: &SnapshotView<'_>,
    texts: &RankedTexts,
    mut is_known: impl FnMut(&str, &str) -> Result<bool>,
) -> Result<Vec<String>> {
    let mut judged: HashMap<i64, Option<(String, String)>> = HashMap::new();
    // The first `most` of a ranking that are known.
    let mut first_known = |ranking: &[i64], most: usize| -> Result<Vec<(i64, String)>> {
        let mut known = Vec::new();
        for id in ranking {
            if known.len() == most {
                break;
            }
            let named = match judged.entry(*id) {
                Entry::Occupied(before) => before.into_mut(),
                Entry::Vacant(unknown) => unknown.insert(match named_column_text(view.connection, *id)? {
                    Some((name, text)) if is_known(&name, &text)? => Some((name, text)),
                    _ => None,
                }),
            };
            if let Some((_, text)) = named {
                known.push((*id, text.clone()));
            }
        }
        Ok(known)
    };
    let ids = |known: Vec<(i64, String)>| -> Vec<i64> { known.into_iter().map(|(id, _)| id).collect() };
    let by_words = match &texts.of_known {
        Some(ranking) => ranking.ranked(&first_known(&texts.by_words, usize::MAX)?),
        None => ids(first_known(&texts.by_words, DEPTH)?),
    };
    let by_meaning = ids(first_known(&texts.by_meaning, DEPTH)?);
    let mut scores: HashMap<i64, f32> = HashMap::new();
    for ranking in [by_words, by_meaning] {
        for (rank, id) in ranking.into_iter().take(DEPTH).enumerate() {
            *scores.entry(id).or_default() += rank_weight(rank);
        }
    }
    let mut ranked: Vec<(i64, f32)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let named = |(id, _): (i64, f32)| judged.remove(&id).flatten().map(|(name, _)| name);
    Ok(ranked.into_iter().take(DEPTH).filter_map(named).collect())
}

/// The boosts by the columns of those texts, for tables that the caller may find, by columns that it sees.
pub(super) fn find(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    texts: &RankedTexts,
    is_bound: bool,
) -> Result<Vec<Boost>> {
    let rights = view.rights(who);
    let mut known: HashMap<String, Vec<String>> = HashMap::new();
    let ranked = ranked_names(view, texts, |name, text| {
        if !is_bound {
            return Ok(true);
        }
        let known = match known.entry(name.to_owned()) {
            Entry::Occupied(before) => before.into_mut(),
            Entry::Vacant(unknown) => unknown.insert(texts_of_name(view, who, visible, name)?),
        };
        Ok(known.iter().any(|known| known == text))
    })?;
    let mut names: Vec<String> = Vec::new();
    for name in ranked {
        if names.len() < MAX_NAMES && names.iter().all(|known| name_key(known) != name_key(&name)) {
            names.push(name);
        }
    }
    let mut boosts: Vec<Boost> = Vec::new();
    for (rank, name) in names.into_iter().enumerate() {
        for column in store::column_names::find_rare(view, visible, &name, MAX_TABLES)? {
            if !rights.is_unbound() && !is_known_column(view, rights, &column)? {
                continue;
            }
            if boosts.iter().filter(|boost| boost.object_id == column.object_id).count() < MAX_COLUMNS {
                boosts.push(Boost {
                    object_id: column.object_id,
                    first_ranks: FIRST_RANKS * rank_weight(rank) / rank_weight(0),
                    found_by: FoundBy::Column,
                    why: format!("column {}", column.column),
                });
            }
        }
    }
    Ok(boosts)
}

/// Returns the texts of the columns of a name that the caller sees: hidden ones may share its name.
fn texts_of_name(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    name: &str,
) -> Result<Vec<String>> {
    let found = store::column_names::find(view, visible, &[name.to_owned()], MAX_TABLES + 1)?;
    let tables: Vec<i64> = found.iter().map(|column| column.object_id).collect();
    let infos = table_infos(view, who, &tables)?;
    let columns = infos.iter().flatten().flat_map(|info| &info.columns);
    Ok(columns.filter(|column| column.name == name).map(column_text).collect())
}

fn is_known_column(view: &SnapshotView<'_>, rights: Rights<'_>, column: &ColumnMatch) -> Result<bool> {
    let Some((table, _)) = object_name(view.connection, column.object_id)? else { return Ok(false) };
    Ok(rights.columns(&table).is_none_or(|known| known.contains(&column.column.to_lowercase())))
}
