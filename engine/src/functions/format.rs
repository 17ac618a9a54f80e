//! The patterns of `format` and `printf`. `format` knows DuckDB's `{}` and PostgreSQL's `%s`, `%I` and `%L`; `printf` those
//! of C.

use datafusion::error::Result;

use super::definition::invalid;
use crate::limits::QueryUsage;

/// The widest field, and the most bytes that one batch makes.
const MAX_WIDTH: usize = 10_000;
const MAX_BYTES: usize = 256 << 20;
/// From here on it is looked whether the query is over.
const LONG_TEXT: usize = 1 << 20;

/// Which function's patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Format,
    Printf,
}

/// A value as a cast to text shows it, and whether it is a number: fields that do not say their kind differ by that.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FormatValue<'a> {
    pub(super) text: &'a str,
    pub(super) is_number: bool,
}

impl<'a> FormatValue<'a> {
    fn of_text(text: &'a str) -> Self {
        Self { text, is_number: false }
    }
}

/// Fills the values into a pattern; `None` is null. `bytes` counts what the batch has made.
pub(super) fn formatted(
    pattern: &str,
    values: &[Option<FormatValue<'_>>],
    style: Style,
    bytes: &mut usize,
) -> Result<Option<String>> {
    let braces = style == Style::Format && pattern.contains('{');
    let room = MAX_BYTES.saturating_sub(*bytes);
    let text =
        if braces { with_braces(pattern, values, room)? } else { Some(with_percents(pattern, values, style, room)?) };
    let made = text.as_ref().map_or(0, String::len);
    check_room(made, room)?;
    *bytes += made;
    Ok(text)
}

/// Returns an error where a text has grown out of the room that there is for it; a pattern of a megabyte has fields for gigabytes.
fn check_room(made: usize, room: usize) -> Result<()> {
    if made > room {
        return Err(invalid(format!("format makes at most {} MiB at a time; ask for less", MAX_BYTES >> 20)));
    }
    match QueryUsage::current() {
        Some(usage) if made >= LONG_TEXT => usage.check(),
        _ => Ok(()),
    }
}

/// A field's width, precision and flags.
#[derive(Debug, Default)]
struct FormatField {
    left: bool,
    center: bool,
    /// Whether texts stand on the left, and numbers on the right.
    by_kind: bool,
    fill: Option<char>,
    plus: bool,
    blank: bool,
    zero: bool,
    /// Whether the base of a whole number is said before its digits.
    shows_base: bool,
    group: Option<char>,
    width: usize,
    precision: Option<usize>,
    kind: char,
    /// Whether the bits of a negative number are shown, as C does, and not its sign.
    shows_bits: bool,
}

impl FormatField {
    fn text(&self, value: FormatValue<'_>) -> Result<String> {
        let FormatValue { text: value, is_number } = value;
        let is_number = is_number || !matches!(self.kind, 's' | '\0');
        let wrong = || invalid(format!("`{value}` is no number, which `{}` in a format takes", self.kind));
        let number = || value.trim().parse::<f64>().map_err(|_| wrong());
        let whole = || value.trim().parse::<i128>().or_else(|_| number().map(|number| number.trunc() as i128));
        let is_whole = is_number && matches!(self.kind, '\0' | 'd' | 'i' | 'u' | 'x' | 'X' | 'o' | 'b' | 'B');
        if self.shows_base && !is_whole {
            let message = "`#` in a format says the base of a whole number, as in {:#x}, {:#o} and {:#b}";
            return Err(invalid(message.into()));
        }
        let body = match self.kind {
            's' | '\0' if self.group.is_some() => value.to_owned(),
            's' | '\0' => match self.precision {
                Some(precision) if self.kind == '\0' && is_number => general(number()?, precision, false, false),
                Some(precision) => value.chars().take(precision).collect(),
                None => value.to_owned(),
            },
            'd' | 'i' | 'u' => with_digits(&whole()?.to_string(), self.precision.unwrap_or(0)),
            'x' => self.in_base(whole()?, |digits| format!("{digits:x}")),
            'X' => self.in_base(whole()?, |digits| format!("{digits:X}")),
            'o' => self.in_base(whole()?, |digits| format!("{digits:o}")),
            'b' | 'B' => self.in_base(whole()?, |digits| format!("{digits:b}")),
            'c' => u32::try_from(whole()?).ok().and_then(char::from_u32).ok_or_else(wrong)?.to_string(),
            'f' | 'F' => format!("{:.*}", self.precision.unwrap_or(6), number()?),
            'e' | 'E' => exponent(number()?, self.precision.unwrap_or(6), self.kind == 'E'),
            'g' | 'G' => general(number()?, self.precision.unwrap_or(6), self.kind == 'G', true),
            '%' => format!("{:.*}%", self.precision.unwrap_or(6), number()? * 100.0),
            other => return Err(invalid(format!("`{other}` is no kind of field in a format"))),
        };
        let mut body = match self.group {
            Some(separator) if is_number => grouped(&body, separator),
            _ => body,
        };
        if self.shows_base {
            let (sign, base) = (usize::from(body.starts_with('-')), self.base_before(&body));
            body.insert_str(sign, base);
        }
        let is_number = is_number && self.kind != 'c';
        if (self.plus || self.blank) && is_number && !body.starts_with('-') {
            body.insert(0, if self.plus { '+' } else { ' ' });
        }
        Ok(self.padded(body, is_number))
    }

    fn in_base(&self, number: i128, digits: fn(u128) -> String) -> String {
        match (number < 0, self.shows_bits) {
            (false, _) => digits(number.unsigned_abs()),
            (true, false) => format!("-{}", digits(number.unsigned_abs())),
            (true, true) => digits(u128::from(number as u64)),
        }
    }

    /// Returns what says the base before the digits of a number. A zero has none as an octal, and in C.
    fn base_before(&self, digits: &str) -> &'static str {
        match (self.kind, digits == "0") {
            ('o', true) => "",
            (_, true) if self.shows_bits => "",
            ('o', false) => "0",
            ('x', _) => "0x",
            ('X', _) => "0X",
            ('b', _) => "0b",
            ('B', _) => "0B",
            _ => "",
        }
    }

    fn padded(&self, body: String, is_number: bool) -> String {
        let missing = self.width.saturating_sub(body.chars().count());
        if missing == 0 {
            return body;
        }
        let left = self.left || (self.by_kind && (!is_number || self.kind == 's'));
        if self.zero && is_number && !left && !self.center {
            let unsigned = body.strip_prefix(['-', '+', ' ']).unwrap_or(&body);
            let digits = ["0x", "0X", "0b", "0B"].into_iter().find_map(|base| unsigned.strip_prefix(base));
            let (before, digits) = body.split_at(body.len() - digits.unwrap_or(unsigned).len());
            return format!("{before}{}{digits}", "0".repeat(missing));
        }
        let fill = |count: usize| self.fill.unwrap_or(' ').to_string().repeat(count);
        if self.center {
            return format!("{}{body}{}", fill(missing / 2), fill(missing - missing / 2));
        }
        if left { format!("{body}{}", fill(missing)) } else { format!("{}{body}", fill(missing)) }
    }
}

