//! Text on its way to a decimal, or to a pattern. Arrow's parser of 256-bit integers recurses once for every 38 digits, so a
//! text of a hundred million digits overflows the stack, which nothing catches. A parser of regular expressions, which LIKE
//! uses too, makes some hundred bytes of every character before it asks how large the pattern is.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::compute::nullif;
use arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExpressionPlacement, Like, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};

use super::compiled_patterns::compiled_bytes;
use super::pattern_match::PatternMatch;
use crate::error::EngineError;
use crate::type_parts::any_part;

/// The longest text that is parsed as a number.
const MAX_NUMBER_BYTES: usize = 4_096;
/// The longest text that is parsed as a pattern: what compiled patterns may take would not hold a longer one.
pub(crate) const MAX_PATTERN_BYTES: usize = 256 << 10;

/// What the regular expressions of one batch may take, compiled: kernels keep all that differ.
const MAX_COMPILED_BYTES: usize = 256 << 20;

/// Parts of the names of functions whose second argument is a pattern.
const MATCHING: [&str; 5] = ["regexp", "like_escape", "like_pattern", "glob_matches", "similar_to"];

/// What a text is parsed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum ParsedText {
    Number,
    /// A longer text becomes null, as in TRY_CAST.
    NumberOrNull,
    /// Of LIKE.
    Pattern,
    /// Those of a batch are kept together.
    RegularExpression,
}

impl ParsedText {
    fn most_bytes(self) -> usize {
        match self {
            ParsedText::Number | ParsedText::NumberOrNull => MAX_NUMBER_BYTES,
            ParsedText::Pattern | ParsedText::RegularExpression => MAX_PATTERN_BYTES,
        }
    }

    fn too_long(self) -> EngineError {
        let kind = match self {
            ParsedText::Number | ParsedText::NumberOrNull => "number",
            ParsedText::Pattern | ParsedText::RegularExpression => "pattern",
        };
        EngineError::InvalidValue { message: format!("a text of more than {} bytes is no {kind}", self.most_bytes()) }
    }
}

/// Returns its argument, whose texts are short enough to be parsed.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct BoundedText {
    signature: Signature,
    parsed: ParsedText,
}

static REFUSING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(ParsedText::Number));
static NULLING: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(ParsedText::NumberOrNull));
static PATTERN: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(ParsedText::Pattern));
static EXPRESSION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| BoundedText::new_udf(ParsedText::RegularExpression));

impl BoundedText {
    fn new_udf(parsed: ParsedText) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::new_from_impl(Self { signature: Signature::any(1, Volatility::Immutable), parsed }))
    }

    /// The function that refuses texts that are too long for patterns of LIKE.
    pub(super) fn pattern() -> &'static ScalarUDF {
        &PATTERN
    }

    /// The function that refuses what is too much for regular expressions.
    pub(super) fn regular_expression() -> &'static ScalarUDF {
        &EXPRESSION
    }

    /// The function that refuses longer texts.
    pub(super) fn refusing() -> &'static ScalarUDF {
        &REFUSING
    }

    /// The function that makes longer texts null.
    pub(super) fn nulling() -> &'static ScalarUDF {
        &NULLING
    }
}

impl ScalarUDFImpl for BoundedText {
    fn name(&self) -> &'static str {
        match self.parsed {
            ParsedText::Number | ParsedText::NumberOrNull => "number_text",
            ParsedText::Pattern => "pattern_text",
            ParsedText::RegularExpression => "regular_expression_text",
        }
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.iter().map(|arg| arg.schema_name().to_string()).collect())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types.first().cloned().unwrap_or(DataType::Null))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.into_iter().next() else { return Ok(ColumnarValue::Scalar(ScalarValue::Null)) };
        match value {
            ColumnarValue::Scalar(scalar) if is_longer(&scalar, self.parsed.most_bytes()) => match self.parsed {
                ParsedText::NumberOrNull => Ok(ColumnarValue::Scalar(ScalarValue::try_from(&scalar.data_type())?)),
                ParsedText::Number | ParsedText::Pattern | ParsedText::RegularExpression => {
                    Err(self.parsed.too_long().into())
                }
            },
            ColumnarValue::Scalar(scalar) => Ok(ColumnarValue::Scalar(scalar)),
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(self.bounded(array)?)),
        }
    }

    fn placement(&self, args: &[ExpressionPlacement]) -> ExpressionPlacement {
        args.first().copied().unwrap_or(ExpressionPlacement::KeepInPlace)
    }
}

impl BoundedText {
    fn bounded(&self, array: ArrayRef) -> Result<ArrayRef> {
        let most = self.parsed.most_bytes();
        if !has_longer(array.as_ref(), most) {
            if self.parsed == ParsedText::RegularExpression && compiled_bytes(array.as_ref()) > MAX_COMPILED_BYTES {
                let message = format!(
                    "the regular expressions of one batch take more than {} MiB; use fewer, or shorter repetitions",
                    MAX_COMPILED_BYTES >> 20
                );
                return Err(EngineError::InvalidValue { message }.into());
            }
            return Ok(array);
        }
        match text_lengths(array.as_ref()) {
            Some(lengths) if self.parsed == ParsedText::NumberOrNull => {
                let long: BooleanArray = lengths.map(|length| Some(length > most)).collect();
                Ok(nullif(array.as_ref(), &long)?)
            }
            Some(_) | None => Err(self.parsed.too_long().into()),
        }
    }
}

