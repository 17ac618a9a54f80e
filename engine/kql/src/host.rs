//! What planning a query needs from outside, as a trait: tables, rows of sub-queries, files, memory, time. The planner
//! asks one question at a time and knows nothing of who answers, so rights, catalogs and limits stay the host's
//! business.
//!
//! A DataFusion [`SessionState`] is a host as it is: its tables are those of its catalogs, and it has no limits.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::common::TableReference;
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::{LogicalPlan, TableSource};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};

use crate::bind_error::BindErrorCode;
use crate::literal_rows::is_over_literals;
use crate::{AskedLimits, KqlError, KqlErrorCode};

/// A table by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TableKey {
    /// Its database, where the query names one.
    pub database: Option<String>,
    /// Its name, or the pattern of a wildcard.
    pub table: String,
}

/// A stored graph by name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GraphKey {
    /// Its model.
    pub model: String,
    /// Which of its states.
    pub version: GraphVersion,
}

/// Which state of a stored graph is meant.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum GraphVersion {
    /// The latest snapshot; the tables as they are where there is none.
    Latest,
    /// The snapshot of this name.
    Snapshot(String),
    /// The tables as they are.
    Transient,
}

/// Arrow's canonical extension type of texts that hold JSON.
const JSON_EXTENSION: &str = "arrow.json";

/// What a table's name stands for.
pub enum TableLookup {
    /// A table that the caller may read.
    Found {
        /// The table.
        source: Arc<dyn TableSource>,
        /// Its columns of text that hold JSON: they are `dynamic`, and what holds none is a string.
        json_columns: Vec<String>,
        /// Its columns of text that hold UUIDs: they are `guid`.
        uuid_columns: Vec<String>,
    },
    /// Nothing that the caller may see: the message that says so.
    Missing(String),
}

/// Files at a location that a query names in `externaldata`, and how they are read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ExternalLocation {
    /// A path or a URL, as the query has it.
    pub location: String,
    /// How the files are written.
    pub layout: ExternalLayout,
    /// Whether each file's first record is a header.
    pub skips_first: bool,
}

/// How the files of an `externaldata` are written, and so which columns the host returns for them. Except for Parquet
/// all columns are nullable strings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExternalLayout {
    /// Fields with this character between them: a column for each, in their order.
    Separated(char),
    /// One column, of lines.
    Lines,
    /// One column, of JSON records, which may be elements of arrays and take several lines.
    Records,
    /// The columns that the files have.
    Parquet,
}

/// Answers what the planning of one query asks.
#[async_trait]
pub trait KqlHost: Send + Sync {
    /// The host's error, which those of planning become.
    type Error: From<KqlError> + From<DataFusionError> + Send;

    /// The database where bare names resolve, which is also `current_database()`.
    fn database(&self) -> &str;

    /// The caller, for `current_principal()`.
    fn principal(&self) -> &str {
        ""
    }

    /// Returns the table that a name stands for.
    async fn table(&self, name: &TableKey) -> Result<TableLookup, Self::Error>;

    /// Returns the names of the tables of a database (`None`: [`KqlHost::database`]) that the caller may see. The
    /// planner matches them against a wildcard.
    async fn table_names(&self, database: Option<&str>) -> Result<Vec<String>, Self::Error>;

    /// Returns the names of the databases that the caller may see, which the planner matches against a wildcard. By
    /// default there is [`KqlHost::database`] alone.
    async fn database_names(&self) -> Result<Vec<String>, Self::Error> {
        Ok(vec![self.database().to_owned()])
    }

    /// Returns the JSON definition of a stored graph of the host's database, if the caller may see one of that name. By
    /// default there are none.
    async fn stored_graph(&self, _graph: &GraphKey) -> Result<Option<String>, Self::Error> {
        Ok(None)
    }

    /// Returns the files at a location as a table. By default there are none: reading what a query names is a right
    /// that a host gives.
    async fn external_data(&self, _location: &ExternalLocation) -> Result<Arc<dyn TableSource>, Self::Error> {
        Err(KqlError {
            code: KqlErrorCode::Bind(BindErrorCode::NotSupported),
            message: "externaldata is known to Kusto, but not supported here".to_owned(),
            hint: None,
        }
        .into())
    }

