//! The proxy for a URL, from the environment, by curl's rules.
//!
//! `http_proxy` is for http URLs, in lower case only: a CGI program has the header `Proxy` of a stranger in HTTP_PROXY. `https_proxy` is for
//! https URLs, `all_proxy` for what has no variable of its own, and `no_proxy` names the exceptions; capitals are read where lower case is
//! not set. Unlike curl, this machine itself is never asked through a proxy.

use anyhow::{Context, bail};
use std::fmt;
use std::net::IpAddr;
use ureq::http::Uri;
use ureq::{Proxy, ProxyProtocol};

/// A proxy, and the variable that names it. Errors carry it as their context.
#[derive(Debug, Clone)]
pub struct NamedProxy {
    /// Address and credentials.
    pub proxy: Proxy,
    variable: &'static str,
}

impl fmt::Display for NamedProxy {
    /// Without user and password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the proxy {}:{} ({})", self.proxy.host(), self.proxy.port(), self.variable)
    }
}

impl NamedProxy {
    /// The proxy for a URL. None where it is asked directly.
    pub fn of_environment(url: &str) -> anyhow::Result<Option<NamedProxy>> {
        NamedProxy::choose(url, |name| std::env::var(name).ok())
    }

    fn choose(url: &str, value: impl Fn(&str) -> Option<String>) -> anyhow::Result<Option<NamedProxy>> {
        let value = |name: &'static str| value(name).filter(|value| !value.is_empty()).map(|value| (name, value));
        // What is wrong with the URL is said where it is asked.
        let Ok(uri) = url.parse::<Uri>() else { return Ok(None) };
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
        let own: &[&'static str] = match uri.scheme_str() {
            Some("https") => &["https_proxy", "HTTPS_PROXY"],
            _ => &["http_proxy"],
        };
        let named = own.iter().chain(&["all_proxy", "ALL_PROXY"]).find_map(|name| value(name));
        let Some((variable, address)) = named else { return Ok(None) };
        let excepted = value("no_proxy").or_else(|| value("NO_PROXY")).map(|(_, list)| list).unwrap_or_default();
        if is_this_machine(&host) || excepted.split([',', ' ']).any(|entry| covers(entry.trim(), &host)) {
            return Ok(None);
        }
        let proxy = Proxy::new(&address).with_context(|| format!("{variable} names no proxy"))?;
        if !matches!(proxy.protocol(), ProxyProtocol::Http | ProxyProtocol::Https) {
            bail!("{variable} names a SOCKS proxy, which is not supported: name an HTTP proxy");
        }
        Ok(Some(NamedProxy { proxy, variable }))
    }
}

fn is_this_machine(host: &str) -> bool {
    host == "localhost"
        || host.ends_with(".localhost")
        || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

/// Whether an entry of `no_proxy` is a host's name, its domain, its address or its network.
fn covers(entry: &str, host: &str) -> bool {
    let entry = entry.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    if let Ok(address) = host.parse::<IpAddr>() {
        let (network, bits) = entry.split_once('/').unwrap_or((&entry, "128"));
        let shares = |network: IpAddr, bits: u32| match (network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(32 - bits.min(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                (network.to_bits() ^ address.to_bits()).checked_shr(128 - bits.min(128)).unwrap_or(0) == 0
            }
            _ => false,
        };
        return entry == "*"
            || matches!((network.parse(), bits.parse()), (Ok(network), Ok(bits)) if shares(network, bits));
    }
    let domain = entry.trim_start_matches('.');
    let is_below = |name: &str| name.ends_with('.') && !domain.is_empty();
    entry == "*" || host.strip_suffix(domain).is_some_and(|name| is_below(name) || (name.is_empty() && host == domain))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(url: &str, variables: &[(&str, &str)]) -> String {
        let value = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        match NamedProxy::choose(url, value) {
            Ok(proxy) => proxy.map_or("directly".into(), |proxy| proxy.to_string()),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn each_scheme_has_its_variable_as_in_curl() {
        let all = [("http_proxy", "a:1"), ("HTTPS_PROXY", "http://me:secret@b:2"), ("ALL_PROXY", "c:3")];
        assert_eq!(chosen("http://lab-7:9746", &all), "the proxy a:1 (http_proxy)");
        assert_eq!(chosen("https://lab-7", &all), "the proxy b:2 (HTTPS_PROXY)");
        assert_eq!(chosen("http://lab-7", &all[1..]), "the proxy c:3 (ALL_PROXY)");
        assert_eq!(chosen("http://lab-7", &all[1..2]), "directly");
        assert_eq!(chosen("http://lab-7", &[("HTTP_PROXY", "a:1")]), "directly");
        assert_eq!(
            chosen("https://lab-7", &[("https_proxy", ""), ("HTTPS_PROXY", "b:2")]),
            "the proxy b:2 (HTTPS_PROXY)"
        );
    }

    #[test]
    fn this_machine_is_never_asked_through_a_proxy() {
        for host in ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.1", "127.8.9.1", "[::1]"] {
            assert_eq!(chosen(&format!("http://{host}:9746/x"), &[("http_proxy", "a:1")]), "directly", "{host}");
        }
    }

    #[test]
    fn no_proxy_names_hosts_domains_addresses_and_networks() {
        let asked = |host: &str, list: &str| {
            chosen(&format!("http://{host}/"), &[("all_proxy", "a:1"), ("no_proxy", list)]) == "directly"
        };
        for list in ["*", "lab-7.example.org", "x, example.org", ".example.org", "x EXAMPLE.org."] {
            assert!(asked("lab-7.example.org", list), "{list}");
        }
        for list in ["lab-8.example.org", "ample.org", "lab-7", "x", ",", "10.0.0.0/8"] {
            assert!(!asked("lab-7.example.org", list), "{list}");
        }
        assert!(asked("10.1.2.3", "10.0.0.0/8") && asked("10.1.2.3", "10.1.2.3") && asked("10.1.2.3", "0.0.0.0/0"));
        assert!(!asked("10.1.2.3", "11.0.0.0/8") && !asked("10.1.2.3", "1.2.3") && !asked("10.1.2.3", "fd00::/8"));
        assert!(asked("[fd00::1]", "fd00::/8") && asked("[fd00::1]", "[fd00::1]") && !asked("[fd00::1]", "fe00::/8"));
        assert!(chosen("http://b/", &[("all_proxy", "a:1"), ("NO_PROXY", "b")]) == "directly");
    }

    #[test]
    fn what_is_no_proxy_is_named_by_its_variable() {
        assert_eq!(chosen("https://b", &[("https_proxy", "ht tp")]), "https_proxy names no proxy");
        let socks = "all_proxy names a SOCKS proxy, which is not supported: name an HTTP proxy";
        assert_eq!(chosen("https://b", &[("all_proxy", "socks5h://a:1")]), socks);
    }
}
