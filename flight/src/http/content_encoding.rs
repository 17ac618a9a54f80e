//! Bodies that were compressed on their way (`Content-Encoding`), for every route: gzip and zstd are decompressed as the body is
//! read, and its handler's limit counts what comes out. Any other encoding is refused, so that no handler reads what it cannot.

use async_compression::tokio::bufread::{GzipDecoder, ZstdDecoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use axum::extract::Request;
use futures::{StreamExt, TryStreamExt};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body as _;
use tokio::io::AsyncRead;
use tokio_util::io::{ReaderStream, StreamReader};

use crate::error::{ApiError, ErrorCode};

/// What is decompressed at a time.
const PIECE_BYTES: usize = 64 << 10;
/// The largest window of zstd that encoders of HTTP may use (RFC 9659), 8 MiB, as a power of two: decoders hold one for
/// each body.
const WINDOW_LOG: u32 = 23;

/// How a body is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyEncoding {
    Gzip,
    Zstd,
}

/// Marks a request whose body was decompressed, in its extensions.
#[derive(Debug, Clone, Copy)]
pub(super) struct DecodedBody;

impl BodyEncoding {
    /// Returns what the headers of a request say; `None` where its body is as it is. Errors: `unsupported_media_type`.
    pub(super) fn of(headers: &HeaderMap) -> Result<Option<Self>, ApiError> {
        let said = headers.get_all(CONTENT_ENCODING).iter();
        let texts: Vec<String> =
            said.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_lowercase()).collect();
        match texts.join(", ").as_str() {
            "" | "identity" => Ok(None),
            "gzip" | "x-gzip" => Ok(Some(Self::Gzip)),
            "zstd" => Ok(Some(Self::Zstd)),
            other => {
                let shown: String = other.chars().take(100).collect();
                let message = format!("the body's Content-Encoding `{shown}` is not known");
                Err(ApiError::new(ErrorCode::UnsupportedMediaType, message).with_hint("send gzip, zstd or none"))
            }
        }
    }

    /// Returns the request with its body decompressed.
    pub(super) fn decoded(self, request: Request) -> Request {
        // There is nothing to decompress of a request without a body.
        if request.body().is_end_stream() {
            return request;
        }
        let (mut parts, body) = request.into_parts();
        parts.headers.remove(CONTENT_ENCODING);
        parts.headers.remove(CONTENT_LENGTH);
        parts.extensions.insert(DecodedBody);
        let bytes = StreamReader::new(body.into_data_stream().map_err(std::io::Error::other));
        let body = match self {
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(bytes);
                decoder.multiple_members(true);
                in_turns(decoder)
            }
            Self::Zstd => {
                let mut decoder = ZstdDecoder::with_params(bytes, &[DParameter::window_log_max(WINDOW_LOG)]);
                decoder.multiple_members(true);
                in_turns(decoder)
            }
        };
        Request::from_parts(parts, body)
    }
}

/// Returns what a decoder makes. It never waits for what has arrived already, so others get their turn after each piece.
fn in_turns(decoder: impl AsyncRead + Send + 'static) -> Body {
    let pieces = ReaderStream::with_capacity(decoder, PIECE_BYTES);
    Body::from_stream(pieces.then(|piece| async move {
        tokio::task::yield_now().await;
        piece
    }))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "each test has a runtime of its own")]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn encoding(values: &[&'static str]) -> Result<Option<BodyEncoding>, ErrorCode> {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        BodyEncoding::of(&headers).map_err(|error| error.code())
    }

    #[test]
    fn encodings_are_known_or_refused() {
        assert_eq!(encoding(&[]), Ok(None));
        assert_eq!(encoding(&["Identity"]), Ok(None));
        assert_eq!(encoding(&["GZIP"]), Ok(Some(BodyEncoding::Gzip)));
        assert_eq!(encoding(&["zstd"]), Ok(Some(BodyEncoding::Zstd)));
        for unknown in [&["br"][..], &["deflate"], &["gzip, gzip"], &["gzip", "gzip"]] {
            assert_eq!(encoding(unknown), Err(ErrorCode::UnsupportedMediaType), "{unknown:?}");
        }
    }

    #[tokio::test]
    async fn a_window_is_no_larger_than_encoders_may_make_it() {
        let decoded = async |window: u8| {
            // A frame without its length, of one block that is not compressed.
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, window, 0x29, 0, 0];
            frame.extend(b"hello");
            let request = BodyEncoding::Zstd.decoded(Request::new(Body::from(frame)));
            axum::body::to_bytes(request.into_body(), 100).await
        };
        assert_eq!(decoded(13 << 3).await.unwrap(), "hello");
        assert!(decoded(14 << 3).await.is_err());
    }
}
