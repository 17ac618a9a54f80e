//! Numbers as people write them: digits with the marks of several languages, scientific, with a scale, signed, as a time of
//! day, and in words.

use super::bounds::bound_before;
use super::clock::time_of_day;
use super::foreign_numbers::{added_part, end_of_quarters, foreign_number, has_grouped_thousands, part_behind};
use super::parts::scale_behind_part;
use super::scales::{HUNDRED, SCALES, is_one_of_scale, scale_of, tolerance_scale};
use super::tokens::{TextToken, TextTokenKind, WrittenNumber, find_word, is_rank, last_words};
use super::units::is_unit_called;

const DOZEN: f64 = 12.0;
/// How far `two dozen` rounds, and `a hundred`.
const DOZEN_TOLERANCE: f64 = 1.5;
const HUNDRED_TOLERANCE: f64 = 10.0;
/// The scale of two words.
const MIL_MILLONES: &str = "mil millones";
const WORDS: [&str; 18] = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
pub(super) const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];
/// Words before `one` by which it is a count, and words behind it by which it is none.
const BEFORE_ONE: [&str; 9] = ["is", "was", "only", "exactly", "just", "has", "had", "have", "are"];
const AFTER_ONE: [&str; 20] = [
    "of", "in", "way", "thing", "more", "such", "that", "which", "who", "or", "another", "day", "with", "and", "where",
    "is", "was", "to", "for", "from",
];
/// Marks between the groups of three digits of a number.
const GROUP_MARKS: [&str; 9] = [",", "_", " ", "\u{a0}", "\u{202f}", "\u{2009}", "'", "\u{2019}", "."];
pub(super) const CURRENCIES: [char; 5] = ['$', '€', '£', '¥', '₹'];
const POWERS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
/// Fractions of one character, by their values.
const FRACTIONS: [(char, f64); 5] = [('½', 0.5), ('¼', 0.25), ('¾', 0.75), ('⅓', 1.0 / 3.0), ('⅔', 2.0 / 3.0)];
/// How far `28½` rounds.
const FRACTION_TOLERANCE: f64 = 0.05;
const PERCENT: [&str; 11] = [
    "percent",
    "percentage",
    "prozent",
    "procent",
    "pct",
    "per cent",
    "per cento",
    "percento",
    "pour cent",
    "por ciento",
    "por cento",
];
/// What is measured and not counted, beside the units that can be turned into each other.
const MEASURES: &str = "\
    degree degrees week weeks month months year years dollar dollars euro euros pound pounds point points sekunden \
    minuten stunden tage wochen monate jahre grad heures jours semaines mois ans minutos horas días semanas meses años \
    minuti ore giorni minuten uren dagen";
/// Words behind a number that make it one of a hundred.
const OF_HUNDRED: [&str; 8] = [
    "out of every 100",
    "out of 100",
    "of every 100",
    "in every 100",
    "out of every hundred",
    "out of a hundred",
    "of every hundred",
    "in every hundred",
];

