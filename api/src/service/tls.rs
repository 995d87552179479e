//! TLS of the gRPC port. It is terminated here, so that the handshake deadline of a connection counts decrypted bytes.

use std::{io, sync::Arc};

use rustls::{
    CertificateError, RootCertStore, ServerConfig,
    client::verify_server_cert_signed_by_trust_anchor,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject},
    server::{ParsedCertificate, VerifierBuilderError, WebPkiClientVerifier},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::connection::HANDSHAKE_TIMEOUT;

/// HTTP/2, the only protocol of the port.
const ALPN: &[u8] = b"h2";

/// The TLS configuration of the port: its certificate, and the authority of client certificates.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

/// An error of a certificate, a private key or a certificate authority.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file is not PEM, or does not contain a certificate or a private key.
    #[error("not a PEM file with a certificate or private key: {0}")]
    Pem(#[from] rustls::pki_types::pem::Error),
    /// Certificate and private key do not match, or are not supported.
    #[error(transparent)]
    Unusable(#[from] rustls::Error),
    /// The certificate has expired, or is not valid yet.
    #[error("the certificate has expired or is not valid yet: renew it, and check the clock of this host")]
    NotValidNow,
    /// The file of the certificate authority contains no usable certificate.
    #[error("no usable certificate of a certificate authority: {0}")]
    Authority(#[from] VerifierBuilderError),
}

impl Tls {
    /// Creates a configuration from the port's certificate and private key, and the authority of client certificates if
    /// clients need one; all in PEM.
    ///
    /// # Errors
    /// If a file cannot be parsed, the certificate is not valid now, or certificate and private key do not match.
    pub fn new(certificate: &[u8], key: &[u8], client_ca: Option<&[u8]>) -> Result<Self, TlsError> {
        check_validity(certificate)?;
        let provider = Arc::new(ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let builder = match client_ca {
            None => builder.with_no_client_auth(),
            Some(authority) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(authority)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build()?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let mut config = builder.with_single_cert(certificates(certificate)?, PrivateKeyDer::from_pem_slice(key)?)?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        Ok(Self(Arc::new(config).into()))
    }

    /// Completes the handshake of a client.
    ///
    /// # Errors
    /// `TimedOut` after [`HANDSHAKE_TIMEOUT`], or the error of the handshake.
    pub(super) async fn accept<C>(&self, stream: C) -> io::Result<TlsStream<C>>
    where
        C: AsyncRead + AsyncWrite + Unpin,
    {
        timeout(HANDSHAKE_TIMEOUT, self.0.accept(stream)).await.map_err(|_| io::ErrorKind::TimedOut)?
    }
}

/// Checks that a certificate, the first of a PEM file, is valid at this time. Its other properties are not checked.
///
/// # Errors
/// If it is not, or if the file cannot be parsed.
pub fn check_validity(pem: &[u8]) -> Result<(), TlsError> {
    let chain = certificates(pem)?;
    // A file without a certificate is refused with its private key.
    let Some(certificate) = chain.first() else { return Ok(()) };
    let algorithms = ring::default_provider().signature_verification_algorithms.all;
    // The period of validity is checked before an authority is looked for, of which there is none.
    let checked = verify_server_cert_signed_by_trust_anchor(
        &ParsedCertificate::try_from(certificate)?,
        &RootCertStore::empty(),
        &[],
        UnixTime::now(),
        algorithms,
    );
    match checked {
        Err(rustls::Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        )) => Err(TlsError::NotValidNow),
        _ => Ok(()),
    }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, rustls::pki_types::pem::Error> {
    CertificateDer::pem_slice_iter(pem).collect()
}