/// Returns what the patterns of a call take, compiled; 0 where it has none, or only one. Errors: `invalid_value` where one is
/// too long to be parsed.
pub(super) fn pattern_bytes(name: &str, arguments: &[ColumnarValue]) -> Result<usize> {
    let Some(pattern) = arguments.get(1).filter(|_| MATCHING.iter().any(|part| name.contains(part))) else {
        return Ok(0);
    };
    let (is_too_long, bytes) = match pattern {
        ColumnarValue::Scalar(value) => (is_longer(value, MAX_PATTERN_BYTES), 0),
        ColumnarValue::Array(array) if array.len() <= 1 => (has_longer(array.as_ref(), MAX_PATTERN_BYTES), 0),
        ColumnarValue::Array(array) => (has_longer(array.as_ref(), MAX_PATTERN_BYTES), compiled_bytes(array.as_ref())),
    };
    if is_too_long { Err(ParsedText::Pattern.too_long().into()) } else { Ok(bytes) }
}

/// Whether a constant is or holds a text that is too long for a number.
pub(super) fn is_long(value: &ScalarValue) -> bool {
    is_longer(value, MAX_NUMBER_BYTES)
}

/// Returns a match with a pattern that is looked at before it is parsed.
pub(super) fn with_bounded_pattern(expr: Expr) -> Transformed<Expr> {
    if let Some(call) = PatternMatch::of_operator(&expr) {
        return Transformed::yes(call);
    }
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_match(op) && !is_short_pattern(&right) => {
            let pattern = BoundedText::regular_expression().call(vec![*right]);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right: Box::new(pattern) }))
        }
        Expr::Like(like) if !is_short_pattern(&like.pattern) => Transformed::yes(Expr::Like(with_short_pattern(like))),
        Expr::SimilarTo(like) if !is_short_pattern(&like.pattern) => {
            Transformed::yes(Expr::SimilarTo(with_short_pattern(like)))
        }
        other => Transformed::no(other),
    }
}

/// Whether an operator's right side is a regular expression.
fn is_match(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::RegexMatch | Operator::RegexIMatch | Operator::RegexNotMatch | Operator::RegexNotIMatch
    )
}

fn with_short_pattern(like: Like) -> Like {
    let pattern = BoundedText::pattern().call(vec![*like.pattern]);
    Like { pattern: Box::new(pattern), ..like }
}

/// Whether an expression is a pattern that needs no bound.
fn is_short_pattern(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().is::<BoundedText>(),
        Expr::Literal(value, _) => !is_longer(value, MAX_PATTERN_BYTES),
        _ => false,
    }
}

fn is_longer(value: &ScalarValue, most: usize) -> bool {
    match value {
        ScalarValue::Utf8(text) | ScalarValue::Utf8View(text) | ScalarValue::LargeUtf8(text) => {
            text.as_ref().is_some_and(|text| text.len() > most)
        }
        other if holds_text(&other.data_type()) => {
            other.to_array().map_or(true, |array| has_longer(array.as_ref(), most))
        }
        _ => false,
    }
}

/// Whether an expression has been bounded, or needs no bound.
pub(super) fn is_bounded(expr: &Expr) -> bool {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().is::<BoundedText>(),
        Expr::Literal(value, _) => !is_long(value),
        _ => false,
    }
}

/// Whether an array has a text of more than `most` bytes, in a column or in what is nested in it.
fn has_longer(array: &dyn Array, most: usize) -> bool {
    if let Some(mut lengths) = text_lengths(array) {
        return lengths.any(|length| length > most);
    }
    if !holds_text(array.data_type()) {
        return false;
    }
    match array.data_type() {
        DataType::List(_) => has_longer(array.as_list::<i32>().values().as_ref(), most),
        DataType::LargeList(_) => has_longer(array.as_list::<i64>().values().as_ref(), most),
        DataType::FixedSizeList(_, _) => has_longer(array.as_fixed_size_list().values().as_ref(), most),
        DataType::Dictionary(_, _) => has_longer(array.as_any_dictionary().values().as_ref(), most),
        DataType::Struct(_) => array.as_struct().columns().iter().any(|column| has_longer(column.as_ref(), most)),
        DataType::Map(_, _) => {
            array.as_map().entries().columns().iter().any(|column| has_longer(column.as_ref(), most))
        }
        // What cannot be looked into is taken by its size.
        _ => array.get_array_memory_size() > most,
    }
}

/// Returns the lengths of an array of texts; `None` of others.
fn text_lengths(array: &dyn Array) -> Option<Box<dyn Iterator<Item = usize> + '_>> {
    Some(match array.data_type() {
        DataType::Utf8 => {
            let offsets = array.as_string::<i32>().value_offsets();
            Box::new(offsets.windows(2).map(|pair| pair[1].abs_diff(pair[0]) as usize))
        }
        DataType::LargeUtf8 => {
            let offsets = array.as_string::<i64>().value_offsets();
            let length = |pair: &[i64]| usize::try_from(pair[1].abs_diff(pair[0])).unwrap_or(usize::MAX);
            Box::new(offsets.windows(2).map(length))
        }
        DataType::Utf8View => {
            let views = array.as_string_view().views();
            Box::new(views.iter().map(|view| arrow::array::ByteView::from(*view).length as usize))
        }
        _ => return None,
    })
}

/// Whether a type is a decimal or holds some.
pub(super) fn holds_decimals(data_type: &DataType) -> bool {
    data_type.is_decimal() || any_part(data_type, &holds_decimals)
}

/// Whether a type is text or holds some.
pub(super) fn holds_text(data_type: &DataType) -> bool {
    data_type.is_string() || any_part(data_type, &holds_text)
}
