//! One who sends a request, waits for its answer, and sends the next.

use std::rc::Rc;
use std::time::{Duration, Instant};

use alipes_client::{ClientError, Kind, Received};
use tokio::sync::Notify;

use crate::answers::Answers;
use crate::chains::Chain;
use crate::limit::Limit;
use crate::line::Line;
use crate::log::Entry;
use crate::queue::{Due, Queue};
use crate::record::{Record, Times};
use crate::thread::Thread;
use crate::waves::Wave;

/// Between two attempts to reach a server that is not there.
const RETRY: Duration = Duration::from_millis(100);

/// A caller of a thread.
pub struct Caller {
    thread: Rc<Thread>,
    /// One for each source, from this one on.
    lines: Vec<Line>,
    first: usize,
    limit: Limit,
    answers: Answers,
}

impl Caller {
    /// A caller with a line for each source from the first one on.
    pub fn new(thread: Rc<Thread>, lines: Vec<Line>, first: usize) -> Caller {
        let limit = Limit::new(thread.common.plan.limit);
        Caller { thread, lines, first, limit, answers: Answers::default() }
    }

    /// Sends the next request when the last one was answered.
    pub async fn closed(mut self) {
        while let Some((source, nth)) = self.thread.next() {
            if self.thread.common.chains[source].is_some() {
                if !self.send_chain(source).await {
                    break;
                }
            } else {
                if !self.thread.claim(1) {
                    break;
                }
                let request = self.thread.request(source, nth);
                self.ask_now(source, request, None).await;
            }
        }
    }

    /// Sends one request, and tells the wave when it had so many responses or is over.
    pub async fn once(mut self, source: usize, nth: u64, responses: u64, wave: Rc<Wave>) {
        self.answers.await_for(responses, wave);
        let request = self.thread.request(source, nth);
        self.ask_now(source, request, None).await;
        self.answers.end();
    }

    /// Sends one sequence; one that is under way when the load is stopped is cut short.
    ///
    /// # Returns
    /// Whether there was one to be sent.
    async fn send_chain(&mut self, source: usize) -> bool {
        let thread = self.thread.clone();
        let Some(chains) = &thread.common.chains[source] else { return false };
        let Some(mut chain) = chains.take_if(|requests| thread.claim(requests as u64)) else { return false };
        while let Some(request) = chain.next() {
            self.ask_now(source, request, Some(chain.id())).await;
            if thread.is_stopping() {
                chain.shorten();
            }
        }
        true
    }

    /// Sends what is due. Where the source has sequences, it is the next request of this caller's sequence.
    pub async fn open(mut self, source: usize, queue: Rc<Queue>) {
        let (own, thread) = (Rc::new(Notify::new()), self.thread.clone());
        let Some(chains) = &thread.common.chains[source] else {
            while let Some(due) = queue.take(&own).await {
                self.ask(source, due, None).await;
            }
            return;
        };
        let mut under_way: Option<Chain> = None;
        while let Some(due) = queue.take(&own).await {
            let chain = under_way.get_or_insert_with(|| chains.take());
            if let Some(request) = chain.next() {
                self.ask(source, Due { request, ..due }, Some(chain.id())).await;
            }
            if under_way.as_ref().is_some_and(Chain::is_over) {
                under_way = None;
            }
        }
        if let Some(mut chain) = under_way {
            chain.shorten();
            if let Some(request) = chain.next() {
                self.ask_now(source, request, Some(chain.id())).await;
            }
        }
    }

    async fn ask_now(&mut self, source: usize, request: usize, id: Option<u64>) {
        let due = alipes_clock::now();
        self.ask(source, Due { request, due, dispatched: due }, id).await;
    }

    /// Sends a request, one of a sequence under its id.
    async fn ask(&mut self, source: usize, due: Due, id: Option<u64>) {
        let thread = self.thread.clone();
        let request = match thread.prepared(source, due.request, id) {
            Ok(request) => request,
            Err(error) => {
                let now = alipes_clock::now();
                self.note(source, due, now, now, Err(error));
                return;
            }
        };
        let line = &mut self.lines[source - self.first];
        match line.open().await {
            Ok(false) => {}
            Ok(true) => thread.measured.records.lock()[source].connections += 1,
            Err(error) => {
                let now = alipes_clock::now();
                self.note(source, due, now, now, Err(error));
                tokio::time::sleep(RETRY).await;
                return;
            }
        }
        let begun = alipes_clock::now();
        self.answers.clear();
        let outcome = self.limit.within(begun, line.ask(&request, &mut self.answers)).await;
        let end = alipes_clock::now();
        let outcome = outcome.unwrap_or_else(|| {
            line.cut();
            Err(too_late(thread.common.plan.limit))
        });
        self.note(source, due, begun, end, outcome);
    }

    /// Writes down what became of a request.
    fn note(&self, source: usize, due: Due, begun: Instant, mut end: Instant, outcome: Result<Received, ClientError>) {
        let thread = &self.thread;
        let is_stream = thread.common.plan.sources[source].requests[due.request].is_stream();
        let record = &mut thread.measured.records.lock()[source];
        let failed = outcome.is_err();
        match outcome {
            Ok(received) => {
                end = self.answers.last().unwrap_or(received.last);
                let Due { due: moment, dispatched, request } = due;
                let times = Times { due: moment, dispatched, begun, sent: received.sent, first: received.first, end };
                if is_stream {
                    record.answered(&times, self.answers.bytes());
                    record.answered_on_stream(moment, self.answers.moments(), self.answers.count());
                } else {
                    record.answered(&times, received.body.len());
                }
                record.samples.answered(request, &received.body);
            }
            Err(error) => record.failed(&error),
        }
        if record.log.is_on() {
            self.log(record, due, begun, end, failed, is_stream);
        }
    }

    fn log(&self, record: &mut Record, due: Due, begun: Instant, end: Instant, failed: bool, is_stream: bool) {
        let calendar = self.thread.common.calendar;
        let entry = Entry {
            request: due.request,
            due_ns: calendar.ns(due.due),
            begun_ns: calendar.ns(begun),
            end_ns: calendar.ns(end),
            responses: 0,
            failed,
        };
        let responses = if is_stream { self.answers.moments() } else { &[end][usize::from(failed)..] };
        record.log.ended(entry, responses.iter().map(|moment| calendar.ns(*moment)));
    }
}

fn too_late(limit: Option<Duration>) -> ClientError {
    let seconds = limit.unwrap_or_default().as_secs_f64();
    ClientError::new(Kind::Timeout, format!("no answer within {seconds} s"))
}
