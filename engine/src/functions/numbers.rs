//! Numbers by their digits and bits, sizes in bytes, and texts in URLs and patterns, with DuckDB's names.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Int64Array, StringArray};
use arrow::compute::try_binary;
use arrow::datatypes::{DECIMAL128_MAX_PRECISION, DataType, Decimal128Type, Float64Type, Int64Type, UInt64Type};
use arrow::error::ArrowError;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::definition::{Definition, invalid, texts, unfit};
use super::one_nan::{holds_doubles, with_plain_doubles};

/// The function that divides exact numbers as doubles; zero is no divisor.
pub(crate) const QUOTIENT: &str = "quotient";
/// The function that returns the mean of decimals, of their sum and their number.
pub(crate) const DECIMAL_MEAN: &str = "decimal_mean";
/// The function that returns a double without the sign of zero, and one NaN for all; also those within lists and structures.
pub(crate) const PLAIN_DOUBLE: &str = "plain_double";

/// Returns the functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    let text = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: |_| Ok(vec![DataType::Utf8]),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let size = |name, aliases, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases,
        arguments: 1..=1,
        takes: |_| Ok(vec![DataType::Int64]),
        returns: |_| Ok(DataType::Utf8),
        compute,
    };
    let curve = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        takes: |_| Ok(vec![DataType::Float64]),
        returns: |_| Ok(DataType::Float64),
        compute,
    };
    let magnitude = |name, compute: fn(&[ArrayRef], usize) -> Result<ArrayRef>| Definition {
        name,
        aliases: &[],
        arguments: 1..=1,
        // No date and no timestamp is infinite here.
        takes: |types| match types {
            [DataType::Date32 | DataType::Timestamp(_, _)] => Ok(types.to_vec()),
            _ => Ok(vec![DataType::Float64]),
        },
        returns: |_| Ok(DataType::Boolean),
        compute,
    };
    let definitions = [
        Definition {
            name: "bin",
            aliases: &["to_binary"],
            arguments: 1..=1,
            takes: |types| match types {
                // A text has the bits of its bytes.
                [DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View] => Ok(vec![DataType::Utf8]),
                [DataType::UInt64] => Ok(vec![DataType::UInt64]),
                _ => Ok(vec![DataType::Int64]),
            },
            returns: |_| Ok(DataType::Utf8),
            compute: |arrays, _| match arrays[0].data_type() {
                DataType::Utf8 => texts(arrays, |text| text.bytes().map(|byte| format!("{byte:08b}")).collect()),
                DataType::UInt64 => {
                    let numbers = arrays[0].as_primitive::<UInt64Type>().iter();
                    Ok(Arc::new(
                        numbers.map(|number| number.map(|number| format!("{number:b}"))).collect::<StringArray>(),
                    ))
                }
                _ => shown(arrays, |number| format!("{number:b}")),
            },
        },
        size("format_bytes", &["formatreadablesize"], |arrays, _| {
            shown(arrays, |bytes| bytes_text(bytes, 1024, &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]))
        }),
        size("formatreadabledecimalsize", &[], |arrays, _| {
            shown(arrays, |bytes| bytes_text(bytes, 1000, &["kB", "MB", "GB", "TB", "PB", "EB"]))
        }),
        Definition {
            name: "to_base",
            aliases: &[],
            arguments: 2..=3,
            takes: |types| Ok(vec![DataType::Int64; types.len()]),
            returns: |_| Ok(DataType::Utf8),
            compute: bases,
        },
        Definition {
            name: "bit_count",
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                // A negative number has the bits of its own type.
                [narrow @ (DataType::Int8 | DataType::Int16 | DataType::Int32)] => Ok(vec![narrow.clone()]),
                _ => Ok(vec![DataType::Int64]),
            },
            returns: |_| Ok(DataType::Int64),
            compute: |arrays, _| {
                let bits = match arrays[0].data_type() {
                    DataType::Int8 => 8,
                    DataType::Int16 => 16,
                    DataType::Int32 => 32,
                    _ => 64,
                };
                let wide = arrow::compute::cast(&arrays[0], &DataType::Int64)?;
                let numbers = wide.as_primitive::<Int64Type>();
                let counts = numbers.iter().map(|number| number.map(|number| ones(number, bits)));
                Ok(Arc::new(counts.collect::<Int64Array>()))
            },
        },
        Definition {
            name: "signbit",
            aliases: &[],
            arguments: 1..=1,
            takes: |_| Ok(vec![DataType::Float64]),
            returns: |_| Ok(DataType::Boolean),
            compute: |arrays, _| {
                let numbers = arrays[0].as_primitive::<Float64Type>().iter();
                Ok(Arc::new(numbers.map(|number| number.map(f64::is_sign_negative)).collect::<BooleanArray>()))
            },
        },
        magnitude("isfinite", |arrays, rows| Ok(of_magnitude(arrays, rows, f64::is_finite, true))),
        magnitude("isinf", |arrays, rows| Ok(of_magnitude(arrays, rows, f64::is_infinite, false))),
        Definition {
            name: QUOTIENT,
            aliases: &[],
            arguments: 2..=2,
            takes: |_| Ok(vec![DataType::Float64; 2]),
            returns: |_| Ok(DataType::Float64),
            compute: |arrays, _| {
                let (dividends, divisors) =
                    (arrays[0].as_primitive::<Float64Type>(), arrays[1].as_primitive::<Float64Type>());
                let quotient = |dividend: f64, divisor: f64| match divisor == 0.0 {
                    true => Err(ArrowError::DivideByZero),
                    false => Ok(dividend / divisor),
                };
                Ok(Arc::new(try_binary::<_, _, _, Float64Type>(dividends, divisors, quotient)?))
            },
        },
        Definition {
            name: DECIMAL_MEAN,
            aliases: &[],
            arguments: 2..=2,
            takes: |types| {
                let scale = match types.first() {
                    // What was computed of decimals may be doubles since.
                    Some(DataType::Float64) => return Ok(vec![DataType::Float64, DataType::Int64]),
                    Some(
                        DataType::Decimal128(_, scale) | DataType::Decimal64(_, scale) | DataType::Decimal32(_, scale),
                    ) => *scale,
                    // The optimizer asks what it is of no rows.
                    Some(DataType::Null) => 0,
                    _ => return Err(unfit("decimal_mean takes a sum of decimals and their number".into())),
                };
                Ok(vec![DataType::Decimal128(DECIMAL128_MAX_PRECISION, scale), DataType::Int64])
            },
            returns: |_| Ok(DataType::Float64),
            compute: |arrays, _| {
                let counts = arrays[1].as_primitive::<Int64Type>();
                let DataType::Decimal128(_, scale) = arrays[0].data_type() else {
                    let mean = |(sum, count): (Option<f64>, Option<i64>)| match (sum?, count?) {
                        (_, 0) => None,
                        (sum, count) => Some(sum / count as f64),
                    };
                    let sums = arrays[0].as_primitive::<Float64Type>();
                    return Ok(Arc::new(sums.iter().zip(counts).map(mean).collect::<Float64Array>()));
                };
                let (sums, scale) = (arrays[0].as_primitive::<Decimal128Type>(), i32::from(*scale));
                // Divided once, so that 0.6 by 3 is 0.2.
                let mean = |(sum, count): (Option<i128>, Option<i64>)| match (sum?, count?) {
                    (_, 0) => None,
                    (sum, count) => Some(sum as f64 / (count as f64 * 10_f64.powi(scale))),
                };
                Ok(Arc::new(sums.iter().zip(counts).map(mean).collect::<Float64Array>()))
            },
        },
        Definition {
            name: PLAIN_DOUBLE,
            aliases: &[],
            arguments: 1..=1,
            takes: |types| match types {
                [found] if holds_doubles(found) => Ok(types.to_vec()),
                _ => Ok(vec![DataType::Float64]),
            },
            returns: |types| match types {
                [found] if holds_doubles(found) => Ok(found.clone()),
                _ => Ok(DataType::Float64),
            },
            compute: |arrays, _| Ok(with_plain_doubles(&arrays[0])?),
        },
        curve("gamma", |arrays, _| floats(arrays, gamma)),
        curve("lgamma", |arrays, _| floats(arrays, log_gamma)),
        text("url_encode", &[], |arrays, _| texts(arrays, url_encoded)),
        text("url_decode", &[], |arrays, _| texts(arrays, url_decoded)),
        text("regexp_escape", &[], |arrays, _| texts(arrays, escaped)),
        text("parse_filename", &[], |arrays, _| texts(arrays, |path| last_part(path).to_owned())),
        text("parse_dirpath", &[], |arrays, _| {
            texts(arrays, |path| path.rfind(is_separator).and_then(|at| path.get(..at)).unwrap_or_default().to_owned())
        }),
    ];
    definitions.into_iter().map(Definition::into_udf).collect()
}

