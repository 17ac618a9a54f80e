//! Statements that were planned before: their plans are taken as they are, with new values in them, while all that planning
//! depended on is the same.
//!
//! Invariants: a plan from the cache passes [`Session::authorize`] as any does. Whatever goes wrong with it, the statement is
//! planned anew, so that an error is the one of a statement that nobody sent before.

use std::sync::{Arc, OnceLock};

use datafusion::error::Result as PlanResult;
use datafusion::logical_expr::LogicalPlan;
use datafusion::scalar::ScalarValue;
use querent_catalog::CatalogVersion;

use super::Session;
use super::planning::analysed;
use crate::error::Result;
use crate::limits::QueryUsage;
use crate::plan_cache::{KnownPlan, PlanKey, PlanStore, ReadyPlan, ResultKey};
use crate::policy::{AuthorizedPlan, OptimizedPlan};
use crate::sql::kept_plans::{compares_parameters_only, has_small_constants, kept_traits, takes_values, with_values};
use crate::sql::parameters::ParameterValues;
use crate::sql::plan_notes::PlanNotes;
use crate::sql::time_comparisons::settle_times;
use crate::sql::with_indexed_searches;
use crate::sql::write_statement::WriteStatement;
use crate::telemetry;

/// The longest text of which the plan is kept.
const MAX_TEXT_BYTES: usize = 16 << 10;

/// The parts of a plan up to which it is used where its statement came in, on a small stack and beside other calls.
const MAX_PARTS_AT_ONCE: usize = 200;

/// Where the plan of a statement is kept.
pub(super) struct PlanPlace {
    store: Arc<dyn PlanStore>,
    key: PlanKey,
    /// The version of the session's own tables, which its store holds plans over.
    temporary: Option<u64>,
}

impl Session {
    /// Returns the authorised plan of a statement: one that is known, with these values, or one that is made now.
    pub(super) async fn authorized_plan(&self, text: &str, parameters: ParameterValues) -> Result<AuthorizedPlan> {
        let Some(place) = self.plan_place(text, &parameters) else {
            let plan = self.parse_and_plan(text, parameters, None).await?;
            return self.authorize_planned(plan).await;
        };
        let result = self.result_place(&place, &parameters);
        if let Some(known) = self.known_plan(&place).await
            && let Some(plan) = self.plan_from(&known, &parameters)
        {
            place.count_hit();
            return Ok(plan.with_result(result_key(result, known.rows_decided_by())));
        }
        let notes = PlanNotes::default();
        let plan = Box::pin(self.parse_and_plan(text, parameters, Some(&notes))).await?;
        let plan = self.authorize_planned(plan).await?;
        Ok(plan.with_result(result_key(result, place.keep(notes))))
    }

    /// As [`Session::authorize`], of a statement that was planned just now, by the policy that holds. That of the tables which it
    /// reads is known since they were resolved; one that only names what it changes may have read nothing.
    async fn authorize_planned(&self, plan: LogicalPlan) -> Result<AuthorizedPlan> {
        if WriteStatement::from_plan(&plan).is_some_and(|change| change.database().is_some()) {
            self.engine.catalog().policies().in_force().await?;
        }
        self.authorize(plan)
    }

    /// As [`Session::authorized_plan`], in a span of its own.
    pub(super) async fn traced_plan(&self, text: &str, parameters: ParameterValues) -> Result<AuthorizedPlan> {
        telemetry::traced_plan("sql", Box::pin(self.authorized_plan(text, parameters))).await
    }

    /// Returns the authorised plan of a statement that is known, small, and needs nothing but its values, which is done here and now.
    pub(super) async fn plan_at_once(&self, text: &str, parameters: &ParameterValues) -> Option<AuthorizedPlan> {
        let place = self.plan_place(text, parameters)?;
        let known = self.known_plan(&place).await.filter(|known| known.parts <= MAX_PARTS_AT_ONCE)?;
        let ready = known.ready.get()?.as_ref()?;
        let plan = self.plan_with(ready, &plain_values(parameters)?).ok()?;
        place.count_hit();
        Some(plan.with_result(result_key(self.result_place(&place, parameters), known.rows_decided_by())))
    }

