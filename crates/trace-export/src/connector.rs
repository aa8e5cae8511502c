//! TLS of connections to a collector.

use std::sync::Arc;

use tokio_rustls::TlsConnector;

/// A TLS client that trusts the roots in a file, or those of the system.
///
/// # Errors
///
/// The file is absent or contains no roots, or the system has none.
pub fn connector(file: Option<&str>) -> Result<TlsConnector, String> {
    let config = alipes_tls::client::config(file, None, &[b"http/1.1"]).map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)))
}
