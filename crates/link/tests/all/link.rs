//! What passes between the two ends, one step after the other.

use std::sync::Arc;
use std::time::Duration;

use crate::common::*;
use alipes_link::{
    Claimed, Credit, Entry, Geometry, LogLine, Mail, MailOutcome, Message, OutAnswer, OutCall, OutCallKind, OutData,
    OutInferCall, OutMessage, OutOutcome, OutTensor, Outcome, OutputData, OwnedTensorName, ReceivedOutcome,
    RequestHead, SendError, ServerEnd, TensorName, TensorRef, Times, WorkerEnd,
};
use alipes_protocol::{CorrelationId, Datatype, Parameter, Shape};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, poll};

fn outputs(outcome: Outcome) -> Vec<alipes_link::Output> {
    match outcome {
        Outcome::Response { outputs, .. } => outputs,
        other => panic!("expected a response, got {other:?}"),
    }
}

fn bytes(data: &OutputData) -> &Bytes {
    match data {
        OutputData::Bytes(bytes) => bytes,
        other => panic!("expected bytes, got {other:?}"),
    }
}

#[test]
fn a_request_arrives_as_it_was_placed() {
    let Pair { arena, mut server, worker } = pair();
    let inside = arena.allocate(100_000).unwrap().freeze();
    let head = RequestHead {
        id: "request 1",
        correlation_id: &CorrelationId::Text("sequence".into()),
        flags: 3,
        timeout_us: 17,
        priority: 2,
        parameters: r#"{"a":1}"#,
        outputs: &[1, 0],
        trace: Some("00-trace"),
    };
    let elements = Bytes::from_static(b"\x02\0\0\0hi");
    let inputs = [
        TensorRef { name: TensorName::Index(1), datatype: Datatype::Fp32, shape: &[25_000], data: &inside },
        TensorRef { name: TensorName::Name("extra"), datatype: Datatype::Bytes, shape: &[1, 1], data: &elements },
    ];
    let placed = arena.write_request(&head, &inputs).unwrap();
    server.publish(&[Entry { rows: 5, ..entry(7, 99, &placed) }]).unwrap();
    server.wake();
    let request = claim(&worker, 0).pop().unwrap();
    assert_eq!((request.slot, request.ticket, request.rows), (7, 99, 5));
    assert_eq!((request.id.as_str(), request.parameters.as_str()), ("request 1", r#"{"a":1}"#));
    assert_eq!(request.correlation_id, CorrelationId::Text("sequence".into()));
    assert_eq!((request.flags, request.timeout_us, request.priority), (3, 17, 2));
    assert_eq!((request.outputs.as_slice(), request.trace.as_deref()), ([1, 0].as_slice(), Some("00-trace")));
    assert!(request.claimed_ns > 0);
    assert_eq!(request.inputs[0].offset, arena.offset_of(&inside).unwrap());
    assert_eq!(request.inputs[1].name, OwnedTensorName::Name("extra".into()));
    assert_eq!(request.inputs[1].shape.as_slice(), [1, 1]);
    let address = worker.memory().at(request.inputs[1].offset, 6).unwrap();
    // SAFETY: in the mapping, and written before.
    assert_eq!(unsafe { std::slice::from_raw_parts(address.as_ptr(), 6) }, elements);
}

#[test]
fn small_outputs_share_a_copy_and_large_ones_are_lent() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::from_static(b"x"));
    server.publish(&[entry(0, 1, &placed), entry(1, 2, &placed)]).unwrap();
    let requests = claim(&worker, 8);
    assert_eq!(requests.len(), 2);
    let (small, large) = (vec![3u8; 64 * 1024], vec![4u8; 64 * 1024 + 1]);
    let times = Some(Times { claimed_ns: 1, began_ns: 2, ended_ns: 3 });
    let answers = [answer(0, 1, vec![tensor(&small), tensor(&small)]), answer(1, 2, vec![tensor(&large)])];
    worker.send(&OutMessage::Answers { times, tickets: &[(0, 1), (1, 2)], answers: &answers }).unwrap();
    let Message::Answers { times: seen, tickets, mut answers } = receive(&mut server) else { panic!("no answers") };
    assert_eq!((seen, tickets.as_slice()), (times, [(0, 1), (1, 2)].as_slice()));
    let second = outputs(answers.pop().unwrap().outcome);
    let first = outputs(answers.pop().unwrap().outcome);
    assert_eq!(bytes(&first[0].data), &small);
    let gap = bytes(&first[1].data).as_ptr().addr() - bytes(&first[0].data).as_ptr().addr();
    assert_eq!(gap, 64 * 1024, "both lie in one copy");
    assert_eq!(bytes(&second[0].data), &large);
    assert_eq!(bytes(&second[0].data).as_ptr().addr() % 64, 0);
}

