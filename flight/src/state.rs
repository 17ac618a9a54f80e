//! The parts of a running server, which every door shares.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use metrics_exporter_prometheus::PrometheusHandle;
use querent_agent::Agent;
use querent_catalog::Principal;
use querent_catalog::index::embed::Embedder;
use querent_engine::{Engine, Limits, Session};

use crate::admission::Admission;
use crate::auth::Authenticator;
use crate::cluster::Forwarding;
use crate::config::{EffectiveSetting, Settings};
use crate::conversation_room::ConversationRoom;
use crate::idempotent_answers::IdempotentAnswers;
use crate::shutdown::Shutdown;
use crate::table_profiles::KeptTableProfiles;

/// The parts of a running server. Cheap to clone.
#[derive(Clone)]
pub struct AppState {
    /// The engine, and the catalog behind it.
    pub engine: Engine,
    /// The agent.
    pub agent: Agent,
    /// Maps tokens to principals.
    pub auth: Arc<Authenticator>,
    /// Bounds the queries running at once.
    pub admission: Admission,
    /// The settings in force.
    pub settings: Arc<Settings>,
    /// Whether the server is stopping, and the tasks that it waits for.
    pub shutdown: Shutdown,
    /// When the server started.
    pub started_at: DateTime<Utc>,
    /// Where vectors come from, for those who ask for some.
    pub(crate) embedder: Option<Arc<dyn Embedder>>,
    /// What the conversations of callers take.
    pub(crate) conversation_room: ConversationRoom,
    /// Answers to requests that may be sent again.
    pub(crate) idempotent_answers: IdempotentAnswers,
    /// Each setting as it may be shown, and where it came from.
    pub(crate) effective_settings: Arc<[EffectiveSetting]>,
    /// Profiles of tables that were asked for lately.
    pub(crate) table_profiles: KeptTableProfiles,
    pub(crate) metrics: PrometheusHandle,
    /// The way to the other servers of a shared catalog.
    pub(crate) forwarding: Forwarding,
    /// What signs the tickets of Flight SQL.
    pub(crate) ticket_key: Arc<[u8]>,
}

impl AppState {
    /// Opens a session for a caller, with the lower of the server's limits and those that the caller asks for.
    pub fn session(&self, principal: Principal, limits: Limits) -> Session {
        let most = self.settings.limits();
        let limits = Limits {
            wall_clock: limits.wall_clock.min(most.wall_clock),
            memory_bytes: limits.memory_bytes.min(most.memory_bytes),
            ..limits
        };
        self.engine.session(principal, limits).through("http")
    }
}
