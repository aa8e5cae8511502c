//! How connections are encrypted: whom the client trusts, and who it is itself.

use std::sync::Arc;

use alipes_tls::{FileError, Identity, client};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::error::{ClientError, Kind};
use crate::target::Wire;

/// The user's settings for encryption; the files have been read.
#[derive(Clone, Debug)]
pub struct Security {
    config: ClientConfig,
    name: Option<String>,
}

/// What one target's connections are encrypted with.
#[derive(Clone, Debug)]
pub struct Seal {
    /// Keys, roots, and what earlier connections have agreed on.
    pub config: Arc<ClientConfig>,
    /// The name that the server's certificate has to bear.
    pub name: ServerName<'static>,
}

impl Security {
    /// Reads the files: roots, or those of the system; who the client is, if servers ask; and a name that servers'
    /// certificates bear in the place of the address's.
    ///
    /// # Errors
    /// A file is absent or does not hold what it should.
    pub fn new(
        roots: Option<&str>,
        identity: Option<Identity<'_>>,
        name: Option<String>,
    ) -> Result<Security, FileError> {
        Ok(Security { config: client::config(roots, identity, &[])?, name })
    }

    /// What the connections to a server at `host`, over `wire`, are encrypted with.
    ///
    /// # Errors
    /// If no certificate can bear that name.
    pub fn seal(&self, host: &str, wire: Wire) -> Result<Seal, ClientError> {
        let host = self.name.as_deref().unwrap_or(host);
        let name = ServerName::try_from(host.to_owned()).map_err(|_| {
            ClientError::new(
                Kind::Tls,
                format!("no certificate can bear the name '{host}': give the server's as server_name"),
            )
        })?;
        let mut config = self.config.clone();
        config.alpn_protocols = vec![match wire {
            Wire::Grpc => b"h2".to_vec(),
            Wire::Http => b"http/1.1".to_vec(),
        }];
        Ok(Seal { config: Arc::new(config), name })
    }
}
