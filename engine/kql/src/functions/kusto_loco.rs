//! Functions that KustoLoco, an open-source engine for KQL (<https://github.com/NeilMacMullen/kusto-loco>), has and
//! Kusto does not, for queries written for it: padding and comparing strings, and formatting values as .NET does.

use arrow::array::ArrayRef;
use datafusion::error::Result;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values::{MAX_DATETIME_TICKS, format_real};

const STRING: Returns = Returns::Is(KqlType::String);
const LONG: Returns = Returns::Is(KqlType::Long);
const REAL: Returns = Returns::Is(KqlType::Real);

/// The greatest width of a padded string, and the most digits of a formatted number.
const MAX_WIDTH: usize = 1 << 16;
const MAX_DIGITS: usize = 64;
/// The greatest product of two lengths that are compared, which takes as many steps.
const MAX_COMPARISONS: usize = 100_000_000;

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("padleft", "si?s", STRING, |arguments| padded(arguments, |text, blanks| blanks + text)),
    entry("padright", "si?s", STRING, |arguments| padded(arguments, |text, blanks| text.to_owned() + &blanks)),
    entry("levenshtein", "ss", LONG, |arguments| {
        check_lengths(arguments)?;
        let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
        arguments.make_longs(|row| i64::try_from(strsim::levenshtein(left.get(row), right.get(row))).ok())
    }),
    entry("string_similarity", "ss", REAL, |arguments| {
        check_lengths(arguments)?;
        let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
        arguments.make_reals(|row| Some(strsim::normalized_levenshtein(left.get(row), right.get(row))))
    }),
    entry("parsehex", "s", LONG, |arguments| {
        let strings = arguments.strings(0)?;
        arguments.make_longs(|row| parsed_hexadecimal(strings.get(row)))
    }),
    entry("format", "xs", STRING, format),
    entry("format_interp", "sx*", STRING, format_interp),
    entry("net_time", "x", Returns::Is(KqlType::DateTime), |arguments| {
        let ticks = arguments.longs(0)?;
        arguments.make_longs(|row| ticks.get(row).filter(|ticks| (0..=MAX_DATETIME_TICKS).contains(ticks)))
    }),
];

fn padded(arguments: &FunctionArguments, join: fn(&str, String) -> String) -> Result<ArrayRef> {
    let (strings, widths) = (arguments.strings(0)?, arguments.longs(1)?);
    let fillers = if arguments.len() > 2 { Some(arguments.strings(2)?) } else { None };
    arguments.make_strings(|row, padded| {
        let text = strings.get(row);
        let width = usize::try_from(widths.get(row).unwrap_or(0)).unwrap_or(0).min(MAX_WIDTH);
        let filler = fillers.as_ref().and_then(|fillers| fillers.get(row).chars().next()).unwrap_or(' ');
        let missing = width.saturating_sub(text.chars().count());
        padded.push_str(&join(text, std::iter::repeat_n(filler, missing).collect()));
        Ok(())
    })
}

fn check_lengths(arguments: &FunctionArguments) -> Result<()> {
    let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
    let is_long = |row: usize| left.get(row).len().saturating_mul(right.get(row).len()) > MAX_COMPARISONS;
    if (0..arguments.rows).any(is_long) { Err(arguments.error("the texts are too long to compare")) } else { Ok(()) }
}

fn parsed_hexadecimal(text: &str) -> Option<i64> {
    let text = text.trim();
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| is_plain).map(u64::cast_signed)
}

/// A value as a string and, if it is a number, as one.
struct Formatted<'a> {
    text: &'a str,
    whole: Option<i64>,
    real: Option<f64>,
}

impl Formatted<'_> {
    /// Formats the value by a numeric format of .NET: `x` is hexadecimal, `d` decimal, `f` and `n` have digits after
    /// the point.
    fn format_with(&self, format: &str) -> Option<String> {
        let Some(letter) = format.chars().next() else { return Some(self.text.to_owned()) };
        let digits = match format.get(letter.len_utf8()..)? {
            "" => None,
            digits => Some(digits.parse::<usize>().ok().filter(|digits| *digits <= MAX_DIGITS)?),
        };
        let width = digits.unwrap_or(0);
        match letter {
            'x' => self.whole.map(|whole| format!("{whole:0>width$x}")),
            'X' => self.whole.map(|whole| format!("{whole:0>width$X}")),
            'd' | 'D' => self.whole.map(|whole| {
                let sign = if whole < 0 { "-" } else { "" };
                format!("{sign}{:0>width$}", whole.unsigned_abs())
            }),
            'f' | 'F' => self.real.map(|real| fixed(real, digits.unwrap_or(2))),
            'n' | 'N' => self.real.map(|real| grouped(&fixed(real, digits.unwrap_or(2)))),
            _ => None,
        }
    }
}

