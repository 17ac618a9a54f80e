//! Writes an answer as one of Kusto's data sets, batch by batch as the query yields them.
//!
//! Version 1 is a document of tables: the rows of each result, how to show them, the query's status, and a table of contents.
//! Version 2 is a list of frames; a result's rows are one frame, or many if the client asks for fragments or progress. Clients
//! rely on the order of a frame's members. A failure after the first rows does not break the document: it is reported
//! where the request wants it, after the last row, at the end of the table or at the end of the data set.

use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use http_body::Frame;
use http_body_util::StreamBody;
use querent_engine::kql::{KqlColumn, KqlType};
use querent_engine::{KqlAnswers, KqlResult, QueryStream};
use serde_json::{Value, json};
use uuid::Uuid;

use super::error::{RequestIds, description, one_api_error, timestamp};
use super::table::{v1_opening, v1_table, v2_opening, v2_table};
use crate::admission::QueryPermit;
use crate::error::{ApiError, ErrorCode};
use crate::http::encoding::encode_off_runtime;
use crate::metrics;

/// How an answer is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) enum DataSetLayout {
    /// Four tables.
    V1,
    /// One table, as commands answer.
    Command,
    /// Frames.
    V2(Frames),
}

/// How version 2 is framed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frames {
    /// Whether rows come in fragments with progress frames.
    pub(super) is_progressive: bool,
    /// Whether rows come in fragments.
    pub(super) is_fragmented: bool,
    /// Whether each frame has a line of its own.
    pub(super) on_lines: bool,
    pub(super) placement: ErrorPlacement,
}

/// Where a failure after the first rows is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ErrorPlacement {
    /// As the last row.
    InData,
    /// As a member of the table's last frame.
    EndOfTable,
    /// Only in the data set's completion, as always.
    EndOfDataSet,
}

/// A started query and all that its body needs.
pub(super) struct DataSet {
    pub(super) answers: KqlAnswers,
    /// The rows of the first result.
    pub(super) rows: QueryStream,
    pub(super) first: Option<RecordBatch>,
    pub(super) permit: QueryPermit,
    pub(super) ids: RequestIds,
    pub(super) truncation: TruncationLimits,
}

/// What a request says of the size of a result.
#[derive(Debug, Clone, Copy)]
pub(super) struct TruncationLimits {
    /// `truncationmaxrecords`: more are a failure.
    pub(super) failing_rows: Option<u64>,
    /// `truncationmaxsize`: more are a failure.
    pub(super) failing_bytes: Option<u64>,
    /// `query_take_max_records`: the result ends there.
    pub(super) taken_rows: Option<u64>,
}

impl TruncationLimits {
    /// Returns the error of a result that was cut behind `rows` rows, unless it ends there.
    fn failure(self, rows: u64) -> Option<ApiError> {
        if self.taken_rows == Some(rows) {
            return None;
        }
        let (most, of, option) = match self {
            Self { failing_rows: Some(most), .. } if most == rows => (most, "rows", "truncationmaxrecords"),
            Self { failing_bytes: Some(most), .. } => (most, "bytes", "truncationmaxsize"),
            _ => return None,
        };
        let message = format!("the result has more than {most} {of}, the request's {option}");
        Some(ApiError::new(ErrorCode::ResultTruncated, message))
    }
}