#[test]
fn lent_bytes_outlive_both_ends() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::from_static(b"x"));
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    send_answer(&worker, 0, 1, &vec![8; 1 << 20]);
    let outputs = outputs(receive_answer(&mut server).outcome);
    drop((server, worker, arena, placed));
    assert_eq!(bytes(&outputs[0].data), &vec![8; 1 << 20]);
}

#[test]
fn an_output_may_alias_an_input_of_its_own_request_only() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::from_static(b"\x01\0\0\0x\0\0\0"));
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    let view = claim(&worker, 0).pop().unwrap().inputs.pop().unwrap();
    let output = |datatype, shape: &[i64], offset, len| OutTensor {
        name: TensorName::Index(0),
        datatype,
        shape: Shape::from_slice(shape),
        data: OutData::Input { offset, len },
    };
    let offset = view.offset;
    let tensors = vec![
        output(Datatype::Uint8, &[8], offset, 8),
        output(Datatype::Bytes, &[1], offset, 5),
        output(Datatype::Bytes, &[2], offset, 5),
        output(Datatype::Uint8, &[800], offset, 800),
    ];
    worker.send(&OutMessage::Answer(&answer(0, 1, tensors))).unwrap();
    let outputs = outputs(receive_answer(&mut server).outcome);
    let lent = outputs[0].resolve(&placed).unwrap();
    assert_eq!(arena.offset_of(&lent), Some(offset));
    let private = outputs[1].resolve(&placed).unwrap();
    assert_eq!((private.as_ref(), arena.offset_of(&private)), (b"\x01\0\0\0x".as_slice(), None));
    assert!(outputs[2].resolve(&placed).unwrap_err().text.contains("elements"));
    assert!(outputs[3].resolve(&placed).unwrap_err().text.contains("aliases"));
}

#[test]
fn elements_of_bytes_are_private_however_many_they_are() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::from_static(b"x"));
    server.publish(&[entry(0, 1, &placed), entry(1, 2, &placed)]).unwrap();
    claim(&worker, 2);
    let mut data = 100_000u32.to_le_bytes().to_vec();
    data.resize(100_004, b'z');
    let tensor = |shape| OutTensor {
        name: TensorName::Name("words"),
        datatype: Datatype::Bytes,
        shape: Shape::from_slice(shape),
        data: OutData::Bytes(&data),
    };
    worker.send(&OutMessage::Answer(&answer(0, 1, vec![tensor(&[1, 1])]))).unwrap();
    let outputs = outputs(receive_answer(&mut server).outcome);
    assert_eq!(outputs[0].name, OwnedTensorName::Name("words".into()));
    assert_eq!(bytes(&outputs[0].data), &data);
    worker.send(&OutMessage::Answer(&answer(1, 2, vec![tensor(&[2])]))).unwrap();
    assert!(server.receive().unwrap_err().text.contains("as many elements as the shape says"));
}

