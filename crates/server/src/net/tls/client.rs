//! Encrypted connections to servers of others, which have to show that they are who they are asked for.

use std::sync::Arc;

use tokio_rustls::TlsConnector;

/// What agrees on encrypted connections with servers whose certificates lead to a root in a file, or to one that the
/// system trusts.
///
/// # Errors
///
/// The file is absent or does not hold roots, or the system has none.
pub fn connector(file: Option<&str>) -> Result<TlsConnector, String> {
    let config = alipes_tls::client::config(file, None, &[b"http/1.1"]).map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)))
}
