//! Faults of worker processes: their texts, and the back-off before the next start.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use alipes_protocol::{Code, InferError};

/// Pause before the second start in a row; each further one waits twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause: a model that comes back, for instance because a mount does, serves within half a minute.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Longest pause of a worker that answers between its faults: it is worth more alive than the starts cost.
const LONGEST_PAUSE_IF_USEFUL: Duration = Duration::from_secs(1);

/// A worker that lived this long is healthy, and its next fault is the first again.
pub const HEALTHY_AFTER: Duration = Duration::from_secs(10);

/// Why a worker process is no more, or is about to be ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It ended by itself or was killed.
    Ended(ExitStatus),
    /// Its script let go of it.
    Detached,
    /// Its script is gone; nobody can start it again.
    Orphaned,
    /// One execution took longer than allowed.
    Stalled(Duration),
    /// It executed nothing and took no request for this long, while some waited.
    Silent(Duration),
    /// It kept more memory than allowed: bytes found, bytes allowed.
    Memory(u64, u64),
    /// What it wrote into the link makes no sense.
    Violation(String),
    /// It could not be started.
    Start(String),
    /// A sample of its model failed.
    Warmup(String),
    /// The load of its model was cancelled.
    Cancelled,
}

impl Fault {
    /// What happened, as the end of a sentence that begins with the instance's name.
    pub fn text(&self) -> String {
        match self {
            Fault::Ended(status) => ended(*status),
            Fault::Detached => "was let go of by the script that it is attached to".to_owned(),
            Fault::Orphaned => "is gone with the script that it was attached to".to_owned(),
            Fault::Stalled(limit) => {
                format!("was ended because one execution took longer than {} s", limit.as_secs_f64())
            }
            Fault::Silent(time) => {
                format!("was ended because it took no request for {} s while it executed none", time.as_secs_f64())
            }
            Fault::Memory(found, allowed) => {
                format!("was ended because it used {found} bytes of memory, more than the {allowed} that are allowed")
            }
            Fault::Violation(what) => format!("was ended because its link is damaged: {what}"),
            Fault::Start(text) | Fault::Warmup(text) => format!("could not be started: {text}"),
            Fault::Cancelled => "was ended because the load of its model was cancelled".to_owned(),
        }
    }

    /// The error of the requests that the worker was executing.
    pub fn error(&self, instance: &str, is_attached: bool) -> InferError {
        let (worker, text) = (worker_word(is_attached), self.text());
        // A script that has ended attaches nothing; its end and that of its thread are seen alike.
        let next = if is_attached { "attached again if its script still runs" } else { "started again" };
        let text = format!("{worker} '{instance}' {text} while it was executing this request; it is {next}");
        InferError::new(Code::Unavailable, text)
    }
}

/// What stands before the name of an instance.
pub fn worker_word(is_attached: bool) -> &'static str {
    if is_attached { "attached worker" } else { "worker process of" }
}

fn ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was ended by signal {signal}{}", signal_name(signal)),
        (None, Some(code)) => format!("left with exit code {code}"),
        (None, None) => "ended".to_owned(),
    }
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGABRT => " (SIGABRT: aborted)",
        libc::SIGBUS => " (SIGBUS: bus error)",
        libc::SIGFPE => " (SIGFPE: arithmetic error)",
        libc::SIGILL => " (SIGILL: illegal instruction)",
        libc::SIGKILL => " (SIGKILL: killed, perhaps for want of memory)",
        libc::SIGSEGV => " (SIGSEGV: segmentation fault)",
        libc::SIGTERM => " (SIGTERM: terminated)",
        _ => "",
    }
}

/// What a process had done when it came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lived {
    /// It was never ready.
    Never,
    /// It was ready, and answered nothing.
    InVain,
    /// It answered.
    Usefully,
    /// It lived for longer than [`HEALTHY_AFTER`].
    Long,
}

/// The back-off between the starts of a worker, by how often it has failed in a row.
#[derive(Debug, Default)]
pub struct Backoff {
    failed_starts: u32,
    faults: u32,
}

impl Backoff {
    /// Pause before the next start, after one more fault: none after the first.
    pub fn pause(&mut self, lived: Lived) -> Duration {
        if lived == Lived::Never {
            self.failed_starts += 1;
            return doubled(self.failed_starts).min(LONGEST_PAUSE);
        }
        self.failed_starts = 0;
        self.faults = if lived == Lived::Long { 1 } else { self.faults + 1 };
        doubled(self.faults).min(if lived == Lived::Usefully { LONGEST_PAUSE_IF_USEFUL } else { LONGEST_PAUSE })
    }
}

fn doubled(times_in_a_row: u32) -> Duration {
    match times_in_a_row {
        0 | 1 => Duration::ZERO,
        many => FIRST_PAUSE.saturating_mul(1 << (many - 2).min(16)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_costs_no_pause_and_later_ones_twice_as_much_each() {
        for lived in [Lived::Never, Lived::InVain] {
            let mut backoff = Backoff::default();
            let pauses: Vec<u128> = (0..5).map(|_| backoff.pause(lived).as_millis()).collect();
            assert_eq!(pauses, [0, 100, 200, 400, 800]);
            (0..1000).for_each(|_| {
                backoff.pause(lived);
            });
            assert_eq!(backoff.pause(lived), LONGEST_PAUSE);
        }
    }

    #[test]
    fn who_answers_in_between_never_waits_long() {
        let mut backoff = Backoff::default();
        (0..1000).for_each(|_| {
            backoff.pause(Lived::Usefully);
        });
        assert_eq!(backoff.pause(Lived::Usefully), LONGEST_PAUSE_IF_USEFUL);
        assert_eq!(backoff.pause(Lived::Never), Duration::ZERO);
        assert_eq!(backoff.pause(Lived::InVain), LONGEST_PAUSE);
        assert_eq!(backoff.pause(Lived::Long), Duration::ZERO);
        assert_eq!(backoff.pause(Lived::Usefully), FIRST_PAUSE);
    }

    #[test]
    fn the_text_names_signal_and_exit_code() {
        assert_eq!(
            Fault::Ended(ExitStatus::from_raw(libc::SIGSEGV)).text(),
            "was ended by signal 11 (SIGSEGV: segmentation fault)"
        );
        assert_eq!(Fault::Ended(ExitStatus::from_raw(3 << 8)).text(), "left with exit code 3");
    }
}