/// Returns a whole number with so many digits at least, as C's precision of one is.
fn with_digits(number: &str, digits: usize) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |number| ("-", number));
    format!("{sign}{number:0>digits$}")
}

fn exponent(number: f64, precision: usize, upper: bool) -> String {
    let text = format!("{number:.precision$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
    format!("{mantissa}{}{sign}{digits:0>2}", if upper { 'E' } else { 'e' })
}

/// Returns a number with so many significant digits, with an exponent where it is small or has more of them: C's `%g`, whose
/// zeros at the end are left out. DuckDB's `{:.3}` keeps those of numbers from 1, and has a digit behind the point.
fn general(number: f64, precision: usize, upper: bool, is_short: bool) -> String {
    if !number.is_finite() {
        return number.to_string();
    }
    let last = precision.max(1) - 1;
    let rounded = format!("{number:.last$e}");
    let power = rounded.split_once('e').and_then(|(_, power)| power.parse::<i64>().ok()).unwrap_or(0);
    let without_zeros = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    let decimals = last as i64 - power;
    let Some(decimals) = usize::try_from(decimals).ok().filter(|_| power >= -4) else {
        let text = exponent(number, last, upper);
        let at = text.find(['e', 'E']).unwrap_or(text.len());
        let (mantissa, power) = text.split_at(at);
        return match is_short && mantissa.contains('.') {
            true => without_zeros(mantissa) + power,
            false => text,
        };
    };
    let text = format!("{number:.decimals$}");
    match text.contains('.') {
        true if is_short || (power < 0 && number != 0.0) => without_zeros(&text),
        false if !is_short => text + ".0",
        _ => text,
    }
}

fn grouped(number: &str, separator: char) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, fraction) = number.split_once('.').map_or((number, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut reversed = String::new();
    for (index, digit) in whole.chars().rev().enumerate() {
        if index > 0 && index % 3 == 0 {
            reversed.push(separator);
        }
        reversed.push(digit);
    }
    let whole: String = reversed.chars().rev().collect();
    fraction.map_or(format!("{sign}{whole}"), |fraction| format!("{sign}{whole}.{fraction}"))
}

fn value_at<'a>(values: &[Option<FormatValue<'a>>], at: usize) -> Result<Option<FormatValue<'a>>> {
    let value = values.get(at).copied();
    value.ok_or_else(|| invalid(format!("the format names value {}, there are {}", at + 1, values.len())))
}

