//! What a provider expects back with its model's calls: signatures of its thinking. They mean nothing to anybody else,
//! so they are kept here, by call id, and not in the conversation. Bounded: the oldest are dropped first, and a
//! conversation that lost its own continues without thinking.

use std::collections::VecDeque;

use genai::chat::ContentPart;
use parking_lot::Mutex;

const MAX_BYTES: usize = 8 << 20;
const MAX_CALLS: usize = 4_096;

/// What belongs to one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Thoughts {
    /// Parts that precede the turn's calls; kept with the first one only.
    pub(super) leading: Vec<ContentPart>,
    /// Signatures of the call itself.
    pub(super) signatures: Option<Vec<String>>,
}

impl Thoughts {
    fn size(&self) -> usize {
        let signatures = self.signatures.iter().flatten().map(String::len).sum::<usize>();
        self.leading.iter().map(ContentPart::size).sum::<usize>() + signatures
    }

    fn is_empty(&self) -> bool {
        self.leading.is_empty() && self.signatures.is_none()
    }
}

/// The thoughts of recent calls.
#[derive(Debug, Default)]
pub(super) struct ThoughtMemory {
    kept: Mutex<RecentThoughts>,
}

#[derive(Debug, Default)]
struct RecentThoughts {
    calls: VecDeque<(String, Thoughts)>,
    bytes: usize,
}

impl ThoughtMemory {
    pub(super) fn keep(&self, call_id: &str, thoughts: Thoughts) {
        if thoughts.is_empty() {
            return;
        }
        let mut kept = self.kept.lock();
        kept.bytes += thoughts.size();
        kept.calls.push_back((call_id.to_owned(), thoughts));
        while kept.calls.len() > MAX_CALLS || kept.bytes > MAX_BYTES {
            let Some((_, dropped)) = kept.calls.pop_front() else { break };
            kept.bytes = kept.bytes.saturating_sub(dropped.size());
        }
    }

    pub(super) fn thoughts_of_call(&self, call_id: &str) -> Option<Thoughts> {
        let kept = self.kept.lock();
        kept.calls.iter().rev().find(|(id, _)| id == call_id).map(|(_, thoughts)| thoughts.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first() {
        let memory = ThoughtMemory::default();
        let thoughts = |bytes: usize| Thoughts { leading: Vec::new(), signatures: Some(vec!["s".repeat(bytes)]) };
        memory.keep("a", thoughts(MAX_BYTES / 2));
        memory.keep("b", thoughts(MAX_BYTES / 2));
        assert!(memory.thoughts_of_call("a").is_some());
        memory.keep("c", thoughts(1));
        assert!(
            memory.thoughts_of_call("a").is_none()
                && memory.thoughts_of_call("b").is_some()
                && memory.thoughts_of_call("c").is_some()
        );
    }
}
