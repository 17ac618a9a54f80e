//! Functions of IPv4 addresses: `1.2.3.4`, or `1.2.3.4/24` for all addresses that share as many leading bits. The
//! result is null for what is not an address.

use std::net::Ipv4Addr;

use arrow::array::ArrayRef;
use datafusion::error::Result;
use ipnet::{Ipv4Net, Ipv4Subnets};
use serde_json::Value;

use super::arguments::FunctionArguments;
use super::signature::{FunctionEntry, Returns, entry};
use crate::interrupt::LoopTurns;
use crate::types::KqlType;
use crate::values;

const LONG: Returns = Returns::Is(KqlType::Long);
const STRING: Returns = Returns::Is(KqlType::String);
const DYNAMIC: Returns = Returns::Is(KqlType::Dynamic);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[FunctionEntry] = &[
    entry("parse_ipv4", "w", LONG, parse_ipv4),
    entry("parse_ipv4_mask", "wi", LONG, parse_ipv4_mask),
    entry("format_ipv4", "x?i", STRING, format_ipv4),
    entry("format_ipv4_mask", "x?i", STRING, format_ipv4_mask),
    entry("ipv4_range_to_cidr_list", "ww", DYNAMIC, ipv4_range_to_cidr_list),
    entry("ipv4_is_private", "w", BOOL, ipv4_is_private),
    entry("geo_info_from_ip_address", "w", DYNAMIC, geo_info),
    entry("ipv4_netmask_suffix", "w", LONG, ipv4_netmask_suffix),
    entry("ipv4_is_in_range", "ww", BOOL, ipv4_is_in_range),
    entry("ipv4_is_in_any_range", "ww*", BOOL, ipv4_is_in_any_range),
    entry("ipv4_compare", "ww?i", LONG, ipv4_compare),
    entry("ipv4_is_match", "ww?i", BOOL, ipv4_is_match),
    entry("has_ipv4", "ww", BOOL, has_any_ipv4),
    entry("has_any_ipv4", "ww*", BOOL, has_any_ipv4),
    entry("has_ipv4_prefix", "ww", BOOL, has_any_ipv4_prefix),
    entry("has_any_ipv4_prefix", "ww*", BOOL, has_any_ipv4_prefix),
];

/// Reads `1.2.3.4` or `1.2.3.4/24`.
fn parse(text: &str) -> Option<Ipv4Net> {
    match text.trim().split_once('/') {
        Some((address, prefix)) => Ipv4Net::new(address.parse().ok()?, prefix.parse().ok()?).ok(),
        None => Some(Ipv4Net::from(text.trim().parse::<Ipv4Addr>().ok()?)),
    }
}

/// Returns the network with a prefix of at most `prefix` bits; `None` past 32.
fn shortened(network: Ipv4Net, prefix: i64) -> Option<Ipv4Net> {
    let prefix = u8::try_from(prefix).ok().filter(|prefix| *prefix <= network.max_prefix_len())?;
    Ipv4Net::new(network.addr(), prefix.min(network.prefix_len())).ok()
}

/// Returns the first address of a network as a number.
fn first_address(network: Ipv4Net) -> i64 {
    u32::from(network.network()).into()
}

fn parse_ipv4(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_longs(|row| parse(strings.get(row)).map(first_address))
}

fn parse_ipv4_mask(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, prefixes) = (arguments.strings(0)?, arguments.longs(1)?);
    arguments.make_longs(|row| shortened(parse(strings.get(row))?, prefixes.get(row)?).map(first_address))
}

fn format_ipv4(arguments: &FunctionArguments) -> Result<ArrayRef> {
    formatted(arguments, |network| network.network().to_string())
}

fn format_ipv4_mask(arguments: &FunctionArguments) -> Result<ArrayRef> {
    formatted(arguments, |network| network.trunc().to_string())
}

/// Writes the network of a string or a number, shortened to the prefix of the second argument.
fn formatted(arguments: &FunctionArguments, write: fn(Ipv4Net) -> String) -> Result<ArrayRef> {
    let is_number = arguments.kql_type(0).is_numeric();
    let (strings, numbers) = (arguments.strings(0)?, arguments.longs(0)?);
    let prefixes = if arguments.len() > 1 { Some(arguments.longs(1)?) } else { None };
    arguments.make_strings(|row, text| {
        let network = match is_number {
            true => numbers
                .get(row)
                .and_then(|number| u32::try_from(number).ok())
                .map(|number| Ipv4Addr::from(number).into()),
            false => parse(strings.get(row)),
        };
        let prefix = prefixes.as_ref().map_or(Some(32), |prefixes| prefixes.get(row));
        if let Some(network) = network.zip(prefix).and_then(|(network, prefix)| shortened(network, prefix)) {
            text.push_str(&write(network));
        }
        Ok(())
    })
}