fn number_before(text: &str) -> Result<(Option<usize>, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    if end == 0 {
        return Ok((None, text));
    }
    let width: usize = text[..end].parse().unwrap_or(usize::MAX);
    match width > MAX_WIDTH {
        true => Err(invalid(format!("a field of a format is at most {MAX_WIDTH} wide"))),
        false => Ok((Some(width), &text[end..])),
    }
}

fn with_braces(pattern: &str, values: &[Option<FormatValue<'_>>], room: usize) -> Result<Option<String>> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut next = 0;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
            text.push(letter);
            rest = after;
            continue;
        }
        let Some(field) = rest.strip_prefix('{') else {
            text.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        let end =
            field.find('}').ok_or_else(|| invalid(format!("a brace in the format `{pattern}` does not close")))?;
        let (inside, after) = (&field[..end], &field[end + 1..]);
        let (position, spec) = inside.split_once(':').map_or((inside, ""), |(position, spec)| (position, spec));
        let at = match position {
            "" => {
                next += 1;
                next - 1
            }
            digits => digits.parse().map_err(|_| invalid(format!("`{{{inside}}}` is no field of a format")))?,
        };
        let Some(value) = value_at(values, at)? else { return Ok(None) };
        text.push_str(&brace_field(spec)?.text(value)?);
        check_room(text.len(), room)?;
        rest = after;
    }
    Ok(Some(text))
}

/// Reads what follows the colon: `[[fill]align][sign][#][0][width][,][.precision][kind]`.
fn brace_field(spec: &str) -> Result<FormatField> {
    let mut field = FormatField { by_kind: true, ..FormatField::default() };
    let letters: Vec<char> = spec.chars().collect();
    let mut rest = spec;
    let align = |letter: Option<&char>| letter.is_some_and(|letter| matches!(letter, '<' | '>' | '^'));
    if align(letters.get(1)) {
        field.fill = letters.first().copied();
        rest = &rest[letters.first().map_or(0, |letter| letter.len_utf8())..];
    }
    if let Some(letter) = rest.chars().next().filter(|letter| align(Some(letter))) {
        (field.left, field.center, field.by_kind) = (letter == '<', letter == '^', false);
        rest = &rest[1..];
    }
    if let Some(sign) = rest.chars().next().filter(|letter| matches!(letter, '+' | '-' | ' ')) {
        (field.plus, field.blank) = (sign == '+', sign == ' ');
        rest = &rest[1..];
    }
    if let Some(after) = rest.strip_prefix('#') {
        field.shows_base = true;
        rest = after;
    }
    if let Some(after) = rest.strip_prefix('0') {
        field.zero = true;
        rest = after;
    }
    let (width, after) = number_before(rest)?;
    field.width = width.unwrap_or(0);
    rest = after;
    for separator in [',', '_', '\''] {
        if let Some(after) = rest.strip_prefix(separator) {
            field.group = Some(separator);
            rest = after;
        }
    }
    // DuckDB writes the separator of thousands behind a `t`.
    if let Some(after) = rest.strip_prefix('t') {
        field.group = after.chars().next();
        rest = &after[field.group.map_or(0, char::len_utf8)..];
    }
    if let Some(after) = rest.strip_prefix('.') {
        let (precision, after) = number_before(after)?;
        field.precision = precision;
        rest = after;
    }
    let mut kinds = rest.chars();
    field.kind = kinds.next().unwrap_or('\0');
    match kinds.next() {
        None => Ok(field),
        Some(_) => Err(invalid(format!("`{spec}` is no field of a format"))),
    }
}

