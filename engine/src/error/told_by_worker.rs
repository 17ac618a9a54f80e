//! Errors of a worker's tasks. Of an error of ours only the text reaches another server, so the text says all of it.
//!
//! Invariant: the text is short. It goes back among the headers that end an answer; where these are too large, the connection is
//! ended instead, and the worker is taken for lost.

use std::fmt;
use std::time::Duration;

use datafusion::error::DataFusionError;
use querent_catalog::CatalogError;
use serde::{Deserialize, Serialize};

use super::{EngineError, StoreError, variables_of};

/// What such a text begins with.
const MARK: &str = "error of a task: ";
/// What the name of a worker stands behind.
const ON_WORKER: &str = " (on worker ";
/// The most bytes of each part of an error. A part of control characters alone is six times as long when it is written.
const MAX_PART_BYTES: usize = 1_000;

/// An error as it is told.
#[derive(Debug, Serialize, Deserialize)]
enum ToldError {
    InvalidValue { message: String },
    ValueTooLarge { detail: String },
    MemoryExceeded { detail: String },
    ServerMemory { detail: String },
    WallClockExceeded { limit: Duration },
    Cancelled,
    BadData { location: String, detail: String },
    NoFiles { location: String, format: String },
    LocationNotAllowed { location: String, reason: String },
    Unsupported { what: String, hint: String },
    StorageFull { detail: String },
    MissingCredentials { store: String },
    AccessDenied { store: String, detail: String },
    NoSuchBucket { store: String },
    Unavailable { store: String, detail: String },
    Unusable { store: String, detail: String },
    WorkerLost { worker: String, detail: String },
    Internal { message: String },
    Execution { message: String },
}

/// The text of an error.
#[derive(Debug)]
struct TaskError(String);

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}{}", self.0)
    }
}

impl std::error::Error for TaskError {}

/// Returns an error of a task as one whose text says all of it.
pub(crate) fn told_to_others(error: DataFusionError) -> DataFusionError {
    written(&ToldError::from(EngineError::from(error)))
}

/// Returns an error of a task of `worker` with the worker's name, where what is wrong is that server's: its memory, its disk, the
/// stores and files that it reaches. What is wrong with the statement or its data stays as it is.
pub fn error_on_worker(error: DataFusionError, worker: &str) -> DataFusionError {
    let message = error.to_string();
    let Some(mut told) = message.split_once(MARK).and_then(|(_, text)| read(text)) else { return error };
    match told.detail_of_server() {
        // Another worker, which read its rows, has named it.
        Some(detail) if !detail.contains(ON_WORKER) => {
            let name = format!("{ON_WORKER}{worker})");
            // Where it is told on, it is not cut.
            detail.truncate(detail.floor_char_boundary(MAX_PART_BYTES.saturating_sub(name.len())));
            detail.push_str(&name);
        }
        _ => return error,
    }
    written(&told)
}

/// Returns the error that a text says all of, and that of a worker which another one has lost.
pub(super) fn told_by_worker(message: &str) -> Option<EngineError> {
    match message.split_once(MARK) {
        Some((_, text)) => read(text).map(EngineError::from),
        None => lost_worker(message),
    }
}

fn written(told: &ToldError) -> DataFusionError {
    match serde_json::to_string(told) {
        Ok(text) => DataFusionError::External(Box::new(TaskError(text))),
        Err(error) => DataFusionError::Internal(error.to_string()),
    }
}

fn read(text: &str) -> Option<ToldError> {
    serde_json::Deserializer::from_str(text).into_iter::<ToldError>().next()?.ok()
}

/// Returns the error of a worker that another one has lost, where it came back as it was.
fn lost_worker(message: &str) -> Option<EngineError> {
    let (_, rest) = message.split_once("worker http")?;
    let (worker, detail) = rest.split_once(" was lost: ")?;
    Some(EngineError::WorkerLost { worker: format!("http{worker}"), detail: detail.to_owned() })
}

fn short(mut text: String) -> String {
    if text.len() > MAX_PART_BYTES {
        text.truncate(text.floor_char_boundary(MAX_PART_BYTES));
        text.push('…');
    }
    text
}

