//! Bodies of the V1 protocol's `:predict`: plain values in, which the model's declaration makes tensors, plain values
//! out. Sources: the REST interface of TensorFlow Serving, KServe's V1 protocol.

#![forbid(unsafe_code)]

mod answer;
mod body;
mod cloud_event;
mod half;
mod nesting;
mod parts;
mod request;
mod values;

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod properties;

pub use answer::{encode_predictions, prediction_bytes};
pub use body::{InstanceAxis, PredictForm, PredictInput, PredictModel, PredictRequest};
pub use cloud_event::{ANSWER_SOURCE, ANSWER_TYPE, CloudEvent, CloudEventAnswer, CloudEventMode, time_text};
pub use parts::split;
pub use request::{decode_event, decode_predict};
