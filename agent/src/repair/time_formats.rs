//! Formats of times and numbers as other systems write them: MySQL's, .NET's and Java's, Oracle's.

/// Specifiers of MySQL's formats that differ from those of strftime.
const MYSQL_FORMATS: [(&str, &str); 13] = [
    ("%i", "%M"),
    ("%M", "%B"),
    ("%s", "%S"),
    ("%W", "%A"),
    ("%c", "%-m"),
    ("%e", "%-d"),
    ("%k", "%-H"),
    ("%l", "%-I"),
    ("%T", "%H:%M:%S"),
    ("%r", "%I:%M:%S %p"),
    ("%h", "%I"),
    ("%v", "%V"),
    ("%x", "%G"),
];
/// Specifiers of MySQL's that have others' letters, and no like here: `1st`, and weeks that begin otherwise.
const ONLY_MYSQL: [&str; 4] = ["%D", "%u", "%V", "%X"];

/// Parts of .NET's and Java's formats, longest first.
const DOTNET_FORMATS: [(&str, &str); 23] = [
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("M", "%-m"),
    ("EEEE", "%A"),
    ("EEE", "%a"),
    ("dddd", "%A"),
    ("ddd", "%a"),
    ("dd", "%d"),
    ("d", "%-d"),
    ("HH", "%H"),
    ("hh", "%I"),
    ("mm", "%M"),
    ("ss", "%S"),
    ("tt", "%p"),
    ("H", "%-H"),
    ("h", "%-I"),
    ("m", "%-M"),
    ("s", "%-S"),
    ("a", "%p"),
    ("E", "%a"),
];

/// Returns a format of Oracle and Snowflake as one of strftime, quoted; `None` where it is no such format.
pub(super) fn oracle_format(written: &str) -> Option<String> {
    const PARTS: [(&str, &str); 19] = [
        ("YYYY", "%Y"),
        ("YY", "%y"),
        ("MONTH", "%B"),
        ("MON", "%b"),
        ("MM", "%m"),
        ("DDD", "%j"),
        ("DD", "%d"),
        ("DAY", "%A"),
        ("DY", "%a"),
        ("HH24", "%H"),
        ("HH12", "%I"),
        ("HH", "%I"),
        ("MI", "%M"),
        ("SS", "%S"),
        ("AM", "%p"),
        ("PM", "%p"),
        ("RRRR", "%Y"),
        ("RR", "%y"),
        ("FM", ""),
    ];
    let upper = written.to_ascii_uppercase();
    let mut found = String::new();
    let mut at = 0;
    while let Some(first) = written[at..].chars().next() {
        if let Some((part, here)) = PARTS.iter().find(|(part, _)| upper[at..].starts_with(part)) {
            found.push_str(here);
            at += part.len();
        } else if first.is_alphanumeric() || first == '%' {
            return None;
        } else {
            if first != '"' {
                found.push(first);
            }
            at += first.len_utf8();
        }
    }
    found.contains('%').then(|| quoted(&found))
}

/// Returns a text as SQL.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns the format here of one of MySQL's; `None` where a part of it has no like.
pub(super) fn mysql_format(written: &str) -> Option<String> {
    let mut format = String::new();
    let mut rest = written;
    while let Some(first) = rest.chars().next() {
        if ONLY_MYSQL.iter().any(|specifier| rest.starts_with(specifier)) {
            return None;
        }
        match MYSQL_FORMATS.iter().find(|(specifier, _)| rest.starts_with(specifier)) {
            Some((specifier, here)) => {
                format.push_str(here);
                rest = &rest[specifier.len()..];
            }
            None => {
                // A percent sign belongs to the letter behind it.
                let length =
                    if first == '%' { rest.chars().take(2).map(char::len_utf8).sum() } else { first.len_utf8() };
                format.push_str(&rest[..length]);
                rest = &rest[length..];
            }
        }
    }
    Some(quoted(&format))
}

/// Returns the format here of .NET's `N2` (with commas) and `F2`.
pub(super) fn dotnet_number(written: &str) -> Option<String> {
    let comma = match written.chars().next()? {
        'N' | 'n' => ",",
        'F' | 'f' => "",
        _ => return None,
    };
    let digits = &written[1..];
    let places: u8 = if digits.is_empty() { 2 } else { digits.parse().ok()? };
    Some(format!("{{:{comma}.{places}f}}"))
}

/// Returns the format here of one of .NET's or Java's; `None` where a part of it has no like.
pub(super) fn dotnet_format(written: &str) -> Option<String> {
    let mut format = String::new();
    let mut rest = written;
    while let Some(first) = rest.chars().next() {
        match DOTNET_FORMATS.iter().find(|(part, _)| rest.starts_with(part)) {
            Some((part, here)) => {
                format.push_str(here);
                rest = &rest[part.len()..];
            }
            // A text in quotes stands for itself.
            None if first == '\'' => {
                let (text, behind) = rest[1..].split_once('\'')?;
                format.push_str(text);
                rest = behind;
            }
            None if first.is_alphabetic() && !['T', 'Z'].contains(&first) => return None,
            None => {
                format.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    Some(quoted(&format))
}
