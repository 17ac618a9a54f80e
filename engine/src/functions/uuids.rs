//! UUIDs, which are text here: 36 characters in lower case, with dashes. `to_uuid` and `try_to_uuid` are what casts to UUID
//! become. They read what PostgreSQL and DuckDB read: digits in any case, with dashes or without, in braces or without.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use uuid::Uuid;

use super::definition::{Definition, invalid, unfit};
use crate::type_names::sql_name;

/// The function that makes UUIDs of texts, and of 16 bytes.
pub(crate) const TO_UUID: &str = "to_uuid";
/// As [`TO_UUID`], of the items of a list.
pub(crate) const TO_UUID_LIST: &str = "to_uuid_list";
/// As [`TO_UUID`], with nulls for what is no UUID.
pub(crate) const TRY_TO_UUID: &str = "try_to_uuid";

/// The most characters of a text that an error shows.
const MOST_SHOWN: usize = 64;
/// Where the dashes are.
const DASHES: [usize; 4] = [8, 13, 18, 23];

pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let all = [
        Definition {
            name: TO_UUID,
            aliases: &[],
            arguments: 1..=1,
            takes,
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| uuids(&arrays[0], false),
        },
        Definition {
            name: TRY_TO_UUID,
            aliases: &[],
            arguments: 1..=1,
            takes,
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| uuids(&arrays[0], true),
        },
        Definition {
            name: TO_UUID_LIST,
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _)]
                    if takes(&[item.data_type().clone()])? == [DataType::Utf8] =>
                {
                    Ok(vec![uuid_list()])
                }
                [DataType::Null] => Ok(vec![uuid_list()]),
                _ => Err(unfit("to_uuid_list takes a list of texts".into())),
            },
            returns: |_| Ok(uuid_list()),
            compute: |arrays, _| uuid_lists(&arrays[0]),
        },
    ];
    all.into_iter().map(Definition::into_udf).collect()
}

fn uuid_list() -> DataType {
    DataType::new_list(DataType::Utf8, true)
}

/// Returns lists of texts with their items as UUIDs. Errors: an item that is none.
fn uuid_lists(array: &ArrayRef) -> Result<ArrayRef> {
    let mut lists = ListBuilder::new(StringBuilder::new());
    // What lies behind a null, or outside of a part of an array, is no item.
    for texts in array.as_list::<i32>().iter() {
        if let Some(texts) = &texts {
            for id in uuids(texts, false)?.as_string::<i32>() {
                lists.values().append_option(id);
            }
        }
        lists.append(texts.is_some());
    }
    Ok(Arc::new(lists.finish()))
}

fn takes(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null] => Ok(vec![DataType::Utf8]),
        [DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_)] => {
            Ok(vec![DataType::Binary])
        }
        [DataType::Dictionary(_, values)] => takes(&[values.as_ref().clone()]),
        [other] => Err(unfit(format!("a UUID is made of a text or of 16 bytes, not of {}", sql_name(other)))),
        _ => Ok(Vec::new()),
    }
}

/// Returns a text as a UUID is written; `None` where it is none.
pub(crate) fn uuid_text(text: &str) -> Option<String> {
    let digits = match text.strip_prefix('{') {
        Some(rest) => rest.strip_suffix('}')?,
        None => text,
    };
    let digits: String = digits.chars().filter(|letter| *letter != '-').collect();
    // Of so many characters the parser takes digits alone.
    let is_whole = digits.len() == 32;
    is_whole.then(|| Uuid::try_parse(&digits).ok()).flatten().map(|id| id.to_string())
}

/// Returns texts, or values of 16 bytes, as UUIDs. `is_try`: null where one is none. Errors: such a value.
pub(crate) fn uuids(array: &ArrayRef, is_try: bool) -> Result<ArrayRef> {
    if let Some(bytes) = array.as_binary_opt::<i32>() {
        let read = bytes.iter().map(|value| match value.map(|bytes| (bytes.len(), Uuid::from_slice(bytes))) {
            None => Ok(None),
            Some((_, Ok(id))) => Ok(Some(id.to_string())),
            Some((_, Err(_))) if is_try => Ok(None),
            Some((length, Err(_))) => Err(invalid(format!("a UUID has 16 bytes, not {length}"))),
        });
        return Ok(Arc::new(read.collect::<Result<StringArray>>()?));
    }
    let texts = array.as_string::<i32>();
    if texts.iter().flatten().all(is_uuid_text) {
        return Ok(Arc::clone(array));
    }
    let read = texts.iter().map(|text| match text.map(|text| (text, uuid_text(text))) {
        None => Ok(None),
        Some((_, Some(id))) => Ok(Some(id)),
        Some((_, None)) if is_try => Ok(None),
        Some((text, None)) => Err(invalid(no_uuid(text))),
    });
    Ok(Arc::new(read.collect::<Result<StringArray>>()?))
}

/// Returns what is said of a text that is no UUID.
pub(crate) fn no_uuid(text: &str) -> String {
    let shown: String = text.chars().take(MOST_SHOWN).collect();
    format!("`{shown}` is no UUID: write 32 hexadecimal digits, as in eeccb8c5-9943-b2bb-bb5e-222f4e14b687")
}

/// Returns whether a text is a UUID as it is written here.
fn is_uuid_text(text: &str) -> bool {
    let is_part = |(place, byte): (usize, u8)| match DASHES.contains(&place) {
        true => byte == b'-',
        false => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
    };
    text.len() == 36 && text.bytes().enumerate().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_read_as_postgresql_and_duckdb_read_them() {
        const ID: &str = "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11";
        for text in [
            ID,
            "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "a0eebc999c0b4ef8bb6d6bb9bd380a11",
            "a0ee-bc99-9c0b-4ef8-bb6d-6bb9-bd38-0a11",
            "{a0eebc99-9c0b4ef8-bb6d6bb9-bd380a11}",
        ] {
            assert_eq!(uuid_text(text).as_deref(), Some(ID), "{text}");
        }
        for text in [
            "",
            "abc",
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a1",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            " a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "é",
        ] {
            assert_eq!(uuid_text(text), None, "{text}");
        }
        assert_eq!(uuid_text("urn:uuid:a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"), None);
        assert_eq!(uuid_text("g0eebc999c0b4ef8bb6d6bb9bd380a11"), None);
    }

    #[test]
    fn what_is_written_so_already_is_kept() {
        assert!(is_uuid_text("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"));
        for text in ["A0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99x9c0b-4ef8-bb6d-6bb9bd380a11", "a0eebc99"] {
            assert!(!is_uuid_text(text), "{text}");
        }
    }
}
