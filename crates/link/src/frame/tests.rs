//! What is written is what is read, and whatever else is read hurts nobody.

mod fuzz;

use std::cell::RefCell;
use std::collections::HashMap;

use alipes_protocol::{CorrelationId, Datatype, Parameter, Shape};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::answer::{Lender, Slots};
use super::request::View;
use super::{INLINE_BYTES, Malformed, Reader, Writer, mail, message, request};
use crate::*;

/// A response arena of nothing but its slots.
#[derive(Default)]
struct Store(RefCell<HashMap<u64, Bytes>>);

impl Slots for &Store {
    type Refusal = ();

    fn place(&mut self, bytes: &[u8]) -> Result<u64, ()> {
        let mut slots = self.0.borrow_mut();
        let offset = slots.len() as u64 * (1 << 20);
        slots.insert(offset, Bytes::copy_from_slice(bytes));
        Ok(offset)
    }

    fn count_private(&mut self, _: usize) -> Result<(), ()> {
        Ok(())
    }
}

impl Lender for Store {
    fn lend(&self, offset: u64, len: u64, _: bool) -> Result<Bytes, Malformed> {
        let slots = self.0.borrow();
        let slot = slots.get(&offset).filter(|slot| slot.len() as u64 == len);
        slot.cloned().ok_or(Malformed("a slot"))
    }
}

fn name() -> impl Strategy<Value = OwnedTensorName> {
    prop_oneof![(0..u16::MAX).prop_map(OwnedTensorName::Index), "[a-zä]{0,8}".prop_map(OwnedTensorName::Name),]
}

fn correlation() -> impl Strategy<Value = CorrelationId> {
    prop_oneof![any::<u64>().prop_map(CorrelationId::Number), ".{0,9}".prop_map(CorrelationId::Text)]
}

fn parameter() -> impl Strategy<Value = (String, Parameter)> {
    let value = prop_oneof![
        any::<bool>().prop_map(Parameter::Bool),
        any::<i64>().prop_map(Parameter::Int64),
        (-1e9..1e9).prop_map(Parameter::Double),
        ".{0,9}".prop_map(Parameter::String),
    ];
    (".{0,9}", value)
}

/// Shape and bytes that fit each other.
fn content() -> impl Strategy<Value = (Datatype, Shape, Bytes)> {
    let numbers = (prop::sample::select(vec![Datatype::Bool, Datatype::Int16, Datatype::Fp64]), vec(0i64..5, 0..4))
        .prop_flat_map(|(datatype, shape)| {
            let len = shape.iter().product::<i64>() as usize * datatype.size().unwrap();
            (Just(datatype), Just(shape), vec(any::<u8>(), len))
        });
    let words = vec(vec(any::<u8>(), 0..9), 0..5).prop_map(|words| {
        let mut data = Vec::new();
        words.iter().for_each(|word| alipes_protocol::codec::elements::push(&mut data, word));
        (Datatype::Bytes, vec![words.len() as i64], data)
    });
    let large = (INLINE_BYTES + 1..INLINE_BYTES + 100)
        .prop_map(|len| (Datatype::Uint8, vec![1, len as i64], vec![len as u8; len]));
    prop_oneof![4 => numbers, 3 => words, 1 => large]
        .prop_map(|(datatype, shape, data)| (datatype, Shape::from_vec(shape), data.into()))
}

