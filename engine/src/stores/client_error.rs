//! Turns the errors of a store's client into [`StoreError`]s without what must not be shown: the body of a refusal repeats
//! keys and signed text, and a request's URL may be signed. Of an answer, the status and the store's own code word are kept.

use object_store::client::{HttpError, HttpErrorKind};

use super::web::RequestRefusal;
use crate::error::{StoreError, find_cause};

/// Why a request to an endpoint of the environment was not made.
const NO_PLAIN_HTTP: &str = "its endpoint is plain HTTP, which takes AWS_ALLOW_HTTP=true (GOOGLE_ALLOW_HTTP, \
                             AZURE_ALLOW_HTTP) in the server's environment";

/// What S3 says of temporary credentials that are over or wrong, with status 400.
const REFUSED_TOKEN: [&str; 4] = ["ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired"];
/// What S3 says where a request's bytes came too slowly, with status 400.
const TOO_SLOW: &str = "RequestTimeout";

/// Returns what an error of a store's client means for `location`; `store` is its scheme and bucket or host.
pub(super) fn redacted_error(error: &object_store::Error, store: &str, location: &str) -> StoreError {
    let (store, location) = (store.to_owned(), location.to_owned());
    if let Some(refusal) = find_cause::<RequestRefusal>(error) {
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
    match word {
        Some(word) if REFUSED_TOKEN.contains(&word) => return StoreError::AccessDenied { store, detail },
        Some(TOO_SLOW) => return StoreError::Unavailable { store, detail },
        _ => {}
    }
    if find_cause::<reqwest::Error>(error).is_some_and(reqwest::Error::is_builder) {
        return StoreError::Unusable { store, detail: NO_PLAIN_HTTP.into() };
    }
    match (status, find_cause::<HttpError>(error).map(HttpError::kind)) {
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

/// Returns the word between `<Code>` and `</Code>`, as S3, GCS and Azure write it.
fn code_word(text: &str) -> Option<&str> {
    let word = text.split_once("<Code>")?.1.split_once("</Code>")?.0;
    let is_word = !word.is_empty() && word.len() <= 60 && word.chars().all(|letter| letter.is_ascii_alphanumeric());
    is_word.then_some(word)
}

/// Returns the digits after `status code: `, as the client writes them.
fn status(text: &str) -> Option<u16> {
    text.split_once("status code: ")?.1.get(..3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_answer_only_status_and_code_are_kept() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <Error><Code>SignatureDoesNotMatch</Code>\
                    <AWSAccessKeyId>AKIAHUSH</AWSAccessKeyId></Error>";
        let error = object_store::Error::PermissionDenied { path: "a".into(), source: body.into() };
        let shown = redacted_error(&error, "s3://b", "s3://b/a").to_string();
        assert_eq!(shown, "s3://b refused access: 403 SignatureDoesNotMatch");
    }

    #[test]
    fn credentials_that_are_over_are_refused_access() {
        let answered = |word: &str| {
            let body =
                format!("Server returned non-2xx status code: 400 Bad Request: <Error><Code>{word}</Code></Error>");
            let error = object_store::Error::Generic { store: "S3", source: body.into() };
            redacted_error(&error, "s3://b", "s3://b/a").to_string()
        };
        assert_eq!(answered("ExpiredToken"), "s3://b refused access: 400 ExpiredToken");
        assert_eq!(answered("RequestTimeout"), "s3://b does not answer: 400 RequestTimeout");
        assert_eq!(answered("InvalidArgument"), "s3://b cannot be used: 400 InvalidArgument");
    }
}
