//! Encrypted connections: the server's certificate, the clients' certificates, and their reload.

mod failure;
mod files;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use alipes_spec::TlsSpec;
use alipes_stats::events::{Event, EventQueue};
pub use alipes_tls::FileError as TlsError;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use rustls::server::Acceptor;
use tokio_rustls::LazyConfigAcceptor;

pub use self::failure::Failure;
use self::files::{Stamp, load, stamp};
use super::connection::{Carrier, Socket};
use super::notices::Notices;
use super::policy::ListenerKind;

/// How connections of a listener are encrypted.
pub struct Tls {
    kind: ListenerKind,
    spec: TlsSpec,
    // Each connection uses the certificate that is current when it is accepted.
    current: ArcSwap<rustls::ServerConfig>,
    /// The files that it was read from.
    read: Mutex<Stamp>,
    /// Lines about handshakes that failed.
    notices: Notices,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// One of them is absent, or does not hold what it should.
    pub fn new(kind: ListenerKind, spec: &TlsSpec) -> Result<Tls, TlsError> {
        let read = Mutex::new(stamp(spec));
        let current = ArcSwap::from_pointee(load(spec, protocols(kind))?);
        Ok(Tls { kind, spec: spec.clone(), current, read, notices: Notices::default() })
    }

    /// Performs the handshake with a client.
    ///
    /// # Errors
    ///
    /// The handshake fails or takes longer than the time-out, or the client has disconnected.
    pub async fn accept(&self, stream: Carrier, timeout: Option<Duration>) -> Result<Socket, Failure> {
        let handshake = self.handshake(stream);
        match timeout {
            None => handshake.await,
            Some(time) => tokio::time::timeout(time, handshake).await.unwrap_or(Err(Failure::Late(time))),
        }
    }

    async fn handshake(&self, stream: Carrier) -> Result<Socket, Failure> {
        let begun = LazyConfigAcceptor::new(Acceptor::default(), stream).await.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => Failure::NotBegun,
            _ => Failure::Failed(error),
        })?;
        let stream = begun.into_stream(self.current.load_full()).await.map_err(Failure::Failed)?;
        Ok(Socket::Tls(Box::new(stream)))
    }

    /// Logs why a client has no encrypted connection.
    pub fn log_failure(&self, events: &EventQueue, failure: &Failure, client: &str) {
        if !matches!(failure, Failure::NotBegun) {
            let listener = self.kind.name();
            self.notices.log(events, || format!("the {listener} handshake with {client} failed: {failure}"));
        }
    }

    /// Checks the files at an interval and loads those that changed; files that cannot be used are logged and ignored.
    ///
    /// New connections use the new certificate, open ones stay as they are.
    pub async fn reload(self: Arc<Self>, every: Duration, events: Arc<EventQueue>) {
        loop {
            tokio::time::sleep(every).await;
            let tls = Arc::clone(&self);
            // Reading files and keys would block the network thread.
            let renewed = tokio::task::spawn_blocking(move || {
                let has_changed = *tls.read.lock() != stamp(&tls.spec);
                has_changed.then(|| tls.renew())
            });
            renewed.await.ok().flatten().into_iter().for_each(|event| events.push(event));
        }
    }

    /// Reads the files again, and says how that went.
    pub fn renew(&self) -> Event {
        *self.read.lock() = stamp(&self.spec);
        let (listener, file) = (self.kind.name(), &self.spec.certificate);
        match load(&self.spec, protocols(self.kind)) {
            Ok(config) => {
                self.current.store(Arc::new(config));
                Event::Notice { level: 2, text: format!("the {listener} certificate '{file}' was read again") }
            }
            Err(error) => {
                let text =
                    format!("the {listener} certificate stays as it is, since the new one cannot be used: {error}");
                Event::Notice { level: 0, text }
            }
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
