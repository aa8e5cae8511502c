//! What a client needs for encrypted connections: roots to trust, and a certificate where servers ask for one.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};

use crate::files::{self, FileError};
use crate::pinned;

/// In the place of a path, in errors.
const SYSTEM: &str = "the system's roots";

/// Who a client is: files with its certificate and the key to it.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'a> {
    /// The certificate, with those between it and its authority.
    pub certificate: &'a str,
    /// Its key.
    pub key: &'a str,
}

/// What agrees on encrypted connections with servers whose certificates lead to a root in a file, or to one that the
/// system trusts.
///
/// # Errors
///
/// A file is absent or does not hold what it should, or the system has no roots.
pub fn config(
    roots: Option<&str>,
    identity: Option<Identity<'_>>,
    protocols: &[&[u8]],
) -> Result<ClientConfig, FileError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| FileError::new(roots.unwrap_or(SYSTEM), &error))?;
    let builder = match roots {
        None => builder.with_root_certificates(system_roots()?),
        Some(path) => {
            let judge = pinned::verifier(files::certificates(path)?, provider);
            let judge = judge.map_err(|error| FileError::new(path, &error))?;
            // No check is left out: see there.
            builder.dangerous().with_custom_certificate_verifier(judge)
        }
    };
    let mut config = match identity {
        None => builder.with_no_client_auth(),
        Some(Identity { certificate, key }) => builder
            .with_client_auth_cert(files::certificates(certificate)?, files::key(key)?)
            .map_err(|error| FileError::of_certificate(certificate, &error))?,
    };
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// The roots that the system trusts; single ones that cannot be read are passed over, as browsers do.
fn system_roots() -> Result<RootCertStore, FileError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let causes: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        let cause = format!("the system has no certificates of roots to trust; {}", causes.join("; "));
        return Err(FileError::new(SYSTEM, &cause));
    }
    Ok(roots)
}
