//! Where results are encoded: more than a handful of values off the async runtime.

use crate::error::ApiError;

/// Batches with more values than this are encoded on a blocking thread; fewer cost less than the hop.
const INLINE_VALUES: usize = 1_000;

/// Runs an encoder of so many values where it holds up nobody.
pub(super) async fn encode_off_runtime<T: Send + 'static>(
    values: usize,
    encode: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    match values > INLINE_VALUES {
        true => tokio::task::spawn_blocking(encode).await.map_err(ApiError::internal),
        false => Ok(encode()),
    }
}
