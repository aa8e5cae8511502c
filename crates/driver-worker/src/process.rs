//! The process of a worker: how it is started, watched and ended.

#![allow(clippy::disallowed_methods, reason = "a process is looked at when it starts or has ended")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus, Stdio};

use alipes_link::DESCRIPTORS;
use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid};

use super::{spawner, waiting};

/// What is started, and with which environment on top of the server's own.
#[derive(Clone, Debug)]
pub struct Program {
    /// Interpreter and script, absolute.
    pub command: Vec<String>,
    /// Variables to set.
    pub environment: BTreeMap<String, String>,
    /// Under which key a process may wait that has the model's source imported already.
    pub waiting: Option<String>,
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

/// A running child process; killed and reaped when dropped.
pub struct WorkerProcess {
    pid: Pid,
    pidfd: OwnedFd,
    ended: Option<ExitStatus>,
}

impl WorkerProcess {
    /// Starts a worker, or has a process go on as one that waits for it.
    ///
    /// # Errors
    ///
    /// The program is not there, or the system refuses processes or descriptors.
    pub async fn start(program: &Program, inherited: Inherited<'_>) -> io::Result<WorkerProcess> {
        if let Some(waiting) = program.waiting.as_deref().and_then(waiting::take)
            && let Ok(process) = waiting.go_on(&inherited)
        {
            return Ok(process);
        }
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
        WorkerProcess::of(Pid::from_child(&child))
    }

    /// Takes over a child of this process that nobody else waits for.
    ///
    /// # Errors
    ///
    /// There is no such process, or no descriptor left.
    pub fn of(pid: Pid) -> io::Result<WorkerProcess> {
        let pidfd = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(WorkerProcess { pid, pidfd, ended: None })
    }

    /// Its number, which is its own until it is dropped.
    pub fn number(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Readable once the process has ended.
    pub fn pidfd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }

    /// Ends it at once; harmless where it has ended already, since it is not reaped before `ended` sees it.
    pub fn kill(&mut self) {
        if self.ended.is_none() {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.wait(WaitOptions::NOHANG);
        }
        self.ended
    }

    /// Reaps it, if it has ended or can be waited for.
    fn wait(&self, options: WaitOptions) -> Option<ExitStatus> {
        let (_, status) = rustix::io::retry_on_intr(|| waitpid(Some(self.pid), options)).ok().flatten()?;
        Some(ExitStatus::from_raw(status.as_raw()))
    }

    /// Memory that it keeps in RAM, in bytes.
    pub fn resident_bytes(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid.as_raw_nonzero())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
            let _ = self.wait(WaitOptions::empty());
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
