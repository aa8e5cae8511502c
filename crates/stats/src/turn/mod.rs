//! Turns: what a network thread does for one task before another has the thread.
//!
//! A network thread serves many connections, one task at a time, and each task gives way by itself. So whatever takes
//! long in one turn holds up everybody else on the thread, and nothing in the statistics of models shows it. Each turn
//! is therefore timed: [`timed`] wraps the future of every task that runs on a network thread.
//!
//! That costs two readings of a coarse clock a turn, some nanoseconds each. It shows nothing of turns that are shorter
//! than a tick of the system, which nobody has to know about.

mod kind;
mod meter;

use std::cell::{Cell, OnceCell};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use compact_str::CompactString;
use pin_project_lite::pin_project;

pub use kind::Task;
pub use meter::{TurnMeters, TurnReading};

use meter::{Request, TurnMeter};

/// Most characters of a model's name that are remembered.
const NAME_CHARACTERS: usize = 64;

thread_local! {
    static HERE: Here = const { Here { meter: OnceCell::new(), request: Cell::new(None) } };
}

/// What the calling thread knows of its turns.
struct Here {
    /// None on threads that are no network threads.
    meter: OnceCell<Arc<TurnMeter>>,
    /// The request that the running turn has begun or gone on with.
    request: Cell<Option<Request>>,
}

/// Makes the calling thread a network thread, whose turns are timed from now on.
pub fn watch(meters: &TurnMeters, thread: usize) {
    HERE.with(|here| drop(here.meter.set(meters.add(thread))));
}

/// Says which request the running turn begins or goes on with: what a report of the turn names, and those of later
/// turns of the same task.
///
/// `what` is the route or the method, `model` the name of the model or empty.
#[inline]
pub fn note_request(what: &'static str, model: &str) {
    HERE.with(|here| {
        if here.meter.get().is_some() {
            here.request.set(Some(Request { what, model: beginning(model) }));
        }
    });
}

fn beginning(model: &str) -> CompactString {
    if model.len() <= NAME_CHARACTERS { model.into() } else { model.chars().take(NAME_CHARACTERS).collect() }
}

/// The same future with its turns timed where it runs on a network thread.
pub fn timed<F: Future>(task: Task, future: F) -> Timed<F> {
    Timed { task, request: None, future: Some(future) }
}

pin_project! {
    /// A task whose turns are timed.
    pub struct Timed<F> {
        task: Task,
        // What it was last seen to work on.
        request: Option<Request>,
        // None once it has ended: what it takes to let go of it belongs to its last turn.
        #[pin]
        future: Option<F>,
    }
}

impl<F: Future> Future for Timed<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let timed = self.project();
        let mut future = timed.future;
        let mut take_turn = || {
            // A task that polls a future after its end waits for ever, as the contract of futures allows.
            let Some(running) = future.as_mut().as_pin_mut() else { return Poll::Pending };
            let polled = running.poll(cx);
            if polled.is_ready() {
                future.set(None);
            }
            polled
        };
        HERE.with(|here| {
            let Some(meter) = here.meter.get() else { return take_turn() };
            let begun_ns = meter.begin(*timed.task);
            let polled = take_turn();
            if let Some(request) = here.request.take() {
                *timed.request = Some(request);
            }
            meter.end(*timed.task, begun_ns, timed.request.as_ref());
            polled
        })
    }
}

#[cfg(test)]
mod tests {
    use std::future::{poll_fn, ready};
    use std::pin::pin;
    use std::task::Waker;
    use std::thread;
    use std::time::Duration;

    use alipes_clock::Held;
    use alipes_protocol::limits::{TURN_CPU_TIME, TURN_TIME};
    use alipes_spec::TurnClock;

    use super::*;
    use crate::events::{Event, EventQueue};

    /// Runs on a network thread of its own, whose clock is held, and gives what its meters show and the log has.
    fn on_a_network_thread(clock: TurnClock, run: impl FnOnce(&Held) + Send) -> (TurnReading, Vec<String>) {
        let events = Arc::new(EventQueue::default());
        let meters = TurnMeters::new(clock, Arc::clone(&events));
        thread::scope(|scope| {
            scope.spawn(|| {
                let held = Held::new();
                let _entered = held.enter();
                watch(&meters, 3);
                run(&held);
            });
        });
        events.close();
        let lines = std::iter::from_fn(|| events.next(alipes_clock::now())).map(|event| match event {
            Event::Notice { level: 1, text } => text,
            other => panic!("{other:?}"),
        });
        let lines = lines.collect();
        (meters.readings()[0], lines)
    }