/// Returns the number that words are, `seven`, `a dozen`, `thirty-four` or `two thousand five hundred`, and where it ends.
pub(super) fn number_in_words(text: &str, start: usize, end: usize) -> Option<(WrittenNumber, usize)> {
    let word_at = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default()
    };
    let first = text[start..end].to_lowercase();
    let has_article = is_one_of_scale(text, start, end);
    if let Some((value, tolerance, number_end)) = foreign_number(text, start) {
        let is_scaled = tolerance > DOZEN_TOLERANCE;
        let mut number =
            WrittenNumber { value, tolerance, is_percent: false, is_scaled, is_counted: false, other: None };
        if let Some(part) = part_behind(&text[number_end..]).filter(|_| tolerance <= 0.5) {
            (number.value, number.tolerance) = (number.value + part, part.min(1.0 - part) / 2.0);
        }
        return Some((with_meaning(number, text, start, number_end), number_end));
    }
    let (mut total, mut current, mut tolerance) = (0.0, if has_article { 1.0 } else { 0.0 }, 0.5);
    let mut number_end = None;
    let mut at = start;
    let mut largest_scale = f64::INFINITY;
    loop {
        let word = word_at(at);
        let lower = word.to_ascii_lowercase();
        let word_end = at + word.len();
        let is_first = number_end.is_none();
        let next = text[word_end..].strip_prefix([' ', '-']).map(|_| word_at(word_end + 1)).unwrap_or_default();
        let next = next.to_ascii_lowercase();
        if let Some(value) = small_number(&lower, is_first) {
            // `Two three` are two numbers.
            let rest = current % HUNDRED;
            let fits = if value < 10.0 { rest == 0.0 || rest >= 20.0 && rest % 10.0 == 0.0 } else { rest == 0.0 };
            if !fits {
                break;
            }
            // `The twenty-first` is a day or a century.
            if text[word_end..].starts_with('-') && ORDINALS.contains(&next.as_str()) {
                return None;
            }
            current += value;
            tolerance = 0.5;
        } else if is_first && !has_article {
            break;
        } else if (lower == "dozen" || lower == "dozens") && current > 1.0 && current < DOZEN {
            current *= DOZEN;
            tolerance = DOZEN_TOLERANCE;
        } else if lower == "hundred" && current > 0.0 && current < HUNDRED {
            current *= HUNDRED;
        } else if let Some(scale) = scale_of(&lower).filter(|scale| *scale > HUNDRED)
            && current > 0.0
            && scale < largest_scale
        {
            total += current * scale;
            current = 0.0;
            tolerance = 0.5 * scale;
            largest_scale = scale;
        } else if lower == "and" && number_end == Some(at - 1) && small_number(&next, false).is_some() {
            let is_behind_scale = current == 0.0 || current % HUNDRED == 0.0;
            if !is_behind_scale {
                break;
            }
            at = word_end + 1;
            continue;
        } else {
            break;
        }
        number_end = Some(word_end);
        if !text[word_end..].starts_with([' ', '-']) {
            break;
        }
        at = word_end + 1;
    }
    let mut number_end = number_end?;
    // `One` alone is more often a pronoun.
    let has_part = added_part(&text[number_end..]).is_some();
    if first == "one" && total + current == 1.0 && !has_part && !is_counted_one(text, start, end) {
        return None;
    }
    // `7 degrees below zero`: where a scale begins.
    if first == "zero" && ["below", "above"].contains(&last_words(&text[..start], 1).as_str()) {
        return None;
    }
    let value = total + current;
    // `A hundred` is said of 97 as well.
    if has_article && value == HUNDRED {
        tolerance = HUNDRED_TOLERANCE;
    }
    let is_scaled = tolerance > DOZEN_TOLERANCE;
    let mut number = WrittenNumber { value, tolerance, is_percent: false, is_scaled, is_counted: false, other: None };
    if let Some(part) = part_behind(&text[number_end..]).filter(|_| number.tolerance <= 0.5) {
        (number.value, number.tolerance) = (number.value + part, part.min(1.0 - part) / 2.0);
        let scaled = scale_behind_part(text, number_end);
        let scale = scaled.map_or(1.0, |(scale, _)| scale);
        (number.value, number.tolerance) = (number.value * scale, number.tolerance * scale);
        number.is_scaled |= scaled.is_some();
        number_end = scaled.map_or_else(|| end_of_quarters(text, number_end), |(_, end)| end);
    }
    Some((with_meaning(number, text, start, number_end), number_end))
}

/// Returns the number below a hundred that a lowercase word is.
fn small_number(word: &str, is_first: bool) -> Option<f64> {
    let position = |words: &[&str]| words.iter().position(|known| *known == word);
    if let Some(index) = position(&WORDS) {
        return Some((index + 2) as f64);
    }
    if let Some(index) = position(&TENS) {
        return Some(((index + 2) * 10) as f64);
    }
    match word {
        "zero" if is_first => Some(0.0),
        "dozen" if is_first => Some(12.0),
        "one" => Some(1.0),
        _ => None,
    }
}

