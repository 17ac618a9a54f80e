//! Texts that are cast to lists: `'[1, 2]'::INTEGER[]`, `'["a, b", NULL]'::VARCHAR[]`, nested ones among them. The form is
//! DuckDB's, which a list that is cast to text has.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListArray, StringArray};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::definition::{invalid, unfit};
use super::value_conversions::read_texts;
use crate::type_names::sql_name;

/// The name of the function that a cast becomes. It is planned for a type, so no statement calls it by its name.
pub(crate) const TEXT_TO_LIST: &str = "text_to_list";

/// Returns the value of an expression, a text, as a list of the type `target`. `is_try`: null where it is none. Errors:
/// items that are neither texts, numbers, times nor lists of them.
pub(crate) fn text_to_list(text: Expr, target: &DataType, is_try: bool) -> Result<Expr> {
    if leaf(target).is_nested() {
        return Err(unfit(format!("a text is not cast to {}; write json_transform(text, '[...]')", sql_name(target))));
    }
    Ok(list_reader(target, is_try).call(vec![text]))
}

/// Returns the function that reads lists of a type from texts. `is_try`: null where a text is none.
pub(crate) fn list_reader(target: &DataType, is_try: bool) -> ScalarUDF {
    let signature = Signature::any(1, Volatility::Immutable);
    ScalarUDF::new_from_impl(TextToList { target: target.clone(), is_try, signature })
}

/// Returns what [`list_reader`] made a function of; `None` of others.
pub(crate) fn list_reader_of(function: &ScalarUDF) -> Option<(&DataType, bool)> {
    let reader = function.inner().downcast_ref::<TextToList>()?;
    Some((&reader.target, reader.is_try))
}

/// Returns the type of the items of a list, or of the innermost lists of one.
fn leaf(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => leaf(item.data_type()),
        other => other,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct TextToList {
    target: DataType,
    is_try: bool,
    signature: Signature,
}

impl ScalarUDFImpl for TextToList {
    fn name(&self) -> &str {
        TEXT_TO_LIST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.target.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let [array] = arrays.as_slice() else { return Err(invalid("one text is cast to a list".into())) };
        Ok(ColumnarValue::Array(lists_of_texts(array, &self.target, self.is_try)?))
    }
}

/// Returns texts as lists of the type `target`. `is_try`: null where a text is none.
pub(super) fn lists_of_texts(texts: &ArrayRef, target: &DataType, is_try: bool) -> Result<ArrayRef> {
    let texts = cast(texts, &DataType::Utf8)?;
    let texts = texts.as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect();
    lists(texts, target, is_try)
}

/// Returns texts as values of a type, lists or what lists are of.
fn lists(texts: Vec<Option<String>>, target: &DataType, is_try: bool) -> Result<ArrayRef> {
    let options = CastOptions { safe: is_try, ..CastOptions::default() };
    let (item, size) = match target {
        DataType::List(item) | DataType::LargeList(item) => (item, None),
        DataType::FixedSizeList(item, size) => (item, usize::try_from(*size).ok()),
        _ => {
            let texts: ArrayRef = Arc::new(StringArray::from(texts));
            return Ok(read_texts(&texts, target, &options)?);
        }
    };
    let mut inner = Vec::new();
    let mut lengths = Vec::with_capacity(texts.len());
    let mut valid = Vec::with_capacity(texts.len());
    for text in texts {
        let found = text.as_deref().and_then(items).filter(|items| size.is_none_or(|size| items.len() == size));
        if let (Some(text), None, false) = (&text, &found, is_try) {
            return Err(no_list(text, size));
        }
        valid.push(found.is_some());
        // A list of a fixed size has its items where it is null, too.
        let items = found.unwrap_or_else(|| vec![None; size.unwrap_or(0)]);
        lengths.push(items.len());
        inner.extend(items);
    }
    let values = lists(inner, item.data_type(), is_try)?;
    let nulls = Some(NullBuffer::from(valid));
    let field = Arc::new(Field::new(item.name(), item.data_type().clone(), true));
    let made = ListArray::try_new(field, OffsetBuffer::from_lengths(lengths), values, nulls)?;
    Ok(cast_with_options(&made, target, &options)?)
}

fn no_list(text: &str, size: Option<usize>) -> datafusion::error::DataFusionError {
    let start: String = text.chars().take(40).collect();
    let more = if text.chars().nth(40).is_some() { "..." } else { "" };
    let what = size.map_or_else(|| "list".to_owned(), |size| format!("list of {size}"));
    invalid(format!("`{start}{more}` is no {what}; write it as '[1, 2]', texts as '[\"a\", \"b, c\"]'"))
}

/// Returns the items of a list as it is written, `None` where it is none. An item in quotes has lost them.
fn items(text: &str) -> Option<Vec<Option<String>>> {
    let text = text.trim();
    // PostgreSQL's arrays are in braces.
    let in_brackets = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let in_braces = || text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
    let inside = in_brackets.or_else(in_braces)?;
    if inside.trim().is_empty() {
        return Some(Vec::new());
    }
    let mut found = Vec::new();
    let mut start = 0;
    let mut open = Vec::new();
    let mut quote = None;
    let mut letters = inside.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (_, '\\') => {
                letters.next()?;
            }
            (Some(own), letter) if own == letter => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, '(') => open.push(')'),
            (None, ']' | '}' | ')') => {
                open.pop().filter(|closing| *closing == letter)?;
            }
            (None, ',') if open.is_empty() => {
                found.push(item(&inside[start..at])?);
                start = at + 1;
            }
            (None, _) => {}
        }
    }
    if quote.is_some() || !open.is_empty() {
        return None;
    }
    found.push(item(&inside[start..])?);
    Some(found)
}

