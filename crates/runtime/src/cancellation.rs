//! The wish that a load ends before its time.

use alipes_protocol::{Code, InferError};
use parking_lot::Mutex;

type Hook = Box<dyn FnOnce() + Send>;

/// Tells one load that it is to end, and ends what it waits for. Any thread may cancel.
#[derive(Default)]
pub struct Cancellation {
    wish: Mutex<Wish>,
}

#[derive(Default)]
struct Wish {
    is_made: bool,
    hook: Option<Hook>,
}

impl Cancellation {
    /// Has the load end.
    pub fn cancel(&self) {
        let mut wish = self.wish.lock();
        wish.is_made = true;
        let hook = wish.hook.take();
        drop(wish);
        if let Some(hook) = hook {
            hook();
        }
    }

    /// Whether the load is to end.
    pub fn is_cancelled(&self) -> bool {
        self.wish.lock().is_made
    }

    /// Returns where the load may go on.
    ///
    /// # Errors
    ///
    /// `Unavailable` where it is to end.
    pub fn check(&self) -> Result<(), InferError> {
        if self.is_cancelled() { Err(InferError::new(Code::Unavailable, "the load was cancelled")) } else { Ok(()) }
    }

    /// Has a cancellation call a function until the guard is dropped; at once where it has come. A load waits for one
    /// thing at a time, so a later function replaces an earlier one.
    pub fn on_cancel(&self, hook: impl FnOnce() + Send + 'static) -> OnCancel<'_> {
        let mut wish = self.wish.lock();
        if wish.is_made {
            drop(wish);
            hook();
        } else {
            wish.hook = Some(Box::new(hook));
        }
        OnCancel(self)
    }
}

/// Keeps a function with a cancellation.
#[must_use = "the function is dropped with its guard"]
pub struct OnCancel<'a>(&'a Cancellation);

impl Drop for OnCancel<'_> {
    fn drop(&mut self) {
        let hook = self.0.wish.lock().hook.take();
        drop(hook);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    fn counting(count: &Arc<AtomicU32>) -> impl FnOnce() + Send + 'static {
        let count = Arc::clone(count);
        move || {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_cancellation_calls_what_waits_once() {
        let (cancellation, calls) = (Cancellation::default(), Arc::default());
        assert!(cancellation.check().is_ok());
        let _waiting = cancellation.on_cancel(counting(&calls));
        cancellation.cancel();
        cancellation.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 1);
        assert_eq!(cancellation.check().unwrap_err().code, Code::Unavailable);
    }

    #[test]
    fn what_has_ended_before_is_not_called() {
        let (cancellation, calls) = (Cancellation::default(), Arc::default());
        drop(cancellation.on_cancel(counting(&calls)));
        cancellation.cancel();
        assert_eq!(calls.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_begins_after_the_cancellation_is_called_at_once() {
        let (cancellation, calls) = (Cancellation::default(), Arc::default());
        cancellation.cancel();
        let _waiting = cancellation.on_cancel(counting(&calls));
        assert_eq!(calls.load(Ordering::Relaxed), 1);
    }
}
