//! The packet that hands an instance over: what it says, and the descriptors that it carries.

#![allow(clippy::disallowed_methods, reason = "an instance is handed over once, when it starts")]

use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

/// What it says; `alipes.worker.packet` reads it.
pub const INSTANCE: &[u8] = b"alipes-instance-1";

/// Most descriptors that one carries.
const MOST: usize = 5;

/// Sends one, without waiting for room.
///
/// # Errors
///
/// `AGAIN` where there is no room now, `PIPE` where the other side is gone; the system refuses descriptors.
pub fn send(socket: &OwnedFd, files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST))];
    let mut carried = SendAncillaryBuffer::new(&mut space);
    if files.len() > MOST || !carried.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(socket, &[IoSlice::new(INSTANCE)], &mut carried, flags).map(drop)
}

#[cfg(test)]
pub mod tests {
    use std::io;
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType};
    use rustix::net::{recvmsg, socketpair};

    use super::*;

    /// Takes one: what it says, and what it carries.
    pub fn take(socket: &OwnedFd) -> (Vec<u8>, Vec<OwnedFd>) {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(8))];
        let mut carried = RecvAncillaryBuffer::new(&mut space);
        let mut text = [0; 64];
        let mut into = [io::IoSliceMut::new(&mut text)];
        let len = recvmsg(socket, &mut into, &mut carried, RecvFlags::CMSG_CLOEXEC).unwrap().bytes;
        let files = carried.drain().flat_map(|message| match message {
            RecvAncillaryMessage::ScmRights(files) => files.collect(),
            _ => Vec::new(),
        });
        let files = files.collect();
        (text[..len].to_vec(), files)
    }

    #[test]
    fn more_than_a_packet_carries_is_refused() {
        let (ours, _theirs) = pair();
        let files = [&ours; MOST + 1].map(AsFd::as_fd);
        assert_eq!(send(&ours, &files), Err(Errno::TOOBIG));
    }

    #[test]
    fn the_other_side_gets_every_descriptor() {
        let (ours, theirs) = pair();
        send(&ours, &[ours.as_fd(), theirs.as_fd()]).unwrap();
        let (text, files) = take(&theirs);
        assert_eq!((text.as_slice(), files.len()), (INSTANCE, 2));
    }

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None).unwrap()
    }
}
