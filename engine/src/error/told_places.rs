//! Where files and workers are, in errors for callers to whom that is not told: they read the name of the file, and of the table
//! that it is a part of, and of a worker nothing.

use querent_catalog::CatalogError;
use url::{Position, Url};

use super::{EngineError, StoreError};

/// Where the files of a statement lie, and what stands for it in errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FilePlace {
    /// Texts, and what is told in their places, in order.
    told: Vec<(String, String)>,
    /// The table that has the files.
    table: Option<String>,
    /// Whether the caller sees a part of the table only, so that what is wrong with a line may be of the other.
    is_part: bool,
}

impl FilePlace {
    /// The files of a table. `base` is its file or folder, without a pattern: an absolute path or a URL; `store` is the bucket
    /// or the host of a URL.
    pub(crate) fn of_table(table: &str, base: &str, store: Option<String>) -> Self {
        let mut told = Vec::new();
        let base = base.trim_end_matches('/');
        // As stores spell the path of a local file. A name alone tells nothing, and may stand for anything.
        let bare = base.strip_prefix('/').filter(|bare| bare.contains('/'));
        for place in [Some(base), bare].into_iter().flatten() {
            if place.is_empty() || store.as_deref() == Some(place) {
                continue;
            }
            let name = place.rsplit('/').next().unwrap_or(place);
            told.push((format!("{place}/"), String::new()));
            told.push((place.to_owned(), name.to_owned()));
        }
        told.extend(store.map(|store| (store, "its store".to_owned())));
        Self { told, table: Some(table.to_owned()), is_part: false }
    }

    /// The same, where the caller sees a part of the table only.
    pub(crate) fn seen_in_part(self, is_part: bool) -> Self {
        Self { is_part, ..self }
    }

    /// Files that a statement names itself, as it does.
    pub(crate) fn of_statement(location: &str, written: &str) -> Self {
        let above = location.strip_suffix(written).filter(|above| above.len() > 1);
        let told = match above {
            Some(above) => (above.to_owned(), String::new()),
            None => (location.to_owned(), written.to_owned()),
        };
        Self { told: vec![told], table: None, is_part: false }
    }

    /// A worker that does a part of the statement.
    pub(crate) fn of_worker(worker: &Url) -> Self {
        let url = worker.as_str();
        let mut told = vec![(url, "of the cluster"), (url.trim_end_matches('/'), "of the cluster")];
        // A name alone may stand for anything.
        if worker.port().is_some() {
            told.push((&worker[Position::BeforeHost..Position::AfterPort], "its address"));
        }
        let told = told.into_iter().map(|(place, told)| (place.to_owned(), told.to_owned())).collect();
        Self { told, table: None, is_part: false }
    }

    /// Returns a text of an error without the place; `None` where the place is not in it.
    fn without_place(&self, text: &str) -> Option<String> {
        let is_in_it = self.told.iter().any(|(place, _)| text.contains(place.as_str()));
        let replaced = |text: String, (place, told): &(String, String)| text.replace(place.as_str(), told);
        is_in_it.then(|| self.told.iter().fold(text.to_owned(), replaced))
    }
}

impl EngineError {
    /// Returns the error without the places of files.
    pub(crate) fn without_places(self, places: &[FilePlace]) -> Self {
        let mut table = None;
        let is_part = match &self {
            EngineError::BadData { location, .. } => {
                places.iter().any(|place| place.is_part && place.without_place(location).is_some())
            }
            _ => false,
        };
        if is_part {
            tracing::warn!(error = %self, "a file of a table cannot be read");
        }
        let mut told = |text: String| {
            places.iter().fold(text, |text, place| match place.without_place(&text) {
                Some(without) => {
                    table = table.take().or_else(|| place.table.clone());
                    without
                }
                None => text,
            })
        };
        let error = match self {
            EngineError::BadData { location, detail } => {
                EngineError::BadData { location: told(location), detail: told(detail) }
            }
            EngineError::NoFiles { location, format } => EngineError::NoFiles { location: told(location), format },
            EngineError::LocationNotAllowed { location, reason } => {
                EngineError::LocationNotAllowed { location: told(location), reason: told(reason) }
            }
            EngineError::Execution { message } => EngineError::Execution { message: told(message) },
            EngineError::InvalidValue { message } => EngineError::InvalidValue { message: told(message) },
            EngineError::Plan { message } => EngineError::Plan { message: told(message) },
            EngineError::MemoryExceeded { detail } => EngineError::MemoryExceeded { detail: told(detail) },
            EngineError::ServerMemory { detail } => EngineError::ServerMemory { detail: told(detail) },
            EngineError::WorkerLost { worker, detail } => {
                EngineError::WorkerLost { worker: told(worker), detail: told(detail) }
            }
            EngineError::Internal(message) => EngineError::Internal(told(message)),
            EngineError::Catalog(CatalogError::StorageFull { detail }) => {
                EngineError::Catalog(CatalogError::StorageFull { detail: told(detail) })
            }
            EngineError::Catalog(CatalogError::Io { path, source }) => {
                EngineError::Catalog(CatalogError::Io { path: told(path.display().to_string()).into(), source })
            }
            EngineError::Store(error) => EngineError::Store(error.with_texts(&mut told)),
            other => other,
        };
        match (error, table) {
            (EngineError::BadData { location, .. }, Some(table)) if is_part => {
                let file = location.split(", line ").next().unwrap_or_default();
                let detail = "it cannot be read; what is wrong with it is in the server's log".to_owned();
                EngineError::BadData { location: of_table(file, &table), detail }
            }
            (EngineError::BadData { location, detail }, Some(table)) => {
                EngineError::BadData { location: of_table(&location, &table), detail }
            }
            (EngineError::NoFiles { location, format }, Some(table)) => {
                EngineError::NoFiles { location: of_table(&location, &table), format }
            }
            (EngineError::LocationNotAllowed { location, reason }, Some(table)) => {
                EngineError::LocationNotAllowed { location: of_table(&location, &table), reason }
            }
            (error, _) => error,
        }
    }
}

