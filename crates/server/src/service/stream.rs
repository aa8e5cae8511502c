//! Many requests of one caller, and the responses to all of them in the order that the caller is promised.
//!
//! Responses of ordinary models come in the order of their requests, those of decoupled models as they are ready.
//! Source: Triton's stream semantics, recorded.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use alipes_protocol::trace::Trace;
use alipes_protocol::{InferError, InferRequest, Origin, RequestedOutput};
use compact_str::CompactString;
use slab::Slab;
use smallvec::SmallVec;

use super::Service;
use super::infer::{classified, classify};
use crate::executor::answer::Answer;
use crate::executor::mailbox::{Caller, Mailbox, Response};
use crate::inflight::OwnedGuest;
use crate::model::ModelVersion;
use crate::regions::Held;

/// The requests of one caller that are not yet answered to the end. Dropping it withdraws them all.
pub struct Session {
    service: Arc<Service>,
    mailbox: Arc<Mailbox>,
    // Responses are marked with their request's place here. A place is free again once the last response was told, and
    // nothing arrives for it any more.
    requests: Slab<Asked>,
    /// Requests to ordinary models, oldest first.
    order: VecDeque<usize>,
    arrived: VecDeque<Response>,
    taken: Taken,
    told: Option<Asked>,
}

/// One request on its way.
struct Asked {
    id: CompactString,
    /// None where the request was refused before any model saw it.
    model: Option<Underway>,
    /// Its responses wait for those of earlier ordered requests.
    ordered: bool,
    empty_final_response: bool,
    /// Responses that came before their turn. One is kept back until it is known whether it is the last.
    held: SmallVec<[Answer; 1]>,
    ended: bool,
}

/// A request that a model has.
struct Underway {
    version: Arc<ModelVersion>,
    arrived: Instant,
    trace: Option<Arc<Trace>>,
    classified: Vec<RequestedOutput>,
    held: Held,
    caller: Caller,
    _inside: OwnedGuest,
}

/// Responses to one request that were told but not reported as taken yet.
#[derive(Default)]
struct Taken {
    request: usize,
    responses: u32,
    bytes: u64,
}

/// What the caller is told.
pub struct News<'a> {
    /// The request's id.
    pub id: &'a str,
    /// Who answers; none where the request was refused before any model saw it.
    pub model: Option<&'a ModelVersion>,
    /// The response; none where only the end is told.
    pub answer: Option<Answer>,
    /// No more will be told of this request.
    pub last: bool,
    /// Its record, where it is traced.
    pub trace: Option<&'a Arc<Trace>>,
}

impl Session {
    /// A caller without requests.
    pub fn new(service: Arc<Service>) -> Session {
        Session {
            mailbox: Mailbox::counted(Arc::clone(&service.budget)),
            service,
            requests: Slab::new(),
            order: VecDeque::new(),
            arrived: VecDeque::new(),
            taken: Taken::default(),
            told: None,
        }
    }

    /// Requests that are not answered to the end.
    pub fn in_flight(&self) -> usize {
        self.requests.len()
    }

    /// Takes a request in. What refuses it is told as its only response.
    pub fn ask(&mut self, model: Arc<ModelVersion>, request: InferRequest, held: Held) {
        let arrived = Instant::now();
        let place = self.requests.vacant_key();
        let asked = Asked {
            empty_final_response: request.empty_final_response,
            ..Asked::new(request.id.clone(), !model.is_decoupled())
        };
        let (classified, trace) = (classified(&request), request.trace.clone());
        let entered = self.service.inflight.enter_owned();
        let submitted = entered.and_then(|inside| {
            let caller = model.submit_into(request, arrived, &self.mailbox, place as u64)?;
            Ok((inside, caller))
        });
        match submitted {
            Ok((_inside, caller)) => {
                let model = Some(Underway { version: model, arrived, trace, classified, held, caller, _inside });
                self.admit(Asked { model, ..asked });
            }
            Err(error) => self.refuse_asked(asked, error),
        }
    }

    /// Takes a request in that no model will see: the error is told as its only response, in its turn where it is
    /// ordered.
    pub fn refuse(&mut self, id: CompactString, ordered: bool, error: InferError) {
        self.refuse_asked(Asked::new(id, ordered), error);
    }

    fn refuse_asked(&mut self, asked: Asked, error: InferError) {
        let tag = self.admit(asked) as u64;
        self.arrived.push_back(Response { tag, answer: Some(Err(error)), last: true });
    }

    fn admit(&mut self, asked: Asked) -> usize {
        let ordered = asked.ordered;
        let place = self.requests.insert(asked);
        if ordered {
            self.order.push_back(place);
        }
        place
    }

