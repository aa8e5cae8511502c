//! `ModelStreamInfer`: requests and responses on one call, each at its own pace.
//!
//! The answer's body is the whole of it: whenever the connection can send, it is asked for a frame, and it then takes
//! what requests have come, asks the models, and writes what responses have come, all of them into one frame. So no
//! task runs for a stream or a response, and a client that does not read is not read from either.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use alipes_protocol::InferError;
use alipes_protocol::codec::proto::{ResponseMessage, StreamMessage};
use alipes_protocol::limits::GRPC_MAX_STREAM_REQUESTS;
use bytes::{Bytes, BytesMut};
use compact_str::CompactString;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::sync::watch;
use tokio::time::{self, Sleep};

use super::answer::{check_length, compressed_prefix, prefix};
use super::compression::{COMPRESS_HERE_BYTES, Encoding, Press};
use super::head::Head;
use super::infer::{Forwarded, decode, forwarded};
use super::layout::Inference;
use super::message::{Message, Messages, PREFIX_BYTES, Parsed, Receiving, parse_inference, within_message};
use super::tracing::Entry;
use super::{deadline, status};
use crate::executor::answer::Reply;
use crate::net::connection::RequestBody;
use crate::service::Service;
use crate::service::stream::{News, Session};
use crate::trace::sent::Sent;

/// Responses are written together up to about this many bytes: enough to make frames and wake-ups few, little enough
/// that what is held for a slow reader stays small.
const BATCH_BYTES: usize = 64 * 1024;

/// A client that sends this with the value `true` wants the first error of a model to end the stream with its status.
const STRICT_ERRORS: &str = "triton_grpc_error";

/// The body of a stream's answer.
pub(super) struct StreamAnswer {
    service: Arc<Service>,
    incoming: RequestBody,
    messages: Messages<Inference<Arc<Service>>>,
    session: Session,
    outgoing: Outgoing,
    strict_errors: bool,
    forwarded: Forwarded,
    entry: Option<Box<Entry>>,
    reading: Reading,
    receiving: Receiving,
    /// A compressed request that is being expanded; what follows it waits.
    expanding: Option<Expanding>,
    /// Wakes when the client no longer waits.
    deadline: Option<Pin<Box<Sleep>>>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: Phase,
}

type Expanding = Pin<Box<dyn Future<Output = Result<Message, InferError>> + Send>>;

/// Whether requests may still come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    /// The client has said that there are no more.
    HalfClosed,
    /// The server takes no more.
    Draining,
}

enum Phase {
    Open,
    Ending(HeaderMap),
    Over,
}

impl StreamAnswer {
    /// # Errors
    ///
    /// Metadata that cannot be handed to models.
    pub(super) fn new(
        service: Arc<Service>,
        headers: &HeaderMap,
        head: Head,
        incoming: RequestBody,
        mut draining: watch::Receiver<bool>,
    ) -> Result<StreamAnswer, InferError> {
        Ok(StreamAnswer {
            forwarded: forwarded(&service, headers)?,
            session: Session::new(Arc::clone(&service)),
            messages: Messages::new(Inference(Arc::clone(&service)), head.receiving),
            entry: Entry::new(&service, headers),
            service,
            incoming,
            outgoing: Outgoing { press: head.press, ..Outgoing::default() },
            strict_errors: headers.get(STRICT_ERRORS).is_some_and(|value| value == "true"),
            reading: Reading::Open,
            receiving: head.receiving,
            expanding: None,
            deadline: head.deadline.map(|deadline| Box::pin(time::sleep_until(deadline.into()))),
            draining: Box::pin(async move { drop(draining.wait_for(|draining| *draining).await) }),
            phase: Phase::Open,
        })
    }

