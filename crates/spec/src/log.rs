//! What the log is to hold, and in which form: told at the start, changed while the server runs.
//!
//! The control plane writes the log. Here is the truth about its settings, because both doors and every worker ask for
//! it; a change is in force once the control plane has taken it.

use std::sync::atomic::{AtomicU8, Ordering};

use alipes_protocol::Parameter;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// The form of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogFormat {
    /// Triton's own.
    #[serde(rename = "default")]
    Default,
    /// The time first, as ISO 8601 has it.
    #[serde(rename = "ISO8601")]
    Iso8601,
    /// A JSON document a line. Not one of Triton's.
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

/// The settings, as clients read them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogSettings {
    /// The file that is written to; empty for standard error.
    pub log_file: String,
    /// Whether informational messages are written.
    pub log_info: bool,
    /// Whether warnings are written.
    pub log_warning: bool,
    /// Whether errors are written.
    pub log_error: bool,
    /// Level of verbose messages; 0 turns them off.
    pub log_verbose_level: u32,
    /// The form of a line.
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

/// Number of the level of warnings; that of errors is 0.
pub const WARNING: u8 = 1;

/// Number of the level of verbose lines.
pub const VERBOSE: u8 = 3;

impl LogSettings {
    /// A bit for each level that is written, by its number.
    fn levels(&self) -> u8 {
        let written = [self.log_error, self.log_warning, self.log_info, self.log_verbose_level > 0];
        (0..).zip(written).map(|(level, written)| u8::from(written) << level).sum()
    }

    /// What the control plane is told. The file stays what it is.
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

/// A wish to change some settings; what is none stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogChange {
    /// Whether informational messages are to be written.
    pub info: Option<bool>,
    /// Whether warnings are to be written.
    pub warning: Option<bool>,
    /// Whether errors are to be written.
    pub error: Option<bool>,
    /// Level of verbose messages.
    pub verbose_level: Option<u32>,
    /// The form of a line.
    pub format: Option<LogFormat>,
}

impl LogChange {
    /// The settings as they would be.
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

/// The settings in force.
#[derive(Debug)]
pub struct Log {
    settings: Mutex<LogSettings>,
    // What requests and lines ask for, beside the lock.
    levels: AtomicU8,
}

impl Log {
    /// The settings of the start.
    pub fn new(settings: LogSettings) -> Log {
        let levels = AtomicU8::new(settings.levels());
        Log { settings: Mutex::new(settings), levels }
    }

    /// The settings now.
    pub fn settings(&self) -> LogSettings {
        self.settings.lock().clone()
    }

    /// Whether verbose lines are written.
    pub fn is_verbose(&self) -> bool {
        self.shows(VERBOSE)
    }

    /// Whether lines of a level are written: 0 error, 1 warning, 2 information, 3 and more verbose.
    pub fn shows(&self, level: u8) -> bool {
        self.levels.load(Ordering::Acquire) >> level.min(VERBOSE) & 1 != 0
    }

    /// Changes the settings unless `announce` fails, which hears of them first: announcements come in the order of the
    /// changes.
    ///
    /// # Errors
    ///
    /// What `announce` fails with; nothing has changed then.
    pub fn change<T, E>(
        &self,
        change: &LogChange,
        announce: impl FnOnce(&LogSettings) -> Result<T, E>,
    ) -> Result<(LogSettings, T), E> {
        let mut settings = self.settings.lock();
        let changed = change.applied_to(&settings);
        let announced = announce(&changed)?;
        self.levels.store(changed.levels(), Ordering::Release);
        *settings = changed.clone();
        Ok((changed, announced))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_leaves_alone_what_it_does_not_name() {
        let log = Log::new(LogSettings { log_file: "server.log".into(), ..LogSettings::default() });
        let change = LogChange { warning: Some(false), verbose_level: Some(2), ..LogChange::default() };
        let (settings, ()) = log.change(&change, |_| Ok::<_, ()>(())).unwrap();
        let expected = LogSettings {
            log_file: "server.log".into(),
            log_warning: false,
            log_verbose_level: 2,
            ..LogSettings::default()
        };
        assert_eq!((&settings, &log.settings()), (&expected, &expected));
        assert_eq!([0, 1, 2, 3, 9].map(|level| log.shows(level)), [true, false, true, true, true]);
    }

    #[test]
    fn what_cannot_be_announced_is_not_changed() {
        let log = Log::new(LogSettings::default());
        let change = LogChange { verbose_level: Some(1), ..LogChange::default() };
        assert_eq!(log.change(&change, |_| Err::<(), _>("stopping")), Err("stopping"));
        assert_eq!((log.settings(), log.is_verbose()), (LogSettings::default(), false));
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
