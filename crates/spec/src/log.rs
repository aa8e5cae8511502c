//! Log settings: their form as clients read them, their defaults, and changes of them.

use alipes_protocol::Parameter;
use serde::{Deserialize, Serialize};

/// Format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// Triton's own.
    #[serde(rename = "default")]
    Default,
    /// Begins with the time in ISO 8601.
    #[serde(rename = "ISO8601")]
    Iso8601,
    /// One JSON document a line; not one of Triton's formats.
    #[serde(rename = "JSON")]
    Json,
}

impl LogFormat {
    const ALL: [LogFormat; 3] = [LogFormat::Default, LogFormat::Iso8601, LogFormat::Json];

    /// The format with a name, in this spelling.
    pub fn from_name(name: &str) -> Option<LogFormat> {
        LogFormat::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            LogFormat::Default => "default",
            LogFormat::Iso8601 => "ISO8601",
            LogFormat::Json => "JSON",
        }
    }
}

/// Log settings, as clients read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// Path of the log file; empty for standard error.
    pub log_file: String,
    /// Whether informational messages are written.
    pub log_info: bool,
    /// Whether warnings are written.
    pub log_warning: bool,
    /// Whether errors are written.
    pub log_error: bool,
    /// Level of verbose messages; 0 turns them off.
    pub log_verbose_level: u32,
    /// Format of a line.
    pub log_format: LogFormat,
}

impl Default for LogSettings {
    fn default() -> Self {
        LogSettings {
            log_file: String::new(),
            log_info: true,
            log_warning: true,
            log_error: true,
            log_verbose_level: 0,
            log_format: LogFormat::Default,
        }
    }
}

/// Level of warnings; that of errors is 0.
pub const WARNING: u8 = 1;

/// Lowest level of verbose messages.
pub const VERBOSE: u8 = 3;

impl LogSettings {
    /// The levels that are written, as bits: bit 0 for level 0.
    pub fn levels(&self) -> u8 {
        let written = [self.log_error, self.log_warning, self.log_info, self.log_verbose_level > 0];
        (0..).zip(written).map(|(level, written)| u8::from(written) << level).sum()
    }

    /// The settings as parameters of a control call, without the file, which cannot change.
    pub fn parameters(&self) -> Vec<(String, Parameter)> {
        let parameter = |name: &str, value| (name.to_owned(), value);
        vec![
            parameter("info", Parameter::Bool(self.log_info)),
            parameter("warning", Parameter::Bool(self.log_warning)),
            parameter("error", Parameter::Bool(self.log_error)),
            parameter("verbose_level", Parameter::Int64(self.log_verbose_level.into())),
            parameter("format", Parameter::String(self.log_format.name().to_owned())),
        ]
    }
}

/// A change of some settings; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// Whether to write informational messages.
    pub info: Option<bool>,
    /// Whether to write warnings.
    pub warning: Option<bool>,
    /// Whether to write errors.
    pub error: Option<bool>,
    /// Level of verbose messages.
    pub verbose_level: Option<u32>,
    /// Format of a line.
    pub format: Option<LogFormat>,
}

impl LogChange {
    /// The settings after the change.
    pub fn applied_to(&self, settings: &LogSettings) -> LogSettings {
        LogSettings {
            log_file: settings.log_file.clone(),
            log_info: self.info.unwrap_or(settings.log_info),
            log_warning: self.warning.unwrap_or(settings.log_warning),
            log_error: self.error.unwrap_or(settings.log_error),
            log_verbose_level: self.verbose_level.unwrap_or(settings.log_verbose_level),
            log_format: self.format.unwrap_or(settings.log_format),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let settings = LogSettings { log_file: "server.log".into(), ..LogSettings::default() };
        let change = LogChange { warning: Some(false), verbose_level: Some(2), ..LogChange::default() };
        let expected = LogSettings { log_warning: false, log_verbose_level: 2, ..settings.clone() };
        assert_eq!(change.applied_to(&settings), expected);
    }

    #[test]
    fn formats_have_one_spelling() {
        for format in LogFormat::ALL {
            assert_eq!(LogFormat::from_name(format.name()), Some(format));
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
        assert_eq!(LogFormat::from_name("json"), None);
    }
}