    /// How its compressed messages are compressed.
    pub(super) fn encoding(&self) -> Encoding {
        self.outgoing.press.map_or(Encoding::Identity, |press| press.encoding)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Over)
    }

    pub(super) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        loop {
            if let Some(piece) = self.outgoing.pop() {
                return Poll::Ready(Some(Frame::data(piece)));
            }
            match mem::replace(&mut self.phase, Phase::Over) {
                Phase::Over => return Poll::Ready(None),
                Phase::Ending(trailers) => return Poll::Ready(Some(Frame::trailers(trailers))),
                Phase::Open => self.phase = Phase::Open,
            }
            if self.advance(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Ready where there is something to send, or reason to look again.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let had_room = self.read(context);
        self.write(context);
        if !self.outgoing.is_empty() || !matches!(self.phase, Phase::Open) || (!had_room && self.has_room()) {
            return Poll::Ready(());
        }
        if self.deadline.as_mut().is_some_and(|deadline| deadline.as_mut().poll(context).is_ready()) {
            self.end(status::failure(&deadline::passed()));
            return Poll::Ready(());
        }
        if self.reading == Reading::Open && self.draining.as_mut().poll(context).is_ready() {
            self.reading = Reading::Draining;
        }
        if self.reading == Reading::Open || self.session.in_flight() > 0 {
            return Poll::Pending;
        }
        self.end(match self.reading {
            Reading::Draining => status::failure(&status::shutting_down()),
            _ => status::success(),
        });
        Poll::Ready(())
    }

    fn has_room(&self) -> bool {
        self.session.in_flight() < GRPC_MAX_STREAM_REQUESTS
    }

    /// Takes the requests that have come; false where it stopped because the stream has enough in flight.
    fn read(&mut self, context: &mut Context<'_>) -> bool {
        while self.reading == Reading::Open {
            if !self.has_room() {
                return false;
            }
            if let Some(expanding) = &mut self.expanding {
                let Poll::Ready(message) = expanding.as_mut().poll(context) else { return true };
                self.expanding = None;
                self.take(message);
                continue;
            }
            match self.messages.next() {
                Ok(Some(message)) if message.is_compressed() => {
                    self.expanding = Some(Box::pin(message.expanded(self.receiving, self.messages.budget())));
                }
                Ok(Some(message)) => self.take(Ok(message)),
                Ok(None) => match Pin::new(&mut self.incoming).poll_frame(context) {
                    Poll::Pending => return true,
                    Poll::Ready(Some(Ok(frame))) => {
                        frame.into_data().into_iter().for_each(|data| self.messages.push(data))
                    }
                    Poll::Ready(None) if self.messages.is_between() => self.reading = Reading::HalfClosed,
                    // The connection notices a client that has gone, too; nobody reads the status then.
                    Poll::Ready(_) => self.end(status::failure(&within_message())),
                },
                Err(error) => self.end(status::failure(&error)),
            }
        }
        true
    }

    /// Takes a request in; one that cannot be read ends the stream.
    fn take(&mut self, message: Result<Message, InferError>) {
        match message.and_then(|message| parse_inference(message, &self.service.budget)) {
            Ok(message) => self.ask(message),
            Err(error) => self.end(status::failure(&error)),
        }
    }

    fn ask(&mut self, message: Parsed) {
        let asked = &message.request;
        let id = CompactString::from(asked.id.as_str());
        let trace = self.entry.as_mut().and_then(|entry| entry.draw(&self.service, &asked.model_name));
        match self.service.lookup(&asked.model_name, &asked.model_version) {
            Err(error) => {
                self.service.log_refusal(&asked.model_name, &asked.model_version, &id, &error);
                self.session.refuse(id, true, error);
            }
            Ok(model) => match decode(&self.service, message) {
                Err(error) => {
                    self.service.log_refusal(&model.name, "", &id, &error);
                    self.session.refuse(id, !model.is_decoupled(), error);
                }
                Ok((mut request, held)) => {
                    request.parameters.extend_from_slice(&self.forwarded);
                    request.trace = trace;
                    self.session.ask(model, request, held);
                }
            },
        }
    }

    /// Writes the responses that have come, as far as they fit into one frame's worth.
    fn write(&mut self, context: &mut Context<'_>) {
        while matches!(self.phase, Phase::Open) && self.outgoing.bytes < BATCH_BYTES {
            let Poll::Ready(news) = self.session.poll_news(context) else { return };
            let _sent = news.trace.map(|trace| Sent::grpc(Arc::clone(trace)));
            match news {
                News { model: Some(_), answer: Some(Err(error)), .. } if self.strict_errors => {
                    self.end(status::failure(&error));
                }
                news => self.outgoing.tell(&news),
            }
        }
        self.session.report_taken();
    }

    /// Ends the stream: what is still in flight is withdrawn.
    fn end(&mut self, trailers: HeaderMap) {
        self.session = Session::new(Arc::clone(&self.service));
        self.expanding = None;
        self.reading = Reading::HalfClosed;
        self.phase = Phase::Ending(trailers);
    }
}

