//! Sessions: what a client sets for the statements that follow, and its temporary tables.
//!
//! A client that keeps cookies names its session by one. For a client that does not, such as ADBC's by default, or whose
//! session is over, the connection is the session, unless a proxy is in between, whose connections carry anybody's calls.
//!
//! Invariants: a session is its caller's only; one that no connection and no cookie holds is forgotten, tables included.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, header};
use parking_lot::Mutex;
use querent_catalog::{CATALOG_NAME, Principal};
use querent_engine::{Engine, ResultTypes, SessionVariables, TemporaryShare, TemporaryTables};
use uuid::Uuid;

use super::digests::caller_digest;
use super::endpoints::MAX_ENDPOINTS;
use super::listing::is_our_catalog;
use super::messages::{OptionErrorKind, OptionValue, SessionOptionValue};
use crate::connection::ConnectionScope;
use crate::query_limits::QueryLanguage;

/// The cookie that names a session, as Arrow's clients know it.
const COOKIE: &str = "arrow_flight_session_id";
/// How long a session that only a cookie holds outlives its last call.
const IDLE: Duration = Duration::from_secs(60 * 60);
/// From this number of sessions on, those that nobody holds any more are looked for.
const MANY_SESSIONS: usize = 10_000;
/// The most sessions of one caller that only cookies hold.
const MAX_SESSIONS_OF_ONE: usize = 100;
/// The bytes that the temporary tables of one session may hold.
const TEMPORARY_BYTES: usize = 1 << 30;

/// The sessions of a server.
pub(super) struct FlightSessions {
    engine: Engine,
    /// What their temporary tables may hold together.
    share: TemporaryShare,
    by_id: Mutex<HashMap<String, KnownSession>>,
}

/// A session that was made. It is held once its client has sent the cookie back; until then its connection holds it.
struct KnownSession {
    owner: Bytes,
    session: Weak<FlightSession>,
    held: Option<Arc<FlightSession>>,
    last_used: Instant,
}

/// One client's session.
pub(super) struct FlightSession {
    id: String,
    owner: Bytes,
    options: Mutex<SessionOptions>,
    tables: Arc<TemporaryTables>,
    /// What its statements set (`USE`, `SET`, `PREPARE`); the option `schema` is one of them.
    variables: Arc<SessionVariables>,
}

/// What a client set for its statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct SessionOptions {
    /// Where bare names resolve.
    pub(super) schema: Option<String>,
    /// The language of statements.
    pub(super) language: QueryLanguage,
    /// The types that its results may have.
    pub(super) result_types: ResultTypes,
    /// At how many endpoints it fetches the rows of a query, where it said so.
    pub(super) endpoints: Option<u32>,
}

impl KnownSession {
    fn new(session: &Arc<FlightSession>) -> Self {
        let owner = session.owner.clone();
        Self { owner, session: Arc::downgrade(session), held: None, last_used: Instant::now() }
    }
}

impl FlightSession {
    pub(super) fn options(&self) -> SessionOptions {
        SessionOptions { schema: self.variables.database(), ..self.options.lock().clone() }
    }

    pub(super) fn tables(&self) -> &Arc<TemporaryTables> {
        &self.tables
    }

    pub(super) fn variables(&self) -> &Arc<SessionVariables> {
        &self.variables
    }

    /// Replaces the options.
    pub(super) fn set_options(&self, options: SessionOptions) {
        self.variables.set_database(options.schema.clone());
        *self.options.lock() = options;
    }

    /// Returns the header by which the client can name the session from now on.
    pub(super) fn cookie(&self) -> String {
        format!("{COOKIE}={}; Path=/; HttpOnly; SameSite=Strict", self.id)
    }
}

/// Returns the header that makes a client forget its session.
pub(super) fn expired_cookie() -> String {
    format!("{COOKIE}=; Path=/; Max-Age=0")
}

impl FlightSessions {
    pub(super) fn new(engine: Engine) -> Self {
        Self { share: engine.temporary_share(), engine, by_id: Mutex::default() }
    }

    /// Returns the session of a call, if it has one: its cookie's, or its connection's.
    pub(super) fn find(
        &self,
        caller: &Principal,
        headers: &HeaderMap,
        connection: Option<&ConnectionScope>,
    ) -> Option<Arc<FlightSession>> {
        let owner = caller_digest(caller);
        if let Some(session) = cookie_of(headers).and_then(|id| self.named(id, &owner)) {
            return Some(session);
        }
        // A cookie may name a session that is over: its client sends it on, and sets things as before.
        let connection = connection.filter(|_| !is_proxied(headers))?;
        let session = connection.get_or_insert(&owner, || self.make(owner.clone()))?;
        self.touch(&session);
        Some(session)
    }

    /// Returns the session that a cookie names, which holds it from now on.
    fn named(&self, id: &str, owner: &Bytes) -> Option<Arc<FlightSession>> {
        let mut sessions = self.by_id.lock();
        let known = sessions.get_mut(id)?;
        let session = known.session.upgrade().filter(|session| session.owner == *owner)?;
        known.last_used = Instant::now();
        known.held = Some(Arc::clone(&session));
        Some(session)
    }

    /// Notes that a session is in use, so that a cookie that is given out names it.
    fn touch(&self, session: &Arc<FlightSession>) {
        let mut sessions = self.by_id.lock();
        match sessions.get_mut(&session.id) {
            Some(known) => known.last_used = Instant::now(),
            None => {
                sessions.insert(session.id.clone(), KnownSession::new(session));
            }
        }
    }