fn of_table(location: &str, table: &str) -> String {
    format!("{location} (table `{table}`)")
}

impl StoreError {
    fn with_texts(self, told: &mut impl FnMut(String) -> String) -> Self {
        match self {
            StoreError::MissingCredentials { store, variables } => {
                StoreError::MissingCredentials { store: told(store), variables }
            }
            StoreError::AccessDenied { store, detail } => {
                StoreError::AccessDenied { store: told(store), detail: told(detail) }
            }
            StoreError::NoSuchBucket { store } => StoreError::NoSuchBucket { store: told(store) },
            StoreError::Unavailable { store, detail } => {
                StoreError::Unavailable { store: told(store), detail: told(detail) }
            }
            StoreError::Unusable { store, detail } => StoreError::Unusable { store: told(store), detail: told(detail) },
            StoreError::Gone { location } => StoreError::Gone { location: told(location) },
            StoreError::Replaced { location } => StoreError::Replaced { location: told(location) },
            StoreError::Occupied { location } => StoreError::Occupied { location: told(location) },
            StoreError::Refused { location, reason } => {
                StoreError::Refused { location: told(location), reason: told(reason) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bad_data(location: &str, detail: &str) -> EngineError {
        EngineError::BadData { location: location.into(), detail: detail.into() }
    }

    #[test]
    fn files_of_tables_are_told_by_their_names() {
        let folder = FilePlace::of_table("db.t", "/srv/data/trips", None);
        let error = bad_data("/srv/data/trips/y=1/a.csv, line 3", "not as srv/data/trips/b.csv");
        let told = error.without_places(&[folder]).to_string();
        assert_eq!(told, "y=1/a.csv, line 3 (table `db.t`): not as b.csv");
        let file = FilePlace::of_table("db.t", "/srv/a.csv", None);
        let error = EngineError::NoFiles { location: "/srv/a.csv, which is not there".into(), format: "csv".into() };
        let told = error.without_places(&[file]).to_string();
        assert_eq!(told, "no csv files at a.csv, which is not there (table `db.t`)");
        let bucket = FilePlace::of_table("t", "s3://lake/raw", Some("s3://lake".into()));
        let error = EngineError::Store(StoreError::AccessDenied { store: "s3://lake".into(), detail: "403".into() });
        assert_eq!(error.without_places(&[bucket]).to_string(), "its store refused access: 403");
        let part = FilePlace::of_table("db.t", "/srv/a.csv", None).seen_in_part(true);
        let told = bad_data("/srv/a.csv, line 3, column `x`", "found `secret`").without_places(&[part]).to_string();
        assert_eq!(told, "a.csv (table `db.t`): it cannot be read; what is wrong with it is in the server's log");
        let top = FilePlace::of_table("t", "/a.csv", None);
        assert_eq!(bad_data("/a.csv", "data").without_places(&[top]).to_string(), "a.csv (table `t`): data");
    }

    #[test]
    fn workers_are_told_without_their_addresses() {
        let worker = FilePlace::of_worker(&Url::parse("http://10.0.0.2:8080").unwrap());
        let told = |error: EngineError| error.without_places(std::slice::from_ref(&worker)).to_string();
        let detail = "cannot connect to 10.0.0.2:8080".to_owned();
        let lost = EngineError::WorkerLost { worker: "http://10.0.0.2:8080/".into(), detail };
        assert_eq!(told(lost), "worker of the cluster was lost: cannot connect to its address");
        let full = "No space left on device (on worker http://10.0.0.2:8080/)".to_owned();
        let full = told(EngineError::Catalog(CatalogError::StorageFull { detail: full }));
        assert!(full.ends_with("(on worker of the cluster)"), "{full}");
    }

    #[test]
    fn files_of_a_statement_are_told_as_it_names_them() {
        let relative = FilePlace::of_statement("/home/q/in/a.csv", "in/a.csv");
        assert_eq!(bad_data("/home/q/in/a.csv", "x").without_places(&[relative]).to_string(), "in/a.csv: x");
        let url = FilePlace::of_statement("/srv/a.csv", "file:///srv/a.csv");
        assert_eq!(bad_data("/srv/a.csv", "x").without_places(&[url]).to_string(), "file:///srv/a.csv: x");
        let same = FilePlace::of_statement("/srv/a.csv", "/srv/a.csv");
        assert_eq!(bad_data("/srv/a.csv", "x").without_places(&[same]).to_string(), "/srv/a.csv: x");
    }
}
