//! Trace settings over HTTP.

use alipes_net::connection::RequestBody;
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::{Code, InferError};
use alipes_service::{Service, TRACE_FILE_IS_FIXED};
use alipes_spec::trace::{self, Change, Destination, Values};
use hyper::Response;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::control::read_as;
use super::response::{self, ResponseBody};

/// The settings of a model, or of all where the name is empty.
pub fn settings(service: &Service, model: &str) -> Response<ResponseBody> {
    response::json_or(service.trace_settings(model).map(|values| document(service.traces.destination(), &values)))
}

/// Changes settings and answers all of them.
pub async fn change(service: &Service, model: &str, body: RequestBody) -> Response<ResponseBody> {
    let outcome = async {
        service.check_traced_model(model)?;
        let (change, _charge) = read_as(service, body, change_of).await?;
        service.change_tracing(model, &change)
    };
    response::json_or(outcome.await.map(|values| document(service.traces.destination(), &values)))
}

/// The settings in Triton's order; numbers are texts, as there.
struct SettingsDocument(Vec<(String, serde_json::Value)>);

impl Serialize for SettingsDocument {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

fn document(destination: &Destination, values: &Values) -> SettingsDocument {
    let setting = |name: &str, value| (name.to_owned(), value);
    let mut found = vec![
        setting("trace_level", json!(values.level_names())),
        setting("trace_rate", json!(values.rate.to_string())),
        setting("trace_count", json!(values.count.to_string())),
    ];
    if let Destination::File { path } = destination {
        found.push(setting("log_frequency", json!(values.log_frequency.to_string())));
        found.push(setting("trace_file", json!(path)));
    }
    found.push(setting("trace_mode", json!(destination.mode())));
    if let Destination::Collector(config) = destination {
        found.extend(config.options().into_iter().map(|(name, value)| (name, json!(value))));
    }
    SettingsDocument(found)
}

/// What a body asks for: `null` has a setting follow the general ones; one that is unknown asks for nothing, as in
/// Triton.
fn change_of(text: &[u8]) -> Result<Change, InferError> {
    const NAMES: [&str; 5] = ["trace_file", "trace_level", "trace_rate", "trace_count", "log_frequency"];
    let [file, level, rate, count, frequency] = Value::parse(text)?.pick(NAMES);
    if file.is_some() {
        return Err(InferError::new(Code::Unsupported, TRACE_FILE_IS_FIXED));
    }
    let unsigned = |name: &'static str, value: Option<Value<'_>>| number(value, |text| trace::unsigned(name, text));
    Ok(Change {
        level: match level {
            None => None,
            Some(value) if value.is_null() => Some(None),
            Some(value) => level_of(value)?.map(Some),
        },
        rate: unsigned("trace_rate", rate)?,
        count: number(count, |text| trace::count("trace_count", text, ""))?,
        log_frequency: unsigned("log_frequency", frequency)?,
    })
}

fn level_of(value: Value<'_>) -> Result<Option<alipes_protocol::trace::Level>, InferError> {
    let names: Vec<String> =
        value.elements()?.map(|name| Ok(name.as_text()?.into_owned())).collect::<Result<_, InferError>>()?;
    trace::level_of(names.iter().map(String::as_str)).map_err(InferError::invalid)
}

fn number<T>(
    value: Option<Value<'_>>,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<Option<T>>, InferError> {
    match value {
        None => Ok(None),
        Some(value) if value.is_null() => Ok(Some(None)),
        Some(value) => read(&value.as_text()?).map(|number| Some(Some(number))).map_err(InferError::invalid),
    }
}

#[cfg(test)]
mod tests {
    use alipes_protocol::trace::Level;

    use super::*;

    #[test]
    fn a_change_distinguishes_set_from_cleared() {
        let text = br#"{"trace_level": ["TENSORS"], "trace_rate": null, "trace_count": "7", "x": 1}"#;
        let level = Level { timestamps: false, tensors: true };
        let expected = Change { level: Some(Some(level)), rate: Some(None), count: Some(Some(7)), log_frequency: None };
        assert_eq!(change_of(text), Ok(expected));
        assert_eq!(change_of(br#"{"trace_level": ["ALL"]}"#), Ok(Change::default()));
        assert_eq!(change_of(br#"{"trace_level": []}"#), Ok(Change::default()));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for (text, message) in [
            (r#"{"trace_level": "OFF"}"#, "attempt to access JSON non-array as array"),
            (r#"{"trace_level": [1]}"#, "attempt to access JSON non-string as string"),
            (r#"{"trace_level": ["OFF", "TENSORS"]}"#, "Expect only one trace level 'OFF' is specified"),
            (r#"{"log_frequency": 3}"#, "attempt to access JSON non-string as string"),
            (r#"{"trace_count": "-2"}"#, "Unable to parse 'trace_count'. Expecting value >= -1, got:-2"),
            (r#"{"trace_file": null}"#, TRACE_FILE_IS_FIXED),
        ] {
            assert_eq!(change_of(text.as_bytes()).unwrap_err().message, message);
        }
    }
}
