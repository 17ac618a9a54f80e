//! Texts with DuckDB's and PostgreSQL's names: regular expressions, similarity, formats, lengths and names of types.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, ListBuilder, StringArray, StringBuilder,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Int64Type, UInt64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use regex::{Regex, RegexBuilder};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

use super::definition::{ANY_NUMBER, Definition, invalid, unfit};
use super::format::{FormatValue, Style, formatted, quoted_name};
use super::value_text;
use crate::limits::{InterruptWatch, QueryUsage};
use crate::type_names::{postgresql_name, sql_name};

/// The most bytes of a compiled pattern.
const MAX_REGEX_BYTES: usize = 4 << 20;
/// The longest texts whose similarity is computed: the time of it is the product of both.
const MAX_SIMILAR: usize = 10_000;
/// Before two texts are compared whose lengths have this product it is looked whether the query has to end: a batch of long ones takes
/// minutes.
const LONG_COMPARISON: usize = 100_000;

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let similarity = |name, aliases, compute| Definition {
        name,
        aliases,
        arguments: 2..=2,
        takes: |_| Ok(vec![DataType::Utf8; 2]),
        returns: |_| Ok(DataType::Float64),
        compute,
    };
    let distance = |name, aliases, compute| Definition {
        name,
        aliases,
        arguments: 2..=2,
        takes: |_| Ok(vec![DataType::Utf8; 2]),
        returns: |_| Ok(DataType::Int64),
        compute,
    };
    let shown = |name, compute| Definition {
        name,
        aliases: &[],
        arguments: 1..=ANY_NUMBER,
        takes: |types| Ok(types.to_vec()),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let definitions = [
        Definition {
            name: "regexp_extract",
            aliases: &[],
            arguments: 2..=4,
            takes: |types| Ok(texts_and_group(types)),
            returns: |_| Ok(DataType::Utf8),
            compute: extract,
        },
        Definition {
            name: "regexp_extract_all",
            aliases: &[],
            arguments: 2..=4,
            takes: |types| Ok(texts_and_group(types)),
            returns: |_| Ok(DataType::new_list(DataType::Utf8, true)),
            compute: extract_all,
        },
        // DataFusion's leaves out groups that match nothing, so that the others are of other numbers.
        Definition {
            name: "regexp_match",
            aliases: &[],
            arguments: 2..=3,
            takes: |types| Ok(vec![DataType::Utf8; types.len()]),
            returns: |_| Ok(DataType::new_list(DataType::Utf8, true)),
            compute: first_match,
        },
        Definition {
            name: "regexp_split_to_array",
            aliases: &["string_split_regex", "str_split_regex", "regexp_split"],
            arguments: 2..=3,
            takes: |types| Ok(vec![DataType::Utf8; types.len()]),
            returns: |_| Ok(DataType::new_list(DataType::Utf8, true)),
            compute: split,
        },
        Definition {
            name: "len",
            aliases: &["length"],
            arguments: 1..=1,
            takes: |types| match types {
                [list @ (DataType::List(_) | DataType::LargeList(_))] => Ok(vec![list.clone()]),
                [DataType::FixedSizeList(field, _)] => Ok(vec![DataType::List(Arc::clone(field))]),
                [binary @ (DataType::Binary | DataType::LargeBinary | DataType::BinaryView)] => {
                    Ok(vec![binary.clone()])
                }
                [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null] => {
                    Ok(vec![DataType::Utf8])
                }
                [other] => Err(unfit(format!("len takes a text or a list, not {}", sql_name(other)))),
                _ => Ok(Vec::new()),
            },
            returns: |_| Ok(DataType::Int64),
            compute: length,
        },
        Definition {
            name: "octet_length",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [bytes @ (DataType::Binary | DataType::LargeBinary | DataType::BinaryView)] => Ok(vec![bytes.clone()]),
                [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null] => {
                    Ok(vec![DataType::Utf8])
                }
                [other] => Err(unfit(format!("octet_length takes a text or a blob, not {}", sql_name(other)))),
                _ => Ok(Vec::new()),
            },
            returns: |_| Ok(DataType::Int32),
            compute: |arrays, _| Ok(cast(&arrow::compute::kernels::length::length(&arrays[0])?, &DataType::Int32)?),
        },
        Definition {
            name: "typeof",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| Ok(types.to_vec()),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| Ok(Arc::new(StringArray::from(vec![sql_name(arrays[0].data_type()); rows]))),
        },
        Definition {
            name: "pg_typeof",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| Ok(types.to_vec()),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, rows| Ok(Arc::new(StringArray::from(vec![postgresql_name(arrays[0].data_type()); rows]))),
        },
        Definition {
            name: "hex",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [DataType::UInt64] => Ok(vec![DataType::UInt64]),
                [number] if number.is_integer() => Ok(vec![DataType::Int64]),
                [whole @ DataType::Decimal128(_, 0)] => Ok(vec![whole.clone()]),
                // The digits of their texts would be taken for those of numbers.
                [other]
                    if other.is_numeric()
                        || other.is_temporal()
                        || other.is_nested()
                        || *other == DataType::Boolean =>
                {
                    let other = sql_name(other);
                    Err(unfit(format!(
                        "hex takes a text, a blob or a whole number, not {other}; cast it to one of these"
                    )))
                }
                [binary @ (DataType::Binary | DataType::LargeBinary | DataType::BinaryView)] => {
                    Ok(vec![binary.clone()])
                }
                _ => Ok(vec![DataType::Utf8]),
            },
            returns: |_| Ok(DataType::Utf8),
            compute: hex,
        },
        similarity("jaro_similarity", &[], |arrays, rows| similar(arrays, rows, strsim::jaro)),
        similarity("jaro_winkler_similarity", &[], |arrays, rows| similar(arrays, rows, strsim::jaro_winkler)),
        similarity("jaccard", &[], |arrays, rows| similar(arrays, rows, jaccard)),
        distance("damerau_levenshtein", &[], |arrays, rows| distances(arrays, rows, strsim::damerau_levenshtein)),
        Definition {
            name: "hamming",
            aliases: &["mismatches"],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Utf8; 2]),
            returns: |_| Ok(DataType::Int64),
            compute: |arrays, rows| {
                let hamming = |left: &str, right: &str| {
                    let count = strsim::hamming(left, right)
                        .map_err(|_| invalid("hamming takes texts of one length".into()))?;
                    Ok(i64::try_from(count).unwrap_or(i64::MAX))
                };
                let values = pairs(arrays, rows, hamming)?;
                Ok(Arc::new(Int64Array::from(values)))
            },
        },
        shown("format", |arrays, rows| texts(arrays, rows, Style::Format)),
        shown("printf", |arrays, rows| texts(arrays, rows, Style::Printf)),
        Definition {
            name: "regexp_full_match",
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Utf8; 2]),
            returns: |_| Ok(DataType::Boolean),
            compute: |arrays, rows| {
                let mut patterns = Patterns::default();
                let matches = pairs(arrays, rows, |text, pattern| {
                    Ok(patterns.get(&format!("^(?:{pattern})$"), "")?.is_match(text))
                })?;
                Ok(Arc::new(BooleanArray::from(matches)))
            },
        },
        Definition {
            name: "strip_accents",
            aliases: &["unaccent"],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Utf8]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| {
                let texts = arrays[0].as_string::<i32>().iter().map(|text| text.map(without_accents));
                Ok(Arc::new(texts.collect::<StringArray>()))
            },
        },
        Definition {
            name: "quote_ident",
            aliases: &[],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Utf8]),
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| {
                let quoted = arrays[0].as_string::<i32>().iter().map(|text| text.map(quoted_name));
                Ok(Arc::new(quoted.collect::<StringArray>()))
            },
        },
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

