//! A request with all that its caller may say, and a caller who may leave.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use alipes_scheduler::{Priorities, Work};

#[derive(Debug, Clone)]
pub struct Request {
    pub id: usize,
    pub rows: u32,
    pub key: u64,
    pub priority: u64,
    pub timeout: Duration,
    pub deadline: Option<Instant>,
    gone: Rc<Cell<bool>>,
}

/// One of one row, of whom its caller says nothing.
pub fn request(id: usize) -> Request {
    let (gone, timeout) = (Rc::default(), Duration::ZERO);
    Request { id, rows: 1, key: 0, priority: 0, timeout, deadline: None, gone }
}

impl Request {
    pub fn rows(self, rows: u32) -> Request {
        Request { rows, ..self }
    }

    pub fn key(self, key: u64) -> Request {
        Request { key, ..self }
    }

    pub fn priority(self, priority: u64) -> Request {
        Request { priority, ..self }
    }

    pub fn timeout(self, timeout: Duration) -> Request {
        Request { timeout, ..self }
    }

    /// Its caller goes. The scheduler is not told.
    pub fn leave(&self) {
        self.gone.set(true);
    }
}

impl Work for Request {
    fn rows(&self) -> u32 {
        self.rows
    }

    fn key(&self) -> u64 {
        self.key
    }

    fn priority(&self) -> u64 {
        self.priority
    }

    fn timeout(&self) -> Duration {
        self.timeout
    }

    fn is_cancelled(&self) -> bool {
        self.gone.get()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }
}

/// So many levels of priority without limits.
pub fn levels(levels: u64, default_level: u64) -> Priorities {
    Priorities { levels, default_level, ..Priorities::default() }
}
