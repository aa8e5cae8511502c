//! Messages that come in pieces, compressed, damaged or too large.

use alipes_protocol::limits::{BODY_PROVEN_BYTES, GRPC_MAX_MESSAGE_BYTES};

use super::super::layout::Plain;
use super::*;

fn plain() -> Plain {
    Plain(Budget::new(u64::MAX))
}

const RECEIVING: Receiving = Receiving {
    encoding: Encoding::Identity,
    max_bytes: GRPC_MAX_MESSAGE_BYTES,
    max_expanded_bytes: GRPC_MAX_MESSAGE_BYTES,
};

fn framed(message: &[u8]) -> Vec<u8> {
    let mut wire = vec![0];
    wire.extend_from_slice(&(message.len() as u32).to_be_bytes());
    wire.extend_from_slice(message);
    wire
}

/// On the heap, with this byte aligned.
struct AlignedAt(usize, Arc<Budget>);

impl Layout for AlignedAt {
    fn of(&self, _: &[u8]) -> Place {
        Place::Heap { aligned_at: self.0 }
    }

    fn budget(&self) -> &Arc<Budget> {
        &self.1
    }
}

fn arrive(wire: &[u8], piece_bytes: usize, aligned_at: usize) -> Result<Bytes, String> {
    let mut reader = UnaryReader::new(AlignedAt(aligned_at, Budget::new(u64::MAX)), RECEIVING);
    let result = wire.chunks(piece_bytes).try_for_each(|piece| reader.take(Bytes::copy_from_slice(piece)));
    result.and_then(|()| reader.finish()).map(|message| message.bytes).map_err(|error| error.message)
}

#[test]
fn a_message_is_the_same_in_pieces_of_any_size() {
    let message: Vec<u8> = (0..200).collect();
    let wire = framed(&message);
    for piece_bytes in 1..=wire.len() {
        assert_eq!(arrive(&wire, piece_bytes, 7).as_deref(), Ok(message.as_slice()));
    }
}

#[tokio::test]
async fn a_large_message_is_moved_on_another_thread_and_stays_whole() {
    let message: Vec<u8> = (0..40_000_000_u32).map(|index| (index / 7) as u8).collect();
    let wire = [framed(&message), framed(b"next")].concat();
    let mut messages = Messages::new(AlignedAt(7, Budget::new(u64::MAX)), RECEIVING);
    let (mut moves, mut found) = (0, Vec::new());
    for piece in wire.chunks(1 << 20) {
        messages.push(Bytes::copy_from_slice(piece));
        loop {
            found.extend(messages.next().unwrap());
            if let Some(growing) = messages.growing() {
                moves += 1;
                assert!(!messages.is_between());
                found.extend(messages.resume(growing.grow().await.unwrap()).unwrap());
            } else if messages.rest.is_empty() {
                break;
            }
        }
    }
    assert!(moves > 0);
    assert!(messages.is_between());
    assert_eq!(found[0].bytes[7..].as_ptr().addr() % 64, 0);
    assert!(found[0].bytes == message && found[1].bytes == "next");
}

#[test]
fn a_message_is_charged_as_it_arrives_or_refused_at_its_prefix() {
    let budget = Budget::new(100_000);
    let wire = framed(&[7; 60_000]);
    let mut messages = Messages::new(Plain(Arc::clone(&budget)), RECEIVING);
    messages.push(Bytes::copy_from_slice(&wire[..30_000]));
    assert!(messages.next().unwrap().is_none());
    messages.push(Bytes::copy_from_slice(&wire[30_000..]));
    let (bytes, charge) = messages.next().unwrap().unwrap().into_parts();
    assert_eq!(bytes.len(), 60_000);
    assert!((60_000..70_000).contains(&budget.used()), "{}", budget.used());
    messages.push(Bytes::copy_from_slice(&wire[..PREFIX_BYTES + 1]));
    assert_eq!(messages.next().err().map(|error| error.code), Some(Code::Overloaded));
    drop((messages, charge));
    assert_eq!(budget.used(), 0);
}

#[test]
fn a_message_that_would_become_too_much_is_not_even_parsed() {
    let budget = Budget::new(1 << 20);
    // Inputs without anything: two bytes each.
    let many = Message::from(Bytes::from([0x2a, 0].repeat(GRPC_WEIGHED_BYTES)));
    assert_eq!(parse_now(many, &budget).err().map(|error| error.code), Some(Code::Overloaded));
    let raw = ModelInferRequest { raw_input_contents: vec![vec![7; 100_000].into()], ..Default::default() };
    let raw = Message::from(Bytes::from(prost::Message::encode_to_vec(&raw)));
    assert!(parse_now(raw, &budget).is_ok());
    assert_eq!(budget.used(), 0);
}

