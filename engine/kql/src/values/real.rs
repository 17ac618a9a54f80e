//! Reals as text in the notation of .NET: the shortest digits that read back the same, `E+15` from 15 digits on, `E-05`
//! below a ten-thousandth, and always recognisable as a real.

/// Returns what `tostring` writes: `1.0`, `0.30000000000000004`, `1E+15`, `NaN`.
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
