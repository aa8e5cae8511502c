//! Encrypted connections to servers of others, which have to show that they are who they are asked for.

use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;

use super::files;

/// What agrees on encrypted connections with servers whose certificates lead to a root in a file, or to one that the
/// system trusts.
///
/// # Errors
///
/// The file is absent or does not hold roots, or the system has none.
pub fn connector(file: Option<&str>) -> Result<TlsConnector, String> {
    let roots = match file {
        Some(path) => files::roots(path).map_err(|error| error.to_string())?,
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// The roots that the system trusts; single ones that cannot be read are passed over, as browsers do.
fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let causes: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(format!("the system has no certificates of roots to trust; {}", causes.join("; ")));
    }
    Ok(roots)
}
