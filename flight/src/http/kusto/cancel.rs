//! `.cancel query "id"`: ends a query that runs, by the id that its client gave the request (`x-ms-client-request-id`), or by
//! its number where it came through another door. A caller ends its own, an administrator any.

use querent_catalog::Principal;
use querent_engine::kql::KqlType;
use serde_json::json;

use super::table::{CommandTable, TEXT};
use super::words::Word;
use crate::state::AppState;

/// Which query is to end, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CancelCommand {
    id: String,
    /// Empty where none is said.
    reason: String,
}

impl CancelCommand {
    /// Returns the command that these words are, if they are one.
    pub(super) fn parse(words: &[Word]) -> Option<Self> {
        let lower: Vec<String> = words.iter().map(Word::lower).collect();
        let lower: Vec<&str> = lower.iter().map(String::as_str).collect();
        let [".cancel", "query", _, options @ ..] = lower.as_slice() else { return None };
        let quoted = |index: usize| words.get(index).filter(|word| word.is_quoted).map(|word| word.text.clone());
        let reason = match options {
            [] => String::new(),
            ["with", "(", "reason", "=", _, ")"] => quoted(7)?,
            ["with", "(", "reason=", _, ")"] => quoted(6)?,
            _ => return None,
        };
        Some(Self { id: quoted(2)?, reason })
    }

    /// Ends the query, and says whether there was one.
    pub(super) fn run(&self, state: &AppState, who: &Principal) -> CommandTable {
        let reason = Some(self.reason.as_str()).filter(|reason| !reason.is_empty());
        let by_number = || self.id.parse::<u64>().is_ok_and(|number| state.engine.cancel_query(who, number, reason));
        let is_cancelled = state.engine.cancel_request(who, &self.id, reason) || by_number();
        CommandTable {
            columns: vec![("RunningQueryCanceled", KqlType::Bool), ("ClientRequestId", TEXT), ("ReasonPhrase", TEXT)],
            rows: vec![vec![json!(is_cancelled), json!(self.id), json!(self.reason)]],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::kusto::words::split;

    #[test]
    fn the_id_and_the_reason_are_quoted() {
        let command = |id: &str, reason: &str| Some(CancelCommand { id: id.to_owned(), reason: reason.to_owned() });
        for (text, expected) in [
            (".cancel query \"KE.RunQuery;8f70e9ab\"", command("KE.RunQuery;8f70e9ab", "")),
            (".CANCEL  Query 'a' with (reason = 'no, not (this)')", command("a", "no, not (this)")),
            (".cancel query 'a' with ( Reason='b' )", command("a", "b")),
            (".cancel query a", None),
            (".cancel query 'a' with (because = 'b')", None),
            (".cancel query", None),
            (".cancel operation 'a'", None),
        ] {
            assert_eq!(CancelCommand::parse(&split(text).0), expected, "{text}");
        }
    }
}
