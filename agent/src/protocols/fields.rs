//! The fields of requests: which names a request has, which values a field takes, and in which words others are refused.
//! What is neither honoured nor known to have no effect is refused by its name, so that nothing is dropped in silence.

use serde_json::{Map, Value};
use strsim::osa_distance;

use super::kind_of;
use crate::error::AgentError;

/// Letters by which a name may differ from the one that a message suggests.
const MAX_MISSPELT: usize = 3;
/// The longest field that is compared with those that there are, in bytes.
const LONGEST_MISSPELT: usize = 256;

/// Which values a field takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum FieldValues {
    /// Checked where it is parsed.
    Parsed,
    Flag,
    Text,
    Object,
    List,
    /// A list of texts.
    TextList,
    /// A list of objects, whatever they hold.
    Objects,
    /// A text, or an object.
    TextOrObject,
    /// A text, or a list of objects with these fields and no others.
    TextOrListOf(&'static [(&'static str, FieldValues)]),
    /// A number between these.
    Number(f64, f64),
    /// A whole number between these.
    Integer(i64, i64),
    /// A text that is not empty, or a list of this many at most.
    Texts(usize),
    OneOf(&'static [&'static str]),
    /// A list of some of these.
    SomeOf(&'static [&'static str]),
    /// An object with these fields and no others.
    Members(&'static [(&'static str, FieldValues)]),
    /// Nothing but null and this value, as JSON.
    Only(&'static str),
    /// Nothing but null and one of these values, as JSON.
    OnlyOneOf(&'static [&'static str]),
}

/// A field that has a wrong value, or that the request does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongField {
    /// Its name, with those of the objects that it is in.
    pub at: String,
    /// What is wrong.
    pub message: String,
}

/// Checks the value of a field; `about` says why nothing else is taken where only one value is.
pub(crate) fn check_value(at: &str, values: FieldValues, about: &str, value: &Value) -> Result<(), WrongField> {
    let (fits, wanted) = match values {
        FieldValues::Parsed => return Ok(()),
        FieldValues::Flag => (value.is_boolean(), "true or false".to_owned()),
        FieldValues::Text => (value.is_string(), "a string".to_owned()),
        FieldValues::Object => (value.is_object(), "an object".to_owned()),
        FieldValues::List => (value.is_array(), "a list".to_owned()),
        FieldValues::TextList => {
            check_entries(at, "a string", Value::is_string, value)?;
            (value.is_array(), "a list of strings".to_owned())
        }
        FieldValues::Objects => {
            check_entries(at, "an object", Value::is_object, value)?;
            (value.is_array(), "a list of objects".to_owned())
        }
        FieldValues::TextOrObject => (value.is_string() || value.is_object(), "a string or an object".to_owned()),
        FieldValues::TextOrListOf(members) => {
            let entries = match value {
                Value::String(_) => return Ok(()),
                Value::Array(entries) => entries,
                other => return Err(wrong_kind(at, "a string or a list of objects", other)),
            };
            for (index, entry) in entries.iter().enumerate() {
                check_value(&format!("{at}[{index}]"), FieldValues::Members(members), about, entry)?;
            }
            return Ok(());
        }
        FieldValues::Number(least, most) => (
            value.as_f64().is_some_and(|number| (least..=most).contains(&number)),
            format!("a number between {least} and {most}"),
        ),
        FieldValues::Integer(least, most) => (
            value.as_i64().is_some_and(|number| (least..=most).contains(&number)),
            match (least, most) {
                (0, i64::MAX) => "a whole number of 0 or more".to_owned(),
                (i64::MIN, i64::MAX) => "a whole number of 64 bits".to_owned(),
                _ => format!("a whole number between {least} and {most}"),
            },
        ),
        FieldValues::Texts(most) => {
            // Models' servers take an empty one for an error, or for the end of every reply.
            let is_said = |text: &Value| text.as_str().is_some_and(|text| !text.is_empty());
            if let Some(count) = value.as_array().map(Vec::len).filter(|count| *count > most) {
                let message = format!("`{at}` has {count} strings; at most {most} are taken");
                return Err(WrongField { at: at.to_owned(), message });
            }
            check_entries(at, "a string that is not empty", is_said, value)?;
            (value.is_array() || is_said(value), format!("a string that is not empty, or a list of at most {most}"))
        }
        FieldValues::OneOf(words) => {
            (value.as_str().is_some_and(|word| words.contains(&word)), format!("one of {}", words.join(", ")))
        }
        FieldValues::SomeOf(words) => {
            let is_known = |entry: &Value| entry.as_str().is_some_and(|word| words.contains(&word));
            let Value::Array(entries) = value else {
                return Err(wrong_kind(at, &format!("a list of some of {}", words.join(", ")), value));
            };
            return match entries.iter().position(|entry| !is_known(entry)) {
                None => Ok(()),
                Some(index) => {
                    Err(wrong_kind(&format!("{at}[{index}]"), &format!("one of {}", words.join(", ")), &entries[index]))
                }
            };
        }
        FieldValues::Members(members) => {
            let Value::Object(fields) = value else { return Err(wrong_kind(at, "an object", value)) };
            return check_members(fields, at, members);
        }
        FieldValues::Only(neutral) => return check_neutral(at, &[neutral], about, value),
        FieldValues::OnlyOneOf(neutral) => return check_neutral(at, neutral, about, value),
    };
    if fits { Ok(()) } else { Err(wrong_kind(at, &wanted, value)) }
}

