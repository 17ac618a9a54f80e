//! PostgreSQL behind the connection. Statements are translated when they are prepared ([`super::dialect`]), which is once a
//! connection; the rows of a query are all read before the first is given out, so that other statements may run meanwhile.
//!
//! Every statement has a time to be answered in ([`super::postgres_link`]): longer than any takes, short where it waits for
//! nobody.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use futures::FutureExt;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::types::{Format, FromSql, IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use super::Access;
use super::dialect;
use super::error::{DatabaseError, DatabaseResult};
use super::postgres_link::{LinkError, MessagePump, PostgresLink, ServerSilence};
use super::tls::{self, EncryptedConnections, PostgresTlsFiles};
use super::values::{StoreParameter, StoreValue};

/// How long a server may take to answer when a connection is opened, and for statements that wait for nobody.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const QUICK_ANSWER: Duration = Duration::from_secs(5);
/// The same for a transaction that waits for those who write: somewhat longer than the server lets it wait.
const LOCK_ANSWER: Duration = Duration::from_secs(15);
/// The same for any other statement, and for those that make a catalog's tables and fill them.
const ANSWER: Duration = Duration::from_secs(60);
const CREATION_ANSWER: Duration = Duration::from_secs(3_600);
/// Translated statements kept by each connection; they are forgotten all at once.
const PREPARED_STATEMENTS: usize = 1_000;
/// Held while a catalog is created or migrated: the first bytes of `querent`.
const CREATION_LOCK: i64 = 0x0071_7565_7265_6e74;
/// What holds for every connection, whatever holds for others of the database or its users. How long a statement may take is
/// counted here.
const SETTINGS: &str = "SET statement_timeout = 0; SET lock_timeout = '10s'; \
     SET idle_in_transaction_session_timeout = '60s'; SET TimeZone = 'UTC'; SET jit = off; \
     SET standard_conforming_strings = on; SET client_min_messages = warning";

/// A server and a database on it.
#[derive(Clone)]
pub(crate) struct PostgresServer {
    config: Config,
    /// `None` where connections are not to be encrypted.
    encryption: Option<EncryptedConnections>,
    shown: String,
    silence: ServerSilence,
}

impl PostgresServer {
    /// Reads a URL, `postgres://user:password@host:port/database?sslmode=...`. Errors say what is wrong, without the password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        let (mut config, files) = read_url(url)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT_TIMEOUT);
        }
        if config.get_application_name().is_none() {
            config.application_name("querent");
        }
        // Through a socket of this machine nothing is encrypted, whatever is said.
        if config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_))) {
            config.ssl_mode(SslMode::Disable);
        }
        let encryption = match config.get_ssl_mode() {
            SslMode::Disable => None,
            _ => Some(EncryptedConnections::new(&files)?),
        };
        let shown = shown(&config);
        Ok(Self { config, encryption, shown, silence: ServerSilence::default() })
    }

    /// The server and the database, for people.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    async fn connect(&self) -> Result<(Client, MessagePump), tokio_postgres::Error> {
        match &self.encryption {
            Some(encryption) => {
                let (client, messages) = self.config.connect(encryption.clone()).await?;
                Ok((client, messages.boxed()))
            }
            None => {
                let (client, messages) = self.config.connect(NoTls).await?;
                Ok((client, messages.boxed()))
            }
        }
    }

    /// How long a connection may take, to whichever of its hosts.
    fn connect_patience(&self) -> Duration {
        let hosts = u32::try_from(self.config.get_hosts().len()).unwrap_or(1).max(1);
        self.config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT) * hosts
    }
}

/// Returns what is wrong with the URL of a catalog, without its password; the files that it names are not looked at.
pub fn catalog_url_fault(url: &str) -> Option<String> {
    read_url(url).err()
}

fn read_url(url: &str) -> Result<(Config, PostgresTlsFiles), String> {
    const FORM: &str = "write postgres://user:password@host/database";
    if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
        return Err(format!("it is no URL of PostgreSQL; {FORM}"));
    }
    let (url, files) = without_tls_files(url);
    let config: Config = url.parse().map_err(|error: tokio_postgres::Error| message(&error))?;
    if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
        return Err(format!("it names no server; {FORM}"));
    }
    Ok((config, files))
}

