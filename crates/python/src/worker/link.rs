//! A worker's link to its server. Models reach it by function calls: a process that is a worker has one link, a script
//! with attached instances has one for each, which belongs to the instance's threads.

use std::cell::{Cell, RefCell};
use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use alipes_link::{OutMessage, SendError, WorkerEnd};
use alipes_protocol::call::BODY;
use pyo3::prelude::*;
use pyo3::types::PyString;
use serde::Deserialize;

use super::fork;
use super::mailbox::Mailbox;

/// The link of a process that is a worker.
static LINK: OnceLock<Arc<Link>> = OnceLock::new();

thread_local! {
    /// The link of the attached instance that this thread works for.
    static ATTACHED: RefCell<Option<Arc<Link>>> = const { RefCell::new(None) };

    /// Whether this thread executes requests now.
    static EXECUTES: Cell<bool> = const { Cell::new(false) };
}

/// Most bytes of tensors that are copied with the interpreter held: that takes tens of microseconds, while to get the
/// interpreter back from a thread that computes in Python takes up to five milliseconds (`sys.getswitchinterval`).
pub const QUICK_BYTES: u64 = 256 << 10;

/// This thread's link, or the process's; none where neither is a worker.
pub fn link() -> Option<Arc<Link>> {
    // A thread that ends has none any more.
    let attached = ATTACHED.try_with(|attached| attached.borrow().clone()).ok().flatten();
    attached.or_else(|| LINK.get().cloned())
}

/// Has this thread work for the instance of a link, or for none.
pub fn bind(link: Option<Arc<Link>>) {
    let _ = ATTACHED.try_with(|attached| attached.replace(link));
}

/// What the worker knows of its model.
#[derive(Deserialize)]
pub struct Declaration {
    pub instance: String,
    pub inputs: Vec<Declared>,
    pub outputs: Vec<Declared>,
    pub decoupled: bool,
    /// The model may ask for another round of a request.
    #[serde(default)]
    pub iterative: bool,
    /// The model has an endpoint: calls may come.
    #[serde(default)]
    pub endpoint: bool,
    /// Most rows that are executed together; 0 means one request at a time.
    pub max_rows: u32,
}

/// A declared input or output. Its datatype is no business of the worker's: models may answer with another.
#[derive(Deserialize)]
pub struct Declared {
    pub name: String,
}

/// The link with what belongs to it.
pub struct Link {
    pub end: ManuallyDrop<WorkerEnd>,
    /// Of an attached instance; the other end is the server's.
    lifeline: ManuallyDrop<Option<UnixStream>>,
    /// The process that it was opened in, among those that are forked from each other.
    generation: u32,
    pub declaration: Declaration,
    pub mailbox: Mailbox,
    input_names: Vec<Py<PyString>>,
    output_names: Vec<Py<PyString>>,
    stage: AtomicU8,
    parent: AtomicU64,
}

/// What the worker is at.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    Initializing,
    Serving,
    Leaving,
}

impl Link {
    /// Opens a link: that of the process or, with a lifeline, one of an attached instance.
    ///
    /// # Errors
    ///
    /// The process has one already, or the files are not what this build understands.
    pub fn open(
        py: Python<'_>,
        files: [RawFd; 3],
        declaration: Declaration,
        lifeline: Option<RawFd>,
    ) -> io::Result<Arc<Link>> {
        if lifeline.is_none() && LINK.get().is_some() {
            return Err(io::Error::other("this process has a link already: a worker serves one instance"));
        }
        // The body of calls stands behind what is declared.
        let body = declaration.endpoint.then_some(BODY);
        let names = |tensors: &[Declared]| -> Vec<_> {
            let names = tensors.iter().map(|tensor| tensor.name.as_str()).chain(body);
            names.map(|name| PyString::intern(py, name).unbind()).collect()
        };
        // SAFETY: the descriptors were inherited or received for this purpose; nothing else in the process owns them.
        let owned = |file: RawFd| unsafe { OwnedFd::from_raw_fd(file) };
        let [link, requests, doorbell] = files.map(owned);
        let lifeline = lifeline.map(|file| UnixStream::from(owned(file)));
        let end = WorkerEnd::open(link, requests, doorbell)?;
        fork::watch()?;
        fork::close_in_children(end.doorbell_fd());
        lifeline.iter().for_each(|lifeline| fork::close_in_children(lifeline.as_raw_fd()));
        let is_attached = lifeline.is_some();
        let link = Arc::new(Link {
            end: ManuallyDrop::new(end),
            lifeline: ManuallyDrop::new(lifeline),
            generation: fork::generation(),
            input_names: names(&declaration.inputs),
            output_names: names(&declaration.outputs),
            mailbox: Mailbox::default(),
            declaration,
            stage: AtomicU8::new(Stage::Initializing as u8),
            parent: AtomicU64::new(0),
        });
        Ok(if is_attached { link } else { Arc::clone(LINK.get_or_init(|| link)) })
    }

