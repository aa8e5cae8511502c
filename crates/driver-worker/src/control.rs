//! What a model may ask of the server besides inference: other models to be loaded, and metrics to be kept.
//!
//! Questions and answers are JSON; the module `alipes.worker.triton` asks them.

use std::collections::BTreeMap;

use alipes_protocol::limits::READ_AT_ONCE_BYTES;
use alipes_protocol::{Code, InferError, Parameter};
use alipes_request::budget::Charge;
use alipes_runtime::context::Context;
use alipes_stats::custom::{Change, Kind, Owner};
use serde::Deserialize;
use serde_json::json;
use tokio::task;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Load {
    model: String,
    config: String,
    files: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Unload {
    model: String,
    unload_dependents: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ready {
    model: String,
    version: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    description: String,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Create {
    family: u64,
    labels: BTreeMap<String, String>,
    buckets: Option<Vec<f64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenControl {
    metric: u64,
    value: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    metric: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    family: u64,
}

/// Answers a control call with the text of a JSON document.
///
/// # Errors
///
/// The operation is unknown, its arguments do not fit, or it was refused.
pub async fn answer(context: &Context, owner: Owner, name: &str, text: String) -> Result<String, InferError> {
    let nothing = json!({});
    let answer = match name {
        "model.load" => load(context, text).await.map(|()| nothing),
        "model.unload" => {
            let Unload { model, unload_dependents } = question(&text)?;
            context.unload_model(&model, unload_dependents).await.map(|()| nothing)
        }
        "model.ready" => {
            let Ready { model, version } = question(&text)?;
            let version = if version > 0 { version.to_string() } else { String::new() };
            let ready = match context.model_ready(&model, &version).await {
                // To a model, one that is unknown is one that is not ready.
                Err(error) if matches!(error.code, Code::NotFound | Code::Unavailable) => Ok(false),
                outcome => outcome,
            };
            ready.map(|ready| json!({"ready": ready}))
        }
        _ => metric(context, owner, name, &text),
    };
    answer.map(|answer| answer.to_string())
}

/// Loads a model, with the parameters that a request over HTTP would bring.
async fn load(context: &Context, text: String) -> Result<(), InferError> {
    let mut charge = Charge::default();
    charge.grow(&context.budget, text.len())?;
    let Load { model, config, files } = read_load(text).await?;
    if let Some(other) = files.keys().find(|key| !key.starts_with("file:")) {
        return Err(InferError::invalid(format!("unrecognized load parameter '{other}'.")));
    }
    let config = (!config.is_empty()).then(|| ("config".to_owned(), config));
    let parameters = config.into_iter().chain(files).map(|(key, value)| (key, Parameter::String(value)));
    context.load_model(&model, parameters.collect(), charge).await
}

/// What a model asks to be loaded, read beside this thread where that takes long.
async fn read_load(text: String) -> Result<Load, InferError> {
    if text.len() <= READ_AT_ONCE_BYTES {
        return question(&text);
    }
    let reading = task::spawn_blocking(move || question(&text)).await;
    reading.unwrap_or_else(|_| Err(InferError::internal("the question could not be read")))
}

fn metric(context: &Context, owner: Owner, name: &str, text: &str) -> Result<serde_json::Value, InferError> {
    let metrics = &context.metrics;
    let change = |change: fn(f64) -> Change| {
        let WrittenControl { metric, value } = question(text)?;
        metrics.change(metric, change(value)).map(|()| json!({}))
    };
    match name {
        "metric.family" => {
            let Family { name, description, kind } = question(text)?;
            let number = metrics.family(owner, &name, &description, Kind::from_name(&kind)?)?;
            Ok(json!({"family": number}))
        }
        "metric.create" => {
            let Create { family, labels, buckets } = question(text)?;
            Ok(json!({"metric": metrics.series(owner, family, &labels, buckets)?}))
        }
        "metric.increment" => change(Change::Increment),
        "metric.set" => change(Change::Set),
        "metric.observe" => change(Change::Observe),
        "metric.value" => Ok(json!({"value": metrics.value(question::<Metric>(text)?.metric)?})),
        "metric.delete" => {
            metrics.release(question::<Metric>(text)?.metric);
            Ok(json!({}))
        }
        "metric.forget" => {
            metrics.release(question::<Forget>(text)?.family);
            Ok(json!({}))
        }
        other => Err(InferError::invalid(format!("unknown operation '{other}'"))),
    }
}

fn question<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, InferError> {
    serde_json::from_str(text).map_err(|error| InferError::invalid(format!("the question does not fit: {error}")))
}