    /// Returns where the plan of a statement is kept; `None` where it is not.
    pub(super) fn plan_place(&self, text: &str, parameters: &ParameterValues) -> Option<PlanPlace> {
        let engine = &self.engine;
        if !engine.plans().is_on() || text.len() > MAX_TEXT_BYTES {
            return None;
        }
        let types = match parameters {
            ParameterValues::None => None,
            ParameterValues::Rows(rows) if rows.num_rows() != 1 => return None,
            given => {
                let types = given.types(false).into_iter();
                Some(types.map(|field| field.map(|field| field.data_type().clone())).collect())
            }
        };
        let (store, temporary) = match self.temporary.as_ref().and_then(|tables| tables.plans()) {
            Some((store, version)) => (Arc::clone(store), Some(version)),
            None => (Arc::clone(engine.plans()), None),
        };
        let key = PlanKey {
            text: text.to_owned(),
            database: Arc::clone(&self.database),
            caller: self.principal.clone(),
            settings: self.variables.as_ref().map(|variables| variables.settings()).unwrap_or_default(),
            parameters: types,
            parameter_names: parameters.names(),
            takes_dictionaries: self.result_types.dictionaries,
            pushed_rows: self.pushed_rows(),
        };
        Some(PlanPlace { store, key, temporary })
    }

    /// Returns by what the rows of a statement are kept, beside the version of the catalog; `None` where none are.
    fn result_place(&self, place: &PlanPlace, parameters: &ParameterValues) -> Option<(PlanKey, Vec<ScalarValue>)> {
        if !self.engine.results().is_on() || place.temporary.is_some() {
            return None;
        }
        Some((place.key.clone(), plain_values(parameters)?))
    }

    /// Returns the plan that is kept, if all that planning read is still the same.
    pub(super) async fn known_plan(&self, place: &PlanPlace) -> Option<Arc<KnownPlan>> {
        let known = place.store.find(&place.key)?;
        if known.temporary != place.temporary {
            return None;
        }
        match known.catalog {
            // What keeps the catalog from being read is said where the statement is planned anew.
            Some(version) if self.engine.catalog().tables().version().await.ok()? != version => None,
            Some(_) | None => Some(known),
        }
    }

    /// Returns the plan of a statement from a known one; `None` where it has to be planned anew.
    fn plan_from(&self, known: &KnownPlan, parameters: &ParameterValues) -> Option<AuthorizedPlan> {
        let values = plain_values(parameters);
        if known.ready.get().is_none()
            && let Some(values) = &values
        {
            let made = self.ready_plan(known, parameters, values).unwrap_or_default();
            // A statement that was ended says nothing of the next one.
            if made.is_some() || QueryUsage::current().is_none_or(|usage| usage.check().is_ok()) {
                known.ready.get_or_init(|| made);
            }
        }
        if let (Some(values), Some(Some(ready))) = (&values, known.ready.get()) {
            return self.plan_with(ready, values).ok();
        }
        let plan = analysed(&self.planning_state(), known.open.clone(), parameters.clone()).ok()?;
        self.authorize(plan).ok()
    }

    /// Returns the analysed plan of a known one, with its parameters open.
    pub(super) fn analysed_plan(&self, known: &KnownPlan) -> Option<LogicalPlan> {
        if let Some(Some(ready)) = known.ready.get() {
            return Some(ready.analysed.clone());
        }
        let plan = analysed(&self.planning_state(), known.open.clone(), ParameterValues::None).ok()?;
        if known.has_parameters {
            // It is kept to be described: values come under a key of their types.
            known.ready.get_or_init(|| Some(ReadyPlan { analysed: plan.clone(), optimized: None }));
        }
        Some(plan)
    }

    /// Puts values into a plan that is ready for them; into what the optimizer made of it once it is executed.
    fn plan_with(&self, ready: &ReadyPlan, values: &[ScalarValue]) -> Result<AuthorizedPlan> {
        let plan = self.authorize(with_values(&ready.analysed, values, None)?)?;
        let Some(optimized) = &ready.optimized else { return Ok(plan) };
        let (open, values, pushed_rows) = (Arc::clone(optimized), values.to_vec(), self.pushed_rows());
        Ok(plan.with_optimized(OptimizedPlan { open, values, pushed_rows }))
    }

    /// Takes a plan that is executed apart: itself, and what the optimizer makes of it with its values, where that is known.
    pub(super) fn with_its_optimized(&self, plan: AuthorizedPlan) -> (LogicalPlan, Option<Arc<LogicalPlan>>) {
        let (plan, optimized) = plan.into_parts(self.pushed_rows());
        // A value that does not fit is found by the optimizer, in the plan itself.
        (plan, optimized.and_then(|optimized| self.filled(optimized).ok()))
    }

