//! TLS to servers whose certificates a file names, also those that are certificates of authorities themselves.
//!
//! `openssl req -x509` makes such a certificate (CA:TRUE), and the usual verifier refuses it as the certificate of a server. One that is
//! byte for byte in the file is accepted, if its name and its dates are right.

use anyhow::Context;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use ureq::unversioned::transport::{
    Buffers, ConnectProxyConnector, ConnectionDetails, Connector, Either, LazyBuffers, NextTimeout, TcpConnector,
    Transport, TransportAdapter,
};

/// What this program shows to servers that ask who it is.
pub struct ClientIdentity {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl ClientIdentity {
    /// Reads a certificate, those that vouch for it, and its key: PEM files.
    pub fn read(cert: &Path, key: &Path) -> anyhow::Result<ClientIdentity> {
        let wrong =
            |file: &Path, what| format!("{}: no {what} can be read from it (PEM, \"-----BEGIN …\")", file.display());
        let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect::<Result<Vec<_>, _>>);
        let chain = chain.ok().filter(|chain| !chain.is_empty()).with_context(|| wrong(cert, "certificate"))?;
        let key = PrivateKeyDer::from_pem_file(key).with_context(|| wrong(key, "private key"))?;
        Ok(ClientIdentity { chain, key })
    }
}

/// A mistake about TLS, in words: with the certificate, or with the scheme of the URL.
pub fn mistake(error: &ureq::Error) -> Option<&'static str> {
    let error = match error {
        ureq::Error::Rustls(error) => error,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref()?,
        ureq::Error::Protocol(error) if error.to_string().contains("http parse fail") => {
            return Some("the answer is not HTTP: where there is TLS, the URL begins with https://");
        }
        _ => return None,
    };
    match error {
        Error::InvalidCertificate(certificate) => match certificate {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                Some("its certificate has expired: renew it there")
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                Some("its certificate is not valid yet: compare the clocks of both machines")
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                Some("its certificate is not valid for the name that was asked: ask by a name that is in it")
            }
            // That of an authority, shown as the server's own, has no kind.
            CertificateError::UnknownIssuer | CertificateError::Other(_) => Some(
                "its certificate is not from an authority that is trusted here: name the authority's certificate with --ca FILE \
                 (a receiver of alerts: `ca`)",
            ),
            _ => None,
        },
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            Some("it asks for a certificate of this client: --client-cert FILE and --client-key FILE")
        }
        Error::InvalidMessage(_) => Some("the answer is not TLS: where there is none, the URL begins with http://"),
        _ => None,
    }
}

/// Connects, and trusts these certificates alone.
pub fn connector(
    trusted: Vec<CertificateDer<'static>>,
    client: Option<ClientIdentity>,
    provider: Arc<CryptoProvider>,
) -> anyhow::Result<impl Connector> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(trusted.iter().cloned());
    let usual = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build()?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(NamedCertificates { trusted, usual }));
    let config = match client {
        Some(client) => config
            .with_client_auth_cert(client.chain, client.key)
            .context("the certificate for the server and its key do not go together")?,
        None => config.with_no_client_auth(),
    };
    let tcp = ().chain(ConnectProxyConnector::default()).chain(TcpConnector::default());
    Ok(tcp.chain(TlsConnector(Arc::new(config))))
}

#[derive(Debug)]
struct NamedCertificates {
    trusted: Vec<CertificateDer<'static>>,
    usual: Arc<WebPkiServerVerifier>,
}

impl ServerCertVerifier for NamedCertificates {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.usual.verify_server_cert(shown, between, name, ocsp, now);
        match &verified {
            // The dates were right: they are checked before this.
            Err(Error::InvalidCertificate(CertificateError::Other(why)))
                if why.0.to_string() == "CaUsedAsEndEntity" && self.trusted.contains(shown) =>
            {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            _ => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.usual.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

#[derive(Debug)]
struct TlsConnector(Arc<ClientConfig>);

impl<In: Transport> Connector<In> for TlsConnector {
    type Out = Either<In, TlsTransport>;

    fn connect(&self, details: &ConnectionDetails<'_>, below: Option<In>) -> Result<Option<Self::Out>, ureq::Error> {
        let Some(below) = below else { return Ok(None) };
        if !details.needs_tls() || below.is_tls() {
            return Ok(Some(Either::A(below)));
        }
        let host = details.uri.host().unwrap_or_default().trim_matches(['[', ']']);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| ureq::Error::Tls("the host is no name"))?;
        let connection = ClientConnection::new(self.0.clone(), name)?;
        let mut stream =
            StreamOwned::new(connection, TransportAdapter::new(below.boxed(), details.current_time.clone()));
        stream.sock.set_timeout(details.timeout);
        stream.conn.complete_io(&mut stream.sock)?;
        let buffers = LazyBuffers::new(details.config.input_buffer_size(), details.config.output_buffer_size());
        Ok(Some(Either::B(TlsTransport { buffers, stream })))
    }
}

struct TlsTransport {
    buffers: LazyBuffers,
    stream: StreamOwned<ClientConnection, TransportAdapter>,
}

impl std::fmt::Debug for TlsTransport {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.write_str("TlsTransport")
    }
}

impl Transport for TlsTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        Ok(self.stream.write_all(&self.buffers.output()[..amount])?)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.sock.set_timeout(timeout);
        let count = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(count);
        Ok(count > 0)
    }

    fn is_open(&mut self) -> bool {
        self.stream.sock.get_mut().is_open()
    }

    fn is_tls(&self) -> bool {
        true
    }
}
