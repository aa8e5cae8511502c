//! What stands behind Triton's refusal of a name: the names that there are. The recorded release answers without it.

use alipes_protocol::{Code, InferError, Origin, TritonRelease};
use alipes_spec::{ModelSpec, Port};

/// How the refusals of names begin.
pub(super) const UNEXPECTED_INPUT: &str = "unexpected inference input '";
pub(super) const UNEXPECTED_OUTPUT: &str = "unexpected inference output '";

/// Most names that are told.
const NAMED: usize = 16;

/// The refusal of a request, with the model's own names behind it where it is about one that the model does not have.
#[must_use]
pub fn explain_refusal(model: &ModelSpec, release: TritonRelease, error: InferError) -> InferError {
    let ours = (error.code, error.origin) == (Code::InvalidArgument, Origin::Request);
    let (does, ports) = match error.message.as_str() {
        text if text.starts_with(UNEXPECTED_INPUT) => ("takes", &model.inputs),
        text if text.starts_with(UNEXPECTED_OUTPUT) => ("gives", &model.outputs),
        _ => return error,
    };
    if !(ours && release.is_later()) {
        return error;
    }
    InferError { message: format!("{}; it {does} {}", error.message, names(ports)), ..error }
}

fn names(ports: &[Port]) -> String {
    let shown: Vec<String> = ports.iter().take(NAMED).map(|port| format!("'{}'", port.name)).collect();
    let more = ports.len().saturating_sub(NAMED);
    let end = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &end
}
