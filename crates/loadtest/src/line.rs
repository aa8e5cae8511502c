//! Ways to the server, each for one call at a time.

use std::rc::Rc;
use std::sync::Arc;

use alipes_client::grpc::{connect, unary};
use alipes_client::http::connection::HttpConnection;
use alipes_client::{ClientError, Kind, Received, Target, Wire};
use bytes::Bytes;
use h2::client::SendRequest;
use tokio::sync::Mutex;

use crate::plan::Prepared;

/// A connection of gRPC that several lines share; none where it is not open.
pub type Shared = Rc<Mutex<Option<SendRequest<Bytes>>>>;

/// A way to the server.
pub struct Line {
    target: Arc<Target>,
    way: Way,
}

enum Way {
    Http(Option<Box<HttpConnection>>),
    Grpc { shared: Shared, own: Option<SendRequest<Bytes>> },
}

impl Line {
    /// A line of its own over HTTP, one over `shared` over gRPC; it is not open yet.
    pub fn new(target: Arc<Target>, shared: Shared) -> Line {
        let way = match target.wire {
            Wire::Http => Way::Http(None),
            Wire::Grpc => Way::Grpc { shared, own: None },
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
            Way::Http(Some(_)) | Way::Grpc { own: Some(_), .. } => Ok(false),
            Way::Http(connection) => {
                let opened = HttpConnection::open(target, alipes_client::driver::Driver::Runtime).await?;
                *connection = Some(Box::new(opened));
                Ok(true)
            }
            Way::Grpc { shared, own } => {
                let mut shared = shared.lock().await;
                let is_new = shared.is_none();
                if is_new {
                    let (requests, connection) = connect::connect(target).await?;
                    tokio::task::spawn_local(async move {
                        // The open calls learn how it ended.
                        let _ = connection.await;
                    });
                    *shared = Some(requests);
                }
                own.clone_from(&shared);
                Ok(is_new)
            }
        }
    }

    /// Asks over the open line; one that broke is closed.
    ///
    /// # Errors
    /// What the server says, or a broken connection.
    pub async fn ask(&mut self, request: &Prepared) -> Result<Received, ClientError> {
        match (&mut self.way, request) {
            (Way::Http(way @ Some(_)), Prepared::Http(whole)) => {
                let connection = way.as_mut().expect("it is open");
                let (outcome, keep) = connection.exchange(whole).await;
                if !keep {
                    *way = None;
                }
                outcome
            }
            (Way::Grpc { shared, own }, Prepared::Grpc { head, message }) if own.is_some() => {
                let requests = own.clone().expect("it is open");
                let outcome =
                    unary::exchange(requests, &self.target, (**head).clone(), vec![message.clone()], false).await;
                if matches!(&outcome, Err(error) if matches!(error.kind, Kind::Broken | Kind::Tls)) {
                    *own = None;
                    *shared.lock().await = None;
                }
                outcome
            }
            _ => Err(ClientError::new(Kind::Connect, "the line is closed, or the request is for another protocol")),
        }
    }
}
