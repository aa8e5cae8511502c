//! Who is at the other end of a worker's link: a process that the server started, or a script that started the server.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;
use std::sync::Arc;

use alipes_runtime::model::driver::HostProcess;

use super::process::{Inherited, Program, WorkerProcess};
use super::script::{AttachedWorker, Script};

/// Where a worker's instance comes from.
#[derive(Clone, Debug)]
pub enum Host {
    /// A process of the server's own, from this program.
    Process(Program),
    /// A thread of this script.
    Script(Arc<Script>),
}

/// A running instance; ended when dropped.
pub enum Peer {
    /// In a process of the server's own.
    Process(WorkerProcess),
    /// On a thread of the script.
    Attached(AttachedWorker),
}

/// How an instance ended.
pub enum Ending {
    /// Its process is over.
    Exit(ExitStatus),
    /// The script let go of it, or is gone.
    Detached,
}

impl Host {
    /// Starts an instance.
    ///
    /// # Errors
    ///
    /// The program is not there, the script takes no instances or is gone (`BrokenPipe`), or the system refuses
    /// processes or descriptors.
    pub async fn start(&self, inherited: Inherited<'_>) -> io::Result<Peer> {
        Ok(match self {
            Host::Process(program) => Peer::Process(WorkerProcess::start(program, inherited).await?),
            Host::Script(script) => Peer::Attached(script.assign(inherited).await?),
        })
    }

    /// The process that runs an instance of it.
    pub fn process_of(&self, peer: &Peer) -> Option<HostProcess> {
        match (self, peer) {
            (Host::Script(script), _) => script.process().map(HostProcess::Script),
            (_, Peer::Process(process)) => Some(HostProcess::Worker(process.number())),
            (_, Peer::Attached(_)) => None,
        }
    }

    /// Whether its instances run on threads of a script.
    pub fn is_script(&self) -> bool {
        matches!(self, Host::Script(_))
    }
}

impl Peer {
    /// Readable once the instance has ended.
    pub fn exit(&self) -> BorrowedFd<'_> {
        match self {
            Peer::Process(process) => process.pidfd(),
            Peer::Attached(worker) => worker.lifeline(),
        }
    }

    /// Ends it at once: kills the process, or lets go of the script's thread, which nobody can end.
    pub fn kill(&mut self) {
        match self {
            Peer::Process(process) => process.kill(),
            Peer::Attached(worker) => worker.let_go(),
        }
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<Ending> {
        match self {
            Peer::Process(process) => process.ended().map(Ending::Exit),
            Peer::Attached(worker) => worker.has_ended().then_some(Ending::Detached),
        }
    }

    /// Memory that its process keeps in RAM, in bytes; of a script nobody knows the part that is the instance's.
    pub fn resident_bytes(&self) -> Option<u64> {
        match self {
            Peer::Process(process) => process.resident_bytes(),
            Peer::Attached(_) => None,
        }
    }
}