#[test]
fn every_other_message_arrives() {
    let Pair { mut server, worker, .. } = pair();
    let line = LogLine { level: 2, file: "model.py".into(), line: 17, text: "hello".into() };
    let (data, correlation_id) = ([1u8, 2], CorrelationId::Number(5));
    let infer = OutInferCall {
        model: "other",
        version: -1,
        id: "a",
        correlation_id: &correlation_id,
        flags: 1,
        timeout_us: 2,
        priority: 3,
        parameters: "{}",
        outputs: vec!["x", "y"],
        inputs: vec![tensor(&data)],
        decoupled: true,
        trace: None,
    };
    let call = OutCall { id: 4, parent: 9, kind: OutCallKind::Infer(infer) };
    let control = OutCall { id: 5, parent: 0, kind: OutCallKind::Control { name: "load_model", json: "{\"a\":1}" } };
    let messages = [
        OutMessage::Ready { checks: true },
        OutMessage::Checked { number: 7, ready: true },
        OutMessage::Failed { text: "no model" },
        OutMessage::Finalized,
        OutMessage::Released { lease: 12 },
        OutMessage::CallCancelled { id: 4 },
        OutMessage::CallDropped { id: 4 },
        OutMessage::Log(&line),
        OutMessage::Call(&control),
        OutMessage::Call(&call),
    ];
    messages.iter().for_each(|message| worker.send(message).unwrap());
    assert_eq!(receive(&mut server), Message::Ready { checks: true });
    assert_eq!(receive(&mut server), Message::Checked { number: 7, ready: true });
    assert_eq!(receive(&mut server), Message::Failed { text: "no model".into() });
    assert_eq!(receive(&mut server), Message::Finalized);
    assert_eq!(receive(&mut server), Message::Released { lease: 12 });
    assert_eq!(receive(&mut server), Message::CallCancelled { id: 4 });
    assert_eq!(receive(&mut server), Message::CallDropped { id: 4 });
    assert_eq!(receive(&mut server), Message::Log(line));
    let Message::Call(control) = receive(&mut server) else { panic!("no call") };
    let kind = alipes_link::CallKind::Control { name: "load_model".into(), json: "{\"a\":1}".into() };
    assert_eq!((control.id, control.parent, control.kind), (5, 0, kind));
    let Message::Call(alipes_link::Call { id: 4, parent: 9, kind: alipes_link::CallKind::Infer(infer) }) =
        receive(&mut server)
    else {
        panic!("no inference")
    };
    assert_eq!((infer.model.as_str(), infer.version, infer.decoupled), ("other", -1, true));
    assert_eq!(infer.outputs, ["x", "y"]);
    assert_eq!(bytes(&infer.inputs[0].data).as_ref(), data);
    assert_eq!(server.receive(), Ok(None));
}

#[test]
fn parameters_and_errors_of_responses_arrive() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    let parameters = [
        ("b".to_owned(), Parameter::Bool(true)),
        ("i".to_owned(), Parameter::Int64(-3)),
        ("d".to_owned(), Parameter::Double(0.5)),
        ("s".to_owned(), Parameter::String("text".into())),
    ];
    let first = OutOutcome::Response { outputs: vec![], parameters: &parameters };
    let answer = |last, outcome| OutAnswer { slot: 0, ticket: 1, last, released: last, outcome };
    worker.send(&OutMessage::Answer(&answer(false, first))).unwrap();
    worker
        .send(&OutMessage::Answer(&answer(false, OutOutcome::Error { code: 3, text: "bad", backend: false })))
        .unwrap();
    worker.send(&OutMessage::Answer(&answer(true, OutOutcome::Empty))).unwrap();
    let Outcome::Response { outputs, parameters: seen } = receive_answer(&mut server).outcome else { panic!() };
    assert!(outputs.is_empty() && seen == parameters);
    let error = receive_answer(&mut server);
    assert_eq!(error.outcome, Outcome::Error { code: 3, text: "bad".into(), backend: false });
    assert!(!error.last && !error.released);
    let end = receive_answer(&mut server);
    assert_eq!((end.outcome, end.last, end.released), (Outcome::Empty, true, true));
}

#[test]
fn mail_arrives_with_its_tensors() {
    let Pair { arena, mut server, worker } = pair();
    let data = Bytes::from_static(&[1, 2, 3]);
    let outputs = [TensorRef { name: TensorName::Name("y"), datatype: Datatype::Int8, shape: &[3], data: &data }];
    let outcomes = [
        MailOutcome::Error { code: 4, text: "gone" },
        MailOutcome::Response { id: "a", outputs: &outputs, parameters: "{}" },
        MailOutcome::Json("[1]"),
        MailOutcome::Empty,
    ];
    let mails: Vec<_> = (1..)
        .zip(outcomes)
        .map(|(call, outcome)| arena.write_mail(&Mail { call, lease: call + 100, last: call == 4, outcome }).unwrap())
        .collect();
    assert!(mails.iter().all(|mail| server.post(mail)));
    let next = || worker.next_mail(Some(Duration::from_secs(10))).unwrap();
    assert_eq!(next().outcome, ReceivedOutcome::Error { code: 4, text: "gone".into() });
    let response = next();
    assert_eq!((response.call, response.lease, response.last), (2, 102, false));
    let ReceivedOutcome::Response { id, outputs, parameters } = response.outcome else { panic!("no response") };
    assert_eq!((id.as_str(), parameters.as_str()), ("a", "{}"));
    let address = worker.memory().at(outputs[0].offset, outputs[0].len).unwrap();
    // SAFETY: in the mapping, and written before.
    assert_eq!(unsafe { std::slice::from_raw_parts(address.as_ptr(), 3) }, [1, 2, 3]);
    assert_eq!(next().outcome, ReceivedOutcome::Json("[1]".into()));
    let last = next();
    assert_eq!((last.outcome, last.last), (ReceivedOutcome::Empty, true));
    assert_eq!(worker.next_mail(Some(Duration::ZERO)), None);
}