    fn poll<T>(task: &mut Pin<&mut Timed<impl Future<Output = T>>>) -> Poll<T> {
        task.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Each turn of this task takes the next of these spans.
    fn taking(held: &Held, spans: Vec<Duration>) -> impl Future<Output = ()> {
        let mut spans = spans.into_iter();
        poll_fn(move |_| match spans.next() {
            Some(span) => {
                held.advance(span);
                Poll::Pending
            }
            None => Poll::Ready(()),
        })
    }

    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn the_longest_turn_is_shown_and_long_ones_are_counted() {
        let (reading, lines) = on_a_network_thread(TurnClock::Wall, |held| {
            let mut task = pin!(timed(Task::Connection, taking(held, vec![SHORT, TURN_TIME, 2 * TURN_TIME, SHORT])));
            while poll(&mut task).is_pending() {
                // Between its turns a task may wait for as long as it likes.
                held.advance(10 * TURN_TIME);
            }
        });
        assert_eq!((reading.thread, reading.longest, reading.long_turns), (3, 2 * TURN_TIME, 2));
        assert_eq!(lines.len(), 1, "one line a minute: {lines:?}");
        assert!(lines[0].starts_with("network thread 3 spent 0.250 s in one turn on a connection;"), "{lines:?}");
    }

    #[test]
    fn a_report_names_the_request_that_the_task_worked_on() {
        let (_, lines) = on_a_network_thread(TurnClock::Wall, |held| {
            let mut call = pin!(timed(Task::Call, async {
                note_request("ModelInfer", "resnet");
                tokio_yield().await;
                held.advance(TURN_TIME);
            }));
            assert!(poll(&mut call).is_pending());
            let mut other = pin!(timed(Task::Connection, async { note_request("infer", &"x".repeat(1000)) }));
            assert!(poll(&mut other).is_ready());
            assert!(poll(&mut call).is_ready());
        });
        assert!(lines[0].contains("on a call of HTTP/2 (ModelInfer for model 'resnet')"), "{lines:?}");
    }

    /// Gives way once.
    fn tokio_yield() -> impl Future<Output = ()> {
        let mut first = true;
        poll_fn(move |_| if std::mem::take(&mut first) { Poll::Pending } else { Poll::Ready(()) })
    }

    #[test]
    fn a_line_a_minute_says_how_many_were_left_out() {
        let (reading, lines) = on_a_network_thread(TurnClock::Wall, |held| {
            for _ in 0..4 {
                assert!(poll(&mut pin!(timed(Task::RunQueue, async { held.advance(TURN_TIME) }))).is_ready());
            }
            held.advance(Duration::from_secs(60));
            assert!(poll(&mut pin!(timed(Task::RunQueue, async { held.advance(TURN_TIME) }))).is_ready());
        });
        assert_eq!(reading.long_turns, 5);
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(lines[1].ends_with("; 3 more such turns were not logged"), "{lines:?}");
    }

    #[test]
    fn processor_time_is_measured_where_it_is_wanted() {
        let (reading, lines) = on_a_network_thread(TurnClock::Cpu, |held| {
            assert!(poll(&mut pin!(timed(Task::Call, async { held.advance(10 * TURN_TIME) }))).is_ready());
            let busy = async {
                let begun_ns = alipes_clock::thread_cpu_ns();
                while Duration::from_nanos(alipes_clock::thread_cpu_ns() - begun_ns) < TURN_CPU_TIME {}
            };
            assert!(poll(&mut pin!(timed(Task::Call, busy))).is_ready());
        });
        assert!(reading.longest >= TURN_CPU_TIME);
        assert_eq!((reading.long_turns, lines.len()), (1, 1), "{lines:?}");
        assert!(lines[0].contains(" s of processor time in one turn on a call of HTTP/2"), "{lines:?}");
    }

    #[test]
    fn a_turn_that_does_not_end_is_shown_and_reported_once() {
        let events = Arc::new(EventQueue::default());
        let meters = TurnMeters::new(TurnClock::Wall, Arc::clone(&events));
        let held = Held::new();
        let look = || {
            let _entered = held.enter();
            meters.report_overdue();
            meters.readings()[0].longest
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                let _entered = held.enter();
                watch(&meters, 0);
                let endless = async {
                    assert_eq!(look(), Duration::ZERO);
                    held.advance(2 * TURN_TIME);
                    assert_eq!(look(), 2 * TURN_TIME);
                    held.advance(2 * TURN_TIME);
                    assert_eq!(look(), 4 * TURN_TIME);
                };
                assert!(poll(&mut pin!(timed(Task::Call, endless))).is_ready());
                look();
            });
        });
        let lines: Vec<_> = std::iter::from_fn(|| events.next(alipes_clock::now())).collect();
        let texts: Vec<_> = lines.iter().map(|event| format!("{event:?}")).collect();
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(
            texts[0].contains("network thread 0 has spent 0.500 s in one turn on a call of HTTP/2 so far"),
            "{texts:?}"
        );
        assert!(texts[1].contains("network thread 0 spent 1.000 s in one turn"), "{texts:?}");
    }

    #[test]
    fn a_thread_without_a_meter_runs_tasks_as_they_are() {
        note_request("infer", "m");
        let mut task = pin!(timed(Task::Call, ready(7)));
        assert_eq!(poll(&mut task), Poll::Ready(7));
        assert_eq!(poll(&mut task), Poll::Pending);
    }

    #[test]
    fn what_a_task_held_is_let_go_of_in_its_last_turn() {
        struct Slow<'a>(&'a Held);
        impl Drop for Slow<'_> {
            fn drop(&mut self) {
                self.0.advance(TURN_TIME);
            }
        }
        let (reading, _) = on_a_network_thread(TurnClock::Wall, |held| {
            let slow = Slow(held);
            // Moved into the future, and not dropped by its own code.
            let mut task = pin!(timed(Task::Call, poll_fn(move |_| Poll::Ready(std::hint::black_box(&slow).0.now()))));
            assert!(poll(&mut task).is_ready());
        });
        assert_eq!(reading.longest, TURN_TIME);
    }
}
