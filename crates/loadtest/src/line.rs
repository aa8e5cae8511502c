//! Ways to the server, each for one request at a time.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use alipes_client::driver::Driver;
use alipes_client::grpc::local_stream::LocalStream;
use alipes_client::grpc::unary_connection::shared::SharedConnection;
use alipes_client::grpc::{connect, unary};
use alipes_client::http::connection::HttpConnection;
use alipes_client::{ClientError, Kind, Received, Target, Wire, socket};
use bytes::Bytes;
use h2::client::SendRequest;
use tokio::sync::Mutex;

use crate::answers::Answers;
use crate::prepared::Prepared;

/// A connection of gRPC.
#[derive(Clone)]
pub enum Link {
    /// For streams, and for messages that are better not copied.
    Http2(SendRequest<Bytes>),
    /// For small messages: it takes less of the processor's time.
    Calls(SharedConnection),
}

/// A connection of gRPC that several lines share; none where it is not open.
pub type Shared = Rc<Mutex<Option<Link>>>;

/// A way to the server.
pub struct Line {
    target: Arc<Target>,
    way: Way,
}

enum Way {
    Http(Option<Box<HttpConnection>>),
    Grpc { shared: Shared, own: Option<Link>, stream: Option<Box<LocalStream>>, is_small: bool },
}

impl Line {
    /// A line of its own over HTTP, one over `shared` over gRPC; it is not open yet. All calls over it are small, or
    /// some may be anything.
    pub fn new(target: Arc<Target>, shared: Shared, is_small: bool) -> Line {
        let way = match target.wire {
            Wire::Http => Way::Http(None),
            Wire::Grpc => Way::Grpc { shared, own: None, stream: None, is_small },
        };
        Line { target, way }
    }

    /// Opens it where it is not open.
    ///
    /// # Errors
    /// If nobody is there.
    ///
    /// # Returns
    /// Whether a connection was opened.
    pub async fn open(&mut self) -> Result<bool, ClientError> {
        let Line { target, way } = self;
        match way {
            Way::Http(Some(_)) => Ok(false),
            Way::Grpc { own: Some(link), .. } if !link.is_spent() => Ok(false),
            Way::Http(connection) => {
                let opened = HttpConnection::open(target, Driver::Runtime).await?;
                *connection = Some(Box::new(opened));
                Ok(true)
            }
            Way::Grpc { shared, own, is_small, .. } => {
                let mut shared = shared.lock().await;
                let is_new = shared.as_ref().is_none_or(Link::is_spent);
                if is_new {
                    *shared = None;
                    *shared = Some(Link::open(target, *is_small).await?);
                }
                own.clone_from(&shared);
                Ok(is_new)
            }
        }
    }

    /// Asks over the open line; one that broke is closed. What a stream answers is noted in `answers` as it comes.
    ///
    /// # Errors
    /// What the server says, or a broken connection.
    pub async fn ask(&mut self, request: &Prepared, answers: &mut Answers) -> Result<Received, ClientError> {
        match (&mut self.way, request) {
            (Way::Http(way @ Some(_)), Prepared::Http(whole)) => {
                let connection = way.as_mut().expect("it is open");
                let (outcome, keep) = connection.exchange(whole).await;
                if !keep {
                    *way = None;
                }
                outcome
            }
            (Way::Grpc { shared, own: own @ Some(_), stream, .. }, request) => {
                let outcome = match (own.as_ref().expect("it is open"), request) {
                    (Link::Calls(connection), Prepared::Grpc { method, message, .. }) => {
                        connection.ask(&self.target, method, message.clone()).await
                    }
                    (Link::Http2(requests), Prepared::Grpc { head, message, .. }) => {
                        let (requests, pieces) = (requests.clone(), vec![message.clone()]);
                        unary::exchange(requests, &self.target, (**head).clone(), pieces, false).await
                    }
                    (Link::Http2(requests), Prepared::Stream { head, message, decoupled }) => {
                        let request = StreamRequest { head, message, decoupled: *decoupled };
                        request.over(requests.clone(), stream, answers).await
                    }
                    _ => Err(unfit()),
                };
                if matches!(&outcome, Err(error) if matches!(error.kind, Kind::Broken | Kind::Tls)) {
                    // A connection for calls knows by itself whether it is of further use.
                    if matches!(own.take(), Some(Link::Http2(_))) {
                        *shared.lock().await = None;
                    }
                }
                outcome
            }
            _ => Err(unfit()),
        }
    }

    /// Gives up what is under way: its answer must not be taken for the next request's.
    pub fn cut(&mut self) {
        match &mut self.way {
            Way::Http(connection) => *connection = None,
            Way::Grpc { stream, .. } => *stream = None,
        }
    }
}

impl Link {
    async fn open(target: &Target, is_small: bool) -> Result<Link, ClientError> {
        if is_small {
            let (connection, driver) = SharedConnection::new(socket::open(target, Driver::Runtime).await?);
            tokio::task::spawn_local(driver);
            return Ok(Link::Calls(connection));
        }
        let (requests, connection) = connect::connect(target).await?;
        tokio::task::spawn_local(async move {
            // The open calls learn how it ended.
            let _ = connection.await;
        });
        Ok(Link::Http2(requests))
    }

    /// Whether no further call can be made.
    fn is_spent(&self) -> bool {
        match self {
            Link::Http2(_) => false,
            Link::Calls(connection) => connection.is_spent(),
        }
    }
}

fn unfit() -> ClientError {
    ClientError::new(Kind::Connect, "the line is closed, or the request is for another protocol")
}

/// A request on a stream.
struct StreamRequest<'a> {
    head: &'a http::Request<()>,
    message: &'a Bytes,
    decoupled: bool,
}

impl StreamRequest<'_> {
    /// Asks over the stream, which is opened where it is not open.
    async fn over(
        &self,
        requests: SendRequest<Bytes>,
        open: &mut Option<Box<LocalStream>>,
        answers: &mut Answers,
    ) -> Result<Received, ClientError> {
        let mut stream = match open.take() {
            Some(stream) => stream,
            None => Box::new(LocalStream::open(requests, self.head.clone()).await?),
        };
        stream.send(self.message.clone()).await?;
        let sent = alipes_clock::now();
        let (outcome, keep) = self.receive(&mut stream, sent, answers).await?;
        if keep {
            *open = Some(stream);
        }
        outcome
    }

    /// # Returns
    /// The last answer that says something, and whether nothing more can come of this request.
    async fn receive(
        &self,
        stream: &mut LocalStream,
        sent: Instant,
        answers: &mut Answers,
    ) -> Result<(Result<Received, ClientError>, bool), ClientError> {
        let (mut failure, mut last) = (None, None);
        loop {
            let (message, mark) = stream.receive().await?;
            let now = alipes_clock::now();
            // Where the server does not say it, a model that is not decoupled has one response.
            let is_over = mark.last.unwrap_or(!self.decoupled);
            if !mark.error.is_empty() {
                // What kind of error it was is not said on a stream.
                let error = ClientError::new(Kind::Refused(2), mark.error);
                if is_over || mark.last.is_none() {
                    return Ok((Err(error), is_over));
                }
                failure.get_or_insert(error);
            } else if !(mark.is_empty && is_over && self.decoupled) {
                answers.add(now, message.len());
                last = Some(message);
            }
            if is_over {
                let first = answers.first().unwrap_or(now);
                let body = last.unwrap_or_default();
                return Ok((failure.map_or(Ok(Received { body, sent, first, last: now }), Err), true));
            }
        }
    }
}