    /// Makes a session that a cookie will hold.
    pub(super) fn open(&self, caller: &Principal) -> Arc<FlightSession> {
        let session = self.make(caller_digest(caller));
        if let Some(known) = self.by_id.lock().get_mut(&session.id) {
            known.held = Some(Arc::clone(&session));
        }
        session
    }

    /// Ends a session; its tables go with the last statement that reads them.
    pub(super) fn close(&self, session: &Arc<FlightSession>, connection: Option<&ConnectionScope>) {
        self.by_id.lock().remove(&session.id);
        if let Some(connection) = connection {
            connection.forget(&session.owner, session);
        }
    }

    fn make(&self, owner: Bytes) -> Arc<FlightSession> {
        let session = Arc::new(FlightSession {
            id: Uuid::new_v4().to_string(),
            owner,
            options: Mutex::default(),
            variables: Arc::default(),
            tables: self.engine.shared_temporary_tables(TEMPORARY_BYTES, &self.share),
        });
        let mut sessions = self.by_id.lock();
        if sessions.len() >= MANY_SESSIONS {
            sessions.retain(|_, known| known.session.strong_count() > 0 && known.last_used.elapsed() < IDLE);
        }
        // Whoever opens many sessions loses the oldest of their own.
        let held = |known: &&KnownSession| known.owner == session.owner && known.held.is_some();
        let own = sessions.values().filter(held).count();
        if own >= MAX_SESSIONS_OF_ONE {
            let own = sessions.iter().filter(|(_, known)| held(known));
            if let Some(oldest) = own.min_by_key(|(_, known)| known.last_used).map(|(id, _)| id.clone()) {
                sessions.remove(&oldest);
            }
        }
        sessions.insert(session.id.clone(), KnownSession::new(&session));
        session
    }

    /// Forgets sessions that only a cookie holds and that were not used for long.
    pub(super) fn forget_idle(&self) {
        self.by_id.lock().retain(|_, known| known.last_used.elapsed() < IDLE && known.session.strong_count() > 0);
    }
}

fn cookie_of(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.filter(|(name, _)| *name == COOKIE).map(|(_, value)| value.trim_matches('"')).find(|value| !value.is_empty())
}

fn is_proxied(headers: &HeaderMap) -> bool {
    ["via", "forwarded", "x-forwarded-for"].iter().any(|name| headers.contains_key(*name))
}

impl SessionOptions {
    /// Sets an option. Errors: the kind that the protocol has for it. Whether a schema exists is the caller's to check.
    pub(super) fn set(&mut self, name: &str, value: SessionOptionValue) -> Result<(), OptionErrorKind> {
        match (name, value.option_value) {
            ("catalog", None) => {}
            ("catalog", Some(OptionValue::Text(catalog))) if catalog.is_empty() || is_our_catalog(&catalog) => {}
            ("schema", None) => self.schema = None,
            ("schema", Some(OptionValue::Text(schema))) => self.schema = Some(schema).filter(|name| !name.is_empty()),
            ("query_language", None) => self.language = QueryLanguage::Sql,
            ("query_language", Some(OptionValue::Text(language))) => {
                self.language = QueryLanguage::from_name(&language).ok_or(OptionErrorKind::InvalidValue)?;
            }
            ("wire_types", None) => self.result_types = ResultTypes::default(),
            ("wire_types", Some(OptionValue::Text(types))) => {
                self.result_types = types.parse().map_err(|_| OptionErrorKind::InvalidValue)?;
            }
            ("wire_types", Some(OptionValue::TextList(types))) => {
                self.result_types = types.values.join(",").parse().map_err(|_| OptionErrorKind::InvalidValue)?;
            }
            ("endpoints", None) => self.endpoints = None,
            ("endpoints", Some(OptionValue::Integer(count))) => self.endpoints = Some(endpoint_count(count)?),
            ("endpoints", Some(OptionValue::Text(count))) => {
                let count = count.trim().parse().map_err(|_| OptionErrorKind::InvalidValue)?;
                self.endpoints = Some(endpoint_count(count)?);
            }
            ("catalog" | "schema" | "query_language" | "wire_types" | "endpoints", Some(_)) => {
                return Err(OptionErrorKind::InvalidValue);
            }
            _ => return Err(OptionErrorKind::InvalidName),
        }
        Ok(())
    }

    /// Returns all options with their values. `database` is where bare names resolve if the client set no schema.
    pub(super) fn values(&self, database: &str) -> HashMap<String, SessionOptionValue> {
        let text = |text: &str| SessionOptionValue { option_value: Some(OptionValue::Text(text.to_owned())) };
        HashMap::from([
            ("catalog".to_owned(), text(CATALOG_NAME)),
            ("schema".to_owned(), text(self.schema.as_deref().unwrap_or(database))),
            ("query_language".to_owned(), text(self.language.as_str())),
            ("wire_types".to_owned(), text(&self.result_types.to_string())),
            (
                "endpoints".to_owned(),
                SessionOptionValue { option_value: Some(OptionValue::Integer(self.endpoints.unwrap_or(1).into())) },
            ),
        ])
    }
}

fn endpoint_count(count: i64) -> Result<u32, OptionErrorKind> {
    let count = u32::try_from(count).ok().filter(|count| (1..=MAX_ENDPOINTS).contains(count));
    count.ok_or(OptionErrorKind::InvalidValue)
}
