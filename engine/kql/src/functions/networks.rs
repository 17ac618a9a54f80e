//! Functions of IPv4 addresses: `1.2.3.4`, or `1.2.3.4/24` for all that share so many bits with it. What is no address
//! gives null.

use std::net::Ipv4Addr;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::super::types::KqlType;
use super::super::values;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

const LONG: Returns = Returns::Is(KqlType::Long);
const TEXT: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("parse_ipv4", "s", LONG, parse_ipv4),
    entry("parse_ipv4_mask", "si", LONG, parse_ipv4_mask),
    entry("format_ipv4", "x?i", TEXT, format_ipv4),
    entry("format_ipv4_mask", "x?i", TEXT, format_ipv4_mask),
    entry("ipv4_range_to_cidr_list", "ss", DYNAMIC, ipv4_range_to_cidr_list),
    entry("ipv4_is_private", "s", BOOL, ipv4_is_private),
    entry("ipv4_netmask_suffix", "s", LONG, ipv4_netmask_suffix),
    entry("ipv4_is_in_range", "ss", BOOL, ipv4_is_in_range),
    entry("ipv4_is_in_any_range", "sx*", BOOL, ipv4_is_in_any_range),
    entry("ipv4_compare", "ss?i", LONG, ipv4_compare),
    entry("ipv4_is_match", "ss?i", BOOL, ipv4_is_match),
    entry("has_ipv4", "ss", BOOL, has_any_ipv4),
    entry("has_any_ipv4", "sx*", BOOL, has_any_ipv4),
    entry("has_ipv4_prefix", "ss", BOOL, has_any_ipv4_prefix),
    entry("has_any_ipv4_prefix", "sx*", BOOL, has_any_ipv4_prefix),
];

/// An address and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: u32,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, bits.parse().ok().filter(|bits| *bits <= 32)?),
            None => (text.trim(), 32),
        };
        let address: Ipv4Addr = address.parse().ok()?;
        Some(Self { address: address.into(), bits })
    }

    fn masked(self) -> u32 {
        masked(self.address, self.bits)
    }

    /// `1.2.3.0/24`.
    fn to_text(self) -> String {
        format!("{}/{}", Ipv4Addr::from(self.masked()), self.bits)
    }

    fn contains(self, other: Self) -> bool {
        masked(other.masked(), self.bits) == self.masked() && self.bits <= other.bits
    }
}

fn masked(address: u32, bits: u32) -> u32 {
    address & u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)
}

fn parse_ipv4(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_longs(|row| Network::parse(texts.get(row)).map(|network| network.masked().into()))
}

fn parse_ipv4_mask(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, bits) = (arguments.texts(0)?, arguments.longs(1)?);
    arguments.make_longs(|row| {
        let network = Network::parse(texts.get(row))?;
        let bits = u32::try_from(bits.get(row)?).ok().filter(|bits| *bits <= 32)?;
        Some(masked(network.address, bits.min(network.bits)).into())
    })
}

fn format_ipv4(arguments: &Arguments) -> Result<ArrayRef> {
    formatted(arguments, |network| Ipv4Addr::from(network.masked()).to_string())
}

fn format_ipv4_mask(arguments: &Arguments) -> Result<ArrayRef> {
    formatted(arguments, Network::to_text)
}

/// The network of a text or a number with no more bits than are asked for.
fn formatted(arguments: &Arguments, write: fn(Network) -> String) -> Result<ArrayRef> {
    let is_number = arguments.kql_type(0).is_numeric();
    let (texts, numbers) = (arguments.texts(0)?, arguments.longs(0)?);
    let bits = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    arguments.make_texts(|row, text| {
        let network = match is_number {
            true => numbers
                .get(row)
                .and_then(|number| u32::try_from(number).ok())
                .map(|address| Network { address, bits: 32 }),
            false => Network::parse(texts.get(row)),
        };
        let Some(network) = network else { return Ok(()) };
        let bits = bits.as_ref().map_or(Some(32), |bits| bits.get(row).and_then(|bits| u32::try_from(bits).ok()));
        if let Some(bits) = bits.filter(|bits| *bits <= 32) {
            text.push_str(&write(Network { bits: bits.min(network.bits), ..network }));
        }
        Ok(())
    })
}

