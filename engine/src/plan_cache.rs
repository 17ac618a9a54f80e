//! Plans of statements that were planned before, for the next time that the same is asked by the same caller.
//!
//! Invariants: a plan is found only under everything that planning depended on, its text, its caller, its database and what its
//! session set ([`PlanKey`]), and what planning read is compared before it is used ([`KnownPlan::catalog`],
//! [`KnownPlan::temporary`]). What is kept stays within the cache's limit; the least recently used goes first.

mod results;

use std::fmt::Debug;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arrow::datatypes::DataType;
use datafusion::logical_expr::LogicalPlan;
use hashlink::LruCache;
use parking_lot::Mutex;
use querent_catalog::{CatalogVersion, Principal};

pub use results::ResultCacheState;
pub(crate) use results::{ResultCache, ResultKey};

/// No plan takes more than this part of a cache.
const LARGEST_SHARE: usize = 8;
/// What a session's own tables may have of the plans' memory: this part of the engine's.
const SESSION_SHARE: usize = 16;
/// The memory of a part of a plan, an operator, an expression or a column, in all forms in which a plan is kept; a guess, on
/// the large side.
const PART_BYTES: usize = 768;

/// What decides how a text is planned, apart from what is read for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanKey {
    /// The statement as it was sent.
    pub text: String,
    /// Where bare names resolve.
    pub database: Arc<str>,
    /// The caller with all that policies ask of it.
    pub caller: Principal,
    /// What statements set in the session, by name.
    pub settings: Vec<(&'static str, String)>,
    /// The types of the parameters' values, `None` for a null without one; `None` where no values are given.
    pub parameters: Option<Vec<Option<DataType>>>,
    /// The names of the values, in their order: which of them a named parameter is. Empty where they have numbers.
    pub parameter_names: Vec<String>,
    /// Whether scans keep dictionaries.
    pub takes_dictionaries: bool,
    /// The row limit that is put into the plan.
    pub pushed_rows: Option<u64>,
}

impl Hash for PlanKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.text.hash(state);
        self.database.hash(state);
        self.caller.subject().hash(state);
        self.pushed_rows.hash(state);
    }
}

/// A plan and what it was made of.
#[derive(Debug)]
pub(crate) struct KnownPlan {
    /// The query as planned: not analysed, its parameters open.
    pub open: LogicalPlan,
    /// Whether there are parameters.
    pub has_parameters: bool,
    /// Whether it says the same whenever it is optimised: no function of it knows the time or makes up values.
    pub is_fixed: bool,
    /// Whether its rows are the same while the version of the catalog is, as far as it reads any.
    pub reads_commits_only: bool,
    /// The version of the catalog at which its names resolved; `None` where none was looked up there.
    pub catalog: Option<CatalogVersion>,
    /// The version of the session's own tables, where there are any.
    pub temporary: Option<u64>,
    /// What is used in its place, made the first time that it is found; `None` in it where that cannot be done.
    pub ready: OnceLock<Option<ReadyPlan>>,
    /// Its operators, expressions and columns.
    pub parts: usize,
}

impl KnownPlan {
    /// Returns the version of the catalog that decides its rows; `None` where anything else does, too.
    pub(crate) fn rows_decided_by(&self) -> Option<CatalogVersion> {
        self.catalog.filter(|_| self.is_fixed && self.reads_commits_only && self.temporary.is_none())
    }
}

/// A plan of which nothing is left to be done but to put in the values.
#[derive(Debug)]
pub(crate) struct ReadyPlan {
    /// The analysed plan, which says what the query reads and gives.
    pub analysed: LogicalPlan,
    /// The same with the session's row limit, optimised; `None` where it has to be optimised each time.
    pub optimized: Option<Arc<LogicalPlan>>,
}

/// What the engine's plans take and how they were used, for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanCacheState {
    /// Bytes that the plans are thought to take.
    pub bytes: usize,
    /// Statements whose plan was known.
    pub hits: u64,
    /// Statements that were planned and whose plan was kept.
    pub misses: u64,
}

