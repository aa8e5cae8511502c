//! The process of a worker: how it is started, watched and ended.

#![allow(clippy::disallowed_methods, reason = "a process is looked at when it starts or has ended")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::{Child, Command, ExitStatus, Stdio};

use alipes_link::DESCRIPTORS;
use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::spawner;

/// What is started, and with which environment on top of the server's own.
#[derive(Clone, Debug)]
pub struct Program {
    /// Interpreter and script, absolute.
    pub command: Vec<String>,
    /// Variables to set.
    pub environment: BTreeMap<String, String>,
}

/// What a worker inherits.
pub struct Inherited<'a> {
    /// The link's memory.
    pub link: BorrowedFd<'a>,
    /// The version's request arena.
    pub requests: BorrowedFd<'a>,
    /// The server's doorbell.
    pub doorbell: BorrowedFd<'a>,
    /// What the worker is to be, as JSON.
    pub setup: &'a str,
}

/// A running worker process; killed and reaped when dropped.
pub struct WorkerProcess {
    child: Child,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
}

impl WorkerProcess {
    /// Starts a worker.
    ///
    /// # Errors
    ///
    /// The program is not there, or the system refuses processes or descriptors.
    pub async fn start(program: &Program, inherited: Inherited<'_>) -> io::Result<WorkerProcess> {
        let (path, arguments) =
            program.command.split_first().ok_or_else(|| io::Error::other("no command to start a worker with"))?;
        let mut command = Command::new(path);
        // Nobody types into a worker; what it prints is the console's.
        command.args(arguments).envs(&program.environment).stdin(Stdio::null());
        command.env("ALIPES_SERVER_PID", std::process::id().to_string());
        let mappings = vec![
            mapping(inherited.link, DESCRIPTORS.link)?,
            mapping(inherited.requests, DESCRIPTORS.requests)?,
            FdMapping { parent_fd: setup_file(inherited.setup)?, child_fd: DESCRIPTORS.setup },
            mapping(inherited.doorbell, DESCRIPTORS.doorbell)?,
        ];
        command.fd_mappings(mappings).map_err(io::Error::other)?;
        let child = spawner::spawn(command).await?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        Ok(WorkerProcess { child, pidfd, ended: None })
    }

    /// Readable once the process has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Ends it at once; harmless where it has ended already, since it is not reaped before `ended` sees it.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().ok().flatten();
        }
        self.ended
    }

    /// Memory that it keeps in RAM, in bytes.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

fn mapping(fd: BorrowedFd<'_>, child_fd: i32) -> io::Result<FdMapping> {
    Ok(FdMapping { parent_fd: fd.try_clone_to_owned()?, child_fd })
}

/// The setup as a file without a name: it may be long, and no other process of the machine reads it.
pub fn setup_file(setup: &str) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create("alipes-setup", MemfdFlags::CLOEXEC)?);
    file.write_all(setup.as_bytes())?;
    io::Seek::rewind(&mut file)?;
    Ok(file.into())
}
