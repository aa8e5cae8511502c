//! Connections to servers of steps, which are encrypted where a step's address says so.

use std::io;
use std::sync::Arc;

use alipes_graph::{Destination, Graph, Url};
use alipes_protocol::limits::HTTP_MAX_HEADER_BYTES;
use alipes_stats::turn::{Task, timed};
use alipes_tls::{CertificateWords, refusal};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::fault::CallFault;
use super::idle::Sender;

/// What is said of the certificate of a step's server.
const STEPS: CertificateWords = CertificateWords {
    whose: "the certificate of the step's server",
    judge: "this graph",
    trust: "name the authority's with --graph-root-cert",
    authority: "name this very certificate with --graph-root-cert",
    name: "call the step by a name that its certificate bears",
    usage: "serverAuth",
};

/// What connects to servers.
pub struct Connections {
    /// What encrypts connections, or why nothing can; none where no step asks for it.
    encryption: Option<Result<TlsConnector, String>>,
}

impl Connections {
    /// What connects to the servers of a graph's steps.
    pub fn new(graph: &Graph) -> Connections {
        let is_encrypted = |service: &Destination| matches!(service, Destination::Url(url) if url.is_encrypted);
        let encryption = graph.services().iter().any(is_encrypted).then(|| encryption(graph.roots.as_deref()));
        Connections { encryption }
    }

    /// A new connection.
    ///
    /// # Errors
    ///
    /// There is none, or none that is encrypted for a server whose certificate leads to one of the roots.
    pub async fn open(&self, url: &Url) -> Result<Sender, CallFault> {
        let stream = dial(url).await?;
        let Some(encryption) = self.encryption.as_ref().filter(|_| url.is_encrypted) else {
            return handshake(stream).await;
        };
        let connector = encryption.as_ref().map_err(|reason| CallFault::Encrypt(reason.clone()))?;
        let name = ServerName::try_from(bare(&url.host).to_owned());
        let name = name.map_err(|error| CallFault::Encrypt(error.to_string()))?;
        let encrypted = connector.connect(name, stream).await;
        handshake(encrypted.map_err(|error| CallFault::Encrypt(format!("tls: {}", refusal(&error, &STEPS))))?).await
    }
}

fn encryption(roots: Option<&str>) -> Result<TlsConnector, String> {
    let config = alipes_tls::client::config(roots, None, &[b"http/1.1"]).map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)))
}

/// An address of IPv6 without the brackets in which it stands in a URL.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn dial(url: &Url) -> Result<TcpStream, CallFault> {
    let mut addresses = tokio::net::lookup_host((bare(&url.host), url.port)).await.map_err(CallFault::Lookup)?;
    let first = addresses.next().ok_or_else(|| CallFault::Lookup(io::Error::other("no such host")))?;
    let mut fault = None;
    for address in std::iter::once(first).chain(addresses) {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // A request is one write, and its answer is waited for.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            // Go tells of the first.
            Err(error) => fault = fault.or(Some(CallFault::Connect(Some(address), error))),
        }
    }
    Err(fault.unwrap_or(CallFault::Closed))
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<Sender, CallFault> {
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HTTP_MAX_HEADER_BYTES);
    let (sender, connection) = builder.handshake(TokioIo::new(stream)).await.map_err(|error| broken(&error))?;
    // It ends with the last handle to it: that of the call, or that among idle connections.
    tokio::spawn(timed(Task::StepConnection, async move {
        let _ = connection.await;
    }));
    Ok(sender)
}

/// Why a connection brought no answer.
pub fn broken(error: &hyper::Error) -> CallFault {
    if error.is_incomplete_message() || error.is_canceled() {
        return CallFault::Closed;
    }
    CallFault::Broken(error.to_string())
}
