//! How machines are named on the command line.

use crate::exit::{Exit, Failure};
use std::net::Ipv6Addr;
use ureq::http::Uri;

/// The port of a name that comes without one.
pub const PORT: u16 = 9746;

/// The URL of a service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpPlace {
    /// As it was named, without what goes without saying.
    pub name: String,
    /// What paths are put behind.
    pub base: String,
}

/// The services that `--host` names, each once. A name alone means `http://NAME:9746`, a URL is used as it is.
pub fn http(names: &[String]) -> anyhow::Result<Vec<HttpPlace>> {
    let mut places: Vec<HttpPlace> = Vec::new();
    for text in names {
        let place = one(text.trim()).map_err(|why| Failure::error(Exit::Usage, format!("--host {text:?}: {why}")))?;
        if !places.iter().any(|other| other.base == place.base) {
            places.push(place);
        }
    }
    Ok(places)
}

/// The service that a name or a URL means.
pub fn one(text: &str) -> Result<HttpPlace, String> {
    if text.is_empty() {
        return Err("expected NAME, NAME:PORT or a URL".into());
    }
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Ok(HttpPlace { name: format!("[{address}]"), base: format!("http://[{address}]:{PORT}") });
    }
    let is_url = text.contains("://");
    let uri = if is_url { text.parse::<Uri>() } else { format!("http://{text}").parse() };
    let uri = uri.map_err(|why| format!("is no machine: {why}"))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) {
        return Err("only http:// and https:// are supported".into());
    }
    let authority = uri.authority().ok_or("names no machine")?;
    if authority.as_str().contains('@') || uri.query().is_some() {
        return Err("a URL without user and without question is needed; a token goes into a file: --token-file".into());
    }
    // What follows the port would otherwise be taken for a part of the number.
    if authority.as_str().ends_with(':') || (authority.port().is_some() && authority.port_u16().is_none()) {
        return Err("the port is no number from 1 to 65535".into());
    }
    if !is_url && uri.path() != "/" {
        return Err("a name has no path: write it as http://… or https://…".into());
    }
    let name = format!("{authority}{}", uri.path().trim_end_matches('/'));
    let base = match (is_url, authority.port()) {
        (true, _) => text.trim_end_matches('/').to_owned(),
        (false, Some(_)) => format!("http://{authority}"),
        (false, None) => format!("http://{authority}:{PORT}"),
    };
    Ok(HttpPlace { name, base })
}

/// The machines that `--ssh` names, each once, as ssh takes them.
pub fn ssh(names: &[String]) -> anyhow::Result<Vec<String>> {
    let mut places: Vec<String> = Vec::new();
    for text in names {
        let name = text.trim();
        // ssh would take it for an option, and an option can run anything.
        if name.is_empty() || name.starts_with('-') || name.contains(|c: char| c.is_whitespace() || c.is_control()) {
            let why = "is no machine: HOST, USER@HOST or a name of your ssh configuration is needed";
            return Err(Failure::error(Exit::Usage, format!("--ssh {text:?}: {why}")));
        }
        if !places.iter().any(|other| other == name) {
            places.push(name.to_owned());
        }
    }
    Ok(places)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn said(names: &[&str]) -> String {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        match http(&names) {
            Ok(places) => places.iter().map(|place| format!("{} = {}\n", place.name, place.base)).collect(),
            Err(error) => format!("{error}\n"),
        }
    }

    #[test]
    fn a_name_is_enough() {
        expect![[r#"
            lab-7 = http://lab-7:9746
            lab-8:80 = http://lab-8:80
            10.0.0.1 = http://10.0.0.1:9746
            [::1] = http://[::1]:9746
            [::2] = http://[::2]:9746
            [::2]:81 = http://[::2]:81
        "#]]
        .assert_eq(&said(&["lab-7", " lab-8:80", "10.0.0.1", "::1", "[::2]", "[::2]:81", "lab-7"]));
    }

    #[test]
    fn a_url_is_used_as_it_is() {
        expect![[r#"
            lab-7 = https://lab-7
            proxy:8443/lab/9 = https://proxy:8443/lab/9
            [::1]:9746 = http://[::1]:9746
        "#]]
        .assert_eq(&said(&["https://lab-7/", "https://proxy:8443/lab/9/", "http://[::1]:9746"]));
    }

    #[test]
    fn what_is_no_machine_is_refused_with_the_reason() {
        let wrong =
            ["", "ftp://lab-7", "http://me:secret@lab-7", "lab-7/x", "lab 7", "lab-7:99999", "lab-7:", "http://"];
        expect![[r#"
            --host "": expected NAME, NAME:PORT or a URL
            --host "ftp://lab-7": only http:// and https:// are supported
            --host "http://me:secret@lab-7": a URL without user and without question is needed; a token goes into a file: --token-file
            --host "lab-7/x": a name has no path: write it as http://… or https://…
            --host "lab 7": is no machine: invalid uri character
            lab-7:99999 = http://lab-7:99999:9746
            --host "lab-7:": the port is no number from 1 to 65535
            --host "http://": is no machine: empty string
        "#]]
        .assert_eq(&wrong.map(|name| said(&[name])).concat());
    }

    #[test]
    fn ssh_is_given_names_and_never_options() {
        let ask = |name: &str| ssh(&[name.to_owned()]).map_err(|error| error.to_string());
        assert_eq!(ask("me@lab-7").unwrap(), ["me@lab-7"]);
        assert_eq!(ask("ssh://lab-7:2222").unwrap(), ["ssh://lab-7:2222"]);
        for wrong in ["-oProxyCommand=x", "", "a b", "a\nb"] {
            assert!(ask(wrong).unwrap_err().contains("is no machine"), "{wrong:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_name_makes_it_fail(name: String) {
            let _ = one(&name);
            if let Ok(places) = ssh(&[name]) {
                assert!(places.iter().all(|place| !place.starts_with('-')));
            }
        }
    }
}
