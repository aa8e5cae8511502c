//! Sockets that are waited for by the thread that needs them: it sleeps in the very read or write, so that a call costs
//! one of each.

use std::cell::Cell;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, send, sendmsg};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

thread_local! {
    /// Until when sockets may have this thread sleep.
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Longest sleep that nobody ends who looks for signals; what the system is told unless there is less time.
const USUAL: Duration = Duration::from_millis(100);

/// How much longer than it may a thread may sleep, in exchange for fewer calls of the system.
const LENIENCE: Duration = Duration::from_millis(2);

/// The system knows no sleep shorter than this, and takes none for a sleep without end.
const SHORTEST: Duration = Duration::from_millis(1);

/// Does work in which sockets may have this thread sleep until then.
pub fn until<T>(end: Instant, work: impl FnOnce() -> T) -> T {
    with(Some(end), work)
}

/// Does work in which sockets do not sleep.
pub fn at_once<T>(work: impl FnOnce() -> T) -> T {
    with(None, work)
}

fn with<T>(until: Option<Instant>, work: impl FnOnce() -> T) -> T {
    struct Restore(Option<Instant>);
    impl Drop for Restore {
        fn drop(&mut self) {
            UNTIL.set(self.0);
        }
    }
    let _restore = Restore(UNTIL.replace(until));
    work()
}

fn left() -> Option<Duration> {
    UNTIL.get().and_then(|end| end.checked_duration_since(alipes_clock::now())).filter(|left| !left.is_zero())
}

/// A connected socket.
pub struct Waited {
    socket: OwnedFd,
    /// How long the system lets a read, and a write, sleep.
    timeouts: [Duration; 2],
}

impl Waited {
    /// Takes a socket over.
    ///
    /// # Errors
    /// What the system says.
    pub fn new(socket: OwnedFd) -> io::Result<Waited> {
        rustix::io::ioctl_fionbio(&socket, false)?;
        let mut waited = Waited { socket, timeouts: [Duration::ZERO; 2] };
        for way in [Timeout::Recv, Timeout::Send] {
            waited.allow(way, USUAL)?;
        }
        Ok(waited)
    }

    /// Has the system end a sleep in time, more or less.
    fn allow(&mut self, way: Timeout, left: Duration) -> rustix::io::Result<()> {
        let current = &mut self.timeouts[usize::from(way == Timeout::Send)];
        let wanted = left.clamp(SHORTEST, USUAL);
        if wanted + LENIENCE < *current || wanted > *current * 2 {
            set_socket_timeout(&self.socket, way, Some(wanted))?;
            *current = wanted;
        }
        Ok(())
    }

    /// Reads or writes, and sleeps if it may.
    fn attempt<T>(
        &mut self,
        cx: &Context<'_>,
        way: Timeout,
        work: impl FnOnce(&OwnedFd, bool) -> rustix::io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let left = left();
        if let Some(left) = left {
            self.allow(way, left)?;
        }
        match work(&self.socket, left.is_some()) {
            Err(Errno::AGAIN | Errno::INTR) => {
                if left.is_some() {
                    // Nobody else will say that it is worth another look, which shows whether there is time left.
                    cx.waker().wake_by_ref();
                }
                Poll::Pending
            }
            outcome => Poll::Ready(outcome.map_err(io::Error::from)),
        }
    }
}

impl AsFd for Waited {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsyncRead for Waited {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // SAFETY: bytes are only written there, never taken back.
        let room = unsafe { into.unfilled_mut() };
        let read = self.get_mut().attempt(cx, Timeout::Recv, |socket, may_sleep| {
            let flags = if may_sleep { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
            recv(socket, room, flags).map(|((filled, _), _)| filled.len())
        });
        read.map_ok(|filled| {
            // SAFETY: the system has just filled in so many bytes.
            unsafe { into.assume_init(filled) };
            into.advance(filled);
        })
    }
}

impl AsyncWrite for Waited {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().attempt(cx, Timeout::Send, |socket, may_sleep| send(socket, bytes, flags(may_sleep)))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.get_mut().attempt(cx, Timeout::Send, |socket, may_sleep| {
            sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), flags(may_sleep))
        })
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = rustix::net::shutdown(&self.get_mut().socket, rustix::net::Shutdown::Write);
        Poll::Ready(ended.map_err(io::Error::from))
    }
}

fn flags(may_sleep: bool) -> SendFlags {
    if may_sleep { SendFlags::NOSIGNAL } else { SendFlags::NOSIGNAL | SendFlags::DONTWAIT }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::thread;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn block_on<T>(work: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(work)
    }

    fn pair() -> (Waited, UnixStream) {
        let (own, other) = UnixStream::pair().unwrap();
        (Waited::new(own.into()).unwrap(), other)
    }

    #[test]
    fn a_socket_that_may_not_sleep_returns_at_once() {
        let (mut own, _other) = pair();
        let nothing = block_on(async { tokio::time::timeout(Duration::from_millis(1), own.read_u8()).await });
        assert!(nothing.is_err());
    }

    #[test]
    fn a_sleep_ends_with_what_comes_and_when_its_time_is_up() {
        let (mut own, mut other) = pair();
        let waited = until(alipes_clock::now() + Duration::from_millis(10), || {
            block_on(async { tokio::time::timeout(Duration::from_millis(10), own.read_u8()).await })
        });
        assert!(waited.is_err());
        let writer = thread::spawn(move || {
            use std::io::Write;
            other.write_all(&[7]).unwrap();
            other
        });
        let end = alipes_clock::now() + Duration::from_secs(30);
        assert_eq!(until(end, || block_on(own.read_u8())).unwrap(), 7);
        drop(writer.join().unwrap());
        assert!(until(end, || block_on(own.read_u8())).is_err());
    }

    #[test]
    fn what_is_written_arrives_in_order() {
        let (mut own, mut other) = pair();
        let reader = thread::spawn(move || {
            use std::io::Read;
            let mut all = Vec::new();
            other.read_to_end(&mut all).unwrap();
            all
        });
        let end = alipes_clock::now() + Duration::from_secs(30);
        until(end, || {
            block_on(async {
                own.write_all(&[1; 300_000]).await.unwrap();
                assert_eq!(own.write_vectored(&[IoSlice::new(&[2]), IoSlice::new(&[3])]).await.unwrap(), 2);
                own.shutdown().await.unwrap();
            });
        });
        let all = reader.join().unwrap();
        assert_eq!((all.len(), &all[299_999..]), (300_002, &[1, 2, 3][..]));
    }
}
