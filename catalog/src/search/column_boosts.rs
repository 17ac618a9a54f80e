//! Boosts for tables by their columns: a table of a thousand columns is found by the one that a question means. A
//! column text is ranked once however many columns share it; a name that many tables share boosts none of them.

use std::collections::HashMap;

use super::fuse::{Boost, rank_weight};
use crate::error::Result;
use crate::index::{IndexPart, Scored, SearchFilter};
use crate::model::FoundBy;
use crate::policy::Rights;
use crate::principal::Principal;
use crate::store::column_names::ColumnMatch;
use crate::store::objects::object_name;
use crate::store::pending::names_of_column_texts;
use crate::store::{self, SnapshotView, VisibleObjects, name_key};

/// Column texts from each ranking.
const DEPTH: usize = 40;
/// Column names that are looked up.
const MAX_NAMES: usize = 24;
/// The most tables of one column name; more have only the name in common.
const MAX_TABLES: usize = 12;
/// The boost of a table by its best column, in first ranks.
const FIRST_RANKS: f32 = 0.25;
/// The most columns that boost one table.
const MAX_COLUMNS: usize = 2;

/// The ids of the column texts that fit the question best, best first.
pub(super) async fn ranked_texts(columns: &IndexPart, text: &str, vector: Option<&[f32]>) -> Vec<i64> {
    let all = SearchFilter::default();
    let by_meaning = async {
        match vector {
            Some(vector) => columns.nearest(vector, DEPTH, &all).await,
            None => Vec::new(),
        }
    };
    let (bm25, dense) = futures::join!(columns.bm25(text, DEPTH, &all), by_meaning);
    let mut scores: HashMap<i64, f32> = HashMap::new();
    let mut add = |ranking: &[Scored]| {
        for (rank, scored) in ranking.iter().enumerate() {
            *scores.entry(scored.object_id).or_default() += rank_weight(rank);
        }
    };
    add(&bm25);
    add(&dense);
    let mut ranked: Vec<(i64, f32)> = scores.into_iter().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked.into_iter().map(|(id, _)| id).take(DEPTH).collect()
}

/// The boosts by the columns of those texts, for tables that the caller may find, by columns that it sees.
pub(super) fn find(
    view: &SnapshotView<'_>,
    who: &Principal,
    visible: &VisibleObjects,
    texts: &[i64],
) -> Result<Vec<Boost>> {
    let rights = view.rights(who);
    let mut names: Vec<String> = Vec::new();
    for name in names_of_column_texts(view.connection, texts)?.into_iter().flatten() {
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

fn is_known_column(view: &SnapshotView<'_>, rights: Rights<'_>, column: &ColumnMatch) -> Result<bool> {
    let Some((table, _)) = object_name(view.connection, column.object_id)? else { return Ok(false) };
    Ok(rights.columns(&table).is_none_or(|known| known.contains(&column.column.to_lowercase())))
}
