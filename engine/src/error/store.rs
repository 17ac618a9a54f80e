//! What stores say, without what they must not say: the body of a refusal repeats keys and signed text, and a request's
//! URL may be signed. Of an answer, the status and the store's own code word are kept.

use std::error::Error as StdError;

use object_store::client::{HttpError, HttpErrorKind};

use super::web::Refusal;
use crate::EngineError;

/// Why a request to an endpoint of the environment was not even made.
const NO_PLAIN_HTTP: &str = "its endpoint is plain HTTP, which takes AWS_ALLOW_HTTP=true (GOOGLE_ALLOW_HTTP, \
                             AZURE_ALLOW_HTTP) in the server's environment";

/// A store that does not give what was asked of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The environment has no credentials for it.
    #[error("the environment has no credentials for {store}")]
    MissingCredentials {
        /// Scheme and bucket.
        store: String,
        /// Which variables to set.
        variables: &'static str,
    },
    /// It knows the caller and refuses, or does not know it.
    #[error("{store} refused access{}", said(.detail))]
    AccessDenied {
        /// Scheme and bucket or host.
        store: String,
        /// Status or code word.
        detail: String,
    },
    /// There is no such bucket or container.
    #[error("there is no bucket {store}")]
    NoSuchBucket {
        /// Scheme and bucket.
        store: String,
    },
    /// Nobody answers, or only with excuses.
    #[error("{store} does not answer{}", said(.detail))]
    Unavailable {
        /// Scheme and bucket or host.
        store: String,
        /// How it was noticed.
        detail: String,
    },
    /// The answer is none that can be used.
    #[error("{store} cannot be read{}", said(.detail))]
    Unusable {
        /// Scheme and bucket or host.
        store: String,
        /// What it was.
        detail: String,
    },
    /// No such object.
    #[error("no files at {location}")]
    Gone {
        /// The object.
        location: String,
    },
    /// A request that may not be made.
    #[error("location {location} is not allowed: {reason}")]
    Refused {
        /// The object.
        location: String,
        /// Why.
        reason: String,
    },
}

impl StoreError {
    /// What to do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        Some(match self {
            StoreError::MissingCredentials { variables, .. } => format!("start the server with {variables}"),
            StoreError::AccessDenied { .. } => {
                "check the credentials in the server's environment, and that they may list and read there".to_owned()
            }
            StoreError::NoSuchBucket { .. } => {
                "check the name, and the region or endpoint in the server's environment".to_owned()
            }
            StoreError::Unavailable { .. } => {
                "check the endpoint in the server's environment and the network, or try again".to_owned()
            }
            StoreError::Unusable { .. } | StoreError::Gone { .. } | StoreError::Refused { .. } => return None,
        })
    }
}

impl From<StoreError> for EngineError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Refused { location, reason } => EngineError::LocationNotAllowed { location, reason },
            StoreError::Gone { location } => EngineError::NoFiles { location, format: "such".into() },
            other => EngineError::Store(other),
        }
    }
}

impl From<StoreError> for object_store::Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Gone { ref location } => {
                object_store::Error::NotFound { path: location.clone(), source: Box::new(error) }
            }
            other => object_store::Error::Generic { store: "external", source: Box::new(other) },
        }
    }
}

/// What an error of a store's client means for `location`, of which `store` is the scheme and bucket or host.
pub(super) fn told(error: &object_store::Error, store: &str, location: &str) -> StoreError {
    let (store, location) = (store.to_owned(), location.to_owned());
    if let Some(refusal) = find::<Refusal>(error) {
        return StoreError::Refused { location, reason: refusal.to_string() };
    }
    let text = error.to_string();
    let word = code_word(&text);
    if matches!(word, Some("NoSuchBucket" | "ContainerNotFound")) {
        return StoreError::NoSuchBucket { store };
    }
    let status = status(&text);
    let detail = match (status, word) {
        (Some(status), Some(word)) => format!("{status} {word}"),
        (Some(status), None) => status.to_string(),
        (None, Some(word)) => word.to_owned(),
        (None, None) => String::new(),
    };
    match error {
        object_store::Error::NotFound { .. } => return StoreError::Gone { location },
        object_store::Error::PermissionDenied { .. } | object_store::Error::Unauthenticated { .. } => {
            return StoreError::AccessDenied { store, detail };
        }
        _ => {}
    }
    if find::<reqwest::Error>(error).is_some_and(reqwest::Error::is_builder) {
        return StoreError::Unusable { store, detail: NO_PLAIN_HTTP.into() };
    }
    match (status, find::<HttpError>(error).map(HttpError::kind)) {
        (Some(401 | 403), _) => StoreError::AccessDenied { store, detail },
        (Some(429 | 500..), _) => StoreError::Unavailable { store, detail },
        (Some(_), _) => StoreError::Unusable { store, detail },
        (None, Some(HttpErrorKind::Timeout)) => StoreError::Unavailable { store, detail: "timed out".into() },
        (None, Some(HttpErrorKind::Connect)) => StoreError::Unavailable { store, detail: "cannot be reached".into() },
        (None, Some(HttpErrorKind::Request | HttpErrorKind::Interrupted)) => {
            StoreError::Unavailable { store, detail: "the connection broke".into() }
        }
        (None, _) if text.contains("Range request not supported") || text.contains("partial response") => {
            StoreError::Unusable { store, detail: "it does not serve parts of files (HTTP ranges)".into() }
        }
        (None, _) if text.contains("redirect") => {
            StoreError::Unusable { store, detail: "it redirects; check the region".into() }
        }
        (None, _) => StoreError::Unusable { store, detail },
    }
}

/// The `StoreError` that an error carries, however wrapped.
pub(crate) fn carried(error: &(dyn StdError + 'static)) -> Option<EngineError> {
    find::<StoreError>(error).cloned().map(EngineError::from)
}

/// The first error of a type along the chain of causes.
fn find<'a, T: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        // Those that pass another error off as themselves name its cause as theirs.
        let within: Option<&(dyn StdError + 'static)> = match error.downcast_ref::<EngineError>() {
            Some(EngineError::Store(inner)) => Some(inner),
            _ => None,
        };
        let io = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = within.or(io.map(|inner| inner as &(dyn StdError + 'static))).or_else(|| error.source());
    }
    None
}

/// The word between `<Code>` and `</Code>`, as S3, GCS and Azure have it.
fn code_word(text: &str) -> Option<&str> {
    let word = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    let is_word = !word.is_empty() && word.len() <= 60 && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_word.then_some(word)
}

/// The digits after `status code: `, as the client words it.
fn status(text: &str) -> Option<u16> {
    text.split_once("status code: ")?.1.get(..3)?.parse().ok()
}

fn said(detail: &str) -> String {
    if detail.is_empty() { String::new() } else { format!(": {detail}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_only_status_and_code_are_kept() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code>\
                    <AWSAccessKeyId>AKIAHUSH</AWSAccessKeyId></Error>";
        let error = object_store::Error::PermissionDenied { path: "a".into(), source: body.into() };
        let told = told(&error, "s3://b", "s3://b/a").to_string();
        assert_eq!(told, "s3://b refused access: 403 SignatureDoesNotMatch");
    }
}
