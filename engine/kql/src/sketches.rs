//! Sketches of many values: of how many distinct ones there are ([`Distinct`], KQL's `hll`), and of how they are
//! distributed ([`Digest`], KQL's `tdigest`). Both are exact while they are small, merge in any order, and are dynamic
//! values outside: a bag with their bytes in base64. A text that is no sketch is `None`, and no text makes one larger
//! than it may be.

mod digest;
mod distinct;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

pub(super) use digest::{Digest, Kind, key_of_real, real_of_key};
pub(super) use distinct::{DEFAULT_ACCURACY, Distinct};

/// A property's bytes.
fn bytes_of(value: &Value, name: &str) -> Option<Vec<u8>> {
    STANDARD.decode(value.get(name)?.as_str()?).ok()
}

fn base64_of(bytes: impl IntoIterator<Item = u8>) -> String {
    STANDARD.encode(bytes.into_iter().collect::<Vec<u8>>())
}

/// The 64-bit words of bytes; what is no whole word is no sketch's.
fn words(bytes: &[u8]) -> Option<Vec<u64>> {
    let (words, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| words.iter().map(|word| u64::from_le_bytes(*word)).collect())
}