fn with_percents(pattern: &str, values: &[Option<FormatValue<'_>>], style: Style, room: usize) -> Result<String> {
    let mut text = String::with_capacity(pattern.len());
    let mut rest = pattern;
    let mut next = 0;
    while let Some(letter) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("%%") {
            text.push('%');
            rest = after;
            continue;
        }
        let Some(after) = rest.strip_prefix('%') else {
            text.push(letter);
            rest = &rest[letter.len_utf8()..];
            continue;
        };
        let mut field = FormatField { shows_bits: true, ..FormatField::default() };
        let mut at = None;
        rest = after;
        if let (Some(position), after) = number_before(rest)?
            && let Some(after) = after.strip_prefix('$')
        {
            at = position.checked_sub(1);
            rest = after;
        }
        while let Some(flag) = rest.chars().next().filter(|flag| matches!(flag, '-' | '+' | '0' | ' ' | ',' | '#')) {
            match flag {
                '-' => field.left = true,
                '+' => field.plus = true,
                '0' => field.zero = true,
                ',' => field.group = Some(','),
                '#' => field.shows_base = true,
                _ => field.blank = true,
            }
            rest = &rest[1..];
        }
        if let Some(after) = rest.strip_prefix('*') {
            // The width is a value, the next one or the one that is named; a negative one is for the left side.
            let (place, after) = match number_before(after)? {
                (Some(place), named) if named.starts_with('$') => {
                    // The field's own value is the one behind it.
                    next = place.max(1);
                    (next - 1, &named[1..])
                }
                _ => {
                    next += 1;
                    (next - 1, after)
                }
            };
            let width: i64 = value_at(values, place)?.map_or("0", |width| width.text).parse().unwrap_or(i64::MAX);
            field.left |= width < 0;
            field.width = usize::try_from(width.unsigned_abs()).unwrap_or(usize::MAX);
            if field.width > MAX_WIDTH {
                return Err(invalid(format!("a field of a format is at most {MAX_WIDTH} wide")));
            }
            rest = after;
        }
        let (width, after) = number_before(rest)?;
        field.width = width.unwrap_or(field.width);
        rest = after;
        if let Some(after) = rest.strip_prefix('.') {
            let (precision, after) = number_before(after)?;
            field.precision = Some(precision.unwrap_or(0));
            rest = after;
        }
        if style == Style::Printf {
            rest = rest.trim_start_matches(['l', 'h']);
        }
        let kind = rest.chars().next().ok_or_else(|| invalid(format!("the format `{pattern}` ends in a field")))?;
        rest = &rest[kind.len_utf8()..];
        let at = at.unwrap_or(next);
        next = at + 1;
        let value = value_at(values, at)?;
        match (kind, style) {
            ('I', Style::Format) => {
                field.kind = 's';
                let name = quoted_name(value.unwrap_or_default().text);
                text.push_str(&field.text(FormatValue::of_text(&name))?);
            }
            ('L', Style::Format) => {
                field.kind = 's';
                let literal = value.map_or("NULL".to_owned(), |value| quoted_text(value.text));
                text.push_str(&field.text(FormatValue::of_text(&literal))?);
            }
            _ => {
                field.kind = kind;
                text.push_str(&field.text(value.unwrap_or_default())?);
            }
        }
        check_room(text.len(), room)?;
    }
    Ok(text)
}

/// The words that PostgreSQL reads otherwise than as names, as its `pg_get_keywords` lists them.
const KEYWORDS: &str = "\
    all analyse analyze and any array as asc asymmetric authorization between bigint binary bit boolean both \
    case cast char character check coalesce collate collation column concurrently constraint create cross \
    current_catalog current_date current_role current_schema current_time current_timestamp current_user dec \
    decimal default deferrable desc distinct do else end except exists extract false fetch float for foreign \
    freeze from full grant greatest group grouping having ilike in initially inner inout int integer intersect \
    interval into is isnull join lateral leading least left like limit localtime localtimestamp national natural \
    nchar none normalize not notnull null nullif numeric offset on only or order out outer overlaps overlay \
    placing position precision primary real references returning right row select session_user setof similar \
    smallint some substring symmetric table tablesample then time timestamp to trailing treat trim true union \
    unique user using values varchar variadic verbose when where window with xmlattributes xmlconcat xmlelement \
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable";

