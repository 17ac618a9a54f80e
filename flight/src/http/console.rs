//! The console: a page for people at `/`, and the files that it loads, all of them in the binary.
//!
//! Its sources are `flight/console/`, built into `flight/console/dist` by `make console`. The page may load scripts,
//! styles and data from this server only. A file's name holds a hash of what is in it, so browsers keep it for ever.

use std::sync::LazyLock;

use async_compression::tokio::write::GzipEncoder;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use tokio::io::AsyncWriteExt;
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::error::{ApiError, ErrorCode};

/// A file of the built console.
struct ConsoleFile {
    name: &'static str,
    media_type: &'static str,
    bytes: &'static [u8],
}

const FILES: &[ConsoleFile] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));
const PAGE: &str = include_str!("../../console/dist/index.html");
/// The placeholder in the page for the nonce that lets the editor's styles apply.
const NONCE: &str = "{nonce}";

/// The files as gzip, each made when it is first asked for.
static COMPRESSED: LazyLock<Vec<OnceCell<Bytes>>> = LazyLock::new(|| FILES.iter().map(|_| OnceCell::new()).collect());

/// Returns the page.
pub(super) fn page() -> Response {
    let nonce = Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data: blob:; \
         connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers: [(HeaderName, String); 6] = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
        (header::CONTENT_SECURITY_POLICY, policy),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::REFERRER_POLICY, "no-referrer".to_owned()),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::VARY, "accept".to_owned()),
    ];
    (headers, PAGE.replace(NONCE, &nonce)).into_response()
}

/// `GET /console/{file}`: a script, a style or an image of the page. Errors: `not_found`.
pub(super) async fn file(Path(name): Path<String>, headers: HeaderMap) -> Result<Response, ApiError> {
    let known = FILES.iter().position(|file| file.name == name && !file.name.ends_with(".html"));
    let Some((at, file)) = known.and_then(|at| Some((at, FILES.get(at)?))) else {
        let error = ApiError::new(ErrorCode::NotFound, format!("the console has no file `{name}`"));
        return Err(error.with_hint("it may be of another version: load the page anew"));
    };
    let mut response = match COMPRESSED.get(at).filter(|_| accepts_gzip(&headers)) {
        Some(compressed) => compressed.get_or_try_init(|| gzip(file.bytes)).await?.clone().into_response(),
        None => Bytes::from_static(file.bytes).into_response(),
    };
    if accepts_gzip(&headers) {
        response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    for (name, value) in [
        (header::CONTENT_TYPE, file.media_type),
        (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
        (header::VARY, "accept-encoding"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // An image that is opened as a page of its own runs nothing.
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; style-src 'self'"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}

/// Whether the client takes gzip: it is named, and not with a weight of nothing.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).into_iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse::<f32>().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight| weight > 0.0)
    })
}

async fn gzip(bytes: &[u8]) -> Result<Bytes, ApiError> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await.map_err(ApiError::internal)?;
    encoder.shutdown().await.map_err(ApiError::internal)?;
    Ok(encoder.into_inner().into())
}
