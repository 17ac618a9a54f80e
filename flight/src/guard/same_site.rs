//! Protects a server without tokens from web pages. There every caller is an administrator, which is meant for this
//! machine's user and not for the pages in the user's browser: a page may send simple requests anywhere, and its host
//! name may be made to point here.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use http::header::{HOST, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, HeaderName};
use url::{Host, Url};

use super::ClientAddress;
use crate::auth::CLIENT_CERTIFICATE;
use crate::config::Settings;
use crate::error::{ApiError, ErrorCode};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// What to do where a page is refused.
const ALLOWED: &str =
    "allow the origin in http.cors_allowed_origins; on a server without tokens it has to be named, and * names none";

/// Refuses (`forbidden`) requests of a page of another site that CORS does not allow, and, unless remote callers are
/// allowed, requests to a host name that is not this machine's.
pub(crate) fn check(parts: &Parts, settings: &Settings) -> Result<(), ApiError> {
    // Where every caller is an administrator, a page has to be named.
    check_page(parts, settings, false)?;
    let host = host_of(parts);
    let is_local = |host: &str| names_this_machine(host) || (is_unix(parts) && names_socket(host, settings));
    if settings.auth.allow_anonymous_remote || host.is_none_or(is_local) {
        return Ok(());
    }
    Err(refusal(&format!("a request to {}", host.unwrap_or_default()))
        .with_hint("use an address of this machine, or set auth.tokens or auth.allow_anonymous_remote"))
}

/// Refuses (`bad_header`) a request that says of several hosts that it is for them: a proxy before this server may have looked at
/// another one than this does.
pub(crate) fn check_host(headers: &HeaderMap) -> Result<(), ApiError> {
    match headers.get_all(HOST).iter().count() {
        0 | 1 => Ok(()),
        hosts => {
            let message = format!("the request has {hosts} Host headers; it is for one host");
            Err(ApiError::new(ErrorCode::BadHeader, message))
        }
    }
}

/// Refuses (`forbidden`) requests of a page of another site that CORS does not allow.
pub(crate) fn check_origin(parts: &Parts, settings: &Settings) -> Result<(), ApiError> {
    // A browser shows its certificate for whatever page opens a WebSocket: only a page that is named may use it.
    check_page(parts, settings, !parts.headers.contains_key(&CLIENT_CERTIFICATE))
}

/// As [`check_origin`]; `any` says whether `*` allows all pages.
fn check_page(parts: &Parts, settings: &Settings, any: bool) -> Result<(), ApiError> {
    let allowed = &settings.http.cors_allowed_origins;
    let host = host_of(parts);
    if let Some(origin) = text(&parts.headers, &ORIGIN) {
        let known = allowed.iter().any(|known| (any && known == "*") || known.eq_ignore_ascii_case(origin));
        if !known && !is_same(origin, host) {
            return Err(refusal(&format!("a page of {origin}")).with_hint(ALLOWED));
        }
    } else if text(&parts.headers, &FETCH_SITE) == Some("cross-site") {
        return Err(refusal("a page of another site").with_hint(ALLOWED));
    }
    Ok(())
}

fn refusal(what: &str) -> ApiError {
    ApiError::new(ErrorCode::Forbidden, format!("{what} may not use this server"))
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

fn host_of(parts: &Parts) -> Option<&str> {
    parts.uri.authority().map(|authority| authority.as_str()).or_else(|| text(&parts.headers, &HOST))
}

fn is_same(origin: &str, host: Option<&str>) -> bool {
    let authority = origin.split_once("://").map(|(_, authority)| authority);
    authority.is_some() && authority == host
}

/// Whether a host can only be this machine: an address, or `localhost`. Other names may be made to point here.
fn names_this_machine(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let Ok(url) = Url::parse(&format!("http://{host}")) else { return false };
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => true,
        None => false,
    }
}

fn is_unix(parts: &Parts) -> bool {
    parts.extensions.get::<ClientAddress>() == Some(&ClientAddress::Unix)
}

