//! Where the answers of awaited calls lie until an event loop takes them: one wake-up brings all.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};

/// The mailbox of one event loop, which watches its descriptor.
pub struct Mailbox<Letter> {
    letters: Mutex<Vec<Letter>>,
    bell: OwnedFd,
}

impl<Letter> Mailbox<Letter> {
    /// Empty.
    ///
    /// # Errors
    /// If the system has no descriptor left.
    pub fn new() -> io::Result<Mailbox<Letter>> {
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Mailbox { letters: Mutex::new(Vec::new()), bell })
    }

    /// Becomes readable with the first letter.
    pub fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    /// Puts an answer in.
    pub fn put(&self, letter: Letter) {
        let mut letters = self.letters.lock();
        letters.push(letter);
        if letters.len() == 1 {
            // A counter of 64 bits that is never above one: this cannot fail.
            let _ = rustix::io::write(&self.bell, &1u64.to_ne_bytes());
        }
    }

    /// Takes all that is there.
    pub fn take(&self) -> Vec<Letter> {
        let mut letters = self.letters.lock();
        let _ = rustix::io::read(&self.bell, &mut [0; 8]);
        std::mem::take(&mut letters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bell_rings_once_for_all_that_is_there() {
        let mailbox = Mailbox::new().unwrap();
        let rings = || rustix::io::read(mailbox.bell(), &mut [0; 8]).is_ok();
        assert!(!rings() && mailbox.take().is_empty());
        for number in 0..2 {
            mailbox.put(number);
        }
        assert_eq!(mailbox.take(), [0, 1]);
        assert!(!rings());
    }
}
