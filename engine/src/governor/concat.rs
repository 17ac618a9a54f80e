//! The operator `||` as a function, so that it is bounded as functions are.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::error::Result;
use datafusion::logical_expr::binary::BinaryTypeCoercer;
use datafusion::logical_expr::{
    ColumnarValue, Expr, Operator, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr, Column, Literal};

use super::folding::fitting_plans;
use super::function::call_within;
use crate::limits::CallGrowth;

/// `left || right`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct GovernedConcat {
    signature: Signature,
}

static CONCAT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    Arc::new(ScalarUDF::new_from_impl(GovernedConcat { signature: Signature::any(2, Volatility::Immutable) }))
});

impl GovernedConcat {
    pub(super) fn new_udf() -> &'static ScalarUDF {
        &CONCAT
    }
}

impl ScalarUDFImpl for GovernedConcat {
    fn name(&self) -> &'static str {
        "||"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let [left, right] = args else { return Ok("||".to_owned()) };
        Ok(format!("{} || {}", left.schema_name(), right.schema_name()))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        let [left, right] = arg_types else { return Ok(DataType::Null) };
        BinaryTypeCoercer::new(left, &Operator::StringConcat, right).get_result_type()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        // As the operator, by whose schema what is above was planned: a UNION keeps that one.
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&types)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        fitting_plans("||", args, |args| call_within("||", CallGrowth::of_function("concat"), args, &concatenated))
    }
}

fn concatenated(args: ScalarFunctionArgs) -> Result<ColumnarValue> {
    let mut fields = Vec::new();
    let mut columns = Vec::new();
    let mut sides: Vec<Arc<dyn PhysicalExpr>> = Vec::new();
    for value in args.args {
        match value {
            ColumnarValue::Scalar(scalar) => sides.push(Arc::new(Literal::new(scalar))),
            ColumnarValue::Array(array) => {
                let name = format!("side{}", columns.len());
                sides.push(Arc::new(Column::new(&name, columns.len())));
                fields.push(Field::new(name, array.data_type().clone(), true));
                columns.push(array);
            }
        }
    }
    let [left, right] = <[_; 2]>::try_from(sides)
        .map_err(|_| datafusion::error::DataFusionError::Internal("|| has two sides".into()))?;
    let options = arrow::array::RecordBatchOptions::new().with_row_count(Some(args.number_rows));
    let batch = RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?;
    BinaryExpr::new(left, Operator::StringConcat, right).evaluate(&batch)
}
