//! Sketches of many values: the number of distinct values ([`HyperLogLog`], KQL's `hll`), and their distribution
//! ([`TDigest`], KQL's `tdigest`). Both are exact while they are small and merge in any order. Outside of the crate
//! they are dynamic values: a bag with their bytes in base64. Reading what is not a sketch returns `None`, and no input
//! makes one larger than its limit.

mod hyperloglog;
mod tdigest;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(super) use hyperloglog::{DEFAULT_ACCURACY, HyperLogLog};
pub(super) use tdigest::{DigestType, TDigest, key_of_real, real_of_key};

/// Returns the bytes of a property.
fn bytes_of(value: &Value, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(value.get(name)?.as_str()?).ok()
}

fn base64_of(bytes: impl IntoIterator<Item = u8>) -> String {
    STANDARD.encode(bytes.into_iter().collect::<Vec<u8>>())
}

/// Returns the 64-bit words of bytes; `None` if the last is incomplete.
fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