fn texts_and_group(types: &[DataType]) -> Vec<DataType> {
    let group = [DataType::Utf8, DataType::Utf8, DataType::Int64, DataType::Utf8];
    group.into_iter().take(types.len()).collect()
}

/// The patterns of a batch, compiled once each while they do not change.
#[derive(Default)]
struct Patterns {
    last: Option<(String, String, Regex)>,
}

impl Patterns {
    fn get(&mut self, pattern: &str, options: &str) -> Result<&Regex> {
        let is_known = self.last.as_ref().is_some_and(|(known, with, _)| known == pattern && with == options);
        if !is_known {
            // A pattern that is meant as it is written.
            let literal = options.contains('l').then(|| regex::escape(pattern));
            let mut builder = RegexBuilder::new(literal.as_deref().unwrap_or(pattern));
            builder.size_limit(MAX_REGEX_BYTES);
            for option in options.chars() {
                match option {
                    'i' => _ = builder.case_insensitive(true),
                    's' => _ = builder.dot_matches_new_line(true),
                    'm' | 'n' | 'p' => _ = builder.multi_line(true),
                    'c' => _ = builder.case_insensitive(false),
                    'g' | 'l' => {}
                    _ => {
                        return Err(invalid(format!(
                            "`{option}` is no option of a regular expression; there are i, s, m, c, g, l"
                        )));
                    }
                }
            }
            let regex = builder.build().map_err(|error| {
                let error = error.to_string();
                let cause = error.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
                invalid(format!("`{pattern}` is no regular expression: {cause}"))
            })?;
            self.last = Some((pattern.to_owned(), options.to_owned(), regex));
        }
        let compiled = self.last.as_ref().map(|(_, _, regex)| regex);
        compiled.ok_or_else(|| invalid("no pattern".into()))
    }
}

