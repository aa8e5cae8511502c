//! Connections in memory on a clock that jumps: no socket, no thread, and no second that anybody waits for.
//!
//! Server and client are tasks of one paused event loop. Its clock stands still while either has something to do, and
//! jumps to the next timer when both wait.

pub mod http2;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use alipes_clock::Entered;
use alipes_grpc::GrpcProtocol;
use alipes_http::{HttpProtocol, MetricsProtocol};
use alipes_net::connection::{ByteStream, Carrier, Socket, TransportStream};
use alipes_net::phase::Phase;
use alipes_net::phase::Shutdown;
use alipes_net::policy::ListenerKind;
use alipes_net::probation::{Origin, Probation};
use alipes_net::protocol::Protocol;
use alipes_runtime::model::ModelVersion;
use alipes_server::compose;
use alipes_service::Service;
use alipes_spec::{ConnectionSpec, KeepaliveSpec, ServerConfig};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::common::{Echo, model};

/// Bytes on their way in one direction, as a socket's buffers hold them.
const BUFFER_BYTES: usize = 256 << 10;

/// An endpoint whose connections are in memory.
pub struct Endpoint {
    /// What stands behind it.
    pub service: Arc<Service>,
    protocol: Arc<dyn Protocol>,
    probation: Arc<Probation>,
    phase: watch::Sender<Phase>,
    _clock: Entered,
}

impl Endpoint {
    /// An endpoint with limits on connections and keep-alive settings beside the defaults, and models behind it.
    pub fn open(
        kind: ListenerKind,
        connections: ConnectionSpec,
        keepalive: KeepaliveSpec,
        models: impl IntoIterator<Item = Arc<ModelVersion>>,
    ) -> Endpoint {
        let clock = alipes_clock::follow(|| Instant::now().into_std());
        let endpoint = json!({"enabled": true, "address": "127.0.0.1", "port": 0});
        let config = json!({
            "schema": 1, "id": "alipes-test", "http": endpoint, "grpc": endpoint, "metrics": endpoint,
            "control_mode": "none", "counter_latencies": true, "cpu_metrics": false,
        });
        let mut config: ServerConfig = serde_json::from_value(config).unwrap();
        (config.connections, config.keepalive) = (connections, keepalive);
        let service = compose::service(config);
        for model in models {
            let name = model.spec.name.clone();
            service.registry.publish(&name, "", vec![model]);
        }
        service.registry.set_index(Vec::new(), true);
        let service = Arc::new(service);
        let probation = Probation::new(&service.config.connections, Arc::clone(&service.events));
        let protocol: Arc<dyn Protocol> = match kind {
            ListenerKind::Http => Arc::new(HttpProtocol::new(Arc::clone(&service), &Arc::default())),
            ListenerKind::Grpc => Arc::new(GrpcProtocol::new(Arc::clone(&service), &Arc::default())),
            ListenerKind::Metrics => Arc::new(MetricsProtocol::new(Arc::clone(&service), &Arc::default())),
        };
        Endpoint { service, protocol, probation, phase: watch::Sender::new(Phase::Open), _clock: clock }
    }

    /// An endpoint that waits four seconds for a head, five for a stalled body or answer, and a minute between
    /// requests.
    pub fn impatient(kind: ListenerKind) -> Endpoint {
        let limits = ConnectionSpec {
            header_timeout_s: 4.0,
            stall_timeout_s: 5.0,
            idle_timeout_s: 60.0,
            ..ConnectionSpec::default()
        };
        Endpoint::open(kind, limits, KeepaliveSpec::default(), [model("echo", false, Echo)])
    }

    /// A new connection, served on this event loop.
    pub fn connect(&self) -> Connection {
        self.connect_with_buffer(BUFFER_BYTES)
    }

    /// A connection on which at most `buffer_bytes` wait in each direction.
    pub fn connect_with_buffer(&self, buffer_bytes: usize) -> Connection {
        let (stream, accepted) = tokio::io::duplex(buffer_bytes);
        self.serve(accepted, None);
        self.connection(stream)
    }

