//! The agent's settings. Their defaults stand here once: the server's settings, help strings and the tools'
//! descriptions take them from [`AgentConfig::DEFAULT`].

use std::time::Duration;

/// Rows of a tool result at most, whatever a call or a setting asks for.
pub const MAX_TOOL_ROWS: usize = 1_000;

/// Limits and switches of the agent, fixed at start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// Wall clock of one run.
    pub run_timeout: Duration,
    /// What that grows to, at most, where the first tokens show that a model of this machine is slow; no longer than
    /// `run_timeout`: it does not grow.
    pub slow_run_timeout: Duration,
    /// Tool calls of one run; the next one ends it with `tool_loop`.
    pub max_tool_calls: u32,
    /// Rows of a tool result when the model does not say; at most [`MAX_TOOL_ROWS`].
    pub default_tool_rows: usize,
    /// Tokens of the first turn's prompt; fewer for a small model.
    pub prompt_tokens: usize,
    /// Tokens of the text of a tool result; fewer for a small model.
    pub tool_result_tokens: usize,
    /// Runs in progress at once.
    pub max_concurrent_runs: usize,
    /// Bytes of the rows of queries that are kept for their callers to fetch by ticket; 0 keeps none.
    pub result_bytes: usize,
    /// How long rows are kept.
    pub result_lifetime: Duration,
    /// Whether there are tools that write; each of their calls waits for a person's approval.
    pub write_tools: bool,
    /// Whether a model name that is not configured is refused; otherwise it means the default model.
    pub strict_models: bool,
    /// Whether a question that differs from a verified one in values only is answered by its query, without a model.
    pub reuse_verified: bool,
}

impl AgentConfig {
    /// The defaults of every setting.
    pub const DEFAULT: Self = Self {
        run_timeout: Duration::from_secs(60),
        slow_run_timeout: Duration::from_secs(300),
        max_tool_calls: 12,
        default_tool_rows: 200,
        prompt_tokens: 4_000,
        tool_result_tokens: 2_000,
        max_concurrent_runs: 16,
        result_bytes: 256 << 20,
        result_lifetime: Duration::from_secs(30 * 60),
        write_tools: false,
        strict_models: false,
        reuse_verified: true,
    };
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}
