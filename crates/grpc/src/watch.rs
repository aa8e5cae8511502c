//! `Health/Watch`: the server's readiness now, and again whenever it changes.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alipes_net::phase::{Phase, Shutdown};
use alipes_protocol::codec::proto::health::HealthCheckResponse;
use alipes_service::Service;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tokio::time::{self, Interval, MissedTickBehavior};

use super::metadata::health_status;
use super::response::framed;
use super::status;

/// Interval between two checks. Readiness has many causes, and some models report theirs only on request.
const PERIOD: Duration = Duration::from_secs(1);

/// The body of a watch response.
pub(super) struct WatchBody {
    service: Arc<Service>,
    ticks: Interval,
    check: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
    reported: Option<bool>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: WatchPhase,
}

enum WatchPhase {
    Open,
    Ending(HeaderMap),
    Over,
}

impl WatchBody {
    pub(super) fn new(service: Arc<Service>, draining: Shutdown) -> WatchBody {
        let mut ticks = time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        WatchBody {
            service,
            ticks,
            check: None,
            reported: None,
            draining: Box::pin(draining.reached(Phase::Draining)),
            phase: WatchPhase::Open,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, WatchPhase::Over)
    }

    pub(super) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        match mem::replace(&mut self.phase, WatchPhase::Over) {
            WatchPhase::Over => return Poll::Ready(None),
            WatchPhase::Ending(trailers) => return Poll::Ready(Some(Frame::trailers(trailers))),
            WatchPhase::Open => self.phase = WatchPhase::Open,
        }
        if self.draining.as_mut().poll(context).is_ready() {
            self.phase = WatchPhase::Ending(status::failure(&status::shutting_down()));
            // The client is sent the change of readiness before its stream ends.
            return match self.report(false) {
                Some(frame) => Poll::Ready(Some(frame)),
                None => self.poll_frame(context),
            };
        }
        loop {
            if let Some(check) = &mut self.check {
                let Poll::Ready(ready) = check.as_mut().poll(context) else { return Poll::Pending };
                self.check = None;
                if let Some(frame) = self.report(ready) {
                    return Poll::Ready(Some(frame));
                }
            }
            if self.ticks.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
            let service = Arc::clone(&self.service);
            self.check = Some(Box::pin(async move { service.server_ready().await }));
        }
    }

    /// The message about a readiness, where that changed.
    fn report(&mut self, ready: bool) -> Option<Frame<Bytes>> {
        let changed = self.reported.replace(ready) != Some(ready);
        changed.then(|| Frame::data(framed(&HealthCheckResponse { status: health_status(ready).into() })))
    }
}
