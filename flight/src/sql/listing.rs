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
    filter.is_none_or(|name| name == CATALOG_NAME)
}
