//! The function that returns the groups of a regular expression's first match as a struct; null where nothing matches.
//! Matching takes time linear in the string, and compiled patterns are bounded in size.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use regex::{Regex, RegexBuilder};

/// The largest size of a compiled pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// A pattern with its number of groups, `c0`, `c1`, ...
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Captures {
    pub(super) pattern: String,
    pub(super) groups: usize,
}

/// Returns the name of the group at `index`.
pub(super) fn group_name(index: usize) -> String {
    format!("c{index}")
}

/// Returns the function.
pub(super) fn captures(captures: Captures) -> std::result::Result<Arc<ScalarUDF>, regex::Error> {
    let regex = RegexBuilder::new(&captures.pattern).size_limit(MAX_PATTERN_BYTES).build()?;
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    Ok(Arc::new(ScalarUDF::new_from_impl(CapturesOf { captures, regex, signature })))
}

/// Whether a function is this one.
pub(crate) fn is_captures_function(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<CapturesOf>()
}

#[derive(Debug)]
struct CapturesOf {
    captures: Captures,
    regex: Regex,
    signature: Signature,
}

impl PartialEq for CapturesOf {
    fn eq(&self, other: &Self) -> bool {
        self.captures == other.captures
    }
}

impl Eq for CapturesOf {}

impl Hash for CapturesOf {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.captures.hash(state);
    }
}

impl CapturesOf {
    fn fields(&self) -> Fields {
        (0..self.captures.groups).map(|index| Field::new(group_name(index), DataType::Utf8View, true)).collect()
    }
}

impl ScalarUDFImpl for CapturesOf {
    fn name(&self) -> &str {
        "kql_captures"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.fields()))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let Some(texts) = arrays.first().and_then(|array| array.as_string_view_opt()) else {
            return Err(DataFusionError::Internal("kql_captures takes a text".into()));
        };
        let names: Vec<String> = (0..self.captures.groups).map(group_name).collect();
        let mut builders: Vec<StringViewBuilder> = names.iter().map(|_| StringViewBuilder::new()).collect();
        let mut is_match = Vec::with_capacity(texts.len());
        for row in 0..texts.len() {
            let found = texts.is_valid(row).then(|| self.regex.captures(texts.value(row))).flatten();
            for (builder, name) in builders.iter_mut().zip(&names) {
                let group = found.as_ref().and_then(|found| found.name(name));
                builder.append_option(group.map(|group| group.as_str()));
            }
            is_match.push(found.is_some());
        }
        let columns: Vec<ArrayRef> =
            builders.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        let rows = texts.len();
        let made = StructArray::try_new_with_length(self.fields(), columns, Some(NullBuffer::from(is_match)), rows)?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
