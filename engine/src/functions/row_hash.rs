//! `row_hash(seed, values...)`: a number that depends on its arguments only, which samples with a seed are drawn by.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::datatypes::DataType;
use datafusion::common::hash_utils::{RandomState, create_hashes};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{ANY_NUMBER, Definition};

/// Returns `row_hash`.
pub(crate) fn row_hash() -> Arc<ScalarUDF> {
    Definition {
        name: "row_hash",
        aliases: &[],
        arguments: 1..=ANY_NUMBER,
        takes: |types| Ok(types.to_vec()),
        returns: |_| Ok(DataType::UInt64),
        compute: hashes,
    }
    .into_udf()
}

fn hashes(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut hashes = vec![0; rows];
    create_hashes(arrays, &RandomState::default(), &mut hashes)?;
    Ok(Arc::new(UInt64Array::from_iter_values(hashes.into_iter().map(mixed))))
}

/// Spreads a hash over all bits: those of small integers differ in few.
fn mixed(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}
