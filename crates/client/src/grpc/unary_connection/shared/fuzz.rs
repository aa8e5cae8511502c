//! Fuzzers of a connection with several callers: whatever a server sends, and whenever callers come and go, each call
//! ends once, nobody is forgotten, and little is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Wake;

use alipes_protocol::limits::CLIENT_FRAME_BYTES;
use alipes_testkit::corpus;
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};

use super::call::UNSENT_BYTES;
use super::*;
use crate::grpc::unary_connection::frames::HEAD_BYTES;
use crate::grpc::unary_connection::fuzz::connections;
use crate::grpc::unary_connection::recorded;
use crate::grpc::unary_connection::tests::{framed, target};
use crate::scripted::Scripted;

/// Bytes of an input's end that say how it arrives, and what callers do meanwhile.
const CHOICES: usize = 48;

/// Most pieces of the server's bytes but the last, between which callers come and go.
const PIECES: usize = 5;

/// Most callers at the beginning.
const CALLERS: usize = 4;

/// Calls that each caller makes, unless it is withdrawn.
const CALLS: usize = 2;

/// Sizes of what is asked: nothing, a little, more than a frame, more than the window.
const SIZES: [usize; 4] = [0, 10, 20_000, 70_000];

/// Inputs where nobody searches: each is a connection with several callers, or two.
const INPUTS: u32 = 2_000;

const WORDS: [&str; 3] = ["grpc-status", "grpc-message", "application/grpc"];

/// Most times that something is polled: far more than an input can ask for.
const POLLS: usize = 200_000;

#[test]
fn whatever_a_server_sends_each_of_many_calls_ends_once() {
    Fuzzer::new("client-shared-http2", seeds()).words(WORDS).inputs(INPUTS).run(check_calls);
}

#[test]
fn whatever_a_server_sends_calls_end_alike_in_any_pieces() {
    Fuzzer::new("client-shared-pieces", seeds()).words(WORDS).inputs(INPUTS).run(check_pieces);
}

/// What servers say, each to callers that do little and to callers that do much.
fn seeds() -> Vec<Vec<u8>> {
    let spread = [[0; CHOICES], std::array::from_fn(|at| at as u8 * 5)];
    let wires = [connections(), recorded::exchanges(&corpus::grpc_responses())].concat();
    wires.iter().flat_map(|wire| spread.map(|choices| Choices::seed(wire, &choices))).collect()
}

/// Says that a task is to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

type Outcome = Result<Bytes, String>;

/// Something that goes on when it is woken, and only then.
struct Task<'a, T> {
    work: Option<Pin<Box<dyn Future<Output = T> + 'a>>>,
    flag: Arc<Flag>,
}

impl<'a, T> Task<'a, T> {
    fn new(work: impl Future<Output = T> + 'a) -> Task<'a, T> {
        Task { work: Some(Box::pin(work)), flag: Arc::new(Flag(AtomicBool::new(true))) }
    }

    /// Polls it, woken or not; what it gives at its end.
    fn poll(&mut self) -> Option<T> {
        let waker = Waker::from(self.flag.clone());
        match self.work.as_mut()?.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Pending => None,
            Poll::Ready(output) => {
                self.work = None;
                Some(output)
            }
        }
    }

    fn take_flag(&self) -> bool {
        self.work.is_some() && self.flag.0.swap(false, Ordering::Relaxed)
    }
}

/// A connection, what drives it, and its callers.
struct Table<'a> {
    connection: &'a SharedConnection<Scripted>,
    driver: Task<'a, ()>,
    callers: Vec<Task<'a, ()>>,
    outcomes: &'a RefCell<Vec<Vec<Outcome>>>,
    polls: usize,
}

impl<'a> Table<'a> {
    fn new(
        connection: &'a SharedConnection<Scripted>,
        driver: impl Future<Output = ()> + 'a,
        outcomes: &'a RefCell<Vec<Vec<Outcome>>>,
    ) -> Table<'a> {
        Table { connection, driver: Task::new(driver), callers: Vec::new(), outcomes, polls: 0 }
    }

    fn add(&mut self, target: &'a Target, sizes: Vec<usize>) {
        let (connection, outcomes, number) = (self.connection, self.outcomes, self.callers.len());
        outcomes.borrow_mut().push(Vec::new());
        self.callers.push(Task::new(async move {
            for size in sizes {
                let outcome = connection.ask(target, "Echo", message(size)).await;
                let outcome = outcome.map(|received| received.body).map_err(|error| error.message);
                outcomes.borrow_mut()[number].push(outcome);
            }
        }));
    }

    /// Goes on until everybody waits for somebody else; that they do was not forgotten, but is so.
    fn settle(&mut self) {
        loop {
            let before = self.polls;
            if self.driver.take_flag() {
                self.polls += 1;
                self.driver.poll();
            }
            for caller in &mut self.callers {
                if caller.take_flag() {
                    self.polls += 1;
                    caller.poll();
                }
            }
            assert!(self.polls < POLLS, "it does not come to an end");
            if self.polls == before {
                break;
            }
        }
        let ended = self.callers.iter_mut().filter_map(Task::poll).count();
        assert_eq!(ended, 0, "a caller was not woken");
    }

    fn under_way(&self) -> usize {
        self.callers.iter().filter(|caller| caller.work.is_some()).count()
    }

    fn check_memory(&self, most: usize) {
        let state = self.connection.state.borrow();
        let (callers, connection) = (self.under_way(), &state.connection);
        assert!(state.calls.len() + state.waiting.len() <= callers, "who left is remembered");
        assert!(connection.incoming.capacity() <= 2 * (CLIENT_FRAME_BYTES as usize + BUFFER_BYTES));
        assert!(connection.outgoing.len() <= UNSENT_BYTES + most, "{} bytes to be sent", connection.outgoing.len());
    }
}

