//! Waits for a condition, never for a time that is hoped to be enough: a test goes on as soon as the condition holds and
//! fails with its description when it never does.

use std::time::Duration;

use querent_engine::Engine;
use tokio::time::Instant;

/// The longest that a condition is waited for: far more than any takes on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at a condition.
const PAUSE: Duration = Duration::from_millis(10);

/// Waits until `condition` holds. Panics with `description` when it does not hold within [`PATIENCE`].
pub async fn wait_until(description: &str, mut condition: impl AsyncFnMut() -> bool) {
    wait_for(description, async || condition().await.then_some(())).await;
}

/// Repeats `attempt` until it returns a value, and returns that. Panics with `description` when it returns none within
/// [`PATIENCE`].
pub async fn wait_for<T>(description: &str, mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = attempt().await {
            return value;
        }
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain: {description}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Waits until no query of the engine holds memory: tasks whose query was dropped end a moment later.
pub async fn wait_until_memory_is_free(engine: &Engine) {
    wait_until("queries give their memory back", async || engine.memory_reserved_bytes() == 0).await;
}
