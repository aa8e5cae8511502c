//! Work that would block a network thread, run on other threads, a few pieces at a time.

use std::cell::Cell;

use alipes_protocol::limits::OFFLOADED_AT_A_TIME;
use alipes_stats::priority::{self, Priority};
use tokio::sync::Semaphore;
use tokio::task;

static PERMITS: Semaphore = Semaphore::const_new(OFFLOADED_AT_A_TIME);

thread_local! {
    /// Whether this thread has stepped back for the network. It began with the priority of the network thread that
    /// started it.
    static HAS_STEPPED_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Runs work off the network threads once there is a permit; none where it panics.
pub async fn offload<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let permit = PERMITS.acquire().await.ok()?;
    // The permit is released with the work, also where the caller was cancelled.
    task::spawn_blocking(move || {
        if !HAS_STEPPED_BACK.replace(true) {
            priority::set(Priority::Compute);
        }
        let done = work();
        drop(permit);
        done
    })
    .await
    .ok()
}

/// Runs work here, or off the network threads where it takes long; none where it panics there.
pub async fn offload_if<T: Send + 'static>(takes_long: bool, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    // Boxed: hardly any work takes long, and unboxed, every future that awaits this one would always hold the room for
    // it.
    if takes_long { Box::pin(offload(work)).await } else { Some(work()) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn concurrent_pieces_are_limited_despite_cancelled_callers() {
        let (inside, most, done) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let work = || {
            let (inside, most, done) = (Arc::clone(&inside), Arc::clone(&most), Arc::clone(&done));
            offload(move || {
                most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                inside.fetch_sub(1, Ordering::SeqCst);
                done.fetch_add(1, Ordering::SeqCst);
            })
        };
        let mut left = JoinSet::new();
        (0..50).for_each(|_| drop(left.spawn(work())));
        task::yield_now().await;
        left.abort_all();
        for _ in 0..50 {
            assert_eq!(work().await, Some(()));
        }
        assert!(most.load(Ordering::SeqCst) <= OFFLOADED_AT_A_TIME);
        assert!(done.load(Ordering::SeqCst) >= 50);
    }

    #[tokio::test]
    async fn a_panic_releases_the_permit() {
        for _ in 0..2 * OFFLOADED_AT_A_TIME {
            assert_eq!(offload(|| panic!("broken")).await, None::<()>);
        }
        assert_eq!(offload(|| 7).await, Some(7));
    }
}
