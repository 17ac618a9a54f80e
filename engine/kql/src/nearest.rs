//! The name that was perhaps meant where one is not known.

const LEAST_SIMILARITY: f64 = 0.75;
/// The longest name that is compared, in bytes: comparing takes a time that grows with the square of it, once a
/// candidate.
const LONGEST_NAME: usize = 256;

/// Returns the candidate that is most similar to `name` without regard to case, where one is similar at all.
pub fn nearest_name<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest_within(LEAST_SIMILARITY, name, candidates)
}

/// The same of those whose Jaro-Winkler similarity is at least so much.
pub(crate) fn nearest_within<'a>(
    least_similarity: f64,
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    if name.len() > LONGEST_NAME {
        return None;
    }
    let wanted = name.to_lowercase();
    let mut best: Option<(f64, &str)> = None;
    for candidate in candidates {
        let score = strsim::jaro_winkler(&wanted, &candidate.to_lowercase());
        if score >= least_similarity && best.is_none_or(|(best_score, _)| score > best_score) {
            best = Some((score, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}
