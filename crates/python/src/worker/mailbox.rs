//! Answers to this process's calls: the first thread that waits fetches the mail for all threads that wait.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_link::{OutMessage, ReceivedMail};
use parking_lot::{Condvar, Mutex};

use super::link::Link;

/// One box per open call.
#[derive(Default)]
pub struct Mailbox {
    last: AtomicU64,
    state: Mutex<MailboxState>,
    changed: Condvar,
}

#[derive(Default)]
struct MailboxState {
    boxes: HashMap<u64, VecDeque<ReceivedMail>>,
    /// Somebody is fetching; the others wait for it.
    led: bool,
}

impl Mailbox {
    /// A number for a new call, whose answers are kept from now on.
    pub fn open(&self) -> u64 {
        let call = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.state.lock().boxes.insert(call, VecDeque::new());
        call
    }

    /// No further answer is wanted. Those that lie here are given back, as are those that come later.
    pub fn close(&self, link: &Link, call: u64) {
        if link.is_forked() {
            return; // another thread of the parent's may have held the lock, for ever here
        }
        let left = self.state.lock().boxes.remove(&call);
        self.changed.notify_all();
        for mail in left.into_iter().flatten() {
            link.release(mail.lease);
        }
    }

    /// The next answer to a call; waits for it, without the interpreter. `None`: none will come, or the call was closed
    /// meanwhile.
    pub fn next(&self, link: &Link, call: u64) -> Option<ReceivedMail> {
        let mut state = self.state.lock();
        loop {
            if let Some(mail) = state.boxes.get_mut(&call)?.pop_front() {
                return Some(mail);
            }
            if std::mem::replace(&mut state.led, true) {
                self.changed.wait(&mut state);
                continue;
            }
            drop(state);
            let lead = Lead(self);
            let fetched = link.end.next_mail(None);
            // Before the turn ends: the next leader must not wait for mail that lies here.
            self.deliver(link, fetched?);
            drop(lead);
            state = self.state.lock();
        }
    }

    fn deliver(&self, link: &Link, mail: ReceivedMail) {
        let lease = mail.lease;
        let unwanted = match self.state.lock().boxes.get_mut(&mail.call) {
            Some(letters) => {
                letters.push_back(mail);
                false
            }
            None => true,
        };
        if unwanted {
            // A release fits every link.
            let _ = link.end.send(&OutMessage::Released { lease });
        }
    }
}

/// The turn of the thread that fetches. At its end, however it comes, another thread may lead.
struct Lead<'a>(&'a Mailbox);

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.0.state.lock().led = false;
        self.0.changed.notify_all();
    }
}
