//! Fuzzers of whole connections: what clients send goes through the HTTP library, the limits, the routes, the decoders
//! and a model, and comes back as an answer.

mod grpc;
mod http;
mod strict_http;

use std::sync::Arc;
use std::time::Duration;

use alipes_net::policy::ListenerKind;
use alipes_runtime::executor::run_queue::RunQueue;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::pace::Pace;
use alipes_spec::{ConnectionSpec, ExecutionThreads, KeepaliveSpec};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::common::{Echo, model};
use crate::memory::Endpoint;

/// Longer than anything takes at these endpoints, by a clock that jumps.
const LONG: Duration = Duration::from_secs(600);

/// Inputs where nobody searches: each is two connections.
const INPUTS: u32 = 500;

/// A model that runs on the thread of its connections, so that the clock does not jump while it runs elsewhere.
fn quick(name: &str, decoupled: bool) -> Arc<ModelVersion> {
    let mut version = model(name, decoupled, Echo);
    Arc::get_mut(&mut version).unwrap().pace = Pace::of(ExecutionThreads::Network);
    version
}

/// An endpoint with an event loop of its own, both kept from input to input.
struct Server {
    // Before the loop that it lives on.
    endpoint: Endpoint,
    runtime: Runtime,
}

impl Server {
    fn open(kind: ListenerKind) -> Server {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let limits = ConnectionSpec {
            header_timeout_s: 4.0,
            stall_timeout_s: 5.0,
            idle_timeout_s: 60.0,
            ..ConnectionSpec::default()
        };
        let models = [quick("echo", false), quick("many", true)];
        let endpoint = runtime.block_on(async {
            tokio::spawn(RunQueue::open().serve());
            Endpoint::open(kind, limits, KeepaliveSpec::default(), models)
        });
        // Nobody answers for the control plane.
        endpoint.service.control.close();
        Server { endpoint, runtime }
    }

    /// What comes back for bytes that a client sends in these pieces before it waits, and whether the server closes the
    /// connection by itself.
    fn answer(&self, pieces: &[&[u8]]) -> (Vec<u8>, bool) {
        self.runtime.block_on(async {
            let mut connection = self.endpoint.connect();
            for piece in pieces {
                if !connection.send(piece).await {
                    break;
                }
                // The server's task has its turn before the next piece is sent, so that each piece arrives by itself.
                tokio::task::yield_now().await;
            }
            let mut answer = Vec::new();
            let is_closed = tokio::time::timeout(LONG, connection.read_rest(&mut answer)).await.is_ok();
            drop(connection);
            sleep(LONG).await;
            (answer, is_closed)
        })
    }

    /// Nothing is left of the calls.
    fn check_idle(&self) {
        assert_eq!(self.endpoint.service.budget.used(), 0, "bytes are still charged");
        assert!(self.endpoint.service.inflight.wait_empty(alipes_clock::now()), "requests are still counted");
    }
}
