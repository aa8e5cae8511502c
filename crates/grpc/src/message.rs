//! Cutting the bytes of a call into its messages.

use std::error::Error;
use std::mem;
use std::sync::Arc;

use alipes_net::aligned::AlignedBytes;
use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::parsed_bytes;
use alipes_protocol::limits::GRPC_WEIGHED_BYTES;
use alipes_protocol::{Code, InferError};
use alipes_request::budget::{Budget, Charge};
use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

use super::compression::{self, Encoding};
use super::layout::{Layout, Place};
use super::tensors::{SeparatedTensors, Sorting};

/// Bytes in front of a message: a flag for compression and the length.
pub(super) const PREFIX_BYTES: usize = 5;

/// A message, as serialized.
pub(super) struct Message {
    /// All of it but the tensors that were taken out.
    pub(super) bytes: Bytes,
    separated: Option<Box<SeparatedTensors>>,
    compressed: bool,
    charge: Charge,
}

/// What a call may send, and how.
#[derive(Clone, Copy, Debug)]
pub(super) struct Receiving {
    /// How those of its messages are compressed that are.
    pub(super) encoding: Encoding,
    /// Largest message.
    pub(super) max_bytes: usize,
    /// Largest message that came compressed, once it is expanded.
    pub(super) max_expanded_bytes: usize,
}

impl Receiving {
    /// The same with a lower limit on the size of messages.
    pub(super) fn at_most(self, bytes: usize) -> Receiving {
        let Receiving { encoding, max_bytes, max_expanded_bytes } = self;
        Receiving { encoding, max_bytes: max_bytes.min(bytes), max_expanded_bytes: max_expanded_bytes.min(bytes) }
    }
}

impl Message {
    pub(super) fn is_compressed(&self) -> bool {
        self.compressed
    }

    /// The message as it was before it was compressed.
    ///
    /// # Errors
    ///
    /// As `compression::expand`.
    pub(super) async fn expanded(self, receiving: Receiving, budget: Arc<Budget>) -> Result<Message, InferError> {
        if !self.compressed {
            return Ok(self);
        }
        let Receiving { encoding, max_expanded_bytes, .. } = receiving;
        let (bytes, charge) = compression::expand(self.into_parts(), encoding, max_expanded_bytes, budget).await?;
        Ok(Message { charge, ..bytes.into() })
    }

    /// The bytes, and what they are charged.
    pub(super) fn into_parts(self) -> (Bytes, Charge) {
        (self.bytes, self.charge)
    }
}

/// The one message of a unary call.
///
/// # Errors
///
/// A body that ends early, holds more than one message or none, a too large message or one that cannot be expanded, one
/// for which there is no room, a broken connection.
pub(super) async fn read_message<B>(
    mut body: B,
    layout: impl Layout,
    receiving: Receiving,
) -> Result<Message, InferError>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Error,
{
    let mut reader = UnaryReader::new(layout, receiving);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| broken(&error))?;
        if let Ok(piece) = frame.into_data() {
            reader.take(piece)?;
        }
        if body.is_end_stream() {
            break;
        }
    }
    let message = reader.finish()?;
    if !message.is_compressed() {
        return Ok(message);
    }
    Box::pin(message.expanded(receiving, reader.messages.budget())).await
}

/// The bytes as a message of its type.
///
/// # Errors
///
/// Bytes that are no such message.
pub(super) fn parse<M: prost::Message + Default>(message: Bytes) -> Result<M, InferError> {
    M::decode(message).map_err(|error| InferError::internal(format!("failed to parse the request message: {error}")))
}

/// An inference request, with its tensors back in it.
pub(super) struct Parsed {
    pub(super) request: ModelInferRequest,
    /// What the message is charged.
    pub(super) charge: Charge,
    /// What it takes beside that until it is decoded.
    _parsing: Charge,
}

/// # Errors
///
/// Bytes that are no such message, and `Overloaded` for one that would take more than there is room for now.
pub(super) fn parse_inference(message: Message, budget: &Arc<Budget>) -> Result<Parsed, InferError> {
    let Message { bytes, separated, charge, .. } = message;
    let mut parsing = Charge::default();
    if bytes.len() > GRPC_WEIGHED_BYTES {
        parsing.grow(budget, usize::try_from(parsed_bytes(&bytes)).unwrap_or(usize::MAX))?;
    }
    let mut request = parse(bytes)?;
    if let Some(separated) = separated {
        separated.fill(&mut request);
    }
    Ok(Parsed { request, charge, _parsing: parsing })
}

