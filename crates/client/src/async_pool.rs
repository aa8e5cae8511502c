//! Calls that are awaited: many at a time, driven by the process's runtime.

use std::sync::Arc;
use std::time::Duration;

use alipes_protocol::limits::CLIENT_MAX_HTTP_CONNECTIONS;
use bytes::Bytes;
use h2::client::SendRequest;
use parking_lot::Mutex;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, oneshot};

use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::exchange::{exchange, late};
use crate::grpc::unary;
use crate::message::read;
use crate::message::{Incoming, Outgoing};
use crate::runtime;
use crate::target::{Target, Wire};

/// The connections to one server: over gRPC a single one for all calls, over HTTP one for each call at a time.
pub struct AsyncPool {
    target: Arc<Target>,
    shared: AsyncMutex<Option<SendRequest<Bytes>>>,
    idle: Mutex<Vec<Connection>>,
    connections: Semaphore,
}

/// Withdraws a call that was begun.
pub struct Withdrawal(Mutex<Option<oneshot::Sender<()>>>);

impl Withdrawal {
    /// Withdraws it: its outcome comes no more, if it is not there yet.
    pub fn withdraw(&self) {
        if let Some(withdraw) = self.0.lock().take() {
            // An error says that the call has ended.
            let _ = withdraw.send(());
        }
    }
}

/// What receives the outcome of a call: also where its work panics, so that nobody awaits it for ever.
struct Done<F: FnOnce(Result<Incoming, ClientError>)>(Option<F>);

impl<F: FnOnce(Result<Incoming, ClientError>)> Done<F> {
    fn receive(&mut self, outcome: Result<Incoming, ClientError>) {
        if let Some(done) = self.0.take() {
            done(outcome);
        }
    }
}

impl<F: FnOnce(Result<Incoming, ClientError>)> Drop for Done<F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.receive(Err(ClientError::broken("the client's work on the call has panicked")));
        }
    }
}

impl AsyncPool {
    /// No connections yet.
    pub fn new(target: Arc<Target>) -> Arc<AsyncPool> {
        Arc::new(AsyncPool {
            target,
            shared: AsyncMutex::new(None),
            idle: Mutex::new(Vec::new()),
            connections: Semaphore::new(CLIENT_MAX_HTTP_CONNECTIONS),
        })
    }

    /// Begins a call; `done` receives its outcome, on the runtime's thread, unless it is withdrawn.
    ///
    /// # Errors
    /// If there can be no runtime.
    pub fn call(
        self: &Arc<Self>,
        request: Outgoing,
        limit: Option<Duration>,
        done: impl FnOnce(Result<Incoming, ClientError>) + Send + 'static,
    ) -> Result<Withdrawal, ClientError> {
        let pool = self.clone();
        let mut done = Done(Some(done));
        let (withdraw, withdrawn) = oneshot::channel();
        let work = async move {
            tokio::select! {
                biased;
                // Who drops the other end does not withdraw the call.
                Ok(()) = withdrawn => {}
                outcome = pool.ask(request, limit) => done.receive(outcome),
            }
        };
        runtime::begin_work(work).map_err(|error| ClientError::new(Kind::Connect, error.to_string()))?;
        Ok(Withdrawal(Mutex::new(Some(withdraw))))
    }

    async fn ask(&self, request: Outgoing, limit: Option<Duration>) -> Result<Incoming, ClientError> {
        match self.target.wire {
            Wire::Grpc => self.over_grpc(request, limit).await,
            Wire::Http => self.over_http(request, limit).await,
        }
    }

    /// Closes the connections that no call uses.
    pub fn close(&self) {
        self.idle.lock().clear();
        if let Ok(mut shared) = self.shared.try_lock() {
            *shared = None;
        }
    }

    async fn over_grpc(&self, request: Outgoing, limit: Option<Duration>) -> Result<Incoming, ClientError> {
        let infer = request.infer;
        let work = async {
            let requests = self.requests().await?;
            unary::call(&requests, &self.target, request, limit).await
        };
        let message = match limit {
            None => work.await?,
            Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| late(&self.target, limit))??,
        };
        read(message, infer)
    }

    /// The connection that all calls share, opened by the first and again where it was closed.
    async fn requests(&self) -> Result<SendRequest<Bytes>, ClientError> {
        let mut shared = self.shared.lock().await;
        if let Some(requests) = shared.as_ref()
            && let Ok(ready) = requests.clone().ready().await
        {
            return Ok(ready);
        }
        *shared = None;
        match Connection::open(&self.target, Driver::Runtime).await? {
            Connection::Grpc { requests, .. } => Ok(shared.insert(requests).clone()),
            Connection::Http(_) | Connection::Unary(_) => unreachable!("the target says which kind"),
        }
    }

    async fn over_http(&self, request: Outgoing, limit: Option<Duration>) -> Result<Incoming, ClientError> {
        let work = async {
            let _permit = self.connections.acquire().await;
            let connection = self.idle.lock().pop();
            let (outcome, connection) = exchange(&self.target, Driver::Runtime, connection, request, None).await;
            self.idle.lock().extend(connection);
            outcome
        };
        match limit {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.map_err(|_| late(&self.target, limit))?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_panics_is_an_error_and_a_call_that_is_withdrawn_is_none() {
        let outcomes = Mutex::new(Vec::new());
        let done = || Done(Some(|outcome: Result<Incoming, ClientError>| outcomes.lock().push(outcome.is_err())));
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _done = done();
            panic!("in the middle of a call");
        }));
        assert!(panicked.is_err());
        assert_eq!(*outcomes.lock(), [true]);
        drop(done());
        assert_eq!(outcomes.lock().len(), 1);
    }
}