/// Whether `one` is a count, by the words beside it.
fn is_counted_one(text: &str, start: usize, end: usize) -> bool {
    let before = last_words(&text[..start], 1);
    let behind = text[end..].strip_prefix(' ').unwrap_or_default();
    let after = behind.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_lowercase();
    BEFORE_ONE.contains(&before.as_str())
        && after.chars().any(char::is_alphabetic)
        && !AFTER_ONE.contains(&after.as_str())
}

/// Adds what stands beside a number in words: a percent sign, a unit of what is measured, `about`.
fn with_meaning(number: WrittenNumber, text: &str, start: usize, end: usize) -> WrittenNumber {
    let is_percent = is_percent(&text[end..]);
    let unit = text[end..].trim_start_matches([' ', '-']).split(|c: char| !c.is_alphanumeric()).next();
    let unit = unit.unwrap_or_default().to_lowercase();
    let is_measured = is_percent || MEASURES.split(' ').any(|known| known == unit) || is_unit_called(&unit);
    let is_rounded = number.is_scaled || number.tolerance != 0.5 || bound_before(text, start).is_some();
    WrittenNumber { is_percent, is_counted: !is_measured && !is_rounded, ..number }
}

/// Whether what stands behind a number makes it a percentage.
fn is_percent(behind: &str) -> bool {
    let behind = behind.trim_start();
    let begin: String = behind.chars().take(20).collect::<String>().to_lowercase();
    let is_word =
        |word: &&str| begin.strip_prefix(*word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()));
    behind.starts_with('%') || PERCENT.iter().chain(&OF_HUNDRED).any(is_word)
}

/// The digits of a number, by where they stand.
struct WrittenDigits {
    /// Where the whole part ends, and the whole number.
    whole_end: usize,
    end: usize,
    /// Digits behind the mark.
    decimals: usize,
    /// What a point or a comma before three digits means in the other half of the world: the value, and how far it rounds.
    other: Option<(f64, f64)>,
}