    /// Runs a part of the query whose rows decide how the rest is planned. `plan` is not analysed.
    async fn rows(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream, Self::Error>;

    /// Plans a part of the query that runs once, with the query, however often the query uses it. `plan` is not
    /// analysed.
    async fn physical_plan(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>, Self::Error>;

    /// Reserves memory for what the plan keeps of rows that were read for it, until the query has run.
    fn reserve(&self, _bytes: usize) -> Result<(), Self::Error> {
        Ok(())
    }

    /// Sees to it that the query keeps the limits that it asks for. Errors: it cannot, as by default.
    fn keep_limits(&self, _asked: &AskedLimits) -> Result<(), Self::Error> {
        Err(KqlError {
            code: KqlErrorCode::Bind(BindErrorCode::NotSupported),
            message: "`set servertimeout`, `truncationmaxrecords` and `truncationmaxsize` are not supported here"
                .to_owned(),
            hint: Some("leave them out; `take` and `set query_take_max_records` bound the rows".to_owned()),
        }
        .into())
    }

    /// Returns an error once planning is to end.
    fn check_interrupt(&self) -> Result<(), Self::Error> {
        Ok(())
    }
}

#[async_trait]
impl KqlHost for SessionState {
    type Error = DataFusionError;

    fn database(&self) -> &str {
        &self.config_options().catalog.default_schema
    }

    async fn table(&self, name: &TableKey) -> Result<TableLookup, DataFusionError> {
        let database = name.database.as_deref().unwrap_or(self.database());
        let schema = self.schema_for_ref(TableReference::partial(database, name.table.as_str()))?;
        Ok(match schema.table(&name.table).await? {
            Some(table) => {
                let schema = table.schema();
                let json = schema.fields().iter().filter(|field| field.extension_type_name() == Some(JSON_EXTENSION));
                let json_columns = json.map(|field| field.name().clone()).collect();
                TableLookup::Found { source: provider_as_source(table), json_columns, uuid_columns: Vec::new() }
            }
            None => TableLookup::Missing(format!("unknown table `{}` in database `{database}`", name.table)),
        })
    }

    async fn table_names(&self, database: Option<&str>) -> Result<Vec<String>, DataFusionError> {
        let any_table = TableReference::partial(database.unwrap_or(self.database()), "");
        Ok(self.schema_for_ref(any_table)?.table_names())
    }

    async fn rows(&self, plan: LogicalPlan) -> Result<SendableRecordBatchStream, DataFusionError> {
        execute_stream(self.physical_plan(plan).await?, self.task_ctx())
    }

    async fn physical_plan(&self, plan: LogicalPlan) -> Result<Arc<dyn ExecutionPlan>, DataFusionError> {
        if !is_over_literals(&plan) {
            return self.create_physical_plan(&plan).await;
        }
        let mut state = self.clone();
        state.config_mut().options_mut().execution.target_partitions = 1;
        state.create_physical_plan(&plan).await
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "a test has a runtime of its own")]
mod tests {
    use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use arrow::datatypes::{DataType, Field, Schema};
    use datafusion::prelude::SessionContext;
    use futures::TryStreamExt;

    use super::*;
    use crate::{KqlParameters, PlannedKql};

    /// A session with tables `events1` of 1, 2, 3 and `events2` of 3, 4.
    fn session() -> SessionState {
        let context = SessionContext::new();
        for (name, values) in [("events1", vec![1_i64, 2, 3]), ("events2", vec![3, 4])] {
            let values = Arc::new(Int64Array::from(values));
            let batch = RecordBatch::try_from_iter([("v", values as _)]).unwrap();
            context.register_batch(name, batch).unwrap();
        }
        context.state()
    }

    async fn cells(query: &str) -> Result<Vec<String>, DataFusionError> {
        let state = session();
        let PlannedKql { plan, columns, .. } = crate::plan(&state, query, &KqlParameters::new()).await?;
        let batches: Vec<RecordBatch> = state.rows(plan).await?.try_collect().await?;
        let row_cells = |batch: &RecordBatch, row| {
            let cells = columns.iter().zip(batch.columns());
            cells.map(|(column, array)| column.text(array.as_ref(), row)).collect::<Vec<_>>().join(",")
        };
        let rows = batches.iter().flat_map(|batch| (0..batch.num_rows()).map(move |row| row_cells(batch, row)));
        Ok(rows.collect())
    }

    #[tokio::test]
    async fn a_session_answers_every_question() {
        for (query, expected) in [
            ("events1 | summarize sum(v)", vec!["6"]),
            ("database('public').events2 | count", vec!["2"]),
            ("union events* | summarize sum(v)", vec!["13"]),
            ("events1 | where v > toscalar(events1 | summarize avg(v)) | project v", vec!["3"]),
            ("let m = materialize(events1 | where v > 1); m | join kind=inner m on v | count", vec!["2"]),
            ("print current_database()", vec!["public"]),
        ] {
            assert_eq!(cells(query).await.unwrap(), expected, "{query}");
        }
    }

    #[tokio::test]
    async fn long_values_that_are_read_count_at_each_place() {
        let query = |uses: usize| {
            let uses: Vec<String> = (0..uses).map(|place| format!("b{place} = strlen(a)")).collect();
            format!("let a = toscalar(print strrep(strrep('a', 1000), 200)); print {}", uses.join(", "))
        };
        assert_eq!(cells(&query(2)).await.unwrap(), ["200000,200000"]);
        let DataFusionError::External(error) = cells(&query(1_000)).await.unwrap_err() else { panic!("another error") };
        assert_eq!(error.downcast_ref::<KqlError>().unwrap().code.as_str(), "kql_too_large");
    }

    #[tokio::test]
    async fn a_column_of_arrows_json_is_dynamic() {
        let texts = [Some(r#"{"a": {"b": 5}, "items": [1, 2]}"#), Some("plain"), None];
        let field = Field::new("payload", DataType::Utf8, true)
            .with_metadata([("ARROW:extension:name".to_owned(), JSON_EXTENSION.to_owned())].into());
        let columns: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![columns]).unwrap();
        let context = SessionContext::new();
        context.register_batch("t", batch).unwrap();
        let query = "t | project gettype(payload), payload.a.b, array_length(payload.items), isnull(payload)";
        let planned = crate::plan(&context.state(), query, &KqlParameters::new()).await.unwrap();
        let batches: Vec<RecordBatch> = context.state().rows(planned.plan).await.unwrap().try_collect().await.unwrap();
        let cell = |row| {
            let cells = planned.columns.iter().zip(batches[0].columns());
            cells.map(|(column, array)| column.text(array.as_ref(), row)).collect::<Vec<_>>().join(",")
        };
        assert_eq!([cell(0), cell(1), cell(2)], ["dictionary,5,2,False", "string,,,False", "null,,,True"]);
    }

    #[tokio::test]
    async fn a_session_has_only_its_tables_and_reads_no_files() {
        for (query, code) in
            [("event | count", "kql_unknown_table"), ("externaldata(a:long)['/etc/hostname']", "kql_not_supported")]
        {
            let DataFusionError::External(error) = cells(query).await.unwrap_err() else { panic!("{query}") };
            assert_eq!(error.downcast_ref::<KqlError>().unwrap().code.as_str(), code, "{query}");
        }
    }
}