/// Whether a host stands for the socket in the file system, whose clients send its path, escaped in some way, or a word of
/// their own. Names that anybody may register and point here do not.
fn names_socket(host: &str, settings: &Settings) -> bool {
    let path = settings.listen_unix.as_deref().and_then(Path::to_str).unwrap_or_default();
    host.contains(['/', '%', '!']) || !host.contains('.') || host == path.trim_start_matches('/')
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn status(headers: &[(&str, &str)]) -> Result<(), ApiError> {
        let mut request = Request::builder().uri("/v1/query");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut settings = Settings::default();
        settings.http.cors_allowed_origins = vec!["https://app.example".to_owned()];
        check(&request.body(()).unwrap().into_parts().0, &settings)
    }

    #[test]
    fn pages_of_other_sites_are_refused() {
        let host = ("host", "localhost:8080");
        for allowed in [
            vec![],
            vec![host],
            vec![("host", "127.0.0.1:8080")],
            vec![("host", "[::1]:8080")],
            vec![host, ("origin", "http://localhost:8080")],
            vec![host, ("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
            vec![host, ("sec-fetch-site", "same-origin")],
        ] {
            assert!(status(&allowed).is_ok(), "{allowed:?}");
        }
        for refused in [
            vec![("host", "evil.example")],
            vec![("host", "localhost.evil.example:8080")],
            vec![host, ("origin", "http://evil.example")],
            vec![host, ("origin", "null")],
            vec![host, ("origin", "http://localhost:9999")],
            vec![host, ("sec-fetch-site", "cross-site")],
        ] {
            assert_eq!(status(&refused).unwrap_err().code(), ErrorCode::Forbidden, "{refused:?}");
        }
    }

    #[test]
    fn all_pages_are_none_where_every_caller_is_an_administrator() {
        let mut settings = Settings::default();
        settings.http.cors_allowed_origins = vec!["*".to_owned(), "https://app.example".to_owned()];
        let is_allowed = |origin: &str| {
            let request = Request::builder().uri("/v1/query").header("host", "localhost:8080").header("origin", origin);
            let parts = request.body(()).unwrap().into_parts().0;
            (check(&parts, &settings).is_ok(), check_origin(&parts, &settings).is_ok())
        };
        assert_eq!(is_allowed("https://any.example"), (false, true));
        assert_eq!(is_allowed("https://app.example"), (true, true));
    }

    #[test]
    fn a_page_that_is_not_named_uses_no_certificate() {
        let mut settings = Settings::default();
        settings.http.cors_allowed_origins = vec!["*".to_owned(), "https://app.example".to_owned()];
        let is_allowed = |origin: &str, name: Option<&str>| {
            let request = Request::builder().uri("/v1/responses").header("host", "querent.example");
            let request = name.into_iter().fold(request, |request, name| request.header(CLIENT_CERTIFICATE, name));
            let request = request.header("origin", origin).body(()).unwrap();
            check_origin(&request.into_parts().0, &settings).is_ok()
        };
        assert!(is_allowed("https://any.example", None));
        assert!(!is_allowed("https://any.example", Some("ann")));
        assert!(is_allowed("https://app.example", Some("ann")));
        assert!(is_allowed("https://querent.example", Some("ann")));
    }

    #[test]
    fn a_socket_in_the_file_system_is_called_by_other_names_too() {
        let status = |host: &str, origin: Option<&str>| {
            let request = Request::builder().uri("/v1/query").header("host", host).extension(ClientAddress::Unix);
            let request = origin.into_iter().fold(request, |request, origin| request.header("origin", origin));
            check(&request.body(()).unwrap().into_parts().0, &Settings::default()).is_ok()
        };
        for host in
            ["localhost", "unix", "%2Frun%2Fquerent.sock", "run!2Fquerent.sock", "/run/querent.sock", "127.0.0.1"]
        {
            assert!(status(host, None), "{host}");
        }
        assert!(!status("evil.example", None), "a proxy may pass the name on that a page called it by");
        assert!(!status("localhost", Some("http://evil.example")));
    }
}
