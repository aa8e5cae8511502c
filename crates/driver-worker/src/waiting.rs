//! Processes that have imported an app to describe it, and wait to go on as its first worker.
//!
//! The control plane starts one, reads what it says of the app, and leaves it here under a key. The worker of that key
//! that starts first takes it: what it has imported need not be imported again. One that nobody has taken is withdrawn,
//! which ends it.

#![allow(clippy::disallowed_methods, reason = "a process waits once, while a server starts or an app has changed")]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::LazyLock;

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use super::packet;
use super::process::{Inherited, WorkerProcess, setup_file};

static WAITING: LazyLock<Mutex<HashMap<String, Waiting>>> = LazyLock::new(Mutex::default);

/// A process that waits; ended, with all that it has started, when dropped.
pub struct Waiting {
    process: Option<WorkerProcess>,
    group: Pid,
    socket: OwnedFd,
}

/// Leaves a process for the worker of a key. One that waits there already is ended.
///
/// # Errors
///
/// There is no such process, or no descriptor left.
pub fn offer(key: String, pid: i32, socket: OwnedFd) -> io::Result<()> {
    let pid = Pid::from_raw(pid).filter(|pid| !pid.is_init()).ok_or(io::ErrorKind::InvalidInput)?;
    let process = Some(WorkerProcess::of(pid)?);
    let before = WAITING.lock().insert(key, Waiting { process, group: pid, socket });
    drop(before);
    Ok(())
}

/// Ends the process that waits under a key, unless a worker has taken it.
pub fn withdraw(key: &str) {
    drop(take(key));
}

/// The process that waits under a key.
pub fn take(key: &str) -> Option<Waiting> {
    WAITING.lock().remove(key)
}

impl Waiting {
    /// Hands it what a worker inherits.
    ///
    /// # Errors
    ///
    /// It is gone, or the system refuses descriptors; it is ended then.
    pub fn go_on(mut self, inherited: &Inherited<'_>) -> io::Result<WorkerProcess> {
        let setup = setup_file(inherited.setup)?;
        packet::send(&self.socket, &[inherited.link, inherited.requests, setup.as_fd(), inherited.doorbell])?;
        self.process.take().ok_or_else(|| io::ErrorKind::BrokenPipe.into())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            // It has not been reaped, so that the number of its group is its own.
            let _ = kill_process_group(self.group, Signal::KILL);
            drop(process);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::process::{Command, Stdio};

    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
    use rustix::process::test_kill_process;

    use super::packet::tests::take as taken;
    use super::*;

    /// A process, and the script's end of its socket.
    #[expect(clippy::zombie_processes, reason = "what it is offered to reaps it")]
    fn offered(key: &str, program: &str) -> (Pid, OwnedFd) {
        let child = Command::new(program).arg("1000").process_group(0).stdout(Stdio::null()).spawn().unwrap();
        let pid = Pid::from_child(&child);
        let kind = SocketType::SEQPACKET;
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap();
        offer(key.to_owned(), pid.as_raw_nonzero().get(), ours).unwrap();
        (pid, theirs)
    }

    fn go_on(waiting: Waiting) -> io::Result<WorkerProcess> {
        let files = [(); 3].map(|()| eventfd(0, EventfdFlags::CLOEXEC).unwrap());
        let [link, requests, doorbell] = files.each_ref().map(|file| file.as_fd());
        waiting.go_on(&Inherited { link, requests, doorbell, setup: "{}" })
    }

    #[test]
    fn the_first_that_comes_has_it() {
        let (pid, theirs) = offered("first", "sleep");
        let mut process = go_on(take("first").unwrap()).unwrap();
        assert!(take("first").is_none());
        assert_eq!(taken(&theirs).1.len(), 4);
        assert!(process.ended().is_none());
        assert!(test_kill_process(pid).is_ok());
        process.kill();
        let status = loop {
            if let Some(status) = process.ended() {
                break status;
            }
        };
        assert_eq!(status.signal(), Some(9));
    }

    #[test]
    fn one_that_nobody_takes_ends_and_is_reaped() {
        let (pid, _theirs) = offered("nobody", "sleep");
        withdraw("nobody");
        assert!(test_kill_process(pid).is_err());
        withdraw("nobody");
    }

    #[test]
    fn one_that_is_gone_is_an_error_and_leaves_nothing() {
        let (pid, theirs) = offered("gone", "true");
        drop(theirs);
        assert_eq!(go_on(take("gone").unwrap()).err().unwrap().kind(), io::ErrorKind::BrokenPipe);
        assert!(test_kill_process(pid).is_err());
    }
}
