//! What is still owed to a claimed request: its answers, in order, and the last one exactly once.

use std::sync::Arc;

use alipes_link::{Credit, OutAnswer, OutMessage, OutOutcome, Request, SendError};
use parking_lot::{Mutex, MutexGuard};
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::fork;
use super::lease::Loan;
use super::link::{Link, QUICK_BYTES};
use super::missing_response::{MissingReason, MissingReasons};
use super::outputs::Draft;

/// Shared by a request's object and its response senders. Where the last of them goes without having answered, the
/// request is closed: with an error, or, in a decoupled model, with an end that carries no response.
pub struct Reply {
    pub link: Arc<Link>,
    pub slot: u32,
    pub ticket: u64,
    pub loan: Arc<Loan>,
    /// Where the inputs lie: offsets and lengths.
    slots: SmallVec<[(u64, usize); 2]>,
    requested: Vec<u16>,
    state: Mutex<ReplyState>,
    pub missing_reasons: MissingReasons,
}

/// How far the answer has come. The lock is held while an answer is sent, so that answers keep their order; it is
/// therefore taken without the interpreter.
#[derive(Default)]
pub struct ReplyState {
    responses: u64,
    bytes: u64,
    closed: bool,
}

/// A response, or the lack of one, on its way.
pub struct Sending<'a> {
    pub draft: Option<&'a Draft>,
    pub last: bool,
}

impl Sending<'_> {
    fn bytes(&self) -> u64 {
        self.draft.map_or(0, Draft::bytes)
    }
}

impl Reply {
    pub fn new(link: &Arc<Link>, request: &Request) -> Arc<Reply> {
        Arc::new(Reply {
            link: Arc::clone(link),
            slot: request.slot,
            ticket: request.ticket,
            loan: Loan::of_request(link, request.ticket),
            slots: request.inputs.iter().map(|input| (input.offset, input.len)).collect(),
            requested: request.outputs.clone(),
            state: Mutex::default(),
            missing_reasons: MissingReasons::default(),
        })
    }

    /// Whether the caller wants this output; one who names none wants all.
    pub fn wants(&self, output: u16) -> bool {
        self.requested.is_empty() || self.requested.contains(&output)
    }

    /// Whether these bytes of the request arena are part of an input.
    pub fn holds(&self, offset: u64, len: usize) -> bool {
        let end = offset + len as u64;
        self.slots.iter().any(|(start, size)| *start <= offset && end <= start + *size as u64)
    }

    pub fn is_cancelled(&self) -> bool {
        self.link.end.is_cancelled(self.slot, self.ticket)
    }

    /// Posts what a response sender was given. Waits, without the interpreter, while the caller has too much before it.
    ///
    /// # Errors
    ///
    /// Triton's texts for a sender that is used against its rules.
    pub fn send(&self, py: Python<'_>, sending: &Sending<'_>) -> Result<(), String> {
        if self.link.is_forked() {
            return Err(fork::NOT_OURS.to_owned());
        }
        if let Some(mut state) = self.state.try_lock() {
            self.check(&state, sending)?;
            if let Some(credit) = self.credit(&state).filter(|_| sending.bytes() <= QUICK_BYTES)
                && self.post(&mut state, sending, credit, |message| self.link.end.try_send(message))?
            {
                return Ok(());
            }
        }
        py.detach(|| {
            let mut state = self.state.lock();
            self.check(&state, sending)?;
            let wait = || self.link.end.wait_credit(self.slot, self.ticket, state.responses, state.bytes);
            let credit = self.credit(&state).unwrap_or_else(wait);
            let post = |message: &OutMessage<'_>| self.link.end.send(message).map(|()| true);
            self.post(&mut state, sending, credit, post).map(drop)
        })
    }

    /// Whether a response may be sent; `None` where that has to be waited for.
    fn credit(&self, state: &ReplyState) -> Option<Credit> {
        if !self.link.declaration.decoupled {
            return Some(Credit::Go);
        }
        self.link.end.credit(self.slot, self.ticket, state.responses, state.bytes)
    }

