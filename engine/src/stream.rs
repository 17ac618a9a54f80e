//! A running query's results.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::Stream;

use crate::Result;

/// What a stream delivered so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueryStats {
    /// Rows delivered.
    pub rows: u64,
    /// Arrow bytes delivered.
    pub bytes: u64,
    /// Whether a row or byte limit cut the result.
    pub truncated: bool,
}

/// Record batches of one query, all of [`QueryStream::schema`] exactly (names, types, nullability). Dropping it stops the work.
pub struct QueryStream {}

/// Nothing here yet.
#[allow(unused_variables, missing_docs, clippy::todo, clippy::allow_attributes)]
impl QueryStream {
    /// The schema of every batch.
    pub fn schema(&self) -> SchemaRef {
        todo!()
    }
    /// So far; final after the stream ended.
    pub fn stats(&self) -> QueryStats {
        todo!()
    }
    /// All batches. The session's limits bound it.
    pub async fn collect(self) -> Result<(Vec<RecordBatch>, QueryStats)> {
        todo!()
    }
}

impl Stream for QueryStream {
    type Item = Result<RecordBatch>;
    fn poll_next(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        todo!()
    }
}