impl DataSet {
    /// Returns the frames of the body, which always ends well-formed and reports a failure inside.
    pub(super) fn frames(
        self,
        layout: DataSetLayout,
    ) -> StreamBody<impl Stream<Item = Result<Frame<Bytes>, ApiError>> + Send> {
        let Self { mut answers, rows, first, mut permit, ids, truncation } = self;
        let mut writer = DataSetWriter {
            layout,
            results: answers.results().into(),
            ids,
            started: Instant::now(),
            current: 0,
            rows: 0,
            all_rows: 0,
        };
        let span = tracing::Span::current();
        StreamBody::new(async_stream::try_stream! {
            yield Frame::data(writer.opening());
            let mut started = Ok(Some((rows, Ok(first))));
            let mut failure = None;
            loop {
                let (mut rows, mut next) = match started {
                    Ok(Some(started)) => started,
                    Ok(None) => break,
                    Err(error) => {
                        failure = Some(ApiError::from(error));
                        break;
                    }
                };
                loop {
                    let batch = match next {
                        Ok(Some(batch)) => batch,
                        Ok(None) => break,
                        Err(error) => {
                            failure = Some(ApiError::from(error));
                            break;
                        }
                    };
                    let values = batch.num_rows() * batch.num_columns();
                    let (back, bytes) = encode_off_runtime(values, move || {
                        let bytes = writer.batch(&batch);
                        (writer, bytes)
                    })
                    .await?;
                    writer = back;
                    if !bytes.is_empty() {
                        yield Frame::data(bytes);
                    }
                    next = rows.next().await.transpose();
                }
                let stats = rows.stats();
                if failure.is_none() && stats.truncated {
                    failure = truncation.failure(stats.rows);
                }
                if failure.is_some() || !writer.has_more_results() {
                    break;
                }
                yield Frame::data(writer.next_result());
                started = match answers.next_rows().await {
                    Ok(rows) => Ok(rows.map(|rows| (rows, Ok(None)))),
                    Err(error) => Err(error),
                };
                if let Ok(Some((rows, next))) = &mut started {
                    *next = rows.next().await.transpose();
                }
            }
            match &failure {
                None => permit.succeeded(writer.all_rows),
                Some(error) => {
                    permit.failed();
                    metrics::error(error.code().as_str());
                    let (code, message) = (error.code().as_str(), error.message());
                    span.in_scope(|| tracing::warn!(code, message, "a query failed after its first rows were sent"));
                }
            }
            yield Frame::data(writer.closing(failure.as_ref()));
        })
    }
}

/// Writes one data set.
struct DataSetWriter {
    layout: DataSetLayout,
    results: Arc<[KqlResult]>,
    ids: RequestIds,
    started: Instant,
    /// Which of the results is being written.
    current: u32,
    /// The rows of it so far.
    rows: u64,
    /// The rows of all results so far.
    all_rows: u64,
}

/// The id of the first result among the tables of version 2, behind the properties.
const FIRST_RESULT_ID: u32 = 1;

impl DataSetWriter {
    fn opening(&self) -> Bytes {
        match self.layout {
            DataSetLayout::V1 | DataSetLayout::Command => format!("{{\"Tables\":[{}", self.result_opening()).into(),
            DataSetLayout::V2(frames) => {
                let placement = match frames.placement {
                    ErrorPlacement::InData => "InData",
                    ErrorPlacement::EndOfTable => "EndOfTable",
                    ErrorPlacement::EndOfDataSet => "EndOfDataSet",
                };
                let header = format!(
                    "{{\"FrameType\":\"DataSetHeader\",\"IsProgressive\":{},\"Version\":\"v2.0\",\"IsFragmented\":{},\"ErrorReportingPlacement\":\"{placement}\"}}",
                    frames.is_progressive,
                    frames.in_fragments(),
                );
                let shown = (FIRST_RESULT_ID..).zip(self.results.iter());
                let shown = shown.map(|(id, result)| json!([id, "Visualization", visualization(result)]));
                let properties = v2_table(
                    0,
                    "QueryProperties",
                    "@ExtendedProperties",
                    &[("TableId", KqlType::Int), ("Key", KqlType::String), ("Value", KqlType::Dynamic)],
                    &shown.collect::<Vec<_>>(),
                );
                let comma = frames.comma();
                format!("[{header}{comma}{properties}{comma}{}", self.result_opening()).into()
            }
        }
    }

    fn result_id(&self) -> u32 {
        FIRST_RESULT_ID + self.current
    }

    fn columns(&self) -> &[KqlColumn] {
        self.results.get(self.current as usize).map(|result| result.columns.as_slice()).unwrap_or_default()
    }

    fn has_more_results(&self) -> bool {
        (self.current as usize) + 1 < self.results.len()
    }

