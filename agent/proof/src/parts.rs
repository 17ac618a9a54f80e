//! Parts of a whole in English words: `a third of`, `two fifths`, `half of all orders`, `half an hour`; and how far a part rounds.

use super::bounds::{NumberBound, bound_before};
use super::foreign_numbers::{added_part, without_added_part};
use super::scales::scale_of;
use super::tokens::{TextToken, TextTokenKind, WrittenNumber, last_words, says};
use super::units::is_unit_called;

/// Parts of a whole, in the singular, each with how many make it.
pub(super) const PARTS: [(&str, f64); 10] = [
    ("quarter", 4.0),
    ("third", 3.0),
    ("fifth", 5.0),
    ("sixth", 6.0),
    ("seventh", 7.0),
    ("eighth", 8.0),
    ("ninth", 9.0),
    ("tenth", 10.0),
    ("twelfth", 12.0),
    ("twentieth", 20.0),
];
/// Words behind `a third` that make it a part of something.
const BEHIND_PART: [&str; 8] = ["of", "were", "was", "are", "is", "have", "had", "has"];
/// Words behind `half of` and `half` by which it is one of a whole.
const WHOLES: [&str; 12] =
    ["all", "the", "our", "its", "their", "them", "these", "those", "every", "it", "us", "everything"];
/// Words behind `half of the` that are times, which it divides.
const TIMES: [&str; 8] = ["year", "month", "week", "day", "season", "time", "game", "match"];
/// Words by which a half of something is beyond a value.
const BOUNDS: [&str; 12] = [
    "or less",
    "or more",
    "or fewer",
    "or longer",
    "at least",
    "at most",
    "under",
    "over",
    "below",
    "above",
    "less than",
    "more than",
];
/// Words before a number of quarters that are those of a year.
const PERIODS_BEFORE: [&str; 9] = ["last", "first", "next", "past", "previous", "following", "these", "those", "all"];
/// How far a part rounds, of itself.
const PART_TOLERANCE: f64 = 0.1;
/// The parts that people say, in percent: nobody calls 75 % four fifths.
const COMMON: [f64; 11] = [10.0, 20.0, 25.0, 100.0 / 3.0, 40.0, 50.0, 60.0, 200.0 / 3.0, 75.0, 80.0, 90.0];

/// Returns a part of so many percent, as a number that rounds as far as it would be called so.
pub(super) fn part_of_percent(value: f64) -> WrittenNumber {
    let gaps = COMMON.iter().map(|other| (other - value).abs()).filter(|gap| *gap > 1e-6);
    let nearest = gaps.fold(f64::INFINITY, f64::min);
    let tolerance = (value * PART_TOLERANCE).min(nearest / 2.0);
    WrittenNumber { value, tolerance, is_percent: true, ..WrittenNumber::whole(0) }
}

/// Returns the share that `a third` or `two fifths` is, and where it begins.
pub(super) fn part_of_whole(
    text: &str,
    start: usize,
    end: usize,
    found: &[TextToken],
) -> Option<(TextTokenKind, usize)> {
    let word = text[start..end].to_ascii_lowercase();
    let singular = word.strip_suffix('s').unwrap_or(&word);
    if singular == "half" {
        return is_half_of_whole(text, start, end).then(|| (TextTokenKind::Number(part_of_percent(50.0)), start));
    }
    let (_, parts) = PARTS.iter().find(|(name, _)| *name == singular)?;
    let (count, begin) = if singular == word {
        let next = text[end..].split_whitespace().next().unwrap_or_default().to_lowercase();
        let before = last_words(&text[..start], 1);
        // `Down by a third`.
        let is_by = ["by a", "by one", "by an"].iter().any(|words| last_words(&text[..start], 2) == *words);
        // `Germany brings in half, France a third and Italy the rest`.
        let is_of_name =
            text[..start].split_whitespace().rev().nth(1).is_some_and(|word| word.starts_with(char::is_uppercase))
                && (next.is_empty() || next == "and" || next == ".");
        let is_of_one = BEHIND_PART.contains(&next.as_str()) || is_of_name;
        let is_part = is_by || (["a", "one", "an"].contains(&before.as_str()) && is_of_one);
        is_part.then_some((1.0, start))?
    } else {
        let before = found.iter().filter(|known| known.end <= start).max_by_key(|known| known.end);
        let number = before.filter(|known| matches!(&text[known.end..start], " " | "-"))?;
        let TextTokenKind::Number(WrittenNumber { value, is_percent: false, .. }) = number.kind else { return None };
        // `The last two quarters` are periods, and four quarters no part.
        let is_of_time =
            singular == "quarter" && PERIODS_BEFORE.contains(&last_words(&text[..number.start], 1).as_str());
        ((2.0..*parts).contains(&value) && !is_of_time).then_some((value, number.start))?
    };
    Some((TextTokenKind::Number(part_of_percent(100.0 * count / parts)), begin))
}

