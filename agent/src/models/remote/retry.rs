//! When a turn is retried while its provider is busy. Pure but for the jitter.

use std::time::Duration;

use querent_catalog::outbound::jittered;

use super::errors::ProviderRefusal;

/// When a turn is retried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts in all.
    pub attempts: u32,
    /// The longest first pause; it doubles with each attempt.
    pub first_pause: Duration,
    /// No attempt begins later than this after the first.
    pub total: Duration,
}

impl Default for RetryPolicy {
    /// 4 attempts within 20 s, the first pause at most half a second.
    fn default() -> Self {
        Self { attempts: 4, first_pause: Duration::from_millis(500), total: Duration::from_secs(20) }
    }
}

impl RetryPolicy {
    /// Returns the pause after the attempt number `tried`; `None`: give up. A pause that the provider asks for is kept,
    /// or ends the attempts at once where it is too long.
    pub(super) fn pause(&self, tried: u32, elapsed: Duration, refusal: &ProviderRefusal) -> Option<Duration> {
        if !refusal.is_busy || tried >= self.attempts {
            return None;
        }
        let doubled = self.first_pause.saturating_mul(1 << (tried - 1).min(16));
        let jittered = jittered(doubled);
        let pause = match refusal.retry_after {
            Some(asked) => asked.saturating_add(jittered / 4),
            None => jittered,
        };
        (elapsed.saturating_add(pause) <= self.total).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::AgentError;

    fn refusal(is_busy: bool, retry_after: Option<Duration>) -> ProviderRefusal {
        ProviderRefusal { error: AgentError::ModelFailed { detail: String::new() }, is_busy, retry_after }
    }

    #[test]
    fn pauses_grow_and_end() {
        let policy = RetryPolicy::default();
        for (tried, least, most) in [(1, 250, 500), (2, 500, 1_000), (3, 1_000, 2_000)] {
            let pause = policy.pause(tried, Duration::ZERO, &refusal(true, None)).unwrap();
            assert!((least..=most).contains(&pause.as_millis()), "{tried}: {pause:?}");
        }
        assert_eq!(policy.pause(4, Duration::ZERO, &refusal(true, None)), None);
        assert_eq!(policy.pause(1, policy.total, &refusal(true, None)), None);
        assert_eq!(policy.pause(1, Duration::ZERO, &refusal(false, None)), None);
    }

    #[test]
    fn a_provider_that_says_how_long_is_obeyed_or_given_up() {
        let policy = RetryPolicy::default();
        let pause = policy.pause(1, Duration::ZERO, &refusal(true, Some(Duration::from_secs(3)))).unwrap();
        assert!(pause >= Duration::from_secs(3) && pause < Duration::from_secs(4), "{pause:?}");
        assert_eq!(policy.pause(1, Duration::ZERO, &refusal(true, Some(Duration::from_secs(60)))), None);
    }
}
