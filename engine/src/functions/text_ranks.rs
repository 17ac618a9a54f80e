//! BM25, which ranks texts for the words of a question: `bm25_statistics(text, question)` counts over all texts what
//! `bm25_score(text, question, statistics)` weighs the words of one text with. `hybrid_search` is made of them.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, ListArray, StructArray, new_null_array};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, ScalarUDF, Signature, Volatility};

use super::definition::{Definition, invalid, unfit};
use crate::type_names::sql_name;

/// How soon more of the same word count no more.
const K1: f64 = 1.2;
/// How much long texts are discounted.
const B: f64 = 0.75;
/// The most different words of a question.
const MAX_WORDS: usize = 256;

/// Returns the scalar function of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let score = Definition {
        name: "bm25_score",
        aliases: &[],
        arguments: 3..=3,
        takes: |types| match types {
            [text, question, _] => {
                let [text, question] = texts_of("bm25_score", text, question)?;
                Ok(vec![text, question, DataType::Struct(statistics_fields())])
            }
            _ => Err(unfit("bm25_score takes a text, a question and bm25_statistics".to_owned())),
        },
        returns: |_| Ok(DataType::Float64),
        compute: scores,
    };
    vec![score.into_udf()]
}

/// Returns the aggregate of this file.
pub(super) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    let signature = Signature::user_defined(Volatility::Immutable);
    vec![Arc::new(AggregateUDF::new_from_impl(StatisticsFunction { signature }))]
}

/// Of how many texts, of how many words in all, and how many texts have each word of the question.
fn statistics_fields() -> Fields {
    Fields::from(vec![
        Field::new("texts", DataType::Int64, true),
        Field::new("words", DataType::Int64, true),
        Field::new("having", DataType::new_list(DataType::Int64, true), true),
    ])
}

fn texts_of(function: &str, text: &DataType, question: &DataType) -> Result<[DataType; 2]> {
    for given in [text, question] {
        let value = if let DataType::Dictionary(_, value) = given { value.as_ref() } else { given };
        if !value.is_string() && !value.is_null() {
            return Err(unfit(format!("{function} searches texts, not {}", sql_name(given))));
        }
    }
    Ok([DataType::Utf8, DataType::Utf8])
}

/// Whether a character is of a script that puts no blanks between words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{0e00}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{3005}'..='\u{30ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

/// Calls `each` with each word of a text in lower case. Where a script puts no blanks between words, each two characters
/// that follow each other stand for one.
fn for_each_word(text: &str, mut each: impl FnMut(&str)) {
    let lower = text.to_lowercase();
    let is_of_word = |c: char| c.is_alphanumeric() || c == '_';
    for run in lower.split(|c| !is_of_word(c)).filter(|run| !run.is_empty()) {
        if run.is_ascii() {
            each(run);
            continue;
        }
        let mut rest = run;
        while let Some(first) = rest.chars().next() {
            let unspaced = is_unspaced(first);
            let end = rest.find(|c| is_unspaced(c) != unspaced).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            rest = after;
            let starts: Vec<usize> = part.char_indices().map(|(at, _)| at).chain([part.len()]).collect();
            if unspaced && starts.len() > 3 {
                starts.windows(3).for_each(|pair| each(&part[pair[0]..pair[2]]));
            } else {
                each(part);
            }
        }
    }
}

/// The words of a question, each with its place.
#[derive(Debug, Default)]
struct Question {
    text: String,
    words: HashMap<String, usize>,
}

impl Question {
    fn new(text: &str) -> Result<Self> {
        let mut words = HashMap::new();
        for_each_word(text, |word| {
            let place = words.len();
            words.entry(word.to_owned()).or_insert(place);
        });
        if words.len() > MAX_WORDS {
            return Err(invalid(format!(
                "a question has at most {MAX_WORDS} different words, this one {}",
                words.len()
            )));
        }
        Ok(Self { text: text.to_owned(), words })
    }

    /// Returns how often a text has each word, and how many words it has.
    fn counts(&self, text: &str) -> (Vec<u32>, usize) {
        let mut counts = vec![0; self.words.len()];
        let mut length = 0;
        for_each_word(text, |word| {
            length += 1;
            if let Some(place) = self.words.get(word) {
                counts[*place] += 1;
            }
        });
        (counts, length)
    }
}

