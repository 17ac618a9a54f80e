//! Matches with patterns as calls of functions, so that they have the bounds of calls. A matcher may take each byte of a text for
//! each character of its pattern, which for long ones of both is minutes in which nobody looks whether the query has been ended.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::exec_err;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, Like, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as PhysicalBinaryExpr, Column, LikeExpr, Literal};

use super::compiled_patterns::repetitions;
use super::function::CallBounds;
use crate::limits::argument_bytes;

/// The longest constant pattern of LIKE that stays an operator, by which files may be left out.
const MAX_LIKE_BYTES: usize = 256;
/// The most `_` of such a pattern: an automaton may have two states for each set of them.
const MAX_LIKE_PLACES: usize = 8;
/// The longest constant regular expression without a counted repetition that stays an operator.
const MAX_EXPRESSION_BYTES: usize = 32;
/// The longest pattern without a counted repetition that is taken for one which becomes an automaton of few states, and how many of
/// its characters are a step then.
const MAX_AUTOMATON_BYTES: usize = 512;
const AUTOMATON_SHARE: usize = 16;
/// How many comparisons of bytes a step of a matcher is worth.
const STEP_PAIRS: u128 = 100;

/// What a text is matched with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum MatchKind {
    Like { is_negated: bool, ignores_case: bool },
    Expression(Operator),
}

/// A match of a text, the first argument, with a pattern, the second.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct PatternMatch {
    signature: Signature,
    kind: MatchKind,
}

/// All of them, within bounds.
static MATCHES: LazyLock<Vec<(MatchKind, Arc<ScalarUDF>)>> = LazyLock::new(|| {
    let flags = [false, true];
    let likes = flags
        .into_iter()
        .flat_map(|is_negated| flags.into_iter().map(move |ignores_case| MatchKind::Like { is_negated, ignores_case }));
    let operators = [Operator::RegexMatch, Operator::RegexIMatch, Operator::RegexNotMatch, Operator::RegexNotIMatch];
    let kinds = likes.chain(operators.into_iter().map(MatchKind::Expression));
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

    /// Returns a match with an operator as the call that it is, unless its pattern is a quick constant.
    pub(super) fn of_operator(expr: Expr) -> Transformed<Expr> {
        match Self::call_of(&expr) {
            Some(call) => Transformed::yes(call),
            None => Transformed::no(expr),
        }
    }

    fn call_of(expr: &Expr) -> Option<Expr> {
        let (kind, text, pattern) = match expr {
            Expr::Like(like) if matches!(like.escape_char, None | Some('\\')) => {
                let kind = MatchKind::Like { is_negated: like.negated, ignores_case: like.case_insensitive };
                (kind, &like.expr, &like.pattern)
            }
            Expr::SimilarTo(like) => {
                let operator = match (like.negated, like.case_insensitive) {
                    (false, false) => Operator::RegexMatch,
                    (false, true) => Operator::RegexIMatch,
                    (true, false) => Operator::RegexNotMatch,
                    (true, true) => Operator::RegexNotIMatch,
                };
                (MatchKind::Expression(operator), &like.expr, &like.pattern)
            }
            Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_match(*op) => {
                (MatchKind::Expression(*op), left, right)
            }
            _ => return None,
        };
        if kind.is_quick(pattern) {
            return None;
        }
        let (_, function) = MATCHES.iter().find(|(known, _)| *known == kind)?;
        Some(function.call(vec![text.as_ref().clone(), pattern.as_ref().clone()]))
    }
}

impl MatchKind {
    fn operator(self, text: Expr, pattern: Expr) -> Expr {
        let (text, pattern) = (Box::new(text), Box::new(pattern));
        match self {
            MatchKind::Like { is_negated, ignores_case } => {
                Expr::Like(Like::new(is_negated, text, pattern, None, ignores_case))
            }
            MatchKind::Expression(operator) => Expr::BinaryExpr(BinaryExpr::new(text, operator, pattern)),
        }
    }

    /// Whether a pattern is a constant that takes about a step for each byte of a text.
    fn is_quick(self, pattern: &Expr) -> bool {
        let Expr::Literal(value, _) = pattern else { return false };
        // One of another type is null, or is refused.
        let Some(Some(pattern)) = value.try_as_str() else { return true };
        match self {
            MatchKind::Like { .. } => {
                pattern.len() <= MAX_LIKE_BYTES && pattern.matches('_').count() <= MAX_LIKE_PLACES
            }
            MatchKind::Expression(_) => pattern.len() <= MAX_EXPRESSION_BYTES && !pattern.contains('{'),
        }
    }
}

/// Whether an operator's right side is a regular expression.
fn is_match(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch
    )
}