    /// Ends the current result without a failure and begins the next.
    fn next_result(&mut self) -> Bytes {
        let comma = match self.layout {
            DataSetLayout::V1 | DataSetLayout::Command => ",",
            DataSetLayout::V2(frames) => frames.comma(),
        };
        let closing = self.result_closing(None);
        self.current += 1;
        self.rows = 0;
        format!("{closing}{comma}{}", self.result_opening()).into()
    }

    /// Returns what stands before the current result's rows.
    fn result_opening(&self) -> String {
        let columns = self.columns().iter().map(|column| (column.name.as_str(), column.kql_type));
        match self.layout {
            DataSetLayout::V1 | DataSetLayout::Command => v1_opening(&format!("Table_{}", self.current), columns),
            DataSetLayout::V2(frames) => {
                let kind = if frames.in_fragments() { "TableHeader" } else { "DataTable" };
                let result = v2_opening(kind, self.result_id(), "PrimaryResult", "PrimaryResult", columns);
                let end = if frames.in_fragments() { "}" } else { ",\"Rows\":[" };
                format!("{result}{end}")
            }
        }
    }

    /// Returns what stands behind the current result's rows.
    fn result_closing(&self, failure: Option<&ApiError>) -> String {
        match self.layout {
            DataSetLayout::V1 | DataSetLayout::Command => {
                format!("{}]}}", failure.map(|failure| self.failed_row(failure)).unwrap_or_default())
            }
            DataSetLayout::V2(frames) => self.v2_result_closing(frames, failure),
        }
    }

