//! What EXPLAIN and errors show of the files that a plan reads, to callers who are not administrators: their names, and not where
//! on the server's disks or in its stores they lie.

use std::sync::{Arc, LazyLock};

use arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::config::ConfigOptions;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::ProjectionExec;
use querent_catalog::Role;

use super::Session;
use crate::error::{EngineError, Result};
use crate::limits::QueryUsage;
use crate::stream::QueryStream;

/// The column that has the text of a plan.
const PLAN: &str = "plan";
/// What stands before the places of files, and what ends them: scans of files, and Lance's.
const LISTINGS: [(&str, &[char]); 2] = [("file_groups={", &['}']), ("uri=", &[',', '\n'])];

static NAMES_OF_FILES: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let signature = Signature::exact(vec![DataType::Utf8], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(NamesOfFiles { signature }))
});

impl Session {
    /// Returns the stream, or the error, of a query of this caller, which say where files lie to administrators only.
    pub(super) fn without_places(&self, begun: Result<QueryStream>, usage: &QueryUsage) -> Result<QueryStream> {
        match begun {
            Ok(stream) if self.principal.role() == Role::Admin => Ok(stream),
            Ok(stream) => Ok(stream.without_places(usage.places())),
            Err(error) => Err(self.error_without_places(error, usage)),
        }
    }

    /// Returns an error as this caller reads it: it says where files lie to administrators only.
    pub(super) fn error_without_places(&self, error: EngineError, usage: &QueryUsage) -> EngineError {
        match self.principal.role() {
            Role::Admin => error,
            Role::Read | Role::Write => error.without_places(&usage.places().lock()),
        }
    }

    /// Returns what EXPLAIN and EXPLAIN ANALYZE show this caller.
    pub(super) fn with_names_of_files(&self, shown: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        if self.principal.role() == Role::Admin {
            return Ok(shown);
        }
        let schema = shown.schema();
        let mut columns: Vec<(Arc<dyn PhysicalExpr>, String)> = Vec::with_capacity(schema.fields().len());
        for (index, field) in schema.fields().iter().enumerate() {
            let mut column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), index));
            if field.name() == PLAN && *field.data_type() == DataType::Utf8 {
                let options = Arc::new(ConfigOptions::default());
                let names = ScalarFunctionExpr::try_new(Arc::clone(&NAMES_OF_FILES), vec![column], &schema, options)?;
                column = Arc::new(names);
            }
            columns.push((column, field.name().clone()));
        }
        Ok(Arc::new(ProjectionExec::try_new(columns, shown)?))
    }
}

/// Returns rows of a plan without the folders of files.
pub(super) fn batch_with_names_of_files(batch: &RecordBatch) -> DataFusionResult<RecordBatch> {
    let columns = batch.schema_ref().fields().iter().zip(batch.columns()).map(|(field, column)| {
        match field.name() == PLAN && *field.data_type() == DataType::Utf8 {
            true => Arc::new(names_in_texts(column)) as ArrayRef,
            false => Arc::clone(column),
        }
    });
    Ok(RecordBatch::try_new(batch.schema(), columns.collect())?)
}

fn names_in_texts(texts: &ArrayRef) -> StringArray {
    texts.as_string::<i32>().iter().map(|text| text.map(without_folders)).collect()
}

/// Takes the folders of files out of the text of a plan.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamesOfFiles {
    signature: Signature,
}

impl ScalarUDFImpl for NamesOfFiles {
    fn name(&self) -> &'static str {
        "names_of_files"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> DataFusionResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> DataFusionResult<FieldRef> {
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), DataType::Utf8, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> DataFusionResult<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let shown = arrays.first().map_or_else(|| StringArray::new_null(0), names_in_texts);
        Ok(ColumnarValue::Array(Arc::new(shown)))
    }
}

fn without_folders(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let next = LISTINGS.iter().filter_map(|(begin, ends)| rest.find(*begin).map(|at| (at + begin.len(), *ends)));
        let Some((from, ends)) = next.min_by_key(|(from, _)| *from) else {
            shown.push_str(rest);
            return shown;
        };
        let to = rest[from..].find(ends).map_or(rest.len(), |length| from + length);
        shown.push_str(&rest[..from]);
        for place in rest[from..to].split_inclusive(['[', ']', ',']) {
            match place.rfind('/') {
                Some(slash) => {
                    shown.push_str(if place.starts_with(' ') { " " } else { "" });
                    shown.push_str(&place[slash + 1..]);
                }
                None => shown.push_str(place),
            }
        }
        rest = &rest[to..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_left_out() {
        let plan = "DataSourceExec: file_groups={2 groups: [[srv/a lake/t/x.parquet:0..9, srv/t/y.parquet, ...], []]}, \
                    projection=[a / b]\n  LanceRead: uri=srv/lake/v.lance, projection=[v]";
        let shown = "DataSourceExec: file_groups={2 groups: [[x.parquet:0..9, y.parquet, ...], []]}, \
                     projection=[a / b]\n  LanceRead: uri=v.lance, projection=[v]";
        assert_eq!(without_folders(plan), shown);
        assert_eq!(without_folders("uri=/srv/v.lance"), "uri=v.lance");
        assert_eq!(without_folders("no files"), "no files");
    }
}
