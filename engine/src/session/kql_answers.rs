//! The results of one KQL query within the limits that it asks for: the rows of its only one, or all, one after the
//! other: a query may have several statements that are expressions, a `fork` or a `facet`. It is planned once; each
//! result is executed when it is asked for, all within one clock and one memory.

use std::collections::VecDeque;
use std::sync::Arc;

use futures::FutureExt;
use querent_kql::{AskedLimits, KqlColumn, KqlParameters, PlannedKql, Rendering};

use super::Session;
use super::kql_host::SessionHost;
use crate::error::{EngineError, Result};
use crate::limits::{AbandonOnDrop, Interrupt, PlanningMemory, QueryClock};
use crate::policy::AuthorizedPlan;
use crate::slots::{CallerSlots, QuerySlot};
use crate::stream::QueryStream;
use crate::telemetry;

/// What a result of a KQL query looks like, which is known before it is executed.
#[derive(Debug, Clone)]
pub struct KqlResult {
    /// The columns in order.
    pub columns: Vec<KqlColumn>,
    /// What `render` said.
    pub rendering: Option<Rendering>,
}

/// A planned KQL query, whose results [`KqlAnswers::next_rows`] executes in order. Dropping it interrupts what they
/// share.
pub struct KqlAnswers {
    session: Session,
    results: Vec<KqlResult>,
    plans: VecDeque<AuthorizedPlan>,
    memory: Arc<PlanningMemory>,
    clock: QueryClock,
    /// The query's text, which is shown while a result is executed.
    text: String,
    slots: Option<CallerSlots>,
    slot: Option<QuerySlot>,
    _abandoned: AbandonOnDrop,
}

impl Session {
    /// Plans, authorises and executes one KQL query of one result. Times have microseconds, decimals at most 18 digits
    /// behind the point. The wall clock starts here. Errors: the codes that begin with `kql_`, and those of
    /// [`Session::sql`]; of the rows `kql_too_large` where they are more than the query's `set truncationmaxrecords` or
    /// `set truncationmaxsize`.
    pub async fn kql(&self, text: &str) -> Result<QueryStream> {
        let asked = querent_kql::asked_limits(text);
        let within = self.within_time(&asked);
        let (text, label) = (text.to_owned(), self.label(text));
        let work = move |session: Session, interrupt: Interrupt| async move {
            let text = session.answered_command(&text, &interrupt).await?;
            let state = session.engine.planning_state();
            let host = SessionHost::new(&session, &state, &interrupt).failing_beyond(asked);
            let plan = telemetry::traced_plan("kql", async {
                let planned = querent_kql::plan(&host, &text, &KqlParameters::new()).await?;
                host.authorized(planned.in_arrow_types()?)
            })
            .await?;
            let started = session.begin_query_within(plan, Arc::new(host.into_memory()), &interrupt).await?;
            Ok(started.failing_beyond(asked))
        };
        let clock = QueryClock::start(within.in_force().limits.wall_clock);
        within.spawn_within(label, clock, work).await
    }

    /// Plans and authorises one KQL query with all its results, whose rows have KQL's own types; `parameters` are the
    /// values of its `declare query_parameters`. The wall clock starts here. Errors: as [`Session::kql`].
    pub async fn kql_answers(&self, text: &str, parameters: KqlParameters) -> Result<KqlAnswers> {
        let (session, shown) = (self.within_asked(text).in_force(), text.to_owned());
        let text = shown.clone();
        let within = session.clone();
        let clock = QueryClock::start(session.limits.wall_clock);
        let interrupt = Interrupt::new(clock.clone());
        let abandoned = interrupt.abandon_on_drop();
        let watch = interrupt.clone();
        // Boxed, as the work of other statements is.
        let work = async move {
            let text = session.answered_command(&text, &interrupt).await?;
            let state = session.engine.planning_state();
            let host = SessionHost::new(&session, &state, &interrupt);
            let mut results = Vec::new();
            let mut plans = VecDeque::new();
            for PlannedKql { plan, columns, rendering } in querent_kql::plan_all(&host, &text, &parameters).await? {
                plans.push_back(host.authorized(plan)?);
                results.push(KqlResult { columns, rendering });
            }
            Ok::<_, EngineError>((results, plans, host.into_memory()))
        };
        let work = telemetry::traced_plan("kql", work.boxed());
        let (lane, usage) = within.lane_of(within.label("(planning)"), &watch)?;
        let planned = clock.limit_time(lane.run(usage.scope(work))).boxed().await?;
        let (results, plans, memory) = planned;
        Ok(KqlAnswers {
            session: within,
            results,
            plans,
            memory: Arc::new(memory),
            clock,
            text: shown,
            slots: None,
            slot: None,
            _abandoned: abandoned,
        })
    }
}

impl Session {
    /// Returns the session within the limits that a KQL query asks for, as far as they are within its own.
    fn within_asked(&self, kql: &str) -> Session {
        let asked = querent_kql::asked_limits(kql);
        let mut session = self.within_time(&asked);
        session.limits.max_rows = session.limits.max_rows.into_iter().chain(asked.rows).min();
        session.limits.max_bytes = session.limits.max_bytes.into_iter().chain(asked.bytes).min();
        session
    }

    /// Returns the session of a KQL query, within the time that it asks for, if that is shorter.
    pub(super) fn within_time(&self, asked: &AskedLimits) -> Session {
        let mut session = self.clone();
        session.keeps_written_order = true;
        session.limits.wall_clock = asked.time.map_or(self.limits.wall_clock, |time| self.limits.wall_clock.min(time));
        session
    }
}

impl KqlAnswers {
    /// Returns what the query's results look like, at least one.
    pub fn results(&self) -> &[KqlResult] {
        &self.results
    }

    /// Returns the answers of a query that runs in a slot: each result holds one while it works.
    pub fn holding(mut self, slot: Option<QuerySlot>) -> Self {
        self.slots = slot.as_ref().map(|slot| slot.slots().clone());
        self.slot = slot;
        self
    }

    /// Executes the next result; `None` after the last. Rows that are not read any more are lost. Errors: as
    /// [`Session::execute`].
    pub async fn next_rows(&mut self) -> Result<Option<QueryStream>> {
        let Some(plan) = self.plans.pop_front() else { return Ok(None) };
        let slot = match (self.slot.take(), &self.slots) {
            (Some(slot), _) => Some(slot),
            // While it waits for others the query's time stands still.
            (None, Some(slots)) => {
                self.clock.stop();
                Some(slots.resume().await)
            }
            (None, None) => None,
        };
        self.clock.resume();
        let memory = Arc::clone(&self.memory);
        let begin = move |session: Session, interrupt: Interrupt| async move {
            session.begin_query_within(plan, memory, &interrupt).await
        };
        let label = self.session.label(&self.text);
        Ok(Some(self.session.spawn_within(label, self.clock.clone(), begin).await?.holding(slot)))
    }
}
