//! Aggregates written down.

use std::any::Any;
use std::sync::Arc;

use datafusion::logical_expr::AggregateUDF;
use serde::{Deserialize, Serialize};

use super::arg_extreme::{ArgExtremeFunction, RowChoice, row_choice_udaf};
use super::build_schema::{BuildSchemaFunction, build_schema_udaf};
use super::collection::{CollectFunction, Collection, collect_udaf};
use super::percentiles::{PercentilesFunction, percentiles_udaf};
use super::series_bins::{SeriesBins, SeriesFunction, series_udaf};
use super::sketch::{SketchFunction, SketchKind, sketch_udaf};

/// An aggregate of [`super`], written down.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WrittenAggregate(AggregateParts);

#[derive(Debug, Serialize, Deserialize)]
enum AggregateParts {
    Row(RowChoice),
    Schema,
    Collection {
        collection: Collection,
        limit: usize,
    },
    /// The bits of each.
    Percentiles(Vec<u64>),
    Series(SeriesBins),
    Sketch(SketchKind),
}

impl WrittenAggregate {
    pub(crate) fn from_udaf(function: &AggregateUDF) -> Option<Self> {
        let function = function.inner().as_ref() as &dyn Any;
        let parts = if let Some(row) = function.downcast_ref::<ArgExtremeFunction>() {
            AggregateParts::Row(row.choice)
        } else if function.is::<BuildSchemaFunction>() {
            AggregateParts::Schema
        } else if let Some(collect) = function.downcast_ref::<CollectFunction>() {
            AggregateParts::Collection { collection: collect.collection, limit: collect.limit }
        } else if let Some(percentiles) = function.downcast_ref::<PercentilesFunction>() {
            AggregateParts::Percentiles(percentiles.percentiles.clone())
        } else if let Some(series) = function.downcast_ref::<SeriesFunction>() {
            AggregateParts::Series(series.bins.clone())
        } else {
            AggregateParts::Sketch(function.downcast_ref::<SketchFunction>()?.kind)
        };
        Some(Self(parts))
    }

    pub(crate) fn into_udaf(self) -> Arc<AggregateUDF> {
        match self.0 {
            AggregateParts::Row(choice) => row_choice_udaf(choice),
            AggregateParts::Schema => build_schema_udaf(),
            AggregateParts::Collection { collection, limit } => collect_udaf(collection, Some(limit)),
            AggregateParts::Percentiles(bits) => percentiles_udaf(bits.into_iter().map(f64::from_bits).collect()),
            AggregateParts::Series(bins) => series_udaf(bins),
            AggregateParts::Sketch(kind) => sketch_udaf(kind),
        }
    }
}
