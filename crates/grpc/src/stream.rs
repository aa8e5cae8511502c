//! `ModelStreamInfer`: requests and responses on one call, each at its own pace.
//!
//! The response body does all the work: whenever the connection can send, it polls the body for a frame. The body then
//! reads the requests that have arrived, submits them, and writes the responses that have arrived into one frame. So no
//! task runs per stream or response, and the server stops reading from a client that does not read.

use std::collections::VecDeque;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use alipes_net::connection::RequestBody;
use alipes_net::phase::{Phase, Shutdown};
use alipes_protocol::InferError;
use alipes_protocol::codec::proto::{ResponseMessage, StreamMessage};
use alipes_protocol::limits::GRPC_MAX_STREAM_REQUESTS;
use alipes_protocol::trace::Trace;
use alipes_request::inflight::unfinished;
use alipes_request::responder::Reply;
use alipes_service::Service;
use alipes_service::graph::TensorGraph;
use alipes_service::stream::{Event, Session, Submission};
use alipes_stats::trace::sent::Sent;
use alipes_stats::turn::note_request;
use bytes::{Bytes, BytesMut};
use compact_str::CompactString;
use http::HeaderMap;
use http_body::{Body, Frame};
use tokio::time::{self, Sleep};

use super::compression::{COMPRESS_HERE_BYTES, Encoding, Press};
use super::head::{Head, entry_of};
use super::infer::{Caller, Forwarded, forwarded};
use super::layout::Inference;
use super::message::{
    Message, Messages, PREFIX_BYTES, Parsed, Receiving, is_read_at_once, parse_beside, parse_now, within_message,
};
use super::part::Grown;
use super::response::{check_length, compressed_prefix, prefix};
use super::tracing::Entry;
use super::{deadline, status};

/// Responses are batched up to about this many bytes: enough to make frames and wake-ups few, and little to hold for a
/// slow reader.
const BATCH_BYTES: usize = 64 * 1024;

/// The name of the method in reports about the server.
const METHOD: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

/// A client that sends this with the value `true` wants the first error of a model to end the stream with its status.
const STRICT_ERRORS: &str = "triton_grpc_error";

/// The body of a stream's response.
pub(super) struct StreamBody {
    service: Arc<Service>,
    incoming: RequestBody,
    messages: Messages<Inference<Arc<Service>>>,
    session: Session,
    outgoing: Outgoing,
    strict_errors: bool,
    forwarded: Forwarded,
    /// The metadata, where requests are logged or divided by it.
    metadata: Option<Box<HeaderMap>>,
    caller: Caller,
    entry: Option<Box<Entry>>,
    reading: Reading,
    receiving: Receiving,
    /// What other threads do for a request; those behind it wait.
    beside: Option<Beside>,
    /// Wakes at the client's deadline.
    deadline: Option<Pin<Box<Sleep>>>,
    draining: Pin<Box<dyn Future<Output = ()> + Send>>,
    phase: StreamPhase,
}

/// What other threads do for a request on its way in.
enum Beside {
    /// Its beginning, of which there is much, is moved to more room.
    Growing(Pin<Box<dyn Future<Output = Result<Grown, InferError>> + Send>>),
    /// It is compressed or long, and is expanded and parsed.
    Preparing(Pin<Box<dyn Future<Output = Result<Parsed, InferError>> + Send>>),
    /// It takes long to check, and is submitted.
    Submitting(Submission),
}

/// Whether requests may still arrive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reading {
    Open,
    /// The client has ended its requests.
    HalfClosed,
    /// The server accepts no more.
    Draining,
}

enum StreamPhase {
    Open,
    Ending(HeaderMap),
    Over,
}

impl StreamBody {
    /// # Errors
    ///
    /// Metadata that cannot be handed to models.
    pub(super) fn new(
        service: Arc<Service>,
        headers: &HeaderMap,
        head: Head,
        caller: Caller,
        incoming: RequestBody,
        draining: Shutdown,
    ) -> Result<StreamBody, InferError> {
        Ok(StreamBody {
            forwarded: forwarded(&service, headers)?,
            metadata: (service.payloads.is_on() || service.context.traffic.is_sticky())
                .then(|| Box::new(headers.clone())),
            session: Session::new(Arc::clone(&service)),
            messages: Messages::new(Inference(Arc::clone(&service)), head.receiving),
            entry: Entry::new(&service, headers),
            service,
            caller,
            incoming,
            outgoing: Outgoing { press: head.press, ..Outgoing::default() },
            strict_errors: headers.get(STRICT_ERRORS).is_some_and(|value| value == "true"),
            reading: Reading::Open,
            receiving: head.receiving,
            beside: None,
            deadline: head.deadline.map(|deadline| Box::pin(time::sleep_until(deadline.into()))),
            draining: Box::pin(draining.reached(Phase::Draining)),
            phase: StreamPhase::Open,
        })
    }

