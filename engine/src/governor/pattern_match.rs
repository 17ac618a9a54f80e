//! LIKE with a pattern that is no short constant, and `~` with a regular expression of many states or of each row, as calls of
//! functions, so that they have the bounds of calls. A matcher may take each byte of a text for each character of its pattern, which
//! for long ones of both is minutes in which nobody looks whether the query has been ended.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::{ScalarValue, exec_err};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, Like, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, binary_expr,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{self, Column, LikeExpr, Literal};

use super::expression_steps::has_many_states;
use super::function::CallBounds;
use super::text::{BoundedText, MAX_PATTERN_BYTES};
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

/// Which match it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct MatchKind {
    /// Whether its pattern is a regular expression; otherwise it is LIKE.
    is_expression: bool,
    is_negated: bool,
    ignores_case: bool,
}

/// A match of a text, the first argument, with a pattern, the second.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternMatch {
    signature: Signature,
    kind: MatchKind,
}

/// All of them, within bounds.
static MATCHES: LazyLock<Vec<(MatchKind, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    let flags = [(false, false), (false, true), (true, false), (true, true)];
    let of_flags = |is_expression: bool| {
        flags.map(|(is_negated, ignores_case)| MatchKind { is_expression, is_negated, ignores_case })
    };
    let kinds = [of_flags(false), of_flags(true)].into_iter().flatten();
    kinds.map(|kind| (kind, PatternMatch::new_udf(kind))).collect()
});

impl PatternMatch {
    fn new_udf(kind: MatchKind) -> Arc<ScalarUDF> {
        let function = Self { signature: Signature::any(2, Volatility::Immutable), kind };
        CallBounds::around(Arc::new(ScalarUDF::new_from_impl(function)))
    }

    /// All of these functions, within bounds.
    pub(super) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
        MATCHES.iter().map(|(_, function)| Arc::clone(function))
    }

    /// Returns a match as the call that it is; `None` of other expressions, and where the pattern is a quick one.
    pub(super) fn of_operator(expr: &Expr) -> Option<Expr> {
        let (kind, text, pattern) = match expr {
            Expr::Like(Like { negated, expr, pattern, escape_char: None | Some('\\'), case_insensitive }) => {
                let kind = MatchKind { is_expression: false, is_negated: *negated, ignores_case: *case_insensitive };
                (kind, expr, pattern)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => (MatchKind::of_operator(*op)?, left, right),
            _ => return None,
        };
        if kind.is_quick(pattern) {
            return None;
        }
        let (_, function) = MATCHES.iter().find(|(known, _)| *known == kind)?;
        let pattern = pattern.as_ref().clone();
        // Those of a batch are kept together.
        let pattern = match kind.is_expression && !matches!(pattern, Expr::Literal(_, _)) {
            true => BoundedText::regular_expression().call(vec![pattern]),
            false => pattern,
        };
        Some(function.call(vec![text.as_ref().clone(), pattern]))
    }
}

impl MatchKind {
    /// Returns the match with a regular expression that an operator is; `None` of others.
    fn of_operator(operator: Operator) -> Option<Self> {
        let (is_negated, ignores_case) = match operator {
            Operator::RegexMatch => (false, false),
            Operator::RegexIMatch => (false, true),
            Operator::RegexNotMatch => (true, false),
            Operator::RegexNotIMatch => (true, true),
            _ => return None,
        };
        Some(Self { is_expression: true, is_negated, ignores_case })
    }

    /// Returns the operator of a match with a regular expression.
    fn expression_operator(self) -> Operator {
        match (self.is_negated, self.ignores_case) {
            (false, false) => Operator::RegexMatch,
            (false, true) => Operator::RegexIMatch,
            (true, false) => Operator::RegexNotMatch,
            (true, true) => Operator::RegexNotIMatch,
        }
    }

    fn operator(self, text: Expr, pattern: Expr) -> Expr {
        if self.is_expression {
            return binary_expr(text, self.expression_operator(), pattern);
        }
        let (text, pattern) = (Box::new(text), Box::new(pattern));
        Expr::Like(Like::new(self.is_negated, text, pattern, None, self.ignores_case))
    }

    /// Whether a match with a pattern may stay the operator that it is.
    fn is_quick(self, pattern: &Expr) -> bool {
        if self.is_expression { !is_long_search(pattern) } else { is_quick(pattern) }
    }
}

/// Whether a regular expression is no constant, or one of many states. Those that are too long are looked at where they are parsed.
fn is_long_search(pattern: &Expr) -> bool {
    match pattern {
        Expr::Cast(Cast { expr, .. }) => is_long_search(expr),
        Expr::Literal(value, _) => value
            .try_as_str()
            .flatten()
            .is_some_and(|pattern| pattern.len() <= MAX_PATTERN_BYTES && has_many_states(pattern)),
        _ => true,
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
        let MatchKind { is_expression, is_negated, ignores_case } = self.kind;
        match (is_expression, is_negated, ignores_case) {
            (false, false, false) => NAME,
            (false, false, true) => "ilike_pattern",
            (false, true, false) => "not_like_pattern",
            (false, true, true) => "not_ilike_pattern",
            (true, false, false) => "regexp_pattern",
            (true, false, true) => "iregexp_pattern",
            (true, true, false) => "not_regexp_pattern",
            (true, true, true) => "not_iregexp_pattern",
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
            Ok([text, pattern]) if self.kind.is_quick(&pattern) => {
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
        let Ok([text, pattern]) = <[ColumnarValue; 2]>::try_from(args.args) else {
            return exec_err!("{} takes a text and a pattern", self.name());
        };
        let mut columns = Vec::new();
        let (text, pattern) = (operand(text, &mut columns), operand(pattern, &mut columns));
        let is_constant = columns.is_empty();
        let rows = if is_constant { 1 } else { args.number_rows };
        let field = |column: &ArrayRef| Field::new("operand", column.data_type().clone(), true);
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), columns, &options)?;
        let matched = if self.kind.is_expression {
            expressions::BinaryExpr::new(text, self.kind.expression_operator(), pattern).evaluate(&batch)?
        } else {
            LikeExpr::new(self.kind.is_negated, self.kind.ignores_case, text, pattern).evaluate(&batch)?
        };
        Ok(match matched {
            ColumnarValue::Array(array) if is_constant => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)
            }
            matched => matched,
        })
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
        let searched = |op: Operator, pattern: Expr| call(&binary_expr(col("t"), op, pattern));
        assert_eq!(searched(Operator::RegexMatch, lit("^a.{20}b")), None);
        assert_eq!(searched(Operator::RegexMatch, lit(".{500}x")).as_deref(), Some("regexp_pattern"));
        assert_eq!(searched(Operator::RegexNotIMatch, lit(".{500}x")).as_deref(), Some("not_iregexp_pattern"));
        assert_eq!(searched(Operator::RegexMatch, col("p")).as_deref(), Some("regexp_pattern"));
        assert_eq!(searched(Operator::Eq, lit(".{500}x")), None);
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
