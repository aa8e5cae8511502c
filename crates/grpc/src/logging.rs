//! `LogSettings`.

use std::collections::BTreeMap;

use alipes_protocol::codec::proto::inference::log_settings_request::setting_value::ParameterChoice as Choice;
use alipes_protocol::codec::proto::inference::log_settings_response::SettingValue;
use alipes_protocol::codec::proto::inference::log_settings_response::setting_value::ParameterChoice;
use alipes_protocol::codec::proto::inference::{LogSettingsRequest, LogSettingsResponse};
use alipes_protocol::{Code, InferError};
use alipes_service::{LOG_FILE_IS_FIXED, Service};
use alipes_spec::log::{LogChange, LogFormat, LogSettings};
use bytes::Bytes;

use super::message::parse;
use super::response::ResponseBody;

pub(super) async fn log_settings(service: &Service, message: Bytes) -> Result<ResponseBody, InferError> {
    let request: LogSettingsRequest = parse(message)?;
    let settings = service.change_log(change(&request)?).await?;
    Ok(ResponseBody::message(&LogSettingsResponse { settings: values(settings) }))
}

/// What a request asks for; a setting that is unknown asks for nothing, as in Triton.
fn change(request: &LogSettingsRequest) -> Result<LogChange, InferError> {
    let value = |name: &str| request.settings.get(name).map(|value| value.parameter_choice.as_ref());
    if value("log_file").is_some() {
        return Err(InferError::new(Code::Unsupported, LOG_FILE_IS_FIXED));
    }
    let flag = |name: &str| match value(name) {
        None => Ok(None),
        Some(Some(Choice::BoolParam(flag))) => Ok(Some(*flag)),
        Some(_) => Err(InferError::invalid(format!("expect boolean for '{name}'"))),
    };
    Ok(LogChange {
        info: flag("log_info")?,
        warning: flag("log_warning")?,
        error: flag("log_error")?,
        verbose_level: match value("log_verbose_level") {
            None => None,
            Some(Some(Choice::Uint32Param(level))) => Some(*level),
            Some(_) => return Err(InferError::invalid("expect int32 for 'log_verbose_level'")),
        },
        format: match value("log_format") {
            None => None,
            Some(Some(Choice::StringParam(name))) => Some(format(name)?),
            Some(_) => return Err(InferError::invalid("expect string for 'log_format'")),
        },
    })
}

fn format(name: &str) -> Result<LogFormat, InferError> {
    let unknown = || InferError::invalid(format!("invalid argument for log_format, got: {name}"));
    LogFormat::from_name(name).ok_or_else(unknown)
}

fn values(settings: LogSettings) -> BTreeMap<String, SettingValue> {
    let LogSettings { log_file, log_info, log_warning, log_error, log_verbose_level, log_format } = settings;
    let value = |name: &str, choice| (name.to_owned(), SettingValue { parameter_choice: Some(choice) });
    BTreeMap::from([
        value("log_file", ParameterChoice::StringParam(log_file)),
        value("log_info", ParameterChoice::BoolParam(log_info)),
        value("log_warning", ParameterChoice::BoolParam(log_warning)),
        value("log_error", ParameterChoice::BoolParam(log_error)),
        value("log_verbose_level", ParameterChoice::Uint32Param(log_verbose_level)),
        value("log_format", ParameterChoice::StringParam(log_format.name().to_owned())),
    ])
}

#[cfg(test)]
mod tests {
    use alipes_protocol::codec::proto::inference::log_settings_request;

    use super::*;

    fn parsed(name: &str, choice: Option<Choice>) -> Result<LogChange, String> {
        let value = log_settings_request::SettingValue { parameter_choice: choice };
        let request = LogSettingsRequest { settings: BTreeMap::from([(name.to_owned(), value)]) };
        change(&request).map_err(|error| error.message)
    }

    #[test]
    fn a_change_holds_the_named_settings() {
        let change = parsed("log_verbose_level", Some(Choice::Uint32Param(2)));
        assert_eq!(change, Ok(LogChange { verbose_level: Some(2), ..LogChange::default() }));
        assert_eq!(parsed("log_color", Some(Choice::BoolParam(true))), Ok(LogChange::default()));
    }

    #[test]
    fn values_of_another_kind_are_refused() {
        let text = || Some(Choice::StringParam("true".to_owned()));
        assert_eq!(parsed("log_error", text()), Err("expect boolean for 'log_error'".to_owned()));
        assert_eq!(parsed("log_info", None), Err("expect boolean for 'log_info'".to_owned()));
        assert_eq!(parsed("log_verbose_level", text()), Err("expect int32 for 'log_verbose_level'".to_owned()));
        assert_eq!(parsed("log_format", None), Err("expect string for 'log_format'".to_owned()));
        assert_eq!(parsed("log_format", text()), Err("invalid argument for log_format, got: true".to_owned()));
        assert_eq!(parsed("log_file", None), Err(LOG_FILE_IS_FIXED.to_owned()));
    }
}
