//! Columns by name. The cost is bounded whatever the catalog holds: tables whose text has the name's words, found by
//! full text, and the first tables of the databases asked for; a search that could not see everything says so.

use std::collections::HashSet;

use serde::Serialize;

use crate::index::SearchFilter;
use crate::index::text::{query_text, split_words};
use crate::store::{self, name_key, table_infos};
use crate::{Catalog, PageRequest, Principal, Result, TableFilter, TableInfo, TableName};

/// Tables taken from full text.
const RANKED_TABLES: usize = 200;
/// Tables looked through besides.
const LISTED_TABLES: usize = 500;

/// A column of a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ColumnHit {
    /// Its table.
    #[serde(flatten)]
    pub table: TableName,
    /// Its own spelling.
    pub column: String,
    /// Its Arrow type.
    #[serde(rename = "type")]
    pub data_type: String,
    /// What a person said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
}

/// Columns of a name, and where they were looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnSearch {
    /// The same spelling first (case aside), then the same words.
    pub hits: Vec<ColumnHit>,
    /// Tables whose columns were read.
    pub tables_searched: usize,
    /// Columns that were read.
    pub columns_searched: usize,
    /// There may be more, among tables that were not read or beyond the limit.
    pub is_truncated: bool,
}

impl Catalog {
    /// Columns called `name`, in any spelling of its words, of what the caller may see. Errors: `database_not_found`.
    pub async fn find_columns(
        &self,
        who: &Principal,
        database: Option<&str>,
        name: &str,
        limit: usize,
    ) -> Result<ColumnSearch> {
        let (principal, asked) = (who.clone(), database.map(str::to_string));
        let visible =
            self.store.view(move |view| crate::search::visible_databases(view, &principal, asked.as_deref())).await?;
        let filter = SearchFilter::databases(visible);
        let ranked = self.index.snapshot().bm25(&query_text(name), RANKED_TABLES, &filter).await;

        let tables = TableFilter { database: database.map(str::to_string), ..TableFilter::default() };
        let principal = who.clone();
        let (mut infos, has_more) = self
            .store
            .view(move |view| {
                let page = PageRequest::first(LISTED_TABLES);
                let page = store::listing::tables_with_columns(view, &principal, &tables, &page)?;
                let listed: HashSet<i64> = page.items.iter().map(|info| info.id).collect();
                let ids: Vec<i64> =
                    ranked.iter().map(|scored| scored.object_id).filter(|id| !listed.contains(id)).collect();
                let mut infos: Vec<TableInfo> = table_infos(view, &principal, &ids)?.into_iter().flatten().collect();
                infos.extend(page.items);
                Ok((infos, page.next.is_some()))
            })
            .await?;
        infos.sort_by_cached_key(|info| (name_key(&info.name.database), name_key(&info.name.table)));
        let mut hits = matches(&infos, name);
        let is_truncated = has_more || hits.len() > limit;
        hits.truncate(limit);
        let columns_searched = infos.iter().map(|info| info.columns.len()).sum();
        Ok(ColumnSearch { hits, tables_searched: infos.len(), columns_searched, is_truncated })
    }
}

fn matches(tables: &[TableInfo], name: &str) -> Vec<ColumnHit> {
    let key = name_key(name.trim());
    let words = |name: &str| split_words(name).concat().to_lowercase();
    let wanted = words(name);
    let (mut same, mut alike) = (Vec::new(), Vec::new());
    for table in tables {
        for column in &table.columns {
            let is_same = name_key(&column.name) == key;
            if !is_same && (wanted.is_empty() || words(&column.name) != wanted) {
                continue;
            }
            let hit = ColumnHit {
                table: table.name.clone(),
                column: column.name.clone(),
                data_type: column.data_type.to_string(),
                comment: column.comment.clone(),
            };
            if is_same { same.push(hit) } else { alike.push(hit) }
        }
    }
    same.extend(alike);
    same
}