#[test]
fn messages_behind_one_another_are_cut_apart_whatever_the_pieces() {
    let sent: [&[u8]; 5] = [b"one", b"", &[7; 70], b"", b"x"];
    let wire: Vec<u8> = sent.iter().flat_map(|message| framed(message)).collect();
    for piece_bytes in 1..=wire.len() {
        let mut messages = Messages::new(plain(), RECEIVING);
        let mut received = Vec::new();
        for piece in wire.chunks(piece_bytes) {
            messages.push(Bytes::copy_from_slice(piece));
            while let Some(message) = messages.next().unwrap() {
                received.push(message.bytes);
            }
        }
        assert!(messages.is_between());
        assert_eq!(received, sent, "in pieces of {piece_bytes} bytes");
    }
}

#[test]
fn one_piece_is_not_copied() {
    let wire = Bytes::from(framed(b"tensor"));
    let mut reader = UnaryReader::new(plain(), RECEIVING);
    reader.take(wire.clone()).unwrap();
    assert_eq!(reader.finish().unwrap().bytes.as_ptr(), wire[PREFIX_BYTES..].as_ptr());
}

#[test]
fn a_tensor_of_several_pieces_is_aligned() {
    let wire = framed(&[1; 100_000]);
    for start in [0, 1, 35, 64, 77] {
        let message = arrive(&wire, 1000, start).unwrap();
        assert_eq!((message.as_ptr() as usize + start) % 64, 0);
    }
}

#[test]
fn bodies_that_are_not_one_message_are_refused() {
    let one = framed(b"one");
    let two = [one.clone(), one.clone()].concat();
    assert_eq!(arrive(&[], 8, 0), Err("the call ended without a request message".to_owned()));
    assert_eq!(arrive(&one[..3], 8, 0), Err("the call ended within its request message".to_owned()));
    assert_eq!(arrive(&one[..5], 8, 0), Err("the call ended within its request message".to_owned()));
    assert_eq!(arrive(&one[..7], 6, 0), Err("the call ended within its request message".to_owned()));
    for piece_bytes in 1..=two.len() {
        let error = "the call carries more than its one request message".to_owned();
        assert_eq!(arrive(&two, piece_bytes, 0), Err(error));
    }
}

#[test]
fn a_huge_length_is_refused_and_a_large_one_reserves_little() {
    let error = arrive(&[0, 0xff, 0xff, 0xff, 0xff], 8, 0).unwrap_err();
    assert_eq!(error, "request message of 4294967295 bytes exceeds the limit of 2147483647 bytes");
    let mut messages = Messages::new(plain(), RECEIVING);
    messages.push(Bytes::from_static(&[0, 0x7f, 0xff, 0xff, 0xff, 1]));
    assert!(matches!(messages.next(), Ok(None)));
    match messages.begun {
        Begun::Part(Part::Heap { received, .. }) => assert!(received.capacity() <= 2 * BODY_PROVEN_BYTES),
        _ => panic!("a message that has only begun"),
    }
}

#[test]
fn a_message_may_be_as_large_as_the_limit_and_no_larger() {
    let arrive = |bytes: usize| {
        let mut messages = Messages::new(plain(), Receiving { max_bytes: 100, ..RECEIVING });
        messages.push(framed(&vec![7; bytes]).into());
        messages.next().map(|message| message.map(|message| message.bytes.len()))
    };
    assert_eq!(arrive(100), Ok(Some(100)));
    assert_eq!(arrive(101).unwrap_err().message, "request message of 101 bytes exceeds the limit of 100 bytes");
}

#[test]
fn a_compressed_message_is_marked_and_collected_on_the_heap() {
    let receiving = Receiving { encoding: Encoding::Gzip, ..RECEIVING };
    for piece_bytes in [1, 4, 5, 6, 70, 200] {
        let mut wire = framed(&[9; 100]);
        wire[0] = 1;
        let mut messages = Messages::new(AlignedAt(13, Budget::new(u64::MAX)), receiving);
        let mut message = None;
        for piece in wire.chunks(piece_bytes) {
            messages.push(Bytes::copy_from_slice(piece));
            message = message.or(messages.next().unwrap());
        }
        assert!(message.unwrap().is_compressed());
    }
}

#[test]
fn unknown_marks_and_unnamed_encodings_are_refused() {
    let error = arrive(&[1, 0, 0, 0, 0], 8, 0).unwrap_err();
    assert_eq!(error, "a compressed request message comes without grpc-encoding");
    assert_eq!(arrive(&[2, 0, 0, 0, 0], 8, 0).unwrap_err(), "a message begins with 2, expected 0 or 1");
}
