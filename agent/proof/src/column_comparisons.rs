//! What a sentence says of two columns of the row that it names, and is not so: `solar exceeded grid in April`, `they
//! conceded more than they scored`, `lost twice as many as they won`.

use super::names::NamePlace;
use super::number_of;
use super::ranks::measured_columns;
use super::rows::ProofRows;
use super::sentences::clauses;
use super::tokens::says;

/// The longest sentence that is looked at, in bytes.
const LONGEST: usize = 600;
/// Words between what is compared, at most, before the words that compare.
const MOST_BEFORE: usize = 3;
/// Words by which a sentence says something else than that the row has more of one.
const OTHERWISE: [&str; 24] = [
    "not", "never", "no", "neither", "nor", "before", "after", "since", "until", "except", "but", "without", "unless",
    "if", "would", "average", "mean", "total", "overall", "together", "combined", "from", "nearly", "almost",
];
/// What the columns of a table of games are called, by the word that a sentence has for it.
const OF_GAMES: [(&str, &[&str]); 5] = [
    ("scored", &["goals_for", "points_for", "gf"]),
    ("conceded", &["goals_against", "points_against", "ga"]),
    ("won", &["wins", "win", "w"]),
    ("lost", &["losses", "loss", "defeats", "l"]),
    ("drew", &["draws", "drawn", "draw", "ties", "d"]),
];

/// How the first of two columns compares with the second.
#[derive(Clone, Copy)]
enum ColumnOrder {
    More,
    Less,
    /// So many times as much.
    Times(f64),
}

/// The words that compare, which end right before the second.
const PHRASES: [(ColumnOrder, &[&str]); 4] = [
    (
        ColumnOrder::More,
        &[
            "exceeded",
            "exceeds",
            "exceed",
            "surpassed",
            "outstripped",
            "topped",
            "outweighed",
            "above",
            "more than",
            "higher than",
            "greater than",
            "larger than",
        ],
    ),
    (
        ColumnOrder::Less,
        &["below", "less than", "fewer than", "lower than", "smaller than", "fell short of", "falls short of"],
    ),
    (ColumnOrder::Times(2.0), &["twice as many as", "twice as much as"]),
    (ColumnOrder::Times(0.5), &["half as many as", "half as much as"]),
];

impl ColumnOrder {
    fn holds(self, left: f64, right: f64) -> bool {
        /// How far a factor in words may differ, of itself.
        const TOLERANCE: f64 = 0.1;
        match self {
            Self::More => left > right,
            Self::Less => left < right,
            Self::Times(times) => (left - times * right).abs() <= TOLERANCE * (times * right).abs(),
        }
    }
}

/// Returns the first of two columns where a clause compares them, and the row that it names has them otherwise.
pub(super) fn wrongly_compared_columns(result: &ProofRows, sentence: &str) -> Vec<NamePlace> {
    let mut wrong = Vec::new();
    if sentence.len() > LONGEST || says(sentence, &OTHERWISE) || sentence.contains("n't") || sentence.contains("n’t")
    {
        return wrong;
    }
    let measured = measured_columns(result, "");
    for (clause, offset) in clauses(sentence) {
        let Some((start, end, columns, comparison)) = comparison_in(result, &measured, clause) else { continue };
        let row = match (result.rows.len(), result.labelled(clause).as_slice()) {
            (1, _) => 0,
            (_, [row]) => *row,
            (_, []) => match result.labelled(sentence).as_slice() {
                [row] => *row,
                _ => continue,
            },
            _ => continue,
        };
        let value = |column: usize| number_of(result.rows.get(row)?.get(column)?);
        if let (Some(left), Some(right)) = (value(columns.0), value(columns.1))
            && !comparison.holds(left, right)
        {
            wrong.push((offset + start, offset + end));
        }
    }
    wrong
}

/// Returns where the first of two compared columns stands in a clause, both, and how they are compared.
fn comparison_in(
    result: &ProofRows,
    measured: &[usize],
    clause: &str,
) -> Option<(usize, usize, (usize, usize), ColumnOrder)> {
    let words = clause.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty());
    let called: Vec<(usize, usize, usize)> = words
        .filter_map(|word| {
            let start = word.as_ptr() as usize - clause.as_ptr() as usize;
            Some((start, start + word.len(), column_called(result, measured, word)?))
        })
        .collect();
    called.windows(2).find_map(|pair| {
        let [(start, end, left), (next, _, right)] = *pair else { return None };
        let comparison = compared_by(clause.get(end..next)?).filter(|_| left != right)?;
        Some((start, end, (left, right), comparison))
    })
}

/// Returns how the words between two columns compare them.
fn compared_by(between: &str) -> Option<ColumnOrder> {
    const FILLS: [&str; 10] = ["they", "it", "he", "she", "we", "the", "its", "their", "his", "her"];
    const ROUNDED: [&str; 9] = ["more", "less", "than", "least", "about", "over", "roughly", "around", "some"];
    if between.contains([',', ';', '.', '(', ':', '|']) {
        return None;
    }
    let lower = between.to_lowercase();
    let mut words: Vec<&str> = lower.split_whitespace().collect();
    while words.last().is_some_and(|word| FILLS.contains(word)) {
        words.pop();
    }
    let joined = words.join(" ");
    PHRASES.iter().find_map(|(comparison, phrases)| {
        let ends = |phrase: &&str| {
            let rest = joined.strip_suffix(*phrase)?;
            (rest.is_empty() || rest.ends_with(' ')).then(|| rest.trim_end().to_owned())
        };
        let before = phrases.iter().find_map(ends)?;
        let before: Vec<&str> = before.split_whitespace().collect();
        let is_rounded =
            matches!(comparison, ColumnOrder::Times(_)) && before.iter().any(|word| ROUNDED.contains(word));
        (before.len() <= MOST_BEFORE && !is_rounded).then_some(*comparison)
    })
}

/// Returns which of the columns of numbers a word calls, where it calls no other.
fn column_called(result: &ProofRows, measured: &[usize], word: &str) -> Option<usize> {
    let lower = word.to_lowercase();
    let others = OF_GAMES.iter().find(|(name, _)| *name == lower).map(|(_, names)| *names).unwrap_or_default();
    let is_called = |column: &usize| {
        let name = result.columns.get(*column).map(|name| name.to_lowercase()).unwrap_or_default();
        let has_part = || name.split('_').any(|part| part.len() > 2 && part == lower);
        name == lower || others.contains(&name.as_str()) || has_part()
    };
    let mut found = measured.iter().copied().filter(is_called);
    found.next().filter(|_| found.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_between_columns_compare_them() {
        for (between, expected) in [
            (" exceeded ", Some(true)),
            (" use was higher than the ", Some(true)),
            (" more than they ", Some(true)),
            (" fell short of ", Some(false)),
            (" and ", None),
            (", more than ", None),
            (" in the spring was said to be more than ", None),
            (" more than twice as many as they ", None),
        ] {
            assert_eq!(compared_by(between).map(|comparison| comparison.holds(2.0, 1.0)), expected, "{between}");
        }
    }
}
