//! How long a caller waits for an answer.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::{Duration, Instant};

use tokio::time::{Sleep, sleep_until};

/// The limit of one caller. Its alarm goes on from one request to the next, and is set anew only when it rings: most
/// requests cost it no more than a look.
#[derive(Debug)]
pub struct Limit {
    span: Option<Duration>,
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Limit {
    /// No longer than this, or as long as it takes.
    pub fn new(span: Option<Duration>) -> Limit {
        Limit { span, alarm: None }
    }

    /// What the work comes to; `None` if it is not over in time, counted from `begun`.
    pub async fn within<T>(&mut self, begun: Instant, work: impl Future<Output = T>) -> Option<T> {
        let Some(span) = self.span else { return Some(work.await) };
        let deadline = tokio::time::Instant::from_std(begun + span);
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(outcome) = work.as_mut().poll(context) {
                return Poll::Ready(Some(outcome));
            }
            loop {
                ready!(alarm.as_mut().poll(context));
                if alarm.deadline() >= deadline {
                    return Poll::Ready(None);
                }
                alarm.as_mut().reset(deadline);
            }
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn an_alarm_serves_one_request_after_the_other() {
        let mut limit = Limit::new(Some(SPAN));
        let now = || tokio::time::Instant::now().into_std();
        for _ in 0..5 {
            let work = tokio::time::sleep(SPAN * 9 / 10);
            assert_eq!(limit.within(now(), work).await, Some(()));
        }
        let begun = now();
        assert_eq!(limit.within(begun, std::future::pending::<()>()).await, None);
        // The runtime's timers have ticks of a millisecond.
        assert!((SPAN..SPAN + Duration::from_millis(2)).contains(&(now() - begun)));
        assert_eq!(limit.within(now(), std::future::ready(7)).await, Some(7));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_work_takes_its_time() {
        let work = tokio::time::sleep(SPAN * 1000);
        assert_eq!(Limit::new(None).within(alipes_clock::now(), work).await, Some(()));
    }
}
