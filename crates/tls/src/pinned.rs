//! A server's certificate that is itself what the client trusts.
//!
//! `openssl req -x509` makes a certificate that names itself an authority, and people give such a one to a server and
//! to its clients. The library takes no authority's certificate for a server's; OpenSSL does where it is the very one
//! that is trusted, and so does this.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use crate::fault::is_authority;

/// What judges servers by certificates that are trusted, and by those that they have issued.
///
/// # Errors
///
/// One of them is none.
pub fn verifier(
    trusted: Vec<CertificateDer<'static>>,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ServerCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in &trusted {
        roots.add(certificate.clone()).map_err(|error| error.to_string())?;
    }
    let library = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build();
    Ok(Arc::new(Pinned { library: library.map_err(|error| error.to_string())?, trusted }))
}

/// Judges servers as the library does, but for those that show a trusted certificate itself.
#[derive(Debug)]
struct Pinned {
    library: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.library.verify_server_cert(shown, between, name, ocsp, now) {
            // It has found by then that the certificate is neither expired nor yet to come.
            Err(Error::InvalidCertificate(why)) if is_authority(&why) && self.trusted.contains(shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.library.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.library.supported_verify_schemes()
    }
}