fn scores(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let [texts, questions, statistics] = args else { return Ok(new_null_array(&DataType::Float64, rows)) };
    let (texts, questions) = (texts.as_string::<i32>(), questions.as_string::<i32>());
    let statistics = statistics.as_struct();
    let (all, words) =
        (statistics.column(0).as_primitive::<Int64Type>(), statistics.column(1).as_primitive::<Int64Type>());
    let having = statistics.column(2).as_list::<i32>();
    let mut question = Question::default();
    let mut scores = Vec::with_capacity(rows);
    for row in 0..rows {
        let known = [texts.is_valid(row), questions.is_valid(row), statistics.is_valid(row), having.is_valid(row)];
        if known.contains(&false) {
            scores.push(None);
            continue;
        }
        if question.text != questions.value(row) {
            question = Question::new(questions.value(row))?;
        }
        let offsets = having.value_offsets();
        let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
        if end - start != question.words.len() {
            return Err(invalid("bm25_score takes the statistics of the same question".to_owned()));
        }
        let having = &having.values().as_primitive::<Int64Type>().values()[start..end];
        let (counts, length) = question.counts(texts.value(row));
        let all = all.value(row) as f64;
        let average = words.value(row) as f64 / all.max(1.0);
        let discount = K1 * (1.0 - B + B * length as f64 / average.max(1.0));
        let weights = counts.iter().zip(having).filter(|(count, _)| **count > 0).map(|(count, having)| {
            let (count, having) = (f64::from(*count), *having as f64);
            let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
            rarity * count * (K1 + 1.0) / (count + discount)
        });
        // Not `sum`, whose zero is negative.
        scores.push(Some(weights.fold(0.0, |sum, weight| sum + weight)));
    }
    Ok(Arc::new(Float64Array::from(scores)))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct StatisticsFunction {
    signature: Signature,
}

impl AggregateUDFImpl for StatisticsFunction {
    fn name(&self) -> &str {
        "bm25_statistics"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [text, question] => Ok(texts_of(self.name(), text, question)?.into()),
            _ => Err(unfit("bm25_statistics takes a text and a question".to_owned())),
        }
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(statistics_fields()))
    }

    fn state_fields(&self, _args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(statistics_fields().iter().cloned().collect())
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(WordCounts { question: None, texts: 0, words: 0, having: Vec::new() }))
    }
}

#[derive(Debug)]
struct WordCounts {
    /// That of the first row.
    question: Option<Question>,
    texts: i64,
    words: i64,
    having: Vec<i64>,
}

impl WordCounts {
    fn add_having(&mut self, having: impl ExactSizeIterator<Item = i64>) {
        self.having.resize(self.having.len().max(having.len()), 0);
        self.having.iter_mut().zip(having).for_each(|(sum, having)| *sum += having);
    }

    fn having(&self) -> ListArray {
        SingleRowListArrayBuilder::new(Arc::new(Int64Array::from(self.having.clone()))).build_list_array()
    }
}

impl Accumulator for WordCounts {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let [texts, questions] = values else { return Ok(()) };
        let (texts, questions) = (texts.as_string::<i32>(), questions.as_string::<i32>());
        for (text, question) in texts.iter().zip(questions) {
            let (Some(text), Some(question)) = (text, question) else { continue };
            let known = match self.question.take() {
                Some(known) if known.text == question => known,
                Some(_) => return Err(invalid("bm25_statistics takes one question for all texts".to_owned())),
                None => Question::new(question)?,
            };
            let (counts, length) = known.counts(text);
            self.question = Some(known);
            self.texts += 1;
            self.words += i64::try_from(length).unwrap_or(i64::MAX);
            self.add_having(counts.into_iter().map(|count| i64::from(count > 0)));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let [texts, words, having] = states else { return Ok(()) };
        self.texts += texts.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        self.words += words.as_primitive::<Int64Type>().iter().flatten().sum::<i64>();
        for having in having.as_list::<i32>().iter().flatten() {
            self.add_having(having.as_primitive::<Int64Type>().values().iter().copied());
        }
        Ok(())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let having = ScalarValue::List(Arc::new(self.having()));
        Ok(vec![ScalarValue::from(self.texts), ScalarValue::from(self.words), having])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int64Array::from(vec![self.texts])),
            Arc::new(Int64Array::from(vec![self.words])),
            Arc::new(self.having()),
        ];
        Ok(ScalarValue::Struct(Arc::new(StructArray::try_new(statistics_fields(), columns, None)?)))
    }

    fn size(&self) -> usize {
        let words = self.question.as_ref().map_or(0, |question| question.text.len() + question.words.len() * 64);
        size_of::<Self>() + words + self.having.capacity() * size_of::<i64>()
    }
}

#[cfg(test)]
mod tests {
    use super::for_each_word;

    #[test]
    fn texts_have_words_in_any_script() {
        let words = |text: &str| {
            let mut words = Vec::new();
            for_each_word(text, |word| words.push(word.to_owned()));
            words.join("|")
        };
        assert_eq!(words("The user_id's of C3-PO, 2x"), "the|user_id|s|of|c3|po|2x");
        assert_eq!(words("Éclair, ÜBER"), "éclair|über");
        assert_eq!(words("数据库v2索引 は"), "数据|据库|v2|索引|は");
        assert_eq!(words(" ,."), "");
    }
}
