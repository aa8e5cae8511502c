//! Log settings over HTTP.

use alipes_net::connection::RequestBody;
use alipes_protocol::codec::json::value::Value;
use alipes_protocol::{Code, InferError};
use alipes_service::{LOG_FILE_IS_FIXED, Service};
use alipes_spec::log::{LogChange, LogFormat};
use hyper::Response;

use super::control::read_as;
use super::response::{self, ResponseBody};

/// The settings.
pub fn settings(service: &Service) -> Response<ResponseBody> {
    response::json(&service.log_settings())
}

/// Changes settings and answers all of them.
pub async fn change(service: &Service, body: RequestBody) -> Response<ResponseBody> {
    let outcome = async {
        let (change, _charge) = read_as(service, body, change_of).await?;
        service.change_log(change).await
    };
    response::json_or(outcome.await)
}

/// What a body asks for. `null` asks for nothing, and so does a setting that is unknown, as in Triton.
fn change_of(text: &[u8]) -> Result<LogChange, InferError> {
    const NAMES: [&str; 6] = ["log_file", "log_info", "log_warning", "log_error", "log_verbose_level", "log_format"];
    let [file, info, warning, error, level, format] =
        Value::parse(text)?.pick(NAMES).map(|value| value.filter(|value| !value.is_null()));
    if file.is_some() {
        return Err(InferError::new(Code::Unsupported, LOG_FILE_IS_FIXED));
    }
    Ok(LogChange {
        info: info.map(Value::as_bool).transpose()?,
        warning: warning.map(Value::as_bool).transpose()?,
        error: error.map(Value::as_bool).transpose()?,
        verbose_level: level.map(verbose_level).transpose()?,
        format: format.map(self::format).transpose()?,
    })
}

fn verbose_level(value: Value<'_>) -> Result<u32, InferError> {
    let level = value.as_u64()?;
    u32::try_from(level)
        .map_err(|_| InferError::invalid(format!("'log_verbose_level' must be at most {}, got {level}", u32::MAX)))
}

/// Triton answers with a code of its own here.
fn format(value: Value<'_>) -> Result<LogFormat, InferError> {
    let name = value.as_text()?;
    LogFormat::from_name(&name)
        .ok_or_else(|| InferError::new(Code::Unavailable, format!("invalid argument for --log_format, got: {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_holds_the_named_settings() {
        let text = br#"{"log_info": false, "log_verbose_level": 3, "log_format": "JSON", "log_error": null, "x": 1}"#;
        let expected = LogChange {
            info: Some(false),
            verbose_level: Some(3),
            format: Some(LogFormat::Json),
            ..LogChange::default()
        };
        assert_eq!(change_of(text), Ok(expected));
        assert_eq!(change_of(b"{}"), Ok(LogChange::default()));
        assert_eq!(change_of(br#"{"log_file": null}"#), Ok(LogChange::default()));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        for (text, message) in [
            (r#"{"log_info": 1}"#, "attempt to access JSON non-boolean as boolean"),
            (r#"{"log_verbose_level": -1}"#, "attempt to access JSON non-unsigned-integer as unsigned-integer"),
            (r#"{"log_verbose_level": 4294967296}"#, "'log_verbose_level' must be at most 4294967295, got 4294967296"),
            (r#"{"log_format": 8601}"#, "attempt to access JSON non-string as string"),
            (r#"{"log_format": "iso8601"}"#, "invalid argument for --log_format, got: iso8601"),
            (r#"{"log_file": "x"}"#, LOG_FILE_IS_FIXED),
        ] {
            assert_eq!(change_of(text.as_bytes()).unwrap_err().message, message);
        }
        assert!(change_of(b"").is_err());
    }
}