    fn batch(&mut self, batch: &RecordBatch) -> Bytes {
        let mut out = Vec::new();
        if batch.num_rows() == 0 {
            return out.into();
        }
        let fragments = match self.layout {
            DataSetLayout::V2(frames) if frames.in_fragments() => Some(frames),
            _ => None,
        };
        match fragments {
            Some(frames) => out.extend_from_slice(
                format!(
                    "{}{{\"FrameType\":\"TableFragment\",\"TableFragmentType\":\"DataAppend\",\"TableId\":{},\"Rows\":[",
                    frames.comma(),
                    self.result_id(),
                )
                .as_bytes(),
            ),
            None if self.rows > 0 => out.push(b','),
            None => {}
        }
        for row in 0..batch.num_rows() {
            if row > 0 {
                out.push(b',');
            }
            out.push(b'[');
            for (index, (column, array)) in self.columns().iter().zip(batch.columns()).enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                column.write_json(array, row, &mut out);
            }
            out.push(b']');
        }
        self.rows += batch.num_rows() as u64;
        self.all_rows += batch.num_rows() as u64;
        if let Some(frames) = fragments {
            out.extend_from_slice(b"]}");
            if frames.is_progressive {
                // The fraction that is done is not known before the end.
                let progress = format!(
                    "{}{{\"FrameType\":\"TableProgress\",\"TableId\":{},\"TableProgress\":0.0}}",
                    frames.comma(),
                    self.result_id(),
                );
                out.extend_from_slice(progress.as_bytes());
            }
        }
        out.into()
    }

    fn closing(&self, failure: Option<&ApiError>) -> Bytes {
        match self.layout {
            DataSetLayout::V1 => self.v1_closing(failure, true),
            DataSetLayout::Command => self.v1_closing(failure, false),
            DataSetLayout::V2(frames) => self.v2_closing(frames, failure),
        }
        .into()
    }

    /// Returns what stands in place of a row that could not be made.
    fn failed_row(&self, failure: &ApiError) -> String {
        let comma = if self.rows > 0 { "," } else { "" };
        let error = one_api_error(failure, &self.ids);
        format!("{comma}{}", json!({ "Exceptions": [description(failure)], "OneApiErrors": [error] }))
    }

    fn v1_closing(&self, failure: Option<&ApiError>, has_all_tables: bool) -> String {
        let result = self.result_closing(failure);
        let exceptions = failure.map(|failure| format!(",\"Exceptions\":{}", json!([description(failure)])));
        let exceptions = exceptions.unwrap_or_default();
        if !has_all_tables {
            return format!("{result}]{exceptions}}}");
        }
        let (severity, name, code) = if failure.is_some() { (2, "Error", -1) } else { (4, "Info", 0) };
        let told = failure.map_or_else(|| "Query completed successfully".to_owned(), description);
        let status = |severity: i32, name: &str, code: i32, told: &str| {
            json!([
                timestamp(),
                severity,
                name,
                code,
                told,
                1,
                self.ids.activity,
                self.ids.activity,
                Uuid::nil(),
                self.ids.client
            ])
        };
        // A failure ends the answer in the middle: the results behind it are not there.
        let results = self.current + 1;
        let written = self.results.iter().take(results as usize);
        let shown: Vec<_> = written.map(|result| json!([visualization(result)])).collect();
        let properties = v1_table(&format!("Table_{results}"), &[("Value", KqlType::String)], &shown);
        let statuses = v1_table(
            &format!("Table_{}", results + 1),
            &[
                ("Timestamp", KqlType::DateTime),
                ("Severity", KqlType::Int),
                ("SeverityName", KqlType::String),
                ("StatusCode", KqlType::Int),
                ("StatusDescription", KqlType::String),
                ("Count", KqlType::Int),
                ("RequestId", KqlType::Guid),
                ("ActivityId", KqlType::Guid),
                ("SubActivityId", KqlType::Guid),
                ("ClientActivityId", KqlType::String),
            ],
            &[status(severity, name, code, &told), status(6, "Stats", 0, &self.consumption())],
        );
        let entry = |ordinal: u32, kind: &str, name: &str, id: Uuid| json!([ordinal, kind, name, id, ""]);
        let mut entries: Vec<_> =
            (0..results).map(|at| entry(at, "QueryResult", "PrimaryResult", Uuid::new_v4())).collect();
        entries.push(entry(results, "QueryProperties", "@ExtendedProperties", Uuid::new_v4()));
        entries.push(entry(results + 1, "QueryStatus", "QueryStatus", Uuid::nil()));
        let contents = v1_table(
            &format!("Table_{}", results + 2),
            &[
                ("Ordinal", KqlType::Long),
                ("Kind", KqlType::String),
                ("Name", KqlType::String),
                ("Id", KqlType::String),
                ("PrettyName", KqlType::String),
            ],
            &entries,
        );
        format!("{result},{properties},{statuses},{contents}]{exceptions}}}")
    }

    fn v2_result_closing(&self, frames: Frames, failure: Option<&ApiError>) -> String {
        let comma = frames.comma();
        let at_end_of_table = failure
            .filter(|_| frames.placement == ErrorPlacement::EndOfTable)
            .map(|failure| format!(",\"OneApiErrors\":{}", json!([one_api_error(failure, &self.ids)])))
            .unwrap_or_default();
        let in_data = failure.filter(|_| frames.placement == ErrorPlacement::InData);
        if frames.in_fragments() {
            let id = self.result_id();
            let failed = in_data.map(|failure| {
                let row = self.failed_row(failure);
                let row = row.trim_start_matches(',');
                format!(
                    "{comma}{{\"FrameType\":\"TableFragment\",\"TableFragmentType\":\"DataAppend\",\"TableId\":{id},\"Rows\":[{row}]}}"
                )
            });
            let rows = self.rows;
            format!(
                "{}{comma}{{\"FrameType\":\"TableCompletion\",\"TableId\":{id},\"RowCount\":{rows}{at_end_of_table}}}",
                failed.unwrap_or_default()
            )
        } else {
            let failed = in_data.map(|failure| self.failed_row(failure)).unwrap_or_default();
            format!("{failed}]{at_end_of_table}}}")
        }
    }

    fn v2_closing(&self, frames: Frames, failure: Option<&ApiError>) -> String {
        let comma = frames.comma();
        let result = self.result_closing(failure);
        let errors = failure.map(|failure| json!([one_api_error(failure, &self.ids)]).to_string());
        let event = |level: i32, name: &str, code: i32, code_name: &str, event: i32, event_name: &str, told: &str| {
            json!([
                timestamp(),
                self.ids.client,
                self.ids.activity,
                self.ids.activity,
                Uuid::nil(),
                level,
                name,
                code,
                code_name,
                event,
                event_name,
                told,
            ])
        };
        let outcome = match failure {
            None => {
                let told = json!({ "Count": 1, "Text": "Query completed successfully" }).to_string();
                event(4, "Info", 0, "S_OK (0)", 4, "QueryInfo", &told)
            }
            Some(failure) => event(2, "Error", -1, failure.code().as_str(), 4, "QueryInfo", &description(failure)),
        };
        let consumption = event(6, "Stats", 0, "S_OK (0)", 0, "QueryResourceConsumption", &self.consumption());
        // The completion has the id behind the last result's, also where a failure left results out.
        let completion = v2_table(
            FIRST_RESULT_ID + self.results.len() as u32,
            "QueryCompletionInformation",
            "QueryCompletionInformation",
            &[
                ("Timestamp", KqlType::DateTime),
                ("ClientRequestId", KqlType::String),
                ("ActivityId", KqlType::Guid),
                ("SubActivityId", KqlType::Guid),
                ("ParentActivityId", KqlType::Guid),
                ("Level", KqlType::Int),
                ("LevelName", KqlType::String),
                ("StatusCode", KqlType::Int),
                ("StatusCodeName", KqlType::String),
                ("EventType", KqlType::Int),
                ("EventTypeName", KqlType::String),
                ("Payload", KqlType::String),
            ],
            &[outcome, consumption],
        );
        let has_errors = failure.is_some();
        let is_cancelled = failure.is_some_and(|failure| failure.code() == ErrorCode::Cancelled);
        let errors = errors.map(|errors| format!(",\"OneApiErrors\":{errors}")).unwrap_or_default();
        let end = if frames.on_lines { "\n]" } else { "]" };
        format!(
            "{result}{comma}{completion}{comma}{{\"FrameType\":\"DataSetCompletion\",\"HasErrors\":{has_errors},\"Cancelled\":{is_cancelled}{errors}}}{end}"
        )
    }

    fn consumption(&self) -> String {
        let seconds = self.started.elapsed().as_secs_f64();
        json!({ "ExecutionTime": seconds, "dataset_statistics": [{ "table_row_count": self.all_rows }] }).to_string()
    }
}

