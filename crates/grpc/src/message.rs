//! Cutting the bytes of a call into its messages.

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::mem;
use std::sync::Arc;

use alipes_protocol::codec::proto::inference::ModelInferRequest;
use alipes_protocol::codec::proto::{decode_request, parsed_bytes, read_bytes};
use alipes_protocol::limits::{GRPC_WEIGHED_BYTES, MOVED_AT_ONCE_BYTES, READ_AT_ONCE_BYTES};
use alipes_protocol::{Code, InferError, InferRequest, TritonRelease};
use alipes_request::budget::{Budget, Charge, GrowingCharge};
use alipes_service::Service;
use alipes_service::offload::offload;
use alipes_shared_memory::{Finder, Held, Regions};
use bytes::{Buf, Bytes, BytesMut};
use http_body::Body;
use http_body_util::BodyExt;

use super::compression::{self, Encoding};
use super::layout::{Layout, Place};
use super::part::{Growing, Grown, Part};
use super::tensors::SeparatedTensors;

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
    /// These terms, with limits of at most so many bytes on the size of messages.
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
            while let Some(growing) = reader.messages.growing() {
                reader.resume(Box::pin(growing.grow()).await?)?;
            }
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
    /// Its names alone, where it was decoded together with the message.
    pub(super) request: ModelInferRequest,
    decoded: Option<Decoded>,
    /// What the message is charged.
    charge: Charge,
    /// What it takes beside that until it is decoded.
    _parsing: Charge,
}

/// The request, and what it uses of its caller's regions.
type Decoded = Result<(InferRequest, Held), InferError>;

impl Parsed {
    /// # Errors
    ///
    /// What the codec refuses, and `Overloaded` where there is no room for what the message has become.
    pub(super) fn decode(self, regions: &Arc<Regions>, budget: &Arc<Budget>, release: TritonRelease) -> Decoded {
        if let Some(decoded) = self.decoded {
            return decoded;
        }
        let growing = GrowingCharge::new(self.charge, budget);
        let room = |bytes| growing.copy(bytes);
        let mut finder = Finder::new(regions, &room);
        let mut request = decode_request(self.request, release, &mut finder)?;
        let held = finder.held;
        growing.read().ride(budget, &mut request, &held)?;
        Ok((request, held))
    }
}

/// Parses a message: on this thread, or beside it where that takes long.
///
/// # Errors
///
/// Bytes that are no such message, and `Overloaded` for one that would take more than there is room for now.
#[inline]
pub(super) async fn parse_inference(message: Message, service: &Service) -> Result<Parsed, InferError> {
    if is_read_at_once(&message, &service.regions) {
        return parse_now(message, &service.budget);
    }
    let release = service.config.triton_release;
    Box::pin(parse_beside(message, Arc::clone(&service.regions), Arc::clone(&service.budget), release)).await
}

/// Whether a network thread may parse and decode a message, whose tensors may lie in these regions.
pub(super) fn is_read_at_once(message: &Message, regions: &Regions) -> bool {
    let is_short = message.bytes.len() <= READ_AT_ONCE_BYTES || read_bytes(&message.bytes) <= READ_AT_ONCE_BYTES;
    is_short && !regions.may_wait(&message.bytes)
}

/// Parses and decodes on another thread.
///
/// # Errors
///
/// As `parse_inference`.
pub(super) async fn parse_beside(
    message: Message,
    regions: Arc<Regions>,
    budget: Arc<Budget>,
    release: TritonRelease,
) -> Result<Parsed, InferError> {
    let parsed = offload(move || {
        let parsed = parse_now(message, &budget)?;
        let ModelInferRequest { model_name, model_version, id, .. } = &parsed.request;
        let (model_name, model_version, id) = (model_name.clone(), model_version.clone(), id.clone());
        let request = ModelInferRequest { model_name, model_version, id, ..ModelInferRequest::default() };
        let (charge, parsing) = (Charge::default(), Charge::default());
        Ok(Parsed { request, decoded: Some(parsed.decode(&regions, &budget, release)), charge, _parsing: parsing })
    });
    parsed.await.unwrap_or_else(|| Err(InferError::internal("the request message could not be read")))
}

pub(super) fn parse_now(message: Message, budget: &Arc<Budget>) -> Result<Parsed, InferError> {
    let Message { bytes, separated, charge, .. } = message;
    let mut parsing = Charge::default();
    if bytes.len() > GRPC_WEIGHED_BYTES {
        parsing.grow(budget, usize::try_from(parsed_bytes(&bytes)?).unwrap_or(usize::MAX))?;
    }
    let mut request = parse(bytes)?;
    if let Some(separated) = separated {
        separated.fill(&mut request);
    }
    Ok(Parsed { request, decoded: None, charge, _parsing: parsing })
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
        self.check()
    }

    fn resume(&mut self, grown: Grown) -> Result<(), InferError> {
        self.message = match self.messages.resume(grown)? {
            None => self.messages.next()?,
            message => message,
        };
        self.check()
    }

    fn check(&self) -> Result<(), InferError> {
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
    /// A beginning that is to be moved to more room, on another thread.
    Growing(Growing),
    /// One that is being moved there.
    Elsewhere,
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
                    let piece = self.rest.split_to(part.left().min(self.rest.len()));
                    if part.moved_by(piece.len()) > MOVED_AT_ONCE_BYTES {
                        self.begun = Begun::Growing(Growing::new(part, piece));
                        return Ok(None);
                    }
                    part.push(piece);
                    if let Some(message) = self.complete(part)? {
                        return Ok(Some(message));
                    }
                }
                begun @ (Begun::Growing(_) | Begun::Elsewhere) => {
                    self.begun = begun;
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }

    /// Whether there is such a beginning.
    pub(super) fn is_growing(&self) -> bool {
        matches!(self.begun, Begun::Growing(_))
    }

    /// The beginning that is to be moved before `next` can go on, where there is one.
    pub(super) fn growing(&mut self) -> Option<Growing> {
        if !self.is_growing() {
            return None;
        }
        match mem::replace(&mut self.begun, Begun::Elsewhere) {
            Begun::Growing(growing) => Some(growing),
            _ => None,
        }
    }

    /// Goes on with a beginning that was moved; gives the message where it is complete with that.
    ///
    /// # Errors
    ///
    /// There is no room for it.
    pub(super) fn resume(&mut self, grown: Grown) -> Result<Option<Message>, InferError> {
        self.begun = Begun::Nothing;
        self.complete(grown.into_part())
    }

    /// The message where all of it is there, else its beginning is kept.
    fn complete(&mut self, part: Part) -> Result<Option<Message>, InferError> {
        self.charge(part.room())?;
        if part.left() > 0 {
            self.begun = Begun::Part(part);
            return Ok(None);
        }
        let charge = mem::take(&mut self.charge);
        let (bytes, separated) = part.finish();
        Ok(Some(Message { bytes, separated, compressed: self.compressed, charge }))
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
            Begun::Part(Part::begin(first, length, place))
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
