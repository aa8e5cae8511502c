//! A TCP stream that knows when the system had what was read from it: until a thread turns to it, some time goes by
//! that is not the server's.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;

/// Most bytes of one read: the room for them is filled with zeros before.
const READ_BYTES: usize = 64 * 1024;

/// A byte stream that may know when it had what was read last.
pub trait Arrival {
    /// When the system had it; `None` where nobody noted it.
    fn arrived(&self) -> Option<Instant> {
        None
    }
}

/// A TCP stream that notes it.
pub struct Timed {
    stream: TcpStream,
    arrived: Option<Instant>,
    /// Room for what the system says of a read.
    notes: Vec<u8>,
}

impl Timed {
    /// Has the system note from now on when bytes come.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(stream: TcpStream) -> io::Result<Timed> {
        setsockopt(&stream, ReceiveTimestampns, &true)?;
        Ok(Timed { stream, arrived: None, notes: nix::cmsg_space!(TimeSpec) })
    }

    /// The stream itself.
    pub fn into_inner(self) -> TcpStream {
        self.stream
    }

    /// Reads what is there.
    fn receive(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut slices = [IoSliceMut::new(room)];
        let message =
            recvmsg::<()>(self.stream.as_raw_fd(), &mut slices, Some(&mut self.notes), MsgFlags::MSG_DONTWAIT)?;
        // What came before the system took notes has none.
        self.arrived = message.cmsgs()?.find_map(|note| match note {
            ControlMessageOwned::ScmTimestampns(moment) => Some(alipes_clock::from_unix(Duration::from(moment))),
            _ => None,
        });
        Ok(message.bytes)
    }
}

impl Arrival for Timed {
    fn arrived(&self) -> Option<Instant> {
        self.arrived
    }
}

impl AsFd for Timed {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsyncRead for Timed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let room = into.remaining().min(READ_BYTES);
        loop {
            ready!(this.stream.poll_read_ready(cx))?;
            let read = this.receive(into.initialize_unfilled_to(room));
            let is_empty = match &read {
                Ok(count) => (1..room).contains(count),
                Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            };
            if is_empty {
                // What was there is read. Without a word of it the next read would ask the system in vain.
                let _ =
                    this.stream.try_io(Interest::READABLE, || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into()));
            }
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => return Poll::Ready(read.map(|count| into.advance(count))),
            }
        }
    }
}

impl AsyncWrite for Timed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    async fn pair() -> (Timed, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Timed::new(own).unwrap(), listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn bytes_came_when_the_system_had_them_and_not_when_they_are_read() {
        let (mut own, mut other) = pair().await;
        assert_eq!(own.arrived(), None);
        // The first socket of a machine that asks for notes may have them a moment later.
        other.write_all(b"first").await.unwrap();
        own.read_exact(&mut [0; 5]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let before = alipes_clock::now();
        other.write_all(b"then").await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        own.read_exact(&mut [0; 4]).await.unwrap();
        let arrived = own.arrived().unwrap();
        assert!(arrived >= before && alipes_clock::elapsed(arrived) >= Duration::from_millis(40));
    }

    #[tokio::test]
    async fn bytes_come_in_their_order_to_their_end() {
        let (mut own, mut other) = pair().await;
        let sent: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        let whole = sent.clone();
        let writer = tokio::spawn(async move {
            other.write_all(&whole).await.unwrap();
            // Reads find nothing for a while, and then the rest.
            tokio::time::sleep(Duration::from_millis(5)).await;
            other.write_all(b"rest").await.unwrap();
        });
        let mut received = Vec::new();
        own.read_to_end(&mut received).await.unwrap();
        writer.await.unwrap();
        assert!(received == [&sent[..], b"rest"].concat());
    }
}
