//! Steps that are called over HTTP/1.1: connections that stay open, time-outs, and attempts within a budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alipes_graph::{Failure, Graph, Reply, Url};
use alipes_protocol::limits::HTTP_MAX_HEADER_BYTES;
use alipes_request::budget::{Budget, Charge};
use alipes_stats::turn::{Task, timed};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use super::fault::CallFault;
use super::idle::{self, Sender};
use super::retries::Retries;

static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// The client of a graph's steps.
pub struct Remote {
    /// Its number among those of the process.
    number: u64,
    step_timeout: Option<Duration>,
    /// How connections are encrypted, or why none can be; none where no step asks for it.
    connector: Option<Result<TlsConnector, String>>,
    retries: Retries,
}

impl Remote {
    /// A client without connections.
    pub fn new(graph: &Graph) -> Remote {
        let is_encrypted = |service: &alipes_graph::Destination| match service {
            alipes_graph::Destination::Url(url) => url.is_encrypted,
            alipes_graph::Destination::Model(_) => false,
        };
        let connector = graph.services().iter().any(is_encrypted).then(|| connector(graph.roots.as_deref()));
        Remote {
            number: CLIENTS.fetch_add(1, Ordering::Relaxed),
            step_timeout: graph.step_timeout,
            connector,
            retries: Retries::default(),
        }
    }

    /// Calls a service, and says what its answer takes of the budget. Dropping the future ends the connection.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn call(
        &self,
        url: &Url,
        body: Bytes,
        headers: &HeaderMap,
        max_bytes: usize,
        budget: &Arc<Budget>,
    ) -> Result<(Reply<Bytes>, Charge), Failure> {
        let call = self.exchange(url, body, headers, max_bytes, budget);
        let outcome = match self.step_timeout {
            // Go's client tells a late body apart; for the caller who waits, both are the same.
            Some(time) => timeout(time, call).await.unwrap_or(Err(CallFault::Slow)),
            None => call.await,
        };
        if outcome.is_ok() {
            self.retries.answered();
        }
        outcome.map_err(|fault| fault.failure(url))
    }

    async fn exchange(
        &self,
        url: &Url,
        body: Bytes,
        headers: &HeaderMap,
        max_bytes: usize,
        budget: &Arc<Budget>,
    ) -> Result<(Reply<Bytes>, Charge), CallFault> {
        let server = server_of(url);
        let (mut sender, response) = self.send(url, &server, body, headers).await?;
        let status = response.status().as_u16();
        let mut charge = Charge::default();
        let body = read(response.into_body(), max_bytes, budget, &mut charge).await?;
        // Ready once the answer has been read to its end and the server does not close.
        if sender.ready().await.is_ok() {
            idle::put(self.number, &server, sender);
        }
        Ok((Reply { status, body }, charge))
    }

    /// Sends a request and waits for the head of the answer.
    async fn send(
        &self,
        url: &Url,
        server: &str,
        body: Bytes,
        headers: &HeaderMap,
    ) -> Result<(Sender, Response<Incoming>), CallFault> {
        let mut request = request(url, body, headers);
        // Connections that the server has closed meanwhile: hyper gives back what it has not begun to send.
        while let Some(mut sender) = idle::take(self.number, server) {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((sender, response)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(broken(&error.into_error())),
                },
            }
        }
        let mut sender = self.connect(url).await?;
        let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
        Ok((sender, response))
    }

    /// A connection, at the last of few attempts.
    async fn connect(&self, url: &Url) -> Result<Sender, CallFault> {
        let mut attempts = 1;
        loop {
            match self.connect_once(url).await {
                Err(fault) if fault.is_unsent() => match self.retries.delay(attempts) {
                    Some(delay) => sleep(delay).await,
                    None => return Err(fault),
                },
                outcome => return outcome,
            }
            attempts += 1;
        }
    }

    async fn connect_once(&self, url: &Url) -> Result<Sender, CallFault> {
        let stream = dial(url).await?;
        let Some(connector) = self.connector.as_ref().filter(|_| url.is_encrypted) else {
            return handshake(stream).await;
        };
        let connector = connector.as_ref().map_err(|reason| CallFault::Encrypt(reason.clone()))?;
        let name = ServerName::try_from(bare(&url.host).to_owned());
        let name = name.map_err(|error| CallFault::Encrypt(error.to_string()))?;
        let encrypted = connector.connect(name, stream).await;
        handshake(encrypted.map_err(|error| CallFault::Encrypt(format!("tls: {error}")))?).await
    }
}

fn connector(roots: Option<&str>) -> Result<TlsConnector, String> {
    let config = alipes_tls::client::config(roots, None, &[b"http/1.1"]).map_err(|error| error.to_string())?;
    Ok(TlsConnector::from(Arc::new(config)))
}

/// A server that can be connected to.
fn server_of(url: &Url) -> String {
    let scheme = if url.is_encrypted { "https" } else { "http" };
    format!("{scheme}://{}:{}", url.host, url.port)
}

/// An address of IPv6 without the brackets in which it stands in a URL.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

async fn dial(url: &Url) -> Result<TcpStream, CallFault> {
    let mut addresses = tokio::net::lookup_host((bare(&url.host), url.port)).await.map_err(CallFault::Lookup)?;
    let first = addresses.next().ok_or_else(|| CallFault::Lookup(std::io::Error::other("no such host")))?;
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

fn request(url: &Url, body: Bytes, headers: &HeaderMap) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = Method::POST;
    // Both were looked at as the graph was read.
    *request.uri_mut() = url.path.parse().unwrap_or_default();
    *request.headers_mut() = headers.clone();
    if let Ok(host) = HeaderValue::from_str(&url.authority) {
        request.headers_mut().insert(HOST, host);
    }
    request
}

fn broken(error: &hyper::Error) -> CallFault {
    if error.is_incomplete_message() || error.is_canceled() {
        return CallFault::Closed;
    }
    CallFault::Broken(error.to_string())
}

/// The whole of an answer's body.
async fn read(
    mut body: Incoming,
    max_bytes: usize,
    budget: &Arc<Budget>,
    charge: &mut Charge,
) -> Result<Bytes, CallFault> {
    let announced = body.size_hint().lower();
    if announced > max_bytes as u64 {
        return Err(CallFault::Large(max_bytes));
    }
    let mut first = Bytes::new();
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| CallFault::CutBody)?;
        let Ok(piece) = frame.into_data() else { continue };
        let length = first.len() + whole.len() + piece.len();
        if length > max_bytes {
            return Err(CallFault::Large(max_bytes));
        }
        charge.grow(budget, length).map_err(|error| CallFault::NoRoom(error.message))?;
        if first.is_empty() && whole.is_empty() {
            first = piece;
            continue;
        }
        whole.extend_from_slice(&std::mem::take(&mut first));
        whole.extend_from_slice(&piece);
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}
