//! Records of the audit log as rows of `system.audit`.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, TimestampMicrosecondArray, UInt64Array};
use arrow::datatypes::{DataType, Field, SchemaRef, TimeUnit};
use querent_catalog::audit::{AuditOutcome, KeptRecord};

use crate::error::Result;

pub(super) fn fields() -> Vec<Field> {
    let text = |name: &str| Field::new(name, DataType::Utf8, false);
    let maybe = |name: &str| Field::new(name, DataType::Utf8, true);
    let count = |name: &str| Field::new(name, DataType::UInt64, false);
    vec![
        Field::new("seq", DataType::Int64, false),
        Field::new("at", DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())), false),
        text("subject"),
        text("role"),
        text("door"),
        text("statement"),
        text("tables"),
        text("columns"),
        maybe("written"),
        text("policies"),
        text("outcome"),
        maybe("error"),
        count("rows"),
        count("bytes"),
        count("elapsed_ms"),
        text("hash"),
    ]
}

pub(super) fn rows(schema: &SchemaRef, records: &[KeptRecord]) -> Result<RecordBatch> {
    let text = |value: fn(&KeptRecord) -> String| {
        Arc::new(records.iter().map(|record| Some(value(record))).collect::<StringArray>()) as ArrayRef
    };
    let maybe = |value: fn(&KeptRecord) -> Option<String>| {
        Arc::new(records.iter().map(value).collect::<StringArray>()) as ArrayRef
    };
    let count = |value: fn(&KeptRecord) -> u64| {
        Arc::new(records.iter().map(|record| Some(value(record))).collect::<UInt64Array>()) as ArrayRef
    };
    let at: TimestampMicrosecondArray = records.iter().map(|kept| Some(kept.record.at.timestamp_micros())).collect();
    let columns = vec![
        Arc::new(records.iter().map(|kept| Some(kept.seq)).collect::<Int64Array>()) as ArrayRef,
        Arc::new(at.with_timezone("UTC")),
        text(|kept| kept.record.subject.clone()),
        text(|kept| kept.record.role.clone()),
        text(|kept| kept.record.door.clone()),
        text(|kept| kept.record.statement.clone()),
        text(|kept| kept.record.tables.join(", ")),
        text(|kept| kept.record.columns.join(", ")),
        maybe(|kept| kept.record.written.clone()),
        text(|kept| kept.record.policies.join(", ")),
        text(|kept| outcome(kept.record.outcome).to_owned()),
        maybe(|kept| kept.record.error.clone()),
        count(|kept| kept.record.rows),
        count(|kept| kept.record.bytes),
        count(|kept| kept.record.elapsed_ms),
        text(|kept| kept.hash.clone()),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn outcome(outcome: AuditOutcome) -> &'static str {
    match outcome {
        AuditOutcome::Done => "done",
        AuditOutcome::Refused => "refused",
        AuditOutcome::Failed => "failed",
    }
}
