//! The record of a traced request: which moments it passed, and when.
//!
//! Almost no request carries one. A record is told to its [`Collector`] when nobody holds it any more, together with
//! those of the requests that the first one led to.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::Tensor;

/// A moment in the way of a request. Source: Triton's trace, whose names these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The head of the request is there.
    HttpRecvStart,
    /// The whole request is there.
    HttpRecvEnd,
    /// The answer begins to leave.
    HttpSendStart,
    /// The answer has left.
    HttpSendEnd,
    /// The server waits for the request's message.
    GrpcWaitreadStart,
    /// The message is there.
    GrpcWaitreadEnd,
    /// The answer begins to leave.
    GrpcSendStart,
    /// The answer has left.
    GrpcSendEnd,
    /// The model has the request.
    RequestStart,
    /// The request waits for an instance.
    QueueStart,
    /// An instance has taken the request.
    ComputeStart,
    /// Its inputs are where the instance wants them.
    ComputeInputEnd,
    /// The model has run.
    ComputeOutputStart,
    /// The outputs are where the answer wants them.
    ComputeEnd,
    /// The first response is complete.
    InferResponseComplete,
    /// Nothing more will be done for the request.
    RequestEnd,
}

impl Moment {
    /// Triton's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Moment::HttpRecvStart => "HTTP_RECV_START",
            Moment::HttpRecvEnd => "HTTP_RECV_END",
            Moment::HttpSendStart => "HTTP_SEND_START",
            Moment::HttpSendEnd => "HTTP_SEND_END",
            Moment::GrpcWaitreadStart => "GRPC_WAITREAD_START",
            Moment::GrpcWaitreadEnd => "GRPC_WAITREAD_END",
            Moment::GrpcSendStart => "GRPC_SEND_START",
            Moment::GrpcSendEnd => "GRPC_SEND_END",
            Moment::RequestStart => "REQUEST_START",
            Moment::QueueStart => "QUEUE_START",
            Moment::ComputeStart => "COMPUTE_START",
            Moment::ComputeInputEnd => "COMPUTE_INPUT_END",
            Moment::ComputeOutputStart => "COMPUTE_OUTPUT_START",
            Moment::ComputeEnd => "COMPUTE_END",
            Moment::InferResponseComplete => "INFER_RESPONSE_COMPLETE",
            Moment::RequestEnd => "REQUEST_END",
        }
    }
}

/// What is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Level {
    /// Moments.
    pub timestamps: bool,
    /// Inputs and outputs.
    pub tensors: bool,
}

impl Level {
    /// Whether nothing is.
    pub const fn is_off(self) -> bool {
        !(self.timestamps || self.tensors)
    }
}

/// On which side of a model a tensor was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// As an input, when the request began to wait.
    QueueInput,
    /// As an output, in a response.
    BackendOutput,
}

impl Side {
    /// Triton's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Side::QueueInput => "TENSOR_QUEUE_INPUT",
            Side::BackendOutput => "TENSOR_BACKEND_OUTPUT",
        }
    }
}

/// Which span of a caller the request belongs to. Source: W3C Trace Context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Context {
    /// The trace.
    pub trace_id: u128,
    /// The caller's span in it; none where the trace begins here.
    pub parent_span: Option<u64>,
    /// What others keep with the trace; passed on as it is.
    pub state: String,
}

/// Who was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    /// Name of the model.
    pub model: String,
    /// Its version.
    pub version: i64,
    /// The caller's id of the request; empty where none was given.
    pub request_id: String,
}

/// What is known of one request when it is over.
#[derive(Debug, Default)]
pub struct Record {
    /// Its number, from 1.
    pub id: u64,
    /// Number of the request that led to it; 0 where a client sent it.
    pub parent: u64,
    /// Number of its span.
    pub span: u64,
    /// Who was asked; none where it never came to that.
    pub subject: Option<Subject>,
    /// Moments with their nanoseconds on the clock of [`Trace::note`], as they were noted.
    pub moments: Vec<(Moment, u64)>,
    /// Tensors that were seen.
    pub tensors: Vec<(Side, Tensor)>,
}

/// Takes records in.
pub trait Collector: Send + Sync {
    /// A number for a record, unlike any other, and one for its span.
    fn numbers(&self) -> (u64, u64);

    /// The request is over, and with it those that it led to: its own record comes last. Must not block.
    fn collect(&self, context: Option<Context>, records: Vec<Record>);
}

/// The record of one request while it is under way.
pub struct Trace {
    group: Arc<Group>,
    id: u64,
    parent: u64,
    span: u64,
    subject: OnceLock<Subject>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    moments: Vec<(Moment, u64)>,
    tensors: Vec<(Side, Tensor)>,
}

/// A request of a client and those that it led to.
struct Group {
    level: Level,
    context: Option<Context>,
    ended: Mutex<Vec<Record>>,
    collector: Arc<dyn Collector>,
}

impl Trace {
    /// The record of a request that a client sent.
    pub fn begin(collector: Arc<dyn Collector>, level: Level, context: Option<Context>) -> Arc<Trace> {
        let group = Group { level, context, ended: Mutex::default(), collector };
        Trace::within(Arc::new(group), 0)
    }

    /// The record of a request that this one leads to.
    pub fn child(&self) -> Arc<Trace> {
        Trace::within(Arc::clone(&self.group), self.id)
    }

