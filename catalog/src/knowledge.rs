//! Knowledge taught by users: verified queries (a question and the SQL that answers it) and metrics (a name and the
//! expression it means). Each belongs to a database and is visible to whoever may see all tables that it reads.
//!
//! There are at most [`MAX_OBJECTS`] of each: they are compared with a question in memory, by the words they share.

mod rows;
mod similar;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};

use crate::error::{CatalogError, Result};
use crate::index::SchemaIndex;
use crate::model::{Page, PageRequest, TableName};
use crate::policy::Rights;
use crate::principal::Principal;
use crate::store::rows::MAX_PAGE;
use crate::store::{Store, may_know_named};
use rows::KnowledgeRow;
pub(crate) use rows::insert_query;
use similar::Corpus;

/// The most verified queries, and the most metrics, of a catalog.
pub const MAX_OBJECTS: usize = 10_000;
/// Of so many times the objects that are wanted it is looked whether they name views that the caller may not know.
const JUDGED_TIMES: usize = 8;

/// A question and tested SQL that answers it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VerifiedQuery {
    /// Its id.
    pub id: i64,
    /// The database in which bare names in `sql` resolve.
    pub database: String,
    /// The question as a person would ask it.
    pub question: String,
    /// A single query.
    pub sql: String,
    /// The tables it reads.
    pub tables: Vec<TableName>,
    /// The subject that verified it.
    pub subject: String,
    /// When it was stored.
    pub created_at: DateTime<Utc>,
}

/// A verified query to store. Made by the engine after its SQL ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVerifiedQuery {
    /// The database in which bare names in `sql` resolve.
    pub database: String,
    /// The question as a person would ask it.
    pub question: String,
    /// A single query.
    pub sql: String,
    /// The tables it reads.
    pub tables: Vec<TableName>,
}

/// A name that people use for a number, and its definition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Metric {
    /// Its id.
    pub id: i64,
    /// Its database, in which its name is unique, ignoring case.
    pub database: String,
    /// Its name.
    pub name: String,
    /// Its meaning in words.
    pub description: Option<String>,
    /// The table that it is computed over.
    pub table: TableName,
    /// An aggregate: `sum(amount - discount)`.
    pub expression: String,
    /// A condition on the rows; without it all rows count.
    pub filter: Option<String>,
    /// The tables that it names, its own first.
    #[serde(skip)]
    pub tables: Vec<TableName>,
    /// The subject that defined it.
    pub subject: String,
    /// When it was stored.
    pub created_at: DateTime<Utc>,
}

/// A metric to store. The engine checks that its expression runs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMetric {
    /// Its name.
    pub name: String,
    /// Its meaning in words.
    pub description: Option<String>,
    /// The table that it is computed over.
    pub table: TableName,
    /// An aggregate.
    pub expression: String,
    /// A condition on the rows.
    pub filter: Option<String>,
}

/// A verified query or metric, and its similarity to a question.
#[derive(Debug, Clone, PartialEq)]
pub struct Similar<T> {
    /// The object.
    pub object: T,
    /// From 0 to 1.
    pub similarity: f32,
}

/// Verified queries and metrics. Made by [`Catalog::knowledge`](crate::Catalog::knowledge).
#[derive(Clone, Copy)]
pub struct CatalogKnowledge<'a> {
    pub(crate) store: &'a Store,
    pub(crate) index: &'a SchemaIndex,
    pub(crate) cache: &'a KnowledgeCache,
}

