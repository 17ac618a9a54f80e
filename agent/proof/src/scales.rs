//! What words and letters behind a number multiply it by: `thousand`, `mio`, `k`; and `a thousand`, which is one of
//! them.

use super::tokens::last_words;

pub(super) const HUNDRED: f64 = 1e2;
/// What words and letters behind a number stand for. Single letters are scales only where nothing is between.
pub(super) const SCALES: [(&str, f64); 44] = [
    ("hundred", HUNDRED),
    ("thousand", 1e3),
    ("million", 1e6),
    ("billion", 1e9),
    ("trillion", 1e12),
    ("k", 1e3),
    ("mn", 1e6),
    ("bn", 1e9),
    ("m", 1e6),
    ("tausend", 1e3),
    ("tsd", 1e3),
    ("mille", 1e3),
    ("mil", 1e3),
    ("lakh", 1e5),
    ("crore", 1e7),
    ("mio", 1e6),
    ("millionen", 1e6),
    ("millions", 1e6),
    ("millones", 1e6),
    ("millón", 1e6),
    ("milioni", 1e6),
    ("milione", 1e6),
    ("milhões", 1e6),
    ("miljoen", 1e6),
    ("mrd", 1e9),
    ("milliarde", 1e9),
    ("milliarden", 1e9),
    ("milliard", 1e9),
    ("milliards", 1e9),
    ("miliardi", 1e9),
    ("miljard", 1e9),
    ("billions", 1e9),
    ("thousands", 1e3),
    ("trillions", 1e12),
    ("mln", 1e6),
    ("milhão", 1e6),
    ("mld", 1e9),
    ("md", 1e9),
    ("mds", 1e9),
    ("bilhão", 1e9),
    ("bilhões", 1e9),
    ("miliardo", 1e9),
    ("duizend", 1e3),
    ("mila", 1e3),
];

/// Returns what `million` and its like stand for.
pub(super) fn scale_of(word: &str) -> Option<f64> {
    let word = word.to_lowercase();
    SCALES.iter().find(|(name, _)| *name == word && name.len() > 2).map(|(_, factor)| *factor)
}

/// Returns how far a scale rounds: `2 million` may be 2.1, and `two hundred` are no 240.
pub(super) fn tolerance_scale(factor: f64) -> f64 {
    if factor > HUNDRED { factor } else { 1.0 }
}

/// Whether a word is one of its scale: the thousand of `fewer than a thousand`; not `one in a million` and `a million
/// times`.
pub(super) fn is_one_of_scale(text: &str, start: usize, end: usize) -> bool {
    const ENGLISH: [&str; 5] = ["hundred", "thousand", "million", "billion", "trillion"];
    const OTHERWISE: [&str; 14] =
        ["in", "of", "half", "per", "for", "times", "by", "every", "not", "quarter", "what", "such", "many", "once"];
    const BEHIND: [&str; 4] = ["times", "fold", "dollar", "mile"];
    let word = &text[start..end];
    if !ENGLISH.iter().any(|scale| word.eq_ignore_ascii_case(scale)) {
        return false;
    }
    let before = last_words(&text[..start], 2);
    let is_plain = match before.rsplit_once(' ') {
        Some((word, "a")) => !OTHERWISE.contains(&word),
        _ => before == "a",
    };
    let behind = text[end..].trim_start_matches([' ', '-']);
    is_plain && !BEHIND.iter().any(|word| behind.starts_with(word))
}

/// Returns what one of a column is in, by its name: a million of `population_millions`, `sales_in_million` and
/// `revenue_mn`.
pub(super) fn scale_of_column(name: &str) -> Option<f64> {
    name.split(|c: char| !c.is_alphanumeric())
        .find_map(|word| scale_of(word).or_else(|| scale_of_currency(word)).filter(|scale| *scale >= 1e3))
        .or_else(|| scale_of_ending(name))
}

/// Returns what the short last word of a column's name stands for: `output_mn`, `gdp_bn`, `sales_k`; `height_m` is in
/// metres.
fn scale_of_ending(name: &str) -> Option<f64> {
    const AMOUNTS: [&str; 14] = [
        "revenue",
        "sales",
        "turnover",
        "profit",
        "cost",
        "costs",
        "budget",
        "amount",
        "value",
        "pop",
        "population",
        "usd",
        "eur",
        "gbp",
    ];
    let lower = name.to_lowercase();
    let (stem, last) = lower.rsplit_once('_')?;
    let is_amount = stem.split('_').any(|word| AMOUNTS.contains(&word));
    match last {
        "mn" => Some(1e6),
        "bn" => Some(1e9),
        "k" => Some(1e3),
        "m" | "mm" if is_amount => Some(1e6),
        _ => None,
    }
}

/// Returns what the letter before a currency stands for: a thousand of `keur` and `TEUR`, a million of `musd`.
fn scale_of_currency(word: &str) -> Option<f64> {
    let lower = word.to_lowercase();
    let currency = lower.get(1..)?;
    let scale = match lower.chars().next()? {
        'k' | 't' => 1e3,
        'm' => 1e6,
        'b' => 1e9,
        _ => return None,
    };
    ["eur", "usd", "gbp", "chf", "jpy"].contains(&currency).then_some(scale)
}

#[cfg(test)]
mod tests {
    use crate::tokens::{TextToken, TextTokenKind, tokens_in};

    #[test]
    fn one_of_a_scale_is_a_number() {
        let numbers = |text: &str| -> Vec<f64> {
            let tokens = tokens_in(text).into_iter();
            let number = |token: TextToken| match token.kind {
                TextTokenKind::Number(number) => Some(number.value),
                _ => None,
            };
            tokens.filter_map(number).collect()
        };
        for (text, expected) in [
            ("fewer than a thousand", 1_000.0),
            ("over a hundred and twenty ships", 120.0),
            ("a million people", 1e6),
            ("almost a hundred thousand", 1e5),
        ] {
            assert_eq!(numbers(text), [expected], "{text}");
        }
        for text in ["one in a million", "a few thousand", "a hundred times", "thousands of ships"] {
            assert!(numbers(text).is_empty(), "{text}: {:?}", numbers(text));
        }
    }
}
