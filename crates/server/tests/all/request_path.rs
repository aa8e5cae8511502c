//! The files that a small JSON inference crosses: those of our frames on the stack whenever it reads or writes the
//! connection, allocates or frees memory, asks for the time, or runs the model.
//!
//! The connection and the model have served requests before, and the model runs on the network thread, as quick ones
//! do.

use std::alloc::{GlobalAlloc, Layout, System};
use std::backtrace::Backtrace;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_net::policy::ListenerKind;
use alipes_runtime::executor::run_queue::RunQueue;
use alipes_spec::{ConnectionSpec, KeepaliveSpec};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::common::{Echo, model};
use crate::memory::{Connection, Endpoint};

/// Most files that a small inference crosses: a reader who follows a request through the code opens no more.
const MOST_FILES: usize = 28;

const BODY: &str = r#"{"inputs":[{"name":"X","shape":[2],"datatype":"FP32","data":[1.5,2]}]}"#;

thread_local! {
    static IS_TRACED: Cell<bool> = const { Cell::new(false) };
    static STACKS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Records the calling thread's stack, if it is traced.
fn record() {
    // While a stack is recorded, which allocates, the thread is not traced.
    if IS_TRACED.try_with(|traced| traced.replace(false)) == Ok(true) {
        let stack = Backtrace::force_capture().to_string();
        STACKS.with_borrow_mut(|stacks| stacks.push(stack));
        IS_TRACED.set(true);
    }
}

/// The system's allocator, which records the stack of each call.
struct RecordedMemory;

#[global_allocator]
static ALLOCATOR: RecordedMemory = RecordedMemory;

// SAFETY: every call goes to the system's allocator with the same arguments; recording takes none of its memory.
unsafe impl GlobalAlloc for RecordedMemory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record();
        // SAFETY: the caller keeps the same promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        record();
        // SAFETY: the caller keeps the same promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

/// The model, which records the stack of each run.
struct RecordedModel;

impl Engine for RecordedModel {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        record();
        Echo.run(inputs, wanted, outputs)
    }
}

/// The server's end of a connection, which records the stack of each read and write.
struct RecordedStream(DuplexStream);

impl AsyncRead for RecordedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        record();
        Pin::new(&mut self.0).poll_read(cx, into)
    }
}

impl AsyncWrite for RecordedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        record();
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// One inference over a connection.
async fn infer(connection: &mut Connection) {
    let length = BODY.len();
    let head = format!("POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    assert!(connection.send(head + BODY).await);
    let head = connection.head().await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    let length = head.to_lowercase().split_once("content-length: ").unwrap().1.split_once('\r').unwrap().0.parse();
    let answer = connection.read(length.unwrap()).await.unwrap();
    assert!(String::from_utf8(answer).unwrap().ends_with(r#""data":[1.5,2.0]}]}"#));
}

/// Our files among the frames of a stack.
fn files(stack: &str) -> impl Iterator<Item = &str> {
    let places = stack.lines().filter_map(|line| line.trim_start().strip_prefix("at "));
    let ours = places.filter_map(|place| place.split_once("crates/").map(|(_, place)| place));
    ours.filter_map(|place| place.split_once(".rs:").map(|(file, _)| file)).filter(|file| {
        // The clock of a test is no part of the path; `core` has folders named `crates` too.
        file.contains("/src/") && !file.starts_with("clock/")
    })
}

#[tokio::test]
async fn a_small_inference_crosses_few_files() {
    let model = model("echo", false, RecordedModel);
    model.pace.note(Duration::from_micros(1));
    let (connections, keepalive) = (ConnectionSpec::default(), KeepaliveSpec::default());
    let endpoint = Endpoint::open(ListenerKind::Http, connections, keepalive, [model]);
    let _clock = alipes_clock::follow(|| {
        record();
        tokio::time::Instant::now().into_std()
    });
    tokio::spawn(RunQueue::open().serve());
    let mut connection = endpoint.connect_through(RecordedStream);
    infer(&mut connection).await;
    infer(&mut connection).await;
    IS_TRACED.set(true);
    infer(&mut connection).await;
    IS_TRACED.set(false);
    RunQueue::close();

    let stacks = STACKS.take();
    let crossed: BTreeSet<&str> = stacks.iter().flat_map(|stack| files(stack)).collect();
    println!("{}\n{} files", crossed.iter().copied().collect::<Vec<_>>().join("\n"), crossed.len());
    for (what, file) in [
        ("the connection", "net/src/connection/transport"),
        ("the request", "http/src/infer"),
        ("the verb", "service/src/infer"),
        ("the model", "driver-native/src/execute"),
    ] {
        assert!(crossed.contains(file), "{what} is not on the path: {crossed:?}");
    }
    assert!(crossed.len() <= MOST_FILES, "{} files: {crossed:?}", crossed.len());
}
