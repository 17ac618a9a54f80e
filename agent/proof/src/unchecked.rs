//! Links of what stands behind the part of an answer that is looked at.

use super::sentences;
use super::tokens::tokens_in;
use super::{ProofLink, ProofOrigin};

/// Links each number of a text, which begins behind so many characters of an answer, to nothing.
pub(super) fn unchecked_links(text: &str, mut chars: usize) -> Vec<ProofLink> {
    let mut links = Vec::new();
    let mut at = 0;
    for (sentence, offset) in sentences::sentences(text) {
        for token in tokens_in(sentence) {
            let start = offset + token.start;
            chars += text.get(at..start).unwrap_or_default().chars().count();
            at = start;
            let length = token.text.chars().count();
            links.push(ProofLink {
                text: token.text,
                start: chars,
                end: chars + length,
                origin: ProofOrigin::Unproven,
            });
        }
    }
    links
}
