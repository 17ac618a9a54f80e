//! What planning a statement depended on, so that its plan can be kept: noted while it is planned, since a plan does not show it.

use datafusion::logical_expr::LogicalPlan;
use parking_lot::Mutex;
use querent_catalog::CatalogVersion;

/// By what the names of a statement were resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NamesOrigin {
    /// No name was looked up in the catalog.
    Nowhere,
    /// All of them by one version of the catalog.
    Catalog(CatalogVersion),
    /// By several versions, or by what has none: system tables.
    Various,
}

impl NamesOrigin {
    /// Returns the origin of the names of both.
    pub(super) fn and(self, other: Self) -> Self {
        match (self, other) {
            (one, Self::Nowhere) | (Self::Nowhere, one) => one,
            (one, other) if one == other => one,
            _ => Self::Various,
        }
    }
}

/// What is noted while one statement is planned.
#[derive(Debug)]
pub(crate) struct PlanNotes(Mutex<NotedPlan>);

#[derive(Debug)]
struct NotedPlan {
    origin: NamesOrigin,
    /// Whether it read more than the catalog: files, rows, what a model answered.
    has_read: bool,
    open: Option<LogicalPlan>,
}

impl Default for PlanNotes {
    fn default() -> Self {
        Self(Mutex::new(NotedPlan { origin: NamesOrigin::Nowhere, has_read: false, open: None }))
    }
}

impl PlanNotes {
    /// Notes by what names were resolved.
    pub(super) fn resolved(&self, origin: NamesOrigin) {
        let mut noted = self.0.lock();
        noted.origin = noted.origin.and(origin);
    }

    /// Notes that planning read something that may be different next time.
    pub(crate) fn has_read(&self) {
        self.0.lock().has_read = true;
    }

    /// Notes the plan of a query, before values are put into it and before it is analysed.
    pub(crate) fn planned(&self, open: &LogicalPlan) {
        self.0.lock().open = Some(open.clone());
    }

    /// Returns the plan and the version of the catalog that it depends on, `None` for the plan of a query that depends on nothing
    /// there; `None` where the plan is not to be kept.
    pub(crate) fn into_plan(self) -> Option<(LogicalPlan, Option<CatalogVersion>)> {
        let NotedPlan { origin, has_read, open } = self.0.into_inner();
        let open = open.filter(|_| !has_read)?;
        match origin {
            NamesOrigin::Nowhere => Some((open, None)),
            NamesOrigin::Catalog(version) => Some((open, Some(version))),
            NamesOrigin::Various => None,
        }
    }
}
