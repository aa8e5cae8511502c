//! The model checker's locks under the names that the server's have. Sleeps end as the test says, not as a clock does.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync;
use shuttle::thread::{self, Thread};

// The checker's threads take turns on one thread, and only where they meet its own locks. So what is kept here needs
// none.
thread_local! {
    static CLOCK: Cell<Option<Instant>> = const { Cell::new(None) };
    static RESTLESS: Cell<bool> = const { Cell::new(false) };
    static OVER: Cell<bool> = const { Cell::new(false) };
    static SLEEPERS: RefCell<Vec<Arc<Sleeper>>> = const { RefCell::new(Vec::new()) };
}

/// Begins a play. Sleeps end when somebody ends them; in a restless one also by themselves, now and then.
pub fn begin(restless: bool) {
    CLOCK.set(Some(Instant::now()));
    RESTLESS.set(restless);
    OVER.set(false);
}

/// The play's time: it moves when a sleep has lasted its time.
pub fn now() -> Instant {
    CLOCK.get().expect("a play has begun")
}

/// From here on nobody sleeps: everybody's time is up.
pub fn rouse() {
    OVER.set(true);
    wake_those_whose_time_is_up();
}

fn is_up(moment: Instant) -> bool {
    OVER.get() || now() >= moment
}

fn wake_those_whose_time_is_up() {
    let up = |sleeper: &Arc<Sleeper>| is_up(sleeper.until).then(|| Arc::clone(sleeper));
    let up: Vec<_> = SLEEPERS.with_borrow(|sleepers| sleepers.iter().filter_map(up).collect());
    for sleeper in up {
        sleeper.wake();
    }
}

#[derive(Debug, Default)]
pub struct Mutex<T>(sync::Mutex<T>);

pub struct Guard<'a, T> {
    mutex: &'a Mutex<T>,
    held: Option<sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Mutex(sync::Mutex::new(value))
    }

    pub fn lock(&self) -> Guard<'_, T> {
        Guard { mutex: self, held: Some(self.0.lock().expect("nobody panicked")) }
    }
}

impl<T> Deref for Guard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("it is locked but for a sleep")
    }
}

impl<T> DerefMut for Guard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("it is locked but for a sleep")
    }
}

/// A thread that sleeps.
#[derive(Debug)]
struct Sleeper {
    thread: Thread,
    until: Instant,
    woken: AtomicBool,
}

impl Sleeper {
    /// False where it was woken before.
    fn wake(&self) -> bool {
        let first = !self.woken.swap(true, Ordering::Relaxed);
        if first {
            self.thread.unpark();
        }
        first
    }
}

#[derive(Debug, Default)]
pub struct Condvar(std::sync::Mutex<VecDeque<Arc<Sleeper>>>);

pub struct Slept {
    timed_out: bool,
}

impl Slept {
    pub fn timed_out(&self) -> bool {
        self.timed_out
    }
}

impl Condvar {
    pub fn wait_until<T>(&self, guard: &mut Guard<'_, T>, moment: Instant) -> Slept {
        if RESTLESS.get() && !is_up(moment) && thread_rng().gen_bool(0.3) {
            CLOCK.set(Some(moment));
            wake_those_whose_time_is_up();
        }
        if !is_up(moment) {
            self.sleep(guard, moment);
        }
        Slept { timed_out: is_up(moment) }
    }

    fn sleep<T>(&self, guard: &mut Guard<'_, T>, until: Instant) {
        let sleeper = Arc::new(Sleeper { thread: thread::current(), until, woken: AtomicBool::new(false) });
        self.0.lock().expect("nobody panicked").push_back(Arc::clone(&sleeper));
        SLEEPERS.with_borrow_mut(|sleepers| sleepers.push(Arc::clone(&sleeper)));
        guard.held = None;
        while !sleeper.woken.load(Ordering::Relaxed) {
            thread::park();
        }
        SLEEPERS.with_borrow_mut(|sleepers| sleepers.retain(|other| !Arc::ptr_eq(other, &sleeper)));
        guard.held = guard.mutex.lock().held;
    }

    pub fn notify_one(&self) {
        while let Some(sleeper) = self.next() {
            if sleeper.wake() {
                return;
            }
        }
    }

    fn next(&self) -> Option<Arc<Sleeper>> {
        self.0.lock().expect("nobody panicked").pop_front()
    }
}
