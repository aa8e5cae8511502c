//! The files behind encrypted connections, and what becomes of them.

use std::fmt;
use std::fs;
use std::io::{self, Cursor};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::spec::TlsSpec;

/// Largest file that is read, in bytes: every root that browsers trust is a quarter of a megabyte.
const MAX_BYTES: u64 = 8 << 20;

/// Why files cannot be used.
#[derive(Debug)]
pub struct TlsError {
    path: String,
    cause: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot use '{}' for encrypted connections: {}", self.path, self.cause)
    }
}

impl std::error::Error for TlsError {}

/// What tells whether files have changed: where they are and when they were written, of each.
pub type Stamp = Vec<Option<(u64, u64, i64, i64, u64)>>;

/// The stamp of a door's files now. Links are followed: mounted secrets change by changing a link.
pub fn stamp(spec: &TlsSpec) -> Stamp {
    let paths = [Some(&spec.certificate), Some(&spec.key), spec.client_roots.as_ref()];
    let of = |path: &String| {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.mtime(), file.mtime_nsec(), file.size()))
    };
    paths.into_iter().flatten().map(of).collect()
}

/// Reads the files.
///
/// # Errors
///
/// One of them is absent, or does not hold what it should.
pub fn load(spec: &TlsSpec, protocols: &[&[u8]]) -> Result<ServerConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&spec.certificate, &error))?;
    let builder = match &spec.client_roots {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(roots(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            builder.with_client_cert_verifier(verifier.build().map_err(|error| unusable(path, &error))?)
        }
    };
    let chain = certificates(&spec.certificate)?;
    let key = key(&spec.key)?;
    let mut config = builder.with_single_cert(chain, key).map_err(|error| unusable(&spec.certificate, &error))?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// The roots in a file.
///
/// # Errors
///
/// It is absent, or does not hold what it should.
pub fn roots(path: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| unusable(path, &error))?;
    }
    Ok(roots)
}

fn certificates(path: &str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let pem = read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_reader_iter(Cursor::new(pem)).collect();
    let found = found.map_err(|error| unusable(path, &error))?;
    if found.is_empty() {
        return Err(unusable(path, &"expected a certificate as PEM, found none"));
    }
    Ok(found)
}

fn key(path: &str) -> Result<PrivateKeyDer<'static>, TlsError> {
    let pem = read(path)?;
    if pem.windows(9).any(|part| part == b"ENCRYPTED") {
        return Err(unusable(path, &"the key is encrypted, expected one without a password"));
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| unusable(path, &format_args!("expected a key as PEM: {error}")))
}

fn read(path: &str) -> Result<Vec<u8>, TlsError> {
    let length = fs::metadata(path).map_err(|error| unusable(path, &reason(&error)))?.len();
    if length > MAX_BYTES {
        return Err(unusable(path, &format_args!("{length} bytes, expected at most {MAX_BYTES}")));
    }
    fs::read(path).map_err(|error| unusable(path, &reason(&error)))
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

fn unusable(path: &str, cause: &dyn fmt::Display) -> TlsError {
    TlsError { path: path.to_owned(), cause: cause.to_string() }
}
