//! Errors that arrive as their text alone, and are told by its words.

use super::EngineError;
use super::mapping::tidy;

/// Returns the error of a worker that another one has lost, which comes back as its text.
pub(super) fn lost_worker(message: &str) -> Option<EngineError> {
    let (_, rest) = message.split_once("worker http")?;
    let (worker, detail) = rest.split_once(" was lost: ")?;
    Some(EngineError::WorkerLost { worker: format!("http{worker}"), detail: detail.to_owned() })
}

/// Returns the error of a parameter of which no value has the name, and of a variable, which there are none of.
pub(super) fn unknown_parameter(message: &str) -> Option<EngineError> {
    if let Some(name) = message.strip_prefix("Unknown placeholder: ") {
        let name = name.lines().next().unwrap_or(name);
        let message = format!(
            "parameter `{name}` has no value: values of `$name` are found by their names, those of `?` and `$1` by \
             their order"
        );
        return Some(EngineError::Plan { message });
    }
    let (_, rest) = message.split_once("variable [\"")?;
    let (name, _) = rest.split_once("\"] has no type information")?;
    let message = format!("there are no variables such as `{name}`; a parameter is written `?`, `$1` or `$name`");
    Some(EngineError::Plan { message })
}

/// Whether a message says that a regular expression is none, or would be too large.
pub(super) fn is_of_a_pattern(message: &str) -> bool {
    message.contains("regex parse error") || message.contains("ompiled regex exceeds size limit")
}

/// Returns the error where a message says that 32-bit offsets do not reach: arrow, its kernels and the readers of files each
/// have words of their own for it.
pub(super) fn offset_overflow(message: &str) -> Option<EngineError> {
    let lowered = message.to_ascii_lowercase();
    let words = ["offset overflow", "offsetoverflow", "overflow decoding byte array", "capacity overflow"];
    let is_overflow = words.iter().any(|words| lowered.contains(words));
    is_overflow.then(|| EngineError::ValueTooLarge { detail: tidy(message) })
}
