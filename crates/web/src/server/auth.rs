//! Which requests are allowed: those with the token, and without one those that name this machine.

use super::peers::Peers;
use crate::api::{HttpRefusal, is_open};
use hyper::header::{self, HeaderMap};
use hyper::{StatusCode, Uri};
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

/// Checks a request by its address, its headers, and its peer.
pub fn authorize(
    token: Option<&str>,
    peers: &Peers,
    (local, peer): (SocketAddr, SocketAddr),
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<(), HttpRefusal> {
    let Some(token) = token else { return means_us(local, uri, headers) };
    if is_open(uri.path()) {
        return Ok(());
    }
    let refuse = |reason: &str| {
        Err(HttpRefusal::new(StatusCode::UNAUTHORIZED, reason).with(header::WWW_AUTHENTICATE, "Bearer realm=\"ttmon\""))
    };
    let Some(given) = headers.get(header::AUTHORIZATION) else {
        return refuse("a token is needed: send it as \"Authorization: Bearer TOKEN\"");
    };
    let given = given.as_bytes();
    let is_bearer = given.get(..7).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"bearer "));
    // First: many clients may have the address of one that guesses.
    if is_bearer && is_same(given[7..].trim_ascii(), token.as_bytes()) {
        return Ok(());
    }
    let now = Instant::now();
    if let Some(left) = peers.has_to_wait(peer.ip(), now) {
        let seconds = left.as_secs() + 1;
        let reason = format!("too many wrong tokens came from {}: try again in {seconds} s", peer.ip());
        let refusal = HttpRefusal::new(StatusCode::TOO_MANY_REQUESTS, reason);
        return Err(refusal.with(header::RETRY_AFTER, &seconds.to_string()));
    }
    peers.has_guessed(peer.ip(), now);
    refuse("that is not the token")
}

/// Compares in constant time, so that the time does not show how much was right.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let mut differs = given.len() ^ token.len();
    for (at, byte) in given.iter().enumerate() {
        let expected = token.get(at % token.len().max(1)).copied().unwrap_or_default();
        differs |= std::hint::black_box(usize::from(byte ^ expected));
    }
    std::hint::black_box(differs) == 0
}

/// A foreign page can have its own host name point here, and a browser lets it read the answers. So a request to a service on the
/// loopback address must name it by an address, or as `localhost`.
fn means_us(local: SocketAddr, uri: &Uri, headers: &HeaderMap) -> Result<(), HttpRefusal> {
    let host = uri.authority().map(|authority| authority.as_str());
    let host = host.or_else(|| headers.get(header::HOST).map(|value| value.to_str().unwrap_or("?")));
    let Some(host) = host.filter(|_| local.ip().to_canonical().is_loopback()) else { return Ok(()) };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_local =
        |name: &str| name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost");
    if is_local(name) || name.parse::<IpAddr>().is_ok() {
        return Ok(());
    }
    let reason = "this service only answers this machine: call it localhost, or start it with a token";
    Err(HttpRefusal::new(StatusCode::MISDIRECTED_REQUEST, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn status(token: Option<&str>, peers: &Peers, local: &str, path: &'static str, field: (&str, &str)) -> u16 {
        let name = header::HeaderName::from_bytes(field.0.as_bytes()).unwrap();
        let headers = HeaderMap::from_iter([(name, HeaderValue::from_str(field.1).unwrap())]);
        let ends = (local.parse().unwrap(), "10.0.0.9:5000".parse().unwrap());
        authorize(token, peers, ends, &Uri::from_static(path), &headers)
            .map_or_else(|refusal| refusal.status.as_u16(), |()| 200)
    }

    #[test]
    fn with_a_token_only_the_page_and_the_state_of_health_are_open() {
        let peers = Peers::default();
        let ask = |path, field| status(Some("s3cret"), &peers, "10.0.0.1:9746", path, field);
        assert_eq!(ask("/api/v1/snapshot", ("authorization", "Bearer s3cret")), 200);
        assert_eq!(ask("/api/v1/snapshot", ("authorization", "bearer  s3cret ")), 200);
        assert_eq!(ask("/healthz", ("host", "x")), 200);
        assert_eq!(ask("/", ("host", "x")), 200);
        assert_eq!(ask("/metrics", ("host", "x")), 401, "no token was tried");
        for wrong in ["Bearer s3cre", "Bearer s3crets", "Basic s3cret", "Bearer", ""] {
            assert_eq!(ask("/metrics", ("authorization", wrong)), 401, "{wrong}");
        }
        assert_eq!(ask("/metrics", ("authorization", "Bearer x")), 429, "five were wrong");
        assert_eq!(ask("/metrics", ("authorization", "Bearer s3cret")), 200, "others may have this address");
        assert_eq!(ask("/healthz", ("authorization", "Bearer x")), 200);
    }

    #[test]
    fn a_name_that_points_here_is_not_enough() {
        let ask = |local, host| status(None, &Peers::default(), local, "/api/v1/snapshot", ("host", host));
        for fine in ["localhost:9746", "127.0.0.1:9746", "[::1]:9746", "127.0.0.2", "x.localhost", "LOCALHOST"] {
            assert_eq!(ask("127.0.0.1:9746", fine), 200, "{fine}");
        }
        for foreign in ["evil.example", "localhost.evil.example:9746", "", "[evil]"] {
            assert_eq!(ask("127.0.0.1:9746", foreign), 421, "{foreign}");
        }
        assert_eq!(ask("10.0.0.1:9746", "ttmon.cluster.example"), 200, "it was told to serve everyone");
    }
}
