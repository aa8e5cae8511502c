//! Asking the model of a worker whether it is ready: its `is_ready`, where it has one.
//!
//! One question at a time: a caller that asks while a question is open waits for the answer to that question. A worker
//! answers on a thread of its own, so that a worker that executes does not look dead.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Longest wait for an answer. Source: Triton's Python backend waits as long.
pub const CHECK_TIMEOUT: Duration = Duration::from_secs(5);

/// What is asked of one worker.
#[derive(Default)]
pub struct Checks {
    /// The model of the present process can be asked.
    offered: AtomicBool,
    state: Mutex<CheckState>,
}

#[derive(Default)]
struct CheckState {
    /// Number of the latest question, over all processes of the worker.
    number: u64,
    open: Option<OpenCheck>,
}

/// A question that is not answered.
struct OpenCheck {
    sent_at: Instant,
    waiting: Vec<oneshot::Sender<bool>>,
    /// The log says that the answer is late.
    reported: bool,
}

/// An answer that is on its way, if it is not known at once.
pub enum Answer {
    /// Nobody need be asked.
    Known(bool),
    /// The process was asked.
    Coming {
        /// Longest wait for it.
        until: Instant,
        /// Where it arrives.
        answer: oneshot::Receiver<bool>,
    },
}

impl Checks {
    /// The worker has started; its model can be asked, or cannot.
    pub fn offer(&self, offered: bool) {
        self.offered.store(offered, Ordering::Release);
    }

    /// Whether the model can be asked.
    pub fn is_offered(&self) -> bool {
        self.offered.load(Ordering::Acquire)
    }

    /// The worker has answered a question. One that nobody has open is passed over.
    pub fn answered(&self, number: u64, ready: bool) {
        let mut state = self.state.lock();
        if state.number != number {
            return;
        }
        let open = state.open.take();
        drop(state);
        for waiting in open.into_iter().flat_map(|open| open.waiting) {
            let _ = waiting.send(ready); // who has gone meanwhile misses nothing
        }
    }

    /// The worker has ended: nobody answers.
    pub fn abandon(&self) {
        self.offer(false);
        let open = self.state.lock().open.take();
        drop(open);
    }

    /// Joins those who wait, or says under which number to ask.
    pub fn join(&self) -> (Answer, Option<u64>) {
        let (sender, answer) = oneshot::channel();
        let mut state = self.state.lock();
        if let Some(open) = &mut state.open {
            let until = open.sent_at + CHECK_TIMEOUT;
            // A caller that comes after the time-out need not wait for an answer that others have waited for in vain.
            if alipes_clock::now() >= until {
                return (Answer::Known(false), None);
            }
            open.waiting.push(sender);
            return (Answer::Coming { until, answer }, None);
        }
        let sent_at = alipes_clock::now();
        state.number += 1;
        state.open = Some(OpenCheck { sent_at, waiting: vec![sender], reported: false });
        (Answer::Coming { until: sent_at + CHECK_TIMEOUT, answer }, Some(state.number))
    }

    /// Whether the log is yet to say that the answer is late.
    pub fn is_news(&self) -> bool {
        let mut state = self.state.lock();
        state.open.as_mut().is_some_and(|open| !std::mem::replace(&mut open.reported, true))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn coming(answer: Answer) -> oneshot::Receiver<bool> {
        match answer {
            Answer::Coming { answer, .. } => answer,
            Answer::Known(ready) => panic!("known at once: {ready}"),
        }
    }

    #[test]
    fn those_who_ask_while_a_question_is_open_share_its_answer() {
        let checks = Checks::default();
        let (first, number) = checks.join();
        let (second, again) = checks.join();
        assert_eq!((number, again), (Some(1), None));
        checks.answered(1, true);
        assert_eq!(coming(first).try_recv(), Ok(true));
        assert_eq!(coming(second).try_recv(), Ok(true));
        assert_eq!(checks.join().1, Some(2));
    }

    #[test]
    fn an_answer_to_another_question_answers_nobody() {
        let checks = Checks::default();
        let (answer, _) = checks.join();
        checks.answered(7, true);
        checks.answered(0, true);
        let mut answer = coming(answer);
        assert!(answer.try_recv().is_err());
        checks.answered(1, false);
        assert_eq!(answer.try_recv(), Ok(false));
    }

    #[test]
    fn a_worker_that_ends_leaves_nobody_waiting() {
        let checks = Checks::default();
        let (answer, _) = checks.join();
        checks.abandon();
        assert!(coming(answer).try_recv().is_err());
        assert_eq!(checks.join().1, Some(2));
    }

    #[test]
    fn a_late_answer_is_awaited_and_reported_once() {
        let checks = Checks::default();
        let _ = checks.join();
        let long_ago = alipes_clock::now().checked_sub(CHECK_TIMEOUT).unwrap();
        checks.state.lock().open.as_mut().unwrap().sent_at = long_ago;
        assert!(matches!(checks.join(), (Answer::Known(false), None)));
        assert!(checks.is_news() && !checks.is_news());
        checks.answered(1, true);
        assert!(checks.join().1.is_some());
    }
}
