//! The loops that drive a claimed instance.
//!
//! Nothing else of the server is named here: the model checker runs these lines with its own threads and locks
//! (`tests/all/interleavings.rs`).

use std::time::Instant;

/// The outcome of one step.
pub enum Step {
    /// A batch was executed; call again.
    Again,
    /// Nothing is due before this moment.
    Wait(Instant),
    /// The instance was released.
    Idle,
}

/// A claimed instance.
pub trait Claimed {
    /// Takes the next batch, if one is due, and executes it.
    fn step(&self) -> Step;

    /// Parks the thread until the moment, or until it is woken.
    fn park(&self, until: Instant);

    /// Releases the instance after a batch. If requests wait, the queue starts an instance for them.
    fn release(&self);
}

/// Drives an instance until it is idle, on a thread that has nothing else to do.
pub fn drive(run: &impl Claimed) {
    loop {
        match run.step() {
            Step::Again => {}
            Step::Wait(until) => run.park(until),
            Step::Idle => return,
        }
    }
}

/// Drives an instance for one batch, on a thread that others need as well. Gives back a run that has to wait, for a
/// thread that can.
pub fn drive_once<T: Claimed>(run: T) -> Option<T> {
    drive_while(run, || false)
}

/// Drives an instance for one batch after the other, as long as it may go on, on a thread that others need as well.
/// Gives back a run that has to wait, for a thread that can.
pub fn drive_while<T: Claimed>(run: T, mut may_go_on: impl FnMut() -> bool) -> Option<T> {
    loop {
        match run.step() {
            Step::Again if may_go_on() => {}
            Step::Again => {
                run.release();
                return None;
            }
            Step::Wait(_) => return Some(run),
            Step::Idle => return None,
        }
    }
}
