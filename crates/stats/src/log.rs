//! The log settings in force. The control plane writes the log; both protocols and all workers ask here what it writes.

use std::sync::atomic::{AtomicU8, Ordering};

use alipes_spec::log::{LogChange, LogSettings, VERBOSE};
use parking_lot::Mutex;

/// The settings in force.
#[derive(Debug)]
pub struct Log {
    settings: Mutex<LogSettings>,
    // The levels that are written; read on the request path without the lock.
    levels: AtomicU8,
}

impl Log {
    /// The settings at the start.
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

    /// Changes the settings unless `announce` fails. `announce` runs first and under the lock, so that announcements
    /// have the order of the changes.
    ///
    /// # Errors
    ///
    /// The error of `announce`; nothing has changed then.
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
}
