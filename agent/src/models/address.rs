//! Addresses of model servers: which are this machine's, and how they are shown.

use url::{Host, Url};

/// Whether the address is this machine's loopback, which a proxy cannot reach.
pub(super) fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns the address as clients may see it: without credentials and without a final slash.
pub(super) fn without_credentials(url: &Url) -> String {
    let mut shown = url.clone();
    if shown.set_username("").and_then(|()| shown.set_password(None)).is_err() {
        return url.host_str().unwrap_or_default().to_owned();
    }
    shown.as_str().trim_end_matches('/').to_owned()
}
