//! LIKE with a pattern that is no short constant as a call of a function, so that it has the bounds of calls. A matcher may take
//! each byte of a text for each character of its pattern, which for long ones of both is minutes in which nobody looks whether the
//! query has been ended.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Expr, Like, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{Column, LikeExpr, Literal};

use super::function::CallBounds;
use crate::limits::argument_bytes;

/// The longest constant pattern that stays an operator, by which files may be left out.
const MAX_BYTES: usize = 256;
/// The most `_` of such a pattern: an automaton may have two states for each set of them.
const MAX_PLACES: usize = 8;
/// The longest pattern that is taken for one which becomes an automaton, but for its `_`, and how many of its characters are a
/// step then.
const MAX_AUTOMATON_BYTES: usize = 512;
const AUTOMATON_SHARE: usize = 16;
/// How many comparisons of bytes a step of a matcher is worth.
const STEP_PAIRS: u128 = 100;
/// The part of the names of these functions.
const NAME: &str = "like_pattern";

/// Which LIKE it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct LikeKind {
    is_negated: bool,
    ignores_case: bool,
}

/// A match of a text, the first argument, with a pattern, the second.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternMatch {
    signature: Signature,
    kind: LikeKind,
}

/// All of them, within bounds.
static MATCHES: LazyLock<Vec<(LikeKind, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    let kinds = flags.into_iter().map(|(is_negated, ignores_case)| LikeKind { is_negated, ignores_case });
    kinds.map(|kind| (kind, PatternMatch::new_udf(kind))).collect()
});

impl PatternMatch {
    fn new_udf(kind: LikeKind) -> Arc<ScalarUDF> {
        let function = Self { signature: Signature::any(2, Volatility::Immutable), kind };
        CallBounds::around(Arc::new(ScalarUDF::new_from_impl(function)))
    }

    /// All of these functions, within bounds.
    pub(super) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
        MATCHES.iter().map(|(_, function)| Arc::clone(function))
    }

    /// Returns LIKE as the call that it is; `None` of other expressions, and where the pattern is a quick constant.
    pub(super) fn of_operator(expr: &Expr) -> Option<Expr> {
        let Expr::Like(like) = expr else { return None };
        if is_quick(&like.pattern) || !matches!(like.escape_char, None | Some('\\')) {
            return None;
        }
        let kind = LikeKind { is_negated: like.negated, ignores_case: like.case_insensitive };
        let (_, function) = MATCHES.iter().find(|(known, _)| *known == kind)?;
        Some(function.call(vec![like.expr.as_ref().clone(), like.pattern.as_ref().clone()]))
    }
}

impl LikeKind {
    fn operator(self, text: Expr, pattern: Expr) -> Expr {
        let (text, pattern) = (Box::new(text), Box::new(pattern));
        Expr::Like(Like::new(self.is_negated, text, pattern, None, self.ignores_case))
    }
}

/// Whether a pattern is a constant that takes about a step for each byte of a text.
fn is_quick(pattern: &Expr) -> bool {
    let Expr::Literal(value, _) = pattern else { return false };
    // One of another type is null, or is refused.
    let Some(Some(pattern)) = value.try_as_str() else { return true };
    pattern.len() <= MAX_BYTES && pattern.matches('_').count() <= MAX_PLACES
}

impl ScalarUDFImpl for PatternMatch {
    fn name(&self) -> &'static str {
        match (self.kind.is_negated, self.kind.ignores_case) {
            (false, false) => NAME,
            (false, true) => "ilike_pattern",
            (true, false) => "not_like_pattern",
            (true, true) => "not_ilike_pattern",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(match args {
            [text, pattern] => self.kind.operator(text.clone(), pattern.clone()).schema_name().to_string(),
            _ => self.name().to_owned(),
        })
    }

