//! Functions of IPv6 addresses, `fe80::1` or `fe80::1/64`. An IPv4 address counts as the IPv6 address that it is mapped
//! to.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrow::array::ArrayRef;
use datafusion::error::Result;
use ipnet::Ipv6Net;
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::types::KqlType;
use crate::values;

const LONG: Returns = Returns::Is(KqlType::Long);
const STRING: Returns = Returns::Is(KqlType::String);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("parse_ipv6", "w", STRING, parse_ipv6),
    entry("parse_ipv6_mask", "wi", STRING, parse_ipv6_mask),
    entry("ipv6_compare", "ww?i", LONG, ipv6_compare),
    entry("ipv6_is_match", "ww?i", BOOL, ipv6_is_match),
    entry("ipv6_is_in_range", "ww", BOOL, ipv6_is_in_range),
    entry("ipv6_is_in_any_range", "ww*", BOOL, ipv6_is_in_any_range),
];

/// The bits of an IPv6 address.
const BITS: u8 = 128;
/// The bits of an IPv6 address before those of the IPv4 address that it stands for.
const BITS_BEFORE_IPV4: u8 = 96;

/// Reads `fe80::1`, `fe80::1/64` or an IPv4 address.
fn parse(text: &str) -> Option<Ipv6Net> {
    let (address, prefix) = match text.trim().split_once('/') {
        Some((address, prefix)) => (address, Some(prefix.parse::<u8>().ok()?)),
        None => (text.trim(), None),
    };
    // The prefix of an address in IPv4 notation, even after `::`, counts the bits of the IPv4 address.
    let is_ipv4 = address.contains('.');
    let address = match address.parse::<Ipv4Addr>() {
        Ok(address) => address.to_ipv6_mapped(),
        Err(_) => address.parse::<Ipv6Addr>().ok()?,
    };
    let prefix = match (prefix, is_ipv4) {
        (Some(prefix), true) => prefix.checked_add(BITS_BEFORE_IPV4)?,
        (Some(prefix), false) => prefix,
        (None, _) => BITS,
    };
    Ipv6Net::new(address, prefix).ok()
}

/// Returns the first address that shares `prefix` leading bits with `address`.
fn masked(address: Ipv6Addr, prefix: u8) -> Option<Ipv6Addr> {
    Ipv6Net::new(address, prefix).ok().map(|network| network.network())
}

/// Returns an address as comparisons see it: `::1.2.3.4` is `1.2.3.4`.
fn comparable(address: Ipv6Addr) -> Ipv6Addr {
    const MAPPED: u128 = 0xffff << 32;
    let bits = u128::from(address);
    if bits >> 32 == 0 { Ipv6Addr::from(bits | MAPPED) } else { address }
}

/// Appends all eight groups of an address with all their digits.
fn write(text: &mut String, address: Ipv6Addr) {
    let groups: Vec<String> = address.segments().iter().map(|group| format!("{group:04x}")).collect();
    text.push_str(&groups.join(":"));
}

fn parse_ipv6(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_strings(|row, text| {
        if let Some(network) = parse(strings.get(row)) {
            write(text, network.network());
        }
        Ok(())
    })
}

fn parse_ipv6_mask(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, prefixes) = (arguments.strings(0)?, arguments.longs(1)?);
    arguments.make_strings(|row, text| {
        let prefix = prefixes.get(row).and_then(|prefix| u8::try_from(prefix).ok()).filter(|prefix| *prefix <= BITS);
        let network = parse(strings.get(row)).zip(prefix);
        if let Some(address) =
            network.and_then(|(network, prefix)| masked(network.addr(), prefix.min(network.prefix_len())))
        {
            write(text, address);
        }
        Ok(())
    })
}

/// Compares the networks of a row under the shortest of their prefixes and that of the third argument.
fn compared(arguments: &FunctionArguments) -> Result<impl Fn(usize) -> Option<i64>> {
    let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
    let prefixes = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    Ok(move |row: usize| {
        let (left, right) = (parse(left.get(row))?, parse(right.get(row))?);
        let prefix = match &prefixes {
            Some(prefixes) => u8::try_from(prefixes.get(row)?).ok().filter(|prefix| *prefix <= BITS)?,
            None => BITS,
        };
        let prefix = prefix.min(left.prefix_len()).min(right.prefix_len());
        let first_address = |network: Ipv6Net| masked(comparable(network.addr()), prefix);
        Some(first_address(left)?.cmp(&first_address(right)?) as i64)
    })
}

fn ipv6_compare(arguments: &FunctionArguments) -> Result<ArrayRef> {
    arguments.make_longs(compared(arguments)?)
}

fn ipv6_is_match(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let compared = compared(arguments)?;
    arguments.make_bools(|row| compared(row).map(|order| order == 0))
}

fn ipv6_is_in_range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, ranges) = (arguments.strings(0)?, arguments.strings(1)?);
    arguments.make_bools(|row| Some(parse(ranges.get(row))?.contains(&parse(strings.get(row))?)))
}

fn ipv6_is_in_any_range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let lists = arguments.all_dynamics(1)?;
    arguments.make_bools(|row| {
        let network = parse(strings.get(row))?;
        let is_in =
            |range: &Value| parse(&values::value_to_string(range)).is_some_and(|range| range.contains(&network));
        Some(lists.iter().any(|list| match list.get(row).as_ref() {
            Value::Array(ranges) => ranges.iter().any(is_in),
            single => is_in(single),
        }))
    })
}
