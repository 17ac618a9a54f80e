//! Durations and sizes as people write them: `60s`, `1m30s`, `4GiB`. A bare number is seconds, or bytes.
//!
//! Both are read here, since the usual libraries read some settings as something else: `humantime` takes `5M` for five
//! months and refuses `60` and `.5s`, and `bytesize` takes `1.5k` for 1,500 bytes. The tests hold these cases.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration setting.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationSetting(pub Duration);

/// A size setting, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// Returns the size as a `usize`, at most the largest one.
    pub fn to_usize(self) -> usize {
        usize::try_from(self.0).unwrap_or(usize::MAX)
    }
}

impl FromStr for DurationSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a duration; write for example 60, 60s, 500ms, 5m, 1h30m or 7d");
        let mut rest = text.trim();
        if rest.is_empty() {
            return Err(wrong());
        }
        let mut total = Duration::ZERO;
        while !rest.is_empty() {
            let (number, unit, after) = number_and_unit(rest).ok_or_else(wrong)?;
            let seconds = match unit {
                // Only a single number may lack a unit.
                "" if total.is_zero() && after.is_empty() => 1.0,
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3_600.0,
                "d" => 86_400.0,
                _ => return Err(wrong()),
            };
            total += Duration::try_from_secs_f64(number * seconds).map_err(|_| wrong())?;
            rest = after;
        }
        Ok(Self(total))
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || format!("`{text}` is not a size; write for example 1048576, 512MiB or 4GiB");
        let (number, unit, after) = number_and_unit(text.trim()).ok_or_else(wrong)?;
        let unit: u64 = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => 1 << 10,
            "m" | "mib" => 1 << 20,
            "g" | "gib" => 1 << 30,
            "t" | "tib" => 1 << 40,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(wrong()),
        };
        let bytes = number * unit as f64;
        if !after.is_empty() || bytes > (1_u64 << 53) as f64 {
            return Err(wrong());
        }
        Ok(Self(bytes as u64))
    }
}

/// Splits off a leading non-negative number and the letters after it.
fn number_and_unit(text: &str) -> Option<(f64, &str, &str)> {
    let number_end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(number_end);
    let rest = rest.trim_start();
    let unit_end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
    let (unit, after) = rest.split_at(unit_end);
    Some((number.parse().ok()?, unit, after.trim_start()))
}

impl fmt::Display for DurationSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.as_millis();
        if ms.is_multiple_of(1_000) { write!(f, "{}s", ms / 1_000) } else { write!(f, "{ms}ms") }
    }
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
        let whole = units.iter().find(|(_, shift)| self.0 != 0 && self.0.is_multiple_of(1 << shift));
        match whole {
            Some((unit, shift)) => write!(f, "{}{unit}", self.0 >> shift),
            None => write!(f, "{}", self.0),
        }
    }
}

impl Serialize for DurationSetting {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DurationSetting {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText).and_then(|text| text.parse().map_err(D::Error::custom))
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumberOrText).and_then(|text| text.parse().map_err(D::Error::custom))
    }
}

/// Reads an address with a port; `localhost` is this machine's.
pub(super) fn listen_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<SocketAddr, D::Error> {
    let text = String::deserialize(deserializer)?;
    let address = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    address.as_deref().unwrap_or(&text).parse().map_err(|_| {
        D::Error::custom(format!(
            "`{text}` is no address with a port; write for example 127.0.0.1:8080, or 0.0.0.0:8080 for all networks"
        ))
    })
}

/// Reads a number or a string as a string, so that both go through one parser.
struct NumberOrText;

impl Visitor<'_> for NumberOrText {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or a text with a unit such as \"60s\" or \"4GiB\"")
    }

    fn visit_str<E>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_u64<E>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_i64<E>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E>(self, number: f64) -> Result<String, E> {
        Ok(number.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        let cases = [
            ("60", 60_000),
            ("60s", 60_000),
            ("500ms", 500),
            ("1h30m", 5_400_000),
            ("0.5", 500),
            (".5s", 500),
            ("2 m", 120_000),
        ];
        for (text, ms) in cases {
            assert_eq!(text.parse::<DurationSetting>(), Ok(DurationSetting(Duration::from_millis(ms))), "{text}");
        }
        for text in ["", "s", "-1", "1w", "5M", "1s2", "one"] {
            assert!(text.parse::<DurationSetting>().is_err(), "{text}");
        }
        assert_eq!(DurationSetting(Duration::from_millis(1_500)).to_string(), "1500ms");
    }

    #[test]
    fn sizes_are_read_as_people_write_them() {
        let cases = [("1048576", 1 << 20), ("4GiB", 4 << 30), ("1.5k", 1_536), ("2 MB", 2_000_000)];
        for (text, bytes) in cases {
            assert_eq!(text.parse::<ByteSize>(), Ok(ByteSize(bytes)), "{text}");
        }
        for text in ["", "GiB", "-1", "1 parsec", "1GiB2", "9999999TiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert_eq!(ByteSize(4 << 30).to_string(), "4GiB");
    }
}