impl ToldError {
    /// Returns what it says of the server where the task ran; `None` where that server does not matter.
    fn detail_of_server(&mut self) -> Option<&mut String> {
        match self {
            Self::MemoryExceeded { detail }
            | Self::ServerMemory { detail }
            | Self::StorageFull { detail }
            | Self::LocationNotAllowed { reason: detail, .. }
            | Self::NoFiles { location: detail, .. }
            | Self::MissingCredentials { store: detail }
            | Self::AccessDenied { detail, .. }
            | Self::NoSuchBucket { store: detail }
            | Self::Unavailable { detail, .. }
            | Self::Unusable { detail, .. }
            | Self::Internal { message: detail }
            | Self::Execution { message: detail } => Some(detail),
            Self::InvalidValue { .. }
            | Self::ValueTooLarge { .. }
            | Self::WallClockExceeded { .. }
            | Self::Cancelled
            | Self::BadData { .. }
            | Self::Unsupported { .. }
            | Self::WorkerLost { .. } => None,
        }
    }
}

impl From<EngineError> for ToldError {
    fn from(error: EngineError) -> Self {
        match error {
            EngineError::InvalidValue { message } => Self::InvalidValue { message: short(message) },
            EngineError::ValueTooLarge { detail } => Self::ValueTooLarge { detail: short(detail) },
            EngineError::MemoryExceeded { detail } => Self::MemoryExceeded { detail: short(detail) },
            EngineError::ServerMemory { detail } => Self::ServerMemory { detail: short(detail) },
            EngineError::WallClockExceeded { limit } => Self::WallClockExceeded { limit },
            EngineError::Cancelled { .. } => Self::Cancelled,
            EngineError::BadData { location, detail } => {
                Self::BadData { location: short(location), detail: short(detail) }
            }
            EngineError::NoFiles { location, format } => Self::NoFiles { location: short(location), format },
            EngineError::LocationNotAllowed { location, reason } => {
                Self::LocationNotAllowed { location: short(location), reason: short(reason) }
            }
            EngineError::Unsupported { what, hint } => Self::Unsupported { what: short(what), hint: short(hint) },
            EngineError::Catalog(CatalogError::StorageFull { detail }) => Self::StorageFull { detail: short(detail) },
            EngineError::Store(StoreError::MissingCredentials { store, .. }) => Self::MissingCredentials { store },
            EngineError::Store(StoreError::AccessDenied { store, detail }) => {
                Self::AccessDenied { store, detail: short(detail) }
            }
            EngineError::Store(StoreError::NoSuchBucket { store }) => Self::NoSuchBucket { store },
            EngineError::Store(StoreError::Unavailable { store, detail }) => {
                Self::Unavailable { store, detail: short(detail) }
            }
            EngineError::Store(StoreError::Unusable { store, detail }) => {
                Self::Unusable { store, detail: short(detail) }
            }
            EngineError::WorkerLost { worker, detail } => Self::WorkerLost { worker, detail: short(detail) },
            EngineError::Internal(message) => Self::Internal { message: short(message) },
            EngineError::Execution { message } => Self::Execution { message: short(message) },
            // Tasks neither read statements nor write.
            other => Self::Execution { message: short(other.to_string()) },
        }
    }
}

