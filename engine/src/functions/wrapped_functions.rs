//! Functions around another one: [`WrappedFunction`] is the one inside of it in all that it says of itself, and a
//! [`FunctionOverride`] says what it does otherwise.
//!
//! Each method of DataFusion's trait is forwarded, also those that have a default: a method that is not would answer
//! for the wrapper instead of for the function, and nobody would be told. The lint at the implementation finds those
//! that are new.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::{ExprSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ExpressionPlacement, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, StructFieldMapping,
};

/// What a function does otherwise than the one inside of it. Each method is that of the one inside, unless it is overridden.
pub(crate) trait FunctionOverride: Debug + Clone + Eq + Hash + Send + Sync + 'static {
    /// Returns what arguments it takes.
    fn signature<'a>(&'a self, inner: &'a ScalarUDF) -> &'a Signature {
        inner.signature()
    }

    /// Returns the types that its arguments are brought to, where the signature leaves that to it.
    fn coerce_types(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        inner.coerce_types(arg_types)
    }

    /// Returns the type of its result.
    fn return_type(&self, inner: &ScalarUDF, arg_types: &[DataType]) -> Result<DataType> {
        inner.return_type(arg_types)
    }

    /// Returns the field of its result.
    fn return_field(&self, inner: &ScalarUDF, args: ReturnFieldArgs) -> Result<FieldRef> {
        inner.return_field_from_args(args)
    }

    /// Writes a call as something simpler.
    fn simplify(&self, inner: &ScalarUDF, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        inner.simplify(args, info)
    }

    /// Returns between which arguments a call has a value.
    fn preimage(
        &self,
        inner: &ScalarUDF,
        args: &[Expr],
        value: &Expr,
        info: &SimplifyContext,
    ) -> Result<PreimageResult> {
        inner.preimage(args, value, info)
    }

    /// Computes a call.
    fn invoke(&self, inner: &ScalarUDF, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        inner.invoke_with_args(args)
    }
}

/// A function that is another one but for what its override says.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct WrappedFunction<O> {
    inner: Arc<ScalarUDF>,
    otherwise: O,
}

impl<O: FunctionOverride> WrappedFunction<O> {
    /// Wraps a function.
    pub(crate) fn new_udf(inner: Arc<ScalarUDF>, otherwise: O) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self { inner, otherwise }))
    }

    /// Returns the function inside of one that is wrapped so, and what it does otherwise.
    pub(crate) fn unwrapped(function: &ScalarUDF) -> Option<(&Arc<ScalarUDF>, &O)> {
        function.inner().downcast_ref::<Self>().map(|wrapped| (&wrapped.inner, &wrapped.otherwise))
    }
}

#[warn(clippy::missing_trait_methods)]
impl<O: FunctionOverride> ScalarUDFImpl for WrappedFunction<O> {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn display_name(&self, args: &[Expr]) -> Result<String> {
        #[expect(deprecated, reason = "it is passed on")]
        self.inner.display_name(args)
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.inner.schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.otherwise.signature(&self.inner)
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.otherwise.return_type(&self.inner, arg_types)
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let inner = Arc::new(self.inner.inner().with_updated_config(config)?);
        Some(ScalarUDF::new_from_impl(Self { inner, otherwise: self.otherwise.clone() }))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.otherwise.return_field(&self.inner, args)
    }

    fn is_nullable(&self, args: &[Expr], schema: &dyn ExprSchema) -> bool {
        #[expect(deprecated, reason = "it is passed on")]
        self.inner.inner().is_nullable(args, schema)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.otherwise.invoke(&self.inner, args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        self.otherwise.simplify(&self.inner, args, info)
    }

    fn preimage(&self, args: &[Expr], lit_expr: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        self.otherwise.preimage(&self.inner, args, lit_expr, info)
    }

    fn short_circuits(&self) -> bool {
        self.inner.short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.inner.conditional_arguments(args)
    }

    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        self.inner.evaluate_bounds(inputs)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.inner.propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.inner.output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.inner.preserves_lex_ordering(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.otherwise.coerce_types(&self.inner, arg_types)
    }

    fn struct_field_mapping(&self, literal_args: &[Option<ScalarValue>]) -> Option<StructFieldMapping> {
        self.inner.struct_field_mapping(literal_args)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        self.inner.placement(args)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::functions::core::coalesce;

    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, Hash)]
    struct Nothing;
    impl FunctionOverride for Nothing {}

    #[test]
    fn what_a_trait_has_a_default_for_is_forwarded_too() {
        let wrapped = WrappedFunction::new_udf(coalesce(), Nothing);
        assert!(wrapped.short_circuits() && coalesce().short_circuits());
        let types = [DataType::Int32, DataType::Int64];
        assert_eq!(wrapped.coerce_types(&types).unwrap(), coalesce().coerce_types(&types).unwrap());
        let (inner, _) = WrappedFunction::<Nothing>::unwrapped(&wrapped).unwrap();
        assert_eq!(inner.name(), "coalesce");
    }
}