    fn check(&self, state: &ReplyState, sending: &Sending<'_>) -> Result<(), String> {
        let refuse = |text: &str| Err(format!("Unable to send response. {text}"));
        if !self.link.declaration.decoupled {
            if sending.draft.is_some() && state.responses > 0 {
                return refuse("Non-decoupled model cannot send more than one response.");
            }
            if sending.draft.is_none() && state.responses == 0 {
                return refuse("Non-decoupled model cannot send complete final before sending a response.");
            }
        }
        if state.closed { refuse("Response sender has been closed.") } else { Ok(()) }
    }

    /// False: `post` found no room.
    fn post(
        &self,
        state: &mut ReplyState,
        sending: &Sending<'_>,
        credit: Credit,
        post: impl Fn(&OutMessage<'_>) -> Result<bool, SendError>,
    ) -> Result<bool, String> {
        // Where the caller has gone, only the end is sent.
        let draft = sending.draft.filter(|_| credit == Credit::Go);
        if draft.is_some() || sending.last {
            let outcome = draft.map_or(OutOutcome::Empty, Draft::outcome);
            let (slot, ticket, last) = (self.slot, self.ticket, sending.last);
            let released = last && self.loan.settle();
            let answer = OutAnswer { slot, ticket, last, released, outcome };
            if !post(&OutMessage::Answer(&answer)).map_err(|error| error.to_string())? {
                return Ok(false);
            }
            if last && self.loan.end(released) {
                self.link.release(ticket);
            }
        }
        state.responses += u64::from(sending.draft.is_some());
        state.bytes += sending.bytes();
        state.closed |= sending.last;
        Ok(true)
    }

    /// Closes the reply for good. `None`: it was closed before; else how many responses were sent.
    pub fn close(&self, py: Python<'_>) -> Option<u64> {
        let close = |mut state: MutexGuard<'_, ReplyState>| {
            let was_open = !std::mem::replace(&mut state.closed, true);
            was_open.then_some(state.responses)
        };
        match self.state.try_lock() {
            Some(state) => close(state),
            None => py.detach(|| close(self.state.lock())),
        }
    }

    /// How many responses were sent, or `None` where the reply is closed.
    pub fn open_after(&self, py: Python<'_>) -> Option<u64> {
        let look = |state: MutexGuard<'_, ReplyState>| (!state.closed).then_some(state.responses);
        match self.state.try_lock() {
            Some(state) => look(state),
            None => py.detach(|| look(self.state.lock())),
        }
    }

    /// Ends the request with the failure of its execution, if it has not ended. Waits for a sender that is at work, so
    /// not to be called with the interpreter.
    pub fn fail(&self, text: &str) {
        if self.link.is_forked() {
            return;
        }
        let mut state = self.state.lock();
        if !state.closed {
            let draft = Draft::raised(text.to_owned());
            let sending = Sending { draft: Some(&draft), last: true };
            // An error fits every link.
            let post = |message: &OutMessage<'_>| self.link.end.send(message).map(|()| true);
            let _ = self.post(&mut state, &sending, Credit::Go, post);
        }
    }

    /// What closes a request that nobody answered, after so many responses.
    pub fn closing(&self, responses: u64) -> Draft {
        if self.missing_reasons.has(MissingReason::Rescheduled) && self.link.declaration.iterative {
            return Draft::Again;
        }
        if self.link.declaration.decoupled || responses > 0 {
            return Draft::Empty;
        }
        self.missing_reasons.error(&self.link.declaration.instance)
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        if std::mem::replace(&mut state.closed, true) || self.link.is_forked() {
            return;
        }
        let responses = state.responses;
        let closing = self.closing(responses);
        let released = self.loan.settle();
        let (slot, ticket) = (self.slot, self.ticket);
        let answer = OutAnswer { slot, ticket, last: true, released, outcome: closing.outcome() };
        self.link.send_from_drop(&OutMessage::Answer(&answer));
        if self.loan.end(released) {
            self.link.release(self.ticket);
        }
    }
}
