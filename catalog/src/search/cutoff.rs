//! Shortens a list of hits at a clear drop of the score.

/// A hit with less than this share of the previous score starts another group.
const DROP: f32 = 0.6;
/// A hit with less than this share of the best score is noise.
const FLOOR: f32 = 0.15;

/// How many hits to keep, given their `scores`, best first: those before the first clear drop, but at least `at_least`.
pub fn clear_drop(scores: &[f32], at_least: usize) -> usize {
    let best = scores.first().copied().unwrap_or_default();
    let is_drop = |index: usize| scores[index] < DROP * scores[index - 1] || scores[index] < FLOOR * best;
    (at_least.max(1)..scores.len()).find(|index| is_drop(*index)).unwrap_or(scores.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_end_at_a_drop_and_never_too_soon() {
        assert_eq!(clear_drop(&[1.0, 0.9, 0.85, 0.3, 0.29], 2), 3);
        assert_eq!(clear_drop(&[1.0, 0.3, 0.29, 0.28], 2), 4, "what is alike stays together");
        assert_eq!(clear_drop(&[1.0, 0.2, 0.1, 0.09], 1), 1);
        assert_eq!(clear_drop(&[1.0, 0.2], 5), 2);
        assert_eq!(clear_drop(&[], 3), 0);
    }
}
