//! What the listings of databases and tables share.

use arrow::array::RecordBatch;
use futures::stream::BoxStream;
use querent_catalog::CATALOG_NAME;
use tonic::Status;

/// The batches of a listing.
pub(super) type BatchStream = BoxStream<'static, Result<RecordBatch, Status>>;

/// Whether a command's catalog filter matches our catalog. An empty name asks for objects without a catalog, which there
/// are none of.
pub(super) fn catalog_matches(filter: Option<&str>) -> bool {
    filter.is_none_or(is_our_catalog)
}

/// Whether a name is our catalog's, without regard to case, as in SQL.
pub(super) fn is_our_catalog(name: &str) -> bool {
    name.eq_ignore_ascii_case(CATALOG_NAME)
}