/// Takes the files of TLS out of a URL, and the modes that only check what is checked anyway.
fn without_tls_files(url: &str) -> (String, PostgresTlsFiles) {
    let mut files = PostgresTlsFiles::default();
    let Some((server, options)) = url.split_once('?') else { return (url.to_owned(), files) };
    let mut kept = Vec::new();
    for option in options.split('&') {
        match option.split_once('=') {
            // As libpq has it: the system's, and nothing less than a checked connection.
            Some(("sslrootcert", "system")) => kept.push("sslmode=require"),
            Some(("sslrootcert", file)) => files.authorities = Some(PathBuf::from(decoded(file))),
            Some(("sslcert", file)) => files.certificate = Some(PathBuf::from(decoded(file))),
            Some(("sslkey", file)) => files.key = Some(PathBuf::from(decoded(file))),
            Some(("sslmode", "verify-full" | "verify-ca")) => kept.push("sslmode=require"),
            _ => kept.push(option),
        }
    }
    (format!("{server}?{}", kept.join("&")), files)
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

fn shown(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or_default();
    format!("postgres://{host}:{port}/{database}")
}

/// A connection.
pub(crate) struct PostgresConnection {
    server: String,
    silence: ServerSilence,
    /// Taken when the connection is dropped, and when it was not answered in time.
    link: RefCell<Option<PostgresLink>>,
    prepared: RefCell<HashMap<String, Statement>>,
    /// How long a statement may take.
    patience: Cell<Duration>,
}

impl PostgresConnection {
    pub(super) fn open(server: &PostgresServer) -> DatabaseResult<Self> {
        server.silence.check(&server.shown)?;
        let patience = server.connect_patience();
        let unreachable = |reason| DatabaseError::Unreachable { server: server.shown.clone(), reason };
        let link = match PostgresLink::open(patience, server.connect()) {
            Some(Ok(link)) => link,
            Some(Err(LinkError::Refused(error))) => {
                return Err(unreachable(format!("{}{}", message(&error), tls::advice(&error))));
            }
            Some(Err(LinkError::Runtime(error))) => return Err(unreachable(error.to_string())),
            None => return Err(server.silence.note(&server.shown, patience)),
        };
        let opened = Self {
            server: server.shown.clone(),
            silence: server.silence.clone(),
            link: RefCell::new(Some(link)),
            prepared: RefCell::new(HashMap::new()),
            patience: Cell::new(QUICK_ANSWER),
        };
        opened.execute_batch(SETTINGS).map_err(|error| match error {
            error @ DatabaseError::Unreachable { .. } => error,
            error => unreachable(error.to_string()),
        })?;
        opened.patience.set(ANSWER);
        server.silence.end();
        Ok(opened)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.link.borrow().as_ref().is_none_or(PostgresLink::is_closed)
    }

    pub(super) fn begin(&self, access: Access) -> DatabaseResult<()> {
        self.silence.check(&self.server)?;
        self.patience.set(match access {
            Access::Read | Access::Own => QUICK_ANSWER,
            Access::Write => LOCK_ANSWER,
            Access::Create => CREATION_ANSWER,
        });
        let begun = self.begin_locked(access);
        if begun.is_err() && !self.is_closed() {
            // It has begun where only its lock was not to be had, and would keep the connection from beginning another.
            if let Err(error) = self.execute_batch("ROLLBACK") {
                tracing::warn!(%error, "a transaction of the catalog was not ended");
                self.abandon();
            }
        }
        self.patience.set(if access == Access::Create { CREATION_ANSWER } else { ANSWER });
        begun
    }

    fn begin_locked(&self, access: Access) -> DatabaseResult<()> {
        match access {
            Access::Read => self.execute_batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            // The lock comes before the snapshot: what is read is what the last writer left. DuckDB writes this table when it
            // commits, so that its commits and ours come one after the other.
            // A process that stands still meanwhile would keep all others from writing: the server ends its transaction before
            // they give up, and none of it is there when it goes on.
            Access::Write => self.execute_batch(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL idle_in_transaction_session_timeout = '5s'; \
                 LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE",
            ),
            Access::Own => self.execute_batch("BEGIN"),
            Access::Create => {
                self.execute_batch(&format!("BEGIN; SELECT pg_advisory_xact_lock({CREATION_LOCK})"))?;
                match self.has_table("ducklake_snapshot")? {
                    true => self.execute_batch("LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE"),
                    false => Ok(()),
                }
            }
        }
    }

    /// Runs statements that wait for nobody, and so are answered soon or not at all.
    pub(super) fn quickly<T>(&self, work: impl FnOnce() -> T) -> T {
        let before = self.patience.replace(QUICK_ANSWER);
        let done = work();
        self.patience.set(before);
        done
    }

    pub(super) fn execute_batch(&self, sql: &str) -> DatabaseResult<()> {
        self.with(async |client| client.batch_execute(sql).await)
    }

    pub(super) fn has_table(&self, name: &str) -> DatabaseResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)";
        let row = self.with(async |client| client.query_one(sql, &[&name]).await)?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    pub(super) fn is_empty(&self) -> DatabaseResult<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())";
        let row = self.with(async |client| client.query_one(sql, &[]).await)?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    /// What texts are encoded in.
    pub(super) fn encoding(&self) -> DatabaseResult<String> {
        let row = self.with(async |client| client.query_one("SHOW server_encoding", &[]).await)?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    /// The newest number of a table's identity column.
    pub(super) fn newest_number(&self, table: &str, column: &str) -> DatabaseResult<i64> {
        let sql = "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass)";
        let row = self.with(async |client| client.query_one(sql, &[&table, &column]).await)?;
        Ok(row.try_get::<_, Option<i64>>(0)?.unwrap_or(0))
    }

    /// The server's clock at this moment, not at the begin of the transaction.
    pub(super) fn now_micros(&self) -> DatabaseResult<i64> {
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let row = self.with(async |client| client.query_one(sql, &[]).await)?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    pub(super) fn prepare(&self, sql: &str, is_kept: bool) -> DatabaseResult<PostgresStatement<'_>> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(PostgresStatement { connection: self, statement: statement.clone() });
        }
        let translated = dialect::statement(sql);
        let statement = self.with(async |client| client.prepare(&translated).await)?;
        if is_kept {
            let mut prepared = self.prepared.borrow_mut();
            if prepared.len() >= PREPARED_STATEMENTS {
                prepared.clear();
            }
            prepared.insert(sql.to_owned(), statement.clone());
        }
        Ok(PostgresStatement { connection: self, statement })
    }

    fn with<T>(&self, call: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>) -> DatabaseResult<T> {
        let patience = self.patience.get();
        let answer = match self.link.borrow_mut().as_mut() {
            Some(link) => link.call(patience, call),
            None => {
                let reason = "the connection was given up".to_owned();
                return Err(DatabaseError::Unreachable { server: self.server.clone(), reason });
            }
        };
        match answer {
            Some(answer) => Ok(answer?),
            None => {
                self.abandon();
                Err(self.silence.note(&self.server, patience))
            }
        }
    }

    /// Ends the connection.
    fn abandon(&self) {
        if let Some(link) = self.link.borrow_mut().take() {
            link.close();
        }
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.abandon();
    }
}

