//! HTTP/2 for one call at a time, whose caller waits for it: nothing goes on beside it, so that there are no tasks to
//! wake and no streams to look after, and a small call leaves in one write and comes back in one read.
//!
//! Over `h2` and tokio's sockets instead, as streams go (15 rounds, two shared cores, November 2026), a small call
//! takes 1.44 times the processor time of the calling process (quartiles 1.30 to 1.65, all 1.18 to 3.22), one with an
//! image of 3x224x224 1.24 times (1.18 to 1.37, all 0.93 to 1.49). This HTTP/2 over tokio's sockets takes 1.07 and 1.00
//! times, so that the sockets of [`waiting`](crate::waiting) are the smaller part of it.

mod fields;
mod frames;
#[cfg(test)]
mod fuzz;
mod head;
mod huffman;
mod pending_call;
#[cfg(test)]
mod recorded;
pub mod shared;
#[cfg(test)]
mod shared_tests;

use std::future::poll_fn;
use std::io::IoSlice;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use alipes_protocol::limits::{CLIENT_FRAME_BYTES, CLIENT_WINDOW_BYTES, HTTP_MAX_HEADER_BYTES};
use bytes::{Buf, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use self::fields::Fields;
use self::frames::{FrameHead, HEAD_BYTES};
use self::head::Heads;
use self::pending_call::{Headers, PendingCall};
use crate::error::ClientError;
use crate::grpc::call;
use crate::message::Outgoing;
use crate::sequence;
use crate::target::Target;
use crate::waiting::at_once;

/// Room for an answer of a small model; it grows with what comes.
const BUFFER_BYTES: usize = 8 * 1024;

/// Up to so many bytes of a frame are copied behind its head; more are written from where they lie.
const COPIED_BYTES: usize = 16 * 1024;

/// Calls get odd numbers, up to this one.
const LAST_NUMBER: u32 = i32::MAX as u32;

/// A connection.
pub struct UnaryConnection<S> {
    socket: S,
    incoming: BytesMut,
    outgoing: BytesMut,
    heads: Heads,
    fields: Fields,
    /// A block of headers that goes on in the next frame, and the head of the frame that it began in.
    block: Option<(FrameHead, BytesMut)>,
    number: u32,
    /// Bytes that may be sent, in all calls together.
    window: i64,
    /// Bytes that may be sent in a new call.
    first_window: i64,
    /// Bytes that a frame may have.
    frame: usize,
    /// Bytes received since the last update of the window.
    consumed: u32,
    /// No further call can be begun.
    leaving: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> UnaryConnection<S> {
    /// A connection that was just opened; its first frames leave with the first call.
    pub fn new(socket: S) -> UnaryConnection<S> {
        let mut outgoing = BytesMut::with_capacity(BUFFER_BYTES);
        outgoing.extend_from_slice(frames::PREFACE);
        let settings = [
            (frames::ENABLE_PUSH, 0),
            (frames::INITIAL_WINDOW_SIZE, CLIENT_WINDOW_BYTES),
            (frames::MAX_FRAME_SIZE, CLIENT_FRAME_BYTES),
        ];
        frames::settings(&settings, &mut outgoing);
        frames::window(0, CLIENT_WINDOW_BYTES - frames::DEFAULT_WINDOW_BYTES as u32, &mut outgoing);
        UnaryConnection {
            socket,
            incoming: BytesMut::new(),
            outgoing,
            heads: Heads::default(),
            fields: Fields::default(),
            block: None,
            number: 1,
            window: frames::DEFAULT_WINDOW_BYTES,
            first_window: frames::DEFAULT_WINDOW_BYTES,
            frame: frames::DEFAULT_FRAME_BYTES,
            consumed: 0,
            leaving: false,
        }
    }

    /// Reads the frames that came since the last call; returns whether another call can be made.
    pub async fn is_alive(&mut self) -> bool {
        loop {
            while let Some((head, content)) = self.next_frame().unwrap_or_default() {
                if self.handle(head, content, None).is_err() {
                    return false;
                }
            }
            if self.is_spent() {
                return false;
            }
            match self.look().await {
                None => return true,
                Some(Ok(bytes)) if bytes > 0 => {}
                Some(_) => return false,
            }
        }
    }

    /// Whether no further call can be made.
    pub fn is_spent(&self) -> bool {
        self.leaving || self.number >= LAST_NUMBER
    }

    /// Asks and waits; dropped meanwhile, the connection is of no use any more.
    ///
    /// # Errors
    /// What the server says, and a connection that breaks.
    pub async fn ask(
        &mut self,
        target: &Target,
        request: Outgoing,
        limit: Option<Duration>,
    ) -> Result<Bytes, ClientError> {
        // Read before anything counts as sent: the server remembers what the connection's own headers say.
        let own = request.headers.iter().map(|(name, value)| call::header(name, value));
        let own = own.collect::<Result<Vec<_>, _>>()?;
        let mut block = BytesMut::new();
        self.heads.write(target, &request.path, limit, &mut block)?;
        if let Some(id) = request.sequence.as_ref().filter(|_| !target.names(sequence::HEADER)) {
            Heads::add(sequence::HEADER, id, &mut block);
        }
        for (name, value) in &own {
            Heads::add(name.as_str(), value.to_str().unwrap_or_default(), &mut block);
        }
        let mut call = PendingCall::new(self.number, self.first_window, request.infer);
        self.number += 2;
        let outcome = self.exchange(&mut call, &block, request.pieces).await;
        outcome.map_err(|error| explained(target, error))?;
        call.outcome()
    }

    async fn exchange(&mut self, call: &mut PendingCall, block: &[u8], pieces: Vec<Bytes>) -> Result<(), ClientError> {
        self.open(call, block);
        self.send(call, pieces).await?;
        while !call.ended {
            self.take(call).await?;
        }
        Ok(())
    }

    fn open(&mut self, call: &PendingCall, block: &[u8]) {
        let mut parts = block.chunks(self.frame).peekable();
        let mut kind = frames::HEADERS;
        while let Some(part) = parts.next() {
            let flags = if parts.peek().is_none() { frames::END_HEADERS } else { 0 };
            FrameHead { length: part.len(), kind, flags, call: call.number }.write(&mut self.outgoing);
            self.outgoing.extend_from_slice(part);
            kind = frames::CONTINUATION;
        }
    }

    /// Sends all pieces, unless the server ends the call before.
    async fn send(&mut self, call: &mut PendingCall, pieces: Vec<Bytes>) -> Result<(), ClientError> {
        let mut left: usize = pieces.iter().map(Bytes::len).sum();
        for mut piece in pieces {
            while !piece.is_empty() {
                while self.window.min(call.window) <= 0 {
                    self.take(call).await?;
                    if call.ended {
                        // The rest will not be sent, so the server waits for the end of a call that is over.
                        self.leaving = true;
                        return Ok(());
                    }
                }
                let room = usize::try_from(self.window.min(call.window)).unwrap_or(0);
                let part = piece.split_to(piece.len().min(room).min(self.frame));
                left -= part.len();
                (self.window, call.window) = (self.window - part.len() as i64, call.window - part.len() as i64);
                let flags = if left == 0 { frames::END_STREAM } else { 0 };
                let head = FrameHead { length: part.len(), kind: frames::DATA, flags, call: call.number };
                head.write(&mut self.outgoing);
                self.put(part).await.map_err(broken)?;
            }
        }
        Ok(())
    }

    /// Sends what follows a frame's head; a little waits for what comes next.
    async fn put(&mut self, part: Bytes) -> std::io::Result<()> {
        if part.len() + self.outgoing.len() <= COPIED_BYTES {
            self.outgoing.extend_from_slice(&part);
            return Ok(());
        }
        let mut part = part;
        while !self.outgoing.is_empty() {
            let slices = [IoSlice::new(&self.outgoing), IoSlice::new(&part)];
            let written = self.socket.write_vectored(&slices).await?;
            if written == 0 {
                return Err(std::io::ErrorKind::WriteZero.into());
            }
            let first = written.min(self.outgoing.len());
            self.outgoing.advance(first);
            part.advance(written - first);
        }
        self.socket.write_all(&part).await
    }

    /// Handles the next frame, once everything to be sent has left.
    async fn take(&mut self, call: &mut PendingCall) -> Result<(), ClientError> {
        loop {
            if let Some((head, content)) = self.next_frame()? {
                return self.handle(head, content, Some(call));
            }
            if !self.outgoing.is_empty() {
                self.socket.write_all_buf(&mut self.outgoing).await.map_err(broken)?;
            }
            // What is encrypted may not all have left.
            self.socket.flush().await.map_err(broken)?;
            self.incoming.reserve(self.missing().max(BUFFER_BYTES));
            if self.socket.read_buf(&mut self.incoming).await.map_err(broken)? == 0 {
                return Err(ClientError::broken("the server closed it"));
            }
        }
    }

    /// What lies there, without waiting: bytes that were read, or `None`.
    async fn look(&mut self) -> Option<std::io::Result<usize>> {
        self.incoming.reserve(self.missing().max(BUFFER_BYTES));
        let mut read = pin!(self.socket.read_buf(&mut self.incoming));
        poll_fn(|cx| {
            Poll::Ready(match at_once(|| read.as_mut().poll(cx)) {
                Poll::Pending => None,
                Poll::Ready(outcome) => Some(outcome),
            })
        })
        .await
    }

    /// Bytes of the frame that has begun to come which have not come yet.
    fn missing(&self) -> usize {
        let head = self.incoming.first_chunk::<HEAD_BYTES>().map(FrameHead::read);
        head.map_or(0, |head| (HEAD_BYTES + head.length).saturating_sub(self.incoming.len()))
    }

    fn next_frame(&mut self) -> Result<Option<(FrameHead, Bytes)>, ClientError> {
        let Some(head) = self.incoming.first_chunk::<HEAD_BYTES>().map(FrameHead::read) else { return Ok(None) };
        if head.length > CLIENT_FRAME_BYTES as usize {
            return Err(ClientError::broken("what came is no HTTP/2, or a frame longer than any"));
        }
        if self.incoming.len() < HEAD_BYTES + head.length {
            return Ok(None);
        }
        self.incoming.advance(HEAD_BYTES);
        Ok(Some((head, self.incoming.split_to(head.length).freeze())))
    }

    fn handle(&mut self, head: FrameHead, content: Bytes, call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        if (head.kind == frames::CONTINUATION) != self.block.is_some() {
            return Err(nonsense("the headers of an answer"));
        }
        let own = call.filter(|call| call.number == head.call || head.call == 0);
        match head.kind {
            frames::DATA => self.data(head, &content, own),
            frames::HEADERS | frames::CONTINUATION => self.headers(head, &content, own),
            frames::RST_STREAM => self.reset(&content, own),
            frames::SETTINGS if head.flags & frames::ACK == 0 => self.settings(&content, own),
            frames::PING if content.len() != frames::PING_BYTES => Err(nonsense("a ping")),
            frames::PING if head.flags & frames::ACK == 0 => {
                frames::acknowledgement(frames::PING, &content, &mut self.outgoing);
                Ok(())
            }
            frames::GOAWAY => self.go_away(&content, own),
            frames::WINDOW_UPDATE => {
                let bytes = i64::from(word(&content).ok_or_else(|| nonsense("a window"))? & i32::MAX as u32);
                match (head.call, own) {
                    (0, _) => self.window += bytes,
                    (_, Some(call)) => call.window += bytes,
                    (_, None) => {}
                }
                Ok(())
            }
            frames::PUSH_PROMISE => Err(nonsense("an answer to what was not asked")),
            _ => Ok(()),
        }
    }

    fn data(&mut self, head: FrameHead, content: &Bytes, call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        // All of a frame counts, also of a call that is over.
        let size = content.len() as u32;
        let due = |consumed: u32| consumed > CLIENT_WINDOW_BYTES / 2;
        self.consumed += size;
        if due(self.consumed) {
            frames::window(0, std::mem::take(&mut self.consumed), &mut self.outgoing);
        }
        let Some(call) = call else { return Ok(()) };
        let is_last = head.flags & frames::END_STREAM != 0;
        call.consumed += size;
        if due(call.consumed) && !is_last {
            frames::window(call.number, std::mem::take(&mut call.consumed), &mut self.outgoing);
        }
        let content = content.slice(frames::content(head, content).ok_or_else(|| nonsense("a frame's padding"))?);
        call.data(content)?;
        call.ended = is_last;
        Ok(())
    }

    fn headers(&mut self, head: FrameHead, content: &Bytes, call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        let wrong = || nonsense("the headers of an answer");
        let range = match head.kind {
            frames::HEADERS => frames::content(head, content).ok_or_else(wrong)?,
            _ => 0..content.len(),
        };
        let part = &content[range];
        let (begun, headers) = match self.block.take() {
            None if head.flags & frames::END_HEADERS != 0 => {
                (head, Headers::read(&mut self.fields, part).ok_or_else(wrong)?)
            }
            begun => {
                let (begun, mut block) = begun.unwrap_or_else(|| (head, BytesMut::new()));
                // Parts without content would never come to an end.
                if begun.call != head.call || part.is_empty() || block.len() + part.len() > HTTP_MAX_HEADER_BYTES {
                    return Err(wrong());
                }
                block.extend_from_slice(part);
                if head.flags & frames::END_HEADERS == 0 {
                    self.block = Some((begun, block));
                    return Ok(());
                }
                (begun, Headers::read(&mut self.fields, &block).ok_or_else(wrong)?)
            }
        };
        if let Some(call) = call {
            call.headers(headers);
            call.ended = begun.flags & frames::END_STREAM != 0;
        }
        Ok(())
    }

    fn reset(&mut self, content: &[u8], call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        let reason = word(content).ok_or_else(|| nonsense("an end of a call"))?;
        match call {
            Some(_) => Err(ClientError::broken(format!("the server ended the call ({})", h2::Reason::from(reason)))),
            None => Ok(()),
        }
    }

    fn settings(&mut self, content: &[u8], mut call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        for pair in content.chunks(6) {
            let [a, b, value @ ..] = <[u8; 6]>::try_from(pair).map_err(|_| nonsense("settings"))?;
            let value = u32::from_be_bytes(value);
            match u16::from_be_bytes([a, b]) {
                frames::HEADER_TABLE_SIZE => self.heads.set_most(value as usize),
                frames::INITIAL_WINDOW_SIZE => {
                    let more = i64::from(value) - self.first_window;
                    self.first_window += more;
                    if let Some(call) = call.as_deref_mut() {
                        call.window += more;
                    }
                }
                frames::MAX_FRAME_SIZE if value as usize >= frames::DEFAULT_FRAME_BYTES => {
                    self.frame = (value as usize).min(frames::LARGEST_FRAME_BYTES);
                }
                _ => {}
            }
        }
        frames::acknowledgement(frames::SETTINGS, &[], &mut self.outgoing);
        Ok(())
    }

    fn go_away(&mut self, content: &[u8], call: Option<&mut PendingCall>) -> Result<(), ClientError> {
        self.leaving = true;
        let last = last_call(content).ok_or_else(|| nonsense("a GOAWAY frame"))?;
        match call {
            Some(call) if call.number > last => {
                let reason = content.get(4..).and_then(word).unwrap_or_default();
                Err(ClientError::broken(format!("the server closes it ({})", h2::Reason::from(reason))))
            }
            _ => Ok(()),
        }
    }
}

/// The last call that a server answers which sends GOAWAY; the first bit means nothing.
fn last_call(content: &[u8]) -> Option<u32> {
    word(content).map(|last| last & i32::MAX as u32)
}

fn word(content: &[u8]) -> Option<u32> {
    content.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn nonsense(what: &str) -> ClientError {
    ClientError::broken(format!("{what} cannot be read"))
}

fn broken(error: std::io::Error) -> ClientError {
    ClientError::of_io(&error)
}

/// An error of the connection, with the address of the server.
fn explained(target: &Target, error: ClientError) -> ClientError {
    ClientError { message: format!("the connection to {} broke: {}", target.address, error.message), ..error }
}

#[cfg(test)]
mod tests;