    fn within(group: Arc<Group>, parent: u64) -> Arc<Trace> {
        let (id, span) = group.collector.numbers();
        Arc::new(Trace { group, id, parent, span, subject: OnceLock::new(), seen: Mutex::default() })
    }

    /// Notes who is asked, once.
    pub fn about(&self, subject: impl FnOnce() -> Subject) {
        self.subject.get_or_init(subject);
    }

    /// Notes a moment, with its nanoseconds on the system's monotonic clock.
    pub fn note(&self, moment: Moment, ns: u64) {
        if self.group.level.timestamps {
            lock(&self.seen).moments.push((moment, ns));
        }
    }

    /// Notes a moment unless it was noted before.
    pub fn note_once(&self, moment: Moment, ns: u64) {
        if self.group.level.timestamps {
            let mut seen = lock(&self.seen);
            if seen.moments.iter().all(|&(other, _)| other != moment) {
                seen.moments.push((moment, ns));
            }
        }
    }

    /// Notes that a response is complete: the first one of a request that a client sent. Source: Triton's endpoints
    /// note it, which do not see the requests that models send.
    pub fn note_response(&self, ns: u64) {
        if self.parent == 0 {
            self.note_once(Moment::InferResponseComplete, ns);
        }
    }

    /// Notes tensors, whose bytes are kept until the record is written.
    pub fn note_tensors<'a>(&self, side: Side, tensors: impl IntoIterator<Item = &'a Tensor>) {
        if self.group.level.tensors {
            lock(&self.seen).tensors.extend(tensors.into_iter().map(|tensor| (side, tensor.clone())));
        }
    }

    /// The caller's trace and this request's span in it, as a request that it leads to elsewhere would be told.
    pub fn context(&self) -> Option<Context> {
        self.group.context.as_ref().map(|context| Context { parent_span: Some(self.span), ..context.clone() })
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        let Seen { moments, tensors } = std::mem::take(&mut *lock(&self.seen));
        let (id, parent, span, subject) = (self.id, self.parent, self.span, self.subject.take());
        lock(&self.group.ended).push(Record { id, parent, span, subject, moments, tensors });
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let records = std::mem::take(&mut *lock(&self.ended));
        self.collector.collect(self.context.take(), records);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each record is whole between any two lines, so a thread that panicked with the lock has left none half done.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trace {}", self.id)
    }
}

impl PartialEq for Trace {
    fn eq(&self, other: &Trace) -> bool {
        std::ptr::eq(self, other)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[derive(Default)]
    struct Recorder {
        last: AtomicU64,
        records: Mutex<Vec<Record>>,
    }

    impl Collector for Recorder {
        fn numbers(&self) -> (u64, u64) {
            let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
            (id, id * 100)
        }

        fn collect(&self, _: Option<Context>, records: Vec<Record>) {
            self.records.lock().unwrap().extend(records);
        }
    }

    const MOMENTS: Level = Level { timestamps: true, tensors: false };

    #[test]
    fn records_come_together_when_the_last_is_let_go() {
        let recorder = Arc::new(Recorder::default());
        let trace = Trace::begin(Arc::clone(&recorder) as Arc<dyn Collector>, MOMENTS, None);
        trace.about(|| Subject { model: "m".into(), ..Subject::default() });
        trace.note(Moment::RequestStart, 5);
        let child = trace.child();
        drop(child);
        assert!(recorder.records.lock().unwrap().is_empty());
        drop(trace);
        let records = recorder.records.lock().unwrap();
        assert_eq!([(records[0].id, records[0].parent), (records[1].id, records[1].parent)], [(2, 1), (1, 0)]);
        assert_eq!(records[1].moments, [(Moment::RequestStart, 5)]);
        assert_eq!(records[1].subject.as_ref().unwrap().model, "m");
    }

    #[test]
    fn only_events_of_the_level_are_recorded() {
        let recorder = Arc::new(Recorder::default());
        let level = Level { timestamps: false, tensors: true };
        let trace = Trace::begin(Arc::clone(&recorder) as Arc<dyn Collector>, level, None);
        trace.note(Moment::RequestStart, 5);
        let shape = [1].into_iter().collect();
        let data = bytes::Bytes::from_static(&[1]);
        let tensor = Tensor { name: "X".into(), datatype: crate::Datatype::Int8, shape, data };
        trace.note_tensors(Side::QueueInput, [&tensor]);
        drop(trace);
        let records = recorder.records.lock().unwrap();
        assert_eq!((records[0].moments.len(), &records[0].tensors[0]), (0, &(Side::QueueInput, tensor)));
    }

    #[test]
    fn the_first_response_to_a_client_is_noted_and_no_other() {
        let recorder = Arc::new(Recorder::default());
        let trace = Trace::begin(Arc::clone(&recorder) as Arc<dyn Collector>, MOMENTS, None);
        trace.child().note_response(1);
        trace.note_response(2);
        trace.note_response(3);
        drop(trace);
        let records = recorder.records.lock().unwrap();
        assert_eq!((records[0].moments.len(), &records[1].moments[..]), (0, &[(Moment::InferResponseComplete, 2)][..]));
    }

    #[test]
    fn a_context_names_the_span_of_the_request() {
        let context = Context { trace_id: 7, parent_span: Some(1), state: "a=b".into() };
        let trace = Trace::begin(Arc::new(Recorder::default()), MOMENTS, Some(context.clone()));
        assert_eq!(trace.context(), Some(Context { parent_span: Some(100), ..context.clone() }));
        assert_eq!(trace.child().context().unwrap().parent_span, Some(200));
    }
}