/// Insists on exactly one message.
struct UnaryReader<L> {
    messages: Messages<L>,
    message: Option<Message>,
}

impl<L: Layout> UnaryReader<L> {
    fn new(layout: L, receiving: Receiving) -> UnaryReader<L> {
        UnaryReader { messages: Messages::new(layout, receiving), message: None }
    }

    fn take(&mut self, piece: Bytes) -> Result<(), InferError> {
        if piece.is_empty() {
            return Ok(());
        }
        if self.message.is_some() {
            return Err(more_than_one());
        }
        self.messages.push(piece);
        self.message = self.messages.next()?;
        // What stands behind a message is not even looked at.
        if self.message.is_some() && !self.messages.is_between() { Err(more_than_one()) } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<Message, InferError> {
        match self.message.take() {
            Some(message) => Ok(message),
            None if self.messages.is_between() => Err(InferError::internal("the call ended without a request message")),
            None => Err(within_message()),
        }
    }
}

/// The messages of a call, in the order in which they arrive.
///
/// A message that came in one piece is a slice of the network buffer. One that came in several is copied together,
/// once, where the layout says.
pub(super) struct Messages<L> {
    layout: L,
    /// Bytes that have arrived and were not looked at.
    rest: Bytes,
    begun: Begun,
    receiving: Receiving,
    /// What has begun is compressed.
    compressed: bool,
    /// What has begun is charged so much.
    charge: Charge,
}

/// The received part of the next message.
enum Begun {
    Nothing,
    /// Fewer bytes than the prefix has.
    Prefix(BytesMut),
    /// The prefix alone, with the announced length.
    Announced(usize),
    /// The beginning.
    Part(Part),
}

/// The beginning of a message.
enum Part {
    Heap { received: AlignedBytes, length: usize },
    // Boxed, since it is large and seldom.
    Workers(Box<Sorting>),
}

impl<L: Layout> Messages<L> {
    pub(super) fn new(layout: L, receiving: Receiving) -> Messages<L> {
        Messages {
            layout,
            rest: Bytes::new(),
            begun: Begun::Nothing,
            receiving,
            compressed: false,
            charge: Charge::default(),
        }
    }

    /// What they are charged to.
    pub(super) fn budget(&self) -> Arc<Budget> {
        Arc::clone(self.layout.budget())
    }

    /// Appends a piece. All messages that were complete before have been taken: only then is there nothing to join.
    pub(super) fn push(&mut self, piece: Bytes) {
        debug_assert!(self.rest.is_empty(), "{} bytes were not looked at", self.rest.len());
        self.rest = piece;
    }

    /// Whether everything that arrived belongs to messages that were taken.
    pub(super) fn is_between(&self) -> bool {
        self.rest.is_empty() && matches!(self.begun, Begun::Nothing)
    }

    /// The next message, if it is complete; nothing is left unlooked at otherwise.
    ///
    /// # Errors
    ///
    /// A too large message, one that is compressed in an unknown way, or one for which there is no room.
    pub(super) fn next(&mut self) -> Result<Option<Message>, InferError> {
        while !self.rest.is_empty() {
            match mem::replace(&mut self.begun, Begun::Nothing) {
                Begun::Nothing if self.rest.len() < PREFIX_BYTES => {
                    self.begun = Begun::Prefix(BytesMut::from(mem::take(&mut self.rest)));
                }
                Begun::Nothing => {
                    let prefix = self.rest.split_to(PREFIX_BYTES);
                    let length = self.message_length(&prefix)?;
                    if let Some(message) = self.begin(length)? {
                        return Ok(Some(message));
                    }
                }
                Begun::Prefix(mut prefix) => {
                    let missing = PREFIX_BYTES - prefix.len();
                    prefix.extend_from_slice(&self.rest.split_to(missing.min(self.rest.len())));
                    if prefix.len() < PREFIX_BYTES {
                        self.begun = Begun::Prefix(prefix);
                    } else {
                        let length = self.message_length(&prefix)?;
                        if let Some(message) = self.begin(length)? {
                            return Ok(Some(message));
                        }
                    }
                }
                Begun::Announced(length) => {
                    if let Some(message) = self.begin(length)? {
                        return Ok(Some(message));
                    }
                }
                Begun::Part(mut part) => {
                    part.extend(&self.rest.split_to(part.left().min(self.rest.len())));
                    self.charge(part.room())?;
                    if part.left() == 0 {
                        let charge = mem::take(&mut self.charge);
                        return Ok(Some(Message { compressed: self.compressed, charge, ..part.into_message() }));
                    }
                    self.begun = Begun::Part(part);
                }
            }
        }
        Ok(None)
    }