/// The fewest networks that are together what lies between two addresses.
fn ipv4_range_to_cidr_list(arguments: &Arguments) -> Result<ArrayRef> {
    let (starts, ends) = (arguments.texts(0)?, arguments.texts(1)?);
    arguments.make_dynamics(|row| {
        let ends = (Network::parse(starts.get(row)), Network::parse(ends.get(row)));
        let (Some(start), Some(end)) = ends else { return Ok(Value::Null) };
        let (mut next, last) = (u64::from(start.address), u64::from(end.address));
        let mut networks = Vec::new();
        while next <= last {
            // No larger than its place allows, nor than what is left.
            let aligned = next.trailing_zeros().min(32);
            let left = (last - next + 1).ilog2();
            let size = aligned.min(left);
            let address = u32::try_from(next).unwrap_or(u32::MAX);
            networks.push(Network { address, bits: 32 - size }.to_text().into());
            next += 1 << size;
        }
        Ok(Value::Array(networks))
    })
}

fn ipv4_is_private(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_bools(|row| {
        let network = Network::parse(texts.get(row))?;
        let last = network.masked() | !u32::MAX.checked_shl(32 - network.bits).unwrap_or(0);
        Some(Ipv4Addr::from(network.masked()).is_private() && Ipv4Addr::from(last).is_private())
    })
}

fn ipv4_netmask_suffix(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_longs(|row| Network::parse(texts.get(row)).map(|network| network.bits.into()))
}

fn ipv4_is_in_range(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, ranges) = (arguments.texts(0)?, arguments.texts(1)?);
    let literal = ranges.constant.then(|| Network::parse(ranges.get(0)));
    arguments.make_bools(|row| {
        let range = literal.unwrap_or_else(|| Network::parse(ranges.get(row)))?;
        Some(range.contains(Network::parse(texts.get(row))?))
    })
}

/// The texts of all arguments from the second on, and of arrays among them.
fn listed(arguments: &Arguments) -> Result<impl Fn(usize) -> Vec<String>> {
    let lists = arguments.all_dynamics(1)?;
    Ok(move |row: usize| {
        let texts = |list: &super::arguments::Dynamics| match list.get(row).as_ref() {
            Value::Array(elements) => elements.iter().map(values::to_text).collect::<Vec<_>>(),
            single => vec![values::to_text(single)],
        };
        lists.iter().flat_map(texts).collect()
    })
}

fn ipv4_is_in_any_range(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    let ranges = listed(arguments)?;
    arguments.make_bools(|row| {
        let network = Network::parse(texts.get(row))?;
        let ranges = ranges(row);
        Some(ranges.iter().filter_map(|range| Network::parse(range)).any(|range| range.contains(network)))
    })
}

fn compared(arguments: &Arguments) -> Result<impl Fn(usize) -> Option<i64>> {
    let (left, right) = (arguments.texts(0)?, arguments.texts(1)?);
    let bits = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    Ok(move |row: usize| {
        let (left, right) = (Network::parse(left.get(row))?, Network::parse(right.get(row))?);
        let most = match &bits {
            Some(bits) => u32::try_from(bits.get(row)?).ok()?,
            None => 32,
        };
        let bits = most.min(left.bits).min(right.bits);
        Some(masked(left.address, bits).cmp(&masked(right.address, bits)) as i64)
    })
}

fn ipv4_compare(arguments: &Arguments) -> Result<ArrayRef> {
    arguments.make_longs(compared(arguments)?)
}

fn ipv4_is_match(arguments: &Arguments) -> Result<ArrayRef> {
    let compared = compared(arguments)?;
    arguments.make_bools(|row| compared(row).map(|order| order == 0))
}

/// The addresses in a text: they stand where no letter, digit or point is on either side.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let outside = |char: char| !(char.is_alphanumeric() || char == '.');
    text.split(outside).filter(|part| part.parse::<Ipv4Addr>().is_ok())
}

fn has_any_ipv4(arguments: &Arguments) -> Result<ArrayRef> {
    has_address(arguments, |address, wanted| address == wanted)
}

/// A prefix ends with a point, or is a whole address.
fn has_any_ipv4_prefix(arguments: &Arguments) -> Result<ArrayRef> {
    has_address(arguments, |address, prefix| {
        address == prefix || (prefix.ends_with('.') && address.starts_with(prefix))
    })
}

/// Whether any address in the text is one of those wanted.
fn has_address(arguments: &Arguments, is_wanted: impl Fn(&str, &str) -> bool) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    let wanted = listed(arguments)?;
    arguments.make_total(|row| {
        let wanted = wanted(row);
        addresses(texts.get(row)).any(|address| wanted.iter().any(|wanted| is_wanted(address, wanted)))
    })
}
