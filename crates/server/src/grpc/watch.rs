//! `Health/Watch`: the server's readiness now, and again whenever it has changed.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alipes_protocol::codec::proto::health::HealthCheckResponse;
use bytes::Bytes;
use http::HeaderMap;
use http_body::Frame;
use tokio::sync::watch;
use tokio::time::{self, Interval, MissedTickBehavior};

use super::answer::framed;
use super::metadata::health_status;
use super::status;
use crate::service::Service;

/// How often a watcher looks. Readiness has many causes, and models that have a say in it tell only when asked.
const PERIOD: Duration = Duration::from_secs(1);

/// The body of the answer to a watcher.
pub(super) struct WatchAnswer {
    service: Arc<Service>,
    ticks: Interval,
    looking: Option<Pin<Box<dyn Future<Output = bool> + Send>>>,
    told: Option<bool>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: Phase,
}

enum Phase {
    Open,
    Ending(HeaderMap),
    Over,
}

impl WatchAnswer {
    pub(super) fn new(service: Arc<Service>, mut draining: watch::Receiver<bool>) -> WatchAnswer {
        let mut ticks = time::interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        WatchAnswer {
            service,
            ticks,
            looking: None,
            told: None,
            draining: Box::pin(async move { drop(draining.wait_for(|draining| *draining).await) }),
            phase: Phase::Open,
        }
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(super) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        match mem::replace(&mut self.phase, Phase::Over) {
            Phase::Over => return Poll::Ready(None),
            Phase::Ending(trailers) => return Poll::Ready(Some(Frame::trailers(trailers))),
            Phase::Open => self.phase = Phase::Open,
        }
        if self.draining.as_mut().poll(context).is_ready() {
            self.phase = Phase::Ending(status::failure(&status::shutting_down()));
            // The watcher learns why its stream ends, unless it knows already.
            return match self.tell(false) {
                Some(frame) => Poll::Ready(Some(frame)),
                None => self.poll_frame(context),
            };
        }
        loop {
            if let Some(looking) = &mut self.looking {
                let Poll::Ready(ready) = looking.as_mut().poll(context) else { return Poll::Pending };
                self.looking = None;
                if let Some(frame) = self.tell(ready) {
                    return Poll::Ready(Some(frame));
                }
            }
            if self.ticks.poll_tick(context).is_pending() {
                return Poll::Pending;
            }
            let service = Arc::clone(&self.service);
            self.looking = Some(Box::pin(async move { service.server_ready().await }));
        }
    }

    /// What the watcher is told, if it is news.
    fn tell(&mut self, ready: bool) -> Option<Frame<Bytes>> {
        let news = self.told.replace(ready) != Some(ready);
        news.then(|| Frame::data(framed(&HealthCheckResponse { status: health_status(ready).into() })))
    }
}
