//! Reals as text in the notation of .NET: the shortest digits that read back the same, `E+15` from 15 digits on, `E-05`
//! below a ten-thousandth, and always recognisable as a real.

/// Two numbers of so many digits are never the same real.
const DISTINCT_DIGITS: usize = 15;

/// Returns a number with the greatest of the digits that read back the same. Kusto's engine writes those in texts, as its
/// recorded answers show: `tostring(0.1 + 0.2)` is `0.30000000000000007`. A value of its own is the nearest number.
pub(crate) fn with_greatest_digits(mut number: String) -> String {
    let end = number.find(['e', 'E']).unwrap_or(number.len());
    let digits = number.bytes().take(end).filter(u8::is_ascii_digit).count();
    if digits <= DISTINCT_DIGITS {
        return number;
    }
    let Ok(real) = number.parse::<f64>() else { return number };
    // No nine becomes a ten: with that there would be fewer digits.
    while let (Some(before), Some(last @ '0'..='8'), Some(after)) =
        (number.get(..end - 1), number.get(..end).and_then(|head| head.chars().last()), number.get(end..))
    {
        let greater = format!("{before}{}{after}", char::from(last as u8 + 1));
        if greater.parse::<f64>() != Ok(real) {
            break;
        }
        number = greater;
    }
    number
}

/// Returns the text of a real: `1.0`, `0.30000000000000004`, `1E+15`, `NaN`.
pub(crate) fn format_real(real: f64) -> String {
    if real.is_nan() {
        return "NaN".to_owned();
    }
    if real.is_infinite() {
        return if real > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    let scientific = format!("{real:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..15).contains(&exponent) {
        let plain = format!("{real}");
        if plain.contains('.') { plain } else { format!("{plain}.0") }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{digits}E{sign}{:02}", exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_have_the_greatest_digits() {
        for (real, expected) in [
            (0.1 + 0.2, "0.30000000000000007"),
            (40.764323000000005, "40.764323000000008"),
            (40.76422600000001, "40.76422600000001"),
            (-0.1, "-0.1"),
            (1e300, "1E+300"),
            (f64::NAN, "NaN"),
        ] {
            let written = with_greatest_digits(format_real(real));
            assert_eq!(written, expected);
            assert!(real.is_nan() || written.parse() == Ok(real));
        }
    }

    #[test]
    fn reals_are_written_as_dotnet_writes_them() {
        for (real, expected) in [
            (1.0, "1.0"),
            (1500.0, "1500.0"),
            (0.1 + 0.2, "0.30000000000000004"),
            (100_000_000_000.0, "100000000000.0"),
            (1e15, "1E+15"),
            (1e-7, "1E-07"),
            (-2.5, "-2.5"),
            (9.223372036854776e18, "9.223372036854776E+18"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(format_real(real), expected);
        }
    }
}
