//! Encrypted connections: the server's certificate, the clients' certificates, and their reload.

mod files;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use alipes_spec::TlsSpec;
use alipes_stats::events::{Event, EventQueue};
pub use alipes_tls::FileError as TlsError;
use arc_swap::ArcSwap;
use tokio_rustls::TlsAcceptor;

use self::files::{Stamp, load, stamp};
use super::connection::{Carrier, Socket};
use super::policy::ListenerKind;

/// How connections of a listener are encrypted.
pub struct Tls {
    kind: ListenerKind,
    spec: TlsSpec,
    // Each connection uses the certificate that is current when it is accepted.
    current: ArcSwap<rustls::ServerConfig>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// One of them is absent, or does not hold what it should.
    pub fn new(kind: ListenerKind, spec: &TlsSpec) -> Result<Tls, TlsError> {
        let current = ArcSwap::from_pointee(load(spec, protocols(kind))?);
        Ok(Tls { kind, spec: spec.clone(), current })
    }

    /// Performs the handshake with a client.
    ///
    /// # Errors
    ///
    /// The handshake fails, or the client has disconnected.
    pub async fn accept(&self, stream: Carrier) -> io::Result<Socket> {
        let acceptor = TlsAcceptor::from(self.current.load_full());
        acceptor.accept(stream).await.map(|stream| Socket::Tls(Box::new(stream)))
    }

    /// Checks the files at an interval and loads those that changed; files that cannot be used are logged and ignored.
    ///
    /// New connections use the new certificate, open ones stay as they are.
    pub async fn reload(self: Arc<Self>, every: Duration, events: Arc<EventQueue>) {
        let mut seen = self.stamp().await;
        loop {
            tokio::time::sleep(every).await;
            let now = self.stamp().await;
            if now != seen {
                seen = now;
                events.push(self.renew().await);
            }
        }
    }

    async fn stamp(self: &Arc<Self>) -> Option<Stamp> {
        let tls = Arc::clone(self);
        tokio::task::spawn_blocking(move || stamp(&tls.spec)).await.ok()
    }

    async fn renew(self: &Arc<Self>) -> Event {
        let tls = Arc::clone(self);
        // Reading files and keys would block the network thread.
        let loaded = tokio::task::spawn_blocking(move || load(&tls.spec, protocols(tls.kind))).await;
        let (listener, file) = (self.kind.name(), &self.spec.certificate);
        match loaded {
            Ok(Ok(config)) => {
                self.current.store(Arc::new(config));
                Event::Notice { level: 2, text: format!("the {listener} certificate '{file}' was read again") }
            }
            Ok(Err(error)) => {
                let text =
                    format!("the {listener} certificate stays as it is, since the new one cannot be used: {error}");
                Event::Notice { level: 0, text }
            }
            Err(_) => Event::Notice { level: 0, text: format!("the {listener} certificate could not be read again") },
        }
    }
}

/// The protocols that a listener offers, the best first.
fn protocols(kind: ListenerKind) -> &'static [&'static [u8]] {
    match kind {
        ListenerKind::Http => &[b"h2", b"http/1.1"],
        ListenerKind::Grpc => &[b"h2"],
        ListenerKind::Metrics => &[b"http/1.1"],
    }
}