impl From<ToldError> for EngineError {
    fn from(told: ToldError) -> Self {
        match told {
            ToldError::InvalidValue { message } => Self::InvalidValue { message },
            ToldError::ValueTooLarge { detail } => Self::ValueTooLarge { detail },
            ToldError::MemoryExceeded { detail } => Self::MemoryExceeded { detail },
            ToldError::ServerMemory { detail } => Self::ServerMemory { detail },
            ToldError::WallClockExceeded { limit } => Self::WallClockExceeded { limit },
            // The server that was asked to end the query tells why.
            ToldError::Cancelled => Self::Cancelled { reason: None },
            ToldError::BadData { location, detail } => Self::BadData { location, detail },
            ToldError::NoFiles { location, format } => Self::NoFiles { location, format },
            ToldError::LocationNotAllowed { location, reason } => Self::LocationNotAllowed { location, reason },
            ToldError::Unsupported { what, hint } => Self::Unsupported { what, hint },
            ToldError::StorageFull { detail } => Self::Catalog(CatalogError::StorageFull { detail }),
            ToldError::MissingCredentials { store } => {
                let variables = variables_of(&store);
                Self::Store(StoreError::MissingCredentials { store, variables })
            }
            ToldError::AccessDenied { store, detail } => Self::Store(StoreError::AccessDenied { store, detail }),
            ToldError::NoSuchBucket { store } => Self::Store(StoreError::NoSuchBucket { store }),
            ToldError::Unavailable { store, detail } => Self::Store(StoreError::Unavailable { store, detail }),
            ToldError::Unusable { store, detail } => Self::Store(StoreError::Unusable { store, detail }),
            ToldError::WorkerLost { worker, detail } => Self::WorkerLost { worker, detail },
            ToldError::Internal { message } => Self::Internal(message),
            ToldError::Execution { message } => Self::Execution { message },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What another server makes of an error, of which it has the text.
    fn received(error: EngineError) -> EngineError {
        let told = told_to_others(DataFusionError::from(error)).strip_backtrace();
        EngineError::from(DataFusionError::External(told.into()))
    }

    #[test]
    fn errors_arrive_with_their_codes() {
        for error in [
            EngineError::InvalidValue { message: "2 * 3 is \"too\" large: {".into() },
            EngineError::WallClockExceeded { limit: Duration::from_millis(1_500) },
            EngineError::BadData { location: "/srv/a.csv, line 3".into(), detail: "found x".into() },
            EngineError::Store(StoreError::Unavailable { store: "s3://lake".into(), detail: "503".into() }),
            EngineError::Store(StoreError::MissingCredentials {
                store: "gs://lake".into(),
                variables: variables_of("gs://"),
            }),
            EngineError::Catalog(CatalogError::StorageFull { detail: "/spill".into() }),
            EngineError::WorkerLost { worker: "http://10.0.0.2:80/".into(), detail: "it does not answer".into() },
            EngineError::Internal("a bug".into()),
            EngineError::Cancelled { reason: None },
        ] {
            let (code, shown, hint) = (error.code(), error.to_string(), error.hint());
            let once = received(error);
            assert_eq!((once.code(), once.to_string(), once.hint()), (code, shown.clone(), hint.clone()));
            // Over another worker, too.
            let twice = received(once);
            assert_eq!((twice.code(), twice.to_string(), twice.hint()), (code, shown, hint));
        }
    }

    #[test]
    fn what_is_wrong_with_a_worker_has_its_name() {
        let named = |error: EngineError, workers: &[&str]| {
            let told = told_to_others(DataFusionError::from(error));
            let error = workers.iter().fold(told, |error, worker| {
                told_to_others(error_on_worker(DataFusionError::External(error.to_string().into()), worker))
            });
            EngineError::from(DataFusionError::External(error.to_string().into()))
        };
        let full = || EngineError::Catalog(CatalogError::StorageFull { detail: "No space left on device".into() });
        // Of several workers the one where it happened.
        for workers in [&["http://10.0.0.2:80/"][..], &["http://10.0.0.2:80/", "http://10.0.0.3:80/"][..]] {
            let error = named(full(), workers);
            assert_eq!(error.code(), full().code());
            assert_eq!(error.to_string(), format!("{} (on worker http://10.0.0.2:80/)", full()));
        }
        let store = EngineError::Store(StoreError::MissingCredentials {
            store: "s3://lake".into(),
            variables: variables_of("s3://"),
        });
        let (code, hint) = (store.code(), store.hint());
        let error = named(store, &["http://10.0.0.2:80/"]);
        assert_eq!((error.code(), error.hint()), (code, hint));
        assert!(error.to_string().contains("s3://lake (on worker http://10.0.0.2:80/)"), "{error}");
        let error = named(EngineError::InvalidValue { message: "division by zero".into() }, &["http://10.0.0.2:80/"]);
        assert_eq!(error.to_string(), "division by zero");
    }

    #[test]
    fn a_lack_of_room_to_spill_names_the_setting() {
        let full = "The used disk space during the spilling process has exceeded the allowable limit of 1.0 MB. Please try \
                    increasing the config: `datafusion.runtime.max_temp_directory_size`.";
        let error = EngineError::from(DataFusionError::ResourcesExhausted(full.to_owned()));
        assert_eq!(error.code(), "memory_exceeded");
        assert!(error.to_string().ends_with("limit of 1.0 MB (query.spill)"), "{error}");
    }

    #[test]
    fn what_is_told_is_short_and_is_said_by_the_outermost_error() {
        let long = EngineError::InvalidValue { message: "ä".repeat(100_000) };
        let told = told_to_others(DataFusionError::from(long)).to_string();
        assert!(told.len() < 2 * MAX_PART_BYTES, "{}", told.len());
        let value = format!("cannot cast string '{MARK}\"Cancelled\"' to INTEGER type");
        let error = received(EngineError::InvalidValue { message: value.clone() });
        assert_eq!((error.code(), error.to_string()), ("invalid_value", value));
        let lost = told_by_worker("External error: worker http://10.0.0.2:80/ was lost: it does not answer").unwrap();
        assert_eq!(lost.code(), "worker_lost");
    }
}
