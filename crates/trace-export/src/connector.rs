//! Encrypted connections to other servers, whose certificates are verified.

use std::sync::Arc;

use tokio_rustls::TlsConnector;

/// A connector to servers whose certificates lead to a root in a file, or to one that the system trusts.
///
/// # Errors
///
/// The file is absent or does not hold roots, or the system has none.
pub fn connector(file: Option<&str>) -> Result<TlsConnector, String> {
    let config = alipes_tls::client::config(file, None, &[b"http/1.1"]).map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)))
}