/// Returns how many digits stand at a place of a text.
pub(super) fn digits_at(text: &str, from: usize) -> usize {
    text.as_bytes().get(from..).map_or(0, |tail| tail.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

/// Reads `1,234.5`, `1.234,5`, `1 234,5`, `12,34,567.8` and the like.
fn read_digits(rest: &str) -> WrittenDigits {
    let bytes = rest.as_bytes();
    let digits = |from: usize| digits_at(rest, from);
    let first = digits(0);
    let mut end = first;
    let is_group = |at: usize, mark: &str| {
        rest.get(at..).is_some_and(|tail| tail.starts_with(mark)) && digits(at + mark.len()) == 3
    };
    // A point stands between three groups at least, or a comma follows.
    let is_pointed =
        |at: usize| is_group(at + 4, ".") || (bytes.get(at + 4) == Some(&b',') && (1..=2).contains(&digits(at + 5)));
    let mark =
        GROUP_MARKS.into_iter().find(|mark| first <= 3 && is_group(first, mark) && (*mark != "." || is_pointed(first)));
    let mut groups = 0;
    if let Some(mark) = mark {
        while is_group(end, mark) {
            end += mark.len() + 3;
            groups += 1;
        }
    } else if let Some(lakh_end) = lakh_groups(rest, first) {
        end = lakh_end;
        groups = 2;
    }
    let whole_end = end;
    let count = digits(end + 1);
    let has_decimals = match bytes.get(end) {
        Some(b'.') => count > 0 && mark != Some("."),
        // `37,46`, as many languages write; `1,2,3` is a list.
        Some(b',') => {
            let is_list = bytes.get(end + 1 + count) == Some(&b',') && digits(end + 2 + count) > 0;
            let is_mark = mark.is_some_and(|mark| mark != ",") || (mark.is_none() && groups == 0);
            // A comma before more than three digits is between no thousands.
            is_mark && !is_list && ((1..=2).contains(&count) || count > 3)
        }
        _ => false,
    };
    let decimals = if has_decimals { count } else { 0 };
    if has_decimals {
        end += 1 + decimals;
    }
    let other = match (mark, decimals) {
        (Some(","), 0) if groups == 1 && !rest[..end].ends_with("000") => {
            let plain = rest[..end].replacen(',', ".", 1);
            plain.parse().ok().map(|value: f64| (value, 0.0005))
        }
        (None, 3) if first <= 3 && !rest.starts_with('0') && bytes.get(whole_end) == Some(&b'.') => {
            rest[..end].replacen('.', "", 1).parse().ok().map(|value: f64| (value, 0.5))
        }
        _ => None,
    };
    WrittenDigits { whole_end, end, decimals, other }
}

/// Returns where the groups of `12,34,567` end.
fn lakh_groups(rest: &str, first: usize) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = first;
    let mut pairs = 0;
    while bytes.get(at) == Some(&b',') && digits_at(rest, at + 1) == 2 && bytes.get(at + 3) == Some(&b',') {
        at += 3;
        pairs += 1;
    }
    let ends = bytes.get(at) == Some(&b',') && digits_at(rest, at + 1) == 3;
    (first <= 2 && pairs > 0 && ends).then_some(at + 4)
}

/// Returns the power of ten behind digits, `e-5` or ` × 10⁻⁵`, and where it ends.
fn exponent_at(rest: &str, end: usize) -> Option<(i32, usize)> {
    let tail = rest.get(end..)?;
    if let Some(power) = tail.strip_prefix(['e', 'E']) {
        let sign = usize::from(power.starts_with(['+', '-']));
        let count = digits_at(power, sign);
        let behind = power.get(sign + count..)?.chars().next();
        let is_end = behind.is_none_or(|c| !c.is_alphanumeric());
        let value: i32 = power.get(..sign + count)?.trim_start_matches('+').parse().ok()?;
        return ((1..=3).contains(&count) && is_end).then_some((value, end + 1 + sign + count));
    }
    let behind = tail.trim_start_matches(' ').strip_prefix(['×', 'x', '·', '*'])?.trim_start_matches(' ');
    let power = behind.strip_prefix("10")?;
    let (value, rest_behind): (i32, &str) = if let Some(power) = power.strip_prefix('^') {
        let length = usize::from(power.starts_with('-')) + digits_at(power, usize::from(power.starts_with('-')));
        (power.get(..length)?.parse().ok()?, power.get(length..)?)
    } else {
        let is_negative = power.starts_with('⁻');
        let power = power.strip_prefix('⁻').unwrap_or(power);
        let digits: Vec<usize> =
            power.chars().map_while(|c| POWERS.iter().position(|known| *known == c)).take(3).collect();
        let value = digits.iter().fold(0, |value, digit| value * 10 + i32::try_from(*digit).unwrap_or(0));
        let length: usize = power.chars().take(digits.len()).map(char::len_utf8).sum();
        if digits.is_empty() {
            return None;
        }
        (if is_negative { -value } else { value }, power.get(length..)?)
    };
    Some((value, rest.len() - rest_behind.len()))
}

/// Reads what begins with a digit. Returns it, unless it is the number of a list or a rank, and where it ends.
pub(super) fn number_at(text: &str, start: usize) -> (Option<TextToken>, usize) {
    let rest = &text[start..];
    let WrittenDigits { whole_end, mut end, decimals, mut other } = read_digits(rest);
    let token = |end: usize, kind: TextTokenKind| {
        let text = rest[..end].to_owned();
        (Some(TextToken { text, start, end: start + end, kind }), start + end)
    };
    // A time of day, a code, a rank.
    let hour_end = if decimals == 2 { whole_end } else { end };
    if [0, 2].contains(&decimals)
        && let Some((length, time)) = time_of_day(&text[..start], rest, hour_end)
    {
        return token(length, time);
    }
    let exponent = exponent_at(rest, end);
    if let Some((_, exponent_end)) = exponent {
        end = exponent_end;
    }
    let letters: String =
        rest[end..].chars().take_while(|c| c.is_alphabetic() || c.is_ascii_digit() || "_²³".contains(*c)).collect();
    let unit = letters.to_lowercase();
    let has_currency = text[..start].trim_end().ends_with(CURRENCIES);
    let is_attached_billion = letters.eq_ignore_ascii_case("b") && (decimals > 0 || has_currency);
    let is_scale = is_attached_billion || SCALES.iter().any(|(name, _)| unit == *name);
    if exponent.is_none() && !letters.is_empty() && !is_scale && !is_unit(&unit) {
        let length = end + letters.len();
        if ["st", "nd", "rd", "th"].contains(&unit.as_str()) {
            let rank = rest[..end].parse().ok().filter(|_| is_rank(text, start, start + length));
            let text = rest[..length].to_owned();
            let token =
                rank.map(|rank| TextToken { text, start, end: start + length, kind: TextTokenKind::Rank(rank) });
            return (token, start + length);
        }
        return token(length, TextTokenKind::Code(rest[..length].to_owned()));
    }
    let line = text[..start].rsplit('\n').next().unwrap_or_default().trim();
    let ends_item = rest[end..].starts_with(". ") || rest[end..].starts_with(") ");
    if line.trim_matches(['-', '*', '(', ' ', '#']).is_empty() && decimals == 0 && ends_item {
        return (None, start + end);
    }
    // The places of a table's rows: `| 1 | Berlin |`.
    let begins_row = line.starts_with('|') && line.trim_matches(['|', ' ']).is_empty();
    if begins_row && decimals == 0 && whole_end <= 2 && rest[end..].trim_start().starts_with('|') {
        return (None, start + end);
    }
    let whole = rest[..whole_end].chars().filter(char::is_ascii_digit);
    let plain: String = match decimals {
        0 => whole.collect(),
        _ => whole.chain(['.']).chain(rest[whole_end + 1..whole_end + 1 + decimals].chars()).collect(),
    };
    let Ok(mut value) = plain.parse::<f64>() else { return (None, start + end) };
    let mut tolerance = 0.5 * 10f64.powi(-i32::try_from(decimals).unwrap_or(0));
    // `48.000` and `3.500 €`, where points stand between thousands: nobody writes three zeros behind a point.
    if decimals == 3
        && (rest[..end].ends_with("000") || has_grouped_thousands(&text[..start], &rest[end..]))
        && let Some(grouped) = other
    {
        other = Some((value, tolerance));
        (value, tolerance) = grouped;
    }
    if let Some((power, _)) = exponent {
        value *= 10f64.powi(power);
        tolerance *= 10f64.powi(power);
    }
    let fraction = FRACTIONS.iter().find(|(mark, _)| letters.is_empty() && rest[end..].starts_with(*mark));
    if let Some((mark, part)) = fraction {
        value += part;
        tolerance = FRACTION_TOLERANCE;
        end += mark.len_utf8();
    }
    let after = rest[end..].trim_start();
    let word: String = after.chars().take_while(|c| c.is_alphabetic()).collect::<String>().to_lowercase();
    let scale = if letters.is_empty() { word } else { unit };
    // A letter behind a space is a unit, not a scale, but of money: `1,2 M€`.
    let is_money = after.get(scale.len()..).is_some_and(|rest| rest.starts_with(CURRENCIES));
    let known = SCALES.iter().find(|(name, _)| scale == *name && (!letters.is_empty() || name.len() > 1 || is_money));
    let is_mil_millones = after.get(..MIL_MILLONES.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(MIL_MILLONES));
    let factor = match is_mil_millones {
        true => Some(1e9),
        false => known.map(|(_, factor)| *factor).or_else(|| is_attached_billion.then_some(1e9)),
    };
    if let Some(factor) = factor {
        value *= factor;
        tolerance *= tolerance_scale(factor);
        other = other.map(|(value, tolerance)| (value * factor, tolerance * factor));
    }
    if let Some(part) = part_behind(after).filter(|_| decimals == 0 && factor.is_none()) {
        value += part;
        tolerance = part.min(1.0 - part) / 2.0;
    }
    let is_percent = is_percent(after);
    if other.is_none()
        && let Some(per) = per_scale(after)
    {
        other = Some((value / per, tolerance / per));
    }
    let sign = sign_before(text, start);
    if sign > 0 {
        value = -value;
        other = other.map(|(value, tolerance)| (-value, tolerance));
    } else if other.is_none() && is_in_parentheses(text, start, after) {
        other = Some((-value, tolerance));
    }
    let is_scaled = factor.is_some();
    let number = WrittenNumber { value, tolerance, is_percent, is_scaled, is_counted: false, other };
    let token = TextToken {
        text: text[start - sign..start + end].to_owned(),
        start: start - sign,
        end: start + end,
        kind: TextTokenKind::Number(number),
    };
    (Some(token), start + end + letters.len())
}

/// Whether a number stands in parentheses of its own, by which accounts write negative ones: `($250.75)`, `(250)`.
fn is_in_parentheses(text: &str, start: usize, after: &str) -> bool {
    let before = text[..start].trim_end_matches(CURRENCIES);
    before.ends_with('(') && after.trim_start_matches(CURRENCIES).starts_with(')')
}

/// Returns the bytes of a sign before a number, with a currency between; 0 where there is none.
fn sign_before(text: &str, start: usize) -> usize {
    if last_words(&text[..start], 1) == "minus" {
        let before = text[..start].trim_end();
        let head = &before[..before.len() - "minus".len()];
        return if is_subtracted(head) { 0 } else { start - head.len() };
    }
    let before = text[..start].trim_end_matches(' ');
    let head = before.strip_suffix(CURRENCIES).unwrap_or(&text[..start]);
    let mut back = head.chars().rev();
    let Some(sign @ ('-' | '−' | '–')) = back.next() else { return 0 };
    let outside = back.next();
    let is_sign = match sign {
        // Between words a long dash stands for a pause.
        '–' => outside.is_none_or(|c| c.is_whitespace() || c == '('),
        _ => outside.is_none_or(|c| !c.is_alphanumeric()),
    };
    if is_sign { start - head.len() + sign.len_utf8() } else { 0 }
}

/// Whether `minus` behind a text takes away from the number with which that ends, `451 new minus 176 cancelled`, and is no sign:
/// `between 4 and minus 2`.
fn is_subtracted(before: &str) -> bool {
    /// Words between the two numbers.
    const NEAR: usize = 3;
    const BEFORE_SIGNS: [&str; 8] = ["and", "or", "to", "from", "of", "at", "was", "is"];
    let clause = before.rsplit([',', ';', ':', '(', '\n']).next().unwrap_or_default();
    let near = clause.split_whitespace().rev().take(NEAR);
    let mut of_statement = near.take_while(|word| !BEFORE_SIGNS.contains(word));
    of_statement.any(|word| word.contains(|c: char| c.is_ascii_digit()))
}

/// Returns what a number is for each of: a million in `42 errors per million`.
fn per_scale(after: &str) -> Option<f64> {
    let near: String = after.chars().take(40).collect::<String>().to_lowercase();
    let clause = near.split([',', ';', '\n']).next().unwrap_or_default();
    let at = find_word(clause, "per")?;
    let next = clause[at + "per".len()..].split_whitespace().next()?;
    scale_of(next.trim_matches(|c: char| !c.is_alphanumeric()))
}

/// Whether lowercase letters right behind a number are a unit.
fn is_unit(letters: &str) -> bool {
    ["ms", "s", "h", "min", "km", "kg", "g", "cm", "mm", "gb", "mb", "kb", "tb", "x", "usd", "eur", "hp", "mpg"]
        .contains(&letters)
        || is_unit_called(letters)
}

#[cfg(test)]
mod tests {
    use crate::tokens::{TextTokenKind, tokens_in};

    #[test]
    fn minus_is_a_sign_where_nothing_is_taken_away() {
        let numbers = |text: &str| -> Vec<f64> {
            let tokens = tokens_in(text).into_iter();
            tokens
                .filter_map(|token| if let TextTokenKind::Number(one) = token.kind { Some(one.value) } else { None })
                .collect()
        };
        assert_eq!(numbers("451 new minus 176 cancelled makes 275"), [451.0, 176.0, 275.0]);
        assert_eq!(numbers("between 4 and minus 12 degrees"), [4.0, -12.0]);
        assert_eq!(numbers("Oslo had 5 and Kiruna minus 12"), [5.0, -12.0]);
    }
}