/// Returns a name as PostgreSQL's `quote_ident` writes it: in quotes where it needs them.
pub(super) fn quoted_name(name: &str) -> String {
    let is_plain = name.starts_with(|letter: char| letter.is_ascii_lowercase() || letter == '_')
        && name.chars().all(|letter| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_');
    match is_plain && !KEYWORDS.split(' ').any(|keyword| keyword == name) {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('"', "\"\"")),
    }
}

/// Returns a text as PostgreSQL's `quote_literal` writes it: with a backslash in it, it is an `E'...'`.
fn quoted_text(text: &str) -> String {
    let quoted = text.replace('\'', "''");
    match quoted.contains('\\') {
        true => format!("E'{}'", quoted.replace('\\', "\\\\")),
        false => format!("'{quoted}'"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Option<FormatValue<'_>> {
        Some(FormatValue::of_text(text))
    }

    fn number(text: &str) -> Option<FormatValue<'_>> {
        Some(FormatValue { text, is_number: true })
    }

    #[test]
    fn a_text_ends_where_it_is_too_long() {
        for (pattern, style) in [("{0:10000}", Style::Format), ("%1$10000d", Style::Printf)] {
            let error = formatted(&pattern.repeat(100_000), &[number("1")], style, &mut 0).unwrap_err();
            assert!(error.to_string().contains("format makes at most 256 MiB at a time"), "{error}");
        }
    }

    #[test]
    fn fields_are_filled() {
        let values = [text("ab"), number("3.14159"), number("1234567")];
        let shown = |pattern: &str, style| formatted(pattern, &values, style, &mut 0).unwrap().unwrap();
        for (pattern, made) in [
            ("{} {:.2f} {}", "ab 3.14 1234567"),
            ("{0:>5}|{0:<5}|{0:^5}", "   ab|ab   | ab  "),
            ("{2:,}", "1,234,567"),
            ("{{{0}}}", "{ab}"),
            ("%s has %s", "ab has 3.14159"),
            ("%2$s", "3.14159"),
            ("%L|%5I|", "'ab'|\"3.14159\"|"),
        ] {
            assert_eq!(shown(pattern, Style::Format), made);
        }
        assert_eq!(shown("%5s|%-8.3f|%010d", Style::Printf), "   ab|3.142   |0001234567");
        for (value, spec, expected) in [
            (123.456, "{:.2}", "1.2e+02"),
            (100.0, "{:.3}", "100.0"),
            (1_000_000.0, "{:.3}", "1.00e+06"),
            (0.5, "{:.3}", "0.5"),
            (1.5, "{:.10}", "1.500000000"),
            (-1.5, "{:.1}", "-2.0"),
            (1_234_567.0, "{:g}", "1.23457e+06"),
            (0.00001, "{:g}", "1e-05"),
            (100.0, "{:g}", "100"),
        ] {
            let made = formatted(spec, &[number(&value.to_string())], Style::Format, &mut 0).unwrap().unwrap();
            assert_eq!(made, expected, "{spec} of {value}");
        }
        let named = [text("foo"), number("10"), text("bar")];
        let made = formatted("|%*2$s|%1$*2$s|", &named, Style::Format, &mut 0).unwrap().unwrap();
        assert_eq!(made, "|       bar|       foo|");
        let negative = [number("-255")];
        for (pattern, style, expected) in [
            ("{:x} {0:X} {0:o} {0:b}", Style::Format, "-ff -FF -377 -11111111"),
            ("%x", Style::Printf, "ffffffffffffff01"),
        ] {
            assert_eq!(formatted(pattern, &negative, style, &mut 0).unwrap().unwrap(), expected);
        }
        assert!(formatted("{} {} {} {}", &values, Style::Format, &mut 0).is_err());
        assert!(formatted("%99999999s", &values, Style::Printf, &mut 0).is_err());
    }
}