#[test]
fn a_claim_takes_what_fits_in_order() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    let rows = |slot: u32, rows, key, group| Entry { rows, key, group, ..entry(slot, 100 + u64::from(slot), &placed) };
    let tickets = |max_rows| claim(&worker, max_rows).iter().map(|request| request.ticket).collect::<Vec<_>>();
    // Rows bound a batch, keys and groups part it.
    server.publish(&[rows(0, 3, 0, 0), rows(1, 1, 0, 0), rows(2, 1, 0, 0), rows(3, 1, 1, 0)]).unwrap();
    assert_eq!(tickets(4), [100, 101]);
    assert_eq!(tickets(4), [102]);
    assert_eq!(tickets(4), [103]);
    // A group is taken whole, and alone.
    server
        .publish(&[rows(4, 1, 0, 0), rows(5, 9, 1, 7), rows(6, 9, 2, 7), rows(7, 1, 0, 8), rows(8, 1, 0, 0)])
        .unwrap();
    assert_eq!([tickets(4), tickets(4), tickets(4), tickets(4)], [vec![104], vec![105, 106], vec![107], vec![108]]);
    // Without batches it is one at a time; one that is larger than allowed comes alone.
    server.publish(&[rows(9, 1, 0, 0), rows(10, 1, 0, 0), rows(11, 9, 0, 0), rows(12, 1, 0, 0)]).unwrap();
    assert_eq!([tickets(0), tickets(1), tickets(4), tickets(4)], [vec![109], vec![110], vec![111], vec![112]]);
}

#[test]
fn a_revoked_request_is_never_claimed_and_frees_its_slot() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed), entry(1, 2, &placed), entry(2, 3, &placed)]).unwrap();
    assert!(server.revoke(1, 2));
    assert!(!server.revoke(1, 2));
    server.publish(&[entry(1, 4, &placed)]).unwrap();
    let tickets: Vec<u64> = claim(&worker, 8).iter().map(|request| request.ticket).collect();
    assert_eq!(tickets, [1, 3, 4]);
    assert!(server.is_claimed(1, 4) && !server.is_claimed(1, 2));
    assert!(!server.revoke(0, 1));
    send_answer(&worker, 0, 1, b"");
    receive(&mut server);
    assert!(!server.is_claimed(0, 1));
}

#[test]
fn a_full_ring_refuses_and_signals_room() {
    let Pair { arena, mut server, worker } = pair_of(Geometry { slots: 2, response_bytes: 1 << 20 });
    let placed = place(&arena, &Bytes::new());
    for ticket in 1..256 {
        server.publish(&[entry(0, ticket, &placed)]).unwrap();
        assert!(server.revoke(0, ticket));
    }
    let two = [entry(0, 256, &placed), entry(1, 257, &placed)];
    assert_eq!(server.publish(&two), None);
    assert!(server.arm(), "nothing has happened yet");
    let claimer = std::thread::spawn({
        let worker = worker.clone();
        move || claim(&worker, 2)
    });
    server.wake();
    // The worker finds nothing to do, and says nothing but this.
    poll(&mut [PollFd::new(&server.doorbell_fd(), PollFlags::IN)], None).unwrap();
    assert_eq!(server.receive(), Ok(None));
    assert!(!server.arm(), "there is room");
    server.publish(&two).unwrap();
    server.wake();
    assert_eq!(claimer.join().unwrap().len(), 2);
    assert!(server.arm());
}

#[test]
fn stop_wakes_a_waiting_claim() {
    let Pair { server, worker, .. } = pair();
    let claimer = std::thread::spawn(move || worker.claim(4, &mut Vec::new()));
    server.stop();
    assert_eq!(claimer.join().unwrap(), Claimed::Stop);
}

