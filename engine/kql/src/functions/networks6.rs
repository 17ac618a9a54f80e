//! Functions of IPv6 addresses, `fe80::1` or `fe80::1/64`. An IPv4 address is the IPv6 one that stands for it.

use std::net::{Ipv4Addr, Ipv6Addr};

use arrow::array::ArrayRef;
use datafusion::error::Result;
use serde_json::Value;

use super::super::types::KqlType;
use super::super::values;
use super::arguments::Arguments;
use super::signature::{Entry, Returns, entry};

const LONG: Returns = Returns::Is(KqlType::Long);
const TEXT: Returns = Returns::Is(KqlType::String);
const BOOL: Returns = Returns::Is(KqlType::Bool);

pub(super) const FUNCTIONS: &[Entry] = &[
    entry("parse_ipv6", "s", TEXT, parse_ipv6),
    entry("parse_ipv6_mask", "si", TEXT, parse_ipv6_mask),
    entry("ipv6_compare", "ss?i", LONG, ipv6_compare),
    entry("ipv6_is_match", "ss?i", BOOL, ipv6_is_match),
    entry("ipv6_is_in_range", "ss", BOOL, ipv6_is_in_range),
    entry("ipv6_is_in_any_range", "sx*", BOOL, ipv6_is_in_any_range),
];

/// Bits of an address, and those of it before the ones of an IPv4 address.
const BITS: u32 = 128;
const BITS_BEFORE_IPV4: u32 = 96;

/// An address and how many of its bits count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: u128,
    bits: u32,
}

impl Network {
    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.trim().split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u32>().ok()?)),
            None => (text.trim(), None),
        };
        // Written as an IPv4 one, even after `::`, an address has that one's bits.
        let is_ipv4 = address.contains('.');
        let address = match address.parse::<Ipv4Addr>() {
            Ok(address) => address.to_ipv6_mapped(),
            Err(_) => address.parse::<Ipv6Addr>().ok()?,
        };
        let bits = match (bits, is_ipv4) {
            (Some(bits), true) => bits.checked_add(BITS_BEFORE_IPV4)?,
            (Some(bits), false) => bits,
            (None, _) => BITS,
        };
        (bits <= BITS).then_some(Self { address: address.into(), bits })
    }

    /// As it is compared: `::1.2.3.4` is `1.2.3.4`.
    fn compared(self, bits: u32) -> u128 {
        const MAPPED: u128 = 0xffff << 32;
        let address = if self.address >> 32 == 0 { self.address | MAPPED } else { self.address };
        masked(address, bits)
    }

    fn contains(self, other: Self) -> bool {
        self.bits <= other.bits && masked(self.address, self.bits) == masked(other.address, self.bits)
    }
}

fn masked(address: u128, bits: u32) -> u128 {
    address & u128::MAX.checked_shl(BITS - bits.min(BITS)).unwrap_or(0)
}

fn write(text: &mut String, address: u128) {
    let parts: Vec<String> = Ipv6Addr::from(address).segments().iter().map(|part| format!("{part:04x}")).collect();
    text.push_str(&parts.join(":"));
}

fn parse_ipv6(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    arguments.make_texts(|row, text| {
        if let Some(network) = Network::parse(texts.get(row)) {
            write(text, masked(network.address, network.bits));
        }
        Ok(())
    })
}

fn parse_ipv6_mask(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, bits) = (arguments.texts(0)?, arguments.longs(1)?);
    arguments.make_texts(|row, text| {
        let bits = bits.get(row).and_then(|bits| u32::try_from(bits).ok()).filter(|bits| *bits <= BITS);
        if let Some((network, bits)) = Network::parse(texts.get(row)).zip(bits) {
            write(text, masked(network.address, bits.min(network.bits)));
        }
        Ok(())
    })
}

fn order(arguments: &Arguments) -> Result<impl Fn(usize) -> Option<i64>> {
    let (left, right) = (arguments.texts(0)?, arguments.texts(1)?);
    let bits = if arguments.len() > 2 { Some(arguments.longs(2)?) } else { None };
    Ok(move |row: usize| {
        let (left, right) = (Network::parse(left.get(row))?, Network::parse(right.get(row))?);
        let most = match &bits {
            Some(bits) => u32::try_from(bits.get(row)?).ok().filter(|bits| *bits <= BITS)?,
            None => BITS,
        };
        let bits = most.min(left.bits).min(right.bits);
        Some(left.compared(bits).cmp(&right.compared(bits)) as i64)
    })
}

fn ipv6_compare(arguments: &Arguments) -> Result<ArrayRef> {
    arguments.make_longs(order(arguments)?)
}

fn ipv6_is_match(arguments: &Arguments) -> Result<ArrayRef> {
    let order = order(arguments)?;
    arguments.make_bools(|row| order(row).map(|order| order == 0))
}

fn ipv6_is_in_range(arguments: &Arguments) -> Result<ArrayRef> {
    let (texts, ranges) = (arguments.texts(0)?, arguments.texts(1)?);
    arguments.make_bools(|row| Some(Network::parse(ranges.get(row))?.contains(Network::parse(texts.get(row))?)))
}

fn ipv6_is_in_any_range(arguments: &Arguments) -> Result<ArrayRef> {
    let texts = arguments.texts(0)?;
    let lists = arguments.all_dynamics(1)?;
    arguments.make_bools(|row| {
        let network = Network::parse(texts.get(row))?;
        let is_in =
            |range: &Value| Network::parse(&values::to_text(range)).is_some_and(|range| range.contains(network));
        Some(lists.iter().any(|list| match list.get(row).as_ref() {
            Value::Array(ranges) => ranges.iter().any(is_in),
            single => is_in(single),
        }))
    })
}
