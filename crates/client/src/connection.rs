//! A connection that calls go over, one after the other or, over gRPC, at the same time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::time::sleep;

use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::grpc::unary_connection::UnaryConnection;
use crate::grpc::{connect, unary};
use crate::http::connection::HttpConnection;
use crate::message::{Incoming, Outgoing, read};
use crate::socket::{self, Socket};
use crate::target::{Target, Wire};

/// Where nobody drove a connection for so long, the server's GOAWAY may lie unread.
const REST: Duration = Duration::from_millis(500);

/// Time in which what lies there is read.
const LOOK: Duration = Duration::from_millis(1);

/// An open connection.
pub enum Connection {
    /// HTTP/2, one call at a time.
    Unary(Box<UnaryConnection<Socket>>),
    /// HTTP/2; driven by a task of the runtime that it was opened on.
    Grpc {
        /// Opens calls.
        requests: SendRequest<Bytes>,
        /// End of the last call.
        used: Instant,
    },
    /// HTTP/1.1.
    Http(HttpConnection),
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// If nobody is there, or does not speak the protocol.
    pub async fn open(target: &Target, driver: Driver) -> Result<Connection, ClientError> {
        match (target.wire, driver) {
            (Wire::Http, _) => HttpConnection::open(target, driver).await.map(Connection::Http),
            (Wire::Grpc, Driver::Caller) => {
                let socket = socket::open(target, driver).await?;
                Ok(Connection::Unary(Box::new(UnaryConnection::new(socket))))
            }
            (Wire::Grpc, Driver::Runtime) => {
                let (requests, connection) = connect::connect(target).await?;
                tokio::spawn(async move {
                    // The open calls learn how it ended.
                    let _ = connection.await;
                });
                Ok(Connection::Grpc { requests, used: alipes_clock::now() })
            }
        }
    }

    /// Whether the server has not closed it meanwhile, as far as can be seen.
    pub async fn is_alive(&mut self) -> bool {
        match self {
            Connection::Unary(connection) => connection.is_alive().await,
            Connection::Http(connection) => connection.is_alive(),
            Connection::Grpc { requests, used } => {
                if alipes_clock::elapsed(*used) > REST {
                    sleep(LOOK).await;
                }
                requests.clone().ready().await.is_ok()
            }
        }
    }

    /// Asks.
    ///
    /// # Returns
    /// The answer, and whether the connection can be used again.
    pub async fn ask(
        &mut self,
        target: &Target,
        request: Outgoing,
        limit: Option<Duration>,
    ) -> (Result<Incoming, ClientError>, bool) {
        match self {
            Connection::Http(connection) => connection.ask(target, request).await,
            Connection::Unary(connection) => {
                let infer = request.infer;
                let outcome = connection.ask(target, request, limit).await;
                let broken = matches!(&outcome, Err(error) if matches!(error.kind, Kind::Broken | Kind::Tls));
                let intact = !broken && !connection.is_spent();
                (outcome.and_then(|message| read(message, infer)), intact)
            }
            Connection::Grpc { requests, used } => {
                let infer = request.infer;
                let outcome = unary::call(requests, target, request, limit).await;
                *used = alipes_clock::now();
                let intact = !matches!(&outcome, Err(error) if matches!(error.kind, Kind::Broken | Kind::Tls));
                (outcome.and_then(|message| read(message, infer)), intact)
            }
        }
    }
}
