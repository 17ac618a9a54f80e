//! Keeps the encoding of large batches off the async runtime.

use crate::error::ApiError;

/// Batches with more values than this are encoded on a blocking thread; smaller ones cost less than the switch.
const INLINE_VALUES: usize = 1_000;

/// Runs an encoder of `values` values, on a blocking thread if they are many.
pub(super) async fn encode_off_runtime<T: Send + 'static>(
    values: usize,
    encode: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    match values > INLINE_VALUES {
        true => tokio::task::spawn_blocking(encode).await.map_err(ApiError::internal),
        false => Ok(encode()),
    }
}
