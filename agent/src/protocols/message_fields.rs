//! The fields of messages, of their parts and of items, which are refused by name where they would change nothing, as those of
//! the request are, in what clients write themselves. What some server wrote, an assistant's message and most items, comes back
//! with fields of its own: those that are known are checked, and the others left out.

use serde_json::{Map, Value};

use super::fields::{FieldValues, WrongField, check_known_members, check_members};

/// The fields of a kind of part.
pub(crate) type PartFields = (&'static str, &'static [MemberField]);

/// A field's name, and which values it takes.
pub(crate) type MemberField = (&'static str, FieldValues);

/// The parts of a protocol's messages.
pub(crate) struct PartKinds {
    /// Those that clients write.
    pub(crate) written: &'static [PartFields],
    /// Those of an assistant.
    of_assistant: &'static [PartFields],
}

/// How the fields of an object are checked: whether it may have others than those that are known.
type FieldsCheck = fn(&Map<String, Value>, &str, &[MemberField]) -> Result<(), WrongField>;

const ROLE: MemberField = ("role", FieldValues::Parsed);
const CONTENT: MemberField = ("content", FieldValues::Parsed);
const ID: MemberField = ("id", FieldValues::Text);
const NAME: MemberField = ("name", FieldValues::Text);
const STATUS: MemberField = ("status", FieldValues::OneOf(&["in_progress", "completed", "incomplete"]));
const PHASE: MemberField = ("phase", FieldValues::OneOf(&["commentary", "final_answer"]));
const CALL_ID: MemberField = ("call_id", FieldValues::Text);
const SERVER: MemberField = ("server_label", FieldValues::Text);
/// The roles whose messages say something, which others may do by calls, or by having no result.
const ASKERS: [&str; 3] = ["user", "system", "developer"];
/// The fields of users' messages in Responses.
pub(crate) const RESPONSES_MESSAGE: &[MemberField] = &[TYPE, ROLE, CONTENT, ID, STATUS, PHASE];
/// The fields of users' messages in KsADK's requests, which take both of OpenAI's forms.
pub(crate) const KSADK_MESSAGE: &[MemberField] = &[TYPE, ROLE, CONTENT, ID, STATUS, NAME, PHASE];
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
            CALL_ID,
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
/// The items of Responses that a server wrote.
const SERVERS_ITEMS: &[PartFields] = &[
    (
        "function_call",
        &[
            ID,
            STATUS,
            CALL_ID,
            NAME,
            ("namespace", FieldValues::Text),
            ("caller", FieldValues::Object),
            ("async", FieldValues::Flag),
        ],
    ),
    (
        "mcp_call",
        &[
            ID,
            SERVER,
            NAME,
            ("status", FieldValues::OneOf(&["in_progress", "completed", "incomplete", "calling", "failed"])),
            ("approval_request_id", FieldValues::Text),
            ("error", FieldValues::TextOrObject),
        ],
    ),
    ("mcp_approval_request", &[ID, SERVER, NAME]),
    ("mcp_list_tools", &[ID, SERVER, ("tools", FieldValues::Objects), ("error", FieldValues::TextOrObject)]),
    (
        "reasoning",
        &[
            ID,
            STATUS,
            ("summary", FieldValues::Objects),
            ("content", FieldValues::Objects),
            ("encrypted_content", FieldValues::Text),
        ],
    ),
    ("compaction", &[ID]),
];
/// The fields of an assistant's messages, whichever the protocol.
const ASSISTANT_MESSAGE: &[MemberField] = &[
    ID,
    NAME,
    STATUS,
    PHASE,
    ("refusal", FieldValues::Text),
    ("reasoning_content", FieldValues::Text),
    ("annotations", FieldValues::Objects),
    ("audio", FieldValues::Object),
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
    ("annotations", FieldValues::Objects),
    ("logprobs", FieldValues::Objects),
    CACHE_BREAKPOINT,
];
/// The parts of a prediction of the answer.
pub(crate) const PREDICTED_PARTS: &[MemberField] =
    &[("type", FieldValues::OneOf(&["text"])), ("text", FieldValues::Text), CACHE_BREAKPOINT];
const IMAGE: &[MemberField] =
    &[TYPE, ("image_url", FieldValues::Parsed), ("file_id", FieldValues::Text), DETAIL, CACHE_BREAKPOINT];
const FILE: FieldValues = FieldValues::Members(&[
    ("filename", FieldValues::Text),
    ("file_data", FieldValues::Text),
    ("file_id", FieldValues::Text),
    ("file_url", FieldValues::Text),
]);

/// The parts of OpenAI's messages.
pub(crate) const OPENAI_PARTS: PartKinds =
    PartKinds { written: WRITTEN_FOR_OPENAI, of_assistant: OF_OPENAIS_ASSISTANT };
const OF_OPENAIS_ASSISTANT: &[PartFields] =
    &[("text", TEXT), ("input_text", TEXT), ("output_text", TEXT), ("refusal", &[("refusal", FieldValues::Text)])];
const WRITTEN_FOR_OPENAI: &[PartFields] = &[
    ("text", TEXT),
    ("input_text", TEXT),
    ("image_url", IMAGE),
    ("input_image", IMAGE),
    ("file", &[TYPE, ("file", FILE), CACHE_BREAKPOINT]),
    ("input_file", INPUT_FILE),
];
const INPUT_FILE: &[MemberField] = &[
    TYPE,
    ("filename", FieldValues::Text),
    ("file_data", FieldValues::Text),
    ("file_id", FieldValues::Text),
    ("file_url", FieldValues::Text),
    DETAIL,
    CACHE_BREAKPOINT,
];
/// The parts of a call's output. A list of others is JSON that the tool returned.
const OUTPUT_PARTS: &[PartFields] = &[
    (
        "input_text",
        &[
            TYPE,
            ("text", FieldValues::Text),
            ("annotations", FieldValues::Objects),
            ("logprobs", FieldValues::Objects),
            CACHE_BREAKPOINT,
        ],
    ),
    ("input_image", IMAGE),
    ("input_file", INPUT_FILE),
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

/// Whether the answer is to cite a part, which those that do not are sent with.
const CITATIONS: MemberField = ("citations", FieldValues::Members(&[("enabled", FieldValues::Flag)]));

/// The parts of Anthropic's messages.
pub(crate) const ANTHROPIC_PARTS: PartKinds =
    PartKinds { written: WRITTEN_FOR_ANTHROPIC, of_assistant: OF_ANTHROPICS_ASSISTANT };
const OF_ANTHROPICS_ASSISTANT: &[PartFields] = &[
    ("text", &[("citations", FieldValues::Objects), CACHE_CONTROL]),
    ("tool_use", &[ID, NAME, ("caller", FieldValues::Object), CACHE_CONTROL]),
    ("thinking", &[("thinking", FieldValues::Text), ("signature", FieldValues::Text)]),
    ("redacted_thinking", &[("data", FieldValues::Text)]),
];
const WRITTEN_FOR_ANTHROPIC: &[PartFields] = &[
    ("text", &[TYPE, ("text", FieldValues::Parsed), ("citations", FieldValues::Only("[]")), CACHE_CONTROL]),
    ("image", &[TYPE, SOURCE, CACHE_CONTROL]),
    (
        "document",
        &[TYPE, SOURCE, ("title", FieldValues::Text), ("context", FieldValues::Text), CITATIONS, CACHE_CONTROL],
    ),
    (
        "search_result",
        &[
            TYPE,
            ("source", FieldValues::Text),
            ("title", FieldValues::Text),
            ("content", FieldValues::Objects),
            CITATIONS,
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

/// Refuses what a message has beside `fields`, and what its parts have beside theirs; of an assistant's only what is known is
/// looked at. Other types of parts, and KsADK's older ones without a type, are left to who reads them.
pub(crate) fn check_message(
    message: &Value,
    at: &str,
    fields: &[MemberField],
    parts: &PartKinds,
) -> Result<(), WrongField> {
    let Value::Object(given) = message else { return Ok(()) };
    let is_assistants = given.get("role").is_some_and(|role| role == "assistant");
    let check: FieldsCheck = if is_assistants { check_known_members } else { check_members };
    let (fields, parts) = match is_assistants {
        true => (ASSISTANT_MESSAGE, parts.of_assistant),
        false => (fields, parts.written),
    };
    check(given, at, fields)?;
    let at = format!("{at}.content");
    let is_askers = given.get("role").and_then(Value::as_str).is_some_and(|role| ASKERS.contains(&role));
    if is_askers && given.get("content").is_none_or(Value::is_null) {
        return Err(WrongField { message: format!("`{at}` is missing: the message says nothing"), at });
    }
    match given.get("content") {
        Some(Value::Array(list)) => check_each(list, &at, parts, check),
        Some(part @ Value::Object(_)) => check_each(std::slice::from_ref(part), &at, parts, check),
        _ => Ok(()),
    }
}

/// Refuses what an item of Responses that is no message has beside its fields, where clients write it themselves, and what is
/// not as its type has it where a server wrote it.
pub(crate) fn check_item(item: &Value, at: &str) -> Result<(), WrongField> {
    let Value::Object(given) = item else { return Ok(()) };
    let of_kind = |kinds: &'static [PartFields]| kinds.iter().find(|(kind, _)| item["type"] == *kind);
    match (of_kind(RESPONSES_ITEMS), of_kind(SERVERS_ITEMS)) {
        (Some((_, members)), _) => check_members(given, at, members)?,
        (None, Some((_, members))) => check_known_members(given, at, members)?,
        (None, None) => {}
    }
    match given.get("output").filter(|_| item["type"] == "function_call_output") {
        Some(Value::Array(parts)) => check_parts(parts, &format!("{at}.output"), OUTPUT_PARTS),
        _ => Ok(()),
    }
}

/// Refuses what parts of a list have beside their fields.
pub(crate) fn check_parts(list: &[Value], at: &str, parts: &[PartFields]) -> Result<(), WrongField> {
    check_each(list, at, parts, check_members)
}

fn check_each(list: &[Value], at: &str, parts: &[PartFields], check: FieldsCheck) -> Result<(), WrongField> {
    for (index, part) in list.iter().enumerate() {
        let Value::Object(given) = part else { continue };
        let kind = given.get("type").and_then(Value::as_str).unwrap_or_default();
        let Some((_, members)) = parts.iter().find(|(known, _)| *known == kind) else { continue };
        let at = format!("{at}[{index}]");
        check(given, &at, members)?;
        // What a result of Messages is made of.
        let is_result = matches!(kind, "tool_result" | "search_result");
        if let Some(Value::Array(blocks)) = given.get("content").filter(|_| is_result) {
            check_each(blocks, &format!("{at}.content"), parts, check)?;
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
            check_message(&message, "messages[0]", CHAT_MESSAGE, &OPENAI_PARTS).err().map(|fault| fault.at)
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
            (json!({ "role": "user" }), "messages[0].content"),
            (json!({ "role": "developer", "content": null }), "messages[0].content"),
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
        let output_of =
            |part: Value| json!({ "type": "function_call_output", "call_id": "c", "output": [{ "score": 1 }, part] });
        for (part, at) in [
            (json!({ "type": "input_text", "text": "x", "zzz": 1 }), "input[0].output[1].zzz"),
            (json!({ "type": "input_text", "text": 7 }), "input[0].output[1].text"),
            (json!({ "type": "input_image", "detail": "zzz" }), "input[0].output[1].detail"),
        ] {
            assert_eq!(check_item(&output_of(part), "input[0]").unwrap_err().at, at);
        }
        for part in [json!({ "type": "input_text", "text": "x", "zzz": null }), json!({ "type": "row", "zzz": 1 })] {
            assert_eq!(check_item(&output_of(part), "input[0]"), Ok(()));
        }
        let fault = check_item(&json!({ "type": "item_reference", "id": "x", "zzz": 1 }), "input[0]").unwrap_err();
        assert_eq!(fault.at, "input[0].zzz");
        assert_eq!(check_item(&json!({ "type": "reasoning", "zzz": 1 }), "input[0]"), Ok(()), "a server wrote it");
    }

    #[test]
    fn what_a_server_wrote_is_checked_where_it_is_known() {
        let fault = |item: Value| check_item(&item, "input[0]").err().map(|fault| fault.at);
        for (item, at) in [
            (json!({ "type": "function_call", "status": "zzz" }), "input[0].status"),
            (json!({ "type": "function_call", "id": 7 }), "input[0].id"),
            (json!({ "type": "mcp_call", "error": 7 }), "input[0].error"),
            (json!({ "type": "mcp_call", "approval_request_id": [] }), "input[0].approval_request_id"),
            (json!({ "type": "reasoning", "summary": ["x"] }), "input[0].summary"),
            (json!({ "type": "mcp_list_tools", "tools": {} }), "input[0].tools"),
        ] {
            assert_eq!(fault(item).as_deref(), Some(at));
        }
        for item in [
            json!({ "type": "function_call", "status": null, "id": null, "caller": { "type": "direct" }, "index": 0 }),
            json!({ "type": "mcp_call", "status": "failed", "error": { "type": "http_error", "code": 1, "message": "x" } }),
            json!({ "type": "reasoning", "id": "r", "summary": [], "content": null, "encrypted_content": null, "zzz": 1 }),
        ] {
            assert_eq!(fault(item.clone()), None, "{item}");
        }
        let assistants = |parts: &PartKinds, message: Value| {
            check_message(&message, "messages[0]", CHAT_MESSAGE, parts).err().map(|fault| fault.at)
        };
        let with = |part: Value| json!({ "role": "assistant", "content": [part], "tool_calls": [] });
        for (message, at) in [
            (json!({ "role": "assistant", "refusal": 7 }), "messages[0].refusal"),
            (json!({ "role": "assistant", "audio": "x" }), "messages[0].audio"),
            (
                with(json!({ "type": "output_text", "text": "x", "annotations": ["x"] })),
                "messages[0].content[0].annotations",
            ),
            (
                with(json!({ "type": "text", "text": "x", "prompt_cache_breakpoint": 7 })),
                "messages[0].content[0].prompt_cache_breakpoint",
            ),
        ] {
            assert_eq!(assistants(&OPENAI_PARTS, message).as_deref(), Some(at));
        }
        let cited = with(json!({ "type": "text", "text": "x", "citations": [{ "type": "page_location" }], "zzz": 1 }));
        assert_eq!(assistants(&ANTHROPIC_PARTS, cited), None);
        let thought = with(json!({ "type": "thinking", "thinking": 7, "signature": "" }));
        assert_eq!(assistants(&ANTHROPIC_PARTS, thought).as_deref(), Some("messages[0].content[0].thinking"));
    }
}