/// Returns an item without its quotes and escapes: `Some(None)` for NULL, `None` where something is behind the quotes.
fn item(text: &str) -> Option<Option<String>> {
    let text = text.trim();
    if text.eq_ignore_ascii_case("null") {
        return Some(None);
    }
    let quote = text.chars().next().filter(|letter| matches!(letter, '"' | '\''));
    // The items of an inner list, or of what stays a text, are read later.
    if quote.is_none() && text.starts_with(['[', '{', '(']) {
        return Some(Some(text.to_owned()));
    }
    let mut written = String::with_capacity(text.len());
    let mut letters = text.chars().skip(usize::from(quote.is_some()));
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => written.push(letters.next()?),
            letter if Some(letter) == quote => return letters.next().is_none().then_some(Some(written)),
            letter => written.push(letter),
        }
    }
    quote.is_none().then_some(Some(written))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_as_they_are_written() {
        let read = |text: &str| {
            items(text).map(|all| all.into_iter().map(|item| item.unwrap_or_else(|| "-".into())).collect::<Vec<_>>())
        };
        for (text, expected) in [
            ("[]", vec![]),
            (" [ ] ", vec![]),
            ("[1, 2]", vec!["1", "2"]),
            ("[a b, \"c, d\", 'e', NULL, \"null\"]", vec!["a b", "c, d", "e", "-", "null"]),
            (r#"[a\"b, "c\"d", "e\\f"]"#, vec!["a\"b", "c\"d", "e\\f"]),
            ("[[1, 2], [3]]", vec!["[1, 2]", "[3]"]),
            ("[1,,2,]", vec!["1", "", "2", ""]),
            ("{1, 2}", vec!["1", "2"]),
        ] {
            assert_eq!(read(text), Some(expected.iter().map(|item| (*item).to_owned()).collect()), "{text}");
        }
        for text in ["", "1, 2", "[1, 2", "{1, 2]", "[a]b]", "[\"a, b]", "[\"a\"b]", "[1, 2]]", "[it's]", "[a\\]"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
