//! The TLS certificate.

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use std::path::Path;
use std::sync::Arc;

/// The name of HTTP/2 in a TLS handshake.
pub const HTTP2: &[u8] = b"h2";

/// Why there is no certificate to show, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct TlsError(String);

fn not_read(file: &Path, what: &str, error: &pem::Error) -> TlsError {
    let why = match error {
        pem::Error::NoItemsFound => format!("there is no {what} in it (PEM, \"-----BEGIN …\")"),
        pem::Error::Io(error) => error.to_string(),
        other => format!("is not PEM with a {what}: {other}"),
    };
    TlsError(format!("{}: {why}", file.display()))
}

/// Reads a certificate, those that vouch for it, and its key: PEM files. With `clients`, only those are served whose certificate one of
/// that file vouches for.
pub fn certificate(cert: &Path, key: &Path, clients: Option<&Path>) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = chain(cert)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let clients = clients.map(|file| verifier(file, provider.clone())).transpose()?;
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| not_read(key, "private key", &error))?;
    let pair = |error| TlsError(format!("{} and {} do not go together: {error}", cert.display(), key.display()));
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map(|builder| match clients {
            Some(clients) => builder.with_client_cert_verifier(clients),
            None => builder.with_no_client_auth(),
        })
        .and_then(|builder| builder.with_single_cert(chain, secret))
        .map_err(pair)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn chain(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let wrong = |error| not_read(file, "certificate", &error);
    let chain = CertificateDer::pem_file_iter(file).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if chain.is_empty() { Err(wrong(pem::Error::NoItemsFound)) } else { Ok(chain) }
}

fn verifier(file: &Path, provider: Arc<CryptoProvider>) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(chain(file)?);
    let made = WebPkiClientVerifier::builder_with_provider(roots.into(), provider).build();
    made.ok()
        .filter(|_| added > 0)
        .ok_or_else(|| TlsError(format!("{}: no certificate in it can vouch for others", file.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_and_its_key_go_together_and_all_else_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let made = || rcgen::generate_simple_self_signed(["localhost".into()]).unwrap();
        let (one, other) = (made(), made());
        let cert = write("cert.pem", &one.cert.pem());
        let key = write("key.pem", &one.signing_key.serialize_pem());
        let other = write("other.pem", &other.signing_key.serialize_pem());
        let empty = write("empty", "");
        assert!(certificate(&cert, &key, None).is_ok());
        let why = |cert: &Path, key: &Path| {
            certificate(cert, key, None).unwrap_err().to_string().replace(&folder.path().display().to_string(), "")
        };
        assert_eq!(why(&key, &key), "/key.pem: there is no certificate in it (PEM, \"-----BEGIN …\")");
        assert_eq!(why(&cert, &empty), "/empty: there is no private key in it (PEM, \"-----BEGIN …\")");
        assert!(
            why(&cert, &other).starts_with("/cert.pem and /other.pem do not go together: "),
            "{}",
            why(&cert, &other)
        );
        assert_eq!(why(&folder.path().join("none"), &key), "/none: No such file or directory (os error 2)");
    }
}