    /// Whether this process was forked from the one with the link. What it says would mix with its parent's words.
    pub fn is_forked(&self) -> bool {
        self.generation != fork::generation()
    }

    /// The lifeline of an attached instance.
    pub fn lifeline(&self) -> Option<&UnixStream> {
        self.lifeline.as_ref()
    }

    /// The declared input's name; the same object each time.
    pub fn input_name(&self, index: u16) -> Option<&Py<PyString>> {
        self.input_names.get(usize::from(index))
    }

    /// The number of the input that is the body of a call, where calls may come.
    pub fn body_index(&self) -> Option<u16> {
        self.declaration.endpoint.then_some(self.declaration.inputs.len() as u16)
    }

    /// The declared outputs' names, and that of the body where calls may come.
    pub fn output_names(&self) -> &[Py<PyString>] {
        &self.output_names
    }

    /// The position of a declared output. Names in models are interned mostly, as ours are.
    pub fn output_index(&self, label: &Bound<'_, PyString>) -> Option<u16> {
        let same = |name: &&Py<PyString>| name.as_ptr() == label.as_ptr();
        let equal = |name: &Py<PyString>| label.as_any().eq(name).unwrap_or(false);
        let position = self.output_names.iter().position(|name| same(&name));
        let position = position.or_else(|| self.output_names.iter().position(equal));
        position.map(|index| index as u16)
    }

    /// Whether models may be called now.
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            stage if stage == Stage::Serving as u8 => Stage::Serving,
            stage if stage == Stage::Leaving as u8 => Stage::Leaving,
            _ => Stage::Initializing,
        }
    }

    pub fn set_stage(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// Ticket of the request that this thread's calls are for, the first of its batch; 0 where nobody knows.
    ///
    /// Other threads than the one that executes work for the execution, which waits for them. Those of a decoupled
    /// model answer requests of earlier executions.
    pub fn parent(&self) -> u64 {
        if self.declaration.decoupled && !EXECUTES.get() { 0 } else { self.parent.load(Ordering::Relaxed) }
    }

    /// Begins an execution on this thread; with 0, ends it.
    pub fn set_parent(&self, ticket: u64) {
        EXECUTES.set(ticket != 0);
        self.parent.store(ticket, Ordering::Relaxed);
    }

    /// Sends a message with so many bytes of tensors.
    ///
    /// # Errors
    ///
    /// It is larger than the link can carry, or this process was forked from the worker.
    pub fn send(&self, py: Python<'_>, message: &OutMessage<'_>, bytes: u64) -> Result<(), String> {
        if self.is_forked() {
            return Err(fork::NOT_OURS.to_owned());
        }
        let text = |error: SendError| error.to_string();
        if bytes <= QUICK_BYTES && self.end.try_send(message).map_err(text)? {
            return Ok(());
        }
        py.detach(|| self.end.send(message)).map_err(text)
    }

    /// Gives memory back, from wherever its last user ends.
    pub fn release(&self, number: u64) {
        self.send_from_drop(&OutMessage::Released { lease: number });
    }

    /// Gives back a little memory that nobody waits for: the server need not be woken for it alone.
    pub fn release_quietly(&self, number: u64) {
        let message = OutMessage::Released { lease: number };
        if !self.is_forked() && self.end.try_send_quietly(&message) == Ok(false) {
            self.send_from_drop(&message);
        }
    }

    /// Sends a small message, with or without the interpreter.
    pub fn send_from_drop(&self, message: &OutMessage<'_>) {
        if self.is_forked() {
            return;
        }
        // It fits every link.
        if let Ok(false) = self.end.try_send(message) {
            let send = || drop(self.end.send(message));
            if Python::try_attach(|py| py.detach(send)).is_none() {
                send();
            }
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // In a forked process the descriptors are closed, and their numbers may be those of other files.
        if self.is_forked() {
            return;
        }
        fork::leave_in_children(self.end.doorbell_fd());
        self.lifeline.iter().for_each(|lifeline| fork::leave_in_children(lifeline.as_raw_fd()));
        // SAFETY: this is where they are dropped, and nowhere else.
        unsafe {
            ManuallyDrop::drop(&mut self.end);
            ManuallyDrop::drop(&mut self.lifeline);
        }
    }
}
