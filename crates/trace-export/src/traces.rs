//! The trace settings in force: the general ones, and those of each model.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use alipes_protocol::InferError;
use alipes_protocol::trace::{Context, Trace};
use alipes_spec::trace::{Change, Chosen, Destination, TraceConfig, Values};
use alipes_stats::events::EventQueue;
use parking_lot::Mutex;

use crate::live::Live;
use crate::writer::{Job, Outbox};

/// Decides which requests are traced.
pub struct Traces {
    // Whether any request may be traced: the only check of a request while tracing is off.
    on: AtomicBool,
    destination: Destination,
    outbox: Arc<Outbox>,
    settings: Mutex<Settings>,
}

/// The settings in force. Replaced settings live on with the requests that they sampled.
struct Settings {
    start: Values,
    global: Set,
    models: HashMap<String, Set>,
}

/// Settings of one model, or the general ones: values of their own, and the result with the general values.
#[derive(Clone)]
struct Set {
    chosen: Chosen,
    live: Arc<Live>,
}

impl Traces {
    /// The settings of the configuration.
    pub fn new(config: &TraceConfig, events: &Arc<EventQueue>) -> Traces {
        let outbox = Arc::new(Outbox::new(config.destination.clone(), Arc::clone(events)));
        let live = Live::new(config.values, &config.destination, &outbox);
        let on = AtomicBool::new(live.may_sample());
        let global = Set { chosen: Chosen::default(), live };
        let settings = Mutex::new(Settings { start: config.values, global, models: HashMap::new() });
        Traces { on, destination: config.destination.clone(), outbox, settings }
    }

    /// Whether any request may be traced.
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// The record of a request for a model, if it is sampled. Call it once per request, while tracing is on.
    pub fn draw(&self, model: &str, context: Option<Context>) -> Option<Arc<Trace>> {
        let settings = self.settings.lock();
        let live = Arc::clone(&settings.models.get(model).unwrap_or(&settings.global).live);
        drop(settings);
        live.sample(context)
    }

    /// The settings in force for a model; the general ones where the name is empty.
    pub fn settings(&self, model: &str) -> Values {
        let settings = self.settings.lock();
        settings.models.get(model).unwrap_or(&settings.global).live.values_now()
    }

    /// Where records go.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Changes the settings of a model, or the general ones where the name is empty. A model follows the general
    /// settings in every value without one of its own.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` where tracing would be on with invalid settings; nothing has changed then.
    pub fn change(&self, model: &str, change: &Change) -> Result<Values, InferError> {
        let mut settings = self.settings.lock();
        if model.is_empty() {
            let chosen = settings.global.chosen.with(change, &settings.global.live.values_now());
            let global = self.set(chosen, &settings.start)?;
            let values = global.live.values_now();
            let followers = settings.models.iter().map(|(name, set)| {
                let chosen = set.chosen.with(&Change::default(), &set.live.values_now());
                Ok((name.clone(), self.set(chosen, &values)?))
            });
            let followers = followers.collect::<Result<_, InferError>>()?;
            (settings.global, settings.models) = (global, followers);
        } else {
            let general = settings.global.live.values_now();
            let before = settings.models.get(model).map(|set| (set.chosen, set.live.values_now()));
            let (chosen, values) = before.unwrap_or((Chosen::default(), general));
            let chosen = chosen.with(change, &values);
            if chosen == Chosen::default() {
                settings.models.remove(model);
            } else {
                let set = self.set(chosen, &general)?;
                settings.models.insert(model.to_owned(), set);
            }
        }
        let on = settings.global.live.may_sample() || settings.models.values().any(|set| set.live.may_sample());
        self.on.store(on, Ordering::Relaxed);
        Ok(settings.models.get(model).unwrap_or(&settings.global).live.values_now())
    }

    fn set(&self, chosen: Chosen, above: &Values) -> Result<Set, InferError> {
        let values = chosen.over(above);
        if let Some(reason) = values.invalid(&self.destination).filter(|_| !values.level.is_off()) {
            return Err(InferError::invalid(format!("Attempting to set invalid trace setting :{reason}")));
        }
        Ok(Set { chosen, live: Live::new(values, &self.destination, &self.outbox) })
    }

    /// Goes on in a new file, where the file of the traces was moved away.
    pub fn reopen(&self) {
        self.outbox.post_if_open(Job::Reopen);
    }

    /// Turns tracing off and writes the remaining records, until the deadline.
    pub fn close(&self, deadline: Instant) {
        self.on.store(false, Ordering::Relaxed);
        self.outbox.close(deadline);
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::trace::Level;

    use super::*;

    const MOMENTS: Level = Level { timestamps: true, tensors: false };

    fn traces(file: &str) -> Traces {
        let destination = Destination::File { path: file.into() };
        Traces::new(&TraceConfig { destination, ..TraceConfig::default() }, &Arc::default())
    }

    fn change(level: Level) -> Change {
        Change { level: Some(Some(level)), ..Change::default() }
    }

    #[test]
    fn nothing_is_drawn_and_no_thread_started_while_tracing_is_off() {
        let traces = traces("unused.json");
        assert!(!traces.is_on());
        assert!(traces.draw("m", None).is_none());
        traces.close(alipes_clock::now());
    }

    #[test]
    fn a_model_follows_the_general_settings_in_what_was_not_chosen_for_it() {
        let traces = traces("unused.json");
        let rate = Change { rate: Some(Some(2)), ..Change::default() };
        assert_eq!(traces.change("m", &rate).unwrap().rate, 2);
        assert_eq!((traces.settings("").rate, traces.is_on()), (1000, false));
        traces.change("", &change(MOMENTS)).unwrap();
        let both = traces.settings("m");
        assert_eq!((both.level, both.rate, traces.settings("other").rate), (MOMENTS, 2, 1000));
        assert!(traces.is_on());
        let back = Change { rate: Some(None), ..Change::default() };
        assert_eq!(traces.change("m", &back).unwrap().rate, 1000);
        assert!(traces.settings.lock().models.is_empty());
        traces.change("", &change(Level::default())).unwrap();
        assert!(!traces.is_on());
    }

    #[test]
    fn one_model_alone_can_be_traced() {
        let traces = traces("unused.json");
        traces.change("m", &Change { rate: Some(Some(1)), ..change(MOMENTS) }).unwrap();
        assert!(traces.draw("other", None).is_none());
        assert!(traces.is_on());
    }

    #[test]
    fn what_could_not_work_is_refused_and_changes_nothing() {
        let traces = traces("");
        let refused = traces.change("", &change(MOMENTS)).unwrap_err();
        assert_eq!(refused.message, "Attempting to set invalid trace setting :trace file name is not given");
        let rate = Change { rate: Some(Some(0)), ..Change::default() };
        assert_eq!(traces.change("", &rate).unwrap().rate, 0);
        assert!(traces.settings("").level.is_off());
    }
}