fn fixed(real: f64, digits: usize) -> String {
    if real.is_finite() { format!("{real:.digits$}") } else { format_real(real) }
}

/// Inserts commas between thousands.
fn grouped(number: &str) -> String {
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let whole = digits.split('.').next().unwrap_or(digits);
    let mut grouped = sign.to_owned();
    for (index, char) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) && char.is_ascii_digit() {
            grouped.push(',');
        }
        grouped.push(char);
    }
    grouped + digits.get(whole.len()..).unwrap_or_default()
}

/// Returns a function that formats the value of an argument, counted from `first`, in a row.
fn formattables(arguments: &FunctionArguments, first: usize) -> Result<impl Fn(usize, usize, &str) -> Option<String>> {
    let mut columns = Vec::with_capacity(arguments.len());
    for index in first..arguments.len() {
        let is_number = arguments.kql_type(index).is_numeric();
        columns.push((arguments.strings(index)?, arguments.longs(index)?, arguments.reals(index)?, is_number));
    }
    Ok(move |column: usize, row: usize, format: &str| {
        let (strings, longs, reals, is_number) = columns.get(column)?;
        let (whole, real) = if *is_number { (longs.get(row), reals.get(row)) } else { (None, None) };
        Formatted { text: strings.get(row), whole, real }.format_with(format)
    })
}

const NO_FORMAT: &str = "not a format: x, d, f and n for numbers are known here";

fn format(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let formats = arguments.strings(1)?;
    let formatted = formattables(arguments, 0)?;
    arguments.make_strings(|row, text| {
        text.push_str(&formatted(0, row, formats.get(row)).ok_or_else(|| arguments.error(NO_FORMAT))?);
        Ok(())
    })
}

/// `format_interp("{0} is {1:x}", a, b)`. A doubled brace stands for one.
fn format_interp(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let templates = arguments.strings(0)?;
    let formatted = formattables(arguments, 1)?;
    arguments.make_strings(|row, text| {
        let mut rest = templates.get(row);
        while let Some(at) = rest.find(['{', '}']) {
            let (before, brace) = rest.split_at(at);
            text.push_str(before);
            if let Some(after) = brace.strip_prefix("{{").or_else(|| brace.strip_prefix("}}")) {
                text.extend(brace.chars().next());
                rest = after;
                continue;
            }
            let place = brace.strip_prefix('{').and_then(|brace| brace.split_once('}'));
            let found = place.and_then(|(place, after)| {
                let (number, format) = place.split_once(':').unwrap_or((place, ""));
                Some((formatted(number.trim().parse().ok()?, row, format)?, after))
            });
            let (value, after) = found.ok_or_else(|| arguments.error(NO_FORMAT))?;
            text.push_str(&value);
            arguments.bounded(text.len())?;
            rest = after;
        }
        text.push_str(rest);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_as_dotnet_does() {
        let number = |whole: i64| Formatted { text: "n", whole: Some(whole), real: Some(whole as f64 + 0.5) };
        for (whole, format, expected) in [
            (1234, "x", Some("4d2")),
            (1234, "X8", Some("000004D2")),
            (-5, "d3", Some("-005")),
            (1_234_567, "n1", Some("1,234,567.5")),
            (-123, "n0", Some("-122")),
            (12, "f3", Some("12.500")),
            (12, "", Some("n")),
            (12, "q", None),
            (12, "x99", None),
        ] {
            assert_eq!(number(whole).format_with(format).as_deref(), expected, "{whole} {format}");
        }
        assert_eq!(parsed_hexadecimal("0xA0"), Some(160));
        assert_eq!(parsed_hexadecimal("-1"), None);
    }
}
