//! `TraceSetting`, and the records of calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use alipes_protocol::codec::proto::inference::trace_setting_response::SettingValue;
use alipes_protocol::codec::proto::inference::{TraceSettingRequest, TraceSettingResponse};
use alipes_protocol::trace::{Context, Moment, Trace};
use alipes_protocol::{Code, InferError};
use alipes_service::{Service, TRACE_FILE_IS_FIXED};
use alipes_spec::trace::{self, Change, Destination, Values};
use alipes_stats::clock::now_ns;
use alipes_stats::trace::context;
use bytes::Bytes;
use http::HeaderMap;

use super::message::parse;
use super::response::ResponseBody;

/// What is known of a call before its message, where requests are traced.
pub(super) struct Entry {
    context: Option<Context>,
    waiting_since_ns: u64,
}

impl Entry {
    /// None where no request is traced: one look at a flag.
    pub(super) fn new(service: &Service, headers: &HeaderMap) -> Option<Box<Entry>> {
        let made = || Box::new(Entry { context: context::of(headers), waiting_since_ns: now_ns() });
        service.traces.is_on().then(made)
    }

    /// The trace of the request whose message has arrived, where it is sampled. The wait for the next message begins
    /// now.
    pub(super) fn draw(&mut self, service: &Service, model: &str) -> Option<Arc<Trace>> {
        let now = now_ns();
        let since = std::mem::replace(&mut self.waiting_since_ns, now);
        let trace = service.traces.draw(model, self.context.clone())?;
        trace.note(Moment::GrpcWaitreadStart, since);
        trace.note(Moment::GrpcWaitreadEnd, now);
        Some(trace)
    }
}

pub(super) fn trace_setting(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let TraceSettingRequest { settings, model_name } = parse(message)?;
    service.check_traced_model(&model_name)?;
    let values = if settings.is_empty() {
        service.trace_settings(&model_name)?
    } else {
        let setting = |name: &str| settings.get(name).map(|value| &value.value[..]);
        service.change_tracing(&model_name, &change(setting)?)?
    };
    Ok(ResponseBody::message(&TraceSettingResponse { settings: found(service.traces.destination(), &values) }))
}

/// What a request asks for: no value at all has a setting follow the general ones.
fn change<'a>(setting: impl Fn(&str) -> Option<&'a [String]>) -> Result<Change, InferError> {
    if setting("trace_file").is_some() {
        return Err(InferError::new(Code::Unsupported, TRACE_FILE_IS_FIXED));
    }
    Ok(Change {
        level: match setting("trace_level") {
            None => None,
            Some([]) => Some(None),
            Some(names) => {
                let level = trace::level_of(names.iter().map(String::as_str));
                level.map_err(InferError::invalid)?.map(Some)
            }
        },
        rate: number("trace_rate", &setting, |text| trace::unsigned("trace_rate", text))?,
        count: number("trace_count", &setting, |text| trace::count("trace_count", text, " "))?,
        log_frequency: number("log_frequency", &setting, |text| trace::unsigned("log_frequency", text))?,
    })
}

fn number<'a, T>(
    name: &str,
    setting: &impl Fn(&str) -> Option<&'a [String]>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<Option<T>>, InferError> {
    match setting(name) {
        None => Ok(None),
        Some([]) => Ok(Some(None)),
        Some([text]) => read(text).map(|number| Some(Some(number))).map_err(InferError::invalid),
        Some(_) => Err(InferError::invalid(format!("expect only 1 value for '{name}'"))),
    }
}

fn found(destination: &Destination, values: &Values) -> BTreeMap<String, SettingValue> {
    let mut found = BTreeMap::new();
    let mut add = |name: &str, value: String| {
        found.entry(name.to_owned()).or_insert_with(SettingValue::default).value.push(value);
    };
    values.level_names().into_iter().for_each(|name| add("trace_level", name.to_owned()));
    add("trace_rate", values.rate.to_string());
    add("trace_count", values.count.to_string());
    match destination {
        Destination::File { path } => {
            add("log_frequency", values.log_frequency.to_string());
            add("trace_file", path.clone());
        }
        Destination::Collector(config) => config.options().into_iter().for_each(|(name, value)| add(&name, value)),
    }
    add("trace_mode", destination.mode().to_owned());
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(name: &str, values: &[&str]) -> Result<Change, String> {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        change(|other| (other == name).then_some(&values[..])).map_err(|error| error.message)
    }

    #[test]
    fn a_change_distinguishes_set_from_cleared() {
        assert_eq!(parsed("trace_rate", &["5"]), Ok(Change { rate: Some(Some(5)), ..Change::default() }));
        assert_eq!(parsed("trace_level", &[]), Ok(Change { level: Some(None), ..Change::default() }));
        assert_eq!(parsed("trace_color", &["red"]), Ok(Change::default()));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let error = |text: &str| Err(text.to_owned());
        assert_eq!(parsed("trace_rate", &["5", "6"]), error("expect only 1 value for 'trace_rate'"));
        assert_eq!(parsed("trace_rate", &["often"]), error("Unable to parse 'trace_rate', got: often"));
        let small = "Unable to parse 'trace_count'. Expecting value >= -1, got: -2";
        assert_eq!(parsed("trace_count", &["-2"]), error(small));
        assert_eq!(parsed("trace_level", &["OFF", "TENSORS"]), error("Expect only one trace level 'OFF' is specified"));
        assert_eq!(parsed("trace_file", &[]), error(TRACE_FILE_IS_FIXED));
    }
}
