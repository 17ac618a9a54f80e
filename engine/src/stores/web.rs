//! Keeps a URL in a statement from reaching into the server's own network.
//!
//! Addresses are checked when a name is resolved for the connection that is then made, so that a name cannot mean one
//! address to a check and another to the request. Redirects stay on the host they come from.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;

/// The most redirects that are followed.
const REDIRECTS: usize = 5;

/// Why a request was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestRefusal {
    #[error("its host is not of the public Internet; name the host in query.external_urls to read from it")]
    Private,
    #[error("it redirects to another host, which is not followed")]
    Elsewhere,
}

/// Resolves names to addresses of the public Internet only.
#[derive(Debug)]
pub(super) struct PublicOnly;

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<SocketAddr> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(RequestRefusal::Private.into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// Returns the policy that follows a few redirects within one host.
pub(super) fn same_host() -> Policy {
    Policy::custom(|attempt| {
        let from = attempt.previous().last();
        let stays = from.is_some_and(|from| {
            let to = attempt.url();
            from.host_str() == to.host_str()
                && from.scheme() == to.scheme()
                && from.port_or_known_default() == to.port_or_known_default()
        });
        match stays && attempt.previous().len() <= REDIRECTS {
            true => attempt.follow(),
            false => attempt.error(RequestRefusal::Elsewhere),
        }
    })
}

/// Returns whether an address is one of the public Internet: not this machine, not its network, not a cloud's metadata service.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            if let Some(mapped) = address.to_ipv4_mapped() {
                return is_public_v4(mapped);
            }
            let parts = address.segments();
            let last = Ipv4Addr::from((u32::from(parts[6]) << 16) | u32::from(parts[7]));
            match parts {
                // NAT64 and 6to4 carry another address.
                [0x64, 0xff9b, 0, 0, 0, 0, ..] => is_public_v4(last),
                [0x2002, high, low, ..] => is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low))),
                [0x2001, 0xdb8, ..] | [0x64, 0xff9b, 1, ..] => false,
                // Global unicast; the rest is loopback, local, multicast or not given out.
                [first, ..] => first & 0xe000 == 0x2000,
            }
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [first, second, third, _] = address.octets();
    let reserved = matches!(
        (first, second, third),
        (0 | 240..=255, ..) | (100, 64..=127, _) | (192, 0, 0) | (192, 88, 99) | (198, 18 | 19, _)
    );
    !(reserved
        || address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_internet_are_public() {
        for public in ["1.1.1.1", "93.184.216.34", "2606:4700::1111", "64:ff9b::101:101", "2002:101:101::"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for private in [
            "127.0.0.1",
            "0.0.0.0",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "192.0.0.192",
            "::1",
            "::",
            "fe80::1",
            "fd00:ec2::254",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
            "2001:db8::1",
            "::127.0.0.1",
        ] {
            assert!(!is_public(private.parse().unwrap()), "{private}");
        }
    }
}