/// What is written and not yet sent.
#[derive(Default)]
struct Outgoing {
    pieces: VecDeque<Bytes>,
    /// The last piece, which is still written to.
    open: BytesMut,
    bytes: usize,
    /// Compresses messages, except those that would hold the connection up.
    press: Option<Press>,
}

impl Outgoing {
    fn is_empty(&self) -> bool {
        self.pieces.is_empty() && self.open.is_empty()
    }

    fn pop(&mut self) -> Option<Bytes> {
        let piece = self.pieces.pop_front().or_else(|| (!self.open.is_empty()).then(|| self.open.split().freeze()))?;
        self.bytes -= piece.len();
        Some(piece)
    }

    /// Writes what a client is told of one request.
    fn tell(&mut self, news: &News<'_>) {
        match &news.answer {
            None => self.write(&StreamMessage { error: "", response: about(news) }),
            Some(Err(error)) => self.write(&StreamMessage { error: &error.message, response: about(news) }),
            Some(Ok(reply)) => self.write_reply(news, reply),
        }
    }

    fn write_reply(&mut self, news: &News<'_>, reply: &Reply) {
        let response = ResponseMessage {
            model_version: news.model.map(|model| model.spec.version),
            parameters: &reply.parameters,
            outputs: &reply.outputs,
            ..about(news)
        };
        let message = StreamMessage { error: "", response };
        match check_length(message.encoded_len()) {
            Ok(()) => self.write(&message),
            Err(error) => self.write(&StreamMessage { error: &error.message, response: about(news) }),
        }
    }

    fn write(&mut self, message: &StreamMessage<'_>) {
        let length = message.encoded_len();
        if let Some(press) = self.press.filter(|_| length <= COMPRESS_HERE_BYTES)
            && self.write_compressed(message, press)
        {
            return;
        }
        self.bytes += PREFIX_BYTES + length;
        self.open.extend_from_slice(&prefix(length));
        message.write(&mut self.open, |piece| self.pieces.push_back(piece));
    }

    /// Writes a message compressed; false where it would be no smaller so.
    fn write_compressed(&mut self, message: &StreamMessage<'_>, press: Press) -> bool {
        let (mut plain, mut pieces) = (BytesMut::new(), Vec::new());
        message.write(&mut plain, |piece| pieces.push(piece));
        pieces.push(plain.freeze());
        let Some(compressed) = press.apply_here(&pieces) else { return false };
        self.bytes += PREFIX_BYTES + compressed.len();
        self.open.extend_from_slice(&compressed_prefix(compressed.len()));
        self.open.extend_from_slice(&compressed);
        true
    }
}

/// Which request the news are about, who answers it, and whether it is over: all that is told of an error or an end.
fn about<'a>(news: &'a News<'_>) -> ResponseMessage<'a> {
    ResponseMessage {
        model_name: news.model.map_or("", |model| &model.name),
        id: news.id,
        // Source: recorded. What no model has seen has no responses of which one could be the last.
        final_response: news.model.map(|_| news.last),
        ..ResponseMessage::default()
    }
}
