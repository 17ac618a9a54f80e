//! Texts of intervals as PostgreSQL and DuckDB write them: `3 days 04:05:06`, `-04:05:06.789`, `1 day ago`, `3 quarters`.

/// Returns the text with numbers and units only, which DataFusion reads; `None` where it has nothing else.
pub(super) fn with_units(text: &str) -> Option<String> {
    let mut words: Vec<&str> = text.split_whitespace().filter(|word| *word != "@").collect();
    let is_ago = words.last().is_some_and(|last| last.eq_ignore_ascii_case("ago"));
    if is_ago {
        words.pop();
    }
    if !is_ago && !words.iter().any(|word| word.contains(':') || in_known_units(word).is_some()) {
        return None;
    }
    let mut parts = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        if word.contains(':') {
            parts.extend(clock_parts(word)?);
            continue;
        }
        let number: f64 = word.parse().ok()?;
        let unit = words.next()?;
        let (times, unit) = in_known_units(unit).unwrap_or((1.0, unit));
        parts.push((number * times, unit.to_owned()));
    }
    let sign = if is_ago { -1.0 } else { 1.0 };
    let written = parts.into_iter().map(|(number, unit)| format!("{} {unit}", number * sign));
    Some(written.collect::<Vec<_>>().join(" "))
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
