//! Steps that are called over HTTP/1.1: connections that stay open, time-outs, and attempts within a budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alipes_graph::{Failure, Graph, Reply, Url};
use alipes_request::budget::{Budget, Charge};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderValue};
use hyper::{HeaderMap, Method, Request, Response};
use tokio::time::{sleep, timeout};

use super::connect::{Connections, broken};
use super::fault::CallFault;
use super::idle::{self, Sender};
use super::retries::Retries;

static CLIENTS: AtomicU64 = AtomicU64::new(0);

/// One call of a step.
pub struct StepCall<'a> {
    /// Where it goes.
    pub url: &'a Url,
    /// What is sent.
    pub body: Bytes,
    /// What the step sees of the request's headers.
    pub headers: &'a HeaderMap,
    /// What its answer may take.
    pub room: AnswerRoom<'a>,
}

/// The memory that the answer of a step may take.
#[derive(Clone, Copy)]
pub struct AnswerRoom<'a> {
    /// Most bytes of its body.
    pub max_bytes: usize,
    /// Counts them among all bytes in flight.
    pub budget: &'a Arc<Budget>,
}

/// The client of a graph's steps.
pub struct Remote {
    /// Its number among those of the process.
    number: u64,
    step_timeout: Option<Duration>,
    connections: Connections,
    retries: Retries,
}

impl Remote {
    /// A client without connections.
    pub fn new(graph: &Graph) -> Remote {
        Remote {
            number: CLIENTS.fetch_add(1, Ordering::Relaxed),
            step_timeout: graph.step_timeout,
            connections: Connections::new(graph),
            retries: Retries::default(),
        }
    }

    /// Calls a service, and says what its answer takes of the budget. Dropping the future ends the connection.
    ///
    /// # Errors
    ///
    /// There is no answer.
    pub async fn call(&self, call: StepCall<'_>) -> Result<(Reply<Bytes>, Charge), Failure> {
        let url = call.url;
        let exchange = self.exchange(call);
        let outcome = match self.step_timeout {
            // Go's client tells a late body apart; for the caller who waits, both are the same.
            Some(time) => timeout(time, exchange).await.unwrap_or(Err(CallFault::Slow)),
            None => exchange.await,
        };
        if outcome.is_ok() {
            self.retries.answered();
        }
        outcome.map_err(|fault| fault.failure(url))
    }

    async fn exchange(&self, call: StepCall<'_>) -> Result<(Reply<Bytes>, Charge), CallFault> {
        let StepCall { url, body, headers, room } = call;
        let server = server_of(url);
        let (mut sender, response) = self.send(url, &server, request(url, body, headers)).await?;
        let status = response.status().as_u16();
        let (body, charge) = room.read(response.into_body()).await?;
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
        mut request: Request<Full<Bytes>>,
    ) -> Result<(Sender, Response<Incoming>), CallFault> {
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
            match self.connections.open(url).await {
                Err(fault) if fault.is_unsent() => match self.retries.delay(attempts) {
                    Some(delay) => sleep(delay).await,
                    None => return Err(fault),
                },
                outcome => return outcome,
            }
            attempts += 1;
        }
    }
}

impl AnswerRoom<'_> {
    /// The whole of an answer's body, and what it takes of the budget.
    async fn read(self, mut body: Incoming) -> Result<(Bytes, Charge), CallFault> {
        let AnswerRoom { max_bytes, budget } = self;
        if body.size_hint().lower() > max_bytes as u64 {
            return Err(CallFault::Large(max_bytes));
        }
        let (mut first, mut whole, mut charge) = (Bytes::new(), BytesMut::new(), Charge::default());
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
        Ok((if whole.is_empty() { first } else { whole.freeze() }, charge))
    }
}

/// A server that can be connected to.
fn server_of(url: &Url) -> String {
    let scheme = if url.is_encrypted { "https" } else { "http" };
    format!("{scheme}://{}:{}", url.host, url.port)
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
