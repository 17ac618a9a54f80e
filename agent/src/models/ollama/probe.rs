//! What a model can do, derived from what its server reports. Pure.

use crate::models::ToolStyle;

/// A model with at most so many parameters is small.
const SMALL_PARAMETERS: u64 = 4_500_000_000;
/// A file of at most so many bytes holds a small model: about 4 billion parameters at 5 bits each.
const SMALL_FILE_BYTES: u64 = 3 << 30;
/// Families that write their tool calls as text although native ones are reported
/// (github.com/ollama/ollama/issues/12174).
const TEXT_CALL_FAMILIES: [&str; 2] = ["qwen2.5-coder", "qwen2.5coder"];

/// What a server reports of a model.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ReportedModel<'a> {
    /// Its name.
    pub(super) name: &'a str,
    /// Ollama's words: `completion`, `tools`, `thinking`, ...
    pub(super) capabilities: &'a [String],
    /// From the model's file, where the server read it.
    pub(super) parameters: Option<u64>,
    /// Size of the model's file.
    pub(super) file_bytes: Option<u64>,
}

impl ReportedModel<'_> {
    /// Whether it is small: by its parameters, else by those its name mentions, else by its file.
    pub(super) fn is_small(&self) -> bool {
        if let Some(parameters) = self.parameters.or_else(|| parameters_in_name(self.name)) {
            return parameters <= SMALL_PARAMETERS;
        }
        self.file_bytes.is_some_and(|bytes| bytes <= SMALL_FILE_BYTES)
    }

    /// Whether it can think.
    pub(super) fn thinks(&self) -> bool {
        self.has("thinking")
    }

    /// Returns the style in which it calls tools best.
    pub(super) fn tool_style(&self) -> ToolStyle {
        let name = self.name.to_lowercase();
        let writes_calls_as_text = TEXT_CALL_FAMILIES.iter().any(|family| name.contains(family));
        if !self.has("tools") || writes_calls_as_text || self.is_small() {
            return ToolStyle::Actions;
        }
        ToolStyle::Native
    }

    fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|reported| reported == capability)
    }
}

/// Returns the parameters that a name such as `qwen2.5-coder:1.5b-instruct`, `smollm:135m` or `gemma3n:e4b` mentions.
fn parameters_in_name(name: &str) -> Option<u64> {
    name.to_lowercase().split([':', '-', '_', '/']).find_map(parameters_in_word)
}

fn parameters_in_word(word: &str) -> Option<u64> {
    let (number, unit) = match (word.strip_suffix('b'), word.strip_suffix('m')) {
        (Some(billions), _) => (billions, 1e9),
        (None, Some(millions)) => (millions, 1e6),
        (None, None) => return None,
    };
    let number = number.strip_prefix('e').unwrap_or(number);
    number.starts_with(|first: char| first.is_ascii_digit()).then_some(())?;
    let count: f64 = number.parse().ok()?;
    // A float to an integer saturates, and no name speaks of so many.
    Some((count * unit) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported<'a>(name: &'a str, capabilities: &'a [String]) -> ReportedModel<'a> {
        ReportedModel { name, capabilities, parameters: None, file_bytes: None }
    }

    #[test]
    fn names_speak_of_parameters() {
        let cases = [
            ("qwen2.5-coder:1.5b", Some(1_500_000_000)),
            ("hf.co/someone/Qwen2.5-Coder-0.5B-Instruct-GGUF:Q4_K_M", Some(500_000_000)),
            ("smollm:135m", Some(135_000_000)),
            ("gemma3n:e4b", Some(4_000_000_000)),
            ("llama3.3:70b-instruct", Some(70_000_000_000)),
            ("gemma4:latest", None),
            ("phi-team:latest", None),
        ];
        for (name, parameters) in cases {
            assert_eq!(parameters_in_name(name), parameters, "{name}");
        }
    }

    #[test]
    fn size_is_taken_from_the_best_source() {
        let base = reported("gemma4:latest", &[]);
        assert!(!base.is_small());
        assert!(ReportedModel { file_bytes: Some(1 << 30), ..base.clone() }.is_small());
        assert!(!ReportedModel { parameters: Some(8_000_000_000), file_bytes: Some(1 << 30), ..base }.is_small());
        assert!(!ReportedModel { file_bytes: Some(1 << 30), ..reported("coder:7b", &[]) }.is_small());
    }

    #[test]
    fn only_a_large_model_with_true_tool_calls_is_called_natively() {
        let tools = ["completion".to_owned(), "tools".to_owned()];
        let plain = ["completion".to_owned()];
        assert_eq!(reported("gemma4:latest", &tools).tool_style(), ToolStyle::Native);
        assert_eq!(reported("gemma4:latest", &plain).tool_style(), ToolStyle::Actions);
        assert_eq!(reported("qwen3:1.7b", &tools).tool_style(), ToolStyle::Actions);
        assert_eq!(reported("Qwen2.5-Coder:32b", &tools).tool_style(), ToolStyle::Actions);
    }
}