/// Whether `half` is a part of a whole: `half of all orders`, and `half the orders` where a statement begins, as `A has half the
/// orders of B` compares. What only bounds, `more than half of them`, is compared as a factor is.
fn is_half_of_whole(text: &str, start: usize, end: usize) -> bool {
    let before = text[..start].trim_end();
    let mut next = text[end..].split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let mut word = || next.next().unwrap_or_default().to_lowercase();
    let (first, second, third) = (word(), word(), word());
    let last = last_words(before, 1);
    let is_other_half = ["first", "second", "other", "latter", "last"].contains(&last.as_str());
    let is_bound = bound_before(text, start).is_some_and(NumberBound::is_strict);
    let begins = before.is_empty() || before.ends_with([',', ';', '.', ':', '—']);
    // `Half of the trips took 45 minutes or less` speaks of the median.
    let is_median = says(&text[end..], &BOUNDS);
    let is_number = third.starts_with(|c: char| c.is_ascii_digit()) || second.starts_with(|c: char| c.is_ascii_digit());
    let is_of = first == "of" && WHOLES.contains(&second.as_str()) && !TIMES.contains(&third.as_str());
    // `Fell by half`, but `by half an hour`.
    let is_by = (last == "by" || last_words(before, 2) == "by a") && !["a", "an", "past"].contains(&first.as_str());
    let is_begin = begins && WHOLES.contains(&first.as_str()) && !TIMES.contains(&second.as_str());
    (is_of || is_begin || is_by) && !is_other_half && !is_bound && !is_median && !is_number
}

/// Returns the number that `half an hour`, `half a point` or `half a million` is, and where its words end; of `a full point` that
/// of one.
pub(super) fn half_of_unit(text: &str, start: usize, end: usize) -> Option<(WrittenNumber, usize)> {
    const MEASURED: [&str; 6] = ["point", "percent", "percentage", "degree", "mark", "goal"];
    let rest = text.get(end..)?;
    let is_half = text[start..end].eq_ignore_ascii_case("half");
    let is_full = text[start..end].eq_ignore_ascii_case("full") && last_words(&text[..start], 1) == "a";
    let behind = match (is_half, is_full) {
        (true, _) => rest.strip_prefix(" a ").or_else(|| rest.strip_prefix(" an "))?,
        (false, true) => rest.strip_prefix(' ')?,
        (false, false) => return None,
    };
    let word = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let unit = word.to_lowercase();
    let (times, length) = match (scale_of(&unit), unit.as_str()) {
        (Some(scale), _) => (scale, word.len()),
        (None, "dozen") => (12.0, word.len()),
        (None, unit) if MEASURED.contains(&unit) => (1.0, 0),
        (None, unit) if is_half && unit.len() > 1 && is_unit_called(unit) => (1.0, 0),
        (None, _) => return None,
    };
    let (value, tolerance) = if is_full { (times, times / 4.0) } else { (times / 2.0, times / 10.0) };
    let is_scaled = times > 12.0;
    let is_percent = unit == "percent";
    let number = WrittenNumber { value, tolerance, is_percent, is_scaled, ..WrittenNumber::whole(0) };
    let number_end = text.len() - behind.len() + length;
    let trimmed = text[..number_end].trim_end().len();
    Some((number, trimmed))
}

/// Returns the scale behind a number and its part, and where it ends: a million of `two and a half million`.
pub(super) fn scale_behind_part(text: &str, number_end: usize) -> Option<(f64, usize)> {
    let behind = text.get(number_end..)?;
    added_part(behind)?;
    let rest = without_added_part(behind).trim_start();
    let word = rest.split(|c: char| !c.is_alphanumeric()).next()?;
    Some((scale_of(word)?, text.len() - rest.len() + word.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::{ShareScale, tokens_in};

    fn numbers(text: &str) -> Vec<(f64, bool)> {
        let tokens = tokens_in(text).into_iter();
        let number = |token: TextToken| match token.kind {
            TextTokenKind::Number(number) => Some((number.value, number.is_percent)),
            _ => None,
        };
        tokens.filter_map(number).collect()
    }

    #[test]
    fn parts_are_shares_and_halves_of_units_are_numbers() {
        assert_eq!(numbers("Half of all tickets were late."), [(50.0, true)]);
        assert_eq!(numbers("About one twentieth of it."), [(5.0, true)]);
        assert_eq!(numbers("It took half an hour."), [(0.5, false)]);
        assert_eq!(numbers("Half a million people."), [(500_000.0, false)]);
        assert_eq!(numbers("A leads by half a point."), [(0.5, false)]);
        for text in ["In the first half of the year.", "In half of May.", "A has half the orders of B.", "half a loaf"]
        {
            assert!(numbers(text).is_empty(), "{text}");
        }
    }

    #[test]
    fn a_part_does_not_stand_for_one_that_has_a_name_of_its_own() {
        let stands = |part: f64, value: f64| part_of_percent(part).stands_for(value, ShareScale::Percent);
        assert!(stands(75.0, 76.6) && stands(200.0 / 3.0, 66.8) && stands(5.0, 5.02));
        assert!(!stands(80.0, 75.0) && !stands(10.0, 5.02));
    }
}