/// Refuses the first entry of a list that does not fit, as a fault of the list.
fn check_entries(at: &str, wanted: &str, fits: impl Fn(&Value) -> bool, list: &Value) -> Result<(), WrongField> {
    let mut entries = list.as_array().into_iter().flatten().enumerate();
    match entries.find(|(_, entry)| !fits(entry)) {
        None => Ok(()),
        Some((index, entry)) => {
            Err(WrongField { at: at.to_owned(), ..wrong_kind(&format!("{at}[{index}]"), wanted, entry) })
        }
    }
}

/// Refuses all values but those that ask for nothing.
fn check_neutral(at: &str, neutral: &[&str], about: &str, value: &Value) -> Result<(), WrongField> {
    let is_neutral = neutral.iter().any(|text| {
        let neutral: Value = serde_json::from_str(text).unwrap_or_default();
        *value == neutral || value.as_f64().is_some_and(|number| Some(number) == neutral.as_f64())
    });
    if is_neutral {
        return Ok(());
    }
    Err(WrongField { at: at.to_owned(), message: format!("`{at}` is not supported: {about}") })
}

/// Checks the fields of an object within a request; null is as good as absent.
pub(crate) fn check_members(
    fields: &Map<String, Value>,
    at: &str,
    members: &[(&str, FieldValues)],
) -> Result<(), WrongField> {
    check_names(fields, at, members.iter().map(|(name, _)| *name))?;
    check_known_members(fields, at, members)
}

/// Checks those fields of an object within a request that are known; it may have others, as the server has that wrote it.
pub(crate) fn check_known_members(
    fields: &Map<String, Value>,
    at: &str,
    members: &[(&str, FieldValues)],
) -> Result<(), WrongField> {
    for (name, values) in members {
        if let Some(value) = fields.get(*name).filter(|value| !value.is_null()) {
            check_value(&format!("{at}.{name}"), *values, "leave it out", value)?;
        }
    }
    Ok(())
}

/// Refuses the first field that has a value and whose name is not one of `known`: null is as good as absent. `at` is the
/// object that they are in; empty for the request.
pub fn check_names<'a>(
    fields: &Map<String, Value>,
    at: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> Result<(), WrongField> {
    let is_unknown = |name: &String| !known.clone().into_iter().any(|known| known == name);
    match fields.iter().find(|(name, value)| !value.is_null() && is_unknown(name)) {
        None => Ok(()),
        Some((name, _)) => Err(unknown_field(name, at, known)),
    }
}

/// Returns the refusal of a field that a request does not have, with the nearest name that it has.
pub(crate) fn unknown_field<'a>(name: &str, at: &str, known: impl IntoIterator<Item = &'a str>) -> WrongField {
    let at = if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    // Comparing takes a time that grows with the name.
    let known = known.into_iter().filter(|_| name.len() <= LONGEST_MISSPELT);
    let nearest = known.map(|known| (osa_distance(name, known), known)).min();
    let advice = match nearest {
        Some((distance, nearest)) if distance <= MAX_MISSPELT.min(name.chars().count() / 2) => {
            format!("did you mean `{nearest}`?")
        }
        _ => "leave it out".to_owned(),
    };
    WrongField { message: format!("`{at}` is not a field that has an effect here; {advice}"), at }
}

fn wrong_kind(at: &str, wanted: &str, value: &Value) -> WrongField {
    let said = match value {
        Value::String(word) => format!("`{word}`"),
        Value::Number(number) if wanted.contains("number") => number.to_string(),
        other => kind_of(other).to_owned(),
    };
    WrongField { at: at.to_owned(), message: format!("`{at}` must be {wanted}, not {said}") }
}

