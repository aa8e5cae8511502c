//! Who still looks at memory that the server has lent: a request's inputs, or the tensors of an answer to a call.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::prelude::*;

use super::link::Link;

/// A [`Lease`] exists.
const VIEWED: u8 = 1;
/// It is settled what the last answer says; no lease can be made any more.
const SETTLED: u8 = 2;
/// The last answer is on its way, so the end of the lease needs a message of its own.
const ENDED: u8 = 4;

/// Memory on loan, whether or not it is looked at.
pub struct Loan {
    link: Arc<Link>,
    number: u64,
    /// Nobody waits for it to come back.
    unhurried: bool,
    state: AtomicU8,
}

impl Loan {
    /// Memory that comes back with the last answer to a request, if nothing views it then.
    pub fn of_request(link: &Arc<Link>, ticket: u64) -> Arc<Loan> {
        Arc::new(Loan { link: Arc::clone(link), number: ticket, unhurried: false, state: AtomicU8::new(0) })
    }

    /// Memory of an answer to a call; it comes back when the last view is gone. `unhurried`: it is little, and nobody
    /// waits for it.
    pub fn of_mail(link: &Arc<Link>, number: u64, unhurried: bool) -> Arc<Loan> {
        Arc::new(Loan { link: Arc::clone(link), number, unhurried, state: AtomicU8::new(SETTLED | ENDED | VIEWED) })
    }

    /// The object that views of the memory keep alive. `None`: the memory was given back already.
    pub fn lease(self: &Arc<Self>) -> Option<Lease> {
        let view = |state| (state & SETTLED == 0).then_some(state | VIEWED);
        self.state.fetch_update(Ordering::AcqRel, Ordering::Acquire, view).ok()?;
        Some(Lease { loan: self.clone() })
    }

    /// The lease of memory that is viewed from the start.
    pub fn only_lease(self: Arc<Self>) -> Lease {
        Lease { loan: self }
    }

    /// Whether nothing views the memory, and nothing ever will: what the last answer says.
    pub fn settle(&self) -> bool {
        self.state.fetch_or(SETTLED, Ordering::AcqRel) & VIEWED == 0
    }

    /// The last answer was sent and said so, or not. True: the last view went meanwhile, which is still to be reported.
    pub fn end(&self, reported_released: bool) -> bool {
        let before = self.state.fetch_or(ENDED, Ordering::AcqRel);
        !reported_released && before & VIEWED == 0
    }
}

/// Lives as long as Python can reach the memory: tensors hold it, and arrays over the memory have it as their base.
#[pyclass(frozen, module = "alipes._core")]
pub struct Lease {
    loan: Arc<Loan>,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let before = self.loan.state.fetch_and(!VIEWED, Ordering::AcqRel);
        if before & ENDED == 0 {
            return;
        }
        if self.loan.unhurried {
            self.loan.link.release_quietly(self.loan.number);
        } else {
            self.loan.link.release(self.loan.number);
        }
    }
}
