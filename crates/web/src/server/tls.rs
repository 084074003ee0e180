//! The TLS certificate.

use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::Arc;

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

/// Reads a certificate, those that vouch for it, and its key: PEM files.
pub fn certificate(cert: &Path, key: &Path) -> Result<Arc<ServerConfig>, TlsError> {
    let wrong = |error| not_read(cert, "certificate", &error);
    let chain = CertificateDer::pem_file_iter(cert).map_err(wrong)?;
    let chain = chain.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if chain.is_empty() {
        return Err(wrong(pem::Error::NoItemsFound));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| not_read(key, "private key", &error))?;
    let pair = |error| TlsError(format!("{} and {} do not go together: {error}", cert.display(), key.display()));
    let mut config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, secret))
        .map_err(pair)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
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
        assert!(certificate(&cert, &key).is_ok());
        let why = |cert: &Path, key: &Path| {
            certificate(cert, key).unwrap_err().to_string().replace(&folder.path().display().to_string(), "")
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
