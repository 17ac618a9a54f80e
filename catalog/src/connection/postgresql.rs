//! PostgreSQL behind the connection. Statements are translated when they are prepared ([`super::dialect`]), which is once a
//! connection; the rows of a query are all read before the first is given out, so that other statements may run meanwhile.
//!
//! A client has a runtime of its own that runs while it is called: no task and no other thread stands between a statement
//! and its answer.

use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use bytes::BytesMut;
use postgres::config::{Host, SslMode};
use postgres::types::{Format, FromSql, IsNull, ToSql, Type};
use postgres::{Client, Config, NoTls, Row, Statement};

use super::Access;
use super::dialect;
use super::error::{DatabaseError, DatabaseResult};
use super::tls::{self, EncryptedConnections, PostgresTlsFiles};
use super::values::{StoreParameter, StoreValue};

/// How long a server may take to answer when a connection is opened.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Translated statements kept by each connection; they are forgotten all at once.
const PREPARED_STATEMENTS: usize = 1_000;
/// Held while a catalog is created or migrated: the first bytes of `querent`.
const CREATION_LOCK: i64 = 0x0071_7565_7265_6e74;
/// What holds for every connection. A transaction whose server has gone away must not keep others from writing.
const SETTINGS: &str = "SET lock_timeout = '10s'; SET idle_in_transaction_session_timeout = '60s'; SET TimeZone = 'UTC'; \
     SET jit = off; SET standard_conforming_strings = on";

/// A server and a database on it.
#[derive(Clone)]
pub(crate) struct PostgresServer {
    config: Config,
    /// `None` where connections are not to be encrypted.
    encryption: Option<EncryptedConnections>,
    shown: String,
}

impl PostgresServer {
    /// Reads a URL, `postgres://user:password@host:port/database?sslmode=...`. Errors say what is wrong, without the password.
    pub(crate) fn parse(url: &str) -> Result<Self, String> {
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err("it begins with postgres://".to_owned());
        }
        let (url, files) = without_tls_files(url);
        let mut config: Config = url.parse().map_err(|error: postgres::Error| message(&error))?;
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
        Ok(Self { config, encryption, shown })
    }

    /// The server and the database, for people.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
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
    /// Taken when the connection is dropped.
    client: RefCell<Option<Client>>,
    prepared: RefCell<HashMap<String, Statement>>,
}

impl PostgresConnection {
    pub(super) fn open(server: &PostgresServer) -> DatabaseResult<Self> {
        let unreachable = |error: postgres::Error| DatabaseError::Unreachable {
            server: server.shown.clone(),
            reason: format!("{}{}", message(&error), tls::advice(&error)),
        };
        let connected = match &server.encryption {
            Some(encryption) => server.config.connect(encryption.clone()),
            None => server.config.connect(NoTls),
        };
        let mut client = connected.map_err(unreachable)?;
        client.batch_execute(SETTINGS).map_err(unreachable)?;
        Ok(Self { client: RefCell::new(Some(client)), prepared: RefCell::new(HashMap::new()) })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.borrow().as_ref().is_none_or(Client::is_closed)
    }

    pub(super) fn begin(&self, access: Access) -> DatabaseResult<()> {
        match access {
            Access::Read => self.execute_batch("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            // The lock comes before the snapshot: what is read is what the last writer left. DuckDB writes this table when it
            // commits, so that its commits and ours come one after the other.
            Access::Write => self.execute_batch(
                "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE ducklake_snapshot IN SHARE ROW EXCLUSIVE MODE",
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

    pub(super) fn execute_batch(&self, sql: &str) -> DatabaseResult<()> {
        self.with(|client| client.batch_execute(sql))
    }

    pub(super) fn has_table(&self, name: &str) -> DatabaseResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema() AND tablename = $1)";
        let row = self.with(|client| client.query_one(sql, &[&name]))?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    pub(super) fn is_empty(&self) -> DatabaseResult<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = current_schema())";
        let row = self.with(|client| client.query_one(sql, &[]))?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    /// The newest number of a table's identity column.
    pub(super) fn newest_number(&self, table: &str, column: &str) -> DatabaseResult<i64> {
        let sql = "SELECT pg_sequence_last_value(pg_get_serial_sequence($1, $2)::regclass)";
        let row = self.with(|client| client.query_one(sql, &[&table, &column]))?;
        Ok(row.try_get::<_, Option<i64>>(0)?.unwrap_or(0))
    }

    /// The server's clock at this moment, not at the begin of the transaction.
    pub(super) fn now_micros(&self) -> DatabaseResult<i64> {
        let sql = "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS BIGINT)";
        let row = self.with(|client| client.query_one(sql, &[]))?;
        row.try_get(0).map_err(DatabaseError::from)
    }

    pub(super) fn prepare(&self, sql: &str, is_kept: bool) -> DatabaseResult<PostgresStatement<'_>> {
        if let Some(statement) = self.prepared.borrow().get(sql) {
            return Ok(PostgresStatement { connection: self, statement: statement.clone() });
        }
        let translated = dialect::statement(sql);
        let statement = self.with(|client| client.prepare(&translated))?;
        if is_kept {
            let mut prepared = self.prepared.borrow_mut();
            if prepared.len() >= PREPARED_STATEMENTS {
                prepared.clear();
            }
            prepared.insert(sql.to_owned(), statement.clone());
        }
        Ok(PostgresStatement { connection: self, statement })
    }

    fn with<T>(&self, f: impl FnOnce(&mut Client) -> Result<T, postgres::Error>) -> DatabaseResult<T> {
        match self.client.borrow_mut().as_mut() {
            Some(client) => Ok(f(client)?),
            // Only `drop` takes it.
            None => Err(DatabaseError::NoRow),
        }
    }
}

impl Drop for PostgresConnection {
    fn drop(&mut self) {
        // A client ends its runtime, which a thread of another runtime must not do.
        if let Some(client) = self.client.borrow_mut().take() {
            std::thread::spawn(move || drop(client));
        }
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
        let changed = self.connection.with(|client| client.execute(&self.statement, &references(&bound)))?;
        Ok(usize::try_from(changed).unwrap_or(usize::MAX))
    }

    pub(super) fn query(&mut self, parameters: &[&dyn StoreParameter]) -> DatabaseResult<PostgresRows> {
        let bound = bound(parameters);
        let rows = self.connection.with(|client| client.query(&self.statement, &references(&bound)))?;
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
pub(super) fn message(error: &postgres::Error) -> String {
    if let Some(told) = error.as_db_error() {
        return format!("{} ({})", told.message(), told.code().code());
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
        for bad in ["mysql://x", "postgres://h/d?sslmode=maybe", "host=h password=secret"] {
            assert!(!PostgresServer::parse(bad).err().unwrap().contains("secret"), "{bad}");
        }
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
