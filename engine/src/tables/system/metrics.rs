//! The process's metrics as rows of `system.metrics`.

use std::sync::{Arc, OnceLock};

use arrow::array::{Float64Array, RecordBatch};
use arrow::datatypes::{DataType, Field, SchemaRef};
use querent_catalog::policy::Rights;
use querent_catalog::{Catalog, Principal};

use super::rows::{batch, maybe, text};
use crate::error::Result;

/// Of whether the caller sees everything in all databases.
type ReadMetrics = Box<dyn Fn(bool) -> String + Send + Sync>;

/// Returns the process's metrics in Prometheus' text format. They belong to whoever serves: as long as nobody has said how to read
/// them, there are none.
#[derive(Default)]
pub(crate) struct MetricsText(OnceLock<ReadMetrics>);

impl MetricsText {
    /// Reads with `read` from now on. The first call counts.
    pub(crate) fn set(&self, read: impl Fn(bool) -> String + Send + Sync + 'static) {
        let read: ReadMetrics = Box::new(read);
        self.0.get_or_init(|| read);
    }

    pub(super) fn read(metrics: Option<&Self>, catalog: &Catalog, who: &Principal) -> String {
        let Some(read) = metrics.and_then(|metrics| metrics.0.get()) else { return String::new() };
        let sees_all = Rights::new(who, &catalog.policies().current()).sees_all();
        read(sees_all)
    }
}

pub(super) fn fields() -> Vec<Field> {
    vec![
        Field::new("name", DataType::Utf8, false),
        Field::new("labels", DataType::Utf8, true),
        Field::new("value", DataType::Float64, false),
    ]
}

pub(super) fn rows(schema: &SchemaRef, written: &str) -> Result<RecordBatch> {
    let samples: Vec<_> = written.lines().filter(|line| !line.starts_with('#')).filter_map(sample).collect();
    let columns = vec![
        text(samples.iter().map(|(name, _, _)| *name)),
        maybe(samples.iter().map(|(_, labels, _)| *labels)),
        Arc::new(Float64Array::from_iter_values(samples.iter().map(|(_, _, value)| *value))),
    ];
    batch(schema, columns, samples.len())
}

/// Returns the name of a line, its labels as they are written, and its number.
fn sample(line: &str) -> Option<(&str, Option<&str>, f64)> {
    let (series, value) = line.rsplit_once(' ')?;
    let value = value.parse().ok()?;
    match series.split_once('{') {
        Some((name, labels)) => Some((name, Some(labels.strip_suffix('}')?), value)),
        None => Some((series, None, value)),
    }
}