/// A prepared statement.
pub(crate) struct PostgresStatement<'c> {
    connection: &'c PostgresConnection,
    statement: Statement,
}

impl PostgresStatement<'_> {
    pub(super) fn execute(&mut self, parameters: &[&dyn StoreParameter]) -> DatabaseResult<usize> {
        let bound = bound(parameters);
        let values = references(&bound);
        let changed = self.connection.with(async |client| client.execute(&self.statement, &values).await)?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    pub(super) fn query(&mut self, parameters: &[&dyn StoreParameter]) -> DatabaseResult<PostgresRows> {
        let bound = bound(parameters);
        let values = references(&bound);
        let rows = self.connection.with(async |client| client.query(&self.statement, &values).await)?;
        Ok(PostgresRows { rows: rows.into_iter(), current: None })
    }
}

/// The rows of a query.
pub(crate) struct PostgresRows {
    rows: std::vec::IntoIter<Row>,
    current: Option<Row>,
}

impl PostgresRows {
    pub(super) fn next(&mut self) -> Option<&Row> {
        self.current = self.rows.next();
        self.current.as_ref()
    }
}

/// The value of a row's column.
pub(super) fn value(row: &Row, column: usize) -> DatabaseResult<StoreValue<'_>> {
    Ok(row.try_get(column)?)
}

