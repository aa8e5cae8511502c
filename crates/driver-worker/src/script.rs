//! An instance that runs on a thread of the script that started the server: its link is handed over a socket.
//!
//! One packet says what is wanted and carries the descriptors of the link, and beside them one end of a *lifeline*: a
//! socket pair over which nothing is sent. It ends when either side lets go of it, by whatever means, and that is all
//! either side learns of the other's end.

#![allow(clippy::disallowed_methods, reason = "a script is given its instance once, when that starts")]

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{AddressFamily, RecvFlags, Shutdown, SocketFlags, SocketType};
use rustix::net::{recv, shutdown, socketpair};
use tokio::time;

use super::packet;
use super::process::{Inherited, setup_file};

/// How long the script may leave packets untaken before an instance counts as refused.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);

/// How often it is looked whether the script has taken some.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The script, as the server reaches it.
#[derive(Debug)]
pub struct Script(OwnedFd);

/// An instance in the hands of the script; let go of when dropped.
pub struct AttachedWorker {
    lifeline: OwnedFd,
}

impl Script {
    /// The script at the other end of an inherited socket.
    ///
    /// # Errors
    ///
    /// The system has no descriptor left.
    pub fn at(socket: RawFd) -> io::Result<Script> {
        // SAFETY: the control plane keeps the socket that it names open for as long as the server runs.
        let socket = unsafe { BorrowedFd::borrow_raw(socket) };
        socket.try_clone_to_owned().map(Script)
    }

    /// The number of its process: the one that made the socket. None where the system does not tell.
    pub fn process(&self) -> Option<i32> {
        socket_peercred(&self.0).ok().map(|script| script.pid.as_raw_nonzero().get())
    }

    /// Hands an instance over. Waits while the script is slow to take earlier ones.
    ///
    /// # Errors
    ///
    /// `BrokenPipe` where the script is gone; it takes no instances, or the system refuses descriptors.
    pub async fn assign(&self, inherited: Inherited<'_>) -> io::Result<AttachedWorker> {
        let (lifeline, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
            .map_err(io::Error::from)?;
        let setup = setup_file(inherited.setup)?;
        let files = [inherited.link, inherited.requests, setup.as_fd(), inherited.doorbell, theirs.as_fd()];
        let deadline = alipes_clock::now() + QUEUE_TIMEOUT;
        loop {
            match packet::send(&self.0, &files) {
                Ok(()) => return Ok(AttachedWorker { lifeline }),
                // Its queue of packets is full, or too many descriptors of this user are on their way.
                Err(Errno::AGAIN | Errno::TOOMANYREFS) if alipes_clock::now() < deadline => {
                    time::sleep(LOOK_INTERVAL).await;
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AttachedWorker {
    /// Readable once the script has let go of the instance.
    pub fn lifeline(&self) -> BorrowedFd<'_> {
        self.lifeline.as_fd()
    }

    /// Lets go of it. The script's thread finds its link abandoned; what it executes meanwhile it executes in vain.
    pub fn let_go(&self) {
        let _ = shutdown(&self.lifeline, Shutdown::Both);
    }

    /// Whether either side has let go. Nothing is ever sent, so that whatever there is to read is the end.
    pub fn has_ended(&self) -> bool {
        let mut nothing = [0_u8; 1];
        !matches!(recv(&self.lifeline, &mut nothing, RecvFlags::DONTWAIT), Err(Errno::AGAIN | Errno::INTR))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use rustix::event::{EventfdFlags, eventfd};

    use super::packet::tests::take;
    use super::*;

    fn sockets() -> (Script, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        (Script::at(ours.as_raw_fd()).unwrap(), theirs)
    }

    async fn assigned(script: &Script) -> io::Result<AttachedWorker> {
        let files = [(); 3].map(|()| eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let [link, requests, doorbell] = files.each_ref().map(|file| file.as_fd());
        script.assign(Inherited { link, requests, doorbell, setup: "{}" }).await
    }

    #[tokio::test]
    async fn an_assigned_instance_ends_when_the_script_lets_go() {
        let (script, theirs) = sockets();
        let worker = assigned(&script).await.unwrap();
        assert_eq!(script.process(), i32::try_from(std::process::id()).ok());
        let (text, mut files) = take(&theirs);
        assert_eq!((text.as_slice(), files.len()), (packet::INSTANCE, 5));
        assert!(!worker.has_ended());
        drop(files.pop());
        assert!(worker.has_ended());
    }

    #[tokio::test]
    async fn the_script_learns_that_the_server_lets_go() {
        let (script, theirs) = sockets();
        let worker = assigned(&script).await.unwrap();
        let (_, files) = take(&theirs);
        worker.let_go();
        let mut nothing = [0; 1];
        assert_eq!(recv(&files[4], &mut nothing, RecvFlags::DONTWAIT).unwrap().1, 0);
        assert!(worker.has_ended());
    }

    #[tokio::test]
    async fn a_script_that_is_gone_is_a_broken_pipe() {
        let (script, theirs) = sockets();
        drop(theirs);
        let refused = assigned(&script).await.err().unwrap();
        assert_eq!(refused.kind(), io::ErrorKind::BrokenPipe);
    }

    #[tokio::test]
    async fn packets_wait_for_a_script_that_takes_them_late() {
        let (script, theirs) = sockets();
        // More than the queue of a socket holds.
        let handing = async {
            let mut workers = Vec::new();
            for _ in 0..600 {
                workers.push(assigned(&script).await.unwrap());
            }
            workers
        };
        let taking = tokio::task::spawn_blocking(move || (0..600).map(|_| take(&theirs).1.len()).sum::<usize>());
        assert_eq!(handing.await.len(), 600);
        assert_eq!(taking.await.unwrap(), 3000);
    }
}