    /// A connection from an address, whose bytes are counted as the server reads them.
    pub fn connect_from(&self, address: &str) -> (Connection, Arc<AtomicUsize>) {
        let (stream, accepted) = tokio::io::duplex(BUFFER_BYTES);
        let read = Arc::<AtomicUsize>::default();
        let origin = self.probation.origin(Some(address.parse().expect("an address")));
        let connection = self.connection(stream);
        let (stream, is_reset) = (accepted, Arc::clone(&connection.is_reset));
        self.serve(Counted { stream, read: Arc::clone(&read), is_reset }, Some(origin));
        (connection, read)
    }

    /// A connection whose server's end is what `wrap` makes of it.
    pub fn connect_through<S: ByteStream + 'static>(&self, wrap: impl FnOnce(DuplexStream) -> S) -> Connection {
        let (stream, accepted) = tokio::io::duplex(BUFFER_BYTES);
        self.serve(wrap(accepted), None);
        self.connection(stream)
    }

    fn serve(&self, accepted: impl ByteStream + 'static, origin: Option<Origin>) {
        let socket = Socket::Plain(Carrier::Memory(Box::new(accepted)));
        let transport = TransportStream::new(socket, self.protocol.policy().timeouts.stall);
        let transport = match origin {
            Some(origin) => transport.with_origin(origin),
            None => transport,
        };
        tokio::spawn(Arc::clone(&self.protocol).serve(transport, Shutdown::new(self.phase.subscribe())));
    }

    fn connection(&self, stream: DuplexStream) -> Connection {
        Connection { stream, is_reset: Arc::default(), opened: Instant::now(), _phase: self.phase.clone() }
    }

    /// Takes the network to a phase; connections see it at their next turn.
    pub fn reach(&self, phase: Phase) {
        self.phase.send_replace(phase);
    }
}

/// A server's end that counts the bytes it reads, and of which nothing more can be read once it is reset.
struct Counted {
    stream: DuplexStream,
    read: Arc<AtomicUsize>,
    is_reset: Arc<AtomicBool>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.is_reset.load(Ordering::Relaxed) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        let before = into.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, into);
        self.read.fetch_add(into.filled().len() - before, Ordering::Relaxed);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// The client's end of a connection.
pub struct Connection {
    stream: DuplexStream,
    is_reset: Arc<AtomicBool>,
    opened: Instant,
    // The network lives as long as its connections.
    _phase: watch::Sender<Phase>,
}

impl Connection {
    /// Leaves as a client does that closes its socket with something unread: what the server has not read yet is lost.
    pub fn reset(self) {
        self.is_reset.store(true, Ordering::Relaxed);
    }

    /// How long the connection has been open.
    pub fn age(&self) -> Duration {
        self.opened.elapsed()
    }

    /// Sends bytes; false if the server has closed.
    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Sends pieces until the server closes or they end, and reads meanwhile; everything that comes.
    pub async fn exchange(&mut self, pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
        let (mut reader, mut writer) = tokio::io::split(&mut self.stream);
        let mut received = Vec::new();
        let send = async {
            for piece in pieces {
                if writer.write_all(&piece).await.is_err() {
                    break;
                }
            }
        };
        let _ = tokio::join!(send, reader.read_to_end(&mut received));
        received
    }

    /// Reads exactly so many bytes; none if the server closes before they have come.
    pub async fn read(&mut self, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        self.stream.read_exact(&mut bytes).await.ok().map(|_| bytes)
    }

    /// Reads the head of an answer of HTTP/1.
    pub async fn head(&mut self) -> String {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.stream.read_u8().await.expect("the head of an answer"));
        }
        String::from_utf8(head).unwrap()
    }

    /// Everything that comes until the server closes.
    pub async fn rest(&mut self) -> String {
        let mut rest = Vec::new();
        self.read_rest(&mut rest).await;
        String::from_utf8_lossy(&rest).into_owned()
    }

    /// Appends everything that comes until the server closes, as it comes.
    pub async fn read_rest(&mut self, rest: &mut Vec<u8>) {
        let _ = self.stream.read_to_end(rest).await;
    }

    /// Sends a byte every `pause` until the server closes; what it says until then.
    pub async fn drip(&mut self, bytes: &[u8], pause: Duration) -> String {
        for &byte in bytes {
            if !self.send([byte]).await {
                return self.rest().await;
            }
            sleep(pause).await;
        }
        panic!("the server waited for the last byte");
    }
}