impl<'a> FromSql<'a> for StoreValue<'a> {
    fn from_sql(ty: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(match *ty {
            Type::BOOL => StoreValue::Integer(i64::from(bool::from_sql(ty, raw)?)),
            Type::INT2 => StoreValue::Integer(i64::from(i16::from_sql(ty, raw)?)),
            Type::INT4 => StoreValue::Integer(i64::from(i32::from_sql(ty, raw)?)),
            Type::INT8 => StoreValue::Integer(i64::from_sql(ty, raw)?),
            Type::FLOAT4 => StoreValue::Real(f64::from(f32::from_sql(ty, raw)?)),
            Type::FLOAT8 => StoreValue::Real(f64::from_sql(ty, raw)?),
            Type::TEXT | Type::VARCHAR | Type::NAME | Type::BPCHAR | Type::UNKNOWN => StoreValue::Text(raw),
            Type::BYTEA => StoreValue::Blob(raw),
            _ => return Err(format!("a value of type {ty} is not read; cast it to text").into()),
        })
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(StoreValue::Null)
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// A parameter, sent as text, which the server reads as whatever type it is to have: 1 is a number, and true.
#[derive(Debug)]
struct PostgresParameter<'p>(StoreValue<'p>);

impl ToSql for PostgresParameter<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self.0 {
            StoreValue::Null => return Ok(IsNull::Yes),
            StoreValue::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
            StoreValue::Real(number) => out.extend_from_slice(number.to_string().as_bytes()),
            StoreValue::Text(bytes) | StoreValue::Blob(bytes) => out.extend_from_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        match self.0 {
            StoreValue::Blob(_) => Format::Binary,
            _ => Format::Text,
        }
    }

    fn to_sql_checked(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.to_sql(ty, out)
    }
}

fn bound<'p>(parameters: &[&'p dyn StoreParameter]) -> Vec<PostgresParameter<'p>> {
    let bind = |parameter: &&'p dyn StoreParameter| {
        let parameter: &'p dyn StoreParameter = *parameter;
        PostgresParameter(parameter.value())
    };
    parameters.iter().map(bind).collect()
}

fn references<'p>(bound: &'p [PostgresParameter<'p>]) -> Vec<&'p (dyn ToSql + Sync)> {
    bound.iter().map(|parameter| parameter as &(dyn ToSql + Sync)).collect()
}

/// What an error says, with what the server said.
pub(super) fn message(error: &tokio_postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        let code = told.code().code();
        let advice = match code {
            // Statements that were prepared on one connection are run on another one.
            "26000" | "42P05" => "; a pooler between Querent and PostgreSQL has to pool by session",
            _ => "",
        };
        return format!("{} ({code}){advice}", told.message());
    }
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        // Some errors say their cause themselves.
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        let server = PostgresServer::parse("postgres://me:secret@db.example:6432/lake?sslmode=disable").unwrap();
        assert_eq!(server.shown(), "postgres://db.example:6432/lake");
        assert!(server.encryption.is_none());
        let local = PostgresServer::parse("postgres://me@%2Frun%2Fpg/lake").unwrap();
        assert_eq!(local.shown(), "postgres:///run/pg:5432/lake");
        for bad in [
            "mysql://x",
            "postgres://me:secret@h/d?sslmode=maybe",
            "postgres://me:secret@h/d?unknown=1",
            "postgres://me:secret@h:99999/d",
            "postgres://",
            "host=h password=secret",
        ] {
            assert!(!PostgresServer::parse(bad).err().unwrap().contains("secret"), "{bad}");
            assert!(!catalog_url_fault(bad).unwrap().contains("secret"), "{bad}");
        }
        // Whether its files are there is seen when it is used.
        assert_eq!(catalog_url_fault("postgres://h/d?sslmode=require&sslrootcert=/nowhere"), None);
    }

    #[test]
    fn the_files_of_tls_are_taken_out() {
        let (url, files) = without_tls_files(
            "postgres://h/d?sslmode=verify-full&sslrootcert=%2Fa%20b.pem&options=x&sslcert=c.pem&sslkey=k.pem",
        );
        assert_eq!(url, "postgres://h/d?sslmode=require&options=x");
        assert_eq!(files.authorities.as_deref(), Some(std::path::Path::new("/a b.pem")));
        assert_eq!(files.certificate.zip(files.key), Some(("c.pem".into(), "k.pem".into())));
        let (url, files) = without_tls_files("postgres://h/d?sslrootcert=system");
        assert_eq!((url.as_str(), files), ("postgres://h/d?sslmode=require", PostgresTlsFiles::default()));
        let half = PostgresServer::parse("postgres://h/d?sslmode=require&sslcert=c.pem");
        assert!(half.err().unwrap().contains("go together"));
    }

    #[test]
    fn nothing_is_encrypted_through_a_socket() {
        let local = PostgresServer::parse("postgres://me@%2Frun%2Fpg/lake?sslmode=require").unwrap();
        assert!(local.encryption.is_none());
        assert_eq!(local.config.get_ssl_mode(), SslMode::Disable);
    }
}