/// Returns whether numbers have a magnitude of a kind; `times` is the answer for dates and timestamps.
fn of_magnitude(arrays: &[ArrayRef], rows: usize, is_so: fn(f64) -> bool, times: bool) -> ArrayRef {
    match arrays[0].as_primitive_opt::<Float64Type>() {
        Some(numbers) => Arc::new(numbers.iter().map(|number| number.map(is_so)).collect::<BooleanArray>()),
        None => {
            let answers = (0..rows).map(|row| arrays[0].is_valid(row).then_some(times));
            Arc::new(answers.collect::<BooleanArray>())
        }
    }
}

fn shown(arrays: &[ArrayRef], text: impl Fn(i64) -> String) -> Result<ArrayRef> {
    let numbers = arrays[0].as_primitive::<Int64Type>().iter();
    Ok(Arc::new(numbers.map(|number| number.map(&text)).collect::<StringArray>()))
}

fn floats(arrays: &[ArrayRef], compute: impl Fn(f64) -> f64) -> Result<ArrayRef> {
    let numbers = arrays[0].as_primitive::<Float64Type>().iter();
    Ok(Arc::new(numbers.map(|number| number.map(&compute)).collect::<Float64Array>()))
}

fn ones(number: i64, bits: u32) -> i64 {
    let kept = if bits == 64 { number } else { number & ((1 << bits) - 1) };
    i64::from(kept.count_ones())
}