fn output() -> impl Strategy<Value = Output> {
    (name(), content(), option::of(any::<u32>())).prop_map(|(name, (datatype, shape, data), alias)| {
        let data = match alias {
            Some(offset) => OutputData::Input { offset: offset.into(), len: data.len() },
            None => OutputData::Bytes(data),
        };
        Output { name, datatype, shape, data }
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let outcome = prop_oneof![
        Just(Outcome::Empty),
        Just(Outcome::Again),
        (0u8..8, ".{0,20}", any::<bool>()).prop_map(|(code, text, backend)| Outcome::Error { code, text, backend }),
        (vec(output(), 0..4), vec(parameter(), 0..3))
            .prop_map(|(outputs, parameters)| Outcome::Response { outputs, parameters }),
    ];
    (any::<u32>(), any::<u64>(), any::<bool>(), any::<bool>(), outcome)
        .prop_map(|(slot, ticket, last, released, outcome)| Answer { slot, ticket, last, released, outcome })
}

fn infer() -> impl Strategy<Value = CallKind> {
    let head = (".{0,9}", any::<i64>(), ".{0,9}", correlation(), any::<u32>(), any::<u64>(), any::<u64>());
    let rest = (".{0,9}", vec(".{0,9}", 0..3), vec(output(), 0..3), any::<bool>(), option::of(".{0,9}"));
    (head, rest).prop_map(
        |(
            (model, version, id, correlation_id, flags, timeout_us, priority),
            (parameters, outputs, inputs, decoupled, trace),
        )| {
            CallKind::Infer(Box::new(InferCall {
                model,
                version,
                id,
                correlation_id,
                flags,
                timeout_us,
                priority,
                parameters,
                outputs,
                inputs,
                decoupled,
                trace,
            }))
        },
    )
}

fn any_message() -> impl Strategy<Value = Message> {
    let control = (".{0,9}", ".{0,30}").prop_map(|(name, json)| CallKind::Control { name, json });
    let times =
        any::<(u64, u64, u64)>().prop_map(|(claimed_ns, began_ns, ended_ns)| Times { claimed_ns, began_ns, ended_ns });
    prop_oneof![
        any::<bool>().prop_map(|checks| Message::Ready { checks }),
        any::<(u64, bool)>().prop_map(|(number, ready)| Message::Checked { number, ready }),
        Just(Message::Finalized),
        ".{0,20}".prop_map(|text| Message::Failed { text }),
        any::<u64>().prop_map(|lease| Message::Released { lease }),
        any::<u64>().prop_map(|id| Message::CallCancelled { id }),
        any::<u64>().prop_map(|id| Message::CallDropped { id }),
        answer().prop_map(Message::Answer),
        (option::of(times), vec(any::<(u32, u64)>(), 0..5), vec(answer(), 0..4))
            .prop_map(|(times, tickets, answers)| Message::Answers { times, tickets, answers }),
        (any::<u64>(), any::<u64>(), prop_oneof![control, infer()])
            .prop_map(|(id, parent, kind)| Message::Call(Call { id, parent, kind })),
        (any::<u8>(), ".{0,9}", any::<u32>(), ".{0,9}").prop_map(|(level, file, line, text)| Message::Log(LogLine {
            level,
            file,
            line,
            text
        })),
    ]
}

fn borrow_name(name: &OwnedTensorName) -> TensorName<'_> {
    match name {
        OwnedTensorName::Index(index) => TensorName::Index(*index),
        OwnedTensorName::Name(name) => TensorName::Name(name),
    }
}

fn borrow_output(Output { name, datatype, shape, data }: &Output) -> OutTensor<'_> {
    let data = match data {
        OutputData::Bytes(bytes) => OutData::Bytes(bytes),
        OutputData::Input { offset, len } => OutData::Input { offset: *offset, len: *len },
    };
    OutTensor { name: borrow_name(name), datatype: *datatype, shape: shape.clone(), data }
}

fn borrow_outputs(outputs: &[Output]) -> Vec<OutTensor<'_>> {
    outputs.iter().map(borrow_output).collect()
}

fn borrow_answer(answer: &Answer) -> OutAnswer<'_> {
    let Answer { slot, ticket, last, released, outcome } = answer;
    let outcome = match outcome {
        Outcome::Empty => OutOutcome::Empty,
        Outcome::Again => OutOutcome::Again,
        Outcome::Error { code, text, backend } => OutOutcome::Error { code: *code, text, backend: *backend },
        Outcome::Response { outputs, parameters } => {
            OutOutcome::Response { outputs: borrow_outputs(outputs), parameters }
        }
    };
    OutAnswer { slot: *slot, ticket: *ticket, last: *last, released: *released, outcome }
}

fn borrow_call(Call { id, parent, kind }: &Call) -> OutCall<'_> {
    let kind = match kind {
        CallKind::Control { name, json } => OutCallKind::Control { name, json },
        CallKind::Infer(call) => OutCallKind::Infer(OutInferCall {
            model: &call.model,
            version: call.version,
            id: &call.id,
            correlation_id: &call.correlation_id,
            flags: call.flags,
            timeout_us: call.timeout_us,
            priority: call.priority,
            parameters: &call.parameters,
            outputs: call.outputs.iter().map(String::as_str).collect(),
            inputs: borrow_outputs(&call.inputs),
            decoupled: call.decoupled,
            trace: call.trace.as_deref(),
        }),
    };
    OutCall { id: *id, parent: *parent, kind }
}

fn frame_of(writer: &Writer<'_>) -> Vec<u8> {
    let mut frame = vec![0; writer.len()];
    writer.write_to(&mut frame);
    frame
}

/// The frame of a message.
fn encode(message: &Message, store: &Store) -> Vec<u8> {
    let write = |out: &OutMessage<'_>| {
        let mut writer = Writer::new();
        message::write(&mut writer, out, &mut &*store).unwrap();
        frame_of(&writer)
    };
    match message {
        Message::Ready { checks } => write(&OutMessage::Ready { checks: *checks }),
        Message::Checked { number, ready } => write(&OutMessage::Checked { number: *number, ready: *ready }),
        Message::Finalized => write(&OutMessage::Finalized),
        Message::Failed { text } => write(&OutMessage::Failed { text }),
        Message::Released { lease } => write(&OutMessage::Released { lease: *lease }),
        Message::CallCancelled { id } => write(&OutMessage::CallCancelled { id: *id }),
        Message::CallDropped { id } => write(&OutMessage::CallDropped { id: *id }),
        Message::Answer(answer) => write(&OutMessage::Answer(&borrow_answer(answer))),
        Message::Answers { times, tickets, answers } => {
            let answers: Vec<OutAnswer<'_>> = answers.iter().map(borrow_answer).collect();
            write(&OutMessage::Answers { times: *times, tickets, answers: &answers })
        }
        Message::Call(call) => write(&OutMessage::Call(&borrow_call(call))),
        Message::Log(line) => write(&OutMessage::Log(line)),
    }
}