#[test]
fn cancellation_is_seen_for_the_request_that_it_is_about() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    let handle = server.handle();
    handle.cancel(0, 77);
    assert!(!worker.is_cancelled(0, 1));
    handle.cancel(0, 1);
    assert!(worker.is_cancelled(0, 1));
    send_answer(&worker, 0, 1, b"");
    receive(&mut server);
    server.publish(&[entry(0, 2, &placed)]).unwrap();
    handle.cancel(0, 1);
    handle.consumed(0, 1, 5, 5);
    assert!(!worker.is_cancelled(0, 2));
}

#[test]
fn a_sender_waits_for_credit_until_something_is_consumed_or_the_caller_left() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    let most = WorkerEnd::MAX_WAITING_RESPONSES;
    assert_eq!(worker.wait_credit(0, 1, most - 1, 0), Credit::Go);
    let handle = server.handle();
    let waiter = |responses, bytes| {
        let worker = worker.clone();
        std::thread::spawn(move || worker.wait_credit(0, 1, responses, bytes))
    };
    let waits = waiter(most, 0);
    handle.consumed(0, 1, 1, 10);
    assert_eq!(waits.join().unwrap(), Credit::Go);
    let waits = waiter(2, WorkerEnd::MAX_WAITING_BYTES + 10);
    handle.consumed(0, 1, 0, 1);
    assert_eq!(waits.join().unwrap(), Credit::Go);
    let waits = waiter(most + 1, 0);
    server.cancel(0, 1);
    assert!(worker.is_cancelled(0, 1));
    assert_eq!(worker.credit(0, 1, most + 1, 0), None, "the caller still takes its responses");
    server.caller_left(0, 1);
    assert_eq!(waits.join().unwrap(), Credit::CallerLeft);
}

#[test]
fn the_doorbell_rings_only_when_armed() {
    let Pair { mut server, worker, .. } = pair();
    let count = |server: &ServerEnd| rustix::io::read(server.doorbell_fd(), &mut [0; 8]).is_ok();
    worker.send(&OutMessage::Ready { checks: false }).unwrap();
    assert!(!count(&server));
    assert!(!server.arm(), "a message is there");
    receive(&mut server);
    assert!(server.arm());
    worker.send(&OutMessage::Ready { checks: false }).unwrap();
    worker.send(&OutMessage::Ready { checks: false }).unwrap();
    assert!(count(&server));
    assert!(!count(&server));
}

#[test]
fn a_quiet_message_waits_for_the_ring_of_the_answers_that_follow() {
    let Pair { arena, mut server, worker } = pair();
    let count = |server: &ServerEnd| rustix::io::read(server.doorbell_fd(), &mut [0; 8]).is_ok();
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    assert!(server.arm());
    assert_eq!(worker.try_send_quietly(&OutMessage::Released { lease: 1 }), Ok(true));
    assert!(!count(&server), "the execution has yet to be answered");
    send_answer(&worker, 0, 1, b"");
    assert!(count(&server));
    assert_eq!(server.receive(), Ok(Some(Message::Released { lease: 1 })));
    assert!(matches!(receive(&mut server), Message::Answers { .. } | Message::Answer(_)));
}

#[test]
fn quiet_messages_ring_where_nothing_follows_them() {
    let Pair { arena, mut server, worker } = pair();
    let count = |server: &ServerEnd| rustix::io::read(server.doorbell_fd(), &mut [0; 8]).is_ok();
    let quietly = |lease| assert_eq!(worker.try_send_quietly(&OutMessage::Released { lease }), Ok(true));
    assert!(server.arm());
    quietly(1);
    assert!(count(&server), "nothing is executed");
    receive(&mut server);

    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    assert!(server.arm());
    let sent = (2..).inspect(|&lease| quietly(lease)).take_while(|_| !count(&server)).count();
    assert_eq!(sent, 15, "so many may wait");
    (0..16).for_each(|_| drop(receive(&mut server)));

    assert!(server.arm());
    quietly(100);
    assert!(!count(&server));
    let claimer = std::thread::spawn({
        let worker = worker.clone();
        move || claim(&worker, 0)
    });
    poll(&mut [PollFd::new(&server.doorbell_fd(), PollFlags::IN)], None).unwrap();
    assert_eq!(
        receive(&mut server),
        Message::Released { lease: 100 },
        "the worker asks for more: the execution is over"
    );
    server.publish(&[entry(1, 2, &placed)]).unwrap();
    server.wake();
    claimer.join().unwrap();
}

