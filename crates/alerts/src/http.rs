//! Asks other machines over HTTP: services of ttmon, Prometheus, receivers of alerts. Blocks, so call it from a thread of its own.

use crate::proxy::NamedProxy;
use crate::tls;
use anyhow::{Context, bail};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use ureq::http::Response;
use ureq::tls::{Certificate, TlsConfig};
use ureq::unversioned::resolver::DefaultResolver;
use ureq::{Body, RequestBuilder};

/// Settings of an HTTP client.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// For the whole exchange, from the look-up of the name to the last byte.
    pub timeout: Duration,
    /// The certificates to trust, instead of the system's.
    pub ca: Option<PathBuf>,
    /// Sent as a bearer token; the first line of the file.
    pub token_file: Option<PathBuf>,
    /// A certificate and its key, for servers that ask who we are.
    pub client: Option<(PathBuf, PathBuf)>,
}

impl Default for HttpOptions {
    fn default() -> HttpOptions {
        HttpOptions { timeout: Duration::from_secs(5), ca: None, token_file: None, client: None }
    }
}

/// An HTTP client. Connections stay open from one request to the next.
#[derive(Debug, Clone)]
pub struct Http {
    agent: ureq::Agent,
    token: Option<String>,
}

/// A longer answer is none.
const LONGEST: u64 = 256 << 20;

impl Http {
    /// Reads the token and the certificates.
    pub fn new(options: &HttpOptions) -> anyhow::Result<Http> {
        let token = options.token_file.as_deref().map(token).transpose()?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(options.timeout))
            .http_status_as_error(false)
            // Each request has its own, by its URL.
            .proxy(None)
            // A token is for the named server, and for no server that it redirects to.
            .max_redirects(if token.is_some() { 0 } else { 3 })
            .user_agent(concat!("ttmon/", env!("CARGO_PKG_VERSION")))
            // A connection stays open for each of many machines, and none of them is large.
            .max_idle_connections(2000)
            .input_buffer_size(16 << 10)
            .output_buffer_size(4 << 10);
        let client = options.client.as_ref().map(|(cert, key)| tls::ClientIdentity::read(cert, key)).transpose()?;
        let agent = match (&options.ca, client) {
            (Some(file), client) => {
                let connector = tls::connector(certificates(file)?, client, provider)
                    .with_context(|| format!("{}: cannot be trusted", file.display()))?;
                ureq::Agent::with_parts(config.build(), connector, DefaultResolver::default())
            }
            (None, client @ Some(_)) => {
                let system = rustls_native_certs::load_native_certs().certs;
                let connector = tls::connector(system, client, provider)?;
                ureq::Agent::with_parts(config.build(), connector, DefaultResolver::default())
            }
            (None, None) => {
                let system = rustls_native_certs::load_native_certs().certs;
                let roots: Vec<Certificate> = system.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
                let tls = TlsConfig::builder().root_certs(roots.into()).unversioned_rustls_crypto_provider(provider);
                config.tls_config(tls.build()).build().new_agent()
            }
        };
        Ok(Http { agent, token })
    }

    /// The body of an answer; an error unless its status is a success.
    pub fn get(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        body(self.ask(url, self.agent.get(url), RequestBuilder::call)?)
    }

    /// The body of an answer, also of an error: a request in JSON gets its error in JSON. One that is no JSON is what [`get`](Http::get)
    /// makes of it.
    pub fn get_whatever(&self, url: &str) -> anyhow::Result<Vec<u8>> {
        let answer = self.ask(url, self.agent.get(url), RequestBuilder::call)?;
        let is_json =
            answer.headers().get("content-type").is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
        if is_json { whole(answer) } else { body(answer) }
    }

    /// The body of an answer and its tag, unless it still has the given tag.
    pub fn get_new(&self, url: &str, tag: Option<&str>) -> anyhow::Result<Option<(Vec<u8>, Option<String>)>> {
        let mut request = self.agent.get(url);
        if let Some(tag) = tag {
            request = request.header("if-none-match", tag);
        }
        let answer = self.ask(url, request, RequestBuilder::call)?;
        if tag.is_some() && answer.status() == ureq::http::StatusCode::NOT_MODIFIED {
            return Ok(None);
        }
        let tag = answer.headers().get("etag").and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        body(answer).map(|bytes| Some((bytes, tag)))
    }

    /// Sends JSON, and takes the body of the answer. A redirect is a failure: following it is a GET without the JSON.
    pub fn post_json(&self, url: &str, json: &[u8]) -> anyhow::Result<Vec<u8>> {
        let request = self.agent.post(url).config().max_redirects(0).build();
        let request = request.header("content-type", "application/json");
        let answer = self.ask(url, request, |request| request.send(json))?;
        if answer.status().is_redirection() {
            let to = answer.headers().get("location").and_then(|to| to.to_str().ok()).unwrap_or("no address");
            bail!("answered {}: a redirect to {to}, which is not followed: use that address", answer.status());
        }
        body(answer)
    }

    /// Sends a request with the token, through the proxy for its URL. An error names the proxy.
    fn ask<B>(
        &self,
        url: &str,
        request: RequestBuilder<B>,
        send: impl FnOnce(RequestBuilder<B>) -> Result<Response<Body>, ureq::Error>,
    ) -> anyhow::Result<Response<Body>> {
        let request = match &self.token {
            Some(token) => request.header("authorization", format!("Bearer {token}")),
            None => request,
        };
        let in_words = |error: ureq::Error| match tls::mistake(&error) {
            Some(what) => anyhow::Error::msg(what),
            None => error.into(),
        };
        match NamedProxy::of_environment(url)? {
            None => send(request).map_err(in_words),
            Some(named) => {
                let request = request.config().proxy(Some(named.proxy.clone())).build();
                send(request).map_err(in_words).context(named)
            }
        }
    }
}

/// The bytes of an answer, whatever its status is.
fn whole(mut answer: Response<Body>) -> anyhow::Result<Vec<u8>> {
    let length = answer.body().content_length().filter(|length| *length < LONGEST).unwrap_or_default();
    let mut bytes = Vec::with_capacity(length as usize);
    answer.body_mut().as_reader().take(LONGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn body(answer: Response<Body>) -> anyhow::Result<Vec<u8>> {
    let status = answer.status();
    let bytes = whole(answer)?;
    if !status.is_success() {
        let text = String::from_utf8_lossy(&bytes);
        let first: String = text.lines().next().unwrap_or_default().chars().take(200).collect();
        bail!("answered {status}{}{first}", if first.is_empty() { "" } else { ": " });
    }
    Ok(bytes)
}

/// The token in a file: its first line.
pub fn token(file: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        bail!("{}: the first line is no token", file.display());
    }
    Ok(token.to_owned())
}

/// The certificates in a file: PEM.
fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let pem = std::fs::read(file).with_context(|| file.display().to_string())?;
    let all: Vec<_> = CertificateDer::pem_slice_iter(&pem).filter_map(Result::ok).collect();
    if all.is_empty() {
        bail!("{}: there is no certificate in it", file.display());
    }
    Ok(all)
}