/// The arguments of a row of a function of patterns.
struct Call<'a> {
    text: &'a str,
    pattern: &'a str,
    group: usize,
    options: &'a str,
}

fn call_of(arrays: &[ArrayRef], row: usize) -> Result<Option<Call<'_>>> {
    if arrays.iter().any(|array| array.is_null(row)) {
        return Ok(None);
    }
    let text = |index: usize| arrays.get(index).map_or("", |array| array.as_string::<i32>().value(row));
    let group = arrays.get(2).map_or(0, |array| array.as_primitive::<Int64Type>().value(row));
    let group = usize::try_from(group).map_err(|_| invalid("groups are numbered from 0".into()))?;
    Ok(Some(Call { text: text(0), pattern: text(1), group, options: text(3) }))
}

fn extract(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let Some(call) = call_of(arrays, row)? else {
            values.push(None);
            continue;
        };
        let captures = patterns.get(call.pattern, call.options)?.captures(call.text);
        let group = captures.as_ref().and_then(|captures| captures.get(call.group));
        // As in DuckDB, where nothing matches the text is empty.
        values.push(Some(group.map_or(String::new(), |group| group.as_str().to_owned())));
    }
    Ok(Arc::new(StringArray::from(values)))
}

fn extract_all(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        let Some(call) = call_of(arrays, row)? else {
            lists.append(false);
            continue;
        };
        let regex = patterns.get(call.pattern, call.options)?;
        let mut from = 0;
        // Each match may be looked for up to the end of the text.
        let mut watch = InterruptWatch::of_current_query();
        // Nothing may match right behind a match, as in RE2 and PCRE; the iterator of `regex` leaves that out.
        while let Some(captures) = regex.captures_at(call.text, from) {
            watch.check()?;
            lists.values().append_option(captures.get(call.group).map(|group| group.as_str()));
            let Some(whole) = captures.get(0) else { break };
            let next = call.text[whole.end()..].chars().next().map_or(1, char::len_utf8);
            from = if whole.is_empty() { whole.end() + next } else { whole.end() };
            if from > call.text.len() {
                break;
            }
        }
        lists.append(true);
    }
    Ok(Arc::new(lists.finish()))
}

/// Returns the groups of the first match of each text, null for those that match nothing; or the match itself, without groups.
fn first_match(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    lists_of_parts(arrays, rows, |patterns, [text, pattern, options], parts| {
        if options.contains('g') {
            return Err(invalid("regexp_match finds one match; write regexp_extract_all(text, pattern)".into()));
        }
        let captures = patterns.get(pattern, options)?.captures(text);
        if let Some(captures) = &captures {
            let groups = captures.iter().skip(usize::from(captures.len() > 1));
            groups.for_each(|group| parts.append_option(group.map(|group| group.as_str())));
        }
        Ok(captures.is_some())
    })
}

fn split(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    lists_of_parts(arrays, rows, |patterns, [whole, pattern, options], parts| {
        let mut from = 0;
        let mut watch = InterruptWatch::of_current_query();
        for found in patterns.get(pattern, options)?.find_iter(whole) {
            watch.check()?;
            // As PostgreSQL: nothing lies between nothing and the start, the end, or what was found before.
            if found.is_empty() && [0, from, whole.len()].contains(&found.start()) {
                continue;
            }
            parts.append_value(&whole[from..found.start()]);
            from = found.end();
        }
        parts.append_value(&whole[from..]);
        Ok(true)
    })
}

/// Returns a list of parts of each text, which `add` finds by a pattern and its options; null where one of them is, and where `add`
/// finds none.
fn lists_of_parts(
    arrays: &[ArrayRef],
    rows: usize,
    mut add: impl FnMut(&mut Patterns, [&str; 3], &mut StringBuilder) -> Result<bool>,
) -> Result<ArrayRef> {
    let mut patterns = Patterns::default();
    let mut lists = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        let is_known = arrays.iter().all(|array| array.is_valid(row));
        let text = |index: usize| arrays.get(index).map_or("", |array| array.as_string::<i32>().value(row));
        let is_list = is_known && add(&mut patterns, [text(0), text(1), text(2)], lists.values())?;
        lists.append(is_list);
    }
    Ok(Arc::new(lists.finish()))
}

fn length(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let array = &arrays[0];
    Ok(match array.data_type() {
        DataType::Utf8 => {
            let lengths = array.as_string::<i32>().iter().map(|text| text.map(|text| text.chars().count() as i64));
            Arc::new(lengths.collect::<Int64Array>())
        }
        _ => {
            let lengths = arrow::compute::kernels::length::length(array)?;
            cast(&lengths, &DataType::Int64)?
        }
    })
}