impl From<WrongField> for AgentError {
    fn from(field: WrongField) -> Self {
        Self::InvalidRequest { message: field.message }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_name_is_refused_with_the_nearest() {
        let fields = json!({ "temprature": 1 });
        let fault = check_names(fields.as_object().unwrap(), "", ["temperature", "top_p"]).unwrap_err();
        assert_eq!(fault.at, "temprature");
        assert!(fault.message.contains("did you mean `temperature`?"), "{}", fault.message);
        assert_eq!(check_names(json!({ "zzz": null }).as_object().unwrap(), "", ["temperature"]), Ok(()));
        let far = unknown_field("zzz", "text", ["format"]);
        assert_eq!((far.at.as_str(), far.message.contains("leave it out")), ("text.zzz", true));
    }

    #[test]
    fn the_members_of_an_object_are_checked_by_name_and_kind() {
        const MEMBERS: FieldValues = FieldValues::Members(&[("verbosity", FieldValues::OneOf(&["low", "high"]))]);
        let fault = |value: Value| check_value("text", MEMBERS, "", &value).map_err(|fault| fault.at);
        assert_eq!(fault(json!({ "verbosity": "low" })), Ok(()));
        assert_eq!(fault(json!({ "verbosity": null })), Ok(()));
        assert_eq!(fault(json!({ "verbosity": "loud" })), Err("text.verbosity".to_owned()));
        assert_eq!(fault(json!({ "colour": "red" })), Err("text.colour".to_owned()));
        assert_eq!(fault(json!("low")), Err("text".to_owned()));
    }

    #[test]
    fn lists_of_objects_and_texts_are_told_apart() {
        const PARTS: FieldValues = FieldValues::TextOrListOf(&[("text", FieldValues::Text)]);
        let fault = |values: FieldValues, value: Value| check_value("x", values, "", &value).map_err(|fault| fault.at);
        for value in [json!("a"), json!([]), json!([{ "text": "a" }])] {
            assert_eq!(fault(PARTS, value), Ok(()));
        }
        assert_eq!(fault(PARTS, json!(7)), Err("x".to_owned()));
        assert_eq!(fault(PARTS, json!(["a"])), Err("x[0]".to_owned()));
        assert_eq!(fault(PARTS, json!([{ "text": "a" }, { "text": 7 }])), Err("x[1].text".to_owned()));
        assert_eq!(fault(PARTS, json!([{ "zzz": 7 }])), Err("x[0].zzz".to_owned()));
        assert_eq!(fault(FieldValues::Objects, json!([{ "zzz": 7 }])), Ok(()));
        assert_eq!(fault(FieldValues::Objects, json!(["a"])), Err("x".to_owned()));
        assert_eq!(fault(FieldValues::TextOrObject, json!({})), Ok(()));
        assert_eq!(fault(FieldValues::TextOrObject, json!(7)), Err("x".to_owned()));
    }

    #[test]
    fn the_refusal_of_a_list_says_what_is_wrong_in_it() {
        for (values, value, expected) in [
            (FieldValues::Texts(4), json!(["a", "b", "c", "d", "e"]), "`stop` has 5 strings; at most 4 are taken"),
            (FieldValues::Texts(4), json!(["a", 7]), "`stop[1]` must be a string that is not empty, not a number"),
            (
                FieldValues::Texts(4),
                json!(7),
                "`stop` must be a string that is not empty, or a list of at most 4, not a number",
            ),
            (FieldValues::TextList, json!(["a", {}]), "`stop[1]` must be a string, not an object"),
            (FieldValues::Objects, json!(["a"]), "`stop[0]` must be an object, not `a`"),
        ] {
            let fault = check_value("stop", values, "", &value).unwrap_err();
            assert_eq!((fault.at.as_str(), fault.message.as_str()), ("stop", expected));
        }
        assert_eq!(check_value("stop", FieldValues::Texts(4), "", &json!(["a", "b", "c", "d"])), Ok(()));
    }

    #[test]
    fn a_value_that_asks_for_nothing_is_taken() {
        const WORDS: FieldValues = FieldValues::OnlyOneOf(&["\"none\"", "\"auto\""]);
        let is_taken = |values: FieldValues, value: Value| check_value("x", values, "", &value).is_ok();
        assert!(is_taken(WORDS, json!("auto")) && is_taken(WORDS, json!("none")));
        assert!(!is_taken(WORDS, json!("required")) && !is_taken(WORDS, json!({ "name": "f" })));
        assert!(is_taken(FieldValues::Only("1"), json!(1.0)) && is_taken(FieldValues::Only("[]"), json!([])));
    }
}