#[test]
fn a_worker_answers_checks_while_it_waits_and_while_it_runs() {
    let Pair { server, worker, .. } = pair();
    server.ask(1);
    assert_eq!(worker.next_check(0), Some(1));
    let answers = {
        let worker = Arc::clone(&worker);
        std::thread::spawn(move || [worker.next_check(1), worker.next_check(2)])
    };
    server.ask(2);
    while !answers.is_finished() {
        server.ask(3); // takes the place of a question that was not seen
        std::thread::yield_now();
    }
    let [second, third] = answers.join().unwrap();
    assert!(matches!((second, third), (Some(2), Some(3)) | (Some(3), _)));
}

#[test]
fn a_leaving_worker_gets_no_more_checks() {
    let Pair { server, worker, .. } = pair();
    let waiting = {
        let worker = Arc::clone(&worker);
        std::thread::spawn(move || worker.next_check(0))
    };
    server.stop();
    assert_eq!(waiting.join().unwrap(), None);
    server.ask(1);
    assert_eq!(worker.next_check(0), None);
}

#[test]
fn a_message_larger_than_the_link_is_refused_and_nothing_is_lost_by_it() {
    let Pair { arena, mut server, worker } = pair_of(Geometry { slots: 2, response_bytes: 1 << 20 });
    let placed = place(&arena, &Bytes::new());
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    claim(&worker, 0);
    let half = vec![1; 600_000];
    for _ in 0..5 {
        let refused = worker.send(&OutMessage::Answer(&answer(0, 1, vec![tensor(&half), tensor(&half)])));
        assert!(matches!(refused, Err(SendError::TooLarge { .. })));
    }
    send_answer(&worker, 0, 1, &half);
    assert_eq!(outputs(receive_answer(&mut server).outcome).len(), 1);
}

#[test]
fn answers_to_requests_that_the_worker_does_not_have_are_violations() {
    type Attempt = fn(&mut ServerEnd, &WorkerEnd);
    let attempts: [(&str, Attempt); 4] = [
        ("not in the worker", |_, worker| send_answer(worker, 5, 50, b"")),
        ("not in the worker", |_, worker| send_answer(worker, 1 << 20, 1, b"")),
        ("not in the worker", |server, worker| {
            claim(worker, 0);
            send_answer(worker, 0, 1, b"");
            receive(server);
            send_answer(worker, 0, 1, b"");
        }),
        ("not claimed", |_, worker| send_answer(worker, 0, 1, b"")),
    ];
    for (text, attempt) in attempts {
        let Pair { arena, mut server, worker } = pair();
        let placed = place(&arena, &Bytes::new());
        server.publish(&[entry(0, 1, &placed)]).unwrap();
        attempt(&mut server, &worker);
        let violation = server.receive().unwrap_err();
        assert!(violation.text.contains(text), "{violation}");
        assert_eq!(server.receive(), Err(violation), "a violation is final");
    }
}

#[test]
fn a_request_whose_memory_was_overwritten_is_answered_with_an_error() {
    let Pair { arena, mut server, worker } = pair();
    let placed = place(&arena, &Bytes::new());
    let address = worker.memory().at(placed.offset, 4).unwrap();
    server.publish(&[entry(0, 1, &placed)]).unwrap();
    // SAFETY: in the mapping; another worker could do this.
    unsafe { address.as_ptr().write_bytes(0xff, 4) };
    server.stop();
    server.wake();
    let mut requests = Vec::new();
    // Stop wins over waiting requests, so a second link is asked.
    assert_eq!(worker.claim(0, &mut requests), Claimed::Stop);
    let mut server = ServerEnd::create(GEOMETRY).unwrap();
    let worker = open_worker(&arena, &server);
    server.publish(&[entry(0, 1, &placed), entry(1, 2, &place(&arena, &Bytes::new()))]).unwrap();
    assert_eq!(claim(&worker, 4).len(), 1);
    let answer = receive_answer(&mut server);
    let Outcome::Error { text, .. } = answer.outcome else { panic!("no error") };
    assert!(answer.last && text.contains("overwritten"), "{text}");
}