fn message(size: usize) -> Bytes {
    framed(&vec![7; size])
}

fn check_calls(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let (socket, target) = (Scripted::default(), target());
    let (connection, driver) = SharedConnection::new(socket.clone());
    let outcomes = RefCell::default();
    let mut table = Table::new(&connection, driver, &outcomes);
    let mut withdrawn = Vec::new();
    for _ in 0..=choices.below(CALLERS) {
        table.add(&target, vec![choices.pick(&SIZES), choices.pick(&SIZES)]);
    }
    for part in pieces(wire, &mut choices, PIECES) {
        table.settle();
        match choices.byte() % 6 {
            0 => {}
            1 => socket.accept(choices.below(1 << 16)),
            2 => socket.accept(1 << 20),
            3 => table.add(&target, vec![choices.pick(&SIZES); CALLS]),
            _ => {
                let leaving = choices.below(table.callers.len());
                withdrawn.push(leaving);
                table.callers[leaving].work = None;
            }
        }
        socket.arrive(part, 1 + choices.below(1 << 12));
        table.settle();
        table.check_memory(2 * wire.len() + 4096);
    }
    socket.end();
    table.settle();
    assert_eq!(
        (table.under_way(), table.driver.work.is_some()),
        (0, false),
        "the connection has ended, a call has not"
    );
    assert!(connection.is_spent());
    let outcomes = outcomes.borrow();
    for (number, all) in outcomes.iter().enumerate() {
        assert!(all.len() == CALLS || withdrawn.contains(&number), "{} calls of {CALLS} have ended", all.len());
    }
    let answers = outcomes.iter().flatten().flatten().map(Bytes::len).sum::<usize>();
    assert!(answers <= wire.len(), "more was answered than was sent");
    for error in outcomes.iter().flatten().filter_map(|outcome| outcome.as_ref().err()) {
        assert!(!error.is_empty() && error.len() <= 1024 + 3 * wire.len());
    }
    check_sent(&socket.sent());
}

/// What the server was sent: each call begins once, and has an end at most, behind which there is nothing but that it
/// was withdrawn.
fn check_sent(sent: &[u8]) {
    let Some(mut rest) = sent.strip_prefix(frames::PREFACE) else { return assert!(frames::PREFACE.starts_with(sent)) };
    let (mut next, mut open, mut withdrawn) = (1, Vec::new(), Vec::new());
    while let Some(head) = rest.first_chunk::<HEAD_BYTES>().map(FrameHead::read) {
        let Some(behind) = rest.get(HEAD_BYTES + head.length..) else { return };
        rest = behind;
        match head.kind {
            frames::HEADERS => {
                assert_eq!(head.call, next, "a call has the next number");
                next += 2;
                open.push(head.call);
            }
            frames::DATA => {
                assert!(open.contains(&head.call), "data in a call that is over");
                if head.flags & frames::END_STREAM != 0 {
                    open.retain(|call| *call != head.call);
                }
            }
            frames::RST_STREAM => {
                assert!(head.call < next && !withdrawn.contains(&head.call), "a call is withdrawn once");
                withdrawn.push(head.call);
                open.retain(|call| *call != head.call);
            }
            _ => assert!(
                [frames::SETTINGS, frames::PING, frames::WINDOW_UPDATE, frames::CONTINUATION].contains(&head.kind)
            ),
        }
    }
}

fn check_pieces(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    let callers = 1 + choices.below(CALLERS);
    let whole = end_of(&[wire], callers);
    assert_eq!(end_of(&pieces(wire, &mut choices, PIECES), callers), whole, "calls end otherwise in pieces");
}

/// How one call of each caller ends, all of which began before the server said anything.
fn end_of(pieces: &[&[u8]], callers: usize) -> Vec<Vec<Outcome>> {
    let (socket, target) = (Scripted::default(), target());
    let (connection, driver) = SharedConnection::new(socket.clone());
    let outcomes = RefCell::default();
    let mut table = Table::new(&connection, driver, &outcomes);
    (0..callers).for_each(|_| table.add(&target, vec![10]));
    socket.accept(usize::MAX);
    for part in pieces {
        table.settle();
        socket.arrive(part, usize::MAX);
    }
    table.settle();
    socket.end();
    table.settle();
    outcomes.take()
}
