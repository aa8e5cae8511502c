//! Both ends of a link in one process, and requests to send through it.
use std::sync::Arc;

use alipes_link::{
    Answer, Claimed, Entry, Geometry, Message, OutAnswer, OutData, OutMessage, OutOutcome, OutTensor, Placed, Request,
    RequestArena, RequestHead, ServerEnd, TensorName, TensorRef, WorkerEnd,
};
use alipes_protocol::{CorrelationId, Datatype};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};

pub const GEOMETRY: Geometry = Geometry { slots: 64, response_bytes: 1 << 30 };

pub struct Pair {
    pub arena: Arc<RequestArena>,
    pub server: ServerEnd,
    pub worker: Arc<WorkerEnd>,
}

pub fn pair() -> Pair {
    pair_of(GEOMETRY)
}

pub fn pair_of(geometry: Geometry) -> Pair {
    let arena = RequestArena::create(1 << 30).unwrap();
    let server = ServerEnd::create(geometry).unwrap();
    let worker = open_worker(&arena, &server);
    Pair { arena, server, worker }
}

pub fn open_worker(arena: &RequestArena, server: &ServerEnd) -> Arc<WorkerEnd> {
    let link = server.link_fd().try_clone_to_owned().unwrap();
    let requests = arena.fd().try_clone_to_owned().unwrap();
    let doorbell = server.doorbell_fd().try_clone_to_owned().unwrap();
    Arc::new(WorkerEnd::open(link, requests, doorbell).unwrap())
}

pub const HEAD: RequestHead<'static> = RequestHead {
    id: "id",
    correlation_id: &CorrelationId::Number(0),
    flags: 0,
    timeout_us: 0,
    priority: 0,
    parameters: "",
    outputs: &[],
    trace: None,
};

/// Waits for the worker; returns at once when a message is there already.
pub fn sleep_until_rung(server: &ServerEnd) {
    if server.arm() {
        let doorbell = server.doorbell_fd();
        poll(&mut [PollFd::new(&doorbell, PollFlags::IN)], None).unwrap();
        rustix::io::read(doorbell, &mut [0; 8]).unwrap();
    }
}

/// A request of one UINT8 tensor.
pub fn place(arena: &Arc<RequestArena>, data: &Bytes) -> Placed {
    let shape = [data.len() as i64];
    let input = TensorRef { name: TensorName::Index(0), datatype: Datatype::Uint8, shape: &shape, data };
    arena.write_request(&HEAD, &[input]).unwrap()
}

pub fn entry(slot: u32, ticket: u64, placed: &Placed) -> Entry {
    Entry { slot, ticket, rows: 1, key: 0, group: 0, frame: (placed.offset, placed.len) }
}

pub fn claim(worker: &WorkerEnd, max_rows: u32) -> Vec<Request> {
    let mut requests = Vec::new();
    assert_eq!(worker.claim(max_rows, &mut requests), Claimed::Requests);
    requests
}

/// The bytes of a claimed request's input.
pub fn input<'a>(worker: &'a WorkerEnd, request: &Request) -> &'a [u8] {
    let view = &request.inputs[0];
    let address = worker.memory().at(view.offset, view.len).unwrap();
    // SAFETY: in the mapping, and nobody writes there in these tests.
    unsafe { std::slice::from_raw_parts(address.as_ptr(), view.len) }
}

pub fn tensor(data: &[u8]) -> OutTensor<'_> {
    let shape = [data.len() as i64].into_iter().collect();
    OutTensor { name: TensorName::Index(0), datatype: Datatype::Uint8, shape, data: OutData::Bytes(data) }
}

pub fn answer<'a>(slot: u32, ticket: u64, outputs: Vec<OutTensor<'a>>) -> OutAnswer<'a> {
    let outcome = OutOutcome::Response { outputs, parameters: &[] };
    OutAnswer { slot, ticket, last: true, released: true, outcome }
}

pub fn send_answer(worker: &WorkerEnd, slot: u32, ticket: u64, data: &[u8]) {
    worker.send(&OutMessage::Answer(&answer(slot, ticket, vec![tensor(data)]))).unwrap();
}

pub fn receive(server: &mut ServerEnd) -> Message {
    server.receive().unwrap().expect("a message is there")
}

pub fn receive_answer(server: &mut ServerEnd) -> Answer {
    match receive(server) {
        Message::Answer(answer) => answer,
        other => panic!("expected an answer, got {other:?}"),
    }
}