/// One decimal, which is cut and not rounded, as DuckDB has it.
fn bytes_text(bytes: i64, step: u64, units: &[&str]) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    let size = bytes.unsigned_abs();
    if size < step {
        return format!("{sign}{size} byte{}", if size == 1 { "" } else { "s" });
    }
    let mut divisor = u128::from(step);
    let mut unit = 0;
    while u128::from(size) >= divisor * u128::from(step) && unit + 1 < units.len() {
        divisor *= u128::from(step);
        unit += 1;
    }
    let tenths = u128::from(size) * 10 / divisor;
    format!("{sign}{}.{} {}", tenths / 10, tenths % 10, units.get(unit).copied().unwrap_or_default())
}

fn bases(arrays: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    const DIGITS: &[u8; 36] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const LONGEST: i64 = 64;
    let value = |index: usize, row: usize| -> Option<i64> {
        let numbers = arrays.get(index)?.as_primitive::<Int64Type>();
        numbers.is_valid(row).then(|| numbers.value(row))
    };
    let text = |row: usize| -> Result<Option<String>> {
        let (Some(number), Some(base)) = (value(0, row), value(1, row)) else { return Ok(None) };
        let length = match arrays.len() {
            3 => match value(2, row) {
                Some(length) => length,
                None => return Ok(None),
            },
            _ => 0,
        };
        let (Ok(mut rest), 2..=36, 0..=LONGEST) = (u64::try_from(number), base, length) else {
            return Err(invalid(format!(
                "to_base takes a number that is not negative, a base from 2 to 36 and a length up to {LONGEST}, not \
                 {number}, {base} and {length}"
            )));
        };
        let base = base.unsigned_abs();
        let mut digits = Vec::new();
        while rest > 0 || digits.is_empty() {
            let digit = usize::try_from(rest % base).unwrap_or_default();
            digits.push(DIGITS.get(digit).copied().map_or('0', char::from));
            rest /= base;
        }
        while (digits.len() as i64) < length {
            digits.push('0');
        }
        Ok(Some(digits.into_iter().rev().collect()))
    };
    let texts = (0..rows).map(text).collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StringArray::from(texts)))
}

