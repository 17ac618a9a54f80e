//! Questions over data of our own: twenty about flights, time series and logs to be asked in KQL, and questions that the
//! data cannot answer, where the right answer is to say so. They stand in `benches/questions/`, each with its gold query.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt;
use querent_catalog::{DEFAULT_DATABASE, IfExists, NoProgress, Principal, TableName};
use querent_engine::{Engine, ImportRequest, Limits};
use serde::Deserialize;

use super::fill::open_marked;
use super::judge::{RowSet, rows_of_stream};
use crate::Failure;
use crate::harness::cache_folder;

/// What the lake is made by; a change makes it again.
const VERSION: &str = "1";
const TABLES: [&str; 5] = ["airlines", "airports", "flights", "planes", "weather"];
/// Five thousand lines over two days, the same whenever they are made.
const LOGS: &str = "CREATE TABLE otel_logs AS SELECT \
    to_timestamp(1777593600 + i * 34) AS timestamp, \
    CASE WHEN i % 7 = 0 THEN 17 ELSE 9 END AS severity_number, \
    CASE WHEN i % 7 = 0 THEN 'ERROR' WHEN i % 11 = 0 THEN 'WARN' ELSE 'INFO' END AS severity_text, \
    CASE WHEN i % 7 = 0 AND i % 3 = 0 THEN 'request failed: timeout' WHEN i % 7 = 0 THEN 'request failed: refused' \
         ELSE 'request served' END AS body, \
    CASE WHEN i % 13 < 5 THEN 'web' WHEN i % 13 < 8 THEN 'payments' WHEN i % 13 < 11 THEN 'auth' ELSE 'search' END \
         AS service_name \
    FROM (SELECT value AS i FROM generate_series(0, 4999) AS s(value))";

/// A set of questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QuestionSet {
    Flights,
    Logs,
    Unanswerable,
    UnanswerableSpider,
}

impl QuestionSet {
    pub(super) const ALL: [Self; 4] =
        [QuestionSet::Flights, QuestionSet::Logs, QuestionSet::Unanswerable, QuestionSet::UnanswerableSpider];

    /// Whether it is about Spider's databases.
    pub(super) fn is_over_spider(self) -> bool {
        self == QuestionSet::UnanswerableSpider
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            QuestionSet::Flights => "flights",
            QuestionSet::Logs => "logs",
            QuestionSet::Unanswerable => "unanswerable",
            QuestionSet::UnanswerableSpider => "unanswerable-spider",
        }
    }

    /// Reads its questions.
    pub(super) async fn questions(self) -> Result<Vec<OwnQuestion>, Failure> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("questions/{}.ndjson", self.name()));
        let text = tokio::fs::read_to_string(&path).await.map_err(|error| format!("{}: {error}", path.display()))?;
        text.lines().filter(|line| !line.trim().is_empty()).map(|line| Ok(serde_json::from_str(line)?)).collect()
    }
}

/// A question, and the query that answers it; neither: there is no answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OwnQuestion {
    pub(super) question: String,
    #[serde(default)]
    pub(super) sql: Option<String>,
    #[serde(default)]
    pub(super) kql: Option<String>,
    /// The database of Spider that it is about; it is not named to the agent.
    #[serde(default)]
    pub(super) database: Option<String>,
}

impl OwnQuestion {
    /// Returns the gold rows; none for a question without an answer.
    pub(super) async fn gold_rows(&self, engine: &Engine) -> Result<Option<RowSet>, Failure> {
        let session = engine.session(Principal::local_admin(), Limits::default());
        let stream = match (&self.sql, &self.kql) {
            (Some(sql), _) => session.sql(sql).await,
            (None, Some(kql)) => session.kql(kql).await,
            (None, None) => return Ok(None),
        };
        let stream = stream.map_err(|error| format!("{}: {error}", self.question))?;
        Ok(Some(rows_of_stream(stream).await.map_err(|code| format!("{}: {code}", self.question))?))
    }
}

/// Whether an answer says that the data does not hold what was asked.
pub(super) fn says_unanswerable(text: &str) -> bool {
    const WORDS: [&str; 22] = [
        "cannot",
        "can't",
        "can not",
        "could not",
        "couldn't",
        "unable",
        "not available",
        "not possible",
        "no table",
        "no column",
        "no data",
        "no information",
        "does not contain",
        "doesn't contain",
        "do not contain",
        "does not have",
        "not have information",
        "not in the data",
        "there is no",
        "there are no",
        "not include",
        "i am not sure",
    ];
    let text = text.to_lowercase().replace('’', "'");
    WORDS.iter().any(|word| text.contains(word))
}

/// Opens the lake of these questions; it is made where it is not there yet. Errors: the flights are not there.
pub(super) async fn lake(folder: &Path) -> Result<Engine, Failure> {
    let (path, mark) = (folder.join(format!("own-{VERSION}")), folder.join(format!("own-{VERSION}.done")));
    let (engine, is_filled) = open_marked(&path, &mark).await?;
    if is_filled {
        return Ok(engine);
    }
    let files = flights_folder()?;
    for table in TABLES {
        let file = files.join(format!("{table}.csv"));
        if !tokio::fs::try_exists(&file).await? {
            return Err(format!("{} is not there; run ./scripts/setup.sh data", file.display()).into());
        }
        let request = ImportRequest {
            source: file.display().to_string(),
            format: None,
            options: Default::default(),
            table: TableName::new(DEFAULT_DATABASE, table),
            external: false,
            if_exists: Some(IfExists::Error),
        };
        engine.import(&Principal::local_admin(), request, Arc::new(NoProgress)).await?;
    }
    let session = engine.session(Principal::local_admin(), Limits::default());
    let mut made = session.sql(LOGS).await?;
    while let Some(batch) = made.next().await {
        batch?;
    }
    engine.catalog().search().index_idle().await?;
    tokio::fs::write(&mark, VERSION).await?;
    Ok(engine)
}

fn flights_folder() -> Result<PathBuf, Failure> {
    Ok(cache_folder()?.join("nycflights13"))
}