proptest! {
    #[test]
    fn a_message_is_read_as_it_was_written(message in any_message()) {
        let store = Store::default();
        let frame = Bytes::from(encode(&message, &store));
        prop_assert_eq!(message::read(&frame, &store), Ok(message));
    }

    #[test]
    fn a_damaged_message_hurts_nobody(
        message in any_message(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in option::of(any::<prop::sample::Index>()),
    ) {
        let store = Store::default();
        let mut frame = encode(&message, &store);
        for (at, byte) in damage {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        if let Some(cut) = cut {
            frame.truncate(cut.index(frame.len()));
        }
        let _ = message::read(&frame.into(), &store);
    }

    #[test]
    fn any_bytes_are_a_message_or_malformed(mut frame in vec(any::<u8>(), 0..200), kind in 0u8..12) {
        let len = frame.len();
        if len > 4 {
            // Past the length and the kind, which seldom are right by chance.
            frame[..4].copy_from_slice(&(len as u32).to_le_bytes());
            frame[4] = kind;
        }
        let _ = message::read(&frame.into(), &Store::default());
    }

    #[test]
    fn a_request_is_read_as_it_was_written(
        texts in (".{0,9}", ".{0,9}", option::of(".{0,9}")),
        correlation_id in correlation(),
        numbers in any::<(u32, u64, u64)>(),
        outputs in vec(any::<u16>(), 0..4),
        inputs in vec((name(), content()), 0..4),
    ) {
        let (id, parameters, trace) = texts;
        let (flags, timeout_us, priority) = numbers;
        let trace_text = trace.as_deref();
        let head = RequestHead {
            id: &id, correlation_id: &correlation_id, flags, timeout_us, priority, parameters: &parameters,
            outputs: &outputs, trace: trace_text,
        };
        let tensors: Vec<TensorRef<'_>> = inputs.iter().map(|(name, (datatype, shape, data))| TensorRef {
            name: borrow_name(name), datatype: *datatype, shape, data,
        }).collect();
        let mut writer = Writer::new();
        request::write(&mut writer, &head, &tensors, |_| None);
        let frame = frame_of(&writer);
        let (mut reader, data) = Reader::new(&frame).unwrap();
        let view = View { data: data as u64, arena_len: frame.len().max(data) as u64 };
        let read = request::read(&mut reader, &view).unwrap();
        prop_assert_eq!((&read.id, &read.parameters, &read.trace), (&id, &parameters, &trace));
        prop_assert_eq!((read.flags, read.timeout_us, read.priority), (flags, timeout_us, priority));
        prop_assert_eq!((&read.outputs, &read.correlation_id), (&outputs, &correlation_id));
        for (view, (name, (datatype, shape, data))) in read.inputs.iter().zip(&inputs) {
            prop_assert_eq!((&view.name, &view.datatype, &view.shape), (name, datatype, shape));
            prop_assert_eq!(view.len, data.len());
            if !data.is_empty() {
                prop_assert_eq!(&frame[view.offset as usize..][..view.len], data.as_ref());
            }
            prop_assert!(view.offset % 64 == 0);
        }
        prop_assert_eq!(read.inputs.len(), inputs.len());
    }

    #[test]
    fn any_bytes_are_a_request_or_a_mail_or_malformed(mut frame in vec(any::<u8>(), 4..200)) {
        let len = frame.len() as u32;
        frame[..4].copy_from_slice(&len.to_le_bytes());
        let (reader, data) = Reader::new(&frame).unwrap();
        let view = View { data: data as u64, arena_len: 1 << 20 };
        if let Ok(request) = request::read(&mut reader.clone(), &view) {
            prop_assert!(request.inputs.iter().all(|input| input.offset + input.len as u64 <= 1 << 20));
        }
        let _ = mail::read(&mut reader.clone(), &view);
    }
}

#[test]
fn the_order_of_datatypes_is_that_of_their_numbers() {
    for (number, datatype) in Datatype::ALL.into_iter().enumerate() {
        assert_eq!(datatype as usize, number);
    }
}

#[test]
fn the_same_gigabyte_is_not_copied_again_and_again() {
    struct Never;
    impl Lender for Never {
        fn lend(&self, _: u64, _: u64, private: bool) -> Result<Bytes, Malformed> {
            assert!(private);
            Ok(Bytes::from_static(b"\0\0\0\0"))
        }
    }
    let mut writer = Writer::new();
    writer.u8(5);
    writer.u32(0);
    writer.u64(1);
    writer.bytes(&[1, 1, 2]);
    writer.count(0);
    writer.count(3);
    for _ in 0..3 {
        let place = super::tensor::Place::Responses { offset: 0, len: 1 << 30 };
        super::tensor::write(&mut writer, TensorName::Index(0), Datatype::Bytes, &[1], place);
    }
    let refusal = message::read(&frame_of(&writer).into(), &Never).unwrap_err();
    assert_eq!(refusal, Malformed("at most 2 GiB of BYTES tensors"));
}
