//! Texts of intervals as PostgreSQL and DuckDB write them: `3 days 04:05:06`, `-04:05:06.789`, `1 day ago`, `3 quarters`, and as
//! SQL and ISO 8601 do: `1-2`, `3 4:05:06`, `P1Y2M3DT4H5M6S`.

/// Returns the text with numbers and units only, which Arrow reads; `None` where it has nothing else.
pub(crate) fn with_units(text: &str) -> Option<String> {
    if let Some(parts) = iso_parts(text.trim()) {
        return Some(written(parts, 1.0));
    }
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let all_words = words.len();
    words.retain(|word| *word != "@");
    let has_at = words.len() < all_words;
    let is_ago = words.last().is_some_and(|last| last.eq_ignore_ascii_case("ago"));
    if is_ago {
        words.pop();
    }
    let is_rewritten = |word: &&str| {
        word.contains(':') || in_known_units(word).is_some() || months_of_years(word).is_some() || has_exponent(word)
    };
    if !is_ago && !has_at && !words.iter().any(is_rewritten) {
        return None;
    }
    let mut parts = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word.contains(':') {
            parts.extend(clock_parts(word)?);
            continue;
        }
        if let Some(months) = months_of_years(word) {
            parts.push((months, "months".to_owned()));
            continue;
        }
        let number: f64 = word.parse().ok()?;
        // Days have no unit before a clock.
        let unit = match words.peek()?.contains(':') {
            true => "days",
            false => words.next()?,
        };
        let (times, unit) = in_known_units(unit).unwrap_or((1.0, unit));
        parts.push((number * times, unit.to_owned()));
    }
    Some(written(parts, if is_ago { -1.0 } else { 1.0 }))
}

/// Whether a word is a number as a small or large double is written: `1e-05`.
fn has_exponent(word: &str) -> bool {
    word.contains(['e', 'E']) && word.parse::<f64>().is_ok_and(f64::is_finite)
}

fn written(parts: Vec<(f64, String)>, sign: f64) -> String {
    let parts = parts.into_iter().map(|(number, unit)| format!("{} {unit}", number * sign));
    parts.collect::<Vec<_>>().join(" ")
}

/// Returns the months of `[-]years-months`.
fn months_of_years(word: &str) -> Option<f64> {
    let (sign, unsigned) = match word.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, word.strip_prefix('+').unwrap_or(word)),
    };
    let (years, months) = unsigned.split_once('-')?;
    let (years, months): (u32, u32) = (years.parse().ok()?, months.parse().ok()?);
    (months < 12).then(|| sign * (f64::from(years) * 12.0 + f64::from(months)))
}

/// Reads `P1Y2M3DT4H5M6S` and `P0001-02-03T04:05:06`.
fn iso_parts(text: &str) -> Option<Vec<(f64, String)>> {
    const DATE_UNITS: [(char, &str); 4] = [('Y', "years"), ('M', "months"), ('W', "weeks"), ('D', "days")];
    const CLOCK_UNITS: [(char, &str); 3] = [('H', "hours"), ('M', "minutes"), ('S', "seconds")];
    let text = text.strip_prefix(['P', 'p'])?;
    let (date, clock) = text.split_once(['T', 't']).unwrap_or((text, ""));
    let has_letters = date.contains(|letter: char| letter.is_ascii_alphabetic());
    let mut parts: Vec<(f64, String)> = match date.contains('-') && !has_letters {
        true => {
            let numbers = date.split('-').map(|part| part.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
            if numbers.len() > 3 {
                return None;
            }
            let units = ["years", "months", "days"].map(str::to_owned);
            numbers.into_iter().zip(units).collect()
        }
        false => designated(date, &DATE_UNITS)?,
    };
    match clock.contains(':') {
        true => parts.extend(clock_parts(clock)?),
        false => parts.extend(designated(clock, &CLOCK_UNITS)?),
    }
    (!parts.is_empty()).then_some(parts)
}

/// Reads numbers, each before the letter of its unit.
fn designated(text: &str, units: &[(char, &str)]) -> Option<Vec<(f64, String)>> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let at = rest.find(|letter: char| letter.is_ascii_alphabetic())?;
        let (number, behind) = rest.split_at_checked(at)?;
        let letter = behind.chars().next()?;
        let (_, unit) = units.iter().find(|(own, _)| own.eq_ignore_ascii_case(&letter))?;
        parts.push((number.parse().ok()?, (*unit).to_owned()));
        rest = behind.get(1..)?;
    }
    Some(parts)
}

/// Returns how many of a unit that DataFusion reads are one of a unit that it does not.
fn in_known_units(unit: &str) -> Option<(f64, &'static str)> {
    match unit.to_lowercase().as_str() {
        "quarter" | "quarters" => Some((3.0, "months")),
        "millennium" | "millennia" | "millenniums" => Some((1000.0, "years")),
        _ => None,
    }
}

/// `[-]hours:minutes[:seconds]`.
fn clock_parts(clock: &str) -> Option<Vec<(f64, String)>> {
    let (sign, clock) = match clock.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, clock.strip_prefix('+').unwrap_or(clock)),
    };
    let numbers = clock.split(':').map(|part| part.parse::<f64>().ok()).collect::<Option<Vec<_>>>()?;
    let units = match numbers.len() {
        2 | 3 => ["hours", "minutes", "seconds"],
        _ => return None,
    };
    Some(numbers.into_iter().zip(units).map(|(number, unit)| (number * sign, unit.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_standards_have_units() {
        for (text, expected) in [
            ("1-2", Some("14 months")),
            ("-1-2 +3 -4:05:06", Some("-14 months 3 days -4 hours -5 minutes -6 seconds")),
            ("3 4:05:06", Some("3 days 4 hours 5 minutes 6 seconds")),
            ("@ 1 minute", Some("1 minute")),
            ("P1Y2M3DT4H5M6S", Some("1 years 2 months 3 days 4 hours 5 minutes 6 seconds")),
            ("P0001-02-03T04:05:06", Some("1 years 2 months 3 days 4 hours 5 minutes 6 seconds")),
            ("P2W", Some("2 weeks")),
            ("PT1.5S", Some("1.5 seconds")),
            ("1e-05 seconds", Some("0.00001 seconds")),
            ("1 day 2 hours", None),
            ("1e999 seconds", None),
            ("P", None),
            ("1-13", None),
            ("5", None),
        ] {
            assert_eq!(with_units(text).as_deref(), expected, "{text}");
        }
    }
}