impl CatalogKnowledge<'_> {
    /// Stores a verified query, in place of one with the same question in the same database. Only
    /// `querent_engine::Session::verify_query` may call it: it runs the SQL first. Errors: `invalid_object`.
    pub async fn store_verified_query(self, who: &Principal, new: NewVerifiedQuery) -> Result<VerifiedQuery> {
        let who = who.clone();
        let stored = self.store.write_ours(move |view| insert_query(view, &who, &new)).await;
        self.cache.forget();
        stored
    }

    /// Stores a metric, in place of one of the same name in the same database. Only
    /// `querent_engine::Session::define_metric` may call it. Errors: `invalid_object`.
    pub async fn store_metric(self, who: &Principal, new: NewMetric) -> Result<Metric> {
        let who = who.clone();
        let stored = self.store.write_ours(move |view| rows::insert_metric(view, &who, &new)).await;
        self.cache.forget();
        stored
    }

    /// The verified queries that the caller may see, oldest first.
    pub async fn list_verified_queries(
        self,
        who: &Principal,
        database: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<VerifiedQuery>> {
        self.list(who, database, page).await
    }

    /// The metrics that the caller may see, oldest first.
    pub async fn list_metrics(
        self,
        who: &Principal,
        database: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<Metric>> {
        self.list(who, database, page).await
    }

    async fn list<T: KnowledgeRow>(
        self,
        who: &Principal,
        database: Option<&str>,
        page: PageRequest,
    ) -> Result<Page<T>> {
        let (limit, mut after) = (page.limit.clamp(1, MAX_PAGE), page.after);
        let mut items = Vec::new();
        // What names views that the caller may not know is left out, so a page may take several reads.
        loop {
            let (reader, database) = (who.clone(), database.map(str::to_string));
            let (policies, page) = (self.store.policies(), PageRequest { limit: limit - items.len(), after });
            let read = self.store.read(move |connection| {
                rows::list::<T>(connection, Rights::new(&reader, &policies), database.as_deref(), &page)
            });
            let Page { items: read, next } = read.await?;
            items.extend(self.known(who, read, |object| object.tables().to_vec()).await?);
            after = next;
            if after.is_none() || items.len() == limit {
                return Ok(Page { items, next: after });
            }
        }
    }

    /// Returns those of some objects that name no view which the caller may not know. `tables` are what one of them names.
    async fn known<T: Send>(
        self,
        who: &Principal,
        objects: Vec<T>,
        tables: impl Fn(&T) -> Vec<TableName>,
    ) -> Result<Vec<T>> {
        if objects.is_empty() || Rights::new(who, &self.store.policies()).sees_all() {
            return Ok(objects);
        }
        let (reader, named): (_, Vec<Vec<TableName>>) = (who.clone(), objects.iter().map(tables).collect());
        let known = self.store.view(move |view| {
            let mut known = Vec::with_capacity(named.len());
            for tables in &named {
                let mut is_known = true;
                for table in tables {
                    is_known = is_known && may_know_named(view, &reader, table)?;
                }
                known.push(is_known);
            }
            Ok(known)
        });
        let known = known.await?;
        Ok(objects.into_iter().zip(known).filter_map(|(object, is_known)| is_known.then_some(object)).collect())
    }

    /// Deletes a verified query. Errors: `object_not_found`.
    pub async fn drop_verified_query(self, who: &Principal, id: i64) -> Result<()> {
        let who = who.clone();
        let policies = self.store.policies();
        let dropped =
            self.store.write_rows(move |c| rows::remove::<VerifiedQuery>(c, Rights::new(&who, &policies), id)).await;
        self.cache.forget();
        dropped
    }

    /// Deletes a metric. Errors: `object_not_found`.
    pub async fn drop_metric(self, who: &Principal, id: i64) -> Result<()> {
        let who = who.clone();
        let policies = self.store.policies();
        let dropped = self.store.write_rows(move |c| rows::remove::<Metric>(c, Rights::new(&who, &policies), id)).await;
        self.cache.forget();
        dropped
    }

    /// The verified queries visible to the caller that are most similar to a question, most similar first.
    pub async fn similar_queries(
        self,
        who: &Principal,
        database: Option<&str>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Similar<VerifiedQuery>>> {
        let corpus = self.cache.corpus(self.store, self.index).await?;
        self.similar(who, &corpus.queries, database, question, limit).await
    }

    /// The metrics visible to the caller that are most similar to a question, most similar first.
    pub async fn similar_metrics(
        self,
        who: &Principal,
        database: Option<&str>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Similar<Metric>>> {
        let corpus = self.cache.corpus(self.store, self.index).await?;
        self.similar(who, &corpus.metrics, database, question, limit).await
    }

    async fn similar<T: KnowledgeObject + Send>(
        self,
        who: &Principal,
        corpus: &Corpus<T>,
        database: Option<&str>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<Similar<T>>> {
        let (words, policies) = (self.index.tokens(question), self.store.policies());
        let judged = limit.saturating_mul(JUDGED_TIMES);
        let similar = corpus.similar(&words, Rights::new(who, &policies), database, judged);
        let mut known = self.known(who, similar, |similar| similar.object.tables().to_vec()).await?;
        known.truncate(limit);
        Ok(known)
    }
}

/// What verified queries and metrics have in common.
pub(crate) trait KnowledgeObject: Clone + Send + Sync + 'static {
    /// The text that questions are compared with.
    fn text(&self) -> String;
    /// Its database.
    fn database(&self) -> &str;
    /// The tables it reads.
    fn tables(&self) -> &[TableName];

    /// Whether its database and all tables it reads may be seen, with all their columns: its text names some.
    fn is_visible(&self, rights: Rights<'_>) -> bool {
        rights.may_see_whole(self.database(), self.tables())
    }
}

impl KnowledgeObject for VerifiedQuery {
    fn text(&self) -> String {
        self.question.clone()
    }

    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> &[TableName] {
        &self.tables
    }
}

impl KnowledgeObject for Metric {
    fn text(&self) -> String {
        self.name.clone()
    }

    fn database(&self) -> &str {
        &self.database
    }

    fn tables(&self) -> &[TableName] {
        &self.tables
    }
}

/// All knowledge, prepared for comparison with questions; built when first needed after a change.
#[derive(Default)]
pub(crate) struct KnowledgeCache {
    made: RwLock<(u64, Option<Arc<Corpora>>)>,
}

pub(crate) struct Corpora {
    pub(crate) queries: Corpus<VerifiedQuery>,
    pub(crate) metrics: Corpus<Metric>,
}

impl KnowledgeCache {
    pub(crate) async fn corpus(&self, store: &Store, index: &SchemaIndex) -> Result<Arc<Corpora>> {
        let changes = {
            let made = self.made.read();
            if let Some(corpora) = &made.1 {
                return Ok(Arc::clone(corpora));
            }
            made.0
        };
        let (queries, metrics) = store.read(|connection| Ok((rows::all(connection)?, rows::all(connection)?))).await?;
        // Ten thousand strings take a while to tokenize.
        let tokens = index.tokenizer();
        let make = move || Corpora { queries: Corpus::new(queries, &tokens), metrics: Corpus::new(metrics, &tokens) };
        let made = tokio::task::spawn_blocking(make).await;
        let corpora = made.map(Arc::new).map_err(|error| CatalogError::Internal(error.to_string()))?;
        let mut made = self.made.write();
        // A change during the read invalidates it; the next question reads again.
        if made.0 == changes {
            made.1 = Some(Arc::clone(&corpora));
        }
        Ok(corpora)
    }

    pub(crate) fn forget(&self) {
        let mut made = self.made.write();
        made.0 += 1;
        made.1 = None;
    }
}
