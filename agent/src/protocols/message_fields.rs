//! The fields of messages and of their parts, which are refused by name where they would change nothing, as those of the
//! request are. Only what clients write themselves is looked at: messages of an assistant come back as some server made
//! them, with fields of its own.

use serde_json::Value;

use super::fields::{FieldValues, WrongField, check_members};

/// The fields of a kind of part.
pub(crate) type PartFields = (&'static str, &'static [MemberField]);

/// A field's name, and which values it takes.
pub(crate) type MemberField = (&'static str, FieldValues);

const ROLE: MemberField = ("role", FieldValues::Parsed);
const CONTENT: MemberField = ("content", FieldValues::Parsed);
const ID: MemberField = ("id", FieldValues::Text);
const NAME: MemberField = ("name", FieldValues::Text);
const STATUS: MemberField = ("status", FieldValues::OneOf(&["in_progress", "completed", "incomplete"]));
/// The fields of users' messages in Responses.
pub(crate) const RESPONSES_MESSAGE: &[MemberField] =
    &[TYPE, ROLE, CONTENT, ID, STATUS, ("phase", FieldValues::OneOf(&["commentary", "final_answer"]))];
/// The fields of users' messages in KsADK's requests, which take both of OpenAI's forms.
pub(crate) const KSADK_MESSAGE: &[MemberField] =
    &[TYPE, ROLE, CONTENT, ID, STATUS, NAME, ("phase", FieldValues::OneOf(&["commentary", "final_answer"]))];
/// The fields of users' messages in Chat Completions.
pub(crate) const CHAT_MESSAGE: &[MemberField] = &[ROLE, CONTENT, NAME];
/// The fields of tools' messages there.
pub(crate) const CHAT_TOOL_MESSAGE: &[MemberField] = &[ROLE, CONTENT, NAME, ("tool_call_id", FieldValues::Text)];
/// The fields of users' messages in Messages.
pub(crate) const ANTHROPIC_MESSAGE: &[MemberField] = &[ROLE, CONTENT];
/// The items of Responses that clients write themselves, beside messages.
const RESPONSES_ITEMS: &[PartFields] = &[
    (
        "function_call_output",
        &[
            TYPE,
            ID,
            STATUS,
            ("call_id", FieldValues::Text),
            ("output", FieldValues::Parsed),
            NAME,
            ("namespace", FieldValues::Text),
            ("caller", FieldValues::Only("{\"type\":\"direct\"}")),
        ],
    ),
    (
        "mcp_approval_response",
        &[
            TYPE,
            ID,
            ("approval_request_id", FieldValues::Text),
            ("approve", FieldValues::Flag),
            ("reason", FieldValues::Text),
        ],
    ),
    ("item_reference", &[TYPE, ID]),
];

const DETAIL: (&str, FieldValues) = ("detail", FieldValues::OneOf(&["low", "high", "auto", "original"]));
const TYPE: (&str, FieldValues) = ("type", FieldValues::Parsed);
/// Where the part of the prompt ends that the model's server keeps, which it decides itself.
const CACHE_BREAKPOINT: MemberField = (
    "prompt_cache_breakpoint",
    FieldValues::Members(&[("mode", FieldValues::OneOf(&["explicit"])), ("ttl", FieldValues::OneOf(&["30m", "12h"]))]),
);
const TEXT: &[(&str, FieldValues)] = &[
    TYPE,
    ("text", FieldValues::Parsed),
    ("annotations", FieldValues::List),
    ("logprobs", FieldValues::List),
    CACHE_BREAKPOINT,
];
const IMAGE: &[MemberField] =
    &[TYPE, ("image_url", FieldValues::Parsed), ("file_id", FieldValues::Text), DETAIL, CACHE_BREAKPOINT];
const FILE: FieldValues = FieldValues::Members(&[
    ("filename", FieldValues::Text),
    ("file_data", FieldValues::Text),
    ("file_id", FieldValues::Text),
    ("file_url", FieldValues::Text),
]);

/// The parts of OpenAI's messages.
pub(crate) const OPENAI_PARTS: &[PartFields] = &[
    ("text", TEXT),
    ("input_text", TEXT),
    ("image_url", IMAGE),
    ("input_image", IMAGE),
    ("file", &[TYPE, ("file", FILE), CACHE_BREAKPOINT]),
    (
        "input_file",
        &[
            TYPE,
            ("filename", FieldValues::Text),
            ("file_data", FieldValues::Text),
            ("file_id", FieldValues::Text),
            ("file_url", FieldValues::Text),
            DETAIL,
            CACHE_BREAKPOINT,
        ],
    ),
];

const SOURCE: (&str, FieldValues) = (
    "source",
    FieldValues::Members(&[
        TYPE,
        ("media_type", FieldValues::Text),
        ("data", FieldValues::Text),
        ("url", FieldValues::Text),
    ]),
);
/// How long a part of the prompt is kept by the model's server, which decides that itself.
const CACHE_CONTROL: (&str, FieldValues) = (
    "cache_control",
    FieldValues::Members(&[("type", FieldValues::OneOf(&["ephemeral"])), ("ttl", FieldValues::OneOf(&["5m", "1h"]))]),
);

/// The parts of Anthropic's messages.
pub(crate) const ANTHROPIC_PARTS: &[PartFields] = &[
    ("text", &[TYPE, ("text", FieldValues::Parsed), ("citations", FieldValues::Only("[]")), CACHE_CONTROL]),
    ("image", &[TYPE, SOURCE, CACHE_CONTROL]),
    (
        "document",
        &[
            TYPE,
            SOURCE,
            ("title", FieldValues::Text),
            ("context", FieldValues::Text),
            ("citations", FieldValues::Members(&[("enabled", FieldValues::Flag)])),
            CACHE_CONTROL,
        ],
    ),
    (
        "tool_result",
        &[
            TYPE,
            ("tool_use_id", FieldValues::Text),
            ("content", FieldValues::Parsed),
            ("is_error", FieldValues::Flag),
            CACHE_CONTROL,
        ],
    ),
];

/// Refuses what a message that is not an assistant's has beside `fields`, and what its parts have beside theirs in `parts`.
/// Other types of parts, and KsADK's older ones without a type, are left to who reads them.
pub(crate) fn check_message(
    message: &Value,
    at: &str,
    fields: &[MemberField],
    parts: &[PartFields],
) -> Result<(), WrongField> {
    let Value::Object(given) = message else { return Ok(()) };
    if given.get("role").is_some_and(|role| role == "assistant") {
        return Ok(());
    }
    check_members(given, at, fields)?;
    match given.get("content") {
        Some(Value::Array(list)) => check_parts(list, &format!("{at}.content"), parts),
        Some(part @ Value::Object(_)) => check_parts(std::slice::from_ref(part), &format!("{at}.content"), parts),
        _ => Ok(()),
    }
}

/// Refuses what an item of Responses that is no message has beside its fields, where clients write it themselves.
pub(crate) fn check_item(item: &Value, at: &str) -> Result<(), WrongField> {
    let known = RESPONSES_ITEMS.iter().find(|(kind, _)| item["type"] == *kind);
    match (item, known) {
        (Value::Object(given), Some((_, members))) => check_members(given, at, members),
        _ => Ok(()),
    }
}

/// Refuses what parts of a list have beside their fields.
pub(crate) fn check_parts(list: &[Value], at: &str, parts: &[PartFields]) -> Result<(), WrongField> {
    for (index, part) in list.iter().enumerate() {
        let Value::Object(given) = part else { continue };
        let kind = given.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some((_, members)) = parts.iter().find(|(known, _)| *known == kind) else { continue };
        let at = format!("{at}[{index}]");
        check_members(given, &at, members)?;
        // What a result of Messages is made of.
        if let Some(Value::Array(blocks)) = given.get("content").filter(|_| kind == "tool_result") {
            check_parts(blocks, &format!("{at}.content"), parts)?;
        }
        if let Some(Value::Object(image)) = given.get("image_url") {
            check_members(image, &format!("{at}.image_url"), &[("url", FieldValues::Text), DETAIL])?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_changes_nothing_is_refused_where_clients_write_it() {
        let refused = |message: Value| {
            check_message(&message, "messages[0]", CHAT_MESSAGE, OPENAI_PARTS).err().map(|fault| fault.at)
        };
        let with = |part: Value| json!({ "role": "user", "content": [part] });
        for (message, at) in [
            (json!({ "role": "user", "content": "x", "zzz": 1 }), "messages[0].zzz"),
            (with(json!({ "type": "text", "text": "x", "zzz": 1 })), "messages[0].content[0].zzz"),
            (
                with(json!({ "type": "image_url", "image_url": { "url": "x", "detail": "zzz" } })),
                "messages[0].content[0].image_url.detail",
            ),
            (with(json!({ "type": "file", "file": { "name": "x" } })), "messages[0].content[0].file.name"),
            (
                with(json!({ "type": "text", "text": "x", "prompt_cache_breakpoint": { "mode": "zzz" } })),
                "messages[0].content[0].prompt_cache_breakpoint.mode",
            ),
            (json!({ "role": "user", "content": "x", "name": 7 }), "messages[0].name"),
            (json!({ "role": "user", "content": "x", "tool_call_id": "c" }), "messages[0].tool_call_id"),
        ] {
            assert_eq!(refused(message).as_deref(), Some(at));
        }
        for message in [
            json!({ "role": "assistant", "content": "x", "zzz": 1 }),
            json!({ "role": "user", "content": "x", "name": "ann", "zzz": null }),
            with(json!({ "type": "image_url", "image_url": { "url": "x", "detail": "low" } })),
            with(json!({ "inlineData": { "mimeType": "text/plain", "data": "eA==" } })),
            with(json!({ "type": "text", "text": "x", "prompt_cache_breakpoint": { "mode": "explicit" } })),
        ] {
            assert_eq!(refused(message.clone()), None, "{message}");
        }
        let output = json!({ "type": "function_call_output", "call_id": "c", "output": "x" });
        assert_eq!(check_item(&output, "input[0]"), Ok(()));
        let fault = check_item(&json!({ "type": "item_reference", "id": "x", "zzz": 1 }), "input[0]").unwrap_err();
        assert_eq!(fault.at, "input[0].zzz");
        assert_eq!(check_item(&json!({ "type": "reasoning", "zzz": 1 }), "input[0]"), Ok(()), "a server wrote it");
    }
}