    fn filled(&self, optimized: OptimizedPlan) -> PlanResult<Arc<LogicalPlan>> {
        let OptimizedPlan { open, values, .. } = optimized;
        if values.is_empty() {
            return Ok(open);
        }
        let filled = with_values(&open, &values, Some(&*self.engine.planning_state()))?;
        // A search finds its index once its vector is there.
        let has_vector = values.iter().any(|value| value.data_type().is_list());
        Ok(Arc::new(if has_vector { with_indexed_searches(filled)?.data } else { filled }))
    }

    /// Makes what is used in the place of a known plan from now on. `None` where parts of the plan depend on the values of its
    /// parameters, so that it has to be analysed and optimised with them.
    fn ready_plan(
        &self,
        known: &KnownPlan,
        parameters: &ParameterValues,
        values: &[ScalarValue],
    ) -> Result<Option<ReadyPlan>> {
        let state = self.planning_state();
        if !known.has_parameters {
            let plan = analysed(&state, known.open.clone(), parameters.clone())?;
            let optimized = match known.is_fixed {
                true => self.optimized(&plan).ok().filter(has_small_constants).map(Arc::new),
                false => None,
            };
            return Ok(Some(ReadyPlan { analysed: plan, optimized }));
        }
        if !known.is_fixed {
            return Ok(None);
        }
        let open = analysed(&state, settle_times(known.open.clone())?, ParameterValues::None)?;
        let exact = analysed(&state, known.open.clone(), parameters.clone())?;
        if !compares_parameters_only(&open) || with_values(&open, values, None)? != exact {
            return Ok(None);
        }
        let optimized = self.optimized(&open)?;
        let is_kept = takes_values(&optimized) && has_small_constants(&optimized);
        Ok(is_kept.then_some(ReadyPlan { analysed: open, optimized: Some(Arc::new(optimized)) }))
    }

    /// Returns what the optimizer makes of an analysed plan, with the row limit in it.
    pub(super) fn optimized(&self, plan: &LogicalPlan) -> PlanResult<LogicalPlan> {
        let state = self.engine.planning_state();
        state.optimizer().optimize(self.with_row_limit(plan.clone()), &*state, |_, _| {})
    }
}

impl PlanPlace {
    /// Counts a statement that a known plan answered.
    pub(super) fn count_hit(&self) {
        self.store.count_hit();
    }

    /// Keeps the plan of a query that was authorised, if it may be. Returns the version of the catalog that decides the query's rows,
    /// where nothing else does.
    pub(super) fn keep(self, notes: PlanNotes) -> Option<CatalogVersion> {
        let Self { store, key, temporary } = self;
        let (open, catalog) = notes.into_plan()?;
        let traits = kept_traits(&open, key.takes_dictionaries)?;
        // Rows of the session's tables are held by its own store and no other.
        if traits.reads_temporary && temporary.is_none() {
            return None;
        }
        let plan = KnownPlan {
            open,
            has_parameters: traits.has_parameters,
            is_fixed: traits.is_fixed,
            reads_commits_only: !traits.reads_varying && !traits.reads_temporary,
            catalog,
            temporary,
            ready: OnceLock::new(),
            parts: traits.parts,
        };
        let decided_by = plan.rows_decided_by();
        store.keep(key, plan);
        decided_by
    }
}

/// Returns by what the rows of a statement are kept; `None` where they are not.
fn result_key(place: Option<(PlanKey, Vec<ScalarValue>)>, version: Option<CatalogVersion>) -> Option<Arc<ResultKey>> {
    let (plan, values) = place?;
    Some(Arc::new(ResultKey { plan, values, version: version? }))
}

/// Returns the values of parameters where there is one of each and none is null: a comparison with null is simplified away.
fn plain_values(parameters: &ParameterValues) -> Option<Vec<ScalarValue>> {
    let values = match parameters {
        ParameterValues::None => Vec::new(),
        ParameterValues::Row(values) => values.clone(),
        ParameterValues::Rows(rows) => {
            let values = rows.columns().iter().map(|column| ScalarValue::try_from_array(column, 0));
            values.collect::<PlanResult<Vec<_>>>().ok()?
        }
    };
    values.iter().all(|value| !value.is_null()).then_some(values)
}