    /// What is to be told next, if anything has arrived; else the task is woken when something does.
    pub fn poll_news(&mut self, context: &mut Context<'_>) -> Poll<News<'_>> {
        loop {
            match self.next_due() {
                // Who did not ask for it is not told of an end that carries no response.
                Some((place, None, _)) if !self.requests[place].empty_final_response => {
                    self.log_end(place, None);
                    self.forget(place);
                }
                Some((place, answer, last)) => return Poll::Ready(self.tell(place, answer, last)),
                None => {
                    self.report_taken();
                    self.told = None;
                    ready!(self.mailbox.poll_take(context, &mut self.arrived));
                }
            }
        }
    }

    /// What is due of what has arrived: of which request, the response, and whether it is the last. The rest waits for
    /// its turn.
    fn next_due(&mut self) -> Option<(usize, Option<Answer>, bool)> {
        loop {
            if let Some(due) = self.next_in_order() {
                return Some(due);
            }
            let Response { tag, answer, last } = self.arrived.pop_front()?;
            let place = usize::try_from(tag).ok()?;
            let asked = self.requests.get_mut(place)?;
            let its_turn = self.order.front() == Some(&place) && asked.held.is_empty() && last;
            if !asked.ordered || its_turn {
                return Some((place, answer, last));
            }
            asked.held.extend(answer);
            asked.ended = last;
        }
    }

    /// What the oldest ordered request has to tell.
    fn next_in_order(&mut self) -> Option<(usize, Option<Answer>, bool)> {
        let &place = self.order.front()?;
        let asked = &mut self.requests[place];
        match (asked.held.len(), asked.ended) {
            (0 | 1, false) => None,
            (0, true) => Some((place, None, true)),
            (responses, ended) => {
                let answer = asked.held.remove(0);
                Some((place, Some(answer), ended && responses == 1))
            }
        }
    }

    fn tell(&mut self, place: usize, answer: Option<Answer>, last: bool) -> News<'_> {
        let answer = answer.map(|answer| self.finish(place, answer));
        let asked = if last {
            self.log_end(place, answer.as_ref());
            self.forget(place);
            self.told.as_ref()
        } else {
            self.requests.get(place)
        };
        let (id, model) = asked.map_or(("", None), |asked| (asked.id.as_str(), asked.model.as_ref()));
        let trace = model.and_then(|model| model.trace.as_ref());
        News { id, model: model.map(|model| &*model.version), answer, last, trace }
    }

    /// Tells a verbose log how a request went that is over now.
    fn log_end(&self, place: usize, last: Option<&Answer>) {
        if self.service.log.is_verbose() {
            let Asked { id, model, .. } = &self.requests[place];
            if let Some(Underway { version, arrived, .. }) = model {
                let failure = last.and_then(|answer| answer.as_ref().err());
                self.service.log_request(version, id, arrived.elapsed(), failure);
            }
        }
    }

    /// Counts a response as taken and gives it the form that was asked for.
    fn finish(&mut self, place: usize, answer: Answer) -> Answer {
        if self.taken.request != place {
            self.report_taken();
            self.taken.request = place;
        }
        self.taken.responses += 1;
        let mut reply = answer?;
        self.taken.bytes += reply.bytes();
        if let Some(Underway { version, classified, held, .. }) = &self.requests[place].model {
            for tensor in &mut reply.outputs {
                classify(&version.spec, classified, tensor).map_err(|error| error.at(Origin::Model))?;
            }
            held.settle(&mut reply.outputs)?;
        }
        Ok(reply)
    }

    /// Tells the models what was taken, so that they may give more.
    pub fn report_taken(&mut self) {
        let Taken { request, responses, bytes } = std::mem::take(&mut self.taken);
        if responses > 0
            && let Some(Asked { model: Some(model), .. }) = self.requests.get(request)
        {
            model.caller.consumed(responses, bytes);
        }
    }

    /// The request has ended: its place is free.
    fn forget(&mut self, place: usize) {
        let asked = self.requests.remove(place);
        if asked.ordered {
            self.order.pop_front();
        }
        if self.taken.request == place {
            self.taken = Taken::default();
        }
        self.told = Some(asked);
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        for asked in self.requests.drain() {
            if let Some(Underway { version, caller, .. }) = asked.model {
                drop(caller);
                version.caller_left();
            }
        }
    }
}

impl Asked {
    fn new(id: CompactString, ordered: bool) -> Asked {
        Asked { id, model: None, ordered, empty_final_response: false, held: SmallVec::new(), ended: false }
    }
}