    /// The encoding of compressed messages.
    pub(super) fn encoding(&self) -> Encoding {
        self.outgoing.press.map_or(Encoding::Identity, |press| press.encoding)
    }

    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, StreamPhase::Over)
    }

    pub(super) fn poll_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Frame<Bytes>>> {
        loop {
            if let Some(piece) = self.outgoing.pop() {
                return Poll::Ready(Some(Frame::data(piece)));
            }
            match mem::replace(&mut self.phase, StreamPhase::Over) {
                StreamPhase::Over => return Poll::Ready(None),
                StreamPhase::Ending(trailers) => return Poll::Ready(Some(Frame::trailers(trailers))),
                StreamPhase::Open => self.phase = StreamPhase::Open,
            }
            if self.advance(context).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Ready where there is something to send, or reason to poll again.
    fn advance(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let had_room = self.read(context);
        self.write(context);
        if !self.outgoing.is_empty() || !matches!(self.phase, StreamPhase::Open) || (!had_room && self.has_room()) {
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

    /// Reads the requests that have arrived; false where it stops because the stream has enough in flight.
    fn read(&mut self, context: &mut Context<'_>) -> bool {
        // Its request is in flight already, and is to be answered even where no other is read any more.
        if matches!(self.beside, Some(Beside::Submitting(_))) && self.poll_beside(context).is_pending() {
            return true;
        }
        while self.reading == Reading::Open {
            if !self.has_room() {
                return false;
            }
            if self.poll_beside(context).is_pending() {
                return true;
            }
            if let Some(growing) = self.messages.growing() {
                self.beside = Some(Beside::Growing(Box::pin(growing.grow())));
                continue;
            }
            match self.messages.next() {
                Ok(Some(message)) => self.take(message),
                Ok(None) if self.messages.is_growing() => {}
                Ok(None) => match Pin::new(&mut self.incoming).poll_frame(context) {
                    Poll::Pending => return true,
                    Poll::Ready(Some(Ok(frame))) => {
                        frame.into_data().into_iter().for_each(|data| self.messages.push(data))
                    }
                    Poll::Ready(None) if self.messages.is_between() => self.reading = Reading::HalfClosed,
                    // Where the client has disconnected, nobody reads the status.
                    Poll::Ready(_) => self.end(status::failure(&within_message())),
                },
                Err(error) => self.end(status::failure(&error)),
            }
        }
        true
    }

    /// Goes on with what other threads have done; ready where that was all.
    fn poll_beside(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let Some(beside) = &mut self.beside {
            match beside {
                Beside::Growing(growing) => {
                    let grown = ready!(growing.as_mut().poll(context));
                    self.beside = None;
                    match grown.and_then(|grown| self.messages.resume(grown)) {
                        Ok(message) => message.into_iter().for_each(|message| self.take(message)),
                        Err(error) => self.end(status::failure(&error)),
                    }
                }
                Beside::Preparing(preparing) => {
                    let message = ready!(preparing.as_mut().poll(context));
                    self.beside = None;
                    self.accept(message);
                }
                Beside::Submitting(submission) => {
                    let outcome = ready!(submission.as_mut().poll(context));
                    self.beside = None;
                    self.session.submitted(outcome);
                }
            }
        }
        Poll::Ready(())
    }

    /// Takes a message: parses it, or has it expanded and parsed on another thread.
    fn take(&mut self, message: Message) {
        if !message.is_compressed() && is_read_at_once(&message, &self.service.regions) {
            self.accept(parse_now(message, &self.service.budget));
        } else {
            self.beside = Some(Beside::Preparing(Box::pin(self.prepare(message))));
        }
    }

    /// Expands and parses a message beside this thread.
    fn prepare(&self, message: Message) -> impl Future<Output = Result<Parsed, InferError>> + Send + use<> {
        let (receiving, release) = (self.receiving, self.service.config.triton_release);
        let (budget, regions) = (Arc::clone(&self.service.budget), Arc::clone(&self.service.regions));
        async move {
            let message = message.expanded(receiving, Arc::clone(&budget)).await?;
            parse_beside(message, regions, budget, release).await
        }
    }

    /// Accepts a request; one that cannot be parsed ends the stream.
    fn accept(&mut self, message: Result<Parsed, InferError>) {
        match message {
            Ok(message) => self.submit(message),
            Err(error) => self.end(status::failure(&error)),
        }
    }

    fn submit(&mut self, message: Parsed) {
        let request = &message.request;
        note_request(METHOD, &request.model_name);
        // The id of the metadata is the stream's: its requests are told apart by their own.
        self.caller.names(&request.model_name, "");
        let id = CompactString::from(request.id.as_str());
        let trace = self.entry.as_mut().and_then(|entry| entry.draw(&self.service, &request.model_name));
        match self.service.tensor_graph(&request.model_name, &request.model_version) {
            Ok(None) => self.submit_to_model(message, id, trace),
            Ok(Some(graph)) => self.submit_to_graph(message, graph, id),
            Err(error) => {
                self.service.log_refusal(&request.model_name, &request.model_version, &id, &error);
                self.session.refuse(id, true, error);
            }
        }
    }

    fn submit_to_model(&mut self, message: Parsed, id: CompactString, trace: Option<Arc<Trace>>) {
        let request = &message.request;
        let version = request.model_version.clone();
        let entry = |name: &str| entry_of(self.metadata.as_deref(), name);
        match self.service.lookup_divided(&request.model_name, &version, entry) {
            Err(error) => {
                self.service.log_refusal(&request.model_name, &request.model_version, &id, &error);
                self.session.refuse(id, true, error);
            }
            Ok(model) => {
                let release = self.service.config.triton_release;
                match message.decode(&self.service.regions, &self.service.budget, release) {
                    Err(error) => {
                        self.service.log_refusal(&model.name, "", &id, &error);
                        self.session.refuse(id, !model.is_decoupled(), error);
                    }
                    Ok((mut request, held)) => {
                        request.parameters.extend_from_slice(&self.forwarded);
                        request.trace = trace;
                        request.logged = self.metadata.as_ref().and_then(|all| self.service.payloads.draw(all));
                        let model = self.service.home_of(model, &version, &request);
                        self.beside = self.session.submit(model, request, held).map(Beside::Submitting);
                    }
                }
            }
        }
    }

    fn submit_to_graph(&mut self, message: Parsed, graph: TensorGraph, id: CompactString) {
        let decoded = message.decode(&self.service.regions, &self.service.budget, self.service.config.triton_release);
        let checked = decoded.and_then(|(request, held)| graph.check_held(&held).map(|()| request));
        match checked {
            Ok(mut request) => {
                request.parameters.extend_from_slice(&self.forwarded);
                self.session.submit_graph(graph, request);
            }
            Err(error) => {
                self.service.log_refusal(&graph.graph.name, "", &id, &error);
                self.session.refuse(id, !graph.is_decoupled(), error);
            }
        }
    }

    /// Writes the responses that have arrived, up to one batch.
    fn write(&mut self, context: &mut Context<'_>) {
        while matches!(self.phase, StreamPhase::Open) && self.outgoing.bytes < BATCH_BYTES {
            let Poll::Ready(event) = self.session.poll_event(context) else { return };
            let _sent = event.trace.map(|trace| Sent::grpc(Arc::clone(trace)));
            match event {
                Event { model: Some(_), answer: Some(Err(error)), .. } if self.strict_errors => {
                    self.end(status::failure(&error));
                }
                event => self.outgoing.write_event(&event),
            }
        }
        self.session.report_consumed();
    }

    /// Ends the stream before its requests have ended.
    pub(super) fn cut_off(&mut self) {
        self.end(status::failure(&unfinished()));
    }

    /// Ends the stream: requests in flight are cancelled.
    fn end(&mut self, trailers: HeaderMap) {
        self.session = Session::new(Arc::clone(&self.service));
        self.beside = None;
        self.reading = Reading::HalfClosed;
        self.phase = StreamPhase::Ending(trailers);
    }
}

/// Messages that are written and not yet sent.
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

    /// Writes the message about an event.
    fn write_event(&mut self, event: &Event<'_>) {
        match &event.answer {
            None => self.write(&StreamMessage { error: "", response: about(event) }),
            Some(Err(error)) => self.write(&StreamMessage { error: &error.message, response: about(event) }),
            Some(Ok(reply)) => self.write_response(event, reply),
        }
    }

    fn write_response(&mut self, event: &Event<'_>, reply: &Reply) {
        let response = ResponseMessage {
            model_version: event.model.map(|model| model.version),
            parameters: &reply.parameters,
            outputs: &reply.outputs,
            ..about(event)
        };
        let message = StreamMessage { error: "", response };
        match check_length(message.encoded_len()) {
            Ok(()) => self.write(&message),
            Err(error) => self.write(&StreamMessage { error: &error.message, response: about(event) }),
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

/// The model, the request, and whether the event is its last: the whole response of an error or an end.
fn about<'a>(event: &'a Event<'_>) -> ResponseMessage<'a> {
    ResponseMessage {
        model_name: event.model.map_or("", |model| model.name),
        id: event.id,
        // Source: recorded. A request that reached no model has no final response.
        final_response: event.model.map(|_| event.last),
        ..ResponseMessage::default()
    }
}