/// Lanczos's approximation, with g = 7 and nine coefficients.
fn log_gamma(x: f64) -> f64 {
    const COEFFICIENTS: [f64; 9] = [
        0.999_999_999_999_809_9,
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    if x.is_infinite() || (x <= 0.0 && x.fract() == 0.0) {
        return f64::INFINITY;
    }
    if x < 0.5 {
        let pi = std::f64::consts::PI;
        return (pi / (pi * x).sin().abs()).ln() - log_gamma(1.0 - x);
    }
    let x = x - 1.0;
    let mut sum = COEFFICIENTS[0];
    for (index, coefficient) in COEFFICIENTS.iter().enumerate().skip(1) {
        sum += coefficient / (x + index as f64);
    }
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

fn gamma(x: f64) -> f64 {
    if x == f64::INFINITY {
        return x;
    }
    if x.fract() == 0.0 {
        if x <= 0.0 {
            return f64::NAN;
        }
        // Factorials are exact.
        if x <= 23.0 {
            return (1..x as u64).map(|factor| factor as f64).product();
        }
    }
    let magnitude = log_gamma(x).exp();
    // Between negative integers the sign alternates.
    if x < 0.0 && (x.floor() as i64).rem_euclid(2) == 1 { -magnitude } else { magnitude }
}

fn url_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => encoded.push(char::from(byte)),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}

/// What is no escape stays, and so does what would not be UTF-8.
fn url_decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let digits = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let digits = digits.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                at += 3;
            }
            None => {
                decoded.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(decoded).unwrap_or_else(|_| text.to_owned())
}

/// As RE2 quotes: everything of ASCII but letters, digits and the underscore.
fn escaped(text: &str) -> String {
    let mut pattern = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() && !character.is_ascii_alphanumeric() && character != '_' {
            pattern.push('\\');
        }
        pattern.push(character);
    }
    pattern
}

fn is_separator(character: char) -> bool {
    matches!(character, '/' | '\\')
}

fn last_part(path: &str) -> &str {
    path.rsplit(is_separator).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_cut() {
        let binary = |bytes| bytes_text(bytes, 1024, &["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]);
        for (bytes, text) in [
            (0, "0 bytes"),
            (1, "1 byte"),
            (16_384, "16.0 KiB"),
            (1_000_000_000, "953.6 MiB"),
            (-700_000, "-683.5 KiB"),
        ] {
            assert_eq!(binary(bytes), text);
        }
        assert_eq!(binary(i64::MAX), "7.9 EiB");
    }

    #[test]
    fn gamma_is_the_factorial_between_integers() {
        for (x, value) in [(5.0, 24.0), (2.5, 1.329_340_388_179_137), (-2.5, -0.945_308_720_482_941_9)] {
            assert!((gamma(x) / value - 1.0).abs() < 1e-12, "{x}");
        }
        assert!((log_gamma(0.3) - 1.095_797_994_818_075_6).abs() < 1e-12);
        assert!(gamma(-1.0).is_nan() && log_gamma(-7.0).is_infinite());
        assert!(gamma(f64::INFINITY).is_infinite() && log_gamma(f64::INFINITY).is_infinite());
    }

    #[test]
    fn urls_go_there_and_back() {
        for text in ["", "a b/ü?%", "%zz", "100%"] {
            assert_eq!(url_decoded(&url_encoded(text)), text);
        }
        assert_eq!(url_decoded("%zz%41"), "%zzA");
    }
}
