//! Calls that are waited for: the caller's thread drives the socket itself, so that no other has to be woken.
//!
//! A *pooled connection* has a small runtime of its own. A call takes an idle one, or opens a new one, and returns it;
//! threads therefore never wait for each other.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_protocol::limits::CLIENT_MAX_IDLE_CONNECTIONS;
use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::exchange::exchange;
use crate::message::{Incoming, Outgoing};
use crate::target::Target;
use crate::waiting::until;

/// The pooled connections to one server.
pub struct Pool {
    target: Arc<Target>,
    idle: Mutex<Vec<PooledConnection>>,
}

struct PooledConnection {
    // Goes first: what it holds is registered with the runtime.
    connection: Option<Connection>,
    runtime: Runtime,
}

type Outcome = (Result<Incoming, ClientError>, Option<Connection>);

/// A call on its way; dropped before it has ended, it is withdrawn together with its connection.
pub struct Call {
    work: Pin<Box<dyn Future<Output = Outcome> + Send>>,
    end: Option<Instant>,
    runtime: Option<Runtime>,
    pool: Arc<Pool>,
}

impl Pool {
    /// No connections yet.
    pub fn new(target: Arc<Target>) -> Arc<Pool> {
        Arc::new(Pool { target, idle: Mutex::new(Vec::new()) })
    }

    /// Begins a call; it goes on while somebody waits for it.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn call(self: &Arc<Self>, request: Outgoing, limit: Option<Duration>) -> Result<Call, ClientError> {
        let idle = self.idle.lock().pop();
        let pooled = idle.map_or_else(PooledConnection::new, Ok)?;
        let target = self.target.clone();
        let end = limit.and_then(|limit| alipes_clock::now().checked_add(limit));
        let work = Box::pin(async move { exchange(&target, Driver::Caller, pooled.connection, request, limit).await });
        Ok(Call { work, end, runtime: Some(pooled.runtime), pool: self.clone() })
    }

    /// Closes the connections that nobody uses now.
    pub fn close(&self) {
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    fn give_back(&self, pooled: PooledConnection) {
        let mut idle = self.idle.lock();
        if idle.len() < CLIENT_MAX_IDLE_CONNECTIONS {
            idle.push(pooled);
        }
    }
}

impl PooledConnection {
    fn new() -> Result<PooledConnection, ClientError> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build();
        let runtime = runtime.map_err(|error| ClientError::new(Kind::Connect, error.to_string()))?;
        Ok(PooledConnection { connection: None, runtime })
    }
}

impl Call {
    /// Drives the call for a while; `None` where it has not ended.
    pub fn wait(&mut self, slice: Duration) -> Option<Result<Incoming, ClientError>> {
        let runtime = self.runtime.take()?;
        let work = &mut self.work;
        let now = alipes_clock::now();
        let end = now.checked_add(slice).unwrap_or(now);
        let end = self.end.map_or(end, |last| last.min(end));
        let outcome = until(end, || runtime.block_on(async { timeout(slice, work).await.ok() }));
        match outcome {
            None => {
                self.runtime = Some(runtime);
                None
            }
            Some((answer, connection)) => {
                if connection.is_some() {
                    self.pool.give_back(PooledConnection { connection, runtime });
                }
                Some(answer)
            }
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            // The work goes before the runtime that its socket is registered with, which waits for no resolver.
            self.work = Box::pin(std::future::pending());
            runtime.shutdown_background();
        }
    }
}
