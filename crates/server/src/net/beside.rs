//! Work that would hold a network thread up, done beside it, a few pieces at a time.

use alipes_protocol::limits::COMPRESSIONS_AT_A_TIME;
use tokio::sync::Semaphore;
use tokio::task;

static TURNS: Semaphore = Semaphore::const_new(COMPRESSIONS_AT_A_TIME);

/// Does something beside the network threads, in its turn; none where it did not come to its end.
pub async fn beside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let turn = TURNS.acquire().await.ok()?;
    // The turn ends with the work, also where nobody waits for it any more.
    task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    })
    .await
    .ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::task::JoinSet;

    use super::*;

    #[tokio::test]
    async fn only_so_many_pieces_of_work_are_done_at_a_time_also_when_nobody_waits_for_them() {
        let (inside, most, done) =
            (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
        let work = || {
            let (inside, most, done) = (Arc::clone(&inside), Arc::clone(&most), Arc::clone(&done));
            beside(move || {
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
        assert!(most.load(Ordering::SeqCst) <= COMPRESSIONS_AT_A_TIME);
        assert!(done.load(Ordering::SeqCst) >= 50);
    }

    #[tokio::test]
    async fn a_turn_that_ends_in_a_panic_is_given_back() {
        for _ in 0..2 * COMPRESSIONS_AT_A_TIME {
            assert_eq!(beside(|| panic!("broken")).await, None::<()>);
        }
        assert_eq!(beside(|| 7).await, Some(7));
    }
}
