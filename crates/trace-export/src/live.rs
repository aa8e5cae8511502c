//! Settings in force: they sample requests and collect their records.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::trace::{Collector, Context, Record, Trace};
use alipes_spec::trace::{Destination, Values};
use alipes_stats::trace::context;
use parking_lot::Mutex;

use crate::writer::{Finished, Job, Outbox};

/// Numbers of records, and of settings.
static LAST_RECORD: AtomicU64 = AtomicU64::new(0);
static LAST_SETTINGS: AtomicU64 = AtomicU64::new(0);

/// Settings in force, until the last request that they sampled has ended.
pub struct Live {
    number: u64,
    values: Values,
    valid: bool,
    /// Whether traces of callers are continued.
    joins: bool,
    counts: Mutex<Counts>,
    outbox: Arc<Outbox>,
}

struct Counts {
    /// Requests seen.
    seen: u64,
    /// Requests still to be sampled; -1 for any number.
    left: i32,
    /// Requests sampled under a limited count, and how many of them have ended.
    sampled: u64,
    ended: u64,
}

impl Live {
    /// Puts settings into force.
    pub fn new(values: Values, destination: &Destination, outbox: &Arc<Outbox>) -> Arc<Live> {
        Arc::new(Live {
            number: LAST_SETTINGS.fetch_add(1, Ordering::Relaxed),
            values,
            valid: values.invalid(destination).is_none(),
            joins: matches!(destination, Destination::Collector(_)),
            counts: Mutex::new(Counts { seen: 0, left: values.count, sampled: 0, ended: 0 }),
            outbox: Arc::clone(outbox),
        })
    }

    /// Whether they can sample any request.
    pub fn may_sample(&self) -> bool {
        self.valid
    }

    /// The settings, with what is left of the count.
    pub fn values_now(&self) -> Values {
        Values { count: self.counts.lock().left, ..self.values }
    }

    /// The record of the next request, if it is sampled: by the rate, or because its caller traces it.
    pub fn sample(self: &Arc<Self>, context: Option<Context>) -> Option<Arc<Trace>> {
        if !self.valid {
            return None;
        }
        let joined = context.filter(|_| self.joins);
        if !self.is_due() && joined.is_none() {
            return None;
        }
        let context = self.joins.then(|| joined.unwrap_or_else(context::new));
        let collector = Arc::clone(self) as Arc<dyn Collector>;
        Some(Trace::begin(collector, self.values.level, context))
    }

    fn is_due(&self) -> bool {
        if self.values.rate == 0 {
            return false;
        }
        let mut counts = self.counts.lock();
        if counts.left == 0 {
            return false;
        }
        counts.seen += 1;
        let due = counts.seen.is_multiple_of(self.values.rate.into());
        if due && counts.left > 0 {
            counts.left -= 1;
            counts.sampled += 1;
        }
        due
    }
}

impl Collector for Live {
    fn numbers(&self) -> (u64, u64) {
        let span = if self.joins { context::new_span() } else { 0 };
        (LAST_RECORD.fetch_add(1, Ordering::Relaxed) + 1, span)
    }

    fn collect(&self, context: Option<Context>, records: Vec<Record>) {
        let mut counts = self.counts.lock();
        counts.ended += 1;
        // The last trace of a limited count closes the file.
        let last = counts.left == 0 && counts.ended == counts.sampled;
        drop(counts);
        let (settings, log_frequency) = (self.number, self.values.log_frequency);
        self.outbox.post(Job::Finished(Finished { settings, log_frequency, last, context, records }));
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // Most settings never sampled a request; then no writer runs, and this starts none.
        self.outbox.post_if_open(Job::Retired { settings: self.number });
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::trace::Level;

    use super::*;

    fn live(values: Values, destination: &Destination) -> Arc<Live> {
        let outbox = Arc::new(Outbox::new(destination.clone(), Arc::default()));
        Live::new(Values { level: Level { timestamps: true, tensors: false }, ..values }, destination, &outbox)
    }

    fn file() -> Destination {
        Destination::File { path: "/nowhere/trace.json".into() }
    }

    #[test]
    fn one_request_in_rate_is_sampled_until_the_count_is_used_up() {
        let live = live(Values { rate: 3, count: 2, ..Values::default() }, &file());
        let due: Vec<bool> = (0..12).map(|_| live.is_due()).collect();
        let turns: Vec<usize> = (0..12).filter(|&turn| due[turn]).collect();
        assert_eq!((turns, live.values_now().count), (vec![2, 5], 0));
    }

    #[test]
    fn a_callers_trace_is_joined_whatever_the_rate_where_spans_are_sent() {
        let context = Context { trace_id: 9, parent_span: Some(4), state: String::new() };
        let rate = Values { rate: 0, ..Values::default() };
        let config = r#"{"mode":"opentelemetry","url":"http://127.0.0.1:1","resource":[],"max_queue_size":1,
            "schedule_delay_ms":1,"max_export_batch_size":1}"#;
        let sends = live(rate, &serde_json::from_str(config).unwrap());
        assert!(sends.sample(None).is_none());
        assert_eq!(sends.sample(Some(context.clone())).unwrap().context().unwrap().trace_id, 9);
        let every = Values { rate: 1000, ..Values::default() };
        assert!(live(every, &file()).sample(Some(context)).is_none());
    }
}