/// Keeps plans. A trait, since the compiler would walk the plans in a cache for every future that holds an engine.
pub(crate) trait PlanStore: Debug + Send + Sync {
    /// Whether anything is kept.
    fn is_on(&self) -> bool;
    /// Returns the plan that is kept for a key.
    fn find(&self, key: &PlanKey) -> Option<Arc<KnownPlan>>;
    /// Keeps a plan that was made anew, unless it is too large.
    fn keep(&self, key: PlanKey, plan: KnownPlan);
    /// Counts a statement that a kept plan answered.
    fn count_hit(&self);
    /// Forgets all plans.
    fn clear(&self);
    /// Returns a store for plans over the tables of one session, which goes with them.
    fn for_session(&self) -> Arc<dyn PlanStore>;
    /// Returns what this store and those of sessions take, and how they were used.
    fn state(&self) -> PlanCacheState;
}

/// Plans in memory, `limit` bytes of them.
#[derive(Debug)]
pub(crate) struct PlanCache {
    kept: Mutex<KeptPlans>,
    limit: usize,
    counts: Arc<PlanCounts>,
}

#[derive(Debug)]
struct KeptPlans {
    plans: LruCache<PlanKey, Arc<KnownPlan>>,
    bytes: usize,
}

/// Shared by the engine's cache and those of sessions.
#[derive(Debug, Default)]
struct PlanCounts {
    bytes: AtomicUsize,
    hits: AtomicU64,
    misses: AtomicU64,
}

impl PlanCache {
    /// Returns a cache of `limit` bytes; of 0, one that keeps nothing.
    #[expect(clippy::new_ret_no_self, reason = "it is used as a store of plans only, see there")]
    pub(crate) fn new(limit: usize) -> Arc<dyn PlanStore> {
        Arc::new(Self::with_counts(limit, Arc::default()))
    }

    fn with_counts(limit: usize, counts: Arc<PlanCounts>) -> Self {
        Self { kept: Mutex::new(KeptPlans { plans: LruCache::new_unbounded(), bytes: 0 }), limit, counts }
    }
}

impl PlanStore for PlanCache {
    fn is_on(&self) -> bool {
        self.limit > 0
    }

    fn find(&self, key: &PlanKey) -> Option<Arc<KnownPlan>> {
        self.kept.lock().plans.get(key).map(Arc::clone)
    }

    fn keep(&self, key: PlanKey, plan: KnownPlan) {
        let bytes = bytes_of(&key, &plan);
        if bytes > self.limit / LARGEST_SHARE {
            return;
        }
        self.counts.misses.fetch_add(1, Ordering::Relaxed);
        let mut kept = self.kept.lock();
        let before = kept.bytes;
        if let Some((old, replaced)) = kept.plans.remove_entry(&key) {
            kept.bytes -= bytes_of(&old, &replaced);
        }
        while kept.bytes + bytes > self.limit {
            let Some((old, dropped)) = kept.plans.remove_lru() else { break };
            kept.bytes -= bytes_of(&old, &dropped);
        }
        kept.bytes += bytes;
        kept.plans.insert(key, Arc::new(plan));
        self.counts.bytes.fetch_add(kept.bytes, Ordering::Relaxed);
        self.counts.bytes.fetch_sub(before, Ordering::Relaxed);
    }

    fn count_hit(&self) {
        self.counts.hits.fetch_add(1, Ordering::Relaxed);
    }

    fn clear(&self) {
        let mut kept = self.kept.lock();
        kept.plans.clear();
        self.counts.bytes.fetch_sub(std::mem::take(&mut kept.bytes), Ordering::Relaxed);
    }

    fn for_session(&self) -> Arc<dyn PlanStore> {
        Arc::new(Self::with_counts(self.limit / SESSION_SHARE, Arc::clone(&self.counts)))
    }