impl ScalarUDFImpl for PatternMatch {
    fn name(&self) -> &'static str {
        match self.kind {
            MatchKind::Like { is_negated: false, ignores_case: false } => "like_pattern",
            MatchKind::Like { is_negated: false, ignores_case: true } => "ilike_pattern",
            MatchKind::Like { is_negated: true, ignores_case: false } => "not_like_pattern",
            MatchKind::Like { is_negated: true, ignores_case: true } => "not_ilike_pattern",
            MatchKind::Expression(Operator::RegexIMatch) => "regexp_imatch_pattern",
            MatchKind::Expression(Operator::RegexNotMatch) => "regexp_not_match_pattern",
            MatchKind::Expression(Operator::RegexNotIMatch) => "regexp_not_imatch_pattern",
            MatchKind::Expression(_) => "regexp_match_pattern",
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
        match self.kind {
            MatchKind::Like { is_negated, ignores_case } => {
                LikeExpr::new(is_negated, ignores_case, text, pattern).evaluate(&batch)
            }
            MatchKind::Expression(operator) => PhysicalBinaryExpr::new(text, operator, pattern).evaluate(&batch),
        }
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

/// Returns how much a match of a text with a pattern takes, in comparisons of bytes: the text's bytes for each character of the
/// largest pattern, its counted repetitions written out.
pub(super) fn match_pairs(text: &ColumnarValue, pattern: &ColumnarValue, rows: usize) -> u128 {
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
    if pattern.len() <= MAX_AUTOMATON_BYTES && !pattern.contains('{') {
        return pattern.len().div_ceil(AUTOMATON_SHARE);
    }
    pattern.len().saturating_mul(repetitions(pattern))
}

#[cfg(test)]
mod tests {
    use arrow::array::StringArray;
    use datafusion::common::ScalarValue;
    use datafusion::logical_expr::{col, lit};

    use super::*;

    fn call(expr: &Expr) -> Option<String> {
        match PatternMatch::call_of(expr)? {
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
        let matched = |pattern: &str| {
            Expr::BinaryExpr(BinaryExpr::new(Box::new(col("t")), Operator::RegexMatch, Box::new(lit(pattern))))
        };
        assert_eq!(call(&matched("^a.*b$")), None);
        assert_eq!(call(&matched("(a?){1000}")).as_deref(), Some("regexp_match_pattern"));
        let named = matched("(a?){1000}");
        let of_call = PatternMatch::call_of(&named).unwrap();
        assert_eq!(of_call.schema_name().to_string(), named.schema_name().to_string(), "a column keeps its name");
    }

    #[test]
    fn matches_are_measured_by_text_and_pattern() {
        let texts = ColumnarValue::Array(Arc::new(StringArray::from(vec!["a".repeat(1_000); 10])));
        let pattern = |text: &str| ColumnarValue::Scalar(ScalarValue::from(text));
        let quick = match_pairs(&texts, &pattern("a%"), 10);
        assert!((1_000_000..1_100_000).contains(&quick), "{quick}");
        assert_eq!(match_pairs(&texts, &pattern("a{1,100}"), 10), 800 * quick);
        let (short, long) = ("a%", "a%".repeat(500));
        let columns = ColumnarValue::Array(Arc::new(StringArray::from(vec![short, long.as_str()])));
        assert_eq!(match_pairs(&texts, &columns, 10), 1_000 * quick);
    }
}