/// Returns the fewest networks that cover all addresses from the first argument to the second.
fn ipv4_range_to_cidr_list(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (starts, ends) = (arguments.strings(0)?, arguments.strings(1)?);
    arguments.make_dynamics(|row| {
        let Some((start, end)) = parse(starts.get(row)).zip(parse(ends.get(row))) else { return Ok(Value::Null) };
        let networks = Ipv4Subnets::new(start.addr(), end.addr(), 0);
        Ok(networks.map(|network| Value::String(network.to_string())).collect())
    })
}

/// Where an address is, is in no database here: null.
fn geo_info(arguments: &FunctionArguments) -> Result<ArrayRef> {
    arguments.make_dynamics(|_| Ok(Value::Null))
}

fn ipv4_is_private(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_bools(|row| {
        let network = parse(strings.get(row))?;
        Some(network.network().is_private() && network.broadcast().is_private())
    })
}

fn ipv4_netmask_suffix(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    arguments.make_longs(|row| parse(strings.get(row)).map(|network| network.prefix_len().into()))
}

fn ipv4_is_in_range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let (strings, ranges) = (arguments.strings(0)?, arguments.strings(1)?);
    let literal = ranges.constant.then(|| parse(ranges.get(0)));
    arguments.make_bools(|row| {
        let range = literal.unwrap_or_else(|| parse(ranges.get(row)))?;
        Some(range.contains(&parse(strings.get(row))?))
    })
}

/// Returns the strings of a row: those of all arguments from the second on, arrays among them element by element.
fn listed_strings(arguments: &FunctionArguments) -> Result<impl Fn(usize) -> Vec<String>> {
    let lists = arguments.all_dynamics(1)?;
    Ok(move |row: usize| {
        let strings = |list: &super::arguments::DynamicColumn| match list.get(row).as_ref() {
            Value::Array(elements) => elements.iter().map(values::value_to_string).collect::<Vec<_>>(),
            single => vec![values::value_to_string(single)],
        };
        lists.iter().flat_map(strings).collect()
    })
}

fn ipv4_is_in_any_range(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let ranges = listed_strings(arguments)?;
    arguments.make_bools(|row| {
        let network = parse(strings.get(row))?;
        let ranges = ranges(row);
        Some(ranges.iter().filter_map(|range| parse(range)).any(|range| range.contains(&network)))
    })
}

/// Compares the networks of a row under the shortest of their prefixes and that of the third argument.
fn compared(arguments: &FunctionArguments) -> Result<impl Fn(usize) -> Option<i64>> {
    let (left, right) = (arguments.strings(0)?, arguments.strings(1)?);
    let prefixes = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    Ok(move |row: usize| {
        let (left, right) = (parse(left.get(row))?, parse(right.get(row))?);
        let prefix = match &prefixes {
            Some(prefixes) => prefixes.get(row)?.min(32),
            None => 32,
        };
        let prefix = prefix.min(left.prefix_len().into()).min(right.prefix_len().into());
        let (left, right) = (shortened(left, prefix)?, shortened(right, prefix)?);
        Some(left.network().cmp(&right.network()) as i64)
    })
}

fn ipv4_compare(arguments: &FunctionArguments) -> Result<ArrayRef> {
    arguments.make_longs(compared(arguments)?)
}

fn ipv4_is_match(arguments: &FunctionArguments) -> Result<ArrayRef> {
    let compared = compared(arguments)?;
    arguments.make_bools(|row| compared(row).map(|order| order == 0))
}

/// Returns the addresses in a string. No letter, digit or point stands directly before or after an address.
fn addresses(text: &str) -> impl Iterator<Item = &str> {
    let outside = |char: char| !(char.is_alphanumeric() || char == '.');
    text.split(outside).filter(|part| part.parse::<Ipv4Addr>().is_ok())
}

fn has_any_ipv4(arguments: &FunctionArguments) -> Result<ArrayRef> {
    has_address(arguments, |address, wanted| address == wanted)
}

/// A prefix ends with a point or is a whole address.
fn has_any_ipv4_prefix(arguments: &FunctionArguments) -> Result<ArrayRef> {
    has_address(arguments, |address, prefix| {
        address == prefix || (prefix.ends_with('.') && address.starts_with(prefix))
    })
}

/// Whether any address in the string is one of those wanted.
fn has_address(arguments: &FunctionArguments, is_wanted: impl Fn(&str, &str) -> bool) -> Result<ArrayRef> {
    let strings = arguments.strings(0)?;
    let wanted = listed_strings(arguments)?;
    let mut turns = LoopTurns::default();
    arguments.make_total(|row| {
        let wanted = wanted(row);
        let bytes: usize = wanted.iter().map(String::len).sum();
        addresses(strings.get(row))
            .take_while(|_| turns.count_of(bytes).is_ok())
            .any(|address| wanted.iter().any(|wanted| is_wanted(address, wanted)))
    })
}