    fn state(&self) -> PlanCacheState {
        PlanCacheState {
            bytes: self.counts.bytes.load(Ordering::Relaxed),
            hits: self.counts.hits.load(Ordering::Relaxed),
            misses: self.counts.misses.load(Ordering::Relaxed),
        }
    }
}

impl Drop for PlanCache {
    fn drop(&mut self) {
        self.counts.bytes.fetch_sub(self.kept.get_mut().bytes, Ordering::Relaxed);
    }
}

fn bytes_of(key: &PlanKey, plan: &KnownPlan) -> usize {
    key.text.len() + plan.parts.saturating_add(1) * PART_BYTES
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::LogicalPlanBuilder;
    use querent_catalog::Role;

    use super::*;

    fn key(text: &str) -> PlanKey {
        PlanKey {
            text: text.to_owned(),
            database: Arc::from("default"),
            caller: Principal::new("anna", Role::Read),
            settings: Vec::new(),
            parameters: None,
            parameter_names: Vec::new(),
            takes_dictionaries: false,
            pushed_rows: None,
        }
    }

    fn plan(parts: usize) -> KnownPlan {
        KnownPlan {
            open: LogicalPlanBuilder::empty(true).build().unwrap(),
            has_parameters: false,
            is_fixed: true,
            reads_commits_only: true,
            catalog: None,
            temporary: None,
            ready: OnceLock::new(),
            parts,
        }
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let limit = LARGEST_SHARE * bytes_of(&key("a"), &plan(1));
        let cache = PlanCache::new(limit);
        for text in ["a", "b", "c", "d", "e", "f", "g", "h"] {
            cache.keep(key(text), plan(1));
        }
        assert!(cache.find(&key("a")).is_some());
        cache.keep(key("i"), plan(1));
        assert!(cache.find(&key("a")).is_some() && cache.find(&key("b")).is_none());
        assert!(cache.state().bytes <= limit);
        cache.keep(key("j"), plan(2));
        assert!(cache.find(&key("j")).is_none(), "more than its share");
        cache.clear();
        assert_eq!(cache.state(), PlanCacheState { bytes: 0, hits: 0, misses: 9 });
    }

    #[test]
    fn a_replaced_plan_and_a_session_that_ends_give_their_bytes_back() {
        let cache = PlanCache::new(1 << 20);
        cache.keep(key("a"), plan(1));
        let once = cache.state().bytes;
        cache.keep(key("a"), plan(1));
        assert_eq!(cache.state().bytes, once);
        let session = cache.for_session();
        session.keep(key("b"), plan(1));
        assert!(cache.state().bytes > once && cache.find(&key("b")).is_none());
        drop(session);
        assert_eq!(cache.state().bytes, once);
    }

    #[test]
    fn nothing_is_shared_by_callers_databases_or_types() {
        let cache = PlanCache::new(1 << 20);
        cache.keep(key("a"), plan(1));
        let anna = key("a");
        let others = [
            PlanKey { caller: Principal::new("bob", Role::Read), ..anna.clone() },
            PlanKey { caller: Principal::new("anna", Role::Write), ..anna.clone() },
            PlanKey { caller: anna.caller.clone().with_databases(["default"]), ..anna.clone() },
            PlanKey { database: Arc::from("sales"), ..anna.clone() },
            PlanKey { settings: vec![("application_name", "x".to_owned())], ..anna.clone() },
            PlanKey { parameters: Some(Vec::new()), ..anna.clone() },
            PlanKey { parameter_names: vec!["a".to_owned()], ..anna.clone() },
            PlanKey { takes_dictionaries: true, ..anna.clone() },
            PlanKey { pushed_rows: Some(10), ..anna.clone() },
        ];
        for other in others {
            assert!(cache.find(&other).is_none(), "{other:?}");
        }
        assert!(cache.find(&anna).is_some());
    }
}
