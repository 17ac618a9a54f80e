//! A function that takes texts apart: a struct of texts, one for each part, made of a text by whatever reads it.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewBuilder, StructArray};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility};
use regex::Regex;

use crate::functions::compile_pattern;
use crate::interrupt::{LoopTurns, check_interrupt};

/// What reads texts. Two that are equal read alike.
pub(super) trait TextPartReader: std::fmt::Debug + Eq + Hash + Send + Sync + 'static {
    /// The name of the function.
    const FUNCTION: &'static str;

    /// The names of the parts.
    fn names(&self) -> Vec<String>;

    /// Reads the parts of a text, as many as there are names; returns whether it has any. Of one that has none the
    /// struct is null. It breaks off where the query is to end.
    fn read<'t>(&self, text: &'t str, parts: &mut [Option<Cow<'t, str>>]) -> bool;
}

/// A compiled pattern, which is equal to one of the same text. Matching takes time linear in the string.
#[derive(Debug)]
pub(super) struct CompiledPattern(pub(super) Regex);

impl CompiledPattern {
    pub(super) fn new(pattern: &str) -> std::result::Result<Self, String> {
        compile_pattern(pattern).map(Self)
    }
}

impl PartialEq for CompiledPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for CompiledPattern {}

impl Hash for CompiledPattern {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_str().hash(state);
    }
}

/// Returns the function of a reader.
pub(super) fn text_parts<R: TextPartReader>(reader: R) -> Arc<ScalarUDF> {
    let signature = Signature::exact(vec![DataType::Utf8View], Volatility::Immutable);
    Arc::new(ScalarUDF::new_from_impl(TextPartsOf { reader, signature }))
}

/// Returns the reader of a function, if it is one of such readers.
pub(super) fn reader_of<R: TextPartReader>(function: &ScalarUDF) -> Option<&R> {
    let function = (function.inner().as_ref() as &dyn std::any::Any).downcast_ref::<TextPartsOf<R>>()?;
    Some(&function.reader)
}

/// Whether a function is one of such readers.
pub(super) fn is_text_parts<R: TextPartReader>(function: &ScalarUDF) -> bool {
    (function.inner().as_ref() as &dyn std::any::Any).is::<TextPartsOf<R>>()
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextPartsOf<R> {
    reader: R,
    signature: Signature,
}

impl<R: TextPartReader> TextPartsOf<R> {
    fn fields(&self) -> Fields {
        self.reader.names().into_iter().map(|name| Field::new(name, DataType::Utf8View, true)).collect()
    }
}

impl<R: TextPartReader> ScalarUDFImpl for TextPartsOf<R> {
    fn name(&self) -> &str {
        R::FUNCTION
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
            return Err(DataFusionError::Internal(format!("{} takes a text", R::FUNCTION)));
        };
        let fields = self.fields();
        let mut builders: Vec<StringViewBuilder> = fields.iter().map(|_| StringViewBuilder::new()).collect();
        let mut has_parts = Vec::with_capacity(texts.len());
        let mut parts = vec![None; builders.len()];
        let mut turns = LoopTurns::default();
        for row in 0..texts.len() {
            // No text is null in KQL.
            let text = if texts.is_valid(row) { texts.value(row) } else { "" };
            turns.count_of(text.len())?;
            parts.fill(None);
            has_parts.push(self.reader.read(text, &mut parts));
            for (builder, part) in builders.iter_mut().zip(&parts) {
                builder.append_option(part.as_deref());
            }
        }
        // What broke off has left out parts.
        check_interrupt()?;
        let columns: Vec<ArrayRef> =
            builders.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef).collect();
        let made = StructArray::try_new_with_length(fields, columns, Some(NullBuffer::from(has_parts)), texts.len())?;
        Ok(ColumnarValue::Array(Arc::new(made)))
    }
}
