//! Requests that begin together, and when those of the next wave begin.

use std::cell::Cell;

use tokio::sync::Notify;

/// The wave that was sent last: the next one begins when each of its requests had enough responses, or is over.
#[derive(Debug, Default)]
pub struct Wave {
    missing: Cell<usize>,
    over: Notify,
}

impl Wave {
    /// Begins a wave of so many requests.
    pub fn begin(&self, requests: usize) {
        self.missing.set(requests);
    }

    /// A request of the wave had enough responses, or is over: said once of each.
    pub fn arrived(&self) {
        self.missing.set(self.missing.get().saturating_sub(1));
        if self.missing.get() == 0 {
            self.over.notify_one();
        }
    }

    /// Waits until all requests of the wave have arrived.
    pub async fn over(&self) {
        while self.missing.get() > 0 {
            self.over.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    async fn is_over(wave: &Wave) -> bool {
        tokio::time::timeout(Duration::from_millis(1), wave.over()).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_wave_is_over_when_all_have_arrived() {
        let wave = Wave::default();
        for requests in [3, 1, 2] {
            wave.begin(requests);
            for _ in 0..requests {
                assert!(!is_over(&wave).await);
                wave.arrived();
            }
            assert!(is_over(&wave).await);
        }
    }
}