fn hex(arrays: &[ArrayRef], _rows: usize) -> Result<ArrayRef> {
    let bytes = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
    Ok(Arc::new(match arrays[0].data_type() {
        DataType::Int64 => {
            let numbers = arrays[0].as_primitive::<Int64Type>().iter();
            numbers.map(|number| number.map(|number| format!("{number:X}"))).collect::<StringArray>()
        }
        DataType::UInt64 => {
            let numbers = arrays[0].as_primitive::<UInt64Type>().iter();
            numbers.map(|number| number.map(|number| format!("{number:X}"))).collect()
        }
        DataType::Decimal128(_, _) => {
            let numbers = arrays[0].as_primitive::<Decimal128Type>().iter();
            numbers.map(|number| number.map(|number| format!("{number:X}"))).collect()
        }
        DataType::Utf8 => {
            arrays[0].as_string::<i32>().iter().map(|text| text.map(|text| bytes(text.as_bytes()))).collect()
        }
        _ => {
            let binary = cast(&arrays[0], &DataType::Binary)?;
            binary.as_binary::<i32>().iter().map(|value| value.map(bytes)).collect()
        }
    }))
}

fn pairs<T>(arrays: &[ArrayRef], rows: usize, mut of: impl FnMut(&str, &str) -> Result<T>) -> Result<Vec<Option<T>>> {
    let (left, right) = (arrays[0].as_string::<i32>(), arrays[1].as_string::<i32>());
    let value = |row: usize| match left.is_null(row) || right.is_null(row) {
        true => Ok(None),
        false => of(left.value(row), right.value(row)).map(Some),
    };
    (0..rows).map(value).collect()
}

fn bounded(left: &str, right: &str) -> Result<()> {
    if left.len().max(right.len()) > MAX_SIMILAR {
        return Err(invalid(format!("texts are compared by likeness up to {MAX_SIMILAR} bytes")));
    }
    match left.len() * right.len() >= LONG_COMPARISON {
        true => QueryUsage::check_current(),
        false => Ok(()),
    }
}

fn similar(arrays: &[ArrayRef], rows: usize, likeness: fn(&str, &str) -> f64) -> Result<ArrayRef> {
    let values = pairs(arrays, rows, |left, right| bounded(left, right).map(|()| likeness(left, right)))?;
    Ok(Arc::new(Float64Array::from(values)))
}

fn distances(arrays: &[ArrayRef], rows: usize, distance: fn(&str, &str) -> usize) -> Result<ArrayRef> {
    let values = pairs(arrays, rows, |left, right| {
        bounded(left, right).map(|()| i64::try_from(distance(left, right)).unwrap_or(i64::MAX))
    })?;
    Ok(Arc::new(Int64Array::from(values)))
}

/// The share of characters that both texts have.
fn jaccard(left: &str, right: &str) -> f64 {
    let set = |text: &str| text.chars().collect::<std::collections::HashSet<char>>();
    let (left, right) = (set(left), set(right));
    let union = left.union(&right).count();
    if union == 0 { 1.0 } else { left.intersection(&right).count() as f64 / union as f64 }
}

fn texts(arrays: &[ArrayRef], rows: usize, style: Style) -> Result<ArrayRef> {
    let pattern = cast(&arrays[0], &DataType::Utf8)?;
    let pattern = pattern.as_string::<i32>();
    let shown = |array: &ArrayRef| Ok((value_text::texts(array, false)?, array.data_type().is_numeric()));
    let columns = arrays[1..].iter().map(shown).collect::<Result<Vec<(StringArray, bool)>>>()?;
    let mut values = Vec::with_capacity(rows);
    let mut bytes = 0;
    for row in 0..rows {
        let any_null = columns.iter().any(|(column, _)| column.is_null(row));
        if pattern.is_null(row) || (any_null && style == Style::Printf) {
            values.push(None);
            continue;
        }
        let fields = columns.iter().map(|(column, is_number)| {
            column.is_valid(row).then(|| FormatValue { text: column.value(row), is_number: *is_number })
        });
        let fields: Vec<Option<FormatValue<'_>>> = fields.collect();
        values.push(formatted(pattern.value(row), &fields, style, &mut bytes)?);
    }
    Ok(Arc::new(StringArray::from(values)))
}

/// Letters without their marks; those that have none of their own stay, but for `ø`.
fn without_accents(text: &str) -> String {
    let plain = |letter: char| match letter {
        'ø' => 'o',
        'Ø' => 'O',
        other => other,
    };
    text.nfd().filter(|letter| !is_combining_mark(*letter)).map(plain).nfc().collect()
}
