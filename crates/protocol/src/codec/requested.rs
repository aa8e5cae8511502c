//! What both codecs refuse of the outputs that a request asks for.

use crate::request::first_repeated;
use crate::{InferError, RequestedOutput, TritonRelease};

/// Checks that no output is asked for twice. Triton 2.51 takes it and answers once.
///
/// # Errors
///
/// `InvalidArgument`, with the request's id.
pub(super) fn check_names_differ(
    outputs: &[RequestedOutput],
    request_id: &str,
    release: TritonRelease,
) -> Result<(), InferError> {
    if outputs.len() < 2 || !release.is_later() {
        return Ok(());
    }
    let Some(name) = first_repeated(outputs.iter().map(|output| output.name.as_str())) else { return Ok(()) };
    let id = if request_id.is_empty() { "<id_unknown>" } else { request_id };
    Err(InferError::invalid(format!("[request id: {id}] output '{name}' already exists in request")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(names: &[&str], id: &str, release: TritonRelease) -> Result<(), String> {
        let outputs: Vec<_> = names
            .iter()
            .map(|&name| RequestedOutput { name: name.into(), binary: None, classification: 0, in_region: false })
            .collect();
        check_names_differ(&outputs, id, release).map_err(|error| error.message)
    }

    #[test]
    fn later_releases_refuse_an_output_that_comes_again() {
        let later = TritonRelease::V2_73;
        assert_eq!(checked(&["Y", "Z"], "", later), Ok(()));
        let refused = "[request id: <id_unknown>] output 'Y' already exists in request";
        assert_eq!(checked(&["Y", "Z", "Y"], "", later), Err(refused.to_owned()));
        assert!(checked(&["Y", "Y"], "seven", later).unwrap_err().starts_with("[request id: seven]"));
        assert_eq!(checked(&["Y", "Y"], "", TritonRelease::V2_51), Ok(()));
    }
}