impl Frames {
    fn in_fragments(self) -> bool {
        self.is_progressive || self.is_fragmented
    }

    fn comma(self) -> &'static str {
        if self.on_lines { "\n," } else { "," }
    }
}

/// Returns how to show the result, in Kusto's names; properties that `render` did not set are null.
fn visualization(result: &KqlResult) -> String {
    let rendering = result.rendering.as_ref();
    const PROPERTIES: [&str; 16] = [
        "Title",
        "XColumn",
        "Series",
        "YColumns",
        "AnomalyColumns",
        "XTitle",
        "YTitle",
        "XAxis",
        "YAxis",
        "Legend",
        "YSplit",
        "Kind",
        "Ymin",
        "Ymax",
        "Xmin",
        "Xmax",
    ];
    let said = |name: &str| {
        let properties = rendering.map(|rendering| rendering.properties.as_slice()).unwrap_or_default();
        properties.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    let mut members = vec![("Visualization", json!(rendering.map(|rendering| &rendering.chart)))];
    let unset = |name: &str| if matches!(name, "Ymin" | "Ymax") { json!("NaN") } else { Value::Null };
    members.extend(PROPERTIES.iter().map(|name| (*name, said(name).map_or_else(|| unset(name), |text| json!(text)))));
    members.push(("Accumulate", json!(said("accumulate").is_some_and(|text| text.eq_ignore_ascii_case("true")))));
    members.push(("IsQuerySorted", json!(false)));
    let members: Vec<String> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", members.join(","))
}
