//! The driver's management library (NVML), loaded once in a process.

use std::sync::OnceLock;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use nvml_wrapper::Nvml;

/// The library; none where there is no driver, or one that does not start.
///
/// It stays loaded: its start can take a second, and the driver may put GPUs to rest that nobody has open.
pub fn driver() -> Option<&'static Nvml> {
    static DRIVER: OnceLock<Option<Nvml>> = OnceLock::new();
    DRIVER.get_or_init(|| Nvml::init().ok()).as_ref()
}

/// What a question to the driver gives; none if it takes longer than the limit. A driver in trouble may never return,
/// and models that need no GPU are served all the same. The thread that asked is then left to it.
pub fn within<T: Send + 'static>(limit: Duration, ask: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (sender, answer) = channel();
    let work = move || drop(sender.send(ask()));
    let asking = thread::Builder::new().name("alipes-gpu".into()).spawn(work).ok()?;
    let answer = answer.recv_timeout(limit).ok()?;
    // It has answered, so this takes no time, and who forks next has no further thread.
    drop(asking.join());
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_time_is_the_answer() {
        assert_eq!(within(Duration::from_secs(3600), || 7), Some(7));
    }

    #[test]
    fn a_driver_that_does_not_return_is_waited_for_no_longer() {
        let (stuck, ends) = channel::<()>();
        assert_eq!(within(Duration::from_millis(1), move || ends.recv().is_ok()), None);
        drop(stuck);
    }
}
