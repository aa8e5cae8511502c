//! Sleeps until each of many moments at even spans, and notes how late it wakes: `RATE MILLISECONDS`. Prints the moments
//! in a second, and by how many microseconds the median and the 99th percentile were late, as one line of JSON.
//!
//! It does nothing else, with a timer that may not be put off: what has to send a request at such moments cannot expect
//! to be more punctual. A moment that is over already is not slept for.

use std::{env, num::NonZeroU64, process};

use rustix::{
    thread::{clock_nanosleep_absolute, set_current_timer_slack},
    time::{ClockId, Timespec, clock_gettime},
};

type Failure = Box<dyn std::error::Error>;

const SECOND_NS: u64 = 1_000_000_000;

fn main() {
    if let Err(failure) = run() {
        eprintln!("{failure}");
        process::exit(1);
    }
}

fn run() -> Result<(), Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [rate, milliseconds] = arguments.as_slice() else {
        return Err("usage: timer-floor RATE MILLISECONDS".into());
    };
    let (rate, milliseconds): (f64, f64) = (rate.parse()?, milliseconds.parse()?);
    // Written so that it is no for what is no number as well.
    let is_possible = rate > 0.0 && rate <= 1e7 && milliseconds > 0.0 && milliseconds <= 1e6;
    if !is_possible {
        return Err(format!("{rate} moments a second for {milliseconds} ms: expected at most 1e7 and 1e6").into());
    }
    // By default the system puts timers off by 50 microseconds, to wake less often.
    set_current_timer_slack(NonZeroU64::new(1))?;
    let mut late = lateness(rate, milliseconds)?;
    late.sort_unstable();
    let us = |percent: usize| late[(late.len() - 1) * percent / 100] as f64 / 1e3;
    let seconds = milliseconds / 1e3;
    println!(
        r#"{{"rate": {:.1}, "late_p50_us": {:.1}, "late_p99_us": {:.1}}}"#,
        late.len() as f64 / seconds,
        us(50),
        us(99)
    );
    Ok(())
}

/// How late each moment was, in nanoseconds; there is one at least.
fn lateness(rate: f64, milliseconds: f64) -> Result<Vec<u64>, Failure> {
    let count = (rate * milliseconds / 1e3).ceil();
    let mut late = Vec::with_capacity(count as usize);
    let origin = now_ns();
    for number in 1..=count as u64 {
        let due = origin + (number as f64 / rate * SECOND_NS as f64) as u64;
        if now_ns() < due {
            clock_nanosleep_absolute(ClockId::Monotonic, &moment(due))?;
        }
        late.push(now_ns().saturating_sub(due));
    }
    Ok(late)
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
}

fn moment(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}
