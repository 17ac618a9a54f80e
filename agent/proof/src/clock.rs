//! Times of day as people write them: `17:30`, `5:30 PM`, `17h07`, `17 h 07`, `17.30 Uhr`, `alle 17.30`.

use super::numbers::digits_at;
use super::tokens::{TextTokenKind, last_words};

/// Words before a time of day.
const BEFORE_TIME: [&str; 10] = ["at", "by", "before", "after", "until", "till", "since", "around", "between", "from"];
/// Words before a time whose hours and minutes have a point between them: `alle 17.05`, `a las 17.05`.
const BEFORE_POINTED: [&str; 4] = ["alle", "dalle", "las", "ore"];
/// Spaces that may stand around the letter of `17 h 05`.
const SPACES: [char; 3] = [' ', '\u{a0}', '\u{202f}'];

/// Whether what stands behind a number makes it a time in German: `Uhr`, and not `Uhren`.
fn is_clock_time(behind: &str) -> bool {
    behind.strip_prefix("Uhr").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Returns a time of day that begins with these digits, counted to 24 hours, and where it ends: `17:30`, `14h07`, `5:30 PM`,
/// `5 PM`.
pub(super) fn time_of_day(before: &str, rest: &str, end: usize) -> Option<(usize, TextTokenKind)> {
    let bytes = rest.as_bytes();
    if bytes.get(end) == Some(&b':') && digits_at(rest, end + 1) > 0 {
        let length = rest.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(rest.len());
        let code = hour_of_day(&rest[..length], &rest[length..]);
        return Some((length, TextTokenKind::Code(code)));
    }
    if bytes.get(end) == Some(&b'h') && digits_at(rest, end + 1) == 2 && end <= 2 {
        let is_end = rest[end + 3..].chars().next().is_none_or(|c| !c.is_alphanumeric());
        let time = rest[..end + 3].replace('h', ":");
        return is_end.then_some((end + 3, TextTokenKind::Code(time)));
    }
    if let Some((length, time)) = spaced_time(rest, end).or_else(|| pointed_time(before, rest, end)) {
        return Some((length, TextTokenKind::Code(time)));
    }
    let hour: u32 = rest.get(..end).filter(|digits| digits.len() <= 2)?.parse().ok()?;
    let behind = rest[end..].trim_start_matches(' ');
    let half: String = behind.chars().filter(|c| *c != '.').take(2).collect::<String>().to_lowercase();
    if is_clock_time(behind) {
        return (hour <= 24).then_some((end, TextTokenKind::Hour(hour % 24)));
    }
    let is_whole_word = behind.chars().filter(|c| *c != '.').nth(2).is_none_or(|c| !c.is_alphanumeric());
    let hour = match (half.as_str(), hour) {
        ("am" | "pm", 0 | 13..) => return None,
        ("am", 12) => 0,
        ("am", hour) | ("pm", hour @ 12) => hour,
        ("pm", hour) => hour + 12,
        _ => return None,
    };
    // `9 am Montag`: in other languages it is a word.
    let is_upper = behind.starts_with(['A', 'P']) || behind.chars().nth(1) == Some('.');
    let is_said = BEFORE_TIME.contains(&last_words(before, 1).as_str());
    (is_whole_word && (is_upper || is_said || half == "pm")).then_some((end, TextTokenKind::Hour(hour)))
}

/// Returns the time of `17 h 05`, as French has it, and where it ends; `17 h 05 min` is a length of time.
fn spaced_time(rest: &str, end: usize) -> Option<(usize, String)> {
    let hour = rest.get(..end).filter(|_| end <= 2)?;
    let behind = rest.get(end..)?.strip_prefix(SPACES)?.strip_prefix('h')?.strip_prefix(SPACES)?;
    let minutes = behind.get(..2).filter(|_| digits_at(behind, 0) == 2)?;
    let next = behind.get(2..)?;
    let is_end = !next.starts_with(char::is_alphanumeric) && !next.trim_start_matches(SPACES).starts_with("min");
    (is_end && is_time(hour, minutes)).then(|| (rest.len() - next.len(), format!("{hour}:{minutes}")))
}

/// Returns the time of `22.15 Uhr`, `17.05 uur` and `alle 17.05`, and where it ends.
fn pointed_time(before: &str, rest: &str, end: usize) -> Option<(usize, String)> {
    let hour = rest.get(..end).filter(|_| end <= 2)?;
    let behind = rest.get(end..)?.strip_prefix('.')?;
    let minutes = behind.get(..2).filter(|_| digits_at(behind, 0) == 2)?;
    let next = behind.get(2..)?.trim_start();
    let is_said =
        is_clock_time(next) || next.strip_prefix("uur").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    // `Alle 17.05 Euro` are no time.
    let is_named = BEFORE_POINTED.contains(&last_words(before, 1).as_str())
        && !next.starts_with(|c: char| "%$".contains(c) || (!c.is_alphanumeric() && !c.is_ascii()));
    let is_said = is_said || is_named;
    (is_said && is_time(hour, minutes)).then(|| (end + ".00".len(), format!("{hour}:{minutes}")))
}

/// Whether digits are an hour of the day and its minutes.
fn is_time(hour: &str, minutes: &str) -> bool {
    let below = |digits: &str, most: u32| digits.parse::<u32>().is_ok_and(|number| number < most);
    below(hour, 25) && below(minutes, 60)
}

/// Returns a time of day as it is counted to 24 hours: `17:30` of `5:30 PM`.
fn hour_of_day(time: &str, behind: &str) -> String {
    let behind: String = behind.trim_start().chars().filter(|c| *c != '.').take(2).collect();
    let is_afternoon = behind.eq_ignore_ascii_case("pm");
    match time.split_once(':').and_then(|(hour, rest)| Some((hour.parse::<u32>().ok()?, rest))) {
        Some((hour, rest)) if is_afternoon && hour < 12 => format!("{}:{rest}", hour + 12),
        Some((12, rest)) if behind.eq_ignore_ascii_case("am") => format!("00:{rest}"),
        _ => time.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens_in;

    #[test]
    fn times_of_day_of_several_languages() {
        let codes = |text: &str| -> Vec<String> {
            let code = |kind: TextTokenKind| match kind {
                TextTokenKind::Code(code) => Some(code),
                _ => None,
            };
            tokens_in(text).into_iter().filter_map(|token| code(token.kind)).collect()
        };
        for text in ["à 17 h 05.", "alle 17.05", "om 17.05 uur", "um 17.05 Uhr", "a las 17.05 y", "at 5:05 PM", "17h05"]
        {
            assert_eq!(codes(text), ["17:05"], "{text}");
        }
        for text in ["17 h 05 min", "alle 17.05 €", "it took 17.05 hours", "alle 17.05 %"] {
            assert!(codes(text).is_empty(), "{text}: {:?}", codes(text));
        }
    }
}