    /// A pattern that is a constant by now may be a quick one.
    fn simplify(&self, args: Vec<Expr>, _: &SimplifyContext) -> Result<ExprSimplifyResult> {
        Ok(match <[Expr; 2]>::try_from(args) {
            Ok([text, pattern]) if is_quick(&pattern) => {
                ExprSimplifyResult::Simplified(self.kind.operator(text, pattern))
            }
            Ok(args) => ExprSimplifyResult::Original(args.into()),
            Err(args) => ExprSimplifyResult::Original(args),
        })
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = args.number_rows;
        let Ok([text, pattern]) = <[ColumnarValue; 2]>::try_from(args.args) else {
            return exec_err!("{} takes a text and a pattern", self.name());
        };
        let mut columns = Vec::new();
        let (text, pattern) = (operand(text, &mut columns), operand(pattern, &mut columns));
        let field = |column: &ArrayRef| Field::new("operand", column.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
        LikeExpr::new(self.kind.is_negated, self.kind.ignores_case, text, pattern).evaluate(&batch)
    }
}

/// Returns an argument as an operator takes it; rows of it become one of the columns.
fn operand(value: ColumnarValue, columns: &mut Vec<ArrayRef>) -> Arc<dyn PhysicalExpr> {
    match value {
        ColumnarValue::Scalar(value) => Arc::new(Literal::new(value)),
        ColumnarValue::Array(array) => {
            columns.push(array);
            Arc::new(Column::new("operand", columns.len() - 1))
        }
    }
}

/// Returns how much a call of LIKE takes, in comparisons of bytes: the text's bytes for each character of the largest pattern; 0 of
/// other functions.
pub(super) fn compared_with_pattern(name: &str, arguments: &[ColumnarValue], rows: usize) -> u128 {
    let [text, pattern] = arguments else { return 0 };
    if !name.contains(NAME) {
        return 0;
    }
    let states = match pattern {
        ColumnarValue::Scalar(value) => value.try_as_str().flatten().map_or(0, states_of),
        ColumnarValue::Array(array) => most_states(array.as_ref()),
    };
    argument_bytes(text, rows) as u128 * states as u128 * STEP_PAIRS
}

fn most_states(patterns: &dyn Array) -> usize {
    match patterns.data_type() {
        DataType::Utf8 => patterns.as_string::<i32>().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::LargeUtf8 => patterns.as_string::<i64>().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::Utf8View => patterns.as_string_view().iter().flatten().map(states_of).max().unwrap_or(0),
        DataType::Dictionary(_, _) => most_states(patterns.as_any_dictionary().values().as_ref()),
        _ => 0,
    }
}

fn states_of(pattern: &str) -> usize {
    match pattern.len() {
        bytes if bytes <= MAX_AUTOMATON_BYTES => bytes.div_ceil(AUTOMATON_SHARE) + pattern.matches('_').count(),
        bytes => bytes,
    }
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn call(expr: &Expr) -> Option<String> {
        match PatternMatch::of_operator(expr)? {
            Expr::ScalarFunction(call) => Some(call.name().to_owned()),
            other => panic!("{other}"),
        }
    }

    #[test]
    fn quick_patterns_stay_operators() {
        assert_eq!(call(&col("t").like(lit("%error%"))), None);
        assert_eq!(call(&col("t").like(lit("a".repeat(300)))).as_deref(), Some("like_pattern"));
        assert_eq!(call(&col("t").not_ilike(col("p"))).as_deref(), Some("not_ilike_pattern"));
        assert_eq!(call(&col("t").like(lit("a_________b"))).as_deref(), Some("like_pattern"));
        let named = col("t").like(col("p"));
        let of_call = PatternMatch::of_operator(&named).unwrap();
        assert_eq!(of_call.schema_name().to_string(), named.schema_name().to_string(), "a column keeps its name");
    }

    #[test]
    fn matches_are_measured_by_text_and_pattern() {
        let texts = ColumnarValue::Array(Arc::new(StringArray::from(vec!["a".repeat(1_000); 10])));
        let of = |pattern: ColumnarValue| compared_with_pattern(NAME, &[texts.clone(), pattern], 10);
        let of_text = |text: &str| of(ColumnarValue::Scalar(ScalarValue::from(text)));
        let quick = of_text("a%");
        assert!((1_000_000..1_100_000).contains(&quick), "{quick}");
        assert_eq!(of_text("a%__"), 3 * quick);
        let (short, long) = ("a%", "a%".repeat(500));
        let columns = ColumnarValue::Array(Arc::new(StringArray::from(vec![short, long.as_str()])));
        assert_eq!(of(columns), 1_000 * quick);
        assert_eq!(compared_with_pattern("concat", &[texts.clone(), texts.clone()], 10), 0);
    }
}
