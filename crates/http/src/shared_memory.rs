//! Shared memory over HTTP: the regions of clients.

use alipes_net::connection::RequestBody;
use alipes_protocol::InferError;
use alipes_protocol::codec::json::value::Value;
use alipes_service::Service;
use alipes_shared_memory::RegionStatus;
use hyper::Response;
use serde::Serialize;

use super::control::read_as;
use super::response::{self, ResponseBody};
use super::route::{Region, RegionAction};

#[derive(Serialize)]
struct RegionDocument<'a> {
    name: &'a str,
    key: &'a str,
    offset: u64,
    byte_size: u64,
}

impl<'a> From<&'a RegionStatus> for RegionDocument<'a> {
    fn from(status: &'a RegionStatus) -> Self {
        let RegionStatus { name, key, offset, byte_size } = status;
        RegionDocument { name, key, offset: *offset, byte_size: *byte_size }
    }
}

/// Registers a region in the memory that the body names.
pub async fn register(service: &Service, name: &str, body: RequestBody) -> Response<ResponseBody> {
    response::empty_or(register_named(service, name, body).await)
}

/// Answers what is asked of a region, or of all where it has no name, without a body.
pub fn region(service: &Service, region: Region<'_>) -> Response<ResponseBody> {
    let Region { cuda, name, action } = region;
    match (cuda, action) {
        (false, RegionAction::Status) => status(service, name),
        (false, RegionAction::Register) => response::not_found(),
        (false, RegionAction::Unregister) => response::empty_or(service.unregister_region(name)),
        (true, RegionAction::Status) => response::json_or(service.cuda_region_status(name).map(|()| [(); 0])),
        (true, RegionAction::Register) => response::empty_or(service.register_cuda_region(name)),
        (true, RegionAction::Unregister) => response::empty_or(service.unregister_cuda_region()),
    }
}

fn status(service: &Service, name: &str) -> Response<ResponseBody> {
    let regions = service.region_status(name);
    response::json_or(
        regions
            .as_deref()
            .map(|regions| regions.iter().map(RegionDocument::from).collect::<Vec<_>>())
            .map_err(Clone::clone),
    )
}

async fn register_named(service: &Service, name: &str, body: RequestBody) -> Result<(), InferError> {
    let ((key, offset, byte_size), _charge) = read_as(service, body, part).await?;
    service.register_region(name, &key, offset, byte_size)
}

/// Key, offset and size of a registration, in Triton's order and words.
fn part(text: &[u8]) -> Result<(String, u64, u64), InferError> {
    let [key, offset, byte_size] = Value::parse(text)?.pick(["key", "offset", "byte_size"]);
    let missing = |field: &str| InferError::invalid(format!("Shared memory register request has no '{field}' field"));
    let key = key.ok_or_else(|| missing("key"))?.as_text()?.into_owned();
    let offset = offset.map_or(Ok(0), Value::as_u64)?;
    let byte_size = byte_size.ok_or_else(|| missing("byte_size"))?.as_u64()?;
    Ok((key, offset, byte_size))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        part(text.as_bytes()).unwrap_err().message
    }

    #[test]
    fn a_registration_names_key_and_size_and_perhaps_an_offset() {
        assert_eq!(part(br#"{"key":"/k","byte_size":5}"#), Ok(("/k".to_owned(), 0, 5)));
        assert_eq!(part(br#"{"key":"/k","offset":4096,"byte_size":5}"#), Ok(("/k".to_owned(), 4096, 5)));
    }

    #[test]
    fn missing_and_mistyped_fields_are_named() {
        assert_eq!(refusal(r#"{"byte_size":5}"#), "Shared memory register request has no 'key' field");
        assert_eq!(refusal(r#"{"key":"k"}"#), "Shared memory register request has no 'byte_size' field");
        assert_eq!(refusal("[]"), "Shared memory register request has no 'key' field");
        assert_eq!(refusal(r#"{"key":5}"#), "attempt to access JSON non-string as string");
        let no_number = "attempt to access JSON non-unsigned-integer as unsigned-integer";
        assert_eq!(refusal(r#"{"key":"k","byte_size":-1}"#), no_number);
        assert_eq!(refusal(r#"{"key":"k","offset":1.5,"byte_size":1}"#), no_number);
        assert_eq!(refusal(""), "failed to parse the request JSON buffer: The document is empty. at 0");
    }
}
