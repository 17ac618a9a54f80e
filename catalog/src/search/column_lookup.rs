//! Finds columns by name, through an index over all columns, so that the cost does not grow with the catalog. Other
//! spellings of the same words (`cust_id`, `CustId`) are found by their words.

use serde::Serialize;

use crate::error::Result;
use crate::model::TableName;
use crate::principal::Principal;
use crate::search::CatalogSearch;
use crate::store::pending::similar_column_names;
use crate::store::resolve::visible_objects;
use crate::store::{column_names, name_key, table_infos};

/// The most spellings that are looked up.
const MAX_SPELLINGS: usize = 16;

/// A column found by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnHit {
    /// Its table.
    #[serde(flatten)]
    pub table: TableName,
    /// Its name as the table spells it.
    pub column: String,
    /// Its Arrow type.
    #[serde(rename = "type")]
    pub data_type: String,
    /// Its comment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// The columns of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSearch {
    /// Columns of the same spelling first (ignoring case), then those of the same words.
    pub hits: Vec<ColumnHit>,
    /// The spelling that was asked for, and the others of columns that the caller may see.
    pub spellings: Vec<String>,
    /// Whether there are more than the limit.
    pub is_truncated: bool,
}

impl CatalogSearch<'_> {
    /// The columns called `name`, in any spelling of its words, of what the caller may see. Errors:
    /// `database_not_found`.
    pub async fn columns(
        self,
        who: &Principal,
        database: Option<&str>,
        name: &str,
        limit: usize,
    ) -> Result<ColumnSearch> {
        let name = name.trim().to_string();
        let (who, database) = (who.clone(), database.map(str::to_string));
        self.store
            .view(move |view| {
                let visible = visible_objects(view, &who, database.as_deref())?;
                let mut spellings = vec![name];
                for alike in similar_column_names(view.connection, &spellings[0], MAX_SPELLINGS)? {
                    if spellings.iter().all(|known| name_key(known) != name_key(&alike)) {
                        spellings.push(alike);
                    }
                }
                // Of some tables the caller sees a part of the columns: the others take no place among the hits.
                let hidden = visible.in_part.len().saturating_mul(spellings.len());
                let most = limit.saturating_add(1).saturating_add(hidden);
                let found = column_names::find(view, &visible, &spellings, most)?;
                let tables: Vec<i64> = found.iter().map(|column| column.object_id).collect();
                let infos = table_infos(view, &who, &tables)?;
                let known = found.into_iter().zip(infos).filter_map(|(found, info)| {
                    let info = info?;
                    let column = info.columns.iter().find(|column| column.name == found.column)?;
                    Some(ColumnHit {
                        column: found.column,
                        data_type: column.data_type.to_string(),
                        comment: column.comment.clone(),
                        table: info.name,
                    })
                });
                let mut hits: Vec<ColumnHit> = known.collect();
                // A spelling of hidden columns only is not there.
                let is_known = |spelling: &String| hits.iter().any(|hit| name_key(&hit.column) == name_key(spelling));
                let others: Vec<String> = spellings.split_off(1).into_iter().filter(is_known).collect();
                spellings.extend(others);
                let is_truncated = hits.len() > limit;
                hits.truncate(limit);
                Ok(ColumnSearch { hits, spellings, is_truncated })
            })
            .await
    }
}
