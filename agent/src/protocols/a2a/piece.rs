//! The update with a piece of the answer. Nearly all frames are these, so they are written without building a document first.

use serde::Serialize;
use serde_json::Value;

use super::A2aVersion;
use crate::protocols::{Frame, push_json};

/// The artifact that has the answer.
pub(super) const ANSWER: &str = "answer";

/// Whose the piece is.
pub(super) struct PieceOf<'a> {
    pub(super) version: A2aVersion,
    /// The request's id.
    pub(super) id: &'a Value,
    pub(super) task_id: &'a str,
    pub(super) context_id: &'a Value,
}

#[derive(Serialize)]
struct PieceAnswer<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    result: PieceResult<'a>,
}

/// The update, under its name in the newer version.
#[derive(Serialize)]
#[serde(untagged)]
enum PieceResult<'a> {
    Named {
        #[serde(rename = "artifactUpdate")]
        update: PieceUpdate<'a>,
    },
    Plain(PieceUpdate<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PieceUpdate<'a> {
    task_id: &'a str,
    context_id: &'a Value,
    artifact: PieceArtifact<'a>,
    append: bool,
    last_chunk: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PieceArtifact<'a> {
    artifact_id: &'static str,
    name: &'static str,
    parts: [PieceText<'a>; 1],
}

#[derive(Serialize)]
struct PieceText<'a> {
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
}

/// Returns the frame of a piece of the answer, which follows those before it where it is to be appended.
pub(super) fn piece_frame(of: &PieceOf<'_>, text: &str, append: bool) -> Frame {
    // The older version says of each object what it is.
    let kind = |kind: &'static str| (of.version == A2aVersion::V0_3).then_some(kind);
    let update = PieceUpdate {
        task_id: of.task_id,
        context_id: of.context_id,
        artifact: PieceArtifact { artifact_id: ANSWER, name: ANSWER, parts: [PieceText { text, kind: kind("text") }] },
        append,
        last_chunk: false,
        kind: kind("artifact-update"),
    };
    let result = match of.version {
        A2aVersion::V0_3 => PieceResult::Plain(update),
        A2aVersion::V1_0 => PieceResult::Named { update },
    };
    Frame::unnamed(&PieceAnswer { jsonrpc: "2.0", id: of.id, result })
}

/// What stands for a text, and how that is written.
const PLACE: (&str, &str) = ("\u{0}", "\"\\u0000\"");

/// A server-sent event with a piece that is appended, but for its text: it is the same for all of them.
#[derive(Debug)]
pub(super) struct PieceBytes {
    before: String,
    after: String,
}

impl PieceBytes {
    pub(super) fn new(of: &PieceOf<'_>) -> Self {
        let (place, written) = PLACE;
        let data = piece_frame(of, place, true).data;
        // Nothing behind the text is a client's.
        let (before, after) = data.rsplit_once(written).unwrap_or_default();
        Self { before: format!("data: {before}"), after: format!("{after}\n\n") }
    }

    /// Appends the bytes of [`piece_frame`] with this text.
    pub(super) fn push(&self, text: &str, to: &mut Vec<u8>) {
        to.extend_from_slice(self.before.as_bytes());
        push_json(text, to);
        to.extend_from_slice(self.after.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_piece_is_the_update_of_its_version() {
        let (id, context_id) = (json!(7), json!("c"));
        let frame = |version| {
            let of = PieceOf { version, id: &id, task_id: "t", context_id: &context_id };
            piece_frame(&of, "so \"far\"", true).data
        };
        let artifact = r#"{"artifactId":"answer","name":"answer","parts":[{"text":"so \"far\"""#;
        let (begin, end) = (r#"{"taskId":"t","contextId":"c","artifact":"#, r#"}]},"append":true,"lastChunk":false"#);
        assert_eq!(
            frame(A2aVersion::V1_0),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"artifactUpdate":{begin}{artifact}{end}}}}}}}"#)
        );
        assert_eq!(
            frame(A2aVersion::V0_3),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"result":{begin}{artifact},"kind":"text"{end},"kind":"artifact-update"}}}}"#
            )
        );
    }
    #[test]
    fn pieces_that_are_appended_have_the_bytes_of_their_frames() {
        let context_id = json!("\u{0}");
        for id in [json!(7), json!("\u{0}")] {
            for version in [A2aVersion::V0_3, A2aVersion::V1_0] {
                let of = PieceOf { version, id: &id, task_id: "\u{0}", context_id: &context_id };
                let bytes = PieceBytes::new(&of);
                for text in ["so", " \"far\"\n", "\u{0}", "", "é😀"] {
                    let (mut pushed, mut framed) = (Vec::new(), Vec::new());
                    bytes.push(text, &mut pushed);
                    piece_frame(&of, text, true).push_sse(&mut framed);
                    assert_eq!(String::from_utf8(pushed).unwrap(), String::from_utf8(framed).unwrap());
                }
            }
        }
    }
}
