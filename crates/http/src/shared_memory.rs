//! Shared memory over HTTP: the regions of clients.

use alipes_net::connection::RequestBody;
use alipes_protocol::InferError;
use alipes_protocol::codec::json::value::Value;
use alipes_service::Service;
use alipes_shared_memory::{HANDLE_BYTES, Location, RegionStatus};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use hyper::Response;
use serde::Serialize;

use super::control::read_as;
use super::hints;
use super::response::{self, ResponseBody};
use super::route::{Region, RegionAction};

/// A region in a status answer.
#[derive(Serialize)]
#[serde(untagged)]
enum RegionDocument<'a> {
    System { name: &'a str, key: &'a str, offset: u64, byte_size: u64 },
    Cuda { name: &'a str, device_id: u64, byte_size: u64 },
}

impl<'a> From<&'a RegionStatus> for RegionDocument<'a> {
    fn from(status: &'a RegionStatus) -> Self {
        let RegionStatus { name, location, byte_size } = status;
        let byte_size = *byte_size;
        match location {
            Location::Object { key, offset } => RegionDocument::System { name, key, offset: *offset, byte_size },
            Location::Device { id } => RegionDocument::Cuda { name, device_id: *id, byte_size },
        }
    }
}

/// Registers a region in the memory that the body names.
pub async fn register(service: &Service, name: &str, body: RequestBody) -> Response<ResponseBody> {
    response::empty_or(register_named(service, name, body).await)
}

/// Registers a region on the GPU that the body names.
pub async fn register_cuda(service: &Service, name: &str, body: RequestBody) -> Response<ResponseBody> {
    response::empty_or(register_handle(service, name, body).await)
}

/// Answers what is asked of a region, or of all where it has no name, without a body.
pub async fn region(service: &Service, region: Region<'_>) -> Response<ResponseBody> {
    let Region { cuda, name, action } = region;
    match (cuda, action) {
        (false, RegionAction::Status) => documents(service.region_status(&name)),
        (true, RegionAction::Status) => documents(service.cuda_region_status(&name)),
        (_, RegionAction::Register) => response::not_found(&hints::of_region(service)),
        (false, RegionAction::Unregister) => response::empty_or(service.unregister_region(&name)),
        (true, RegionAction::Unregister) => response::empty_or(service.unregister_cuda_region(&name).await),
    }
}

fn documents(regions: Result<Vec<RegionStatus>, InferError>) -> Response<ResponseBody> {
    match regions {
        Ok(regions) => response::json(&regions.iter().map(RegionDocument::from).collect::<Vec<_>>()),
        Err(error) => response::error(&error),
    }
}

async fn register_named(service: &Service, name: &str, body: RequestBody) -> Result<(), InferError> {
    let ((key, offset, byte_size), _charge) = read_as(service, body, part).await?;
    service.register_region(name, &key, offset, byte_size)
}

async fn register_handle(service: &Service, name: &str, body: RequestBody) -> Result<(), InferError> {
    let ((handle, byte_size, device_id), _charge) = read_as(service, body, device_part).await?;
    service.register_cuda_region(name, &handle, device_id, byte_size).await
}

/// Key, offset and size of a registration, in Triton's order and words.
fn part(text: &[u8]) -> Result<(String, u64, u64), InferError> {
    let [key, offset, byte_size] = Value::parse(text)?.pick(["key", "offset", "byte_size"]);
    let key = key.ok_or_else(|| missing("key"))?.as_text()?.into_owned();
    let offset = offset.map_or(Ok(0), Value::as_u64)?;
    let byte_size = byte_size.ok_or_else(|| missing("byte_size"))?.as_u64()?;
    Ok((key, offset, byte_size))
}

/// Handle, size and device of a registration, likewise.
fn device_part(text: &[u8]) -> Result<(Vec<u8>, u64, i64), InferError> {
    let document = Value::parse(text)?;
    let handle = document.find("raw_handle").ok_or_else(|| missing("raw_handle"))?.member("b64")?.as_bytes()?;
    let byte_size = document.member("byte_size")?.as_u64()?;
    let device_id = document.member("device_id")?.as_u64()?;
    let handle = BASE64.decode(handle.trim_ascii()).ok().filter(|handle| handle.len() == HANDLE_BYTES);
    let handle =
        handle.ok_or_else(|| InferError::invalid("'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t"))?;
    // What is larger is no device either.
    Ok((handle, byte_size, i64::try_from(device_id).unwrap_or(i64::MAX)))
}

fn missing(field: &str) -> InferError {
    InferError::invalid(format!("Shared memory register request has no '{field}' field"))
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

    fn device_refusal(text: &str) -> String {
        device_part(text.as_bytes()).unwrap_err().message
    }

    #[test]
    fn a_registration_on_a_gpu_has_handle_size_and_device() {
        let handle = BASE64.encode([5; 64]);
        let text = format!(r#"{{"raw_handle":{{"b64":"{handle}\n"}},"device_id":1,"byte_size":16}}"#);
        assert_eq!(device_part(text.as_bytes()), Ok((vec![5; 64], 16, 1)));
        let far = format!(r#"{{"raw_handle":{{"b64":"{handle}"}},"device_id":18446744073709551615,"byte_size":16}}"#);
        assert_eq!(device_part(far.as_bytes()).unwrap().2, i64::MAX);
    }

    #[test]
    fn a_registration_on_a_gpu_names_what_it_lacks() {
        assert_eq!(device_refusal("{}"), "Shared memory register request has no 'raw_handle' field");
        let absent = |name: &str| format!("attempt to access non-existing object member '{name}'");
        assert_eq!(device_refusal(r#"{"raw_handle":{}}"#), absent("b64"));
        assert_eq!(device_refusal(r#"{"raw_handle":{"b64":"AAAA"}}"#), absent("byte_size"));
        assert_eq!(device_refusal(r#"{"raw_handle":{"b64":"AAAA"},"byte_size":1}"#), absent("device_id"));
        let invalid = "'raw_handle' must be a valid base64 encoded cudaIpcMemHandle_t";
        for handle in ["AAAA", "", "!", &BASE64.encode([0; 63]), &BASE64.encode([0; 65])] {
            let text = format!(r#"{{"raw_handle":{{"b64":"{handle}"}},"byte_size":1,"device_id":0}}"#);
            assert_eq!(device_refusal(&text), invalid);
        }
    }
}
