//! The other end is another process, and may die.

use std::env;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::process::{Child, Command, Stdio};

use crate::common::*;
use alipes_link::{Claimed, Message, OutAnswer, OutMessage, Outcome, OutputData, RequestArena, ServerEnd, WorkerEnd};
use bytes::Bytes;
use rustix::io::{FdFlags, fcntl_setfd};

/// Descriptors of the worker: `link,requests,doorbell`.
const ROLE: &str = "ALIPES_LINK_TEST_WORKER";

/// Not a test of its own: the worker of the others, which is this program once more.
#[test]
fn worker() {
    let Ok(role) = env::var(ROLE) else { return };
    let mut numbers = role.split(',').map(|number| number.parse::<RawFd>().unwrap());
    // SAFETY: the test left these open for us, and nobody else in this process knows of them.
    let mut fd = || unsafe { OwnedFd::from_raw_fd(numbers.next().unwrap()) };
    let end = WorkerEnd::open(fd(), fd(), fd()).unwrap();
    end.send(&OutMessage::Ready { checks: false }).unwrap();
    let mut requests = Vec::new();
    while end.claim(8, &mut requests) == Claimed::Requests {
        let answers: Vec<OutAnswer<'_>> = requests
            .iter()
            .map(|request| answer(request.slot, request.ticket, vec![tensor(input(&end, request))]))
            .collect();
        end.send(&OutMessage::Answers { times: None, tickets: &[], answers: &answers }).unwrap();
        requests.clear();
    }
    end.send(&OutMessage::Finalized).unwrap();
}

/// A worker process; killed with its test.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn inherited(fd: BorrowedFd<'_>) -> OwnedFd {
    let copy = fd.try_clone_to_owned().unwrap();
    fcntl_setfd(copy.as_fd(), FdFlags::empty()).unwrap();
    copy
}

fn start(arena: &RequestArena, server: &ServerEnd) -> Worker {
    let fds = [inherited(server.link_fd()), inherited(arena.fd()), inherited(server.doorbell_fd())];
    let role = fds.iter().map(|fd| fd.as_raw_fd().to_string()).collect::<Vec<_>>().join(",");
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "process::worker", "--nocapture"]).env(ROLE, role);
    Worker(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap())
}

fn next(server: &mut ServerEnd) -> Message {
    loop {
        if let Some(message) = server.receive().unwrap() {
            return message;
        }
        sleep_until_rung(server);
    }
}

fn answers(message: Message) -> Vec<alipes_link::Answer> {
    match message {
        Message::Answers { answers, .. } => answers,
        other => panic!("expected answers, got {other:?}"),
    }
}

fn bytes(answer: &alipes_link::Answer) -> Bytes {
    let Outcome::Response { outputs, .. } = &answer.outcome else { panic!("no response") };
    let OutputData::Bytes(bytes) = &outputs[0].data else { panic!("no bytes") };
    bytes.clone()
}

#[test]
fn a_worker_process_answers_and_leaves_on_request() {
    let arena = RequestArena::create(1 << 30).unwrap();
    let mut server = ServerEnd::create(GEOMETRY).unwrap();
    let mut worker = start(&arena, &server);
    assert_eq!(next(&mut server), Message::Ready { checks: false });
    for turn in 0..300u64 {
        let data = Bytes::from(vec![turn as u8; (turn as usize % 7) * 20_000 + 1]);
        let placed = [place(&arena, &data), place(&arena, &data)];
        server.publish(&[entry(0, turn * 2 + 1, &placed[0]), entry(1, turn * 2 + 2, &placed[1])]).unwrap();
        server.wake();
        let mut seen = 0;
        while seen < 2 {
            for answer in answers(next(&mut server)) {
                assert_eq!(bytes(&answer), data);
                seen += 1;
            }
        }
    }
    server.stop();
    assert_eq!(next(&mut server), Message::Finalized);
    assert!(worker.0.wait().unwrap().success());
    assert_eq!(arena.used_bytes(), 0);
}

#[test]
fn messages_survive_the_worker_that_sent_them() {
    let arena = RequestArena::create(1 << 30).unwrap();
    let mut server = ServerEnd::create(GEOMETRY).unwrap();
    let mut worker = start(&arena, &server);
    assert_eq!(next(&mut server), Message::Ready { checks: false });
    let data = Bytes::from(vec![5; 1 << 20]);
    let placed = place(&arena, &data);
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    server.wake();
    let lent = bytes(&answers(next(&mut server))[0]);
    worker.0.kill().unwrap();
    worker.0.wait().unwrap();
    server.publish(&[entry(0, 2, &placed), entry(1, 3, &placed)]).unwrap();
    server.wake();
    assert!(server.revoke(0, 2) && server.revoke(1, 3), "nobody claims any more");
    assert_eq!(server.receive(), Ok(None));
    drop(server);
    assert_eq!(lent, data);
}