    /// Behind the prefix: the message where all of it is there, else its beginning is kept.
    fn begin(&mut self, length: usize) -> Result<Option<Message>, InferError> {
        let arrived = self.rest.len();
        if arrived >= length {
            let bytes = if arrived == length { mem::take(&mut self.rest) } else { self.rest.split_to(length) };
            self.charge(length)?;
            let charge = mem::take(&mut self.charge);
            return Ok(Some(Message { bytes, separated: None, compressed: self.compressed, charge }));
        }
        self.layout.budget().check(length as u64)?;
        let first = mem::take(&mut self.rest);
        self.begun = if first.is_empty() {
            Begun::Announced(length)
        } else {
            // Nothing can be found in a compressed message before it is complete.
            let place = if self.compressed { Place::Heap { aligned_at: 0 } } else { self.layout.of(&first) };
            Begun::Part(Part::begin(&first, length, place))
        };
        Ok(None)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), InferError> {
        self.charge.grow(self.layout.budget(), bytes)
    }

    /// The length that a prefix announces.
    fn message_length(&mut self, mut prefix: &[u8]) -> Result<usize, InferError> {
        self.compressed = match prefix.get_u8() {
            0 => false,
            1 if self.receiving.encoding == Encoding::Identity => {
                return Err(InferError::internal("a compressed request message comes without grpc-encoding"));
            }
            1 => true,
            flag => return Err(InferError::internal(format!("a message begins with {flag}, expected 0 or 1"))),
        };
        let (length, most) = (prefix.get_u32() as usize, self.receiving.max_bytes);
        if length > most {
            let text = format!("request message of {length} bytes exceeds the limit of {most} bytes");
            return Err(InferError::new(Code::TooLarge, text));
        }
        Ok(length)
    }
}

impl Part {
    fn begin(first: &[u8], length: usize, place: Place) -> Part {
        match place {
            Place::Heap { aligned_at } => {
                Part::Heap { received: AlignedBytes::begin(first, length, aligned_at), length }
            }
            Place::Workers(arena) => {
                let mut sorting = Sorting::begin(arena, length);
                sorting.extend(first);
                Part::Workers(Box::new(sorting))
            }
        }
    }

    fn extend(&mut self, piece: &[u8]) {
        match self {
            Part::Heap { received, .. } => received.extend(piece),
            Part::Workers(sorting) => sorting.extend(piece),
        }
    }

    fn left(&self) -> usize {
        match self {
            Part::Heap { received, length } => length - received.len(),
            Part::Workers(sorting) => sorting.left(),
        }
    }

    /// Bytes that it takes.
    fn room(&self) -> usize {
        match self {
            Part::Heap { received, .. } => received.capacity(),
            Part::Workers(sorting) => sorting.arrived(),
        }
    }

    fn into_message(self) -> Message {
        match self {
            Part::Heap { received, .. } => received.freeze().into(),
            Part::Workers(sorting) => {
                let (bytes, separated) = sorting.finish();
                Message { separated: Some(Box::new(separated)), ..bytes.into() }
            }
        }
    }
}

impl From<Bytes> for Message {
    fn from(bytes: Bytes) -> Message {
        Message { bytes, separated: None, compressed: false, charge: Charge::default() }
    }
}

/// A call that ends where it must not.
pub(super) fn within_message() -> InferError {
    InferError::internal("the call ended within its request message")
}

fn more_than_one() -> InferError {
    InferError::internal("the call carries more than its one request message")
}

fn broken(error: &impl Error) -> InferError {
    InferError::new(Code::Cancelled, format!("the call broke off within its request message: {error}"))
}

#[cfg(test)]
mod tests {
    use alipes_protocol::limits::{BODY_RESERVE_BYTES, GRPC_MAX_MESSAGE_BYTES};

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
        assert_eq!(parse_inference(many, &budget).err().map(|error| error.code), Some(Code::Overloaded));
        let raw = ModelInferRequest { raw_input_contents: vec![vec![7; 100_000].into()], ..Default::default() };
        let raw = Message::from(Bytes::from(prost::Message::encode_to_vec(&raw)));
        assert!(parse_inference(raw, &budget).is_ok());
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
            Begun::Part(Part::Heap { received, .. }) => assert!(received.capacity() <= 2 * BODY_RESERVE_BYTES),
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
}
